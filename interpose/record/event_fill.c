/* event_fill.c: see event_fill.h. */
#include "interpose/record/event_fill.h"

#include "interpose/process/process.h"

_Atomic uint32_t called_epochs[WEIR_SPOOL_MAX_APIS];

void coverage_first_call(uint16_t api, uint32_t epoch)
{
  atomic_store_explicit(&called_epochs[api], epoch, memory_order_relaxed);
  coverage_add(api, WEIR_COVER_CALLED);
}
