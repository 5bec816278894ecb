/* headers.h: the headers whose declarations gen.py turns into entry points. */
#include <cuda.h>
#include <cudaProfiler.h>
#include <cudaProfilerTypedefs.h>
#include <cudaTypedefs.h>
