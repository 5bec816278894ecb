/* export.h: lists of operations in the words of other programs.
 */
#ifndef WEIR_TOOLS_REPLAY_EXPORT_H
#define WEIR_TOOLS_REPLAY_EXPORT_H

#include <stdio.h>
#include "tools/replay/ops.h"

typedef struct rp_format {
  const char *name;
  const char *help; /* a few words */
  weir_status (*write)(FILE *out, const rp_ops *ops);
} rp_format;

/* A row without name ends it.
 *
 * - rmm-csv: RMM's log, which has no devices: a list with several heaps is ENOTSUP.
 * - pytorch-snapshot: PyTorch's snapshot as JSON; pytorch-pickle the same as the pickle that older
 *   copies of memory_viz want. An entry has no frames. The blocks still held at the end are the
 *   segments, one each. */
extern const rp_format rp_formats[];

#endif
