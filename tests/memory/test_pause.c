/* test_pause.c: memory that is held: exported blocks, and paused ones. */
#include <string.h>
#include "core/weir.h"
#include "tests/memory/rig.h"

static rig r;

enum { ALL = 1000, WEIGHTS = 1, CACHE = 2 }; /* tags */

static void start_pause_rig(uint64_t capacity)
{
  rig_start(&r, capacity, 2 * MIB, NULL);
}

/* The same with pages of 64 KiB: little to fill. */
static void start_small(uint64_t capacity)
{
  rig_start(&r, capacity, 64 * KIB, NULL);
}

static void *tagged(unsigned tag, uint64_t bytes, int fill)
{
  tag_now = tag;
  void *at = rig_malloc(&r, 1, bytes);
  tag_now = 0;
  memset(at, fill, bytes);
  return at;
}

static bool filled(const void *at, uint64_t bytes, int fill)
{
  const char *c = at;
  return c[0] == (char)fill && !memcmp(c, c + 1, bytes - 1);
}

static weir_status try_pause(unsigned tag, bool save)
{
  pthread_mutex_lock(&r.p->lock);
  weir_status st = pool_pause(r.p, tag, save);
  pthread_mutex_unlock(&r.p->lock);
  rig_check(&r);
  return st;
}

static weir_status try_resume(unsigned tag, uint64_t *lost)
{
  pthread_mutex_lock(&r.p->lock);
  weir_status st = pool_resume(r.p, tag, lost);
  pthread_mutex_unlock(&r.p->lock);
  rig_check(&r);
  return st;
}

static void pause_tag(unsigned tag, bool save)
{
  ck_assert_msg(try_pause(tag, save) == WEIR_OK, "%s", weir_error_message());
}

static uint64_t resume_tag(unsigned tag)
{
  uint64_t lost;
  ck_assert_msg(try_resume(tag, &lost) == WEIR_OK, "%s", weir_error_message());
  return lost;
}

/* ---- exports --------------------------------------------------------------------------------- */

static const uint64_t pages[] = {2 * 1024 * 1024, 0};

START_TEST(an_exported_block_waits_for_the_end_of_its_exports)
{
  rig_start(&r, 64 * MIB, pages[_i], NULL);
  char *a = rig_malloc(&r, 1, 20 * MIB);
  ck_assert_int_eq(weir_memory_export(a), WEIR_OK);
  ck_assert_int_eq(weir_memory_export(a), WEIR_OK);
  rig_free(&r, a);
  ck_assert_int_eq(RIG_STAT(&r, allocated_bytes), 0);
  ck_assert_int_eq(RIG_STAT(&r, active_bytes), 20 * MIB);
  void *b = rig_malloc(&r, 1, 20 * MIB), *out;
  ck_assert_ptr_ne(a, b);
  ck_assert_int_eq(weir_tcache_malloc(rig_stream(&r, 2), 40 * MIB, &out), WEIR_EOOM);
  ck_assert_int_eq(weir_pool_empty(r.p), WEIR_OK);
  memset(a, 1, 20 * MIB); /* still there for the other side */
  ck_assert_int_eq(weir_memory_unexport(a), WEIR_OK);
  rig_check(&r);
  ck_assert_int_eq(RIG_STAT(&r, active_bytes), 40 * MIB);
  ck_assert_int_eq(weir_memory_unexport(a), WEIR_OK);
  rig_check(&r);
  ck_assert_int_eq(RIG_STAT(&r, active_bytes), 20 * MIB);
  ck_assert_int_eq(weir_memory_unexport(a), WEIR_EINVAL);
  void *c = rig_malloc(&r, 1, 20 * MIB);
  ck_assert_ptr_eq(a, c);
  rig_free(&r, b);
  rig_free(&r, c);
  rig_stop(&r);
}
END_TEST

START_TEST(an_exported_small_block_is_kept_too)
{
  start_pause_rig(64 * MIB);
  void *a = rig_malloc(&r, 1, 1000);
  ck_assert_int_eq(weir_memory_export(a), WEIR_OK);
  rig_free(&r, a);
  ck_assert_ptr_ne(rig_malloc(&r, 1, 1000), a);
  ck_assert_int_eq(weir_tcache_free(a), WEIR_EINVAL);
  ck_assert_int_eq(RIG_STAT(&r, allocation), 1);
  ck_assert_int_eq(weir_memory_unexport(a), WEIR_OK);
  tcache_reclaim(r.p);
  rig_check(&r);
  rig_free(&r, (char *)a + 1024);
  rig_stop(&r);
}
END_TEST

START_TEST(an_export_that_ends_before_the_free_leaves_nothing)
{
  start_pause_rig(64 * MIB);
  void *a = rig_malloc(&r, 1, 4 * MIB);
  ck_assert_int_eq(weir_memory_export(a), WEIR_OK);
  ck_assert_int_eq(weir_memory_unexport(a), WEIR_OK);
  rig_free(&r, a);
  ck_assert_ptr_eq(rig_malloc(&r, 1, 4 * MIB), a);
  rig_free(&r, a);
  ck_assert_int_eq(weir_memory_export(a), WEIR_EINVAL);
  ck_assert_int_eq(weir_memory_export(&r), WEIR_EINVAL);
  ck_assert_int_eq(weir_memory_unexport(&r), WEIR_EINVAL);
  rig_stop(&r);
}
END_TEST

START_TEST(an_exported_block_waits_for_streams_as_well)
{
  start_pause_rig(64 * MIB);
  void *a = rig_malloc(&r, 1, 4 * MIB);
  fake_hold(&r.f, 2);
  fake_submit(&r.f, 2, nothing, NULL);
  ck_assert_int_eq(pool_use(a, rig_stream(&r, 2)), WEIR_OK);
  ck_assert_int_eq(weir_memory_export(a), WEIR_OK);
  rig_free(&r, a);
  ck_assert_int_eq(weir_memory_unexport(a), WEIR_OK);
  void *b = rig_malloc(&r, 1, 4 * MIB);
  ck_assert_ptr_ne(a, b);
  fake_release(&r.f, 2);
  ck_assert_ptr_eq(rig_malloc(&r, 1, 4 * MIB), a);
  rig_free(&r, a);
  rig_free(&r, b);
  rig_stop(&r);
}
END_TEST

START_TEST(stitching_goes_around_exported_blocks)
{
  start_pause_rig(64 * MIB);
  void *at[32];
  for (int i = 0; i < 32; i++)
    at[i] = rig_malloc(&r, 0, 2 * MIB);
  for (int i = 0; i < 32; i += 4) {
    ck_assert_int_eq(weir_memory_export(at[i]), WEIR_OK);
    memset(at[i], i + 1, 2 * MIB);
  }
  for (int i = 0; i < 32; i += 2)
    rig_free(&r, at[i]);
  void *large = rig_malloc(&r, 0, 16 * MIB), *out; /* the eight that are not exported */
  ck_assert_int_gt(RIG_STAT(&r, num_stitches), 0);
  memset(large, 99, 16 * MIB);
  ck_assert_int_eq(weir_tcache_malloc(rig_stream(&r, 0), 2 * MIB, &out), WEIR_EOOM);
  for (int i = 0; i < 32; i += 4) {
    ck_assert(filled(at[i], 2 * MIB, i + 1));
    ck_assert_int_eq(weir_memory_unexport(at[i]), WEIR_OK);
  }
  rig_free(&r, large);
  for (int i = 1; i < 32; i += 2)
    rig_free(&r, at[i]);
  rig_stop(&r);
}
END_TEST

/* ---- pausing --------------------------------------------------------------------------------- */

START_TEST(paused_memory_goes_back_and_returns_with_its_contents)
{
  start_pause_rig(64 * MIB);
  char *w = tagged(WEIGHTS, 20 * MIB, 7), *c = tagged(CACHE, 30 * MIB, 9);
  fake_hold(&r.f, 1);
  fake_submit(&r.f, 1, nothing, NULL);
  pause_tag(WEIGHTS, true);
  ck_assert_uint_gt(r.f.syncs, 0); /* work in flight may touch any live block */
  ck_assert_uint_eq(r.f.used, 30 * MIB);
  ck_assert_int_eq(RIG_STAT(&r, reserved_bytes), 30 * MIB);
  ck_assert_int_eq(RIG_STAT(&r, paused_bytes), 20 * MIB);
  ck_assert_int_eq(RIG_STAT(&r, paused_saved_bytes), 20 * MIB);
  ck_assert_int_eq(RIG_STAT(&r, allocated_bytes), 50 * MIB);
  ck_assert(filled(c, 30 * MIB, 9));
  void *other = rig_malloc(&r, 2, 30 * MIB); /* goes on with what was given back */
  ck_assert((char *)other + 30 * MIB <= w || (char *)other >= w + 20 * MIB);
  memset(other, 1, 30 * MIB);
  rig_free(&r, other); /* cached: resuming takes it */
  ck_assert_uint_eq(resume_tag(WEIGHTS), 0);
  ck_assert(filled(w, 20 * MIB, 7));
  ck_assert_int_eq(RIG_STAT(&r, paused_bytes), 0);
  ck_assert_int_eq(RIG_STAT(&r, paused_saved_bytes), 0);
  fake_release(&r.f, 1);
  rig_free(&r, w);
  rig_free(&r, c);
  rig_stop(&r);
}
END_TEST

START_TEST(contents_that_are_not_saved_are_declared_lost)
{
  start_pause_rig(64 * MIB);
  char *c = tagged(CACHE, 30 * MIB, 9), *w = tagged(WEIGHTS, 6 * MIB, 3);
  pause_tag(CACHE, false);
  pause_tag(WEIGHTS, true);
  ck_assert_uint_eq(r.f.used, 0);
  ck_assert_int_eq(RIG_STAT(&r, paused_saved_bytes), 6 * MIB);
  ck_assert_uint_eq(resume_tag(ALL), 30 * MIB);
  ck_assert(filled(w, 6 * MIB, 3));
  memset(c, 1, 30 * MIB);
  rig_free(&r, c);
  rig_free(&r, w);
  rig_stop(&r);
}
END_TEST

START_TEST(pages_shared_with_others_stay)
{
  start_pause_rig(64 * MIB);
  char *a = tagged(WEIGHTS, 3 * MIB, 1), *b = tagged(CACHE, 3 * MIB, 2);
  ck_assert_ptr_eq(b, a + 3 * MIB);
  pause_tag(WEIGHTS, true);
  ck_assert_uint_eq(r.f.used, 4 * MIB); /* the page in the middle has b's first part */
  ck_assert(filled(b, 3 * MIB, 2));
  pause_tag(CACHE, true); /* now nobody is left in it */
  ck_assert_uint_eq(r.f.used, 0);
  ck_assert_uint_eq(resume_tag(WEIGHTS), 0);
  ck_assert_uint_eq(r.f.used, 4 * MIB);
  ck_assert(filled(a, 3 * MIB, 1));
  ck_assert_uint_eq(resume_tag(CACHE), 0);
  ck_assert(filled(b, 3 * MIB, 2));
  rig_free(&r, a);
  rig_free(&r, b);
  rig_stop(&r);
}
END_TEST

START_TEST(a_shared_page_is_saved_when_one_of_its_blocks_wants_it)
{
  start_pause_rig(64 * MIB);
  char *a = tagged(WEIGHTS, 3 * MIB, 1), *b = tagged(CACHE, 3 * MIB, 2);
  pause_tag(_i ? CACHE : WEIGHTS, !_i);
  pause_tag(_i ? WEIGHTS : CACHE, _i);
  ck_assert_int_eq(RIG_STAT(&r, paused_saved_bytes), 4 * MIB);
  ck_assert_uint_eq(resume_tag(ALL), 2 * MIB);
  ck_assert(filled(a, 3 * MIB, 1));
  rig_free(&r, a);
  rig_free(&r, b);
  rig_stop(&r);
}
END_TEST

START_TEST(small_blocks_are_paused_where_they_fill_pages)
{
  start_pause_rig(64 * MIB);
  enum { N = 64 };
  char *at[N];
  for (int i = 0; i < N; i++)
    at[i] = tagged(WEIGHTS, 64 * KIB, i);
  pause_tag(WEIGHTS, true);
  ck_assert_uint_eq(r.f.used, 0);
  char *other = rig_malloc(&r, 1, 64 * KIB);
  for (int i = 0; i < N; i++)
    ck_assert_ptr_ne(at[i], other);
  resume_tag(WEIGHTS);
  for (int i = 0; i < N; i++) {
    ck_assert(filled(at[i], 64 * KIB, i));
    rig_free(&r, at[i]);
  }
  rig_free(&r, other);
  ck_assert_int_eq(RIG_STAT(&r, allocation), 0);
  rig_stop(&r);
}
END_TEST

START_TEST(captured_and_exported_blocks_are_not_paused)
{
  start_pause_rig(64 * MIB);
  weir_graph_pool *g;
  pthread_mutex_lock(&r.p->lock);
  ck_assert_int_eq(graph_pool_new(r.p, &g), WEIR_OK);
  pthread_mutex_unlock(&r.p->lock);
  ck_assert_int_eq(weir_graph_pool_begin(g, (weir_stream *)rig_stream(&r, 1)), WEIR_OK);
  char *graph = tagged(WEIGHTS, 4 * MIB, 1);
  ck_assert_int_eq(try_pause(ALL, true), WEIR_EINVAL); /* underway */
  ck_assert_int_eq(weir_graph_pool_end(g, (weir_stream *)rig_stream(&r, 1)), WEIR_OK);
  char *out = tagged(WEIGHTS, 4 * MIB, 2), *w = tagged(WEIGHTS, 4 * MIB, 3);
  ck_assert_int_eq(weir_memory_export(out), WEIR_OK);
  pause_tag(ALL, true);
  ck_assert_uint_eq(r.f.used, 8 * MIB);
  memset(graph, 5, 4 * MIB);
  ck_assert(filled(out, 4 * MIB, 2));
  ck_assert_int_eq(weir_memory_export(w), WEIR_EINVAL);
  resume_tag(ALL);
  ck_assert(filled(w, 4 * MIB, 3));
  ck_assert_int_eq(weir_memory_unexport(out), WEIR_OK);
  ck_assert_int_eq(weir_graph_pool_release(g), WEIR_OK);
  ck_assert_int_eq(weir_graph_pool_release(g), WEIR_OK);
  rig_free(&r, graph);
  rig_free(&r, out);
  rig_free(&r, w);
  rig_stop(&r);
}
END_TEST

START_TEST(blocks_freed_while_paused_leave_nothing_behind)
{
  start_small(8 * MIB);
  enum { N = 24 };
  char *at[N];
  uint64_t bytes[N], seed = 3 + (uint64_t)_i;
  for (int i = 0; i < N; i++) {
    bytes[i] = 1 + rig_random(&seed) % (i % 3 ? 160 * KIB : 10 * KIB);
    at[i] = tagged(i % 2 ? WEIGHTS : CACHE, bytes[i], i);
  }
  pause_tag(WEIGHTS, true);
  if (_i % 2) pause_tag(CACHE, _i % 4 == 1);
  for (int i = 0; i < N; i++) /* any order; about half of them */
    if (rig_random(&seed) % 2) {
      rig_free(&r, at[i]);
      at[i] = NULL;
    }
  void *other = rig_malloc(&r, 1, 2 * MIB);
  memset(other, 77, 2 * MIB);
  resume_tag(WEIGHTS);
  for (int i = 1; i < N; i += 2)
    ck_assert(!at[i] || filled(at[i], bytes[i], i));
  if (_i % 3) resume_tag(CACHE);
  ck_assert(filled(other, 2 * MIB, 77));
  rig_free(&r, other);
  for (int i = 0; i < N; i++)
    if (at[i]) rig_free(&r, at[i]);
  ck_assert_int_eq(RIG_STAT(&r, paused_bytes), 0);
  ck_assert_int_eq(RIG_STAT(&r, paused_saved_bytes), 0);
  ck_assert_int_eq(RIG_STAT(&r, active_bytes), 0);
  ck_assert_int_eq(weir_pool_empty(r.p), WEIR_OK);
  ck_assert_uint_eq(r.f.used, 0);
  rig_stop(&r);
}
END_TEST

START_TEST(a_freed_block_leaves_address_space_at_once)
{
  start_pause_rig(16 * MIB); /* four times that to address */
  for (int i = 0; i < 40; i++) {
    void *at = tagged(WEIGHTS, 7 * MIB, i);
    pause_tag(WEIGHTS, i % 2);
    rig_free(&r, at);
  }
  ck_assert_int_eq(RIG_STAT(&r, active_bytes), 0);
  rig_stop(&r);
}
END_TEST

START_TEST(live_paused_blocks_keep_the_pool)
{
  start_pause_rig(64 * MIB);
  void *at = tagged(WEIGHTS, 8 * MIB, 1);
  pause_tag(WEIGHTS, false);
  ck_assert_uint_eq(r.f.used, 0);
  ck_assert_int_eq(pool_free(r.p), WEIR_EINVAL);
  ck_assert_ptr_nonnull(strstr(weir_error_message(), "8388608 bytes"));
  rig_free(&r, at);
  rig_stop(&r);
}
END_TEST

START_TEST(resuming_without_memory_fails_and_leaves_all_paused)
{
  start_pause_rig(64 * MIB);
  char *w = tagged(WEIGHTS, 40 * MIB, 5);
  pause_tag(WEIGHTS, true);
  void *other = rig_malloc(&r, 2, 40 * MIB);
  uint64_t lost;
  ck_assert_int_eq(try_resume(WEIGHTS, &lost), WEIR_EOOM);
  ck_assert_ptr_nonnull(strstr(weir_error_message(), "40.00 MiB are paused, 24.00 MiB are free"));
  ck_assert_int_eq(RIG_STAT(&r, paused_bytes), 40 * MIB);
  ck_assert_uint_eq(r.f.used, 40 * MIB);
  rig_free(&r, other);
  resume_tag(WEIGHTS);
  ck_assert(filled(w, 40 * MIB, 5));
  rig_free(&r, w);
  rig_stop(&r);
}
END_TEST

START_TEST(budgets_hold_when_resuming)
{
  rig_start(&r, 64 * MIB, 2 * MIB, "limit_mb:40");
  char *w = tagged(WEIGHTS, 30 * MIB, 5);
  pause_tag(WEIGHTS, true);
  void *other = rig_malloc(&r, 2, 20 * MIB);
  uint64_t lost;
  ck_assert_int_eq(try_resume(WEIGHTS, &lost), WEIR_EOOM);
  rig_free(&r, other);
  resume_tag(WEIGHTS);
  rig_free(&r, w);
  rig_stop(&r);
}
END_TEST

START_TEST(pausing_twice_and_resuming_nothing_are_nothing)
{
  start_pause_rig(64 * MIB);
  ck_assert_uint_eq(resume_tag(ALL), 0);
  char *w = tagged(WEIGHTS, 8 * MIB, 5);
  pause_tag(WEIGHTS, true);
  pause_tag(ALL, false);
  ck_assert_uint_eq(resume_tag(CACHE), 0);
  ck_assert_int_eq(RIG_STAT(&r, paused_bytes), 8 * MIB);
  ck_assert_uint_eq(resume_tag(ALL), 0);
  ck_assert(filled(w, 8 * MIB, 5));
  rig_free(&r, w);
  rig_stop(&r);
}
END_TEST

START_TEST(without_virtual_memory_it_is_not_supported)
{
  static const char *const conf[] = {NULL, "expandable_segments:off", "whole_block:on"};
  rig_start(&r, 64 * MIB, pages[_i == 0], conf[_i]);
  ck_assert_int_eq(try_pause(ALL, false), WEIR_ENOTSUP);
  ck_assert_ptr_nonnull(strstr(weir_error_message(), "virtual memory management"));
  rig_stop(&r);
}
END_TEST

START_TEST(without_copies_it_can_only_lose)
{
  start_pause_rig(64 * MIB);
  r.f.backend.copy_to_host = NULL;
  r.f.backend.copy_to_device = NULL;
  void *w = tagged(WEIGHTS, 8 * MIB, 5);
  ck_assert_int_eq(try_pause(ALL, true), WEIR_ENOTSUP);
  pause_tag(ALL, false);
  ck_assert_uint_eq(resume_tag(ALL), 8 * MIB);
  rig_free(&r, w);
  rig_stop(&r);
}
END_TEST

START_TEST(a_device_pauses_by_the_names_of_tags)
{
  fake f;
  uint64_t lost;
  void *a, *b;
  const weir_device cuda0 = WEIR_CUDA_AT(0);
  fake_init(&f, 64 * MIB, 2 * MIB);
  ck_assert_int_eq(weir_memory_attach(&f.backend, NULL), WEIR_OK);
  ck_assert_int_eq(weir_memory_set_tag("pause weights"), WEIR_OK);
  ck_assert_int_eq(weir_malloc(&a, 8 * MIB, cuda0, NULL), WEIR_OK);
  ck_assert_int_eq(weir_memory_set_tag(NULL), WEIR_OK);
  ck_assert_int_eq(weir_malloc(&b, 8 * MIB, cuda0, NULL), WEIR_OK);
  ck_assert_int_eq(weir_memory_pause(cuda0, "no such tag", true), WEIR_EINVAL);
  ck_assert_int_eq(weir_memory_resume(cuda0, "no such tag", NULL), WEIR_EINVAL);
  ck_assert_int_eq(weir_memory_pause(cuda0, "pause weights", true), WEIR_OK);
  ck_assert_uint_eq(f.used, 8 * MIB);
  ck_assert_int_eq(weir_memory_pause(cuda0, NULL, false), WEIR_OK);
  ck_assert_uint_eq(f.used, 0);
  ck_assert_int_eq(weir_memory_resume(cuda0, NULL, &lost), WEIR_OK);
  ck_assert_uint_eq(lost, 8 * MIB);
  ck_assert_int_eq(weir_free(a), WEIR_OK);
  ck_assert_int_eq(weir_free(b), WEIR_OK);
  ck_assert_int_eq(weir_memory_detach(cuda0), WEIR_OK);
  ck_assert(fake_clean(&f));
  fake_fini(&f);
}
END_TEST

/* ---- failures -------------------------------------------------------------------------------- */

/* Every Nth operation fails, alone or with all after it: what was live before is there after, or
 * comes with the next resume. */
static bool run_pause_failing_op(uint64_t n, bool and_after, weir_status error)
{
  enum { N = 10 };
  char *at[N];
  uint64_t bytes[N], seed = 9, lost;
  start_small(4 * MIB);
  for (int i = 0; i < N; i++) {
    bytes[i] = 1 + rig_random(&seed) % (i % 4 ? 160 * KIB : 20 * KIB);
    at[i] = tagged(i % 2 ? WEIGHTS : CACHE, bytes[i], i + 1);
  }
  uint64_t from = r.f.operations;
  fake_fail(&r.f, n, and_after, error);
  (void)try_pause(WEIGHTS, true);
  (void)try_pause(CACHE, true);
  for (int i = 0; i < N; i += 3) {
    ck_assert_int_eq(weir_tcache_free(at[i]), WEIR_OK);
    rig_check(&r);
  }
  (void)try_resume(WEIGHTS, &lost);
  (void)try_resume(CACHE, &lost);
  bool met = r.f.operations - from >= n;
  fake_fail(&r.f, 0, false, WEIR_OK);
  ck_assert_uint_eq(resume_tag(ALL), 0);
  ck_assert_int_eq(RIG_STAT(&r, paused_bytes), 0);
  for (int i = 0; i < N; i++)
    if (i % 3) {
      ck_assert_msg(filled(at[i], bytes[i], i + 1), "failure %llu: block %d", (unsigned long long)n,
                    i);
      rig_free(&r, at[i]);
    }
  rig_stop(&r);
  return met;
}

START_TEST(every_failure_leaves_all_contents)
{
  static const weir_status errors[] = {WEIR_EOOM, WEIR_ECUDA, WEIR_ENOMEM};
  uint64_t n = 1;
  while (run_pause_failing_op(n, _i >= 3, errors[_i % 3]))
    n++;
  ck_assert_uint_ge(n, 40);
}
END_TEST

START_TEST(a_failed_pause_changes_nothing)
{
  bool failed = true;
  for (uint64_t n = 1; failed; n++) {
    start_small(2 * MIB);
    char *a = tagged(WEIGHTS, 288 * KIB, 1), *keep = tagged(CACHE, 96 * KIB, 3),
         *b = tagged(WEIGHTS, 288 * KIB, 2);
    rig_free(&r, rig_malloc(&r, 1, 900 * KIB));
    fake_fail(&r.f, n, false, WEIR_ECUDA);
    uint64_t before = r.f.operations;
    weir_status st = try_pause(WEIGHTS, false); /* nothing could bring the contents back */
    failed = r.f.operations - before >= n;
    fake_fail(&r.f, 0, false, WEIR_OK);
    if (st) {
      ck_assert_int_eq(RIG_STAT(&r, paused_bytes), 0);
      ck_assert_int_eq(RIG_STAT(&r, paused_saved_bytes), 0);
      ck_assert(filled(a, 288 * KIB, 1));
      ck_assert(filled(b, 288 * KIB, 2));
    } else {
      resume_tag(ALL);
    }
    ck_assert(filled(keep, 96 * KIB, 3));
    rig_free(&r, a);
    rig_free(&r, b);
    rig_free(&r, keep);
    rig_stop(&r);
  }
}
END_TEST

/* ---- threads --------------------------------------------------------------------------------- */

enum { THREADS = 6, ROUNDS = SANITIZED ? 80 : 600 };

/* Small blocks of a tag come and go on thread caches while another thread pauses and resumes that
 * tag; their memory is touched only where pausing cannot reach it: never. */
static void *churn_weights(void *number)
{
  uint64_t seed = (uint64_t)(uintptr_t)number;
  void *at[32] = {0};
  tag_now = WEIGHTS;
  for (int i = 0; i < ROUNDS * 20; i++) {
    int k = (int)(rig_random(&seed) % 32);
    if (at[k]) {
      ck_assert_int_eq(weir_tcache_free(at[k]), WEIR_OK);
      at[k] = NULL;
    } else {
      ck_assert_int_eq(
          weir_tcache_malloc(r.s[1 + seed % 2], 1 + rig_random(&seed) % (900 * KIB), &at[k]),
          WEIR_OK);
    }
  }
  for (int k = 0; k < 32; k++)
    if (at[k]) ck_assert_int_eq(weir_tcache_free(at[k]), WEIR_OK);
  return NULL;
}

START_TEST(threads_go_on_while_others_pause)
{
  pthread_t id[THREADS];
  start_small(512 * MIB);
  (void)rig_stream(&r, 1);
  (void)rig_stream(&r, 2);
  char *keep = tagged(CACHE, 10 * MIB, 4);
  for (int i = 0; i < THREADS; i++)
    ck_assert_int_eq(pthread_create(&id[i], NULL, churn_weights, (void *)(uintptr_t)(i + 1)), 0);
  for (int i = 0; i < ROUNDS / 4; i++) {
    pause_tag(i % 3 ? WEIGHTS : ALL, i % 2);
    resume_tag(i % 5 ? ALL : WEIGHTS);
  }
  for (int i = 0; i < THREADS; i++)
    ck_assert_int_eq(pthread_join(id[i], NULL), 0);
  resume_tag(ALL);
  ck_assert_int_eq(RIG_STAT(&r, allocation), 1);
  rig_free(&r, keep);
  ck_assert_int_eq(RIG_STAT(&r, allocated_bytes), 0);
  ck_assert_int_eq(RIG_STAT(&r, active_bytes), 0);
  rig_stop(&r);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("pause");
  TCase *t = tcase_create("exports");
  tcase_add_loop_test(t, an_exported_block_waits_for_the_end_of_its_exports, 0, 2);
  tcase_add_test(t, an_exported_small_block_is_kept_too);
  tcase_add_test(t, an_export_that_ends_before_the_free_leaves_nothing);
  tcase_add_test(t, an_exported_block_waits_for_streams_as_well);
  tcase_add_test(t, stitching_goes_around_exported_blocks);
  suite_add_tcase(s, t);
  t = tcase_create("pausing");
  tcase_set_timeout(t, 200);
  tcase_add_test(t, paused_memory_goes_back_and_returns_with_its_contents);
  tcase_add_test(t, contents_that_are_not_saved_are_declared_lost);
  tcase_add_test(t, pages_shared_with_others_stay);
  tcase_add_loop_test(t, a_shared_page_is_saved_when_one_of_its_blocks_wants_it, 0, 2);
  tcase_add_test(t, small_blocks_are_paused_where_they_fill_pages);
  tcase_add_test(t, captured_and_exported_blocks_are_not_paused);
  tcase_add_loop_test(t, blocks_freed_while_paused_leave_nothing_behind, 0, 24);
  tcase_add_test(t, a_freed_block_leaves_address_space_at_once);
  tcase_add_test(t, live_paused_blocks_keep_the_pool);
  tcase_add_test(t, resuming_without_memory_fails_and_leaves_all_paused);
  tcase_add_test(t, budgets_hold_when_resuming);
  tcase_add_test(t, pausing_twice_and_resuming_nothing_are_nothing);
  tcase_add_loop_test(t, without_virtual_memory_it_is_not_supported, 0, 3);
  tcase_add_test(t, without_copies_it_can_only_lose);
  tcase_add_test(t, a_device_pauses_by_the_names_of_tags);
  tcase_add_loop_test(t, every_failure_leaves_all_contents, 0, 6);
  tcase_add_test(t, a_failed_pause_changes_nothing);
  tcase_add_test(t, threads_go_on_while_others_pause);
  suite_add_tcase(s, t);
  return rig_run(s);
}
