/* btree.c: see btree.h.
 *
 * The header of a page states whether it is inner (5) or a leaf (13), and how many cells it has; after it is an array of
 * their offsets. An inner cell is a child and the largest row number in it, and the header has the last child. A leaf
 * cell is the length of a record, the row's number, and the record: its header, which has a type for each column, and
 * the values. What does not fit a page goes on elsewhere: no row of integers does. */
#include "reports/events/btree.h"
#include <stdlib.h>
#include <string.h>
#include "core/base/map.h"

enum {
  INNER_PAGE = 5,
  LEAF_PAGE = 13,
  INNER_HEADER = 12,
  LEAF_HEADER = 8,
  RIGHT_CHILD = 8, /* in the header of an inner page */
  SLACK = 32       /* after a page: longer than any number that begins in it */
};

static uint32_t big_endian_16(const uint8_t *p)
{
  return (uint32_t)p[0] << 8 | p[1];
}

static uint32_t big_endian_32(const uint8_t *p)
{
  return big_endian_16(p) << 16 | big_endian_16(p + 2);
}

static uint64_t big_endian_64(const uint8_t *p)
{
  uint64_t n;
  memcpy(&n, p, sizeof(n));
  return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? __builtin_bswap64(n) : n;
}

/* 7 bits a byte, all 8 of the ninth. */
static uint64_t long_varint(const uint8_t **at)
{
  uint64_t n = 0;
  for (int i = 0; i < 8; i++) {
    uint8_t byte = *(*at)++;
    n = n << 7 | (byte & 127);
    if (byte < 128) return n;
  }
  return n << 8 | *(*at)++;
}

static inline uint64_t read_varint(const uint8_t **at)
{
  const uint8_t *p = *at;
  if (p[0] < 128) {
    *at = p + 1;
    return p[0];
  }
  if (p[1] < 128) {
    *at = p + 2;
    return (uint64_t)(p[0] & 127) << 7 | p[1];
  }
  if (p[2] < 128) {
    *at = p + 3;
    return (uint64_t)(p[0] & 127) << 14 | (uint64_t)(p[1] & 127) << 7 | p[2];
  }
  return long_varint(at);
}

/* ---- where a table is ------------------------------------------------------------------------ */

/* Page sizes and the rest, of the file's first 100 bytes. */
static bool read_file_header(wr_btree *t)
{
  uint8_t head[100];
  sqlite3_int64 bytes = 0;
  if (t->file->pMethods->xRead(t->file, head, sizeof(head), 0) ||
      t->file->pMethods->xFileSize(t->file, &bytes) || memcmp(head, "SQLite format 3", 16) != 0)
    return false;
  t->page_bytes = big_endian_16(head + 16) == 1 ? 65536 : big_endian_16(head + 16);
  bool sane = t->page_bytes >= 512 && !(t->page_bytes & (t->page_bytes - 1));
  bool journal = head[18] == 1 && head[19] == 1; /* else changes may be in a WAL */
  if (!sane || !journal || t->page_bytes - head[20] < 480) return false;
  t->usable = t->page_bytes - head[20];
  uint64_t pages = (uint64_t)bytes / t->page_bytes;
  t->pages = pages > UINT32_MAX ? UINT32_MAX : (uint32_t)pages;
  return true;
}

/* A column by its name: where it is in a record, and that nothing is done to what stands there. */
static bool find_table_column(sqlite3_stmt *q, const char *name, bool key, int *place)
{
  bool found = false;
  for (sqlite3_reset(q); !found && sqlite3_step(q) == SQLITE_ROW;) {
    const char *column = (const char *)sqlite3_column_text(q, 1);
    if (!column || strcmp(column, name) != 0) continue;
    const char *type = (const char *)sqlite3_column_text(q, 2);
    bool plain = type && !strcmp(type, "INTEGER") && sqlite3_column_type(q, 4) == SQLITE_NULL &&
                 !sqlite3_column_int(q, 6);
    if (!plain || (sqlite3_column_int(q, 5) != 0) != key) return false;
    *place = sqlite3_column_int(q, 0);
    found = true;
  }
  return found;
}

static bool find_table_columns(wr_btree *t, const wr_db *db, const char *name,
                               const char *const columns[], int count)
{
  sqlite3_stmt *q = NULL;
  if (sqlite3_prepare_v2(db->handle, "SELECT * FROM pragma_table_xinfo(?, 'main')", -1, &q, NULL))
    return false;
  sqlite3_bind_text(q, 1, name, -1, SQLITE_STATIC);
  bool found = find_table_column(q, columns[0], true, &t->key);
  for (int i = 1; found && i < count; i++)
    found = find_table_column(q, columns[i], false, &t->place[i - 1]);
  sqlite3_finalize(q);
  return found;
}

static bool find_root_page(wr_btree *t, const wr_db *db, const char *name)
{
  sqlite3_stmt *q = NULL;
  if (sqlite3_prepare_v2(
          db->handle, "SELECT rootpage FROM main.sqlite_schema WHERE type = 'table' AND name = ?",
          -1, &q, NULL))
    return false;
  sqlite3_bind_text(q, 1, name, -1, SQLITE_STATIC);
  int64_t root = sqlite3_step(q) == SQLITE_ROW ? sqlite3_column_int64(q, 0) : 0;
  bool one = sqlite3_step(q) == SQLITE_DONE;
  sqlite3_finalize(q);
  t->root = (uint32_t)root;
  return one && root > 1 && root <= t->pages;
}

bool wr_btree_open(wr_btree *t, const wr_db *db, const char *name, const char *const columns[],
                   int count)
{
  *t = (wr_btree){.columns = count - 1};
  if (count < 1 || count > WR_ROW_COLUMNS ||
      sqlite3_txn_state(db->handle, "main") != SQLITE_TXN_READ ||
      sqlite3_file_control(db->handle, "main", SQLITE_FCNTL_FILE_POINTER, (void *)&t->file) ||
      !t->file || !t->file->pMethods)
    return false;
  return read_file_header(t) && find_root_page(t, db, name) &&
         find_table_columns(t, db, name, columns, count);
}

/* ---- records --------------------------------------------------------------------------------- */

static uint32_t bytes_of_type(uint64_t type)
{
  static const uint8_t bytes[12] = {0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0};
  uint64_t n = type < 12 ? bytes[type] : (type - 12) / 2;
  return n > UINT16_MAX ? UINT16_MAX : (uint32_t)n;
}

/* Column `c`, of a type that stands at `stated`, with a value at `at`; false: it is no integer. The top bits of the bytes
 * 0, 8 and 9 are 0, 0 and 1. */
static bool form_column(wr_record_form *f, int c, uint64_t type, uint32_t stated, uint32_t at)
{
  uint32_t bytes = bytes_of_type(type);
  if (type == 7 || type > 9) return false;
  if (!type) f->nulls |= 1U << c;
  f->at[c] = (uint16_t)(bytes ? at : stated);
  f->shift[c] = (uint8_t)(bytes ? 64 - 8 * bytes : type == 9 ? 59 : 60);
  return true;
}

/* A column that a record lacks is NULL: the sign of the header's first byte, where its length has one byte. */
static bool form_lacking(wr_record_form *f, const wr_btree *t, uint32_t there, size_t header)
{
  for (int c = 0; c < t->columns; c++) {
    if (there >> c & 1) continue;
    f->nulls |= 1U << c;
    f->shift[c] = 63;
    if (header > 127) return false;
  }
  return true;
}

/* `header` begins a record's header, `end` follows it. */
static void make_form(wr_record_form *f, const wr_btree *t, const uint8_t *header,
                      const uint8_t *end)
{
  const uint8_t *at = header;
  uint32_t value = (uint32_t)(end - header), there = 0;
  bool good = true;
  *f = (wr_record_form){.nulls = 0};
  (void)read_varint(&at);
  for (int place = 0; at < end; place++) {
    uint64_t type = read_varint(&at);
    if (place == t->key && type) good = false;
    for (int c = 0; c < t->columns; c++) {
      if (t->place[c] != place) continue;
      there |= 1U << c;
      good &= form_column(f, c, type, (uint32_t)(at - header - 1), value);
    }
    value += bytes_of_type(type);
    if (value > UINT16_MAX) value = UINT16_MAX; /* longer than a page: odd in any case */
  }
  good &= form_lacking(f, t, there, (size_t)(end - header)) && at == end;
  f->bytes = good ? value : UINT32_MAX;
}

static inline wr_record_form *form_place(wr_btree_walk *w, uint64_t first, uint64_t second)
{
  return &w->form[(first ^ second << 7) * UINT64_C(0x9e3779b97f4a7c15) >> 58];
}

/* The form of a record of `bytes` at `record`; NULL: it is odd. A header's first byte is its
 * length, so that its bytes are all the key. */
static const wr_record_form *form_of(wr_btree_walk *w, const uint8_t *record, uint64_t bytes)
{
  const uint8_t *at = record;
  uint64_t header = read_varint(&at), first = 0, second = 0;
  if (header > bytes || header < 1) return NULL;
  wr_record_form *f = &w->form[WR_RECORD_FORMS];
  if (header <= 16) {
    first = big_endian_64(record);
    if (header < 8) first >>= 64 - 8 * header;
    if (header > 8) second = big_endian_64(record + 8) >> (128 - 8 * header);
    f = form_place(w, first, second);
  }
  if (!first || f->header[0] != first || f->header[1] != second) {
    make_form(f, w->table, record, record + header);
    f->header[0] = first, f->header[1] = second;
  }
  return f->bytes <= bytes ? f : NULL;
}

/* ---- pages ----------------------------------------------------------------------------------- */

/* Reads pages from `number` on. */
static wr_btree_step read_pages(const wr_btree *t, wr_btree_page *p, uint32_t number,
                                uint32_t count)
{
  size_t bytes = (size_t)count * t->page_bytes;
  if (count > p->room) {
    free(p->bytes);
    *p = (wr_btree_page){.bytes = malloc(bytes + SLACK), .room = count};
    if (!p->bytes) return WR_BTREE_NO_MEMORY;
    memset(p->bytes + bytes, 0, SLACK);
  }
  p->number = p->count = 0;
  sqlite3_int64 offset = (sqlite3_int64)(number - 1) * t->page_bytes;
  if (t->file->pMethods->xRead(t->file, p->bytes, (int)bytes, offset)) return WR_BTREE_ODD;
  p->number = number;
  p->count = count;
  return WR_BTREE_ROW;
}

/* How many pages to read from `number` on: where the last ones were used to their end and it is
 * the one after them, twice as many. */
static uint32_t pages_ahead(const wr_btree *t, const wr_btree_page *p, uint32_t number)
{
  if (!p->number || number != p->number + p->count) return 1;
  uint32_t most = WR_BTREE_AHEAD / t->page_bytes, left = t->pages - number + 1;
  uint32_t count = 2 * p->count < most ? 2 * p->count : most;
  return count < left ? count : left;
}

/* Reads it, where it is not there yet. */
static wr_btree_step load_page(const wr_btree_walk *w, wr_btree_level *l, uint32_t number)
{
  const wr_btree *t = w->table;
  size_t most = w->here_and_there ? WR_BTREE_PAGES : 1;
  if (!l->kept && !(l->kept = calloc(most, sizeof(*l->kept)))) return WR_BTREE_NO_MEMORY;
  wr_btree_page *p = &l->kept[number % most];
  if (!p->number || number - p->number >= p->count) {
    uint32_t count = w->here_and_there ? 1 : pages_ahead(t, p, number);
    wr_btree_step step = read_pages(t, p, number, count);
    if (step != WR_BTREE_ROW) return step;
  }
  l->page = p->bytes + (size_t)(number - p->number) * t->page_bytes;
  return WR_BTREE_ROW;
}

static wr_btree_step read_table_page(wr_btree_walk *w, uint32_t number)
{
  const wr_btree *t = w->table;
  if (w->depth + 1 >= WR_BTREE_DEPTH || number < 2 || number > t->pages) return WR_BTREE_ODD;
  wr_btree_level *l = &w->level[++w->depth];
  wr_btree_step step = load_page(w, l, number);
  if (step != WR_BTREE_ROW) return step;
  l->leaf = l->page[0] == LEAF_PAGE;
  l->at = 0;
  l->cells = big_endian_16(l->page + 3);
  if (!l->leaf && l->page[0] != INNER_PAGE) return WR_BTREE_ODD;
  if ((l->leaf ? LEAF_HEADER : INNER_HEADER) + 2 * l->cells > t->usable) return WR_BTREE_ODD;
  return l->cells || (l->leaf && !w->depth) ? WR_BTREE_ROW : WR_BTREE_ODD;
}

/* The cell's content; NULL: it cannot be there. */
static inline const uint8_t *cell_of_page(const wr_btree_walk *w, const wr_btree_level *l,
                                          uint32_t cell)
{
  uint32_t head = l->leaf ? LEAF_HEADER : INNER_HEADER;
  uint32_t at = big_endian_16(l->page + head + 2 * (size_t)cell);
  return at >= head + 2 * l->cells && at < w->table->usable ? l->page + at : NULL;
}

/* To the next child of an inner page. */
static wr_btree_step enter_child(wr_btree_walk *w)
{
  wr_btree_level *l = &w->level[w->depth];
  const uint8_t *child = l->page + RIGHT_CHILD;
  if (l->at < l->cells) child = cell_of_page(w, l, l->at);
  l->at++;
  return child ? read_table_page(w, big_endian_32(child)) : WR_BTREE_ODD;
}

/* The number of a row, or the largest of a child's. */
static bool key_of_cell(const wr_btree_walk *w, const wr_btree_level *l, uint32_t cell,
                        int64_t *key)
{
  const uint8_t *at = cell_of_page(w, l, cell);
  if (!at) return false;
  if (l->leaf)
    (void)read_varint(&at);
  else
    at += 4;
  *key = (int64_t)read_varint(&at);
  return true;
}

/* To the first cell of the level whose key is at least `id`. */
static bool find_cell(const wr_btree_walk *w, wr_btree_level *l, int64_t id)
{
  uint32_t low = 0, high = l->cells;
  while (low < high) {
    int64_t key;
    uint32_t middle = (low + high) / 2;
    if (!key_of_cell(w, l, middle, &key)) return false;
    if (key < id)
      low = middle + 1;
    else
      high = middle;
  }
  l->at = low;
  return true;
}

wr_btree_step wr_btree_seek(wr_btree_walk *w, int64_t id)
{
  w->depth = -1;
  w->begun = false;
  wr_btree_step step = read_table_page(w, w->table->root);
  while (step == WR_BTREE_ROW) {
    wr_btree_level *l = &w->level[w->depth];
    if (!find_cell(w, l, id)) return WR_BTREE_ODD;
    if (l->leaf) return step;
    step = enter_child(w);
  }
  return step;
}

typedef struct leaf_row {
  int64_t id;
  const uint8_t *record;
  uint64_t bytes; /* of it */
} leaf_row;

typedef struct leaf_page { /* as its rows are looked for */
  const uint8_t *bytes, *end;
  uint32_t usable, head; /* bytes before the cells */
} leaf_page;

static inline leaf_page page_of_level(const wr_btree_walk *w, const wr_btree_level *l)
{
  uint32_t usable = w->table->usable;
  return (leaf_page){l->page, l->page + usable, usable, LEAF_HEADER + 2 * l->cells};
}

/* The row in a cell of a leaf; false: it is odd. Two numbers of nine bytes end before the page's slack does. */
static inline __attribute__((always_inline)) bool find_row(const leaf_page *p, uint32_t at,
                                                           leaf_row *row)
{
  uint32_t cell = big_endian_16(p->bytes + LEAF_HEADER + 2 * (size_t)at);
  if (cell < p->head || cell >= p->usable) return false;
  row->record = p->bytes + cell;
  row->bytes = read_varint(&row->record);
  row->id = (int64_t)read_varint(&row->record);
  return row->bytes <= p->usable - 35 && (int64_t)row->bytes <= p->end - row->record;
}

static inline __attribute__((always_inline)) void
decode_row(const wr_record_form *f, const uint8_t *record, int64_t *v, int columns)
{
#pragma GCC unroll 8
  for (int c = 0; c < columns; c++)
    v[c] = (int64_t)big_endian_64(record + f->at[c]) >> f->shift[c];
}

static wr_btree_step take_row(wr_btree_walk *w, wr_btree_level *l)
{
  leaf_row row;
  const leaf_page page = page_of_level(w, l);
  if (!find_row(&page, l->at, &row) || (w->begun && row.id <= w->id)) return WR_BTREE_ODD;
  const wr_record_form *f = form_of(w, row.record, row.bytes);
  if (!f) return WR_BTREE_ODD;
  decode_row(f, row.record, w->v, w->table->columns);
  w->id = row.id;
  w->begun = true;
  w->nulls = f->nulls;
  l->at++;
  return WR_BTREE_ROW;
}

wr_btree_step wr_btree_next(wr_btree_walk *w)
{
  while (w->depth >= 0) {
    wr_btree_level *l = &w->level[w->depth];
    if (l->leaf && l->at < l->cells) return take_row(w, l);
    if (l->leaf || l->at > l->cells) {
      w->depth--;
      continue;
    }
    wr_btree_step step = enter_child(w);
    if (step != WR_BTREE_ROW) return step;
  }
  return WR_BTREE_END;
}

enum { ROWS_OF_A_LEAF = 128 /* about: rows so near each other are looked for in one leaf */ };

static wr_btree_leaf *leaf_of_row(wr_btree_walk *w, int64_t id)
{
  return &w->leaf[(uint64_t)id / ROWS_OF_A_LEAF % WR_BTREE_LEAVES];
}

/* A leaf that has been there and has the row, if it is there, is at hand. */
static bool open_known_leaf(wr_btree_walk *w, const wr_btree_leaf *leaf, int64_t id)
{
  if (!leaf->page || id < leaf->first || id > leaf->last) return false;
  wr_btree_level *l = &w->level[leaf->depth];
  const wr_btree_page *p = &l->kept[leaf->page % WR_BTREE_PAGES];
  if (p->number != leaf->page) return false;
  w->depth = leaf->depth;
  w->begun = false;
  l->page = p->bytes;
  l->leaf = true;
  l->cells = leaf->cells;
  return true;
}

/* The leaf at hand is remembered for the rows near this one. */
static void know_leaf(wr_btree_walk *w, wr_btree_leaf *leaf)
{
  const wr_btree_level *l = &w->level[w->depth];
  *leaf = (wr_btree_leaf){.cells = l->cells, .depth = w->depth};
  if (!l->cells || !key_of_cell(w, l, 0, &leaf->first) ||
      !key_of_cell(w, l, l->cells - 1, &leaf->last))
    return;
  for (size_t i = 0; i < WR_BTREE_PAGES && !leaf->page; i++)
    if (l->kept[i].bytes == l->page) leaf->page = l->kept[i].number;
}

/* Mostly no number between the first and the last of a leaf is missing. */
static bool find_in_leaf(const wr_btree_walk *w, wr_btree_level *l, const wr_btree_leaf *leaf,
                         int64_t id)
{
  int64_t key = 0;
  uint64_t guess = (uint64_t)id - (uint64_t)leaf->first;
  l->at = (uint32_t)guess;
  if (guess < l->cells && key_of_cell(w, l, (uint32_t)guess, &key) && key == id) return true;
  return find_cell(w, l, id);
}

wr_btree_step wr_btree_find(wr_btree_walk *w, int64_t id)
{
  wr_btree_leaf *leaf = leaf_of_row(w, id);
  if (open_known_leaf(w, leaf, id)) {
    wr_btree_level *l = &w->level[w->depth];
    return find_in_leaf(w, l, leaf, id) && l->at < l->cells ? take_row(w, l) : WR_BTREE_ODD;
  }
  wr_btree_step step = wr_btree_seek(w, id);
  if (step == WR_BTREE_ROW) know_leaf(w, leaf);
  return step == WR_BTREE_ROW ? wr_btree_next(w) : step;
}

/* The form of a record whose header has 8 bytes, as one of seven columns has, and was there before; NULL: it is another. */
static inline __attribute__((always_inline)) const wr_record_form *
known_form(wr_btree_walk *w, const uint8_t *record, uint64_t bytes)
{
  uint64_t header = big_endian_64(record);
  const wr_record_form *f = form_place(w, header, 0);
  return header >> 56 == 8 && f->header[0] == header && f->bytes <= bytes ? f : NULL;
}

/* Rows of a leaf; with `known` as far as their forms are, without a call: all that is needed stays in registers. */
static inline __attribute__((always_inline)) size_t
take_leaf(wr_btree_walk *w, int64_t *rows, size_t stride, size_t most, int columns, bool known)
{
  wr_btree_level *l = &w->level[w->depth];
  const leaf_page page = page_of_level(w, l);
  const uint32_t first = l->at, left = l->cells - first;
  const uint32_t end = first + (left < most ? left : (uint32_t)most);
  uint32_t at = first;
  int64_t last = w->id;
  for (; at < end; at++, rows += stride) {
    leaf_row row;
    if (!find_row(&page, at, &row) || row.id <= last) break;
    const wr_record_form *f =
        known ? known_form(w, row.record, row.bytes) : form_of(w, row.record, row.bytes);
    if (!f) break;
    *rows = last = row.id;
    decode_row(f, row.record, rows + 1, columns);
  }
  l->at = at;
  w->id = last;
  return at - first;
}

/* The numbers of columns that all events are read with have a loop each. */
static __attribute__((noinline)) size_t take_starts(wr_btree_walk *w, int64_t *rows, size_t stride,
                                                    size_t most)
{
  return take_leaf(w, rows, stride, most, 1, true);
}

static __attribute__((noinline)) size_t take_events(wr_btree_walk *w, int64_t *rows, size_t stride,
                                                    size_t most)
{
  return take_leaf(w, rows, stride, most, 6, true);
}

static size_t take_rows(wr_btree_walk *w, int64_t *rows, size_t stride, size_t most)
{
  int columns = w->table->columns;
  if (columns == 1) return take_starts(w, rows, stride, most);
  if (columns == 6) return take_events(w, rows, stride, most);
  return take_leaf(w, rows, stride, most, columns, false);
}

size_t wr_btree_some(wr_btree_walk *w, int64_t *rows, size_t stride, size_t most)
{
  size_t count = 0, bytes = (size_t)w->table->columns * sizeof(*rows);
  wr_btree_level *l = w->depth >= 0 ? &w->level[w->depth] : NULL;
  if (!l || !l->leaf || !w->begun) return 0;
  while (count < most && l->at < l->cells) {
    count += take_rows(w, rows + count * stride, stride, most - count);
    if (count == most || l->at == l->cells || take_row(w, l) != WR_BTREE_ROW) break;
    rows[count * stride] = w->id;
    memcpy(rows + count++ * stride + 1, w->v, bytes);
  }
  return count;
}

void wr_btree_close(wr_btree_walk *w)
{
  size_t most = w->here_and_there ? WR_BTREE_PAGES : 1;
  for (int i = 0; i < WR_BTREE_DEPTH; i++) {
    for (size_t k = 0; w->level[i].kept && k < most; k++)
      free(w->level[i].kept[k].bytes);
    free(w->level[i].kept);
  }
  *w = (wr_btree_walk){0};
}
