/* report_json.c: a model as JSON, schema weir-report/1 (SCHEMA.md, "The report as JSON"). */
#include <jansson.h>
#include "reports/model/sites.h"
#include "reports/write/report_json.h"

/* Every text of a model is valid UTF-8 (wr_text), so these fail for lack of memory only; jansson's
 * *_new functions take a NULL value as failure, and the last look at the root finds it. */
static json_t *string_or_null(const char *s)
{
  return s ? json_string(s) : json_null();
}

static json_t *json_number(uint64_t n)
{
  return json_integer((json_int_t)n);
}

static json_t *totals_json(const wr_totals *t)
{
  json_t *o = json_object();
#define FIELD(name) json_object_set_new(o, #name, json_number(t->name));
  WR_TOTAL_MAP(FIELD)
#undef FIELD
  return o;
}

static json_t *strings_json(char *const *list, size_t count)
{
  json_t *a = json_array();
  for (size_t i = 0; i < count; i++)
    json_array_append_new(a, string_or_null(list[i]));
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
                                 : string_or_null(f->function));
  }
  return a;
}

static void put_sums(json_t *o, const wr_sums *s)
{
  json_object_set_new(o, "calls", json_number(s->calls));
  json_object_set_new(o, "bytes", json_number(s->bytes));
  json_object_set_new(o, "ns", json_number(s->ns));
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
  json_object_set_new(more, "stacks", json_number(x->stack_count - shown));
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
    if (x->api) json_object_set_new(o, "api", string_or_null(x->api));
    if (x->direction >= 0) {
      json_object_set_new(o, "direction", string_or_null(wr_direction_name(x->direction)));
      json_object_set_new(o, "src_memory", string_or_null(wr_mem_name(x->src_mem)));
      json_object_set_new(o, "dst_memory", string_or_null(wr_mem_name(x->mem)));
    }
    json_object_set_new(o, "function", string_or_null(x->function));
    json_object_set_new(o, "file", string_or_null(x->file));
    json_object_set_new(o, "line", json_integer(x->line));
    json_object_set_new(o, "module", string_or_null(x->module));
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
    json_object_set_new(o, "name", string_or_null(d->name));
    json_object_set_new(o, "label", string_or_null(d->label));
#define FIELD(name) json_object_set_new(o, #name, json_number(d->total.name));
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
  json_object_set_new(o, "function", string_or_null(r->place->function));
  json_object_set_new(o, "file", string_or_null(r->place->file));
  json_object_set_new(o, "line", json_integer(r->place->line));
  json_object_set_new(o, "module", string_or_null(r->place->module));
  json_object_set_new(o, "calls", json_number(r->place_calls));
  json_object_set_new(o, "ns", json_number(r->place_ns));
  return o;
}

static json_t *apis_json(const wr_model *m)
{
  json_t *a = json_array();
  for (size_t i = 0; i < m->api_count; i++) {
    const wr_api_row *r = &m->apis[i];
    json_t *o = json_object();
    json_object_set_new(o, "name", string_or_null(r->name));
    json_object_set_new(o, "layer", string_or_null(r->layer));
    json_object_set_new(o, "category", string_or_null(r->category));
    json_object_set_new(o, "calls", json_number(r->calls));
    json_object_set_new(o, "errors", json_number(r->errors));
    json_object_set_new(o, "bytes", json_number(r->bytes));
    json_object_set_new(o, "ns", json_number(r->ns));
    json_object_set_new(o, "max_ns", json_number(r->max_ns));
    json_object_set_new(o, "sync_calls", json_number(r->sync_calls));
    json_object_set_new(o, "sync_ns", json_number(r->sync_ns));
    json_object_set_new(o, "implicit_calls", json_number(r->implicit_calls));
    json_object_set_new(o, "implicit_ns", json_number(r->implicit_ns));
    json_object_set_new(o, "init_calls", json_number(r->init_calls));
    json_object_set_new(o, "init_ns", json_number(r->init_ns));
    json_object_set_new(o, "place", place_json(r));
    json_object_set_new(o, "places", json_number(r->places));
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
    json_object_set_new(o, "calls", json_number(r->calls));
    json_object_set_new(o, "bytes", json_number(r->bytes));
    json_object_set_new(o, "timed_bytes", json_number(r->timed_bytes));
    json_object_set_new(o, "timed_ns", json_number(r->timed_ns));
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
    json_object_set_new(o, "direction", string_or_null(m->split[i].direction));
    json_object_set_new(o, "memory", string_or_null(m->split[i].memory));
    json_object_set_new(o, "calls", json_number(m->split[i].calls));
    json_object_set_new(o, "bytes", json_number(m->split[i].bytes));
    json_object_set_new(o, "async_calls", json_number(m->split[i].async_calls));
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
    json_object_set_new(o, "exe", string_or_null(p->exe));
    json_object_set_new(o, "command", string_or_null(p->command));
    json_object_set_new(o, "mode", string_or_null(p->mode));
    json_object_set_new(o, "start_ns", json_integer(p->start));
    json_object_set_new(o, "end_ns", p->ended ? json_integer(p->end) : json_null());
    json_object_set_new(o, "end_reason", p->ended ? string_or_null(p->end_reason) : json_null());
    json_object_set_new(o, "end_detail",
                        p->end_detail < 0 ? json_null() : json_integer(p->end_detail));
    json_object_set_new(o, "events", json_number(p->events));
    json_object_set_new(o, "dropped", json_number(p->dropped));
    json_array_append_new(a, o);
  }
  return a;
}

static json_t *unseen_programs_json(const wr_coverage *c)
{
  json_t *list = json_array();
  for (size_t i = 0; i < c->unseen_count; i++) {
    json_t *o = json_object();
    json_object_set_new(o, "path", string_or_null(c->unseen[i].path));
    json_object_set_new(o, "why", string_or_null(c->unseen[i].why));
    json_object_set_new(o, "count", json_number(c->unseen[i].count));
    json_array_append_new(list, o);
  }
  return list;
}

static json_t *lacking_json(const wr_coverage *c)
{
  json_t *list = json_array();
  for (size_t i = 0; i < c->lacking_count; i++) {
    json_t *o = json_object();
    json_object_set_new(o, "path", string_or_null(c->lacking[i].path));
    json_object_set_new(o, "why", string_or_null(c->lacking[i].why));
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
  json_object_set_new(o, "functions_wrapped", json_number(c->looked_up));
  json_object_set_new(o, "functions_passed_through",
                      json_number(c->passed[WEIR_API_UNREACHED].count));
  json_object_set_new(o, "functions_called", json_number(c->called));
  json_object_set_new(o, "passed_through", passed_json(c, WEIR_API_UNREACHED));
  json_t *why = json_object();
  json_object_set_new(why, "asks", passed_json(c, WEIR_API_ASKS));
  json_object_set_new(why, "sets", passed_json(c, WEIR_API_SETS));
  json_object_set_new(why, "below", passed_json(c, WEIR_API_BELOW));
  json_object_set_new(o, "unrecorded", why);
  json_object_set_new(o, "unknown_lookups", json_number(c->unknown_lookups));
  json_object_set_new(o, "unknown_name", string_or_null(c->unknown_name));
  json_object_set_new(o, "modules_embedding_cudart",
                      strings_json(c->embedding, c->embedding_count));
  json_object_set_new(o, "modules_without_names", lacking_json(c));
  json_object_set_new(o, "unseen_programs", unseen_programs_json(c));
  json_object_set_new(o, "events_without_stack", json_number(c->stackless));
  json_object_set_new(o, "nested_calls", json_number(c->nested));
  json_object_set_new(o, "deep_ranges", json_number(c->deep));
  json_object_set_new(o, "dropped_events", json_number(m->total.dropped));
  json_object_set_new(o, "dropped_names_and_stacks", json_number(c->dropped_extended));
  json_object_set_new(o, "damaged_chunks", json_number(c->damaged_chunks));
  json_object_set_new(o, "torn_records", json_number(c->torn));
  json_object_set_new(o, "bytes_cut", json_number(c->bytes_cut));
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
    json_object_set_new(rest, "sites", json_number(lists[i].list->all - lists[i].list->count));
    put_sums(rest, &lists[i].list->rest);
    json_object_set_new(more, lists[i].name, rest);
  }
  json_object_set_new(o, "more", more);
  return o;
}

json_t *wr_summary_json(const wr_model *m)
{
  json_t *o = json_object();
  json_object_set_new(o, "schema", string_or_null("weir-report/1"));
  json_object_set_new(o, "trace", string_or_null(m->path));
  json_object_set_new(o, "complete", json_boolean(m->finished));
  json_object_set_new(o, "command", string_or_null(m->command));
  json_object_set_new(o, "weir_version", string_or_null(m->version));
  json_object_set_new(o, "start_realtime_ns", json_integer(m->start_realtime_ns));
  json_object_set_new(o, "duration_ns", json_integer(m->duration_ns));
  json_object_set_new(o, "no_gpu", m->no_gpu ? string_or_null(m->no_gpu) : json_null());
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
