/* record.c: see record.h. */
#include "core/tensor/record.h"

const recorder *tensor_recorder;

__thread bool thread_grad_off __attribute__((tls_model("initial-exec")));

bool requires_gradient(const weir_tensor *t)
{
  if (t->storage->history && tensor_recorder->refresh((weir_tensor *)t)) return true;
  return t->node;
}

bool recorded_any(const weir_tensor *const *list, int count)
{
  for (int i = 0; i < count; i++)
    if (list[i] && recorded(list[i])) return true;
  return false;
}

weir_status check_unrecorded(const char *function, const weir_tensor *self,
                             const weir_tensor *const *list, int count)
{
  return recorded_any(list, count) ? tensor_recorder->refuse(function, self) : WEIR_OK;
}

weir_status record_choice(weir_tensor **out, weir_status st, enum record_kind kind,
                          const weir_tensor *a, const weir_tensor *src, const weir_tensor *index,
                          int64_t n0, int64_t n1)
{
  const weir_tensor *in[3] = {a, src, index};
  if (st || !recorded_any(in, 2)) return st;
  record r = {.kind = kind, .inputs = 3, .in = in, .n = {n0, n1}};
  return record_made(out, &r, st);
}

weir_status change_begin(grad_node **node, enum record_kind kind, weir_tensor *t,
                         const weir_tensor *src, const weir_tensor *index, int64_t n0)
{
  const weir_tensor *in[3] = {t, src, index};
  *node = NULL;
  if (!recorded_any(in, 2)) return WEIR_OK;
  record r = {.kind = kind, .in_place = true, .inputs = 3, .in = in, .out = {t}, .n = {n0}};
  return tensor_recorder->before(node, &r);
}

weir_status change_end(grad_node *node, weir_tensor *t, weir_status st)
{
  if (!st) tensor_changes(t);
  if (node) tensor_recorder->after(node, t, !st);
  return st;
}
