/* cube.c: see cube.h. */
#include "reports/page/cube.h"
#include <stdlib.h>
#include "reports/base/util.h"

enum { MOST_CELLS = 400000, FEWEST_BINS = 16, BIN_SHIFT = 48, SITE_SHIFT = 8 };

static uint64_t key_of(uint32_t bin, uint32_t site, uint32_t of, uint32_t direction)
{
  return (uint64_t)bin << BIN_SHIFT | (uint64_t)site << SITE_SHIFT | of << 4 | direction;
}

static page_cell *place_cell(page_cube *c, uint64_t key)
{
  bool added;
  uint64_t *at = hash_map_place(&c->index, key, &added);
  if (!at || !wr_grow(&c->cell, &c->capacity, c->count + 1, sizeof(*c->cell))) return NULL;
  if (added) {
    *at = c->count;
    c->cell[c->count++] = (page_cell){.key = key};
  }
  return &c->cell[*at];
}

/* Cells are moved to the front of their own array: there are never more than were read. */
static bool fold_bins(page_cube *c)
{
  size_t all = c->count;
  hash_map_free(&c->index);
  c->count = 0;
  for (size_t i = 0; i < all; i++) {
    page_cell was = c->cell[i];
    uint64_t bin = was.key >> BIN_SHIFT, rest = was.key & ((UINT64_C(1) << BIN_SHIFT) - 1);
    page_cell *to = place_cell(c, (bin / 2) << BIN_SHIFT | rest);
    if (!to) return false;
    to->count += was.count, to->bytes += was.bytes;
    to->host_ns += was.host_ns, to->device_ns += was.device_ns;
  }
  c->bins.count /= 2;
  c->bins.width_ns *= 2;
  c->folded++;
  return true;
}

page_cell *page_cell_of(page_cube *c, int64_t ns, uint32_t site, page_class of, uint32_t direction)
{
  while (c->count >= MOST_CELLS && c->bins.count > FEWEST_BINS) {
    if (!fold_bins(c)) return NULL;
  }
  return place_cell(c, key_of(page_bin_of(&c->bins, ns), site, of, direction));
}

static int by_key(const void *left, const void *right)
{
  const page_cell *a = left, *b = right;
  return a->key < b->key ? -1 : a->key > b->key;
}

void page_cube_columns(page_cube *c, page_columns *to, int column[8])
{
  if (c->count) qsort(c->cell, c->count, sizeof(*c->cell), by_key);
  for (int i = 0; i < 8; i++)
    column[i] = page_column_new(to, i == 0 || i == 1 ? PAGE_DV : PAGE_V);
  for (size_t i = 0; i < c->count; i++) {
    const page_cell *x = &c->cell[i];
    const uint64_t values[8] = {x->key >> BIN_SHIFT,
                                x->key >> SITE_SHIFT & UINT32_MAX,
                                x->key >> 4 & 15,
                                x->key & 15,
                                x->count,
                                x->bytes,
                                x->host_ns,
                                x->device_ns};
    for (int k = 0; k < 8; k++)
      page_put(to, column[k], (int64_t)values[k]);
  }
}

void page_cube_free(page_cube *c)
{
  hash_map_free(&c->index);
  free(c->cell);
  *c = (page_cube){0};
}
