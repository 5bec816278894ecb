/* fault.c: a twin or a copy that touches memory it may not ends itself, not the program.
 *
 * While a worker runs a twin or a copy, a guard is set for its thread. A SIGSEGV, SIGBUS, SIGFPE or
 * SIGILL there jumps back and becomes the CUDA error that sticks to the context. Anywhere else the
 * handler that the program had before ours is called as if ours were not there. The handlers are
 * installed when the first guard is set, and change no signal mask, so a jump restores none. */
#include "cuda/sim/internal.h"

#include <signal.h>
#include <stdlib.h>

__thread struct sim_guard *sim_guard __attribute__((tls_model("initial-exec")));

static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
#define SIGNALS     (sizeof signals / sizeof *signals)
#define STACK_BYTES ((size_t)64 << 10)
static struct sigaction before[SIGNALS];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static CUresult error_of(int signal)
{
  return signal == SIGILL   ? CUDA_ERROR_ILLEGAL_INSTRUCTION
         : signal == SIGFPE ? CUDA_ERROR_LAUNCH_FAILED
                            : CUDA_ERROR_ILLEGAL_ADDRESS;
}

static void handler(int signal, siginfo_t *info, void *context)
{
  struct sim_guard *guard = sim_guard;
  if (guard) {
    sim_guard = NULL;
    guard->error = error_of(signal);
    siglongjmp(guard->out, 1);
  }
  size_t i = 0;
  while (i < SIGNALS - 1 && signals[i] != signal)
    i++;
  const struct sigaction *old = &before[i];
  if (old->sa_flags & SA_SIGINFO) {
    old->sa_sigaction(signal, info, context);
  } else if (old->sa_handler != SIG_DFL && old->sa_handler != SIG_IGN) {
    old->sa_handler(signal);
  } else {
    sigaction(signal, old, NULL); /* the fault repeats on return and ends the process as it would */
    if (info->si_code <= 0) (void)raise(signal); /* sent, not caused: it would not repeat */
  }
}

static void install(void)
{
  struct sigaction action = {.sa_sigaction = handler,
                             .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
  sigemptyset(&action.sa_mask);
  for (size_t i = 0; i < SIGNALS; i++)
    sigaction(signals[i], &action, &before[i]);
}

/* A twin that overruns its stack must leave the handler one. */
void sim_guard_stack(void)
{
  void *memory = sim_self ? malloc(STACK_BYTES) : NULL;
  if (!memory) return;
  stack_t on = {.ss_sp = memory, .ss_size = STACK_BYTES};
  sim_self->fault_stack = memory;
  sigaltstack(&on, NULL);
}

void sim_guard_unstack(void)
{
  if (!sim_self || !sim_self->fault_stack) return;
  stack_t off = {.ss_flags = SS_DISABLE};
  sigaltstack(&off, NULL);
  free(sim_self->fault_stack);
  sim_self->fault_stack = NULL;
}

/* Runs f(argument) under a guard; false, and *error, when it faulted or trapped. A guard that is
 * set already (a twin that copies) stays the one that answers. */
bool sim_guard_run(void (*f)(void *), void *argument, CUresult *error)
{
  pthread_once(&once, install);
  struct sim_guard guard;
  struct sim_guard *outer = sim_guard;
  guard.error = CUDA_SUCCESS;
  if (sigsetjmp(guard.out, 0)) {
    sim_guard = outer;
    *error = guard.error;
    return false;
  }
  sim_guard = &guard;
  f(argument);
  sim_guard = outer;
  return true;
}

__attribute__((visibility("default"))) int weir_sim_trap(int error)
{
  struct sim_guard *guard = sim_guard;
  if (!guard) return -1;
  guard->error = error ? (CUresult)error : CUDA_ERROR_ILLEGAL_ADDRESS;
  siglongjmp(guard->out, 1);
}
