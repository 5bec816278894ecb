/* stream.c: the program's own waits, which settle what its frees did not wait for, and
 * streams that end or that are in no context of their own. */
#include "interpose/reroute/within.h"

#include "interpose/reroute/poison.h"
#include "interpose/record/work.h"

/* The program's own wait for a context settles all that was waiting, and old memory can go back, at
 * no cost. */
CUresult weir_r_sync(weir_call *c, CUresult (*real)(void))
{
  weir_moment m;
  (void)c;
  weir_context_refresh(&weir_self);
  unsigned n = weir_self.last_context_number;
  bool tell = weir_mode_now() == WEIR_RELAXED && n;
  if (tell) weir_moment_begin(&m, n);
  CUresult r = real();
  if (r == CUDA_SUCCESS && tell) weir_moment_over(&m);
  if (r == CUDA_SUCCESS && n && !weir_route_hands_off()) {
    weir_caches_age(n);
    weir_stage_peer_waited();
  }
  weir_route_saw((int)r);
  if (weir_fill_use == WEIR_FILL_POISON) weir_poison_poll();
  return r;
}

/* Ahead of the end of a stream that may have work: all caches of the context mark it. */
static void stream_ends(uint64_t stream)
{
  weir_context_refresh(&weir_self);
  unsigned n = weir_self.last_context_number;
  if (weir_mode_now() != WEIR_RELAXED || stream <= WEIR_STREAM_PER_THREAD || !n ||
      n >= WEIR_CACHES - 1)
    return;
  bool busy = weir_work_busy(n, stream);
  weir_status st = weir_caches_stream_ends(n, (void *)(uintptr_t)stream, busy);
  if (st) weir_work_unseen("a stream with work ended and could not be marked");
  weir_work_forget_stream(n, stream);
}

CUresult weir_r_cuStreamDestroy(weir_call *c, CUresult (*real)(CUstream), CUstream stream)
{
  (void)c;
  stream_ends((uint64_t)(uintptr_t)stream);
  return real(stream);
}

/* A green context shares the memory of its device's primary context and has streams of its own:
 * what they do is noted for another context than the one that the memory is in. */
static void goes_green(void)
{
  weir_work_unseen("the program uses green contexts");
}

CUresult weir_r_cuGreenCtxStreamCreate(weir_call *c,
                                       CUresult (*real)(CUstream *, CUgreenCtx, unsigned, int),
                                       CUstream *stream, CUgreenCtx green, unsigned flags,
                                       int priority)
{
  (void)c;
  goes_green();
  return real(stream, green, flags, priority);
}

CUresult weir_r_cuCtxFromGreenCtx(weir_call *c, CUresult (*real)(CUcontext *, CUgreenCtx),
                                  CUcontext *context, CUgreenCtx green)
{
  (void)c;
  goes_green();
  return real(context, green);
}
