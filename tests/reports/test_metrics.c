/* test_metrics.c: the figures of a tally come to what the same sums over the trace of its spool do;
 * a page is well formed whatever names there are, and of at most 500 series. */
#include <check.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "reports/metrics/page.h"
#include "reports/tally/private.h"
#include "tests/reports/synth.h"

enum { STEPS = 4000, DEVICES = 3 };

/* ---- a program ------------------------------------------------------------------------------- */

static trace_event call_of(uint8_t kind, const char *api)
{
  return (trace_event){.kind = kind,
                       .api = synth_api(api),
                       .status = synth_below(30) ? 0 : 2,
                       .flags = synth_below(30) ? 0 : WEIR_EVF_CAPTURE,
                       .device = (uint8_t)synth_below(DEVICES),
                       .src_device = WEIR_DEVICE_NONE};
}

static void put_alloc(uint64_t at)
{
  trace_event e = call_of(WEIR_EV_ALLOC, "cuMemAlloc_v2");
  e.a = 0x10000 + at * 0x1000;
  e.bytes = 1 + synth_below(9000);
  e.mem = synth_below(4) ? WEIR_MEM_DEVICE : WEIR_MEM_PINNED;
  if (e.mem == WEIR_MEM_PINNED) e.device = WEIR_DEVICE_NONE;
  if (!synth_below(3)) e.flags |= WEIR_EVF_CACHED;
  if (!(e.flags & WEIR_EVF_CACHED) && !synth_below(3)) e.reason = WEIR_WHY_FIRST;
  ck_assert(synth_event(0, at, 3, e));
}

static void put_copy(uint64_t at)
{
  static const uint8_t ways[] = {WEIR_COPY_HTOD, WEIR_COPY_DTOH, WEIR_COPY_DTOD};
  trace_event e = call_of(WEIR_EV_COPY, "cuMemcpyHtoD_v2");
  e.copy_kind = ways[synth_below(3)];
  if (e.copy_kind == WEIR_COPY_DTOH) e.src_device = e.device, e.device = WEIR_DEVICE_NONE;
  if (synth_below(2)) e.flags |= WEIR_EVF_IMPLICIT_SYNC;
  e.bytes = synth_below(100000);
  ck_assert(synth_event(0, at, 5, e));
}

static void put_wait(uint64_t at)
{
  trace_event e = call_of(WEIR_EV_SYNC, "cuStreamSynchronize");
  e.sync_type = (uint8_t)(1 + synth_below(5));
  ck_assert(synth_event(0, at, 7, e));
}

static void put_free(uint64_t at)
{
  trace_event e = call_of(WEIR_EV_FREE, "cuMemFree_v2");
  e.a = 0x10000 + synth_below(at) / 10 * 10 * 0x1000;
  e.mem = WEIR_MEM_DEVICE;
  if (synth_below(2)) e.flags |= WEIR_EVF_IMPLICIT_SYNC;
  ck_assert(synth_event(0, at, 2, e));
}

static const char *write_program(uint64_t seed)
{
  static void (*const puts_of[])(uint64_t at) = {put_alloc, put_copy, put_wait, put_free};
  synth_seed(seed);
  synth_open(synth_dir());
  for (uint64_t i = 1; i <= STEPS; i++)
    puts_of[synth_below(4)](i * 10);
  synth_close();
  const char *one[] = {synth_spool(), NULL};
  return synth_import("t.db", one);
}

static wr_tally *tally_of(spool_reader **reader)
{
  const wr_tally_options options = {.in_memory = true, .anew = true};
  wr_tally *t;
  ck_assert_int_eq(spool_reader_open(reader, synth_spool(), false), WEIR_OK);
  ck_assert_int_eq(wr_tally_open(&t, *reader, synth_spool(), &options), WEIR_OK);
  ck_assert_int_eq(wr_tally_drain(t, true), WEIR_OK);
  return t;
}

/* ---- figures --------------------------------------------------------------------------------- */

static int64_t ask_trace(const char *trace, const char *sum, const char *where)
{
  char sql[512];
  (void)snprintf(sql, sizeof sql, "SELECT ifnull(sum(%s), 0) FROM event WHERE %s", sum, where);
  return synth_number(trace, sql);
}

static void expect_list(const char *trace, const wr_figure_list *l, const char *where)
{
  uint64_t count = 0, bytes = 0;
  for (unsigned i = 0; i < l->count; i++) {
    count += l->row[i].count;
    bytes += l->row[i].bytes;
  }
  ck_assert_int_eq((int64_t)count, ask_trace(trace, "1", where));
  ck_assert_int_eq((int64_t)bytes, ask_trace(trace, "bytes", where));
}

static void expect_copies(const char *trace, const wr_figures *f)
{
  static const struct {
    uint8_t kind;
    const char *column;
  } ways[] = {
      {WEIR_COPY_HTOD, "device"}, {WEIR_COPY_DTOH, "src_device"}, {WEIR_COPY_DTOD, "device"}};
  for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
    for (int device = 0; device < DEVICES; device++) {
      char where[256];
      uint64_t count = 0, bytes = 0;
      (void)snprintf(where, sizeof where,
                     "kind = 3 AND status = 0 AND NOT flags & 16 AND copy = %d AND %s = %d",
                     ways[i].kind, ways[i].column, device);
      for (unsigned k = 0; k < f->copies.count; k++)
        if (f->copies.row[k].what == ways[i].kind && f->copies.row[k].device == device)
          count += f->copies.row[k].count, bytes += f->copies.row[k].bytes;
      ck_assert_uint_gt(count, 0);
      ck_assert_int_eq((int64_t)count, ask_trace(trace, "1", where));
      ck_assert_int_eq((int64_t)bytes, ask_trace(trace, "bytes", where));
    }
}

static void expect_waits(const char *trace, const wr_figures *f)
{
  static const char *const where[WR_WAIT_CAUSES] = {[WR_WAIT_EVENT] = "kind = 5 AND copy = 1",
                                                    [WR_WAIT_STREAM] = "kind = 5 AND copy = 3",
                                                    [WR_WAIT_DEVICE] = "kind = 5 AND copy = 4",
                                                    [WR_WAIT_COPY] = "kind IN (3, 4) AND flags & 2",
                                                    [WR_WAIT_FREE] = "kind = 2 AND flags & 2",
                                                    [WR_WAIT_OTHER] =
                                                        "kind NOT IN (2, 3, 4, 5) AND flags & 2"};
  for (int i = 0; i < WR_WAIT_CAUSES; i++) {
    char all[256];
    (void)snprintf(all, sizeof all, "status = 0 AND NOT flags & 16 AND %s", where[i]);
    ck_assert_int_eq((int64_t)f->waits[i].count, ask_trace(trace, "1", all));
    ck_assert_int_eq((int64_t)f->waits[i].ns, ask_trace(trace, "\"end\" - start", all));
  }
}

START_TEST(figures_are_the_sums_of_the_trace)
{
  const char *trace = write_program((uint64_t)_i + 1);
  spool_reader *reader;
  wr_tally *t = tally_of(&reader);
  wr_figures f;
  wr_figures_of(&f, wr_tally_look(t), 1.0, NULL, NULL);
  uint64_t live = 0, sites = f.other_live;
  for (unsigned i = 0; i < f.memory_count; i++)
    if (f.memory[i].class == WEIR_MEM_DEVICE) live += f.memory[i].live;
  for (unsigned i = 0; i < f.site_count; i++)
    sites += f.site[i].live;
  ck_assert_int_eq((int64_t)f.events, synth_number(trace, "SELECT count(*) FROM event"));
  ck_assert_int_eq((int64_t)live, synth_number(trace, "SELECT sum(bytes) FROM block WHERE how = 0"
                                                      " AND mem = 3"));
  ck_assert_uint_eq(live, f.live);
  ck_assert_uint_eq(sites, live);
  ck_assert_uint_ge(f.peak, f.live);
  expect_copies(trace, &f);
  expect_waits(trace, &f);
  expect_list(trace, &f.hits, "kind = 1 AND status = 0 AND NOT flags & 16 AND flags & 64");
  expect_list(trace, &f.failures, "kind = 1 AND status <> 0 AND NOT flags & 16");
  expect_list(trace, &f.misses,
              "kind = 1 AND status = 0 AND NOT flags & 80 AND copy BETWEEN 1 AND 6");
  ck_assert_uint_eq(f.left_out, 0);
  wr_tally_close(t);
  spool_reader_close(reader);
}
END_TEST

START_TEST(what_has_ended_is_counted_and_has_no_memory)
{
  wr_figures *a = calloc(1, sizeof *a), *b = calloc(1, sizeof *b);
  b->events = 5;
  b->live = 7;
  b->peak = 9;
  b->memory_count = 1;
  b->memory[0] = (wr_live_figure){0, WEIR_MEM_DEVICE, 7, 1, 9};
  b->copies.count = 1;
  b->copies.row[0] = (wr_figure){0, WEIR_COPY_HTOD, 2, 30, 4};
  b->waits[WR_WAIT_STREAM] = (wr_figure){.count = 3, .ns = 100};
  wr_figures_add_ended(a, b);
  wr_figures_add_ended(a, b);
  ck_assert_uint_eq(a->events, 10);
  ck_assert_uint_eq(a->live, 0);
  ck_assert_uint_eq(a->memory[0].live, 0);
  ck_assert_uint_eq(a->memory[0].peak, 9);
  ck_assert_uint_eq(a->copies.count, 1);
  ck_assert_uint_eq(a->copies.row[0].bytes, 60);
  ck_assert_uint_eq(a->waits[WR_WAIT_STREAM].ns, 200);
  free(a);
  free(b);
}
END_TEST

/* ---- places ---------------------------------------------------------------------------------- */

static void expect_place(const char *place)
{
  spool_reader *reader;
  wr_tally *t = tally_of(&reader);
  wr_figures *f = calloc(1, sizeof *f);
  wr_figures_of(f, wr_tally_look(t), 1.0, NULL, NULL);
  ck_assert_uint_eq(f->site_count, 1);
  ck_assert_str_eq(f->site[0].place, place);
  free(f);
  wr_tally_close(t);
  spool_reader_close(reader);
}

static void put_block(uint32_t stack)
{
  trace_event e = {
      .kind = WEIR_EV_ALLOC, .api = synth_api("cuMemAlloc_v2"), .mem = WEIR_MEM_DEVICE};
  e.a = 0x5000;
  e.bytes = 100;
  e.stack = stack;
  e.src_device = WEIR_DEVICE_NONE;
  ck_assert(synth_event(0, 100, 1, e));
}

START_TEST(a_place_is_the_innermost_frame_of_the_program)
{
  const uint64_t frames[] = {0x2010, 0x1020, 0x9000};
  synth_open(synth_dir());
  ck_assert(synth_module(0, 0x1000, 0x1000, 0x1fff, "/a/program", NULL, 0));
  ck_assert(synth_module(0, 0x2000, 0x2000, 0x2fff, "/a/libcudart.so.13", NULL, 0));
  ck_assert(synth_stack(0, 1, frames, 3));
  put_block(1);
  synth_close();
  expect_place("program+0x20");
}
END_TEST

START_TEST(a_place_is_a_script_where_there_is_one)
{
  const uint64_t frames[] = {0x1020, WEIR_PYTHON_FRAME_FIRST + 1, WEIR_PYTHON_FRAME_FIRST};
  struct {
    python_frame_info info;
    char text[64];
  } own = {0}, installed = {0};
  own.info = (python_frame_info){.line = 7, .function_bytes = 4, .file_bytes = 11};
  memcpy(own.text, "step/b/train.py", 15);
  installed.info = (python_frame_info){.line = 9, .function_bytes = 3, .file_bytes = 27};
  memcpy(installed.text, "new/lib/x/site-packages/t/a.py", 30);
  synth_open(synth_dir());
  ck_assert(synth_module(0, 0x1000, 0x1000, 0x1fff, "/a/program", NULL, 0));
  ck_assert(synth_extended(0, WEIR_EV_PYTHON_FRAME, frames[2], 0, &own, sizeof own.info + 15));
  ck_assert(
      synth_extended(0, WEIR_EV_PYTHON_FRAME, frames[1], 0, &installed, sizeof own.info + 30));
  ck_assert(synth_stack(0, 1, frames, 3));
  put_block(1);
  synth_close();
  expect_place("step (train.py:7)");
}
END_TEST

START_TEST(a_stack_that_is_not_known_is_so_called)
{
  synth_open(synth_dir());
  put_block(77);
  synth_close();
  expect_place("unknown");
}
END_TEST

/* ---- pages ----------------------------------------------------------------------------------- */

static char *page_of(const wr_page *page, bool open_metrics)
{
  char *text = NULL;
  size_t bytes;
  FILE *out = open_memstream(&text, &bytes);
  ck_assert_ptr_nonnull(out);
  wr_page_write(out, page, open_metrics);
  ck_assert_int_eq(fclose(out), 0);
  return text;
}

static unsigned count_lines(const char *page, bool heads)
{
  unsigned count = 0;
  for (const char *at = page; *at; at = strchr(at, '\n') + 1)
    count += heads == (*at == '#');
  return count;
}

/* A sample by a reader of the test's own: name{label="text",...} number. */
static void expect_sample(const char *line, const char *end)
{
  while (line < end && (*line == '_' || (*line >= 'a' && *line <= 'z')))
    line++;
  if (*line == '{') {
    do {
      line++;
      while (*line >= 'a' && *line <= 'z')
        line++;
      ck_assert_msg(line[0] == '=' && line[1] == '"', "%.40s", line);
      for (line += 2; *line != '"'; line++) {
        ck_assert((unsigned char)*line >= ' ');
        if (*line == '\\') line++;
      }
      line++;
    } while (*line == ',');
    ck_assert_int_eq(*line++, '}');
  }
  ck_assert_int_eq(*line++, ' ');
  ck_assert_uint_eq(strspn(line, "0123456789."), (size_t)(end - line));
}

static void expect_samples(const char *page)
{
  for (const char *at = page; *at;) {
    const char *end = strchr(at, '\n');
    ck_assert_ptr_nonnull(end);
    if (*at != '#') expect_sample(at, end);
    at = end + 1;
  }
}

START_TEST(a_page_survives_hostile_names)
{
  static const char *const names[] = {
      "plain",        "a \"quoted\" name",
      "back\\slash",  "two\nlines",
      "\xff\xfe\x80", "\xe2\x82",
      "esc\x1b[2J",   "{} ,=\"",
      "ends in \\",   "\xed\xa0\x80 surrogate",
      "\r\n# EOF",    "",
  };
  enum { NAMES = sizeof names / sizeof *names };
  static char job[5000];
  wr_figures *f = calloc(1, sizeof *f);
  memset(job, '"', sizeof job - 1);
  for (int i = 0; i < NAMES; i++) {
    (void)snprintf(f->site[i].place, WR_PLACE_BYTES, "%s", names[i]);
    f->site[i].live = (uint64_t)i;
  }
  f->site_count = NAMES;
  const wr_page_process p = {.figures = f, .pid = 9, .rank = 1};
  const wr_page page = {.job = job, .process = &p, .count = 1, .own_seconds = 0.25};
  for (int open_metrics = 0; open_metrics < 2; open_metrics++) {
    char *text = page_of(&page, open_metrics);
    expect_samples(text);
    ck_assert_ptr_nonnull(strstr(text, "site=\"a \\\"quoted\\\" name\""));
    ck_assert_ptr_nonnull(strstr(text, "site=\"two\\nlines\""));
    ck_assert_ptr_nonnull(strstr(text, "site=\"back\\\\slash\""));
    ck_assert_ptr_nonnull(strstr(text, "rank=\"0\",pid=\"9\""));
    ck_assert_int_eq(strstr(text, "\n# EOF\n") != NULL, open_metrics);
    if (open_metrics) ck_assert_str_eq(text + strlen(text) - 6, "# EOF\n");
    free(text);
  }
  free(f);
}
END_TEST

START_TEST(a_page_has_at_most_500_series)
{
  enum { PROCESSES = 40 };
  wr_page_process p[PROCESSES];
  wr_figures *f = calloc(1, sizeof *f);
  f->memory_count = 16;
  for (uint16_t i = 0; i < 16; i++)
    f->memory[i] = (wr_live_figure){i, WEIR_MEM_DEVICE, 1, 1, 1};
  for (uint32_t i = 0; i < PROCESSES; i++)
    p[i] = (wr_page_process){.figures = f, .pid = i + 1};
  const wr_page page = {.process = p, .count = PROCESSES};
  char *text = page_of(&page, true);
  ck_assert_uint_eq(count_lines(text, false), WR_PAGE_SERIES);
  const char *rest = strstr(text, "\nweir_series_left_out ");
  ck_assert_ptr_nonnull(rest);
  /* live, peak, events, dropped of each, and two of the collector's own */
  ck_assert_int_eq(strtol(strchr(rest, ' '), NULL, 10),
                   PROCESSES * (16 + 16 + 2) + 2 - (WR_PAGE_SERIES - 1));
  expect_samples(text);
  free(text);
  free(f);
}
END_TEST

START_TEST(who_has_ended_has_no_live_memory_on_a_page)
{
  wr_figures *f = calloc(1, sizeof *f);
  f->memory_count = 1;
  f->memory[0] = (wr_live_figure){WEIR_DEVICE_NONE, WEIR_MEM_PINNED, 3, 1, 4};
  const wr_page_process p = {.figures = f, .pid = 3, .ended = true, .dropped = 6};
  const wr_page page = {.process = &p, .count = 1, .dumps = 2, .since = 1000.5};
  char *text = page_of(&page, false);
  ck_assert_ptr_null(strstr(text, "weir_live_bytes{"));
  ck_assert_ptr_nonnull(strstr(text, "weir_peak_bytes{pid=\"3\",memory=\"pinned\"} 4\n"));
  ck_assert_ptr_nonnull(strstr(text, "weir_dropped_events_total{pid=\"3\"} 6\n"));
  ck_assert_ptr_nonnull(strstr(text, "# TYPE weir_dumps_total counter\n"));
  ck_assert_ptr_nonnull(strstr(text, "weir_dumps_total 2\n"));
  ck_assert_ptr_nonnull(strstr(text, "weir_since_timestamp_seconds 1000.5"));
  free(text);
  free(f);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("reports/metrics");
  TCase *t = tcase_create("metrics");
  tcase_set_timeout(t, 0);
  tcase_add_checked_fixture(t, NULL, synth_clean);
  tcase_add_loop_test(t, figures_are_the_sums_of_the_trace, 0, 4);
  tcase_add_test(t, what_has_ended_is_counted_and_has_no_memory);
  tcase_add_test(t, a_place_is_the_innermost_frame_of_the_program);
  tcase_add_test(t, a_place_is_a_script_where_there_is_one);
  tcase_add_test(t, a_stack_that_is_not_known_is_so_called);
  tcase_add_test(t, a_page_survives_hostile_names);
  tcase_add_test(t, a_page_has_at_most_500_series);
  tcase_add_test(t, who_has_ended_has_no_live_memory_on_a_page);
  suite_add_tcase(s, t);
  SRunner *r = srunner_create(s);
  srunner_run_all(r, CK_ENV);
  int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed != 0;
}
