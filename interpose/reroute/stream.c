/* stream.c: the program's own waits, which settle what its frees did not wait for, and
 * streams that end or that are in no context of their own. */
#include "interpose/reroute/context_cache.h"

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

CUresult reroute_cuStreamDestroy(hook_call *c, CUresult (*real)(CUstream), CUstream stream)
{
  (void)c;
  stream_ends((uint64_t)(uintptr_t)stream);
  return real(stream);
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
