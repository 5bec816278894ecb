/* loop.c: from tensors to a request that a device fills.
 *
 * A loop over broadcast tensors has as many dimensions as the result. Before it runs, dimensions
 * are sorted so that the last one has the smallest strides, those of size 1 are taken out, and
 * neighbours that lie one after the other in all operands become one: operands that are dense in
 * the same order, whatever that order is, are one run of elements.
 *
 * Words. fast dimension: the last one of the loop. order: the loop's dimensions by how fast they
 * are in memory, slowest first. */
#include <string.h>
#include "core/stream/async_error.h"
#include "core/tensor/loop.h"

static const uint8_t inputs_of[WEIR_OP_COUNT] = {
#define INPUTS(name, text, inputs, ...) inputs,
    WEIR_OPS(INPUTS)
#undef INPUTS
};

static const char *const text_of[WEIR_OP_COUNT] = {
#define TEXT(name, text, ...) text,
    WEIR_OPS(TEXT)
#undef TEXT
};

weir_operand operand_of(const weir_tensor *t, const weir_loop *l)
{
  weir_operand o;
  int lead = l->dims - t->dims;
  o.data = t->data;
  o.dtype = t->dtype;
  o.number = weir_bool(false);
  for (int i = 0; i < lead; i++)
    o.stride[i] = 0;
  for (int i = 0; i < t->dims; i++)
    /* NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult): dims sizes are set */
    o.stride[lead + i] = t->size[i] == 1 && l->size[lead + i] != 1 ? 0 : t->stride[i];
  return o;
}

/* ---- the shape of a loop --------------------------------------------------------------------- */

/* The operands of a loop that have memory, out first. */
typedef struct operands {
  int count;
  weir_operand *of[4];
} operands;

static void add_inputs(operands *o, weir_loop *l)
{
  for (int i = 0; i < inputs_of[l->op]; i++)
    if (l->in[i].data) o->of[o->count++] = &l->in[i];
}

static void move_dim(const operands *o, weir_loop *l, int to, int from)
{
  l->size[to] = l->size[from];
  for (int i = 0; i < o->count; i++)
    o->of[i]->stride[to] = o->of[i]->stride[from];
}

/* Whether dimension `inner` goes on where a step of `outer` ends, in all operands. */
static bool joined_dims(const operands *o, const weir_loop *l, int outer, int inner)
{
  for (int i = 0; i < o->count; i++)
    if (o->of[i]->stride[outer] != o->of[i]->stride[inner] * l->size[inner]) return false;
  return true;
}

static void merge_dims(const operands *o, weir_loop *l)
{
  int kept = 0;
  for (int d = 0; d < l->dims; d++) {
    if (l->size[d] == 1) continue;
    if (kept && joined_dims(o, l, kept - 1, d)) {
      int64_t both = l->size[kept - 1] * l->size[d];
      move_dim(o, l, kept - 1, d);
      l->size[kept - 1] = both;
    } else {
      move_dim(o, l, kept++, d);
    }
  }
  l->dims = kept;
}

/* 1: `a`, which is faster in the order so far, has the larger strides; -1: the smaller; 0: nobody
 * minds. Operands that repeat along one of the two have no opinion. */
static int larger(const operands *o, const weir_loop *l, int a, int b)
{
  for (int i = 0; i < o->count; i++) {
    int64_t x = o->of[i]->stride[a], y = o->of[i]->stride[b];
    if (!x || !y) continue;
    if (x != y) return x < y ? -1 : 1;
    if (l->size[a] > l->size[b]) return 1;
  }
  return 0;
}

/* order[0]: the fastest. True: it is the dimensions' own order. */
static bool find_order(const operands *o, const weir_loop *l, int order[WEIR_DIMS])
{
  bool same = true;
  for (int i = 0; i < l->dims; i++)
    order[i] = l->dims - 1 - i;
  for (int i = 1; i < l->dims; i++)
    for (int at = i, below = i - 1; below >= 0; below--) {
      int c = larger(o, l, order[below], order[at]);
      if (c < 0) break;
      if (!c) continue;
      int moved = order[below];
      order[below] = order[at];
      order[at] = moved;
      at = below;
      same = false;
    }
  return same;
}

static void sort_dims(const operands *o, weir_loop *l)
{
  int order[WEIR_DIMS];
  int64_t was[WEIR_DIMS];
  size_t bytes = (size_t)l->dims * sizeof *was;
  if (find_order(o, l, order)) return;
  for (int i = -1; i < o->count; i++) {
    int64_t *of = i < 0 ? l->size : o->of[i]->stride;
    memcpy(was, of, bytes);
    for (int d = 0; d < l->dims; d++)
      of[d] = was[order[l->dims - 1 - d]];
  }
}

static void simplify(weir_loop *l)
{
  operands o = {1, {&l->out}};
  add_inputs(&o, l);
  merge_dims(&o, l);
  if (l->dims < 2 || l->op == WEIR_OP_RANGE) return;
  sort_dims(&o, l);
  merge_dims(&o, l);
}

weir_status loop_out(weir_tensor **out, weir_loop *l, weir_dtype dtype, weir_device device)
{
  weir_shape shape = weir_shape_of(l->dims, l->size);
  operands o = {0};
  int order[WEIR_DIMS];
  add_inputs(&o, l);
  bool same = l->dims < 2 || find_order(&o, l, order);
  weir_status st = tensor_new(out, dtype, device, false, shape);
  if (st) return st;
  if (!same) {
    int64_t stride[WEIR_DIMS], step = 1;
    for (int i = 0; i < l->dims; i++) {
      stride[order[i]] = step;
      step *= l->size[order[i]] ? l->size[order[i]] : 1;
    }
    weir_tensor *dense = *out;
    st = tensor_view(out, dense, shape, stride, 0);
    weir_tensor_release(dense);
    if (st) return st;
  }
  l->out = operand_of(*out, l);
  return WEIR_OK;
}

/* ---- running it ------------------------------------------------------------------------------ */

weir_status compute_target_of(compute_target *out, weir_device device)
{
  TRY(device_place_of(&out->place, device));
  out->compute = out->place.backend->compute;
  out->self = out->place.backend->self;
  out->stream = out->place.native;
  return WEIR_OK;
}

weir_status compute_target_lacks(const compute_target *t, const char *op)
{
  const weir_backend *b = t->place.backend;
  return fail_unsupported("%s: the %s backend of device %d cannot do it", op, b->name, b->index);
}

weir_status compute_target_done(const compute_target *t, weir_status st, const char *op)
{
  return op_done(t->place.stream, op, st);
}

weir_status loop_run(weir_device device, weir_loop *l)
{
  compute_target t;
  simplify(l);
  int64_t count = 1;
  for (int i = 0; i < l->dims; i++)
    count *= l->size[i];
  l->count = count;
  if (!count) return WEIR_OK;
  weir_status st = compute_target_of(&t, device);
  return st ? st : compute_target_done(&t, t.compute->map(t.self, t.stream, l), text_of[l->op]);
}

weir_status loop_copy(const weir_tensor *to, const weir_tensor *from)
{
  weir_loop l;
  loop_begin(&l, WEIR_OP_COPY, to);
  l.in[0] = operand_of(from, &l);
  return loop_run(device_of_tensor(to), &l);
}

weir_status loop_dense(weir_tensor **out, const weir_tensor *t)
{
  weir_status st = tensor_new_beside(out, t, shape_of_tensor(t));
  if (!st && (st = loop_copy(*out, t))) weir_tensor_drop(out);
  return st;
}

/* ---- memory that is written and read --------------------------------------------------------- */

/* Whether t's elements fill their memory without holes and without sharing any, in some order. */
static bool fills_memory(const weir_tensor *t)
{
  int order[WEIR_DIMS], count = 0;
  int64_t step = 1;
  if (t->dense) return true;
  for (int i = 0; i < t->dims; i++) {
    if (t->size[i] == 1) continue;
    int at = count++;
    for (; at && t->stride[order[at - 1]] > t->stride[i]; at--)
      order[at] = order[at - 1];
    order[at] = i;
  }
  for (int i = 0; i < count; i++) {
    if (t->stride[order[i]] != step) return false;
    step *= t->size[order[i]];
  }
  return true;
}

/* Bytes from the first element on that t's elements lie in; before it, where strides are negative.
 */
static void extent_of_tensor(const weir_tensor *t, const char **from, const char **to)
{
  int64_t low = 0, high = 1, size = (int64_t)itemsize(t->dtype);
  for (int i = 0; i < t->dims; i++) {
    int64_t last = (t->size[i] - 1) * t->stride[i];
    *(last < 0 ? &low : &high) += last;
  }
  *from = t->data + low * size;
  *to = t->data + high * size;
}

static bool same_strides(const weir_tensor *a, const weir_tensor *b)
{
  if (a->dims != b->dims || a->dtype != b->dtype) return false;
  for (int i = 0; i < a->dims; i++)
    if (a->size[i] != b->size[i] || (a->size[i] > 1 && a->stride[i] != b->stride[i])) return false;
  return true;
}

weir_status overlap_check(bool *copy, const weir_tensor *out, const weir_tensor *in)
{
  const char *from, *to, *in_from, *in_to;
  *copy = false;
  for (int i = 0; !out->dense && i < out->dims; i++)
    if (out->size[i] > 1 && !out->stride[i])
      return fail_invalid(
          "unsupported operation: more than one element of the written-to tensor refers to a "
          "single memory location. Please clone() the tensor before performing the operation.");
  if (!in || in->storage != out->storage || !in->numel || !out->numel) return WEIR_OK;
  if (in->data == out->data && same_strides(in, out)) return WEIR_OK;
  extent_of_tensor(out, &from, &to);
  extent_of_tensor(in, &in_from, &in_to);
  if (in_to <= from || to <= in_from) return WEIR_OK;
  *copy = !fills_memory(out) || !fills_memory(in);
  if (*copy) return WEIR_OK;
  return fail_invalid(
      "unsupported operation: some elements of the input tensor and the written-to tensor refer to "
      "a single memory location. Please clone() the tensor before performing the operation.");
}
