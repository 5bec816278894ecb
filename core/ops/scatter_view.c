/* scatter_view.c: copies of tensors in which a part is another tensor: a diagonal, a place of a
 * dimension, a slice. */
#include "core/base/require.h"
#include "core/stream/async_error.h"
#include "core/ops/ops.h"
#include "core/tensor/record.h"

/* src into `view`, a part of what is new; broadcasts nothing. */
static weir_status fill_part_with(const weir_tensor *view, const weir_tensor *src)
{
  text_buffer one, two;
  bool same = view->dims == src->dims;
  for (int d = 0; d < src->dims && same; d++)
    same = view->size[d] == src->size[d];
  if (!same)
    return weir_fail(WEIR_EINVAL,
                     "expected src to have a size equal to the slice of self. src size = %s, slice "
                     "size = %s",
                     shape_format(&one, weir_tensor_shape(src)),
                     shape_format(&two, weir_tensor_shape(view)));
  weir_status st = check_same_device(view, src);
  return st ? st : loop_copy(view, src);
}

static weir_status drop_unless_good(weir_tensor **out, weir_status st)
{
  if (st) weir_tensor_drop(out);
  return st;
}

weir_status weir_diagonal_scatter(weir_tensor **out, const weir_tensor *a, const weir_tensor *src,
                                  int64_t offset, int dim1, int dim2)
{
  WEIR_OP_HERE;
  WEIR_REQUIRE_OUT(out, a, src);
  WEIR_NO_DERIVATIVE(a, src);
  WEIR_TENSOR view = NULL;
  weir_status st = weir_clone(out, a);
  if (!st) st = weir_diagonal(&view, *out, offset, dim1, dim2);
  if (!st) st = fill_part_with(view, src);
  return drop_unless_good(out, st);
}

weir_status weir_select_scatter(weir_tensor **out, const weir_tensor *a, const weir_tensor *src,
                                int dim, int64_t index)
{
  WEIR_OP_HERE;
  WEIR_REQUIRE_OUT(out, a, src);
  WEIR_NO_DERIVATIVE(a, src);
  WEIR_TENSOR view = NULL;
  weir_status st = weir_clone(out, a);
  if (!st) st = weir_select(&view, *out, dim, index);
  if (!st) st = fill_part_with(view, src);
  return drop_unless_good(out, st);
}

weir_status weir_slice_scatter(weir_tensor **out, const weir_tensor *a, const weir_tensor *src,
                               int dim, int64_t start, int64_t end, int64_t step)
{
  WEIR_OP_HERE;
  WEIR_REQUIRE_OUT(out, a, src);
  WEIR_NO_DERIVATIVE(a, src);
  WEIR_TENSOR view = NULL;
  weir_status st = weir_clone(out, a);
  if (!st) st = weir_slice(&view, *out, dim, start, end, step);
  if (!st) st = fill_part_with(view, src);
  return drop_unless_good(out, st);
}
