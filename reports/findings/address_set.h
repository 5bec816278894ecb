/* address_set.h: a set of ranges of addresses of which no two overlap. */
#ifndef WEIR_REPORTS_FINDINGS_ADDRESS_SET_H
#define WEIR_REPORTS_FINDINGS_ADDRESS_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct wr_range {
  uint64_t begin, end;
  int64_t value; /* the user's */
} wr_range;

enum { WR_RANGES_NEAR = 16 };

/* Zero-initialised is empty. The last few that were added are looked through, which is all of most
 * sets; the others are in a tree. */
typedef struct wr_ranges {
  size_t count; /* of all */
  size_t nears; /* of `near` */
  wr_range near[WR_RANGES_NEAR];
  void *root; /* a tree of search.h; owned */
} wr_ranges;

/* Drops what overlaps, and adds the range; one of no bytes is not added. False: out of memory. */
bool wr_ranges_put(wr_ranges *r, uint64_t begin, uint64_t bytes, int64_t value);

/* A range that overlaps, which stays until the set is changed; NULL: none. No bytes count as
 * one. */
const wr_range *wr_ranges_find(const wr_ranges *r, uint64_t begin, uint64_t bytes);
void wr_ranges_drop(wr_ranges *r, uint64_t begin, uint64_t bytes);

/* Some range; NULL: it is empty. */
const wr_range *wr_ranges_any(const wr_ranges *r);
void wr_ranges_clear(wr_ranges *r);

#endif
