/* test_whole.c: what a report has computed of a trace is kept in it and comes back as it was, all of
 * it; it is used while it holds, and no longer; bytes that somebody else wrote there do no harm. */
#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "reports/diff/diff.h"
#include "reports/diff/report.h"
#include "reports/model/open.h"
#include "reports/model/resolve.h"
#include "reports/page/page.h"
#include "reports/tables/tables.h"
#include "reports/whole/kept.h"
#include "reports/whole/shapes.h"
#include "reports/whole/whole.h"
#include "tests/level.h"
#include "tests/reports/own_program.h"
#include "tests/reports/synth.h"

#define LEN(a) (sizeof(a) / sizeof(a)[0])

static const wr_findings_settings plain = {0};

/* ---- traces ---------------------------------------------------------------------------------- */

static char program[600]; /* a copy of this one: what ran */

static void random_event(int thread, uint64_t at, const char *api, trace_event e)
{
  e.api = synth_api(api);
  e.flags |= WEIR_EVF_RUNTIME;
  e.stack = (uint32_t)synth_below(40);
  e.stream = synth_below(3);
  synth_event(thread, at, 1 + synth_below(400000), e);
}

static void random_copy(int thread, uint64_t at)
{
  bool up = synth_below(2);
  int device = (int)synth_below(2), none = (int)WEIR_DEVICE_NONE;
  synth_copy(thread, at, 1 + synth_below(400000), up ? WEIR_COPY_HTOD : WEIR_COPY_DTOH,
             synth_below(1 << 16), up ? device : none, up ? none : device,
             up ? WEIR_MEM_DEVICE : WEIR_MEM_PAGEABLE, up ? WEIR_MEM_PINNED : WEIR_MEM_DEVICE,
             synth_below(2) ? WEIR_EVF_IMPLICIT_SYNC : WEIR_EVF_ASYNC);
}

static void random_call(int thread, uint64_t at)
{
  switch (synth_below(5)) {
  case 0:
    random_event(thread, at, "cudaMalloc",
                 (trace_event){.kind = WEIR_EV_ALLOC,
                               .a = 0x1000 + synth_below(20) * 0x1000,
                               .bytes = 1 + synth_below(4096),
                               .mem = WEIR_MEM_DEVICE,
                               .device = (uint8_t)synth_below(2)});
    break;
  case 1:
    random_event(thread, at, "cudaFree",
                 (trace_event){.kind = WEIR_EV_FREE, .a = 0x1000 + synth_below(20) * 0x1000});
    break;
  case 2:
    random_copy(thread, at);
    break;
  case 3:
    random_event(thread, at, "cudaDeviceSynchronize",
                 (trace_event){.kind = WEIR_EV_SYNC, .detail = WEIR_SYNC_CONTEXT});
    break;
  default:
    random_event(thread, at, "cudaLaunchKernel",
                 (trace_event){.kind = WEIR_EV_LAUNCH, .a = 0x77 + synth_below(3)});
    break;
  }
}

static void random_stack(uint32_t id)
{
  uint64_t frames[6];
  size_t depth = 1 + synth_below(LEN(frames));
  for (size_t i = 0; i < depth; i++)
    frames[i] = own_program.start + synth_below(own_program.end - own_program.start);
  synth_stack(0, id, frames, depth);
}

/* Calls of three threads from many places of this program. */
static const char *random_trace_of(const char *how, uint64_t seed, int calls)
{
  const uint64_t first[] = {own_program.start + 1};
  synth_seed(seed);
  (void)snprintf(program, sizeof(program), "%s/program", synth_dir());
  run_shell_format(how, own_program.path, program);
  own_program_record(program, own_program.build_id, own_program.build_id_bytes, first, 1);
  synth_extended(0, WEIR_EV_NOTE, 0, 0, "hello", 5);
  synth_extended(0, WEIR_EV_NAME, 0, WEIR_NAME_DEVICE, "GPU", 3);
  synth_extended(0, WEIR_EV_NAME, 0x77, WEIR_NAME_KERNEL, "add", 3);
  for (uint32_t i = 2; i < 40; i++)
    random_stack(i);
  uint64_t at[3] = {1000, 1500, 2000};
  for (int i = 0; i < calls; i++) {
    int thread = (int)synth_below(3);
    random_call(thread, at[thread] += 400000 + synth_below(500000));
  }
  return synth_import_this();
}

/* Names without lines are quickly found. */
static const char *random_trace(uint64_t seed, int calls)
{
  return random_trace_of("objcopy --strip-debug '%s' '%s'", seed, calls);
}

static void keep_figures(const char *trace)
{
  ck_assert_msg(wr_whole_keep(trace, &plain) == WEIR_OK, "%s", weir_error_message());
}

static int64_t rows_of(const char *trace)
{
  return synth_number(trace, "SELECT count(*) FROM sqlite_schema WHERE name = 'kept'")
             ? synth_number(trace, "SELECT count(*) FROM kept")
             : 0;
}

/* ---- what is shown --------------------------------------------------------------------------- */

typedef struct shown {
  char *text; /* owned */
  size_t bytes;
  FILE *to;
} shown;

static void show_tables(shown *x, const char *trace, bool anew)
{
  static const char *const names[] = {"summary", "cache",    "findings", "memory",
                                      "devices", "coverage", "idle"};
  for (size_t i = 0; i < LEN(names); i++)
    for (int format = WEIR_REPORT_TEXT; format <= WEIR_REPORT_JSON_1; format += 1 + (i > 2)) {
      const report_settings o = {
          .format = (report_format)format, .anew = anew, .top = 1 + format * 3};
      weir_status s = report_tables(x->to, names[i], trace, &o);
      ck_assert_msg(!s, "%s: %s", names[i], weir_error_message());
    }
}

static void show_texts(shown *x, const char *trace, bool anew, const report_settings *settings)
{
  static weir_status (*const reports[])(FILE *, const char *, const report_settings *) = {
      report_summary, report_findings, report_cache};
  for (int top = 0; top < 60; top = top * 12 + 1)
    for (size_t i = 0; i < LEN(reports); i++) {
      report_settings o = *settings;
      o.anew = anew, o.top = top, o.depth = top, o.possible = top & 1;
      ck_assert_msg(!reports[i](x->to, trace, &o), "%s", weir_error_message());
    }
}

static void show_diff(shown *x, const char *trace, bool anew)
{
  static const wr_conditions none = {0};
  wr_diff d;
  const wr_figures_settings settings = {.findings = true, .anew = anew};
  ck_assert_int_eq(wr_diff_load(&d, trace, trace, &settings, &none), WEIR_OK);
  for (int format = WR_DIFF_TEXT; format <= WR_DIFF_JSON_1; format++)
    ck_assert_int_eq(
        wr_diff_render(x->to, &d, &(wr_diff_settings){.format = (wr_diff_format)format}), WEIR_OK);
  wr_diff_free(&d);
}

/* Summaries, findings, tables in all formats, the page, a difference: one text. */
static shown show_all(const char *trace, bool anew)
{
  shown x = {0};
  run_figures f;
  x.to = open_memstream(&x.text, &x.bytes);
  show_texts(&x, trace, anew, &(report_settings){.findings.quoting = WR_QUOTE_ANY});
  show_tables(&x, trace, anew);
  show_diff(&x, trace, anew);
  ck_assert_int_eq(report_figures(&f, trace), WEIR_OK);
  ck_assert_msg(!page_write(x.to, trace, &(page_settings){.anew = anew}), "%s",
                weir_error_message());
  (void)fclose(x.to);
  return x;
}

/* Some of it. */
static shown show_some(const char *trace)
{
  shown x = {0};
  x.to = open_memstream(&x.text, &x.bytes);
  const report_settings o = {.top = 7, .depth = 9, .possible = true},
                        j = {.format = WEIR_REPORT_JSON};
  ck_assert_int_eq(report_summary(x.to, trace, &o), WEIR_OK);
  ck_assert_int_eq(report_findings(x.to, trace, &o), WEIR_OK);
  ck_assert_int_eq(report_tables(x.to, "summary", trace, &j), WEIR_OK);
  ck_assert_int_eq(report_tables(x.to, "findings", trace, &j), WEIR_OK);
  (void)fclose(x.to);
  return x;
}

/* A text summary. */
static char *show_summary(const char *trace, const report_settings *settings)
{
  shown x = {0};
  x.to = open_memstream(&x.text, &x.bytes);
  ck_assert_msg(!report_summary(x.to, trace, settings), "%s", weir_error_message());
  (void)fclose(x.to);
  return x.text;
}

static void expect_same(const char *trace)
{
  shown kept = show_all(trace, false), anew = show_all(trace, true);
  ck_assert_uint_eq(kept.bytes, anew.bytes);
  ck_assert(!memcmp(kept.text, anew.text, kept.bytes));
  free(kept.text);
  free(anew.text);
}

/* ---- what is used ---------------------------------------------------------------------------- */

enum { FORGED = 123457 };

/* Keeps a model that has another number of launches, which only what is kept can show. */
static void forge(const char *trace)
{
  wr_input in;
  wr_model m;
  wr_kept_of of;
  wr_shape_bytes rows[WR_KEPTS] = {{0}};
  wr_findings f = {0};
  ck_assert_int_eq(wr_input_open(&in, trace), WEIR_OK);
  ck_assert(wr_kept_find_now(&in.db, &of));
  ck_assert_int_eq(wr_whole_load(&m, &f, &in.db, INT32_MAX, &plain), WEIR_OK);
  wr_input_close(&in);
  m.total.launches = FORGED;
  wr_shape_write(&rows[WR_KEPT_MODEL], &wr_model_shape, &m);
  wr_shape_write(&rows[WR_KEPT_FINDINGS], &wr_findings_shape, &f);
  ck_assert(!rows[0].failed && !rows[1].failed);
  ck_assert_msg(!wr_kept_write(trace, &of, rows), "%s", weir_error_message());
  free(rows[0].data);
  free(rows[1].data);
  wr_model_free(&m);
  wr_findings_free(&f);
}

static bool is_used_with(const char *trace, const report_settings *settings)
{
  char *text = show_summary(trace, settings);
  bool used = strstr(text, "123,457") != NULL;
  free(text);
  return used;
}

static bool is_used(const char *trace)
{
  return is_used_with(trace, &(report_settings){0});
}

static const char *forged_trace(void)
{
  const char *t = random_trace(5, 300);
  forge(t);
  ck_assert(is_used(t));
  return t;
}

/* ---- cases ----------------------------------------------------------------------------------- */

START_TEST(what_is_kept_is_shown_as_what_is_computed)
{
  for (uint64_t seed = 1; seed <= AT_LEVEL(3, 20, 100); seed++) {
    const char *how = seed % 3 ? "objcopy --strip-debug '%s' '%s'" : "cp '%s' '%s'";
    const char *t = random_trace_of(how, seed, 50 + (int)seed * 150);
    keep_figures(t);
    ck_assert_int_eq(rows_of(t), WR_KEPTS);
    expect_same(t);
    synth_clean();
  }
}
END_TEST

START_TEST(a_report_shows_what_is_kept_unless_it_is_asked_to_compute)
{
  const char *t = forged_trace();
  ck_assert(!is_used_with(t, &(report_settings){.anew = true}));
  keep_figures(t);
  ck_assert_int_eq(rows_of(t), WR_KEPTS);
}
END_TEST

START_TEST(a_changed_trace_is_computed)
{
  const char *t = forged_trace();
  synth_change(t, "UPDATE event_row SET duration = duration + 1000000000 WHERE id = 3");
  ck_assert(!is_used(t));
  expect_same(t);
  t = forged_trace();
  synth_change(t, "PRAGMA journal_mode = WAL");
  ck_assert(!is_used(t));
  synth_change(t, "UPDATE event_row SET duration = duration + 1000000000 WHERE id = 3");
  expect_same(t);
  t = forged_trace();
  synth_change(t, "UPDATE meta SET value = 0 WHERE key = 'finished'");
  ck_assert(!is_used(t));
}
END_TEST

/* A row that says of itself that its own change is the last one. */
START_TEST(what_another_weir_wrote_is_computed)
{
  static const char *const changes[] = {
      "stamp = stamp + 1", "files = files + 1", "sum = sum + 1",     "value = substr(value, 2)",
      "value = 'text'",    "value = NULL",      "what = what || 's'"};
  for (size_t i = 0; i < LEN(changes); i++) {
    const char *t = forged_trace();
    char sql[200];
    synth_change(t, "CREATE TABLE was AS SELECT * FROM kept");
    synth_change(t, "DROP TABLE kept");
    synth_change(t, "CREATE TABLE kept AS SELECT what, stamp, change + 4 AS change, files, sum,"
                    " value FROM was");
    synth_change(t, "DROP TABLE was");
    ck_assert(is_used(t));
    (void)snprintf(sql, sizeof(sql), "UPDATE kept SET change = change + 1, %s", changes[i]);
    synth_change(t, sql);
    ck_assert_msg(!is_used(t), "%s", changes[i]);
  }
}
END_TEST

START_TEST(a_changed_program_is_looked_into_again)
{
  static const char *const commands[] = {"touch '%s' # %s", "rm '%s' # %s",
                                         "cp /bin/true '%s' # %s", "cp '%s' '%s.debug'"};
  for (size_t i = 0; i < LEN(commands); i++) {
    const char *t = forged_trace();
    run_shell_format(commands[i], program, program);
    ck_assert_msg(!is_used(t), "%s", commands[i]);
    expect_same(t);
    synth_clean();
  }
}
END_TEST

START_TEST(other_settings_are_computed)
{
  const char *t = forged_trace();
  char folder[600];
  (void)snprintf(folder, sizeof(folder), "%s/rules", synth_dir());
  (void)mkdir(folder, 0700);
  run_shell_format(
      "printf -- '-- id: mine\\n-- title: Mine\\n-- severity: low\\n-- certainty: likely\\n"
      "-- fix: None.\\nSELECT id AS event FROM event_row WHERE 0\\n' >'%s/mine.sql' # %s",
      folder, "");
  ck_assert(!is_used_with(t, &(report_settings){.symbols = folder}));
  ck_assert(!is_used_with(t, &(report_settings){.innermost_sites = true}));
  ck_assert(!is_used_with(t, &(report_settings){.findings.rules = folder}));
  ck_assert(!is_used_with(t, &(report_settings){.findings.min.ns = 1}));
  ck_assert(!is_used_with(t, &(report_settings){.findings.min.share = 0.5}));
  ck_assert(is_used_with(t, &(report_settings){.top = 3, .depth = 5, .possible = true}));
  ck_assert(is_used_with(t, &(report_settings){.findings.quoting = WR_QUOTE_ANY}));
  ck_assert(is_used_with(t, &(report_settings){.findings.rule_ms = 7}));
}
END_TEST

START_TEST(what_changes_a_trace_drops_what_is_kept)
{
  resolve_counts counts;
  const char *t = forged_trace();
  ck_assert_int_eq(resolve_trace(t, &(resolve_settings){0}, &counts), WEIR_OK);
  ck_assert_int_eq(rows_of(t), 0);
  keep_figures(t);
  ck_assert_int_eq(rows_of(t), WR_KEPTS);
  expect_same(t);
}
END_TEST

START_TEST(a_trace_that_is_added_to_has_nothing_kept)
{
  trace_importer *im = NULL;
  const char *t = forged_trace();
  const importer_options o = {.merge = true};
  synth_open(synth_dir());
  synth_alloc(0, 500, 10, 0x999000, 64, 0, WEIR_MEM_DEVICE);
  synth_close();
  ck_assert_int_eq(importer_open(&im, t, &o), WEIR_OK);
  ck_assert_int_eq(importer_add(im, synth_spool(), false, NULL), WEIR_OK);
  ck_assert_int_eq(importer_finish(im), WEIR_OK);
  importer_close(im);
  ck_assert_int_eq(rows_of(t), 0);
  ck_assert(!is_used(t));
}
END_TEST

/* ---- keeping --------------------------------------------------------------------------------- */

static void read_whole_file(const char *path, char **bytes, size_t *count)
{
  struct stat file;
  FILE *f = fopen(path, "r");
  ck_assert(f && !fstat(fileno(f), &file));
  *count = (size_t)file.st_size;
  *bytes = malloc(*count + 1);
  ck_assert_uint_eq(fread(*bytes, 1, *count, f), *count);
  (void)fclose(f);
}

static void expect_unchanged(const char *trace, const char *then, size_t bytes)
{
  char *now = NULL, name[600];
  size_t count = 0;
  read_whole_file(trace, &now, &count);
  ck_assert(count == bytes && !memcmp(now, then, bytes));
  free(now);
  static const char *const ends[] = {"-wal", "-shm", "-journal"};
  for (size_t i = 0; i < LEN(ends); i++) {
    (void)snprintf(name, sizeof(name), "%s%s", trace, ends[i]);
    ck_assert_int_ne(access(name, F_OK), 0);
  }
}

START_TEST(who_is_stopped_or_has_no_room_leaves_the_trace_as_it_was)
{
  char *then = NULL;
  size_t bytes = 0;
  const volatile int stop = 1;
  const char *t = random_trace(5, 300);
  read_whole_file(t, &then, &bytes);
  ck_assert_int_eq(wr_whole_keep(t, &(wr_findings_settings){.stop = &stop}), WEIR_EIO);
  expect_unchanged(t, then, bytes);
  importer_options o = {.merge = true};
  trace_importer *im = NULL;
  ck_assert_int_eq(importer_open(&im, t, &o), WEIR_OK); /* another writes it */
  ck_assert_int_eq(wr_whole_keep(t, &plain), WEIR_EIO);
  importer_close(im);
  ck_assert_int_eq(rows_of(t), 0);
  free(then);
}
END_TEST

START_TEST(a_reader_keeps_the_trace_that_it_has)
{
  const char *t = random_trace(5, 300);
  sqlite3 *db = NULL;
  ck_assert_int_eq(sqlite3_open_v2(t, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
  ck_assert_int_eq(sqlite3_exec(db, "BEGIN; SELECT * FROM meta", NULL, NULL, NULL), SQLITE_OK);
  ck_assert_int_ne(wr_whole_keep(t, &plain), WEIR_OK);
  sqlite3_close(db);
  ck_assert_int_eq(rows_of(t), 0);
  expect_same(t);
}
END_TEST

/* Killed at any time, it leaves a trace that gives what it gave. */
START_TEST(who_is_killed_leaves_a_trace_that_can_be_read)
{
  const char *t = random_trace(5, 300);
  shown before = show_some(t);
  for (int i = 0; i < AT_LEVEL(10, 100, 1000); i++) {
    pid_t pid = fork();
    if (!pid) _exit(wr_whole_keep(t, &plain) != WEIR_OK);
    const struct timespec some = {.tv_nsec = (long)synth_below(40000000)};
    (void)nanosleep(&some, NULL);
    (void)kill(pid, SIGKILL);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    shown after = show_some(t);
    ck_assert(before.bytes == after.bytes && !memcmp(before.text, after.text, before.bytes));
    free(after.text);
  }
  keep_figures(t);
  ck_assert_int_eq(rows_of(t), WR_KEPTS);
  expect_same(t);
  free(before.text);
}
END_TEST

/* As somebody leaves it who is killed before the WAL is folded in. */
START_TEST(of_a_trace_that_was_left_in_wal_mode_figures_are_kept)
{
  const char *t = random_trace(5, 300);
  synth_change(t, "PRAGMA journal_mode = WAL");
  keep_figures(t);
  ck_assert_int_eq(rows_of(t), WR_KEPTS);
  expect_same(t);
}
END_TEST

START_TEST(of_a_trace_without_events_or_that_is_not_complete_nothing_is_kept)
{
  synth_open(synth_dir());
  synth_close();
  const char *t = synth_import_this();
  keep_figures(t);
  ck_assert_int_eq(rows_of(t), 0);
  synth_clean();
  t = random_trace(5, 30);
  synth_change(t, "UPDATE meta SET value = 0 WHERE key = 'finished'");
  keep_figures(t);
  ck_assert_int_eq(rows_of(t), 0);
}
END_TEST

/* ---- shapes ---------------------------------------------------------------------------------- */

static size_t alignment_of(const wr_shape *shape)
{
  size_t most = 1;
  for (size_t i = 0; i < shape->count; i++) {
    const wr_member *f = &shape->member[i];
    bool inside = f->kind == WR_MEMBER_STRUCT;
    size_t own = inside ? alignment_of(f->of) : f->bytes < 8 ? f->bytes : 8;
    if (own > most) most = own;
  }
  return most;
}

static const wr_member *next_member(const wr_shape *shape, size_t from)
{
  const wr_member *next = NULL;
  for (size_t i = 0; i < shape->count; i++) {
    const wr_member *f = &shape->member[i];
    if (f->offset >= from && (!next || f->offset < next->offset)) next = f;
  }
  return next;
}

/* Where a number of elements is of a list, it is a member by itself. */
static size_t numbers_end(const wr_shape *shape, size_t at)
{
  for (size_t i = 0; i < shape->count; i++) {
    const wr_member *f = &shape->member[i];
    if (f->many == at + 1) return at + f->many_bytes;
    if (f->room == at + 1) return at + sizeof(size_t);
  }
  return at;
}

/* Each byte of a struct is a member's, or what the alignment of the next one leaves. */
static void expect_whole(const wr_shape *shape)
{
  size_t at = 0, aligned = alignment_of(shape);
  while (at < shape->bytes) {
    size_t number = numbers_end(shape, at);
    const wr_member *f = next_member(shape, at);
    if (number > at) {
      at = number;
    } else if (f && f->offset == at) {
      at += f->bytes * (f->kind == WR_MEMBER_SPARSE ? 1 : f->count);
      if (f->of) expect_whole(f->of);
    } else {
      size_t to = at + 1;
      while (to < shape->bytes && numbers_end(shape, to) == to && !(f && f->offset == to))
        to++;
      ck_assert_msg(to - at < aligned, "%s: byte %zu is no member's", shape->name, at);
      at = to;
    }
  }
  ck_assert_uint_eq(at, shape->bytes);
}

START_TEST(each_member_of_a_struct_is_in_its_shape)
{
  expect_whole(&wr_model_shape);
  expect_whole(&wr_findings_shape);
}
END_TEST

typedef struct sample {
  int64_t wide;
  uint64_t most[2];
  int narrow;
  uint8_t small;
  char *text, *none;
} sample;

#define OF sample
static const wr_member sample_members[] = {NUMBER(wide),          ROW(most),  NUMBER(narrow),
                                           NUMBER_TO(small, 200), TEXT(text), MAYBE_TEXT(none)};
static const wr_shape sample_shape = SHAPE(sample);
#undef OF

static bool comes_back(const sample *x)
{
  sample y = {0};
  wr_shape_bytes out = {0};
  wr_shape_write(&out, &sample_shape, x);
  bool good = !out.failed && wr_shape_read(out.data, out.count, &sample_shape, &y) &&
              x->wide == y.wide && x->most[0] == y.most[0] && x->most[1] == y.most[1] &&
              x->narrow == y.narrow && x->small == y.small && !strcmp(x->text, y.text);
  for (size_t i = 0; good && i < out.count; i++) { /* fewer bytes are none of it */
    sample z = {0};
    ck_assert(!wr_shape_read(out.data, i, &sample_shape, &z));
    free(z.text);
    free(z.none);
  }
  free(y.text);
  free(y.none);
  free(out.data);
  return good;
}

START_TEST(numbers_come_back_within_their_bounds)
{
  sample x = {.text = (char[]){"text"}};
  ck_assert(comes_back(&x));
  x.most[0] = UINT64_MAX, x.most[1] = UINT64_C(1) << 63;
  ck_assert(comes_back(&x));
  x.wide = -(INT64_C(1) << 62);
  ck_assert(comes_back(&x));
  x.wide = INT64_MAX;
  ck_assert(!comes_back(&x));
  x.wide = INT64_MIN;
  ck_assert(!comes_back(&x));
  x.wide = -1, x.narrow = -(1 << 30) + 1, x.small = 200;
  ck_assert(comes_back(&x));
  x.small = 201;
  ck_assert(!comes_back(&x));
  x.small = 0, x.text = (char[]){"\033[2J"};
  ck_assert(!comes_back(&x));
}
END_TEST

START_TEST(too_many_bytes_are_not_written)
{
  const sample x = {.text = (char[]){"text"}};
  wr_shape_bytes out = {.most = 9};
  wr_shape_write(&out, &sample_shape, &x);
  ck_assert(out.failed);
  ck_assert_uint_le(out.count, 9);
  free(out.data);
}
END_TEST

/* ---- what somebody else wrote there ---------------------------------------------------------- */

typedef struct hostile {
  sqlite3 *db;
  sqlite3_stmt *update;
  unsigned char *was[WR_KEPTS]; /* owned */
  size_t count[WR_KEPTS];
} hostile;

static void take_bytes(hostile *h)
{
  static const char *const names[] = {"model", "findings"};
  sqlite3_stmt *q = NULL;
  ck_assert_int_eq(sqlite3_prepare_v2(h->db, "SELECT value FROM kept WHERE what = ?", -1, &q, NULL),
                   SQLITE_OK);
  for (int i = 0; i < WR_KEPTS; i++) {
    sqlite3_bind_text(q, 1, names[i], -1, SQLITE_STATIC);
    ck_assert_int_eq(sqlite3_step(q), SQLITE_ROW);
    h->count[i] = (size_t)sqlite3_column_bytes(q, 0);
    h->was[i] = malloc(h->count[i]);
    memcpy(h->was[i], sqlite3_column_blob(q, 0), h->count[i]);
    sqlite3_reset(q);
  }
  sqlite3_finalize(q);
}

/* Some bytes are others, are left out, or are there twice. */
static size_t damage(unsigned char *bytes, size_t count)
{
  static const unsigned char likely[] = {0, 1, 2, 127, 128, 255};
  for (uint64_t n = 1 + synth_below(4); n; n--) {
    size_t at = (size_t)synth_below(count), some = (size_t)synth_below(8);
    switch (synth_below(5)) {
    case 0:
      if (at + some < count)
        memmove(bytes + at, bytes + at + some, count - at - some), count -= some;
      break;
    case 1:
      if (at + some < count) memmove(bytes + at + some, bytes + at, count - at - some);
      break;
    case 2:
      bytes[at] = likely[synth_below(sizeof(likely))];
      break;
    case 3:
      bytes[at] ^= (unsigned char)(1u << synth_below(8));
      break;
    default:
      for (size_t i = at; i < count && i < at + 9; i++)
        bytes[i] = 255;
      break;
    }
  }
  return count;
}

/* Puts it there as if it was what an import wrote. */
static void put_damaged(hostile *h, int which)
{
  size_t count = h->count[which];
  unsigned char *bytes = malloc(count);
  memcpy(bytes, h->was[which], count);
  count = damage(bytes, count);
  ck_assert_int_eq(
      sqlite3_exec(h->db, "BEGIN; UPDATE kept SET change = change + 1", NULL, NULL, NULL),
      SQLITE_OK);
  sqlite3_bind_blob(h->update, 1, bytes, (int)count, SQLITE_STATIC);
  sqlite3_bind_int64(h->update, 2, (sqlite3_int64)wr_kept_sum(bytes, count));
  sqlite3_bind_text(h->update, 3, which ? "findings" : "model", -1, SQLITE_STATIC);
  ck_assert_int_eq(sqlite3_step(h->update), SQLITE_DONE);
  sqlite3_reset(h->update);
  ck_assert_int_eq(sqlite3_exec(h->db, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
  free(bytes);
}

/* What was there is there again. */
static void put_back(hostile *h, int which)
{
  sqlite3_exec(h->db, "BEGIN; UPDATE kept SET change = change + 1", NULL, NULL, NULL);
  sqlite3_bind_blob(h->update, 1, h->was[which], (int)h->count[which], SQLITE_STATIC);
  sqlite3_bind_int64(h->update, 2, (sqlite3_int64)wr_kept_sum(h->was[which], h->count[which]));
  sqlite3_bind_text(h->update, 3, which ? "findings" : "model", -1, SQLITE_STATIC);
  sqlite3_step(h->update);
  sqlite3_reset(h->update);
  sqlite3_exec(h->db, "COMMIT", NULL, NULL, NULL);
}

/* How often damaged bytes were taken. */
static int try_damaged(const char *trace, int times)
{
  hostile h = {0};
  int taken = 0;
  ck_assert_int_eq(sqlite3_open(trace, &h.db), SQLITE_OK);
  sqlite3_exec(h.db, "PRAGMA synchronous = OFF", NULL, NULL, NULL);
  ck_assert_int_eq(sqlite3_prepare_v2(h.db, "UPDATE kept SET value = ?, sum = ? WHERE what = ?", -1,
                                      &h.update, NULL),
                   SQLITE_OK);
  take_bytes(&h);
  for (int i = 0; i < times; i++) {
    int which = i % WR_KEPTS;
    put_damaged(&h, which);
    shown x = i % 20 ? show_some(trace) : show_all(trace, false);
    taken += is_used(trace);
    free(x.text);
    put_back(&h, which);
    ck_assert(is_used(trace));
  }
  for (int i = 0; i < WR_KEPTS; i++)
    free(h.was[i]);
  sqlite3_finalize(h.update);
  sqlite3_close(h.db);
  return taken;
}

START_TEST(bytes_of_somebody_elses_give_a_report)
{
  const char *t = forged_trace();
  ck_assert_int_gt(try_damaged(t, AT_LEVEL(60, 1000, 20000)), 0);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("reports/whole");
  TCase *t = tcase_create("whole");
  tcase_set_timeout(t, 0);
  tcase_add_checked_fixture(t, own_program_find, synth_clean);
  tcase_add_test(t, what_is_kept_is_shown_as_what_is_computed);
  tcase_add_test(t, a_report_shows_what_is_kept_unless_it_is_asked_to_compute);
  tcase_add_test(t, a_changed_trace_is_computed);
  tcase_add_test(t, what_another_weir_wrote_is_computed);
  tcase_add_test(t, a_changed_program_is_looked_into_again);
  tcase_add_test(t, other_settings_are_computed);
  tcase_add_test(t, what_changes_a_trace_drops_what_is_kept);
  tcase_add_test(t, a_trace_that_is_added_to_has_nothing_kept);
  tcase_add_test(t, who_is_stopped_or_has_no_room_leaves_the_trace_as_it_was);
  tcase_add_test(t, a_reader_keeps_the_trace_that_it_has);
  tcase_add_test(t, who_is_killed_leaves_a_trace_that_can_be_read);
  tcase_add_test(t, of_a_trace_that_was_left_in_wal_mode_figures_are_kept);
  tcase_add_test(t, of_a_trace_without_events_or_that_is_not_complete_nothing_is_kept);
  tcase_add_test(t, each_member_of_a_struct_is_in_its_shape);
  tcase_add_test(t, numbers_come_back_within_their_bounds);
  tcase_add_test(t, too_many_bytes_are_not_written);
  tcase_add_test(t, bytes_of_somebody_elses_give_a_report);
  suite_add_tcase(s, t);
  SRunner *r = srunner_create(s);
  srunner_run_all(r, CK_ENV);
  int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed != 0;
}
