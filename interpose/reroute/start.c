/* start.c: rerouting begins and ends. */
#include "interpose/process/mode.h"
#include "interpose/record/context.h"
#include "interpose/record/subscriber.h"
#include "interpose/reroute/fill.h"
#include "interpose/reroute/reroute.h"
#include "interpose/reroute/rules.h"
#include "interpose/reroute/within.h"
#include "interpose/staging/staging.h"

void weir_route_start(const weir_route_options *o)
{
  static const record_subscriber us = {.allocated = weir_route_handed_out,
                                       .context_gone = weir_route_context_gone,
                                       .peers_enabled = weir_route_peers,
                                       .graph_made = weir_route_taint_all,
                                       .shared = weir_route_taint};
  weir_caches_start(o->keep_bytes, o->decay_ms);
  weir_stage_start(&o->stage);
  if (o->rules) weir_rules_start(o->rules);
  weir_fill_start(o->mode == WEIR_OBSERVE ? WEIR_FILL_NONE : o->fill);
  record_subscribe(&us);
  atomic_store(&weir_mode, (uint8_t)o->mode);
}

void weir_route_end(void)
{
  atomic_store(&weir_mode, WEIR_OBSERVE);
  weir_fill_start(WEIR_FILL_NONE);
}

void weir_route_forked(void)
{
  if (weir_context_any()) weir_route_end();
}
