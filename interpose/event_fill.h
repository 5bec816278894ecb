/* event_fill.h: the event of a call, begun with what every event has, filled by an extractor,
 * committed. Inside one call nothing else is written to the spool between begin and commit. */
#ifndef WEIR_INTERPOSE_EVENT_FILL_H
#define WEIR_INTERPOSE_EVENT_FILL_H

#include "interpose/context.h"
#include "interpose/record.h"

/* Captures begun and not ended, whole process: while 0 no stream is asked whether it is capturing.
 */
extern _Atomic uint32_t weir_captures;

/* Whether the stream is being captured. Not for the legacy stream, which can't be, and may not be
 * asked while another is. */
bool weir_is_capturing(uint64_t stream);

/* First time a function's event is recorded in a process image (its epoch): the coverage. */
void weir_called_first(uint16_t api, uint32_t epoch);
extern _Atomic uint32_t weir_called[]; /* by api: epoch it was last first called in */

static inline void weir_event_context(weir_event *e, unsigned number)
{
  e->stack = (e->stack & 0xffffffu) | (uint32_t)number << 24;
}

static inline weir_event *weir_begin(weir_call *c, weir_event_kind kind)
{
  weir_thread *t = c->thread;
  weir_context_refresh(t);
  uint32_t stack = weir_stack_capture(&t->stacks, &t->writer);
  weir_event *e = weir_writer_slots(&t->writer, 1);
  if (__builtin_expect(!e, 0)) e = &c->scratch;
  e->kind = (uint8_t)kind;
  e->flags = c->flags;
  e->api = c->api;
  e->start = c->start;
  weir_event_set_duration(e, c->end - c->start);
  e->status = c->status;
  e->stack = (stack & 0xffffffu) | (uint32_t)t->last_context_number << 24;
  e->device = e->src_device = WEIR_DEVICE_NONE;
  e->copy = e->mem = 0;
  e->a = e->b = e->bytes = e->stream = 0;
  return e;
}

/* The stream, default streams normalised, and whether the work went into a capture. */
static inline void weir_set_stream(weir_call *c, weir_event *e, uint64_t stream)
{
  if (stream == 0) stream = c->flags & WEIR_EVF_PTDS ? WEIR_STREAM_PER_THREAD : WEIR_STREAM_LEGACY;
  e->stream = stream;
  if (__builtin_expect(atomic_load_explicit(&weir_captures, memory_order_relaxed) != 0, 0) &&
      stream != WEIR_STREAM_LEGACY && weir_is_capturing(stream))
    e->flags |= WEIR_EVF_CAPTURE;
}

/* The event belongs to another context than the thread's. */
static inline void weir_set_context(weir_event *e, uint64_t context)
{
  weir_event_context(e, weir_context_number(context));
  e->device = (uint8_t)weir_context_device(context);
}

static inline void weir_commit(weir_call *c, weir_event *e)
{
  if (__builtin_expect(e == &c->scratch, 0)) return;
  uint32_t seen = atomic_load_explicit(&weir_called[c->api], memory_order_relaxed);
  if (__builtin_expect(seen != c->thread->epoch, 0)) weir_called_first(c->api, c->thread->epoch);
  weir_writer_commit(&c->thread->writer, 1);
}

#endif
