/* device.h: devices by name, and what is current for a thread: its device and a stream of each
 * device. Included by weir.h.
 *
 * Every thread starts on device 0 with every device's default stream. What is current states where
 * a call goes that names no index (cuda without a number) or no stream. Semantics follow
 * torch.cuda.device, torch.cuda.set_device and torch.cuda.stream. */
#ifndef WEIR_DEVICE_H
#define WEIR_DEVICE_H

#include <stdbool.h>
#include <stdint.h>
#include "core/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Values as DLPack's. */
typedef enum weir_device_type {
  WEIR_DEVICE_UNSET = 0, /* not given: the default device, or the tensor's own */
  WEIR_DEVICE_CPU = 1,
  WEIR_DEVICE_CUDA = 2
} weir_device_type;

/* Made by WEIR_CPU, WEIR_CUDA (the current device, when it is used) or WEIR_CUDA_AT(1), and read by
 * weir_device_index(). A struct whose type alone is set is without an index, so {WEIR_DEVICE_CUDA}
 * is WEIR_CUDA. */
typedef struct weir_device {
  weir_device_type type;
  struct {
    int plus_1; /* the index and 1; 0: none given */
  } index;      /* a struct, so that no number is taken for an index, nor an index for one */
} weir_device;

#ifdef __cplusplus
#define WEIR_DEVICE_(type, plus_1) (weir_device{(type), {(plus_1)}})
#else
#define WEIR_DEVICE_(type, plus_1) ((weir_device){(type), {(plus_1)}})
#endif
#define WEIR_CPU            WEIR_DEVICE_(WEIR_DEVICE_CPU, 0)
#define WEIR_CUDA           WEIR_DEVICE_(WEIR_DEVICE_CUDA, 0)
#define WEIR_CUDA_AT(index) WEIR_DEVICE_(WEIR_DEVICE_CUDA, (index) + 1)
/* WEIR_CUDA_AT() to initialise an object of static storage, in C. */
#define WEIR_CUDA_INIT(index)                                                                      \
  {                                                                                                \
    WEIR_DEVICE_CUDA,                                                                              \
    {                                                                                              \
      (index) + 1                                                                                  \
    }                                                                                              \
  }

/* -1: none given. */
static inline int weir_device_index(weir_device device)
{
  return device.index.plus_1 > 0 ? device.index.plus_1 - 1 : -1;
}

typedef struct weir_stream weir_stream;

/* "cpu", "cpu:0", "cuda", "cuda:1", as torch.device(). Whether the device exists shows at its use.
 * Errors: EINVAL ("Device string must not be empty"; "Invalid device string: 'cuda:01'"; "Expected
 * one of cpu, cuda device type at start of device string: x"). */
WEIR_PUBLIC weir_status weir_device_parse(weir_device *out, const char *text);
/* Where a program that runs with a GPU and without one shall work: "cuda" (the current device)
 * where CUDA is available and not disabled, else "cpu". Never an error. */
WEIR_PUBLIC weir_device weir_device_select(bool disable_cuda);
/* The text that is parsed to it: "cuda:1", "cuda" without an index (borrowed, static). */
WEIR_PUBLIC const char *weir_device_name(weir_device device);
/* Type and index are the same: cpu and cpu:0 are two, cuda and cuda:0 are, as in torch. */
WEIR_PUBLIC bool weir_device_equal(weir_device a, weir_device b);
/* *out: `device` can read and write the memory of `peer` directly; copies between the two then do
 * not pass through the host. A device is no peer of itself. Errors: EINVAL (the cpu, no such
 * device), ENOTSUP. */
WEIR_PUBLIC weir_status weir_can_access_peer(bool *out, weir_device device, weir_device peer);

/* ---- what is current for the calling thread -------------------------------------------------- */

/* Makes a cuda device current. WEIR_CUDA is nothing: it is already. Whether the device exists shows
 * at its use. Errors: EINVAL (the cpu, an index no device can have). */
WEIR_PUBLIC weir_status weir_set_device(weir_device device);
/* The current cuda device. */
WEIR_PUBLIC weir_status weir_current_device(weir_device *out);
/* Makes `stream` (borrowed) its device's current stream, and its device current. NULL is nothing.
 */
WEIR_PUBLIC weir_status weir_set_current_stream(weir_stream *stream);
/* The current stream of `device` (borrowed). Errors: EINVAL (no such device). */
WEIR_PUBLIC weir_status weir_current_stream(weir_stream **out, weir_device device);

/* What weir_guard_leave() brings back. All fields are Weir's own. */
typedef struct weir_guard {
  bool todo;              /* the macros' loop has yet to run */
  int device;             /* current before, -1: nothing to bring back */
  int of[2];              /* devices whose streams were current before, -1: none */
  weir_stream *stream[2]; /* those streams, NULL: the default stream */
  uint64_t serial[2], generation[2];
  bool kept;    /* `native` is to be brought back */
  int by;       /* device whose it is */
  void *native; /* current before in its own runtime (cudaSetDevice, cuCtxSetCurrent) */
} weir_guard;

/* Makes a device current until weir_guard_leave(). The cpu and WEIR_CUDA are nothing.
 * Whether the device exists shows at its use. */
WEIR_PUBLIC void weir_device_enter(weir_guard *out, weir_device device);
/* Makes a stream and its device current until weir_guard_leave(). NULL is nothing. Errors: ENOMEM,
 * nothing has changed and the guard holds nothing. */
WEIR_PUBLIC weir_status weir_stream_enter(weir_guard *out, weir_stream *stream);
/* Brings back what was current at the enter, for the CUDA runtime and driver too, whatever context
 * that was; on the same thread, the latest guard first. Once is enough, twice is nothing. */
WEIR_PUBLIC void weir_guard_leave(weir_guard *guard);

static inline weir_guard weir_guard_of_device(weir_device device)
{
  weir_guard guard;
  weir_device_enter(&guard, device);
  return guard;
}

static inline weir_guard weir_guard_of_stream(weir_stream *stream)
{
  weir_guard guard;
  if (weir_stream_enter(&guard, stream)) guard.todo = false;
  return guard;
}

#define WEIR_GUARD_JOIN_(a, b) a##b
#define WEIR_GUARD_NAME_(line) WEIR_GUARD_JOIN_(weir_guard_at_, line)
#define WEIR_GUARD_LOOP_(name, start)                                                              \
  for (weir_guard name __attribute__((cleanup(weir_guard_leave))) = (start); (name).todo;          \
       (name).todo = false)

/* WEIR_WITH_DEVICE(device) { ... }: the device is current in the block, and however the block is
 * left (its end, break, return, goto) what was current before comes back. They nest. */
#define WEIR_WITH_DEVICE(device)                                                                   \
  WEIR_GUARD_LOOP_(WEIR_GUARD_NAME_(__LINE__), weir_guard_of_device(device))
/* The same for a stream and its device. Without host memory to note the stream the block is not
 * run, and weir_error_message() reports it. */
#define WEIR_WITH_STREAM(stream)                                                                   \
  WEIR_GUARD_LOOP_(WEIR_GUARD_NAME_(__LINE__), weir_guard_of_stream(stream))

#ifdef __cplusplus
}
#endif

#endif
