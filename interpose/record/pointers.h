/* pointers.h: what a pointer of the program points to, without asking the driver.
 *
 * A *block* is one allocation or registration, remembered by its start address. A *tag* holds what
 * it is: kind of memory, device, context. *Marks* let any address inside a block be classified: a
 * radix tree over the address (1 GiB, 2 MiB, 4 KiB) in which a mark stands for 1, 8 or 64 entries
 * of a node, so that a block of any size costs some marks at its two ends and a few between. Where
 * marks lie over one another the finer one holds. A page that small blocks share holds a count.
 *
 * Of a page that page-locked memory of the host has in part, the rest may be anybody's: two arrays
 * of malloc lie next to each other, and one of them is registered. There a bitmap has which bytes
 * are a block's.
 *
 * Lock-free, any thread, memory from mmap. Where mapping fails an address is merely unknown. A
 * block is taken out before its free is forwarded (the address can come back to another thread at
 * once) and put back when the free failed. */
#ifndef WEIR_INTERPOSE_POINTERS_H
#define WEIR_INTERPOSE_POINTERS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint32_t block_tag; /* 0: unknown */

/* Bits of a tag: kind (memory_kind) 0-3, device 4-11, context number 12-19. The rest is the block's
 * alone and not seen through the marks: */
#define WEIR_TAG_POOL         (UINT32_C(1) << 20) /* from the stream-ordered allocator */
#define WEIR_TAG_ELEMENT      21                  /* shift: bytes an element of an array, 9 bits */
#define WEIR_TAG_ELEMENT_MOST UINT32_C(511)       /* these bits */
#define WEIR_TAG_SHORT        (UINT32_C(1) << 30) /* the driver made it longer than asked */
#define WEIR_TAG_WITHIN                                                                            \
  (UINT32_C(1) << 31) /* in no map: of memory known as another block (within.h) */

static inline block_tag block_tag_make(unsigned mem, unsigned device, unsigned context)
{
  return (mem & 15u) | (device & 255u) << 4 | (context & 255u) << 12;
}

static inline unsigned block_tag_mem(block_tag t)
{
  return t & 15u;
}

static inline unsigned block_tag_device(block_tag t)
{
  return t >> 4 & 255u;
}

static inline unsigned block_tag_context(block_tag t)
{
  return t >> 12 & 255u;
}

static inline unsigned block_tag_element(block_tag t)
{
  return t >> WEIR_TAG_ELEMENT & WEIR_TAG_ELEMENT_MOST;
}

typedef struct pointer_block {
  uint64_t start, bytes; /* address or handle; bytes 0: a handle, nothing is marked */
  block_tag tag;         /* 0: no block */
} pointer_block;

/* Remembers a block. `start` 0 is ignored. */
void pointer_block_add(pointer_block block);

/* How many were: a word that pointed to none may point to one since. All that are, or were, lie
 * from `low` up to `high`. */
extern _Atomic uint64_t pointer_blocks_added, pointer_blocks_low, pointer_blocks_high;

/* Takes the block that starts there out; tag 0 when there is none. */
pointer_block pointer_block_remove(uint64_t start);

/* The block that starts there; tag 0 when there is none. */
pointer_block pointer_block_at(uint64_t start);

/* The tree (pointers.c). top: 512 roots, one for 2^48 bytes each (57-bit addresses). A root has
 * 2^18 entries of 1 GiB, a node 512 of 2 MiB or of 4 KiB; the children of the latter are
 * bitmaps. */
typedef _Atomic uint32_t pointer_page_mark; /* tag in bits 0-19, blocks in the page in bits 20-30 */
typedef _Atomic uint64_t pointer_word;

enum { WEIR_GIB_SHIFT = 30, WEIR_GRANULE_SHIFT = 21, WEIR_PAGE_SHIFT = 12 };
#define WEIR_POINTER_TAG  UINT32_C(0xfffff)   /* of a mark */
#define WEIR_POINTER_PART (UINT32_C(1) << 31) /* of a page's: its bitmap decides */

/* used, below: bits of entries, used8: of groups of 8, that may have a mark, or may have one below
 * them: set with a mark, cleared where a coarser one is laid over it. */
#define WEIR_POINTER_TABLE(entries)                                                                \
  pointer_page_mark mark[entries], mark8[(entries) / 8], mark64[(entries) / 64];                   \
  pointer_word used[(entries) / 64], used8[(entries) / 512], below[(entries) / 64];                \
  pointer_word child[entries] /* addresses of nodes, or of bitmaps */

typedef struct pointer_node {
  WEIR_POINTER_TABLE(512);
} pointer_node;

typedef struct pointer_root {
  WEIR_POINTER_TABLE(1 << 18);
} pointer_root;

extern pointer_word pointer_top[512]; /* addresses of roots */

/* Returns what pointer_tag() does, where the page has no mark of its own. */
block_tag pointer_tag_coarse(uint64_t address);

/* Returns it for an address in a page that is marked as shared, by the byte. */
block_tag pointer_tag_in_part(const pointer_node *pages, uint64_t address, uint32_t mark);

static inline uint64_t pointer_load(const pointer_word *at)
{
  return atomic_load_explicit(at, memory_order_acquire);
}

/* What the address points to; 0: no block that we know. */
static inline block_tag pointer_tag(uint64_t address)
{
  if (address >> 57) return 0;
  const pointer_root *root =
      (const pointer_root *)(uintptr_t)pointer_load(&pointer_top[address >> 48]);
  if (!root) return 0;
  const pointer_node *node = (const pointer_node *)(uintptr_t)pointer_load(
      &root->child[address >> WEIR_GIB_SHIFT & ((1 << 18) - 1)]);
  if (node)
    node = (const pointer_node *)(uintptr_t)pointer_load(
        &node->child[address >> WEIR_GRANULE_SHIFT & 511]);
  uint32_t mark = node ? atomic_load_explicit(&node->mark[address >> WEIR_PAGE_SHIFT & 511],
                                              memory_order_acquire)
                       : 0;
  if (__builtin_expect(mark & WEIR_POINTER_PART, 0))
    return pointer_tag_in_part(node, address, mark);
  return mark ? mark & WEIR_POINTER_TAG : pointer_tag_coarse(address);
}

/* Takes out all blocks whose tag equals `want` in the bits of `mask`. */
void pointer_blocks_drop(block_tag mask, block_tag want);

/* Calls `visit` for each block; one that comes or goes meanwhile may be seen or not. */
void pointer_blocks_each(void (*visit)(void *context, pointer_block block), void *context);

#endif
