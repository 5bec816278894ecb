/* grad.h: derivatives, by going back through what was calculated. Included by weir.h.
 *
 * As torch.autograd. A tensor that requires a gradient (weir_requires_grad_) makes all that is
 * calculated from it remember how: every result has a node with the operation that made it, its
 * operands' nodes and what its derivative needs of their elements. weir_backward() goes from a
 * result back to its leaves, and adds to each leaf's gradient what it contributes. Graphs are freed
 * as their last tensor is released, and what a node keeps once it has been gone through, unless it
 * is retained. All of it is by thread where torch's is: whether calculations are recorded
 * (WEIR_NO_GRAD) is each thread's own; several threads may go back at once through graphs that
 * have leaves in common.
 *
 * Gradients are where their tensors are, of their dtype and shape. Floating point has them, and
 * complex64: the gradient of the real part plus i times that of the imaginary one, as torch's;
 * there an operation that has none for complex numbers is refused (ENOTSUP). Words of errors are
 * torch's.
 *
 * Changes in place are recorded, of views too: all tensors that share the memory have then been
 * changed, but for what detach() made. Refused as in torch, with its words: a leaf that requires a
 * gradient, a view of one, a view made while nothing was recorded, one of several that a function
 * gave (unbind, split, chunk). One view more may be changed than in torch: one that was made before
 * its base had a history. */
#ifndef WEIR_GRAD_H
#define WEIR_GRAD_H

#include <stdbool.h>
#include <stdint.h>
#include "core/base/status.h"
#include "core/weir/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- tensors ----------------------------------------------------------------------------------
 */

/* Whether gradients gather in t, a leaf. Errors: EINVAL, "only Tensors of floating point dtype can
 * require gradients"; "you can only change requires_grad flags of leaf variables." */
WEIR_PUBLIC weir_status weir_requires_grad_(weir_tensor *t, bool requires_grad);
/* Whether t is a leaf that requires one, or was calculated from such. */
WEIR_PUBLIC bool weir_tensor_requires_grad(const weir_tensor *t);
/* Whether nothing recorded has made it. */
WEIR_PUBLIC bool weir_tensor_is_leaf(const weir_tensor *t);
/* What has made it: "MulBackward0" (borrowed, static); "" of a leaf. */
WEIR_PUBLIC const char *weir_tensor_grad_fn(const weir_tensor *t);
/* How often its elements, or those of tensors that share its memory, were changed in place. */
WEIR_PUBLIC uint32_t weir_tensor_version(const weir_tensor *t);
/* The gradient that has gathered (borrowed, until the next backward or change of it); NULL:
 * none. */
WEIR_PUBLIC weir_tensor *weir_tensor_grad(const weir_tensor *t);
/* Sets it (counted once more); NULL takes it away. Errors: EINVAL (another shape, dtype or device;
 * t requires no gradient). */
WEIR_PUBLIC weir_status weir_tensor_set_grad(weir_tensor *t, weir_tensor *grad);
/* Of what is no leaf, too, backward leaves the gradient. Errors: EINVAL, "can't retain_grad on
 * Tensor that has requires_grad=False". */
WEIR_PUBLIC weir_status weir_retain_grad(weir_tensor *t);
/* The same elements in the same memory, with no history; changes of it in place are not recorded
 * for t, whose version counts them. */
WEIR_PUBLIC weir_status weir_detach(weir_tensor **out, const weir_tensor *t);

/* Is called with t's gradient as soon as it is whole (borrowed); *out, NULL before, may be set to
 * another one in its place, which is stolen. Any status but WEIR_OK ends the backward with it. */
typedef weir_status (*weir_grad_hook)(weir_tensor **out, const weir_tensor *grad, void *context);
/* Registers a hook (context: borrowed until it is removed or the graph is freed); *id (may be NULL)
 * names it. Errors: EINVAL, "cannot register a hook on a tensor that doesn't require gradient". */
WEIR_PUBLIC weir_status weir_register_hook(uint64_t *id, weir_tensor *t, weir_grad_hook hook,
                                           void *context);
/* An id that is not there is nothing. */
WEIR_PUBLIC void weir_remove_hook(weir_tensor *t, uint64_t id);

/* ---- whether it is recorded, by thread --------------------------------------------------------
 */

WEIR_PUBLIC bool weir_is_grad_enabled(void);
/* Returns what it was. */
WEIR_PUBLIC bool weir_set_grad_enabled(bool enabled);

/* What weir_grad_guard_leave() brings back. */
typedef struct weir_grad_guard {
  bool todo; /* the macros' loop has yet to run */
  bool was;
} weir_grad_guard;
WEIR_PUBLIC void weir_grad_guard_leave(weir_grad_guard *guard);

static inline weir_grad_guard weir_guard_of_grad(bool enabled)
{
  weir_grad_guard guard;
  guard.todo = true;
  guard.was = weir_set_grad_enabled(enabled);
  return guard;
}

#define WEIR_GRAD_GUARD_JOIN_(a, b) a##b
#define WEIR_GRAD_GUARD_NAME_(line) WEIR_GRAD_GUARD_JOIN_(weir_grad_guard_at_, line)
#define WEIR_GRAD_GUARD_LOOP_(name, on)                                                            \
  for (weir_grad_guard name                                                                        \
       __attribute__((cleanup(weir_grad_guard_leave))) = weir_guard_of_grad(on);                   \
       (name).todo; (name).todo = false)
/* WEIR_NO_GRAD { ... }: nothing is recorded in the block, however it is left; WEIR_ENABLE_GRAD: it
 * is, within such a block. */
#define WEIR_NO_GRAD     WEIR_GRAD_GUARD_LOOP_(WEIR_GRAD_GUARD_NAME_(__LINE__), false)
#define WEIR_ENABLE_GRAD WEIR_GRAD_GUARD_LOOP_(WEIR_GRAD_GUARD_NAME_(__LINE__), true)

/* ---- going back -------------------------------------------------------------------------------
 */

/* Adds to the gradients of the leaves that t was calculated from. gradient: that of t, borrowed;
 * NULL: 1, of a t with one element. retain_graph: it may be gone through again. Errors: EINVAL,
 * "element 0 of tensors does not require grad and does not have a grad_fn"; "grad can be implicitly
 * created only for scalar outputs"; "Trying to backward through the graph a second time ..."; "one
 * of the variables needed for gradient computation has been modified by an inplace operation: ...".
 * After an error some leaves may have theirs already; no other tensor has changed. */
WEIR_PUBLIC weir_status weir_backward(const weir_tensor *t, const weir_tensor *gradient,
                                      bool retain_graph);

typedef struct weir_grad_options {
  const weir_tensor *const *grad_outputs; /* one an output, borrowed; NULL, also of one: ones */
  bool retain_graph;
  bool create_graph; /* what is calculated is recorded, too; retains the graph */
  bool allow_unused; /* an input that no output depends on has the gradient NULL */
} weir_grad_options;

/* The gradients of `count` outputs with regard to `inputs`, of which there are `of`; the leaves'
 * own gradients stay. out: room for `of`, each new. options NULL: all 0. As torch.autograd.grad.
 * Errors: also "One of the differentiated Tensors does not require grad"; "One of the
 * differentiated Tensors appears to not have been used in the graph. Set allow_unused=True if this
 * is the desired behavior." */
WEIR_PUBLIC weir_status weir_grad(weir_tensor **out, const weir_tensor *const *outputs, int count,
                                  const weir_tensor *const *inputs, int of,
                                  const weir_grad_options *options);

#ifdef __cplusplus
}
#endif

#endif
