/* read.h: lists of operations from what others wrote down. All input is hostile: a file that makes
 * no sense is an error that names the place, and never more. */
#ifndef WEIR_TOOLS_REPLAY_READ_H
#define WEIR_TOOLS_REPLAY_READ_H

#include <stdio.h>
#include "tools/replay/ops.h"

/* Reads `path`, whose kind is known by its first bytes, into an empty list; on failure the list is
 * cleared.
 *
 * - a trace of Weir's, or a spool: the blocks of device memory, one heap for each device of each
 *   process; an allocation counts from the call's return, a free from its call; an allocation that
 *   failed for want of memory is a request.
 * - RMM's log (RMM_LOG_FILE, logging_resource_adaptor): CSV with a head line that names at least
 *   Thread, Time, Action, Pointer, Size and Stream. Actions allocate, allocate failure and free;
 *   others are skipped.
 * - a snapshot of PyTorch's, as the pickle that torch.cuda.memory._dump_snapshot() makes (protocols
 *   2 to 5), or as JSON (torch.cuda.memory._snapshot() through json.dump): the actions alloc,
 *   free_requested and oom of device_traces, and the blocks of segments that are older, one heap
 *   for each device. Nothing that a pickle names is called.
 *
 * Errors: ENOENT, EIO, ENOMEM, ECORRUPT, EVERSION. */
weir_status rp_read(rp_ops *ops, const char *path);

/* One kind each; `path` only for errors. */
weir_status rp_read_rmm(rp_ops *ops, FILE *in, const char *path);
weir_status rp_read_pytorch(rp_ops *ops, FILE *in, const char *path);
weir_status rp_read_pytorch_pickle(rp_ops *ops, FILE *in, const char *path);

#endif
