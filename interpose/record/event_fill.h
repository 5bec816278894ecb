/* event_fill.h: the event of a call, begun with what every event has, filled by an extractor,
 * committed. Until the commit it lives in registers: a record stored in pieces and read back for
 * its check would wait for the stores. */
#ifndef WEIR_INTERPOSE_EVENT_FILL_H
#define WEIR_INTERPOSE_EVENT_FILL_H

#include "interpose/process/mode.h"
#include "interpose/record/captures.h"
#include "interpose/record/context.h"
#include "interpose/record/record.h"
#include "interpose/record/work.h"

/* What an extractor fills; fields as in trace_event. The detail has a name for each kind there;
 * here functions do what a union would, which the compiler would keep in memory. */
typedef struct event_fields {
  uint64_t a, b, bytes, stream;
  unsigned kind, flags, device, src_device, detail, mem, context;
} event_fields;

#define WEIR_DETAIL(type)                                                                          \
  WEIR_INLINE void event_set_##type(event_fields *e, type value)                                   \
  {                                                                                                \
    e->detail = (uint8_t)value;                                                                    \
  }                                                                                                \
  WEIR_INLINE type event_get_##type(const event_fields *e)                                         \
  {                                                                                                \
    return (type)e->detail;                                                                        \
  }
WEIR_DETAIL(copy_kind)      /* of a COPY */
WEIR_DETAIL(sync_type)      /* of a SYNC */
WEIR_DETAIL(reroute_reason) /* of an ALLOC or FREE */
#undef WEIR_DETAIL

/* Who looks at events before they are committed, copies apart (copy_sites.h); it may write records,
 * which come before the event's. Events are shown while `event_watch_all` is not 0, and those of a
 * function that is marked always are; to all others it costs one load. */
typedef void event_watcher(const hook_call *c, const event_fields *e);
extern event_watcher *event_watched_by;  /* NULL: none; set before the first event */
extern _Atomic uint32_t event_watch_all; /* not 0: all events are shown */

/* From now on each event of the function is shown. Before the first event. */
void event_watch_api(uint16_t api);

/* First time that a function's event is recorded in a process image (its epoch), or it is shown. */
__attribute__((cold)) void event_look(const hook_call *c, const event_fields *e);
extern _Atomic uint32_t called_epochs[]; /* by api: epoch it was last first called in */

WEIR_INLINE bool event_is_looked_at(const hook_call *c)
{
  uint32_t seen = atomic_load_explicit(&called_epochs[c->api], memory_order_relaxed);
  uint32_t all = atomic_load_explicit(&event_watch_all, memory_order_relaxed);
  return (seen ^ c->thread->epoch) | all;
}

/* Begins the event after context_refresh(). */
WEIR_INLINE event_fields event_begin_here(const hook_call *c, event_kind kind)
{
  return (event_fields){.kind = kind,
                        .flags = c->flags,
                        .device = WEIR_DEVICE_NONE,
                        .src_device = WEIR_DEVICE_NONE,
                        .context = c->thread->last_context_number};
}

/* Where the program's call to cuInit went past us: a call that has done something shows that there
 * was one. Functions that only return a version or an error succeed without; they are CALLs, and a
 * runtime's CONTEXTs may only note what is asked of them. */
WEIR_INLINE void driver_note_use(const hook_call *c, event_kind kind)
{
  if (__builtin_expect(atomic_load_explicit(&driver_ready, memory_order_relaxed), 1)) return;
  bool tells = kind == WEIR_EV_CALL || (kind == WEIR_EV_CONTEXT && c->bank != WEIR_BANK_DRIVER);
  if (!tells) driver_initialised(c->status);
}

WEIR_INLINE event_fields event_begin(const hook_call *c, event_kind kind)
{
  driver_note_use(c, kind);
  context_refresh(c->thread);
  return event_begin_here(c, kind);
}

/* For what programs do most. */
WEIR_INLINE event_fields event_begin_frequent(const hook_call *c, event_kind kind)
{
  if (__builtin_expect(!c->thread->last_context, 0)) driver_note_use(c, kind);
  context_refresh_trusted(c->thread);
  return event_begin_here(c, kind);
}

/* The stream of a call with these flags, default streams normalised. */
WEIR_INLINE uint64_t stream_of_call(unsigned flags, uint64_t stream)
{
  if (stream) return stream;
  return flags & WEIR_EVF_PTDS ? WEIR_STREAM_PER_THREAD : WEIR_STREAM_LEGACY;
}

/* The stream, and whether the work went into a capture. */
WEIR_INLINE void event_set_stream(event_fields *e, uint64_t stream)
{
  stream = stream_of_call(e->flags, stream);
  e->stream = stream;
  if (__builtin_expect(capture_live(), 0) && stream != WEIR_STREAM_LEGACY &&
      capture_is_active(stream))
    e->flags |= WEIR_EVF_CAPTURE;
}

/* The same for work that may touch memory, in a stream of that context: a relaxed free has to
 * outlast it. */
WEIR_INLINE void event_set_work_in(event_fields *e, uint64_t stream, unsigned context)
{
  event_set_stream(e, stream);
  if (process_mode_now() == WEIR_RELAXED) work_note(context, e->stream);
}

WEIR_INLINE void event_set_work(event_fields *e, uint64_t stream)
{
  event_set_work_in(e, stream, e->context);
}

/* The event belongs to another context than the thread's. */
WEIR_INLINE void event_set_context(event_fields *e, uint64_t context)
{
  e->context = context_number(context);
  e->device = context_device(context);
}

/* Asks for a line to write: the collector has read it, so another core may hold it too. What the
 * compiler emits for x86 by itself asks for a line to read, and the wait is the same. */
WEIR_INLINE void event_prefetch_slot(const trace_event *slot)
{
#if defined(__x86_64__)
  __asm__ volatile("prefetchw %0" : : "m"(*slot));
#else
  __builtin_prefetch(slot, 1, 3);
#endif
}

#define WEIR_BYTE(value, at) ((uint64_t)((value)&255u) << (at))

/* The event's words; the check is to be mixed into the first. */
WEIR_INLINE void event_fill_words(const hook_call *c, const event_fields *e, uint64_t stack,
                                  event_word w[8])
{
  uint64_t took = c->end - c->start;
  if (__builtin_expect(took >> 48, 0)) took = (UINT64_C(1) << 48) - 1;
  w[0] = WEIR_BYTE(e->kind, 32) | WEIR_BYTE(e->flags, 40) | (uint64_t)c->api << 48;
  w[1] = c->start;
  w[2] = took | (uint64_t)c->status << 48;
  w[3] = (stack & 0xffffff) | WEIR_BYTE(e->context, 24) | WEIR_BYTE(e->device, 32) |
         WEIR_BYTE(e->src_device, 40) | WEIR_BYTE(e->detail, 48) | WEIR_BYTE(e->mem, 56);
  w[4] = e->a, w[5] = e->b, w[6] = e->bytes, w[7] = e->stream;
}

/* What comes before the event: it is shown, and its stack is captured. False: nothing is recorded. */
WEIR_INLINE bool event_prepare(const hook_call *c, const event_fields *e, uint64_t *stack)
{
  thread_state *t = c->thread;
  if (__builtin_expect(t->depth == CALL_LEFT_OUT, 0)) return false;
  if (__builtin_expect(event_is_looked_at(c), 0)) {
    if (process_unrecorded) return false; /* each time is the first */
    const event_fields shown = *e;        /* the event itself stays in registers */
    event_look(c, &shown);
  }
  *stack = stack_capture_on() ? stack_capture(&t->stacks, &t->writer) : 0;
  return true;
}

/* Writes the event: seven words, and last, with release order, the first, which holds the check. */
WEIR_INLINE void event_write(const hook_call *c, const event_fields *e, uint64_t stack)
{
  _Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the words below are laid out so");
  _Static_assert(offsetof(trace_event, api) == 6 && offsetof(trace_event, status) == 22 &&
                     offsetof(trace_event, device) == 28 && offsetof(trace_event, mem) == 31,
                 "the words below are the event's");
  thread_state *t = c->thread;
  trace_event *slot = spool_writer_slots(&t->writer, 1);
  event_word w[8];
  if (__builtin_expect(!slot, 0)) return;
  event_fill_words(c, e, stack, w);
  event_prefetch_slot(slot + 4);
  event_word *to = (event_word *)(void *)slot;
  to[1] = w[1], to[2] = w[2], to[3] = w[3], to[4] = w[4], to[5] = w[5], to[6] = w[6], to[7] = w[7];
  uint32_t check = event_words_check(w, t->writer.place);
  __atomic_store_n(to, w[0] | check, __ATOMIC_RELEASE);
  t->writer.next++;
  t->writer.place++;
}

WEIR_INLINE void event_commit(const hook_call *c, const event_fields *e)
{
  uint64_t stack;
  if (event_prepare(c, e, &stack)) event_write(c, e, stack);
}

#endif
