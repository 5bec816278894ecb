/* start.c: rerouting begins and ends. */
#include "interpose/process/mode.h"
#include "interpose/record/context.h"
#include "interpose/record/pools.h"
#include "interpose/record/subscriber.h"
#include "interpose/reroute/fill.h"
#include "interpose/reroute/reroute.h"
#include "interpose/reroute/cache_rules.h"
#include "interpose/reroute/context_cache.h"
#include "interpose/reroute/kept.h"
#include "interpose/reroute/places.h"
#include "interpose/staging/staging.h"

static bool keeps_pool(const hook_call *c)
{
  return reroute_applies(c, REROUTE_POOL);
}

static void note_context_gone(unsigned number)
{
  reroute_context_gone(number);
  kept_events_context_gone(number);
  kept_streams_context_gone(number);
}

void reroute_start(const reroute_options *o)
{
  static const record_subscriber us = {.allocated = reroute_address_handed_out,
                                       .context_gone = note_context_gone,
                                       .peers_enabled = reroute_peers_enabled,
                                       .graph_made = reroute_taint_all,
                                       .shared = reroute_taint,
                                       .keeps_pool = keeps_pool};
  process_reroutes = o->reroutes;
  reroute_copies_start();
  driver_pools_keep(o->mode != WEIR_OBSERVE && process_reroutes_have(REROUTE_POOL));
  context_caches_start(o->keep_bytes, o->decay_ms);
  staging_start(&o->stage);
  if (o->rules) reroute_rules_start(o->rules);
  fill_start(o->mode == WEIR_OBSERVE ? WEIR_FILL_NONE : o->fill);
  record_subscribe(&us);
  atomic_store(&process_mode, (uint8_t)o->mode);
}

void reroute_end(void)
{
  atomic_store(&process_mode, WEIR_OBSERVE);
  driver_pools_keep(false);
  fill_start(WEIR_FILL_NONE);
}

void reroute_forked(void)
{
  if (process_mode_now() == WEIR_OBSERVE && fill_in_use == WEIR_FILL_NONE) return;
  if (context_any()) reroute_end();
}
