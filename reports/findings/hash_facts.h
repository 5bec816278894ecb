/* hash_facts.h: the facts of copies whose bytes were hashed (weir run --hash), and of the calls that
 * touched the memory they were copied to or from: what went there or back again is found from
 * these alone. */
#ifndef WEIR_REPORTS_HASH_FACTS_H
#define WEIR_REPORTS_HASH_FACTS_H

#include "reports/findings/fact_call.h"
#include "reports/findings/facts.h"
#include "reports/findings/process_state.h"
#include "reports/findings/records.h"

/* Zero-initialised but for what is borrowed there is no hash. */
typedef struct wr_hash_facts {
  wr_fact_tables *tables; /* borrowed, as the next: where rows go */
  bool *partial;          /* set: rows are missing */
  wr_records hash;        /* of a copy, by its event */
  wr_records payload;     /* by process, hash and length */
  wr_records place;       /* by address, of hashed copies */
} wr_hash_facts;

/* Reads the hashes of a trace. Errors, of both: ENOMEM, EIO. */
weir_status wr_hash_load(wr_hash_facts *f, const wr_db *db);

/* A call that succeeded, in order of start. There are hashes. */
weir_status wr_hash_take(wr_hash_facts *f, wr_process_state *x, const wr_common *t,
                         const wr_fact_call *c);
void wr_hash_facts_free(wr_hash_facts *f);

#endif
