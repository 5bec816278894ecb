/* test_sweep.c: how the time of waits divides and why devices were idle, ns by ns: random moments
 * against an account that looks at every ns by itself. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include "reports/queues/sweep.h"

enum {
  LENGTH = 300,
  MOST = 24,
  QUEUES = 4,
  DEVICES = 2,
  APIS = 5,
  NUMBERS = 6,
  ROOM = 2,
  RUNS = 2500
};

static uint64_t rng;

static int below(int n)
{
  rng = rng * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (int)((rng >> 33) % (unsigned)n);
}

/* ---- a random history ------------------------------------------------------------------------ */

typedef struct history {
  wr_sweep_moment m[16 * MOST];
  size_t count;
} history;

static wr_sweep_moment *add_moment(history *h, wr_sweep_moment_kind kind, int64_t time, int64_t end)
{
  wr_sweep_moment *m = &h->m[h->count++];
  *m = (wr_sweep_moment){.id = (int64_t)h->count, .time = time, .end = end, .kind = (uint8_t)kind};
  return m;
}

static void add_span(history *h, wr_sweep_moment_kind kind)
{
  int64_t time = below(LENGTH);
  wr_sweep_moment *m = add_moment(h, kind, time, time + 1 + below(LENGTH / 4));
  m->device = (uint8_t)below(DEVICES);
  m->queue = (uint32_t)below(QUEUES);
  m->number = 1 + (uint64_t)below(NUMBERS);
  m->api = (uint16_t)below(APIS);
  if (kind == WR_MOMENT_QUEUED) m->device = (uint8_t)(m->queue % DEVICES);
  if (kind == WR_MOMENT_QUEUED && !below(8)) m->queue = WR_NO_QUEUE;
  if (kind == WR_MOMENT_WORK && !below(5)) m->queue = WR_NO_QUEUE;
  if (kind == WR_MOMENT_WAIT && !below(5)) m->queue = WR_NO_QUEUE;
  if (kind == WR_MOMENT_UNTIMED || kind == WR_MOMENT_DONE) m->end = 0;
}

static int by_time(const void *left, const void *right)
{
  const wr_sweep_moment *a = left, *b = right;
  if (a->time != b->time) return (a->time > b->time) - (a->time < b->time);
  return (a->id > b->id) - (a->id < b->id);
}

static void make_history(history *h)
{
  static const uint8_t kinds[] = {WR_MOMENT_CALL,  WR_MOMENT_QUEUEING_CALL, WR_MOMENT_WAITING_CALL,
                                  WR_MOMENT_WORK,  WR_MOMENT_WORK,          WR_MOMENT_QUEUED,
                                  WR_MOMENT_QUEUED};
  h->count = 0;
  for (int i = below(MOST); i > 0; i--)
    add_span(h, (wr_sweep_moment_kind)kinds[below(7)]);
  for (int i = below(8); i > 0; i--) {
    add_span(h, WR_MOMENT_WAIT);
    wr_sweep_moment first = h->m[h->count - 1];
    if (below(2) || first.queue == WR_NO_QUEUE) continue;
    h->m[h->count] = first; /* for another queue as well */
    h->m[h->count].device = (uint8_t)below(DEVICES);
    h->m[h->count++].queue = (first.queue + 1) % QUEUES;
  }
  if (!below(2)) return;
  for (int i = below(4); i > 0; i--)
    add_span(h, WR_MOMENT_UNTIMED);
  for (int i = below(4); i > 0; i--)
    add_span(h, WR_MOMENT_DONE);
  for (size_t i = 0; i < h->count; i++) /* a queue is of one device */
    if (h->m[i].kind == WR_MOMENT_UNTIMED)
      h->m[i].device = (uint8_t)(h->m[i].queue == 3 ? 255 : h->m[i].queue % DEVICES);
}

/* ---- the account, ns by ns ------------------------------------------------------------------- */

static bool is_under_way(const wr_sweep_moment *m, int kind, int64_t at)
{
  return m->kind == kind && m->time <= at && at < m->end;
}

/* What of a queue is complete or has begun. */
static uint64_t past(const history *h, uint32_t queue, int64_t at)
{
  uint64_t most = 0;
  for (size_t i = 0; i < h->count; i++) {
    const wr_sweep_moment *m = &h->m[i];
    if (m->queue != queue || m->time > at) continue;
    if (m->kind == WR_MOMENT_DONE && m->number > most) most = m->number;
    if (m->kind == WR_MOMENT_WORK && m->number - 1 > most) most = m->number - 1;
  }
  return most;
}

/* An untimed operation of a queue may be under way. */
static bool may_run_untimed(const history *h, uint32_t queue, int64_t at)
{
  for (size_t i = 0; i < h->count; i++) {
    const wr_sweep_moment *m = &h->m[i];
    if (m->kind == WR_MOMENT_UNTIMED && m->queue == queue && m->time <= at &&
        m->number > past(h, queue, at))
      return true;
  }
  return false;
}

/* ... one that is waited for. Of a queue only the last one is known: where one behind what is
 * waited for had been called for when the wait began, it stands for those ahead. */
static bool own_may_run_untimed(const history *h, const wr_sweep_moment *wait, int64_t at)
{
  for (size_t i = 0; i < h->count; i++) {
    const wr_sweep_moment *m = &h->m[i];
    if (m->kind != WR_MOMENT_UNTIMED || m->queue != wait->queue || m->time > at) continue;
    uint64_t number = m < wait && m->number > wait->number ? wait->number : m->number;
    if (number <= wait->number && number > past(h, m->queue, at)) return true;
  }
  return false;
}

static bool unsure_device(const history *h, const bool devices[DEVICES], int64_t at)
{
  for (uint32_t q = 0; q < QUEUES; q++)
    if (may_run_untimed(h, q, at) && (q == 3 || devices[q % DEVICES])) return true;
  return false;
}

static bool waited_for(const history *h, int64_t wait, const wr_sweep_moment *work)
{
  for (size_t i = 0; i < h->count; i++)
    if (h->m[i].kind == WR_MOMENT_WAIT && h->m[i].id == wait && h->m[i].queue != WR_NO_QUEUE &&
        h->m[i].queue == work->queue && work->number <= h->m[i].number)
      return true;
  return false;
}

/* The part of the wait's time that the ns belongs to. */
static uint64_t *part_of(const history *h, wr_wait_time *t, int64_t at)
{
  bool devices[DEVICES] = {false}, own = false, other = false, unsure = false;
  for (size_t i = 0; i < h->count; i++) {
    const wr_sweep_moment *m = &h->m[i];
    if (m->kind != WR_MOMENT_WAIT || m->id != t->id) continue;
    devices[m->device] = true;
    unsure |= m->queue != WR_NO_QUEUE && own_may_run_untimed(h, m, at);
  }
  for (size_t i = 0; i < h->count; i++) {
    const wr_sweep_moment *m = &h->m[i];
    if (!is_under_way(m, WR_MOMENT_WORK, at)) continue;
    own |= waited_for(h, t->id, m);
    other |= devices[m->device] && !waited_for(h, t->id, m);
  }
  if (own) return &t->working;
  if (unsure) return &t->unknown;
  if (other) return &t->other;
  return unsure_device(h, devices, at) ? &t->unknown : &t->idle;
}

static const wr_sweep_moment *latest(const history *h, int kind, int also, int64_t at)
{
  const wr_sweep_moment *last = NULL;
  for (size_t i = 0; i < h->count; i++)
    if (is_under_way(&h->m[i], kind, at) || is_under_way(&h->m[i], also, at)) last = &h->m[i];
  return last;
}

/* A queue of the device's has as many operations that have not begun as there is room for. */
static bool has_full_queue(const history *h, uint32_t device, int64_t at)
{
  for (uint32_t q = device; q < QUEUES; q += DEVICES) {
    int queued = 0;
    for (size_t i = 0; i < h->count; i++)
      queued += is_under_way(&h->m[i], WR_MOMENT_QUEUED, at) && h->m[i].queue == q;
    if (queued >= ROOM) return true;
  }
  return false;
}

typedef struct idle_sums {
  uint64_t ns[DEVICES][WR_IDLE_CAUSES][APIS];
  uint64_t full[DEVICES][APIS];
  uint64_t gaps[DEVICES];
} idle_sums;

static void count_idle_ns(const history *h, int device, int64_t at, idle_sums *sums)
{
  bool devices[DEVICES] = {device == 0, device == 1}, queued = false;
  const wr_sweep_moment *waiting = latest(h, WR_MOMENT_WAITING_CALL, WR_MOMENT_WAITING_CALL, at),
                        *call = latest(h, WR_MOMENT_CALL, WR_MOMENT_QUEUEING_CALL, at);
  bool full = call && call->kind == WR_MOMENT_QUEUEING_CALL &&
              (has_full_queue(h, 0, at) || has_full_queue(h, 1, at));
  for (size_t i = 0; i < h->count; i++)
    queued |= is_under_way(&h->m[i], WR_MOMENT_QUEUED, at) && h->m[i].device == device;
  wr_idle_cause cause = unsure_device(h, devices, at) ? WR_IDLE_UNKNOWN
                        : queued                      ? WR_IDLE_QUEUED
                        : waiting                     ? WR_IDLE_WAITING
                        : full                        ? WR_IDLE_FULL
                        : call                        ? WR_IDLE_ELSEWHERE
                                                      : WR_IDLE_NO_CALL;
  int api = cause == WR_IDLE_WAITING ? waiting->api : cause == WR_IDLE_ELSEWHERE ? call->api : 0;
  sums->ns[device][cause][api]++;
}

/* Up to the last moment, or the end of the last wait: behind them nothing is looked at. */
static void count_full(const history *h, int device, idle_sums *sums)
{
  int64_t last = 0;
  for (size_t i = 0; i < h->count; i++) {
    int64_t time = h->m[i].kind == WR_MOMENT_WAIT ? h->m[i].end : h->m[i].time;
    if (time > last) last = time;
  }
  for (int64_t at = 0; at < last; at++) {
    const wr_sweep_moment *call = latest(h, WR_MOMENT_CALL, WR_MOMENT_QUEUEING_CALL, at);
    if (call && call->kind == WR_MOMENT_QUEUEING_CALL && has_full_queue(h, (uint32_t)device, at))
      sums->full[device][call->api]++;
  }
}

static void count_idle(const history *h, int device, idle_sums *sums)
{
  int64_t first = INT64_MAX, last = INT64_MIN;
  bool busy_before = true;
  for (size_t i = 0; i < h->count; i++) {
    const wr_sweep_moment *m = &h->m[i];
    if (m->kind != WR_MOMENT_WORK || m->device != device) continue;
    if (m->time < first) first = m->time;
    if (m->time > last) last = m->time; /* a gap ends where the last one begins */
  }
  for (int64_t at = first; at < last; at++) {
    bool busy = false;
    for (size_t i = 0; i < h->count; i++)
      busy |= is_under_way(&h->m[i], WR_MOMENT_WORK, at) && h->m[i].device == device;
    if (!busy) count_idle_ns(h, device, at, sums);
    sums->gaps[device] += !busy && busy_before;
    busy_before = busy;
  }
}

/* ---- the comparison -------------------------------------------------------------------------- */

typedef struct seen {
  wr_wait_time waits[2 * WR_SWEEP_WAITS];
  size_t wait_count;
  idle_sums idle, of_gaps;
} seen;

static weir_status take_wait(void *context, const wr_wait_time *t)
{
  seen *s = context;
  s->waits[s->wait_count++] = *t;
  return WEIR_OK;
}

static weir_status take_gap(void *context, const wr_gap *g)
{
  seen *s = context;
  uint64_t all = 0;
  for (int i = 0; i < WR_IDLE_CAUSES; i++) {
    all += g->ns[i];
    s->of_gaps.ns[g->device][i][0] += g->ns[i];
  }
  ck_assert_uint_eq(all, (uint64_t)(g->end - g->start));
  s->idle.gaps[g->device]++;
  return WEIR_OK;
}

static weir_status take_idle(void *context, const wr_idle_sum *x)
{
  seen *s = context;
  s->idle.ns[x->device][x->cause][x->api] += x->ns;
  return WEIR_OK;
}

static weir_status take_full(void *context, const wr_full_sum *x)
{
  seen *s = context;
  s->idle.full[x->device][x->api] += x->ns;
  return WEIR_OK;
}

static void run_sweep(const wr_sweep_moment *m, size_t count, seen *s)
{
  const wr_sweep_taker taker = {take_wait, take_gap, take_idle, take_full, s};
  wr_sweep *sweep = wr_sweep_open(&taker, APIS, ROOM);
  ck_assert_ptr_nonnull(sweep);
  for (size_t i = 0; i < count; i++)
    ck_assert_int_eq(wr_sweep_take(sweep, &m[i]), WEIR_OK);
  ck_assert_int_eq(wr_sweep_finish(sweep), WEIR_OK);
  wr_sweep_close(sweep);
}

static void compare_waits(const history *h, const seen *s, int run)
{
  for (size_t i = 0; i < s->wait_count; i++) {
    const wr_wait_time *got = &s->waits[i];
    wr_wait_time want = {.id = got->id};
    const wr_sweep_moment *w = h->m;
    while (w->kind != WR_MOMENT_WAIT || w->id != got->id)
      w++;
    for (int64_t at = w->time; at < w->end; at++)
      ++*part_of(h, &want, at);
    ck_assert_msg(!memcmp(got, &want, sizeof(want)),
                  "run %d, wait %d: working %d %d, other %d %d, idle %d %d, unknown %d %d", run,
                  (int)got->id, (int)got->working, (int)want.working, (int)got->other,
                  (int)want.other, (int)got->idle, (int)want.idle, (int)got->unknown,
                  (int)want.unknown);
  }
}

static void compare_idle(const history *h, const seen *s, int run)
{
  static idle_sums want;
  memset(&want, 0, sizeof(want));
  for (int device = 0; device < DEVICES; device++) {
    count_idle(h, device, &want);
    count_full(h, device, &want);
    for (int api = 0; api < APIS; api++)
      ck_assert_uint_eq(s->idle.full[device][api], want.full[device][api]);
    ck_assert_uint_eq(s->idle.gaps[device], want.gaps[device]);
    for (int cause = 0; cause < WR_IDLE_CAUSES; cause++) {
      uint64_t all = 0;
      for (int api = 0; api < APIS; api++) {
        ck_assert_msg(s->idle.ns[device][cause][api] == want.ns[device][cause][api],
                      "run %d, device %d, cause %d, function %d: %d, not %d", run, device, cause,
                      api, (int)s->idle.ns[device][cause][api], (int)want.ns[device][cause][api]);
        all += want.ns[device][cause][api];
      }
      ck_assert_uint_eq(s->of_gaps.ns[device][cause][0], all);
    }
  }
}

START_TEST(random_histories_divide_as_they_do_ns_by_ns)
{
  static history h;
  static seen s;
  uint64_t parts[4] = {0}, waits = 0, full[2] = {0};
  for (int run = 0; run < RUNS; run++) {
    rng = (uint64_t)run * UINT64_C(0x9e3779b97f4a7c15) + 1;
    memset(&s, 0, sizeof(s));
    make_history(&h);
    qsort(h.m, h.count, sizeof(h.m[0]), by_time);
    run_sweep(h.m, h.count, &s);
    compare_waits(&h, &s, run);
    compare_idle(&h, &s, run);
    waits += s.wait_count;
    full[0] += s.idle.ns[0][WR_IDLE_FULL][0], full[1] += s.idle.full[0][1];
    for (size_t i = 0; i < s.wait_count; i++) {
      parts[0] += s.waits[i].working, parts[1] += s.waits[i].other;
      parts[2] += s.waits[i].idle, parts[3] += s.waits[i].unknown;
    }
  }
  ck_assert_uint_gt(waits, RUNS);
  ck_assert_uint_gt(full[0], 50);
  ck_assert_uint_gt(full[1], 50);
  for (int i = 0; i < 4; i++)
    ck_assert_uint_gt(parts[i], 1000);
}
END_TEST

/* ---- limits ---------------------------------------------------------------------------------- */

/* More at once than is distinguished: nothing is wrong, some of it is not known. */
START_TEST(what_is_too_much_at_once_is_unknown)
{
  enum { WORKS = 3 * WR_SWEEP_WORKS, LAST = 2 * WORKS };
  wr_sweep_moment *m = calloc(WORKS + 2, sizeof(*m));
  static seen s;
  ck_assert_ptr_nonnull(m);
  memset(&s, 0, sizeof(s));
  m[0] = (wr_sweep_moment){.id = 1, .end = LAST + 100, .number = 1, .kind = WR_MOMENT_WAIT};
  for (int i = 0; i < WORKS; i++)
    m[i + 1] = (wr_sweep_moment){.id = i + 2,
                                 .time = i,
                                 .end = LAST - i,
                                 .number = 1,
                                 .queue = i ? WR_NO_QUEUE : 0,
                                 .kind = WR_MOMENT_WORK};
  m[WORKS + 1] = (wr_sweep_moment){
      .id = WORKS + 2, .time = LAST + 50, .end = LAST + 60, .queue = 1, .kind = WR_MOMENT_WORK};
  run_sweep(m, WORKS + 2, &s);
  ck_assert_uint_eq(s.wait_count, 1);
  ck_assert_uint_eq(s.waits[0].working, LAST);
  ck_assert_uint_eq(s.waits[0].other, 10);
  ck_assert_uint_eq(s.waits[0].idle, 90);
  ck_assert_uint_eq(s.idle.gaps[0], 1);
  ck_assert_uint_eq(s.of_gaps.ns[0][WR_IDLE_NO_CALL][0], 50);
  for (int i = 0; i < WORKS; i++)
    m[i + 1].queue = WR_NO_QUEUE;
  memset(&s, 0, sizeof(s));
  run_sweep(m, WORKS + 2, &s);
  ck_assert_uint_eq(s.waits[0].working, 0);
  ck_assert_uint_gt(s.waits[0].unknown, 0);
  ck_assert_uint_eq(s.waits[0].other + s.waits[0].unknown, LAST + 10);
  free(m);
}
END_TEST

/* Each is said once, of however many queues it is for. */
START_TEST(more_waits_at_once_are_unknown)
{
  enum { WAITS = WR_SWEEP_WAITS + 40 };
  static wr_sweep_moment m[2 * WAITS];
  static seen s;
  memset(&s, 0, sizeof(s));
  for (int i = 0; i < 2 * WAITS; i++)
    m[i] = (wr_sweep_moment){
        .id = 1 + i / 2, .end = 7, .number = 1, .queue = (uint32_t)i % 2, .kind = WR_MOMENT_WAIT};
  run_sweep(m, (size_t)2 * WAITS, &s);
  uint64_t idle = 0, unknown = 0;
  for (size_t i = 0; i < s.wait_count; i++)
    idle += s.waits[i].idle, unknown += s.waits[i].unknown;
  ck_assert_uint_eq(s.wait_count, WAITS);
  ck_assert_uint_eq(idle, UINT64_C(7) * WR_SWEEP_WAITS);
  ck_assert_uint_eq(unknown, UINT64_C(7) * 40);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("reports/sweep");
  TCase *t = tcase_create("sweep");
  tcase_set_timeout(t, 0);
  tcase_add_test(t, random_histories_divide_as_they_do_ns_by_ns);
  tcase_add_test(t, what_is_too_much_at_once_is_unknown);
  tcase_add_test(t, more_waits_at_once_are_unknown);
  suite_add_tcase(s, t);
  SRunner *r = srunner_create(s);
  srunner_run_all(r, CK_ENV);
  int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed != 0;
}
