/* linear.c: moving a model, Linear(10, 5), between devices and dtypes, and to a file and back.
 * cc linear.c $(pkg-config --cflags --libs weir), with try.h, usage.h */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <weir.h>
#include "try.h"
#include "usage.h"

/* Calls the model where it is with x brought there; the largest difference to `wanted`. */
static weir_status compare(double *out, weir_module *model, const weir_tensor *x,
                           const weir_tensor *wanted)
{
  const weir_tensor *weight = weir_module_parameter(model, "weight");
  weir_options like = {.dtype = weir_tensor_dtype(weight), .device = weir_tensor_device(weight)};
  WEIR_TENSOR in = NULL;
  WEIR_TENSOR y = NULL;
  WEIR_TENSOR back = NULL;
  double a[15], b[15];
  TRY(weir_to(&in, x, &like));
  TRY(weir_module_call(&y, model, in));
  TRY(weir_cpu(&back, y));
  TRY(weir_tensor_read(a, sizeof a, WEIR_FLOAT64, back));
  TRY(weir_tensor_read(b, sizeof b, WEIR_FLOAT64, wanted));
  *out = 0;
  for (int i = 0; i < 15; i++)
    if (!(a[i] - b[i] <= *out && b[i] - a[i] <= *out))
      *out = a[i] > b[i] ? a[i] - b[i] : b[i] - a[i];
  return WEIR_OK;
}

static weir_status move_model(weir_device device, const char *path)
{
  WEIR_MODULE model = NULL;
  WEIR_MODULE other = NULL;
  WEIR_TENSOR x = NULL;
  WEIR_TENSOR y = NULL;
  double moved, wider, loaded;
  weir_manual_seed(0);
  TRY(weir_module_linear(&model, 10, 5, NULL));
  TRY(weir_module_linear(&other, 10, 5, NULL)); /* other numbers */
  TRY(weir_randn(&x, weir_shape(3, 10), NULL));
  TRY(weir_module_call(&y, model, x));
  TRY(weir_module_to(model, &(weir_options){.device = device})); /* in place */
  TRY(compare(&moved, model, x, y));
  TRY(weir_module_to(model, &(weir_options){.dtype = WEIR_FLOAT64}));
  TRY(compare(&wider, model, x, y));
  TRY(weir_module_save(model, path));
  TRY(weir_module_load(other, path, true)); /* other stays where and what it is */
  TRY(compare(&loaded, other, x, y));
  bool right = moved < 1e-5 && wider < 1e-5 && loaded < 1e-5;
  printf("linear: %s\n", right ? "ok" : "wrong");
  if (!right) return weir_fail(WEIR_EINTERNAL, "differences %g, %g, %g", moved, wider, loaded);
  WEIR_TENSOR none = NULL;
  if (!weir_module_call(&none, other, y)) return weir_fail(WEIR_EINTERNAL, "5 are not 10");
  printf("as it should be: %s\n", weir_error_message());
  return WEIR_OK;
}

/* With a file of its own. */
static weir_status move_and_save(weir_device device)
{
  char path[] = "/tmp/linear-XXXXXX";
  int file = mkstemp(path);
  if (file < 0 || close(file)) return weir_fail(WEIR_EIO, "no file can be made in /tmp");
  weir_status st = move_model(device, path);
  (void)remove(path);
  return st;
}

int main(int argc, char **argv)
{
  return run_example(argc, argv, "linear", move_and_save);
}
