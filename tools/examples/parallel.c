/* parallel.c: one model on all GPUs, each with a part of the batch.
 * cc parallel.c $(pkg-config --cflags --libs weir), with try.h, usage.h */
#include <stdio.h>
#include <weir.h>
#include "try.h"
#include "usage.h"

static weir_status make_model(weir_module **out)
{
  weir_module *layer[5];
  TRY(weir_module_conv2d(&layer[0], 1, 20, 5, NULL));
  TRY(weir_module_relu(&layer[1]));
  TRY(weir_module_conv2d(&layer[2], 20, 20, 5, NULL));
  TRY(weir_module_flatten(&layer[3], 1, -1));
  TRY(weir_module_linear(&layer[4], 20 * 8 * 8, 10, NULL));
  return weir_module_sequential(out, layer, 5); /* steals the layers */
}

static weir_status run_model(weir_device device)
{
  WEIR_MODULE model = NULL;
  WEIR_MODULE parallel = NULL;
  WEIR_TENSOR x = NULL;
  WEIR_TENSOR one = NULL;
  WEIR_TENSOR all = NULL;
  WEIR_TENSOR back = NULL;
  bool right;
  int gpus = 0;
  if (device.type == WEIR_DEVICE_CUDA) TRY(weir_cuda_device_count(&gpus));
  weir_manual_seed(0);
  TRY(make_model(&model));
  TRY(weir_rand(&x, weir_shape(22, 1, 16, 16), NULL));
  WEIR_NO_GRAD TRY(weir_module_call(&one, model, x)); /* on the CPU */
  TRY(weir_module_to(model, &(weir_options){.device = device}));
  TRY(weir_data_parallel(&parallel, model, NULL)); /* all GPUs; without one it passes through */
  WEIR_NO_GRAD TRY(weir_module_call(&all, parallel, x));
  TRY(weir_cpu(&back, all));
  TRY(weir_allclose(&right, back, one, 1e-4, 1e-5, false));
  (void)fprintf(stderr, "on %d GPUs\n", gpus);
  printf("parallel: %lld rows, %s\n", (long long)weir_tensor_size(all, 0), right ? "ok" : "wrong");
  return right ? WEIR_OK : weir_fail(WEIR_EINTERNAL, "not what the CPU calculates");
}

int main(int argc, char **argv)
{
  static const char *const options[] = {NULL};
  int usage = answer_usage(argc, argv, "parallel", "", options);
  if (usage != GO_ON) return usage;
  if (argc > 1) return 2; /* CUDA_VISIBLE_DEVICES chooses the GPUs */
  weir_status st = run_model(weir_device_select(false));
  if (st) (void)fprintf(stderr, "parallel: %s\n", weir_error_message());
  return st != WEIR_OK;
}
