/* fake_cudart.c: a runtime of nothing, built as libcudart.so.12 and .13, that says by its answers
 * which copy was called: the pointer it gives out is MAJOR * 0x1000000 + the bytes asked for. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

int cudaMalloc(void **p, size_t bytes)
{
  if (!p) return 1;
  *p = (void *)(uintptr_t)(MAJOR * 0x1000000u + bytes);
  return 0;
}

int cudaFree(void *p)
{
  (void)p;
  return 0;
}

/* Does this library, looking for its own function, find its own? (Linked with -Bsymbolic, as
 * NVIDIA's is, so that the name means its own here.) */
int cudaFakeFindsItself(void)
{
  void *self = dlopen(SONAME, RTLD_NOW | RTLD_NOLOAD);
  int found = self && (int (*)(void *))dlsym(self, "cudaFree") == cudaFree;

  if (self) dlclose(self);
  return found;
}
