/* overlaps.h: findings of one line of source that are about the same operations: one leads, and the others stand under it.
 *
 * Of two, the surer leads, and of equally sure ones the one that gains more. A finding stands under another one where most of
 * its operations are the other's too, and these are most of the other's, or it gains no more than that one. */
#ifndef WEIR_REPORTS_FINDINGS_OVERLAPS_H
#define WEIR_REPORTS_FINDINGS_OVERLAPS_H

#include "core/base/map.h"
#include "reports/findings/findings.h"

typedef struct wr_overlap {
  size_t line;     /* number, from 1, of the line that several findings have; 0: of no such */
  uint64_t events; /* operations that it claims */
} wr_overlap;

typedef struct wr_overlaps {
  wr_overlap *of; /* owned: by a finding's number, from 1 */
  size_t findings;
  hash_map shared; /* two findings' numbers, the lower one from bit 32 on -> operations of both */
  bool any;        /* line that several have */
  bool failed;     /* out of memory */
} wr_overlaps;

/* Of findings that are in order. False: out of memory. */
bool wr_overlaps_open(wr_overlaps *x, const wr_findings *f);
void wr_overlaps_close(wr_overlaps *x);

/* An operation that these findings claim, by their numbers; some may be there twice. Where `any` is false it changes nothing. */
void wr_overlaps_add(wr_overlaps *x, const size_t finding[], size_t count);

/* All operations have been added, and what each finding adds is known: puts findings under others, right after them. False: out
 * of memory. */
bool wr_overlaps_end(wr_overlaps *x, wr_findings *f);

#endif
