/* loader.c: modules and contexts of the driver's, loaded, unloaded, made and destroyed at random.
 *
 *   loader SEED alone|beside
 *
 * Asks the driver itself around each such call what the device has free, and keeps its own account.
 * Its last line: for code and for contexts, how often some was taken, bytes in all, the most at
 * once, and what is left at the end. beside: another thread allocates all the while. Every third
 * seed resets the primary context at the end. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include "tests/e2e/driver.h"

enum { CONTEXTS = 4, MODULES = 12, STEPS = 120 };

static const char image[] = "// made by hand\n"
                            ".version 8.0\n.target sm_80\n.address_size 64\n"
                            ".visible .global .align 4 .f32 table[786432];\n"
                            ".visible .entry empty()\n{ ret; }\n";

typedef struct account {
  long long count, bytes, live, peak;
} account;

typedef struct code {
  CUmodule module; /* NULL: none */
  int context;     /* that it is of */
  long long bytes;
} code;

static account of_code, of_contexts;
static code modules[MODULES];
static CUcontext contexts[CONTEXTS]; /* 0: the primary one */
static long long context_bytes[CONTEXTS];
static uint64_t rng;
static _Atomic int done;

static unsigned draw_number(unsigned n)
{
  rng = rng * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (unsigned)(rng >> 33) % n;
}

static long long free_now(void)
{
  size_t bytes, total;
  CHECK(cuMemGetInfo(&bytes, &total));
  return (long long)bytes;
}

static void add_to(account *a, long long bytes)
{
  if (!bytes) return;
  a->count++;
  a->bytes += bytes;
  a->live += bytes;
  if (a->live > a->peak) a->peak = a->live;
}

static void load_module(code *m, int context)
{
  long long before = free_now();
  CHECK(cuModuleLoadData(&m->module, image));
  m->bytes = before - free_now();
  m->context = context;
  add_to(&of_code, m->bytes);
}

/* The first time, its variable is given memory. */
static void ask_variable(code *m)
{
  CUdeviceptr at;
  size_t bytes;
  long long before = free_now(), took;
  CHECK(cuModuleGetGlobal(&at, &bytes, m->module, "table"));
  took = before - free_now();
  m->bytes += took;
  add_to(&of_code, took);
}

static void forget(code *m)
{
  of_code.live -= m->bytes;
  *m = (code){NULL, 0, 0};
}

static void change_module(code *m, int context)
{
  if (!m->module) {
    load_module(m, context);
  } else if (m->context == context && draw_number(2)) {
    CHECK(cuModuleUnload(m->module));
    forget(m);
  } else {
    ask_variable(m);
  }
}

static void change_context(int i)
{
  if (!contexts[i]) {
    long long before = free_now();
    CHECK(cuCtxCreate(&contexts[i], NULL, 0, 0)); /* and current */
    context_bytes[i] = before - free_now();
    add_to(&of_contexts, context_bytes[i]);
    CHECK(cuCtxPopCurrent(&contexts[i])); /* below it no other that may be destroyed */
    return;
  }
  for (int k = 0; k < MODULES; k++)
    if (modules[k].module && modules[k].context == i) forget(&modules[k]);
  of_contexts.live -= context_bytes[i];
  CHECK(cuCtxSetCurrent(contexts[0]));
  CHECK(cuCtxDestroy(contexts[i]));
  contexts[i] = NULL;
}

static void change_something(void)
{
  int context = (int)draw_number(CONTEXTS);
  if (!contexts[context]) context = 0;
  CHECK(cuCtxSetCurrent(contexts[context]));
  if (draw_number(8))
    change_module(&modules[draw_number(MODULES)], context);
  else
    change_context(1 + (int)draw_number(CONTEXTS - 1));
}

static void *allocate(void *unused)
{
  (void)unused;
  CHECK(cuCtxSetCurrent(contexts[0]));
  while (!done) {
    CUdeviceptr p;
    CHECK(cuMemAlloc(&p, 6 << 20));
    CHECK(cuMemFree(p));
  }
  return NULL;
}

int main(int argc, char **argv)
{
  pthread_t other;
  rng = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
  int seed = (int)rng, beside = argc > 2 && argv[2][0] == 'b';
  begin_on_device();
  CHECK(cuCtxGetCurrent(&contexts[0]));
  if (beside && pthread_create(&other, NULL, allocate, NULL)) return 1;
  for (int i = 0; i < STEPS; i++)
    change_something();
  done = 1;
  if (beside && pthread_join(other, NULL)) return 1;
  if (seed % 3 == 0) {
    CHECK(cuDevicePrimaryCtxReset(0));
    for (int k = 0; k < MODULES; k++)
      if (modules[k].module && !modules[k].context) forget(&modules[k]);
  }
  (void)printf("%lld %lld %lld %lld %lld %lld %lld %lld\n", of_code.count, of_code.bytes,
               of_code.peak, of_code.live, of_contexts.count, of_contexts.bytes, of_contexts.peak,
               of_contexts.live);
  return 0;
}
