/* test_diff.c: the metrics of a trace against its report, which site of one trace is which of
 * another, and the grammar of conditions. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "reports/diff/diff.h"
#include "reports/diff/report.h"
#include "reports/write/grid.h"
#include "tests/reports/synth.h"

#define HOST (int)WEIR_DEVICE_NONE

/* ---- traces ---------------------------------------------------------------------------------- */

typedef struct source {     /* of a trace: where its functions are */
  const char *file, *other; /* f0 to f3 are in the first, f4 to f7 in the other */
  uint32_t line;            /* of f0; the others are below it */
  uint64_t seed;
} source;

enum { FUNCTIONS = 8, STEPS = 600 };

/* A stack that is one function of a script: a name, a file, a line. */
static void name_function(uint32_t id, const char *function, const char *file, uint32_t line)
{
  char payload[400];
  python_frame_info info = {.line = line,
                            .function_bytes = (uint16_t)strlen(function),
                            .file_bytes = (uint16_t)strlen(file)};
  const uint64_t frames[] = {WEIR_PYTHON_FRAME_FIRST + id};
  memcpy(payload, &info, sizeof info);
  int n = snprintf(payload + sizeof info, sizeof payload - sizeof info, "%s%s", function, file);
  ck_assert_int_lt(n, (int)(sizeof payload - sizeof info));
  synth_extended(0, WEIR_EV_PYTHON_FRAME, frames[0], 0, payload, sizeof info + (size_t)n);
  synth_stack(0, id, frames, 1);
}

static void name_range(uint64_t number, const char *domain, const char *text)
{
  struct {
    range_name head;
    char text[64];
  } name = {.head = {0, 0, (uint16_t)strlen(domain), (uint16_t)strlen(text), 0}};
  (void)snprintf(name.text, sizeof(name.text), "%s%s", domain, text);
  synth_extended(0, WEIR_EV_RANGE_NAME, number, 0, &name,
                 sizeof(name.head) + strlen(domain) + strlen(text));
}

static void range_event(uint64_t at, int fact, uint64_t name)
{
  synth_event(0, at, 0,
              (trace_event){.kind = WEIR_EV_RANGE,
                            .range_fact = (uint8_t)fact,
                            .a = name,
                            .bytes = 1,
                            .device = WEIR_DEVICE_NONE,
                            .src_device = WEIR_DEVICE_NONE});
}

static trace_event random_copy(void)
{
  static const int kinds[] = {WEIR_COPY_HTOD, WEIR_COPY_DTOH, WEIR_COPY_DTOD,
                              WEIR_COPY_PTOP, WEIR_COPY_HTOH, WEIR_COPY_UNKNOWN};
  int copy = kinds[synth_below(6)], device = (int)synth_below(2);
  bool to = copy != WEIR_COPY_DTOH && copy != WEIR_COPY_HTOH;
  bool from = copy != WEIR_COPY_HTOD && copy != WEIR_COPY_HTOH;
  int host = synth_below(2) ? WEIR_MEM_PAGEABLE : WEIR_MEM_PINNED;
  return (trace_event){
      .kind = WEIR_EV_COPY,
      .copy_kind = (uint8_t)copy,
      .api = synth_api("cudaMemcpy"),
      .device = (uint8_t)(to ? device : HOST),
      .src_device = (uint8_t)(from ? 1 - device : HOST),
      .flags = synth_below(2) ? WEIR_EVF_IMPLICIT_SYNC : 0,
      .mem = (uint8_t)((to ? WEIR_MEM_DEVICE : host) | (from ? WEIR_MEM_DEVICE : host) << 4)};
}

static trace_event random_call(uint64_t i)
{
  bool pinned = synth_below(4) == 0;
  switch (synth_below(6)) {
  case 0:
    return (trace_event){.kind = WEIR_EV_ALLOC,
                         .api = synth_api(pinned ? "cudaMallocHost" : "cudaMalloc"),
                         .a = 0x100000000 + (i << 24),
                         .device = (uint8_t)(pinned ? HOST : (int)synth_below(2)),
                         .mem = (uint8_t)(pinned ? WEIR_MEM_PINNED : WEIR_MEM_DEVICE)};
  case 1:
    return (trace_event){.kind = WEIR_EV_FREE,
                         .api = synth_api("cudaFree"),
                         .flags = WEIR_EVF_IMPLICIT_SYNC,
                         .a = 0x100000000 + (synth_below(i + 1) << 24),
                         .device = WEIR_DEVICE_NONE};
  case 2:
    return random_copy();
  case 3:
    return (trace_event){.kind = WEIR_EV_SYNC,
                         .api = synth_api("cudaStreamSynchronize"),
                         .sync_type = (uint8_t)(1 + synth_below(4)),
                         .device = (uint8_t)synth_below(2)};
  case 4:
    return (trace_event){.kind = WEIR_EV_MEMSET, .api = synth_api("cudaMemset"), .device = 1};
  default:
    return (trace_event){.kind = WEIR_EV_LAUNCH, .api = synth_api("cudaLaunchKernel")};
  }
}

static const char *import_as(const char *name)
{
  static char path[2][512];
  static int turn;
  const char *one[] = {NULL, NULL};
  synth_close();
  one[0] = synth_spool();
  turn = !turn;
  (void)snprintf(path[turn], sizeof(path[turn]), "%s", synth_import(name, one));
  return path[turn];
}

static void begin_trace(const source *s)
{
  char function[32];
  synth_open(synth_dir());
  for (uint32_t f = 0; f < FUNCTIONS; f++) {
    (void)snprintf(function, sizeof(function), "f%u", f);
    name_function(f + 1, function, f < FUNCTIONS / 2 ? s->file : s->other, s->line + f);
  }
  name_range(1, "", "step");
  name_range(2, "lib", "step");
  name_range(3, "", "load");
}

static const char *random_trace(const char *name, const source *s)
{
  synth_seed(UINT64_C(88172645463325252) + s->seed * 7919);
  begin_trace(s);
  for (uint64_t i = 0, open = 0; i < STEPS; i++) {
    uint64_t at = 1000 + i * 1000;
    trace_event e = random_call(i);
    e.flags |= WEIR_EVF_RUNTIME;
    e.bytes = e.kind == WEIR_EV_SYNC || e.kind == WEIR_EV_FREE ? 0 : synth_below(1 << 20);
    e.stack = (uint32_t)synth_below(FUNCTIONS + 1);
    e.status = synth_below(20) == 0;
    if (i % 7 == 0) range_event(at - 10, WEIR_RANGE_PUSH, 1 + synth_below(3)), open++;
    synth_event(0, at, 10 + synth_below(900), e);
    if (i % 7 == 5 && open) range_event(at + 950, WEIR_RANGE_POP, 0), open--;
  }
  return import_as(name);
}

static const source home = {"/home/a.py", "/home/b.py", 10, 1};

static wr_figures figures_of(const char *trace)
{
  wr_figures f;
  weir_status s = wr_figures_load(&f, trace, &(wr_figures_settings){.findings = true});
  ck_assert_msg(s == WEIR_OK, "%s", weir_error_message());
  return f;
}

/* ---- the report ------------------------------------------------------------------------------ */

static json_t *report_of(const char *trace, weir_status (*print)(FILE *out, const char *trace,
                                                                 const report_settings *o))
{
  char *text = NULL;
  size_t bytes = 0;
  FILE *f = open_memstream(&text, &bytes);
  report_settings o = {.format = WEIR_REPORT_JSON_1, .top = 1000};
  ck_assert_msg(print(f, trace, &o) == WEIR_OK, "%s", weir_error_message());
  (void)fclose(f);
  json_t *json = json_loads(text, 0, NULL);
  ck_assert_ptr_nonnull(json);
  free(text);
  return json;
}

/* The sum of members: "a+b". */
static uint64_t members(const json_t *o, const char *names)
{
  uint64_t sum = 0;
  char name[64];
  for (const char *at = names; *at; at += *at == '+') {
    size_t n = strcspn(at, "+");
    (void)snprintf(name, sizeof(name), "%.*s", (int)n, at);
    const json_t *v = json_object_get(o, name);
    ck_assert_msg(json_is_integer(v), "%s is missing", name);
    sum += (uint64_t)json_integer_value(v);
    at += n;
  }
  return sum;
}

typedef struct meaning {
  wr_metric metric;
  const char *members;
} meaning;

#define COPIES(what)                                                                               \
  "h2d_" what "+d2h_" what "+d2d_" what "+p2p_" what "+h2h_" what "+other_copy_" what

static const meaning of_totals[] = {{WR_METRIC_PEAK, "peak_bytes"},
                                    {WR_METRIC_PINNED_PEAK, "pinned_peak_bytes"},
                                    {WR_METRIC_LEAK_BYTES, "live_at_exit_bytes"},
                                    {WR_METRIC_LEAKS, "live_at_exit_blocks"},
                                    {WR_METRIC_PINNED_LEAK_BYTES, "pinned_live_at_exit_bytes"},
                                    {WR_METRIC_ALLOCS, "alloc_calls"},
                                    {WR_METRIC_ALLOC_BYTES, "alloc_bytes"},
                                    {WR_METRIC_COPIES, COPIES("calls")},
                                    {WR_METRIC_COPY_BYTES, COPIES("bytes")},
                                    {WR_METRIC_H2D, "h2d_calls"},
                                    {WR_METRIC_H2D_BYTES, "h2d_bytes"},
                                    {WR_METRIC_D2H, "d2h_calls"},
                                    {WR_METRIC_D2H_BYTES, "d2h_bytes"},
                                    {WR_METRIC_D2D, "d2d_calls"},
                                    {WR_METRIC_D2D_BYTES, "d2d_bytes"},
                                    {WR_METRIC_P2P, "p2p_calls"},
                                    {WR_METRIC_P2P_BYTES, "p2p_bytes"},
                                    {WR_METRIC_H2H, "h2h_calls"},
                                    {WR_METRIC_H2H_BYTES, "h2h_bytes"},
                                    {WR_METRIC_MEMSETS, "memset_calls"},
                                    {WR_METRIC_MEMSET_BYTES, "memset_bytes"},
                                    {WR_METRIC_WAITS, "sync_explicit_calls+sync_implicit_calls"},
                                    {WR_METRIC_WAIT_TIME, "sync_explicit_ns+sync_implicit_ns"},
                                    {WR_METRIC_EXPLICIT, "sync_explicit_calls"},
                                    {WR_METRIC_EXPLICIT_TIME, "sync_explicit_ns"},
                                    {WR_METRIC_IMPLICIT, "sync_implicit_calls"},
                                    {WR_METRIC_IMPLICIT_TIME, "sync_implicit_ns"},
                                    {WR_METRIC_LAUNCHES, "launches"},
                                    {WR_METRIC_ERRORS, "failed_calls"},
                                    {WR_METRIC_DROPPED, "dropped"}};

static const meaning of_devices[] = {{WR_METRIC_PEAK, "peak_bytes"},
                                     {WR_METRIC_LEAK_BYTES, "live_at_exit_bytes"},
                                     {WR_METRIC_ALLOCS, "alloc_calls"},
                                     {WR_METRIC_ALLOC_BYTES, "alloc_bytes"},
                                     {WR_METRIC_H2D, "h2d_calls"},
                                     {WR_METRIC_H2D_BYTES, "h2d_bytes"},
                                     {WR_METRIC_D2H, "d2h_calls"},
                                     {WR_METRIC_D2H_BYTES, "d2h_bytes"},
                                     {WR_METRIC_D2D, "d2d_calls"},
                                     {WR_METRIC_D2D_BYTES, "d2d_bytes"},
                                     {WR_METRIC_MEMSETS, "memset_calls"},
                                     {WR_METRIC_MEMSET_BYTES, "memset_bytes"},
                                     {WR_METRIC_EXPLICIT, "sync_explicit_calls"},
                                     {WR_METRIC_EXPLICIT_TIME, "sync_explicit_ns"},
                                     {WR_METRIC_LAUNCHES, "launches"}};

static const meaning of_ranges[] = {{WR_METRIC_PEAK, "peak_bytes"},
                                    {WR_METRIC_ALLOCS, "allocs"},
                                    {WR_METRIC_ALLOC_BYTES, "alloc_bytes"},
                                    {WR_METRIC_COPIES, "copies"},
                                    {WR_METRIC_COPY_BYTES, "copy_bytes"},
                                    {WR_METRIC_WAITS, "waits"},
                                    {WR_METRIC_WAIT_TIME, "wait_ns"},
                                    {WR_METRIC_LAUNCHES, "launches"},
                                    {WR_METRIC_DURATION, "ns"}};

static void expect_members(const wr_subject *x, const meaning *m, size_t count, const json_t *o)
{
  for (size_t i = 0; i < count; i++)
    ck_assert_msg(x->value[m[i].metric] == members(o, m[i].members), "%s: %llu",
                  wr_metric_rows[m[i].metric].name, (unsigned long long)x->value[m[i].metric]);
}
#define EXPECT(x, table, o) expect_members(x, table, sizeof(table) / sizeof((table)[0]), o)

static void expect_run(const wr_figures *f, const json_t *j)
{
  const wr_subject *run = &f->subject[0];
  uint64_t pageable[2] = {0};
  size_t i;
  json_t *o;
  EXPECT(run, of_totals, json_object_get(j, "totals"));
  json_array_foreach(json_object_get(j, "host_memory"), i, o)
  {
    if (strcmp(json_string_value(json_object_get(o, "memory")), "pageable") != 0) continue;
    pageable[0] += members(o, "calls"), pageable[1] += members(o, "bytes");
  }
  ck_assert_uint_eq(run->value[WR_METRIC_PAGEABLE], pageable[0]);
  ck_assert_uint_eq(run->value[WR_METRIC_PAGEABLE_BYTES], pageable[1]);
  ck_assert_uint_eq(run->value[WR_METRIC_DURATION], members(j, "duration_ns"));
  const json_t *waits = json_object_get(j, "waits");
  ck_assert_int_eq(f->unknown[WR_METRIC_WIDER] != NULL, json_is_null(waits));
  if (json_is_null(waits)) return;
  ck_assert_uint_eq(run->value[WR_METRIC_REDUNDANT], members(waits, "redundant_calls"));
  ck_assert_uint_eq(run->value[WR_METRIC_REDUNDANT_TIME], members(waits, "redundant_ns"));
  ck_assert_uint_eq(run->value[WR_METRIC_WIDER], members(waits, "wider_calls"));
  ck_assert_uint_eq(run->value[WR_METRIC_WIDER_TIME], members(waits, "wider_ns"));
}

static bool is_at(const json_t *o, const wr_subject *x)
{
  const char *file = json_string_value(json_object_get(o, "file"));
  if (strcmp(json_string_value(json_object_get(o, "function")), x->name) != 0) return false;
  return file && x->file ? !strcmp(file, x->file) : file == x->file;
}

/* What the entries of a list that are at this site add up to; `only`: of copies in this
 * direction. */
static uint64_t at_site(const json_t *list, const wr_subject *x, const char *member,
                        const char *only)
{
  uint64_t sum = 0;
  size_t i;
  json_t *o;
  json_array_foreach(list, i, o)
  {
    const char *direction = json_string_value(json_object_get(o, "direction"));
    if (is_at(o, x) && (!only || !strcmp(direction, only))) sum += members(o, member);
  }
  return sum;
}

static void expect_site(const wr_subject *x, const json_t *j)
{
  static const struct {
    wr_metric metric;
    const char *list, *member, *only;
  } meanings[] = {{WR_METRIC_ALLOCS, "alloc", "calls", NULL},
                  {WR_METRIC_ALLOC_BYTES, "alloc", "bytes", NULL},
                  {WR_METRIC_COPIES, "copy", "calls", NULL},
                  {WR_METRIC_COPY_BYTES, "copy", "bytes", NULL},
                  {WR_METRIC_H2D, "copy", "calls", "h2d"},
                  {WR_METRIC_H2D_BYTES, "copy", "bytes", "h2d"},
                  {WR_METRIC_D2H_BYTES, "copy", "bytes", "d2h"},
                  {WR_METRIC_D2D_BYTES, "copy", "bytes", "d2d"},
                  {WR_METRIC_P2P_BYTES, "copy", "bytes", "p2p"},
                  {WR_METRIC_H2H_BYTES, "copy", "bytes", "h2h"},
                  {WR_METRIC_WAITS, "sync", "calls", NULL},
                  {WR_METRIC_WAIT_TIME, "sync", "ns", NULL},
                  {WR_METRIC_REDUNDANT, "redundant_waits", "calls", NULL},
                  {WR_METRIC_WIDER_TIME, "wider_waits", "ns", NULL},
                  {WR_METRIC_LEAKS, "live_at_exit", "calls", NULL},
                  {WR_METRIC_LEAK_BYTES, "live_at_exit", "bytes", NULL}};
  const json_t *sites = json_object_get(j, "sites");
  uint64_t peak = 0;
  size_t i;
  json_t *o;
  for (size_t m = 0; m < sizeof(meanings) / sizeof(meanings[0]); m++)
    ck_assert_msg(x->value[meanings[m].metric] == at_site(json_object_get(sites, meanings[m].list),
                                                          x, meanings[m].member, meanings[m].only),
                  "%s of %s", wr_metric_rows[meanings[m].metric].name, x->name);
  json_array_foreach(json_object_get(j, "devices"), i, o) peak +=
      at_site(json_object_get(o, "peak_owners"), x, "bytes", NULL);
  ck_assert_uint_eq(x->value[WR_METRIC_PEAK], peak);
}

/* The element of a list that has this device, or this domain and text. */
static const json_t *entry_of(const json_t *list, const wr_subject *x)
{
  size_t i;
  json_t *o;
  json_array_foreach(list, i, o)
  {
    if (x->of == WR_OF_DEVICE && json_integer_value(json_object_get(o, "device")) == x->device)
      return o;
    if (x->of == WR_OF_RANGE &&
        !strcmp(json_string_value(json_object_get(o, "domain")), x->domain) &&
        !strcmp(json_string_value(json_object_get(o, "text")), x->name))
      return o;
  }
  ck_abort_msg("the report has no such device or range");
  return NULL;
}

static void expect_findings(const wr_figures *f, const json_t *j)
{
  const json_t *list = json_object_get(j, "findings");
  uint64_t of[3] = {0};
  size_t i;
  json_t *o;
  json_array_foreach(list, i, o)
  {
    wr_certainty c = WR_POSSIBLE;
    ck_assert(wr_certainty_read(json_string_value(json_object_get(o, "certainty")), &c));
    of[c]++;
  }
  ck_assert_uint_eq(f->subject[0].value[WR_METRIC_FINDINGS], json_array_size(list));
  ck_assert_uint_eq(f->subject[0].value[WR_METRIC_CERTAIN], of[WR_CERTAIN]);
  ck_assert_uint_eq(f->subject[0].value[WR_METRIC_LIKELY], of[WR_LIKELY]);
  ck_assert_uint_eq(f->subject[0].value[WR_METRIC_POSSIBLE], of[WR_POSSIBLE]);
}

START_TEST(every_value_is_the_reports)
{
  const char *t = random_trace("t.db", &(source){"/home/a.py", "/home/b.py", 10, (uint64_t)_i + 1});
  wr_figures f = figures_of(t);
  json_t *j = report_of(t, report_summary), *findings = report_of(t, report_findings);
  size_t of[9] = {0};
  for (size_t i = 0; i < f.count; i++) {
    const wr_subject *x = &f.subject[i];
    of[x->of]++;
    if (x->of == WR_OF_DEVICE) EXPECT(x, of_devices, entry_of(json_object_get(j, "devices"), x));
    if (x->of == WR_OF_RANGE) EXPECT(x, of_ranges, entry_of(json_object_get(j, "ranges"), x));
    if (x->of == WR_OF_SITE) expect_site(x, j);
  }
  expect_run(&f, j);
  expect_findings(&f, findings);
  ck_assert_uint_gt(f.subject[0].value[WR_METRIC_PAGEABLE_BYTES], 0);
  ck_assert_uint_gt(f.subject[0].value[WR_METRIC_LEAK_BYTES], 0);
  ck_assert_uint_eq(of[WR_OF_RUN], 1);
  ck_assert_uint_eq(of[WR_OF_DEVICE], 2);
  ck_assert_uint_eq(of[WR_OF_SITE], FUNCTIONS + 1); /* and what has no stack */
  ck_assert_uint_eq(of[WR_OF_RANGE], 3);
  json_decref(j);
  json_decref(findings);
  wr_figures_free(&f);
}
END_TEST

/* ---- pairs ----------------------------------------------------------------------------------- */

static wr_diff diff_of(const char *a, const char *b)
{
  static const wr_conditions none = {0};
  wr_diff d;
  weir_status s = wr_diff_load(&d, a, b, &(wr_figures_settings){.findings = true}, &none);
  ck_assert_msg(s == WEIR_OK, "%s", weir_error_message());
  return d;
}

/* Pairs of these subjects; those that have both sides. */
static size_t pairs_of(const wr_diff *d, int of, size_t *both)
{
  size_t all = 0;
  *both = 0;
  for (size_t i = 0; i < d->count; i++) {
    if ((d->pair[i].a ? d->pair[i].a : d->pair[i].b)->of != of) continue;
    all++;
    *both += d->pair[i].a && d->pair[i].b;
  }
  return all;
}

static const wr_pair *pair_named(const wr_diff *d, const char *name, const char *file)
{
  for (size_t i = 0; i < d->count; i++) {
    const wr_subject *x = d->pair[i].a ? d->pair[i].a : d->pair[i].b;
    if (x->of == WR_OF_SITE && !strcmp(x->name, name) && (!file || !strcmp(x->file, file)))
      return &d->pair[i];
  }
  ck_abort_msg("there is no site %s", name);
  return NULL;
}

static char *text_of(const wr_diff *d, wr_diff_format format, int width)
{
  char *text = NULL;
  size_t bytes = 0;
  FILE *f = open_memstream(&text, &bytes);
  ck_assert_int_eq(
      wr_diff_render(f, d, &(wr_diff_settings){.format = format, .width = width, .top = 20}), 0);
  (void)fclose(f);
  return text;
}

START_TEST(a_trace_is_like_itself)
{
  const char *t = random_trace("t.db", &home);
  wr_diff d = diff_of(t, t);
  size_t both;
  for (size_t i = 0; i < d.count; i++) {
    ck_assert_ptr_nonnull(d.pair[i].a);
    ck_assert_ptr_nonnull(d.pair[i].b);
    ck_assert_int_eq(memcmp(d.pair[i].a->value, d.pair[i].b->value, sizeof(d.pair[i].a->value)), 0);
  }
  ck_assert_uint_eq(pairs_of(&d, WR_OF_SITE, &both), FUNCTIONS + 1);
  for (size_t i = 0; i < d.waste_count; i++)
    ck_assert_int_eq(d.waste[i].fate, WR_STAYS);
  char *text = text_of(&d, WR_DIFF_TEXT, 0);
  ck_assert_ptr_null(strstr(text, "by site\n"));
  free(text);
  wr_diff_free(&d);
}
END_TEST

static void expect_all_paired(const source *moved, int width, const char *words)
{
  const char *a = random_trace("a.db", &home), *b = random_trace("b.db", moved);
  wr_diff d = diff_of(a, b);
  size_t both;
  ck_assert_uint_eq(pairs_of(&d, WR_OF_SITE, &both), FUNCTIONS + 1);
  ck_assert_uint_eq(both, FUNCTIONS + 1);
  ck_assert_uint_eq(pairs_of(&d, WR_OF_RANGE, &both), 3);
  ck_assert_uint_eq(pairs_of(&d, WR_OF_DEVICE, &both), 2);
  char *text = text_of(&d, WR_DIFF_TEXT, width);
  ck_assert_msg(strstr(text, words) != NULL, "%s", text);
  free(text);
  wr_diff_free(&d);
}

START_TEST(a_site_that_moved_by_ten_lines_is_the_same)
{
  expect_all_paired(&(source){"/home/a.py", "/home/b.py", 20, 2}, 0, "f3  /home/a.py:13 → :23\n");
}
END_TEST

START_TEST(a_site_in_another_checkout_is_the_same)
{
  expect_all_paired(&(source){"/srv/w/home/a.py", "/srv/w/home/b.py", 10, 2}, 100,
                    "f0  home/a.py:10 → home/a.py:10\n");
  expect_all_paired(&(source){"/new/a.py", "/new/b.py", 10, 2}, 0,
                    "f1  /home/a.py:11 → /new/a.py:11\n");
}
END_TEST

static void one_alloc(uint64_t at, uint64_t bytes, uint32_t stack)
{
  synth_event(0, at, 10,
              (trace_event){.kind = WEIR_EV_ALLOC,
                            .api = synth_api("cudaMalloc"),
                            .flags = WEIR_EVF_RUNTIME,
                            .a = 0x100000 + at * 0x10000,
                            .bytes = bytes,
                            .mem = WEIR_MEM_DEVICE,
                            .src_device = HOST,
                            .stack = stack});
}

/* main() of two files of one name; elsewhere, nothing says which is which. */
static const char *two_mains(const char *name, const char *first, const char *second)
{
  synth_open(synth_dir());
  name_function(1, "main", first, 5);
  name_function(2, "main", second, 6);
  one_alloc(100, 1000, 1);
  one_alloc(200, 2000, 2);
  return import_as(name);
}

START_TEST(sites_are_not_paired_by_a_name_that_several_files_have)
{
  const char *a = two_mains("a.db", "/home/x/main.py", "/home/y/main.py");
  wr_diff d = diff_of(a, two_mains("b.db", "/new/x/main.py", "/new/y/main.py"));
  size_t both;
  const wr_pair *x = pair_named(&d, "main", "/home/x/main.py");
  ck_assert_ptr_nonnull(x->b);
  ck_assert_str_eq(x->b->file, "/new/x/main.py");
  ck_assert_uint_eq(x->b->value[WR_METRIC_LEAK_BYTES], 1000);
  wr_diff_free(&d);
  a = two_mains("a.db", "/home/x/main.py", "/home/y/main.py");
  d = diff_of(a, two_mains("b.db", "/new/v/main.py", "/new/w/main.py"));
  ck_assert_uint_eq(pairs_of(&d, WR_OF_SITE, &both), 4);
  ck_assert_uint_eq(both, 0);
  wr_diff_free(&d);
  a = two_mains("a.db", "/home/x/main.py", "/srv/x/main.py"); /* the whole path says it */
  d = diff_of(a, a);
  ck_assert_uint_eq(pairs_of(&d, WR_OF_SITE, &both), 2);
  ck_assert_uint_eq(both, 2);
  wr_diff_free(&d);
}
END_TEST

START_TEST(calls_on_several_lines_of_a_function_are_at_one_site)
{
  const char *a = two_mains("a.db", "/home/main.py", "/home/main.py");
  wr_diff d = diff_of(a, a);
  size_t both;
  ck_assert_uint_eq(pairs_of(&d, WR_OF_SITE, &both), 1);
  const wr_subject *x = pair_named(&d, "main", "/home/main.py")->a;
  ck_assert_uint_eq(x->value[WR_METRIC_LEAK_BYTES], 3000);
  ck_assert_uint_eq(x->lines[WR_LINES_LEAKS].count, 2);
  ck_assert_int_eq(x->lines[WR_LINES_LEAKS].line[0], 5);
  ck_assert_int_eq(x->lines[WR_LINES_LEAKS].line[1], 6);
  ck_assert_uint_eq(x->lines[WR_LINES_WAITS].count, 0);
  wr_diff_free(&d);
}
END_TEST

/* ---- conditions ------------------------------------------------------------------------------ */

static const struct {
  const char *text, *mistake; /* from the column on */
} wrong_lists[] = {
    {"", "column 1: a metric belongs here, not the end"},
    {"peek>0", "column 1: there is no metric 'peek'"},
    {"peak>0,", "column 8: a metric belongs here, not the end"},
    {"peak>0;leaks>0", "column 7: a comma or the end belongs here, not ';'"},
    {"peak>0 leaks>0", "column 8: peak is in B, KiB, MiB, GiB or TiB, not in 'leaks'"},
    {"peak=0", "column 5: one of <= < >= > == != belongs here, not '='"},
    {"peak", "column 5: one of <= < >= > == != belongs here, not the end"},
    {"peak>", "column 6: a number belongs here, not the end"},
    {"peak>x", "column 6: a number belongs here, not 'x'"},
    {"peak>1.", "column 6: a number belongs here, not '1.'"},
    {"peak>12", "column 6: a unit is missing: peak is in B, KiB, MiB, GiB or TiB"},
    {"peak>12 GB", "column 9: peak is in B, KiB, MiB, GiB or TiB, not in 'GB'"},
    {"peak>12 ms", "column 9: peak is in B, KiB, MiB, GiB or TiB, not in 'ms'"},
    {"duration>12 KiB", "column 13: duration is in ns, us, ms, s or min, not in 'KiB'"},
    {"leaks.count>1 B", "column 15: leaks.count is a count, which has no unit"},
    {"peak>5%", "column 7: a share has a sign in front, + or -: of what the other run had"},
    {"peak>1234567890123456789", "column 6: a number has 18 digits at most"},
    {"finding>0", "column 8: certain, likely or possible belongs here, not '>'"},
    {"finding:sure>0", "column 9: certain, likely or possible belongs here, not 'sure'"},
    {"finding::certain>0", "column 9: certain, likely or possible belongs here, not ':'"},
    {"device: peak>0", "column 7: a device's number belongs here, not ':'"},
    {"device 256: peak>0", "column 8: devices have the numbers 0 to 255"},
    {"device 0 peak>0", "column 10: ':' belongs here, not 'peak'"},
    {"device 0: waits>0", "column 11: a device has no waits.count; weir(1) says what has"},
    {"site load: peak>0", "column 6: a name in double quotes belongs here, not 'load'"},
    {"site \"load: peak>0", "column 6: the name that begins here has no second quote"},
    {"site \"\": peak>0", "column 6: the name is empty"},
    {"site \"x\": launches>0", "column 11: a site has no launches.count; weir(1) says what has"},
    {"range \"x\": leaks>0", "column 12: a range has no leaks.bytes; weir(1) says what has"},
    {"site \"\xc3\xa9\xe2\x82\xac\": peek>0", "column 12: there is no metric 'peek'"},
    {"leaks>0,\xe2\x82\xac>0", "column 9: a metric belongs here, not '\xe2\x82\xac'"},
    {"leaks>0,\x1b[2J", "column 9: a metric belongs here, not '?'"},
    {"leaks>0,\xff", "column 9: a metric belongs here, not '?'"}};

START_TEST(a_mistake_in_a_list_is_named_with_its_column)
{
  wr_conditions c;
  char want[200];
  for (size_t i = 0; i < sizeof(wrong_lists) / sizeof(wrong_lists[0]); i++) {
    ck_assert_int_eq(wr_conditions_of_list(&c, "--fail-on", wrong_lists[i].text), WEIR_EINVAL);
    (void)snprintf(want, sizeof(want), "--fail-on, %s", wrong_lists[i].mistake);
    ck_assert_msg(strstr(weir_error_message(), want) == weir_error_message(), "%s: %s",
                  wrong_lists[i].text, weir_error_message());
  }
}
END_TEST

START_TEST(a_metric_is_also_called_what_json_calls_it)
{
  char text[80];
  size_t members = 0;
  for (int m = 0; m < WR_METRICS; m++) {
    wr_conditions c;
    const char *member = wr_metric_rows[m].member;
    if (!member) continue;
    members++;
    (void)snprintf(text, sizeof(text), "%s > 0", member);
    ck_assert_msg(!wr_conditions_of_list(&c, "--fail-on", text), "%s", weir_error_message());
    ck_assert_msg(c.condition[0].metric == (wr_metric)m, "%s is another metric", member);
    wr_conditions_free(&c);
  }
  ck_assert_uint_gt(members, 30);
}
END_TEST

static weir_status read_budget(wr_conditions *c, const char *text, size_t bytes)
{
  static char path[600];
  (void)snprintf(path, sizeof(path), "%s/b", synth_dir());
  FILE *f = fopen(path, "w");
  ck_assert_ptr_nonnull(f);
  ck_assert_uint_eq(fwrite(text, 1, bytes, f), bytes);
  ck_assert_int_eq(fclose(f), 0);
  return wr_conditions_of_file(c, path);
}

START_TEST(a_mistake_in_a_file_is_named_with_line_and_column)
{
  static const struct {
    const char *text, *mistake;
  } wrong[] = {
      {"peak <= 1 GiB\n\n  leaks == 0,\n", ":3:13: the end of the line belongs here, not ','"},
      {"peak <= +5%\n", ":1:9: a limit is absolute"},
      {"# all\npeak <= -1 B", ":2:9: a limit is absolute"},
      {"# nothing\n\n   \n", " has no limit"},
      {"peak <= 1 GiB\r\nsite \"a\nb\": peak <= 0",
       ":2:6: the name that begins here has no second"},
  };
  wr_conditions c;
  for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
    ck_assert_int_eq(read_budget(&c, wrong[i].text, strlen(wrong[i].text)), WEIR_EINVAL);
    ck_assert_msg(strstr(weir_error_message(), wrong[i].mistake) != NULL, "%s",
                  weir_error_message());
  }
  ck_assert_int_eq(read_budget(&c, "peak <= 0\0", 10), WEIR_EINVAL);
  ck_assert_int_eq(read_budget(&c, "", 0), WEIR_EINVAL);
  ck_assert_int_eq(wr_conditions_of_file(&c, "/absent"), WEIR_ENOENT);
  ck_assert_int_eq(wr_conditions_of_file(&c, synth_dir()), WEIR_EINVAL);
  ck_assert_int_eq(wr_conditions_of_file(&c, "/dev/zero"), WEIR_EINVAL);
}
END_TEST

/* In the trace: f0 leaks 1000 B on device 0 in range lib/step, f1 3 MiB in range load. */
static const char *known_trace(const char *name)
{
  begin_trace(&home);
  range_event(100, WEIR_RANGE_PUSH, 2);
  one_alloc(110, 1000, 1);
  range_event(200, WEIR_RANGE_POP, 0);
  range_event(300, WEIR_RANGE_PUSH, 3);
  one_alloc(310, 3 << 20, 2);
  range_event(400, WEIR_RANGE_POP, 0);
  return import_as(name);
}

static wr_verdict judged(const char *condition, const wr_figures *f, const wr_figures *other)
{
  wr_conditions c;
  wr_verdicts v;
  ck_assert_msg(!wr_conditions_of_list(&c, "here", condition), "%s", weir_error_message());
  ck_assert_uint_eq(c.count, 1);
  ck_assert_int_eq(wr_judge(&v, &c, f, other), WEIR_OK);
  wr_verdict one = v.verdict[0];
  one.note = one.note ? strdup(one.note) : NULL; /* the suite's processes end with each test */
  wr_verdicts_free(&v);
  wr_conditions_free(&c);
  return one;
}

START_TEST(conditions_are_judged_to_the_last_byte)
{
  static const struct {
    const char *text;
    bool met;
  } cases[] = {{"peak == 3146728 B", true},
               {"peak != 3146728 B", false},
               {"peak > 3146728B", false},
               {"peak >= 3146728B", true},
               {"peak < 3146729 B", true},
               {"peak <= 3146727 B", false},
               {"peak > 3 MiB", true},
               {"peak <= 3.0009536743164063 MiB", true},
               {"leaks > 0", true},
               {"leaks.bytes == 3146728 B", true},
               {"leaks.count == 2", true},
               {"allocations == 3146728 B", true},
               {"device 0: peak >= 3 MiB", true},
               {"site \"f0\": leaks == 1000 B", true},
               {"site \"f1\": leaks == 3 MiB", true},
               {"site \"a.py\": leaks == 3146728 B", true},
               {"site \"/home/a.py\": leaks.count == 2", true},
               {"site \"home/a.py\": leaks.count == 2", true},
               {"site \"me/a.py\": leaks.count == 0", true},
               {"site \"f\": leaks.count == 0", true},
               {"range \"load\": allocations == 3 MiB", true},
               {"range \"step\": allocations.bytes == 1000 B", true},
               {"range \"lib/step\": peak == 1000 B", true},
               {"peak > +0", false},
               {"peak >= +0%", true},
               {"peak > -1 B", true},
               {"peak > -0.0001%", true},
               {"peak < +0.5 B", true},
               {"leaks.count > +0", false},
               {"finding certain > +0", false}};
  const char *t = known_trace("t.db");
  wr_figures f = figures_of(t);
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    wr_verdict v = judged(cases[i].text, &f, &f);
    ck_assert_msg(v.known && v.met == cases[i].met, "%s", cases[i].text);
    free(v.note);
  }
  wr_figures_free(&f);
}
END_TEST

START_TEST(what_is_not_known_is_neither_met_nor_kept)
{
  static const struct {
    const char *text, *why;
  } cases[] = {{"range \"absent\": waits == 0", "has no such range"},
               {"cache.hits == 0", "the run had no caches"},
               {"cache.held <= 1 GiB", "mode observe"}};
  const char *t = known_trace("t.db");
  wr_figures f = figures_of(t);
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    wr_verdict v = judged(cases[i].text, &f, NULL);
    ck_assert_msg(!v.known && !v.met && strstr(v.note, cases[i].why), "%s: %s", cases[i].text,
                  v.note);
    free(v.note);
  }
  wr_verdict v = judged("site \"absent\": waits == 0", &f, NULL);
  ck_assert(v.known && v.met);
  ck_assert_str_eq(v.note, "the trace has no such site");
  free(v.note);
  wr_figures_free(&f);
}
END_TEST

START_TEST(a_range_that_two_domains_have_must_be_named_with_one)
{
  const char *t = random_trace("t.db", &home);
  wr_figures f = figures_of(t);
  wr_verdict v = judged("range \"step\": waits >= 0", &f, NULL);
  ck_assert(!v.known);
  ck_assert_ptr_nonnull(strstr(v.note, "\"DOMAIN/step\" names one"));
  free(v.note);
  v = judged("range \"lib/step\": waits >= 0", &f, NULL);
  ck_assert(v.known && v.met);
  wr_figures_free(&f);
}
END_TEST

/* ---- print ----------------------------------------------------------------------------------- */

/* No line is longer than the page, but for what is never cut: files, and names of metrics. */
START_TEST(text_keeps_to_its_width)
{
  const char *a = random_trace("a.db", &home);
  wr_diff d = diff_of(a, random_trace("b.db", &(source){"/home/a.py", "/home/b.py", 20, 3}));
  for (int width = 80; width <= 120; width += 40) {
    char *text = text_of(&d, WR_DIFF_TEXT, width);
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
      ck_assert_msg(wr_text_width(line) <= (size_t)width, "%s", line);
    free(text);
  }
  wr_diff_free(&d);
}
END_TEST

START_TEST(names_do_nothing_in_markdown)
{
  synth_open(synth_dir());
  name_function(1, "<img src=x>|`a`@all\x1b[2J*b*_c_[d](http://e)www.f_g__h\\", "/h/<b>.py", 5);
  one_alloc(100, 1000, 1);
  const char *t = import_as("a.db");
  synth_open(synth_dir());
  one_alloc(100, 1000, 0);
  wr_diff d = diff_of(t, import_as("b.db"));
  char *text = text_of(&d, WR_DIFF_MARKDOWN, 0);
  const char *row = strstr(text, "img src");
  ck_assert_ptr_nonnull(row);
  ck_assert_ptr_nonnull(strstr(
      text, "&#60;img src=x&#62;&#124;&#96;a&#96;&#64;all?&#91;2J&#42;b&#42;&#95;c&#95;"
            "&#91;d&#93;(http&#58;//e)www&#46;f_g&#95;&#95;h&#92;  /h/&#60;b&#62;.py:5 |\n"));
  ck_assert_ptr_null(strpbrk(text, "<\x1b`@"));
  free(text);
  wr_diff_free(&d);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("reports/diff");
  TCase *t = tcase_create("diff");
  tcase_set_timeout(t, 60);
  tcase_add_checked_fixture(t, NULL, synth_clean);
  tcase_add_loop_test(t, every_value_is_the_reports, 0, 4);
  tcase_add_test(t, a_trace_is_like_itself);
  tcase_add_test(t, a_site_that_moved_by_ten_lines_is_the_same);
  tcase_add_test(t, a_site_in_another_checkout_is_the_same);
  tcase_add_test(t, sites_are_not_paired_by_a_name_that_several_files_have);
  tcase_add_test(t, calls_on_several_lines_of_a_function_are_at_one_site);
  tcase_add_test(t, a_mistake_in_a_list_is_named_with_its_column);
  tcase_add_test(t, a_metric_is_also_called_what_json_calls_it);
  tcase_add_test(t, a_mistake_in_a_file_is_named_with_line_and_column);
  tcase_add_test(t, conditions_are_judged_to_the_last_byte);
  tcase_add_test(t, what_is_not_known_is_neither_met_nor_kept);
  tcase_add_test(t, a_range_that_two_domains_have_must_be_named_with_one);
  tcase_add_test(t, text_keeps_to_its_width);
  tcase_add_test(t, names_do_nothing_in_markdown);
  suite_add_tcase(s, t);
  SRunner *r = srunner_create(s);
  srunner_run_all(r, CK_ENV);
  int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed != 0;
}
