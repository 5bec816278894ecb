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
 * names all streams of a device. So the driver's function that the program's call comes to makes
 * that order: it copies the first few bytes, and the last ones when all between is queued. What
 * was queued before comes before the first, what is queued when the call has returned comes after
 * the last; and the host waits for nothing that it would not wait for without us. (What another
 * thread queues during the call, in no order with it, may run during the copy, as during any that
 * is made of pieces.)
 *
 * Whether it is worth it is measured at a pair's first copy, on memory of our own, and kept for
 * the next program on this machine (calibration.h). */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include "interpose/record/captures.h"
#include "interpose/record/context.h"
#include "interpose/staging/staging.h"
#include "interpose/staging/calibration.h"
#include "interpose/record/work.h"

enum {
  SLOTS = 4,
  SLOT_BYTES = 8 << 20,
  LARGE_BYTES = 32 << 20, /* of a slot, once there was a copy that needs it */
  PIECES_MOST = 128,      /* what streams take without making the host wait */
  ENDS_BYTES = 4096,      /* that the driver's function copies, twice */
  ENDS_MIN = 2 << 20,     /* bytes that are worth these two calls */
  PAIRS = 64,
  TRIAL_BYTES = 64 << 20
};

enum { SOURCE, DESTINATION };

typedef struct half { /* of a pair: what is made in one of its contexts */
  unsigned number;
  CUcontext context;
  CUstream stream;       /* of copies out of the source's device, into the destination's; owned */
  CUevent passed[SLOTS]; /* this half of the slot's turn is over; owned */
  CUevent last;          /* in `stream`, after the latest copy; owned */
} half;

typedef struct pair {
  half half[2];       /* the source's number 0: this place is free */
  void *slots[SLOTS]; /* page-locked for all contexts; owned */
  size_t slot_bytes;
  CUstream programs;         /* the program's stream of the latest copy; NULL: none, or no name */
  unsigned programs_context; /* number, for the default stream of a context */
  bool made, failed;         /* failed: something could not be had, the driver does all */
  bool asked, worth;         /* whether it is worth it was asked; and it is */
} pair;

static pair pairs[PAIRS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* over the pairs, and while one is used */
static _Atomic bool surplus;                             /* there is a pair that is not worth it */

/* ---- the driver ------------------------------------------------------------------------------ */

static bool driver_has_all(void)
{
  static const enum driver_helper needed[] = {
      WEIR_H_cuMemHostAlloc,       WEIR_H_cuMemFreeHost,         WEIR_H_cuMemcpyHtoDAsync_v2,
      WEIR_H_cuMemcpyDtoHAsync_v2, WEIR_H_cuEventCreate,         WEIR_H_cuEventRecord,
      WEIR_H_cuEventQuery,         WEIR_H_cuEventDestroy_v2,     WEIR_H_cuStreamCreate,
      WEIR_H_cuStreamDestroy_v2,   WEIR_H_cuStreamWaitEvent,     WEIR_H_cuStreamGetCtx,
      WEIR_H_cuStreamSynchronize,  WEIR_H_cuCtxPushCurrent_v2,   WEIR_H_cuCtxPopCurrent_v2,
      WEIR_H_cuMemcpyPeerAsync,    WEIR_H_cuPointerGetAttribute, WEIR_H_cuMemcpyPeer,
      WEIR_H_cuMemcpyPeer_ptds,    WEIR_H_cuMemcpyDtoDAsync_v2};
  return weir_helpers_there(needed, sizeof needed / sizeof *needed);
}

static bool enter_context(CUcontext context)
{
  return WEIR_HELPER(cuCtxPushCurrent_v2)(context) == CUDA_SUCCESS;
}

static CUresult leave_context(CUresult r)
{
  CUcontext was;
  (void)WEIR_HELPER(cuCtxPopCurrent_v2)(&was);
  return r;
}

/* What the call answers with the context current. */
#define IN(context, call)                                                                          \
  (enter_context(context) ? leave_context(call) : CUDA_ERROR_INVALID_CONTEXT)

static CUresult record_peer_event(CUevent event, CUstream stream)
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

/* Success: the device of the context that is current now cannot reach the memory. */
static CUresult out_of_reach(CUdeviceptr at)
{
  unsigned flags = CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE;
  CUresult r = WEIR_HELPER(cuPointerGetAttribute)(&flags, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, at);
  bool out = r == CUDA_SUCCESS && flags == CU_POINTER_ATTRIBUTE_ACCESS_FLAG_NONE;
  return out ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
}

/* ---- pairs ----------------------------------------------------------------------------------- */

/* In the half's context. */
static CUresult make_half(half *h)
{
  CUresult r = WEIR_HELPER(cuStreamCreate)(&h->stream, CU_STREAM_NON_BLOCKING);
  for (int i = 0; i < SLOTS && r == CUDA_SUCCESS; i++)
    r = event_make(&h->passed[i]);
  return r == CUDA_SUCCESS ? event_make(&h->last) : r;
}

static CUresult make_slots(pair *p)
{
  CUresult r = CUDA_SUCCESS;
  for (int i = 0; i < SLOTS && r == CUDA_SUCCESS; i++)
    r = WEIR_HELPER(cuMemHostAlloc)(&p->slots[i], p->slot_bytes, CU_MEMHOSTALLOC_PORTABLE);
  return r;
}

static void destroy_peer_event(CUevent event)
{
  if (event) (void)WEIR_HELPER(cuEventDestroy_v2)(event);
}

static CUresult end_half(const half *h)
{
  for (int i = 0; i < SLOTS; i++)
    destroy_peer_event(h->passed[i]);
  destroy_peer_event(h->last);
  return h->stream ? WEIR_HELPER(cuStreamDestroy_v2)(h->stream) : CUDA_SUCCESS;
}

static CUresult end_slots(const pair *p)
{
  for (int i = 0; i < SLOTS; i++)
    if (p->slots[i]) (void)WEIR_HELPER(cuMemFreeHost)(p->slots[i]);
  return CUDA_SUCCESS;
}

/* What was had of it goes back; it is idle, and its contexts are there. */
static void unmake(pair *p)
{
  (void)IN(p->half[SOURCE].context, end_slots(p));
  memset(p->slots, 0, sizeof p->slots);
  for (int i = 0; i < 2; i++) {
    half *h = &p->half[i];
    (void)IN(h->context, end_half(h));
    work_forget_stream(h->number, (uint64_t)(uintptr_t)h->stream);
    *h = (half){.number = h->number, .context = h->context};
  }
  p->made = false;
}

static bool make_pair(pair *p, size_t slot_bytes)
{
  if (p->made || p->failed) return p->made;
  p->slot_bytes = slot_bytes;
  p->made = IN(p->half[SOURCE].context, make_slots(p)) == CUDA_SUCCESS;
  for (int i = 0; i < 2 && p->made; i++)
    p->made = IN(p->half[i].context, make_half(&p->half[i])) == CUDA_SUCCESS;
  p->failed = !p->made;
  if (p->failed) unmake(p);
  return p->made;
}

static size_t piece_count(const pair *p, size_t bytes)
{
  return (bytes + p->slot_bytes - 1) / p->slot_bytes;
}

/* Slots in which the copy is few enough pieces; larger ones are had while the pair is idle. False:
 * it is too large, or the pair cannot be had. */
static bool ensure_slots(pair *p, size_t bytes, bool idle)
{
  if (!make_pair(p, SLOT_BYTES)) return false;
  if (piece_count(p, bytes) <= PIECES_MOST) return true;
  if (bytes / LARGE_BYTES >= PIECES_MOST || p->slot_bytes == LARGE_BYTES || !idle) return false;
  unmake(p);
  if (make_pair(p, LARGE_BYTES)) return true;
  p->failed = false;
  (void)make_pair(p, SLOT_BYTES);
  return false;
}

/* The pair's place, claimed now if it has none; NULL: all are taken. Lock held. */
static pair *pair_of(unsigned src, unsigned dst)
{
  pair *none = NULL;
  for (int i = 0; i < PAIRS; i++) {
    const half *h = pairs[i].half;
    if (h[SOURCE].number == src && h[DESTINATION].number == dst) return &pairs[i];
    if (!none && !h[SOURCE].number) none = &pairs[i];
  }
  CUcontext from = (CUcontext)(uintptr_t)context_handle(src);
  CUcontext to = (CUcontext)(uintptr_t)context_handle(dst);
  if (!none || !from || !to) return NULL;
  *none = (pair){.half = {{.number = src, .context = from}, {.number = dst, .context = to}}};
  return none;
}

/* The page-locked memory went with its context, or is lost with it where that was another's: what
 * is in use on the other side cannot be waited for here. */
void staging_peer_context_gone(unsigned number)
{
  pthread_mutex_lock(&lock);
  for (int i = 0; i < PAIRS; i++)
    if (pairs[i].half[SOURCE].number == number || pairs[i].half[DESTINATION].number == number)
      memset(&pairs[i], 0, sizeof pairs[i]);
  pthread_mutex_unlock(&lock);
}

/* ---- one copy -------------------------------------------------------------------------------- */

/* Between slot `i` and a device: once the slot's other half is over. */
static CUresult move(const pair *p, int which, int i, CUdeviceptr at, size_t bytes)
{
  CUstream stream = p->half[which].stream;
  CUresult r = wait(stream, p->half[!which].passed[i]);
  if (r == CUDA_SUCCESS)
    r = which == SOURCE ? WEIR_HELPER(cuMemcpyDtoHAsync_v2)(p->slots[i], at, bytes, stream)
                        : WEIR_HELPER(cuMemcpyHtoDAsync_v2)(at, p->slots[i], bytes, stream);
  return r == CUDA_SUCCESS ? record_peer_event(p->half[which].passed[i], stream) : r;
}

static CUresult copy_piece(const pair *p, const staging_peer_copy *c, size_t i)
{
  size_t at = i * p->slot_bytes, left = c->bytes - at;
  size_t n = left < p->slot_bytes ? left : p->slot_bytes;
  int slot = (int)(i % SLOTS);
  CUresult r = IN(p->half[SOURCE].context, move(p, SOURCE, slot, c->src + at, n));
  if (r != CUDA_SUCCESS) return r;
  return IN(p->half[DESTINATION].context, move(p, DESTINATION, slot, c->dst + at, n));
}

/* The context that the stream is in; a default one is in the thread's. */
static CUcontext context_of_stream(CUstream stream)
{
  CUcontext of = NULL;
  if ((uint64_t)(uintptr_t)stream <= WEIR_STREAM_PER_THREAD)
    return (CUcontext)(uintptr_t)thread_self.last_context;
  CUresult r = WEIR_HELPER(cuStreamGetCtx)(stream, &of);
  return r == CUDA_SUCCESS ? of : NULL;
}

static CUresult event_in(CUstream stream, CUevent *made)
{
  CUresult r = event_make(made);
  return r == CUDA_SUCCESS ? record_peer_event(*made, stream) : r;
}

/* After what the program's stream has now; nothing is queued yet. */
static CUresult order_after_event(const pair *p, const staging_peer_copy *c)
{
  CUcontext of = context_of_stream(c->stream);
  CUevent before = NULL;
  CUresult r = of ? IN(of, event_in(c->stream, &before)) : CUDA_ERROR_INVALID_CONTEXT;
  for (int i = 0; i < 2 && r == CUDA_SUCCESS; i++)
    r = wait(p->half[i].stream, before);
  destroy_peer_event(
      before); /* "resources ... released automatically" once what waits for it has it */
  return r;
}

/* The program's stream goes on after what was queued, all of the copy or, after an error, a part of
 * it, which the driver's own copy must not run at the same time as. */
static CUresult join_stream(const pair *p, const staging_peer_copy *c)
{
  const half *in = &p->half[DESTINATION];
  CUresult r = record_peer_event(in->last, in->stream);
  if (r == CUDA_SUCCESS) r = wait(c->stream, in->last);
  for (int i = 0; i < 2 && r != CUDA_SUCCESS; i++)
    (void)WEIR_HELPER(cuStreamSynchronize)(p->half[i].stream);
  return r;
}

static CUresult send_pieces(pair *p, const staging_peer_copy *c)
{
  CUresult r = CUDA_SUCCESS;
  size_t n = piece_count(p, c->bytes);
  for (size_t i = 0; i < n && r == CUDA_SUCCESS; i++)
    r = copy_piece(p, c, i);
  bool named = c->stream != CU_STREAM_PER_THREAD; /* of each thread another */
  p->programs = named ? c->stream : NULL;
  p->programs_context = thread_self.last_context_number;
  for (int i = 0; i < 2; i++)
    work_note(p->half[i].number, (uint64_t)(uintptr_t)p->half[i].stream);
  CUresult joined = join_stream(p, c);
  return r == CUDA_SUCCESS ? joined : r;
}

static bool pair_is_idle(const pair *p)
{
  return !p->made || WEIR_HELPER(cuEventQuery)(p->half[DESTINATION].last) == CUDA_SUCCESS;
}

/* The latest copy came in this stream. */
static bool in_line(const pair *p, const staging_peer_copy *c)
{
  return p->programs == c->stream &&
         (c->stream != CU_STREAM_LEGACY || p->programs_context == thread_self.last_context_number);
}

static bool has_ends(const staging_peer_copy *c)
{
  return c->blocking || c->stream == CU_STREAM_LEGACY;
}

/* Bytes at `at`, by the function that gives the program's call its order. Between devices none
 * waits on the host. */
static CUresult copy_end_bytes(const pair *p, const staging_peer_copy *c, size_t at)
{
  CUdeviceptr dst = c->dst + at, src = c->src + at;
  if (!c->named) return WEIR_HELPER(cuMemcpyDtoDAsync_v2)(dst, src, ENDS_BYTES, c->stream);
  if (!c->blocking)
    return WEIR_HELPER(cuMemcpyPeerAsync)(dst, p->half[DESTINATION].context, src,
                                          p->half[SOURCE].context, ENDS_BYTES, c->stream);
  PFN_cuMemcpyPeer_v4000 peer = c->stream == CU_STREAM_PER_THREAD ? WEIR_HELPER(cuMemcpyPeer_ptds)
                                                                  : WEIR_HELPER(cuMemcpyPeer);
  return peer(dst, p->half[DESTINATION].context, src, p->half[SOURCE].context, ENDS_BYTES);
}

/* False: the driver's. Lock held. */
static bool run_peer_copy(pair *p, const staging_peer_copy *c, CUresult *result)
{
  bool idle = pair_is_idle(p);
  if (!idle && !in_line(p, c)) return false;
  if (!ensure_slots(p, c->bytes, idle)) return false;
  staging_peer_copy middle = *c;
  size_t tail = c->bytes - ENDS_BYTES;
  if (has_ends(c)) {
    middle.dst += ENDS_BYTES, middle.src += ENDS_BYTES, middle.bytes = tail - ENDS_BYTES;
    if (copy_end_bytes(p, c, 0) != CUDA_SUCCESS) return false;
  }
  if (order_after_event(p, &middle) != CUDA_SUCCESS) return false;
  *result = send_pieces(p, &middle);
  if (has_ends(c) && *result == CUDA_SUCCESS) *result = copy_end_bytes(p, c, tail);
  return true;
}

/* ---- is it worth it? ------------------------------------------------------------------------- */

typedef struct trial { /* a copy that is measured, and the pair */
  pair *of;
  staging_peer_copy copy;
  CUstream stream[2];      /* of each half's context, that waits for no other */
  staging_trial memory[2]; /* of each half's device */
} trial;

static bool wait_for_stream(const trial *t, CUresult r)
{
  return r == CUDA_SUCCESS && WEIR_HELPER(cuStreamSynchronize)(t->copy.stream) == CUDA_SUCCESS;
}

static bool time_driver_peer_copy(void *of)
{
  const trial *t = of;
  const staging_peer_copy *c = &t->copy;
  return wait_for_stream(t, WEIR_HELPER(cuMemcpyPeerAsync)(c->dst, t->of->half[DESTINATION].context,
                                                           c->src, t->of->half[SOURCE].context,
                                                           c->bytes, c->stream));
}

static bool time_staged_peer_copy(void *of)
{
  trial *t = of;
  CUresult r = CUDA_SUCCESS;
  return run_peer_copy(t->of, &t->copy, &r) && wait_for_stream(t, r);
}

/* In the half's context. */
static CUresult begin_trial(trial *t, int i)
{
  CUcontext context = t->of->half[i].context;
  unsigned device = context_device((uint64_t)(uintptr_t)context);
  CUresult r = WEIR_HELPER(cuStreamCreate)(&t->stream[i], CU_STREAM_NON_BLOCKING);
  if (r != CUDA_SUCCESS) return r;
  if (staging_trial_alloc(&t->memory[i], device, TRIAL_BYTES, t->stream[i])) return CUDA_SUCCESS;
  (void)WEIR_HELPER(cuStreamDestroy_v2)(t->stream[i]);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult trial_end(trial *t, int i)
{
  staging_trial_free(&t->memory[i], t->stream[i]);
  return WEIR_HELPER(cuStreamDestroy_v2)(t->stream[i]);
}

static CUresult trial_race(trial *t, unsigned *percent)
{
  t->copy = (staging_peer_copy){.dst = t->memory[DESTINATION].at,
                                .src = t->memory[SOURCE].at,
                                .bytes = TRIAL_BYTES,
                                .src_context = t->of->half[SOURCE].number,
                                .dst_context = t->of->half[DESTINATION].number,
                                .stream = t->stream[DESTINATION]};
  *percent = staging_race(time_driver_peer_copy, time_staged_peer_copy, t);
  if (t->of->programs == t->copy.stream) t->of->programs = NULL; /* its handle may be anybody's */
  return CUDA_SUCCESS;
}

static unsigned measure_peer_copy(void *of)
{
  trial t = {.of = of};
  const half *h = t.of->half;
  unsigned percent = 0;
  if (IN(h[SOURCE].context, begin_trial(&t, SOURCE)) != CUDA_SUCCESS) return 0;
  if (IN(h[DESTINATION].context, begin_trial(&t, DESTINATION)) == CUDA_SUCCESS) {
    (void)IN(h[DESTINATION].context, trial_race(&t, &percent));
    (void)IN(h[DESTINATION].context, trial_end(&t, DESTINATION));
  }
  (void)IN(h[SOURCE].context, trial_end(&t, SOURCE));
  return percent;
}

static bool is_worth(pair *p)
{
  char key[CALIBRATION_KEY_ROOM];
  if (p->asked || staging_options.use == WEIR_STAGE_ON)
    return p->worth || staging_options.use == WEIR_STAGE_ON;
  unsigned from = context_device(context_handle(p->half[SOURCE].number));
  unsigned to = context_device(context_handle(p->half[DESTINATION].number));
  const staging_question q = {.key = calibration_key_peers(key, from, to) ? key : NULL,
                              .device = to,
                              .kind = WEIR_COPY_PTOP,
                              .bytes = TRIAL_BYTES,
                              .measure = measure_peer_copy,
                              .of = p};
  p->asked = true;
  p->worth = staging_is_worth(&q);
  if (!p->worth && p->made) atomic_store(&surplus, true);
  return p->worth;
}

/* 32 MiB that nobody needs go back when the program has waited anyway: who gives page-locked memory
 * back may have to wait, too. */
void staging_peer_waited(void)
{
  if (!atomic_load_explicit(&surplus, memory_order_relaxed) || pthread_mutex_trylock(&lock)) return;
  atomic_store(&surplus, false);
  capture_relaxed mode = capture_relax();
  for (int i = 0; i < PAIRS; i++) {
    pair *p = &pairs[i];
    if (!p->asked || p->worth || !p->made) continue;
    unmake(p);
    p->failed = true;
  }
  capture_relax_end(&mode);
  pthread_mutex_unlock(&lock);
}

/* Neither device reaches the other's memory. */
static bool ranges_disjoint(const pair *p, const staging_peer_copy *c)
{
  return IN(p->half[DESTINATION].context, out_of_reach(c->src)) == CUDA_SUCCESS &&
         IN(p->half[SOURCE].context, out_of_reach(c->dst)) == CUDA_SUCCESS;
}

bool staging_run_peers(const staging_peer_copy *c, CUresult *result)
{
  bool staged = false;
  capture_relaxed mode;
  if (staging_options.use == WEIR_STAGE_OFF || !driver_has_all()) return false;
  if (c->bytes < (has_ends(c) ? (size_t)ENDS_MIN : WEIR_STAGE_MIN)) return false;
  if (pthread_mutex_trylock(&lock)) return false;
  pair *p = pair_of(c->src_context, c->dst_context);
  mode = capture_relax();
  if (p && !p->failed && ranges_disjoint(p, c) && is_worth(p)) staged = run_peer_copy(p, c, result);
  capture_relax_end(&mode);
  pthread_mutex_unlock(&lock);
  return staged;
}
