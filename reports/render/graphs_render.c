/* graphs_render.c: launches of graphs by place, as text and as JSON. */
#include "reports/render/graphs_render.h"

enum { GRAPH_ROWS = 12 };

static const char *place_of(const wr_graphs *g, size_t place, const char *none)
{
  return place && place <= g->places ? g->place[place] : none;
}

void wr_graphs_section(wr_page *p, const wr_graphs *g)
{
  size_t most = p->top_asked ? (size_t)p->top : GRAPH_ROWS, n = g->count < most ? g->count : most;
  if (!g->count) return;
  wr_page_heading(p, "Graphs", "by place; what all launches ran together");
  wr_page_begin(p, "rrrrrrfl");
  ROW(p, "launches", "graphs", "updates", "kernels", "copied", "may have run", "launched in",
      "captured or made in");
  for (size_t i = 0; i < n; i++) {
    const wr_graph_sum *s = &g->sum[i];
    wr_grid_row(&p->grid);
    CELLS(p, COUNT(s->launches), COUNT(s->graphs), COUNT(s->updates), COUNT(s->kernels),
          s->copies ? BYTES(s->copy_bytes) : "-", s->maybe ? COUNT(s->maybe) : "-");
    CELL(p, "%s", place_of(g, s->launched, "?"));
    CELL(p, "%s", place_of(g, s->captured ? s->captured : s->made, "?"));
  }
  wr_page_end(p);
  if (g->count > n) LINE(p, false, "… and %zu more", g->count - n);
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
