/* pointers.c: a program that keeps what it looks up in variables of the functions' names, which its
 * plug-ins can see. As those with cuew do. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>

int (*cuInit)(unsigned);
int (*cuMemAlloc_v2)(unsigned long long *, size_t);

int main(void)
{
  void *h = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  unsigned long long p = 0;

  if (!h) return 1;
  cuInit = (int (*)(unsigned))dlsym(h, "cuInit");
  cuMemAlloc_v2 = (int (*)(unsigned long long *, size_t))dlsym(h, "cuMemAlloc_v2");
  printf("init: %d\n", cuInit(0));
  printf("alloc: %d", cuMemAlloc_v2(&p, 16));
  printf(" %llx\n", p);
  return 0;
}
