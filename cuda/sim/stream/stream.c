/* stream.c: the queue of a stream, and in what order operations of several streams run.
 *
 * A stream runs its operations one after the other: number n + 1 begins when `done` is n. Its
 * worker, a thread that starts with the first operation it is needed for, takes them from a queue.
 * Where the stream is idle and the caller would wait anyway (or the work takes no time), the caller
 * runs it itself under the same numbering, so that it makes no difference.
 *
 * All waiting between streams is by tickets taken when the operation is queued, and a ticket always
 * names an operation queued before: no cycle is possible. The legacy default stream's rule (CUDA
 * Driver API, "Stream synchronization behavior") is two kinds of ticket: its operations wait for
 * all queued work of the context's blocking streams, and their later operations wait for it. The
 * per-thread default stream is an ordinary blocking stream. */
#include "cuda/sim/internal.h"

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

_Atomic uint32_t sim_captures;
const struct sim_capture_ops *sim_capture_ops;

static _Atomic uint64_t next_id = 1;

/* ---- life ------------------------------------------------------------------------------------ */

void sim_stream_ref(CUstream s)
{
  atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
}

void sim_stream_unref(CUstream s)
{
  if (atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1) return;
  pthread_mutex_destroy(&s->lock);
  pthread_cond_destroy(&s->work);
  pthread_cond_destroy(&s->progress);
  sim_context_unref(s->context);
  sim_arena_free(&sim_streams, s);
}

CUstream sim_stream_new(CUcontext context, unsigned flags, int priority, bool is_default)
{
  CUstream s = sim_arena_new(&sim_streams);
  if (!s) return NULL;
  atomic_store(&s->refs, 1);
  s->context = context;
  s->flags = flags;
  s->priority = priority;
  s->is_default = is_default;
  s->id = atomic_fetch_add(&next_id, 1);
  pthread_mutex_init(&s->lock, NULL);
  pthread_cond_init(&s->work, NULL);
  pthread_cond_init(&s->progress, NULL);
  sim_context_ref(context);
  pthread_mutex_lock(&context->lock);
  s->next = context->streams;
  s->link = &context->streams;
  if (s->next) s->next->link = &s->next;
  context->streams = s;
  s->listed = true;
  pthread_mutex_unlock(&context->lock);
  sim_watch_resource(.event = WEIR_WATCH_STREAM_CREATED, .context = context, .stream = s);
  return s;
}

static void unlist(CUstream s) /* context.lock held */
{
  if (!s->listed) return;
  *s->link = s->next;
  if (s->next) s->next->link = s->link;
  s->listed = false;
}

/* The handle is dead at once; work that is queued is done all the same (cuStreamDestroy: "the
 * resources associated with the stream will be released automatically once the device has completed
 * all work"). Closing twice is harmless. */
void sim_stream_close(CUstream s)
{
  CUcontext context = s->context;
  sim_watch_resource(.event = WEIR_WATCH_STREAM_ENDS, .context = context, .stream = s);
  if (sim_capturing(s)) sim_capture_ops->stream_ends(s);
  pthread_mutex_lock(&context->lock);
  pthread_mutex_lock(&s->lock);
  bool again = s->closing;
  s->closing = true;
  if (!s->worker) unlist(s);
  pthread_cond_signal(&s->work);
  pthread_mutex_unlock(&s->lock);
  pthread_mutex_unlock(&context->lock);
  if (again) return;
  atomic_store(&s->magic, 0);
  sim_stream_unref(s);
}

/* ---- operations ------------------------------------------------------------------------------ */

void *sim_op_new(size_t bytes, void (*run)(struct sim_op *, CUstream))
{
  struct sim_op *op = calloc(1, bytes);
  if (!op) return NULL;
  op->run = run;
  op->dep = op->near_deps;
  op->dep_room = sizeof op->near_deps / sizeof *op->near_deps;
  uint32_t kinds = sim_watches(UINT32_MAX);
  if (unlikely(kinds)) sim_watch_op(op, kinds);
  return op;
}

void sim_op_free(struct sim_op *op)
{
  for (uint32_t i = 0; i < op->deps; i++)
    sim_stream_unref(op->dep[i].stream);
  if (op->dep != op->near_deps) free(op->dep);
  if (op->drop) op->drop(op);
  free(op);
}

CUresult sim_op_after(struct sim_op *op, CUstream stream, uint64_t seq)
{
  if (sim_is_done(stream, seq)) return CUDA_SUCCESS;
  if (op->deps == op->dep_room) {
    struct sim_ticket *more = malloc(2 * op->dep_room * sizeof *more);
    if (!more) return CUDA_ERROR_OUT_OF_MEMORY;
    memcpy(more, op->dep, op->deps * sizeof *more);
    if (op->dep != op->near_deps) free(op->dep);
    op->dep = more;
    op->dep_room *= 2;
  }
  sim_stream_ref(stream);
  op->dep[op->deps++] = (struct sim_ticket){stream, seq};
  return CUDA_SUCCESS;
}

static bool blocking(CUstream s)
{
  return !(s->flags & CU_STREAM_NON_BLOCKING);
}

static CUresult after_all(struct sim_op *op, CUcontext context, CUstream but, bool only_blocking)
{
  CUresult error = CUDA_SUCCESS;
  for (CUstream s = context->streams; s && !error; s = s->next)
    if (s != but && (!only_blocking || blocking(s))) error = sim_op_after(op, s, s->queued);
  return error;
}

CUresult sim_op_after_context(struct sim_op *op, CUcontext context)
{
  SIM_HOLD(context->lock);
  CUresult error = after_all(op, context, NULL, false);
  if (!error && context->barrier.stream)
    error = sim_op_after(op, context->barrier.stream, context->barrier.seq);
  return error;
}

/* What the default stream's rule and the context's barrier make the op wait for. */
static CUresult implicit_deps(CUstream s, struct sim_op *op)
{
  CUcontext context = s->context;
  CUresult error = CUDA_SUCCESS;
  struct sim_ticket *barrier = &context->barrier;
  if (barrier->stream && sim_is_done(barrier->stream, barrier->seq)) {
    sim_stream_unref(barrier->stream);
    barrier->stream = NULL;
  }
  if (barrier->stream && barrier->stream != s)
    error = sim_op_after(op, barrier->stream, barrier->seq);
  if (error) return error;
  if (s == context->legacy) return after_all(op, context, s, true);
  if (!blocking(s) || !context->legacy) return CUDA_SUCCESS;
  uint64_t legacy = context->legacy->queued;
  if (s->legacy_seen == legacy) return CUDA_SUCCESS;
  error = sim_op_after(op, context->legacy, legacy);
  if (!error) s->legacy_seen = legacy;
  return error;
}

/* ---- the worker ------------------------------------------------------------------------------ */

#define LOOK_NS    200000     /* before a thread sleeps */
#define LOST_NS    500000     /* between two looks: it had no processor */
#define CROWDED_NS 1000000000 /* in which then no thread looks */

static _Atomic uint64_t crowded_until; /* a thread that looked has lost its processor to another */

/* With a card's costs: to wake a thread takes longer than a device takes to begin with what is queued, and than a host that looks
 * takes to see that work is done. Returns once the number is `value` or more, or after a while. Where there are more
 * threads than processors, who looks takes them from who works. */
static void look_for(_Atomic uint64_t *number, uint64_t value)
{
  if (!atomic_load_explicit(&sim_has_card, memory_order_relaxed)) return;
  uint64_t last = sim_now_ns(), end = last + LOOK_NS;
  if (last < atomic_load_explicit(&crowded_until, memory_order_relaxed)) return;
  while (atomic_load_explicit(number, memory_order_acquire) < value && last < end) {
    (void)sched_yield();
    uint64_t now = sim_now_ns();
    if (now - last > LOST_NS) atomic_store(&crowded_until, now + CROWDED_NS);
    last = now;
  }
}

static void wait_ticket(CUstream s, uint64_t seq)
{
  if (sim_is_done(s, seq)) return;
  look_for(&s->done, seq);
  if (sim_is_done(s, seq)) return;
  pthread_mutex_lock(&s->lock);
  if (!s->waiters++) s->awaited = seq;
  while (!sim_is_done(s, seq)) {
    if (seq < s->awaited) s->awaited = seq;
    pthread_cond_wait(&s->progress, &s->lock);
  }
  s->waiters--;
  pthread_mutex_unlock(&s->lock);
}

static void run_stream_op(CUstream s, struct sim_op *op)
{
  if (op->always || !atomic_load(&s->context->error)) sim_run_op(op, s);
}

static void finish_task(CUstream s, uint64_t seq) /* stream.lock held */
{
  atomic_store_explicit(&s->done, seq, memory_order_release);
  if (!s->waiters || seq < s->awaited) return;
  s->awaited = UINT64_MAX; /* who goes on waiting names its own again */
  pthread_cond_broadcast(&s->progress);
}

static void *run_stream(void *argument)
{
  CUstream s = argument;
  sim_thread_start();
  sim_guard_stack();
  pthread_mutex_lock(&s->lock);
  for (;;) {
    if (!s->head && !s->closing) {
      pthread_mutex_unlock(&s->lock);
      look_for(&s->appended, atomic_load(&s->done) + 1);
      pthread_mutex_lock(&s->lock);
    }
    while (!s->head || atomic_load(&s->done) + 1 != s->head->seq) {
      if (!s->head && s->closing) goto end;
      pthread_cond_wait(&s->work, &s->lock);
    }
    struct sim_op *op = s->running = s->head;
    s->head = op->next;
    if (!s->head) s->tail = NULL;
    pthread_mutex_unlock(&s->lock);
    for (uint32_t i = 0; i < op->deps; i++)
      wait_ticket(op->dep[i].stream, op->dep[i].seq);
    run_stream_op(s, op);
    uint64_t seq = op->seq;
    sim_op_free(op);
    pthread_mutex_lock(&s->lock);
    s->running = NULL;
    finish_task(s, seq);
  }
end:
  pthread_mutex_unlock(&s->lock);
  pthread_mutex_lock(&s->context->lock);
  unlist(s);
  pthread_mutex_unlock(&s->context->lock);
  sim_stream_unref(s);
  sim_guard_unstack();
  return NULL;
}

/* Starts the stream's thread. It takes no signal that is the program's business. */
static bool start_worker(CUstream s) /* stream.lock held */
{
  if (s->worker) return true;
  sigset_t all, old;
  sigfillset(&all);
  sigdelset(&all, SIGSEGV);
  sigdelset(&all, SIGBUS);
  sigdelset(&all, SIGFPE);
  sigdelset(&all, SIGILL);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  sim_stream_ref(s);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  pthread_t thread;
  s->worker = pthread_create(&thread, &attributes, run_stream, s) == 0;
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  pthread_attr_destroy(&attributes);
  if (!s->worker) sim_stream_unref(s);
  return s->worker;
}

/* ---- submission ------------------------------------------------------------------------------ */

static bool has_worker(CUstream s)
{
  SIM_HOLD(s->lock);
  bool started = start_worker(s);
  return started;
}

static void append(CUstream s, struct sim_op *first, struct sim_op *last)
{
  pthread_mutex_lock(&s->lock);
  if (s->tail)
    s->tail->next = first;
  else
    s->head = first;
  s->tail = last;
  atomic_store_explicit(&s->appended, last->seq, memory_order_release);
  pthread_cond_signal(&s->work);
  pthread_mutex_unlock(&s->lock);
}

uint64_t sim_queue_room; /* WEIR_SIM_QUEUE; 0: no limit */

/* A queue that is full has room when the operation that many before it is done. */
static void wait_for_room(CUstream s)
{
  uint64_t queued = atomic_load_explicit(&s->queued, memory_order_acquire);
  if (queued >= sim_queue_room) wait_ticket(s, queued - sim_queue_room + 1);
}

CUresult sim_submit(CUstream s, struct sim_op *op, enum sim_how how, uint64_t *ticket)
{
  CUcontext context = s->context;
  CUresult error = sim_queue_barred(s);
  if (sim_queue_room) wait_for_room(s);
  pthread_mutex_lock(&context->lock);
  if (!error) error = implicit_deps(s, op);
  uint64_t seq = op->seq = s->queued + 1;
  bool here = how != SIM_QUEUE && !op->deps && sim_is_done(s, seq - 1);
  if (!error && !here && op->park) error = op->park(op);
  if (!error && !here && !has_worker(s)) error = CUDA_ERROR_OUT_OF_MEMORY;
  if (!error && op->numbered) op->numbered(op, s);
  if (!error && !here) append(s, op, op);
  if (!error) atomic_store_explicit(&s->queued, seq, memory_order_release);
  pthread_mutex_unlock(&context->lock);
  if (error) {
    sim_op_free(op);
    return error;
  }
  if (ticket) *ticket = seq;
  if (!here) return how == SIM_AND_WAIT ? sim_wait(s, seq) : CUDA_SUCCESS;
  run_stream_op(s, op);
  sim_op_free(op);
  pthread_mutex_lock(&s->lock);
  finish_task(s, seq);
  if (s->head) pthread_cond_signal(&s->work);
  pthread_mutex_unlock(&s->lock);
  return how == SIM_AND_WAIT ? (CUresult)atomic_load(&context->error) : CUDA_SUCCESS;
}

static void free_all(struct sim_op *first)
{
  for (struct sim_op *next; first; first = next) {
    next = first->next;
    sim_op_free(first);
  }
}

CUresult sim_submit_all(CUstream s, struct sim_op *first, const struct sim_ticket *after,
                        uint64_t *ticket)
{
  CUcontext context = s->context;
  CUresult error = sim_queue_barred(s);
  pthread_mutex_lock(&context->lock);
  if (!error) error = implicit_deps(s, first);
  if (!error && after->stream) error = sim_op_after(first, after->stream, after->seq);
  if (!error && !has_worker(s)) error = CUDA_ERROR_OUT_OF_MEMORY;
  uint64_t seq = s->queued;
  struct sim_op *last = first;
  for (struct sim_op *op = first; op && !error; op = op->next) {
    op->seq = ++seq;
    last = op;
    if (op->numbered) op->numbered(op, s);
  }
  if (!error) {
    append(s, first, last);
    atomic_store_explicit(&s->queued, seq, memory_order_release);
  }
  pthread_mutex_unlock(&context->lock);
  if (error)
    free_all(first);
  else
    *ticket = seq;
  return error;
}

CUresult sim_wait(CUstream s, uint64_t seq)
{
  wait_ticket(s, seq);
  return (CUresult)atomic_load(&s->context->error);
}

/* ---- waiting for several --------------------------------------------------------------------- */

/* Tickets of the context's busy streams, referenced; *list is freed by the caller. */
static uint32_t busy_tickets(CUcontext context, bool only_blocking, struct sim_ticket **list)
{
  uint32_t n = 0, room = 0;
  *list = NULL;
  SIM_HOLD(context->lock);
  for (CUstream s = context->streams; s; s = s->next) {
    if ((only_blocking && !blocking(s)) || sim_is_done(s, s->queued)) continue;
    if (n == room) {
      room = room ? 2 * room : 8;
      struct sim_ticket *more = realloc(*list, room * sizeof *more);
      if (!more) break;
      *list = more;
    }
    sim_stream_ref(s);
    (*list)[n++] = (struct sim_ticket){s, s->queued};
  }
  return n;
}

static CUresult settle_stream(CUcontext context, bool only_blocking, bool ask)
{
  struct sim_ticket *list;
  uint32_t n = busy_tickets(context, only_blocking, &list);
  for (uint32_t i = 0; i < n; i++) {
    if (!ask) wait_ticket(list[i].stream, list[i].seq);
    sim_stream_unref(list[i].stream);
  }
  free(list);
  CUresult error = (CUresult)atomic_load(&context->error);
  return error ? error : ask && n ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

CUresult sim_context_wait(CUcontext context)
{
  return settle_stream(context, false, false);
}

/* A reference to a context that may be ending; false when it has ended. */
static bool try_ref(CUcontext c)
{
  if (!sim_arena_has(&sim_contexts, c)) return false;
  uint32_t n = atomic_load(&c->refs);
  while (n && !atomic_compare_exchange_weak(&c->refs, &n, n + 1))
    ;
  return n != 0;
}

void sim_wait_all(void)
{
  size_t used = __atomic_load_n(&sim_contexts.used, __ATOMIC_ACQUIRE);
  for (size_t at = 0; at < used; at += sim_contexts.size) {
    CUcontext c = (CUcontext)(void *)(sim_contexts.base + at);
    if (!try_ref(c)) continue;
    sim_context_wait(c);
    sim_context_unref(c);
  }
}

CUresult sim_stream_settle(CUstream s, bool ask)
{
  if (s == s->context->legacy) return settle_stream(s->context, true, ask);
  uint64_t seq = s->queued;
  if (!ask) return sim_wait(s, seq);
  CUresult error = (CUresult)atomic_load(&s->context->error);
  return error ? error : sim_is_done(s, seq) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

/* ---- holds ----------------------------------------------------------------------------------- */

static void hold(struct sim_op *op, CUstream s)
{
  (void)op;
  pthread_mutex_lock(&s->lock);
  uint64_t mine = ++s->holds_met;
  while (s->released < mine && !s->closing)
    pthread_cond_wait(&s->work, &s->lock);
  pthread_mutex_unlock(&s->lock);
}

#define SIM_EXPORT __attribute__((visibility("default")))

/* A control function may be the first call of its thread. */
static CUresult control_stream(void *handle, CUstream *s)
{
  if (!sim_self && !sim_thread_start()) return CUDA_ERROR_OUT_OF_MEMORY;
  if (atomic_load(&sim_gate) & (SIM_GATE_UNINITIALISED | SIM_GATE_FORKED))
    return CUDA_ERROR_NOT_INITIALIZED;
  return sim_stream_find(handle, s);
}

SIM_EXPORT int weir_sim_hold(void *stream)
{
  CUstream s;
  CUresult error = control_stream(stream, &s);
  if (error) return (int)error;
  struct sim_op *op = sim_op_new(sizeof *op, hold);
  if (!op) return CUDA_ERROR_OUT_OF_MEMORY;
  op->always = true;
  pthread_mutex_lock(&s->lock);
  s->holds++;
  pthread_mutex_unlock(&s->lock);
  return (int)sim_submit(s, op, SIM_QUEUE, NULL);
}

SIM_EXPORT int weir_sim_release(void *stream)
{
  CUstream s;
  CUresult error = control_stream(stream, &s);
  if (error) return (int)error;
  pthread_mutex_lock(&s->lock);
  if (s->released < s->holds) {
    s->released++;
    pthread_cond_broadcast(&s->work);
  } else {
    error = CUDA_ERROR_INVALID_VALUE;
  }
  pthread_mutex_unlock(&s->lock);
  return (int)error;
}
