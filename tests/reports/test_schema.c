/* test_schema.c: SCHEMA.md and a trace say the same: every table, view and column, every member of
 * the report. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/trace/tensor_record.h"
#include "reports/model/resolve.h"
#include "reports/whole/whole.h"
#include "tests/reports/recorder.h"
#include "tests/reports/synth.h"

/* The page itself, linked in: a suite may be run from any folder. */
__asm__(".pushsection .rodata\n"
        "schema_page: .incbin \"reports/SCHEMA.md\"\n"
        ".byte 0\n"
        ".popsection\n");
extern const char schema_page[];

#define MOST 1000

typedef struct words {
  char word[MOST][96]; /* "table.column" */
  size_t count;
} words;

static void append_schema_word(words *w, const char *section, const char *name, size_t bytes)
{
  ck_assert_uint_lt(w->count, MOST);
  (void)snprintf(w->word[w->count++], sizeof(w->word[0]), "%s.%.*s", section, (int)bytes, name);
}

static int by_text(const void *a, const void *b)
{
  return strcmp(a, b);
}

/* Each `name` in the first cell of a table's rows, under headings "### `section`" (or "####"). */
static void read_page(words *w, const char *mark)
{
  char line[4096], section[96] = "";
  FILE *f = fmemopen((void *)(uintptr_t)schema_page, strlen(schema_page), "r");
  ck_assert_ptr_nonnull(f);
  while (fgets(line, sizeof(line), f)) {
    if (line[0] == '#') section[0] = '\0';
    size_t n = strlen(mark);
    if (!strncmp(line, mark, n)) (void)sscanf(line + n, "%95[^`]", section);
    if (!section[0] || line[0] != '|') continue;
    char *end = strchr(line + 1, '|');
    for (char *at = line; (at = strchr(at, '`')) && at < end;) {
      char *close = strchr(++at, '`');
      append_schema_word(w, section, at, (size_t)(close - at));
      at = close + 1;
    }
  }
  (void)fclose(f);
  qsort(w->word, w->count, sizeof(w->word[0]), by_text);
}

static void compare(const words *said, const words *there)
{
  for (size_t i = 0, k = 0; i < said->count || k < there->count;) {
    int order = i == said->count    ? 1
                : k == there->count ? -1
                                    : strcmp(said->word[i], there->word[k]);
    ck_assert_msg(order >= 0, "SCHEMA.md documents %s, which is not there", said->word[i]);
    ck_assert_msg(order <= 0, "SCHEMA.md does not document %s", there->word[k]);
    i++, k++;
  }
}

static const char *make_trace(void)
{
  const char *one[] = {NULL, NULL};
  const uint64_t frames[] = {0x1010};
  synth_open(synth_dir());
  synth_stack(0, 1, frames, 1);
  synth_event(0, 10, 5,
              (trace_event){.kind = WEIR_EV_ALLOC,
                            .api = synth_api("cudaMalloc"),
                            .a = 0x1000,
                            .bytes = 64,
                            .mem = WEIR_MEM_DEVICE,
                            .stack = 1});
  recorder_tally(synth_spool(), false); /* a window begins: there are tables of what was before */
  synth_copy(0, 20, 5, WEIR_COPY_HTOD, 64, 0, (int)WEIR_DEVICE_NONE, WEIR_MEM_DEVICE,
             WEIR_MEM_PINNED, 0);
  trace_event head = {.start = spool_current()->clock_first.ticks + 30};
  tensor_notice tensor = {.fact = WEIR_TENSOR_MADE, .bytes = 8, .device = -1, .module = "net"};
  ck_assert(tensor_record(synth_thread(0), &head, &tensor));
  synth_event(0, 40, 0,
              (trace_event){.kind = WEIR_EV_RANGE, .range_fact = WEIR_RANGE_PUSH, .bytes = 1});
  device_operation work = {.kind = WEIR_DEVICE_KERNEL};
  ck_assert(synth_extended(0, WEIR_EV_DEVICE_WORK, 0, 0, &work, sizeof(work)));
  const graph_node_info node = {.node = 1, .type = 0, .a = 77};
  ck_assert(synth_graph(0, 50, 5, &node, 1));
  synth_event(0, 60, 5,
              (trace_event){.kind = WEIR_EV_CALL, .api = synth_api("cuGraphLaunch"), .a = 5});
  head.a = 0x1000, head.b = WEIR_NAME_REGION;
  ck_assert(spool_writer_extended(synth_thread(0), WEIR_EV_NAME, &head, "weights", 7));
  synth_close();
  one[0] = synth_spool();
  return synth_import("t.db", one);
}

/* As the command `weir resolve` leaves it: with every table there can be. */
static const char *resolved(const char *trace)
{
  resolve_counts n;
  resolve_settings o = {0};
  ck_assert_msg(resolve_trace(trace, &o, &n) == WEIR_OK, "%s", weir_error_message());
  ck_assert_msg(wr_whole_keep(trace, &(wr_findings_settings){0}) == WEIR_OK, "%s",
                weir_error_message());
  return trace;
}

START_TEST(every_table_view_and_column_is_documented_and_no_other)
{
  static words said, there;
  sqlite3 *db = NULL;
  sqlite3_stmt *q = NULL;
  read_page(&said, "### `");
  ck_assert_int_eq(sqlite3_open(resolved(make_trace()), &db), SQLITE_OK);
  ck_assert_int_eq(
      sqlite3_prepare_v2(db,
                         "SELECT m.name, c.name FROM sqlite_schema m JOIN"
                         " pragma_table_info(m.name) c WHERE m.type IN ('table', 'view')"
                         " AND m.name NOT LIKE 'sqlite_%'",
                         -1, &q, NULL),
      SQLITE_OK);
  while (sqlite3_step(q) == SQLITE_ROW) {
    const char *column = (const char *)sqlite3_column_text(q, 1);
    append_schema_word(&there, (const char *)sqlite3_column_text(q, 0), column, strlen(column));
  }
  sqlite3_finalize(q);
  sqlite3_close(db);
  qsort(there.word, there.count, sizeof(there.word[0]), by_text);
  ck_assert_uint_gt(there.count, 250);
  compare(&said, &there);
}
END_TEST

/* Members of an object, or of the first object of an array. */
static void add_members(words *w, const char *section, const json_t *value)
{
  const char *name;
  json_t *member;
  if (json_is_array(value)) value = json_array_get(value, 0);
  ck_assert_msg(json_is_object(value), "%s", section);
  json_object_foreach((json_t *)value, name, member)
      append_schema_word(w, section, name, strlen(name));
}

START_TEST(every_member_of_the_report_is_documented_and_no_other)
{
  static const char *const sections[] = {"totals",       "devices",
                                         "apis",         "matrix",
                                         "host_memory",  "processes",
                                         "coverage",     "cache",
                                         "tensors",      "ranges",
                                         "named_memory", "graphs",
                                         "device_times", "device_observation",
                                         "waits"};
  static words said, there;
  read_page(&said, "#### `");
  json_t *j = synth_json(make_trace());
  for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++)
    add_members(&there, sections[i], json_object_get(j, sections[i]));
  add_members(&there, "sites", json_object_get(json_object_get(j, "sites"), "copy"));
  json_decref(j);
  qsort(there.word, there.count, sizeof(there.word[0]), by_text);
  compare(&said, &there);
}
END_TEST

/* A view that cannot be read, or whose row has not all columns, would only show at a user's. */
START_TEST(every_view_can_be_read)
{
  sqlite3 *db = NULL;
  sqlite3_stmt *q = NULL, *view = NULL;
  size_t views = 0;
  const char *t = make_trace();
  ck_assert_int_eq(sqlite3_open(_i ? resolved(t) : t, &db), SQLITE_OK);
  ck_assert_int_eq(sqlite3_prepare_v2(
                       db, "SELECT 'SELECT * FROM ' || name FROM sqlite_schema WHERE type = 'view'",
                       -1, &q, NULL),
                   SQLITE_OK);
  for (; sqlite3_step(q) == SQLITE_ROW; views++) {
    const char *sql = (const char *)sqlite3_column_text(q, 0);
    ck_assert_msg(sqlite3_prepare_v2(db, sql, -1, &view, NULL) == SQLITE_OK, "%s: %s", sql,
                  sqlite3_errmsg(db));
    int code;
    while ((code = sqlite3_step(view)) == SQLITE_ROW)
      continue;
    ck_assert_int_eq(code, SQLITE_DONE);
    sqlite3_finalize(view);
  }
  ck_assert_uint_gt(views, 12);
  sqlite3_finalize(q);
  sqlite3_close(db);
}
END_TEST

/* The details of a query's plan, one after the other (static). */
static const char *plan_of(sqlite3 *db, const char *query)
{
  static char plan[1024];
  char sql[512];
  sqlite3_stmt *q = NULL;
  plan[0] = '\0';
  (void)snprintf(sql, sizeof(sql), "EXPLAIN QUERY PLAN %s", query);
  ck_assert_int_eq(sqlite3_prepare_v2(db, sql, -1, &q, NULL), SQLITE_OK);
  while (sqlite3_step(q) == SQLITE_ROW)
    (void)snprintf(plan + strlen(plan), sizeof(plan) - strlen(plan), "%s;",
                   (const char *)sqlite3_column_text(q, 3));
  sqlite3_finalize(q);
  return plan;
}

/* A report asks for a handful among millions; each of the millions is in no index. */
START_TEST(resets_and_cache_facts_are_found_by_an_index)
{
  sqlite3 *db = NULL;
  const char *t = make_trace();
  ck_assert_int_eq(
      synth_number(t, "SELECT count(*) FROM sqlite_schema WHERE type = 'index'"
                      " AND name NOT IN ('event_rare', 'name_by_handle', 'device_work_by_event',"
                      " 'copy_hash_by_event')"
                      " AND name NOT LIKE 'sqlite_%'"),
      0);
  ck_assert_int_eq(sqlite3_open(t, &db), SQLITE_OK);
  static const char *const rare[] = {"SELECT scope FROM reset WHERE status = 0",
                                     "SELECT used_bytes FROM pool_sample"};
  for (int i = 0; i < 2; i++)
    ck_assert_ptr_nonnull(strstr(plan_of(db, rare[i]), "USING INDEX event_rare"));
  sqlite3_close(db);
}
END_TEST

/* A training step in small: all that the page's queries look for. */
static const char *make_rich_trace(void)
{
  const char *one[] = {NULL, NULL};
  const uint64_t frames[] = {0x1010};
  trace_event launch = {
      .kind = WEIR_EV_LAUNCH, .api = synth_api("cudaLaunchKernel"), .a = 77, .bytes = 256, .b = 1};
  trace_event failed = {.kind = WEIR_EV_CALL, .api = synth_api("cudaMalloc"), .status = 2};
  synth_open(synth_dir());
  synth_module(0, 0x1000, 0x1000, 0x1fff, "/lib/one.so", "ab", 2);
  synth_stack(0, 1, frames, 1);
  synth_extended(0, WEIR_EV_NAME, 77, WEIR_NAME_KERNEL, "step", 4);
  synth_alloc(0, 10, 5, 0x1000, 64, 0, WEIR_MEM_DEVICE);
  synth_event(0, 20, 5,
              (trace_event){.kind = WEIR_EV_COPY,
                            .api = synth_api("cudaMemcpy"),
                            .copy_kind = WEIR_COPY_HTOD,
                            .bytes = 64,
                            .src_device = WEIR_DEVICE_NONE,
                            .mem = WEIR_MEM_DEVICE | WEIR_MEM_PAGEABLE << 4,
                            .stack = 1});
  synth_event(0, 30, 5, launch);
  synth_sync(0, 40, 9, WEIR_SYNC_CONTEXT);
  synth_event(0, 60, 5, failed);
  synth_sync(0, 70, 9, WEIR_SYNC_CONTEXT);
  synth_close();
  one[0] = synth_spool();
  return synth_import("rich.db", one);
}

/* The second query's columns, asked for and not. */
START_TEST(a_place_is_looked_up_by_keys_and_only_when_asked_for)
{
  sqlite3 *db = NULL;
  ck_assert_int_eq(sqlite3_open(resolved(make_rich_trace()), &db), SQLITE_OK);
  const char *plan = plan_of(db, "SELECT caller, file, line FROM copy");
  ck_assert_ptr_nonnull(strstr(plan, "SEARCH s USING INTEGER PRIMARY KEY"));
  ck_assert_ptr_nonnull(strstr(plan, "SEARCH l USING PRIMARY KEY (frame=? AND inlined=?)"));
  plan = plan_of(db, "SELECT pointer, bytes FROM block");
  ck_assert_msg(!strstr(plan, "SUBQUERY"), "%s", plan);
  plan = plan_of(db, "SELECT bytes, stack FROM copy WHERE status = 0");
  ck_assert_msg(!strstr(plan, "SUBQUERY"), "%s", plan);
  sqlite3_close(db);
}
END_TEST

START_TEST(the_second_query_names_the_place)
{
  sqlite3 *db = NULL;
  sqlite3_stmt *q = NULL;
  const char *t = resolved(make_rich_trace()), *at = strstr(schema_page, "-- 2. ");
  ck_assert_ptr_nonnull(at);
  ck_assert_int_eq(sqlite3_open(t, &db), SQLITE_OK);
  ck_assert_int_eq(sqlite3_exec(db,
                                "INSERT INTO source_line SELECT frame, inlined, 'step', 'a.cu',"
                                " 7 FROM site",
                                NULL, NULL, NULL),
                   SQLITE_OK);
  ck_assert_int_eq(sqlite3_prepare_v2(db, at, (int)(strstr(at, "```") - at), &q, NULL), SQLITE_OK);
  ck_assert_int_eq(sqlite3_step(q), SQLITE_ROW);
  ck_assert_str_eq((const char *)sqlite3_column_text(q, 0), "step");
  ck_assert_str_eq((const char *)sqlite3_column_text(q, 1), "a.cu");
  ck_assert_int_eq(sqlite3_column_int(q, 2), 7);
  ck_assert_int_eq(sqlite3_column_int(q, 4), 64);
  sqlite3_finalize(q);
  sqlite3_close(db);
}
END_TEST

START_TEST(every_query_of_the_page_finds_something)
{
  sqlite3 *db = NULL;
  int queries = 0;
  ck_assert_int_eq(sqlite3_open(make_rich_trace(), &db), SQLITE_OK);
  for (const char *at = schema_page; (at = strstr(at, "```sql\n")); queries++) {
    sqlite3_stmt *q = NULL;
    const char *end = strstr(at += 7, "```");
    ck_assert_ptr_nonnull(end);
    ck_assert_msg(!sqlite3_prepare_v2(db, at, (int)(end - at), &q, NULL), "%.*s: %s",
                  (int)(end - at), at, sqlite3_errmsg(db));
    ck_assert_msg(sqlite3_step(q) == SQLITE_ROW, "%.*s: no row", (int)(end - at), at);
    sqlite3_finalize(q);
  }
  ck_assert_int_eq(queries, 10);
  sqlite3_close(db);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("reports/schema");
  TCase *t = tcase_create("schema");
  tcase_set_timeout(t, 0);
  tcase_add_checked_fixture(t, NULL, synth_clean);
  tcase_add_test(t, every_table_view_and_column_is_documented_and_no_other);
  tcase_add_test(t, every_member_of_the_report_is_documented_and_no_other);
  tcase_add_loop_test(t, every_view_can_be_read, 0, 2);
  tcase_add_test(t, resets_and_cache_facts_are_found_by_an_index);
  tcase_add_test(t, every_query_of_the_page_finds_something);
  tcase_add_test(t, a_place_is_looked_up_by_keys_and_only_when_asked_for);
  tcase_add_test(t, the_second_query_names_the_place);
  suite_add_tcase(s, t);
  SRunner *r = srunner_create(s);
  srunner_run_all(r, CK_ENV);
  int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed != 0;
}
