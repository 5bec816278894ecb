/* util.h: the small things reports are built with: growing arrays, clean text, files that
 * are files.
 *
 * Everything here reports lack of memory by its return value and words nothing. */
#ifndef WEIR_REPORTS_UTIL_H
#define WEIR_REPORTS_UTIL_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/* Capped: no number of a trace and no threshold makes them run over. */
static inline int64_t wr_sum(int64_t a, int64_t b)
{
  int64_t sum;
  return __builtin_add_overflow(a, b, &sum) ? (a < 0 ? INT64_MIN : INT64_MAX) : sum;
}
static inline int64_t wr_over(int64_t a, int64_t b)
{
  return b > 0 ? a / b : 0;
}
static inline int64_t wr_times(int64_t a, int64_t b)
{
  int64_t product;
  return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

static inline int64_t wr_least(int64_t a, int64_t b)
{
  return a < b ? a : b;
}

/* Makes room for `need` elements of `size` bytes in the array at *array. False: out of memory. */
bool wr_grow_more(void *array, size_t *capacity, size_t need, size_t size);
static inline bool wr_grow(void *array, size_t *capacity, size_t need, size_t size)
{
  return need <= *capacity || wr_grow_more(array, capacity, need, size);
}

/* Bytes of the UTF-8 character at `s` (`left` bytes remain), 0 if it is none. */
size_t wr_utf8_length(const unsigned char *s, size_t left);

/* A new copy of `bytes` of text, cut at the first NUL: what is not UTF-8 becomes '?', and, where
 * `printable`, control characters too (terminals obey them). NULL: out of memory. */
char *wr_text(const char *text, size_t bytes, bool printable);

/* What is after the last '/' of a path; its last two parts: enough to find a file, short enough to
 * read. Borrowed. */
const char *wr_file_name(const char *path);
const char *wr_short_path(const char *path);

/* Mixes a text, or that there is none, into a hash. */
uint64_t wr_hash_text(uint64_t hash, const char *text);

/* Opens a file that somebody else has named, for reading: only a regular one of 1 to `most` bytes,
 * so that no pipe is waited for and no device touched. *file: what is open. -1: errno. */
int wr_open_regular(const char *path, uint64_t most, struct stat *file);

/* A new string, printf style. NULL: out of memory. */
char *wr_format(const char *format, ...) __attribute__((format(printf, 1, 2)));
char *wr_vformat(const char *format, va_list args) __attribute__((format(printf, 1, 0)));

#endif
