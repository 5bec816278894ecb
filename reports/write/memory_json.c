/* memory_json.c: what of the memory of a model was in use and by what, what has names, what tensors had. */
#include "reports/model/sites.h"
#include "reports/write/report_json.h"

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
    json_object_set_new(o, "tensors", number(r[i].tensors));
    json_object_set_new(o, "bytes", number(r[i].bytes));
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
    json_object_set_new(o, "made", number(x->made));
    json_object_set_new(o, "made_bytes", number(x->made_bytes));
    json_object_set_new(o, "peak_bytes", number(x->peak_bytes));
    json_object_set_new(o, "peak_tensors", number(x->peak_tensors));
    json_object_set_new(o, "peak_at_ns", json_integer(x->peak_at));
    json_object_set_new(o, "live_at_exit_bytes", number(x->end_bytes));
    json_object_set_new(o, "live_at_exit_tensors", number(x->end_tensors));
    json_object_set_new(o, "modules", tensor_rows_json(x->modules, x->module_count, false));
    json_object_set_new(o, "by_tensor", tensor_rows_json(x->tensors, x->tensor_count, true));
    json_array_append_new(a, o);
  }
  return a;
}
