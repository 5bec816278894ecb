/* host.h: pinned (page-locked) host memory: the pools and where their memory comes from.
 *
 * A host pool is a weir_pool whose only heap is its idle heap: host memory is in no stream's order,
 * so what is freed and used by no recorded work may go to anybody at once. One host pool serves one
 * device (whose context locks the memory) and one set of flags.
 *
 * Words. slab: address space of the pool's own, near one memory node. chunk: a piece of a slab that
 * was locked by one registration, and one range of the pool: no block ever lies in two, because
 * CUDA's documents promise copies and device addresses within one registration only. A chunk that
 * the device itself made (write-combined memory) is the same without a slab. ahead: the chunk that
 * a thread in the background locked before anybody asked.
 *
 * Locks, in this order: the list of host pools (pinned.c), a host pool's, a device's pool's, the
 * thread caches' list, the records, the table of chunks. Blocks of a host pool name heaps of
 * devices (BLOCK_USE), whose epochs belong to those devices' pools; nothing that holds a device's
 * pool ever asks for a host pool.
 *
 * While memory is being locked, which takes milliseconds to seconds, no lock is held. */
#ifndef WEIR_MEMORY_HOST_H
#define WEIR_MEMORY_HOST_H

#include "core/memory/pool.h"

enum {
  HOST_FLAGS = 8,        /* sets of weir_host_flags */
  HOST_CHUNK = 32 << 20, /* bytes; the largest chunk for all. Larger requests get one each */
  HOST_EXACT = 64 << 20  /* bytes; from here on sizes are exact, below 8 classes a doubling */
};

/* How often, and how long it took, us. */
typedef struct weir_timing {
  uint64_t count, total, max, min;
} weir_timing;

/* A chunk on its way. */
typedef struct host_job {
  struct weir_host *host;
  char *at; /* NULL: the device makes it */
  uint64_t bytes;
  int node;    /* memory node it shall be on, -1: any */
  bool bound;  /* the kernel was told so */
  block_id id; /* its record, spoken for */
  uint64_t us; /* that it took */
} host_job;

typedef struct weir_host {
  weir_pool *pool;   /* owned; its lock guards all below */
  weir_pool *device; /* borrowed: whose backend locks the memory */
  unsigned flags;    /* weir_host_flags */
  bool registers;    /* memory of our own is registered; else the device makes it */
  weir_backend seam; /* what the pool takes for its device */
  char *tail, *end;  /* of the newest slab, what was not cut yet */
  uint64_t making;   /* bytes of the chunk for all that is being locked, 0: none */
  pthread_cond_t made;
  bool closing;   /* begin nothing in the background */
  uint64_t ahead; /* address of the chunk that was made ahead and not used yet, 0: none */
  host_job job;   /* the background's */
  weir_timing allocs, frees;
  char why[160]; /* why no more could be locked, the last time */
} weir_host;

/* What a walk over a host pool finds, bytes. */
typedef struct host_census {
  uint64_t live, pending, free, largest;
} host_census;

/* slab.c */
weir_status weir_host_new(weir_host **out, weir_pool *device, unsigned flags,
                          const weir_host_calls *calls);
/* For its table. */
weir_status weir_host_grow(weir_pool *p, const weir_heap *h, uint64_t bytes);
void weir_host_used(weir_pool *p, uint64_t address);
/* Errors: EINVAL while blocks are live. */
weir_status weir_host_free(weir_host *s);
/* Waits for the background; `closing`: it begins nothing any more. */
void weir_host_settle(weir_host *s, bool closing);
/* Bytes the process has locked in all host pools, and the most it shall, 0: no bound of ours. */
uint64_t weir_host_locked(void);
extern _Atomic uint64_t weir_host_limit;
/* Whether the address lies in a chunk. */
bool weir_host_owns(uint64_t address);

/* pinned.c: ends a device's pool, its host pools before it, and what others know of its streams.
 * Errors: those of weir_pool_free. */
weir_status weir_host_device_ends(weir_pool *device);

#endif
