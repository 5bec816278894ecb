/* section_memory.c: the memory of devices and of the host: what was taken, what was in use and by
 * what, what has names, what libweir's tensors had. */
#include <stdlib.h>
#include <string.h>
#include "reports/base/units.h"
#include "reports/model/sites.h"
#include "reports/tables/sections.h"

enum {
  OWNER_ROWS = 3,    /* a device */
  MODULE_OWNERS = 5, /* modules that have rows of their own */
  SHOWN_MOMENTS = 3,
  NAMED_ROWS = 12,
  MODULE_ROWS = 8,
  TENSOR_ROWS = 8
};

/* ---- by place -------------------------------------------------------------------------------- */

static void add_device_rows(const wr_sections *s, wr_named_table *t)
{
  for (int i = 0; i < 256; i++) {
    const wr_device *device = &s->m->devices[i];
    const wr_device_totals *d = &device->total;
    if (!device->seen || !(d->alloc_calls || d->free_calls)) continue;
    const char *name = device->name, *label = device->label;
    wr_table_row(t);
    wr_table_put_words(t, "GPU %d%s%s%s%s%s", i, name ? " " : "", name ? name : "",
                       label ? " (" : "", label ? label : "", label ? ")" : "");
    WR_PUT(t, d->alloc_calls, d->alloc_bytes, d->free_calls, d->peak_bytes, d->peak_at_ns,
           d->live_at_exit_bytes);
  }
}

/* Memory of no call that allocates: blocks, bytes, ends, peak and what is left. */
static void add_taken_row(wr_named_table *t, int device, const char *what, const uint64_t n[5])
{
  if (!n[0]) return;
  wr_table_row(t);
  wr_table_put_words(t, "GPU %d, %s", device, what);
  WR_PUT(t, n[0], n[1], n[2], n[3]);
  wr_table_put_none(t);
  wr_table_put(t, n[4]);
}

static void add_taken_rows(const wr_sections *s, wr_named_table *t)
{
  for (int i = 0; i < 256; i++) {
    const wr_device_totals *d = &s->m->devices[i].total;
    add_taken_row(t, i, "code of modules",
                  (const uint64_t[]){d->code_blocks, d->code_bytes, d->code_frees,
                                     d->code_peak_bytes, d->code_live_at_exit_bytes});
    add_taken_row(t, i, "contexts",
                  (const uint64_t[]){d->context_blocks, d->context_bytes, d->context_frees,
                                     d->context_peak_bytes, d->context_live_at_exit_bytes});
  }
}

static bool any_taken(const wr_model *m)
{
  for (int i = 0; i < 256; i++)
    if (m->devices[i].total.code_blocks || m->devices[i].total.context_blocks) return true;
  return false;
}

static void add_host_rows(const wr_totals *x, wr_named_table *t)
{
  if (x->pinned_alloc_calls) {
    wr_table_row(t);
    wr_table_put_text(t, "host, pinned");
    WR_PUT(t, x->pinned_alloc_calls, x->pinned_alloc_bytes, x->pinned_free_calls,
           x->pinned_peak_bytes);
    wr_table_put_none(t);
    wr_table_put(t, x->pinned_live_at_exit_bytes);
  }
  if (x->imported_calls) {
    wr_table_row(t);
    wr_table_put_text(t, "imported (another's)");
    WR_PUT(t, x->imported_calls, x->imported_bytes);
    wr_table_put_none(t);
    wr_table_put(t, x->imported_peak_bytes);
    wr_table_put_none(t);
    wr_table_put(t, x->imported_live_at_exit_bytes);
  }
  if (x->register_calls) {
    wr_table_row(t);
    wr_table_put_text(t, "host, registered");
    WR_PUT(t, x->register_calls, x->register_bytes);
    wr_table_skip(t, 4);
  }
}

static void add_peak_owners(const wr_sections *s)
{
  static const wr_place_columns columns = {
      .unit = "blocks", .first = "at the peak of", .bytes = true, .where = "allocated in"};
  wr_named_table *t = NULL;
  for (int i = 0; i < 256; i++) {
    char name[24];
    const wr_device *d = &s->m->devices[i];
    if (!d->seen || !d->owners.count) continue;
    if (!t) t = wr_places_add(s, "peak_owners", "At the peak", &columns);
    (void)snprintf(name, sizeof(name), "GPU %d", i);
    wr_places_rows(s, t, &columns, &d->owners, s->top_asked ? SIZE_MAX : OWNER_ROWS, name);
  }
  wr_table_look(t, WR_JOINED);
}

void wr_section_memory(const wr_sections *s)
{
  static const wr_column columns[] = {
      {"where", "where", WR_COLUMN_TEXT, 0},
      {"alloc_calls", "allocs", WR_COLUMN_COUNT, 0},
      {"alloc_bytes", "bytes", WR_COLUMN_BYTES, 0},
      {"free_calls", "frees", WR_COLUMN_COUNT, 0},
      {"peak_bytes", "peak", WR_COLUMN_BYTES, 0},
      {"peak_at_ns", "at", WR_COLUMN_MOMENT, 0},
      {"live_at_exit_bytes", "live at exit", WR_COLUMN_BYTES, WR_ZERO_PLAIN}};
  const wr_totals *x = &s->m->total;
  if (!x->alloc_calls && !x->free_calls && !x->pinned_alloc_calls && !x->register_calls &&
      !x->imported_calls && !any_taken(s->m))
    return;
  wr_named_table *t = WR_TABLE(s->t, "memory", "Memory", columns);
  add_device_rows(s, t);
  add_taken_rows(s, t);
  add_host_rows(x, t);
  /* The memory that blocks of libweir's are cut from. */
  if (x->weir_reserved_peak_bytes)
    wr_table_after(t, false,
                   "libweir's allocator had at most %s of the devices' memory from the driver",
                   BYTES(x->weir_reserved_peak_bytes));
  if (x->weir_pinned_reserved_peak_bytes)
    wr_table_after(t, false, "libweir's allocator had at most %s of host memory page-locked",
                   BYTES(x->weir_pinned_reserved_peak_bytes));
  add_peak_owners(s);
  for (int i = 0; i < 256; i++)
    wr_section_in_use(s, i);
}

/* ---- in use ---------------------------------------------------------------------------------- */

/* A row: what it is of, and a number a moment; left out where all are 0. */
static void add_numbers(wr_named_table *t, const wr_in_use *u, const char *what, const int64_t *n)
{
  size_t i = 0, shown = u->moments < SHOWN_MOMENTS ? u->moments : SHOWN_MOMENTS;
  while (i < u->moments && !n[i])
    i++;
  if (i == u->moments) return;
  wr_table_row(t);
  wr_table_put_text(t, what);
  for (i = 0; i < shown; i++)
    wr_table_put(t, (uint64_t)n[i]);
  wr_table_skip(t, SHOWN_MOMENTS - shown);
}

static const wr_owners *owners_at(const wr_moment *m, bool code)
{
  return code ? &m->of_code : &m->of_live;
}

static uint64_t owned_at(const wr_owners *list, const char *module)
{
  for (size_t i = 0; i < list->count; i++)
    if (strcmp(list->owner[i].module, module) == 0) return list->owner[i].bytes;
  return 0;
}

/* The modules that had most when most was in use, then all others together. */
static void add_module_owners(wr_named_table *t, const wr_in_use *u, bool code)
{
  const wr_moment *most = &u->moment[0];
  int64_t rest[WR_MOMENTS], n[WR_MOMENTS];
  for (size_t i = 0; i < u->moments; i++) {
    if (u->moment[i].used > most->used) most = &u->moment[i];
    rest[i] = (int64_t)(code ? u->moment[i].code : u->moment[i].live);
  }
  const wr_owners *list = owners_at(most, code);
  for (size_t k = 0; k < list->count && k < MODULE_OWNERS; k++) {
    const char *module = list->owner[k].module;
    char what[96];
    (void)snprintf(what, sizeof what, "%s%s", code ? "code and variables of " : "", module);
    for (size_t i = 0; i < u->moments; i++) {
      n[i] = (int64_t)owned_at(owners_at(&u->moment[i], code), module);
      rest[i] -= n[i];
    }
    add_numbers(t, u, what, n);
  }
  add_numbers(t, u, code ? "code and variables of others" : "other modules", rest);
}

#define NUMBERS(t, u, what, expression)                                                            \
  do {                                                                                             \
    int64_t n_[WR_MOMENTS];                                                                        \
    for (size_t i_ = 0; i_ < (u)->moments; i_++) {                                                 \
      const wr_moment *at = &(u)->moment[i_];                                                      \
      n_[i_] = (int64_t)(expression);                                                              \
    }                                                                                              \
    add_numbers(t, u, what, n_);                                                                   \
  } while (0)

/* Fewer columns than by the driver: one row a moment. */
static void add_by_nvml(const wr_sections *s, int device, const wr_in_use *u)
{
  static const wr_column columns[] = {{"at_ns", "at", WR_COLUMN_MOMENT, 0},
                                      {"used_bytes", "in use", WR_COLUMN_BYTES, 0},
                                      {"live_bytes", "blocks", WR_COLUMN_BYTES, 0},
                                      {"kept_bytes", "kept", WR_COLUMN_BYTES, 0},
                                      {"code_bytes", "code", WR_COLUMN_BYTES, 0},
                                      {"others_more_bytes", "others' more", WR_COLUMN_BALANCE, 0},
                                      {"unexplained_bytes", "unexplained", WR_COLUMN_BALANCE, 0}};
  if (!u->samples) return;
  wr_named_table *t = WR_TABLE(s->t, "in_use_nvml", "In use by NVML", columns);
  wr_table_look(t, WR_JOINED);
  wr_table_before(t, false, "GPU %d: in use over time of its %s, as NVML said %s", device,
                  BYTES(u->total), OF(u->samples, "time", "times"));
  if (u->has_ahead)
    wr_table_before(t, false, "  %s were, before there was a context", BYTES(u->ahead));
  for (size_t i = 0; i < u->moments; i++) {
    const wr_moment *m = &u->moment[i];
    wr_table_row(t);
    WR_PUT(t, m->at > 0 ? (uint64_t)m->at : 0, m->used, m->live,
           m->cached + m->pools + m->engine + m->graphs, m->code + m->contexts, (uint64_t)m->others,
           (uint64_t)wr_in_use_unexplained(u, m));
  }
}

static void add_by_driver(const wr_sections *s, int device, const wr_in_use *u)
{
  static const wr_column columns[1 + SHOWN_MOMENTS] = {{"what", "at", WR_COLUMN_TEXT, 0},
                                                       {"first", "", WR_COLUMN_BALANCE, 0},
                                                       {"second", "", WR_COLUMN_BALANCE, 0},
                                                       {"third", "", WR_COLUMN_BALANCE, 0}};
  uint64_t most = 0;
  for (size_t i = 0; i < u->moments; i++)
    most = u->moment[i].used > most ? u->moment[i].used : most;
  if (!most) return; /* or never asked */
  wr_named_table *t = WR_TABLE(s->t, "in_use", "In use", columns);
  wr_table_look(t, WR_JOINED);
  wr_table_before(t, false, "GPU %d: in use of its %s, as the driver said %s, and by what", device,
                  BYTES(u->total), OF(u->samples, "time", "times"));
  for (size_t i = 0; i < u->moments && i < SHOWN_MOMENTS; i++)
    wr_table_title(t, 1 + i, "%s", DURATION(u->moment[i].at > 0 ? (uint64_t)u->moment[i].at : 0));
  NUMBERS(t, u, "in use", at->used);
  add_module_owners(t, u, false);
  add_module_owners(t, u, true);
  NUMBERS(t, u, "contexts that were measured", at->contexts);
  NUMBERS(t, u, "Weir's caches", at->cached);
  NUMBERS(t, u, "idle in the driver's pools", at->pools);
  NUMBERS(t, u, "idle in libweir's allocator", at->engine);
  NUMBERS(t, u, "idle in the driver's memory of graphs", at->graphs);
  NUMBERS(t, u, "there before: contexts, modules, other programs", at ? u->before : 0);
  NUMBERS(t, u, "unexplained", wr_in_use_unexplained(u, at));
  NUMBERS(t, u, "managed, wherever it is", at->managed);
}

void wr_section_in_use(const wr_sections *s, int device)
{
  const wr_in_use *u = s->m->devices[device].in_use;
  add_by_nvml(s, device, &u[WR_BY_NVML]);
  add_by_driver(s, device, &u[WR_BY_DRIVER]);
}

/* ---- by name --------------------------------------------------------------------------------- */

void wr_section_named(const wr_sections *s)
{
  static const wr_column columns[] = {
      {"name", "name", WR_COLUMN_TEXT, WR_FLEXIBLE},
      {"memory", "memory", WR_COLUMN_TEXT, 0},
      {"blocks", "blocks", WR_COLUMN_COUNT, 0},
      {"bytes", "allocated", WR_COLUMN_BYTES, 0},
      {"peak_bytes", "peak", WR_COLUMN_BYTES, 0},
      {"live_at_exit_bytes", "live at exit", WR_COLUMN_BYTES, WR_ZERO_PLAIN}};
  const wr_named *n = &s->m->named;
  if (!n->count) return;
  wr_named_table *t = WR_TABLE(s->t, "named_memory", "Named memory", columns);
  wr_table_aside(t, "by NVTX");
  for (size_t i = 0; i < n->count; i++) {
    const wr_named_sum *x = &n->sum[i];
    wr_table_row(t);
    wr_table_put_text(t, *x->name ? x->name : "(no text)");
    if (x->device < 0)
      wr_table_put_text(t, wr_mem_name(x->mem));
    else
      wr_table_put_words(t, "%s, GPU %d", wr_mem_name(x->mem), x->device);
    WR_PUT(t, x->blocks, x->bytes, x->peak_bytes, x->live_bytes);
  }
  wr_table_most(t, wr_sections_rows(s, NAMED_ROWS), NULL, NULL);
}

/* ---- by tensor ------------------------------------------------------------------------------- */

static const char *tensors_place(const wr_tensor_place *x, char out[32])
{
  if (x->device >= 0)
    (void)snprintf(out, 32, "GPU %d", x->device);
  else
    (void)snprintf(out, 32, x->pinned ? "host, pinned" : "host");
  return out;
}

/* The rows after the first `most` are for programs; there are `all`. */
static void add_more(wr_named_table *t, size_t rows, size_t most, size_t all)
{
  size_t shown = rows < most ? rows : most;
  for (size_t i = shown; t && i < rows; i++)
    t->kind[i] = WR_ROW_DATA;
  if (all > shown) wr_table_after(t, false, "… and %zu more", all - shown);
}

static void add_modules(const wr_sections *s, const wr_tensor_place *x, const char *where)
{
  static const wr_column columns[] = {{"module", "module", WR_COLUMN_TEXT, 0},
                                      {"tensors", "tensors", WR_COLUMN_COUNT, 0},
                                      {"bytes", "bytes", WR_COLUMN_BYTES, 0},
                                      {"share_of_peak", "share", WR_COLUMN_SHARE, WR_ROUNDED}};
  wr_named_table *t = WR_TABLE(s->t, "tensor_modules", "By module", columns);
  wr_table_look(t, WR_JOINED);
  wr_table_before(t, false, "%s, at the peak, by module", where);
  for (size_t i = 0; i < x->module_count; i++) {
    const wr_tensor_row *r = &x->modules[i];
    wr_table_row(t);
    wr_table_put_text(t, *r->module ? r->module : "(no module)");
    WR_PUT(t, r->tensors, r->bytes);
    wr_table_put_share(t, r->bytes, x->peak_bytes);
  }
  add_more(t, x->module_count, MODULE_ROWS, x->all_modules);
}

static void add_tensors(const wr_sections *s, const wr_tensor_place *x, const char *where)
{
  static const wr_column columns[] = {{"tensor", "tensor", WR_COLUMN_TEXT, WR_FLEXIBLE},
                                      {"shape", "shape", WR_COLUMN_TEXT, 0},
                                      {"dtype", "dtype", WR_COLUMN_TEXT, 0},
                                      {"tensors", "count", WR_COLUMN_COUNT, 0},
                                      {"bytes", "bytes", WR_COLUMN_BYTES, 0}};
  wr_named_table *t = WR_TABLE(s->t, "tensors_by_name", "By tensor", columns);
  wr_table_look(t, WR_JOINED);
  wr_table_before(t, false, "%s, at the peak, by tensor", where);
  for (size_t i = 0; i < x->tensor_count; i++) {
    const wr_tensor_row *r = &x->tensors[i];
    wr_table_row(t);
    if (*r->name)
      wr_table_put_text(t, r->name);
    else if (*r->module)
      wr_table_put_words(t, "(made in %s)", r->module);
    else
      wr_table_put_text(t, "(no name)");
    wr_table_put_text(t, r->shape);
    wr_table_put_text(t, r->dtype);
    WR_PUT(t, r->tensors, r->bytes);
  }
  add_more(t, x->tensor_count, TENSOR_ROWS, x->all_tensors);
}

void wr_section_tensors(const wr_sections *s)
{
  static const wr_column columns[] = {{"where", "where", WR_COLUMN_TEXT, WR_RIGID},
                                      {"made", "tensors", WR_COLUMN_COUNT, 0},
                                      {"made_bytes", "bytes", WR_COLUMN_BYTES, 0},
                                      {"peak_bytes", "peak", WR_COLUMN_BYTES, 0},
                                      {"peak_at_ns", "at", WR_COLUMN_MOMENT, 0},
                                      {"peak_tensors", "tensors then", WR_COLUMN_COUNT, 0},
                                      {"live_at_exit_bytes", "live at exit", WR_COLUMN_BYTES, 0}};
  const wr_tensors *all = &s->m->tensors;
  char where[32];
  if (!all->count) return;
  wr_named_table *t = WR_TABLE(s->t, "tensors", "Memory by tensor / module", columns);
  wr_table_aside(t, "of programs that use libweir");
  for (size_t i = 0; i < all->count; i++) {
    const wr_tensor_place *x = &all->place[i];
    wr_table_row(t);
    wr_table_put_text(t, tensors_place(x, where));
    WR_PUT(t, x->made, x->made_bytes, x->peak_bytes, (uint64_t)x->peak_at, x->peak_tensors);
    wr_table_put_if(t, x->end_tensors, x->end_bytes);
  }
  for (size_t i = 0; i < all->count; i++) {
    if (!all->place[i].peak_bytes) continue;
    add_modules(s, &all->place[i], tensors_place(&all->place[i], where));
    add_tensors(s, &all->place[i], where);
  }
}
