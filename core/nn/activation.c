/* activation.c: activations as layers: a row each, of the function and what it keeps of torch's
 * arguments; and PReLU, whose slopes are a parameter. */
#include <string.h>
#include "core/nn/plain.h"
#include "core/nn/text.h"

/* ---- without arguments ----------------------------------------------------------------------- */

#define ACTIVATION(name, title)                                                                    \
  PLAIN(name, title, NULL, (weir_module * *out), DATA(.dim = 0), weir_##name(out, x))
WEIR_PLAIN_ACTIVATIONS(ACTIVATION)

/* ---- with numbers ---------------------------------------------------------------------------- */

/* Both names NULL: the number alone; the second NULL: there is one. */
static void numbers_describe(char *out, size_t room, const plain_data *d, const char *first,
                             const char *second)
{
  layer_text a, b;
  (void)snprintf(out, room, "%s%s%s%s%s%s", first ? first : "", first ? "=" : "",
                 float_text(&a, d->number[0]), second ? ", " : "", second ? second : "",
                 second ? "=" : "");
  if (second) strncat(out, float_text(&b, d->number[1]), room - strlen(out) - 1);
}

#define NUMBERS_TEXT(name, first, second)                                                          \
  static void name##_text(char *out, size_t room, const weir_module *m)                            \
  {                                                                                                \
    numbers_describe(out, room, m->data, first, second);                                           \
  }
#define ONE_NUMBER(name, title, label, argument)                                                   \
  NUMBERS_TEXT(name, label, NULL)                                                                  \
  PLAIN(name, title, name##_text, (weir_module * *out, double argument),                           \
        DATA(.number = {argument}), weir_##name(out, x, d->number[0]))
#define TWO_NUMBERS(name, title, one, two)                                                         \
  NUMBERS_TEXT(name, #one, #two)                                                                   \
  PLAIN(name, title, name##_text, (weir_module * *out, double one, double two),                    \
        DATA(.number = {one, two}), weir_##name(out, x, d->number[0], d->number[1]))
ONE_NUMBER(leaky_relu, "LeakyReLU", "negative_slope", negative_slope)
ONE_NUMBER(elu, "ELU", "alpha", alpha)
ONE_NUMBER(celu, "CELU", "alpha", alpha)
ONE_NUMBER(softshrink, "Softshrink", NULL, lambd)
ONE_NUMBER(hardshrink, "Hardshrink", NULL, lambd)
TWO_NUMBERS(softplus, "Softplus", beta, threshold)
TWO_NUMBERS(hardtanh, "Hardtanh", min_val, max_val)
TWO_NUMBERS(threshold, "Threshold", threshold, value)

/* ---- GELU, GLU ------------------------------------------------------------------------------- */

static const char *approximation(const plain_data *d)
{
  return d->tanh ? "tanh" : "none";
}

static void gelu_text(char *out, size_t room, const weir_module *m)
{
  (void)snprintf(out, room, "approximate='%s'", approximation(m->data));
}

PLAIN_FORWARD(gelu, weir_gelu(out, x, approximation(d)))
PLAIN_CLASS("GELU", gelu, gelu_text)

weir_status weir_module_gelu(weir_module **out, const char *approximate)
{
  WEIR_REQUIRE_OUT(out, approximate);
  bool tanh = !strcmp(approximate, "tanh");
  if (!tanh && strcmp(approximate, "none") != 0)
    return fail_invalid("approximate argument must be either none or tanh.");
  return plain_layer(out, &gelu_class, &(plain_data){.tanh = tanh});
}

PLAIN(glu, "GLU", dim_describe, (weir_module * *out, int dim), DATA(.dim = dim),
      weir_glu(out, x, d->dim))

/* ---- PReLU ----------------------------------------------------------------------------------- */

LAYER_FORWARD(void, prelu, weir_prelu(out, x, m->slot[0].t))

static void prelu_text(char *out, size_t room, const weir_module *m)
{
  (void)snprintf(out, room, "num_parameters=%" PRId64, weir_tensor_numel(m->slot[0].t));
}

weir_status weir_module_prelu(weir_module **out, int64_t num_parameters, double init,
                              const weir_options *options)
{
  WEIR_REQUIRE_OUT(out);
  static const weir_module_class kind = {
      .name = "PReLU", .forward = prelu_forward, .describe = prelu_text};
  weir_options o = options ? *options : (weir_options){0};
  weir_tensor *slopes;
  WEIR_MODULE m = NULL;
  if (!o.dtype) o.dtype = weir_get_default_dtype();
  weir_status st = weir_full(&slopes, weir_shape(num_parameters), weir_float(init), &o);
  if (!st && (st = weir_module_new(&m, &kind, NULL))) weir_tensor_release(slopes);
  if (!st) st = weir_module_add_parameter(m, "weight", slopes);
  if (!st) *out = weir_module_retain(m);
  return st;
}
