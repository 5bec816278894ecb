/* table.h: a report as named tables with typed columns, and the four ways to write them.
 *
 * A column has one type, and with it one unit, that its name and title say: time of the host's calls
 * and time of devices are different types, and no column has both. What all writers print is the
 * value that is here: text and Markdown round it for people, JSON and CSV have it whole.
 *
 * Texts are copied and cleaned (wr_text) when they are put. Lack of memory stays in `failed`. */
#ifndef WEIR_REPORTS_TABLE_H
#define WEIR_REPORTS_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include "core/base/status.h"
#include "reports/render/report.h"

typedef enum wr_column_type {
  WR_COLUMN_TEXT,
  WR_COLUMN_PLACE, /* in the program: function, file, line */
  WR_COLUMN_COUNT,
  WR_COLUMN_BYTES,
  WR_COLUMN_CHANGE,    /* of bytes: has a sign */
  WR_COLUMN_HOST_NS,   /* that the host's calls took */
  WR_COLUMN_DEVICE_NS, /* that devices took */
  WR_COLUMN_MOMENT,    /* ns since the run began */
  WR_COLUMN_SPEED,     /* bytes per second */
  WR_COLUMN_SHARE,     /* 1: all */
  WR_COLUMN_NUMBER     /* of a table of unlike things, whose unit another column has */
} wr_column_type;

typedef struct wr_column {
  const char *name;  /* in JSON and CSV */
  const char *title; /* in text and Markdown */
  wr_column_type type;
  int extra; /* 0: in text of any width; else left out where there is no room, the largest first */
} wr_column;

typedef struct wr_value {
  bool known; /* else: there is no such number, or none is known */
  int line;
  uint64_t n; /* of WR_COLUMN_CHANGE the two's complement */
  double real;
  char *text, *file; /* owned */
} wr_value;

typedef struct wr_named_table {
  char *name;        /* owned; in JSON and CSV */
  char *title;       /* owned */
  char *aside;       /* owned; what stands beside the title, or NULL */
  bool whole_run;    /* no filter applies to it */
  wr_column *column; /* owned; their texts are borrowed */
  size_t columns;
  wr_value *value; /* owned; [rows][columns] */
  size_t rows, next, capacity;
  struct wr_tables *of;
} wr_named_table;

typedef struct wr_tables {
  const char *report;     /* "transfers" */
  char *trace;            /* owned, cleaned */
  char *scope;            /* owned; the filters in words, NULL: none */
  wr_named_table **table; /* owned */
  size_t count, capacity;
  char **note; /* owned; sentences */
  size_t notes, note_capacity;
  bool failed;
} wr_tables;

/* A new table at the end; NULL: out of memory, and the functions below take that. */
wr_named_table *wr_tables_add(wr_tables *t, const char *name, const char *title,
                              const wr_column *columns, size_t count);
void wr_tables_note(wr_tables *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
void wr_tables_free(wr_tables *t);

/* Begins a row, whose values follow in the order of the columns. */
void wr_table_row(wr_named_table *t);
void wr_table_put(wr_named_table *t, uint64_t n);
void wr_table_put_real(wr_named_table *t, double x);
void wr_table_put_text(wr_named_table *t, const char *text); /* NULL: none is known */
void wr_table_put_place(wr_named_table *t, const char *function, const char *file, int line);
void wr_table_put_none(wr_named_table *t);
/* part / whole, bytes per second: none where the second is 0. */
void wr_table_put_share(wr_named_table *t, uint64_t part, uint64_t whole);
void wr_table_put_speed(wr_named_table *t, uint64_t bytes, uint64_t ns);
void wr_table_aside(wr_named_table *t, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A value as people read it: new, "" where there is none; NULL: out of memory. */
char *wr_value_words(const wr_value *v, wr_column_type type);

/* All tables, or the one of that name. Errors: EINVAL (there is no such table), ENOMEM. */
weir_status wr_tables_write(FILE *out, const wr_tables *t, const report_settings *o);

/* The writers of each format. */
weir_status wr_tables_text(FILE *out, const wr_tables *t, const report_settings *o);
weir_status wr_tables_json(FILE *out, const wr_tables *t, const char *only);
weir_status wr_tables_csv(FILE *out, const wr_tables *t, const char *only);
weir_status wr_tables_markdown(FILE *out, const wr_tables *t, const char *only);
weir_status wr_tables_no_memory(const wr_tables *t);

#endif
