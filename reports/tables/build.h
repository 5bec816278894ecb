/* build.h: what the files that make the tables of each report have at hand. */
#ifndef WEIR_REPORTS_TABLES_BUILD_H
#define WEIR_REPORTS_TABLES_BUILD_H

#include "reports/model/cache.h"
#include "reports/model/model.h"
#include "reports/tables/grouped.h"
#include "reports/tables/scope.h"
#include "reports/model/device_times.h"

typedef struct wr_build {
  wr_tables *t;
  const wr_db *db;
  const wr_scope *scope;
  const report_settings *o;
  int top; /* rows of a main table; 0: all */
} wr_build;

weir_status wr_build_transfers(const wr_build *b);
weir_status wr_build_waits(const wr_build *b);
weir_status wr_build_memory(const wr_build *b);
weir_status wr_build_oom(const wr_build *b);
weir_status wr_build_leaks(const wr_build *b);
weir_status wr_build_devices(const wr_build *b);
weir_status wr_build_idle(const wr_build *b);
weir_status wr_build_coverage(const wr_build *b);
weir_status wr_build_summary(const wr_build *b);
weir_status wr_build_cache(const wr_build *b);
weir_status wr_build_findings(const wr_build *b);

/* Tables of a model, of which several reports have some. */
void wr_add_devices(const wr_build *b, const wr_model *m);
void wr_add_idle(const wr_build *b, const wr_model *m);
void wr_add_coverage(const wr_build *b, const wr_model *m);
void wr_build_memory_of_run(const wr_build *b, const wr_model *m);
void wr_add_findings(const wr_build *b, const wr_findings *f);
void wr_add_cache(const wr_build *b, const wr_cache *c); /* caches and pools are apart */
/* What "weir-report/2" has of a summary beside: all of the model. */
void wr_add_model(const wr_build *b, const wr_model *m);
void wr_add_model_places(const wr_build *b, const wr_model *m);
void wr_add_model_calls(const wr_build *b, const wr_model *m);

/* The tables of caches and pools, which several reports have. */
void wr_build_caches(const wr_build *b, const wr_cache *c);

/* "transfers_by_site" is its name, "Transfers by site" its title. */
weir_status wr_build_grouped(const wr_build *b, const wr_activity *a, const char *name,
                             const char *title, const wr_measure *measures, size_t count);

/* A note that a run has no device times, and why; `then`: what of that, "" nothing. */
void wr_note_no_device_times(const wr_build *b, const wr_device_times *t, const char *then);

/* Cells that are copies; anything. */
bool wr_cell_copies(const wr_activity_cell *cell);
bool wr_cell_any(const wr_activity_cell *cell);

#endif
