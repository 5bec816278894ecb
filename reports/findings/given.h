/* given.h: memory of a process that others may use, since a handle, a pointer or tokens of it were
 * asked for: another process, a network card, another program's API. What becomes of it is not seen
 * here, so that no rule may call a write, a copy or the memory itself needless. Memory of others
 * that the process has opened is the same. It is given from that call on until it is freed. */
#ifndef WEIR_REPORTS_GIVEN_H
#define WEIR_REPORTS_GIVEN_H

#include "core/base/map.h"
#include "reports/findings/address_set.h"

/* What a call does that is one of these; its numbers are as the table of hooks has them. */
typedef enum wr_giving {
  WR_GIVES_NOTHING,
  WR_GIVES_BLOCK,          /* the block with address a */
  WR_GIVES_RANGE,          /* the block with address a; so many bytes from there */
  WR_GIVES_BOUND,          /* so many bytes from b (multicast) */
  WR_GIVES_POOL,           /* what comes out of pool a */
  WR_GIVES_PHYSICAL,       /* what memory a is mapped to */
  WR_GIVES_BOUND_PHYSICAL, /* what memory b is mapped to */
  WR_NAMES_POOL,           /* a is another pool from now on */
  WR_MAPS_PHYSICAL,        /* memory b to the bytes from a */
  WR_UNMAPS_PHYSICAL       /* the bytes from a */
} wr_giving;

/* By the name of a function. */
wr_giving wr_giving_of(const char *function);

typedef struct wr_mapping {
  uint64_t physical, begin, bytes;
} wr_mapping;

/* Of one process. Zero-initialised: nothing is given. */
typedef struct wr_given {
  bool all;           /* too many ranges to remember: any memory may be given */
  wr_ranges ranges;   /* value: the allocation, 0 not known */
  hash_map pools;     /* given */
  hash_map physical;  /* given */
  wr_mapping *mapped; /* owned; one that is unmapped stays, with no effect but that less is found */
  size_t mapped_count, mapped_capacity;
} wr_given;

static inline bool wr_given_any(const wr_given *g)
{
  return g->ranges.count || g->all;
}

static inline bool wr_given_has(const wr_given *g, uint64_t address, uint64_t bytes)
{
  return wr_given_any(g) && (g->all || wr_ranges_find(&g->ranges, address, bytes));
}

/* False: out of memory. */
bool wr_given_put(wr_given *g, uint64_t begin, uint64_t bytes, int64_t alloc);
bool wr_given_physical(wr_given *g, uint64_t physical);
bool wr_given_map(wr_given *g, uint64_t physical, uint64_t begin, uint64_t bytes);

void wr_given_free(wr_given *g);

#endif
