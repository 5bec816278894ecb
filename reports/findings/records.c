/* records.c: see records.h. At most half of the slots are used. */
#include "reports/findings/records.h"
#include <stdlib.h>
#include <string.h>
#include "reports/base/util.h"

enum { FIRST_SLOTS = 256, GROWTH = 4, MOST_SLOTS = 2 * WR_RECORDS_MOST };

static void number_records(wr_records *x, size_t size)
{
  for (size_t i = 0; i < x->count; i++) {
    uint64_t key = *(const uint64_t *)wr_records_at(x, i, size);
    size_t at = (size_t)key & x->mask;
    while (x->slot[at])
      at = (at + 1) & x->mask;
    x->slot[at] = wr_records_tag(key) | (uint32_t)i;
  }
}

bool wr_records_grow(wr_records *x, size_t size)
{
  if (!wr_grow(&x->record, &x->capacity, x->count + 1, size)) return false;
  x->size = size;
  if (x->count * 2 < x->mask) return true;
  size_t slots = x->mask ? (x->mask + 1) * GROWTH : FIRST_SLOTS;
  if (slots > MOST_SLOTS) slots = MOST_SLOTS;
  uint32_t *more = calloc(slots, sizeof(*more));
  if (!more) return false;
  free(x->slot);
  x->slot = more;
  x->mask = slots - 1;
  number_records(x, size);
  return true;
}

void wr_records_clear(wr_records *x)
{
  if (x->mask) memset(x->slot, 0, (x->mask + 1) * sizeof(*x->slot));
  x->count = 0;
}

void wr_records_free(wr_records *x)
{
  free(x->slot);
  free(x->record);
  *x = (wr_records){0};
}
