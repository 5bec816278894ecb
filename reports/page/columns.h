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

/* Appends values, each `stride` after the one before: 0 to 2^53 - 1, which JavaScript's numbers
 * hold, and of "zv" the same below 0; what is beyond is at the end of that. */
void page_put(page_columns *c, int column, const int64_t *values, size_t stride, size_t count);

enum { PAGE_ROW_COLUMNS = 9, PAGE_ROWS = 256 };

/* Rows on their way to some columns: each column takes what many of them have at once. */
typedef struct page_rows {
  page_columns *to;  /* borrowed */
  const int *column; /* borrowed: `columns` of them */
  int columns;
  size_t count;
  int64_t row[PAGE_ROWS][PAGE_ROW_COLUMNS];
} page_rows;

/* What there is of them is put into the columns. */
void page_rows_end(page_rows *r);

/* The next row, to be filled. */
static inline int64_t *page_row(page_rows *r)
{
  if (r->count == PAGE_ROWS) page_rows_end(r);
  return r->row[r->count++];
}

bool page_columns_failed(const page_columns *c);

/* "[{"offset":..,"bytes":..,"count":..,"encoding":".."},...]" */
void page_columns_describe(FILE *out, const page_columns *c);

/* All columns, one behind the other, as gzip in base64. *packed: bytes of gzip. Errors: ENOMEM. */
weir_status page_columns_write(FILE *out, const page_columns *c, uint64_t *packed);

void page_columns_free(page_columns *c);

#endif
