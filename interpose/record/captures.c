/* captures.c: see captures.h. Two counters exclude steps and captures: who makes a step counts it,
 * then looks whether a capture is counted; who begins a capture counts it, then looks whether a
 * step is. At least one of the two sees the other: a step gives way, a begin waits. Only steps and
 * begins touch them.
 *
 * A begin waits for BEGIN_WAITS_NS at most. What is still under way then is inside of the driver,
 * after its own look at the captures: a wait for a context from the time before the first begin
 * (reroute/device.c), or a call that the driver holds up. The work that it waits for may need what
 * this thread does next. */
#include "interpose/record/captures.h"

#include <errno.h>
#include <sched.h>
#include <time.h>
#include "core/base/clock.h"
#include "interpose/record/context.h"
#include "interpose/record/subscriber.h"

enum { SPINS = 256, YIELDS = 64, PAUSE_NS = 20000 };
#define BEGIN_WAITS_NS UINT64_C(1000000000)

_Atomic uint32_t capture_count;
static _Atomic uint32_t steps; /* under way */
static _Atomic bool ever;

#define OWN static __thread __attribute__((tls_model("initial-exec")))
OWN uint32_t own_steps;     /* of `steps`: this thread's */
OWN uintptr_t beginning_at; /* where on the stack the call is that begins a capture; 0: none */
OWN uintptr_t ending_at;    /* that ends one */

bool capture_ever(void)
{
  return atomic_load(&ever);
}

/* ---- the program's begins and ends ----------------------------------------------------------- */

/* True: no call further out on the stack is at it. A stack grows down; what was left by longjmp()
 * is below. */
static bool outermost(uintptr_t *at)
{
  uintptr_t here = (uintptr_t)__builtin_frame_address(0);
  if (*at && here < *at) return false;
  *at = here;
  return true;
}

static bool others_in_step(void)
{
  return atomic_load(&steps) > own_steps;
}

/* A handler that interrupted a step of this thread's does not wait for that. */
__attribute__((noinline)) static void wait_for_steps(void)
{
  struct timespec pause = {0, PAUSE_NS};
  int saved = errno;
  for (int i = 0; i < SPINS && others_in_step(); i++)
    __asm__ volatile("" ::: "memory");
  for (int i = 0; i < YIELDS && others_in_step(); i++)
    (void)sched_yield();
  uint64_t start = clock_monotonic_ns();
  while (others_in_step() && clock_monotonic_ns() - start < BEGIN_WAITS_NS)
    (void)nanosleep(&pause, NULL);
  errno = saved;
}

bool capture_begins(void)
{
  if (!outermost(&beginning_at)) return false;
  atomic_fetch_add(&capture_count, 1);
  atomic_store(&ever, true);
  if (others_in_step()) wait_for_steps();
  return true;
}

static void decrement_captures(void)
{
  uint32_t n = atomic_load(&capture_count);
  while (n && !atomic_compare_exchange_weak(&capture_count, &n, n - 1))
    ;
}

void capture_begun(bool counted, uint32_t status)
{
  if (!counted) return;
  beginning_at = 0;
  if (status) decrement_captures();
}

bool capture_ends(void)
{
  return outermost(&ending_at);
}

/* The driver's answer about a stream; `otherwise` where it has none. */
static CUstreamCaptureStatus capture_status(uint64_t stream, CUstreamCaptureStatus otherwise)
{
  CUstreamCaptureStatus status = otherwise;
  PFN_cuStreamIsCapturing_v10000 ask = WEIR_HELPER(cuStreamIsCapturing);
  bool answered = ask && ask((CUstream)(uintptr_t)stream, &status) == CUDA_SUCCESS;
  return answered ? status : otherwise;
}

bool capture_is_active(uint64_t stream)
{
  return capture_status(stream, CU_STREAM_CAPTURE_STATUS_NONE) == CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

static bool stream_capture_over(uint64_t stream)
{
  return capture_status(stream, CU_STREAM_CAPTURE_STATUS_ACTIVE) == CU_STREAM_CAPTURE_STATUS_NONE;
}

/* A capture ends by success, by the error that means that it had been invalidated, and by the one
 * that means that a stream did not join ("failure of the overall capture operation", CUDA C++
 * Programming Guide). Its graph may use what is live now: no free of that is to find no capture
 * counted and the block not marked yet. */
void capture_ended(bool counted, bool owner, uint32_t status, uint64_t stream)
{
  if (!counted) return;
  ending_at = 0;
  bool over = status == CUDA_SUCCESS || status == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED ||
              (status == CUDA_ERROR_STREAM_CAPTURE_UNJOINED && stream_capture_over(stream));
  if (status == CUDA_SUCCESS) record_subscriber_now()->graph_made(owner);
  if (over) decrement_captures();
}

void capture_forked(void)
{
  if (atomic_load(&steps)) atomic_store(&steps, 0);
  own_steps = 0;
  beginning_at = ending_at = 0;
}

/* ---- Weir's own ------------------------------------------------------------------------------ */

bool capture_step_begin(void)
{
  own_steps++;
  atomic_fetch_add(&steps, 1);
  if (__builtin_expect(atomic_load(&capture_count) == 0, 1)) return true;
  capture_step_end();
  return false;
}

void capture_step_end(void)
{
  atomic_fetch_sub(&steps, 1);
  own_steps--;
}

capture_relaxed capture_relax(void)
{
  PFN_cuThreadExchangeStreamCaptureMode_v10010 exchange =
      WEIR_HELPER(cuThreadExchangeStreamCaptureMode);
  capture_relaxed r = {.was = CU_STREAM_CAPTURE_MODE_RELAXED};
  r.changed = exchange && exchange(&r.was) == CUDA_SUCCESS;
  return r;
}

void capture_relax_end(const capture_relaxed *r)
{
  PFN_cuThreadExchangeStreamCaptureMode_v10010 exchange =
      WEIR_HELPER(cuThreadExchangeStreamCaptureMode);
  CUstreamCaptureMode was = r->was;
  if (r->changed && exchange) (void)exchange(&was);
}
