/* graph.c: see graph.h. Here the records become rows, as they come. */
#include "reports/import/graph.h"
#include <string.h>

/* Columns of graph_node. */
enum {
  COPY_COLUMN = 8,
  MEM_COLUMN,
  SRC_MEM_COLUMN,
  DEVICE_COLUMN,
  SRC_DEVICE_COLUMN,
  ACCESS_COLUMN = 14
};

enum { NODE_KERNEL = 0 /* CUgraphNodeType */ };

static wr_row node_row(int64_t change, int64_t position, const graph_node_info *n)
{
  wr_row row = {.v = {change, position, (int64_t)n->node, (int64_t)n->parent, n->type,
                      (int64_t)n->a, (int64_t)n->b, (int64_t)n->bytes, n->copy, n->mem & 15,
                      n->mem >> 4, n->device, n->src_device, n->conditional != 0}};
  if (n->device == WEIR_DEVICE_NONE) row.nulls |= 1u << DEVICE_COLUMN;
  bool kernel = n->type == NODE_KERNEL;
  if (kernel || n->src_device == WEIR_DEVICE_NONE) row.nulls |= 1u << SRC_DEVICE_COLUMN;
  if (kernel) {
    row.v[COPY_COLUMN] = row.v[MEM_COLUMN] = row.v[SRC_MEM_COLUMN] = 0;
    row.v[ACCESS_COLUMN] = event_access_number(n->copy, n->mem, n->src_device);
  }
  return row;
}

static bool make_row_room(wr_batch *b, wr_table table, size_t more)
{
  wr_batch_rows *rows = &b->rows[table];
  return wr_grow(&rows->row, &rows->capacity, rows->count + more, sizeof(wr_row));
}

static void add_node_rows(wr_batch *b, wr_thread *t, const void *payload, size_t count)
{
  wr_batch_rows *rows = &b->rows[WR_TABLE_GRAPH_NODE];
  graph_node_info n;
  for (size_t i = 0; i < count; i++) {
    memcpy(&n, (const char *)payload + i * sizeof(n), sizeof(n));
    rows->row[rows->count++] = node_row(t->graph_change, t->graph_nodes++, &n);
  }
}

/* A fact whose last record is lost has no number of nodes: what the graph holds is not known. */
static weir_status take_more(wr_spool *s, wr_thread *t, const trace_event *head,
                             const void *payload, size_t count)
{
  wr_batch *b = &s->im->batch;
  if (!t->graph_change || (int64_t)head->b != t->graph_nodes) {
    t->graph_change = 0;
    return WEIR_OK;
  }
  if (head->mem) {
    wr_op op = {.sql = "UPDATE graph_change SET nodes = ?2 WHERE id = ?1",
                WR_NUMBERS(t->graph_change, t->graph_nodes + (int64_t)count)};
    weir_status st = wr_batch_op(b, op);
    if (st) return st;
  }
  add_node_rows(b, t, payload, count);
  return WEIR_OK;
}

weir_status wr_graph_take(wr_spool *s, wr_thread *t, const trace_event *head, const void *payload,
                          size_t bytes)
{
  trace_importer *im = s->im;
  wr_batch *b = &im->batch;
  size_t count = bytes / sizeof(graph_node_info);
  int64_t time = wr_time(s, head->start);
  if (head->graph_fact < WEIR_GRAPH_MADE || head->graph_fact > WEIR_GRAPH_MORE) return WEIR_OK;
  if (!make_row_room(b, WR_TABLE_GRAPH_NODE, count) || !make_row_room(b, WR_TABLE_GRAPH_CHANGE, 1))
    return wr_out_of_memory(im);
  if (head->graph_fact == WEIR_GRAPH_MORE) return take_more(s, t, head, payload, count);
  t->graph_change = ++im->graph_changes;
  t->graph_nodes = 0;
  wr_row row = {.v = {t->graph_change, s->process, t->id, time, t->last_call, head->graph_fact,
                      (int64_t)head->a, (int64_t)head->b, (int64_t)count}};
  if (!t->last_call) row.nulls |= 1u << 4;
  if (!head->mem) row.nulls |= 1u << 8;
  wr_batch_rows *rows = &b->rows[WR_TABLE_GRAPH_CHANGE];
  rows->row[rows->count++] = row;
  add_node_rows(b, t, payload, count);
  wr_span(im, time, time);
  return WEIR_OK;
}
