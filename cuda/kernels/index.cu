/* index.cu: elements chosen by index tensors: weir_indexing; and places: weir_places.
 *
 * A thread does an element of the loop at a time. Updates of one element of self by several threads
 * are atomic; where one order is asked for, a thread goes through all that may be the same element
 * (args.h: walked), several threads each through the same, for elements of self of their own.
 * Memory of what is shorter than 32 bits is changed by the aligned word around it. */
#include "cuda/kernels/number.h"

/* ---- places in self -------------------------------------------------------------------------- */

WEIR_FN void refuse_index(k_index_fault *f, int64_t index, const k_indices &n)
{
#ifdef __CUDA_ARCH__
  if (atomicExch(&f->taken, 1u)) return;
#else
  if (__atomic_exchange_n(&f->taken, 1u, __ATOMIC_ACQ_REL)) return;
#endif
  f->index = index;
  f->size = n.size;
  f->dim = n.dim;
#ifdef __CUDA_ARCH__
  __threadfence_system();
  *(volatile uint32_t *)&f->noted = 1;
#else
  __atomic_store_n(&f->noted, 1u, __ATOMIC_RELEASE);
#endif
}

WEIR_FN void coordinates(const k_indexing &a, int64_t i, int64_t *at)
{
  if (a.small) {
    uint32_t x = (uint32_t)i;
    WEIR_UNROLL for (int d = WEIR_DIMS - 1; d >= 0; d--)
    {
      uint32_t k = x;
      if (d && d < a.dims) x = divided(x, a.size[d], &k);
      at[d] = d < a.dims ? k : 0;
    }
    return;
  }
  WEIR_UNROLL for (int d = WEIR_DIMS - 1; d >= 0; d--)
  {
    at[d] = d < a.dims ? i : 0;
    if (!d || d >= a.dims) continue;
    at[d] = i % a.length[d];
    i /= a.length[d];
  }
}

WEIR_FN int64_t along(const int64_t *at, const int64_t *stride)
{
  int64_t sum = 0;
  WEIR_UNROLL for (int d = 0; d < WEIR_DIMS; d++) sum += at[d] * stride[d];
  return sum;
}

/* Where element i of the loop is. False: an index is out of bounds. */
WEIR_FN bool chosen(const k_indexing &a, int64_t i, int64_t *self, int64_t *values)
{
  int64_t at[WEIR_DIMS];
  bool good = true;
  coordinates(a, i, at);
  *values = along(at, a.values_stride);
  int64_t sum = along(at, a.self_stride);
  WEIR_ROLLED for (int j = 0; j < a.indices; j++)
  {
    const k_indices &n = a.index[j];
    int64_t from = along(at, n.stride);
    int64_t x = n.wide ? ((const int64_t *)n.at)[from] : ((const int32_t *)n.at)[from];
    int64_t y = x < 0 && a.wrap ? x + n.size : x;
    if (y >= 0 && y < n.size) {
      sum += y * n.step;
    } else {
      refuse_index(a.fault, x, n);
      good = false;
    }
  }
  *self = sum;
  return good;
}

/* ---- one element ----------------------------------------------------------------------------- */

template <typename T> struct index_read {
  typedef T element;
  WEIR_IN static void miss(T *value) { *value = T(); }
  WEIR_IN static void once(T *self, T *value) { *value = *self; }
  WEIR_IN static void many(T *self, T *value) { *value = *self; }
};

template <typename T> struct index_set {
  typedef T element;
  WEIR_IN static void miss(T *) {}
  WEIR_IN static void once(T *self, T *value) { *self = *value; }
  WEIR_IN static void many(T *self, T *value) { *self = *value; }
};

template <typename M> WEIR_FN M updated(int op, M x, M y)
{
  if constexpr (std::is_same<M, c64>::value) {
    if (op == WEIR_INDEX_ADD) return c64{x.re + y.re, x.im + y.im};
    return c64{x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re};
  } else {
    if (op == WEIR_INDEX_MAX) return x < y || y != y ? y : x;
    if (op == WEIR_INDEX_MIN) return y < x || y != y ? y : x;
    if constexpr (std::is_integral<M>::value)
      return (M)(op == WEIR_INDEX_ADD ? (uint64_t)x + (uint64_t)y : (uint64_t)x * (uint64_t)y);
    else
      return op == WEIR_INDEX_ADD ? x + y : x * y;
  }
}

template <typename T, int OP> struct index_update {
  typedef T element;
  typedef typename math_of<T>::type M;
  WEIR_IN static void miss(T *) {}
  WEIR_IN static T both(T x, T y) { return to<T>(updated<M>(OP, to<M>(x), to<M>(y))); }
  WEIR_IN static void once(T *self, T *value) { *self = both(*self, *value); }
  WEIR_IN static void many(T *self, T *value);
};

#ifdef __CUDA_ARCH__
/* The bits of an element within its word. */
template <typename T, typename W> WEIR_FN T part_of(W word, int shift)
{
  W bits = word >> shift;
  T x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

template <typename T, typename W> WEIR_FN W with_part(W word, T x, int shift)
{
  W bits = 0, mask = sizeof(T) == sizeof(W) ? ~(W)0 : ((W)1 << 8 * sizeof(T)) - 1;
  memcpy(&bits, &x, sizeof x);
  return (word & ~(mask << shift)) | bits << shift;
}

template <typename T, int OP, typename W> WEIR_FN void exchange(T *self, T value)
{
  uintptr_t address = (uintptr_t)self;
  int shift = (int)(address % sizeof(W)) * 8;
  W *at = (W *)(address - address % sizeof(W)), seen = *(volatile W *)at, expected;
  do {
    expected = seen;
    T now = index_update<T, OP>::both(part_of<T>(expected, shift), value);
    seen = atomicCAS(at, expected, with_part(expected, now, shift));
  } while (seen != expected);
}

template <typename T, int OP> WEIR_IN void index_update<T, OP>::many(T *self, T *value)
{
  if constexpr (OP == WEIR_INDEX_ADD &&
                (std::is_same<T, float>::value || std::is_same<T, double>::value ||
                 std::is_same<T, int32_t>::value))
    atomicAdd(self, *value);
  else if constexpr (OP == WEIR_INDEX_ADD && std::is_same<T, int64_t>::value)
    atomicAdd((unsigned long long *)self, (unsigned long long)*value);
  else if constexpr (OP == WEIR_INDEX_ADD && std::is_same<T, c64>::value) {
    atomicAdd(&self->re, value->re);
    atomicAdd(&self->im, value->im);
  } else if constexpr (sizeof(T) == 8)
    exchange<T, OP, unsigned long long>(self, *value);
  else
    exchange<T, OP, unsigned>(self, *value);
}
#else
template <typename T, int OP> WEIR_IN void index_update<T, OP>::many(T *self, T *value)
{
  once(self, value);
}
#endif

/* ---- the loop -------------------------------------------------------------------------------- */

template <typename A>
WEIR_FN void index_one(const k_indexing &a, int64_t self, int64_t values, bool good)
{
  typedef typename A::element T;
  T number, *value = (T *)a.values + values;
  if (!a.values) {
    memcpy(&number, &a.number, sizeof number);
    value = &number;
  }
  if (!good)
    A::miss(value);
  else if (a.shares)
    A::once((T *)a.self + self, value);
  else
    A::many((T *)a.self + self, value);
}

/* Copies know their elements by size. */
template <typename A> struct index_copies {
  WEIR_IN static void one(const k_indexing &a, int64_t self, int64_t values, bool good)
  {
    index_one<A>(a, self, values, good);
  }
};

/* Updates look for the dtype at each element: else places would be calculated in as many copies of
 * the code as there are dtypes. */
template <int OP> struct index_updates {
  WEIR_IN static void one(const k_indexing &a, int64_t self, int64_t values, bool good)
  {
    switch (a.dtype) {
#define CASE(name, type)                                                                           \
  case WEIR_##name:                                                                                \
    if constexpr (!std::is_same<type, c64>::value || OP == WEIR_INDEX_ADD || OP == WEIR_INDEX_MUL) \
      index_one<index_update<type, OP>>(a, self, values, good);                                    \
    break;
      WEIR_K_DTYPES(CASE)
#undef CASE
    default:
      break;
    }
  }
};

/* What thread `thread` of `threads` does: elements of the loop one by one, or in order, of each of
 * its lanes all that are its share. */
template <typename A>
WEIR_FN void index_elements(const k_indexing &a, int64_t thread, int64_t threads)
{
  int64_t walked = a.shares ? a.walked : 1, shares = a.shares ? a.shares : 1;
  for (int64_t n = thread; n < a.count / walked * shares; n += threads)
    WEIR_ROLLED for (int64_t i = 0; i < walked; i++)
    {
      int64_t self, values;
      bool good = chosen(a, n / shares * walked + i, &self, &values);
      if ((self & (shares - 1)) == (n & (shares - 1))) A::one(a, self, values, good);
    }
}

#define WEIR_K_INDEX_THREAD                                                                        \
  (int64_t) blockIdx.x *WEIR_THREADS + threadIdx.x, (int64_t)gridDim.x *WEIR_THREADS

#define WEIR_K_INDEX_COPY(bytes, type)                                                             \
  WEIR_BLOCK_KERNEL(weir_index_read_##bytes, WEIR_THREADS, WEIR_GIVEN k_indexing a)                \
  {                                                                                                \
    WEIR_EACH_THREAD index_elements<index_copies<index_read<type>>>(a, WEIR_K_INDEX_THREAD);       \
  }                                                                                                \
  WEIR_BLOCK_KERNEL(weir_index_set_##bytes, WEIR_THREADS, WEIR_GIVEN k_indexing a)                 \
  {                                                                                                \
    WEIR_EACH_THREAD index_elements<index_copies<index_set<type>>>(a, WEIR_K_INDEX_THREAD);        \
  }
WEIR_K_INDEX_COPY(1, uint8_t)
WEIR_K_INDEX_COPY(2, uint16_t)
WEIR_K_INDEX_COPY(4, uint32_t)
WEIR_K_INDEX_COPY(8, uint64_t)

#define WEIR_K_INDEX_UPDATE(name, op)                                                              \
  WEIR_BLOCK_KERNEL(weir_index_##name, WEIR_THREADS, WEIR_GIVEN k_indexing a)                      \
  {                                                                                                \
    WEIR_EACH_THREAD index_elements<index_updates<WEIR_INDEX_##op>>(a, WEIR_K_INDEX_THREAD);       \
  }
WEIR_K_INDEX_UPDATE(add, ADD)
WEIR_K_INDEX_UPDATE(mul, MUL)
WEIR_K_INDEX_UPDATE(max, MAX)
WEIR_K_INDEX_UPDATE(min, MIN)

/* ---- places ---------------------------------------------------------------------------------- */

WEIR_FN int64_t times_of(const weir_places &p, int64_t i)
{
  if (i >= p.count) return 0;
  if (p.times) {
    int64_t n;
    gather<int64_t, 1>(&n, p.in, p.dtype, &i, 1);
    return n > 0 ? n : 0;
  }
  b8 yes;
  gather<b8, 1>(&yes, p.in, p.dtype, &i, 1);
  return yes.value != 0;
}

/* A block counts a chunk at a time. */
WEIR_BLOCK_KERNEL(weir_places_count, WEIR_THREADS, WEIR_GIVEN k_places a)
{
  WEIR_SHARED int64_t part[WEIR_THREADS];
  for (int64_t c = blockIdx.x; c < a.chunks; c += gridDim.x) {
    WEIR_PHASE
    {
      int64_t sum = 0;
      for (int k = threadIdx.x; k < WEIR_PLACES_CHUNK; k += WEIR_THREADS)
        sum += times_of(a.of, c * WEIR_PLACES_CHUNK + k);
      part[threadIdx.x] = sum;
    }
    for (unsigned half = WEIR_THREADS / 2; half; half /= 2)
      WEIR_PHASE if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    WEIR_PHASE if (!threadIdx.x) a.of.sums[c] = part[0];
  }
}

/* One block: counts become sums of what is before. */
WEIR_BLOCK_KERNEL(weir_places_scan, WEIR_THREADS, WEIR_GIVEN k_places a)
{
  WEIR_SHARED int64_t part[WEIR_THREADS + 1];
  int64_t each = (a.chunks + WEIR_THREADS - 1) / WEIR_THREADS;
  WEIR_PHASE
  {
    int64_t sum = 0, end = (threadIdx.x + 1) * each;
    for (int64_t c = threadIdx.x * each; c < end && c < a.chunks; c++)
      sum += a.of.sums[c];
    part[threadIdx.x] = sum;
  }
  WEIR_PHASE
  {
    if (threadIdx.x) continue;
    int64_t sum = 0;
    for (int t = 0; t <= WEIR_THREADS; t++) {
      int64_t here = t < WEIR_THREADS ? part[t] : 0;
      part[t] = sum;
      sum += here;
    }
    a.of.sums[a.chunks] = sum;
  }
  WEIR_EACH_THREAD
  {
    int64_t sum = part[threadIdx.x], end = (threadIdx.x + 1) * each;
    for (int64_t c = threadIdx.x * each; c < end && c < a.chunks; c++) {
      int64_t here = a.of.sums[c];
      a.of.sums[c] = sum;
      sum += here;
    }
  }
}

WEIR_FN void store_place(const weir_places &p, int64_t place, int64_t to)
{
  for (int d = p.dims - 1; d > 0; d--) {
    p.out[d * p.room + to] = place % p.size[d];
    place /= p.size[d];
  }
  p.out[to] = place;
}

/* A block writes a chunk's places at a time; a thread those of neighbours. */
WEIR_BLOCK_KERNEL(weir_places_write, WEIR_THREADS, WEIR_GIVEN k_places a)
{
  const int each = WEIR_PLACES_CHUNK / WEIR_THREADS;
  WEIR_SHARED int64_t before[2][WEIR_THREADS];
  for (int64_t c = blockIdx.x; c < a.chunks; c += gridDim.x) {
    int now = 0;
    WEIR_PHASE
    {
      int64_t sum = 0;
      for (int k = 0; k < each; k++)
        sum += times_of(a.of, c * WEIR_PLACES_CHUNK + (int64_t)threadIdx.x * each + k);
      before[0][threadIdx.x] = sum;
    }
    for (unsigned step = 1; step < WEIR_THREADS; step *= 2) {
      WEIR_PHASE
      {
        int64_t sum = before[now][threadIdx.x];
        if (threadIdx.x >= step) sum += before[now][threadIdx.x - step];
        before[1 - now][threadIdx.x] = sum;
      }
      now = 1 - now;
    }
    WEIR_PHASE
    {
      int64_t to = a.of.sums[c] + (threadIdx.x ? before[now][threadIdx.x - 1] : 0);
      int64_t first = c * WEIR_PLACES_CHUNK + (int64_t)threadIdx.x * each;
      for (int k = 0; k < each; k++) {
        int64_t n = times_of(a.of, first + k);
        for (; n && to < a.of.room; n--)
          store_place(a.of, first + k, to++);
      }
    }
  }
}
