/* graph.h: what launches of graphs ran.
 *
 * A spool holds of an executable graph which nodes it had when it was made, and what was changed
 * since (graph_fact); a launch is an event that names it. Records of different threads come in any
 * order, so the two are put together when all is there: in order of time, every launch gets the
 * *content* that the graph had then. Contents that are alike are one, a row for all its nodes that
 * are alike, so that a million launches of a large graph cost a million narrow rows. */
#ifndef WEIR_REPORTS_GRAPH_H
#define WEIR_REPORTS_GRAPH_H

#include "reports/import/importer.h"

/* Takes a GRAPH record. */
weir_status wr_graph_take(wr_spool *s, wr_thread *t, const trace_event *head, const void *payload,
                          size_t bytes);

/* Fills graph_work and graph_launch from all other tables; nested flushes, the last is the
 * caller's. */
weir_status wr_graph_launches(wr_batch *batch);

/* An unfinished trace has none of that yet: makes it in temporary tables of the same names. */
weir_status wr_graph_launches_temporary(const wr_db *db);

#endif
