/* gains.c: see gains.h. */
#include "reports/findings/gains.h"
#include <math.h>
#include <stdlib.h>

bool wr_gains_open(wr_gains *x, size_t findings)
{
  *x = (wr_gains){.count = findings, .words = findings / 64 + 1};
  x->gain = calloc(findings + 1, sizeof(*x->gain));
  x->end = calloc(findings + 1, sizeof(*x->end));
  x->going = calloc(x->words, sizeof(*x->going));
  x->first = x->words;
  return x->gain && x->end && x->going;
}

void wr_gains_close(wr_gains *x)
{
  free(x->gain);
  free(x->end);
  free(x->going);
  *x = (wr_gains){0};
}

/* The time up to `to` is the pieces' that go on, the first finding's before the others'. Once it is all some's, those behind are
 * not looked at: what ends meanwhile gets nothing later either. */
static void advance_to(wr_gains *x, uint64_t to)
{
  uint64_t at = x->now;
  x->now = to;
  for (size_t w = x->first; w < x->words; w++) {
    for (uint64_t left = x->going[w]; left; left &= left - 1) {
      size_t rank = w * 64 + (size_t)__builtin_ctzll(left);
      uint64_t end = x->end[rank] < to ? x->end[rank] : to;
      if (end > at) x->gain[rank].added += end - at, at = end;
      if (x->end[rank] <= to) x->going[w] &= ~(UINT64_C(1) << rank % 64);
      if (at == to) return;
    }
    if (!x->going[w] && w == x->first) x->first++;
  }
}

/* Two tenths become one. */
static void halve_tenths(wr_gain *g)
{
  for (size_t i = 0; i < WR_GAIN_TENTHS / 2; i++)
    g->tenth[i] = g->tenth[2 * i] + g->tenth[2 * i + 1];
  for (size_t i = WR_GAIN_TENTHS / 2; i < WR_GAIN_TENTHS; i++)
    g->tenth[i] = 0;
  g->tenths = WR_GAIN_TENTHS / 2;
  g->per_tenth *= 2;
}

static void count_piece(wr_gain *g, uint64_t ns)
{
  g->sum = g->sum > UINT64_MAX - ns ? UINT64_MAX : g->sum + ns;
  g->pieces++;
  if (!g->tenths || g->has == g->per_tenth) {
    if (!g->tenths) g->per_tenth = 1;
    if (g->tenths == WR_GAIN_TENTHS) halve_tenths(g);
    g->tenths++, g->has = 0;
  }
  g->tenth[g->tenths - 1] += ns;
  g->has++;
}

void wr_gains_add(wr_gains *x, size_t rank, uint64_t start, uint64_t ns)
{
  uint64_t end = start > UINT64_MAX - ns ? UINT64_MAX : start + ns;
  if (rank >= x->count || !ns) return;
  count_piece(&x->gain[rank], ns);
  if (start > x->now) advance_to(x, start);
  const size_t word = rank / 64;
  const uint64_t bit = UINT64_C(1) << rank % 64, last = x->end[rank];
  if (x->going[word] & bit && last > x->now) {
    if (x->gain[rank].queued) end = last > UINT64_MAX - ns ? UINT64_MAX : last + ns;
    if (end > last) x->end[rank] = end;
    return;
  }
  x->end[rank] = end;
  x->going[word] |= bit;
  if (word < x->first) x->first = word;
}

void wr_gains_end(wr_gains *x)
{
  advance_to(x, UINT64_MAX);
}

/* Of Student's distribution, two-sided, 95 %: by degrees of freedom from 9 on. */
static double student(size_t freedom)
{
  static const double at[] = {2.262, 2.228, 2.201, 2.179, 2.160, 2.145,
                              2.131, 2.120, 2.110, 2.101, 2.093};
  size_t last = sizeof at / sizeof *at - 1, i = freedom > 9 ? freedom - 9 : 0;
  return at[i < last ? i : last];
}

bool wr_gain_interval(const wr_gain *g, uint64_t *low, uint64_t *high)
{
  if (g->pieces < WR_GAIN_LEAST_PIECES || g->tenths < 2) return false;
  size_t full = g->tenths - (g->has < g->per_tenth);
  double mean = 0, squares = 0, sum = (double)g->sum;
  for (size_t i = 0; i < full; i++)
    mean += (double)g->tenth[i];
  mean /= (double)full;
  for (size_t i = 0; i < full; i++)
    squares += ((double)g->tenth[i] - mean) * ((double)g->tenth[i] - mean);
  double times = (double)g->pieces / (double)g->per_tenth;
  double half = student(full - 1) * sqrt(squares / (double)(full - 1) * times);
  *low = half < sum ? (uint64_t)(sum - half + 0.5) : 0;
  *high = sum + half < 0x1p63 ? (uint64_t)(sum + half + 0.5) : UINT64_C(1) << 63;
  return true;
}
