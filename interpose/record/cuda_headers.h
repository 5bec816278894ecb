/* cuda_headers.h: CUDA's headers with every exported spelling declared, old ABIs included, and no
 * macro between a name and itself. For the hooks only. */
#ifndef WEIR_INTERPOSE_CUDA_HEADERS_H
#define WEIR_INTERPOSE_CUDA_HEADERS_H

#ifndef __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL 1
#endif
#include <cuda.h>
#include <cudaProfiler.h>
#include <cudaProfilerTypedefs.h>
#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>

#endif
