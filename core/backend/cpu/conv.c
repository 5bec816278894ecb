/* cpu/conv.c: convolution on the cpu, without the matrix of its windows.
 *
 * An image is copied once, with its padding, into planes in which what neighbouring output elements
 * see lies side by side: for a stride of s, row y and column x go to phase (y % s, x % s), place (y
 * / s, x / s). Then output element number `at` (rows of the output are as far apart as those of a
 * phase) sees, for each channel and place of the kernel, the element at a fixed offset plus `at`: a
 * product of matrices whose B has its rows at offsets (cpu/gemm.h: virtual_tile), with nothing to
 * unfold. Between the ends of two rows are elements that no output has; they are calculated and
 * left out. Groups of a few output planes take tiles of one row (thin_tile): depthwise convolution.
 *
 * Threads share the copying, then the chunks of the outputs. How a sum is put together follows from
 * the sizes alone, whoever makes it.
 *
 * Words. plane: an image's channel. position: number of an output element, in rows of a phase's
 * length. term: one of what an output is a sum of. chunk: positions that are worked on at a
 * time. */
#include <string.h>
#include "core/base/least.h"
#include "core/base/compiler.h"
#include "core/backend/cpu/gemm.h"
#include "core/backend/threads.h"

enum {
  TERMS = 256,              /* of a sum, taken at a time */
  CHUNK_BYTES = 192 << 10,  /* of the results of a chunk */
  CHUNK = 1024,             /* positions of a chunk, at most */
  IMAGES_BYTES = 4 << 20,   /* of images copied at a time, where more than one fits */
  TOGETHER_BYTES = 1 << 20, /* of the results of images that go together */
  FEW = 1 << 18,            /* multiplications one thread does as soon alone */
  FEW_OUTS = 4,             /* output planes of a group below which tiles have one row */
  GATHER_ROWS = 32,         /* of a tile that take as long as to gather what they multiply */
  RUN = 64                  /* bytes of a short run, which is copied whole */
};

typedef struct work {
  const weir_conv *c;
  const cpu_tile_level *level;
  weir_dtype type;       /* of the arithmetic */
  int64_t size;          /* of an element of it, bytes */
  int64_t item;          /* of an element of the tensors, bytes */
  int64_t terms;         /* of a sum */
  cpu_virtual_tile tile; /* of several rows */
  int64_t rows;          /* of a tile */
  int64_t width;         /* of a tile, elements */
  int64_t panels;        /* tiles that are one group's output planes */
  int64_t phase[2];      /* rows and columns of a phase */
  int64_t plane;         /* all phases of a channel, elements */
  int64_t image;         /* all channels, and what is read beyond, elements */
  int64_t positions;     /* of an output plane */
  bool dense;       /* positions are only those that an output has, those of `together` images */
  int64_t chunk;    /* positions */
  int64_t chunks;   /* of an output plane */
  int64_t together; /* images whose chunk is worked on at a time, where that is all of them */
  int64_t at_hand;  /* images copied */
  int64_t first;    /* image that lies first in `images` */
  int64_t gathered; /* of a thread, bytes */
  int64_t *offset;  /* of each term, elements; dense: TERMS more, of gathered rows */
  char *weights, *images, *results; /* results: a chunk's, for each thread */
  char *gather;                     /* dense: rows of a chunk, for each thread */
} work;

static int64_t in_units(int64_t n, int64_t unit)
{
  return (n + unit - 1) / unit;
}

/* ---- weights --------------------------------------------------------------------------------- */

/* Panels, each with all its terms: number i is panel i % panels of group i / panels. */
static void pack_weights(void *arg, int64_t from, int64_t to)
{
  const work *w = arg;
  const weir_conv *c = w->c;
  for (int64_t i = from; i < to; i++) {
    int64_t row = i % w->panels * w->rows, has = least(w->rows, c->outs - row);
    const char *at = (const char *)c->weight + (i / w->panels * c->outs + row) * w->terms * w->item;
    for (int64_t term = 0; term < w->terms; term += TERMS)
      w->level->pack[c->dtype](w->weights + (i * w->terms + term) * w->rows * w->size, w->rows, has,
                               least(TERMS, w->terms - term), at + term * w->item, w->terms, 1);
  }
}

/* Where what term number i multiplies is, for position 0. */
static void find_offsets(work *w)
{
  const weir_conv *c = w->c;
  int64_t *offset = w->offset, area = w->phase[0] * w->phase[1];
  for (int64_t channel = 0; channel < c->channels; channel++)
    for (int64_t r = 0; r < c->kernel[0]; r++)
      for (int64_t s = 0; s < c->kernel[1]; s++) {
        int64_t y = r * c->dilation[0], x = s * c->dilation[1];
        int64_t phase = y % c->stride[0] * c->stride[1] + x % c->stride[1];
        *offset++ =
            channel * w->plane + phase * area + y / c->stride[0] * w->phase[1] + x / c->stride[1];
      }
  for (int64_t i = 0; i < TERMS; i++)
    *offset++ = i * w->chunk;
}

/* Whether some element of the kernel sees phase x of direction i. */
static bool is_seen(const weir_conv *c, int i, int64_t x)
{
  for (int64_t k = 0; k < c->kernel[i] && k < c->stride[i]; k++)
    if (k * c->dilation[i] % c->stride[i] == x) return true;
  return false;
}

/* ---- images ---------------------------------------------------------------------------------- */

#define EVERY(T)                                                                                   \
  for (int64_t i = 0; i < n; i++)                                                                  \
  ((T *)to)[i] = ((const T *)from)[i * step]

/* n elements of `bytes`, each `step`-th of `from`. */
static void take_every(void *to, const void *from, int64_t n, int64_t step, int64_t bytes)
{
  if (step == 1)
    memcpy(to, from, (size_t)(n * bytes));
  else if (bytes == 2)
    EVERY(uint16_t);
  else if (bytes == 4)
    EVERY(uint32_t);
  else
    EVERY(uint64_t);
}

/* The same as the arithmetic's type. */
static void convert_every(const work *w, char *to, const char *from, int64_t n, int64_t step)
{
  _Alignas(64) char room[CPU_BLOCK * CPU_ELEMENT];
  if (w->size == w->item) {
    take_every(to, from, n, step, w->item);
    return;
  }
  for (int64_t i = 0, part; i < n; i += part) {
    part = least(n - i, CPU_BLOCK);
    take_every(room, from + i * step * w->item, part, step, w->item);
    cpu_level_in_use()->cast[w->type][w->c->dtype](to + i * w->size, room, part);
  }
}

/* What of a padded row goes to a row of one of its phases: n elements of the input from `from` on,
 * after `first` zeros. */
typedef struct phase_row {
  bool seen;
  int64_t first, from, n;
} phase_row;

enum {
  PHASES = 8,       /* whose rows are measured once, not for each row */
  FEW_ELEMENTS = 64 /* of a row, for which calls would cost more than they copy */
};

static phase_row row_of_phase(const work *w, int64_t x)
{
  const weir_conv *c = w->c;
  int64_t step = c->stride[1], pad = c->pad[1];
  phase_row r = {.seen = is_seen(c, 1, x)};
  if (!r.seen) return r;
  r.first = x >= pad ? 0 : (pad - x + step - 1) / step;
  r.from = r.first * step + x - pad;
  r.n = r.from < c->size[1] ? in_units(c->size[1] - r.from, step) : 0;
  if (!r.n) r.first = 0;
  return r;
}

/* Elements of 4 bytes, few of them: calls would cost more than they copy. */
static void copy_few(uint32_t *to, const uint32_t *from, const phase_row *r, int64_t step,
                     int64_t length)
{
  int64_t n = r->n;
  for (int64_t i = 0; i < r->first; i++)
    to[i] = 0;
  to += r->first;
  if (step == 1)
    WEIR_IVDEP for (int64_t i = 0; i < n; i++) to[i] = from[i];
  else if (step == 2)
    WEIR_IVDEP for (int64_t i = 0; i < n; i++) to[i] = from[2 * i];
  else
    for (int64_t i = 0; i < n; i++)
      to[i] = from[i * step];
  for (int64_t i = n; i < length - r->first; i++)
    to[i] = 0;
}

/* A row of the input into `row` of each phase that is looked at. */
static void copy_row(const work *w, char *row, const char *in, const phase_row *known)
{
  const weir_conv *c = w->c;
  int64_t step = c->stride[1], area = w->phase[0] * w->phase[1], length = w->phase[1];
  for (int64_t x = 0; x < step; x++, row += area * w->size) {
    phase_row r = known ? known[x] : row_of_phase(w, x);
    if (!r.seen) continue;
    if (w->size == 4 && w->item == 4 && length <= FEW_ELEMENTS) {
      copy_few((uint32_t *)(void *)row, (const uint32_t *)(const void *)in + r.from, &r, step,
               length);
      continue;
    }
    memset(row, 0, (size_t)(r.first * w->size));
    if (r.n) convert_every(w, row + r.first * w->size, in + r.from * w->item, r.n, step);
    memset(row + (r.first + r.n) * w->size, 0, (size_t)((length - r.first - r.n) * w->size));
  }
}

/* Rows y, y + stride, ... of a padded plane. */
static void copy_phase(const work *w, char *plane, const char *in, int64_t y,
                       const phase_row *known)
{
  const weir_conv *c = w->c;
  int64_t step = c->stride[1], area = w->phase[0] * w->phase[1], length = w->phase[1];
  char *row = plane + y * step * area * w->size;
  for (int64_t i = 0; i < w->phase[0]; i++, row += length * w->size) {
    int64_t at = i * c->stride[0] + y - c->pad[0];
    if (at >= 0 && at < c->size[0]) {
      copy_row(w, row, in + at * c->size[1] * w->item, known);
      continue;
    }
    for (int64_t x = 0; x < step; x++)
      if (known ? known[x].seen : is_seen(c, 1, x))
        memset(row + x * area * w->size, 0, (size_t)(length * w->size));
  }
}

/* Elements of 4 bytes, n of each: those of even places to `even`, of odd ones to `odd`. n is 4 at
 * least; the last four of each may be written twice. */
typedef uint32_t four_words __attribute__((vector_size(16), aligned(4), may_alias));
static void split_row(uint32_t *even, uint32_t *odd, const uint32_t *in, int64_t n)
{
  for (int64_t i = 0; i < n; i += 4) {
    int64_t at = i < n - 4 ? i : n - 4;
    four_words a = *(const four_words *)(in + 2 * at), b = *(const four_words *)(in + 2 * at + 4);
    *(four_words *)(even + at) = __builtin_shufflevector(a, b, 0, 2, 4, 6);
    *(four_words *)(odd + at) = __builtin_shufflevector(a, b, 1, 3, 5, 7);
  }
}

/* Whether rows can be split: by strides of 2 along them, short, every element seen. */
static bool is_split(const work *w, const phase_row *known)
{
  const weir_conv *c = w->c;
  if (c->stride[1] != 2 || w->size != 4 || w->item != 4 || w->phase[1] > FEW_ELEMENTS) return false;
  int64_t apart = known[1].from - known[0].from, n = least(known[0].n, known[1].n);
  return known[0].seen && known[1].seen && n >= 4 && (apart == 1 || apart == -1);
}

/* A plane whose rows are split. */
static void split_plane(const work *w, char *plane, const char *in, const phase_row *known)
{
  const weir_conv *c = w->c;
  int64_t area = w->phase[0] * w->phase[1], later = known[1].from < known[0].from ? 0 : 1;
  const phase_row *even = &known[1 - later], *odd = &known[later];
  memset(plane, 0, (size_t)(w->plane * w->size));
  for (int64_t y = 0; y < c->size[0]; y++) {
    int64_t at = y + c->pad[0];
    const uint32_t *row = (const uint32_t *)(const void *)in + y * c->size[1];
    uint32_t *to =
        (uint32_t *)(void *)plane + at % c->stride[0] * 2 * area + at / c->stride[0] * w->phase[1];
    uint32_t *first = to + (1 - later) * area + even->first,
             *second = to + later * area + odd->first;
    split_row(first, second, row + even->from, odd->n);
    if (even->n > odd->n) first[odd->n] = row[even->from + 2 * odd->n];
  }
}

/* Planes number `from` to `to` of the images at hand. */
static void copy_planes(void *arg, int64_t from, int64_t to)
{
  const work *w = arg;
  const weir_conv *c = w->c;
  int64_t channels = c->groups * c->channels;
  bool few = c->stride[1] <= PHASES;
  phase_row known[PHASES];
  for (int64_t x = 0; few && x < c->stride[1]; x++)
    known[x] = row_of_phase(w, x);
  bool split = few && is_split(w, known);
  for (int64_t i = from; i < to; i++) {
    const char *in =
        (const char *)c->in + (w->first * channels + i) * c->size[0] * c->size[1] * w->item;
    char *plane = w->images + (i / channels * w->image + i % channels * w->plane) * w->size;
    if (split) split_plane(w, plane, in, known);
    for (int64_t y = 0; y < c->stride[0] && !split; y++)
      if (is_seen(c, 0, y)) copy_phase(w, plane, in, y, few ? known : NULL);
    if (i % channels == channels - 1) /* what tiles read beyond the last plane */
      memset(plane + w->plane * w->size, 0, (size_t)((w->image - channels * w->plane) * w->size));
  }
}

/* ---- outputs --------------------------------------------------------------------------------- */

/* n elements of a result plus `bias`, as the tensors' dtype. */
static void store_row(const work *w, char *to, char *from, int64_t n, double bias)
{
  if (w->size == 4 && w->item == 4) {
    const float *restrict x = (const float *)(const void *)from;
    float *restrict y = (float *)(void *)to, more = (float)bias;
    for (int64_t i = 0; i < n; i++)
      y[i] = x[i] + more;
    return;
  }
  float *f = (float *)from;
  double *d = (double *)from;
  for (int64_t i = 0; i < n && bias != 0; i++)
    if (w->size == sizeof *f)
      f[i] += (float)bias;
    else
      d[i] += bias;
  if (w->size == w->item)
    memcpy(to, from, (size_t)(n * w->size));
  else
    cpu_level_in_use()->cast[w->c->dtype][w->type](to, from, n);
}

/* Positions `at` to `at` + n of one output plane, those that it has. */
static void store_plane(const work *w, char *plane, char *results, int64_t at, int64_t n,
                        double bias)
{
  const weir_conv *c = w->c;
  int64_t y = at / w->phase[1], x = at % w->phase[1];
  for (int64_t done = 0; done < n; y++, x = 0) {
    int64_t left = least(w->phase[1] - x, n - done);
    int64_t has = x < c->result[1] ? least(c->result[1] - x, left) : 0;
    if (has)
      store_row(w, plane + (y * c->result[1] + x) * w->item, results + done * w->size, has, bias);
    done += left;
  }
}

static double bias_of(const work *w, int64_t out)
{
  double bias = 0;
  if (w->c->bias)
    cpu_level_in_use()->cast[WEIR_FLOAT64][w->c->dtype](
        &bias, (const char *)w->c->bias + out * w->item, 1);
  return bias;
}

/* One tile of output planes, for the positions of a chunk, in `images` images. */
static void multiply_panel(const work *w, char *results, const char *a, const char *image,
                           int64_t term, int64_t positions, int64_t images)
{
  int64_t terms = least(TERMS, w->terms - term);
  for (int64_t m = 0; m < images; m++)
    for (int64_t at = 0; at < positions; at += w->width) {
      const char *b = image + (m * w->image + at) * w->size;
      char *to = results + (m * w->panels * w->rows * w->chunk + at) * w->size;
      if (w->rows == 1)
        w->level->thin_tile[w->type](terms, a, b, w->offset + term, to, term > 0);
      else
        w->tile(terms, a, b, w->offset + term, to, w->chunk, term > 0);
    }
}

static void store_chunk(const work *w, char *results, int64_t number, int64_t group, int64_t at,
                        int64_t positions)
{
  const weir_conv *c = w->c;
  for (int64_t k = 0; k < c->outs; k++) {
    int64_t out = group * c->outs + k;
    char *plane = (char *)c->out + ((w->first + number) * c->groups * c->outs + out) *
                                       c->result[0] * c->result[1] * w->item;
    store_plane(w, plane, results + k * w->chunk * w->size, at, positions, bias_of(w, out));
  }
}

/* Items are (images that go together, group, chunk). */
static void convolve_items(void *arg, int64_t from, int64_t to)
{
  const work *w = arg;
  const weir_conv *c = w->c;
  int64_t planes = w->panels * w->rows, one = planes * w->chunk * w->size;
  char *results = w->results + parallel_self() * w->together * one;
  for (int64_t item = from; item < to; item++) {
    int64_t at = item % w->chunks * w->chunk, group = item / w->chunks % c->groups;
    int64_t number = item / w->chunks / c->groups * w->together;
    int64_t images = least(w->together, w->at_hand - number);
    int64_t n = least(w->chunk, w->positions - at);
    const char *image =
        w->images + (number * w->image + group * c->channels * w->plane + at) * w->size;
    const char *weights = w->weights + group * planes * w->terms * w->size;
    for (int64_t term = 0; term < w->terms; term += TERMS)
      for (int64_t i = 0; i < w->panels; i++)
        multiply_panel(w, results + i * w->rows * w->chunk * w->size,
                       weights + (i * w->terms + term) * w->rows * w->size, image, term, n, images);
    for (int64_t m = 0; m < images; m++)
      store_chunk(w, results + m * one, number + m, group, at, n);
  }
}

/* ---- dense outputs --------------------------------------------------------------------------- */

/* Rows of an output: `bytes` each to one after the other; short ones with what follows them, which
 * the next overwrites. */
static char *gather_rows(const work *w, char *to, const char *from, int64_t bytes)
{
  int64_t rows = w->c->result[0], step = w->phase[1] * w->size;
  if (bytes <= RUN / 2)
    for (int64_t y = 0; y < rows; y++, to += bytes, from += step)
      memcpy(to, from, RUN / 2);
  else if (bytes <= RUN)
    for (int64_t y = 0; y < rows; y++, to += bytes, from += step)
      memcpy(to, from, RUN);
  else
    for (int64_t y = 0; y < rows; y++, to += bytes, from += step)
      memcpy(to, from, (size_t)bytes);
  return to;
}

/* What terms `term` to `term` + terms multiply, a row of the chunk each. */
static void gather_terms(const work *w, char *rows, const char *image, int64_t term, int64_t terms,
                         int64_t images)
{
  for (int64_t t = 0; t < terms; t++, rows += w->chunk * w->size) {
    char *to = rows;
    for (int64_t m = 0; m < images; m++)
      to = gather_rows(w, to, image + (m * w->image + w->offset[term + t]) * w->size,
                       w->c->result[1] * w->size);
    memset(to, 0, (size_t)(rows + w->chunk * w->size - to));
  }
}

static void store_dense(const work *w, char *results, int64_t number, int64_t images, int64_t group)
{
  const weir_conv *c = w->c;
  int64_t area = c->result[0] * c->result[1];
  for (int64_t k = 0; k < c->outs; k++) {
    int64_t out = group * c->outs + k;
    double bias = bias_of(w, out);
    for (int64_t m = 0; m < images; m++) {
      int64_t plane = (w->first + number + m) * c->groups * c->outs + out;
      store_row(w, (char *)c->out + plane * area * w->item,
                results + (k * w->chunk + m * area) * w->size, area, bias);
    }
  }
}

/* Items are (images that go together, group). */
static void convolve_dense(void *arg, int64_t from, int64_t to)
{
  const work *w = arg;
  const weir_conv *c = w->c;
  int64_t planes = w->panels * w->rows, area = c->result[0] * c->result[1];
  char *results = w->results + parallel_self() * planes * w->chunk * w->size;
  char *b = w->gather + parallel_self() * w->gathered;
  for (int64_t item = from; item < to; item++) {
    int64_t group = item % c->groups, number = item / c->groups * w->together;
    int64_t images = least(w->together, w->at_hand - number);
    const char *image = w->images + (number * w->image + group * c->channels * w->plane) * w->size;
    const char *weights = w->weights + group * planes * w->terms * w->size;
    for (int64_t term = 0; term < w->terms; term += TERMS) {
      int64_t terms = least(TERMS, w->terms - term);
      gather_terms(w, b, image, term, terms, images);
      for (int64_t i = 0; i < w->panels; i++)
        for (int64_t at = 0; at < images * area; at += w->width)
          w->tile(terms, weights + (i * w->terms + term) * w->rows * w->size, b + at * w->size,
                  w->offset + w->terms, results + (i * w->rows * w->chunk + at) * w->size, w->chunk,
                  term > 0);
    }
    store_dense(w, results, number, images, group);
  }
}

/* ---- the request ----------------------------------------------------------------------------- */

/* Images that a thread takes at a time, of `each` elements of results. */
static int64_t images_together(const work *w, int64_t each)
{
  int64_t t = least(TOGETHER_BYTES / (each * w->size), in_units(w->c->n, weir_get_num_threads()));
  return t < 1 ? 1 : t;
}

/* Tiles of `rows` rows of `bytes`. */
static void measure_tiles(work *w, int64_t rows, int64_t bytes, bool dense)
{
  int64_t area = w->c->result[0] * w->c->result[1];
  w->rows = rows;
  w->width = bytes / w->size;
  w->panels = in_units(w->c->outs, rows);
  int64_t planes = w->panels * rows, room = CHUNK_BYTES / (planes * w->size);
  w->image = w->c->groups * w->c->channels * w->plane + w->width + w->phase[1] + RUN;
  w->chunk = least(room < CHUNK ? room : CHUNK, w->positions);
  w->chunk = in_units(w->chunk > 0 ? w->chunk : 1, w->width) * w->width;
  w->chunks = in_units(w->positions, w->chunk);
  w->together = w->chunks > 1 ? 1 : images_together(w, planes * w->chunk);
  w->dense = dense && w->chunks == 1;
  if (!w->dense) return;
  w->together = least(images_together(w, planes * area), CHUNK / area + 1);
  w->chunk = in_units(w->together * area, w->width) * w->width;
  w->gathered = in_units(TERMS * w->chunk * w->size + RUN, 64) * 64;
}

/* Of an image: output elements that are calculated, those in vain and what gathers included. */
static double cost_of_tiles(const work *w)
{
  double planes = (double)(w->panels * w->rows);
  if (w->dense) return (planes + GATHER_ROWS) * (double)w->chunk / (double)w->together;
  return planes * (double)(in_units(w->positions, w->width) * w->width);
}

/* Which tiles calculate least in vain. */
static void choose_tiles(work *w)
{
  const cpu_tile_level *l = w->level;
  if (w->c->outs < FEW_OUTS) {
    measure_tiles(w, 1, (int64_t)l->bytes * CPU_THIN_TILES, false);
    return;
  }
  work best = *w;
  for (int i = 0; i < 4; i++) {
    w->tile = i % 2 ? l->wide_tile[w->type] : l->virtual_tile[w->type];
    measure_tiles(w, i % 2 ? l->wide_rows : l->rows, i % 2 ? l->wide_bytes : l->bytes, i / 2);
    if (!i || cost_of_tiles(w) < cost_of_tiles(&best)) best = *w;
  }
  *w = best;
}

static void measure_conv(work *w)
{
  const weir_conv *c = w->c;
  w->type = cpu_kernel_dtype(c->dtype);
  w->size = (int64_t)cpu_dtype_bytes(w->type);
  w->item = (int64_t)cpu_dtype_bytes(c->dtype);
  w->terms = c->channels * c->kernel[0] * c->kernel[1];
  for (int i = 0; i < 2; i++)
    w->phase[i] = in_units(c->size[i] + 2 * c->pad[i], c->stride[i]);
  w->plane = c->stride[0] * c->stride[1] * w->phase[0] * w->phase[1];
  w->positions = (c->result[0] - 1) * w->phase[1] + c->result[1];
  choose_tiles(w);
}

weir_status cpu_conv(void *self, void *stream, const weir_conv *c)
{
  (void)self, (void)stream;
  bool done;
  weir_status st = cpu_conv_dnn(c, &done);
  if (st || done) return st;
  work w = {.c = c, .level = cpu_tile_in_use()};
  int threads = weir_get_num_threads();
  measure_conv(&w);
  int64_t at_once = least(c->n, IMAGES_BYTES / (w.image * w.size) + 1);
  int64_t panels = c->groups * w.panels, bytes_offset = in_units((w.terms + TERMS) * 8, 64) * 64;
  int64_t bytes_weights = in_units(panels * w.rows * w.terms * w.size, 64) * 64;
  int64_t bytes_results =
      (w.dense ? 1 : w.together) * threads * w.panels * w.rows * w.chunk * w.size;
  int64_t bytes_gather = threads * w.gathered;
  cpu_room *room = cpu_room_take((size_t)(bytes_offset + bytes_weights + bytes_results +
                                          bytes_gather + at_once * w.image * w.size));
  if (!room) return fail_memory("the images of a convolution");
  w.offset = (int64_t *)(void *)room->data;
  w.weights = room->data + bytes_offset;
  w.results = w.weights + bytes_weights;
  w.gather = w.results + bytes_results;
  w.images = w.gather + bytes_gather;
  find_offsets(&w);
  parallel_for_most(threads, panels, CPU_GRAIN / (w.rows * w.terms) + 1, pack_weights, &w);
  for (; w.first < c->n; w.first += at_once) {
    w.at_hand = least(at_once, c->n - w.first);
    int64_t items = in_units(w.at_hand, w.together) * c->groups * w.chunks;
    parallel_part part = w.dense ? convolve_dense : convolve_items;
    int64_t each = w.panels * w.rows * w.terms * w.chunk; /* multiplications of an item */
    parallel_for_most(threads, w.at_hand * c->groups * c->channels, CPU_GRAIN / w.plane + 1,
                      copy_planes, &w);
    parallel_for_most(threads, items, FEW / each + 1, part, &w);
  }
  cpu_room_give(room);
  return WEIR_OK;
}
