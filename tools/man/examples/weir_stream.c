#include <stdio.h>
#include <weir.h>

int main(void)
{
  weir_device gpu = WEIR_CUDA_AT(0);
  weir_stream *side, *plain;
  WEIR_TENSOR t = NULL;
  if (!weir_cuda_is_available()) return 0;
  weir_options there = {.device = gpu};
  if (weir_stream_create(&side, gpu) || weir_default_stream(&plain, gpu)) goto failed;
  WEIR_WITH_STREAM(side)
  {
    if (weir_empty(&t, weir_shape(1000), &there)) goto failed;
  }
  if (weir_stream_wait_stream(plain, side) || /* the default stream may use t now */
      weir_tensor_record_stream(t, plain) || weir_synchronize(gpu))
    goto failed;
  return 0;
failed:
  (void)fprintf(stderr, "%s\n", weir_error_message());
  return 1;
}
