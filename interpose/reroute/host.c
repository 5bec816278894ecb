/* host.c: page-locked host memory: allocated by the original, since a block goes back to
 * the function it came from, and kept in caches by function and flags. */
#include "interpose/reroute/within.h"

#include <string.h>
#include "interpose/reroute/rules.h"

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

static weir_cache *cache_of(const weir_call *c, const host_way *h)
{
  bool driver = c->bank == WEIR_BANK_DRIVER;
  enum weir_host_kind kind = h->plain ? (driver ? WEIR_HOST_PLAIN : WEIR_HOST_RT_PLAIN)
                                      : (driver ? WEIR_HOST_FLAGS : WEIR_HOST_RT_FLAGS);
  return weir_cache_for((int)(kind * WEIR_HOST_VALUES + h->flags));
}

/* A block that was got: known from here on as the cache's. It stays the program's own where there
 * is no memory for a record. */
static void host_adopt(weir_call *c, const weir_cache *k, void *ptr, size_t asked)
{
  uint64_t at = (uint64_t)(uintptr_t)ptr;
  if (weir_whole_adopt(k->whole, asked, at)) return;
  weir_block_add((weir_block){at, weir_whole_round(asked), weir_cache_tag(k)});
  c->routed = true;
}

static weir_reason why_not_host(const weir_call *c, size_t bytes)
{
  if (weir_route_hands_off()) return weir_hands_off_why();
  if (weir_rules_ask(WEIR_RULES_ALLOC, c->site, bytes) == WEIR_RULE_PASSTHROUGH)
    return WEIR_WHY_RULE;
  return weir_runtime_is_elsewhere(c) ? WEIR_WHY_NO_CACHE : WEIR_WHY_NONE;
}

static CUresult host_alloc(weir_call *c, const host_way *h, void **out, size_t bytes)
{
  uint64_t at;
  bool mine = out && bytes && h->flags < WEIR_HOST_VALUES;
  weir_reason why = mine ? why_not_host(c, bytes) : WEIR_WHY_NONE;
  const weir_cache *k = mine && !why ? cache_of(c, h) : NULL;
  if (mine && !k) (void)weir_left(c, why ? why : WEIR_WHY_NO_CACHE);
  if (!k) {
    CUresult r;
    WEIR_WITH_RELIEF(c, r, host_get(h, out, bytes));
    return r;
  }
  if (weir_whole_reuse(k->whole, bytes, &at)) {
    *out = (void *)(uintptr_t)at;
    if (weir_fill_use == WEIR_FILL_ZERO) memset(*out, 0, bytes);
    c->flags |= WEIR_EVF_CACHED;
    c->routed = true;
    return CUDA_SUCCESS;
  }
  CUresult r = host_get(h, out, weir_whole_round(bytes));
  if (r == CUDA_SUCCESS) {
    host_adopt(c, k, *out, bytes);
    c->why = weir_why_missed((uint64_t)(uintptr_t)*out);
    return r;
  }
  while (r != CUDA_SUCCESS && weir_route_failed((int)r))
    if ((r = host_get(h, out, bytes)) == CUDA_SUCCESS) weir_route_error_gone(c->bank);
  return r;
}

CUresult weir_r_cuMemAllocHost(weir_call *c, CUresult (*real)(void **, size_t), void **out,
                               size_t bytes)
{
  return host_alloc(c, &(host_way){.plain = real}, out, bytes);
}

CUresult weir_r_cuMemHostAlloc(weir_call *c, CUresult (*real)(void **, size_t, unsigned),
                               void **out, size_t bytes, unsigned flags)
{
  return host_alloc(c, &(host_way){.flagged = real, .flags = flags}, out, bytes);
}

CUresult weir_r_cuMemFreeHost(weir_call *c, CUresult (*real)(void *), void *ptr)
{
  uint64_t at = (uint64_t)(uintptr_t)ptr;
  weir_whole_block b;
  weir_fate f = weir_keep(c, at, true, &b);
  if (f == WEIR_FATE_KEPT) return CUDA_SUCCESS;
  CUresult r = real((void *)(uintptr_t)weir_to_free(f, at));
  weir_freed(f, &b, (int)r);
  return r;
}
