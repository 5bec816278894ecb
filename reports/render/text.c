/* text.c: a model as a page of text: its sections as tables (reports/tables/sections.h), findings and caches
 * between them. */
#include "reports/render/cache_render.h"
#include "reports/render/findings_render.h"
#include "reports/render/render.h"
#include "reports/tables/sections.h"
#include "reports/write/write.h"

static weir_status print_sections(FILE *out, const wr_tables *t, const wr_section_gaps *gaps,
                                  const wr_model *m, const wr_findings *findings,
                                  const report_settings *o)
{
  wr_page p = {.out = out,
               .width = o->width > 0 && o->width < 40 ? 40 : o->width,
               .top = m->top,
               .top_asked = o->top > 0,
               .possible = o->possible,
               .color = o->color != 0};
  wr_text_head(&p, t);
  wr_text_tables(&p, t, 0, gaps->findings);
  if (findings) wr_findings_section(&p, findings, false);
  wr_text_tables(&p, t, gaps->findings, gaps->caches - gaps->findings);
  if (m->total.events && (m->cache.rerouted || m->cache.pool_count))
    wr_cache_section(&p, &m->cache, false);
  wr_text_tables(&p, t, gaps->caches, t->count);
  return wr_page_done(&p) ? WEIR_OK : wr_tables_no_memory(t);
}

weir_status wr_render_text(FILE *out, const wr_model *m, const wr_findings *findings,
                           const report_settings *o)
{
  wr_tables t;
  wr_section_gaps gaps;
  weir_status st = wr_sections_build(&t, m, o, &gaps);
  if (!st) st = print_sections(out, &t, &gaps, m, findings, o);
  wr_tables_free(&t);
  if (!st && (ferror(out) || fflush(out)))
    st = weir_fail(WEIR_EIO, "the report on %s cannot be written", m->path);
  return st;
}
