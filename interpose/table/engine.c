/* engine.c: Weir's own library in the same process (core/trace/listener.h).
 *
 * A call of the program's into the engine owns its event as a hooked call does (record.h), so what
 * the engine does below it is no event. Its other calls into the driver, from threads of its own
 * too, are hushed: the thread's depth is raised around them, so that wrappers pass them through.
 * The pointer map knows what the engine has from the driver: a copy finds what kind of memory it
 * meets, and a block the device and context that it is in. */
#include "core/trace/listener.h"
#include "core/trace/tensor_record.h"

#include <sys/auxv.h>
#include "interpose/record/context.h"
#include "interpose/record/event_fill.h"
#include "interpose/table/hooks.gen.h"
#include "interpose/record/pointers.h"
#include "interpose/record/stats.h"
#include "interpose/reroute/reroute.h"

_Static_assert(sizeof(weir_call) <= sizeof(weir_notice), "a told call is a call");

static const struct told_row {
  uint16_t api; /* core/trace/api.def */
  bool alloc, pinned;
} rows[WEIR_NOTICE_APIS] = {[WEIR_NOTICE_MALLOC] = {WEIR_API_weir_malloc, true, false},
                            [WEIR_NOTICE_FREE] = {WEIR_API_weir_free, false, false},
                            [WEIR_NOTICE_PINNED_MALLOC] = {WEIR_API_weir_pinned_malloc, true, true},
                            [WEIR_NOTICE_PINNED_FREE] = {WEIR_API_weir_pinned_free, false, true}};

static bool begin(weir_notice *told)
{
  weir_call *c = (weir_call *)(void *)told->room;
  weir_thread *t = &weir_self;
  if (weir_is_within(c, t) || !weir_begin_outermost(c, t, 0, 0, WEIR_BANK_DRIVER)) return false;
  weir_forward(c);
  return true;
}

/* The block's place is that of the memory it was cut from. */
static weir_fill fill(const weir_call *c, const weir_block_notice *what, const struct told_row *row)
{
  weir_tag tag = weir_pointer_tag(what->address);
  weir_fill e = {.kind = row->alloc ? WEIR_EV_ALLOC : WEIR_EV_FREE,
                 .flags = c->flags,
                 .a = what->address,
                 .bytes = what->bytes,
                 .stream = row->pinned || !row->alloc ? 0 : what->stream,
                 .mem = row->pinned ? WEIR_MEM_PINNED : WEIR_MEM_DEVICE,
                 .device = WEIR_DEVICE_NONE,
                 .src_device = WEIR_DEVICE_NONE,
                 .context = tag ? weir_tag_context(tag) : c->thread->last_context_number};
  if (!row->pinned)
    e.device = tag                 ? weir_tag_device(tag)
               : what->device >= 0 ? (unsigned)what->device
                                   : c->thread->last_device;
  if (row->alloc && !row->pinned && !e.stream) e.stream = WEIR_STREAM_LEGACY;
  return e;
}

static void end(weir_notice *told, const weir_block_notice *what)
{
  weir_call *c = (weir_call *)(void *)told->room;
  const struct told_row *row = &rows[what->api];
  weir_returned(c, what->status);
  c->api = row->api;
  weir_fill e = fill(c, what, row);
  weir_commit(c, &e);
  weir_leave(c);
}

static bool hush(const void *scope)
{
  weir_thread *t = &weir_self;
  if (t->depth) return false;
  (void)weir_thread_ready(t);
  t->depth = 1;
  t->outermost = (uintptr_t)scope;
  t->hushed = true;
  return true;
}

static void unhush(void)
{
  weir_self.hushed = false;
  weir_self.depth = 0;
}

static bool relieve(void)
{
  return weir_mode_now() != WEIR_OBSERVE && weir_route_relieve();
}

static void mapped(uint64_t address, uint64_t bytes, weir_mem mem, int device)
{
  weir_thread *t = &weir_self;
  bool here = t->epoch == atomic_load_explicit(&weir_process_epoch, memory_order_relaxed);
  unsigned context = 0;
  if (here && atomic_load(&weir_recording)) {
    weir_context_refresh(t);
    context = t->last_context_number;
  }
  weir_block_add((weir_block){address, bytes, weir_tag_make(mem, (unsigned)device, context)});
}

static void unmapped(uint64_t address)
{
  (void)weir_block_take(address);
}

static void reserved(int device, weir_mem mem, uint64_t bytes)
{
  weir_stats_reserved((unsigned)device, mem, bytes);
}

/* A fact of a tensor is no event: it is written wherever the thread is, within a call or not. */
static void tensor(const weir_tensor_notice *what)
{
  weir_thread *t = &weir_self;
  if (!weir_thread_ready(t)) return;
  int kept = errno;
  weir_trace_event head = {.start = weir_ticks()};
  (void)weir_tensor_record(&t->writer, &head, what);
  errno = kept;
}

const weir_listener *weir_note_engine(uint32_t version)
{
  static const weir_listener listener = {begin,  end,      hush,     unhush, relieve,
                                         mapped, unmapped, reserved, tensor};
  return version == WEIR_LISTENER_VERSION && !getauxval(AT_SECURE) ? &listener : NULL;
}
