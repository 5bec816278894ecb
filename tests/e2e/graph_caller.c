/* graph_caller.c: makes graphs in every way there is, changes them, launches them, and keeps
 * account of what they ran: by hand, from what it asked for.
 *
 *   graph_caller loop           150 captured graphs of one copy each, all of them launched three
 *                               times
 *   graph_caller explicit       a graph made node by node, launched three times, and a clone of it
 *                               too
 *   graph_caller memory         nodes that allocate and free
 *   graph_caller blocks SEED    graphs that allocate, freed by themselves, by others, and by hand
 *   graph_caller condition      a conditional node with a body
 *   graph_caller large N        a graph of N nodes, launched twice
 *   graph_caller random SEED    any of that, in any order, launched by two threads
 *
 * At the end it prints a line `NAME COUNT` for each member of the report's totals. */
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const void *victim_kernel(void); /* kernels.cu */

#define BUFFER ((size_t)1 << 20)
enum { GRAPHS = 6, EXECS = 8, NODES = 40, STEPS = 120 };

static void must(cudaError_t e, const char *what, int line)
{
  if (e == cudaSuccess) return;
  (void)fprintf(stderr, "graph_caller.c:%d: %s: %s\n", line, what, cudaGetErrorString(e));
  exit(1);
}
#define MUST(x) must((x), #x, __LINE__)

typedef enum item_kind { H2D, D2H, D2D, SET, KERNEL, HOST, CHILD, ITEM_KINDS } item_kind;

/* A node as this program knows it; of a child graph, the items in it follow, `within` of them. */
typedef struct item {
  cudaGraphNode_t node; /* NULL: not known, as in a capture */
  item_kind kind;
  size_t bytes;
  bool disabled;
  int within;
} item;

typedef struct graph {
  cudaGraph_t handle;
  item item[NODES];
  int count;
} graph;

typedef struct exec {
  cudaGraphExec_t handle;
  item item[NODES];
  int count;
  int from; /* the graph that its nodes' handles are of; -1: it has changed since */
} exec;

static struct {
  uint64_t calls[ITEM_KINDS], bytes[ITEM_KINDS], launches;
} account;

static uint64_t rng;
static char *device, *other, *host;
static cudaStream_t stream;
static graph graphs[GRAPHS];
static exec execs[EXECS];

static uint32_t random_under(uint32_t n)
{
  uint64_t z = (rng += UINT64_C(0x9e3779b97f4a7c15));
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return (uint32_t)((z ^ z >> 31) % n);
}

static size_t some_bytes(void)
{
  return (size_t)(1 + random_under(64)) * 512;
}

static void CUDART_CB do_nothing(void *data)
{
  (void)data;
}

/* ---- the account ----------------------------------------------------------------------------- */

static void count_launch(const item *list, int count)
{
  account.launches++;
  for (int i = 0; i < count; i++) {
    if (list[i].disabled) continue;
    account.calls[list[i].kind]++;
    account.bytes[list[i].kind] += list[i].bytes;
  }
}

static void print_account(void)
{
  static const char *const names[] = {"h2d", "d2h", "d2d", "memset"};
  for (int i = 0; i < 4; i++)
    printf("%s_calls %llu\n%s_bytes %llu\n", names[i], (unsigned long long)account.calls[i],
           names[i], (unsigned long long)account.bytes[i]);
  printf("launches %llu\ngraph_kernels %llu\n", (unsigned long long)account.calls[KERNEL],
         (unsigned long long)account.calls[KERNEL]);
  printf("graph_host_functions %llu\n", (unsigned long long)account.calls[HOST]);
  printf("graph_launches %llu\ngraph_launches_unknown 0\n", (unsigned long long)account.launches);
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static void ends_of(item_kind kind, void **dst, void **src, enum cudaMemcpyKind *direction)
{
  *dst = kind == D2H ? host : device;
  *src = kind == H2D ? host : kind == D2H ? device : other;
  *direction = kind == H2D   ? cudaMemcpyHostToDevice
               : kind == D2H ? cudaMemcpyDeviceToHost
                             : cudaMemcpyDeviceToDevice;
}

static struct cudaMemsetParams set_params(size_t bytes)
{
  return (struct cudaMemsetParams){
      .dst = device, .value = 1, .elementSize = 4, .width = bytes / 4, .height = 1};
}

static void *kernel_arguments[2];
static int kernel_n = 64;

static struct cudaKernelNodeParams kernel_params(void)
{
  kernel_arguments[0] = &device;
  kernel_arguments[1] = &kernel_n;
  return (struct cudaKernelNodeParams){.func = (void *)(uintptr_t)victim_kernel(),
                                       .gridDim = {1 + random_under(3), 1, 1},
                                       .blockDim = {64, 1, 1},
                                       .kernelParams = kernel_arguments};
}

/* Adds a node that comes after the one before. */
static void add_item(graph *g, item_kind kind, size_t bytes)
{
  item *n = &g->item[g->count];
  const cudaGraphNode_t *after = g->count && g->item[g->count - 1].node ? &n[-1].node : NULL;
  size_t edges = after ? 1 : 0;
  struct cudaMemsetParams set = set_params(bytes);
  struct cudaKernelNodeParams kernel = kernel_params();
  struct cudaHostNodeParams call = {.fn = do_nothing};
  enum cudaMemcpyKind direction;
  void *dst, *src;
  *n = (item){.kind = kind, .bytes = kind <= SET ? bytes : 0};
  ends_of(kind, &dst, &src, &direction);
  if (kind <= D2D)
    MUST(cudaGraphAddMemcpyNode1D(&n->node, g->handle, after, edges, dst, src, bytes, direction));
  if (kind == SET) MUST(cudaGraphAddMemsetNode(&n->node, g->handle, after, edges, &set));
  if (kind == KERNEL) MUST(cudaGraphAddKernelNode(&n->node, g->handle, after, edges, &kernel));
  if (kind == HOST) MUST(cudaGraphAddHostNode(&n->node, g->handle, after, edges, &call));
  g->count++;
}

/* The graph's copy in the node has handles of its own, which are left alone. */
static void add_child(graph *g, const graph *child)
{
  item *n = &g->item[g->count++];
  *n = (item){.kind = CHILD, .within = child->count};
  MUST(cudaGraphAddChildGraphNode(&n->node, g->handle, NULL, 0, child->handle));
  for (int i = 0; i < child->count; i++) {
    g->item[g->count] = child->item[i];
    g->item[g->count++].node = NULL;
  }
}

static void capture_item(graph *g, item_kind kind, size_t bytes)
{
  item *n = &g->item[g->count++];
  struct cudaKernelNodeParams k = kernel_params();
  enum cudaMemcpyKind direction;
  void *dst, *src;
  *n = (item){.kind = kind, .bytes = kind <= SET ? bytes : 0};
  ends_of(kind, &dst, &src, &direction);
  if (kind <= D2D) MUST(cudaMemcpyAsync(dst, src, bytes, direction, stream));
  if (kind == SET) MUST(cudaMemsetAsync(device, 1, bytes, stream));
  if (kind == HOST) MUST(cudaLaunchHostFunc(stream, do_nothing, NULL));
  if (kind == KERNEL)
    MUST(cudaLaunchKernel(k.func, k.gridDim, k.blockDim, k.kernelParams, 0, stream));
}

/* ---- graphs ---------------------------------------------------------------------------------- */

static void forget_graph(int at)
{
  if (graphs[at].handle) MUST(cudaGraphDestroy(graphs[at].handle));
  graphs[at] = (graph){0};
  for (int i = 0; i < EXECS; i++)
    if (execs[i].from == at) execs[i].from = -1;
}

static void capture_graph(int at)
{
  graph *g = &graphs[at];
  forget_graph(at);
  MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  for (uint32_t i = 1 + random_under(5); i > 0; i--)
    capture_item(g, (item_kind)random_under(CHILD), some_bytes());
  MUST(cudaStreamEndCapture(stream, &g->handle));
}

static void build_graph(int at)
{
  graph *g = &graphs[at];
  int child = (int)random_under(GRAPHS);
  forget_graph(at);
  MUST(cudaGraphCreate(&g->handle, 0));
  for (uint32_t i = 1 + random_under(5); i > 0; i--)
    add_item(g, (item_kind)random_under(CHILD), some_bytes());
  if (child != at && graphs[child].handle && graphs[child].count + 6 < NODES / 2)
    add_child(g, &graphs[child]);
}

static void clone_graph(int at)
{
  int from = (int)random_under(GRAPHS);
  if (from == at || !graphs[from].handle) return;
  forget_graph(at);
  graphs[at] = graphs[from];
  MUST(cudaGraphClone(&graphs[at].handle, graphs[from].handle));
  for (int i = 0; i < graphs[at].count; i++)
    if (graphs[at].item[i].node)
      MUST(cudaGraphNodeFindInClone(&graphs[at].item[i].node, graphs[from].item[i].node,
                                    graphs[at].handle));
}

/* A node of the graph itself: what was made of it before stays as it is. */
static void change_graph(int at)
{
  graph *g = &graphs[at];
  if (!g->handle) return;
  item *n = &g->item[random_under((uint32_t)g->count)];
  size_t bytes = some_bytes();
  struct cudaMemsetParams set = set_params(bytes);
  enum cudaMemcpyKind direction;
  void *dst, *src;
  if (!n->node || n->kind > SET) return;
  ends_of(n->kind, &dst, &src, &direction);
  if (n->kind == SET)
    MUST(cudaGraphMemsetNodeSetParams(n->node, &set));
  else
    MUST(cudaGraphMemcpyNodeSetParams1D(n->node, dst, src, bytes, direction));
  n->bytes = bytes;
}

/* ---- executable graphs ----------------------------------------------------------------------- */

static void forget_exec(exec *x)
{
  if (!x->handle) return;
  MUST(cudaStreamSynchronize(stream));
  MUST(cudaGraphExecDestroy(x->handle));
  *x = (exec){.from = -1};
}

static void make_exec(exec *x, int at)
{
  const graph *g = &graphs[at];
  if (!g->handle) return;
  forget_exec(x);
  MUST(cudaGraphInstantiate(&x->handle, g->handle, 0));
  memcpy(x->item, g->item, sizeof x->item);
  x->count = g->count;
  x->from = at;
}

static void set_exec_node(exec *x, item *n)
{
  size_t bytes = some_bytes();
  struct cudaMemsetParams set = set_params(bytes);
  struct cudaKernelNodeParams kernel = kernel_params();
  enum cudaMemcpyKind direction;
  void *dst, *src;
  ends_of(n->kind, &dst, &src, &direction);
  if (n->kind <= D2D)
    MUST(cudaGraphExecMemcpyNodeSetParams1D(x->handle, n->node, dst, src, bytes, direction));
  if (n->kind == SET) MUST(cudaGraphExecMemsetNodeSetParams(x->handle, n->node, &set));
  if (n->kind == KERNEL) MUST(cudaGraphExecKernelNodeSetParams(x->handle, n->node, &kernel));
  if (n->kind <= SET) n->bytes = bytes;
}

/* The child's nodes get other sizes in the graph that it comes from; that is put in. */
static void set_exec_child(exec *x, item *n)
{
  cudaGraph_t child, copy;
  cudaGraphNode_t node[NODES];
  size_t count = NODES;
  int k = 0;
  MUST(cudaGraphChildGraphNodeGetGraph(n->node, &child));
  MUST(cudaGraphClone(&copy, child));
  MUST(cudaGraphGetNodes(copy, node, &count));
  for (size_t i = 0; i < count && k < n->within; i++, k++) {
    item *in = &n[1 + k];
    size_t bytes = some_bytes();
    struct cudaMemsetParams set = set_params(bytes);
    if (in->kind == CHILD) break; /* what follows keeps its sizes */
    if (in->kind != SET) continue;
    MUST(cudaGraphMemsetNodeSetParams(node[i], &set));
  }
  MUST(cudaGraphExecChildGraphNodeSetParams(x->handle, n->node, copy));
  /* the account asks the copy for what it has, memset by memset: their order is the graph's */
  for (size_t i = 0; i < count && (int)i < n->within && n[1 + i].kind != CHILD; i++) {
    struct cudaMemsetParams got;
    if (n[1 + i].kind != SET) continue;
    MUST(cudaGraphMemsetNodeGetParams(node[i], &got));
    n[1 + i].bytes = got.width * got.elementSize;
  }
  MUST(cudaGraphDestroy(copy));
}

static void change_exec(exec *x)
{
  if (!x->handle || x->from < 0) return;
  int at = (int)random_under((uint32_t)x->count);
  item *n = &x->item[at];
  if (!n->node) return;
  if (n->kind == CHILD) {
    set_exec_child(x, n);
  } else if (n->kind != HOST && random_under(3) == 0) {
    n->disabled = !n->disabled;
    MUST(cudaGraphNodeSetEnabled(x->handle, n->node, !n->disabled));
  } else {
    set_exec_node(x, n);
  }
}

/* To the graph that it was made from, as that is now. */
static void update_exec(exec *x)
{
  cudaGraphExecUpdateResultInfo info;
  if (!x->handle || x->from < 0) return;
  const graph *g = &graphs[x->from];
  for (int i = 0; i < x->count; i++)
    if (x->item[i].disabled) return; /* no document says whether it stays so */
  MUST(cudaGraphExecUpdate(x->handle, g->handle, &info));
  for (int i = 0; i < x->count; i++)
    x->item[i].bytes = g->item[i].bytes;
}

static void launch_exec(exec *x)
{
  if (!x->handle) return;
  for (uint32_t i = 1 + random_under(3); i > 0; i--) {
    MUST(cudaGraphLaunch(x->handle, stream));
    count_launch(x->item, x->count);
  }
}

static void *launch_in_thread(void *x)
{
  launch_exec(x);
  return NULL;
}

static void launch_by_another(exec *x)
{
  pthread_t t;
  if (pthread_create(&t, NULL, launch_in_thread, x) || pthread_join(t, NULL)) exit(1);
}

/* ---- modes ----------------------------------------------------------------------------------- */

static void run_random(uint64_t seed)
{
  rng = seed;
  for (int i = 0; i < STEPS; i++) {
    int at = (int)random_under(GRAPHS);
    exec *x = &execs[random_under(EXECS)];
    switch (random_under(12)) {
    case 0:
      capture_graph(at);
      break;
    case 1:
      build_graph(at);
      break;
    case 2:
      clone_graph(at);
      break;
    case 3:
      change_graph(at);
      break;
    case 4:
      forget_exec(x);
      break;
    case 5:
      update_exec(x);
      break;
    case 6:
    case 7:
      change_exec(x);
      break;
    case 8:
    case 9:
      make_exec(x, at);
      break;
    case 10:
      launch_by_another(x);
      break;
    default:
      launch_exec(x);
      break;
    }
  }
}

static void run_loop(void)
{
  enum { COUNT = 150, BYTES = 262144 };
  static cudaGraphExec_t x[COUNT];
  for (int i = 0; i < COUNT; i++) {
    graph g = {0};
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    capture_item(&g, i % 2 ? H2D : D2H, BYTES);
    MUST(cudaStreamEndCapture(stream, &g.handle));
    MUST(cudaGraphInstantiate(&x[i], g.handle, 0));
    MUST(cudaGraphDestroy(g.handle));
  }
  for (int i = 0; i < 3 * COUNT; i++) {
    item one = {.kind = i % COUNT % 2 ? H2D : D2H, .bytes = BYTES};
    MUST(cudaGraphLaunch(x[i % COUNT], stream));
    count_launch(&one, 1);
  }
}

static void run_explicit(void)
{
  graph *g = &graphs[0];
  MUST(cudaGraphCreate(&g->handle, 0));
  add_item(g, H2D, BUFFER);
  add_item(g, SET, 4096);
  add_item(g, KERNEL, 0);
  add_item(g, SET, 8);
  add_item(g, KERNEL, 0);
  add_item(g, D2H, 8);
  add_item(g, HOST, 0);
  make_exec(&execs[0], 0);
  graphs[1] = *g;
  MUST(cudaGraphClone(&graphs[1].handle, g->handle));
  make_exec(&execs[1], 1);
  for (int i = 0; i < 3; i++)
    for (int k = 0; k < 2; k++) {
      MUST(cudaGraphLaunch(execs[k].handle, stream));
      count_launch(execs[k].item, execs[k].count);
    }
}

static void run_memory(void)
{
  enum { LAUNCHES = 5, BYTES = 1 << 20 };
  struct cudaMemAllocNodeParams p = {
      .poolProps = {.allocType = cudaMemAllocationTypePinned,
                    .location = {.type = cudaMemLocationTypeDevice, .id = 0}},
      .bytesize = BYTES};
  struct cudaMemsetParams set = {.value = 1, .elementSize = 1, .width = BYTES, .height = 1};
  cudaGraph_t g;
  cudaGraphNode_t a, s, f;
  cudaGraphExec_t x;
  item one = {.kind = SET, .bytes = BYTES};
  MUST(cudaGraphCreate(&g, 0));
  MUST(cudaGraphAddMemAllocNode(&a, g, NULL, 0, &p));
  set.dst = p.dptr;
  MUST(cudaGraphAddMemsetNode(&s, g, &a, 1, &set));
  MUST(cudaGraphAddMemFreeNode(&f, g, &s, 1, p.dptr));
  MUST(cudaGraphInstantiate(&x, g, 0));
  for (int i = 0; i < LAUNCHES; i++) {
    MUST(cudaGraphLaunch(x, stream));
    count_launch(&one, 1);
  }
  printf("graph_allocs %d\ngraph_alloc_bytes %d\n", LAUNCHES, LAUNCHES * BYTES);
  printf("peak_bytes %zu\nlive_at_exit_bytes %zu\n", 2 * BUFFER + BYTES, 2 * BUFFER);
}

/* ---- blocks of graphs ------------------------------------------------------------------------ */

enum { KEEPERS = 4, BLOCKS = 5, KEPT = BLOCKS + 1, BLOCK_STEPS = 60 };

/* A graph that allocates blocks, of which it frees some; `freer`: one that frees all others. */
typedef struct keeper {
  cudaGraph_t graph;
  cudaGraphNode_t last; /* of its chain */
  cudaGraphExec_t exec, freer;
  bool auto_free;
  int count;
  struct {
    void *at;
    size_t bytes;
    int freed_ahead_of; /* block; KEPT: freed by no node of the graph */
    bool held;
  } block[BLOCKS];
} keeper;

static keeper keepers[KEEPERS];
static struct {
  size_t live, peak, allocs, bytes;
} memory = {2 * BUFFER, 2 * BUFFER, 0, 0}; /* the buffers */

static void free_node(keeper *k, int i)
{
  MUST(cudaGraphAddMemFreeNode(&k->last, k->graph, &k->last, 1, k->block[i].at));
}

static void alloc_node(keeper *k, int i)
{
  struct cudaMemAllocNodeParams p = {
      .poolProps = {.allocType = cudaMemAllocationTypePinned,
                    .location = {.type = cudaMemLocationTypeDevice, .id = 0}},
      .bytesize = k->block[i].bytes};
  MUST(cudaGraphAddMemAllocNode(&k->last, k->graph, &k->last, k->last ? 1 : 0, &p));
  k->block[i].at = p.dptr;
}

/* The software device lets no other graph free what shares its addresses within its own. */
static bool in_freer(const keeper *k, int i)
{
  bool alone = k->block[i].freed_ahead_of == KEPT;
  for (int j = 0; j < k->count; j++)
    alone = alone && (j == i || k->block[j].at != k->block[i].at);
  return alone;
}

static void make_freer(keeper *k)
{
  cudaGraph_t g;
  cudaGraphNode_t n;
  int frees = 0;
  MUST(cudaGraphCreate(&g, 0));
  for (int i = 0; i < k->count; i++)
    if (in_freer(k, i) && ++frees) MUST(cudaGraphAddMemFreeNode(&n, g, NULL, 0, k->block[i].at));
  if (frees) MUST(cudaGraphInstantiate(&k->freer, g, 0));
}

/* Few sizes: an allocation may get the addresses of one that was freed in the graph. */
static void make_keeper(keeper *k)
{
  k->count = 1 + (int)random_under(BLOCKS);
  k->auto_free = random_under(2);
  MUST(cudaGraphCreate(&k->graph, 0));
  for (int i = 0; i <= k->count; i++) {
    for (int j = 0; j < i; j++)
      if (k->block[j].freed_ahead_of == i) free_node(k, j);
    if (i == k->count) break;
    k->block[i].bytes = (size_t)(1 + random_under(2)) << 20;
    k->block[i].freed_ahead_of = i + 1 + (int)random_under((uint32_t)(k->count - i));
    if (random_under(2)) k->block[i].freed_ahead_of = KEPT;
    alloc_node(k, i);
  }
  MUST(cudaGraphInstantiate(&k->exec, k->graph,
                            k->auto_free ? cudaGraphInstantiateFlagAutoFreeOnLaunch : 0));
  make_freer(k);
}

static int held_blocks(const keeper *k)
{
  int held = 0;
  for (int i = 0; i < k->count; i++)
    held += k->block[i].held;
  return held;
}

static void release_block(keeper *k, int i)
{
  if (k->block[i].held) memory.live -= k->block[i].bytes;
  k->block[i].held = false;
}

static void launch_keeper(keeper *k)
{
  if (held_blocks(k) && !k->auto_free) return; /* it would fail */
  MUST(cudaGraphLaunch(k->exec, stream));
  account.launches++;
  for (int i = 0; i < k->count; i++)
    release_block(k, i);
  for (int i = 0; i <= k->count; i++) {
    for (int j = 0; j < i; j++)
      if (k->block[j].freed_ahead_of == i) release_block(k, j);
    if (i == k->count) break;
    k->block[i].held = true;
    memory.live += k->block[i].bytes;
    if (memory.live > memory.peak) memory.peak = memory.live;
    memory.allocs++;
    memory.bytes += k->block[i].bytes;
  }
}

/* One of those that are held, or by the other graph all. */
static void free_of_keeper(keeper *k)
{
  int whole = 0, held = 0, i = (int)random_under((uint32_t)k->count);
  for (int j = 0; j < k->count; j++)
    whole += in_freer(k, j), held += in_freer(k, j) && k->block[j].held;
  if (whole && held == whole && random_under(2)) {
    MUST(cudaGraphLaunch(k->freer, stream));
    account.launches++;
    for (int j = 0; j < k->count; j++)
      if (in_freer(k, j)) release_block(k, j);
  } else if (k->block[i].held) {
    if (random_under(2))
      MUST(cudaFreeAsync(k->block[i].at, stream));
    else
      MUST(cudaFree(k->block[i].at));
    release_block(k, i);
  }
}

static void run_blocks(uint64_t seed)
{
  int left = 2;
  rng = seed;
  for (int i = 0; i < KEEPERS; i++)
    make_keeper(&keepers[i]);
  for (int i = 0; i < BLOCK_STEPS; i++) {
    keeper *k = &keepers[random_under(KEEPERS)];
    if (random_under(2))
      launch_keeper(k);
    else
      free_of_keeper(k);
    if (random_under(8) == 0) MUST(cudaDeviceGraphMemTrim(0));
  }
  for (int i = 0; i < KEEPERS; i++) {
    left += held_blocks(&keepers[i]);
    if (random_under(2)) MUST(cudaGraphExecDestroy(keepers[i].exec)); /* frees none of it */
  }
  printf("graph_allocs %zu\ngraph_alloc_bytes %zu\npeak_bytes %zu\n", memory.allocs, memory.bytes,
         memory.peak);
  printf("live_at_exit_bytes %zu\nlive_at_exit_blocks %d\nunmatched_frees 0\n", memory.live, left);
}

static void run_condition(void)
{
  enum { LAUNCHES = 4 };
  graph *g = &graphs[0];
  cudaGraphConditionalHandle handle;
  cudaGraphNode_t node, inner;
  struct cudaMemsetParams set = set_params(4096);
  MUST(cudaGraphCreate(&g->handle, 0));
  add_item(g, SET, 512);
  MUST(cudaGraphConditionalHandleCreate(&handle, g->handle, 1, cudaGraphCondAssignDefault));
  struct cudaGraphNodeParams p = {.type = cudaGraphNodeTypeConditional};
  p.conditional.handle = handle;
  p.conditional.type = cudaGraphCondTypeIf;
  p.conditional.size = 1;
  MUST(cudaGraphAddNode(&node, g->handle, &g->item[0].node, NULL, 1, &p));
  MUST(cudaGraphAddMemsetNode(&inner, p.conditional.phGraph_out[0], NULL, 0, &set));
  make_exec(&execs[0], 0);
  for (int i = 0; i < LAUNCHES; i++) {
    MUST(cudaGraphLaunch(execs[0].handle, stream));
    count_launch(execs[0].item, execs[0].count);
  }
  printf("graph_conditional_nodes %d\n", LAUNCHES);
}

static void run_large(int count)
{
  cudaGraph_t g;
  cudaGraphNode_t n;
  cudaGraphExec_t x;
  item one = {.kind = SET};
  MUST(cudaGraphCreate(&g, 0));
  for (int i = 0; i < count; i++) {
    struct cudaMemsetParams set = set_params((size_t)(1 + i % 7) * 512);
    MUST(cudaGraphAddMemsetNode(&n, g, NULL, 0, &set));
  }
  MUST(cudaGraphInstantiate(&x, g, 0));
  for (int k = 0; k < 2; k++) {
    MUST(cudaGraphLaunch(x, stream));
    for (int i = 0; i < count; i++) {
      one.bytes = (size_t)(1 + i % 7) * 512;
      count_launch(&one, 1);
      account.launches--;
    }
    account.launches++;
  }
}

int main(int argc, char **argv)
{
  const char *mode = argc > 1 ? argv[1] : "";
  long n = argc > 2 ? strtol(argv[2], NULL, 10) : 0;
  MUST(cudaMalloc((void **)&device, BUFFER));
  MUST(cudaMalloc((void **)&other, BUFFER));
  MUST(cudaMallocHost((void **)&host, BUFFER));
  MUST(cudaStreamCreate(&stream));
  for (int i = 0; i < EXECS; i++)
    execs[i].from = -1;
  if (!strcmp(mode, "loop")) run_loop();
  if (!strcmp(mode, "explicit")) run_explicit();
  if (!strcmp(mode, "memory")) run_memory();
  if (!strcmp(mode, "blocks")) run_blocks((uint64_t)n);
  if (!strcmp(mode, "condition")) run_condition();
  if (!strcmp(mode, "large")) run_large((int)n);
  if (!strcmp(mode, "random")) run_random((uint64_t)n);
  MUST(cudaDeviceSynchronize());
  print_account();
  return 0;
}
