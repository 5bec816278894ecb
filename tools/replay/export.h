/* export.h: lists of operations in the words of other programs. */
#ifndef WEIR_TOOLS_REPLAY_EXPORT_H
#define WEIR_TOOLS_REPLAY_EXPORT_H

#include <stdio.h>
#include "tools/replay/ops.h"

typedef struct rp_format {
  const char *name;
  const char *help; /* a few words */
  weir_status (*write)(FILE *out, const rp_ops *ops, uint16_t heap);
  bool per_heap; /* knows one: a file each, and `heap` is looked at */
} rp_format;

/* A row without name ends it.
 *
 * - rmm-csv: RMM's log, which has no devices.
 * - pytorch-snapshot: PyTorch's snapshot as JSON; pytorch-pickle the same as the pickle that older
 *   copies of memory_viz want. Frames are those of the program, where the list has stacks. The
 *   blocks still held at the end are the segments, one each.
 *
 * Neither has a word for a block from before the record began: it is allocated at time 0. */
extern const rp_format rp_formats[];

#endif
