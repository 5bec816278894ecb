/* policy.h: what an allocation policy is to the replay: one struct of functions, one table of them.
 *
 * A policy manages one heap. Below it is a driver that only counts: it knows its capacity and hands
 * out addresses, and no memory is touched. Time is the list's: the device is taken to have done the
 * work that an earlier operation waited for by the next allocation, which is the best case for
 * every policy that waits for work (an event recorded at a free has passed by then).
 *
 * Words. reserved: bytes the policy holds of the driver. segment call: a call of the driver that
 * takes or gives back device memory. sync: the host waits for the device; a stream that waits for
 * an event is a stream wait. */
#ifndef WEIR_TOOLS_REPLAY_POLICY_H
#define WEIR_TOOLS_REPLAY_POLICY_H

#include <stdbool.h>
#include "tools/replay/ops.h"

#define RP_MIB       (UINT64_C(1) << 20)
#define RP_UNLIMITED (UINT64_C(1) << 50) /* capacity of a device nobody limits */

typedef struct rp_driver {
  uint64_t capacity;      /* bytes */
  uint64_t reserved;      /* bytes taken now */
  uint64_t next;          /* address: no address is used twice */
  uint64_t segment_calls; /* so far, as are all below */
  uint64_t syncs;
  uint64_t stream_waits;
  uint64_t events; /* recorded */
} rp_driver;

/* An address of `bytes` of new memory, 2 MiB aligned; 0: the device is full. Counts no call. */
uint64_t rp_driver_take(rp_driver *driver, uint64_t bytes);
void rp_driver_give(rp_driver *driver, uint64_t bytes);

/* Address space without memory. */
uint64_t rp_driver_reserve(rp_driver *driver, uint64_t bytes);

/* What can be set for the policies. 0 is each one's default. */
typedef struct rp_options {
  uint64_t capacity;          /* bytes of a device; 0 unlimited */
  uint64_t max_split_size;    /* pytorch: bytes; 0 unlimited */
  double gc_threshold;        /* pytorch: fraction of the capacity; 0 off */
  uint64_t initial_pool_size; /* rmm-pool: bytes; 0 none */
  uint64_t maximum_pool_size; /* rmm-pool: bytes; 0 unset */
} rp_options;

typedef struct rp_policy {
  const char *name;
  const char *summary; /* one line */

  /* A heap on `driver` (borrowed). Errors: ENOMEM, EOOM (an initial pool does not fit). */
  weir_status (*open)(void **heap, rp_driver *driver, const rp_options *options);

  /* Serves `op`. *block is handed to free(), and *address is where it is. Errors: EOOM, after which
   * the heap goes on; ENOMEM, after which it can only be closed. */
  weir_status (*alloc)(void *heap, const rp_op *op, void **block, uint64_t *address);
  weir_status (*free)(void *heap, const rp_op *op, void *block);
  void (*close)(void *heap);
} rp_policy;

/* The table, in the order in which policies are shown; NULL ends it. */
extern const rp_policy *const rp_policies[];
const rp_policy *rp_policy_find(const char *name); /* NULL: none */

extern const rp_policy rp_weir, rp_weir_segments, rp_pytorch, rp_pytorch_expandable, rp_rmm_pool,
    rp_malloc;

static inline uint64_t rp_round(uint64_t bytes, uint64_t unit)
{
  return (bytes + unit - 1) / unit * unit;
}

#endif
