/* watch.h: what a collector answers about the programs that it records: the verbs ps and top of its
 * control socket, and its page of metrics.
 *
 * ps answers a JSON object a line, one of each process; top one object, with the figures of all
 * (tools/weir/watch reads both). Figures are made from the first top on, or from the beginning where
 * there is a page of metrics. */
#ifndef WEIR_TOOLS_WEIR_COLLECT_WATCH_H
#define WEIR_TOOLS_WEIR_COLLECT_WATCH_H

#include "tools/weir/collect/collector.h"
#include "tools/weir/collect/metrics.h"

typedef struct watch watch;

/* Serves the requests of a collector (borrowed, and freed later than this). `trace`: its path,
 * borrowed. New. */
watch *watch_new(collector *c, const char *trace);

/* Figures are made from now on: before the first program runs they are of whole runs. */
void watch_begin(watch *w);

/* The same, and they are served as a page (owned from then on). */
void watch_metrics(watch *w, metrics *m);

/* The run has ended: what is written to a file is written for the last time. */
void watch_finish(watch *w);

void watch_free(watch *w); /* may be NULL */

#endif
