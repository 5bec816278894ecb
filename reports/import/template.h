/* template.h: what calls have in common.
 *
 * A program makes few kinds of calls very often: of 2.1 M events of a training run all but time,
 * addresses and sizes make 99 distinct tuples. Such a tuple is a *template*, a row of its own, and
 * an event is a narrow row that names it. Templates that are alike may be two rows: nothing is
 * wrong then but room, so the table here may forget, and an importer that goes on with a trace
 * begins with none.
 *
 * Resets and cache facts are looked for one by one, by readers who want none of the other events:
 * their templates have negative numbers, and the one index is of events with such. */
#ifndef WEIR_REPORTS_TEMPLATE_H
#define WEIR_REPORTS_TEMPLATE_H

#include "core/trace/event.h"
#include "core/base/map.h"
#include "reports/import/batch.h"
#include "reports/import/event_columns.h"

/* Who called from where: rows; stack 0: none. */
typedef struct wr_caller {
  int64_t process, thread, stack;
} wr_caller;

typedef struct wr_templates {
  hash_map known; /* hash of what a template has -> its number */
  int64_t count;  /* templates in the trace: the last number, its sign apart */
} wr_templates;

/* The number of the template of `e`, made (with its row) where it is not known.
 * Errors: ENOMEM. */
weir_status wr_template_of(wr_templates *t, wr_batch *batch, const wr_caller *who,
                           const trace_event *e, int64_t *id);

#endif
