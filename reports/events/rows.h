/* rows.h: rows of a table of a trace, in order of their numbers, as integers: from the file's pages where that can be
 * (btree.h), and else, or from where they are odd on, from SQLite. */
#ifndef WEIR_REPORTS_ROWS_H
#define WEIR_REPORTS_ROWS_H

#include "reports/events/btree.h"

typedef struct wr_row_walk {
  /* the row that wr_rows_next() has found */
  int64_t id;
  const int64_t *v; /* the columns but the key */
  uint32_t nulls;   /* a bit for each that is NULL, and 0 in `v` */
  /* private */
  weir_status status;
  const wr_db *db;
  char *sql; /* owned */
  int columns;
  bool by_pages;
  wr_btree table;
  wr_btree_walk walk;
  int64_t sought;     /* the number that the next row has at least, where none was read yet */
  sqlite3_stmt *rest; /* owned; the rows from some number on */
  int64_t value[WR_ROW_COLUMNS];
} wr_row_walk;

/* All rows of main.`table`. `columns`: its key (an INTEGER PRIMARY KEY), then others, all integers. `r` does not move until
 * it is closed, whatever this returns. Errors: ENOMEM, EIO, ECORRUPT. */
weir_status wr_rows_open(wr_row_walk *r, const wr_db *db, const char *table,
                         const char *const columns[], int count);

/* The next will be the first whose number is at least `id`. */
void wr_rows_seek(wr_row_walk *r, int64_t id);

/* Whether there is a row of that number: then it is at hand. For rows that are here and there, but mostly near others that were
 * asked for: pages are kept. No other function but wr_rows_close() is called with `r`. False: there is none, or r->status has
 * gone wrong. */
bool wr_rows_find(wr_row_walk *r, int64_t id);

/* False: there is no more, or r->status has gone wrong: wr_rows_close() returns that. */
bool wr_rows_next(wr_row_walk *r);

/* The same rows as another walk has, from the first on; its table is not looked for again. */
weir_status wr_rows_again(wr_row_walk *r, const wr_row_walk *other);

/* Several: of each its number, then its columns, 0 where one is NULL. Returns how many, `most`
 * at most; 0: as false above. */
size_t wr_rows_some(wr_row_walk *r, int64_t *rows, size_t most);

/* The same; a row begins `stride` numbers after the one before. */
size_t wr_rows_apart(wr_row_walk *r, int64_t *rows, size_t stride, size_t most);
weir_status wr_rows_close(wr_row_walk *r);

#endif
