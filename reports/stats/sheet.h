/* sheet.h: rows of numbers and texts, in the formats of `nsys stats`: columns and tables as wide as the
 * first 100 rows need, CSV, TSV, an array of JSON objects.
 *
 * Columns and tables are for people: numbers have separators, a text of more than 100 characters is cut. */
#ifndef WEIR_REPORTS_STATS_SHEET_H
#define WEIR_REPORTS_STATS_SHEET_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include "core/base/status.h"

enum { SHEET_COLUMNS = 32, SHEET_AHEAD = 100 };

typedef enum sheet_format {
  SHEET_COLUMN,
  SHEET_TABLE,
  SHEET_CSV,
  SHEET_TSV,
  SHEET_JSON,
  SHEET_FORMATS
} sheet_format;

extern const char *const sheet_formats[SHEET_FORMATS];

typedef struct sheet_cell {
  const char *text; /* borrowed; NULL: a number, where `there`, or nothing */
  double number;
  int64_t whole;
  int decimals; /* 0: `whole` is the number */
  bool there;
} sheet_cell;

typedef struct sheet {
  FILE *out; /* borrowed */
  sheet_format format;
  int columns;
  const char *heading[SHEET_COLUMNS]; /* borrowed */
  size_t width[SHEET_COLUMNS];
  bool number[SHEET_COLUMNS];              /* what is in it is on the right */
  char *ahead[SHEET_AHEAD][SHEET_COLUMNS]; /* owned: rows that wait until widths are known */
  int waiting;
  bool begun; /* a row is written */
} sheet;

/* All else is zero. */
void sheet_begin(sheet *s, const char *title, const char *name);

/* Errors: ENOMEM, EIO. */
weir_status sheet_row(sheet *s, const sheet_cell *cells);
weir_status sheet_end(sheet *s);
void sheet_clear(sheet *s); /* whatever came of it */

#endif
