/* trace.h: what a program does with memory, written down by the library itself: blocks, and tensors
 * by name and module. Included by weir.h.
 *
 * Under `weir run` all of this is in the run's trace without a word of the program's: tensors
 * report themselves when somebody listens, and cost one branch when nobody does. weir_trace_start()
 * is for programs that run without it. `weir report` reads either.
 *
 * A tensor is known by its name (weir_tensor_set_name), which for a module's parameters is its path
 * ("conv1.weight"), and by the modules that the thread was in when it was made. */
#ifndef WEIR_TRACE_H
#define WEIR_TRACE_H

#include "core/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Writes what the engine does, from now on and of all threads, to a new file `path` (a spool) that
 * is there after weir_trace_stop(); before, and after a crash, it is in a folder
 * .weir-trace-XXXXXX next to it. In it: allocations and frees of device and page-locked memory, and
 * tensors, also of the cpu. Not in it: copies, kernels and waits, which `weir run` sees. Where the
 * process runs under Weir already, that trace has all of this: nothing is written here, and `path`
 * is not made. A forked child writes nothing. Errors: EINVAL (started already; a path that cannot
 * be), ENOENT, EIO (it exists), ENOSPC. */
WEIR_PUBLIC weir_status weir_trace_start(const char *path);
/* Ends it. Errors: EINVAL (not started), EIO. */
WEIR_PUBLIC weir_status weir_trace_stop(void);

/* The calling thread enters a module (borrowed until the pop), in which what it allocates is
 * counted: a forward pass of "net" that calls its layer "conv1" is in "net.conv1". Weir's modules
 * do this themselves. Beyond 32 levels names are left out. */
WEIR_PUBLIC void weir_module_path_push(const char *name);
WEIR_PUBLIC void weir_module_path_pop(void);

#ifdef __cplusplus
}
#endif

#endif
