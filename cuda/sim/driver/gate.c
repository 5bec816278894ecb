/* gate.c: what a call meets that is not let through at once.
 *
 * The fast path is inline (sim_enter): one counter of the thread's own, one look at the gates, one
 * at the context's sticky error. All that is unusual sets a bit of sim_gate and comes here. */
#include "cuda/sim/internal.h"

#include <stdio.h>

CUresult sim_not_supported(unsigned api, bool done)
{
  static _Atomic bool reported[SIM_API_COUNT];
  char text[400];
  if (atomic_exchange(&reported[api], true)) return CUDA_ERROR_NOT_SUPPORTED;
  const char *how = done ? "does not do what it was asked" : "is not done by the software device";
  (void)snprintf(text, sizeof text, "weir sim: %s %s: answers 801 (CUDA_ERROR_NOT_SUPPORTED)",
                 sim_api_names[api], how);
  sim_print_and_note(text);
  return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult sim_enter_slow(struct sim_thread *t, unsigned api, enum sim_level level)
{
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, sim_control_start); /* no call before cuInit's passes but through here */
  uint32_t gate = atomic_load(&sim_gate);
  if (level != SIM_STATELESS) {
    /* cuLaunchHostFunc: "Host functions must not make any CUDA API calls ... NOT_PERMITTED" */
    if (t->gate & SIM_GATE_CALLBACK) return CUDA_ERROR_NOT_PERMITTED;
    if (gate & SIM_GATE_FORKED) return CUDA_ERROR_NOT_INITIALIZED;
    if ((gate & SIM_GATE_UNINITIALISED) && api != SIM_API_cuInit) return CUDA_ERROR_NOT_INITIALIZED;
  }
  CUresult error = sim_enter_context(t, level);
  if (error) return error;
  if (!(gate & SIM_GATE_FAIL)) return CUDA_SUCCESS;
  CUresult injected = sim_control_fail(api);
  if (injected && t->current && sim_error_sticks(injected)) sim_context_fail(t->current, injected);
  return injected;
}
