/* bins.h: the run's time in equal parts: bin b is [b * width_ns, (b + 1) * width_ns). */
#ifndef WEIR_REPORTS_PAGE_BINS_H
#define WEIR_REPORTS_PAGE_BINS_H

#include <stdint.h>

enum { PAGE_BINS = 2048 /* at most */ };

typedef struct page_bins {
  uint32_t count;
  int64_t width_ns;
} page_bins;

/* What is before the run is in its first bin, what is after it in the last one. */
static inline uint32_t page_bin_of(const page_bins *b, int64_t ns)
{
  if (ns <= 0) return 0;
  int64_t at = ns / b->width_ns;
  return at < b->count ? (uint32_t)at : b->count - 1;
}

/* The bin that was asked for last, for times that mostly are in it again. Begins zeroed, and again
 * where bins get another width. */
typedef struct page_bin_near {
  int64_t from, until;
  uint32_t bin;
} page_bin_near;

/* As page_bin_of(), without a division where `n` has the bin. */
static inline uint32_t page_bin_again(const page_bins *b, page_bin_near *n, int64_t ns)
{
  if (ns >= n->from && ns < n->until) return n->bin;
  uint32_t bin = page_bin_of(b, ns);
  int64_t from = (int64_t)bin * b->width_ns;
  *n = (page_bin_near){from, from + b->width_ns, bin};
  return bin;
}

/* A longer run than JavaScript's numbers can tell of is a damaged trace's. */
static inline page_bins page_bins_of(int64_t duration_ns)
{
  int64_t most = (INT64_C(1) << 53) - 1, ns = duration_ns < most ? duration_ns : most;
  page_bins b = {PAGE_BINS, ns > 0 ? (ns - 1) / PAGE_BINS + 1 : 1};
  return b;
}

#endif
