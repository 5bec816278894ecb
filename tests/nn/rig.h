/* rig.h: what the suites of core/nn share: how many devices there are, what was logged. */
#ifndef WEIR_TESTS_NN_RIG_H
#define WEIR_TESTS_NN_RIG_H

#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/weir.h"

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

TCase *rig_case(Suite *suite);
/* Runs and ends the suite; what main() returns. */
int rig_run(Suite *suite);

#endif
