/* event_fill.c: see event_fill.h. */
#include "interpose/record/event_fill.h"

#include "interpose/process/process.h"

_Atomic uint32_t called_epochs[WEIR_SPOOL_MAX_APIS];

event_watcher *event_watched_by;
_Atomic uint32_t event_watch_all;

static uint8_t watched_apis[WEIR_SPOOL_MAX_APIS / 8];

void event_watch_api(uint16_t api)
{
  if (api < WEIR_SPOOL_MAX_APIS) watched_apis[api / 8] |= (uint8_t)(1u << api % 8);
}

/* A watched function's epoch is remembered as another than the thread's: each call comes here. */
void event_look(const hook_call *c, const event_fields *e)
{
  bool watched = watched_apis[c->api / 8] >> c->api % 8 & 1;
  uint32_t met = watched ? ~c->thread->epoch : c->thread->epoch;
  if (atomic_load_explicit(&called_epochs[c->api], memory_order_relaxed) != met) {
    atomic_store_explicit(&called_epochs[c->api], met, memory_order_relaxed);
    coverage_add(c->api, WEIR_COVER_CALLED);
  }
  if (e->kind == WEIR_EV_COPY || !event_watched_by) return; /* copy_show() shows copies */
  if (watched || atomic_load_explicit(&event_watch_all, memory_order_relaxed))
    event_watched_by(c, e);
}
