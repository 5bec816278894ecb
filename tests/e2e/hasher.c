/* hasher.c: copies whose content it knows, and says: one line a copy, in the order of the calls.
 *
 *   =HASH     it must have been hashed, to this
 *   ~HASH     it may have been, and then to this
 *   OUTCOME   it must not, and this is why
 *
 *   hasher cases          each way of a copy once
 *   hasher random SEED    copies, events, waits and host functions in several streams; each buffer
 *                         is written over as soon as the program knows that it may be
 *   hasher threads N      N threads, 20 copies each
 *   hasher fork           a child copies too
 *   hasher closed         a copy of memory that the program cannot read */
#define XXH_INLINE_ALL
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <xxhash.h>

enum { MIB = 1 << 20, BYTES = 100000, STREAMS = 4, BUFFERS = 10, STEPS = 500 };

static void check_call(cudaError_t e, const char *what, int line)
{
  if (e == cudaSuccess) return;
  (void)fprintf(stderr, "hasher.c:%d: %s: %s\n", line, what, cudaGetErrorString(e));
  exit(1);
}
#define MUST(x) check_call((x), #x, __LINE__)

static uint64_t next_random(uint64_t *seed)
{
  *seed ^= *seed << 13;
  *seed ^= *seed >> 7;
  return *seed ^= *seed << 17;
}

static void fill_bytes(void *to, size_t bytes, uint64_t seed)
{
  unsigned char *p = to;
  seed = seed * 2654435761u + 1;
  for (size_t i = 0; i < bytes; i++)
    p[i] = (unsigned char)next_random(&seed);
}

static void say(char how, const void *content, size_t bytes)
{
  XXH128_hash_t h = XXH3_128bits(content, bytes);
  printf("%c%016llx%016llx\n", how, (unsigned long long)h.high64, (unsigned long long)h.low64);
}

/* ---- cases ----------------------------------------------------------------------------------- */

static char *pinned(size_t bytes)
{
  void *p = NULL;
  MUST(cudaMallocHost(&p, bytes));
  return p;
}

static char *on_device(size_t bytes)
{
  void *p = NULL;
  MUST(cudaMalloc(&p, bytes));
  return p;
}

static void plain_cases(char *device)
{
  char *host = malloc(MIB), *back = malloc(MIB), *page = pinned(MIB);
  fill_bytes(host, MIB, 1);
  MUST(cudaMemcpy(device, host, MIB, cudaMemcpyHostToDevice));
  say('=', host, MIB);
  MUST(cudaMemcpy(back, device, MIB, cudaMemcpyDeviceToHost));
  say('=', host, MIB);
  MUST(cudaMemcpyAsync(device, host, 5, cudaMemcpyHostToDevice, 0));
  say('=', host, 5);
  fill_bytes(page, MIB, 2);
  MUST(cudaMemcpyAsync(device, page, MIB, cudaMemcpyDefault, 0));
  say('=', page, MIB);
  MUST(cudaDeviceSynchronize());
  memset(host, 0, MIB);
  MUST(cudaMemcpy(device, host, MIB, cudaMemcpyHostToDevice));
  say('=', host, MIB);
  if (cudaMemcpy(device, host, MIB, (enum cudaMemcpyKind)77) == cudaSuccess) exit(1);
  (void)cudaGetLastError();
  MUST(cudaMemcpy(device, host, 0, cudaMemcpyHostToDevice));
  printf("none\n");
  free(host), free(back);
  MUST(cudaFreeHost(page));
}

static void shaped_cases(char *device)
{
  enum { WIDTH = 100, PITCH = 128, ROWS = 50 };
  static char rows[PITCH * ROWS], tight[WIDTH * ROWS];
  fill_bytes(rows, sizeof rows, 3);
  for (int i = 0; i < ROWS; i++)
    memcpy(tight + (size_t)i * WIDTH, rows + (size_t)i * PITCH, WIDTH);
  MUST(cudaMemcpy2D(device, WIDTH, rows, PITCH, WIDTH, ROWS, cudaMemcpyHostToDevice));
  say('=', tight, sizeof tight);
  MUST(cudaMemcpy(device + MIB, tight, sizeof tight, cudaMemcpyHostToDevice));
  say('=', tight, sizeof tight);
  MUST(cudaMemcpy2D(rows, PITCH, device, WIDTH, WIDTH, ROWS, cudaMemcpyDeviceToHost));
  say('=', tight, sizeof tight);
  struct cudaMemcpy3DParms box = {.srcPtr = {rows, PITCH, WIDTH, ROWS / 2},
                                  .dstPtr = {device, PITCH, WIDTH, ROWS / 2},
                                  .extent = {WIDTH, ROWS / 2, 2},
                                  .kind = cudaMemcpyHostToDevice};
  MUST(cudaMemcpy3D(&box));
  printf("shape\n");
  char *large = calloc(2, MIB);
  MUST(cudaMemcpy(device, large, (size_t)2 * MIB, cudaMemcpyHostToDevice));
  printf("too_long\n");
  free(large);
}

static void CUDART_CB write_over(void *buffer)
{
  fill_bytes(buffer, 1000, 99);
}

/* Copies that go on behind their calls. */
static void pending_cases(char *device)
{
  cudaStream_t s, t;
  cudaEvent_t e;
  char *a = pinned(MIB), *b = pinned(MIB), *host = malloc(MIB);
  MUST(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  MUST(cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking));
  MUST(cudaEventCreate(&e));
  fill_bytes(host, MIB, 4);
  MUST(cudaMemcpy(device, host, MIB, cudaMemcpyHostToDevice));
  say('=', host, MIB);
  MUST(cudaMemcpyAsync(a, device, MIB, cudaMemcpyDeviceToHost, s));
  say('=', host, MIB);
  MUST(cudaEventRecord(e, s));
  MUST(cudaMemcpyAsync(b, device, 1000, cudaMemcpyDeviceToHost, s));
  say('=', host, 1000);
  MUST(cudaEventSynchronize(e));
  memset(a, 7, MIB); /* the hash was taken within the wait */
  MUST(cudaStreamSynchronize(s));
  memset(b, 7, MIB);
  MUST(cudaMemcpyAsync(a, device, 4000, cudaMemcpyDeviceToHost, s));
  printf("overwritten\n");
  MUST(cudaMemcpyAsync(a, device, 3000, cudaMemcpyDeviceToHost, s));
  say('=', host, 3000);
  MUST(cudaMemcpyAsync(b, device, 2000, cudaMemcpyDeviceToHost, t));
  say('=', host, 2000);
  MUST(cudaDeviceSynchronize());
  MUST(cudaMemcpyAsync(a, device, 1000, cudaMemcpyDeviceToHost, s));
  printf("unordered\n");
  MUST(cudaLaunchHostFunc(s, write_over, a));
  MUST(cudaMemcpyAsync(device, b, 2000, cudaMemcpyHostToDevice, s));
  printf("unordered\n");
  MUST(cudaStreamSynchronize(s));
  MUST(cudaMemcpyAsync(device, b, 2000, cudaMemcpyHostToDevice, s));
  say('=', b, 2000);
  MUST(cudaStreamSynchronize(s));
  MUST(cudaMemcpyAsync(b, device, 2000, cudaMemcpyDeviceToHost, s));
  printf("memory_gone\n");
  MUST(cudaFreeHost(b));
  MUST(cudaMemcpyAsync(a, device, 2000, cudaMemcpyDeviceToHost, s));
  printf("none\n"); /* the program ends */
  free(host);
}

static void try_cases(void)
{
  char *device = on_device((size_t)4 * MIB);
  plain_cases(device);
  shaped_cases(device);
  pending_cases(device);
}

/* A source that the program itself could not read. The copy may take it all the same: what looks at
 * it may fail later, at another call. */
static void copy_closed(char *from)
{
  cudaError_t e = cudaMemcpy(on_device(MIB), from, 100, cudaMemcpyHostToDevice);
  if (e == cudaSuccess) printf("unreadable\n");
}

static void try_closed(void)
{
  enum { PAGE = 4096 };
  char *closed = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  copy_closed(closed);
}

/* ---- random ---------------------------------------------------------------------------------- */

typedef struct buffer {
  char *at;
  int stream;   /* with work on it, -1: none that may run */
  unsigned job; /* number of that work in the stream */
} buffer;

static struct {
  uint64_t seed;
  cudaStream_t stream[STREAMS];
  cudaEvent_t event[STREAMS];
  char *device[STREAMS], *content[STREAMS]; /* and what is on it once all before has run */
  unsigned jobs[STREAMS];                   /* put in so far */
  unsigned knows[STREAMS][STREAMS];    /* what has run has these of the other streams behind it */
  unsigned recorded[STREAMS][STREAMS]; /* by the stream's event object: the same, then */
  buffer buffer[BUFFERS];
} r;

static buffer *free_buffer(void)
{
  for (int i = 0; i < BUFFERS; i++)
    if (r.buffer[i].stream < 0) return &r.buffer[i];
  return NULL;
}

/* All this work has run: whatever used it may be written over. */
static void know(const unsigned done[STREAMS])
{
  for (int i = 0; i < BUFFERS; i++) {
    buffer *b = &r.buffer[i];
    if (b->stream < 0 || b->job > done[b->stream]) continue;
    b->stream = -1;
    fill_bytes(b->at, BYTES, next_random(&r.seed));
  }
}

static void use(buffer *b, int s)
{
  b->stream = s;
  b->job = ++r.jobs[s];
  r.knows[s][s] = b->job;
}

typedef struct host_work {
  char *at;
  uint64_t seed;
} host_work;

static void CUDART_CB fill_later(void *context)
{
  host_work *w = context;
  usleep(200);
  fill_bytes(w->at, BYTES, w->seed);
  free(w);
}

static void random_copy(int s)
{
  buffer *b = free_buffer();
  size_t bytes = 1 + next_random(&r.seed) % BYTES;
  if (!b) return;
  use(b, s);
  if (next_random(&r.seed) % 2) {
    MUST(cudaMemcpyAsync(b->at, r.device[s], bytes, cudaMemcpyDeviceToHost, r.stream[s]));
    say('~', r.content[s], bytes);
    return;
  }
  if (next_random(&r.seed) % 8 == 0) { /* the stream itself fills it first */
    host_work *w = malloc(sizeof *w), now;
    *w = now = (host_work){b->at, next_random(&r.seed)};
    MUST(cudaLaunchHostFunc(r.stream[s], fill_later, w));
    fill_bytes(r.content[s], bytes, now.seed);
    char *whole = malloc(BYTES);
    fill_bytes(whole, BYTES, now.seed);
    memcpy(r.content[s], whole, bytes);
    free(whole);
  } else {
    fill_bytes(b->at, bytes, next_random(&r.seed));
    memcpy(r.content[s], b->at, bytes);
  }
  MUST(cudaMemcpyAsync(r.device[s], b->at, bytes, cudaMemcpyHostToDevice, r.stream[s]));
  say('~', r.content[s], bytes);
}

static void random_wait(int s)
{
  int t = (int)(next_random(&r.seed) % STREAMS);
  switch (next_random(&r.seed) % 5) {
  case 0:
    MUST(cudaStreamSynchronize(r.stream[s]));
    know(r.knows[s]);
    break;
  case 1:
    MUST(cudaEventRecord(r.event[s], r.stream[s]));
    memcpy(r.recorded[s], r.knows[s], sizeof r.knows[s]);
    break;
  case 2:
    MUST(cudaEventSynchronize(r.event[s]));
    know(r.recorded[s]);
    break;
  case 3:
    MUST(cudaStreamWaitEvent(r.stream[t], r.event[s], 0));
    for (int i = 0; i < STREAMS; i++)
      if (r.recorded[s][i] > r.knows[t][i]) r.knows[t][i] = r.recorded[s][i];
    break;
  default:
    if (cudaEventQuery(r.event[s]) == cudaSuccess) know(r.recorded[s]);
    (void)cudaGetLastError();
  }
}

static void try_random(uint64_t seed)
{
  r.seed = seed * 7919 + 12345;
  for (int s = 0; s < STREAMS; s++) {
    r.device[s] = on_device(BYTES);
    r.content[s] = calloc(1, BYTES);
    MUST(cudaMemset(r.device[s], 0, BYTES));
    MUST(cudaStreamCreateWithFlags(&r.stream[s], cudaStreamNonBlocking));
    MUST(cudaEventCreateWithFlags(&r.event[s], cudaEventDisableTiming));
  }
  MUST(cudaDeviceSynchronize());
  for (int i = 0; i < BUFFERS; i++)
    r.buffer[i] = (buffer){.at = pinned(BYTES), .stream = -1};
  for (int i = 0; i < STEPS; i++) {
    int s = (int)(next_random(&r.seed) % STREAMS);
    if (next_random(&r.seed) % 3)
      random_copy(s);
    else
      random_wait(s);
    if (next_random(&r.seed) % 40) continue;
    MUST(cudaDeviceSynchronize());
    know(r.jobs);
  }
  MUST(cudaDeviceSynchronize());
}

/* ---- threads, children ----------------------------------------------------------------------- */

static void *copy_in_thread(void *number)
{
  char *device = on_device(BYTES), *host = malloc(BYTES), *page = pinned(BYTES);
  cudaStream_t s;
  MUST(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  for (uint64_t i = 0; i < 10; i++) {
    fill_bytes(host, BYTES, (uint64_t)(uintptr_t)number * 100 + i);
    MUST(cudaMemcpy(device, host, BYTES, cudaMemcpyHostToDevice));
    say('=', host, BYTES);
    MUST(cudaMemcpyAsync(page, device, BYTES, cudaMemcpyDeviceToHost, s));
    MUST(cudaStreamSynchronize(s));
    say('=', host, BYTES);
    memset(page, (int)i, BYTES);
  }
  return NULL;
}

static void try_threads(int count)
{
  pthread_t thread[64];
  for (int i = 0; i < count && i < 64; i++)
    if (pthread_create(&thread[i], NULL, copy_in_thread, (void *)(uintptr_t)(i + 1))) exit(1);
  for (int i = 0; i < count && i < 64; i++)
    (void)pthread_join(thread[i], NULL);
}

static void try_fork(void)
{
  (void)fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    (void)copy_in_thread((void *)1);
    (void)fflush(stdout);
    _exit(0);
  }
  int status = 1;
  if (waitpid(child, &status, 0) != child || status) exit(1);
  (void)copy_in_thread((void *)2);
}

int main(int argc, char **argv)
{
  const char *mode = argc > 1 ? argv[1] : "";
  if (!strcmp(mode, "cases"))
    try_cases();
  else if (!strcmp(mode, "random") && argc > 2)
    try_random(strtoull(argv[2], NULL, 10));
  else if (!strcmp(mode, "threads") && argc > 2)
    try_threads(atoi(argv[2]));
  else if (!strcmp(mode, "fork"))
    try_fork();
  else if (!strcmp(mode, "closed"))
    try_closed();
  else
    return 2;
  return 0;
}
