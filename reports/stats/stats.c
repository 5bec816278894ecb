/* stats.c: see stats.h.
 *
 * A sum goes through its rows twice: once by name, which gives all but the medians, and once by
 * measure, each in its order, which SQLite sorts in a file where there are many: then a name's median is
 * where half of its rows have gone by. */
#include "reports/stats/stats.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "reports/base/demangle.h"
#include "reports/base/util.h"
#include "reports/export/input.h"
#include "reports/model/device_times.h"

enum { MOST_LABELS = 5, MOST_MEASURES = 4 };

typedef struct measure {
  int64_t count, total, least, most;
  double mean, squares; /* sum of squared differences from the mean */
  int64_t gone;         /* rows that have gone by, in order */
  int64_t middle[2];    /* of them */
} measure;

typedef struct group {
  char *label[MOST_LABELS]; /* owned; NULL: none */
  measure m[MOST_MEASURES];
} group;

typedef struct column {
  char shown, from;
  int of;
  bool time; /* in ns */
} column;

typedef struct stats {
  export_input input;
  const stats_report *report;
  sheet sheet;
  column column[SHEET_COLUMNS];
  char *headings; /* owned */
  hash_map index; /* hash of labels -> place in group */
  group *groups;  /* owned */
  size_t count, capacity;
  int which;   /* measure that is gone through in order */
  int64_t all; /* of the first measure's totals */
  int64_t rows;
  const char *sql; /* the report's, or by range */
  char *by_range;  /* owned */
  stats_names names;
  stats_unit unit;
  bool names_of[MOST_LABELS]; /* labels that are kernels' */
  wr_demangler cxx;
} stats;

static int64_t saturated_sum(int64_t a, int64_t b)
{
  int64_t sum;
  return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

/* ---- what a cell has ------------------------------------------------------------------------- */

static sheet_cell whole_cell(int64_t value)
{
  return (sheet_cell){.whole = value, .there = true};
}

static sheet_cell number_cell(double value, char shown)
{
  if (shown == '3') return (sheet_cell){.number = value / 1e6, .decimals = 3, .there = true};
  return (sheet_cell){.number = value, .decimals = shown == 'f' ? 3 : 1, .there = true};
}

/* A number of ns in the unit that is asked for, with all its digits. */
static void convert_time(const stats *x, const column *c, sheet_cell *cell)
{
  static const double ns[] = {1, 1e3, 1e6, 1e9};
  if (!c->time || !x->unit || cell->text || !cell->there) return;
  cell->number = (cell->decimals ? cell->number : (double)cell->whole) / ns[x->unit];
  cell->decimals = 3 * (int)x->unit;
}

static char *function_shown(const stats *x, const char *name)
{
  char *whole = x->names == STATS_MANGLED ? NULL : wr_demangle(&x->cxx, name);
  if (!whole || x->names != STATS_BASE) return whole;
  size_t length;
  const char *base = wr_function_name(whole, &length);
  char *copy = strndup(base, length);
  free(whole);
  return copy;
}

/* As the report shows it: new; NULL: as it is, or out of memory. `between`: behind a range's text. */
static char *kernel_name(const stats *x, const char *name, char between)
{
  const char *mark = x->by_range ? strrchr(name, STATS_RANGE_MARK) : NULL;
  if (!mark) return function_shown(x, name);
  char *shown = function_shown(x, mark + 1);
  char *whole = wr_format("%.*s%c%s", (int)(mark - name), name, between, shown ? shown : mark + 1);
  free(shown);
  return whole;
}

/* *plain: new, to be freed, or NULL */
static sheet_cell text_cell(const stats *x, const char *text, char shown, char **plain)
{
  *plain = shown == 'k' ? kernel_name(x, text, '/') : NULL;
  return (sheet_cell){.text = *plain ? *plain : text, .there = true};
}

static double deviation(const measure *m)
{
  return m->count < 2 ? 0 : sqrt(m->squares / (double)(m->count - 1));
}

static sheet_cell measure_cell(const stats *x, const measure *m, const column *c)
{
  bool whole = c->shown == 'i';
  if (c->from == 'n') return whole_cell(m->count);
  if (!m->count) return (sheet_cell){0};
  int64_t value = c->from == 't' ? m->total : c->from == 'l' ? m->least : m->most;
  switch (c->from) {
  case 'p':
    return number_cell(x->all ? 100.0 * (double)m->total / (double)x->all : 0, c->shown);
  case 'a':
    return number_cell((double)m->total / (double)m->count, c->shown);
  case 'm':
    return number_cell(((double)m->middle[0] + (double)m->middle[1]) / 2, c->shown);
  case 's':
    return number_cell(deviation(m), c->shown);
  default:
    return whole ? whole_cell(value) : number_cell((double)value, c->shown);
  }
}

static sheet_cell label_cell(const stats *x, const group *g, const column *c, char **plain)
{
  const char *label = g->label[c->of];
  if (!label) return (sheet_cell){0};
  return c->shown == 'i' ? whole_cell(atoll(label)) : text_cell(x, label, c->shown, plain);
}

/* ---- sums ------------------------------------------------------------------------------------ */

static bool copy_labels(group *g, const char *const *labels, int count)
{
  for (int i = 0; i < count; i++)
    if (labels[i] && !(g->label[i] = strdup(labels[i]))) return false;
  return true;
}

static weir_status group_of(stats *x, const char *const *labels, group **out)
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
    if (x->names == STATS_BASE && x->names_of[i])
      base[i] = kernel_name(x, labels[i], STATS_RANGE_MARK);
    if (base[i]) labels[i] = base[i];
  }
  weir_status s = group_of(x, labels, out);
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

static weir_status take_sum(void *context, sqlite3_stmt *q)
{
  stats *x = context;
  group *g;
  const stats_report *r = x->report;
  int64_t n = sqlite3_column_int64(q, r->labels + r->measures);
  if (n < 1) return WEIR_OK;
  weir_status s = group_at(x, q, &g);
  for (int i = 0; i < r->measures && !s; i++) {
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
  int64_t n = sqlite3_column_int64(q, r->labels + r->measures);
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
  sheet_cell cells[SHEET_COLUMNS];
  char *plain[SHEET_COLUMNS] = {0};
  for (int i = 0; i < x->sheet.columns; i++) {
    const column *c = &x->column[i];
    cells[i] = c->from == 'L' ? label_cell(x, g, c, &plain[i]) : measure_cell(x, &g->m[c->of], c);
    convert_time(x, c, &cells[i]);
  }
  weir_status s = sheet_row(&x->sheet, cells);
  for (int i = 0; i < x->sheet.columns; i++)
    free(plain[i]);
  return s;
}

static weir_status write_sum(stats *x)
{
  const stats_report *r = x->report;
  weir_status s = wr_db_each(&x->input.in.db, x->sql, take_sum, x);
  for (x->which = 0; x->which < r->measures && !s; x->which++) {
    char *sql = wr_format("SELECT * FROM (%s) ORDER BY v%d / w", x->sql, x->which);
    s = sql ? wr_db_each(&x->input.in.db, sql, take_in_order, x) : export_out_of_memory();
    free(sql);
  }
  if (x->count) qsort(x->groups, x->count, sizeof *x->groups, by_total);
  size_t most = x->rows && (uint64_t)x->rows < x->count ? (size_t)x->rows : x->count;
  for (size_t i = 0; i < most && !s; i++)
    s = put_group(x, &x->groups[i]);
  return s;
}

/* ---- lists ----------------------------------------------------------------------------------- */

static sheet_cell list_cell(const stats *x, sqlite3_stmt *q, int i, char **plain)
{
  const column *c = &x->column[i];
  if (c->from == '#') return whole_cell((int64_t)x->count);
  if (sqlite3_column_type(q, i) == SQLITE_NULL) return (sheet_cell){0};
  if (c->shown == 'i') return whole_cell(sqlite3_column_int64(q, i));
  if (c->shown == 't' || c->shown == 'k') {
    const char *text = (const char *)sqlite3_column_text(q, i);
    return text ? text_cell(x, text, c->shown, plain) : (sheet_cell){0};
  }
  return number_cell(sqlite3_column_double(q, i), c->shown);
}

static weir_status take_list(void *context, sqlite3_stmt *q)
{
  stats *x = context;
  sheet_cell cells[SHEET_COLUMNS];
  char *plain[SHEET_COLUMNS] = {0};
  x->count++;
  for (int i = 0; i < x->sheet.columns; i++) {
    cells[i] = list_cell(x, q, i, &plain[i]);
    convert_time(x, &x->column[i], &cells[i]);
  }
  weir_status s = sheet_row(&x->sheet, cells);
  for (int i = 0; i < x->sheet.columns; i++)
    free(plain[i]);
  return s;
}

static weir_status write_list(stats *x)
{
  char *sql = wr_format("%s LIMIT %lld", x->sql, (long long)(x->rows ? x->rows : -1));
  weir_status s = sql ? wr_db_each(&x->input.in.db, sql, take_list, x) : export_out_of_memory();
  x->count = 0;
  free(sql);
  return s;
}

/* ---- a report -------------------------------------------------------------------------------- */

/* "Avg (ns)" becomes "Avg (us)". */
static bool put_unit(const stats *x, char *heading)
{
  static const char *const units[] = {"(ns)", "(us)", "(ms)", "(s)"};
  size_t length = strlen(heading);
  if (length < 4 || strcmp(heading + length - 4, units[0]) != 0) return false;
  memcpy(heading + length - 4, units[x->unit], strlen(units[x->unit]) + 1);
  return true;
}

static weir_status read_columns(stats *x)
{
  x->headings = strdup(x->report->columns);
  if (!x->headings) return export_out_of_memory();
  for (char *at = x->headings, *next; at; at = next) {
    int i = x->sheet.columns++;
    next = strchr(at, '|');
    if (next) *next++ = '\0';
    x->column[i] = (column){at[0], at[1], at[2] - '0', put_unit(x, at + 4)};
    if (at[0] == 'k' && at[1] == 'L') x->names_of[at[2] - '0'] = true;
    x->sheet.heading[i] = at + 4;
  }
  return WEIR_OK;
}

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
  if (x->by_range && !(ranges && wr_db_has_table(db, "event_range"))) ranges = false;
  if ((r->needs == STATS_RANGES || x->by_range) && !ranges)
    return weir_fail(WEIR_ENOTSUP,
                     "%s is of a Weir that did not record NVTX ranges, which %s is of", db->path,
                     r->name);
  weir_status s = r->needs == STATS_DEVICE ? check_device_times(x) : WEIR_OK;
  if (!s && !wr_schema_graph_memory(db)) s = wr_schema_graph_launches(db);
  return s;
}

static weir_status write_report(stats *x)
{
  weir_status s = check_needs(x);
  if (!s) s = read_columns(x);
  if (s) return s;
  sheet_begin(&x->sheet, x->report->title, x->report->name);
  s = x->report->measures ? write_sum(x) : write_list(x);
  return s ? s : sheet_end(&x->sheet);
}

bool stats_has_kernels(const stats_report *report)
{
  const char *c = report->columns;
  return c && (*c == 'k' || strstr(c, "|k"));
}

weir_status stats_write(FILE *out, const char *trace, const stats_report *report,
                        const stats_settings *settings)
{
  if (report->needs == STATS_NEVER)
    return weir_fail(WEIR_ENOTSUP, "there is no %s: Weir does not record %s", report->name,
                     report->sql);
  stats x = {.report = report, .sheet = {.out = out, .format = settings->format}};
  x.names = settings->names;
  x.unit = settings->unit;
  x.rows = settings->rows < 0 ? report->rows : settings->rows;
  weir_status s = export_input_open(&x.input, trace);
  if (!s && report->needs == STATS_SKIPPED)
    s = weir_fail(WEIR_ENOTSUP, "SKIPPED: %s does not contain %s", trace, report->sql);
  if (!s && settings->ranges && !(x.by_range = stats_sql_by_range(report->sql)))
    s = export_out_of_memory();
  x.sql = x.by_range ? x.by_range : report->sql;
  wr_demangler_open(&x.cxx);
  if (!s) s = write_report(&x);
  wr_demangler_close(&x.cxx);
  export_input_close(&x.input);
  sheet_clear(&x.sheet);
  for (size_t i = 0; i < x.count; i++)
    for (int k = 0; k < MOST_LABELS; k++)
      free(x.groups[i].label[k]);
  free(x.groups);
  hash_map_free(&x.index);
  free(x.headings);
  free(x.by_range);
  return s;
}
