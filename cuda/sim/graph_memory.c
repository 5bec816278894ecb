/* graph_memory.c: what allocation nodes allocate.
 *
 * "The allocation's address remains fixed across instantiations and launches": a node's memory has
 * its addresses in the device's range from the start, and pages from its first launch until it is
 * trimmed (*resident*; that is what counts against the capacity). It is *held* from the launch that
 * allocates it to its free, in the order the program calls; *live* launches are those whose free
 * the stream has not reached. Its range is always in the tree, and absent while neither holds.
 *
 * What graphs use (USED_MEM: "currently associated with graphs") is what is resident of a graph
 * that exists, freed by its last launch or not: the figure falls with a trim or with the graph,
 * never because a stream went on. Pages stay when their graph is gone ("physical memory is only
 * given back by cuDeviceGraphMemTrim"): such memory is *spare*, for the next allocation of its
 * size, and what a trim or a shortage takes first. All under sim_memory_lock.
 */
#include "cuda/sim/graph.h"

#include <stdlib.h>

struct sim_graph_memory {
  struct sim_graph_memory *next, **link; /* all of the process */
  struct sim_range *range;
  uint32_t refs;     /* nodes */
  uint32_t live;     /* launches not at their free yet, and the hold */
  bool held;         /* allocated, as the program sees it */
  bool resident;     /* has pages */
  uint64_t owner;    /* graph that allocates it */
  uint64_t freed_by; /* graph that frees it; 0: none */
};

struct free_op {
  struct sim_op op;
  struct sim_graph_memory *memory;
};

static struct sim_graph_memory *all;
static cuuint64_t used_high[SIM_MAX_DEVICES], reserved_high[SIM_MAX_DEVICES]; /* bytes */

static cuuint64_t sum(const struct sim_device *d, bool only_used)
{
  cuuint64_t bytes = 0;
  for (struct sim_graph_memory *m = all; m; m = m->next)
    if (m->range->device == d && m->resident && (!only_used || m->refs || m->live))
      bytes += m->range->reserved;
  return bytes;
}

static void note_high(const struct sim_device *d)
{
  cuuint64_t used = sum(d, true), reserved = sum(d, false);
  if (used > used_high[d->ordinal]) used_high[d->ordinal] = used;
  if (reserved > reserved_high[d->ordinal]) reserved_high[d->ordinal] = reserved;
}

static void trim(struct sim_graph_memory *m)
{
  sim_heap_close(m->range->device, m->range->start, m->range->reserved);
  m->resident = false;
}

static void end(struct sim_graph_memory *m)
{
  if (m->resident) trim(m);
  sim_heap_addresses_end(m->range->device, m->range->start, m->range->reserved);
  *m->link = m->next;
  if (m->next) m->next->link = m->link;
  sim_range_detach(m->range);
  free(m);
}

static void end_if_unused(struct sim_graph_memory *m)
{
  if (!m->refs && !m->live && !m->resident) end(m); /* else it is spare */
}

/* Spare memory of that many bytes, with its pages and its addresses. */
static struct sim_graph_memory *find_spare(const struct sim_device *d, size_t reserved)
{
  for (struct sim_graph_memory *m = all; m; m = m->next)
    if (!m->refs && !m->live && m->range->device == d && m->range->reserved == reserved) return m;
  return NULL;
}

bool sim_graph_memory_trim(struct sim_device *d)
{
  bool some = false;
  for (struct sim_graph_memory *m = all, *next; m; m = next) {
    next = m->next;
    if (m->range->device != d || !m->resident || m->live) continue;
    trim(m);
    end_if_unused(m);
    some = true;
  }
  return some;
}

/* ---- for nodes ----------------------------------------------------------------------------------
 */

/* Takes over a spare memory, or has addresses of its own; lock held. */
static struct sim_graph_memory *settle(struct sim_range *r)
{
  struct sim_graph_memory *m = find_spare(r->device, r->reserved);
  if (m) {
    r->start = m->range->start;
    sim_range_detach(m->range); /* a program that asks shall see another allocation */
    m->range = NULL;
  } else {
    m = calloc(1, sizeof *m);
    r->start = m ? sim_heap_addresses(r->device, r->reserved) : 0;
    if (!r->start) {
      free(m);
      return NULL;
    }
    m->next = all;
    m->link = &all;
    if (all) all->link = &m->next;
    all = m;
  }
  m->owner = m->freed_by = 0;
  m->refs = 1;
  m->range = r;
  r->graph = m;
  return m;
}

CUresult sim_graph_memory_new(struct sim_device *d, size_t bytes, CUdeviceptr *p,
                              struct sim_graph_memory **memory)
{
  if (!bytes || bytes > d->span) return bytes ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_VALUE;
  struct sim_range *r = calloc(1, sizeof *r);
  if (!r) return CUDA_ERROR_OUT_OF_MEMORY;
  *r = (struct sim_range){.bytes = bytes, .kind = SIM_DEVICE, .device = d};
  r->reserved = (bytes + SIM_GRANULE - 1) / SIM_GRANULE * SIM_GRANULE;
  r->absent = true;
  pthread_mutex_lock(&sim_memory_lock);
  struct sim_graph_memory *m = settle(r);
  bool there = m && sim_range_add(r);
  if (there) {
    *p = r->start;
    *memory = m;
  } else if (m) {
    end(m);
  }
  pthread_mutex_unlock(&sim_memory_lock);
  if (!m) free(r);
  return there ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static struct sim_graph_memory *find(uintptr_t p)
{
  struct sim_range *r = sim_range_at(p, 1);
  struct sim_graph_memory *m = r && r->start == p ? r->graph : NULL;
  return m && (m->refs || m->live) ? m : NULL; /* spare memory is nobody's */
}

struct sim_graph_memory *sim_graph_memory_at(CUdeviceptr p)
{
  pthread_mutex_lock(&sim_memory_lock);
  struct sim_graph_memory *m = find(p);
  pthread_mutex_unlock(&sim_memory_lock);
  return m;
}

void sim_graph_memory_ref(struct sim_graph_memory *m)
{
  pthread_mutex_lock(&sim_memory_lock);
  m->refs++;
  pthread_mutex_unlock(&sim_memory_lock);
}

void sim_graph_memory_unref(struct sim_graph_memory *m)
{
  pthread_mutex_lock(&sim_memory_lock);
  m->refs--;
  end_if_unused(m);
  pthread_mutex_unlock(&sim_memory_lock);
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
  pthread_mutex_lock(&sim_memory_lock);
  bool inside = m->owner == graph->id;
  if (m->freed_by && (inside || m->freed_by == m->owner || m->freed_by == graph->id))
    error = CUDA_ERROR_INVALID_VALUE;
  else
    m->freed_by = graph->id;
  pthread_mutex_unlock(&sim_memory_lock);
  return error;
}

/* ---- for launches -------------------------------------------------------------------------------
 */

CUresult sim_graph_memory_reside(struct sim_graph_memory *m)
{
  pthread_mutex_lock(&sim_memory_lock);
  struct sim_range *r = m->range;
  while (!m->resident) {
    m->resident = sim_heap_open(r->device, r->start, r->reserved);
    if (!m->resident && !sim_memory_shrink(r->device)) break;
  }
  bool there = m->resident;
  note_high(r->device);
  pthread_mutex_unlock(&sim_memory_lock);
  return there ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

bool sim_graph_memory_is_held(const struct sim_graph_memory *m)
{
  pthread_mutex_lock(&sim_memory_lock);
  bool held = m->held;
  pthread_mutex_unlock(&sim_memory_lock);
  return held;
}

void sim_graph_memory_hold(struct sim_graph_memory *m)
{
  pthread_mutex_lock(&sim_memory_lock);
  m->held = true;
  m->live++;
  m->range->absent = false;
  note_high(m->range->device);
  pthread_mutex_unlock(&sim_memory_lock);
}

/* A launch's share of the memory ends; lock held. */
static void end_live(struct sim_graph_memory *m)
{
  if (--m->live) return;
  m->range->absent = true;
  end_if_unused(m);
}

static void drop_free(struct sim_op *op)
{
  pthread_mutex_lock(&sim_memory_lock);
  end_live(((struct free_op *)op)->memory);
  pthread_mutex_unlock(&sim_memory_lock);
}

/* Dropping the op is the free: it happens when the stream is past it, run or not. */
struct sim_op *sim_graph_memory_free_op(struct sim_graph_memory *m)
{
  struct free_op *op = sim_op_new(sizeof *op, NULL);
  if (!op) return NULL;
  op->memory = m;
  op->op.drop = drop_free;
  pthread_mutex_lock(&sim_memory_lock);
  m->held = false;
  pthread_mutex_unlock(&sim_memory_lock);
  return &op->op;
}

/* ---- freed by the program -----------------------------------------------------------------------
 */

bool sim_graph_memory_free_in(uintptr_t p, CUstream s, CUresult *error)
{
  struct sim_graph_memory *m = sim_graph_memory_at(p);
  if (!m) return false;
  *error = CUDA_ERROR_INVALID_VALUE;
  if (!sim_graph_memory_is_held(m)) return true;
  struct sim_op *op = sim_graph_memory_free_op(m);
  *error = op ? sim_submit(s, op, SIM_AT_ONCE, NULL) : CUDA_ERROR_OUT_OF_MEMORY;
  return true;
}

/* cuMemFree waits for the device, as ever. */
CUresult sim_graph_memory_free(uintptr_t p)
{
  SIM_NEED_CONTEXT(c);
  CUresult error = sim_context_wait(c);
  if (error) return error;
  pthread_mutex_lock(&sim_memory_lock);
  struct sim_graph_memory *m = find(p);
  bool held = m && m->held;
  if (held) {
    m->held = false;
    end_live(m);
  }
  pthread_mutex_unlock(&sim_memory_lock);
  return held ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- of a device --------------------------------------------------------------------------------
 */

CUresult sim_cuDeviceGraphMemTrim(CUdevice dev)
{
  struct sim_device *d = sim_device(dev);
  if (!d) return CUDA_ERROR_INVALID_DEVICE;
  pthread_mutex_lock(&sim_memory_lock);
  sim_graph_memory_trim(d);
  pthread_mutex_unlock(&sim_memory_lock);
  return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetGraphMemAttribute(CUdevice dev, CUgraphMem_attribute attribute, void *value)
{
  struct sim_device *d = sim_device(dev);
  if (!d) return CUDA_ERROR_INVALID_DEVICE;
  if (!value || (unsigned)attribute > CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH)
    return CUDA_ERROR_INVALID_VALUE;
  pthread_mutex_lock(&sim_memory_lock);
  *(cuuint64_t *)value = attribute == CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT       ? sum(d, true)
                         : attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH        ? used_high[dev]
                         : attribute == CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT ? sum(d, false)
                                                                               : reserved_high[dev];
  pthread_mutex_unlock(&sim_memory_lock);
  return CUDA_SUCCESS;
}

/* "High watermark can only be reset to zero." */
CUresult sim_cuDeviceSetGraphMemAttribute(CUdevice dev, CUgraphMem_attribute attribute, void *value)
{
  struct sim_device *d = sim_device(dev);
  if (!d) return CUDA_ERROR_INVALID_DEVICE;
  if (!value || *(cuuint64_t *)value) return CUDA_ERROR_INVALID_VALUE;
  CUresult error = CUDA_SUCCESS;
  pthread_mutex_lock(&sim_memory_lock);
  if (attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH)
    used_high[dev] = sum(d, true);
  else if (attribute == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH)
    reserved_high[dev] = sum(d, false);
  else
    error = CUDA_ERROR_INVALID_VALUE;
  pthread_mutex_unlock(&sim_memory_lock);
  return error;
}
