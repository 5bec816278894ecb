/* figures.c: see figures.h. */
#include "reports/diff/figures.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/map.h"
#include "core/trace/event.h"
#include "reports/model/model.h"
#include "reports/model/open.h"

typedef struct gathering {
  wr_figures *f;
  const wr_model *m;
  hash_map sites;    /* hash of function and file -> index of its subject */
  hash_map fileless; /* hash of a function without a file -> index of its subject */
  hash_map wasted;   /* hash of rule, function and file -> index */
} gathering;

static weir_status no_memory(const wr_figures *f)
{
  return weir_fail(WEIR_ENOMEM, "reporting on %s: out of host memory", f->path ? f->path : "it");
}

const char *wr_file_name(const char *path)
{
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

/* They are put in order once all are there: order_lines(). */
static bool lines_add(wr_lines *l, int line)
{
  if (line <= 0 || (l->count && l->line[l->count - 1] == line)) return true;
  if (!wr_grow(&l->line, &l->capacity, l->count + 1, sizeof(*l->line))) return false;
  l->line[l->count++] = line;
  return true;
}

static int by_number(const void *left, const void *right)
{
  int a = *(const int *)left, b = *(const int *)right;
  return (a > b) - (a < b);
}

/* Ascending, each once. */
static void order_lines(wr_lines *l)
{
  size_t kept = 0;
  if (l->count > 1) qsort(l->line, l->count, sizeof(*l->line), by_number);
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

static uint64_t hash_string(uint64_t hash, const char *text)
{
  for (; text && *text; text++)
    hash = hash_mix(hash, (unsigned char)*text);
  return hash_mix(hash, text ? 0x100 : 0x101);
}

/* A place in the program as the model and the findings name it. */
typedef struct spot {
  const char *function, *file, *module;
  int line;
} spot;

static uint64_t hash_spot(uint64_t hash, const spot *at)
{
  hash = hash_string(hash_string(hash, at->function), at->file);
  return at->file ? hash : hash_string(hash, at->module);
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
    if (!at->file && hash_map_put(&g->fileless, hash_string(8, at->function), *known)) return NULL;
  }
  return &g->f->subject[*known];
}

/* ---- sites ----------------------------------------------------------------------------------- */

static void add_value(wr_subject *x, wr_metric m, uint64_t n)
{
  x->value[m] += n;
}

static void put_alloc(wr_subject *x, const wr_site *s)
{
  add_value(x, WR_METRIC_ALLOCS, s->calls);
  add_value(x, WR_METRIC_ALLOC_BYTES, s->bytes);
}

static void put_copy(wr_subject *x, const wr_site *s)
{
  static const int counts[] = {[WEIR_COPY_HTOD] = WR_METRIC_H2D,
                               [WEIR_COPY_DTOH] = WR_METRIC_D2H,
                               [WEIR_COPY_DTOD] = WR_METRIC_D2D,
                               [WEIR_COPY_PTOP] = WR_METRIC_P2P,
                               [WEIR_COPY_HTOH] = WR_METRIC_H2H};
  int direction = s->direction;
  bool up = direction == WEIR_COPY_HTOD, down = direction == WEIR_COPY_DTOH;
  add_value(x, WR_METRIC_COPIES, s->calls);
  add_value(x, WR_METRIC_COPY_BYTES, s->bytes);
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

static void put_wait(wr_subject *x, const wr_site *s)
{
  add_value(x, WR_METRIC_WAITS, s->calls);
  add_value(x, WR_METRIC_WAIT_TIME, s->ns);
}

static void put_redundant(wr_subject *x, const wr_site *s)
{
  add_value(x, WR_METRIC_REDUNDANT, s->calls);
  add_value(x, WR_METRIC_REDUNDANT_TIME, s->ns);
}

static void put_wider(wr_subject *x, const wr_site *s)
{
  add_value(x, WR_METRIC_WIDER, s->calls);
  add_value(x, WR_METRIC_WIDER_TIME, s->ns);
}

static void put_leak(wr_subject *x, const wr_site *s)
{
  add_value(x, WR_METRIC_LEAKS, s->calls);
  add_value(x, WR_METRIC_LEAK_BYTES, s->bytes);
}

static void put_owner(wr_subject *x, const wr_site *s)
{
  add_value(x, WR_METRIC_PEAK, s->bytes);
}

static weir_status take_sites(gathering *g, const wr_sites *list, wr_lines_of lines,
                              void (*add)(wr_subject *x, const wr_site *s))
{
  for (size_t i = 0; i < list->count; i++) {
    const wr_site *s = &list->site[i];
    wr_subject *x = site_of(g, &(spot){s->function, s->file, s->module, s->line});
    if (!x || !lines_add(&x->lines[lines], s->file ? s->line : 0)) return no_memory(g->f);
    x->known = s->known;
    add(x, s);
  }
  return WEIR_OK;
}

static weir_status gather_sites(gathering *g)
{
  const wr_model *m = g->m;
  weir_status s = take_sites(g, &m->alloc, WR_LINES_ALLOCS, put_alloc);
  if (!s) s = take_sites(g, &m->copy, WR_LINES_COPIES, put_copy);
  if (!s) s = take_sites(g, &m->sync, WR_LINES_WAITS, put_wait);
  if (!s) s = take_sites(g, &m->redundant, WR_LINES_WAITS, put_redundant);
  if (!s) s = take_sites(g, &m->wider, WR_LINES_WAITS, put_wider);
  if (!s) s = take_sites(g, &m->leak, WR_LINES_LEAKS, put_leak);
  for (int i = 0; !s && i < WR_HOST; i++)
    if (m->devices[i].seen) s = take_sites(g, &m->devices[i].owners, WR_LINES_PEAK, put_owner);
  return s;
}

/* ---- the run, devices, ranges ---------------------------------------------------------------- */

static void put_totals(wr_subject *x, const wr_totals *t)
{
  add_value(x, WR_METRIC_PEAK, t->peak_bytes);
  add_value(x, WR_METRIC_PINNED_PEAK, t->pinned_peak_bytes);
  add_value(x, WR_METRIC_LEAK_BYTES, t->live_at_exit_bytes);
  add_value(x, WR_METRIC_LEAKS, t->live_at_exit_blocks);
  add_value(x, WR_METRIC_PINNED_LEAK_BYTES, t->pinned_live_at_exit_bytes);
  add_value(x, WR_METRIC_ALLOCS, t->alloc_calls);
  add_value(x, WR_METRIC_ALLOC_BYTES, t->alloc_bytes);
  add_value(x, WR_METRIC_COPIES,
            t->h2d_calls + t->d2h_calls + t->d2d_calls + t->p2p_calls + t->h2h_calls +
                t->other_copy_calls);
  add_value(x, WR_METRIC_COPY_BYTES,
            t->h2d_bytes + t->d2h_bytes + t->d2d_bytes + t->p2p_bytes + t->h2h_bytes +
                t->other_copy_bytes);
  add_value(x, WR_METRIC_H2D, t->h2d_calls), add_value(x, WR_METRIC_H2D_BYTES, t->h2d_bytes);
  add_value(x, WR_METRIC_D2H, t->d2h_calls), add_value(x, WR_METRIC_D2H_BYTES, t->d2h_bytes);
  add_value(x, WR_METRIC_D2D, t->d2d_calls), add_value(x, WR_METRIC_D2D_BYTES, t->d2d_bytes);
  add_value(x, WR_METRIC_P2P, t->p2p_calls), add_value(x, WR_METRIC_P2P_BYTES, t->p2p_bytes);
  add_value(x, WR_METRIC_H2H, t->h2h_calls), add_value(x, WR_METRIC_H2H_BYTES, t->h2h_bytes);
  add_value(x, WR_METRIC_MEMSETS, t->memset_calls);
  add_value(x, WR_METRIC_MEMSET_BYTES, t->memset_bytes);
  add_value(x, WR_METRIC_WAITS, t->sync_explicit_calls + t->sync_implicit_calls);
  add_value(x, WR_METRIC_WAIT_TIME, t->sync_explicit_ns + t->sync_implicit_ns);
  add_value(x, WR_METRIC_EXPLICIT, t->sync_explicit_calls);
  add_value(x, WR_METRIC_EXPLICIT_TIME, t->sync_explicit_ns);
  add_value(x, WR_METRIC_IMPLICIT, t->sync_implicit_calls);
  add_value(x, WR_METRIC_IMPLICIT_TIME, t->sync_implicit_ns);
  add_value(x, WR_METRIC_LAUNCHES, t->launches);
  add_value(x, WR_METRIC_ERRORS, t->failed_calls);
  add_value(x, WR_METRIC_DROPPED, t->dropped);
}

static void put_rest_of_run(wr_subject *x, const wr_model *m)
{
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

static void put_device(wr_subject *x, const wr_device_totals *t)
{
  add_value(x, WR_METRIC_PEAK, t->peak_bytes);
  add_value(x, WR_METRIC_LEAK_BYTES, t->live_at_exit_bytes);
  add_value(x, WR_METRIC_ALLOCS, t->alloc_calls);
  add_value(x, WR_METRIC_ALLOC_BYTES, t->alloc_bytes);
  add_value(x, WR_METRIC_H2D, t->h2d_calls), add_value(x, WR_METRIC_H2D_BYTES, t->h2d_bytes);
  add_value(x, WR_METRIC_D2H, t->d2h_calls), add_value(x, WR_METRIC_D2H_BYTES, t->d2h_bytes);
  add_value(x, WR_METRIC_D2D, t->d2d_calls), add_value(x, WR_METRIC_D2D_BYTES, t->d2d_bytes);
  add_value(x, WR_METRIC_MEMSETS, t->memset_calls);
  add_value(x, WR_METRIC_MEMSET_BYTES, t->memset_bytes);
  add_value(x, WR_METRIC_EXPLICIT, t->sync_explicit_calls);
  add_value(x, WR_METRIC_EXPLICIT_TIME, t->sync_explicit_ns);
  add_value(x, WR_METRIC_LAUNCHES, t->launches);
}

static void put_range(wr_subject *x, const wr_range_sum *r)
{
  add_value(x, WR_METRIC_PEAK, r->peak_bytes);
  add_value(x, WR_METRIC_ALLOCS, r->allocs);
  add_value(x, WR_METRIC_ALLOC_BYTES, r->alloc_bytes);
  add_value(x, WR_METRIC_COPIES, r->copies);
  add_value(x, WR_METRIC_COPY_BYTES, r->copy_bytes);
  add_value(x, WR_METRIC_WAITS, r->waits);
  add_value(x, WR_METRIC_WAIT_TIME, r->wait_ns);
  add_value(x, WR_METRIC_LAUNCHES, r->launches);
  add_value(x, WR_METRIC_DURATION, r->ns);
}

static weir_status gather_run(gathering *g)
{
  wr_figures *f = g->f;
  wr_subject *x = add_subject(f, WR_OF_RUN);
  if (!x || !(x->name = wr_format("%s", ""))) return no_memory(f);
  put_totals(x, &g->m->total);
  put_rest_of_run(x, g->m);
  for (int i = 0; i < WR_HOST; i++) {
    if (!g->m->devices[i].seen) continue;
    x = add_subject(f, WR_OF_DEVICE);
    if (!x || !(x->name = wr_format("%s", ""))) return no_memory(f);
    x->device = i;
    put_device(x, &g->m->devices[i].total);
  }
  return WEIR_OK;
}

static weir_status gather_ranges(gathering *g)
{
  for (size_t i = 0; i < g->m->ranges.count; i++) {
    const wr_range_sum *r = &g->m->ranges.sum[i];
    wr_subject *x = add_subject(g->f, WR_OF_RANGE);
    if (!x) return no_memory(g->f);
    x->name = wr_format("%s", r->text);
    x->domain = wr_format("%s", r->domain);
    if (!x->name || !x->domain) return no_memory(g->f);
    put_range(x, r);
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
  uint64_t key = hash_spot(hash_string(6, x->rule->id), &at);
  uint64_t *known = hash_map_place(&g->wasted, key, &added);
  if (!known || !wr_grow(&f->wasted, &f->wasted_capacity, f->wasted_count + 1, sizeof(*f->wasted)))
    return no_memory(f);
  if (added) {
    *known = f->wasted_count;
    f->wasted[f->wasted_count++] = (wr_wasted){.rule = x->rule,
                                               .certainty = x->certainty,
                                               .function = wr_format("%s", at.function),
                                               .file = at.file ? wr_format("%s", at.file) : NULL};
  }
  wr_wasted *w = &f->wasted[*known];
  if (!w->function || (at.file && !w->file)) return no_memory(f);
  if (x->certainty < w->certainty) w->certainty = x->certainty;
  w->cost_ns += x->cost_ns, w->saving_ns += x->saving_ns;
  w->saving_bytes += x->saving_bytes, w->count += x->count, w->findings++;
  return lines_add(&w->lines, at.file ? at.line : 0) ? WEIR_OK : no_memory(f);
}

static void count_finding(wr_subject *x, const wr_finding *f)
{
  static const wr_metric metrics[] = {[WR_CERTAIN] = WR_METRIC_CERTAIN,
                                      [WR_LIKELY] = WR_METRIC_LIKELY,
                                      [WR_POSSIBLE] = WR_METRIC_POSSIBLE};
  add_value(x, metrics[f->certainty], 1);
  add_value(x, WR_METRIC_FINDINGS, 1);
}

/* A finding does not say the module of a place without a file: the site of that function, if any. */
static const char *module_of(const gathering *g, const wr_finding_site *s)
{
  const uint64_t *at = s->file ? NULL : hash_map_get(&g->fileless, hash_string(8, s->function));
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
    if (!site) return no_memory(g->f);
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

static weir_status load_findings(wr_figures *f, const wr_db *db, const wr_figures_settings *o)
{
  wr_findings_settings settings = {.rules = o->rules, .min = o->min};
  const char *why = o->findings ? NULL : "they were not looked for";
  if (o->findings) {
    weir_status s = wr_findings_load(&f->findings, db, &settings);
    if (s) return s;
    why = f->findings.unavailable;
  }
  f->judged = !why;
  for (int i = WR_METRIC_CERTAIN; i <= WR_METRIC_FINDINGS; i++)
    f->unknown[i] = why;
  return WEIR_OK;
}

/* ---- all ------------------------------------------------------------------------------------- */

static weir_status gather(wr_figures *f, const wr_model *m)
{
  gathering g = {.f = f, .m = m};
  f->path = wr_text(m->path, strlen(m->path), true);
  f->command = wr_format("%s", m->command ? m->command : "");
  f->finished = m->finished;
  if (!f->path || !f->command) return no_memory(f);
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
  s = wr_model_load(&m, &in.db, INT_MAX);
  if (!s) s = load_findings(f, &in.db, settings);
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
