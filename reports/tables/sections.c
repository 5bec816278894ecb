/* sections.c: which sections a summary has, and in which order: what a person wants first on
 * top. */
#include <string.h>
#include "reports/tables/sections.h"

enum { DEPTH = 2 /* levels of callers */ };

/* Of a run without an event. */
static void add_nothing(const wr_sections *s)
{
  wr_named_table *t = wr_tables_add_sentences(s->t, "nothing", "no CUDA calls");
  wr_table_before(t, false, "Nothing that was traced called a CUDA function that Weir wraps.");
  wr_section_ranges(s);
  wr_section_tensors(s);
}

static bool any_kernel_name(const wr_kernels *k)
{
  return k->count > 1 || (k->count && k->sum[0].name);
}

static void add_sections(const wr_sections *s, const report_settings *o)
{
  wr_section_ranges(s);
  wr_section_transfers(s);
  wr_section_device_times(s);
  wr_section_memory(s);
  wr_section_named(s);
  wr_section_tensors(s);
  wr_section_waiting(s);
  wr_section_wait_parts(s);
  if (s->m->cache.rerouted || s->m->cache.pool_count)
    wr_section_caches(s->t, &s->m->cache, o, false);
  wr_section_functions(s);
  if (any_kernel_name(&s->m->kernels)) wr_section_kernels(s);
  wr_section_graphs(s);
  wr_section_places(s);
  wr_section_left(s);
}

weir_status wr_sections_build(wr_tables *t, const wr_model *m, const wr_findings *findings,
                              const report_settings *o)
{
  *t = (wr_tables){.report = "summary", .trace = wr_text(m->path, strlen(m->path), true)};
  if (!t->trace) return wr_tables_no_memory(t);
  const wr_sections s = {.t = t,
                         .m = m,
                         .depth = o->depth > 0 ? o->depth
                                  : o->depth   ? 0
                                               : DEPTH,
                         .top = (size_t)m->top,
                         .top_asked = o->top > 0,
                         .all_callers = o->innermost_sites,
                         .callers_asked = o->depth > 0};
  wr_section_run(&s);
  if (findings) wr_section_findings(t, findings, o, false);
  if (m->total.events)
    add_sections(&s, o);
  else
    add_nothing(&s);
  wr_section_seen(&s);
  return t->failed ? wr_tables_no_memory(t) : WEIR_OK;
}
