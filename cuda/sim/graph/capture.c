/* capture.c: stream capture: operations that become a graph's nodes instead of being queued.
 *
 * A *sequence* (struct sim_capture) begins in one stream, its origin; other streams *join* it by
 * waiting for an event recorded in it. A stream's *place* is the set of nodes its next operation
 * will depend on; an event recorded in a captured stream *takes* that set. An operation that cannot
 * be captured spoils the sequence (it is *invalidated*): everything in it answers
 * STREAM_CAPTURE_INVALIDATED until its origin ends it.
 *
 * What is not allowed, and where it is asked (CUDA Driver API, "cuStreamBeginCapture",
 * "cuThreadExchangeStreamCaptureMode"; CUDA C++ Programming Guide, "Creating a Graph Using Stream
 * Capture", "Prohibited and Unhandled Operations"):
 *
 * - bar(): queueing what no node can be, asking or waiting for a captured stream; the legacy stream
 *   while a blocking stream of its context is captured;
 * - sim_capture_bar_context(): waiting for a context with a captured stream;
 * - event_barred(): asking or waiting for an event recorded in a capture;
 * - unsafe(): "potentially unsafe" calls, by the modes of sequences and threads;
 * - wait_for_event(): an event of another sequence, or of none.
 *
 * What stands below knows of captures by sim_capture_ops alone. */
#include "cuda/sim/graph/graph.h"

#include <stdlib.h>
#include <string.h>

struct sim_capture {
  struct sim_capture *next, **link; /* sequences that have not ended */
  uint32_t refs;                    /* until its end, and what events took of it */
  uint64_t id;
  CUstreamCaptureMode mode;
  CUstreamCaptureStatus status; /* NONE: ended */
  uint64_t thread;              /* that began it */
  CUgraph graph;                /* NULL once it is spoiled or ended */
  bool given;                   /* the graph is the program's: cuStreamBeginCaptureToGraph */
  CUstream origin;
  struct sim_place *places; /* its streams */
  struct sim_nodes orphans; /* last nodes of streams destroyed since; to be joined as theirs were */
};

struct sim_place {
  struct sim_place *next;
  CUstream stream;        /* referenced */
  struct sim_nodes after; /* what its next node depends on */
};

struct sim_taken {
  struct sim_capture *capture; /* referenced */
  struct sim_nodes nodes;
};

static struct sim_capture *live;
static uint64_t next_id = 1;

/* ---- sequences and their streams; sim_graph_lock held ---------------------------------------- */

static void capture_unref(struct sim_capture *c)
{
  if (!--c->refs) free(c);
}

static bool blocking(CUstream s)
{
  return !(s->flags & CU_STREAM_NON_BLOCKING);
}

static CUresult join_capture(struct sim_capture *c, CUstream s, const struct sim_nodes *after)
{
  struct sim_place *p = calloc(1, sizeof *p);
  if (!p || !sim_nodes_copy(&p->after, after)) {
    if (p) sim_nodes_clear(&p->after);
    free(p);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  p->stream = s;
  sim_stream_ref(s);
  p->next = c->places;
  c->places = p;
  s->place = p;
  if (blocking(s)) atomic_fetch_add(&s->context->captures, 1);
  atomic_store(&s->capture, c);
  return CUDA_SUCCESS;
}

static void drop_place(struct sim_capture *c, struct sim_place *p)
{
  struct sim_place **link = &c->places;
  while (*link != p)
    link = &(*link)->next;
  *link = p->next;
  CUstream s = p->stream;
  atomic_store(&s->capture, NULL);
  s->place = NULL;
  if (blocking(s)) atomic_fetch_sub(&s->context->captures, 1);
  sim_nodes_clear(&p->after);
  free(p);
  sim_stream_unref(s);
}

static void drop_graph(struct sim_capture *c)
{
  if (!c->graph) return;
  c->graph->capture = NULL;
  if (!c->given) sim_graph_end(c->graph);
  c->graph = NULL;
}

static CUresult spoil(struct sim_capture *c, CUresult error)
{
  if (c->status == CU_STREAM_CAPTURE_STATUS_ACTIVE) {
    c->status = CU_STREAM_CAPTURE_STATUS_INVALIDATED;
    for (struct sim_place *p = c->places; p; p = p->next)
      sim_nodes_clear(&p->after);
    sim_nodes_clear(&c->orphans);
    drop_graph(c);
  }
  return error;
}

static void close_capture(struct sim_capture *c)
{
  while (c->places)
    drop_place(c, c->places);
  sim_nodes_clear(&c->orphans);
  drop_graph(c);
  c->status = CU_STREAM_CAPTURE_STATUS_NONE;
  *c->link = c->next;
  if (c->next) c->next->link = c->link;
  atomic_fetch_sub(&sim_captures, 1);
  capture_unref(c);
}

static struct sim_capture *capture_of(CUstream s)
{
  return atomic_load(&s->capture);
}

/* ---- what is barred -------------------------------------------------------------------------- */

static CUresult spoil_context(CUcontext context, bool only_blocking, CUresult error)
{
  bool some = false;
  for (struct sim_capture *c = live; c; c = c->next)
    for (struct sim_place *p = c->places; p; p = p->next)
      if (p->stream->context == context && (!only_blocking || blocking(p->stream))) {
        spoil(c, error);
        some = true;
      }
  return some ? error : CUDA_SUCCESS;
}

static CUresult bar(CUstream s)
{
  SIM_GRAPH_HOLD();
  struct sim_capture *c = capture_of(s);
  if (c)
    return c->status == CU_STREAM_CAPTURE_STATUS_ACTIVE
               ? spoil(c, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)
               : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (s != s->context->legacy || !atomic_load(&s->context->captures)) return CUDA_SUCCESS;
  return spoil_context(s->context, true, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
}

/* "If the context passed to hCtx has a stream in the capture mode ... the call will invalidate all
 * the conflicting captures" (cuCtxRecordEvent). */
static CUresult bar_record(CUcontext context)
{
  if (!atomic_load(&sim_captures)) return CUDA_SUCCESS;
  SIM_GRAPH_HOLD();
  return spoil_context(context, false, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

CUresult sim_capture_bar_context(CUcontext context)
{
  CUresult error = bar_record(context);
  return error ? error : sim_unsafe();
}

/* "If the local thread has an ongoing capture sequence that was not initiated with RELAXED, or if
 * any other thread has a concurrent capture sequence initiated with GLOBAL, this thread is
 * prohibited" (mode GLOBAL; THREAD_LOCAL: only the former; RELAXED: neither). */
static CUresult unsafe(void)
{
  CUresult error = CUDA_SUCCESS;
  struct sim_thread *t = sim_self;
  if (t->capture_mode == CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_SUCCESS;
  SIM_GRAPH_HOLD();
  for (struct sim_capture *c = live; c; c = c->next) {
    bool mine = c->thread == t->number && c->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
    bool others = c->thread != t->number && c->mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
                  t->capture_mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    if (mine || others) error = spoil(c, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  }
  return error;
}

static CUresult event_barred(CUevent e)
{
  if (!e->taken) return sim_unsafe();
  SIM_GRAPH_HOLD();
  if (e->taken) spoil(e->taken->capture, CUDA_SUCCESS);
  return CUDA_ERROR_CAPTURED_EVENT;
}

/* A stream that is destroyed ends what it began. One that had joined only leaves: nothing states
 * that it has to live until the end, and NVIDIA's samples destroy such before; its last nodes have
 * to be joined by then all the same ("cudaErrorStreamCaptureUnjoined"). With its context goes what
 * its nodes would run in. */
static void stream_ends(CUstream s)
{
  SIM_GRAPH_HOLD();
  struct sim_capture *c = capture_of(s);
  if (c && c->origin == s) {
    spoil(c, CUDA_SUCCESS);
    close_capture(c);
  } else if (c) {
    if (sim_context_check(s->context) || !sim_nodes_copy(&c->orphans, &s->place->after))
      spoil(c, CUDA_SUCCESS);
    drop_place(c, s->place);
  }
}

/* ---- adding nodes ---------------------------------------------------------------------------- */

static CUresult add_captured(CUstream s, CUgraphNodeParams *params)
{
  SIM_GRAPH_HOLD();
  struct sim_capture *c = capture_of(s);
  if (!c || c->status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
    return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  CUgraphNode n;
  CUresult error = sim_node_add(c->graph, &s->place->after, params, &n);
  if (error) return error;
  sim_nodes_clear(&s->place->after);
  if (!sim_nodes_add(&s->place->after, n)) error = spoil(c, CUDA_ERROR_OUT_OF_MEMORY);
  return error;
}

/* ---- events ---------------------------------------------------------------------------------- */

static void forget_capture(CUevent e)
{
  SIM_GRAPH_HOLD();
  struct sim_taken *t = e->taken;
  e->taken = NULL;
  if (t) {
    sim_nodes_clear(&t->nodes);
    capture_unref(t->capture);
    free(t);
  }
}

static CUresult capture_event(struct sim_capture *c, CUstream s, CUevent e)
{
  struct sim_taken *t = calloc(1, sizeof *t);
  if (!t || !sim_nodes_copy(&t->nodes, &s->place->after)) {
    if (t) sim_nodes_clear(&t->nodes);
    free(t);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  forget_capture(e);
  t->capture = c;
  c->refs++;
  e->taken = t;
  return CUDA_SUCCESS;
}

static CUresult record_node(CUstream s, CUevent e, bool external)
{
  CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD, .eventRecord = {e}};
  if (external) return add_captured(s, &p);
  SIM_GRAPH_HOLD();
  struct sim_capture *c = capture_of(s);
  if (!c || c->status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
    return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  return capture_event(c, s, e);
}

/* A wait for an event that a capture has: the stream joins it, or already is of it. */
static CUresult wait_taken(CUstream s, const struct sim_taken *t)
{
  struct sim_capture *c = t->capture, *mine = capture_of(s);
  if (c->status == CU_STREAM_CAPTURE_STATUS_NONE) {
    if (mine) spoil(mine, CUDA_SUCCESS);
    return CUDA_ERROR_CAPTURED_EVENT; /* nothing will ever reach it */
  }
  if (c->status != CU_STREAM_CAPTURE_STATUS_ACTIVE ||
      (mine && mine->status != CU_STREAM_CAPTURE_STATUS_ACTIVE))
    return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (s == s->context->legacy)
    return spoil(c, atomic_load(&s->context->captures) ? CUDA_ERROR_STREAM_CAPTURE_IMPLICIT
                                                       : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  if (!mine) return join_capture(c, s, &t->nodes);
  if (mine != c) {
    spoil(mine, CUDA_SUCCESS);
    return spoil(c, CUDA_ERROR_STREAM_CAPTURE_MERGE);
  }
  return sim_nodes_copy(&s->place->after, &t->nodes) ? CUDA_SUCCESS
                                                     : spoil(c, CUDA_ERROR_OUT_OF_MEMORY);
}

static CUresult wait_for_event(CUstream s, CUevent e, bool external)
{
  CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_WAIT_EVENT, .eventWait = {e}};
  if (external) return sim_capturing(s) ? add_captured(s, &p) : CUDA_ERROR_INVALID_VALUE;
  SIM_GRAPH_HOLD();
  if (e->taken) return wait_taken(s, e->taken);
  struct sim_capture *c = capture_of(s);
  if (!c || c->status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
    return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  pthread_mutex_lock(&e->lock);
  bool recorded = e->mark != NULL;
  pthread_mutex_unlock(&e->lock);
  /* an event never recorded is waited for by nobody */
  return recorded ? spoil(c, CUDA_ERROR_STREAM_CAPTURE_ISOLATION) : CUDA_SUCCESS;
}

static const struct sim_capture_ops ops = {
    bar,          unsafe,      bar_record, stream_ends, record_node, wait_for_event, forget_capture,
    event_barred, add_captured};

__attribute__((constructor)) static void register_ops(void)
{
  sim_capture_ops = &ops;
}

/* ---- beginning and ending -------------------------------------------------------------------- */

static CUresult start_capture(CUstream s, CUgraph graph, const struct sim_nodes *after,
                              CUstreamCaptureMode mode)
{
  struct sim_capture *c = calloc(1, sizeof *c);
  if (!c) return CUDA_ERROR_OUT_OF_MEMORY;
  *c = (struct sim_capture){.refs = 1,
                            .id = next_id++,
                            .mode = mode,
                            .status = CU_STREAM_CAPTURE_STATUS_ACTIVE,
                            .thread = sim_self->number,
                            .given = graph != NULL,
                            .graph = graph ? graph : sim_graph_new(),
                            .origin = s};
  CUresult error = c->graph ? join_capture(c, s, after) : CUDA_ERROR_OUT_OF_MEMORY;
  if (error) {
    if (c->graph && !c->given) sim_graph_end(c->graph);
    free(c);
    return error;
  }
  c->graph->capture = c;
  c->next = live;
  c->link = &live;
  if (live) live->link = &c->next;
  live = c;
  atomic_fetch_add(&sim_captures, 1);
  return CUDA_SUCCESS;
}

static CUresult may_begin(CUstream s, CUstreamCaptureMode mode)
{
  if ((unsigned)mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
  /* "Capture may not be initiated if stream is CU_STREAM_LEGACY" */
  if (s == s->context->legacy) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  return sim_capturing(s) ? CUDA_ERROR_ILLEGAL_STATE : CUDA_SUCCESS;
}

CUresult sim_cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode)
{
  static const struct sim_nodes none;
  SIM_FIND_STREAM(s, stream);
  SIM_GRAPH_HOLD();
  error = may_begin(s, mode);
  return error ? error : start_capture(s, NULL, &none, mode);
}

SIM_ENTRY(cuStreamBeginCapture, sim_cuStreamBeginCapture_v2(hStream, CU_STREAM_CAPTURE_MODE_GLOBAL))

/* Nodes the program names, of the graph that is captured into. */
static CUresult named_nodes(CUgraph g, const CUgraphNode *list, const CUgraphEdgeData *data,
                            size_t count, struct sim_nodes *out)
{
  static const CUgraphEdgeData plain;
  if (count && !list) return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; i++) {
    if (!sim_node_is(list[i]) || list[i]->graph != g) return CUDA_ERROR_INVALID_VALUE;
    if (data && memcmp(&data[i], &plain, sizeof plain) != 0) return CUDA_ERROR_NOT_SUPPORTED;
    if (!sim_nodes_add(out, list[i])) return CUDA_ERROR_OUT_OF_MEMORY;
  }
  return CUDA_SUCCESS;
}

CUresult sim_cuStreamBeginCaptureToGraph(CUstream stream, CUgraph g, const CUgraphNode *list,
                                         const CUgraphEdgeData *data, size_t count,
                                         CUstreamCaptureMode mode)
{
  struct sim_nodes after = {0};
  SIM_FIND_STREAM(s, stream);
  SIM_GRAPH_HOLD();
  error = may_begin(s, mode);
  if (!error && (!sim_graph_is(g) || g->capture)) error = CUDA_ERROR_INVALID_VALUE;
  if (!error) error = named_nodes(g, list, data, count, &after);
  if (!error) error = start_capture(s, g, &after, mode);
  sim_nodes_clear(&after);
  return error;
}

/* Marks what leads to the nodes that are marked. Nodes come in an order that keeps the edges, but
 * for edges the program added: then it takes more than one walk. */
static bool mark_leading(CUgraph g)
{
  CUgraphNode *all = calloc(g->count + 1, sizeof(void *));
  if (!all) return false;
  uint32_t n = 0;
  for (CUgraphNode node = g->first; node; node = node->next)
    all[n++] = node;
  for (bool more = true; more;) {
    more = false;
    for (uint32_t i = n; i-- > 0;)
      for (size_t d = 0; all[i]->index && d < all[i]->after.count; d++) {
        more |= !all[i]->after.list[d]->index;
        all[i]->after.list[d]->index = 1;
      }
  }
  free(all);
  return true;
}

static bool all_marked(const struct sim_nodes *set)
{
  for (size_t i = 0; i < set->count; i++)
    if (!set->list[i]->index) return false;
  return true;
}

/* Whether every stream's work leads to the origin's, and what destroyed ones left. */
static bool joined_streams(const struct sim_capture *c)
{
  for (CUgraphNode n = c->graph->first; n; n = n->next)
    n->index = 0;
  const struct sim_nodes *last = &c->origin->place->after;
  for (size_t i = 0; i < last->count; i++)
    last->list[i]->index = 1;
  if (!mark_leading(c->graph)) return false;
  for (struct sim_place *p = c->places; p; p = p->next)
    if (!all_marked(&p->after)) return false;
  return all_marked(&c->orphans);
}

static CUresult may_end(const struct sim_capture *c, CUstream s)
{
  if (!c) return CUDA_ERROR_ILLEGAL_STATE;
  if (c->origin != s) return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  if (c->mode != CU_STREAM_CAPTURE_MODE_RELAXED && c->thread != sim_self->number)
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  return CUDA_SUCCESS;
}

CUresult sim_cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
  if (!graph) return CUDA_ERROR_INVALID_VALUE;
  SIM_FIND_STREAM(s, stream);
  *graph = NULL;
  SIM_GRAPH_HOLD();
  struct sim_capture *c = capture_of(s);
  error = may_end(c, s);
  if (error == CUDA_ERROR_STREAM_CAPTURE_UNMATCHED) spoil(c, error);
  if (error) return error;
  if (c->status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
    error = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  else if (!joined_streams(c))
    error = CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
  if (!error) {
    *graph = c->graph;
    c->graph->capture = NULL;
    c->graph = NULL;
  }
  close_capture(c);
  return error;
}

/* ---- asking ---------------------------------------------------------------------------------- */

/* The capture of a stream, for those who ask; the legacy stream during a capture cannot be asked.
 */
static CUresult find_asked(CUstream stream, CUstream *s)
{
  CUresult error = sim_stream_find(stream, s);
  if (error) return error;
  bool barred = *s == (*s)->context->legacy && atomic_load(&(*s)->context->captures);
  return barred ? CUDA_ERROR_STREAM_CAPTURE_IMPLICIT : CUDA_SUCCESS;
}

SIM_ENTRY(cuStreamIsCapturing, sim_cuStreamGetCaptureInfo(hStream, captureStatus, NULL))

CUresult sim_cuStreamGetCaptureInfo_v3(CUstream stream, CUstreamCaptureStatus *status,
                                       cuuint64_t *id, CUgraph *graph, const CUgraphNode **list,
                                       const CUgraphEdgeData **data, size_t *count)
{
  static const CUgraphEdgeData plain[64];
  CUstream s;
  if (!status || (data && !list)) return CUDA_ERROR_INVALID_VALUE;
  CUresult error = find_asked(stream, &s);
  if (error) return error;
  SIM_GRAPH_HOLD();
  struct sim_capture *c = capture_of(s);
  *status = c ? c->status : CU_STREAM_CAPTURE_STATUS_NONE;
  if (*status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return CUDA_SUCCESS;
  if (id) *id = c->id;
  if (graph) *graph = c->graph;
  if (list) *list = s->place->after.list;
  if (data && s->place->after.count <= sizeof plain / sizeof *plain)
    *data = plain;
  else if (data)
    error = CUDA_ERROR_NOT_SUPPORTED; /* more edges than there is data for */
  if (count) *count = s->place->after.count;
  return error;
}

SIM_ENTRY(cuStreamGetCaptureInfo_v2,
          sim_cuStreamGetCaptureInfo_v3(hStream, captureStatus_out, id_out, graph_out,
                                        dependencies_out, NULL, numDependencies_out))
SIM_ENTRY(cuStreamGetCaptureInfo,
          sim_cuStreamGetCaptureInfo_v3(hStream, captureStatus_out, id_out, NULL, NULL, NULL, NULL))

CUresult sim_cuStreamUpdateCaptureDependencies_v2(CUstream stream, CUgraphNode *list,
                                                  const CUgraphEdgeData *data, size_t count,
                                                  unsigned int flags)
{
  CUstream s;
  if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES) return CUDA_ERROR_INVALID_VALUE;
  CUresult error = find_asked(stream, &s);
  if (error) return error;
  SIM_GRAPH_HOLD();
  struct sim_capture *c = capture_of(s);
  if (!c) return CUDA_ERROR_ILLEGAL_STATE;
  if (c->status != CU_STREAM_CAPTURE_STATUS_ACTIVE) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  struct sim_nodes after = {0};
  if (flags != CU_STREAM_SET_CAPTURE_DEPENDENCIES && !sim_nodes_copy(&after, &s->place->after))
    error = CUDA_ERROR_OUT_OF_MEMORY;
  if (!error) error = named_nodes(c->graph, list, data, count, &after);
  if (!error) {
    sim_nodes_clear(&s->place->after);
    s->place->after = after;
  } else {
    sim_nodes_clear(&after);
  }
  return error;
}

SIM_ENTRY(cuStreamUpdateCaptureDependencies,
          sim_cuStreamUpdateCaptureDependencies_v2(hStream, dependencies, NULL, numDependencies,
                                                   flags))

CUresult sim_cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
  if (!mode || (unsigned)*mode > CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_ERROR_INVALID_VALUE;
  CUstreamCaptureMode old = sim_self->capture_mode;
  sim_self->capture_mode = *mode;
  *mode = old;
  return CUDA_SUCCESS;
}
