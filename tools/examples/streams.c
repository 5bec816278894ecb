/* streams.c: a pipeline over side streams: each part goes to the GPU, is calculated with and comes
 * back in a stream of its own, in parallel.
 * cc streams.c $(pkg-config --cflags --libs weir), with try.h, usage.h
 */
#include <stdio.h>
#include <weir.h>
#include "try.h"
#include "usage.h"

enum { STREAMS = 3, PARTS = 12, WIDTH = 1 << 16 };

/* Rows of `in` and `out` are page-locked: nothing here waits for the GPU. */
static weir_status one_part(weir_tensor *out, const weir_tensor *in, int row, weir_device device)
{
  WEIR_TENSOR from = NULL;
  WEIR_TENSOR to = NULL;
  WEIR_TENSOR x = NULL;
  WEIR_TENSOR y = NULL;
  TRY(weir_select(&from, in, 0, row));
  TRY(weir_select(&to, out, 0, row));
  TRY(weir_to(&x, from, &(weir_options){.device = device, .non_blocking = true}));
  TRY(weir_mul(&y, x, x));
  TRY(weir_add_scalar_(y, weir_float(row)));
  return weir_copy_(to, y, true);
}

static weir_status pipeline(weir_device device)
{
  bool gpu = device.type == WEIR_DEVICE_CUDA, right;
  weir_stream *side[STREAMS] = {NULL}; /* without a GPU there are none, and each step is done */
  WEIR_TENSOR in = NULL;
  WEIR_TENSOR out = NULL;
  WEIR_TENSOR rows = NULL;
  WEIR_TENSOR column = NULL;
  WEIR_TENSOR wanted = NULL;
  weir_options pinned = {.pin_memory = gpu};
  weir_status st = WEIR_OK;
  TRY(weir_empty(&in, weir_shape(PARTS, WIDTH), &pinned));
  TRY(weir_empty(&out, weir_shape(PARTS, WIDTH), &pinned));
  TRY(weir_uniform_(in, 0, 1, NULL));
  for (int i = 0; gpu && i < STREAMS; i++)
    TRY(weir_stream_new(&side[i], device, 0));
  for (int i = 0; !st && i < PARTS; i++)
    WEIR_WITH_STREAM(side[i % STREAMS])
  st = one_part(out, in, i, device);
  for (int i = 0; gpu && i < STREAMS; i++)
    TRY(weir_stream_synchronize(side[i])); /* before `out` is looked at */
  if (st) return st;
  TRY(weir_arange(&rows, weir_int(0), weir_int(PARTS), weir_int(1), NULL));
  TRY(weir_unsqueeze(&column, rows, 1));
  TRY(weir_mul(&wanted, in, in));
  TRY(weir_add_(wanted, column));
  TRY(weir_allclose(&right, out, wanted, 1e-6, 1e-6, false));
  printf("streams: %d parts, %s\n", PARTS, right ? "ok" : "wrong");
  return right ? WEIR_OK : weir_fail(WEIR_EINTERNAL, "not what the CPU calculates");
}

int main(int argc, char **argv)
{
  return run_example(argc, argv, "streams", pipeline);
}
