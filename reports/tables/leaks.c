/* leaks.c: weir report leaks: memory that was never freed, by where it was allocated, with the
 * callers that lead there. With --to: what was live then. */
#include <stdlib.h>
#include "reports/base/util.h"
#include "reports/model/sites.h"
#include "reports/tables/build.h"
#include "reports/tables/memory_sweep.h"

typedef struct leak_row {
  const wr_group *group;
  const wr_held *held;
} leak_row;

static int by_left(const void *left, const void *right)
{
  const wr_held *a = ((const leak_row *)left)->held, *b = ((const leak_row *)right)->held;
  if (a->end_bytes != b->end_bytes) return a->end_bytes < b->end_bytes ? 1 : -1;
  if (a->end_blocks != b->end_blocks) return a->end_blocks < b->end_blocks ? 1 : -1;
  return a < b ? -1 : a > b;
}

static void put_leak(wr_named_table *t, const wr_groups *g, const wr_group *group, const wr_held *h,
                     uint64_t whole)
{
  wr_table_row(t);
  wr_table_put(t, h->end_bytes);
  wr_table_put(t, h->end_blocks);
  wr_table_put_share(t, h->end_bytes, whole);
  wr_table_put(t, h->blocks);
  if (group)
    wr_table_put(t, h->grew);
  else
    wr_table_put_none(t);
  wr_group_put(g, t, group);
}

static weir_status put_leaks(const wr_build *b, wr_named_table *t, const wr_memory_sweep *s,
                             const wr_held *held)
{
  leak_row *rows = calloc(s->group_count + 1, sizeof(*rows));
  wr_held rest = {0};
  size_t count = 0, shown = 0;
  uint64_t whole = 0;
  if (!rows) return wr_db_out_of_memory(b->db);
  for (size_t i = 0; i < s->group_count; i++)
    if (held[i].end_blocks)
      rows[count++] = (leak_row){&s->groups.group[i], &held[i]}, whole += held[i].end_bytes;
  qsort(rows, count, sizeof(*rows), by_left);
  for (; shown < count && (!b->top || shown < (size_t)b->top); shown++)
    put_leak(t, &s->groups, rows[shown].group, rows[shown].held, whole);
  for (size_t i = shown; i < count; i++) {
    rest.end_bytes += rows[i].held->end_bytes, rest.end_blocks += rows[i].held->end_blocks;
    rest.blocks += rows[i].held->blocks;
  }
  if (shown < count) {
    put_leak(t, &s->groups, NULL, &rest, whole);
    wr_table_aside(t, "the first %zu of %zu", shown, count);
  }
  free(rows);
  return WEIR_OK;
}

static weir_status add_leaks(const wr_build *b, const wr_memory_sweep *s, const char *name,
                             const char *title, const wr_held *held)
{
  wr_column columns[7] = {{"end_bytes", "never freed", WR_COLUMN_BYTES, 0},
                          {"end_blocks", "blocks", WR_COLUMN_COUNT, 0},
                          {"share_of_bytes", "of all", WR_COLUMN_SHARE, 2},
                          {"blocks", "blocks allocated", WR_COLUMN_COUNT, 3},
                          {"grew_in_slices", "grew in twentieths", WR_COLUMN_COUNT, 4}};
  char *whole = wr_format("%s_by_%s", name, wr_by_name(s->groups.by));
  char *heading = wr_format("%s by %s", title, wr_by_name(s->groups.by));
  size_t count = 5 + wr_group_columns(&s->groups, columns + 5);
  weir_status st = whole && heading
                       ? put_leaks(b, wr_tables_add(b->t, whole, heading, columns, count), s, held)
                       : wr_db_out_of_memory(b->db);
  free(whole);
  free(heading);
  return st;
}

static void add_leaked_kinds(const wr_build *b, const wr_memory_sweep *s)
{
  static const wr_column columns[] = {{"device", "device", WR_COLUMN_TEXT, 0},
                                      {"memory", "memory", WR_COLUMN_TEXT, 0},
                                      {"end_bytes", "never freed", WR_COLUMN_BYTES, 0},
                                      {"end_blocks", "blocks", WR_COLUMN_COUNT, 0}};
  wr_named_table *t = wr_tables_add(b->t, "leaks", "Memory that was never freed", columns, 4);
  for (int i = 0; i < WR_MEMORY_DEVICES * WR_MEMORY_CLASSES; i++) {
    const wr_held *h = &s->kind[i];
    if (!h->end_blocks) continue;
    int class = i % WR_MEMORY_CLASSES;
    wr_table_row(t);
    wr_put_device(t, i / WR_MEMORY_CLASSES);
    wr_table_put_text(t, class == WR_REGISTERED ? "registered" : wr_mem_name(class));
    wr_table_put(t, h->end_bytes);
    wr_table_put(t, h->end_blocks);
  }
}

static weir_status add_all(const wr_build *b, const wr_memory_sweep *s)
{
  bool host = false;
  for (size_t i = 0; i < s->group_count; i++)
    host |= s->host_group[i].end_blocks != 0;
  weir_status st = add_leaks(b, s, "leaks", "Memory of devices that was never freed", s->group);
  if (!st && host)
    st = add_leaks(b, s, "host_leaks", "Page-locked and registered memory that stayed",
                   s->host_group);
  return st;
}

weir_status wr_build_leaks(const wr_build *b)
{
  wr_memory_sweep s;
  int64_t killed = 0;
  weir_status st = wr_memory_sweep_load(&s, b->db, b->scope, b->o->by);
  if (st) return st;
  add_leaked_kinds(b, &s);
  st = add_all(b, &s);
  wr_memory_sweep_free(&s);
  if (!st && !b->o->by) { /* the callers */
    st = wr_memory_sweep_load(&s, b->db, b->scope, WEIR_BY_STACK);
    if (!st) st = add_all(b, &s);
    wr_memory_sweep_free(&s);
  }
  if (!st)
    st =
        wr_db_number(b->db, "SELECT count(*) FROM process WHERE end_reason IS NOT 'exit'", &killed);
  if (killed > 0)
    wr_tables_note(b->t,
                   "%s did not end by itself, or has not ended: what it had may not be leaks.",
                   killed == 1 ? "A process" : "Several processes");
  return st;
}
