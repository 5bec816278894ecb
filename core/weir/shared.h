/* shared.h: tensors that several processes have at once. Included by weir.h.
 *
 * A shared tensor is on the cpu, in memory that other processes can map: what one writes all see,
 * and they order their work as threads do. The kernel counts who has it: the memory goes with the
 * last tensor, of whatever process, and nothing is left by a process that dies. A forked
 * child has its parent's shared tensors; other processes open them by a descriptor that was passed
 * to them, or by name. As torch.multiprocessing's, with the file descriptors' strategy. */
#ifndef WEIR_SHARED_H
#define WEIR_SHARED_H

#include <stdbool.h>
#include <stddef.h>
#include "core/base/status.h"
#include "core/weir/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A copy of t, row by row, in shared memory; itself if it is shared as a whole already. Waits for
 * the device. Errors: ENOMEM, EIO, those of the copy. */
WEIR_PUBLIC weir_status weir_share_memory(weir_tensor **out, const weir_tensor *t);
/* Whether its memory is shared: that of a view, too. */
WEIR_PUBLIC bool weir_is_shared(const weir_tensor *t);
/* *out is a new descriptor, closed on exec, to be passed on (SCM_RIGHTS) or inherited; close() it.
 * Errors: EINVAL (t is not shared, or a view of what is), EIO. */
WEIR_PUBLIC weir_status weir_shared_fd(int *out, const weir_tensor *t);
/* A name by which processes of the same user find it as long as this process has the tensor, into
 * `room` bytes (64 are enough). Errors: as weir_shared_fd(); EINVAL (no room). */
WEIR_PUBLIC weir_status weir_shared_name(char *out, size_t room, const weir_tensor *t);
/* The tensor of a descriptor (borrowed) or a name; *out is new. What is there is checked: it may
 * be another's. Errors: EINVAL, ENOENT, EIO, ENOMEM; ECORRUPT (no tensor, or memory that could be
 * taken away). */
WEIR_PUBLIC weir_status weir_shared_open(weir_tensor **out, int fd);
WEIR_PUBLIC weir_status weir_shared_open_name(weir_tensor **out, const char *name);

#ifdef __cplusplus
}
#endif

#endif
