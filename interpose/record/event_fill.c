/* event_fill.c: see event_fill.h. */
#include "interpose/record/event_fill.h"

#include "interpose/process/process.h"

_Atomic uint32_t called_epochs[WEIR_SPOOL_MAX_APIS];

event_watcher *_Atomic event_watched_by;

void event_first_call(const hook_call *c, const event_fields *e, const struct copy_args *copy)
{
  event_watcher *watcher = atomic_load_explicit(&event_watched_by, memory_order_acquire);
  if (!watcher)
    atomic_store_explicit(&called_epochs[c->api], c->thread->epoch, memory_order_relaxed);
  coverage_add(c->api, WEIR_COVER_CALLED);
  if (watcher) watcher(c, e, copy);
}
