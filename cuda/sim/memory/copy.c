/* copy.c: every copy and memset of the driver API, through one engine.
 *
 * A copy is a box of width x height x depth bytes between two *sides*; a 1-D copy is a box one row
 * high. Each exported form only states what its sides are. The engine finds out what memory each
 * side is, checks that a box in memory CUDA knows of stays inside its allocation, queues it, and
 * makes the call wait as the documentation states (CUDA Driver API, "API synchronization
 * behavior"):
 *
 *   from, to           synchronous form                     asynchronous form
 *   pageable > device  <= 64 KiB: staged, returns;          the same ("the driver may synchronize
 *                      else after the copy                  with the stream and stage the copy")
 *   pinned > device    waits                                returns
 *   device > pageable  waits                                waits ("might be synchronous")
 *   device > pinned    waits                                returns
 *   device > device    returns                              returns
 *   host > host        waits                                waits
 *   memset             returns, waits on pinned memory      returns
 *
 * (64 KiB: CUDA C++ Programming Guide, "Concurrent Execution between Host and Device".) */
#include "cuda/sim/internal.h"

#include <stdlib.h>
#include <string.h>

#define STAGED_MAX ((size_t)64 << 10)

enum memory { PAGEABLE, PINNED, MANAGED, DEVICE };

struct side {
  char *start;         /* of the box */
  size_t pitch, slice; /* bytes from row to row, from plane to plane */
  enum memory memory;
  struct sim_device *device; /* NULL: host */
  CUcontext alone;           /* the one it is registered for; NULL: it is for all */
  bool sync_memops;
  bool planned;              /* a graph's memory may still be to be allocated */
  bool array;                /* of an array */
  uint32_t readers, writers; /* bit a device that may reach it */
};

struct copy {
  struct sim_op op;
  struct side dst, src;
  size_t width, height, depth; /* bytes, rows, planes */
  enum sim_direction direction;
  char *staged;     /* a copy of the source, owned */
  bool denied;      /* the device may not reach a mapping */
  bool now;         /* the source is read before the call returns */
  bool async;       /* the call was of the asynchronous form */
  enum memory from; /* src.memory, before it was staged */
};

struct fill {
  struct sim_op op;
  struct side dst;
  size_t width, height; /* elements, rows */
  uint32_t value;
  unsigned element; /* bytes: 1, 2, 4 */
  bool denied;      /* the device may not reach a mapping */
  bool async;       /* the call was of the asynchronous form */
};

/* ---- doing it -------------------------------------------------------------------------------- */

static void copy_box_rows(void *argument)
{
  struct copy *c = argument;
  if (c->width == c->dst.pitch && c->width == c->src.pitch && c->depth == 1) {
    memmove(c->dst.start, c->src.start, c->width * c->height);
    return;
  }
  for (size_t z = 0; z < c->depth; z++)
    for (size_t y = 0; y < c->height; y++)
      memmove(c->dst.start + z * c->dst.slice + y * c->dst.pitch,
              c->src.start + z * c->src.slice + y * c->src.pitch, c->width);
}

static uint64_t time_over(struct sim_link link, const struct copy *c)
{
  double bytes = (double)(c->width * c->height * c->depth);
  return link.latency_ns + (link.bytes_per_ns > 0 ? (uint64_t)(bytes / link.bytes_per_ns) : 0);
}

static bool is_pageable(const struct copy *c)
{
  return c->direction == SIM_H2D   ? c->src.memory == PAGEABLE
         : c->direction == SIM_D2H ? c->dst.memory == PAGEABLE
                                   : false;
}

/* Of a copy between devices: without peer access it goes through the host, and takes as long as the
 * slowest of its ways. */
static uint64_t time_between(const struct copy *c, CUstream s)
{
  const struct sim_device *own = s->context->device;
  const struct sim_device *other = c->dst.device == own ? c->src.device : c->dst.device;
  uint32_t peers = __atomic_load_n(&s->context->peers, __ATOMIC_RELAXED);
  uint64_t most = time_over(sim_link_of(SIM_P2P), c);
  uint64_t up = time_over(sim_link_of(SIM_H2D), c), down = time_over(sim_link_of(SIM_D2H), c);
  if (peers >> other->ordinal & 1) return most;
  if (up > most) most = up;
  return down > most ? down : most;
}

/* A slowed link carries one copy at a time per device and direction. The host's part of a pageable
 * copy overlaps with the link's, which ends no sooner and then is free for others. */
static void copy_slowly(struct copy *c, CUstream s, CUresult *error)
{
  struct sim_device *d = c->dst.device ? c->dst.device : c->src.device;
  pthread_mutex_t *engine = &(d ? d : s->context->device)->engine[c->direction];
  uint64_t host = is_pageable(c) ? sim_now_ns() + time_over(sim_link_of(SIM_PAGEABLE), c) : 0;
  pthread_mutex_lock(engine);
  sim_op_begins(&c->op);
  uint64_t link =
      c->direction == SIM_P2P ? time_between(c, s) : time_over(sim_link_of(c->direction), c);
  uint64_t end = sim_now_ns() + link;
  sim_guard_run(copy_box_rows, c, error);
  if (link) sim_wait_until(end);
  pthread_mutex_unlock(engine);
  if (host) sim_wait_until(host);
}

static void run_copy(struct sim_op *op, CUstream s)
{
  struct copy *c = (struct copy *)op;
  CUresult error = CUDA_SUCCESS;
  if (c->denied)
    error = CUDA_ERROR_ILLEGAL_ADDRESS;
  else if (atomic_load_explicit(&sim_link_slow, memory_order_relaxed))
    copy_slowly(c, s, &error);
  else
    sim_guard_run(copy_box_rows, c, &error);
  if (error) sim_context_fail(s->context, error);
}

static void drop_copy(struct sim_op *op)
{
  free(((struct copy *)op)->staged);
}

static void fill_rows(void *argument)
{
  struct fill *f = argument;
  for (size_t y = 0; y < f->height; y++) {
    char *row = f->dst.start + y * f->dst.pitch;
    if (f->element == 1) memset(row, (int)f->value, f->width);
    for (size_t x = 0; f->element == 2 && x < f->width; x++)
      ((uint16_t *)(void *)row)[x] = (uint16_t)f->value;
    for (size_t x = 0; f->element == 4 && x < f->width; x++)
      ((uint32_t *)(void *)row)[x] = f->value;
  }
}

static void run_fill(struct sim_op *op, CUstream s)
{
  CUresult error = CUDA_ERROR_ILLEGAL_ADDRESS;
  struct fill *f = (struct fill *)op;
  bool card = atomic_load_explicit(&sim_has_card, memory_order_relaxed);
  uint64_t end = card ? sim_now_ns() + sim_card_fill_ns(f->width * f->height * f->element) : 0;
  if (f->denied || !sim_guard_run(fill_rows, f, &error)) sim_context_fail(s->context, error);
  if (card) sim_wait_until(end);
}

/* ---- what a watcher is notified of
 * -------------------------------------------------------------- */

static uint8_t watched_memory(const struct side *side, enum memory memory)
{
  static const uint8_t kinds[] = {[PAGEABLE] = WEIR_WATCH_PAGEABLE,
                                  [PINNED] = WEIR_WATCH_PINNED,
                                  [MANAGED] = WEIR_WATCH_MANAGED,
                                  [DEVICE] = WEIR_WATCH_DEVICE};
  return side->array ? WEIR_WATCH_ARRAY : kinds[memory];
}

static uint32_t primary_id(const struct sim_device *d)
{
  return d && d->primary ? (uint32_t)d->primary->id : 0;
}

static void describe_copy(const struct sim_op *op, CUstream s, struct weir_watch_work *w)
{
  const struct copy *c = (const struct copy *)op;
  w->kind = c->direction == SIM_P2P ? WEIR_WATCH_PEERS : WEIR_WATCH_COPIES;
  w->bytes = c->width * c->height * c->depth;
  w->from = watched_memory(&c->src, c->staged ? c->from : c->src.memory);
  w->to = watched_memory(&c->dst, c->dst.memory);
  w->async = c->async;
  if (c->direction != SIM_P2P) return;
  const struct sim_device *from = c->src.device, *to = c->dst.device, *here = s->context->device;
  w->from_device = (uint32_t)from->ordinal;
  w->to_device = (uint32_t)to->ordinal;
  w->from_context = from == here ? w->context : primary_id(from);
  w->to_context = to == here ? w->context : primary_id(to);
}

static void describe_fill(const struct sim_op *op, CUstream s, struct weir_watch_work *w)
{
  const struct fill *f = (const struct fill *)op;
  (void)s;
  w->kind = WEIR_WATCH_FILLS;
  w->bytes = f->width * f->height * f->element;
  w->value = f->value;
  w->to = watched_memory(&f->dst, f->dst.memory);
  w->async = f->async;
}

/* ---- what memory it is ----------------------------------------------------------------------- */

/* Bytes from the first to one past the last of a box, or 0 when they overflow. */
static size_t copy_extent(const struct side *s, size_t width, size_t height, size_t depth)
{
  size_t planes, rows, all;
  if (__builtin_mul_overflow(s->slice, depth - 1, &planes)) return 0;
  if (__builtin_mul_overflow(s->pitch, height - 1, &rows)) return 0;
  if (__builtin_add_overflow(planes, rows, &all)) return 0;
  return __builtin_add_overflow(all, width, &all) ? 0 : all;
}

static bool in_device_space(uintptr_t p) /* sim_memory_lock held */
{
  for (int i = 0; i < sim_device_count; i++)
    if (p - (uintptr_t)sim_devices[i].base < sim_devices[i].span) return true;
  return sim_reserved_at(p, NULL, NULL);
}

static enum memory memory_of(enum sim_kind kind)
{
  return kind == SIM_DEVICE || kind == SIM_MAPPED || kind == SIM_IMPORTED ? DEVICE
         : kind == SIM_MANAGED                                            ? MANAGED
                                                                          : PINNED;
}

/* Classifies a side by the range its box lies in. A pointer stated to be of a device must be known;
 * one into a device's addresses must be inside an allocation; any other unknown one is pageable. */
static CUresult classify_copy(struct side *s, bool must_be_known, size_t width, size_t height,
                              size_t depth)
{
  s->readers = s->writers = UINT32_MAX;
  if (s->device) return CUDA_SUCCESS; /* an array: checked by its own shape */
  size_t bytes = copy_extent(s, width, height, depth);
  if (!s->start || !bytes) return CUDA_ERROR_INVALID_VALUE;
  pthread_mutex_lock(&sim_memory_lock);
  struct sim_range *whole = sim_range_reach((uintptr_t)s->start, bytes, &s->readers, &s->writers);
  if (whole && whole->absent && !s->planned) whole = NULL;
  s->memory = whole ? memory_of(whole->kind) : PAGEABLE;
  if (s->memory == DEVICE || s->memory == MANAGED) s->device = whole->device;
  s->sync_memops = whole && whole->sync_memops;
  bool alone = whole && whole->kind == SIM_REGISTERED;
  s->alone = alone && !(whole->flags & CU_MEMHOSTREGISTER_PORTABLE) ? whole->context : NULL;
  bool wrong = !whole && (must_be_known || in_device_space((uintptr_t)s->start));
  pthread_mutex_unlock(&sim_memory_lock);
  /* host memory registered in part only is copied as pageable memory */
  return wrong ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

/* Whether the device that does the work may not: of a mapping it was given no access to. */
static bool denied(CUstream s, uint32_t who)
{
  return !(who >> s->context->device->ordinal & 1);
}

static enum sim_direction direction_of(const struct copy *c)
{
  if (!c->dst.device) return c->src.device ? SIM_D2H : SIM_H2H;
  if (!c->src.device) return SIM_H2D;
  return c->dst.device == c->src.device ? SIM_D2D : SIM_P2P;
}

/* ---- queueing it ----------------------------------------------------------------------------- */

/* Whether the call returns before the copy is done; the table at the top. */
static bool returns_early(const struct copy *c, bool async)
{
  if (c->dst.sync_memops || c->src.sync_memops) return async;
  switch (c->direction) {
  case SIM_H2D:
    return c->src.memory == PAGEABLE ? c->width * c->height * c->depth <= STAGED_MAX : async;
  case SIM_D2H:
    return c->dst.memory == PAGEABLE ? false : async;
  case SIM_H2H:
    return false;
  default:
    return true;
  }
}

/* The source may change once the call returns: when the operation has to be queued, its bytes go
 * along with it. */
static CUresult stage_source(struct sim_op *op)
{
  struct copy *c = (struct copy *)op;
  c->staged = malloc(c->width * c->height * c->depth);
  if (!c->staged) return CUDA_ERROR_OUT_OF_MEMORY;
  struct copy to_stage = *c;
  to_stage.dst = (struct side){
      .start = c->staged, .pitch = c->width, .slice = c->width * c->height, .memory = PINNED};
  if (atomic_load_explicit(&sim_link_slow, memory_order_relaxed))
    sim_wait_until(sim_now_ns() + time_over(sim_link_of(SIM_PAGEABLE), c)); /* the host's part */
  copy_box_rows(&to_stage);
  c->from = c->src.memory;
  c->src = to_stage.dst;
  return CUDA_SUCCESS;
}

/* cuMemHostRegister: portable memory "will be considered as pinned memory by all CUDA contexts, not
 * just the one that performed the allocation". */
static void consider_side(struct side *side, CUstream s)
{
  if (side->alone && side->alone != s->context) side->memory = PAGEABLE;
}

static CUresult submit_copy(struct copy *c, CUstream s, bool async, uint64_t *ticket)
{
  consider_side(&c->dst, s);
  consider_side(&c->src, s);
  enum sim_how how = returns_early(c, async) ? SIM_QUEUE : SIM_AND_WAIT;
  c->async = async;
  c->op.drop = drop_copy;
  if (c->now && how == SIM_QUEUE) {
    c->op.park = stage_source;
    how = SIM_AT_ONCE;
  }
  if (how == SIM_QUEUE && c->direction == SIM_H2D && c->src.memory == PAGEABLE) {
    c->op.park = stage_source;
    /* on an idle stream the caller moves these few bytes sooner than it would stage them */
    if (!atomic_load_explicit(&sim_link_slow, memory_order_relaxed)) how = SIM_AT_ONCE;
  }
  return sim_submit(s, &c->op, how, ticket);
}

/* A call that may wait, in this stream. */
static CUresult now_allowed(CUstream s)
{
  CUresult error = sim_queue_barred(s);
  return error ? error : sim_unsafe();
}

/* A new copy op; sides are filled by the caller, then start_copy() takes it over. */
static struct copy *copy_new(size_t width, size_t height, size_t depth)
{
  struct copy *c = sim_op_new(sizeof *c, run_copy);
  if (!c) return NULL;
  c->op.describe = describe_copy;
  c->async = true; /* as a graph's node */
  c->width = width;
  c->height = height;
  c->depth = depth;
  return c;
}

static struct side flat_side(const void *p, size_t width)
{
  return (struct side){.start = (char *)(uintptr_t)p, .pitch = width, .slice = width};
}

struct box_side { /* one side of a CUDA_MEMCPY2D or 3D, whichever */
  CUmemorytype type;
  uintptr_t host, device;
  CUarray array;
  size_t x, y, z; /* bytes, rows, planes */
  size_t pitch, rows;
};

struct box {
  struct box_side dst, src;
  size_t width, height, depth;
};

/* As a graph's node states it. */
#define PARAMS_SIDE(b, side)                                                                       \
  .side##XInBytes = (b)->side.x, .side##Y = (b)->side.y, .side##Z = (b)->side.z,                   \
  .side##MemoryType = (b)->side.type, .side##Host = (void *)(b)->side.host,                        \
  .side##Device = (b)->side.device, .side##Array = (b)->side.array,                                \
  .side##Pitch = (b)->side.pitch, .side##Height = (b)->side.rows

static CUresult capture_box(const struct box *box, CUstream s)
{
  if (!box->width || !box->height || !box->depth) return CUDA_SUCCESS;
  CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_MEMCPY};
  p.memcpy.copyCtx = s->context;
  p.memcpy.copyParams =
      (CUDA_MEMCPY3D){PARAMS_SIDE(box, src), PARAMS_SIDE(box, dst), .WidthInBytes = box->width,
                      .Height = box->height, .Depth = box->depth};
  return sim_capture_add(s, &p);
}

/* One row at an address: a device's where the call or the address has it. */
static struct box_side line_side(uintptr_t p, bool known)
{
  pthread_mutex_lock(&sim_memory_lock);
  struct sim_range *r = sim_range_at(p, 1);
  CUmemorytype type = known || (r && memory_of(r->kind) == DEVICE) ? CU_MEMORYTYPE_DEVICE
                      : r && memory_of(r->kind) == MANAGED         ? CU_MEMORYTYPE_UNIFIED
                                                                   : CU_MEMORYTYPE_HOST;
  pthread_mutex_unlock(&sim_memory_lock);
  bool host = type == CU_MEMORYTYPE_HOST;
  return (struct box_side){.type = type, .host = host ? p : 0, .device = host ? 0 : p};
}

/* Linear copy. dst_known, src_known: that side is a device pointer by the call's own words. */
static CUresult copy_line(uintptr_t dst, bool dst_known, uintptr_t src, bool src_known,
                          size_t bytes, CUstream stream, bool async)
{
  SIM_NEED_CURRENT();
  CUstream s;
  CUresult error = sim_stream_find(stream, &s);
  if (!error && !async) error = now_allowed(s);
  if (error || !bytes) return error;
  if (async && sim_capturing(s)) {
    struct box box = {line_side(dst, dst_known), line_side(src, src_known), bytes, 1, 1};
    return capture_box(&box, s);
  }
  struct copy *c = copy_new(bytes, 1, 1);
  if (!c) return CUDA_ERROR_OUT_OF_MEMORY;
  c->dst = flat_side((void *)dst, bytes);
  c->src = flat_side((void *)src, bytes);
  error = classify_copy(&c->dst, dst_known, bytes, 1, 1);
  if (!error) error = classify_copy(&c->src, src_known, bytes, 1, 1);
  if (error) {
    sim_op_free(&c->op);
    return error;
  }
  c->direction = direction_of(c);
  c->denied = denied(s, c->src.readers) || denied(s, c->dst.writers);
  return submit_copy(c, s, async, NULL);
}

/* ---- linear forms ---------------------------------------------------------------------------- */

SIM_ENTRY(cuMemcpyHtoD_v2,
          copy_line(dstDevice, true, (uintptr_t)srcHost, false, ByteCount, default_stream, false))
SIM_ENTRY(cuMemcpyHtoDAsync_v2,
          copy_line(dstDevice, true, (uintptr_t)srcHost, false, ByteCount, hStream, true))
SIM_ENTRY(cuMemcpyDtoH_v2,
          copy_line((uintptr_t)dstHost, false, srcDevice, true, ByteCount, default_stream, false))
SIM_ENTRY(cuMemcpyDtoHAsync_v2,
          copy_line((uintptr_t)dstHost, false, srcDevice, true, ByteCount, hStream, true))
SIM_ENTRY(cuMemcpyDtoD_v2,
          copy_line(dstDevice, true, srcDevice, true, ByteCount, default_stream, false))
SIM_ENTRY(cuMemcpyDtoDAsync_v2,
          copy_line(dstDevice, true, srcDevice, true, ByteCount, hStream, true))
SIM_ENTRY(cuMemcpy, copy_line(dst, false, src, false, ByteCount, default_stream, false))
SIM_ENTRY(cuMemcpyAsync, copy_line(dst, false, src, false, ByteCount, hStream, true))

/* ---- boxes ----------------------------------------------------------------------------------- */

/* The side of an array: its own shape states what is inside. */
static CUresult array_side(struct side *out, const struct box_side *b, const struct box *box)
{
  CUarray a = b->array;
  if (!sim_arena_has(&sim_arrays, a)) return CUDA_ERROR_INVALID_HANDLE;
  if (b->x > a->pitch || box->width > a->pitch - b->x || b->y > a->rows ||
      box->height > a->rows - b->y || b->z > a->slices || box->depth > a->slices - b->z)
    return CUDA_ERROR_INVALID_VALUE;
  *out = (struct side){.pitch = a->pitch,
                       .slice = a->pitch * a->rows,
                       .memory = DEVICE,
                       .array = true,
                       .readers = UINT32_MAX,
                       .writers = UINT32_MAX,
                       .device = a->context->device};
  out->start = (char *)a->start + b->z * out->slice + b->y * out->pitch + b->x;
  return CUDA_SUCCESS;
}

static CUresult pitched_side(struct side *out, const struct box_side *b, const struct box *box)
{
  size_t pitch = b->pitch, rows = b->rows;
  bool one_row = box->height == 1 && box->depth == 1 && !b->y && !b->z;
  if (!pitch && one_row) pitch = b->x + box->width;
  if (box->depth == 1 && !b->z) rows = b->y + box->height;
  if (pitch < b->x + box->width || pitch - box->width < b->x) return CUDA_ERROR_INVALID_VALUE;
  if (rows < b->y + box->height) return CUDA_ERROR_INVALID_VALUE;
  size_t slice, skip, base = b->type == CU_MEMORYTYPE_HOST ? b->host : b->device;
  if (__builtin_mul_overflow(pitch, rows, &slice)) return CUDA_ERROR_INVALID_VALUE;
  if (__builtin_mul_overflow(slice, b->z, &skip)) return CUDA_ERROR_INVALID_VALUE;
  if (!base) return CUDA_ERROR_INVALID_VALUE;
  *out = (struct side){.start = (char *)base + skip + b->y * pitch + b->x,
                       .pitch = pitch,
                       .slice = slice,
                       .planned = out->planned};
  return classify_copy(out, b->type == CU_MEMORYTYPE_DEVICE, box->width, box->height, box->depth);
}

static CUresult box_side(struct side *out, const struct box_side *b, const struct box *box)
{
  switch (b->type) {
  case CU_MEMORYTYPE_ARRAY:
    return array_side(out, b, box);
  case CU_MEMORYTYPE_HOST:
  case CU_MEMORYTYPE_DEVICE:
  case CU_MEMORYTYPE_UNIFIED:
    return pitched_side(out, b, box);
  default:
    return CUDA_ERROR_INVALID_VALUE;
  }
}

/* A copy op of the box, not yet queued. *out is NULL for an empty box. */
static CUresult box_op(const struct box *box, bool planned, struct copy **out)
{
  *out = NULL;
  if (!box->width || !box->height || !box->depth) return CUDA_SUCCESS;
  struct copy *c = copy_new(box->width, box->height, box->depth);
  if (!c) return CUDA_ERROR_OUT_OF_MEMORY;
  c->dst.planned = c->src.planned = planned;
  CUresult error = box_side(&c->dst, &box->dst, box);
  if (!error) error = box_side(&c->src, &box->src, box);
  if (error) {
    sim_op_free(&c->op);
    return error;
  }
  c->direction = direction_of(c);
  *out = c;
  return CUDA_SUCCESS;
}

static CUresult copy_box(const struct box *box, CUstream stream, bool async)
{
  SIM_NEED_CURRENT();
  CUstream s;
  CUresult error = sim_stream_find(stream, &s);
  if (!error && !async) error = now_allowed(s);
  if (error) return error;
  if (async && sim_capturing(s)) return capture_box(box, s);
  struct copy *c;
  error = box_op(box, false, &c);
  if (error || !c) return error;
  c->denied = denied(s, c->src.readers) || denied(s, c->dst.writers);
  return submit_copy(c, s, async, NULL);
}

#define BOX_SIDE_2D(p, side)                                                                       \
  {                                                                                                \
    .type = (p)->side##MemoryType, .host = (uintptr_t)(p)->side##Host,                             \
    .device = (p)->side##Device, .array = (p)->side##Array, .x = (p)->side##XInBytes,              \
    .y = (p)->side##Y, .pitch = (p)->side##Pitch                                                   \
  }
#define BOX_SIDE_3D(p, side)                                                                       \
  {                                                                                                \
    .type = (p)->side##MemoryType, .host = (uintptr_t)(p)->side##Host,                             \
    .device = (p)->side##Device, .array = (p)->side##Array, .x = (p)->side##XInBytes,              \
    .y = (p)->side##Y, .z = (p)->side##Z, .pitch = (p)->side##Pitch, .rows = (p)->side##Height     \
  }

/* `limited`: cuMemcpy2D "may fail for intra-device copies if pitch is over
 * CU_DEVICE_ATTRIBUTE_MAX_PITCH"; the unaligned form has no such limit. */
static CUresult copy_2d(const CUDA_MEMCPY2D *p, CUstream stream, bool async, bool limited)
{
  if (!p) return CUDA_ERROR_INVALID_VALUE;
  if (limited && (p->srcPitch > INT32_MAX || p->dstPitch > INT32_MAX))
    return CUDA_ERROR_INVALID_VALUE;
  struct box box = {BOX_SIDE_2D(p, dst), BOX_SIDE_2D(p, src), p->WidthInBytes, p->Height, 1};
  return copy_box(&box, stream, async);
}

static CUresult copy_3d(const CUDA_MEMCPY3D *p, CUstream stream, bool async)
{
  if (!p) return CUDA_ERROR_INVALID_VALUE;
  if (p->srcLOD || p->dstLOD) return CUDA_ERROR_INVALID_VALUE;
  struct box box = {BOX_SIDE_3D(p, dst), BOX_SIDE_3D(p, src), p->WidthInBytes, p->Height, p->Depth};
  return copy_box(&box, stream, async);
}

SIM_ENTRY(cuMemcpy2D_v2, copy_2d(pCopy, default_stream, false, true))
SIM_ENTRY(cuMemcpy2DUnaligned_v2, copy_2d(pCopy, default_stream, false, false))
SIM_ENTRY(cuMemcpy2DAsync_v2, copy_2d(pCopy, hStream, true, true))
SIM_ENTRY(cuMemcpy3D_v2, copy_3d(pCopy, default_stream, false))
SIM_ENTRY(cuMemcpy3DAsync_v2, copy_3d(pCopy, hStream, true))

/* ---- arrays, by byte offset ------------------------------------------------------------------ */

static struct box_side at_array(CUarray array, size_t offset)
{
  return (struct box_side){.type = CU_MEMORYTYPE_ARRAY, .array = array, .x = offset};
}

static struct box_side at_host(const void *p)
{
  return (struct box_side){.type = CU_MEMORYTYPE_HOST, .host = (uintptr_t)p};
}

static struct box_side at_device(CUdeviceptr p)
{
  return (struct box_side){.type = CU_MEMORYTYPE_DEVICE, .device = p};
}

static CUresult copy_row(struct box_side dst, struct box_side src, size_t bytes, CUstream stream,
                         bool async)
{
  struct box box = {dst, src, bytes, 1, 1};
  return copy_box(&box, stream, async);
}

SIM_ENTRY(cuMemcpyHtoA_v2, copy_row(at_array(dstArray, dstOffset), at_host(srcHost), ByteCount,
                                    default_stream, false))
SIM_ENTRY(cuMemcpyHtoAAsync_v2,
          copy_row(at_array(dstArray, dstOffset), at_host(srcHost), ByteCount, hStream, true))
SIM_ENTRY(cuMemcpyAtoH_v2, copy_row(at_host(dstHost), at_array(srcArray, srcOffset), ByteCount,
                                    default_stream, false))
SIM_ENTRY(cuMemcpyAtoHAsync_v2,
          copy_row(at_host(dstHost), at_array(srcArray, srcOffset), ByteCount, hStream, true))
SIM_ENTRY(cuMemcpyDtoA_v2, copy_row(at_array(dstArray, dstOffset), at_device(srcDevice), ByteCount,
                                    default_stream, false))
SIM_ENTRY(cuMemcpyAtoD_v2, copy_row(at_device(dstDevice), at_array(srcArray, srcOffset), ByteCount,
                                    default_stream, false))
SIM_ENTRY(cuMemcpyAtoA_v2, copy_row(at_array(dstArray, dstOffset), at_array(srcArray, srcOffset),
                                    ByteCount, default_stream, false))

/* ---- between contexts ------------------------------------------------------------------------ */

/* Held from a copy's first dependency to its last barrier: a context keeps only its latest barrier,
 * so each copy must wait for the one before. */
static pthread_mutex_t barriers_lock = PTHREAD_MUTEX_INITIALIZER;

static void set_barrier(CUcontext context, CUstream s, uint64_t seq)
{
  sim_stream_ref(s);
  SIM_HOLD(context->lock);
  if (context->barrier.stream) sim_stream_unref(context->barrier.stream);
  context->barrier = (struct sim_ticket){s, seq};
}

static CUresult copy_between_barriers(struct copy *c, CUcontext current, CUcontext dst,
                                      CUcontext src, CUstream s)
{
  CUcontext all[3] = {current, dst, src};
  CUresult error = CUDA_SUCCESS;
  SIM_HOLD(barriers_lock);
  for (int i = 0; i < 3 && !error; i++)
    error = sim_op_after_context(&c->op, all[i]);
  if (error) {
    sim_op_free(&c->op);
    return error;
  }
  uint64_t ticket;
  error = submit_copy(c, s, false, &ticket);
  for (int i = 0; i < 3 && !error; i++)
    set_barrier(all[i], s, ticket);
  return error;
}

/* cuMemcpyPeer: "asynchronous with respect to the host, but serialized with respect to all pending
 * and future asynchronous work into the current context, srcContext, and dstContext". The Async
 * form is ordinary work of its stream. Both go the same way whether peer access is enabled or not.
 */
static CUresult driver_copy_peer(const struct box *box, CUcontext dst, CUcontext src,
                                 CUstream stream, bool async)
{
  SIM_NEED_CONTEXT(current);
  CUresult error = sim_context_check(dst);
  if (!error) error = sim_context_check(src);
  CUstream s;
  if (!error) error = sim_stream_find(stream, &s);
  if (!error && !async) error = now_allowed(s);
  if (!error && async && sim_capturing(s)) return capture_box(box, s);
  struct copy *c = NULL;
  if (!error) error = box_op(box, false, &c);
  if (error || !c) return error;
  return async ? submit_copy(c, s, true, NULL) : copy_between_barriers(c, current, dst, src, s);
}

CUresult sim_cuMemcpyPeer(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src,
                          CUcontext src_context, size_t bytes, CUstream stream)
{
  struct box box = {at_device(dst), at_device(src), bytes, 1, 1};
  return driver_copy_peer(&box, dst_context, src_context, stream, false);
}

CUresult sim_cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src,
                               CUcontext src_context, size_t bytes, CUstream stream)
{
  struct box box = {at_device(dst), at_device(src), bytes, 1, 1};
  return driver_copy_peer(&box, dst_context, src_context, stream, true);
}

static CUresult copy_3d_peer(const CUDA_MEMCPY3D_PEER *p, CUstream stream, bool async)
{
  if (!p || p->srcLOD || p->dstLOD) return CUDA_ERROR_INVALID_VALUE;
  struct box box = {BOX_SIDE_3D(p, dst), BOX_SIDE_3D(p, src), p->WidthInBytes, p->Height, p->Depth};
  return driver_copy_peer(&box, p->dstContext, p->srcContext, stream, async);
}

SIM_ENTRY(cuMemcpy3DPeer, copy_3d_peer(pCopy, default_stream, false))
SIM_ENTRY(cuMemcpy3DPeerAsync, copy_3d_peer(pCopy, hStream, true))

/* ---- memsets --------------------------------------------------------------------------------- */

static CUresult fill_op(const CUDA_MEMSET_NODE_PARAMS_v2 *p, bool planned, struct fill **out)
{
  size_t bytes, element = p->elementSize, pitch = p->pitch;
  if (__builtin_mul_overflow(p->width, element, &bytes)) return CUDA_ERROR_INVALID_VALUE;
  if (p->height == 1) pitch = bytes;
  if (p->dst % element || pitch % element || pitch < bytes) return CUDA_ERROR_INVALID_VALUE;
  struct fill *f = sim_op_new(sizeof *f, run_fill);
  if (!f) return CUDA_ERROR_OUT_OF_MEMORY;
  f->op.describe = describe_fill;
  f->async = true; /* as a graph's node */
  f->dst = (struct side){.start = (char *)p->dst, .pitch = pitch, .planned = planned};
  f->width = p->width;
  f->height = p->height;
  f->value = p->value;
  f->element = p->elementSize;
  CUresult error = classify_copy(&f->dst, true, bytes, p->height, 1);
  if (error)
    sim_op_free(&f->op);
  else
    *out = f;
  return error;
}

static CUresult fill_memory(CUdeviceptr dst, size_t pitch, unsigned element, uint32_t value,
                            size_t width, size_t height, CUstream stream, bool async)
{
  SIM_NEED_CONTEXT(context);
  CUDA_MEMSET_NODE_PARAMS_v2 p = {dst, pitch, value, element, width, height, context};
  CUstream s;
  CUresult error = sim_stream_find(stream, &s);
  if (!error && !async) error = now_allowed(s);
  if (error || !width || !height) return error;
  if (async && sim_capturing(s)) {
    CUgraphNodeParams node = {.type = CU_GRAPH_NODE_TYPE_MEMSET, .memset = p};
    return sim_capture_add(s, &node);
  }
  struct fill *f;
  error = fill_op(&p, false, &f);
  if (error) return error;
  f->denied = denied(s, f->dst.writers);
  f->async = async;
  bool wait = !async && (f->dst.memory == PINNED || f->dst.sync_memops);
  return sim_submit(s, &f->op, wait ? SIM_AND_WAIT : SIM_QUEUE, NULL);
}

/* The function for a line, the one for rows, the type of an element, asynchronous; gen.py reads it
 * too. */
#define MEMSETS(X)                                                                                 \
  X(sim_cuMemsetD8_v2, sim_cuMemsetD2D8_v2, unsigned char, false)                                  \
  X(sim_cuMemsetD8Async, sim_cuMemsetD2D8Async, unsigned char, true)                               \
  X(sim_cuMemsetD16_v2, sim_cuMemsetD2D16_v2, unsigned short, false)                               \
  X(sim_cuMemsetD16Async, sim_cuMemsetD2D16Async, unsigned short, true)                            \
  X(sim_cuMemsetD32_v2, sim_cuMemsetD2D32_v2, unsigned int, false)                                 \
  X(sim_cuMemsetD32Async, sim_cuMemsetD2D32Async, unsigned int, true)

#define DEFINE_MEMSETS(line, rows, type, async)                                                    \
  CUresult line(CUdeviceptr dst, type value, size_t n, CUstream stream)                            \
  {                                                                                                \
    return fill_memory(dst, 0, sizeof value, value, n, 1, stream, async);                          \
  }                                                                                                \
  CUresult rows(CUdeviceptr dst, size_t pitch, type value, size_t width, size_t height,            \
                CUstream stream)                                                                   \
  {                                                                                                \
    return fill_memory(dst, pitch, sizeof value, value, width, height, stream, async);             \
  }
MEMSETS(DEFINE_MEMSETS)

/* ---- several in one call --------------------------------------------------------------------- */

CUresult sim_copy_op(const CUDA_MEMCPY3D *p, CUstream s, bool now, struct sim_op **op)
{
  struct box box = {BOX_SIDE_3D(p, dst), BOX_SIDE_3D(p, src), p->WidthInBytes, p->Height, p->Depth};
  struct copy *c = NULL;
  CUresult error = box_op(&box, false, &c);
  if (error) return error;
  if (!c) return CUDA_ERROR_INVALID_VALUE;
  c->denied = denied(s, c->src.readers) || denied(s, c->dst.writers);
  c->now = now;
  *op = &c->op;
  return CUDA_SUCCESS;
}

CUresult sim_copy_submit(struct sim_op *op, CUstream s)
{
  return submit_copy((struct copy *)op, s, true, NULL);
}

/* ---- as nodes of a graph --------------------------------------------------------------------- */

/* The device that does the work is that of the node's context, or one that owns a side. */
static bool node_denied(const struct sim_device *d, const struct side *s, uint32_t who)
{
  if (d && who >> d->ordinal & 1) return false;
  return s->device && !(who >> s->device->ordinal & 1);
}

CUresult sim_copy_node_op(const CUDA_MEMCPY_NODE_PARAMS *node, bool planned, struct sim_op **op)
{
  const CUDA_MEMCPY3D *p = &node->copyParams;
  if (p->srcLOD || p->dstLOD || !p->WidthInBytes || !p->Height || !p->Depth)
    return CUDA_ERROR_INVALID_VALUE;
  struct box box = {BOX_SIDE_3D(p, dst), BOX_SIDE_3D(p, src), p->WidthInBytes, p->Height, p->Depth};
  struct copy *c = NULL;
  CUresult error = box_op(&box, planned, &c);
  if (error) return error;
  const struct sim_device *d = sim_context_check(node->copyCtx) ? NULL : node->copyCtx->device;
  c->denied = node_denied(d, &c->src, c->src.readers) || node_denied(d, &c->dst, c->dst.writers);
  *op = &c->op;
  return CUDA_SUCCESS;
}

CUresult sim_fill_node_op(const CUDA_MEMSET_NODE_PARAMS_v2 *p, bool planned, struct sim_op **op)
{
  if (p->elementSize != 1 && p->elementSize != 2 && p->elementSize != 4)
    return CUDA_ERROR_INVALID_VALUE;
  if (!p->width || !p->height) return CUDA_ERROR_INVALID_VALUE;
  struct fill *f = NULL;
  CUresult error = fill_op(p, planned, &f);
  if (error) return error;
  const struct sim_device *d = sim_context_check(p->ctx) ? NULL : p->ctx->device;
  f->denied = node_denied(d, &f->dst, f->dst.writers);
  *op = &f->op;
  return CUDA_SUCCESS;
}
