/* control.h: what only the software device can do, for tests and for the runtime stand-in.
 *
 * libcuda.so.1 of the software device export these functions in addition to the driver API; find
 * them with dlsym(), so that a program still starts on a real driver. Streams and modules are the
 * driver's handles (CUstream, CUmodule; a runtime stream is the same number), passed as void
 * pointers so that no CUDA header is needed. Functions returning int return a CUresult (0:
 * success).
 *
 * The environment, read at the first call into the library:
 *   WEIR_SIM_DEVICES=N      number of devices, default 1, at most 32; 0 answers NO_DEVICE
 *   WEIR_SIM_MEMORY=BYTES   capacity of each device (K, M, G suffix), default 8G
 *   WEIR_SIM_MODULE=BYTES   what each loaded module takes of its device in addition to its
 *                           variables
 *   WEIR_SIM_CONTEXT=BYTES  what each context takes; default of both nothing
 *   WEIR_SIM_DRIVER=N       what cuDriverGetVersion returns, default 13000
 *   WEIR_SIM_ATTRIBUTES=LIST
 *                           ATTRIBUTE:VALUE,...: what devices state of themselves, by the numbers
 *                           of CUdevice_attribute, 16 at most; they stay what they are
 *   WEIR_SIM_FAIL=LIST      FUNCTION:CALL=ERROR,...: the CALLth call (from 1) of FUNCTION returns
 *                           ERROR and does nothing; CALL `*` is every call. A sticky error (700 and
 *                           its like) then stays with the calling thread's context. FUNCTION is the
 *                           exported name, version and stream suffix included.
 *   WEIR_SIM_LINK=LIST      DIRECTION:BANDWIDTH[:LATENCY],...: directions h2d d2h d2d p2p h2h;
 *                           bytes a second with K, M, G (powers of 1000), 0 for no limit; latency
 *                           of each copy with ns, us, ms. A link carries one copy at a time.
 *                           Direction `pageable` is the host's own copy of memory that is not
 *                           pinned: a pageable copy takes as long as the slower of it and the link
 *                           (they overlap), and holds the link only for the link's part. A copy
 *                           between devices, in a context without peer access, takes as long as
 *                           the slowest of p2p, d2h and h2d.
 *   WEIR_SIM_CARD=NAME      costs of a real card, a100 or h100: allocations, frees, page-locking,
 *                           access to mappings, launches of kernels and graphs, records of events,
 *                           copies and memsets take as long as published figures state
 *                           (device/card.c has the table); WEIR_SIM_LINK goes before
 *   WEIR_SIM_CUPTI=LIST     how libcupti.so.13 of the software device shall fail, a word each:
 *                             version:N            the version it states it is
 *                             zero-times           under a timestamp callback, times are 0
 *                             reversed-times       work ends before it begins
 *                             lost-device-syncs    cuCtxSynchronize has no record
 *                             disable-hangs        to disable kernels never comes back
 *                             finalize-crashes     cuptiFinalize after the launch of a graph
 *                             null-buffer-crashes  a client gives no buffer
 *                             flush-hangs          cuptiActivityFlushAll never comes back
 *                             subscribed           another tool has the one subscription
 *                             allocates            it takes device memory for itself
 *                             sharing-stays        (version 130200 and later) where subscribers
 *                                                  have allowed others, none may be alone before
 *                                                  cuptiFinalize
 *                             enable:RESULT        cuptiActivityEnable answers this CUptiResult
 *                             drop:N               each Nth record is lost, and counted as such
 *   WEIR_SIM_QUEUE=N        a stream holds N operations that are not done, and a call that queues
 *                           one more returns when there is room; default no limit
 *   CUDA_LAUNCH_BLOCKING=1  launches wait for their kernel, and return its error
 *   WEIR_SIM_COUNTS=FILE    at exit, a line `FUNCTION CALLS` for each function called from outside;
 *                           %p in FILE is the process id */
#ifndef WEIR_SIM_CONTROL_H
#define WEIR_SIM_CONTROL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Work queued on `stream` after this call waits until weir_sim_release(); work queued before is not
 * affected. NULL is the legacy default stream of the current context. Holds nest. Destroying the
 * stream or its context releases it. */
int weir_sim_hold(void *stream);
int weir_sim_release(void *stream);

/* Storage for a __device__ variable that cuModuleGetGlobal() (and cuLibraryGetGlobal, for a
 * library) shall find; `initial` (may be NULL: zeros) is copied. `module` NULL: all modules that
 * have no definition of their own. An existing definition of the same size is kept. */
int weir_sim_define_global(void *module, const char *name, size_t bytes, const void *initial);

/* WEIR_SIM_FAIL and WEIR_SIM_LINK from now on; call numbers count from here. NULL or "": none. */
int weir_sim_set_fail(const char *list);
int weir_sim_set_link(const char *list);

/* WEIR_SIM_CARD from now on; links are the card's, WEIR_SIM_LINK is forgotten. NULL or "": none. */
int weir_sim_set_card(const char *name);

/* WEIR_SIM_CUPTI from now on; in libcupti.so.13, not in libcuda.so.1. NULL or "": no fault. Returns
 * a CUptiResult. */
int weir_sim_cupti_set(const char *list);

/* Capacity of one device from now on; what is allocated stays. */
int weir_sim_set_memory(int device, size_t bytes);

/* Changes what all devices state of themselves from now on, as another process could change it: not
 * while other threads ask. */
int weir_sim_set_attribute(int attribute, int value);

/* Most bytes of one device that were ever in use at once, as it counts them itself; 0: no such
 * device. */
size_t weir_sim_peak(int device);

/* Calls of an exported function from outside so far; 0 for unknown names. */
uint64_t weir_sim_count(const char *function);

/* For a host twin: ends the kernel with `error` (0: CUDA_ERROR_ILLEGAL_ADDRESS), which sticks to
 * the context. Does not return when called on a stream's worker inside a kernel; else returns -1.
 */
int weir_sim_trap(int error);

/* Names of the entry points that answer CUDA_ERROR_NOT_SUPPORTED; NULL-terminated, static. */
const char *const *weir_sim_unsupported(void);

#ifdef __cplusplus
}
#endif
#endif
