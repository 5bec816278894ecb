/* ranges_render.c: the ranges of a model, as text and as JSON. */
#include "reports/render/ranges_render.h"

enum { RANGE_ROWS = 12 };

void wr_ranges_section(wr_page *p, const wr_ranges *r)
{
  size_t most = p->top_asked ? (size_t)p->top : RANGE_ROWS, n = r->count < most ? r->count : most;
  if (!r->count) return;
  wr_page_heading(p, "By range", "NVTX; with what is nested in it");
  wr_page_begin(p, r->device_times ? "frrrrrrrrr" : "frrrrrrrr");
  ROW(p, "range", "count", "time", "calls", "copied", "waits", "waiting", "launches", "peak");
  if (r->device_times) CELLS(p, "on device");
  for (size_t i = 0; i < n; i++) {
    const wr_range_sum *s = &r->sum[i];
    wr_grid_row(&p->grid);
    CELL(p, *s->domain ? "%s:%s" : "%s%s", s->domain, *s->text ? s->text : "(no text)");
    CELLS(p, COUNT(s->ranges), DURATION(s->ns), COUNT(s->calls),
          s->copies ? BYTES(s->copy_bytes) : "-", COUNT(s->waits),
          s->waits ? DURATION(s->wait_ns) : "-", COUNT(s->launches),
          s->peak_bytes ? BYTES(s->peak_bytes) : "-");
    if (r->device_times) CELLS(p, s->device_ns ? DURATION(s->device_ns) : "-");
  }
  wr_page_end(p);
  if (r->count > n) LINE(p, false, "… and %zu more", r->count - n);
}

json_t *wr_ranges_json(const wr_ranges *r)
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
