/* cpu/window.c: pooling and interpolation on the cpu. A row of results is a part that a thread
 * takes; each element is one thread's sum, in the same order with any number of threads. Averages
 * of float32 and float64 whose windows have several rows are summed in two steps, rows to a line,
 * then places of the line. */
#include <stdlib.h>
#include <string.h>
#include "core/backend/cpu/rows.h"
#include "core/backend/threads.h"
#include "core/backend/window.h"

enum { LINE_MOST = 2048 /* elements of a line, at most */ };

static const cpu_line_kernels *lines_of(int which)
{
  return &cpu_rows_in_use()->line[which - 1];
}

/* Where a row of inputs lies in what goes back: its places, and the outputs that see them. */
typedef struct resampled {
  double scale[3];
  int64_t at[2], first[2], last[2];
} resampled;

/* Elements of a wide window that are side by side in vectors; the widest that is narrow. */
enum { WINDOW_LANES = 64, WINDOW_NARROW = 15 };

/* clang-format off */
#define ELEMENT float
#define MATH    float
#define OF(x)   (x)
#define TO(x)   (x)
#define LOWEST  (-INFINITY)
#define REALS   1
#define AVERAGES 1
#define PLAIN   1
#define PLACE   int32_t
#define LINES   1
#define NAME(x) x##_float32
#include "core/backend/cpu/window_type.h"
#define ELEMENT double
#define MATH    double
#define OF(x)   (x)
#define TO(x)   (x)
#define LOWEST  (-(double)INFINITY)
#define REALS   1
#define AVERAGES 1
#define PLAIN   1
#define PLACE   int64_t
#define LINES   2
#define NAME(x) x##_float64
#include "core/backend/cpu/window_type.h"
#define ELEMENT uint16_t
#define MATH    float
#define OF(x)   float16_to_float(x)
#define TO(x)   float_to_float16(x)
#define LOWEST  0xfc00
#define REALS   1
#define AVERAGES 1
#define PLAIN   0
#define LINES   0
#define NAME(x) x##_float16
#include "core/backend/cpu/window_type.h"
#define ELEMENT uint16_t
#define MATH    float
#define OF(x)   bfloat16_to_float(x)
#define TO(x)   float_to_bfloat16(x)
#define LOWEST  0xff80
#define REALS   1
#define AVERAGES 1
#define PLAIN   0
#define LINES   0
#define NAME(x) x##_bfloat16
#include "core/backend/cpu/window_type.h"
#define ELEMENT uint8_t
#define LOWEST  0
#define NAME(x) x##_uint8
#include "core/backend/cpu/window_type.h"
#define ELEMENT int8_t
#define LOWEST  INT8_MIN
#define NAME(x) x##_int8
#include "core/backend/cpu/window_type.h"
#define ELEMENT int16_t
#define LOWEST  INT16_MIN
#define NAME(x) x##_int16
#include "core/backend/cpu/window_type.h"
#define ELEMENT int32_t
#define LOWEST  INT32_MIN
#define NAME(x) x##_int32
#include "core/backend/cpu/window_type.h"
#define ELEMENT int64_t
#define LOWEST  INT64_MIN
#define AVERAGES 1
#define PLACE   int64_t
#define NAME(x) x##_int64
#include "core/backend/cpu/window_type.h"
/* clang-format on */

/* ---- pooling --------------------------------------------------------------------------------- */

typedef void (*pool_row)(const weir_pool *p, int64_t plane, int64_t z, int64_t y);
typedef void (*pool_plane)(const weir_pool *p, int64_t plane);

/* By dtype; NULL: there is none. */
static const struct pool_rows {
  pool_row max, average, back, average_line;
  pool_plane back_plane;
} pool_rows[WEIR_DTYPES] = {
#define POOL_ROWS(type, average, back, average_line, back_plane)                                   \
  max_row_##type, average, back, average_line, back_plane
#define POOL_FLOATS(type)                                                                          \
  POOL_ROWS(type, average_row_##type, back_row_##type, NULL, back_plane_##type)
#define POOL_LINES(type)                                                                           \
  POOL_ROWS(type, average_row_##type, back_row_##type, average_line_row_##type, back_plane_##type)
#define POOL_INTEGERS(type) POOL_ROWS(type, NULL, NULL, NULL, NULL)
    [WEIR_FLOAT32] = {POOL_LINES(float32)},
    [WEIR_FLOAT64] = {POOL_LINES(float64)},
    [WEIR_FLOAT16] = {POOL_FLOATS(float16)},
    [WEIR_BFLOAT16] = {POOL_FLOATS(bfloat16)},
    [WEIR_UINT8] = {POOL_INTEGERS(uint8)},
    [WEIR_INT8] = {POOL_INTEGERS(int8)},
    [WEIR_INT16] = {POOL_INTEGERS(int16)},
    [WEIR_INT32] = {POOL_INTEGERS(int32)},
    [WEIR_INT64] = {POOL_ROWS(int64, average_row_int64, NULL, NULL, NULL)},
};

typedef struct pool_work {
  const weir_pool *p;
  pool_row row;
  int64_t rows[2]; /* of what is written: depths, rows */
} pool_work;

static void pool_part(void *arg, int64_t from, int64_t to)
{
  const pool_work *w = arg;
  for (int64_t i = from; i < to; i++) {
    int64_t y = i % w->rows[1], rest = i / w->rows[1];
    w->row(w->p, rest / w->rows[0], rest % w->rows[0], y);
  }
}

static void pool_planes(void *arg, int64_t from, int64_t to)
{
  const pool_work *w = arg;
  for (int64_t i = from; i < to; i++)
    pool_rows[w->p->dtype].back_plane(w->p, i);
}

/* Whether what goes back is added where it goes, a plane a part: there are planes for all threads,
 * and sums that are rounded when they are whole have one term. */
static bool is_back_by_planes(const weir_pool *p)
{
  int threads = weir_get_num_threads();
  if (p->kind != WEIR_POOL_MAX_BACK || (threads > 1 && p->planes < 4L * threads)) return false;
  if (p->dtype == WEIR_FLOAT32 || p->dtype == WEIR_FLOAT64) return true;
  for (int i = 0; i < 3; i++)
    if (p->adaptive ? p->axis[i].in % p->axis[i].out
                    : (p->axis[i].kernel - 1) * p->axis[i].dilation >= p->axis[i].stride)
      return false;
  return true;
}

/* By lines, where windows have several rows, and lines no more places than windows see. */
static pool_row row_of_lines(const weir_pool *p)
{
  const weir_axis *x = &p->axis[2];
  if (p->kind != WEIR_POOL_AVERAGE || x->in > LINE_MOST) return NULL;
  if (!p->adaptive && (x->kernel * x->out < x->in || p->axis[0].kernel * p->axis[1].kernel == 1))
    return NULL;
  return pool_rows[p->dtype].average_line;
}

/* Averages of whole planes. */
static void whole_planes(void *arg, int64_t from, int64_t to)
{
  const pool_work *w = arg;
  const weir_axis *a = w->p->axis;
  int64_t each = a[0].in * a[1].in * a[2].in;
  double by = (double)(w->p->divisor ? w->p->divisor : each);
  bool wide = w->p->dtype == WEIR_FLOAT64;
  int64_t size = (int64_t)cpu_dtype_bytes(w->p->dtype);
  lines_of(wide ? 2 : 1)
      ->means((char *)w->p->to + from * size, (const char *)w->p->from + from * each * size,
              to - from, each, by);
}

static bool is_of_whole_planes(const weir_pool *p)
{
  for (int i = 0; i < 3; i++)
    if (p->axis[i].out != 1 ||
        (!p->adaptive && (p->axis[i].kernel != p->axis[i].in || p->axis[i].pad)))
      return false;
  return p->kind == WEIR_POOL_AVERAGE && pool_rows[p->dtype].average_line;
}

/* Rows that a thread takes at a time, for `each` steps of work in one. */
static int64_t rows_at_a_time(double each)
{
  return each > CPU_GRAIN ? 1 : (int64_t)(CPU_GRAIN / (each + 1)) + 1;
}

weir_status cpu_pool(void *self, void *stream, const weir_pool *p)
{
  (void)self, (void)stream;
  bool back = p->kind >= WEIR_POOL_AVERAGE_BACK;
  const struct pool_rows *r = &pool_rows[p->dtype];
  pool_work w = {.p = p, .row = back ? r->back : p->kind == WEIR_POOL_MAX ? r->max : r->average};
  if (!w.row) return cpu_no_kernel("pool", p->dtype);
  if (row_of_lines(p)) w.row = row_of_lines(p);
  if (is_of_whole_planes(p)) {
    int64_t plane = p->axis[0].in * p->axis[1].in * p->axis[2].in;
    parallel_for(p->planes, rows_at_a_time((double)plane), whole_planes, &w);
    return WEIR_OK;
  }
  if (is_back_by_planes(p)) {
    int64_t plane = p->axis[0].in * p->axis[1].in * p->axis[2].in;
    parallel_for(p->planes, rows_at_a_time((double)plane), pool_planes, &w);
    return WEIR_OK;
  }
  double each = 1; /* places of a window */
  for (int i = 0; i < 3; i++)
    each *= p->adaptive ? (double)p->axis[i].in / (double)p->axis[i].out + 1
                        : (double)p->axis[i].kernel;
  for (int i = 0; i < 2; i++)
    w.rows[i] = back ? p->axis[i].in : p->axis[i].out;
  each *= (double)p->axis[2].out;
  parallel_for(p->planes * w.rows[0] * w.rows[1], rows_at_a_time(each), pool_part, &w);
  return WEIR_OK;
}

/* ---- interpolation --------------------------------------------------------------------------- */

typedef struct resample_work {
  const weir_resample *r;
  const window_taps *x; /* of each output place of a row */
  double scale[3];
} resample_work;

/* NEAREST and EXACT: elements as they are. */
static void nearest_row(const weir_resample *r, const window_taps *x, const char *in, char *out)
{
  size_t size = cpu_dtype_bytes(r->dtype);
  for (int64_t o = 0; o < r->out[2]; o++, out += size)
    if (size == 4)
      memcpy(out, in + x[o].at[0] * 4, 4);
    else
      memcpy(out, in + x[o].at[0] * (int64_t)size, size);
}

static void nearest_at(const resample_work *w, int64_t plane, const window_taps *z,
                       const window_taps *y, int64_t at)
{
  const weir_resample *r = w->r;
  int64_t size = (int64_t)cpu_dtype_bytes(r->dtype);
  int64_t row = ((plane * r->in[0] + z->at[0]) * r->in[1] + y->at[0]) * r->in[2];
  nearest_row(r, w->x, (const char *)r->from + row * size, (char *)r->to + at * size);
}

static void resample_part(void *arg, int64_t from, int64_t to)
{
  const resample_work *w = arg;
  const weir_resample *r = w->r;
  for (int64_t i = from; i < to; i++) {
    int64_t plane = i / r->out[1] / r->out[0], at = i * r->out[2];
    window_taps z = taps_of(r, 0, w->scale[0], i / r->out[1] % r->out[0]),
                y = taps_of(r, 1, w->scale[1], i % r->out[1]);
    if (r->kind == WEIR_RESAMPLE_NEAREST || r->kind == WEIR_RESAMPLE_EXACT)
      nearest_at(w, plane, &z, &y, at);
    else if (r->dtype == WEIR_FLOAT32)
      resample_row_float32(r, w->x, plane, &z, &y, at);
    else if (r->dtype == WEIR_FLOAT64)
      resample_row_float64(r, w->x, plane, &z, &y, at);
    else if (r->dtype == WEIR_FLOAT16)
      resample_row_float16(r, w->x, plane, &z, &y, at);
    else
      resample_row_bfloat16(r, w->x, plane, &z, &y, at);
  }
}

static void back_element(const resample_work *w, int64_t plane, const resampled *q, int64_t row,
                         int64_t i)
{
  const weir_resample *r = w->r;
  if (r->dtype == WEIR_FLOAT32)
    ((float *)r->to)[row + i] = resample_back_float32(r, w->x, plane, q, i);
  else if (r->dtype == WEIR_FLOAT64)
    ((double *)r->to)[row + i] = resample_back_float64(r, w->x, plane, q, i);
  else if (r->dtype == WEIR_FLOAT16)
    ((uint16_t *)r->to)[row + i] = float_to_float16(resample_back_float16(r, w->x, plane, q, i));
  else
    ((uint16_t *)r->to)[row + i] = float_to_bfloat16(resample_back_bfloat16(r, w->x, plane, q, i));
}

static void resample_back_part(void *arg, int64_t from, int64_t to)
{
  const resample_work *w = arg;
  const weir_resample *r = w->r;
  resampled q = {.scale = {w->scale[0], w->scale[1], w->scale[2]}};
  for (int64_t row = from; row < to; row++) {
    int64_t plane = row / r->in[1] / r->in[0];
    q.at[0] = row / r->in[1] % r->in[0];
    q.at[1] = row % r->in[1];
    for (int d = 0; d < 2; d++)
      resampled_over(r, d, q.scale[d], q.at[d], &q.first[d], &q.last[d]);
    for (int64_t i = 0; i < r->in[2]; i++)
      back_element(w, plane, &q, row * r->in[2], i);
  }
}

weir_status cpu_resample(void *self, void *stream, const weir_resample *r)
{
  (void)self, (void)stream;
  bool nearest = r->kind == WEIR_RESAMPLE_NEAREST || r->kind == WEIR_RESAMPLE_EXACT;
  if (!(WEIR_DTYPES_FLOATS >> r->dtype & 1) && (r->back || !nearest || r->dtype != WEIR_UINT8))
    return cpu_no_kernel("upsample", r->dtype);
  window_taps *x = malloc((size_t)r->out[2] * sizeof *x);
  if (!x)
    return weir_fail(WEIR_ENOMEM, "no host memory to interpolate rows of %lld",
                     (long long)r->out[2]);
  resample_work w = {.r = r, .x = x};
  for (int d = 0; d < 3; d++)
    w.scale[d] = resample_scale(r, d);
  for (int64_t o = 0; o < r->out[2]; o++)
    x[o] = taps_of(r, 2, w.scale[2], o);
  const int64_t *rows = r->back ? r->in : r->out;
  parallel_for(r->planes * rows[0] * rows[1], rows_at_a_time((double)(rows[2] * 4)),
               r->back ? resample_back_part : resample_part, &w);
  free(x);
  return WEIR_OK;
}
