/* sweep.c: see sweep.h.
 *
 * What is under way is kept by its end: operations in a heap, calls in two stacks in order of their
 * starts, of which the top that has not ended is the one begun last. pass_time() adds up to a
 * moment in steps, each to the next end of anything that counts.
 *
 * A queue is *unsure* while an untimed operation of it may be under way: its last one has a higher
 * number than all that is complete or has begun. */
#include "reports/queues/sweep.h"
#include <stdlib.h>
#include "reports/base/util.h"

enum { DEVICES = 256, NO_DEVICE = 255, STACK_LEAST = 1024 };

typedef struct queue_state {
  uint64_t untimed, past; /* its last untimed operation; what is complete or has begun */
  uint32_t queued;        /* operations called for that have not begun */
  uint8_t device;
  uint8_t full_device; /* when it is full */
  bool unsure;
} queue_state;

typedef struct wait_point {
  uint32_t queue;
  uint64_t number;
  uint64_t untimed; /* last such operation that is waited for */
} wait_point;

typedef struct open_wait {
  wr_wait_time time;
  int64_t end;
  wait_point *points; /* owned; kept when the place is free */
  size_t count, capacity;
  uint64_t devices[4]; /* bit by ordinal */
  bool any_device;
  uint32_t own, other; /* operations under way: waited for; others on its devices */
  bool stale;          /* ... are not counted yet, nor are its points in order */
} open_wait;

typedef struct host_call {
  int64_t end;
  uint32_t api;
  bool queues; /* it puts work into a queue */
} host_call;

typedef struct call_stack {
  host_call *call; /* owned; by start */
  size_t count, capacity, compact_at;
} call_stack;

typedef struct device_state {
  bool seen;
  uint32_t busy;     /* operations in the heap */
  uint32_t queued;   /* operations called for */
  uint32_t unsure;   /* queues */
  uint32_t full;     /* queues */
  uint64_t *in_full; /* owned; ns by function, or NULL: none was full yet */
  int64_t untracked; /* until when one is under way that is not in the heap */
  int64_t idle_from; /* since when it is idle */
  wr_gap gap;        /* the parts, while it is idle */
  uint64_t *in_gap;  /* owned; ns by function, of WAITING, then of ELSEWHERE */
  uint64_t *in_all;  /* owned; of all gaps */
  uint32_t *touched; /* owned; places of in_gap that are not 0 */
  size_t touched_count;
  uint64_t all[WR_IDLE_CAUSES]; /* ns of all gaps */
} device_state;

struct wr_sweep {
  const wr_sweep_taker *taker;
  uint32_t apis;
  uint32_t room;        /* operations of which a queue is full */
  uint32_t full_queues; /* of all devices */
  int64_t now;
  bool begun;
  wr_sweep_moment *works; /* a heap by end; [WR_SWEEP_WORKS] */
  size_t work_count;
  open_wait waits[WR_SWEEP_WAITS];
  size_t wait_count;
  call_stack waiting, calls;
  queue_state *queues;
  size_t queue_count, queue_capacity;
  device_state devices[DEVICES];
  uint8_t seen[DEVICES]; /* devices in order of their first operation */
  size_t seen_count;
  uint32_t unsure_queues; /* all of them */
  uint32_t unsure_any;    /* those of which the device is not known */
  int64_t refused;        /* the last wait for which there was no room; INT64_MIN none */
  int64_t untracked;      /* the last end of all untracked operations */
  struct {                /* of operations that are queued: their starts, a heap */
    int64_t start;
    uint32_t queue; /* or WR_NO_QUEUE */
    uint8_t device;
  } * queued;
  size_t queued_count, queued_capacity;
};

static weir_status no_memory_to_divide(void)
{
  return weir_fail(WEIR_ENOMEM, "dividing waits: out of host memory");
}

/* ---- calls of the host ----------------------------------------------------------------------- */

static bool push_call(call_stack *k, int64_t now, const wr_sweep_moment *m, uint32_t apis)
{
  while (k->count && k->call[k->count - 1].end <= now)
    k->count--;
  if (k->count >= k->compact_at) { /* those that have ended below the top */
    size_t kept = 0;
    for (size_t i = 0; i < k->count; i++)
      if (k->call[i].end > now) k->call[kept++] = k->call[i];
    k->count = kept;
    k->compact_at = 2 * kept > STACK_LEAST ? 2 * kept : STACK_LEAST;
  }
  if (!wr_grow(&k->call, &k->capacity, k->count + 1, sizeof(host_call))) return false;
  k->call[k->count++] =
      (host_call){m->end, m->api < apis ? m->api : 0, m->kind == WR_MOMENT_QUEUEING_CALL};
  return true;
}

/* Of the first *count, the call that began last and is under way, or NULL; *count: up to it. */
static const host_call *latest_call(const call_stack *k, size_t *count, int64_t now)
{
  while (*count && k->call[*count - 1].end <= now)
    --*count;
  return *count ? &k->call[*count - 1] : NULL;
}

/* ---- idle devices ---------------------------------------------------------------------------- */

static bool idle(const wr_sweep *s, const device_state *d)
{
  return !d->busy && d->untracked <= s->now;
}

static uint32_t api_of(const wr_sweep *s, uint32_t place)
{
  return place < s->apis ? place : place - s->apis;
}

static void add_idle_span(wr_sweep *s, device_state *d, wr_idle_cause cause, uint32_t api,
                          uint64_t ns)
{
  uint32_t place = api + (cause == WR_IDLE_WAITING ? 0 : s->apis);
  d->gap.ns[cause] += ns;
  if (cause != WR_IDLE_WAITING && cause != WR_IDLE_ELSEWHERE) return;
  if (!d->in_gap[place]) d->touched[d->touched_count++] = place;
  d->in_gap[place] += ns;
}

/* From now to `to`: nothing but calls of the host ends there. */
static void add_host_time(wr_sweep *s, device_state *d, int64_t to)
{
  size_t waits = s->waiting.count, calls = s->calls.count;
  for (int64_t at = s->now; at < to;) {
    const host_call *waiting = latest_call(&s->waiting, &waits, at);
    const host_call *call = waiting ? waiting : latest_call(&s->calls, &calls, at);
    int64_t until = call && call->end < to ? call->end : to;
    bool full = call && call->queues && s->full_queues;
    wr_idle_cause cause = waiting ? WR_IDLE_WAITING
                          : full  ? WR_IDLE_FULL
                          : call  ? WR_IDLE_ELSEWHERE
                                  : WR_IDLE_NO_CALL;
    add_idle_span(s, d, cause, call ? call->api : 0, (uint64_t)until - (uint64_t)at);
    at = until;
  }
}

static void pass_idle(wr_sweep *s, device_state *d, int64_t to)
{
  uint64_t ns = (uint64_t)to - (uint64_t)s->now;
  if (d->unsure || s->unsure_any)
    add_idle_span(s, d, WR_IDLE_UNKNOWN, 0, ns);
  else if (d->queued)
    add_idle_span(s, d, WR_IDLE_QUEUED, 0, ns);
  else
    add_host_time(s, d, to);
}

/* From now to `to`, while a queue of the device's is full. */
static void add_full_time(wr_sweep *s, device_state *d, int64_t to)
{
  size_t calls = s->calls.count;
  for (int64_t at = s->now; at < to;) {
    const host_call *call = latest_call(&s->calls, &calls, at);
    if (!call) return;
    int64_t until = call->end < to ? call->end : to;
    if (call->queues) d->in_full[call->api] += (uint64_t)until - (uint64_t)at;
    at = until;
  }
}

/* The device begins with work: what it was idle before is a gap. */
static weir_status end_gap(wr_sweep *s, device_state *d, const wr_sweep_moment *m)
{
  weir_status st = WEIR_OK;
  uint64_t most = 0;
  d->gap.device = m->device;
  d->gap.start = d->idle_from;
  d->gap.end = s->now;
  d->gap.work = m->id;
  for (size_t i = 0; i < d->touched_count; i++) {
    uint32_t place = d->touched[i];
    if (d->in_gap[place] > most) most = d->in_gap[place], d->gap.api = api_of(s, place);
    d->in_all[place] += d->in_gap[place];
    d->in_gap[place] = 0;
  }
  for (int i = 0; i < WR_IDLE_CAUSES; i++)
    d->all[i] += d->gap.ns[i];
  d->touched_count = 0;
  if (d->gap.end > d->gap.start) st = s->taker->gap(s->taker->context, &d->gap);
  d->gap = (wr_gap){0};
  return st;
}

static bool see_device(wr_sweep *s, uint8_t device)
{
  device_state *d = &s->devices[device];
  if (d->seen) return true;
  d->in_gap = calloc((size_t)2 * s->apis, sizeof(uint64_t));
  d->in_all = calloc((size_t)2 * s->apis, sizeof(uint64_t));
  d->touched = calloc((size_t)2 * s->apis, sizeof(uint32_t));
  if (!d->in_gap || !d->in_all || !d->touched) return false;
  d->seen = true;
  d->idle_from = s->now;
  s->seen[s->seen_count++] = device;
  return true;
}

/* ---- what was waited for --------------------------------------------------------------------- */

static int by_queue(const void *left, const void *right)
{
  const wait_point *a = left, *b = right;
  return (a->queue > b->queue) - (a->queue < b->queue);
}

static const wait_point *point_of(const open_wait *w, uint32_t queue)
{
  size_t first = 0, end = w->count;
  while (first < end) {
    size_t middle = first + (end - first) / 2;
    if (w->points[middle].queue == queue) return &w->points[middle];
    if (w->points[middle].queue < queue)
      first = middle + 1;
    else
      end = middle;
  }
  return NULL;
}

static bool waits_for(const open_wait *w, const wr_sweep_moment *work)
{
  const wait_point *p = work->queue == WR_NO_QUEUE ? NULL : point_of(w, work->queue);
  return p && work->number <= p->number;
}

static bool on_devices(const open_wait *w, uint8_t device)
{
  return w->any_device || w->devices[device / 64] >> device % 64 & 1;
}

/* `by` 1: the operation begins; UINT32_MAX: it ends. */
static void count_work(open_wait *w, const wr_sweep_moment *work, uint32_t by)
{
  if (w->stale) return;
  if (waits_for(w, work))
    w->own += by;
  else if (on_devices(w, work->device))
    w->other += by;
}

/* All of it is known: what is under way is counted. */
static void begin_wait(const wr_sweep *s, open_wait *w)
{
  if (w->count > 1) qsort(w->points, w->count, sizeof(wait_point), by_queue);
  w->stale = false;
  for (size_t i = 0; i < s->work_count; i++)
    count_work(w, &s->works[i], 1);
}

/* What is waited for may be under way, and has no times. */
static bool unsure_of_own(const wr_sweep *s, const open_wait *w)
{
  for (size_t i = 0; i < w->count; i++) {
    const wait_point *p = &w->points[i];
    if (p->untimed && p->untimed > s->queues[p->queue].past) return true;
  }
  return false;
}

static bool unsure_of_devices(const wr_sweep *s, const open_wait *w)
{
  if (s->unsure_any) return true;
  for (int i = 0; s->unsure_queues && i < DEVICES; i++)
    if (s->devices[i].unsure && on_devices(w, (uint8_t)i)) return true;
  return false;
}

static void pass_wait(wr_sweep *s, open_wait *w, int64_t to)
{
  uint64_t ns = (uint64_t)to - (uint64_t)s->now;
  if (w->stale) begin_wait(s, w);
  bool unsure = !w->own && (s->untracked > s->now || unsure_of_own(s, w));
  if (w->own)
    w->time.working += ns;
  else if (w->other && !unsure)
    w->time.other += ns;
  else if (unsure || unsure_of_devices(s, w))
    w->time.unknown += ns;
  else
    w->time.idle += ns;
}

static weir_status end_waits(wr_sweep *s)
{
  weir_status st = WEIR_OK;
  for (size_t i = 0; !st && i < s->wait_count;) {
    if (s->waits[i].end > s->now) {
      i++;
      continue;
    }
    st = s->taker->wait(s->taker->context, &s->waits[i].time);
    open_wait ended = s->waits[i];
    s->waits[i] = s->waits[--s->wait_count];
    s->waits[s->wait_count] = ended; /* its points' room serves again */
  }
  return st;
}

/* ---- operations under way -------------------------------------------------------------------- */

static void sift_down(wr_sweep_moment *heap, size_t count, size_t at)
{
  for (;;) {
    size_t least = at, left = 2 * at + 1;
    if (left < count && heap[left].end < heap[least].end) least = left;
    if (left + 1 < count && heap[left + 1].end < heap[least].end) least = left + 1;
    if (least == at) return;
    wr_sweep_moment moved = heap[at];
    heap[at] = heap[least];
    heap[least] = moved;
    at = least;
  }
}

static void push_work(wr_sweep *s, const wr_sweep_moment *m)
{
  size_t at = s->work_count++;
  for (; at && s->works[(at - 1) / 2].end > m->end; at = (at - 1) / 2)
    s->works[at] = s->works[(at - 1) / 2];
  s->works[at] = *m;
}

static void end_works(wr_sweep *s)
{
  while (s->work_count && s->works[0].end <= s->now) {
    wr_sweep_moment ended = s->works[0];
    device_state *d = &s->devices[ended.device];
    s->works[0] = s->works[--s->work_count];
    sift_down(s->works, s->work_count, 0);
    for (size_t i = 0; i < s->wait_count; i++)
      count_work(&s->waits[i], &ended, UINT32_MAX);
    if (!--d->busy && d->untracked <= ended.end) d->idle_from = ended.end;
  }
}

static queue_state *queue_of(wr_sweep *s, uint32_t queue);

/* One more, or one less, of the queue's operations is queued. The device is the operation's. False:
 * out of memory. */
static bool count_queued(wr_sweep *s, uint32_t queue, uint8_t device, uint32_t by)
{
  if (queue == WR_NO_QUEUE) return true;
  queue_state *q = queue_of(s, queue);
  if (!q) return false;
  bool was_full = q->queued >= s->room;
  q->queued += by;
  if (was_full == (q->queued >= s->room)) return true;
  if (!was_full) q->full_device = device;
  device_state *d = &s->devices[q->full_device];
  d->full += by;
  s->full_queues += by;
  if (!d->in_full) d->in_full = calloc(s->apis, sizeof(uint64_t));
  return d->in_full != NULL;
}

/* Of queued operations only their starts, queues and devices are kept, as a heap. */
static bool push_queued(wr_sweep *s, const wr_sweep_moment *m)
{
  if (!count_queued(s, m->queue, m->device, 1)) return false;
  if (!wr_grow(&s->queued, &s->queued_capacity, s->queued_count + 1, sizeof(*s->queued)))
    return false;
  size_t at = s->queued_count++;
  for (; at && s->queued[(at - 1) / 2].start > m->end; at = (at - 1) / 2)
    s->queued[at] = s->queued[(at - 1) / 2];
  s->queued[at].start = m->end;
  s->queued[at].queue = m->queue;
  s->queued[at].device = m->device;
  s->devices[m->device].queued++;
  return true;
}

static void pop_queued(wr_sweep *s)
{
  size_t count = --s->queued_count;
  s->devices[s->queued[0].device].queued--;
  (void)count_queued(s, s->queued[0].queue, s->queued[0].device, UINT32_MAX);
  int64_t start = s->queued[count].start;
  uint32_t queue = s->queued[count].queue;
  uint8_t device = s->queued[count].device;
  size_t at = 0;
  for (size_t next; (next = 2 * at + 1) < count; at = next) {
    if (next + 1 < count && s->queued[next + 1].start < s->queued[next].start) next++;
    if (s->queued[next].start >= start) break;
    s->queued[at] = s->queued[next];
  }
  s->queued[at].start = start;
  s->queued[at].queue = queue;
  s->queued[at].device = device;
}

/* ---- time passes ----------------------------------------------------------------------------- */

static int64_t earlier(int64_t a, int64_t b)
{
  return a < b ? a : b;
}

/* The next moment, up to `to`, at which something ends that counts. */
static int64_t next_end(const wr_sweep *s, int64_t to)
{
  if (s->work_count) to = earlier(to, s->works[0].end);
  if (s->queued_count) to = earlier(to, s->queued[0].start);
  for (size_t i = 0; i < s->wait_count; i++)
    to = earlier(to, s->waits[i].end);
  if (s->untracked <= s->now) return to;
  for (size_t i = 0; i < s->seen_count; i++) {
    int64_t end = s->devices[s->seen[i]].untracked;
    if (end > s->now) to = earlier(to, end);
  }
  return to;
}

static void end_untracked(wr_sweep *s)
{
  for (size_t i = 0; i < s->seen_count; i++) {
    device_state *d = &s->devices[s->seen[i]];
    if (d->untracked == s->now && !d->busy) d->idle_from = s->now;
  }
}

static weir_status pass_time(wr_sweep *s, int64_t to)
{
  weir_status st = WEIR_OK;
  while (!st && s->now < to) {
    int64_t at = next_end(s, to);
    for (size_t i = 0; at > s->now && i < s->wait_count; i++)
      pass_wait(s, &s->waits[i], at);
    for (size_t i = 0; at > s->now && i < s->seen_count; i++)
      if (idle(s, &s->devices[s->seen[i]])) pass_idle(s, &s->devices[s->seen[i]], at);
    for (int i = 0; s->full_queues && i < DEVICES; i++)
      if (s->devices[i].full) add_full_time(s, &s->devices[i], at);
    bool untracked = s->untracked > s->now;
    s->now = at;
    end_works(s);
    if (untracked) end_untracked(s);
    while (s->queued_count && s->queued[0].start <= s->now)
      pop_queued(s);
    st = end_waits(s);
  }
  return st;
}

/* ---- moments --------------------------------------------------------------------------------- */

/* The queue, made where it is new; NULL: out of memory. */
static queue_state *queue_of(wr_sweep *s, uint32_t queue)
{
  if (!wr_grow(&s->queues, &s->queue_capacity, (size_t)queue + 1, sizeof(queue_state))) return NULL;
  while (s->queue_count <= queue)
    s->queues[s->queue_count++] = (queue_state){.device = NO_DEVICE};
  return &s->queues[queue];
}

static void judge_queue(wr_sweep *s, queue_state *q)
{
  bool unsure = q->untimed > q->past;
  uint32_t *count = q->device == NO_DEVICE ? &s->unsure_any : &s->devices[q->device].unsure;
  if (unsure == q->unsure) return;
  q->unsure = unsure;
  *count += unsure ? 1 : UINT32_MAX;
  s->unsure_queues += unsure ? 1 : UINT32_MAX;
}

static weir_status take_untimed(wr_sweep *s, const wr_sweep_moment *m)
{
  queue_state *q = queue_of(s, m->queue);
  if (!q) return no_memory_to_divide();
  if (!q->unsure) q->device = m->device;
  if (m->number > q->untimed) q->untimed = m->number;
  judge_queue(s, q);
  for (size_t i = 0; i < s->wait_count; i++)
    for (size_t k = 0; k < s->waits[i].count; k++) {
      wait_point *p = &s->waits[i].points[k];
      if (p->queue == m->queue && m->number <= p->number && m->number > p->untimed)
        p->untimed = m->number;
    }
  return WEIR_OK;
}

/* All up to `number` is complete. */
static weir_status take_past(wr_sweep *s, uint32_t queue, uint64_t number)
{
  queue_state *q = queue_of(s, queue);
  if (!q) return no_memory_to_divide();
  if (number > q->past) q->past = number;
  judge_queue(s, q);
  return WEIR_OK;
}

static weir_status take_queued_span(wr_sweep *s, const wr_sweep_moment *m)
{
  weir_status st = WEIR_OK;
  if (m->device == NO_DEVICE) return WEIR_OK;
  if (m->queue != WR_NO_QUEUE && m->number) st = take_past(s, m->queue, m->number - 1);
  if (!st && !see_device(s, m->device)) st = no_memory_to_divide();
  device_state *d = &s->devices[m->device];
  if (!st && idle(s, d)) st = end_gap(s, d, m);
  if (st) return st;
  if (m->end <= s->now) {
    if (idle(s, d)) d->idle_from = s->now;
    return WEIR_OK;
  }
  if (s->work_count == WR_SWEEP_WORKS) {
    if (m->end > d->untracked) d->untracked = m->end;
    if (m->end > s->untracked) s->untracked = m->end;
    return WEIR_OK;
  }
  push_work(s, m);
  d->busy++;
  for (size_t i = 0; i < s->wait_count; i++)
    count_work(&s->waits[i], m, 1);
  return WEIR_OK;
}

/* The open wait, begun where it is new; NULL: there are too many. */
static open_wait *wait_of(wr_sweep *s, const wr_sweep_moment *m)
{
  for (size_t i = s->wait_count; i--;)
    if (s->waits[i].time.id == m->id) return &s->waits[i];
  if (s->wait_count == WR_SWEEP_WAITS) return NULL;
  open_wait *w = &s->waits[s->wait_count++];
  *w = (open_wait){.time = {.id = m->id},
                   .end = m->end,
                   .stale = true,
                   .points = w->points,
                   .capacity = w->capacity};
  return w;
}

/* Once for all that it waits for. */
static weir_status refuse_wait(wr_sweep *s, const wr_sweep_moment *m)
{
  if (s->refused == m->id) return WEIR_OK;
  s->refused = m->id;
  wr_wait_time all = {.id = m->id, .unknown = (uint64_t)m->end - (uint64_t)m->time};
  return s->taker->wait(s->taker->context, &all);
}

static weir_status take_wait(wr_sweep *s, const wr_sweep_moment *m)
{
  open_wait *w = m->end > m->time ? wait_of(s, m) : NULL;
  if (!w) return refuse_wait(s, m);
  if (m->device == NO_DEVICE)
    w->any_device = true;
  else
    w->devices[m->device / 64] |= UINT64_C(1) << m->device % 64;
  if (m->queue != WR_NO_QUEUE) {
    const queue_state *q = queue_of(s, m->queue);
    if (!q || !wr_grow(&w->points, &w->capacity, w->count + 1, sizeof(wait_point)))
      return no_memory_to_divide();
    uint64_t untimed = q->untimed < m->number ? q->untimed : m->number;
    w->points[w->count++] = (wait_point){m->queue, m->number, untimed};
  }
  return WEIR_OK;
}

weir_status wr_sweep_take(wr_sweep *s, const wr_sweep_moment *m)
{
  if (!s->begun) s->now = m->time;
  s->begun = true;
  weir_status st = pass_time(s, m->time);
  if (st) return st;
  switch ((wr_sweep_moment_kind)m->kind) {
  case WR_MOMENT_CALL:
  case WR_MOMENT_QUEUEING_CALL:
    return push_call(&s->calls, s->now, m, s->apis) ? WEIR_OK : no_memory_to_divide();
  case WR_MOMENT_WAITING_CALL:
    return push_call(&s->waiting, s->now, m, s->apis) ? WEIR_OK : no_memory_to_divide();
  case WR_MOMENT_WAIT:
    return take_wait(s, m);
  case WR_MOMENT_WORK:
    return take_queued_span(s, m);
  case WR_MOMENT_QUEUED:
    return m->end <= s->now || push_queued(s, m) ? WEIR_OK : no_memory_to_divide();
  case WR_MOMENT_UNTIMED:
    return take_untimed(s, m);
  case WR_MOMENT_DONE:
    return take_past(s, m->queue, m->number);
  }
  return WEIR_OK;
}

/* ---- the end --------------------------------------------------------------------------------- */

static weir_status say_sum(const wr_sweep *s, int device, wr_idle_cause cause, uint32_t api,
                           uint64_t ns)
{
  wr_idle_sum sum = {device, cause, api, ns};
  return ns ? s->taker->idle(s->taker->context, &sum) : WEIR_OK;
}

static weir_status say_device(const wr_sweep *s, int device)
{
  const device_state *d = &s->devices[device];
  weir_status st = say_sum(s, device, WR_IDLE_UNKNOWN, 0, d->all[WR_IDLE_UNKNOWN]);
  if (!st) st = say_sum(s, device, WR_IDLE_QUEUED, 0, d->all[WR_IDLE_QUEUED]);
  if (!st) st = say_sum(s, device, WR_IDLE_NO_CALL, 0, d->all[WR_IDLE_NO_CALL]);
  if (!st) st = say_sum(s, device, WR_IDLE_FULL, 0, d->all[WR_IDLE_FULL]);
  for (uint32_t i = 0; !st && i < 2 * s->apis; i++)
    st = say_sum(s, device, i < s->apis ? WR_IDLE_WAITING : WR_IDLE_ELSEWHERE, api_of(s, i),
                 d->in_all[i]);
  return st;
}

static weir_status say_full(const wr_sweep *s, int device)
{
  const uint64_t *in_full = s->devices[device].in_full;
  weir_status st = WEIR_OK;
  for (uint32_t i = 0; in_full && !st && i < s->apis; i++) {
    wr_full_sum sum = {device, i, in_full[i]};
    if (in_full[i]) st = s->taker->full(s->taker->context, &sum);
  }
  return st;
}

weir_status wr_sweep_finish(wr_sweep *s)
{
  weir_status st = WEIR_OK;
  while (!st && s->wait_count) {
    int64_t last = s->waits[0].end;
    for (size_t i = 1; i < s->wait_count; i++)
      if (s->waits[i].end > last) last = s->waits[i].end;
    st = pass_time(s, last);
    if (!st) st = end_waits(s);
  }
  for (int i = 0; !st && i < DEVICES; i++)
    if (s->devices[i].seen) st = say_device(s, i);
  for (int i = 0; !st && i < DEVICES; i++)
    st = say_full(s, i);
  return st;
}

wr_sweep *wr_sweep_open(const wr_sweep_taker *taker, uint32_t apis, uint32_t room)
{
  wr_sweep *s = calloc(1, sizeof(*s));
  if (!s) return NULL;
  s->works = calloc(WR_SWEEP_WORKS, sizeof(*s->works));
  s->taker = taker;
  s->apis = apis ? apis : 1;
  s->room = room;
  s->now = s->untracked = s->refused = INT64_MIN;
  s->waiting.compact_at = s->calls.compact_at = STACK_LEAST;
  for (int i = 0; i < DEVICES; i++)
    s->devices[i].untracked = INT64_MIN;
  if (s->works) return s;
  free(s);
  return NULL;
}

void wr_sweep_close(wr_sweep *s)
{
  if (!s) return;
  for (int i = 0; i < DEVICES; i++) {
    free(s->devices[i].in_gap);
    free(s->devices[i].in_all);
    free(s->devices[i].touched);
    free(s->devices[i].in_full);
  }
  for (size_t i = 0; i < WR_SWEEP_WAITS; i++)
    free(s->waits[i].points);
  free(s->works);
  free(s->waiting.call);
  free(s->calls.call);
  free(s->queues);
  free(s->queued);
  free(s);
}
