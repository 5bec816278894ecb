/* test_condition.c: conditional nodes: bodies that run by a value which a kernel sets. */
#include "sim.h"

static void settle(void *const *arg, const struct weir_twin_thread *t)
{
  (void)t;
  weir_condition_set(*(CUgraphConditionalHandle *)arg[0], *(unsigned *)arg[1]);
}
static const uint32_t settle_sizes[] = {8, 4};
EXPORT const struct weir_twin weir_twin_settle = {2, 2, settle_sizes, settle, "settle", NULL, 0};

/* Adds 1 to a number, and is true as long as it is below another. */
static void climb(void *const *arg, const struct weir_twin_thread *t)
{
  (void)t;
  unsigned *p = *(unsigned **)arg[1];
  weir_condition_set(*(CUgraphConditionalHandle *)arg[0], ++*p < *(unsigned *)arg[2]);
}
static const uint32_t climb_sizes[] = {8, 8, 4};
EXPORT const struct weir_twin weir_twin_climb = {2, 3, climb_sizes, climb, "climb", NULL, 0};

static CUmodule code;

static void start_with_code(void)
{
  set_up_device0();
  ok(cuModuleLoadData(&code, ".version 8.0\n.target sm_80\n.address_size 64\n"
                             ".visible .entry settle(.param .u64 h, .param .u32 v) { ret; }\n"
                             ".visible .entry climb(.param .u64 h, .param .u64 p, .param .u32 n) "
                             "{ ret; }\n"
                             ".visible .entry lost(.param .u64 h) { ret; }\n"));
}

static CUgraph create_graph(void)
{
  CUgraph g;
  ok(cuGraphCreate(&g, 0));
  return g;
}

static CUgraphNode kernel(CUgraph g, CUgraphNode after, const char *name, void **arguments)
{
  CUDA_KERNEL_NODE_PARAMS p = {.gridDimX = 1,
                               .gridDimY = 1,
                               .gridDimZ = 1,
                               .blockDimX = 1,
                               .blockDimY = 1,
                               .blockDimZ = 1,
                               .kernelParams = arguments};
  CUgraphNode n;
  ok(cuModuleGetFunction(&p.func, code, name));
  ok(cuGraphAddKernelNode_v2(&n, g, &after, after ? 1 : 0, &p));
  return n;
}

static CUgraphNode set_word(CUgraph g, CUdeviceptr p, unsigned value)
{
  CUDA_MEMSET_NODE_PARAMS params = {
      .dst = p, .value = value, .elementSize = 4, .width = 1, .height = 1};
  CUgraphNode n;
  ok(cuGraphAddMemsetNode(&n, g, NULL, 0, &params, primary(0)));
  return n;
}

static CUgraphConditionalHandle handle(CUgraph g, unsigned initial)
{
  CUgraphConditionalHandle h = 0;
  ok(cuGraphConditionalHandleCreate(&h, g, primary(0), initial, CU_GRAPH_COND_ASSIGN_DEFAULT));
  ck_assert_uint_ne(h, 0);
  return h;
}

static CUgraphNodeParams node_params(CUgraphConditionalHandle h, CUgraphConditionalNodeType type,
                                     unsigned size)
{
  CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL};
  p.conditional.handle = h;
  p.conditional.type = type;
  p.conditional.size = size;
  p.conditional.ctx = primary(0);
  return p;
}

/* Its bodies. */
static CUgraph *conditional(CUgraph g, CUgraphNode after, CUgraphConditionalHandle h,
                            CUgraphConditionalNodeType type, unsigned size)
{
  CUgraphNodeParams p = node_params(h, type, size);
  CUgraphNode n;
  ok(cuGraphAddNode_v2(&n, g, &after, NULL, after ? 1 : 0, &p));
  ck_assert_ptr_nonnull(p.conditional.phGraph_out);
  return p.conditional.phGraph_out;
}

static CUgraphExec instance(CUgraph g)
{
  CUgraphExec e = NULL;
  ok(cuGraphInstantiateWithFlags(&e, g, 0));
  return e;
}

static unsigned launch_and_read_word(CUgraphExec e, CUdeviceptr word)
{
  CUstream s;
  unsigned value = 0;
  ok(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING));
  ok(cuGraphLaunch(e, s));
  ok(cuStreamSynchronize(s));
  ok(cuMemcpyDtoH_v2(&value, word, 4));
  return value;
}

static CUdeviceptr zeroed_device_word(void)
{
  CUdeviceptr p = device_bytes(4);
  ok(cuMemsetD32_v2(p, 0, 1));
  ok(cuCtxSynchronize());
  return p;
}

START_TEST(one_of_two_bodies_runs_by_the_value)
{
  for (unsigned initial = 0; initial < 2; initial++) {
    CUgraph g = create_graph();
    CUdeviceptr p = zeroed_device_word();
    CUgraphConditionalHandle h = handle(g, initial);
    CUgraph *bodies = conditional(g, NULL, h, CU_GRAPH_COND_TYPE_IF, 2);
    set_word(bodies[0], p, 10);
    set_word(bodies[1], p, 20);
    CUgraphExec e = instance(g);
    ck_assert_uint_eq(launch_and_read_word(e, p), initial ? 10 : 20);
    ok(cuGraphDestroy(g)); /* the instance has what it needs */
    ck_assert_uint_eq(launch_and_read_word(e, p), initial ? 10 : 20);
    ok(cuGraphExecDestroy(e));
  }
}
END_TEST

START_TEST(a_kernel_before_it_decides_and_the_default_comes_back)
{
  CUgraph g = create_graph();
  CUdeviceptr p = zeroed_device_word();
  CUgraphConditionalHandle h = handle(g, 1);
  unsigned value = 2;
  void *arguments[] = {&h, &value};
  CUgraphNode k = kernel(g, NULL, "settle", arguments);
  CUgraph *bodies = conditional(g, k, h, CU_GRAPH_COND_TYPE_SWITCH, 3);
  for (unsigned i = 0; i < 3; i++)
    set_word(bodies[i], p, 100 + i);
  CUgraphExec e = instance(g);
  ck_assert_uint_eq(launch_and_read_word(e, p), 102);
  ok(cuGraphNodeSetEnabled(e, k, 0));
  ck_assert_uint_eq(launch_and_read_word(e, p), 101);
  ok(cuGraphNodeSetEnabled(e, k, 1));
  ok(cuMemsetD32_v2(p, 0, 1));
  value = 3; /* no such body */
  CUDA_KERNEL_NODE_PARAMS params;
  ok(cuGraphKernelNodeGetParams_v2(k, &params));
  params.kernelParams = arguments;
  ok(cuGraphExecKernelNodeSetParams_v2(e, k, &params));
  ck_assert_uint_eq(launch_and_read_word(e, p), 0);
}
END_TEST

START_TEST(a_body_runs_while_its_kernel_says_so_and_bodies_nest)
{
  CUgraph g = create_graph();
  CUdeviceptr p = zeroed_device_word(), q = zeroed_device_word();
  unsigned most = 5;
  CUgraphConditionalHandle h = handle(g, 1), inner = handle(g, 0);
  CUgraph body = *conditional(g, NULL, h, CU_GRAPH_COND_TYPE_WHILE, 1);
  void *arguments[] = {&h, &p, &most};
  unsigned yes = 1;
  void *decide[] = {&inner, &yes};
  CUgraphNode k = kernel(body, NULL, "climb", arguments);
  CUgraphNode d = kernel(body, k, "settle", decide);
  CUgraph within = *conditional(body, d, inner, CU_GRAPH_COND_TYPE_IF, 1);
  CUstream s;
  ok(cuStreamCreate(&s, 0));
  ok(cuStreamBeginCaptureToGraph(s, within, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_GLOBAL));
  ok(cuMemcpyDtoDAsync_v2(q, p, 4, s));
  CUgraph captured;
  ok(cuStreamEndCapture(s, &captured));
  ck_assert_ptr_eq(captured, within);
  CUgraphExec e = instance(g);
  ck_assert_uint_eq(launch_and_read_word(e, p), 5);
  ck_assert_uint_eq(launch_and_read_word(e, q), 6); /* a second launch: true once more */
}
END_TEST

START_TEST(an_update_takes_the_other_graphs_bodies_and_default)
{
  CUgraph g = create_graph(), other = create_graph();
  CUdeviceptr p = zeroed_device_word();
  set_word(*conditional(g, NULL, handle(g, 1), CU_GRAPH_COND_TYPE_IF, 1), p, 1);
  CUgraph *bodies = conditional(other, NULL, handle(other, 0), CU_GRAPH_COND_TYPE_IF, 1);
  set_word(bodies[0], p, 2);
  CUgraphExec e = instance(g);
  ck_assert_uint_eq(launch_and_read_word(e, p), 1);
  CUgraphExecUpdateResultInfo info;
  ok(cuGraphExecUpdate_v2(e, other, &info));
  ok(cuMemsetD32_v2(p, 0, 1));
  ck_assert_uint_eq(launch_and_read_word(e, p), 0); /* its default is false */
  CUgraph two = create_graph();
  conditional(two, NULL, handle(two, 0), CU_GRAPH_COND_TYPE_IF, 2);
  fails(cuGraphExecUpdate_v2(e, two, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
}
END_TEST

START_TEST(what_cannot_be_a_condition_is_refused)
{
  CUgraph g = create_graph(), other = create_graph();
  CUgraphConditionalHandle h;
  CUcontext c = primary(0);
  fails(cuGraphConditionalHandleCreate(NULL, g, c, 0, 0), CUDA_ERROR_INVALID_VALUE);
  fails(cuGraphConditionalHandleCreate(&h, NULL, c, 0, 0), CUDA_ERROR_INVALID_VALUE);
  fails(cuGraphConditionalHandleCreate(&h, g, c, 0, 2), CUDA_ERROR_INVALID_VALUE);
  h = handle(g, 0);
  CUgraphNode n;
  CUgraphNodeParams p = node_params(h, CU_GRAPH_COND_TYPE_WHILE, 2);
  fails(cuGraphAddNode_v2(&n, g, NULL, NULL, 0, &p), CUDA_ERROR_INVALID_VALUE);
  p = node_params(h, CU_GRAPH_COND_TYPE_IF, 1);
  fails(cuGraphAddNode_v2(&n, other, NULL, NULL, 0, &p), CUDA_ERROR_INVALID_VALUE);
  CUgraph body = *conditional(g, NULL, h, CU_GRAPH_COND_TYPE_IF, 1);
  fails(cuGraphAddNode_v2(&n, g, NULL, NULL, 0, &p), CUDA_ERROR_INVALID_VALUE); /* has its node */
  fails(cuGraphDestroy(body), CUDA_ERROR_INVALID_VALUE);
  CUgraph clone;
  fails(cuGraphClone(&clone, g), CUDA_ERROR_NOT_SUPPORTED);
  fails(cuGraphAddChildGraphNode(&n, other, NULL, 0, g), CUDA_ERROR_NOT_SUPPORTED);
  CUevent e;
  ok(cuEventCreate(&e, 0));
  fails(cuGraphAddEventRecordNode(&n, body, NULL, 0, e), CUDA_ERROR_NOT_SUPPORTED);
  ok(cuGraphAddEventRecordNode(&n, other, NULL, 0, e));
  fails(cuGraphAddChildGraphNode(&n, body, NULL, 0, other), CUDA_ERROR_NOT_SUPPORTED);
}
END_TEST

/* On a GPU `lost` would end it; without a twin nobody does. */
START_TEST(a_loop_that_lost_its_end_ends)
{
  CUgraph g = create_graph();
  CUdeviceptr p = zeroed_device_word();
  CUgraphConditionalHandle h = handle(g, 1);
  CUgraph body = *conditional(g, NULL, h, CU_GRAPH_COND_TYPE_WHILE, 1);
  void *arguments[] = {&h};
  kernel(body, NULL, "lost", arguments);
  set_word(body, p, 8);
  ck_assert_uint_eq(launch_and_read_word(instance(g), p), 8);
}
END_TEST

int main(void)
{
  const TTest *const tests[] = {one_of_two_bodies_runs_by_the_value,
                                a_kernel_before_it_decides_and_the_default_comes_back,
                                a_body_runs_while_its_kernel_says_so_and_bodies_nest,
                                an_update_takes_the_other_graphs_bodies_and_default,
                                what_cannot_be_a_condition_is_refused,
                                a_loop_that_lost_its_end_ends,
                                NULL};
  return run_tests("sim_condition", tests, start_with_code);
}
