/* require.h: pointers that a public function cannot do without.
 *
 * WEIR_GIVEN(t); as a function's first statement: where t is NULL the function returns WEIR_EINVAL,
 * and the sentence names both ("weir_view: t is NULL"). Costs a branch.
 */
#ifndef WEIR_BASE_GIVEN_H
#define WEIR_BASE_GIVEN_H

#include "core/base/status.h"

/* WEIR_EINVAL, always. */
weir_status weir_not_given(const char *function, const char *what) __attribute__((cold));

#define WEIR_GIVEN(pointer)                                                                        \
  do {                                                                                             \
    if (__builtin_expect(!(pointer), 0)) {                                                         \
      (void)weir_not_given(__func__, #pointer);                                                    \
      return WEIR_EINVAL;                                                                          \
    }                                                                                              \
  } while (0)

#endif
