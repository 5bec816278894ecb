/* require.h: pointers that a public function cannot do without.
 *
 * WEIR_REQUIRE(t); as a function's first statement: where t is NULL the function returns
 * WEIR_EINVAL, and the sentence names both ("weir_view: t is NULL"). Costs a branch. */
#ifndef WEIR_BASE_REQUIRE_H
#define WEIR_BASE_REQUIRE_H

#include "core/base/status.h"

/* WEIR_EINVAL, always. */
weir_status weir_is_null(const char *function, const char *what) __attribute__((cold));

#define WEIR_REQUIRE(pointer)                                                                      \
  do {                                                                                             \
    if (__builtin_expect(!(pointer), 0)) {                                                         \
      (void)weir_is_null(__func__, #pointer);                                                      \
      return WEIR_EINVAL;                                                                          \
    }                                                                                              \
  } while (0)

#endif
