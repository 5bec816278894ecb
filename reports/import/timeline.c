/* timeline.c: the ticks of a spool's clock as ns, a line that is only ever continued.
 *
 * How long a tick is, is known the better the longer the program runs, and events are imported
 * while it does. An event that comes late, from a thread that wrote seldom, must find its place
 * among those of other threads that were imported before it: what time the line gives a tick once,
 * it gives it for ever, and it never falls. So each poll adds a *piece*: from the latest tick that
 * was asked for on, the line goes to where the newest idea of the clock has it, by a jump forward,
 * or, where it is further already, at half the pace until it is caught up. */
#include <string.h>
#include "reports/import/importer.h"

/* Times further than this from a spool's opening are damage, not time. */
#define BEFORE_OPENING INT64_C(60000000000)        /* 60 s, ns */
#define AFTER_OPENING  INT64_C(315360000000000000) /* 10 years, ns */

int64_t wr_time_of_mono(const wr_spool *s, uint64_t mono_ns)
{
  int64_t since_opening = (int64_t)(mono_ns - s->opening);
  int64_t opening = (int64_t)(s->opening - s->im->origin);
  if (since_opening < -BEFORE_OPENING) since_opening = 0;
  if (since_opening > AFTER_OPENING) since_opening = AFTER_OPENING;
  return opening + s->boot_shift + since_opening;
}

int64_t wr_between_boots(const trace_importer *im, uint64_t realtime_ns)
{
  int64_t ns = (int64_t)(realtime_ns - im->origin_realtime);
  return ns > -AFTER_OPENING && ns < AFTER_OPENING ? ns : 0;
}

/* ns since the line's base. */
static double on_piece(const wr_piece *p, int64_t ticks)
{
  double straight = (double)ticks * p->slope;
  double past = p->ns + (double)(ticks - p->from) * p->slope / 2;
  return straight > past ? straight : past;
}

/* The last piece that begins before it. */
static const wr_piece *piece_of(const wr_timeline *l, int64_t ticks)
{
  size_t low = 0, high = l->count;
  if (ticks > l->piece[high - 1].from) return &l->piece[high - 1];
  while (high - low > 1) {
    size_t middle = (low + high) / 2;
    if (ticks > l->piece[middle].from)
      low = middle;
    else
      high = middle;
  }
  return &l->piece[low];
}

double wr_timeline_at(const wr_timeline *l, int64_t ticks)
{
  const wr_piece *p = piece_of(l, ticks);
  return ticks > p->from ? on_piece(p, ticks) : (double)ticks * p->slope;
}

void wr_timeline_poll(wr_timeline *l, const clock_map *now)
{
  wr_piece *last = l->count ? &l->piece[l->count - 1] : NULL;
  if (!last) l->base = now->base;
  if (!last || l->asked > last->from) {
    wr_piece next = {.from = last ? l->asked : 0, .ns = last ? wr_timeline_at(l, l->asked) : 0};
    if (l->count == WR_PIECES) { /* ticks of so long ago go by the oldest of those that stay */
      l->count /= 2;
      memmove(l->piece, l->piece + WR_PIECES - l->count, l->count * sizeof(wr_piece));
    }
    l->piece[l->count++] = next;
  }
  l->piece[l->count - 1].slope = now->ns_per_tick;
}

int64_t wr_time(wr_spool *s, uint64_t ticks)
{
  wr_timeline *l = &s->line;
  int64_t since = (int64_t)(ticks - l->base.ticks);
  double ns = wr_timeline_at(l, since);
  if (since > l->asked) l->asked = since;
  if (!(ns > -4e18 && ns < 4e18)) ns = 0;
  return wr_time_of_mono(s, l->base.mono_ns + (uint64_t)(int64_t)ns);
}

double wr_length(const wr_spool *s, uint64_t ticks)
{
  double length = (double)ticks * s->line.piece[s->line.count - 1].slope;
  return length >= 0 && length < (double)AFTER_OPENING ? length : 0;
}
