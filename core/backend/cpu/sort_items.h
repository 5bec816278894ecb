/* cpu/sort_items.h: sorting items of one type; cpu/sort.c includes it once for each.
 *
 * ITEM is a type, ITEM_KEY(item) its unsigned key, KEY_BITS how many bits that has, ITEM_BEFORE(a,
 * b) whether a goes before b: no two items are alike. ITEM_NAME(name) is what functions are
 * called. */

static void ITEM_NAME(insert_sort)(ITEM *x, int64_t n)
{
  for (int64_t i = 1; i < n; i++) {
    ITEM now = x[i];
    int64_t at = i;
    for (; at && ITEM_BEFORE(now, x[at - 1]); at--)
      x[at] = x[at - 1];
    x[at] = now;
  }
}

/* Moves x to `to`, in order of a digit; counts has become where each begins. */
static void ITEM_NAME(move_by_digit)(const ITEM *x, ITEM *to, int64_t n, int shift,
                                     int64_t counts[SORT_DIGITS])
{
  int64_t sum = 0;
  for (int d = 0; d < SORT_DIGITS; d++) {
    int64_t count = counts[d];
    counts[d] = sum;
    sum += count;
  }
  for (int64_t i = 0; i < n; i++)
    to[counts[ITEM_KEY(x[i]) >> shift & (SORT_DIGITS - 1)]++] = x[i];
}

/* x in order of its keys' digits, the lowest first; items of one key stay as they were. A digit
 * that all have is passed over. `spare` has room for as many. */
static void ITEM_NAME(radix_sort)(ITEM *x, ITEM *spare, int64_t n)
{
  enum { PASSES = KEY_BITS / 8 };
  int64_t counts[PASSES][SORT_DIGITS] = {{0}};
  ITEM *from = x, *to = spare;
  for (int64_t i = 0; i < n; i++)
    for (int p = 0; p < PASSES; p++)
      counts[p][ITEM_KEY(x[i]) >> 8 * p & (SORT_DIGITS - 1)]++;
  for (int p = 0; p < PASSES; p++) {
    if (counts[p][ITEM_KEY(from[0]) >> 8 * p & (SORT_DIGITS - 1)] == n) continue;
    ITEM_NAME(move_by_digit)(from, to, n, 8 * p, counts[p]);
    ITEM *was = from;
    from = to;
    to = was;
  }
  if (from != x) memcpy(x, from, (size_t)n * sizeof *x);
}

static void ITEM_NAME(sort)(ITEM *x, ITEM *spare, int64_t n)
{
  if (n <= SORT_FEW)
    ITEM_NAME(insert_sort)(x, n);
  else
    ITEM_NAME(radix_sort)(x, spare, n);
}

/* ---- selection ------------------------------------------------------------------------------- */

/* Parts x[from, to) by the middle of three of its items; returns where the second part begins. */
static int64_t ITEM_NAME(part_items)(ITEM *x, int64_t from, int64_t to)
{
  ITEM a = x[from], b = x[from + (to - from) / 2], c = x[to - 1];
  bool ab = ITEM_BEFORE(a, b), bc = ITEM_BEFORE(b, c), ac = ITEM_BEFORE(a, c);
  ITEM pivot = ab == bc ? b : ab == ac ? c : a;
  int64_t i = from - 1, j = to;
  for (;;) {
    do
      i++;
    while (ITEM_BEFORE(x[i], pivot));
    do
      j--;
    while (ITEM_BEFORE(pivot, x[j]));
    if (i >= j) return j + 1;
    ITEM swap = x[i];
    x[i] = x[j];
    x[j] = swap;
  }
}

/* The least `at` items of x[from, n) come to lie before the others. After too many parts that were
 * of no use the rest is sorted. */
static void ITEM_NAME(select)(ITEM *x, ITEM *spare, int64_t from, int64_t n, int64_t at)
{
  int64_t to = n;
  int tries = 0;
  for (int64_t m = to - from; m; m /= 2)
    tries += 3;
  while (to - from > SORT_FEW && at > from && at < to && tries--) {
    int64_t middle = ITEM_NAME(part_items)(x, from, to);
    if (at <= middle)
      to = middle;
    else
      from = middle;
  }
  if (at > from && at < to) ITEM_NAME(sort)(x + from, spare, to - from);
}

/* The item that has `at` others before it: those whose digit, the highest first, is its own are
 * kept until they are few. */
static ITEM ITEM_NAME(pick)(ITEM *x, int64_t n, int64_t at)
{
  for (int shift = KEY_BITS - 8; n > SORT_FEW && shift >= 0; shift -= 8) {
    int64_t counts[SORT_DIGITS] = {0}, kept = 0;
    uint64_t digit = 0;
    for (int64_t i = 0; i < n; i++)
      counts[ITEM_KEY(x[i]) >> shift & (SORT_DIGITS - 1)]++;
    for (; at >= counts[digit]; digit++)
      at -= counts[digit];
    for (int64_t i = 0; i < n; i++) {
      x[kept] = x[i];
      kept += (ITEM_KEY(x[i]) >> shift & (SORT_DIGITS - 1)) == digit;
    }
    n = kept;
  }
  if (n <= SORT_FEW) ITEM_NAME(insert_sort)(x, n);
  return x[at]; /* of one key they are in order of their places */
}

/* Places from to from + keep - 1 of x are as they would be if it were sorted. */
static void ITEM_NAME(sort_part)(ITEM *x, ITEM *spare, int64_t n, int64_t from, int64_t keep)
{
  if (keep == 1 && n > SORT_FEW) {
    x[from] = ITEM_NAME(pick)(x, n, from);
  } else if (keep > n / 8) {
    ITEM_NAME(sort)(x, spare, n);
  } else {
    ITEM_NAME(select)(x, spare, 0, n, from);
    ITEM_NAME(select)(x, spare, from, n, from + keep);
    ITEM_NAME(sort)(x + from, spare, keep);
  }
}

/* ---- merging --------------------------------------------------------------------------------- */

/* How many of the first `at` items of a and b together are a's. */
static int64_t ITEM_NAME(merge_split)(const ITEM *a, int64_t na, const ITEM *b, int64_t nb,
                                      int64_t at)
{
  int64_t low = at > nb ? at - nb : 0, high = at < na ? at : na;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if (ITEM_BEFORE(a[middle], b[at - 1 - middle]))
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* Items from to to - 1 of what a and b give together, to `out` + from. */
static void ITEM_NAME(merge_part)(const ITEM *a, int64_t na, const ITEM *b, int64_t nb, ITEM *out,
                                  int64_t from, int64_t to)
{
  int64_t i = ITEM_NAME(merge_split)(a, na, b, nb, from), j = from - i;
  for (int64_t k = from; k < to; k++) {
    bool first = j >= nb || (i < na && ITEM_BEFORE(a[i], b[j]));
    out[k] = first ? a[i++] : b[j++];
  }
}

/* ---- work ------------------------------------------------------------------------------------ */

/* dtype and bytes are known where this is expanded. */
static inline __attribute__((always_inline)) void ITEM_NAME(load_as)(const sort_work *w, ITEM *x,
                                                                     int64_t at, int64_t from,
                                                                     int64_t to, int dtype,
                                                                     int bytes)
{
  const weir_sort_rows *s = w->s;
  for (int64_t i = from; i < to; i++, at += s->inner) {
    uint64_t key = sort_key_of(dtype, sort_bits_at(s->in, bytes, at));
    ITEM_MAKE(x[i - from], s->descending ? sort_key_turned(key, bytes) : key, i);
  }
}

/* Items from to to - 1 of a line. */
static void ITEM_NAME(load)(const sort_work *w, ITEM *x, int64_t line, int64_t from, int64_t to)
{
  const weir_sort_rows *s = w->s;
  int64_t at = (line / s->inner * s->length + from) * s->inner + line % s->inner;
  switch (w->dtype) {
#define LOAD(name, number, text, size, type)                                                       \
  case WEIR_##name:                                                                                \
    ITEM_NAME(load_as)(w, x, at, from, to, WEIR_##name, size);                                     \
    break;
    WEIR_DTYPE_MAP(LOAD)
#undef LOAD
  default:
    break;
  }
}

/* The least `most` items of a line, in order: items gather in x until there are many, of which the
 * least are kept; what is not before the last of these is passed over. */
static void ITEM_NAME(load_least)(const sort_work *w, ITEM *x, ITEM *spare, int64_t line,
                                  int64_t most)
{
  int64_t room = 8 * most + SORT_GATHER, count = 0, n = w->s->length;
  ITEM some[SORT_GATHER], last;
  memset(&last, 0xff, sizeof last); /* after all */
  for (int64_t from = 0; from < n; from += SORT_GATHER) {
    int64_t to = from + SORT_GATHER < n ? from + SORT_GATHER : n;
    ITEM_NAME(load)(w, some, line, from, to);
    for (int64_t i = 0; i < to - from; i++) {
      x[count] = some[i];
      count += ITEM_BEFORE(some[i], last);
    }
    if (count + SORT_GATHER <= room && to < n) continue;
    ITEM_NAME(select)(x, spare, 0, count, most);
    if (count > most) count = most;
    ITEM_NAME(sort)(x, spare, count);
    if (count == most) last = x[count - 1];
  }
}

static void ITEM_NAME(store)(const sort_work *w, const ITEM *x, int64_t line, int64_t from,
                             int64_t to)
{
  const weir_sort_rows *s = w->s;
  int64_t outer = line / s->inner, j = line % s->inner, base = outer * s->length * s->inner + j;
  int64_t out = (outer * s->keep + from) * s->inner + j;
  for (int64_t i = from; i < to; i++, out += s->inner) {
    int64_t place = ITEM_PLACE(x[s->from + i]);
    s->index[out] = place;
    copy_element(s->values, out, s->in, base + place * s->inner, w->bytes);
  }
}

static void ITEM_NAME(sort_lines)(void *arg, int64_t from, int64_t to)
{
  const sort_work *w = arg;
  const weir_sort_rows *s = w->s;
  ITEM *x = (ITEM *)w->room + 2 * s->length * parallel_self(), *spare = x + s->length;
  for (int64_t line = from; line < to; line++) {
    if (s->length > 16 * (s->from + s->keep) + 4 * SORT_GATHER) {
      ITEM_NAME(load_least)(w, x, spare, line, s->from + s->keep);
    } else {
      ITEM_NAME(load)(w, x, line, 0, s->length);
      ITEM_NAME(sort_part)(x, spare, s->length, s->from, s->keep);
    }
    ITEM_NAME(store)(w, x, line, 0, s->keep);
  }
}

/* ---- a long line by several threads ---------------------------------------------------------- */

static void ITEM_NAME(sort_runs)(void *arg, int64_t from, int64_t to)
{
  const sort_work *w = arg;
  for (int64_t run = from; run < to; run++) {
    int64_t begin = run_begin(w, run), end = run_begin(w, run + 1);
    ITEM *x = w->room, *spare = x + w->s->length;
    ITEM_NAME(load)(w, x + begin, w->line, begin, end);
    ITEM_NAME(sort)(x + begin, spare + begin, end - begin);
  }
}

/* Each part is an equal share of the whole line, which may be some of several pairs of runs. */
static void ITEM_NAME(merge_runs)(void *arg, int64_t from, int64_t to)
{
  const sort_work *w = arg;
  for (int64_t part = from; part < to; part++) {
    int64_t pair = part / (2 * w->width) * 2 * w->width;
    int64_t a = run_begin(w, pair), b = run_begin(w, pair + w->width),
            end = run_begin(w, pair + 2 * w->width);
    const ITEM *x = w->from;
    ITEM_NAME(merge_part)
    (x + a, b - a, x + b, end - b, (ITEM *)w->to + a, run_begin(w, part) - a,
     run_begin(w, part + 1) - a);
  }
}

static void ITEM_NAME(store_runs)(void *arg, int64_t from, int64_t to)
{
  const sort_work *w = arg;
  ITEM_NAME(store)(w, w->from, w->line, from, to);
}

#undef ITEM
#undef ITEM_KEY
#undef ITEM_PLACE
#undef ITEM_MAKE
#undef ITEM_BEFORE
#undef ITEM_NAME
#undef KEY_BITS
