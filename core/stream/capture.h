/* capture.h: what takes part in a graph, in addition to the work that is recorded.
 *
 * A replay does recorded work with recorded arguments. What is to differ from replay to replay (the
 * place in a generator's stream) is read from device memory, which its part of the graph writes, in
 * the replay's stream, before each replay. */
#ifndef WEIR_STREAM_CAPTURE_H
#define WEIR_STREAM_CAPTURE_H

#include "core/weir/graph.h"
#include "core/weir/stream.h"

typedef struct graph_part {
  struct graph_part *next;                        /* of the graph */
  const void *key;                                /* whose part it is; compared only */
  weir_status (*replay)(struct graph_part *part); /* before a replay in the current stream */
  void (*drop)(struct graph_part *part);          /* steals it: the graph is reset */
} graph_part;

/* *out: key's part (borrowed, as long as the graph is not reset) of the graph that `stream` is
 * captured into, or has joined; made by `make` at first, whose `next` and `key` are filled here.
 * NULL: no capture that weir_graph_capture_begin() began. Any thread. Errors: make's. */
weir_status graph_part_of(graph_part **out, weir_stream *stream, void *key,
                          weir_status (*make)(graph_part **out, void *key));

#endif
