/* block_facts.h: the facts of allocations and of what becomes of them: pairs of an allocation and
 * its free, memory that is never touched, taken too early or freed too late, and memory that others
 * may use. */
#ifndef WEIR_REPORTS_BLOCK_FACTS_H
#define WEIR_REPORTS_BLOCK_FACTS_H

#include "reports/findings/fact_call.h"
#include "reports/findings/facts.h"
#include "reports/findings/process_state.h"
#include "reports/findings/records.h"

/* What all processes have in common. Zero-initialised but for what is borrowed there is nothing. */
typedef struct wr_block_facts {
  wr_fact_tables *tables;  /* borrowed, as the next: where rows go */
  const wr_common *common; /* of all templates */
  wr_records block;        /* by address */
  wr_records group;        /* of pair_group */
  int64_t groups;          /* before those */
  hash_map grown;          /* allocation of a block that was copied to a larger one -> the copy */
  hash_map grown_to;       /* the same -> the larger one's allocation */
} wr_block_facts;

/* A call, whether it succeeded or not, in order of time. Errors, of all of these: ENOMEM, EIO. */
weir_status wr_block_use(wr_block_facts *f, wr_process_state *x, const wr_common *t,
                         const wr_fact_call *c);

/* One of WR_ALLOCATES; one of WR_FREES. Both succeeded, as those of what follows. */
weir_status wr_block_alloc(wr_block_facts *f, wr_process_state *x, const wr_common *t,
                           const wr_fact_call *c);
weir_status wr_block_free(wr_block_facts *f, wr_process_state *x, const wr_common *t,
                          const wr_fact_call *c);

/* A copy to the host that succeeded. */
void wr_block_copied_out(wr_block_facts *f, const wr_common *t, const wr_fact_call *c);

/* A copy within a device that succeeded. */
weir_status wr_block_copy(wr_block_facts *f, wr_process_state *x, const wr_common *t,
                          const wr_fact_call *c);

/* One of WR_OWNS, before the allocation is seen; or of WR_FREES, after the free is. */
weir_status wr_block_own(wr_process_state *x, const wr_common *t, const wr_fact_call *c);

/* One that gives memory away, or names what can be given. */
weir_status wr_block_give(wr_block_facts *f, wr_process_state *x, const wr_common *t,
                          const wr_fact_call *c);
void wr_block_reset(wr_process_state *x);

/* The process calls no more; all processes do. */
weir_status wr_block_end(wr_block_facts *f, wr_process_state *x);
weir_status wr_block_facts_end(wr_block_facts *f);
void wr_block_facts_free(wr_block_facts *f);

#endif
