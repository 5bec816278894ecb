/* waste_blocks.c: blocks that are held for nothing, that do not fit where as much is free, that are
 * opened again and again; and managed memory that nothing is said of. */
#include <sys/wait.h>
#include <unistd.h>
#include "tests/victims/findings/waster.h"

enum { BYTES = 8 << 20, PIECE = 1 << 20, TIMES = 40 };

static void use_memory(char *p)
{
  launch(NULL, (float *)(void *)p, 64);
  CHECK(cudaDeviceSynchronize());
}

/* ---- idle-object ----------------------------------------------------------------------------- */

/* A block is held, and the device's memory at its peak, from the start; what comes after is copies within the device, into it
 * or not. */
static void hold_block(int used)
{
  char *held, *p = device_memory(2 * PIECE);
  CHECK(cudaMalloc((void **)&held, BYTES)); /* WASTE idle-object */
  CHECK(cudaMemset(held, 0, BYTES));
  for (int i = 0; i < 10 * TIMES; i++)
    CHECK(cudaMemcpy(used ? held : p, p + PIECE, PIECE, cudaMemcpyDeviceToDevice));
  CHECK(cudaFree(p));
  CHECK(cudaFree(held));
}

static void idle_object(void)
{
  hold_block(0);
}

/* Nothing else wants the device while the second block waits for its use, however long that is. */
static void idle_object_twin(void)
{
  hold_block(1);
  char *p = device_memory(2 * BYTES);
  (void)usleep(500000);
  CHECK(cudaMemset(p, 0, PIECE));
  CHECK(cudaFree(p));
}

/* ---- redundant-object ------------------------------------------------------------------------ */

/* The second block is used when the first is no more, or while it is. */
static void use_in_turn(int first_again)
{
  char *host = pinned_memory(BYTES);
  char *a = device_memory(BYTES), *b;
  use_memory(a);
  CHECK(cudaMalloc((void **)&b, BYTES)); /* WASTE redundant-object */
  CHECK(cudaMemcpy(host, a, BYTES, cudaMemcpyDeviceToHost));
  CHECK(cudaMemcpy(b, host, BYTES, cudaMemcpyHostToDevice));
  if (first_again) CHECK(cudaMemcpy(host, a, BYTES, cudaMemcpyDeviceToHost));
  CHECK(cudaFree(a));
  use_memory(b);
  CHECK(cudaFree(b));
  CHECK(cudaFreeHost(host));
}

static void redundant_object(void)
{
  use_in_turn(0);
}

static void redundant_object_twin(void)
{
  use_in_turn(1);
}

/* ---- fragmentation --------------------------------------------------------------------------- */

/* A cache of the program's own: it keeps what is freed, until the device has no more. */
static void take_from_cache(int keep)
{
  size_t free_bytes, total;
  char *kept[2], *p;
  CHECK(cudaMemGetInfo(&free_bytes, &total));
  for (int i = 0; i < 2; i++) {
    kept[i] = device_memory(total / 16 * 6);
    use_memory(kept[i]);
  }
  if (!keep)
    for (int i = 0; i < 2; i++)
      CHECK(cudaFree(kept[i]));
  cudaError_t e = cudaMalloc((void **)&p, total / 2); /* WASTE fragmentation */
  if (e == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();
    for (int i = 0; i < 2; i++)
      CHECK(cudaFree(kept[i]));
    e = cudaMalloc((void **)&p, total / 2);
  }
  CHECK(e);
  use_memory(p);
  CHECK(cudaFree(p));
}

static void fragmentation(void)
{
  take_from_cache(1);
}

/* There is no memory, and the program asks for less. */
static void fragmentation_twin(void)
{
  size_t free_bytes, total;
  char *held, *p;
  take_from_cache(0);
  CHECK(cudaMemGetInfo(&free_bytes, &total));
  held = device_memory(total / 4 * 3);
  use_memory(held);
  if (cudaMalloc((void **)&p, total / 2) == cudaErrorMemoryAllocation) p = device_memory(PIECE);
  (void)cudaGetLastError();
  use_memory(p);
  CHECK(cudaFree(p));
  CHECK(cudaFree(held));
}

/* ---- repeated-import ------------------------------------------------------------------------- */

static void read_exactly(int fd, void *to, size_t bytes)
{
  if (read(fd, to, bytes) != (ssize_t)bytes) exit(1);
}

static void write_exactly(int fd, const void *from, size_t bytes)
{
  if (write(fd, from, bytes) != (ssize_t)bytes) exit(1);
}

/* Opens a block of the other process's TIMES times; or once. */
static void take_frames(int in, int out, int each_time)
{
  cudaIpcMemHandle_t handle;
  char *frame = NULL, *own = device_memory(PIECE);
  for (int i = 0; i < TIMES; i++) {
    read_exactly(in, &handle, sizeof handle);
    if (each_time || !frame)
      CHECK(cudaIpcOpenMemHandle((void **)&frame, handle, /* WASTE repeated-import */
                                 cudaIpcMemLazyEnablePeerAccess));
    CHECK(cudaMemcpy(own, frame, PIECE, cudaMemcpyDeviceToDevice));
    use_memory(own);
    if (each_time) CHECK(cudaIpcCloseMemHandle(frame));
    write_exactly(out, "", 1);
  }
  if (!each_time) CHECK(cudaIpcCloseMemHandle(frame));
  CHECK(cudaFree(own));
}

static void share_frames(int each_time)
{
  int there[2], back[2], status = 1;
  char done;
  cudaIpcMemHandle_t handle;
  if (pipe(there) || pipe(back)) exit(1);
  pid_t child = fork();
  if (child == 0) {
    take_frames(there[0], back[1], each_time);
    exit(0);
  }
  char *frame = device_memory(PIECE);
  CHECK(cudaIpcGetMemHandle(&handle, frame));
  for (int i = 0; i < TIMES; i++) {
    use_memory(frame);
    write_exactly(there[1], &handle, sizeof handle);
    read_exactly(back[0], &done, 1);
  }
  if (child < 0 || waitpid(child, &status, 0) != child || status) exit(1);
  CHECK(cudaFree(frame));
}

static void repeated_import(void)
{
  share_frames(1);
}

static void repeated_import_twin(void)
{
  share_frames(0);
}

/* ---- managed-thrash -------------------------------------------------------------------------- */

static void share_managed(int advise)
{
  float *p;
  CHECK(cudaMallocManaged((void **)&p, BYTES, cudaMemAttachGlobal)); /* WASTE managed-thrash */
#if CUDART_VERSION >= 13000
  const struct cudaMemLocation device = {.type = cudaMemLocationTypeDevice, .id = 0};
#else
  const int device = 0;
#endif
  if (advise) CHECK(cudaMemAdvise(p, BYTES, cudaMemAdviseSetPreferredLocation, device));
  for (int i = 0; i < TIMES; i++) {
    p[i] = (float)i;
    launch(NULL, p, 64);
    CHECK(cudaDeviceSynchronize());
  }
  CHECK(cudaFree(p));
}

static void managed_thrash(void)
{
  share_managed(0);
}

static void managed_thrash_twin(void)
{
  share_managed(1);
}

const waster block_wasters[] = {
    {"idle-object", idle_object, idle_object_twin, NULL},
    {"redundant-object", redundant_object, redundant_object_twin, NULL},
    {"fragmentation", fragmentation, fragmentation_twin, NULL},
    {"repeated-import", repeated_import, repeated_import_twin, NULL},
    {"managed-thrash", managed_thrash, managed_thrash_twin, NULL},
    {NULL, NULL, NULL, NULL},
};
