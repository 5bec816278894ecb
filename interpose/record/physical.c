/* physical.c: see physical.h. Memories are slots of an array, which mappings name by number, so
 * that a handle that comes back is never taken for the memory it named before; mappings are in
 * order of address. Both arrays grow by doubling. */
#include "interpose/record/physical.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include "core/base/pages.h"
#include "interpose/record/hash_table.h"

typedef struct memory_slot {
  physical_memory is;
  uint32_t refs, maps;
  uint32_t next; /* of the free ones, or of those that have ended; 0: none */
  bool used;
} memory_slot;

typedef struct mapping {
  uint64_t address, bytes;
  uint32_t memory; /* slot */
} mapping;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* over all below */
static hash_table by_handle;                             /* x: slot; y: 1 */
static memory_slot *memories;                            /* slot 0 is none */
static uint64_t memory_count = 1, memory_capacity;
static uint32_t free_memory; /* first of the free slots, 0: none */
static mapping *mappings;
static uint64_t mapping_count, mapping_capacity;

/* The array `at` of elements of `size` with room for one after the first `count`; NULL: there is
 * none, and it is as it was. */
static void *with_room(void *at, uint64_t count, uint64_t *capacity, size_t size)
{
  if (count < *capacity) return at;
  uint64_t more = *capacity ? 2 * *capacity : 256;
  void *to = pages_alloc(more * size);
  if (!to) return NULL;
  if (at) {
    memcpy(to, at, count * size);
    munmap(at, *capacity * size);
  }
  *capacity = more;
  return to;
}

/* ---- memories; lock held --------------------------------------------------------------------- */

static uint32_t find_physical(uint64_t handle)
{
  hash_entry *e = hash_table_find(&by_handle, handle);
  return e ? (uint32_t)atomic_load_explicit(&e->x, memory_order_relaxed) : 0;
}

static uint32_t new_memory(void)
{
  uint32_t i = free_memory;
  if (i) {
    free_memory = memories[i].next;
    return i;
  }
  memory_slot *room = with_room(memories, memory_count, &memory_capacity, sizeof *memories);
  if (!room || memory_count > UINT32_MAX) return 0;
  memories = room;
  return (uint32_t)memory_count++;
}

static void forget_memory(uint32_t i)
{
  memories[i] = (memory_slot){.next = free_memory};
  free_memory = i;
}

static bool has_ended(uint32_t i)
{
  return memories[i].used && !memories[i].refs && !memories[i].maps;
}

/* The handle names no memory any more, unless it names another one by now. */
static void forget_handle(uint64_t handle, uint32_t i)
{
  uint64_t x, y;
  if (find_physical(handle) == i) (void)hash_table_take(&by_handle, handle, &x, &y);
}

void physical_created(const physical_memory *m)
{
  pthread_mutex_lock(&lock);
  uint32_t i = new_memory();
  if (i) {
    memories[i] = (memory_slot){.is = *m, .refs = 1, .used = true};
    (void)hash_table_put(&by_handle, m->handle, i, 1);
  }
  pthread_mutex_unlock(&lock);
}

uint32_t physical_release_begin(uint64_t handle)
{
  pthread_mutex_lock(&lock);
  uint32_t i = find_physical(handle);
  if (i && --memories[i].refs == 0) forget_handle(handle, i);
  if (i) memories[i].maps++; /* until physical_release_end() it does not end */
  pthread_mutex_unlock(&lock);
  return i;
}

bool physical_release_end(uint32_t i, uint64_t handle, bool released, physical_memory *ended)
{
  if (!i) return false;
  pthread_mutex_lock(&lock);
  memories[i].maps--;
  if (!released && memories[i].refs++ == 0) (void)hash_table_put(&by_handle, handle, i, 1);
  bool over = has_ended(i);
  if (over) {
    *ended = memories[i].is;
    forget_memory(i);
  }
  pthread_mutex_unlock(&lock);
  return over;
}

/* ---- mappings; lock held --------------------------------------------------------------------- */

/* The first mapping that begins at `address` or after it. */
static uint64_t first_from(uint64_t address)
{
  uint64_t low = 0, high = mapping_count;
  while (low < high) {
    uint64_t middle = low + (high - low) / 2;
    if (mappings[middle].address < address)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

/* Takes out those of [first, last); what ends with them is put before `ended`. */
static uint32_t remove_mappings(uint64_t first, uint64_t last, uint32_t ended)
{
  if (first == last) return ended;
  for (uint64_t k = first; k < last; k++) {
    uint32_t i = mappings[k].memory;
    (void)pointer_block_remove(mappings[k].address);
    memories[i].maps--;
    if (!has_ended(i)) continue;
    memories[i].next = ended;
    memories[i].used = false; /* ended once */
    ended = i;
  }
  if (last < mapping_count)
    memmove(mappings + first, mappings + last, (mapping_count - last) * sizeof *mappings);
  mapping_count -= last - first;
  return ended;
}

static void mark(const mapping *m)
{
  pointer_block_add((pointer_block){m->address, m->bytes, memories[m->memory].is.tag});
}

static bool add_mapping(mapping m)
{
  mapping *room = with_room(mappings, mapping_count, &mapping_capacity, sizeof *mappings);
  if (!room) return false;
  mappings = room;
  uint64_t at = first_from(m.address);
  memmove(mappings + at + 1, mappings + at, (mapping_count++ - at) * sizeof *mappings);
  mappings[at] = m;
  memories[m.memory].maps++;
  mark(&m);
  return true;
}

bool physical_mapped(uint64_t address, uint64_t bytes, uint64_t handle, physical_memory *first)
{
  bool tells = false;
  pthread_mutex_lock(&lock);
  uint32_t i = find_physical(handle);
  if (i && add_mapping((mapping){address, bytes, i})) {
    tells = !memories[i].is.bytes;
    if (tells) memories[i].is.bytes = bytes;
    *first = memories[i].is;
  }
  pthread_mutex_unlock(&lock);
  return tells;
}

uint32_t physical_unmapped(uint64_t address, uint64_t bytes)
{
  pthread_mutex_lock(&lock);
  uint64_t end = bytes > UINT64_MAX - address ? UINT64_MAX : address + bytes;
  uint32_t ended = remove_mappings(first_from(address), first_from(end), 0);
  pthread_mutex_unlock(&lock);
  return ended;
}

uint32_t physical_next_ended(uint32_t i, physical_memory *ended)
{
  pthread_mutex_lock(&lock);
  uint32_t next = memories[i].next;
  *ended = memories[i].is;
  forget_memory(i);
  pthread_mutex_unlock(&lock);
  return next;
}

void physical_retained(uint64_t handle, uint64_t address)
{
  pthread_mutex_lock(&lock);
  uint64_t k = first_from(address + 1);
  const mapping *m = k ? &mappings[k - 1] : NULL;
  if (m && address - m->address < m->bytes) {
    memories[m->memory].refs++;
    (void)hash_table_put(&by_handle, handle, m->memory, 1);
  }
  pthread_mutex_unlock(&lock);
}

/* ---- what becomes of all --------------------------------------------------------------------- */

void physical_mark_again(unsigned device)
{
  pthread_mutex_lock(&lock);
  for (uint64_t k = 0; k < mapping_count; k++)
    if (block_tag_device(memories[mappings[k].memory].is.tag) == device) mark(&mappings[k]);
  pthread_mutex_unlock(&lock);
}

static void forget_entry(void *context, uint64_t key, uint64_t x, uint64_t y)
{
  (void)context;
  (void)hash_table_take_as(&by_handle, key, &x, y);
}

void physical_forked(void)
{
  pthread_mutex_t unlocked = PTHREAD_MUTEX_INITIALIZER;
  lock = unlocked;
  hash_table_each(&by_handle, forget_entry, NULL);
  mapping_count = 0;
  memory_count = 1;
  free_memory = 0;
}
