/* unique.c: what is there once: distinct elements, how often each, and the most frequent.
 *
 * Made of others: elements in order, where a run of equals begins, how many have begun so far. What
 * has as many elements as there are runs waits for the device. */
#include "core/ops/ops.h"

/* Of the last dimension of `x`, which is not empty, whether each differs from the one before; the
 * first does. */
static weir_status run_begins(weir_tensor **out, const weir_tensor *x)
{
  CALC(c);
  int last = x->dims - 1;
  weir_shape shape = weir_tensor_shape(x);
  shape.size[last] = 1;
  weir_tensor *after = c_call(c, weir_narrow, x, last, 1, x->size[last] - 1);
  weir_tensor *differ = c_ne(c, after, c_call(c, weir_narrow, x, last, 0, x->size[last] - 1));
  weir_tensor *first = c_call(c, weir_ones, shape, OPTIONS_ON(x, WEIR_BOOL));
  return c->st ? c->st : weir_cat(out, (const weir_tensor *[]){first, differ}, 2, last);
}

/* ---- distinct elements ----------------------------------------------------------------------- */

/* What is asked for; NULL: is not. */
typedef struct uniques {
  weir_tensor **out, **inverse, **counts;
} uniques;

/* The number of each element's run, where the element was; places NULL: where it is. */
static weir_status run_numbers(weir_tensor **out, const weir_tensor *begins,
                               const weir_tensor *places, weir_shape shape)
{
  CALC(c);
  weir_tensor *back = NULL;
  weir_tensor *number = c_cumsum(c, begins, 0);
  c_do(c, weir_sub_scalar_(number, weir_int(1)));
  if (!c->st && places) {
    back = c_call(c, weir_empty_like, number, NULL);
    c_do(c, weir_scatter_(back, 0, places, number));
  }
  return c->st ? c->st : weir_reshape(out, places ? back : number, shape);
}

static weir_status run_lengths(weir_tensor **out, const weir_tensor *begins)
{
  CALC(c);
  weir_options o = {.dtype = WEIR_INT64, .device = device_of_tensor(begins)};
  weir_tensor *flat = c_reshape(c, c_call(c, weir_nonzero, begins), weir_shape(-1));
  weir_tensor *end = c_call(c, weir_full, weir_shape(1), weir_int(begins->numel), &o);
  weir_tensor *both = c_call(c, weir_cat, (const weir_tensor *[]){flat, end}, 2, 0);
  return c->st ? c->st : weir_diff(out, both, 1, 0);
}

static weir_status unique_nothing(const uniques *u, const weir_tensor *a)
{
  weir_device d = device_of_tensor(a);
  weir_status st = tensor_new_beside(u->out, a, weir_shape(0));
  if (!st && u->inverse) st = tensor_new(u->inverse, WEIR_INT64, d, false, weir_tensor_shape(a));
  if (!st && u->counts) st = tensor_new(u->counts, WEIR_INT64, d, false, weir_shape(0));
  return st;
}

static weir_status unique_some(const uniques *u, const weir_tensor *a, bool consecutive)
{
  CALC(c);
  WEIR_TENSOR sorted = NULL, places = NULL;
  weir_tensor *flat = c_reshape(c, a, weir_shape(-1));
  if (!consecutive) c_do(c, weir_sort(&sorted, &places, flat, 0, false));
  const weir_tensor *x = consecutive ? flat : sorted;
  weir_tensor *begins = c_call(c, run_begins, x);
  c_do(c, weir_masked_select(u->out, x, begins));
  if (u->inverse) c_do(c, run_numbers(u->inverse, begins, places, weir_tensor_shape(a)));
  if (u->counts) c_do(c, run_lengths(u->counts, begins));
  return c->st;
}

static void drop_uniques(const uniques *u)
{
  weir_tensor_drop(u->out);
  if (u->inverse) weir_tensor_drop(u->inverse);
  if (u->counts) weir_tensor_drop(u->counts);
}

static weir_status unique_run(const uniques *u, const weir_tensor *a, bool consecutive)
{
  if (a->dtype == WEIR_COMPLEX64)
    return not_implemented("unique", device_of_tensor(a), WEIR_COMPLEX64);
  weir_status st = a->numel ? unique_some(u, a, consecutive) : unique_nothing(u, a);
  if (st) drop_uniques(u);
  return st;
}

/* ---- distinct parts -------------------------------------------------------------------------- */

/* Where rows (n, m) are in their order: by the last column first, and stably by each before it. */
static weir_status order_of_rows(weir_tensor **out, const weir_tensor *rows)
{
  weir_options o = {.dtype = WEIR_INT64, .device = device_of_tensor(rows)};
  weir_status st = weir_arange(out, weir_int(0), weir_int(rows->size[0]), weir_int(1), &o);
  for (int64_t j = rows->size[1] - 1; j >= 0 && !st; j--) {
    WEIR_TENSOR column = NULL, now = NULL, places = NULL;
    WEIR_TENSOR was = *out;
    *out = NULL;
    st = weir_select(&column, rows, 1, j);
    if (!st) st = weir_index_select(&now, column, 0, was);
    if (!st) st = weir_argsort(&places, now, 0, false);
    if (!st) st = weir_index_select(out, was, 0, places);
  }
  return st;
}

/* Whether each row differs from the one before; the first does. */
static weir_status row_begins(weir_tensor **out, const weir_tensor *rows)
{
  CALC(c);
  weir_tensor *after = c_call(c, weir_narrow, rows, 0, 1, rows->size[0] - 1);
  weir_tensor *unlike = c_ne(c, after, c_call(c, weir_narrow, rows, 0, 0, rows->size[0] - 1));
  weir_tensor *differ = c_any_dim(c, unlike, 1, false);
  weir_tensor *first = c_call(c, weir_ones, weir_shape(1), OPTIONS_ON(rows, WEIR_BOOL));
  return c->st ? c->st : weir_cat(out, (const weir_tensor *[]){first, differ}, 2, 0);
}

static weir_status unique_parts(const uniques *u, const weir_tensor *a, int dim, bool consecutive)
{
  CALC(c);
  const int front = 0;
  int64_t n = a->size[dim];
  weir_tensor *moved = c_call(c, weir_movedim, a, &dim, &front, 1);
  weir_tensor *rows = c_reshape(c, moved, weir_shape(n, a->numel / n));
  weir_tensor *order = !consecutive ? c_call(c, order_of_rows, rows) : NULL;
  weir_tensor *sorted = !consecutive ? c_index_select(c, rows, 0, order) : NULL;
  weir_tensor *begins = c_call(c, row_begins, consecutive ? rows : sorted);
  weir_tensor *flat = c_reshape(c, c_call(c, weir_nonzero, begins), weir_shape(-1));
  weir_tensor *kept = !consecutive ? c_index_select(c, order, 0, flat) : NULL;
  c_do(c, weir_index_select(u->out, a, dim, consecutive ? flat : kept));
  if (u->inverse) c_do(c, run_numbers(u->inverse, begins, order, weir_shape(n)));
  if (u->counts) c_do(c, run_lengths(u->counts, begins));
  return c->st;
}

/* Of a without elements: nothing, where dimension `at` alone is empty. */
static weir_status no_parts(const uniques *u, const weir_tensor *a, int at)
{
  weir_device d = device_of_tensor(a);
  if (a->size[at])
    return fail_invalid(
        "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied");
  for (int i = 0; i < a->dims; i++)
    if (!a->size[i] && i != at)
      return fail_invalid(
          "Number of zero sized dimensions is more than one, so unique cannot be applied ");
  weir_status st = tensor_new_beside(u->out, a, weir_tensor_shape(a));
  if (!st && u->inverse) st = tensor_new(u->inverse, WEIR_INT64, d, false, weir_shape(0));
  if (!st && u->counts) st = tensor_new(u->counts, WEIR_INT64, d, false, weir_shape(0));
  return st;
}

static weir_status unique_along(const uniques *u, const weir_tensor *a, int dim, bool consecutive)
{
  int at;
  if (!a->dims) return fail_invalid("Dimension specified as %d but tensor has no dimensions", dim);
  TRY(dim_resolve(&at, dim, a->dims));
  if (a->dtype == WEIR_COMPLEX64)
    return not_implemented("unique_dim", device_of_tensor(a), WEIR_COMPLEX64);
  weir_status st = a->numel ? unique_parts(u, a, at, consecutive) : no_parts(u, a, at);
  if (st) drop_uniques(u);
  return st;
}

#define UNIQUE(name, run, ...)                                                                     \
  weir_status weir_##name(weir_tensor **out, weir_tensor **inverse, weir_tensor **counts,          \
                          __VA_ARGS__)                                                             \
  {                                                                                                \
    WEIR_OP_HERE;                                                                                  \
    if (inverse) *inverse = NULL;                                                                  \
    if (counts) *counts = NULL;                                                                    \
    WEIR_REQUIRE_OUT(out, a);                                                                      \
    WEIR_NO_DERIVATIVE(a);                                                                         \
    uniques u = {out, inverse, counts};                                                            \
    return run;                                                                                    \
  }
UNIQUE(unique, unique_run(&u, a, false), const weir_tensor *a)
UNIQUE(unique_consecutive, unique_run(&u, a, true), const weir_tensor *a)
UNIQUE(unique_dim, unique_along(&u, a, dim, false), const weir_tensor *a, int dim)
UNIQUE(unique_consecutive_dim, unique_along(&u, a, dim, true), const weir_tensor *a, int dim)

/* ---- the most frequent ----------------------------------------------------------------------- */

/* Of the last dimension of `sorted`, kept: the first place where a run is as long as the
 * longest. */
static weir_status longest_run(weir_tensor **out, const weir_tensor *sorted)
{
  CALC(c);
  WEIR_TENSOR start = NULL, at = NULL;
  int last = sorted->dims - 1;
  weir_options o = {.dtype = WEIR_INT64, .device = device_of_tensor(sorted)};
  weir_tensor *begins = c_call(c, run_begins, sorted);
  weir_tensor *place =
      c_call(c, weir_arange, weir_int(0), weir_int(sorted->size[last]), weir_int(1), &o);
  weir_tensor *begun = c_where(c, begins, place, c_call(c, weir_zeros, weir_shape_of(0, NULL), &o));
  c_do(c, weir_cummax(&start, &at, begun, last));
  weir_tensor *length = c_sub(c, place, start);
  return c->st ? c->st : weir_argmax_dim(out, length, last, true);
}

/* Of a with dimensions and elements; both results in rows. */
static weir_status unique_mode_of(weir_tensor **values, weir_tensor **indices, const weir_tensor *a,
                                  int dim)
{
  CALC(c);
  WEIR_TENSOR sorted = NULL, places = NULL;
  int last = a->dims - 1;
  weir_tensor *rows = c_contiguous(c, c_call(c, weir_movedim, a, &dim, &last, 1));
  c_do(c, weir_sort(&sorted, &places, rows, last, false));
  weir_tensor *best = c_call(c, longest_run, sorted);
  c_do(c, weir_gather(values, sorted, last, best));
  return c->st ? c->st : weir_gather(indices, places, last, best);
}

static weir_status shaped_as(weir_tensor **t, weir_shape shape)
{
  WEIR_TENSOR was = *t;
  *t = NULL;
  return weir_reshape(t, was, shape);
}

static weir_status mode_alone(weir_tensor **values, weir_tensor **indices, const weir_tensor *a)
{
  weir_status st = weir_clone(values, a);
  if (!st) st = tensor_new(indices, WEIR_INT64, device_of_tensor(a), false, weir_shape_of(0, NULL));
  return st ? st : weir_zero_(*indices);
}

static weir_status mode_run(weir_tensor **values, weir_tensor **indices, const weir_tensor *a,
                            int dim, bool keepdim)
{
  int at;
  weir_shape shape = {0, {0}};
  weir_status st = dim_resolve(&at, dim, a->dims);
  if (st) return st;
  if (!a->dims) return mode_alone(values, indices, a);
  if (!a->size[at])
    return fail_invalid("mode(): Expected reduction dim %d to have non-zero size.", at);
  if (a->dtype == WEIR_COMPLEX64 && a->numel)
    return not_implemented("mode_%s", device_of_tensor(a), WEIR_COMPLEX64);
  for (int d = 0; d < a->dims; d++)
    if (d != at || keepdim) shape.size[shape.count++] = d == at ? 1 : a->size[d];
  if (!a->numel) {
    st = tensor_new_beside(values, a, shape);
    return st ? st : tensor_new(indices, WEIR_INT64, device_of_tensor(a), false, shape);
  }
  st = unique_mode_of(values, indices, a, at);
  if (!st) st = shaped_as(values, shape);
  return st ? st : shaped_as(indices, shape);
}

weir_status weir_mode(weir_tensor **values, weir_tensor **indices, const weir_tensor *a, int dim,
                      bool keepdim)
{
  WEIR_OP_BOTH(values, indices, a);
  weir_status st = mode_run(values, indices, a, dim, keepdim);
  if (!st) return st;
  weir_tensor_drop(values);
  weir_tensor_drop(indices);
  return st;
}
