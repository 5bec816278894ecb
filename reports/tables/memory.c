/* memory.c: weir report memory: what was live when, the peak and who held it, lifetimes, what
 * caches and pools kept, and what the devices say is in use. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "reports/model/model.h"
#include "reports/model/sites.h"
#include "reports/base/units.h"
#include "reports/tables/build.h"
#include "reports/tables/memory_sweep.h"
#include "reports/whole/whole.h"

static const char *class_name(int class)
{
  return class == WR_REGISTERED ? "registered" : wr_mem_name(class);
}

#define TABLE(tables, name, title, columns)                                                        \
  wr_tables_add(tables, name, title, columns, sizeof(columns) / sizeof *(columns))

static void put_held(wr_named_table *t, const wr_held *h)
{
  wr_table_put(t, h->blocks);
  wr_table_put(t, h->bytes);
  wr_table_put(t, h->peak);
  wr_table_put(t, h->peak_at);
  wr_table_put(t, h->freed);
  wr_table_put(t, h->end_blocks);
  wr_table_put(t, h->end_bytes);
}

#define HELD_COLUMNS                                                                               \
  {"blocks", "blocks", WR_COLUMN_COUNT, 1}, {"bytes", "allocated", WR_COLUMN_BYTES, 0},            \
      {"peak_bytes", "peak", WR_COLUMN_BYTES, 0}, {"peak_at_ns", "at", WR_COLUMN_MOMENT, 2},       \
      {"freed_blocks", "blocks freed", WR_COLUMN_COUNT, 3},                                        \
      {"end_blocks", "blocks at the end", WR_COLUMN_COUNT, 1},                                     \
  {                                                                                                \
    "end_bytes", "live at the end", WR_COLUMN_BYTES, 0                                             \
  }

static bool held_any(const wr_held *h)
{
  return h->blocks || h->peak || h->end_blocks;
}

static void add_peaks(const wr_build *b, const wr_memory_sweep *s)
{
  static const wr_column columns[] = {{"device", "device", WR_COLUMN_TEXT, 0}, HELD_COLUMNS};
  wr_named_table *t = TABLE(b->t, "peaks", "Memory of devices", columns);
  wr_table_row(t);
  wr_table_put_text(t, "all devices");
  put_held(t, &s->all);
  for (int d = 0; d <= WR_HOST; d++) {
    if (!held_any(&s->device[d])) continue;
    wr_table_row(t);
    if (d == WR_HOST)
      wr_table_put_text(t, "(no device)");
    else
      wr_put_device(t, d);
    put_held(t, &s->device[d]);
  }
}

static void add_kinds(const wr_build *b, const wr_memory_sweep *s)
{
  static const wr_column columns[] = {{"device", "device", WR_COLUMN_TEXT, 0},
                                      {"memory", "memory", WR_COLUMN_TEXT, 0},
                                      HELD_COLUMNS};
  wr_named_table *t = TABLE(b->t, "memory", "Memory by device and kind", columns);
  for (int d = 0; d <= WR_HOST; d++) {
    for (int k = 0; k < WR_MEMORY_CLASSES; k++) {
      const wr_held *h = &s->kind[(size_t)d * WR_MEMORY_CLASSES + (size_t)k];
      if (!held_any(h)) continue;
      wr_table_row(t);
      wr_put_device(t, d);
      wr_table_put_text(t, class_name(k));
      put_held(t, h);
    }
  }
}

/* The most of each slice, as a line. */
static void draw_slices(wr_named_table *t, const wr_memory_sweep *s)
{
  static const char *const bars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  char line[WR_SLICES * 4 + 1] = "";
  uint64_t most = 0;
  size_t used = 0;
  for (int i = 0; i < WR_SLICES; i++)
    if (s->slice[i].most > most) most = s->slice[i].most;
  for (int i = 0; i < WR_SLICES && most; i++) {
    double part = (double)s->slice[i].most / (double)most;
    const char *bar = s->slice[i].most ? bars[part >= 1 ? 7 : (int)(part * 8)] : " ";
    used += (size_t)snprintf(line + used, sizeof(line) - used, "%s", bar);
  }
  wr_table_aside(t, "devices: %s", line);
}

static void add_slices(const wr_build *b, const wr_memory_sweep *s)
{
  static const wr_column columns[] = {{"until_ns", "until", WR_COLUMN_MOMENT, 0},
                                      {"most_bytes", "most on devices", WR_COLUMN_BYTES, 0},
                                      {"device_bytes", "devices at its end", WR_COLUMN_BYTES, 0},
                                      {"change_bytes", "change", WR_COLUMN_CHANGE, 1},
                                      {"allocated_blocks", "blocks allocated", WR_COLUMN_COUNT, 3},
                                      {"allocated_bytes", "allocated", WR_COLUMN_BYTES, 2},
                                      {"managed_bytes", "of it managed", WR_COLUMN_BYTES, 5},
                                      {"pinned_bytes", "page-locked", WR_COLUMN_BYTES, 4},
                                      {"registered_bytes", "registered", WR_COLUMN_BYTES, 6},
                                      {"imported_bytes", "imported", WR_COLUMN_BYTES, 7}};
  wr_named_table *t = TABLE(b->t, "live", "Live memory over time", columns);
  uint64_t before = s->began;
  for (int i = 0; i < WR_SLICES; i++) {
    const wr_slice *x = &s->slice[i];
    wr_table_row(t);
    wr_table_put(t, x->to > 0 ? (uint64_t)x->to : 0);
    wr_table_put(t, x->most);
    wr_table_put(t, x->device);
    wr_table_put(t, x->device - before);
    wr_table_put(t, x->allocated_blocks);
    wr_table_put(t, x->allocated_bytes);
    wr_table_put(t, x->managed);
    wr_table_put(t, x->pinned);
    wr_table_put(t, x->registered);
    wr_table_put(t, x->imported);
    before = x->device;
  }
  draw_slices(t, s);
}

static void add_lifetimes(const wr_build *b, const wr_memory_sweep *s)
{
  static const wr_column columns[] = {{"lived", "lived", WR_COLUMN_TEXT, 0},
                                      {"blocks", "blocks", WR_COLUMN_COUNT, 0},
                                      {"bytes", "bytes", WR_COLUMN_BYTES, 0},
                                      {"share_of_blocks", "of all blocks", WR_COLUMN_SHARE, 1}};
  wr_named_table *t = TABLE(b->t, "lifetimes", "Lifetimes of device memory, in host time", columns);
  uint64_t limit = 1000;
  char words[96];
  for (int i = 0; i < WR_LIFETIME_CLASSES; i++, limit *= 10) {
    if (!s->lived_blocks[i]) continue;
    if (i == WR_IN_A_LAUNCH)
      (void)snprintf(words, sizeof(words), "within one launch of a graph");
    else if (i == WR_NEVER_FREED)
      (void)snprintf(words, sizeof(words), "never freed");
    else if (i == WR_LIFETIMES - 1)
      (void)snprintf(words, sizeof(words), "%s and more", wr_duration(limit / 10).text);
    else
      (void)snprintf(words, sizeof(words), "below %s", wr_duration(limit).text);
    wr_table_row(t);
    wr_table_put_text(t, words);
    wr_table_put(t, s->lived_blocks[i]);
    wr_table_put(t, s->lived_bytes[i]);
    wr_table_put_share(t, s->lived_blocks[i], s->all.blocks);
  }
}

/* ---- by group -------------------------------------------------------------------------------- */

typedef struct held_row {
  const wr_group *group;
  const wr_held *held;
} held_row;

static int by_peak(const void *left, const void *right)
{
  const wr_held *a = ((const held_row *)left)->held, *b = ((const held_row *)right)->held;
  if (a->at_peak != b->at_peak) return a->at_peak < b->at_peak ? 1 : -1;
  if (a->bytes != b->bytes) return a->bytes < b->bytes ? 1 : -1;
  return a < b ? -1 : a > b;
}

static void put_group_held(wr_named_table *t, const wr_groups *g, const wr_group *group,
                           const wr_held *h, const wr_held *all, bool device)
{
  wr_table_row(t);
  if (device) {
    wr_table_put(t, h->at_peak);
    wr_table_put(t, h->blocks_at_peak);
    wr_table_put_share(t, h->at_peak, all->peak);
  }
  wr_table_put(t, h->bytes);
  wr_table_put(t, h->blocks);
  if (group)
    wr_table_put(t, h->peak);
  else
    wr_table_put_none(t); /* peaks of different moments have no sum */
  wr_table_put(t, h->end_bytes);
  wr_table_put(t, h->end_blocks);
  if (device && group) wr_table_put(t, h->grew);
  if (device && !group) wr_table_put_none(t);
  wr_group_put(g, t, group);
}

static void add_held(wr_held *to, const wr_held *from)
{
  to->at_peak += from->at_peak, to->blocks_at_peak += from->blocks_at_peak;
  to->bytes += from->bytes, to->blocks += from->blocks;
  to->end_bytes += from->end_bytes, to->end_blocks += from->end_blocks;
}

static weir_status put_groups(const wr_build *b, wr_named_table *t, const wr_memory_sweep *s,
                              const wr_held *held, bool device)
{
  held_row *rows = calloc(s->group_count + 1, sizeof(*rows));
  wr_held rest = {0};
  size_t count = 0, shown = 0;
  if (!rows) return wr_db_out_of_memory(b->db);
  for (size_t i = 0; i < s->group_count; i++)
    if (held_any(&held[i])) rows[count++] = (held_row){&s->groups.group[i], &held[i]};
  qsort(rows, count, sizeof(*rows), by_peak);
  for (; shown < count && (!b->top || shown < (size_t)b->top); shown++)
    put_group_held(t, &s->groups, rows[shown].group, rows[shown].held, &s->all, device);
  for (size_t i = shown; i < count; i++)
    add_held(&rest, rows[i].held);
  if (shown < count) {
    put_group_held(t, &s->groups, NULL, &rest, &s->all, device);
    wr_table_aside(t, "the first %zu of %zu", shown, count);
  }
  free(rows);
  return WEIR_OK;
}

static weir_status add_memory_groups(const wr_build *b, const wr_memory_sweep *s)
{
  wr_column columns[12] = {{"at_peak_bytes", "at the peak", WR_COLUMN_BYTES, 0},
                           {"at_peak_blocks", "blocks at the peak", WR_COLUMN_COUNT, 4},
                           {"share_of_peak", "of the peak", WR_COLUMN_SHARE, 2},
                           {"bytes", "allocated", WR_COLUMN_BYTES, 0},
                           {"blocks", "blocks", WR_COLUMN_COUNT, 1},
                           {"own_peak_bytes", "its own peak", WR_COLUMN_BYTES, 3},
                           {"end_bytes", "live at the end", WR_COLUMN_BYTES, 1},
                           {"end_blocks", "blocks at the end", WR_COLUMN_COUNT, 5},
                           {"grew_in_slices", "grew in twentieths", WR_COLUMN_COUNT, 6}};
  char name[64], title[64];
  size_t more = wr_group_columns(&s->groups, columns + 9);
  (void)snprintf(name, sizeof(name), "memory_by_%s", wr_by_name(s->groups.by));
  (void)snprintf(title, sizeof(title), "Memory of devices by %s", wr_by_name(s->groups.by));
  weir_status st =
      put_groups(b, wr_tables_add(b->t, name, title, columns, 9 + more), s, s->group, true);
  bool host = false;
  for (size_t i = 0; i < s->group_count; i++)
    host |= held_any(&s->host_group[i]);
  if (st || !host) return st;
  memmove(columns, columns + 3, 5 * sizeof(*columns));
  memmove(columns + 5, columns + 9, more * sizeof(*columns));
  (void)snprintf(name, sizeof(name), "host_memory_by_%s", wr_by_name(s->groups.by));
  (void)snprintf(title, sizeof(title), "Page-locked and registered memory by %s",
                 wr_by_name(s->groups.by));
  return put_groups(b, wr_tables_add(b->t, name, title, columns, 5 + more), s, s->host_group,
                    false);
}

/* ---- of the whole run ------------------------------------------------------------------------ */

static void add_caches(const wr_build *b, const wr_cache *c)
{
  static const wr_column columns[] = {
      {"memory", "memory", WR_COLUMN_TEXT, 0},
      {"hits", "hits", WR_COLUMN_COUNT, 0},
      {"misses", "misses", WR_COLUMN_COUNT, 0},
      {"cached_peak_bytes", "most cached", WR_COLUMN_BYTES, 0},
      {"cached_peak_at_ns", "at", WR_COLUMN_MOMENT, 2},
      {"cached_end_bytes", "cached at the end", WR_COLUMN_BYTES, 1},
      {"hit_bytes", "asked for in hits", WR_COLUMN_BYTES, WR_IN_JSON},
      {"miss_bytes", "asked for in misses", WR_COLUMN_BYTES, WR_IN_JSON}};
  static const char *const names[] = {"device", "pinned"};
  if (!c->rerouted && b->o->format != WEIR_REPORT_JSON) return;
  wr_named_table *t = wr_table_of_run(TABLE(b->t, "caches", "What Weir's caches kept", columns));
  for (int i = 0; i < 2; i++) {
    const wr_cache_side *x = &c->side[i];
    wr_table_row(t);
    wr_table_put_text(t, names[i]);
    wr_table_put(t, x->hits);
    wr_table_put(t, x->misses);
    wr_table_put(t, x->cached_peak_bytes);
    wr_table_put(t, x->cached_peak_at_ns);
    wr_table_put(t, x->cached_end_bytes);
    WR_PUT(t, x->hit_bytes, x->miss_bytes);
  }
  wr_table_aside(t, "live and cached at one moment: %s", wr_bytes(c->held_peak_bytes).text);
}

static void add_pools(const wr_build *b, const wr_cache *c)
{
  static const wr_column columns[] = {
      {"pool", "pool of", WR_COLUMN_TEXT, 0},
      {"reserved_peak_bytes", "most reserved", WR_COLUMN_BYTES, 0},
      {"used_peak_bytes", "most in use", WR_COLUMN_BYTES, 0},
      {"reserved_bytes", "reserved last", WR_COLUMN_BYTES, 1},
      {"used_bytes", "in use last", WR_COLUMN_BYTES, 1},
      {"keeps_idle_most_bytes", "keeps idle at most", WR_COLUMN_BYTES, 2},
      {"pid", "process", WR_COLUMN_ID, WR_IN_JSON},
      {"handle", "handle", WR_COLUMN_ID, WR_IN_JSON},
      {"device", "device", WR_COLUMN_TEXT, WR_IN_JSON},
      {"default", "from the start", WR_COLUMN_TRUTH, WR_IN_JSON},
      {"destroyed", "destroyed", WR_COLUMN_TRUTH, WR_IN_JSON},
      {"release_threshold_bytes", "release threshold", WR_COLUMN_BYTES, WR_IN_JSON},
      {"samples", "times", WR_COLUMN_COUNT, WR_IN_JSON},
      {"first_ns", "first", WR_COLUMN_MOMENT, WR_IN_JSON},
      {"last_ns", "last", WR_COLUMN_MOMENT, WR_IN_JSON}};
  if (!c->pool_count) return;
  wr_named_table *t = wr_table_of_run(TABLE(b->t, "pools", "The driver's memory pools", columns));
  for (size_t i = 0; i < c->pool_count; i++) {
    const wr_pool *x = &c->pools[i];
    char name[96], device[32];
    (void)snprintf(name, sizeof(name), "%s, process %lld%s",
                   x->device < 0 ? "(device not known)" : wr_device_words(x->device, device),
                   (long long)x->pid, x->from_start ? "" : ", made by the program");
    wr_table_row(t);
    wr_table_put_text(t, name);
    wr_table_put(t, x->reserved_peak);
    wr_table_put(t, x->used_peak);
    wr_table_put(t, x->reserved);
    wr_table_put(t, x->used);
    wr_table_put(t, wr_pool_keeps(x));
    WR_PUT(t, (uint64_t)x->pid, x->handle);
    if (x->device < 0)
      wr_table_put_none(t);
    else
      wr_put_device(t, x->device);
    WR_PUT(t, x->from_start, x->ended);
    wr_table_put_if(t, x->threshold <= INT64_MAX, x->threshold);
    WR_PUT(t, x->samples, (uint64_t)x->first_ns, (uint64_t)x->last_ns);
  }
}

void wr_build_caches(const wr_build *b, const wr_cache *c)
{
  add_caches(b, c);
  add_pools(b, c);
}

static void put_owners(wr_named_table *t, const wr_owners *owners)
{
  static const wr_column columns[] = {{"module", "module", WR_COLUMN_TEXT, 0},
                                      {"bytes", "bytes", WR_COLUMN_BYTES, 0}};
  wr_named_table *rows = wr_table_put_rows(t, columns, sizeof columns / sizeof *columns);
  for (size_t i = 0; i < owners->count; i++) {
    wr_table_row(rows);
    wr_table_put_text(rows, owners->owner[i].module);
    wr_table_put(rows, owners->owner[i].bytes);
  }
}

static void put_moment(wr_named_table *t, int device, int sayer, const wr_in_use *u,
                       const wr_moment *m)
{
  wr_table_row(t);
  wr_put_device(t, device);
  wr_table_put_text(t, sayer == WR_BY_NVML ? "NVML" : "driver");
  wr_table_put(t, m->at > 0 ? (uint64_t)m->at : 0);
  wr_table_put(t, m->used);
  wr_table_put(t, m->live);
  wr_table_put(t, m->cached);
  wr_table_put(t, m->pools);
  wr_table_put(t, m->engine);
  wr_table_put(t, m->graphs);
  wr_table_put(t, m->code);
  wr_table_put(t, m->contexts);
  wr_table_put(t, u->before);
  wr_table_put(t, (uint64_t)wr_in_use_unexplained(u, m));
  wr_table_put(t, m->managed);
  wr_table_put(t, (uint64_t)m->others);
  put_owners(t, &m->of_live);
  put_owners(t, &m->of_code);
}

/* What of it is known beside the moments. */
static void put_usage(wr_named_table *t, int device, int sayer, const wr_in_use *u)
{
  wr_table_row(t);
  wr_put_device(t, device);
  wr_table_put_text(t, sayer == WR_BY_NVML ? "NVML" : "driver");
  WR_PUT(t, u->samples, u->total, u->before);
  wr_table_put_if(t, u->has_ahead, u->ahead);
  wr_table_put_if(t, u->after >= 0, (uint64_t)u->after);
}

static void add_usage(const wr_build *b, const wr_model *m)
{
  static const wr_column columns[] = {{"device", "device", WR_COLUMN_TEXT, 0},
                                      {"by", "says", WR_COLUMN_TEXT, 0},
                                      {"samples", "times", WR_COLUMN_COUNT, 0},
                                      {"total_bytes", "device's", WR_COLUMN_BYTES, 0},
                                      {"before_bytes", "before", WR_COLUMN_BYTES, 0},
                                      {"ahead_bytes", "ahead", WR_COLUMN_BYTES, 0},
                                      {"after_bytes", "after", WR_COLUMN_BYTES, 0}};
  wr_named_table *t = wr_table_of_run(TABLE(b->t, "usage", "What devices were asked", columns));
  wr_table_look(t, WR_DETAIL);
  for (int d = 0; d < WR_HOST; d++)
    for (int k = 0; k < WR_SAYERS; k++)
      if (m->devices[d].in_use[k].samples) put_usage(t, d, k, &m->devices[d].in_use[k]);
}

static void add_in_use(const wr_build *b, const wr_model *m)
{
  static const wr_column columns[] = {
      {"device", "device", WR_COLUMN_TEXT, 0},
      {"by", "says", WR_COLUMN_TEXT, 3},
      {"at_ns", "at", WR_COLUMN_MOMENT, 0},
      {"used_bytes", "in use", WR_COLUMN_BYTES, 0},
      {"live_bytes", "live blocks", WR_COLUMN_BYTES, 0},
      {"cached_bytes", "cached", WR_COLUMN_BYTES, 4},
      {"pools_idle_bytes", "idle in pools", WR_COLUMN_BYTES, 5},
      {"weir_idle_bytes", "idle in libweir", WR_COLUMN_BYTES, 7},
      {"graphs_idle_bytes", "idle for graphs", WR_COLUMN_BYTES, 7},
      {"modules_bytes", "modules", WR_COLUMN_BYTES, 3},
      {"contexts_bytes", "contexts", WR_COLUMN_BYTES, 3},
      {"before_bytes", "before", WR_COLUMN_BYTES, 1},
      {"unexplained_bytes", "unexplained", WR_COLUMN_CHANGE, 0},
      {"managed_bytes", "managed, apart", WR_COLUMN_BYTES, 6},
      {"others_more_bytes", "others' more", WR_COLUMN_BALANCE, WR_IN_JSON},
      {"owners", "of live blocks", WR_COLUMN_ROWS, WR_IN_JSON},
      {"modules", "of modules", WR_COLUMN_ROWS, WR_IN_JSON}};
  wr_named_table *t = NULL;
  for (int d = 0; d < WR_HOST; d++) {
    for (int k = 0; k < WR_SAYERS; k++) {
      const wr_in_use *u = &m->devices[d].in_use[k];
      for (size_t i = 0; i < u->moments; i++) {
        if (!t) t = wr_table_of_run(TABLE(b->t, "in_use", "What devices say is in use", columns));
        put_moment(t, d, k, u, &u->moment[i]);
      }
    }
  }
}

static void put_tensors_place(wr_named_table *t, const wr_tensor_place *place)
{
  if (place->device < 0 && place->pinned)
    wr_table_put_text(t, "page-locked");
  else
    wr_put_device(t, place->device);
}

static void put_tensors(wr_named_table *t, const wr_tensor_place *place, const wr_tensor_row *x,
                        bool module)
{
  wr_table_row(t);
  wr_table_put(t, x->bytes);
  wr_table_put(t, x->tensors);
  put_tensors_place(t, place);
  wr_table_put_text(t, x->module);
  if (module) return;
  wr_table_put_text(t, x->name);
  wr_table_put_text(t, x->dtype);
  wr_table_put_text(t, x->shape);
}

static void add_tensors(const wr_build *b, const wr_tensors *x)
{
  static const wr_column columns[] = {
      {"bytes", "bytes", WR_COLUMN_BYTES, 0}, {"tensors", "tensors", WR_COLUMN_COUNT, 0},
      {"where", "where", WR_COLUMN_TEXT, 1},  {"module", "module", WR_COLUMN_TEXT, 0},
      {"name", "name", WR_COLUMN_TEXT, 0},    {"dtype", "dtype", WR_COLUMN_TEXT, 2},
      {"shape", "shape", WR_COLUMN_TEXT, 2}};
  if (!x->count) return;
  wr_named_table *t = wr_table_of_run(
      wr_tables_add(b->t, "tensor_modules", "Tensors at each place's peak, by module", columns, 4));
  for (size_t i = 0; i < x->count; i++)
    for (size_t k = 0; k < x->place[i].module_count; k++)
      put_tensors(t, &x->place[i], &x->place[i].modules[k], true);
  t = wr_table_of_run(wr_tables_add(b->t, "tensors", "Tensors at each place's peak", columns, 7));
  for (size_t i = 0; i < x->count; i++)
    for (size_t k = 0; k < x->place[i].tensor_count; k++)
      put_tensors(t, &x->place[i], &x->place[i].tensors[k], false);
}

/* The tensors' places themselves. */
static void add_tensor_places(const wr_build *b, const wr_tensors *x)
{
  static const wr_column columns[] = {
      {"where", "where", WR_COLUMN_TEXT, 0},
      {"made", "tensors", WR_COLUMN_COUNT, 0},
      {"made_bytes", "bytes", WR_COLUMN_BYTES, 0},
      {"peak_bytes", "peak", WR_COLUMN_BYTES, 0},
      {"peak_tensors", "tensors then", WR_COLUMN_COUNT, 0},
      {"peak_at_ns", "at", WR_COLUMN_MOMENT, 0},
      {"live_at_exit_bytes", "live at exit", WR_COLUMN_BYTES, 0},
      {"live_at_exit_tensors", "tensors live at exit", WR_COLUMN_COUNT, 0},
      {"pinned", "page-locked", WR_COLUMN_TRUTH, WR_IN_JSON}};
  wr_named_table *t =
      wr_table_of_run(TABLE(b->t, "tensor_places", "Where tensors had memory", columns));
  wr_table_look(t, WR_DETAIL);
  for (size_t i = 0; i < x->count; i++) {
    const wr_tensor_place *p = &x->place[i];
    wr_table_row(t);
    put_tensors_place(t, p);
    WR_PUT(t, p->made, p->made_bytes, p->peak_bytes, p->peak_tensors, (uint64_t)p->peak_at,
           p->end_bytes, p->end_tensors, p->pinned);
  }
}

void wr_build_memory_of_run(const wr_build *b, const wr_model *m)
{
  add_in_use(b, m);
  add_usage(b, m);
  wr_build_caches(b, &m->cache);
  add_tensors(b, &m->tensors);
  add_tensor_places(b, &m->tensors);
}

/* The model comes first: of an incomplete trace it makes the blocks. */
weir_status wr_build_memory(const wr_build *b)
{
  wr_memory_sweep s;
  wr_model m = {0};
  weir_status st = wr_whole_model(&m, b->db, b->top ? b->top : 1000);
  if (st) return st;
  st = wr_memory_sweep_load(&s, b->db, b->scope, b->o->by);
  if (!st) {
    add_peaks(b, &s);
    st = add_memory_groups(b, &s);
    add_slices(b, &s);
    add_kinds(b, &s);
    add_lifetimes(b, &s);
    wr_memory_sweep_free(&s);
  }
  wr_build_memory_of_run(b, &m);
  wr_model_free(&m);
  return st;
}
