/* test_listing.c: the events of a trace in the order of time: every event once, each filter against
 * a query of the suite's own, formats that other readers read, and untrusted traces. */
#include <check.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "reports/listing/listing.h"
#include "tests/reports/synth.h"

enum { PROCESSES = 2, THREADS = 3, ROUNDS = 16, COLUMNS_MOST = 64 };

/* ---- a trace of all kinds -------------------------------------------------------------------- */

static const char odd_name[] = "odd \"name\",\nwith \x1b[2J and \xff and \xc2\x85 and \xc3\xa9";

static void write_launch(int thread, uint64_t at, int round)
{
  synth_event(
      thread, at, 30,
      (trace_event){.kind = WEIR_EV_LAUNCH,
                    .api = synth_api("cudaLaunchKernel"),
                    .flags = WEIR_EVF_RUNTIME | WEIR_EVF_ASYNC,
                    .a = 0x77,
                    .b = UINT64_C(2) << 32 | UINT64_C(1) << 48 | 64,
                    .bytes = 8192,
                    .device = (uint8_t)(round % 3),
                    .src_device = WEIR_DEVICE_NONE,
                    .stream = round % 4 ? WEIR_STREAM_LEGACY : UINT64_C(0xfeedfacecafebeef)});
}

static void write_rounds(int thread, int process)
{
  for (int i = 0; i < ROUNDS; i++) {
    uint64_t at = (uint64_t)i * 1000 + (uint64_t)thread * 333 + (uint64_t)process * 111,
             pointer = 0x10000u + at;
    synth_alloc(thread, at, 20 + (uint64_t)i, pointer, UINT64_C(64) << i % 12, i % 2,
                i % 5 ? WEIR_MEM_DEVICE : WEIR_MEM_PINNED);
    synth_copy(thread, at + 100, (uint64_t)i * 7, i % 2 ? WEIR_COPY_HTOD : WEIR_COPY_DTOH, 64,
               i % 2, i % 2 ? (int)WEIR_DEVICE_NONE : 1, WEIR_MEM_DEVICE, WEIR_MEM_PAGEABLE,
               i % 7 ? 0 : WEIR_EVF_CAPTURE);
    write_launch(thread, at + 200, i);
    synth_sync(thread, at + 250, 50, i % 3 ? WEIR_SYNC_STREAM : WEIR_SYNC_CONTEXT);
    synth_free(thread, at + 320, 5, pointer);
    if (i % 10 == 0)
      synth_event(thread, at + 330, 0,
                  (trace_event){.kind = WEIR_EV_CACHE,
                                .cache_fact = WEIR_CACHE_GIVEN_BACK,
                                .a = pointer,
                                .b = WEIR_WHY_DECAY,
                                .bytes = 4096,
                                .mem = WEIR_MEM_DEVICE});
  }
}

static const char *make_trace(void)
{
  static char spool[PROCESSES][512];
  const char *spools[PROCESSES + 1] = {NULL};
  for (int p = 0; p < PROCESSES; p++) {
    synth_open(synth_dir());
    synth_extended(0, WEIR_EV_NAME, 0x77, WEIR_NAME_KERNEL, odd_name, strlen(odd_name));
    for (int t = 0; t < THREADS; t++)
      write_rounds(t, p);
    synth_close();
    memcpy(spool[p], synth_spool(), sizeof spool[p]);
    spools[p] = spool[p];
  }
  return synth_import("trace.db", spools);
}

/* What is listed (new); NULL: an error, in *status. */
static char *list(const char *trace, const listing_settings *o, weir_status *status)
{
  char *text = NULL;
  size_t bytes = 0;
  FILE *f = open_memstream(&text, &bytes);
  *status = listing_write(f, trace, o);
  (void)fclose(f);
  ck_assert_uint_eq(strlen(text), *status ? strlen(text) : bytes); /* no NUL in it */
  return text;
}

static char *list_all(const char *trace, const listing_settings *o)
{
  weir_status s;
  char *text = list(trace, o, &s);
  ck_assert_msg(s == WEIR_OK, "%s", weir_error_message());
  return text;
}

static int lines_of(const char *text)
{
  int n = 0;
  for (; *text; text++)
    n += *text == '\n';
  return n;
}

/* ---- order and completeness ------------------------------------------------------------------ */

START_TEST(every_event_is_a_line_once_in_the_order_of_time)
{
  const char *t = make_trace();
  char *text = list_all(t, &(listing_settings){.format = LISTING_JSONL});
  int64_t last = INT64_MIN, calls = 0, lines = 0;
  char *seen = calloc(1, (size_t)synth_number(t, "SELECT max(id) + 1 FROM event"));
  for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"), lines++) {
    json_t *j = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
    ck_assert_msg(j != NULL, "%s", line);
    int64_t start = json_integer_value(json_object_get(j, "start_ns"));
    ck_assert_int_ge(start, last);
    last = start;
    ck_assert_int_eq(seen[json_integer_value(json_object_get(j, "id"))]++, 0);
    calls += !json_object_get(j, "call") &&
             strcmp(json_string_value(json_object_get(j, "kind")), "cache") != 0;
    json_decref(j);
  }
  ck_assert_int_eq(lines, synth_number(t, "SELECT count(*) FROM event"));
  ck_assert_int_eq(calls, synth_number(t, "SELECT count(*) FROM call"));
  free(seen);
  free(text);
}
END_TEST

/* ---- filters --------------------------------------------------------------------------------- */

#define KIND(name) (UINT64_C(1) << WEIR_EV_##name)
#define NUMBER(n)                                                                                  \
  {                                                                                                \
    true, n                                                                                        \
  }

/* An event that passes, as SQL of the trace's own views. */
static const struct {
  listing_filter f;
  const char *sql;
} filters[] = {
    {{0}, "1"},
    {{.kinds = KIND(COPY)}, "id IN (SELECT id FROM copy)"},
    {{.kinds = KIND(ALLOC) | KIND(SYNC)},
     "id IN (SELECT id FROM allocation) OR id IN (SELECT id FROM wait)"},
    {{.kinds = KIND(CACHE)}, "id IN (SELECT id FROM cache_action)"},
    {{.functions = "cudaFree"}, "id IN (SELECT id FROM release)"},
    {{.functions = "cudaM*"}, "id IN (SELECT id FROM call WHERE substr(function, 1, 5) = 'cudaM')"},
    {{.device = NUMBER(1)}, "device = 1 OR src_device = 1"},
    {{.device = NUMBER(2)}, "device = 2"},
    {{.device = NUMBER(7)}, "0"},
    {{.stream = NUMBER(1)}, "stream = 1"},
    {{.stream = NUMBER((int64_t)UINT64_C(0xfeedfacecafebeef))},
     "id IN (SELECT id FROM launch WHERE stream < 0)"},
    {{.min_bytes = NUMBER(4096)},
     "id IN (SELECT id FROM allocation WHERE bytes >= 4096 UNION SELECT id FROM copy WHERE"
     " bytes >= 4096 UNION SELECT id FROM cache_action WHERE bytes >= 4096)"},
    {{.min_ns = NUMBER(60)}, "duration >= 60"},
    {{.from = NUMBER(5000), .to = NUMBER(5650)}, "start >= 5000 AND start < 5650"},
    {{.to = NUMBER(0)}, "0"},
    {{.kinds = KIND(COPY), .device = NUMBER(1), .from = NUMBER(9000), .min_ns = NUMBER(80)},
     "kind = 3 AND (device = 1 OR src_device = 1) AND start >= 9000 AND duration >= 80"},
};

START_TEST(a_filter_leaves_what_a_query_of_the_views_gives)
{
  char sql[512];
  const char *t = make_trace();
  listing_settings o = {.format = LISTING_JSONL, .filter = filters[_i].f};
  char *text = list_all(t, &o);
  (void)snprintf(sql, sizeof sql, "SELECT count(*) FROM event WHERE %s", filters[_i].sql);
  ck_assert_int_eq(lines_of(text), synth_number(t, sql));
  (void)snprintf(sql, sizeof sql, "SELECT ifnull(sum(id), 0) FROM event WHERE %s", filters[_i].sql);
  int64_t ids = 0;
  for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
    ids += atoll(line + strlen("{\"id\":"));
  ck_assert_int_eq(ids, synth_number(t, sql));
  free(text);
}
END_TEST

START_TEST(threads_and_processes_are_found_by_the_kernels_numbers)
{
  const char *t = make_trace();
  synth_change(t, "UPDATE process SET pid = 7000 + id; UPDATE thread SET tid = 8000 + id");
  for (int i = 1; i <= PROCESSES * THREADS; i++) {
    char sql[128];
    listing_settings o = {.format = LISTING_JSONL, .filter = {.thread = NUMBER(8000 + i)}};
    char *text = list_all(t, &o);
    (void)snprintf(sql, sizeof sql, "SELECT count(*) FROM event WHERE thread = %d", i);
    ck_assert_int_eq(lines_of(text), synth_number(t, sql));
    ck_assert_int_gt(lines_of(text), 0);
    free(text);
  }
  listing_settings o = {.format = LISTING_JSONL, .filter = {.process = NUMBER(7002)}};
  char *text = list_all(t, &o);
  ck_assert_int_eq(lines_of(text), synth_number(t, "SELECT count(*) FROM event WHERE process = 2"));
  ck_assert_int_gt(lines_of(text), 0);
  ck_assert_ptr_null(strstr(text, "\"pid\":7001"));
  free(text);
}
END_TEST

START_TEST(a_function_that_the_trace_does_not_know_is_an_error)
{
  weir_status s;
  listing_settings o = {.filter = {.functions = "cudaMaloc"}};
  char *text = list(make_trace(), &o, &s);
  ck_assert_int_eq(s, WEIR_EINVAL);
  ck_assert_ptr_nonnull(strstr(weir_error_message(), "'cudaMaloc'"));
  ck_assert_str_eq(text, "");
  free(text);
}
END_TEST

#define PID_OF_FIRST      "SELECT pid FROM process WHERE id = 1"
#define COUNT_OF_RANGE(n) "SELECT count(*) FROM event_range WHERE range >= " #n

START_TEST(a_range_has_its_own_events_and_those_of_the_ranges_in_it)
{
  weir_status s;
  const char *t = make_trace();
  synth_change(t,
               "DELETE FROM range_row; DELETE FROM range_name; DELETE FROM event_range;"
               "INSERT INTO range_name(id, text) VALUES(1, 'outer'), (2, 'inner'), (3, 'step 1');"
               "INSERT INTO range_row(id, process, thread, name, parent) VALUES(1, 1, 1, 1, NULL),"
               " (2, 1, 1, 2, 1), (3, 1, 1, 3, 2);"
               "INSERT INTO event_range SELECT id, 1 + id % 3 FROM event WHERE id % 5");
  static const char *const texts[] = {"outer", "inner", "step ?"};
  static const char *const counts[] = {COUNT_OF_RANGE(1), COUNT_OF_RANGE(2), COUNT_OF_RANGE(3)};
  for (int i = 0; i < 3; i++) {
    listing_settings o = {.format = LISTING_JSONL, .filter = {.ranges = texts[i]}};
    char *text = list_all(t, &o);
    ck_assert_int_eq(lines_of(text), synth_number(t, counts[i]));
    ck_assert(strstr(text, "\"range\":\"step 1\"}") && !strstr(text, "outer") == (i > 0));
    free(text);
  }
  synth_change(t, "UPDATE range_row SET parent = 3 WHERE id = 1"); /* a circle ends */
  listing_settings o = {.format = LISTING_JSONL, .filter = {.ranges = "step 1"}};
  char *text = list_all(t, &o);
  ck_assert_int_eq(lines_of(text), synth_number(t, counts[0]));
  free(text);
  o.filter.ranges = "stop";
  free(list(t, &o, &s));
  ck_assert_int_eq(s, WEIR_EINVAL);
  ck_assert_ptr_nonnull(strstr(weir_error_message(), "no range"));
  synth_change(t, "DROP TABLE event_range");
  free(list(t, &o, &s));
  ck_assert_int_eq(s, WEIR_EINVAL);
  ck_assert_ptr_nonnull(strstr(weir_error_message(), "has no ranges"));
}
END_TEST

START_TEST(polls_that_are_one_event_have_their_count)
{
  const char *t = make_trace();
  listing_settings o = {.format = LISTING_JSONL,
                        .filter = {.kinds = KIND(SYNC), .to = NUMBER(260)}};
  synth_change(
      t, "UPDATE template SET status = 600 WHERE kind = 5; UPDATE event_row SET bytes = 149999"
         " WHERE template IN (SELECT id FROM template WHERE kind = 5)");
  char *text = list_all(t, &o);
  ck_assert_ptr_nonnull(strstr(text, "\"count\":150000}"));
  ck_assert_int_eq(synth_number(t, "SELECT min(count) FROM wait"), 150000);
  free(text);
}
END_TEST

/* Thread 1 of process 1 has blocks at 0x10000 from 0 to 320 and at 0x103e8 from 1000 to 1320. */
static const char *make_named_trace(void)
{
  const char *t = make_trace();
  synth_change(
      t, "INSERT INTO name(process, kind, handle, name, time) SELECT 1, 'os_thread', tid,"
         " 'loader', 500 FROM thread WHERE process = 1 AND serial = 1;"
         "INSERT INTO name(process, kind, handle, name, time) VALUES"
         " (1, 'region', 0x10000, 'weights', 50), (1, 'heap', 0x103e8, 'arena', 1010),"
         " (1, 'region', 0x103e8, 'gradients', 1100), (1, 'region', 0x107d0, 'too soon', 1500),"
         " (1, 'device_label', 0, 'left', 0), (1, 'stream', 1, 'copies', 0),"
         " (1, 'stream', 0xfeedfacecafebee, 'no stream', 0)");
  return t;
}

/* The only line of a filter, of process 1. */
static void check_names_of(const char *t, int64_t from, const char *function, const char *memory,
                           const char *thread)
{
  listing_settings o = {.format = LISTING_JSONL,
                        .filter = {.functions = function,
                                   .from = {true, from},
                                   .to = {true, from + 1},
                                   .process = {true, synth_number(t, PID_OF_FIRST)}}};
  char *text = list_all(t, &o);
  ck_assert_int_eq(lines_of(text), 1);
  json_t *j = json_loads(text, 0, NULL);
  const char *named = json_string_value(json_object_get(j, "memory_name"));
  ck_assert_msg(!named == !memory && (!named || !strcmp(named, memory)), "%s", text);
  named = json_string_value(json_object_get(j, "thread_name"));
  ck_assert_msg(!named == !thread && (!named || !strcmp(named, thread)), "%s", text);
  json_decref(j);
  free(text);
}

START_TEST(what_the_program_has_named_is_listed_by_its_name)
{
  const char *t = make_named_trace();
  check_names_of(t, 0, "cudaMalloc*", "weights", NULL);
  check_names_of(t, 320, "cudaFree*", "weights", NULL);
  check_names_of(t, 1000, "cudaMalloc*", "gradients", "loader"); /* of two names the last */
  check_names_of(t, 2000, "cudaMalloc*", NULL, "loader");        /* said before it was allocated */
  listing_settings o = {.filter = {.to = NUMBER(1001)}};
  char *text = list_all(t, &o);
  ck_assert_ptr_nonnull(strstr(text, "at 0x103e8 (gradients)"));
  ck_assert_ptr_nonnull(strstr(text, "device 0 (left)"));
  ck_assert_ptr_nonnull(strstr(text, "stream legacy (copies)"));
  ck_assert_ptr_nonnull(strstr(text, "thread: loader"));
  ck_assert_ptr_null(strstr(text, "no stream"));
  free(text);
}
END_TEST

START_TEST(kinds_have_the_names_of_traces_and_of_views)
{
  ck_assert_uint_eq(listing_kind("alloc", 5), KIND(ALLOC));
  ck_assert_uint_eq(listing_kind("allocation", 10), KIND(ALLOC));
  ck_assert_uint_eq(listing_kind("wait,x", 4), KIND(SYNC));
  ck_assert_uint_eq(listing_kind("stack", 5), 0);
  ck_assert_uint_eq(listing_kind("", 0), 0);
  ck_assert_ptr_nonnull(strstr(listing_kinds(), "alloc, free, copy"));
  ck_assert_ptr_null(strstr(listing_kinds(), "stack"));
}
END_TEST

/* ---- formats --------------------------------------------------------------------------------- */

/* Splits the next record of RFC 4180 in place; returns its fields, *at behind it. */
static int read_csv(char **at, char *field[COLUMNS_MOST])
{
  int n = 0;
  for (char *from = *at; *from;) {
    char *to = from, *end = from;
    bool quoted = *from == '"';
    from += quoted;
    ck_assert_int_lt(n, COLUMNS_MOST);
    field[n++] = to;
    for (; *from; from++) {
      if (quoted && from[0] == '"' && from[1] != '"') break;
      if (quoted && from[0] == '"') from++;
      if (!quoted && (*from == ',' || *from == '\n')) break;
      ck_assert(quoted || *from != '"');
      *to++ = *from;
    }
    end = from + quoted;
    ck_assert(*end == ',' || *end == '\n');
    bool last = *end == '\n';
    *to = '\0';
    from = *at = end + 1;
    if (last) return n;
  }
  return n;
}

START_TEST(csv_and_json_lines_say_the_same)
{
  const char *t = make_trace();
  char *csv = list_all(t, &(listing_settings){.format = LISTING_CSV}), *at = csv;
  char *jsonl = list_all(t, &(listing_settings){.format = LISTING_JSONL});
  char *title[COLUMNS_MOST], *field[COLUMNS_MOST], *saved = NULL;
  int columns = read_csv(&at, title), lines = 0;
  for (char *line = strtok_r(jsonl, "\n", &saved); line;
       line = strtok_r(NULL, "\n", &saved), lines++) {
    json_t *j = json_loads(line, 0, NULL);
    ck_assert_int_eq(read_csv(&at, field), columns);
    for (int i = 0; i < columns; i++) {
      const json_t *v = json_object_get(j, title[i]);
      if (!v)
        ck_assert_str_eq(field[i], "");
      else if (json_is_integer(v))
        ck_assert_int_eq(atoll(field[i]), json_integer_value(v));
      else if (strcmp(title[i], "kernel") != 0)
        ck_assert_str_eq(field[i], json_string_value(v));
    }
    json_decref(j);
  }
  ck_assert_str_eq(at, "");
  ck_assert_int_eq(lines, synth_number(t, "SELECT count(*) FROM event"));
  free(csv);
  free(jsonl);
}
END_TEST

START_TEST(what_a_name_holds_breaks_no_line_and_no_terminal)
{
  const char *t = make_trace();
  listing_settings o = {.format = LISTING_JSONL, .filter = {.kinds = KIND(LAUNCH)}};
  char *text = list_all(t, &o);
  *strchr(text, '\n') = '\0';
  json_t *j = json_loads(text, 0, NULL);
  ck_assert_ptr_nonnull(j);
  ck_assert_str_eq(json_string_value(json_object_get(j, "kernel")),
                   "odd \"name\",\nwith \x1b[2J and ? and \xc2\x85 and \xc3\xa9");
  ck_assert_ptr_null(strchr(text, 0x1b));
  json_decref(j);
  free(text);
  for (o.format = LISTING_TEXT; o.format <= LISTING_CSV; o.format++) {
    text = list_all(t, &o);
    ck_assert_ptr_null(strchr(text, 0x1b));
    ck_assert_ptr_null(strchr(text, 0xff));
    ck_assert_ptr_null(strstr(text, "\xc2\x85"));
    ck_assert_ptr_nonnull(strstr(text, "with ?[2J and ? and ? and \xc3\xa9"));
    ck_assert_int_eq(lines_of(text), 1 + synth_number(t, "SELECT count(*) FROM launch"));
    free(text);
  }
}
END_TEST

START_TEST(text_has_times_and_sizes_with_units)
{
  listing_settings o = {.filter = {.kinds = KIND(ALLOC), .to = NUMBER(1)}};
  char *text = list_all(make_trace(), &o);
  ck_assert_int_eq(lines_of(text), 2);
  ck_assert_ptr_nonnull(strstr(text, "start    lasted"));
  ck_assert_ptr_nonnull(strstr(text, "0.000000000 s"));
  ck_assert_ptr_nonnull(strstr(text, "20 ns"));
  ck_assert_ptr_nonnull(strstr(text, "cudaMallocHost"));
  ck_assert_ptr_nonnull(strstr(text, "64 B pinned at 0x10000"));
  free(text);
}
END_TEST

/* ---- what is listed -------------------------------------------------------------------------- */

START_TEST(an_unfinished_trace_and_a_spool_are_listed)
{
  const char *t = make_trace();
  listing_settings o = {.format = LISTING_CSV};
  synth_change(t, "UPDATE meta SET value = 0 WHERE key = 'finished'; DROP TABLE batch_item;"
                  "CREATE TABLE batch_item(id INTEGER PRIMARY KEY, call)");
  char *text = list_all(t, &o);
  ck_assert_int_eq(lines_of(text), 1 + synth_number(t, "SELECT count(*) FROM event"));
  free(text);
  text = list_all(synth_spool(), &o);
  ck_assert_int_eq(lines_of(text),
                   1 + synth_number(t, "SELECT count(*) FROM event WHERE process = 2"));
  free(text);
}
END_TEST

START_TEST(a_trace_of_version_1_is_listed_the_same)
{
  const char *t = make_trace();
  listing_settings o = {.format = LISTING_JSONL};
  char *now = list_all(t, &o);
  synth_change(
      t, "CREATE TABLE wide AS SELECT * FROM event; CREATE TABLE blocks AS SELECT * FROM block;"
         "DROP VIEW event; DROP VIEW block; DROP TABLE event_row; DROP TABLE block_row;"
         "DROP TABLE template; CREATE TABLE event AS SELECT * FROM wide;"
         "CREATE TABLE block AS SELECT * FROM blocks; PRAGMA user_version = 1");
  char *then = list_all(t, &o);
  ck_assert_str_eq(now, then);
  free(now);
  free(then);
}
END_TEST

static const char odd_places[] =
    "CREATE TABLE site(stack, frame, inlined); CREATE TABLE source_line(frame, inlined, function,"
    " file, line); UPDATE template SET stack = 1; INSERT INTO site VALUES(1, 'x', NULL), (1, 2,"
    " 3); INSERT INTO source_line VALUES(2, 3, x'ff', x'0a', 'nine'), (2, 3, 4, 5, 6)";

START_TEST(values_out_of_range_do_no_harm)
{
  static const char *const changes[] = {
      "UPDATE template SET device = 1000000, src_device = -5, api = -1, mem = 99, src_mem = -3",
      "UPDATE template SET kind = 1e300, copy = -9223372036854775808, flags = 'all'",
      "UPDATE event_row SET start = -9223372036854775808, duration = -1, bytes = -1",
      "UPDATE event_row SET start = x'ff00', duration = 'long', a = NULL, b = 1e18",
      "UPDATE template SET thread = 77, process = 'x', stack = -1, stream = x'00'",
      "UPDATE name SET name = x'00ff00', handle = 119",
      "UPDATE api SET name = x'ff' || name, id = id + 60000",
      "UPDATE mem_kind SET name = char(27) || ',' || char(10) || '\"'",
      "UPDATE copy_direction SET id = id - 10; DELETE FROM event_kind; DROP TABLE wait_kind",
      "DELETE FROM process; DELETE FROM thread; DELETE FROM api",
      odd_places,
  };
  for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
    const char *t = make_trace();
    synth_change(t, changes[i]);
    for (int format = LISTING_TEXT; format <= LISTING_JSONL; format++) {
      char *text = list_all(t, &(listing_settings){.format = (listing_format)format}), *saved;
      ck_assert_ptr_null(strchr(text, 0x1b));
      for (char *line = strtok_r(text, "\n", &saved); line && format == LISTING_JSONL;
           line = strtok_r(NULL, "\n", &saved)) {
        json_t *j = json_loads(line, 0, NULL);
        ck_assert_msg(j != NULL, "%s: %s", changes[i], line);
        json_decref(j);
      }
      free(text);
    }
  }
}
END_TEST

START_TEST(a_view_in_the_place_of_a_table_is_refused)
{
  weir_status s;
  const char *t = make_trace();
  synth_change(
      t, "DROP TABLE wait_kind; CREATE VIEW wait_kind AS WITH RECURSIVE r(id) AS (SELECT 1 UNION"
         " ALL SELECT id + 1 FROM r) SELECT id, 'x' AS name FROM r");
  free(list(t, &(listing_settings){.format = LISTING_CSV}, &s));
  ck_assert_int_eq(s, WEIR_ECORRUPT);
  ck_assert_ptr_nonnull(strstr(weir_error_message(), "wait_kind is no table"));
}
END_TEST

/* Any changed bytes: an error, or any list. */
START_TEST(a_changed_byte_is_an_error_or_a_list)
{
  const char *t = make_trace();
  uint64_t random = UINT64_C(88172645463325252);
  for (int round = 0; round < 60; round++) {
    weir_status s;
    char copy[600], *bytes = NULL;
    FILE *f = fopen(t, "r");
    (void)snprintf(copy, sizeof copy, "%s/changed.db", synth_dir());
    (void)fseek(f, 0, SEEK_END);
    size_t size = (size_t)ftell(f);
    rewind(f);
    bytes = malloc(size);
    ck_assert_uint_eq(fread(bytes, 1, size, f), size);
    (void)fclose(f);
    for (int k = 0; k < 1 + round % 20; k++) {
      random ^= random << 13, random ^= random >> 7, random ^= random << 17;
      bytes[16 + random % ((round % 3 ? size : 8192) - 16)] ^= (char)(1 + (random >> 40) % 255);
    }
    f = fopen(copy, "w");
    ck_assert_uint_eq(fwrite(bytes, 1, size, f), size);
    (void)fclose(f);
    free(bytes);
    listing_settings o = {.format = (listing_format)(round % 3)};
    free(list(copy, &o, &s));
  }
}
END_TEST

START_TEST(a_list_that_cannot_be_written_is_an_error)
{
  const char *t = make_trace();
  FILE *full = fopen("/dev/full", "w");
  ck_assert_ptr_nonnull(full);
  ck_assert_int_eq(listing_write(full, t, &(listing_settings){.format = LISTING_JSONL}), WEIR_EIO);
  (void)fclose(full);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("reports/listing");
  TCase *t = tcase_create("listing");
  tcase_set_timeout(t, 0);
  tcase_add_checked_fixture(t, NULL, synth_clean);
  tcase_add_test(t, every_event_is_a_line_once_in_the_order_of_time);
  tcase_add_loop_test(t, a_filter_leaves_what_a_query_of_the_views_gives, 0,
                      (int)(sizeof filters / sizeof *filters));
  tcase_add_test(t, threads_and_processes_are_found_by_the_kernels_numbers);
  tcase_add_test(t, a_function_that_the_trace_does_not_know_is_an_error);
  tcase_add_test(t, a_range_has_its_own_events_and_those_of_the_ranges_in_it);
  tcase_add_test(t, polls_that_are_one_event_have_their_count);
  tcase_add_test(t, what_the_program_has_named_is_listed_by_its_name);
  tcase_add_test(t, kinds_have_the_names_of_traces_and_of_views);
  tcase_add_test(t, csv_and_json_lines_say_the_same);
  tcase_add_test(t, what_a_name_holds_breaks_no_line_and_no_terminal);
  tcase_add_test(t, text_has_times_and_sizes_with_units);
  tcase_add_test(t, an_unfinished_trace_and_a_spool_are_listed);
  tcase_add_test(t, a_trace_of_version_1_is_listed_the_same);
  tcase_add_test(t, values_out_of_range_do_no_harm);
  tcase_add_test(t, a_view_in_the_place_of_a_table_is_refused);
  tcase_add_test(t, a_changed_byte_is_an_error_or_a_list);
  tcase_add_test(t, a_list_that_cannot_be_written_is_an_error);
  suite_add_tcase(s, t);
  SRunner *r = srunner_create(s);
  srunner_run_all(r, CK_ENV);
  int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed != 0;
}
