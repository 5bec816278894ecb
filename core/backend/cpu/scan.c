/* cpu/scan.c: running reductions on the cpu.
 *
 * What is accumulated is double for floating point, whatever the dtype, and int64 for integers.
 * Elements pass through buffers of CPU_BLOCK: int64, float32, float64 or complex64, in which a
 * kernel runs. Lines side by side (inner is not 1) go forward together, TILE at a time.
 *
 * Threads share the lines. Of a single long line they share pieces: a running sum within a piece
 * begins at nothing, and what is before the piece is added to each of it. One thread alone does
 * just so in one pass, so that no bit depends on how many there are. Products and log_sum have no
 * pieces: nothing after an underflow is what it was. */
#include <math.h>
#include <string.h>
#include "core/backend/cpu/cpu.h"
#include "core/backend/threads.h"

enum { SCAN_PIECE = 1 << 16, SCAN_PIECES = 256, SCAN_TILE = 256 };

/* What a line has come to: floating point in f (imaginary in f[1]), integers in i. */
typedef struct running {
  double f[2];
  int64_t i, at; /* at: the extreme's place; -1: none yet */
} running;

/* n elements of one line, the first of which has place `first`: local has come to what is before
 * them in their piece, `before` is what is before the piece. out may be in; at: places. */
typedef void (*scan_line)(running *local, const running *before, const void *in, void *out,
                          int64_t *at, int64_t n, int64_t first);
/* Element `place` of n lines. */
typedef void (*scan_across)(running *lines, const void *in, void *out, int64_t *at, int64_t n,
                            int64_t place);

typedef struct scan_kernels {
  scan_line line;
  scan_across across;
} scan_kernels;

/* ---- one element more ------------------------------------------------------------------------ */

static inline double log_add(double a, double b)
{
  double least = isnan(a) || a < b ? a : b, most = isnan(a) || a > b ? a : b;
  if (isnan(b)) return b;
  return least != most || isfinite(least) ? most + log1p(exp(least - most)) : a;
}

#define SCAN_TAKES_SUM_INT(s, x)   ((s)->i = (int64_t)((uint64_t)(s)->i + (uint64_t)(x)))
#define SCAN_TAKES_PROD_INT(s, x)  ((s)->i = (int64_t)((uint64_t)(s)->i * (uint64_t)(x)))
#define SCAN_TAKES_SUM_REAL(s, x)  ((s)->f[0] += (double)(x))
#define SCAN_TAKES_PROD_REAL(s, x) ((s)->f[0] *= (double)(x))
#define SCAN_TAKES_LSE_REAL(s, x)  ((s)->f[0] = log_add((double)(x), (s)->f[0]))

/* One of the accumulations above, with what is before the piece added by `with`. */
#define SCAN_KERNELS(name, type, part, takes, with)                                                \
  static void name##_line(running *local, const running *before, const void *in, void *out,        \
                          int64_t *at, int64_t n, int64_t first)                                   \
  {                                                                                                \
    const type *x = in;                                                                            \
    type *to = out;                                                                                \
    running s = *local, b = *before;                                                               \
    (void)at, (void)first, (void)b;                                                                \
    for (int64_t i = 0; i < n; i++) {                                                              \
      takes(&s, x[i]);                                                                             \
      if (to) to[i] = (type)(with(b.part, s.part));                                                \
    }                                                                                              \
    *local = s;                                                                                    \
  }                                                                                                \
  static void name##_across(running *lines, const void *in, void *out, int64_t *at, int64_t n,     \
                            int64_t place)                                                         \
  {                                                                                                \
    const type *x = in;                                                                            \
    type *to = out;                                                                                \
    (void)at, (void)place;                                                                         \
    for (int64_t j = 0; j < n; j++) {                                                              \
      takes(&lines[j], x[j]);                                                                      \
      to[j] = (type)lines[j].part;                                                                 \
    }                                                                                              \
  }
#define WITH_SUM(b, s)      ((b) + (s))
#define WITH_WRAPPED(b, s)  ((uint64_t)(b) + (uint64_t)(s))
#define WITHOUT_PIECE(b, s) (s)
SCAN_KERNELS(sum_int64, int64_t, i, SCAN_TAKES_SUM_INT, WITH_WRAPPED)
SCAN_KERNELS(sum_float32, float, f[0], SCAN_TAKES_SUM_REAL, WITH_SUM)
SCAN_KERNELS(sum_float64, double, f[0], SCAN_TAKES_SUM_REAL, WITH_SUM)
SCAN_KERNELS(prod_int64, int64_t, i, SCAN_TAKES_PROD_INT, WITHOUT_PIECE)
SCAN_KERNELS(prod_float32, float, f[0], SCAN_TAKES_PROD_REAL, WITHOUT_PIECE)
SCAN_KERNELS(prod_float64, double, f[0], SCAN_TAKES_PROD_REAL, WITHOUT_PIECE)
SCAN_KERNELS(lse_float32, float, f[0], SCAN_TAKES_LSE_REAL, WITHOUT_PIECE)
SCAN_KERNELS(lse_float64, double, f[0], SCAN_TAKES_LSE_REAL, WITHOUT_PIECE)

static inline void add_complex(running *s, float re, float im)
{
  s->f[0] += (double)re;
  s->f[1] += (double)im;
}

static inline void multiply_complex(running *s, float re, float im)
{
  double real = s->f[0] * (double)re - s->f[1] * (double)im;
  s->f[1] = s->f[0] * (double)im + s->f[1] * (double)re;
  s->f[0] = real;
}

#define SCAN_COMPLEX(name, takes, before_real, before_imag)                                        \
  static void name##_line(running *local, const running *before, const void *in, void *out,        \
                          int64_t *at, int64_t n, int64_t first)                                   \
  {                                                                                                \
    const float *x = in;                                                                           \
    float *to = out;                                                                               \
    (void)at, (void)first, (void)before;                                                           \
    for (int64_t i = 0; i < n; i++) {                                                              \
      takes(local, x[2 * i], x[2 * i + 1]);                                                        \
      if (!to) continue;                                                                           \
      to[2 * i] = (float)(before_real + local->f[0]);                                              \
      to[2 * i + 1] = (float)(before_imag + local->f[1]);                                          \
    }                                                                                              \
  }                                                                                                \
  static void name##_across(running *lines, const void *in, void *out, int64_t *at, int64_t n,     \
                            int64_t place)                                                         \
  {                                                                                                \
    const float *x = in;                                                                           \
    float *to = out;                                                                               \
    (void)at, (void)place;                                                                         \
    for (int64_t j = 0; j < n; j++) {                                                              \
      takes(&lines[j], x[2 * j], x[2 * j + 1]);                                                    \
      to[2 * j] = (float)lines[j].f[0];                                                            \
      to[2 * j + 1] = (float)lines[j].f[1];                                                        \
    }                                                                                              \
  }
SCAN_COMPLEX(sum_complex64, add_complex, before->f[0], before->f[1])
SCAN_COMPLEX(prod_complex64, multiply_complex, 0, 0)

/* The last of equals; NaN before all. */
#define SCAN_EXTREME(name, type, part, better)                                                     \
  static inline void name##_takes(running *s, type x, int64_t place)                               \
  {                                                                                                \
    if (s->at >= 0 && !(x != x) && !(s->part better x)) return;                                    \
    s->part = x;                                                                                   \
    s->at = place;                                                                                 \
  }                                                                                                \
  static void name##_line(running *local, const running *before, const void *in, void *out,        \
                          int64_t *at, int64_t n, int64_t first)                                   \
  {                                                                                                \
    const type *x = in;                                                                            \
    type *to = out;                                                                                \
    running s = *local, b = *before;                                                               \
    for (int64_t i = 0; i < n; i++) {                                                              \
      name##_takes(&s, x[i], first + i);                                                           \
      if (!to) continue;                                                                           \
      bool mine = b.at < 0 || s.part != s.part || b.part better s.part;                            \
      to[i] = (type)(mine ? s.part : b.part);                                                      \
      at[i] = mine ? s.at : b.at;                                                                  \
    }                                                                                              \
    *local = s;                                                                                    \
  }                                                                                                \
  static void name##_across(running *lines, const void *in, void *out, int64_t *at, int64_t n,     \
                            int64_t place)                                                         \
  {                                                                                                \
    const type *x = in;                                                                            \
    type *to = out;                                                                                \
    for (int64_t j = 0; j < n; j++) {                                                              \
      name##_takes(&lines[j], x[j], place);                                                        \
      to[j] = (type)lines[j].part;                                                                 \
      at[j] = lines[j].at;                                                                         \
    }                                                                                              \
  }
SCAN_EXTREME(max_int64, int64_t, i, <=)
SCAN_EXTREME(max_float32, float, f[0], <=)
SCAN_EXTREME(max_float64, double, f[0], <=)
SCAN_EXTREME(min_int64, int64_t, i, >=)
SCAN_EXTREME(min_float32, float, f[0], >=)
SCAN_EXTREME(min_float64, double, f[0], >=)

#define KERNEL_PAIR(name)                                                                          \
  {                                                                                                \
    name##_line, name##_across                                                                     \
  }
#define KERNELS_OF(name)                                                                           \
  KERNEL_PAIR(name##_int64), KERNEL_PAIR(name##_float32), KERNEL_PAIR(name##_float64)
#define SCAN_sum  KERNELS_OF(sum), KERNEL_PAIR(sum_complex64)
#define SCAN_prod KERNELS_OF(prod), KERNEL_PAIR(prod_complex64)
#define SCAN_lse  {NULL, NULL}, KERNEL_PAIR(lse_float32), KERNEL_PAIR(lse_float64)
#define SCAN_max  KERNELS_OF(max)
#define SCAN_min  KERNELS_OF(min)
static const struct scan_row {
  const char *name;
  uint32_t computes;
  scan_kernels kernels[4]; /* int64, float32, float64, complex64 */
} scan_rows[WEIR_SCAN_COUNT] = {
#define ROW(name, text, computes, host, device) {text, computes, {SCAN_##host}},
    WEIR_SCAN_OPS(ROW)
#undef ROW
};

/* ---- lines ----------------------------------------------------------------------------------- */

typedef struct scan_work {
  const weir_scan *s;
  scan_kernels kernels;
  weir_dtype buffer; /* what kernels take */
  int64_t bytes;     /* of an element of in and out */
  int64_t pieces, piece;
  running *before; /* a piece's: what is before it */
} scan_work;

static running nothing_yet(const weir_scan *s)
{
  running none = {.at = -1};
  if (s->op == WEIR_SCAN_CUMPROD) none.f[0] = 1, none.i = 1;
  if (s->op == WEIR_SCAN_LOGCUMSUMEXP) none.f[0] = -INFINITY;
  return none;
}

/* n elements, those of `in` as the kernel takes them: themselves, or in `room`. */
static const void *scan_take(const scan_work *w, int64_t at, int64_t n, void *room)
{
  const char *x = (const char *)w->s->in + at * w->bytes;
  if (w->s->dtype == w->buffer) return x;
  cpu_level_in_use()->cast[w->buffer][w->s->dtype](room, x, n);
  return room;
}

static void *scan_place(const scan_work *w, int64_t at, void *room)
{
  return w->s->dtype == w->buffer ? (char *)w->s->out + at * w->bytes : room;
}

static void scan_put(const scan_work *w, int64_t at, int64_t n, const void *room)
{
  if (w->s->dtype == w->buffer) return;
  cpu_level_in_use()->cast[w->s->dtype][w->buffer]((char *)w->s->out + at * w->bytes, room, n);
}

/* Places from to to - 1 of a line without neighbours whose first element is number `base`. */
static void scan_part(const scan_work *w, int64_t base, int64_t from, int64_t to, running *local,
                      const running *before, bool stores)
{
  _Alignas(64) char room[2][CPU_BLOCK * CPU_ELEMENT];
  for (int64_t n; from < to; from += n) {
    n = to - from < CPU_BLOCK ? to - from : CPU_BLOCK;
    const void *x = scan_take(w, base + from, n, room[0]);
    void *out = stores ? scan_place(w, base + from, room[1]) : NULL;
    int64_t *at = stores && w->s->index ? w->s->index + base + from : NULL;
    w->kernels.line(local, before, x, out, at, n, from);
    if (stores) scan_put(w, base + from, n, out);
  }
}

/* What is before a piece, and the piece itself, become what is before the next. */
static void add_piece(const scan_work *w, running *before, const running *local)
{
  const weir_scan *s = w->s;
  if (s->op == WEIR_SCAN_CUMSUM) {
    before->f[0] += local->f[0];
    before->f[1] += local->f[1];
    before->i = (int64_t)((uint64_t)before->i + (uint64_t)local->i);
    return;
  }
  bool least = s->op == WEIR_SCAN_CUMMIN, nan = isnan(local->f[0]);
  bool more = w->buffer == WEIR_INT64 ? (least ? local->i <= before->i : local->i >= before->i)
              : least                 ? local->f[0] <= before->f[0]
                                      : local->f[0] >= before->f[0];
  if (before->at < 0 || nan || more) *before = *local;
}

static void scan_whole(const scan_work *w, int64_t base)
{
  running before = nothing_yet(w->s);
  for (int64_t p = 0; p < w->pieces; p++) {
    running local = nothing_yet(w->s);
    int64_t from = p * w->piece, to = from + w->piece;
    scan_part(w, base, from, to < w->s->length ? to : w->s->length, &local, &before, true);
    add_piece(w, &before, &local);
  }
}

static void some_lines(void *arg, int64_t from, int64_t to)
{
  const scan_work *w = arg;
  for (int64_t o = from; o < to; o++)
    scan_whole(w, o * w->s->length);
}

/* ---- pieces of a long line ------------------------------------------------------------------- */

static void total_pieces(void *arg, int64_t from, int64_t to)
{
  const scan_work *w = arg;
  for (int64_t p = from; p < to; p++) {
    int64_t begin = p * w->piece, end = begin + w->piece;
    running local = nothing_yet(w->s);
    scan_part(w, 0, begin, end < w->s->length ? end : w->s->length, &local, &local, false);
    w->before[p] = local;
  }
}

static void scan_pieces(void *arg, int64_t from, int64_t to)
{
  const scan_work *w = arg;
  for (int64_t p = from; p < to; p++) {
    int64_t begin = p * w->piece, end = begin + w->piece;
    running local = nothing_yet(w->s);
    scan_part(w, 0, begin, end < w->s->length ? end : w->s->length, &local, &w->before[p], true);
  }
}

/* The only line, by several threads. */
static void share_line(scan_work *w)
{
  running before[SCAN_PIECES], so_far = nothing_yet(w->s);
  w->before = before;
  parallel_for(w->pieces, 1, total_pieces, w);
  for (int64_t p = 0; p < w->pieces; p++) {
    running piece = before[p];
    before[p] = so_far;
    add_piece(w, &so_far, &piece);
  }
  parallel_for(w->pieces, 1, scan_pieces, w);
  w->before = NULL;
}

/* ---- lines side by side ---------------------------------------------------------------------- */

static void some_scan_tiles(void *arg, int64_t from, int64_t to)
{
  const scan_work *w = arg;
  const weir_scan *s = w->s;
  int64_t tiles = (s->inner - 1) / SCAN_TILE + 1;
  _Alignas(64) char room[2][SCAN_TILE * CPU_ELEMENT];
  running lines[SCAN_TILE];
  for (int64_t t = from; t < to; t++) {
    int64_t first = t % tiles * SCAN_TILE, n = s->inner - first;
    int64_t at = t / tiles * s->length * s->inner + first;
    if (n > SCAN_TILE) n = SCAN_TILE;
    for (int64_t j = 0; j < n; j++)
      lines[j] = nothing_yet(s);
    for (int64_t i = 0; i < s->length; i++, at += s->inner) {
      const void *x = scan_take(w, at, n, room[0]);
      void *out = scan_place(w, at, room[1]);
      w->kernels.across(lines, x, out, s->index ? s->index + at : NULL, n, i);
      scan_put(w, at, n, out);
    }
  }
}

weir_status cpu_scan(void *self, void *stream, const weir_scan *s)
{
  (void)self, (void)stream;
  const struct scan_row *row = &scan_rows[s->op];
  weir_dtype real = cpu_kernel_dtype(s->dtype);
  bool extreme = s->op == WEIR_SCAN_CUMMAX || s->op == WEIR_SCAN_CUMMIN;
  int kind = real == WEIR_COMPLEX64 ? 3 : real == WEIR_FLOAT64 ? 2 : real == WEIR_FLOAT32 ? 1 : 0;
  static const weir_dtype buffers[] = {WEIR_INT64, WEIR_FLOAT32, WEIR_FLOAT64, WEIR_COMPLEX64};
  if (!(row->computes >> s->dtype & 1)) return cpu_no_kernel(row->name, s->dtype);
  scan_work w = {.s = s,
                 .kernels = row->kernels[kind],
                 .buffer = buffers[kind],
                 .bytes = (int64_t)cpu_dtype_bytes(s->dtype),
                 .piece = s->length,
                 .pieces = 1};
  if ((extreme || s->op == WEIR_SCAN_CUMSUM) && s->length > SCAN_PIECE) {
    int64_t least = (s->length + SCAN_PIECES - 1) / SCAN_PIECES;
    w.piece = least > SCAN_PIECE ? least : SCAN_PIECE;
    w.pieces = (s->length - 1) / w.piece + 1;
  }
  int64_t tile = s->inner < SCAN_TILE ? s->inner : SCAN_TILE;
  if (s->inner > 1)
    parallel_for(s->outer * ((s->inner - 1) / SCAN_TILE + 1), CPU_GRAIN / (s->length * tile) + 1,
                 some_scan_tiles, &w);
  else if (s->outer == 1 && w.pieces > 1 && weir_get_num_threads() > 1)
    share_line(&w);
  else
    parallel_for(s->outer, CPU_GRAIN / s->length + 1, some_lines, &w);
  return WEIR_OK;
}
