/* overlaps.c: see overlaps.h. Only findings of one place each are looked at: in what was put together of many, a line says
 * little. */
#include "reports/findings/overlaps.h"
#include <stdlib.h>
#include <string.h>
#include "reports/base/util.h"

enum { MOSTLY = 80 /* of a hundred operations */ };

/* ---- lines ----------------------------------------------------------------------------------- */

static bool has_one_line(const wr_finding *f)
{
  return f->sites && f->site[0].file && !f->more_sites && !(f->sites > 1 && f->site[1].count);
}

static bool are_of_one_line(const wr_finding *a, const wr_finding *b)
{
  const wr_finding_site *x = &a->site[0], *y = &b->site[0];
  return x->line == y->line && !strcmp(x->file, y->file) && !strcmp(x->function, y->function);
}

static uint64_t line_key(const wr_finding *f)
{
  uint64_t key = hash_mix(29, (uint64_t)f->site[0].line);
  for (const char *at = f->site[0].file; *at; at++)
    key = hash_mix(key, (unsigned char)*at);
  return key;
}

/* A line's number is that of its first finding. */
static bool number_line(wr_overlaps *x, const wr_findings *f, size_t i, hash_map *first)
{
  bool added;
  if (!has_one_line(&f->finding[i])) return true;
  uint64_t *at = hash_map_place(first, line_key(&f->finding[i]), &added);
  if (!at) return false;
  if (added) *at = i;
  const wr_finding *other = &f->finding[*at];
  if (added || !are_of_one_line(other, &f->finding[i])) return true;
  x->of[other->made].line = x->of[f->finding[i].made].line = other->made;
  return x->any = true;
}

bool wr_overlaps_open(wr_overlaps *x, const wr_findings *f)
{
  hash_map first = {0};
  *x = (wr_overlaps){.findings = f->count, .of = calloc(f->count + 1, sizeof(*x->of))};
  bool good = x->of;
  for (size_t i = 0; good && i < f->count; i++)
    good = number_line(x, f, i, &first);
  hash_map_free(&first);
  return good;
}

void wr_overlaps_close(wr_overlaps *x)
{
  free(x->of);
  hash_map_free(&x->shared);
  *x = (wr_overlaps){0};
}

/* ---- operations ------------------------------------------------------------------------------ */

static uint64_t pair_key(size_t a, size_t b)
{
  return a < b ? (uint64_t)a << 32 | b : (uint64_t)b << 32 | a;
}

static bool is_among(const size_t finding[], size_t count, size_t number)
{
  while (count && finding[count - 1] != number)
    count--;
  return count;
}

void wr_overlaps_add(wr_overlaps *x, const size_t finding[], size_t count)
{
  for (size_t i = 0; i < count; i++) {
    wr_overlap *own = &x->of[finding[i]];
    if (!own->line || is_among(finding, i, finding[i])) continue;
    own->events++;
    for (size_t k = 0; k < i; k++) {
      if (x->of[finding[k]].line != own->line || is_among(finding, k, finding[k])) continue;
      uint64_t *shared = hash_map_place(&x->shared, pair_key(finding[i], finding[k]), NULL);
      if (shared)
        ++*shared;
      else
        x->failed = true;
    }
  }
}

/* ---- which stands under which ---------------------------------------------------------------- */

static bool is_most(uint64_t part, uint64_t all)
{
  return (double)part * 100 >= (double)all * MOSTLY;
}

/* Whether `f` can stand under `lead`, which stands under none; `before`: in the order of findings. */
static bool stands_under(const wr_overlaps *x, const wr_finding *f, const wr_finding *lead,
                         bool before)
{
  const wr_overlap *own = &x->of[f->made], *other = &x->of[lead->made];
  if (lead->under || own->line != other->line || lead->rule == f->rule) return false;
  if (lead->certainty == f->certainty ? !before : lead->certainty > f->certainty) return false;
  const uint64_t *shared = hash_map_get(&x->shared, pair_key(f->made, lead->made));
  if (!shared || !is_most(*shared, own->events)) return false;
  return is_most(*shared, other->events) || f->saving_ns <= lead->saving_ns;
}

/* Time that both save had been counted for the one that stood first. */
static void move_gain(wr_finding *from, wr_finding *to)
{
  uint64_t room = to->saving_ns > to->added_ns ? to->saving_ns - to->added_ns : 0;
  uint64_t moved = from->added_ns < room ? from->added_ns : room;
  from->added_ns -= moved, to->added_ns += moved;
}

/* Sets `under` to the place of the one that leads, from 1, in the order of now. */
static bool find_lead(const wr_overlaps *x, wr_findings *f, size_t i)
{
  size_t lead = SIZE_MAX;
  wr_finding *own = &f->finding[i];
  for (size_t k = 0; k < f->count; k++) {
    bool surer = lead == SIZE_MAX || f->finding[k].certainty < f->finding[lead].certainty;
    if (k != i && surer && stands_under(x, own, &f->finding[k], k < i)) lead = k;
  }
  if (lead == SIZE_MAX) return false;
  own->under = lead + 1;
  if (lead > i) move_gain(own, &f->finding[lead]);
  return true;
}

/* ---- their order ----------------------------------------------------------------------------- */

typedef struct lead_order {
  size_t first; /* of the lead and of those as sure as it: the place of the one that stood first */
  size_t lead;  /* place */
} lead_order;

typedef struct ordered {
  lead_order of;
  size_t at;
} ordered;

static int by_lead(const void *left, const void *right)
{
  const ordered *a = left, *b = right;
  if (a->of.first != b->of.first) return a->of.first < b->of.first ? -1 : 1;
  if ((a->at == a->of.lead) != (b->at == b->of.lead)) return a->at == a->of.lead ? -1 : 1;
  return (a->at > b->at) - (a->at < b->at);
}

static void find_order(const wr_findings *f, ordered *order)
{
  for (size_t i = 0; i < f->count; i++)
    order[i] = (ordered){.of = {i, i}, .at = i};
  for (size_t i = 0; i < f->count; i++) {
    size_t lead = f->finding[i].under - 1;
    if (!f->finding[i].under) continue;
    bool alike =
        (f->finding[i].certainty == WR_POSSIBLE) == (f->finding[lead].certainty == WR_POSSIBLE);
    if (alike && i < order[lead].of.first) order[lead].of.first = i;
  }
  for (size_t i = 0; i < f->count; i++)
    if (f->finding[i].under) order[i].of = order[f->finding[i].under - 1].of;
  qsort(order, f->count, sizeof(*order), by_lead);
}

static bool put_in_order(wr_findings *f)
{
  ordered *order = calloc(f->count + 1, sizeof(*order));
  wr_finding *moved = calloc(f->count + 1, sizeof(*moved));
  bool good = order && moved;
  if (good) find_order(f, order);
  for (size_t i = 0, lead = 0; good && i < f->count; i++) {
    moved[i] = f->finding[order[i].at];
    if (moved[i].under)
      moved[i].under = lead;
    else
      lead = i + 1;
  }
  if (good && f->count) memcpy(f->finding, moved, f->count * sizeof(*moved));
  free(order);
  free(moved);
  return good;
}

bool wr_overlaps_end(wr_overlaps *x, wr_findings *f)
{
  bool any = false;
  if (x->failed) return false;
  if (!x->any) return true;
  for (int certainty = WR_CERTAIN; certainty <= WR_POSSIBLE; certainty++)
    for (size_t i = 0; i < f->count; i++)
      if (x->of[f->finding[i].made].line && (int)f->finding[i].certainty == certainty)
        any |= find_lead(x, f, i);
  return !any || put_in_order(f);
}
