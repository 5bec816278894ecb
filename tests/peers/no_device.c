/* no_device.c: a program on NVIDIA's own driver library where there is no device: all that each
 * layer says, and that it leaves what it was given as it was. Built with the runtime of CUDA 12
 * and of 13, shared and static; it must print the same bare and in each mode. Prints no address
 * and no time. */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* What no function may have written to. */
#define UNTOUCHED 0x5a5a5a5a5a5a5a5aull

static const char *touched(const void *p)
{
  uint64_t now;
  memcpy(&now, p, sizeof now);
  return now == UNTOUCHED ? "" : now ? ", written" : ", cleared";
}

/* ---- the driver ------------------------------------------------------------------------------ */

static void say_driver(const char *call, CUresult r, const void *out)
{
  const char *name = "none", *text = "none";
  (void)cuGetErrorName(r, &name);
  (void)cuGetErrorString(r, &text);
  printf("%s: %d %s (%s)%s\n", call, (int)r, name, text, touched(out));
}
#define DRIVER(call)                                                                               \
  do {                                                                                             \
    union anything u = {UNTOUCHED};                                                                \
    CUresult r = call;                                                                             \
    say_driver(#call, r, &u);                                                                      \
  } while (0)

union anything {
  uint64_t word;
  int number;
  unsigned flags;
  size_t bytes;
  CUdeviceptr at;
  void *p;
  CUcontext context;
  CUstream stream;
  CUevent event;
  CUmodule module;
  CUdevice device;
  CUmemoryPool pool;
  CUgraph graph;
};

static char host[4096];

static void use_driver(void)
{
  DRIVER(cuDriverGetVersion(&u.number));
  DRIVER(cuDeviceGetCount(&u.number));
  DRIVER(cuDeviceGet(&u.device, 0));
  DRIVER(cuCtxGetCurrent(&u.context));
  DRIVER(cuDevicePrimaryCtxRetain(&u.context, 0));
  DRIVER(cuCtxSynchronize());
  DRIVER(cuMemGetInfo(&u.bytes, &u.bytes));
  DRIVER(cuMemAlloc(&u.at, 1 << 20));
  DRIVER(cuMemAllocManaged(&u.at, 1 << 20, CU_MEM_ATTACH_GLOBAL));
  DRIVER(cuMemAllocHost(&u.p, 4096));
  DRIVER(cuMemHostAlloc(&u.p, 4096, 0));
  DRIVER(cuMemHostRegister(host, sizeof host, 0));
  DRIVER(cuMemHostUnregister(host));
  DRIVER(cuMemFree(0));
  DRIVER(cuMemFree((CUdeviceptr)(uintptr_t)host));
  DRIVER(cuMemFreeHost(host));
  DRIVER(cuMemcpyHtoD((CUdeviceptr)(uintptr_t)host, host, 64));
  DRIVER(cuMemcpyDtoH(host, (CUdeviceptr)(uintptr_t)host, 64));
  DRIVER(cuMemcpy((CUdeviceptr)(uintptr_t)host, (CUdeviceptr)(uintptr_t)(host + 64), 64));
  DRIVER(cuMemsetD8((CUdeviceptr)(uintptr_t)host, 1, 64));
  DRIVER(cuPointerGetAttribute(&u.word, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                               (CUdeviceptr)(uintptr_t)host));
  DRIVER(cuStreamCreate(&u.stream, 0));
  DRIVER(cuStreamSynchronize(NULL));
  DRIVER(cuStreamQuery(NULL));
  DRIVER(cuEventCreate(&u.event, 0));
  DRIVER(cuModuleLoadData(&u.module, host));
  DRIVER(cuGraphCreate(&u.graph, 0));
  DRIVER(cuDeviceGetDefaultMemPool(&u.pool, 0));
  DRIVER(cuMemAllocAsync(&u.at, 64, NULL));
}

/* ---- the runtime ----------------------------------------------------------------------------- */

static void say_runtime(const char *call, cudaError_t r, const void *out)
{
  printf("%s: %d %s (%s)%s", call, (int)r, cudaGetErrorName(r), cudaGetErrorString(r),
         touched(out));
  printf(", then %d and %d\n", (int)cudaPeekAtLastError(), (int)cudaGetLastError());
}
#define RUNTIME(call)                                                                              \
  do {                                                                                             \
    union anything u = {UNTOUCHED};                                                                \
    cudaError_t r = call;                                                                          \
    say_runtime(#call, r, &u);                                                                     \
  } while (0)

static void use_runtime(void)
{
  struct cudaDeviceProp properties;
  void *p = NULL;
  RUNTIME(cudaRuntimeGetVersion(&u.number));
  RUNTIME(cudaDriverGetVersion(&u.number));
  RUNTIME(cudaGetDeviceCount(&u.number));
  RUNTIME(cudaGetDevice(&u.number));
  RUNTIME(cudaSetDevice(0));
  RUNTIME(cudaGetDeviceProperties(&properties, 0));
  RUNTIME(cudaFree(NULL));
  RUNTIME(cudaMalloc(&u.p, 1 << 20));
  RUNTIME(cudaMallocManaged(&u.p, 1 << 20, cudaMemAttachGlobal));
  RUNTIME(cudaMallocPitch(&p, &u.bytes, 100, 100));
  RUNTIME(cudaMallocHost(&u.p, 4096));
  RUNTIME(cudaHostAlloc(&u.p, 4096, 0));
  RUNTIME(cudaHostRegister(host, sizeof host, 0));
  RUNTIME(cudaFreeHost(NULL));
  RUNTIME(cudaFreeHost(host));
  RUNTIME(cudaFree(host));
  RUNTIME(cudaMemcpy(host, host + 64, 64, cudaMemcpyHostToHost));
  RUNTIME(cudaMemcpy(host, host + 64, 64, cudaMemcpyDefault));
  RUNTIME(cudaMemcpyAsync(host, host + 64, 64, cudaMemcpyHostToDevice, NULL));
  RUNTIME(cudaMemset(host, 0, 64));
  RUNTIME(cudaMemGetInfo(&u.bytes, &u.bytes));
  RUNTIME(cudaStreamCreate(&u.stream));
  RUNTIME(cudaStreamSynchronize(NULL));
  RUNTIME(cudaEventCreate(&u.event));
  RUNTIME(cudaMallocAsync(&u.p, 64, NULL));
  RUNTIME(cudaFreeAsync(host, NULL));
  RUNTIME(cudaGraphCreate(&u.graph, 0));
  RUNTIME(cudaLaunchKernel(host, (dim3){1, 1, 1}, (dim3){1, 1, 1}, NULL, 0, NULL));
  RUNTIME(cudaDeviceSynchronize());
  RUNTIME(cudaDeviceReset());
}

/* ---- look-ups -------------------------------------------------------------------------------- */

static void look_up(void)
{
  static const char *const names[] = {"cuInit",         "cuMemAlloc",      "cuMemFree",
                                      "cuMemcpyHtoD",   "cuLaunchKernel",  "cuMemAllocAsync",
                                      "cuCtxCreate",    "cuStreamCreate",  "cuGraphInstantiate",
                                      "cuGetErrorName", "cuNoSuchFunction"};
  static const int versions[] = {2000, 3020, 4000, 11020, 12000, 12020};
  void *library = dlopen("libcuda.so.1", RTLD_NOW), *found;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    printf("%s: %s by dlsym;", names[i], library && dlsym(library, names[i]) ? "there" : "none");
    for (size_t k = 0; k < sizeof versions / sizeof *versions; k++) {
      found = NULL;
      CUresult r =
          cuGetProcAddress(names[i], &found, versions[k], CU_GET_PROC_ADDRESS_DEFAULT, NULL);
      printf(" %d %d %d", versions[k], (int)r, found != NULL);
    }
    puts("");
  }
}

/* ---- threads and children -------------------------------------------------------------------- */

static void *in_a_thread(void *unused)
{
  RUNTIME(cudaMalloc(&u.p, 64));
  DRIVER(cuMemAlloc(&u.at, 64));
  return unused;
}

static void in_a_child(void)
{
  int status = -1;
  (void)fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    RUNTIME(cudaGetDeviceCount(&u.number));
    DRIVER(cuInit(0));
    DRIVER(cuMemAlloc(&u.at, 64));
    exit(3);
  }
  (void)waitpid(child, &status, 0);
  printf("the child ended with %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

int main(void)
{
  pthread_t thread;
  use_driver(); /* not initialised */
  use_runtime();
  DRIVER(cuInit(0));
  use_driver();
  look_up();
  if (pthread_create(&thread, NULL, in_a_thread, NULL)) return 1;
  (void)pthread_join(thread, NULL);
  in_a_child();
  use_runtime();
  return 0;
}
