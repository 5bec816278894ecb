/* alloc.c: see reroute.h. Device memory: its allocations out of the caches (cache.c) and
 * its frees into them.
 *
 * What is left to the driver: sizes of 0, allocations and frees while a stream is being captured, a
 * thread without a context, a runtime before 12 whose device is chosen but not yet current, blocks
 * that were shared or that a graph may use, and everything after a sticky error. Why a call was
 * left to the driver, or had to ask it for memory, is said in the call's event (weir_call.why). */
#include "interpose/reroute/within.h"

#include "interpose/reroute/poison.h"
#include "interpose/reroute/rules.h"
#include "interpose/record/hash_table.h"
#include "interpose/record/work.h"
#include "interpose/elf/elf.h"

enum { STREAMS = 64 }; /* that a free outlasts, at most */

/* ---- allocating ------------------------------------------------------------------------------ */

bool weir_old_runtime_is_elsewhere(void)
{
  typedef cudaError_t (*fn)(int *);
  int device = -1;
  fn ask =
      (fn)(uintptr_t)weir_elf_symbol_again(WEIR_ELF_ID_GET_DEVICE, WEIR_BANK_RT11, "cudaGetDevice");
  weir_context_refresh(&weir_self);
  if (!weir_self.last_context_number) return true;
  return !ask || ask(&device) != cudaSuccess || device != (int)weir_self.last_device;
}

weir_reason weir_hands_off_why(void)
{
  return weir_capture_live() ? WEIR_WHY_CAPTURE : WEIR_WHY_ERROR;
}

/* The trace's reasons for a miss are the cache's. */
uint8_t weir_why_missed(uint64_t address)
{
  _Static_assert((int)WEIR_WHOLE_FIRST == (int)WEIR_WHY_FIRST &&
                     (int)WEIR_WHOLE_WAITED_FOR == (int)WEIR_WHY_WAITING &&
                     (int)WEIR_WHOLE_TRIM == (int)WEIR_WHY_TRIM,
                 "one is the other");
  return (uint8_t)weir_whole_find(address).why;
}

/* What has to be in a block is in it; false: it went back, the original has to do it. */
static bool filled(weir_call *c, const weir_cache *k, uint64_t at, uint64_t bytes, bool hit)
{
  bool full;
  CUresult r = weir_fill_device(k->device.number, at, weir_whole_round(bytes), hit);
  if (r == CUDA_SUCCESS) return true;
  weir_route_saw((int)r);
  (void)weir_whole_free(at, NULL, 0, &full);
  return weir_left(c, WEIR_WHY_ERROR);
}

/* Memory that the driver gave to the program itself. */
static void fill_passed(uint64_t at, uint64_t bytes)
{
  if (weir_fill_use != WEIR_FILL_POISON || !at || weir_route_hands_off()) return;
  weir_context_refresh(&weir_self);
  (void)weir_fill_device(weir_self.last_context_number, at, bytes, false);
}

/* There was nothing idle, or what is has to be filled. */
__attribute__((noinline)) static bool serve_slowly(weir_call *c, weir_cache *k, uint64_t bytes,
                                                   uint64_t *address)
{
  bool hit;
  weir_status st = weir_whole_malloc(k->whole, bytes, address, &hit);
  while (st == WEIR_EOOM && weir_route_failed(CUDA_ERROR_OUT_OF_MEMORY))
    st = weir_whole_malloc(k->whole, bytes, address, &hit);
  if (st) return weir_left(c, WEIR_WHY_NO_MEMORY);
  if (__builtin_expect(weir_fill_use, 0) && !filled(c, k, *address, bytes, hit)) return false;
  if (hit)
    c->flags |= WEIR_EVF_CACHED;
  else
    c->why = weir_why_missed(*address);
  c->routed = true;
  return true;
}

/* Memory from the cache or for it; false: the original has to do it. */
WEIR_INLINE bool serve(weir_call *c, uint64_t bytes, uint64_t *address)
{
  if (!bytes) return false;
  if (__builtin_expect(weir_fill_use == WEIR_FILL_POISON, 0)) weir_poison_poll();
  if (__builtin_expect(weir_route_hands_off(), 0)) return weir_left(c, weir_hands_off_why());
  if (weir_rules_ask(WEIR_RULES_ALLOC, c->site, bytes) == WEIR_RULE_PASSTHROUGH)
    return weir_left(c, WEIR_WHY_RULE);
  weir_cache *k = weir_runtime_is_elsewhere(c) ? NULL : weir_cache_here();
  if (__builtin_expect(!k, 0)) return weir_left(c, WEIR_WHY_NO_CACHE);
  if (__builtin_expect(weir_fill_use, 0) || !weir_whole_reuse(k->whole, bytes, address))
    return serve_slowly(c, k, bytes, address);
  c->flags |= WEIR_EVF_CACHED;
  c->routed = true;
  return true;
}

CUresult weir_r_cuMemAlloc(weir_call *c, CUresult (*real)(CUdeviceptr *, size_t), CUdeviceptr *out,
                           size_t bytes)
{
  uint64_t at;
  if (!out || !serve(c, bytes, &at)) {
    CUresult r;
    WEIR_WITH_RELIEF(c, r, real(out, bytes));
    if (r == CUDA_SUCCESS && out) fill_passed(*out, bytes);
    return r;
  }
  *out = at;
  return CUDA_SUCCESS;
}

/* ---- pitched: the pitch is the driver's, learnt from its first answer for a width ------------ */

enum { PITCHES_MOST = 1 << 16 };
static _Atomic unsigned pitches_known;
static weir_table pitches; /* width << 16 | element size << 8 | context: pitch */

static uint64_t pitch_key(uint64_t width, unsigned element)
{
  weir_context_refresh(&weir_self);
  if (!width || width >> 48) return 0;
  return width << 16 | (uint64_t)(element & 255) << 8 | weir_self.last_context_number;
}

/* 0: not known. */
static uint64_t pitch_known(uint64_t key)
{
  weir_entry *e = key ? weir_table_find(&pitches, key) : NULL;
  return e ? atomic_load_explicit(&e->y, memory_order_acquire) : 0;
}

/* What the driver has said; and of the memory that it gave to the program itself. */
static void pitch_learn(uint64_t key, uint64_t pitch, uint64_t at, uint64_t rows)
{
  if (key && !pitch_known(key) && atomic_fetch_add(&pitches_known, 1) < PITCHES_MOST)
    (void)weir_table_put(&pitches, key, 0, pitch);
  fill_passed(at, pitch * rows);
}

/* Memory for `rows` rows of a width whose pitch is known; 0 in *pitch: the original has to do it.
 */
static bool serve_pitched(weir_call *c, uint64_t key, uint64_t rows, uint64_t *pitch, uint64_t *at)
{
  uint64_t bytes;
  *pitch = pitch_known(key);
  return *pitch && !__builtin_mul_overflow(*pitch, rows, &bytes) && serve(c, bytes, at);
}

cudaError_t weir_r_cudaMallocPitch(weir_call *c,
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
  WEIR_WITH_RELIEF(c, r, real(out, pitch, width, height));
  if (r == cudaSuccess && out && pitch && height)
    pitch_learn(key, *pitch, (uint64_t)(uintptr_t)*out, height);
  return r;
}

cudaError_t weir_r_cudaMalloc3D(weir_call *c,
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
  WEIR_WITH_RELIEF(c, r, real(out, extent));
  if (r == cudaSuccess && out && extent.height && extent.depth)
    pitch_learn(key, out->pitch, (uint64_t)(uintptr_t)out->ptr, extent.height * extent.depth);
  return r;
}

CUresult weir_r_cuMemAllocPitch(weir_call *c,
                                CUresult (*real)(CUdeviceptr *, size_t *, size_t, size_t, unsigned),
                                CUdeviceptr *out, size_t *pitch, size_t width, size_t height,
                                unsigned element)
{
  bool sane = element == 4 || element == 8 || element == 16;
  uint64_t key = sane ? pitch_key(width, element) : 0, known, at;
  if (out && pitch && serve_pitched(c, key, height, &known, &at)) {
    *out = at;
    *pitch = known;
    return CUDA_SUCCESS;
  }
  CUresult r;
  WEIR_WITH_RELIEF(c, r, real(out, pitch, width, height, element));
  if (r == CUDA_SUCCESS && out && pitch && height) pitch_learn(key, *pitch, *out, height);
  return r;
}

/* ---- freeing --------------------------------------------------------------------------------- */

/* strict: as cudaFree, which waits for the work of the context that the memory is in. */
__attribute__((noinline)) static weir_fate keep_strictly(weir_call *c, weir_cache *k,
                                                         const weir_whole_block *b)
{
  bool full;
  uint64_t start = weir_ticks();
  CUresult r = weir_cache_wait(k);
  if (r != CUDA_SUCCESS) {
    bool captures = r == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED || r == CUDA_ERROR_NOT_SUPPORTED;
    c->why = captures ? WEIR_WHY_CAPTURE : WEIR_WHY_ERROR;
    return WEIR_FATE_REAL;
  }
  uint64_t end = weir_ticks();
  c->waited = end - start;
  return weir_whole_release(b, NULL, 0, end, &full) ? WEIR_FATE_REAL : WEIR_FATE_KEPT;
}

WEIR_INLINE weir_fate keep_relaxed(weir_call *c, weir_cache *k, const weir_whole_block *b)
{
  void *streams[STREAMS];
  bool full = false;
  int n = atomic_load_explicit(&weir_recording, memory_order_relaxed)
              ? weir_work_list(k->device.number, streams, STREAMS)
              : -1;
  if (n < 0) return keep_strictly(c, k, b);
  if (weir_whole_release(b, streams, (unsigned)n, c->start, &full)) return WEIR_FATE_REAL;
  if (n) c->why = WEIR_WHY_PENDING;
  if (!full) return WEIR_FATE_KEPT;
  uint64_t start = weir_ticks();
  if (weir_cache_wait(k) == CUDA_SUCCESS) c->waited = weir_ticks() - start;
  return WEIR_FATE_KEPT;
}

/* For the event, what is freed: `b` is what was found at the address, in cache `k`. */
WEIR_INLINE void note_freed(weir_call *c, uint64_t address, const weir_whole_block *b,
                            const weir_cache *k)
{
  c->routed = k != NULL;
  if (!k)
    c->held = weir_block_take(address);
  else if (b->state == WEIR_WHOLE_LIVE)
    c->held = (weir_block){address, b->requested, weir_cache_tag(k)};
}

/* The original frees a block, and the driver may hand its address out again before that returns: so
 * nobody knows of it from here on. */
static weir_fate part(const weir_whole_block *b)
{
  if (!weir_whole_part(b)) return WEIR_FATE_TWICE; /* by another thread just now */
  (void)weir_block_take(b->address);
  return WEIR_FATE_REAL;
}

weir_fate weir_keep(weir_call *c, uint64_t address, bool host, weir_whole_block *b)
{
  *b = weir_whole_find(address);
  weir_cache *k = weir_cache_of(b);
  note_freed(c, address, b, k);
  if (__builtin_expect(weir_fill_use == WEIR_FILL_POISON, 0)) weir_poison_poll();
  if (!k) return WEIR_FATE_FOREIGN;
  if (k->device.host != host) return WEIR_FATE_FOREIGN; /* by the wrong function */
  if (b->state != WEIR_WHOLE_LIVE) return WEIR_FATE_TWICE;
  if (weir_route_hands_off())
    c->why = (uint8_t)weir_hands_off_why();
  else if (b->serial <= atomic_load(&weir_tainted))
    c->why = WEIR_WHY_GRAPH;
  else if (weir_cache_reached(k))
    c->why = WEIR_WHY_PEER;
  if (c->why) return part(b);
  weir_fate f = weir_mode_now() == WEIR_RELAXED ? keep_relaxed(c, k, b) : keep_strictly(c, k, b);
  if (f != WEIR_FATE_KEPT) return part(b);
  c->flags |= WEIR_EVF_CACHED;
  c->held.bytes = b->bytes; /* what is cached */
  return f;
}

void weir_route_handed_out(uint64_t address)
{
  /* Without a context there is no record; and a child forked then has the caches' lock as it was.
   */
  if (address && weir_mode_now() != WEIR_OBSERVE && weir_context_any()) weir_whole_disown(address);
}

uint64_t weir_to_free(weir_fate f, uint64_t address)
{
  return f == WEIR_FATE_TWICE ? WEIR_NOBODYS : address;
}

void weir_freed(weir_fate f, const weir_whole_block *b, int error)
{
  if (f != WEIR_FATE_REAL || !error) return;
  const weir_cache *k = weir_cache_of(b);
  weir_whole *w = __atomic_load_n(&k->whole, __ATOMIC_ACQUIRE);
  if (!w) return; /* its context is gone, and the memory with it */
  weir_block_add((weir_block){b->address, b->bytes, weir_cache_tag(k)});
  weir_whole_stay(w, b);
}

CUresult weir_r_cuMemFree(weir_call *c, CUresult (*real)(CUdeviceptr), CUdeviceptr ptr)
{
  weir_whole_block b;
  weir_fate f = weir_keep(c, ptr, false, &b);
  if (f == WEIR_FATE_KEPT) return CUDA_SUCCESS;
  CUresult r = real(weir_to_free(f, ptr));
  weir_freed(f, &b, (int)r);
  return r;
}

/* ---- left to the driver ---------------------------------------------------------------------- */

/* A stream-ordered free of memory from cudaMalloc is the driver's business. */
static weir_fate leave_to_driver(weir_call *c, uint64_t address, weir_whole_block *b)
{
  *b = weir_whole_find(address);
  const weir_cache *k = weir_cache_of(b);
  note_freed(c, address, b, k);
  if (!k) return WEIR_FATE_FOREIGN;
  c->why = WEIR_WHY_ORDERED;
  return b->state == WEIR_WHOLE_LIVE ? part(b) : WEIR_FATE_TWICE;
}

CUresult weir_r_cuMemFreeAsync(weir_call *c, CUresult (*real)(CUdeviceptr, CUstream),
                               CUdeviceptr ptr, CUstream stream)
{
  weir_whole_block b;
  weir_fate f = leave_to_driver(c, ptr, &b);
  CUresult r = real(weir_to_free(f, ptr), stream);
  weir_freed(f, &b, (int)r);
  return r;
}
