/* memory_sweep.h: memory by moment: all blocks of a trace in the order in which they began and
 * ended, as the importer had them (lifetime.h), so that peaks are its peaks.
 *
 * Blocks are those of the scope's processes and ranges. With times, what was allocated before them
 * is there from their beginning on, and what counts as allocated or live at the end is so within
 * them. */
#ifndef WEIR_REPORTS_MEMORY_SWEEP_H
#define WEIR_REPORTS_MEMORY_SWEEP_H

#include "reports/tables/group.h"
#include "reports/tables/scope.h"

enum {
  WR_SLICES = 20,                /* of the time in the scope */
  WR_LIFETIMES = 12,             /* below 1 us, then by tens; the last is open */
  WR_NEVER_FREED = WR_LIFETIMES, /* these two are behind them */
  WR_IN_A_LAUNCH,
  WR_LIFETIME_CLASSES,
  WR_REGISTERED = 11 /* class of registered memory, behind memory_kind */
};
enum { WR_MEMORY_CLASSES = 12, WR_MEMORY_DEVICES = 257 };

typedef struct wr_held {            /* memory of one kind, device or group */
  uint64_t blocks, bytes;           /* allocated */
  uint64_t freed;                   /* of the blocks */
  uint64_t live;                    /* now, while sweeping */
  uint64_t peak, peak_at;           /* most at one moment */
  uint64_t end_blocks, end_bytes;   /* live at the end */
  uint64_t at_peak, blocks_at_peak; /* of a group: at the moment of the whole peak */
  uint64_t before;                  /* live at the end of the slice before */
  uint64_t grew;                    /* slices in which it grew */
} wr_held;

typedef struct wr_slice {
  int64_t from, to;
  uint64_t allocated_blocks, allocated_bytes;             /* device side */
  uint64_t most;                                          /* device side, at one moment */
  uint64_t device, managed, pinned, registered, imported; /* at its end; device: the device side */
} wr_slice;

typedef struct wr_swept_block {
  uint64_t bytes;
  int64_t born, died; /* places; died INT64_MAX: nowhere */
  int64_t start, end; /* ns; end INT64_MAX: never freed */
  int64_t gone;       /* ns: end, or that of its process */
  uint32_t group;     /* of `groups` */
  uint16_t device;    /* WR_HOST: none */
  uint8_t class;
  bool in_launch; /* a launch of a graph allocated and freed it: how long it lived is not known */
} wr_swept_block;

typedef struct wr_memory_sweep {
  wr_swept_block *block; /* owned */
  size_t count, capacity;
  wr_groups groups;
  wr_held all;                 /* the device side of all devices */
  wr_held *device;             /* owned; [257], the device side of each */
  wr_held *kind;               /* owned; [257][WR_MEMORY_CLASSES] */
  wr_held *group, *host_group; /* owned; device side; page-locked, registered */
  size_t group_count;
  wr_slice slice[WR_SLICES];
  uint64_t began; /* device side: live when the times begin */
  uint64_t lived_blocks[WR_LIFETIME_CLASSES], lived_bytes[WR_LIFETIME_CLASSES];
} wr_memory_sweep;

weir_status wr_memory_sweep_load(wr_memory_sweep *s, const wr_db *db, const wr_scope *scope,
                                 report_by by);
void wr_memory_sweep_free(wr_memory_sweep *s);

#endif
