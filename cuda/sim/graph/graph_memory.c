/* graph_memory.c: what allocation nodes allocate.
 *
 * A node's memory has its addresses, in the device's range, from the start: "fixed virtual
 * addresses over the life of a graph, including repeated instantiations and launches". Its pages
 * are of its device's pool (a granule each) and come with a launch (CUDA C++ Programming Guide,
 * "Graph Memory Nodes"):
 *
 * - Within a graph, an allocation that comes after the free of one as large is the same memory, at
 *   the same addresses ("Address Reuse Within a Graph"; node.c finds it).
 * - Memories share pages where their graphs cannot run at the same time: a launch keeps the pages
 *   that its memory had, if their last *user* is freed and its launches are over, or come before
 *   in the same stream; else it takes others of the pool that are so, and then new ones
 *   ("Physical Memory Management and Sharing").
 * - What a launch chose is mapped when its stream has come to the allocation: until then an earlier
 *   launch may use the same addresses with other pages.
 * - Trimming takes the pages that no allocation or launch uses ("cuDeviceGraphMemTrim"); nothing
 *   else gives pages back but a shortage, which trims.
 *
 * A memory is *held* from the launch that allocates it to its free, in the order the program calls;
 * *live* launches are those whose free the stream has not reached. Its range is always in the tree,
 * and absent while neither holds. USED_MEM is pages that are of some memory ("mapped by at least
 * one graph"), of launches that are over too, so that the figure never falls because a stream went
 * on; RESERVED_MEM is the pool. All under sim_memory_lock.
 *
 * A mapping is the pages of the device's file a second time, over the memory's addresses, whose own
 * place in the file is mapped *aside* meanwhile, to be put back. Without such a file (heap.c) there
 * are no allocation nodes. */
#include "cuda/sim/graph/graph.h"

#include <stdlib.h>
#include <sys/mman.h>

struct page {                    /* a granule for graphs */
  struct page *next;             /* of the device, oldest first */
  char *home;                    /* where the heap has it, inaccessible */
  struct sim_graph_memory *user; /* whose launch took it last; NULL: none that exists */
  uint32_t parts;                /* memories that it is of */
};

struct sim_graph_memory {
  struct sim_graph_memory *next, **link; /* all of the process */
  struct sim_range *range;
  char *aside;           /* its addresses' own place in the file, inaccessible */
  uint32_t refs;         /* nodes */
  uint32_t live;         /* launches not at their free yet, operations, and the hold */
  bool held;             /* allocated, as the program sees it */
  CUstream stream;       /* of the last launch or free, to compare: it may be gone */
  uint64_t launch;       /* that is being made of it; 0: none */
  uint64_t owner;        /* graph that allocates it */
  uint64_t freed_by;     /* graph that frees it; 0: none */
  uint32_t plan, mapped; /* times that pages were chosen; which choice is mapped */
  struct page *pages[];  /* of the latest choice; NULL: none */
};

struct free_op {
  struct sim_op op;
  struct sim_graph_memory *memory;
};

struct map_op {
  struct sim_op op;
  struct sim_graph_memory *memory;
  uint32_t plan;
  char *homes[]; /* of the pages */
};

static struct sim_graph_memory *all;
static struct page *pools[SIM_MAX_DEVICES];
static cuuint64_t used_high[SIM_MAX_DEVICES], reserved_high[SIM_MAX_DEVICES]; /* bytes */

/* ---- the pool -------------------------------------------------------------------------------- */

static cuuint64_t pool_bytes(const struct sim_device *d, bool only_used)
{
  cuuint64_t bytes = 0;
  for (const struct page *p = pools[d->ordinal]; p; p = p->next)
    if (p->parts || !only_used) bytes += SIM_GRANULE;
  return bytes;
}

static void note_high(const struct sim_device *d)
{
  cuuint64_t used = pool_bytes(d, true), reserved = pool_bytes(d, false);
  if (used > used_high[d->ordinal]) used_high[d->ordinal] = used;
  if (reserved > reserved_high[d->ordinal]) reserved_high[d->ordinal] = reserved;
}

static void give_pages(struct sim_device *d, struct page *p)
{
  for (struct page *next; p; p = next) {
    next = p->next;
    sim_heap_give(d, p->home, SIM_GRANULE);
    free(p);
  }
}

/* That many more in the pool, or none. What graphs keep unused was counted before, and serves. */
static bool add_pages(struct sim_device *d, size_t count)
{
  struct page *first = NULL, **end = &first;
  for (; count; count--) {
    struct page *p = calloc(1, sizeof *p);
    do
      if (p) p->home = sim_heap_take(d, SIM_GRANULE);
    while (p && !p->home && sim_pools_shrink(d));
    if (!p || !p->home) {
      free(p);
      give_pages(d, first);
      return false;
    }
    *end = p;
    end = &p->next;
  }
  struct page **at = &pools[d->ordinal];
  while (*at)
    at = &(*at)->next;
  *at = first;
  return true;
}

/* ---- pages of a memory ----------------------------------------------------------------------- */

static size_t page_count(const struct sim_graph_memory *m)
{
  return m->range->reserved / SIM_GRANULE;
}

static bool in_use(const struct sim_graph_memory *m)
{
  return m && (m->held || m->live);
}

/* Whether a launch of m in the stream may have the page. Launches of m itself follow each other. */
static bool may_take(const struct page *p, const struct sim_graph_memory *m, CUstream s,
                     uint64_t launch)
{
  const struct sim_graph_memory *u = p->user;
  if (!u || u == m) return true;
  return u->launch != launch && !u->held && (!u->live || u->stream == s);
}

static bool may_keep(const struct sim_graph_memory *m, CUstream s, uint64_t launch)
{
  for (size_t i = 0; i < page_count(m); i++)
    if (!m->pages[i] || !may_take(m->pages[i], m, s, launch)) return false;
  return true;
}

static void drop_pages(struct sim_graph_memory *m)
{
  for (size_t i = 0; i < page_count(m); i++) {
    if (m->pages[i]) m->pages[i]->parts--;
    m->pages[i] = NULL;
  }
}

static bool choose_pages(struct sim_graph_memory *m, CUstream s, uint64_t launch)
{
  struct sim_device *d = m->range->device;
  size_t count = page_count(m), found = 0;
  for (const struct page *p = pools[d->ordinal]; p; p = p->next)
    found += may_take(p, m, s, launch);
  if (found < count && !add_pages(d, count - found)) return false;
  drop_pages(m);
  struct page *p = pools[d->ordinal];
  for (size_t i = 0; i < count; i++, p = p->next) {
    while (!may_take(p, m, s, launch))
      p = p->next;
    m->pages[i] = p;
    p->parts++;
  }
  m->plan++;
  note_high(d);
  return true;
}

/* Addresses without memory again, or its end. */
static void unmap_memory(struct sim_graph_memory *m)
{
  drop_pages(m);
  m->mapped = 0;
  (void)mremap(m->aside, 0, m->range->reserved, MREMAP_MAYMOVE | MREMAP_FIXED,
               (void *)m->range->start);
}

static void end_memory(struct sim_graph_memory *m)
{
  struct sim_device *d = m->range->device;
  unmap_memory(m);
  munmap(m->aside, m->range->reserved);
  sim_heap_addresses_end(d, m->range->start, m->range->reserved);
  for (struct page *p = pools[d->ordinal]; p; p = p->next)
    if (p->user == m) p->user = NULL;
  *m->link = m->next;
  if (m->next) m->next->link = m->link;
  sim_range_detach(m->range);
  free(m);
}

static void end_if_unused(struct sim_graph_memory *m)
{
  if (!m->refs && !m->live) end_memory(m);
}

static bool trim_device(struct sim_device *d)
{
  for (struct sim_graph_memory *m = all; m; m = m->next)
    if (m->range->device == d && m->pages[0] && !in_use(m)) unmap_memory(m);
  struct page *unused = NULL;
  for (struct page **at = &pools[d->ordinal]; *at;) {
    struct page *p = *at;
    if (p->parts || in_use(p->user)) {
      at = &p->next;
      continue;
    }
    *at = p->next;
    p->next = unused;
    unused = p;
  }
  give_pages(d, unused);
  return unused != NULL;
}

/* ---- for nodes ------------------------------------------------------------------------------- */

static struct sim_graph_memory *memory_new(struct sim_range *r)
{
  size_t count = r->reserved / SIM_GRANULE;
  struct sim_graph_memory *m = calloc(1, sizeof *m + count * sizeof(struct page *));
  r->start = m ? sim_heap_addresses(r->device, r->reserved) : 0;
  if (!r->start) {
    free(m);
    return NULL;
  }
  m->aside = mremap((void *)r->start, 0, r->reserved, MREMAP_MAYMOVE);
  if (m->aside == MAP_FAILED) {
    sim_heap_addresses_end(r->device, r->start, r->reserved);
    free(m);
    return NULL;
  }
  m->next = all;
  m->link = &all;
  if (all) all->link = &m->next;
  all = m;
  m->refs = 1;
  m->range = r;
  r->graph = m;
  return m;
}

static size_t rounded_bytes(size_t bytes)
{
  return (bytes + SIM_GRANULE - 1) / SIM_GRANULE * SIM_GRANULE;
}

CUresult sim_graph_memory_new(struct sim_device *d, size_t bytes, CUdeviceptr *p,
                              struct sim_graph_memory **memory)
{
  if (!bytes || bytes > d->span) return bytes ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_VALUE;
  if (d->file < 0) return CUDA_ERROR_NOT_SUPPORTED;
  struct sim_range *r = sim_range_new(SIM_DEVICE, NULL, d, bytes);
  if (!r) return CUDA_ERROR_OUT_OF_MEMORY;
  r->reserved = rounded_bytes(bytes);
  r->absent = true;
  pthread_mutex_lock(&sim_memory_lock);
  struct sim_graph_memory *m = memory_new(r);
  bool there = m && sim_range_add(r);
  if (there) {
    *p = r->start;
    *memory = m;
  } else if (m) {
    end_memory(m);
  }
  pthread_mutex_unlock(&sim_memory_lock);
  if (!m) free(r);
  return there ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static struct sim_graph_memory *memory_at(uintptr_t p)
{
  struct sim_range *r = sim_range_at(p, 1);
  return r && r->start == p ? r->graph : NULL;
}

struct sim_graph_memory *sim_graph_memory_at(CUdeviceptr p)
{
  SIM_HOLD(sim_memory_lock);
  return memory_at(p);
}

void sim_graph_memory_ref(struct sim_graph_memory *m)
{
  SIM_HOLD(sim_memory_lock);
  m->refs++;
}

void sim_graph_memory_unref(struct sim_graph_memory *m)
{
  SIM_HOLD(sim_memory_lock);
  m->refs--;
  end_if_unused(m);
}

void sim_graph_memory_owner(struct sim_graph_memory *m, CUgraph graph)
{
  m->owner = graph->id;
}

/* "They can only be freed once in the owning graph", and "It is not possible to free an allocation
 * in both the owning graph and another graph". */
CUresult sim_graph_memory_freed_by(struct sim_graph_memory *m, CUgraph graph)
{
  CUresult error = CUDA_SUCCESS;
  SIM_HOLD(sim_memory_lock);
  bool inside = m->owner == graph->id;
  if (m->freed_by && (inside || m->freed_by == m->owner || m->freed_by == graph->id))
    error = CUDA_ERROR_INVALID_VALUE;
  else
    m->freed_by = graph->id;
  return error;
}

bool sim_graph_memory_reuse(struct sim_graph_memory *m, const struct sim_device *d, size_t bytes,
                            CUgraph graph, CUdeviceptr *p)
{
  SIM_HOLD(sim_memory_lock);
  bool fits = m->range->device == d && m->range->reserved == rounded_bytes(bytes) &&
              m->owner == graph->id && m->freed_by == graph->id;
  if (fits) {
    if (m->range->bytes < bytes) m->range->bytes = bytes;
    m->freed_by = 0;
    m->refs++;
    *p = m->range->start;
  }
  return fits;
}

/* ---- for launches ---------------------------------------------------------------------------- */

CUresult sim_graph_memory_claim(struct sim_graph_memory *m, CUstream s, uint64_t launch)
{
  bool there = true;
  SIM_HOLD(sim_memory_lock);
  if (m->launch != launch) {
    there = may_keep(m, s, launch) || choose_pages(m, s, launch);
    for (size_t i = 0; there && i < page_count(m); i++)
      m->pages[i]->user = m;
    m->launch = there ? launch : 0;
    m->live += there;
  }
  return there ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* A share of the memory ends; lock held. */
static void end_live(struct sim_graph_memory *m)
{
  if (--m->live) return;
  m->range->absent = true;
  end_if_unused(m);
}

void sim_graph_memory_claimed(struct sim_graph_memory *m, uint64_t launch)
{
  SIM_HOLD(sim_memory_lock);
  if (m->launch == launch) {
    m->launch = 0;
    end_live(m);
  }
}

bool sim_graph_memory_is_held(const struct sim_graph_memory *m)
{
  SIM_HOLD(sim_memory_lock);
  return m->held;
}

void sim_graph_memory_hold(struct sim_graph_memory *m, CUstream s)
{
  SIM_HOLD(sim_memory_lock);
  m->held = true;
  m->live++;
  m->stream = s;
  m->range->absent = false;
}

/* Neighbours in the file are one mapping. */
static bool map_pages(const struct sim_graph_memory *m, char *const *homes)
{
  char *start = (char *)m->range->start;
  size_t count = page_count(m);
  for (size_t i = 0, n; i < count; i += n) {
    for (n = 1; i + n < count && homes[i + n] == homes[i] + n * SIM_GRANULE;)
      n++;
    void *at = start + i * SIM_GRANULE;
    if (mremap(homes[i], 0, n * SIM_GRANULE, MREMAP_MAYMOVE | MREMAP_FIXED, at) != at) return false;
  }
  return mprotect(start, m->range->reserved, PROT_READ | PROT_WRITE) == 0;
}

static void run_map(struct sim_op *op, CUstream s)
{
  struct map_op *o = (struct map_op *)op;
  struct sim_graph_memory *m = o->memory;
  pthread_mutex_lock(&sim_memory_lock);
  bool there = m->mapped == o->plan || map_pages(m, o->homes);
  if (there) m->mapped = o->plan;
  pthread_mutex_unlock(&sim_memory_lock);
  if (!there) sim_context_fail(s->context, CUDA_ERROR_ILLEGAL_ADDRESS);
}

static void drop_map(struct sim_op *op)
{
  SIM_HOLD(sim_memory_lock);
  end_live(((struct map_op *)op)->memory);
}

struct sim_op *sim_graph_memory_map_op(struct sim_graph_memory *m)
{
  SIM_HOLD(sim_memory_lock);
  size_t count = m->mapped == m->plan ? 0 : page_count(m);
  struct map_op *op = sim_op_new(sizeof *op + count * sizeof(char *), count ? run_map : NULL);
  if (op) {
    for (size_t i = 0; i < count; i++)
      op->homes[i] = m->pages[i]->home;
    op->memory = m;
    op->plan = m->plan;
    op->op.drop = drop_map;
    m->live++;
  }
  return op ? &op->op : NULL;
}

static void drop_free(struct sim_op *op)
{
  SIM_HOLD(sim_memory_lock);
  end_live(((struct free_op *)op)->memory);
}

/* Dropping the op is the free: it happens when the stream is past it, run or not. */
struct sim_op *sim_graph_memory_free_op(struct sim_graph_memory *m, CUstream s)
{
  struct free_op *op = sim_op_new(sizeof *op, NULL);
  if (!op) return NULL;
  op->memory = m;
  op->op.drop = drop_free;
  SIM_HOLD(sim_memory_lock);
  m->held = false;
  m->stream = s;
  return &op->op;
}

/* ---- freed by the program -------------------------------------------------------------------- */

static bool free_in(uintptr_t p, CUstream s, CUresult *error)
{
  struct sim_graph_memory *m = sim_graph_memory_at(p);
  if (!m) return false;
  *error = CUDA_ERROR_INVALID_VALUE;
  if (!sim_graph_memory_is_held(m)) return true;
  struct sim_op *op = sim_graph_memory_free_op(m, s);
  *error = op ? sim_submit(s, op, SIM_AT_ONCE, NULL) : CUDA_ERROR_OUT_OF_MEMORY;
  return true;
}

/* cuMemFree waits for the device, as ever. */
static CUresult free_graph_memory_now(uintptr_t p)
{
  SIM_NEED_CONTEXT(c);
  CUresult error = sim_context_wait(c);
  if (error) return error;
  SIM_HOLD(sim_memory_lock);
  struct sim_graph_memory *m = memory_at(p);
  bool held = m && m->held;
  if (held) {
    m->held = false;
    end_live(m);
  }
  return held ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static const struct sim_graph_memory_ops ops = {free_graph_memory_now, free_in, trim_device};

__attribute__((constructor)) static void register_ops(void)
{
  sim_graph_memory_ops = &ops;
}

/* ---- of a device ----------------------------------------------------------------------------- */

CUresult sim_cuDeviceGraphMemTrim(CUdevice dev)
{
  struct sim_device *d = sim_device(dev);
  if (!d) return CUDA_ERROR_INVALID_DEVICE;
  SIM_HOLD(sim_memory_lock);
  trim_device(d);
  return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetGraphMemAttribute(CUdevice dev, CUgraphMem_attribute attribute, void *value)
{
  struct sim_device *d = sim_device(dev);
  if (!d) return CUDA_ERROR_INVALID_DEVICE;
  if (!value || (unsigned)attribute > CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH)
    return CUDA_ERROR_INVALID_VALUE;
  SIM_HOLD(sim_memory_lock);
  *(cuuint64_t *)value = attribute == CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT ? pool_bytes(d, true)
                         : attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH  ? used_high[dev]
                         : attribute == CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT
                             ? pool_bytes(d, false)
                             : reserved_high[dev];
  return CUDA_SUCCESS;
}

/* "High watermark can only be reset to zero." */
CUresult sim_cuDeviceSetGraphMemAttribute(CUdevice dev, CUgraphMem_attribute attribute, void *value)
{
  struct sim_device *d = sim_device(dev);
  if (!d) return CUDA_ERROR_INVALID_DEVICE;
  if (!value || *(cuuint64_t *)value) return CUDA_ERROR_INVALID_VALUE;
  CUresult error = CUDA_SUCCESS;
  SIM_HOLD(sim_memory_lock);
  if (attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH)
    used_high[dev] = pool_bytes(d, true);
  else if (attribute == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH)
    reserved_high[dev] = pool_bytes(d, false);
  else
    error = CUDA_ERROR_INVALID_VALUE;
  return error;
}
