/* early.c: a library whose constructor calls CUDA, by name and by look-up, and the dynamic linker,
 * before any constructor of the preload library has run. */
#include <dlfcn.h>
#include <stdio.h>

int cudaMalloc(void **p, size_t bytes);
void early(void);

void early(void) {}

__attribute__((constructor)) static void at_start(void)
{
  void *p[3] = {0}, *h = dlopen("libcudart.so.13", RTLD_NOW | RTLD_NOLOAD);
  int (*found)(void **, size_t) = (int (*)(void **, size_t))dlsym(h, "cudaMalloc");

  cudaMalloc(&p[0], 1);
  cudaMalloc(&p[1], 2);
  found(&p[2], 3);
  printf("early %p %p %p %d\n", p[0], p[1], p[2], dlsym(RTLD_DEFAULT, "no such name") != NULL);
}
