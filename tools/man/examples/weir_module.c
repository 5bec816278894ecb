#include <stdio.h>
#include <weir.h>

int main(void)
{
  weir_module *linear = NULL, *relu = NULL, *net = NULL;
  WEIR_TENSOR x = NULL, y = NULL;
  weir_status st = weir_module_linear(&linear, 10, 5, NULL);
  if (!st) st = weir_module_relu(&relu);
  weir_module *layers[] = {linear, relu};
  if (!st) st = weir_module_sequential(&net, layers, 2);
  if (!st) st = weir_ones(&x, weir_shape(3, 10), NULL);
  if (!st) st = weir_module_call(&y, net, x);
  if (st) (void)fprintf(stderr, "%s\n", weir_error_message());
  weir_module_release(net);
  weir_module_release(relu);
  weir_module_release(linear);
  return !st && weir_tensor_size(y, 1) == 5 ? 0 : 1;
}
