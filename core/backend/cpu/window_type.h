/* cpu/window_type.h: rows of windows for one type of element; cpu/window.c includes it once for
 * each. ELEMENT: as it lies in memory; MATH: what is calculated in; OF(element) and TO(math)
 * convert; LOWEST: the largest of nothing; AVERAGES, REALS: 1 where there are averages, derivatives
 * and interpolation; PLAIN: 1 where elements compare as they lie in memory; PLACE, where PLAIN: an
 * integer as long as an element, 4 bytes at least; LINES: 1 + the place of its kernels of lines in
 * cpu_row_level, or 0; NAME(x): x of this type. Integers need only ELEMENT, LOWEST and NAME. */

#ifndef MATH
#define MATH  int64_t
#define OF(x) (+(x))
#define TO(x) ((ELEMENT)(x))
#define REALS 0
#define PLAIN 1
#define LINES 0
#endif
#ifndef AVERAGES
#define AVERAGES 0
#endif
#ifndef PLACE
#define PLACE int32_t
#endif

#if REALS
#define IS_NAN(v) ((v) != (v))
#else
#define IS_NAN(v) false
#endif

/* The largest of one window; NaN, the last, where there is one. */
static MATH NAME(window_max)(const ELEMENT *in, const weir_pool *p, const window_span *z,
                             const window_span *y, const window_span *x, int64_t *place)
{
  int64_t rows = p->axis[1].in, columns = p->axis[2].in, at = -1;
  MATH most = 0;
  for (int64_t i = z->from; i < z->to; i += z->step)
    for (int64_t j = y->from; j < y->to; j += y->step) {
      int64_t row = (i * rows + j) * columns;
      for (int64_t k = x->from; k < x->to; k += x->step) {
        MATH v = OF(in[row + k]);
        if (at < 0 || v > most || IS_NAN(v)) {
          most = v;
          at = row + k;
        }
      }
    }
  *place = at;
  return most;
}

#if PLAIN
/* Whether v takes most's place. */
#define BETTER(v, most) ((v) > (most) || IS_NAN(v))

/* What is `step` elements apart from `in` on, into `count` outputs, each the largest so far. */
static inline void NAME(max_into)(ELEMENT *restrict to, const ELEMENT *restrict in, int64_t step,
                                  int64_t count)
{
  for (int64_t o = 0; o < count; o++)
    to[o] = BETTER(in[o * step], to[o]) ? in[o * step] : to[o];
}

/* The same of wide windows without a place, by vectors. Of equals, and of NaN, any: where there are
 * two kinds of them the bits are found again one by one. */
static MATH NAME(wide_max)(const ELEMENT *in, const weir_pool *p, const window_span *z,
                           const window_span *y, const window_span *x)
{
  int64_t rows = p->axis[1].in, columns = p->axis[2].in, width = x->to - x->from, place;
  int64_t lanes = width < WINDOW_LANES ? width : WINDOW_LANES;
  ELEMENT lane[WINDOW_LANES], most = LOWEST;
  for (int64_t l = 0; l < lanes; l++)
    lane[l] = LOWEST;
  for (int64_t i = z->from; i < z->to; i += z->step)
    for (int64_t j = y->from; j < y->to; j += y->step) {
      const ELEMENT *row = in + (i * rows + j) * columns + x->from;
      for (int64_t k = 0; k < width; k += lanes)
        NAME(max_into)(lane, row + k, 1, width - k < lanes ? width - k : lanes);
    }
  for (int64_t l = 0; l < lanes; l++)
    most = BETTER(lane[l], most) ? lane[l] : most;
  if (REALS && (most == 0 || IS_NAN(most))) return NAME(window_max)(in, p, z, y, x, &place);
  return most;
}

/* And their places, of which the first is `from`. */
static inline void NAME(max_place_into)(ELEMENT *restrict to, PLACE *restrict place,
                                        const ELEMENT *restrict in, PLACE from, PLACE step,
                                        PLACE count)
{
  for (PLACE o = 0; o < count; o++) {
    ELEMENT x = in[o * step], most = to[o];
    bool better = BETTER(x, most);
    to[o] = better ? x : most;
    place[o] = better ? from + o * step : place[o];
  }
}

/* One row of inputs, at `base` of the plane, into a row of narrow windows: a place of all of them
 * at a time. */
static void NAME(max_columns)(const weir_axis *x, ELEMENT *to, PLACE *place, const ELEMENT *in,
                              int64_t base)
{
  for (int64_t k = 0; k < x->kernel; k++) {
    int64_t shift = k * x->dilation - x->pad, first = 0, last;
    if (shift < 0) first = -shift / x->stride + (-shift % x->stride != 0);
    last = shift < x->in ? (x->in - 1 - shift) / x->stride + 1 : 0;
    if (last > x->out) last = x->out;
    if (first >= last) continue;
    int64_t from = base + first * x->stride + shift;
    PLACE at = (PLACE)from, count = (PLACE)(last - first);
    if (place && x->stride == 1)
      NAME(max_place_into)(to + first, place + first, in + from, at, 1, count);
    else if (place && x->stride == 2)
      NAME(max_place_into)(to + first, place + first, in + from, at, 2, count);
    else if (place)
      NAME(max_place_into)(to + first, place + first, in + from, at, (PLACE)x->stride, count);
    else if (x->stride == 1)
      NAME(max_into)(to + first, in + from, 1, last - first);
    else if (x->stride == 2)
      NAME(max_into)(to + first, in + from, 2, last - first);
    else
      NAME(max_into)(to + first, in + from, x->stride, last - first);
  }
}

/* Whether a row's places can be noted next to it. */
static inline bool NAME(is_noted)(const weir_pool *p)
{
  const weir_axis *a = p->axis;
  double reach = 1; /* places up to where any window may begin */
  for (int i = 0; i < 3; i++)
    reach *= (double)a[i].in + (double)a[i].pad + (double)a[i].dilation;
  bool fits = sizeof(PLACE) > 4 || reach < INT32_MAX / 2;
  return !p->index || (fits && a[2].out <= LINE_MOST && a[2].stride <= LINE_MOST);
}

static void NAME(max_narrow)(const weir_pool *p, const ELEMENT *in, int64_t at,
                             const window_span *z, const window_span *y)
{
  const weir_axis *a = p->axis, *x = &a[2];
  ELEMENT *to = (ELEMENT *)p->to + at;
  PLACE noted[LINE_MOST], *place = p->index ? noted : NULL, count = (PLACE)x->out;
  for (int64_t o = 0; o < x->out; o++)
    to[o] = LOWEST;
  if (place) { /* the first of each window */
    int64_t row = (z->from * a[1].in + y->from) * x->in;
    PLACE first = (PLACE)(row - x->pad), step = (PLACE)x->stride;
    for (PLACE o = 0; o < count; o++)
      place[o] = first + o * step;
    for (int64_t o = 0; o < x->out && o * x->stride < x->pad; o++)
      place[o] = (PLACE)(row + window_of(x, false, o).from);
  }
  for (int64_t i = z->from; i < z->to; i += z->step)
    for (int64_t j = y->from; j < y->to; j += y->step)
      NAME(max_columns)(x, to, place, in, (i * a[1].in + j) * x->in);
  for (PLACE o = 0; o < count && place; o++)
    p->index[at + o] = place[o];
}
#endif

#if LINES
/* A row of outputs whose windows see a line, the sum of the planes' rows that they see. */
typedef ELEMENT NAME(folded_line)[LINE_MOST];

/* false: they see none. */
static bool NAME(fold_line)(ELEMENT *line, const ELEMENT *in, const weir_pool *p,
                            const window_span *z, const window_span *y)
{
  int64_t columns = p->axis[2].in;
  bool some = false;
  for (int64_t i = z->from; i < z->to; i += z->step)
    for (int64_t j = y->from; j < y->to; j += y->step) {
      const ELEMENT *row = in + (i * p->axis[1].in + j) * columns;
      if (some)
        lines_of(LINES)->add(line, row, columns);
      else
        memcpy(line, row, (size_t)columns * sizeof *line);
      some = true;
    }
  return some;
}

static void NAME(average_line_row)(const weir_pool *p, int64_t plane, int64_t oz, int64_t oy)
{
  const weir_axis *a = p->axis;
  NAME(folded_line) line;
  const ELEMENT *in = (const ELEMENT *)p->from + plane * a[0].in * a[1].in * a[2].in;
  ELEMENT *to = (ELEMENT *)p->to + ((plane * a[0].out + oz) * a[1].out + oy) * a[2].out;
  window_span z = window_of(&a[0], p->adaptive, oz), y = window_of(&a[1], p->adaptive, oy);
  bool some = NAME(fold_line)(line, in, p, &z, &y);
  for (int64_t ox = 0; ox < a[2].out; ox++) {
    window_span x = window_of(&a[2], p->adaptive, ox);
    bool none = !some || x.from >= x.to;
    ELEMENT sum = 0;
    for (int64_t k = x.from; k < x.to && some; k++)
      sum += line[k];
    to[ox] = none ? 0 : sum / (ELEMENT)window_divisor(p, &z, &y, &x);
  }
}
#endif

/* A row of outputs: MAX. */
static void NAME(max_row)(const weir_pool *p, int64_t plane, int64_t oz, int64_t oy)
{
  const weir_axis *a = p->axis;
  const ELEMENT *in = (const ELEMENT *)p->from + plane * a[0].in * a[1].in * a[2].in;
  int64_t at = ((plane * a[0].out + oz) * a[1].out + oy) * a[2].out, place;
  window_span z = window_of(&a[0], p->adaptive, oz), y = window_of(&a[1], p->adaptive, oy);
#if PLAIN
  if (!p->adaptive && a[2].kernel <= WINDOW_NARROW && NAME(is_noted)(p)) {
    NAME(max_narrow)(p, in, at, &z, &y);
    return;
  }
#endif
  for (int64_t ox = 0; ox < a[2].out; ox++) {
    window_span x = window_of(&a[2], p->adaptive, ox);
#if PLAIN
    if (!p->index && x.step == 1 && x.to - x.from > WINDOW_NARROW) {
      ((ELEMENT *)p->to)[at + ox] = (ELEMENT)NAME(wide_max)(in, p, &z, &y, &x);
      continue;
    }
#endif
    MATH most = NAME(window_max)(in, p, &z, &y, &x, &place);
    ((ELEMENT *)p->to)[at + ox] = place < 0 ? LOWEST : TO(most);
    if (place < 0) place = (z.from * a[1].in + y.from) * a[2].in + x.from; /* as torch's */
    if (p->index) p->index[at + ox] = place;
  }
}
#undef BETTER

#if AVERAGES
static MATH NAME(window_sum)(const ELEMENT *in, const weir_pool *p, const window_span *z,
                             const window_span *y, const window_span *x)
{
  int64_t rows = p->axis[1].in, columns = p->axis[2].in;
  MATH sum = 0;
  for (int64_t i = z->from; i < z->to; i++)
    for (int64_t j = y->from; j < y->to; j++) {
      const ELEMENT *row = in + (i * rows + j) * columns;
      for (int64_t k = x->from; k < x->to; k++)
        sum += OF(row[k]);
    }
  return sum;
}

/* A row of outputs: AVERAGE. */
static void NAME(average_row)(const weir_pool *p, int64_t plane, int64_t oz, int64_t oy)
{
  const weir_axis *a = p->axis;
  const ELEMENT *in = (const ELEMENT *)p->from + plane * a[0].in * a[1].in * a[2].in;
  int64_t at = ((plane * a[0].out + oz) * a[1].out + oy) * a[2].out;
  window_span z = window_of(&a[0], p->adaptive, oz), y = window_of(&a[1], p->adaptive, oy);
  for (int64_t ox = 0; ox < a[2].out; ox++) {
    window_span x = window_of(&a[2], p->adaptive, ox);
    bool none = z.from >= z.to || y.from >= y.to || x.from >= x.to;
    MATH sum = none ? 0 : NAME(window_sum)(in, p, &z, &y, &x);
    ((ELEMENT *)p->to)[at + ox] = TO(none ? 0 : sum / (MATH)window_divisor(p, &z, &y, &x));
  }
}

#endif

#if REALS
/* What place (iz, iy, ix) gets back of the windows from first to last - 1. */
static MATH NAME(given_back)(const weir_pool *p, int64_t plane, const int64_t *first,
                             const int64_t *last, int64_t place)
{
  const weir_axis *a = p->axis;
  MATH sum = 0;
  for (int64_t oz = first[0]; oz < last[0]; oz++)
    for (int64_t oy = first[1]; oy < last[1]; oy++) {
      int64_t row = ((plane * a[0].out + oz) * a[1].out + oy) * a[2].out;
      const ELEMENT *from = (const ELEMENT *)p->from + row;
      if (p->kind == WEIR_POOL_MAX_BACK) {
        for (int64_t ox = first[2]; ox < last[2]; ox++)
          if (p->index[row + ox] == place) sum += OF(from[ox]);
        continue;
      }
      window_span z = window_of(&a[0], p->adaptive, oz), y = window_of(&a[1], p->adaptive, oy);
      for (int64_t ox = first[2]; ox < last[2]; ox++) {
        window_span x = window_of(&a[2], p->adaptive, ox);
        sum += OF(from[ox]) / (MATH)window_divisor(p, &z, &y, &x);
      }
    }
  return sum;
}

/* A plane of inputs: MAX_BACK, each output's to its place, in their order. Where windows overlap,
 * only what is calculated as it lies in memory. */
static void NAME(back_plane)(const weir_pool *p, int64_t plane)
{
  const weir_axis *a = p->axis;
  int64_t places = a[0].in * a[1].in * a[2].in, outs = a[0].out * a[1].out * a[2].out;
  ELEMENT *to = (ELEMENT *)p->to + plane * places;
  const ELEMENT *from = (const ELEMENT *)p->from + plane * outs;
  const int64_t *place = p->index + plane * outs;
  memset(to, 0, (size_t)places * sizeof *to);
  for (int64_t o = 0; o < outs; o++)
    if ((uint64_t)place[o] < (uint64_t)places) to[place[o]] = TO(OF(to[place[o]]) + OF(from[o]));
}

/* A row of inputs: the BACK kinds. */
static void NAME(back_row)(const weir_pool *p, int64_t plane, int64_t iz, int64_t iy)
{
  const weir_axis *a = p->axis;
  int64_t first[3], last[3], row = (iz * a[1].in + iy) * a[2].in;
  ELEMENT *to = (ELEMENT *)p->to + plane * a[0].in * a[1].in * a[2].in + row;
  windows_over(&a[0], p->adaptive, iz, &first[0], &last[0]);
  windows_over(&a[1], p->adaptive, iy, &first[1], &last[1]);
  for (int64_t ix = 0; ix < a[2].in; ix++) {
    windows_over(&a[2], p->adaptive, ix, &first[2], &last[2]);
    to[ix] = TO(NAME(given_back)(p, plane, first, last, row + ix));
  }
}

/* A row of outputs, interpolated; x: the taps of each place of a row. */
static void NAME(resample_row)(const weir_resample *r, const window_taps *x, int64_t plane,
                               const window_taps *z, const window_taps *y, int64_t at)
{
  const ELEMENT *in = (const ELEMENT *)r->from + plane * r->in[0] * r->in[1] * r->in[2];
  ELEMENT *out = (ELEMENT *)r->to + at;
  for (int64_t o = 0; o < r->out[2]; o++) {
    MATH sum = 0;
    for (int i = 0; i < z->count; i++)
      for (int j = 0; j < y->count; j++) {
        const ELEMENT *row = in + (z->at[i] * r->in[1] + y->at[j]) * r->in[2];
        MATH part = 0;
        for (int k = 0; k < x[o].count; k++)
          part += OF(row[x[o].at[k]]) * (MATH)x[o].weight[k];
        sum += part * (MATH)(z->weight[i] * y->weight[j]);
      }
    out[o] = TO(sum);
  }
}

/* What place i, in elements of a row of inputs, gets back of the outputs from first to last - 1. */
static MATH NAME(resample_back)(const weir_resample *r, const window_taps *x, int64_t plane,
                                const resampled *q, int64_t i)
{
  MATH sum = 0;
  int64_t first, last;
  resampled_over(r, 2, q->scale[2], i, &first, &last);
  for (int64_t oz = q->first[0]; oz < q->last[0]; oz++) {
    window_taps z = taps_of(r, 0, q->scale[0], oz);
    double wz = tap_weight(&z, q->at[0]);
    for (int64_t oy = q->first[1]; oy < q->last[1] && wz != 0; oy++) {
      window_taps y = taps_of(r, 1, q->scale[1], oy);
      double wy = tap_weight(&y, q->at[1]) * wz;
      const ELEMENT *from =
          (const ELEMENT *)r->from + ((plane * r->out[0] + oz) * r->out[1] + oy) * r->out[2];
      for (int64_t ox = first; ox < last && wy != 0; ox++)
        sum += OF(from[ox]) * (MATH)(tap_weight(&x[ox], i) * wy);
    }
  }
  return sum;
}
#endif

#undef ELEMENT
#undef MATH
#undef OF
#undef TO
#undef LOWEST
#undef IS_NAN
#undef REALS
#undef PLAIN
#undef PLACE
#undef LINES
#undef AVERAGES
#undef NAME
