/* sim.h: the software device's controls (cuda/sim/control.h), found in the driver that the runtime
 * loaded; and how many calls of the driver a piece of code makes, by kind. */
#ifndef WEIR_TESTS_SIM_RT_SIM_H
#define WEIR_TESTS_SIM_RT_SIM_H

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *sim_symbol(const char *name)
{
  void *driver = dlopen("libcuda.so.1", RTLD_NOW);
  void *p = driver ? dlsym(driver, name) : NULL;
  if (!p) {
    (void)fprintf(stderr, "the software device has no %s: %s\n", name, dlerror());
    exit(1);
  }
  return p;
}

#define SIM(type, name) ((type)(uintptr_t)sim_symbol(#name))

static __attribute__((unused)) int sim_hold(void *stream)
{
  return SIM(int (*)(void *), weir_sim_hold)(stream);
}

static __attribute__((unused)) int sim_release(void *stream)
{
  return SIM(int (*)(void *), weir_sim_release)(stream);
}

static __attribute__((unused)) int sim_fail(const char *list)
{
  return SIM(int (*)(const char *), weir_sim_set_fail)(list);
}

static __attribute__((unused)) uint64_t sim_count(const char *function)
{
  return SIM(uint64_t(*)(const char *), weir_sim_count)(function);
}

/* Calls so far of the functions whose names begin with one of the prefixes; the list of names is
 * the driver's exports. */
static __attribute__((unused)) uint64_t sim_count_all(const char *const *names)
{
  uint64_t n = 0;
  for (; *names; names++)
    n += sim_count(*names);
  return n;
}

#endif
