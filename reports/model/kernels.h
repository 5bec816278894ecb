/* kernels.h: kernels by name: how often they were launched, by calls and by graphs, and how long they ran. */
#ifndef WEIR_REPORTS_KERNELS_H
#define WEIR_REPORTS_KERNELS_H

#include "core/base/map.h"
#include "reports/base/util.h"
#include "reports/events/events.h"

typedef struct wr_kernel_sum {
  char *name;                            /* owned, as written in its source; NULL: not known */
  uint64_t launches;                     /* that succeeded and were run, those of graphs included */
  uint64_t timed, device_ns, longest_ns; /* of them, those with device times: how many, all, one */
} wr_kernel_sum;

typedef struct wr_kernels {
  wr_kernel_sum *sum; /* owned; by device time, then by launches, the most first */
  size_t count;
  /* private: of the pass, in which a sum is a handle's */
  size_t capacity;
  hash_map by_handle; /* process and handle -> index of the sum + 1 */
} wr_kernels;

/* Takes a launch, of all that succeeded and were run. False: out of memory. */
bool wr_kernels_launch(wr_kernels *k, const wr_event *e);
/* After the last one. graph_launch must be there where a graph was launched. Errors: ENOMEM, EIO, ECORRUPT. */
weir_status wr_kernels_finish(wr_kernels *k, const wr_db *db);
void wr_kernels_free(wr_kernels *k);

#endif
