/* template.c: see template.h. */
#include "reports/import/template.h"
#include <stdlib.h>
#include <string.h>
#include "reports/base/util.h"

enum { FIRST_SLOTS = 1024, MOST_SLOTS = 1 << 18 }; /* 12 MiB; then all are forgotten */

typedef struct template_key {
  uint64_t thread, stack, stream;
  uint64_t call;   /* kind, flags, function, status, context: the process is the thread's */
  uint64_t places; /* devices, kinds of memory, direction or reason */
} template_key;

struct wr_template_slot {
  template_key key;
  int64_t id; /* 0: empty */
};

static template_key key_of(const wr_caller *who, const weir_trace_event *e)
{
  return (template_key){.thread = (uint64_t)who->thread,
                        .stack = (uint64_t)who->stack,
                        .stream = e->stream,
                        .call = (uint64_t)e->kind | (uint64_t)e->flags << 8 |
                                (uint64_t)e->api << 16 | (uint64_t)e->status << 32 |
                                (uint64_t)(e->stack >> 24) << 48,
                        .places = (uint64_t)e->device | (uint64_t)e->src_device << 8 |
                                  (uint64_t)e->copy << 16 | (uint64_t)e->mem << 24};
}

static size_t hash_of(const template_key *k)
{
  uint64_t hash = wr_mix(k->call ^ k->thread << 20, k->places ^ k->stack << 32);
  return (size_t)wr_mix(hash ^ k->stack >> 32, k->stream ^ k->thread >> 44);
}

/* Where `k` is, or the empty slot where it would be. */
static struct wr_template_slot *slot_of(const wr_templates *t, const template_key *k)
{
  size_t at = hash_of(k) & t->mask;
  while (t->slots[at].id && memcmp(&t->slots[at].key, k, sizeof(*k)) != 0)
    at = (at + 1) & t->mask;
  return &t->slots[at];
}

/* Room for one more: at most half of the slots are used. */
static weir_status make_room(wr_templates *t)
{
  if (t->mask && (t->used + 1) * 2 <= t->mask + 1) return WEIR_OK;
  if (t->mask + 1 >= MOST_SLOTS) {
    memset(t->slots, 0, (t->mask + 1) * sizeof(*t->slots));
    t->used = 0;
    return WEIR_OK;
  }
  wr_templates old = *t;
  t->mask = old.mask ? 2 * old.mask + 1 : FIRST_SLOTS - 1;
  t->slots = calloc(t->mask + 1, sizeof(*t->slots));
  if (!t->slots) {
    *t = old;
    return weir_fail(WEIR_ENOMEM, "importing: out of host memory");
  }
  for (size_t i = 0; old.mask && i <= old.mask; i++)
    if (old.slots[i].id) *slot_of(t, &old.slots[i].key) = old.slots[i];
  free(old.slots);
  return WEIR_OK;
}

static void fill_row(wr_row *row, int64_t id, const wr_caller *k, const weir_trace_event *e)
{
  row->v[WR_TEMPLATE_ID] = id;
#define FILL(name, value, there)                                                                   \
  row->v[WR_TEMPLATE_##name] = (int64_t)(value);                                                   \
  if (!(there)) row->nulls |= 1u << WR_TEMPLATE_##name;
  WR_TEMPLATE_MAP(FILL)
#undef FILL
}

weir_status wr_template_of(wr_templates *t, wr_batch *batch, const wr_caller *who,
                           const weir_trace_event *e, int64_t *id)
{
  template_key key = key_of(who, e);
  struct wr_template_slot *slot = t->mask ? slot_of(t, &key) : NULL;
  if (slot && slot->id) {
    *id = slot->id;
    return WEIR_OK;
  }
  weir_status s = make_room(t);
  wr_row *row = s ? NULL : wr_batch_row(batch, WR_TABLE_TEMPLATE);
  if (!row) return s ? s : weir_fail(WEIR_ENOMEM, "importing: out of host memory");
  bool rare = e->kind == WEIR_EV_RESET || e->kind == WEIR_EV_CACHE;
  *id = ++t->count * (rare ? -1 : 1);
  fill_row(row, *id, who, e);
  slot = slot_of(t, &key);
  *slot = (struct wr_template_slot){key, *id};
  t->used++;
  return WEIR_OK;
}

void wr_templates_free(wr_templates *t)
{
  free(t->slots);
  *t = (wr_templates){0};
}
