/* copy_sites.h: who looks at copies before their events are committed, and which it need not see.
 *
 * A *site* is the calls of one thread by one stack (where there are no stacks, at one depth of its
 * own), of one function and direction, of about as many bytes. It has a place in a table, maybe
 * with others. A site is *quiet* until the ticks that its place holds: its copies are not shown.
 * Nor are copies between devices, or within the host.
 *
 * A copy that is not shown and goes on after its call may still write memory of the host that
 * another copy is read from. So each place holds a *span*, in which lies all that such copies have
 * written; a copy that writes outside of it is shown.
 *
 * Hot: for a quiet site one look at its place, no lock, and no word is written. */
#ifndef WEIR_INTERPOSE_COPY_SITES_H
#define WEIR_INTERPOSE_COPY_SITES_H

#include "interpose/record/copy_args.h"
#include "interpose/record/event_fill.h"

enum { COPY_SITE_BITS = 12, COPY_SITES = 1 << COPY_SITE_BITS };

/* Memory that a site's copies have written unseen. */
typedef struct copy_span {
  _Atomic uint64_t above; /* complement of the lowest address; both only grow; 0: nothing yet */
  _Atomic uint64_t high;  /* where it ends */
} copy_span;

typedef struct copy_place {
  _Atomic uint64_t quiet_until;   /* ticks */
  copy_span unseen;               /* widened by copy_goes_unseen() */
  _Atomic uint32_t spent, earned; /* the watcher's own */
} copy_place;

extern copy_place copy_places[COPY_SITES];

/* May write records, which come before the event's. */
typedef void copy_watcher(const hook_call *c, const event_fields *e, const copy_args *a,
                          unsigned site);
extern copy_watcher *copies_watched_by; /* NULL: none; set before the first event */

WEIR_INLINE unsigned copy_site(const hook_call *c, const event_fields *e, uint64_t stack)
{
  uint64_t magnitude = 64 - (unsigned)__builtin_clzll(e->bytes | 1);
  uint64_t place = stack ? stack : c->thread->outermost;
  uint64_t word = place << 32 | (uint64_t)c->api << 16 | (uint64_t)e->detail << 8 | magnitude;
  word ^= (uint64_t)(uintptr_t)c->thread << 13;
  return (unsigned)(word * UINT64_C(0x9e3779b97f4a7c15) >> (64 - COPY_SITE_BITS));
}

/* Between host and device. */
WEIR_INLINE bool copy_crosses(const event_fields *e)
{
  return e->detail == WEIR_COPY_HTOD || e->detail == WEIR_COPY_DTOH;
}

/* The copy may write memory of the host after its call. */
WEIR_INLINE bool copy_writes_later(const event_fields *e)
{
  if (!(e->flags & WEIR_EVF_ASYNC) || e->detail == WEIR_COPY_HTOD) return false;
  return e->detail == WEIR_COPY_DTOH || (e->mem & 15) == WEIR_MEM_PINNED;
}

WEIR_INLINE bool copy_is_within(const copy_span *s, const event_fields *e, const copy_args *a)
{
  return a->dimensions == 1 && ~e->a <= atomic_load_explicit(&s->above, memory_order_relaxed) &&
         e->a + e->bytes <= atomic_load_explicit(&s->high, memory_order_relaxed);
}

WEIR_INLINE void copy_show(const hook_call *c, const event_fields *e, const copy_args *a,
                           uint64_t stack)
{
  copy_watcher *watcher = copies_watched_by;
  if (!watcher) return;
  unsigned site = copy_site(c, e, stack);
  const copy_place *p = &copy_places[site];
  bool quiet =
      !copy_crosses(e) || c->end < atomic_load_explicit(&p->quiet_until, memory_order_relaxed);
  if (__builtin_expect(quiet, 1) && !atomic_load_explicit(&event_watch_all, memory_order_relaxed) &&
      (!copy_writes_later(e) || copy_is_within(&p->unseen, e, a)))
    return;
  const event_fields shown = *e; /* the event itself stays in registers */
  watcher(c, &shown, a, site);
}

/* Widens the span of a site whose copy is not looked at. */
void copy_goes_unseen(unsigned site, uint64_t at, uint64_t bytes);

/* Whether such copies may write there. */
bool copy_unseen_may_write(uint64_t at, uint64_t bytes);

#endif
