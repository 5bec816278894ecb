/* waste_memory.c: wastes of memory and of the time that it takes to have it; and of graphs. */
#include "tests/victims/findings/waster.h"

enum { BYTES = 1 << 20, TIMES = 40 };

/* ---- repeated-allocation --------------------------------------------------------------------- */

static void repeated_allocation(void)
{
  for (int i = 0; i < TIMES; i++) {
    float *p;
    CHECK(cudaMalloc((void **)&p, BYTES)); /* WASTE repeated-allocation */
    launch(NULL, p, 64);
    CHECK(cudaFree(p));
  }
}

/* Sizes that differ, each once; and as many of one size at once. */
static void repeated_allocation_twin(void)
{
  float *held[TIMES];
  for (int i = 0; i < TIMES; i++) {
    CHECK(cudaMalloc((void **)&held[i], BYTES));
    launch(NULL, held[i], 64);
  }
  for (int i = 0; i < TIMES; i++)
    CHECK(cudaFree(held[i]));
  for (int i = 0; i < TIMES; i++) {
    float *p;
    CHECK(cudaMalloc((void **)&p, BYTES + (size_t)i * 4096));
    launch(NULL, p, 64);
    CHECK(cudaFree(p));
  }
}

/* ---- unused-allocation ----------------------------------------------------------------------- */

static void hold_memory(int use)
{
  void *p;
  CHECK(cudaMalloc(&p, BYTES)); /* WASTE unused-allocation */
  if (use) CHECK(cudaMemset((char *)p + 4096, 1, 4096));
  CHECK(cudaFree(p));
}

static void unused_allocation(void)
{
  hold_memory(0);
}

static void unused_allocation_twin(void)
{
  hold_memory(1);
}

/* ---- leak ------------------------------------------------------------------------------------ */

static void allocate_steps(void)
{
  for (int i = 0; i < TIMES; i++) {
    float *p;
    CHECK(cudaMalloc((void **)&p, 65536)); /* WASTE leak */
    launch(NULL, p, 64);
  }
}

static void leak(void)
{
  allocate_steps();
  CHECK(cudaDeviceSynchronize());
}

static void leak_twin(void)
{
  allocate_steps();
  CHECK(cudaDeviceReset());
}

/* ---- pinned-churn ---------------------------------------------------------------------------- */

static void pinned_churn(void)
{
  for (int i = 0; i < TIMES; i++) {
    char *p;
    CHECK(cudaMallocHost((void **)&p, BYTES + (size_t)i * 4096)); /* WASTE pinned-churn */
    p[i] = 1;
    CHECK(cudaFreeHost(p));
  }
}

static void pinned_churn_twin(void)
{
  char *p[TIMES];
  for (int i = 0; i < TIMES; i++)
    CHECK(cudaMallocHost((void **)&p[i], BYTES));
  CHECK(cudaFree(0));
  for (int i = 0; i < TIMES; i++)
    CHECK(cudaFreeHost(p[i]));
}

/* ---- pinned-for-one-copy --------------------------------------------------------------------- */

/* A table is uploaded, once or in two parts, by turns with kernels. */
static void upload_table(int parts)
{
  size_t bytes = (size_t)64 << 20, part = bytes / (size_t)parts;
  char *p, *table = device_memory(bytes);
  CHECK(cudaMallocHost((void **)&p, bytes)); /* WASTE pinned-for-one-copy */
  for (int i = 0; i < 2; i++) {
    size_t at = (size_t)(i % parts) * part;
    p[at] = (char)i;
    if (i < parts) CHECK(cudaMemcpy(table + at, p + at, part, cudaMemcpyHostToDevice));
    launch(NULL, (float *)(void *)table, 64);
  }
  CHECK(cudaFreeHost(p));
  CHECK(cudaFree(table));
}

static void pinned_for_one_copy(void)
{
  upload_table(1);
}

static void pinned_for_one_copy_twin(void)
{
  upload_table(2);
}

/* ---- graph-made-anew ------------------------------------------------------------------------- */

/* `nodes` kernels in a graph (new). */
static cudaGraph_t capture_kernels(cudaStream_t s, float *p, int nodes)
{
  cudaGraph_t graph;
  CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
  for (int i = 0; i < nodes; i++)
    launch(s, p, 64);
  CHECK(cudaStreamEndCapture(s, &graph));
  return graph;
}

static void launch_graphs(int differ)
{
  float *p;
  cudaStream_t s;
  CHECK(cudaMalloc((void **)&p, 4096));
  CHECK(cudaStreamCreate(&s));
  for (int i = 0; i < 10; i++) {
    cudaGraph_t graph = capture_kernels(s, p, differ ? i + 1 : 4);
    cudaGraphExec_t exec;
    CHECK(cudaGraphInstantiate(&exec, graph, 0)); /* WASTE graph-made-anew */
    CHECK(cudaGraphLaunch(exec, s));
    CHECK(cudaStreamSynchronize(s));
    CHECK(cudaGraphExecDestroy(exec));
    CHECK(cudaGraphDestroy(graph));
  }
  CHECK(cudaStreamDestroy(s));
  CHECK(cudaFree(p));
}

static void graph_made_anew(void)
{
  launch_graphs(0);
}

static void graph_made_anew_twin(void)
{
  launch_graphs(1);
}

/* ---- pinned-piece-by-piece ------------------------------------------------------------------- */

enum { SLOTS = 160, SLOT_BYTES = 512 };

static void pin_slots(int count)
{
  char *slot[SLOTS];
  for (int i = 0; i < count; i++)
    CHECK(cudaMallocHost((void **)&slot[i], SLOT_BYTES)); /* WASTE pinned-piece-by-piece */
  for (int i = 0; i < count; i++)
    CHECK(cudaFreeHost(slot[i]));
}

static void pinned_piece_by_piece(void)
{
  pin_slots(SLOTS);
}

/* A few. */
static void pinned_piece_by_piece_twin(void)
{
  pin_slots(SLOTS / 4);
}

const waster memory_wasters[] = {
    {"repeated-allocation", repeated_allocation, repeated_allocation_twin, NULL},
    {"unused-allocation", unused_allocation, unused_allocation_twin, NULL},
    {"leak", leak, leak_twin, NULL},
    {"pinned-churn", pinned_churn, pinned_churn_twin, NULL},
    {"pinned-piece-by-piece", pinned_piece_by_piece, pinned_piece_by_piece_twin, NULL},
    {"pinned-for-one-copy", pinned_for_one_copy, pinned_for_one_copy_twin,
     "--sim=2,h100"}, /* what pinning takes, as a card has it */
    {"graph-made-anew", graph_made_anew, graph_made_anew_twin, NULL},
    {NULL, NULL, NULL, NULL},
};
