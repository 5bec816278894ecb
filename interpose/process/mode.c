/* mode.c: see mode.h. */
#include "interpose/process/mode.h"

_Atomic uint8_t process_mode;
_Atomic unsigned process_reroutes = REROUTE_DEFAULT;
_Atomic unsigned process_left;
