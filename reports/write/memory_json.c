/* memory_json.c: what of the memory of a model was in use and by what, what has names, what tensors had. */
#include "reports/model/sites.h"
#include "reports/write/report_json.h"

static json_t *owners_json(const wr_owners *owners)
{
  json_t *list = json_array();
  for (size_t i = 0; i < owners->count; i++) {
    json_t *o = json_object();
    json_object_set_new(o, "module", json_string(owners->owner[i].module));
    wr_json_put(o, "bytes", owners->owner[i].bytes);
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
    wr_json_put(x, "used_bytes", m->used);
    wr_json_put(x, "live_bytes", m->live);
    json_object_set_new(x, "owners", owners_json(&m->of_live));
    wr_json_put(x, "modules_bytes", m->code);
    json_object_set_new(x, "modules", owners_json(&m->of_code));
    wr_json_put(x, "contexts_bytes", m->contexts);
    wr_json_put(x, "cached_bytes", m->cached);
    wr_json_put(x, "pools_idle_bytes", m->pools);
    wr_json_put(x, "weir_idle_bytes", m->engine);
    wr_json_put(x, "graphs_idle_bytes", m->graphs);
    json_object_set_new(x, "unexplained_bytes", json_integer(wr_in_use_unexplained(u, m)));
    wr_json_put(x, "managed_bytes", m->managed);
    json_object_set_new(x, "others_more_bytes", json_integer(m->others));
    json_array_append_new(list, x);
  }
  wr_json_put(o, "samples", u->samples);
  wr_json_put(o, "total_bytes", u->total);
  wr_json_put(o, "before_bytes", u->before);
  json_object_set_new(o, "ahead_bytes", u->has_ahead ? wr_json_number(u->ahead) : json_null());
  json_object_set_new(o, "after_bytes", u->after < 0 ? json_null() : json_integer(u->after));
  json_object_set_new(o, "moments", list);
  return o;
}

json_t *wr_named_json(const wr_named *n)
{
  json_t *a = json_array();
  for (size_t i = 0; i < n->count; i++) {
    const wr_named_sum *s = &n->sum[i];
    json_t *o = json_object();
    json_object_set_new(o, "name", json_string(s->name));
    json_object_set_new(o, "memory", json_string(wr_mem_name(s->mem)));
    json_object_set_new(o, "device", s->device < 0 ? json_null() : json_integer(s->device));
    json_object_set_new(o, "blocks", json_integer((json_int_t)s->blocks));
    json_object_set_new(o, "bytes", json_integer((json_int_t)s->bytes));
    json_object_set_new(o, "peak_bytes", json_integer((json_int_t)s->peak_bytes));
    json_object_set_new(o, "live_at_exit_bytes", json_integer((json_int_t)s->live_bytes));
    json_array_append_new(a, o);
  }
  return a;
}

static json_t *tensor_rows_json(const wr_tensor_row *r, size_t count, bool whole)
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
    wr_json_put(o, "tensors", r[i].tensors);
    wr_json_put(o, "bytes", r[i].bytes);
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
    wr_json_put(o, "made", x->made);
    wr_json_put(o, "made_bytes", x->made_bytes);
    wr_json_put(o, "peak_bytes", x->peak_bytes);
    wr_json_put(o, "peak_tensors", x->peak_tensors);
    json_object_set_new(o, "peak_at_ns", json_integer(x->peak_at));
    wr_json_put(o, "live_at_exit_bytes", x->end_bytes);
    wr_json_put(o, "live_at_exit_tensors", x->end_tensors);
    json_object_set_new(o, "modules", tensor_rows_json(x->modules, x->module_count, false));
    json_object_set_new(o, "by_tensor", tensor_rows_json(x->tensors, x->tensor_count, true));
    json_array_append_new(a, o);
  }
  return a;
}
