/* cpu/copy.c: elements of one dtype from any strides to any strides, on the cpu.
 *
 * Only the size of an element matters. Where the two operands are dense along different dimensions
 * (a transposed matrix), squares of EDGE bytes a side go through registers: EDGE bytes of as many
 * rows are read, interleaved with each other in as many rounds as the side has bits, and written as
 * rows of the other order; squares are taken in tiles of TILE elements a side, whose lines and
 * pages stay at hand. All else goes row by row, a row being the loop's last dimension.
 *
 * Words. square: EDGE / size elements a side. down, along: the dimension in which the input is
 * dense, and the one in which the output is. */
#include <string.h>
#include "core/backend/cpu/cpu.h"
#include "core/backend/threads.h"

enum { EDGE = 16 /* bytes */, TILE = 128 /* elements */ };

/* ---- rows ------------------------------------------------------------------------------------ */

#define MOVE(T)                                                                                    \
  static void move_##T(void *out, int64_t ts, const void *in, int64_t fs, int64_t n)               \
  {                                                                                                \
    T *to = out;                                                                                   \
    const T *from = in;                                                                            \
    if (fs == 0 && ts == 1)                                                                        \
      for (int64_t i = 0; i < n; i++)                                                              \
        to[i] = from[0];                                                                           \
    else if (fs == 2 && ts == 1)                                                                   \
      for (int64_t i = 0; i < n; i++)                                                              \
        to[i] = from[2 * i];                                                                       \
    else if (ts == 1)                                                                              \
      for (int64_t i = 0; i < n; i++)                                                              \
        to[i] = from[i * fs];                                                                      \
    else                                                                                           \
      for (int64_t i = 0; i < n; i++)                                                              \
        to[i * ts] = from[i * fs];                                                                 \
  }
MOVE(uint8_t)
MOVE(uint16_t)
MOVE(uint32_t)
MOVE(uint64_t)

void cpu_move_elements(void *to, int64_t ts, const void *from, int64_t fs, int64_t n, size_t bytes)
{
  if (ts == 1 && fs == 1)
    memcpy(to, from, (size_t)n * bytes);
  else if (bytes == 1)
    move_uint8_t(to, ts, from, fs, n);
  else if (bytes == 2)
    move_uint16_t(to, ts, from, fs, n);
  else if (bytes == 4)
    move_uint32_t(to, ts, from, fs, n);
  else
    move_uint64_t(to, ts, from, fs, n);
}

/* Where the operands are in the loop. */
typedef struct copy_place {
  char *out, *in;
  int64_t at[WEIR_DIMS];
} copy_place;

static void step_by(copy_place *p, const weir_loop *l, int d, int64_t elements)
{
  int64_t bytes = elements * (int64_t)cpu_dtype_bytes(l->out.dtype);
  p->out += l->out.stride[d] * bytes;
  p->in += l->in[0].stride[d] * bytes;
}

static copy_place place_of_copy(const weir_loop *l, int64_t element)
{
  copy_place p = {.out = l->out.data, .in = l->in[0].data};
  for (int d = l->dims - 1; d >= 0; d--) {
    p.at[d] = element % l->size[d];
    element /= l->size[d];
    step_by(&p, l, d, p.at[d]);
  }
  return p;
}

/* To the beginning of the next row. */
static void next_copied_row(copy_place *p, const weir_loop *l)
{
  int last = l->dims - 1;
  step_by(p, l, last, -p->at[last]);
  p->at[last] = 0;
  for (int d = last - 1; d >= 0; d--) {
    step_by(p, l, d, 1);
    if (++p->at[d] < l->size[d]) return;
    step_by(p, l, d, -l->size[d]);
    p->at[d] = 0;
  }
}

static void copy_rows(void *arg, int64_t from, int64_t to)
{
  const weir_loop *l = arg;
  int last = l->dims - 1;
  size_t bytes = cpu_dtype_bytes(l->out.dtype);
  copy_place p = place_of_copy(l, from);
  for (int64_t n; from < to; from += n) {
    n = l->size[last] - p.at[last];
    if (n > to - from) n = to - from;
    cpu_move_elements(p.out, l->out.stride[last], p.in, l->in[0].stride[last], n, bytes);
    next_copied_row(&p, l);
  }
}

/* ---- squares --------------------------------------------------------------------------------- */

typedef struct turn {
  const weir_loop *l;
  int down;                          /* the input's dense dimension; the output's is the last */
  int64_t bytes;                     /* of an element */
  int64_t out_step, in_step;         /* bytes from a row to the next, of each */
  int64_t across_down, across_along; /* tiles */
} turn;

/* Rounds of a perfect shuffle of `side` rows: first halves of rows i and i + side / 2 become row 2
 * i, second halves row 2 i + 1, element by element. After log2 side rounds rows are columns. */
#define LOW_16  0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define HIGH_16 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#define LOW_8   0, 8, 1, 9, 2, 10, 3, 11
#define HIGH_8  4, 12, 5, 13, 6, 14, 7, 15
#define LOW_4   0, 4, 1, 5
#define HIGH_4  2, 6, 3, 7
#define LOW_2   0, 2
#define HIGH_2  1, 3
#define TURN(T, side)                                                                              \
  typedef T T##_row __attribute__((vector_size(EDGE)));                                            \
  static void turn_##T(char *out, int64_t out_step, const char *in, int64_t in_step)               \
  {                                                                                                \
    T##_row a[side], b[side];                                                                      \
    for (int i = 0; i < (side); i++)                                                               \
      memcpy(&a[i], in + i * in_step, EDGE);                                                       \
    for (int round = 1; round < (side); round *= 2) {                                              \
      for (int i = 0; i < (side) / 2; i++) {                                                       \
        b[2 * i] = __builtin_shufflevector(a[i], a[i + (side) / 2], LOW_##side);                   \
        b[2 * i + 1] = __builtin_shufflevector(a[i], a[i + (side) / 2], HIGH_##side);              \
      }                                                                                            \
      memcpy(a, b, sizeof a);                                                                      \
    }                                                                                              \
    for (int i = 0; i < (side); i++)                                                               \
      memcpy(out + i * out_step, &a[i], EDGE);                                                     \
  }
TURN(uint8_t, 16)
TURN(uint16_t, 8)
TURN(uint32_t, 4)
TURN(uint64_t, 2)

static void turn_square(const turn *t, char *out, const char *in)
{
  if (t->bytes == 1)
    turn_uint8_t(out, t->out_step, in, t->in_step);
  else if (t->bytes == 2)
    turn_uint16_t(out, t->out_step, in, t->in_step);
  else if (t->bytes == 4)
    turn_uint32_t(out, t->out_step, in, t->in_step);
  else
    turn_uint64_t(out, t->out_step, in, t->in_step);
}

/* `down` rows of the output, `along` elements each: squares, then what is left of them. */
static void turn_tile(const turn *t, char *out, const char *in, int64_t down, int64_t along)
{
  int64_t side = EDGE / t->bytes, rows = down / side * side, whole = along / side * side;
  for (int64_t d = 0; d < rows; d += side)
    for (int64_t a = 0; a < whole; a += side)
      turn_square(t, out + d * t->out_step + a * t->bytes, in + a * t->in_step + d * t->bytes);
  for (int64_t d = 0; d < down; d++) {
    int64_t from = d < rows ? whole : 0;
    cpu_move_elements(out + d * t->out_step + from * t->bytes, 1,
                      in + from * t->in_step + d * t->bytes, t->in_step / t->bytes, along - from,
                      (size_t)t->bytes);
  }
}

/* Items are tiles: the loop's other dimensions, then across_down, then across_along. */
static void turn_tiles(void *arg, int64_t from, int64_t to)
{
  const turn *t = arg;
  const weir_loop *l = t->l;
  int last = l->dims - 1;
  for (int64_t i = from; i < to; i++) {
    int64_t along = i % t->across_along * TILE, rest = i / t->across_along;
    int64_t down = rest % t->across_down * TILE;
    char *out = (char *)l->out.data + down * t->out_step + along * t->bytes;
    const char *in = (const char *)l->in[0].data + along * t->in_step + down * t->bytes;
    rest /= t->across_down;
    for (int d = last - 1; d >= 0; d--) {
      if (d == t->down) continue;
      out += rest % l->size[d] * l->out.stride[d] * t->bytes;
      in += rest % l->size[d] * l->in[0].stride[d] * t->bytes;
      rest /= l->size[d];
    }
    int64_t high = l->size[t->down] - down, wide = l->size[last] - along;
    turn_tile(t, out, in, high < TILE ? high : TILE, wide < TILE ? wide : TILE);
  }
}

/* The dimension the input is dense in, where the output is dense in the last one and both are long
 * enough for squares; -1: there is none. */
static int turned_dim(const weir_loop *l)
{
  int last = l->dims - 1;
  int64_t side = EDGE / (int64_t)cpu_dtype_bytes(l->out.dtype);
  if (l->dims < 2 || l->out.stride[last] != 1 || l->size[last] < side) return -1;
  for (int d = 0; d < last; d++)
    if (l->in[0].stride[d] == 1 && l->size[d] >= side) return d;
  return -1;
}

void cpu_copy_loop(const weir_loop *l)
{
  int last = l->dims - 1, down = l->in[0].stride[last] == 1 ? -1 : turned_dim(l);
  turn t = {.l = l, .down = down, .bytes = (int64_t)cpu_dtype_bytes(l->out.dtype)};
  if (down < 0) {
    int64_t grain = CPU_GRAIN * 4 / t.bytes, row = l->size[last];
    parallel_for(l->count, row < grain ? grain / row * row : grain, copy_rows, (void *)l);
    return;
  }
  t.out_step = l->out.stride[down] * t.bytes;
  t.in_step = l->in[0].stride[last] * t.bytes;
  t.across_down = (l->size[down] + TILE - 1) / TILE;
  t.across_along = (l->size[last] + TILE - 1) / TILE;
  int64_t tiles = l->count / l->size[down] / l->size[last] * t.across_down * t.across_along;
  parallel_for(tiles, CPU_GRAIN * tiles / l->count + 1, turn_tiles, &t);
}
