/* host.c: page-locked host memory: allocated by the original, since a block goes back to
 * the function it came from, and kept in caches by function and flags. */
#include "interpose/reroute/context_cache.h"

#include <string.h>
#include "interpose/reroute/cache_rules.h"
#include "interpose/reroute/places.h"

/* How to get it: the original, one of the two. */
typedef struct host_way {
  CUresult (*plain)(void **, size_t);
  CUresult (*flagged)(void **, size_t, unsigned);
  unsigned flags;
} host_way;

static CUresult host_get(const host_way *h, void **out, size_t bytes)
{
  return h->plain ? h->plain(out, bytes) : h->flagged(out, bytes, h->flags);
}

static context_cache *cache_of(const hook_call *c, const host_way *h)
{
  bool driver = c->bank == WEIR_BANK_DRIVER;
  enum host_kind kind = h->plain ? (driver ? WEIR_HOST_PLAIN : WEIR_HOST_RT_PLAIN)
                                 : (driver ? WEIR_HOST_FLAGS : WEIR_HOST_RT_FLAGS);
  return context_cache_for((int)(kind * WEIR_HOST_VALUES + h->flags));
}

/* A block that was got: known from here on as the cache's. It stays the program's own where there
 * is no memory for a record. */
static void host_adopt(hook_call *c, const context_cache *k, void *ptr, size_t asked)
{
  uint64_t at = (uint64_t)(uintptr_t)ptr;
  if (block_cache_adopt(k->cache, asked, at)) return;
  pointer_block_add((pointer_block){at, block_cache_round(asked), context_cache_tag(k)});
  c->routed = true;
}

static reroute_reason why_not_host(const hook_call *c, size_t bytes)
{
  if (reroute_hands_off()) return hands_off_reason();
  if (!reroute_fits_place(c, REROUTE_PINNED) ||
      reroute_rules_action(WEIR_RULES_ALLOC, c->site, bytes) == WEIR_RULE_PASSTHROUGH)
    return WEIR_WHY_RULE;
  return runtime_is_elsewhere(c) ? WEIR_WHY_NO_CACHE : WEIR_WHY_NONE;
}

static CUresult alloc_page_locked(hook_call *c, const host_way *h, void **out, size_t bytes)
{
  uint64_t at;
  bool mine = out && bytes && h->flags < WEIR_HOST_VALUES;
  reroute_reason why = mine ? why_not_host(c, bytes) : WEIR_WHY_NONE;
  const context_cache *k = mine && !why ? cache_of(c, h) : NULL;
  if (mine && !k) (void)leave_to_original(c, why ? why : WEIR_WHY_NO_CACHE);
  if (!k) {
    CUresult r;
    WEIR_WITH_RELIEF(c, r, REROUTE_PINNED, host_get(h, out, bytes));
    return r;
  }
  if (block_cache_reuse(k->cache, bytes, &at)) {
    *out = (void *)(uintptr_t)at;
    if (fill_in_use == WEIR_FILL_ZERO) memset(*out, 0, bytes);
    c->flags |= WEIR_EVF_CACHED;
    c->routed = true;
    return CUDA_SUCCESS;
  }
  CUresult r = host_get(h, out, block_cache_round(bytes));
  if (r == CUDA_SUCCESS) {
    host_adopt(c, k, *out, bytes);
    c->why = block_miss_reason((uint64_t)(uintptr_t)*out);
    return r;
  }
  while (r != CUDA_SUCCESS && reroute_should_retry((int)r))
    if ((r = host_get(h, out, bytes)) == CUDA_SUCCESS) reroute_retry_succeeded(c->bank);
  return r;
}

CUresult reroute_cuMemAllocHost(hook_call *c, CUresult (*real)(void **, size_t), void **out,
                                size_t bytes)
{
  return alloc_page_locked(c, &(host_way){.plain = real}, out, bytes);
}

CUresult reroute_cuMemHostAlloc(hook_call *c, CUresult (*real)(void **, size_t, unsigned),
                                void **out, size_t bytes, unsigned flags)
{
  return alloc_page_locked(c, &(host_way){.flagged = real, .flags = flags}, out, bytes);
}

CUresult reroute_cuMemFreeHost(hook_call *c, CUresult (*real)(void *), void *ptr)
{
  uint64_t at = (uint64_t)(uintptr_t)ptr;
  block_cache_block b;
  free_outcome f = free_to_cache(c, at, true, &b);
  if (f == FREE_KEPT) return CUDA_SUCCESS;
  CUresult r = real((void *)(uintptr_t)free_address(f, at));
  free_finished(f, &b, (int)r);
  return r;
}
