/* order.cu: lines in order, and places in sequences that are: weir_sort_rows, weir_search.
 *
 * Elements become items (core/backend/sort_key.h), no two of which are alike. A block sorts
 * WEIR_SORT_TILE of them in shared memory by a bitonic network (Batcher, "Sorting networks and
 * their applications", 1968), several short lines at once; then runs are merged by pairs, twice as
 * long with each launch, a block making WEIR_SORT_TILE neighbours of the result: where they begin
 * and end in both runs is found by bisection (Odeh et al., "Merge path", 2012). Last, the places
 * that are asked for are stored, and the values that lie there. */
#include "core/backend/sort_key.h"
#include "cuda/kernels/op.h"

/* ---- items ------------------------------------------------------------------------------------
 */

struct narrow_item {
  uint64_t both; /* the key's 32 bits, the place's 32 */
  WEIR_IN void set(uint64_t key, int64_t place) { both = key << 32 | (uint64_t)place; }
  WEIR_IN void set_last() { both = ~(uint64_t)0; }
  WEIR_IN int64_t place() const { return (int64_t)(both & UINT32_MAX); }
  WEIR_IN bool before(const narrow_item &o) const { return both < o.both; }
};

struct wide_item {
  uint64_t key, at;
  WEIR_IN void set(uint64_t k, int64_t place)
  {
    key = k;
    at = (uint64_t)place;
  }
  WEIR_IN void set_last() { key = at = ~(uint64_t)0; }
  WEIR_IN int64_t place() const { return (int64_t)at; }
  WEIR_IN bool before(const wide_item &o) const
  {
    return key < o.key || (key == o.key && at < o.at);
  }
};

/* Number of element i of a line. */
WEIR_FN int64_t element_number(const weir_sort_rows &s, int64_t line, int64_t length, int64_t i)
{
  return (line / s.inner * length + i) * s.inner + line % s.inner;
}

/* ---- tiles ------------------------------------------------------------------------------------
 */

/* Whose slot that is, and which element of the line; false: no one's. */
WEIR_FN bool slot_element(const k_sort &a, int64_t tile, int slot, int64_t *line, int64_t *i)
{
  if (a.slots) {
    *line = tile * (WEIR_SORT_TILE / a.slots) + slot / a.slots;
    *i = slot % a.slots;
  } else {
    *line = tile / a.tiles;
    *i = tile % a.tiles * WEIR_SORT_TILE + slot;
  }
  return *line < a.lines && *i < a.of.length;
}

template <typename T> WEIR_FN void make_item(const k_sort &a, T *item, int64_t line, int64_t i)
{
  const weir_sort_rows &s = a.of;
  uint64_t bits = sort_bits_at(s.in, a.bytes, element_number(s, line, s.length, i));
  uint64_t key = sort_key_of(s.dtype, bits);
  item->set(s.descending ? sort_key_turned(key, a.bytes) : key, i);
}

/* Pair number p of a step: both ends, in order by `up`. */
template <typename T> WEIR_FN void sort_pair(T *items, int p, int size, int far, int most)
{
  int low = 2 * p - (p & (far - 1)), high = low + far;
  bool up = size == most || !(low & size);
  T x = items[low], y = items[high];
  if (y.before(x) != up) return;
  items[low] = y;
  items[high] = x;
}

template <typename T> WEIR_FN void sort_tiles(WEIR_PLACE_COMMA const k_sort &a)
{
  WEIR_SHARED T items[WEIR_SORT_TILE];
  int most = a.slots ? a.slots : WEIR_SORT_TILE;
  int64_t tiles = a.slots ? a.tiles : a.tiles * a.lines;
  for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    WEIR_PHASE
    {
      for (int slot = threadIdx.x; slot < WEIR_SORT_TILE; slot += WEIR_THREADS) {
        int64_t line, i;
        items[slot].set_last();
        if (slot_element(a, tile, slot, &line, &i)) make_item(a, &items[slot], line, i);
      }
    }
    for (int size = 2; size <= most; size *= 2)
      for (int far = size / 2; far; far /= 2) {
        WEIR_PHASE
        {
          for (int p = threadIdx.x; p < WEIR_SORT_TILE / 2; p += WEIR_THREADS)
            sort_pair(items, p, size, far, most);
        }
      }
    WEIR_PHASE
    {
      for (int slot = threadIdx.x; slot < WEIR_SORT_TILE; slot += WEIR_THREADS) {
        int64_t line, i;
        if (slot_element(a, tile, slot, &line, &i))
          ((T *)a.to)[line * a.of.length + i] = items[slot];
      }
    }
  }
}

/* ---- merging ----------------------------------------------------------------------------------
 */

/* How many of the first `at` items of x and y together are x's. */
template <typename T>
WEIR_FN int64_t merge_split(const T *x, int64_t nx, const T *y, int64_t ny, int64_t at)
{
  int64_t low = at > ny ? at - ny : 0, high = at < nx ? at : nx;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if (x[middle].before(y[at - 1 - middle]))
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* Two runs of a line that become one, and which part of it a tile is. */
struct merge_place {
  int64_t first;   /* number of the first run's first item */
  int64_t nx, ny;  /* items of both runs */
  int64_t at, end; /* the tile's items, counted from `first` */
};

WEIR_FN merge_place place_of_tile(const k_sort &a, int64_t tile)
{
  int64_t n = a.of.length, at = tile % a.tiles * WEIR_SORT_TILE,
          pair = at / (2 * a.run) * 2 * a.run;
  int64_t left = n - pair, nx = left < a.run ? left : a.run, ny = left - nx;
  if (ny > a.run) ny = a.run;
  merge_place m = {tile / a.tiles * n + pair, nx, ny, at - pair, at - pair + WEIR_SORT_TILE};
  if (m.end > nx + ny) m.end = nx + ny;
  return m;
}

/* A thread's neighbours of the tile's result. x and y are in shared memory. */
template <typename T>
WEIR_FN void merge_hand(const T *x, int nx, const T *y, int ny, int from, T *to)
{
  int i = (int)merge_split(x, nx, y, ny, from), j = from - i;
  WEIR_UNROLL for (int k = 0; k < WEIR_SORT_HAND; k++) if (from + k < nx + ny)
  {
    bool first = j >= ny || (i < nx && x[i].before(y[j]));
    to[from + k] = first ? x[i] : y[j];
    if (first)
      i++;
    else
      j++;
  }
}

template <typename T> WEIR_FN void sort_merge(WEIR_PLACE_COMMA const k_sort &a)
{
  WEIR_SHARED T items[WEIR_SORT_TILE];
  WEIR_SHARED int64_t splits[2]; /* items of the first run before the tile's begin and end */
  for (int64_t tile = blockIdx.x; tile < a.tiles * a.lines; tile += gridDim.x) {
    merge_place m = place_of_tile(a, tile);
    const T *x = (const T *)a.from + m.first, *y = x + m.nx;
    WEIR_PHASE
    {
      if (threadIdx.x > 1) continue;
      splits[threadIdx.x] = merge_split(x, m.nx, y, m.ny, threadIdx.x ? m.end : m.at);
    }
    int count = (int)(m.end - m.at), nx = (int)(splits[1] - splits[0]);
    int64_t skip = splits[0];
    WEIR_PHASE
    {
      for (int i = threadIdx.x; i < count; i += WEIR_THREADS)
        items[i] = i < nx ? x[skip + i] : y[m.at - skip + i - nx];
    }
    WEIR_PHASE
    {
      merge_hand(items, nx, items + nx, count - nx, (int)threadIdx.x * WEIR_SORT_HAND,
                 (T *)a.to + m.first + m.at);
    }
  }
}

/* ---- what is asked for ------------------------------------------------------------------------
 */

WEIR_FN void copy_element(void *to, int64_t at, const void *from, int64_t place, int bytes)
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

template <typename T> WEIR_FN void sort_take(WEIR_PLACE_COMMA const k_sort &a)
{
  const weir_sort_rows &s = a.of;
  WEIR_EACH_THREAD
  {
    int64_t count = a.lines * s.keep, step = (int64_t)gridDim.x * WEIR_THREADS;
    int64_t at = (int64_t)blockIdx.x * WEIR_THREADS + threadIdx.x;
    for (; at < count; at += step) {
      int64_t i = at / s.inner % s.keep, line = at / s.inner / s.keep * s.inner + at % s.inner;
      int64_t place = ((const T *)a.from)[line * s.length + s.from + i].place();
      s.index[at] = place;
      copy_element(s.values, at, s.in, element_number(s, line, s.length, place), a.bytes);
    }
  }
}

#define WEIR_K_SORT(step, item)                                                                    \
  WEIR_BLOCK_KERNEL(weir_sort_##step##_##item, WEIR_THREADS, WEIR_GIVEN k_sort a)                  \
  {                                                                                                \
    sort_##step<item##_item>(WEIR_HERE_COMMA a);                                                   \
  }
WEIR_K_SORT(tiles, narrow)
WEIR_K_SORT(tiles, wide)
WEIR_K_SORT(merge, narrow)
WEIR_K_SORT(merge, wide)
WEIR_K_SORT(take, narrow)
WEIR_K_SORT(take, wide)

/* ---- searching --------------------------------------------------------------------------------
 */

template <typename M> WEIR_FN M search_element(const void *data, int dtype, int64_t at)
{
  M x = 0;
  gather<M, 1>(&x, data, dtype, &at, 1);
  return x;
}

template <typename M> WEIR_FN int64_t search_place(const weir_search &s, int64_t at)
{
  int64_t first = s.shared ? 0 : at / s.each * s.length, low = 0, n = s.length;
  M v = search_element<M>(s.values, s.dtype, at);
  while (n > 0) {
    int64_t half = n / 2;
    M x = search_element<M>(s.sequence, s.dtype, first + low + half);
    bool beyond = s.right ? x > v : x >= v;
    if (s.nan_last && x != x) beyond = true;
    low = beyond ? low : low + half + 1;
    n = beyond ? half : n - half - 1;
  }
  return low;
}

template <typename M> WEIR_FN void search(WEIR_PLACE_COMMA const weir_search &s)
{
  WEIR_EACH_THREAD
  {
    int64_t count = s.rows * s.each, step = (int64_t)gridDim.x * WEIR_THREADS;
    int64_t at = (int64_t)blockIdx.x * WEIR_THREADS + threadIdx.x;
    for (; at < count; at += step) {
      int64_t place = search_place<M>(s, at);
      if (s.out_int32)
        ((int32_t *)s.out)[at] = (int32_t)place;
      else
        ((int64_t *)s.out)[at] = place;
    }
  }
}

WEIR_BLOCK_KERNEL(weir_search_integer, WEIR_THREADS, WEIR_GIVEN k_search a)
{
  search<int64_t>(WEIR_HERE_COMMA a.of);
}
WEIR_BLOCK_KERNEL(weir_search_real, WEIR_THREADS, WEIR_GIVEN k_search a)
{
  search<double>(WEIR_HERE_COMMA a.of);
}
