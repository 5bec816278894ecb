/* device_work.c: what devices did becomes rows, and each row finds its event.
 *
 * A device's operation carries a number, its *correlation*. The thread that asked for the operation
 * has written the number down, with the start of the call that it was in, before the call's
 * event; the operation itself comes later, in a record of another thread, and one number may have
 * many operations (the nodes of a graph, the items of a batched call). So numbers and operations
 * are rows of two tables. Most operations meet their numbers as they come, which are among the last
 * KEPT of the process; what is then without an event meets it when all are in. A number whose event
 * is missing (its record was dropped) is of none. */
#include <stdlib.h>
#include <string.h>
#include "reports/import/importer.h"

enum {
  MOST_CORRELATIONS = 65536, /* of one event: more is damage */
  KEPT = 131072              /* numbers go up with each call of the process */
};

/* The first event of a number is its. Without memory the end does it all. */
static void keep_number(wr_spool *s, uint32_t number, int64_t event)
{
  if (!s->calls) s->calls = calloc(KEPT, sizeof *s->calls);
  wr_device_call *kept = s->calls ? &s->calls[number % KEPT] : NULL;
  if (kept && kept->number != number) *kept = (wr_device_call){number, event};
}

/* 0: it is not known so far. */
static int64_t event_of(const wr_spool *s, uint32_t number)
{
  const wr_device_call *kept = s->calls && number ? &s->calls[number % KEPT] : NULL;
  return kept && kept->number == number ? kept->event : 0;
}

weir_status wr_take_correlation(wr_spool *s, wr_thread *t, const trace_event *head)
{
  if (t->correlated != head->b) t->correlations = 0;
  t->correlated = head->b;
  if (!head->a || head->a > UINT32_MAX || t->correlations == MOST_CORRELATIONS) return WEIR_OK;
  if (!wr_grow(&t->correlation, &t->correlation_capacity, t->correlations + 1, sizeof(uint32_t)))
    return wr_out_of_memory(s->im);
  wr_batch_rows *rows = &s->im->batch.rows[WR_TABLE_DEVICE_CALL];
  if (!wr_grow(&rows->row, &rows->capacity, rows->count + t->correlations + 1, sizeof(wr_row)))
    return wr_out_of_memory(s->im);
  t->correlation[t->correlations++] = (uint32_t)head->a;
  return WEIR_OK;
}

/* Of another event nothing is forgotten: a fact about caches may come before the call's own. Where
 * there is no memory for a row, its operations are of no event. */
void wr_correlate(wr_spool *s, wr_thread *t, uint64_t start, int64_t id)
{
  if (t->correlated != start) return;
  for (size_t i = 0; i < t->correlations; i++) {
    wr_row *row = wr_batch_row(&s->im->batch, WR_TABLE_DEVICE_CALL);
    if (row) *row = (wr_row){.v = {s->process, t->correlation[i], id}};
    keep_number(s, t->correlation[i], id);
  }
  t->correlations = 0;
}

/* Columns of device_work, the id left out. */
enum {
  PROCESS,
  EVENT,
  CORRELATION,
  KIND,
  COPY,
  DEVICE,
  CONTEXT,
  STREAM,
  START,
  END,
  QUEUED,
  BYTES,
  NODE
};

static void fill_operation(wr_row *row, wr_spool *s, const device_operation *o)
{
  const uint32_t untimed = 1u << START | 1u << END;
  bool timed = o->start && o->end >= o->start;
  *row = (wr_row){0};
  row->v[PROCESS] = s->process;
  row->v[EVENT] = event_of(s, o->correlation);
  row->v[CORRELATION] = o->correlation;
  row->v[KIND] = o->kind;
  row->v[DEVICE] = o->device;
  row->v[CONTEXT] = o->context;
  row->v[STREAM] = o->stream;
  row->v[START] = timed ? wr_time_of_mono(s, o->start) : 0;
  row->v[END] = timed ? wr_time_of_mono(s, o->end) : 0;
  row->v[QUEUED] = wr_time_of_mono(s, o->queued);
  row->v[BYTES] = (int64_t)o->bytes;
  row->v[NODE] = (int64_t)o->graph_node;
  row->v[COPY] = o->copy;
  if (!timed) row->nulls |= untimed;
  if (!o->queued) row->nulls |= 1u << QUEUED;
  if (!row->v[EVENT]) row->nulls |= 1u << EVENT;
  if (!o->correlation) row->nulls |= 1u << CORRELATION;
  if (!o->graph_node) row->nulls |= 1u << NODE;
  if (o->device == WEIR_DEVICE_NONE) row->nulls |= 1u << DEVICE;
  if (o->kind != WEIR_DEVICE_COPY) row->nulls |= 1u << COPY;
  if (timed) wr_span(s->im, row->v[START], row->v[END]);
}

weir_status wr_take_device_work(wr_spool *s, const void *payload, size_t bytes)
{
  wr_batch_rows *rows = &s->im->batch.rows[WR_TABLE_DEVICE_WORK];
  size_t count = bytes / sizeof(device_operation);
  if (!wr_grow(&rows->row, &rows->capacity, rows->count + count, sizeof(wr_row)))
    return wr_out_of_memory(s->im);
  for (size_t i = 0; i < count; i++) {
    device_operation o;
    memcpy(&o, (const char *)payload + i * sizeof(o), sizeof(o));
    if (!o.kind || o.kind > WEIR_DEVICE_OVERHEAD) continue; /* a newer writer's */
    fill_operation(&rows->row[rows->count++], s, &o);
  }
  return WEIR_OK;
}

static const char *fact_name(uint64_t fact)
{
  switch (fact) {
#define FACT_NAME(id, value, name)                                                                 \
  case value:                                                                                      \
    return name;
    WEIR_DEVICE_FACT_MAP(FACT_NAME)
#undef FACT_NAME
  default:
    return "unknown";
  }
}

weir_status wr_take_device_fact(wr_spool *s, const trace_event *head, const void *payload,
                                size_t bytes)
{
  int64_t time = wr_time(s, head->start);
  wr_op op = {.sql = "INSERT INTO device_fact(process, time, count, fact, text)"
                     " VALUES(?,?,NULLIF(?,0),?,NULLIF(?,''))",
              WR_NUMBERS(s->process, time, (int64_t)head->b),
              WR_TEXTS(wr_format("%s", fact_name(head->a)), wr_text(payload, bytes, false))};
  wr_span(s->im, time, time);
  return wr_batch_whole(&s->im->batch, op);
}

#define UNKNOWN "event IS NULL AND correlation IS NOT NULL"

weir_status wr_finish_device_work(const wr_db *db)
{
  int64_t unknown = 0;
  weir_status st = wr_db_number(db, "SELECT count(*) FROM device_work WHERE " UNKNOWN, &unknown);
  if (st || !unknown) return st;
  st = wr_db_exec(db, "CREATE INDEX device_call_by_number ON device_call(process, correlation)");
  if (!st)
    st = wr_db_exec(db, "UPDATE device_work SET event = (SELECT c.event FROM device_call c"
                        " WHERE c.process = device_work.process"
                        " AND c.correlation = device_work.correlation) WHERE " UNKNOWN);
  return st ? st : wr_db_exec(db, "DROP INDEX device_call_by_number");
}
