/* meta.c: the blocks' records and the page map, shared by all pools, outside the memory they
 * describe.
 *
 * Records are 64 bytes in one array, so that a record is a 32-bit number. The array is address
 * space that is committed in steps; records are recycled and never given back.
 *
 * The page map takes an address to the block that starts there: a hash table of 8-byte entries, in
 * segments of 512. An entry holds the block's number, its class, and 30 bits of the hash that
 * distinguish it from its neighbours; the block's own address has the last word. Within its segment
 * an entry is at its slot or, where that is taken, elsewhere in that cache line, or in a line
 * after; it stays where it was put until its block goes, or its segment is divided. The table grows
 * by one segment at a time (linear hashing): when segment n comes, the entries of the one segment
 * whose names end in the same bits are shared out between the two, so that no operation waits for
 * more than a few hundred of them to move. SEGMENT_FILL keeps the table at 29 bytes a block, and
 * the fullest segment about half full; what does not fit into a full one all the same, by a freak
 * of the hash, is in a list of its own.
 *
 * Readers take no lock. They only look up the starts of blocks that stay there meanwhile, so what
 * they find is right; but an entry that is moving to another segment may be missed, so who has
 * found nothing and must know looks again under the lock. Writers hold meta_lock.
 *
 * Both arrays are address space that is committed in steps of a huge page, and backed by huge pages
 * from the second on: a program with few blocks pays for few. */
#include <sys/mman.h>
#include "core/base/pages.h"
#include "core/base/lock.h"
#include "core/memory/pool.h"

enum {
  RECORDS = 1 << 26, /* MAP_ID names them */
  SEGMENTS = 1 << 19,
  SEGMENT_FILL = 144, /* entries a segment, on average */
  SPARES = 256,       /* for pools that take at the same time */
  STEP = 2 << 20,     /* bytes committed at once, a huge page */
};
mem_block *block_records;

static pthread_mutex_t meta_lock = PTHREAD_MUTEX_INITIALIZER;
static map_entry nothing[MAP_SLOTS]; /* while there is no segment */
map_entry *_Atomic page_map_entries = nothing;
_Atomic uint64_t page_map_shape;

static map_entry *map_space;
static uint32_t records_end, records_committed, segments_committed;
static uint32_t free_record; /* recycled, linked */
static uint32_t records_used, records_spare;
static uint32_t segments, entries; /* of the page map */
static block_id crowded;           /* blocks whose segment is full, linked by `prev` */

/* Address space for `bytes`, aligned to a huge page. */
static void *reserve_space(uint64_t bytes)
{
  char *at = pages_reserve(bytes + STEP);
  if (!at) return NULL;
  at += -(uintptr_t)at % STEP;
  (void)madvise(at + STEP, bytes - STEP, MADV_HUGEPAGE);
  return at;
}

static weir_status init_records(void)
{
  if (!block_records) block_records = reserve_space((uint64_t)RECORDS * sizeof(mem_block));
  if (!map_space) map_space = reserve_space((uint64_t)SEGMENTS * MAP_SLOTS * sizeof(map_entry));
  if (!block_records || !map_space)
    return weir_fail(WEIR_ENOMEM, "no address space for the allocator's records (6 GiB)");
  if (!records_end) records_end = 1;
  return WEIR_OK;
}

weir_status meta_init(void)
{
  HOLD_LOCK(&meta_lock);
  return init_records();
}

void meta_forget(void)
{
  pthread_mutex_init(&meta_lock, NULL);
  crowded = 0;
  atomic_store(&page_map_shape, 0);
  atomic_store(&page_map_entries, nothing);
}

/* Commits one more step of an array of `item` bytes each. */
static weir_status commit(mem_pool *p, void *array, uint32_t item, uint32_t *committed,
                          uint32_t most)
{
  const weir_source *s = &p->backend->source;
  uint32_t count = STEP / item;
  if (*committed + count > most)
    return weir_fail(WEIR_ENOMEM, "the allocator has %u records, the most it can have", *committed);
  TRY(s->host_commit ? s->host_commit(p->backend->self, STEP) : WEIR_OK);
  if (mprotect((char *)array + (uint64_t)*committed * item, STEP, PROT_READ | PROT_WRITE))
    return fail_memory("%u more records of the allocator", count);
  *committed += count;
  return WEIR_OK;
}

/* ---- page map -------------------------------------------------------------------------------- */

static uint64_t entry_at(const map_entry *slot)
{
  return atomic_load_explicit((map_entry *)slot, memory_order_relaxed);
}

static uint64_t entry_hash(uint64_t entry)
{
  return map_hash(block(map_block(entry))->address);
}

/* The first of the hash's slots with this value; NULL: none in the segment. */
static map_entry *slot_with(map_entry *segment, uint64_t hash, uint64_t entry)
{
  for (unsigned i = 0; i < MAP_SLOTS; i++) {
    map_entry *at = &segment[map_slot(hash, i)];
    if (entry_at(at) == entry) return at;
  }
  return NULL;
}

/* Into the first empty slot; false: the segment is full. */
static bool insert(map_entry *segment, uint64_t hash, uint64_t entry)
{
  map_entry *at = slot_with(segment, hash, 0);
  if (at) atomic_store_explicit(at, entry, memory_order_release);
  return at;
}

static uint64_t shape_of_count(uint32_t count)
{
  uint64_t mask = count > 1 ? (UINT64_C(1) << (32 - __builtin_clz(count - 1))) - 1 : 0;
  return mask << 32 | count;
}

/* One more segment, committed and empty. */
static void add_segment(void)
{
  uint32_t n = segments++;
  uint64_t shape = shape_of_count(segments), mask = shape >> 32;
  map_entry *old = map_space + (n & mask >> 1) * MAP_SLOTS, *new = map_space + n *MAP_SLOTS;
  uint32_t moved = 0;
  map_entry *left[MAP_SLOTS];
  for (unsigned i = 0; n && i < MAP_SLOTS; i++) {
    uint64_t e = entry_at(&old[i]), hash = e ? entry_hash(e) : 0;
    if (!e || (hash >> MAP_SEGMENT_AT & mask) != n) continue;
    (void)insert(new, hash, e);
    left[moved++] = &old[i];
  }
  atomic_store_explicit(&page_map_entries, map_space, memory_order_release);
  atomic_store_explicit(&page_map_shape, shape, memory_order_release);
  while (moved)
    atomic_store_explicit(left[--moved], 0, memory_order_release);
}

static weir_status map_ensure(mem_pool *p, unsigned count)
{
  while (entries + count + SPARES > segments * SEGMENT_FILL) {
    weir_status st =
        segments < segments_committed
            ? WEIR_OK
            : commit(p, map_space, MAP_SLOTS * sizeof(map_entry), &segments_committed, SEGMENTS);
    if (st) return st;
    add_segment();
  }
  return WEIR_OK;
}

static uint64_t meta_entry_of(block_id id, uint64_t hash)
{
  return hash >> MAP_TAG_AT << MAP_TAG_AT | (uint64_t)block(id)->class << MAP_CLASS_AT | id;
}

void page_map_put(block_id id)
{
  uint64_t hash = map_hash(block(id)->address);
  HOLD_LOCK(&meta_lock);
  entries++;
  if (!insert(map_segment(hash), hash, meta_entry_of(id, hash))) {
    block(id)->prev = crowded;
    crowded = id;
  }
}

void page_map_remove(block_id id)
{
  uint64_t hash = map_hash(block(id)->address);
  HOLD_LOCK(&meta_lock);
  map_entry *at = slot_with(map_segment(hash), hash, meta_entry_of(id, hash));
  entries--;
  if (at) {
    atomic_store_explicit(at, 0, memory_order_release);
  } else {
    block_id *link = &crowded;
    while (*link && *link != id)
      link = &block(*link)->prev;
    if (*link) *link = block(id)->prev;
    block(id)->prev = 0;
  }
}

block_id page_map_find(uint64_t address)
{
  block_id id = map_block(map_look(address));
  if (id) return id;
  HOLD_LOCK(&meta_lock);
  id = map_block(map_look(address));
  for (block_id c = crowded; c && !id; c = block(c)->prev)
    if (block(c)->address == address) id = c;
  return id;
}

/* ---- records --------------------------------------------------------------------------------- */

weir_status block_ensure(mem_pool *p, unsigned count)
{
  HOLD_LOCK(&meta_lock);
  weir_status st = map_ensure(p, count);
  while (!st && records_spare + records_committed < records_end + count + SPARES)
    st = commit(p, block_records, sizeof(mem_block), &records_committed, RECORDS);
  return st;
}

block_id block_new(void)
{
  pthread_mutex_lock(&meta_lock);
  block_id id = free_record;
  if (id) {
    free_record = block(id)->next;
    records_spare--;
  } else {
    id = records_end++;
  }
  records_used++;
  pthread_mutex_unlock(&meta_lock);
  mem_block *b = block(id);
  b->next = b->prev = b->left = b->right = b->uses = b->tcache = 0;
  b->stamp = b->requested = 0;
  return id;
}

void block_drop(block_id id)
{
  block_set(block(id), BLOCK_SPARE);
  HOLD_LOCK(&meta_lock);
  block(id)->next = free_record;
  free_record = id;
  records_spare++;
  records_used--;
}

uint64_t meta_bytes(void)
{
  HOLD_LOCK(&meta_lock);
  return (uint64_t)records_used * sizeof(mem_block) +
         (uint64_t)segments * MAP_SLOTS * sizeof(map_entry);
}
