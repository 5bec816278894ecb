/* view.h: the figures of the programs of a folder, for pages of metrics and `weir top`.
 *
 * Of a process that has ended its sums stay: of the VIEW_ENDED that ended last apart, of all others
 * together; the images that one process has been are one. What tallies that begin late did not see
 * is in none; who prints the figures prints since when they are, too. */
#ifndef WEIR_TOOLS_WEIR_COLLECT_VIEW_H
#define WEIR_TOOLS_WEIR_COLLECT_VIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "reports/metrics/figures.h"
#include "tools/weir/collect/live.h"

enum { VIEW_ENDED = 16 };

typedef struct view view;

typedef struct view_process {
  uint32_t pid;              /* 0: several that have ended */
  uint32_t rank;             /* and 1; 0: none */
  const char *program;       /* its file; "": not known */
  const wr_figures *figures; /* of all its images */
  uint64_t dropped;          /* events */
  uint64_t spool_bytes;      /* that its spool takes up */
  bool ended;
} view_process;

/* A view of what a live has (borrowed): new. */
view *view_new(live *l);

/* Reads on, and makes all figures (borrowed until the next call). */
const view_process *view_look(view *v, unsigned *count);

/* When counting began, CLOCK_REALTIME ns, where some of it began after its program did; 0: nowhere. */
uint64_t view_since(const view *v);

void view_free(view *v); /* may be NULL; before its live */

#endif
