/* listen.c: see listen.h, and the walks of events.h. Events are handed on by batches: what a listener
 * does with one is mostly what it has done with the one before, so that its code and its tables stay
 * near. */
#include "reports/events/listen.h"
#include "reports/events/private.h"

/* ---- walks ------------------------------------------------------------------------------------ */

weir_status wr_events_some(wr_events *x, bool by_time, wr_events_fn take, void *context)
{
  wr_batch b = {.take = take, .context = context};
  weir_status st = by_time ? wr_batch_by_time(x, &b) : wr_batch_rows(x, &b);
  return st ? st : wr_batch_end(&b);
}

typedef struct single { /* who takes one event at a time */
  wr_event_fn take;
  void *context;
} single;

static weir_status take_each(void *context, const wr_event events[], size_t count)
{
  const single *s = context;
  weir_status st = WEIR_OK;
  for (size_t i = 0; !st && i < count; i++)
    st = s->take(s->context, &events[i]);
  return st;
}

weir_status wr_events_each(wr_events *x, wr_event_fn take, void *context)
{
  return wr_events_some(x, false, take_each, &(single){take, context});
}

weir_status wr_events_by_time(wr_events *x, wr_event_fn take, void *context)
{
  return wr_events_some(x, true, take_each, &(single){take, context});
}

/* ---- listeners -------------------------------------------------------------------------------- */

typedef struct audience {
  const wr_listener *listeners;
  size_t count;
} audience;

static weir_status hand_on(void *context, const wr_event events[], size_t count)
{
  const audience *a = context;
  weir_status st = WEIR_OK;
  for (size_t k = 0; !st && k < a->count; k++) {
    const wr_listener *l = &a->listeners[k];
    if (l->take_some) st = l->take_some(l->context, events, count);
    for (size_t i = 0; !st && l->take && i < count; i++)
      st = l->take(l->context, &events[i]);
  }
  return st;
}

weir_status wr_events_listen(wr_events *x, const wr_listener listeners[], size_t count)
{
  audience a = {listeners, count};
  bool in_time = false;
  for (size_t i = 0; i < count; i++)
    in_time |= listeners[i].in_time;
  weir_status st = wr_events_some(x, in_time, hand_on, &a);
  for (size_t i = 0; !st && i < count; i++)
    if (listeners[i].end) st = listeners[i].end(listeners[i].context);
  return st;
}
