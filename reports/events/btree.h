/* btree.h: the rows of a table straight from the pages of a database file.
 *
 * SQLite's file format is documented and frozen (sqlite.org/fileformat2.html). A walk reads the pages of one table's
 * b-tree in order and decodes integers, which takes a tenth of the time of SQLite's own way to a row. It reads with
 * SQLite's descriptor, under the lock of SQLite's transaction, and into memory of its own: a file that somebody cuts off
 * meanwhile is an error of a read and no SIGBUS.
 *
 * The file is untrusted. Each number of a page is checked before it is used; a walk is no deeper than 20 pages, and row
 * numbers ascend, which no tree with a circle does. All that is unusual ends the walk as *odd*: the caller then asks
 * SQLite for what is left, and gets its answer or its error. */
#ifndef WEIR_REPORTS_BTREE_H
#define WEIR_REPORTS_BTREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "reports/import/schema.h"

enum {
  WR_ROW_COLUMNS = 20,       /* besides the key */
  WR_BTREE_DEPTH = 20,       /* SQLite's own limit */
  WR_BTREE_PAGES = 64,       /* of a level, that a walk which looks for rows here and there keeps */
  WR_BTREE_AHEAD = 64 << 10, /* bytes that another walk reads at once, where pages lie in a row */
  WR_BTREE_LEAVES = 256,     /* of which such a walk knows what rows they have */
  WR_RECORD_FORMS = 64
};

/* A table's place in the file, and which of its columns are wanted. */
typedef struct wr_btree {
  sqlite3_file *file; /* SQLite's; borrowed */
  uint32_t page_bytes, usable, pages, root;
  int key; /* place of the row's number in a record */
  int columns;
  int place[WR_ROW_COLUMNS]; /* of each column in a record */
} wr_btree;

/* Where the columns lie in a record that begins with the same bytes: those of its header. Each is read the same way, from 8
 * bytes: NULL, 0 and 1, which have no bytes of their own, from the header's byte that states them. */
typedef struct wr_record_form {
  uint64_t header[2];            /* its bytes; 0: this form is unused */
  uint32_t bytes;                /* of the record, at least; UINT32_MAX: not all are integers */
  uint32_t nulls;                /* a bit for each column */
  uint16_t at[WR_ROW_COLUMNS];   /* of each column, from the record's begin */
  uint8_t shift[WR_ROW_COLUMNS]; /* of the 8 bytes there, big-endian and signed */
} wr_record_form;

typedef struct wr_btree_page {
  uint8_t *bytes;  /* owned; NULL: not used yet */
  uint32_t number; /* of the page that is there; 0 none */
  uint32_t count;  /* pages from that one on that are there, of a level that keeps one */
  uint32_t room;   /* pages */
} wr_btree_page;

typedef struct wr_btree_level {
  wr_btree_page *kept; /* owned: by number, WR_BTREE_PAGES of them or one; NULL: not used yet */
  const uint8_t *page; /* one of them */
  uint32_t at, cells;  /* the next cell, of an inner page the next child: cells: the last one */
  bool leaf;
} wr_btree_level;

/* A leaf that a search came to. */
typedef struct wr_btree_leaf {
  int64_t first, last; /* its rows */
  uint32_t page;       /* its number; 0: unused */
  uint32_t cells;
  int depth;
} wr_btree_leaf;

typedef enum wr_btree_step {
  WR_BTREE_ROW,
  WR_BTREE_END,
  WR_BTREE_ODD,
  WR_BTREE_NO_MEMORY
} wr_btree_step;

typedef struct wr_btree_walk {
  const wr_btree *table;     /* borrowed */
  int64_t id;                /* the row */
  int64_t v[WR_ROW_COLUMNS]; /* its columns; 0 where there is none */
  uint32_t nulls;            /* a bit for each */
  bool begun;
  bool here_and_there; /* set before the first seek: many are to come, mostly near earlier ones */
  int depth;           /* -1: at the end */
  wr_btree_level level[WR_BTREE_DEPTH];
  wr_btree_leaf leaf[WR_BTREE_LEAVES];      /* by row numbers */
  wr_record_form form[WR_RECORD_FORMS + 1]; /* by hash; the last: of a long header */
} wr_btree_walk;

/* Finds table `name` of the trace. `columns`: its key, then the others, `count` in all. False: SQLite is to be asked: the
 * file is in WAL mode, a transaction may have changed it, or the table is not what a trace has. */
bool wr_btree_open(wr_btree *t, const wr_db *db, const char *name, const char *const columns[],
                   int count);

/* A walk begins zeroed but for its table, with wr_btree_seek(): the next row will be the first whose number is at least
 * `id`. WR_BTREE_ROW: there may be one. */
wr_btree_step wr_btree_seek(wr_btree_walk *w, int64_t id);

/* To the next row. */
wr_btree_step wr_btree_next(wr_btree_walk *w);

/* To the row of that number, of a walk that is here_and_there; or to one of another number, or
 * the end, where there is none. Nothing but this is called then. */
wr_btree_step wr_btree_find(wr_btree_walk *w, int64_t id);

/* The next rows of the page at hand, `most` at most, as if wr_btree_next() had been called for
 * each: of each its number, then its columns, 0 where there is none; one row begins `stride` numbers
 * after the one before. Returns how many; 0: wr_btree_next() is to be called, which begins the walk,
 * goes on to the next page, or finds what is wrong. */
size_t wr_btree_some(wr_btree_walk *w, int64_t *rows, size_t stride, size_t most);

void wr_btree_close(wr_btree_walk *w);

#endif
