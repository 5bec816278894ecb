/* stream.c: the program's own waits, which settle what its frees did not wait for, and
 * streams that end, that are kept or that are in no context of their own.
 *
 * A stream that a program ends can be kept (REROUTE_STREAMS), and be the one that it makes next
 * with the same flags and priority in the same context, if it is idle by then. Not one with
 * attributes of its own, or to which managed memory was attached; and none while a stream is being
 * captured.
 * Its id would be the one of a stream that has ended, where "the stream ID is guaranteed unique for
 * the life of the program" (cudaStreamGetId): who asks is told that of a stream made for it. */
#include "interpose/reroute/context_cache.h"

#include "interpose/reroute/kept.h"
#include "interpose/reroute/poison.h"
#include "interpose/record/work.h"

/* The program's own wait for a context settles all that was waiting, and old memory can go back, at
 * no cost. */
CUresult reroute_sync(hook_call *c, CUresult (*real)(void))
{
  wait_mark m;
  (void)c;
  context_refresh(&thread_self);
  unsigned n = thread_self.last_context_number;
  bool tell = process_mode_now() == WEIR_RELAXED && n;
  if (tell) wait_mark_begin(&m, n);
  CUresult r = real();
  if (r == CUDA_SUCCESS && tell) wait_mark_end(&m);
  if (r == CUDA_SUCCESS && n && !reroute_hands_off()) {
    context_caches_age(n);
    staging_peer_waited();
  }
  reroute_note_error((int)r);
  if (fill_in_use == WEIR_FILL_POISON) poison_poll();
  return r;
}

/* Before the end of a stream that may have work: all caches of the context mark it. */
static void stream_ends(uint64_t stream)
{
  context_refresh(&thread_self);
  unsigned n = thread_self.last_context_number;
  if (process_mode_now() != WEIR_RELAXED || stream <= WEIR_STREAM_PER_THREAD || !n ||
      n >= WEIR_CACHES - 1)
    return;
  bool busy = work_busy(n, stream);
  weir_status st = context_caches_stream_ends(n, (void *)(uintptr_t)stream, busy);
  if (st) work_note_unknown("a stream with work ended and could not be marked");
  work_forget_stream(n, stream);
}

/* ---- kept ------------------------------------------------------------------------------------ */

static kept_objects streams;
static hash_table stream_ids; /* of streams handed out again whose id was asked for: x */

void kept_stream_gone(uint64_t stream)
{
  kept_gone(&streams, stream);
}

void kept_streams_context_gone(unsigned number)
{
  kept_context_gone(&streams, number);
}

static bool stream_is_idle(uint64_t stream)
{
  PFN_cuStreamQuery_v2000 ask = WEIR_HELPER(cuStreamQuery);
  return ask && ask((CUstream)(uintptr_t)stream) == CUDA_SUCCESS;
}

/* A kept stream of the context; 0: none. */
static uint64_t stream_again(unsigned number, uint64_t traits)
{
  uint64_t x, y;
  if (!kept_any(&streams) || !capture_step_begin()) return 0;
  uint64_t stream = kept_again(&streams, number, traits, stream_is_idle);
  capture_step_end();
  if (stream) (void)hash_table_take(&stream_ids, stream, &x, &y);
  return stream;
}

/* How to make one: the original, one of the three. */
typedef struct stream_way {
  CUresult (*plain)(CUstream *);
  CUresult (*flagged)(CUstream *, unsigned);
  CUresult (*ranked)(CUstream *, unsigned, int);
  unsigned flags;
  int priority;
} stream_way;

static CUresult stream_get(const stream_way *w, CUstream *out)
{
  if (w->plain) return w->plain(out);
  return w->flagged ? w->flagged(out, w->flags) : w->ranked(out, w->flags, w->priority);
}

static CUresult make_stream(hook_call *c, const stream_way *w, CUstream *out)
{
  unsigned number = 0;
  const uint64_t traits = (uint64_t)(uint16_t)w->flags << 32 | (uint32_t)w->priority;
  bool mine = out && w->flags <= UINT16_MAX && kept_possible(c, REROUTE_STREAMS, &number);
  uint64_t stream = mine ? stream_again(number, traits) : 0;
  CUresult r = CUDA_SUCCESS;
  if (stream) {
    *out = (CUstream)(uintptr_t)stream;
    c->flags |= WEIR_EVF_CACHED;
    return r;
  }
  WEIR_WITH_RELIEF(c, r, 0, stream_get(w, out));
  if (mine && r == CUDA_SUCCESS) kept_made(&streams, (uint64_t)(uintptr_t)*out, number, traits);
  return r;
}

cudaError_t reroute_cudaStreamCreate(hook_call *c, cudaError_t (*real)(cudaStream_t *),
                                     cudaStream_t *stream)
{
  return (cudaError_t)make_stream(c, &(stream_way){.plain = (CUresult(*)(CUstream *))real}, stream);
}

CUresult reroute_cuStreamCreate(hook_call *c, CUresult (*real)(CUstream *, unsigned),
                                CUstream *stream, unsigned flags)
{
  return make_stream(c, &(stream_way){.flagged = real, .flags = flags}, stream);
}

CUresult reroute_cuStreamCreateWithPriority(hook_call *c,
                                            CUresult (*real)(CUstream *, unsigned, int),
                                            CUstream *stream, unsigned flags, int priority)
{
  return make_stream(c, &(stream_way){.ranked = real, .flags = flags, .priority = priority},
                     stream);
}

/* One that is kept has its work as before, which nothing has to mark. */
CUresult reroute_cuStreamDestroy(hook_call *c, CUresult (*real)(CUstream), CUstream stream)
{
  uint64_t handle = (uint64_t)(uintptr_t)stream;
  bool possible = reroute_may(REROUTE_STREAMS) && !reroute_hands_off();
  switch (kept_any(&streams) ? kept_ended(&streams, handle, possible) : KEPT_NOT) {
  case KEPT_NOW:
    c->flags |= WEIR_EVF_CACHED;
    return CUDA_SUCCESS;
  case KEPT_TWICE:
    return CUDA_ERROR_INVALID_HANDLE;
  default:
    kept_stream_gone(handle);
    stream_ends(handle);
    return real(stream);
  }
}

CUresult reroute_cuStreamSetAttribute(
    hook_call *c, CUresult (*real)(CUstream, CUstreamAttrID, const CUstreamAttrValue *),
    CUstream stream, CUstreamAttrID attribute, const CUstreamAttrValue *value)
{
  (void)c;
  (void)kept_mark(&streams, (uint64_t)(uintptr_t)stream, KEPT_SPOILT, 0);
  return real(stream, attribute, value);
}

CUresult reroute_cuStreamCopyAttributes(hook_call *c, CUresult (*real)(CUstream, CUstream),
                                        CUstream to, CUstream from)
{
  (void)c;
  (void)kept_mark(&streams, (uint64_t)(uintptr_t)to, KEPT_SPOILT, 0);
  return real(to, from);
}

CUresult reroute_cuStreamAttachMemAsync(hook_call *c,
                                        CUresult (*real)(CUstream, CUdeviceptr, size_t, unsigned),
                                        CUstream stream, CUdeviceptr at, size_t bytes,
                                        unsigned flags)
{
  (void)c;
  (void)kept_mark(&streams, (uint64_t)(uintptr_t)stream, KEPT_SPOILT, 0);
  return real(stream, at, bytes, flags);
}

/* The id of a stream that was made for it and has ended; 0: none can be had. */
static uint64_t new_stream_id(CUresult (*ask)(CUstream, unsigned long long *))
{
  PFN_cuStreamCreate_v2000 make = WEIR_HELPER(cuStreamCreate);
  PFN_cuStreamDestroy_v4000 end = WEIR_HELPER(cuStreamDestroy_v2);
  unsigned long long id = 0;
  CUstream s;
  if (!make || !end || make(&s, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) return 0;
  if (ask(s, &id) != CUDA_SUCCESS) id = 0;
  (void)end(s);
  return id;
}

static CUresult stream_id(CUresult (*real)(CUstream, unsigned long long *), CUstream stream,
                          unsigned long long *id)
{
  uint64_t handle = (uint64_t)(uintptr_t)stream;
  CUresult r = real(stream, id);
  if (r != CUDA_SUCCESS || !(kept_bits(&streams, handle) & KEPT_PRISTINE)) return r;
  hash_entry *e = hash_table_find(&stream_ids, handle);
  uint64_t own = e ? atomic_load(&e->x) : new_stream_id(real);
  if (!e && own) (void)hash_table_put(&stream_ids, handle, own, 1);
  if (own) *id = own;
  return r;
}

CUresult handle_cuStreamGetId(CUresult (*real)(CUstream, unsigned long long *), CUstream stream,
                              unsigned long long *id)
{
  return stream_id(real, stream, id);
}

CUresult handle_cuStreamGetId_ptsz(CUresult (*real)(CUstream, unsigned long long *),
                                   CUstream stream, unsigned long long *id)
{
  return stream_id(real, stream, id);
}

/* A green context shares the memory of its device's primary context and has streams of its own:
 * what they do is noted for another context than the one that the memory is in. */
static void to_green_context(void)
{
  work_note_unknown("the program uses green contexts");
}

CUresult reroute_cuGreenCtxStreamCreate(hook_call *c,
                                        CUresult (*real)(CUstream *, CUgreenCtx, unsigned, int),
                                        CUstream *stream, CUgreenCtx green, unsigned flags,
                                        int priority)
{
  (void)c;
  to_green_context();
  return real(stream, green, flags, priority);
}

CUresult reroute_cuCtxFromGreenCtx(hook_call *c, CUresult (*real)(CUcontext *, CUgreenCtx),
                                   CUcontext *context, CUgreenCtx green)
{
  (void)c;
  to_green_context();
  return real(context, green);
}
