/* compute.h: what a device can calculate: the second half of the seam (backend.h).
 *
 * The tensor layer (core/tensor) checks arguments, promotes dtypes, broadcasts, allocates the
 * result, and describes what is to be done in one of the structs below; a device fills one struct
 * of functions and does it. The same request gives the same result on every device: exactly for
 * integers, copies and random numbers, to rounding for floating point.
 *
 * All functions enqueue in `stream` and return; what they point to stays valid until that work is
 * done (memory by stream order, the request itself only until the function returns). The cpu has no
 * streams and is done when it returns. Errors are the device's; nothing here is an argument check:
 * who asks has checked.
 *
 * Words. operand: memory, a dtype and strides in elements, one a dimension of the loop; a stride of
 * 0 repeats. An operand without memory is a number, the same everywhere. compute dtype: what inputs
 * are converted to before the operation; for float16 and bfloat16 the arithmetic itself is
 * float32's, rounded once at the end, as in PyTorch.
 */
#ifndef WEIR_BACKEND_COMPUTE_H
#define WEIR_BACKEND_COMPUTE_H

#include <stdbool.h>
#include <stdint.h>
#include "core/base/require.h"
#include "core/weir/blas.h"
#include "core/weir/dtype.h"

enum { WEIR_DIMS = 8 }; /* the most dimensions a tensor has: WEIR_MAX_DIMS */

typedef weir_scalar weir_number;

typedef struct weir_operand {
  void *data; /* the first element, device memory of this device; NULL: `number` */
  weir_dtype dtype;
  int64_t stride[WEIR_DIMS]; /* elements */
  weir_number number;        /* data is NULL */
} weir_operand;

/* ---- elementwise ------------------------------------------------------------------------------
 * One row an operation: enumerations, names, rules and tables of kernels are all made of it.
 *
 * X(identifier, torch's name, inputs, gives, takes, computes, keeps, host, device, absent, refusal)
 *
 * gives     dtype of the result: SAME as the operands' common dtype; BOOL; FLOATING: of bool and
 *           integers the default dtype, which is then what is calculated in
 * takes     the set of common dtypes (WEIR_DTYPES_*) of operands it is there for; NONE: not a
 *           function of its own
 * computes  the set of compute dtypes that devices have kernels for
 * keeps     bit i: a number as input i keeps float32's precision among float16 and bfloat16
 * host      kernels of the cpu: LOOP: the function dtype_OP of cpu/kernels.h, for each of
 *           `computes`; CAST: its conversions
 * device    kernels of CUDA devices: for which numbers cuda/kernels/op.h has it: any, real, smooth
 *           (floating point and complex); function: cuda/kernels/functions.cu, for each of
 *           `computes`; caller: what calls it does the operation itself
 * absent    torch's name of the kernel that other dtypes have not; %s: of the device
 * refusal   the sentence (core/ops/elementwise.c) in its place, before all else; NULL: none
 *
 * What is stored is out's dtype. Integer division DIV is true division and never has an integer
 * compute dtype; FLOOR_DIV rounds towards minus infinity. CLOSE: |a - b| <= p[1] + p[0] |b|, or
 * a == b; p[2]: NaN equals NaN. RANGE: p[0] + i p[1], i: the place in the loop; exact for integers.
 * WHERE's first input is bool. Signed overflow wraps. maximum and minimum pass NaN on. */
/* clang-format off */
#define WEIR_OPS(X)                                                                                          \
  X(COPY,        "copy_",        1, SAME,     EVERY,   EVERY,    0, CAST, any,    "copy_",          NULL)    \
  X(NEG,         "neg",          1, SAME,     NUMBERS, NUMBERS,  0, LOOP, any,    "neg_%s",         NEGATES) \
  X(ABS,         "abs",          1, SAME,     NUMBERS, EVERY,    0, LOOP, any,    "abs_%s",         NULL)    \
  X(RELU,        "relu",         1, SAME,     REAL,    ORDERED,  0, LOOP, real,   "relu_%s",        NULL)    \
  X(EXP,         "exp",          1, FLOATING, EVERY,   FLOATING, 0, LOOP, smooth, "exp_%s",         NULL)    \
  X(LOG,         "log",          1, FLOATING, EVERY,   FLOATING, 0, LOOP, smooth, "log_%s",         NULL)    \
  X(SQRT,        "sqrt",         1, FLOATING, EVERY,   FLOATING, 0, LOOP, smooth, "sqrt_%s",        NULL)    \
  X(RSQRT,       "rsqrt",        1, FLOATING, EVERY,   FLOATING, 0, LOOP, smooth, "rsqrt_%s",       NULL)    \
  X(SIN,         "sin",          1, FLOATING, EVERY,   FLOATING, 0, LOOP, smooth, "sin_%s",         NULL)    \
  X(COS,         "cos",          1, FLOATING, EVERY,   FLOATING, 0, LOOP, smooth, "cos_%s",         NULL)    \
  X(TANH,        "tanh",         1, FLOATING, EVERY,   FLOATING, 0, LOOP, smooth, "tanh_%s",        NULL)    \
  X(SIGMOID,     "sigmoid",      1, FLOATING, EVERY,   FLOATING, 0, LOOP, smooth, "sigmoid_%s",     NULL)    \
  X(LOGICAL_NOT, "logical_not",  1, BOOL,     EVERY,   EVERY,    0, LOOP, any,    "logical_not_%s", NULL)    \
  X(ISFINITE,    "isfinite",     1, BOOL,     EVERY,   EVERY,    0, LOOP, any,    "isfinite_%s",    NULL)    \
  X(ADD,         "add",          2, SAME,     EVERY,   EVERY,    3, LOOP, any,    "add_%s",         NULL)    \
  X(SUB,         "sub",          2, SAME,     NUMBERS, EVERY,    3, LOOP, any,    "sub_%s",         NULL)    \
  X(MUL,         "mul",          2, SAME,     EVERY,   EVERY,    3, LOOP, any,    "mul_%s",         NULL)    \
  X(DIV,         "div",          2, FLOATING, EVERY,   FLOATING, 3, LOOP, smooth, "div_true_%s",    NULL)    \
  X(FLOOR_DIV,   "floor_divide", 2, SAME,     REAL,    REAL,     2, LOOP, real,   "div_floor_%s",   NULL)    \
  X(POW,         "pow",          2, SAME,     NUMBERS, EVERY,    3, LOOP, any,    "pow",            NULL)    \
  X(MAXIMUM,     "maximum",      2, SAME,     ORDERED, ORDERED,  0, LOOP, real,   "maximum_%s",     MAXIMUM) \
  X(MINIMUM,     "minimum",      2, SAME,     ORDERED, ORDERED,  0, LOOP, real,   "minimum_%s",     MINIMUM) \
  X(EQ,          "eq",           2, BOOL,     EVERY,   EVERY,    0, LOOP, any,    "eq_%s",          NULL)    \
  X(NE,          "ne",           2, BOOL,     EVERY,   EVERY,    0, LOOP, any,    "ne_%s",          NULL)    \
  X(LT,          "lt",           2, BOOL,     ORDERED, ORDERED,  0, LOOP, real,   "lt_%s",          NULL)    \
  X(LE,          "le",           2, BOOL,     ORDERED, ORDERED,  0, LOOP, real,   "le_%s",          NULL)    \
  X(GT,          "gt",           2, BOOL,     ORDERED, ORDERED,  0, LOOP, real,   "gt_%s",          NULL)    \
  X(GE,          "ge",           2, BOOL,     ORDERED, ORDERED,  0, LOOP, real,   "ge_%s",          NULL)    \
  X(LOGICAL_AND, "logical_and",  2, BOOL,     EVERY,   EVERY,    0, LOOP, any,    "logical_and_%s", NULL)    \
  X(LOGICAL_OR,  "logical_or",   2, BOOL,     EVERY,   EVERY,    0, LOOP, any,    "logical_or_%s",  NULL)    \
  X(CLOSE,       "isclose",      2, BOOL,     EVERY,   EVERY,    0, LOOP, any,    "isclose_%s",     NULL)    \
  X(RANGE,       "arange",       0, SAME,     NONE,    ORDERED,  0, LOOP, caller, NULL,             NULL)    \
  X(WHERE,       "where",        3, SAME,     EVERY,   EVERY,    0, LOOP, caller, "where_%s",       NULL)    \
  WEIR_FUNCTION_OPS(X) WEIR_PARAMETER_OPS(X)

/* More rows of it. A BACKWARD's first input is the gradient, its second the operation's input; of
 * SIGMOID and TANH its result. LERP: x + z (y - x). CLAMP: x, not below y, not above z. */
#define WEIR_FUNCTION_OPS(X)                                                                                                                \
  X(ERF,                  "erf",                  1, FLOATING, ORDERED,  FLOATS,   0, LOOP, function, "erf_vml_%s",              NULL)      \
  X(ERFC,                 "erfc",                 1, FLOATING, ORDERED,  FLOATS,   0, LOOP, function, "erfc_vml_%s",             NULL)      \
  X(ERFINV,               "erfinv",               1, FLOATING, ORDERED,  FLOATS,   0, LOOP, function, "erfinv_vml_%s",           NULL)      \
  X(LGAMMA,               "lgamma",               1, FLOATING, ORDERED,  FLOATS,   0, LOOP, function, "lgamma_vml_%s",           NULL)      \
  X(DIGAMMA,              "digamma",              1, FLOATING, ORDERED,  FLOATS,   0, LOOP, function, "digamma",                 NULL)      \
  X(LOG1P,                "log1p",                1, FLOATING, EVERY,    FLOATING, 0, LOOP, function, "log1p_vml_%s",            NULL)      \
  X(EXPM1,                "expm1",                1, FLOATING, EVERY,    FLOATING, 0, LOOP, function, "expm1_vml_%s",            NULL)      \
  X(LOG2,                 "log2",                 1, FLOATING, EVERY,    FLOATING, 0, LOOP, function, "log2_vml_%s",             NULL)      \
  X(LOG10,                "log10",                1, FLOATING, EVERY,    FLOATING, 0, LOOP, function, "log10_vml_%s",            NULL)      \
  X(EXP2,                 "exp2",                 1, FLOATING, EVERY,    FLOATING, 0, LOOP, function, "exp2_vml_%s",             NULL)      \
  X(TAN,                  "tan",                  1, FLOATING, EVERY,    FLOATING, 0, LOOP, function, "tan_vml_%s",              NULL)      \
  X(ASIN,                 "asin",                 1, FLOATING, EVERY,    FLOATING, 0, LOOP, function, "asin_vml_%s",             NULL)      \
  X(ACOS,                 "acos",                 1, FLOATING, EVERY,    FLOATING, 0, LOOP, function, "acos_vml_%s",             NULL)      \
  X(ATAN,                 "atan",                 1, FLOATING, EVERY,    FLOATING, 0, LOOP, function, "atan_vml_%s",             NULL)      \
  X(SINH,                 "sinh",                 1, FLOATING, EVERY,    FLOATING, 0, LOOP, function, "sinh_vml_%s",             NULL)      \
  X(COSH,                 "cosh",                 1, FLOATING, EVERY,    FLOATING, 0, LOOP, function, "cosh_vml_%s",             NULL)      \
  X(ASINH,                "asinh",                1, FLOATING, EVERY,    FLOATING, 0, LOOP, function, "asinh_vml_%s",            NULL)      \
  X(ACOSH,                "acosh",                1, FLOATING, EVERY,    FLOATING, 0, LOOP, function, "acosh_vml_%s",            NULL)      \
  X(ATANH,                "atanh",                1, FLOATING, EVERY,    FLOATING, 0, LOOP, function, "atanh_vml_%s",            NULL)      \
  X(RECIPROCAL,           "reciprocal",           1, FLOATING, EVERY,    FLOATING, 0, LOOP, function, "reciprocal_vml_%s",       NULL)      \
  X(SINC,                 "sinc",                 1, FLOATING, EVERY,    FLOATING, 0, LOOP, function, "sinc_vml_%s",             NULL)      \
  X(FLOOR,                "floor",                1, SAME,     REAL,     REAL,     0, LOOP, function, "floor_vml_%s",            FLOOR)     \
  X(CEIL,                 "ceil",                 1, SAME,     REAL,     REAL,     0, LOOP, function, "ceil_vml_%s",             CEIL)      \
  X(ROUND,                "round",                1, SAME,     REAL,     REAL,     0, LOOP, function, "round_vml_%s",            NULL)      \
  X(TRUNC,                "trunc",                1, SAME,     REAL,     REAL,     0, LOOP, function, "trunc_vml_%s",            TRUNC)     \
  X(FRAC,                 "frac",                 1, SAME,     FLOATS,   FLOATS,   0, LOOP, function, "frac_%s",                 NULL)      \
  X(SIGN,                 "sign",                 1, SAME,     ORDERED,  ORDERED,  0, LOOP, function, "sign_%s",                 SIGN)      \
  X(SGN,                  "sgn",                  1, SAME,     EVERY,    EVERY,    0, LOOP, function, "sgn_%s",                  NULL)      \
  X(BITWISE_NOT,          "bitwise_not",          1, SAME,     BITS,     BITS,     0, LOOP, function, "bitwise_not_%s",          NULL)      \
  X(ISNAN,                "isnan",                1, BOOL,     EVERY,    EVERY,    0, LOOP, function, "isnan_%s",                NULL)      \
  X(ISINF,                "isinf",                1, BOOL,     EVERY,    EVERY,    0, LOOP, function, "isinf_%s",                NULL)      \
  X(SIGNBIT,              "signbit",              1, BOOL,     ORDERED,  ORDERED,  0, LOOP, function, "signbit_%s",              SIGNBIT)   \
  X(SILU,                 "silu",                 1, SAME,     FLOATING, FLOATING, 0, LOOP, function, "silu_%s",                 NULL)      \
  X(GELU,                 "gelu",                 1, SAME,     FLOATS,   FLOATS,   0, LOOP, function, "GeluKernelImpl",          NULL)      \
  X(GELU_TANH,            "gelu",                 1, SAME,     FLOATS,   FLOATS,   0, LOOP, function, "GeluKernelImpl",          NULL)      \
  X(MISH,                 "mish",                 1, SAME,     FLOATS,   FLOATS,   0, LOOP, function, "mish_%s",                 NULL)      \
  X(HARDSIGMOID,          "hardsigmoid",          1, SAME,     FLOATS,   FLOATS,   0, LOOP, function, "hardsigmoid_%s",          NULL)      \
  X(HARDSWISH,            "hardswish",            1, SAME,     FLOATS,   FLOATS,   0, LOOP, function, "hardswish_%s",            NULL)      \
  X(LOG_SIGMOID,          "log_sigmoid",          1, SAME,     FLOATS,   FLOATS,   0, LOOP, function, "log_sigmoid_%s",          NULL)      \
  X(REMAINDER,            "remainder",            2, SAME,     REAL,     REAL,     0, LOOP, function, "remainder_%s",            NULL)      \
  X(FMOD,                 "fmod",                 2, SAME,     REAL,     REAL,     0, LOOP, function, "fmod_%s",                 NULL)      \
  X(TRUNC_DIV,            "div",                  2, SAME,     REAL,     REAL,     2, LOOP, function, "div_trunc_%s",            NULL)      \
  X(ATAN2,                "atan2",                2, FLOATING, ORDERED,  FLOATS,   0, LOOP, function, "atan2_%s",                NULL)      \
  X(COPYSIGN,             "copysign",             2, FLOATING, ORDERED,  FLOATS,   0, LOOP, function, "copysign_%s",             NULL)      \
  X(XLOGY,                "xlogy",                2, FLOATING, ORDERED,  FLOATS,   0, LOOP, function, "xlogy_%s",                NULL)      \
  X(HYPOT,                "hypot",                2, SAME,     FLOATS,   FLOATS,   0, LOOP, function, "hypot_%s",                NULL)      \
  X(NEXTAFTER,            "nextafter",            2, SAME,     FLOATS,   FLOATS,   0, LOOP, function, "nextafter_%s",            NULL)      \
  X(LOGADDEXP,            "logaddexp",            2, SAME,     FLOATS,   FLOATS,   0, LOOP, function, "logaddexp_%s",            NULL)      \
  X(LOGADDEXP2,           "logaddexp2",           2, SAME,     FLOATS,   FLOATS,   0, LOOP, function, "logaddexp2_%s",           NULL)      \
  X(FMAX,                 "fmax",                 2, SAME,     ORDERED,  ORDERED,  0, LOOP, function, "fmax_%s",                 FMAX)      \
  X(FMIN,                 "fmin",                 2, SAME,     ORDERED,  ORDERED,  0, LOOP, function, "fmin_%s",                 FMIN)      \
  X(HEAVISIDE,            "heaviside",            2, SAME,     ORDERED,  ORDERED,  0, LOOP, function, "heaviside_%s",            HEAVISIDE) \
  X(GCD,                  "gcd",                  2, SAME,     INTEGERS, INTEGERS, 0, LOOP, function, "gcd_%s",                  NULL)      \
  X(LCM,                  "lcm",                  2, SAME,     INTEGERS, INTEGERS, 0, LOOP, function, "lcm_%s",                  NULL)      \
  X(BITWISE_AND,          "bitwise_and",          2, SAME,     BITS,     BITS,     0, LOOP, function, "bitwise_and_%s",          NULL)      \
  X(BITWISE_OR,           "bitwise_or",           2, SAME,     BITS,     BITS,     0, LOOP, function, "bitwise_or_%s",           NULL)      \
  X(BITWISE_XOR,          "bitwise_xor",          2, SAME,     BITS,     BITS,     0, LOOP, function, "bitwise_xor_%s",          NULL)      \
  X(LSHIFT,               "bitwise_left_shift",   2, SAME,     INTEGERS, INTEGERS, 0, LOOP, function, "lshift_%s",               NULL)      \
  X(RSHIFT,               "bitwise_right_shift",  2, SAME,     INTEGERS, INTEGERS, 0, LOOP, function, "rshift_%s",               NULL)      \
  X(LOGICAL_XOR,          "logical_xor",          2, BOOL,     EVERY,    EVERY,    0, LOOP, function, "logical_xor_%s",          NULL)      \
  X(PRELU,                "prelu",                2, SAME,     FLOATS,   FLOATS,   0, LOOP, function, "prelu_%s",                NULL)      \
  X(GLU,                  "glu",                  2, SAME,     FLOATS,   FLOATS,   0, LOOP, function, "glu_%s",                  NULL)      \
  X(SIGMOID_BACKWARD,     "sigmoid_backward",     2, SAME,     FLOATS,   FLOATS,   0, LOOP, function, "sigmoid_backward_%s",     NULL)      \
  X(TANH_BACKWARD,        "tanh_backward",        2, SAME,     FLOATS,   FLOATS,   0, LOOP, function, "tanh_backward_%s",        NULL)      \
  X(SILU_BACKWARD,        "silu_backward",        2, SAME,     FLOATS,   FLOATS,   0, LOOP, function, "silu_backward_%s",        NULL)      \
  X(GELU_BACKWARD,        "gelu_backward",        2, SAME,     FLOATS,   FLOATS,   0, LOOP, function, "gelu_backward_%s",        NULL)      \
  X(GELU_TANH_BACKWARD,   "gelu_backward",        2, SAME,     FLOATS,   FLOATS,   0, LOOP, function, "gelu_tanh_backward_%s",   NULL)      \
  X(MISH_BACKWARD,        "mish_backward",        2, SAME,     FLOATS,   FLOATS,   0, LOOP, function, "mish_backward_%s",        NULL)      \
  X(HARDSIGMOID_BACKWARD, "hardsigmoid_backward", 2, SAME,     FLOATS,   FLOATS,   0, LOOP, function, "hardsigmoid_backward_%s", NULL)      \
  X(HARDSWISH_BACKWARD,   "hardswish_backward",   2, SAME,     FLOATS,   FLOATS,   0, LOOP, function, "hardswish_backward_%s",   NULL)      \
  X(LOG_SIGMOID_BACKWARD, "log_sigmoid_backward", 2, SAME,     FLOATS,   FLOATS,   0, LOOP, function, "log_sigmoid_backward_%s", NULL)      \
  X(CLAMP,                "clamp",                3, SAME,     REAL,     REAL,     0, LOOP, function, "clamp_%s",                CLAMP)     \
  X(LERP,                 "lerp",                 3, SAME,     FLOATING, FLOATING, 4, LOOP, function, "lerp_kernel_tensor",      NULL)

/* Those that read p, as floating point unless the compute dtype is whole or complex. ADDCMUL,
 * ADDCDIV: x + p[0] y z, x + p[0] y / z. LOGIT: x is brought between p[0] and 1 - p[0], which is
 * below 0: it is not. NAN_TO_NUM: what NaN, infinity and its negative become. ROUND_DECIMALS: p[0]
 * is 10 to the power of |decimals|, p[1] not 0: decimals are negative. LEAKY_RELU: the slope. ELU:
 * x p[1], or p[0] (e^(p[2] x) - 1) where x is not positive. SOFTPLUS: beta, threshold. SOFTSHRINK,
 * HARDSHRINK: lambda. THRESHOLD: the threshold, the value. HARDTANH: the ends. */
#define WEIR_PARAMETER_OPS(X)                                                                                                               \
  X(ADDCMUL,              "addcmul",              3, SAME,     NUMBERS,  NUMBERS,  0, LOOP, function, "addcmul_%s_out",          NULL)      \
  X(ADDCDIV,              "addcdiv",              3, SAME,     FLOATING, FLOATING, 0, LOOP, function, "addcdiv_%s_out",          NULL)      \
  X(LOGIT,                "logit",                1, FLOATING, ORDERED,  FLOATS,   0, LOOP, function, "logit_%s",                NULL)      \
  X(NAN_TO_NUM,           "nan_to_num",           1, SAME,     FLOATING, FLOATING, 0, LOOP, function, "nan_to_num",              NULL)      \
  X(ROUND_DECIMALS,       "round",                1, SAME,     FLOATS,   FLOATS,   0, LOOP, function, "round_%s",                NULL)      \
  X(LEAKY_RELU,           "leaky_relu",           1, SAME,     FLOATS,   FLOATS,   0, LOOP, function, "leaky_relu_%s",           NULL)      \
  X(ELU,                  "elu",                  1, SAME,     FLOATS,   FLOATS,   0, LOOP, function, "elu_%s",                  NULL)      \
  X(SOFTPLUS,             "softplus",             1, SAME,     FLOATS,   FLOATS,   0, LOOP, function, "softplus_%s",             NULL)      \
  X(SOFTSHRINK,           "softshrink",           1, SAME,     FLOATS,   FLOATS,   0, LOOP, function, "softshrink_%s",           NULL)      \
  X(HARDSHRINK,           "hardshrink",           1, SAME,     FLOATS,   FLOATS,   0, LOOP, function, "hardshrink_%s",           NULL)      \
  X(THRESHOLD,            "threshold",            1, SAME,     REAL,     REAL,     0, LOOP, function, "threshold_%s",            NULL)      \
  X(LEAKY_RELU_BACKWARD,  "leaky_relu_backward",  2, SAME,     FLOATS,   FLOATS,   0, LOOP, function, "leaky_relu_backward_%s",  NULL)      \
  X(ELU_BACKWARD,         "elu_backward",         2, SAME,     FLOATS,   FLOATS,   0, LOOP, function, "elu_backward_%s",         NULL)      \
  X(SOFTPLUS_BACKWARD,    "softplus_backward",    2, SAME,     FLOATS,   FLOATS,   0, LOOP, function, "softplus_backward_%s",    NULL)      \
  X(SHRINK_BACKWARD,      "shrink_backward",      2, SAME,     FLOATS,   FLOATS,   0, LOOP, function, "shrink_backward_%s",      NULL)      \
  X(THRESHOLD_BACKWARD,   "threshold_backward",   2, SAME,     FLOATS,   FLOATS,   0, LOOP, function, "threshold_backward_%s",   NULL)      \
  X(HARDTANH_BACKWARD,    "hardtanh_backward",    2, SAME,     FLOATS,   FLOATS,   0, LOOP, function, "hardtanh_backward_%s",    NULL)
/* clang-format on */

/* Sets of dtypes, as bits. */
#define WEIR_DTYPE_BIT(dtype) (1u << WEIR_##dtype)
enum {
  WEIR_DTYPES_NONE = 0,
  WEIR_DTYPES_REAL = WEIR_DTYPE_BIT(UINT8) | WEIR_DTYPE_BIT(INT8) | WEIR_DTYPE_BIT(INT16) |
                     WEIR_DTYPE_BIT(INT32) | WEIR_DTYPE_BIT(INT64) | WEIR_DTYPE_BIT(FLOAT16) |
                     WEIR_DTYPE_BIT(BFLOAT16) | WEIR_DTYPE_BIT(FLOAT32) | WEIR_DTYPE_BIT(FLOAT64),
  WEIR_DTYPES_FLOATING = WEIR_DTYPE_BIT(FLOAT16) | WEIR_DTYPE_BIT(BFLOAT16) |
                         WEIR_DTYPE_BIT(FLOAT32) | WEIR_DTYPE_BIT(FLOAT64) |
                         WEIR_DTYPE_BIT(COMPLEX64),
  WEIR_DTYPES_FLOATS = WEIR_DTYPES_FLOATING & ~WEIR_DTYPE_BIT(COMPLEX64),
  WEIR_DTYPES_INTEGERS = WEIR_DTYPES_REAL & ~WEIR_DTYPES_FLOATING,
  WEIR_DTYPES_BITS = WEIR_DTYPES_INTEGERS | WEIR_DTYPE_BIT(BOOL),
  WEIR_DTYPES_NUMBERS = WEIR_DTYPES_REAL | WEIR_DTYPE_BIT(COMPLEX64),
  WEIR_DTYPES_WIDE = WEIR_DTYPES_FLOATING | WEIR_DTYPE_BIT(INT64),
  WEIR_DTYPES_ORDERED = WEIR_DTYPES_REAL | WEIR_DTYPE_BIT(BOOL),
  WEIR_DTYPES_EVERY = WEIR_DTYPES_ORDERED | WEIR_DTYPE_BIT(COMPLEX64),
  WEIR_DTYPES_TRUTH = WEIR_DTYPES_EVERY /* as bool */
};

/* How the dtype of a result follows from the operands'. */
enum {
  WEIR_GIVES_SAME,
  WEIR_GIVES_BOOL,
  WEIR_GIVES_FLOATING,
  WEIR_GIVES_WIDE,
  WEIR_GIVES_PLACE,
  WEIR_GIVES_COUNT
};

typedef enum weir_op {
#define WEIR_OP_ENUM(name, ...) WEIR_OP_##name,
  WEIR_OPS(WEIR_OP_ENUM)
#undef WEIR_OP_ENUM
      WEIR_OP_COUNT
} weir_op;

/* Whether it reads p. */
static inline bool weir_op_has_p(weir_op op)
{
  return op >= WEIR_OP_ADDCMUL || op == WEIR_OP_CLOSE || op == WEIR_OP_RANGE;
}

/* out[i] = op(in[0][i], in[1][i], in[2][i]) for all i of the loop. ADD and SUB multiply their
 * second input by `alpha` first where has_alpha. out may be in[0] itself (same memory, same
 * strides), and else overlaps no input. The tensor layer has merged dimensions where strides allow:
 * a contiguous loop has one. */
typedef struct weir_loop {
  weir_op op;
  weir_dtype compute;
  int dims;                /* 0: one element */
  int64_t size[WEIR_DIMS]; /* outermost first; none is 0 */
  int64_t count;           /* their product, elements */
  weir_operand out, in[3];
  bool has_alpha;
  weir_number alpha, p[3];
} weir_loop;

/* ---- reductions -------------------------------------------------------------------------------
 * One row a reduction, as above.
 *
 * X(identifier, torch's name, gives, computes, order, empty, host, device, function, absent)
 *
 * gives     dtype of the result: SAME as the operand's; WIDE: of bool and integers int64, in which
 *           they are summed; BOOL, of uint8 uint8; PLACE, COUNT: int64
 * computes  the set of compute dtypes that devices have kernels for; TRUTH: every one, as bool
 * order     the order of the reduced dimensions counts
 * empty     nothing has a result, the identity
 * host      the folds of cpu/kernels.h: int_*, real_*, complex_*, as far as `computes` goes
 * device    the accumulator of cuda/kernels/reduce.cu
 * function  the name in torch's messages
 * absent    torch's name of the kernel that complex64 has not; NULL: it has
 *
 * ARGMAX and ARGMIN give the place in the reduced dimensions, counted row by row, of the first of
 * equals; NaN is larger and smaller than all, as in torch. MAX_INDEX and MIN_INDEX store the value
 * in out and the place in index. Floating point is summed so that the error grows at most with the
 * logarithm of the count (pairwise or in blocks), float16 and bfloat16 in float32. NONZERO: how
 * many are not 0. VAR: the sum of squares of what an element is off the mean, through max(0, each -
 * p), calculated in double; STD its root; both store the mean, too, where it is asked for. NORM:
 * the p-th root of the sum of |x|^p, in double; p is finite, 0: NONZERO. */
/* clang-format off */
#define WEIR_REDUCE_OPS(X)                                                                \
  X(SUM,       "sum",    WIDE,  EVERY,    0, 1, sum,  sum,     "sum",    NULL)            \
  X(MEAN,      "mean",   SAME,  FLOATING, 0, 1, sum,  sum,     "mean",   NULL)            \
  X(PROD,      "prod",   WIDE,  EVERY,    0, 1, prod, product, "prod",   NULL)            \
  X(MAX,       "max",    SAME,  ORDERED,  0, 0, max,  max,     "amax",   "max_values_%s") \
  X(MIN,       "min",    SAME,  ORDERED,  0, 0, min,  min,     "amin",   "min_values_%s") \
  X(ARGMAX,    "argmax", PLACE, ORDERED,  1, 0, max,  max,     "argmax", "argmax_%s")     \
  X(ARGMIN,    "argmin", PLACE, ORDERED,  1, 0, min,  min,     "argmin", "argmin_%s")     \
  X(MAX_INDEX, "max",    SAME,  ORDERED,  1, 0, max,  max,     "max",    "max_%s")        \
  X(MIN_INDEX, "min",    SAME,  ORDERED,  1, 0, min,  min,     "min",    "min_%s")        \
  X(ALL,       "all",    BOOL,  TRUTH,    0, 1, all,  truth,   "all",    NULL)            \
  X(ANY,       "any",    BOOL,  TRUTH,    0, 1, any,  truth,   "any",    NULL)            \
  X(NANSUM,    "nansum", WIDE,  ORDERED,  0, 1, nansum, sum,   "nansum", NULL)            \
  X(NONZERO,   "count_nonzero", COUNT, TRUTH, 0, 1, sum, truth, "count_nonzero", NULL)    \
  X(VAR,       "var",    SAME,  FLOATS,   0, 1, var,  var,     "var",    NULL)            \
  X(STD,       "std",    SAME,  FLOATS,   0, 1, var,  var,     "std",    NULL)            \
  X(NORM,      "norm",   SAME,  FLOATS,   0, 1, norm, norm,    "norm",   NULL)
/* clang-format on */

typedef enum weir_reduce_op {
#define WEIR_REDUCE_ENUM(name, ...) WEIR_REDUCE_##name,
  WEIR_REDUCE_OPS(WEIR_REDUCE_ENUM)
#undef WEIR_REDUCE_ENUM
      WEIR_REDUCE_COUNT
} weir_reduce_op;

/* The loop's first `kept` dimensions are the result's, the others are reduced; out's and index's
 * strides count for the kept ones only. Any size may be 0: an empty reduction stores the identity
 * (SUM, NANSUM, NONZERO, NORM 0, PROD 1, MEAN, VAR, STD NaN, ALL true, ANY false; the others are
 * never asked). */
typedef struct weir_reduce {
  weir_reduce_op op;
  weir_dtype compute;
  int kept, dims;
  int64_t size[WEIR_DIMS];
  int64_t outputs, each; /* products of the kept and of the reduced sizes */
  weir_operand out, in;
  weir_operand index; /* int64; MAX_INDEX and MIN_INDEX */
  weir_operand mean;  /* VAR and STD; of out's dtype; data NULL: is not asked for */
  double p;           /* VAR, STD, NORM */
} weir_reduce;

/* ---- running reductions, order ----------------------------------------------------------------
 * Lines: the elements of one dimension. Memory is outer x length x inner, row by row: element i of
 * line (o, j) is number (o length + i) inner + j. None of the three is 0.
 *
 * X(identifier, torch's name, computes, host, device)
 *
 * computes  the set of dtypes; integers are summed and multiplied as int64 only
 * host      the kernels of cpu/scan.c
 * device    the accumulator of cuda/kernels/scan.cu
 *
 * out[i] is what elements 0 to i of its line come to. Floating point is accumulated in double,
 * whatever the dtype. CUMMAX and CUMMIN store the place of the extreme, too, the last of equals;
 * NaN is larger and smaller than all. LOGCUMSUMEXP: log(sum(exp(x))) without overflow on the
 * way. */
/* clang-format off */
#define WEIR_SCAN_OPS(X)                                                   \
  X(CUMSUM,       "cumsum",       WEIR_DTYPES_WIDE,    sum,  sum)          \
  X(CUMPROD,      "cumprod",      WEIR_DTYPES_WIDE,    prod, product)      \
  X(LOGCUMSUMEXP, "logcumsumexp", WEIR_DTYPES_FLOATS,  lse,  log_sum)      \
  X(CUMMAX,       "cummax",       WEIR_DTYPES_ORDERED, max,  last_max)     \
  X(CUMMIN,       "cummin",       WEIR_DTYPES_ORDERED, min,  last_min)
/* clang-format on */

typedef enum weir_scan_op {
#define WEIR_SCAN_ENUM(name, ...) WEIR_SCAN_##name,
  WEIR_SCAN_OPS(WEIR_SCAN_ENUM)
#undef WEIR_SCAN_ENUM
      WEIR_SCAN_COUNT
} weir_scan_op;

typedef struct weir_scan {
  weir_scan_op op;
  weir_dtype dtype; /* of in and out */
  const void *in;
  void *out;
  int64_t *index; /* CUMMAX and CUMMIN */
  int64_t outer, length, inner;
} weir_scan;

/* Each line in order: the least first, or the largest where `descending`; NaN is the largest,
 * equals stay in their order (core/backend/sort_key.h). Of each line places `from` to from + keep -
 * 1 are stored, values and where they were: outer x keep x inner. */
typedef struct weir_sort_rows {
  weir_dtype dtype; /* any but complex64 */
  bool descending;
  const void *in;
  void *values;   /* of dtype */
  int64_t *index; /* place in the line */
  int64_t outer, length, inner;
  int64_t from, keep; /* keep is not 0 */
} weir_sort_rows;

/* For each value its place in a sequence that is in order: the first that is not less than it, or
 * `right`: the first that is greater; NaN is at the end. What is NaN in a sequence is neither, so
 * that bisection passes over it to the end, or, `nan_last`, is beyond all. */
typedef struct weir_search {
  weir_dtype dtype;     /* of both; not bool, not complex64 */
  const void *sequence; /* rows x length, or where `shared` one for all rows */
  const void *values;   /* rows x each */
  void *out;            /* rows x each: int64, or int32 */
  int64_t rows, length, each;
  bool shared, right, nan_last, out_int32;
} weir_search;

/* ---- random numbers ---------------------------------------------------------------------------
 * Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC11). Which word of
 * the stream an element takes, and how it becomes a number, is core/backend/philox.h, which hosts
 * and devices compile alike: a seed gives the same numbers, bit for bit, on every device and with
 * any number of threads. */
typedef enum weir_random_kind {
  WEIR_RANDOM_UNIFORM,    /* a + (b - a) u, u in [0, 1) */
  WEIR_RANDOM_NORMAL,     /* mean a, standard deviation b */
  WEIR_RANDOM_INTEGER,    /* low a to high b - 1, integers exact to 2^53 */
  WEIR_RANDOM_BERNOULLI,  /* 1 with probability a, else 0 */
  WEIR_RANDOM_PERMUTATION /* 0 to a - 1, all of them; b: the bits of a - 1; count is a */
} weir_random_kind;

typedef struct weir_random {
  weir_random_kind kind;
  double a, b;
  uint64_t seed;
  uint64_t offset;      /* blocks of four 32-bit words that earlier calls have used up */
  uint64_t used;        /* blocks this call uses: philox_blocks(count) */
  const uint64_t *base; /* of CUDA devices, in their memory, read when the work is done: the seed in
                         * place of `seed`, and what is added to `offset`; NULL: none */
  void *out;            /* contiguous */
  weir_dtype dtype;
  int64_t count; /* elements, not 0 */
} weir_random;

/* ---- linear algebra ---------------------------------------------------------------------------
 */

/* For each b: C = alpha op(A) op(B) + beta C, row-major: op(A) is m x k, op(B) k x n, C m x n.
 * A transposed operand is stored k x m (n x k). `ld`: elements from a row to the next of what is
 * stored; `step`: from a matrix of the batch to the next, 0 repeats. beta 0: C is not read. */
typedef struct weir_gemm {
  weir_dtype dtype;       /* of all three */
  int64_t m, n, k, batch; /* m, n, batch not 0; k 0 gives beta C */
  const void *a, *b;
  void *c;
  int64_t lda, ldb, ldc, stepa, stepb, stepc;
  bool transa, transb;
  double alpha, beta;
  bool tf32;              /* float32 may be rounded to TF32 where the device is quicker so */
  bool reduced_precision; /* float16, bfloat16: partial sums may be rounded to their dtype */
  bool deterministic;     /* the same bits every time */
  weir_blas blas;         /* who multiplies, on a device that has a choice */
} weir_gemm;

/* out[n][(c, r, s)][(y, x)] = in[n][c][y stride - pad + r dilation][...], 0 outside; both
 * contiguous. The matrix whose product with the weights is a convolution. */
typedef struct weir_im2col {
  weir_dtype dtype;
  const void *in;
  void *out;
  int64_t n, c, h, w; /* of the input */
  int64_t kernel[2];  /* rows, columns, as all pairs */
  int64_t stride[2], pad[2], dilation[2];
  int64_t oh, ow; /* of the output */
} weir_im2col;

/* Cross-correlation of n images of groups x `channels` planes: for each image, group and one of its
 * `outs` output planes, out[y][x] = bias + the sum over channels, r and s of in[y stride - pad + r
 * dilation][x stride - pad + s dilation] weight[out][channel][r][s], 0 outside; all contiguous. */
typedef struct weir_conv {
  weir_dtype dtype; /* of all: FLOAT16, BFLOAT16 (summed in float32), FLOAT32, FLOAT64 */
  const void *in, *weight;
  const void *bias; /* groups x outs elements; NULL: none */
  void *out;
  int64_t n, groups, channels, outs; /* the last two of a group; none is 0 */
  int64_t size[2], kernel[2];        /* of the input; rows, columns, as all pairs */
  int64_t stride[2], pad[2], dilation[2];
  int64_t result[2]; /* of the output */
} weir_conv;

/* A convolution, or one of its gradients, of two or three axes: of the same x (n, groups x
 * channels, size), w (groups x outs, channels, kernel) and y (n, groups x outs, result), all in one
 * format without holes, a pass writes one from the other two. */
typedef enum weir_conv_pass {
  WEIR_CONV_FORWARD,         /* y */
  WEIR_CONV_BACKWARD_INPUT,  /* x, from y's gradient */
  WEIR_CONV_BACKWARD_WEIGHT, /* w, from y's gradient */
} weir_conv_pass;

typedef struct weir_convolution {
  weir_conv_pass pass;
  weir_dtype dtype; /* of all: FLOAT16, BFLOAT16 (summed in float32), FLOAT32, FLOAT64 */
  void *x, *w, *y;
  int64_t n, groups, channels, outs; /* the last two of a group */
  int64_t size[3], kernel[3], result[3], stride[3], pad[3], dilation[3]; /* `axes` each; others 0 */
  int axes;
  bool channels_last;       /* else channels lie outside of the axes */
  bool tf32, deterministic; /* as of a weir_gemm */
  weir_blas blas;
} weir_convolution;

/* ---- rows -------------------------------------------------------------------------------------
 */

/* Softmax of `each` elements, `inner` elements apart, for outer x inner of them; all contiguous.
 * grad: what comes back for the result, which is `in` then; out is what goes on: in (grad - sum of
 * grad in), of the logarithm grad - exp(in) sum of grad. Calculated in float32 (float64 in
 * float64). */
typedef struct weir_softmax_request {
  weir_dtype dtype; /* of all: FLOAT16, BFLOAT16, FLOAT32, FLOAT64 */
  const void *in;
  const void *grad;           /* NULL: forward */
  void *out;                  /* may be `in` or `grad` */
  int64_t outer, each, inner; /* none is 0 */
  bool logarithm;
} weir_softmax_request;

/* Rows of `each` elements, normalised: LAYER (x - mean) / sqrt(variance + eps) weight + bias, RMS x
 * / sqrt(mean of squares + eps) weight + bias, AFFINE x weight + bias. Element i of row r has
 * element r % groups (each / inner) + i / inner of weight and bias; all contiguous. grad: what
 * comes back for the result of LAYER or RMS; out is what goes on to `in`. Calculated in float32
 * (float64 in float64), which weight and bias are. */
enum weir_norm_kind { WEIR_NORM_LAYER, WEIR_NORM_RMS, WEIR_NORM_AFFINE };
typedef struct weir_norm_request {
  weir_dtype dtype; /* of in, grad, out: FLOAT16, BFLOAT16, FLOAT32, FLOAT64 */
  int32_t kind;     /* enum weir_norm_kind */
  const void *in;
  const void *weight, *bias; /* NULL: 1, 0 */
  const void *grad;          /* NULL: forward */
  void *out;                 /* forward: may be `in` */
  int64_t rows, each;        /* none is 0 */
  int64_t groups, inner;     /* divide rows, each */
  double eps;
} weir_norm_request;

/* ---- indexing ---------------------------------------------------------------------------------
 * Elements of `self` chosen by index tensors, read or written. Where element i of the loop is in
 * self: self's strides times i's coordinates, which choose along dimensions that no index does, and
 * the indices' steps times what stands in them at i.
 *
 * READ: values = self; SET: self = values, of several to the same element the last in the loop's
 * order where `ordered`, else any; ADD, MUL, MAX, MIN: self = op(self, values), each rounded to the
 * dtype; of bool ADD and MAX are or, MUL and MIN and; NaN is larger and smaller than all. Integers
 * wrap. Of complex64 there is no MAX, no MIN. */
#define WEIR_INDEX_OPS(X)                                                                          \
  X(READ)                                                                                          \
  X(SET)                                                                                           \
  X(ADD)                                                                                           \
  X(MUL)                                                                                           \
  X(MAX)                                                                                           \
  X(MIN)

typedef enum weir_index_op {
#define WEIR_INDEX_ENUM(name) WEIR_INDEX_##name,
  WEIR_INDEX_OPS(WEIR_INDEX_ENUM)
#undef WEIR_INDEX_ENUM
      WEIR_INDEX_COUNT
} weir_index_op;

typedef struct weir_indices {
  weir_operand at; /* int64 or int32; always memory */
  int64_t size;    /* places there are: what is below 0 or not below it is out of bounds */
  int64_t step;    /* elements of self from a place to the next */
  int dim;         /* what the sentence calls it */
} weir_indices;

/* An index out of bounds: the cpu reports "index 5 is out of bounds for dimension 0 with size 3",
 * EINVAL, before it writes to self; *bad is the index. A device whose work is done later leaves
 * such an element alone (READ: stores 0), and reports the sentence when its stream is next waited
 * for. */
typedef struct weir_indexing {
  weir_index_op op;
  weir_dtype dtype;        /* of self and values */
  int dims;                /* 0: one element */
  int64_t size[WEIR_DIMS]; /* outermost first */
  int64_t count;           /* their product, elements, not 0 */
  weir_operand self;       /* 0: stride of a dimension that only indices choose along */
  weir_operand values;     /* data NULL: the number; not READ */
  int indices;
  weir_indices index[WEIR_DIMS];
  bool wrap;    /* -1 is the last */
  bool ordered; /* the same bits every time, on a device that could do without */
  int64_t *bad; /* NULL: not asked for */
} weir_indexing;

/* The places of elements, counted row by row: of each that is not 0, or, `times`, of each as often
 * as it states (integers; negative ones are 0). `sums` is written first, how many come before each
 * chunk of WEIR_PLACES_CHUNK elements, and after the last all; with `out` sums is read and places
 * are written: coordinate d of number k to out[d room + k], k below room. */
enum { WEIR_PLACES_CHUNK = 4096 };

typedef struct weir_places {
  const void *in; /* contiguous */
  weir_dtype dtype;
  int64_t count; /* elements, not 0 */
  bool times;
  int64_t *sums; /* (count + chunk - 1) / chunk + 1 */
  int64_t *out;  /* NULL: sums are asked for */
  int64_t room;
  int dims;                /* not 0 */
  int64_t size[WEIR_DIMS]; /* whose product is count */
} weir_places;
/* ---- windows ----------------------------------------------------------------------------------
 * What a window of a volume gives, and what it gives back. A plane is a volume of in[0] x in[1] x
 * in[2] elements, row by row, an image's channel; planes follow each other. Images and sequences
 * have leading axes of one element. Output place o of an axis sees places o stride - pad + k
 * dilation, k < kernel, as far as they are inside; adaptive: floor(o in / out) to
 * ceil((o + 1) in / out) - 1. window.h has this arithmetic, for hosts and devices alike. */
typedef struct weir_axis {
  int64_t in, out;                       /* places */
  int64_t kernel, stride, pad, dilation; /* places; adaptive: do not count */
} weir_axis;

/* AVERAGE: the sum of a window by `divisor`, or where that is 0 by how many places it has (with
 * count_pad also those of the padding). MAX: the largest, NaN if there is one; `index` is its place
 * in the plane, the first of equals, the last NaN. The BACK kinds: `to` is a plane of in: the sum
 * of what `from`, a plane of out, gives to each place; MAX_BACK reads index. Each sum is made by
 * one thread, always in the same order. */
typedef enum weir_pool_kind {
  WEIR_POOL_AVERAGE,
  WEIR_POOL_MAX,
  WEIR_POOL_AVERAGE_BACK,
  WEIR_POOL_MAX_BACK
} weir_pool_kind;

typedef struct weir_pool {
  weir_pool_kind kind;
  weir_dtype dtype; /* of from and to: REAL for MAX; else FLOATS, and int64 for AVERAGE */
  const void *from;
  void *to;
  int64_t *index; /* MAX, NULL: is not asked for; MAX_BACK */
  int64_t planes; /* not 0, as all sizes */
  weir_axis axis[3];
  bool adaptive, count_pad;
  int64_t divisor;
} weir_pool;

/* Planes of other sizes. An output place is a place in[i] * scale of the input, and its value made
 * of 1 (NEAREST, EXACT: rounded), 2 (LINEAR) or 4 (CUBIC, Keys 1981 with a = -0.75) places around
 * it, for each axis; at borders the outermost place is repeated. align: the outermost places of
 * both are the same. back: `from` is a plane of out, `to` of in, the sum of what each place was
 * given with. */
typedef enum weir_resample_kind {
  WEIR_RESAMPLE_NEAREST,
  WEIR_RESAMPLE_EXACT,
  WEIR_RESAMPLE_LINEAR,
  WEIR_RESAMPLE_CUBIC
} weir_resample_kind;

typedef struct weir_resample {
  weir_resample_kind kind;
  weir_dtype dtype; /* of FLOATS; NEAREST and EXACT: uint8, too */
  const void *from;
  void *to;
  int64_t planes;        /* not 0, as all sizes */
  int64_t in[3], out[3]; /* places */
  double scale[3];       /* places of in to one of out, as asked for; 0: by the sizes */
  bool align, back;
} weir_resample;

/* ---- factorisations ---------------------------------------------------------------------------
 * Of `batch` matrices of float32 or float64, one after the other, each column by column as LAPACK
 * has them; all memory is the device's. What is called room holds nothing afterwards.
 *
 * LU          a (m x n) becomes L below the diagonal, where it has 1s, and U, rows exchanged by
 *             partial pivoting; pivots (min(m, n)): with which row, from 1, each was exchanged
 * SOLVE       a (n x n) as LU; b (n x k) becomes the solution of a x = b; pivots (n): room
 * LU_SOLVE    the same with what LU has made of a, and its pivots
 * TRIANGULAR  b (n x k) becomes the solution; of a (n x n) one triangle is read, `unit`: its
 *             diagonal is 1s
 * CHOLESKY    a (n x n), of which the upper triangle is read, becomes U of a = U^T U there
 * QR          a (m x n) becomes R in the upper triangle; b (m x k), k at least min(m, n): the first
 *             k columns of Q; c (min(m, n)): room
 * EIGH        of a (n x n) one triangle is read, the upper or the lower; it becomes the
 *             eigenvectors; b (n): eigenvalues, ascending; c (n x n): room
 * SVD         a (m x n), n at most m, becomes U; b (n): singular values, descending; c (n x n): V^T
 *
 * info (1 each), 0 at first: 0; LU and SOLVE: the place of the first 0 on U's diagonal, from 1;
 * CHOLESKY: the order of the first minor that is not positive; EIGH and SVD: -1: an element is not
 * finite; above 0: it has not converged. */
typedef enum weir_factor_op {
  WEIR_FACTOR_LU,
  WEIR_FACTOR_SOLVE,
  WEIR_FACTOR_LU_SOLVE,
  WEIR_FACTOR_TRIANGULAR,
  WEIR_FACTOR_CHOLESKY,
  WEIR_FACTOR_QR,
  WEIR_FACTOR_EIGH,
  WEIR_FACTOR_SVD,
  WEIR_FACTOR_COUNT
} weir_factor_op;

typedef struct weir_factor {
  weir_factor_op op;
  weir_dtype dtype;       /* of a, b and c */
  int64_t batch, m, n, k; /* none is 0 */
  void *a, *b, *c;        /* `batch` matrices each; NULL: the operation has none */
  int64_t *pivots;        /* `batch` times as many; NULL: the operation has none */
  int64_t *info;          /* `batch` */
  bool upper, unit;       /* which triangle; TRIANGULAR */
} weir_factor;

/* ---- an optimizer's step ----------------------------------------------------------------------
 */

/* X(identifier, name): update.h has the formula of each, and what its states are. */
#define WEIR_UPDATE_RULES(X)                                                                       \
  X(SGD, sgd)                                                                                      \
  X(ADAM, adam)                                                                                    \
  X(RMSPROP, rmsprop)                                                                              \
  X(ADAGRAD, adagrad)

typedef enum weir_update_rule {
#define WEIR_UPDATE_ENUM(identifier, name) WEIR_UPDATE_##identifier,
  WEIR_UPDATE_RULES(WEIR_UPDATE_ENUM)
#undef WEIR_UPDATE_ENUM
      WEIR_UPDATE_RULE_COUNT
} weir_update_rule;

enum { WEIR_UPDATE_STATES = 3 };

/* `p` follows `grad`; the states change, too. All contiguous, of one dtype; none overlaps another.
 * Calculated in float32 (float64 in float64) and rounded once. */
typedef struct weir_update {
  weir_update_rule rule;
  weir_dtype dtype; /* FLOAT16, BFLOAT16, FLOAT32, FLOAT64 */
  void *p;
  const void *grad;
  void *state[WEIR_UPDATE_STATES]; /* NULL: the rule has none there, or does without */
  int64_t count;                   /* elements, not 0 */
  double lr, step;                 /* step: what the direction is multiplied by, and taken off */
  double weight_decay, momentum, dampening, beta1, beta2, eps;
  double root;    /* ADAM: what the second moment's root is divided by */
  bool decoupled; /* weight_decay shrinks p itself */
  bool first;     /* SGD: there is no momentum yet */
  bool maximize, nesterov, amsgrad, centered;
} weir_update;

/* map is there; the others are optional. Missing: ENOTSUP, for who asks. */
typedef struct weir_compute {
  weir_status (*map)(void *self, void *stream, const weir_loop *l);
  weir_status (*reduce)(void *self, void *stream, const weir_reduce *r);
  weir_status (*scan)(void *self, void *stream, const weir_scan *s);
  weir_status (*sort_rows)(void *self, void *stream, const weir_sort_rows *s);
  weir_status (*search)(void *self, void *stream, const weir_search *s);
  weir_status (*random)(void *self, void *stream, const weir_random *r);
  weir_status (*gemm)(void *self, void *stream, const weir_gemm *g);
  weir_status (*im2col)(void *self, void *stream, const weir_im2col *c);
  weir_status (*conv)(void *self, void *stream, const weir_conv *c); /* NULL: im2col and gemm */
  weir_status (*softmax)(void *self, void *stream, const weir_softmax_request *s);
  weir_status (*norm)(void *self, void *stream, const weir_norm_request *n);
  weir_status (*index)(void *self, void *stream, const weir_indexing *r);
  weir_status (*places)(void *self, void *stream, const weir_places *p);
  weir_status (*pool)(void *self, void *stream, const weir_pool *p);
  weir_status (*resample)(void *self, void *stream, const weir_resample *r);
  weir_status (*factor)(void *self, void *stream, const weir_factor *f);
  /* Whether it does a request of float32, of which op, batch, m, n and k are filled, in float32;
   * else it is asked for in float64. */
  bool (*factor_narrow)(void *self, const weir_factor *f);
  weir_status (*update)(void *self, void *stream, const weir_update *u);
  /* Whether a library of the device's is there for a request without its pointers; then *done
   * false: not for this one. */
  bool (*convolves)(void *self, const weir_convolution *c);
  weir_status (*convolve)(void *self, void *stream, const weir_convolution *c, bool *done);
} weir_compute;

#endif
