/* train_mlp.c: trains a perceptron of three layers to follow a function of eight numbers, as one would in
 * PyTorch: a module, a loss, gradients, an optimizer.
 *   train_mlp [--device NAME] [--adam] [--weights FILE] [--losses FILE.npy]
 * NAME: "cpu", "cuda:1"; without one, a GPU where there is one. --weights: first weights, else random ones.
 * --losses: that of each step. Data are made up, the same everywhere.
 * cc train_mlp.c $(pkg-config --cflags --libs weir) */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir.h>

#define TRY(call)                                                                                  \
  do {                                                                                             \
    weir_status st_ = (call);                                                                      \
    if (st_) return st_;                                                                           \
  } while (0)

enum { ITEMS = 256, FEATURES = 8, BATCH = 32, STEPS = 200 };

typedef struct arguments {
  weir_device device;
  bool adam;
  const char *weights, *losses; /* files; NULL: none */
} arguments;

/* ---- data ------------------------------------------------------------------------------------- */

/* From -1 to 1, in steps of 1 / 32768 (the generator of Numerical Recipes, section 7.1). */
static double next_number(uint32_t *state)
{
  *state = *state * 1664525U + 1013904223U;
  return (double)(*state >> 8 & 0xffff) / 32768 - 1;
}

/* x (ITEMS, FEATURES) and what is to be made of it, y (ITEMS, 1), on the device. */
static weir_status make_data(weir_tensor **x, weir_tensor **y, weir_device device)
{
  static float in[ITEMS][FEATURES], out[ITEMS];
  weir_options there = {.device = device};
  uint32_t state = 1;
  for (int i = 0; i < ITEMS; i++) {
    double v[FEATURES];
    for (int k = 0; k < FEATURES; k++)
      in[i][k] = (float)(v[k] = next_number(&state));
    out[i] = (float)(v[0] * v[1] + v[2] * v[2] - v[3] / 2);
  }
  TRY(weir_tensor_from(x, in, WEIR_FLOAT32, weir_shape(ITEMS, FEATURES), &there));
  return weir_tensor_from(y, out, WEIR_FLOAT32, weir_shape(ITEMS, 1), &there);
}

/* ---- the model -------------------------------------------------------------------------------- */

static weir_status make_model(weir_module **out, const arguments *a)
{
  weir_module *layer[5];
  weir_manual_seed(0);
  TRY(weir_module_linear(&layer[0], FEATURES, 32, NULL));
  TRY(weir_module_relu(&layer[1]));
  TRY(weir_module_linear(&layer[2], 32, 32, NULL));
  TRY(weir_module_tanh(&layer[3]));
  TRY(weir_module_linear(&layer[4], 32, 1, NULL));
  TRY(weir_module_sequential(out, layer, 5)); /* steals the layers */
  if (a->weights) TRY(weir_module_load(*out, a->weights, true));
  return weir_module_to(*out, &(weir_options){.device = a->device});
}

static weir_status make_optimizer(weir_optimizer **out, const weir_module *model, bool adam)
{
  weir_optim kind = adam ? WEIR_ADAM : WEIR_SGD;
  weir_optim_options o = weir_optim_defaults(kind);
  weir_tensor **parameters;
  int count;
  o.lr = adam ? 0.003 : 0.05;
  if (!adam) o.momentum = 0.9;
  TRY(weir_module_parameters(&parameters, &count, model));
  weir_status st = weir_optimizer_create(out, kind, parameters, count, &o);
  free(parameters);
  return st;
}

/* ---- training --------------------------------------------------------------------------------- */

/* One step with the rows from `first` on; *value is the loss before it. */
static weir_status train_batch(double *value, weir_module *model, weir_optimizer *optimizer,
                               const weir_tensor *x, const weir_tensor *y, int64_t first)
{
  WEIR_TENSOR in = NULL;
  WEIR_TENSOR wanted = NULL;
  WEIR_TENSOR out = NULL;
  WEIR_TENSOR loss = NULL;
  weir_scalar number;
  TRY(weir_narrow(&in, x, 0, first, BATCH));
  TRY(weir_narrow(&wanted, y, 0, first, BATCH));
  weir_optimizer_zero_grad(optimizer);
  TRY(weir_module_call(&out, model, in));
  TRY(weir_mse_loss(&loss, out, wanted, WEIR_REDUCTION_MEAN));
  TRY(weir_backward(loss, NULL, false));
  TRY(weir_optimizer_step(optimizer));
  TRY(weir_item(&number, loss)); /* waits for the device */
  *value = number.f;
  return WEIR_OK;
}

static weir_status train_perceptron(const arguments *a)
{
  WEIR_MODULE model = NULL;
  WEIR_OPTIMIZER optimizer = NULL;
  WEIR_TENSOR x = NULL;
  WEIR_TENSOR y = NULL;
  WEIR_TENSOR all = NULL;
  double losses[STEPS];
  TRY(make_data(&x, &y, a->device));
  TRY(make_model(&model, a));
  TRY(make_optimizer(&optimizer, model, a->adam));
  for (int i = 0; i < STEPS; i++) {
    TRY(train_batch(&losses[i], model, optimizer, x, y, (int64_t)i * BATCH % ITEMS));
    if (i % 50 == 0 || i == STEPS - 1) printf("step %3d: loss %.3f\n", i, losses[i]);
  }
  if (a->losses) {
    TRY(weir_tensor_from(&all, losses, WEIR_FLOAT64, weir_shape(STEPS), NULL));
    TRY(weir_npy_write(a->losses, all));
  }
  bool learned = losses[STEPS - 1] < losses[0] / 4;
  printf("train_mlp: %s\n", learned ? "ok" : "wrong");
  return learned ? WEIR_OK : weir_fail(WEIR_EINTERNAL, "it has not learned");
}

static weir_status read_arguments(arguments *a, int argc, char **argv)
{
  a->device = weir_device_select(false);
  for (int i = 1; i < argc; i++) {
    const char *value = i + 1 < argc ? argv[i + 1] : NULL;
    if (!strcmp(argv[i], "--adam")) {
      a->adam = true;
      continue;
    }
    if (value && !strcmp(argv[i], "--device"))
      TRY(weir_device_parse(&a->device, value));
    else if (value && !strcmp(argv[i], "--weights"))
      a->weights = value;
    else if (value && !strcmp(argv[i], "--losses"))
      a->losses = value;
    else
      return weir_fail(WEIR_EINVAL, "%s is no argument, or has no value", argv[i]);
    i++;
  }
  return WEIR_OK;
}

int main(int argc, char **argv)
{
  arguments a = {.adam = false};
  weir_status st = read_arguments(&a, argc, argv);
  if (!st) st = train_perceptron(&a);
  if (st) (void)fprintf(stderr, "train_mlp: %s\n", weir_error_message());
  return st != WEIR_OK;
}
