/* cpu/index.c: elements chosen by index tensors, read and written.
 *
 * A loop goes row by row (its last dimension). Where no index changes along a row, the row lies in
 * one piece of self and moves as one; else a block of elements' places is calculated first, and the
 * block read or written by it. Reading is shared among threads by elements. Writing is shared along
 * one dimension that self itself has in the loop: elements that differ in it are never the same
 * element of self, so that every element meets its values in the loop's order, with any number of
 * threads. Writers look at all indices before they write.
 *
 * Words. free dimension: self's own, along which no index chooses. offset: elements of self from
 * its first. */
#include <stdatomic.h>
#include <string.h>
#include "core/backend/cpu/cpu.h"
#include "core/backend/half.h"
#include "core/backend/scalar_type.h"
#include "core/backend/threads.h"

/* n elements of self, `offset`[i] or i * stride from `self`: with those of `values`. */
typedef void (*index_update)(void *self, const int64_t *offset, int64_t stride, const void *values,
                             int64_t step, int64_t n);

typedef struct indexing {
  weir_indexing r; /* dimensions merged */
  size_t bytes;    /* of an element */
  index_update update;
  bool looks;                 /* at indices alone */
  _Alignas(8) char number[8]; /* values, where they are one number */
  _Atomic bool out;           /* an index is out of bounds: */
  _Atomic int64_t what;       /* that one, */
  _Atomic int which;          /* of r.index[which] */
} indexing;

/* Where a thread is. */
typedef struct index_place {
  int64_t at[WEIR_DIMS];     /* coordinates */
  int64_t self, values;      /* offsets */
  int64_t index[WEIR_DIMS];  /* of each index's elements */
  int64_t offset[CPU_BLOCK]; /* room */
} index_place;

/* ---- updates --------------------------------------------------------------------------------- */

typedef struct index_c64 {
  float re, im;
} index_c64;

#define AS_IS(x)     (x)
#define OF_HALF(x)   float16_to_float(x)
#define TO_HALF(x)   float_to_float16(x)
#define OF_BRAIN(x)  bfloat16_to_float(x)
#define TO_BRAIN(x)  float_to_bfloat16(x)
#define OF_TRUTH(x)  ((x) != 0)
#define PLUS(a, b)   ((a) + (b))
#define TIMES(a, b)  ((a) * (b))
#define MOST(a, b)   ((a) < (b) || (b) != (b) ? (b) : (a))
#define LEAST(a, b)  ((b) < (a) || (b) != (b) ? (b) : (a))
#define EITHER(a, b) ((a) | (b))
#define BOTH(a, b)   ((a) & (b))
#define C_PLUS(a, b) ((index_c64){(a).re + (b).re, (a).im + (b).im})
#define C_TIMES(a, b)                                                                              \
  ((index_c64){(a).re * (b).re - (a).im * (b).im, (a).re * (b).im + (a).im * (b).re})

/* X(name, elements, calculated in, from an element, to one, ADD, MUL, MAX, MIN); sums and products
 * of integers wrap in unsigned numbers. */
/* NOLINTBEGIN(bugprone-signed-char-misuse): int8's sign is meant */
#define INDEX_REAL(X)                                                                              \
  X(uint8, uint8_t, uint32_t, AS_IS, (uint8_t), PLUS, TIMES, MOST, LEAST)                          \
  X(int8, int8_t, int32_t, AS_IS, (int8_t), PLUS, TIMES, MOST, LEAST)                              \
  X(int16, int16_t, int32_t, AS_IS, (int16_t), PLUS, TIMES, MOST, LEAST)                           \
  X(float16, uint16_t, float, OF_HALF, TO_HALF, PLUS, TIMES, MOST, LEAST)                          \
  X(bfloat16, uint16_t, float, OF_BRAIN, TO_BRAIN, PLUS, TIMES, MOST, LEAST)                       \
  X(float32, float, float, AS_IS, AS_IS, PLUS, TIMES, MOST, LEAST)                                 \
  X(float64, double, double, AS_IS, AS_IS, PLUS, TIMES, MOST, LEAST)                               \
  X(truth, uint8_t, uint8_t, OF_TRUTH, (uint8_t), EITHER, BOTH, EITHER, BOTH)

#define UPDATE(op, name, T, C, from, to, f)                                                        \
  static void index_##op##_##name(void *self, const int64_t *offset, int64_t stride,               \
                                  const void *values, int64_t step, int64_t n)                     \
  {                                                                                                \
    T *x = self;                                                                                   \
    const T *y = values;                                                                           \
    if (offset)                                                                                    \
      for (int64_t i = 0; i < n; i++) {                                                            \
        C a = from(x[offset[i]]), b = from(y[i * step]);                                           \
        x[offset[i]] = to(f(a, b));                                                                \
      }                                                                                            \
    else if (stride == 1 && step == 1)                                                             \
      for (int64_t i = 0; i < n; i++) {                                                            \
        C a = from(x[i]), b = from(y[i]);                                                          \
        x[i] = to(f(a, b));                                                                        \
      }                                                                                            \
    else                                                                                           \
      for (int64_t i = 0; i < n; i++) {                                                            \
        C a = from(x[i * stride]), b = from(y[i * step]);                                          \
        x[i * stride] = to(f(a, b));                                                               \
      }                                                                                            \
  }
#define UPDATES(name, T, C, from, to, sum, product, most, least)                                   \
  UPDATE(add, name, T, C, from, to, sum)                                                           \
  UPDATE(mul, name, T, C, from, to, product)                                                       \
  UPDATE(max, name, T, C, from, to, most)                                                          \
  UPDATE(min, name, T, C, from, to, least)
INDEX_REAL(UPDATES)
/* NOLINTEND(bugprone-signed-char-misuse) */
UPDATE(add, int32, uint32_t, uint32_t, AS_IS, AS_IS, PLUS)
UPDATE(mul, int32, uint32_t, uint32_t, AS_IS, AS_IS, TIMES)
UPDATE(max, int32, int32_t, int32_t, AS_IS, AS_IS, MOST)
UPDATE(min, int32, int32_t, int32_t, AS_IS, AS_IS, LEAST)
UPDATE(add, int64, uint64_t, uint64_t, AS_IS, AS_IS, PLUS)
UPDATE(mul, int64, uint64_t, uint64_t, AS_IS, AS_IS, TIMES)
UPDATE(max, int64, int64_t, int64_t, AS_IS, AS_IS, MOST)
UPDATE(min, int64, int64_t, int64_t, AS_IS, AS_IS, LEAST)
UPDATE(add, complex64, index_c64, index_c64, AS_IS, AS_IS, C_PLUS)
UPDATE(mul, complex64, index_c64, index_c64, AS_IS, AS_IS, C_TIMES)

#define FOUR(NAME, name)                                                                           \
  [WEIR_##NAME] = {[WEIR_INDEX_ADD] = index_add_##name,                                            \
                   [WEIR_INDEX_MUL] = index_mul_##name,                                            \
                   [WEIR_INDEX_MAX] = index_max_##name,                                            \
                   [WEIR_INDEX_MIN] = index_min_##name}

static const index_update updates[WEIR_DTYPES][WEIR_INDEX_COUNT] = {
    FOUR(UINT8, uint8),
    FOUR(INT8, int8),
    FOUR(INT16, int16),
    FOUR(INT32, int32),
    FOUR(INT64, int64),
    FOUR(FLOAT16, float16),
    FOUR(BFLOAT16, bfloat16),
    FOUR(FLOAT32, float32),
    FOUR(FLOAT64, float64),
    FOUR(BOOL, truth),
    [WEIR_COMPLEX64] = {
        [WEIR_INDEX_ADD] = index_add_complex64, [WEIR_INDEX_MUL] = index_mul_complex64}};

/* ---- the loop's dimensions ------------------------------------------------------------------- */

static bool goes_on(const weir_operand *o, int outer, int inner, int64_t size)
{
  return o->stride[outer] == o->stride[inner] * size;
}

static bool index_joined(const weir_indexing *r, int outer, int inner)
{
  int64_t size = r->size[inner];
  if (!goes_on(&r->self, outer, inner, size) || !goes_on(&r->values, outer, inner, size))
    return false;
  for (int i = 0; i < r->indices; i++)
    if (!goes_on(&r->index[i].at, outer, inner, size)) return false;
  return true;
}

static void index_move(weir_indexing *r, int to, int from)
{
  r->size[to] = r->size[from];
  r->self.stride[to] = r->self.stride[from];
  r->values.stride[to] = r->values.stride[from];
  for (int i = 0; i < r->indices; i++)
    r->index[i].at.stride[to] = r->index[i].at.stride[from];
}

/* Without dimensions of size 1, neighbours that go on into each other as one; at least one is left.
 */
static void index_merge(weir_indexing *r)
{
  int kept = 0;
  for (int d = 0; d < r->dims; d++) {
    if (r->size[d] == 1) continue;
    if (kept && index_joined(r, kept - 1, d)) {
      int64_t both = r->size[kept - 1] * r->size[d];
      index_move(r, kept - 1, d);
      r->size[kept - 1] = both;
    } else {
      index_move(r, kept++, d);
    }
  }
  r->dims = kept;
  if (kept) return;
  r->dims = 1;
  r->size[0] = 1;
  r->self.stride[0] = r->values.stride[0] = 0;
  for (int i = 0; i < r->indices; i++)
    r->index[i].at.stride[0] = 0;
}

/* ---- places ---------------------------------------------------------------------------------- */

static void place_start(index_place *p, const weir_indexing *r, int64_t from)
{
  p->self = p->values = 0;
  memset(p->index, 0, sizeof p->index);
  for (int d = r->dims - 1; d >= 0; d--) {
    int64_t k = p->at[d] = d ? from % r->size[d] : from;
    from /= r->size[d];
    p->self += k * r->self.stride[d];
    p->values += k * r->values.stride[d];
    for (int i = 0; i < r->indices; i++)
      p->index[i] += k * r->index[i].at.stride[d];
  }
}

static void place_step(index_place *p, const weir_indexing *r, int d, int64_t n)
{
  p->at[d] += n;
  p->self += n * r->self.stride[d];
  p->values += n * r->values.stride[d];
  for (int i = 0; i < r->indices; i++)
    p->index[i] += n * r->index[i].at.stride[d];
}

/* n elements on, within a row. */
static void place_forward(index_place *p, const weir_indexing *r, int64_t n)
{
  int d = r->dims - 1;
  place_step(p, r, d, n);
  for (; d && p->at[d] == r->size[d]; d--) {
    place_step(p, r, d, -r->size[d]);
    place_step(p, r, d - 1, 1);
  }
}

static int64_t index_at(const weir_indices *i, int64_t at)
{
  return i->at.dtype == WEIR_INT32 ? ((const int32_t *)i->at.data)[at]
                                   : ((const int64_t *)i->at.data)[at];
}

static bool index_out(const weir_indices *i, bool wrap, int64_t v)
{
  return v >= i->size || v < (wrap ? -i->size : 0);
}

/* Notes the first of n that is out of bounds; there is one. False. */
static bool refuse_index(indexing *x, int which, int64_t from, int64_t step, int64_t n)
{
  const weir_indices *i = &x->r.index[which];
  for (int64_t k = 0; k < n; k++) {
    int64_t v = index_at(i, from + k * step);
    if (!index_out(i, x->r.wrap, v)) continue;
    if (!atomic_exchange(&x->out, true)) {
      atomic_store(&x->what, v);
      atomic_store(&x->which, which);
    }
    break;
  }
  return false;
}

#define ADD_OFFSETS(T, by)                                                                         \
  for (int64_t k = 0; k < n; k++) {                                                                \
    int64_t v = ((const T *)i->at.data + from)[k * (by)];                                          \
    v += v < 0 ? back : 0;                                                                         \
    bad |= (uint64_t)v >= (uint64_t)size;                                                          \
    offset[k] += v * step;                                                                         \
  }

/* Adds what index `which` chooses to n offsets; its element 0 is at `from`. */
static bool add_offsets(indexing *x, int which, int64_t from, int64_t stride, int64_t n,
                        int64_t *offset)
{
  const weir_indices *i = &x->r.index[which];
  int64_t size = i->size, step = i->step, back = x->r.wrap ? size : 0;
  bool bad = false;
  if (i->at.dtype == WEIR_INT32)
    ADD_OFFSETS(int32_t, stride)
  else if (stride == 1)
    ADD_OFFSETS(int64_t, 1)
  else
    ADD_OFFSETS(int64_t, stride)
  return !bad || refuse_index(x, which, from, stride, n);
}

/* What the indices that are the same along dimension `dim` choose. */
static bool same_offset(indexing *x, const index_place *p, int dim, int64_t *offset)
{
  const weir_indexing *r = &x->r;
  for (int k = 0; k < r->indices; k++) {
    const weir_indices *i = &r->index[k];
    if (dim >= 0 && i->at.stride[dim]) continue;
    int64_t v = index_at(i, p->index[k]);
    if (index_out(i, r->wrap, v)) return refuse_index(x, k, p->index[k], 0, 1);
    *offset += (v < 0 ? v + i->size : v) * i->step;
  }
  return true;
}

/* ---- elements -------------------------------------------------------------------------------- */

#define BY_SIZE(MOVE)                                                                              \
  do {                                                                                             \
    if (x->bytes == 1)                                                                             \
      MOVE(uint8_t)                                                                                \
    else if (x->bytes == 2)                                                                        \
      MOVE(uint16_t)                                                                               \
    else if (x->bytes == 4)                                                                        \
      MOVE(uint32_t)                                                                               \
    else                                                                                           \
      MOVE(uint64_t)                                                                               \
  } while (0)

#define READ_ONE(T)                                                                                \
  for (int64_t i = 0; i < n; i++)                                                                  \
    ((T *)values)[i * step] = ((const T *)self)[offset[i]];
#define SET_ONE(T)                                                                                 \
  for (int64_t i = 0; i < n; i++)                                                                  \
    ((T *)self)[offset[i]] = ((const T *)values)[i * step];
#define READ_ROW(T)                                                                                \
  for (int64_t i = 0; i < n; i++)                                                                  \
    ((T *)values)[i * step] = ((const T *)self)[i * stride];
#define SET_ROW(T)                                                                                 \
  for (int64_t i = 0; i < n; i++)                                                                  \
    ((T *)self)[i * stride] = ((const T *)values)[i * step];

/* n elements, `offset`[i] from self. */
static void move_chosen(const indexing *x, char *self, const int64_t *offset, char *values,
                        int64_t step, int64_t n)
{
  if (x->update)
    x->update(self, offset, 0, values, step, n);
  else if (x->r.op == WEIR_INDEX_READ)
    BY_SIZE(READ_ONE);
  else
    BY_SIZE(SET_ONE);
}

/* n elements, `stride` apart. */
static void move_row(const indexing *x, char *self, int64_t stride, char *values, int64_t step,
                     int64_t n)
{
  bool read = x->r.op == WEIR_INDEX_READ;
  if (x->update)
    x->update(self, NULL, stride, values, step, n);
  else if (stride == 1 && step == 1)
    memcpy(read ? values : self, read ? self : values, (size_t)n * x->bytes);
  else if (read)
    BY_SIZE(READ_ROW);
  else
    BY_SIZE(SET_ROW);
}

/* ---- rows ------------------------------------------------------------------------------------ */

static bool changes_along(const weir_indexing *r, int dim)
{
  for (int i = 0; i < r->indices; i++)
    if (r->index[i].at.stride[dim]) return true;
  return false;
}

/* Where n elements are that follow each other in dimension `dim` (below 0: one alone). */
static bool find_offsets(indexing *x, index_place *p, int dim, int64_t n)
{
  const weir_indexing *r = &x->r;
  int64_t offset = p->self, step = dim < 0 ? 0 : r->self.stride[dim];
  if (!same_offset(x, p, dim, &offset)) return false;
  for (int64_t i = 0; i < n; i++)
    p->offset[i] = offset + i * step;
  for (int i = 0; i < r->indices && dim >= 0; i++) {
    int64_t stride = r->index[i].at.stride[dim];
    if (stride && !add_offsets(x, i, p->index[i], stride, n, p->offset)) return false;
  }
  return true;
}

/* `rows` rows, along which no index changes, one after the other in the dimension before the last:
 * where each begins first, then their elements. */
static bool run_rows(indexing *x, index_place *p, int64_t rows, int64_t n)
{
  const weir_indexing *r = &x->r;
  int last = r->dims - 1, outer = last - 1;
  int64_t bytes = (int64_t)x->bytes, stride = r->self.stride[last], step = r->values.stride[last];
  int64_t on = outer < 0 ? 0 : r->values.stride[outer] * bytes;
  if (!find_offsets(x, p, outer, rows)) return false;
  if (x->looks) return true;
  char *values = (char *)r->values.data + p->values * bytes;
  for (int64_t i = 0; i < rows; i++, values += on)
    move_row(x, (char *)r->self.data + p->offset[i] * bytes, stride, values, step, n);
  return true;
}

#define READ_CHOSEN(T, I)                                                                          \
  for (int64_t k = 0; k < n; k++) {                                                                \
    int64_t v = ((const I *)i->at.data)[from + k * stride];                                        \
    v += v < 0 ? back : 0;                                                                         \
    if (__builtin_expect((uint64_t)v >= (uint64_t)i->size, 0))                                     \
      return refuse_index(x, 0, from + k * stride, 0, 1);                                          \
    ((T *)values)[k * step] = ((const T *)self)[v * by + k * along];                               \
  }
#define READ_WIDE(T)   READ_CHOSEN(T, int64_t)
#define READ_NARROW(T) READ_CHOSEN(T, int32_t)

/* n elements of a row that one index chooses, read. */
static bool read_chosen(indexing *x, const index_place *p, int64_t n)
{
  const weir_indexing *r = &x->r;
  const weir_indices *i = &r->index[0];
  int last = r->dims - 1;
  int64_t from = p->index[0], stride = i->at.stride[last], by = i->step,
          step = r->values.stride[last];
  int64_t along = r->self.stride[last], back = r->wrap ? i->size : 0;
  const char *self = (const char *)r->self.data + p->self * (int64_t)x->bytes;
  char *values = (char *)r->values.data + p->values * (int64_t)x->bytes;
  if (i->at.dtype == WEIR_INT32)
    BY_SIZE(READ_NARROW);
  else
    BY_SIZE(READ_WIDE);
  return true;
}

static bool run_changing(indexing *x, index_place *p, int64_t n)
{
  const weir_indexing *r = &x->r;
  if (r->op == WEIR_INDEX_READ && r->indices == 1) return read_chosen(x, p, n);
  if (!find_offsets(x, p, r->dims - 1, n)) return false;
  if (x->looks) return true;
  move_chosen(x, r->self.data, p->offset, (char *)r->values.data + p->values * (int64_t)x->bytes,
              r->values.stride[r->dims - 1], n);
  return true;
}

/* Goes on from p by rows, whole ones in blocks; to `to`. */
static bool piece_by_rows(indexing *x, index_place *p, int64_t from, int64_t to)
{
  const weir_indexing *r = &x->r;
  int last = r->dims - 1;
  int64_t row = r->size[last];
  while (from < to) {
    int64_t rows = 1, n = row - p->at[last];
    if (n > to - from) n = to - from;
    if (n == row && last) {
      rows = r->size[last - 1] - p->at[last - 1];
      if (rows > CPU_BLOCK) rows = CPU_BLOCK;
      if (rows > (to - from) / row) rows = (to - from) / row;
    }
    if (!run_rows(x, p, rows, n)) return false;
    if (rows > 1) place_step(p, r, last - 1, rows - 1);
    place_forward(p, r, n);
    from += rows * n;
  }
  return true;
}

/* Elements from `from` to `to` of the loop. */
static void index_piece(void *arg, int64_t from, int64_t to)
{
  indexing *x = arg;
  const weir_indexing *r = &x->r;
  int last = r->dims - 1;
  index_place p;
  if (atomic_load_explicit(&x->out, memory_order_relaxed)) return;
  place_start(&p, r, from);
  if (!changes_along(r, last)) {
    (void)piece_by_rows(x, &p, from, to);
    return;
  }
  bool one_read = r->op == WEIR_INDEX_READ && r->indices == 1, good = true;
  for (int64_t n; from < to && good; from += n) {
    n = r->size[last] - p.at[last];
    if (n > to - from) n = to - from;
    if (n > CPU_BLOCK && !one_read) n = CPU_BLOCK;
    good = run_changing(x, &p, n);
    place_forward(&p, r, n);
  }
}

/* ---- writing --------------------------------------------------------------------------------- */

typedef struct index_slices {
  indexing *x;
  int dim;
} index_slices;

static void index_slice(void *arg, int64_t from, int64_t to)
{
  const index_slices *s = arg;
  indexing mine;
  int64_t bytes = (int64_t)s->x->bytes;
  mine.r = s->x->r;
  mine.bytes = s->x->bytes;
  mine.update = s->x->update;
  mine.looks = false;
  atomic_init(&mine.out, false);
  mine.r.count = mine.r.count / mine.r.size[s->dim] * (to - from);
  mine.r.size[s->dim] = to - from;
  mine.r.self.data = (char *)mine.r.self.data + from * mine.r.self.stride[s->dim] * bytes;
  mine.r.values.data = (char *)mine.r.values.data + from * mine.r.values.stride[s->dim] * bytes;
  for (int i = 0; i < mine.r.indices; i++) {
    weir_operand *o = &mine.r.index[i].at;
    o->data = (char *)o->data + from * o->stride[s->dim] * (o->dtype == WEIR_INT32 ? 4 : 8);
  }
  index_piece(&mine, 0, mine.r.count);
}

/* The indices alone: along what none of them has, one element will do. */
static void look_at_indices(indexing *x)
{
  weir_indexing r = x->r;
  for (int d = 0; d < r.dims; d++) {
    bool any = false;
    for (int i = 0; i < r.indices; i++)
      any |= r.index[i].at.stride[d] != 0;
    if (any) continue;
    x->r.count /= r.size[d];
    x->r.size[d] = 1;
  }
  index_merge(&x->r);
  x->looks = true;
  parallel_for(x->r.count, CPU_GRAIN, index_piece, x);
  x->looks = false;
  x->r = r;
}

static void write_chosen(indexing *x)
{
  const weir_indexing *r = &x->r;
  index_slices s = {x, -1};
  look_at_indices(x);
  if (atomic_load(&x->out)) return;
  for (int d = 0; d < r->dims; d++)
    if (r->self.stride[d] && (s.dim < 0 || r->size[d] > r->size[s.dim])) s.dim = d;
  if (s.dim < 0 || r->count <= CPU_GRAIN) {
    index_piece(x, 0, r->count);
    return;
  }
  int64_t grain = CPU_GRAIN / (r->count / r->size[s.dim]) + 1;
  if (s.dim == r->dims - 1) grain = (grain + 63) / 64 * 64; /* threads share no cache line */
  parallel_for(r->size[s.dim], grain, index_slice, &s);
}

/* ---- the request ----------------------------------------------------------------------------- */

/* The number as one element, that repeats. */
static void take_index_number(indexing *x)
{
  weir_operand *v = &x->r.values;
  const weir_number *n = &v->number;
  float complex[2] = {(float)n->f, (float)n->imag};
  const void *from = n->dtype == WEIR_COMPLEX64 ? (const void *)complex
                     : n->dtype == WEIR_FLOAT64 ? (const void *)&n->f
                                                : (const void *)&n->i;
  weir_dtype dtype = n->dtype == WEIR_BOOL ? WEIR_INT64 : n->dtype;
  cpu_level_in_use()->cast[x->r.dtype][dtype](x->number, from, 1);
  v->data = x->number;
  memset(v->stride, 0, sizeof v->stride);
}

weir_status cpu_index(void *self, void *stream, const weir_indexing *r)
{
  (void)self, (void)stream;
  indexing x;
  x.r = *r;
  x.bytes = cpu_dtype_bytes(r->dtype);
  x.looks = false;
  x.update = updates[r->dtype][r->op];
  atomic_init(&x.out, false);
  if (r->op != WEIR_INDEX_READ && r->op != WEIR_INDEX_SET && !x.update)
    return fail_unsupported("\"index_cpu\" not implemented for '%s'", scalar_type(r->dtype));
  if (!r->values.data) take_index_number(&x);
  index_merge(&x.r);
  if (r->op == WEIR_INDEX_READ)
    parallel_for(r->count, CPU_GRAIN, index_piece, &x);
  else
    write_chosen(&x);
  if (!atomic_load(&x.out)) return WEIR_OK;
  const weir_indices *i = &r->index[atomic_load(&x.which)];
  if (r->bad) *r->bad = atomic_load(&x.what);
  return fail_invalid("index %lld is out of bounds for dimension %d with size %lld",
                      (long long)atomic_load(&x.what), i->dim, (long long)i->size);
}
