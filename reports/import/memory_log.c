/* memory_log.c: see memory_log.h. */
#include "reports/import/memory_log.h"
#include "core/trace/event.h"

_Static_assert(offsetof(wr_memory_event, id) == offsetof(wr_logged, id) &&
                   offsetof(wr_memory_event, time) == offsetof(wr_logged, time),
               "a memory event begins as what is logged does");

void wr_memory_drop(wr_memory_log *log)
{
  wr_run_drop(log);
}

static bool is_memory_event(const trace_event *e)
{
  return !e->status && !(e->flags & WEIR_EVF_CAPTURE) &&
         (e->kind == WEIR_EV_ALLOC || e->kind == WEIR_EV_FREE || e->kind == WEIR_EV_RESET ||
          e->kind == WEIR_EV_HOSTREG);
}

void wr_memory_keep(wr_memory_log *log, const wr_taken *x)
{
  const trace_event *e = x->e;
  if (log->incomplete || !is_memory_event(e)) return;
  if (x->who.thread > INT32_MAX) {
    wr_run_drop(log);
    return;
  }
  bool begins = e->kind == WEIR_EV_ALLOC || (e->kind == WEIR_EV_HOSTREG && e->bytes);
  int mem = e->mem & 15;
  wr_memory_event k = {.id = x->id,
                       .time = begins ? x->end : x->start,
                       .pointer = (int64_t)e->a,
                       .bytes = (int64_t)e->bytes,
                       .process = (int32_t)x->who.process,
                       .thread = (int32_t)x->who.thread,
                       .kind = e->kind,
                       .context = (uint8_t)(e->stack >> 24),
                       .mem = mem <= WEIR_MEM_IMPORTED ? (uint8_t)mem : WEIR_MEM_UNKNOWN,
                       .device = e->device};
  log->size = sizeof(k);
  wr_run_keep(log, (const wr_logged *)(const void *)&k);
}

weir_status wr_memory_each(wr_memory_log *log,
                           weir_status (*take)(void *context, const void *event), void *context)
{
  log->size = sizeof(wr_memory_event);
  return wr_run_each(log, take, context);
}
