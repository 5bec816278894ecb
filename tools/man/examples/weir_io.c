#include <stdio.h>
#include <weir.h>

int main(void)
{
  WEIR_TENSOR w = NULL, same = NULL;
  weir_tensors *state = NULL, *back = NULL;
  weir_dlpack *lent;
  weir_status st = weir_ones(&w, weir_shape(2, 3), NULL);
  if (!st) st = weir_tensors_create(&state);
  if (!st) st = weir_tensors_put(state, "layer.weight", w);
  if (!st) st = weir_tensors_set_metadata(state, "format", "weir");
  if (!st) st = weir_safetensors_save("state.safetensors", state);
  if (!st) st = weir_safetensors_load(&back, "state.safetensors", NULL);
  if (!st) st = weir_to_dlpack(&lent, weir_tensors_get(back, "layer.weight"), NULL);
  if (!st) st = weir_from_dlpack(&same, lent, NULL); /* the same memory */
  if (st) (void)fprintf(stderr, "%s\n", weir_error_message());
  weir_tensors_release(state);
  weir_tensors_release(back);
  return !st && weir_tensor_numel(same) == 6 ? 0 : 1;
}
