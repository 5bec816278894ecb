/* listen.c: see listen.h, and the walks of events.h. Events are handed on by batches: what a listener
 * does with one is mostly what it has done with the one before, so that its code and its tables stay
 * near. */
#include "reports/events/listen.h"
#include <sched.h>
#include "reports/events/private.h"
#include "reports/events/relay.h"

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

enum { ALONE = 1 << 14 /* events for which threads are not worth their start */ };

typedef struct audience {
  wr_listener here[WR_LISTENERS], apart[WR_LISTENERS]; /* taken in this thread; in others */
  size_t here_count, apart_count;
  size_t taken; /* events, while there are no threads */
  bool threads; /* there may be some, and are none yet */
  wr_relay *relay;
} audience;

static bool has_processors(void)
{
  cpu_set_t set;
  return !sched_getaffinity(0, sizeof(set), &set) && CPU_COUNT(&set) > 1;
}

/* One listener needs no thread: in this one it takes events that are still in the cache. */
static audience seat(const wr_events *x, const wr_listener listeners[], size_t count)
{
  audience a = {.threads = x->db->schema >= 2};
  for (size_t i = 0; i < count; i++)
    if (listeners[i].apart)
      a.apart[a.apart_count++] = listeners[i];
    else
      a.here[a.here_count++] = listeners[i];
  a.threads &= a.apart_count > 0 && count > 1 && has_processors();
  return a;
}

static weir_status take_here(const wr_listener *l, size_t listeners, const wr_event events[],
                             size_t count)
{
  weir_status st = WEIR_OK;
  for (const wr_listener *end = l + listeners; !st && l < end; l++) {
    if (l->take_some) st = l->take_some(l->context, events, count);
    for (size_t i = 0; !st && l->take && i < count; i++)
      st = l->take(l->context, &events[i]);
  }
  return st;
}

static weir_status hand_on(void *context, const wr_event events[], size_t count)
{
  audience *a = context;
  if (a->threads && (a->taken += count) > ALONE) {
    a->threads = false;
    a->relay = wr_relay_open(a->apart, a->apart_count);
  }
  if (a->relay && !wr_relay_send(a->relay, events, count)) return WEIR_EINTERNAL;
  weir_status st = a->relay ? WEIR_OK : take_here(a->apart, a->apart_count, events, count);
  return st ? st : take_here(a->here, a->here_count, events, count);
}

weir_status wr_events_listen(wr_events *x, const wr_listener listeners[], size_t count)
{
  audience a = seat(x, listeners, count);
  bool in_time = false;
  for (size_t i = 0; i < count; i++)
    in_time |= listeners[i].in_time;
  weir_status st = wr_events_some(x, in_time, hand_on, &a);
  weir_status apart = a.relay ? wr_relay_close(a.relay) : WEIR_OK;
  if (apart) st = apart;
  for (size_t i = 0; !st && i < count; i++)
    if (listeners[i].end) st = listeners[i].end(listeners[i].context);
  return st;
}
