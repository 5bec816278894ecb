/* stub.c: a library with functions of the driver's names that load the driver at their first call,
 * so that it can be loaded where there is none. As TensorFlow's does. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>

int cuInit(unsigned flags);
int cuMemAlloc_v2(unsigned long long *p, size_t bytes);

static void *driver(const char *name)
{
  static void *handle;

  if (!handle) handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  return handle ? dlsym(handle, name) : NULL;
}

int cuInit(unsigned flags)
{
  int (*real)(unsigned) = (int (*)(unsigned))driver("cuInit");

  return real ? real(flags) : 303;
}

int cuMemAlloc_v2(unsigned long long *p, size_t bytes)
{
  int (*real)(unsigned long long *, size_t) =
      (int (*)(unsigned long long *, size_t))driver("cuMemAlloc_v2");

  return real ? real(p, bytes) : 303;
}

int plugin_run(void)
{
  unsigned long long p = 0;

  printf("init: %d\n", cuInit(0));
  printf("init of nothing: %d\n", cuInit(1));
  for (int i = 0; i < 2; i++) {
    printf("alloc: %d", cuMemAlloc_v2(&p, 16));
    printf(" %llx\n", p);
  }
  return 0;
}
