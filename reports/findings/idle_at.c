/* idle_at.c: see idle_at.h. */
#include "reports/findings/idle_at.h"
#include <stdlib.h>
#include "reports/base/util.h"

static weir_status take_gap(void *context, sqlite3_stmt *q)
{
  wr_idle *x = context;
  if (!wr_grow(&x->gap, &x->capacity, x->count + 1, sizeof(*x->gap))) return WEIR_ENOMEM;
  x->gap[x->count++] = (wr_idle_span){sqlite3_column_int64(q, 0), sqlite3_column_int64(q, 1),
                                      sqlite3_column_int64(q, 2)};
  return WEIR_OK;
}

/* Of a gap with unknown time an operation without times may have been under way. */
weir_status wr_idle_read(wr_idle *x, const wr_db *db)
{
  if (x->read) return WEIR_OK;
  x->read = true;
  if (sqlite3_table_column_metadata(db->handle, NULL, "device_gap", "unknown_ns", NULL, NULL, NULL,
                                    NULL, NULL))
    return WEIR_OK;
  return wr_db_each(db,
                    "SELECT device, start, \"end\" FROM device_gap WHERE unknown_ns = 0"
                    " ORDER BY device, start",
                    take_gap, x);
}

void wr_idle_close(wr_idle *x)
{
  free(x->gap);
  *x = (wr_idle){0};
}

/* NULL: the device worked then, or it is not known. */
static const wr_idle_span *span_at(const wr_idle *x, int64_t device, int64_t time)
{
  size_t low = 0, high = x->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    const wr_idle_span *g = &x->gap[middle];
    bool after = g->device != device ? g->device > device : g->start > time;
    if (after)
      high = middle;
    else
      low = middle + 1;
  }
  const wr_idle_span *g = low ? &x->gap[low - 1] : NULL;
  return g && g->device == device && time <= g->end ? g : NULL;
}

int64_t wr_idle_around(const wr_idle *x, int64_t device, int64_t time)
{
  const wr_idle_span *g = span_at(x, device, time);
  return g ? g->end - g->start : 0;
}

int64_t wr_idle_before(const wr_idle *x, int64_t device, int64_t time)
{
  const wr_idle_span *g = span_at(x, device, time);
  return g ? time - g->start : 0;
}
