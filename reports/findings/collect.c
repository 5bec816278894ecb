/* collect.c: the rows of the rule that runs: where each is, and what groups of them sum up to. */
#include <stdlib.h>
#include <string.h>
#include "core/trace/event.h"
#include "reports/base/util.h"
#include "reports/findings/place_name.h"
#include "reports/findings/search.h"

/* ---- places ---------------------------------------------------------------------------------- */

static uint64_t hash_string(uint64_t hash, const char *text)
{
  for (; text && *text; text++)
    hash = hash_mix(hash, (unsigned char)*text);
  return hash_mix(hash, 0x100);
}

/* By the line of source: instantiations of a template have one place there, macros may have several. */
static uint64_t *slot_of_place(wr_search *x, const wr_frame_name *name, const char *stem,
                               bool *added)
{
  uint64_t key = hash_string(hash_string(7, name->file ? stem : name->function), name->file);
  return hash_map_place(&x->by_place, hash_mix(key, (uint64_t)name->line), added);
}

/* Adds a place, or names the one there is by what its functions have in common. False: out of memory. */
static bool keep_place(wr_search *x, wr_frame_name *name, size_t *out)
{
  bool added = false;
  char *stem = wr_place_stem(name->function);
  uint64_t *at = stem ? slot_of_place(x, name, stem, &added) : NULL;
  if (at && added &&
      !wr_grow(&x->places, &x->place_capacity, x->place_count + 1, sizeof(*x->places)))
    at = NULL;
  if (at && added) {
    x->places[ *at = x->place_count++] = (wr_search_place){.name = *name};
    *name = (wr_frame_name){0};
  } else if (at && strcmp(x->places[*at].name.function, name->function) != 0) {
    free(x->places[*at].name.function);
    x->places[*at].name.function = stem;
    stem = NULL;
  }
  if (at) *out = (size_t)*at;
  free(stem);
  wr_frame_name_free(name);
  return at;
}

static weir_status place_of(wr_search *x, int64_t stack, size_t *out)
{
  const uint64_t *known = hash_map_get(&x->by_stack, (uint64_t)stack);
  if (known) {
    *out = (size_t)*known;
    return WEIR_OK;
  }
  size_t from = 0;
  wr_frame_name name = {0}, caller = {0};
  wr_guard_pause(&x->guard); /* files with symbols can be long */
  weir_status s = wr_site_and_caller(x->symbols, stack, &name, &caller);
  wr_guard_go_on(&x->guard);
  if (s) return s;
  bool kept = keep_place(x, &name, out) && !hash_map_put(&x->by_stack, (uint64_t)stack, *out);
  if (kept && caller.function)
    kept = keep_place(x, &caller, &from) && !hash_map_put(&x->called_from, (uint64_t)stack, from);
  wr_frame_name_free(&caller);
  return kept ? WEIR_OK : wr_search_no_memory(x);
}

static weir_status place_of_common(wr_search *x, const wr_common *common, size_t *out)
{
  size_t *at = &x->place_at[common - x->facts.common];
  weir_status s = WEIR_OK;
  if (!*at) {
    s = place_of(x, common->stack, out);
    if (!s) *at = *out + 1;
  }
  if (!s) *out = *at - 1;
  return s;
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* `common`: of the event, NULL where that is not known yet. */
weir_status wr_search_look_up(wr_search *x, int64_t event, const wr_common **common, size_t *at,
                              int *device, int64_t *range)
{
  int64_t stack = 0;
  if (*common && !x->ranges) { /* most rows: each event that is looked for costs a microsecond */
    if ((*common)->device >= 0) *device = (*common)->device;
    return place_of_common(x, *common, at);
  }
  sqlite3_bind_int64(x->about, 1, event);
  int code = sqlite3_step(x->about);
  if (code == SQLITE_ROW) {
    const wr_common *t = wr_facts_common(&x->facts, sqlite3_column_int64(x->about, 0));
    *common = t;
    if (t) stack = t->stack;
    if (t && t->device >= 0) *device = t->device;
    *range = sqlite3_column_int64(x->about, 1);
  }
  sqlite3_reset(x->about);
  if (code != SQLITE_ROW && code != SQLITE_DONE) return wr_db_fail(x->db, "reading");
  return place_of(x, stack, at);
}

static weir_status tally_range(wr_search *x, size_t at, const wr_search_row *r)
{
  bool added;
  if (!r->range_name) return WEIR_OK;
  uint64_t key = hash_mix(hash_mix(11, at), (uint64_t)r->range_name);
  uint64_t *slot = hash_map_place(&x->by_tally, key, &added);
  if (!slot) return wr_search_no_memory(x);
  if (added) {
    if (!wr_grow(&x->tallies, &x->tally_capacity, x->tally_count + 1, sizeof(*x->tallies)))
      return wr_search_no_memory(x);
    *slot = x->tally_count++;
    x->tallies[*slot] = (wr_search_tally){.group = at, .name = r->range_name};
  }
  x->tallies[*slot].cost = wr_capped_sum(x->tallies[*slot].cost, r->cost + r->count);
  return WEIR_OK;
}

/* NULL: out of memory. */
static wr_search_group *group_of(wr_search *x, const wr_rule *rule, const wr_search_row *r,
                                 size_t *at)
{
  size_t *known = &x->places[r->place].group[r->removed ? WR_CERTAINTIES : r->certainty];
  if (!*known) {
    size_t claims = wr_claims_group(&x->claims);
    if (claims == SIZE_MAX ||
        !wr_grow(&x->groups, &x->group_capacity, x->group_count + 1, sizeof(*x->groups)))
      return NULL;
    x->groups[x->group_count++] = (wr_search_group){.place = r->place,
                                                    .certainty = r->certainty,
                                                    .removed = r->removed,
                                                    .by_driver = x->only_cuda,
                                                    .device = r->device,
                                                    .claims = claims};
    *known = x->group_count;
    if (rule->kernels && !r->removed) {
      if (!wr_grow(&x->samples, &x->sample_capacity, x->sample_count + 1, sizeof(*x->samples)))
        return NULL;
      x->samples[x->sample_count++] = (wr_kernel_samples){0};
      x->groups[*known - 1].samples = x->sample_count;
    }
  }
  *at = *known - 1;
  return &x->groups[*at];
}

/* What is saved of the related event's time is that event's. */
static weir_status claim_row(wr_search *x, const wr_rule *rule, const wr_search_row *r,
                             size_t group)
{
  if (r->removed) return WEIR_OK;
  uint64_t apart = r->related_saving < r->saving ? r->related_saving : r->saving;
  const wr_claim own = {.event = r->event,
                        .group = group,
                        .saving = r->saving - apart,
                        .rest = apart,
                        .bytes = rule->holds ? 0 : r->bytes};
  weir_status s = wr_claims_add(&x->claims, &own);
  if (s || !r->related || !apart) return s;
  return wr_claims_add(
      &x->claims,
      &(wr_claim){.event = r->related, .group = group, .saving = apart, .rest = own.saving});
}

/* NULL: what the row's template is is not known. */
static wr_search_cell *cell_of(const wr_search *x, const wr_common *common, bool removed,
                               wr_certainty certainty)
{
  const size_t slot = removed ? WR_CERTAINTIES : certainty;
  return common ? &x->cells[(size_t)(common - x->facts.common) * WR_SEARCH_SLOTS + slot] : NULL;
}

/* The first row of a cell: its group is that of all that follow. */
static weir_status begin_cell(wr_search *x, wr_search_cell *cell, const wr_search_row *r, size_t at)
{
  if (!wr_grow(&x->used, &x->used_capacity, x->used_count + 1, sizeof(*x->used)))
    return wr_search_no_memory(x);
  x->used[x->used_count++] = (size_t)(cell - x->cells);
  *cell = (wr_search_cell){.group = at + 1};
  wr_search_place *p = &x->places[r->place];
  wr_call_family *f = &x->families[x->family_at[r->common - x->facts.common]];
  if (f->counted == x->running + 1) return WEIR_OK;
  f->counted = x->running + 1;
  p->calls = wr_capped_sum(p->calls, f->calls);
  return WEIR_OK;
}

static uint64_t family_key(const wr_common *t)
{
  uint64_t what = hash_mix(hash_mix((uint64_t)t->kind, (uint64_t)t->copy), t->what & WR_SUCCEEDED);
  return hash_mix(hash_mix(hash_mix(what, (uint64_t)t->process), (uint64_t)t->stack),
                  (uint64_t)t->api);
}

/* Adds up the calls of all threads by stack and function. */
weir_status wr_search_find_families(wr_search *x)
{
  hash_map at = {0};
  bool good = true;
  x->family_at = calloc(x->facts.count + 1, sizeof(*x->family_at));
  x->families = calloc(x->facts.count + 1, sizeof(*x->families));
  x->cells = calloc(x->facts.count * WR_SEARCH_SLOTS + 1, sizeof(*x->cells));
  for (size_t i = 0; x->family_at && x->families && good && i < x->facts.count; i++) {
    bool added;
    const wr_common *t = &x->facts.common[i];
    uint64_t *place = hash_map_place(&at, family_key(t), &added);
    good = place != NULL;
    if (!good) break;
    if (added) *place = at.count - 1;
    x->family_at[i] = *place;
    x->families[*place].calls = wr_capped_sum(x->families[*place].calls, t->calls);
  }
  hash_map_free(&at);
  return good && x->family_at && x->families && x->cells ? WEIR_OK : wr_search_no_memory(x);
}

static weir_status count_by_thread(wr_search *x, size_t at, int64_t thread, uint64_t count)
{
  uint64_t key = hash_mix(hash_mix(12, at), (uint64_t)thread);
  uint64_t *made = hash_map_place(&x->by_thread, key, NULL);
  if (!made) return wr_search_no_memory(x);
  *made = wr_capped_sum(*made, count);
  if (*made > x->groups[at].most) x->groups[at].most = *made;
  return WEIR_OK;
}

/* Sums of a group; the operations count in the cell, by thread, or else here. */
static inline __attribute__((always_inline)) weir_status
add_sums(wr_search *x, const wr_rule *rule, const wr_search_row *r, wr_search_cell *cell, size_t at)
{
  wr_search_group *g = &x->groups[at];
  if (cell) {
    cell->made = wr_capped_sum(cell->made, r->count);
    cell->weight = wr_capped_sum(cell->weight, rule->holds ? r->bytes : r->cost);
  } else if (rule->often && count_by_thread(x, at, 0, r->count))
    return wr_search_no_memory(x);
  g->cost = wr_capped_sum(g->cost, r->cost), g->saving = wr_capped_sum(g->saving, r->saving);
  g->bytes = wr_capped_sum(g->bytes, r->bytes), g->count = wr_capped_sum(g->count, r->count);
  if (g->samples) wr_kernel_samples_take(&x->samples[g->samples - 1], r->event);
  if (r->saving && !wr_spread_add(&g->spread, r->saving, r->bytes)) return wr_search_no_memory(x);
  if (r->related && (!g->related || r->event < g->first))
    g->related = r->related, g->first = r->event;
  weir_status s = claim_row(x, rule, r, g->claims);
  return s || !rule->later || !x->copy_times.copies ? s
                                                    : wr_search_add_later(x, rule, r, g->claims);
}

weir_status wr_search_add_row(wr_search *x, const wr_rule *rule, const wr_search_row *r)
{
  size_t at = 0;
  wr_search_cell *cell = cell_of(x, r->common, r->removed, r->certainty);
  wr_search_group *g = group_of(x, rule, r, &at);
  if (!g) return wr_search_no_memory(x);
  weir_status s = cell && !cell->group ? begin_cell(x, cell, r, at) : WEIR_OK;
  g->by_driver &= r->common && !(r->common->flags & WEIR_EVF_RUNTIME);
  if (g->device != r->device) g->device = WR_OF_SEVERAL_DEVICES;
  if (!s) s = tally_range(x, at, r);
  return s ? s : add_sums(x, rule, r, cell, at);
}

/* What is negative counts as 0. */
static uint64_t not_negative(int64_t n)
{
  return n > 0 ? (uint64_t)n : 0;
}

static uint64_t at_most(int64_t n, uint64_t most)
{
  return not_negative(n) < most ? not_negative(n) : most;
}

weir_status wr_search_add_found(wr_search *x, const wr_rule *rule, const wr_found *found)
{
  const wr_common *common = found->template ? wr_facts_common(&x->facts, found->template) : NULL;
  wr_search_cell *cell = cell_of(x, common, found->removed, found->certainty);
  wr_search_row r;
  r.event = found->event;
  r.related = found->related > 0 ? found->related : 0;
  r.cost = at_most(found->cost, x->f->duration_ns);
  r.saving = at_most(found->saving, x->f->duration_ns);
  r.related_saving = not_negative(found->related_saving);
  r.bytes = not_negative(found->bytes);
  r.count = 1;
  r.removed = found->removed;
  /* all rows of a cell have their place and device in common, which the first has brought */
  if (cell && cell->group && !x->ranges) return add_sums(x, rule, &r, cell, cell->group - 1);
  r.certainty = found->certainty;
  r.common = common;
  r.device = WR_OF_NO_DEVICE;
  r.range_name = 0;
  weir_status s = wr_search_look_up(x, r.event, &r.common, &r.place, &r.device, &r.range_name);
  return s ? s : wr_search_add_row(x, rule, &r);
}

/* Adds the rows of a cell to what its group has of their caller. What costs nothing weighs by its operations. */
static weir_status add_caller(wr_search *x, const wr_search_cell *cell, int64_t stack)
{
  bool added;
  wr_search_group *g = &x->groups[cell->group - 1];
  const uint64_t *from = hash_map_get(&x->called_from, (uint64_t)stack);
  const uint64_t weight = wr_capped_sum(cell->weight, cell->made);
  g->weight = wr_capped_sum(g->weight, weight);
  if (!from) return WEIR_OK;
  uint64_t *at = hash_map_place(&x->by_caller, hash_mix(hash_mix(13, cell->group), *from), &added);
  if (!at || (added &&
              !wr_grow(&x->callers, &x->caller_capacity, x->caller_count + 1, sizeof(*x->callers))))
    return wr_search_no_memory(x);
  if (added) {
    *at = x->caller_count++;
    x->callers[*at] = (wr_search_caller){.place = (size_t)*from, .next = g->callers};
    g->callers = x->caller_count;
  }
  wr_search_caller *c = &x->callers[*at];
  c->weight = wr_capped_sum(c->weight, weight), c->count = wr_capped_sum(c->count, cell->made);
  return WEIR_OK;
}

weir_status wr_search_end_rows(wr_search *x)
{
  weir_status s = WEIR_OK;
  for (size_t i = 0; !s && i < x->used_count; i++) {
    const wr_search_cell *cell = &x->cells[x->used[i]];
    const wr_common *t = &x->facts.common[x->used[i] / WR_SEARCH_SLOTS];
    s = count_by_thread(x, cell->group - 1, t->thread, cell->made);
    if (!s) s = add_caller(x, cell, t->stack);
  }
  for (size_t i = 0; i < x->group_count; i++) {
    wr_search_place *p = &x->places[x->groups[i].place];
    p->found = wr_capped_sum(p->found, x->groups[i].count);
  }
  return s;
}

void wr_search_forget_groups(wr_search *x)
{
  for (size_t i = 0; i < x->place_count; i++) {
    memset(x->places[i].group, 0, sizeof(x->places[i].group));
    x->places[i].found = x->places[i].calls = 0;
  }
  for (size_t i = 0; i < x->group_count; i++)
    wr_spread_free(&x->groups[i].spread);
  for (size_t i = 0; i < x->used_count; i++)
    x->cells[x->used[i]] = (wr_search_cell){0};
  hash_map_free(&x->by_tally);
  hash_map_free(&x->by_thread);
  hash_map_free(&x->by_caller);
  x->group_count = x->tally_count = x->caller_count = x->sample_count = x->used_count = 0;
}
