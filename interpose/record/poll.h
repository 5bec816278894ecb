/* poll.h: polls that repeat. A program that asks for an event until it is there asks 150,000
 * times; all that were answered "not ready", one after the other, by one thread, in one place,
 * about one thing, are one event with a count. */
#ifndef WEIR_INTERPOSE_POLL_H
#define WEIR_INTERPOSE_POLL_H

#include "interpose/record/event_fill.h"

/* CUDA_ERROR_NOT_READY, cudaErrorNotReady */
#define WEIR_NOT_READY 600

/* Commits the event of a poll with that answer: as one more of the last event of its thread, where
 * that is the same but for its time. Its duration is then that of all of them, `bytes` how many
 * came after the first, `b` the ticks from the first's call to the last's return. The event is
 * held (core/trace/held.h) until the thread's next one. */
void poll_commit(const hook_call *c, const event_fields *e);

#endif
