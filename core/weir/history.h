/* history.h: who allocated what, and when: memory history and snapshots. Included by weir.h.
 *
 * Semantics, names and structure follow PyTorch's torch.cuda.memory._record_memory_history(),
 * _snapshot() and _dump_snapshot() ("Understanding CUDA Memory Usage", Snapshot API Reference); a
 * dumped snapshot opens in pytorch.org/memory_viz and in torch.cuda._memory_viz.
 *
 * Off, history costs nothing. On, a device's threads leave their own caches and every call takes
 * the device's lock and, by the context chosen, captures its stack (libunwind where it is
 * installed, else glibc's backtrace(); weir_memory_history_info states which). */
#ifndef WEIR_HISTORY_H
#define WEIR_HISTORY_H

#include "core/weir/memory.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum weir_history_mode {
  WEIR_HISTORY_OFF = 0,   /* forgets all; what is live keeps no stack */
  WEIR_HISTORY_STATE = 1, /* the stacks of what is live */
  WEIR_HISTORY_ALL = 2    /* and a trace of every action */
} weir_history_mode;

/* Whose stacks are captured. */
typedef enum weir_history_context {
  WEIR_CONTEXT_NONE = 0,  /* nobody's */
  WEIR_CONTEXT_STATE = 1, /* of allocations and of segments, for what is live */
  WEIR_CONTEXT_ALLOC = 2, /* the same, and the trace's entries have them too */
  WEIR_CONTEXT_ALL = 3    /* and of frees; without, a free has its allocation's */
} weir_history_context;

/* Starts, changes or ends the recording of a device's history. The trace keeps the newest
 * `max_entries` entries (0: a million; 48 bytes each, taken as they are needed). Blocks that are
 * live when it starts have no stack. Errors: EINVAL, ENOMEM. */
WEIR_PUBLIC weir_status weir_memory_record_history(weir_device device, weir_history_mode mode,
                                                   weir_history_context context,
                                                   uint64_t max_entries);

/* A named span in the snapshot's external_annotations, from `begin` true to false; kept while the
 * mode is ALL. `name` is copied, cut at 63 bytes. Errors: EINVAL. */
WEIR_PUBLIC weir_status weir_memory_annotate(weir_device device, const char *name, bool begin);

typedef struct weir_history_info {
  weir_history_mode mode;
  weir_history_context context;
  uint64_t entries;     /* in the trace now */
  uint64_t overwritten; /* older entries that made room */
  uint64_t lost;        /* of these or never kept: because host memory was short */
  uint64_t stacks;      /* different stacks known, of all devices */
  uint64_t stacks_lost; /* stacks that found no room; what they belong to has no frames */
  uint64_t bytes;       /* host memory in use for the trace and all stacks */
  const char *unwinder; /* "libunwind", "backtrace", "off": not yet used (static) */
} weir_history_info;

WEIR_PUBLIC weir_status weir_memory_history_info(weir_history_info *out, weir_device device);

/* The state of the device's memory, and its history, as JSON; *out is new: free() it. The keys are
 * PyTorch's. What is not:
 *   - Memory that is mapped page by page is one segment from hole to hole, shared by all streams:
 *     its stream is 0, and each block has a "stream" of its own.
 *   - A block and an entry name the tag of weir_memory_set_tag() as "user_metadata".
 *   - A frame's filename is the object it is in, its line the offset there: `addr2line -e FILENAME`
 *     with the line in hexadecimal gives the source line.
 *   - "weir" holds what PyTorch has no place for: reserved pages that are mapped nowhere, entries
 *     and stacks lost, the unwinder.
 * Errors: EINVAL, ENOMEM. */
WEIR_PUBLIC weir_status weir_memory_snapshot(char **out, weir_device device);
/* The same of all devices, as a pickle in a file. Errors: ENOMEM, EIO (the file is removed). */
WEIR_PUBLIC weir_status weir_memory_dump_snapshot(const char *path);

#ifdef __cplusplus
}
#endif

#endif
