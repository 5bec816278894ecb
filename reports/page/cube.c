/* cube.c: see cube.h. */
#include "reports/page/cube.h"
#include <stdlib.h>
#include <string.h>
#include "reports/base/util.h"

enum { FEWEST_BINS = 16, FEWEST_SLOTS = 1024 };

static int compare_keys(const page_key *a, const page_key *b)
{
  if (a->bin != b->bin) return a->bin < b->bin ? -1 : 1;
  if (a->site != b->site) return a->site < b->site ? -1 : 1;
  if (a->of != b->of) return a->of < b->of ? -1 : 1;
  if (a->direction != b->direction) return a->direction < b->direction ? -1 : 1;
  return a->route < b->route ? -1 : a->route > b->route;
}

static bool same_key(const page_key *a, const page_key *b)
{
  return a->bin == b->bin && a->site == b->site && a->route == b->route && a->of == b->of &&
         a->direction == b->direction;
}

static size_t home_slot(const page_cube *c, const page_key *key)
{
  uint64_t hash = hash_mix(hash_mix(7, (uint64_t)key->bin << 32 | key->site),
                           (uint64_t)key->route << 16 | (uint64_t)key->of << 8 | key->direction);
  return (size_t)hash & c->mask;
}

/* The slot that has the cell of a key, or would have it. */
static uint32_t *find_slot(const page_cube *c, const page_key *key)
{
  size_t at = home_slot(c, key);
  while (c->slot[at] && !same_key(&c->cell[c->slot[at] - 1].key, key))
    at = (at + 1) & c->mask;
  return &c->slot[at];
}

/* Anew. */
static void fill_slots(page_cube *c)
{
  if (c->slot) memset(c->slot, 0, (c->mask + 1) * sizeof(*c->slot));
  for (size_t i = c->first; i < c->count; i++)
    *find_slot(c, &c->cell[i].key) = (uint32_t)i + 1;
}

void page_cube_renumber(page_cube *c, const uint32_t number[])
{
  for (size_t i = 0; i < c->count; i++)
    if (c->cell[i].key.route) c->cell[i].key.route = number[c->cell[i].key.route];
  fill_slots(c);
}

/* As many slots as are needed, of which at most half are used; no more, since they are cleared for
 * each bin. */
static bool fit_slots(page_cube *c)
{
  size_t slots = FEWEST_SLOTS;
  while (slots <= 2 * (c->count - c->first) + 1)
    slots *= 2;
  if (slots > c->room) {
    uint32_t *more = c->count < UINT32_MAX / 2 ? malloc(slots * sizeof(*more)) : NULL;
    if (!more) return false;
    free(c->slot);
    c->slot = more, c->room = slots;
  }
  c->mask = slots - 1;
  fill_slots(c);
  return true;
}

/* While calls come in order of time each bin's cells are the last ones, and only they are looked
 * for. */
static bool choose_bin(page_cube *c, uint32_t bin)
{
  if (c->scattered || !c->count || c->cell[c->count - 1].key.bin == bin) return true;
  c->scattered = c->cell[c->count - 1].key.bin > bin;
  c->first = c->scattered ? 0 : c->count;
  return fit_slots(c);
}

static page_cell *place_cell(page_cube *c, page_key key)
{
  if (c->latest < c->count && same_key(&c->cell[c->latest].key, &key)) return &c->cell[c->latest];
  if (!choose_bin(c, key.bin)) return NULL;
  if (2 * (c->count - c->first) >= c->mask && !fit_slots(c)) return NULL;
  uint32_t *at = find_slot(c, &key);
  c->latest = *at ? *at - 1 : c->count;
  if (*at) return &c->cell[c->latest];
  if (!wr_grow(&c->cell, &c->capacity, c->count + 1, sizeof(*c->cell))) return NULL;
  *at = (uint32_t)c->count + 1;
  c->cell[c->count] = (page_cell){.key = key};
  return &c->cell[c->count++];
}

/* Cells are moved to the front of their own array: there are never more than were read. */
static bool fold_bins(page_cube *c)
{
  size_t all = c->count;
  c->count = c->first = 0;
  fill_slots(c);
  for (size_t i = 0; i < all; i++) {
    page_cell was = c->cell[i];
    was.key.bin /= 2;
    page_cell *to = place_cell(c, was.key);
    if (!to) return false;
    to->count += was.count, to->bytes += was.bytes;
    to->host_ns += was.host_ns, to->device_ns += was.device_ns;
  }
  c->bins.count /= 2;
  c->bins.width_ns *= 2;
  c->near = (page_bin_near){0};
  c->folded++;
  return true;
}

page_cell *page_cell_of(page_cube *c, int64_t ns, page_key key)
{
  while (c->count >= PAGE_MOST_CELLS && c->bins.count > FEWEST_BINS) {
    if (!fold_bins(c)) return NULL;
  }
  key.bin = page_bin_again(&c->bins, &c->near, ns);
  return place_cell(c, key);
}

static int by_key(const void *left, const void *right)
{
  return compare_keys(&((const page_cell *)left)->key, &((const page_cell *)right)->key);
}

/* While bins ascend only each bin's cells are to be sorted. */
static void sort_cells(page_cube *c)
{
  for (size_t i = 0, end = 0; i < c->count; i = end) {
    uint32_t bin = c->cell[i].key.bin;
    while (end < c->count && (c->scattered || c->cell[end].key.bin == bin))
      end++;
    qsort(c->cell + i, end - i, sizeof(*c->cell), by_key);
  }
}

void page_cube_columns(page_cube *c, page_columns *to, const page_cube_field fields[], int column[],
                       int count)
{
  sort_cells(c);
  for (int k = 0; k < count; k++)
    column[k] = page_column_new(
        to, fields[k] == PAGE_CELL_BIN || fields[k] == PAGE_CELL_SITE ? PAGE_DV : PAGE_V);
  for (size_t i = 0; i < c->count; i++) {
    const page_cell *x = &c->cell[i];
    const uint64_t values[PAGE_CELL_FIELDS] = {x->key.bin,       x->key.site,  x->key.of,
                                               x->key.direction, x->key.route, x->count,
                                               x->bytes,         x->host_ns,   x->device_ns};
    for (int k = 0; k < count; k++)
      page_put(to, column[k], (int64_t)values[fields[k]]);
  }
}

void page_cube_free(page_cube *c)
{
  free(c->slot);
  free(c->cell);
  *c = (page_cube){0};
}
