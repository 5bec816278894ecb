/* cache.h: what the caches of a rerouted run did: numbers of `weir report cache`, computed once.
 *
 * A call's own event says whether it was a hit, and if not, why; CACHE events say what happened to
 * a cache beside the calls. The memory that is cached at a moment is followed by address, in the
 * order of lifetime.h: a free counts from its call, an allocation from its return. SCHEMA.md ("The
 * caches") defines every number. */
#ifndef WEIR_REPORTS_CACHE_H
#define WEIR_REPORTS_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include "core/trace/event.h"
#include "reports/import/schema.h"

#define WR_REASON_COUNT(id, value, name) +1
enum {
  WR_REASONS = 1 WEIR_REASON_MAP(WR_REASON_COUNT), /* NONE first */
  WR_CURVE = 100,                                  /* slices of the run */
  WR_UNWRITTEN = 20,                               /* places that are listed */
  WR_CACHE_DEVICE = 0,
  WR_CACHE_PINNED = 1
};
#undef WR_REASON_COUNT

typedef struct wr_tally {
  uint64_t calls, bytes, ns;
  int64_t first, last; /* ns since the trace began */
} wr_tally;

typedef struct wr_cache_side { /* of device memory, or of page-locked host memory */
  uint64_t hits, hit_bytes, misses, miss_bytes;
  uint64_t cached_peak_bytes, cached_peak_at_ns; /* most bytes cached at one moment */
  uint64_t cached_end_bytes;                     /* at the end of the trace */
} wr_cache_side;

typedef struct wr_staging {   /* copies of 1 MiB and more: of pageable memory, or between devices */
  uint64_t copies, bytes, ns; /* staged */
  uint64_t left_copies, left_bytes, left_ns; /* the driver's */
  uint64_t left_timed_bytes, left_timed_ns;  /* of those, the ones whose call waits */
  uint64_t percent;           /* of the driver's time to ours, as measured; 0: not measured */
  bool was_measured, earlier; /* there was a verdict; an earlier program measured it */
} wr_staging;

/* Copies to the host, of one place in the program, that brought back poison. */
typedef struct wr_unwritten {
  uint64_t copies, bytes;        /* bytes that nobody had written */
  uint64_t block, offset, first; /* of the first of them: where, how many bytes */
  int64_t time;                  /* and when, ns since the trace began */
  char *where;                   /* owned; never NULL */
} wr_unwritten;

typedef struct wr_pool { /* one of the driver's own memory pools, as it was told of last */
  int64_t pid;
  uint64_t handle;
  int device;                       /* -1: not known */
  bool from_start;                  /* the device has it by itself; false: the program made it */
  bool ended;                       /* the program destroyed it */
  uint64_t reserved, reserved_peak; /* bytes it has of the device's memory */
  uint64_t used, used_peak;         /* of them the program has, or work has not yet freed */
  uint64_t threshold;               /* release threshold */
  uint64_t samples;                 /* times it was told of */
  int64_t first_ns, last_ns;        /* the first and the last of them */
} wr_pool;

typedef struct wr_cache {
  bool rerouted;
  const char *mode; /* observe, strict, relaxed */
  wr_cache_side side[2];
  wr_tally missed[WR_REASONS], left[WR_REASONS]; /* allocations: from the device; the driver's */
  wr_tally freed[WR_REASONS];                    /* real frees of what might have been cached */
  wr_tally given[WR_REASONS], tainted[WR_REASONS];
  uint64_t kept_frees, kept_bytes;                   /* into a cache */
  uint64_t waits_kept, waits_kept_ns, waits_avoided; /* of frees */
  uint64_t kept_calls;      /* calls answered with objects and answers that were kept, not memory */
  size_t ended;             /* processes that had memory, and are gone */
  uint64_t held_peak_bytes; /* device memory, live and cached, at one moment */
  uint64_t end_ns;          /* of the last event */
  uint64_t curve[WR_CURVE]; /* most device bytes cached in each slice of end_ns */
  wr_staging staging[3];    /* h2d, d2h, p2p */
  wr_unwritten unwritten[WR_UNWRITTEN];       /* the earliest first */
  size_t unwritten_count, unwritten_places;   /* of these; there are */
  uint64_t unwritten_copies, unwritten_bytes; /* in all */
  wr_pool *pools;                             /* owned; the ones that had most first */
  size_t pool_count;
  struct wr_cached_at { /* device memory in the caches when a device was asked about */
    int64_t at;
    uint64_t bytes;
    int device;
  } * cached_at; /* owned; by time */
  size_t cached_at_count;
} wr_cache;

/* The name of a reason in traces and JSON; "none" for numbers that are none. */
const char *wr_reason_name(unsigned reason);

/* What the pool keeps reserved with none of it in use, at most: at a wait it gives back what it has
 * beyond its release threshold. */
uint64_t wr_pool_keeps(const wr_pool *pool);

/* The pools of *c; all else stays. */
weir_status wr_pools_load(wr_cache *c, const wr_db *db);

/* Fills *c; all but `mode` and the pools is 0 where no process was rerouted. */
weir_status wr_cache_load(wr_cache *c, const wr_db *db);
void wr_cache_free(wr_cache *c);

#endif
