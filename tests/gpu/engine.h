/* engine.h: what the files of the walk through the engine's rows share (engine.c says what it is).
 *
 * A row is a function; it is done when it returns, and failed when one of the macros here ends its
 * process with a sentence. Tensors of a row are not released: the process ends with it. */
#ifndef WEIR_TESTS_GPU_ENGINE_H
#define WEIR_TESTS_GPU_ENGINE_H

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/weir.h"

/* X(number, function, name): the 35 behaviours the engine promises, in the order of weir-engine's
 * table. */
#define ROWS(X)                                                                                    \
  X(1, dtypes, "dtypes and tensor types")                                                          \
  X(2, defaults, "default type, dtype, device")                                                    \
  X(3, device_strings, "device strings")                                                           \
  X(4, guards, "current device and guard")                                                         \
  X(5, placement, "results are where operands are")                                                \
  X(6, cross_device, "operations across devices")                                                  \
  X(7, peers, "peer access")                                                                       \
  X(8, creation, "creation")                                                                       \
  X(9, conversions, "to, cuda, cpu, type")                                                         \
  X(10, copies, "copy_")                                                                           \
  X(11, operations, "operations, all dtypes")                                                      \
  X(12, printing, "printing")                                                                      \
  X(13, asynchrony, "asynchronous execution, late errors")                                         \
  X(14, streams, "streams")                                                                        \
  X(15, events, "events")                                                                          \
  X(16, race, "the notes' race, and its cure")                                                     \
  X(17, caching, "caching allocator")                                                              \
  X(18, statistics, "memory statistics")                                                           \
  X(19, empty_cache, "empty_cache")                                                                \
  X(20, record_stream, "record_stream")                                                            \
  X(21, history, "snapshot and history")                                                           \
  X(22, pinning, "pin_memory, is_pinned")                                                          \
  X(23, non_blocking, "non_blocking")                                                              \
  X(24, loader, "data loader")                                                                     \
  X(25, modules, "modules and parameters")                                                         \
  X(26, layers, "layers, the two-convolution model")                                               \
  X(27, data_parallel, "data parallelism")                                                         \
  X(28, visibility, "CUDA_VISIBLE_DEVICES")                                                        \
  X(29, availability, "is_available, device_count, fork")                                          \
  X(30, agnostic, "device-agnostic programs")                                                      \
  X(31, graphs, "graphs")                                                                          \
  X(32, precision, "precision switches")                                                           \
  X(33, dlpack, "DLPack")                                                                          \
  X(34, files, "npy and safetensors")                                                              \
  X(35, hooks, "allocator hooks")

#define DECLARE(number, function, name) void row_##function(void);
ROWS(DECLARE)
#undef DECLARE

/* Ends the row as failed. */
_Noreturn void fail_row(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Words for the row's line, beside its name: "one device". */
void note(const char *format, ...) __attribute__((format(printf, 1, 2)));

#define HOLDS(condition)                                                                           \
  do {                                                                                             \
    if (!(condition)) fail_row(__FILE__, __LINE__, "not so: %s", #condition);                      \
  } while (0)
#define MUST(call)                                                                                 \
  do {                                                                                             \
    if (call) fail_row(__FILE__, __LINE__, "%s: %s", #call, weir_error_message());                 \
  } while (0)
/* The call fails with `status`, and its sentence has `words` in it. */
#define REFUSED(status, words, call)                                                               \
  do {                                                                                             \
    weir_status refused_ = (call);                                                                 \
    if (refused_ != (status) || !strstr(weir_error_message(), (words)))                            \
      fail_row(__FILE__, __LINE__, "%s: status %d, \"%s\"; expected %d, \"%s\"", #call,            \
               (int)refused_, weir_error_message(), (int)(status), (words));                       \
  } while (0)

#define CPU      WEIR_CPU
#define CUDA     WEIR_CUDA_AT(0)
#define ON(d)    (&(weir_options){.device = (d)})
#define AS(t, d) (&(weir_options){.dtype = (t), .device = (d)})

int device_count(void);
/* Numbers of that dtype on the cpu, the same for the same seed: from -2 to 2 in eighths, integers
 * from -9 to 9, never 0. */
weir_tensor *numbers(weir_dtype dtype, weir_shape shape, unsigned seed);
/* t on cuda:0. */
weir_tensor *there(const weir_tensor *t);
/* A float32 tensor full of one number on cuda:0. */
weir_tensor *full_of(double value, int64_t count);
double first(const weir_tensor *t);
/* How far apart results in a dtype may be, relative to the larger. */
double tolerance(weir_dtype dtype);
/* Fails the row unless both have shape, dtype and elements alike, to `factor` tolerances of the
 * larger, or `absolute`; where they are does not matter. Integers and bool exactly. */
void alike(const char *what, const weir_tensor *a, const weir_tensor *b, double factor,
           double absolute);

/* Holds a stream of cuda:0: what is enqueued from now on waits for open_gate(). One at a time. */
void close_gate(weir_stream *stream);
void open_gate(void);
int done(weir_stream *stream);
/* Makes the primary context of device 0 the thread's, for calls of the driver's own. */
void enter_context(void);
/* A function of the driver's; the row fails where it is not. */
void *driver(const char *name);
/* True on the software device: some errors are worded otherwise there, and nothing is fast. */
int simulated(void);

#endif
