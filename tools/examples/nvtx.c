/* nvtx.c: NVTX as a library for programs that include no header, as NVIDIA's libnvtx3interop.so.1
 * is, which is not in every Toolkit's folder that the loader knows. */
#define NVTX_EXPORT_API
#include <nvtx3/nvToolsExt.h>
