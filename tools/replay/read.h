/* read.h: lists of operations from what others wrote down. All input is hostile: a file that makes
 * no sense is an error that says where, and never more. */
#ifndef WEIR_TOOLS_REPLAY_READ_H
#define WEIR_TOOLS_REPLAY_READ_H

#include <stdio.h>
#include "tools/replay/ops.h"

/* Reads `path`, whose kind its first bytes tell, into an empty list; on failure the list is
 * cleared.
 *
 * - a trace of Weir's, or a spool: the blocks of device memory, one heap for each device of each
 *   process; an allocation counts from the call's return, a free from its call.
 * - RMM's log (RMM_LOG_FILE, logging_resource_adaptor): CSV with a head line that names at least
 *   Thread, Time, Action, Pointer, Size and Stream. Actions allocate and free; others are skipped.
 * - a snapshot of PyTorch's as JSON (torch.cuda.memory._snapshot() through json.dump): the actions
 *   alloc and free_requested of device_traces, one heap for each device. A pickle is told so.
 *
 * Errors: ENOENT, EIO, ENOMEM, ECORRUPT, EVERSION. */
weir_status rp_read(rp_ops *ops, const char *path);

/* One kind each; `path` only for errors. */
weir_status rp_read_trace(rp_ops *ops, const char *path);
weir_status rp_read_rmm(rp_ops *ops, FILE *in, const char *path);
weir_status rp_read_pytorch(rp_ops *ops, FILE *in, const char *path);

#endif
