/* cpu/reduce.c: reductions on the cpu.
 *
 * Elements are converted to the compute dtype and then to one of four types (int64, double,
 * complex64; float32 and shorter stay or become float32), which a fold takes block by block. Real
 * sums are calculated in double, blocks of float32 without what is lost, all else with it, so that
 * the error of a sum is a few units of the result's last place however many there are, and none of
 * it depends on the number of threads: what one thread does alone is cut into the same pieces.
 *
 * Sums whose elements are few, or far apart where the results' are not: a tile of results is summed
 * at once, a row of elements at a time. Else, many results: the threads share the results. Few
 * results of many elements each: they share the elements, in pieces of PIECE (more where there
 * would be more than PIECES), whose sums are then put together in order. The largest and the least,
 * and variances of float32 and shorter, are tiled as sums are. */
#include <math.h>
#include <string.h>
#include "core/backend/cpu/cpu.h"
#include "core/backend/threads.h"

enum { PIECE = 1 << 16, PIECES = 256, TILE = 512, FEW = 64, SOME = 16 };
enum { LINE = 1 << 12 };       /* elements of a result that are folded at once, a tile of results */
enum { FLAT_BLOCK = 1 << 14 }; /* elements that lie as a fold takes them */

/* What is known of a reduction from its row. */
enum fold {
  FOLD_sum,
  FOLD_prod,
  FOLD_max,
  FOLD_min,
  FOLD_all,
  FOLD_any,
  FOLD_nansum,
  FOLD_var,
  FOLD_norm
};
static const struct row {
  const char *name;
  enum fold fold;
  uint8_t gives;
} rows[WEIR_REDUCE_COUNT] = {
#define ROW(name, text, gives, computes, order, empty, host, ...)                                  \
  {text, FOLD_##host, WEIR_GIVES_##gives},
    WEIR_REDUCE_OPS(ROW)
#undef ROW
};

typedef struct work {
  const weir_reduce *r;
  weir_dtype in;    /* what elements become before they become wide */
  weir_dtype wide;  /* INT64, FLOAT64, COMPLEX64: what a result is before it is rounded */
  weir_dtype folds; /* wide, or FLOAT32, or `in` as it is: what fold takes */
  cpu_fold fold;
  weir_operand inner; /* the input, its strides those of the reduced dimensions */
  int64_t tile;       /* results */
  int64_t output;     /* shared by its elements: which result */
  int64_t piece;      /* elements */
  cpu_sum *sums;      /* shared by its elements: a sum a piece */
} work;

static bool is_narrow(const work *w)
{
  return cpu_kernel_dtype(w->folds) == WEIR_FLOAT32;
}

static cpu_sum empty_sum(weir_reduce_op op)
{
  enum fold fold = rows[op].fold;
  cpu_sum s = {.at = -1, .anywhere = op == WEIR_REDUCE_MAX || op == WEIR_REDUCE_MIN};
  if (fold == FOLD_prod || fold == FOLD_all) s.f[0] = 1, s.i = 1;
  return s;
}

/* Where result number `output` has its elements and itself. */
static char *place_of_result(const weir_operand *o, const weir_reduce *r, int64_t output)
{
  int64_t elements = 0;
  for (int d = r->kept - 1; d > 0; d--) {
    elements += output % r->size[d] * o->stride[d];
    output /= r->size[d];
  }
  if (r->kept) elements += output * o->stride[0];
  return (char *)o->data + elements * (int64_t)cpu_dtype_bytes(o->dtype);
}

/* What is taken from all elements of a variance first, so that their squares are small: one of
 * them. */
static double first_of(const char *data, weir_dtype dtype)
{
  double first;
  cpu_level_in_use()->cast[WEIR_FLOAT64][dtype](&first, data, 1);
  return isfinite(first) ? first : 0;
}

/* n elements as the fold takes them: themselves, or in one of both rooms. */
static const void *fold_operand(const work *w, const void *x, weir_dtype from, int64_t n,
                                char room[2][CPU_BLOCK * CPU_ELEMENT])
{
  const cpu_level *level = cpu_level_in_use();
  if (from != w->in) {
    level->cast[w->in][from](room[0], x, n);
    x = room[0];
  }
  if (w->in == w->folds) return x;
  level->cast[w->folds][w->in](room[1], x, n);
  return room[1];
}

/* How many elements are folded at once: more where they lie as the fold takes them. */
static int64_t fold_most(const work *w, const cpu_walk *walk, weir_dtype from)
{
  int64_t run = cpu_walk_run(walk);
  if (from != w->in || w->in != w->folds) /* they need room */
    return is_narrow(w) && cpu_dtype_bytes(from) <= 4 ? CPU_SHORT_BLOCK : CPU_BLOCK;
  return run >= FLAT_BLOCK ? FLAT_BLOCK : run >= CPU_BLOCK / 4 ? run : CPU_BLOCK;
}

static cpu_sum fold_range(const work *w, int64_t output, int64_t from, int64_t to)
{
  const weir_reduce *r = w->r;
  _Alignas(64) char taken[CPU_BLOCK * CPU_ELEMENT], room[2][CPU_BLOCK * CPU_ELEMENT];
  const char *data = place_of_result(&r->in, r, output);
  weir_dtype dtype = r->in.dtype;
  cpu_sum s = empty_sum(r->op);
  cpu_walk walk;
  if (from == to) return s;
  s.p = rows[r->op].fold == FOLD_var ? first_of(data, dtype) : r->p;
  cpu_walk_start(&walk, &w->inner, r->dims - r->kept, r->size + r->kept, from);
  walk.at += data - (const char *)r->in.data;
  for (int64_t n; from < to; from += n) {
    int64_t most = fold_most(w, &walk, dtype);
    n = to - from < most ? to - from : most;
    const void *x = cpu_walk_take(&walk, n, taken);
    w->fold(&s, fold_operand(w, x, dtype, n, room), n, from);
  }
  return s;
}

/* ---- results --------------------------------------------------------------------------------- */

static double total(const cpu_sum *s, int part)
{
  double t = s->f[part] + s->c[part];
  return isfinite(s->f[part]) ? t : s->f[part];
}

/* `value` of `from`, rounded to the compute dtype and stored as out's. */
static void store_value(void *out, const work *w, const void *value, weir_dtype from)
{
  weir_dtype dtype = w->r->out.dtype;
  if (from == WEIR_FLOAT64 && w->r->compute == WEIR_FLOAT32 && dtype == WEIR_FLOAT32) {
    *(float *)out = (float)*(const double *)value;
    return;
  }
  char rounded[CPU_ELEMENT];
  const cpu_level *level = cpu_level_in_use();
  level->cast[w->r->compute][from](rounded, value, 1);
  level->cast[dtype][w->r->compute](out, rounded, 1);
}

/* The variance (STD: its root), and what elements are more than s->p on average. */
static double variance(const weir_reduce *r, const cpu_sum *s, double *more)
{
  double n = (double)r->each, left = n - r->p > 0 ? n - r->p : 0;
  *more = total(s, 0) / n;
  double squares = total(s, 1) - total(s, 0) * *more;
  double v = r->each ? (squares < 0 ? 0 : squares) / left : NAN;
  return r->op == WEIR_REDUCE_STD ? sqrt(v) : v;
}

/* The result of a floating-point fold. */
static double real_result(const work *w, int64_t output, const cpu_sum *s)
{
  const weir_reduce *r = w->r;
  enum fold fold = rows[r->op].fold;
  double more, sum = total(s, 0);
  if (fold == FOLD_norm)
    return r->p == 0 || r->p == 1 ? sum : r->p == 2 ? sqrt(sum) : pow(sum, 1 / r->p);
  if (fold != FOLD_var) return sum / (r->op == WEIR_REDUCE_MEAN ? (double)r->each : 1);
  double v = variance(r, s, &more), mean = s->p + more;
  if (r->mean.data) store_value(place_of_result(&r->mean, r, output), w, &mean, WEIR_FLOAT64);
  return v;
}

static void finish_reduction(const work *w, int64_t output, const cpu_sum *s)
{
  const weir_reduce *r = w->r;
  char *out = place_of_result(&r->out, r, output);
  weir_dtype dtype = r->out.dtype;
  double scale = r->op == WEIR_REDUCE_MEAN ? (double)r->each : 1;
  double real = real_result(w, output, s);
  float complex[2] = {(float)real, (float)(total(s, 1) / scale)};
  int gives = rows[r->op].gives;
  if (r->op == WEIR_REDUCE_MAX_INDEX || r->op == WEIR_REDUCE_MIN_INDEX)
    memcpy(place_of_result(&r->index, r, output), &s->at, sizeof s->at);
  if (gives == WEIR_GIVES_PLACE)
    cpu_level_in_use()->cast[dtype][WEIR_INT64](out, &s->at, 1);
  else if (gives == WEIR_GIVES_BOOL || gives == WEIR_GIVES_COUNT)
    cpu_level_in_use()->cast[dtype][WEIR_INT64](out, &s->i, 1);
  else if (w->wide == WEIR_INT64)
    store_value(out, w, &s->i, WEIR_INT64);
  else if (w->wide == WEIR_FLOAT64)
    store_value(out, w, &real, WEIR_FLOAT64);
  else
    store_value(out, w, complex, WEIR_COMPLEX64);
}

/* ---- pieces put together --------------------------------------------------------------------- */

static bool better(const work *w, const cpu_sum *a, const cpu_sum *b)
{
  bool small = rows[w->r->op].fold == FOLD_min;
  if (w->wide == WEIR_INT64) return small ? a->i < b->i : a->i > b->i;
  if (isnan(b->f[0])) return false;
  return isnan(a->f[0]) || (small ? a->f[0] < b->f[0] : a->f[0] > b->f[0]);
}

static void add_sums(cpu_sum *s, const cpu_sum *next)
{
  for (int k = 0; k < 2; k++) {
    double t = s->f[k] + next->f[k], part = t - s->f[k];
    s->c[k] += next->c[k] + ((s->f[k] - (t - part)) + (next->f[k] - part));
    s->f[k] = t;
  }
  s->i = (int64_t)((uint64_t)s->i + (uint64_t)next->i);
}

static void multiply_items(cpu_sum *s, const cpu_sum *next)
{
  double real = s->f[0] * next->f[0] - s->f[1] * next->f[1];
  s->f[1] = s->f[0] * next->f[1] + s->f[1] * next->f[0];
  s->f[0] = real;
  s->i = (int64_t)((uint64_t)s->i * (uint64_t)next->i);
}

static void combine_sums(const work *w, cpu_sum *s, const cpu_sum *next)
{
  switch (rows[w->r->op].fold) {
  case FOLD_sum:
  case FOLD_nansum:
  case FOLD_var:
  case FOLD_norm:
    add_sums(s, next);
    break;
  case FOLD_prod:
    multiply_items(s, next);
    break;
  case FOLD_all:
    s->i &= next->i;
    break;
  case FOLD_any:
    s->i |= next->i;
    break;
  default:
    if (s->at < 0 || better(w, next, s)) *s = *next;
  }
}

static void some_pieces(void *arg, int64_t from, int64_t to)
{
  const work *w = arg;
  for (int64_t p = from; p < to; p++) {
    int64_t begin = p * w->piece, end = begin + w->piece;
    w->sums[p] = fold_range(w, w->output, begin, end < w->r->each ? end : w->r->each);
  }
}

/* In the same pieces as threads would share. */
static void some_results(void *arg, int64_t from, int64_t to)
{
  const work *w = arg;
  int64_t each = w->r->each, piece = w->piece;
  for (int64_t o = from; o < to; o++) {
    cpu_sum s = fold_range(w, o, 0, each < piece ? each : piece);
    for (int64_t p = piece; p < each; p += piece) {
      cpu_sum next = fold_range(w, o, p, each - p < piece ? each : p + piece);
      combine_sums(w, &s, &next);
    }
    finish_reduction(w, o, &s);
  }
}

/* Results of so many elements that threads share them. */
static void large_results(work *w)
{
  cpu_sum sums[PIECES];
  int64_t each = w->r->each, pieces = (each - 1) / w->piece + 1;
  w->sums = sums;
  for (w->output = 0; w->output < w->r->outputs; w->output++) {
    parallel_for(pieces, 1, some_pieces, w);
    for (int64_t p = 1; p < pieces; p++)
      combine_sums(w, &sums[0], &sums[p]);
    finish_reduction(w, w->output, &sums[0]);
  }
  w->sums = NULL;
}

/* ---- tiles of results ------------------------------------------------------------------------ */

/* Whether rows of results are float32 or shorter, one element after the other. */
static bool has_narrow_rows(const work *w)
{
  const weir_reduce *r = w->r;
  return r->kept && is_narrow(w) && r->in.dtype == w->in && r->in.stride[r->kept - 1] == 1;
}

/* n elements of such a row as float32: themselves or in `room`. */
static const float *narrow_row(const work *w, const char *at, int64_t n, float room[TILE])
{
  if (w->in == WEIR_FLOAT32) return (const float *)(const void *)at;
  cpu_level_in_use()->cast[WEIR_FLOAT32][w->in](room, at, n);
  return room;
}

/* Whether each result's elements follow each other, few enough for one fold. */
static bool has_lines(const work *w)
{
  const weir_reduce *r = w->r;
  bool one = rows[r->op].fold == FOLD_sum || r->op == WEIR_REDUCE_MAX || r->op == WEIR_REDUCE_MIN;
  return one && r->kept && r->dims == r->kept + 1 && r->in.stride[r->kept] == 1 && r->each &&
         r->each <= LINE && is_narrow(w) && r->in.dtype == w->in;
}

static bool is_tiled(const work *w)
{
  const weir_reduce *r = w->r;
  if (has_lines(w)) return true;
  bool best = (r->op == WEIR_REDUCE_MAX || r->op == WEIR_REDUCE_MIN) && has_narrow_rows(w);
  if (rows[r->op].fold == FOLD_var) best = has_narrow_rows(w);
  if (!best && (w->wide != WEIR_FLOAT64 || rows[r->op].fold != FOLD_sum)) return false;
  if (!r->kept || r->dims == r->kept || r->size[r->kept - 1] < 8 || !r->each) return false;
  if (r->each > PIECE && r->outputs < FEW) return false;
  return r->each < FEW || r->in.stride[r->dims - 1] != 1;
}

/* To the next element in the reduced dimensions: how many elements that is from the last. */
static int64_t step_element(const weir_reduce *r, int64_t place[WEIR_DIMS])
{
  int64_t by = 0;
  for (int d = r->dims - 1; d >= r->kept; d--) {
    by += r->in.stride[d];
    if (++place[d] < r->size[d]) break;
    by -= r->size[d] * r->in.stride[d];
    place[d] = 0;
  }
  return by;
}

/* n elements, those of neighbouring results, as doubles: x itself or in `room`. */
static const double *row_of(const work *w, const char *at, int64_t n,
                            char room[2][TILE * CPU_ELEMENT])
{
  const weir_reduce *r = w->r;
  const cpu_level *level = cpu_level_in_use();
  weir_operand o = {
      .data = (void *)at, .dtype = r->in.dtype, .stride = {r->in.stride[r->kept - 1]}};
  cpu_walk walk;
  cpu_walk_start(&walk, &o, 1, &n, 0);
  const void *x = cpu_walk_take(&walk, n, room[0]);
  if (o.dtype != w->in) {
    level->cast[w->in][o.dtype](room[1], x, n);
    x = memcpy(room[0], room[1], (size_t)n * cpu_dtype_bytes(w->in));
  }
  if (w->in == WEIR_FLOAT64) return x;
  level->cast[WEIR_FLOAT64][w->in](room[1], x, n);
  return (const double *)(const void *)room[1];
}

/* The sums of n neighbouring results, eight rows of float16 or bfloat16 at a time; rows that are
 * not there are 0. */
static void sum_half_rows(const work *w, const char *at, double *sum, int64_t n)
{
  static const uint16_t zeros[TILE];
  const weir_reduce *r = w->r;
  int64_t place[WEIR_DIMS] = {0}, bytes = (int64_t)sizeof *zeros;
  const uint16_t *rows_of[8];
  for (int64_t i = 0; i < r->each; i += 8) {
    for (int k = 0; k < 8; k++) {
      rows_of[k] = i + k < r->each ? (const uint16_t *)(const void *)at : zeros;
      if (i + k < r->each) at += step_element(r, place) * bytes;
    }
    cpu_level_in_use()->add_half_rows[w->in == WEIR_BFLOAT16](sum, rows_of, n);
  }
}

/* The sums of n neighbouring results, four rows at a time, in double without what is lost. */
static void sum_narrow_rows(const work *w, const char *at, double *sum, int64_t n)
{
  const weir_reduce *r = w->r;
  int64_t place[WEIR_DIMS] = {0}, i = 0, bytes = (int64_t)cpu_dtype_bytes(r->in.dtype);
  const float *four[4];
  _Alignas(64) float room[4][TILE];
  for (; i + 4 <= r->each; i += 4) {
    for (int k = 0; k < 4; k++) {
      four[k] = narrow_row(w, at, n, room[k]);
      at += step_element(r, place) * bytes;
    }
    cpu_level_in_use()->add_four_rows(sum, four, n);
  }
  for (; i < r->each; i++) {
    cpu_level_in_use()->add_narrow_row(sum, narrow_row(w, at, n, room[0]), n);
    at += step_element(r, place) * bytes;
  }
}

/* The largest or least of n neighbouring results, as doubles. */
static void best_rows(const work *w, const char *at, double *sum, int64_t n)
{
  const weir_reduce *r = w->r;
  const cpu_level *level = cpu_level_in_use();
  bool least = r->op == WEIR_REDUCE_MIN;
  int64_t place[WEIR_DIMS] = {0}, bytes = (int64_t)cpu_dtype_bytes(r->in.dtype);
  float best[TILE], room[TILE];
  memcpy(best, narrow_row(w, at, n, room), (size_t)n * sizeof *best);
  for (int64_t i = 1; i < r->each; i++) {
    at += step_element(r, place) * bytes;
    level->best_of_rows(best, narrow_row(w, at, n, room), n, least);
  }
  level->cast[WEIR_FLOAT64][WEIR_FLOAT32](sum, best, n);
}

/* n neighbouring results, each of a line. */
static void fold_lines(const work *w, const char *at, double *sum, double *lost, int64_t n)
{
  const weir_reduce *r = w->r;
  const cpu_level *level = cpu_level_in_use();
  int64_t step = r->in.stride[r->kept - 1] * (int64_t)cpu_dtype_bytes(w->in);
  _Alignas(64) float room[LINE];
  for (int64_t j = 0; j < n; j++, at += step) {
    cpu_sum s = empty_sum(r->op);
    const void *x = at;
    if (w->in != w->folds) {
      level->cast[WEIR_FLOAT32][w->in](room, at, r->each);
      x = room;
    }
    w->fold(&s, x, r->each, 0);
    sum[j] = s.f[0];
    lost[j] = s.c[0];
  }
}

static void sum_rows(const work *w, const char *at, double *sum, double *lost, int64_t n)
{
  const weir_reduce *r = w->r;
  int64_t place[WEIR_DIMS] = {0}, bytes = (int64_t)cpu_dtype_bytes(r->in.dtype);
  _Alignas(64) char room[2][TILE * CPU_ELEMENT];
  for (int64_t i = 0; i < r->each; i++) {
    cpu_level_in_use()->add_row(sum, lost, row_of(w, at, n, room), n);
    at += step_element(r, place) * bytes;
  }
}

/* Neighbouring results that are stored as they are calculated. */
static void finish_tile(const work *w, int64_t output, double *sum, const double *lost, int64_t n)
{
  const weir_reduce *r = w->r;
  double scale = r->op == WEIR_REDUCE_MEAN ? (double)r->each : 1;
  const weir_operand *out = &r->out;
  if (out->dtype == r->compute && out->stride[r->kept - 1] == 1) {
    for (int64_t j = 0; j < n; j++)
      sum[j] = (isfinite(sum[j]) ? sum[j] + lost[j] : sum[j]) / scale;
    cpu_level_in_use()->cast[out->dtype][WEIR_FLOAT64](place_of_result(out, r, output), sum, n);
    return;
  }
  for (int64_t j = 0; j < n; j++) {
    cpu_sum s = {.f = {sum[j]}, .c = {lost[j]}};
    finish_reduction(w, output + j, &s);
  }
}

/* n neighbouring results of doubles, one after the other, as their dtype. */
static void store_tile(const work *w, const weir_operand *to, int64_t output, double *value,
                       int64_t n)
{
  const weir_reduce *r = w->r;
  if (to->dtype == r->compute && to->stride[r->kept - 1] == 1)
    cpu_level_in_use()->cast[to->dtype][WEIR_FLOAT64](place_of_result(to, r, output), value, n);
  else
    for (int64_t j = 0; j < n; j++)
      store_value(place_of_result(to, r, output + j), w, &value[j], WEIR_FLOAT64);
}

/* n neighbouring variances, four rows at a time. */
static void variance_tile(const work *w, const char *at, int64_t output, int64_t n)
{
  const weir_reduce *r = w->r;
  int64_t place[WEIR_DIMS] = {0}, bytes = (int64_t)cpu_dtype_bytes(r->in.dtype), rows = 0;
  double sum[TILE] = {0}, squares[TILE] = {0}, first[TILE];
  _Alignas(64) float room[4][TILE];
  const float *row[4];
  cpu_level_in_use()->cast[WEIR_FLOAT64][w->in](first, at, n);
  for (int64_t j = 0; j < n; j++)
    first[j] = isfinite(first[j]) ? first[j] : 0;
  for (int64_t i = 0; i < r->each; i += rows) {
    rows = r->each - i < 4 ? r->each - i : 4;
    for (int64_t k = 0; k < 4; k++) {
      row[k] = k < rows ? narrow_row(w, at, n, room[k]) : row[0];
      if (k < rows) at += step_element(r, place) * bytes;
    }
    cpu_level_in_use()->add_rows_off(sum, squares, first, row, (int)rows, n);
  }
  for (int64_t j = 0; j < n; j++) {
    cpu_sum s = {.f = {sum[j], squares[j]}};
    double more;
    squares[j] = variance(r, &s, &more);
    sum[j] = first[j] + more;
  }
  store_tile(w, &r->out, output, squares, n);
  if (r->mean.data) store_tile(w, &r->mean, output, sum, n);
}

static void some_reduce_tiles(void *arg, int64_t from, int64_t to)
{
  const work *w = arg;
  const weir_reduce *r = w->r;
  int64_t last = r->size[r->kept - 1], tile = w->tile, tiles = (last - 1) / tile + 1;
  for (int64_t t = from; t < to; t++) {
    int64_t first = t % tiles * tile, n = last - first < tile ? last - first : tile;
    int64_t output = t / tiles * last + first;
    double sum[TILE] = {0}, lost[TILE] = {0};
    const char *at = place_of_result(&r->in, r, output);
    if (rows[r->op].fold == FOLD_var) {
      variance_tile(w, at, output, n);
      continue;
    }
    if (has_lines(w))
      fold_lines(w, at, sum, lost, n);
    else if (rows[r->op].fold != FOLD_sum)
      best_rows(w, at, sum, n);
    else if (has_narrow_rows(w) && w->folds != WEIR_FLOAT32)
      sum_half_rows(w, at, sum, n);
    else if (has_narrow_rows(w))
      sum_narrow_rows(w, at, sum, n);
    else
      sum_rows(w, at, sum, lost, n);
    finish_tile(w, output, sum, lost, n);
  }
}

/* A result does not depend on the tile it is in. */
static void share_tiles(work *w)
{
  const weir_reduce *r = w->r;
  int64_t last = r->size[r->kept - 1], threads = weir_get_num_threads();
  w->tile = TILE;
  while (w->tile > FEW && r->outputs < threads * w->tile)
    w->tile /= 2;
  int64_t tiles = r->outputs / last * ((last - 1) / w->tile + 1);
  int64_t each = r->each * (last < w->tile ? last : w->tile);
  parallel_for(tiles, CPU_GRAIN / each + 1, some_reduce_tiles, w);
}

weir_status cpu_reduce(void *self, void *stream, const weir_reduce *r)
{
  (void)self, (void)stream;
  int gives = rows[r->op].gives;
  bool truth = gives == WEIR_GIVES_BOOL || gives == WEIR_GIVES_COUNT;
  weir_dtype compute = truth ? WEIR_BOOL : r->compute;
  bool real = cpu_kernel_dtype(compute) == WEIR_FLOAT32 || compute == WEIR_FLOAT64;
  int kind = compute == WEIR_COMPLEX64 ? CPU_WIDE_COMPLEX : real ? CPU_WIDE_REAL : CPU_WIDE_INT;
  work w = {.r = r, .in = compute, .wide = WEIR_INT64};
  if (kind != CPU_WIDE_INT) w.wide = real ? WEIR_FLOAT64 : WEIR_COMPLEX64;
  w.fold = cpu_level_in_use()->fold[r->op][kind];
  w.folds = w.wide;
  if (kind == CPU_WIDE_REAL && compute != WEIR_FLOAT64 && cpu_level_in_use()->narrow_fold[r->op]) {
    w.fold = cpu_level_in_use()->narrow_fold[r->op];
    w.folds = WEIR_FLOAT32;
  }
  if (w.folds == WEIR_FLOAT32 && compute != WEIR_FLOAT32 && rows[r->op].fold == FOLD_sum) {
    w.fold = cpu_level_in_use()->half_sum[compute == WEIR_BFLOAT16];
    w.folds = compute;
  }
  if (!w.fold) return cpu_no_kernel(rows[r->op].name, r->compute);
  w.inner.data = r->in.data;
  w.inner.dtype = r->in.dtype;
  memcpy(w.inner.stride, r->in.stride + r->kept,
         (size_t)(r->dims - r->kept) * sizeof *r->in.stride);
  int64_t least = (r->each + PIECES - 1) / PIECES;
  w.piece = least > PIECE ? least : PIECE;
  int64_t grain = CPU_GRAIN / (r->each + 1) + 1;
  if (is_tiled(&w))
    share_tiles(&w);
  else if (r->each > PIECE && r->outputs < SOME)
    large_results(&w);
  else
    parallel_for(r->outputs, grain, some_results, &w);
  return WEIR_OK;
}
