/* rig.h: what the suites of tensors share: devices, tensors of given numbers, and what they are.
 *
 * A test that runs for device `_i` takes device(_i): the cpu, cuda:0, cuda:1. */
#ifndef WEIR_TESTS_TENSOR_RIG_H
#define WEIR_TESTS_TENSOR_RIG_H

#include "core/ops/ops.h"
#include "tests/cuda/rig.h"

#define refused(why, text, call)                                                                   \
  do {                                                                                             \
    ck_assert_int_eq((call), (why));                                                               \
    ck_assert_str_eq(weir_error_message(), (text));                                                \
  } while (0)

/* The same, by a part of the sentence. */
#define refused_with(why, part, call)                                                              \
  do {                                                                                             \
    ck_assert_int_eq((call), (why));                                                               \
    ck_assert_msg(strstr(weir_error_message(), (part)) != NULL, "%s", weir_error_message());       \
  } while (0)

enum { DEVICES_TRIED = 3 };

extern const weir_device cpu, cuda0, cuda1, cuda_any;
weir_device device(int i);
/* Puts `count` devices under the process; before the first use of CUDA. */
void devices(int count);
weir_options on(weir_device d);
weir_options as(weir_dtype dtype, weir_device d);

/* A tensor of numbers 0, 1, 2, ... */
weir_tensor *counting(weir_shape shape, weir_dtype dtype, weir_device d);
/* Its elements, row by row, are these; it waits for the device. */
void elements_are(const weir_tensor *t, int count, const double *values);
#define EXPECT(t, ...)                                                                             \
  elements_are((t), (int)(sizeof((const double[]){__VA_ARGS__}) / sizeof(double)),                 \
               (const double[]){__VA_ARGS__})
void shape_is(const weir_tensor *t, weir_shape shape);
void strides_are(const weir_tensor *t, weir_shape strides);
void is_on(const weir_tensor *t, weir_device d);

/* A side stream of cuda:0 with a gate in it, made current in the calling thread; let_go() opens the
 * gate. */
weir_stream *hold_stream(lane *l, weir_device d);
bool done(weir_stream *s);

#endif
