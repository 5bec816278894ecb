/* test_page.c: pages of traces: tests/reports/page.py decodes each one and holds its sums to the
 * report's. Random traces; unfinished, empty and untrusted ones. */
#include <check.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "reports/page/page.h"
#include "tests/reports/synth.h"

/* ---- traces ---------------------------------------------------------------------------------- */

static void random_alloc(int thread, uint64_t at)
{
  static const uint8_t mems[] = {WEIR_MEM_DEVICE,  WEIR_MEM_DEVICE,  WEIR_MEM_PINNED,
                                 WEIR_MEM_MANAGED, WEIR_MEM_UNKNOWN, WEIR_MEM_ARRAY,
                                 WEIR_MEM_IMPORTED};
  synth_event(
      thread, at, 1 + synth_below(40),
      (trace_event){.kind = WEIR_EV_ALLOC,
                    .api = synth_api("cudaMalloc"),
                    .flags = (uint8_t)(WEIR_EVF_RUNTIME | (synth_below(9) ? 0 : WEIR_EVF_CAPTURE)),
                    .a = 0x100000 + synth_below(40) * 0x1000,
                    .bytes = 1 + synth_below(1 << 20),
                    .status = (uint16_t)(synth_below(10) ? 0 : 2),
                    .device = (uint8_t)synth_below(3),
                    .src_device = WEIR_DEVICE_NONE,
                    .stack = (uint32_t)synth_below(5) | (uint32_t)synth_below(3) << 24,
                    .mem = mems[synth_below(sizeof mems)]});
}

static void random_copy(int thread, uint64_t at)
{
  static const uint8_t copies[] = {WEIR_COPY_HTOD, WEIR_COPY_DTOH, WEIR_COPY_DTOD,
                                   WEIR_COPY_PTOP, WEIR_COPY_HTOH, WEIR_COPY_UNKNOWN};
  static const uint8_t flags[] = {0, WEIR_EVF_ASYNC, WEIR_EVF_IMPLICIT_SYNC, WEIR_EVF_CAPTURE};
  synth_event(
      thread, at, 1 + synth_below(60),
      (trace_event){.kind = WEIR_EV_COPY,
                    .api = synth_api("cudaMemcpy"),
                    .flags = (uint8_t)(WEIR_EVF_RUNTIME | flags[synth_below(4)]),
                    .a = 0x7f0000000000,
                    .b = 0x7e0000000000,
                    .bytes = synth_below(1 << 22),
                    .copy_kind = copies[synth_below(6)],
                    .device = synth_below(4) ? (uint8_t)synth_below(3) : WEIR_DEVICE_NONE,
                    .src_device = synth_below(4) ? (uint8_t)synth_below(3) : WEIR_DEVICE_NONE,
                    .mem = (uint8_t)(synth_below(7) | synth_below(7) << 4),
                    .stack = (uint32_t)synth_below(5) | (uint32_t)synth_below(3) << 24,
                    .stream = synth_below(3)});
}

static void random_other(int thread, uint64_t at)
{
  static const struct {
    event_kind kind;
    const char *api;
  } kinds[] = {{WEIR_EV_LAUNCH, "cudaLaunchKernel"},    {WEIR_EV_MEMSET, "cudaMemset"},
               {WEIR_EV_HOSTREG, "cudaHostRegister"},   {WEIR_EV_SYNC, "cudaStreamSynchronize"},
               {WEIR_EV_SYNC, "cudaDeviceSynchronize"}, {WEIR_EV_EVENT, "cudaEventRecord"},
               {WEIR_EV_CALL, "cudaGraphLaunch"}};
  size_t i = synth_below(sizeof kinds / sizeof *kinds);
  synth_event(thread, at, synth_below(80),
              (trace_event){.kind = (uint8_t)kinds[i].kind,
                            .api = synth_api(kinds[i].api),
                            .flags = WEIR_EVF_RUNTIME,
                            .detail = (uint8_t)synth_below(6),
                            .a = kinds[i].kind == WEIR_EV_CALL ? 5 : 0x77 + synth_below(3),
                            .bytes = synth_below(5000),
                            .device = (uint8_t)synth_below(3),
                            .src_device = WEIR_DEVICE_NONE,
                            .stack = (uint32_t)synth_below(5) | (uint32_t)synth_below(3) << 24,
                            .stream = synth_below(3)});
}

static void name_kernel(const char *name, size_t bytes)
{
  synth_extended(0, WEIR_EV_NAME, 0x77, WEIR_NAME_KERNEL, name, bytes);
}

static void write_process(int events)
{
  const uint64_t frames[] = {0x1010, 0x2010, 0x1020, 0x1200};
  const graph_node_info nodes[] = {
      {.node = 1, .type = 1, .bytes = 96, .copy = WEIR_COPY_HTOD, .mem = WEIR_MEM_DEVICE},
      {.node = 2, .type = 0},
      {.node = 3, .type = 2, .bytes = 7, .mem = WEIR_MEM_DEVICE}};
  synth_module(0, 0x1000, 0x1000, 0x1fff, "/lib/one.so", "ab", 2);
  for (uint32_t i = 1; i < 5; i++)
    synth_stack(0, i, frames, i);
  name_kernel("_Z3addPf", 8);
  synth_graph(0, 0, 5, nodes, 3);
  uint64_t at[3] = {100, 100, 100};
  for (int i = 0; i < events; i++) {
    int thread = (int)synth_below(3);
    uint64_t t = at[thread] += 100 + synth_below(200);
    switch (synth_below(4)) {
    case 0:
      random_alloc(thread, t);
      break;
    case 1:
      synth_free(thread, t, 1 + synth_below(50), 0x100000 + synth_below(40) * 0x1000);
      break;
    case 2:
      random_copy(thread, t);
      break;
    default:
      random_other(thread, t);
      break;
    }
  }
}

static const char *random_trace(int processes, int events)
{
  static char spool[3][512];
  const char *spools[4] = {NULL};
  for (int p = 0; p < processes; p++) {
    synth_open(synth_dir());
    write_process(events);
    synth_close();
    memcpy(spool[p], synth_spool(), sizeof spool[p]);
    spools[p] = spool[p];
  }
  return synth_import("trace.db", spools);
}

/* ---- pages ----------------------------------------------------------------------------------- */

static weir_status make_page(const char *trace, const char *page)
{
  FILE *f = fopen(page, "w");
  ck_assert_ptr_nonnull(f);
  weir_status s = page_write(f, trace, &(page_settings){0});
  ck_assert_int_eq(fclose(f), 0);
  return s;
}

/* The page of a trace is what its report is. */
static void check_page(const char *trace)
{
  char page[600], report[600], run[2000], said[4000] = "";
  (void)snprintf(page, sizeof page, "%s/page.html", synth_dir());
  (void)snprintf(report, sizeof report, "%s/report.json", synth_dir());
  ck_assert_msg(make_page(trace, page) == WEIR_OK, "%s", weir_error_message());
  FILE *to = fopen(report, "w");
  ck_assert_ptr_nonnull(to);
  ck_assert_int_eq(
      report_tables(to, "summary", trace, &(report_settings){.format = WEIR_REPORT_JSON}), WEIR_OK);
  ck_assert_int_eq(fclose(to), 0);
  (void)snprintf(run, sizeof run, "python3 \"$WEIR_SOURCE/tests/reports/page.py\" %s %s 2>&1", page,
                 report);
  FILE *f = popen(run, "r");
  ck_assert_ptr_nonnull(f);
  size_t n = fread(said, 1, sizeof said - 1, f);
  said[n] = '\0';
  int status = pclose(f);
  ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s: %s", trace, said);
}

START_TEST(a_page_has_the_sums_of_the_report)
{
  synth_seed(0x9e3779b97f4a7c15 + (uint64_t)_i);
  check_page(random_trace(1 + _i % 3, 200 << _i));
}
END_TEST

START_TEST(an_unfinished_trace_and_a_spool_have_a_page)
{
  synth_seed(77);
  const char *t = random_trace(1, 300);
  synth_change(t, "UPDATE meta SET value = 0 WHERE key = 'finished'; DELETE FROM block_row;"
                  "DELETE FROM memory");
  check_page(t);
  check_page(synth_spool());
}
END_TEST

START_TEST(a_trace_without_events_has_a_page)
{
  synth_open(synth_dir());
  synth_close();
  const char *one[] = {synth_spool(), NULL};
  check_page(synth_import("trace.db", one));
}
END_TEST

/* What a trace's texts hold ends no script, and is UTF-8. */
START_TEST(texts_of_any_kind_make_a_whole_page)
{
  static const char bad[] =
      "</script><script>alert(1)</script><!-- \" \\ \xff\xc3 \x1b[2J \xe2\x80\xa8";
  synth_seed(5);
  const char *t = random_trace(1, 200);
  char sql[1200];
  (void)snprintf(
      sql, sizeof sql,
      "UPDATE meta SET value = CAST(x'3c2f7363726970743eff22' AS TEXT) WHERE key = 'command';"
      "UPDATE thread SET name = '%s'; UPDATE name SET name = '%s';"
      "UPDATE module SET path = '/lib/' || '%s'",
      bad, bad, bad);
  synth_change(t, sql);
  check_page(t);
  synth_change(t, "UPDATE name SET name = replace(hex(zeroblob(5242880)), '00', '<x');"
                  "UPDATE process SET exe = (SELECT name FROM name LIMIT 1)");
  check_page(t);
}
END_TEST

static const char longest_run[] =
    "UPDATE meta SET value = 9223372036854775807 WHERE key = 'duration_ns';"
    "UPDATE event_row SET duration = 9223372036854775807 - start";

START_TEST(values_that_cannot_be_make_a_page_or_an_error)
{
  static const char *const changes[] = {
      "UPDATE event_row SET start = -start * 1000",
      "UPDATE event_row SET start = 9223372036854775807",
      "UPDATE event_row SET duration = -1",
      "UPDATE event_row SET duration = 9223372036854775807",
      "UPDATE event_row SET bytes = -1",
      "UPDATE event_row SET template = -5",
      "UPDATE template SET device = 99999, src_device = -4, mem = 15, kind = 77",
      "UPDATE template SET stack = id, thread = NULL, process = -1",
      "UPDATE block_row SET born = 0, died_after = -9223372036854775807, life = -77",
      "UPDATE block_row SET born = 9223372036854775807 - id, died_after = NULL",
      "UPDATE block_row SET event = NULL",
      "UPDATE memory SET peak = -1, peak_at = -1, peak_place = -1",
      "UPDATE memory SET device = 3, mem = 3",
      "UPDATE stack_frame SET frame = (SELECT max(id) FROM frame)",
      "UPDATE meta SET value = -1 WHERE key = 'duration_ns'",
      longest_run,
      "DELETE FROM meta",
      "DELETE FROM template",
      "DELETE FROM memory"};
  char page[600];
  (void)snprintf(page, sizeof page, "%s/page.html", synth_dir());
  for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
    synth_seed(5);
    const char *t = random_trace(1, 120);
    synth_change(t, changes[i]);
    weir_status s = make_page(t, page);
    ck_assert_msg(!s || strlen(weir_error_message()) > 0, "%s", changes[i]);
  }
}
END_TEST

START_TEST(a_view_of_the_files_own_is_not_asked)
{
  static const char *const tables[] = {"device_work", "name", "template", "mem_kind"};
  char page[600], text[400];
  (void)snprintf(page, sizeof page, "%s/page.html", synth_dir());
  for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
    synth_seed(5);
    const char *t = random_trace(1, 50);
    (void)snprintf(text, sizeof text,
                   "DROP TABLE %s; CREATE VIEW %s AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL"
                   " SELECT x FROM n) SELECT x AS id FROM n",
                   tables[i], tables[i]);
    synth_change(t, text);
    ck_assert_int_eq(make_page(t, page), WEIR_ECORRUPT);
  }
}
END_TEST

START_TEST(a_page_that_cannot_be_written_is_an_error)
{
  synth_seed(5);
  const char *t = random_trace(1, 50);
  FILE *full = fopen("/dev/full", "w");
  ck_assert_ptr_nonnull(full);
  ck_assert_int_eq(page_write(full, t, &(page_settings){0}), WEIR_ENOSPC);
  (void)fclose(full);
}
END_TEST

/* More cells than a page has, so that bins are put together. Unfinished: findings take their
 * time. */
START_TEST(a_long_run_has_a_page_with_fewer_bins)
{
  synth_seed(3); /* 220 calls a bin of 2048, of 500 sites: nearly each is a cell */
  const char *t = random_trace(1, 50);
  synth_change(
      t,
      "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 500)"
      " INSERT INTO template SELECT 100000 + x, process, thread, kind, x, status, stack, context,"
      " device, src_device, copy, mem, src_mem, flags, stream FROM template, n WHERE id ="
      " (SELECT id FROM template WHERE kind IN (4, 6) AND status = 0 LIMIT 1);"
      "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 450000)"
      " INSERT INTO event_row(template, start, duration, a, b, bytes)"
      " SELECT 100001 + x % 500, x * 1000, 10, 0, 0, 1 FROM n;"
      "UPDATE meta SET value = CASE key WHEN 'finished' THEN 0 ELSE 450001000 END"
      " WHERE key IN ('finished', 'duration_ns')");
  check_page(t);
  char run[700];
  (void)snprintf(run, sizeof run, "grep -q '\"bins\":{\"count\":512,' %s/page.html", synth_dir());
  ck_assert_int_eq(system(run), 0);
}
END_TEST

START_TEST(a_changed_byte_is_an_error_or_a_page)
{
  char page[600], copy[600];
  (void)snprintf(page, sizeof page, "%s/page.html", synth_dir());
  (void)snprintf(copy, sizeof copy, "%s/copy.db", synth_dir());
  synth_seed(11);
  const char *t = random_trace(1, 60);
  FILE *f = fopen(t, "r");
  ck_assert_int_eq(fseek(f, 0, SEEK_END), 0);
  size_t size = (size_t)ftell(f);
  char *bytes = malloc(size);
  rewind(f);
  ck_assert_uint_eq(fread(bytes, 1, size, f), size);
  (void)fclose(f);
  for (int round = 0; round < 25; round++) {
    size_t at = 100 + synth_below(size - 100);
    char was = bytes[at];
    bytes[at] ^= (char)(1 + synth_below(255));
    f = fopen(copy, "w");
    ck_assert_uint_eq(fwrite(bytes, 1, size, f), size);
    (void)fclose(f);
    bytes[at] = was;
    ck_assert(!make_page(copy, page) || strlen(weir_error_message()) > 0);
  }
  free(bytes);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("reports/page");
  TCase *t = tcase_create("page");
  tcase_set_timeout(t, 0);
  tcase_add_checked_fixture(t, NULL, synth_clean);
  tcase_add_loop_test(t, a_page_has_the_sums_of_the_report, 0, 4);
  tcase_add_test(t, an_unfinished_trace_and_a_spool_have_a_page);
  tcase_add_test(t, a_trace_without_events_has_a_page);
  tcase_add_test(t, texts_of_any_kind_make_a_whole_page);
  tcase_add_test(t, values_that_cannot_be_make_a_page_or_an_error);
  tcase_add_test(t, a_view_of_the_files_own_is_not_asked);
  tcase_add_test(t, a_page_that_cannot_be_written_is_an_error);
  tcase_add_test(t, a_long_run_has_a_page_with_fewer_bins);
  tcase_add_test(t, a_changed_byte_is_an_error_or_a_page);
  suite_add_tcase(s, t);
  SRunner *r = srunner_create(s);
  srunner_run_all(r, CK_ENV);
  int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed != 0;
}
