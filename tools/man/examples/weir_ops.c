#include <stdio.h>
#include <weir.h>

int main(void)
{
  float x[4] = {1, 2, 3, 4};
  WEIR_TENSOR a = NULL, b = NULL, c = NULL, s = NULL;
  weir_scalar sum;
  if (weir_tensor_from(&a, x, WEIR_FLOAT32, weir_shape(2, 2), NULL) || weir_matmul(&b, a, a) ||
      weir_add_scalar(&c, b, weir_float(1)) || weir_sum(&s, c) || weir_item(&sum, s)) {
    (void)fprintf(stderr, "%s\n", weir_error_message());
    return 1;
  }
  printf("%g\n", sum.f);
  return sum.f == 58 ? 0 : 1;
}
