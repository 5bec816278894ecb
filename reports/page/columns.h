/* columns.h: the data of a page: columns of numbers, coded so that they compress well, all of them
 * one gzip member in base64.
 *
 * A column is made, filled from its first value to its last, and then written; several are filled
 * at one time. Lack of memory is kept in mind and found by page_columns_failed(). */
#ifndef WEIR_REPORTS_PAGE_COLUMNS_H
#define WEIR_REPORTS_PAGE_COLUMNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include "core/base/status.h"

/* How values become bytes: LEB128, "v" as they are, "dv" the differences in zigzag, "zv" in
 * zigzag. */
typedef enum page_encoding { PAGE_V, PAGE_DV, PAGE_ZV } page_encoding;

typedef struct page_column {
  page_encoding encoding;
  unsigned char *bytes; /* owned */
  size_t used, capacity;
  uint64_t count;
  int64_t last; /* value, of dv */
} page_column;

typedef struct page_columns {
  page_column *column; /* owned */
  size_t count, capacity;
  bool failed;
} page_columns;

/* The number of a new column. */
int page_column_new(page_columns *c, page_encoding encoding);

#define PAGE_MOST_VALUE ((INT64_C(1) << 53) - 1)

enum { PAGE_LONGEST_CODE = 10 /* bytes of a LEB128 */ };

/* Makes room for a value. False: out of memory. */
bool page_column_grow(page_columns *c, page_column *x);

static inline uint64_t page_zigzag(int64_t value)
{
  return (uint64_t)value << 1 ^ (uint64_t)(value >> 63);
}

/* Appends a value: 0 to 2^53 - 1, which JavaScript's numbers hold, and of "zv" the same below 0;
 * what is beyond is at the end of that. */
static inline void page_put(page_columns *c, int column, int64_t value)
{
  if (c->failed) return;
  page_column *x = &c->column[column];
  if (x->capacity - x->used < PAGE_LONGEST_CODE && !page_column_grow(c, x)) return;
  int64_t least = x->encoding == PAGE_ZV ? -PAGE_MOST_VALUE : 0;
  int64_t good = value < least ? least : value > PAGE_MOST_VALUE ? PAGE_MOST_VALUE : value;
  uint64_t code = (uint64_t)good;
  if (x->encoding != PAGE_V) {
    bool difference = x->encoding == PAGE_DV && x->count;
    if (difference || x->encoding == PAGE_ZV)
      code = page_zigzag(difference ? good - x->last : good);
    x->last = good;
  }
  unsigned char *to = x->bytes + x->used;
  for (; code >= 128; code >>= 7)
    *to++ = (unsigned char)(code | 128);
  *to++ = (unsigned char)code;
  x->used = (size_t)(to - x->bytes);
  x->count++;
}

bool page_columns_failed(const page_columns *c);

/* "[{"offset":..,"bytes":..,"count":..,"encoding":".."},...]" */
void page_columns_describe(FILE *out, const page_columns *c);

/* All columns, one behind the other, as gzip in base64. *packed: bytes of gzip. Errors: ENOMEM. */
weir_status page_columns_write(FILE *out, const page_columns *c, uint64_t *packed);

void page_columns_free(page_columns *c);

#endif
