#include <stdio.h>
#include <weir.h>

int main(void)
{
  float rows[6] = {1, 2, 3, 4, 5, 6}, got[4];
  int64_t which[2] = {2, -1};
  WEIR_TENSOR a = NULL, i = NULL, mask = NULL, some = NULL, wide = NULL;
  if (weir_tensor_from(&a, rows, WEIR_FLOAT32, weir_shape(3, 2), NULL) ||
      weir_tensor_from(&i, which, WEIR_INT64, weir_shape(2), NULL) ||
      weir_index(&some, a, (const weir_tensor *[]){i}, 1) || /* a[[2, -1]] */
      weir_tensor_read(got, sizeof got, WEIR_FLOAT32, some) ||
      weir_gt_scalar(&mask, a, weir_int(3)) || /* a[a > 3] */
      weir_masked_select(&wide, a, mask)) {
    (void)fprintf(stderr, "%s\n", weir_error_message());
    return 1;
  }
  printf("%g %g, %lld more than 3\n", got[0], got[3], (long long)weir_tensor_numel(wide));
  return got[0] == 5 && weir_tensor_numel(wide) == 3 ? 0 : 1;
}
