/* event.c: events: marks in streams.
 *
 * Recording an event queues an operation that takes the time; the event then holds a *mark*: which
 * ticket that was. What was recorded before is forgotten, though waits queued on it stand. An event
 * never recorded counts as done (cuEventQuery, cuEventSynchronize) and waits for nothing.
 */
#include "cuda/sim/internal.h"

#include <stdlib.h>

struct mark_op {
  struct sim_op op;
  struct sim_mark *mark;
};

static void mark_unref(struct sim_mark *m)
{
  if (!m || atomic_fetch_sub_explicit(&m->refs, 1, memory_order_acq_rel) != 1) return;
  sim_stream_unref(m->at.stream);
  free(m);
}

static void run_mark(struct sim_op *op, CUstream s)
{
  (void)s;
  atomic_store_explicit(&((struct mark_op *)op)->mark->time_ns, sim_now_ns(), memory_order_release);
}

static void drop_mark(struct sim_op *op)
{
  mark_unref(((struct mark_op *)op)->mark);
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

/* ---- life ---------------------------------------------------------------------------------------
 */

CUresult sim_cuEventCreate(CUevent *event, unsigned int flags)
{
  SIM_NEED_CONTEXT(c);
  const unsigned known = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
  if (!event || flags & ~known) return CUDA_ERROR_INVALID_VALUE;
  if (flags & CU_EVENT_INTERPROCESS)
    return flags & CU_EVENT_DISABLE_TIMING ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
  CUevent e = sim_arena_new(&sim_events);
  if (!e) return CUDA_ERROR_OUT_OF_MEMORY;
  e->flags = flags;
  e->context = c;
  sim_context_ref(c);
  pthread_mutex_init(&e->lock, NULL);
  *event = e;
  return CUDA_SUCCESS;
}

/* "An event may be destroyed before it is complete ... resources released automatically". */
CUresult sim_cuEventDestroy_v2(CUevent e)
{
  NEED_EVENT(e);
  mark_unref(e->mark);
  sim_context_unref(e->context);
  pthread_mutex_destroy(&e->lock);
  sim_arena_free(&sim_events, e);
  return CUDA_SUCCESS;
}

/* ---- recording ----------------------------------------------------------------------------------
 */

CUresult sim_cuEventRecordWithFlags(CUevent e, CUstream stream, unsigned int flags)
{
  NEED_EVENT(e);
  if (flags & ~(unsigned)CU_EVENT_RECORD_EXTERNAL) return CUDA_ERROR_INVALID_VALUE;
  if (flags) return CUDA_ERROR_INVALID_VALUE; /* external: only while a stream is capturing */
  CUstream s;
  CUresult error = sim_stream_find(stream, &s);
  if (error) return error;
  if (s->context != e->context)
    return CUDA_ERROR_INVALID_HANDLE; /* "must be from the same CUcontext" */
  struct mark_op *op = sim_op_new(sizeof *op, run_mark);
  struct sim_mark *m = op ? calloc(1, sizeof *m) : NULL;
  if (!m) {
    free(op);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  atomic_store(&m->refs, 2);
  m->at.stream = s;
  sim_stream_ref(s);
  op->mark = m;
  op->op.drop = drop_mark;
  op->op.always = true;
  error = sim_submit(s, &op->op, SIM_AT_ONCE, &m->at.seq);
  if (error) {
    mark_unref(m);
    return error;
  }
  pthread_mutex_lock(&e->lock);
  struct sim_mark *old = e->mark;
  e->mark = m;
  pthread_mutex_unlock(&e->lock);
  mark_unref(old);
  return CUDA_SUCCESS;
}

CUresult sim_cuEventRecord(CUevent e, CUstream stream)
{
  return sim_cuEventRecordWithFlags(e, stream, 0);
}

/* ---- asking and waiting -------------------------------------------------------------------------
 */

CUresult sim_cuEventQuery(CUevent e)
{
  NEED_EVENT(e);
  struct sim_mark *m = mark_of(e);
  CUresult result =
      !m || sim_is_done(m->at.stream, m->at.seq) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
  CUresult error = (CUresult)atomic_load(&e->context->error);
  mark_unref(m);
  return error ? error : result;
}

CUresult sim_cuEventSynchronize(CUevent e)
{
  NEED_EVENT(e);
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
  CUstream s;
  CUresult error = sim_stream_find(stream, &s);
  if (error) return error;
  struct sim_mark *m = mark_of(e);
  if (m && m->at.stream != s) {
    struct sim_op *op = sim_op_new(sizeof *op, NULL);
    error = op ? sim_op_after(op, m->at.stream, m->at.seq) : CUDA_ERROR_OUT_OF_MEMORY;
    if (!error)
      error = sim_submit(s, op, SIM_AT_ONCE, NULL);
    else if (op)
      sim_op_free(op);
  }
  mark_unref(m);
  return error;
}
