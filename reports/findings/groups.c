/* groups.c: findings of what a rule's rows sum up to. Groups that gain too little to matter are put together, a rule's by
 * certainty: many small places are one finding, if they matter at all. */
#include <stdlib.h>
#include <string.h>
#include "reports/base/util.h"
#include "reports/findings/fix.h"
#include "reports/findings/search.h"

enum {
  MANY_THREADS = 8, /* times what a place has to do often: by so much in all it is a habit, too */
  MUCH_LATER = 20   /* a part of a saving, below which what a device takes is not in a finding */
};
#define MOST_OF_CALLERS 0.6 /* of what a place costs: a caller that has it stands alone */

/* By what the run gains; where that is not known, by what it costs. */
static bool matters(const wr_search *x, const wr_rule *rule, const wr_search_group *g)
{
  const wr_min_cost *m = &x->f->min;
  const uint64_t cost = wr_capped_sum(g->saving ? g->saving : g->cost, g->later), bytes = g->bytes;
  if (m->ns >= 0 && cost >= (uint64_t)m->ns) return true;
  if (m->share >= 0 && cost && (double)cost >= m->share * (double)x->f->duration_ns) return true;
  if (!rule->holds) return false;
  if (m->bytes >= 0 && bytes >= (uint64_t)m->bytes) return true;
  return m->share >= 0 && bytes && (double)bytes >= m->share * (double)x->peak_bytes;
}

static int by_text(const char *a, const char *b)
{
  return a && b ? strcmp(a, b) : !a - !b;
}

/* Of what costs the same the name decides: a rule finds its rows in any order. */
int wr_search_by_name(const char *file, const char *function, int line, const char *other_file,
                      const char *other_function, int other_line)
{
  int order = by_text(file, other_file);
  if (!order) order = by_text(function, other_function);
  return order ? order : (line > other_line) - (line < other_line);
}

/* What one finding can be of. */
static bool are_alike(const wr_search_group *a, const wr_search_group *b)
{
  return a->removed == b->removed && (a->removed || a->certainty == b->certainty);
}

static int by_cost(const void *left, const void *right, void *search_)
{
  const wr_search_group *a = left, *b = right;
  const wr_frame_name *x = &((const wr_search *)search_)->places[a->place].name,
                      *y = &((const wr_search *)search_)->places[b->place].name;
  if (a->removed != b->removed) return a->removed ? 1 : -1;
  if (!are_alike(a, b)) return a->certainty < b->certainty ? -1 : 1;
  if (a->cost != b->cost) return a->cost < b->cost ? 1 : -1;
  if (a->bytes != b->bytes) return a->bytes < b->bytes ? 1 : -1;
  return wr_search_by_name(x->file, x->function, x->line, y->file, y->function, y->line);
}

/* Callers that weigh the same are in the order of their names. */
static bool precedes(const wr_search *x, const wr_search_caller *a, const wr_search_caller *b)
{
  const wr_frame_name *p = &x->places[a->place].name, *q = &x->places[b->place].name;
  if (a->weight != b->weight) return a->weight > b->weight;
  return wr_search_by_name(p->file, p->function, p->line, q->file, q->function, q->line) < 0;
}

/* The heaviest callers of a group, in order; *all: how many it has. */
static size_t heaviest_callers(const wr_search *x, const wr_search_group *g,
                               const wr_search_caller *top[WR_FINDING_CALLERS], size_t *all)
{
  size_t count = *all = 0;
  for (size_t i = g->callers; i; i = x->callers[i - 1].next, ++*all) {
    const wr_search_caller *c = &x->callers[i - 1];
    size_t at = count;
    while (at && precedes(x, c, top[at - 1]))
      at--;
    if (at == WR_FINDING_CALLERS) continue;
    if (count < WR_FINDING_CALLERS) count++;
    for (size_t to = count - 1; to > at; to--)
      top[to] = top[to - 1];
    top[at] = c;
  }
  return count;
}

/* The one that has most of the group, where one has. */
static weir_status add_callers(wr_search *x, wr_finding_site *s, const wr_search_group *g)
{
  const wr_search_caller *top[WR_FINDING_CALLERS];
  size_t all = 0, count = heaviest_callers(x, g, top, &all);
  if (count && (double)top[0]->weight >= MOST_OF_CALLERS * (double)g->weight) count = 1;
  for (size_t i = 0; i < count; i++) {
    const wr_frame_name *n = &x->places[top[i]->place].name;
    wr_finding_caller *c = &s->caller[s->callers++];
    *c = (wr_finding_caller){.function = wr_format("%s", n->function),
                             .file = n->file ? wr_format("%s", n->file) : NULL,
                             .line = n->file ? n->line : 0,
                             .share = (double)top[i]->weight / (double)g->weight,
                             .count = top[i]->count};
    if (!c->function || (n->file && !c->file)) return wr_search_no_memory(x);
  }
  s->more_callers = all - count;
  return WEIR_OK;
}

/* `g`: whose place it is; NULL: what another goes with. */
static weir_status add_site(wr_search *x, wr_finding *f, size_t at, const wr_search_group *g)
{
  if (f->sites == WR_FINDING_SITES) {
    f->more_sites++;
    return WEIR_OK;
  }
  const wr_frame_name *n = &x->places[at].name;
  wr_finding_site *s = &f->site[f->sites++];
  x->f->interpreters |= wr_is_interpreter(n->module);
  *s = (wr_finding_site){.function = wr_format("%s", n->function),
                         .file = n->file ? wr_format("%s", n->file) : NULL,
                         .line = n->file ? n->line : 0,
                         .built = n->built,
                         .source = x->quoted ? wr_source_line(n->file, n->line, x->began, n->built)
                                             : NULL,
                         .cost_ns = g ? g->cost : 0,
                         .count = g ? g->count : 0};
  if (!s->function || (n->file && !s->file)) return wr_search_no_memory(x);
  return g ? add_callers(x, s, g) : WEIR_OK;
}

/* The name of the range that has most of a group. */
static weir_status name_range(wr_search *x, int64_t name, char **out)
{
  sqlite3_stmt *q = NULL;
  weir_status s = wr_db_prepare(x->db, "SELECT text FROM range_name WHERE id = ?", &q);
  if (s) return s;
  sqlite3_bind_int64(q, 1, name);
  if (sqlite3_step(q) == SQLITE_ROW && !(*out = wr_db_text(q, 0))) s = wr_search_no_memory(x);
  sqlite3_finalize(q);
  return s;
}

/* ns of a device; 0: too little to make two figures of one. */
static uint64_t later_of(const wr_search_group *g)
{
  const uint64_t saving = g->saving ? g->saving : g->cost;
  return g->later > saving / MUCH_LATER ? g->later : 0;
}

static wr_finding *new_finding(wr_search *x, const wr_rule *rule, const wr_search_group *g)
{
  wr_findings *f = x->f;
  wr_finding **list = g->removed ? &f->removed : &f->finding;
  size_t *count = g->removed ? &f->removed_count : &f->count;
  size_t *capacity = g->removed ? &f->removed_capacity : &f->capacity;
  if (!wr_grow(list, capacity, *count + 1, sizeof(**list))) return NULL;
  wr_finding *out = &(*list)[(*count)++];
  bool known = x->timed && rule->decides && strstr(rule->decides, "--device-times");
  bool least = rule->least == WR_LEAST_ALWAYS || (rule->least == WR_LEAST_UNTIMED && !x->timed);
  *out = (wr_finding){.rule = rule,
                      .decides = known ? NULL : rule->decides,
                      .certainty = g->certainty,
                      .cost_ns = g->cost,
                      .saving_ns = g->saving,
                      .later_ns = later_of(g),
                      .least = least,
                      .saving_bytes = g->bytes,
                      .count = g->count,
                      .slow_count = g->slow_count,
                      .slow_ns = g->slow_ns,
                      .made = *count,
                      .device = g->device < 0 ? WR_OF_NO_DEVICE : g->device};
  return out;
}

static weir_status add_related(wr_search *x, wr_finding *f, const wr_search_group *g)
{
  size_t at = 0;
  int device;
  int64_t range;
  const wr_common *common = NULL;
  if (!g->related) return WEIR_OK;
  weir_status s = wr_search_look_up(x, g->related, &common, &at, &device, &range);
  return s || at == g->place ? s : add_site(x, f, at, NULL);
}

/* group[0..count) are one finding, of which `all` is the sum. */
static weir_status make_finding(wr_search *x, const wr_rule *rule, const wr_search_group *g,
                                size_t count, const wr_search_group *all)
{
  wr_finding *f = new_finding(x, rule, all);
  weir_status s = f ? WEIR_OK : wr_search_no_memory(x);
  if (f && all->by_driver && !rule->file && !(f->driver_fix = wr_fix_for_driver(rule->fix)))
    s = wr_search_no_memory(x);
  if (f) f->fix = f->driver_fix ? f->driver_fix : rule->fix;
  size_t made = f && !all->removed ? f->made : 0;
  for (size_t i = 0; !s && i < count; i++) {
    x->claims.group[g[i].claims].finding = made;
    s = add_site(x, f, g[i].place, &g[i]);
  }
  for (size_t i = 0; !s && i < count && !all->removed; i++)
    s = add_related(x, f, &g[i]);
  wr_guard_pause(&x->guard); /* what a program has called it is long at times */
  if (!s && all->range) s = name_range(x, all->range, &f->range);
  if (!s && rule->kernels && !all->removed) s = wr_search_name_kernels(x, f, g, count);
  wr_guard_go_on(&x->guard);
  return s;
}

static wr_search_group sum_of(const wr_search_group *g, size_t count)
{
  wr_search_group all = g[0];
  for (size_t i = 1; i < count; i++) {
    all.cost = wr_capped_sum(all.cost, g[i].cost),
    all.saving = wr_capped_sum(all.saving, g[i].saving);
    all.later = wr_capped_sum(all.later, g[i].later);
    all.bytes = wr_capped_sum(all.bytes, g[i].bytes),
    all.count = wr_capped_sum(all.count, g[i].count);
    all.slow_count += g[i].slow_count, all.slow_ns = wr_capped_sum(all.slow_ns, g[i].slow_ns);
    if (all.device != g[i].device) all.device = WR_OF_SEVERAL_DEVICES;
    if (all.range != g[i].range) all.range = 0;
    all.by_driver &= g[i].by_driver;
  }
  return all;
}

/* A rule finds little; `g` is where most of it is. What is surer comes first, and stays. */
static weir_status keep_small(wr_search *x, const wr_rule *rule, const wr_search_group *g,
                              size_t count)
{
  wr_findings *f = x->f;
  const wr_frame_name *n = &x->places[g->place].name;
  if (f->small_count && f->small[f->small_count - 1].rule == rule) return WEIR_OK;
  if (!wr_grow(&f->small, &f->small_capacity, f->small_count + 1, sizeof(*f->small)))
    return wr_search_no_memory(x);
  wr_small_finding *s = &f->small[f->small_count++];
  *s = (wr_small_finding){.rule = rule,
                          .function = wr_format("%s", n->function),
                          .file = n->file ? wr_format("%s", n->file) : NULL,
                          .line = n->file ? n->line : 0,
                          .cost_ns = g->cost,
                          .saving_ns = g->saving,
                          .later_ns = later_of(g),
                          .saving_bytes = g->bytes,
                          .count = g->count,
                          .several = count > 1};
  return s->function && (s->file || !n->file) ? WEIR_OK : wr_search_no_memory(x);
}

/* Groups of one certainty; what does not matter is moved to the front, and put together, as all is that was
 * removed. */
static weir_status finish_alike(wr_search *x, const wr_rule *rule, wr_search_group *g, size_t count)
{
  size_t small = 0;
  weir_status s = WEIR_OK;
  if (g->removed) {
    const wr_search_group all = sum_of(g, count);
    return make_finding(x, rule, g, count, &all);
  }
  for (size_t i = 0; !s && i < count; i++) {
    if (matters(x, rule, &g[i]))
      s = make_finding(x, rule, &g[i], 1, &g[i]);
    else
      g[small++] = g[i];
  }
  if (s || !small) return s;
  wr_search_group all = sum_of(g, small);
  if (matters(x, rule, &all)) return make_finding(x, rule, g, small, &all);
  return keep_small(x, rule, g, small);
}

/* What few operations took beyond the others, the machine's other work may explain: it is no saving. */
static void set_slow_apart(wr_search *x, wr_search_group *g)
{
  wr_slow slow = wr_spread_slow(&g->spread, x->f->starved_ns);
  wr_spread_free(&g->spread);
  if (!slow.count) return;
  g->slow_count = slow.count, g->slow_ns = slow.ns;
  g->saving -= slow.ns < g->saving ? slow.ns : g->saving;
  wr_claim_group *claims = &x->claims.group[g->claims];
  claims->least = slow.least, claims->median = slow.median;
}

/* By how often a place does what was found, and how often it makes the call without. What each of a few threads does
 * once, as when it ends, none does as a habit. False: it is no finding. */
static bool judge_place(wr_search *x, const wr_rule *rule, wr_search_group *g)
{
  const wr_search_place *p = &x->places[g->place];
  uint64_t habit = g->most > g->count / MANY_THREADS ? g->most : g->count / MANY_THREADS;
  if (!g->removed && habit < (uint64_t)rule->often) g->certainty = WR_POSSIBLE;
  return (double)p->found * 100 >= (double)rule->mostly * (double)p->calls;
}

weir_status wr_search_finish_groups(wr_search *x, const wr_rule *rule)
{
  weir_status s = wr_search_end_rows(x);
  if (!s) s = wr_search_sum_later(x);
  for (size_t i = 0; i < x->group_count; i++)
    set_slow_apart(x, &x->groups[i]);
  for (size_t i = 0; i < x->tally_count; i++) {
    wr_search_group *g = &x->groups[x->tallies[i].group];
    const wr_search_tally *t = &x->tallies[i];
    if (t->cost > g->range_cost || (t->cost == g->range_cost && t->name < g->range))
      g->range_cost = t->cost, g->range = t->name;
  }
  size_t count = 0;
  for (size_t i = 0; i < x->group_count; i++)
    if (judge_place(x, rule, &x->groups[i])) x->groups[count++] = x->groups[i];
  x->group_count = count;
  if (count) qsort_r(x->groups, count, sizeof(*x->groups), by_cost, x);
  for (size_t i = 0, next; !s && i < count; i = next) {
    for (next = i + 1; next < count && are_alike(&x->groups[next], &x->groups[i]);)
      next++;
    s = finish_alike(x, rule, x->groups + i, next - i);
  }
  return s;
}
