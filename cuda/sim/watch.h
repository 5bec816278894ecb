/* watch.h: the seam between libcuda.so.1 of the software device and its libcupti.so.13.
 *
 * libcuda exports weir_sim_watch(); libcupti finds it by dlsym() and sets one watcher, which is
 * called as calls begin and end, as the device ends a piece of work, and as contexts, streams and
 * graphs come and go. Without a watcher a call costs one look at a number that is 0. A call counts
 * as watched from its beginning to its end, and work as what was asked for when it was queued.
 *
 * A call has a correlation: a number never 0, which its work has too. Calls within one of the
 * runtime's have that one's. While a watcher's function runs, what its thread calls is not
 * watched. */
#ifndef WEIR_SIM_WATCH_H
#define WEIR_SIM_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { /* what is watched: bits */
       WEIR_WATCH_CALLS = 1,
       WEIR_WATCH_COPIES = 2, /* within one device, or host and device */
       WEIR_WATCH_PEERS = 4,  /* copies between two devices */
       WEIR_WATCH_FILLS = 8,  /* memsets */
       WEIR_WATCH_KERNELS = 16,
       WEIR_WATCH_GRAPHS = 32, /* a launch of a graph is one piece of work, its nodes are none */
       WEIR_WATCH_RESOURCES = 64
};

enum weir_watch_memory { /* as CUPTI numbers them */
                         WEIR_WATCH_PAGEABLE = 1,
                         WEIR_WATCH_PINNED = 2,
                         WEIR_WATCH_DEVICE = 3,
                         WEIR_WATCH_ARRAY = 4,
                         WEIR_WATCH_MANAGED = 5
};

struct weir_watch_call {
  const char *name;    /* of the function, as it is exported */
  bool runtime;        /* it is one of the runtime's */
  const void *params;  /* a struct of its parameters, in their order */
  void *result;        /* what it answers, at the end; else NULL */
  void *context;       /* current, or NULL */
  uint32_t context_id; /* or 0 */
  uint32_t correlation;
  uint64_t began, data; /* the watcher's own, from the beginning to the end of the call; first 0 */
};

struct weir_watch_work {
  uint32_t kind; /* one bit of WEIR_WATCH_... */
  uint32_t correlation;
  uint64_t began, ended, queued; /* by the watcher's clock */
  uint32_t device, context, stream;
  uint32_t graph;   /* the executable graph that it is of; 0: none */
  uint64_t node;    /* its node; 0: none */
  uint64_t bytes;   /* of a copy or memset */
  uint8_t from, to; /* enum weir_watch_memory */
  bool async;       /* of a copy or memset */
  uint32_t value;   /* of a memset */
  uint32_t from_device, from_context, to_device, to_context; /* of a copy between devices */
  const char *name;                   /* of a kernel; lives as long as the process */
  uint32_t grid[3], block[3], shared; /* of a kernel */
};

enum weir_watch_event { /* as CUPTI numbers the callbacks of its resource domain */
                        WEIR_WATCH_CONTEXT_CREATED = 1,
                        WEIR_WATCH_CONTEXT_ENDS = 2,
                        WEIR_WATCH_STREAM_CREATED = 3,
                        WEIR_WATCH_STREAM_ENDS = 4,
                        WEIR_WATCH_GRAPH_CREATED = 9,
                        WEIR_WATCH_GRAPH_ENDS = 10,
                        WEIR_WATCH_GRAPH_CLONED = 11,
                        WEIR_WATCH_NODE_CREATED = 13,
                        WEIR_WATCH_NODE_ENDS = 14,
                        WEIR_WATCH_EXEC_CREATED = 18,
                        WEIR_WATCH_EXEC_ENDS = 19,
                        WEIR_WATCH_NODE_CLONED = 20
};

struct weir_watch_resource { /* handles of the driver; those that do not matter are NULL */
  enum weir_watch_event event;
  void *context, *stream, *graph, *original_graph, *node, *original_node, *exec;
  uint32_t node_type; /* CUgraphNodeType */
};

struct weir_watcher {
  uint64_t (*now)(void);
  void (*call_begins)(struct weir_watch_call *call);
  void (*call_ends)(struct weir_watch_call *call);
  void (*work)(const struct weir_watch_work *work); /* on the thread that did it */
  void (*resource)(const struct weir_watch_resource *resource);
};

/* Watches these from now on; the watcher stays valid for good. */
void weir_sim_watch(const struct weir_watcher *watcher, uint32_t what);

/* Numbers of handles, as work has them; 0: no such handle. A stream may be 0 or a constant of the
 * current context. */
uint32_t weir_sim_context_id(void *context);
uint32_t weir_sim_context_device(void *context, uint32_t *device); /* the context's number */
uint32_t weir_sim_stream_id(void *context, void *stream, bool per_thread);
uint64_t weir_sim_node_id(void *node);
uint32_t weir_sim_graph_id(void *graph);
uint32_t weir_sim_exec_id(void *exec);

/* For the runtime: a call of its own begins and ends, with what is called within. */
struct weir_watch_call *weir_sim_call_begins(const char *name, const void *params);
void weir_sim_call_ends(struct weir_watch_call *call, void *result);

#endif
