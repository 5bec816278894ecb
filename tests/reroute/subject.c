/* subject.c: a program for what a user may ask of the caches: `subject WHAT` allocates, copies and
 * frees as WHAT says, and prints what it saw: return codes and contents, no address, no time. */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MIB = 1 << 20 };

/* What fails ends the program. */
#define MUST(call)                                                                                 \
  do {                                                                                             \
    int must_ = (int)(call);                                                                       \
    if (must_) {                                                                                   \
      (void)fprintf(stderr, "%s: %d\n", #call, must_);                                             \
      exit(9);                                                                                     \
    }                                                                                              \
  } while (0)

static void *get(size_t bytes)
{
  void *p = NULL;
  MUST(cudaMalloc(&p, bytes));
  return p;
}

/* Allocates and frees a few times. */
static void churn(void)
{
  for (int i = 0; i < 4; i++)
    MUST(cudaFree(get(2 * MIB)));
  printf("done\n");
}

/* The same, with a debugger that announces itself to the driver now. */
static void debugged(void)
{
  void *driver = dlopen("libcuda.so.1", RTLD_NOW);
  uint32_t *flag = driver ? dlsym(driver, "cudbgIpcFlag") : NULL;
  if (!flag) exit(8);
  *flag = 1;
  churn();
}

static const struct what {
  const char *name;
  void (*run)(void);
} whats[] = {
    {"churn", churn},
    {"debugged", debugged},
};

int main(int argc, char **argv)
{
  for (unsigned i = 0; i < sizeof whats / sizeof *whats; i++)
    if (argc == 2 && !strcmp(argv[1], whats[i].name)) {
      MUST(cudaFree(NULL)); /* the context is there */
      whats[i].run();
      return 0;
    }
  return 2;
}
