/* template.c: see template.h. */
#include "reports/import/template.h"
#include "core/base/map.h"
#include "reports/base/util.h"

enum { MOST_KNOWN = 1 << 17 }; /* 6 MiB; then all are forgotten */

static uint64_t template_key(const wr_caller *who, const trace_event *e)
{
  uint64_t call = (uint64_t)e->kind | (uint64_t)e->flags << 8 | (uint64_t)e->api << 16 |
                  (uint64_t)e->status << 32 | (uint64_t)(e->stack >> 24) << 48;
  uint64_t places = (uint64_t)e->device | (uint64_t)e->src_device << 8 | (uint64_t)e->detail << 16 |
                    (uint64_t)e->mem << 24;
  uint64_t key = hash_mix(hash_mix(7, call), places);
  key = hash_mix(key, (uint64_t)who->thread); /* which has one process */
  return hash_mix(hash_mix(key, (uint64_t)who->stack), e->stream);
}

static void fill_row(wr_row *row, int64_t id, const wr_caller *k, const trace_event *e)
{
  row->v[WR_TEMPLATE_ID] = id;
#define FILL(name, value, there)                                                                   \
  row->v[WR_TEMPLATE_##name] = (int64_t)(value);                                                   \
  if (!(there)) row->nulls |= 1u << WR_TEMPLATE_##name;
  WR_TEMPLATE_MAP(FILL)
#undef FILL
}

weir_status wr_template_of(wr_templates *t, wr_batch *batch, const wr_caller *who,
                           const trace_event *e, int64_t *id)
{
  uint64_t key = template_key(who, e);
  uint64_t *known = hash_map_get(&t->known, key);
  if (known) {
    *id = (int64_t)*known;
    return WEIR_OK;
  }
  if (t->known.count >= MOST_KNOWN) hash_map_free(&t->known);
  uint32_t set = WR_HAS_ACCESS(e) ? event_access_number(e->detail, e->mem, e->src_device) : 0;
  wr_batch_rows *sets = &batch->rows[WR_TABLE_TEMPLATE_ACCESS];
  if (set && !wr_grow(&sets->row, &sets->capacity, sets->count + 1, sizeof(wr_row)))
    return weir_fail(WEIR_ENOMEM, "importing: out of host memory");
  wr_row *row = wr_batch_row(batch, WR_TABLE_TEMPLATE);
  if (row && !(known = hash_map_place(&t->known, key, NULL)))
    batch->rows[WR_TABLE_TEMPLATE].count--;
  if (!known) return weir_fail(WEIR_ENOMEM, "importing: out of host memory");
  bool rare = e->kind == WEIR_EV_RESET || e->kind == WEIR_EV_CACHE;
  *id = ++t->count * (rare ? -1 : 1);
  *known = (uint64_t)*id;
  fill_row(row, *id, who, e);
  if (set) sets->row[sets->count++] = (wr_row){.v = {*id, set}};
  return WEIR_OK;
}
