/* cuda.h: the CUDA devices of this machine. Included by weir.h.
 *
 * CUDA is opened at its first use, in three steps, each of which may be missing: libweir-cuda.so
 * (looked for next to libweir.so, then by the loader), NVIDIA's driver (libcuda.so.1, of CUDA 12.0
 * or newer; to calculate, as new as the CUDA Toolkit of the build), a device. Whoever asks learns
 * from weir_error_message() which one was missing and why. The outcome is kept: a process looks
 * once.
 *
 * After fork() a child cannot use CUDA that its parent has opened ("Cannot re-initialize CUDA in
 * forked subprocess"): every function then fails with ECUDA and that sentence, and no call hangs
 * on a lock that another thread of the parent held. exec() starts anew.
 *
 * Devices are numbered as the driver numbers them (CUDA_VISIBLE_DEVICES), from 0. */
#ifndef WEIR_CUDA_H
#define WEIR_CUDA_H

#include <stdbool.h>
#include <stdint.h>
#include "core/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Whether a weir_malloc() on "cuda" can work: there is a driver and it has a device. False leaves
 * the reason in weir_error_message(). */
WEIR_PUBLIC bool weir_cuda_is_available(void);

/* How many devices there are; 0, and no error, where CUDA is missing in whole or in part. Errors:
 * ECUDA (after a fork). */
WEIR_PUBLIC weir_status weir_cuda_device_count(int *out);
/* Opens CUDA, as the first use does; again it is nothing. Errors: ENOTSUP (no libweir-cuda.so, no
 * driver, no device), ECUDA (the driver's own error, after a fork), EVERSION (the two libraries are
 * not of one build). */
WEIR_PUBLIC weir_status weir_cuda_init(void);
/* Whether something has opened CUDA: true changes nothing any more, but a fork. */
WEIR_PUBLIC bool weir_cuda_is_initialized(void);

/* X(field, CUdevice_attribute without its prefix): names and units as in torch.cuda's properties
 * where it has them; sizes in bytes. */
#define WEIR_CUDA_PROPERTIES_MAP(X)                                                                \
  X(major, COMPUTE_CAPABILITY_MAJOR)                                                               \
  X(minor, COMPUTE_CAPABILITY_MINOR)                                                               \
  X(multi_processor_count, MULTIPROCESSOR_COUNT)                                                   \
  X(max_threads_per_multi_processor, MAX_THREADS_PER_MULTIPROCESSOR)                               \
  X(max_threads_per_block, MAX_THREADS_PER_BLOCK)                                                  \
  X(warp_size, WARP_SIZE)                                                                          \
  X(regs_per_multiprocessor, MAX_REGISTERS_PER_MULTIPROCESSOR)                                     \
  X(shared_memory_per_block, MAX_SHARED_MEMORY_PER_BLOCK)                                          \
  X(shared_memory_per_block_optin, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)                              \
  X(shared_memory_per_multiprocessor, MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)                        \
  X(L2_cache_size, L2_CACHE_SIZE)                                                                  \
  X(is_integrated, INTEGRATED)                                                                     \
  X(is_multi_gpu_board, MULTI_GPU_BOARD)                                                           \
  X(copy_engines, ASYNC_ENGINE_COUNT)                                                              \
  X(virtual_memory_management, VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED)                                \
  X(pci_domain_id, PCI_DOMAIN_ID)                                                                  \
  X(pci_bus_id, PCI_BUS_ID)                                                                        \
  X(pci_device_id, PCI_DEVICE_ID)

typedef struct weir_cuda_device_properties {
  char name[256];        /* "NVIDIA H100 80GB HBM3" */
  uint8_t uuid[16];      /* as nvidia-smi -L prints it after "GPU-" */
  uint64_t total_memory; /* bytes */
#define WEIR_CUDA_PROPERTIES_FIELD(field, attribute) int field;
  WEIR_CUDA_PROPERTIES_MAP(WEIR_CUDA_PROPERTIES_FIELD)
#undef WEIR_CUDA_PROPERTIES_FIELD
} weir_cuda_device_properties;

/* What device number `index` is. Creates no context. Errors: as weir_cuda_init(); EINVAL: no such
 * device. */
WEIR_PUBLIC weir_status weir_cuda_get_device_properties(weir_cuda_device_properties *out,
                                                        int index);

#ifdef __cplusplus
}
#endif

#endif
