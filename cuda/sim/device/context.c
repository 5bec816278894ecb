/* context.c: a context's record: who holds it, and the error that stays with it. What it contains
 * is made and ended by driver/context.c. */
#include "cuda/sim/internal.h"

void sim_context_ref(CUcontext c)
{
  atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);
}

void sim_context_unref(CUcontext c)
{
  if (atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) != 1) return;
  pthread_mutex_destroy(&c->lock);
  sim_arena_free(&sim_contexts, c);
}

bool sim_error_sticks(CUresult error)
{
  switch ((int)error) {
  case CUDA_ERROR_ECC_UNCORRECTABLE:
  case CUDA_ERROR_NVLINK_UNCORRECTABLE:
  case CUDA_ERROR_ILLEGAL_ADDRESS:
  case CUDA_ERROR_LAUNCH_TIMEOUT:
  case CUDA_ERROR_ASSERT:
  case CUDA_ERROR_HARDWARE_STACK_ERROR:
  case CUDA_ERROR_ILLEGAL_INSTRUCTION:
  case CUDA_ERROR_MISALIGNED_ADDRESS:
  case CUDA_ERROR_INVALID_ADDRESS_SPACE:
  case CUDA_ERROR_INVALID_PC:
  case CUDA_ERROR_LAUNCH_FAILED:
    return true;
  default:
    return false;
  }
}

void sim_context_fail(CUcontext c, CUresult error)
{
  int none = CUDA_SUCCESS;
  atomic_compare_exchange_strong(&c->error, &none, (int)error);
}

CUresult sim_context_check(CUcontext c)
{
  if (!sim_arena_has(&sim_contexts, c)) return CUDA_ERROR_INVALID_CONTEXT;
  return atomic_load(&c->error) == CUDA_ERROR_CONTEXT_IS_DESTROYED ? CUDA_ERROR_CONTEXT_IS_DESTROYED
                                                                   : CUDA_SUCCESS;
}
