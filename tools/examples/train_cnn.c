/* train_cnn.c: trains a small convolutional network to tell four patterns in noise apart, as one would in
 * PyTorch: AdamW, and a learning rate that goes up and down once (OneCycleLR).
 *   train_cnn [--device NAME] [--weights FILE] [--losses FILE.npy]
 * NAME: "cpu", "cuda:1"; without one, a GPU where there is one. --weights: first weights, else random ones.
 * --losses: that of each step. Data are made up, the same everywhere.
 * cc train_cnn.c $(pkg-config --cflags --libs weir) */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir.h>

#define TRY(call)                                                                                  \
  do {                                                                                             \
    weir_status st_ = (call);                                                                      \
    if (st_) return st_;                                                                           \
  } while (0)

enum { ITEMS = 256, SIDE = 8, CLASSES = 4, BATCH = 16, STEPS = 200 };

typedef struct arguments {
  weir_device device;
  const char *weights, *losses; /* files; NULL: none */
} arguments;

/* ---- data ------------------------------------------------------------------------------------- */

/* 16 bits (the generator of Numerical Recipes, section 7.1). */
static uint32_t next_bits(uint32_t *state)
{
  *state = *state * 1664525U + 1013904223U;
  return *state >> 8 & 0xffff;
}

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

/* x (ITEMS, 1, SIDE, SIDE), and the classes of its images, y (ITEMS), on the device. */
static weir_status make_data(weir_tensor **x, weir_tensor **y, weir_device device)
{
  static float in[ITEMS][SIDE][SIDE];
  static int64_t class[ITEMS];
  weir_options there = {.device = device};
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

/* ---- the model -------------------------------------------------------------------------------- */

static weir_status make_model(weir_module **out, const arguments *a)
{
  weir_layer_options same = {.conv = {.padding = {1, 1}}};
  weir_pool2d_options pool = {.kernel = {2, 2}};
  weir_module *layer[8];
  weir_manual_seed(0);
  TRY(weir_module_conv2d(&layer[0], 1, 4, 3, &same));
  TRY(weir_module_relu(&layer[1]));
  TRY(weir_module_max_pool2d(&layer[2], &pool));
  TRY(weir_module_conv2d(&layer[3], 4, 8, 3, &same));
  TRY(weir_module_relu(&layer[4]));
  TRY(weir_module_max_pool2d(&layer[5], &pool));
  TRY(weir_module_flatten(&layer[6], 1, -1));
  TRY(weir_module_linear(&layer[7], 8 * (SIDE / 4) * (SIDE / 4), CLASSES, NULL));
  TRY(weir_module_sequential(out, layer, 8)); /* steals the layers */
  if (a->weights) TRY(weir_module_load(*out, a->weights, true));
  return weir_module_to(*out, &(weir_options){.device = a->device});
}

/* And the schedule of its learning rate. */
static weir_status make_optimizer(weir_optimizer **out, weir_schedule **schedule,
                                  const weir_module *model)
{
  weir_schedule_options cycle = weir_schedule_defaults(WEIR_ONE_CYCLE_LR);
  weir_tensor **parameters;
  int count;
  cycle.max_lr = 0.01;
  cycle.total_steps = STEPS;
  TRY(weir_module_parameters(&parameters, &count, model));
  weir_status st = weir_optimizer_create(out, WEIR_ADAMW, parameters, count, NULL);
  free(parameters);
  return st ? st : weir_schedule_create(schedule, *out, WEIR_ONE_CYCLE_LR, &cycle);
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
  TRY(weir_cross_entropy(&loss, out, wanted, NULL));
  TRY(weir_backward(loss, NULL, false));
  TRY(weir_optimizer_step(optimizer));
  TRY(weir_item(&number, loss)); /* waits for the device */
  *value = number.f;
  return WEIR_OK;
}

static weir_status train_network(const arguments *a)
{
  WEIR_MODULE model = NULL;
  WEIR_OPTIMIZER optimizer = NULL;
  WEIR_SCHEDULE schedule = NULL;
  WEIR_TENSOR x = NULL;
  WEIR_TENSOR y = NULL;
  WEIR_TENSOR all = NULL;
  double losses[STEPS];
  TRY(make_data(&x, &y, a->device));
  TRY(make_model(&model, a));
  TRY(make_optimizer(&optimizer, &schedule, model));
  for (int i = 0; i < STEPS; i++) {
    TRY(train_batch(&losses[i], model, optimizer, x, y, (int64_t)i * BATCH % ITEMS));
    TRY(weir_schedule_step(schedule));
    if (i % 50 == 0 || i == STEPS - 1) printf("step %3d: loss %.3f\n", i, losses[i]);
  }
  if (a->losses) {
    TRY(weir_tensor_from(&all, losses, WEIR_FLOAT64, weir_shape(STEPS), NULL));
    TRY(weir_npy_write(a->losses, all));
  }
  bool learned = losses[STEPS - 1] < losses[0] / 4;
  printf("train_cnn: %s\n", learned ? "ok" : "wrong");
  return learned ? WEIR_OK : weir_fail(WEIR_EINTERNAL, "it has not learned");
}

static weir_status read_arguments(arguments *a, int argc, char **argv)
{
  a->device = weir_device_select(false);
  for (int i = 1; i < argc; i++) {
    const char *value = i + 1 < argc ? argv[i + 1] : NULL;
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
  arguments a = {.weights = NULL};
  weir_status st = read_arguments(&a, argc, argv);
  if (!st) st = train_network(&a);
  if (st) (void)fprintf(stderr, "train_cnn: %s\n", weir_error_message());
  return st != WEIR_OK;
}
