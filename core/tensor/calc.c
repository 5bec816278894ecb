/* calc.c: what an expression has made, and its first error. */
#include "core/tensor/calc.h"

void calc_drop(calc *c, int count)
{
  while (c->count > count)
    weir_tensor_release(c->made[--c->count]);
}

void calc_end(calc (*c)[1])
{
  calc_drop(*c, 0);
}

weir_tensor *calc_keep(calc *c, weir_status st, weir_tensor **made)
{
  if (!st && c->count == CALC_ROOM)
    st = fail_unsupported("an expression needs more than %d temporaries", CALC_ROOM);
  if (st) {
    c->st = st;
    weir_tensor_drop(made);
    return NULL;
  }
  if (*made) c->made[c->count++] = *made;
  return *made;
}

weir_status calc_give(const calc *c, weir_tensor **out, const weir_tensor *t)
{
  if (!c->st) *out = weir_tensor_retain((weir_tensor *)t);
  return c->st;
}
