/* test_stats.c: the figures equal what a client counts for itself. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/weir.h"
#include "tests/memory/rig.h"

enum { SLOTS = 400, STREAMS = 3, OPERATIONS = 6000 };

static fake f;
static const weir_device cuda0 = WEIR_CUDA_INIT(0);

static void attach(uint64_t capacity, uint64_t page, const char *conf)
{
  fake_init(&f, capacity, page);
  ck_assert_msg(weir_memory_attach(&f.backend, conf) == WEIR_OK, "%s", weir_error_message());
}

static void detach(void)
{
  ck_assert_msg(weir_memory_detach(cuda0) == WEIR_OK, "%s", weir_error_message());
  ck_assert(fake_clean(&f));
  fake_fini(&f);
}

static int64_t figure(const char *name)
{
  int64_t value;
  ck_assert_msg(weir_memory_stat(&value, cuda0, name) == WEIR_OK, "%s", weir_error_message());
  return value;
}

static int64_t figure_of(const char *metric, const char *pool, const char *kind)
{
  char name[96];
  (void)snprintf(name, sizeof name, "%s.%s.%s", metric, pool, kind);
  return figure(name);
}

static weir_stream *stream(int i)
{
  weir_stream *s;
  ck_assert_int_eq(weir_stream_from_native(&s, cuda0, fake_handle(&f, i)), WEIR_OK);
  return s;
}

/* ---- the client's own count ------------------------------------------------------------------ */

typedef struct count {
  int64_t current, peak, allocated, freed;
} count;

typedef struct tally { /* [0]: up to 1 MiB, [1]: larger, [2]: all */
  count blocks[3], bytes[3], requested[3], pending_blocks[3], pending_bytes[3];
} tally;

static const char *const pools[] = {"small_pool", "large_pool", "all"};

static void add_to_counts(count c[3], bool large, int64_t by)
{
  for (int i = 0; i < 3; i++) {
    if (i != 2 && i != large) continue;
    c[i].current += by;
    if (by > 0) c[i].allocated += by;
    if (by < 0) c[i].freed -= by;
    if (c[i].current > c[i].peak) c[i].peak = c[i].current;
  }
}

static void enter_stat(tally *t, uint64_t asked, uint64_t bytes, int sign)
{
  bool large = bytes > MIB;
  add_to_counts(t->blocks, large, sign);
  add_to_counts(t->bytes, large, sign * (int64_t)bytes);
  add_to_counts(t->requested, large, sign * (int64_t)asked);
}

/* What a request is rounded to is the allocator's own rule. */
static uint64_t size_of(uint64_t bytes)
{
  mem_pool *p;
  ck_assert_int_eq(pool_of_device(cuda0, &p), WEIR_OK);
  return round_request(p, bytes);
}

static void compare(const char *metric, const count c[3], const count *pending)
{
  for (int i = 0; i < 3; i++) {
    int64_t wait = pending ? pending[i].current : 0;
    ck_assert_int_eq(figure_of(metric, pools[i], "current"), c[i].current + wait);
    ck_assert_int_eq(figure_of(metric, pools[i], "allocated"), c[i].allocated);
    ck_assert_int_eq(figure_of(metric, pools[i], "freed"), c[i].freed - wait);
  }
}

static void compare_all(const tally *t)
{
  compare("allocation", t->blocks, NULL);
  compare("allocated_bytes", t->bytes, NULL);
  compare("requested_bytes", t->requested, NULL);
  compare("active", t->blocks, t->pending_blocks);
  compare("active_bytes", t->bytes, t->pending_bytes);
}

/* What holds for every metric whatever happened. */
static void check_identities(bool summed)
{
  static const char *const kinds[] = {"current", "allocated", "freed"};
#define NAME(metric) #metric,
  static const char *const metrics[] = {WEIR_MEMORY_METRICS(NAME)};
#undef NAME
  for (size_t m = 0; m < sizeof metrics / sizeof *metrics; m++) {
    for (int k = 0; k < 3; k++)
      ck_assert_int_eq(figure_of(metrics[m], "all", kinds[k]),
                       figure_of(metrics[m], "small_pool", kinds[k]) +
                           figure_of(metrics[m], "large_pool", kinds[k]));
    for (int i = 0; i < 3; i++) {
      int64_t now = figure_of(metrics[m], pools[i], "current");
      ck_assert_int_ge(figure_of(metrics[m], "all", "peak"),
                       figure_of(metrics[m], pools[i], "peak"));
      ck_assert_int_ge(now, 0);
      ck_assert_int_ge(figure_of(metrics[m], pools[i], "peak"), now);
      if (summed)
        ck_assert_int_eq(figure_of(metrics[m], pools[i], "allocated") -
                             figure_of(metrics[m], pools[i], "freed"),
                         now);
    }
  }
}

/* ---- tests ----------------------------------------------------------------------------------- */

typedef struct held {
  void *ptr;
  uint64_t asked;
} held;

static uint64_t some_size(uint64_t *seed)
{
  uint64_t r = rig_random(seed);
  return r % 5 ? 1 + r / 8 % 5000 : r % 2 ? 1 + r / 8 % MIB : 1 + r / 8 % (5 * MIB);
}

static void allocate_or_free_held(held *h, tally *t, weir_stream *s, uint64_t *seed)
{
  if (h->ptr) {
    ck_assert_int_eq(weir_free(h->ptr), WEIR_OK);
    enter_stat(t, h->asked, size_of(h->asked), -1);
    h->ptr = NULL;
    return;
  }
  h->asked = some_size(seed);
  ck_assert_msg(weir_malloc(&h->ptr, h->asked, cuda0, s) == WEIR_OK, "%s", weir_error_message());
  enter_stat(t, h->asked, size_of(h->asked), 1);
}

START_TEST(every_figure_equals_a_clients_count)
{
  held slots[SLOTS] = {{0}};
  tally t = {0};
  uint64_t seed = 7 + (uint64_t)_i;
  attach(4096 * MIB, 2 * MIB, NULL);
  for (int i = 0; i < OPERATIONS; i++) {
    allocate_or_free_held(&slots[rig_random(&seed) % SLOTS], &t, NULL, &seed);
    if (i % 500 == 0) compare_all(&t);
  }
  compare_all(&t);
  check_identities(true);
  for (int i = 0; i < 3; i++) {
    ck_assert_int_eq(figure_of("allocated_bytes", pools[i], "peak"), t.bytes[i].peak);
    ck_assert_int_le(figure_of("requested_bytes", pools[i], "peak"), t.requested[i].peak);
    ck_assert_int_le(figure_of("allocation", pools[i], "peak"), t.blocks[i].peak);
  }
  ck_assert_int_eq(figure("allocation.large_pool.peak"), t.blocks[1].peak);
  ck_assert_int_eq(figure("requested_bytes.large_pool.peak"), t.requested[1].peak);
  ck_assert_int_eq(figure("active_bytes.large_pool.peak"), t.bytes[1].peak);
  ck_assert_uint_eq(weir_memory_allocated(cuda0), (uint64_t)t.bytes[2].current);
  ck_assert_uint_eq(weir_max_memory_allocated(cuda0), (uint64_t)t.bytes[2].peak);
  for (int i = 0; i < SLOTS; i++)
    if (slots[i].ptr) allocate_or_free_held(&slots[i], &t, NULL, &seed);
  compare_all(&t);
  detach();
}
END_TEST

/* What is mapped only until old work is complete. */
static int64_t leaving_bytes(void)
{
  mem_pool *p;
  int64_t bytes = 0;
  ck_assert_int_eq(pool_of_device(cuda0, &p), WEIR_OK);
  for (block_id id = p->leaving; id; id = block(id)->next)
    bytes += (int64_t)block(id)->bytes;
  return bytes;
}

START_TEST(what_is_reserved_equals_what_the_device_gave)
{
  held slots[SLOTS] = {{0}};
  tally t = {0};
  uint64_t seed = 99, most = 0, free_bytes, total;
  attach(4096 * MIB, 2 * MIB, "decay_ms:0");
  for (int i = 0; i < OPERATIONS; i++) {
    allocate_or_free_held(&slots[rig_random(&seed) % SLOTS], &t, NULL, &seed);
    if (i % 1000 == 999) ck_assert_int_eq(weir_memory_empty_cache(cuda0), WEIR_OK);
    if (f.used > most) most = f.used;
    ck_assert_uint_eq(weir_memory_reserved(cuda0), f.used);
    ck_assert_int_eq(figure("segment.all.current"), (int64_t)(f.used / (2 * MIB)));
    /* Every byte that is mapped is active or inactive, or leaving. */
    ck_assert_int_eq(figure("active_bytes.all.current") +
                         figure("inactive_split_bytes.all.current") + leaving_bytes(),
                     (int64_t)f.mapped);
  }
  ck_assert_uint_eq(weir_max_memory_reserved(cuda0), most);
  ck_assert_uint_eq(weir_memory_cached(cuda0), f.used); /* the same, as PyTorch called it first */
  ck_assert_uint_eq(weir_max_memory_cached(cuda0), most);
  ck_assert_int_eq(figure("num_device_alloc"), figure("segment.all.allocated"));
  ck_assert_int_eq(figure("num_device_free"), figure("segment.all.freed"));
  ck_assert_int_eq(weir_mem_get_info(&free_bytes, &total, cuda0), WEIR_OK);
  ck_assert_uint_eq(total, 4096 * MIB);
  ck_assert_uint_eq(free_bytes, 4096 * MIB - f.used);
  for (int i = 0; i < SLOTS; i++)
    if (slots[i].ptr) allocate_or_free_held(&slots[i], &t, NULL, &seed);
  detach();
}
END_TEST

START_TEST(a_block_that_other_streams_use_is_active_and_not_allocated)
{
  attach(256 * MIB, 2 * MIB, NULL);
  tally t = {0};
  void *ptr[2];
  for (int i = 0; i < 2; i++) {
    uint64_t bytes = i ? 3 * MIB : 700;
    ck_assert_int_eq(weir_malloc(&ptr[i], bytes, cuda0, stream(1)), WEIR_OK);
    enter_stat(&t, bytes, size_of(bytes), 1);
    fake_hold(&f, 2);
    fake_submit(&f, 2, nothing, NULL);
    ck_assert_int_eq(weir_record_stream(ptr[i], stream(2)), WEIR_OK);
    ck_assert_int_eq(weir_free(ptr[i]), WEIR_OK);
    enter_stat(&t, bytes, size_of(bytes), -1);
    add_to_counts(t.pending_blocks, i, 1);
    add_to_counts(t.pending_bytes, i, (int64_t)size_of(bytes));
    compare_all(&t);
    check_identities(true);
  }
  fake_release(&f, 2);
  ck_assert_int_eq(weir_memory_empty_cache(cuda0), WEIR_OK);
  for (int i = 0; i < 2; i++) {
    add_to_counts(t.pending_blocks, i, -1);
    add_to_counts(t.pending_bytes, i, -(int64_t)size_of(i ? 3 * MIB : 700));
  }
  compare_all(&t);
  detach();
}
END_TEST

START_TEST(resets_begin_anew_and_leave_what_is_now)
{
  attach(256 * MIB, 2 * MIB, NULL);
  void *a, *b;
  ck_assert_int_eq(weir_malloc(&a, 1000, cuda0, NULL), WEIR_OK);
  ck_assert_int_eq(weir_malloc(&b, 5 * MIB, cuda0, NULL), WEIR_OK);
  ck_assert_int_eq(weir_free(b), WEIR_OK);
  ck_assert_int_eq(weir_malloc(&b, 500 * MIB, cuda0, NULL), WEIR_EOOM);
  ck_assert_int_eq(figure("num_ooms"), 1);
  ck_assert_int_eq(weir_memory_reset_accumulated(cuda0), WEIR_OK);
  static const char *const zero[] = {"allocation.all.allocated",
                                     "allocated_bytes.all.freed",
                                     "reserved_bytes.all.allocated",
                                     "num_ooms",
                                     "num_device_alloc",
                                     "num_alloc_retries"};
  for (size_t i = 0; i < sizeof zero / sizeof *zero; i++)
    ck_assert_msg(figure(zero[i]) == 0, "%s", zero[i]);
  ck_assert_int_eq(figure("allocated_bytes.all.current"), 1024);
  ck_assert_int_eq(figure("allocated_bytes.all.peak"), 1024 + 5 * MIB);
  ck_assert_int_eq(weir_memory_reset_peak(cuda0), WEIR_OK);
  check_identities(false);
#define NAME(metric) #metric,
  static const char *const metrics[] = {WEIR_MEMORY_METRICS(NAME)};
#undef NAME
  for (size_t m = 0; m < sizeof metrics / sizeof *metrics; m++)
    for (int i = 0; i < 3; i++)
      ck_assert_int_eq(figure_of(metrics[m], pools[i], "peak"),
                       figure_of(metrics[m], pools[i], "current"));
  ck_assert_int_eq(weir_free(a), WEIR_OK);
  ck_assert_int_eq(figure("allocation.all.freed"), 1);
  ck_assert_int_eq(figure("allocation.all.allocated"), 0);
  detach();
}
END_TEST

START_TEST(segments_count_oversize_and_are_no_split_while_whole)
{
  attach(1024 * MIB, 0, "max_split_size_mb:32");
  void *a, *b;
  ck_assert_int_eq(figure("max_split_size"), 32 * MIB);
  ck_assert_int_eq(weir_malloc(&a, 40 * MIB, cuda0, NULL), WEIR_OK);
  ck_assert_int_eq(weir_malloc(&b, 12 * MIB, cuda0, NULL), WEIR_OK);
  ck_assert_int_eq(figure("oversize_allocations.current"), 1);
  ck_assert_int_eq(figure("oversize_segments.current"), 1);
  ck_assert_int_eq(figure("segment.all.current"), 2);
  ck_assert_int_eq(weir_free(a), WEIR_OK);
  ck_assert_int_eq(weir_free(b), WEIR_OK);
  ck_assert_int_eq(figure("inactive_split_bytes.all.current"), 0); /* two whole segments */
  ck_assert_int_eq(weir_malloc(&b, 3 * MIB, cuda0, NULL), WEIR_OK);
  ck_assert_int_eq(figure("inactive_split.all.current"), 1); /* the rest of the smaller one */
  ck_assert_int_eq(figure("inactive_split_bytes.large_pool.current"), 9 * MIB);
  ck_assert_int_eq(weir_free(b), WEIR_OK);
  ck_assert_int_eq(weir_memory_empty_cache(cuda0), WEIR_OK);
  ck_assert_int_eq(figure("oversize_segments.current"), 0);
  ck_assert_int_eq(figure("oversize_segments.freed"), 1);
  ck_assert_int_eq(figure("oversize_allocations.peak"), 1);
  detach();
}
END_TEST

START_TEST(blocks_count_by_their_size_where_no_thread_cache_is)
{
  attach(256 * MIB, 2 * MIB, "whole_block:on");
  void *a, *b;
  ck_assert_int_eq(figure("max_split_size"), -1);
  ck_assert_int_eq(weir_malloc(&a, 1000, cuda0, NULL), WEIR_OK);
  ck_assert_int_eq(weir_malloc(&b, 3 * MIB, cuda0, NULL), WEIR_OK);
  ck_assert_int_eq(figure("allocated_bytes.small_pool.current"), 1024);
  ck_assert_int_eq(figure("allocated_bytes.large_pool.current"), 4 * MIB);
  ck_assert_int_eq(figure("requested_bytes.small_pool.current"), 1000);
  ck_assert_int_eq(weir_free(a), WEIR_OK);
  ck_assert_int_eq(weir_free(b), WEIR_OK);
  check_identities(true);
  detach();
}
END_TEST

/* ---- threads --------------------------------------------------------------------------------- */

enum { THREADS = 8 };

typedef struct worker {
  tally t;
  uint64_t seed;
  weir_stream *s;
  held slots[SLOTS / 4];
} worker;

static void *run_stats_worker(void *argument)
{
  worker *w = argument;
  for (int i = 0; i < OPERATIONS / 2; i++)
    allocate_or_free_held(&w->slots[rig_random(&w->seed) % (SLOTS / 4)], &w->t, w->s, &w->seed);
  return NULL;
}

static void sum_counts(count to[3], const count from[3])
{
  for (int i = 0; i < 3; i++) {
    to[i].current += from[i].current;
    to[i].allocated += from[i].allocated;
    to[i].freed += from[i].freed;
    if (from[i].peak > to[i].peak) to[i].peak = from[i].peak;
  }
}

/* Blocks of one worker freed by another are what the thread caches' remote lists are for. */
static void free_rest(worker *w)
{
  for (int i = 0; i < THREADS; i++)
    for (int k = 0; k < SLOTS / 4; k++)
      if (w[i].slots[k].ptr) allocate_or_free_held(&w[i].slots[k], &w[i].t, NULL, &w[i].seed);
}

START_TEST(the_threads_counts_add_up)
{
  static worker w[THREADS];
  pthread_t thread[THREADS];
  memset(w, 0, sizeof w);
  attach(8192 * MIB, 2 * MIB, NULL);
  for (int i = 0; i < THREADS; i++) {
    w[i].seed = 1000 + (uint64_t)i;
    w[i].s = stream(i % STREAMS);
    ck_assert_int_eq(pthread_create(&thread[i], NULL, run_stats_worker, &w[i]), 0);
  }
  for (int i = 0; i < THREADS; i++)
    ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
  for (int freed = 0; freed < 2; freed++) {
    tally t = {0};
    for (int i = 0; i < THREADS; i++) {
      sum_counts(t.blocks, w[i].t.blocks);
      sum_counts(t.bytes, w[i].t.bytes);
      sum_counts(t.requested, w[i].t.requested);
    }
    compare_all(&t);
    check_identities(true);
    ck_assert_int_ge(figure("allocated_bytes.all.peak"), t.bytes[2].peak);
    free_rest(w);
  }
  detach();
}
END_TEST

/* ---- the table ------------------------------------------------------------------------------- */

START_TEST(the_summary_is_pytorchs_table)
{
  attach(4096 * MIB, 2 * MIB, NULL);
  void *a, *b;
  char *text;
  ck_assert_int_eq(weir_malloc(&a, 1000, cuda0, NULL), WEIR_OK);
  ck_assert_int_eq(weir_malloc(&b, 896 * MIB, cuda0, NULL), WEIR_OK);
  ck_assert_int_eq(weir_memory_summary(&text, cuda0, false), WEIR_OK);
  static const char *const lines[] = {
      "|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |\n",
      "| Allocated memory      |    896 MiB |    896 MiB |    896 MiB |      0 B   |\n",
      "|       from large pool |    896 MiB |    896 MiB |    896 MiB |      0 B   |\n",
      "|       from small pool |      0 MiB |      0 MiB |      0 MiB |      0 B   |\n",
      "| Allocations           |       2    |       2    |       2    |       0    |\n",
      "| Oversize GPU segments |       0    |       0    |       0    |       0    |\n",
      "CUDA OOMs: 0            |        cudaMalloc retries: 0         |\n"};
  for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
    ck_assert_msg(strstr(text, lines[i]) != NULL, "%s not in\n%s", lines[i], text);
  int count = 0;
  for (char *at = text, *end; *at; at = end + 1, count++) {
    end = strchr(at, '\n');
    ck_assert_ptr_nonnull(end);
    ck_assert_msg(end - at == 77, "%.*s", (int)(end - at), at);
  }
  ck_assert_int_eq(count, 5 + 9 * 4 + 2 * 2 + 2);
  free(text);
  ck_assert_int_eq(weir_memory_summary(&text, cuda0, true), WEIR_OK);
  ck_assert_ptr_null(strstr(text, "from small pool"));
  ck_assert_ptr_nonnull(strstr(text, "| GPU reserved segments |"));
  free(text);
  ck_assert_int_eq(weir_free(a), WEIR_OK);
  ck_assert_int_eq(weir_free(b), WEIR_OK);
  detach();
}
END_TEST

/* More thread caches than are looked at on every call: 60 of one thread. What they hand out of what
 * they keep passes by the pool, and is in the figures as soon as somebody asks. */
START_TEST(many_thread_caches_counts_and_peaks_are_right_when_asked_for)
{
  enum { N = 60, BYTES = 1024 };
  weir_stream *s[N];
  void *a[N], *b[N];
  attach(1024 * MIB, 2 * MIB, NULL);
  for (int i = 0; i < N; i++) {
    s[i] = stream(i);
    ck_assert_int_eq(weir_malloc(&a[i], BYTES, cuda0, s[i]), WEIR_OK);
    ck_assert_int_eq(weir_malloc(&b[i], BYTES, cuda0, s[i]), WEIR_OK);
    ck_assert_int_eq(weir_free(b[i]), WEIR_OK);
  }
  ck_assert_int_eq(figure("allocated_bytes.all.current"), N * BYTES);
  ck_assert_int_eq(weir_memory_reset_peak(cuda0), WEIR_OK);
  ck_assert_int_eq(figure("allocated_bytes.all.peak"), N * BYTES);
  for (int i = 0; i < N; i++)
    ck_assert_int_eq(weir_malloc(&b[i], BYTES, cuda0, s[i]), WEIR_OK);
  for (int i = 0; i < N; i++)
    ck_assert_int_eq(weir_free(b[i]), WEIR_OK);
  ck_assert_int_eq(figure("allocated_bytes.all.current"), N * BYTES);
  ck_assert_int_eq(figure("allocated_bytes.all.peak"), 2 * N * BYTES);
  ck_assert_int_eq(figure("allocation.all.current"), N);
  ck_assert_int_eq(figure("requested_bytes.all.allocated"), 3 * N * BYTES);
  for (int i = 0; i < N; i++)
    ck_assert_int_eq(weir_free(a[i]), WEIR_OK);
  check_identities(true);
  detach();
}
END_TEST

START_TEST(without_a_device_the_short_ways_say_0)
{
  uint64_t a, b;
  ck_assert_uint_eq(weir_memory_allocated(cuda0), 0);
  ck_assert_uint_eq(weir_max_memory_allocated(cuda0), 0);
  ck_assert_uint_eq(weir_memory_reserved(cuda0), 0);
  ck_assert_uint_eq(weir_max_memory_reserved(cuda0), 0);
  const weir_device none = WEIR_CPU;
  ck_assert_int_eq(weir_mem_get_info(&a, &b, none), WEIR_EINVAL);
  ck_assert_int_eq(weir_memory_reset_accumulated(none), WEIR_EINVAL);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("stats");
  TCase *t = tcase_create("stats");
  tcase_set_timeout(t, 120);
  tcase_add_loop_test(t, every_figure_equals_a_clients_count, 0, 4);
  tcase_add_test(t, what_is_reserved_equals_what_the_device_gave);
  tcase_add_test(t, a_block_that_other_streams_use_is_active_and_not_allocated);
  tcase_add_test(t, resets_begin_anew_and_leave_what_is_now);
  tcase_add_test(t, segments_count_oversize_and_are_no_split_while_whole);
  tcase_add_test(t, blocks_count_by_their_size_where_no_thread_cache_is);
  tcase_add_test(t, the_threads_counts_add_up);
  tcase_add_test(t, many_thread_caches_counts_and_peaks_are_right_when_asked_for);
  tcase_add_test(t, the_summary_is_pytorchs_table);
  tcase_add_test(t, without_a_device_the_short_ways_say_0);
  suite_add_tcase(s, t);
  return rig_run(s);
}
