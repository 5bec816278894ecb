/* test_oom.c: why an allocation failed: each reason, with its numbers. */
#include <string.h>
#include "core/weir.h"
#include "tests/memory/rig.h"

static rig r;

static void hold_stream(int s)
{
  (void)rig_stream(&r, s);
  r.f.streams[s].capturing = true; /* nobody can know when its work is complete */
}

static weir_oom_info expect_oom(int stream, uint64_t bytes, weir_oom_reason reason)
{
  void *out;
  weir_oom_info o;
  ck_assert_int_eq(weir_tcache_malloc(rig_stream(&r, stream), bytes, &out), WEIR_EOOM);
  rig_check(&r);
  ck_assert_int_eq(weir_memory_last_oom(&o), WEIR_OK);
  ck_assert_msg(o.reason == reason, "%s", weir_error_message());
  ck_assert_ptr_nonnull(strstr(weir_error_message(), weir_oom_reason_string(reason)));
  ck_assert_ptr_eq(strstr(weir_error_message(), "CUDA out of memory. Tried to allocate "),
                   weir_error_message());
  ck_assert_uint_eq(o.requested, bytes);
  return o;
}

START_TEST(no_failure_no_report)
{
  weir_oom_info o;
  ck_assert_int_eq(weir_memory_last_oom(&o), WEIR_ENOENT);
}
END_TEST

START_TEST(truly_full)
{
  rig_start(&r, 64 * MIB, 2 * MIB, NULL);
  void *a = rig_malloc(&r, 1, 40 * MIB), *b = rig_malloc(&r, 2, 20 * MIB);
  weir_oom_info o = expect_oom(1, 8 * MIB, WEIR_OOM_FULL);
  ck_assert_uint_eq(o.capacity, 64 * MIB);
  ck_assert_uint_eq(o.limit, 64 * MIB);
  ck_assert_uint_eq(o.device_free, 4 * MIB);
  ck_assert_uint_eq(o.others, 0);
  ck_assert_uint_eq(o.reserved, 60 * MIB);
  ck_assert_uint_eq(o.live, 60 * MIB);
  ck_assert_uint_eq(o.free + o.cached + o.stranded + o.waiting + o.pinned + o.paused, 0);
  ck_assert_uint_eq(o.stream_count, 2);
  ck_assert_ptr_eq(o.streams[0].native, fake_handle(&r.f, 1));
  ck_assert_uint_eq(o.streams[0].live, 40 * MIB);
  ck_assert_uint_eq(o.streams[1].live, 20 * MIB);
  rig_free(&r, a);
  rig_free(&r, b);
  rig_stop(&r);
}
END_TEST

START_TEST(larger_than_the_device)
{
  rig_start(&r, 64 * MIB, 2 * MIB, NULL);
  weir_oom_info o = expect_oom(1, 65 * MIB, WEIR_OOM_TOO_LARGE);
  ck_assert_uint_eq(o.device_free, 64 * MIB);
  (void)expect_oom(1, UINT64_MAX, WEIR_OOM_TOO_LARGE);
  rig_stop(&r);
}
END_TEST

START_TEST(other_processes)
{
  rig_start(&r, 64 * MIB, 2 * MIB, NULL);
  void *a = rig_malloc(&r, 1, 10 * MIB);
  r.f.used += 30 * MIB;
  weir_oom_info o = expect_oom(1, 40 * MIB, WEIR_OOM_OTHERS);
  ck_assert_uint_eq(o.others, 30 * MIB);
  ck_assert_uint_eq(o.device_free, 24 * MIB);
  (void)expect_oom(1, 60 * MIB, WEIR_OOM_FULL); /* nor without the others */
  r.f.used -= 30 * MIB;
  rig_free(&r, a);
  rig_stop(&r);
}
END_TEST

START_TEST(stranded_on_a_stream)
{
  rig_start(&r, 64 * MIB, 2 * MIB, NULL);
  void *a = rig_malloc(&r, 1, 50 * MIB), *b = rig_malloc(&r, 2, 4 * MIB);
  fake_submit(&r.f, 1, nothing, NULL);
  hold_stream(1);
  rig_free(&r, a);
  weir_oom_info o = expect_oom(2, 40 * MIB, WEIR_OOM_STRANDED);
  ck_assert_uint_eq(o.stranded, 50 * MIB);
  ck_assert_uint_eq(o.free, 50 * MIB);
  ck_assert_uint_eq(o.largest_free, 50 * MIB);
  ck_assert_uint_eq(o.live, 4 * MIB);
  ck_assert_ptr_eq(o.streams[0].native, fake_handle(&r.f, 1));
  ck_assert_uint_eq(o.streams[0].stranded, 50 * MIB);
  ck_assert_ptr_nonnull(strstr(weir_error_message(), "stranded on streams 50.00"));
  r.f.streams[1].capturing = false;
  rig_free(&r, b);
  rig_stop(&r);
}
END_TEST

START_TEST(waiting_for_an_export)
{
  rig_start(&r, 64 * MIB, 2 * MIB, NULL);
  void *a = rig_malloc(&r, 1, 50 * MIB);
  ck_assert_int_eq(weir_memory_export(a), WEIR_OK);
  rig_free(&r, a);
  weir_oom_info o = expect_oom(1, 40 * MIB, WEIR_OOM_STRANDED);
  ck_assert_uint_eq(o.waiting, 50 * MIB);
  ck_assert_int_eq(weir_memory_unexport(a), WEIR_OK);
  rig_stop(&r);
}
END_TEST

START_TEST(fragmented)
{
  rig_start(&r, 80 * MIB, 0, NULL);
  void *at[16];
  for (int i = 0; i < 16; i++)
    at[i] = rig_malloc(&r, 0, 5 * MIB);
  for (int i = 0; i < 16; i += 2)
    rig_free(&r, at[i]);
  weir_oom_info o = expect_oom(0, 12 * MIB, WEIR_OOM_FRAGMENTED);
  ck_assert_uint_eq(o.free, 40 * MIB);
  ck_assert_uint_eq(o.largest_free, 5 * MIB);
  ck_assert_uint_eq(o.live, 40 * MIB);
  for (int i = 1; i < 16; i += 2)
    rig_free(&r, at[i]);
  rig_stop(&r);
}
END_TEST

static weir_status all_is_free(void *self, uint64_t *free_bytes, uint64_t *total_bytes)
{
  (void)self;
  *free_bytes = *total_bytes = 64 * MIB;
  return WEIR_OK;
}

START_TEST(refused_by_the_driver)
{
  rig_start(&r, 64 * MIB, _i ? 2 * MIB : 0, NULL);
  r.f.backend.source.mem_info = all_is_free; /* as it says, and gives nothing */
  fake_fail(&r.f, 1, true, WEIR_EOOM);
  weir_oom_info o = expect_oom(0, 512, WEIR_OOM_REFUSED);
  ck_assert_ptr_nonnull(strstr(weir_error_message(), "Tried to allocate 512 bytes. GPU 0 has "));
  ck_assert_uint_eq(o.reserved, 0);
  (void)expect_oom(0, 20 * KIB, WEIR_OOM_REFUSED);
  ck_assert_ptr_nonnull(strstr(weir_error_message(), "Tried to allocate 20.00 KiB. GPU 0 has "));
  (void)expect_oom(0, 30 * MIB, WEIR_OOM_REFUSED);
  ck_assert_ptr_nonnull(strstr(weir_error_message(), "Tried to allocate 30.00 MiB. GPU 0 has "));
  fake_fail(&r.f, 0, false, WEIR_OK);
  rig_free(&r, rig_malloc(&r, 0, 30 * MIB));
  rig_stop(&r);
}
END_TEST

START_TEST(pinned_down_by_a_graph)
{
  rig_start(&r, 64 * MIB, 2 * MIB, NULL);
  weir_graph_pool *g;
  pthread_mutex_lock(&r.p->lock);
  ck_assert_int_eq(graph_pool_new(r.p, &g), WEIR_OK);
  pthread_mutex_unlock(&r.p->lock);
  ck_assert_int_eq(weir_graph_pool_begin(g, (weir_stream *)rig_stream(&r, 1)), WEIR_OK);
  void *a = rig_malloc(&r, 1, 44 * MIB);
  rig_free(&r, a);
  ck_assert_int_eq(weir_graph_pool_end(g, (weir_stream *)rig_stream(&r, 1)), WEIR_OK);
  weir_oom_info o = expect_oom(1, 30 * MIB, WEIR_OOM_GRAPH);
  ck_assert_uint_eq(o.pinned, 44 * MIB);
  ck_assert_uint_eq(o.free, 0);
  ck_assert_ptr_nonnull(strstr(weir_error_message(), "pinned by graphs 44.00"));
  ck_assert_int_eq(weir_graph_pool_release(g), WEIR_OK);
  ck_assert_int_eq(weir_graph_pool_release(g), WEIR_OK);
  rig_stop(&r);
}
END_TEST

START_TEST(budget_and_fraction)
{
  rig_start(&r, 100 * MIB, 2 * MIB, _i ? NULL : "limit_mb:40");
  if (_i) r.p->fraction = 0.4;
  void *a = rig_malloc(&r, 1, 30 * MIB);
  weir_oom_info o = expect_oom(1, 20 * MIB, _i ? WEIR_OOM_FRACTION : WEIR_OOM_BUDGET);
  ck_assert_uint_eq(o.limit, 40 * MIB);
  ck_assert_uint_eq(o.device_free, 70 * MIB);
  ck_assert_uint_eq(o.reserved, 30 * MIB);
  (void)expect_oom(1, 80 * MIB, WEIR_OOM_FULL); /* nor without the limit */
  rig_free(&r, a);
  rig_stop(&r);
}
END_TEST

START_TEST(the_largest_owners_are_named)
{
  rig_start(&r, 64 * MIB, 2 * MIB, NULL);
  void *at[24];
  tag_now = 1; /* unnamed here: the name is the API's */
  for (int i = 0; i < 20; i++)
    at[i] = rig_malloc(&r, 0, 2 * MIB);
  tag_now = 0;
  for (int i = 20; i < 24; i++)
    at[i] = rig_malloc(&r, 0, 4 * MIB);
  rig_free(&r, rig_malloc(&r, 0, 1000)); /* kept by the thread until memory is short */
  weir_oom_info o = expect_oom(0, 30 * MIB, WEIR_OOM_FULL);
  ck_assert_uint_eq(o.tag_count, 2);
  ck_assert_uint_eq(o.tags[0].bytes, 40 * MIB);
  ck_assert_uint_eq(o.tags[0].blocks, 20);
  ck_assert_str_eq(o.tags[1].name, "untagged");
  ck_assert_uint_eq(o.tags[1].bytes, 16 * MIB);
  ck_assert_uint_eq(o.owner_count, 2);
  ck_assert_str_eq(o.owners[0].name, "blocks of 2.00 MiB");
  ck_assert_uint_eq(o.owners[0].blocks, 20);
  ck_assert_str_eq(o.owners[1].name, "blocks of 4.00 MiB");
  ck_assert_uint_eq(o.owners[1].bytes, 16 * MIB);
  for (int i = 0; i < 24; i++)
    rig_free(&r, at[i]);
  rig_stop(&r);
}
END_TEST

START_TEST(paused_memory_is_told_apart)
{
  rig_start(&r, 64 * MIB, 2 * MIB, NULL);
  void *a = rig_malloc(&r, 1, 30 * MIB);
  pthread_mutex_lock(&r.p->lock);
  ck_assert_int_eq(pool_pause(r.p, 1000, false), WEIR_OK);
  pthread_mutex_unlock(&r.p->lock);
  void *b = rig_malloc(&r, 1, 60 * MIB);
  weir_oom_info o = expect_oom(1, 10 * MIB, WEIR_OOM_FULL);
  ck_assert_uint_eq(o.paused, 30 * MIB);
  ck_assert_uint_eq(o.reserved, 60 * MIB);
  rig_free(&r, a);
  rig_free(&r, b);
  rig_stop(&r);
}
END_TEST

__attribute__((noinline)) static void *greedy_loader(weir_device d, size_t bytes)
{
  void *out = NULL;
  ck_assert_int_eq(weir_malloc(&out, bytes, d, NULL), WEIR_OK);
  return out;
}

START_TEST(call_sites_are_the_owners_where_history_is_on)
{
  fake f;
  void *out;
  weir_oom_info o;
  const weir_device cuda0 = WEIR_CUDA_AT(0);
  fake_init(&f, 64 * MIB, 2 * MIB);
  ck_assert_int_eq(weir_memory_attach(&f.backend, NULL), WEIR_OK);
  ck_assert_int_eq(weir_memory_record_history(cuda0, WEIR_HISTORY_STATE, WEIR_CONTEXT_STATE, 0),
                   WEIR_OK);
  void *a = greedy_loader(cuda0, 40 * MIB);
  ck_assert_int_eq(weir_malloc(&out, 40 * MIB, cuda0, NULL), WEIR_EOOM);
  ck_assert_int_eq(weir_memory_last_oom(&o), WEIR_OK);
  ck_assert_uint_eq(o.owner_count, 1);
  ck_assert_uint_eq(o.owners[0].bytes, 40 * MIB);
  ck_assert_msg(strstr(o.owners[0].name, "greedy_loader") != NULL, "%s", o.owners[0].name);
  ck_assert_ptr_nonnull(strstr(weir_error_message(), "largest: greedy_loader"));
  ck_assert_int_eq(weir_free(a), WEIR_OK);
  ck_assert_int_eq(weir_memory_record_history(cuda0, WEIR_HISTORY_OFF, WEIR_CONTEXT_NONE, 0),
                   WEIR_OK);
  ck_assert_int_eq(weir_memory_detach(cuda0), WEIR_OK);
  ck_assert(fake_clean(&f));
  fake_fini(&f);
}
END_TEST

/* ---- the promise: live + request <= 98 % of the capacity succeeds ------------------------------
 * Whatever streams hold, in whatever order things were freed. Pages are what can be moved, so with
 * sizes of whole pages it is 100 %; with others the piece of a page beside a live block is what the
 * 2 % are for: on a device of 32 GiB, up to 300 blocks. */

typedef struct promise {
  void *at[300];
  uint64_t size[300], live, seed, tight;
} promise;

static uint64_t some_size(promise *q, bool pages)
{
  uint64_t kind = rig_random(&q->seed) % 16, most = kind < 9 ? 100 : kind < 15 ? 400 : 4000;
  uint64_t bytes = 1 + rig_random(&q->seed) % (most * MIB);
  if (pages) return ((bytes + 16 * MIB - 1) / (16 * MIB)) * 16 * MIB;
  return kind < 4 ? bytes / 4096 : bytes;
}

static void step_promised_bytes(promise *q, uint64_t most, bool pages)
{
  int k = (int)(rig_random(&q->seed) % 300), s = (int)(rig_random(&q->seed) % 6);
  if (rig_random(&q->seed) % 8 == 0) fake_hold(&r.f, s);
  if (rig_random(&q->seed) % 8 == 0) fake_release(&r.f, (int)(rig_random(&q->seed) % 6));
  (void)rig_stream(&r, s);
  fake_submit(&r.f, s, nothing, NULL);
  if (q->at[k]) {
    ck_assert_int_eq(weir_tcache_free(q->at[k]), WEIR_OK);
    q->at[k] = NULL;
    q->live -= q->size[k];
    return;
  }
  q->size[k] = round_request(r.p, some_size(q, pages));
  if (q->live + q->size[k] > most) return;
  q->tight += q->live + q->size[k] > most - most / 20;
  ck_assert_msg(weir_tcache_malloc(rig_stream(&r, s), q->size[k], &q->at[k]) == WEIR_OK,
                "with %.2f MiB live: %s", (double)q->live / MIB, weir_error_message());
  q->live += q->size[k];
}

START_TEST(a_request_that_fits_in_98_percent_succeeds)
{
  static promise q;
  const uint64_t capacity = 32768 * MIB;
  bool pages = _i % 2;
  q = (promise){.seed = 100 + (uint64_t)_i};
  rig_start(&r, capacity, 2 * MIB, _i % 3 == 2 ? "soft_limit_mb:9000" : NULL);
  for (int i = 0; i < (SANITIZED ? 1500 : 6000); i++) {
    step_promised_bytes(&q, pages ? capacity : capacity / 100 * 98, pages);
    if (i % 500 == 0) rig_check(&r);
  }
  ck_assert_uint_gt(q.tight, 20);
  for (int k = 0; k < 300; k++)
    if (q.at[k]) ck_assert_int_eq(weir_tcache_free(q.at[k]), WEIR_OK);
  for (int s = 0; s < 6; s++)
    fake_release(&r.f, s);
  rig_stop(&r);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("oom");
  TCase *t = tcase_create("reasons");
  tcase_add_test(t, no_failure_no_report);
  tcase_add_test(t, truly_full);
  tcase_add_test(t, larger_than_the_device);
  tcase_add_test(t, other_processes);
  tcase_add_test(t, stranded_on_a_stream);
  tcase_add_test(t, waiting_for_an_export);
  tcase_add_test(t, fragmented);
  tcase_add_loop_test(t, refused_by_the_driver, 0, 2);
  tcase_add_test(t, pinned_down_by_a_graph);
  tcase_add_loop_test(t, budget_and_fraction, 0, 2);
  tcase_add_test(t, the_largest_owners_are_named);
  tcase_add_test(t, paused_memory_is_told_apart);
  tcase_add_test(t, call_sites_are_the_owners_where_history_is_on);
  suite_add_tcase(s, t);
  t = tcase_create("promise");
  tcase_set_timeout(t, 120);
  tcase_add_loop_test(t, a_request_that_fits_in_98_percent_succeeds, 0, 6);
  suite_add_tcase(s, t);
  return rig_run(s);
}
