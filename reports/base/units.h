/* units.h: numbers as people read them: three significant digits and a unit. */
#ifndef WEIR_REPORTS_BASE_UNITS_H
#define WEIR_REPORTS_BASE_UNITS_H

#include <stdint.h>

typedef struct wr_word { /* what the functions below return: a short text by value */
  char text[64];
} wr_word;

wr_word wr_bytes(uint64_t bytes);                                  /* 4.50 GiB */
wr_word wr_count(uint64_t n);                                      /* 1,234,567 */
wr_word wr_counted(uint64_t n, const char *one, const char *more); /* 1 call, 2 calls */
wr_word wr_duration(uint64_t ns);                                  /* 1.23 ms */
wr_word wr_speed(uint64_t bytes, uint64_t ns); /* 12.3 GB/s, "-" where ns is 0 */
wr_word wr_percent(uint64_t part, uint64_t whole);

/* The texts, for the length of the expression that they are in. */
#define BYTES(n)    wr_bytes(n).text
#define COUNT(n)    wr_count(n).text
#define DURATION(n) wr_duration(n).text
/* "1 call", "1,234 calls"; OF() gives other plurals. */
#define COUNTED(n, what) wr_counted(n, what, what "s").text
#define OF(n, one, more) wr_counted(n, one, more).text

#endif
