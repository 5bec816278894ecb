/* claims.h: what all rules together save.
 *
 * A row of a rule claims what it saves of an event's time, and the bytes that the event moves. Once
 * all rules have run and their findings are in order, the claims are brought into order of time: an
 * event's bytes count once, and its time is a piece (gains.h) of each finding that claims it. A claim
 * of nothing counts as an operation of its finding (overlaps.h). */
#ifndef WEIR_REPORTS_FINDINGS_CLAIMS_H
#define WEIR_REPORTS_FINDINGS_CLAIMS_H

#include "core/base/status.h"
#include "reports/findings/gains.h"
#include "reports/findings/overlaps.h"
#include "reports/findings/pack.h"
#include "reports/findings/starts.h"
#include "reports/import/run_log.h"

#define WR_NO_TIME (INT64_C(1) << 62) /* events that are none of the trace's start here */

typedef struct wr_claim {
  int64_t event;
  size_t group;    /* that made it: wr_claims_group() */
  uint64_t saving; /* ns of the event's time */
  uint64_t rest;   /* ns that its row saves of another event's */
  uint64_t bytes;  /* moved for nothing */
} wr_claim;

/* Rows of one rule at one place. */
typedef struct wr_claim_group {
  uint64_t least, median; /* a row that saves `least` ns and more is one of `median` */
  size_t finding;         /* that it is of, from 1; 0: of none, and nothing of it counts */
} wr_claim_group;

/* A claim of an event whose start is known. */
typedef struct wr_kept_claim {
  uint64_t saving, rest, bytes;
  uint32_t group;
  uint32_t before; /* of its event, the one that was made before it, from 1; 0 none */
} wr_kept_claim;

typedef struct wr_claims {
  wr_claim_group *group; /* owned */
  size_t count, capacity;
  wr_starts starts;             /* of events; set by the owner as they pass by */
  char *file;                   /* owned: begin of the name of files */
  wr_kept_claim *kept;          /* owned: in the order in which they were made */
  size_t kept_count, kept_room; /* room: for so many */
  uint32_t
      *newest; /* owned: of each event its last of them, from 1; 0 none. NULL: there is none yet */
  wr_run_log log; /* those that were too many for memory, and, at the end, `others` */
  wr_pack others; /* of events whose start is not known, in the order in which they were made */
  struct wr_claimed *claimed; /* owned: of the event that is added up */
  size_t claimed_count, claimed_capacity;
  size_t *by; /* owned: the findings that claim it */
  size_t by_capacity;
  int64_t no_time; /* where the next event starts that is none of the trace's */
} wr_claims;

/* Of a trace whose last event is that one. Errors: ENOMEM. */
weir_status wr_claims_open(wr_claims *x, int64_t last_event);
void wr_claims_close(wr_claims *x);

/* Makes a group. Returns its number; SIZE_MAX: out of memory. */
size_t wr_claims_group(wr_claims *x);

/* A claim of an event whose start is not known, or for which there is no room. Errors: ENOMEM, EIO. */
weir_status wr_claims_add_slowly(wr_claims *x, const wr_claim *claim);

/* Errors: ENOMEM, EIO. */
static inline weir_status wr_claims_add(wr_claims *x, const wr_claim *c)
{
  if (x->kept_count == x->kept_room || !wr_starts_know(&x->starts, c->event))
    return wr_claims_add_slowly(x, c);
  uint32_t *newest = &x->newest[c->event];
  x->kept[x->kept_count++] =
      (wr_kept_claim){c->saving, c->rest, c->bytes, (uint32_t)c->group, *newest};
  *newest = (uint32_t)x->kept_count;
  return WEIR_OK;
}

/* How claims are added up. */
typedef struct wr_claims_end {
  const size_t *rank;    /* of findings, by their number */
  wr_gains *gains;       /* takes the pieces, by rank */
  wr_overlaps *overlaps; /* takes operations, by the findings that claim them; or NULL */
  uint64_t duration;     /* of the run, ns */
  uint64_t moved_bytes;  /* out */
  /* When an event began; at least WR_NO_TIME: it is none of the trace's. */
  weir_status (*find_start)(void *context, int64_t event, int64_t *start);
  void *context;
} wr_claims_end;

/* Once all rules have run. Errors: ENOMEM, EIO, those of find_start. */
weir_status wr_claims_add_up(wr_claims *x, wr_claims_end *end);

#endif
