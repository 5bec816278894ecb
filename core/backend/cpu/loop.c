/* cpu/loop.c: elementwise work on the cpu: blocks of operands through a kernel.
 *
 * A loop is cut into pieces for the threads, a piece into blocks. A block of each input is brought
 * into the compute dtype (where it is not already), the kernel writes its result straight into out
 * or into a buffer that is converted and spread. Inputs that are the same everywhere are converted
 * once a piece. Every element's result comes from the same arithmetic, wherever it stands. */
#include <stdatomic.h>
#include <string.h>
#include "core/backend/cpu/cpu.h"
#include "core/backend/half.h"
#include "core/backend/threads.h"

typedef struct input {
  const weir_operand *o;
  weir_dtype dtype; /* that the kernel takes it in, float16 and bfloat16 included */
  bool same;        /* everywhere */
  cpu_walk walk;
  const char *repeated; /* the element `taken` holds, over and over; NULL: none */
  const void *taken;
  int64_t count; /* of taken, elements */
  _Alignas(64) char room[CPU_BLOCK * CPU_ELEMENT], wide[CPU_BLOCK * CPU_ELEMENT];
} input;

typedef struct work {
  const weir_loop *loop;
  cpu_kernel kernel;     /* NULL: copy */
  cpu_kernel of_numbers; /* in its place where an input is one number; NULL: kernel */
  weir_dtype takes;      /* that the kernel takes elements of the compute dtype as */
  weir_dtype result;     /* of the kernel */
  int inputs;
  bool by_number; /* directly, and input 1 is `number` everywhere */
  float number;
  int64_t block; /* elements; loop_piece */
  cpu_args args;
} work;

static const struct op {
  const char *name;
  uint8_t inputs, keeps;
  bool truth; /* gives bool */
} ops[WEIR_OP_COUNT] = {
#define ROW(name, text, inputs, gives, takes, computes, keeps, ...)                                \
  {text, inputs, keeps, WEIR_GIVES_##gives == WEIR_GIVES_BOOL},
    WEIR_OPS(ROW)
#undef ROW
};

static bool takes_parameters(const weir_loop *l)
{
  return l->has_alpha || weir_op_has_p(l->op);
}

/* ---- inputs ---------------------------------------------------------------------------------- */

static bool is_same(const weir_operand *o, const weir_loop *l)
{
  if (!o->data) return true;
  for (int d = 0; d < l->dims; d++)
    if (l->size[d] != 1 && o->stride[d]) return false;
  return true;
}

static const void *number_at(const weir_number *n, float imaginary[2])
{
  if (n->dtype == WEIR_FLOAT64) return &n->f;
  if (n->dtype != WEIR_COMPLEX64) return &n->i;
  imaginary[0] = (float)n->f, imaginary[1] = (float)n->imag;
  return imaginary;
}

static void convert_number(void *to, const weir_number *n, weir_dtype dtype, weir_op op, int i)
{
  float complex[2];
  uint8_t truth = n->i != 0;
  weir_dtype kernel = cpu_kernel_dtype(dtype);
  const void *x = n->dtype == WEIR_BOOL ? (const void *)&truth : number_at(n, complex);
  if (op == WEIR_OP_COPY || ops[op].keeps >> i & 1)
    cpu_level_in_use()->cast[op == WEIR_OP_COPY ? dtype : kernel][n->dtype](to, x, 1);
  else
    memmove(to, cpu_widen(x, n->dtype, dtype, 1, to), cpu_dtype_bytes(kernel));
}

/* As the kernel takes it; a copy takes the dtype itself. */
static const void *convert(const void *x, weir_dtype from, const input *in, const work *w,
                           int64_t n, void *room)
{
  if (w->kernel) return cpu_widen(x, from, in->dtype, n, room);
  if (from == in->dtype) return x;
  cpu_level_in_use()->cast[in->dtype][from](room, x, n);
  return room;
}

static void start_input(input *in, const work *w, int i, int64_t from, int64_t to)
{
  const weir_loop *l = w->loop;
  in->o = &l->in[i];
  in->dtype = l->op == WEIR_OP_WHERE && i == 0 ? WEIR_BOOL : l->compute;
  in->same = is_same(in->o, l);
  in->repeated = NULL;
  if (!in->same) {
    cpu_walk_start(&in->walk, in->o, l->dims, l->size, from);
    return;
  }
  size_t bytes = cpu_dtype_bytes(w->kernel ? cpu_kernel_dtype(in->dtype) : in->dtype);
  if (in->o->data)
    memmove(in->wide, convert(in->o->data, in->o->dtype, in, w, 1, in->wide), bytes);
  else
    convert_number(in->wide, &in->o->number, in->dtype, l->op, i);
  if (!w->of_numbers)
    cpu_level_in_use()->repeat(in->wide, in->wide, bytes,
                               to - from < w->block ? to - from : w->block);
}

/* n times the next element, or once where the kernel takes it so. */
static const void *take_repeated(input *in, const work *w, int64_t n)
{
  size_t bytes = cpu_dtype_bytes(w->kernel ? cpu_kernel_dtype(in->dtype) : in->dtype);
  const void *one = convert(in->walk.at, in->o->dtype, in, w, 1, in->wide);
  cpu_level_in_use()->repeat(in->wide, one, bytes, w->of_numbers ? 1 : n); /* out may be there */
  cpu_walk_skip(&in->walk, n);
  in->taken = in->wide;
  return in->taken;
}

static const void *take_input(input *in, const work *w, int64_t n)
{
  if (in->same) return in->wide;
  bool repeats = cpu_walk_repeats(&in->walk, n);
  if (repeats && in->repeated == in->walk.at && n <= in->count) {
    cpu_walk_skip(&in->walk, n);
    return in->taken;
  }
  in->repeated = repeats ? in->walk.at : NULL;
  in->count = n;
  if (repeats) return take_repeated(in, w, n);
  in->taken = convert(cpu_walk_take(&in->walk, n, in->room), in->o->dtype, in, w, n, in->wide);
  return in->taken;
}

/* ---- a piece --------------------------------------------------------------------------------- */

/* The result, n elements at `x`, into out. */
static void store_result(cpu_walk *out, weir_dtype dtype, const void *x, weir_dtype from, int64_t n,
                         void *room)
{
  void *place = cpu_walk_place(out, n);
  void *to = place ? place : room;
  if (dtype != from)
    cpu_level_in_use()->cast[dtype][from](to, x, n);
  else if (!place)
    to = (void *)x;
  else
    memcpy(to, x, (size_t)n * out->bytes);
  if (!place) cpu_walk_put(out, n, to);
}

/* Where nothing is to be converted, gathered or spread: the kernel over all of it. */
static void direct_piece(void *arg, int64_t from, int64_t to)
{
  const work *w = arg;
  const weir_loop *l = w->loop;
  cpu_args args;
  args.by_zero = w->args.by_zero;
  args.compute = l->compute;
  if (takes_parameters(l)) args = w->args;
  const void *x[3] = {NULL, NULL, NULL};
  for (int i = 0; i < w->inputs - w->by_number; i++)
    x[i] = (const char *)l->in[i].data + (size_t)from * cpu_dtype_bytes(l->in[i].dtype);
  if (w->by_number) x[1] = &w->number;
  args.first = from;
  args.same = w->args.same;
  w->kernel((char *)l->out.data + (size_t)from * cpu_dtype_bytes(l->out.dtype), x[0], x[1], x[2],
            to - from, &args);
}

/* A copy to another dtype likewise. */
static void cast_piece(void *arg, int64_t from, int64_t to)
{
  const weir_loop *l = ((const work *)arg)->loop;
  const weir_operand *in = &l->in[0], *out = &l->out;
  cpu_level_in_use()->cast[out->dtype][in->dtype](
      (char *)out->data + (size_t)from * cpu_dtype_bytes(out->dtype),
      (const char *)in->data + (size_t)from * cpu_dtype_bytes(in->dtype), to - from);
}

static bool is_direct_cast(const work *w)
{
  const weir_loop *l = w->loop;
  if (w->kernel || l->dims > 1 || !l->in[0].data || l->compute != l->out.dtype) return false;
  return !l->dims || (l->out.stride[0] == 1 && l->in[0].stride[0] == 1);
}

static bool is_direct(const work *w)
{
  const weir_loop *l = w->loop;
  if (!w->kernel || l->dims > 1 || l->out.dtype != w->result) return false;
  if (l->dims && l->out.stride[0] != 1) return false;
  if (w->takes != l->compute) return false;
  for (int i = 0; i < w->inputs - w->by_number; i++) {
    const weir_operand *o = &l->in[i];
    weir_dtype as = l->op == WEIR_OP_WHERE && i == 0 ? WEIR_BOOL : l->compute;
    if (!o->data || o->dtype != as || (l->dims && o->stride[0] != 1)) return false;
  }
  return true;
}

static unsigned same_inputs(const input *in, int inputs)
{
  unsigned same = 0;
  for (int i = 0; i < inputs; i++)
    same |= (unsigned)(in[i].same || in[i].repeated) << i;
  return same;
}

static void loop_piece(void *arg, int64_t from, int64_t to)
{
  const work *w = arg;
  const weir_loop *l = w->loop;
  cpu_args args;
  input in[3];
  cpu_walk out;
  _Alignas(64) char result[CPU_BLOCK * CPU_ELEMENT], room[CPU_BLOCK * CPU_ELEMENT];
  args.by_zero = w->args.by_zero;
  args.compute = l->compute;
  if (takes_parameters(l)) args = w->args;
  for (int i = 0; i < w->inputs; i++)
    start_input(&in[i], w, i, from, to);
  cpu_walk_start(&out, &l->out, l->dims, l->size, from);
  for (int64_t n; from < to; from += n) {
    const void *x[3] = {NULL, NULL, NULL};
    n = cpu_block(l->dims, l->size, from, to, w->block);
    for (int i = 0; i < w->inputs; i++)
      x[i] = take_input(&in[i], w, n);
    args.first = from;
    args.same = same_inputs(in, w->inputs);
    void *place = w->kernel && w->result == l->out.dtype ? cpu_walk_place(&out, n) : NULL;
    cpu_kernel kernel = args.same && w->of_numbers ? w->of_numbers : w->kernel;
    if (kernel) kernel(place ? place : result, x[0], x[1], x[2], n, &args);
    const void *from_kernel = w->kernel ? result : x[0];
    if (!place && from_kernel) store_result(&out, l->out.dtype, from_kernel, w->result, n, room);
  }
}

/* ---- the request ----------------------------------------------------------------------------- */

static weir_number converted(const weir_number *n, weir_dtype compute)
{
  weir_number r = *n;
  bool whole = n->dtype == WEIR_INT64 || n->dtype == WEIR_BOOL;
  if (whole) r.f = (double)n->i, r.imag = 0;
  if (!whole) r.i = double_to_int64(n->f);
  if (n->dtype == WEIR_FLOAT64) r.imag = 0;
  r.dtype = compute;
  return r;
}

static int op_of(const weir_loop *l)
{
  bool one = l->alpha.dtype == WEIR_FLOAT64     ? l->alpha.f == 1
             : l->alpha.dtype == WEIR_COMPLEX64 ? l->alpha.f == 1 && l->alpha.imag == 0
                                                : l->alpha.i == 1;
  if (one) return (int)l->op;
  return l->op == WEIR_OP_ADD   ? CPU_OP_ADD_ALPHA
         : l->op == WEIR_OP_SUB ? CPU_OP_SUB_ALPHA
                                : (int)l->op;
}

/* A copy that converts nothing. */
static bool is_plain_copy(const weir_loop *l)
{
  const weir_operand *o = &l->out, *i = &l->in[0];
  return l->op == WEIR_OP_COPY && i->data && i->dtype == o->dtype && l->compute == o->dtype;
}

static void plain_copy(const weir_loop *l)
{
  if (!l->dims || (l->dims == 1 && l->out.stride[0] == 1 && l->in[0].stride[0] == 1))
    cpu_copy_bytes(l->out.data, l->in[0].data, (uint64_t)l->count * cpu_dtype_bytes(l->out.dtype));
  else
    cpu_copy_loop(l);
}

static weir_status loop_status(const work *w)
{
  return atomic_load_explicit(w->args.by_zero, memory_order_relaxed)
             ? fail_invalid("ZeroDivisionError")
             : WEIR_OK;
}

/* As many elements as rooms hold. */
static int64_t loop_block(const work *w)
{
  const weir_loop *l = w->loop;
  size_t most = cpu_dtype_bytes(cpu_kernel_dtype(l->compute)), out = cpu_dtype_bytes(l->out.dtype);
  if (out > most) most = out;
  for (int i = 0; i < w->inputs; i++)
    if (l->in[i].data && cpu_dtype_bytes(l->in[i].dtype) > most)
      most = cpu_dtype_bytes(l->in[i].dtype);
  return most > 4 ? CPU_BLOCK : CPU_SHORT_BLOCK;
}

static weir_status run_parallel(work *w)
{
  const weir_loop *l = w->loop;
  parallel_part part = is_direct(w) ? direct_piece : is_direct_cast(w) ? cast_piece : loop_piece;
  if (part == loop_piece) {
    int op = l->has_alpha ? op_of(l) : (int)l->op;
    const cpu_level *level = cpu_level_in_use();
    w->block = loop_block(w);
    w->of_numbers =
        w->kernel && w->kernel == level->op[op][WEIR_FLOAT32] ? level->number_op[op] : NULL;
  }
  if (l->has_alpha) w->args.alpha = converted(&l->alpha, l->compute);
  for (int i = 0; i < 3 && takes_parameters(l) && !l->has_alpha; i++)
    w->args.p[i] = converted(&l->p[i], l->compute);
  parallel_for(l->count, CPU_GRAIN, part, w);
  return loop_status(w);
}

/* float16 and bfloat16 by a kernel that takes them as they are: where nothing else is to be done
 * than to convert one number. */
static void take_as_is(work *w, cpu_kernel as_is)
{
  const weir_loop *l = w->loop;
  const weir_operand *o = &l->in[1];
  work direct = *w;
  direct.kernel = as_is;
  direct.takes = direct.result = l->compute;
  direct.by_number = w->inputs == 2 && (!o->data || (l->dims == 1 && !o->stride[0]));
  if (!is_direct(&direct)) return;
  *w = direct;
  if (!w->by_number) return;
  w->args.same = 2;
  if (o->data)
    memmove(&w->number, cpu_widen(o->data, o->dtype, l->compute, 1, &w->number), sizeof w->number);
  else
    convert_number(&w->number, &o->number, l->compute, l->op, 1);
}

weir_status cpu_map(void *self, void *stream, const weir_loop *l)
{
  (void)self, (void)stream;
  _Atomic bool by_zero = false;
  work w; /* not all of it is set: an op of one element has no time for that */
  w.loop = l;
  w.inputs = ops[l->op].inputs;
  w.kernel = NULL;
  w.args.by_zero = &by_zero;
  w.args.same = 0;
  w.args.compute = l->compute;
  w.by_number = false;
  if (is_plain_copy(l)) {
    plain_copy(l);
    return WEIR_OK;
  }
  weir_dtype type = cpu_kernel_dtype(l->compute);
  w.result = l->op == WEIR_OP_COPY ? l->compute : ops[l->op].truth ? WEIR_BOOL : type;
  if (l->op == WEIR_OP_COPY) return run_parallel(&w);
  const cpu_level *level = cpu_level_in_use();
  const cpu_kernel *kernels = level->op[l->has_alpha ? op_of(l) : (int)l->op];
  w.takes = type;
  w.kernel = kernels[type];
  if (!w.kernel) return cpu_no_kernel(ops[l->op].name, l->compute);
  if (type != l->compute) {
    if (level->short_op[l->op]) w.kernel = level->short_op[l->op];
    if (kernels[l->compute]) take_as_is(&w, kernels[l->compute]);
  }
  if (l->count > CPU_GRAIN || takes_parameters(l) || !is_direct(&w)) return run_parallel(&w);
  const void *y = w.by_number ? &w.number : l->in[1].data;
  w.kernel(l->out.data, l->in[0].data, y, l->in[2].data, l->count, &w.args);
  return loop_status(&w);
}
