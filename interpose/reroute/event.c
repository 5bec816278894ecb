/* event.c: events that a program makes and ends again and again, kept (REROUTE_EVENTS).
 *
 * An event that is handed out again was recorded in its last life, and is complete. For a query and
 * for a wait it is then as one that was never recorded: done (cuEventQuery: "or if cuEventRecord()
 * has not been called on hEvent"). Two calls could tell them apart: cuEventElapsedTime, and in a
 * stream capture cuStreamWaitEvent. Until it is recorded again such an event is *pristine*, and
 * these two are called with a new event in its place, which was never recorded: what they answer is
 * the driver's word on that.
 *
 * Not kept: events for other processes, those that were recorded while a stream was being captured,
 * for a whole context or by a graph, and those whose work is not complete when their like is asked
 * for. A launch of a graph does not name the events that it records: one that is in such a node
 * counts as recorded at once, and from the first such node on no event is handed out again. */
#include "interpose/reroute/context_cache.h"
#include "interpose/reroute/kept.h"
#include "interpose/reroute/reroute.h"

static kept_objects events;
static _Atomic bool graphs_record; /* a graph was made that records an event */

void kept_event_gone(uint64_t event)
{
  kept_gone(&events, event);
}

void kept_events_context_gone(unsigned number)
{
  kept_context_gone(&events, number);
}

/* ---- made ------------------------------------------------------------------------------------ */

static bool event_is_complete(uint64_t event)
{
  PFN_cuEventQuery_v2000 ask = WEIR_HELPER(cuEventQuery);
  return ask && ask((CUevent)(uintptr_t)event) == CUDA_SUCCESS;
}

/* A kept event of the context; 0: none. */
static uint64_t event_again(unsigned number, unsigned flags)
{
  if (!kept_any(&events) || atomic_load_explicit(&graphs_record, memory_order_relaxed) ||
      !capture_step_begin())
    return 0;
  uint64_t event = kept_again(&events, number, flags, event_is_complete);
  capture_step_end();
  return event;
}

/* How to make one: the original, one of the two. */
typedef struct event_way {
  CUresult (*plain)(CUevent *);
  CUresult (*flagged)(CUevent *, unsigned);
  unsigned flags;
} event_way;

static CUresult make_event(hook_call *c, const event_way *w, CUevent *out)
{
  unsigned number = 0;
  bool mine = out && !(w->flags & ~(unsigned)(CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING)) &&
              kept_possible(c, REROUTE_EVENTS, &number);
  uint64_t event = mine ? event_again(number, w->flags) : 0;
  CUresult r = CUDA_SUCCESS;
  if (event) {
    *out = (CUevent)(uintptr_t)event;
    c->flags |= WEIR_EVF_CACHED;
    return r;
  }
  WEIR_WITH_RELIEF(c, r, 0, w->plain ? w->plain(out) : w->flagged(out, w->flags));
  if (mine && r == CUDA_SUCCESS) kept_made(&events, (uint64_t)(uintptr_t)*out, number, w->flags);
  return r;
}

CUresult reroute_cuEventCreate(hook_call *c, CUresult (*real)(CUevent *, unsigned), CUevent *event,
                               unsigned flags)
{
  return make_event(c, &(event_way){.flagged = real, .flags = flags}, event);
}

cudaError_t reroute_cudaEventCreate(hook_call *c, cudaError_t (*real)(cudaEvent_t *),
                                    cudaEvent_t *event)
{
  return (cudaError_t)make_event(c, &(event_way){.plain = (CUresult(*)(CUevent *))real}, event);
}

CUresult reroute_cuEventDestroy(hook_call *c, CUresult (*real)(CUevent), CUevent event)
{
  uint64_t handle = (uint64_t)(uintptr_t)event;
  bool possible = reroute_may(REROUTE_EVENTS) && !reroute_hands_off();
  switch (kept_any(&events) ? kept_ended(&events, handle, possible) : KEPT_NOT) {
  case KEPT_NOW:
    c->flags |= WEIR_EVF_CACHED;
    return CUDA_SUCCESS;
  case KEPT_TWICE:
    return CUDA_ERROR_INVALID_HANDLE;
  default:
    kept_event_gone(handle);
    return real(event);
  }
}

/* ---- recorded -------------------------------------------------------------------------------- */

static void event_recorded(CUevent event, bool by_stream)
{
  unsigned spoilt = capture_live() || !by_stream ? KEPT_SPOILT : 0;
  (void)kept_mark(&events, (uint64_t)(uintptr_t)event, spoilt, KEPT_PRISTINE);
}

/* An event is in a node of a graph that records it. */
static void event_in_graph(CUevent event)
{
  event_recorded(event, false);
  atomic_store(&graphs_record, true);
}

CUresult reroute_cuEventRecord(hook_call *c, CUresult (*real)(CUevent, CUstream), CUevent event,
                               CUstream stream)
{
  CUresult r;
  WEIR_WITH_RELIEF(c, r, 0, real(event, stream));
  if (r == CUDA_SUCCESS) event_recorded(event, true);
  return r;
}

CUresult reroute_cuEventRecordWithFlags(hook_call *c, CUresult (*real)(CUevent, CUstream, unsigned),
                                        CUevent event, CUstream stream, unsigned flags)
{
  CUresult r;
  WEIR_WITH_RELIEF(c, r, 0, real(event, stream, flags));
  if (r == CUDA_SUCCESS && flags) event_in_graph(event);
  if (r == CUDA_SUCCESS && !flags) event_recorded(event, true);
  return r;
}

CUresult reroute_cuCtxRecordEvent(hook_call *c, CUresult (*real)(CUcontext, CUevent),
                                  CUcontext context, CUevent event)
{
  (void)c;
  CUresult r = real(context, event);
  if (r == CUDA_SUCCESS) event_recorded(event, false);
  return r;
}

CUresult reroute_cuGreenCtxRecordEvent(hook_call *c, CUresult (*real)(CUgreenCtx, CUevent),
                                       CUgreenCtx context, CUevent event)
{
  (void)c;
  CUresult r = real(context, event);
  if (r == CUDA_SUCCESS) event_recorded(event, false);
  return r;
}

/* ---- recorded by graphs ---------------------------------------------------------------------- */

CUresult reroute_cuGraphAddEventRecordNode(
    hook_call *c, CUresult (*real)(CUgraphNode *, CUgraph, const CUgraphNode *, size_t, CUevent),
    CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count, CUevent event)
{
  (void)c;
  CUresult r = real(node, graph, after, count, event);
  if (r == CUDA_SUCCESS) event_in_graph(event);
  return r;
}

static void node_added(CUresult r, const CUgraphNodeParams *p)
{
  if (r == CUDA_SUCCESS && p->type == CU_GRAPH_NODE_TYPE_EVENT_RECORD)
    event_in_graph(p->eventRecord.event);
}

CUresult reroute_cuGraphAddNode(hook_call *c,
                                CUresult (*real)(CUgraphNode *, CUgraph, const CUgraphNode *,
                                                 size_t, CUgraphNodeParams *),
                                CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
                                size_t count, CUgraphNodeParams *params)
{
  CUresult r;
  WEIR_WITH_RELIEF(c, r, 0, real(node, graph, after, count, params));
  node_added(r, params);
  return r;
}

CUresult
reroute_cuGraphAddNode_v2(hook_call *c,
                          CUresult (*real)(CUgraphNode *, CUgraph, const CUgraphNode *,
                                           const CUgraphEdgeData *, size_t, CUgraphNodeParams *),
                          CUgraphNode *node, CUgraph graph, const CUgraphNode *after,
                          const CUgraphEdgeData *edges, size_t count, CUgraphNodeParams *params)
{
  CUresult r;
  WEIR_WITH_RELIEF(c, r, 0, real(node, graph, after, edges, count, params));
  node_added(r, params);
  return r;
}

/* ---- what a pristine one is not asked -------------------------------------------------------- */

/* What stands for an event in a call. */
typedef struct stand_in {
  CUevent event; /* it itself, or one that was never recorded */
  bool made;
} stand_in;

static stand_in stand_in_for(CUevent event)
{
  uint64_t handle = (uint64_t)(uintptr_t)event;
  PFN_cuEventCreate_v2000 make = WEIR_HELPER(cuEventCreate);
  stand_in s = {event, false};
  if (!(kept_bits(&events, handle) & KEPT_PRISTINE)) return s;
  s.made = make && make(&s.event, (unsigned)kept_traits(&events, handle)) == CUDA_SUCCESS;
  if (!s.made) s.event = event;
  return s;
}

static void stand_in_end(const stand_in *s)
{
  PFN_cuEventDestroy_v4000 end = WEIR_HELPER(cuEventDestroy_v2);
  if (s->made && end) (void)end(s->event);
}

CUresult reroute_cuEventElapsedTime(hook_call *c, CUresult (*real)(float *, CUevent, CUevent),
                                    float *ms, CUevent start, CUevent end)
{
  (void)c;
  if (!kept_any(&events)) return real(ms, start, end);
  stand_in a = stand_in_for(start), b = start == end ? a : stand_in_for(end);
  CUresult r = real(ms, a.event, b.event);
  if (start != end) stand_in_end(&b);
  stand_in_end(&a);
  return r;
}

CUresult reroute_cuStreamWaitEvent(hook_call *c, CUresult (*real)(CUstream, CUevent, unsigned),
                                   CUstream stream, CUevent event, unsigned flags)
{
  CUresult r;
  if (flags || !kept_any(&events) || !capture_live()) { /* flags: the event goes into a graph */
    WEIR_WITH_RELIEF(c, r, 0, real(stream, event, flags));
    return r;
  }
  stand_in s = stand_in_for(event);
  r = real(stream, s.event, flags);
  stand_in_end(&s);
  return r;
}
