/* update.h: what an optimizer's step does with one element: weir_update.
 *
 * The formulas of torch.optim (2.15, one tensor at a time), in its order of operations, calculated
 * in float32 or float64. Compiles as C, C++ and CUDA C++. What is the same for all elements has
 * been worked out in double and stands in update_NAME, rounded once; conditions that are the same
 * for all choose between values, so that a loop over elements vectorises. */
#ifndef WEIR_BACKEND_UPDATE_H
#define WEIR_BACKEND_UPDATE_H

#include <math.h>
#include "core/backend/compute.h"
#include "core/backend/half.h"

/* M: float, double. `decay`: of the gradient; `shrink`: what a parameter is multiplied by first. */
#define WEIR_UPDATE_TYPES(M, name, root_of)                                                        \
  typedef struct update_##name {                                                                   \
    M sign, decay, shrink, step, momentum, fresh;                                                  \
    M beta1, rest1, beta2, rest2, root, eps;                                                       \
    bool decays, shrinks, gathers, first, nesterov, most, centered;                                \
  } update_##name;                                                                                 \
                                                                                                   \
  WEIR_HD update_##name update_numbers_##name(const weir_update *u)                                \
  {                                                                                                \
    update_##name n;                                                                               \
    bool apart = u->decoupled && u->weight_decay != 0;                                             \
    n.sign = (M)(u->maximize ? -1 : 1);                                                            \
    n.decay = (M)u->weight_decay;                                                                  \
    n.shrink = (M)(1 - u->lr * u->weight_decay);                                                   \
    n.step = (M)-u->step;                                                                          \
    n.momentum = (M)u->momentum;                                                                   \
    n.fresh = (M)(1 - u->dampening);                                                               \
    n.beta1 = (M)u->beta1;                                                                         \
    n.rest1 = (M)(1 - u->beta1);                                                                   \
    n.beta2 = (M)u->beta2;                                                                         \
    n.rest2 = (M)(1 - u->beta2);                                                                   \
    n.root = (M)u->root;                                                                           \
    n.eps = (M)u->eps;                                                                             \
    n.shrinks = apart;                                                                             \
    n.decays = !apart && u->weight_decay != 0;                                                     \
    n.gathers = u->momentum != 0;                                                                  \
    n.first = u->first;                                                                            \
    n.nesterov = u->nesterov;                                                                      \
    n.most = u->amsgrad;                                                                           \
    n.centered = u->centered;                                                                      \
    return n;                                                                                      \
  }                                                                                                \
                                                                                                   \
  /* a: momentum */                                                                                \
  WEIR_HD void update_sgd_##name(const update_##name *n, M *p, M g, M *a, M *b, M *c)              \
  {                                                                                                \
    (void)b, (void)c;                                                                              \
    g = g * n->sign;                                                                               \
    g = n->decays ? g + n->decay * *p : g;                                                         \
    M gathered = n->first ? g : *a * n->momentum + n->fresh * g;                                   \
    M ahead = n->nesterov ? g + n->momentum * gathered : gathered;                                 \
    *a = gathered;                                                                                 \
    *p = *p + n->step * (n->gathers ? ahead : g);                                                  \
  }                                                                                                \
                                                                                                   \
  /* a, b: the moments; c: the largest of b */                                                     \
  WEIR_HD void update_adam_##name(const update_##name *n, M *p, M g, M *a, M *b, M *c)             \
  {                                                                                                \
    M x = n->shrinks ? *p * n->shrink : *p;                                                        \
    g = g * n->sign;                                                                               \
    g = n->decays ? g + n->decay * x : g;                                                          \
    M mean = *a + n->rest1 * (g - *a), square = *b * n->beta2 + n->rest2 * g * g;                  \
    M most = *c > square ? *c : square;                                                            \
    *a = mean;                                                                                     \
    *b = square;                                                                                   \
    *c = most;                                                                                     \
    *p = x + n->step * mean / (root_of(n->most ? most : square) / n->root + n->eps);               \
  }                                                                                                \
                                                                                                   \
  /* a: squares; b: momentum; c: the mean of gradients */                                          \
  WEIR_HD void update_rmsprop_##name(const update_##name *n, M *p, M g, M *a, M *b, M *c)          \
  {                                                                                                \
    g = g * n->sign;                                                                               \
    g = n->decays ? g + n->decay * *p : g;                                                         \
    M square = *a * n->beta2 + n->rest2 * g * g, mean = *c + n->rest2 * (g - *c);                  \
    M root = root_of(n->centered ? square - mean * mean : square) + n->eps;                        \
    M gathered = *b * n->momentum + g / root;                                                      \
    *a = square;                                                                                   \
    *b = gathered;                                                                                 \
    *c = mean;                                                                                     \
    *p = *p + (n->gathers ? n->step * gathered : n->step * g / root);                              \
  }                                                                                                \
                                                                                                   \
  /* a: the sum of squares */                                                                      \
  WEIR_HD void update_adagrad_##name(const update_##name *n, M *p, M g, M *a, M *b, M *c)          \
  {                                                                                                \
    (void)b, (void)c;                                                                              \
    g = g * n->sign;                                                                               \
    g = n->decays ? g + n->decay * *p : g;                                                         \
    M sum = *a + g * g;                                                                            \
    *a = sum;                                                                                      \
    *p = *p + n->step * g / (root_of(sum) + n->eps);                                               \
  }

WEIR_UPDATE_TYPES(float, float, sqrtf)
WEIR_UPDATE_TYPES(double, double, sqrt)
#undef WEIR_UPDATE_TYPES

#endif
