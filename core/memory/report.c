/* report.c: why the allocator is out of memory.
 *
 * One walk over all blocks counts them by state, stream, tag and size; the reason follows from the
 * sums, each of which states how far the request would get if that, too, could be used. The
 * sentence and weir_oom_info have the same; the latter is kept for the thread. */
#include <stdio.h>
#include <stdlib.h>
#include "core/memory/history.h"
#include "core/memory/host.h"
#include "core/memory/tags.h"
#include "core/weir/oom.h"

enum { SIZES = 256, STREAMS = 64, SHOWN = WEIR_OOM_SHOWN };

/* Of the thread; owned, made at its first failure. Only a pointer: a library's thread-local memory
 * must be small, or it cannot be opened at run time. */
static __thread weir_oom_info *last;
static pthread_key_t ended;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void end_reporting_thread(void *info)
{
  last = NULL;
  free(info);
}

static void prepare_report(void)
{
  (void)pthread_key_create(&ended, end_reporting_thread);
}

/* Without host memory the thread keeps what it had. */
static void keep_oom_info(const weir_oom_info *o)
{
  pthread_once(&once, prepare_report);
  if (!last) {
    weir_oom_info *mine = malloc(sizeof *mine);
    if (mine && pthread_setspecific(ended, mine)) {
      free(mine);
      mine = NULL;
    }
    last = mine;
  }
  if (last) *last = *o;
}

const char *weir_oom_reason_string(weir_oom_reason reason)
{
  switch (reason) {
#define REASON_CASE(id, text)                                                                      \
  case WEIR_OOM_##id:                                                                              \
    return text;
    WEIR_OOM_REASONS(REASON_CASE)
#undef REASON_CASE
  }
  return "for a reason that is not known";
}

weir_status weir_memory_last_oom(weir_oom_info *out)
{
  WEIR_REQUIRE(out);
  if (!last) return weir_fail(WEIR_ENOENT, "no allocation of this thread has run out of memory");
  *out = *last;
  return WEIR_OK;
}

/* ---- counting -------------------------------------------------------------------------------- */

typedef struct group {
  uint64_t key, bytes, blocks, more; /* more: stranded bytes of a stream */
} group;

typedef struct census {
  weir_oom_info *o;
  group tags[WEIR_TAGS], sizes[SIZES], streams[STREAMS];
} census;

/* The group of the key, or the last one when all are others'. */
static group *find_group(group *g, unsigned count, uint64_t key)
{
  unsigned i = 0;
  while (i < count - 1 && g[i].blocks && g[i].key != key)
    i++;
  g[i].key = key;
  return &g[i];
}

static void count_live(census *c, const mem_block *b)
{
  group *groups[] = {&c->tags[b->when % WEIR_TAGS], find_group(c->sizes, SIZES, b->bytes),
                     find_group(c->streams, STREAMS, heap_table[b->heap]->clock->number)};
  c->o->live += b->bytes;
  for (int i = 0; i < 3; i++) {
    groups[i]->bytes += b->bytes;
    groups[i]->blocks++;
  }
}

static void count_census_free(census *c, const mem_block *b)
{
  const mem_heap *h = heap_table[b->heap];
  if (h->graph) {
    c->o->pinned += b->bytes;
    return;
  }
  c->o->free += b->bytes;
  if (b->bytes > c->o->largest_free) c->o->largest_free = b->bytes;
  if (!b->stamp || !h->clock || b->stamp <= h->clock->done) return;
  group *g = find_group(c->streams, STREAMS, h->number);
  c->o->stranded += b->bytes;
  g->more += b->bytes;
  g->blocks++;
}

static void count_block(void *user, const mem_block *b)
{
  census *c = user;
  switch (block_state(b)) {
  case BLOCK_LIVE:
    count_live(c, b);
    break;
  case BLOCK_FREE:
    count_census_free(c, b);
    break;
  case BLOCK_PENDING:
    c->o->waiting += b->bytes;
    break;
  case BLOCK_CACHED:
  case BLOCK_REMOTE:
    c->o->cached += b->bytes;
    break;
  default:
    break;
  }
}

/* Takes the group with the most bytes out; false: none is left. */
static bool take_largest(group *g, unsigned count, group *out)
{
  group *most = NULL;
  for (unsigned i = 0; i < count; i++)
    if (g[i].blocks && (!most || g[i].bytes + g[i].more > most->bytes + most->more)) most = &g[i];
  if (!most) return false;
  *out = *most;
  most->blocks = 0;
  return true;
}

/* ---- owners ---------------------------------------------------------------------------------- */

static void name_size(char *out, size_t room, uint64_t bytes)
{
  if (bytes >= 1 << 20)
    (void)snprintf(out, room, "blocks of %.2f MiB", to_mib(bytes));
  else
    (void)snprintf(out, room, "blocks of %.1f KiB", (double)bytes / (1 << 10));
}

static void name_owners(const mem_pool *p, census *c)
{
  weir_oom_info *o = c->o;
  history_owner sites[SHOWN];
  code_names *names = p->history ? names_new() : NULL;
  unsigned count = names ? history_owners(p, sites, SHOWN) : 0;
  for (unsigned i = 0; i < count; i++) {
    weir_oom_owner *w = &o->owners[o->owner_count++];
    (void)callers_text(w->name, sizeof w->name, sites[i].stack, 2, names);
    w->bytes = sites[i].bytes;
    w->blocks = sites[i].blocks;
  }
  if (names) names_free(names);
  while (!count && o->owner_count < SHOWN) {
    group g;
    if (!take_largest(c->sizes, SIZES, &g)) break;
    weir_oom_owner *w = &o->owners[o->owner_count++];
    name_size(w->name, sizeof w->name, g.key);
    w->bytes = g.bytes;
    w->blocks = g.blocks;
  }
}

static void name_tags(census *c)
{
  weir_oom_info *o = c->o;
  group g;
  for (unsigned i = 0; i < WEIR_TAGS; i++)
    c->tags[i].key = i;
  while (o->tag_count < SHOWN && take_largest(c->tags, WEIR_TAGS, &g)) {
    weir_oom_owner *w = &o->tags[o->tag_count++];
    (void)snprintf(w->name, sizeof w->name, "%s", tag_name((unsigned)g.key));
    w->bytes = g.bytes;
    w->blocks = g.blocks;
  }
}

static void name_streams(census *c)
{
  weir_oom_info *o = c->o;
  group g;
  while (o->stream_count < SHOWN && take_largest(c->streams, STREAMS, &g))
    o->streams[o->stream_count++] = (weir_oom_stream){heap_table[g.key]->stream, g.bytes, g.more};
}

/* ---- the reason ------------------------------------------------------------------------------ */

enum { SEGMENT_STEP = 2 << 20 }; /* bytes: the driver gives memory in such pages */

static weir_oom_reason find_reason(const mem_pool *p, const weir_oom_info *o)
{
  uint64_t own = o->free - o->stranded + o->cached, room = o->device_free;
  uint64_t growth = o->limit > o->reserved ? o->limit - o->reserved : 0;
  if (growth > room) growth = room;
  if (o->requested > o->capacity) return WEIR_OOM_TOO_LARGE;
  if (o->limit < o->capacity && growth < room && own + growth < o->requested &&
      own + room >= o->requested)
    return o->limit == p->config.limit_bytes ? WEIR_OOM_BUDGET : WEIR_OOM_FRACTION;
  uint64_t needed = (o->requested + SEGMENT_STEP - 1) / SEGMENT_STEP * SEGMENT_STEP;
  if (growth >= needed) return WEIR_OOM_REFUSED;
  uint64_t usable = own + growth;
  if (usable >= o->requested) return WEIR_OOM_FRAGMENTED;
  if ((usable += o->stranded + o->waiting) >= o->requested) return WEIR_OOM_STRANDED;
  if ((usable += o->pinned) >= o->requested) return WEIR_OOM_GRAPH;
  return o->others && usable + o->others >= o->requested ? WEIR_OOM_OTHERS : WEIR_OOM_FULL;
}

/* "a 1.00, b 2.00": the first three. */
static void list_owners(char *text, size_t room, const weir_oom_owner *w, unsigned count)
{
  size_t used = 0;
  text[0] = 0;
  for (unsigned i = 0; i < count && i < 3 && used < room; i++)
    used += (size_t)snprintf(text + used, room - used, "%s%.40s %.2f", i ? ", " : "", w[i].name,
                             to_mib(w[i].bytes));
}

typedef struct size_text {
  char at[32];
} size_text;

/* As PyTorch writes sizes: "512 bytes", "20.00 KiB", "2.00 MiB", "79.11 GiB". */
static const char *format_size(size_text *out, uint64_t bytes)
{
  static const char *const units[] = {"KiB", "MiB", "GiB"};
  int unit = bytes <= 1 << 20 ? 0 : bytes <= 1 << 30 ? 1 : 2;
  if (bytes <= 1024)
    (void)snprintf(out->at, sizeof out->at, "%llu bytes", (unsigned long long)bytes);
  else
    (void)snprintf(out->at, sizeof out->at, "%.2f %s", (double)bytes / (1 << (10 + 10 * unit)),
                   units[unit]);
  return out->at;
}

static weir_status word_oom_error(const weir_oom_info *o)
{
  char tags[64], owners[110];
  size_text asked, capacity, free;
  list_owners(tags, sizeof tags, o->tags, o->tag_count);
  list_owners(owners, sizeof owners, o->owners, o->owner_count);
  return weir_fail(WEIR_EOOM,
                   "CUDA out of memory. Tried to allocate %s. GPU %d has a total capacity of "
                   "%s of which %s is free. Cause: %s. MiB: others %.2f, limit %.2f, reserved "
                   "%.2f, live %.2f, cached %.2f, free in pieces %.2f (largest %.2f), stranded on "
                   "streams %.2f, waiting %.2f, pinned by graphs %.2f, paused %.2f; by tag: %s; "
                   "largest: %s",
                   format_size(&asked, o->requested), o->device,
                   format_size(&capacity, o->capacity), format_size(&free, o->device_free),
                   weir_oom_reason_string(o->reason), to_mib(o->others), to_mib(o->limit),
                   to_mib(o->reserved), to_mib(o->live), to_mib(o->cached), to_mib(o->free),
                   to_mib(o->largest_free), to_mib(o->stranded), to_mib(o->waiting),
                   to_mib(o->pinned), to_mib(o->paused), tags, owners);
}

weir_status pool_oom(mem_heap *h, uint64_t bytes, weir_status why)
{
  mem_pool *p = h->pool;
  uint64_t device_free = 0, total;
  (void)why;
  p->ooms++;
  if (!p->host) (void)back_trim(p, p->clock(), 0, false); /* pages mapped nowhere: others' */
  if (p->backend->source.mem_info(p->backend->self, &device_free, &total)) device_free = 0;
  history_oom(h, bytes, device_free);
  weir_oom_info o = {.device = p->backend->index,
                     .requested = bytes,
                     .capacity = p->total,
                     .limit = pool_limit(p),
                     .device_free = device_free,
                     .reserved = p->reserved,
                     .paused = p->paused_bytes};
  uint64_t known = p->reserved + device_free;
  o.others = p->total > known ? p->total - known : 0;
  census c = {.o = &o};
  tcache_freeze(p);
  pool_walk(p, count_block, &c);
  if (!p->host) {
    name_tags(&c);
    name_streams(&c);
    name_owners(p, &c);
  }
  tcache_thaw(p);
  if (p->host)
    return p->host_calls->oom(p, bytes,
                              &(host_census){o.live, o.waiting, o.free + o.cached, o.largest_free});
  o.reason = find_reason(p, &o);
  keep_oom_info(&o);
  return word_oom_error(&o);
}
