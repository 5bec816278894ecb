/* search.h: a search for findings, as the files that share it have it: findings.c begins and ends it,
 * run_rule.c runs its rules, collect.c takes their rows, groups.c makes findings of these.
 *
 * A rule's rows are summed up by *group*: a place in the program and a certainty. */
#ifndef WEIR_REPORTS_FINDINGS_SEARCH_H
#define WEIR_REPORTS_FINDINGS_SEARCH_H

#include "core/base/map.h"
#include "reports/findings/claims.h"
#include "reports/findings/copy_times.h"
#include "reports/findings/facts.h"
#include "reports/findings/findings.h"
#include "reports/findings/guard.h"
#include "reports/findings/judge.h"
#include "reports/findings/kernel_names.h"
#include "reports/findings/launch_facts.h"
#include "reports/findings/order_facts.h"
#include "reports/findings/rule_calls.h"
#include "reports/findings/spread.h"
#include "reports/model/sites.h"
#include "reports/model/wait_log.h"

enum {
  WR_OF_NO_DEVICE = -1, /* of a finding */
  WR_OF_SEVERAL_DEVICES = -2,
  WR_CERTAINTIES = WR_POSSIBLE + 1,
  WR_SEARCH_SLOTS = WR_CERTAINTIES + 1 /* of rows: by certainty; the last: removed */
};

typedef struct wr_search_place {
  wr_frame_name name;            /* owned */
  size_t group[WR_SEARCH_SLOTS]; /* of the rule that runs, from 1; 0 none */
  uint64_t found, calls; /* by that rule, operations; calls by the stacks that these are of */
} wr_search_place;

typedef struct wr_search_group { /* what becomes a finding, or a part of one */
  size_t place;
  int64_t related; /* event whose place belongs to it; 0 none */
  int64_t first;   /* of its rows with such an event: the lowest event, which names `related` */
  wr_certainty certainty;
  bool removed;   /* by Weir's caches, in this run */
  bool by_driver; /* all calls are the driver's own functions */
  uint64_t cost, saving, bytes, count;
  uint64_t later;   /* ns of a device, which the run gains at most besides the saving (later.c) */
  size_t callers;   /* the last of its `wr_search_caller`, from 1; 0 none */
  uint64_t weight;  /* of its rows */
  size_t samples;   /* operations of which kernels are named, from 1; 0 none */
  uint64_t most;    /* operations that one thread made */
  wr_spread spread; /* of savings */
  uint64_t slow_count, slow_ns;
  size_t claims; /* its number among the claims' groups */
  int device;
  int64_t range; /* name of the one that has most of it, 0 none */
  uint64_t range_cost;
} wr_search_group;

/* Rows of one template, of one certainty or removed. */
typedef struct wr_search_cell {
  size_t group;    /* theirs, from 1; 0: there is none yet */
  uint64_t made;   /* operations */
  uint64_t weight; /* ns of cost, or bytes held */
} wr_search_cell;

/* What a group has of the place that called its function. */
typedef struct wr_search_caller {
  size_t place;
  uint64_t weight, count;
  size_t next; /* of the same group, from 1; 0: no more */
} wr_search_caller;

typedef struct wr_search_tally { /* cost of a group's rows in ranges of one name */
  size_t group;
  int64_t name;
  uint64_t cost;
} wr_search_tally;

/* Time that a device takes for a copy of a group, and that the host then waits. */
typedef struct wr_later_piece {
  size_t group;  /* among the claims' */
  uint32_t wait; /* place in the waits of copy_times */
  uint32_t unit; /* what takes it, which counts once */
  uint64_t ns;
} wr_later_piece;

typedef struct wr_later_pieces {
  wr_later_piece *piece; /* owned */
  size_t count, capacity;
  size_t summed; /* those before it are of rules that have run */
} wr_later_pieces;

/* Calls of one function by one stack, of whichever thread. */
typedef struct wr_call_family {
  uint64_t calls;
  size_t counted; /* the last rule that counted them, from 1 */
} wr_call_family;

typedef struct wr_findings_pass {
  wr_findings *f;
  const wr_db *db;
  const wr_findings_settings *settings;
  wr_symbols *symbols;
  wr_guard guard;
  sqlite3_stmt *about;      /* an event: stack, device, name of its range */
  hash_map by_stack;        /* stack -> place */
  hash_map called_from;     /* stack -> place of the caller; without: there is none */
  size_t *place_at;         /* owned: by facts.common: place, from 1; 0 not known yet */
  size_t *family_at;        /* owned: by facts.common: its place in `families` */
  wr_call_family *families; /* owned */
  hash_map by_place;        /* hash -> place */
  const wr_events *calls;   /* borrowed */
  bool with_model;          /* which takes the same walk's events */
  wr_facts facts;
  wr_facts_pass *pass; /* owned, until the facts are found, */
  wr_wait_pass *waits; /* as this one */
  uint64_t taken;      /* events */
  wr_finders finders;  /* of judges */
  wr_kernel_names kernels;
  wr_big_blocks big;
  wr_order_facts order;
  wr_launch_facts launches;
  wr_copy_times copy_times; /* empty in a trace with device times */
  wr_later_pieces later;
  wr_claims claims;
  wr_rule_calls *has_calls; /* owned: by rule; NULL: not asked for yet */
  int64_t events, rule_ms;
  size_t running; /* rule */
  wr_search_place *places;
  size_t place_count, place_capacity;
  uint64_t peak_bytes;
  bool hashed;        /* copy_hash has rows, or no copy could have one */
  bool timed;         /* device_work has rows */
  char *untimed;      /* owned; NULL, or why it has none though they were asked for */
  bool partial;       /* calls of some process were left out of the trace */
  bool ranges;        /* event_range has rows */
  bool part;          /* the trace is a window of the run, and not all of it */
  int64_t began;      /* CLOCK_REALTIME, ns */
  int64_t clock_more; /* ns, as a rule's SQL has it: see judge.h */
  bool only_cuda;     /* no call of the engine's is in the trace */
  bool quoted;        /* lines of source may be */
  /* of the rule that runs */
  wr_search_cell *cells; /* owned: by facts.common, then by slot */
  size_t *used;          /* owned: those that have rows */
  size_t used_count, used_capacity;
  hash_map by_tally, by_thread; /* by_thread: of a group and a thread its operations */
  hash_map by_caller;           /* of a group and a place */
  wr_search_group *groups;
  wr_search_tally *tallies;
  wr_search_caller *callers;
  wr_kernel_samples *samples;
  size_t group_count, group_capacity, tally_count, tally_capacity, caller_count, caller_capacity,
      sample_count, sample_capacity;
} wr_search;

typedef struct wr_search_row { /* of a rule */
  int64_t event, related, range_name;
  uint64_t cost, saving, bytes, count;
  uint64_t related_saving; /* of the saving, what is of the related event's time */
  wr_certainty certainty;
  int device;
  bool removed;
  size_t place;
  const wr_common *common; /* of the event; NULL: not known */
} wr_search_row;

static inline uint64_t wr_capped_sum(uint64_t a, uint64_t b)
{
  return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static inline weir_status wr_search_no_memory(const wr_search *x)
{
  return wr_db_out_of_memory(x->db);
}

/* ---- collect.c ------------------------------------------------------------------------------- */

/* Adds up the calls of all threads by stack and function, once the facts are there. */
weir_status wr_search_find_families(wr_search *x);

/* Finds the place of an event, its device and the name of its range. `common`: of the event, NULL
 * where that is not known yet. */
weir_status wr_search_look_up(wr_search *x, int64_t event, const wr_common **common, size_t *at,
                              int *device, int64_t *range);

/* A row of the rule that runs. */
weir_status wr_search_add_row(wr_search *x, const wr_rule *rule, const wr_search_row *r);

/* A row that a judge has found. */
weir_status wr_search_add_found(wr_search *x, const wr_rule *rule, const wr_found *found);

/* All its rows are there. */
weir_status wr_search_end_rows(wr_search *x);

/* The next rule runs. */
void wr_search_forget_groups(wr_search *x);

/* ---- later.c --------------------------------------------------------------------------------- */

/* What a device takes for a row's copies, of a rule that asks for it; `group`: of the claims. */
weir_status wr_search_add_later(wr_search *x, const wr_rule *rule, const wr_search_row *r,
                                size_t group);

/* Sums it up, of the groups of the rule that has run, which are as they were made. */
weir_status wr_search_sum_later(wr_search *x);

/* Adds it to what all findings save, once their gains are known; `rank`: of findings, by their number. */
weir_status wr_search_add_later_up(wr_search *x, size_t *rank);

/* ---- groups.c -------------------------------------------------------------------------------- */

/* Makes findings of the groups of the rule that has run. */
weir_status wr_search_finish_groups(wr_search *x, const wr_rule *rule);

/* The order of places by their names. */
int wr_search_by_name(const char *file, const char *function, int line, const char *other_file,
                      const char *other_function, int other_line);

/* ---- kernel_names.c -------------------------------------------------------------------------- */

/* Names the kernels of a finding's groups, whose rule has them named. */
weir_status wr_search_name_kernels(wr_search *x, wr_finding *f, const wr_search_group *g,
                                   size_t count);

/* ---- run_rule.c ------------------------------------------------------------------------------ */

/* Runs a rule: x->running. */
weir_status wr_search_run_rule(wr_search *x, const wr_rule *rule);

/* Prints how far it is; the context is the search. */
void wr_search_show_progress(void *context);

#endif
