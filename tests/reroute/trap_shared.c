/* trap_shared.c: traps with memory that somebody beside the program's own allocations knows of:
 * another process, a pointer's attributes, a library that keeps registrations.
 *
 * A trap with two processes starts the other by fork and exec ahead of its own first CUDA call.
 * TRAP_OTHER says how that one runs: "bare", or a mode of Weir's (with TRAP_PRELOAD in front);
 * unset: as this one. The two go in lockstep, by pipes, and print to one stdout. */
#include <cuda.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/reroute/trap.h"

enum { FROM = 3, TO = 4 }; /* the other's descriptors */

/* ---- two processes --------------------------------------------------------------------------- */

static int to_other = TO, from_other = FROM; /* the other's view; the first one sets its own */

static void send_to_other(const void *what, size_t bytes)
{
  (void)fflush(stdout);
  if (write(to_other, what, bytes) != (ssize_t)bytes) _exit(20);
}

static void receive_from_other(void *what, size_t bytes)
{
  for (char *at = what; bytes;) {
    ssize_t n = read(from_other, at, bytes);
    if (n <= 0) _exit(21);
    at += n, bytes -= (size_t)n;
  }
}

static void release_other_process(void)
{
  char c = 1;
  send_to_other(&c, 1);
}

static void await_other_process(void)
{
  char c;
  receive_from_other(&c, 1);
}

static void become_other(const char *how, const char *preload)
{
  static char name[] = "trap", role[] = "--other";
  char *arguments[] = {name, role, NULL};
  if (how && preload) {
    if (!strcmp(how, "bare"))
      unsetenv("LD_PRELOAD");
    else
      setenv("LD_PRELOAD", preload, 1);
    setenv("WEIR_MODE", strcmp(how, "bare") ? how : "observe", 1);
  }
  (void)execv("/proc/self/exe", arguments);
  _exit(22);
}

static pid_t start_other(void)
{
  int down[2], up[2];
  if (pipe(down) || pipe(up)) exit(23);
  pid_t child = fork();
  if (!child) {
    int in = dup(down[0]), out = dup(up[1]); /* out of the way of FROM and TO */
    if (dup2(in, FROM) < 0 || dup2(out, TO) < 0) _exit(24);
    for (int i = TO + 1; i < 32; i++)
      (void)close(i);
    become_other(getenv("TRAP_OTHER"), getenv("TRAP_PRELOAD"));
  }
  (void)close(down[0]);
  (void)close(up[1]);
  to_other = down[1], from_other = up[0];
  return child;
}

static void end_other(pid_t child)
{
  int status = -1;
  (void)waitpid(child, &status, 0);
  printf("the other ended with %d\n", status);
}

/* ---- handles of memory and events ------------------------------------------------------------ */

static const size_t sizes[] = {4 * MIB, 3 * MIB + 4096, 8192};
enum { ROUNDS = sizeof sizes / sizeof *sizes };

/* A block is exported, written by the other, and freed: first while the other has it, then not. */
static void export_to_other(unsigned round, bool freed_first)
{
  cudaIpcMemHandle_t h, again, fresh;
  unsigned *p, *q, n = (unsigned)(sizes[round] / sizeof *p);
  PRINT(cudaMalloc((void **)&p, sizes[round]));
  PRINT(trap_launch_fill(NULL, p, n, 100 + round, 0));
  PRINT(cudaDeviceSynchronize());
  PRINT(cudaIpcGetMemHandle(&h, p));
  PRINT(cudaIpcGetMemHandle(&again, p));
  printf("one handle %d\n", !memcmp(&h, &again, sizeof h));
  send_to_other(&h, sizeof h);
  await_other_process(); /* it has written */
  printf("exporter: wrong %u\n", trap_wrong(p, n, 200 + round, NULL));
  if (freed_first) PRINT(cudaFree(p));
  release_other_process();
  await_other_process(); /* it has closed */
  if (!freed_first) PRINT(cudaFree(p));
  PRINT(cudaMalloc((void **)&q, sizes[round]));
  PRINT(cudaMemset(q, 0, sizes[round]));
  PRINT(cudaIpcGetMemHandle(&fresh, q));
  printf("another handle %d\n", memcmp(&h, &fresh, sizeof h) != 0);
  release_other_process();
  await_other_process(); /* it has found the old handle dead */
  printf("exporter: wrong %u\n", trap_wrong(q, n, 0, NULL));
  PRINT(cudaFree(q));
}

static void import_from_other(unsigned round)
{
  cudaIpcMemHandle_t h;
  struct cudaPointerAttributes a;
  unsigned *p = NULL, n = (unsigned)(sizes[round] / sizeof *p);
  unsigned *host = malloc(sizes[round]);
  void *gone = NULL;
  receive_from_other(&h, sizeof h);
  PRINT(cudaIpcOpenMemHandle((void **)&p, h, cudaIpcMemLazyEnablePeerAccess));
  printf("importer: wrong %u\n", trap_wrong(p, n, 100 + round, NULL));
  PRINT(cudaPointerGetAttributes(&a, p));
  printf("type %d device %d\n", (int)a.type, a.device);
  PRINT(cudaFree(p)); /* not its own */
  for (unsigned i = 0; i < n; i++)
    host[i] = 200 + round;
  PRINT(cudaMemcpy(p, host, sizes[round], cudaMemcpyHostToDevice)); /* staged, where that is on */
  PRINT(cudaDeviceSynchronize());
  release_other_process();
  await_other_process(); /* the exporter has looked, and perhaps freed */
  PRINT(cudaIpcCloseMemHandle(p));
  PRINT(cudaIpcCloseMemHandle(p));
  release_other_process();
  await_other_process(); /* freed and allocated anew */
  PRINT(cudaIpcOpenMemHandle(&gone, h, cudaIpcMemLazyEnablePeerAccess));
  PRINT(cudaGetLastError());
  release_other_process();
  free(host);
}

/* Each exports to the other, with blocks of the sizes of what is cached, if anything is. */
static void ipc_memory(void)
{
  pid_t child = start_other();
  char what = 'm';
  send_to_other(&what, 1);
  for (unsigned i = 0; i < 4; i++) {
    void *p;
    PRINT(cudaMalloc(&p, sizes[i % ROUNDS]));
    PRINT(cudaFree(p));
  }
  for (unsigned round = 0; round < 2 * ROUNDS; round++) {
    export_to_other(round % ROUNDS, round % 2);
    release_other_process();
    import_from_other(round % ROUNDS);
    await_other_process();
  }
  end_other(child);
}

static void other_memory(void)
{
  for (unsigned round = 0; round < 2 * ROUNDS; round++) {
    import_from_other(round % ROUNDS);
    await_other_process();
    export_to_other(round % ROUNDS, round % 2 == 0);
    release_other_process();
  }
}

/* The other's stream waits for an event of this one's, recorded behind slow work; then this one's
 * for the other's. The memory is freed by its owner while the other still reads it by that order.
 */
static void ipc_events(void)
{
  pid_t child = start_other();
  char what = 'e';
  cudaIpcMemHandle_t m;
  cudaIpcEventHandle_t h, back;
  cudaEvent_t mine, theirs, plain;
  cudaStream_t s;
  unsigned *p;
  send_to_other(&what, 1);
  PRINT(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  PRINT(cudaEventCreateWithFlags(&mine, cudaEventDisableTiming | cudaEventInterprocess));
  PRINT(cudaEventCreateWithFlags(&plain, cudaEventDisableTiming));
  PRINT(cudaIpcGetEventHandle(&h, plain)); /* not made for it */
  PRINT(cudaGetLastError());
  PRINT(cudaIpcGetEventHandle(&h, mine));
  send_to_other(&h, sizeof h);
  receive_from_other(&back, sizeof back);
  PRINT(cudaIpcOpenEventHandle(&theirs, back));
  for (unsigned round = 0; round < 3; round++) {
    PRINT(cudaMalloc((void **)&p, 2 * MIB));
    PRINT(cudaIpcGetMemHandle(&m, p));
    PRINT(trap_launch_fill(s, p, MIB / 2, round, SLOW / 4));
    PRINT(cudaEventRecord(mine, s));
    send_to_other(&m, sizeof m);
    await_other_process(); /* its work is queued and its event recorded */
    PRINT(cudaStreamWaitEvent(s, theirs, 0));
    PRINT(trap_launch_fill(s, p, MIB / 2, 99, 0));
    PRINT(cudaStreamSynchronize(s));
    release_other_process();
    await_other_process(); /* it has looked and closed */
    PRINT(cudaFree(p));
  }
  PRINT(cudaEventDestroy(theirs));
  PRINT(cudaEventDestroy(mine));
  release_other_process();
  end_other(child);
}

static void other_events(void)
{
  cudaIpcMemHandle_t m;
  cudaIpcEventHandle_t h, mine;
  cudaEvent_t theirs, done;
  cudaStream_t s;
  unsigned *p, *copy;
  receive_from_other(&h, sizeof h);
  PRINT(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  PRINT(cudaIpcOpenEventHandle(&theirs, h));
  PRINT(cudaEventCreateWithFlags(&done, cudaEventDisableTiming | cudaEventInterprocess));
  PRINT(cudaIpcGetEventHandle(&mine, done));
  send_to_other(&mine, sizeof mine);
  for (unsigned round = 0; round < 3; round++) {
    receive_from_other(&m, sizeof m);
    PRINT(cudaIpcOpenMemHandle((void **)&p, m, cudaIpcMemLazyEnablePeerAccess));
    PRINT(cudaMalloc((void **)&copy, 2 * MIB));
    PRINT(cudaStreamWaitEvent(s, theirs, 0));
    PRINT(cudaMemcpyAsync(copy, p, 2 * MIB, cudaMemcpyDeviceToDevice, s));
    PRINT(cudaEventRecord(done, s));
    release_other_process();
    await_other_process();
    printf("importer: wrong %u\n", trap_wrong(copy, MIB / 2, round, s));
    PRINT(cudaFree(copy));
    PRINT(cudaIpcCloseMemHandle(p));
    release_other_process();
  }
  await_other_process();
  PRINT(cudaEventDestroy(theirs));
  PRINT(cudaEventDestroy(done));
}

int trap_other(void)
{
  char what = 0;
  receive_from_other(&what, 1);
  if (what == 'm')
    other_memory();
  else
    other_events();
  return fflush(stdout) != 0;
}

/* ---- attributes ------------------------------------------------------------------------------ */

static void attributes_of(CUdeviceptr p)
{
  unsigned sync = 7;
  struct {
    unsigned long long token;
    unsigned space;
  } tokens;
  int fd = -1;
  CUresult r = cuPointerGetAttribute(&sync, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p);
  printf("sync_memops %d %u", (int)r, r ? 0 : sync);
  r = cuPointerGetAttribute(&tokens, CU_POINTER_ATTRIBUTE_P2P_TOKENS, p);
  printf(" tokens %d", (int)r);
  r = cuMemGetHandleForAddressRange(&fd, p, 2 * MIB, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
  printf(" dma_buf %d\n", (int)r);
  if (!r) (void)close(fd);
}

/* What was set of a block is not of the next one that is got. */
static void attributes(void)
{
  static const int on = 1;
  CUdeviceptr p, q;
  PRINT(cudaFree(NULL));
  for (int round = 0; round < 4; round++) {
    PRINT(cuMemAlloc(&p, 2 * MIB));
    attributes_of(p);
    if (round % 2)
      PRINT(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p + 512));
    else
      PRINT(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p));
    attributes_of(p);
    PRINT(cuMemFree(p));
    PRINT(cuMemAlloc(&q, 2 * MIB));
    attributes_of(q);
    PRINT(cuMemFree(q));
    PRINT(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, q)); /* gone */
  }
}

/* A cache of registrations, as UCX and MPI libraries have: by range and by an id that no two
 * allocations of a process share. */
static void registrations(void)
{
  enum { MOST = 64 };
  unsigned long long seen[MOST];
  unsigned known = 0, twice = 0;
  for (unsigned round = 0; round < 8; round++)
    for (unsigned i = 0; i < 6; i++) {
      CUdeviceptr p, base = 0;
      size_t asked = i < 3 ? (i + 1) * 1000 : i * MIB + 5, bytes = 0;
      unsigned long long id = 0, inside = 0;
      PRINT(cudaMalloc((void **)&p, asked));
      PRINT(cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, p));
      PRINT(cuPointerGetAttribute(&inside, CU_POINTER_ATTRIBUTE_BUFFER_ID, p + asked - 1));
      PRINT(cuMemGetAddressRange(&base, &bytes, p + asked / 2));
      printf("one id %d range %d %zu\n", id == inside, base == p, bytes);
      for (unsigned k = 0; k < known; k++)
        twice += seen[k] == id;
      if (known < MOST) seen[known++] = id;
      PRINT(cudaFree((void *)p));
      printf("gone %d\n", (int)cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, p));
    }
  printf("ids seen twice: %u\n", twice);
}

/* cudaFree is the only wait before managed memory is read: strict keeps it. */
static void managed_waits(void)
{
  unsigned *managed;
  void *other;
  cudaStream_t s;
  PRINT(cudaMallocManaged((void **)&managed, MIB, cudaMemAttachGlobal));
  PRINT(cudaMalloc(&other, 2 * MIB));
  PRINT(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  for (unsigned round = 1; round < 4; round++) {
    PRINT(trap_launch_fill(s, managed, MIB / 4, round, SLOW));
    PRINT(cudaFree(other));
    printf("%u %u\n", managed[0], managed[MIB / 4 - 1]);
    PRINT(cudaMalloc(&other, 2 * MIB));
  }
  PRINT(cudaFree(managed));
  PRINT(cudaFree(other));
}

/* ---- two devices ----------------------------------------------------------------------------- */

typedef struct two {
  unsigned *p[2];
  cudaStream_t s[2];
  unsigned n;
} two;

static void two_get(two *t, size_t bytes)
{
  t->n = (unsigned)(bytes / sizeof *t->p[0]);
  for (int i = 0; i < 2; i++) {
    PRINT(cudaSetDevice(i));
    PRINT(cudaMalloc((void **)&t->p[i], bytes));
    PRINT(cudaMemset(t->p[i], 0, bytes));
    PRINT(cudaDeviceSynchronize());
  }
}

static void two_give(two *t)
{
  PRINT(cudaFree(t->p[0]));
  PRINT(cudaFree(t->p[1]));
}

/* From device `from`, in its stream: behind slow work there, ahead of more. */
static void send_on(two *t, int from, unsigned value, bool by_device)
{
  int to = !from;
  size_t bytes = t->n * sizeof *t->p[0];
  PRINT(cudaSetDevice(from));
  PRINT(trap_launch_fill(t->s[from], t->p[from], t->n, value, SLOW / 8));
  if (by_device)
    PRINT(cudaMemcpyPeerAsync(t->p[to], to, t->p[from], from, bytes, t->s[from]));
  else
    PRINT(cudaMemcpyAsync(t->p[to], t->p[from], bytes, cudaMemcpyDefault, t->s[from]));
  PRINT(trap_launch_fill(t->s[from], t->p[from], t->n, value + 1, 0));
  PRINT(cudaStreamSynchronize(t->s[from]));
  printf("wrong %u", trap_wrong(t->p[from], t->n, value + 1, t->s[from]));
  PRINT(cudaSetDevice(to));
  printf(" %u\n", trap_wrong(t->p[to], t->n, value, t->s[to]));
}

/* The source is freed, and its memory used anew, while the copy may be on its way. */
static void send_and_free(two *t, unsigned value)
{
  unsigned *again;
  size_t bytes = t->n * sizeof *t->p[0];
  PRINT(cudaSetDevice(0));
  PRINT(trap_launch_fill(t->s[0], t->p[0], t->n, value, SLOW / 8));
  PRINT(cudaMemcpyAsync(t->p[1], t->p[0], bytes, cudaMemcpyDeviceToDevice, t->s[0]));
  PRINT(cudaFree(t->p[0]));
  PRINT(cudaMalloc((void **)&again, bytes));
  PRINT(cudaMemset(again, 0xff, bytes));
  PRINT(cudaDeviceSynchronize());
  PRINT(cudaSetDevice(1));
  printf("wrong %u\n", trap_wrong(t->p[1], t->n, value, t->s[1]));
  t->p[0] = again;
}

static void both_ways(two *t, unsigned value)
{
  size_t half = t->n / 2;
  for (int i = 0; i < 2; i++) {
    PRINT(cudaSetDevice(i));
    PRINT(trap_launch_fill(t->s[i], t->p[i], t->n, value + (unsigned)i, SLOW / 8));
    PRINT(cudaStreamSynchronize(t->s[i]));
  }
  for (int i = 0; i < 2; i++)
    PRINT(cudaMemcpyPeerAsync(t->p[!i] + half, !i, t->p[i], i, half * sizeof *t->p[0], t->s[i]));
  for (int i = 0; i < 2; i++) {
    PRINT(cudaStreamSynchronize(t->s[i]));
    printf("wrong %u %u\n", trap_wrong(t->p[i], (unsigned)half, value + (unsigned)i, t->s[i]),
           trap_wrong(t->p[!i] + half, (unsigned)half, value + (unsigned)i, t->s[!i]));
  }
}

static void peer_errors(two *t)
{
  size_t bytes = t->n * sizeof *t->p[0];
  PRINT(cudaMemcpyPeerAsync(t->p[1], 7, t->p[0], 0, bytes, t->s[0]));
  PRINT(cudaMemcpyAsync(t->p[1], t->p[0], bytes + 8 * MIB, cudaMemcpyDefault, t->s[0]));
  PRINT(cudaGetLastError());
  PRINT(cudaMemcpyPeer(t->p[1], 1, t->p[0], 0, bytes));
  PRINT(cudaDeviceSynchronize());
  PRINT(cudaMemcpy(t->p[0], t->p[1], bytes, cudaMemcpyDefault));
  PRINT(cudaDeviceSynchronize());
}

/* Copies between two devices, without peer access and then with it. */
static void peer_copies(void)
{
  two t = {.n = 0};
  for (int i = 0; i < 2; i++) {
    PRINT(cudaSetDevice(i));
    PRINT(cudaStreamCreateWithFlags(&t.s[i], cudaStreamNonBlocking));
  }
  for (unsigned round = 0; round < 6; round++) {
    two_get(&t, (round % 2 ? 41 : 4) * MIB + 84);
    send_on(&t, (int)(round & 1), 10 * round + 1, round & 2);
    send_on(&t, !(round & 1), 10 * round + 3, round & 2);
    send_and_free(&t, 10 * round + 5);
    both_ways(&t, 10 * round + 7);
    peer_errors(&t);
    two_give(&t);
    if (round != 3) continue;
    PRINT(cudaSetDevice(0));
    PRINT(cudaDeviceEnablePeerAccess(1, 0));
  }
}

enum { PEER, PEER_DRIVER, UNIFIED, UNIFIED_DRIVER, NULL_STREAM, OWN_DEFAULT, PEER_WAYS };

static int peer_copy(int way, two *t)
{
  CUcontext context[2];
  size_t bytes = t->n * sizeof *t->p[0];
  CUdeviceptr dst = (CUdeviceptr)t->p[1], src = (CUdeviceptr)t->p[0];
  switch (way) {
  case PEER:
    return (int)cudaMemcpyPeer(t->p[1], 1, t->p[0], 0, bytes);
  case PEER_DRIVER:
    for (int i = 0; i < 2; i++)
      if (cuDevicePrimaryCtxRetain(&context[i], i) || cuDevicePrimaryCtxRelease(i)) return -1;
    return (int)cuMemcpyPeer(dst, context[1], src, context[0], bytes);
  case UNIFIED:
    return (int)cudaMemcpy(t->p[1], t->p[0], bytes, cudaMemcpyDeviceToDevice);
  case UNIFIED_DRIVER:
    return (int)cuMemcpyDtoD(dst, src, bytes);
  case NULL_STREAM:
    return (int)cudaMemcpyAsync(t->p[1], t->p[0], bytes, cudaMemcpyDefault, NULL);
  default:
    return (int)cudaMemcpyPeerAsync(t->p[1], 1, t->p[0], 0, bytes, cudaStreamPerThread);
  }
}

/* cudaMemcpyPeer comes after all that was queued on either device, and before all that is queued
 * next, in whichever stream. */
static void peer_between(two *t, int way, unsigned value)
{
  two q = {.n = 0};
  two_get(&q, t->n * sizeof *t->p[0]);
  PRINT(cudaSetDevice(0));
  PRINT(trap_launch_fill(t->s[0], t->p[0], t->n, value, SLOW / 8));
  printf("copied %d\n", peer_copy(way, t));
  PRINT(trap_launch_fill(t->s[0], t->p[0], t->n, value + 1, 0));
  PRINT(cudaSetDevice(1));
  PRINT(
      cudaMemcpyAsync(q.p[1], t->p[1], t->n * sizeof *t->p[0], cudaMemcpyDeviceToDevice, t->s[1]));
  PRINT(cudaStreamSynchronize(t->s[1]));
  printf("wrong %u\n", trap_wrong(q.p[1], t->n, value, t->s[1]));
  PRINT(cudaSetDevice(0));
  PRINT(cudaStreamSynchronize(t->s[0]));
  two_give(&q);
}

/* In a default stream it comes after, and before, what is in streams that wait for that one. */
static void default_between(two *t, int way, unsigned value, cudaStream_t s)
{
  PRINT(cudaSetDevice(0));
  PRINT(trap_launch_fill(way == OWN_DEFAULT ? cudaStreamPerThread : s, t->p[0], t->n, value,
                         SLOW / 8));
  printf("copied %d\n", peer_copy(way, t));
  PRINT(
      trap_launch_fill(way == OWN_DEFAULT ? cudaStreamPerThread : s, t->p[0], t->n, value + 1, 0));
  PRINT(cudaDeviceSynchronize());
  PRINT(cudaSetDevice(1));
  printf("wrong %u\n", trap_wrong(t->p[1], t->n, value, t->s[1]));
  PRINT(cudaSetDevice(0));
}

static _Atomic int let_go;

static void CUDART_CB until_let_go(void *unused)
{
  (void)unused;
  while (!let_go)
    (void)usleep(1000);
}

/* The call does not wait for what only this thread can end. */
static void peer_returns(two *t, int way, unsigned value)
{
  let_go = 0;
  PRINT(cudaSetDevice(0));
  PRINT(trap_launch_fill(t->s[0], t->p[0], t->n, value, 0));
  PRINT(cudaStreamSynchronize(t->s[0]));
  PRINT(cudaLaunchHostFunc(t->s[0], until_let_go, NULL));
  printf("copied %d\n", peer_copy(way, t));
  let_go = 1;
  PRINT(cudaDeviceSynchronize());
  PRINT(cudaSetDevice(1));
  printf("wrong %u\n", trap_wrong(t->p[1], t->n, value, t->s[1]));
}

/* What else a copy between devices is in order with, whichever call makes it. */
static void peer_order(void)
{
  two t = {.n = 0};
  cudaStream_t blocking;
  for (int i = 0; i < 2; i++) {
    PRINT(cudaSetDevice(i));
    PRINT(cudaStreamCreateWithFlags(&t.s[i], cudaStreamNonBlocking));
  }
  PRINT(cudaSetDevice(0));
  PRINT(cudaStreamCreate(&blocking));
  for (unsigned round = 0; round < 2; round++) {
    two_get(&t, (round ? 41 : 4) * MIB + 84);
    for (int way = 0; way < PEER_WAYS; way++) {
      unsigned value = 100 * round + 10 * (unsigned)way;
      if (way <= PEER_DRIVER) peer_between(&t, way, value + 1);
      default_between(&t, way, value + 3, blocking);
      if (way <= PEER_DRIVER) peer_returns(&t, way, value + 5);
    }
    two_give(&t);
  }
}

/* Page-locked memory of one device in a copy of the other's, then freed. */
static void pinned_elsewhere(void)
{
  unsigned *pinned, *p, bad = 0;
  cudaStream_t s;
  PRINT(cudaSetDevice(1));
  PRINT(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  PRINT(cudaMalloc((void **)&p, MIB));
  for (unsigned round = 0; round < 4; round++) {
    PRINT(cudaSetDevice(0));
    PRINT(cudaMallocHost((void **)&pinned, MIB));
    for (unsigned i = 0; i < MIB / 4; i++)
      pinned[i] = round;
    PRINT(cudaSetDevice(1));
    PRINT(cudaMemcpyAsync(p, pinned, MIB, cudaMemcpyHostToDevice, s));
    PRINT(cudaStreamSynchronize(s));
    PRINT(cudaFreeHost(pinned));
    bad += trap_wrong(p, MIB / 4, round, s);
  }
  printf("wrong %u\n", bad);
  PRINT(cudaFree(p));
}

/* "A memory copy will succeed even if it is issued to a stream that is not associated to the
 * current device" (CUDA C++ Programming Guide): in that stream's order, whichever way it goes. */
static void streams_of_others(void)
{
  enum { N = 3 * MIB / 4 };
  unsigned *host = malloc(N * sizeof *host), *back = malloc(N * sizeof *back), bad = 0;
  unsigned *p = NULL, *again = NULL;
  cudaStream_t s = NULL;
  PRINT(cudaSetDevice(0));
  PRINT(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  PRINT(cudaSetDevice(1));
  for (unsigned round = 0; round < 8; round++) {
    for (unsigned i = 0; i < N; i++)
      host[i] = round + 1;
    memset(back, 0, N * sizeof *back);
    PRINT(cudaMalloc((void **)&p, N * sizeof *p));
    PRINT(cudaMemcpyAsync(p, host, N * sizeof *p, cudaMemcpyHostToDevice, s));
    PRINT(cudaMemcpyAsync(back, p, N * sizeof *p, cudaMemcpyDeviceToHost, s));
    PRINT(cudaStreamSynchronize(s));
    for (unsigned i = 0; i < N; i++)
      bad += back[i] != round + 1;
    PRINT(cudaFree(p));
    PRINT(cudaMalloc((void **)&again, N * sizeof *p));
    PRINT(cudaMemset(again, 0, N * sizeof *p));
    PRINT(cudaFree(again));
  }
  printf("wrong %u\n", bad);
  free(host);
  free(back);
}

/* ---- many threads, all of it ----------------------------------------------------------------- */

enum { THREADS = 16, TURNS = 24 };

typedef struct worker {
  unsigned number, wrong, failed, odd; /* odd: answers that are not the documented ones */
  void *left;                          /* freed by the next thread */
} worker;

static worker workers[THREADS];

static void misuse(worker *w, char *p, size_t bytes)
{
  size_t free_now, total;
  CUdeviceptr base;
  size_t size;
  w->odd += cudaFree(p + 512) != cudaErrorInvalidValue;
  w->odd += cudaFree(w) != cudaErrorInvalidValue;
  w->odd += cuMemGetAddressRange(&base, &size, (CUdeviceptr)p + bytes - 1) || size != bytes ||
            base != (CUdeviceptr)p;
  w->odd += cudaMemGetInfo(&free_now, &total) || free_now > total;
  (void)cudaGetLastError();
}

static void run_shared_turn(worker *w, unsigned i, cudaStream_t s)
{
  unsigned n = 1000u << (i + w->number) % 9, value = w->number << 16 | i;
  unsigned *p = NULL, *q = NULL, *pinned = NULL;
  size_t bytes = n * sizeof *p;
  bool short_of = cudaMalloc((void **)&p, bytes) || cudaMalloc((void **)&q, bytes) ||
                  cudaMallocHost((void **)&pinned, bytes);
  w->failed += short_of;
  if (short_of) return;
  w->failed += trap_launch_fill(s, p, n, value, 1000) != 0;
  w->failed += cudaMemcpyAsync(q, p, bytes, cudaMemcpyDeviceToDevice, s) != cudaSuccess;
  w->failed += cudaMemcpyAsync(pinned, q, bytes, cudaMemcpyDeviceToHost, s) != cudaSuccess;
  misuse(w, (char *)p, bytes);
  w->failed += cudaFree(p) != cudaSuccess;
  w->failed += cudaStreamSynchronize(s) != cudaSuccess;
  for (unsigned k = 0; k < n; k++)
    w->wrong += pinned[k] != value;
  w->failed += cudaFreeHost(pinned) != cudaSuccess;
  w->failed += cudaFree(q) != cudaSuccess;
}

static void *work_on(void *argument)
{
  worker *w = argument;
  cudaStream_t s;
  w->failed += cudaSetDevice((int)(w->number % 2)) != cudaSuccess;
  w->failed += cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking) != cudaSuccess;
  for (unsigned i = 0; i < TURNS; i++)
    run_shared_turn(w, i, s);
  w->failed += cudaMalloc(&w->left, MIB) != cudaSuccess;
  w->failed += cudaStreamDestroy(s) != cudaSuccess;
  return NULL;
}

/* On the other device, in another thread. */
static void *free_left(void *argument)
{
  worker *w = argument;
  w->failed += cudaSetDevice((int)(w->number % 2)) != cudaSuccess;
  w->failed += cudaFree(workers[(w->number + 1) % THREADS].left) != cudaSuccess;
  return NULL;
}

static void all_at_once(void)
{
  pthread_t t[THREADS];
  for (unsigned pass = 0; pass < 2; pass++) {
    for (unsigned i = 0; i < THREADS; i++) {
      workers[i].number = i;
      (void)pthread_create(&t[i], NULL, pass ? free_left : work_on, &workers[i]);
    }
    for (unsigned i = 0; i < THREADS; i++)
      (void)pthread_join(t[i], NULL);
  }
  for (unsigned i = 0; i < THREADS; i++)
    printf("thread %u: wrong %u failed %u odd %u\n", i, workers[i].wrong, workers[i].failed,
           workers[i].odd);
}

const trap trap_shared[] = {{"ipc_memory", ipc_memory},
                            {"ipc_events", ipc_events},
                            {"attributes", attributes},
                            {"registrations", registrations},
                            {"managed_waits", managed_waits},
                            {"peer_copies", peer_copies},
                            {"peer_order", peer_order},
                            {"pinned_elsewhere", pinned_elsewhere},
                            {"streams_of_others", streams_of_others},
                            {"all_at_once", all_at_once},
                            {NULL, NULL}};
