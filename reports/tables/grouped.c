/* grouped.c: see grouped.h. */
#include "reports/tables/grouped.h"
#include <stdlib.h>
#include <string.h>
#include "reports/base/util.h"

typedef struct measured { /* a measure of a group */
  uint64_t a, b;
  double best;
} measured;

typedef struct group_row {
  size_t group;
  bool any;
  measured value[WR_MEASURES];
} group_row;

static uint64_t field_of(const wr_activity_sums *s, size_t offset)
{
  uint64_t n;
  memcpy(&n, (const char *)s + offset, sizeof(n));
  return n;
}

static void add_measured(measured *to, const measured *from, wr_measure_kind kind)
{
  if (kind != WR_MEASURE_LONGEST)
    to->a += from->a, to->b += from->b;
  else if (from->a > to->a)
    to->a = from->a;
  if (from->best > to->best) to->best = from->best;
}

static measured measure_cell(const wr_measure *m, const wr_activity_sums *s)
{
  switch (m->kind) {
  case WR_MEASURE_LONGEST:
    return (measured){.a = s->longest_ns};
  case WR_MEASURE_BEST_HOST:
    return (measured){.best = s->best_host};
  case WR_MEASURE_BEST_DEVICE:
    return (measured){.best = s->best_device};
  default:
    return (measured){.a = field_of(s, m->a),
                      .b = m->kind == WR_MEASURE_SPEED ? field_of(s, m->b) : 0};
  }
}

static bool measured_any(const measured *x)
{
  return x->a || x->b || x->best > 0;
}

static int by_first(const void *left, const void *right)
{
  const group_row *a = left, *b = right;
  for (int i = 0; i < 2; i++)
    if (a->value[i].a != b->value[i].a) return a->value[i].a < b->value[i].a ? 1 : -1;
  return a->group < b->group ? -1 : a->group > b->group;
}

static void put_measured(wr_named_table *t, const wr_measure *m, const measured *x,
                         const measured *all)
{
  if (m->unknown) {
    wr_table_put_none(t);
    return;
  }
  switch (m->kind) {
  case WR_MEASURE_SHARE:
    wr_table_put_share(t, x->a, all->a);
    break;
  case WR_MEASURE_SPEED:
    wr_table_put_speed(t, x->a, x->b);
    break;
  case WR_MEASURE_BEST_HOST:
  case WR_MEASURE_BEST_DEVICE:
    if (x->best > 0)
      wr_table_put_real(t, x->best * 1e9);
    else
      wr_table_put_none(t);
    break;
  default:
    wr_table_put(t, x->a);
  }
}

static void put_group_row(wr_named_table *t, const wr_groups *g, const wr_group *group,
                          const group_row *row, const wr_measure *measures, size_t count,
                          const group_row *all)
{
  wr_table_row(t);
  for (size_t i = 0; i < count; i++)
    put_measured(t, &measures[i], &row->value[i], &all->value[i]);
  wr_group_put(g, t, group);
}

static void put_rows(wr_named_table *t, const wr_groups *g, const wr_measure *measures,
                     size_t count, group_row *rows, size_t row_count, int top)
{
  group_row all = {0}, rest = {0};
  size_t shown = 0, left = 0;
  for (size_t r = 0; r < row_count; r++)
    for (size_t i = 0; i < count; i++)
      add_measured(&all.value[i], &rows[r].value[i], measures[i].kind);
  for (size_t r = 0; r < row_count; r++) {
    if (!rows[r].any) continue;
    if (top && shown == (size_t)top) {
      left++;
      for (size_t i = 0; i < count; i++)
        add_measured(&rest.value[i], &rows[r].value[i], measures[i].kind);
      continue;
    }
    shown++;
    put_group_row(t, g, &g->group[rows[r].group], &rows[r], measures, count, &all);
  }
  if (!left) return;
  put_group_row(t, g, NULL, &rest, measures, count, &all);
  wr_table_aside(t, "the first %zu of %zu", shown, shown + left);
}

static weir_status sum_groups(wr_groups *g, const wr_activity *a, const wr_measure *measures,
                              size_t count, group_row **rows, size_t *row_count)
{
  size_t capacity = 0;
  weir_status s = WEIR_OK;
  for (size_t i = 0; !s && i < a->count; i++) {
    const wr_activity_cell *cell = &a->cell[i];
    size_t at = SIZE_MAX;
    for (size_t m = 0; !s && m < count; m++) {
      measured x =
          measures[m].takes(cell) ? measure_cell(&measures[m], &cell->sums) : (measured){0};
      if (!measured_any(&x)) continue;
      if (at == SIZE_MAX) s = wr_group_of(g, &cell->common, cell->range, &at);
      if (!s && at >= *row_count) {
        size_t had = *row_count;
        if (!wr_grow(rows, &capacity, at + 1, sizeof(**rows))) return wr_db_out_of_memory(g->db);
        memset(*rows + had, 0, (at + 1 - had) * sizeof(**rows));
        *row_count = at + 1;
      }
      if (s) return s;
      group_row *row = &(*rows)[at];
      row->group = at, row->any = true;
      add_measured(&row->value[m], &x, measures[m].kind);
    }
  }
  return s;
}

weir_status wr_grouped_table(wr_tables *t, const char *name, const char *title, wr_groups *g,
                             const wr_activity *a, const wr_measure *measures, size_t count,
                             int top)
{
  wr_column columns[WR_MEASURES + 2];
  group_row *rows = NULL;
  size_t row_count = 0;
  if (count > WR_MEASURES) count = WR_MEASURES;
  for (size_t i = 0; i < count; i++)
    columns[i] = measures[i].column;
  size_t all = count + wr_group_columns(g, columns + count);
  weir_status s = sum_groups(g, a, measures, count, &rows, &row_count);
  wr_named_table *x = s ? NULL : wr_tables_add(t, name, title, columns, all);
  if (row_count) qsort(rows, row_count, sizeof(*rows), by_first);
  if (x) put_rows(x, g, measures, count, rows, row_count, top);
  free(rows);
  return s;
}
