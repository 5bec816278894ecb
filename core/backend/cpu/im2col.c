/* cpu/im2col.c: the matrix whose product with the weights is a convolution. */
#include <string.h>
#include "core/backend/cpu/cpu.h"
#include "core/backend/threads.h"

typedef struct work {
  const weir_im2col *c;
  size_t size; /* of an element */
} work;

/* Row y of the output for one (n, c, r, s): out[x] = in[x stride - pad + s dilation], 0 outside. */
static void unfold_row(char *out, const char *in, const weir_im2col *c, int64_t s, size_t size)
{
  int64_t shift = s * c->dilation[1] - c->pad[1], step = c->stride[1];
  int64_t first = shift < 0 ? (-shift + step - 1) / step : 0;
  int64_t end = shift < c->w ? (c->w - 1 - shift) / step + 1 : 0;
  if (first > c->ow) first = c->ow;
  if (end > c->ow) end = c->ow;
  if (end < first) end = first;
  memset(out, 0, (size_t)first * size);
  memset(out + end * (int64_t)size, 0, (size_t)(c->ow - end) * size);
  out += first * (int64_t)size, in += (first * step + shift) * (int64_t)size;
  if (step == 1)
    memcpy(out, in, (size_t)(end - first) * size);
  else if (size == 4)
    for (int64_t x = first; x < end; x++, out += 4, in += step * 4)
      memcpy(out, in, 4);
  else
    for (int64_t x = first; x < end; x++, out += size, in += step * (int64_t)size)
      memcpy(out, in, size);
}

/* Parts are (n, c, r, s), counted row by row. */
static void planes(void *arg, int64_t from, int64_t to)
{
  const work *w = arg;
  const weir_im2col *c = w->c;
  int64_t kernel = c->kernel[0] * c->kernel[1], size = (int64_t)w->size;
  for (int64_t p = from; p < to; p++) {
    int64_t r = p % kernel / c->kernel[1], s = p % c->kernel[1];
    const char *in = (const char *)c->in + p / kernel * c->h * c->w * size;
    char *out = (char *)c->out + p * c->oh * c->ow * size;
    for (int64_t y = 0; y < c->oh; y++, out += c->ow * size) {
      int64_t at = y * c->stride[0] - c->pad[0] + r * c->dilation[0];
      if (at < 0 || at >= c->h)
        memset(out, 0, (size_t)(c->ow * size));
      else
        unfold_row(out, in + at * c->w * size, c, s, w->size);
    }
  }
}

weir_status cpu_im2col(void *self, void *stream, const weir_im2col *c)
{
  (void)self, (void)stream;
  work w = {c, cpu_dtype_bytes(c->dtype)};
  int64_t plane = c->oh * c->ow + 1;
  parallel_for(c->n * c->c * c->kernel[0] * c->kernel[1], CPU_GRAIN / plane + 1, planes, &w);
  return WEIR_OK;
}
