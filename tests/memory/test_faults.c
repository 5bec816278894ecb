/* test_faults.c: every Nth operation of the device or of host memory fails, for all N: the call
 * that met the failure says so, and the allocator is consistent and goes on. */
#include <string.h>
#include "core/weir.h"
#include "tests/memory/rig.h"

static const uint64_t pages[] = {2 * 1024 * 1024, 0};
static const weir_status errors[] = {WEIR_EOOM, WEIR_ECUDA, WEIR_ENOMEM};

enum { SLOTS = 24 };

/* A capture of stream 1 into a private pool; what fails leaves nothing underway. */
static int capture(rig *r)
{
  weir_graph_pool *g = NULL;
  mem_heap *h;
  void *at[4] = {0};
  int failed = 0;
  if (pool_heap(r->p, fake_handle(&r->f, 1), &h)) return 1;
  pthread_mutex_lock(&r->p->lock);
  weir_status st = graph_pool_new(r->p, &g);
  pthread_mutex_unlock(&r->p->lock);
  if (st) return 1;
  ck_assert_int_eq(weir_graph_pool_begin(g, (weir_stream *)h), WEIR_OK);
  r->f.streams[1].capturing = true;
  for (int i = 0; i < 4; i++) {
    failed += weir_tcache_malloc(h, i % 2 ? 3 * MIB : 9 * KIB, &at[i]) != WEIR_OK;
    if (i == 1 && at[1]) ck_assert_int_eq(weir_tcache_free(at[1]), WEIR_OK);
    rig_check(r);
  }
  r->f.streams[1].capturing = false;
  ck_assert_int_eq(weir_graph_pool_end(g, (weir_stream *)h), WEIR_OK);
  ck_assert_int_eq(weir_graph_pool_release(g), WEIR_OK);
  for (int i = 0; i < 4; i++)
    if (at[i] && i != 1) ck_assert_int_eq(weir_tcache_free(at[i]), WEIR_OK);
  ck_assert_int_eq(weir_graph_pool_release(g), WEIR_OK);
  rig_check(r);
  return failed;
}

/* A program that meets every path; failures are allowed everywhere. How many calls failed. Checked
 * is what a failure left, and now and then. */
static int program(rig *r)
{
  void *at[SLOTS] = {0};
  uint64_t seed = 5;
  int failed = 0, seen = 0;
  for (int i = 0; i < 90; i++) {
    int k = (int)(rig_random(&seed) % SLOTS), s = (int)(rig_random(&seed) % 3);
    mem_heap *h;
    if (pool_heap(r->p, fake_handle(&r->f, s), &h)) {
      failed++;
      continue;
    }
    if (at[k]) {
      if (i % 3 == 0) failed += pool_use(at[k], h) != WEIR_OK;
      fake_submit(&r->f, s, nothing, NULL);
      ck_assert_int_eq(weir_tcache_free(at[k]), WEIR_OK);
      at[k] = NULL;
    } else {
      uint64_t bytes = 1 + rig_random(&seed) % (i % 4 ? 3 * MIB : 40 * KIB);
      void *out = &at[k];
      if (weir_tcache_malloc(h, bytes, &out))
        failed++;
      else
        at[k] = out;
    }
    if (i % 45 == 20) failed += capture(r);
    if (i == 62 && s) failed += weir_stream_release((weir_stream *)h) != WEIR_OK;
    if (i % 30 == 29) failed += weir_pool_empty(r->p) != WEIR_OK;
    if (failed != seen || i % 10 == 9) rig_check(r);
    seen = failed;
  }
  for (int k = 0; k < SLOTS; k++)
    if (at[k]) ck_assert_int_eq(weir_tcache_free(at[k]), WEIR_OK);
  rig_check(r);
  return failed;
}

/* The whole life with operation n failing; false: there was no nth operation. */
static bool run_life_failing_op(uint64_t page, uint64_t n, bool and_after, weir_status error)
{
  static rig r;
  pool_config config = pool_config_default;
  memset(&r, 0, sizeof r);
  fake_init(&r.f, 96 * MIB, page);
  config.soft_limit_bytes = 8 * MIB; /* so that the later steps of the reuse order are met */
  fake_fail(&r.f, n, and_after, error);
  weir_status st = pool_new(&r.p, &r.f.backend, &config);
  if (!st) {
    fake_hold(&r.f, 2);
    (void)program(&r);
    fake_release(&r.f, 2);
  }
  bool met = r.f.operations >= n;
  fake_fail(&r.f, 0, false, WEIR_OK);
  if (!st) {
    weir_memory_stats now;
    ck_assert_int_eq(program(&r), 0); /* and now all is well again */
    pthread_mutex_lock(&r.p->lock);
    pool_stats(r.p, &now);
    pthread_mutex_unlock(&r.p->lock);
    ck_assert_int_eq(now.allocated_bytes, 0);
    ck_assert_int_eq(now.requested_bytes, 0);
    rig_stop(&r);
  } else {
    ck_assert(met);
    ck_assert(fake_clean(&r.f));
    fake_fini(&r.f);
  }
  return met;
}

START_TEST(every_failure_leaves_a_working_allocator)
{
  uint64_t n = 1;
  while (run_life_failing_op(pages[_i % 2], n, false, errors[_i / 2]))
    n += 1;
  ck_assert_uint_ge(n, 40);
}
END_TEST

START_TEST(a_device_that_is_gone_leaves_a_working_allocator)
{
  uint64_t n = 1;
  while (run_life_failing_op(pages[_i % 2], n, true, errors[_i / 2]))
    n += 3;
}
END_TEST

/* A pool whose end fails can be ended again. */
START_TEST(ending_can_be_tried_again)
{
  static rig r;
  bool met = true;
  for (uint64_t n = 1; met; n++) {
    rig_start(&r, 64 * MIB, pages[_i], NULL);
    rig_free(&r, rig_malloc(&r, 1, 3 * MIB));
    rig_free(&r, rig_malloc(&r, 0, 1000));
    fake_fail(&r.f, n, false, WEIR_ECUDA);
    weir_status st = pool_free(r.p);
    met = st != WEIR_OK;
    fake_fail(&r.f, 0, false, WEIR_OK);
    if (met) {
      rig_stop(&r);
    } else {
      ck_assert(fake_clean(&r.f));
      fake_fini(&r.f);
    }
  }
}
END_TEST

int main(void)
{
  Suite *s = suite_create("faults");
  TCase *t = tcase_create("every nth");
  tcase_set_timeout(t, 300);
  tcase_add_loop_test(t, every_failure_leaves_a_working_allocator, 0, 6);
  tcase_add_loop_test(t, a_device_that_is_gone_leaves_a_working_allocator, 0, 6);
  tcase_add_loop_test(t, ending_can_be_tried_again, 0, 2);
  suite_add_tcase(s, t);
  return rig_run(s);
}
