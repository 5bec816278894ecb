/* cpu/sort.c: lines in order, and places in sequences that are, on the cpu.
 *
 * Elements become items: a key whose order is theirs (sort_key.h), and their place. Keys of 32 bits
 * and less have both in one number. Items are sorted by their digits; where few of a line are asked
 * for, they are selected first. Values are fetched by their places at the end, so that a NaN and a
 * -0 come out as they went in.
 *
 * Threads share the lines. Long lines that are fewer than threads: each sorts a run of the line,
 * and runs are merged by pairs, all threads at each pair. No two items are alike, so there is one
 * result. */
#include <stdlib.h>
#include <string.h>
#include "core/backend/cpu/cpu.h"
#include "core/backend/sort_key.h"
#include "core/backend/threads.h"

enum {
  SORT_DIGITS = 256,
  SORT_FEW = 24,       /* items that are sorted by insertion */
  SORT_LONG = 1 << 16, /* elements of a line that threads share */
  SORT_GATHER = 512,   /* items made at a time where few are kept */
  SORT_RUNS = 16       /* of a line, at most */
};

/* An item of a wide key. */
typedef struct wide_item {
  uint64_t key;
  int64_t place;
} wide_item;

typedef struct sort_work {
  const weir_sort_rows *s;
  int dtype, bytes; /* of an element */
  bool wide;
  void *room;      /* two lines of items for each thread */
  int64_t line;    /* that threads share */
  int64_t runs;    /* of it */
  int64_t width;   /* runs of each of a pair */
  void *from, *to; /* both halves of room, in turn */
} sort_work;

static int64_t run_begin(const sort_work *w, int64_t run)
{
  return w->s->length / w->runs * run +
         (run < w->s->length % w->runs ? run : w->s->length % w->runs);
}

static inline void copy_element(void *to, int64_t at, const void *from, int64_t place, int bytes)
{
  switch (bytes) {
  case 1:
    ((uint8_t *)to)[at] = ((const uint8_t *)from)[place];
    break;
  case 2:
    ((uint16_t *)to)[at] = ((const uint16_t *)from)[place];
    break;
  case 4:
    ((uint32_t *)to)[at] = ((const uint32_t *)from)[place];
    break;
  default:
    ((uint64_t *)to)[at] = ((const uint64_t *)from)[place];
  }
}

#define ITEM                   uint64_t
#define ITEM_KEY(item)         ((item) >> 32)
#define ITEM_PLACE(item)       ((int64_t)((item)&UINT32_MAX))
#define ITEM_MAKE(item, k, at) ((item) = (k) << 32 | (uint64_t)(at))
#define ITEM_BEFORE(a, b)      ((a) < (b))
#define ITEM_NAME(name)        narrow_##name
#define KEY_BITS               32
#include "core/backend/cpu/sort_items.h"

#define ITEM                   wide_item
#define ITEM_KEY(item)         ((item).key)
#define ITEM_PLACE(item)       ((item).place)
#define ITEM_MAKE(item, k, at) ((item) = (wide_item){(k), (at)})
#define ITEM_BEFORE(a, b)      ((a).key < (b).key || ((a).key == (b).key && (a).place < (b).place))
#define ITEM_NAME(name)        wide_##name
#define KEY_BITS               64
#include "core/backend/cpu/sort_items.h"

/* ---- who does what --------------------------------------------------------------------------- */

static void sort_shared(sort_work *w)
{
  size_t item = w->wide ? sizeof(wide_item) : sizeof(uint64_t);
  const weir_sort_rows *s = w->s;
  for (w->line = 0; w->line < s->outer * s->inner; w->line++) {
    w->from = w->room;
    w->to = (char *)w->room + (size_t)s->length * item;
    parallel_for(w->runs, 1, w->wide ? wide_sort_runs : narrow_sort_runs, w);
    for (w->width = 1; w->width < w->runs; w->width *= 2) {
      parallel_for(w->runs, 1, w->wide ? wide_merge_runs : narrow_merge_runs, w);
      void *was = w->from;
      w->from = w->to;
      w->to = was;
    }
    parallel_for(s->keep, CPU_GRAIN, w->wide ? wide_store_runs : narrow_store_runs, w);
  }
}

/* Runs a line is cut into: a power of two; 1: threads do not share it. */
static int64_t runs_for(const weir_sort_rows *s, int threads)
{
  int64_t runs = 1;
  if (s->outer * s->inner >= threads || s->length < SORT_LONG || s->keep <= s->length / 8) return 1;
  while (runs * 2 <= threads && runs < SORT_RUNS)
    runs *= 2;
  return runs;
}

weir_status cpu_sort_rows(void *self, void *stream, const weir_sort_rows *s)
{
  (void)self, (void)stream;
  if (s->dtype == WEIR_COMPLEX64) return cpu_no_kernel("sort", s->dtype);
  sort_work w = {.s = s, .dtype = s->dtype, .bytes = (int)cpu_dtype_bytes(s->dtype)};
  int64_t lines = s->outer * s->inner;
  int threads = weir_get_num_threads();
  w.wide = w.bytes == 8 || s->length >= UINT32_MAX;
  w.runs = runs_for(s, threads);
  if (threads > lines || lines * s->length < CPU_GRAIN) threads = lines < threads ? (int)lines : 1;
  int64_t rooms = w.runs > 1 ? 1 : threads;
  size_t item = w.wide ? sizeof(wide_item) : sizeof(uint64_t);
  w.room = malloc(2 * item * (size_t)s->length * (size_t)rooms);
  if (!w.room)
    return weir_fail(WEIR_ENOMEM, "sort: no memory for %lld elements", (long long)s->length);
  if (w.runs > 1)
    sort_shared(&w);
  else
    parallel_for_most(threads, lines, CPU_GRAIN / (4 * s->length) + 1,
                      w.wide ? wide_sort_lines : narrow_sort_lines, &w);
  free(w.room);
  return WEIR_OK;
}

/* ---- searching ------------------------------------------------------------------------------- */

/* The place of value number `at` in its sequence. */
#define SEARCH(name, type)                                                                         \
  static int64_t name(const weir_search *s, const void *sequence, const void *values, int64_t at)  \
  {                                                                                                \
    const type *x = sequence;                                                                      \
    type v = ((const type *)values)[at];                                                           \
    int64_t low = 0, n = s->length;                                                                \
    while (n > 0) {                                                                                \
      int64_t half = n / 2;                                                                        \
      type middle = x[low + half];                                                                 \
      bool beyond = s->right ? middle > v : middle >= v;                                           \
      if (s->nan_last && middle != middle) beyond = true;                                          \
      low = beyond ? low : low + half + 1;                                                         \
      n = beyond ? half : n - half - 1;                                                            \
    }                                                                                              \
    return low;                                                                                    \
  }
SEARCH(search_int64, int64_t)
SEARCH(search_float64, double)
SEARCH(search_float32, float)

typedef struct search_work {
  const weir_search *s;
  weir_dtype dtype; /* what sequence and values are widened to */
  const char *sequence, *values;
} search_work;

static void some_searches(void *arg, int64_t from, int64_t to)
{
  const search_work *w = arg;
  const weir_search *s = w->s;
  int64_t bytes = (int64_t)cpu_dtype_bytes(w->dtype);
  for (int64_t i = from; i < to; i++) {
    const char *x = w->sequence + (s->shared ? 0 : i / s->each * s->length * bytes);
    int64_t place = w->dtype == WEIR_INT64     ? search_int64(s, x, w->values, i)
                    : w->dtype == WEIR_FLOAT64 ? search_float64(s, x, w->values, i)
                                               : search_float32(s, x, w->values, i);
    if (s->out_int32)
      ((int32_t *)s->out)[i] = (int32_t)place;
    else
      ((int64_t *)s->out)[i] = place;
  }
}

typedef struct widening {
  void *to;
  const void *from;
  weir_dtype wide, narrow;
} widening;

static void widen_part(void *arg, int64_t from, int64_t to)
{
  const widening *w = arg;
  int64_t wide = (int64_t)cpu_dtype_bytes(w->wide), narrow = (int64_t)cpu_dtype_bytes(w->narrow);
  cpu_level_in_use()->cast[w->wide][w->narrow]((char *)w->to + from * wide,
                                               (const char *)w->from + from * narrow, to - from);
}

weir_status cpu_search(void *self, void *stream, const weir_search *s)
{
  (void)self, (void)stream;
  search_work w = {.s = s, .dtype = cpu_kernel_dtype(s->dtype)};
  int64_t count = s->rows * s->each, elements = (s->shared ? 1 : s->rows) * s->length;
  char *room = NULL;
  if (w.dtype != WEIR_FLOAT32 && w.dtype != WEIR_FLOAT64) w.dtype = WEIR_INT64;
  w.sequence = s->sequence;
  w.values = s->values;
  if (w.dtype != s->dtype) {
    int64_t bytes = (int64_t)cpu_dtype_bytes(w.dtype);
    room = malloc((size_t)((count + elements) * bytes));
    if (!room)
      return weir_fail(WEIR_ENOMEM, "searchsorted: no memory for %lld elements",
                       (long long)count + (long long)elements);
    widening sequence = {room, s->sequence, w.dtype, s->dtype};
    widening values = {room + elements * bytes, s->values, w.dtype, s->dtype};
    parallel_for(elements, CPU_GRAIN, widen_part, &sequence);
    parallel_for(count, CPU_GRAIN, widen_part, &values);
    w.sequence = sequence.to;
    w.values = values.to;
  }
  parallel_for(count, CPU_GRAIN / 16, some_searches, &w);
  free(room);
  return WEIR_OK;
}
