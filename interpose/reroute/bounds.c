/* bounds.c: copies and fills of memory that the program does not have: what it has freed and a
 * cache holds, and what lies between the bytes it asked for and the end of the block that it got.
 * The driver would take both, for it is real memory, where without the caches it refuses them with
 * CUDA_ERROR_INVALID_VALUE. So the same is answered here, before it.
 *
 * Whether a driver refuses what ends between the bytes asked for and its own granularity is not
 * documented. It is tried once, at the first such copy, on a block of one byte: a driver that
 * takes two bytes there judges by its granularity, which is no finer than that of the caches, and
 * is left to judge all such copies. The byte stays allocated, since a free would wait for the
 * device.
 *
 * An address that is the start of a block costs a look-up. One inside a block is compared with the
 * block that the thread's last such copy was in, and else the driver is asked where its block
 * starts. */
#include "interpose/record/captures.h"
#include "interpose/record/context.h"
#include "interpose/record/pointers.h"
#include "interpose/reroute/block_cache.h"
#include "interpose/reroute/reroute.h"

/* ---- what the driver judges by --------------------------------------------------------------- */

enum { NOT_TRIED, BY_BYTES, BY_GRANULES };

static _Atomic int driver_judges;

/* In a stream of its own, which is no part of a capture. */
static int try_two_bytes(CUdeviceptr at)
{
  PFN_cuStreamCreate_v2000 create = WEIR_HELPER(cuStreamCreate);
  PFN_cuStreamDestroy_v4000 destroy = WEIR_HELPER(cuStreamDestroy_v2);
  PFN_cuMemsetD8Async_v3020 set = WEIR_HELPER(cuMemsetD8Async);
  CUstream stream;
  if (!create || !destroy || !set) return BY_GRANULES;
  if (create(&stream, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) return NOT_TRIED;
  CUresult r = set(at, 0, 2, stream);
  (void)destroy(stream);
  return r == CUDA_SUCCESS ? BY_GRANULES : BY_BYTES;
}

static int try_driver(void)
{
  PFN_cuMemAlloc_v3020 get = WEIR_HELPER(cuMemAlloc_v2);
  CUdeviceptr at = 0;
  if (!get) return BY_GRANULES;
  capture_relaxed mode = capture_relax();
  int judges = get(&at, 1) == CUDA_SUCCESS ? try_two_bytes(at) : NOT_TRIED;
  capture_relax_end(&mode);
  return judges;
}

static bool judges_by_bytes(void)
{
  int judges = atomic_load_explicit(&driver_judges, memory_order_relaxed);
  if (judges == NOT_TRIED) {
    judges = try_driver();
    atomic_store_explicit(&driver_judges, judges, memory_order_relaxed);
  }
  return judges == BY_BYTES;
}

/* ---- the block of an address ----------------------------------------------------------------- */

static uint64_t start_of(uint64_t at, uint64_t *last)
{
  PFN_cuMemGetAddressRange_v3020 ask = WEIR_HELPER(cuMemGetAddressRange_v2);
  CUdeviceptr start = 0;
  const pointer_block b = pointer_block_at(*last);
  if (b.tag && at - b.start < b.bytes) return b.start;
  if (!ask || ask(&start, NULL, at) != CUDA_SUCCESS) return 0;
  return *last = start;
}

/* A block that was shared is in no cache, and as long as it was made for one. */
static block_cache_block shared_block(uint64_t start)
{
  const pointer_block b = pointer_block_at(start);
  if (!(b.tag & WEIR_TAG_SHORT)) return (block_cache_block){.state = BLOCK_CACHE_NONE};
  return (block_cache_block){.state = BLOCK_CACHE_LIVE,
                             .address = start,
                             .requested = b.bytes,
                             .bytes = block_cache_round(b.bytes)};
}

static block_cache_block block_with_end(uint64_t at, uint64_t *last)
{
  block_cache_block b = block_cache_find(at);
  if (b.state != BLOCK_CACHE_NONE) return b;
  uint64_t start = start_of(at, last);
  if (start) b = block_cache_find(start);
  return b.state == BLOCK_CACHE_NONE ? shared_block(start ? start : at) : b;
}

/* Host memory that the driver does not know is pageable memory to it, unless the call requires more
 * of it. */
static bool is_judged(uint64_t at, bool known)
{
  unsigned mem = block_tag_mem(pointer_tag(at));
  return mem == WEIR_MEM_DEVICE || (mem == WEIR_MEM_PINNED && known);
}

bool reroute_refuses_bytes(uint64_t at, uint64_t bytes, bool known, int slot)
{
  if (!is_judged(at, known)) return false;
  const block_cache_block b = block_with_end(at, &thread_self.inner_block[slot]);
  if (b.state == BLOCK_CACHE_NONE) return false;
  uint64_t offset = at - b.address;
  bool freed = b.state != BLOCK_CACHE_LIVE;
  if (!freed && offset <= b.requested && bytes <= b.requested - offset) return false;
  if (reroute_context_broken()) return false; /* the driver's error comes first */
  if (freed) return true;
  bool in_block = offset <= b.bytes && bytes <= b.bytes - offset;
  return !in_block || judges_by_bytes();
}

/* ---- copies and fills ------------------------------------------------------------------------ */

/* Bytes from the first to the last of a box; what overflows is as many as there can be. */
static uint64_t box_span(uint64_t width, uint64_t pitch, uint64_t height, uint64_t rows,
                         uint64_t depth)
{
  uint64_t slice, slices, lines, all;
  if (!pitch) pitch = width;
  if (!rows) rows = height;
  if (__builtin_mul_overflow(pitch, rows, &slice) ||
      __builtin_mul_overflow(slice, depth - 1, &slices) ||
      __builtin_mul_overflow(pitch, height - 1, &lines) ||
      __builtin_add_overflow(slices, lines, &all) || __builtin_add_overflow(all, width, &all))
    return UINT64_MAX;
  return all;
}

static bool refuses_end(const copy_args *a, bool dst)
{
  uint8_t end = dst ? a->dst_end : a->src_end;
  if (end > COPY_EITHER) return false;
  uint64_t at = dst ? a->dst + a->dst_offset : a->src + a->src_offset;
  uint64_t bytes = a->width;
  if (a->dimensions > 1)
    bytes = box_span(a->width, dst ? a->dst_pitch : a->src_pitch, a->height,
                     dst ? a->dst_rows : a->src_rows, a->depth);
  return reroute_refuses_bytes(at, bytes, end == COPY_DEVICE, !dst);
}

/* Copies with an array count elements, which only the driver can multiply. */
bool reroute_refuses_copy(const copy_args *a)
{
  if (a->elements || !a->width || !a->height || !a->depth) return false;
  return refuses_end(a, true) || refuses_end(a, false);
}

bool reroute_refuses_fill(uint64_t at, uint64_t pitch, uint64_t width, uint64_t rows)
{
  if (!width || !rows) return false;
  return reroute_refuses_bytes(at, box_span(width, pitch, rows, 0, 1), true, 0);
}

static bool refuses_nth(const copy_args *a, size_t i, size_t *failed)
{
  if (!reroute_refuses_copy(a)) return false;
  if (failed) *failed = i;
  return true;
}

bool reroute_refuses_batch(const CUdeviceptr *dsts, const CUdeviceptr *srcs, const size_t *sizes,
                           size_t count, size_t *failed)
{
  for (size_t i = 0; dsts && srcs && sizes && i < count; i++) {
    const copy_args a = copy_args_plain(dsts[i], srcs[i], sizes[i], WEIR_KIND_DEFAULT, 0, 0, false);
    if (refuses_nth(&a, i, failed)) return true;
  }
  return false;
}

bool reroute_refuses_boxes(const CUDA_MEMCPY3D_BATCH_OP *list, size_t count, size_t *failed)
{
  for (size_t i = 0; list && i < count; i++) {
    const copy_args a = copy_args_batch_op(&list[i], 0);
    if (refuses_nth(&a, i, failed)) return true;
  }
  return false;
}
