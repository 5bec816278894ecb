/* places.h: whether an action (core/base/reroutes.def) is done for a call: the one question that
 * all code which does something in place of the driver asks, once for each call, before it does
 * anything. A no leaves the call to the original. */
#ifndef WEIR_INTERPOSE_REROUTE_PLACES_H
#define WEIR_INTERPOSE_REROUTE_PLACES_H

#include "interpose/process/mode.h"
#include "interpose/record/record.h"

/* The call is of a routed row, which has the site that it returns to. */
static inline bool reroute_applies(const hook_call *c, unsigned action)
{
  (void)c;
  return process_reroutes_have(action);
}

#endif
