/* notify.h: who listens to the engine: the preload library (core/trace/listener.h), the program by
 * a callback of its own (weir_memory_set_callback), the library's own trace (weir_trace_start).
 *
 * Nobody listens: one pointer is NULL, and a call costs one branch. Whoever finds it set loads it
 * once and uses that: it may change at any time, and what it pointed to stays good. */
#ifndef WEIR_TRACE_NOTIFY_H
#define WEIR_TRACE_NOTIFY_H

#include <stdatomic.h>
#include <stddef.h>
#include "core/base/status.h"
#include "core/trace/listener.h"

struct segment_watch;

extern const engine_listener *active_listener; /* static; NULL: nobody */

/* Looks for the preload library; any thread, any number of times. */
void notify_start(void);
/* Returns the preload library's listener, which alone learns what the engine has from the driver;
 * NULL: no such library is loaded. */
const engine_listener *notify_preload(void);

/* What a trace calls the outcome: the number of the CUDA error of the same meaning. */
unsigned notify_status(weir_status st);

/* The library's own trace, NULL: none; static. Refused (false) where the preload library listens.
 */
bool notify_record(const engine_listener *own);

/* The program's callback; NULL: none. */
extern _Atomic(struct segment_watch *) memory_watch;
/* Memory came from the device (below 0: pinned host memory), or is about to go back. */
void notify_segment(int device, bool came, uint64_t address, uint64_t bytes);

#endif
