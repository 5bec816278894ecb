/* move_facts.h: the facts of copies and memsets that follow from what was at their addresses
 * before: what is written again or freed before anything reads it, read again before anything
 * writes it, copied again from there to there, and sent back to where it came from. */
#ifndef WEIR_REPORTS_MOVE_FACTS_H
#define WEIR_REPORTS_MOVE_FACTS_H

#include "reports/findings/fact_call.h"
#include "reports/findings/facts.h"
#include "reports/findings/process_state.h"
#include "reports/findings/records.h"

typedef struct wr_copy_family { /* copies that are alike, from the second on */
  uint64_t times;
  int64_t first; /* event */
} wr_copy_family;

/* What all processes have in common. Zero-initialised but for what is borrowed there is nothing. */
typedef struct wr_move_facts {
  wr_fact_tables *tables;  /* borrowed, as the next: where rows go */
  const wr_common *common; /* of all templates */
  size_t processes;        /* so far */
  wr_records written;      /* by address of device memory */
  wr_records read;         /* by address of device memory */
  wr_records sent;         /* by address of the host's memory */
  wr_records alike;        /* by all that copies of a family have in common */
  wr_copy_family *family;  /* owned */
  size_t family_count, family_capacity;
  int64_t families; /* before those */
} wr_move_facts;

/* A copy or memset that succeeded and is not captured, in order of time. Errors, of all of these:
 * ENOMEM, EIO. */
weir_status wr_move_take(wr_move_facts *f, wr_process_state *x, const wr_common *t,
                         const wr_fact_call *c);

/* One of WR_FREES, which succeeded. */
weir_status wr_move_free(wr_move_facts *f, wr_process_state *x, const wr_fact_call *c);

/* All processes call no more. */
weir_status wr_move_facts_end(wr_move_facts *f);
void wr_move_facts_free(wr_move_facts *f);

#endif
