/* in_use.h: what of a device's memory was in use, and by what.
 *
 * The driver's word on a device (device_memory_sample) is held against all that the trace knows of:
 * live blocks, by the module that asked for each; Weir's caches; what pools and libweir have beyond
 * what is in use of theirs, and so the driver for graphs; what calls that loaded code or made a
 * context took (memory_taken), where no block of the device began or ended meanwhile, until a reset
 * ends it. What was in use beside all that when the device was first asked about
 * is *before*: contexts, modules and other programs, which the driver does not tell apart. What is
 * in use later and belongs to none of these is *unexplained*: what the driver rounds up, contexts
 * and modules that came later, other programs. It may be negative: one of them has gone.
 *
 * At three moments: the first sample, the one with the most in use, the last.
 *
 * NVML's word, where there was NVML (device_usage), is held against the same, over time: at some
 * moments more between the first and the last. It tells other CUDA programs apart, often. Of a
 * device that is divided among several (MIG) it speaks of the whole, and is left out. */
#ifndef WEIR_REPORTS_IN_USE_H
#define WEIR_REPORTS_IN_USE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/base/map.h"
#include "reports/import/schema.h"

typedef struct wr_owner {
  char *module; /* owned: a file's name; "(unknown)" */
  uint64_t bytes;
} wr_owner;

typedef struct wr_owners {
  wr_owner *owner; /* owned; the most first */
  size_t count;
} wr_owners;

typedef struct wr_moment {
  int64_t at;             /* ns since the trace began */
  uint64_t used;          /* the driver's word */
  uint64_t live, managed; /* bytes of blocks; managed ones may be anywhere and are in no sum */
  uint64_t cached;        /* by Weir */
  uint64_t pools, engine; /* reserved for the driver's pools and libweir's, and not in use */
  uint64_t graphs;        /* the same for graphs */
  uint64_t code;          /* modules with their variables, those that were measured */
  uint64_t contexts;      /* so measured */
  int64_t others;         /* other CUDA programs have more than at the first moment, by NVML */
  wr_owners of_live, of_code;
} wr_moment;

enum { WR_MOMENTS = 8, WR_SPREAD = 6 };

/* Who said what is in use. */
enum { WR_BY_DRIVER, WR_BY_NVML, WR_SAYERS };

typedef struct wr_in_use { /* of one device, by one of them */
  uint64_t samples,
      total;       /* times it was asked, as far as its answer changed; bytes of the device */
  uint64_t before; /* bytes */
  wr_moment moment[WR_MOMENTS];
  size_t moments; /* fewer where they are one */
  uint64_t ahead; /* in use by NVML before the driver was asked: without our contexts */
  bool has_ahead;
  int64_t after;        /* in use when all processes had ended; -1: not known */
  int64_t first_others; /* of other CUDA programs at the first moment; -1: not known */
} wr_in_use;

/* What a call took of a device. */
typedef struct wr_take {
  int64_t process, stack, context, handle, bytes;
  int64_t start, end; /* of the call */
  int64_t latest;     /* greatest end of those up to here */
  int64_t until;      /* a reset gave it back; INT64_MAX: none */
  int device, by;     /* taken_by */
  bool mixed;         /* a block began or ended meanwhile */
} wr_take;

/* What is summed up in the pass over the blocks. */
typedef struct wr_in_use_sums {
  wr_in_use *device[WR_SAYERS][256]; /* borrowed, NULL: it was never asked about */
  hash_map ends;                     /* process -> end + 1 */
  hash_map index;                    /* stack, device and moment -> place in `sum` */
  struct wr_in_use_sum {
    int64_t stack;
    uint64_t bytes;
    wr_moment *moment; /* borrowed */
  } * sum;
  size_t count, capacity;
  wr_take *take; /* by start */
  size_t take_count, take_capacity;
  bool any;
} wr_in_use_sums;

/* A block as the pass meets it. */
typedef struct wr_in_use_block {
  int64_t process, stack, start, end; /* end INT64_MAX: never freed */
  uint64_t bytes;
  int device, mem;
} wr_in_use_block;

/* Ahead of the pass: the moments of a device, for each that has samples. `of`: the places for it,
 * WR_SAYERS of them. */
weir_status wr_in_use_open(wr_in_use_sums *s, wr_in_use *(*of)(void *context, int device),
                           void *context, const wr_db *db);
weir_status wr_in_use_add(wr_in_use_sums *s, const wr_in_use_block *b, const wr_db *db);
/* After it. */
weir_status wr_in_use_finish(wr_in_use_sums *s, const wr_db *db);
void wr_in_use_sums_free(wr_in_use_sums *s);
void wr_in_use_free(wr_in_use *u); /* of a device: WR_SAYERS of them */

/* All that is known of, `before` apart; and what is not, by sign. */
uint64_t wr_in_use_known(const wr_moment *m);
int64_t wr_in_use_unexplained(const wr_in_use *u, const wr_moment *m);

#endif
