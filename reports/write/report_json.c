/* report_json.c: a model as JSON, schema weir-report/1 (SCHEMA.md, "The report as JSON"). */
#include <jansson.h>
#include "reports/model/sites.h"
#include "reports/write/report_json.h"

static json_t *totals_json(const wr_totals *t)
{
  json_t *o = json_object();
#define FIELD(name) wr_json_put(o, #name, t->name);
  WR_TOTAL_MAP(FIELD)
#undef FIELD
  return o;
}

static json_t *strings_json(char *const *list, size_t count)
{
  json_t *a = json_array();
  for (size_t i = 0; i < count; i++)
    json_array_append_new(a, wr_json_text(list[i]));
  return a;
}

/* The frames of a stack, a text each. */
static json_t *frames_json(const wr_model *m, const wr_site_stack *x)
{
  json_t *a = json_array();
  for (uint32_t i = 0; i < x->count; i++) {
    const wr_frame_name *f = &m->frames[x->frames[i]];
    json_array_append_new(a, f->file ? json_sprintf("%s (%s:%d)", f->function, f->file, f->line)
                             : f->known && *f->module
                                 ? json_sprintf("%s (%s)", f->function, f->module)
                                 : wr_json_text(f->function));
  }
  return a;
}

static void put_sums(json_t *o, const wr_sums *s)
{
  wr_json_put(o, "calls", s->calls);
  wr_json_put(o, "bytes", s->bytes);
  wr_json_put(o, "ns", s->ns);
}

/* The heaviest stacks of a site, and the sums of those left out. */
static void put_stacks(json_t *o, const wr_model *m, const wr_site *x)
{
  json_t *list = json_array(), *more = json_object();
  wr_sums rest = {0};
  size_t shown = x->stack_count < (size_t)m->top ? x->stack_count : (size_t)m->top;
  for (size_t i = 0; i < x->stack_count; i++) {
    const wr_site_stack *s = &x->stacks[i];
    if (i >= shown) {
      rest.calls += s->sums.calls, rest.bytes += s->sums.bytes, rest.ns += s->sums.ns;
      continue;
    }
    json_t *one = json_object();
    put_sums(one, &s->sums);
    json_object_set_new(one, "implicit", json_boolean(s->implicit));
    json_object_set_new(one, "frames", frames_json(m, s));
    json_array_append_new(list, one);
  }
  wr_json_put(more, "stacks", x->stack_count - shown);
  put_sums(more, &rest);
  json_object_set_new(o, "stacks", list);
  json_object_set_new(o, "more_stacks", more);
}

static json_t *sites_json(const wr_model *m, const wr_sites *s)
{
  json_t *a = json_array();
  for (size_t i = 0; i < s->count; i++) {
    const wr_site *x = &s->site[i];
    json_t *o = json_object();
    if (x->api) json_object_set_new(o, "api", wr_json_text(x->api));
    if (x->direction >= 0) {
      json_object_set_new(o, "direction", wr_json_text(wr_direction_name(x->direction)));
      json_object_set_new(o, "src_memory", wr_json_text(wr_mem_name(x->src_mem)));
      json_object_set_new(o, "dst_memory", wr_json_text(wr_mem_name(x->mem)));
    }
    json_object_set_new(o, "function", wr_json_text(x->function));
    json_object_set_new(o, "file", wr_json_text(x->file));
    json_object_set_new(o, "line", json_integer(x->line));
    json_object_set_new(o, "module", wr_json_text(x->module));
    put_sums(o, &(wr_sums){x->calls, x->bytes, x->ns});
    json_object_set_new(o, "implicit", json_boolean(x->implicit));
    json_object_set_new(o, "frames", x->stack_count ? frames_json(m, &x->stacks[0]) : json_array());
    put_stacks(o, m, x);
    json_array_append_new(a, o);
  }
  return a;
}

static json_t *devices_json(const wr_model *m)
{
  json_t *a = json_array();
  for (int i = 0; i < 256; i++) {
    const wr_device *d = &m->devices[i];
    if (!d->seen) continue;
    json_t *o = json_object();
    json_object_set_new(o, "device", json_integer(i));
    json_object_set_new(o, "name", wr_json_text(d->name));
    json_object_set_new(o, "label", wr_json_text(d->label));
#define FIELD(name) wr_json_put(o, #name, d->total.name);
    WR_DEVICE_MAP(FIELD)
#undef FIELD
    json_object_set_new(o, "peak_owners", sites_json(m, &d->owners));
    json_object_set_new(o, "in_use", wr_in_use_json(&d->in_use[WR_BY_DRIVER]));
    json_object_set_new(o, "in_use_nvml", wr_in_use_json(&d->in_use[WR_BY_NVML]));
    json_array_append_new(a, o);
  }
  return a;
}

static json_t *place_json(const wr_api_row *r)
{
  if (!r->place) return json_null();
  json_t *o = json_object();
  json_object_set_new(o, "function", wr_json_text(r->place->function));
  json_object_set_new(o, "file", wr_json_text(r->place->file));
  json_object_set_new(o, "line", json_integer(r->place->line));
  json_object_set_new(o, "module", wr_json_text(r->place->module));
  wr_json_put(o, "calls", r->place_calls);
  wr_json_put(o, "ns", r->place_ns);
  return o;
}

static json_t *apis_json(const wr_model *m)
{
  json_t *a = json_array();
  for (size_t i = 0; i < m->api_count; i++) {
    const wr_api_row *r = &m->apis[i];
    json_t *o = json_object();
    json_object_set_new(o, "name", wr_json_text(r->name));
    json_object_set_new(o, "layer", wr_json_text(r->layer));
    json_object_set_new(o, "category", wr_json_text(r->category));
    wr_json_put(o, "calls", r->calls);
    wr_json_put(o, "errors", r->errors);
    wr_json_put(o, "bytes", r->bytes);
    wr_json_put(o, "ns", r->ns);
    wr_json_put(o, "max_ns", r->max_ns);
    wr_json_put(o, "sync_calls", r->sync_calls);
    wr_json_put(o, "sync_ns", r->sync_ns);
    wr_json_put(o, "implicit_calls", r->implicit_calls);
    wr_json_put(o, "implicit_ns", r->implicit_ns);
    wr_json_put(o, "init_calls", r->init_calls);
    wr_json_put(o, "init_ns", r->init_ns);
    json_object_set_new(o, "place", place_json(r));
    wr_json_put(o, "places", r->places);
    json_array_append_new(a, o);
  }
  return a;
}

/* A device's ordinal, null for the host. */
static json_t *device_json(int device)
{
  return device == WR_HOST ? json_null() : json_integer(device);
}

static json_t *matrix_json(const wr_model *m)
{
  json_t *a = json_array();
  for (size_t i = 0; i < m->route_count; i++) {
    const wr_route *r = &m->routes[i];
    json_t *o = json_object();
    json_object_set_new(o, "src", device_json(r->src));
    json_object_set_new(o, "dst", device_json(r->dst));
    wr_json_put(o, "calls", r->calls);
    wr_json_put(o, "bytes", r->bytes);
    wr_json_put(o, "timed_bytes", r->timed_bytes);
    wr_json_put(o, "timed_ns", r->timed_ns);
    double speed = r->timed_ns ? (double)r->timed_bytes * 1e9 / (double)r->timed_ns : 0;
    json_object_set_new(o, "bytes_per_second", r->timed_ns ? json_real(speed) : json_null());
    json_array_append_new(a, o);
  }
  return a;
}

static json_t *host_memory_json(const wr_model *m)
{
  json_t *a = json_array();
  for (size_t i = 0; i < m->split_count; i++) {
    json_t *o = json_object();
    json_object_set_new(o, "direction", wr_json_text(m->split[i].direction));
    json_object_set_new(o, "memory", wr_json_text(m->split[i].memory));
    wr_json_put(o, "calls", m->split[i].calls);
    wr_json_put(o, "bytes", m->split[i].bytes);
    wr_json_put(o, "async_calls", m->split[i].async_calls);
    json_array_append_new(a, o);
  }
  return a;
}

static json_t *processes_json(const wr_model *m)
{
  json_t *a = json_array();
  for (size_t i = 0; i < m->process_count; i++) {
    const wr_process_row *p = &m->processes[i];
    json_t *o = json_object();
    json_object_set_new(o, "pid", json_integer(p->pid));
    json_object_set_new(o, "exe", wr_json_text(p->exe));
    json_object_set_new(o, "command", wr_json_text(p->command));
    json_object_set_new(o, "mode", wr_json_text(p->mode));
    json_object_set_new(o, "start_ns", json_integer(p->start));
    json_object_set_new(o, "end_ns", p->ended ? json_integer(p->end) : json_null());
    json_object_set_new(o, "end_reason", p->ended ? wr_json_text(p->end_reason) : json_null());
    json_object_set_new(o, "end_detail",
                        p->end_detail < 0 ? json_null() : json_integer(p->end_detail));
    wr_json_put(o, "events", p->events);
    wr_json_put(o, "dropped", p->dropped);
    json_array_append_new(a, o);
  }
  return a;
}

static json_t *unseen_programs_json(const wr_coverage *c)
{
  json_t *list = json_array();
  for (size_t i = 0; i < c->unseen_count; i++) {
    json_t *o = json_object();
    json_object_set_new(o, "path", wr_json_text(c->unseen[i].path));
    json_object_set_new(o, "why", wr_json_text(c->unseen[i].why));
    wr_json_put(o, "count", c->unseen[i].count);
    json_array_append_new(list, o);
  }
  return list;
}

static json_t *lacking_json(const wr_coverage *c)
{
  json_t *list = json_array();
  for (size_t i = 0; i < c->lacking_count; i++) {
    json_t *o = json_object();
    json_object_set_new(o, "path", wr_json_text(c->lacking[i].path));
    json_object_set_new(o, "why", wr_json_text(c->lacking[i].why));
    json_array_append_new(list, o);
  }
  return list;
}

static json_t *passed_json(const wr_coverage *c, api_class how)
{
  return strings_json(c->passed[how].names, c->passed[how].count);
}

static json_t *coverage_json(const wr_model *m)
{
  const wr_coverage *c = &m->coverage;
  json_t *o = json_object();
  wr_json_put(o, "functions_wrapped", c->looked_up);
  json_object_set_new(o, "functions_passed_through",
                      wr_json_number(c->passed[WEIR_API_UNREACHED].count));
  wr_json_put(o, "functions_called", c->called);
  json_object_set_new(o, "passed_through", passed_json(c, WEIR_API_UNREACHED));
  json_t *why = json_object();
  json_object_set_new(why, "asks", passed_json(c, WEIR_API_ASKS));
  json_object_set_new(why, "sets", passed_json(c, WEIR_API_SETS));
  json_object_set_new(why, "below", passed_json(c, WEIR_API_BELOW));
  json_object_set_new(o, "unrecorded", why);
  wr_json_put(o, "unknown_lookups", c->unknown_lookups);
  json_object_set_new(o, "unknown_name", wr_json_text(c->unknown_name));
  json_object_set_new(o, "modules_embedding_cudart",
                      strings_json(c->embedding, c->embedding_count));
  json_object_set_new(o, "modules_without_names", lacking_json(c));
  json_object_set_new(o, "unseen_programs", unseen_programs_json(c));
  wr_json_put(o, "events_without_stack", c->stackless);
  wr_json_put(o, "nested_calls", c->nested);
  wr_json_put(o, "deep_ranges", c->deep);
  wr_json_put(o, "dropped_events", m->total.dropped);
  wr_json_put(o, "dropped_names_and_stacks", c->dropped_extended);
  wr_json_put(o, "damaged_chunks", c->damaged_chunks);
  wr_json_put(o, "torn_records", c->torn);
  wr_json_put(o, "bytes_cut", c->bytes_cut);
  return o;
}

static json_t *site_lists_json(const wr_model *m)
{
  const struct {
    const char *name;
    const wr_sites *list;
  } lists[] = {{"alloc", &m->alloc},        {"copy", &m->copy},
               {"sync", &m->sync},          {"redundant_waits", &m->redundant},
               {"wider_waits", &m->wider},  {"live_at_exit", &m->leak},
               {"taken_at_exit", &m->taken}};
  json_t *o = json_object(), *more = json_object();
  for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
    json_t *rest = json_object();
    json_object_set_new(o, lists[i].name, sites_json(m, lists[i].list));
    wr_json_put(rest, "sites", lists[i].list->all - lists[i].list->count);
    put_sums(rest, &lists[i].list->rest);
    json_object_set_new(more, lists[i].name, rest);
  }
  json_object_set_new(o, "more", more);
  return o;
}

json_t *wr_summary_json(const wr_model *m)
{
  json_t *o = json_object();
  json_object_set_new(o, "schema", wr_json_text("weir-report/1"));
  json_object_set_new(o, "trace", wr_json_text(m->path));
  json_object_set_new(o, "complete", json_boolean(m->finished));
  json_object_set_new(o, "command", wr_json_text(m->command));
  json_object_set_new(o, "weir_version", wr_json_text(m->version));
  json_object_set_new(o, "start_realtime_ns", json_integer(m->start_realtime_ns));
  json_object_set_new(o, "duration_ns", json_integer(m->duration_ns));
  json_object_set_new(o, "no_gpu", m->no_gpu ? wr_json_text(m->no_gpu) : json_null());
  json_object_set_new(o, "totals", totals_json(&m->total));
  json_object_set_new(o, "devices", devices_json(m));
  json_object_set_new(o, "apis", apis_json(m));
  json_object_set_new(o, "matrix", matrix_json(m));
  json_object_set_new(o, "host_memory", host_memory_json(m));
  json_object_set_new(o, "waits", wr_waits_json(&m->waits));
  json_object_set_new(o, "sites", site_lists_json(m));
  json_object_set_new(o, "ranges", wr_ranges_json(&m->ranges));
  json_object_set_new(o, "graphs", wr_graphs_json(&m->graphs));
  json_object_set_new(o, "named_memory", wr_named_json(&m->named));
  json_object_set_new(o, "tensors", wr_tensors_json(&m->tensors));
  json_object_set_new(o, "device_times", wr_device_times_json(m));
  json_object_set_new(o, "device_observation", wr_device_observation_json(m));
  json_object_set_new(o, "cache", wr_cache_json(&m->cache));
  json_object_set_new(o, "processes", processes_json(m));
  json_object_set_new(o, "notes", strings_json(m->notes, m->note_count));
  if (!json_object_set_new(o, "coverage", coverage_json(m)))
    return o; /* it was made, and has all */
  json_decref(o);
  return NULL;
}
