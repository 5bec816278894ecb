/* memory.c: allocations and registrations, and what can be asked about a pointer.
 *
 * Every piece of memory CUDA was notified of is a *range* in one ordered tree (all devices, host
 * memory too, since addresses are unified): the tree answers frees, bounds of copies, pointer
 * attributes and whether host memory is pinned. A range belongs to a context and dies with it; a
 * mapping (vmm.c) and a graph's allocation (graph_memory.c) belong to none. */
#include "cuda/sim/memory/ipc.h"

#include <search.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

pthread_mutex_t sim_memory_lock = PTHREAD_MUTEX_INITIALIZER;
const struct sim_graph_memory_ops *sim_graph_memory_ops;

static void *tree;           /* of struct sim_range, by address */
static uint64_t next_id = 1; /* buffer ids; lock */

/* ---- what modules and contexts take
 * ----------------------------------------------------------- */

bool sim_overhead_take(struct sim_device *d, size_t bytes)
{
  SIM_HOLD(sim_memory_lock);
  return sim_heap_charge(d, bytes);
}

void sim_overhead_give(struct sim_device *d, size_t bytes)
{
  SIM_HOLD(sim_memory_lock);
  d->used -= bytes;
}

/* ---- ranges ---------------------------------------------------------------------------------- */

/* Ranges that touch compare as equal, so that one search finds whatever touches a span. */
static int compare_blocks(const void *left, const void *right)
{
  const struct sim_range *a = left, *b = right;
  if (a->start + a->bytes <= b->start) return -1;
  if (a->start >= b->start + b->bytes) return 1;
  return 0;
}

struct sim_range *sim_range_touching(uintptr_t address, size_t bytes)
{
  struct sim_range key = {.start = address, .bytes = bytes ? bytes : 1};
  if (key.start + key.bytes < key.start) key.bytes = UINTPTR_MAX - key.start;
  struct sim_range **found = (struct sim_range **)tfind(&key, &tree, compare_blocks);
  return found ? *found : NULL;
}

struct sim_range *sim_range_at(uintptr_t address, size_t bytes)
{
  struct sim_range *r = sim_range_touching(address, 1);
  return r && address - r->start <= r->bytes && bytes <= r->bytes - (address - r->start) ? r : NULL;
}

struct sim_range *sim_range_reach(uintptr_t address, size_t bytes, uint32_t *readers,
                                  uint32_t *writers)
{
  *readers = *writers = UINT32_MAX;
  struct sim_range *first = sim_range_touching(address, 1), *r = first;
  if (!first || first->kind != SIM_MAPPED) return sim_range_at(address, bytes);
  uintptr_t end = address + bytes;
  if (end < address) return NULL;
  for (;;) {
    *readers &= r->readers;
    *writers &= r->writers;
    uintptr_t next = r->start + r->bytes;
    if (end <= next) return first;
    r = sim_range_touching(next, 1);
    if (!r || r->within != first->within) return NULL;
  }
}

bool sim_range_add(struct sim_range *r)
{
  if (!tsearch(r, &tree, compare_blocks)) return false;
  r->id = next_id++;
  if (!r->context) return true;
  r->next = r->context->ranges;
  r->link = &r->context->ranges;
  if (r->next) r->next->link = &r->next;
  r->context->ranges = r;
  sim_context_ref(r->context);
  return true;
}

void sim_range_detach(struct sim_range *r)
{
  sim_export_end(r);
  tdelete(r, &tree, compare_blocks);
  if (r->context) {
    *r->link = r->next;
    if (r->next) r->next->link = r->link;
    sim_context_unref(r->context);
  }
  free(r);
}

void sim_range_remove(struct sim_range *r)
{
  if (r->kind == SIM_DEVICE)
    sim_heap_free(r->device, r->start, r->reserved);
  else if (r->kind == SIM_IMPORTED)
    sim_import_end(r);
  else if (r->kind != SIM_REGISTERED)
    munmap((void *)r->start, r->reserved);
  if (r->pool) sim_pool_forget(r->pool, r->reserved);
  sim_range_detach(r);
}

void sim_ranges_free_of(CUcontext c)
{
  SIM_HOLD(sim_memory_lock);
  for (struct sim_range *r = c->ranges, *next; r; r = next) {
    next = r->next;
    sim_range_remove(r);
  }
}

struct sim_range *sim_range_new(enum sim_kind kind, CUcontext c, struct sim_device *device,
                                size_t bytes)
{
  struct sim_range *r = calloc(1, sizeof *r);
  if (!r) return NULL;
  r->kind = kind;
  r->bytes = bytes;
  r->context = c;
  r->device = device;
  return r;
}

bool sim_memory_shrink(struct sim_device *device)
{
  return sim_pools_shrink(device) || sim_graph_memory_ops->trim(device);
}

struct sim_range *sim_range_device(CUcontext c, size_t bytes, CUresult *error)
{
  struct sim_range *r = sim_range_new(SIM_DEVICE, c, c->device, bytes);
  *error = CUDA_ERROR_OUT_OF_MEMORY;
  if (!r) return NULL;
  pthread_mutex_lock(&sim_memory_lock);
  do
    r->start = sim_heap_alloc(c->device, bytes, &r->reserved);
  while (!r->start && sim_memory_shrink(c->device));
  bool there = r->start && sim_range_add(r);
  if (r->start && !there) sim_heap_free(c->device, r->start, r->reserved);
  pthread_mutex_unlock(&sim_memory_lock);
  if (!there) {
    free(r);
    return NULL;
  }
  *error = CUDA_SUCCESS;
  return r;
}

/* Host memory of a range: pages of its own, so that nothing else shares them. */
static CUresult map_range(CUcontext c, enum sim_kind kind, size_t bytes, unsigned flags,
                          uintptr_t *start)
{
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  if (bytes > SIZE_MAX / 2) return CUDA_ERROR_OUT_OF_MEMORY;
  struct sim_range *r = sim_range_new(kind, c, c->device, bytes);
  if (!r) return CUDA_ERROR_OUT_OF_MEMORY;
  r->flags = flags;
  r->reserved = (bytes + page - 1) / page * page;
  void *p = mmap(NULL, r->reserved, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) {
    free(r);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  r->start = (uintptr_t)p;
  pthread_mutex_lock(&sim_memory_lock);
  bool there = sim_range_add(r);
  pthread_mutex_unlock(&sim_memory_lock);
  if (!there) {
    munmap(p, r->reserved);
    free(r);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *start = (uintptr_t)p;
  return CUDA_SUCCESS;
}

/* Whoever frees device memory also frees what is of a pool, wherever that is. */
static bool of_kinds(const struct sim_range *r, unsigned kinds)
{
  return r->pool ? kinds >> SIM_DEVICE & 1 : kinds >> r->kind & 1;
}

/* Frees the range that begins at `start` and is of a kind in `kinds` (bits), once the work of its
 * context is done: memory in use by queued work is never taken away. */
static CUresult free_range(uintptr_t start, unsigned kinds, CUresult missing)
{
  pthread_mutex_lock(&sim_memory_lock);
  struct sim_range *r = sim_range_at(start, 1);
  bool there = r && r->start == start && of_kinds(r, kinds) && !r->hidden && !r->graph;
  bool of_graph = !there && r && r->graph;
  CUcontext c = there ? r->context : NULL;
  if (c) sim_context_ref(c);
  pthread_mutex_unlock(&sim_memory_lock);
  if (of_graph) return sim_graph_memory_ops->free(start);
  if (!there) return missing;
  CUresult error = sim_context_wait(c);
  pthread_mutex_lock(&sim_memory_lock);
  r = error ? NULL : sim_range_at(start, 1);
  there = r && r->start == start && r->context == c && of_kinds(r, kinds);
  if (there) sim_range_remove(r);
  pthread_mutex_unlock(&sim_memory_lock);
  sim_context_unref(c);
  return error ? error : there ? CUDA_SUCCESS : missing;
}

CUresult sim_range_free(uintptr_t start, enum sim_kind kind)
{
  return free_range(start, 1u << kind, CUDA_ERROR_INVALID_VALUE);
}

/* ---- device memory --------------------------------------------------------------------------- */

CUresult sim_cuMemAlloc_v2(CUdeviceptr *p, size_t bytes)
{
  SIM_SAFE();
  SIM_NEED_CONTEXT(c);
  if (!p || !bytes) return CUDA_ERROR_INVALID_VALUE;
  CUresult error;
  struct sim_range *r = sim_range_device(c, bytes, &error);
  if (r) *p = r->start;
  sim_spend(SIM_COST_ALLOC, bytes);
  return error;
}

CUresult sim_cuMemAllocPitch_v2(CUdeviceptr *p, size_t *pitch, size_t width, size_t height,
                                unsigned int element)
{
  if (!p || !pitch || !width || !height) return CUDA_ERROR_INVALID_VALUE;
  if (element != 4 && element != 8 && element != 16) return CUDA_ERROR_INVALID_VALUE;
  size_t row = (width + SIM_UNIT - 1) / SIM_UNIT * SIM_UNIT;
  if (row < width || row > SIZE_MAX / height) return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult error = sim_cuMemAlloc_v2(p, row * height);
  if (!error) *pitch = row;
  return error;
}

/* cuMemFree waits for the device (CUDA C++ Programming Guide, "Implicit Synchronization", and the
 * stream-ordered allocator's chapter, which contrasts with it). */
CUresult sim_cuMemFree_v2(CUdeviceptr p)
{
  SIM_SAFE();
  SIM_NEED_CURRENT();
  if (!p) return CUDA_SUCCESS;
  sim_spend(SIM_COST_FREE, 0);
  return free_range(p, 1u << SIM_DEVICE | 1u << SIM_MANAGED, CUDA_ERROR_INVALID_VALUE);
}

CUresult sim_cuMemAllocManaged(CUdeviceptr *p, size_t bytes, unsigned int flags)
{
  SIM_SAFE();
  SIM_NEED_CONTEXT(c);
  if (!p || !bytes) return CUDA_ERROR_INVALID_VALUE;
  if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST) return CUDA_ERROR_INVALID_VALUE;
  uintptr_t start;
  CUresult error = map_range(c, SIM_MANAGED, bytes, flags, &start);
  if (!error) *p = start;
  return error;
}

CUresult sim_cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
  SIM_NEED_CONTEXT(c);
  size_t capacity = atomic_load(&c->device->capacity);
  pthread_mutex_lock(&sim_memory_lock);
  size_t used = c->device->used;
  pthread_mutex_unlock(&sim_memory_lock);
  if (free_bytes) *free_bytes = used < capacity ? capacity - used : 0;
  if (total) *total = capacity;
  return CUDA_SUCCESS;
}

CUresult sim_cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr p)
{
  SIM_NEED_CURRENT();
  SIM_HOLD(sim_memory_lock);
  struct sim_range *r = sim_range_at(p, 1);
  if (r && base) *base = r->start;
  if (r && bytes) *bytes = r->bytes;
  return r ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

/* ---- host memory ----------------------------------------------------------------------------- */

/* Page-locked memory has its pages once it is made, and what that takes is a part of what a card's costs are: without
 * one its pages come as they are touched. */
static void take_pages(void *p, size_t bytes)
{
  if (!atomic_load_explicit(&sim_has_card, memory_order_relaxed)) return;
  uint64_t began = sim_now_ns();
  (void)madvise(p, bytes, MADV_POPULATE_WRITE);
  sim_spend_since(SIM_COST_PIN, bytes, began);
}

CUresult sim_cuMemHostAlloc(void **p, size_t bytes, unsigned int flags)
{
  SIM_SAFE();
  SIM_NEED_CONTEXT(c);
  const unsigned known =
      CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
  if (!p || !bytes || flags & ~known) return CUDA_ERROR_INVALID_VALUE;
  uintptr_t start;
  CUresult error = map_range(c, SIM_PINNED, bytes, flags, &start);
  if (!error) *p = (void *)start;
  if (!error) take_pages(*p, bytes);
  return error;
}

/* What it costs to give page-locked memory back. */
static void spend_unpin(const void *p)
{
  if (!atomic_load_explicit(&sim_has_card, memory_order_relaxed)) return;
  pthread_mutex_lock(&sim_memory_lock);
  const struct sim_range *r = sim_range_at((uintptr_t)p, 1);
  size_t bytes = r ? r->bytes : 0;
  pthread_mutex_unlock(&sim_memory_lock);
  sim_spend(SIM_COST_UNPIN, bytes);
}

SIM_ENTRY(cuMemAllocHost_v2, sim_cuMemHostAlloc(pp, bytesize, 0))
SIM_CHECKED(cuMemFreeHost, SIM_SAFE(); SIM_NEED_CURRENT();
            spend_unpin(p), free_range((uintptr_t)p, 1u << SIM_PINNED, CUDA_ERROR_INVALID_VALUE))

CUresult sim_cuMemHostRegister_v2(void *p, size_t bytes, unsigned int flags)
{
  SIM_SAFE();
  SIM_NEED_CONTEXT(c);
  const unsigned known = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP |
                         CU_MEMHOSTREGISTER_IOMEMORY | CU_MEMHOSTREGISTER_READ_ONLY;
  if (!p || !bytes || flags & ~known || (uintptr_t)p + bytes < (uintptr_t)p)
    return CUDA_ERROR_INVALID_VALUE;
  if (flags & CU_MEMHOSTREGISTER_IOMEMORY) return CUDA_ERROR_NOT_SUPPORTED;
  struct sim_range *r = sim_range_new(SIM_REGISTERED, c, c->device, bytes);
  if (!r) return CUDA_ERROR_OUT_OF_MEMORY;
  r->flags = flags;
  r->start = (uintptr_t)p;
  CUresult error = CUDA_SUCCESS;
  pthread_mutex_lock(&sim_memory_lock);
  struct sim_range *other = sim_range_touching(r->start, bytes);
  if (other)
    error = other->kind == SIM_REGISTERED || other->kind == SIM_PINNED
                ? CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED
                : CUDA_ERROR_INVALID_VALUE;
  else if (!sim_range_add(r))
    error = CUDA_ERROR_OUT_OF_MEMORY;
  pthread_mutex_unlock(&sim_memory_lock);
  if (error)
    free(r);
  else
    sim_spend(SIM_COST_PIN, bytes);
  return error;
}

CUresult sim_cuMemHostUnregister(void *p)
{
  SIM_SAFE();
  SIM_NEED_CURRENT();
  if (!p) return CUDA_ERROR_INVALID_VALUE;
  spend_unpin(p);
  return free_range((uintptr_t)p, 1u << SIM_REGISTERED, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

static CUresult host_range(const void *p, unsigned *flags, CUdeviceptr *device)
{
  SIM_HOLD(sim_memory_lock);
  struct sim_range *r = sim_range_at((uintptr_t)p, 1);
  if (r && r->kind != SIM_PINNED && r->kind != SIM_REGISTERED) r = NULL;
  if (r && flags) *flags = r->flags;
  if (r && device) *device = (CUdeviceptr)(uintptr_t)p; /* addresses are unified */
  return r ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

SIM_CHECKED(cuMemHostGetDevicePointer_v2, SIM_NEED_CURRENT();
            SIM_NEED(pdptr && !Flags), host_range(p, NULL, pdptr))
SIM_CHECKED(cuMemHostGetFlags, SIM_NEED_CURRENT(); SIM_NEED(pFlags), host_range(p, pFlags, NULL))

/* ---- pointer attributes ---------------------------------------------------------------------- */

/* Of the current context's device. */
static unsigned access_flags(const struct sim_range *r)
{
  if (!r) return CU_POINTER_ATTRIBUTE_ACCESS_FLAG_NONE;
  CUcontext c = sim_current();
  bool peer = r->kind == SIM_DEVICE && !r->pool && c && c->device != r->device;
  if (peer && !(__atomic_load_n(&c->peers, __ATOMIC_RELAXED) >> r->device->ordinal & 1))
    return CU_POINTER_ATTRIBUTE_ACCESS_FLAG_NONE;
  if (r->kind != SIM_MAPPED) return CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE;
  int bit = c ? c->device->ordinal : r->device->ordinal;
  return r->writers >> bit & 1   ? CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE
         : r->readers >> bit & 1 ? CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READ
                                 : CU_POINTER_ATTRIBUTE_ACCESS_FLAG_NONE;
}

/* The attribute of a pointer into `r` (NULL: unknown memory), stored in the type the documentation
 * gives for it. */
static CUresult pointer_attribute(void *data, CUpointer_attribute attribute, CUdeviceptr p,
                                  const struct sim_range *r)
{
  bool host = r && (r->kind == SIM_PINNED || r->kind == SIM_REGISTERED);
  uintptr_t start = r ? r->start : 0;
  size_t bytes = r ? r->bytes : 0;
  if (!r || r->kind == SIM_MAPPED) sim_reserved_at(p, &start, &bytes); /* not the mapped region */
  bool both = host || (r && r->kind == SIM_MANAGED);
  switch ((int)attribute) {
#define POINTER_ATTRIBUTE(name, type, value)                                                       \
  case CU_POINTER_ATTRIBUTE_##name:                                                                \
    *(type *)data = (value);                                                                       \
    return CUDA_SUCCESS
    POINTER_ATTRIBUTE(CONTEXT, CUcontext, r ? r->context : NULL);
    POINTER_ATTRIBUTE(MEMORY_TYPE, unsigned,
                      !r     ? 0u
                      : host ? CU_MEMORYTYPE_HOST
                             : CU_MEMORYTYPE_DEVICE);
    POINTER_ATTRIBUTE(DEVICE_POINTER, CUdeviceptr, r ? p : 0);
    POINTER_ATTRIBUTE(HOST_POINTER, void *, both ? (void *)p : NULL);
    POINTER_ATTRIBUTE(SYNC_MEMOPS, unsigned, r && r->sync_memops);
    POINTER_ATTRIBUTE(BUFFER_ID, unsigned long long, r ? r->id : 0);
    POINTER_ATTRIBUTE(IS_MANAGED, unsigned, r && r->kind == SIM_MANAGED);
    POINTER_ATTRIBUTE(DEVICE_ORDINAL, int, r ? r->device->ordinal : -2);
    POINTER_ATTRIBUTE(IS_LEGACY_CUDA_IPC_CAPABLE, unsigned, r &&sim_range_exports(r));
    POINTER_ATTRIBUTE(RANGE_START_ADDR, CUdeviceptr, start);
    POINTER_ATTRIBUTE(RANGE_SIZE, size_t, bytes);
    POINTER_ATTRIBUTE(MAPPED, unsigned, r != NULL);
    POINTER_ATTRIBUTE(ALLOWED_HANDLE_TYPES, unsigned long long,
                      r && r->physical ? sim_physical_handle_types(r->physical)
                      : r && r->pool   ? sim_pool_handle_types(r->pool)
                                       : 0);
    POINTER_ATTRIBUTE(IS_GPU_DIRECT_RDMA_CAPABLE, unsigned, 0);
    POINTER_ATTRIBUTE(ACCESS_FLAGS, unsigned, access_flags(r));
    POINTER_ATTRIBUTE(MEMPOOL_HANDLE, CUmemoryPool, r ? r->pool : NULL);
    POINTER_ATTRIBUTE(MAPPING_SIZE, size_t, r ? r->reserved : 0);
    POINTER_ATTRIBUTE(MAPPING_BASE_ADDR, CUdeviceptr, r ? r->start : 0);
    POINTER_ATTRIBUTE(MEMORY_BLOCK_ID, unsigned long long, r ? r->id : 0);
    POINTER_ATTRIBUTE(IS_HW_DECOMPRESS_CAPABLE, unsigned, 0);
#undef POINTER_ATTRIBUTE
  default:
    return CUDA_ERROR_INVALID_VALUE;
  }
}

static CUresult attribute_of(void *data, CUpointer_attribute attribute, CUdeviceptr p, bool strict)
{
  SIM_HOLD(sim_memory_lock);
  struct sim_range *r = sim_range_at(p, 1);
  bool known = r || sim_reserved_at(p, NULL, NULL);
  CUresult error =
      known || !strict ? pointer_attribute(data, attribute, p, r) : CUDA_ERROR_INVALID_VALUE;
  return error;
}

SIM_ENTRY(cuPointerGetAttribute,
          data ? attribute_of(data, attribute, ptr, true) : CUDA_ERROR_INVALID_VALUE)

/* "Unlike cuPointerGetAttribute, this function will not return an error when the ptr encountered is
 * not a valid CUDA pointer. Instead, the attributes are assigned default NULL values". */
CUresult sim_cuPointerGetAttributes(unsigned int count, CUpointer_attribute *attributes,
                                    void **data, CUdeviceptr p)
{
  if (!count || !attributes || !data) return CUDA_ERROR_INVALID_VALUE;
  CUresult error = CUDA_SUCCESS;
  for (unsigned i = 0; i < count && !error; i++)
    error = data[i] ? attribute_of(data[i], attributes[i], p, false) : CUDA_ERROR_INVALID_VALUE;
  return error;
}

CUresult sim_cuPointerSetAttribute(const void *value, CUpointer_attribute attribute, CUdeviceptr p)
{
  if (!value || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS) return CUDA_ERROR_INVALID_VALUE;
  SIM_HOLD(sim_memory_lock);
  struct sim_range *r = sim_range_at(p, 1);
  if (r && r->kind != SIM_DEVICE && r->kind != SIM_MAPPED) r = NULL;
  if (r) r->sync_memops = *(const unsigned *)value != 0;
  return r ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

/* ---- managed memory: hints ------------------------------------------------------------------- */

static bool is_managed(CUdeviceptr p, size_t bytes)
{
  SIM_HOLD(sim_memory_lock);
  struct sim_range *r = sim_range_at(p, bytes);
  bool managed = r && r->kind == SIM_MANAGED;
  return managed;
}

#define NEED_PLACE(is_device, id)                                                                  \
  if ((is_device) && !sim_device(id)) return CUDA_ERROR_INVALID_DEVICE

static CUresult advise(CUdeviceptr p, size_t bytes, CUmem_advise advice)
{
  if (!bytes || advice < CU_MEM_ADVISE_SET_READ_MOSTLY || advice > CU_MEM_ADVISE_UNSET_ACCESSED_BY)
    return CUDA_ERROR_INVALID_VALUE;
  return is_managed(p, bytes) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

SIM_CHECKED(cuMemAdvise, NEED_PLACE(device != CU_DEVICE_CPU, device), advise(devPtr, count, advice))
SIM_CHECKED(cuMemAdvise_v2, NEED_PLACE(location.type == CU_MEM_LOCATION_TYPE_DEVICE, location.id),
            advise(devPtr, count, advice))

/* A prefetch moves nothing here: memory is equally near to all. It takes its place in the stream.
 */
static CUresult prefetch(CUdeviceptr p, size_t bytes, CUstream stream)
{
  if (!bytes || !is_managed(p, bytes)) return CUDA_ERROR_INVALID_VALUE;
  SIM_FIND_STREAM(s, stream);
  struct sim_op *op = sim_op_new(sizeof *op, NULL);
  return op ? sim_submit(s, op, SIM_AT_ONCE, NULL) : CUDA_ERROR_OUT_OF_MEMORY;
}

SIM_CHECKED(cuMemPrefetchAsync, NEED_PLACE(dstDevice != CU_DEVICE_CPU, dstDevice),
            prefetch(devPtr, count, hStream))
SIM_CHECKED(cuMemPrefetchAsync_v2, SIM_NEED(!flags);
            NEED_PLACE(location.type == CU_MEM_LOCATION_TYPE_DEVICE, location.id),
            prefetch(devPtr, count, hStream))

CUresult sim_cuStreamAttachMemAsync(CUstream stream, CUdeviceptr p, size_t bytes,
                                    unsigned int flags)
{
  if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST && flags != CU_MEM_ATTACH_SINGLE)
    return CUDA_ERROR_INVALID_VALUE;
  return prefetch(p, bytes ? bytes : 1, stream);
}
