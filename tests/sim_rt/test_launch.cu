/* test_launch.cu: what nvcc's code asks of the runtime stand-in: binaries, kernels, variables,
 * launches. Built on the shared library, on the static archive, and with per-thread default
 * streams.
 */
#include <check.h>
#include <cuda_runtime.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>
#include "tests/sim_rt/sim.h"
#include "cuda/sim/weir_kernel.h"
#include "cuda/sim/weir_texture.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(WEIR_SANITIZED)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

#define ok(call)        ck_assert_int_eq((call), cudaSuccess)
#define is(call, error) ck_assert_int_eq((call), (error))

/* ---- kernels --------------------------------------------------------------------------------- */

struct Mixed { /* odd sizes and alignments, passed by value */
  char tag;
  double weight;
  short small[3];
};

WEIR_KERNEL(where, unsigned *out)
{
  unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  out[block * blockDim.x * blockDim.y * blockDim.z + thread] = block * 1000 + thread;
}

WEIR_KERNEL(arguments, char a, double b, Mixed c, short d, const float *e, double *out)
{
  out[0] = a + b + c.tag + c.weight + c.small[2] + d + e[0];
}

WEIR_KERNEL(add_one, int *p)
{
  p[threadIdx.x] += 1;
}

WEIR_KERNEL(no_arguments) {}

WEIR_KERNEL(sampled, cudaTextureObject_t image, cudaTextureObject_t list, cudaSurfaceObject_t to,
            float *out)
{
  int x = threadIdx.x;
  out[x] = weir_tex2D<float>(image, x + 1.0f, 1.0f);
  float4 four = weir_tex1Dfetch<float4>(list, x);
  out[2 + x] = four.y + four.w;
  uchar2 bytes = weir_surf2Dread<uchar2>(to, 2 * x, 1);
  bytes.y = (unsigned char)(bytes.x + 1);
  weir_surf2Dwrite(bytes, to, 2 * x, 0);
  weir_surf2Dwrite(bytes, to, 200, 0, cudaBoundaryModeZero);
}

__global__ void no_twin(int *p)
{
  p[0] = 77;
}

START_TEST(every_thread_of_a_grid_knows_its_place)
{
  unsigned *p, h[2 * 3 * 2 * 4 * 2 * 3];
  ok(cudaMalloc(&p, sizeof h));
  where<<<dim3(2, 3, 2), dim3(4, 2, 3)>>>(p);
  ok(cudaGetLastError());
  ok(cudaMemcpy(h, p, sizeof h, cudaMemcpyDeviceToHost));
  for (unsigned i = 0; i < 2 * 3 * 2 * 4 * 2 * 3; i++)
    ck_assert_uint_eq(h[i], i / 24 * 1000 + i % 24);
  ok(cudaFree(p));
}
END_TEST

START_TEST(arguments_are_copied_at_the_launch)
{
  cudaStream_t s;
  float one = 1, *e;
  double *out, h = 0;
  Mixed m = {3, 0.25, {0, 0, 40}};
  ok(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  ok(cudaMalloc(&e, sizeof *e));
  ok(cudaMalloc(&out, sizeof *out));
  ok(cudaMemcpy(e, &one, sizeof one, cudaMemcpyHostToDevice));
  ok(cudaDeviceSynchronize()); /* a pageable copy may return before it is done */
  ck_assert_int_eq(sim_hold(s), 0);
  arguments<<<1, 1, 0, s>>>(2, 0.5, m, 100, e, out);
  m.weight = 1e9;
  ck_assert_int_eq(sim_release(s), 0);
  ok(cudaMemcpyAsync(&h, out, sizeof h, cudaMemcpyDeviceToHost, s));
  ok(cudaStreamSynchronize(s));
  ck_assert_double_eq(h, 2 + 0.5 + 3 + 0.25 + 40 + 100 + 1);
}
END_TEST

START_TEST(a_launch_returns_before_the_kernel_runs)
{
  cudaStream_t s;
  int *p, h = -1;
  ok(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  ok(cudaMalloc(&p, sizeof *p));
  ok(cudaMemset(p, 0, sizeof *p));
  ok(cudaDeviceSynchronize());
  ck_assert_int_eq(sim_hold(s), 0);
  add_one<<<1, 1, 0, s>>>(p);
  no_arguments<<<1, 1, 0, s>>>();
  is(cudaStreamQuery(s), cudaErrorNotReady);
  ck_assert_int_eq(sim_release(s), 0);
  ok(cudaStreamSynchronize(s));
  ok(cudaMemcpy(&h, p, sizeof h, cudaMemcpyDeviceToHost));
  ck_assert_int_eq(h, 1);
}
END_TEST

START_TEST(shapes_that_cannot_be_are_refused)
{
  int *p;
  ok(cudaMalloc(&p, 4));
  add_one<<<0, 1>>>(p);
  is(cudaGetLastError(), cudaErrorInvalidConfiguration);
  add_one<<<1, 0>>>(p);
  is(cudaGetLastError(), cudaErrorInvalidConfiguration);
  add_one<<<1, 5000>>>(p);
  is(cudaGetLastError(), cudaErrorInvalidConfiguration);
  is(cudaLaunchKernel((const void *)p, dim3(1), dim3(1), NULL, 0, 0),
     cudaErrorInvalidDeviceFunction);
  is(cudaLaunchKernel((const void *)NULL, dim3(1), dim3(1), NULL, 0, 0),
     cudaErrorInvalidDeviceFunction);
}
END_TEST

START_TEST(a_kernel_without_a_twin_is_skipped)
{
  int *p, h = 5;
  ok(cudaMalloc(&p, sizeof *p));
  ok(cudaMemcpy(p, &h, sizeof h, cudaMemcpyHostToDevice));
  no_twin<<<1, 1>>>(p);
  ok(cudaGetLastError());
  ok(cudaMemcpy(&h, p, sizeof h, cudaMemcpyDeviceToHost));
  ck_assert_int_eq(h, 5);
}
END_TEST

START_TEST(every_way_to_launch_reaches_the_kernel)
{
  int *p, h = 0;
  cudaKernel_t kernel;
  cudaLaunchConfig_t config = {};
  ok(cudaMalloc(&p, sizeof *p));
  ok(cudaMemset(p, 0, sizeof *p));
  void *arguments[] = {&p};
  ok(cudaLaunchKernel((const void *)add_one, dim3(1), dim3(1), arguments, 0, 0));
  ok(cudaLaunchCooperativeKernel((const void *)add_one, dim3(1), dim3(1), arguments, 0, 0));
  config.gridDim = config.blockDim = dim3(1);
  ok(cudaLaunchKernelExC(&config, (const void *)add_one, arguments));
  ok(cudaGetKernel(&kernel, (const void *)add_one));
  ok(cudaLaunchKernel((const void *)kernel, dim3(1), dim3(1), arguments, 0, 0));
  ok(cudaMemcpy(&h, p, sizeof h, cudaMemcpyDeviceToHost));
  ck_assert_int_eq(h, 4);
}
END_TEST

static int counted(int *p)
{
  add_one<<<1, 1>>>(p);
  return 2;
}

/* The configuration of the outer launch is pushed before its arguments are evaluated. */
WEIR_KERNEL(add_some, int *p, int n)
{
  p[threadIdx.x] += n;
}

START_TEST(an_argument_may_launch_a_kernel_itself)
{
  int *p, h[3];
  ok(cudaMalloc(&p, sizeof h));
  ok(cudaMemset(p, 0, sizeof h));
  add_some<<<1, 3>>>(p, counted(p));
  ok(cudaMemcpy(h, p, sizeof h, cudaMemcpyDeviceToHost));
  ck_assert_int_eq(h[0], 3);
  ck_assert_int_eq(h[2], 2);
}
END_TEST

START_TEST(one_launch_is_one_driver_call)
{
#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
  const char *plain = "cuLaunchKernel_ptsz", *ex = "cuLaunchKernelEx_ptsz";
#else
  const char *plain = "cuLaunchKernel", *ex = "cuLaunchKernelEx";
#endif
  int *p;
  cudaLaunchConfig_t config = {};
  ok(cudaMalloc(&p, sizeof *p));
  void *arguments[] = {&p};
  uint64_t n = sim_count(plain);
  add_one<<<1, 1>>>(p);
  ck_assert_uint_eq(sim_count(plain), n + 1);
  ok(cudaLaunchKernel((const void *)add_one, dim3(1), dim3(1), arguments, 0, 0));
  ck_assert_uint_eq(sim_count(plain), n + 2);
  n = sim_count(ex);
  config.gridDim = config.blockDim = dim3(1);
  ok(cudaLaunchKernelExC(&config, (const void *)add_one, arguments));
  ck_assert_uint_eq(sim_count(ex), n + 1);
}
END_TEST

START_TEST(a_kernel_says_what_it_is)
{
  cudaFuncAttributes a;
  const char *name = NULL;
  int blocks = 0;
  ok(cudaFuncGetAttributes(&a, (const void *)add_one));
  ck_assert_int_gt(a.maxThreadsPerBlock, 0);
  ok(cudaFuncGetName(&name, (const void *)add_one));
  ck_assert_str_eq(name, "add_one");
  ok(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, (const void *)add_one, 128, 0));
  ck_assert_int_gt(blocks, 0);
  is(cudaFuncGetAttributes(&a, (const void *)&blocks), cudaErrorInvalidDeviceFunction);
  is(cudaFuncGetAttributes(NULL, (const void *)add_one), cudaErrorInvalidValue);
}
END_TEST

START_TEST(kernels_run_on_the_device_that_is_current_and_after_a_reset)
{
  int *p, h = 0;
  setenv("WEIR_SIM_DEVICES", "2", 1);
  for (int round = 0; round < 2; round++)
    for (int d = 0; d < 2; d++) {
      ok(cudaSetDevice(d));
      ok(cudaMalloc(&p, sizeof *p));
      ok(cudaMemset(p, 0, sizeof *p));
      add_one<<<1, 1>>>(p);
      ok(cudaGetLastError());
      ok(cudaMemcpy(&h, p, sizeof h, cudaMemcpyDeviceToHost));
      ck_assert_int_eq(h, 1);
      ok(cudaDeviceReset());
    }
}
END_TEST

WEIR_KERNEL(write_to, int *p)
{
  *p = 1;
}

START_TEST(a_kernel_that_goes_astray_breaks_its_context)
{
  int *p;
  ok(cudaMalloc(&p, sizeof *p));
  write_to<<<1, 1>>>((int *)16);
  is(cudaDeviceSynchronize(), cudaErrorIllegalAddress);
  is(cudaMemset(p, 0, sizeof *p), cudaErrorIllegalAddress);
  write_to<<<1, 1>>>(p);
  is(cudaGetLastError(), cudaErrorIllegalAddress);
  ok(cudaDeviceReset());
  is(cudaGetLastError(), cudaSuccess);
  ok(cudaMalloc(&p, sizeof *p));
  write_to<<<1, 1>>>(p);
  ok(cudaDeviceSynchronize());
}
END_TEST

/* ---- libraries that come and go -------------------------------------------------------------- */

/* The path of a file beside this program. */
static void beside(char *path, size_t room, const char *name)
{
  ssize_t n = readlink("/proc/self/exe", path, room - 1);
  ck_assert_int_gt(n, 0);
  path[n] = 0;
  char *slash = strrchr(path, '/');
  snprintf(slash + 1, room - (size_t)(slash + 1 - path), "%s", name);
}

START_TEST(a_plug_in_comes_goes_and_comes_again)
{
  const int modes[] = {RTLD_LOCAL, RTLD_GLOBAL, RTLD_LOCAL | RTLD_DEEPBIND, RTLD_LOCAL};
  char path[4096];
  beside(path, sizeof path, "plugin.so");
  for (int i = 0; i < 4; i++) {
    if (SANITIZED && (modes[i] & RTLD_DEEPBIND)) continue; /* sanitizers refuse it */
    void *plugin = dlopen(path, RTLD_NOW | modes[i]);
    ck_assert_msg(plugin != NULL, "%s", dlerror());
    int (*run)(int) = (int (*)(int))(uintptr_t)dlsym(plugin, "plugin_run");
    ck_assert(run != NULL);
    ck_assert_int_eq(run(i + 1), 0);
    ck_assert_int_eq(run(i + 7), 0);
    ck_assert_int_eq(dlclose(plugin), 0);
  }
}
END_TEST

/* ---- variables ------------------------------------------------------------------------------- */

__device__ int numbers[16];
__constant__ float table[8];
__managed__ int shared_number;
__device__ int seven = 7;
__constant__ float ramp[3] = {1, 2, 3};
static int not_a_variable;

START_TEST(symbols_are_read_and_written)
{
  int in[16], out[16];
  float f[8] = {1, 2, 3, 4, 5, 6, 7, 8}, g[2];
  size_t bytes = 0;
  void *p, *q;
  for (int i = 0; i < 16; i++)
    in[i] = i * i;
  ok(cudaGetSymbolSize(&bytes, numbers));
  ck_assert_uint_eq(bytes, sizeof numbers);
  ok(cudaMemcpyToSymbol(numbers, in, sizeof in));
  ok(cudaMemcpyFromSymbol(out, numbers, sizeof out));
  ck_assert_mem_eq(in, out, sizeof in);
  ok(cudaMemcpyToSymbolAsync(table, f, sizeof f, 0, cudaMemcpyHostToDevice, 0));
  ok(cudaMemcpyFromSymbolAsync(g, table, sizeof g, 3 * sizeof *f, cudaMemcpyDeviceToHost, 0));
  ok(cudaDeviceSynchronize());
  ck_assert_float_eq(g[0], 4);
  ok(cudaGetSymbolAddress(&p, numbers));
  ok(cudaGetSymbolAddress(&q, numbers));
  ck_assert_ptr_eq(p, q);
  ok(cudaMemcpy(out, p, sizeof out, cudaMemcpyDeviceToHost));
  ck_assert_int_eq(out[5], 25);
}
END_TEST

/* The test has machine code in its image, which says them. */
START_TEST(variables_begin_with_their_initial_values)
{
  int n = -1;
  float f[3] = {};
  ok(cudaMemcpyFromSymbol(&n, seven, sizeof n));
  ok(cudaMemcpyFromSymbol(f, ramp, sizeof f));
  ck_assert_int_eq(n, 7);
  ck_assert_float_eq(f[2], 3);
}
END_TEST

START_TEST(symbols_that_are_none_and_ranges_outside_are_refused)
{
  int x = 0;
  size_t bytes;
  void *p;
  is(cudaGetSymbolAddress(&p, (const void *)&not_a_variable), cudaErrorInvalidSymbol);
  is(cudaGetSymbolSize(&bytes, (const void *)&not_a_variable), cudaErrorInvalidSymbol);
  is(cudaMemcpyToSymbol((const void *)&not_a_variable, &x, sizeof x), cudaErrorInvalidSymbol);
  is(cudaMemcpyToSymbol(numbers, &x, sizeof x, sizeof numbers), cudaErrorInvalidValue);
  is(cudaMemcpyToSymbol(numbers, &x, sizeof x, 0, cudaMemcpyDeviceToHost),
     cudaErrorInvalidMemcpyDirection);
  is(cudaMemcpyFromSymbol(&x, numbers, sizeof x, 0, cudaMemcpyHostToDevice),
     cudaErrorInvalidMemcpyDirection);
  is(cudaGetSymbolAddress(NULL, numbers), cudaErrorInvalidValue);
}
END_TEST

START_TEST(a_variable_of_another_device_is_another_variable)
{
  int in = 5, out = -1;
  setenv("WEIR_SIM_DEVICES", "2", 1);
  ok(cudaMemcpyToSymbol(numbers, &in, sizeof in));
  ok(cudaSetDevice(1));
  ok(cudaMemcpyFromSymbol(&out, numbers, sizeof out));
  ck_assert_int_eq(out, 0);
}
END_TEST

START_TEST(a_managed_variable_is_one_for_host_and_device)
{
  int *p;
  shared_number = 41;
  ok(cudaGetSymbolAddress((void **)&p, shared_number));
  add_one<<<1, 1>>>(p);
  ok(cudaDeviceSynchronize());
  ck_assert_int_eq(shared_number, 42);
}
END_TEST

/* ---- graphs ---------------------------------------------------------------------------------- */

static cudaGraph_t captured(cudaStream_t stream, int *p, int times)
{
  cudaGraph_t graph;
  ok(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  for (int i = 0; i < times; i++)
    add_one<<<1, 4, 0, stream>>>(p);
  ok(cudaGetLastError());
  ok(cudaStreamEndCapture(stream, &graph));
  return graph;
}

static int first_of(const int *p)
{
  int word = -1;
  ok(cudaDeviceSynchronize());
  ok(cudaMemcpy(&word, p, sizeof word, cudaMemcpyDefault));
  return word;
}

START_TEST(captured_launches_run_with_the_graph)
{
  cudaStream_t stream;
  int *p;
  ok(cudaStreamCreate(&stream));
  ok(cudaMalloc(&p, 16));
  ok(cudaMemset(p, 0, 16));
  ok(cudaDeviceSynchronize());
  cudaGraph_t graph = captured(stream, p, 3);
  cudaGraphExec_t exec;
  ok(cudaGraphInstantiate(&exec, graph, 0));
  ck_assert_int_eq(first_of(p), 0);
  ok(cudaGraphLaunch(exec, stream));
  ok(cudaGraphLaunch(exec, stream));
  ck_assert_int_eq(first_of(p), 6);
  ok(cudaGraphExecDestroy(exec));
  ok(cudaGraphDestroy(graph));
}
END_TEST

START_TEST(a_kernel_node_is_made_from_a_stub_and_gives_it_back)
{
  int *p, *q;
  ok(cudaMalloc(&p, 16));
  ok(cudaMalloc(&q, 16));
  ok(cudaMemset(p, 0, 16));
  ok(cudaMemset(q, 0, 16));
  void *arguments[] = {&p};
  cudaKernelNodeParams params = {};
  params.func = (void *)add_one;
  params.gridDim = dim3(1);
  params.blockDim = dim3(4);
  params.kernelParams = arguments;
  cudaGraph_t graph;
  cudaGraphNode_t node;
  cudaGraphExec_t exec;
  ok(cudaGraphCreate(&graph, 0));
  ok(cudaGraphAddKernelNode(&node, graph, NULL, 0, &params));
  cudaKernelNodeParams got = {};
  ok(cudaGraphKernelNodeGetParams(node, &got));
  ck_assert_ptr_eq(got.func, (void *)add_one);
  ck_assert_uint_eq(got.blockDim.x, 4);
  ck_assert_ptr_eq(*(int **)got.kernelParams[0], p);
  ok(cudaGraphInstantiateWithFlags(&exec, graph, 0));
  ok(cudaGraphLaunch(exec, 0));
  arguments[0] = &q;
  ok(cudaGraphExecKernelNodeSetParams(exec, node, &params));
  ok(cudaGraphLaunch(exec, 0));
  ck_assert_int_eq(first_of(p), 1);
  ck_assert_int_eq(first_of(q), 1);
  params.func = (void *)&graph;
  is(cudaGraphAddKernelNode(&node, graph, NULL, 0, &params), cudaErrorInvalidDeviceFunction);
}
END_TEST

START_TEST(copies_and_memsets_are_nodes_in_the_runtimes_words)
{
  int *p, *host;
  ok(cudaMalloc(&p, 16));
  ok(cudaMallocHost(&host, 16));
  memset(host, 0, 16);
  cudaGraph_t graph;
  cudaGraphNode_t set, copy;
  cudaMemsetParams params = {};
  params.dst = p;
  params.value = 7;
  params.elementSize = 4;
  params.width = 4;
  params.height = 1;
  ok(cudaGraphCreate(&graph, 0));
  ok(cudaGraphAddMemsetNode(&set, graph, NULL, 0, &params));
  ok(cudaGraphAddMemcpyNode1D(&copy, graph, &set, 1, host, p, 16, cudaMemcpyDeviceToHost));
  cudaMemcpy3DParms got = {};
  ok(cudaGraphMemcpyNodeGetParams(copy, &got));
  ck_assert_int_eq(got.kind, cudaMemcpyDeviceToHost);
  ck_assert_ptr_eq(got.dstPtr.ptr, host);
  ck_assert_uint_eq(got.extent.width, 16);
  cudaGraphNodeParams any = {};
  any.type = cudaGraphNodeTypeMemset;
  any.memset.dst = p + 3;
  any.memset.value = 9;
  any.memset.elementSize = 4;
  any.memset.width = any.memset.height = 1;
  cudaGraphNode_t late;
  ok(cudaGraphAddNode(&late, graph, &set, NULL, 1, &any));
  ok(cudaGraphAddDependencies(graph, &late, &copy, NULL, 1));
  size_t count = 0;
  ok(cudaGraphGetEdges(graph, NULL, NULL, NULL, &count));
  ck_assert_uint_eq(count, 3);
  cudaGraphExec_t exec;
  ok(cudaGraphInstantiate(&exec, graph, 0));
  ok(cudaGraphLaunch(exec, 0));
  ok(cudaDeviceSynchronize());
  ck_assert_int_eq(host[0], 7);
  ck_assert_int_eq(host[3], 9);
  is(cudaGraphMemcpyNodeGetParams(set, &got), cudaErrorInvalidValue);
}
END_TEST

START_TEST(what_a_capture_forbids_has_the_runtimes_errors)
{
  cudaStream_t stream;
  cudaGraph_t graph;
  void *p;
  ok(cudaMalloc(&p, 4));
  ok(cudaStreamCreate(&stream));
  ok(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  cudaStreamCaptureStatus status;
  unsigned long long id = 0;
  ok(cudaStreamGetCaptureInfo(stream, &status, &id));
  ck_assert_int_eq(status, cudaStreamCaptureStatusActive);
  ck_assert_uint_ne(id, 0);
  is(cudaFree(p), cudaErrorStreamCaptureUnsupported);
  is(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
  is(cudaGetLastError(), cudaErrorStreamCaptureInvalidated);
  is(cudaGetLastError(), cudaSuccess);
  is(cudaStreamEndCapture(stream, &graph), cudaErrorIllegalState);
  ok(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  is(cudaMemsetAsync(p, 0, 4, cudaStreamLegacy), cudaErrorStreamCaptureImplicit);
  is(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
  int device_count = 0;
  ok(cudaGetDeviceCount(&device_count));
  uint64_t bytes = 1;
  ok(cudaDeviceGetGraphMemAttribute(0, cudaGraphMemAttrUsedMemCurrent, &bytes));
  ck_assert_uint_eq(bytes, 0);
  ok(cudaDeviceGraphMemTrim(0));
  is(cudaDeviceGraphMemTrim(99), cudaErrorInvalidDevice);
}
END_TEST

static cudaTextureDesc clamped(cudaTextureFilterMode filter)
{
  cudaTextureDesc t;
  memset(&t, 0, sizeof t);
  t.addressMode[0] = t.addressMode[1] = cudaAddressModeClamp;
  t.filterMode = filter;
  return t;
}

START_TEST(a_twin_reads_textures_and_writes_surfaces)
{
  const float image[2][2] = {{0, 10}, {20, 30}}, list[8] = {0, 1, 2, 3, 4, 5, 6, 7};
  const unsigned char bytes[8] = {1, 2, 3, 4, 50, 0, 60, 0};
  unsigned char back[8];
  float *out, h[4];
  cudaArray_t a, b;
  float *p;
  cudaChannelFormatDesc one = cudaCreateChannelDesc<float>(),
                        four = cudaCreateChannelDesc<float4>();
  cudaChannelFormatDesc pair = cudaCreateChannelDesc<uchar2>();
  ok(cudaMalloc(&out, sizeof h));
  ok(cudaMalloc(&p, sizeof list));
  ok(cudaMemcpy(p, list, sizeof list, cudaMemcpyHostToDevice));
  ok(cudaMallocArray(&a, &one, 2, 2));
  ok(cudaMemcpy2DToArray(a, 0, 0, image, 8, 8, 2, cudaMemcpyHostToDevice));
  ok(cudaMallocArray(&b, &pair, 2, 2, cudaArraySurfaceLoadStore));
  ok(cudaMemcpy2DToArray(b, 0, 0, bytes, 4, 4, 2, cudaMemcpyHostToDevice));
  cudaResourceDesc r, said;
  memset(&r, 0, sizeof r);
  r.resType = cudaResourceTypeArray;
  r.res.array.array = a;
  cudaTextureDesc t = clamped(cudaFilterModeLinear), how;
  cudaTextureObject_t smooth = 0, linear = 0;
  cudaSurfaceObject_t to = 0;
  ok(cudaCreateTextureObject(&smooth, &r, &t, NULL));
  ok(cudaGetTextureObjectTextureDesc(&how, smooth));
  ck_assert_mem_eq(&how, &t, sizeof t);
  r.res.array.array = b;
  ok(cudaCreateSurfaceObject(&to, &r));
  ok(cudaGetSurfaceObjectResourceDesc(&said, to));
  ck_assert_ptr_eq(said.res.array.array, b);
  memset(&r, 0, sizeof r);
  r.resType = cudaResourceTypeLinear;
  r.res.linear.devPtr = p;
  r.res.linear.desc = four;
  r.res.linear.sizeInBytes = sizeof list;
  ok(cudaCreateTextureObject(&linear, &r, &t, NULL));
  ok(cudaGetTextureObjectResourceDesc(&said, linear));
  ck_assert_mem_eq(&said, &r, sizeof r);
  sampled<<<1, 2>>>(smooth, linear, to, out);
  ok(cudaMemcpy(h, out, sizeof h, cudaMemcpyDeviceToHost));
  ck_assert_float_eq(h[0], 15);
  ck_assert_float_eq(h[1], 20); /* clamped on the right */
  ck_assert_float_eq(h[2], 4);
  ck_assert_float_eq(h[3], 12);
  ok(cudaMemcpy2DFromArray(back, 4, b, 0, 0, 4, 2, cudaMemcpyDeviceToHost));
  ck_assert_int_eq(back[0], 50);
  ck_assert_int_eq(back[1], 51);
  ck_assert_int_eq(back[3], 61);
  ok(cudaDestroySurfaceObject(to));
  ok(cudaDestroyTextureObject(linear));
  ok(cudaDestroyTextureObject(smooth));
  is(cudaDestroyTextureObject(smooth), cudaErrorInvalidValue);
}
END_TEST

int main(void)
{
  Suite *suite = suite_create("programs that nvcc made");
  TCase *c = tcase_create("all");
  tcase_add_test(c, every_thread_of_a_grid_knows_its_place);
  tcase_add_test(c, arguments_are_copied_at_the_launch);
  tcase_add_test(c, a_launch_returns_before_the_kernel_runs);
  tcase_add_test(c, shapes_that_cannot_be_are_refused);
  tcase_add_test(c, a_kernel_without_a_twin_is_skipped);
  tcase_add_test(c, every_way_to_launch_reaches_the_kernel);
  tcase_add_test(c, an_argument_may_launch_a_kernel_itself);
  tcase_add_test(c, one_launch_is_one_driver_call);
  tcase_add_test(c, a_kernel_says_what_it_is);
  tcase_add_test(c, kernels_run_on_the_device_that_is_current_and_after_a_reset);
  tcase_add_test(c, a_kernel_that_goes_astray_breaks_its_context);
  tcase_add_test(c, a_plug_in_comes_goes_and_comes_again);
  tcase_add_test(c, symbols_are_read_and_written);
  tcase_add_test(c, variables_begin_with_their_initial_values);
  tcase_add_test(c, symbols_that_are_none_and_ranges_outside_are_refused);
  tcase_add_test(c, a_variable_of_another_device_is_another_variable);
  tcase_add_test(c, a_managed_variable_is_one_for_host_and_device);
  tcase_add_test(c, captured_launches_run_with_the_graph);
  tcase_add_test(c, a_kernel_node_is_made_from_a_stub_and_gives_it_back);
  tcase_add_test(c, copies_and_memsets_are_nodes_in_the_runtimes_words);
  tcase_add_test(c, what_a_capture_forbids_has_the_runtimes_errors);
  tcase_add_test(c, a_twin_reads_textures_and_writes_surfaces);
  tcase_set_timeout(c, 60);
  suite_add_tcase(suite, c);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}
