/* test_range.c: ranges of NVTX in a trace, and of which calls they are, against an account of this
 * test's own. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tests/reports/synth.h"

enum { THREADS = 4, TEXTS = 5, DOMAINS = 3, DEEP = 40, STEPS = 160 };

/* Range TEXT of DOMAIN is name 1 + TEXT * DOMAINS + DOMAIN of its thread. */
static void write_name(int thread, uint64_t number, const char *domain, const char *text,
                       uint32_t category, uint32_t color)
{
  struct {
    range_name head;
    char text[64];
  } name = {.head = {category, color, (uint16_t)strlen(domain), (uint16_t)strlen(text), 0}};
  (void)snprintf(name.text, sizeof(name.text), "%s%s", domain, text);
  ck_assert(synth_extended(thread, WEIR_EV_RANGE_NAME, number, 0, &name,
                           sizeof(name.head) + strlen(domain) + strlen(text)));
}

static void write_range(int thread, uint64_t at, int fact, uint64_t name, uint64_t number,
                        uint64_t domain)
{
  trace_event e = {.kind = WEIR_EV_RANGE,
                   .range_fact = (uint8_t)fact,
                   .a = name,
                   .bytes = number,
                   .stream = domain,
                   .device = WEIR_DEVICE_NONE,
                   .src_device = WEIR_DEVICE_NONE};
  ck_assert(synth_event(thread, at, 0, e));
}

static void write_payload(uint64_t at, unsigned type, uint64_t bits)
{
  trace_event e = {
      .kind = WEIR_EV_RANGE, .range_fact = WEIR_RANGE_MARK, .mem = (uint8_t)type, .b = bits};
  ck_assert(synth_event(0, at, 0, e));
}

static void call_at(int thread, uint64_t at, uint64_t bytes)
{
  synth_alloc(thread, at, 2, 0x1000 * bytes, bytes, 0, WEIR_MEM_DEVICE);
}

/* ---- random nests ---------------------------------------------------------------------------- */

typedef struct model_range {
  uint64_t start, end; /* end 0: open */
  int domain, text;
  int parent; /* index, -1 none */
} model_range;

typedef struct model {
  unsigned seed;
  uint64_t now, calls;
  model_range *ranges;
  size_t count;
  unsigned calls_in[DOMAINS][TEXTS]; /* each once a name */
  uint64_t bytes_in[DOMAINS][TEXTS];
  int range_of[THREADS * STEPS + 1]; /* by the bytes of a call; -1 none */
  struct {
    uint64_t pushes;
    int open[DEEP]; /* indices */
    uint64_t number[DEEP];
    int depth;
  } thread[THREADS];
} model;

static unsigned next_random(model *m, unsigned below)
{
  m->seed = m->seed * 1664525u + 1013904223u;
  return (m->seed >> 8) % below;
}

static void random_push(model *m, int t)
{
  int domain = (int)next_random(m, DOMAINS), text = (int)next_random(m, TEXTS);
  int depth = m->thread[t].depth;
  if (depth == DEEP) return;
  m->ranges[m->count] =
      (model_range){m->now, 0, domain, text, depth ? m->thread[t].open[depth - 1] : -1};
  m->thread[t].open[depth] = (int)m->count++;
  m->thread[t].number[depth] = ++m->thread[t].pushes;
  m->thread[t].depth++;
  write_range(t, m->now, WEIR_RANGE_PUSH, 1u + (unsigned)text * DOMAINS + (unsigned)domain,
              m->thread[t].pushes, (uint64_t)domain);
}

static void random_pop(model *m, int t)
{
  int domain = (int)next_random(m, DOMAINS), i = m->thread[t].depth - 1;
  while (i >= 0 && m->ranges[m->thread[t].open[i]].domain != domain)
    i--;
  if (i < 0) return; /* the program's side records none */
  m->ranges[m->thread[t].open[i]].end = m->now;
  write_range(t, m->now, WEIR_RANGE_POP, 0, m->thread[t].number[i], (uint64_t)domain);
  for (m->thread[t].depth--; i < m->thread[t].depth; i++) {
    m->thread[t].open[i] = m->thread[t].open[i + 1];
    m->thread[t].number[i] = m->thread[t].number[i + 1];
  }
}

/* Once for each name that is open. */
static void count_within(model *m, int t)
{
  bool seen[DOMAINS][TEXTS] = {{false}};
  for (int i = 0; i < m->thread[t].depth; i++) {
    const model_range *r = &m->ranges[m->thread[t].open[i]];
    if (!seen[r->domain][r->text]) m->calls_in[r->domain][r->text]++;
    if (!seen[r->domain][r->text]) m->bytes_in[r->domain][r->text] += m->calls;
    seen[r->domain][r->text] = true;
  }
}

static void random_step(model *m)
{
  int t = (int)next_random(m, THREADS), depth = m->thread[t].depth;
  unsigned what = next_random(m, 9);
  m->now += 3;
  if (what < 3) {
    random_push(m, t);
  } else if (what < 6) {
    random_pop(m, t);
  } else {
    call_at(t, m->now, ++m->calls);
    count_within(m, t);
    m->range_of[m->calls] = depth ? m->thread[t].open[depth - 1] : -1;
  }
}

static const char *const domain_names[DOMAINS] = {"", "alpha", "b\xc3\xa9ta"};
static const char *const text_names[TEXTS] = {"one", "two", "three", "four", ""};

static model *new_model(int seed)
{
  model *m = calloc(1, sizeof(*m));
  ck_assert_ptr_nonnull(m);
  m->ranges = calloc(STEPS * THREADS, sizeof(*m->ranges));
  m->seed = (unsigned)seed * 77u + 1u;
  synth_open(synth_dir());
  for (int t = 0; t < THREADS; t++)
    for (int x = 0; x < TEXTS; x++)
      for (int d = 0; d < DOMAINS; d++)
        write_name(t, 1u + (unsigned)x * DOMAINS + (unsigned)d, domain_names[d], text_names[x], 0,
                   0);
  return m;
}

static void compare_calls(const model *m, const char *trace)
{
  char sql[512];
  for (uint64_t i = 1; i <= m->calls; i++) {
    const model_range *r = m->range_of[i] < 0 ? NULL : &m->ranges[m->range_of[i]];
    (void)snprintf(sql, sizeof(sql),
                   "SELECT count(*) FROM event e JOIN event_range x ON x.event = e.id"
                   " JOIN range r ON r.id = x.range WHERE e.bytes = %d AND r.start_ns = %lld"
                   " AND r.domain = '%s' AND r.text = '%s'",
                   (int)i, r ? (long long)r->start : -1LL, r ? domain_names[r->domain] : "",
                   r ? text_names[r->text] : "");
    ck_assert_msg(synth_number(trace, sql) == (r != NULL), "call %d of %d: %s", (int)i,
                  (int)m->calls, sql);
  }
  ck_assert_int_eq(synth_number(trace, "SELECT count(*) FROM event_row"), (int64_t)m->calls);
}

static void compare_ranges(const model *m, const char *trace)
{
  char sql[512];
  ck_assert_int_eq(synth_number(trace, "SELECT count(*) FROM range"), (int64_t)m->count);
  for (size_t i = 0; i < m->count; i++) {
    const model_range *r = &m->ranges[i];
    (void)snprintf(sql, sizeof(sql),
                   "SELECT count(*) FROM range r LEFT JOIN range p ON p.id = r.parent"
                   " WHERE r.start_ns = %lld AND ifnull(r.end_ns, 0) = %lld"
                   " AND ifnull(p.start_ns, -1) = %lld AND r.domain = '%s' AND r.text = '%s'",
                   (long long)r->start, (long long)r->end,
                   r->parent < 0 ? -1LL : (long long)m->ranges[r->parent].start,
                   domain_names[r->domain], text_names[r->text]);
    ck_assert_msg(synth_number(trace, sql) == 1, "range %zu: %s", i, sql);
  }
}

static json_int_t member(const json_t *o, const char *name)
{
  ck_assert_msg(json_is_integer(json_object_get(o, name)), "no member %s", name);
  return json_integer_value(json_object_get(o, name));
}

/* The entry of a name in a report, or NULL. */
static const json_t *entry_of(const json_t *report, const char *domain, const char *text)
{
  size_t i;
  const json_t *o;
  json_array_foreach(json_object_get(report, "ranges"), i, o)
  {
    if (strcmp(json_string_value(json_object_get(o, "domain")), domain) == 0 &&
        strcmp(json_string_value(json_object_get(o, "text")), text) == 0)
      return o;
  }
  return NULL;
}

static void compare_report(const model *m, const char *trace)
{
  json_t *report = synth_json(trace);
  for (int d = 0; d < DOMAINS; d++)
    for (int x = 0; x < TEXTS; x++) {
      json_int_t ranges = 0;
      for (size_t i = 0; i < m->count; i++)
        ranges += m->ranges[i].domain == d && m->ranges[i].text == x;
      const json_t *o = entry_of(report, domain_names[d], text_names[x]);
      ck_assert_int_eq(o ? member(o, "ranges") : 0, ranges);
      if (!o) continue;
      ck_assert_int_eq(member(o, "calls"), m->calls_in[d][x]);
      ck_assert_int_eq(member(o, "allocs"), m->calls_in[d][x]);
      ck_assert_int_eq(member(o, "alloc_bytes"), (json_int_t)m->bytes_in[d][x]);
      ck_assert_int_eq(member(o, "peak_bytes"), (json_int_t)m->bytes_in[d][x]);
    }
  json_decref(report);
}

static void free_model(model *m)
{
  free(m->ranges);
  free(m);
}

START_TEST(every_call_of_random_nests_has_its_innermost_range)
{
  model *m = new_model(_i);
  for (int i = 0; i < STEPS; i++)
    random_step(m);
  const char *t = synth_import_this();
  compare_calls(m, t);
  compare_ranges(m, t);
  compare_report(m, t);
  free_model(m);
}
END_TEST

static void import_a_part(const char *trace, const char *spool, bool finish)
{
  trace_importer *im = NULL;
  importer_options o = {.merge = true};
  uint32_t number = 0;
  uint64_t events;
  ck_assert_msg(importer_open(&im, trace, &o) == WEIR_OK, "%s", weir_error_message());
  ck_assert_int_eq(importer_add(im, spool, !finish, &number), WEIR_OK);
  ck_assert_int_eq(importer_poll(im, &events), WEIR_OK);
  if (finish) ck_assert_msg(importer_finish(im) == WEIR_OK, "%s", weir_error_message());
  importer_close(im);
}

START_TEST(ranges_that_are_open_when_a_collector_dies_are_gone_on_with)
{
  static char trace[512];
  model *m = new_model(_i + 1000);
  const char *spool = synth_spool();
  (void)snprintf(trace, sizeof(trace), "%s/parts.db", synth_dir());
  for (int part = 0; part < 4; part++) {
    for (int i = 0; i < STEPS / 4; i++)
      random_step(m);
    if (part < 3) import_a_part(trace, spool, false);
  }
  synth_close();
  import_a_part(trace, spool, true);
  compare_calls(m, trace);
  compare_ranges(m, trace);
  ck_assert_int_eq(synth_number(trace, "SELECT count(*) > 15 FROM range_name"), 0);
  free_model(m);
}
END_TEST

/* ---- what else there is ---------------------------------------------------------------------- */

START_TEST(a_lost_pop_ends_with_the_next_pop_further_out_in_its_domain)
{
  synth_open(synth_dir());
  write_range(0, 10, WEIR_RANGE_PUSH, 0, 1, 1);
  write_range(0, 20, WEIR_RANGE_PUSH, 0, 2, 2);
  write_range(0, 30, WEIR_RANGE_PUSH, 0, 3, 1); /* its pop is lost */
  write_range(0, 40, WEIR_RANGE_POP, 0, 1, 1);
  call_at(0, 50, 1);
  write_range(0, 60, WEIR_RANGE_POP, 0, 9, 1); /* its push is lost */
  const char *t = synth_import_this();
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM range WHERE end_ns = 40"), 2);
  ck_assert_int_eq(synth_number(t, "SELECT start_ns FROM range WHERE end_ns IS NULL"), 20);
  ck_assert_int_eq(
      synth_number(t, "SELECT r.start_ns FROM event_range x JOIN range r ON r.id = x.range"), 20);
}
END_TEST

START_TEST(any_thread_may_end_a_range_that_was_started)
{
  synth_open(synth_dir());
  write_range(1, 50, WEIR_RANGE_END, 0, 7, 0); /* another thread's record may be read first */
  write_range(0, 10, WEIR_RANGE_START, 0, 7, 0);
  write_range(0, 20, WEIR_RANGE_START, 0, 8, 0);
  write_range(1, 60, WEIR_RANGE_END, 0, 8, 0);
  write_range(0, 30, WEIR_RANGE_START, 0, 9, 0);
  write_range(1, 70, WEIR_RANGE_END, 0, 10, 0);
  call_at(0, 80, 1);
  const char *t = synth_import_this();
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM range WHERE kind = 'start_end'"), 3);
  ck_assert_int_eq(synth_number(t, "SELECT end_ns FROM range WHERE start_ns = 10"), 50);
  ck_assert_int_eq(synth_number(t, "SELECT end_ns FROM range WHERE start_ns = 20"), 60);
  ck_assert_int_eq(synth_number(t, "SELECT end_ns IS NULL FROM range WHERE start_ns = 30"), 1);
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM event_range"), 0);
}
END_TEST

START_TEST(payloads_have_their_types_and_nsights_columns)
{
  double pi = 3.25;
  float half = 0.5f;
  uint64_t bits = 0;
  synth_open(synth_dir());
  write_payload(10, 1, 5);
  write_payload(20, 2, (uint64_t)-5);
  memcpy(&bits, &pi, sizeof(pi));
  write_payload(30, 3, bits);
  write_payload(40, 4, 0xffffffff);
  write_payload(50, 5, 0xfffffffb);
  bits = 0;
  memcpy(&bits, &half, sizeof(half));
  write_payload(60, 6, bits);
  write_payload(70, 13, 99);
  const char *t = synth_import_this();
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM NVTX_EVENTS WHERE eventType = 34"), 7);
  ck_assert_int_eq(synth_number(t, "SELECT uint64Value FROM NVTX_EVENTS WHERE start = 10"), 5);
  ck_assert_int_eq(synth_number(t, "SELECT int64Value FROM NVTX_EVENTS WHERE start = 20"), -5);
  ck_assert_int_eq(synth_number(t, "SELECT doubleValue = 3.25 FROM NVTX_EVENTS WHERE start = 30"),
                   1);
  ck_assert_int_eq(synth_number(t, "SELECT uint32Value FROM NVTX_EVENTS WHERE start = 40"),
                   4294967295);
  ck_assert_int_eq(synth_number(t, "SELECT int32Value FROM NVTX_EVENTS WHERE start = 50"), -5);
  ck_assert_int_eq(synth_number(t, "SELECT floatValue = 0.5 FROM NVTX_EVENTS WHERE start = 60"), 1);
  ck_assert_int_eq(synth_number(t, "SELECT payload IS NULL FROM range WHERE start_ns = 70"), 1);
}
END_TEST

START_TEST(categories_and_threads_have_the_names_they_were_given)
{
  static const char category[] = "alpha\0twelve";
  synth_open(synth_dir());
  write_name(0, 1, "alpha", "in twelve", 12, 0xff00ff00);
  write_name(0, 2, "", "elsewhere", 12, 0);
  write_range(0, 10, WEIR_RANGE_MARK, 1, 0, 0);
  write_range(0, 20, WEIR_RANGE_MARK, 2, 0, 0);
  ck_assert(
      synth_extended(0, WEIR_EV_NAME, 12, WEIR_NAME_CATEGORY, category, sizeof(category) - 1));
  const char *t = synth_import_this();
  ck_assert_int_eq(synth_number(t, "SELECT category_name = 'twelve' AND color = 4278255360"
                                   " FROM range WHERE start_ns = 10"),
                   1);
  ck_assert_int_eq(
      synth_number(t,
                   "SELECT category_name IS NULL AND color IS NULL FROM range WHERE start_ns = 20"),
      1);
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM NVTX_EVENTS WHERE eventType = 75"), 1);
  ck_assert_int_eq(synth_number(t, "SELECT domainId FROM NVTX_EVENTS WHERE text = 'in twelve'"), 1);
}
END_TEST

START_TEST(a_report_sums_what_is_within_a_range_once_a_name)
{
  synth_open(synth_dir());
  write_name(0, 1, "", "step", 0, 0);
  write_name(0, 2, "lib", "copy", 0, 0);
  call_at(0, 5, 7000); /* in none */
  write_range(0, 10, WEIR_RANGE_PUSH, 1, 1, 0);
  write_range(0, 20, WEIR_RANGE_PUSH, 1, 2, 0); /* a step in a step */
  call_at(0, 30, 100);
  synth_free(0, 40, 2, 0x1000 * 100);
  call_at(0, 50, 60);
  write_range(0, 60, WEIR_RANGE_POP, 0, 2, 0);
  write_range(0, 70, WEIR_RANGE_PUSH, 2, 3, 1);
  synth_copy(0, 80, 5, WEIR_COPY_HTOD, 64, 0, (int)WEIR_DEVICE_NONE, WEIR_MEM_DEVICE,
             WEIR_MEM_PINNED, 0);
  write_range(0, 90, WEIR_RANGE_POP, 0, 1, 0); /* the outer one first: another domain */
  synth_sync(0, 100, 17, WEIR_SYNC_CONTEXT);
  write_range(0, 130, WEIR_RANGE_POP, 0, 3, 1);
  synth_sync(0, 140, 1, WEIR_SYNC_CONTEXT);
  const char *t = synth_import_this();
  json_t *report = synth_json(t);
  const json_t *step = entry_of(report, "", "step"), *copy = entry_of(report, "lib", "copy");
  ck_assert_ptr_nonnull(step);
  ck_assert_ptr_nonnull(copy);
  ck_assert_uint_eq(json_array_size(json_object_get(report, "ranges")), 2);
  ck_assert_int_eq(member(step, "ranges"), 2);
  ck_assert_int_eq(member(step, "ns"), 80);
  ck_assert_int_eq(member(step, "calls"), 4);
  ck_assert_int_eq(member(step, "alloc_bytes"), 160);
  ck_assert_int_eq(member(step, "peak_bytes"), 100);
  ck_assert_int_eq(member(step, "copy_bytes"), 64);
  ck_assert_int_eq(member(step, "wait_ns"), 2); /* the free */
  ck_assert_int_eq(member(copy, "ns"), 60);
  ck_assert_int_eq(member(copy, "copies"), 1);
  ck_assert_int_eq(member(copy, "waits"), 1);
  ck_assert_int_eq(member(copy, "wait_ns"), 17);
  ck_assert_int_eq(member(copy, "open"), 0);
  json_decref(report);
  char *text = synth_text(t, 100);
  ck_assert_ptr_nonnull(strstr(text, "By range"));
  ck_assert_ptr_nonnull(strstr(text, "lib:copy"));
  ck_assert_ptr_null(strstr(text, "on device"));
  free(text);
}
END_TEST

START_TEST(time_on_devices_is_within_the_ranges_of_the_calls_that_asked_for_it)
{
  synth_open(synth_dir());
  write_name(0, 1, "", "epoch", 0, 0);
  write_name(0, 2, "", "step", 0, 0);
  write_range(0, 10, WEIR_RANGE_PUSH, 1, 1, 0);
  call_at(0, 15, 100);
  write_range(0, 20, WEIR_RANGE_PUSH, 2, 2, 0);
  call_at(0, 30, 200);
  write_range(0, 50, WEIR_RANGE_POP, 0, 2, 0);
  write_range(0, 60, WEIR_RANGE_POP, 0, 1, 0);
  call_at(0, 70, 300);
  const char *t = synth_import_this();
  sqlite3 *db = NULL;
  ck_assert_int_eq(sqlite3_open(t, &db), SQLITE_OK);
  /* of the call of 200 bytes two operations, one without times, one of the observer's own */
  ck_assert_int_eq(sqlite3_exec(db,
                                "INSERT INTO device_work(process, event, kind, start, \"end\")"
                                " SELECT 1, id, 3, 1000, 1000 + bytes FROM event_row;"
                                "INSERT INTO device_work(process, event, kind, start, \"end\")"
                                " SELECT 1, id, 1, 5000, 5007 FROM event_row WHERE bytes = 200;"
                                "INSERT INTO device_work(process, event, kind, start, \"end\")"
                                " SELECT 1, id, 1, 5000, 4000 FROM event_row WHERE bytes = 200;"
                                "INSERT INTO device_work(process, event, kind, start, \"end\")"
                                " SELECT 1, id, 5, 5000, 6000 FROM event_row WHERE bytes = 200",
                                NULL, NULL, NULL),
                   SQLITE_OK);
  sqlite3_close(db);
  json_t *report = synth_json(t);
  ck_assert_int_eq(member(entry_of(report, "", "epoch"), "device_ns"), 307);
  ck_assert_int_eq(member(entry_of(report, "", "step"), "device_ns"), 207);
  json_decref(report);
  char *text = synth_text(t, 120);
  ck_assert_msg(strstr(text, "on device"), "%s", text);
  ck_assert_ptr_nonnull(strstr(text, "307 ns"));
  free(text);
}
END_TEST

static void launch_graph_at(uint64_t at, uint64_t exec)
{
  ck_assert(synth_event(
      0, at, 5, (trace_event){.kind = WEIR_EV_CALL, .api = synth_api("cuGraphLaunch"), .a = exec}));
}

/* Type 0 a kernel, 1 a copy, 10 an allocation. */
START_TEST(what_launches_of_graphs_ran_is_within_the_ranges_they_are_in)
{
  const graph_node_info nodes[] = {
      {.node = 1, .type = 1, .bytes = 10, .copy = WEIR_COPY_HTOD},
      {.node = 2, .type = 1, .bytes = 10, .copy = WEIR_COPY_HTOD},
      {.node = 3, .type = 1, .bytes = 7, .copy = WEIR_COPY_DTOH},
      {.node = 4, .type = 1, .bytes = 1000, .copy = WEIR_COPY_DTOH, .conditional = 1},
      {.node = 5, .type = 0, .a = 77},
      {.node = 6, .type = 10, .a = 0x7000, .bytes = 300, .mem = WEIR_MEM_DEVICE}};
  synth_open(synth_dir());
  write_name(0, 1, "", "epoch", 0, 0);
  write_name(0, 2, "", "step", 0, 0);
  ck_assert(synth_graph(0, 1, 5, nodes, 6));
  ck_assert(synth_graph(0, 1, 6, nodes, 1));
  launch_graph_at(5, 5); /* in none */
  write_range(0, 10, WEIR_RANGE_PUSH, 1, 1, 0);
  write_range(0, 20, WEIR_RANGE_PUSH, 2, 2, 0);
  launch_graph_at(30, 5);
  launch_graph_at(40, 6);
  write_range(0, 50, WEIR_RANGE_POP, 0, 2, 0);
  launch_graph_at(60, 6);
  write_range(0, 70, WEIR_RANGE_POP, 0, 1, 0);
  json_t *report = synth_json(synth_import_this());
  const json_t *epoch = entry_of(report, "", "epoch"), *step = entry_of(report, "", "step");
  ck_assert_int_eq(member(step, "calls"), 2);
  ck_assert_int_eq(member(step, "copies"), 4);
  ck_assert_int_eq(member(step, "copy_bytes"), 37);
  ck_assert_int_eq(member(step, "launches"), 1);
  ck_assert_int_eq(member(step, "allocs"), 1);
  ck_assert_int_eq(member(step, "alloc_bytes"), 300);
  ck_assert_int_eq(member(step, "peak_bytes"), 300);
  ck_assert_int_eq(member(epoch, "calls"), 3);
  ck_assert_int_eq(member(epoch, "copies"), 5);
  ck_assert_int_eq(member(epoch, "copy_bytes"), 47);
  json_decref(report);
}
END_TEST

START_TEST(without_ranges_a_report_says_nothing_of_them)
{
  synth_open(synth_dir());
  call_at(0, 5, 7000);
  const char *t = synth_import_this();
  json_t *report = synth_json(t);
  ck_assert_uint_eq(json_array_size(json_object_get(report, "ranges")), 0);
  json_decref(report);
  char *text = synth_text(t, 100);
  ck_assert_ptr_null(strstr(text, "By range"));
  free(text);
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM event_range"), 0);
}
END_TEST

START_TEST(records_that_make_no_sense_are_left_out)
{
  char half[8] = {0};
  range_name beyond = {.domain_bytes = 60000, .text_bytes = 60000};
  synth_open(synth_dir());
  ck_assert(synth_extended(0, WEIR_EV_RANGE_NAME, 1, 0, half, sizeof(half)));
  ck_assert(synth_extended(0, WEIR_EV_RANGE_NAME, 2, 0, &beyond, sizeof(beyond)));
  ck_assert(synth_extended(0, WEIR_EV_NAME, 1, WEIR_NAME_CATEGORY, "no zero", 7));
  write_range(0, 1, 0, 0, 0, 0);
  write_range(0, 2, 200, UINT64_MAX, UINT64_MAX, UINT64_MAX);
  write_range(0, 3, WEIR_RANGE_POP, 0, 0, 0);
  for (unsigned i = 0; i < 10000; i++) /* far deeper than a program's side records */
    write_range(0, 10 + i, WEIR_RANGE_PUSH, UINT64_MAX, UINT64_MAX - i, i);
  call_at(0, 20000, 1);
  const char *t = synth_import_this();
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM range"), 4096);
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM range WHERE text IS NOT NULL"), 0);
  ck_assert_int_eq(synth_number(t, "SELECT count(*) FROM event_range"), 1);
  json_decref(synth_json(t));
}
END_TEST

START_TEST(ranges_too_deep_to_be_recorded_are_in_the_coverage)
{
  synth_open(synth_dir());
  call_at(0, 10, 1);
  atomic_store(&spool_current()->deep_ranges, 4744);
  const char *t = synth_import_this();
  json_t *j = synth_json(t);
  json_t *coverage = json_object_get(j, "coverage");
  ck_assert_int_eq(json_integer_value(json_object_get(coverage, "deep_ranges")), 4744);
  json_decref(j);
  char *text = synth_text(t, 200);
  ck_assert_ptr_nonnull(strstr(text, "4,744 NVTX ranges were pushed deeper than 256"));
  free(text);
}
END_TEST

static Suite *range_suite(void)
{
  Suite *s = suite_create("ranges");
  TCase *t = tcase_create("ranges");
  tcase_set_timeout(t, 300);
  tcase_add_checked_fixture(t, NULL, synth_clean);
  tcase_add_loop_test(t, every_call_of_random_nests_has_its_innermost_range, 0, 2);
  tcase_add_loop_test(t, ranges_that_are_open_when_a_collector_dies_are_gone_on_with, 0, 2);
  tcase_add_test(t, a_lost_pop_ends_with_the_next_pop_further_out_in_its_domain);
  tcase_add_test(t, any_thread_may_end_a_range_that_was_started);
  tcase_add_test(t, payloads_have_their_types_and_nsights_columns);
  tcase_add_test(t, categories_and_threads_have_the_names_they_were_given);
  tcase_add_test(t, a_report_sums_what_is_within_a_range_once_a_name);
  tcase_add_test(t, what_launches_of_graphs_ran_is_within_the_ranges_they_are_in);
  tcase_add_test(t, time_on_devices_is_within_the_ranges_of_the_calls_that_asked_for_it);
  tcase_add_test(t, without_ranges_a_report_says_nothing_of_them);
  tcase_add_test(t, records_that_make_no_sense_are_left_out);
  tcase_add_test(t, ranges_too_deep_to_be_recorded_are_in_the_coverage);
  suite_add_tcase(s, t);
  return s;
}

int main(void)
{
  SRunner *r = srunner_create(range_suite());
  srunner_run_all(r, CK_ENV);
  int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed != 0;
}
