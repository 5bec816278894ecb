/* stream.h: streams and events: the order of work on a device. Included by weir.h.
 *
 * Work in one stream is done in its order; work of different streams is not ordered, unless one
 * waits for the other. Each device has a default stream and any number of side streams; which is
 * current is stated in device.h. Semantics follow torch.cuda.Stream and torch.cuda.Event.
 *
 * Data that was made in one stream may be used in another once that other waits for it
 * (weir_stream_wait_stream, weir_event_wait); nothing does this by itself. Within the default
 * stream nothing is to be waited for.
 *
 * The cpu has no streams: its work is done when the call that asked for it returns, and waiting for
 * it is nothing. Streams are borrowed: they live until weir_memory_detach, or their release. All
 * functions may be called from any thread. */
#ifndef WEIR_STREAM_H
#define WEIR_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include "core/base/status.h"
#include "core/weir/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- streams --------------------------------------------------------------------------------- */

/* A side stream of the device, as torch.cuda.Stream(device, priority): one of 32 that the device
 * has of that priority, each made at its first use and given in turn, so that the 33rd is the first
 * again. Work in it waits for no other stream's, the default stream's included. priority: 0, or
 * below it: lower numbers go first; beyond what the device has it is the device's highest. It
 * cannot be released. Errors: EINVAL (priority above 0: "Expected cuda stream priority to be less
 * than or equal to 0, got 1"; the device), ENOTSUP (a backend that makes none), ECUDA, ELIMIT. */
WEIR_PUBLIC weir_status weir_stream_new(weir_stream **out, weir_device device, int priority);
/* The default stream of the device. */
WEIR_PUBLIC weir_status weir_default_stream(weir_stream **out, weir_device device);
/* A new stream, nobody else's, of priority 0; else as weir_stream_new's. Give it back with
 * weir_stream_release(). Errors: as there. */
WEIR_PUBLIC weir_status weir_stream_create(weir_stream **out, weir_device device);
/* The program's own stream, as torch.cuda.ExternalStream. `native` is the backend's handle, for
 * CUDA a cudaStream_t or CUstream of the device, to be kept until weir_memory_detach or the
 * release; NULL: the default stream (CUDA: the legacy one, whatever the program was compiled for).
 * Errors: EINVAL (not a stream of the device; cudaStreamPerThread, which is another stream in every
 * thread). */
WEIR_PUBLIC weir_status weir_stream_from_native(weir_stream **out, weir_device device,
                                                void *native);
/* The backend's handle of a stream (borrowed), for CUDA a cudaStream_t: what kernels and copies are
 * launched with. NULL: the default stream. */
WEIR_PUBLIC weir_status weir_stream_native(void **out, weir_stream *stream);
/* Steals the stream: its native handle may be destroyed afterwards, and is where weir_stream_create
 * made it. Its memory serves other streams as soon as the work now in it is complete; its blocks
 * stay allocated. A thread whose current stream it is goes back to the default stream. Errors:
 * EINVAL (the default stream, one of weir_stream_new, released before, being captured), the
 * device's; nothing has changed. */
WEIR_PUBLIC weir_status weir_stream_release(weir_stream *stream);
/* WEIR_STREAM stream = NULL; is released at the end of its block: of weir_stream_create() and
 * weir_stream_from_native(), for others cannot be. */
typedef weir_stream *weir_stream_owned;
static inline void weir_stream_drop(weir_stream **stream)
{
  if (*stream) (void)weir_stream_release(*stream);
  *stream = NULL;
}
#define WEIR_STREAM __attribute__((cleanup(weir_stream_drop))) weir_stream_owned

WEIR_PUBLIC weir_status weir_stream_device(weir_device *out, weir_stream *stream);
/* Errors: ENOTSUP (a backend without priorities), ECUDA. */
WEIR_PUBLIC weir_status weir_stream_priority(int *out, weir_stream *stream);
/* The priorities that the device distinguishes: from `least`, 0, down to `greatest`. */
WEIR_PUBLIC weir_status weir_stream_priority_range(int *least, int *greatest, weir_device device);

/* All of the following take NULL for the current stream of the current CUDA device. */

/* Work given to `stream` from now on waits for the work now in `other`, of any device. The host
 * does not wait. The allocator is notified. Errors: ECUDA. */
WEIR_PUBLIC weir_status weir_stream_wait_stream(weir_stream *stream, weir_stream *other);
/* *out: all work in the stream is complete. Errors: ECUDA (a late error, see below), EINVAL (the
 * stream is being captured). */
WEIR_PUBLIC weir_status weir_stream_query(bool *out, weir_stream *stream);
/* The host waits for all work in the stream. Errors: as weir_stream_query(). */
WEIR_PUBLIC weir_status weir_stream_synchronize(weir_stream *stream);
/* The host waits for all work of all streams of the device, as torch.cuda.synchronize(). On the cpu
 * nothing. Errors: as weir_stream_query(). */
WEIR_PUBLIC weir_status weir_synchronize(weir_device device);
/* For programs that make streams wait by other means: notifies the allocator that `waiter` waits
 * for everything now in `waited`, of the same device. */
WEIR_PUBLIC weir_status weir_stream_waited(weir_stream *waiter, weir_stream *waited);

/* ---- errors that come late --------------------------------------------------------------------
 * Operations enqueue and return, so an error of the device shows at a later call, which is not the
 * one it is of. Its message states where it was first seen and what had been enqueued since the
 * last wait. It stays: CUDA cannot be used in the process any more. */

/* Every operation waits until it is done, so that errors show where they are. At first as the
 * environment's CUDA_LAUNCH_BLOCKING states (1: on). Of the process. */
WEIR_PUBLIC void weir_set_launch_blocking(bool on);
WEIR_PUBLIC bool weir_launch_blocking(void);

/* ---- events -----------------------------------------------------------------------------------
 * A place in a stream, to wait for and to measure time by. The device is that of its first record,
 * as in torch: until then an event costs nothing, and counts as complete. Of one event only the
 * latest record counts. Not to be used from two threads at once. */

typedef struct weir_event weir_event;

typedef struct weir_event_options {
  bool enable_timing; /* for weir_event_elapsed_time(); off, it is cheaper */
  bool blocking;      /* weir_event_synchronize() sleeps, else it may spin */
} weir_event_options;

/* *out is new: weir_event_release() it. options NULL: neither. Errors: ENOMEM. */
WEIR_PUBLIC weir_status weir_event_new(weir_event **out, const weir_event_options *options);
/* Steals the event; NULL is nothing. Waits for nothing: who waits for the event still does. */
WEIR_PUBLIC void weir_event_release(weir_event *event);
/* WEIR_EVENT event = NULL; is released at the end of its block. */
typedef weir_event *weir_event_owned;
static inline void weir_event_drop(weir_event **event)
{
  weir_event_release(*event);
  *event = NULL;
}
#define WEIR_EVENT __attribute__((cleanup(weir_event_drop))) weir_event_owned
/* Complete when the work now in the stream is. NULL: the current stream. Errors: EINVAL ("Event
 * device 0 does not match recording stream's device 1."), ENOTSUP (a backend without what the
 * options ask for), ECUDA. */
WEIR_PUBLIC weir_status weir_event_record(weir_event *event, weir_stream *stream);
/* Work given to the stream, of any device, from now on waits for the event; NULL: the current
 * stream. Never recorded: nothing. The allocator is notified. Errors: ECUDA. */
WEIR_PUBLIC weir_status weir_event_wait(weir_event *event, weir_stream *stream);
/* *out: complete, or never recorded. Errors: ECUDA. */
WEIR_PUBLIC weir_status weir_event_query(bool *out, weir_event *event);
/* The host waits for the event. Never recorded: nothing. Errors: ECUDA. */
WEIR_PUBLIC weir_status weir_event_synchronize(weir_event *event);
/* Milliseconds from `start` to `end`, to about half a microsecond; the host does not wait. Errors:
 * EINVAL ("Both events must be created with timing enabled", "Both events must be recorded before
 * calculating elapsed time.", "Both events must be completed before calculating elapsed time.",
 * events of two devices), ECUDA. */
WEIR_PUBLIC weir_status weir_event_elapsed_time(double *out, weir_event *start, weir_event *end);
/* The device it is of. Errors: EINVAL (never recorded). */
WEIR_PUBLIC weir_status weir_event_device(weir_device *out, weir_event *event);

#ifdef __cplusplus
}
#endif

#endif
