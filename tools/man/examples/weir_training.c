#include <stdio.h>
#include <weir.h>

/* Fits w x to 3 x. */
int main(void)
{
  float start[1] = {0};
  WEIR_TENSOR x = NULL, target = NULL, w = NULL;
  WEIR_OPTIMIZER optimizer = NULL;
  weir_scalar found = {0};
  weir_optim_options options = weir_optim_defaults(WEIR_SGD);
  options.lr = 0.05;
  weir_status st = weir_arange(&x, weir_float(1), weir_float(4), weir_float(1), NULL);
  if (!st) st = weir_mul_scalar(&target, x, weir_float(3));
  if (!st) st = weir_tensor_from(&w, start, WEIR_FLOAT32, weir_shape(1), NULL);
  if (!st) st = weir_requires_grad_(w, true);
  if (!st) st = weir_optimizer_create(&optimizer, WEIR_SGD, &w, 1, &options);
  for (int step = 0; step < 50 && !st; step++) {
    weir_optimizer_zero_grad(optimizer);
    WEIR_SCOPE(st)
    {
      weir_tensor *off = weir_expr(sub, weir_expr(mul, x, w), target);
      weir_tensor *loss = weir_expr(mean, weir_expr(mul, off, off));
      weir_do(weir_backward(loss, NULL, false));
    }
    if (!st) st = weir_optimizer_step(optimizer);
  }
  if (!st) st = weir_item(&found, w);
  if (st) (void)fprintf(stderr, "%s\n", weir_error_message());
  printf("%.3f\n", found.f);
  return !st && found.f > 2.999 && found.f < 3.001 ? 0 : 1;
}
