/* run_finder.c: runs of rows that are in order of time, but for rows within a window; found row by row.
 *
 * A new run begins where a row began before all rows of the run that are a window or more before it. */
#include "reports/base/util.h"
#include "reports/events/private.h"

bool wr_runs_add(wr_events *x, wr_run_finder *f, int64_t id, int64_t start)
{
  wr_event_run *run = x->run_count ? &x->runs[x->run_count - 1] : NULL;
  bool fits = run && (f->rows < WR_RUN_WINDOW || start >= f->latest[f->rows % WR_RUN_WINDOW]);
  if (!fits) {
    if (!wr_grow(&x->runs, &x->run_capacity, x->run_count + 1, sizeof(*run))) return false;
    run = &x->runs[x->run_count++];
    *run = (wr_event_run){.first = id, .from = start, .until = start};
    f->rows = 0;
  }
  run->last = id;
  run->disordered |= start < run->until;
  if (start < run->from) run->from = start;
  if (start > run->until) run->until = start;
  f->latest[f->rows++ % WR_RUN_WINDOW] = run->until;
  return true;
}
