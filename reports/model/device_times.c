/* device_times.c: see device_times.h. Starts and ends of all operations in the order of their
 * times: between two of them what is under way is known, and that time is added where it counts. */
#include "reports/model/device_times.h"

#include <stdlib.h>
#include <string.h>
#include "core/trace/event.h"

typedef struct sweep {
  wr_device_times *t;
  size_t room;
  wr_device_time *now; /* the device at hand */
  int64_t first, last;
  int64_t under_way[WR_WORKS];
} sweep;

static wr_work work_of(int kind, int copy)
{
  switch (kind) {
  case WEIR_DEVICE_MEMSET:
    return WR_WORK_MEMSET;
  case WEIR_DEVICE_KERNEL:
    return WR_WORK_KERNEL;
  case WEIR_DEVICE_GRAPH:
    return WR_WORK_GRAPH;
  default:
    return copy == WEIR_COPY_HTOD   ? WR_WORK_H2D
           : copy == WEIR_COPY_DTOH ? WR_WORK_D2H
           : copy == WEIR_COPY_DTOD ? WR_WORK_D2D
           : copy == WEIR_COPY_PTOP ? WR_WORK_P2P
                                    : WR_WORK_OTHER_COPY;
  }
}

/* device, kind, copy, operations, timed, bytes, timed bytes; by device */
static weir_status take_sum(void *context, sqlite3_stmt *q)
{
  sweep *s = context;
  wr_device_times *t = s->t;
  int device = sqlite3_column_int(q, 0);
  if (!t->count || t->device[t->count - 1].device != device) {
    if (!wr_grow(&t->device, &s->room, t->count + 1, sizeof(wr_device_time)))
      return weir_fail(WEIR_ENOMEM, "adding up device times: out of host memory");
    t->device[t->count++] = (wr_device_time){.device = device};
  }
  wr_work_sum *sum =
      &t->device[t->count - 1].work[work_of(sqlite3_column_int(q, 1), sqlite3_column_int(q, 2))];
  sum->operations += (uint64_t)sqlite3_column_int64(q, 3);
  sum->timed += (uint64_t)sqlite3_column_int64(q, 4);
  sum->bytes += (uint64_t)sqlite3_column_int64(q, 5);
  sum->timed_bytes += (uint64_t)sqlite3_column_int64(q, 6);
  return WEIR_OK;
}

static void end_device(sweep *s)
{
  if (s->now) s->now->span_ns = (uint64_t)s->last - (uint64_t)s->first;
  for (int i = 0; i < WR_WORKS; i++)
    s->under_way[i] = 0;
  s->now = NULL;
}

static void begin_device(sweep *s, int device, int64_t time)
{
  end_device(s);
  for (size_t i = 0; i < s->t->count; i++)
    if (s->t->device[i].device == device) s->now = &s->t->device[i];
  s->first = s->last = time;
}

static void pass_time(sweep *s, uint64_t ns)
{
  bool copies = false, any = false;
  for (int i = 0; i < WR_WORKS; i++) {
    if (s->under_way[i] <= 0) continue;
    any = true;
    copies |= i <= WR_WORK_P2P;
    s->now->work[i].busy_ns += ns;
  }
  bool kernels = s->under_way[WR_WORK_KERNEL] > 0;
  s->now->busy_ns += any ? ns : 0;
  s->now->copy_ns += copies ? ns : 0;
  s->now->kernel_ns += kernels ? ns : 0;
  s->now->overlap_ns += copies && kernels ? ns : 0;
}

/* device, kind, copy, time, 1 or -1; by device and time */
static weir_status take_edge(void *context, sqlite3_stmt *q)
{
  sweep *s = context;
  int device = sqlite3_column_int(q, 0);
  int64_t time = sqlite3_column_int64(q, 3);
  if (!s->now || s->now->device != device) begin_device(s, device, time);
  if (!s->now) return WEIR_OK;
  pass_time(s, (uint64_t)time - (uint64_t)s->last);
  s->last = time;
  s->under_way[work_of(sqlite3_column_int(q, 1), sqlite3_column_int(q, 2))] +=
      sqlite3_column_int(q, 4);
  return WEIR_OK;
}

/* ---- what was not seen ----------------------------------------------------------------------- */

typedef struct story { /* of one process */
  wr_device_times *t;
  int64_t process, away_since, end;
  bool observed, ended, away;
} story;

static void end_process(story *s)
{
  if (s->away && s->end > s->away_since)
    s->t->yielded_ns += (uint64_t)s->end - (uint64_t)s->away_since;
  s->t->incomplete += s->observed && !s->ended;
  s->observed = s->ended = s->away = false;
}

static void keep_first(char **kept, sqlite3_stmt *q, int column)
{
  if (!*kept && sqlite3_column_type(q, column) == SQLITE_TEXT) *kept = wr_db_text(q, column);
}

static void observe_again(story *s, sqlite3_stmt *q, int64_t time)
{
  if (s->away && time > s->away_since) s->t->yielded_ns += (uint64_t)time - (uint64_t)s->away_since;
  s->away = false;
  s->observed = true;
  const char *text = (const char *)sqlite3_column_text(q, 4);
  if (!text || strncmp(text, "copies and kernels", 18) != 0) s->t->no_kernels = true;
  keep_first(&s->t->observed, q, 4);
}

/* process, its end, time, fact, text, count; by process and time */
static weir_status take_fact(void *context, sqlite3_stmt *q)
{
  story *s = context;
  int64_t time = sqlite3_column_int64(q, 2);
  const char *fact = (const char *)sqlite3_column_text(q, 3);
  if (sqlite3_column_int64(q, 0) != s->process) end_process(s);
  s->process = sqlite3_column_int64(q, 0);
  s->end = sqlite3_column_int64(q, 1);
  if (!fact) return WEIR_OK;
  if (!strcmp(fact, "observed")) observe_again(s, q, time);
  if (!strcmp(fact, "yielded")) {
    if (!s->away) s->away_since = time;
    s->away = true;
    s->t->yields++;
  }
  if (!strcmp(fact, "dropped")) s->t->dropped += (uint64_t)sqlite3_column_int64(q, 5);
  if (!strcmp(fact, "untimed")) s->t->untimed += (uint64_t)sqlite3_column_int64(q, 5);
  if (!strcmp(fact, "unavailable")) keep_first(&s->t->unavailable, q, 4);
  if (!strcmp(fact, "ended")) s->ended = true;
  return WEIR_OK;
}

static weir_status load_facts(wr_device_times *t, const wr_db *db)
{
  story s = {.t = t};
  weir_status status =
      wr_db_each(db,
                 "SELECT f.process, p.\"end\", f.time, f.fact, f.text, f.count FROM device_fact f"
                 " LEFT JOIN process p ON p.id = f.process ORDER BY f.process, f.time, f.id",
                 take_fact, &s);
  end_process(&s);
  int64_t unmatched = 0;
  if (!status)
    status = wr_db_number(db, "SELECT count(*) FROM device_work WHERE event IS NULL AND kind <> 5",
                          &unmatched);
  t->unmatched = (uint64_t)unmatched;
  return status;
}

/* A process that was ended by a signal, or waited for CUPTI in vain: its calls that have a number,
 * worked, and had something to do, and of whose operations there is none. */
static weir_status count_lost(wr_device_times *t, const wr_db *db)
{
  int64_t lost = 0;
  if (!t->incomplete || !wr_db_has_table(db, "device_call")) return WEIR_OK;
  weir_status s = wr_db_number(
      db,
      "SELECT count(*) FROM (SELECT DISTINCT c.event FROM device_call c CROSS JOIN event e"
      " ON e.id = c.event WHERE c.process IN (SELECT process FROM device_fact"
      " WHERE fact = 'observed' EXCEPT SELECT process FROM device_fact WHERE fact = 'ended')"
      " AND e.status = 0 AND (e.bytes > 0 OR e.kind NOT IN (3, 4))"
      " AND NOT EXISTS (SELECT 1 FROM device_work d WHERE d.event = c.event))",
      &lost);
  t->lost_calls = lost > 0 ? (uint64_t)lost : 0;
  return s;
}

char *wr_device_times_none(const wr_device_times *t)
{
  if (t->unavailable)
    return wr_format("device times were asked for, and not to be had: %s", t->unavailable);
  if (wr_device_times_asked(t))
    return wr_format("device times were asked for, and none was kept%s",
                     t->incomplete ? " before the program was ended" : "");
  return wr_format("device times were not observed (weir run --device-times)");
}

weir_status wr_device_times_find_none(char **none, const wr_db *db)
{
  wr_device_times t;
  *none = NULL;
  weir_status s = wr_device_times_load(&t, db);
  if (s) return s;
  if (!t.count && !(*none = wr_device_times_none(&t)))
    s = weir_fail(WEIR_ENOMEM, "reading %s: out of host memory", db->path);
  wr_device_times_free(&t);
  return s;
}

weir_status wr_device_times_load(wr_device_times *t, const wr_db *db)
{
  sweep s = {.t = t};
  *t = (wr_device_times){0};
  if (!wr_db_has_table(db, "device_work") || !wr_db_has_table(db, "device_fact")) return WEIR_OK;
  weir_status status = wr_db_each(
      db,
      "SELECT device, kind, copy, count(*), count(CASE WHEN " WR_DEVICE_TIME
      " THEN 1 END), CAST(total(bytes) AS INTEGER),"
      " CAST(total(CASE WHEN " WR_DEVICE_TIME " THEN bytes END) AS INTEGER)"
      " FROM device_work WHERE kind <> 5 AND device BETWEEN 0 AND 254 GROUP BY 1, 2, 3 ORDER BY 1",
      take_sum, &s);
  if (!status)
    status = wr_db_each(
        db,
        "SELECT device, kind, copy, start AS t, 1 FROM device_work"
        " WHERE kind <> 5 AND device BETWEEN 0 AND 254 AND " WR_DEVICE_TIME " UNION ALL"
        " SELECT device, kind, copy, \"end\", -1 FROM device_work"
        " WHERE kind <> 5 AND device BETWEEN 0 AND 254 AND " WR_DEVICE_TIME " ORDER BY 1, 4",
        take_edge, &s);
  end_device(&s);
  if (!status) status = load_facts(t, db);
  if (!status) status = count_lost(t, db);
  if (status) wr_device_times_free(t);
  return status;
}

void wr_device_times_free(wr_device_times *t)
{
  for (size_t i = 0; i < t->count; i++)
    wr_idle_free(&t->device[i]);
  free(t->device);
  free(t->observed);
  free(t->unavailable);
  *t = (wr_device_times){0};
}
