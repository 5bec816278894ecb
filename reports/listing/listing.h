/* listing.h: the events of a trace in the order of time. */
#ifndef WEIR_REPORTS_LISTING_H
#define WEIR_REPORTS_LISTING_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include "core/base/status.h"

typedef enum listing_format { LISTING_TEXT, LISTING_CSV, LISTING_JSONL } listing_format;

/* A number to filter by, or none. */
typedef struct listing_number {
  bool asked;
  int64_t value;
} listing_number;

/* Which events; all zero: all of them. An event must pass every filter. */
typedef struct listing_filter {
  uint64_t kinds;                 /* a bit for each event_kind; 0: every kind */
  const char *functions;          /* a name, or a pattern with * and ?; NULL: every function */
  const char *ranges;             /* text of an NVTX range that it is in, or a pattern; NULL: any */
  listing_number device;          /* ordinal, of either side of a copy */
  listing_number stream;          /* handle */
  listing_number thread, process; /* the kernel's numbers */
  listing_number min_bytes;       /* of what has a size: allocations, copies, memsets, … */
  listing_number min_ns;          /* that the call lasted */
  listing_number from, to;        /* began at `from` ns of the trace's time or later, before `to` */
} listing_filter;

typedef struct listing_settings {
  listing_format format;
  listing_filter filter;
} listing_settings;

/* Writes the events of `trace` (a trace, complete or not, or a spool) to `out`. Errors: ENOENT, EIO
 * (also of `out`: it is then ferror()), ECORRUPT, EVERSION, EINVAL for a function or a
 * range that the trace does not know. */
weir_status listing_write(FILE *out, const char *trace, const listing_settings *settings);

/* The bit of a kind of event by its name in traces, or by the name of its view (allocation,
 * release, wait, registration, cache_action); 0: there is none. */
uint64_t listing_kind(const char *name, size_t bytes);

/* The names of kinds, "alloc, free, …". */
const char *listing_kinds(void);

#endif
