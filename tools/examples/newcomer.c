/* newcomer.c: loads a matrix, moves it to a GPU where there is one, squares it, reads it back. */
#include <stdio.h>
#include <weir.h>

/* Every function returns a status, 0 for success, and leaves a sentence where it fails. */
#define TRY(call)                                                                                  \
  do {                                                                                             \
    weir_status st = (call);                                                                       \
    if (st) return st;                                                                             \
  } while (0)

static weir_status run_file(const char *file)
{
  WEIR_TENSOR loaded = NULL, moved = NULL, square = NULL, sum = NULL, row = NULL; /* released */
  weir_options there = {.device = weir_device_select(false)};
  weir_scalar total;
  TRY(weir_npy_read(&loaded, file, NULL));
  TRY(weir_to(&moved, loaded, &there));
  TRY(weir_matmul(&square, moved, moved));
  TRY(weir_sum(&sum, square));
  TRY(weir_item(&total, sum)); /* waits for the GPU */
  printf("on %s: the sum is %g, row 0 is ", weir_tensor_is_cuda(moved) ? "cuda" : "cpu", total.f);
  TRY(weir_select(&row, square, 0, 0));
  for (int64_t i = 0; i < weir_tensor_size(row, 0); i++) {
    WEIR_TENSOR element = NULL;
    TRY(weir_select(&element, row, 0, i));
    TRY(weir_item(&total, element));
    printf("%g%s", total.f, i + 1 < weir_tensor_size(row, 0) ? " " : "\n");
  }
  return WEIR_OK;
}

int main(int argc, char **argv)
{
  if (argc == 2 && run_file(argv[1]) == WEIR_OK) return 0;
  (void)fprintf(stderr, "%s\n", argc == 2 ? weir_error_message() : "usage: newcomer MATRIX.npy");
  return 1;
}
