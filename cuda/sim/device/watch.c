/* watch.c: calls, work and resources, reported to the watcher (watch.h). */
#include "cuda/sim/internal.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#define SIM_EXPORT __attribute__((visibility("default")))

_Atomic uint32_t sim_watched_kinds;

static _Atomic(const struct weir_watcher *) the_watcher;
static _Atomic uint32_t correlations; /* handed out so far */

SIM_EXPORT void weir_sim_watch(const struct weir_watcher *watcher, uint32_t what)
{
  if (watcher) atomic_store(&the_watcher, watcher);
  atomic_store(&sim_watched_kinds, atomic_load(&the_watcher) ? what : 0);
}

/* ---- calls ----------------------------------------------------------------------------------- */

static uint32_t next_correlation(void)
{
  uint32_t n = atomic_fetch_add(&correlations, 1) + 1;
  return n ? n : next_correlation();
}

/* The watcher's function runs unwatched. */
static void call_watcher(struct sim_thread *t, void (*f)(struct weir_watch_call *),
                         struct weir_watch_call *c)
{
  t->in_watcher = true;
  f(c);
  t->in_watcher = false;
}

static void call_begins(struct sim_thread *t, struct weir_watch_call *c)
{
  const struct weir_watcher *watcher = atomic_load(&the_watcher);
  CUcontext context = t->current;
  c->context = context;
  c->context_id = context ? (uint32_t)context->id : 0;
  if (!t->correlation) t->correlation = next_correlation();
  c->correlation = t->correlation;
  call_watcher(t, watcher->call_begins, c);
}

bool sim_watch_call_slow(struct sim_watched *w, const char *name, const void *params)
{
  if (!sim_self && !sim_thread_start()) return false;
  struct sim_thread *t = sim_self;
  if (t->in_watcher) return false;
  *w = (struct sim_watched){.outermost = !t->correlation,
                            .calls = atomic_load(&sim_watched_kinds) & WEIR_WATCH_CALLS,
                            .call = {.name = name, .params = params}};
  if (w->calls)
    call_begins(t, &w->call);
  else if (w->outermost)
    t->correlation = next_correlation();
  return true;
}

CUresult sim_watch_call_end(struct sim_watched *w, CUresult result)
{
  struct sim_thread *t = sim_self;
  w->call.result = &result;
  if (w->calls) call_watcher(t, atomic_load(&the_watcher)->call_ends, &w->call);
  w->call.result = NULL;
  if (w->outermost) t->correlation = 0;
  return result;
}

SIM_EXPORT struct weir_watch_call *weir_sim_call_begins(const char *name, const void *params)
{
  if (!atomic_load_explicit(&sim_watched_kinds, memory_order_relaxed)) return NULL;
  if (!sim_self && !sim_thread_start()) return NULL;
  struct sim_thread *t = sim_self;
  if (t->in_watcher || t->correlation) return NULL;
  struct sim_watched *w = calloc(1, sizeof *w);
  if (!w) return NULL;
  w->call.name = name;
  w->call.params = params;
  w->call.runtime = true;
  w->calls = atomic_load(&sim_watched_kinds) & WEIR_WATCH_CALLS;
  t->correlation = next_correlation();
  if (w->calls) call_begins(t, &w->call);
  return &w->call;
}

SIM_EXPORT void weir_sim_call_ends(struct weir_watch_call *call, void *result)
{
  struct sim_watched *w = (struct sim_watched *)(void *)call;
  if (!call) return;
  call->result = result;
  if (w->calls) call_watcher(sim_self, atomic_load(&the_watcher)->call_ends, call);
  sim_self->correlation = 0;
  free(w);
}

/* ---- work ------------------------------------------------------------------------------------ */

void sim_watch_op(struct sim_op *op, uint32_t kinds)
{
  const struct sim_thread *t = sim_self;
  op->watched = kinds;
  op->correlation = t ? t->correlation : 0;
  op->queued_ns = atomic_load(&the_watcher)->now();
}

void sim_op_begins(struct sim_op *op)
{
  if (op->watched) op->began_ns = atomic_load(&the_watcher)->now();
}

static void say_work(const struct weir_watch_work *work)
{
  struct sim_thread *t = sim_self;
  bool before = t->in_watcher;
  t->in_watcher = true;
  atomic_load(&the_watcher)->work(work);
  t->in_watcher = before;
}

void sim_run_watched(struct sim_op *op, CUstream s)
{
  CUcontext context = s->context;
  struct weir_watch_work work = {.correlation = op->correlation,
                                 .queued = op->queued_ns,
                                 .device = (uint32_t)context->device->ordinal,
                                 .context = (uint32_t)context->id,
                                 .stream = (uint32_t)s->id,
                                 .graph = op->graph_id,
                                 .node = op->node_id};
  sim_op_begins(op);
  if (op->run) op->run(op, s);
  work.ended = atomic_load(&the_watcher)->now();
  work.began = op->began_ns;
  op->describe(op, s, &work);
  if (work.kind & op->watched) say_work(&work);
}

static int compare_names(const void *a, const void *b)
{
  return strcmp(a, b);
}

const char *sim_watch_name(const char *name)
{
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  static void *names;
  SIM_HOLD(lock);
  void *found = tfind(name, &names, compare_names);
  char *copy = found ? NULL : strdup(name);
  if (copy && !tsearch(copy, &names, compare_names)) free(copy), copy = NULL;
  return found ? *(const char **)found : copy;
}

/* ---- resources ------------------------------------------------------------------------------- */

void sim_watch_resource_slow(const struct weir_watch_resource *r)
{
  struct sim_thread *t = sim_self;
  if (!t || t->in_watcher) return;
  t->in_watcher = true;
  atomic_load(&the_watcher)->resource(r);
  t->in_watcher = false;
}

SIM_EXPORT uint32_t weir_sim_context_device(void *context, uint32_t *device)
{
  CUcontext c = context ? context : sim_self ? sim_self->current : NULL;
  if (!c || !sim_arena_has(&sim_contexts, c)) return 0;
  if (device) *device = (uint32_t)c->device->ordinal;
  return (uint32_t)c->id;
}

SIM_EXPORT uint32_t weir_sim_context_id(void *context)
{
  return weir_sim_context_device(context, NULL);
}
