/* table.h: a report as named tables with typed columns.
 *
 * A report is made once, as a list of tables, and written in any format (reports/write). A column
 * has one type, and with it one unit, that its name and title state: time of the host's calls and
 * time of devices are different types, and no column has both. What all writers print is the value
 * that is here: text and Markdown round it for people, JSON and CSV have it whole.
 *
 * What only people read is here, too, since it is part of what a report states: a table's aside,
 * sentences before and after its rows, rows that sum up what a person is not shown, callers below a
 * place. Writers of data leave that out, and have the rows and columns that text has no room for.
 *
 * Texts are copied and cleaned (wr_text) when they are put. Lack of memory stays in `failed`. */
#ifndef WEIR_REPORTS_TABLE_H
#define WEIR_REPORTS_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include "core/base/status.h"
#include "reports/tables/settings.h"

typedef enum wr_column_type {
  WR_COLUMN_TEXT,
  WR_COLUMN_PLACE, /* in the program: function, file, line */
  WR_COLUMN_COUNT,
  WR_COLUMN_ID, /* a number that is a name: a process's */
  WR_COLUMN_BYTES,
  WR_COLUMN_CHANGE,    /* of bytes: has a sign */
  WR_COLUMN_BALANCE,   /* of bytes: can be below 0 */
  WR_COLUMN_HOST_NS,   /* that the host's calls took */
  WR_COLUMN_DEVICE_NS, /* that devices took */
  WR_COLUMN_MOMENT,    /* ns since the run began */
  WR_COLUMN_SPEED,     /* bytes per second */
  WR_COLUMN_SHARE,     /* 1: all */
  WR_COLUMN_NUMBER,    /* of a table of unlike things, whose unit another column has */
  WR_COLUMN_REAL,      /* the same, and it may be a fraction, or below 0 */
  WR_COLUMN_TRUTH,     /* 0: no, 1: yes */
  WR_COLUMN_TEXTS,     /* a list: a line of `text` each */
  WR_COLUMN_ROWS       /* a table of what belongs to the row */
} wr_column_type;

/* How a column reads, or'ed to its `how`. */
enum {
  WR_EXTRA = 15,          /* the part of `how` below */
  WR_ZERO_DASH = 1 << 4,  /* 0 reads "-" */
  WR_ZERO_PLAIN = 1 << 5, /* 0 reads "0", without a unit */
  WR_FLEXIBLE =
      1 << 6,        /* gives way where a line is too long; at most one column of a table has this.
                              Where none has: a stack, or the place, or the last text */
  WR_RIGID = 1 << 7, /* a text that does not give way */
  WR_IN_DATA = 1 << 8, /* in JSON and CSV only */
  WR_IN_TEXT = 1 << 9, /* in text and Markdown only */
  WR_WITH_FOLDER =
      1 << 10, /* a place has its file's folder, or in text of any width the whole path, or the
                              module where no file is known */
  WR_BELOW = 1 << 11, /* in text narrower than WR_WIDE: in a row of its own, in the first column */
  WR_ROUNDED = 1 << 12, /* a share of 10 % and more has no decimals */
  WR_IN_JSON = 1 << 13  /* in "weir-report/2" only */
};

#define WR_WIDE 110 /* columns of text */

typedef struct wr_column {
  const char *name;  /* in JSON and CSV */
  const char *title; /* in text and Markdown */
  wr_column_type type;
  int how; /* its lowest bits (WR_EXTRA), 0: in text of any width; else left out where there is no
              room, the largest first, or where no value is known; and the flags above */
} wr_column;

typedef struct wr_value {
  bool known;          /* else: there is no such number, or none is known */
  bool empty;          /* text has nothing there, not even the "-" of a number that is not known */
  int line;            /* of a place */
  uint64_t n;          /* of WR_COLUMN_CHANGE and WR_COLUMN_BALANCE the two's complement */
  uint64_t whole;      /* of a share and a speed: n of this; 0: `real` alone is known */
  bool numbered;       /* of a text: n is the number that it has in words: a device's */
  double real;         /* of a share and a speed */
  char *text, *file;   /* owned; `file` of a text: its end, never cut */
  char *module, *lead; /* owned: of a place; what text prints in front of it. NULL: none */
  struct wr_named_table *rows; /* owned, of WR_COLUMN_ROWS; NULL: none are known */
} wr_value;

/* Who is shown a row. */
typedef enum wr_row_kind {
  WR_ROW_ALL,
  WR_ROW_TEXT, /* people: the sums of what they are not shown; callers of the row above */
  WR_ROW_DATA  /* programs: more than a person would read */
} wr_row_kind;

/* How a table stands in text, or'ed. */
enum {
  WR_JOINED = 1,  /* without a heading: it is part of what is above it */
  WR_QUIET = 2,   /* where it has no rows text prints no "none" */
  WR_LIST = 4,    /* its first column in one paragraph: "title: a, b, c" */
  WR_UNSEEN = 8,  /* its rows are for programs only: text has its heading and sentences */
  WR_OBJECT = 16, /* in "weir-report/2" an object: its only row */
  WR_MEMBERS =
      32, /* in "weir-report/2" an object with a member a row: its `total` or `name`, and the number
                      after the first column */
  WR_DETAIL = 64 /* in "weir-report/2", and where it is asked for by name */
};

/* How a sentence stands in text; false is plain, true a warning. */
enum {
  WR_PLAIN,
  WR_WARNING, /* that the reader is not to miss */
  WR_STRONG,  /* a heading of its own */
  WR_SOURCE   /* "12 | code": a line, cut and never broken, its number kept */
};

typedef struct wr_sentence {
  int style;
  char *text; /* owned */
} wr_sentence;

typedef struct wr_sentences {
  wr_sentence *list; /* owned */
  size_t count, capacity;
} wr_sentences;

typedef struct wr_named_table {
  char *name;        /* owned; in JSON and CSV */
  char *title;       /* owned */
  char *aside;       /* owned; what stands beside the title, or NULL */
  bool whole_run;    /* no filter applies to it */
  int look;          /* WR_JOINED and the others */
  wr_column *column; /* owned; their texts are borrowed */
  size_t columns;
  char **words; /* owned; titles of columns that were made here */
  size_t word_count, word_capacity;
  wr_sentences before, after; /* its rows */
  wr_value *value;            /* owned; [rows][columns] */
  unsigned char *kind;        /* owned; [rows], wr_row_kind */
  size_t rows, next, capacity, kind_capacity;
  struct wr_tables *of;
} wr_named_table;

typedef struct wr_tables {
  const char *report;     /* "transfers" */
  char *trace;            /* owned, cleaned */
  char *head;             /* owned; the first line of text, NULL: report and trace */
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
#define WR_TABLE(tables, name, title, columns)                                                     \
  wr_tables_add(tables, name, title, columns, sizeof(columns) / sizeof *(columns))
/* A table of the whole run, whatever part is asked for. Returns it. */
wr_named_table *wr_table_of_run(wr_named_table *t);
#define WR_RUN_TABLE(tables, name, title, columns)                                                 \
  wr_table_of_run(WR_TABLE(tables, name, title, columns))
/* As wr_tables_add(), with sentences alone; `title` "" and joined: part of what is above it. */
wr_named_table *wr_tables_add_sentences(wr_tables *t, const char *name, const char *title);
void wr_tables_note(wr_tables *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
void wr_tables_free(wr_tables *t);

/* Begins a row, whose values follow in the order of the columns. */
void wr_table_row(wr_named_table *t);
void wr_table_row_for(wr_named_table *t, wr_row_kind kind);
void wr_table_put(wr_named_table *t, uint64_t n);
void wr_table_put_all(wr_named_table *t, const uint64_t *n, size_t count);
#define WR_PUT(t, ...)                                                                             \
  wr_table_put_all(t, (const uint64_t[]){__VA_ARGS__},                                             \
                   sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))
void wr_table_put_if(wr_named_table *t, bool known, uint64_t n); /* else none */
void wr_table_put_real(wr_named_table *t, double x);
void wr_table_put_text(wr_named_table *t, const char *text); /* NULL: none is known */
void wr_table_put_words(wr_named_table *t, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void wr_table_put_place(wr_named_table *t, const char *function, const char *file, int line);
/* A text whose end, `kept`, which only people read, is never cut. */
void wr_table_put_kept(wr_named_table *t, const char *text, const char *kept);
/* An ordinal, or text alone for what is none; `words` are what people read. */
void wr_table_put_device(wr_named_table *t, int64_t ordinal, const char *words);
/* One more line of the texts that were put last; wr_table_put_texts() begins them. */
void wr_table_put_texts(wr_named_table *t);
void wr_table_add_text(wr_named_table *t, const char *text);
/* A table within the row, which belongs to it; NULL: out of memory. */
wr_named_table *wr_table_put_rows(wr_named_table *t, const wr_column *columns, size_t count);
void wr_table_put_none(wr_named_table *t);
void wr_table_skip(wr_named_table *t, size_t cells); /* leaves cells empty */
/* part / whole, bytes per second: none where the second is 0. */
void wr_table_put_share(wr_named_table *t, uint64_t part, uint64_t whole);
void wr_table_put_speed(wr_named_table *t, uint64_t bytes, uint64_t ns);

/* What is to stand in front of the value that was put last, in text alone; its module. */
void wr_table_lead(wr_named_table *t, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void wr_table_module(wr_named_table *t, const char *module);

void wr_table_aside(wr_named_table *t, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void wr_table_look(wr_named_table *t, int look); /* adds to it */
/* Another title of a column. */
void wr_table_title(wr_named_table *t, size_t column, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Sentences of text: paragraphs, blanks at their begin kept; `style`: WR_PLAIN and the others. */
void wr_table_before(wr_named_table *t, int style, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void wr_table_after(wr_named_table *t, int style, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* All rows after the first `most` are for programs, and text ends in "… and 3 more", or "… and 3
 * pairs more" where there are words for one and many. */
void wr_table_most(wr_named_table *t, size_t most, const char *one, const char *many);

weir_status wr_tables_no_memory(const wr_tables *t);

#endif
