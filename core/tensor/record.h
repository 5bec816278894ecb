/* record.h: what operations report to whoever differentiates them (core/grad).
 *
 * An operation that is made of public ones records nothing: these do. One that hands a device a
 * request of its own reports, where recorded() holds of an operand, which operation it was, of
 * which tensors, with which arguments: a `record`. New results are reported once they are there
 * (record_made); what is changed in place is reported before (record_before), so that what the
 * derivative needs of the old elements is kept and nothing can fail any more, and after
 * (record_after).
 *
 * While an operation calls public functions for work that it records itself, recording pauses in
 * its thread: WEIR_UNRECORDED; at the start of a block holds to the block's end.
 *
 * Where no operand requires a gradient all this costs a test of a pointer for each.
 *
 * Words. node: a recorded operation, or the place where a leaf's gradient gathers. */
#ifndef WEIR_TENSOR_RECORD_H
#define WEIR_TENSOR_RECORD_H

#include "core/tensor/tensor.h"

/* Which operation; what its arguments are in record.n. Dimensions are counted from 0. */
enum record_kind {
  RECORD_ELEMENTWISE, /* a row of WEIR_OPS, `op` */
  RECORD_REDUCE,      /* a row of WEIR_REDUCE_OPS, `op`; the mask of dimensions, keepdim; p[0] */
  RECORD_SHAPE,       /* the same elements in another shape */
  RECORD_EXPAND,
  RECORD_PERMUTE,     /* which dimension comes first, second, ... */
  RECORD_SLICE,       /* dimension, start, step */
  RECORD_SELECT,      /* dimension, index */
  RECORD_UNFOLD,      /* dimension, size, step */
  RECORD_DIAGONAL,    /* offset, the two dimensions */
  RECORD_COPY,        /* in place: from the second operand */
  RECORD_FILL,        /* in place: elements that depend on nothing */
  RECORD_MATMUL,      /* operands as weir_matmul()'s; matrices' results may have any shape */
  RECORD_ADDMM,       /* c, a, b; p: beta, alpha */
  RECORD_CONV2D,      /* a, weight, bias; stride, padding, dilation, groups */
  RECORD_MAX_POOL2D,  /* a, none, places; 2 */
  RECORD_NORM,        /* a, weight, bias; kind, rows, each, groups, inner; eps */
  RECORD_SOFTMAX,     /* dimension */
  RECORD_LOG_SOFTMAX, /* dimension */
  RECORD_LOGSUMEXP,   /* the mask of dimensions, keepdim */
  RECORD_ATTENTION,   /* query, key, value, mask; is it causal, seed, offset; p: scale, dropout */
  RECORD_CAT,         /* dimension */
  RECORD_STACK,       /* dimension */
  RECORD_FLIP,        /* the mask of dimensions */
  RECORD_ROLL,        /* shift, dimension; along all elements in their order: -1 */
  RECORD_REPEAT,      /* how often along each dimension of the result */
  RECORD_TRIANGLE,    /* diagonal; whether it is the lower one */
  RECORD_DIAG_EMBED,  /* offset, the two dimensions */
  RECORD_PAD,         /* before and after, of each dimension */
  RECORD_PAD_EDGE,    /* dimension, before, after, weir_pad_mode */
  /* operands: what is read or changed, what is written or NULL, where */
  RECORD_INDEX_SELECT, /* dimension */
  RECORD_INDEX_ADD,    /* dimension */
  RECORD_EMBEDDING,    /* rows there are; the row of padding, or -1; scale_grad_by_freq */
  RECORD_INDEX_COPY,   /* dimension */
  RECORD_INDEX_FILL,   /* dimension */
  RECORD_GATHER,       /* dimension; whether results lack it; whether indices wrap; as GATHER: */
  RECORD_SORT,
  RECORD_TOPK,
  RECORD_KTHVALUE,
  RECORD_MEDIAN,
  RECORD_CUMMAX,
  RECORD_CUMMIN,
  RECORD_SCATTER,     /* dimension */
  RECORD_SCATTER_ADD, /* dimension */
  RECORD_TAKE,
  RECORD_PUT, /* whether it adds */
  RECORD_MASKED_FILL,
  RECORD_CUMSUM,           /* dimension */
  RECORD_CUMPROD,          /* dimension */
  RECORD_LOGCUMSUMEXP,     /* dimension */
  RECORD_SCATTER_REDUCE,   /* dimension, weir_scatter_op, include_self */
  RECORD_SELECT_SCATTER,   /* as SELECT; operands: a, what is put into it */
  RECORD_SLICE_SCATTER,    /* dimension, start, end, step */
  RECORD_DIAGONAL_SCATTER, /* as DIAGONAL */
  RECORD_MAX_PLACES,       /* a pooling, as core/ops/pool.c puts it; operands: a, none, places */
  RECORD_AVERAGE_POOL,     /* a pooling, as core/ops/pool.c puts it */
  RECORD_RESAMPLE,         /* a weir_resample, as core/ops/interpolate.c puts it; also back */
  RECORD_INV,
  RECORD_DET,
  RECORD_SLOGDET,
  RECORD_SOLVE,            /* whether b was a vector */
  RECORD_SOLVE_TRIANGULAR, /* upper, left, unitriangular */
  RECORD_CHOLESKY,         /* upper */
  RECORD_LU,               /* results: L and U in one, pivots */
  RECORD_CHOLESKY_SOLVE,   /* operands: b, l; upper */
  RECORD_CHOLESKY_INVERSE, /* upper */
  RECORD_QR,               /* enum record_qr */
  RECORD_EIGH,
  RECORD_SVD, /* whether u and vh are square */
  RECORD_PINV,
  /* of memory that tensors share, all its elements in a row */
  RECORD_STRIDED,      /* some of them: strides of the result, first element, how many there are */
  RECORD_STRIDED_BACK, /* the same arguments: zeros with the operand there */
  RECORD_STRIDED_SCATTER, /* the same: the first operand with the second there */
  RECORD_COPY_SLICES,     /* the same: an operation in place on those; others' operands after it */
  RECORD_VIEW_AS_REAL,
  RECORD_VIEW_AS_COMPLEX,
  /* what the derivatives of these give, with the same arguments */
  RECORD_SLICE_BACK,
  RECORD_UNFOLD_BACK,
  RECORD_DIAGONAL_BACK,
  RECORD_PAD_EDGE_BACK,
  RECORD_AVERAGE_POOL_BACK,
  RECORD_KINDS
};

enum record_qr { RECORD_QR_REDUCED, RECORD_QR_COMPLETE, RECORD_QR_R_ALONE };

enum { RECORD_NUMBERS = 3 * WEIR_MAX_DIMS, RECORD_OUTS = 3 };

typedef struct record {
  enum record_kind kind;
  int op;                        /* ELEMENTWISE, REDUCE */
  bool in_place;                 /* out[0] is in[0] */
  int inputs;                    /* how many */
  const weir_tensor *const *in;  /* borrowed; NULL: `number`, or none */
  weir_tensor *out[RECORD_OUTS]; /* borrowed; NULL: none */
  int64_t n[RECORD_NUMBERS];
  double p[2];
  weir_scalar number[3], alpha; /* ELEMENTWISE; alpha 1 where there is none */
} record;

typedef struct grad_node grad_node;

/* What core/grad does with it. */
typedef struct recorder {
  /* New results, of operands that recorded() holds of. Errors: ENOMEM; ENOTSUP: it has no
   * derivative. */
  weir_status (*made)(const record *r);
  /* An operation in place is to be done; *out is for after(). Errors: also EINVAL, what torch
   * refuses to change. */
  weir_status (*before)(grad_node **out, const record *r);
  /* It was done, or failed. */
  void (*after)(grad_node *node, weir_tensor *self, bool done);
  void (*release)(grad_node *node);
  /* A tensor of memory with a history: its node becomes what recorded changes in place of the
   * memory left. Errors: ENOMEM; EINVAL: a view of which torch knows no history any more. */
  weir_status (*refresh)(weir_tensor *t);
  /* A tensor of such memory that goes; the memory itself. */
  void (*view_gone)(weir_tensor *t);
  void (*memory_gone)(tensor_storage *s);
  bool (*is_leaf)(const weir_tensor *t);
  /* What an operation reports that has no derivative; self: what it would change in place, or
   * NULL. */
  weir_status (*refuse)(const char *function, const weir_tensor *self);
} recorder;

extern const recorder *tensor_recorder; /* core/grad sets it as the library is loaded */

/* Recording is off in this thread: weir_set_grad_enabled(), or it pauses. */
extern __thread bool thread_grad_off __attribute__((tls_model("initial-exec")));

/* Whether t requires a gradient, where it, or its memory, has a history; then also where that
 * cannot be said: recording fails. */
bool requires_gradient(const weir_tensor *t);

/* Whether what is calculated from t is recorded. */
static inline bool recorded(const weir_tensor *t)
{
  if (__builtin_expect(!t->node && !t->storage->history, 1)) return false;
  return !thread_grad_off && (!t->storage->history || requires_gradient(t));
}

/* The same of a list; NULLs are none. */
bool recorded_any(const weir_tensor *const *list, int count);

/* In an operation without a derivative: it is refused where one of its tensors, up to two, requires
 * a gradient. `self`: what it changes in place, or NULL. Errors: ENOTSUP; EINVAL: a leaf in
 * place. */
weir_status check_unrecorded(const char *function, const weir_tensor *self,
                             const weir_tensor *const *list, int count);
#define WEIR_NO_DERIVATIVE_AS(function, self, ...)                                                 \
  do {                                                                                             \
    const weir_tensor *const list_[2] = {__VA_ARGS__};                                             \
    weir_status refused_ = check_unrecorded(function, self, list_, 2);                             \
    if (refused_) return refused_;                                                                 \
  } while (0)
/* The same, at the start of a public function. */
#define WEIR_NO_DERIVATIVE(...)        WEIR_NO_DERIVATIVE_AS(__func__, NULL, __VA_ARGS__)
#define WEIR_NO_DERIVATIVE_(self, ...) WEIR_NO_DERIVATIVE_AS(__func__, self, self, __VA_ARGS__)

static inline bool record_pause(void)
{
  bool was = thread_grad_off;
  thread_grad_off = true;
  return was;
}

static inline void record_resume(const bool *was)
{
  thread_grad_off = *was;
}

#define WEIR_UNRECORDED                                                                            \
  bool unrecorded_ __attribute__((cleanup(record_resume), unused)) = record_pause()

/* Views that one function gave report it. */
static inline void number_parts(weir_tensor *const *out, int count, enum view_created created)
{
  for (int i = 0; i < count && !thread_grad_off; i++) {
    out[i]->created = (uint8_t)created;
    out[i]->part = (uint16_t)i;
  }
}

/* Records what made *out, its one result; dropped where that fails. `st`: what making it returned,
 * returned where it is an error. */
static inline weir_status record_made(weir_tensor **out, record *r, weir_status st)
{
  if (st) return st;
  bool shared = false;
  for (int i = 0; i < r->inputs; i++)
    shared |= r->in[i] && r->in[i]->storage == (*out)->storage;
  if (!shared) (*out)->created = VIEW_PLAIN; /* however it was put together */
  r->out[0] = *out;
  st = tensor_recorder->made(r);
  if (st) weir_tensor_drop(out);
  return st;
}

/* The same of what has one operand and up to four arguments. */
static inline __attribute__((cold)) weir_status record_of(weir_tensor **out, const weir_tensor *t,
                                                          enum record_kind kind, int64_t a,
                                                          int64_t b, int64_t c, int64_t d)
{
  record r = {.kind = kind, .inputs = 1, .in = &t, .n = {a, b, c, d}};
  return record_made(out, &r, WEIR_OK);
}

/* Of what chooses elements of a, by an index or a mask; src: what is written, or NULL. `st` as
 * above. */
weir_status record_choice(weir_tensor **out, weir_status st, enum record_kind kind,
                          const weir_tensor *a, const weir_tensor *src, const weir_tensor *index,
                          int64_t n0, int64_t n1);

/* The same of what changes t in place: before, and with what the change returned, after. */
weir_status change_begin(grad_node **node, enum record_kind kind, weir_tensor *t,
                         const weir_tensor *src, const weir_tensor *index, int64_t n0);
weir_status change_end(grad_node *node, weir_tensor *t, weir_status st);

#endif
