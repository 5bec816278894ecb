/* stats.c: see stats.h.
 *
 * A sum goes through its rows twice: once by name, which gives all but the medians, and once by
 * measure, each in its order, which SQLite sorts in a file where there are many: then a name's
 * median is where half of its rows have gone by. */
#include "reports/stats/stats.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "reports/base/demangle.h"
#include "reports/base/util.h"
#include "reports/export/input.h"
#include "reports/model/device_times.h"

enum { MOST_LABELS = 5, MOST_MEASURES = 4, RANGE_MARK = '\x1f' /* after a range's text */ };

typedef struct measure {
  int64_t count, total, least, most;
  double mean, squares; /* sum of squared differences from the mean */
  int64_t gone;         /* rows that have gone by, in order */
  int64_t middle[2];    /* of them */
} measure;

typedef struct group {
  char *label[MOST_LABELS]; /* owned; NULL: none */
  bool whole[MOST_LABELS];  /* it is a number */
  measure m[MOST_MEASURES];
} group;

/* Where a value of a sum comes from. */
typedef enum source { LABEL, SHARE, TOTAL, COUNT, MEAN, MEDIAN, LEAST, MOST, DEVIATION } source;

typedef struct column {
  char *heading; /* owned */
  source from;
  int of;       /* which label, which measure */
  int decimals; /* 0: a whole number */
  double unit;  /* what it is shown in; of a list 1: the SQL has done it */
  bool time;    /* in ns, unless another unit is asked for */
  bool kernel;  /* names of kernels */
} column;

typedef struct stats {
  export_input input;
  const stats_report *report;
  wr_rows rows;
  column column[WR_ROWS_COLUMNS];
  hash_map index; /* hash of labels -> place in group */
  group *groups;  /* owned */
  size_t count, capacity;
  int which;   /* measure that is gone through in order */
  int64_t all; /* of the first measure's totals */
  int64_t most;
  stats_names names;
  stats_unit unit;
  bool ranges;  /* kernels' names begin with the range of their call */
  int measures; /* of a sum */
  wr_demangler cxx;
} stats;

static int64_t saturated_sum(int64_t a, int64_t b)
{
  int64_t sum;
  return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

/* ---- what a cell has ------------------------------------------------------------------------- */

static wr_field whole_cell(int64_t value)
{
  return (wr_field){.type = WR_FIELD_WHOLE, .whole = value};
}

static wr_field real_cell(double value, int decimals)
{
  return (wr_field){.type = WR_FIELD_REAL, .real = value, .decimals = decimals};
}

/* A number of ns in the unit that is asked for, with all its digits. */
static void convert_time(const stats *x, const column *c, wr_field *cell)
{
  static const double ns[] = {1, 1e3, 1e6, 1e9};
  bool whole = cell->type == WR_FIELD_WHOLE;
  if (!c->time || !x->unit || (!whole && cell->type != WR_FIELD_REAL)) return;
  *cell = real_cell((whole ? (double)cell->whole : cell->real) / ns[x->unit], 3 * (int)x->unit);
}

static char *function_shown(stats *x, const char *name)
{
  char *whole = x->names == STATS_MANGLED ? NULL : wr_demangle(&x->cxx, name);
  if (!whole || x->names != STATS_BASE) return whole;
  size_t length;
  const char *base = wr_function_name(whole, &length);
  char *copy = strndup(base, length);
  free(whole);
  return copy;
}

/* As the report shows it: new; NULL: as it is, or out of memory. `between`: after a range's
 * text. */
static char *kernel_name(stats *x, const char *name, char between)
{
  const char *mark = x->ranges ? strrchr(name, RANGE_MARK) : NULL;
  if (!mark) return function_shown(x, name);
  char *shown = function_shown(x, mark + 1);
  char *whole = wr_format("%.*s%c%s", (int)(mark - name), name, between, shown ? shown : mark + 1);
  free(shown);
  return whole;
}

/* *plain: new, to be freed, or NULL */
static wr_field text_cell(stats *x, const column *c, const char *text, char **plain)
{
  *plain = c->kernel ? kernel_name(x, text, '/') : NULL;
  return (wr_field){.type = WR_FIELD_TEXT, .text = *plain ? *plain : text};
}

static double deviation(const measure *m)
{
  return m->count < 2 ? 0 : sqrt(m->squares / (double)(m->count - 1));
}

static double real_of(const stats *x, const measure *m, source from)
{
  switch (from) {
  case SHARE:
    return x->all ? 100.0 * (double)m->total / (double)x->all : 0;
  case TOTAL:
    return (double)m->total;
  case MEAN:
    return (double)m->total / (double)m->count;
  case MEDIAN:
    return ((double)m->middle[0] + (double)m->middle[1]) / 2;
  case LEAST:
    return (double)m->least;
  case MOST:
    return (double)m->most;
  default:
    return deviation(m);
  }
}

static wr_field measure_cell(const stats *x, const measure *m, const column *c)
{
  if (c->from == COUNT) return whole_cell(m->count);
  if (!m->count) return (wr_field){0};
  if (c->decimals) return real_cell(real_of(x, m, c->from) / c->unit, c->decimals);
  return whole_cell(c->from == TOTAL ? m->total : c->from == LEAST ? m->least : m->most);
}

static wr_field label_cell(stats *x, const group *g, const column *c, char **plain)
{
  const char *label = g->label[c->of];
  if (!label) return (wr_field){0};
  return g->whole[c->of] ? whole_cell(atoll(label)) : text_cell(x, c, label, plain);
}

/* ---- sums ------------------------------------------------------------------------------------ */

static bool copy_labels(group *g, const char *const *labels, int count)
{
  for (int i = 0; i < count; i++)
    if (labels[i] && !(g->label[i] = strdup(labels[i]))) return false;
  return true;
}

static weir_status group_of(stats *x, const char *const *labels, sqlite3_stmt *q, group **out)
{
  bool added;
  uint64_t key = 11;
  for (int i = 0; i < x->report->labels; i++) {
    key = export_text_key(key, labels[i]);
    key = hash_mix(key, !labels[i]);
  }
  uint64_t *at = hash_map_place(&x->index, key, &added);
  if (!at) return export_out_of_memory();
  if (added) {
    if (!wr_grow(&x->groups, &x->capacity, x->count + 1, sizeof *x->groups))
      return export_out_of_memory();
    *at = x->count++;
    x->groups[*at] = (group){0};
    if (!copy_labels(&x->groups[*at], labels, x->report->labels)) return export_out_of_memory();
    for (int i = 0; i < x->report->labels; i++)
      x->groups[*at].whole[i] = sqlite3_column_type(q, i) == SQLITE_INTEGER;
  }
  *out = &x->groups[*at];
  return WEIR_OK;
}

/* Kernels of one base name are one. */
static weir_status group_at(stats *x, sqlite3_stmt *q, group **out)
{
  const char *labels[MOST_LABELS];
  char *base[MOST_LABELS] = {0};
  for (int i = 0; i < x->report->labels; i++) {
    labels[i] = (const char *)sqlite3_column_text(q, i);
    if (x->names == STATS_BASE && x->report->kernel == i + 1)
      base[i] = kernel_name(x, labels[i], RANGE_MARK);
    if (base[i]) labels[i] = base[i];
  }
  weir_status s = group_of(x, labels, q, out);
  for (int i = 0; i < x->report->labels; i++)
    free(base[i]);
  return s;
}

/* `total` of `n` alike. */
static void add_measure(measure *m, int64_t total, int64_t n)
{
  int64_t each = total / n;
  double value = (double)total / (double)n, from_mean = value - m->mean;
  if (!m->count || each < m->least) m->least = each;
  if (!m->count || each > m->most) m->most = each;
  m->count = saturated_sum(m->count, n);
  m->total = saturated_sum(m->total, total);
  m->mean += from_mean * (double)n / (double)m->count;
  m->squares += (double)n * from_mean * (value - m->mean);
}

static weir_status take_report_sum(void *context, sqlite3_stmt *q)
{
  stats *x = context;
  group *g;
  const stats_report *r = x->report;
  int64_t n = sqlite3_column_int64(q, r->labels + x->measures);
  if (n < 1) return WEIR_OK;
  weir_status s = group_at(x, q, &g);
  for (int i = 0; i < x->measures && !s; i++) {
    int64_t total = sqlite3_column_int64(q, r->labels + i);
    if (sqlite3_column_type(q, r->labels + i) == SQLITE_NULL || total < 0) continue;
    add_measure(&g->m[i], total, n);
    if (!i) x->all = saturated_sum(x->all, total);
  }
  return s;
}

static weir_status take_in_order(void *context, sqlite3_stmt *q)
{
  stats *x = context;
  group *g;
  const stats_report *r = x->report;
  int64_t n = sqlite3_column_int64(q, r->labels + x->measures);
  int64_t total = sqlite3_column_int64(q, r->labels + x->which);
  if (n < 1 || total < 0 || sqlite3_column_type(q, r->labels + x->which) == SQLITE_NULL)
    return WEIR_OK;
  weir_status s = group_at(x, q, &g);
  if (s) return s;
  measure *m = &g->m[x->which];
  int64_t next = saturated_sum(m->gone, n);
  for (int i = 0; i < 2; i++) {
    int64_t place = (m->count - !i) / 2;
    if (m->gone <= place && place < next) m->middle[i] = total / n;
  }
  m->gone = next;
  return WEIR_OK;
}

static int compare_text(const char *a, const char *b)
{
  return strcmp(a ? a : "", b ? b : "");
}

static int by_total(const void *one, const void *other)
{
  const group *a = one, *b = other;
  int order = (a->m[0].total < b->m[0].total) - (a->m[0].total > b->m[0].total);
  for (int i = 0; i < MOST_LABELS && !order; i++)
    order = compare_text(a->label[i], b->label[i]);
  return order;
}

static weir_status put_group(stats *x, const group *g)
{
  wr_field cells[WR_ROWS_COLUMNS];
  char *plain[WR_ROWS_COLUMNS] = {0};
  for (int i = 0; i < x->rows.columns; i++) {
    const column *c = &x->column[i];
    cells[i] = c->from == LABEL ? label_cell(x, g, c, &plain[i]) : measure_cell(x, &g->m[c->of], c);
    convert_time(x, c, &cells[i]);
  }
  weir_status s = wr_rows_put(&x->rows, cells);
  for (int i = 0; i < x->rows.columns; i++)
    free(plain[i]);
  return s;
}

static weir_status write_sum(stats *x)
{
  char *all = wr_format("SELECT * FROM temp.%s", x->report->name);
  weir_status s =
      all ? wr_db_each(&x->input.in.db, all, take_report_sum, x) : export_out_of_memory();
  free(all);
  for (x->which = 0; x->which < x->measures && !s; x->which++) {
    char *sql = wr_format("SELECT * FROM temp.%s ORDER BY v%d / w", x->report->name, x->which);
    s = sql ? wr_db_each(&x->input.in.db, sql, take_in_order, x) : export_out_of_memory();
    free(sql);
  }
  if (x->count) qsort(x->groups, x->count, sizeof *x->groups, by_total);
  size_t most = x->most && (uint64_t)x->most < x->count ? (size_t)x->most : x->count;
  for (size_t i = 0; i < most && !s; i++)
    s = put_group(x, &x->groups[i]);
  return s;
}

/* ---- lists ----------------------------------------------------------------------------------- */

static wr_field list_cell(stats *x, sqlite3_stmt *q, int i, char **plain)
{
  const column *c = &x->column[i];
  const char *text;
  switch (sqlite3_column_type(q, i)) {
  case SQLITE_INTEGER:
    return whole_cell(sqlite3_column_int64(q, i));
  case SQLITE_FLOAT:
    return real_cell(sqlite3_column_double(q, i), c->decimals);
  default:
    text = (const char *)sqlite3_column_text(q, i);
    return text ? text_cell(x, c, text, plain) : (wr_field){0};
  }
}

static weir_status take_list(void *context, sqlite3_stmt *q)
{
  stats *x = context;
  wr_field cells[WR_ROWS_COLUMNS];
  char *plain[WR_ROWS_COLUMNS] = {0};
  for (int i = 0; i < x->rows.columns; i++) {
    cells[i] = list_cell(x, q, i, &plain[i]);
    convert_time(x, &x->column[i], &cells[i]);
  }
  weir_status s = wr_rows_put(&x->rows, cells);
  for (int i = 0; i < x->rows.columns; i++)
    free(plain[i]);
  return s;
}

static weir_status write_list(stats *x)
{
  char *sql = wr_format("SELECT * FROM temp.%s LIMIT %lld", x->report->name,
                        (long long)(x->most ? x->most : -1));
  weir_status s = sql ? wr_db_each(&x->input.in.db, sql, take_list, x) : export_out_of_memory();
  free(sql);
  return s;
}

/* ---- columns --------------------------------------------------------------------------------- */

#define MB 1e6

/* What is shown of a measure. NULL: how many there are, by the report's own word. */
static const column times[] = {
    {"Time (%)", SHARE, 0, 1, 1, 0, 0},  {"Total Time (ns)", TOTAL, 0, 0, 1, 0, 0},
    {NULL, COUNT, 0, 0, 1, 0, 0},        {"Avg (ns)", MEAN, 0, 1, 1, 0, 0},
    {"Med (ns)", MEDIAN, 0, 1, 1, 0, 0}, {"Min (ns)", LEAST, 0, 0, 1, 0, 0},
    {"Max (ns)", MOST, 0, 0, 1, 0, 0},   {"StdDev (ns)", DEVIATION, 0, 1, 1, 0, 0}};
static const column sizes[] = {
    {"Total (MB)", TOTAL, 0, 3, MB, 0, 0},     {"Count", COUNT, 0, 0, 1, 0, 0},
    {"Avg (MB)", MEAN, 0, 3, MB, 0, 0},        {"Med (MB)", MEDIAN, 0, 3, MB, 0, 0},
    {"Min (MB)", LEAST, 0, 3, MB, 0, 0},       {"Max (MB)", MOST, 0, 3, MB, 0, 0},
    {"StdDev (MB)", DEVIATION, 0, 3, MB, 0, 0}};
static const column phase_counts[] = {{"Count", COUNT, 0, 0, 1, 0, 0},
                                      {"QCount", COUNT, 2, 0, 1, 0, 0}};
/* Of all a launch took, its call, the wait in the queue, the kernel. */
static const char *const phase_letters[MOST_MEASURES] = {"T", "A", "Q", "K"};

/* "Avg (ns)" becomes "Avg (us)". */
static bool put_unit(const stats *x, char *heading)
{
  static const char *const units[] = {"(ns)", "(us)", "(ms)", "(s)"};
  size_t length = strlen(heading);
  if (length < 4 || strcmp(heading + length - 4, units[0]) != 0) return false;
  memcpy(heading + length - 4, units[x->unit], strlen(units[x->unit]) + 1);
  return true;
}

static void add_column(stats *x, const column *like, const char *letter, const char *heading)
{
  column *c = &x->column[x->rows.columns];
  *c = *like;
  c->heading = wr_format("%s%s", letter, heading);
  c->time = c->heading && put_unit(x, c->heading);
  x->rows.heading[x->rows.columns++] = c->heading;
}

static void add_measure_columns(stats *x, const column *list, size_t count)
{
  for (size_t i = 0; i < count; i++)
    add_column(x, &list[i], "", list[i].heading ? list[i].heading : x->report->count);
}

static void add_phases(stats *x)
{
  add_measure_columns(x, phase_counts, 2);
  for (x->measures = 0; x->measures < MOST_MEASURES; x->measures++)
    for (size_t i = 3; i < sizeof times / sizeof *times; i++) {
      column of = times[i];
      of.of = x->measures;
      add_column(x, &of, phase_letters[x->measures], of.heading);
    }
}

/* Columns of the view from `first` on, before `end`, that are a list's, or a sum's labels. */
static void add_view_columns(stats *x, sqlite3_stmt *q, int first, int end)
{
  for (int i = first; i < end; i++) {
    const char *name = sqlite3_column_name(q, i);
    if (!name || !strcmp(name, "rule")) return; /* it is for the view's own use */
    bool percent = strstr(name, "(%)") != NULL;
    column c = {NULL, LABEL, i, percent ? 1 : 3, 1, false, x->report->kernel == i + 1};
    add_column(x, &c, "", name);
  }
}

static weir_status make_columns(stats *x)
{
  sqlite3_stmt *q = NULL;
  const stats_report *r = x->report;
  char *sql = wr_format("SELECT * FROM temp.%s", r->name);
  weir_status s = sql ? wr_db_prepare(&x->input.in.db, sql, &q) : export_out_of_memory();
  free(sql);
  if (s) return s;
  int first = r->shape == STATS_LIST ? sqlite3_column_count(q) : r->shape == STATS_PHASES ? 3 : 0;
  x->measures = r->shape != STATS_LIST;
  add_view_columns(x, q, 0, first);
  if (r->shape == STATS_TIMES) add_measure_columns(x, times, sizeof times / sizeof *times);
  if (r->shape == STATS_SIZES) add_measure_columns(x, sizes, sizeof sizes / sizeof *sizes);
  if (r->shape == STATS_PHASES) add_phases(x);
  add_view_columns(x, q, first, r->labels);
  sqlite3_finalize(q);
  for (int i = 0; i < x->rows.columns; i++)
    if (!x->column[i].heading) return export_out_of_memory();
  return WEIR_OK;
}

/* ---- a report -------------------------------------------------------------------------------- */

static weir_status check_device_times(const stats *x)
{
  int64_t there = 0;
  const wr_db *db = &x->input.in.db;
  weir_status s = WEIR_OK;
  if (wr_db_has_table(db, "device_work") && wr_db_has_column(db, "device_work", "graph_node"))
    s = wr_db_number(db,
                     "SELECT EXISTS(SELECT 1 FROM main.device_work WHERE kind BETWEEN 1 AND 4"
                     " AND " WR_DEVICE_TIME ")",
                     &there);
  char *none = NULL;
  if (!s && !there) s = wr_device_times_find_none(&none, db);
  if (s || there) return s;
  bool asked = none && !strstr(none, "--device-times");
  s = weir_fail(WEIR_ENOTSUP, "%s has no times of devices, which %s is of: %s", db->path,
                x->report->name, asked ? none : "run the program with weir run --device-times=all");
  free(none);
  return s;
}

static weir_status check_needs(const stats *x)
{
  const wr_db *db = &x->input.in.db;
  const stats_report *r = x->report;
  bool ranges = wr_db_has_table(db, "range_row") && wr_db_has_table(db, "range_name");
  if (x->ranges && !(ranges && wr_db_has_table(db, "event_range"))) ranges = false;
  if ((r->needs == STATS_RANGES || x->ranges) && !ranges)
    return weir_fail(WEIR_ENOTSUP,
                     "%s is of a Weir that did not record NVTX ranges, which %s is of", db->path,
                     r->name);
  weir_status s = r->needs == STATS_DEVICE ? check_device_times(x) : WEIR_OK;
  if (!s && !wr_schema_graph_memory(db)) s = wr_schema_graph_launches(db);
  return s;
}

/* The views of all reports: what one lacks fails where it is read. */
static weir_status make_views(const stats *x)
{
  static const char timed[] =
      "CREATE TEMP VIEW timed_work AS SELECT * FROM main.device_work WHERE " WR_DEVICE_TIME;
  const wr_db *db = &x->input.in.db;
  weir_status s = wr_db_exec(db, timed);
  if (!s)
    s = wr_db_exec(
        db, x->ranges ? "CREATE TEMP VIEW call_range AS SELECT r.event, n.text"
                        " FROM main.event_range r CROSS JOIN main.range_row x ON x.id = r.range"
                        " CROSS JOIN main.range_name n ON n.id = x.name"
                      : "CREATE TEMP TABLE call_range(event INTEGER PRIMARY KEY, text TEXT)");
  return s ? s : wr_db_exec(db, stats_sql);
}

static weir_status write_report(stats *x)
{
  weir_status s = check_needs(x);
  if (!s) s = make_views(x);
  if (!s) s = make_columns(x);
  if (s) return s;
  wr_rows_begin(&x->rows, x->report->title, x->report->name);
  s = x->measures ? write_sum(x) : write_list(x);
  return s ? s : wr_rows_end(&x->rows);
}

weir_status stats_write(FILE *out, const char *trace, const stats_report *report,
                        const stats_settings *settings)
{
  if (report->needs == STATS_NEVER)
    return weir_fail(WEIR_ENOTSUP, "there is no %s: Weir does not record %s", report->name,
                     report->title);
  stats x = {.report = report,
             .rows = {.out = out, .what = "statistics", .format = settings->format}};
  x.names = settings->names;
  x.unit = settings->unit;
  x.ranges = settings->ranges;
  x.most = settings->rows < 0 ? report->rows : settings->rows;
  weir_status s = export_input_open(&x.input, trace);
  if (!s && report->needs == STATS_SKIPPED)
    s = weir_fail(WEIR_ENOTSUP, "SKIPPED: %s does not contain %s", trace, report->title);
  wr_demangler_open(&x.cxx);
  if (!s) s = write_report(&x);
  wr_demangler_close(&x.cxx);
  export_input_close(&x.input);
  wr_rows_clear(&x.rows);
  for (size_t i = 0; i < x.count; i++)
    for (int k = 0; k < MOST_LABELS; k++)
      free(x.groups[i].label[k]);
  free(x.groups);
  hash_map_free(&x.index);
  for (int i = 0; i < x.rows.columns; i++)
    free(x.column[i].heading);
  return s;
}
