/* judge_waits.c: the judges (judge.h) of calls in which the host waits. What each had to wait for is in its row of
 * `wait_detail`. */
#include <stdlib.h>
#include "core/trace/event.h"
#include "reports/findings/judge.h"
#include "reports/queues/queues.h"

/* Waits that an elapsed time of events needs. */
static hash_map timed_waits(wr_case *c)
{
  hash_map timed = {0};
  WR_EACH(c, TIMED_WAIT, timed_wait, t)
  {
    if (!hash_map_place(&timed, (uint64_t)t->event, NULL)) c->status = wr_db_out_of_memory(c->db);
  }
  return timed;
}

/* ---- 12: what an earlier wait had waited for ------------------------------------------------- */

/* The template of an asynchronous copy, which has waited as its memory is pageable, and need not: who calls it must wait.
 * NULL: the event is something else. */
static const wr_common *asynchronous_copy(wr_case *c, int64_t event)
{
  const wr_call_row *e = wr_case_call(c, event);
  bool is = e && e->common->kind == WEIR_EV_COPY && e->common->flags & WEIR_EVF_ASYNC;
  return is ? e->common : NULL;
}

/* The wait is one for the copy: its thread's, for its stream or all of its context. */
static bool waits_for_copy(const wr_common *wait, const wr_common *copy)
{
  bool all = wait->copy == WEIR_SYNC_CONTEXT,
       stream = wait->copy == WEIR_SYNC_STREAM && wait->stream == copy->stream;
  return (all || stream) && wait->process == copy->process && wait->thread == copy->thread &&
         wait->context == copy->context;
}

/* What makes a wait needless where only the copy does: the first wait for the copy, which is needed, if it was an
 * earlier one. 0: nothing does. `waited`: these waits, by copy. */
static int64_t wait_after_copy(wr_case *c, hash_map *waited, const wr_wait_row *w,
                               const wr_common *wait, const wr_common *copy)
{
  if (wait->process != copy->process || wait->thread != copy->thread) return 0;
  const uint64_t *first = hash_map_get(waited, (uint64_t)w->other);
  if (first) return (int64_t)*first;
  if (!waits_for_copy(wait, copy)) return 0;
  uint64_t *place = hash_map_place(waited, (uint64_t)w->other, NULL);
  if (!place) c->status = wr_db_out_of_memory(c->db);
  if (place) *place = (uint64_t)w->id;
  return 0;
}

void wr_judge_redundant_wait(wr_case *c)
{
  const unsigned bits = WR_WAIT_KNOWN | WR_WAIT_OTHER, mask = bits | WR_WAIT_PENDING;
  const int64_t clock = wr_case_limit(c, "clock") + c->clock_more;
  hash_map timed = timed_waits(c), waited = {0};
  for (const wr_wait_row *w; (w = wr_case_next_wait(c, mask, bits)) != NULL;) {
    const wr_call_row *e = wr_case_call(c, w->id);
    if (!e || e->common->kind != WEIR_EV_SYNC) continue;
    if (e->common->copy == WEIR_SYNC_EVENT && hash_map_get(&timed, (uint64_t)w->id)) continue;
    const wr_common *wait = e->common;
    int64_t duration = e->duration;
    const wr_common *copy = asynchronous_copy(c, w->other);
    int64_t earlier = copy ? wait_after_copy(c, &waited, w, wait, copy) : w->other;
    if (!earlier) continue;
    wr_case_find(c, &(wr_found){.event = w->id,
                                .template = wait->id,
                                .cost = duration,
                                .saving = duration > clock ? duration - clock : 1,
                                .related = earlier,
                                .certainty = c->rule->certainty});
  }
  hash_map_free(&waited);
  hash_map_free(&timed);
}

/* ---- 13: all of a device, of which one stream has work --------------------------------------- */

static uint64_t device_key(const wr_common *t)
{
  return hash_mix(hash_mix(23, (uint64_t)t->process), (uint64_t)(int64_t)t->own_device);
}

/* The devices of a process that have work in several streams: 2; in one: 1. */
static hash_map streams_of_devices(wr_case *c)
{
  hash_map count = {0}, stream = {0};
  for (size_t i = 0; !c->status && i < c->facts->count; i++) {
    const wr_common *t = &c->facts->common[i];
    bool added;
    if (!t->device_work || !c->facts->events->templates[i].done) continue;
    uint64_t *first = hash_map_place(&stream, device_key(t), &added);
    uint64_t *streams = hash_map_place(&count, device_key(t), NULL);
    if (!first || !streams) {
      c->status = wr_db_out_of_memory(c->db);
      break;
    }
    if (added) *first = t->stream, *streams = 1;
    if (*first != t->stream) *streams = 2;
  }
  hash_map_free(&stream);
  return count;
}

void wr_judge_wide_wait(wr_case *c)
{
  const unsigned wide = WR_WAIT_KNOWN | WR_WAIT_PENDING | WR_WAIT_NARROWER;
  hash_map streams = streams_of_devices(c);
  for (const wr_wait_row *w; (w = wr_case_next_wait(c, wide, wide)) != NULL;) {
    wr_wait_time_row t;
    const wr_call_row *e = wr_case_call(c, w->id);
    if (!e || e->common->kind != WEIR_EV_SYNC || e->common->own_device < 0) continue;
    const uint64_t *count = hash_map_get(&streams, device_key(e->common));
    if (!count || *count < 2) continue;
    bool divided = wr_case_wait_time(c, w->id, &t) && !t.unknown;
    wr_case_find(c, &(wr_found){.event = w->id,
                                .template = e->common->id,
                                .cost = e->duration,
                                .saving = divided ? t.other : 0,
                                .certainty = c->rule->certainty});
  }
  hash_map_free(&streams);
}

/* ---- 14, 50: waits after which the host looks at nothing that they waited for ---------------- */

/* A wait for work that brings the host nothing, which no elapsed time needs. */
static bool needless(wr_case *c, int64_t event, const hash_map *timed)
{
  const unsigned pending = WR_WAIT_KNOWN | WR_WAIT_PENDING;
  unsigned bits = wr_case_wait_bits(c, event);
  return (bits & (pending | WR_WAIT_RESULT)) == pending && !hash_map_get(timed, (uint64_t)event);
}

/* The host may look at what kernels write, or change what a copy reads. */
static wr_certainty how_sure(wr_case *c, int64_t event, int64_t shared)
{
  return shared || wr_case_wait_bits(c, event) & WR_WAIT_SOURCE ? WR_POSSIBLE : WR_LIKELY;
}

/* By template: how often the host works by itself for longer than max_gap between such a wait and what it queues next.
 * It may have to, as for a time or another thread, and where it can look at what kernels write it is not counted. */
static uint32_t *count_far(wr_case *c, int64_t max_gap, const hash_map *timed)
{
  uint32_t *far = wr_case_array(c, c->facts->count, sizeof(*far));
  WR_EACH(c, WAIT_AHEAD, wait_ahead, a)
  {
    if (!far || a->gap <= max_gap || a->shared || !needless(c, a->event, timed)) continue;
    const wr_common *t = wr_case_common(c, a->template);
    if (t) far[t - c->facts->common]++;
  }
  return far;
}

/* What the run gains without the wait: where it is known when the device worked, at least the time that this does nothing
 * from the end of what is waited for to the begin of what is queued after the wait. */
static int64_t gain_without(wr_case *c, const wr_fact_wait_ahead *a)
{
  const wr_call_row *e = wr_case_call(c, a->event);
  int64_t idle = e ? wr_least(wr_case_idle(c, e), e->duration) : 0;
  return idle > a->gain ? idle : a->gain;
}

/* 14: The host queues more after it. */
void wr_judge_premature_wait(wr_case *c)
{
  int64_t max_gap = wr_case_limit(c, "max_gap"), min_far = wr_case_limit(c, "min_far");
  hash_map timed = timed_waits(c);
  uint32_t *far = count_far(c, max_gap, &timed);
  WR_EACH(c, WAIT_AHEAD, wait_ahead, a)
  {
    const wr_common *t = wr_case_common(c, a->template);
    bool near = a->gap <= max_gap;
    if (!near && (a->shared || !t || !far || far[t - c->facts->common] < min_far)) continue;
    if (!needless(c, a->event, &timed)) continue;
    wr_case_find(c,
                 &(wr_found){.event = a->event,
                             .template = a->template,
                             .cost = a->duration,
                             .saving = gain_without(c, a),
                             .certainty = near ? how_sure(c, a->event, a->shared) : WR_POSSIBLE});
  }
  hash_map_free(&timed);
  free(far);
}

/* The copy comes after all that the wait waited for, by its stream. */
static bool is_ordered(wr_case *c, const wr_fact_wait_copy *a)
{
  const wr_common *t = wr_case_common(c, a->template), *copy = wr_case_common(c, a->copied);
  if (copy->stream == WEIR_STREAM_LEGACY)
    return copy->context == t->context && wr_case_wait_bits(c, a->event) & WR_WAIT_BEFORE_LEGACY;
  const wr_wait_row *w = wr_case_wait(c, a->event);
  if (!w || w->streams != 1) return false;
  if (copy->stream != WEIR_STREAM_PER_THREAD) return w->stream == copy->stream;
  return t->copy == WEIR_SYNC_STREAM && t->stream == WEIR_STREAM_PER_THREAD &&
         w->stream == WEIR_STREAM_PER_THREAD;
}

/* 50: The thread's next call is a copy that waits for the same work. */
void wr_judge_wait_before_copy(wr_case *c)
{
  int64_t max_gap = wr_case_limit(c, "max_gap"), link = wr_case_limit(c, "link");
  hash_map timed = timed_waits(c);
  WR_EACH(c, WAIT_COPY, wait_copy, a)
  {
    if (a->gap > max_gap || !needless(c, a->event, &timed) || !is_ordered(c, a)) continue;
    int64_t both = wr_sum(wr_sum(a->gap, a->copy_ns), -wr_over(a->copy_bytes, link));
    wr_case_find(c, &(wr_found){.event = a->event,
                                .template = a->template,
                                .cost = a->duration,
                                .saving = wr_least(a->duration, both),
                                .related = a->copy,
                                .certainty = how_sure(c, a->event, a->shared)});
  }
  hash_map_free(&timed);
}

/* ---- 15: calls that wait without being asked to ---------------------------------------------- */

/* All that is waited for is one copy of pageable memory, which the host has waited for already. */
static bool waits_for_a_copy(wr_case *c, const wr_wait_row *w)
{
  const wr_call_row *y = w->operations == 1 && w->other ? wr_case_call(c, w->other) : NULL;
  return y && y->common->kind == WEIR_EV_COPY && y->common->copy == WEIR_COPY_HTOD &&
         (y->common->flags & (WEIR_EVF_ASYNC | WEIR_EVF_IMPLICIT_SYNC)) == WEIR_EVF_IMPLICIT_SYNC;
}

enum { BACK = 64 /* calls that are looked at */ };

/* Whether the process has waited for other work after what this call waits for was queued: by then that may be done,
 * too, and the call take its own time. */
static bool has_waited_since(wr_case *c, int64_t event, int64_t queued, int64_t process)
{
  for (int64_t id = event - 1; id > queued && id > event - BACK; id--) {
    const wr_call_row *e = wr_case_call(c, id);
    if (e && e->common->asked && e->common->process == process) return true;
  }
  return false;
}

/* A copy that returns when it is done. */
static bool has_waited(const wr_common *copy)
{
  return (copy->flags & (WEIR_EVF_ASYNC | WEIR_EVF_IMPLICIT_SYNC)) == WEIR_EVF_IMPLICIT_SYNC;
}

/* Another thread queued the last of what this call waits for, and its own has queued nothing since it waited: the device
 * is kept by the others. */
static bool waits_for_others(wr_case *c, int64_t event, int64_t queued, int64_t thread)
{
  const wr_call_row *last = queued ? wr_case_call(c, queued) : NULL;
  if (!last || last->common->thread == thread) return false;
  for (int64_t id = event - 1; id > event - BACK; id--) {
    const wr_call_row *e = wr_case_call(c, id);
    if (!e || e->common->thread != thread) continue;
    int kind = e->common->kind;
    if (e->common->asked || (kind == WEIR_EV_COPY && has_waited(e->common))) return true;
    if (kind == WEIR_EV_COPY || kind == WEIR_EV_MEMSET || kind == WEIR_EV_LAUNCH) return false;
  }
  return true;
}

void wr_judge_hidden_wait(wr_case *c)
{
  int64_t min_ns = wr_case_limit(c, "min_ns"), own_ns = wr_case_limit(c, "own");
  WR_EACH(c, HIDDEN_WAIT, hidden_wait, h)
  {
    bool pending = h->duration >= min_ns && wr_case_wait_bits(c, h->event) & WR_WAIT_PENDING;
    const wr_wait_row *w = pending ? wr_case_wait(c, h->event) : NULL;
    if (!w || waits_for_a_copy(c, w)) continue;
    const wr_common *t = wr_case_common(c, h->template);
    int64_t queued = w->other;
    bool unsure = (h->duration < own_ns && has_waited_since(c, h->event, queued, t->process)) ||
                  waits_for_others(c, h->event, queued, t->thread);
    wr_case_find(c, &(wr_found){.event = h->event,
                                .template = h->template,
                                .cost = h->duration,
                                .saving = wr_least(h->duration, h->null ? h->duration : h->gap),
                                .certainty = unsure ? WR_POSSIBLE : c->rule->certainty});
  }
}

/* ---- 55: a number that each step waits for ---------------------------------------------------- */

static int64_t without_one_of(int64_t ns, int64_t every)
{
  return (int64_t)((double)ns * (1 - 1.0 / (double)every));
}

static void find_number(wr_case *c, const wr_fact_scalar_step *s)
{
  int64_t every = wr_case_limit(c, "every"), latency = wr_case_limit(c, "latency");
  const wr_call_row *e = wr_case_call(c, s->wait ? s->wait : s->event);
  int64_t idle = e && s->gap ? wr_case_idle(c, e) : 0, own = e && s->wait ? e->duration : 0;
  int64_t most = wr_sum(idle > s->gap ? idle : s->gap, latency), waited = wr_least(own, most);
  wr_case_find(c, &(wr_found){.event = s->event,
                              .template = s->template,
                              .cost = s->duration,
                              .saving = without_one_of(wr_least(s->duration, most), every),
                              .related = s->wait,
                              .related_saving = without_one_of(waited, every),
                              .certainty = c->rule->certainty});
}

void wr_judge_number_in_each_step(wr_case *c)
{
  const unsigned pending = WR_WAIT_KNOWN | WR_WAIT_PENDING;
  int64_t min_times = wr_case_limit(c, "min_times");
  uint32_t *times = wr_case_array(c, c->facts->count, sizeof(*times));
  if (!times) return;
  WR_EACH(c, SCALAR_STEP, scalar_step, s)
  {
    times[wr_case_common(c, s->template) - c->facts->common]++;
  }
  WR_EACH(c, SCALAR_STEP, scalar_step, s)
  {
    if (times[wr_case_common(c, s->template) - c->facts->common] < min_times) continue;
    unsigned bits = wr_case_wait_bits(c, s->wait ? s->wait : s->event);
    if ((bits & pending) == pending) find_number(c, s);
  }
  free(times);
}

/* ---- 53: questions with pauses between them ---------------------------------------------------- */

typedef struct paused_place {
  int64_t waits, least, total; /* least: ns between the last two questions of the quickest wait */
} paused_place;

/* Of each template. */
static paused_place *paused_places(wr_case *c)
{
  paused_place *place = wr_case_array(c, c->facts->count, sizeof(*place));
  if (!place) return NULL;
  WR_EACH(c, LATE_WAIT, late_wait, l)
  {
    paused_place *x = &place[wr_case_common(c, l->template) - c->facts->common];
    if (!x->waits++ || l->gap < x->least) x->least = l->gap;
    x->total = wr_sum(x->total, l->gap);
  }
  return place;
}

/* The work is complete at any time between the last two questions; where it is known when devices worked, at its end. */
void wr_judge_polled_with_pauses(wr_case *c)
{
  int64_t min_times = wr_case_limit(c, "min_times"), min_total = wr_case_limit(c, "min_total"),
          min_gap = wr_case_limit(c, "min_gap"), max_gap = wr_case_limit(c, "max_gap");
  paused_place *place = paused_places(c);
  if (!place) return;
  WR_EACH(c, LATE_WAIT, late_wait, l)
  {
    const paused_place *x = &place[wr_case_common(c, l->template) - c->facts->common];
    if (x->waits < min_times || x->total < min_total) continue;
    if (x->least < min_gap || x->least > max_gap) continue;
    const wr_call_row *e = wr_case_call(c, l->event);
    if (!e) continue;
    wr_case_find(c, &(wr_found){.event = l->event,
                                .template = l->template,
                                .cost = l->gap,
                                .saving = wr_case_idle_before(c, e, l->gap, l->gap / 2),
                                .certainty = c->rule->certainty});
  }
  free(place);
}
