/* diff.c: see diff.h. */
#include "reports/diff/diff.h"
#include <stdlib.h>
#include <string.h>
#include "core/base/map.h"
#include "reports/base/util.h"

static weir_status no_memory_to_compare(void)
{
  return weir_fail(WEIR_ENOMEM, "comparing traces: out of host memory");
}

uint64_t wr_subject_value(const wr_subject *x, wr_metric m)
{
  return x ? x->value[m] : 0;
}

const char *wr_fate_name(wr_fate fate)
{
  static const char *const names[] = {"gone", "new", "stays", "not judged"};
  return names[fate];
}

/* ---- subjects -------------------------------------------------------------------------------- */

typedef enum how { EXACTLY, BY_FOLDER, BY_FILE_NAME } how;

/* What of a path counts: all, the last two parts, the last. */
static const char *path_part(const char *path, how by)
{
  return by == EXACTLY ? path : by == BY_FOLDER ? wr_short_path(path) : wr_file_name(path);
}

static uint64_t subject_key(const wr_subject *x, how by)
{
  uint64_t key = wr_hash_text(hash_mix(hash_mix(2, (uint64_t)x->of), (uint64_t)x->device), x->name);
  if (x->of != WR_OF_SITE) return wr_hash_text(key, x->domain);
  if (!x->file) return wr_hash_text(hash_mix(key, 1), x->module);
  return wr_hash_text(key, path_part(x->file, by));
}

#define SEVERAL UINT64_MAX

/* Key -> index plus 1 of those that have no like yet; SEVERAL where it means more than one. */
static weir_status map_free_ones(hash_map *map, const wr_figures *f, const bool *taken, how by)
{
  for (size_t i = 0; i < f->count; i++) {
    bool added;
    if (taken[i] || (by != EXACTLY && f->subject[i].of != WR_OF_SITE)) continue;
    uint64_t *at = hash_map_place(map, subject_key(&f->subject[i], by), &added);
    if (!at) return no_memory_to_compare();
    *at = added ? i + 1 : SEVERAL;
  }
  return WEIR_OK;
}

typedef struct matching {
  bool *a, *b;  /* which have their like */
  size_t *of_a; /* index of it in B */
} matching;

static weir_status pair_up(const wr_figures *a, const wr_figures *b, how by, matching *m)
{
  hash_map of_a = {0}, of_b = {0};
  uint64_t key, *value;
  weir_status s = map_free_ones(&of_a, a, m->a, by);
  if (!s) s = map_free_ones(&of_b, b, m->b, by);
  for (size_t at = 0; !s && hash_map_next(&of_a, &at, &key, &value);) {
    const uint64_t *like = hash_map_get(&of_b, key);
    if (!like || *like == SEVERAL || *value == SEVERAL) continue;
    m->of_a[*value - 1] = (size_t)*like - 1;
    m->a[*value - 1] = m->b[*like - 1] = true;
  }
  hash_map_free(&of_a);
  hash_map_free(&of_b);
  return s;
}

static void list_pairs(wr_diff *d, const matching *m)
{
  static const int order[] = {WR_OF_RUN, WR_OF_DEVICE, WR_OF_SITE, WR_OF_RANGE};
  for (size_t o = 0; o < sizeof(order) / sizeof(order[0]); o++) {
    for (size_t i = 0; i < d->a.count; i++)
      if (d->a.subject[i].of == order[o])
        d->pair[d->count++] =
            (wr_pair){&d->a.subject[i], m->a[i] ? &d->b.subject[m->of_a[i]] : NULL};
    for (size_t i = 0; i < d->b.count; i++)
      if (d->b.subject[i].of == order[o] && !m->b[i])
        d->pair[d->count++] = (wr_pair){NULL, &d->b.subject[i]};
  }
}

static weir_status match_subjects(wr_diff *d)
{
  matching m = {calloc(d->a.count + 1, sizeof(*m.a)), calloc(d->b.count + 1, sizeof(*m.b)),
                calloc(d->a.count + 1, sizeof(*m.of_a))};
  d->pair = calloc(d->a.count + d->b.count + 1, sizeof(*d->pair));
  weir_status s = m.a && m.b && m.of_a && d->pair ? WEIR_OK : no_memory_to_compare();
  for (how by = EXACTLY; !s && by <= BY_FILE_NAME; by++)
    s = pair_up(&d->a, &d->b, by, &m);
  if (!s) list_pairs(d, &m);
  free(m.a);
  free(m.b);
  free(m.of_a);
  return s;
}

/* ---- findings -------------------------------------------------------------------------------- */

static bool is_same(const char *a, const char *b)
{
  return a == b || (a && b && !strcmp(a, b));
}

static bool is_same_waste(const wr_wasted *a, const wr_wasted *b, how by)
{
  const char *file_a = a->file ? path_part(a->file, by) : NULL;
  const char *file_b = b->file ? path_part(b->file, by) : NULL;
  return !strcmp(a->rule->id, b->rule->id) && !strcmp(a->function, b->function) &&
         is_same(file_a, file_b);
}

static bool has_judged(const wr_figures *f, const wr_rule *rule)
{
  size_t known = 0;
  for (size_t i = 0; i < f->findings.unjudged_count; i++)
    if (!strcmp(f->findings.unjudged[i].rule->id, rule->id)) return false;
  while (known < f->findings.rules.count && strcmp(f->findings.rules.rule[known].id, rule->id) != 0)
    known++;
  return f->judged && known < f->findings.rules.count;
}

/* The one of B's like this that is free; by the whole path if there is one. */
static size_t waste_like(const wr_figures *b, const wr_wasted *a, const bool *taken)
{
  for (how by = EXACTLY; by <= BY_FILE_NAME; by++)
    for (size_t i = 0; i < b->wasted_count; i++)
      if (!taken[i] && is_same_waste(a, &b->wasted[i], by)) return i;
  return SIZE_MAX;
}

static void put_waste(wr_diff *d, const wr_wasted *a, const wr_wasted *b)
{
  wr_fate fate = a && b ? WR_STAYS : a ? WR_GONE : WR_NEW;
  if (fate == WR_GONE && !has_judged(&d->b, a->rule)) fate = WR_UNJUDGED;
  if (fate == WR_NEW && !has_judged(&d->a, b->rule)) fate = WR_UNJUDGED;
  d->waste[d->waste_count++] = (wr_waste_pair){a, b, fate};
}

/* Each fate's in the order they had: A's first, as A has them. */
static void sort_by_fate(wr_diff *d, wr_waste_pair *scratch)
{
  size_t n = 0;
  for (wr_fate fate = WR_GONE; fate <= WR_UNJUDGED; fate++)
    for (size_t i = 0; i < d->waste_count; i++)
      if (d->waste[i].fate == fate) scratch[n++] = d->waste[i];
  memcpy(d->waste, scratch, n * sizeof(*scratch));
}

static weir_status match_findings(wr_diff *d)
{
  size_t most = d->a.wasted_count + d->b.wasted_count + 1;
  bool *taken = calloc(d->b.wasted_count + 1, sizeof(*taken));
  wr_waste_pair *scratch = calloc(most, sizeof(*scratch));
  d->waste = calloc(most, sizeof(*d->waste));
  bool good = taken && scratch && d->waste;
  for (size_t i = 0; good && i < d->a.wasted_count; i++) {
    size_t at = waste_like(&d->b, &d->a.wasted[i], taken);
    if (at != SIZE_MAX) taken[at] = true;
    put_waste(d, &d->a.wasted[i], at != SIZE_MAX ? &d->b.wasted[at] : NULL);
  }
  for (size_t i = 0; good && i < d->b.wasted_count; i++)
    if (!taken[i]) put_waste(d, NULL, &d->b.wasted[i]);
  if (good) sort_by_fate(d, scratch);
  free(taken);
  free(scratch);
  return good ? WEIR_OK : no_memory_to_compare();
}

/* ---- all ------------------------------------------------------------------------------------- */

weir_status wr_diff_load(wr_diff *d, const char *a, const char *b,
                         const wr_figures_settings *settings, const wr_conditions *conditions)
{
  *d = (wr_diff){0};
  weir_status s = wr_figures_load(&d->a, a, settings);
  if (!s) s = wr_figures_load(&d->b, b, settings);
  if (!s) s = match_subjects(d);
  if (!s) s = match_findings(d);
  if (!s) s = wr_judge(&d->verdicts, conditions, &d->b, &d->a);
  if (s) wr_diff_free(d);
  return s;
}

void wr_diff_free(wr_diff *d)
{
  wr_verdicts_free(&d->verdicts);
  free(d->pair);
  free(d->waste);
  wr_figures_free(&d->a);
  wr_figures_free(&d->b);
  *d = (wr_diff){0};
}
