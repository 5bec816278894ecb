/* ticker.h: what the ticker (ticker.c) and who watches it share: a mapped file of counters. */
#ifndef WEIR_TESTS_TICKER_H
#define WEIR_TESTS_TICKER_H

#include <stdatomic.h>
#include <stdint.h>

enum { TICKER_THREADS = 4 };

typedef struct ticker_page {
  _Atomic uint64_t begun; /* calls about to be made, all threads */
  _Atomic uint64_t done;  /* calls that have returned */
} ticker_page;

#endif
