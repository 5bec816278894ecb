// pytorch.cc: PyTorch's caching allocator (libc10_cuda.so of the published wheel) as a peer.
//
// Its settings are read from the environment, before open(): peers.sh sets PYTORCH_ALLOC_CONF for
// the policy. A free whose block another stream used last is what a program does there: a
// record_stream() of that stream and then the free.
#include <cstdio>
#include <exception>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/cuda/PeerToPeerAccess.h>
#include "tests/peers/peer.h"

// Exported by libc10_cuda.so for libtorch_cuda.so, which declares it in the same way.
namespace c10::cuda::_internal
{
void setHasPrimaryContext(bool (*answer)(c10::DeviceIndex));
}

namespace allocator = c10::cuda::CUDACachingAllocator;

static c10::cuda::CUDACachingAllocator::CUDAAllocator *pytorch;

static int begin()
try {
  // What libtorch_cuda.so does in a whole PyTorch; here device 0 is the only one, and in use.
  c10::cuda::_internal::setHasPrimaryContext([](c10::DeviceIndex) { return true; });
  c10::cuda::detail::init_p2p_access_cache(1);
  pytorch = allocator::get();
  pytorch->init(1);
  return 0;
} catch (const std::exception &error) {
  (void)fprintf(stderr, "pytorch: %s\n", error.what());
  return -1;
}

static void *take(uint64_t bytes, void *stream)
try {
  return pytorch->raw_alloc_with_stream(bytes, static_cast<cudaStream_t>(stream));
} catch (const c10::OutOfMemoryError &) {
  return nullptr;
}

static void pytorch_free(void *block, uint64_t, void *stream, void *used)
{
  if (used != stream) {
    at::DataPtr pointer(block, block, pytorch->raw_deleter(),
                        c10::Device(c10::DeviceType::CUDA, 0));
    pytorch->recordStream(pointer,
                          c10::cuda::getStreamFromExternal(static_cast<cudaStream_t>(used), 0));
    (void)pointer.release_context();
  }
  pytorch->raw_delete(block);
}

static uint64_t pytorch_peak()
{
  const auto all = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  return static_cast<uint64_t>(pytorch->getDeviceStats(0).reserved_bytes[all].peak);
}

static const peer self = {"pytorch", begin, take, pytorch_free, pytorch_peak};

PEER_EXPORT weir_peer()
{
  return &self;
}
