/* pool.c: stream-ordered memory: cuMemAllocAsync, cuMemFreeAsync and their pools.
 *
 * A freed block stays with its pool until the stream reaches the free (it is *pending*), and after
 * that as long as the pool's reserved memory is within its release threshold (it is *kept*). An
 * allocation of the same size takes a block that is kept, one pending in the same stream (the order
 * of the stream makes it safe), one whose free is done, and, before it gives up, one pending in
 * another stream, for which it makes its own stream wait: the reuse policies of the documentation
 * (CUDA C++ Programming Guide, "Stream Ordered Memory Allocator"). A device's pool takes memory of
 * the device, one of the host pages of its own, of a NUMA node if it was made for one; what another
 * process exported is only mapped here. All under sim_memory_lock. */
#include "cuda/sim/memory/pool.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MPOL_PREFERRED 1 /* linux/mempolicy.h */

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

struct sim_arena sim_pools = SIM_ARENA(struct CUmemPoolHandle_st, SIM_POOL);
static CUmemoryPool pools;

/* ---- accounting; lock held ------------------------------------------------------------------- */

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

static bool has_device_memory(const CUmemoryPool p)
{
  return p->device && !p->imported;
}

static void release_block(struct block *b)
{
  if (b->listed) unlink_block(b);
  if (has_device_memory(b->pool))
    sim_heap_free(b->pool->device, b->start, b->reserved);
  else
    munmap((void *)b->start, b->reserved);
  b->pool->reserved -= b->reserved;
  free(b);
}

static bool trim_pool(CUmemoryPool p, size_t keep)
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
    if (p->device == device) some |= trim_pool(p, 0);
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

/* ---- blocks used again; lock held ------------------------------------------------------------ */

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
static uintptr_t take_pool_block(struct block *b, CUstream s, struct sim_ticket *wait)
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

static size_t rounded_size(const CUmemoryPool p, size_t bytes)
{
  size_t unit = !p->device                 ? (size_t)sysconf(_SC_PAGESIZE)
                : bytes <= SIM_GRANULE / 2 ? SIM_UNIT
                                           : SIM_GRANULE;
  return (bytes + unit - 1) / unit * unit;
}

/* Pages of the host, from the pool's node where the kernel allows that. */
static uintptr_t host_memory(CUmemoryPool p, size_t reserved)
{
  void *m = mmap(NULL, reserved, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (m == MAP_FAILED) return 0;
  unsigned long nodes = p->node >= 0 ? 1ul << p->node : 0;
  if (nodes) (void)syscall(SYS_mbind, m, reserved, MPOL_PREFERRED, &nodes, 8 * sizeof nodes + 1, 0);
  return (uintptr_t)m;
}

static uintptr_t device_memory(CUmemoryPool p, size_t bytes, size_t *reserved)
{
  uintptr_t start;
  do
    start = sim_heap_alloc(p->device, bytes, reserved);
  while (!start && sim_memory_shrink(p->device));
  return start;
}

/* New memory; what the pool keeps goes before it would pass its own limit. */
static uintptr_t new_memory(CUmemoryPool p, size_t bytes)
{
  size_t reserved = rounded_size(p, bytes);
  if (bytes > SIZE_MAX / 2 || (p->most && reserved > p->most)) return 0;
  if (p->most) trim_pool(p, p->most - reserved);
  if (p->most && p->reserved > p->most - reserved) return 0;
  uintptr_t start = p->device ? device_memory(p, bytes, &reserved) : host_memory(p, reserved);
  if (start) count_reserved(p, reserved);
  return start;
}

static uintptr_t find_pool_memory(CUmemoryPool p, size_t bytes, CUstream s, struct sim_ticket *wait)
{
  size_t reserved = rounded_size(p, bytes);
  struct block *b = find_block(p, reserved, s, ANY_DONE);
  if (!b) b = find_block(p, reserved, s, SAME_STREAM);
  if (b) return take_pool_block(b, s, wait);
  uintptr_t start = new_memory(p, bytes);
  if (start) return start;
  b = p->policy[CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES] ? find_block(p, reserved, s, ANY)
                                                                   : NULL;
  return b ? take_pool_block(b, s, wait) : 0;
}

/* ---- allocating and freeing ------------------------------------------------------------------ */

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
  struct sim_device *d = p->device ? p->device : s->context->device;
  struct sim_range *r = sim_range_new(SIM_DEVICE, s->context, d, bytes);
  if (!r) return CUDA_ERROR_OUT_OF_MEMORY;
  r->pool = p;
  r->reserved = rounded_size(p, bytes);
  if (!p->device) {
    r->kind = SIM_PINNED;
    r->flags = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP;
  }
  pthread_mutex_lock(&sim_memory_lock);
  size_t had = p->reserved;
  r->start = find_pool_memory(p, bytes, s, &wait);
  bool grown = p->reserved > had;
  bool there = r->start && sim_range_add(r);
  if (there) count_used(p, r->reserved);
  pthread_mutex_unlock(&sim_memory_lock);
  if (!there) {
    free(r);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *out = r->start;
  if (grown) sim_spend(SIM_COST_ALLOC, bytes);
  return queue_wait(s, &wait);
}

static CUresult capture_alloc(CUstream s, CUdeviceptr *out, size_t bytes, int device)
{
  CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC};
  p.alloc.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  p.alloc.poolProps.location = (CUmemLocation){CU_MEM_LOCATION_TYPE_DEVICE, device};
  p.alloc.bytesize = bytes;
  CUresult error = sim_capture_add(s, &p);
  if (!error) *out = p.alloc.dptr;
  return error;
}

static CUresult capture_free(CUstream s, CUdeviceptr p)
{
  CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEM_FREE, .free = {p}};
  return sim_capture_add(s, &params);
}

CUresult sim_cuMemAllocFromPoolAsync(CUdeviceptr *p, size_t bytes, CUmemoryPool pool,
                                     CUstream stream)
{
  if (!p || !bytes) return CUDA_ERROR_INVALID_VALUE;
  if (!sim_arena_has(&sim_pools, pool) || pool->imported) return CUDA_ERROR_INVALID_VALUE;
  CUstream s;
  CUresult error = sim_stream_find(stream, &s);
  if (!error && sim_capturing(s) && !pool->device) return CUDA_ERROR_NOT_SUPPORTED;
  if (!error && sim_capturing(s)) return capture_alloc(s, p, bytes, pool->device->ordinal);
  if (!error) error = sim_queue_barred(s);
  return error ? error : alloc_from(p, bytes, pool, s);
}

CUresult sim_cuMemAllocAsync(CUdeviceptr *p, size_t bytes, CUstream stream)
{
  if (!p || !bytes) return CUDA_ERROR_INVALID_VALUE;
  CUstream s;
  CUresult error = sim_stream_find(stream, &s);
  if (!error && sim_capturing(s)) return capture_alloc(s, p, bytes, s->context->device->ordinal);
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
  SIM_HOLD(sim_memory_lock);
  if (b->taken)
    free(b);
  else if (b->listed)
    settle_block(b);
  else
    b->reached = true;
}

/* The program's allocation becomes a block, not listed yet; NULL: it is none. */
static struct block *detach_range(CUdeviceptr p, CUresult *error)
{
  struct block *b = calloc(1, sizeof *b);
  *error = b ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_OUT_OF_MEMORY;
  if (!b) return NULL;
  pthread_mutex_lock(&sim_memory_lock);
  struct sim_range *r = sim_range_at(p, 1);
  bool mine = r && r->start == p && (r->kind == SIM_DEVICE || r->pool) && !r->hidden;
  if (mine) {
    b->pool = r->pool ? r->pool : r->device->default_pool;
    b->start = r->start;
    b->reserved = r->reserved;
    if (r->import) { /* its pages, which begin before it */
      size_t page = (size_t)sysconf(_SC_PAGESIZE);
      b->start -= r->start % page;
      free(r->import);
      r->import = NULL;
    }
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
  if (sim_capturing(s)) return capture_free(s, p);
  error = sim_queue_barred(s);
  if (error || sim_graph_memory_ops->free_in(p, s, &error)) return error;
  struct free_op *op = sim_op_new(sizeof *op, run_free);
  if (!op) return CUDA_ERROR_OUT_OF_MEMORY;
  struct block *b = op->block = detach_range(p, &error);
  if (!b) {
    sim_op_free(&op->op);
    return error;
  }
  op->op.always = true;
  uint64_t seq = 0;
  error = sim_submit(s, &op->op, SIM_AT_ONCE, &seq);
  SIM_HOLD(sim_memory_lock);
  if (error || b->reached) {
    settle_block(b);
  } else {
    b->freed = (struct sim_ticket){s, seq}; /* the op keeps the stream alive */
    link_block(b);
  }
  return error;
}

/* ---- pools ----------------------------------------------------------------------------------- */

CUmemoryPool sim_pool_new(struct sim_device *d, const CUmemLocation *place)
{
  CUmemoryPool p = sim_arena_new(&sim_pools);
  if (!p) return NULL;
  p->device = d;
  p->place = *place;
  p->node = place->type == CU_MEM_LOCATION_TYPE_HOST_NUMA ? place->id : -1;
  for (int i = CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES; i < 4; i++)
    p->policy[i] = 1;
  if (d) p->access[d->ordinal] = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  SIM_HOLD(sim_memory_lock);
  p->next = pools;
  pools = p;
  return p;
}

CUresult sim_pools_start(struct sim_device *d)
{
  const CUmemLocation here = {CU_MEM_LOCATION_TYPE_DEVICE, d->ordinal};
  d->default_pool = d->pool = sim_pool_new(d, &here);
  return d->pool ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

unsigned sim_pool_handle_types(CUmemoryPool p)
{
  return p->handle_types;
}

void sim_pool_count(CUmemoryPool p, size_t bytes)
{
  count_reserved(p, bytes);
  count_used(p, bytes);
}

#define NEED_POOL(p)                                                                               \
  if (!sim_arena_has(&sim_pools, p)) return CUDA_ERROR_INVALID_VALUE

static CUresult check_handle_types(const CUmemPoolProps *props, const struct sim_device *d)
{
  if (!props->handleTypes) return CUDA_SUCCESS;
  if (!d &&
      props->location.type == CU_MEM_LOCATION_TYPE_HOST) /* "any other values will result in" */
    return CUDA_ERROR_INVALID_VALUE;
  bool can = props->handleTypes == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR && d && d->file >= 0;
  return can ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

CUresult sim_cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *props)
{
  static _Atomic uint64_t numbers;
  if (!pool || !props || props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED || props->usage)
    return CUDA_ERROR_INVALID_VALUE;
  CUresult error = sim_pool_place(&props->location);
  bool of_device = props->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
  struct sim_device *d = of_device && !error ? sim_device(props->location.id) : NULL;
  if (!error) error = check_handle_types(props, d);
  if (error) return error;
  CUmemoryPool p = sim_pool_new(d, &props->location);
  if (!p) return CUDA_ERROR_OUT_OF_MEMORY;
  p->most = props->maxSize;
  p->handle_types = props->handleTypes;
  p->pid = getpid();
  if (p->handle_types) p->number = atomic_fetch_add(&numbers, 1) + 1;
  *pool = p;
  return CUDA_SUCCESS;
}

/* "If any pointers obtained from this pool haven't been freed ... the function will return
 * immediately and the resources ... released automatically"; a device's current pool becomes its
 * default again. */
CUresult sim_cuMemPoolDestroy(CUmemoryPool p)
{
  NEED_POOL(p);
  struct sim_device *d = p->device;
  if ((d && p == d->default_pool) || sim_pool_is_default(p)) return CUDA_ERROR_INVALID_VALUE;
  SIM_HOLD(sim_memory_lock);
  if (d && d->pool == p) d->pool = d->default_pool;
  sim_pool_replace(p);
  p->destroyed = true;
  atomic_store(&p->magic, 0); /* the handle is dead, its memory may not be */
  trim_pool(p, 0);
  end_if_empty(p);
  return CUDA_SUCCESS;
}

CUresult sim_cuMemPoolTrimTo(CUmemoryPool p, size_t keep)
{
  NEED_POOL(p);
  SIM_HOLD(sim_memory_lock);
  trim_pool(p, keep);
  return CUDA_SUCCESS;
}

CUresult sim_cuMemPoolSetAttribute(CUmemoryPool p, CUmemPool_attribute attribute, void *value)
{
  NEED_POOL(p);
  if (!value) return CUDA_ERROR_INVALID_VALUE;
  CUresult error = CUDA_SUCCESS;
  SIM_HOLD(sim_memory_lock);
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
  return error;
}

CUresult sim_cuMemPoolGetAttribute(CUmemoryPool p, CUmemPool_attribute attribute, void *value)
{
  NEED_POOL(p);
  if (!value) return CUDA_ERROR_INVALID_VALUE;
  CUresult error = CUDA_SUCCESS;
  SIM_HOLD(sim_memory_lock);
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
  return error;
}

/* All memory is within every device's reach here; what is asked for is checked, and reported. */
CUresult sim_cuMemPoolSetAccess(CUmemoryPool p, const CUmemAccessDesc *map, size_t count)
{
  NEED_POOL(p);
  for (size_t i = 0; i < count; i++) {
    if (!map || map[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE)
      return CUDA_ERROR_INVALID_VALUE;
    if (!sim_device(map[i].location.id)) return CUDA_ERROR_INVALID_DEVICE;
    bool own = p->device && map[i].location.id == p->device->ordinal;
    if (map[i].flags == CU_MEM_ACCESS_FLAGS_PROT_NONE && own) return CUDA_ERROR_INVALID_VALUE;
  }
  for (size_t i = 0; i < count; i++)
    p->access[map[i].location.id] = (uint8_t)map[i].flags;
  return CUDA_SUCCESS;
}

/* The host reaches its own pools. */
CUresult sim_cuMemPoolGetAccess(CUmemAccess_flags *flags, CUmemoryPool p, CUmemLocation *where)
{
  NEED_POOL(p);
  if (!flags || !where) return CUDA_ERROR_INVALID_VALUE;
  if (where->type == CU_MEM_LOCATION_TYPE_HOST || where->type == CU_MEM_LOCATION_TYPE_HOST_NUMA) {
    *flags = p->device ? CU_MEM_ACCESS_FLAGS_PROT_NONE : CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return CUDA_SUCCESS;
  }
  if (where->type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
  if (!sim_device(where->id)) return CUDA_ERROR_INVALID_DEVICE;
  *flags = (CUmemAccess_flags)p->access[where->id];
  return CUDA_SUCCESS;
}

SIM_ASSIGN(cuDeviceGetDefaultMemPool, SIM_NEED(pool_out);
           SIM_NEED_DEVICE(dev), *pool_out, sim_device(dev)->default_pool)

SIM_ASSIGN(cuDeviceGetMemPool, SIM_NEED(pool); SIM_NEED_DEVICE(dev);
           SIM_HOLD(sim_memory_lock), *pool, sim_device(dev)->pool)

CUresult sim_cuDeviceSetMemPool(CUdevice dev, CUmemoryPool p)
{
  struct sim_device *d = sim_device(dev);
  if (!d) return CUDA_ERROR_INVALID_DEVICE;
  NEED_POOL(p);
  if (p->device != d || p->imported) return CUDA_ERROR_INVALID_VALUE;
  SIM_HOLD(sim_memory_lock);
  d->pool = p;
  return CUDA_SUCCESS;
}
