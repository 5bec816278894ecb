/* trap_fixes.c: what a program may rely on of objects that it makes again and again, and of
 * questions that it asks again and again. What it prints is the error of each call and what it was
 * told. */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/reroute/trap.h"

static uint64_t hash_of(const void *data, size_t bytes)
{
  uint64_t h = UINT64_C(0xcbf29ce484222325);
  for (size_t i = 0; i < bytes; i++)
    h = (h ^ ((const uint8_t *)data)[i]) * UINT64_C(0x100000001b3);
  return h;
}

/* Ends the output of a child: what it prints comes once. */
static void in_child(void (*run)(void))
{
  int status = 0;
  (void)fflush(stdout);
  pid_t child = fork();
  if (!child) {
    run();
    (void)fflush(stdout);
    _exit(0);
  }
  (void)waitpid(child, &status, 0);
  printf("child %x\n", (unsigned)status);
}

/* The same in several threads at once, which print nothing: the sum of what they return. */
static unsigned in_threads(void *(*run)(void *))
{
  enum { THREADS = 6 };
  pthread_t t[THREADS];
  unsigned sum = 0;
  for (uintptr_t i = 0; i < THREADS; i++)
    (void)pthread_create(&t[i], NULL, run, (void *)i);
  for (int i = 0; i < THREADS; i++) {
    void *result = NULL;
    (void)pthread_join(t[i], &result);
    sum += (unsigned)(uintptr_t)result;
  }
  return sum;
}

/* ---- properties of devices ------------------------------------------------------------------- */

/* Bytes of the structure that no answer fills are the program's. */
static void ask_all_devices(void)
{
  struct {
    struct cudaDeviceProp p;
    char after[64];
  } answer;
  int count = 0;
  PRINT(cudaGetDeviceCount(&count));
  for (int device = -1; device < count + 1; device++)
    for (int fill = 0; fill < 2; fill++) {
      memset(&answer, fill ? 0x77 : 0x55, sizeof answer);
      PRINT(cudaGetDeviceProperties(&answer.p, device));
      printf("%016llx\n", (unsigned long long)hash_of(&answer, sizeof answer));
    }
  PRINT(cudaGetDeviceProperties(NULL, 0));
  PRINT(cudaGetLastError());
}

static void *ask_first_device(void *unused)
{
  struct cudaDeviceProp p, first;
  uintptr_t wrong = 0;
  (void)unused;
  memset(&first, 0, sizeof first);
  memset(&p, 0, sizeof p);
  if (cudaGetDeviceProperties(&first, 0)) return (void *)1;
  for (int i = 0; i < 100; i++)
    wrong +=
        cudaGetDeviceProperties(&p, 0) || hash_of(&p, sizeof p) != hash_of(&first, sizeof first);
  return (void *)wrong;
}

/* Another process sets the compute mode; what else has changed is found by asking. */
static void change_devices(void)
{
  int (*set)(int, int) = NULL;
  void *driver = dlopen("libcuda.so.1", RTLD_LAZY);
  if (driver) *(void **)&set = dlsym(driver, "weir_sim_set_attribute");
  if (!set) return;
  PRINT(set(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 7));
  PRINT(set(CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, 2));
}

static void properties(void)
{
  void *p;
  for (int i = 0; i < 3; i++)
    ask_all_devices();
  PRINT(cudaMalloc(&p, MIB));
  ask_all_devices();
  printf("threads %u\n", in_threads(ask_first_device));
  change_devices();
  for (int i = 0; i < 3; i++)
    ask_all_devices();
  PRINT(cudaDeviceReset());
  for (int i = 0; i < 3; i++)
    ask_all_devices();
  in_child(ask_all_devices);
}

const trap trap_fixes[] = {{"properties", properties}, {NULL, NULL}};
