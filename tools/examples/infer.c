/* infer.c: a model of two convolutions, on a GPU where there is one: infer [--disable-cuda]
 * cc infer.c $(pkg-config --cflags --libs weir), with try.h, usage.h */
#include <stdio.h>
#include <stdlib.h>
#include <weir.h>
#include "try.h"
#include "usage.h"

/* class Model: relu(conv2(relu(conv1(x)))) */
static weir_status forward(weir_tensor **out, weir_module *self, weir_tensor *const *in, int count)
{
  WEIR_TENSOR a = NULL;
  WEIR_TENSOR b = NULL;
  if (count != 1) return weir_fail(WEIR_EINVAL, "Model takes 1 tensor, not %d", count);
  TRY(weir_module_call(&a, weir_module_child(self, "conv1"), in[0]));
  TRY(weir_relu_(a));
  TRY(weir_module_call(&b, weir_module_child(self, "conv2"), a));
  return weir_relu(out, b);
}

static weir_status make_convolutions(weir_module **out)
{
  static const weir_module_class kind = {.name = "Model", .forward = forward};
  weir_module *conv;
  TRY(weir_module_new(out, &kind, NULL));
  TRY(weir_module_conv2d(&conv, 1, 20, 5, NULL));
  TRY(weir_module_add(*out, "conv1", conv)); /* the model's from now on */
  TRY(weir_module_conv2d(&conv, 20, 20, 5, NULL));
  return weir_module_add(*out, "conv2", conv);
}

static weir_status infer_images(weir_device device)
{
  WEIR_MODULE model = NULL;
  WEIR_TENSOR images = NULL;
  WEIR_TENSOR x = NULL;
  WEIR_TENSOR y = NULL;
  WEIR_TENSOR mean = NULL;
  weir_scalar value;
  char *text;
  (void)fprintf(stderr, "on the %s\n", device.type == WEIR_DEVICE_CUDA ? "GPU" : "CPU");
  weir_manual_seed(0); /* the same numbers everywhere */
  TRY(make_convolutions(&model));
  TRY(weir_module_to(model, &(weir_options){.device = device}));
  TRY(weir_rand(&images, weir_shape(8, 1, 28, 28), NULL));
  TRY(weir_to(&x, images, &(weir_options){.device = device}));
  WEIR_NO_GRAD TRY(weir_module_call(&y, model, x));
  TRY(weir_mean(&mean, y));
  TRY(weir_item(&value, mean)); /* waits for the device */
  TRY(weir_module_to_string(&text, model));
  printf("%s\n", text);
  free(text);
  weir_shape s = weir_tensor_shape(y);
  printf("%lld x %lld x %lld x %lld, mean %.4f\n", (long long)s.size[0], (long long)s.size[1],
         (long long)s.size[2], (long long)s.size[3], value.f);
  return WEIR_OK;
}

int main(int argc, char **argv)
{
  return run_example(argc, argv, "infer", infer_images);
}
