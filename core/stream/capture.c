/* capture.c: graphs of programs (core/weir/graph.h): a capture of the backend's, and the private
 * pool (core/memory/graph.c) that what is allocated meanwhile comes from.
 *
 * A graph has one use of its pool, from the begin of its capture until it is reset, and the
 * handle's where it made the pool itself. Its parts (capture.h) come during the capture. */
#include "core/stream/capture.h"
#include "core/base/lock.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include "core/stream/async_error.h"
#include "core/backend/plugin.h"
#include "core/stream/stream.h"

struct weir_graph {
  mem_heap *stream;            /* being captured; NULL: none */
  const weir_backend *backend; /* borrowed; of the capture's device */
  void *native;                /* owned; the backend's, ready to be launched; NULL: none */
  weir_graph_pool *pool;       /* NULL: never captured */
  bool own;                    /* the pool's handle is ours */
  graph_part *parts;           /* owned; during the capture: lock */
  struct weir_graph *next;     /* that is being captured: lock */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static weir_graph *capturing;  /* in no order; lock */
static _Atomic unsigned count; /* of those */

/* ---- parts ----------------------------------------------------------------------------------- */

static void link_capture(weir_graph *g)
{
  HOLD_LOCK(&lock);
  g->next = capturing;
  capturing = g;
  atomic_fetch_add(&count, 1);
}

static void unlink_capture(weir_graph *g)
{
  HOLD_LOCK(&lock);
  weir_graph **at = &capturing;
  while (*at != g)
    at = &(*at)->next;
  *at = g->next;
  atomic_fetch_sub(&count, 1);
}

static weir_status part_of_capture(graph_part **out, weir_graph *g, void *key,
                                   weir_status (*make)(graph_part **out, void *key))
{
  for (graph_part *p = g->parts; p; p = p->next)
    if (p->key == key) {
      *out = p;
      return WEIR_OK;
    }
  TRY(make(out, key));
  (*out)->key = key;
  (*out)->next = g->parts;
  g->parts = *out;
  return WEIR_OK;
}

weir_status graph_part_of(graph_part **out, weir_stream *stream, void *key,
                          weir_status (*make)(graph_part **out, void *key))
{
  weir_status st = WEIR_OK;
  *out = NULL;
  if (__builtin_expect(!atomic_load(&count), 1)) return WEIR_OK;
  HOLD_LOCK(&lock);
  mem_heap *leader = graph_leader((mem_heap *)stream);
  for (weir_graph *g = leader ? capturing : NULL; g; g = g->next)
    if (g->stream == leader) {
      st = part_of_capture(out, g, key, make);
      break;
    }
  return st;
}

static void drop_parts(weir_graph *g)
{
  for (graph_part *p = g->parts, *next; p; p = next) {
    next = p->next;
    p->drop(p);
  }
  g->parts = NULL;
}

/* ---- graphs ---------------------------------------------------------------------------------- */

weir_status weir_graph_new(weir_graph **out)
{
  WEIR_REQUIRE(out);
  *out = calloc(1, sizeof **out);
  return *out ? WEIR_OK : fail_memory("a graph");
}

weir_status weir_stream_is_capturing(bool *out, weir_stream *stream)
{
  WEIR_REQUIRE(out);
  mem_heap *h;
  *out = false;
  weir_status st = stream_or_current(&h, stream);
  if (!st) *out = epoch_capturing(h);
  return st;
}

/* The graph's part of the pool is over, and its parts, which have memory of it. */
static weir_status leave_pool(weir_graph *g)
{
  drop_parts(g);
  weir_status st = weir_graph_pool_release(g->pool);
  weir_status own = g->own ? weir_graph_pool_release(g->pool) : WEIR_OK;
  g->pool = NULL;
  return st ? st : own;
}

static weir_status enter_pool(weir_graph *g, mem_heap *h, weir_graph_pool *pool)
{
  weir_status st = WEIR_OK;
  g->own = !pool;
  g->pool = pool;
  if (g->own) st = weir_graph_pool_create(&g->pool, WEIR_CUDA_AT(h->pool->backend->index));
  if (st) return st;
  st = weir_graph_pool_begin(g->pool, (weir_stream *)h);
  if (!st) return WEIR_OK;
  if (g->own) (void)weir_graph_pool_release(g->pool);
  g->pool = NULL;
  return st;
}

static weir_status may_begin(const weir_graph *g, const mem_heap *h)
{
  if (!h->stream)
    return fail_invalid("CUDA graphs must be captured on a non-default stream. (However, after "
                        "capture, it's ok to replay them on the default stream.)");
  if (g->stream) return fail_invalid("the graph is being captured already");
  if (g->native)
    return fail_invalid("This CUDAGraph instance already owns a captured graph. To capture a new "
                        "graph, create a new instance, or reset it.");
  if (!h->pool->backend->capture_begin)
    return fail_unsupported("the %s backend captures no graphs", h->pool->backend->name);
  return WEIR_OK;
}

weir_status weir_graph_capture_begin(weir_graph *graph, weir_graph_pool *pool,
                                     weir_capture_mode mode)
{
  WEIR_REQUIRE(graph);
  mem_heap *h;
  TRY(stream_or_current(&h, NULL));
  TRY(may_begin(graph, h));
  TRY(enter_pool(graph, h, pool));
  const weir_backend *b = h->pool->backend;
  weir_status st = b->capture_begin(b->self, h->stream, mode);
  if (!st) {
    graph->stream = h;
    graph->backend = b;
    link_capture(graph);
    return WEIR_OK;
  }
  (void)weir_graph_pool_end(graph->pool, (weir_stream *)h);
  (void)leave_pool(graph);
  return st;
}

/* The stream allocates as before. */
static weir_status leave_capture(weir_graph *g)
{
  weir_stream *stream = (weir_stream *)g->stream;
  unlink_capture(g);
  g->stream = NULL;
  return weir_graph_pool_end(g->pool, stream);
}

/* The capture ends, with the graph or without; what is refused to the thread goes on. */
static weir_status finish_capture(weir_graph *g)
{
  mem_heap *h = g->stream;
  weir_status st = g->backend->capture_end(g->backend->self, h->stream, &g->native);
  if (st && epoch_capturing(h)) return st;
  weir_status left = leave_capture(g);
  if (!st) return left;
  (void)leave_pool(g);
  return st;
}

weir_status weir_graph_capture_end(weir_graph *graph)
{
  WEIR_REQUIRE(graph);
  mem_heap *h;
  TRY(stream_or_current(&h, NULL));
  if (!graph->stream) return fail_invalid("the graph is not being captured: begin first");
  if (h != graph->stream) return fail_invalid("Capture must end on the same stream it began on.");
  return finish_capture(graph);
}

weir_status weir_graph_replay(weir_graph *graph)
{
  WEIR_OP_ON(graph);
  mem_heap *h;
  if (!graph->native)
    return fail_invalid("Called CUDAGraph::replay without a preceding successful capture.");
  const weir_backend *b = graph->backend;
  weir_status st = weir_current_stream((weir_stream **)&h, WEIR_CUDA_AT(b->index));
  for (graph_part *p = graph->parts; p && !st; p = p->next)
    st = p->replay(p);
  if (st) return st;
  return op_done((weir_stream *)h, "replay", b->graph_launch(b->self, graph->native, h->stream));
}

weir_status weir_graph_memory(weir_graph_pool **out, weir_graph *graph)
{
  WEIR_REQUIRE_OUT(out, graph);
  *out = graph->native ? graph->pool : NULL;
  return *out ? WEIR_OK
              : fail_invalid("Called CUDAGraph::pool() without a preceding successful capture.");
}

weir_status weir_graph_reset(weir_graph *graph)
{
  WEIR_REQUIRE(graph);
  const weir_backend *b = graph->backend;
  if (device_forked()) return WEIR_ECUDA;
  weir_status st = graph->stream ? finish_capture(graph) : WEIR_OK;
  if (graph->stream) return st;
  if (graph->native && (st = b->graph_destroy(b->self, graph->native))) return st;
  graph->native = NULL;
  weir_status left = graph->pool ? leave_pool(graph) : WEIR_OK;
  return st ? st : left;
}

void weir_graph_release(weir_graph *graph)
{
  if (!graph) return;
  (void)weir_graph_reset(graph);
  if (graph->stream && !device_forked()) { /* its capture cannot be ended here: it goes on */
    (void)leave_capture(graph);
    (void)leave_pool(graph);
  }
  free(graph);
}
