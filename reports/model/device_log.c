/* device_log.c: see device_log.h.
 *
 * Nothing of a trace is believed: a row of which the end is before the start, or a time further than
 * 73 years from the trace's beginning (WR_DEVICE_TIME), has no times. So no sum overflows. */
#include "reports/model/device_log.h"
#include <stddef.h>
#include <stdlib.h>
#include "core/trace/api.h"
#include "reports/base/util.h"

_Static_assert(offsetof(wr_sweep_moment, id) == offsetof(wr_logged, id) &&
                   offsetof(wr_sweep_moment, time) == offsetof(wr_logged, time),
               "a moment begins as what is logged does");

/* An event that is an operation; they are put in order of events. */
typedef struct label {
  int64_t id, event;
  int64_t called; /* end of the call */
  uint64_t number;
  uint32_t queue;
} label;

#define MOST_EVENTS (INT64_C(1) << 28) /* that have a bit: 32 MiB */
#define TIMED       "kind <> 5 AND device BETWEEN 0 AND 254 AND " WR_DEVICE_TIME
#define NO_DEVICE   255
enum {
  LOG_BYTES = 32 << 20,
  QUEUE_ROOM = 1000 /* a stream takes some 1,024 launches ahead; then the next one waits */
};

static weir_status no_memory_for_work(const wr_db *db)
{
  return weir_fail(WEIR_ENOMEM, "dividing the waits of %s: out of host memory", db->path);
}

/* ---- which events have times ----------------------------------------------------------------- */

static bool has_bit(const wr_device_log *l, int64_t event)
{
  return l->timed && event >= l->first && event <= l->last;
}

static bool timed(const wr_device_log *l, int64_t event)
{
  if (!has_bit(l, event)) return false;
  uint64_t bit = (uint64_t)(event - l->first);
  return l->timed[bit / 8] >> bit % 8 & 1;
}

/* event, times of all its operations are known */
static weir_status take_timed(void *context, sqlite3_stmt *q)
{
  wr_device_log *l = context;
  int64_t event = sqlite3_column_int64(q, 0);
  if (!has_bit(l, event)) return WEIR_OK;
  uint64_t bit = (uint64_t)(event - l->first);
  uint8_t mask = (uint8_t)(1 << bit % 8);
  if (sqlite3_column_int(q, 1))
    l->timed[bit / 8] |= mask;
  else
    l->timed[bit / 8] &= (uint8_t)~mask;
  return WEIR_OK;
}

static weir_status find_timed(wr_device_log *l)
{
  int64_t other = 0;
  weir_status s = wr_db_number(l->db, "SELECT ifnull(min(id), 0) FROM main.event_row", &l->first);
  if (!s) s = wr_db_number(l->db, "SELECT ifnull(max(id), 0) FROM main.event_row", &l->last);
  if (s) return s;
  if (l->first < 0) l->first = 0;
  if (l->last > l->first && l->last - l->first >= MOST_EVENTS) l->last = l->first + MOST_EVENTS - 1;
  if (l->last < l->first) l->last = l->first;
  l->timed = calloc((size_t)(l->last - l->first) / 8 + 1, 1);
  if (!l->timed) return no_memory_for_work(l->db);
  s = wr_db_each(l->db, "SELECT event, 1 FROM main.device_work WHERE event IS NOT NULL AND " TIMED,
                 take_timed, l);
  if (!s)
    s = wr_db_each(l->db,
                   "SELECT event, 0 FROM main.device_work WHERE event IS NOT NULL AND kind <> 5"
                   " AND (" TIMED ") IS NOT 1",
                   take_timed, l);
  if (!s)
    s = wr_db_number(l->db,
                     "SELECT count(*) FROM main.device_fact WHERE fact = 'observed'"
                     " AND ifnull(text, '') NOT LIKE 'copies and kernels%'",
                     &other);
  l->graphs_whole = !other;
  return s;
}

weir_status wr_device_log_open(wr_device_log *l, const wr_db *db, const char *beside)
{
  int64_t rows = 0;
  *l = (wr_device_log){.moments = {.trace = beside, .size = sizeof(wr_sweep_moment)},
                       .labels = {.trace = beside, .size = sizeof(label)},
                       .db = db};
  l->moments.most = LOG_BYTES / sizeof(wr_sweep_moment);
  l->labels.most = LOG_BYTES / sizeof(label);
  if (!wr_db_has_table(db, "device_work") || !wr_db_has_table(db, "device_fact")) return WEIR_OK;
  weir_status s =
      wr_db_number(db, "SELECT EXISTS(SELECT 1 FROM main.device_work WHERE " TIMED ")", &rows);
  l->any = rows != 0;
  return s || !l->any ? s : find_timed(l);
}

void wr_device_log_close(wr_device_log *l)
{
  wr_run_drop(&l->moments);
  wr_run_drop(&l->labels);
  free(l->timed);
  l->timed = NULL;
}

/* ---- what is kept ---------------------------------------------------------------------------- */

static void keep_moment(wr_device_log *l, wr_sweep_moment m)
{
  wr_run_keep(&l->moments, (const wr_logged *)(const void *)&m);
}

unsigned wr_device_log_how(const wr_device_log *l, int64_t id, const trace_event *e, bool host)
{
  if (!l->any) return 0;
  if (timed(l, id) && (e->kind != WEIR_EV_CALL || l->graphs_whole)) return WR_HOW_TIMED;
  bool copies = e->kind == WEIR_EV_COPY || e->kind == WEIR_EV_MEMSET;
  bool memory = e->kind == WEIR_EV_ALLOC || e->kind == WEIR_EV_FREE;
  bool item = e->flags & WEIR_EVF_BATCH; /* its operations are the first item's */
  return host || memory || item || (copies && !e->bytes) ? WR_HOW_HOST_ONLY : 0;
}

void wr_device_log_call(wr_device_log *l, int64_t id, int64_t start, int64_t end,
                        const trace_event *e, bool queues)
{
  if (!l->any || e->flags & WEIR_EVF_BATCH || end <= start) return;
  bool sync = e->kind == WEIR_EV_SYNC && e->sync_type != WEIR_SYNC_QUERY &&
              e->sync_type != WEIR_SYNC_STREAM_WAIT;
  bool waits = sync || e->flags & WEIR_EVF_IMPLICIT_SYNC;
  keep_moment(l, (wr_sweep_moment){.id = id,
                                   .time = start,
                                   .end = end,
                                   .api = e->api,
                                   .kind = waits    ? WR_MOMENT_WAITING_CALL
                                           : queues ? WR_MOMENT_QUEUEING_CALL
                                                    : WR_MOMENT_CALL});
}

void wr_device_log_work(wr_device_log *l, const wr_queues *m, const wr_queue_call *c,
                        uint32_t queue, uint64_t number)
{
  uint8_t device = wr_queues_device(m, queue);
  if (c->how & WR_HOW_HOST_ONLY) return;
  label x = {.id = c->id, .event = c->id, .called = c->end, .number = number, .queue = queue};
  wr_run_keep(&l->labels, (const wr_logged *)(const void *)&x);
  if (c->how & WR_HOW_TIMED) return;
  keep_moment(l, (wr_sweep_moment){.id = c->id,
                                   .time = c->start,
                                   .number = number,
                                   .queue = queue,
                                   .device = device == NO_DEVICE ? c->device : device,
                                   .kind = WR_MOMENT_UNTIMED});
}

void wr_device_log_done(wr_device_log *l, uint32_t queue, uint64_t number, int64_t time)
{
  keep_moment(
      l, (wr_sweep_moment){.time = time, .number = number, .queue = queue, .kind = WR_MOMENT_DONE});
}

void wr_device_log_wait(wr_device_log *l, const wr_queues *m, const wr_wait_verdict *v)
{
  const wr_queue_call *c = v->call;
  wr_sweep_moment w = {.id = v->row.id, .time = c->start, .end = c->end, .kind = WR_MOMENT_WAIT};
  bool own = false;
  for (size_t i = 0; i < v->points->count; i++) {
    const wr_point *p = &v->points->at[i];
    bool in_own = v->own_queue == p->queue + 1;
    own |= in_own;
    w.queue = p->queue;
    w.number = in_own ? v->own_number : p->may;
    w.device = wr_queues_device(m, p->queue);
    keep_moment(l, w);
  }
  w.queue = WR_NO_QUEUE;
  w.device = c->device;
  if (v->own_queue && !own) {
    w.queue = v->own_queue - 1;
    w.number = v->own_number;
    w.device = wr_queues_device(m, w.queue);
  } else if (v->points->count) {
    return;
  }
  keep_moment(l, w);
}

/* ---- bringing them together ------------------------------------------------------------------ */

typedef struct join {
  wr_device_log *l;
  sqlite3_stmt *work; /* of device_work, by event: id, start, end, device, queued, event */
  bool at_row;
} join;

static weir_status next_row(join *j)
{
  int r = sqlite3_step(j->work);
  j->at_row = r == SQLITE_ROW;
  return j->at_row || r == SQLITE_DONE ? WEIR_OK : wr_db_fail(j->l->db, "reading");
}

/* The row at hand, of the event `x` or, NULL, of none. */
static void keep_work(join *j, const label *x)
{
  int64_t start = sqlite3_column_int64(j->work, 1);
  bool queued = sqlite3_column_type(j->work, 4) == SQLITE_INTEGER;
  wr_sweep_moment w = {.id = sqlite3_column_int64(j->work, 0),
                       .time = start,
                       .end = sqlite3_column_int64(j->work, 2),
                       .number = x ? x->number : 0,
                       .queue = x ? x->queue : WR_NO_QUEUE,
                       .device = (uint8_t)sqlite3_column_int(j->work, 3),
                       .kind = WR_MOMENT_WORK};
  keep_moment(j->l, w);
  int64_t since = queued ? sqlite3_column_int64(j->work, 4) : x ? x->called : start;
  if (since >= start) return;
  w.kind = WR_MOMENT_QUEUED;
  w.time = since;
  w.end = start;
  keep_moment(j->l, w);
}

static weir_status take_label(void *context, const void *kept)
{
  join *j = context;
  const label *x = kept;
  weir_status s = WEIR_OK;
  while (!s && j->at_row) {
    int64_t event = sqlite3_column_int64(j->work, 5);
    if (event > x->event) return WEIR_OK;
    keep_work(j, event == x->event ? x : NULL);
    s = next_row(j);
  }
  return s;
}

/* Operations of no event, or of none that is work, are other work. */
static weir_status join_work(join *j)
{
  weir_status s = next_row(j);
  if (!s) s = wr_run_each(&j->l->labels, take_label, j);
  while (!s && j->at_row) {
    keep_work(j, NULL);
    s = next_row(j);
  }
  return s;
}

static weir_status take_moment(void *context, const void *moment)
{
  return wr_sweep_take(context, moment);
}

weir_status wr_device_log_sweep(wr_device_log *l, const wr_sweep_taker *taker)
{
  join j = {.l = l};
  weir_status s = wr_db_prepare(l->db,
                                "SELECT id, start, \"end\", device, queued, ifnull(event, -1)"
                                " FROM main.device_work WHERE " TIMED " ORDER BY ifnull(event, -1)",
                                &j.work);
  if (!s) s = join_work(&j);
  sqlite3_finalize(j.work);
  wr_run_drop(&l->labels);
  if (!s && l->moments.incomplete)
    s = weir_fail(WEIR_EIO, "%s: no room for temporary files", l->db->path);
  wr_sweep *sweep = s ? NULL : wr_sweep_open(taker, api_total, QUEUE_ROOM);
  if (!s && !sweep) s = no_memory_for_work(l->db);
  if (!s) s = wr_run_each(&l->moments, take_moment, sweep);
  if (!s) s = wr_sweep_finish(sweep);
  wr_sweep_close(sweep);
  return s;
}
