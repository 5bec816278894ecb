/* memory.h: device memory: the caching allocator. Included by weir.h.
 *
 * Memory is allocated for a stream and freed in that stream's order: a free never waits, and what
 * is freed may be handed out on the same stream at once. Work of other streams that uses a block
 * must be named with weir_record_stream(). Semantics and the names of figures follow PyTorch's
 * CUDACachingAllocator. All functions may be called from any thread.
 *
 * A CUDA device is opened at the first use of its index (device.h), unless another backend was
 * attached there by hand. */
#ifndef WEIR_MEMORY_H
#define WEIR_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/base/status.h"
#include "core/weir/device.h"
#include "core/weir/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

struct weir_backend;

/* Makes `backend` (borrowed until detached) device cuda:backend->index. WEIR_ALLOC_CONF is read
 * here; `conf` (may be NULL) is applied after it. Errors: EINVAL (options, index taken). */
WEIR_PUBLIC weir_status weir_memory_attach(const struct weir_backend *backend, const char *conf);
/* Waits for the device's work, gives all memory back. Errors: EINVAL while blocks are live. */
WEIR_PUBLIC weir_status weir_memory_detach(weir_device device);

/* *out is new: weir_free() it; NULL for 0 bytes. `stream` NULL: the thread's current stream of the
 * device. Alignment 512. Errors: EOOM with a sentence that gives the reason, EINVAL. */
WEIR_PUBLIC weir_status weir_malloc(void **out, size_t bytes, weir_device device,
                                    weir_stream *stream);
/* Steals ptr; NULL is nothing. Errors: EINVAL (freed before, not ours), nothing has changed. */
WEIR_PUBLIC weir_status weir_free(void *ptr);
/* WEIR_DEVICE_MEMORY block = NULL; of weir_malloc() is freed at the end of its block. */
typedef void *weir_device_memory_owned;
static inline void weir_device_memory_drop(void **block)
{
  if (*block) (void)weir_free(*block);
  *block = NULL;
}
#define WEIR_DEVICE_MEMORY                                                                         \
  __attribute__((cleanup(weir_device_memory_drop))) weir_device_memory_owned
/* After ptr is freed, it is not reused before the work now in `stream` is complete. */
WEIR_PUBLIC weir_status weir_record_stream(void *ptr, weir_stream *stream);

/* Gives all cached memory back to the device. Where queued work may still touch some of it, that
 * work is waited for, as torch.cuda.empty_cache() does; during a capture nothing is waited for, and
 * that memory stays. */
WEIR_PUBLIC weir_status weir_memory_empty_cache(weir_device device);
/* The same until at most `keep_bytes` are reserved. */
WEIR_PUBLIC weir_status weir_memory_trim(weir_device device, uint64_t keep_bytes);
/* Share of the device that may be reserved, 0 to 1. Errors: EINVAL. */
WEIR_PUBLIC weir_status weir_memory_set_fraction(weir_device device, double fraction);
/* Names what this thread allocates from now on in out-of-memory messages; at most 31 tags are
 * distinguished
 *  in a process. NULL: none. */
WEIR_PUBLIC weir_status weir_memory_set_tag(const char *tag);
/* Called without locks before an allocation fails; true: memory was freed, try again. NULL: none.
 */
WEIR_PUBLIC weir_status weir_memory_on_oom(weir_device device,
                                           bool (*ask)(void *user, uint64_t bytes), void *user);

/* What happened to memory, for a program that keeps its own account. */
typedef enum weir_memory_action {
  WEIR_MEMORY_ALLOC = 1,        /* a block was handed out */
  WEIR_MEMORY_FREE = 2,         /* a block was given back */
  WEIR_MEMORY_SEGMENT_MAP = 3,  /* memory came from the device, or was locked */
  WEIR_MEMORY_SEGMENT_UNMAP = 4 /* memory is about to go back */
} weir_memory_action;

typedef struct weir_memory_event {
  weir_memory_action action;
  weir_device device; /* with its index; the cpu: page-locked memory */
  void *address;      /* of the block or the segment */
  size_t bytes;       /* of a block: as asked for, also when it is freed */
  void *stream;       /* of a block of a device: the native handle it was allocated for */
} weir_memory_event;

typedef void (*weir_memory_callback)(void *user, const weir_memory_event *event);

/* Calls `callback` from now on for every block and segment of every device, in the thread that did
 * it, after an allocation and after a free; NULL: nobody any more, when this returns, but by calls
 * that are under way. Of segments it is notified while the allocator's lock is held, so it may call
 * nothing of Weir's then; nor may it allocate or free there at any time, since it would be notified
 * of that. `user` (borrowed) is the callback's. One callback a process. Errors: ENOMEM. */
WEIR_PUBLIC weir_status weir_memory_set_callback(weir_memory_callback callback, void *user);

/* Figures, with the names of PyTorch's torch.cuda.memory_stats() (its documentation as of 2.8).
 *
 * A metric has a pool and a kind. Pools: small_pool are blocks up to 1 MiB, large_pool larger ones,
 * all both. Kinds: current; peak, the highest since the last reset; allocated and freed, the sums
 * of all increases and decreases since the last reset of sums.
 *   allocation, allocated_bytes  blocks handed out, and their sizes
 *   requested_bytes              what was asked for, of these
 *   active, active_bytes         the same, and blocks that were freed while other streams use them
 *   segment, reserved_bytes      what the device gave: segments, or VMM pages, mapped or kept
 *   inactive_split(_bytes)       free blocks we hold, in heaps and with threads; not a segment that
 *                                is free as a whole
 * Where this allocator is not PyTorch's:
 *   - There is no wall between small and large: what is reserved serves both. segment and
 *     reserved_bytes are all large_pool, and a pool is recognised by a block's size.
 *   - allocated_bytes' peaks are exact for one thread on one stream, and an upper bound for more:
 *     each thread's share has its own peak. The other peaks of small_pool (and with it of all) are
 *     the highest seen when a thread went past its own cache or figures were read; while history is
 *     recorded all peaks are exact.
 *   - inactive_split's sums also count blocks that move between free lists, split or join.
 *   - max_split_size is -1 without a bound. An oversize allocation or segment is one of at least
 *     max_split_size.
 *
 * X(name, field): the field of weir_memory_stats. */
#define WEIR_MEMORY_METRICS(X)                                                                     \
  X(allocation)                                                                                    \
  X(segment)                                                                                       \
  X(active)                                                                                        \
  X(inactive_split)                                                                                \
  X(allocated_bytes)                                                                               \
  X(reserved_bytes)                                                                                \
  X(active_bytes)                                                                                  \
  X(inactive_split_bytes)                                                                          \
  X(requested_bytes)

#define WEIR_MEMORY_KINDS_(X, name, field)                                                         \
  X(name ".current", field)                                                                        \
  X(name ".peak", field##_peak)                                                                    \
  X(name ".allocated", field##_allocated)                                                          \
  X(name ".freed", field##_freed)

#define WEIR_MEMORY_POOLS_(X, metric)                                                              \
  WEIR_MEMORY_KINDS_(X, #metric ".all", metric)                                                    \
  WEIR_MEMORY_KINDS_(X, #metric ".small_pool", metric##_small)                                     \
  WEIR_MEMORY_KINDS_(X, #metric ".large_pool", metric##_large)

#define WEIR_MEMORY_STATS_MAP(X)                                                                   \
  WEIR_MEMORY_POOLS_(X, allocation)                                                                \
  WEIR_MEMORY_POOLS_(X, segment)                                                                   \
  WEIR_MEMORY_POOLS_(X, active)                                                                    \
  WEIR_MEMORY_POOLS_(X, inactive_split)                                                            \
  WEIR_MEMORY_POOLS_(X, allocated_bytes)                                                           \
  WEIR_MEMORY_POOLS_(X, reserved_bytes)                                                            \
  WEIR_MEMORY_POOLS_(X, active_bytes)                                                              \
  WEIR_MEMORY_POOLS_(X, inactive_split_bytes)                                                      \
  WEIR_MEMORY_POOLS_(X, requested_bytes)                                                           \
  WEIR_MEMORY_KINDS_(X, "oversize_allocations", oversize_allocations)                              \
  WEIR_MEMORY_KINDS_(X, "oversize_segments", oversize_segments)                                    \
  X("max_split_size", max_split_size)                                                              \
  X("num_alloc_retries", num_alloc_retries)                                                        \
  X("num_ooms", num_ooms)                                                                          \
  X("num_sync_all_streams", num_sync_all_streams)                                                  \
  X("num_device_alloc", num_device_alloc)                                                          \
  X("num_device_free", num_device_free)                                                            \
  X("num_stream_waits", num_stream_waits)                                                          \
  X("num_stitches", num_stitches)                                                                  \
  X("metadata_bytes", metadata_bytes)                                                              \
  X("paused_bytes", paused_bytes)                                                                  \
  X("paused_saved_bytes", paused_saved_bytes)

typedef struct weir_memory_stats {
#define WEIR_MEMORY_STATS_FIELD(name, field) int64_t field;
  WEIR_MEMORY_STATS_MAP(WEIR_MEMORY_STATS_FIELD)
#undef WEIR_MEMORY_STATS_FIELD
} weir_memory_stats;

WEIR_PUBLIC weir_status weir_memory_get_stats(weir_memory_stats *out, weir_device device);
/* The figure called `name`. Errors: EINVAL. */
WEIR_PUBLIC weir_status weir_memory_stat(int64_t *out, weir_device device, const char *name);
/* Peaks begin anew at what is now (torch.cuda.reset_peak_memory_stats). */
WEIR_PUBLIC weir_status weir_memory_reset_peak(weir_device device);
/* The sums (allocated, freed) and the num_... begin anew at 0
 * (torch.cuda.reset_accumulated_memory_stats). */
WEIR_PUBLIC weir_status weir_memory_reset_accumulated(weir_device device);

/* allocated_bytes and reserved_bytes, now and at their peak, bytes; 0 for a device that was not
 * used yet, and asking does not open it (so do PyTorch's functions of these names). */
WEIR_PUBLIC uint64_t weir_memory_allocated(weir_device device);
WEIR_PUBLIC uint64_t weir_max_memory_allocated(weir_device device);
WEIR_PUBLIC uint64_t weir_memory_reserved(weir_device device);
WEIR_PUBLIC uint64_t weir_max_memory_reserved(weir_device device);
/* The reserved ones, by the names that PyTorch had for them first. */
WEIR_PUBLIC uint64_t weir_memory_cached(weir_device device);
WEIR_PUBLIC uint64_t weir_max_memory_cached(weir_device device);
/* What the device itself states, bytes: free for anybody, and in all (cudaMemGetInfo). Errors:
 * EINVAL and the device's. */
WEIR_PUBLIC weir_status weir_mem_get_info(uint64_t *free_bytes, uint64_t *total_bytes,
                                          weir_device device);

/* The largest request that would succeed from cached memory of the stream alone, bytes. */
WEIR_PUBLIC weir_status weir_memory_largest_free_block(uint64_t *out, weir_device device,
                                                       weir_stream *stream);
/* The table of torch.cuda.memory_summary(); abbreviated: without the lines by pool. *out is new:
 * free() it. */
WEIR_PUBLIC weir_status weir_memory_summary(char **out, weir_device device, bool abbreviated);

/* ---- pinned host memory -------------------------------------------------------------------------
 * Page-locked memory that devices copy from and to at full speed. A block is free for everybody as
 * soon as it is freed and the work recorded with weir_record_stream() is complete: name every
 * stream, of any device, that reads or writes it. Alignment 512. Sizes are rounded up to one of 8
 * steps a doubling, from 64 MiB on to 4 KiB. A block can be copied from and to as a whole: it lies
 * within one registration. After fork() the child sees zeros in it and cannot allocate any. */

/* As in cudaHostAlloc; each set of flags has a pool of its own. With unified addressing all pinned
 * memory is portable and mapped anyway. */
enum {
  WEIR_PINNED_PORTABLE = 1,
  WEIR_PINNED_MAPPED = 2,
  WEIR_PINNED_WRITE_COMBINED = 4 /* the host should only write it */
};

/* *out is new: weir_pinned_free() it; NULL for 0 bytes. Of the current device. Errors: EOOM with a
 * sentence that gives the reason; those of weir_malloc() where there is no device: only a device
 * can lock memory. */
WEIR_PUBLIC weir_status weir_pinned_malloc(void **out, size_t bytes);
/* Locked by `device`, with WEIR_PINNED_ flags. Errors: also ENOTSUP, EINVAL (unknown flags). */
WEIR_PUBLIC weir_status weir_pinned_malloc_flags(void **out, size_t bytes, weir_device device,
                                                 unsigned flags);
/* Steals ptr; NULL is nothing. Errors: EINVAL, nothing has changed. */
WEIR_PUBLIC weir_status weir_pinned_free(void *ptr);
/* WEIR_PINNED_MEMORY block = NULL; of weir_pinned_malloc() is freed at the end of its block. */
typedef void *weir_pinned_memory_owned;
static inline void weir_pinned_memory_drop(void **block)
{
  if (*block) (void)weir_pinned_free(*block);
  *block = NULL;
}
#define WEIR_PINNED_MEMORY                                                                         \
  __attribute__((cleanup(weir_pinned_memory_drop))) weir_pinned_memory_owned
/* Whether the memory at ptr, which may point into a block, is page-locked. */
WEIR_PUBLIC weir_status weir_is_pinned(bool *out, const void *ptr);

/* Gives all cached pinned memory that no work can touch back. Never waits for work. */
WEIR_PUBLIC weir_status weir_pinned_empty_cache(void);
/* The most bytes the process shall pin here, 0: no bound. As the option pinned_limit_mb. What is
 * pinned already stays. */
WEIR_PUBLIC weir_status weir_pinned_set_limit(uint64_t bytes);

/* Figures of all pools. X(name as in PyTorch's host_memory_stats, field). allocations and
 * allocated_bytes count what is locked, in use or cached; active what is handed out or waits for
 * recorded work. Times are microseconds of locking and unlocking. The last four are ours. */
#define WEIR_PINNED_STATS_MAP(X)                                                                   \
  X("allocations.current", allocations)                                                            \
  X("allocations.peak", allocations_peak)                                                          \
  X("allocations.allocated", allocations_allocated)                                                \
  X("allocations.freed", allocations_freed)                                                        \
  X("allocated_bytes.current", allocated_bytes)                                                    \
  X("allocated_bytes.peak", allocated_bytes_peak)                                                  \
  X("allocated_bytes.allocated", allocated_bytes_allocated)                                        \
  X("allocated_bytes.freed", allocated_bytes_freed)                                                \
  X("active_requests.current", active_requests)                                                    \
  X("active_requests.peak", active_requests_peak)                                                  \
  X("active_requests.allocated", active_requests_allocated)                                        \
  X("active_requests.freed", active_requests_freed)                                                \
  X("active_bytes.current", active_bytes)                                                          \
  X("active_bytes.peak", active_bytes_peak)                                                        \
  X("active_bytes.allocated", active_bytes_allocated)                                              \
  X("active_bytes.freed", active_bytes_freed)                                                      \
  X("num_host_alloc", num_host_alloc)                                                              \
  X("num_host_free", num_host_free)                                                                \
  X("host_alloc_time.total", host_alloc_time_total)                                                \
  X("host_alloc_time.max", host_alloc_time_max)                                                    \
  X("host_alloc_time.min", host_alloc_time_min)                                                    \
  X("host_alloc_time.count", host_alloc_time_count)                                                \
  X("host_alloc_time.avg", host_alloc_time_avg)                                                    \
  X("host_free_time.total", host_free_time_total)                                                  \
  X("host_free_time.max", host_free_time_max)                                                      \
  X("host_free_time.min", host_free_time_min)                                                      \
  X("host_free_time.count", host_free_time_count)                                                  \
  X("host_free_time.avg", host_free_time_avg)                                                      \
  X("requested_bytes.current", requested_bytes)                                                    \
  X("pending_bytes.current", pending_bytes)                                                        \
  X("num_ooms", num_ooms)                                                                          \
  X("limit_bytes", limit_bytes)

typedef struct weir_pinned_stats {
#define WEIR_PINNED_STATS_FIELD(name, field) int64_t field;
  WEIR_PINNED_STATS_MAP(WEIR_PINNED_STATS_FIELD)
#undef WEIR_PINNED_STATS_FIELD
} weir_pinned_stats;

WEIR_PUBLIC weir_status weir_pinned_get_stats(weir_pinned_stats *out);

/* ---- host memory of tensors -------------------------------------------------------------------
 * Memory of tensors on the cpu is the C library's. Blocks of 32 KiB and more are kept when the last
 * tensor of them is gone, and used again for the same size: new memory costs a fault for each of
 * its pages. At most an eighth of the machine's memory is kept, and 512 MiB; nothing under valgrind
 * or AddressSanitizer. */

typedef struct weir_host_cache_stats {
  uint64_t kept_bytes, kept_bytes_peak; /* that no tensor has */
  uint64_t hits, misses;                /* blocks that were kept, or new, when one was asked for */
  uint64_t released;                    /* blocks that were kept and given back to the C library */
} weir_host_cache_stats;
/* Since the process began. */
WEIR_PUBLIC weir_status weir_host_cache_get_stats(weir_host_cache_stats *out);
/* The most bytes to keep; 0: nothing. What is kept beyond is given back. */
WEIR_PUBLIC weir_status weir_host_cache_set_limit(uint64_t bytes);
/* Gives back what is kept. */
WEIR_PUBLIC weir_status weir_host_cache_empty(void);
/* The figure called `name`. Errors: EINVAL. */
WEIR_PUBLIC weir_status weir_pinned_stat(int64_t *out, const char *name);
WEIR_PUBLIC weir_status weir_pinned_reset_peak(void);
/* The largest request that would be served, in any pool, from what is cached, bytes. */
WEIR_PUBLIC weir_status weir_pinned_largest_free_block(uint64_t *out);
/* A table for people; *out is new: free() it. */
WEIR_PUBLIC weir_status weir_pinned_summary(char **out);

#ifdef __cplusplus
}
#endif

#endif
