/* namer.c: gives names to its thread, device, stream and memory by NVTX, and uses them. The same
 * address is allocated, named and freed ROUNDS times; with an argument the memory stays. */
#include <cuda_runtime_api.h>
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCudaRt.h>
#include <nvtx3/nvToolsExtMem.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ROUNDS = 3, BYTES = 1 << 20, COPIED = 4096 };

static void name_memory(nvtxDomainHandle_t domain, void *pointer, const char *name)
{
  const nvtxMemRegionNameDesc_t region = {.regionRefType = NVTX_MEM_REGION_REF_TYPE_POINTER,
                                          .nameType = NVTX_MESSAGE_TYPE_ASCII,
                                          .region.pointer = pointer,
                                          .name.ascii = name};
  const nvtxMemRegionsNameBatch_t batch = {.extCompatID = NVTX_EXT_COMPATID_MEM,
                                           .structSize = sizeof batch,
                                           .regionCount = 1,
                                           .regionElementSize = sizeof region,
                                           .regionElements = &region};
  nvtxMemRegionsName(domain, &batch);
}

#define MUST(call)                                                                                 \
  do {                                                                                             \
    if ((call) != cudaSuccess) return fprintf(stderr, "%s failed\n", #call), 1;                    \
  } while (0)

int main(int argc, char **argv)
{
  static const char *const names[ROUNDS] = {"weights", "gradients", "weights"};
  static char host[COPIED];
  cudaStream_t stream;
  void *p = NULL;
  (void)argv;
  nvtxDomainHandle_t domain = nvtxDomainCreateA("net");
  nvtxNameOsThreadA((uint32_t)syscall(SYS_gettid), "main loop");
  nvtxNameCudaDeviceA(0, "left card");
  MUST(cudaStreamCreate(&stream));
  nvtxNameCudaStreamA(stream, "uploads");
  for (int i = 0; i < ROUNDS; i++) {
    MUST(cudaMalloc(&p, BYTES));
    name_memory(domain, p, names[i]);
    MUST(cudaMemcpyAsync(p, host, COPIED, cudaMemcpyHostToDevice, stream));
    MUST(cudaStreamSynchronize(stream));
    if (argc == 1 || i + 1 < ROUNDS) MUST(cudaFree(p));
  }
  return 0;
}
