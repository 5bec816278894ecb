/* rule.h: a rule as it is written: one file, a header of "-- key: value" lines, then one SELECT, or
 * in its place the name of a function in C.
 *
 *   -- number: 5                        its number; 0, and any at all, for rules of a user's own
 *   -- id: pageable-async               its name: letters, digits and '-'
 *   -- title: Asynchronous copies that wait, for pageable memory
 *   -- severity: high                   high, medium or low
 *   -- certainty: likely                certain, likely or possible, unless a row says otherwise
 *   -- threshold: min_bytes 65536 bytes a number by name, with its unit: :min_bytes in the SQL
 *   -- often: 8                         at fewer operations of a place by one thread, and fewer than
 *                                       8 times as many in all, it is possible only
 *   -- mostly: 50                       where fewer of a hundred calls by the stacks in question are found, the
 *                                       place needs the call, and is left out
 *   -- queued: device                   with device times its savings follow one another on a device
 *   -- least: untimed                   without device times its savings are the host's time alone,
 *                                       and the run gains at least that; always: with them, too
 *   -- later: copy                     its operations are copies that are not needed: without device times a
 *                                       finding has also what the device takes for those whose calls
 *                                       return before; round: of a copy to a device also the one to
 *                                       the host before it (`related`), and the wait for that
 *   -- holds: bytes                     its bytes are memory held; else they are bytes moved or set
 *   -- names: kernels                   a finding has the kernels that its operations launch, wait for,
 *                                       or have in their graphs (kernel_names.h)
 *   -- needs: wait_detail               tables without which it cannot judge; whole_run: that the
 *                                       trace is no window of the run
 *   -- partial: judged                 it finds nothing wrong where calls other than allocations and frees were left
 *                                       out of the trace (weir run --dormant); else it does not judge such a trace
 *   -- rows: storm                      tables, facts too, of which one without rows leaves nothing to
 *                                       find: then neither the SELECT nor the judge is run
 *   -- decides: weir run --hash         what shows whether it is so, where it is possible only
 *   -- prove: strict staging            how Weir itself can do without it: mode, reroutes
 *   -- calls: t.kind = $COPY            condition on rows of template: where none is so, no call of
 *                                       the trace can be found, and the SELECT is not run
 *   -- fix: Allocate the host buffer with cudaMallocHost().
 *   -- judge: unused-transfer           finds the rows (judge.h); a SELECT is for traces of which
 *                                       it cannot tell
 *
 * A line that begins "--   " goes on with the value above it. Kinds and flags have words ($COPY,
 *                          $ASYNC; words.h),
 * of which the numbers are put in when the rule is read. README.md says what the rows mean. */
#ifndef WEIR_REPORTS_RULE_H
#define WEIR_REPORTS_RULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/base/status.h"

#define WR_RULE_WHOLE_RUN "whole_run" /* in `needs` */

typedef enum wr_certainty { WR_CERTAIN, WR_LIKELY, WR_POSSIBLE } wr_certainty;
typedef enum wr_severity { WR_HIGH, WR_MEDIUM, WR_LOW } wr_severity;
typedef enum wr_least_when { WR_LEAST_NEVER, WR_LEAST_UNTIMED, WR_LEAST_ALWAYS } wr_least_when;

typedef enum wr_later { WR_LATER_NOTHING, WR_LATER_COPY, WR_LATER_ROUND } wr_later;

enum { WR_RULE_THRESHOLDS = 12, WR_RULE_BYTES = 1 << 16 /* of a file, at most */ };

typedef struct wr_threshold {
  char *name; /* ":min_bytes" */
  int64_t value;
} wr_threshold;

typedef struct wr_rule { /* all texts are owned */
  char *file;            /* the user's, or NULL: one of Weir's */
  char *id, *title, *fix, *needs, *rows, *calls, *sql;
  char *judge;   /* NULL: its rows are found by `sql` */
  char *prove;   /* NULL: Weir cannot remove it */
  char *decides; /* NULL: nothing */
  int number;
  wr_severity severity;
  wr_certainty certainty;
  bool queued;         /* savings by device times follow one another */
  wr_least_when least; /* when its savings are the least that the run gains */
  wr_later later;      /* what of a device's time comes after the operations' calls */
  bool holds;          /* its bytes are memory held */
  bool partial;        /* it is right without calls that change nothing of what is live, too */
  bool kernels;        /* what its operations launch, or wait for, is named */
  int64_t often;       /* operations, 0: one is enough */
  int64_t mostly;      /* per cent of calls, 0: any part is enough */
  wr_threshold threshold[WR_RULE_THRESHOLDS];
  int thresholds;
} wr_rule;

typedef struct wr_rules {
  wr_rule *rule; /* owned, by number */
  size_t count, capacity;
} wr_rules;

/* Weir's rules, and with them those of each file DIR/NAME.sql (`folder` NULL: none), of which one
 * that has the id of another takes its place. Errors: ENOENT, EIO, EINVAL ("... has no line
 * '-- id: ...'"), ENOMEM. */
weir_status wr_rules_load(wr_rules *out, const char *folder);
void wr_rules_free(wr_rules *rules);

/* Mixes the texts of all of Weir's rules into a hash. */
uint64_t wr_rules_hash(uint64_t hash);

const char *wr_certainty_name(wr_certainty c);
const char *wr_severity_name(wr_severity s);
/* False: it is none. */
bool wr_certainty_read(const char *name, wr_certainty *out);

#endif
