/* plugin.c: a plug-in linked with a runtime; `plugin_run` does two cudaMalloc by name and one by a
 * look-up in its own scope. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>

int cudaMalloc(void **p, size_t bytes);

int plugin_run(void)
{
  void *p[3] = {0};
  int (*found)(void **, size_t) = (int (*)(void **, size_t))dlsym(RTLD_DEFAULT, "cudaMalloc");

  cudaMalloc(&p[0], 1);
  cudaMalloc(&p[1], 2);
  if (found) found(&p[2], 3);
  printf("plug-in %p %p %p\n", p[0], p[1], p[2]);
  return 0;
}

/* The library `name`, by this plug-in's RUNPATH. */
int plugin_open(const char *name)
{
  void *h = dlopen(name, RTLD_NOW);

  printf("plug-in %s %s\n", h ? "opens" : "can't open", name);
  if (!h) printf("%s\n", dlerror());
  return h != NULL;
}
