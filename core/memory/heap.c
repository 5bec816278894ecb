/* heap.c: two-level segregated fit over records that live outside the memory.
 *
 * A free block of n units (512 bytes) is in bin (first, second): first by the power of two, second
 * one of 32 even steps in it. Bitmaps find the next bin with a block in constant time. The bin of
 * the asked size may hold blocks that fit and blocks that don't, so a few of it are looked at
 * before the next bin, whose every block fits. */
#include "core/memory/host.h"
#include "core/base/lock.h"
#include "core/memory/pool.h"

enum { LOOKS = 4, STAMP_LOOKS = 64 };

_Atomic uint8_t class_of_units[CLASS_LIMIT / UNIT + 1];
_Atomic uint8_t host_class_of_units[CLASS_LIMIT / UNIT + 1];
uint32_t bytes_of_class[CLASSES];
int64_t live_of_class[CLASSES];

typedef struct bin {
  int first, second;
} bin;

static bin bin_of(uint64_t bytes)
{
  uint64_t units = bytes >> UNIT_SHIFT;
  if (units < TLSF_SECOND) return (bin){0, (int)units};
  int top = 63 - __builtin_clzll(units);
  return (bin){top - 4, (int)(units >> (top - 5)) & (TLSF_SECOND - 1)};
}

/* The next bin at or after `at` that holds a block; false: none. */
static bool next_bin(const mem_heap *h, bin *at)
{
  if (at->first >= TLSF_FIRST) return false;
  uint32_t in = at->second < TLSF_SECOND ? h->second[at->first] & (~0u << at->second) : 0;
  if (!in) {
    uint32_t above = at->first < 31 ? h->first & (~0u << (at->first + 1)) : 0;
    if (!above) return false;
    at->first = __builtin_ctz(above);
    in = h->second[at->first];
  }
  at->second = __builtin_ctz(in);
  return true;
}

static bool common(const mem_heap *h)
{
  return h == &h->pool->common[HEAP_HOLE];
}

static void count_heap_free(mem_heap *h, int sign, const mem_block *b)
{
  int64_t bytes = (int64_t)b->bytes;
  bool large = b->bytes > CLASS_LIMIT;
  h->free_blocks += (uint64_t)(int64_t)sign;
  h->free_bytes += (uint64_t)(sign * bytes);
  if (common(h) || (!b->left && !b->right)) return; /* a whole segment can be given back */
  stat_add(&h->pool->inactive[large], sign * bytes);
  stat_add(&h->pool->inactive_blocks[large], sign);
}

void heap_put(mem_heap *h, block_id id)
{
  mem_block *b = block(id);
  bin at = bin_of(b->bytes);
  block_id head = h->bins[at.first][at.second];
  b->prev = 0;
  b->next = head;
  if (head) block(head)->prev = id;
  h->bins[at.first][at.second] = id;
  h->second[at.first] |= 1u << at.second;
  h->first |= 1u << at.first;
  b->heap = h->number;
  h->retirable |= b->stamp <= h->done;
  block_set(b, common(h) ? BLOCK_HOLE : BLOCK_FREE);
  count_heap_free(h, 1, b);
}

void heap_remove(mem_heap *h, block_id id)
{
  mem_block *b = block(id);
  if (b->next) block(b->next)->prev = b->prev;
  if (b->prev) {
    block(b->prev)->next = b->next;
  } else {
    bin at = bin_of(b->bytes);
    h->bins[at.first][at.second] = b->next;
    if (!b->next && !(h->second[at.first] &= ~(1u << at.second))) h->first &= ~(1u << at.first);
  }
  b->next = b->prev = 0;
  count_heap_free(h, -1, b);
}

block_id heap_find(const mem_heap *h, uint64_t bytes)
{
  bin at = bin_of(bytes);
  if (at.first >= TLSF_FIRST) return 0;
  block_id id = h->bins[at.first][at.second];
  for (int i = 0; id && i < LOOKS; i++, id = block(id)->next)
    if (block(id)->bytes >= bytes) return id;
  at.second++;
  if (next_bin(h, &at)) return h->bins[at.first][at.second];
  /* The last resort: what was not looked at in the size's own bin. */
  for (; id; id = block(id)->next)
    if (block(id)->bytes >= bytes) return id;
  return 0;
}

block_id heap_find_stamp(const mem_heap *h, uint64_t bytes, uint64_t limit)
{
  bin at = bin_of(bytes);
  int looks = 0;
  for (; next_bin(h, &at); at.second++)
    for (block_id id = h->bins[at.first][at.second]; id && looks < STAMP_LOOKS;
         id = block(id)->next, looks++)
      if (block(id)->bytes >= bytes && block(id)->stamp <= limit) return id;
  return 0;
}

block_id heap_find_exact(const mem_heap *h, uint64_t bytes)
{
  bin at = bin_of(bytes);
  if (at.first >= TLSF_FIRST) return 0;
  block_id id = h->bins[at.first][at.second];
  while (id && block(id)->bytes != bytes)
    id = block(id)->next;
  return id;
}

uint64_t heap_largest(const mem_heap *h)
{
  uint64_t most = 0;
  if (!h->first) return 0;
  int f = 31 - __builtin_clz(h->first), s = 31 - __builtin_clz(h->second[f]);
  for (block_id id = h->bins[f][s]; id; id = block(id)->next)
    if (block(id)->bytes > most) most = block(id)->bytes;
  return most;
}

void block_split(block_id id, uint64_t bytes, mem_heap *rest)
{
  mem_block *b = block(id);
  if (b->bytes == bytes) return;
  block_id r = block_new();
  mem_block *n = block(r);
  n->address = b->address + bytes;
  n->bytes = b->bytes - bytes;
  n->stamp = b->stamp;
  n->when = b->when;
  n->left = id;
  n->right = b->right;
  if (b->right) block(b->right)->left = r;
  b->right = r;
  b->bytes = bytes;
  heap_put(rest, r);
}

void block_join(block_id left, block_id right)
{
  mem_block *l = block(left), *r = block(right);
  l->bytes += r->bytes;
  l->right = r->right;
  if (r->right) block(r->right)->left = left;
  if (r->stamp > l->stamp) l->stamp = r->stamp;
  if ((int32_t)(r->when - l->when) > 0) l->when = r->when;
  block_drop(right);
}

static bool mergeable(const mem_heap *h, block_id id)
{
  uint8_t want = common(h) ? BLOCK_HOLE : BLOCK_FREE;
  return id && block_state(block(id)) == want && block(id)->heap == h->number;
}

block_id block_give(mem_heap *h, block_id id)
{
  block_id left = block(id)->left, right = block(id)->right;
  if (!h->pool->config.whole_block) {
    if (mergeable(h, right)) {
      heap_remove(h, right);
      block_join(id, right);
    }
    if (mergeable(h, left)) {
      heap_remove(h, left);
      block_join(left, id);
      id = left;
    }
  }
  heap_put(h, id);
  return id;
}

/* ---- sizes ------------------------------------------------------------------------------------
 * Up to CLASS_LIMIT sizes are classes, for the thread caches' sake: 8 a doubling up to
 * COARSE_UNITS, 32 above. That wastes up to 1/32 of a block, which is nothing to a few blocks and
 * pages to hundreds of one size (a network's rows of weights). So where a pool cuts exactly anyway,
 * a size above COARSE_UNITS that has come down to the heap LEARN_AFTER times, as that of so many
 * blocks at once does, gets a class of its own, while there are any. Larger sizes are exact: no
 * thread cache keeps them. */

enum { COARSE_UNITS = 128, COARSE_BITS = 3, FINE_BITS = 5, LEARN_AFTER = 32 };

static pthread_mutex_t learn_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic unsigned class_count;
static _Atomic uint8_t came[CLASS_LIMIT / UNIT + 1]; /* by units: times, at most LEARN_AFTER */

/* Rounded up to 1/steps of the power of two below. */
static uint64_t step_up(uint64_t units, int bits)
{
  if (units <= UINT64_C(1) << bits) return units;
  int shift = 63 - __builtin_clzll(units - 1) - bits;
  return shift <= 0 ? units : (((units - 1) >> shift) + 1) << shift;
}

static uint64_t fixed_units(uint64_t units)
{
  return step_up(units, units <= COARSE_UNITS ? COARSE_BITS : FINE_BITS);
}

static uint64_t class_bytes(uint64_t units)
{
  if (units > CLASS_LIMIT / UNIT) return fixed_units(units) << UNIT_SHIFT;
  return units ? bytes_of_class[atomic_load_explicit(&class_of_units[units], memory_order_acquire)]
               : 0;
}

/* Host pools: 8 classes a doubling, whole pages of the machine where sizes are exact. */
static uint64_t host_round(uint64_t bytes)
{
  if (bytes >= HOST_EXACT) return (bytes + 4095) >> 12 << 12;
  return step_up((bytes + UNIT - 1) >> UNIT_SHIFT, COARSE_BITS) << UNIT_SHIFT;
}

uint64_t round_request(const mem_pool *p, uint64_t bytes)
{
  uint64_t units = (bytes + UNIT - 1) >> UNIT_SHIFT;
  if (p->host) return host_round(bytes);
  if (!p->config.whole_block) {
    uint64_t n = p->config.roundup_divisions;
    if (!n && p->space && bytes > CLASS_LIMIT) return units << UNIT_SHIFT;
    return n ? step_up(units, __builtin_ctzll(n)) << UNIT_SHIFT : class_bytes(units);
  }
  if (bytes <= CLASS_LIMIT) return units << UNIT_SHIFT;
  return (bytes + (2 << 20) - 1) >> 21 << 21;
}

/* Under the lock, or before there are threads. */
static void add_class(uint64_t units)
{
  unsigned count = atomic_load_explicit(&class_count, memory_order_relaxed);
  bytes_of_class[count] = (uint32_t)(units << UNIT_SHIFT);
  live_of_class[count] = LIVE_ONE + (int64_t)units;
  atomic_store_explicit(&class_count, count + 1, memory_order_relaxed);
}

void class_learn(const mem_pool *p, uint64_t bytes)
{
  uint64_t units = (bytes + UNIT - 1) >> UNIT_SHIFT;
  if (!p->space || p->config.roundup_divisions || bytes > CLASS_LIMIT || units <= COARSE_UNITS ||
      class_bytes(units) == units << UNIT_SHIFT ||
      atomic_load_explicit(&class_count, memory_order_relaxed) == CLASSES)
    return;
  HOLD_LOCK(&learn_lock);
  unsigned count = atomic_load_explicit(&class_count, memory_order_relaxed);
  if (came[units] < LEARN_AFTER && ++came[units] == LEARN_AFTER && count < CLASSES) {
    add_class(units);
    atomic_store_explicit(&class_of_units[units], (uint8_t)count, memory_order_release);
  }
}

void class_forget(void)
{
  HOLD_LOCK(&learn_lock);
  atomic_store(&class_count, 0);
  for (uint64_t u = 1; u <= CLASS_LIMIT / UNIT; u++) {
    unsigned count = atomic_load(&class_count);
    uint64_t c = fixed_units(u);
    if (!count || bytes_of_class[count - 1] != c << UNIT_SHIFT) add_class(c);
    atomic_store(&class_of_units[u], (uint8_t)(atomic_load(&class_count) - 1));
    atomic_store(&came[u], 0);
  }
  atomic_store(&class_of_units[0], 0);
}

__attribute__((constructor)) static void fill_classes(void)
{
  class_forget();
  /* A host pool's classes are some of these: the sizes it rounds to. */
  for (uint64_t u = 0; u <= CLASS_LIMIT / UNIT; u++)
    host_class_of_units[u] = class_of_units[step_up(u, COARSE_BITS)];
}

/* ---- all heaps ------------------------------------------------------------------------------- */

mem_heap *_Atomic heap_table[HEAPS];

static pthread_mutex_t number_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic uint64_t serials; /* given so far */

uint64_t heap_serial(void)
{
  return ++serials;
}

weir_status heap_number(mem_heap *h, mem_pool *p)
{
  weir_status st = WEIR_ELIMIT;
  pthread_mutex_lock(&number_lock);
  unsigned i = p->host ? HOST_HEAPS : 1, end = p->host ? HEAPS : HOST_HEAPS;
  for (; i < end && st; i++) {
    if (heap_table[i]) continue;
    h->number = (uint16_t)i;
    h->serial = heap_serial();
    h->pool = p;
    h->epoch = 1;
    heap_table[i] = h;
    st = WEIR_OK;
  }
  pthread_mutex_unlock(&number_lock);
  if (!st) return WEIR_OK;
  return weir_fail(WEIR_ELIMIT, "%d streams and pools are in use, the most there can be", HEAPS);
}

void heap_unnumber(const mem_heap *h)
{
  HOLD_LOCK(&number_lock);
  heap_table[h->number] = NULL;
}

bool epoch_capturing(const mem_heap *h)
{
  const weir_backend *b = h->pool->backend;
  return b->stream_capturing && b->stream_capturing(b->self, h->stream);
}

void pool_walk(const mem_pool *p, block_visit visit, void *user)
{
  for (unsigned i = 0; i < p->head_count; i++)
    for (block_id id = p->heads[i]; id; id = block(id)->right)
      visit(user, block(id));
}
