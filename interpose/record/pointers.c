/* pointers.c: see pointers.h, which has the tree's layout. Nodes are never given back: their number
 * is bounded by the address space the program has ever used.
 *
 * A block's marks are disjoint from those of all other live blocks, but for pages that it shares.
 * Marks of a block whose end nobody saw give way: those of the same place are overwritten, finer
 * ones are looked for (used, used8, below: bitmaps, a word for 64 entries) and wiped before a
 * coarser one is laid over them, coarser ones do not count where a finer one is. Who leaves wipes
 * what still has its tag.
 *
 * The bitmaps are shared by adjacent blocks, so their bits are set and cleared one by one;
 * a bit is cleared only by a block that covers all that it stands for. */
#include "core/base/pages.h"
#include "interpose/record/pointers.h"

#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>
#include "core/trace/event.h"
#include "interpose/record/hash_table.h"

typedef pointer_node node;
typedef pointer_page_mark pointer_mark;
typedef pointer_word word;

enum { GIB = WEIR_GIB_SHIFT, GRANULE = WEIR_GRANULE_SHIFT, PAGE = WEIR_PAGE_SHIFT };
#define TAG_BITS WEIR_POINTER_TAG
#define ONE      (TAG_BITS + 1) /* a count of one */
#define PART     WEIR_POINTER_PART
#define MOST     (UINT32_MAX & ~(TAG_BITS | PART)) /* the greatest: it is not known any more */

#define ALWAYS static inline __attribute__((always_inline))

pointer_word pointer_top[512];
_Atomic uint64_t pointer_blocks_added, pointer_blocks_low = UINT64_MAX, pointer_blocks_high;
static hash_table blocks;

/* A root's or a node's arrays. */
typedef struct table {
  pointer_mark *mark, *mark8, *mark64;
  word *used, *used8, *below, *child;
} table;

#define TABLE(t)                                                                                   \
  ((table){(t)->mark, (t)->mark8, (t)->mark64, (t)->used, (t)->used8, (t)->below, (t)->child})

ALWAYS node *node_of(uint64_t address)
{
  return (node *)(uintptr_t)address;
}

/* What a word points to, made when there is none. */
__attribute__((noinline)) static uint64_t make_child(word *at, size_t bytes)
{
  uint64_t there = 0;
  void *mine = pages_alloc(bytes);
  if (!mine) return 0;
  if (atomic_compare_exchange_strong(at, &there, (uint64_t)(uintptr_t)mine))
    return (uint64_t)(uintptr_t)mine;
  munmap(mine, bytes);
  return there;
}

ALWAYS node *child_of(word *at, bool on)
{
  uint64_t there = pointer_load(at);
  if (!there && on) there = make_child(at, sizeof(node));
  return node_of(there);
}

/* ---- bitmaps --------------------------------------------------------------------------------- */

ALWAYS void bit_set(word *bitmap, uint64_t i)
{
  uint64_t bit = UINT64_C(1) << i % 64;
  if (!(atomic_load_explicit(&bitmap[i / 64], memory_order_relaxed) & bit))
    atomic_fetch_or_explicit(&bitmap[i / 64], bit, memory_order_relaxed);
}

/* Those of bits [i, end) that are set, cleared; all are of one word. */
ALWAYS uint64_t bits_take(word *bitmap, uint64_t i, uint64_t end)
{
  uint64_t bits = UINT64_MAX >> (64 - (end - i)) << i % 64;
  bits &= atomic_load_explicit(&bitmap[i / 64], memory_order_relaxed);
  if (__builtin_expect(bits != 0, 0))
    atomic_fetch_and_explicit(&bitmap[i / 64], ~bits, memory_order_relaxed);
  return bits;
}

/* ---- marks that give way --------------------------------------------------------------------- */

static void clear_marks(pointer_mark *marks, uint64_t bits)
{
  for (; bits; bits &= bits - 1)
    atomic_store_explicit(&marks[__builtin_ctzll(bits)], 0, memory_order_relaxed);
}

/* All marks of a node and below it. */
static void node_wipe(node *n, int shift)
{
  if (!n) return;
  clear_marks(n->mark8, bits_take(n->used8, 0, 64));
  clear_marks(n->mark64, 255);
  for (uint64_t i = 0; i < 512; i += 64) {
    clear_marks(n->mark + i, bits_take(n->used, i, i + 64));
    uint64_t below = shift == PAGE ? 0 : bits_take(n->below, i, i + 64);
    for (; below; below &= below - 1)
      node_wipe(node_of(pointer_load(&n->child[i + (unsigned)__builtin_ctzll(below)])), PAGE);
  }
}

/* What is finer than the marks to come of entries [i, end), all of one word. */
ALWAYS void make_way(table t, int shift, uint64_t i, uint64_t end)
{
  uint64_t first = (i + 7) / 8 * 8, last = end / 8 * 8;
  uint64_t below = shift == PAGE ? 0 : bits_take(t.below, i, end);
  for (; below; below &= below - 1) {
    uint64_t at = i / 64 * 64 + (unsigned)__builtin_ctzll(below);
    node_wipe(node_of(pointer_load(&t.child[at])), shift == GIB ? GRANULE : PAGE);
  }
  if (first < last) clear_marks(t.mark + i / 64 * 64, bits_take(t.used, first, last));
  if (end - i == 64) clear_marks(t.mark8 + i / 512 * 64, bits_take(t.used8, i / 8, end / 8));
}

/* ---- marking --------------------------------------------------------------------------------- */

ALWAYS void mark_set(pointer_mark *at, uint32_t tag, bool on)
{
  if (on)
    atomic_store_explicit(at, tag | ONE, memory_order_release);
  else if ((atomic_load_explicit(at, memory_order_relaxed) & TAG_BITS) == tag)
    atomic_store_explicit(at, 0, memory_order_relaxed);
}

/* ---- bytes of a page ------------------------------------------------------------------------- */

enum { PAGE_WORDS = (1 << PAGE) / 64, BITMAPS = 128 };

/* A bit a byte: it is a block's. */
typedef struct page_bitmap {
  word bits[PAGE_WORDS];
} page_bitmap;

typedef struct bitmap_arena {
  page_bitmap bitmap[BITMAPS];
  _Atomic unsigned used; /* beyond BITMAPS: full */
} bitmap_arena;

static _Atomic(bitmap_arena *) bitmaps;

static page_bitmap *next_bitmap(void)
{
  bitmap_arena *a = atomic_load(&bitmaps);
  for (;;) {
    unsigned at = a ? atomic_fetch_add(&a->used, 1) : BITMAPS;
    if (at < BITMAPS) return &a->bitmap[at];
    bitmap_arena *fresh = pages_alloc(sizeof *fresh);
    if (!fresh) return NULL;
    if (atomic_compare_exchange_strong(&bitmaps, &a, fresh))
      a = fresh;
    else
      munmap(fresh, sizeof *fresh);
  }
}

/* Bytes [start, end) of a page are a block's, or no more. False: there is no memory. Out of line:
 * most blocks are whole pages. */
__attribute__((noinline)) static bool bytes_mark(word *at, uint64_t start, uint64_t end, bool on)
{
  uint64_t there = pointer_load(at);
  if (!there && on) {
    page_bitmap *mine = next_bitmap();
    if (!mine || atomic_compare_exchange_strong(at, &there, (uint64_t)(uintptr_t)mine))
      there = (uint64_t)(uintptr_t)mine;
  }
  page_bitmap *map = (page_bitmap *)(uintptr_t)there;
  for (uint64_t i = start, stop; map && i < end; i = stop) {
    stop = i / 64 * 64 + 64 < end ? i / 64 * 64 + 64 : end;
    uint64_t bits = UINT64_MAX >> (64 - (stop - i)) << i % 64;
    if (bits == UINT64_MAX)
      atomic_store_explicit(&map->bits[i / 64], on ? bits : 0, memory_order_relaxed);
    else if (on)
      atomic_fetch_or_explicit(&map->bits[i / 64], bits, memory_order_relaxed);
    else
      atomic_fetch_and_explicit(&map->bits[i / 64], ~bits, memory_order_relaxed);
  }
  return map != NULL;
}

/* What lies next to it in a page may be memory that the driver does not know. */
ALWAYS bool is_host_memory(uint32_t tag)
{
  return block_tag_mem(tag) == WEIR_MEM_PINNED;
}

/* One block more, or one less, in a page that it may share with others. A mark of another kind is
 * an old one whose end was not seen: it is overwritten by a newcomer and left alone by a leaver.
 * `part`: PART, where a bitmap has the block's bytes. */
ALWAYS void page_share(pointer_mark *at, uint32_t tag, uint32_t part, bool on)
{
  uint32_t e = atomic_load_explicit(at, memory_order_relaxed), to;
  do {
    bool same = (e & TAG_BITS) == tag;
    if (same && (e & MOST) == MOST) return;
    if (on)
      to = (same ? e + ONE : tag | ONE) | part;
    else if (!same)
      return;
    else
      to = (e & MOST) >= 2 * ONE ? e - ONE : 0;
  } while (!atomic_compare_exchange_weak_explicit(at, &e, to, memory_order_release,
                                                  memory_order_relaxed));
}

/* Entries [i, end), all of one group of 64, are the block's alone. */
ALWAYS void group_mark(table t, int shift, uint64_t i, uint64_t end, uint32_t tag, bool on)
{
  if (on) make_way(t, shift, i, end);
  if (end - i == 64) {
    mark_set(&t.mark64[i / 64], tag, on);
    return;
  }
  while (i < end) {
    bool eight = i % 8 == 0 && end - i >= 8;
    if (on) bit_set(eight ? t.used8 : t.used, eight ? i / 8 : i);
    mark_set(eight ? &t.mark8[i / 8] : &t.mark[i], tag, on);
    i += eight ? 8 : 1;
  }
}

static void pages_mark(node *n, uint64_t start, uint64_t end, uint32_t tag, bool on);
static void granules_mark(node *n, uint64_t start, uint64_t end, uint32_t tag, bool on);

/* Bytes [start, end) of an entry's span, not all of it. */
ALWAYS void part_mark(table t, int shift, uint64_t i, uint64_t start, uint64_t end, uint32_t tag,
                      bool on)
{
  uint64_t in_entry = (UINT64_C(1) << shift) - 1, from = start & in_entry;
  if (shift == PAGE) {
    bool part = is_host_memory(tag) && bytes_mark(&t.child[i], from, from + (end - start), on);
    if (on) bit_set(t.used, i);
    page_share(&t.mark[i], tag, part ? PART : 0, on);
    return;
  }
  node *n = child_of(&t.child[i], on);
  if (!n) return;
  if (on) bit_set(t.below, i);
  (shift == GIB ? granules_mark : pages_mark)(n, from, from + (end - start), tag, on);
}

/* Bytes [start, end) of a table's span; an entry is 1 << shift bytes. */
ALWAYS void table_mark(table t, int shift, uint64_t start, uint64_t end, uint32_t tag, bool on)
{
  uint64_t in_entry = (UINT64_C(1) << shift) - 1;
  uint64_t i = (start + in_entry) >> shift, last = end >> shift;
  if (i > last) {
    part_mark(t, shift, last, start, end, tag, on);
    return;
  }
  if (start & in_entry) part_mark(t, shift, i - 1, start, i << shift, tag, on);
  while (i < last) {
    uint64_t stop = (i / 64 + 1) * 64;
    if (stop > last) stop = last;
    group_mark(t, shift, i, stop, tag, on);
    i = stop;
  }
  if (end & in_entry) part_mark(t, shift, last, last << shift, end, tag, on);
}

static void pages_mark(node *n, uint64_t start, uint64_t end, uint32_t tag, bool on)
{
  table_mark(TABLE(n), PAGE, start, end, tag, on);
}

static void granules_mark(node *n, uint64_t start, uint64_t end, uint32_t tag, bool on)
{
  table_mark(TABLE(n), GRANULE, start, end, tag, on);
}

static void mark_range(pointer_block b, bool on)
{
  const uint64_t in_root = (UINT64_C(1) << 48) - 1;
  uint64_t at = b.start, end = b.start + b.bytes;
  while (at < end && (b.tag & TAG_BITS)) {
    word *slot = &pointer_top[at >> 48];
    uint64_t stop = end - at <= in_root + 1 - (at & in_root) ? end : (at | in_root) + 1;
    uint64_t there = pointer_load(slot);
    if (!there && on) there = make_child(slot, sizeof(pointer_root));
    if (there) {
      pointer_root *r = (pointer_root *)(uintptr_t)there;
      table_mark(TABLE(r), GIB, at & in_root, (at & in_root) + (stop - at), b.tag & TAG_BITS, on);
    }
    at = stop;
  }
}

/* ---- looking --------------------------------------------------------------------------------- */

/* Of the marks over entry `i` the finest. */
ALWAYS block_tag finest(const pointer_mark *mark, const pointer_mark *mark8,
                        const pointer_mark *mark64, uint64_t i)
{
  uint32_t m = atomic_load_explicit(&mark[i], memory_order_acquire);
  if (!m) m = atomic_load_explicit(&mark8[i / 8], memory_order_acquire);
  if (!m) m = atomic_load_explicit(&mark64[i / 64], memory_order_acquire);
  return m & TAG_BITS;
}

block_tag pointer_tag_in_part(const pointer_node *pages, uint64_t address, uint32_t mark)
{
  uint64_t in_page = address & ((1 << PAGE) - 1);
  const page_bitmap *map =
      (const page_bitmap *)(uintptr_t)pointer_load(&pages->child[address >> PAGE & 511]);
  uint64_t bits = atomic_load_explicit(&map->bits[in_page / 64], memory_order_relaxed);
  return bits >> in_page % 64 & 1 ? mark & TAG_BITS : 0;
}

block_tag pointer_tag_coarse(uint64_t address)
{
  block_tag tag = 0;
  uint64_t gib = address >> GIB & ((1 << 18) - 1), granule = address >> GRANULE & 511;
  const pointer_root *root =
      (const pointer_root *)(uintptr_t)pointer_load(&pointer_top[address >> 48]);
  const node *granules = node_of(pointer_load(&root->child[gib]));
  const node *pages = granules ? node_of(pointer_load(&granules->child[granule])) : NULL;
  if (pages) tag = finest(pages->mark, pages->mark8, pages->mark64, address >> PAGE & 511);
  if (!tag && granules) tag = finest(granules->mark, granules->mark8, granules->mark64, granule);
  return tag ? tag : finest(root->mark, root->mark8, root->mark64, gib);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* A block that can't be: it would wrap or reach past 57 bits. */
static bool is_valid_block(pointer_block b)
{
  return b.start && b.tag && !(b.start >> 57) && b.bytes <= (UINT64_C(1) << 57) - b.start;
}

static void widen_bounds(pointer_block b)
{
  uint64_t low = atomic_load_explicit(&pointer_blocks_low, memory_order_relaxed);
  uint64_t high = atomic_load_explicit(&pointer_blocks_high, memory_order_relaxed);
  while (b.start < low && !atomic_compare_exchange_weak(&pointer_blocks_low, &low, b.start)) {
  }
  while (b.start + b.bytes > high &&
         !atomic_compare_exchange_weak(&pointer_blocks_high, &high, b.start + b.bytes)) {
  }
}

void pointer_block_add(pointer_block b)
{
  bool there;
  if (!is_valid_block(b)) return;
  hash_entry *e = hash_table_claim(&blocks, b.start, &there);
  if (e && there) { /* its end was not seen */
    (void)pointer_block_remove(b.start);
    e = hash_table_claim(&blocks, b.start, &there);
  }
  if (!e) return;
  if (b.bytes) widen_bounds(b);
  mark_range(b, true);
  hash_entry_set(e, b.bytes, b.tag);
  atomic_fetch_add_explicit(&pointer_blocks_added, 1, memory_order_release);
}

pointer_block pointer_block_remove(uint64_t start)
{
  uint64_t bytes, tag;
  if (!hash_table_take(&blocks, start, &bytes, &tag)) return (pointer_block){start, 0, 0};
  pointer_block b = {start, bytes, (block_tag)tag};
  mark_range(b, false);
  return b;
}

pointer_block pointer_block_at(uint64_t start)
{
  hash_entry *e = start ? hash_table_find(&blocks, start) : NULL;
  if (!e) return (pointer_block){start, 0, 0};
  block_tag tag = (block_tag)atomic_load_explicit(&e->y, memory_order_acquire);
  return (pointer_block){start, atomic_load_explicit(&e->x, memory_order_relaxed), tag};
}

typedef struct drop {
  block_tag mask, want;
} drop;

static void drop_block(void *context, uint64_t key, uint64_t x, uint64_t y)
{
  const drop *d = context;
  pointer_block b = {key, 0, (block_tag)y};
  if ((b.tag & d->mask) != d->want || !hash_table_take_as(&blocks, key, &x, y)) return;
  b.bytes = x;
  mark_range(b, false);
}

void pointer_blocks_drop(block_tag mask, block_tag want)
{
  drop d = {mask, want};
  hash_table_each(&blocks, drop_block, &d);
}

typedef struct each {
  void (*visit)(void *context, pointer_block block);
  void *context;
} each;

static void visit_block(void *context, uint64_t key, uint64_t x, uint64_t y)
{
  const each *e = context;
  if (y) e->visit(e->context, (pointer_block){key, x, (block_tag)y});
}

void pointer_blocks_each(void (*visit)(void *context, pointer_block block), void *context)
{
  each e = {visit, context};
  hash_table_each(&blocks, visit_block, &e);
}
