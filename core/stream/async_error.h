/* async_error.h: which operation a device's error is of.
 *
 * An operation enqueues its work and returns, so an error of that work shows at some later call.
 * Whoever enqueues reports it with op_done(), whoever waits for a stream does it with
 * async_sync(); an error that was met then names where it was first seen and what had been
 * enqueued since the last wait that went well. Under launch blocking (CUDA_LAUNCH_BLOCKING=1,
 * weir_set_launch_blocking()) every operation is waited for, and the error is its own.
 *
 * Words. asynchronous: of an error that stays with the device's context ("sticky"), so that all
 * calls meet it; distinguished from a refused call by asking the stream again. note: the name of an
 * operation, kept for the last 64 of a device. */
#ifndef WEIR_STREAM_ASYNC_ERROR_H
#define WEIR_STREAM_ASYNC_ERROR_H

#include "core/base/require.h"
#include "core/memory/devices.h"

/* The public function that the calling thread is in, without "weir_", where that is made of others:
 * what they enqueue and wait for is its. NULL: none. */
extern __thread const char *op_called __attribute__((tls_model("initial-exec")));

static inline const char *op_enter(const char *function)
{
  const char *before = op_called;
  if (!before) op_called = function + sizeof "weir_" - 1;
  return before;
}

static inline void op_leave(const char **before)
{
  op_called = *before;
}

/* First in a public function that calls others: the outermost is the one that is named. */
#define WEIR_OP_HERE                                                                               \
  const char *op_before_ __attribute__((cleanup(op_leave), unused)) = op_enter(__func__)
/* That, then WEIR_REQUIRE_OUT(): begins a function that makes something. */
#define WEIR_OP(...)                                                                               \
  WEIR_OP_HERE;                                                                                    \
  WEIR_REQUIRE_OUT(__VA_ARGS__)
/* The same of one that makes two things. */
#define WEIR_OP_BOTH(first, ...)                                                                   \
  WEIR_OP(first);                                                                                  \
  WEIR_REQUIRE_OUT(__VA_ARGS__)
/* WEIR_OP_HERE, then WEIR_REQUIRE(): begins one that changes what it is given. */
#define WEIR_OP_ON(...)                                                                            \
  WEIR_OP_HERE;                                                                                    \
  WEIR_REQUIRE(__VA_ARGS__)

/* op_done() on a device. */
weir_status op_note(weir_stream *stream, const char *op, weir_status st);

/* After every operation: `op` (static, torch's name of it) was enqueued in `stream`, and enqueueing
 * it returned `st`. stream NULL: the cpu, whose work is done. Returns what the operation shall
 * return, worded. */
static inline weir_status op_done(weir_stream *stream, const char *op, weir_status st)
{
  return stream ? op_note(stream, op, st) : st;
}

/* The host waits for all work of the stream (NULL: the cpu). `where` (static): who waits, for the
 * message. Errors: ECUDA; EINVAL: the stream is being captured. */
weir_status async_sync(weir_stream *stream, const char *where);

/* A copy of bytes between the stream's device and the host, and the wait for it, at the cost of one
 * wait whatever memory it is. `op` (static): the operation. Errors: as async_sync(). */
weir_status async_copy(weir_stream *stream, const char *op, enum weir_copy_way way, void *to,
                       const void *from, uint64_t bytes);

/* Words an error that the call `where` met in the stream's device: `st` and weir_error_message().
 * What is no asynchronous error keeps its sentence. Returns st. */
weir_status async_error(weir_stream *stream, const char *where, weir_status st);

/* How many operations of the stream's device have been noted; and, after a wait that went well, up
 * to which the stream's are complete. */
uint64_t async_count(weir_stream *stream);
void async_complete(weir_stream *stream, uint64_t count);

#endif
