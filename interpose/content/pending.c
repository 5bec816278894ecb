/* pending.c: see pending.h. */
#include "interpose/content/pending.h"

#include <pthread.h>
#include "core/base/fork.h"
#include "interpose/record/captures.h"
#include "interpose/record/context.h"
#include "interpose/record/copy_sites.h"

enum { MOST_WORK = 1024, EVENT_OBJECTS = 4096 };

typedef struct pending_work {
  uint64_t number;       /* of a copy: that it was announced as; 0: a writer */
  unsigned site;         /* of a copy (record/copy_sites.h) */
  bool print;            /* of a copy: as content_hash() has it */
  content_region region; /* of a copy */
  uint64_t dst, src;     /* as in its event */
  uint64_t stream;
  uint64_t order;             /* place among all work and records of event objects */
  const thread_state *thread; /* that asked for it */
  unsigned context;           /* its stream's, by number; 0: not known */
  bool apart;                 /* the legacy stream and this one do not wait for each other */
} pending_work;

typedef struct recorded_event {
  uint64_t handle, stream, order;
  const thread_state *thread;
  unsigned context;
} recorded_event;

/* What a wait waits for. */
typedef struct awaited {
  uint64_t stream, limit; /* work of an order below this */
  const thread_state *thread;
  unsigned context;
  bool whole;   /* all streams of the context */
  bool unknown; /* an event object whose record was not seen: it may be in any stream */
} awaited;

static FORK_STATE struct {
  pthread_mutex_t lock;
  _Atomic unsigned count;  /* of work; read without the lock too */
  bool overflowed;         /* a writer found no room: from then on one may always be under way */
  uint64_t order, numbers; /* the last ones */
  uint64_t waited,
      legacy; /* order of the last link by a stream's wait, by work in the legacy one */
} pending = {.lock = PTHREAD_MUTEX_INITIALIZER};

static pending_work work[MOST_WORK];
static recorded_event recorded[EVENT_OBJECTS]; /* by a hash of the handle; a newer one replaces */

static bool is_idle(void)
{
  return atomic_load_explicit(&pending.count, memory_order_acquire) == 0;
}

static uint64_t span_of(const content_region *r)
{
  return (r->height - 1) * r->pitch + r->width;
}

static bool overlaps(const content_region *r, uint64_t at, uint64_t bytes)
{
  return r->at < at + bytes && at < r->at + span_of(r);
}

static void set_count(unsigned count)
{
  atomic_store_explicit(&pending.count, count, memory_order_release);
  atomic_store_explicit(&event_watch_all, count, memory_order_relaxed);
}

static void forget_pending(unsigned i)
{
  unsigned last = atomic_load_explicit(&pending.count, memory_order_relaxed) - 1;
  work[i] = work[last];
  set_count(last);
}

/* A copy that will not be hashed, and may still be under way. */
static void give_up_hash(thread_state *t, unsigned i, hash_outcome why)
{
  const pending_work *p = &work[i];
  const copy_hash_info info = {.dst = p->dst, .src = p->src};
  if (p->number) content_write(t, p->number, 0, why, &info, false);
  if (p->number && why != WEIR_HASH_GONE)
    copy_goes_unseen(p->site, p->region.at, span_of(&p->region));
  forget_pending(i);
}

static void end_work(thread_state *t, unsigned i)
{
  const pending_work *p = &work[i];
  if (p->number) {
    const content_copy copy = {p->number, 0, p->dst, p->src, p->site, false, p->print};
    content_hash(t, &copy, &p->region);
  }
  forget_pending(i);
}

/* The context that the stream is of, by number; 0: not known. */
static unsigned stream_context(const event_fields *e)
{
  PFN_cuStreamGetCtx_v9020 ask = WEIR_HELPER(cuStreamGetCtx);
  CUcontext of = NULL;
  if (e->stream <= WEIR_STREAM_PER_THREAD || !context_many_devices()) return e->context;
  if (!ask || !capture_step_begin()) return 0;
  CUresult r = ask((CUstream)(uintptr_t)e->stream, &of);
  capture_step_end();
  return r == CUDA_SUCCESS ? context_number((uint64_t)(uintptr_t)of) : 0;
}

static bool stream_is_apart(uint64_t stream)
{
  PFN_cuStreamGetFlags_v5050 ask = WEIR_HELPER(cuStreamGetFlags);
  unsigned flags = 0;
  if (stream <= WEIR_STREAM_PER_THREAD || !ask) return false;
  return ask((CUstream)(uintptr_t)stream, &flags) == CUDA_SUCCESS && flags & CU_STREAM_NON_BLOCKING;
}

/* Under the lock. False: there is no room. */
static bool add_pending_work(const hook_call *c, const event_fields *e, pending_work w)
{
  unsigned at = atomic_load_explicit(&pending.count, memory_order_relaxed);
  if (at == MOST_WORK) return false;
  w.stream = e->stream;
  w.order = ++pending.order;
  w.thread = c->thread;
  w.context = stream_context(e);
  w.apart = stream_is_apart(e->stream);
  work[at] = w;
  set_count(at + 1);
  return true;
}

bool pending_copy(const hook_call *c, const event_fields *e, const content_region *region,
                  unsigned site, bool print)
{
  const copy_hash_info info = {.dst = e->a, .src = e->b};
  pthread_mutex_lock(&pending.lock);
  pending_work w = {.number = pending.numbers + 1,
                    .site = site,
                    .print = print,
                    .region = *region,
                    .dst = e->a,
                    .src = e->b};
  bool kept = add_pending_work(c, e, w);
  if (kept) pending.numbers++;
  pthread_mutex_unlock(&pending.lock);
  content_write(c->thread, kept ? w.number : 0, c->start,
                kept ? WEIR_HASH_PENDING : WEIR_HASH_TOO_MANY, &info, false);
  return kept;
}

/* The writer of the event's stream that is kept; NULL: none. */
static pending_work *writer_in_stream(const hook_call *c, const event_fields *e)
{
  bool relative = e->stream <= WEIR_STREAM_PER_THREAD;
  for (unsigned i = atomic_load(&pending.count); i-- > 0;) {
    pending_work *p = &work[i];
    if (p->number || p->stream != e->stream) continue;
    if (!relative || (p->thread == c->thread && p->context == e->context)) return p;
  }
  return NULL;
}

/* What it writes is not known, so no copy's memory is known to stay as the copy leaves it. */
void pending_writer(const hook_call *c, const event_fields *e)
{
  pthread_mutex_lock(&pending.lock);
  for (unsigned i = atomic_load(&pending.count); i-- > 0;)
    if (work[i].number) give_up_hash(c->thread, i, WEIR_HASH_UNORDERED);
  pending_work *before = writer_in_stream(c, e);
  if (before)
    before->order = ++pending.order;
  else if (!add_pending_work(c, e, (pending_work){.number = 0}))
    pending.overflowed = true;
  pthread_mutex_unlock(&pending.lock);
}

bool pending_may_write(const content_region *region)
{
  uint64_t span = span_of(region);
  pthread_mutex_lock(&pending.lock);
  bool may = pending.overflowed || copy_unseen_may_write(region->at, span);
  for (unsigned i = atomic_load(&pending.count); !may && i-- > 0;)
    may = !work[i].number || overlaps(&work[i].region, region->at, span);
  pthread_mutex_unlock(&pending.lock);
  return may;
}

void pending_drop_region(thread_state *t, uint64_t at, uint64_t bytes, hash_outcome why)
{
  if (is_idle()) return;
  pthread_mutex_lock(&pending.lock);
  for (unsigned i = atomic_load(&pending.count); i-- > 0;)
    if (work[i].number && overlaps(&work[i].region, at, bytes)) give_up_hash(t, i, why);
  pthread_mutex_unlock(&pending.lock);
}

void pending_drop_all(thread_state *t)
{
  if (is_idle()) return;
  pthread_mutex_lock(&pending.lock);
  while (atomic_load(&pending.count))
    give_up_hash(t, atomic_load(&pending.count) - 1, WEIR_HASH_GONE);
  pthread_mutex_unlock(&pending.lock);
}

/* What it was asked for still runs, and no wait will show its end by this handle. */
void pending_drop_stream(thread_state *t, uint64_t stream)
{
  if (is_idle()) return;
  pthread_mutex_lock(&pending.lock);
  for (unsigned i = atomic_load(&pending.count); i-- > 0;) {
    if (work[i].stream != stream) continue;
    if (!work[i].number) pending.overflowed = true;
    give_up_hash(t, i, WEIR_HASH_UNSEEN);
  }
  pthread_mutex_unlock(&pending.lock);
}

/* ---- waits ----------------------------------------------------------------------------------- */

static recorded_event *event_object(uint64_t handle)
{
  return &recorded[handle * UINT64_C(0x9e3779b97f4a7c15) >> 52 & (EVENT_OBJECTS - 1)];
}

void pending_recorded(const event_fields *e)
{
  pthread_mutex_lock(&pending.lock);
  *event_object(e->a) = (recorded_event){.handle = e->a,
                                         .stream = e->stream,
                                         .order = ++pending.order,
                                         .thread = &thread_self,
                                         .context = stream_context(e)};
  pthread_mutex_unlock(&pending.lock);
}

void pending_linked(bool by_wait)
{
  if (is_idle()) return;
  pthread_mutex_lock(&pending.lock);
  *(by_wait ? &pending.waited : &pending.legacy) = ++pending.order;
  pthread_mutex_unlock(&pending.lock);
}

static awaited awaited_by(const hook_call *c, const event_fields *e)
{
  awaited a = {.stream = e->stream,
               .limit = UINT64_MAX,
               .thread = c->thread,
               .context = e->context,
               .whole = e->kind == WEIR_EV_SYNC && !e->stream && !e->a};
  if (a.stream || a.whole) {
    if (a.stream) a.context = stream_context(e);
    return a;
  }
  const recorded_event *r = event_object(e->a);
  a.unknown = r->handle != e->a;
  if (a.unknown) return a;
  a.stream = r->stream, a.limit = r->order, a.thread = r->thread, a.context = r->context;
  return a;
}

/* The wait itself shows that the work has ended. */
static bool tells_of(const awaited *a, const pending_work *p)
{
  if (a->unknown || !p->context) return false;
  if (a->whole || a->stream <= WEIR_STREAM_PER_THREAD)
    if (a->context != p->context) return false;
  if (a->whole) return true;
  return a->stream == p->stream && (a->stream != WEIR_STREAM_PER_THREAD || a->thread == p->thread);
}

/* It may follow from what else is known. */
static bool may_tell_of(const awaited *a, const pending_work *p)
{
  bool legacy = a->stream == WEIR_STREAM_LEGACY || p->stream == WEIR_STREAM_LEGACY;
  if (a->unknown || pending.waited > p->order || !p->context) return true;
  return !p->apart && (legacy || pending.legacy > p->order);
}

/* All that was put into the stream has ended, by the driver's word. */
static bool stream_has_ended(const hook_call *c, const pending_work *p)
{
  PFN_cuStreamQuery_v2000 ask = WEIR_HELPER(cuStreamQuery);
  bool relative = p->stream <= WEIR_STREAM_PER_THREAD;
  if (!ask || (p->stream == WEIR_STREAM_PER_THREAD && p->thread != c->thread)) return false;
  if (relative && p->context != c->thread->last_context_number) return false;
  if (!capture_step_begin()) return false;
  CUresult r = ask((CUstream)(uintptr_t)p->stream);
  capture_step_end();
  return r == CUDA_SUCCESS;
}

void pending_waited(const hook_call *c, const event_fields *e)
{
  if (is_idle()) return;
  pthread_mutex_lock(&pending.lock);
  awaited a = awaited_by(c, e);
  for (unsigned i = atomic_load(&pending.count); i-- > 0;) {
    const pending_work *p = &work[i];
    if (p->order >= a.limit) continue;
    if (tells_of(&a, p) || (may_tell_of(&a, p) && stream_has_ended(c, p)))
      end_work(c->thread, i);
    else if (p->number && may_tell_of(&a, p))
      give_up_hash(c->thread, i, WEIR_HASH_UNSEEN);
  }
  pthread_mutex_unlock(&pending.lock);
}

void pending_forked(void)
{
  lock_reset(&pending.lock);
  set_count(0);
  pending.overflowed = false;
}
