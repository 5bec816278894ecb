/* calls_json.c: the ranges of a model, its launches of graphs by place. */
#include "reports/write/report_json.h"

json_t *wr_ranges_json(const wr_named_ranges *r)
{
  json_t *a = json_array();
  for (size_t i = 0; i < r->count; i++) {
    const wr_range_sum *s = &r->sum[i];
    const struct {
      const char *name;
      uint64_t value;
    } numbers[] = {
        {"ranges", s->ranges},        {"open", s->open},       {"ns", s->ns},
        {"calls", s->calls},          {"copies", s->copies},   {"copy_bytes", s->copy_bytes},
        {"waits", s->waits},          {"wait_ns", s->wait_ns}, {"launches", s->launches},
        {"device_ns", s->device_ns},  {"allocs", s->allocs},   {"alloc_bytes", s->alloc_bytes},
        {"peak_bytes", s->peak_bytes}};
    json_t *o = json_object();
    json_object_set_new(o, "domain", json_string(s->domain));
    json_object_set_new(o, "text", json_string(s->text));
    for (size_t k = 0; k < sizeof(numbers) / sizeof(numbers[0]); k++)
      json_object_set_new(o, numbers[k].name, json_integer((json_int_t)numbers[k].value));
    json_array_append_new(a, o);
  }
  return a;
}

static const char *place_of(const wr_graphs *g, size_t place, const char *none)
{
  return place && place <= g->places ? g->place[place] : none;
}

json_t *wr_graphs_json(const wr_graphs *g)
{
  json_t *a = json_array();
  for (size_t i = 0; i < g->count; i++) {
    const wr_graph_sum *s = &g->sum[i];
    const struct {
      const char *name;
      uint64_t value;
    } numbers[] = {
        {"launches", s->launches},     {"unknown", s->unknown}, {"graphs", s->graphs},
        {"updates", s->updates},       {"kernels", s->kernels}, {"copies", s->copies},
        {"copy_bytes", s->copy_bytes}, {"memsets", s->memsets}, {"may_have_run", s->maybe}};
    json_t *o = json_object();
    for (size_t k = 0; k < sizeof(numbers) / sizeof(numbers[0]); k++)
      json_object_set_new(o, numbers[k].name, json_integer((json_int_t)numbers[k].value));
    json_object_set_new(o, "launched_in", json_string(place_of(g, s->launched, "?")));
    json_object_set_new(o, "captured_in",
                        s->captured ? json_string(place_of(g, s->captured, "?")) : json_null());
    json_object_set_new(o, "made_in", json_string(place_of(g, s->made, "?")));
    json_array_append_new(a, o);
  }
  return a;
}
