/* fact_call.h: a call as facts are made of it (facts.h, block_facts.h, move_facts.h,
 * thread_facts.h, stream_facts.h). */
#ifndef WEIR_REPORTS_FACT_CALL_H
#define WEIR_REPORTS_FACT_CALL_H

#include <stdint.h>

typedef struct wr_fact_call {
  /* as an event has them */
  int64_t id, time; /* ns; of an allocation the time of its end */
  int64_t duration;
  uint64_t a, b, bytes;
  uint64_t key;    /* of `a` in the process (records.h); of an allocation, free, copy or memset */
  uint64_t again;  /* of a copy of host memory to a device: of all that another is alike in */
  uint32_t common; /* place of its template in wr_facts.common */
} wr_fact_call;

#endif
