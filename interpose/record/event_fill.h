/* event_fill.h: the event of a call, begun with what every event has, filled by an extractor,
 * committed. Until the commit it lives in registers: a record stored in pieces and read back for
 * its check would wait for the stores. */
#ifndef WEIR_INTERPOSE_EVENT_FILL_H
#define WEIR_INTERPOSE_EVENT_FILL_H

#include "interpose/process/mode.h"
#include "interpose/record/capture.h"
#include "interpose/record/context.h"
#include "interpose/record/record.h"
#include "interpose/record/work.h"

/* What an extractor fills; fields as in weir_trace_event. */
typedef struct weir_fill {
  uint64_t a, b, bytes, stream;
  unsigned kind, flags, device, src_device, copy, mem, context;
} weir_fill;

/* First time a function's event is recorded in a process image (its epoch): the coverage. */
void weir_called_first(uint16_t api, uint32_t epoch);
extern _Atomic uint32_t weir_called[]; /* by api: epoch it was last first called in */

/* Begins the event after weir_context_refresh(). */
WEIR_INLINE weir_fill weir_begin_here(const weir_call *c, weir_event_kind kind)
{
  return (weir_fill){.kind = kind,
                     .flags = c->flags,
                     .device = WEIR_DEVICE_NONE,
                     .src_device = WEIR_DEVICE_NONE,
                     .context = c->thread->last_context_number};
}

/* Where the program's call to cuInit went past us: a call that has done something says that there
 * was one. Functions that only tell a version or an error succeed without; they are CALLs, and a
 * runtime's CONTEXTs may only note what is asked of them. */
WEIR_INLINE void weir_driver_was_used(const weir_call *c, weir_event_kind kind)
{
  if (__builtin_expect(atomic_load_explicit(&weir_driver_ready, memory_order_relaxed), 1)) return;
  bool tells = kind == WEIR_EV_CALL || (kind == WEIR_EV_CONTEXT && c->bank != WEIR_BANK_DRIVER);
  if (!tells) weir_driver_initialised(c->status);
}

WEIR_INLINE weir_fill weir_begin(const weir_call *c, weir_event_kind kind)
{
  weir_driver_was_used(c, kind);
  weir_context_refresh(c->thread);
  return weir_begin_here(c, kind);
}

/* For what programs do most. */
WEIR_INLINE weir_fill weir_begin_often(const weir_call *c, weir_event_kind kind)
{
  if (__builtin_expect(!c->thread->last_context, 0)) weir_driver_was_used(c, kind);
  weir_context_trusted(c->thread);
  return weir_begin_here(c, kind);
}

/* The stream, default streams normalised, and whether the work went into a capture. */
WEIR_INLINE void weir_set_stream(weir_fill *e, uint64_t stream)
{
  if (stream == 0) stream = e->flags & WEIR_EVF_PTDS ? WEIR_STREAM_PER_THREAD : WEIR_STREAM_LEGACY;
  e->stream = stream;
  if (__builtin_expect(weir_capture_live(), 0) && stream != WEIR_STREAM_LEGACY &&
      weir_is_capturing(stream))
    e->flags |= WEIR_EVF_CAPTURE;
}

/* The same for work that may touch memory, in a stream of that context: a relaxed free has to
 * outlast it. */
WEIR_INLINE void weir_set_work_in(weir_fill *e, uint64_t stream, unsigned context)
{
  weir_set_stream(e, stream);
  if (weir_mode_now() == WEIR_RELAXED) weir_work_note(context, e->stream);
}

WEIR_INLINE void weir_set_work(weir_fill *e, uint64_t stream)
{
  weir_set_work_in(e, stream, e->context);
}

/* The event belongs to another context than the thread's. */
WEIR_INLINE void weir_set_context(weir_fill *e, uint64_t context)
{
  e->context = weir_context_number(context);
  e->device = weir_context_device(context);
}

/* Asks for a line to write: the collector has read it, so another core may hold it too. What the
 * compiler emits for x86 by itself asks for a line to read, and the wait is the same. */
WEIR_INLINE void weir_prefetch_own(const weir_trace_event *slot)
{
#if defined(__x86_64__)
  __asm__ volatile("prefetchw %0" : : "m"(*slot));
#else
  __builtin_prefetch(slot, 1, 3);
#endif
}

#define WEIR_BYTE(value, at) ((uint64_t)((value)&255u) << (at))

/* Writes the event: seven words, and last, with release order, the first, which holds the check. */
WEIR_INLINE void weir_commit(const weir_call *c, const weir_fill *e)
{
  _Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the words below are laid out so");
  _Static_assert(offsetof(weir_trace_event, api) == 6 && offsetof(weir_trace_event, status) == 22 &&
                     offsetof(weir_trace_event, device) == 28 &&
                     offsetof(weir_trace_event, mem) == 31,
                 "the words below are the event's");
  weir_thread *t = c->thread;
  uint32_t seen = atomic_load_explicit(&weir_called[c->api], memory_order_relaxed);
  if (__builtin_expect(seen != t->epoch, 0)) weir_called_first(c->api, t->epoch);
  uint64_t stack = weir_stacks_on() ? weir_stack_capture(&t->stacks, &t->writer) : 0;
  uint64_t took = c->end - c->start;
  weir_trace_event *slot = weir_writer_slots(&t->writer, 1);
  if (__builtin_expect(!slot, 0)) return;
  if (__builtin_expect(took >> 48, 0)) took = (UINT64_C(1) << 48) - 1;
  const weir_event_word w[8] = {
      WEIR_BYTE(e->kind, 32) | WEIR_BYTE(e->flags, 40) | (uint64_t)c->api << 48,
      c->start,
      took | (uint64_t)c->status << 48,
      (stack & 0xffffff) | WEIR_BYTE(e->context, 24) | WEIR_BYTE(e->device, 32) |
          WEIR_BYTE(e->src_device, 40) | WEIR_BYTE(e->copy, 48) | WEIR_BYTE(e->mem, 56),
      e->a,
      e->b,
      e->bytes,
      e->stream};
  weir_prefetch_own(slot + 4);
  weir_event_word *to = (weir_event_word *)(void *)slot;
  to[1] = w[1], to[2] = w[2], to[3] = w[3], to[4] = w[4], to[5] = w[5], to[6] = w[6], to[7] = w[7];
  uint32_t check = weir_words_check(w, t->writer.place);
  __atomic_store_n(to, w[0] | check, __ATOMIC_RELEASE);
  t->writer.next++;
  t->writer.place++;
}

#endif
