/* told.c: see told.h. The weak symbol is the preload library's, which the loader puts first. */
#include "core/memory/told.h"

#pragma weak weir_note_engine

const weir_listener *weir_listening;

void weir_told_start(void)
{
  if (weir_note_engine)
    __atomic_store_n(&weir_listening, weir_note_engine(WEIR_LISTENER_VERSION), __ATOMIC_RELEASE);
}

unsigned weir_told_status(weir_status st)
{
  switch (st) {
  case WEIR_OK:
    return 0;
  case WEIR_EINVAL:
    return 1; /* cudaErrorInvalidValue */
  case WEIR_EOOM:
    return 2; /* cudaErrorMemoryAllocation */
  default:
    return 999; /* cudaErrorUnknown */
  }
}
