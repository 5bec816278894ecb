/* peers.c: copies between two devices, then enables and disables peer access itself, and prints
 * what each call says: with access that is enabled for it (weir run --reroute=access) as
 * without. */
#include <cuda_runtime.h>
#include <stdio.h>
#include <string.h>

static void said(const char *call, cudaError_t e)
{
  printf("%s: %s, last %s\n", call, cudaGetErrorName(e), cudaGetErrorName(cudaGetLastError()));
}

#define PRINT(call) said(#call, call)

int main(void)
{
  enum { BYTES = 4096 };
  char *one, *two, text[BYTES] = "a text that goes from device to device", back[BYTES] = "";
  PRINT(cudaSetDevice(1));
  PRINT(cudaMalloc((void **)&two, BYTES));
  PRINT(cudaSetDevice(0));
  PRINT(cudaMalloc((void **)&one, BYTES));
  PRINT(cudaMemcpy(one, text, BYTES, cudaMemcpyHostToDevice));
  PRINT(cudaMemcpyPeer(two, 1, one, 0, BYTES));
  PRINT(cudaDeviceDisablePeerAccess(1));
  PRINT(cudaMemcpyPeer(two, 1, one, 0, BYTES));
  PRINT(cudaDeviceEnablePeerAccess(1, 0));
  PRINT(cudaDeviceEnablePeerAccess(1, 0));
  PRINT(cudaDeviceDisablePeerAccess(1));
  PRINT(cudaDeviceDisablePeerAccess(1));
  PRINT(cudaSetDevice(1));
  PRINT(cudaDeviceEnablePeerAccess(0, 0));
  PRINT(cudaDeviceEnablePeerAccess(0, 0));
  PRINT(cudaMemcpy(back, two, BYTES, cudaMemcpyDeviceToHost));
  printf("%s\n", memcmp(text, back, BYTES) ? "another text" : back);
  PRINT(cudaDeviceDisablePeerAccess(0));
  return 0;
}
