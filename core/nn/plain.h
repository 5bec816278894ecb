/* plain.h: layers that are a function of one tensor, and its arguments: how plain.c and activation.c
 * make them. */
#ifndef WEIR_NN_PLAIN_H
#define WEIR_NN_PLAIN_H

#include <stdlib.h>
#include "core/nn/module.h"
#include "core/weir/layers.h"

/* The arguments of such a layer, as far as it has them. */
typedef struct plain_data {
  double p;         /* a probability */
  double number[2]; /* an activation's, in torch's order */
  bool tanh;        /* GELU's approximate="tanh" */
  int dim, axes;
  int64_t factor, size[3];
  weir_shape shape;
  weir_pool_options pool;
} plain_data;

/* A layer with a copy of d. Errors: ENOMEM. */
weir_status plain_layer(weir_module **out, const weir_module_class *kind, const plain_data *d);
/* Errors: EINVAL, it is not called with one tensor. */
weir_status plain_input(const weir_module *m, int count);

/* Weight and bias (outputs), uniform as torch's; fan_in: inputs of an output. Steals m where it fails,
 * and gives it to *out where it does not. */
weir_status layer_parameters(weir_module **out, weir_module *m, weir_shape weight, int64_t outputs,
                             double fan_in, const weir_options *tensor, bool no_bias);

/* A layer's forward: an expression of its input `x` and its arguments `d`. */
#define PLAIN_FORWARD(name, ...)                                                                   \
  static weir_status name##_forward(weir_tensor **out, weir_module *m, weir_tensor *const *in,     \
                                    int count)                                                     \
  {                                                                                                \
    const plain_data *d = m->data;                                                                 \
    (void)d;                                                                                       \
    weir_status st = plain_input(m, count);                                                        \
    weir_tensor *x = st ? NULL : in[0];                                                            \
    return st ? st : (__VA_ARGS__);                                                                \
  }

#define PLAIN_CLASS(title, fn, text)                                                               \
  static const weir_module_class fn##_class = {                                                    \
      .name = title, .forward = fn##_forward, .destroy = free, .describe = text};

/* weir_module_NAME: its class, what describes it, its parameters, what it keeps, its forward. */
#define PLAIN(name, title, text, parameters, data, ...)                                            \
  PLAIN_FORWARD(name, __VA_ARGS__)                                                                 \
  PLAIN_CLASS(title, name, text)                                                                   \
  weir_status weir_module_##name parameters                                                        \
  {                                                                                                \
    WEIR_REQUIRE_OUT(out);                                                                         \
    return plain_layer(out, &name##_class, &(plain_data)data);                                     \
  }
#define DATA(...)                                                                                  \
  {                                                                                                \
    __VA_ARGS__                                                                                    \
  }

#endif
