/* test_hashes.c: the judges of hashed copies give each row that the SELECT of their rules gives, its
 * related event and certainty too, over random histories: two processes of two threads whose calls
 * overlap, or begin at the same time; two devices; addresses that are used again and again. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "reports/findings/judge.h"
#include "reports/model/open.h"
#include "tests/reports/synth.h"

enum { HISTORIES = 60, CALLS = 250, THREADS = 2, PAYLOADS = 4, MOST_ROWS = 4096, SEED = 20270131 };

/* ---- a random program ------------------------------------------------------------------------ */

static bool crowded; /* several calls begin at each time, of one thread too */
static uint64_t clock_ns, busy_until[THREADS]; /* the threads' last calls */

/* Two lie at either end of all addresses. */
static uint64_t device_address(void)
{
  static const uint64_t at[] = {4096, 0x700000000, 0x700000800, UINT64_MAX - 8191};
  return at[synth_below(4)];
}

static uint64_t host_address(void)
{
  return UINT64_C(0x7f0000000000) + synth_below(2) * 65536;
}

static void hash_call(int thread, const trace_event *e, uint64_t at)
{
  uint64_t hash = synth_below(PAYLOADS), start = spool_current()->clock_first.ticks + at;
  bool known = synth_below(8) != 0;
  const copy_hash_info info = {.hash = {hash, hash ? ~UINT64_C(0) : 0},
                               .bytes = e->bytes,
                               .ticks = 1,
                               .dst = e->a,
                               .src = e->b};
  trace_event head = {.start = start,
                      .hash_outcome = known ? WEIR_HASH_HASHED : WEIR_HASH_TOO_LONG,
                      .mem = hash == PAYLOADS - 1,
                      .b = start};
  ck_assert(
      spool_writer_extended(synth_thread(thread), WEIR_EV_COPY_HASH, &head, &info, sizeof info));
}

static void hashed_call(trace_event e)
{
  int thread = (int)synth_below(THREADS);
  uint64_t ns = 1 + synth_below(synth_below(3) ? 5 : 60);
  if (crowded) ns = 0;
  clock_ns += crowded ? !synth_below(4) : synth_below(4);
  uint64_t at = clock_ns > busy_until[thread] ? clock_ns : busy_until[thread] + !crowded;
  busy_until[thread] = at + ns;
  e.status = synth_below(40) ? 0 : 2;
  e.flags |= WEIR_EVF_RUNTIME;
  if (e.kind == WEIR_EV_COPY && synth_below(6)) hash_call(thread, &e, at);
  synth_event(thread, at, ns, e);
}

static void any_copy(void)
{
  static const uint64_t sizes[] = {512, 2048, 2048, 4096};
  static const uint8_t host[] = {WEIR_MEM_PAGEABLE, WEIR_MEM_PINNED, WEIR_MEM_HOST,
                                 WEIR_MEM_MANAGED};
  static const uint8_t ways[] = {WEIR_COPY_HTOD, WEIR_COPY_HTOD, WEIR_COPY_HTOD, WEIR_COPY_DTOH,
                                 WEIR_COPY_DTOH, WEIR_COPY_DTOH, WEIR_COPY_DTOD, WEIR_COPY_PTOP};
  uint8_t way = ways[synth_below(8)], side = host[synth_below(4)], device = (uint8_t)synth_below(2);
  uint8_t own = synth_below(8) ? WEIR_MEM_DEVICE : WEIR_MEM_PINNED; /* mapped */
  bool up = way == WEIR_COPY_HTOD, back = way == WEIR_COPY_DTOH;
  hashed_call((trace_event){.kind = WEIR_EV_COPY,
                            .api = synth_api("cudaMemcpy"),
                            .copy_kind = way,
                            .a = back ? host_address() : device_address(),
                            .b = up ? host_address() : device_address(),
                            .bytes = sizes[synth_below(4)],
                            .device = back ? WEIR_DEVICE_NONE : device,
                            .src_device = up ? WEIR_DEVICE_NONE : device,
                            .mem = (uint8_t)((back ? side : own) | (up ? side : own) << 4)});
}

/* `others`: of 40 calls those that are no copies. */
static void any_call(unsigned others)
{
  trace_event e = {
      .a = device_address(), .bytes = 2048, .mem = WEIR_MEM_DEVICE, .src_device = WEIR_DEVICE_NONE};
  unsigned what = (unsigned)synth_below(40);
  if (what >= others) {
    any_copy();
    return;
  }
  static const struct {
    uint8_t kind;
    const char *api;
  } calls[] = {{WEIR_EV_LAUNCH, "cudaLaunchKernel"}, {WEIR_EV_MEMSET, "cudaMemset"},
               {WEIR_EV_ALLOC, "cudaMalloc"},        {WEIR_EV_FREE, "cudaFree"},
               {WEIR_EV_CALL, "cudaGraphLaunch"},    {WEIR_EV_CALL, "cuIpcGetMemHandle"},
               {WEIR_EV_RESET, "cudaDeviceReset"},   {WEIR_EV_SYNC, "cudaDeviceSynchronize"}};
  size_t i = what % 4 ? synth_below(4) : synth_below(8);
  e.kind = calls[i].kind, e.api = synth_api(calls[i].api);
  hashed_call(e);
}

static const char *make_hashed(int history)
{
  static char paths[2][600];
  const char *spools[] = {paths[0], paths[1], NULL};
  synth_seed(SEED + (uint64_t)history);
  crowded = history % 3 == 2;
  for (int process = 0; process < 2; process++) {
    clock_ns = 1;
    memset(busy_until, 0, sizeof busy_until);
    synth_open(synth_dir());
    for (int i = 0; i < CALLS; i++)
      any_call((unsigned)(history % 6) * 5);
    synth_close();
    (void)snprintf(paths[process], sizeof paths[process], "%s", synth_spool());
  }
  return synth_import("t.db", spools);
}

/* ---- either way ------------------------------------------------------------------------------ */

typedef struct judged_rows {
  wr_found row[MOST_ROWS];
  size_t count;
} judged_rows;

static weir_status take_judged(void *context, const wr_found *row)
{
  judged_rows *r = context;
  ck_assert_uint_lt(r->count, MOST_ROWS);
  r->row[r->count++] = *row;
  return WEIR_OK;
}

static weir_status never_stop(void *context)
{
  (void)context;
  return WEIR_OK;
}

static size_t found_again[2][4]; /* by rule and certainty */

/* Each row of the SELECT is one of the judge's, and there are as many. */
static void compare_rows(const wr_db *db, const wr_rule *rule, const judged_rows *r, size_t *of)
{
  sqlite3_stmt *q = NULL;
  size_t rows = 0;
  ck_assert_int_eq(sqlite3_prepare_v2(db->handle, rule->sql, -1, &q, NULL), SQLITE_OK);
  for (int i = 0; i < rule->thresholds; i++)
    sqlite3_bind_int64(q, sqlite3_bind_parameter_index(q, rule->threshold[i].name),
                       rule->threshold[i].value);
  for (; sqlite3_step(q) == SQLITE_ROW; rows++) {
    const wr_found *f = NULL;
    for (size_t i = 0; i < r->count && !f; i++)
      if (r->row[i].event == sqlite3_column_int64(q, 0)) f = &r->row[i];
    ck_assert_msg(f, "%s: no event %d", rule->id, sqlite3_column_int(q, 0));
    ck_assert_int_eq(f->cost, sqlite3_column_int64(q, 1));
    ck_assert_int_eq(f->saving, sqlite3_column_int64(q, 2));
    ck_assert_int_eq(f->bytes, sqlite3_column_int64(q, 3));
    ck_assert_msg(f->related == sqlite3_column_int64(q, 4), "%s, event %ld: %ld, not %d", rule->id,
                  f->event, f->related, sqlite3_column_int(q, 4));
    ck_assert_str_eq(wr_certainty_name(f->certainty), (const char *)sqlite3_column_text(q, 5));
    of[f->certainty]++;
  }
  ck_assert_int_eq(sqlite3_finalize(q), SQLITE_OK);
  ck_assert_uint_eq(rows, r->count);
}

static void judge_both(const wr_db *db, const wr_facts *facts, const wr_rules *rules)
{
  static const char *const names[] = {"duplicate-transfer", "round-trip"};
  for (size_t i = 0; i < rules->count; i++)
    for (int n = 0; n < 2; n++) {
      static judged_rows found;
      wr_finders finders = {0};
      if (strcmp(rules->rule[i].id, names[n]) != 0) continue;
      found.count = 0;
      wr_case c = {.rule = &rules->rule[i],
                   .facts = facts,
                   .finders = &finders,
                   .db = db,
                   .take = take_judged,
                   .go_on = never_stop,
                   .context = &found};
      ck_assert_int_eq(wr_case_run(&c, wr_judge_of(names[n])), WEIR_OK);
      ck_assert(!c.declines);
      compare_rows(db, c.rule, &found, found_again[n]);
      wr_finders_close(&finders);
    }
}

typedef void (*with_facts)(const wr_db *db, const wr_facts *facts, const wr_rules *rules);

static void judge_history(const char *trace, const wr_rules *rules, with_facts judge)
{
  wr_input in;
  wr_facts f = {0};
  wr_events events;
  wr_facts_pass *pass = NULL;
  wr_facts_settings settings = {.events = &events};
  ck_assert_int_eq(wr_input_open(&in, trace), WEIR_OK);
  ck_assert_int_eq(wr_events_open(&events, &in.db), WEIR_OK);
  ck_assert_int_eq(wr_facts_begin(&pass, &f, &in.db, &settings), WEIR_OK);
  const wr_listener listener = {.take_some = wr_facts_take, .context = pass, .in_time = true};
  ck_assert_int_eq(wr_events_listen(&events, &listener, 1), WEIR_OK);
  ck_assert_msg(wr_facts_end(pass) == WEIR_OK, "%s", weir_error_message());
  wr_facts_close(pass);
  judge(&in.db, &f, rules);
  wr_facts_free(&f);
  wr_events_close(&events);
  wr_input_close(&in);
  synth_clean();
}

START_TEST(judges_of_hashed_copies_give_each_row_of_their_select)
{
  wr_rules rules;
  ck_assert_int_eq(wr_rules_load(&rules, NULL), WEIR_OK);
  for (int history = 0; history < HISTORIES; history++)
    judge_history(make_hashed(history), &rules, judge_both);
  ck_assert_uint_gt(found_again[0][WR_CERTAIN], 0);
  ck_assert_uint_gt(found_again[0][WR_LIKELY], 0);
  ck_assert_uint_gt(found_again[0][WR_POSSIBLE], 0);
  ck_assert_uint_gt(found_again[1][WR_CERTAIN], 0);
  ck_assert_uint_gt(found_again[1][WR_LIKELY], 0);
  wr_rules_free(&rules);
}
END_TEST

static void decline_both(const wr_db *db, const wr_facts *facts, const wr_rules *rules)
{
  static const char *const names[] = {"duplicate-transfer", "round-trip"};
  for (size_t i = 0; i < rules->count; i++)
    for (int n = 0; n < 2; n++) {
      wr_finders finders = {0};
      wr_case c = {.rule = &rules->rule[i],
                   .facts = facts,
                   .finders = &finders,
                   .db = db,
                   .go_on = never_stop};
      if (strcmp(rules->rule[i].id, names[n]) != 0) continue;
      ck_assert_int_eq(wr_case_run(&c, wr_judge_of(names[n])), WEIR_OK);
      ck_assert(c.declines);
      wr_finders_close(&finders);
    }
}

START_TEST(a_copy_of_two_hashes_is_left_to_the_select)
{
  wr_rules rules;
  ck_assert_int_eq(wr_rules_load(&rules, NULL), WEIR_OK);
  const char *trace = make_hashed(0);
  synth_change(trace, "INSERT INTO copy_hash(event, outcome, hash_low, hash_high, uniform)"
                      " SELECT event, outcome, hash_low, hash_high, uniform FROM copy_hash"
                      " WHERE outcome = 1 ORDER BY id DESC LIMIT 1");
  judge_history(trace, &rules, decline_both);
  wr_rules_free(&rules);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("reports/hashes");
  TCase *t = tcase_create("hashes");
  tcase_set_timeout(t, 120);
  tcase_add_checked_fixture(t, NULL, synth_clean);
  tcase_add_test(t, judges_of_hashed_copies_give_each_row_of_their_select);
  tcase_add_test(t, a_copy_of_two_hashes_is_left_to_the_select);
  suite_add_tcase(s, t);
  SRunner *r = srunner_create(s);
  srunner_run_all(r, CK_ENV);
  int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed != 0;
}
