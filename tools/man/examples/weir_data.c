#include <stdio.h>
#include <weir.h>

int main(void)
{
  WEIR_TENSOR x = NULL, y = NULL;
  weir_dataset rows;
  weir_loader *loader = NULL;
  weir_loader_iter *it = NULL;
  weir_batch batch = {0};
  weir_loader_options o = {.batch_size = 4, .shuffle = true, .workers = 2};
  int batches = 0;
  if (weir_zeros(&x, weir_shape(10, 3), NULL) || weir_zeros(&y, weir_shape(10), NULL) ||
      weir_tensor_dataset(&rows, (weir_tensor *[]){x, y}, 2) ||
      weir_loader_create(&loader, &rows, &o) || weir_loader_begin(&it, loader)) {
    (void)fprintf(stderr, "%s\n", weir_error_message());
    return 1;
  }
  while (!weir_loader_next(&batch, it) && batch.count) {
    batches++;
    weir_batch_drop(&batch);
  }
  weir_loader_end(it);
  weir_loader_release(loader);
  return batches == 3 ? 0 : 1;
}
