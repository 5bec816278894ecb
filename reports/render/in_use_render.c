/* in_use_render.c: what of a device's memory was in use, and by what, as text and as JSON. */
#include "reports/render/in_use_render.h"

#include <string.h>

enum { OWNERS = 5 };

static void signed_bytes(int64_t n, char out[72])
{
  uint64_t size = n < 0 ? -(uint64_t)n : (uint64_t)n;
  (void)snprintf(out, 72, "%s%s", n < 0 ? "-" : "", size ? BYTES(size) : "0");
}

static void signed_cell(wr_page *p, int64_t n)
{
  char text[72];
  signed_bytes(n, text);
  CELL(p, "%s", text);
}

/* A row: what it is of, and a number a moment; left out where all are 0. */
static void number_row(wr_page *p, const char *what, const int64_t *n, size_t count)
{
  size_t i = 0;
  while (i < count && !n[i])
    i++;
  if (i == count) return;
  wr_grid_row(&p->grid);
  CELL(p, "%s", what);
  for (i = 0; i < count; i++)
    signed_cell(p, n[i]);
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
static void owner_rows(wr_page *p, const wr_in_use *u, bool code)
{
  const wr_moment *most = &u->moment[0];
  int64_t rest[WR_MOMENTS], n[WR_MOMENTS];
  for (size_t i = 0; i < u->moments; i++) {
    if (u->moment[i].used > most->used) most = &u->moment[i];
    rest[i] = (int64_t)(code ? u->moment[i].code : u->moment[i].live);
  }
  const wr_owners *list = owners_at(most, code);
  for (size_t k = 0; k < list->count && k < OWNERS; k++) {
    const char *module = list->owner[k].module;
    char what[96];
    (void)snprintf(what, sizeof what, "%s%s", code ? "code and variables of " : "", module);
    for (size_t i = 0; i < u->moments; i++) {
      n[i] = (int64_t)owned_at(owners_at(&u->moment[i], code), module);
      rest[i] -= n[i];
    }
    number_row(p, what, n, u->moments);
  }
  number_row(p, code ? "code and variables of others" : "other modules", rest, u->moments);
}

#define NUMBERS(p, u, what, expression)                                                            \
  do {                                                                                             \
    int64_t n_[WR_MOMENTS];                                                                        \
    for (size_t i_ = 0; i_ < (u)->moments; i_++) {                                                 \
      const wr_moment *at = &(u)->moment[i_];                                                      \
      n_[i_] = (int64_t)(expression);                                                              \
    }                                                                                              \
    number_row(p, what, n_, (u)->moments);                                                         \
  } while (0)

/* Fewer columns than the driver's section: one line a moment. */
static void nvml_section(wr_page *p, int device, const wr_in_use *u)
{
  if (!u->samples) return;
  LINE(p, false, "GPU %d: in use over time of its %s, as NVML said %s", device, BYTES(u->total),
       OF(u->samples, "time", "times"));
  if (u->has_ahead) LINE(p, false, "  %s were, before there was a context", BYTES(u->ahead));
  wr_page_begin(p, "rrrrrrr");
  ROW(p, "at", "in use", "blocks", "kept", "code", "others' more", "unexplained");
  for (size_t i = 0; i < u->moments; i++) {
    const wr_moment *m = &u->moment[i];
    wr_grid_row(&p->grid);
    CELL(p, "%s", DURATION(m->at > 0 ? (uint64_t)m->at : 0));
    CELL(p, "%s", BYTES(m->used));
    CELL(p, "%s", BYTES(m->live));
    CELL(p, "%s", BYTES(m->cached + m->pools + m->engine + m->graphs));
    CELL(p, "%s", BYTES(m->code + m->contexts));
    signed_cell(p, m->others);
    signed_cell(p, wr_in_use_unexplained(u, m));
  }
  wr_page_end(p);
}

void wr_in_use_section(wr_page *p, int device, const wr_in_use *u)
{
  uint64_t most = 0;
  nvml_section(p, device, &u[WR_BY_NVML]);
  for (size_t i = 0; i < u->moments; i++)
    most = u->moment[i].used > most ? u->moment[i].used : most;
  if (!most) return; /* or never asked */
  LINE(p, false, "GPU %d: in use of its %s, as the driver said %s, and by what", device,
       BYTES(u->total), OF(u->samples, "time", "times"));
  wr_page_begin(p, "frrr");
  wr_grid_row(&p->grid);
  CELL(p, "%s", "at");
  for (size_t i = 0; i < u->moments; i++)
    CELL(p, "%s", DURATION(u->moment[i].at > 0 ? (uint64_t)u->moment[i].at : 0));
  NUMBERS(p, u, "in use", at->used);
  owner_rows(p, u, false);
  owner_rows(p, u, true);
  NUMBERS(p, u, "contexts that were measured", at->contexts);
  NUMBERS(p, u, "Weir's caches", at->cached);
  NUMBERS(p, u, "idle in the driver's pools", at->pools);
  NUMBERS(p, u, "idle in libweir's allocator", at->engine);
  NUMBERS(p, u, "idle in the driver's memory of graphs", at->graphs);
  NUMBERS(p, u, "there before: contexts, modules, other programs", at ? u->before : 0);
  NUMBERS(p, u, "unexplained", wr_in_use_unexplained(u, at));
  NUMBERS(p, u, "managed, wherever it is", at->managed);
  wr_page_end(p);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *number(uint64_t n)
{
  return json_integer((json_int_t)n);
}

static json_t *owners_json(const wr_owners *owners)
{
  json_t *list = json_array();
  for (size_t i = 0; i < owners->count; i++) {
    json_t *o = json_object();
    json_object_set_new(o, "module", json_string(owners->owner[i].module));
    json_object_set_new(o, "bytes", number(owners->owner[i].bytes));
    json_array_append_new(list, o);
  }
  return list;
}

json_t *wr_in_use_json(const wr_in_use *u)
{
  if (!u->samples) return json_null();
  json_t *o = json_object(), *list = json_array();
  for (size_t i = 0; i < u->moments; i++) {
    const wr_moment *m = &u->moment[i];
    json_t *x = json_object();
    json_object_set_new(x, "at_ns", json_integer(m->at));
    json_object_set_new(x, "used_bytes", number(m->used));
    json_object_set_new(x, "live_bytes", number(m->live));
    json_object_set_new(x, "owners", owners_json(&m->of_live));
    json_object_set_new(x, "modules_bytes", number(m->code));
    json_object_set_new(x, "modules", owners_json(&m->of_code));
    json_object_set_new(x, "contexts_bytes", number(m->contexts));
    json_object_set_new(x, "cached_bytes", number(m->cached));
    json_object_set_new(x, "pools_idle_bytes", number(m->pools));
    json_object_set_new(x, "weir_idle_bytes", number(m->engine));
    json_object_set_new(x, "graphs_idle_bytes", number(m->graphs));
    json_object_set_new(x, "unexplained_bytes", json_integer(wr_in_use_unexplained(u, m)));
    json_object_set_new(x, "managed_bytes", number(m->managed));
    json_object_set_new(x, "others_more_bytes", json_integer(m->others));
    json_array_append_new(list, x);
  }
  json_object_set_new(o, "samples", number(u->samples));
  json_object_set_new(o, "total_bytes", number(u->total));
  json_object_set_new(o, "before_bytes", number(u->before));
  json_object_set_new(o, "ahead_bytes", u->has_ahead ? number(u->ahead) : json_null());
  json_object_set_new(o, "after_bytes", u->after < 0 ? json_null() : json_integer(u->after));
  json_object_set_new(o, "moments", list);
  return o;
}
