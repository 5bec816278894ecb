/* records.h: CUPTI's records become operations in the spool. */
#ifndef WEIR_INTERPOSE_ACTIVITY_RECORDS_H
#define WEIR_INTERPOSE_ACTIVITY_RECORDS_H

#include "core/trace/spool.h"
#include "interpose/activity/session.h"

typedef struct activity_counts {
  uint64_t untimed; /* operations without usable times */
  uint64_t dropped; /* operations that found no place in the spool */
} activity_counts;

/* Reads a completed buffer. `offset`: what to add to CUPTI's times for CLOCK_MONOTONIC, ns; there
 * are none while it is not known (`clock_known`). */
void activity_records_read(const cupti_session *s, spool_writer *pen, uint8_t *buffer, size_t bytes,
                           int64_t offset, bool clock_known, activity_counts *counts);

#endif
