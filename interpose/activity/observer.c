/* observer.c: the life of our client of CUPTI's activity API.
 *
 * It is started in the thread that meets the first context, after the call that made it: nothing
 * of CUPTI is opened before. From then on a thread of ours flushes, reads what is complete and
 * writes it; no callback of CUPTI's does more than take or leave a buffer or write one number.
 *
 * Before 13.2 one client has CUPTI at a time, and later it may want to be alone. Where the program
 * becomes such a one, ours goes away (clients.c): the program's thread asks for it and waits for
 * YIELD_WAIT_NS at most. When the program's client has gone, ours comes back; both are in the
 * trace. From 13.2 on ours subscribes as one of several (session.h) and stays together with those
 * that do too. CUPTI's clock is compared with ours at each reading: the callback that could set it
 * would be the program's too, and some versions give zeros under one.
 *
 * The end: a handler of atexit(), which runs before those of the driver, asks the thread to
 * disable, flush and write, and waits for END_WAIT_NS at most; after that the program ends, and
 * the trace records what is missing. So do one of at_quick_exit(), and _exit; before exec, which
 * may fail, the thread flushes and goes on. Where a signal ends the process, what was done in the
 * last WEIR_OWN_THREAD_NS, from flush to flush, may be missing. A forked child has no thread, and
 * CUPTI's state is not its own: it observes nothing, and its calls into CUPTI are left alone.
 * cuptiFinalize is never called.
 *
 * Once the thread runs, it alone switches and flushes: whatever hangs there, hangs there. */
#include "interpose/activity/observer.h"

#include <errno.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "interpose/activity/buffers.h"
#include "interpose/activity/clients.h"
#include "interpose/activity/records.h"
#include "interpose/process/settings.h"
#include "interpose/process/own_threads.h"
#include "interpose/process/part.h"
#include "interpose/process/process.h"
#include "interpose/process/thread.h"
#include "interpose/process/tools.h"

#define END_WAIT_NS   2000000000 /* at exit */
#define CALL_WAIT_NS  200000000  /* at exit in a call of CUDA's, whose locks the thread may hold */
#define YIELD_WAIT_NS 2000000000

enum tier { TIER_OFF, TIER_COPIES, TIER_ALL };

static struct {
  unsigned tier;          /* as asked for */
  const char *tool;       /* at the start: why ours has no place, or NULL */
  _Atomic bool wanted;    /* in this process: not off, not forked, not given up */
  _Atomic bool begun;     /* the first context was met */
  _Atomic bool running;   /* its thread was started */
  _Atomic bool ending;    /* the process ends */
  _Atomic bool abandoned; /* and has not waited for the thread */
  _Atomic int asking;     /* threads of the program that wait for it to go */
  _Atomic int flushing;   /* and for what there is to be written */
  pid_t pid;              /* of the process that it was begun in */
  sem_t wake, gone, flushed, ended;
  cupti_library cupti;
  cupti_session session;
  _Atomic bool has_shared; /* since clients.c asked last, a session was with others */
  spool_writer pen;        /* of the thread */
  activity_counts counts, written;
  uint64_t lost;         /* records that CUPTI dropped */
  uint64_t lost_written; /* operations that the trace counts as lost */
} observer;

bool observer_is_wanted(void)
{
  return atomic_load_explicit(&observer.wanted, memory_order_relaxed);
}

/* ---- facts for the trace --------------------------------------------------------------------- */

static void write_fact(spool_writer *pen, device_fact fact, uint64_t count, const char *text)
{
  trace_event head = {.start = clock_ticks(),
                      .a = fact,
                      .b = count,
                      .device = WEIR_DEVICE_NONE,
                      .src_device = WEIR_DEVICE_NONE};
  (void)spool_writer_extended(pen, WEIR_EV_DEVICE_FACT, &head, text, strlen(text));
}

/* From a thread of the program's. */
static void write_fact_here(device_fact fact, const char *text)
{
  thread_state *t = &thread_self;
  if (thread_ready(t)) write_fact(&t->writer, fact, 0, text);
}

static void write_observed(spool_writer *pen, const char *warning)
{
  static const char *const what[] = {"", "copies", "copies and kernels"};
  char text[256];
  bool kernels = observer.tier == TIER_ALL && !(observer.cupti.gates & CUPTI_GATE_NO_KERNELS);
  bool shared = atomic_load(&observer.session.place) == SESSION_SHARED;
  (void)snprintf(text, sizeof text, "%s, CUPTI %u%s%s%s", what[kernels ? TIER_ALL : TIER_COPIES],
                 observer.cupti.version, shared ? ", beside other clients" : "",
                 *warning ? "; " : "", warning);
  write_fact(pen, WEIR_DEVICE_FACT_OBSERVED, 0, text);
}

static void write_activity_counts(void)
{
  uint64_t lost = observer.lost + observer.counts.dropped;
  uint64_t untimed = observer.counts.untimed - observer.written.untimed;
  if (lost > observer.lost_written)
    write_fact(&observer.pen, WEIR_DEVICE_FACT_DROPPED, lost - observer.lost_written, "");
  if (untimed) write_fact(&observer.pen, WEIR_DEVICE_FACT_UNTIMED, untimed, "");
  observer.lost_written = lost;
  observer.written = observer.counts;
}

/* ---- CUPTI's callbacks ----------------------------------------------------------------------- */

static void CUPTIAPI request_buffer(uint8_t **buffer, size_t *size, size_t *most_records)
{
  bool must = observer.cupti.gates & CUPTI_GATE_NO_REFUSAL;
  *buffer = observer_is_wanted() ? activity_buffer_take(must) : must ? activity_buffer_map() : NULL;
  *size = *buffer ? ACTIVITY_BUFFER_BYTES : 0;
  *most_records = 0;
}

static void CUPTIAPI complete_buffer(CUcontext context, uint32_t stream, uint8_t *buffer,
                                     size_t size, size_t valid)
{
  (void)context, (void)stream;
  if (!observer_is_wanted()) return;
  activity_buffer_completed(buffer, valid);
  if (valid > size / 2) (void)sem_post(&observer.wake); /* it was full */
}

static void CUPTIAPI request_buffer_v2(uint8_t **buffer, size_t *size, size_t *most, void *info)
{
  (void)info;
  request_buffer(buffer, size, most);
}

static void CUPTIAPI complete_buffer_v2(uint8_t *buffer, size_t size, size_t valid, void *info)
{
  (void)info;
  complete_buffer(NULL, 0, buffer, size, valid);
}

static const session_buffers buffers = {.request = request_buffer,
                                        .complete = complete_buffer,
                                        .request_v2 = request_buffer_v2,
                                        .complete_v2 = complete_buffer_v2};

/* ---- switching ------------------------------------------------------------------------------- */

static session_place place(void)
{
  return (session_place)atomic_load(&observer.session.place);
}

static bool is_observing(void)
{
  return place() == SESSION_ALONE || place() == SESSION_SHARED;
}

bool observer_is_alone(void)
{
  return place() == SESSION_ALONE || place() == SESSION_OPENING;
}

bool observer_has_shared(void)
{
  return atomic_exchange(&observer.has_shared, false);
}

static CUptiResult enable_kinds(void)
{
  static const CUpti_ActivityKind all[] = {CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY2,
                                           CUPTI_ACTIVITY_KIND_MEMSET, CUPTI_ACTIVITY_KIND_OVERHEAD,
                                           CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL};
  unsigned count = observer.tier == TIER_COPIES ? 3 : 5;
  if (observer.cupti.gates & CUPTI_GATE_NO_KERNELS && count == 5) count = 4;
  return session_enable(&observer.session, &buffers, all, count);
}

/* A forced flush would be that of other clients, too. */
static uint32_t flush_flag(bool forced)
{
  bool others = place() == SESSION_SHARED && clients_share();
  return forced && !others ? CUPTI_ACTIVITY_FLAG_FLUSH_FORCED : 0;
}

/* Alone, the place for another client is free first, should the rest hang. With others its handle
 * is needed until all is read: session_close() follows. */
static void stop_observing(void)
{
  bool sharing = place() == SESSION_SHARED;
  uint32_t flag = flush_flag(true);
  if (!sharing) session_close(&observer.session);
  session_disable(&observer.session);
  for (int i = 0; i < 3 && (!i || activity_buffers_out()); i++)
    (void)observer.cupti.cuptiActivityFlushAll(flag);
}

/* Where it fails nothing of it stays. */
static CUptiResult start_observing(void)
{
  const cupti_library *l = &observer.cupti;
  cupti_session *s = &observer.session;
  CUptiResult r = session_open(s, correlate_call, clients_company());
  if (r != CUPTI_SUCCESS) return r;
  if (place() == SESSION_SHARED)
    atomic_store(&observer.has_shared, true);
  else
    clients_note_replaced();
  correlate_enable(l, s->subscriber,
                   observer.tier == TIER_ALL && !(l->gates & CUPTI_GATE_NO_KERNELS));
  r = enable_kinds();
  if (r == CUPTI_SUCCESS) return r;
  stop_observing();
  session_close(s);
  return r;
}

/* False: it is another client's turn. What clients.c may do meanwhile waits for ours to be
 * through. */
static bool may_start(void)
{
  atomic_store(&observer.session.place, SESSION_OPENING);
  if (clients_are_gone()) return true;
  atomic_store(&observer.session.place, SESSION_CLOSED);
  return false;
}

static void write_unavailable(CUptiResult why)
{
  char text[96];
  (void)snprintf(text, sizeof text, "CUPTI answers %d%s", (int)why,
                 why == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED ? ": another tool uses it"
                                                                       : "");
  process_say("device times are not recorded: %s.", text);
  write_fact_here(WEIR_DEVICE_FACT_UNAVAILABLE, text);
}

void observer_wake(void)
{
  if (observer_is_wanted() && atomic_load(&observer.begun)) (void)sem_post(&observer.wake);
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* What to add to CUPTI's times: by the tightest of a few readings. */
static bool compare_clocks(int64_t *offset)
{
  uint64_t tightest = UINT64_MAX;
  for (int i = 0; i < 5; i++) {
    uint64_t theirs = 0, before = clock_monotonic_ns();
    CUptiResult r = session_clock(&observer.session, &theirs);
    uint64_t took = clock_monotonic_ns() - before;
    if (r != CUPTI_SUCCESS || !theirs) return false;
    if (took >= tightest) continue;
    tightest = took;
    *offset = (int64_t)(before + took / 2 - theirs);
  }
  return true;
}

static void read_completed(void)
{
  size_t bytes;
  uint8_t *buffer;
  int64_t offset = 0;
  bool compared = false, known = false;
  while (!atomic_load(&observer.abandoned) && (buffer = activity_buffer_next(&bytes))) {
    if (!compared) known = compare_clocks(&offset);
    compared = true;
    activity_records_read(&observer.session, &observer.pen, buffer, bytes, offset, known,
                          &observer.counts);
    activity_buffer_free(buffer);
  }
  if (!atomic_load(&observer.abandoned)) write_activity_counts();
}

/* Another try follows where it fails: who has CUPTI may be gone then. */
static void come_back(void)
{
  if (may_start() && start_observing() == CUPTI_SUCCESS) write_observed(&observer.pen, "");
}

static void note_lost(void)
{
  size_t lost = 0;
  if (session_dropped(&observer.session, &lost) == CUPTI_SUCCESS) observer.lost += lost;
}

static void end_session(void)
{
  stop_observing();
  note_lost();
  read_completed();
  session_close(&observer.session);
}

/* The program waits in observer_yield(). */
static void go_away(int asking)
{
  if (is_observing()) {
    end_session();
    if (!atomic_load(&observer.abandoned))
      write_fact(&observer.pen, WEIR_DEVICE_FACT_YIELDED, 0, "");
  }
  for (; asking; asking--)
    (void)sem_post(&observer.gone);
}

static void flush_or_switch(bool forced)
{
  int asking = atomic_exchange(&observer.asking, 0);
  if (asking) {
    go_away(asking);
  } else if (is_observing()) {
    (void)observer.cupti.cuptiActivityFlushAll(flush_flag(forced));
    note_lost();
  } else if (!forced) {
    come_back();
  }
}

/* The program waits in observe_exec(). */
static void write_what_there_is(void)
{
  int flushing = atomic_exchange(&observer.flushing, 0);
  flush_or_switch(flushing != 0);
  read_completed();
  for (; flushing; flushing--)
    (void)sem_post(&observer.flushed);
}

static void finish_observing(void)
{
  if (is_observing()) end_session();
  read_completed();
  if (!atomic_load(&observer.abandoned)) write_fact(&observer.pen, WEIR_DEVICE_FACT_ENDED, 0, "");
}

static bool wait_at_most(sem_t *what, int64_t ns)
{
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += (ns + until.tv_nsec) / 1000000000;
  until.tv_nsec = (ns + until.tv_nsec) % 1000000000;
  int failed;
  while ((failed = sem_timedwait(what, &until)) && errno == EINTR)
    continue;
  return !failed;
}

static void run_observer(void)
{
  static const char name[] = "weir device times";
  trace_event head = {
      .start = clock_ticks(), .device = WEIR_DEVICE_NONE, .src_device = WEIR_DEVICE_NONE};
  thread_self.depth = 1; /* CUPTI's own calls into the driver are no events */
  thread_self.outermost = UINTPTR_MAX;
  thread_self.recording_suspended = true;
  (void)spool_writer_extended(&observer.pen, WEIR_EV_THREAD, &head, name, sizeof name - 1);
  while (!atomic_load(&observer.ending)) {
    activity_buffers_prepare();
    bool woken = wait_at_most(&observer.wake, WEIR_OWN_THREAD_NS);
    if (atomic_load(&observer.ending) || (!woken && own_threads_are_alone())) break;
    write_what_there_is();
  }
  finish_observing();
  thread_self.recording_suspended = false; /* it may be the last thread there is, which exits */
  thread_self.outermost = 0;
  thread_self.depth = 0;
  (void)sem_post(&observer.ended);
}

/* ---- the process ----------------------------------------------------------------------------- */

/* The thread hangs in CUPTI: from here on nothing of ours does anything. */
static void abandon_thread(void)
{
  atomic_store(&observer.abandoned, true);
  atomic_store(&observer.wanted, false);
  write_fact_here(WEIR_DEVICE_FACT_INCOMPLETE, "");
}

static bool is_own_thread(void)
{
  return thread_self.outermost == UINTPTR_MAX;
}

void observer_yield(void)
{
  int kept = errno;
  if (!observer_is_wanted() || !atomic_load(&observer.begun) || is_own_thread()) return;
  atomic_fetch_add(&observer.asking, 1);
  (void)sem_post(&observer.wake);
  if (!wait_at_most(&observer.gone, YIELD_WAIT_NS)) abandon_thread();
  errno = kept;
}

/* Whether the thread runs, in this process: a vfork()ed child has its parent's memory. */
static bool is_thread_here(void)
{
  return observer_is_wanted() && atomic_load(&observer.running) && observer.pid == getpid() &&
         !is_own_thread();
}

static int64_t most_wait(void)
{
  return thread_self.depth ? CALL_WAIT_NS : END_WAIT_NS;
}

/* Another end may follow: by _exit in a handler of atexit(). */
static void end_observer(void)
{
  if (!is_thread_here()) return;
  atomic_store(&observer.ending, true);
  (void)sem_post(&observer.wake);
  if (wait_at_most(&observer.ended, most_wait()))
    (void)sem_post(&observer.ended);
  else
    abandon_thread();
}

static void observe_exec(void)
{
  int kept = errno;
  if (is_thread_here()) {
    atomic_fetch_add(&observer.flushing, 1);
    (void)sem_post(&observer.wake);
    (void)wait_at_most(&observer.flushed, most_wait());
  }
  errno = kept;
}

/* Another tool that has the one place there is; NULL: none. WEIR_NVTX_NEXT is what the program's
 * NVTX_INJECTION64_PATH was (nvtx/injection.c). */
static const char *foreign_tool(void)
{
  const char *driver = getenv("CUDA_INJECTION64_PATH"), *next = getenv("WEIR_NVTX_NEXT");
  const char *nvtx = getenv("NVTX_INJECTION64_PATH");
  if (driver && *driver) return "CUDA_INJECTION64_PATH names another tool";
  if ((nvtx && strstr(nvtx, "cupti")) || (next && strstr(next, "cupti")))
    return "NVTX_INJECTION64_PATH names CUPTI";
  return tool_at_start();
}

static void give_up_observing(const char *why)
{
  process_say("device times are not recorded: %s.", why);
  write_fact_here(WEIR_DEVICE_FACT_UNAVAILABLE, why);
  atomic_store(&observer.wanted, false);
}

/* False: CUPTI refuses, and will again; where another tool has it, it may be had later. */
static bool begin_observing(const char *warning)
{
  CUptiResult r = may_start() ? start_observing() : CUPTI_SUCCESS;
  if (is_observing())
    write_observed(&thread_self.writer, warning);
  else if (r == CUPTI_SUCCESS)
    write_fact_here(WEIR_DEVICE_FACT_YIELDED, "");
  else
    write_unavailable(r);
  return r == CUPTI_SUCCESS || r == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
}

/* In the thread that met it, within a call of the program's. */
static void first_context(void)
{
  char why[192];
  static _Atomic bool met;
  if (!observer_is_wanted() || atomic_exchange(&met, true)) return;
  if (observer.tool) {
    give_up_observing(observer.tool);
    return;
  }
  if (!cupti_library_open(&observer.cupti, why, sizeof why)) {
    give_up_observing(why);
    return;
  }
  observer.session.library = &observer.cupti;
  observer.pid = getpid();
  activity_buffers_prepare();
  (void)sem_init(&observer.wake, 0, 0); /* which fail for no value but a large one */
  (void)sem_init(&observer.gone, 0, 0);
  (void)sem_init(&observer.flushed, 0, 0);
  (void)sem_init(&observer.ended, 0, 0);
  atomic_store(&observer.begun, true);
  if (!begin_observing(why)) {
    atomic_store(&observer.wanted, false);
    return;
  }
  if (atexit(end_observer) == 0 && own_thread_start(run_observer)) {
    (void)at_quick_exit(end_observer);
    atomic_store(&observer.running, true);
    return;
  }
  if (is_observing()) stop_observing();
  session_close(&observer.session);
  give_up_observing("its thread cannot be had");
}

static void read_option(void)
{
  static const char *const words[] = {"off", "copies", "all", NULL};
  if (!process_choice_option(&observer.tier, "WEIR_DEVICE_TIMES", words) || !observer.tier) return;
  cupti_library_name();
  observer.tool = foreign_tool();
  atomic_store(&observer.wanted, true);
}

static void forget_in_child(void)
{
  atomic_store(&observer.wanted, false);
  clients_forget();
}

static const process_part part = {.start = read_option,
                                  .context = first_context,
                                  .forked = forget_in_child,
                                  .exits = end_observer,
                                  .execs = observe_exec};
PROCESS_PART(part);
