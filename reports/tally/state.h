/* state.h: what a tally holds, all of it: what is kept in memory, and what its file is made of.
 *
 * What is kept, of one process (a spool is a process's):
 *   - the live set: a block for each allocation that was not freed, with its place
 *     (wr_tally_block)
 *   - totals: a row for all calls that have function, stack, kind, outcome, device and kind of
 *     memory in common (wr_tally_total)
 *   - accounts: allocations, bytes, live bytes and the most there ever was, by device and kind of
 *     memory (wr_tally_account)
 *   - NVTX ranges that are open (wr_open_range), nodes of executable graphs
 *     (wr_tally_graph, wr_node)
 *   - dictionaries: stacks, modules, names, Python frames, contexts, streams, threads
 *   - the latest of what caches, pools and devices have (wr_tally_gauge)
 *   - memory events that came before others that are older (wr_pending)
 * That is enough to make records of it again (replay.h), which a trace of what comes after begins
 * with: so calls that are still of account are kept with all that their records had.
 *
 * What is bounded by what. By the program's own state, and by nothing else: blocks, open ranges,
 * graphs, contexts, streams, modules that are loaded, threads there ever were (48 bytes each: where
 * reading goes on), pools and devices. By wr_tally_options: totals, names and modules that are
 * unloaded. What is beyond goes, the least recently used first, and never what a live block or
 * something kept needs: a total is added to the one of all its kin without a stack (WR_STACK_FORGOTTEN), so that every sum stays
 * what it was; then stacks that no total, block or pending event has; then Python frames that no
 * stack has. Pending events: 2048 a thread, as the reader delivers them.
 *
 * Words of the spool that are used: of each record its kind, flags, api, start, duration, status,
 * stack with the context's number, device, detail, mem, a, b, bytes, stream; of the header pid,
 * start_time and boot_id (whose it is) and clock_hint_hz. One word of the spool is changed:
 * `stacks_anew`, by a commit after which a stack that went may be used again. The program then
 * records its stacks once more. Calls until it has seen that have WR_STACK_FORGOTTEN, and
 * `lost_stacks` counts them.
 *
 * Form. Every entry is plain numbers and begins with its key, a hash of what it is found by (never
 * 0); what belongs together is found by key, so that no number in a file can lead anywhere, but for
 * the ranges of text, frames and nodes, which are checked. Times are ticks of the spool's clock. */
#ifndef WEIR_REPORTS_TALLY_STATE_H
#define WEIR_REPORTS_TALLY_STATE_H

#include <stdbool.h>
#include <stdint.h>
#include "core/trace/event.h"
#include "reports/tally/table.h"

enum { WR_STACK_FORGOTTEN = 1 /* in place of a stack's key */ };

/* A piece of wr_tally_state.text. */
typedef struct wr_piece_of_text {
  uint32_t at, bytes;
} wr_piece_of_text;

typedef struct wr_tally_thread {
  uint64_t key;
  uint64_t position; /* of the spool's reader: up to there it is in this state */
  uint32_t serial, tid;
  uint32_t open;          /* ranges pushed and not popped */
  uint32_t first, newest; /* of its pending events, index + 1; 0: none */
  uint32_t pad;
  wr_piece_of_text name;
} wr_tally_thread;

enum { WR_TOTAL_FLAGS = WEIR_EVF_CAPTURE | WEIR_EVF_IMPLICIT_SYNC | WEIR_EVF_CACHED };

typedef struct wr_tally_total {
  uint64_t key;
  uint64_t stack; /* key of wr_tally_stack; 0: none, WR_STACK_FORGOTTEN */
  uint64_t count, bytes, ticks, longest;
  uint64_t last; /* start of the latest */
  uint16_t api, status;
  uint8_t kind, flags; /* event_kind; those of WR_TOTAL_FLAGS that it has */
  uint8_t detail, mem; /* as in the event; 0 where they are no detail and memory */
  uint8_t device, src_device;
  uint8_t pad[6];
} wr_tally_total;

/* What a pointer is a name among. */
typedef enum wr_space { WR_ADDRESS, WR_ARRAY, WR_REGISTRATION, WR_PHYSICAL, WR_SPACES } wr_space;

typedef struct wr_tally_block {
  uint64_t key; /* of space and address */
  uint64_t address, bytes;
  uint64_t time; /* the allocation's return; it began at `start` */
  uint64_t start;
  uint64_t stack;  /* as of a total */
  uint32_t thread; /* serial */
  uint16_t api;
  uint8_t kind; /* ALLOC or HOSTREG */
  uint8_t device, mem, context;
  uint8_t space;    /* wr_space */
  uint8_t replaced; /* 1: it took the place of one whose free was not seen so far */
  uint8_t of_graph; /* 1: a launch allocated it: the call is the launch, */
  uint8_t flags, detail;
  uint8_t src_device; /* and its device is here, */
  uint64_t b;         /* and its executable graph here */
  uint64_t stream;
} wr_tally_block;

/* Classes of an account: memory_kind, and two more. */
enum {
  WR_ACCOUNT_REGISTERED = 11,
  WR_ACCOUNT_DEVICE_SIDE = 12,
  WR_ACCOUNT_CLASSES = 13,
  WR_ACCOUNT_DEVICES = 257
};
enum { WR_ALL_DEVICES = 256 };

typedef struct wr_tally_account {
  uint64_t key;
  uint64_t allocs, bytes, live, blocks; /* live, blocks: now */
  uint64_t peak, peak_time;             /* the most that was live; since when */
  uint16_t device;                      /* ordinal, WEIR_DEVICE_NONE, WR_ALL_DEVICES */
  uint16_t class;
  uint32_t pad;
} wr_tally_account;

/* A memory event, a change or a launch of a graph, that waits until none can be older. */
typedef struct wr_pending {
  uint64_t time; /* when it counts: an allocation's return, a free's call */
  uint64_t start, address, bytes, stack;
  uint32_t thread;
  uint16_t api;
  uint8_t kind; /* event_kind: ALLOC, FREE, HOSTREG, RESET, GRAPH; CALL: see `call` */
  uint8_t device, mem, context;
  uint8_t detail;                    /* graph_fact; of a CALL wr_graph_call */
  uint8_t complete;                  /* of a GRAPH: its last record has come */
  uint8_t flags, reason, src_device; /* of the event: flags, detail, source's device */
  uint8_t pad;
  uint32_t first, count; /* of a GRAPH: its nodes, in wr_tally_state.node */
  uint32_t before,
      after;      /* in the list of its thread, index + 1; unused: after is the next unused */
  uint64_t about; /* `b` of the record */
  uint64_t stream, ticks;
} wr_pending;

/* A call that succeeded, as its record had it. */
typedef struct wr_call {
  uint64_t start, ticks, a, b, bytes, stream;
  uint64_t stack;  /* as of a total */
  uint32_t thread; /* serial */
  uint16_t api;
  uint8_t kind, flags;
  uint8_t device, src_device, detail, mem, context;
  uint8_t pad[3];
} wr_call;

enum wr_graph_call { WR_GRAPH_LAUNCHED = 1, WR_GRAPH_DESTROYED = 2 };

typedef struct wr_open_range {
  uint64_t key;  /* of thread and depth, or of the number of one that was started */
  uint64_t name; /* key of wr_tally_name; 0: none */
  uint64_t number, start, payload;
  uint32_t thread, domain;
  uint8_t payload_type, started; /* 1: by a start, 2: its end came first */
  uint8_t pad[6];
} wr_open_range;

typedef struct wr_tally_graph {
  uint64_t key, exec;      /* exec: its handle */
  uint64_t graph, changed; /* what it was made from or changed to; ticks */
  uint32_t first, count;   /* nodes */
  uint32_t known, thread;  /* 1: these are all its nodes; serial */
} wr_tally_graph;

typedef struct wr_node {
  graph_node_info info;
  uint64_t disabled; /* 1 */
} wr_node;

typedef struct wr_tally_stack {
  uint64_t key;
  uint64_t met;          /* ticks: when it was recorded first */
  uint32_t first, depth; /* in wr_tally_state.frame */
  uint32_t unloads;      /* modules that were gone when it was recorded */
  uint32_t sweep;        /* when it was recorded or last said again */
} wr_tally_stack;

/* What a thread calls a stack. */
typedef struct wr_local_stack {
  uint64_t key;
  uint64_t stack;
  uint32_t thread, id;
  uint32_t sweep, pad; /* when it was last used */
} wr_local_stack;

typedef struct wr_tally_module {
  uint64_t key; /* of the base while it is loaded */
  module_info info;
  module_stamp stamp;
  uint64_t loaded, unloaded; /* unloaded: 0, it is there */
  wr_piece_of_text build_id, path;
  uint32_t unloads;        /* modules that were gone before its own end, */
  uint32_t unloads_before; /* and when it was loaded */
} wr_tally_module;

typedef struct wr_tally_name {
  uint64_t key;
  uint64_t handle;     /* of a range's name its number in the thread */
  uint64_t bytes;      /* of a heap; of a range's name category << 32 | color */
  uint64_t said, used; /* ticks: when it was recorded; the latest use */
  wr_piece_of_text domain, text;
  uint32_t thread; /* of a range's name */
  uint8_t kind;    /* name_kind; WR_NAME_RANGE */
  uint8_t pad[3];
} wr_tally_name;

enum { WR_NAME_RANGE = 255 };

typedef struct wr_python_frame {
  uint64_t key, number;
  wr_piece_of_text function, file;
  uint32_t line;
  uint32_t sweep; /* when it was recorded */
} wr_python_frame;

typedef struct wr_tally_context {
  uint64_t key, handle;
  wr_call call; /* the first that was seen of it */
  uint8_t number, device;
  uint8_t pad[6];
} wr_tally_context;

typedef struct wr_tally_stream {
  uint64_t key, handle;
  wr_call call; /* that made it */
} wr_tally_stream;

/* The latest of the facts that say how much there is, by device, kind of memory and pool:
 * WEIR_CACHE_RESERVED, POOL, POOL_PEAK, DEVICE, GRAPHS. */
typedef struct wr_tally_gauge {
  uint64_t key;
  wr_call call;               /* its record, which is of no call */
  uint64_t a, b, bytes, time; /* as in the event */
  uint8_t fact;               /* cache_fact */
  uint8_t device, mem;
  uint8_t pad[5];
} wr_tally_gauge;

/* The numbers there is one of. */
typedef struct wr_tally_facts {
  uint64_t key;           /* 1 */
  uint64_t events;        /* taken, facts included, ranges not */
  uint64_t unloads;       /* modules gone so far */
  uint64_t latest_range;  /* ticks: the latest begin or end of one */
  uint64_t settled;       /* ticks: memory events before it have been applied */
  uint64_t unknown_frees; /* of what was not known to be live */
  uint64_t replaced;      /* blocks whose address came again, and the free of them did not */
  uint64_t late;          /* events that came after later ones had been applied */
  uint64_t lost_stacks;   /* events whose stack is not known any more */
  uint64_t forgotten_totals, forgotten_names, forgotten_modules;
  uint32_t sweeps, pad;
  uint8_t
      home[256]; /* of a context's number: device, 255 not known; key of pinned memory's reset */
} wr_tally_facts;

/* The tables, in the order in which the file has them: name, type of an entry. */
#define WR_TALLY_TABLES(X)                                                                         \
  X(facts, wr_tally_facts)                                                                         \
  X(thread, wr_tally_thread)                                                                       \
  X(total, wr_tally_total)                                                                         \
  X(block, wr_tally_block)                                                                         \
  X(replaced, wr_tally_block) /* what a block of the same key replaced, its free not seen */       \
  X(account, wr_tally_account)                                                                     \
  X(range, wr_open_range)                                                                          \
  X(graph, wr_tally_graph)                                                                         \
  X(stack, wr_tally_stack)                                                                         \
  X(local, wr_local_stack)                                                                         \
  X(module, wr_tally_module)                                                                       \
  X(name, wr_tally_name)                                                                           \
  X(python, wr_python_frame)                                                                       \
  X(context, wr_tally_context)                                                                     \
  X(stream, wr_tally_stream)                                                                       \
  X(gauge, wr_tally_gauge)

/* And the arrays without keys: what waits, and what entries have pieces of. */
#define WR_TALLY_ARRAYS(X)                                                                         \
  X(pending, wr_pending)                                                                           \
  X(node, wr_node)                                                                                 \
  X(frame, uint64_t)                                                                               \
  X(text, char)

typedef struct wr_tally_state {
#define WR_TALLY_MEMBER(name, type) wr_table name;
  WR_TALLY_TABLES(WR_TALLY_MEMBER) WR_TALLY_ARRAYS(WR_TALLY_MEMBER)
#undef WR_TALLY_MEMBER
} wr_tally_state;

#endif
