/* peers.c: copies between two devices, then enables and disables peer access itself, and prints what
 * each call says: with access that is enabled for it (weir run --reroute=access) as without. */
#include <cuda_runtime.h>
#include <stdio.h>
#include <string.h>

static void said(const char *call, cudaError_t e)
{
  printf("%s: %s, last %s\n", call, cudaGetErrorName(e), cudaGetErrorName(cudaGetLastError()));
}

#define SAY(call) said(#call, call)

int main(void)
{
  enum { BYTES = 4096 };
  char *one, *two, text[BYTES] = "a text that goes from device to device", back[BYTES] = "";
  SAY(cudaSetDevice(1));
  SAY(cudaMalloc((void **)&two, BYTES));
  SAY(cudaSetDevice(0));
  SAY(cudaMalloc((void **)&one, BYTES));
  SAY(cudaMemcpy(one, text, BYTES, cudaMemcpyHostToDevice));
  SAY(cudaMemcpyPeer(two, 1, one, 0, BYTES));
  SAY(cudaDeviceDisablePeerAccess(1));
  SAY(cudaMemcpyPeer(two, 1, one, 0, BYTES));
  SAY(cudaDeviceEnablePeerAccess(1, 0));
  SAY(cudaDeviceEnablePeerAccess(1, 0));
  SAY(cudaDeviceDisablePeerAccess(1));
  SAY(cudaDeviceDisablePeerAccess(1));
  SAY(cudaSetDevice(1));
  SAY(cudaDeviceEnablePeerAccess(0, 0));
  SAY(cudaDeviceEnablePeerAccess(0, 0));
  SAY(cudaMemcpy(back, two, BYTES, cudaMemcpyDeviceToHost));
  printf("%s\n", memcmp(text, back, BYTES) ? "another text" : back);
  SAY(cudaDeviceDisablePeerAccess(0));
  return 0;
}
