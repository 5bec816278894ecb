/* findings.h: what a run wastes, where, and what to do: rules (rule.h) over a trace.
 *
 * A rule's SELECT gives one row an *avoidable operation*; those of one rule, one place in the
 * program and one certainty are one finding. Findings overlap: an operation that two rules found
 * can be avoided once, so what all of them save together is the union of the time that each saves,
 * and a finding has what it adds to those in front of it (gains.h).
 *
 * Words: cost: what the operations take of a thread's time; saving: what the run gains without
 * them, which for a wait is at most what the host could have done meanwhile. */
#ifndef WEIR_REPORTS_FINDINGS_H
#define WEIR_REPORTS_FINDINGS_H

#include "reports/events/listen.h"
#include "reports/findings/rule.h"
#include "reports/findings/source.h"
#include "reports/import/schema.h"

/* A finding whose saving (where none is known: whose cost) is below all of these is left out; all
 * 0: WR_MIN_COST. */
typedef struct wr_min_cost {
  int64_t ns;    /* of time; negative: does not count */
  double share;  /* of the run's time, of the most device memory; negative */
  int64_t bytes; /* of memory held; negative */
} wr_min_cost;

#define WR_MIN_COST ((wr_min_cost){.ns = 1000000, .share = 0.005, .bytes = 1 << 20})

typedef struct wr_findings_settings {
  const char *rules; /* folder of the user's own, or NULL */
  wr_min_cost min;
  wr_quoting quoting;       /* of lines of source (source.h) */
  int64_t rule_ms;          /* of a processor, that a rule may take for each 1 M events; 0: 10 s */
  const volatile int *stop; /* nonzero: end now; or NULL */
  /* How far it is, now and then; `what` NULL: no further. Or NULL. */
  void (*progress)(void *context, const char *what, uint64_t done, uint64_t all);
  void *progress_context;
} wr_findings_settings;

enum { WR_FINDING_SITES = 8, WR_FINDING_CALLERS = 3, WR_FINDING_KERNELS = 3 };

typedef struct wr_finding_caller {
  char *function, *file; /* owned; file NULL: not known */
  int line;
  double share;   /* of what the operations of the site cost, or of the bytes that they hold */
  uint64_t count; /* operations */
} wr_finding_caller;

typedef struct wr_finding_site {
  char *function, *file; /* owned; file NULL: not known */
  int line;
  int64_t built; /* when the module's file was last changed, ns since 1970; 0: not known */
  char *source;  /* owned: the line itself, NULL: not at hand */
  uint64_t cost_ns, count; /* 0: not where the operations are, but what they go with */
  wr_finding_caller caller
      [WR_FINDING_CALLERS]; /* places that call its function: the one that has most of the cost, or those with most */
  size_t callers,
      more_callers; /* those there are; those left out. 0: none is known, as of main() */
} wr_finding_site;

typedef struct wr_finding {
  const wr_rule *rule; /* of the same wr_findings */
  const char *fix;     /* borrowed: what to do, in the functions that the program calls (fix.h) */
  char *driver_fix;    /* owned: it, where it is not the rule's; else NULL */
  const char *decides; /* borrowed: the rule's, where the run was without that option; else NULL */
  wr_certainty certainty;
  uint64_t cost_ns, saving_ns, saving_bytes, count;
  uint64_t slow_count,
      slow_ns; /* operations that took far longer than the others; theirs that is in no saving */
  uint64_t
      later_ns; /* of a device, which the run may gain besides the saving, and no more; 0: none, or not known */
  bool least;              /* the run gains `saving_ns` at least; else at most */
  uint64_t added_ns;       /* what it gains when all that stand in front of it are done (gains.h) */
  uint64_t added_later_ns; /* of `later_ns`, the same */
  bool spread;             /* there is an interval of the saving: */
  uint64_t low_ns, high_ns; /* its ends, at 95 % */
  size_t made;              /* its number, from 1, among all before they were in order */
  size_t
      under; /* the place, from 1, of the one in front that is about the same operations of the same line (overlaps.h) */
  wr_finding_site site[WR_FINDING_SITES]; /* the first is where; several: small ones together */
  size_t sites, more_sites;               /* those there are; those left out */
  char *range;                            /* owned: the NVTX range that has most of it, NULL none */
  int device;                             /* ordinal; -1: several, or none */
  char *
      kernel[WR_FINDING_KERNELS]; /* owned: what it launches or waits for mostly (kernel_names.h) */
  size_t kernels, more_kernels;   /* those there are; those left out */
} wr_finding;

/* What a rule finds that is too small to be a finding: its place that costs most. */
typedef struct wr_small_finding {
  const wr_rule *rule;   /* of the same wr_findings */
  char *function, *file; /* owned; file NULL: not known */
  int line;
  uint64_t cost_ns, saving_ns, later_ns, saving_bytes, count; /* of that place */
  bool several;                                               /* places */
} wr_small_finding;

/* Why a rule could not judge a trace from which calls were left out. */
#define WR_NEEDS_ALL_CALLS "it needs all calls of the run, and some were not recorded"

typedef struct wr_unjudged_rule {
  const wr_rule *rule;
  char *why; /* owned */
} wr_unjudged_rule;

typedef struct wr_findings {
  wr_rules rules;
  wr_finding *
      finding; /* owned; the one that matters most first, all that are possible only last, but right after the one
                          that they stand under */
  size_t count, capacity;
  wr_finding *removed; /* owned: what Weir's caches did away with in this run, one a rule */
  size_t removed_count, removed_capacity;
  wr_unjudged_rule *unjudged; /* owned */
  size_t unjudged_count, unjudged_capacity;
  size_t late;             /* of them, those that took too long */
  wr_small_finding *small; /* owned: what is too small for `min`, one a rule */
  size_t small_count, small_capacity;
  uint64_t saving_ns,
      moved_bytes;         /* of all findings together: time that several gain counts once */
  uint64_t sure_saving_ns; /* of those that are certain or likely */
  uint64_t duration_ns;    /* of the run */
  uint64_t starved_ns,
      preempted;           /* of the run's threads: waited for a processor; lost one, times */
  bool interpreters;       /* a place is in one: the frames of its program are not there */
  const char *unavailable; /* why nothing was judged, or NULL */
  wr_min_cost min;
} wr_findings;

/* Judges an open trace; `f` is empty when it fails. Rules of Weir's that cannot judge it are named
 * in `unjudged`; the user's fail. Errors: those of wr_rules_load(); EINVAL ("NAME.sql: no such
 * column: x"), EIO, ECORRUPT, ENOMEM. */
weir_status wr_findings_load(wr_findings *f, const wr_db *db, const wr_findings_settings *settings);
void wr_findings_free(wr_findings *f);

/* The same for who walks over all events with a model (wr_model_load_with()): begin, the walk with
 * the listeners, end. The events stay open, `f` and the settings where they are, until it is closed,
 * whatever became of it; what failed is `f`'s owner's to free. *out is NULL where f->unavailable
 * says why nothing is judged. */
typedef struct wr_findings_pass wr_findings_pass;
weir_status wr_findings_begin(wr_findings_pass **out, wr_findings *f, const wr_events *events,
                              const wr_findings_settings *settings);
enum { WR_FINDINGS_LISTENERS = 3 };
size_t wr_findings_listen(wr_findings_pass *x, wr_listener out[]); /* how many there are */
weir_status wr_findings_end(wr_findings_pass *x);
void wr_findings_close(wr_findings_pass *x);

#endif
