/* test_reuse.c: no schedule of a small program hands out memory that work may still touch: the
 * model checker of tests/memory/test_reuse.c over real streams, with real writes and copies as
 * work.
 *
 * Two streams, both held; blocks of 2 and 4 MiB in 6 MiB, so that every step of the reuse order is
 * needed. A block's first launch writes its owner's number all over it, later ones must read it
 * there (two streams that both read are no race of the program's own). To make a schedule mean the
 * same in every run, the test knows what can run: which gates are open, and who waits for whom (the
 * allocator's own waits are noted as they pass); a step is over when everything that can run has.
 */
#include "tests/cuda/rig.h"
#include "tests/level.h"

enum { BLOCKS = 2, LAUNCHES = 64, LANE_COUNT = 3, EVENTS = 64, WORDS = 8, ACTIONS = 12 };

enum {
  BOUND = AT_LEVEL(SANITIZED ? 3 : 4, 4, 5),
  ROUNDS = AT_LEVEL(SANITIZED ? 30 : 150, 600, 2000)
};

typedef struct launch {
  uint32_t number; /* the block's owner's */
  bool first;
  unsigned words; /* one a MiB */
} launch;

/* What one stream was given. */
typedef struct track {
  uint32_t gate[LAUNCHES]; /* that launch i is behind, 0: none */
  CUevent end[LAUNCHES];   /* of launch i */
  int submitted, progress; /* launches; that have run, or can now */
  bool held;
  struct need {
    int before; /* launch number: it and all later ones wait */
    int lane, launches;
  } needs[EVENTS];
  int need_count;
} track;

static rig r;
static track tracks[LANE_COUNT];
static uint32_t (*seen)[WORDS]; /* pinned: what launch i read */
static CUevent told[2];         /* of the program's own waits */

static struct mark {
  void *event;
  int lane, launches;
} marks[EVENTS]; /* what an event's last record covers */

static struct model {
  void *at[BLOCKS];
  unsigned words[BLOCKS];
  uint32_t number[BLOCKS];
  int home[BLOCKS];
  launch work[LAUNCHES];
  int launched;
  uint32_t numbers;
  bool wrong;
} m;

/* ---- what can run ---------------------------------------------------------------------------- */

static int lane_of(const void *stream)
{
  for (int i = 1; i < LANE_COUNT; i++)
    if (r.lanes[i].stream == stream) return i;
  return 0;
}

static struct mark *mark_of(const void *event)
{
  int i = 0;
  while (marks[i].event && marks[i].event != event)
    i++;
  ck_assert_int_lt(i, EVENTS - 1);
  return &marks[i];
}

static void note_record(void *event, void *stream)
{
  int lane = lane_of(stream);
  *mark_of(event) = (struct mark){event, lane, tracks[lane].submitted};
}

static void note_wait(void *stream, void *event)
{
  const struct mark *k = mark_of(event);
  track *t = &tracks[lane_of(stream)];
  ck_assert_int_lt(t->need_count, EVENTS);
  t->needs[t->need_count++] = (struct need){t->submitted, k->lane, k->launches};
}

static bool can_run(int lane)
{
  const track *t = &tracks[lane];
  if (t->progress == t->submitted || t->gate[t->progress] > r.lanes[lane].opened) return false;
  for (int i = 0; i < t->need_count; i++)
    if (t->needs[i].before <= t->progress &&
        tracks[t->needs[i].lane].progress < t->needs[i].launches)
      return false;
  return true;
}

/* Waits until everything that can run has. */
static void settle(void)
{
  for (bool more = true; more;) {
    more = false;
    for (int i = 1; i < LANE_COUNT; i++)
      while (can_run(i)) {
        tracks[i].progress++;
        more = true;
      }
  }
  for (int i = 1; i < LANE_COUNT; i++)
    if (tracks[i].progress && cuEventSynchronize(tracks[i].end[tracks[i].progress - 1]))
      m.wrong = true; /* memory that work touched was not there */
}

/* One launch more; false: it could not run. */
static bool run_one_launch(int number)
{
  const track *t = &tracks[number];
  lane *l = &r.lanes[number];
  if (t->progress == t->submitted || l->opened == l->gates) return false;
  l->opened++;
  bool runs = can_run(number);
  l->opened--;
  if (!runs) return false;
  gate_open(l);
  settle();
  return true;
}

static void release(int lane)
{
  tracks[lane].held = false;
  gate_open_all(&r.lanes[lane]);
  settle();
}

static weir_status noted_record(void *self, void *event, void *stream)
{
  weir_status st = r.real->event_record(self, event, stream);
  if (!st) note_record(event, stream);
  return st;
}

static weir_status noted_wait(void *self, void *stream, void *event)
{
  weir_status st = r.real->event_wait(self, stream, event);
  if (!st) note_wait(stream, event);
  return st;
}

/* A host that waits lets everything run that it waits for; cuMemFree() waits for all there is. */
static void let_all_run(void)
{
  for (int i = 1; i < LANE_COUNT; i++)
    gate_open_all(&r.lanes[i]);
  settle();
}

static weir_status noted_sync(void *self, void *event)
{
  let_all_run();
  return r.real->event_sync(self, event);
}

static weir_status noted_free(void *self, uint64_t address, uint64_t bytes)
{
  let_all_run();
  return r.real->source.segment_free(self, address, bytes);
}

/* A real driver may wait for work when it unmaps ("may exhibit synchronous behavior"). */
static weir_status noted_unmap(void *self, uint64_t address, uint64_t bytes)
{
  let_all_run();
  return r.real->source.unmap(self, address, bytes);
}

/* ---- the program ----------------------------------------------------------------------------- */

static void submit(int lane, int b, bool first)
{
  track *t = &tracks[lane];
  CUstream s = r.lanes[lane].stream;
  CUdeviceptr at = (CUdeviceptr)(uintptr_t)m.at[b];
  uint32_t *into = seen[m.launched];
  m.work[m.launched++] = (launch){m.number[b], first, m.words[b]};
  if (t->held) gate_add(&r.lanes[lane]);
  t->gate[t->submitted] = t->held ? r.lanes[lane].gates : 0;
  for (unsigned i = 0; i < m.words[b]; i++) {
    if (first)
      ok(cuMemsetD32Async(at + i * MIB, m.number[b], 1, s));
    else
      ok(cuMemcpyDtoHAsync(&into[i], at + i * MIB, 4, s));
  }
  ok(cuEventRecord(t->end[t->submitted++], s));
  settle();
}

static bool do_malloc(int b, int lane)
{
  if (m.at[b]) return false;
  m.words[b] = (unsigned)(b + 1) * 2;
  m.at[b] = rig_malloc(&r, lane, m.words[b] * MIB);
  m.number[b] = ++m.numbers;
  m.home[b] = lane;
  submit(lane, b, true);
  return true;
}

static bool do_free(int b)
{
  if (!m.at[b]) return false;
  submit(m.home[b], b, false); /* the latest work that may still see the block */
  rig_free(&r, m.at[b]);
  m.at[b] = NULL;
  return true;
}

/* Uses a block on the other stream, ordered after its home by an event, told by record_stream. */
static bool do_share(int b)
{
  if (!m.at[b]) return false;
  int home = m.home[b], other = 3 - home;
  CUevent e = told[home - 1];
  ok(cuEventRecord(e, r.lanes[home].stream));
  note_record(e, r.lanes[home].stream);
  ok(cuStreamWaitEvent(r.lanes[other].stream, e, 0));
  note_wait(r.lanes[other].stream, e);
  pthread_mutex_lock(&r.p->lock);
  epoch_depend(r.lanes[other].heap, r.lanes[home].heap);
  pthread_mutex_unlock(&r.p->lock);
  weir_ok(pool_use(m.at[b], r.lanes[other].heap));
  submit(other, b, false);
  return true;
}

/* False: the action makes no sense here, so the schedule is another's prefix. */
static bool try_lane_action(int action)
{
  if (action < 4) return do_malloc(action / 2, 1 + action % 2);
  if (action < 6) return do_free(action - 4);
  if (action < 8) return do_share(action - 6);
  if (action < 10) return run_one_launch(action - 7);
  if (action == 10) return tracks[1].held ? release(1), true : false;
  return weir_pool_empty(r.p) == WEIR_OK;
}

static void begin_lane_schedule(const char *conf)
{
  memset(&m, 0, sizeof m);
  memset(marks, 0, sizeof marks);
  for (int i = 1; i < LANE_COUNT; i++) {
    tracks[i].submitted = tracks[i].progress = tracks[i].need_count = 0;
    tracks[i].held = true;
  }
  rig_pool(&r, conf);
}

static void end_lane_schedule(void)
{
  for (int b = 0; b < BLOCKS; b++)
    (void)do_free(b);
  let_all_run();
  if (cuCtxSynchronize()) m.wrong = true;
  for (int i = 0; i < m.launched; i++)
    for (unsigned w = 0; !m.work[i].first && w < m.work[i].words; w++)
      if (seen[i][w] != m.work[i].number) m.wrong = true;
  if (!m.wrong) rig_check(&r);
  if (!m.wrong) rig_end(&r);
}

static void prepare(void)
{
  rig_open(&r);
  rig_lanes(&r, LANE_COUNT);
  r.backend.event_record = noted_record;
  r.backend.event_wait = noted_wait;
  r.backend.event_sync = noted_sync;
  r.backend.source.segment_free = noted_free;
  if (!rig_simulated() && r.backend.source.unmap) r.backend.source.unmap = noted_unmap;
  ok(cuMemHostAlloc((void **)&seen, LAUNCHES * sizeof *seen, 0));
  for (int i = 1; i < LANE_COUNT; i++)
    for (int k = 0; k < LAUNCHES; k++)
      ok(cuEventCreate(&tracks[i].end[k], CU_EVENT_DISABLE_TIMING));
  for (int i = 0; i < 2; i++)
    ok(cuEventCreate(&told[i], CU_EVENT_DISABLE_TIMING));
}

static const char *const ways[] = {"limit_mb:6",
                                   "limit_mb:60,soft_limit_mb:8,expandable_segments:False"};

/* ---- all schedules, and long ones ------------------------------------------------------------ */

static bool run_schedule(const char *conf, const int *actions, int count)
{
  begin_lane_schedule(conf);
  bool sense = true;
  for (int i = 0; i < count && sense; i++)
    sense = try_lane_action(actions[i]);
  end_lane_schedule();
  return sense;
}

static int schedules;

static void explore(const char *conf, int *actions, int count)
{
  for (actions[count] = 0; actions[count] < ACTIONS; actions[count]++) {
    bool sense = run_schedule(conf, actions, count + 1);
    schedules += sense;
    if (m.wrong) {
      char text[64] = "";
      for (int i = 0; i <= count; i++)
        (void)snprintf(text + strlen(text), sizeof text - strlen(text), "%d ", actions[i]);
      ck_abort_msg("memory in use was handed out: schedule %s", text);
    }
    if (sense && count + 1 < BOUND) explore(conf, actions, count + 1);
  }
}

START_TEST(no_schedule_hands_out_memory_in_use)
{
  int actions[16];
  prepare();
  explore(ways[_i], actions, 0);
  ck_assert_int_gt(schedules, BOUND == 3 ? 50 : 300);
}
END_TEST

START_TEST(random_schedules_hand_out_no_memory_in_use)
{
  uint64_t seed = (uint64_t)_i + 1;
  prepare();
  for (int round = 0; round < ROUNDS; round++) {
    begin_lane_schedule(round % 2 ? ways[_i] : "limit_mb:6,soft_limit_mb:4");
    for (int i = 0; i < 40 && m.launched < LAUNCHES - 4; i++)
      (void)try_lane_action((int)(rig_random(&seed) % ACTIONS));
    end_lane_schedule();
    ck_assert(!m.wrong);
  }
}
END_TEST

/* The checker can fail: an allocator told of a wait that was never made hands out memory in use. */
START_TEST(the_checker_sees_a_missing_wait)
{
  if (_i) return;
  prepare();
  begin_lane_schedule(ways[0]);
  (void)do_malloc(1, 1);
  (void)do_free(1);
  pthread_mutex_lock(&r.p->lock);
  epoch_depend(r.lanes[2].heap, r.lanes[1].heap); /* a lie */
  pthread_mutex_unlock(&r.p->lock);
  (void)do_malloc(1, 2);
  ck_assert(run_one_launch(2) && run_one_launch(1) && run_one_launch(1));
  (void)do_free(1);
  end_lane_schedule();
  ck_assert(m.wrong);
}
END_TEST

static weir_status hasty_query(void *self, void *event, bool *complete)
{
  (void)self, (void)event;
  *complete = true;
  return WEIR_OK;
}

START_TEST(the_checker_sees_an_event_that_lies)
{
  if (_i) return;
  prepare();
  r.backend.event_query = hasty_query;
  begin_lane_schedule(ways[0]);
  (void)do_malloc(1, 1);
  (void)do_free(1);
  (void)do_malloc(1, 2);
  ck_assert(run_one_launch(2) && run_one_launch(1) && run_one_launch(1));
  (void)do_free(1);
  end_lane_schedule();
  ck_assert(m.wrong);
}
END_TEST

int main(void)
{
  static const TTest *tests[5];
  tests[0] = no_schedule_hands_out_memory_in_use;
  tests[1] = random_schedules_hand_out_no_memory_in_use;
  tests[2] = the_checker_sees_a_missing_wait;
  tests[3] = the_checker_sees_an_event_that_lies;
  return rig_run("cuda/reuse", tests, 2);
}
