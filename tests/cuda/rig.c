/* rig.c: see rig.h. */
#include "tests/cuda/rig.h"

#include <dlfcn.h>
#include "cuda/sim/control.h"

static const void *control(const char *name)
{
  return dlsym(RTLD_DEFAULT, name);
}

bool rig_simulated(void)
{
  return control("weir_sim_hold") != NULL && !getenv("WEIR_RIG_REAL");
}

void rig_fail(const char *list)
{
  int (*set)(const char *);
  *(const void **)&set = control("weir_sim_set_fail");
  ck_assert(set != NULL);
  ck_assert_int_eq(set(list), 0);
}

uint64_t rig_calls(const char *function)
{
  uint64_t (*count)(const char *);
  *(const void **)&count = control("weir_sim_count");
  ck_assert(count != NULL);
  return count(function);
}

/* ---- the device ------------------------------------------------------------------------------ */

void rig_open(rig *r)
{
  memset(r, 0, sizeof *r);
  weir_ok(device_open(0, &r->real));
  CUdevice device;
  ok(cuDeviceGet(&device, 0));
  ok(cuDevicePrimaryCtxRetain(&r->context, device));
  ok(cuCtxSetCurrent(r->context));
  r->backend = *r->real;
}

weir_status rig_try_pool(rig *r, const char *conf)
{
  pool_config config = pool_config_default;
  weir_ok(pool_config_parse(&config, "conf", conf));
  return pool_new(&r->p, &r->backend, &config);
}

void rig_pool(rig *r, const char *conf)
{
  weir_ok(rig_try_pool(r, conf));
  for (int i = 0; i < LANES; i++)
    if (!i || r->lanes[i].stream) weir_ok(pool_heap(r->p, r->lanes[i].stream, &r->lanes[i].heap));
}

void rig_end(rig *r)
{
  for (int i = 0; i < LANES; i++)
    gate_open_all(&r->lanes[i]);
  weir_ok(pool_free(r->p));
  r->p = NULL;
}

void rig_lanes(rig *r, int count)
{
  for (int i = 1; i < count; i++) {
    lane *l = &r->lanes[i];
    if (!l->stream) ok(cuStreamCreate(&l->stream, CU_STREAM_NON_BLOCKING));
    if (!rig_simulated() && !l->word) {
      ok(cuMemHostAlloc((void **)&l->word, sizeof *l->word, CU_MEMHOSTALLOC_DEVICEMAP));
      *l->word = 0;
    }
    if (r->p) weir_ok(pool_heap(r->p, l->stream, &l->heap));
  }
}

/* ---- gates ----------------------------------------------------------------------------------- */

void gate_add(lane *l)
{
  l->gates++;
  if (l->word) {
    ok(cuStreamWaitValue32(l->stream, (CUdeviceptr)(uintptr_t)l->word, l->gates,
                           CU_STREAM_WAIT_VALUE_GEQ));
    return;
  }
  int (*hold)(void *);
  *(const void **)&hold = control("weir_sim_hold");
  ck_assert_int_eq(hold(l->stream), 0);
}

void gate_open(lane *l)
{
  if (l->opened == l->gates) return;
  l->opened++;
  if (l->word) {
    __atomic_store_n(l->word, l->opened, __ATOMIC_SEQ_CST);
    return;
  }
  int (*release)(void *);
  *(const void **)&release = control("weir_sim_release");
  ck_assert_int_eq(release(l->stream), 0);
}

void gate_open_all(lane *l)
{
  while (l->opened != l->gates)
    gate_open(l);
}

/* ---- the pool -------------------------------------------------------------------------------- */

void rig_check(rig *r)
{
  const char *wrong = pool_check(r->p);
  ck_assert_msg(!wrong, "%s", wrong);
}

void *rig_malloc(rig *r, int at, uint64_t bytes)
{
  void *out = NULL;
  weir_ok(weir_tcache_malloc(r->lanes[at].heap, bytes, &out));
  return out;
}

void rig_free(rig *r, void *ptr)
{
  (void)r;
  weir_ok(weir_tcache_free(ptr));
}

int64_t rig_stat(rig *r, size_t offset)
{
  weir_memory_stats all;
  pthread_mutex_lock(&r->p->lock);
  pool_stats(r->p, &all);
  pthread_mutex_unlock(&r->p->lock);
  return *(int64_t *)((char *)&all + offset);
}

uint64_t rig_random(uint64_t *state)
{
  uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31;
}

int rig_run(const char *name, const TTest *const *tests, int loops)
{
  static const char *const of_the_user[] = {
      "CUDA_VISIBLE_DEVICES", "WEIR_SIM_FAIL",   "WEIR_SIM_LINK",  "WEIR_SIM_COUNTS",
      "CUDA_LAUNCH_BLOCKING", "WEIR_SIM_MEMORY", "WEIR_ALLOC_CONF"};
  (void)setenv("WEIR_SIM_DEVICES", "2", 1);
  if (rig_simulated()) (void)setenv("WEIR_CUDNN", "off", 1); /* NVIDIA's own refuses the device */
  for (size_t i = rig_simulated() ? 0 : 1; i < sizeof of_the_user / sizeof *of_the_user; i++)
    (void)unsetenv(of_the_user[i]);
  Suite *suite = suite_create(name);
  TCase *group = tcase_create("all");
  tcase_set_timeout(group, 0);
  for (; *tests; tests++)
    tcase_add_loop_test(group, *tests, 0, loops);
  suite_add_tcase(suite, group);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}
