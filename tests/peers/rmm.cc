// rmm.cc: RMM's pool_memory_resource (the headers of librmm's published wheel) as a peer.
//
// The pool is a class template there, so it is compiled here, as in every client of it, and calls
// the CUDA runtime that this object is linked to. librmm.so itself, which has NVIDIA's runtime
// inside, gives only what touches no device: sizes, stream handles as values, errors, the logger.
// Its two functions that would ask that other runtime are defined here, as documented.
#include <cstdio>
#include <exception>
#include <new>
#include <cuda_runtime_api.h>
#include <rmm/cuda_device.hpp>
#include <rmm/mr/cuda_memory_resource.hpp>
#include <rmm/mr/pool_memory_resource.hpp>
#include "tests/peers/peer.h"

namespace rmm
{

cuda_device_id get_current_cuda_device()
{
  int device = 0;
  (void)cudaGetDevice(&device);
  return cuda_device_id{device};
}

int get_num_cuda_devices()
{
  int count = 0;
  (void)cudaGetDeviceCount(&count);
  return count;
}

} // namespace rmm

using pool = rmm::mr::pool_memory_resource<rmm::mr::cuda_memory_resource>;

static pool *self_pool; // never destroyed: the process ends with it

static rmm::cuda_stream_view view(void *stream)
{
  return rmm::cuda_stream_view{static_cast<cudaStream_t>(stream)};
}

static int begin()
try {
  static rmm::mr::cuda_memory_resource device;
  self_pool = new pool{device, 0};
  return 0;
} catch (const std::exception &error) {
  (void)fprintf(stderr, "rmm: %s\n", error.what());
  return -1;
}

static void *take(uint64_t bytes, void *stream)
try {
  return self_pool->allocate(view(stream), bytes);
} catch (const std::bad_alloc &) {
  return nullptr;
}

static void rmm_free(void *block, uint64_t bytes, void *, void *used)
{
  self_pool->deallocate(view(used), block, bytes);
}

static uint64_t peak() // the pool gives nothing back
{
  return self_pool->pool_size();
}

static const peer self = {"rmm-pool", begin, take, rmm_free, peak};

PEER_EXPORT weir_peer()
{
  return &self;
}
