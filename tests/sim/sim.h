/* sim.h: what the suites of the software device's driver share.
 *
 * Every test runs in a process of its own (Check forks), with four devices and the primary context
 * of device 0 current. That a call is asynchronous is shown by holding its stream: if it returns
 * while the stream is held, it did not wait; if its effect is not there yet, it did not happen at
 * the call. A call that must wait is made on a thread, which cannot come back before the release.
 */
#ifndef WEIR_TESTS_SIM_H
#define WEIR_TESTS_SIM_H

#define __CUDA_API_VERSION_INTERNAL 1
#include <cuda.h>
#include <check.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cuda/sim/control.h"
#include "cuda/sim/twin.h"

#define ok(call)           ck_assert_int_eq((int)(call), CUDA_SUCCESS)
#define fails(call, error) ck_assert_int_eq((int)(call), (int)(error))
#define EXPORT             __attribute__((visibility("default")))
#define UNUSED             __attribute__((unused))

static UNUSED CUcontext primary(CUdevice device)
{
  CUcontext c;
  ok(cuDevicePrimaryCtxRetain(&c, device));
  return c;
}

static UNUSED void set_up_device0(void)
{
  ok(cuInit(0));
  ok(cuCtxSetCurrent(primary(0)));
}

static UNUSED CUdeviceptr device_bytes(size_t n)
{
  CUdeviceptr p;
  ok(cuMemAlloc_v2(&p, n));
  return p;
}

static UNUSED void *pinned_bytes(size_t n)
{
  void *p;
  ok(cuMemHostAlloc(&p, n, 0));
  return p;
}

static UNUSED void pattern(void *p, size_t n, unsigned seed)
{
  for (size_t i = 0; i < n; i++)
    ((unsigned char *)p)[i] = (unsigned char)(seed + i * 7 + (i >> 8));
}

/* A call made on a thread of its own, with the starter's context current. */
struct call {
  pthread_t thread;
  CUcontext context;
  CUresult (*make)(void *);
  void *argument;
  CUresult result;
  _Atomic bool back; /* it has returned */
};

static UNUSED void *call_main(void *p)
{
  struct call *c = p;
  cuCtxSetCurrent(c->context);
  c->result = c->make(c->argument);
  atomic_store(&c->back, true);
  return NULL;
}

static UNUSED void call_start(struct call *c, CUresult (*make)(void *), void *argument)
{
  c->make = make;
  c->argument = argument;
  atomic_init(&c->back, false);
  ok(cuCtxGetCurrent(&c->context));
  ck_assert_int_eq(pthread_create(&c->thread, NULL, call_main, c), 0);
}

/* Gives others every chance to do what they should not. */
static UNUSED void give_way(void)
{
  for (int i = 0; i < 200; i++)
    sched_yield();
}

/* Starts it, waits until it is inside `function`, and gives it every chance to come back wrongly.
 */
static UNUSED void call_blocked(struct call *c, const char *function, CUresult (*make)(void *),
                                void *argument)
{
  uint64_t before = weir_sim_count(function);
  call_start(c, make, argument);
  while (weir_sim_count(function) == before)
    sched_yield();
  give_way();
  ck_assert(!atomic_load(&c->back));
}

static UNUSED CUresult call_end(struct call *c)
{
  pthread_join(c->thread, NULL);
  return c->result;
}

/* One group of tests, each after `setup`. */
static UNUSED void add_group(Suite *suite, const char *name, const TTest *const *tests,
                             void (*setup)(void))
{
  TCase *group = tcase_create(name);
  tcase_set_timeout(group, 0);
  if (setup) tcase_add_checked_fixture(group, setup, NULL);
  for (; *tests; tests++)
    tcase_add_test(group, *tests);
  suite_add_tcase(suite, group);
}

/* The suite of one file: `tests`, each after `setup`, and `bare`, after nothing; either may be
 * NULL. */
static UNUSED int run_groups(const char *name, const TTest *const *tests, void (*setup)(void),
                             const TTest *const *bare)
{
  static const char *const of_the_user[] = {
      "CUDA_VISIBLE_DEVICES", "WEIR_SIM_FAIL",   "WEIR_SIM_LINK",  "WEIR_SIM_COUNTS",
      "CUDA_LAUNCH_BLOCKING", "WEIR_SIM_MEMORY", "WEIR_SIM_CUPTI", "WEIR_SIM_CARD"};
  setenv("WEIR_SIM_DEVICES", "4", 1);
  for (size_t i = 0; i < sizeof of_the_user / sizeof *of_the_user; i++)
    unsetenv(of_the_user[i]);
  Suite *suite = suite_create(name);
  if (tests) add_group(suite, "with a context", tests, setup);
  if (bare) add_group(suite, "bare", bare, NULL);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}

static UNUSED int run_tests(const char *name, const TTest *const *tests, void (*setup)(void))
{
  return run_groups(name, tests, setup, NULL);
}

#endif
