/* fix.c: see fix.h. */
#include "reports/findings/fix.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the rules name. Of the driver's copies by direction that which takes any; a flag that is the
 * runtime's default has no name in the driver's. */
static const char *const pairs[][2] = {
    {"cudaDeviceCanAccessPeer", "cuDeviceCanAccessPeer"},
    {"cudaDeviceEnablePeerAccess", "cuCtxEnablePeerAccess"},
    {"cudaDeviceReset", "cuDevicePrimaryCtxReset"},
    {"cudaEventBlockingSync", "CU_EVENT_BLOCKING_SYNC"},
    {"cudaEventRecord", "cuEventRecord"},
    {"cudaEventSynchronize", "cuEventSynchronize"},
    {"cudaFree", "cuMemFree"},
    {"cudaFreeAsync", "cuMemFreeAsync"},
    {"cudaGraphExecKernelNodeSetParams", "cuGraphExecKernelNodeSetParams"},
    {"cudaGraphExecUpdate", "cuGraphExecUpdate"},
    {"cudaHostAlloc", "cuMemHostAlloc"},
    {"cudaHostAllocDefault", "flags 0"},
    {"cudaHostRegister", "cuMemHostRegister"},
    {"cudaIpcGetMemHandle", "cuIpcGetMemHandle"},
    {"cudaIpcOpenMemHandle", "cuIpcOpenMemHandle"},
    {"cudaMalloc", "cuMemAlloc"},
    {"cudaMallocAsync", "cuMemAllocAsync"},
    {"cudaMallocHost", "cuMemAllocHost"},
    {"cudaMemAdvise", "cuMemAdvise"},
    {"cudaMemPoolAttrReleaseThreshold", "CU_MEMPOOL_ATTR_RELEASE_THRESHOLD"},
    {"cudaMemPoolSetAttribute", "cuMemPoolSetAttribute"},
    {"cudaMemPrefetchAsync", "cuMemPrefetchAsync"},
    {"cudaMemcpy2DAsync", "cuMemcpy2DAsync"},
    {"cudaMemcpyAsync", "cuMemcpyAsync"},
    {"cudaMemcpyBatchAsync", "cuMemcpyBatchAsync"},
    {"cudaMemcpyPeerAsync", "cuMemcpyPeerAsync"},
    {"cudaMemsetAsync", "cuMemsetD8Async"},
    {"cudaStreamNonBlocking", "CU_STREAM_NON_BLOCKING"},
    {"cudaStreamSynchronize", "cuStreamSynchronize"},
    {"cudaStreamWaitEvent", "cuStreamWaitEvent"},
};

static size_t name_bytes(const char *text)
{
  return strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_");
}

/* The driver's word for it; NULL: there is none. */
static const char *driver_name(const char *name, size_t bytes)
{
  for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
    if (strlen(pairs[i][0]) == bytes && !memcmp(pairs[i][0], name, bytes)) return pairs[i][1];
  return NULL;
}

/* The next name of the runtime's; NULL: there is none. */
static const char *next_name(const char *begin, const char *at)
{
  for (; (at = strstr(at, "cuda")); at += 4)
    if (at == begin || !name_bytes((const char[]){at[-1], '\0'})) return at;
  return NULL;
}

char *wr_fix_for_driver(const char *fix)
{
  char *text = NULL;
  size_t room = 0;
  FILE *to = open_memstream(&text, &room);
  if (!to) return NULL;
  const char *rest = fix;
  for (const char *at = fix; (at = next_name(fix, at));) {
    const size_t bytes = name_bytes(at);
    const char *name = driver_name(at, bytes);
    if (name) {
      (void)fwrite(rest, 1, (size_t)(at - rest), to);
      (void)fputs(name, to);
      rest = at + bytes;
    }
    at += bytes;
  }
  (void)fputs(rest, to);
  if (!fclose(to)) return text;
  free(text);
  return NULL;
}
