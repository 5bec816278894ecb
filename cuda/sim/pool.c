/* pool.c: stream-ordered memory: cuMemAllocAsync, cuMemFreeAsync and the pools behind them.
 *
 * A freed block stays with its pool until the stream reaches the free (it is *pending*), and after
 * that as long as the pool's reserved memory is within its release threshold (it is *kept*). An
 * allocation of the same size takes a block that is kept, one pending in the same stream (the order
 * of the stream makes it safe), one whose free is done, and, before it gives up, one pending in
 * another stream, for which it makes its own stream wait: the reuse policies of the documentation
 * (CUDA C++ Programming Guide, "Stream Ordered Memory Allocator"). All under sim_memory_lock.
 */
#include "cuda/sim/internal.h"

#include <stdlib.h>
#include <string.h>

struct block {                /* freed, not yet given back */
  struct block *next, **link; /* of the pool's list */
  CUmemoryPool pool;
  uintptr_t start;
  size_t reserved;
  struct sim_ticket freed; /* stream NULL: kept */
  bool listed;             /* in the pool's list */
  bool taken;              /* used again: the record is the op's to free */
  bool reached;            /* the stream was at the free before the block was listed */
};

struct free_op {
  struct sim_op op;
  struct block *block;
};

struct CUmemPoolHandle_st {
  _Atomic uint32_t magic;
  struct sim_device *device;
  CUmemoryPool next;    /* pools of the process */
  struct block *blocks; /* pending and kept */
  bool destroyed;       /* the last block ends it */
  uint64_t live;        /* allocations a program holds */
  int policy[4];        /* REUSE_* by attribute number */
  cuuint64_t threshold; /* bytes that may stay reserved */
  cuuint64_t reserved, reserved_high, used, used_high;
};

struct sim_arena sim_pools = SIM_ARENA(struct CUmemPoolHandle_st, SIM_POOL);
static CUmemoryPool pools;

/* ---- accounting; lock held ----------------------------------------------------------------------
 */

static void count_reserved(CUmemoryPool p, size_t bytes)
{
  p->reserved += bytes;
  if (p->reserved > p->reserved_high) p->reserved_high = p->reserved;
}

static void count_used(CUmemoryPool p, size_t bytes)
{
  p->live++;
  p->used += bytes;
  if (p->used > p->used_high) p->used_high = p->used;
}

static void unlink_block(struct block *b)
{
  *b->link = b->next;
  if (b->next) b->next->link = b->link;
  b->listed = false;
}

static void link_block(struct block *b)
{
  b->next = b->pool->blocks;
  b->link = &b->pool->blocks;
  if (b->next) b->next->link = &b->next;
  b->pool->blocks = b;
  b->listed = true;
}

static void release_block(struct block *b)
{
  if (b->listed) unlink_block(b);
  sim_heap_free(b->pool->device, b->start, b->reserved);
  b->pool->reserved -= b->reserved;
  free(b);
}

static bool trim(CUmemoryPool p, size_t keep)
{
  bool some = false;
  for (struct block *b = p->blocks, *next; b && p->reserved > keep; b = next) {
    next = b->next;
    if (b->freed.stream) continue;
    release_block(b);
    some = true;
  }
  return some;
}

bool sim_pools_shrink(struct sim_device *device)
{
  bool some = false;
  for (CUmemoryPool p = pools; p; p = p->next)
    if (p->device == device) some |= trim(p, 0);
  return some;
}

static void end_if_empty(CUmemoryPool p)
{
  if (!p->destroyed || p->live || p->blocks) return;
  CUmemoryPool *link = &pools;
  while (*link != p)
    link = &(*link)->next;
  *link = p->next;
  sim_arena_free(&sim_pools, p);
}

/* A range of a pool ends otherwise than by cuMemFreeAsync. */
void sim_pool_forget(CUmemoryPool p, size_t reserved)
{
  p->live--;
  p->used -= reserved;
  p->reserved -= reserved;
  end_if_empty(p);
}

/* ---- blocks used again; lock held ---------------------------------------------------------------
 */

enum reuse { ANY_DONE, SAME_STREAM, ANY };

static struct block *find_block(CUmemoryPool p, size_t reserved, CUstream s, enum reuse how)
{
  for (struct block *b = p->blocks; b; b = b->next) {
    if (b->reserved != reserved) continue;
    if (how == ANY) return b;
    if (how == SAME_STREAM ? b->freed.stream == s
                           : !b->freed.stream || sim_is_done(b->freed.stream, b->freed.seq))
      return b;
  }
  return NULL;
}

/* The block leaves the pool's list; *wait is what the new owner's stream must wait for. */
static uintptr_t take_block(struct block *b, CUstream s, struct sim_ticket *wait)
{
  uintptr_t start = b->start;
  unlink_block(b);
  if (!b->freed.stream) {
    free(b);
    return start;
  }
  if (b->freed.stream != s && !sim_is_done(b->freed.stream, b->freed.seq)) {
    *wait = b->freed;
    sim_stream_ref(wait->stream);
  }
  b->taken = true;
  return start;
}

static size_t rounded(size_t bytes)
{
  size_t unit = bytes <= SIM_GRANULE / 2 ? SIM_UNIT : SIM_GRANULE;
  return (bytes + unit - 1) / unit * unit;
}

static uintptr_t find_memory(CUmemoryPool p, size_t bytes, CUstream s, struct sim_ticket *wait)
{
  size_t reserved = rounded(bytes);
  struct block *b = find_block(p, reserved, s, ANY_DONE);
  if (!b) b = find_block(p, reserved, s, SAME_STREAM);
  if (b) return take_block(b, s, wait);
  uintptr_t start;
  do
    start = sim_heap_alloc(p->device, bytes, &reserved);
  while (!start && sim_memory_shrink(p->device));
  if (start) {
    count_reserved(p, reserved);
    return start;
  }
  b = p->policy[CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES]
          ? find_block(p, rounded(bytes), s, ANY)
          : NULL;
  return b ? take_block(b, s, wait) : 0;
}

/* ---- allocating and freeing ---------------------------------------------------------------------
 */

/* What the stream does at an allocation: nothing, after the free it may have to wait for. */
static CUresult queue_wait(CUstream s, struct sim_ticket *wait)
{
  if (!wait->stream) return CUDA_SUCCESS;
  struct sim_op *op = sim_op_new(sizeof *op, NULL);
  CUresult error = op ? sim_op_after(op, wait->stream, wait->seq) : CUDA_ERROR_OUT_OF_MEMORY;
  sim_stream_unref(wait->stream);
  if (!error) return sim_submit(s, op, SIM_AT_ONCE, NULL);
  if (op) sim_op_free(op);
  return error;
}

static CUresult alloc_from(CUdeviceptr *out, size_t bytes, CUmemoryPool p, CUstream s)
{
  struct sim_ticket wait = {0};
  struct sim_range *r = sim_range_new(s->context, p->device, bytes);
  if (!r) return CUDA_ERROR_OUT_OF_MEMORY;
  r->pool = p;
  r->reserved = rounded(bytes);
  pthread_mutex_lock(&sim_memory_lock);
  r->start = find_memory(p, bytes, s, &wait);
  bool there = r->start && sim_range_add(r);
  if (there) count_used(p, r->reserved);
  pthread_mutex_unlock(&sim_memory_lock);
  if (!there) {
    free(r);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *out = r->start;
  return queue_wait(s, &wait);
}

CUresult sim_cuMemAllocFromPoolAsync(CUdeviceptr *p, size_t bytes, CUmemoryPool pool,
                                     CUstream stream)
{
  if (!p || !bytes) return CUDA_ERROR_INVALID_VALUE;
  if (!sim_arena_has(&sim_pools, pool)) return CUDA_ERROR_INVALID_VALUE;
  CUstream s;
  CUresult error = sim_stream_find(stream, &s);
  if (!error && sim_capturing(s)) return sim_capture_alloc(s, p, bytes, pool->device->ordinal);
  if (!error) error = sim_queue_barred(s);
  return error ? error : alloc_from(p, bytes, pool, s);
}

CUresult sim_cuMemAllocAsync(CUdeviceptr *p, size_t bytes, CUstream stream)
{
  if (!p || !bytes) return CUDA_ERROR_INVALID_VALUE;
  CUstream s;
  CUresult error = sim_stream_find(stream, &s);
  if (!error && sim_capturing(s))
    return sim_capture_alloc(s, p, bytes, s->context->device->ordinal);
  if (!error) error = sim_queue_barred(s);
  if (error) return error;
  pthread_mutex_lock(&sim_memory_lock);
  CUmemoryPool pool = s->context->device->pool;
  pthread_mutex_unlock(&sim_memory_lock);
  return alloc_from(p, bytes, pool, s);
}

/* The stream is past the free: the block is kept, or given back. Lock held. */
static void settle_block(struct block *b)
{
  CUmemoryPool p = b->pool;
  b->freed.stream = NULL;
  if (p->destroyed || p->reserved > p->threshold)
    release_block(b);
  else if (!b->listed)
    link_block(b);
  end_if_empty(p);
}

static void run_free(struct sim_op *op, CUstream s)
{
  (void)s;
  struct block *b = ((struct free_op *)op)->block;
  pthread_mutex_lock(&sim_memory_lock);
  if (b->taken)
    free(b);
  else if (b->listed)
    settle_block(b);
  else
    b->reached = true;
  pthread_mutex_unlock(&sim_memory_lock);
}

/* The program's allocation becomes a block, not listed yet; NULL: it is none. */
static struct block *detach(CUdeviceptr p, CUresult *error)
{
  struct block *b = calloc(1, sizeof *b);
  *error = b ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_OUT_OF_MEMORY;
  if (!b) return NULL;
  pthread_mutex_lock(&sim_memory_lock);
  struct sim_range *r = sim_range_at(p, 1);
  bool mine = r && r->start == p && r->kind == SIM_DEVICE && !r->hidden;
  if (mine) {
    b->pool = r->pool ? r->pool : r->device->default_pool;
    b->start = r->start;
    b->reserved = r->reserved;
    if (r->pool) {
      b->pool->live--;
      b->pool->used -= r->reserved;
    } else { /* cuMemFreeAsync of a cuMemAlloc: the default pool takes the memory over */
      count_reserved(b->pool, r->reserved);
    }
    sim_range_detach(r);
  }
  pthread_mutex_unlock(&sim_memory_lock);
  if (mine) return b;
  free(b);
  return NULL;
}

CUresult sim_cuMemFreeAsync(CUdeviceptr p, CUstream stream)
{
  CUstream s;
  CUresult error = sim_stream_find(stream, &s);
  if (error || !p) return error;
  if (sim_capturing(s)) return sim_capture_free(s, p);
  error = sim_queue_barred(s);
  if (error || sim_graph_memory_free_in(p, s, &error)) return error;
  struct free_op *op = sim_op_new(sizeof *op, run_free);
  if (!op) return CUDA_ERROR_OUT_OF_MEMORY;
  struct block *b = op->block = detach(p, &error);
  if (!b) {
    sim_op_free(&op->op);
    return error;
  }
  op->op.always = true;
  uint64_t seq = 0;
  error = sim_submit(s, &op->op, SIM_AT_ONCE, &seq);
  pthread_mutex_lock(&sim_memory_lock);
  if (error || b->reached) {
    settle_block(b);
  } else {
    b->freed = (struct sim_ticket){s, seq}; /* the op keeps the stream alive */
    link_block(b);
  }
  pthread_mutex_unlock(&sim_memory_lock);
  return error;
}

/* ---- pools --------------------------------------------------------------------------------------
 */

static CUmemoryPool pool_new(struct sim_device *d)
{
  CUmemoryPool p = sim_arena_new(&sim_pools);
  if (!p) return NULL;
  p->device = d;
  for (int i = CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES; i < 4; i++)
    p->policy[i] = 1;
  pthread_mutex_lock(&sim_memory_lock);
  p->next = pools;
  pools = p;
  pthread_mutex_unlock(&sim_memory_lock);
  return p;
}

CUresult sim_pools_start(struct sim_device *d)
{
  d->default_pool = d->pool = pool_new(d);
  return d->pool ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

#define NEED_POOL(p)                                                                               \
  if (!sim_arena_has(&sim_pools, p)) return CUDA_ERROR_INVALID_VALUE

CUresult sim_cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *props)
{
  if (!pool || !props || props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED)
    return CUDA_ERROR_INVALID_VALUE;
  if (props->handleTypes != CU_MEM_HANDLE_TYPE_NONE) return CUDA_ERROR_NOT_SUPPORTED;
  if (props->location.type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_NOT_SUPPORTED;
  struct sim_device *d = sim_device(props->location.id);
  if (!d) return CUDA_ERROR_INVALID_DEVICE;
  *pool = pool_new(d);
  return *pool ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* "If any pointers obtained from this pool haven't been freed ... the function will return
 * immediately and the resources ... released automatically"; a device's current pool becomes its
 * default again. */
CUresult sim_cuMemPoolDestroy(CUmemoryPool p)
{
  NEED_POOL(p);
  struct sim_device *d = p->device;
  if (p == d->default_pool) return CUDA_ERROR_INVALID_VALUE;
  pthread_mutex_lock(&sim_memory_lock);
  if (d->pool == p) d->pool = d->default_pool;
  p->destroyed = true;
  atomic_store(&p->magic, 0); /* the handle is dead, its memory may not be */
  trim(p, 0);
  end_if_empty(p);
  pthread_mutex_unlock(&sim_memory_lock);
  return CUDA_SUCCESS;
}

CUresult sim_cuMemPoolTrimTo(CUmemoryPool p, size_t keep)
{
  NEED_POOL(p);
  pthread_mutex_lock(&sim_memory_lock);
  trim(p, keep);
  pthread_mutex_unlock(&sim_memory_lock);
  return CUDA_SUCCESS;
}

CUresult sim_cuMemPoolSetAttribute(CUmemoryPool p, CUmemPool_attribute attribute, void *value)
{
  NEED_POOL(p);
  if (!value) return CUDA_ERROR_INVALID_VALUE;
  CUresult error = CUDA_SUCCESS;
  pthread_mutex_lock(&sim_memory_lock);
  switch ((int)attribute) {
  case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
  case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
  case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
    p->policy[attribute] = *(int *)value;
    break;
  case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
    p->threshold = *(cuuint64_t *)value;
    break;
  case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH: /* "can only be reset to zero" */
  case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
    if (*(cuuint64_t *)value)
      error = CUDA_ERROR_INVALID_VALUE;
    else if (attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH)
      p->reserved_high = p->reserved;
    else
      p->used_high = p->used;
    break;
  default:
    error = CUDA_ERROR_INVALID_VALUE;
  }
  pthread_mutex_unlock(&sim_memory_lock);
  return error;
}

CUresult sim_cuMemPoolGetAttribute(CUmemoryPool p, CUmemPool_attribute attribute, void *value)
{
  NEED_POOL(p);
  if (!value) return CUDA_ERROR_INVALID_VALUE;
  CUresult error = CUDA_SUCCESS;
  pthread_mutex_lock(&sim_memory_lock);
  switch ((int)attribute) {
  case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
  case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
  case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
    *(int *)value = p->policy[attribute];
    break;
#define POOL_ATTRIBUTE(name, field)                                                                \
  case CU_MEMPOOL_ATTR_##name:                                                                     \
    *(cuuint64_t *)value = p->field;                                                               \
    break
    POOL_ATTRIBUTE(RELEASE_THRESHOLD, threshold);
    POOL_ATTRIBUTE(RESERVED_MEM_CURRENT, reserved);
    POOL_ATTRIBUTE(RESERVED_MEM_HIGH, reserved_high);
    POOL_ATTRIBUTE(USED_MEM_CURRENT, used);
    POOL_ATTRIBUTE(USED_MEM_HIGH, used_high);
#undef POOL_ATTRIBUTE
  default:
    error = CUDA_ERROR_INVALID_VALUE;
  }
  pthread_mutex_unlock(&sim_memory_lock);
  return error;
}

/* All memory is within every device's reach here; what is asked for is checked. */
CUresult sim_cuMemPoolSetAccess(CUmemoryPool p, const CUmemAccessDesc *map, size_t count)
{
  NEED_POOL(p);
  for (size_t i = 0; i < count; i++) {
    if (!map || map[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE)
      return CUDA_ERROR_INVALID_VALUE;
    if (!sim_device(map[i].location.id)) return CUDA_ERROR_INVALID_DEVICE;
    if (map[i].flags == CU_MEM_ACCESS_FLAGS_PROT_NONE && map[i].location.id == p->device->ordinal)
      return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

CUresult sim_cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool p, CUmemLocation *where)
{
  NEED_POOL(p);
  if (!flags || !where || where->type != CU_MEM_LOCATION_TYPE_DEVICE)
    return CUDA_ERROR_INVALID_VALUE;
  if (!sim_device(where->id)) return CUDA_ERROR_INVALID_DEVICE;
  *flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice dev)
{
  if (!pool) return CUDA_ERROR_INVALID_VALUE;
  if (!sim_device(dev)) return CUDA_ERROR_INVALID_DEVICE;
  *pool = sim_device(dev)->default_pool;
  return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice dev)
{
  if (!pool) return CUDA_ERROR_INVALID_VALUE;
  struct sim_device *d = sim_device(dev);
  if (!d) return CUDA_ERROR_INVALID_DEVICE;
  pthread_mutex_lock(&sim_memory_lock);
  *pool = d->pool;
  pthread_mutex_unlock(&sim_memory_lock);
  return CUDA_SUCCESS;
}

CUresult sim_cuDeviceSetMemPool(CUdevice dev, CUmemoryPool p)
{
  struct sim_device *d = sim_device(dev);
  if (!d) return CUDA_ERROR_INVALID_DEVICE;
  NEED_POOL(p);
  if (p->device != d) return CUDA_ERROR_INVALID_VALUE;
  pthread_mutex_lock(&sim_memory_lock);
  d->pool = p;
  pthread_mutex_unlock(&sim_memory_lock);
  return CUDA_SUCCESS;
}

/* ---- by place: a device's pinned pools are all there are ----------------------------------------
 */

static CUresult check_place(const CUmemLocation *where, CUmemAllocationType type)
{
  if (!where) return CUDA_ERROR_INVALID_VALUE;
  if (type == CU_MEM_ALLOCATION_TYPE_MANAGED) return CUDA_ERROR_NOT_SUPPORTED;
  if (type != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
  switch ((int)where->type) {
  case CU_MEM_LOCATION_TYPE_DEVICE:
    return sim_device(where->id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
  case CU_MEM_LOCATION_TYPE_HOST:
  case CU_MEM_LOCATION_TYPE_HOST_NUMA:
    return CUDA_ERROR_NOT_SUPPORTED;
  default:
    return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult sim_cuMemGetDefaultMemPool(CUmemoryPool *pool, CUmemLocation *where,
                                    CUmemAllocationType type)
{
  CUresult error = check_place(where, type);
  return error ? error : sim_cuDeviceGetDefaultMemPool(pool, where->id);
}

CUresult sim_cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *where, CUmemAllocationType type)
{
  CUresult error = check_place(where, type);
  return error ? error : sim_cuDeviceGetMemPool(pool, where->id);
}

CUresult sim_cuMemSetMemPool(CUmemLocation *where, CUmemAllocationType type, CUmemoryPool pool)
{
  CUresult error = check_place(where, type);
  return error ? error : sim_cuDeviceSetMemPool(where->id, pool);
}
