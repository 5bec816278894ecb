/* taken.h: what calls took of a device for code and contexts, as blocks.
 *
 * A measurement (memory_taken) is a block where its bytes are certain: while the driver was asked
 * before the call and after it, no other thread of the process had a call under way, nor, on the
 * same device, any of another process. Else it is possible, and no block. A block of code ends with
 * the unload of its module, all ends with its context or device. */
#ifndef WEIR_REPORTS_TAKEN_H
#define WEIR_REPORTS_TAKEN_H

#include "reports/import/memory_log.h"

/* An ALLOC: what was taken, `time` its end; a FREE: a module's unload, `pointer` its handle. */
typedef struct wr_taken_event {
  wr_memory_event e;
  int64_t start;
  int64_t least; /* `start` of this and of all after it */
  bool mixed;    /* something else ran meanwhile: not certain */
} wr_taken_event;

typedef struct wr_taken_list {
  wr_taken_event *event; /* owned; by time, then rows; none is mixed */
  size_t count, capacity;
} wr_taken_list;

/* Reads the list from a trace of this schema whose events are all there. Errors: ENOMEM, EIO. */
weir_status wr_taken_load(wr_taken_list *list, const wr_db *db);
void wr_taken_free(wr_taken_list *list);

#endif
