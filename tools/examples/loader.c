/* loader.c: batches made by threads, pinned, and copied to the GPU while it calculates.
 * cc loader.c $(pkg-config --cflags --libs weir), with try.h, usage.h */
#include <stdio.h>
#include <weir.h>
#include "try.h"
#include "usage.h"

enum { IMAGES = 500, PIXELS = 32 * 32, BATCH = 32, SUM = IMAGES * (IMAGES - 1) / 2 };

static int64_t length(void *user)
{
  (void)user;
  return IMAGES;
}

/* Image i is full of i, its label i % 10. A program would read and decode a file here. */
static weir_status get_image(weir_batch *out, void *user, int64_t i)
{
  (void)user;
  TRY(weir_full(&out->tensor[0], weir_shape(PIXELS), weir_float((double)i), NULL));
  out->count = 1;
  TRY(weir_full(&out->tensor[1], weir_shape_of(0, NULL), weir_int(i % 10), NULL));
  out->count = 2;
  return WEIR_OK;
}

/* Adds the mean of each image and the labels of a batch to the sums. */
static weir_status add_to_sums(const weir_batch *b, weir_tensor *images, weir_tensor *labels)
{
  WEIR_TENSOR means = NULL;
  WEIR_TENSOR image = NULL;
  WEIR_TENSOR label = NULL;
  TRY(weir_mean_dim(&means, b->tensor[0], 1, false));
  TRY(weir_sum(&image, means));
  TRY(weir_sum(&label, b->tensor[1]));
  TRY(weir_add_(images, image));
  return weir_add_(labels, label);
}

static weir_status run_epoch(weir_loader *loader, weir_device device)
{
  WEIR_TENSOR images = NULL;
  WEIR_TENSOR labels = NULL;
  weir_loader_iter *it;
  weir_batch b = {0};
  weir_scalar image, label;
  int batches = 0;
  TRY(weir_zeros(&images, weir_shape_of(0, NULL), &(weir_options){.device = device}));
  TRY(weir_zeros(&labels, weir_shape_of(0, NULL),
                 &(weir_options){.dtype = WEIR_INT64, .device = device}));
  weir_status st = weir_loader_begin(&it, loader);
  for (; !st && !(st = weir_loader_next(&b, it)) && b.count; batches++) {
    st = add_to_sums(&b, images, labels); /* enqueued; the next batch is on its way meanwhile */
    weir_batch_drop(&b);
  }
  weir_loader_end(it);
  if (!st) st = weir_item(&image, images);
  if (!st) st = weir_item(&label, labels);
  if (st) return st;
  bool right = image.f == SUM && label.i == IMAGES / 10 * 45;
  printf("loader: %d batches, %s\n", batches, right ? "ok" : "wrong");
  return right ? WEIR_OK : weir_fail(WEIR_EINTERNAL, "sums %g and %d", image.f, (int)label.i);
}

static weir_status run_epochs(weir_device device)
{
  weir_dataset set = {.length = length, .get = get_image};
  weir_loader_options o = {.batch_size = BATCH, .shuffle = true, .workers = 4, .device = device};
  weir_loader *loader;
  o.pin_memory = device.type == WEIR_DEVICE_CUDA;
  weir_status st = weir_loader_create(&loader, &set, &o);
  for (int i = 0; !st && i < 2; i++)
    st = run_epoch(loader, device);
  weir_loader_release(loader);
  return st;
}

int main(int argc, char **argv)
{
  return run_example(argc, argv, "loader", run_epochs);
}
