/* graph.h: CUDA graphs: work of a stream recorded once and replayed many times. Included by weir.h.
 *
 * Between begin and end what is given to the capturing stream is not done but recorded; a replay
 * does all of it again, with the same addresses and the same arguments, for the cost of one launch.
 * Data goes in by being copied into the memory that the graph reads, and comes out of the memory
 * that it writes. Semantics follow torch.cuda.CUDAGraph.
 *
 * Memory. What is allocated meanwhile comes from a private pool (pools.h), which keeps it as long
 * as the graph, also what is freed during the capture. Memory from outside that the graph uses must
 * stay allocated while the graph is replayed. A replay may run in any stream; who uses its results
 * elsewhere waits for it there, as for any work.
 *
 * What cannot be captured is refused and leaves the capture as it is: to wait for the capturing
 * stream or to ask it (weir_stream_synchronize, weir_synchronize, reading a tensor), and copies
 * from or to memory that is not page-locked. Other streams join by waiting for
 * the capturing one (weir_stream_wait_stream, weir_event_wait), and before the end it must wait for
 * each of them.
 *
 * Random numbers. A replay takes the next ones of each generator that was used in the capture, with
 * the seed that it has then, as the same calls would without a graph; the capture takes none. (A
 * capture that the program began with CUDA's own functions repeats its numbers.) */
#ifndef WEIR_GRAPH_H
#define WEIR_GRAPH_H

#include <stdbool.h>
#include "core/base/status.h"
#include "core/weir/device.h"
#include "core/weir/pools.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What the program may do during a capture (values as CUstreamCaptureMode's): nothing that may be
 * unsafe, in no thread; not in the capturing thread; anything, and the end may be in another
 * thread. Calls of Weir's are safe in all modes. */
typedef enum weir_capture_mode {
  WEIR_CAPTURE_GLOBAL = 0,
  WEIR_CAPTURE_THREAD_LOCAL = 1,
  WEIR_CAPTURE_RELAXED = 2
} weir_capture_mode;

typedef struct weir_graph weir_graph;

/* *out is new: weir_graph_release() it. Errors: ENOMEM. */
WEIR_PUBLIC weir_status weir_graph_new(weir_graph **out);
/* Captures the current stream, of the current CUDA device. pool: another graph's (it gets one use
 * more), NULL: one of its own. Errors: EINVAL ("CUDA graphs must be captured on a non-default
 * stream. (However, after capture, it's ok to replay them on the default stream.)"; the graph has
 * been captured already), ENOTSUP (a backend without graphs), ENOMEM, ELIMIT, ECUDA; nothing has
 * changed. */
WEIR_PUBLIC weir_status weir_graph_capture_begin(weir_graph *graph, weir_graph_pool *pool,
                                                 weir_capture_mode mode);
/* Ends the capture and makes the graph ready. Errors: EINVAL ("Capture must end on the same stream
 * it began on."), where it goes on; ECUDA (something that cannot be captured was tried, a joined
 * stream was not waited for), after which nothing is captured and the graph is as new. */
WEIR_PUBLIC weir_status weir_graph_capture_end(weir_graph *graph);
/* Does the work in the current stream of the graph's device. Errors: EINVAL ("Called
 * CUDAGraph::replay without a preceding successful capture."), ECUDA. */
WEIR_PUBLIC weir_status weir_graph_replay(weir_graph *graph);
/* The pool of a captured graph (borrowed, until it is reset), to be given to another's begin: the
 * two are then to be replayed in the order of their captures. Errors: EINVAL. */
WEIR_PUBLIC weir_status weir_graph_memory(weir_graph_pool **out, weir_graph *graph);
/* Forgets what was captured, and ends a capture: the graph is as new. Its pool's memory serves
 * others once its replays are done and no other graph uses it; blocks that are allocated stay.
 * Errors: ECUDA. */
WEIR_PUBLIC weir_status weir_graph_reset(weir_graph *graph);
/* Steals the graph, and resets it; NULL is nothing. */
WEIR_PUBLIC void weir_graph_release(weir_graph *graph);
/* WEIR_GRAPH graph = NULL; is released at the end of its block. */
typedef weir_graph *weir_graph_owned;
static inline void weir_graph_drop(weir_graph **graph)
{
  weir_graph_release(*graph);
  *graph = NULL;
}
#define WEIR_GRAPH __attribute__((cleanup(weir_graph_drop))) weir_graph_owned
/* Whether the stream, NULL: the current one, is being captured, by whomever. */
WEIR_PUBLIC weir_status weir_stream_is_capturing(bool *out, weir_stream *stream);

#ifdef __cplusplus
}
#endif

#endif
