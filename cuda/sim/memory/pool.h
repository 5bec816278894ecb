/* pool.h: memory pools, as pool.c and pool_place.c share them. */
#ifndef WEIR_SIM_POOL_H
#define WEIR_SIM_POOL_H

#include "cuda/sim/internal.h"

struct CUmemPoolHandle_st {
  _Atomic uint32_t magic;
  struct sim_device *device;       /* NULL: of the host */
  CUmemLocation place;             /* that it was made for */
  int node;                        /* NUMA node its pages come from; -1: any */
  CUmemoryPool next;               /* pools of the process */
  struct block *blocks;            /* pending and kept */
  bool destroyed;                  /* the last block ends it */
  bool imported;                   /* of another process: its pointers only, no allocations */
  unsigned handle_types;           /* that it can be exported as */
  int32_t pid;                     /* of the process that made it, if it is exportable */
  uint64_t number;                 /* of it there, from 1; 0: not exportable */
  uint64_t live;                   /* allocations a program holds */
  int policy[4];                   /* REUSE_* by attribute number */
  cuuint64_t threshold;            /* bytes that may stay reserved */
  size_t most;                     /* bytes it may reserve; 0: any */
  uint8_t access[SIM_MAX_DEVICES]; /* cuMemPoolSetAccess, by device; reported, not enforced */
  cuuint64_t reserved, reserved_high, used, used_high;
};

/* A pool of that place, listed; NULL: no memory. */
CUmemoryPool sim_pool_new(struct sim_device *device, const CUmemLocation *place);
/* Counts what another process's memory that is mapped here takes; lock held. */
void sim_pool_count(CUmemoryPool pool, size_t bytes);
/* CUDA_SUCCESS: a place for pinned memory of the documented kinds. */
CUresult sim_pool_place(const CUmemLocation *place);

/* It is its place's, on the host: the default, or (sim_pool_replace: no longer, lock held) current.
 */
bool sim_pool_is_default(CUmemoryPool pool);
void sim_pool_replace(CUmemoryPool pool);

#endif
