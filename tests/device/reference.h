/* reference.h: what the elements of tensors are and what operations give, said once more, without
 * anything of the engine: integers in int64, floating point in long double, rounded by arithmetic.
 */
#ifndef TESTS_DEVICE_REFERENCE_H
#define TESTS_DEVICE_REFERENCE_H

#include "core/backend/compute.h"

typedef struct element {
  long double re, im; /* floating point; integers too */
  int64_t i;          /* integers and bool */
} element;

bool ref_is_int(weir_dtype dtype); /* bool included */
bool ref_is_real(weir_dtype dtype);
size_t ref_bytes(weir_dtype dtype);
element ref_load(weir_dtype dtype, const void *at);
void ref_store(weir_dtype dtype, void *at, element e); /* e is one the dtype has */
element ref_number(const weir_number *n);
/* e, which `from` has, as `to` has it. */
element ref_convert(element e, weir_dtype from, weir_dtype to);
/* x rounded as the dtype rounds. */
long double ref_round(long double x, weir_dtype dtype);
/* Distance of its neighbours at x. */
long double ref_ulp(long double x, weir_dtype dtype);

/* A number of the dtype: now and then a special one. */
element ref_random(weir_dtype dtype);
uint32_t ref_dice(uint32_t n); /* below n; the same ones in every run */

/* The operation's exact result; `i` is the place. */
element ref_op(const weir_loop *l, element x, element y, element z, int64_t i);
/* functions.c: the same of WEIR_FUNCTION_OPS and WEIR_PARAMETER_OPS. */
element ref_function(const weir_loop *l, element x, element y, element z);
long double ref_function_size(const weir_loop *l, element x, element y, element z,
                              long double want);
/* Whether `got` is `want`, to `ulps` of the dtype. */
bool ref_near(element got, element want, weir_dtype dtype, double ulps);

#endif
