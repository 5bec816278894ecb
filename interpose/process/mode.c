/* mode.c: see mode.h. */
#include "interpose/process/mode.h"

#include "interpose/process/thread.h"

_Atomic uint8_t process_mode;
_Atomic unsigned process_reroutes = REROUTE_DEFAULT;
_Atomic unsigned process_left;
bool process_unrecorded;
