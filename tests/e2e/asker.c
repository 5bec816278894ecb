/* asker.c: asks the same again and again, and counts.
 *
 *   asker loop N                N times each of five questions, and work that is queued
 *   asker few N                 N times each of them, and then one kind from 300 places
 *   asker threads N             the same as loop, by each of four threads
 *   asker fork N                the same, by this process, then by it and a child
 *   asker driver N              two questions by the driver's functions, looked up in two ways
 *   asker errors N              questions that fail: what they return, and the last error after
 *                               them
 *   asker forever COUNTERS      until it is killed, counting in the shared file before and after
 *
 * Prints the answers that a program may rely on, so that runs can be compared. */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/e2e/ticker.h"

enum { THREADS = 4 };

static void *block;

static void want_status(int got, int status)
{
  if (got == status) return;
  (void)fprintf(stderr, "asker: %d where %d was expected\n", got, status);
  exit(1);
}

static void CUDART_CB nothing(void *data)
{
  (void)data;
}

static void ask_each(void)
{
  size_t available, total;
  struct cudaDeviceProp properties;
  struct cudaPointerAttributes attributes;
  int warp = 0, device = -1;
  want_status(cudaMemGetInfo(&available, &total), 0);
  want_status(cudaGetDeviceProperties(&properties, 0), 0);
  want_status(cudaDeviceGetAttribute(&warp, cudaDevAttrWarpSize, 0), 0);
  want_status(cudaPointerGetAttributes(&attributes, block), 0);
  want_status(cudaGetDevice(&device), 0);
  want_status(properties.warpSize == warp && available <= total && device == 0, 1);
  want_status(attributes.type, cudaMemoryTypeDevice);
}

static void ask_in_a_loop(unsigned long n)
{
  for (unsigned long i = 0; i < n; i++) {
    ask_each();
    want_status(cudaLaunchHostFunc(NULL, nothing, NULL), 0);
  }
  want_status(cudaDeviceSynchronize(), 0);
}

#define ASK     want_status(cudaGetDeviceCount(&count), 0);
#define ASK_10  ASK ASK ASK ASK ASK ASK ASK ASK ASK ASK
#define ASK_100 ASK_10 ASK_10 ASK_10 ASK_10 ASK_10 ASK_10 ASK_10 ASK_10 ASK_10 ASK_10

static void ask_from_many_places(void)
{
  int count;
  for (int i = 0; i < 100; i++) {
    ASK_100 ASK_100 ASK_100
  }
  printf("%d devices\n", count);
}

static void *ask_in_a_thread(void *n)
{
  ask_in_a_loop(*(unsigned long *)n);
  return NULL;
}

static void ask_in_threads(unsigned long n)
{
  pthread_t t[THREADS];
  for (int i = 0; i < THREADS; i++)
    want_status(pthread_create(&t[i], NULL, ask_in_a_thread, &n), 0);
  for (int i = 0; i < THREADS; i++)
    want_status(pthread_join(t[i], NULL), 0);
}

/* A child has no device; what it may ask is how many there are. */
static void ask_for_devices(unsigned long n)
{
  int count;
  for (unsigned long i = 0; i < n; i++)
    want_status(cudaGetDeviceCount(&count) >= 0, 1);
}

static void ask_in_a_child(unsigned long n)
{
  int status;
  ask_for_devices(n);
  pid_t child = fork();
  if (child == 0) {
    ask_for_devices(2 * n);
    (void)cudaFree(NULL); /* something to record: it has a spool */
    ask_for_devices(2 * n);
    exit(0);
  }
  want_status(waitpid(child, &status, 0) == child && status == 0, 1);
  ask_for_devices(n);
}

typedef CUresult memory_function(size_t *, size_t *);
typedef CUresult attribute_function(int *, CUdevice_attribute, CUdevice);

static void ask_the_driver(unsigned long n)
{
  size_t available, total;
  int warp;
  void *found = NULL, *driver = dlopen("libcuda.so.1", RTLD_NOW);
  want_status(cuGetProcAddress("cuMemGetInfo", &found, CUDA_VERSION, 0, NULL), 0);
  memory_function *memory = (memory_function *)(uintptr_t)found;
  attribute_function *attribute =
      (attribute_function *)(uintptr_t)dlsym(driver, "cuDeviceGetAttribute");
  for (unsigned long i = 0; i < n; i++) {
    want_status((int)memory(&available, &total), 0);
    want_status((int)attribute(&warp, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0), 0);
    want_status(cudaLaunchHostFunc(NULL, nothing, NULL), 0);
  }
  want_status(cudaDeviceSynchronize(), 0);
}

static void ask_what_fails(unsigned long n)
{
  int value = -7, wrong = 0;
  size_t free_bytes = 0, total = 0;
  for (unsigned long i = 0; i < n; i++) {
    wrong += cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 99);
    wrong += cudaPeekAtLastError();
    want_status(cudaMemGetInfo(&free_bytes, &total), 0);
    wrong += cudaPeekAtLastError();
    wrong += cudaGetLastError();
    wrong += cudaGetDevice(NULL);
    wrong += cudaGetLastError();
    wrong += cudaGetLastError();
  }
  printf("%d in all, value %d\n", wrong, value);
}

static void until_killed(const char *file)
{
  size_t available, total;
  int fd = open(file, O_RDWR);
  ticker_page *page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (page == MAP_FAILED) exit(1);
  for (;;) {
    atomic_fetch_add(&page->begun, 1);
    want_status(cudaMemGetInfo(&available, &total), 0);
    atomic_fetch_add(&page->done, 1);
  }
}

int main(int argc, char **argv)
{
  if (argc != 3) return 2;
  unsigned long n = strtoul(argv[2], NULL, 10);
  want_status(cudaMalloc(&block, 64), 0);
  if (!strcmp(argv[1], "loop")) ask_in_a_loop(n);
  if (!strcmp(argv[1], "few")) ask_in_a_loop(n), ask_from_many_places();
  if (!strcmp(argv[1], "threads")) ask_in_threads(n);
  if (!strcmp(argv[1], "fork")) ask_in_a_child(n);
  if (!strcmp(argv[1], "driver")) ask_the_driver(n);
  if (!strcmp(argv[1], "errors")) ask_what_fails(n);
  if (!strcmp(argv[1], "forever")) until_killed(argv[2]);
  want_status(cudaFree(block), 0);
  puts("done");
  return 0;
}
