/* training.h: what the examples that train share: arguments, data, a step, the loop over STEPS of
 * them. A program's `trainee` has its data, model, optimizer and loss.
 *   PROGRAM [--device NAME] [--devices N] [--batch N] [--weights FILE] [--losses FILE.npy]
 *           [--memory]
 * NAME: "cpu", "cuda:1"; without one, a GPU where there is one. --devices: N GPUs from the first
 * on, each with a part of every batch. --batch: items of a step, a divisor of how many there are.
 * --weights: first weights, else random ones. --losses: that of each step. --memory: prints the
 * most bytes that tensors had on the GPU in a step. */
#ifndef WEIR_TOOLS_EXAMPLES_TRAINING_H
#define WEIR_TOOLS_EXAMPLES_TRAINING_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir.h>
#include "try.h"
#include "usage.h"

enum { STEPS = 200, MOST_DEVICES = 64 };

typedef struct training_arguments {
  weir_device device;
  int devices;   /* 0: `device` alone */
  int64_t batch; /* items of a step; 0: the program's */
  bool adam, memory;
  const char *weights, *losses, *text; /* files; NULL: none */
} training_arguments;

typedef struct trainee {
  const char *name;   /* of the program */
  const char *own[2]; /* further arguments: "--adam", "--text" */
  int64_t batch;      /* items of a step; there are a multiple of it */
  double max_norm;    /* of the gradients; 0: as they are */
  double learned;     /* the last loss is at most this part of the first */
  /* *x and *y are new: items along dimension 0, what is to be made of them. */
  weir_status (*data)(weir_tensor **x, weir_tensor **y, const training_arguments *a);
  weir_status (*model)(weir_module **out);
  /* *schedule may stay NULL. */
  weir_status (*optimizer)(weir_optimizer **out, weir_schedule **schedule,
                           weir_tensor *const *parameters, int count, const training_arguments *a);
  weir_status (*loss)(weir_tensor **out, const weir_tensor *result, const weir_tensor *wanted);
} trainee;

/* What a run has: all owned. */
typedef struct training {
  weir_tensor *x, *y;
  weir_module *model; /* what is called: with --devices a DataParallel */
  weir_optimizer *optimizer;
  weir_schedule *schedule; /* NULL: the learning rate stays */
  weir_tensor **parameters;
  int count; /* of parameters */
} training;

/* ---- data ------------------------------------------------------------------------------------ */

/* 16 bits of made-up data, the same everywhere (the generator of Numerical Recipes, section
 * 7.1). */
static inline uint32_t next_bits(uint32_t *state)
{
  *state = *state * 1664525U + 1013904223U;
  return *state >> 8 & 0xffff;
}

/* ---- arguments ------------------------------------------------------------------------------- */

/* Whether it is one that the program has. */
static inline bool has_argument(const trainee *p, const char *argument)
{
  for (int i = 0; i < 2; i++)
    if (p->own[i] && !strcmp(p->own[i], argument)) return true;
  return false;
}

static inline weir_status read_value(training_arguments *a, const trainee *p, const char *name,
                                     const char *value)
{
  char *end = NULL;
  if (!value) return weir_fail(WEIR_EINVAL, "%s is no argument, or has no value", name);
  if (!strcmp(name, "--device")) return weir_device_parse(&a->device, value);
  if (!strcmp(name, "--devices")) {
    a->devices = (int)strtol(value, &end, 10);
    bool good = *value && !*end && a->devices > 0 && a->devices <= MOST_DEVICES;
    return good ? WEIR_OK : weir_fail(WEIR_EINVAL, "--devices %s: not from 1 to 64", value);
  }
  if (!strcmp(name, "--batch")) {
    a->batch = strtoll(value, &end, 10);
    return *value && !*end && a->batch > 0
               ? WEIR_OK
               : weir_fail(WEIR_EINVAL, "--batch %s: not 1 or more", value);
  }
  if (!strcmp(name, "--weights"))
    a->weights = value;
  else if (!strcmp(name, "--losses"))
    a->losses = value;
  else if (has_argument(p, name) && !strcmp(name, "--text"))
    a->text = value;
  else
    return weir_fail(WEIR_EINVAL, "%s is no argument", name);
  return WEIR_OK;
}

static inline weir_status read_arguments(training_arguments *a, const trainee *p, int argc,
                                         char **argv)
{
  a->device = weir_device_select(false);
  for (int i = 1; i < argc; i++) {
    if (!strcmp(argv[i], "--memory"))
      a->memory = true;
    else if (has_argument(p, argv[i]) && !strcmp(argv[i], "--adam"))
      a->adam = true;
    else
      TRY(read_value(a, p, argv[i], i + 1 < argc ? argv[i + 1] : NULL));
    bool alone = !strcmp(argv[i], "--memory") || !strcmp(argv[i], "--adam");
    i += !alone;
  }
  if (a->devices) a->device = WEIR_CUDA_AT(0);
  return WEIR_OK;
}

/* ---- what a run has -------------------------------------------------------------------------- */

static inline void end_training(training *t)
{
  weir_schedule_release(t->schedule);
  weir_optimizer_release(t->optimizer);
  weir_module_release(t->model);
  weir_tensor_release(t->x);
  weir_tensor_release(t->y);
  free(t->parameters);
}

static inline weir_status begin_training(training *t, const trainee *p, const training_arguments *a)
{
  weir_options there = {.device = a->device};
  weir_parallel_options parts = {.devices = a->devices};
  int ids[MOST_DEVICES];
  weir_module *parallel;
  weir_manual_seed(0);
  TRY(p->data(&t->x, &t->y, a));
  TRY(p->model(&t->model));
  if (a->weights) TRY(weir_module_load(t->model, a->weights, true));
  TRY(weir_module_to(t->model, &there));
  TRY(weir_module_parameters(&t->parameters, &t->count, t->model));
  TRY(p->optimizer(&t->optimizer, &t->schedule, t->parameters, t->count, a));
  if (!a->devices) return WEIR_OK;
  for (int i = 0; i < a->devices; i++)
    ids[i] = i;
  parts.device_ids = ids;
  TRY(weir_data_parallel(&parallel, t->model, &parts));
  weir_module_release(t->model);
  t->model = parallel;
  return WEIR_OK;
}

/* ---- training -------------------------------------------------------------------------------- */

/* One step with the items from `first` on; *value is the loss before it. */
static inline weir_status train_batch(double *value, const training *t, const trainee *p,
                                      int64_t first, int64_t batch)
{
  WEIR_TENSOR in = NULL;
  WEIR_TENSOR wanted = NULL;
  WEIR_TENSOR out = NULL;
  WEIR_TENSOR loss = NULL;
  weir_scalar number;
  TRY(weir_narrow(&in, t->x, 0, first, batch));
  TRY(weir_narrow(&wanted, t->y, 0, first, batch));
  weir_optimizer_zero_grad(t->optimizer);
  TRY(weir_module_call(&out, t->model, in));
  TRY(p->loss(&loss, out, wanted));
  TRY(weir_backward(loss, NULL, false));
  if (p->max_norm > 0) TRY(weir_clip_grad_norm_(NULL, t->parameters, t->count, p->max_norm, 2));
  TRY(weir_optimizer_step(t->optimizer));
  if (t->schedule) TRY(weir_schedule_step(t->schedule));
  TRY(weir_item(&number, loss)); /* waits for the device */
  *value = number.f;
  return WEIR_OK;
}

/* losses: room for STEPS. */
static inline weir_status train_steps(double *losses, const training *t, const trainee *p,
                                      const training_arguments *a)
{
  int64_t items = weir_tensor_size(t->x, 0), batch = a->batch ? a->batch : p->batch;
  for (int i = 0; i < STEPS; i++) {
    if (a->memory && i == STEPS - 1) TRY(weir_memory_reset_peak(a->device));
    TRY(train_batch(&losses[i], t, p, (int64_t)i * batch % items, batch));
    if (i % 50 == 0 || i == STEPS - 1) printf("step %3d: loss %.2f\n", i, losses[i]);
  }
  if (a->memory)
    printf("memory: at most %llu bytes in a step\n",
           (unsigned long long)weir_max_memory_allocated(a->device));
  return WEIR_OK;
}

static inline weir_status train_and_save(const training *t, const trainee *p,
                                         const training_arguments *a)
{
  WEIR_TENSOR all = NULL;
  double losses[STEPS];
  TRY(train_steps(losses, t, p, a));
  if (a->losses) {
    TRY(weir_tensor_from(&all, losses, WEIR_FLOAT64, weir_shape(STEPS), NULL));
    TRY(weir_npy_write(a->losses, all));
  }
  bool learned = losses[STEPS - 1] < losses[0] * p->learned;
  printf("%s: %s\n", p->name, learned ? "ok" : "wrong");
  return learned ? WEIR_OK : weir_fail(WEIR_EINTERNAL, "it has not learned");
}

/* What main() returns. */
static inline int run_training(const trainee *p, int argc, char **argv)
{
  const char *options[] = {"--device", "--devices", "--batch", "--weights", "--losses",
                           "--memory", p->own[0],   p->own[1], NULL};
  char arguments[160];
  (void)snprintf(arguments, sizeof arguments,
                 "[--device NAME] [--devices N] [--batch N] [--weights FILE] [--losses FILE] "
                 "[--memory]%s%s",
                 has_argument(p, "--adam") ? " [--adam]" : "",
                 has_argument(p, "--text") ? " [--text FILE]" : "");
  int usage = answer_usage(argc, argv, p->name, arguments, options);
  if (usage != GO_ON) return usage;
  training_arguments a = {.devices = 0};
  training t = {.count = 0};
  weir_status st = read_arguments(&a, p, argc, argv);
  if (!st) st = begin_training(&t, p, &a);
  if (!st) st = train_and_save(&t, p, &a);
  if (st) (void)fprintf(stderr, "%s: %s\n", p->name, weir_error_message());
  end_training(&t);
  return st != WEIR_OK;
}

#endif
