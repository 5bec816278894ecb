/* idle_at.h: the rows of `device_gap` for judges: how long a device did nothing around a time. */
#ifndef WEIR_REPORTS_IDLE_AT_H
#define WEIR_REPORTS_IDLE_AT_H

#include <stdbool.h>
#include <stddef.h>
#include "reports/import/schema.h"

typedef struct wr_idle_span {
  int64_t device, start, end;
} wr_idle_span;

typedef struct wr_idle {
  wr_idle_span *gap; /* owned: by device and start */
  size_t count, capacity;
  bool read;
} wr_idle;

/* Reads them, the first time. `x` is closed whatever this returns. Errors: ENOMEM, EIO, ECORRUPT. */
weir_status wr_idle_read(wr_idle *x, const wr_db *db);
void wr_idle_close(wr_idle *x);

/* ns of the gap of the device that a time is in; 0: it worked then, or it is not known whether it did. */
int64_t wr_idle_around(const wr_idle *x, int64_t device, int64_t time);

/* The same, of the gap up to that time. */
int64_t wr_idle_before(const wr_idle *x, int64_t device, int64_t time);

#endif
