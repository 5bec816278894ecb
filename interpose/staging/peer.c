/* peer.c: copies between two devices that cannot reach each other, through page-locked
 * memory of ours (staging.h).
 *
 * A pair of contexts has SLOTS slots, and a stream of its own in each context. A piece goes out of
 * the source's device into a slot, and from there into the destination's, while the next one is on
 * its way out. All of that is queued at once and nothing is waited for on the host: events make a
 * slot's two halves take turns, the first piece wait for what is in the program's stream, and the
 * program's stream for the last piece.
 *
 * The two streams are shared by all copies of the pair. A copy whose program stream is held up, by
 * something that perhaps only this thread can do next, holds them up as well; so another one takes
 * them only when they are idle, or when it comes in the same stream. Otherwise it is the driver's.
 *
 * A copy in the legacy default stream, and cudaMemcpyPeer, has an order with more than one stream:
 * it is "serialized with respect to all pending and future asynchronous work" of the current, the
 * source's and the destination's device (cuda_runtime_api.h), and a copy between devices in the
 * default stream likewise (CUDA C++ Programming Guide, "Peer-to-Peer Memory Copy"). No public call
 * names all streams of a device. So the driver's function that the program's call comes to makes that
 * order: it copies the first few bytes, and the last ones when all between is queued. What was queued
 * before comes before the first, what is queued when the call has returned comes after the last; and
 * the host waits for nothing that it would not wait for without us. (What another thread queues during the call, in no
 * order with it, may run beside the copy, as beside any that is made of pieces.)
 *
 * Whether it is worth it is measured at a pair's first copy, on memory of our own, and kept for the
 * next program on this machine (verdict.h). */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include "interpose/record/capture.h"
#include "interpose/record/context.h"
#include "interpose/record/stats.h"
#include "interpose/staging/staging.h"
#include "interpose/staging/verdict.h"
#include "interpose/record/work.h"

enum {
  SLOTS = 4,
  SLOT_BYTES = 8 << 20,
  LARGE_BYTES = 32 << 20, /* of a slot, once there was a copy that needs it */
  PIECES_MOST = 128,      /* what streams take without making the host wait */
  ENDS_BYTES = 4096,      /* that the driver's function copies, twice */
  ENDS_MIN = 2 << 20,     /* bytes that are worth these two calls */
  PAIRS = 64,
  TRIAL_BYTES = 64 << 20,
  TRIALS = 3,
  WINS_PERCENT = 120
};

typedef struct slot {
  void *memory;          /* page-locked for all contexts; owned */
  CUevent full, emptied; /* in the source's stream; in the destination's */
} slot;

enum verdict { UNKNOWN, WORTH, NOT_WORTH };

typedef struct pair {
  unsigned src, dst; /* numbers of contexts; 0: this place is free */
  CUcontext src_context, dst_context;
  CUstream out, in; /* of the source's context, of the destination's; owned */
  slot slots[SLOTS];
  size_t slot_bytes;
  CUevent last;              /* in `in`, behind the latest copy */
  CUstream programs;         /* the program's stream of that; NULL: none, or one by no name */
  unsigned programs_context; /* number, for the default stream of a context */
  bool made, failed;         /* failed: something could not be had, the driver does all */
  enum verdict worth;
} pair;

static weir_stage_options options;
static pair pairs[PAIRS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* over the pairs, and while one is used */
static _Atomic bool surplus;                             /* there is a pair that is not worth it */

void weir_stage_peer_start(const weir_stage_options *o)
{
  options = *o;
}

/* ---- the driver ------------------------------------------------------------------------------ */

static bool driver_has_all(void)
{
  static const enum weir_helper needed[] = {
      WEIR_H_cuMemHostAlloc,       WEIR_H_cuMemFreeHost,         WEIR_H_cuMemcpyHtoDAsync_v2,
      WEIR_H_cuMemcpyDtoHAsync_v2, WEIR_H_cuEventCreate,         WEIR_H_cuEventRecord,
      WEIR_H_cuEventQuery,         WEIR_H_cuEventDestroy_v2,     WEIR_H_cuStreamCreate,
      WEIR_H_cuStreamDestroy_v2,   WEIR_H_cuStreamWaitEvent,     WEIR_H_cuStreamGetCtx,
      WEIR_H_cuStreamSynchronize,  WEIR_H_cuCtxPushCurrent_v2,   WEIR_H_cuCtxPopCurrent_v2,
      WEIR_H_cuMemcpyPeerAsync,    WEIR_H_cuPointerGetAttribute, WEIR_H_cuMemcpyPeer,
      WEIR_H_cuMemcpyPeer_ptds,    WEIR_H_cuMemcpyDtoDAsync_v2};
  for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
    if (!weir_helper(needed[i])) return false;
  return true;
}

static bool enter(CUcontext context)
{
  return WEIR_HELPER(cuCtxPushCurrent_v2)(context) == CUDA_SUCCESS;
}

static void leave(void)
{
  CUcontext was;
  (void)WEIR_HELPER(cuCtxPopCurrent_v2)(&was);
}

static CUresult record(CUevent event, CUstream stream)
{
  return WEIR_HELPER(cuEventRecord)(event, stream);
}

static CUresult wait(CUstream stream, CUevent event)
{
  return WEIR_HELPER(cuStreamWaitEvent)(stream, event, 0);
}

static CUresult event_make(CUevent *out)
{
  return WEIR_HELPER(cuEventCreate)(out, CU_EVENT_DISABLE_TIMING);
}

/* Whether the device of the context that is current now can reach the memory. */
static bool reaches(CUdeviceptr at)
{
  unsigned flags = CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE;
  CUresult r = WEIR_HELPER(cuPointerGetAttribute)(&flags, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, at);
  return r != CUDA_SUCCESS || flags != CU_POINTER_ATTRIBUTE_ACCESS_FLAG_NONE;
}

/* ---- pairs ----------------------------------------------------------------------------------- */

/* Both contexts, one after the other, make what is theirs. */
static CUresult make_source(pair *p)
{
  CUresult r = WEIR_HELPER(cuStreamCreate)(&p->out, CU_STREAM_NON_BLOCKING);
  for (int i = 0; i < SLOTS && r == CUDA_SUCCESS; i++) {
    r = WEIR_HELPER(cuMemHostAlloc)(&p->slots[i].memory, p->slot_bytes, CU_MEMHOSTALLOC_PORTABLE);
    if (r == CUDA_SUCCESS) r = event_make(&p->slots[i].full);
  }
  return r;
}

static CUresult make_destination(pair *p)
{
  CUresult r = WEIR_HELPER(cuStreamCreate)(&p->in, CU_STREAM_NON_BLOCKING);
  for (int i = 0; i < SLOTS && r == CUDA_SUCCESS; i++)
    r = event_make(&p->slots[i].emptied);
  return r == CUDA_SUCCESS ? event_make(&p->last) : r;
}

static void destroy(CUevent event)
{
  if (event) (void)WEIR_HELPER(cuEventDestroy_v2)(event);
}

/* What was had of it goes back; it is idle, and its contexts are there. */
static void unmake(pair *p)
{
  PFN_cuStreamDestroy_v4000 end = WEIR_HELPER(cuStreamDestroy_v2);
  if (enter(p->src_context)) {
    for (int i = 0; i < SLOTS; i++) {
      destroy(p->slots[i].full);
      if (p->slots[i].memory) (void)WEIR_HELPER(cuMemFreeHost)(p->slots[i].memory);
    }
    if (p->out) (void)end(p->out);
    leave();
  }
  if (enter(p->dst_context)) {
    for (int i = 0; i < SLOTS; i++)
      destroy(p->slots[i].emptied);
    destroy(p->last);
    if (p->in) (void)end(p->in);
    leave();
  }
  weir_work_forget_stream(p->src, (uint64_t)(uintptr_t)p->out);
  weir_work_forget_stream(p->dst, (uint64_t)(uintptr_t)p->in);
  memset(p->slots, 0, sizeof p->slots);
  p->out = p->in = NULL;
  p->last = NULL;
}

static bool make(pair *p, size_t slot_bytes)
{
  if (p->made || p->failed) return p->made;
  CUresult r = CUDA_ERROR_UNKNOWN;
  p->slot_bytes = slot_bytes;
  if (enter(p->src_context)) {
    r = make_source(p);
    leave();
  }
  if (r == CUDA_SUCCESS && enter(p->dst_context)) {
    r = make_destination(p);
    leave();
  }
  p->made = r == CUDA_SUCCESS && p->last;
  p->failed = !p->made;
  if (p->failed) unmake(p);
  return p->made;
}

static size_t pieces(const pair *p, size_t bytes)
{
  return (bytes + p->slot_bytes - 1) / p->slot_bytes;
}

/* Slots in which the copy is few enough pieces; larger ones are had while the pair is idle. False:
 * it is too large, or the pair cannot be had. */
static bool make_for(pair *p, size_t bytes, bool idle)
{
  if (!make(p, SLOT_BYTES)) return false;
  if (pieces(p, bytes) <= PIECES_MOST) return true;
  if (bytes / LARGE_BYTES >= PIECES_MOST || p->slot_bytes == LARGE_BYTES || !idle) return false;
  unmake(p);
  p->made = false;
  if (make(p, LARGE_BYTES)) return true;
  p->failed = false;
  (void)make(p, SLOT_BYTES);
  return false;
}

/* The pair's place, claimed now if it has none; NULL: all are taken. Lock held. */
static pair *pair_of(unsigned src, unsigned dst)
{
  pair *none = NULL;
  for (int i = 0; i < PAIRS; i++) {
    if (pairs[i].src == src && pairs[i].dst == dst) return &pairs[i];
    if (!none && !pairs[i].src) none = &pairs[i];
  }
  CUcontext from = (CUcontext)(uintptr_t)weir_context_handle(src);
  CUcontext to = (CUcontext)(uintptr_t)weir_context_handle(dst);
  if (!none || !from || !to) return NULL;
  *none = (pair){.src = src, .dst = dst, .src_context = from, .dst_context = to};
  return none;
}

/* The page-locked memory went with its context, or is lost with it where that was another's: what
 * is in use on the other side cannot be waited for here. */
void weir_stage_peer_context_gone(unsigned number)
{
  pthread_mutex_lock(&lock);
  for (int i = 0; i < PAIRS; i++)
    if (pairs[i].src == number || pairs[i].dst == number) memset(&pairs[i], 0, sizeof pairs[i]);
  pthread_mutex_unlock(&lock);
}

/* ---- one copy -------------------------------------------------------------------------------- */

/* Out of the source: once the slot has been emptied. */
static CUresult take_out(const pair *p, const slot *s, CUdeviceptr from, size_t bytes)
{
  CUresult r = wait(p->out, s->emptied);
  if (r == CUDA_SUCCESS) r = WEIR_HELPER(cuMemcpyDtoHAsync_v2)(s->memory, from, bytes, p->out);
  return r == CUDA_SUCCESS ? record(s->full, p->out) : r;
}

static CUresult put_in(const pair *p, const slot *s, CUdeviceptr to, size_t bytes)
{
  CUresult r = wait(p->in, s->full);
  if (r == CUDA_SUCCESS) r = WEIR_HELPER(cuMemcpyHtoDAsync_v2)(to, s->memory, bytes, p->in);
  return r == CUDA_SUCCESS ? record(s->emptied, p->in) : r;
}

static CUresult piece(const pair *p, const weir_stage_peers *c, size_t i)
{
  size_t at = i * p->slot_bytes, left = c->bytes - at,
         n = left < p->slot_bytes ? left : p->slot_bytes;
  const slot *s = &p->slots[i % SLOTS];
  CUresult r = CUDA_ERROR_INVALID_CONTEXT;
  if (enter(p->src_context)) {
    r = take_out(p, s, c->src + at, n);
    leave();
  }
  if (r != CUDA_SUCCESS) return r;
  if (!enter(p->dst_context)) return CUDA_ERROR_INVALID_CONTEXT;
  r = put_in(p, s, c->dst + at, n);
  leave();
  return r;
}

/* The context that the stream is in; a default one is in the thread's. */
static CUcontext context_of(CUstream stream)
{
  CUcontext of = NULL;
  if ((uint64_t)(uintptr_t)stream <= WEIR_STREAM_PER_THREAD)
    return (CUcontext)(uintptr_t)weir_self.last_context;
  CUresult r = WEIR_HELPER(cuStreamGetCtx)(stream, &of);
  return r == CUDA_SUCCESS ? of : NULL;
}

/* Behind what the program's stream has now; nothing is queued yet. */
static CUresult follow(const pair *p, const weir_stage_peers *c)
{
  CUcontext of = context_of(c->stream);
  CUevent before = NULL;
  if (!of || !enter(of)) return CUDA_ERROR_INVALID_CONTEXT;
  CUresult r = event_make(&before);
  if (r == CUDA_SUCCESS) r = record(before, c->stream);
  leave();
  if (r == CUDA_SUCCESS) r = wait(p->out, before);
  if (r == CUDA_SUCCESS) r = wait(p->in, before);
  destroy(before); /* "resources ... released automatically" once what waits for it has it */
  return r;
}

/* The program's stream goes on after what was queued, all of the copy or, after an error, a part of
 * it, which the driver's own copy must not run beside. */
static CUresult join(const pair *p, const weir_stage_peers *c)
{
  CUresult r = record(p->last, p->in);
  if (r == CUDA_SUCCESS) r = wait(c->stream, p->last);
  if (r == CUDA_SUCCESS) return r;
  PFN_cuStreamSynchronize_v2000 finish = WEIR_HELPER(cuStreamSynchronize);
  (void)finish(p->out);
  (void)finish(p->in);
  return r;
}

static CUresult send(pair *p, const weir_stage_peers *c)
{
  CUresult r = CUDA_SUCCESS;
  size_t n = pieces(p, c->bytes);
  for (size_t i = 0; i < n && r == CUDA_SUCCESS; i++)
    r = piece(p, c, i);
  bool named = c->stream != CU_STREAM_PER_THREAD; /* of each thread another */
  p->programs = named ? c->stream : NULL;
  p->programs_context = weir_self.last_context_number;
  weir_work_note(p->src, (uint64_t)(uintptr_t)p->out);
  weir_work_note(p->dst, (uint64_t)(uintptr_t)p->in);
  CUresult joined = join(p, c);
  return r == CUDA_SUCCESS ? joined : r;
}

static bool is_idle(const pair *p)
{
  return !p->made || WEIR_HELPER(cuEventQuery)(p->last) == CUDA_SUCCESS;
}

/* The latest copy came in this stream. */
static bool in_line(const pair *p, const weir_stage_peers *c)
{
  return p->programs == c->stream &&
         (c->stream != CU_STREAM_LEGACY || p->programs_context == weir_self.last_context_number);
}

static bool has_ends(const weir_stage_peers *c)
{
  return c->blocking || c->stream == CU_STREAM_LEGACY;
}

/* Bytes at `at`, by the function that gives the program's call its order. Between devices none
 * waits on the host. */
static CUresult copy_end_bytes(const pair *p, const weir_stage_peers *c, size_t at)
{
  CUdeviceptr dst = c->dst + at, src = c->src + at;
  if (!c->named) return WEIR_HELPER(cuMemcpyDtoDAsync_v2)(dst, src, ENDS_BYTES, c->stream);
  if (!c->blocking)
    return WEIR_HELPER(cuMemcpyPeerAsync)(dst, p->dst_context, src, p->src_context, ENDS_BYTES,
                                          c->stream);
  PFN_cuMemcpyPeer_v4000 peer = c->stream == CU_STREAM_PER_THREAD ? WEIR_HELPER(cuMemcpyPeer_ptds)
                                                                  : WEIR_HELPER(cuMemcpyPeer);
  return peer(dst, p->dst_context, src, p->src_context, ENDS_BYTES);
}

/* False: the driver's. Lock held. */
static bool run(pair *p, const weir_stage_peers *c, CUresult *result)
{
  bool idle = is_idle(p);
  if (!idle && !in_line(p, c)) return false;
  if (!make_for(p, c->bytes, idle)) return false;
  weir_stage_peers middle = *c;
  size_t tail = c->bytes - ENDS_BYTES;
  if (has_ends(c)) {
    middle.dst += ENDS_BYTES, middle.src += ENDS_BYTES, middle.bytes = tail - ENDS_BYTES;
    if (copy_end_bytes(p, c, 0) != CUDA_SUCCESS) return false;
  }
  if (follow(p, &middle) != CUDA_SUCCESS) return false;
  *result = send(p, &middle);
  if (has_ends(c) && *result == CUDA_SUCCESS) *result = copy_end_bytes(p, c, tail);
  return true;
}

/* ---- is it worth it? ------------------------------------------------------------------------- */

static bool drivers(const pair *p, const weir_stage_peers *c)
{
  return WEIR_HELPER(cuMemcpyPeerAsync)(c->dst, p->dst_context, c->src, p->src_context, c->bytes,
                                        c->stream) == CUDA_SUCCESS;
}

static bool over(CUstream stream)
{
  return WEIR_HELPER(cuStreamSynchronize)(stream) == CUDA_SUCCESS;
}

/* Ratio in percent of the driver's quickest time to ours; 0: it could not be measured. */
static unsigned race(pair *p, const weir_stage_peers *c)
{
  uint64_t best[2] = {UINT64_MAX, UINT64_MAX};
  for (int i = 0; i < TRIALS; i++) {
    CUresult r = CUDA_SUCCESS;
    uint64_t start = weir_ticks();
    if (!drivers(p, c) || !over(c->stream)) return 0;
    uint64_t middle = weir_ticks();
    if (!run(p, c, &r) || r != CUDA_SUCCESS || !over(c->stream)) return 0;
    uint64_t end = weir_ticks();
    if (middle - start < best[0]) best[0] = middle - start;
    if (end - middle < best[1]) best[1] = end - middle;
  }
  return (unsigned)(best[0] * 100 / (best[1] ? best[1] : 1));
}

typedef struct trial_end { /* of the two ends of a copy that is measured */
  CUcontext context;
  CUstream stream; /* of it, that waits for no other */
  weir_trial memory;
} trial_end;

static void end_stream(CUstream stream)
{
  (void)WEIR_HELPER(cuStreamDestroy_v2)(stream);
}

static bool trial_begin(trial_end *e, CUcontext context)
{
  unsigned device = weir_context_device((uint64_t)(uintptr_t)context);
  bool good = false;
  e->context = context;
  if (!enter(context)) return false;
  if (WEIR_HELPER(cuStreamCreate)(&e->stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS) {
    good = weir_trial_get(&e->memory, device, TRIAL_BYTES, e->stream);
    if (!good) end_stream(e->stream);
  }
  leave();
  return good;
}

static void trial_over(trial_end *e)
{
  if (!enter(e->context)) return;
  weir_trial_give(&e->memory, e->stream);
  end_stream(e->stream);
  leave();
}

static unsigned measure_between(pair *p, const trial_end *src, const trial_end *dst)
{
  const weir_stage_peers c = {.dst = dst->memory.at,
                              .src = src->memory.at,
                              .bytes = TRIAL_BYTES,
                              .src_context = p->src,
                              .dst_context = p->dst,
                              .stream = dst->stream};
  if (!enter(p->dst_context)) return 0;
  unsigned percent = race(p, &c);
  leave();
  if (p->programs == c.stream) p->programs = NULL; /* over, and its handle anybody's */
  return percent;
}

static unsigned measure(pair *p)
{
  trial_end src, dst;
  unsigned percent = 0;
  if (!trial_begin(&src, p->src_context)) return 0;
  if (trial_begin(&dst, p->dst_context)) {
    percent = measure_between(p, &src, &dst);
    trial_over(&dst);
  }
  trial_over(&src);
  return percent;
}

static bool worth(pair *p)
{
  if (p->worth != UNKNOWN) return p->worth == WORTH;
  if (options.use == WEIR_STAGE_ON) {
    p->worth = WORTH;
    return true;
  }
  char key[WEIR_VERDICT_KEY];
  uint64_t start = weir_ticks();
  unsigned from = weir_context_device(weir_context_handle(p->src));
  unsigned to = weir_context_device(weir_context_handle(p->dst));
  bool keep = weir_verdict_key_peers(key, from, to);
  unsigned percent = keep ? weir_verdict_read(key, 0) : 0;
  bool known = percent != 0;
  if (!known && (percent = measure(p)) && keep) weir_verdict_write(key, 0, percent);
  p->worth = percent >= WINS_PERCENT ? WORTH : NOT_WORTH;
  weir_stats_staging(start, to, WEIR_COPY_PTOP, percent, known ? 0 : TRIAL_BYTES);
  if (p->worth == NOT_WORTH && p->made) atomic_store(&surplus, true);
  return p->worth == WORTH;
}

/* 32 MiB that nobody needs go back when the program has waited anyway: who gives page-locked memory
 * back may have to wait, too. */
void weir_stage_peer_waited(void)
{
  if (!atomic_load_explicit(&surplus, memory_order_relaxed) || pthread_mutex_trylock(&lock)) return;
  atomic_store(&surplus, false);
  weir_relaxed mode = weir_relax();
  for (int i = 0; i < PAIRS; i++) {
    pair *p = &pairs[i];
    if (p->worth != NOT_WORTH || !p->made) continue;
    unmake(p);
    p->made = false;
    p->failed = true;
  }
  weir_relax_end(&mode);
  pthread_mutex_unlock(&lock);
}

/* Neither device reaches the other's memory. */
static bool apart(const pair *p, const weir_stage_peers *c)
{
  bool reached = true;
  if (enter(p->dst_context)) {
    reached = reaches(c->src);
    leave();
  }
  if (!reached && enter(p->src_context)) {
    reached = reaches(c->dst);
    leave();
  }
  return !reached;
}

bool weir_stage_peer(const weir_stage_peers *c, CUresult *result)
{
  bool staged = false;
  weir_relaxed mode;
  if (options.use == WEIR_STAGE_OFF || !driver_has_all()) return false;
  if (c->bytes < (has_ends(c) ? (size_t)ENDS_MIN : WEIR_STAGE_MIN)) return false;
  if (pthread_mutex_trylock(&lock)) return false;
  pair *p = pair_of(c->src_context, c->dst_context);
  mode = weir_relax();
  if (p && !p->failed && apart(p, c) && worth(p)) staged = run(p, c, result);
  weir_relax_end(&mode);
  pthread_mutex_unlock(&lock);
  return staged;
}
