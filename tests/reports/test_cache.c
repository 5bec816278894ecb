/* test_cache.c: what the report says of caches, on synthetic spools: hits, misses and why, memory
 * cached at a moment, what went back, waits, taints, staging. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/reports/synth.h"

#define HOST WEIR_DEVICE_NONE
#define MIB  (UINT64_C(1) << 20)

/* The one process is rerouted. */
static void begin_rerouted_spool(uint32_t mode)
{
  synth_open(synth_dir());
  spool_current()->mode = mode;
}

static const char *close_and_import(void)
{
  const char *one[] = {synth_spool(), NULL};
  synth_close();
  return synth_import("t.db", one);
}

static void record_cached_alloc(uint64_t at, uint64_t pointer, uint64_t bytes, int why)
{
  synth_event(0, at, 10,
              (trace_event){.kind = WEIR_EV_ALLOC,
                            .api = synth_api("cudaMalloc"),
                            .flags = why ? 0 : WEIR_EVF_CACHED,
                            .reason = (uint8_t)why,
                            .a = pointer,
                            .bytes = bytes,
                            .mem = WEIR_MEM_DEVICE});
}

static void release(uint64_t at, uint64_t pointer, uint64_t cached, int why, uint64_t waited)
{
  synth_event(0, at, 100 + waited,
              (trace_event){.kind = WEIR_EV_FREE,
                            .api = synth_api("cudaFree"),
                            .flags = cached ? WEIR_EVF_CACHED : 0,
                            .reason = (uint8_t)why,
                            .a = pointer,
                            .b = waited,
                            .bytes = cached,
                            .mem = WEIR_MEM_DEVICE});
}

static void fact(uint64_t at, cache_fact what, uint64_t a, uint64_t b, uint64_t bytes)
{
  synth_event(0, at, 50,
              (trace_event){.kind = WEIR_EV_CACHE,
                            .cache_fact = (uint8_t)what,
                            .device = what == WEIR_CACHE_TAINTED ? HOST : 0,
                            .a = a,
                            .b = b,
                            .bytes = bytes,
                            .mem = WEIR_MEM_DEVICE});
}

static json_t *cache_of(const char *path)
{
  char *text = NULL;
  size_t bytes = 0;
  report_settings o = {.format = WEIR_REPORT_JSON_1};
  FILE *out = open_memstream(&text, &bytes);
  ck_assert_ptr_nonnull(out);
  ck_assert_msg(report_cache(out, path, &o) == WEIR_OK, "%s", weir_error_message());
  (void)fclose(out);
  json_t *j = json_loads(text, 0, NULL);
  ck_assert_ptr_nonnull(j);
  free(text);
  return j;
}

/* A number by its path: "device.hits". */
static int64_t cache_number(const json_t *j, const char *path)
{
  char part[64];
  j = json_object_get(j, "cache");
  while (j && *path) {
    size_t n = strcspn(path, ".");
    (void)snprintf(part, sizeof part, "%.*s", (int)n, path);
    j = json_object_get(j, part);
    path += n + (path[n] == '.');
  }
  ck_assert_msg(json_is_integer(j), "%s", path);
  return json_integer_value(j);
}

/* `member` of the row of a reason in a list; -1: no such row. */
static int64_t reason_number(const json_t *j, const char *list, const char *reason,
                             const char *member)
{
  size_t i;
  json_t *x;
  json_array_foreach(json_object_get(json_object_get(j, "cache"), list), i,
                     x) if (!strcmp(json_string_value(json_object_get(x, "reason")),
                                    reason)) return json_integer_value(json_object_get(x, member));
  return -1;
}

START_TEST(hits_and_misses_are_told_with_their_reasons)
{
  begin_rerouted_spool(1);
  record_cached_alloc(100, 0x1000, 3 * MIB, WEIR_WHY_NO_CACHE);
  record_cached_alloc(200, 0x2000, 3 * MIB, WEIR_WHY_FIRST);
  record_cached_alloc(300, 0x3000, 3 * MIB, WEIR_WHY_IN_USE);
  release(400, 0x2000, 4 * MIB, 0, 700);
  record_cached_alloc(1300, 0x2000, 4 * MIB, 0);
  record_cached_alloc(1400, 0x4000, 512, WEIR_WHY_FIRST);
  release(1500, 0x1000, 0, 0, 0);
  release(1600, 0x3000, 0, WEIR_WHY_GRAPH, 0);
  json_t *j = cache_of(close_and_import());
  ck_assert_str_eq(json_string_value(json_object_get(json_object_get(j, "cache"), "mode")),
                   "strict");
  ck_assert_int_eq(cache_number(j, "hits"), 1);
  ck_assert_int_eq(cache_number(j, "misses"), 3);
  ck_assert_int_eq(cache_number(j, "device.hit_bytes"), 4 * MIB);
  ck_assert_int_eq(cache_number(j, "device.miss_bytes"), 6 * MIB + 512);
  ck_assert_int_eq(cache_number(j, "pinned.hits") + cache_number(j, "pinned.misses"), 0);
  ck_assert_int_eq(reason_number(j, "misses_by_reason", "first_of_size", "count"), 2);
  ck_assert_int_eq(reason_number(j, "misses_by_reason", "first_of_size", "bytes"), 3 * MIB + 512);
  ck_assert_int_eq(reason_number(j, "misses_by_reason", "in_use", "count"), 1);
  ck_assert_int_eq(reason_number(j, "allocs_left_to_driver", "no_cache", "count"), 1);
  ck_assert_int_eq(reason_number(j, "frees_left_to_driver", "graph", "count"), 1);
  ck_assert_int_eq(cache_number(j, "frees_kept"), 1);
  ck_assert_int_eq(cache_number(j, "waits_kept"), 1);
  ck_assert_int_eq(cache_number(j, "waits_kept_ns"), 700);
  json_decref(j);
}
END_TEST

START_TEST(cached_memory_is_followed_from_the_free_to_the_next_use_or_the_way_back)
{
  begin_rerouted_spool(2);
  record_cached_alloc(100, 0x1000, 2 * MIB, WEIR_WHY_FIRST);
  record_cached_alloc(200, 0x2000, 4 * MIB, WEIR_WHY_FIRST);
  release(300, 0x1000, 2 * MIB, WEIR_WHY_PENDING, 0);
  release(500, 0x2000, 4 * MIB, WEIR_WHY_PENDING, 0); /* 6 MiB cached */
  record_cached_alloc(700, 0x1000, 2 * MIB, 0);       /* 4 */
  fact(800, WEIR_CACHE_GIVEN_BACK, 0x2000, WEIR_WHY_DECAY, 4 * MIB);
  release(950, 0x1000, 2 * MIB, 0, 0); /* 2 */
  synth_sync(0, 9000, 1000, WEIR_SYNC_CONTEXT);
  json_t *j = cache_of(close_and_import());
  ck_assert_int_eq(cache_number(j, "device.cached_peak_bytes"), 6 * MIB);
  ck_assert_int_eq(cache_number(j, "device.cached_end_bytes"), 2 * MIB);
  ck_assert_int_eq(cache_number(j, "held_peak_bytes"), 6 * MIB);
  ck_assert_int_eq(cache_number(j, "waits_avoided"), 2);
  ck_assert_int_eq(cache_number(j, "waits_kept"), 0);
  ck_assert_int_eq(reason_number(j, "given_back", "decay", "count"), 1);
  ck_assert_int_eq(reason_number(j, "given_back", "decay", "bytes"), 4 * MIB);
  ck_assert_int_eq(reason_number(j, "given_back", "decay", "ns"), 50);
  const json_t *curve = json_object_get(json_object_get(j, "cache"), "curve");
  ck_assert_uint_eq(json_array_size(curve), 100);
  ck_assert_int_eq(json_integer_value(json_array_get(curve, 0)), 0);
  ck_assert_int_eq(json_integer_value(json_array_get(curve, 4)), 2 * MIB);
  ck_assert_int_eq(json_integer_value(json_array_get(curve, 6)), 6 * MIB);
  ck_assert_int_eq(json_integer_value(json_array_get(curve, 50)), 2 * MIB);
  ck_assert_int_eq(json_integer_value(json_array_get(curve, 99)), 2 * MIB);
  json_decref(j);
}
END_TEST

START_TEST(a_reset_takes_what_its_device_had)
{
  begin_rerouted_spool(1);
  record_cached_alloc(100, 0x1000, 2 * MIB, WEIR_WHY_FIRST);
  release(200, 0x1000, 2 * MIB, 0, 1);
  synth_event(
      0, 400, 10,
      (trace_event){.kind = WEIR_EV_RESET, .api = synth_api("cudaDeviceReset"), .device = 0});
  json_t *j = cache_of(close_and_import());
  ck_assert_int_eq(cache_number(j, "device.cached_peak_bytes"), 2 * MIB);
  ck_assert_int_eq(cache_number(j, "device.cached_end_bytes"), 0);
  json_decref(j);
}
END_TEST

START_TEST(caches_go_with_their_process)
{
  char first[512];
  begin_rerouted_spool(1);
  record_cached_alloc(100, 0x1000, 3 * MIB, WEIR_WHY_FIRST);
  release(200, 0x1000, 4 * MIB, 0, 0);
  synth_close();
  (void)snprintf(first, sizeof first, "%s", synth_spool());
  begin_rerouted_spool(1);
  record_cached_alloc(100, 0x1000, 3 * MIB, WEIR_WHY_FIRST);
  release(200, 0x1000, 4 * MIB, 0, 0);
  synth_close();
  const char *both[] = {first, synth_spool(), NULL};
  const char *t = synth_import("t.db", both);
  char *text = synth_text(t, 100);
  ck_assert_ptr_nonnull(strstr(text, "cached at most 4.00 MiB, 8.00 MiB at the ends of"));
  free(text);
  json_t *j = cache_of(t);
  ck_assert_int_eq(cache_number(j, "device.cached_peak_bytes"), 4 * MIB);
  ck_assert_int_eq(cache_number(j, "held_peak_bytes"), 4 * MIB);
  ck_assert_int_eq(cache_number(j, "device.cached_end_bytes"), 8 * MIB);
  json_decref(j);
}
END_TEST

START_TEST(taints_and_staging_are_told)
{
  begin_rerouted_spool(1);
  fact(100, WEIR_CACHE_TAINTED, 0x1000, WEIR_WHY_IPC, MIB);
  fact(200, WEIR_CACHE_TAINTED, 0, WEIR_WHY_GRAPH, 0);
  fact(300, WEIR_CACHE_STAGING, WEIR_COPY_HTOD, 250, 16 * MIB);
  fact(400, WEIR_CACHE_STAGING, WEIR_COPY_DTOH, 90, 0);
  synth_copy(0, 500, 100, WEIR_COPY_HTOD, 4 * MIB, 0, HOST, WEIR_MEM_DEVICE, WEIR_MEM_PAGEABLE,
             WEIR_EVF_STAGED);
  synth_copy(0, 700, 200, WEIR_COPY_DTOH, 2 * MIB, HOST, 0, WEIR_MEM_PAGEABLE, WEIR_MEM_DEVICE, 0);
  synth_copy(0, 1000, 200, WEIR_COPY_DTOH, 512, HOST, 0, WEIR_MEM_PAGEABLE, WEIR_MEM_DEVICE, 0);
  json_t *j = cache_of(close_and_import());
  ck_assert_int_eq(reason_number(j, "tainted", "ipc", "bytes"), MIB);
  ck_assert_int_eq(reason_number(j, "tainted", "graph", "count"), 1);
  const json_t *both = json_object_get(json_object_get(j, "cache"), "staging");
  const json_t *to = json_array_get(both, 0), *from = json_array_get(both, 1);
  ck_assert_int_eq(json_integer_value(json_object_get(to, "bytes")), 4 * MIB);
  ck_assert_double_eq(json_real_value(json_object_get(to, "bytes_per_second")),
                      4.0 * MIB * 1e9 / 100);
  ck_assert_double_eq(json_real_value(json_object_get(to, "gain")), 2.5);
  ck_assert_str_eq(json_string_value(json_object_get(to, "measured_by")), "this program");
  ck_assert_int_eq(json_integer_value(json_object_get(from, "copies")), 0);
  ck_assert_int_eq(json_integer_value(json_object_get(from, "left_copies")), 1);
  ck_assert_double_eq(json_real_value(json_object_get(from, "gain")), 0.9);
  ck_assert_str_eq(json_string_value(json_object_get(from, "measured_by")), "an earlier program");
  json_decref(j);
}
END_TEST

/* It happens within a call of the program's, and is none. */
START_TEST(a_fact_is_no_call)
{
  begin_rerouted_spool(1);
  record_cached_alloc(100, 0x1000, MIB, WEIR_WHY_FIRST);
  fact(200, WEIR_CACHE_GIVEN_BACK, 0x9000, WEIR_WHY_LIMIT, MIB);
  const char *path = close_and_import();
  json_t *j = synth_json(path);
  ck_assert_uint_eq(json_array_size(json_object_get(j, "apis")), 1);
  ck_assert_int_eq(synth_total(j, "events"), 2);
  ck_assert_int_eq(synth_total(j, "failed_calls"), 0);
  ck_assert_int_eq(json_integer_value(json_object_get(json_object_get(j, "cache"), "misses")), 1);
  json_decref(j);
  ck_assert_int_eq(synth_number(path, "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_RUNTIME"), 1);
  ck_assert_int_eq(synth_number(path, "SELECT count(*) FROM event e JOIN event_kind k ON"
                                      " k.id = e.kind JOIN cache_reason r ON r.id = e.b"
                                      " WHERE k.name = 'cache' AND r.name = 'limit'"),
                   1);
}
END_TEST

START_TEST(an_observed_run_has_no_caches)
{
  begin_rerouted_spool(0);
  synth_alloc(0, 100, 10, 0x1000, MIB, 0, WEIR_MEM_DEVICE);
  synth_free(0, 300, 10, 0x1000);
  const char *path = close_and_import();
  json_t *j = cache_of(path);
  ck_assert_str_eq(json_string_value(json_object_get(json_object_get(j, "cache"), "mode")),
                   "observe");
  ck_assert_int_eq(
      cache_number(j, "hits") + cache_number(j, "misses") + cache_number(j, "held_peak_bytes"), 0);
  json_decref(j);
  char *text = synth_text(path, 100);
  ck_assert_ptr_null(strstr(text, "Caches"));
  free(text);
}
END_TEST

START_TEST(the_summary_of_a_rerouted_run_has_a_section_of_it)
{
  begin_rerouted_spool(1);
  record_cached_alloc(100, 0x1000, MIB, WEIR_WHY_FIRST);
  release(200, 0x1000, MIB, 0, 5000000);
  record_cached_alloc(6000000, 0x1000, MIB, 0);
  fact(6000100, WEIR_CACHE_TAINTED, 0x1000, WEIR_WHY_IPC, MIB);
  char *text = synth_text(close_and_import(), 120);
  ck_assert_ptr_nonnull(strstr(text, "Caches, strict"));
  ck_assert_ptr_nonnull(strstr(text, "device: 1 of 2 allocations from a cache (50 %)"));
  ck_assert_ptr_nonnull(strstr(text, "misses: the first of its size 1"));
  ck_assert_ptr_nonnull(
      strstr(text, "waits: 5.00 ms host time in 1 free, which relaxed would not have waited"));
  ck_assert_ptr_nonnull(strstr(text, "never to be cached: shared with another process 1"));
  free(text);
}
END_TEST

static void pool_fact(uint64_t at, cache_fact what, uint64_t pool, uint64_t used, uint64_t reserved,
                      uint64_t threshold, bool own)
{
  synth_event(0, at, 5,
              (trace_event){.kind = WEIR_EV_CACHE,
                            .cache_fact = (uint8_t)what,
                            .device = 1,
                            .src_device = own ? HOST : 1,
                            .a = pool,
                            .b = used,
                            .bytes = reserved,
                            .stream = threshold,
                            .mem = WEIR_MEM_DEVICE});
}

static json_t *pool_at(const json_t *j, size_t i)
{
  return json_array_get(json_object_get(json_object_get(j, "cache"), "pools"), i);
}

static int64_t pool_number(const json_t *pool, const char *member)
{
  const json_t *x = json_object_get(pool, member);
  ck_assert_msg(json_is_integer(x), "%s", member);
  return json_integer_value(x);
}

/* Observed, too: they are the driver's. */
START_TEST(the_drivers_pools_are_told_as_they_were_last_and_at_their_peak)
{
  begin_rerouted_spool((uint32_t)_i);
  pool_fact(100, WEIR_CACHE_POOL, 0xd0, MIB, 2 * MIB, 0, false);
  pool_fact(105, WEIR_CACHE_POOL_PEAK, 0xd0, MIB, 2 * MIB, 0, false);
  pool_fact(200, WEIR_CACHE_POOL, 0xa0, 3 * MIB, 4 * MIB, UINT64_MAX, true);
  pool_fact(205, WEIR_CACHE_POOL_PEAK, 0xa0, 5 * MIB, 6 * MIB, 0, true);
  pool_fact(300, WEIR_CACHE_POOL_ENDED, 0xa0, 0, 0, 0, true);
  pool_fact(400, WEIR_CACHE_POOL, 0xa0, 0, MIB, 512, true); /* another, by the same handle */
  pool_fact(500, WEIR_CACHE_POOL, 0xd0, 0, MIB, 0, false);
  const char *path = close_and_import();
  json_t *j = cache_of(path);
  json_t *own = pool_at(j, 0), *first = pool_at(j, 1), *next = pool_at(j, 2);
  ck_assert_ptr_null(pool_at(j, 3));
  ck_assert_int_eq(pool_number(own, "pool"), 0xa0);
  ck_assert(json_is_true(json_object_get(own, "destroyed")));
  ck_assert(json_is_false(json_object_get(own, "default")));
  ck_assert(json_is_null(json_object_get(own, "release_threshold_bytes")));
  ck_assert_int_eq(pool_number(own, "reserved_bytes"), 4 * MIB);
  ck_assert_int_eq(pool_number(own, "used_peak_bytes"), 5 * MIB);
  ck_assert_int_eq(pool_number(own, "keeps_idle_most_bytes"), 6 * MIB);
  ck_assert(json_is_true(json_object_get(first, "default")));
  ck_assert_int_eq(pool_number(first, "device"), 1);
  ck_assert_int_eq(pool_number(first, "reserved_bytes"), MIB);
  ck_assert_int_eq(pool_number(first, "used_bytes"), 0);
  ck_assert_int_eq(pool_number(first, "reserved_peak_bytes"), 2 * MIB);
  ck_assert_int_eq(pool_number(first, "keeps_idle_most_bytes"), 0);
  ck_assert_int_eq(pool_number(first, "samples"), 2);
  ck_assert_int_eq(pool_number(next, "pool"), 0xa0);
  ck_assert(json_is_false(json_object_get(next, "destroyed")));
  ck_assert_int_eq(pool_number(next, "keeps_idle_most_bytes"), 512);
  json_decref(j);
  char *text = synth_text(path, 120);
  ck_assert_ptr_nonnull(strstr(text, "stream-ordered pools"));
  ck_assert_ptr_nonnull(strstr(text, "0xa0, destroyed"));
  free(text);
}
END_TEST

/* Whatever numbers a spool has, the report ends. */
START_TEST(numbers_without_sense_do_no_harm)
{
  begin_rerouted_spool(1);
  record_cached_alloc(100, 0x1000, UINT64_MAX, 250);
  release(200, 0x1000, UINT64_MAX, 251, UINT64_C(1) << 60);
  record_cached_alloc(300, 0x1000, UINT64_MAX, 0);
  for (int what = 0; what < 256; what += 15)
    fact(400, (cache_fact)what, UINT64_MAX, UINT64_MAX, UINT64_MAX);
  for (int what = 1; what < 10; what++)
    fact(500, (cache_fact)what, UINT64_MAX, UINT64_MAX, UINT64_MAX);
  for (uint64_t i = 0; i < 300; i++) /* more pools than anybody lists */
    pool_fact(600 + i, WEIR_CACHE_POOL, i << 60, UINT64_MAX - i, i, UINT64_MAX, i & 1);
  const char *path = close_and_import();
  json_t *j = cache_of(path);
  ck_assert_int_eq(cache_number(j, "hits"), 1);
  json_decref(j);
  free(synth_text(path, 60));
}
END_TEST

int main(void)
{
  Suite *s = suite_create("reports/cache");
  TCase *t = tcase_create("cache");
  tcase_set_timeout(t, 0);
  tcase_add_checked_fixture(t, NULL, synth_clean);
  tcase_add_test(t, hits_and_misses_are_told_with_their_reasons);
  tcase_add_test(t, cached_memory_is_followed_from_the_free_to_the_next_use_or_the_way_back);
  tcase_add_test(t, a_reset_takes_what_its_device_had);
  tcase_add_test(t, caches_go_with_their_process);
  tcase_add_test(t, taints_and_staging_are_told);
  tcase_add_test(t, a_fact_is_no_call);
  tcase_add_test(t, an_observed_run_has_no_caches);
  tcase_add_test(t, the_summary_of_a_rerouted_run_has_a_section_of_it);
  tcase_add_loop_test(t, the_drivers_pools_are_told_as_they_were_last_and_at_their_peak, 0, 3);
  tcase_add_test(t, numbers_without_sense_do_no_harm);
  suite_add_tcase(s, t);
  SRunner *r = srunner_create(s);
  srunner_run_all(r, CK_ENV);
  int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed != 0;
}
