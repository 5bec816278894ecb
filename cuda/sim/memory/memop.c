/* memop.c: stream memory operations: a stream writes a value to memory, or waits until memory holds
 * one. Who writes what is waited for may be a stream, a kernel or the host ("synchronization
 * ordering established through this API is not visible to CUDA"), so the worker looks again and
 * again. */
#include "cuda/sim/internal.h"

#include <time.h>

#define LOOK_NS 20000

struct mem_op {
  struct sim_op op;
  uintptr_t address;
  uint64_t value;
  unsigned flags; /* of a wait: the condition */
  bool wide;      /* 64 bits */
  uint64_t seen;  /* what the last look found */
};

/* ---- doing it -------------------------------------------------------------------------------- */

static void mem_op_store(void *argument)
{
  struct mem_op *m = argument;
  if (m->wide)
    atomic_store((_Atomic uint64_t *)m->address, m->value);
  else
    atomic_store((_Atomic uint32_t *)m->address, (uint32_t)m->value);
}

static void mem_op_load(void *argument)
{
  struct mem_op *m = argument;
  m->seen = m->wide ? atomic_load((_Atomic uint64_t *)m->address)
                    : atomic_load((_Atomic uint32_t *)m->address);
}

static void run_write(struct sim_op *op, CUstream s)
{
  CUresult error = CUDA_SUCCESS;
  if (!sim_guard_run(mem_op_store, op, &error)) sim_context_fail(s->context, error);
}

static bool condition_holds(const struct mem_op *m)
{
  uint64_t seen = m->seen, value = m->value;
  switch (m->flags) {
  case CU_STREAM_WAIT_VALUE_GEQ: /* cyclic: (int32_t)(*addr - value) >= 0 */
    return m->wide ? (int64_t)(seen - value) >= 0 : (int32_t)(uint32_t)(seen - value) >= 0;
  case CU_STREAM_WAIT_VALUE_EQ:
    return seen == value;
  case CU_STREAM_WAIT_VALUE_AND:
    return (seen & value) != 0;
  default: /* NOR: ~(*addr | value) != 0 */
    return m->wide ? ~(seen | value) != 0 : (uint32_t) ~(seen | value) != 0;
  }
}

static void run_wait(struct sim_op *op, CUstream s)
{
  const struct timespec pause = {0, LOOK_NS};
  struct mem_op *m = (struct mem_op *)op;
  CUresult error = CUDA_SUCCESS;
  while (!atomic_load(&s->context->error)) {
    if (!sim_guard_run(mem_op_load, m, &error)) {
      sim_context_fail(s->context, error);
      return;
    }
    if (condition_holds(m)) return;
    nanosleep(&pause, NULL);
  }
}

/* ---- queueing it ----------------------------------------------------------------------------- */

/* "This function cannot be used with managed memory." */
static bool address_is_good(CUdeviceptr p, size_t bytes)
{
  uint32_t readers, writers;
  if (!p || p % bytes) return false;
  SIM_HOLD(sim_memory_lock);
  struct sim_range *r = sim_range_reach(p, bytes, &readers, &writers);
  bool good = r && r->kind != SIM_MANAGED && !r->absent;
  return good;
}

static CUresult mem_op_new(CUdeviceptr p, uint64_t value, unsigned flags, bool wide, bool wait,
                           struct sim_op **op)
{
  if (wait && flags & CU_STREAM_WAIT_VALUE_FLUSH) return CUDA_ERROR_NOT_SUPPORTED;
  if (flags > (wait ? CU_STREAM_WAIT_VALUE_NOR : CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER))
    return CUDA_ERROR_INVALID_VALUE;
  if (!address_is_good(p, wide ? 8 : 4)) return CUDA_ERROR_INVALID_VALUE;
  struct mem_op *m = sim_op_new(sizeof *m, wait ? run_wait : run_write);
  if (!m) return CUDA_ERROR_OUT_OF_MEMORY;
  m->address = p;
  m->value = wide ? value : (uint32_t)value;
  m->flags = flags;
  m->wide = wide;
  *op = &m->op;
  return CUDA_SUCCESS;
}

static CUresult mem_op_queue(CUstream stream, CUdeviceptr p, uint64_t value, unsigned flags,
                             bool wide, bool wait)
{
  CUstream s;
  struct sim_op *op;
  CUresult error = sim_stream_find(stream, &s);
  if (!error) error = mem_op_new(p, value, flags, wide, wait, &op);
  return error ? error : sim_submit(s, op, SIM_QUEUE, NULL);
}

SIM_ENTRY(cuStreamWaitValue32_v2, mem_op_queue(stream, addr, value, flags, false, true))
SIM_ENTRY(cuStreamWaitValue64_v2, mem_op_queue(stream, addr, value, flags, true, true))
SIM_ENTRY(cuStreamWriteValue32_v2, mem_op_queue(stream, addr, value, flags, false, false))
SIM_ENTRY(cuStreamWriteValue64_v2, mem_op_queue(stream, addr, value, flags, true, false))

static CUresult one_of_batch(const CUstreamBatchMemOpParams *p, struct sim_op **op)
{
  switch ((int)p->operation) {
  case CU_STREAM_MEM_OP_WAIT_VALUE_32:
    return mem_op_new(p->waitValue.address, p->waitValue.value, p->waitValue.flags, false, true,
                      op);
  case CU_STREAM_MEM_OP_WAIT_VALUE_64:
    return mem_op_new(p->waitValue.address, p->waitValue.value64, p->waitValue.flags, true, true,
                      op);
  case CU_STREAM_MEM_OP_WRITE_VALUE_32:
    return mem_op_new(p->writeValue.address, p->writeValue.value, p->writeValue.flags, false, false,
                      op);
  case CU_STREAM_MEM_OP_WRITE_VALUE_64:
    return mem_op_new(p->writeValue.address, p->writeValue.value64, p->writeValue.flags, true,
                      false, op);
  case CU_STREAM_MEM_OP_BARRIER: /* every operation here is one */
    *op = sim_op_new(sizeof **op, NULL);
    return *op ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
  case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
    return CUDA_ERROR_NOT_SUPPORTED;
  default:
    return CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult sim_cuStreamBatchMemOp_v2(CUstream stream, unsigned int count,
                                   CUstreamBatchMemOpParams *list, unsigned int flags)
{
  const struct sim_ticket none = {0};
  CUstream s;
  uint64_t seq;
  if (!count || count >= 256 || !list || flags) return CUDA_ERROR_INVALID_VALUE;
  CUresult error = sim_stream_find(stream, &s);
  struct sim_op *first = NULL, **end = &first;
  for (unsigned i = 0; i < count && !error; i++) {
    error = one_of_batch(&list[i], end);
    if (!error) end = &(*end)->next;
  }
  if (!error) return sim_submit_all(s, first, &none, &seq);
  for (struct sim_op *next; first; first = next) {
    next = first->next;
    sim_op_free(first);
  }
  return error;
}
