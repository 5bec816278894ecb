/* cube.c: see cube.h. Calls come in order of time, so that a line's last cell is the one of the bin or there is none yet. */
#include "reports/page/cube.h"
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include "reports/base/sort.h"
#include "reports/base/util.h"

enum { FEWEST_BINS = 16, FEWEST_BUCKETS = 512 };

static int compare_keys(const page_key *a, const page_key *b)
{
  if (a->site != b->site) return a->site < b->site ? -1 : 1;
  if (a->of != b->of) return a->of < b->of ? -1 : 1;
  if (a->direction != b->direction) return a->direction < b->direction ? -1 : 1;
  return a->route < b->route ? -1 : a->route > b->route;
}

/* ---- lines ----------------------------------------------------------------------------------- */

static uint64_t hash_key(const page_key *key)
{
  return hash_mix(hash_mix(7, (uint64_t)key->site << 32 | key->route),
                  (uint64_t)key->of << 8 | key->direction);
}

uint32_t page_line_of(page_cube *c, page_key key)
{
  for (uint64_t hash = hash_key(&key);; hash = hash_mix(hash, 1)) {
    uint64_t *known = hash_map_place(&c->by_key, hash, NULL);
    if (!known) return PAGE_NO_LINE;
    if (*known && compare_keys(&c->line[*known - 1].key, &key) != 0) continue;
    if (*known) return (uint32_t)*known - 1;
    if (c->lines >= PAGE_NO_LINE ||
        !wr_grow(&c->line, &c->line_capacity, c->lines + 1, sizeof(*c->line)))
      return PAGE_NO_LINE;
    c->line[c->lines++] = (page_line){.key = key};
    *known = c->lines;
    return (uint32_t)c->lines - 1;
  }
}

bool page_cube_renumber(page_cube *c, const uint32_t number[])
{
  hash_map_free(&c->by_key);
  for (size_t i = 0; i < c->lines; i++) {
    page_key *key = &c->line[i].key;
    if (key->route) key->route = number[key->route];
    uint64_t hash = hash_key(key), *place;
    while ((place = hash_map_place(&c->by_key, hash, NULL)) && *place)
      hash = hash_mix(hash, 1);
    if (!place) return false;
    *place = i + 1;
  }
  return true;
}

/* ---- cells ----------------------------------------------------------------------------------- */

/* The bucket of a key, or the free one that would be its. */
static page_bucket *find_bucket(const page_cube *c, uint64_t key)
{
  size_t at = (size_t)hash_mix(7, key) & c->mask;
  while (c->bucket[at].key && c->bucket[at].key != key)
    at = (at + 1) & c->mask;
  return &c->bucket[at];
}

static void forget_cells(page_cube *c)
{
  if (c->bucket) memset(c->bucket, 0, (c->mask + 1) * sizeof(*c->bucket));
  c->buckets = 0;
}

/* As many buckets as are needed for another one, of which at most half are used. */
static bool fit_buckets(page_cube *c)
{
  page_bucket *old = c->bucket;
  size_t was = c->mask ? c->mask + 1 : 0, now = was ? 2 * was : FEWEST_BUCKETS;
  if (2 * c->buckets < was) return true;
  page_bucket *more = c->count < UINT32_MAX ? calloc(now, sizeof(*more)) : NULL;
  if (!more) return false;
  c->bucket = more;
  c->mask = now - 1;
  for (size_t i = 0; i < was; i++)
    if (old[i].key) *find_bucket(c, old[i].key) = old[i];
  free(old);
  return true;
}

static page_cell *add_cell(page_cube *c, uint32_t bin, uint32_t line)
{
  if (!wr_grow(&c->cell, &c->capacity, c->count + 1, sizeof(*c->cell))) return NULL;
  c->cell[c->count] = (page_cell){.bin = bin, .line = line};
  return &c->cell[c->count++];
}

/* Where the number of a cell is kept, valid until the next call. NULL: out of memory. */
static uint32_t *number_of(page_cube *c, uint32_t bin, uint32_t line)
{
  uint64_t key = ((uint64_t)line + 1) << 32 | bin / PAGE_BUCKET_BINS;
  if (!fit_buckets(c)) return NULL;
  page_bucket *bucket = find_bucket(c, key);
  c->buckets += !bucket->key;
  bucket->key = key;
  return &bucket->cell[bin % PAGE_BUCKET_BINS];
}

/* The cell that was added before, where bins do not ascend; or a new one. */
static page_cell *find_cell(page_cube *c, uint32_t bin, uint32_t line)
{
  uint32_t *number = number_of(c, bin, line);
  if (number && *number) return &c->cell[*number - 1];
  page_cell *cell = number ? add_cell(c, bin, line) : NULL;
  if (cell) *number = (uint32_t)c->count;
  return cell;
}

/* From now on bins do not ascend: the cells that are there can be found. False: out of memory. */
static bool scatter(page_cube *c)
{
  for (size_t i = 0; i < c->count; i++) {
    uint32_t *number = number_of(c, c->cell[i].bin, c->cell[i].line);
    if (!number) return false;
    *number = (uint32_t)i + 1;
  }
  return c->scattered = true;
}

static page_cell *place_cell(page_cube *c, uint32_t bin, uint32_t line)
{
  page_line *x = &c->line[line];
  if (x->cell && x->bin == bin) return &c->cell[x->cell - 1];
  if (!c->scattered && c->count && c->cell[c->count - 1].bin > bin && !scatter(c)) return NULL;
  page_cell *cell = c->scattered ? find_cell(c, bin, line) : add_cell(c, bin, line);
  if (!cell) return NULL;
  x->bin = bin;
  x->cell = (uint32_t)(cell - c->cell) + 1;
  return cell;
}

/* Cells are moved to the front of their own array: there are never more than were read. */
static bool fold_bins(page_cube *c)
{
  size_t all = c->count;
  c->count = 0;
  forget_cells(c);
  for (size_t i = 0; i < c->lines; i++)
    c->line[i].cell = 0;
  for (size_t i = 0; i < all; i++) {
    page_cell was = c->cell[i];
    page_cell *to = place_cell(c, was.bin / 2, was.line);
    if (!to) return false;
    to->count += was.count, to->bytes += was.bytes;
    to->host_ns += was.host_ns, to->device_ns += was.device_ns;
  }
  c->bins.count /= 2;
  c->bins.width_ns *= 2;
  c->near = (page_bin_near){0};
  return true;
}

page_cell *page_cell_find(page_cube *c, int64_t ns, uint32_t line)
{
  while (c->count >= PAGE_MOST_CELLS && c->bins.count > FEWEST_BINS)
    if (!fold_bins(c)) return NULL;
  return place_cell(c, page_bin_again(&c->bins, &c->near, ns), line);
}

/* ---- columns --------------------------------------------------------------------------------- */

typedef struct cell_order {
  int64_t order; /* its bin, then its line's place in the order of keys */
  size_t cell;
} cell_order;

static int by_key(const void *left, const void *right, void *of)
{
  const page_cube *c = of;
  return compare_keys(&c->line[*(const size_t *)left].key, &c->line[*(const size_t *)right].key);
}

static int by_order(const void *left, const void *right)
{
  const cell_order *a = left, *b = right;
  return (a->order > b->order) - (a->order < b->order);
}

/* Of each line, its place in the order of keys (new; NULL: out of memory). */
static size_t *rank_lines(const page_cube *c)
{
  size_t *sorted = malloc((c->lines + 1) * sizeof(*sorted));
  size_t *rank = malloc((c->lines + 1) * sizeof(*rank));
  for (size_t i = 0; sorted && i < c->lines; i++)
    sorted[i] = i;
  if (sorted && c->lines) qsort_r(sorted, c->lines, sizeof(*sorted), by_key, (void *)(uintptr_t)c);
  for (size_t i = 0; rank && sorted && i < c->lines; i++)
    rank[sorted[i]] = i;
  if (!sorted) free(rank);
  free(sorted);
  return sorted ? rank : NULL;
}

/* New; NULL: out of memory. */
static cell_order *order_cells(const page_cube *c)
{
  size_t *rank = rank_lines(c);
  cell_order *order = rank ? malloc((c->count + 1) * sizeof(*order)) : NULL;
  for (size_t i = 0; order && i < c->count; i++)
    order[i] =
        (cell_order){(int64_t)(c->cell[i].bin * (uint64_t)c->lines + rank[c->cell[i].line]), i};
  if (order && !wr_sort_records(order, c->count, sizeof(*order), offsetof(cell_order, order)) &&
      c->count)
    qsort(order, c->count, sizeof(*order), by_order);
  free(rank);
  return order;
}

void page_cube_columns(const page_cube *c, page_columns *to, const page_cube_field fields[],
                       int column[], int count)
{
  cell_order *order = order_cells(c);
  to->failed |= !order;
  for (int k = 0; k < count; k++)
    column[k] = page_column_new(
        to, fields[k] == PAGE_CELL_BIN || fields[k] == PAGE_CELL_SITE ? PAGE_DV : PAGE_V);
  page_rows rows = {.to = to, .column = column, .columns = count};
  for (size_t i = 0; order && i < c->count; i++) {
    const page_cell *x = &c->cell[order[i].cell];
    const page_key *key = &c->line[x->line].key;
    const uint64_t values[PAGE_CELL_FIELDS] = {x->bin,         key->site,  key->of,
                                               key->direction, key->route, x->count,
                                               x->bytes,       x->host_ns, x->device_ns};
    int64_t *row = page_row(&rows);
    for (int k = 0; k < count; k++)
      row[k] = (int64_t)values[fields[k]];
  }
  page_rows_end(&rows);
  free(order);
}

void page_cube_free(page_cube *c)
{
  hash_map_free(&c->by_key);
  free(c->line);
  free(c->bucket);
  free(c->cell);
  *c = (page_cube){0};
}
