/* judge.h: a rule's rows by a function in C, where SQL would take longer than all the rest of a
 * report.
 *
 * A rule with a line "-- judge: NAME" has no SELECT: all else of it is in its file as ever, the
 * thresholds too. Its judge reads the facts in their packs, one row after the other, and gives the
 * rows that the SELECT would have given: tests/findings/rules_by_sql/ has that SELECT, and a test
 * holds the two together.
 *
 * A judge is a few lines, with no clean-up of errors: each function here does nothing once `status`
 * is bad, and a walk over facts then ends. */
#ifndef WEIR_REPORTS_FINDINGS_JUDGE_H
#define WEIR_REPORTS_FINDINGS_JUDGE_H

#include "reports/base/util.h"
#include "reports/events/rows.h"
#include "reports/findings/big_blocks.h"
#include "reports/findings/facts.h"
#include "reports/findings/idle_at.h"
#include "reports/findings/rule.h"
#include "reports/findings/wait_at.h"

/* What thresholds of "what measuring adds to a call" take a read of the clock for. */
enum { WR_CLOCK_NS = 14 };

/* A row of a rule; README.md says what its columns mean. What is negative counts as 0. */
typedef struct wr_found {
  int64_t event, template, related; /* template, related: 0 none */
  int64_t cost, saving, bytes;
  int64_t related_saving; /* of the saving, what is of the related event's time: that counts
                             once, too */
  wr_certainty certainty;
  bool removed;
} wr_found;

/* A call of the trace, found by its number. */
typedef struct wr_call_row {
  const wr_common *common;
  int64_t start, duration, bytes;
} wr_call_row;

/* What judges look for rows with; opened by the first that asks, for all that come after it. Begins
 * zeroed. */
typedef struct wr_finders {
  wr_waits waits;
  wr_row_walk calls;
  wr_idle idle;
  bool calls_open;
  hash_map weirs;   /* functions of the engine's, by their numbers in the trace */
  bool weirs_known; /* or there is no call of one */
} wr_finders;
void wr_finders_close(wr_finders *f);

typedef struct wr_case {
  const wr_rule *rule;
  const wr_facts *facts;
  wr_finders *finders; /* borrowed */
  const wr_big_blocks *big;
  int64_t duration;   /* of the run, ns */
  int64_t clock_more; /* ns that a read of the clock took beyond WR_CLOCK_NS; 0: not known */
  const wr_db *db;
  weir_status status;
  const char *lacks; /* a threshold that the rule's file does not have, or NULL */
  bool declines; /* it cannot tell of this trace: the rule's SELECT is asked, where it has one */
  weir_status (*take)(void *context, const wr_found *row);
  weir_status (*go_on)(void *context); /* now and then; bad: end now */
  void *context;
  wr_pack_reader reader; /* of the walk that goes on */
  uint64_t rows;
  wr_call_row call;
} wr_case;

typedef void (*wr_judge)(wr_case *c);

/* NULL: there is none of that name. */
wr_judge wr_judge_of(const char *name);

/* Runs a judge, of a case that has all up to `db`, the functions and their context. */
weir_status wr_case_run(wr_case *c, wr_judge judge);

/* ---- for judges ------------------------------------------------------------------------------ */

/* Goes over the rows of a fact, in the order in which they were seen: f is a wr_fact_unread, of
 * `unread`. */
#define WR_EACH(c, FACT, table, f)                                                                 \
  for (const wr_fact_##table *f = wr_case_first(c, WR_FACT_##FACT); f; f = wr_case_next(c))
const void *wr_case_first(wr_case *c, wr_fact fact);
const void *wr_case_next_block(wr_case *c);
static inline const void *wr_case_next(wr_case *c)
{
  if (c->status || !c->reader.left) return wr_case_next_block(c);
  wr_pack_next_here(&c->reader);
  return c->reader.v;
}

/* How many rows a fact has. */
size_t wr_case_count(const wr_case *c, wr_fact fact);

/* The rule's threshold of that name. */
int64_t wr_case_limit(wr_case *c, const char *name);

/* What the calls of a template have in common; never NULL. */
extern const wr_common wr_no_common;
static inline const wr_common *wr_case_common(const wr_case *c, int64_t template)
{
  const wr_common *t = wr_facts_common(c->facts, template);
  return t ? t : &wr_no_common;
}

/* The call is of the engine itself, which has its own caches: nobody can advise it. */
bool wr_case_of_weir(const wr_case *c, const wr_common *t);

/* The row of `wait_detail` of an event, valid until the next one (NULL: there is none), and of
 * `wait_time`. */
const wr_wait_row *wr_case_wait(wr_case *c, int64_t event);
bool wr_case_wait_time_of(wr_case *c, int64_t event, wr_wait_time_row *row);
static inline bool wr_case_wait_time(wr_case *c, int64_t event, wr_wait_time_row *row)
{
  const wr_waits *w = &c->finders->waits;
  return (!w->db || w->time) && wr_case_wait_time_of(c, event, row);
}

/* Bits of that row, WR_WAIT_* (wait_rows.h): a tenth of the time. 0: there is none, or nothing
 * is known. */
unsigned wr_case_wait_bits_of(wr_case *c, int64_t event);
static inline unsigned wr_case_wait_bits(wr_case *c, int64_t event)
{
  const wr_waits *w = &c->finders->waits;
  return (uint64_t)event < w->ids ? w->bits[event] : wr_case_wait_bits_of(c, event);
}

/* The next row, by id, of which those bits of the mask are set, valid until the next one; NULL:
 * that was the last one. */
const wr_wait_row *wr_case_next_wait(wr_case *c, unsigned mask, unsigned bits);

/* ns that the device of a call's context did nothing, around the end of the call; 0: it worked then, or that is not
 * known. */
int64_t wr_case_idle(wr_case *c, const wr_call_row *call);

/* ns that it did nothing up to the begin of the call, at most `most`; `unknown` where it is not known when devices
 * worked. */
int64_t wr_case_idle_before(wr_case *c, const wr_call_row *call, int64_t most, int64_t unknown);

/* The call of that number, valid until the next one: 0.15 us. NULL: there is none. */
const wr_call_row *wr_case_call(wr_case *c, int64_t event);

/* Zeroed, to be freed; NULL: out of memory, or there are none. */
void *wr_case_array(wr_case *c, size_t count, size_t size);

void wr_case_find(wr_case *c, const wr_found *row);

/* ---- the judges, each named as its rule ------------------------------------------------------ */

/* judge_memory.c */
void wr_judge_repeated_allocation(wr_case *c);
void wr_judge_resized_allocation(wr_case *c);
void wr_judge_temporary_allocation(wr_case *c);
void wr_judge_unused_allocation(wr_case *c);
void wr_judge_early_allocation(wr_case *c);
void wr_judge_late_free(wr_case *c);

/* judge_blocks.c; and the limits of their blocks, of a case that has a rule */
void wr_judge_idle_object(wr_case *c);
void wr_judge_redundant_object(wr_case *c);
wr_big_limit wr_idle_object_limit(wr_case *c);
wr_big_limit wr_redundant_object_limit(wr_case *c);

/* judge_leaks.c */
void wr_judge_leak(wr_case *c);

/* judge_waits.c */
void wr_judge_redundant_wait(wr_case *c);
void wr_judge_wide_wait(wr_case *c);
void wr_judge_premature_wait(wr_case *c);
void wr_judge_wait_before_copy(wr_case *c);
void wr_judge_hidden_wait(wr_case *c);
void wr_judge_number_in_each_step(wr_case *c);
void wr_judge_polled_with_pauses(wr_case *c);

/* judge_copies.c */
void wr_judge_unused_transfer(wr_case *c);
void wr_judge_dead_write(wr_case *c);
void wr_judge_blocking_copy(wr_case *c);
void wr_judge_tiny_copies(wr_case *c);
void wr_judge_rows_one_by_one(wr_case *c);
void wr_judge_through_the_host(wr_case *c);
void wr_judge_slow_link(wr_case *c);

/* judge_hashes.c */
void wr_judge_duplicate_transfer(wr_case *c);
void wr_judge_round_trip(wr_case *c);

#endif
