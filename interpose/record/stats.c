/* stats.c: see stats.h. A fact is written by the thread that brought it about, most
 * often in the middle of a call whose own event follows. A question that is no event of its own
 * (reroute/query.c) may be a thread's first sign: then the thread begins here, and counts as inside
 * of a call, so that a signal's handler does not write into our slot. */
#include "interpose/record/stats.h"

#include <errno.h>
#include "interpose/record/context.h"
#include "interpose/record/record.h"

/* What a context took is its own; 0: it was never current. */
static uint32_t context_of_fact(const thread_state *t, const trace_event *fact)
{
  bool of_context = fact->cache_fact == WEIR_CACHE_TAKEN && fact->b == WEIR_TAKEN_CONTEXT;
  return of_context ? context_number(fact->a) & 255 : t->last_context_number;
}

static void write_cache_event(thread_state *t, const trace_event *fact)
{
  uint32_t stack = fact->stack ? fact->stack : stack_capture(&t->stacks, &t->writer);
  trace_event *slot = spool_writer_slots(&t->writer, 1);
  if (!slot) return;
  slot->kind = WEIR_EV_CACHE;
  slot->flags = 0;
  slot->api = 0;
  slot->start = fact->start;
  event_set_duration(slot, clock_ticks() - fact->start);
  slot->status = 0;
  slot->stack = (stack & 0xffffff) | context_of_fact(t, fact) << 24;
  slot->device = fact->device;
  slot->src_device = fact->cache_fact == WEIR_CACHE_POOL ? fact->src_device : WEIR_DEVICE_NONE;
  slot->cache_fact = fact->cache_fact;
  slot->mem = fact->mem;
  slot->a = fact->a;
  slot->b = fact->b;
  slot->bytes = fact->bytes;
  slot->stream = fact->stream;
  spool_writer_commit(&t->writer, 1);
}

void cache_event_write(const trace_event *fact)
{
  thread_state *t = &thread_self;
  if (process_unrecorded) return;
  int saved = errno;
  __typeof__(t->depth) depth = t->depth; /* not 0: within a call */
  bool here = t->epoch == atomic_load_explicit(&process_epoch, memory_order_relaxed);
  bool ready = depth ? here && atomic_load(&process_recording) : thread_ready(t);
  if (ready) {
    if (!depth) t->outermost = (uintptr_t)__builtin_frame_address(0);
    t->depth = 1;
    write_cache_event(t, fact);
    t->depth = depth;
  }
  errno = saved;
}

/* Writes a fact of that name; the other arguments are the members that it has. */
#define WRITE_FACT(fact, ...)                                                                      \
  cache_event_write(&(trace_event){.cache_fact = WEIR_CACHE_##fact, __VA_ARGS__})

void cache_event_tainted(uint64_t address, uint64_t bytes, reroute_reason why)
{
  WRITE_FACT(TAINTED, .start = clock_ticks(), .device = WEIR_DEVICE_NONE, .mem = WEIR_MEM_DEVICE,
             .a = address, .b = why, .bytes = bytes);
}

void cache_event_staging(uint64_t start, unsigned device, copy_kind kind, unsigned percent,
                         uint64_t bytes)
{
  WRITE_FACT(STAGING, .start = start, .device = (uint8_t)device, .a = kind, .b = percent,
             .bytes = bytes);
}

void cache_event_unwritten(uint64_t block, uint64_t offset, uint64_t bytes, uint32_t stack)
{
  WRITE_FACT(UNWRITTEN, .start = clock_ticks(), .stack = stack, .device = thread_self.last_device,
             .mem = WEIR_MEM_DEVICE, .a = block, .b = offset, .bytes = bytes);
}

void cache_event_reserved(unsigned device, memory_kind mem, uint64_t bytes)
{
  WRITE_FACT(RESERVED, .start = clock_ticks(), .device = (uint8_t)device, .mem = (uint8_t)mem,
             .bytes = bytes);
}

void cache_event_pool(uint64_t start, uint64_t pool, unsigned device, bool from_start,
                      const pool_figures *f)
{
  WRITE_FACT(POOL, .start = start, .device = (uint8_t)device,
             .src_device = from_start ? (uint8_t)device : WEIR_DEVICE_NONE, .mem = WEIR_MEM_DEVICE,
             .a = pool, .b = f->used, .bytes = f->reserved, .stream = f->threshold);
  WRITE_FACT(POOL_PEAK, .start = start, .device = (uint8_t)device, .mem = WEIR_MEM_DEVICE,
             .a = pool, .b = f->used_high, .bytes = f->reserved_high);
}

void cache_event_pool_ended(uint64_t pool)
{
  WRITE_FACT(POOL_ENDED, .start = clock_ticks(), .device = WEIR_DEVICE_NONE, .mem = WEIR_MEM_DEVICE,
             .a = pool);
}

void cache_event_device_memory(uint64_t start, unsigned device, uint64_t total, uint64_t free_now)
{
  WRITE_FACT(DEVICE, .start = start, .device = (uint8_t)device, .mem = WEIR_MEM_DEVICE,
             .b = free_now, .bytes = total);
}

void cache_event_graphs(uint64_t start, unsigned device, uint64_t reserved, uint64_t used)
{
  WRITE_FACT(GRAPHS, .start = start, .device = (uint8_t)device, .mem = WEIR_MEM_DEVICE, .b = used,
             .bytes = reserved);
}

void cache_event_taken(uint64_t start, unsigned device, taken_by what, uint64_t handle,
                       int64_t bytes)
{
  WRITE_FACT(TAKEN, .start = start, .device = (uint8_t)device,
             .mem = what == WEIR_TAKEN_CODE ? WEIR_MEM_CODE : WEIR_MEM_CONTEXT, .a = handle,
             .b = what, .bytes = (uint64_t)bytes);
}
