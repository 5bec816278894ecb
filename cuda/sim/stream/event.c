/* event.c: events: marks in streams.
 *
 * Recording an event queues an operation that takes the time; the event then holds a *mark*: which
 * ticket that was. What was recorded before is forgotten, though waits queued on it stand. An event
 * never recorded counts as done (cuEventQuery, cuEventSynchronize) and waits for nothing. */
#include "cuda/sim/stream/shared.h"

#include <stdlib.h>

struct mark_op {
  struct sim_op op;
  CUevent event; /* until it has its place */
  struct sim_mark *mark;
  struct sim_shared *shared; /* of an interprocess event, referenced */
  uint64_t number;           /* of this recording there */
};

struct wait_op {
  struct sim_op op;
  struct sim_shared *shared; /* referenced */
  uint64_t number;           /* of the recording to wait for */
};

static void mark_unref(struct sim_mark *m)
{
  if (!m || atomic_fetch_sub_explicit(&m->refs, 1, memory_order_acq_rel) != 1) return;
  if (m->at.stream) sim_stream_unref(m->at.stream);
  free(m);
}

static void run_mark(struct sim_op *op, CUstream s)
{
  struct mark_op *o = (struct mark_op *)op;
  (void)s;
  atomic_store_explicit(&o->mark->time_ns, sim_now_ns(), memory_order_release);
  if (o->shared) sim_shared_reach(o->shared, o->number);
}

static void drop_mark(struct sim_op *op)
{
  mark_unref(((struct mark_op *)op)->mark);
  sim_shared_unref(((struct mark_op *)op)->shared);
}

/* The event's mark, referenced; NULL: never recorded. */
static struct sim_mark *mark_of(CUevent e)
{
  pthread_mutex_lock(&e->lock);
  struct sim_mark *m = e->mark;
  if (m) atomic_fetch_add_explicit(&m->refs, 1, memory_order_relaxed);
  pthread_mutex_unlock(&e->lock);
  return m;
}

#define NEED_EVENT(e)                                                                              \
  if (!sim_arena_has(&sim_events, e)) return CUDA_ERROR_INVALID_HANDLE

/* ---- life ------------------------------------------------------------------------------------ */

CUevent sim_event_new(CUcontext c, unsigned flags)
{
  CUevent e = sim_arena_new(&sim_events);
  if (!e) return NULL;
  e->flags = flags;
  e->context = c;
  sim_context_ref(c);
  pthread_mutex_init(&e->lock, NULL);
  return e;
}

CUresult sim_cuEventCreate(CUevent *event, unsigned int flags)
{
  SIM_NEED_CONTEXT(c);
  const unsigned known = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
  if (!event || flags & ~known) return CUDA_ERROR_INVALID_VALUE;
  bool shared = flags & CU_EVENT_INTERPROCESS;
  if (shared && !(flags & CU_EVENT_DISABLE_TIMING)) return CUDA_ERROR_INVALID_VALUE;
  CUevent e = sim_event_new(c, flags);
  if (e && shared) e->shared = sim_shared_new();
  if (e && shared && !e->shared) {
    sim_cuEventDestroy_v2(e);
    e = NULL;
  }
  if (!e) return CUDA_ERROR_OUT_OF_MEMORY;
  *event = e;
  return CUDA_SUCCESS;
}

/* "An event may be destroyed before it is complete ... resources released automatically". */
CUresult sim_cuEventDestroy_v2(CUevent e)
{
  NEED_EVENT(e);
  mark_unref(e->mark);
  sim_shared_unref(e->shared);
  if (e->taken) sim_capture_ops->forget(e);
  sim_context_unref(e->context);
  pthread_mutex_destroy(&e->lock);
  sim_arena_free(&sim_events, e);
  return CUDA_SUCCESS;
}

/* ---- recording ------------------------------------------------------------------------------- */

/* The op has its place in the stream: from now on the event is this recording. */
static void set_mark(struct sim_op *op, CUstream s)
{
  struct mark_op *o = (struct mark_op *)op;
  if (o->shared) o->number = sim_shared_record(o->shared);
  o->mark->at = (struct sim_ticket){s, op->seq};
  sim_stream_ref(s);
  pthread_mutex_lock(&o->event->lock);
  struct sim_mark *old = o->event->mark;
  o->event->mark = o->mark;
  atomic_fetch_add_explicit(&o->mark->refs, 1, memory_order_relaxed);
  pthread_mutex_unlock(&o->event->lock);
  mark_unref(old);
}

/* A record of an event, for a stream to run; nothing of the event changes until it is queued. */
struct sim_op *sim_record_op(CUevent e, CUresult *error)
{
  *error = sim_arena_has(&sim_events, e) ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_HANDLE;
  if (*error == CUDA_ERROR_INVALID_HANDLE) return NULL;
  struct mark_op *op = sim_op_new(sizeof *op, run_mark);
  struct sim_mark *m = op ? calloc(1, sizeof *m) : NULL;
  if (!m) {
    free(op);
    return NULL;
  }
  atomic_store(&m->refs, 1);
  op->mark = m;
  op->event = e;
  op->shared = e->shared;
  if (e->shared) sim_shared_ref(e->shared);
  op->op.drop = drop_mark;
  op->op.numbered = set_mark;
  op->op.always = true;
  *error = CUDA_SUCCESS;
  return &op->op;
}

CUresult sim_cuEventRecordWithFlags(CUevent e, CUstream stream, unsigned int flags)
{
  NEED_EVENT(e);
  if (flags & ~(unsigned)CU_EVENT_RECORD_EXTERNAL) return CUDA_ERROR_INVALID_VALUE;
  SIM_FIND_STREAM(s, stream);
  if (s->context != e->context)
    return CUDA_ERROR_INVALID_HANDLE; /* "must be from the same CUcontext" */
  if (sim_capturing(s)) return sim_capture_ops->record(s, e, flags != 0);
  if (flags) return CUDA_ERROR_INVALID_VALUE; /* external: only while a stream is capturing */
  error = sim_queue_barred(s);
  if (e->taken) sim_capture_ops->forget(e);
  struct sim_op *op = error ? NULL : sim_record_op(e, &error);
  if (op) sim_spend(e->flags & CU_EVENT_DISABLE_TIMING ? SIM_COST_RECORD : SIM_COST_RECORD_TIME, 0);
  return op ? sim_submit(s, op, SIM_AT_ONCE, NULL) : error;
}

SIM_ENTRY(cuEventRecord, sim_cuEventRecordWithFlags(hEvent, hStream, 0))

/* The stream of the context that has such marks and nothing else, made at the first. */
static CUstream recorder_of(CUcontext c)
{
  pthread_mutex_lock(&c->lock);
  CUstream s = c->recorder;
  pthread_mutex_unlock(&c->lock);
  if (s) return s;
  CUstream made = sim_stream_new(c, CU_STREAM_NON_BLOCKING, 0, true);
  pthread_mutex_lock(&c->lock);
  if (!c->recorder) c->recorder = made;
  s = c->recorder;
  pthread_mutex_unlock(&c->lock);
  if (made && made != s) sim_stream_close(made);
  return s;
}

/* "Captures in hEvent all the activities of the context hCtx at the time of this call." */
CUresult sim_cuCtxRecordEvent(CUcontext c, CUevent e)
{
  NEED_EVENT(e);
  CUresult error = sim_context_check(c);
  if (error) return error;
  if (e->context != c) return CUDA_ERROR_INVALID_HANDLE;
  error = sim_capture_ops->bar_record(c);
  if (error) return error;
  if (e->taken) sim_capture_ops->forget(e);
  CUstream s = recorder_of(c);
  struct sim_op *op = s ? sim_record_op(e, &error) : NULL;
  if (!s) error = CUDA_ERROR_OUT_OF_MEMORY;
  if (op) error = sim_op_after_context(op, c);
  if (op && error) sim_op_free(op);
  return !error ? sim_submit(s, op, SIM_AT_ONCE, NULL) : error;
}

/* ---- asking and waiting ---------------------------------------------------------------------- */

CUresult sim_cuEventQuery(CUevent e)
{
  NEED_EVENT(e);
  CUresult barred = sim_capture_ops->event_barred(e);
  if (barred) return barred;
  struct sim_mark *m = mark_of(e);
  bool done = e->shared ? sim_shared_reached(e->shared, sim_shared_last(e->shared))
                        : !m || sim_is_done(m->at.stream, m->at.seq);
  CUresult result = done ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
  CUresult error = (CUresult)atomic_load(&e->context->error);
  mark_unref(m);
  return error ? error : result;
}

CUresult sim_cuEventSynchronize(CUevent e)
{
  NEED_EVENT(e);
  CUresult barred = sim_capture_ops->event_barred(e);
  if (barred) return barred;
  if (e->shared) {
    sim_shared_wait(e->shared, sim_shared_last(e->shared));
    return (CUresult)atomic_load(&e->context->error);
  }
  struct sim_mark *m = mark_of(e);
  CUresult error = m ? sim_wait(m->at.stream, m->at.seq) : CUDA_SUCCESS;
  mark_unref(m);
  return error;
}

CUresult sim_cuEventElapsedTime_v2(float *ms, CUevent start, CUevent end)
{
  if (!ms) return CUDA_ERROR_INVALID_VALUE;
  NEED_EVENT(start);
  NEED_EVENT(end);
  /* "cuEventRecord has not been called on either event, or DISABLE_TIMING: INVALID_HANDLE"; events
   * of two contexts are not comparable. */
  if (start->taken || end->taken) return CUDA_ERROR_CAPTURED_EVENT;
  if ((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING) return CUDA_ERROR_INVALID_HANDLE;
  if (start->context->device != end->context->device) return CUDA_ERROR_INVALID_HANDLE;
  struct sim_mark *a = mark_of(start), *b = mark_of(end);
  CUresult error = CUDA_SUCCESS;
  if (!a || !b)
    error = CUDA_ERROR_INVALID_HANDLE;
  else if (!sim_is_done(a->at.stream, a->at.seq) || !sim_is_done(b->at.stream, b->at.seq))
    error = CUDA_ERROR_NOT_READY;
  else
    *ms = (float)((double)(int64_t)(atomic_load(&b->time_ns) - atomic_load(&a->time_ns)) / 1e6);
  mark_unref(a);
  mark_unref(b);
  return error;
}

/* The wait is for what the event's last recording captures now, whatever is recorded later; streams
 * and devices may differ. */
CUresult sim_cuStreamWaitEvent(CUstream stream, CUevent e, unsigned int flags)
{
  NEED_EVENT(e);
  if (flags & ~(unsigned)CU_EVENT_WAIT_EXTERNAL) return CUDA_ERROR_INVALID_VALUE;
  SIM_FIND_STREAM(s, stream);
  if (sim_capturing(s) || e->taken) return sim_capture_ops->wait(s, e, flags != 0);
  if (flags) return CUDA_ERROR_INVALID_VALUE; /* external: only while a stream is capturing */
  error = sim_queue_barred(s);
  struct sim_mark *m = error ? NULL : mark_of(e);
  bool wait = e->shared ? !sim_shared_reached(e->shared, sim_shared_last(e->shared))
                        : m && m->at.stream != s;
  mark_unref(m);
  struct sim_op *op = wait && !error ? sim_wait_op(e, &error) : NULL;
  return op ? sim_submit(s, op, e->shared ? SIM_QUEUE : SIM_AT_ONCE, NULL) : error;
}

static void run_shared_wait(struct sim_op *op, CUstream s)
{
  (void)s;
  sim_shared_wait(((struct wait_op *)op)->shared, ((struct wait_op *)op)->number);
}

static void drop_shared_wait(struct sim_op *op)
{
  sim_shared_unref(((struct wait_op *)op)->shared);
}

/* A wait for what another process may have recorded: the stream's worker waits. */
static struct sim_op *shared_wait_op(struct sim_shared *shared)
{
  struct wait_op *op = sim_op_new(sizeof *op, run_shared_wait);
  if (!op) return NULL;
  op->op.drop = drop_shared_wait;
  op->shared = shared;
  op->number = sim_shared_last(shared);
  sim_shared_ref(shared);
  return &op->op;
}

/* A wait for the event's last recording, for a stream to run. */
struct sim_op *sim_wait_op(CUevent e, CUresult *error)
{
  *error = sim_arena_has(&sim_events, e) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
  if (*error) return NULL;
  struct sim_op *op = e->shared ? shared_wait_op(e->shared) : sim_op_new(sizeof *op, NULL);
  struct sim_mark *m = op && !e->shared ? mark_of(e) : NULL;
  if (!op) *error = CUDA_ERROR_OUT_OF_MEMORY;
  if (m) *error = sim_op_after(op, m->at.stream, m->at.seq);
  mark_unref(m);
  if (!*error || !op) return op;
  sim_op_free(op);
  return NULL;
}
