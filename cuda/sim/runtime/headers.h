/* headers.h: the headers whose declarations gen.py makes entry points of. */
#include <cuda.h>
#include <cudaTypedefs.h>
#include <cudaProfilerTypedefs.h>
#include <cuda_runtime_api.h>
#include <cuda_profiler_api.h>
