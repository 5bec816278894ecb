/* cpu/norm.c: normalised rows on the cpu, and what comes back through them (weir_norm_request).
 *
 * A row is one thread's, from its statistics to its result, while it lies in a cache. float16 and
 * bfloat16 are calculated in float32, in room that each thread has of its own. No bit depends on
 * the number of threads. */
#include <stdlib.h>
#include "core/backend/cpu/rows.h"
#include "core/backend/threads.h"

typedef struct work {
  const weir_norm_request *q;
  const cpu_norm_kernels *kernels;
  weir_dtype wide;         /* FLOAT32, FLOAT64 */
  int64_t size, wide_size; /* bytes of an element, of one of `wide` */
  char *room;              /* owned: two rows of `wide` for each thread; NULL: none is needed */
} work;

static void run_row(const work *w, char *out, const char *x, const char *grad,
                    const cpu_norm_row *row)
{
  if (grad)
    w->kernels->row_back(out, grad, x, row);
  else
    w->kernels->row(out, x, row);
}

static void copied_row(const work *w, char *out, const char *x, const char *grad,
                       const cpu_norm_row *row)
{
  const cpu_level *level = cpu_level_in_use();
  weir_dtype d = w->q->dtype;
  char *in = w->room + 2 * parallel_self() * row->n * w->wide_size;
  char *back = in + row->n * w->wide_size;
  level->cast[w->wide][d](in, x, row->n);
  if (grad) level->cast[w->wide][d](back, grad, row->n);
  run_row(w, grad ? back : in, in, grad ? back : NULL, row);
  level->cast[d][w->wide](out, grad ? back : in, row->n);
}

static void some_rows(void *arg, int64_t from, int64_t to)
{
  const work *w = arg;
  const weir_norm_request *q = w->q;
  int64_t parameters = q->each / q->inner * w->wide_size, bytes = q->each * w->size;
  cpu_norm_row row = {.n = q->each, .inner = q->inner, .eps = q->eps, .kind = q->kind};
  if (!w->room && q->kind == WEIR_NORM_AFFINE && q->inner == q->each) {
    w->kernels->affine((char *)q->out + from * bytes, (const char *)q->in + from * bytes, q, from,
                       to - from);
    return;
  }
  for (int64_t i = from; i < to; i++) {
    const char *grad = q->grad ? (const char *)q->grad + i * bytes : NULL;
    int64_t at = i % q->groups * parameters;
    row.weight = q->weight ? (const char *)q->weight + at : NULL;
    row.bias = q->bias ? (const char *)q->bias + at : NULL;
    (w->room ? copied_row : run_row)(w, (char *)q->out + i * bytes, (const char *)q->in + i * bytes,
                                     grad, &row);
  }
}

weir_status cpu_norm(void *self, void *stream, const weir_norm_request *q)
{
  (void)self, (void)stream;
  weir_dtype wide = cpu_kernel_dtype(q->dtype);
  int most = weir_get_num_threads();
  work w = {.q = q,
            .kernels = &cpu_rows_in_use()->norm[wide == WEIR_FLOAT64],
            .wide = wide,
            .size = (int64_t)cpu_dtype_bytes(q->dtype),
            .wide_size = (int64_t)cpu_dtype_bytes(wide)};
  if (wide != q->dtype) {
    w.room = malloc((size_t)most * 2 * (size_t)(q->each * w.wide_size));
    if (!w.room) return fail_memory("the float32 rows of a norm");
  }
  parallel_for_most(most, q->rows, CPU_GRAIN / (q->each + 1) + 1, some_rows, &w);
  free(w.room);
  return WEIR_OK;
}
