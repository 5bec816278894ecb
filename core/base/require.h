/* require.h: how a public function refuses its arguments, and pointers that it cannot do without.
 *
 * return fail_invalid("dim is %d", dim); words what is wrong with them, fail_unsupported() what
 * Weir, or a device, has not.
 *
 * WEIR_REQUIRE(t, shape); as a function's first statement: where one is NULL the function returns
 * WEIR_EINVAL, and the sentence names both ("weir_view: t is NULL"). WEIR_REQUIRE_OUT(out, t); in
 * functions that make something: out first, then *out is NULL, then the others. Up to four, from
 * left to right; each costs a branch. */
#ifndef WEIR_BASE_REQUIRE_H
#define WEIR_BASE_REQUIRE_H

#include "core/base/status.h"

/* weir_fail() with WEIR_EINVAL, WEIR_ENOTSUP; the first argument is the format. */
#define fail_invalid(...)     weir_fail(WEIR_EINVAL, __VA_ARGS__)
#define fail_unsupported(...) weir_fail(WEIR_ENOTSUP, __VA_ARGS__)
/* "no host memory for a module Linear", WEIR_ENOMEM; the first argument is a literal. */
#define fail_memory(...) weir_fail(WEIR_ENOMEM, "no host memory for " __VA_ARGS__)

/* Returns what a call returned where that is an error. */
#define TRY(...)                                                                                   \
  do {                                                                                             \
    weir_status st_ = (__VA_ARGS__);                                                               \
    if (st_) return st_;                                                                           \
  } while (0)

/* WEIR_EINVAL, always. */
weir_status fail_null(const char *function, const char *what) __attribute__((cold));

#define WEIR_REQUIRE_1(pointer)                                                                    \
  if (__builtin_expect(!(pointer), 0)) {                                                           \
    (void)fail_null(__func__, #pointer);                                                           \
    return WEIR_EINVAL;                                                                            \
  }
#define WEIR_REQUIRE_2(pointer, ...) WEIR_REQUIRE_1(pointer) WEIR_REQUIRE_1(__VA_ARGS__)
#define WEIR_REQUIRE_3(pointer, ...) WEIR_REQUIRE_1(pointer) WEIR_REQUIRE_2(__VA_ARGS__)
#define WEIR_REQUIRE_4(pointer, ...) WEIR_REQUIRE_1(pointer) WEIR_REQUIRE_3(__VA_ARGS__)

/* The argument that stands fifth: of a list and what is appended to it, by the list's length. */
#define WEIR_REQUIRE_FIFTH(a, b, c, d, fifth, ...) fifth
#define WEIR_REQUIRE(...)                                                                          \
  do {                                                                                             \
    WEIR_REQUIRE_FIFTH(__VA_ARGS__, WEIR_REQUIRE_4, WEIR_REQUIRE_3, WEIR_REQUIRE_2,                \
                       WEIR_REQUIRE_1, )                                                           \
    (__VA_ARGS__)                                                                                  \
  } while (0)

#define WEIR_REQUIRE_OUT_1(out)                                                                    \
  WEIR_REQUIRE_1(out)                                                                              \
  *(out) = NULL;
#define WEIR_REQUIRE_OUT_2(out, ...) WEIR_REQUIRE_OUT_1(out) WEIR_REQUIRE_1(__VA_ARGS__)
#define WEIR_REQUIRE_OUT_3(out, ...) WEIR_REQUIRE_OUT_1(out) WEIR_REQUIRE_2(__VA_ARGS__)
#define WEIR_REQUIRE_OUT_4(out, ...) WEIR_REQUIRE_OUT_1(out) WEIR_REQUIRE_3(__VA_ARGS__)
#define WEIR_REQUIRE_OUT(...)                                                                      \
  do {                                                                                             \
    WEIR_REQUIRE_FIFTH(__VA_ARGS__, WEIR_REQUIRE_OUT_4, WEIR_REQUIRE_OUT_3, WEIR_REQUIRE_OUT_2,    \
                       WEIR_REQUIRE_OUT_1, )                                                       \
    (__VA_ARGS__)                                                                                  \
  } while (0)

#endif
