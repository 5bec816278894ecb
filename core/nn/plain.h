/* plain.h: layers that are a function of one tensor, or of a few, and its arguments: how plain.c,
 * activation.c, resize.c and loss.c make them. */
#ifndef WEIR_NN_PLAIN_H
#define WEIR_NN_PLAIN_H

#include <stdlib.h>
#include "core/nn/module.h"
#include "core/tensor/calc.h"

/* The arguments of such a layer, as far as it has them. */
typedef struct plain_data {
  double p;         /* a probability */
  double number[2]; /* an activation's, a loss's or a distance's, in torch's order */
  bool tanh;        /* GELU's approximate="tanh" */
  bool flag;        /* KLDivLoss's log_target, PairwiseDistance's keepdim */
  int dim, axes;
  int64_t factor, size[3];
  weir_shape shape;
  weir_pool_options pool;
  weir_reduction reduction;
  weir_class_options classes; /* their weight is a buffer, which a call puts here */
  weir_interpolate_options resize;
  int64_t padding[6]; /* before and after the last dimension, then the one before it, ... */
  weir_scalar value;  /* of ConstantPad */
} plain_data;

/* A layer with a copy of `bytes` at data, which is freed with it; of d. Errors: ENOMEM. */
weir_status layer_with(weir_module **out, const weir_module_class *kind, const void *data,
                       size_t bytes);
weir_status plain_layer(weir_module **out, const weir_module_class *kind, const plain_data *d);
/* A module of these, which are stolen. Errors: EINVAL, of `function`: one is NULL. */
weir_status layer_of_children(weir_module **out, const weir_module_class *kind,
                              weir_module *const *children, size_t count, const char *function);
/* "dim=1" of a plain_data. */
void dim_describe(char *out, size_t room, const weir_module *m);
/* Errors: EINVAL, it is not called with one tensor, or with `wanted`. */
weir_status plain_input(const weir_module *m, int count);
weir_status plain_inputs(const weir_module *m, int count, int wanted);

/* Weight and bias (outputs), uniform as torch's; fan_in: inputs of an output. Steals m where it
 * fails, and gives it to *out where it does not. */
weir_status layer_parameters(weir_module **out, weir_module *m, weir_shape weight, int64_t outputs,
                             double fan_in, const weir_options *tensor, bool no_bias);

/* A layer's forward: an expression of its input `x` and its data `d`; of plain_data. */
#define LAYER_FORWARD(type, name, ...)                                                             \
  static weir_status name##_forward(weir_tensor **out, weir_module *m, weir_tensor *const *in,     \
                                    int count)                                                     \
  {                                                                                                \
    const type *d = m->data;                                                                       \
    (void)d;                                                                                       \
    weir_status st = plain_input(m, count);                                                        \
    weir_tensor *x = st ? NULL : in[0];                                                            \
    return st ? st : (__VA_ARGS__);                                                                \
  }
#define PLAIN_FORWARD(name, ...) LAYER_FORWARD(plain_data, name, __VA_ARGS__)

/* The same of `wanted` inputs, `in`. */
#define PLAIN_FORWARD_OF(wanted, name, ...)                                                        \
  static weir_status name##_forward(weir_tensor **out, weir_module *m, weir_tensor *const *in,     \
                                    int count)                                                     \
  {                                                                                                \
    const plain_data *d = m->data;                                                                 \
    (void)d;                                                                                       \
    weir_status st = plain_inputs(m, count, wanted);                                               \
    return st ? st : (__VA_ARGS__);                                                                \
  }

#define PLAIN_CLASS(title, fn, text)                                                               \
  static const weir_module_class fn##_class = {                                                    \
      .name = title, .forward = fn##_forward, .destroy = free, .describe = text};

/* weir_module_NAME: its class, what describes it, its parameters, what it keeps, its forward. */
#define PLAIN(name, title, text, parameters, data, ...)                                            \
  PLAIN_FORWARD(name, __VA_ARGS__)                                                                 \
  PLAIN_MAKE(name, title, text, parameters, data)
#define PLAIN_OF(wanted, name, title, text, parameters, data, ...)                                 \
  PLAIN_FORWARD_OF(wanted, name, __VA_ARGS__)                                                      \
  PLAIN_MAKE(name, title, text, parameters, data)
#define PLAIN_MAKE(name, title, text, parameters, ...)                                             \
  PLAIN_CLASS(title, name, text)                                                                   \
  weir_status weir_module_##name parameters                                                        \
  {                                                                                                \
    WEIR_REQUIRE_OUT(out);                                                                         \
    return plain_layer(out, &name##_class, &(plain_data)__VA_ARGS__);                              \
  }
#define DATA(...)                                                                                  \
  {                                                                                                \
    __VA_ARGS__                                                                                    \
  }

#endif
