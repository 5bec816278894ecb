/* event_fill.c: see event_fill.h. */
#include "interpose/record/event_fill.h"

#include "interpose/process/process.h"

_Atomic uint32_t weir_called[WEIR_SPOOL_MAX_APIS];

void weir_called_first(uint16_t api, uint32_t epoch)
{
  atomic_store_explicit(&weir_called[api], epoch, memory_order_relaxed);
  weir_cover(api, WEIR_COVER_CALLED);
}
