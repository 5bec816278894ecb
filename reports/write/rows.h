/* rows.h: rows of one table, written as they come: a row more takes no memory more.
 *
 * Columns and tables are for people, as `nsys stats` prints them: as wide as the first 100 rows
 * need, numbers with separators, a text of more than 100 characters cut. CSV, TSV, one array of
 * JSON objects (each column in each, "" where there is nothing) and lines of JSON objects (without
 * what there is nothing of) are for programs.
 *
 * Texts are whatever a program, or who made the file, wrote, and are cleaned here. JSON gets every
 * control character as an escape, and U+FFFD for what is no UTF-8. The others, which have no
 * escape, get '?' for both, so that a line of the output is a row and a terminal gets no orders. */
#ifndef WEIR_REPORTS_WRITE_ROWS_H
#define WEIR_REPORTS_WRITE_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include "core/base/status.h"

enum { WR_ROWS_COLUMNS = 64 };

typedef enum wr_rows_format {
  WR_ROWS_COLUMN,
  WR_ROWS_TABLE,
  WR_ROWS_CSV,
  WR_ROWS_TSV,
  WR_ROWS_JSON,
  WR_ROWS_JSONL,
  WR_ROWS_FORMATS
} wr_rows_format;

typedef struct wr_field {
  enum {
    WR_FIELD_NONE,
    WR_FIELD_WHOLE,
    WR_FIELD_REAL,
    WR_FIELD_HANDLE, /* in hexadecimal; in JSON a string */
    WR_FIELD_TEXT
  } type;
  int decimals; /* of WR_FIELD_REAL */
  int64_t whole;
  double real;
  const char *text; /* borrowed; not clean: the file's own bytes */
} wr_field;

typedef struct wr_rows {
  FILE *out;        /* borrowed */
  const char *what; /* borrowed: "statistics", in messages */
  wr_rows_format format;
  const char *quoted; /* in CSV a text with one of these characters is quoted, too; NULL: none */
  int columns;
  const char *heading[WR_ROWS_COLUMNS]; /* borrowed; without quotes and controls */
  size_t width[WR_ROWS_COLUMNS];
  bool number[WR_ROWS_COLUMNS]; /* what is in it is on the right */
  char **ahead;                 /* owned: cells of rows that wait until widths are known */
  int waiting;                  /* such rows */
  bool begun;                   /* a row is written */
} wr_rows;

/* Begins, once out, what, format, columns and headings are there and all else is zero; `title` (or
 * NULL) is for people. */
void wr_rows_begin(wr_rows *r, const char *title, const char *name);

/* Errors: ENOMEM, EIO. */
weir_status wr_rows_put(wr_rows *r, const wr_field *fields);
weir_status wr_rows_end(wr_rows *r);
void wr_rows_clear(wr_rows *r); /* whatever came of it */

#endif
