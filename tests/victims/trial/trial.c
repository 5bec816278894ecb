/* trial.c: a program as somebody would write it, that looks at frames of another process with two
 * devices, and wastes in eight places. Each is in a function of its own, in a line that says
 * WASTE and the rule by which it must be found. Nothing else of it is to be found for certain. */
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
  FRAMES = 200,
  PLANES = 2,
  LEVELS = 8,
  PIXELS = 1 << 16,
  FRAME = PIXELS * 4,
  TABLE = 64 << 10,
  RESERVE = 512 << 20
};

#define NOINLINE __attribute__((noinline, noclone))

static void require_success(cudaError_t e, const char *what)
{
  if (e == cudaSuccess) return;
  (void)fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(e));
  exit(1);
}

#define CHECK(call) require_success(call, #call)

int victim_launch(cudaStream_t stream, float *p, int n); /* kernels.cu */

typedef struct looker { /* what looks at frames */
  cudaStream_t stream;
  float *table, *frame, *picture, *shown, *reserve; /* on the device; `shown` on the second */
  float *host_table, *host_frame, *mailbox;         /* pageable */
  float *result;                                    /* pinned */
} looker;

static void run_kernel(cudaStream_t s, float *p)
{
  CHECK((cudaError_t)victim_launch(s, p, 128));
}

/* ---- the other process ----------------------------------------------------------------------- */

static void exchange(int fd, void *what, size_t bytes, int out)
{
  ssize_t n = out ? write(fd, what, bytes) : read(fd, what, bytes);
  if (n != (ssize_t)bytes) exit(1);
}

/* Makes frames, and says where each is. */
static void make_frames(int out, int in)
{
  float *frame;
  char taken = 0;
  cudaIpcMemHandle_t handle;
  CHECK(cudaMalloc((void **)&frame, FRAME));
  CHECK(cudaIpcGetMemHandle(&handle, frame));
  for (int i = 0; i < FRAMES; i++) {
    run_kernel(NULL, frame);
    CHECK(cudaStreamSynchronize(NULL));
    exchange(out, &handle, sizeof handle, 1);
    exchange(in, &taken, 1, 0);
  }
  CHECK(cudaFree(frame));
}

/* ---- what is done with a frame --------------------------------------------------------------- */

static NOINLINE void receive_frame(const looker *l, int in, int out)
{
  cudaIpcMemHandle_t handle;
  void *frame;
  exchange(in, &handle, sizeof handle, 0);
  CHECK(cudaIpcOpenMemHandle(&frame, handle, /* WASTE repeated-import */
                             cudaIpcMemLazyEnablePeerAccess));
  CHECK(cudaMemcpyAsync(l->frame, frame, FRAME, cudaMemcpyDeviceToDevice, l->stream));
  CHECK(cudaStreamSynchronize(l->stream));
  CHECK(cudaIpcCloseMemHandle(frame));
  exchange(out, "", 1, 1);
}

static NOINLINE void correct_colours(const looker *l)
{
  CHECK(cudaMemcpy(l->table, l->host_table, TABLE,
                   cudaMemcpyHostToDevice)); /* WASTE repeated-upload */
  run_kernel(l->stream, l->picture);
}

static NOINLINE void overlay_text(const looker *l, int number)
{
  for (int i = 0; i < 64; i++)
    l->host_frame[(number * 64 + i) % PIXELS] = (float)number;
  CHECK(cudaMemcpyAsync(l->picture, l->host_frame, FRAME, /* WASTE pageable-async */
                        cudaMemcpyHostToDevice, l->stream));
  run_kernel(l->stream, l->picture);
}

static NOINLINE void smooth(const looker *l)
{
  float *level[LEVELS];
  for (int i = 0; i < LEVELS; i++) {
    CHECK(cudaMallocAsync((void **)&level[i], FRAME >> i, l->stream)); /* WASTE pool-gives-back */
    run_kernel(l->stream, level[i]);
  }
  for (int i = 0; i < LEVELS; i++)
    CHECK(cudaFreeAsync(level[i], l->stream));
  CHECK(cudaStreamSynchronize(l->stream));
}

static NOINLINE void find_edges(const looker *l)
{
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  CHECK(cudaStreamBeginCapture(l->stream, cudaStreamCaptureModeThreadLocal));
  for (int i = 0; i < 60; i++)
    run_kernel(l->stream, l->picture);
  CHECK(cudaStreamEndCapture(l->stream, &graph));
  CHECK(cudaGraphInstantiate(&exec, graph, 0)); /* WASTE graph-made-anew */
  CHECK(cudaGraphLaunch(exec, l->stream));
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
}

/* The brightest spot, then the darkest, of the same result. */
static NOINLINE float measure(const looker *l)
{
  CHECK(cudaMemcpy(l->result, l->picture, TABLE, cudaMemcpyDeviceToHost));
  float brightest = l->result[0];
  CHECK(cudaMemcpy(l->result, l->picture, TABLE,
                   cudaMemcpyDeviceToHost)); /* WASTE redundant-read-back */
  return brightest - l->result[1];
}

static NOINLINE void show(const looker *l)
{
  CHECK(cudaMemcpy(l->mailbox, l->picture, FRAME, cudaMemcpyDeviceToHost));
  CHECK(cudaSetDevice(1));
  CHECK(
      cudaMemcpy(l->shown, l->mailbox, FRAME, cudaMemcpyHostToDevice)); /* WASTE through-the-host */
  run_kernel(NULL, l->shown);
  CHECK(cudaSetDevice(0));
}

static NOINLINE void reserve_memory(looker *l)
{
  CHECK(cudaMalloc((void **)&l->reserve, RESERVE)); /* WASTE idle-object */
  CHECK(cudaMemset(l->reserve, 0, RESERVE));
}

static void prepare(looker *l)
{
  reserve_memory(l);
  CHECK(cudaStreamCreate(&l->stream));
  CHECK(cudaMalloc((void **)&l->table, TABLE));
  CHECK(cudaMalloc((void **)&l->frame, FRAME));
  CHECK(cudaMalloc((void **)&l->picture, FRAME));
  CHECK(cudaMallocHost((void **)&l->result, TABLE));
  CHECK(cudaSetDevice(1));
  CHECK(cudaMalloc((void **)&l->shown, FRAME));
  CHECK(cudaSetDevice(0));
  l->host_table = calloc(TABLE, 1);
  l->host_frame = calloc(FRAME, 1);
  l->mailbox = calloc(FRAME, 1);
}

static void finish(looker *l)
{
  CHECK(cudaStreamDestroy(l->stream));
  CHECK(cudaFree(l->table));
  CHECK(cudaFree(l->frame));
  CHECK(cudaFree(l->picture));
  CHECK(cudaFree(l->shown));
  CHECK(cudaFree(l->reserve));
  CHECK(cudaFreeHost(l->result));
  free(l->host_table);
  free(l->host_frame);
  free(l->mailbox);
}

static void look_at_frames(int in, int out)
{
  looker l = {0};
  float sum = 0;
  prepare(&l);
  for (int i = 0; i < FRAMES; i++) {
    receive_frame(&l, in, out);
    overlay_text(&l, i);
    for (int plane = 0; plane < PLANES; plane++) {
      correct_colours(&l);
      smooth(&l);
      sum += measure(&l);
    }
    find_edges(&l);
    show(&l);
  }
  finish(&l);
  printf("%g\n", (double)sum);
}

int main(void)
{
  int there[2], back[2], status = 1;
  if (pipe(there) || pipe(back)) return 1;
  pid_t child = fork();
  if (child < 0) return 1;
  /* Each has its own ends alone: where one of them stops, the other does not wait for it. */
  (void)close(there[child == 0 ? 0 : 1]);
  (void)close(back[child == 0 ? 1 : 0]);
  if (child == 0) {
    make_frames(there[1], back[0]);
    return 0;
  }
  look_at_frames(there[0], back[1]);
  if (waitpid(child, &status, 0) != child) return 1;
  return status != 0;
}
