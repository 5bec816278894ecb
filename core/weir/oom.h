/* oom.h: why an allocation failed, for programs. Included by weir.h. */
#ifndef WEIR_OOM_H
#define WEIR_OOM_H

#include <stdint.h>
#include "core/base/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* X(identifier, sentence). REFUSED where it holds, else the first that does, in this order. */
#define WEIR_OOM_REASONS(X)                                                                        \
  X(TOO_LARGE, "the request is larger than the device")                                            \
  X(BUDGET, "the budget is used up")                                                               \
  X(FRACTION, "the allowed fraction of the device is used up")                                     \
  X(FRAGMENTED, "enough is free, but in pieces that cannot be joined")                             \
  X(STRANDED, "enough is free, but stranded on streams whose work is not known to be complete")    \
  X(GRAPH, "enough is free, but pinned down by graphs")                                            \
  X(OTHERS, "other processes hold the memory")                                                     \
  X(FULL, "the memory is truly in use")                                                            \
  X(REFUSED, "the driver gives none, though it reports enough free")

typedef enum weir_oom_reason {
#define WEIR_OOM_ENUM(id, text) WEIR_OOM_##id,
  WEIR_OOM_REASONS(WEIR_OOM_ENUM)
#undef WEIR_OOM_ENUM
} weir_oom_reason;

enum { WEIR_OOM_SHOWN = 8 };

typedef struct weir_oom_owner {
  char name[96];   /* a tag; a call site where history records stacks, else a size of blocks */
  uint64_t bytes;  /* live */
  uint64_t blocks; /* live */
} weir_oom_owner;

typedef struct weir_oom_stream {
  void *native;      /* the backend's handle */
  uint64_t live;     /* bytes of its blocks that are allocated */
  uint64_t stranded; /* bytes free in its order only */
} weir_oom_stream;

/* All in bytes. live + cached + free + waiting + pinned is what lies in mapped memory. */
typedef struct weir_oom_info {
  weir_oom_reason reason;
  int device;
  uint64_t requested;    /* as asked for */
  uint64_t capacity;     /* of the device */
  uint64_t limit;        /* most the allocator may reserve: budget, fraction */
  uint64_t device_free;  /* nobody's */
  uint64_t others;       /* neither free nor reserved by this allocator */
  uint64_t reserved;     /* by this allocator */
  uint64_t live;         /* allocated */
  uint64_t cached;       /* kept by threads */
  uint64_t free;         /* free, private pools' not counted */
  uint64_t largest_free; /* the largest piece of it */
  uint64_t stranded;     /* of free: in the order of streams whose work is not complete */
  uint64_t waiting;      /* freed while other streams, or an export, use it */
  uint64_t pinned;       /* free in private pools of graphs */
  uint64_t paused;       /* given back by weir_memory_pause; live, but not reserved */
  unsigned stream_count, tag_count, owner_count; /* of these, the largest first */
  weir_oom_stream streams[WEIR_OOM_SHOWN];
  weir_oom_owner tags[WEIR_OOM_SHOWN], owners[WEIR_OOM_SHOWN];
} weir_oom_info;

/* The sentence of a reason (borrowed, static). */
WEIR_PUBLIC const char *weir_oom_reason_string(weir_oom_reason reason);
/* What was found when an allocation of device memory by this thread last failed with EOOM.
 * Errors: ENOENT (none has). */
WEIR_PUBLIC weir_status weir_memory_last_oom(weir_oom_info *out);

#ifdef __cplusplus
}
#endif

#endif
