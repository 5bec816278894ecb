/* map.c: elementwise loops (weir_loop): which kernel does them.
 *
 * A copy that changes nothing but places is the driver's where both sides are contiguous, is done
 * in squares where the sides run in different directions, and else element by element. All operands
 * contiguous and of the compute dtype: flat. Everything else: strided, in as many launches as it
 * takes for places to be counted in 32 bits.
 *
 * Words. extent: how far apart an operand's first and last elements are. */
#include "core/backend/half.h"
#include "cuda/backend/launch.h"

static const struct op {
  const char *name;
  uint16_t computes; /* the set of dtypes that it has kernels for */
  uint8_t inputs, keeps;
} ops[WEIR_OP_COUNT] = {
#define ROW(name, text, inputs, gives, takes, computes, keeps, ...)                                \
  {text, WEIR_DTYPES_##computes, inputs, keeps},
    WEIR_OPS(ROW)
#undef ROW
};

static bool contiguous(const weir_loop *l, const weir_operand *o)
{
  int64_t expected = 1;
  for (int d = l->dims - 1; d >= 0; d--) {
    if (l->size[d] != 1 && o->stride[d] != expected) return false;
    expected *= l->size[d];
  }
  return true;
}

/* Of a copy: elements stay as they are. */
static bool is_raw(const weir_loop *l)
{
  return l->in[0].data && l->in[0].dtype == l->out.dtype && l->compute == l->out.dtype;
}

static weir_operand *operand(weir_loop *l, int which)
{
  return which ? &l->in[which - 1] : &l->out;
}

/* ---- flat ------------------------------------------------------------------------------------ */

static const struct flat {
  uint8_t kernel, elements; /* of a vector */
} flats[WEIR_DTYPES] = {[WEIR_INT32] = {WEIR_KERNEL_flat_int32, 4},
                        [WEIR_INT64] = {WEIR_KERNEL_flat_int64, 2},
                        [WEIR_FLOAT16] = {WEIR_KERNEL_flat_float16, 8},
                        [WEIR_BFLOAT16] = {WEIR_KERNEL_flat_bfloat16, 8},
                        [WEIR_FLOAT32] = {WEIR_KERNEL_flat_float32, 4},
                        [WEIR_FLOAT64] = {WEIR_KERNEL_flat_float64, 2},
                        [WEIR_COMPLEX64] = {WEIR_KERNEL_flat_complex64, 2}};

static bool is_flat(const weir_loop *l)
{
  if (!flats[l->compute].elements || !contiguous(l, &l->out)) return false;
  if (l->out.dtype != l->compute && l->out.dtype != WEIR_BOOL) return false;
  for (int i = 0; i < ops[l->op].inputs; i++) {
    bool chosen = l->op == WEIR_OP_WHERE && i == 0;
    weir_dtype dtype = chosen ? WEIR_BOOL : l->compute;
    if (l->in[i].data && (l->in[i].dtype != dtype || !contiguous(l, &l->in[i]))) return false;
  }
  return true;
}

/* In the arithmetic of float16 and bfloat16 numbers keep float32's precision, as in torch; else
 * they are converted as elements are. */
static k_number map_number(const weir_loop *l, const weir_operand *o)
{
  k_number n = k_number_of(&o->number, l->compute);
  if (ops[l->op].keeps >> (o - l->in) & 1) return n;
  if (l->compute == WEIR_FLOAT16) n.d = (double)float16_to_float(float_to_float16((float)n.d));
  if (l->compute == WEIR_BFLOAT16) n.d = (double)bfloat16_to_float(float_to_bfloat16((float)n.d));
  return n;
}

/* The numbers of any kernel's argument; the others of the loop are not set. */
#define TAKE_NUMBERS(a, l, inputs, count)                                                          \
  do {                                                                                             \
    for (int n_ = 0; n_ < (count); n_++)                                                           \
      if (!(inputs)[n_].data) (a)->number[n_] = map_number(l, &(inputs)[n_]);                      \
    if ((l)->has_alpha) (a)->alpha = k_number_of(&(l)->alpha, (l)->compute);                       \
    (a)->has_alpha = (l)->has_alpha;                                                               \
    for (int n_ = 0; n_ < 3 && weir_op_has_p((l)->op); n_++)                                       \
      (a)->p[n_] = parameter(l, n_);                                                               \
  } while (0)

/* Tolerances are real numbers, whatever is compared. */
static k_number parameter(const weir_loop *l, int i)
{
  bool tolerance = l->op == WEIR_OP_CLOSE;
  bool whole = l->compute != WEIR_COMPLEX64 && !k_is_real(l->compute);
  /* so that bool's range is not cut before it is calculated */
  return k_number_of(&l->p[i], tolerance ? WEIR_FLOAT64 : whole ? WEIR_INT64 : l->compute);
}

static weir_status map_flat(cuda_device_state *d, void *stream, const weir_loop *l)
{
  const struct flat *f = &flats[l->compute];
  bool choosing = l->op == WEIR_OP_WHERE;
  const weir_operand *in = l->in + choosing;
  k_flat a = {.out = l->out.data,
              .in = {in[0].data, in[1].data},
              .chosen = choosing ? l->in[0].data : NULL,
              .count = l->count,
              .op = (int32_t)l->op,
              .out_bool = l->out.dtype != l->compute};
  for (int i = ops[l->op].inputs - choosing; i < 2; i++)
    a.in[i] = NULL;
  TAKE_NUMBERS(&a, l, in, ops[l->op].inputs - choosing);
  uintptr_t bits = (uintptr_t)a.out | (uintptr_t)a.in[0] | (uintptr_t)a.in[1];
  a.vector = bits % 16 == 0;
  launch_grid grid = cuda_blocks(d, l->count, (int64_t)WEIR_THREADS * f->elements);
  return cuda_launch(d, stream, f->kernel, grid, &a, ops[l->op].name);
}

/* ---- strided --------------------------------------------------------------------------------- */

/* Elements a dimension adds to the extent of the operand in which it adds most. */
static int64_t added(weir_loop *l, int dim)
{
  int64_t most = 0;
  for (int i = 0; i <= ops[l->op].inputs; i++) {
    int64_t stride = operand(l, i)->data ? operand(l, i)->stride[dim] : 0;
    int64_t n = (l->size[dim] - 1) * (stride < 0 ? -stride : stride);
    if (n > most) most = n;
  }
  return most;
}

static bool extents_fit(weir_loop *l)
{
  for (int i = 0; i <= ops[l->op].inputs; i++) {
    int64_t extent = 0;
    for (int dim = 0; dim < l->dims && operand(l, i)->data; dim++) {
      int64_t stride = operand(l, i)->stride[dim];
      extent += (l->size[dim] - 1) * (stride < 0 ? -stride : stride);
      if (l->size[dim] > 1 && (stride > INT32_MAX || stride < -INT32_MAX)) return false;
    }
    if (extent > INT32_MAX) return false;
  }
  return l->count <= INT32_MAX;
}

/* Where to split: what adds most to an extent, or has most elements. A range is split in its
 * outermost dimension, so that its places follow each other. */
static int widest(weir_loop *l)
{
  int best = 0;
  for (int dim = 0; dim < l->dims; dim++) {
    if (l->op == WEIR_OP_RANGE && l->size[dim] > 1) return dim;
    int64_t now = added(l, dim), most = added(l, best);
    if (now > most || (now == most && l->size[dim] > l->size[best])) best = dim;
  }
  return best;
}

static void take_operand(k_operand *to, const weir_operand *o, int dims)
{
  to->data = o->data;
  to->dtype = (int32_t)o->dtype;
  for (int i = 0; i < dims && o->data; i++)
    to->stride[i] = (int32_t)o->stride[i];
}

static void take_sizes(k_strided *a, const weir_loop *l)
{
  a->dims = l->dims;
  a->count = (uint32_t)l->count;
  for (int i = 0; i < l->dims; i++)
    a->size[i] = k_divisor_of(l->size[i]);
}

static weir_status strided(cuda_device_state *d, void *stream, const weir_loop *l, int64_t first)
{
  bool choosing = l->op == WEIR_OP_WHERE,
       raw = l->op == WEIR_OP_COPY && l->in[0].data && l->in[0].dtype == l->out.dtype;
  const weir_operand *in = l->in + choosing;
  k_strided a = {.first = first, .op = (int32_t)l->op, .compute = (int32_t)l->compute};
  take_sizes(&a, l);
  take_operand(&a.out, &l->out, l->dims);
  for (int i = 0; i < ops[l->op].inputs - choosing; i++)
    take_operand(&a.in[i], &in[i], l->dims);
  if (choosing) take_operand(&a.chosen, &l->in[0], l->dims);
  TAKE_NUMBERS(&a, l, in, ops[l->op].inputs - choosing);
  int bytes = (int)k_bytes(l->out.dtype);
  enum kernel_id k = raw                            ? (bytes == 1   ? WEIR_KERNEL_copy_1
                                                       : bytes == 2 ? WEIR_KERNEL_copy_2
                                                       : bytes == 4 ? WEIR_KERNEL_copy_4
                                                                    : WEIR_KERNEL_copy_8)
                     : l->compute == WEIR_COMPLEX64 ? WEIR_KERNEL_strided_complex64
                     : l->compute == WEIR_FLOAT64   ? WEIR_KERNEL_strided_float64
                     : k_is_real(l->compute)        ? WEIR_KERNEL_strided_float32
                                                    : WEIR_KERNEL_strided_integer;
  launch_grid grid = cuda_blocks(d, l->count, (int64_t)WEIR_THREADS * WEIR_EACH);
  return cuda_launch(d, stream, k, grid, &a, ops[l->op].name);
}

/* A row whose kernels are cuda/kernels/functions.cu's. */
static bool is_function(weir_op op)
{
#define ROW(name, ...) case WEIR_OP_##name:
  switch (op) {
    WEIR_FUNCTION_OPS(ROW)
    WEIR_PARAMETER_OPS(ROW)
    return true;
  default:
    return false;
  }
#undef ROW
}

static weir_status function(cuda_device_state *d, void *stream, const weir_loop *l)
{
  k_function a = {.op = (int32_t)l->op, .compute = (int32_t)l->compute, .dims = l->dims};
  a.count = (uint32_t)l->count;
  for (int i = 0; i < l->dims; i++)
    a.size[i] = k_divisor_of(l->size[i]);
  take_operand(&a.out, &l->out, l->dims);
  for (int i = 0; i < ops[l->op].inputs; i++) {
    take_operand(&a.in[i], &l->in[i], l->dims);
    if (!l->in[i].data) a.number[i] = map_number(l, &l->in[i]);
  }
  for (int i = 0; i < 3 && weir_op_has_p(l->op); i++)
    a.p[i] = parameter(l, i);
  enum kernel_id k = l->compute == WEIR_COMPLEX64 ? WEIR_KERNEL_function_complex64
                     : l->compute == WEIR_FLOAT64 ? WEIR_KERNEL_function_float64
                     : k_is_real(l->compute)      ? WEIR_KERNEL_function_float32
                                                  : WEIR_KERNEL_function_integer;
  launch_grid grid = cuda_blocks(d, l->count, WEIR_THREADS);
  return cuda_launch(d, stream, k, grid, &a, ops[l->op].name);
}

static weir_status in_parts(cuda_device_state *d, void *stream, weir_loop l, int64_t first)
{
  if (extents_fit(&l))
    return is_function(l.op) ? function(d, stream, &l) : strided(d, stream, &l, first);
  int dim = widest(&l);
  int64_t whole = l.size[dim], half = whole / 2, inner = l.count / whole;
  l.size[dim] = half;
  l.count = inner * half;
  weir_status st = in_parts(d, stream, l, first);
  if (st) return st;
  for (int i = 0; i <= ops[l.op].inputs; i++) {
    weir_operand *o = operand(&l, i);
    if (o->data) o->data = (char *)o->data + half * o->stride[dim] * k_bytes(o->dtype);
  }
  l.size[dim] = whole - half;
  l.count = inner * (whole - half);
  return in_parts(d, stream, l, first + inner * half);
}

/* ---- copies ---------------------------------------------------------------------------------- */

/* The dimension that changes places with the last one; -1: none is worth it. */
static int turned_map(const weir_loop *l)
{
  int last = l->dims - 1;
  const int64_t *in = l->in[0].stride;
  if (last < 1 || l->out.stride[last] != 1 || in[last] == 1 || l->size[last] < WEIR_TILE / 4)
    return -1;
  int64_t others = l->count / l->size[last];
  for (int i = 0; i < last; i++)
    if (in[i] == 1 && l->size[i] >= WEIR_TILE / 4)
      return l->size[i] <= INT32_MAX && l->size[last] <= INT32_MAX &&
                     others / l->size[i] <= INT32_MAX &&
                     l->size[i] / WEIR_TILE * (l->size[last] / WEIR_TILE) < INT32_MAX / 2
                 ? i
                 : -1;
  return -1;
}

static weir_status turn_rows(cuda_device_state *d, void *stream, const weir_loop *l, int row)
{
  int last = l->dims - 1, bytes = (int)k_bytes(l->out.dtype);
  k_turn a = {.out = l->out.data,
              .in = l->in[0].data,
              .rows = (uint32_t)l->size[row],
              .columns = (uint32_t)l->size[last],
              .out_row = l->out.stride[row],
              .in_column = l->in[0].stride[last],
              .others = (uint32_t)(l->count / l->size[row] / l->size[last])};
  for (int i = 0; i < last; i++) {
    if (i == row) continue;
    a.size[a.dims] = k_divisor_of(l->size[i]);
    a.out_stride[a.dims] = l->out.stride[i];
    a.in_stride[a.dims++] = l->in[0].stride[i];
  }
  uint32_t across = (a.columns + WEIR_TILE - 1) / WEIR_TILE,
           down = (a.rows + WEIR_TILE - 1) / WEIR_TILE;
  launch_grid grid = {across * down, a.others < 65535 ? a.others : 65535, 1};
  enum kernel_id k = bytes == 1   ? WEIR_KERNEL_turn_1
                     : bytes == 2 ? WEIR_KERNEL_turn_2
                     : bytes == 4 ? WEIR_KERNEL_turn_4
                                  : WEIR_KERNEL_turn_8;
  return cuda_launch(d, stream, k, grid, &a, ops[l->op].name);
}

static weir_status copy_loop(cuda_device_state *d, void *stream, const weir_loop *l)
{
  if (contiguous(l, &l->out) && contiguous(l, &l->in[0]))
    return cuda_copy(d, stream, WEIR_COPY_WITHIN, l->out.data, l->in[0].data,
                     (uint64_t)(l->count * k_bytes(l->out.dtype)));
  int row = turned_map(l);
  return row < 0 ? in_parts(d, stream, *l, 0) : turn_rows(d, stream, l, row);
}

/* ---- all ------------------------------------------------------------------------------------- */

/* A condition that is a number chooses one input for all. */
static void choose_kernel(weir_loop *l)
{
  bool first = l->in[0].number.dtype == WEIR_BOOL || l->in[0].number.dtype == WEIR_INT64
                   ? l->in[0].number.i != 0
                   : l->in[0].number.f != 0;
  l->op = WEIR_OP_COPY;
  l->in[0] = l->in[first ? 1 : 2];
}

weir_status cuda_map(void *self, void *stream, const weir_loop *given)
{
  weir_loop l = *given;
  if (!(ops[l.op].computes >> l.compute & 1)) return cuda_no_kernel(ops[l.op].name, l.compute);
  if (l.op == WEIR_OP_WHERE && !l.in[0].data) choose_kernel(&l);
  if (l.compute == WEIR_BOOL && l.has_alpha) /* a bool times what is not 0 is itself */
    l.alpha = (weir_number){.dtype = WEIR_BOOL, .i = l.alpha.i != 0};
  if (l.op == WEIR_OP_COPY && is_raw(&l)) return copy_loop(self, stream, &l);
  return !is_function(l.op) && is_flat(&l) ? map_flat(self, stream, &l)
                                           : in_parts(self, stream, l, 0);
}
