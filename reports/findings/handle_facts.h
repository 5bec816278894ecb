/* handle_facts.h: the facts about objects of CUDA that a program makes and ends: streams, events,
 * memory pools, graphs, contexts. One that is made where one like it had just been ended could have
 * been kept. */
#ifndef WEIR_REPORTS_HANDLE_FACTS_H
#define WEIR_REPORTS_HANDLE_FACTS_H

#include "core/base/map.h"
#include "reports/findings/fact_call.h"
#include "reports/findings/facts.h"

enum { WR_LEAST_LEFT = 64 /* objects of a place that are never ended, at least */ };

typedef struct wr_live_handle { /* an object that was made and has not ended */
  int64_t event, template, ns;
  uint64_t family;
  bool again; /* one of its family had ended and had not been replaced */
} wr_live_handle;

typedef struct wr_handle_family { /* objects of one kind, made by one stack of a process */
  wr_handle_kind kind;
  uint64_t live, most; /* most: of those that lived at once */
  uint64_t again;      /* pairs of handle_pair with `again` */
} wr_handle_family;

/* Zero-initialised but for `tables` nothing has been made. */
typedef struct wr_handle_facts {
  wr_fact_tables *tables;        /* borrowed */
  hash_map by_handle, by_family; /* hash of process, kind, handle or stack -> place */
  wr_live_handle *live;          /* owned; event 0: ended */
  wr_handle_family *family;      /* owned */
  size_t live_count, live_capacity, family_count, family_capacity;
} wr_handle_facts;

/* What the function does with an object of a CALL, EVENT or CONTEXT; of a STREAM its event
 * decides. */
void wr_handle_call_of(int kind, const char *function, wr_handle_kind *object, bool *ends);

/* The next call that makes or ends an object, in order of time. Errors: ENOMEM, EIO. */
weir_status wr_handle_take(wr_handle_facts *f, const wr_common *t, const wr_fact_call *c);

/* There are no more. Errors: ENOMEM, EIO. */
weir_status wr_handle_facts_end(wr_handle_facts *f);
void wr_handle_facts_free(wr_handle_facts *f);

#endif
