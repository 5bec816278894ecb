/* pointers.c: see pointers.h, which has the tree's layout. Nodes are never given back: their number
 * is bounded by the address space the program has ever used. */
#include "core/base/pages.h"
#include "interpose/pointers.h"

#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>
#include "interpose/table.h"

typedef weir_pointer_entry entry;

enum {
  GIB = WEIR_GIB_SHIFT,
  GRANULE = WEIR_GRANULE_SHIFT,
  PAGE = WEIR_PAGE_SHIFT,
  FAN = WEIR_POINTER_FAN
};
#define ROOT_ENTRIES WEIR_ROOT_ENTRIES
#define ONE          (UINT64_C(1) << 32) /* a count of one */
#define TAG_BITS     UINT32_C(0xfffff)

weir_pointer_entry weir_pointer_top[512];
static weir_table blocks;

static bool is_mark(uint64_t e)
{
  return e & 1;
}

static uint64_t mark_of(weir_tag tag)
{
  return (uint64_t)tag << 1 | 1 | ONE;
}

static weir_tag tag_of(uint64_t e)
{
  return (uint32_t)e >> 1;
}

static entry *node_of(uint64_t e)
{
  return (entry *)(uintptr_t)e;
}

static entry *root_of(uint64_t address, bool make)
{
  if (address >> 57) return NULL;
  entry *slot = &weir_pointer_top[address >> 48];
  uint64_t r = atomic_load_explicit(slot, memory_order_acquire);
  if (r || !make) return node_of(r);
  entry *mine = weir_pages(ROOT_ENTRIES * sizeof(entry));
  if (!mine) return NULL;
  if (atomic_compare_exchange_strong(slot, &r, (uint64_t)(uintptr_t)mine)) return mine;
  munmap(mine, ROOT_ENTRIES * sizeof(entry));
  return node_of(r);
}

/* The node below an entry, made when there is none: empty, or full of the mark it takes the place
 * of. */
static entry *node_below(entry *at)
{
  uint64_t e = atomic_load_explicit(at, memory_order_acquire);
  if (e && !is_mark(e)) return node_of(e);
  entry *mine = weir_pages(FAN * sizeof(entry));
  if (!mine) return NULL;
  do {
    for (int i = 0; i < FAN; i++)
      atomic_store_explicit(&mine[i], e, memory_order_relaxed);
    if (atomic_compare_exchange_strong(at, &e, (uint64_t)(uintptr_t)mine)) return mine;
  } while (!e || is_mark(e));
  munmap(mine, FAN * sizeof(entry));
  return node_of(e);
}

/* One block more, or one less, in a page that it may share with others. A mark of another kind is
 * an old one whose end was not seen: it is overwritten by a newcomer and left alone by a leaver. */
static void page_share(entry *at, weir_tag tag, bool on)
{
  uint64_t e = atomic_load_explicit(at, memory_order_relaxed), to;
  do {
    bool same = is_mark(e) && tag_of(e) == tag;
    if (on)
      to = same ? e + ONE : mark_of(tag);
    else if (!same)
      return;
    else
      to = e >> 32 > 1 ? e - ONE : 0;
  } while (!atomic_compare_exchange_weak_explicit(at, &e, to, memory_order_release,
                                                  memory_order_relaxed));
}

/* Sets a whole span to one mark, or empties it, unless finer marks are below it. */
static bool span_set(entry *at, uint64_t to)
{
  uint64_t e = atomic_load_explicit(at, memory_order_relaxed);
  while (!e || is_mark(e))
    if (atomic_compare_exchange_weak_explicit(at, &e, to, memory_order_release,
                                              memory_order_relaxed))
      return true;
  return false;
}

/* Marks [start, end) in a node of pages. A page that is the block's alone takes a plain store:
 * there are up to a thousand of them in a block of a few MiB. */
static void pages_mark(entry *node, uint64_t start, uint64_t end, weir_tag tag, bool on)
{
  uint64_t to = on ? mark_of(tag) : 0;
  while (start < end) {
    uint64_t next = ((start >> PAGE) + 1) << PAGE;
    entry *at = &node[start >> PAGE & (FAN - 1)];
    if (next <= end && next - start == UINT64_C(1) << PAGE)
      atomic_store_explicit(at, to, memory_order_release);
    else
      page_share(at, tag, on);
    start = next;
  }
}

/* The same in a table whose entries span 1 << shift bytes each. Both ends are inside it. Recursion:
 * GiB, granule. */
static void table_mark(entry *table, uint64_t mask, int shift, uint64_t start, uint64_t end,
                       weir_tag tag, bool on)
{
  while (start < end) {
    uint64_t next = ((start >> shift) + 1) << shift;
    uint64_t stop = next < end ? next : end;
    bool whole = stop - start == UINT64_C(1) << shift;
    entry *at = &table[start >> shift & mask];
    if (!whole || !span_set(at, on ? mark_of(tag) : 0)) {
      bool nothing = !on && !atomic_load_explicit(at, memory_order_acquire);
      entry *below = nothing ? NULL : node_below(at);
      if (below && shift == GRANULE)
        pages_mark(below, start, stop, tag, on);
      else if (below)
        table_mark(below, FAN - 1, GRANULE, start, stop, tag, on);
    }
    start = stop;
  }
}

static void mark(weir_block b, bool on)
{
  weir_tag tag = b.tag & TAG_BITS;
  uint64_t at = b.start, end = b.start + b.bytes;
  while (at < end) {
    uint64_t stop = ((at >> 48) + 1) << 48;
    if (stop > end) stop = end;
    entry *r = root_of(at, on);
    if (r) table_mark(r, ROOT_ENTRIES - 1, GIB, at, stop, tag, on);
    at = stop;
  }
}

/* A block that can't be: it would wrap or reach past 57 bits. */
static bool sane(weir_block b)
{
  return b.start && b.tag && !(b.start >> 57) && b.bytes <= (UINT64_C(1) << 57) - b.start;
}

void weir_block_add(weir_block b)
{
  if (!sane(b)) return;
  weir_block old = weir_block_take(b.start);
  (void)old; /* its end was not seen */
  mark(b, true);
  if (!weir_table_put(&blocks, b.start, b.bytes, b.tag)) mark(b, false);
}

weir_block weir_block_take(uint64_t start)
{
  uint64_t bytes, tag;
  if (!weir_table_take(&blocks, start, &bytes, &tag)) return (weir_block){start, 0, 0};
  weir_block b = {start, bytes, (weir_tag)tag};
  mark(b, false);
  return b;
}

weir_block weir_block_at(uint64_t start)
{
  weir_entry *e = start ? weir_table_find(&blocks, start) : NULL;
  if (!e) return (weir_block){start, 0, 0};
  weir_tag tag = (weir_tag)atomic_load_explicit(&e->y, memory_order_acquire);
  return (weir_block){start, atomic_load_explicit(&e->x, memory_order_relaxed), tag};
}

typedef struct drop {
  weir_tag mask, want;
} drop;

static void drop_one(void *context, uint64_t key, uint64_t x, uint64_t y)
{
  const drop *d = context;
  weir_block b = {key, 0, (weir_tag)y};
  if ((b.tag & d->mask) != d->want || !weir_table_take_as(&blocks, key, &x, y)) return;
  b.bytes = x;
  mark(b, false);
}

void weir_blocks_drop(weir_tag mask, weir_tag want)
{
  drop d = {mask, want};
  weir_table_each(&blocks, drop_one, &d);
}
