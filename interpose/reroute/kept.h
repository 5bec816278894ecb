/* kept.h: handles of objects that the program has ended and that are handed out to it again, of one
 * kind: events, streams.
 *
 * What the original made while the action was on is *known*, by its handle, with the context that
 * it is in and its traits, which are all that two objects must have in common to stand for each
 * other. One that the program ends is *kept*: it stays as it is, in one of a few places, until a
 * call that would make its like. One that something was done to which cannot be undone is
 * *spoilt*: its end is the original's. There are KEPT_EACH places a context; nothing that is kept
 * is given back before its context ends, and then the context takes it along.
 *
 * Any number of threads, no lock. */
#ifndef WEIR_INTERPOSE_REROUTE_KEPT_H
#define WEIR_INTERPOSE_REROUTE_KEPT_H

#include "interpose/record/hash_table.h"
#include "interpose/record/record.h"

enum { KEPT_CONTEXTS = 255, KEPT_EACH = 32 };

/* Of a known object. */
enum {
  KEPT_KNOWN = 1,   /* always */
  KEPT_AWAY = 2,    /* the program has ended it */
  KEPT_SPOILT = 4,  /* it is not to be kept */
  KEPT_PRISTINE = 8 /* handed out again, and nothing was done with it since that would show */
};

typedef struct kept_objects {
  hash_table known; /* by handle: x: context's number above, traits in 48 bits; y: KEPT_ bits */
  _Atomic uint64_t place[KEPT_CONTEXTS][KEPT_EACH]; /* handles of those that are kept; 0: free */
} kept_objects;

/* Whether any object was ever known. */
static inline bool kept_any(kept_objects *k)
{
  return atomic_load_explicit(&k->known.level[0], memory_order_relaxed) != NULL;
}

/* Whether objects can be kept for the call just now: its action is on, nothing forbids or spoils a
 * question to the driver. *number: of the thread's context. */
bool kept_possible(const hook_call *c, unsigned action, unsigned *number);

/* The original has made an object of the context. */
void kept_made(kept_objects *k, uint64_t handle, unsigned number, uint64_t traits);

typedef enum kept_end {
  KEPT_NOT,  /* the original has to end it */
  KEPT_NOW,  /* it is kept */
  KEPT_TWICE /* it was ended before: the original may not be asked, which has it still */
} kept_end;

/* The program ends an object; `possible`: it may be kept. */
kept_end kept_ended(kept_objects *k, uint64_t handle, bool possible);

/* A kept object of the context, with those traits, that is `ready` by the driver's word; it is the
 * program's now. 0: there is none. In a step of captures.h. */
uint64_t kept_again(kept_objects *k, unsigned number, uint64_t traits,
                    bool (*ready)(uint64_t handle));

/* Sets and takes away bits of a known object; those that it had, 0 where it is not known. */
unsigned kept_mark(kept_objects *k, uint64_t handle, unsigned set, unsigned clear);
unsigned kept_bits(kept_objects *k, uint64_t handle);
uint64_t kept_traits(kept_objects *k, uint64_t handle);

/* The original ends the object, at whatever depth of calls: it is known no more. */
void kept_gone(kept_objects *k, uint64_t handle);
/* The context is gone, and its objects with it. */
void kept_context_gone(kept_objects *k, unsigned number);

/* The same of all events (event.c) and of all streams (stream.c). */
void kept_events_context_gone(unsigned number);
void kept_streams_context_gone(unsigned number);

#endif
