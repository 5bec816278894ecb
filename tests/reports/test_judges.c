/* test_judges.c: a judge in C gives the rows of the SQL that it stands for
 * (tests/findings/rules_by_sql), over random histories of several threads: which rules found
 * what, where, of what cost, bytes and saving is the same either way. */
#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "reports/findings/findings.h"
#include "reports/model/open.h"
#include "tests/reports/own_program.h"
#include "tests/reports/synth.h"

enum {
  HISTORIES = 24,
  CALLS = 1200,
  SLOTS = 8,
  STACKS = 6,
  THREADS = 3,
  MOST_RULES = 128,
  SEED = 20270101
};

/* ---- a random program ------------------------------------------------------------------------ */

/* Memory that a thread has taken, or may take next. */
typedef struct slot {
  bool live;
  uint64_t bytes;
  int mem;
} slot;

static slot slots[THREADS][SLOTS];
static uint64_t now;
static uint32_t at_place; /* of the calls; 0: any */
static bool hurried;      /* calls come shortly after each other */
static bool hashed;       /* copies have hashes */

static uint64_t address_of(int thread, int i)
{
  return UINT64_C(0x700000000) + ((uint64_t)thread * SLOTS + (uint64_t)i) * (UINT64_C(1) << 28);
}

static uint64_t host_of(uint64_t i)
{
  return UINT64_C(0x7f0000000000) + i * (1 << 24);
}

/* Of most copies; a few payloads, one of them of one byte all over. */
static void hash_copy(int thread, const trace_event *e)
{
  uint64_t at = spool_current()->clock_first.ticks + now, hash = synth_below(4);
  const copy_hash_info info = {
      .hash = {hash, ~hash}, .bytes = e->bytes, .ticks = 10, .dst = e->a, .src = e->b};
  trace_event head = {.start = at, .hash_outcome = WEIR_HASH_HASHED, .mem = hash == 3, .b = at};
  if (hash < 3 || synth_below(2))
    ck_assert(
        spool_writer_extended(synth_thread(thread), WEIR_EV_COPY_HASH, &head, &info, sizeof info));
}

/* A call of the thread at one of a few places; then the thread goes on for a while. */
static void make_call(int thread, trace_event e, uint64_t ns)
{
  static const uint64_t pauses[] = {1, 200, 3000, 30000, 70000};
  uint32_t stack = at_place ? at_place : 1 + (uint32_t)synth_below(STACKS);
  e.stack = UINT32_C(1) << 24 | stack; /* of context 1 */
  e.status = synth_below(60) ? 0 : 2;
  if (hashed && e.kind == WEIR_EV_COPY) hash_copy(thread, &e);
  synth_event(thread, now, ns, e);
  now += ns + (hurried ? 100 : pauses[synth_below(5)]);
}

static uint64_t some_ns(void)
{
  return 1 + (synth_below(3) ? synth_below(9000) : synth_below(200000));
}

static uint64_t some_stream(int thread)
{
  return synth_below(4) ? 16 + synth_below(2) * (uint64_t)thread : WEIR_STREAM_LEGACY;
}

static void take_slot(int thread, int i)
{
  static const uint64_t sizes[] = {512, 4096, 1 << 20, 64 << 20};
  static const int mems[] = {WEIR_MEM_DEVICE, WEIR_MEM_DEVICE,  WEIR_MEM_DEVICE,  WEIR_MEM_DEVICE,
                             WEIR_MEM_PINNED, WEIR_MEM_MANAGED, WEIR_MEM_IMPORTED};
  slot *s = &slots[thread][i];
  *s = (slot){true, sizes[synth_below(4)] + synth_below(2) * synth_below(64), mems[synth_below(7)]};
  make_call(
      thread,
      (trace_event){.kind = WEIR_EV_ALLOC,
                    .api = synth_api(s->mem == WEIR_MEM_PINNED ? "cudaMallocHost" : "cudaMalloc"),
                    .flags = synth_below(9) ? WEIR_EVF_RUNTIME : WEIR_EVF_ASYNC | WEIR_EVF_RUNTIME,
                    .a = address_of(thread, i),
                    .bytes = s->bytes,
                    .src_device = WEIR_DEVICE_NONE,
                    .mem = (uint8_t)s->mem},
      some_ns());
}

static void give_slot(int thread, int i)
{
  slots[thread][i].live = false;
  make_call(thread,
            (trace_event){.kind = WEIR_EV_FREE,
                          .api = synth_api("cudaFree"),
                          .flags = WEIR_EVF_RUNTIME | WEIR_EVF_IMPLICIT_SYNC,
                          .a = address_of(thread, i),
                          .device = WEIR_DEVICE_NONE,
                          .src_device = WEIR_DEVICE_NONE},
            some_ns());
}

typedef struct copies {
  int way, host_mem;
  uint64_t bytes, host, stream;
  bool async;
} copies;

/* `row`: which of a matrix. */
static void copy_call(int thread, int i, const copies *o, uint64_t row)
{
  bool up = o->way == WEIR_COPY_HTOD, waits = !o->async || o->host_mem == WEIR_MEM_PAGEABLE;
  uint64_t host = o->host + row * 8192, device = address_of(thread, i) + row * 4096;
  int mem = slots[thread][i].mem;
  make_call(thread,
            (trace_event){.kind = WEIR_EV_COPY,
                          .api = synth_api(o->async ? "cudaMemcpyAsync" : "cudaMemcpy"),
                          .flags = (uint8_t)(WEIR_EVF_RUNTIME | (o->async ? WEIR_EVF_ASYNC : 0) |
                                             (waits ? WEIR_EVF_IMPLICIT_SYNC : 0)),
                          .copy_kind = (uint8_t)o->way,
                          .a = up ? device : host,
                          .b = up ? host : device,
                          .bytes = o->bytes,
                          .device = up ? 0 : WEIR_DEVICE_NONE,
                          .src_device = up ? WEIR_DEVICE_NONE : 0,
                          .mem = (uint8_t)(up ? mem | o->host_mem << 4 : o->host_mem | mem << 4),
                          .stream = o->stream},
            some_ns());
}

static void copy_calls(int thread, int i)
{
  static const uint64_t sizes[] = {64, 2048, 65535, 70000, 2 << 20};
  copies o = {.way = synth_below(3) ? WEIR_COPY_HTOD : WEIR_COPY_DTOH,
              .host_mem = synth_below(2) ? WEIR_MEM_PINNED : WEIR_MEM_PAGEABLE,
              .bytes = sizes[synth_below(5)],
              .host = host_of(synth_below(3)),
              .stream = some_stream(thread),
              .async = synth_below(2)};
  uint64_t rows = o.bytes <= 2048 && !synth_below(12) ? 12 + synth_below(40) : 1;
  hurried = rows > 1 && synth_below(2);
  for (uint64_t row = 0; row < rows; row++)
    copy_call(thread, i, &o, row);
  hurried = false;
}

static void wait_call(int thread)
{
  static const uint8_t types[] = {WEIR_SYNC_CONTEXT, WEIR_SYNC_STREAM, WEIR_SYNC_EVENT,
                                  WEIR_SYNC_STREAM,  WEIR_SYNC_QUERY,  WEIR_SYNC_CONTEXT};
  static const char *const names[] = {"cudaDeviceSynchronize", "cudaStreamSynchronize",
                                      "cudaEventSynchronize",  "cudaStreamSynchronize",
                                      "cudaStreamQuery",       "cudaDeviceSynchronize"};
  size_t i = synth_below(6);
  make_call(thread,
            (trace_event){.kind = WEIR_EV_SYNC,
                          .api = synth_api(names[i]),
                          .flags = WEIR_EVF_RUNTIME,
                          .sync_type = types[i],
                          .a = types[i] == WEIR_SYNC_EVENT ? 77 : 0,
                          .stream = some_stream(thread)},
            some_ns());
}

static void other_call(int thread, int i)
{
  trace_event e = {.flags = WEIR_EVF_RUNTIME, .stream = some_stream(thread)};
  size_t what = synth_below(8);
  if (what < 5) {
    e.kind = WEIR_EV_LAUNCH, e.api = synth_api("cudaLaunchKernel"), e.bytes = 32;
  } else if (what < 7) {
    e.kind = WEIR_EV_MEMSET, e.api = synth_api("cudaMemset"), e.mem = WEIR_MEM_DEVICE;
    e.a = address_of(thread, i), e.bytes = slots[thread][i].bytes;
    e.flags |= WEIR_EVF_IMPLICIT_SYNC;
  } else {
    e.kind = WEIR_EV_EVENT, e.api = synth_api("cudaEventRecord"), e.a = 77;
  }
  make_call(thread, e, some_ns());
}

/* `uses`: of 16 calls those that may use any memory: without them more is found. */
static void random_call(int thread, unsigned uses)
{
  int i = (int)synth_below(SLOTS);
  unsigned what = (unsigned)synth_below(16);
  if (what < uses)
    other_call(thread, i);
  else if (what < uses + 3)
    wait_call(thread);
  else if (!slots[thread][i].live)
    take_slot(thread, i);
  else if (what < 11)
    give_slot(thread, i);
  else
    copy_calls(thread, i);
}

/* ---- blocks that are there all the time ------------------------------------------------------ */

enum { HELD = 4, HELD_BYTES = 64 << 20 };

static void held_call(int i, uint8_t kind, const char *api)
{
  make_call(0,
            (trace_event){.kind = kind,
                          .api = synth_api(api),
                          .flags = WEIR_EVF_RUNTIME,
                          .a = UINT64_C(0x900000000) + (uint64_t)i * (1 << 28),
                          .bytes = HELD_BYTES,
                          .mem = WEIR_MEM_DEVICE,
                          .src_device = WEIR_DEVICE_NONE},
            2000);
}

/* At some calls of a history: each is set once or twice, some early and some late; the last one
 * lives. */
static void hold_blocks(int history, int done)
{
  if (history % 2) return;
  for (int i = 0; i < HELD; i++) {
    if (done == i * 3) held_call(i, WEIR_EV_ALLOC, "cudaMalloc");
    if (done == 20 + i || (i % 2 && done == CALLS - 40 * (i + history % 3)))
      held_call(i, WEIR_EV_MEMSET, "cudaMemset");
    if (i < 3 && done == CALLS - 10 + i) held_call(i, WEIR_EV_FREE, "cudaFree");
  }
}

/* Six copies with nothing to wait for; those of a place of their own take far longer. */
static void copy_slowly(int done)
{
  if (done != CALLS / 2) return;
  make_call(0,
            (trace_event){.kind = WEIR_EV_SYNC,
                          .api = synth_api("cudaDeviceSynchronize"),
                          .flags = WEIR_EVF_RUNTIME,
                          .sync_type = WEIR_SYNC_CONTEXT},
            100);
  for (int i = 0; i < 6; i++) {
    at_place = i < 4 ? 1 : STACKS + 1;
    make_call(0,
              (trace_event){.kind = WEIR_EV_COPY,
                            .api = synth_api("cudaMemcpy"),
                            .flags = WEIR_EVF_RUNTIME | WEIR_EVF_IMPLICIT_SYNC,
                            .copy_kind = WEIR_COPY_HTOD,
                            .a = UINT64_C(0xa00000000),
                            .b = host_of(9),
                            .bytes = 3 << 20,
                            .src_device = WEIR_DEVICE_NONE,
                            .mem = WEIR_MEM_DEVICE | WEIR_MEM_PINNED << 4,
                            .stream = WEIR_STREAM_LEGACY},
              i < 4 ? 1000 : 500000);
  }
  at_place = 0;
}

/* Steps of one place, after each of which a number is copied. */
static void copy_numbers(int done)
{
  const copies number = {WEIR_COPY_DTOH, WEIR_MEM_PINNED, 8, host_of(8), WEIR_STREAM_LEGACY, false};
  if (done != CALLS / 3) return;
  at_place = STACKS + 2;
  for (int i = 0; i < 60; i++) {
    make_call(0,
              (trace_event){.kind = WEIR_EV_LAUNCH,
                            .api = synth_api("cudaLaunchKernel"),
                            .flags = WEIR_EVF_RUNTIME,
                            .bytes = 32,
                            .stream = WEIR_STREAM_LEGACY},
              some_ns());
    copy_call(0, 0, &number, 0);
  }
  at_place = 0;
}

/* A launch, some questions that are one event, and after a pause or not the one that ends the wait. */
static void ask_after_pauses(int done)
{
  trace_event launch = {.kind = WEIR_EV_LAUNCH,
                        .api = synth_api("cudaLaunchKernel"),
                        .flags = WEIR_EVF_RUNTIME,
                        .bytes = 32,
                        .stream = WEIR_STREAM_LEGACY};
  trace_event question = {.kind = WEIR_EV_SYNC,
                          .api = synth_api("cudaStreamQuery"),
                          .flags = WEIR_EVF_RUNTIME,
                          .sync_type = WEIR_SYNC_QUERY,
                          .stream = WEIR_STREAM_LEGACY};
  if (done != CALLS / 4) return;
  for (int i = 0; i < 40; i++) {
    trace_event first = question, last = question;
    uint64_t polls = synth_below(5);
    first.stack = last.stack = launch.stack = UINT32_C(1) << 24 | (STACKS + 1);
    first.status = 600, first.bytes = polls, first.b = polls * 200000 + 1000;
    if (synth_below(4)) last.flags |= WEIR_EVF_PAUSED;
    if (synth_below(8)) synth_event(0, now, 2000, launch);
    synth_event(0, now += 3000, 1000 * (polls + 1), first);
    synth_event(0, now += first.b + 100000 + synth_below(200000), 1000, last);
    now += 2000;
  }
}

static void list_call(int i, uint64_t bytes)
{
  make_call(0,
            (trace_event){.kind = bytes ? WEIR_EV_ALLOC : WEIR_EV_FREE,
                          .api = synth_api(bytes ? "cudaMalloc" : "cudaFree"),
                          .flags = WEIR_EVF_RUNTIME | (bytes ? 0 : WEIR_EVF_IMPLICIT_SYNC),
                          .a = UINT64_C(0xb00000000) + (uint64_t)i * (1 << 28),
                          .bytes = bytes,
                          .mem = WEIR_MEM_DEVICE,
                          .src_device = WEIR_DEVICE_NONE},
            some_ns());
}

/* A list that is freed and at once allocated larger, while two other blocks live. */
static void resize_list(int done)
{
  if (done != CALLS / 5) return;
  for (int i = 0; i < 16; i++) {
    at_place = STACKS + 1;
    list_call(0, (UINT64_C(1) << 20) + (uint64_t)i * 4096);
    at_place = 1;
    list_call(1 + i % 2, 4096);
    list_call(3 + i % 2, 8192);
    if (synth_below(2)) wait_call(0);
    if (i) list_call(2 - i % 2, 0), list_call(4 - i % 2, 0);
    at_place = STACKS + 2;
    list_call(0, 0);
  }
  at_place = 0;
}

static const char *make_history(int history)
{
  const char *one[] = {NULL, NULL};
  unsigned threads = history % 3 ? THREADS : 1, uses = (unsigned)history % 4;
  hashed = history % 5 == 4;
  synth_seed(SEED + (uint64_t)history);
  memset(slots, 0, sizeof slots);
  now = 1;
  synth_open(synth_dir());
  for (int t = 0; t < THREADS; t++)
    for (uint64_t k = 1; k <= STACKS + 2; k++)
      synth_stack(t, (uint32_t)k, (const uint64_t[]){0x1000 * k, 0x9000}, 2);
  for (int i = 0; i < CALLS; i++) {
    hold_blocks(history, i);
    copy_slowly(i);
    resize_list(i);
    if (uses) ask_after_pauses(i);
    if (uses) copy_numbers(i);
    random_call((int)synth_below(threads), uses);
  }
  synth_close();
  one[0] = synth_spool();
  const char *trace = synth_import("t.db", one);
  synth_change(trace, "INSERT INTO meta VALUES('clock_ns', 13)");
  if (history % 7) synth_change(trace, "UPDATE process SET end_reason = 'exit'"); /* else killed */
  return trace;
}

/* ---- either way ------------------------------------------------------------------------------ */

static void find_in(wr_findings *f, const char *trace, const char *rules)
{
  wr_input in;
  wr_findings_settings settings = {.rules = rules, .min = {0, -1, 1}};
  ck_assert_int_eq(wr_input_open(&in, trace), WEIR_OK);
  ck_assert_msg(wr_findings_load(f, &in.db, &settings) == WEIR_OK, "%s", weir_error_message());
  ck_assert_ptr_null(f->unavailable);
  wr_input_close(&in);
}

/* What a finding is, as text, for a comparison. */
static void describe(char out[512], const wr_finding *f)
{
  int n =
      snprintf(out, 512, "%s %d: %lu ns, %lu saved, %lu behind, %lu bytes, %lu times, device %d;",
               f->rule->id, f->certainty, f->cost_ns, f->saving_ns, f->later_ns, f->saving_bytes,
               f->count, f->device);
  for (size_t i = 0; i < f->sites && n < 400; i++)
    n += snprintf(out + n, 512 - (size_t)n, " %.40s", f->site[i].function);
}

static void compare(const wr_findings *judged, const wr_findings *asked, int history)
{
  char a[512], b[512];
  for (size_t i = 0; i < judged->count && i < asked->count; i++) {
    describe(a, &judged->finding[i]);
    describe(b, &asked->finding[i]);
    ck_assert_msg(!strcmp(a, b), "history %d:\n%s\nby SQL:\n%s", history, a, b);
  }
  ck_assert_uint_eq(judged->count, asked->count);
  ck_assert_uint_eq(judged->saving_ns, asked->saving_ns);
  ck_assert_uint_eq(judged->moved_bytes, asked->moved_bytes);
  ck_assert_uint_eq(judged->removed_count, asked->removed_count);
  for (size_t i = 0; i < judged->removed_count; i++)
    ck_assert_uint_eq(judged->removed[i].count, asked->removed[i].count);
}

/* A folder of rules in SQL alone, one for each rule with a judge: the rule's own file without its
 * judge, where that has a SELECT, and else the file of that name in rules_by_sql. */
static const char *by_sql(void)
{
  static char folder[600];
  const char *source = getenv("WEIR_SOURCE");
  (void)snprintf(folder, sizeof folder, "%s/by_sql", synth_dir());
  (void)mkdir(folder, 0700);
  run_shell_format("cp '%s'/tests/findings/rules_by_sql/*.sql '%s'", source ? source : ".", folder);
  run_shell_format("cd '%s'/reports/findings/rules && for f in $(grep -l '^-- judge:' *.sql); do "
                   "! grep -q '^[^-]' $f || sed '/^-- judge:/d' $f >'%s'/$f || exit 1; done",
                   source ? source : ".", folder);
  return folder;
}

/* A folder of all rules, where `more` is given with its files in their place, without the lines by which a place counts
 * only if it does so often: a history is short. */
static const char *every_row(const char *name, const char *more)
{
  static char own[600], folders[2][700];
  char *folder = folders[more != NULL];
  const char *source = getenv("WEIR_SOURCE");
  (void)snprintf(own, sizeof own, "%s/reports/findings/rules", source ? source : ".");
  (void)snprintf(folder, sizeof folders[0], "%s/every_%s", synth_dir(), name);
  (void)mkdir(folder, 0700);
  for (int i = 0; i < (more ? 2 : 1); i++)
    run_shell_format("cd '%s' && for f in *.sql; do sed '/^-- often:/d; /^-- mostly:/d' $f >'%s'/$f"
                     " || exit 1; done",
                     i ? more : own, folder);
  return folder;
}

static size_t found[MOST_RULES];

static void count_found(const wr_findings *f)
{
  for (size_t i = 0; i < f->count; i++)
    found[f->finding[i].rule - f->rules.rule]++;
}

START_TEST(a_judge_gives_the_rows_of_its_sql)
{
  wr_findings judged, asked;
  for (int history = 0; history < HISTORIES; history++) {
    const char *trace = make_history(history);
    find_in(&judged, trace, every_row("judge", NULL));
    find_in(&asked, trace, every_row("sql", by_sql()));
    compare(&judged, &asked, history);
    count_found(&judged);
    wr_findings_free(&judged);
    wr_findings_free(&asked);
    synth_clean();
  }
  wr_rules rules;
  ck_assert_int_eq(wr_rules_load(&rules, by_sql()), WEIR_OK);
  for (size_t i = 0; i < rules.count; i++)
    ck_assert_msg(!rules.rule[i].file || found[i], "no history has a %s", rules.rule[i].id);
  wr_rules_free(&rules);
}
END_TEST

/* Every rule of Weir's with a judge has its SQL there, all else of it alike. */
START_TEST(each_judge_has_its_sql)
{
  wr_rules own, asked;
  ck_assert_int_eq(wr_rules_load(&own, NULL), WEIR_OK);
  ck_assert_msg(wr_rules_load(&asked, by_sql()) == WEIR_OK, "%s", weir_error_message());
  ck_assert_uint_eq(own.count, asked.count);
  for (size_t i = 0; i < own.count; i++) {
    const wr_rule *a = &own.rule[i], *b = &asked.rule[i];
    ck_assert_str_eq(a->id, b->id);
    ck_assert_msg(!a->judge == !b->file, "%s", a->id);
    ck_assert_ptr_null(b->judge);
    ck_assert_int_eq(a->thresholds, b->thresholds);
    ck_assert_int_eq(a->often, b->often);
    ck_assert_int_eq(a->mostly, b->mostly);
    for (int t = 0; t < a->thresholds; t++)
      ck_assert_int_eq(a->threshold[t].value, b->threshold[t].value);
  }
  wr_rules_free(&own);
  wr_rules_free(&asked);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("reports/judges");
  TCase *t = tcase_create("judges");
  tcase_set_timeout(t, 120);
  tcase_add_checked_fixture(t, NULL, synth_clean);
  tcase_add_test(t, each_judge_has_its_sql);
  tcase_add_test(t, a_judge_gives_the_rows_of_its_sql);
  suite_add_tcase(s, t);
  SRunner *r = srunner_create(s);
  srunner_run_all(r, CK_ENV);
  int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed != 0;
}
