/* graph.h: what the launches of a graph will do: read out of the graph when it is instantiated or
 * updated, and noted when a node of the executable graph is changed. A launch is one event with the
 * handle of the executable graph; who reads the trace puts the two together.
 *
 * The driver is asked for the graph's nodes, in the program's call and after its event: that holds
 * whoever made the nodes, by capture, one by one, or as a clone. It costs some tenths of a
 * microsecond a node, where the instantiation itself costs more. None of the questions is among the
 * calls that a capture forbids; a thread of which that is not sure asks in relaxed mode.
 *
 * An executable graph cannot be asked for its nodes: its changes are taken from the arguments of
 * the calls that make them. */
#ifndef WEIR_INTERPOSE_GRAPH_H
#define WEIR_INTERPOSE_GRAPH_H

#include "interpose/record/copy_args.h"
#include "interpose/record/event_fill.h"

/* What a copy, or a memset, that is not run now would have in its event (extract_copy.c). */
void copy_describe(const hook_call *c, const copy_args *a, event_fields *e);
void memset_describe(const hook_call *c, uint64_t dst, uint64_t bytes, event_fields *e);

#endif
