/* torch.h: this allocator as PyTorch's, by torch.cuda.memory.CUDAPluggableAllocator. Included by
 * weir.h.
 *
 *   import ctypes, torch
 *   weir = torch.cuda.memory.CUDAPluggableAllocator(
 *       "libweir.so", "weir_torch_malloc", "weir_torch_free")
 *   record = ctypes.CDLL("libweir.so").weir_torch_record_stream
 *   weir.allocator().set_record_stream_fn(ctypes.cast(record, ctypes.c_void_p).value)
 *   torch.cuda.memory.change_current_allocator(weir)  # before the first CUDA tensor
 *
 * The functions are the pair that PyTorch's "Using custom memory allocators for CUDA" asks for,
 * with void * for cudaStream_t. PyTorch's allocators take part in nothing else of this library's:
 * its memory figures stay empty (ask weir_memory_get_stats), and tensor.record_stream() does
 * nothing without the third function.
 *
 * Out of memory: NULL, with the sentence in weir_error_message(). Nothing in PyTorch's pluggable
 * allocator looks at NULL or asks why: its tensor has the address 0, and the first kernel or copy
 * that uses it fails. */
#ifndef WEIR_TORCH_H
#define WEIR_TORCH_H

#include <sys/types.h>
#include "core/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* New memory of device cuda:`device` for `stream` (a cudaStream_t; NULL: the legacy default one):
 * give it to weir_torch_free(). NULL for 0 bytes; and where it failed: EOOM, EINVAL (a negative
 * size, no such device, cudaStreamPerThread), and those of opening CUDA. */
WEIR_PUBLIC void *weir_torch_malloc(ssize_t size, int device, void *stream);
/* Steals ptr, in the order of the stream that it was allocated for; NULL is nothing. The other
 * arguments are what PyTorch remembers of it, and are not needed. */
WEIR_PUBLIC void weir_torch_free(void *ptr, ssize_t size, int device, void *stream);
/* weir_record_stream() by a native handle: after ptr is freed, it is not reused before the work now
 * in `stream` is complete. */
WEIR_PUBLIC void weir_torch_record_stream(void *ptr, void *stream);

#ifdef __cplusplus
}
#endif

#endif
