/* threads.c: a program without a race, a leak or a fault of its own: rounds of four threads that
 * come, copy there and back, small and large, and go; and a child. Built with a sanitizer. */
#include <cuda.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, COPIES = 20, SMALL = 4096, LARGE = 12 << 20 };

static CUcontext context;

static void require_success(CUresult r)
{
  if (r != CUDA_SUCCESS) abort();
}

static void copy_there_and_back(unsigned char *host, size_t bytes)
{
  CUdeviceptr device;
  require_success(cuMemAlloc(&device, bytes));
  memset(host, 1, bytes);
  require_success(cuMemcpyHtoD(device, host, bytes));
  memset(host, 2, bytes);
  require_success(cuMemcpyDtoH(host, device, bytes));
  if (host[0] != 1 || host[bytes - 1] != 1) abort();
  require_success(cuMemFree(device));
}

static void *copy_in_thread(void *large)
{
  unsigned char *host = malloc(LARGE);
  if (!host) abort();
  require_success(cuCtxSetCurrent(context));
  for (int i = 0; i < COPIES; i++)
    copy_there_and_back(host, SMALL);
  if (large) copy_there_and_back(host, LARGE);
  free(host);
  return NULL;
}

int main(void)
{
  pthread_t threads[THREADS];
  CUdevice device;
  int status = -1;
  require_success(cuInit(0));
  require_success(cuDeviceGet(&device, 0));
  require_success(cuDevicePrimaryCtxRetain(&context, device));
  for (int round = 0; round < 3; round++) {
    for (int i = 0; i < THREADS; i++)
      if (pthread_create(&threads[i], NULL, copy_in_thread, i ? NULL : &context)) abort();
    for (int i = 0; i < THREADS; i++)
      (void)pthread_join(threads[i], NULL);
  }
  pid_t pid = fork();
  if (!pid) exit(cuDeviceGet(&device, 0) == CUDA_SUCCESS ? 1 : 0);
  (void)waitpid(pid, &status, 0);
  (void)printf("done %d\n", WIFEXITED(status));
  return 0;
}
