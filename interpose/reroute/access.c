/* access.c: peer access, where the user asks for it (REROUTE_ACCESS): at a program's first copy
 * between two devices, in each for the other, as far as they can. From then on the driver copies
 * directly, and memory of one can be reached from the other.
 *
 * The program is not to notice: what it enables later itself succeeds, as it would have, and what
 * it disables without having enabled it fails. */
#include "interpose/process/process.h"
#include "interpose/record/context.h"
#include "interpose/record/pointers.h"
#include "interpose/reroute/access.h"
#include "interpose/reroute/reroute.h"

#include <stdio.h>

enum { CONTEXTS = 256 };

enum { UNMET, MET, OURS }; /* MET: nothing is to be done; OURS: enabled here, not by the program */

static _Atomic uint8_t access_states[CONTEXTS][CONTEXTS]; /* [of][to], by numbers */

/* In a context whose memory is to reach the other's; the driver's answer. */
static CUresult enable_access(CUcontext in, unsigned device, CUcontext to, unsigned to_device)
{
  PFN_cuDeviceCanAccessPeer_v4000 can = WEIR_HELPER(cuDeviceCanAccessPeer);
  PFN_cuCtxEnablePeerAccess_v4000 enable = WEIR_HELPER(cuCtxEnablePeerAccess);
  PFN_cuCtxPushCurrent_v4000 push = WEIR_HELPER(cuCtxPushCurrent_v2);
  PFN_cuCtxPopCurrent_v4000 pop = WEIR_HELPER(cuCtxPopCurrent_v2);
  int possible = 0;
  CUcontext was;
  if (!can || !enable || !push || !pop) return CUDA_ERROR_NOT_SUPPORTED;
  if (can(&possible, (CUdevice)device, (CUdevice)to_device) != CUDA_SUCCESS || !possible)
    return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
  if (push(in) != CUDA_SUCCESS) return CUDA_ERROR_INVALID_CONTEXT;
  CUresult r = enable(to, 0);
  (void)pop(&was);
  return r;
}

static void meet(unsigned of, unsigned to)
{
  char text[96];
  uint8_t unmet = UNMET;
  uint64_t in = context_handle(of), other = context_handle(to);
  if (!in || !other) return;
  unsigned device = context_device(in), to_device = context_device(other);
  if (!atomic_compare_exchange_strong(&access_states[of][to], &unmet, MET)) return;
  if (enable_access((CUcontext)(uintptr_t)in, device, (CUcontext)(uintptr_t)other, to_device) !=
      CUDA_SUCCESS)
    return;
  atomic_store(&access_states[of][to], OURS);
  reroute_peers_enabled();
  (void)snprintf(text, sizeof text, REROUTE_NOTE "peer access of device %u to device %u", device,
                 to_device);
  weir_note(text);
}

void peer_access_at_copy(const copy_args *a)
{
  block_tag dst = reroute_tag(a->dst + a->dst_offset), src = reroute_tag(a->src + a->src_offset);
  unsigned one = block_tag_context(dst), other = block_tag_context(src);
  if (!one || !other || one >= CONTEXTS - 1 || other >= CONTEXTS - 1) return;
  if (block_tag_device(dst) == block_tag_device(src)) return;
  if (atomic_load_explicit(&access_states[one][other], memory_order_relaxed) &&
      atomic_load_explicit(&access_states[other][one], memory_order_relaxed))
    return;
  if (reroute_hands_off() || reroute_is_watched() || !process_reroutes_have(REROUTE_ACCESS)) return;
  meet(one, other);
  meet(other, one);
}

void peer_access_context_gone(unsigned number)
{
  if (!process_reroutes_have(REROUTE_ACCESS)) return;
  for (unsigned i = 0; i < CONTEXTS; i++) {
    atomic_store(&access_states[number][i], UNMET);
    atomic_store(&access_states[i][number], UNMET);
  }
}

/* ---- what the program does itself ------------------------------------------------------------ */

/* It was ours, and is the program's now. */
static bool take_over(unsigned to)
{
  uint8_t ours = OURS;
  context_refresh(&thread_self);
  unsigned of = thread_self.last_context_number;
  return of && to && of < CONTEXTS && to < CONTEXTS &&
         atomic_compare_exchange_strong(&access_states[of][to], &ours, MET);
}

CUresult reroute_cuCtxEnablePeerAccess(hook_call *c, CUresult (*real)(CUcontext, unsigned),
                                       CUcontext peer, unsigned flags)
{
  (void)c;
  if (!flags && take_over(context_number((uint64_t)(uintptr_t)peer))) return CUDA_SUCCESS;
  return real(peer, flags);
}

cudaError_t reroute_cudaDeviceEnablePeerAccess(hook_call *c, cudaError_t (*real)(int, unsigned),
                                               int peer, unsigned flags)
{
  (void)c;
  if (!flags && peer >= 0 && take_over(context_primary((unsigned)peer))) return cudaSuccess;
  return real(peer, flags);
}

/* The driver words the error, of access that is not there. */
CUresult reroute_cuCtxDisablePeerAccess(hook_call *c, CUresult (*real)(CUcontext), CUcontext peer)
{
  (void)c;
  if (take_over(context_number((uint64_t)(uintptr_t)peer))) (void)real(peer);
  return real(peer);
}

cudaError_t reroute_cudaDeviceDisablePeerAccess(hook_call *c, cudaError_t (*real)(int), int peer)
{
  (void)c;
  if (peer >= 0 && take_over(context_primary((unsigned)peer))) (void)real(peer);
  return real(peer);
}
