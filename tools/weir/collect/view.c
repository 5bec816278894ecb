/* view.c: see view.h. */
#include "tools/weir/collect/view.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tools/weir/base/cmd.h"

typedef struct seen {
  uint32_t pid, rank;
  uint64_t start_time; /* of the process: pids come again */
  char *program;       /* owned */
  uint64_t dropped, spool_bytes;
  wr_figures figures;
} seen;

struct view {
  live *live;  /* borrowed */
  seen *ended; /* VIEW_ENDED and, last, all others: owned */
  unsigned ended_count;
  seen *now; /* that live, of the last look: owned */
  unsigned now_count, now_room;
  view_process *shown; /* owned */
  uint64_t begun, since;
};

static uint64_t realtime_ns(void)
{
  struct timespec t;
  (void)clock_gettime(CLOCK_REALTIME, &t);
  return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

static void fill_seen(view *v, seen *s, const live_process *p)
{
  const spool_header *h = p->header;
  const uint64_t taken = atomic_load_explicit(&h->taken, memory_order_relaxed),
                 returned = atomic_load_explicit(&h->returned, memory_order_relaxed);
  free(s->program);
  s->pid = h->pid;
  s->rank = h->rank;
  s->start_time = h->start_time;
  s->program = cmd_format("%.*s", (int)sizeof h->exe, h->exe);
  s->dropped = atomic_load_explicit(&h->dropped, memory_order_relaxed);
  s->spool_bytes = taken > returned ? taken - returned : 0;
  wr_figures_of(&s->figures, p->state, p->clock.ns_per_tick, NULL, NULL);
  if (!p->whole) v->since = v->begun;
}

static void add_ended(seen *to, const seen *from)
{
  wr_figures_add_ended(&to->figures, &from->figures);
  to->dropped += from->dropped;
}

static bool is_same(const seen *a, const seen *b)
{
  return a->pid == b->pid && a->start_time == b->start_time;
}

/* The place for one more: the oldest is added to the others. */
static seen *ended_place(view *v)
{
  if (v->ended_count < VIEW_ENDED) return &v->ended[v->ended_count++];
  add_ended(&v->ended[VIEW_ENDED], &v->ended[0]);
  free(v->ended[0].program);
  memmove(v->ended, v->ended + 1, (VIEW_ENDED - 1) * sizeof *v->ended);
  return &v->ended[VIEW_ENDED - 1];
}

static void note_end(void *context, const live_process *p)
{
  view *v = context;
  seen *s = cmd_alloc(sizeof *s);
  fill_seen(v, s, p);
  s->spool_bytes = 0;
  unsigned i = 0;
  while (i < v->ended_count && !is_same(&v->ended[i], s))
    i++;
  if (i < v->ended_count) {
    add_ended(&v->ended[i], s);
    free(s->program);
  } else {
    *ended_place(v) = *s;
  }
  free(s);
}

view *view_new(live *l)
{
  view *v = cmd_alloc(sizeof *v);
  v->live = l;
  v->ended = cmd_alloc((VIEW_ENDED + 1) * sizeof *v->ended);
  v->begun = realtime_ns();
  live_on_end(l, note_end, v);
  return v;
}

static void note_live(void *context, const live_process *p)
{
  view *v = context;
  const unsigned before = v->now_room;
  v->now = cmd_grow(v->now, &v->now_room, v->now_count, sizeof *v->now);
  if (v->now_room > before) memset(v->now + before, 0, (v->now_room - before) * sizeof *v->now);
  fill_seen(v, &v->now[v->now_count++], p);
}

static bool lives_on(const view *v, const seen *ended)
{
  for (unsigned i = 0; i < v->now_count; i++)
    if (is_same(&v->now[i], ended)) return true;
  return false;
}

static view_process show_seen(const seen *s, bool ended)
{
  return (view_process){.pid = s->pid,
                        .rank = s->rank,
                        .program = s->program ? s->program : "",
                        .figures = &s->figures,
                        .dropped = s->dropped,
                        .spool_bytes = s->spool_bytes,
                        .ended = ended};
}

const view_process *view_look(view *v, unsigned *count)
{
  unsigned n = 0;
  v->now_count = 0;
  live_each(v->live, note_live, v);
  free(v->shown);
  v->shown = cmd_alloc((v->now_count + VIEW_ENDED + 1) * sizeof *v->shown);
  for (unsigned i = 0; i < v->now_count; i++) {
    for (unsigned k = 0; k < v->ended_count; k++)
      if (is_same(&v->ended[k], &v->now[i])) add_ended(&v->now[i], &v->ended[k]);
    v->shown[n++] = show_seen(&v->now[i], false);
  }
  for (unsigned i = 0; i < v->ended_count; i++)
    if (!lives_on(v, &v->ended[i])) v->shown[n++] = show_seen(&v->ended[i], true);
  if (v->ended[VIEW_ENDED].figures.events) v->shown[n++] = show_seen(&v->ended[VIEW_ENDED], true);
  *count = n;
  return v->shown;
}

uint64_t view_since(const view *v)
{
  return v->since;
}

void view_free(view *v)
{
  if (!v) return;
  live_on_end(v->live, NULL, NULL);
  for (unsigned i = 0; i <= VIEW_ENDED; i++)
    free(v->ended[i].program);
  for (unsigned i = 0; i < v->now_room; i++)
    free(v->now[i].program);
  free(v->ended);
  free(v->now);
  free(v->shown);
  free(v);
}
