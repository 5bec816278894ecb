/* process_state.h: what facts remember of a process (block_facts.h, move_facts.h). */
#ifndef WEIR_REPORTS_PROCESS_STATE_H
#define WEIR_REPORTS_PROCESS_STATE_H

#include "reports/findings/given.h"
#include "reports/findings/address_set.h"

typedef struct wr_upload { /* a copy to a device */
  int64_t event, duration;
  uint64_t bytes;
  uint32_t common;
  uint32_t before; /* an earlier one to the same address, its place + 1; 0 none */
} wr_upload;

typedef struct wr_once {       /* page-locked memory, of which one copy was made at most */
  int64_t alloc, template, ns; /* ns: of the allocation */
  int64_t copy;                /* 0: none yet */
  uint64_t address, bytes, copied;
} wr_once;

enum { WR_ONCE_BLOCKS = 16 /* that are followed of a process */ };

typedef struct wr_born { /* an allocation; alloc 0: freed again */
  int64_t alloc;
  uint64_t bytes;
  uint32_t common;
} wr_born;

typedef struct
    wr_just_freed { /* a block; of none has been allocated since. alloc 0: there is none */
  int64_t alloc, free, again, others, alloc_ns, free_ns, bytes;
  uint32_t common;
} wr_just_freed;

/* Zero-initialised the process has called nothing. */
typedef struct wr_process_state {
  uint64_t reads, reads_or_frees, writes; /* calls so far that do so to device memory, or may */
  uint64_t parts;                 /* so far: uses, copies and memsets divide the run into them */
  uint64_t allocs, resets, waits; /* so far */
  uint64_t begun_writes;          /* as `writes`, of calls in order of start; with hashes alone */
  uint64_t seed;                  /* of the keys of its addresses; 0: it has allocated nothing */
  wr_born *born;                  /* owned: allocations of the part that goes on */
  size_t born_count, born_capacity;
  int64_t freed_by; /* thread of that free: another one's order is not the program's */
  size_t early;     /* of `born`: those before the last free of older memory */
  wr_just_freed freed;
  wr_ranges untouched; /* allocations since which nothing can have used them */
  wr_given given;
  wr_ranges apart;    /* page-locked memory that no copy has touched: kernels may */
  wr_ranges combined; /* page-locked memory that is write-combined */
  wr_once once[WR_ONCE_BLOCKS];
  size_t once_count;
  bool shares;       /* it has memory that host and kernels both touch, or may */
  wr_upload *upload; /* owned: those since the last read */
  size_t upload_count, upload_capacity;
  uint64_t upload_reads; /* as `reads`, when the first of them came */
  uint64_t upload_round; /* how often they were forgotten */
} wr_process_state;

#endif
