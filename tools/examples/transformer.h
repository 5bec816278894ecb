/* transformer.h: what the transformers among the examples share: arguments, parameters, what is
 * read from files and written to them. */
#ifndef WEIR_TOOLS_EXAMPLES_TRANSFORMER_H
#define WEIR_TOOLS_EXAMPLES_TRANSFORMER_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weir.h>
#include "try.h"
#include "usage.h"

typedef struct model_size {
  int64_t layers, features, heads, vocabulary, places;
} model_size;

/* The child `name` of m is called with *x, which becomes the result. */
static inline weir_status run_child(weir_module *m, const char *name, weir_tensor **x)
{
  weir_tensor *y;
  TRY(weir_module_call(&y, weir_module_child(m, name), *x));
  weir_tensor_release(*x);
  *x = y;
  return WEIR_OK;
}

static inline weir_status add_embedding(weir_module *m, const char *name, int64_t rows,
                                        int64_t features)
{
  weir_module *embedding;
  TRY(weir_module_embedding(&embedding, rows, features, NULL));
  return weir_module_add(m, name, embedding);
}

static inline weir_status add_linear(weir_module *m, const char *name, int64_t in, int64_t out)
{
  weir_module *linear;
  TRY(weir_module_linear(&linear, in, out, NULL));
  return weir_module_add(m, name, linear);
}

static inline weir_status add_norm(weir_module *m, const char *name, int64_t features, double eps)
{
  weir_module *norm;
  TRY(weir_module_layer_norm(&norm, weir_shape(features), &(weir_norm_layer_options){.eps = eps}));
  return weir_module_add(m, name, norm);
}

/* *x (N, L, features) and the rows of embedding `name` for the places 0 to L - 1. */
static inline weir_status add_places(weir_module *m, const char *name, weir_tensor **x)
{
  WEIR_TENSOR places = NULL;
  WEIR_TENSOR rows = NULL;
  weir_tensor *sum;
  weir_options o = {.dtype = WEIR_INT64, .device = weir_tensor_device(*x)};
  TRY(weir_arange(&places, weir_int(0), weir_int(weir_tensor_size(*x, 1)), weir_int(1), &o));
  TRY(weir_module_call(&rows, weir_module_child(m, name), places));
  TRY(weir_add(&sum, *x, rows));
  weir_tensor_release(*x);
  *x = sum;
  return WEIR_OK;
}

/* "12,768,12,30522,512": false where it is not that. */
static inline bool read_size(model_size *out, const char *text)
{
  int64_t *field[] = {&out->layers, &out->features, &out->heads, &out->vocabulary, &out->places};
  for (int i = 0; i < 5; i++) {
    char *end;
    *field[i] = strtoll(text, &end, 10);
    if (end == text || *field[i] < 1 || *end != (i < 4 ? ',' : 0)) return false;
    text = end + 1;
  }
  return true;
}

/* files: checkpoint, tokens (N, L) of int64, output; NULL: random weights, one row of tokens. */
static inline weir_status run_model(weir_module *model, weir_device device, char **files)
{
  WEIR_TENSOR row = NULL;
  WEIR_TENSOR tokens = NULL;
  WEIR_TENSOR x = NULL;
  WEIR_TENSOR y = NULL;
  WEIR_TENSOR back = NULL;
  WEIR_TENSOR sizes = NULL;
  WEIR_TENSOR most = NULL;
  weir_scalar largest;
  char *text;
  if (files) TRY(weir_module_load(model, files[0], true));
  TRY(weir_module_to(model, &(weir_options){.device = device}));
  weir_module_train(model, false);
  if (files)
    TRY(weir_npy_read(&tokens, files[1], NULL));
  else
    TRY(weir_arange(&row, weir_int(0), weir_int(4), weir_int(1), NULL));
  if (!files) TRY(weir_view(&tokens, row, weir_shape(1, 4)));
  TRY(weir_to(&x, tokens, &(weir_options){.device = device}));
  TRY(weir_module_call(&y, model, x));
  TRY(weir_cpu(&back, y));
  if (files) return weir_npy_write(files[2], back);
  TRY(weir_abs(&sizes, back));
  TRY(weir_amax(&most, sizes));
  TRY(weir_item(&largest, most));
  TRY(weir_module_to_string(&text, model));
  printf("%s\n%lld numbers for each of %lld tokens, the largest %.3f\n", text,
         (long long)weir_tensor_size(back, 2), (long long)weir_tensor_size(back, 1), largest.f);
  free(text);
  return WEIR_OK;
}

/* PROGRAM [CHECKPOINT TOKENS OUTPUT] [--size=LAYERS,FEATURES,HEADS,VOCABULARY,PLACES]
 * [--disable-cuda]; what main() returns. */
static inline int run_transformer(int argc, char **argv, model_size s,
                                  weir_status (*make)(weir_module **out, const model_size *s))
{
  static const char size[] = "--size=";
  static const char *const options[] = {"--size=", "--disable-cuda", NULL};
  static const char arguments[] = "[CHECKPOINT TOKENS OUTPUT] [--size=LAYERS,FEATURES,HEADS,"
                                  "VOCABULARY,PLACES] [--disable-cuda]";
  int usage = answer_usage(argc, argv, argv[0], arguments, options);
  if (usage != GO_ON) return usage;
  WEIR_MODULE model = NULL;
  char *files[3];
  int count = 0;
  bool no_cuda = false, good = true;
  for (int i = 1; i < argc; i++) {
    if (!strcmp(argv[i], "--disable-cuda"))
      no_cuda = true;
    else if (!strncmp(argv[i], size, strlen(size)))
      good = good && read_size(&s, argv[i] + strlen(size));
    else if (count < 3)
      files[count++] = argv[i];
    else
      good = false;
  }
  if (!good || (count && count < 3)) {
    (void)fprintf(stderr, "usage: %s %s\n", argv[0], arguments);
    return 2;
  }
  weir_manual_seed(0);
  weir_status st = make(&model, &s);
  if (!st) st = run_model(model, weir_device_select(no_cuda), count ? files : NULL);
  if (st) (void)fprintf(stderr, "%s: %s\n", argv[0], weir_error_message());
  return st != WEIR_OK;
}

#endif
