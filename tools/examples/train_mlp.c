/* train_mlp.c: trains a perceptron of three layers to follow a function of eight numbers, as one
 * would in PyTorch: a module, a loss, gradients, an optimizer.
 *   train_mlp [--adam] [--device NAME] [--devices N] [--weights FILE] [--losses FILE.npy]
 *             [--memory]
 * Other arguments than --adam (else SGD), the loop and a step stand in training.h. Data are made
 * up, the same everywhere.
 * cc train_mlp.c $(pkg-config --cflags --libs weir), with training.h, try.h */
#include "training.h"

enum { ITEMS = 256, FEATURES = 8 };

/* From -1 to 1, in steps of 1 / 32768. */
static double next_number(uint32_t *state)
{
  return (double)next_bits(state) / 32768 - 1;
}

/* x (ITEMS, FEATURES) and what is to be made of it, y (ITEMS, 1). */
static weir_status make_numbers(weir_tensor **x, weir_tensor **y, const training_arguments *a)
{
  static float in[ITEMS][FEATURES], out[ITEMS];
  weir_options there = {.device = a->device};
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

static weir_status make_perceptron(weir_module **out)
{
  weir_module *layer[5];
  TRY(weir_module_linear(&layer[0], FEATURES, 32, NULL));
  TRY(weir_module_relu(&layer[1]));
  TRY(weir_module_linear(&layer[2], 32, 32, NULL));
  TRY(weir_module_tanh(&layer[3]));
  TRY(weir_module_linear(&layer[4], 32, 1, NULL));
  return weir_module_sequential(out, layer, 5); /* steals the layers */
}

static weir_status make_optimizer(weir_optimizer **out, weir_schedule **schedule,
                                  weir_tensor *const *parameters, int count,
                                  const training_arguments *a)
{
  weir_optim kind = a->adam ? WEIR_ADAM : WEIR_SGD;
  weir_optim_options o = weir_optim_defaults(kind);
  (void)schedule;
  o.lr = a->adam ? 0.003 : 0.05;
  if (!a->adam) o.momentum = 0.9;
  return weir_optimizer_create(out, kind, parameters, count, &o);
}

static weir_status mean_square(weir_tensor **out, const weir_tensor *result,
                               const weir_tensor *wanted)
{
  return weir_mse_loss(out, result, wanted, WEIR_REDUCTION_MEAN);
}

int main(int argc, char **argv)
{
  static const trainee perceptron = {.name = "train_mlp",
                                     .own = {"--adam"},
                                     .batch = 32,
                                     .learned = 0.25,
                                     .data = make_numbers,
                                     .model = make_perceptron,
                                     .optimizer = make_optimizer,
                                     .loss = mean_square};
  return run_training(&perceptron, argc, argv);
}
