/* tensors.h: what tensors of libweir's had memory, by module and by tensor, at each place's peak.
 *
 * A place is a device, its host memory or what is page-locked of it. A tensor is here a storage:
 * views have no memory of their own. Its module is where the thread was when it was made; of a
 * tensor with a name of more parts ("net.conv1.weight") that was made elsewhere, all but the last.
 */
#ifndef WEIR_REPORTS_TENSORS_H
#define WEIR_REPORTS_TENSORS_H

#include "reports/import/schema.h"
#include "reports/base/util.h"

typedef struct wr_tensor_row {
  const char *module, *name, *dtype, *shape; /* borrowed: the place's texts; "" where there is none;
                                                of a module only the first */
  uint64_t tensors, bytes;                   /* live at the peak */
} wr_tensor_row;

typedef struct wr_tensor_place {
  int device; /* ordinal, -1: the host */
  bool pinned;
  uint64_t made, made_bytes; /* in all */
  uint64_t peak_bytes, peak_tensors, end_bytes, end_tensors;
  int64_t peak_at;                                             /* ns */
  wr_tensor_row *modules, *tensors;                            /* owned; the largest first */
  size_t module_count, tensor_count, all_modules, all_tensors; /* those kept; those there are */
} wr_tensor_place;

typedef struct wr_tensors {
  wr_tensor_place *place; /* owned; devices first */
  size_t count;
  char **text; /* owned; what the rows point to */
  size_t text_count;
} wr_tensors;

/* `top` rows a list. A trace from before there were tensors has none. */
weir_status wr_tensors_load(wr_tensors *t, const wr_db *db, int top);
void wr_tensors_free(wr_tensors *t);

#endif
