#include <stdio.h>
#include <stdlib.h>
#include <weir.h>

int main(void)
{
  WEIR_TENSOR a = NULL, t = NULL, row = NULL;
  char *text;
  if (weir_arange(&a, weir_int(0), weir_int(6), weir_int(1), NULL) ||
      weir_view(&t, a, weir_shape(2, 3)) || weir_select(&row, t, 0, 1) ||
      weir_fill_(row, weir_int(7)) || /* a view: t and a see it */
      weir_tensor_to_string(&text, t)) {
    (void)fprintf(stderr, "%s\n", weir_error_message());
    return 1;
  }
  puts(text);
  free(text);
  return weir_tensor_shares_storage(a, row) ? 0 : 1;
}
