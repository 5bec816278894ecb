/* cpu/softmax.c: softmax and its logarithm on the cpu, and what comes back through them.
 *
 * The elements that are one result's are a row where they follow each other (inner 1), else columns
 * that lie side by side: those go through the kernels CPU_COLUMNS at a time, or, where there are
 * but a few, each is copied together as a row. float16 and bfloat16 are calculated in float32, in
 * room that each thread has of its own. Rows are shared by the threads, never one row by several:
 * no bit depends on their number. */
#include <stdlib.h>
#include "core/backend/cpu/rows.h"
#include "core/backend/threads.h"

enum {
  NARROW = 8,  /* columns that are copied together as rows */
  BATCH = 2048 /* elements of rows that are copied together */
};

typedef struct work {
  const weir_softmax_request *s;
  const cpu_softmax_kernels *kernels;
  weir_dtype wide;         /* FLOAT32, FLOAT64 */
  int64_t size, wide_size; /* bytes of an element, of one of `wide` */
  int64_t tiles;           /* columns are cut into, for each outer */
  bool copied;             /* through room */
  char *room;              /* owned */
  int64_t room_elements;   /* of one operand, of one thread */
  int64_t batch;           /* rows that are copied together */
} work;

static bool by_rows(const work *w)
{
  return w->s->inner < NARROW;
}

/* Where unit `u`, a tile of columns or a row, begins, in elements; its width. */
static int64_t unit_at(const work *w, int64_t u, int64_t *width)
{
  const weir_softmax_request *s = w->s;
  int64_t outer = u / w->tiles, tile = u % w->tiles, most = by_rows(w) ? 1 : CPU_COLUMNS;
  *width = s->inner - tile * most < most ? s->inner - tile * most : most;
  return outer * s->each * s->inner + tile * most;
}

/* Elements from `at` on, `count` of them `stride` apart, into room as the kernel's type. */
static void gather_row(const work *w, char *room, const char *at, int64_t count, int64_t stride)
{
  weir_operand o = {.data = (void *)at, .dtype = w->s->dtype, .stride = {stride}};
  _Alignas(64) char block[CPU_BLOCK * CPU_ELEMENT];
  cpu_walk walk;
  cpu_cast cast = cpu_level_in_use()->cast[w->wide][o.dtype];
  if (stride == 1) {
    cast(room, at, count);
    return;
  }
  cpu_walk_start(&walk, &o, 1, &count, 0);
  for (int64_t i = 0, n; i < count; i += n) {
    n = count - i < CPU_BLOCK ? count - i : CPU_BLOCK;
    cast(room + i * w->wide_size, cpu_walk_take(&walk, n, block), n);
  }
}

static void spread_row(const work *w, char *at, const char *room, int64_t count, int64_t stride)
{
  weir_operand o = {.data = at, .dtype = w->s->dtype, .stride = {stride}};
  _Alignas(64) char block[CPU_BLOCK * CPU_ELEMENT];
  cpu_walk walk;
  cpu_cast cast = cpu_level_in_use()->cast[o.dtype][w->wide];
  if (stride == 1 || count == 1) {
    cast(at, room, count);
    return;
  }
  cpu_walk_start(&walk, &o, 1, &count, 0);
  for (int64_t i = 0, n; i < count; i += n) {
    n = count - i < CPU_BLOCK ? count - i : CPU_BLOCK;
    cast(block, room + i * w->wide_size, n);
    cpu_walk_put(&walk, n, block);
  }
}

/* A unit of one row, or of columns row by row. */
static void move_unit(const work *w, char *room, char *at, int64_t width, bool out)
{
  const weir_softmax_request *s = w->s;
  int64_t rows = by_rows(w) ? 1 : s->each, count = by_rows(w) ? s->each : width;
  for (int64_t i = 0; i < rows; i++) {
    char *memory = at + i * s->inner * w->size, *mine = room + i * width * w->wide_size;
    int64_t stride = by_rows(w) ? s->inner : 1;
    if (out)
      spread_row(w, memory, mine, count, stride);
    else
      gather_row(w, mine, memory, count, stride);
  }
}

static void run_unit(const work *w, char *out, const char *x, const char *grad, int64_t width,
                     int64_t stride)
{
  int64_t n = w->s->each;
  bool logarithm = w->s->logarithm;
  if (by_rows(w) && grad)
    w->kernels->row_back(out, grad, x, n, logarithm);
  else if (by_rows(w))
    w->kernels->row(out, x, n, logarithm);
  else if (grad)
    w->kernels->columns_back(out, grad, x, n, width, stride, logarithm);
  else
    w->kernels->columns(out, x, n, width, stride, logarithm);
}

/* Rows after each other from row `u` on, through room. */
static void run_batch(const work *w, char *in, char *back, int64_t u, int64_t rows)
{
  const weir_softmax_request *s = w->s;
  int64_t at = u * s->each * w->size, row = s->each * w->wide_size;
  gather_row(w, in, (const char *)s->in + at, rows * s->each, 1);
  if (s->grad) gather_row(w, back, (const char *)s->grad + at, rows * s->each, 1);
  for (int64_t r = 0; r < rows; r++)
    run_unit(w, in + r * row, in + r * row, s->grad ? back + r * row : NULL, 1, 1);
  spread_row(w, (char *)s->out + at, in, rows * s->each, 1);
}

static void some_units(void *arg, int64_t from, int64_t to)
{
  const work *w = arg;
  const weir_softmax_request *s = w->s;
  char *in = w->room + 2 * parallel_self() * w->room_elements * w->wide_size;
  char *back = in + w->room_elements * w->wide_size;
  for (int64_t rows; w->batch > 1 && from < to; from += rows) {
    rows = to - from < w->batch ? to - from : w->batch;
    run_batch(w, in, back, from, rows);
  }
  for (int64_t u = from; u < to; u++) {
    int64_t width, at = unit_at(w, u, &width) * w->size;
    const char *x = (const char *)s->in + at, *grad = s->grad ? (const char *)s->grad + at : NULL;
    char *out = (char *)s->out + at;
    if (!w->copied) {
      run_unit(w, out, x, grad, width, s->inner);
      continue;
    }
    move_unit(w, in, (char *)x, width, false);
    if (grad) move_unit(w, back, (char *)grad, width, false);
    run_unit(w, in, in, grad ? back : NULL, width, width);
    move_unit(w, in, out, width, true);
  }
}

weir_status cpu_softmax(void *self, void *stream, const weir_softmax_request *s)
{
  (void)self, (void)stream;
  weir_dtype wide = cpu_kernel_dtype(s->dtype);
  int64_t columns = s->inner < NARROW ? 1 : CPU_COLUMNS;
  int most = weir_get_num_threads();
  work w = {.s = s,
            .kernels = &cpu_rows_in_use()->softmax[wide == WEIR_FLOAT64],
            .wide = wide,
            .size = (int64_t)cpu_dtype_bytes(s->dtype),
            .wide_size = (int64_t)cpu_dtype_bytes(wide),
            .tiles = (s->inner + columns - 1) / columns,
            .copied = wide != s->dtype || (s->inner > 1 && s->inner < NARROW)};
  w.batch = w.copied && s->inner == 1 ? BATCH / (s->each + 1) + 1 : 1;
  if (w.copied) {
    w.room_elements = s->each * w.batch * (s->inner < columns ? s->inner : columns);
    w.room = malloc((size_t)most * 2 * (size_t)(w.room_elements * w.wide_size));
    if (!w.room) return fail_memory("the float32 rows of softmax");
  }
  int64_t unit = s->each * (s->inner < columns ? s->inner : columns);
  parallel_for_most(most, s->outer * w.tiles, CPU_GRAIN / (unit + 1) + 1, some_units, &w);
  free(w.room);
  return WEIR_OK;
}
