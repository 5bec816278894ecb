/* meta.c: the blocks' records and the page map, shared by all pools, outside the memory they
 * describe.
 *
 * Records are 64 bytes in one array, so that a record is a 32-bit number. The array is address
 * space that is committed in steps; records are recycled and never given back.
 *
 * The page map takes an address to the block that starts there. It is a radix tree over the 39 bits
 * above UNIT_SHIFT of a 48-bit address: a root by bits 32-47, a table by bits 21-31, then nodes of
 * 8 entries (32 bytes) by three bits each. An entry is empty, a block, or a node (MAP_NODE_BIT); a
 * block stands as high in the tree as it is the only one below its entry, so a large block costs 4
 * bytes and a small one its share of a node.
 *
 * Readers take no lock: they only look up the starts of blocks that stay there meanwhile. A node is
 * complete before it is linked (release), and is recycled only when no block is below it, when no
 * reader can be on its way through it. Writers hold meta_lock.
 */
#include <sys/mman.h>
#include <string.h>
#include "core/memory/pool.h"

enum {
  RECORDS = 1 << 26,
  COMMIT_RECORDS = 1 << 15,
  NODES = 1 << 26,
  COMMIT_NODES = 1 << 16,
};
weir_block *weir_blocks;

static pthread_mutex_t meta_lock = PTHREAD_MUTEX_INITIALIZER;
map_node *weir_map_nodes; /* [0] is never used */
map_entry *_Atomic weir_map_root[65536];
static uint32_t records_end, records_committed, nodes_end, nodes_committed, tables;
static uint32_t free_record, free_node; /* recycled, linked */
static uint32_t records_used, nodes_used, records_spare, nodes_spare;

static void *space(uint64_t bytes, int how)
{
  void *at = mmap(NULL, bytes, how, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return at == MAP_FAILED ? NULL : at;
}

static weir_status init(void)
{
  if (!weir_blocks) weir_blocks = space((uint64_t)RECORDS * sizeof(weir_block), PROT_NONE);
  if (!weir_map_nodes) weir_map_nodes = space((uint64_t)NODES * sizeof(map_node), PROT_NONE);
  if (!weir_blocks || !weir_map_nodes)
    return weir_fail(WEIR_ENOMEM, "no address space for the allocator's records (6 GiB)");
  (void)madvise(weir_blocks, (uint64_t)RECORDS * sizeof(weir_block), MADV_HUGEPAGE);
  (void)madvise(weir_map_nodes, (uint64_t)NODES * sizeof(map_node), MADV_HUGEPAGE);
  if (!records_end) records_end = nodes_end = 1;
  return WEIR_OK;
}

weir_status weir_meta_init(void)
{
  pthread_mutex_lock(&meta_lock);
  weir_status st = init();
  pthread_mutex_unlock(&meta_lock);
  return st;
}

void weir_meta_forget(void)
{
  for (size_t i = 0; i < sizeof weir_map_root / sizeof *weir_map_root; i++)
    if (atomic_load_explicit(&weir_map_root[i], memory_order_relaxed))
      atomic_store_explicit(&weir_map_root[i], NULL, memory_order_relaxed);
}

static uint32_t left(uint32_t committed, uint32_t end)
{
  return committed > end ? committed - end : 0;
}

/* Commits `count` more items of an array. */
static weir_status commit(weir_pool *p, void *array, size_t item, uint32_t *committed,
                          uint32_t count, uint32_t most)
{
  const weir_source *s = &p->backend->source;
  uint64_t bytes = (uint64_t)count * item;
  if (*committed + count > most)
    return weir_fail(WEIR_ENOMEM, "the allocator has %u records, the most it can have", *committed);
  weir_status st = s->host_commit ? s->host_commit(p->backend->self, bytes) : WEIR_OK;
  if (st) return st;
  if (mprotect((char *)array + *committed * item, bytes, PROT_READ | PROT_WRITE))
    return weir_fail(WEIR_ENOMEM, "no host memory for %u more records of the allocator", count);
  *committed += count;
  return WEIR_OK;
}

/* ---- records ----------------------------------------------------------------------------------
 */

weir_status weir_block_ensure(weir_pool *p, unsigned count)
{
  weir_status st = WEIR_OK;
  pthread_mutex_lock(&meta_lock);
  /* Other pools may take from the same spares: leave each of them as much again. */
  while (!st && records_spare + left(records_committed, records_end) < count + 256)
    st = commit(p, weir_blocks, sizeof(weir_block), &records_committed, COMMIT_RECORDS, RECORDS);
  pthread_mutex_unlock(&meta_lock);
  return st;
}

block_id weir_block_new(void)
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
  weir_block *b = block(id);
  b->next = b->prev = b->left = b->right = b->uses = b->front = 0;
  b->stamp = b->requested = 0;
  return id;
}

void weir_block_drop(block_id id)
{
  block_set(block(id), BLOCK_SPARE);
  pthread_mutex_lock(&meta_lock);
  block(id)->next = free_record;
  free_record = id;
  records_spare++;
  records_used--;
  pthread_mutex_unlock(&meta_lock);
}

/* ---- page map ---------------------------------------------------------------------------------
 */

static map_entry *table_of(uint64_t address)
{
  return atomic_load_explicit(&weir_map_root[address >> 32], memory_order_acquire);
}

static weir_status ensure_nodes(weir_pool *p, unsigned count)
{
  weir_status st = WEIR_OK;
  if (nodes_spare + left(nodes_committed, nodes_end) < count)
    st = commit(p, weir_map_nodes, sizeof(map_node), &nodes_committed, COMMIT_NODES, NODES);
  return st;
}

static uint32_t node_new(void)
{
  uint32_t n = free_node;
  if (n) {
    free_node = atomic_load_explicit(&weir_map_nodes[n].at[0], memory_order_relaxed);
    nodes_spare--;
  } else {
    n = nodes_end++;
  }
  nodes_used++;
  for (int i = 0; i < MAP_FAN; i++)
    atomic_store_explicit(&weir_map_nodes[n].at[i], 0, memory_order_relaxed);
  return n;
}

static void node_drop(uint32_t n)
{
  atomic_store_explicit(&weir_map_nodes[n].at[0], free_node, memory_order_relaxed);
  free_node = n;
  nodes_spare++;
  nodes_used--;
}

static weir_status table_new(weir_pool *p, uint64_t address, map_entry **out)
{
  const weir_source *s = &p->backend->source;
  uint64_t bytes = sizeof(map_entry) << MAP_TABLE_BITS;
  weir_status st = s->host_commit ? s->host_commit(p->backend->self, bytes) : WEIR_OK;
  if (st) return st;
  if (!(*out = space(bytes, PROT_READ | PROT_WRITE)))
    return weir_fail(WEIR_ENOMEM, "no host memory for the allocator's page map");
  tables++;
  atomic_store_explicit(&weir_map_root[address >> 32], *out, memory_order_release);
  return WEIR_OK;
}

/* Puts `id` below `e`, which stands above level `level`. Nodes are ensured. */
static void put_below(map_entry *e, int level, block_id id)
{
  uint32_t old;
  while ((old = atomic_load_explicit(e, memory_order_relaxed)) & MAP_NODE_BIT)
    e = &weir_map_nodes[old & ~MAP_NODE_BIT].at[map_at_level(block(id)->address, level++)];
  if (!old) {
    atomic_store_explicit(e, id, memory_order_release);
    return;
  }
  uint32_t n = node_new();
  put_below(&weir_map_nodes[n].at[map_at_level(block(old)->address, level)], level + 1, old);
  put_below(&weir_map_nodes[n].at[map_at_level(block(id)->address, level)], level + 1, id);
  atomic_store_explicit(e, n | MAP_NODE_BIT, memory_order_release);
}

weir_status weir_page_map_put(weir_pool *p, block_id id)
{
  uint64_t address = block(id)->address;
  pthread_mutex_lock(&meta_lock);
  map_entry *table = table_of(address);
  weir_status st = table ? WEIR_OK : table_new(p, address, &table);
  if (!st) st = ensure_nodes(p, MAP_LEVELS);
  if (!st) put_below(map_first(table, address), 0, id);
  pthread_mutex_unlock(&meta_lock);
  return st;
}

static bool node_empty(const map_node *n)
{
  for (int i = 0; i < MAP_FAN; i++)
    if (atomic_load_explicit(&n->at[i], memory_order_relaxed)) return false;
  return true;
}

void weir_page_map_remove(block_id id)
{
  uint64_t address = block(id)->address;
  pthread_mutex_lock(&meta_lock);
  map_entry *path[MAP_LEVELS + 1];
  int level = 0;
  uint32_t e;
  path[0] = map_first(table_of(address), address);
  while ((e = atomic_load_explicit(path[level], memory_order_relaxed)) & MAP_NODE_BIT) {
    map_entry *next = &weir_map_nodes[e & ~MAP_NODE_BIT].at[map_at_level(address, level)];
    path[++level] = next;
  }
  atomic_store_explicit(path[level], 0, memory_order_release);
  while (level--) {
    e = atomic_load_explicit(path[level], memory_order_relaxed) & ~MAP_NODE_BIT;
    if (!node_empty(&weir_map_nodes[e])) break;
    atomic_store_explicit(path[level], 0, memory_order_release);
    node_drop(e);
  }
  pthread_mutex_unlock(&meta_lock);
}

uint64_t weir_meta_bytes(void)
{
  pthread_mutex_lock(&meta_lock);
  uint64_t bytes = (uint64_t)records_used * sizeof(weir_block) +
                   (uint64_t)nodes_used * sizeof(map_node) +
                   ((uint64_t)tables * sizeof(map_entry) << MAP_TABLE_BITS);
  pthread_mutex_unlock(&meta_lock);
  return bytes;
}
