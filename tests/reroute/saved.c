/* saved.c: a program whose memory a library keeps (saver.c), if there is one: `saved runtime` or
 * `saved driver` has three blocks of 32 MiB, which the library takes away and gives back; one
 * more that is freed before; and prints what the calls said and what the memory held. */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { BLOCKS = 3, BYTES = 32 << 20, SMALL = 4 << 20 };

static bool by_driver;

static int get_block(void **p, size_t bytes)
{
  CUdeviceptr at = 0;
  if (!by_driver) return (int)cudaMalloc(p, bytes);
  int r = (int)cuMemAlloc(&at, bytes);
  *p = (void *)(uintptr_t)at;
  return r;
}

static int free_block(void *p)
{
  return by_driver ? (int)cuMemFree((CUdeviceptr)(uintptr_t)p) : (int)cudaFree(p);
}

static void ask_saver(const char *name)
{
  void (*function)(void);
  void *found = dlsym(RTLD_DEFAULT, name);
  memcpy(&function, &found, sizeof found);
  if (function) function();
}

static int last_byte(const void *p)
{
  unsigned char byte = 0;
  int r = (int)cudaMemcpy(&byte, (const char *)p + BYTES - 1, 1, cudaMemcpyDeviceToHost);
  return r ? -r : byte;
}

int main(int argc, char **argv)
{
  void *p[BLOCKS] = {NULL}, *early = NULL;
  by_driver = argc > 1 && strcmp(argv[1], "driver") == 0;
  printf("begin %d\n", (int)cudaFree(NULL));
  ask_saver("saver_begin");
  printf("early %d\n", get_block(&early, SMALL));
  printf("freed %d\n", free_block(early));
  for (int i = 0; i < BLOCKS; i++)
    printf("block %d\n", get_block(&p[i], BYTES));
  ask_saver("saver_pause");
  ask_saver("saver_resume");
  for (int i = 0; i < BLOCKS; i++) {
    int r = (int)cudaMemset(p[i], i + 1, BYTES);
    printf("%d: %d\n", r, last_byte(p[i]));
  }
  for (int i = 0; i < BLOCKS; i++)
    printf("free %d\n", free_block(p[i]));
  return 0;
}
