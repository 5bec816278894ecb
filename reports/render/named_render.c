/* named_render.c: memory with names, as text and as JSON. */
#include "reports/render/named_render.h"
#include "reports/model/sites.h"

enum { NAMED_ROWS = 12 };

void wr_named_section(wr_page *p, const wr_named *n)
{
  size_t most = p->top_asked ? (size_t)p->top : NAMED_ROWS,
         rows = n->count < most ? n->count : most;
  if (!n->count) return;
  wr_page_heading(p, "Named memory", "by NVTX");
  wr_page_begin(p, "flrrrr");
  ROW(p, "name", "memory", "blocks", "allocated", "peak", "live at exit");
  for (size_t i = 0; i < rows; i++) {
    const wr_named_sum *s = &n->sum[i];
    wr_grid_row(&p->grid);
    CELL(p, "%s", *s->name ? s->name : "(no text)");
    CELL(p, s->device < 0 ? "%s" : "%s, GPU %d", wr_mem_name(s->mem), s->device);
    CELLS(p, COUNT(s->blocks), BYTES(s->bytes), BYTES(s->peak_bytes),
          s->live_bytes ? BYTES(s->live_bytes) : "0");
  }
  wr_page_end(p);
  if (n->count > rows) LINE(p, false, "… and %zu more", n->count - rows);
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
