/* model.h: everything a summary says, computed once; text and JSON only print it.
 *
 * The numbers come from one pass over the events, one over the blocks, and small tables. Which
 * events count where is defined in SCHEMA.md ("What the report counts"); the words there and the
 * names here are the same. */
#ifndef WEIR_REPORTS_MODEL_H
#define WEIR_REPORTS_MODEL_H

#include "core/trace/api.h"
#include "reports/model/cache.h"
#include "reports/model/device_times.h"
#include "reports/events/listen.h"
#include "reports/import/schema.h"
#include "reports/model/in_use.h"
#include "reports/model/graphs.h"
#include "reports/model/kernels.h"
#include "reports/model/named.h"
#include "reports/model/ranges.h"
#include "reports/model/tensors.h"
#include "reports/base/util.h"

/* clang-format off */
/* The totals of a trace, in the order in which JSON shows them. */
#define WR_TOTAL_MAP(X)                                                                            \
  X(alloc_calls) X(alloc_bytes) X(free_calls) X(peak_bytes) X(peak_at_ns)                          \
  X(live_at_exit_bytes) X(live_at_exit_blocks)                                                     \
  X(pinned_alloc_calls) X(pinned_alloc_bytes) X(pinned_free_calls) X(pinned_peak_bytes)            \
  X(pinned_live_at_exit_bytes) X(register_calls) X(register_bytes)                                 \
  X(imported_calls) X(imported_bytes) X(imported_peak_bytes) X(imported_live_at_exit_bytes)        \
  X(h2d_calls) X(h2d_bytes) X(d2h_calls) X(d2h_bytes) X(d2d_calls) X(d2d_bytes)                    \
  X(p2p_calls) X(p2p_bytes) X(h2h_calls) X(h2h_bytes) X(other_copy_calls) X(other_copy_bytes)      \
  X(memset_calls) X(memset_bytes)                                                                  \
  X(sync_explicit_calls) X(sync_explicit_ns) X(sync_implicit_calls) X(sync_implicit_ns)            \
  X(longest_wait_ns)                                                                               \
  X(init_calls) X(init_ns) X(threads) X(thread_time_ns)                                            \
  X(launches) X(launches_unread) X(events) X(dropped)                                              \
  X(failed_calls) X(captured_events) X(captured_copies) X(captured_copy_bytes)                     \
  X(captured_memsets) X(captured_launches) X(graph_launches) X(graph_launches_unknown)             \
  X(graph_copies) X(graph_copy_bytes) X(graph_memsets) X(graph_memset_bytes) X(graph_kernels)      \
  X(graph_host_functions) X(graph_allocs) X(graph_alloc_bytes) X(graph_conditional_nodes)          \
  X(unmatched_frees)                                                                               \
  X(weir_reserved_peak_bytes) X(weir_pinned_reserved_peak_bytes)                                   \
  X(copies_hashed) X(copies_not_hashed) X(copies_unreadable) X(hashing_ns)

/* The same for one device. A peer copy is "out" where it reads and "in" where it writes. */
#define WR_DEVICE_MAP(X)                                                                           \
  X(alloc_calls) X(alloc_bytes) X(free_calls) X(peak_bytes) X(peak_at_ns) X(live_at_exit_bytes)    \
  X(h2d_calls) X(h2d_bytes) X(d2h_calls) X(d2h_bytes) X(d2d_calls) X(d2d_bytes)                    \
  X(p2p_out_calls) X(p2p_out_bytes) X(p2p_in_calls) X(p2p_in_bytes)                                \
  X(memset_calls) X(memset_bytes) X(sync_explicit_calls) X(sync_explicit_ns) X(launches)           \
  X(weir_reserved_peak_bytes)                                                                      \
  X(code_blocks) X(code_bytes) X(code_frees) X(code_peak_bytes) X(code_live_at_exit_bytes)         \
  X(context_blocks) X(context_bytes) X(context_frees) X(context_peak_bytes)                        \
  X(context_live_at_exit_bytes)
/* clang-format on */

#define WR_FIELD(name) uint64_t name;
typedef struct wr_totals {
  WR_TOTAL_MAP(WR_FIELD)
} wr_totals;
typedef struct wr_device_totals {
  WR_DEVICE_MAP(WR_FIELD)
} wr_device_totals;
#undef WR_FIELD

#define WR_TAKEN  257 /* code and contexts live at exit, where blocks are summed up */
#define WR_PLACES 257

typedef struct wr_api_row {
  uint32_t api;
  char *name; /* owned */
  const char *layer, *category;
  uint64_t calls, errors, bytes, ns, max_ns;
  uint64_t init_calls, init_bytes, init_ns; /* of them, those that brought up a context */
  uint64_t init_max_ns, later_max_ns;       /* the longest of these, and of the others */
  uint64_t sync_calls, sync_ns;             /* explicit waits */
  uint64_t implicit_calls, implicit_ns;     /* calls that may wait by the documentation */
  struct wr_frame_name *place; /* where most time of its calls was, those that brought up a context
                                  apart; owned, NULL: no call has a stack */
  uint64_t place_calls, place_ns; /* the calls from there */
  uint64_t places;                /* that it was called from */
  bool counted; /* it asks, and its calls are in wr_model.asked: here is one event a place */
} wr_api_row;

/* One cell of the transfer matrix. The host's time tells a speed only where the call waits for the
 * copy. */
typedef struct wr_route {
  int src, dst; /* device ordinal or WR_HOST */
  uint64_t calls, bytes;
  uint64_t timed_bytes, timed_ns; /* of those that wait */
} wr_route;

/* Host memory at the host end of h2d and d2h copies. */
typedef struct wr_host_split {
  const char *direction, *memory;
  uint64_t calls, bytes, async_calls;
} wr_host_split;

/* A frame as a person reads it; equal ones are one. */
typedef struct wr_frame_name {
  char *function, *file, *module; /* owned; file may be NULL, no other is */
  int line;
  int64_t built; /* when the module's file was last changed, ns since 1970; 0: not known */
  bool known;    /* false: the function is "module+0x12" */
  bool library;  /* of a frame: known to be a library's, where a JIT compiler's is not */
  enum { WR_OF_PROGRAM, WR_OF_LIBRARY, WR_OF_SCRIPT } of;
} wr_frame_name;

typedef struct wr_sums {
  uint64_t calls, bytes, ns;
} wr_sums;

/* One whole stack that leads to a place. */
typedef struct wr_site_stack {
  uint32_t *frames;   /* owned; numbers of wr_model.frames, innermost first */
  uint32_t count, at; /* at: the place's own frame; count where no frame is the program's */
  bool implicit;
  wr_sums sums;
} wr_site_stack;

/* A place in the program, and what it cost: all stacks that lead to it. */
typedef struct wr_site {
  char *function, *file, *module; /* owned; function is never NULL: "module+0x12" where unknown */
  int line;
  bool known;                  /* the function has a name */
  char *api;                   /* owned; NULL in memory lists */
  int direction, mem, src_mem; /* of copies: copy_kind, memory_kind; else -1 */
  uint64_t calls, bytes, ns;
  bool implicit;         /* some of its waits are implicit ones */
  wr_site_stack *stacks; /* owned; the heaviest first */
  size_t stack_count;
} wr_site;

typedef struct wr_sites {
  wr_site *site;
  size_t count; /* those kept */
  size_t all;   /* places there are */
  wr_sums rest; /* of those not kept */
} wr_sites;

typedef struct wr_process_row {
  int64_t id, pid;
  char *exe, *command, *end_reason, *mode; /* owned, never NULL */
  int64_t start, end, end_detail;          /* end_detail -1: unknown */
  bool ended;
  uint64_t events, dropped, drop_errno, damaged_chunks, torn, bytes_cut;
} wr_process_row;

typedef struct wr_device {
  bool seen;
  char *name;  /* owned, or NULL */
  char *label; /* what the program calls it by NVTX, owned, or NULL */
  int64_t peak_place;
  wr_device_totals total;
  wr_sites owners; /* at this device's peak */
  wr_in_use in_use[WR_SAYERS];
} wr_device;

typedef struct wr_unseen { /* a program that ran without Weir */
  char *path, *why;        /* owned; path "": others */
  uint64_t count;
} wr_unseen;

struct wr_symbols; /* symbolize.h */

typedef struct wr_lacking { /* a module whose names are not known */
  char *path, *why;         /* owned */
} wr_lacking;

typedef struct wr_passed {
  char **names; /* owned */
  size_t count;
} wr_passed;

typedef struct wr_coverage {
  uint64_t looked_up, called;
  wr_passed passed[WEIR_API_BELOW + 1]; /* looked up and not wrapped, by api_class */
  uint64_t unknown_lookups;
  char *unknown_name; /* owned, or NULL */
  char **embedding;   /* owned; modules with device code and no shared cudart */
  size_t embedding_count;
  wr_unseen *unseen; /* the most often started first */
  size_t unseen_count;
  wr_lacking *lacking;
  size_t lacking_count;
  uint64_t stackless;                    /* events without a stack */
  uint64_t nested;                       /* calls within calls that are no events */
  uint64_t deep;                         /* ranges too deep to be recorded */
  uint64_t unrecorded, unrecorded_spans; /* calls left out of the trace; times that some were */
  uint64_t whole_ns, partial_ns;         /* of those processes' time: with all calls, without */
  uint64_t damaged_chunks, torn, bytes_cut, dropped_extended;
} wr_coverage;

/* Host time in the waits of one function, explicit and implicit, by what devices did meanwhile. */
typedef struct wr_wait_part {
  char *function; /* owned; "" not known */
  uint64_t calls;
  uint64_t working_ns, other_ns, idle_ns, unknown_ns; /* SCHEMA.md, `wait_time` */
} wr_wait_part;

/* Why there is nothing of waits and idle times in a report. */
typedef enum wr_unjudged {
  WR_JUDGED,
  WR_UNJUDGED_UNFINISHED,
  WR_UNJUDGED_VERSION,  /* a trace of version 1 */
  WR_UNJUDGED_WORK,     /* too many operations of devices, and it is not resolved */
  WR_UNJUDGED_RESOLVED, /* by a Weir that knew nothing of it */
} wr_unjudged;

/* What the waits of a run had to wait for; SCHEMA.md, `waits`. */
typedef struct wr_wait_truth {
  bool judged; /* else nothing below is known */
  wr_unjudged why, why_undivided;
  uint64_t judged_calls, unknown_calls; /* that were asked for */
  uint64_t redundant_calls, redundant_ns;
  uint64_t wider_calls, wider_ns;
  bool divided;       /* there are device times: what follows is known, and why devices were idle */
  wr_wait_part *part; /* owned; by function, the longest first */
  size_t part_count, part_capacity;
  wr_wait_part all; /* no function */
} wr_wait_truth;

typedef struct wr_model {
  int top;                        /* places that its lists hold */
  char *path, *command, *version; /* owned */
  char *no_gpu;                   /* owned; why none was reached, NULL: one was, or nobody knows */
  bool finished;
  int64_t duration_ns, start_realtime_ns;
  bool is_window;                         /* of a run, as a recorder leaves it: */
  int64_t window_start_ns, window_end_ns; /* -1: it is none */
  char *window_reason;                    /* owned; NULL: not known */
  uint64_t before_calls;                  /* calls before it that are no events */
  wr_totals total;
  wr_device *devices; /* [256] */
  wr_api_row *apis;
  size_t api_count;
  wr_route *routes;
  size_t route_count;
  wr_host_split split[8];
  size_t split_count;
  wr_process_row *processes;
  size_t process_count;
  char **notes; /* owned */
  size_t note_count;
  wr_coverage coverage;
  wr_cache cache;
  wr_named_ranges ranges;
  wr_named named;
  wr_graphs graphs;
  wr_kernels kernels;
  wr_tensors tensors;
  wr_device_times device_times;
  wr_wait_truth waits;
  wr_sites alloc, copy, sync, redundant, wider, leak;
  wr_sites asked;        /* its time is an estimate */
  wr_sites taken;        /* by code and contexts, live at exit */
  wr_frame_name *frames; /* owned; of the sites' stacks */
  size_t frame_count;
} wr_model;

/* Computes the model of an open trace; `top` places a list. */
weir_status wr_model_load(wr_model *m, const wr_db *db, int top);

/* The same, of open events, in a walk which others listen to: at most WR_MODEL_LISTENERS. What is temporary in the
 * database is as after wr_model_load(). */
enum { WR_MODEL_LISTENERS = WR_LISTENERS - 2 };
weir_status wr_model_load_with(wr_model *m, wr_events *events, int top, const wr_listener others[],
                               size_t count);
void wr_model_free(wr_model *m);

/* reserved.c: what libweir's allocator had from the driver, at most. */
weir_status wr_reserved_load(wr_model *m, const wr_db *db);

/* unseen.c: programs that ran without Weir; modules whose names are not known. */
weir_status wr_unseen_load(wr_coverage *c, const wr_db *db);
weir_status wr_lacking_load(wr_coverage *c, const struct wr_symbols *symbols);
void wr_unseen_free(wr_coverage *c);

#endif
