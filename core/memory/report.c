/* report.c: why the allocator is out of memory. */
#include <stdio.h>
#include <string.h>
#include "core/memory/history.h"
#include "core/memory/host.h"
#include "core/memory/tags.h"

enum { GROUPS = 64 };

void weir_pool_walk(const weir_pool *p, weir_visit visit, void *user)
{
  for (unsigned i = 0; i < p->head_count; i++)
    for (block_id id = p->heads[i]; id; id = block(id)->right)
      visit(user, block(id));
}

/* ---- out of memory ----------------------------------------------------------------------------
 */

/* What a walk finds, by stream and by tag. */
typedef struct census {
  uint64_t live, cached, pending, free, largest_free;
  uint64_t tag[WEIR_TAGS]; /* live bytes */
  uint64_t largest[2];     /* live blocks */
  uint16_t heap[GROUPS];   /* numbers */
  uint64_t stuck[GROUPS];  /* free bytes of a stream with work in flight */
  unsigned heaps;
} census;

static void count_stream(census *c, const weir_block *b)
{
  unsigned i = 0;
  while (i < c->heaps && c->heap[i] != b->heap)
    i++;
  if (i == GROUPS) return;
  if (i == c->heaps) c->heap[c->heaps++] = b->heap;
  c->stuck[i] += b->bytes;
}

static void count_block(void *user, const weir_block *b)
{
  census *c = user;
  switch (block_state(b)) {
  case BLOCK_LIVE:
    c->live += b->bytes;
    c->tag[b->when % WEIR_TAGS] += b->bytes;
    if (b->bytes > c->largest[0]) {
      c->largest[1] = c->largest[0];
      c->largest[0] = b->bytes;
    } else if (b->bytes > c->largest[1]) {
      c->largest[1] = b->bytes;
    }
    break;
  case BLOCK_FREE:
    c->free += b->bytes;
    if (b->bytes > c->largest_free) c->largest_free = b->bytes;
    if (b->stamp) count_stream(c, b);
    break;
  case BLOCK_PENDING:
    c->pending += b->bytes;
    break;
  case BLOCK_CACHED:
  case BLOCK_REMOTE:
    c->cached += b->bytes;
    break;
  default:
    break;
  }
}

static const char *reason(const weir_pool *p, const census *c, uint64_t bytes, uint64_t device_free)
{
  if (p->config.limit_bytes && weir_pool_limit(p) == p->config.limit_bytes && bytes <= device_free)
    return "the budget is used up";
  if (p->fraction < 1 && bytes <= device_free)
    return "the allowed fraction of the device is used up";
  if (bytes > weir_pool_limit(p)) return "the request is larger than all there may be";
  if (c->pending >= bytes) return "freed memory is still used by other streams";
  if (c->free + c->cached + device_free >= bytes)
    return "enough is free, but in pieces that cannot be joined (fragmented, or stranded on a "
           "stream)";
  return "the memory is truly in use";
}

static double mib(uint64_t bytes)
{
  return (double)bytes / (1 << 20);
}

static void name_owners(char *text, size_t room, const census *c)
{
  size_t used = 0;
  uint64_t seen[WEIR_TAGS];
  memcpy(seen, c->tag, sizeof seen);
  text[0] = 0;
  for (int i = 0; i < 3 && used < room; i++) {
    unsigned most = 0;
    for (unsigned t = 1; t < WEIR_TAGS; t++)
      if (seen[t] > seen[most]) most = t;
    if (!seen[most]) break;
    used += (size_t)snprintf(text + used, room - used, "%s%s %.2f", i ? ", " : "",
                             weir_tag_name(most), mib(seen[most]));
    seen[most] = 0;
  }
}

static uint64_t stranded(const census *c, unsigned *most)
{
  uint64_t all = 0;
  *most = 0;
  for (unsigned i = 0; i < c->heaps; i++) {
    all += c->stuck[i];
    if (c->stuck[i] > c->stuck[*most]) *most = i;
  }
  return all;
}

weir_status weir_pool_oom(weir_heap *h, uint64_t bytes, weir_status why)
{
  weir_pool *p = h->pool;
  census c = {0};
  uint64_t device_free = 0, total;
  char owners[96];
  unsigned most;
  (void)why;
  p->ooms++;
  if (p->backend->source.mem_info(p->backend->self, &device_free, &total)) device_free = 0;
  weir_history_oom(h, bytes, device_free);
  weir_front_freeze(p);
  weir_pool_walk(p, count_block, &c);
  weir_front_thaw(p);
  if (p->host)
    return weir_host_oom(p, bytes,
                         &(host_census){c.live, c.pending, c.free + c.cached, c.largest_free});
  name_owners(owners, sizeof owners, &c);
  uint64_t stuck = stranded(&c, &most);
  return weir_fail(WEIR_EOOM,
                   "CUDA out of memory. Tried to allocate %.2f MiB on device %d: %s. MiB: capacity "
                   "%.2f, limit %.2f, free "
                   "on the device %.2f, reserved %.2f; live %.2f (largest %.2f, %.2f; by tag: %s), "
                   "waiting for other "
                   "streams %.2f, free in pieces %.2f (largest %.2f), on streams with work in "
                   "flight %.2f (%u streams, "
                   "most %.2f)",
                   mib(bytes), p->backend->index, reason(p, &c, bytes, device_free), mib(p->total),
                   mib(weir_pool_limit(p)), mib(device_free), mib(p->reserved), mib(c.live),
                   mib(c.largest[0]), mib(c.largest[1]), owners, mib(c.pending),
                   mib(c.free + c.cached), mib(c.largest_free), mib(stuck), c.heaps,
                   mib(c.heaps ? c.stuck[most] : 0));
}
