/* test_tally.c: a tally comes to what the trace of the same spool says: live set, totals, peaks,
 * open ranges; read in one go or in pieces, by one collector or by one after another that is killed
 * at every step of its commits. A state file that was damaged is refused in a sentence, or is only
 * numbers. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "reports/tally/private.h"
#include "tests/reports/beside_trace.h"
#include "tests/reports/random_program.h"
#include "tests/reports/synth.h"

/* ---- a collector ----------------------------------------------------------------------------- */

typedef struct collector {
  spool_reader *reader;
  wr_tally *tally;
} collector;

static collector begin_collector(const char *spool, const wr_tally_options *options)
{
  collector c = {0};
  ck_assert_msg(spool_reader_open(&c.reader, spool, true) == WEIR_OK, "%s", weir_error_message());
  ck_assert_msg(wr_tally_open(&c.tally, c.reader, spool, options) == WEIR_OK, "%s",
                weir_error_message());
  return c;
}

static void collect(const collector *c, bool final)
{
  ck_assert_msg(wr_tally_drain(c->tally, final) == WEIR_OK, "%s", weir_error_message());
}

static void commit(const collector *c)
{
  ck_assert_msg(wr_tally_commit(c->tally) == WEIR_OK, "%s", weir_error_message());
}

static void end_collector(collector *c)
{
  wr_tally_close(c->tally);
  spool_reader_close(c->reader);
}

static const wr_tally_facts *facts_of(const collector *c)
{
  return wr_table_at(&wr_tally_look(c->tally)->facts, 0);
}

enum { WHOLE = BESIDE_TIMES | BESIDE_PEAKS | BESIDE_STACKS };

START_TEST(a_tally_of_a_whole_spool_is_its_trace)
{
  random_program *p = new_program(_i);
  synth_open(synth_dir());
  for (int i = 0; i < 20000; i++)
    random_step(p);
  synth_close();
  const char *one[] = {synth_spool(), NULL};
  const char *trace = synth_import("t.db", one);
  collector c = begin_collector(synth_spool(), NULL);
  collect(&c, true);
  expect_as_trace(c.tally, trace, 1, OPENED, WHOLE);
  ck_assert_uint_eq(facts_of(&c)->events, p->events);
  ck_assert_uint_eq(facts_of(&c)->late, 0);
  ck_assert_int_eq(synth_number(trace, "SELECT count(*) FROM block WHERE how = 3"),
                   (int64_t)facts_of(&c)->replaced);
  ck_assert_int_eq(synth_number(trace, "SELECT count(*) FROM block WHERE how = 4"),
                   (int64_t)facts_of(&c)->unknown_frees);
  ck_assert_int_gt(synth_number(trace, "SELECT count(*) FROM block WHERE how = 5"), 0);
  ck_assert_int_gt(synth_number(trace, "SELECT count(*) FROM block WHERE how = 2"), 0);
  end_collector(&c);
}
END_TEST

/* A second process writes the same into a folder of its own; its trace says what the first one's
 * tally must be. */
static const char *trace_of_the_same(int seed, int steps)
{
  static char folder[PATH_MAX];
  int status;
  (void)snprintf(folder, sizeof folder, "%s/again", synth_dir());
  (void)mkdir(folder, 0700);
  pid_t pid = fork();
  if (!pid) {
    random_program *p = new_program(seed);
    spool_after_fork();
    synth_open(folder);
    for (int i = 0; i < steps; i++)
      random_step(p);
    synth_close();
    const char *one[] = {synth_spool(), NULL};
    (void)synth_import("t.db", one);
    _exit(0);
  }
  ck_assert_int_eq(waitpid(pid, &status, 0), pid);
  ck_assert_int_eq(status, 0);
  (void)snprintf(folder, sizeof folder, "%s/t.db", synth_dir());
  return folder;
}

/* The spool has no room for all: what is committed is handed back, or events are dropped. */
START_TEST(a_tally_that_is_fed_while_the_program_runs_is_the_trace)
{
  enum { STEPS = 30000 };
  const char *trace = trace_of_the_same(_i, STEPS);
  uint64_t turns = (uint64_t)_i + 1;
  synth_open_limited(synth_dir(), UINT64_C(3) << 20);
  random_program *p = new_program(_i);
  collector c = begin_collector(synth_spool(), NULL);
  for (int i = 0; i < STEPS; i++) {
    random_step(p);
    turns = turns * UINT64_C(6364136223846793005) + 1;
    if (turns >> 32 & 255) continue;
    collect(&c, false);
    if (turns >> 40 & 3) commit(&c);
    if (turns >> 42 & 3) continue;
    end_collector(&c);
    c = begin_collector(synth_spool(), NULL);
  }
  synth_close();
  ck_assert_uint_eq(spool_current()->dropped, 0);
  collect(&c, true);
  expect_as_trace(c.tally, trace, 1, OPENED, WHOLE);
  ck_assert_uint_eq(facts_of(&c)->late, 0);
  end_collector(&c);
}
END_TEST

/* ---- killed collectors ----------------------------------------------------------------------- */

typedef struct killing {
  int left; /* steps until the kill */
} killing;

static void kill_at_step(void *context, wr_tally_step step)
{
  killing *k = context;
  (void)step;
  if (!k->left--) (void)raise(SIGKILL);
}

/* A collector in a process of its own, which drains and commits until it is killed at step `left`
 * of its commits. */
static void collect_until_killed(const char *spool, int left, bool final)
{
  int status;
  pid_t pid = fork();
  if (!pid) {
    killing k = {left};
    const wr_tally_options options = {.step = kill_at_step, .step_context = &k};
    collector c = begin_collector(spool, &options);
    for (;;) {
      collect(&c, final);
      commit(&c);
    }
  }
  ck_assert_int_eq(waitpid(pid, &status, 0), pid);
  ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void read_too(void *context)
{
  collect(context, false);
  commit(context);
}

/* The importer hands chunks back while the program writes into few. */
START_TEST(a_tally_in_memory_next_to_an_importer_is_its_trace)
{
  random_program *p = new_program(40 + _i);
  collector c = {0};
  trace_importer *im;
  uint32_t number;
  const importer_options fresh = {.overwrite = true};
  const wr_tally_options options = {.in_memory = true};
  char trace[PATH_MAX], state[PATH_MAX];
  synth_open_limited(synth_dir(), 4 << 20);
  (void)snprintf(trace, sizeof trace, "%s/t.db", synth_dir());
  ck_assert_int_eq(importer_open(&im, trace, &fresh), WEIR_OK);
  ck_assert_int_eq(importer_add(im, synth_spool(), true, &number), WEIR_OK);
  ck_assert_int_eq(spool_reader_open(&c.reader, synth_spool(), false), WEIR_OK);
  ck_assert_int_eq(wr_tally_open(&c.tally, c.reader, synth_spool(), &options), WEIR_OK);
  importer_read_too(im, read_too, &c);
  for (int i = 0; i < 60000; i++) {
    random_step(p);
    if (i % 2000 == 0) ck_assert_int_eq(importer_poll(im, NULL), WEIR_OK);
  }
  ck_assert_uint_gt(importer_events_of(im, number), p->events / 2);
  synth_close();
  collect(&c, true);
  ck_assert_int_eq(importer_end(im, number, WEIR_END_EXIT, 0), WEIR_OK);
  ck_assert_int_eq(importer_finish(im), WEIR_OK);
  importer_close(im);
  ck_assert_int_eq(synth_number(trace, "SELECT sum(dropped) FROM process"), 0);
  expect_as_trace(c.tally, trace, 1, OPENED, BESIDE_TIMES | BESIDE_STACKS);
  ck_assert_uint_eq(facts_of(&c)->events, p->events);
  (void)snprintf(state, sizeof state, "%.*s" WR_TALLY_SUFFIX,
                 (int)(strlen(synth_spool()) - strlen(WEIR_SPOOL_SUFFIX)), synth_spool());
  ck_assert_int_ne(access(state, F_OK), 0);
  end_collector(&c);
}
END_TEST

START_TEST(the_latest_of_what_there_is_is_kept)
{
  static const struct {
    uint8_t fact, device, mem;
    uint64_t a, b, bytes;
  } facts[] = {{WEIR_CACHE_RESERVED, 0, WEIR_MEM_DEVICE, 0, 0, 100},
               {WEIR_CACHE_RESERVED, 0, WEIR_MEM_PINNED, 0, 0, 7},
               {WEIR_CACHE_DEVICE, 1, 0, 0, 30, 90},
               {WEIR_CACHE_POOL, 0, 0, 0x70, 1, 2},
               {WEIR_CACHE_POOL, 0, 0, 0x71, 3, 5},
               {WEIR_CACHE_POOL_ENDED, 0, 0, 0x70, 0, 0},
               {WEIR_CACHE_GIVEN_BACK, 0, 0, 0x72, 0, 9},
               {WEIR_CACHE_RESERVED, 0, WEIR_MEM_DEVICE, 0, 0, 80}};
  uint64_t sum = 0;
  synth_open(synth_dir());
  for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
    ck_assert(synth_event(0, 10 + i, 1,
                          (trace_event){.kind = WEIR_EV_CACHE,
                                        .cache_fact = facts[i].fact,
                                        .device = facts[i].device,
                                        .src_device = WEIR_DEVICE_NONE,
                                        .mem = facts[i].mem,
                                        .a = facts[i].a,
                                        .b = facts[i].b,
                                        .bytes = facts[i].bytes}));
  synth_close();
  collector c = begin_collector(synth_spool(), NULL);
  collect(&c, true);
  const wr_tally_state *s = wr_tally_look(c.tally);
  ck_assert_uint_eq(s->gauge.count, 4);
  for (uint32_t i = 0; i < s->gauge.count; i++)
    sum += ((const wr_tally_gauge *)wr_table_at(&s->gauge, i))->bytes;
  ck_assert_uint_eq(sum, 80 + 7 + 90 + 5);
  end_collector(&c);
}
END_TEST

START_TEST(a_killed_collectors_successor_goes_on_without_loss)
{
  enum { STEPS = 12000, PIECES = 60 };
  const char *trace = trace_of_the_same(_i, STEPS);
  synth_open_limited(synth_dir(), UINT64_C(3) << 20);
  random_program *p = new_program(_i);
  for (int i = 0; i < PIECES; i++) {
    for (int k = 0; k < STEPS / PIECES; k++)
      random_step(p);
    collect_until_killed(synth_spool(), (i * 7 + _i) % 13, false);
  }
  synth_close();
  ck_assert_uint_eq(spool_current()->dropped, 0);
  for (int step = 0; step <= WR_TALLY_DONE; step++)
    collect_until_killed(synth_spool(), step, true);
  collector c = begin_collector(synth_spool(), NULL);
  collect(&c, true);
  expect_as_trace(c.tally, trace, 1, OPENED, WHOLE);
  ck_assert_uint_eq(facts_of(&c)->late, 0);
  end_collector(&c);
}
END_TEST

/* Killed at any instruction, by its parent. */
START_TEST(a_collector_killed_at_any_moment_loses_nothing)
{
  enum { STEPS = 12000, PIECES = 40 };
  const char *trace = trace_of_the_same(_i, STEPS);
  synth_open_limited(synth_dir(), UINT64_C(3) << 20);
  random_program *p = new_program(_i);
  for (int i = 0; i < PIECES; i++) {
    int told[2], status;
    char byte;
    ck_assert_int_eq(pipe(told), 0);
    pid_t pid = fork();
    if (!pid) {
      collector c = begin_collector(synth_spool(), NULL);
      for (;;) {
        collect(&c, false);
        commit(&c);
        ck_assert_int_eq(write(told[1], "", 1), 1);
      }
    }
    close(told[1]);
    for (int k = 0; k < STEPS / PIECES; k++)
      random_step(p);
    ck_assert_int_eq(read(told[0], &byte, 1), 1);
    kill(pid, SIGKILL);
    close(told[0]);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
  }
  synth_close();
  ck_assert_uint_eq(spool_current()->dropped, 0);
  collector c = begin_collector(synth_spool(), NULL);
  collect(&c, true);
  expect_as_trace(c.tally, trace, 1, OPENED, WHOLE & ~BESIDE_PEAKS);
  ck_assert_uint_eq(facts_of(&c)->events, p->events);
  end_collector(&c);
}
END_TEST

/* ---- a recorder ------------------------------------------------------------------------------ */

static bool take_oldest(const collector *c, uint64_t bytes, uint64_t from)
{
  const wr_tally_window window = {bytes, from};
  bool taken = false;
  ck_assert_msg(wr_tally_take_oldest(c->tally, &window, &taken) == WEIR_OK, "%s",
                weir_error_message());
  if (bytes != UINT64_MAX) ck_assert_uint_le(spool_reader_kept(c->reader), bytes);
  return taken;
}

static weir_status note_window(void *context, uint32_t thread, uint32_t tid, const trace_event *e)
{
  uint64_t *oldest = context;
  (void)thread;
  (void)tid;
  oldest[1]++;
  if (e->start < oldest[0]) oldest[0] = e->start;
  return WEIR_OK;
}

/* When the first record began that a state lacks; *records: how many it lacks. */
static uint64_t oldest_in_window(const wr_tally *t, uint64_t *records)
{
  const wr_tally_state *s = wr_tally_look(t);
  uint64_t oldest[2] = {UINT64_MAX, 0};
  const spool_visitor look = {oldest, note_window, NULL};
  spool_reader *r;
  ck_assert_int_eq(spool_reader_open(&r, synth_spool(), false), WEIR_OK);
  for (uint32_t i = 0; i < s->thread.count; i++) {
    const wr_tally_thread *x = wr_table_at(&s->thread, i);
    if (x->position) ck_assert_int_eq(spool_reader_resume(r, x->serial, x->position), WEIR_OK);
  }
  ck_assert_int_eq(spool_drain(r, &look, false), WEIR_OK);
  spool_reader_close(r);
  *records = oldest[1];
  return oldest[0];
}

/* A collector that takes the oldest of what is beyond half a MiB, until it is killed. */
static void record_until_killed(int left)
{
  int status;
  pid_t pid = fork();
  if (!pid) {
    killing k = {left};
    const wr_tally_options options = {.step = kill_at_step, .step_context = &k};
    collector c = begin_collector(synth_spool(), &options);
    for (uint64_t bytes = 1 << 19;; bytes -= 1 << 14) {
      (void)take_oldest(&c, bytes, 0);
      commit(&c);
    }
  }
  ck_assert_int_eq(waitpid(pid, &status, 0), pid);
  ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

START_TEST(a_state_before_its_window_and_the_window_are_the_trace)
{
  enum { STEPS = 30000, PIECES = 60 };
  const char *trace = trace_of_the_same(_i, STEPS);
  synth_open_limited(synth_dir(), UINT64_C(4) << 20);
  random_program *p = new_program(_i);
  for (int i = 0; i < PIECES; i++) {
    for (int k = 0; k < STEPS / PIECES; k++)
      random_step(p);
    record_until_killed((i * 7 + _i) % 13);
  }
  synth_close();
  ck_assert_uint_eq(spool_current()->dropped, 0);
  collector c = begin_collector(synth_spool(), NULL);
  (void)take_oldest(&c, 1 << 19, 0);
  ck_assert_uint_gt(spool_reader_kept(c.reader), 1 << 18);
  collect(&c, true);
  expect_as_trace(c.tally, trace, 1, OPENED, WHOLE);
  ck_assert_uint_eq(facts_of(&c)->late, 0);
  end_collector(&c);
}
END_TEST

START_TEST(a_spool_keeps_its_newest_records_within_a_size)
{
  enum { KEPT = 8 << 20 };
  uint64_t records;
  synth_open(synth_dir());
  random_program *p = new_program(1);
  collector c = begin_collector(synth_spool(), NULL);
  for (int i = 0; i < 250000; i++) {
    random_step(p);
    if (i % 5000) continue;
    if (take_oldest(&c, KEPT, 0)) commit(&c);
    const uint64_t oldest = oldest_in_window(c.tally, &records);
    const uint64_t newest = OPENED + p->at;
    if (!facts_of(&c)->events) continue;
    ck_assert_uint_gt(records * sizeof(trace_event), KEPT / 4);
    ck_assert_uint_gt(oldest, OPENED + p->at * facts_of(&c)->events / p->events / 2);
    ck_assert_uint_lt(oldest, newest);
  }
  ck_assert_uint_gt(facts_of(&c)->events, 0);
  end_collector(&c);
  synth_close();
}
END_TEST

START_TEST(what_began_before_the_window_goes_where_there_is_room_too)
{
  uint64_t records;
  synth_open(synth_dir());
  random_program *p = new_program(2);
  for (int i = 0; i < 20000; i++)
    random_step(p);
  synth_close();
  collector c = begin_collector(synth_spool(), NULL);
  ck_assert(!take_oldest(&c, UINT64_MAX, 0));
  ck_assert_uint_eq(facts_of(&c)->events, 0);
  const uint64_t from = OPENED + p->at / 2;
  ck_assert(take_oldest(&c, UINT64_MAX, from));
  ck_assert(!take_oldest(&c, UINT64_MAX, from));
  ck_assert_int_eq(wr_tally_commit(c.tally), WEIR_OK);
  ck_assert_uint_ge(oldest_in_window(c.tally, &records), from);
  ck_assert_uint_gt(records, 0);
  end_collector(&c);
}
END_TEST

/* A record of more slots, as a stack's, has no time of its own: what comes after it does. */
START_TEST(a_slow_thread_that_records_a_stack_stays_in_the_window)
{
  uint64_t records, frames[2] = {0x400000, 0x400010};
  synth_open(synth_dir());
  for (uint64_t i = 0; i < 200000; i++)
    synth_sync(1, 100 + i * 10, 5, 0);
  ck_assert(synth_stack(2, 1, frames, 2));
  synth_alloc(2, 2000000, 5, 0x10000, 100, 0, WEIR_MEM_DEVICE);
  synth_close();
  collector c = begin_collector(synth_spool(), NULL);
  ck_assert(take_oldest(&c, 4 << 20, 0));
  ck_assert_uint_eq(wr_tally_look(c.tally)->block.count + wr_tally_look(c.tally)->pending.count, 0);
  ck_assert_int_eq(wr_tally_commit(c.tally), WEIR_OK);
  ck_assert_uint_gt(oldest_in_window(c.tally, &records), OPENED + 100000);
  end_collector(&c);
}
END_TEST

/* ---- order ----------------------------------------------------------------------------------- */

/* The free was called before the allocation that got its address, and comes a drain later. */
START_TEST(a_free_that_comes_late_is_of_the_block_before)
{
  synth_open(synth_dir());
  synth_alloc(0, 100, 10, 0x1000, 64, 0, WEIR_MEM_DEVICE);
  synth_alloc(0, 300, 10, 0x1000, 128, 0, WEIR_MEM_DEVICE);
  synth_sync(0, 900, 10, WEIR_SYNC_CONTEXT);
  synth_sync(2, 1000, 10, WEIR_SYNC_CONTEXT);
  collector c = begin_collector(synth_spool(), NULL);
  collect(&c, false);
  ck_assert_uint_eq(facts_of(&c)->replaced, 1);
  synth_free(1, 200, 5000, 0x1000);
  synth_close();
  collect(&c, true);
  const wr_tally_state *s = wr_tally_look(c.tally);
  ck_assert_uint_eq(facts_of(&c)->replaced, 0);
  ck_assert_uint_eq(facts_of(&c)->late, 1);
  ck_assert_uint_eq(s->block.count, 1);
  ck_assert_uint_eq(((wr_tally_block *)wr_table_at(&s->block, 0))->bytes, 128);
  const char *one[] = {synth_spool(), NULL};
  expect_as_trace(c.tally, synth_import("t.db", one), 1, OPENED, WHOLE);
  end_collector(&c);
}
END_TEST

/* What may still be preceded by another thread's waits, and is in the state meanwhile. */
START_TEST(what_waits_survives_its_collector)
{
  synth_open(synth_dir());
  synth_alloc(0, 100, 10, 0x1000, 64, 0, WEIR_MEM_DEVICE);
  collector c = begin_collector(synth_spool(), NULL);
  collect(&c, false);
  ck_assert_uint_eq(wr_tally_look(c.tally)->block.count, 0);
  commit(&c);
  end_collector(&c);
  synth_close();
  c = begin_collector(synth_spool(), NULL);
  collect(&c, true);
  ck_assert_uint_eq(wr_tally_look(c.tally)->block.count, 1);
  end_collector(&c);
}
END_TEST

/* ---- bounds ---------------------------------------------------------------------------------- */

/* The frame, the name and the stack of call n. */
static void put_dictionary(uint64_t n)
{
  const uint64_t frames[] = {0x400000 + n * 16, WEIR_PYTHON_FRAME_FIRST + n, 0x500000};
  struct {
    python_frame_info info;
    char text[8];
  } python = {.info = {.line = 1, .function_bytes = 4, .file_bytes = 3}, .text = "callfil"};
  char name[24];
  (void)snprintf(name, sizeof name, "kernel%u", (unsigned)n);
  ck_assert(synth_extended(0, WEIR_EV_PYTHON_FRAME, frames[1], 0, &python, sizeof python.info + 7));
  ck_assert(synth_extended(0, WEIR_EV_NAME, 0x900000 + n, WEIR_NAME_KERNEL, name, strlen(name)));
  ck_assert(synth_stack(0, (uint32_t)(n + 1) & 0xffffff, frames, 3));
}

/* Each call has a stack and a name of its own; one in a hundred leaves a block. */
static void call_from_everywhere(uint64_t n, uint64_t at)
{
  const bool leaves = n % 100 == 0;
  const trace_event e = {.kind = leaves ? WEIR_EV_ALLOC : WEIR_EV_LAUNCH,
                         .api = synth_api(leaves ? "cuMemAlloc_v2" : "cuLaunchKernel"),
                         .a = leaves ? 0x10000 + n * 256 : 0x900000 + n,
                         .bytes = 10,
                         .stack = (uint32_t)(n + 1) & 0xffffff,
                         .mem = leaves ? WEIR_MEM_DEVICE : 0};
  put_dictionary(n);
  ck_assert(synth_event(0, at, 10, e));
}

START_TEST(what_nothing_needs_goes_and_sums_stay)
{
  enum { CALLS = 20000, BOUND = 300 };
  const wr_tally_options options = {.most_totals = BOUND, .most_names = BOUND, .most_modules = 4};
  synth_open_limited(synth_dir(), UINT64_C(4) << 20);
  collector c = begin_collector(synth_spool(), &options);
  const wr_tally_state *s = wr_tally_look(c.tally);
  off_t most = 0;
  for (uint64_t n = 0; n < CALLS; n++) {
    call_from_everywhere(n, 100 + n * 20);
    if (n % 40) continue;
    const uint64_t base = 0x70000000 + n * 0x1000;
    const module_info gone = {.base = base};
    ck_assert(synth_module(0, base, base, base + 0x1000, "/lib/plugin", "id", 2));
    ck_assert(synth_extended(0, WEIR_EV_MODULE, 0, 0, &gone, sizeof gone));
    collect(&c, false);
    commit(&c);
    const uint32_t needed = s->block.count, fresh = 3 * 40 + 2;
    ck_assert_uint_le(s->total.count, BOUND + fresh);
    ck_assert_uint_le(s->stack.count, BOUND + needed + 2 * fresh);
    ck_assert_uint_le(s->local.count, BOUND + needed + 2 * fresh);
    ck_assert_uint_le(s->python.count, BOUND + needed + 2 * fresh);
    ck_assert_uint_le(s->name.count, BOUND + fresh);
    ck_assert_uint_le(s->module.count, 4 * 4 + 2 + BOUND);
    struct stat file;
    ck_assert_int_eq(stat(c.tally->path, &file), 0);
    const off_t bytes = file.st_size - (off_t)needed * 400; /* what live blocks need */
    if (bytes > most) most = bytes;
  }
  synth_close();
  ck_assert_uint_eq(spool_current()->dropped, 0);
  collect(&c, true);
  uint64_t count = 0;
  for (uint32_t i = 0; i < s->total.count; i++)
    count += ((wr_tally_total *)wr_table_at(&s->total, i))->count;
  ck_assert_uint_eq(count, CALLS);
  ck_assert_uint_eq(s->block.count, CALLS / 100);
  for (uint32_t i = 0; i < s->block.count; i++)
    ck_assert_ptr_nonnull(
        wr_table_find(&s->stack, ((wr_tally_block *)wr_table_at(&s->block, i))->stack));
  ck_assert_uint_gt(facts_of(&c)->forgotten_totals, CALLS / 2);
  ck_assert_uint_gt(facts_of(&c)->forgotten_names, CALLS / 2);
  ck_assert_int_le(most, 1 << 20);
  end_collector(&c);
}
END_TEST

/* A program that writes a stack before its first use, and once more when the tally has asked for
 * it. */
START_TEST(a_stack_that_went_is_asked_for_again)
{
  enum { STACKS = 4000, ROUNDS = 4, BATCH = 40 };
  const wr_tally_options options = {.most_totals = 300};
  uint32_t *id = calloc(STACKS, sizeof *id), last = 0, anew = 0;
  uint64_t at = 100;
  synth_open(synth_dir());
  collector c = begin_collector(synth_spool(), &options);
  for (uint64_t n = 0; n < (uint64_t)STACKS * ROUNDS; n++) {
    const uint64_t frames[] = {0x400000 + n % STACKS * 16, 0x500000};
    const uint32_t now = atomic_load(&spool_steering_now()->stacks_anew);
    if (now != anew) memset(id, 0, STACKS * sizeof *id);
    anew = now;
    if (!id[n % STACKS]) {
      id[n % STACKS] = ++last;
      ck_assert(synth_stack(0, last, frames, 2));
    }
    const trace_event e = {
        .kind = WEIR_EV_LAUNCH, .api = synth_api("cuLaunchKernel"), .stack = id[n % STACKS]};
    ck_assert(synth_event(0, at += 20, 10, e));
    if (n % BATCH) continue;
    collect(&c, false);
    commit(&c);
  }
  synth_close();
  collect(&c, true);
  ck_assert_uint_gt(anew, ROUNDS);
  ck_assert_uint_eq(facts_of(&c)->lost_stacks, 0);
  ck_assert_uint_lt(wr_tally_look(c.tally)->stack.count, STACKS / 4);
  end_collector(&c);
  free(id);
}
END_TEST

START_TEST(what_was_used_since_a_time_is_kept_beyond_the_bounds)
{
  enum { CALLS = 2000, KEPT_FROM = 1000 };
  const wr_tally_options options = {
      .most_totals = 100, .most_names = 100, .keep_from = OPENED + 100 + KEPT_FROM * 20};
  synth_open(synth_dir());
  for (uint64_t n = 0; n < CALLS; n++)
    call_from_everywhere(n, 100 + n * 20);
  synth_close();
  collector c = begin_collector(synth_spool(), &options);
  collect(&c, true);
  commit(&c);
  uint64_t kept = 0;
  const wr_tally_state *s = wr_tally_look(c.tally);
  for (uint32_t i = 0; i < s->total.count; i++) {
    const wr_tally_total *x = wr_table_at(&s->total, i);
    kept += x->stack > WR_STACK_FORGOTTEN && x->last >= options.keep_from;
  }
  ck_assert_uint_eq(kept, CALLS - KEPT_FROM);
  ck_assert_uint_lt(s->total.count, CALLS - KEPT_FROM + 10);
  end_collector(&c);
}
END_TEST

/* ---- state files ----------------------------------------------------------------------------- */

typedef struct state_file {
  char path[PATH_MAX];
  unsigned char *bytes; /* owned */
  size_t count;
} state_file;

static void read_state(state_file *f)
{
  FILE *in = fopen(f->path, "rb");
  struct stat file;
  ck_assert_ptr_nonnull(in);
  ck_assert_int_eq(fstat(fileno(in), &file), 0);
  f->count = (size_t)file.st_size;
  f->bytes = malloc(f->count);
  ck_assert_uint_eq(fread(f->bytes, 1, f->count, in), f->count);
  (void)fclose(in);
}

static void write_state(const state_file *f, const void *bytes, size_t count)
{
  FILE *out = fopen(f->path, "wb");
  ck_assert_ptr_nonnull(out);
  ck_assert_uint_eq(fwrite(bytes, 1, count, out), count);
  (void)fclose(out);
}

/* The state of a program that is half-way, with things of every kind in it, some of which wait. */
static void make_state(state_file *f, int seed)
{
  random_program *p = new_program(seed);
  synth_open(synth_dir());
  for (int i = 0; i < 3000; i++)
    random_step(p);
  collector c = begin_collector(synth_spool(), NULL);
  collect(&c, false);
  commit(&c);
  (void)snprintf(f->path, sizeof f->path, "%s", c.tally->path);
  ck_assert_uint_gt(wr_tally_look(c.tally)->pending.count, 0);
  ck_assert_uint_gt(wr_tally_look(c.tally)->node.count, 0);
  end_collector(&c);
  for (int i = 0; i < 300; i++)
    random_step(p);
  synth_close();
  read_state(f);
}

/* Goes on with what is there, if it may, as far as it goes. */
static weir_status resume_state(void)
{
  spool_reader *r;
  wr_tally *t = NULL;
  const wr_tally_options small = {.most_totals = 5, .most_names = 5, .most_modules = 1};
  ck_assert_int_eq(spool_reader_open(&r, synth_spool(), false), WEIR_OK);
  weir_status st = wr_tally_open(&t, r, synth_spool(), &small);
  if (st) {
    ck_assert_str_ne(weir_error_message(), "");
  } else {
    ck_assert_int_eq(wr_tally_drain(t, true), WEIR_OK);
    ck_assert_int_eq(wr_tally_commit(t), WEIR_OK);
    wr_tally_close(t);
  }
  spool_reader_close(r);
  return st;
}

START_TEST(a_state_that_is_cut_or_changed_is_refused)
{
  state_file f;
  make_state(&f, 1);
  for (size_t i = 0; i < 400; i++) {
    const size_t count = i < 200 ? i : (size_t)synth_below(f.count);
    write_state(&f, f.bytes, count);
    ck_assert_int_eq(resume_state(), WEIR_ECORRUPT);
  }
  for (size_t i = 0; i < 400; i++) {
    const size_t at = i < 200 ? i : (size_t)synth_below(f.count);
    const unsigned char bit = (unsigned char)(1u << synth_below(8));
    f.bytes[at] ^= bit;
    write_state(&f, f.bytes, f.count);
    weir_status st = resume_state();
    ck_assert_msg(st == WEIR_ECORRUPT || st == WEIR_EVERSION, "byte %zu of %zu, bit %u: %d", at,
                  f.count, bit, (int)st);
    f.bytes[at] ^= bit;
  }
  write_state(&f, f.bytes, f.count);
  ck_assert_int_eq(resume_state(), WEIR_OK);
  free(f.bytes);
}
END_TEST

/* The check word is made right, so that each number is looked at for itself. */
START_TEST(a_state_that_was_made_up_does_no_harm)
{
  state_file f;
  int taken = 0;
  make_state(&f, _i);
  unsigned char *damaged = malloc(f.count);
  for (int i = 0; i < 600; i++) {
    memcpy(damaged, f.bytes, f.count);
    for (uint64_t n = 1 + synth_below(6); n--;) {
      const size_t at = 8 + (size_t)synth_below(f.count - 8);
      const uint32_t value = (uint32_t)synth_below(3) ? (uint32_t)synth_below(64) : UINT32_MAX;
      if (at % 3 && at + 4 <= f.count)
        memcpy(damaged + (at & ~(size_t)3), &value, 4);
      else
        damaged[at] = (unsigned char)synth_below(256);
    }
    wr_tally_seal(damaged, f.count);
    write_state(&f, damaged, f.count);
    taken += resume_state() == WEIR_OK;
  }
  ck_assert_int_gt(taken, 50);
  ck_assert_int_lt(taken, 590);
  free(damaged);
  free(f.bytes);
}
END_TEST

START_TEST(what_is_no_state_of_this_process_is_refused)
{
  state_file f;
  make_state(&f, 2);
  const char version = f.bytes[8];
  f.bytes[8] = 9;
  write_state(&f, f.bytes, f.count);
  ck_assert_int_eq(resume_state(), WEIR_EVERSION);
  ck_assert_ptr_nonnull(strstr(weir_error_message(), "version 9"));
  f.bytes[8] = version;
  f.bytes[32] ^= 1; /* the process's start */
  wr_tally_seal(f.bytes, f.count);
  write_state(&f, f.bytes, f.count);
  ck_assert_int_eq(resume_state(), WEIR_ECORRUPT);
  ck_assert_ptr_nonnull(strstr(weir_error_message(), "another process"));
  unlink(f.path);
  ck_assert_int_eq(mkfifo(f.path, 0600), 0);
  ck_assert_int_eq(resume_state(), WEIR_ECORRUPT);
  unlink(f.path);
  ck_assert_int_eq(mkdir(f.path, 0700), 0);
  ck_assert_int_eq(resume_state(), WEIR_ECORRUPT);
  rmdir(f.path);
  ck_assert_int_eq(resume_state(), WEIR_OK); /* none is there: it begins anew */
  free(f.bytes);
}
END_TEST

/* Nobody may write: the state before stays, and chunks stay too, until the next commit. */
START_TEST(a_commit_that_fails_leaves_the_state_and_the_chunks)
{
  random_program *p = new_program(3);
  const char *trace = trace_of_the_same(3, 4000);
  p = new_program(3);
  synth_open(synth_dir());
  for (int i = 0; i < 2000; i++)
    random_step(p);
  collector c = begin_collector(synth_spool(), NULL);
  collect(&c, false);
  commit(&c);
  ck_assert_int_eq(mkdir(c.tally->fresh, 0700), 0);
  for (int i = 0; i < 2000; i++)
    random_step(p);
  collect(&c, false);
  ck_assert_int_eq(wr_tally_commit(c.tally), WEIR_EIO);
  if (_i) {
    end_collector(&c);
    c = begin_collector(synth_spool(), NULL);
  }
  synth_close();
  collect(&c, true);
  ck_assert_int_eq(rmdir(c.tally->fresh), 0);
  commit(&c);
  expect_as_trace(c.tally, trace, 1, OPENED, WHOLE);
  end_collector(&c);
}
END_TEST

/* ---- what is on the way of every event ------------------------------------------------------- */

/* What the file that has a line of nm's calls, and may not. */
static bool allocates(const char *line)
{
  static const char *const never[] = {"alloc", "mmap", "_room"};
  bool does = false;
  for (size_t i = 0; i < sizeof never / sizeof *never; i++)
    does = does || strstr(line, never[i]) != NULL;
  return does && !strstr(line, "__asan"); /* a sanitizer's own */
}

START_TEST(no_event_allocates)
{
  static const char *const files[] = {"take", "find", "ranges"};
  const char *build = getenv("WEIR_BUILD");
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
    char command[PATH_MAX + 64], line[512];
    (void)snprintf(command, sizeof command, "nm -u '%s/obj/reports/tally/%s.o'",
                   build ? build : "build", files[i]);
    FILE *in = popen(command, "r");
    ck_assert_ptr_nonnull(in);
    while (fgets(line, sizeof line, in))
      ck_assert_msg(!allocates(line), "%s.c uses%s", files[i], line);
    ck_assert_int_eq(pclose(in), 0);
  }
}
END_TEST

int main(void)
{
  Suite *s = suite_create("reports/tally");
  TCase *t = tcase_create("tally");
  tcase_set_timeout(t, 0);
  tcase_add_checked_fixture(t, NULL, synth_clean);
  tcase_add_loop_test(t, a_tally_of_a_whole_spool_is_its_trace, 0, 10);
  tcase_add_loop_test(t, a_tally_that_is_fed_while_the_program_runs_is_the_trace, 0, 4);
  tcase_add_loop_test(t, a_tally_in_memory_next_to_an_importer_is_its_trace, 0, 4);
  tcase_add_test(t, the_latest_of_what_there_is_is_kept);
  tcase_add_loop_test(t, a_killed_collectors_successor_goes_on_without_loss, 0, 2);
  tcase_add_loop_test(t, a_collector_killed_at_any_moment_loses_nothing, 0, 2);
  tcase_add_loop_test(t, a_state_before_its_window_and_the_window_are_the_trace, 0, 2);
  tcase_add_test(t, a_spool_keeps_its_newest_records_within_a_size);
  tcase_add_test(t, what_began_before_the_window_goes_where_there_is_room_too);
  tcase_add_test(t, a_slow_thread_that_records_a_stack_stays_in_the_window);
  tcase_add_test(t, a_free_that_comes_late_is_of_the_block_before);
  tcase_add_test(t, what_waits_survives_its_collector);
  tcase_add_test(t, what_nothing_needs_goes_and_sums_stay);
  tcase_add_test(t, a_stack_that_went_is_asked_for_again);
  tcase_add_test(t, what_was_used_since_a_time_is_kept_beyond_the_bounds);
  tcase_add_test(t, a_state_that_is_cut_or_changed_is_refused);
  tcase_add_loop_test(t, a_state_that_was_made_up_does_no_harm, 0, 2);
  tcase_add_test(t, what_is_no_state_of_this_process_is_refused);
  tcase_add_loop_test(t, a_commit_that_fails_leaves_the_state_and_the_chunks, 0, 2);
  tcase_add_test(t, no_event_allocates);
  suite_add_tcase(s, t);
  SRunner *r = srunner_create(s);
  srunner_run_all(r, CK_ENV);
  int failed = srunner_ntests_failed(r);
  srunner_free(r);
  return failed != 0;
}
