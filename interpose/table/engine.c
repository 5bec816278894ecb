/* engine.c: Weir's own library in the same process (core/trace/listener.h).
 *
 * A call of the program's into the engine owns its event as a hooked call does (record.h), so what
 * the engine does below it is no event. Its other calls into the driver, from threads of its own
 * too, record nothing: the thread's depth is raised around them, so that wrappers pass them on.
 * The pointer map knows what the engine has from the driver: a copy finds what kind of memory it
 * meets, and a block the device and context that it is in. */
#include "core/trace/listener.h"
#include "core/trace/tensor_record.h"

#include <sys/auxv.h>
#include "interpose/elf/entry.h"
#include "interpose/record/context.h"
#include "interpose/record/event_fill.h"
#include "interpose/table/hooks.gen.h"
#include "interpose/record/pointers.h"
#include "interpose/record/stats.h"
#include "interpose/reroute/reroute.h"

_Static_assert(sizeof(hook_call) <= sizeof(engine_notice), "a told call is a call");

static const struct event_row {
  uint16_t api; /* core/trace/api.def */
  bool alloc, pinned;
} rows[WEIR_NOTICE_APIS] = {[WEIR_NOTICE_MALLOC] = {WEIR_API_weir_malloc, true, false},
                            [WEIR_NOTICE_FREE] = {WEIR_API_weir_free, false, false},
                            [WEIR_NOTICE_PINNED_MALLOC] = {WEIR_API_weir_pinned_malloc, true, true},
                            [WEIR_NOTICE_PINNED_FREE] = {WEIR_API_weir_pinned_free, false, true}};

static bool begin_notice(engine_notice *notice)
{
  hook_call *c = (hook_call *)(void *)notice->room;
  thread_state *t = &thread_self;
  if (call_is_within(c, t) || !call_begin_outermost(c, t, 0, 0, WEIR_BANK_DRIVER)) return false;
  call_forward(c);
  return true;
}

/* The block's place is that of the memory it was cut from. */
static event_fields fill_block_event(const hook_call *c, const block_notice *what,
                                     const struct event_row *row)
{
  block_tag tag = pointer_tag(what->address);
  event_fields e = {.kind = row->alloc ? WEIR_EV_ALLOC : WEIR_EV_FREE,
                    .flags = c->flags,
                    .a = what->address,
                    .bytes = what->bytes,
                    .stream = row->pinned || !row->alloc ? 0 : what->stream,
                    .mem = row->pinned ? WEIR_MEM_PINNED : WEIR_MEM_DEVICE,
                    .device = WEIR_DEVICE_NONE,
                    .src_device = WEIR_DEVICE_NONE,
                    .context = tag ? block_tag_context(tag) : c->thread->last_context_number};
  if (!row->pinned)
    e.device = tag                 ? block_tag_device(tag)
               : what->device >= 0 ? (unsigned)what->device
                                   : c->thread->last_device;
  if (row->alloc && !row->pinned && !e.stream) e.stream = WEIR_STREAM_LEGACY;
  return e;
}

static void end_notice(engine_notice *notice, const block_notice *what)
{
  hook_call *c = (hook_call *)(void *)notice->room;
  const struct event_row *row = &rows[what->api];
  call_returned(c, what->status);
  c->api = row->api;
  event_fields e = fill_block_event(c, what, row);
  event_commit(c, &e);
  call_leave(c);
}

static bool suspend_recording(const void *scope)
{
  thread_state *t = &thread_self;
  if (t->depth) return false;
  (void)thread_ready(t);
  t->depth = 1;
  t->outermost = (uintptr_t)scope;
  t->recording_suspended = true;
  return true;
}

static void resume_recording(void)
{
  thread_self.recording_suspended = false;
  thread_self.depth = 0;
}

static bool on_out_of_memory(void)
{
  return process_mode_now() != WEIR_OBSERVE && reroute_release_cached();
}

static void on_mapped(uint64_t address, uint64_t bytes, memory_kind mem, int device)
{
  thread_state *t = &thread_self;
  bool here = t->epoch == atomic_load_explicit(&process_epoch, memory_order_relaxed);
  unsigned context = 0;
  if (here && atomic_load(&process_recording)) {
    context_refresh(t);
    context = t->last_context_number;
  }
  pointer_block_add(
      (pointer_block){address, bytes, block_tag_make(mem, (unsigned)device, context)});
}

static void on_unmapped(uint64_t address)
{
  (void)pointer_block_remove(address);
}

static void on_reserved(int device, memory_kind mem, uint64_t bytes)
{
  cache_event_reserved((unsigned)device, mem, bytes);
}

/* A fact of a tensor is no event: it is written wherever the thread is, within a call or not. */
static void on_tensor(const tensor_notice *what)
{
  thread_state *t = &thread_self;
  if (!thread_ready(t)) return;
  int kept = errno;
  trace_event head = {.start = clock_ticks()};
  (void)tensor_record(&t->writer, &head, what);
  errno = kept;
}

WEIR_BODY const engine_listener *listener_of(uint32_t version)
{
  static const engine_listener listener = {begin_notice,     end_notice,       suspend_recording,
                                           resume_recording, on_out_of_memory, on_mapped,
                                           on_unmapped,      on_reserved,      on_tensor};
  return version == WEIR_LISTENER_VERSION && !getauxval(AT_SECURE) ? &listener : NULL;
}
WEIR_ENTRY(weir_note_engine, listener_of);
