/* calc.h: operations as expressions, for code that is made of other operations.
 *
 *   CALC(c);
 *   const weir_tensor *off = c_sub(c, a, b);
 *   return calc_give(c, out, c_mean(c, c_mul(c, off, off)));
 *
 * A calc keeps what its calls make until the block ends, and the first error: after it each call
 * returns NULL and does nothing, so that it is looked at once, where the result is given. No call
 * allocates for it.
 *
 * c_NAME(c, ...) is weir_NAME(&new, ...) and evaluates its operands first, so that they may be
 * calls themselves. c_call(c, f, ...) is the same of any function f(&new, ...); its arguments are
 * not evaluated after an error, so that they may look into what was made (x->dims), and may be no
 * such calls. */
#ifndef WEIR_TENSOR_CALC_H
#define WEIR_TENSOR_CALC_H

#include "core/tensor/tensor.h"

enum { CALC_ROOM = 96 };

typedef struct calc {
  weir_status st; /* the first error */
  int count;
  weir_tensor *made[CALC_ROOM]; /* owned: `count` of them */
} calc;

/* Releases all that was made but the first `count`. */
void calc_drop(calc *c, int count);
/* For CALC. */
void calc_end(calc (*c)[1]);

/* Begins a calc; the array is not cleared. */
static inline void calc_begin(calc *c)
{
  c->st = WEIR_OK;
  c->count = 0;
}

/* Declares c, a calc of the block: released at its end. */
#define CALC(name)                                                                                 \
  calc name[1] __attribute__((cleanup(calc_end)));                                                 \
  calc_begin(name)

/* Keeps *made, which a call that returned `st` has made, and returns it; after an error releases it
 * and returns NULL. */
weir_tensor *calc_keep(calc *c, weir_status st, weir_tensor **made);
/* *out is a count of t, which was made or is anyone's. Returns the first error; then out is not
 * touched. */
weir_status calc_give(const calc *c, weir_tensor **out, const weir_tensor *t);

#define c_call(c, function, ...)                                                                   \
  __extension__({                                                                                  \
    weir_tensor *made_ = NULL;                                                                     \
    calc_keep((c), (c)->st ? (c)->st : function(&made_, __VA_ARGS__), &made_);                     \
  })
/* The same of a call that returns a status alone. */
#define c_do(c, ...)                                                                               \
  do {                                                                                             \
    if (!(c)->st) (c)->st = (__VA_ARGS__);                                                         \
  } while (0)

#define CALC_LIST(...) __VA_ARGS__
#define CALC_FN(name, parameters, ...)                                                             \
  static inline __attribute__((unused)) weir_tensor *c_##name(calc *c, CALC_LIST parameters)       \
  {                                                                                                \
    return c_call(c, weir_##name, __VA_ARGS__);                                                    \
  }
#define CALC_1(name) CALC_FN(name, (const weir_tensor *a), a)
#define CALC_2(name)                                                                               \
  CALC_FN(name, (const weir_tensor *a, const weir_tensor *b), a, b)                                \
  CALC_FN(name##_scalar, (const weir_tensor *a, weir_scalar b), a, b)                              \
  static inline __attribute__((unused))                                                            \
  weir_tensor *c_##name##_s(calc *c, const weir_tensor *a, double b)                               \
  {                                                                                                \
    return c_##name##_scalar(c, a, weir_float(b));                                                 \
  }
#define CALC_REDUCE(name)                                                                          \
  CALC_1(name)                                                                                     \
  CALC_FN(name##_dim, (const weir_tensor *a, int dim, bool keepdim), a, dim, keepdim)
CALC_1(neg)
CALC_1(abs)
CALC_1(exp)
CALC_1(exp2)
CALC_1(log)
CALC_1(log1p)
CALC_1(sqrt)
CALC_1(rsqrt)
CALC_1(sin)
CALC_1(cos)
CALC_1(sinh)
CALC_1(cosh)
CALC_1(tanh)
CALC_1(sigmoid)
CALC_1(relu)
CALC_1(erf)
CALC_1(erfinv)
CALC_1(reciprocal)
CALC_1(trunc)
CALC_1(floor)
CALC_1(isnan)
CALC_1(isfinite)
CALC_1(digamma)
CALC_1(logical_not)
CALC_1(contiguous)
CALC_1(clone)
CALC_1(t)
CALC_2(add)
CALC_2(sub)
CALC_2(mul)
CALC_2(div)
CALC_2(pow)
CALC_2(eq)
CALC_2(ne)
CALC_2(lt)
CALC_2(le)
CALC_2(gt)
CALC_2(ge)
CALC_2(logical_and)
CALC_2(logical_or)
CALC_2(xlogy)
CALC_2(maximum)
CALC_2(minimum)
CALC_2(bitwise_and)
CALC_REDUCE(sum)
CALC_REDUCE(mean)
CALC_REDUCE(prod)
CALC_REDUCE(any)
CALC_REDUCE(all)
CALC_REDUCE(amax)
CALC_FN(matmul, (const weir_tensor *a, const weir_tensor *b), a, b)
CALC_FN(where, (const weir_tensor *condition, const weir_tensor *a, const weir_tensor *b),
        condition, a, b)
CALC_FN(scalar_div, (weir_scalar a, const weir_tensor *b), a, b)
CALC_FN(scalar_pow, (weir_scalar a, const weir_tensor *b), a, b)
CALC_FN(masked_fill, (const weir_tensor *a, const weir_tensor *mask, weir_scalar value), a, mask,
        value)
CALC_FN(zeros_like, (const weir_tensor *a, const weir_options *options), a, options)
CALC_FN(ones_like, (const weir_tensor *a, const weir_options *options), a, options)
CALC_FN(to_dtype, (const weir_tensor *a, weir_dtype dtype), a, dtype)
CALC_FN(cumsum, (const weir_tensor *a, int dim), a, dim)
CALC_FN(softmax, (const weir_tensor *a, int dim), a, dim)
CALC_FN(log_softmax, (const weir_tensor *a, int dim), a, dim)
CALC_FN(reshape, (const weir_tensor *a, weir_shape shape), a, shape)
CALC_FN(expand, (const weir_tensor *a, weir_shape shape), a, shape)
CALC_FN(squeeze, (const weir_tensor *a, int dim), a, dim)
CALC_FN(unsqueeze, (const weir_tensor *a, int dim), a, dim)
CALC_FN(transpose, (const weir_tensor *t, int a, int b), t, a, b)
CALC_FN(permute, (const weir_tensor *a, const int *order), a, order)
CALC_FN(diagonal, (const weir_tensor *t, int64_t offset, int a, int b), t, offset, a, b)
CALC_FN(triu, (const weir_tensor *a, int64_t diagonal), a, diagonal)
CALC_FN(tril, (const weir_tensor *a, int64_t diagonal), a, diagonal)
CALC_FN(narrow, (const weir_tensor *a, int dim, int64_t start, int64_t length), a, dim, start,
        length)
CALC_FN(select, (const weir_tensor *a, int dim, int64_t index), a, dim, index)
CALC_FN(index_select, (const weir_tensor *a, int dim, const weir_tensor *index), a, dim, index)
CALC_FN(gather, (const weir_tensor *a, int dim, const weir_tensor *index), a, dim, index)
#undef CALC_LIST
#undef CALC_FN
#undef CALC_1
#undef CALC_2
#undef CALC_REDUCE

#endif
