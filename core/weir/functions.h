/* functions.h: more functions of each element, and activations, in addition to ops.h. Included by
 * weir.h.
 *
 * What ops.h states of all operations holds here, too. Functions of floating point give integers
 * and bool the default dtype; complex64 is there where torch has it. Errors: "\"erf_vml_cpu\" not
 * implemented for 'ComplexFloat'", "floor is not supported for complex inputs". */
#ifndef WEIR_FUNCTIONS_H
#define WEIR_FUNCTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include "core/base/status.h"
#include "core/weir/dtype.h"
#include "core/weir/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- one operand ------------------------------------------------------------------------------
 * weir_erf(&out, a) and weir_erf_(a). floor ceil round (half to even) trunc leave integers as they
 * are; sign sgn keep the dtype, and frac bitwise_not, which are of floating point, and of integers
 * and bool. deg2rad and rad2deg are of real numbers. erf of float16 and bfloat16 is float32's,
 * rounded once, where torch's cpu gives 0 below 2^-22 or so. */
#define WEIR_FUNCTION_MAP(X)                                                                       \
  X(erf, ERF)                                                                                      \
  X(erfc, ERFC)                                                                                    \
  X(erfinv, ERFINV)                                                                                \
  X(lgamma, LGAMMA)                                                                                \
  X(digamma, DIGAMMA)                                                                              \
  X(log1p, LOG1P)                                                                                  \
  X(expm1, EXPM1)                                                                                  \
  X(log2, LOG2)                                                                                    \
  X(log10, LOG10)                                                                                  \
  X(exp2, EXP2)                                                                                    \
  X(tan, TAN)                                                                                      \
  X(asin, ASIN)                                                                                    \
  X(acos, ACOS)                                                                                    \
  X(atan, ATAN)                                                                                    \
  X(sinh, SINH)                                                                                    \
  X(cosh, COSH)                                                                                    \
  X(asinh, ASINH)                                                                                  \
  X(acosh, ACOSH)                                                                                  \
  X(atanh, ATANH)                                                                                  \
  X(reciprocal, RECIPROCAL)                                                                        \
  X(sinc, SINC)                                                                                    \
  X(floor, FLOOR)                                                                                  \
  X(ceil, CEIL)                                                                                    \
  X(round, ROUND)                                                                                  \
  X(trunc, TRUNC)                                                                                  \
  X(frac, FRAC)                                                                                    \
  X(sign, SIGN)                                                                                    \
  X(sgn, SGN)                                                                                      \
  X(bitwise_not, BITWISE_NOT)

#define WEIR_FUNCTION_DECLARE(name, op)                                                            \
  WEIR_PUBLIC weir_status weir_##name(weir_tensor **out, const weir_tensor *a);                    \
  WEIR_PUBLIC weir_status weir_##name##_(weir_tensor *a);
WEIR_FUNCTION_MAP(WEIR_FUNCTION_DECLARE)
/* Made of others. */
#define WEIR_MADE_MAP(X)                                                                           \
  X(square, POW)                                                                                   \
  X(deg2rad, MUL)                                                                                  \
  X(rad2deg, MUL)
WEIR_MADE_MAP(WEIR_FUNCTION_DECLARE)

/* These give bool. */
WEIR_PUBLIC weir_status weir_isnan(weir_tensor **out, const weir_tensor *a);
WEIR_PUBLIC weir_status weir_isinf(weir_tensor **out, const weir_tensor *a);
WEIR_PUBLIC weir_status weir_signbit(weir_tensor **out, const weir_tensor *a);

/* To `decimals` places after the point, before it where that is negative. Floating point. */
WEIR_PUBLIC weir_status weir_round_decimals(weir_tensor **out, const weir_tensor *a, int decimals);
WEIR_PUBLIC weir_status weir_round_decimals_(weir_tensor *a, int decimals);
/* ln(a / (1 - a)); eps not negative: a is brought between eps and 1 - eps first; else NaN beyond 0
 * and 1. */
WEIR_PUBLIC weir_status weir_logit(weir_tensor **out, const weir_tensor *a, double eps);
WEIR_PUBLIC weir_status weir_logit_(weir_tensor *a, double eps);
/* NaN, infinity and its negative become these; NULL: the largest and the least finite numbers. */
WEIR_PUBLIC weir_status weir_nan_to_num(weir_tensor **out, const weir_tensor *a, double nan,
                                        const double *posinf, const double *neginf);
WEIR_PUBLIC weir_status weir_nan_to_num_(weir_tensor *a, double nan, const double *posinf,
                                         const double *neginf);

/* ---- two operands -----------------------------------------------------------------------------
 * All forms of ops.h's: weir_fmod(&out, a, b), weir_fmod_scalar(), weir_scalar_fmod(),
 * weir_fmod_(), weir_fmod_scalar_(). remainder has b's sign, fmod a's; of integers by zero as
 * floor_divide. xlogy is a ln b, 0 where a is 0. bitwise_ are of integers and bool, shifts of
 * integers: by a negative number, or by more bits than there are, as by all bits. */
#define WEIR_FUNCTION2_MAP(X)                                                                      \
  X(remainder, REMAINDER)                                                                          \
  X(fmod, FMOD)                                                                                    \
  X(xlogy, XLOGY)                                                                                  \
  X(copysign, COPYSIGN)                                                                            \
  X(bitwise_and, BITWISE_AND)                                                                      \
  X(bitwise_or, BITWISE_OR)                                                                        \
  X(bitwise_xor, BITWISE_XOR)                                                                      \
  X(bitwise_left_shift, LSHIFT)                                                                    \
  X(bitwise_right_shift, RSHIFT)

#define WEIR_FUNCTION2_DECLARE(name, op)                                                           \
  WEIR_PUBLIC weir_status weir_##name(weir_tensor **out, const weir_tensor *a,                     \
                                      const weir_tensor *b);                                       \
  WEIR_PUBLIC weir_status weir_##name##_scalar(weir_tensor **out, const weir_tensor *a,            \
                                               weir_scalar b);                                     \
  WEIR_PUBLIC weir_status weir_scalar_##name(weir_tensor **out, weir_scalar a,                     \
                                             const weir_tensor *b);                                \
  WEIR_PUBLIC weir_status weir_##name##_(weir_tensor *a, const weir_tensor *b);                    \
  WEIR_PUBLIC weir_status weir_##name##_scalar_(weir_tensor *a, weir_scalar b);
WEIR_FUNCTION2_MAP(WEIR_FUNCTION2_DECLARE)

/* Of tensors: weir_atan2(&out, a, b) and weir_atan2_(a, b). hypot nextafter logaddexp logaddexp2
 * are of floating point, gcd lcm of integers; fmax fmin take what is not NaN. heaviside: b where a
 * is 0, else whether a is positive; both of one dtype. ldexp: a 2^b, of floating point and integers
 * exact, in the dtype of a. */
#define WEIR_PAIR_MAP(X)                                                                           \
  X(atan2, ATAN2)                                                                                  \
  X(hypot, HYPOT)                                                                                  \
  X(nextafter, NEXTAFTER)                                                                          \
  X(logaddexp, LOGADDEXP)                                                                          \
  X(logaddexp2, LOGADDEXP2)                                                                        \
  X(fmax, FMAX)                                                                                    \
  X(fmin, FMIN)                                                                                    \
  X(gcd, GCD)                                                                                      \
  X(lcm, LCM)                                                                                      \
  X(logical_xor, LOGICAL_XOR)
#define WEIR_MADE_PAIR_MAP(X)                                                                      \
  X(heaviside, HEAVISIDE)                                                                          \
  X(ldexp, MUL)

#define WEIR_PAIR_DECLARE(name, op)                                                                \
  WEIR_PUBLIC weir_status weir_##name(weir_tensor **out, const weir_tensor *a,                     \
                                      const weir_tensor *b);                                       \
  WEIR_PUBLIC weir_status weir_##name##_(weir_tensor *a, const weir_tensor *b);
WEIR_PAIR_MAP(WEIR_PAIR_DECLARE)
WEIR_MADE_PAIR_MAP(WEIR_PAIR_DECLARE)

/* a^b in float64, whatever the dtypes. Errors: ENOTSUP, complex numbers. */
WEIR_PUBLIC weir_status weir_float_power(weir_tensor **out, const weir_tensor *a,
                                         const weir_tensor *b);
WEIR_PUBLIC weir_status weir_float_power_scalar(weir_tensor **out, const weir_tensor *a,
                                                weir_scalar b);

/* rounding_mode NULL: as weir_div(); "trunc": towards 0; "floor": as weir_floor_divide(). Errors:
 * "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found 'up'". */
WEIR_PUBLIC weir_status weir_div_rounding(weir_tensor **out, const weir_tensor *a,
                                          const weir_tensor *b, const char *rounding_mode);
WEIR_PUBLIC weir_status weir_div_rounding_scalar(weir_tensor **out, const weir_tensor *a,
                                                 weir_scalar b, const char *rounding_mode);
WEIR_PUBLIC weir_status weir_div_rounding_(weir_tensor *a, const weir_tensor *b,
                                           const char *rounding_mode);
WEIR_PUBLIC weir_status weir_div_rounding_scalar_(weir_tensor *a, weir_scalar b,
                                                  const char *rounding_mode);

/* ---- three operands ------------------------------------------------------------------------- */

/* a + weight (end - a); all of one dtype. Errors: "expected dtype float for `end` but got dtype
 * double". */
WEIR_PUBLIC weir_status weir_lerp(weir_tensor **out, const weir_tensor *a, const weir_tensor *end,
                                  const weir_tensor *weight);
WEIR_PUBLIC weir_status weir_lerp_scalar(weir_tensor **out, const weir_tensor *a,
                                         const weir_tensor *end, weir_scalar weight);
WEIR_PUBLIC weir_status weir_lerp_(weir_tensor *a, const weir_tensor *end,
                                   const weir_tensor *weight);
WEIR_PUBLIC weir_status weir_lerp_scalar_(weir_tensor *a, const weir_tensor *end,
                                          weir_scalar weight);
/* a + value b c, a + value b / c. Errors: addcdiv of two integers. */
WEIR_PUBLIC weir_status weir_addcmul(weir_tensor **out, const weir_tensor *a, const weir_tensor *b,
                                     const weir_tensor *c, weir_scalar value);
WEIR_PUBLIC weir_status weir_addcdiv(weir_tensor **out, const weir_tensor *a, const weir_tensor *b,
                                     const weir_tensor *c, weir_scalar value);
WEIR_PUBLIC weir_status weir_addcmul_(weir_tensor *a, const weir_tensor *b, const weir_tensor *c,
                                      weir_scalar value);
WEIR_PUBLIC weir_status weir_addcdiv_(weir_tensor *a, const weir_tensor *b, const weir_tensor *c,
                                      weir_scalar value);
/* As weir_clamp() (ops.h), with tensors; either may be NULL. A bound that is NaN gives NaN. */
WEIR_PUBLIC weir_status weir_clamp_tensor(weir_tensor **out, const weir_tensor *a,
                                          const weir_tensor *low, const weir_tensor *high);
WEIR_PUBLIC weir_status weir_clamp_tensor_(weir_tensor *a, const weir_tensor *low,
                                           const weir_tensor *high);
WEIR_PUBLIC weir_status weir_clamp_(weir_tensor *a, const weir_scalar *low,
                                    const weir_scalar *high);
WEIR_PUBLIC weir_status weir_clamp_min(weir_tensor **out, const weir_tensor *a, weir_scalar low);
WEIR_PUBLIC weir_status weir_clamp_max(weir_tensor **out, const weir_tensor *a, weir_scalar high);
WEIR_PUBLIC weir_status weir_clamp_min_(weir_tensor *a, weir_scalar low);
WEIR_PUBLIC weir_status weir_clamp_max_(weir_tensor *a, weir_scalar high);

/* ---- activations ------------------------------------------------------------------------------
 * torch.nn.functional's, of floating point; silu softsign tanhshrink also of complex64, hardtanh
 * relu6 threshold also of integers. */
#define WEIR_ACTIVATION_MAP(X)                                                                     \
  X(silu, SILU)                                                                                    \
  X(mish, MISH)                                                                                    \
  X(hardsigmoid, HARDSIGMOID)                                                                      \
  X(hardswish, HARDSWISH)                                                                          \
  X(logsigmoid, LOG_SIGMOID)
WEIR_ACTIVATION_MAP(WEIR_FUNCTION_DECLARE)
#define WEIR_MADE_ACTIVATION_MAP(X)                                                                \
  X(selu, ELU)                                                                                     \
  X(relu6, CLAMP)
WEIR_MADE_ACTIVATION_MAP(WEIR_FUNCTION_DECLARE)
#undef WEIR_FUNCTION_DECLARE
#undef WEIR_FUNCTION2_DECLARE
#undef WEIR_PAIR_DECLARE
WEIR_PUBLIC weir_status weir_softsign(weir_tensor **out, const weir_tensor *a);
WEIR_PUBLIC weir_status weir_tanhshrink(weir_tensor **out, const weir_tensor *a);
/* approximate "none" or "tanh". Errors: "approximate argument must be either none or tanh." */
WEIR_PUBLIC weir_status weir_gelu(weir_tensor **out, const weir_tensor *a, const char *approximate);
WEIR_PUBLIC weir_status weir_gelu_(weir_tensor *a, const char *approximate);
/* a, or a negative_slope where it is not positive (torch's usual: 0.01). */
WEIR_PUBLIC weir_status weir_leaky_relu(weir_tensor **out, const weir_tensor *a,
                                        double negative_slope);
WEIR_PUBLIC weir_status weir_leaky_relu_(weir_tensor *a, double negative_slope);
/* a, or alpha (e^a - 1) where it is not positive; celu: alpha (e^(a / alpha) - 1). Errors:
 * "ZeroDivisionError: alpha cannot be 0 for CELU". */
WEIR_PUBLIC weir_status weir_elu(weir_tensor **out, const weir_tensor *a, double alpha);
WEIR_PUBLIC weir_status weir_elu_(weir_tensor *a, double alpha);
WEIR_PUBLIC weir_status weir_celu(weir_tensor **out, const weir_tensor *a, double alpha);
WEIR_PUBLIC weir_status weir_celu_(weir_tensor *a, double alpha);
/* ln(1 + e^(beta a)) / beta, a itself where beta a is above the threshold (usual: 1, 20). */
WEIR_PUBLIC weir_status weir_softplus(weir_tensor **out, const weir_tensor *a, double beta,
                                      double threshold);
/* As weir_clamp(). Errors: "min_val cannot be greater than max_val", "Bool inputs not supported for
 * hardtanh". */
WEIR_PUBLIC weir_status weir_hardtanh(weir_tensor **out, const weir_tensor *a, double min_val,
                                      double max_val);
WEIR_PUBLIC weir_status weir_hardtanh_(weir_tensor *a, double min_val, double max_val);
/* Towards 0 by lambd, and 0 within; or a itself beyond (usual: 0.5). Errors: "lambda must be in
 * range [0, 3.40282e+38] for input dtype Float, but found -1". */
WEIR_PUBLIC weir_status weir_softshrink(weir_tensor **out, const weir_tensor *a, double lambd);
WEIR_PUBLIC weir_status weir_hardshrink(weir_tensor **out, const weir_tensor *a, double lambd);
/* a where it is above the threshold, else value. */
WEIR_PUBLIC weir_status weir_threshold(weir_tensor **out, const weir_tensor *a, double threshold,
                                       double value);
WEIR_PUBLIC weir_status weir_threshold_(weir_tensor *a, double threshold, double value);
/* a, or weight a where it is not positive; weight: one number, or one for each of a's channels
 * (dimension 1). Errors: "Mismatch of parameter numbers and input channel size. Found parameter
 * numbers = 2 and channel size = 3.", "prelu: Type promoting not supported. Got Float and Double".
 */
WEIR_PUBLIC weir_status weir_prelu(weir_tensor **out, const weir_tensor *a,
                                   const weir_tensor *weight);
/* a's first half along dim times the sigmoid of its second. Errors: "Halving dimension must be
 * even, but dimension 0 is size 3". */
WEIR_PUBLIC weir_status weir_glu(weir_tensor **out, const weir_tensor *a, int dim);

#ifdef __cplusplus
}
#endif

#endif
