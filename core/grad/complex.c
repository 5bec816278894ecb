/* complex.c: what is the same for all derivatives of complex numbers; rules.def has which rules
 * they are.
 *
 * The gradient of a complex number is that of its real part plus i times that of its imaginary
 * part, as torch's (conjugate Wirtinger): of an analytic function the conjugate of its derivative
 * times the gradient of the result. So the rules of the other files conjugate what they multiply
 * by; a real operand next to complex ones takes the real part, when its gradient is made its
 * dtype. */
#include "core/grad/tape.h"

#define G (k->g[0])

const weir_tensor *c_conj(calc *c, const weir_tensor *t)
{
  if (c->st || !is_complex(t)) return t;
  return c_call(c, weir_conj, t);
}

void as_real_back(rule_run *k)
{
  const weir_tensor *g = c_contiguous(k->c, G);
  give(k, 0, c_call(k->c, weir_view_as_complex, g));
}

void as_complex_back(rule_run *k)
{
  const weir_tensor *g = c_contiguous(k->c, G);
  give(k, 0, c_call(k->c, weir_view_as_real, g));
}
