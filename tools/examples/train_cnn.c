/* train_cnn.c: trains a small convolutional network to distinguish four patterns in noise, as one
 * would in PyTorch: AdamW, and a learning rate that goes up and down once (OneCycleLR).
 *   train_cnn [--device NAME] [--devices N] [--weights FILE] [--losses FILE.npy] [--memory]
 * Arguments, the loop and a step stand in training.h. Data are made up, the same everywhere.
 * cc train_cnn.c $(pkg-config --cflags --libs weir), with training.h, try.h */
#include "training.h"

enum { ITEMS = 256, SIDE = 8, CLASSES = 4 };

/* ---- data ------------------------------------------------------------------------------------ */

/* Lines, columns, diagonals, single points. */
static bool is_bright(int64_t class, int row, int column)
{
  switch (class) {
  case 0:
    return row % 3 == 0;
  case 1:
    return column % 3 == 0;
  case 2:
    return (row + column) % 3 == 0;
  default:
    return row % 3 == 0 && column % 3 == 0;
  }
}

/* x (ITEMS, 1, SIDE, SIDE), and the classes of its images, y (ITEMS). */
static weir_status make_images(weir_tensor **x, weir_tensor **y, const training_arguments *a)
{
  static float in[ITEMS][SIDE][SIDE];
  static int64_t class[ITEMS];
  weir_options there = {.device = a->device};
  uint32_t state = 1;
  for (int i = 0; i < ITEMS; i++) {
    class[i] = next_bits(&state) % CLASSES;
    for (int row = 0; row < SIDE; row++)
      for (int column = 0; column < SIDE; column++)
        in[i][row][column] =
            (float)next_bits(&state) / 32768 + (is_bright(class[i], row, column) ? 1.0F : 0.0F);
  }
  TRY(weir_tensor_from(x, in, WEIR_FLOAT32, weir_shape(ITEMS, 1, SIDE, SIDE), &there));
  return weir_tensor_from(y, class, WEIR_INT64, weir_shape(ITEMS), &there);
}

/* ---- what is trained, how -------------------------------------------------------------------- */

static weir_status make_network(weir_module **out)
{
  weir_layer_options same = {.conv = {.padding = {1, 1}}};
  weir_pool2d_options pool = {.kernel = {2, 2}};
  weir_module *layer[8];
  TRY(weir_module_conv2d(&layer[0], 1, 4, 3, &same));
  TRY(weir_module_relu(&layer[1]));
  TRY(weir_module_max_pool2d(&layer[2], &pool));
  TRY(weir_module_conv2d(&layer[3], 4, 8, 3, &same));
  TRY(weir_module_relu(&layer[4]));
  TRY(weir_module_max_pool2d(&layer[5], &pool));
  TRY(weir_module_flatten(&layer[6], 1, -1));
  TRY(weir_module_linear(&layer[7], 8 * (SIDE / 4) * (SIDE / 4), CLASSES, NULL));
  return weir_module_sequential(out, layer, 8); /* steals the layers */
}

static weir_status make_adamw(weir_optimizer **out, weir_schedule **schedule,
                              weir_tensor *const *parameters, int count,
                              const training_arguments *a)
{
  weir_schedule_options cycle = weir_schedule_defaults(WEIR_ONE_CYCLE_LR);
  (void)a;
  cycle.max_lr = 0.01;
  cycle.total_steps = STEPS;
  TRY(weir_optimizer_create(out, WEIR_ADAMW, parameters, count, NULL));
  return weir_schedule_create(schedule, *out, WEIR_ONE_CYCLE_LR, &cycle);
}

static weir_status cross_entropy(weir_tensor **out, const weir_tensor *result,
                                 const weir_tensor *wanted)
{
  return weir_cross_entropy(out, result, wanted, NULL);
}

int main(int argc, char **argv)
{
  static const trainee network = {.name = "train_cnn",
                                  .batch = 16,
                                  .learned = 0.25,
                                  .data = make_images,
                                  .model = make_network,
                                  .optimizer = make_adamw,
                                  .loss = cross_entropy};
  return run_training(&network, argc, argv);
}
