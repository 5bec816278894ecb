/* fact_call.h: a call as facts are made of it (facts.h, thread_facts.h, stream_facts.h). */
#ifndef WEIR_REPORTS_FACT_CALL_H
#define WEIR_REPORTS_FACT_CALL_H

#include <stddef.h>
#include <stdint.h>

typedef struct wr_fact_call { /* begins as wr_logged does */
  int64_t id, time;           /* ns; of an allocation the time of its end */
  uint64_t a, b, bytes;
  int64_t duration;
  size_t common; /* place of its template in wr_facts.common */
} wr_fact_call;

#endif
