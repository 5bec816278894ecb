/* ops.h: a list of operations: what a program asked of its allocator, in order, in one form for
 * all sources down.
 *
 * Words. block: a piece of memory the program holds; its allocation and its free share a number.
 * heap: memory that an allocator manages as one, here a device as one process sees it. stream: of
 * an allocation, whose work uses the block first; of a free, whose work used it last. A free names
 * its block, not an address: a list can be replayed by an allocator that answers with any address.
 * held block: one from before the record began, known by its free or by what is held at the end; it
 * is allocated before the first operation. request: an allocation that failed when it was recorded.
 *
 * Invariants: a free comes after its allocation, and once; times never go back; held blocks come
 * first. A free of an address that was never seen is a held block's; where its bytes are
 * unknown, or the address was freed before, it is counted and left out. When an address is
 * handed out twice, the free between was not seen, and is put in before the second. */
#ifndef WEIR_TOOLS_REPLAY_OPS_H
#define WEIR_TOOLS_REPLAY_OPS_H

#include "core/base/map.h"
#include "core/base/status.h"
#include "reports/base/util.h"

#define RP_BYTES_MAX (UINT64_C(1) << 44) /* more in one block is damage: no device has 16 TiB */
#define RP_HEAPS_MAX 4096u

enum { RP_ALLOC = 0, RP_FREE = 1, RP_REQUEST = 2 };

typedef struct rp_op {
  uint64_t time;    /* ns since the list's first operation */
  uint64_t bytes;   /* asked for; a free has its allocation's */
  uint64_t address; /* as it was recorded; of a request: bytes that were free then, 0 unknown */
  uint64_t stream;  /* handle; 0 the default stream */
  uint32_t block;   /* 0, 1, ... by allocation; a request has none */
  uint32_t thread;  /* as it was recorded */
  uint32_t stack;   /* place in the list's stacks, when these are wanted; 0: none */
  uint16_t heap;    /* 0, 1, ... */
  uint8_t kind;     /* RP_ALLOC, RP_FREE, RP_REQUEST */
} rp_op;

typedef struct rp_frame { /* of the program, at an operation */
  char *name, *file;      /* owned; the module where no file is known */
  int line;
} rp_frame;

typedef struct rp_stack { /* frames, innermost first */
  size_t first, count;
  size_t at; /* of them, the place in the program; count: none is known */
} rp_stack;

typedef struct rp_ops {
  rp_op *op;
  size_t count, capacity;
  uint32_t blocks;
  uint32_t heaps;
  uint64_t unmatched;    /* frees without allocation, left out */
  uint64_t replaced;     /* frees that were put in */
  uint64_t requests;     /* how many there are */
  uint64_t request_most; /* bytes of the largest */
  rp_op *held;           /* blocks from before, until rp_ops_finish() puts them first */
  size_t held_count, held_capacity;
  uint64_t held_bytes;
  hash_map *live; /* [heaps] address -> place of the allocation or GONE, while the list is built */
  size_t live_capacity;
  hash_map heap_of; /* key of a heap -> its number + 1 */
  bool want_stacks; /* asked for by who will read the list */
  rp_stack *stack;  /* [0] is none; where the source knows any */
  size_t stack_count, stack_capacity;
  rp_frame *frame;
  size_t frame_count, frame_capacity;
  uint64_t begin; /* first time that was given */
} rp_ops;

/* All zero is an empty list. The number of heap `key`, given out in the order of asking. Errors:
 * ENOMEM, ECORRUPT (too many). */
weir_status rp_ops_heap(rp_ops *ops, uint64_t key, uint16_t *heap);

/* The key of a heap. */
uint64_t rp_ops_heap_key(const rp_ops *ops, uint16_t heap);

/* Append. Of `op`, block and kind are filled in, and a free's bytes where its allocation is known;
 * its heap is one of ours. An allocation of 0 bytes or at address 0 is none, and is left out.
 * Errors: ENOMEM, ECORRUPT (too large, too many). */
weir_status rp_ops_alloc(rp_ops *ops, rp_op op);
weir_status rp_ops_free(rp_ops *ops, rp_op op);
weir_status rp_ops_request(rp_ops *ops, rp_op op);

/* After all operations: a block that is held at the end of the record. It is known already, or from
 * before; one at an address that was freed since is an allocation that was not recorded. Errors: as
 * above. */
weir_status rp_ops_hold(rp_ops *ops, rp_op op);

/* Puts held blocks first. The list is complete then: nothing may be appended. Errors: ENOMEM. */
weir_status rp_ops_finish(rp_ops *ops);

void rp_ops_clear(rp_ops *ops);

#endif
