/* pointers.h: what a pointer of the program points to, without asking the driver.
 *
 * A *block* is one allocation or registration, remembered by its start address. A *tag* says what
 * it is: kind of memory, device, context. Marks let any address inside a block be classified: a
 * radix tree over the address (1 GiB, 2 MiB, 4 KiB) whose entries are empty, one tag for the whole
 * span, or a table one level finer. A block covers spans by their full size where it can, so 80 GiB
 * cost 80 stores and the ends; pages that two small blocks share hold a count.
 *
 * Lock-free, any thread, memory from mmap. Where mapping fails an address is merely unknown. A
 * block is taken out before its free is forwarded (the address can come back to another thread at
 * once) and put back when the free failed.
 */
#ifndef WEIR_INTERPOSE_POINTERS_H
#define WEIR_INTERPOSE_POINTERS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint32_t weir_tag; /* 0: unknown */

/* Bits of a tag: kind (weir_mem) 0-3, device 4-11, context number 12-19. The rest is the block's
 * alone and not seen through the marks: */
#define WEIR_TAG_POOL    (UINT32_C(1) << 20) /* from the stream-ordered allocator */
#define WEIR_TAG_ELEMENT 21                  /* shift: bytes an element of an array, 10 bits */

static inline weir_tag weir_tag_make(unsigned mem, unsigned device, unsigned context)
{
  return (mem & 15u) | (device & 255u) << 4 | (context & 255u) << 12;
}

static inline unsigned weir_tag_mem(weir_tag t)
{
  return t & 15u;
}

static inline unsigned weir_tag_device(weir_tag t)
{
  return t >> 4 & 255u;
}

static inline unsigned weir_tag_context(weir_tag t)
{
  return t >> 12 & 255u;
}

static inline unsigned weir_tag_element(weir_tag t)
{
  return t >> WEIR_TAG_ELEMENT & 1023u;
}

typedef struct weir_block {
  uint64_t start, bytes; /* address or handle; bytes 0: a handle, nothing is marked */
  weir_tag tag;          /* 0: no block */
} weir_block;

/* Remembers a block. `start` 0 is ignored. */
void weir_block_add(weir_block block);

/* Takes the block that starts there out; tag 0 when there is none. */
weir_block weir_block_take(uint64_t start);

/* The block that starts there; tag 0 when there is none. */
weir_block weir_block_at(uint64_t start);

/* The tree (pointers.c). top: 512 roots, one a 2^48 bytes (57-bit addresses); root: 2^18 entries of
 * 1 GiB; node: 512 entries, of 2 MiB or of 4 KiB. An entry is 0; or a node's address (bit 0 clear);
 * or a mark: bit 0 set, tag in bits 1-31, count of blocks in the page from bit 32. */
typedef _Atomic uint64_t weir_pointer_entry;

enum { WEIR_GIB_SHIFT = 30, WEIR_GRANULE_SHIFT = 21, WEIR_PAGE_SHIFT = 12, WEIR_POINTER_FAN = 512 };
#define WEIR_ROOT_ENTRIES (UINT64_C(1) << 18)

extern weir_pointer_entry weir_pointer_top[512]; /* addresses of roots */

static inline uint64_t weir_pointer_step(uint64_t node, uint64_t address, int shift,
                                         uint64_t entries)
{
  const weir_pointer_entry *at = (const weir_pointer_entry *)(uintptr_t)node;
  return atomic_load_explicit(&at[address >> shift & (entries - 1)], memory_order_acquire);
}

/* What the address points to; 0: no block that we know. */
static inline weir_tag weir_pointer_tag(uint64_t address)
{
  if (address >> 57) return 0;
  uint64_t root = atomic_load_explicit(&weir_pointer_top[address >> 48], memory_order_acquire);
  if (!root) return 0;
  uint64_t e = weir_pointer_step(root, address, WEIR_GIB_SHIFT, WEIR_ROOT_ENTRIES);
  if (e && !(e & 1)) e = weir_pointer_step(e, address, WEIR_GRANULE_SHIFT, WEIR_POINTER_FAN);
  if (e && !(e & 1)) e = weir_pointer_step(e, address, WEIR_PAGE_SHIFT, WEIR_POINTER_FAN);
  return (uint32_t)e >> 1;
}

/* Takes out all blocks whose tag equals `want` in the bits of `mask`. */
void weir_blocks_drop(weir_tag mask, weir_tag want);

#endif
