/* host_cache.c: see host_cache.h.
 *
 * A guard that nobody waits for protects the few entries: who finds it taken allocates or frees as
 * if there were no cache. After a fork a guard left taken in the child stays so, and the child goes
 * without. */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "core/base/compiler.h"
#include "core/base/require.h"
#include "core/tensor/host_cache.h"
#include "core/weir/memory.h"

enum { ENTRIES = 128, STALE = 1024, PAGE = 4096, HUGE_PAGE = 2 << 20, MOST_KEPT = 512 << 20 };

typedef struct kept_block {
  void *at;       /* owned */
  uint64_t bytes; /* whole grains */
  uint64_t since; /* number of blocks given back before */
} kept_block;

static struct {
  atomic_flag busy;
  int count;
  kept_block block[ENTRIES]; /* oldest first */
  uint64_t given;            /* blocks, so far */
  uint64_t kept;             /* bytes */
} cache = {.busy = ATOMIC_FLAG_INIT};

static _Atomic uint64_t limit = UINT64_MAX; /* bytes; UINT64_MAX: not known yet */
static _Atomic uint64_t kept_now, kept_most, hits, misses, released;

/* ---- how much -------------------------------------------------------------------------------- */

static bool is_watched(void)
{
  const char *preload = getenv("LD_PRELOAD");
  return WEIR_ASAN || (preload && strstr(preload, "vgpreload"));
}

/* An eighth of the machine's memory, MOST_KEPT at most. */
static uint64_t usual_limit(void)
{
  long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  uint64_t part = pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page / 8 : 0;
  if (is_watched()) return 0;
  return part < MOST_KEPT ? part : MOST_KEPT;
}

static uint64_t limit_now(void)
{
  uint64_t most = atomic_load_explicit(&limit, memory_order_relaxed), unknown = UINT64_MAX;
  if (most != UINT64_MAX) return most;
  most = usual_limit();
  return atomic_compare_exchange_strong(&limit, &unknown, most) ? most : unknown;
}

/* ---- the entries ----------------------------------------------------------------------------- */

static bool enter_cache(void)
{
  return !atomic_flag_test_and_set_explicit(&cache.busy, memory_order_acquire);
}

static void leave_cache(void)
{
  uint64_t most = atomic_load_explicit(&kept_most, memory_order_relaxed);
  atomic_store_explicit(&kept_now, cache.kept, memory_order_relaxed);
  if (cache.kept > most) atomic_store_explicit(&kept_most, cache.kept, memory_order_relaxed);
  atomic_flag_clear_explicit(&cache.busy, memory_order_release);
}

static void *take_cached(int i)
{
  void *at = cache.block[i].at;
  cache.kept -= cache.block[i].bytes;
  cache.count--;
  memmove(&cache.block[i], &cache.block[i + 1], (size_t)(cache.count - i) * sizeof *cache.block);
  return at;
}

static void free_oldest(void)
{
  free(take_cached(0));
  atomic_fetch_add_explicit(&released, 1, memory_order_relaxed);
}

/* All that is kept beyond `most` bytes. */
static void shrink_to(uint64_t most)
{
  while (cache.count && cache.kept > most)
    free_oldest();
}

static uint64_t whole_grains(uint64_t bytes)
{
  uint64_t grain = (1ULL << (63 - __builtin_clzll(bytes | PAGE))) / 8;
  grain = bytes >= HOST_BLOCK_LARGE ? HOST_BLOCK_GRAIN : grain > PAGE ? grain : PAGE;
  return (bytes + grain - 1) / grain * grain;
}

static void *kept_of(uint64_t size)
{
  void *at = NULL;
  if (!limit_now() || !enter_cache()) return NULL;
  for (int i = cache.count - 1; i >= 0 && !at; i--)
    if (cache.block[i].bytes == size) at = take_cached(i);
  leave_cache();
  return at;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

void *host_block_take(uint64_t bytes)
{
  void *at;
  if (bytes > PTRDIFF_MAX - HOST_BLOCK_GRAIN) return NULL;
  uint64_t size = whole_grains(bytes);
  if ((at = kept_of(size))) {
    atomic_fetch_add_explicit(&hits, 1, memory_order_relaxed);
    return at;
  }
  atomic_fetch_add_explicit(&misses, 1, memory_order_relaxed);
  bool large = size >= HOST_BLOCK_LARGE;
  size_t alignment = large ? HUGE_PAGE : PAGE;
  if (posix_memalign(&at, alignment, size)) {
    (void)weir_host_cache_empty();
    if (posix_memalign(&at, alignment, size)) return NULL;
  }
  if (large) (void)madvise(at, size, MADV_HUGEPAGE);
  return at;
}

void host_block_give(void *block, uint64_t bytes)
{
  uint64_t size = whole_grains(bytes), most = limit_now();
  if (size > most || !enter_cache()) {
    free(block);
    return;
  }
  cache.given++;
  while (cache.count && cache.given - cache.block[0].since > STALE)
    free_oldest();
  if (cache.count == ENTRIES) free_oldest();
  shrink_to(most - size);
  cache.block[cache.count++] = (kept_block){block, size, cache.given};
  cache.kept += size;
  leave_cache();
}

static __attribute__((destructor)) void end_host_cache(void)
{
  (void)weir_host_cache_empty();
}

/* ---- for the program ------------------------------------------------------------------------- */

weir_status weir_host_cache_empty(void)
{
  if (!enter_cache()) return WEIR_OK;
  shrink_to(0);
  leave_cache();
  return WEIR_OK;
}

weir_status weir_host_cache_set_limit(uint64_t bytes)
{
  uint64_t most = bytes < INT64_MAX ? bytes : INT64_MAX;
  atomic_store(&limit, is_watched() ? 0 : most);
  if (!enter_cache()) return WEIR_OK;
  shrink_to(most);
  leave_cache();
  return WEIR_OK;
}

weir_status weir_host_cache_get_stats(weir_host_cache_stats *out)
{
  WEIR_REQUIRE(out);
  *out = (weir_host_cache_stats){.kept_bytes = atomic_load(&kept_now),
                                 .kept_bytes_peak = atomic_load(&kept_most),
                                 .hits = atomic_load(&hits),
                                 .misses = atomic_load(&misses),
                                 .released = atomic_load(&released)};
  return WEIR_OK;
}
