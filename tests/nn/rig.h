/* rig.h: what the suites of core/nn share: how many devices there are, what was logged. */
#ifndef WEIR_TESTS_NN_RIG_H
#define WEIR_TESTS_NN_RIG_H

#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/weir.h"
#include "core/weir/data.h"
#include "core/weir/module.h"
#include "core/weir/parallel.h"
#include "core/weir/stream.h"

#define weir_ok(call)                                                                              \
  ck_assert_msg((call) == WEIR_OK, "%s:%d: %s", __FILE__, __LINE__, weir_error_message())
/* The call fails with `status`, and its sentence has `words` in it. */
#define weir_not(status, words, call)                                                              \
  do {                                                                                             \
    ck_assert_int_eq((call), (status));                                                            \
    ck_assert_msg(strstr(weir_error_message(), (words)) != NULL, "it says: %s",                    \
                  weir_error_message());                                                           \
  } while (0)

/* The software device has this many; before the first CUDA call of the test's process. */
void rig_devices(int count);

typedef struct rig_log {
  int count, level;
  char text[512]; /* of the last one */
} rig_log;

/* A weir_log_callback; user is a rig_log. */
void rig_logged(weir_log_level level, const char *text, void *user);

#define CPU     WEIR_CPU
#define CUDA(i) WEIR_CUDA_AT((i))

/* A float32 tensor there, with numbers from -1 to 1 that follow from the seed. */
weir_tensor *rig_tensor(weir_shape shape, weir_device device, unsigned seed);
/* start, start + 1, ... as int64 on the cpu. */
weir_tensor *rig_count(int64_t start, weir_shape shape);
bool rig_on(const weir_tensor *t, weir_device device);
/* Same shape, and no number differs by more than `most` (NaN never does); wherever they are. */
void rig_same(const weir_tensor *a, const weir_tensor *b, double most);
/* The one number of a tensor, or of its place i. */
double rig_number(const weir_tensor *t, int64_t i);

/* Of host memory asked for by the engine (this program's own malloc, calloc, realloc, strdup,
 * posix_memalign): the nth request from now fails, counted from 1 over all threads; 0: none. */
void rig_fail_host(int64_t nth);
/* Whether it has come to that. */
bool rig_failed_host(void);

/* Stops and goes on with a stream of the software device (control.h). */
void rig_hold(weir_stream *stream);
void rig_release(weir_stream *stream);
/* weir_sim_set_fail() and weir_sim_count(). */
void rig_fail_driver(const char *list);

/* A file in a folder of the test's own, which rig_forget() removes. */
const char *rig_file(const char *name);
void rig_forget(void);

TCase *rig_case(Suite *suite);
/* Runs and ends the suite; what main() returns. */
int rig_run(Suite *suite);

/* Case 0 is of the cpu, others are of a device. */
static inline weir_device device_of_case(int i)
{
  if (i) rig_devices(1);
  return i ? CUDA(0) : CPU;
}

#endif
