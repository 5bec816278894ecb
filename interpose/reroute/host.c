/* host.c: page-locked host memory: allocated by the original, since a block goes back to
 * the function it came from, and kept in caches by function and flags. */
#include "interpose/reroute/within.h"

#include <string.h>
#include "interpose/reroute/rules.h"

/* How to get it, bound to its arguments. */
typedef struct host_way {
  enum weir_host_kind kind;
  unsigned flags;
  union {
    int (*plain)(void **, size_t);
    int (*flagged)(void **, size_t, unsigned);
  } real;
} host_way;

static int host_get(const host_way *h, void **out, size_t bytes)
{
  return h->kind == WEIR_HOST_RT_PLAIN || h->kind == WEIR_HOST_PLAIN
             ? h->real.plain(out, bytes)
             : h->real.flagged(out, bytes, h->flags);
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

static int host_alloc(weir_call *c, const host_way *h, void **out, size_t bytes)
{
  uint64_t at;
  bool mine = out && bytes && h->flags < WEIR_HOST_VALUES;
  weir_reason why = mine ? why_not_host(c, bytes) : WEIR_WHY_NONE;
  const weir_cache *k =
      mine && !why ? weir_cache_for((int)(h->kind * WEIR_HOST_VALUES + h->flags)) : NULL;
  if (mine && !k) (void)weir_left(c, why ? why : WEIR_WHY_NO_CACHE);
  if (!k) {
    int r;
    WEIR_WITH_RELIEF(c, r, host_get(h, out, bytes));
    return r;
  }
  if (weir_whole_reuse(k->whole, bytes, &at)) {
    *out = (void *)(uintptr_t)at;
    if (weir_fill_use == WEIR_FILL_ZERO) memset(*out, 0, bytes);
    c->flags |= WEIR_EVF_CACHED;
    c->routed = true;
    return 0;
  }
  int r = host_get(h, out, weir_whole_round(bytes));
  if (r == 0) {
    host_adopt(c, k, *out, bytes);
    c->why = weir_why_missed((uint64_t)(uintptr_t)*out);
    return 0;
  }
  while (r != 0 && weir_route_failed(r))
    if ((r = host_get(h, out, bytes)) == 0) weir_route_error_gone(c->bank);
  return r;
}

cudaError_t weir_r_cudaMallocHost(weir_call *c, cudaError_t (*real)(void **, size_t), void **out,
                                  size_t bytes)
{
  host_way h = {.kind = WEIR_HOST_RT_PLAIN,
                .real.plain = (int (*)(void **, size_t))(uintptr_t)real};
  return (cudaError_t)host_alloc(c, &h, out, bytes);
}

CUresult weir_r_cuMemAllocHost(weir_call *c, CUresult (*real)(void **, size_t), void **out,
                               size_t bytes)
{
  host_way h = {.kind = WEIR_HOST_PLAIN, .real.plain = (int (*)(void **, size_t))(uintptr_t)real};
  return (CUresult)host_alloc(c, &h, out, bytes);
}

cudaError_t weir_r_cudaHostAlloc(weir_call *c, cudaError_t (*real)(void **, size_t, unsigned),
                                 void **out, size_t bytes, unsigned flags)
{
  host_way h = {
      WEIR_HOST_RT_FLAGS, flags, {.flagged = (int (*)(void **, size_t, unsigned))(uintptr_t)real}};
  return (cudaError_t)host_alloc(c, &h, out, bytes);
}

CUresult weir_r_cuMemHostAlloc(weir_call *c, CUresult (*real)(void **, size_t, unsigned),
                               void **out, size_t bytes, unsigned flags)
{
  host_way h = {
      WEIR_HOST_FLAGS, flags, {.flagged = (int (*)(void **, size_t, unsigned))(uintptr_t)real}};
  return (CUresult)host_alloc(c, &h, out, bytes);
}

static int host_free(weir_call *c, int (*real)(void *), void *ptr)
{
  uint64_t at = (uint64_t)(uintptr_t)ptr;
  weir_whole_block b;
  weir_fate f = weir_keep(c, at, true, &b);
  if (f == WEIR_FATE_KEPT) return 0;
  int r = real((void *)(uintptr_t)weir_to_free(f, at));
  weir_freed(f, &b, r);
  return r;
}

cudaError_t weir_r_cudaFreeHost(weir_call *c, cudaError_t (*real)(void *), void *ptr)
{
  return (cudaError_t)host_free(c, (int (*)(void *))(uintptr_t)real, ptr);
}

CUresult weir_r_cuMemFreeHost(weir_call *c, CUresult (*real)(void *), void *ptr)
{
  return (CUresult)host_free(c, (int (*)(void *))(uintptr_t)real, ptr);
}
