/* listen.c: see listen.h. Events are handed on by batches: what a listener does with one is mostly what it has done with the
 * one before, so that its code and its tables stay near. */
#include "reports/events/listen.h"

enum { BATCH_EVENTS = 256 };

typedef struct event_batch {
  const wr_events *events;
  const wr_listener *listeners;
  size_t listener_count;
  size_t count;
  wr_event event[BATCH_EVENTS];
} event_batch;

static weir_status hand_on(event_batch *b)
{
  weir_status st = WEIR_OK;
  bool move = b->events->db->schema < 2; /* templates of version 1 are made on the way */
  for (size_t i = 0; move && i < b->count; i++)
    b->event[i].t = &b->events->templates[b->event[i].at];
  for (size_t k = 0; !st && k < b->listener_count; k++) {
    const wr_listener *l = &b->listeners[k];
    if (l->take_some) st = l->take_some(l->context, b->event, b->count);
    if (l->take_some) continue;
    for (size_t i = 0; !st && i < b->count; i++)
      st = l->take(l->context, &b->event[i]);
  }
  b->count = 0;
  return st;
}

static weir_status take_event(void *context, const wr_event *e)
{
  event_batch *b = context;
  b->event[b->count++] = *e;
  return b->count < BATCH_EVENTS ? WEIR_OK : hand_on(b);
}

weir_status wr_events_listen(wr_events *x, const wr_listener listeners[], size_t count)
{
  event_batch b = {.events = x, .listeners = listeners, .listener_count = count};
  bool in_time = false;
  for (size_t i = 0; i < count; i++)
    in_time |= listeners[i].in_time;
  weir_status st =
      in_time ? wr_events_by_time(x, take_event, &b) : wr_events_each(x, take_event, &b);
  if (!st) st = hand_on(&b);
  for (size_t i = 0; !st && i < count; i++)
    if (listeners[i].end) st = listeners[i].end(listeners[i].context);
  return st;
}
