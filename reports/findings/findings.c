/* findings.c: see findings.h. A rule's rows are summed up by *group*: a place in the program and a
 * certainty. Groups that gain too little to matter are put together, a rule's by certainty: many
 * small places are one finding, if they matter at all. */
#include "reports/findings/findings.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/map.h"
#include "core/trace/event.h"
#include "reports/base/util.h"
#include "reports/findings/facts.h"
#include "reports/findings/fix.h"
#include "reports/findings/claims.h"
#include "reports/findings/guard.h"
#include "reports/findings/judge.h"
#include "reports/findings/rule_calls.h"
#include "reports/findings/source.h"
#include "reports/findings/spread.h"
#include "reports/model/wait_log.h"
#include "reports/model/device_times.h"
#include "reports/model/sites.h"
#include "reports/model/waits.h"

enum {
  RULE_MS = 10000,
  RULE_EVENTS = 1000000, /* for as many, and for each as many more */
  ROW_BYTES = 8,         /* that a row of an event takes at least */
  ROWS = 1 << 26,        /* of one rule, at most */
  STEP = 1 << 16,        /* events between two words of progress */
  NO_DEVICE = -1,
  SEVERAL_DEVICES = -2
};

/* What a row may have; README.md says what they mean. */
enum column {
  EVENT,
  COST,
  SAVING,
  BYTES,
  COUNT,
  CERTAINTY,
  DEVICE,
  REMOVED,
  RELATED,
  TEMPLATE,
  RELATED_SAVING,
  COLUMNS
};
static const char *const column_names[COLUMNS] = {
    "event",   "cost_ns",  "saving_ns",        "bytes", "count", "certainty", "device", "removed",
    "related", "template", "related_saving_ns"};

enum {
  CERTAINTIES = WR_POSSIBLE + 1,
  MANY_THREADS = 8 /* times what a place has to do often: by so much in all it is a habit, too */
};

typedef struct place {
  wr_frame_name name;            /* owned */
  size_t group[CERTAINTIES + 1]; /* of the rule that runs, from 1; 0 none; the last: removed */
  uint64_t found, calls; /* by that rule, operations; calls by the stacks that these are of */
} place;

typedef struct group { /* what becomes a finding, or a part of one */
  size_t place;
  int64_t related; /* event whose place belongs to it; 0 none */
  int64_t first;   /* of its rows with such an event: the lowest event, which names `related` */
  wr_certainty certainty;
  bool removed;   /* by Weir's caches, in this run */
  bool by_driver; /* all calls are the driver's own functions */
  uint64_t cost, saving, bytes, count;
  int64_t thread;   /* that made the rows that came last, */
  uint64_t turn;    /* so many operations, */
  uint64_t most;    /* and the most that one thread made so far; of a rule with `often` */
  wr_spread spread; /* of savings */
  uint64_t slow_count, slow_ns;
  size_t claims; /* its number among the claims' groups */
  int device;
  int64_t range; /* name of the one that has most of it, 0 none */
  uint64_t range_cost;
} group;

typedef struct tally { /* cost of a group's rows in ranges of one name */
  size_t group;
  int64_t name;
  uint64_t cost;
} tally;

/* Calls of one function by one stack, of whichever thread. */
typedef struct call_family {
  uint64_t calls;
  size_t counted; /* the last rule that counted them, from 1 */
} call_family;

typedef struct wr_findings_pass {
  wr_findings *f;
  const wr_db *db;
  const wr_findings_settings *settings;
  wr_symbols *symbols;
  wr_guard guard;
  sqlite3_stmt *about;    /* an event: stack, device, name of its range */
  hash_map by_stack;      /* stack -> place */
  size_t *place_at;       /* owned: by facts.common: place, from 1; 0 not known yet */
  size_t *family_at;      /* owned: by facts.common: its place in `families` */
  call_family *families;  /* owned */
  hash_map by_place;      /* hash -> place */
  const wr_events *calls; /* borrowed */
  bool with_model;        /* which takes the same walk's events */
  wr_facts facts;
  wr_facts_pass *pass; /* owned, until the facts are found, */
  wr_wait_pass *waits; /* as this one */
  uint64_t taken;      /* events */
  wr_finders finders;  /* of judges */
  wr_big_blocks big;
  wr_claims claims;
  wr_rule_calls *has_calls; /* owned: by rule; NULL: not asked for yet */
  int64_t events, rule_ms;
  size_t running; /* rule */
  place *places;
  size_t place_count, place_capacity;
  uint64_t peak_bytes;
  bool hashed;    /* copy_hash has rows */
  bool timed;     /* device_work has rows */
  char *untimed;  /* owned; NULL, or why it has none though they were asked for */
  bool ranges;    /* event_range has rows */
  int64_t began;  /* CLOCK_REALTIME, ns */
  bool only_cuda; /* no call of the engine's is in the trace */
  bool quoted;    /* lines of source may be */
  /* of the rule that runs */
  hash_map by_tally, by_thread; /* by_thread: of a group and a thread its operations */
  group *groups;
  tally *tallies;
  size_t group_count, group_capacity, tally_count, tally_capacity;
} search;

static uint64_t capped_sum(uint64_t a, uint64_t b)
{
  return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static weir_status no_memory(const search *x)
{
  return wr_db_out_of_memory(x->db);
}

/* ---- places ---------------------------------------------------------------------------------- */

static uint64_t hash_string(uint64_t hash, const char *text)
{
  for (; text && *text; text++)
    hash = hash_mix(hash, (unsigned char)*text);
  return hash_mix(hash, 0x100);
}

static weir_status place_of(search *x, int64_t stack, size_t *out)
{
  bool added;
  const uint64_t *known = hash_map_get(&x->by_stack, (uint64_t)stack);
  if (known) {
    *out = (size_t)*known;
    return WEIR_OK;
  }
  place p = {0};
  wr_guard_pause(&x->guard); /* files with symbols can be long */
  weir_status s = wr_site_place(x->symbols, stack, &p.name);
  wr_guard_go_on(&x->guard);
  if (s) return s;
  uint64_t key = hash_string(hash_string(7, p.name.function), p.name.file);
  uint64_t *at = hash_map_place(&x->by_place, hash_mix(key, (uint64_t)p.name.line), &added);
  if (at && added &&
      !wr_grow(&x->places, &x->place_capacity, x->place_count + 1, sizeof(*x->places)))
    at = NULL;
  if (at && added)
    x->places[ *at = x->place_count++] = p;
  else
    wr_frame_name_free(&p.name);
  if (!at || hash_map_put(&x->by_stack, (uint64_t)stack, *at)) return no_memory(x);
  *out = (size_t)*at;
  return WEIR_OK;
}

static weir_status place_of_common(search *x, const wr_common *common, size_t *out)
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

typedef struct row {
  int64_t event, related, range_name;
  uint64_t cost, saving, bytes, count;
  uint64_t related_saving; /* of the saving, what is of the related event's time */
  wr_certainty certainty;
  int device;
  bool removed;
  size_t place;
  const wr_common *common; /* of the event; NULL: not known */
} row;

/* Of a rule's number, what can be: no rule and no trace makes a sum run over. */
static uint64_t positive(sqlite3_stmt *q, int column, uint64_t otherwise)
{
  if (column < 0 || sqlite3_column_type(q, column) == SQLITE_NULL) return otherwise;
  int64_t n = sqlite3_column_int64(q, column);
  return n > 0 ? (uint64_t)n : 0;
}

/* `common`: of the event, NULL where that is not known yet. */
static weir_status look_up(search *x, int64_t event, const wr_common **common, size_t *at,
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

static weir_status read_row(search *x, const wr_rule *rule, sqlite3_stmt *q,
                            const int columns[COLUMNS], row *r)
{
  *r = (row){.event = sqlite3_column_int64(q, columns[EVENT]),
             .cost = positive(q, columns[COST], 0),
             .bytes = positive(q, columns[BYTES], 0),
             .count = positive(q, columns[COUNT], 1),
             .certainty = rule->certainty,
             .device = NO_DEVICE,
             .removed = positive(q, columns[REMOVED], 0) != 0,
             .related = (int64_t)positive(q, columns[RELATED], 0)};
  if (r->cost > x->f->duration_ns) r->cost = x->f->duration_ns;
  r->saving = positive(q, columns[SAVING], r->cost);
  if (r->saving > x->f->duration_ns) r->saving = x->f->duration_ns;
  r->related_saving = positive(q, columns[RELATED_SAVING], 0);
  if (columns[CERTAINTY] >= 0 && sqlite3_column_type(q, columns[CERTAINTY]) != SQLITE_NULL &&
      !wr_certainty_read((const char *)sqlite3_column_text(q, columns[CERTAINTY]), &r->certainty))
    r->certainty = WR_POSSIBLE;
  if (columns[TEMPLATE] >= 0)
    r->common = wr_facts_common(&x->facts, sqlite3_column_int64(q, columns[TEMPLATE]));
  weir_status s = look_up(x, r->event, &r->common, &r->place, &r->device, &r->range_name);
  if (columns[DEVICE] >= 0)
    r->device = sqlite3_column_type(q, columns[DEVICE]) == SQLITE_NULL
                    ? NO_DEVICE
                    : sqlite3_column_int(q, columns[DEVICE]) & 255;
  return s;
}

static weir_status tally_range(search *x, size_t at, const row *r)
{
  bool added;
  if (!r->range_name) return WEIR_OK;
  uint64_t key = hash_mix(hash_mix(11, at), (uint64_t)r->range_name);
  uint64_t *slot = hash_map_place(&x->by_tally, key, &added);
  if (!slot) return no_memory(x);
  if (added) {
    if (!wr_grow(&x->tallies, &x->tally_capacity, x->tally_count + 1, sizeof(*x->tallies)))
      return no_memory(x);
    *slot = x->tally_count++;
    x->tallies[*slot] = (tally){.group = at, .name = r->range_name};
  }
  x->tallies[*slot].cost = capped_sum(x->tallies[*slot].cost, r->cost + r->count);
  return WEIR_OK;
}

/* NULL: out of memory. */
static group *group_of(search *x, const row *r, size_t *at)
{
  size_t *known = &x->places[r->place].group[r->removed ? CERTAINTIES : r->certainty];
  if (!*known) {
    size_t claims = wr_claims_group(&x->claims);
    if (claims == SIZE_MAX ||
        !wr_grow(&x->groups, &x->group_capacity, x->group_count + 1, sizeof(*x->groups)))
      return NULL;
    x->groups[x->group_count++] = (group){.place = r->place,
                                          .certainty = r->certainty,
                                          .removed = r->removed,
                                          .by_driver = x->only_cuda,
                                          .device = r->device,
                                          .claims = claims};
    *known = x->group_count;
  }
  *at = *known - 1;
  return &x->groups[*at];
}

/* What is saved of the related event's time is that event's. */
static weir_status claim_row(search *x, const wr_rule *rule, const row *r, size_t group)
{
  if (r->removed) return WEIR_OK;
  uint64_t apart = r->related_saving < r->saving ? r->related_saving : r->saving;
  const wr_claim own = {.event = r->event,
                        .group = group,
                        .saving = r->saving - apart,
                        .rest = apart,
                        .bytes = rule->holds ? 0 : r->bytes};
  weir_status s = wr_claims_add(&x->claims, &own);
  if (s || !r->related) return s;
  return wr_claims_add(
      &x->claims,
      &(wr_claim){.event = r->related, .group = group, .saving = apart, .rest = own.saving});
}

static void count_calls(search *x, const row *r)
{
  place *p = &x->places[r->place];
  p->found = capped_sum(p->found, r->count);
  call_family *f = r->common ? &x->families[x->family_at[r->common - x->facts.common]] : NULL;
  if (!f || f->counted == x->running + 1) return;
  f->counted = x->running + 1;
  p->calls = capped_sum(p->calls, f->calls);
}

static uint64_t family_key(const wr_common *t)
{
  uint64_t what = hash_mix(hash_mix((uint64_t)t->kind, (uint64_t)t->copy), t->what & WR_SUCCEEDED);
  return hash_mix(hash_mix(hash_mix(what, (uint64_t)t->process), (uint64_t)t->stack),
                  (uint64_t)t->api);
}

/* Adds up the calls of all threads by stack and function. */
static weir_status find_families(search *x)
{
  hash_map at = {0};
  bool good = true;
  x->family_at = calloc(x->facts.count + 1, sizeof(*x->family_at));
  x->families = calloc(x->facts.count + 1, sizeof(*x->families));
  for (size_t i = 0; x->family_at && x->families && good && i < x->facts.count; i++) {
    bool added;
    const wr_common *t = &x->facts.common[i];
    uint64_t *place = hash_map_place(&at, family_key(t), &added);
    good = place != NULL;
    if (!good) break;
    if (added) *place = at.count - 1;
    x->family_at[i] = *place;
    x->families[*place].calls = capped_sum(x->families[*place].calls, t->calls);
  }
  hash_map_free(&at);
  return good && x->family_at && x->families ? WEIR_OK : no_memory(x);
}

/* What the thread of the last rows made is counted with what it had made before. */
static weir_status end_turn(search *x, group *g)
{
  uint64_t key = hash_mix(hash_mix(12, (uint64_t)(g - x->groups)), (uint64_t)g->thread);
  uint64_t *made = hash_map_place(&x->by_thread, key, NULL);
  if (!made) return no_memory(x);
  *made = capped_sum(*made, g->turn);
  if (*made > g->most) g->most = *made;
  g->turn = 0;
  return WEIR_OK;
}

static weir_status count_by_thread(search *x, group *g, const row *r)
{
  int64_t thread = r->common ? r->common->thread : 0;
  weir_status s = g->turn && g->thread != thread ? end_turn(x, g) : WEIR_OK;
  g->thread = thread;
  g->turn = capped_sum(g->turn, r->count);
  return s;
}

static weir_status add_row(search *x, const wr_rule *rule, const row *r)
{
  size_t at = 0;
  group *g = group_of(x, r, &at);
  if (!g || (rule->often && count_by_thread(x, g, r))) return no_memory(x);
  count_calls(x, r);
  g->cost = capped_sum(g->cost, r->cost), g->saving = capped_sum(g->saving, r->saving);
  g->bytes = capped_sum(g->bytes, r->bytes), g->count = capped_sum(g->count, r->count);
  g->by_driver &= r->common && !(r->common->flags & WEIR_EVF_RUNTIME);
  if (r->saving && !wr_spread_add(&g->spread, r->saving, r->bytes)) return no_memory(x);
  if (g->device != r->device) g->device = SEVERAL_DEVICES;
  if (r->related && (!g->related || r->event < g->first))
    g->related = r->related, g->first = r->event;
  weir_status s = tally_range(x, at, r);
  return s ? s : claim_row(x, rule, r, g->claims);
}

/* ---- from groups to findings ----------------------------------------------------------------- */

/* By what the run gains; where that is not known, by what it costs. */
static bool matters(const search *x, const wr_rule *rule, const group *g)
{
  const wr_min_cost *m = &x->f->min;
  const uint64_t cost = g->saving ? g->saving : g->cost, bytes = g->bytes;
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
static int by_name(const char *file, const char *function, int line, const char *other_file,
                   const char *other_function, int other_line)
{
  int order = by_text(file, other_file);
  if (!order) order = by_text(function, other_function);
  return order ? order : (line > other_line) - (line < other_line);
}

/* What one finding can be of. */
static bool are_alike(const group *a, const group *b)
{
  return a->removed == b->removed && (a->removed || a->certainty == b->certainty);
}

static int by_cost(const void *left, const void *right, void *search_)
{
  const group *a = left, *b = right;
  const wr_frame_name *x = &((const search *)search_)->places[a->place].name,
                      *y = &((const search *)search_)->places[b->place].name;
  if (a->removed != b->removed) return a->removed ? 1 : -1;
  if (!are_alike(a, b)) return a->certainty < b->certainty ? -1 : 1;
  if (a->cost != b->cost) return a->cost < b->cost ? 1 : -1;
  if (a->bytes != b->bytes) return a->bytes < b->bytes ? 1 : -1;
  return by_name(x->file, x->function, x->line, y->file, y->function, y->line);
}

static weir_status add_site(search *x, wr_finding *f, size_t at, uint64_t cost, uint64_t count)
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
                         .source = x->quoted ? wr_source_line(n->file, n->line, x->began, n->built)
                                             : NULL,
                         .cost_ns = cost,
                         .count = count};
  return s->function && (s->file || !n->file) ? WEIR_OK : no_memory(x);
}

/* The name of the range that has most of a group. */
static weir_status name_range(search *x, int64_t name, char **out)
{
  sqlite3_stmt *q = NULL;
  weir_status s = wr_db_prepare(x->db, "SELECT text FROM range_name WHERE id = ?", &q);
  if (s) return s;
  sqlite3_bind_int64(q, 1, name);
  if (sqlite3_step(q) == SQLITE_ROW && !(*out = wr_db_text(q, 0))) s = no_memory(x);
  sqlite3_finalize(q);
  return s;
}

static wr_finding *new_finding(search *x, const wr_rule *rule, const group *g)
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
                      .least = least,
                      .saving_bytes = g->bytes,
                      .count = g->count,
                      .slow_count = g->slow_count,
                      .slow_ns = g->slow_ns,
                      .made = *count,
                      .device = g->device < 0 ? NO_DEVICE : g->device};
  return out;
}

static weir_status add_related(search *x, wr_finding *f, const group *g)
{
  size_t at = 0;
  int device;
  int64_t range;
  const wr_common *common = NULL;
  if (!g->related) return WEIR_OK;
  weir_status s = look_up(x, g->related, &common, &at, &device, &range);
  return s || at == g->place ? s : add_site(x, f, at, 0, 0);
}

/* group[0..count) are one finding, of which `all` is the sum. */
static weir_status make_finding(search *x, const wr_rule *rule, const group *g, size_t count,
                                const group *all)
{
  wr_finding *f = new_finding(x, rule, all);
  weir_status s = f ? WEIR_OK : no_memory(x);
  if (f && all->by_driver && !rule->file && !(f->driver_fix = wr_fix_for_driver(rule->fix)))
    s = no_memory(x);
  if (f) f->fix = f->driver_fix ? f->driver_fix : rule->fix;
  size_t made = f && !all->removed ? f->made : 0;
  for (size_t i = 0; !s && i < count; i++) {
    x->claims.group[g[i].claims].finding = made;
    s = add_site(x, f, g[i].place, g[i].cost, g[i].count);
  }
  for (size_t i = 0; !s && i < count && !all->removed; i++)
    s = add_related(x, f, &g[i]);
  wr_guard_pause(&x->guard); /* what a program has called it is long at times */
  if (!s && all->range) s = name_range(x, all->range, &f->range);
  wr_guard_go_on(&x->guard);
  return s;
}

static group sum_of(const group *g, size_t count)
{
  group all = g[0];
  for (size_t i = 1; i < count; i++) {
    all.cost = capped_sum(all.cost, g[i].cost), all.saving = capped_sum(all.saving, g[i].saving);
    all.bytes = capped_sum(all.bytes, g[i].bytes), all.count = capped_sum(all.count, g[i].count);
    all.slow_count += g[i].slow_count, all.slow_ns = capped_sum(all.slow_ns, g[i].slow_ns);
    if (all.device != g[i].device) all.device = SEVERAL_DEVICES;
    if (all.range != g[i].range) all.range = 0;
    all.by_driver &= g[i].by_driver;
  }
  return all;
}

/* A rule finds little. */
static weir_status keep_small(search *x, const wr_rule *rule)
{
  wr_findings *f = x->f;
  size_t at = (size_t)(rule - f->rules.rule);
  if (f->small_count && f->small[f->small_count - 1] == at) return WEIR_OK;
  if (!wr_grow(&f->small, &f->small_capacity, f->small_count + 1, sizeof(*f->small)))
    return no_memory(x);
  f->small[f->small_count++] = at;
  return WEIR_OK;
}

/* Groups of one certainty; what does not matter is moved to the front, and put together, as all is that was
 * removed. */
static weir_status finish_alike(search *x, const wr_rule *rule, group *g, size_t count)
{
  size_t small = 0;
  weir_status s = WEIR_OK;
  if (g->removed) {
    const group all = sum_of(g, count);
    return make_finding(x, rule, g, count, &all);
  }
  for (size_t i = 0; !s && i < count; i++) {
    if (matters(x, rule, &g[i]))
      s = make_finding(x, rule, &g[i], 1, &g[i]);
    else
      g[small++] = g[i];
  }
  if (s || !small) return s;
  group all = sum_of(g, small);
  if (matters(x, rule, &all)) return make_finding(x, rule, g, small, &all);
  return keep_small(x, rule);
}

/* What few operations took beyond the others, the machine's other work may explain: it is no saving. */
static void set_slow_apart(search *x, group *g)
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
static bool judge_place(search *x, const wr_rule *rule, group *g)
{
  const place *p = &x->places[g->place];
  uint64_t habit = g->most > g->count / MANY_THREADS ? g->most : g->count / MANY_THREADS;
  if (!g->removed && habit < (uint64_t)rule->often) g->certainty = WR_POSSIBLE;
  return (double)p->found * 100 >= (double)rule->mostly * (double)p->calls;
}

static weir_status finish_groups(search *x, const wr_rule *rule)
{
  weir_status s = WEIR_OK;
  for (size_t i = 0; i < x->group_count; i++) {
    set_slow_apart(x, &x->groups[i]);
    if (!s && x->groups[i].turn) s = end_turn(x, &x->groups[i]);
  }
  for (size_t i = 0; i < x->tally_count; i++) {
    group *g = &x->groups[x->tallies[i].group];
    const tally *t = &x->tallies[i];
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

/* ---- one rule -------------------------------------------------------------------------------- */

static weir_status not_judged(search *x, const wr_rule *rule, const char *why)
{
  wr_findings *f = x->f;
  if (!wr_grow(&f->unjudged, &f->unjudged_capacity, f->unjudged_count + 1, sizeof(*f->unjudged)))
    return no_memory(x);
  char *text = wr_text(why, strlen(why), true);
  if (!text) return no_memory(x);
  f->unjudged[f->unjudged_count++] = (wr_unjudged_rule){rule, text};
  return WEIR_OK;
}

static weir_status cannot_judge(search *x, const wr_rule *rule, const char *why)
{
  return rule->file ? weir_fail(WEIR_EINVAL, "%s: %s", rule->file, why) : not_judged(x, rule, why);
}

/* What SQLite says of a rule. */
static weir_status rule_failed(search *x, const wr_rule *rule)
{
  int code = sqlite3_errcode(x->db->handle) & 0xff;
  char why[160];
  const char *limit = wr_guard_limit(&x->guard, code);
  bool late = wr_guard_late(&x->guard);
  if (code == SQLITE_NOMEM && !limit) return no_memory(x);
  if (x->settings->stop && *x->settings->stop)
    return weir_fail(WEIR_EIO, "stopped: %s is as it was", x->db->path);
  if (late)
    (void)snprintf(why, sizeof(why), "it takes more than %g s of a processor",
                   (double)x->rule_ms / 1000);
  else if (x->guard.refused[0])
    (void)snprintf(why, sizeof(why), "a rule may not %s", x->guard.refused);
  else if (limit)
    (void)snprintf(why, sizeof(why), "%s", limit);
  else if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB || code == SQLITE_IOERR)
    return wr_db_fail(x->db, "reading");
  else
    (void)snprintf(why, sizeof(why), "%s", sqlite3_errmsg(x->db->handle));
  x->f->late += late;
  return cannot_judge(x, rule, why);
}

/* *found: SQL of the rule, ready; NULL: it cannot judge this trace, which has been noted. */
static weir_status prepare_rule(search *x, const wr_rule *rule, sqlite3_stmt **found)
{
  const char *rest = NULL;
  sqlite3_stmt *q = NULL;
  *found = NULL;
  if (sqlite3_prepare_v2(x->db->handle, rule->sql, -1, &q, &rest)) return rule_failed(x, rule);
  if (!q || rest[strspn(rest, " \n\r\t;")] || !sqlite3_stmt_readonly(q)) {
    sqlite3_finalize(q);
    return cannot_judge(x, rule, "it is not one SELECT");
  }
  for (int i = 1; i <= sqlite3_bind_parameter_count(q); i++) {
    const char *name = sqlite3_bind_parameter_name(q, i);
    bool known = name && !strcmp(name, ":duration_ns");
    if (known) sqlite3_bind_int64(q, i, (sqlite3_int64)x->f->duration_ns);
    for (int t = 0; name && t < rule->thresholds; t++) {
      if (strcmp(name, rule->threshold[t].name) != 0) continue;
      sqlite3_bind_int64(q, i, rule->threshold[t].value);
      known = true;
    }
    if (known) continue;
    weir_status s = cannot_judge(x, rule, "its SQL has a parameter that is no threshold");
    sqlite3_finalize(q);
    return s;
  }
  *found = q;
  return WEIR_OK;
}

static bool find_columns(sqlite3_stmt *q, int columns[COLUMNS], char why[96])
{
  for (int c = 0; c < COLUMNS; c++)
    columns[c] = -1;
  for (int i = 0, c; i < sqlite3_column_count(q); i++) {
    const char *name = sqlite3_column_name(q, i);
    for (c = 0; c < COLUMNS && name && strcmp(name, column_names[c]) != 0; c++)
      ;
    (void)snprintf(why, 96, "column %.48s is none that a rule has", name ? name : "?");
    if (c == COLUMNS || !name) return false;
    columns[c] = i;
  }
  (void)snprintf(why, 96, "its SELECT has no column event");
  return columns[EVENT] >= 0;
}

static bool ended(search *x)
{
  return wr_guard_late(&x->guard) || (x->settings->stop && *x->settings->stop);
}

static weir_status take_rows(search *x, const wr_rule *rule, sqlite3_stmt *q)
{
  int columns[COLUMNS], code = SQLITE_DONE;
  char why[96];
  row r;
  weir_status s = WEIR_OK;
  if (!find_columns(q, columns, why)) return cannot_judge(x, rule, why);
  for (size_t rows = 0; !s && (code = sqlite3_step(q)) == SQLITE_ROW; rows++) {
    if (rows == ROWS) {
      return cannot_judge(x, rule, "it finds more than 67,108,864 operations");
    }
    s = read_row(x, rule, q, columns, &r);
    if (!s) s = add_row(x, rule, &r);
  }
  if (s && !ended(x)) return s; /* it can be ended while a row is looked at, too */
  return !s && code == SQLITE_DONE ? finish_groups(x, rule) : rule_failed(x, rule);
}

static void show_progress(void *context)
{
  search *x = context;
  const wr_findings_settings *o = x->settings;
  const wr_rules *rules = &x->f->rules;
  if (o->progress)
    o->progress(o->progress_context, rules->rule[x->running].id, x->running, rules->count);
}

/* ---- a rule by a function in C --------------------------------------------------------------- */

static uint64_t not_negative(int64_t n)
{
  return n > 0 ? (uint64_t)n : 0;
}

static weir_status take_found(void *context, const wr_found *found)
{
  search *x = context;
  uint64_t most = x->f->duration_ns, cost = not_negative(found->cost),
           saving = not_negative(found->saving);
  row r = {.event = found->event,
           .related = (int64_t)not_negative(found->related),
           .cost = cost < most ? cost : most,
           .saving = saving < most ? saving : most,
           .related_saving = not_negative(found->related_saving),
           .bytes = not_negative(found->bytes),
           .count = 1,
           .certainty = found->certainty,
           .device = NO_DEVICE,
           .removed = found->removed};
  if (found->template) r.common = wr_facts_common(&x->facts, found->template);
  weir_status s = look_up(x, r.event, &r.common, &r.place, &r.device, &r.range_name);
  return s ? s : add_row(x, &x->f->rules.rule[x->running], &r);
}

static weir_status go_on(void *context)
{
  search *x = context;
  show_progress(x);
  return x->settings->stop && *x->settings->stop
             ? weir_fail(WEIR_EIO, "stopped: %s is as it was", x->db->path)
             : WEIR_OK;
}

static weir_status run_judge(search *x, const wr_rule *rule, bool *declined)
{
  wr_case c = {.rule = rule,
               .facts = &x->facts,
               .finders = &x->finders,
               .big = &x->big,
               .duration = (int64_t)x->f->duration_ns,
               .db = x->db,
               .take = take_found,
               .go_on = go_on,
               .context = x};
  weir_status s = wr_case_run(&c, wr_judge_of(rule->judge));
  *declined = c.declines;
  if (!c.lacks) return s || *declined ? s : finish_groups(x, rule);
  char why[80];
  (void)snprintf(why, sizeof(why), "its judge needs a threshold %s", c.lacks);
  return cannot_judge(x, rule, why);
}

static void forget_groups(search *x)
{
  for (size_t i = 0; i < x->place_count; i++) {
    memset(x->places[i].group, 0, sizeof(x->places[i].group));
    x->places[i].found = x->places[i].calls = 0;
  }
  for (size_t i = 0; i < x->group_count; i++)
    wr_spread_free(&x->groups[i].spread);
  hash_map_free(&x->by_tally);
  hash_map_free(&x->by_thread);
  x->group_count = x->tally_count = 0;
}

/* The table that a rule needs and the trace has not, or none of it; NULL: all are there. */
static const char *lacking(search *x, const wr_rule *rule, char name[64])
{
  for (const char *at = rule->needs ? rule->needs : ""; *at;) {
    size_t n = strcspn(at, " ");
    (void)snprintf(name, 64, "%.*s", (int)(n < 63 ? n : 63), at);
    at += n + strspn(at + n, " ");
    bool has = wr_db_has_table(x->db, name);
    if (!has && !sqlite3_table_column_metadata(x->db->handle, "temp", name, NULL, NULL, NULL, NULL,
                                               NULL, NULL))
      has = true;
    has = has || wr_fact_is_table(&x->facts.tables, name);
    if (!has) return name;
  }
  return NULL;
}

/* Whether a fact, a table of the trace or a temporary one is there and has no row. */
static weir_status is_empty(search *x, const char *name, bool *empty)
{
  int64_t any = 1;
  size_t rows = 0;
  if (wr_fact_rows(&x->facts.tables, name, &rows)) {
    *empty = !rows;
    return WEIR_OK;
  }
  bool temporary = !sqlite3_table_column_metadata(x->db->handle, "temp", name, NULL, NULL, NULL,
                                                  NULL, NULL, NULL);
  if (!temporary && !wr_db_has_table(x->db, name)) return WEIR_OK;
  char *sql =
      wr_format("SELECT EXISTS(SELECT 1 FROM %s.\"%s\")", temporary ? "temp" : "main", name);
  weir_status s = sql ? wr_db_number(x->db, sql, &any) : no_memory(x);
  free(sql);
  *empty = !any;
  return s;
}

/* *any: false: a table without whose rows the rule finds nothing has none. */
static weir_status has_rule_rows(search *x, const wr_rule *rule, bool *any)
{
  weir_status s = WEIR_OK;
  for (const char *at = rule->rows ? rule->rows : ""; !s && *any && *at;) {
    char name[64];
    bool empty = false;
    size_t n = strcspn(at, " ");
    (void)snprintf(name, sizeof(name), "%.*s", (int)(n < 63 ? n : 63), at);
    at += n + strspn(at + n, " ");
    s = is_empty(x, name, &empty);
    *any = !empty;
  }
  return s;
}

/* *any: false: no call of the trace can be what the rule finds. */
static weir_status has_calls(search *x, const wr_rule *rule, bool *any)
{
  sqlite3_stmt *q = NULL;
  const char *rest = NULL;
  if (!rule->calls) return WEIR_OK;
  if (!x->has_calls) {
    x->has_calls = calloc(x->f->rules.count, sizeof(*x->has_calls));
    if (!x->has_calls) return no_memory(x);
    wr_rule_calls_find(x->calls, &x->f->rules, x->has_calls);
  }
  const wr_rule_calls known = x->has_calls[rule - x->f->rules.rule];
  *any = known == WR_CALLS_SOME;
  if (known != WR_CALLS_UNKNOWN) return WEIR_OK;
  char *sql = wr_format("SELECT EXISTS (SELECT 1 FROM template t WHERE (%s))", rule->calls);
  if (!sql) return no_memory(x);
  bool good = !sqlite3_prepare_v2(x->db->handle, sql, -1, &q, &rest) && q && !*rest;
  weir_status s = WEIR_OK;
  if (good && sqlite3_step(q) == SQLITE_ROW)
    *any = sqlite3_column_int(q, 0);
  else
    *any = false, s = rule_failed(x, rule);
  sqlite3_finalize(q);
  free(sql);
  return s;
}

/* The condition on calls; and the SELECT, if it is asked. */
static weir_status run_sql(search *x, const wr_rule *rule, bool select, bool *any)
{
  sqlite3_stmt *q = NULL;
  weir_status s = wr_guard_raise(&x->guard, x->db);
  if (!s) wr_guard_time(&x->guard, x->rule_ms);
  if (!s) s = has_calls(x, rule, any);
  if (!s && *any && select) s = prepare_rule(x, rule, &q);
  if (!s && q) s = take_rows(x, rule, q);
  sqlite3_finalize(q);
  wr_guard_lower(&x->guard);
  return s;
}

static weir_status run_rule(search *x, const wr_rule *rule)
{
  char name[64], why[128];
  const char *table = lacking(x, rule, name);
  if (!table && !x->hashed && rule->needs && strstr(rule->needs, "copy_hash"))
    return not_judged(x, rule, "no copy was hashed (weir run --hash)");
  if (!table && !x->timed && rule->needs && strstr(rule->needs, "device_"))
    return not_judged(x, rule,
                      x->untimed ? x->untimed : "no device times (weir run --device-times=all)");
  if (table) {
    (void)snprintf(why, sizeof(why), "the trace has no %s", table);
    return not_judged(x, rule, why);
  }
  bool any = true, declined = false;
  weir_status s = has_rule_rows(x, rule, &any);
  if (!s && any && (rule->calls || !rule->judge)) s = run_sql(x, rule, !rule->judge, &any);
  if (!s && any && rule->judge) s = run_judge(x, rule, &declined);
  if (!s && declined && rule->sql[strspn(rule->sql, " \n\r\t")]) s = run_sql(x, rule, true, &any);
  forget_groups(x);
  return s;
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* By their last number, and no more than the file has room for: that number is what it says. */
static weir_status count_events(search *x)
{
  int64_t pages = 0, page_bytes = 0;
  weir_status s = wr_db_number(x->db, "SELECT max(id) FROM event_row", &x->events);
  if (!s) s = wr_db_number(x->db, "PRAGMA main.page_count", &pages);
  if (!s) s = wr_db_number(x->db, "PRAGMA main.page_size", &page_bytes);
  if (x->events > pages * page_bytes / ROW_BYTES) x->events = pages * page_bytes / ROW_BYTES;
  return s;
}

/* `wait_detail` and what goes with it; of a trace that is not resolved they are made in the walk that finds the facts: by the
 * model that takes it too, or else here. */
static weir_status find_waits(search *x)
{
  int64_t work = 0, made = 0;
  weir_status s = count_events(x);
  int64_t times = x->events > RULE_EVENTS ? (x->events - 1) / RULE_EVENTS + 1 : 1;
  x->rule_ms = x->settings->rule_ms ? x->settings->rule_ms : RULE_MS;
  x->rule_ms *= times < 1000 ? times : 1000;
  if (!s) s = wr_db_number(x->db, "SELECT max(rowid) FROM device_work", &work);
  bool known = wr_db_has_column(x->db, "wait_detail", "before_legacy") &&
               wr_db_has_table(x->db, "wait_time") && wr_db_has_table(x->db, "device_gap") &&
               wr_db_has_table(x->db, "device_idle");
  if (s || known || (x->with_model && !wr_db_has_table(x->db, "wait_detail"))) return s;
  s = wr_db_number(x->db, "SELECT count(*) FROM temp.sqlite_schema WHERE name = 'wait_detail'",
                   &made);
  return s || made ? s : wr_wait_begin(&x->waits, x->calls, true, work <= WR_JUDGED_WORK);
}

static weir_status has_rows(search *x, const char *table, const char *query, bool *out)
{
  int64_t any = 0;
  if (!wr_db_has_table(x->db, table)) return WEIR_OK;
  weir_status s = wr_db_number(x->db, query, &any);
  *out = any != 0;
  return s;
}

/* An option that was given is not advised. */
static weir_status find_untimed(search *x)
{
  wr_device_times t;
  weir_status s = wr_device_times_load(&t, x->db);
  if (s) return s;
  if (wr_device_times_asked(&t) && !(x->untimed = wr_device_times_none(&t))) s = no_memory(x);
  wr_device_times_free(&t);
  return s;
}

enum { APIS = 1 << 16 };

/* Calls of the engine's have functions of its own, which no rule names. */
static weir_status find_engine(search *x)
{
  sqlite3_stmt *q = NULL;
  bool *seen = calloc(APIS, sizeof(*seen)), engine = false;
  weir_status s = seen
                      ? wr_db_prepare(x->db, "SELECT layer = 'weir' FROM main.api WHERE id = ?", &q)
                      : no_memory(x);
  for (size_t i = 0; seen && !s && !engine && i < x->calls->count; i++) {
    const int64_t api = x->calls->templates[i].api & (APIS - 1);
    if (seen[api]) continue;
    seen[api] = true;
    sqlite3_bind_int64(q, 1, api);
    int code = sqlite3_step(q);
    engine = code == SQLITE_ROW && sqlite3_column_int(q, 0);
    if (code != SQLITE_ROW && code != SQLITE_DONE) s = wr_db_fail(x->db, "reading");
    sqlite3_reset(q);
  }
  sqlite3_finalize(q);
  free(seen);
  x->only_cuda = x->finders.weirs_known = !engine;
  return s;
}

/* What was recorded by options of weir run. */
static weir_status find_options(search *x)
{
  weir_status s = has_rows(x, "copy_hash", "SELECT EXISTS(SELECT 1 FROM copy_hash)", &x->hashed);
  if (s) return s;
  s = has_rows(x, "device_work", "SELECT EXISTS(SELECT 1 FROM device_work WHERE kind <> 5)",
               &x->timed);
  if (!s && !x->timed) s = find_untimed(x);
  if (!s) s = find_engine(x);
  if (s || !wr_db_has_table(x->db, "range_row")) return s;
  return has_rows(x, "event_range", "SELECT EXISTS(SELECT 1 FROM event_range)", &x->ranges);
}

/* What other work of the machine did to the run. */
static weir_status find_load(search *x)
{
  int64_t starved = 0, preempted = 0;
  if (!wr_db_has_column(x->db, "process", "starved_ns")) return WEIR_OK; /* of an older Weir */
  weir_status s = wr_db_number(
      x->db, "SELECT CAST(min(total(starved_ns), 9e18) AS INTEGER) FROM process", &starved);
  if (!s)
    s = wr_db_number(x->db, "SELECT CAST(min(total(preempted), 9e18) AS INTEGER) FROM process",
                     &preempted);
  x->f->starved_ns = starved > 0 ? (uint64_t)starved : 0;
  x->f->preempted = preempted > 0 ? (uint64_t)preempted : 0;
  return s;
}

static weir_status find_limits(search *x)
{
  int64_t n = 0;
  weir_status s = wr_db_number(x->db, "SELECT value FROM meta WHERE key = 'duration_ns'", &n);
  x->f->duration_ns = n > 0 ? (uint64_t)n : 1;
  if (!s) s = find_load(x);
  if (!s)
    s = wr_db_number(x->db,
                     "SELECT max(peak) FROM memory WHERE device IS NULL AND mem IS NULL"
                     " AND NOT registered",
                     &n);
  x->peak_bytes = n > 0 ? (uint64_t)n : 0;
  if (!s)
    s = wr_db_number(x->db, "SELECT value FROM meta WHERE key = 'start_realtime_ns'", &x->began);
  return s ? s : wr_sources_may_be_quoted(x->db, x->settings->quoting, &x->quoted);
}

static weir_status show_calls(search *x, size_t more)
{
  const wr_findings_settings *o = x->settings;
  uint64_t before = x->taken / STEP;
  x->taken += more;
  if (x->taken / STEP == before) return WEIR_OK;
  if (o->stop && *o->stop) return weir_fail(WEIR_EIO, "stopped: %s is as it was", x->db->path);
  uint64_t all = x->events > 0 ? (uint64_t)x->events : 0;
  if (o->progress) o->progress(o->progress_context, "reading calls", x->taken, all);
  return WEIR_OK;
}

static weir_status take_events(void *context, const wr_event events[], size_t count)
{
  search *x = context;
  weir_status s = show_calls(x, count);
  if (!s && x->waits) s = wr_wait_take_some(x->waits, events, count);
  wr_big_blocks_take(&x->big, events, count);
  for (size_t i = 0; i < count; i++)
    wr_starts_add(&x->claims.starts, events[i].id, events[i].start);
  return s ? s : wr_facts_take(x->pass, events, count);
}

static weir_status begin_facts(search *x)
{
  wr_facts_settings settings = {.events = x->calls, .timed = x->timed};
  weir_status s = wr_claims_open(&x->claims, x->events);
  if (s) return s;
  return wr_facts_begin(&x->pass, &x->facts, x->db, &settings);
}

static weir_status end_facts(void *context)
{
  search *x = context;
  weir_status s = wr_facts_end(x->pass);
  wr_big_blocks_end(&x->big);
  wr_facts_close(x->pass);
  if (!s && x->waits) s = wr_wait_end(x->waits);
  wr_wait_close(x->waits);
  x->pass = NULL, x->waits = NULL;
  x->place_at = calloc(x->facts.count + 1, sizeof(*x->place_at));
  if (s) return s;
  return x->place_at ? find_families(x) : no_memory(x);
}

wr_listener wr_findings_listener(wr_findings_pass *x)
{
  return (wr_listener){.take_some = take_events, .end = end_facts, .context = x, .in_time = true};
}

/* Those that a rule is about which has them judged in C. */
static weir_status find_big_blocks(search *x)
{
  static const struct {
    const char *judge;
    wr_big_limit (*limit)(wr_case *c);
  } about[WR_BIG_LISTS] = {{"idle-object", wr_idle_object_limit},
                           {"redundant-object", wr_redundant_object_limit}};
  wr_big_limit limits[WR_BIG_LISTS] = {0};
  bool any = false;
  for (size_t i = 0; i < x->f->rules.count; i++) {
    wr_case c = {.rule = &x->f->rules.rule[i]};
    for (size_t k = 0; k < WR_BIG_LISTS; k++)
      if (c.rule->judge && !strcmp(c.rule->judge, about[k].judge))
        limits[k] = about[k].limit(&c), any = true;
  }
  int64_t duration = (int64_t)x->f->duration_ns;
  return any ? wr_big_blocks_open(&x->big, x->calls, duration, limits) : WEIR_OK;
}

/* What rules may read besides the trace. Views are made for a user's rules: Weir's own go by
 * templates. */
static weir_status make_views(search *x)
{
  if (!x->settings->rules) return wr_schema_stand_ins(x->db);
  weir_status s = wr_schema_kind_views(x->db);
  return s ? s : wr_schema_streams_view(x->db);
}

static weir_status prepare_search(search *x)
{
  weir_status s = make_views(x);
  if (!s) s = find_waits(x);
  if (!s) s = find_options(x);
  if (!s) s = find_limits(x);
  if (!s) s = find_big_blocks(x);
  return s ? s : begin_facts(x);
}

static weir_status prepare_rules(search *x)
{
  weir_status s = wr_symbols_open(&x->symbols, x->db);
  return s ? s
           : wr_db_prepare(x->db,
                           x->ranges ? "SELECT e.template,"
                                       " (SELECT r.name FROM event_range n CROSS JOIN range_row r"
                                       " ON r.id = n.range WHERE n.event = e.id)"
                                       " FROM event_row e WHERE e.id = ?"
                                     : "SELECT template, NULL FROM event_row WHERE id = ?",
                           &x->about);
}

void wr_findings_close(wr_findings_pass *x)
{
  if (!x) return;
  sqlite3_finalize(x->about);
  wr_symbols_close(x->symbols);
  for (size_t i = 0; i < x->place_count; i++)
    wr_frame_name_free(&x->places[i].name);
  free(x->places);
  free(x->groups);
  free(x->tallies);
  hash_map_free(&x->by_stack);
  hash_map_free(&x->by_place);
  wr_facts_close(x->pass);
  wr_wait_close(x->waits);
  wr_guard_free(&x->guard);
  wr_claims_close(&x->claims);
  wr_finders_close(&x->finders);
  wr_big_blocks_close(&x->big);
  wr_facts_free(&x->facts);
  free(x->place_at);
  free(x->family_at);
  free(x->families);
  free(x->has_calls);
  free(x->untimed);
  free(x);
}

/* How much the run gains by it, as a part of its time, or of the most memory; where that is nothing, what it costs. */
static double weight(const wr_findings *all, const wr_finding *f)
{
  double time = ((double)f->saving_ns + (double)f->cost_ns * 1e-6) / (double)all->duration_ns;
  return f->rule->holds ? time + (double)f->saving_bytes * 1e-12 : time;
}

/* What is not known to gain anything comes last. */
static bool saves_something(const wr_finding *f)
{
  return f->saving_ns || f->rule->holds;
}

static int by_site(const wr_finding *a, const wr_finding *b)
{
  if (!a->sites || !b->sites) return !a->sites - !b->sites;
  const wr_finding_site *x = &a->site[0], *y = &b->site[0];
  return by_name(x->file, x->function, x->line, y->file, y->function, y->line);
}

static int by_weight(const void *left, const void *right, void *all)
{
  const wr_finding *a = left, *b = right;
  bool sure = a->certainty != WR_POSSIBLE;
  if (sure != (b->certainty != WR_POSSIBLE)) return sure ? -1 : 1;
  if (saves_something(a) != saves_something(b)) return saves_something(a) ? -1 : 1;
  double x = weight(all, a), y = weight(all, b);
  if (x < y || x > y) return x < y ? 1 : -1;
  if (a->rule != b->rule) return a->rule < b->rule ? -1 : 1;
  if (a->saving_bytes != b->saving_bytes) return a->saving_bytes < b->saving_bytes ? 1 : -1;
  if (a->certainty != b->certainty) return a->certainty < b->certainty ? -1 : 1;
  return by_site(a, b);
}

/* When an event began that the walk has not passed by. */
static weir_status find_start(void *context, int64_t event, int64_t *start)
{
  search *x = context;
  wr_case c = {.facts = &x->facts, .finders = &x->finders, .db = x->db};
  const wr_call_row *call = wr_case_call(&c, event);
  *start = !call ? WR_NO_TIME : call->start > 0 ? call->start : 0;
  return c.status;
}

/* What the gains are of each finding, and of all. */
static void take_gains(search *x, const wr_gains *gains)
{
  for (size_t i = 0; i < x->f->count; i++) {
    wr_finding *f = &x->f->finding[i];
    const wr_gain *g = &gains->gain[i];
    f->added_ns = g->added;
    f->spread = wr_gain_interval(g, &f->low_ns, &f->high_ns);
    x->f->saving_ns = capped_sum(x->f->saving_ns, g->added);
    if (f->certainty != WR_POSSIBLE)
      x->f->sure_saving_ns = capped_sum(x->f->sure_saving_ns, g->added);
  }
}

/* Findings are in order. */
static weir_status add_up(search *x)
{
  wr_gains gains;
  size_t *rank = calloc(x->f->count + 1, sizeof(*rank));
  weir_status s = wr_gains_open(&gains, x->f->count) && rank ? WEIR_OK : no_memory(x);
  for (size_t i = 0; rank && !s && i < x->f->count; i++) {
    rank[x->f->finding[i].made] = i;
    gains.gain[i].queued = x->timed && x->f->finding[i].rule->queued;
  }
  wr_claims_end end = {.rank = rank,
                       .gains = &gains,
                       .duration = x->f->duration_ns,
                       .find_start = find_start,
                       .context = x};
  if (!s) s = wr_claims_add_up(&x->claims, &end);
  if (!s) wr_gains_end(&gains);
  if (!s) take_gains(x, &gains);
  x->f->moved_bytes = end.moved_bytes;
  wr_gains_close(&gains);
  free(rank);
  return s;
}

weir_status wr_findings_end(wr_findings_pass *x)
{
  const wr_findings_settings *o = x->settings;
  weir_status s = prepare_rules(x);
  for (; !s && x->running < x->f->rules.count; x->running++)
    s = run_rule(x, &x->f->rules.rule[x->running]);
  if (!s && x->f->count)
    qsort_r(x->f->finding, x->f->count, sizeof(*x->f->finding), by_weight, x->f);
  if (!s) s = add_up(x);
  if (o->progress) o->progress(o->progress_context, NULL, 0, 0);
  return s;
}

/* A rule may name any judge: a user's file as well. */
static weir_status find_judges(const wr_rules *rules)
{
  for (size_t i = 0; i < rules->count; i++) {
    const wr_rule *r = &rules->rule[i];
    if (r->judge && !wr_judge_of(r->judge))
      return weir_fail(WEIR_EINVAL, "%s: there is no judge '%s'", r->file ? r->file : r->id,
                       r->judge);
  }
  return WEIR_OK;
}

/* *out: NULL where nothing is judged. */
static weir_status begin_search(search **out, wr_findings *f, const wr_events *events,
                                const wr_findings_settings *settings, bool with_model)
{
  int64_t finished = 0;
  const wr_db *db = events->db;
  bool least = settings->min.ns || settings->min.bytes || settings->min.share != 0;
  *out = NULL;
  *f = (wr_findings){.min = least ? settings->min : WR_MIN_COST};
  weir_status s = wr_rules_load(&f->rules, settings->rules);
  if (!s) s = find_judges(&f->rules);
  if (!s) s = wr_db_number(db, "SELECT value FROM meta WHERE key = 'finished'", &finished);
  if (!s && db->schema < 2)
    f->unavailable = "the trace is of an older Weir";
  else if (!s && finished != 1)
    f->unavailable = "the trace is not complete";
  if (s || f->unavailable) return s;
  search *x = *out = calloc(1, sizeof(*x));
  if (!x) return wr_db_out_of_memory(db);
  *x = (search){.f = f, .db = db, .settings = settings, .calls = events, .with_model = with_model};
  x->guard = (wr_guard){
      .facts = &x->facts.tables, .stop = settings->stop, .tick = show_progress, .tick_context = x};
  return prepare_search(x);
}

weir_status wr_findings_begin(wr_findings_pass **out, wr_findings *f, const wr_events *events,
                              const wr_findings_settings *settings)
{
  return begin_search(out, f, events, settings, true);
}

weir_status wr_findings_load(wr_findings *f, const wr_db *db, const wr_findings_settings *settings)
{
  wr_events events;
  search *x = NULL;
  *f = (wr_findings){0};
  weir_status s = wr_events_open(&events, db);
  if (!s) s = begin_search(&x, f, &events, settings, false);
  if (!s && x) {
    const wr_listener listener = wr_findings_listener(x);
    s = wr_events_listen(&events, &listener, 1);
    if (!s) s = wr_findings_end(x);
  }
  wr_findings_close(x);
  wr_events_close(&events);
  if (s) wr_findings_free(f);
  return s;
}

static void finding_free(wr_finding *f)
{
  for (size_t i = 0; i < f->sites; i++) {
    free(f->site[i].function);
    free(f->site[i].file);
    free(f->site[i].source);
  }
  free(f->range);
  free(f->driver_fix);
}

void wr_findings_free(wr_findings *f)
{
  for (size_t i = 0; i < f->count; i++)
    finding_free(&f->finding[i]);
  for (size_t i = 0; i < f->unjudged_count; i++)
    free(f->unjudged[i].why);
  for (size_t i = 0; i < f->removed_count; i++)
    finding_free(&f->removed[i]);
  free(f->finding);
  free(f->removed);
  free(f->unjudged);
  free(f->small);
  wr_rules_free(&f->rules);
  *f = (wr_findings){0};
}
