/* tensors_render.c: the tensors of a model, as text and as JSON. */
#include "reports/render/tensors_render.h"

#include <stdlib.h>
#include "reports/render/render.h"

#define MODULE_ROWS 8
#define TENSOR_ROWS 8

static void place_name(const wr_tensor_place *t, char out[32])
{
  if (t->device >= 0)
    (void)snprintf(out, 32, "GPU %d", t->device);
  else
    (void)snprintf(out, 32, t->pinned ? "host, pinned" : "host");
}

static void places_json(wr_page *p, const wr_tensors *t)
{
  wr_page_begin(p, "lrrrrrr");
  ROW(p, "where", "tensors", "bytes", "peak", "at", "tensors then", "live at exit");
  for (size_t i = 0; i < t->count; i++) {
    const wr_tensor_place *x = &t->place[i];
    char where[32];
    place_name(x, where);
    ROW(p, where, COUNT(x->made), BYTES(x->made_bytes), BYTES(x->peak_bytes),
        DURATION((uint64_t)x->peak_at), COUNT(x->peak_tensors),
        x->end_tensors ? BYTES(x->end_bytes) : "-");
  }
  wr_page_end(p);
}

static void print_modules(wr_page *p, const wr_tensor_place *x, const char *where)
{
  LINE(p, false, "%s, at the peak, by module", where);
  wr_page_begin(p, "frrr");
  ROW(p, "module", "tensors", "bytes", "share");
  size_t n = x->module_count < MODULE_ROWS ? x->module_count : MODULE_ROWS;
  for (size_t i = 0; i < n; i++) {
    ROW(p, *x->modules[i].module ? x->modules[i].module : "(no module)",
        COUNT(x->modules[i].tensors), BYTES(x->modules[i].bytes),
        wr_percent(x->modules[i].bytes, x->peak_bytes).text);
  }
  wr_page_end(p);
  if (x->all_modules > n) LINE(p, false, "… and %zu more", x->all_modules - n);
}

static void tensors_json(wr_page *p, const wr_tensor_place *x, const char *where)
{
  LINE(p, false, "%s, at the peak, by tensor", where);
  wr_page_begin(p, "fllrr");
  ROW(p, "tensor", "shape", "dtype", "count", "bytes");
  size_t n = x->tensor_count < TENSOR_ROWS ? x->tensor_count : TENSOR_ROWS;
  for (size_t i = 0; i < n; i++) {
    const wr_tensor_row *r = &x->tensors[i];
    wr_grid_row(&p->grid);
    if (*r->name)
      CELL(p, "%s", r->name);
    else
      CELL(p, *r->module ? "(made in %s)" : "(no name)%s", r->module);
    CELLS(p, r->shape, r->dtype, COUNT(r->tensors), BYTES(r->bytes));
  }
  wr_page_end(p);
  if (x->all_tensors > n) LINE(p, false, "… and %zu more", x->all_tensors - n);
}

void wr_tensors_section(wr_page *p, const wr_tensors *t)
{
  if (!t->count) return;
  wr_page_heading(p, "Memory by tensor / module", "of programs that use libweir");
  places_json(p, t);
  for (size_t i = 0; i < t->count; i++) {
    char where[32];
    if (!t->place[i].peak_bytes) continue;
    place_name(&t->place[i], where);
    print_modules(p, &t->place[i], where);
    tensors_json(p, &t->place[i], where);
  }
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static json_t *json_number(uint64_t n)
{
  return json_integer((json_int_t)n);
}

static json_t *print_places(const wr_tensor_row *r, size_t count, bool whole)
{
  json_t *a = json_array();
  for (size_t i = 0; i < count; i++) {
    json_t *o = json_object();
    json_object_set_new(o, "module", json_string(r[i].module));
    if (whole) {
      json_object_set_new(o, "name", json_string(r[i].name));
      json_object_set_new(o, "dtype", json_string(r[i].dtype));
      json_object_set_new(o, "shape", json_string(r[i].shape));
    }
    json_object_set_new(o, "tensors", json_number(r[i].tensors));
    json_object_set_new(o, "bytes", json_number(r[i].bytes));
    json_array_append_new(a, o);
  }
  return a;
}

json_t *wr_tensors_json(const wr_tensors *t)
{
  json_t *a = json_array();
  for (size_t i = 0; i < t->count; i++) {
    const wr_tensor_place *x = &t->place[i];
    json_t *o = json_object();
    json_object_set_new(o, "device", x->device < 0 ? json_null() : json_integer(x->device));
    json_object_set_new(o, "pinned", json_boolean(x->pinned));
    json_object_set_new(o, "made", json_number(x->made));
    json_object_set_new(o, "made_bytes", json_number(x->made_bytes));
    json_object_set_new(o, "peak_bytes", json_number(x->peak_bytes));
    json_object_set_new(o, "peak_tensors", json_number(x->peak_tensors));
    json_object_set_new(o, "peak_at_ns", json_integer(x->peak_at));
    json_object_set_new(o, "live_at_exit_bytes", json_number(x->end_bytes));
    json_object_set_new(o, "live_at_exit_tensors", json_number(x->end_tensors));
    json_object_set_new(o, "modules", print_places(x->modules, x->module_count, false));
    json_object_set_new(o, "by_tensor", print_places(x->tensors, x->tensor_count, true));
    json_array_append_new(a, o);
  }
  return a;
}
