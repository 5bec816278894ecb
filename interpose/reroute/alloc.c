/* alloc.c: see reroute.h. Device memory: its allocations out of the caches (cache.c) and
 * its frees into them.
 *
 * What is left to the driver: sizes of 0, allocations and frees while a stream is being captured, a
 * thread without a context, a runtime before 12 whose device is chosen but not yet current, blocks
 * that were shared or that a graph may use, and everything after a sticky error. Why a call was
 * left to the driver, or had to ask it for memory, is in the call's event (hook_call.why). */
#include "interpose/reroute/context_cache.h"

#include "interpose/reroute/poison.h"
#include "interpose/reroute/cache_rules.h"
#include "interpose/reroute/places.h"
#include "interpose/record/hash_table.h"
#include "interpose/record/within.h"
#include "interpose/record/work.h"
#include "interpose/elf/elf.h"

enum { STREAMS = 64 }; /* that a free outlasts, at most */

/* ---- allocating ------------------------------------------------------------------------------ */

bool old_runtime_is_elsewhere(void)
{
  typedef cudaError_t (*fn)(int *);
  int device = -1;
  fn ask =
      (fn)(uintptr_t)elf_symbol_cached(WEIR_ELF_ID_GET_DEVICE, WEIR_BANK_RT11, "cudaGetDevice");
  context_refresh(&thread_self);
  if (!thread_self.last_context_number) return true;
  return !ask || ask(&device) != cudaSuccess || device != (int)thread_self.last_device;
}

reroute_reason hands_off_reason(void)
{
  return capture_live() ? WEIR_WHY_CAPTURE : WEIR_WHY_ERROR;
}

/* The trace's reasons for a miss are the cache's. */
uint8_t block_miss_reason(uint64_t address)
{
  _Static_assert((int)BLOCK_CACHE_FIRST == (int)WEIR_WHY_FIRST &&
                     (int)BLOCK_CACHE_WAITED_FOR == (int)WEIR_WHY_WAITING &&
                     (int)BLOCK_CACHE_TRIM == (int)WEIR_WHY_TRIM,
                 "one is the other");
  return (uint8_t)block_cache_find(address).why;
}

/* What has to be in a block is in it; false: it went back, the original has to do it. */
static bool fill_or_return(hook_call *c, const context_cache *k, uint64_t at, uint64_t bytes,
                           bool hit)
{
  bool full;
  CUresult r = fill_device_memory(k->device.number, at, block_cache_round(bytes), hit);
  if (r == CUDA_SUCCESS) return true;
  reroute_note_error((int)r);
  (void)block_cache_free(at, NULL, 0, &full);
  return leave_to_original(c, WEIR_WHY_ERROR);
}

/* Memory that the driver gave to the program itself. */
static void fill_original(uint64_t at, uint64_t bytes)
{
  if (fill_in_use != WEIR_FILL_POISON || !at || reroute_hands_off()) return;
  context_refresh(&thread_self);
  (void)fill_device_memory(thread_self.last_context_number, at, bytes, false);
}

/* There was nothing idle, or what is has to be filled. */
__attribute__((noinline)) static bool serve_slow_path(hook_call *c, context_cache *k,
                                                      uint64_t bytes, uint64_t *address)
{
  bool hit;
  weir_status st = block_cache_malloc(k->cache, bytes, address, &hit);
  while (st == WEIR_EOOM && reroute_should_retry(CUDA_ERROR_OUT_OF_MEMORY))
    st = block_cache_malloc(k->cache, bytes, address, &hit);
  if (st) return leave_to_original(c, WEIR_WHY_NO_MEMORY);
  if (__builtin_expect(fill_in_use, 0) && !fill_or_return(c, k, *address, bytes, hit)) return false;
  if (hit)
    c->flags |= WEIR_EVF_CACHED;
  else
    c->why = block_miss_reason(*address);
  c->routed = true;
  return true;
}

/* Memory from the cache or for it; false: the original has to do it. */
WEIR_INLINE bool serve(hook_call *c, uint64_t bytes, uint64_t *address)
{
  if (!bytes) return false;
  if (__builtin_expect(fill_in_use == WEIR_FILL_POISON, 0)) poison_poll();
  if (__builtin_expect(reroute_hands_off(), 0)) return leave_to_original(c, hands_off_reason());
  if (!reroute_fits_place(c, REROUTE_DEVICE) ||
      reroute_rules_action(WEIR_RULES_ALLOC, c->site, bytes) == WEIR_RULE_PASSTHROUGH)
    return leave_to_original(c, WEIR_WHY_RULE);
  context_cache *k = runtime_is_elsewhere(c) ? NULL : context_cache_here();
  if (__builtin_expect(!k, 0)) return leave_to_original(c, WEIR_WHY_NO_CACHE);
  if (__builtin_expect(fill_in_use, 0) || !block_cache_reuse(k->cache, bytes, address))
    return serve_slow_path(c, k, bytes, address);
  c->flags |= WEIR_EVF_CACHED;
  c->routed = true;
  return true;
}

CUresult reroute_cuMemAlloc(hook_call *c, CUresult (*real)(CUdeviceptr *, size_t), CUdeviceptr *out,
                            size_t bytes)
{
  uint64_t at;
  if (!out || !serve(c, bytes, &at)) {
    CUresult r;
    WEIR_WITH_RELIEF(c, r, REROUTE_DEVICE, real(out, bytes));
    if (r == CUDA_SUCCESS && out) fill_original(*out, bytes);
    return r;
  }
  *out = at;
  return CUDA_SUCCESS;
}

/* ---- pitched: the pitch is the driver's, learnt from its first answer for a width ------------ */

enum { PITCHES_MOST = 1 << 16 };
static _Atomic unsigned pitches_known;
static hash_table pitches; /* width << 16 | element size << 8 | context: pitch */

static uint64_t pitch_key(uint64_t width, unsigned element)
{
  context_refresh(&thread_self);
  if (!width || width >> 48) return 0;
  return width << 16 | (uint64_t)(element & 255) << 8 | thread_self.last_context_number;
}

/* 0: not known. */
static uint64_t pitch_find(uint64_t key)
{
  hash_entry *e = key ? hash_table_find(&pitches, key) : NULL;
  return e ? atomic_load_explicit(&e->y, memory_order_acquire) : 0;
}

/* The driver's answer; and of the memory that it gave to the program itself. */
static void pitch_store(uint64_t key, uint64_t pitch, uint64_t at, uint64_t rows)
{
  if (key && !pitch_find(key) && atomic_fetch_add(&pitches_known, 1) < PITCHES_MOST)
    (void)hash_table_put(&pitches, key, 0, pitch);
  fill_original(at, pitch * rows);
}

/* Memory for `rows` rows of a width whose pitch is known; 0 in *pitch: the original has to do it.
 */
static bool serve_pitched(hook_call *c, uint64_t key, uint64_t rows, uint64_t *pitch, uint64_t *at)
{
  uint64_t bytes;
  *pitch = pitch_find(key);
  return *pitch && !__builtin_mul_overflow(*pitch, rows, &bytes) && serve(c, bytes, at);
}

cudaError_t reroute_cudaMallocPitch(hook_call *c,
                                    cudaError_t (*real)(void **, size_t *, size_t, size_t),
                                    void **out, size_t *pitch, size_t width, size_t height)
{
  uint64_t key = pitch_key(width, 0), known, at;
  if (out && pitch && serve_pitched(c, key, height, &known, &at)) {
    *out = (void *)(uintptr_t)at;
    *pitch = known;
    return cudaSuccess;
  }
  cudaError_t r;
  WEIR_WITH_RELIEF(c, r, REROUTE_DEVICE, real(out, pitch, width, height));
  if (r == cudaSuccess && out && pitch && height)
    pitch_store(key, *pitch, (uint64_t)(uintptr_t)*out, height);
  return r;
}

cudaError_t reroute_cudaMalloc3D(hook_call *c,
                                 cudaError_t (*real)(struct cudaPitchedPtr *, struct cudaExtent),
                                 struct cudaPitchedPtr *out, struct cudaExtent extent)
{
  uint64_t key = pitch_key(extent.width, 1), known, at, rows;
  if (out && !__builtin_mul_overflow(extent.height, extent.depth, &rows) &&
      serve_pitched(c, key, rows, &known, &at)) {
    *out = (struct cudaPitchedPtr){(void *)(uintptr_t)at, known, extent.width, extent.height};
    return cudaSuccess;
  }
  cudaError_t r;
  WEIR_WITH_RELIEF(c, r, REROUTE_DEVICE, real(out, extent));
  if (r == cudaSuccess && out && extent.height && extent.depth)
    pitch_store(key, out->pitch, (uint64_t)(uintptr_t)out->ptr, extent.height * extent.depth);
  return r;
}

CUresult reroute_cuMemAllocPitch(
    hook_call *c, CUresult (*real)(CUdeviceptr *, size_t *, size_t, size_t, unsigned),
    CUdeviceptr *out, size_t *pitch, size_t width, size_t height, unsigned element)
{
  bool sane = element == 4 || element == 8 || element == 16;
  uint64_t key = sane ? pitch_key(width, element) : 0, known, at;
  if (out && pitch && serve_pitched(c, key, height, &known, &at)) {
    *out = at;
    *pitch = known;
    return CUDA_SUCCESS;
  }
  CUresult r;
  WEIR_WITH_RELIEF(c, r, REROUTE_DEVICE, real(out, pitch, width, height, element));
  if (r == CUDA_SUCCESS && out && pitch && height) pitch_store(key, *pitch, *out, height);
  return r;
}

/* ---- freeing --------------------------------------------------------------------------------- */

/* strict: as cudaFree, which waits for the work of the context that the memory is in. */
__attribute__((noinline)) static free_outcome free_strict(hook_call *c, context_cache *k,
                                                          const block_cache_block *b)
{
  bool full;
  uint64_t start = clock_ticks();
  CUresult r = context_cache_wait(k);
  if (r != CUDA_SUCCESS) {
    bool captures = r == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED || r == CUDA_ERROR_NOT_SUPPORTED;
    c->why = captures ? WEIR_WHY_CAPTURE : WEIR_WHY_ERROR;
    return FREE_REAL;
  }
  uint64_t end = clock_ticks();
  c->waited = end - start;
  return block_cache_release(b, NULL, 0, end, &full) ? FREE_REAL : FREE_KEPT;
}

WEIR_INLINE free_outcome keep_relaxed(hook_call *c, context_cache *k, const block_cache_block *b)
{
  void *streams[STREAMS];
  bool full = false;
  int n = atomic_load_explicit(&process_recording, memory_order_relaxed)
              ? work_list(k->device.number, streams, STREAMS)
              : -1;
  if (n < 0) return free_strict(c, k, b);
  if (block_cache_release(b, streams, (unsigned)n, c->start, &full)) return FREE_REAL;
  if (n) c->why = WEIR_WHY_PENDING;
  if (!full) return FREE_KEPT;
  uint64_t start = clock_ticks();
  if (context_cache_wait(k) == CUDA_SUCCESS) c->waited = clock_ticks() - start;
  return FREE_KEPT;
}

/* For the event, what is freed: `b` is what was found at the address, in cache `k`. */
WEIR_INLINE void note_freed(hook_call *c, uint64_t address, const block_cache_block *b,
                            const context_cache *k)
{
  c->routed = k != NULL;
  if (!k)
    c->held = block_take(address);
  else if (b->state == BLOCK_CACHE_LIVE)
    c->held = (pointer_block){address, b->requested, context_cache_tag(k)};
}

/* The original frees a block, and the driver may hand its address out again before that returns: so
 * nobody knows of it from here on. */
static free_outcome forget_block(const block_cache_block *b)
{
  if (!block_cache_detach(b)) return FREE_TWICE; /* by another thread just now */
  (void)pointer_block_remove(b->address);
  return FREE_REAL;
}

free_outcome free_to_cache(hook_call *c, uint64_t address, bool host, block_cache_block *b)
{
  *b = block_cache_find(address);
  context_cache *k = context_cache_of(b);
  note_freed(c, address, b, k);
  if (__builtin_expect(fill_in_use == WEIR_FILL_POISON, 0)) poison_poll();
  if (!k) return FREE_FOREIGN;
  if (k->device.host != host) return FREE_FOREIGN; /* by the wrong function */
  if (b->state != BLOCK_CACHE_LIVE) return FREE_TWICE;
  if (reroute_hands_off())
    c->why = (uint8_t)hands_off_reason();
  else if (b->serial <= atomic_load(&tainted_serial))
    c->why = WEIR_WHY_GRAPH;
  else if (context_cache_reached(k))
    c->why = WEIR_WHY_PEER;
  if (c->why) return forget_block(b);
  free_outcome f = reroute_is_relaxed(c) ? keep_relaxed(c, k, b) : free_strict(c, k, b);
  if (f != FREE_KEPT) return forget_block(b);
  c->flags |= WEIR_EVF_CACHED;
  c->held.bytes = b->bytes; /* what is cached */
  return f;
}

void reroute_address_handed_out(uint64_t address)
{
  /* Without a context there is no record; and a child forked then has the caches' lock as it was.
   */
  if (address && process_mode_now() != WEIR_OBSERVE && context_any())
    block_cache_forget_stale(address);
}

uint64_t free_address(free_outcome f, uint64_t address)
{
  return f == FREE_TWICE ? WEIR_FREED_ADDRESS : address;
}

void free_finished(free_outcome f, const block_cache_block *b, int error)
{
  if (f != FREE_REAL || !error) return;
  const context_cache *k = context_cache_of(b);
  block_cache *w = __atomic_load_n(&k->cache, __ATOMIC_ACQUIRE);
  if (!w) return; /* its context is gone, and the memory with it */
  pointer_block_add((pointer_block){b->address, b->bytes, context_cache_tag(k)});
  block_cache_reattach(w, b);
}

CUresult reroute_cuMemFree(hook_call *c, CUresult (*real)(CUdeviceptr), CUdeviceptr ptr)
{
  block_cache_block b;
  free_outcome f = free_to_cache(c, ptr, false, &b);
  if (f == FREE_KEPT) return CUDA_SUCCESS;
  CUresult r = real(free_address(f, ptr));
  free_finished(f, &b, (int)r);
  return r;
}

/* ---- left to the driver ---------------------------------------------------------------------- */

/* A stream-ordered free of memory from cudaMalloc is the driver's business. */
static free_outcome free_by_driver(hook_call *c, uint64_t address, block_cache_block *b)
{
  *b = block_cache_find(address);
  const context_cache *k = context_cache_of(b);
  note_freed(c, address, b, k);
  if (!k) return FREE_FOREIGN;
  c->why = WEIR_WHY_ORDERED;
  return b->state == BLOCK_CACHE_LIVE ? forget_block(b) : FREE_TWICE;
}

CUresult reroute_cuMemFreeAsync(hook_call *c, CUresult (*real)(CUdeviceptr, CUstream),
                                CUdeviceptr ptr, CUstream stream)
{
  block_cache_block b;
  free_outcome f = free_by_driver(c, ptr, &b);
  CUresult r = real(free_address(f, ptr), stream);
  free_finished(f, &b, (int)r);
  return r;
}
