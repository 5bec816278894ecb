/* host.h: pinned (page-locked) host memory: the pools and where their memory comes from.
 *
 * A host pool is a mem_pool whose only heap is its idle heap: host memory is in no stream's order,
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
typedef struct host_timing {
  uint64_t count, total, max, min;
} host_timing;

/* A chunk on its way. */
typedef struct host_job {
  struct host_pool *host;
  char *at; /* NULL: the device makes it */
  uint64_t bytes;
  int node;    /* memory node it shall be on, -1: any */
  bool bound;  /* the kernel was given the node */
  block_id id; /* its record, spoken for */
  uint64_t us; /* that it took */
} host_job;

typedef struct host_pool {
  mem_pool *pool;    /* owned; its lock guards all below */
  mem_pool *device;  /* borrowed: whose backend locks the memory */
  unsigned flags;    /* weir_host_flags */
  bool registers;    /* memory of our own is registered; else the device makes it */
  weir_backend seam; /* what the pool takes for its device */
  char *tail, *end;  /* of the newest slab, what was not cut yet */
  uint64_t making;   /* bytes of the chunk for all that is being locked, 0: none */
  pthread_cond_t made;
  bool closing;   /* begin nothing in the background */
  uint64_t ahead; /* address of the chunk that was made in advance and not used yet, 0: none */
  host_job job;   /* the background's */
  host_timing allocs, frees;
  char why[160]; /* why no more could be locked, the last time */
} host_pool;

/* What a walk over a host pool finds, bytes. */
typedef struct host_census {
  uint64_t live, pending, free, largest;
} host_census;

/* slab.c */
weir_status host_pool_new(host_pool **out, mem_pool *device, unsigned flags,
                          const host_pool_calls *calls);
/* For its table. */
weir_status host_pool_grow(mem_pool *p, const mem_heap *h, uint64_t bytes);
void host_pool_used(mem_pool *p, uint64_t address);
/* Errors: EINVAL while blocks are live. */
weir_status host_pool_free(host_pool *s);
/* Waits for the background; `closing`: it begins nothing any more. */
void host_pool_settle(host_pool *s, bool closing);
/* Bytes the process has locked in all host pools, and the most it shall, 0: no bound of ours. */
uint64_t host_pool_locked(void);
extern _Atomic uint64_t host_pool_limit;
/* Whether the address lies in a chunk. */
bool host_pool_owns(uint64_t address);

/* pinned.c: ends a device's pool, its host pools before it, and what others know of its streams.
 * Errors: those of pool_free. */
weir_status host_pool_device_ends(mem_pool *device);

#endif
