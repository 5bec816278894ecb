/* autocast.h: in which dtype an operation calculates while autocast is on (core/weir/amp.h).
 *
 * A public function that one of torch's lists names states its row at its start, with the operands
 * that the list is about: WEIR_CASTS(MATMUL, a, b). Where autocast is on for the kind of device
 * that an operand is on, the variable then is a cast of it, released at the end of the block.
 * Elementwise operations state nothing: elementwise_run() finds their row by the operation.
 *
 * Only the outermost public function casts (op_called, core/stream/async_error.h): what an
 * operation is made of is its own affair. One that torch makes of listed operations, and lists
 * nowhere, has the row of those here.
 *
 * Where it is off everywhere this costs a test of a byte of the thread's.
 *
 * Words. row: an operation, or several that torch treats alike. lower: float16 or bfloat16, as the
 * scope states. widest: of the tensors' dtypes float32 if one is, else lower. */
#ifndef WEIR_TENSOR_AUTOCAST_H
#define WEIR_TENSOR_AUTOCAST_H

#include "core/stream/async_error.h"
#include "core/tensor/tensor.h"

/* X(row, on the cpu, on CUDA). The first rows are operations of WEIR_OPS. */
#define WEIR_AUTOCAST_MAP(X)                                                                       \
  X(ADDCDIV, AS_IS, WIDEST)                                                                        \
  X(ADDCMUL, AS_IS, WIDEST)                                                                        \
  X(ATAN2, AS_IS, WIDEST)                                                                          \
  X(FUNCTION, AS_IS, SINGLE) /* exp, log, reciprocal, pow, ... */                                  \
  X(MATMUL, LOWER, LOWER)    /* also linear, mm, bmm, addmm, addbmm, baddbmm, ... */               \
  X(MATVEC, AS_IS, LOWER)    /* mv, addmv, addr */                                                 \
  X(DOT, AS_IS, WIDEST)                                                                            \
  X(CROSS, AS_IS, WIDEST)                                                                          \
  X(TENSORDOT, LOWER, WIDEST)                                                                      \
  X(CONVOLUTION, LOWER, LOWER)                                                                     \
  X(ATTENTION, LOWER, LOWER)                                                                       \
  X(PRELU, LOWER, LOWER)                                                                           \
  X(CAT, WIDEST, AS_IS) /* also stack */                                                           \
  X(INDEX_COPY, WIDEST, AS_IS)                                                                     \
  X(INDEX_PUT, AS_IS, WIDEST) /* also scatter_add */                                               \
  X(SUM, AS_IS, SINGLE)                                                                            \
  X(PROD, SINGLE, SINGLE)                                                                          \
  X(CUMULATIVE, AS_IS, SINGLE) /* cumsum, cumprod */                                               \
  X(SOFTMAX, AS_IS, SINGLE)    /* also log_softmax, logsumexp */                                   \
  X(NORM, AS_IS, SINGLE)                                                                           \
  X(NORMALISATION, AS_IS, SINGLE) /* layer_norm, group_norm, rms_norm */                           \
  X(SIMILARITY, AS_IS, SINGLE)                                                                     \
  X(CDIST, SINGLE, SINGLE)                                                                         \
  X(RESAMPLING, AS_IS, SINGLE)                                                                     \
  X(LOSS, SINGLE, SINGLE)                                                                          \
  X(BCE, SINGLE, AS_IS) /* without logits; on CUDA it is refused */                                \
  X(POOL_3D, SINGLE, AS_IS)                                                                        \
  X(PAD_EDGE, SINGLE, AS_IS)                                                                       \
  X(QUANTILE, SINGLE, AS_IS) /* also trace */                                                      \
  X(FACTOR, SINGLE, AS_IS)   /* inverses, solutions, factorisations */                             \
  X(EINSUM, LOWER, LOWER)    /* on the cpu by its products: not of one tensor */                   \
  X(LSTM, LOWER, LOWER)      /* layers without projection: torch's are oneDNN's or cuDNN's */      \
  X(RECURRENT, AS_IS, LOWER) /* GRU, RNN, cells; on the cpu their products are in MATMUL */        \
  X(MULTI_DOT, LOWER, LOWER)                                                                       \
  X(NONE, AS_IS, AS_IS)

enum autocast_row {
#define WEIR_AUTOCAST_ROW(row, cpu, cuda) AUTOCAST_##row,
  WEIR_AUTOCAST_MAP(WEIR_AUTOCAST_ROW)
#undef WEIR_AUTOCAST_ROW
      AUTOCAST_ROWS
};

/* A thread's. */
typedef struct autocast_state {
  uint8_t on; /* bit 0: for the cpu; bit 1: for CUDA */
  bool uncached;
  uint8_t dtype[2];            /* WEIR_DTYPE_NONE: torch's first one */
  uint32_t scopes;             /* that are open */
  struct autocast_cache *kept; /* owned: casts of parameters; NULL: none yet */
} autocast_state;

extern __thread autocast_state thread_autocast __attribute__((tls_model("initial-exec")));

/* The casts of one call. Zero-initialised: none. */
typedef struct autocast_held {
  int count;
  weir_tensor **cast; /* `here`, or owned, with `list` */
  weir_tensor *here[3];
  const weir_tensor **list; /* owned; of operands that are a list, what stands in its place */
} autocast_held;

/* Puts casts in the place of those of list[] (NULL: none) that the row casts. Errors: ENOMEM, EOOM;
 * EINVAL: torch's, of widest. */
weir_status autocast_operands(autocast_held *held, enum autocast_row row, const weir_tensor **list,
                              int count);
/* The same of a list that belongs to the caller: *list becomes another. */
weir_status autocast_list(autocast_held *held, enum autocast_row row,
                          const weir_tensor *const **list, int count);
void autocast_release(autocast_held *held);

/* Whether it is on where t is. */
bool autocast_is_on(const weir_tensor *t);

static inline void autocast_end(autocast_held *held)
{
  if (__builtin_expect(held->count, 0)) autocast_release(held);
}

/* In a public function that does not begin with WEIR_OP, for the macros below. */
#define WEIR_OP_LEAF const char *const op_before_ = op_called

#define WEIR_CASTS_OF(how, row, list, count)                                                       \
  do {                                                                                             \
    weir_status cast_ = how(&held_, AUTOCAST_##row, list, count);                                  \
    if (cast_) return cast_;                                                                       \
  } while (0)
#define WEIR_CASTS_HELD                                                                            \
  autocast_held held_ __attribute__((cleanup(autocast_end)));                                      \
  held_.count = 0;                                                                                 \
  if (__builtin_expect(thread_autocast.on, 0) && !op_before_)

/* Variables of the function become casts, until its end: WEIR_CASTS(MATMUL, a, b); up to three. */
#define WEIR_CASTS_1(row, a)                                                                       \
  WEIR_CASTS_HELD                                                                                  \
  {                                                                                                \
    const weir_tensor *list_[] = {a};                                                              \
    WEIR_CASTS_OF(autocast_operands, row, list_, 1);                                               \
    (a) = list_[0];                                                                                \
  }
#define WEIR_CASTS_2(row, a, b)                                                                    \
  WEIR_CASTS_HELD                                                                                  \
  {                                                                                                \
    const weir_tensor *list_[] = {a, b};                                                           \
    WEIR_CASTS_OF(autocast_operands, row, list_, 2);                                               \
    (a) = list_[0], (b) = list_[1];                                                                \
  }
#define WEIR_CASTS_3(row, a, b, c)                                                                 \
  WEIR_CASTS_HELD                                                                                  \
  {                                                                                                \
    const weir_tensor *list_[] = {a, b, c};                                                        \
    WEIR_CASTS_OF(autocast_operands, row, list_, 3);                                               \
    (a) = list_[0], (b) = list_[1], (c) = list_[2];                                                \
  }
#define WEIR_CASTS_FIFTH(a, b, c, d, fifth, ...) fifth
#define WEIR_CASTS(...)                                                                            \
  WEIR_CASTS_FIFTH(__VA_ARGS__, WEIR_CASTS_3, WEIR_CASTS_2, WEIR_CASTS_1, )(__VA_ARGS__)
/* The row is calculated; or the function has one WEIR_CASTS already. */
#define WEIR_CASTS_WHERE(row, a)                                                                   \
  WEIR_CASTS_HELD                                                                                  \
  {                                                                                                \
    weir_status cast_ = autocast_operands(&held_, (row), &(a), 1);                                 \
    if (cast_) return cast_;                                                                       \
  }
#define WEIR_CASTS_MORE(row, a)                                                                    \
  autocast_held more_ __attribute__((cleanup(autocast_end))) = {0};                                \
  if (__builtin_expect(thread_autocast.on, 0) && !op_before_) {                                    \
    weir_status cast_ = autocast_operands(&more_, AUTOCAST_##row, &(a), 1);                        \
    if (cast_) return cast_;                                                                       \
  }
/* The same of a list of `count` tensors. */
#define WEIR_CASTS_LIST(row, tensors, count)                                                       \
  WEIR_CASTS_HELD WEIR_CASTS_OF(autocast_list, row, &(tensors), count)

/* Another thread's state becomes the calling one's, which owns what it keeps of it from then on;
 * and back. */
autocast_state autocast_adopt(const autocast_state *other);
void autocast_back(const autocast_state *before);

/* Off in the calling thread, to the end of the block. */
static inline uint8_t autocast_pause(void)
{
  uint8_t was = thread_autocast.on;
  thread_autocast.on = 0;
  return was;
}
static inline void autocast_resume(const uint8_t *was)
{
  thread_autocast.on = *was;
}
#define WEIR_NO_AUTOCAST                                                                           \
  uint8_t casts_ __attribute__((cleanup(autocast_resume), unused)) = autocast_pause()

#endif
