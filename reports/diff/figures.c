/* figures.c: see figures.h. */
#include "reports/diff/figures.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/map.h"
#include "core/trace/event.h"
#include "reports/whole/whole.h"
#include "reports/model/open.h"

typedef struct gathering {
  wr_figures *f;
  const wr_model *m;
  hash_map sites;    /* hash of function and file -> index of its subject */
  hash_map fileless; /* hash of a function without a file -> index of its subject */
  hash_map wasted;   /* hash of rule, function and file -> index */
} gathering;

static weir_status no_memory_for_figures(const wr_figures *f)
{
  return weir_fail(WEIR_ENOMEM, "reporting on %s: out of host memory", f->path ? f->path : "it");
}

/* They are put in order once all are there: order_lines(). */
static bool lines_add(wr_lines *l, int line)
{
  if (line <= 0 || (l->count && l->line[l->count - 1] == line)) return true;
  if (!wr_grow(&l->line, &l->capacity, l->count + 1, sizeof(*l->line))) return false;
  l->line[l->count++] = line;
  return true;
}

static int by_line(const void *left, const void *right)
{
  int a = *(const int *)left, b = *(const int *)right;
  return (a > b) - (a < b);
}

/* Ascending, each once. */
static void order_lines(wr_lines *l)
{
  size_t kept = 0;
  if (l->count > 1) qsort(l->line, l->count, sizeof(*l->line), by_line);
  for (size_t i = 0; i < l->count; i++)
    if (!kept || l->line[kept - 1] != l->line[i]) l->line[kept++] = l->line[i];
  l->count = kept;
}

/* ---- subjects -------------------------------------------------------------------------------- */

/* A new one; NULL: out of memory. Valid until the next. */
static wr_subject *add_subject(wr_figures *f, int of)
{
  if (!wr_grow(&f->subject, &f->capacity, f->count + 1, sizeof(*f->subject))) return NULL;
  wr_subject *x = &f->subject[f->count++];
  *x = (wr_subject){.of = of};
  return x;
}

static const char left_out[] = "some calls of the run were not recorded";

/* A place in the program as the model and the findings name it. */
typedef struct spot {
  const char *function, *file, *module;
  int line;
} spot;

static uint64_t hash_spot(uint64_t hash, const spot *at)
{
  hash = wr_hash_text(wr_hash_text(hash, at->function), at->file);
  return at->file ? hash : wr_hash_text(hash, at->module);
}

static wr_subject *site_of(gathering *g, const spot *at)
{
  bool added;
  uint64_t *known = hash_map_place(&g->sites, hash_spot(5, at), &added);
  if (!known) return NULL;
  if (added) {
    *known = g->f->count;
    wr_subject *x = add_subject(g->f, WR_OF_SITE);
    if (!x) return NULL;
    x->name = wr_format("%s", at->function);
    x->file = at->file ? wr_format("%s", at->file) : NULL;
    x->module = wr_format("%s", at->module ? at->module : "");
    if (!x->name || !x->module || (at->file && !x->file)) return NULL;
    if (!at->file && hash_map_put(&g->fileless, wr_hash_text(8, at->function), *known)) return NULL;
  }
  return &g->f->subject[*known];
}

/* ---- sites ----------------------------------------------------------------------------------- */

static void add_value(wr_subject *x, wr_metric m, uint64_t n)
{
  x->value[m] += n;
}

static void add_copies(wr_subject *x, const wr_site *s)
{
  static const int counts[] = {[WEIR_COPY_HTOD] = WR_METRIC_H2D,
                               [WEIR_COPY_DTOH] = WR_METRIC_D2H,
                               [WEIR_COPY_DTOD] = WR_METRIC_D2D,
                               [WEIR_COPY_PTOP] = WR_METRIC_P2P,
                               [WEIR_COPY_HTOH] = WR_METRIC_H2H};
  int direction = s->direction;
  bool up = direction == WEIR_COPY_HTOD, down = direction == WEIR_COPY_DTOH;
  if (direction >= 0 && (size_t)direction < sizeof(counts) / sizeof(counts[0]) &&
      counts[direction]) {
    add_value(x, (wr_metric)counts[direction], s->calls);
    add_value(x, (wr_metric)(counts[direction] + 1), s->bytes);
  }
  if ((up && s->src_mem == WEIR_MEM_PAGEABLE) || (down && s->mem == WEIR_MEM_PAGEABLE)) {
    add_value(x, WR_METRIC_PAGEABLE, s->calls);
    add_value(x, WR_METRIC_PAGEABLE_BYTES, s->bytes);
  }
}

/* A list of the model's sites, and which metrics its sums are of; -1: none. */
typedef struct site_figures {
  size_t list; /* offset of a wr_sites in wr_model, or in wr_device */
  wr_lines_of lines;
  int calls, bytes, ns;
} site_figures;

static const site_figures by_site[] = {
    {offsetof(wr_model, alloc), WR_LINES_ALLOCS, WR_METRIC_ALLOCS, WR_METRIC_ALLOC_BYTES, -1},
    {offsetof(wr_model, copy), WR_LINES_COPIES, WR_METRIC_COPIES, WR_METRIC_COPY_BYTES, -1},
    {offsetof(wr_model, sync), WR_LINES_WAITS, WR_METRIC_WAITS, -1, WR_METRIC_WAIT_TIME},
    {offsetof(wr_model, redundant), WR_LINES_WAITS, WR_METRIC_REDUNDANT, -1,
     WR_METRIC_REDUNDANT_TIME},
    {offsetof(wr_model, wider), WR_LINES_WAITS, WR_METRIC_WIDER, -1, WR_METRIC_WIDER_TIME},
    {offsetof(wr_model, leak), WR_LINES_LEAKS, WR_METRIC_LEAKS, WR_METRIC_LEAK_BYTES, -1}};
static const site_figures owners = {0, WR_LINES_PEAK, -1, WR_METRIC_PEAK, -1};

static weir_status take_sites(gathering *g, const wr_sites *list, const site_figures *how)
{
  for (size_t i = 0; i < list->count; i++) {
    const wr_site *s = &list->site[i];
    wr_subject *x = site_of(g, &(spot){s->function, s->file, s->module, s->line});
    if (!x || !lines_add(&x->lines[how->lines], s->file ? s->line : 0))
      return no_memory_for_figures(g->f);
    x->known = s->known;
    if (how->calls >= 0) add_value(x, (wr_metric)how->calls, s->calls);
    if (how->bytes >= 0) add_value(x, (wr_metric)how->bytes, s->bytes);
    if (how->ns >= 0) add_value(x, (wr_metric)how->ns, s->ns);
    if (how->calls == WR_METRIC_COPIES) add_copies(x, s);
  }
  return WEIR_OK;
}

static weir_status gather_sites(gathering *g)
{
  weir_status st = WEIR_OK;
  for (size_t i = 0; !st && i < sizeof(by_site) / sizeof(by_site[0]); i++)
    st = take_sites(g, (const wr_sites *)(const void *)((const char *)g->m + by_site[i].list),
                    &by_site[i]);
  for (int i = 0; !st && i < WR_HOST; i++)
    if (g->m->devices[i].seen) st = take_sites(g, &g->m->devices[i].owners, &owners);
  return st;
}

/* ---- the run, devices, ranges ---------------------------------------------------------------- */

/* Of which sums a metric is the value: of the run, of a device, of a range. A metric may have
 * several. */
#define RUN(field)    (int)offsetof(wr_totals, field)
#define DEVICE(field) (int)offsetof(wr_device_totals, field)
#define RANGE(field)  (int)offsetof(wr_range_sum, field)
#define NOT_OF        -1

/* clang-format off */
static const struct figure_source {
  wr_metric metric;
  int run, device, range; /* offsets */
} sources[] = {
    {WR_METRIC_PEAK, RUN(peak_bytes), DEVICE(peak_bytes), RANGE(peak_bytes)},
    {WR_METRIC_PINNED_PEAK, RUN(pinned_peak_bytes), NOT_OF, NOT_OF},
    {WR_METRIC_LEAK_BYTES, RUN(live_at_exit_bytes), DEVICE(live_at_exit_bytes), NOT_OF},
    {WR_METRIC_LEAKS, RUN(live_at_exit_blocks), NOT_OF, NOT_OF},
    {WR_METRIC_PINNED_LEAK_BYTES, RUN(pinned_live_at_exit_bytes), NOT_OF, NOT_OF},
    {WR_METRIC_ALLOCS, RUN(alloc_calls), DEVICE(alloc_calls), RANGE(allocs)},
    {WR_METRIC_ALLOC_BYTES, RUN(alloc_bytes), DEVICE(alloc_bytes), RANGE(alloc_bytes)},
    {WR_METRIC_COPIES, RUN(other_copy_calls), NOT_OF, RANGE(copies)},
    {WR_METRIC_COPY_BYTES, RUN(other_copy_bytes), NOT_OF, RANGE(copy_bytes)},
    {WR_METRIC_H2D, RUN(h2d_calls), DEVICE(h2d_calls), NOT_OF},
    {WR_METRIC_H2D_BYTES, RUN(h2d_bytes), DEVICE(h2d_bytes), NOT_OF},
    {WR_METRIC_D2H, RUN(d2h_calls), DEVICE(d2h_calls), NOT_OF},
    {WR_METRIC_D2H_BYTES, RUN(d2h_bytes), DEVICE(d2h_bytes), NOT_OF},
    {WR_METRIC_D2D, RUN(d2d_calls), DEVICE(d2d_calls), NOT_OF},
    {WR_METRIC_D2D_BYTES, RUN(d2d_bytes), DEVICE(d2d_bytes), NOT_OF},
    {WR_METRIC_P2P, RUN(p2p_calls), NOT_OF, NOT_OF},
    {WR_METRIC_P2P_BYTES, RUN(p2p_bytes), NOT_OF, NOT_OF},
    {WR_METRIC_H2H, RUN(h2h_calls), NOT_OF, NOT_OF},
    {WR_METRIC_H2H_BYTES, RUN(h2h_bytes), NOT_OF, NOT_OF},
    {WR_METRIC_MEMSETS, RUN(memset_calls), DEVICE(memset_calls), NOT_OF},
    {WR_METRIC_MEMSET_BYTES, RUN(memset_bytes), DEVICE(memset_bytes), NOT_OF},
    {WR_METRIC_WAITS, NOT_OF, NOT_OF, RANGE(waits)},
    {WR_METRIC_WAIT_TIME, NOT_OF, NOT_OF, RANGE(wait_ns)},
    {WR_METRIC_EXPLICIT, RUN(sync_explicit_calls), DEVICE(sync_explicit_calls), NOT_OF},
    {WR_METRIC_EXPLICIT_TIME, RUN(sync_explicit_ns), DEVICE(sync_explicit_ns), NOT_OF},
    {WR_METRIC_IMPLICIT, RUN(sync_implicit_calls), NOT_OF, NOT_OF},
    {WR_METRIC_IMPLICIT_TIME, RUN(sync_implicit_ns), NOT_OF, NOT_OF},
    {WR_METRIC_LAUNCHES, RUN(launches), DEVICE(launches), RANGE(launches)},
    {WR_METRIC_DURATION, NOT_OF, NOT_OF, RANGE(ns)},
    {WR_METRIC_ERRORS, RUN(failed_calls), NOT_OF, NOT_OF},
    {WR_METRIC_DROPPED, RUN(dropped), NOT_OF, NOT_OF}};
/* clang-format on */

static void add_sum(wr_subject *x, wr_metric m, const void *sums, int offset)
{
  if (offset != NOT_OF)
    add_value(x, m, *(const uint64_t *)(const void *)((const char *)sums + offset));
}

static void put_metric_totals(wr_subject *x, const wr_totals *run, const wr_device_totals *device,
                              const wr_range_sum *range)
{
  for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
    const struct figure_source *from = &sources[i];
    if (run) add_sum(x, from->metric, run, from->run);
    if (device) add_sum(x, from->metric, device, from->device);
    if (range) add_sum(x, from->metric, range, from->range);
  }
}

/* What is a sum of others, and what is of the run alone. */
static void put_rest_of_run(wr_subject *x, const wr_model *m)
{
  for (wr_metric k = WR_METRIC_H2D; k <= WR_METRIC_H2H_BYTES; k++)
    x->value[(k - WR_METRIC_H2D) % 2 ? WR_METRIC_COPY_BYTES : WR_METRIC_COPIES] += x->value[k];
  x->value[WR_METRIC_WAITS] = x->value[WR_METRIC_EXPLICIT] + x->value[WR_METRIC_IMPLICIT];
  x->value[WR_METRIC_WAIT_TIME] =
      x->value[WR_METRIC_EXPLICIT_TIME] + x->value[WR_METRIC_IMPLICIT_TIME];
  for (size_t i = 0; i < m->split_count; i++) {
    if (strcmp(m->split[i].memory, "pageable") != 0) continue;
    add_value(x, WR_METRIC_PAGEABLE, m->split[i].calls);
    add_value(x, WR_METRIC_PAGEABLE_BYTES, m->split[i].bytes);
  }
  add_value(x, WR_METRIC_REDUNDANT, m->waits.redundant_calls);
  add_value(x, WR_METRIC_REDUNDANT_TIME, m->waits.redundant_ns);
  add_value(x, WR_METRIC_WIDER, m->waits.wider_calls);
  add_value(x, WR_METRIC_WIDER_TIME, m->waits.wider_ns);
  add_value(x, WR_METRIC_CACHE_HITS, m->cache.side[0].hits + m->cache.side[1].hits);
  add_value(x, WR_METRIC_CACHE_MISSES, m->cache.side[0].misses + m->cache.side[1].misses);
  add_value(x, WR_METRIC_CACHE_HELD, m->cache.held_peak_bytes);
  add_value(x, WR_METRIC_DURATION, m->duration_ns > 0 ? (uint64_t)m->duration_ns : 0);
}

static weir_status gather_run(gathering *g)
{
  wr_figures *f = g->f;
  wr_subject *x = add_subject(f, WR_OF_RUN);
  if (!x || !(x->name = wr_format("%s", ""))) return no_memory_for_figures(f);
  put_metric_totals(x, &g->m->total, NULL, NULL);
  put_rest_of_run(x, g->m);
  for (int i = 0; i < WR_HOST; i++) {
    if (!g->m->devices[i].seen) continue;
    x = add_subject(f, WR_OF_DEVICE);
    if (!x || !(x->name = wr_format("%s", ""))) return no_memory_for_figures(f);
    x->device = i;
    put_metric_totals(x, NULL, &g->m->devices[i].total, NULL);
  }
  return WEIR_OK;
}

static weir_status gather_ranges(gathering *g)
{
  for (size_t i = 0; i < g->m->ranges.count; i++) {
    const wr_range_sum *r = &g->m->ranges.sum[i];
    wr_subject *x = add_subject(g->f, WR_OF_RANGE);
    if (!x) return no_memory_for_figures(g->f);
    x->name = wr_format("%s", r->text);
    x->domain = wr_format("%s", r->domain);
    if (!x->name || !x->domain) return no_memory_for_figures(g->f);
    put_metric_totals(x, NULL, NULL, r);
  }
  return WEIR_OK;
}

static void note_unknown(wr_figures *f, const wr_model *m)
{
  static const char *const waits[] = {
      [WR_JUDGED] = "the trace does not say what waits had to wait for",
      [WR_UNJUDGED_UNFINISHED] = "the trace is not complete",
      [WR_UNJUDGED_VERSION] = "the trace is of an older Weir",
      [WR_UNJUDGED_WORK] = "the trace has too many operations: 'weir resolve' it",
      [WR_UNJUDGED_RESOLVED] = "another version of Weir has resolved the trace"};
  if (!m->waits.judged)
    for (int i = WR_METRIC_REDUNDANT; i <= WR_METRIC_WIDER_TIME; i++)
      f->unknown[i] = waits[m->waits.why];
  for (int i = WR_METRIC_REDUNDANT; i <= WR_METRIC_WIDER_TIME && m->coverage.unrecorded_spans; i++)
    f->unknown[i] = left_out;
  if (!m->cache.rerouted)
    for (int i = WR_METRIC_CACHE_HITS; i <= WR_METRIC_CACHE_HELD; i++)
      f->unknown[i] = "the run had no caches: it was in mode observe";
}

/* ---- findings -------------------------------------------------------------------------------- */

/* It stands for several places, each too small to matter by itself. */
static bool is_of_many_places(const wr_finding *f)
{
  return f->more_sites || (f->sites > 1 && f->site[1].count);
}

static weir_status take_waste(gathering *g, const wr_finding *x)
{
  bool added, many = is_of_many_places(x) || !x->sites;
  wr_figures *f = g->f;
  const wr_finding_site *first = x->site;
  spot at = {many ? "" : first->function, many ? NULL : first->file, "", first->line};
  uint64_t key = hash_spot(wr_hash_text(6, x->rule->id), &at);
  uint64_t *known = hash_map_place(&g->wasted, key, &added);
  if (!known || !wr_grow(&f->wasted, &f->wasted_capacity, f->wasted_count + 1, sizeof(*f->wasted)))
    return no_memory_for_figures(f);
  if (added) {
    *known = f->wasted_count;
    f->wasted[f->wasted_count++] = (wr_wasted){.rule = x->rule,
                                               .certainty = x->certainty,
                                               .function = wr_format("%s", at.function),
                                               .file = at.file ? wr_format("%s", at.file) : NULL};
  }
  wr_wasted *w = &f->wasted[*known];
  if (!w->function || (at.file && !w->file)) return no_memory_for_figures(f);
  if (x->certainty < w->certainty) w->certainty = x->certainty;
  w->cost_ns += x->cost_ns, w->saving_ns += x->saving_ns;
  w->saving_bytes += x->saving_bytes, w->count += x->count, w->findings++;
  return lines_add(&w->lines, at.file ? at.line : 0) ? WEIR_OK : no_memory_for_figures(f);
}

static void count_finding(wr_subject *x, const wr_finding *f)
{
  static const wr_metric metrics[] = {[WR_CERTAIN] = WR_METRIC_CERTAIN,
                                      [WR_LIKELY] = WR_METRIC_LIKELY,
                                      [WR_POSSIBLE] = WR_METRIC_POSSIBLE};
  add_value(x, metrics[f->certainty], 1);
  add_value(x, WR_METRIC_FINDINGS, 1);
}

/* A finding does not say the module of a place without a file: the site of that function, if
 * any. */
static const char *module_of(const gathering *g, const wr_finding_site *s)
{
  const uint64_t *at = s->file ? NULL : hash_map_get(&g->fileless, wr_hash_text(8, s->function));
  return at ? g->f->subject[*at].module : "";
}

/* Counts it for each function and file that it is in, once. */
static weir_status count_at_sites(gathering *g, const wr_finding *x)
{
  size_t seen[WR_FINDING_SITES], count = 0;
  for (size_t i = 0; i < x->sites; i++) {
    const wr_finding_site *s = &x->site[i];
    size_t before = 0;
    if (!s->count) continue;
    wr_subject *site = site_of(g, &(spot){s->function, s->file, module_of(g, s), s->line});
    if (!site) return no_memory_for_figures(g->f);
    size_t at = (size_t)(site - g->f->subject);
    while (before < count && seen[before] != at)
      before++;
    if (before < count) continue;
    seen[count++] = at;
    count_finding(site, x);
  }
  return WEIR_OK;
}

static weir_status gather_findings(gathering *g)
{
  wr_figures *f = g->f;
  weir_status s = WEIR_OK;
  for (size_t i = 0; !s && i < f->findings.count; i++) {
    const wr_finding *x = &f->findings.finding[i];
    count_finding(&f->subject[0], x);
    for (size_t k = 1; k < f->count && f->subject[k].of == WR_OF_DEVICE; k++)
      if (f->subject[k].device == x->device) count_finding(&f->subject[k], x);
    s = count_at_sites(g, x);
    if (!s) s = take_waste(g, x);
  }
  return s;
}

static weir_status load_whole(wr_figures *f, wr_model *m, const wr_db *db,
                              const wr_figures_settings *o)
{
  wr_findings_settings settings = {.rules = o->rules, .min = o->min};
  weir_status s = wr_whole_load(m, &f->findings, db, INT_MAX, o->findings ? &settings : NULL);
  const char *why = o->findings ? f->findings.unavailable : "they were not looked for";
  for (size_t i = 0; !why && i < f->findings.unjudged_count; i++)
    if (!strcmp(f->findings.unjudged[i].why, WR_NEEDS_ALL_CALLS)) why = left_out;
  f->judged = !why;
  for (int i = WR_METRIC_CERTAIN; i <= WR_METRIC_FINDINGS; i++)
    f->unknown[i] = why;
  return s;
}

/* ---- all ------------------------------------------------------------------------------------- */

static weir_status gather(wr_figures *f, const wr_model *m)
{
  gathering g = {.f = f, .m = m};
  f->path = wr_text(m->path, strlen(m->path), true);
  f->command = wr_format("%s", m->command ? m->command : "");
  f->finished = m->finished;
  if (!f->path || !f->command) return no_memory_for_figures(f);
  weir_status s = gather_run(&g);
  if (!s) s = gather_sites(&g);
  if (!s) s = gather_findings(&g);
  if (!s) s = gather_ranges(&g);
  for (size_t i = 0; i < f->count; i++)
    f->nameless += f->subject[i].module && *f->subject[i].module && !f->subject[i].known;
  for (size_t i = 0; i < f->count; i++)
    for (int l = 0; l < WR_LINES_LISTS; l++)
      order_lines(&f->subject[i].lines[l]);
  for (size_t i = 0; i < f->wasted_count; i++)
    order_lines(&f->wasted[i].lines);
  note_unknown(f, m);
  hash_map_free(&g.sites);
  hash_map_free(&g.fileless);
  hash_map_free(&g.wasted);
  return s;
}

weir_status wr_figures_load(wr_figures *f, const char *path, const wr_figures_settings *settings)
{
  wr_input in;
  wr_model m = {0};
  *f = (wr_figures){0};
  weir_status s = wr_input_open(&in, path);
  if (s) return s;
  in.db.symbols = settings->symbols;
  in.db.anew = settings->anew;
  s = load_whole(f, &m, &in.db, settings);
  wr_input_close(&in);
  if (!s) s = gather(f, &m);
  wr_model_free(&m);
  if (s) wr_figures_free(f);
  return s;
}

void wr_figures_free(wr_figures *f)
{
  for (size_t i = 0; i < f->count; i++) {
    wr_subject *x = &f->subject[i];
    free(x->name);
    free(x->domain);
    free(x->file);
    free(x->module);
    for (int l = 0; l < WR_LINES_LISTS; l++)
      free(x->lines[l].line);
  }
  for (size_t i = 0; i < f->wasted_count; i++) {
    free(f->wasted[i].function);
    free(f->wasted[i].file);
    free(f->wasted[i].lines.line);
  }
  free(f->subject);
  free(f->wasted);
  free(f->path);
  free(f->command);
  wr_findings_free(&f->findings);
  *f = (wr_figures){0};
}

static bool is_end_of_path(const char *path, const char *end)
{
  size_t whole = strlen(path), n = strlen(end);
  if (!n || n > whole || strcmp(path + whole - n, end) != 0) return false;
  return n == whole || path[whole - n - 1] == '/';
}

bool wr_subject_is(const wr_subject *x, const char *name)
{
  size_t n = strlen(name);
  if (x->of == WR_OF_RANGE) {
    size_t domain = strlen(x->domain);
    return !strcmp(x->name, name) || (domain && n > domain && !strncmp(name, x->domain, domain) &&
                                      name[domain] == '/' && !strcmp(x->name, name + domain + 1));
  }
  if (!strncmp(x->name, name, n) && (!x->name[n] || x->name[n] == '(')) return true;
  return x->file && is_end_of_path(x->file, name);
}
