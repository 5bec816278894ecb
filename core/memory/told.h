/* told.h: who listens to the engine (core/trace/listener.h): the preload library, or nobody. */
#ifndef WEIR_MEMORY_TOLD_H
#define WEIR_MEMORY_TOLD_H

#include <stddef.h>
#include "core/base/status.h"
#include "core/trace/listener.h"

extern const weir_listener *weir_listening; /* static; NULL: nobody. Set before there is a pool */

/* Looks for the listener; any thread, any number of times. */
void weir_told_start(void);

/* What a trace calls the outcome: the number of the CUDA error that says the same. */
unsigned weir_told_status(weir_status st);

#endif
