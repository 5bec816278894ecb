/* places.h: whether an action (core/base/reroutes.def) is done for a call: the one question that
 * all code which does something in place of the driver asks, once for each call, before it does
 * anything. A no leaves the call to the original.
 *
 * Without fixes the answer depends on the process alone. A file of fixes (core/base/rules.h) makes
 * it depend on the place: an action is done where the file names it and nowhere else. A place is
 * known by the address that the call returns to; only where that is the first frame of a fix with
 * more frames is the stack walked. An address is looked for in the file's build-ids once, whenever
 * its object was loaded, and found in a table from then on. */
#ifndef WEIR_INTERPOSE_REROUTE_PLACES_H
#define WEIR_INTERPOSE_REROUTE_PLACES_H

#include "core/base/rules.h"
#include "interpose/process/mode.h"
#include "interpose/record/record.h"

extern bool reroute_at_places; /* set at the start: there are fixes */

/* `fixes`: borrowed until the process ends; `name`: of their file. Returns the actions that they
 * name, and REROUTE_RELAXED. */
unsigned reroute_places_start(const rule_list *fixes, const char *name);

/* Whether a fix of that action fits the call. */
bool reroute_place_has(const hook_call *c, unsigned action);

/* The call is of a routed row, which has the site that it returns to. */
static inline bool reroute_fits_place(const hook_call *c, unsigned action)
{
  return __builtin_expect(!reroute_at_places, 1) || reroute_place_has(c, action);
}

static inline bool reroute_applies(const hook_call *c, unsigned action)
{
  return process_reroutes_have(action) && reroute_fits_place(c, action);
}

/* Whether a free there does not wait. */
static inline bool reroute_is_relaxed(const hook_call *c)
{
  return process_mode_now() == WEIR_RELAXED && reroute_fits_place(c, REROUTE_RELAXED);
}

/* Objects have gone, and addresses may mean others from now on. */
void reroute_places_forget(void);

#endif
