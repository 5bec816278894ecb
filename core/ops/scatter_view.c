/* scatter_view.c: copies of tensors in which a part is another tensor: a diagonal, a place of a
 * dimension, a slice. */
#include <string.h>
#include "core/ops/ops.h"

/* src into `view`, a part of what is new; broadcasts nothing. */
static weir_status fill_part_with(const weir_tensor *view, const weir_tensor *src)
{
  text_buffer one, two;
  bool same = view->dims == src->dims;
  for (int d = 0; d < src->dims && same; d++)
    same = view->size[d] == src->size[d];
  if (!same)
    return fail_invalid(
        "expected src to have a size equal to the slice of self. src size = %s, slice size = %s",
        shape_format(&one, weir_tensor_shape(src)), shape_format(&two, weir_tensor_shape(view)));
  weir_status st = check_same_device(view, src);
  return st ? st : loop_copy(view, src);
}

/* What a clone of a becomes: src is put into its part `view`, which is released; `st`: what making
 * both returned. n: the numbers of the record. */
static weir_status scatter_into(weir_tensor **out, weir_tensor *view, weir_status st,
                                const weir_tensor *a, const weir_tensor *src, enum record_kind kind,
                                const int64_t *n)
{
  record r = {.kind = kind, .inputs = 2, .in = (const weir_tensor *[]){a, src}};
  if (!st) st = fill_part_with(view, src);
  weir_tensor_release(view);
  if (st) weir_tensor_drop(out);
  if (st || !recorded_any(r.in, 2)) return st;
  memcpy(r.n, n, 4 * sizeof *n);
  return record_made(out, &r, st);
}

/* A copy without a history. */
static weir_status plain_clone(weir_tensor **out, const weir_tensor *a)
{
  WEIR_UNRECORDED;
  return weir_clone(out, a);
}

weir_status weir_diagonal_scatter(weir_tensor **out, const weir_tensor *a, const weir_tensor *src,
                                  int64_t offset, int dim1, int dim2)
{
  WEIR_OP(out, a, src);
  weir_tensor *view = NULL;
  weir_status st = plain_clone(out, a);
  if (!st) st = weir_diagonal(&view, *out, offset, dim1, dim2);
  return scatter_into(out, view, st, a, src, RECORD_DIAGONAL_SCATTER,
                      (const int64_t[4]){offset, dim1, dim2, 0});
}

weir_status weir_select_scatter(weir_tensor **out, const weir_tensor *a, const weir_tensor *src,
                                int dim, int64_t index)
{
  WEIR_OP(out, a, src);
  weir_tensor *view = NULL;
  weir_status st = plain_clone(out, a);
  if (!st) st = weir_select(&view, *out, dim, index);
  return scatter_into(out, view, st, a, src, RECORD_SELECT_SCATTER,
                      (const int64_t[4]){dim, index, 0, 0});
}

weir_status weir_slice_scatter(weir_tensor **out, const weir_tensor *a, const weir_tensor *src,
                               int dim, int64_t start, int64_t end, int64_t step)
{
  WEIR_OP(out, a, src);
  weir_tensor *view = NULL;
  weir_status st = plain_clone(out, a);
  if (!st) st = weir_slice(&view, *out, dim, start, end, step);
  return scatter_into(out, view, st, a, src, RECORD_SLICE_SCATTER,
                      (const int64_t[4]){dim, start, end, step});
}
