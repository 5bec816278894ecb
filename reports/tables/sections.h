/* sections.h: the sections of `weir report`, each as tables made from a model.
 *
 * A section adds its tables in the order in which text has them: one with a heading, and after it
 * those that are part of it. Nothing is added where there is nothing to state. */
#ifndef WEIR_REPORTS_SECTIONS_H
#define WEIR_REPORTS_SECTIONS_H

#include "reports/model/model.h"
#include "reports/tables/table.h"

typedef struct wr_sections {
  wr_tables *t;
  const wr_model *m;
  int depth;          /* levels of callers below a place */
  size_t top;         /* places a list, callers a level */
  bool top_asked;     /* lists that have a length of their own have this one */
  bool all_callers;   /* libraries' between the user's, too */
  bool callers_asked; /* a lone main() is shown, too */
} wr_sections;

/* The rows of a list that is `usual` long where nothing else was asked for. */
static inline size_t wr_sections_rows(const wr_sections *s, size_t usual)
{
  return s->top_asked ? s->top : usual;
}

/* The summary of a model; to be freed whatever comes of it. `findings` stand first; NULL: none were
 * looked for. Errors: ENOMEM. */
weir_status wr_sections_build(wr_tables *t, const wr_model *m, const wr_findings *findings,
                              const report_settings *o);

/* Findings and caches; `whole`: all of them, with their tables, not what a summary has. */
void wr_section_findings(wr_tables *t, const wr_findings *f, const report_settings *o, bool whole);
void wr_section_caches(wr_tables *t, const wr_cache *c, const report_settings *o, bool whole);

/* What every summary begins with, and ends with. */
void wr_section_run(const wr_sections *s);
void wr_section_seen(const wr_sections *s);

void wr_section_ranges(const wr_sections *s);
void wr_section_transfers(const wr_sections *s);
void wr_section_device_times(const wr_sections *s);
void wr_section_memory(const wr_sections *s);
void wr_section_in_use(const wr_sections *s, int device); /* part of the memory's */
void wr_section_named(const wr_sections *s);
void wr_section_tensors(const wr_sections *s);
void wr_section_waiting(const wr_sections *s);
void wr_section_wait_parts(const wr_sections *s);
void wr_section_functions(const wr_sections *s);
void wr_section_kernels(const wr_sections *s);
void wr_section_graphs(const wr_sections *s);
void wr_section_places(const wr_sections *s);
void wr_section_left(const wr_sections *s); /* live at exit */

/* Sentences on what of waits is not known. */
void wr_add_unjudged(const wr_sections *s, wr_named_table *t);

/* ---- places.c -------------------------------------------------------------------------------- */

/* The columns of a table of places. */
typedef struct wr_place_columns {
  const char *unit;  /* heading of the counts: "copies" */
  const char *first; /* heading of a first column, or NULL */
  bool bytes, time, function, direction;
  bool about;        /* with `time`: it is an estimate, and its mean stands next to it */
  const char *where; /* heading of the places: "called in" */
} wr_place_columns;

wr_named_table *wr_places_add(const wr_sections *s, const char *name, const char *title,
                              const wr_place_columns *c);
/* Rows of a list, `first` in the first column, each with its callers below; text has the first
 * `most`, and a row of the sums of the others. */
void wr_places_rows(const wr_sections *s, wr_named_table *t, const wr_place_columns *c,
                    const wr_sites *list, size_t most, const char *first);
/* A table of its own, where there are any; its aside is how many of them it has, where it has not
 * all. */
wr_named_table *wr_places_table(const wr_sections *s, const char *name, const char *title,
                                const wr_place_columns *c, const wr_sites *list);
void wr_put_frame(wr_named_table *t, const wr_frame_name *f);

#endif
