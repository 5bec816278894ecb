/* callers.c: see callers.h. A stack in the arena is two words (hash; how many) and its addresses;
 * its number is its place there + 1. Address space is reserved once and committed in steps. */
#include "core/base/pages.h"
#include "core/base/lock.h"
#include "core/memory/callers.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "core/base/compiler.h"
#include "core/trace/stack.h"
#include "core/trace/unwind.h"

enum {
  SLOTS = 1 << 19, /* of the hash table, a power of two */
  MOST_STACKS = SLOTS / 2,
  WORDS = CALLERS_BYTES / 8 - SLOTS / 2, /* of the arena */
  STEP = 1 << 15,                        /* words committed at a time */
  INNER = 12                             /* frames among which the allocator's own are */
};

static struct {
  pthread_mutex_t lock;
  unsigned holders;
  _Atomic uint32_t generation; /* of the table; 0: never held */
  uint32_t *slots;             /* mapped: number of a stack, 0: empty */
  uint64_t *words;             /* mapped */
  uint32_t used, committed;    /* words */
  uint32_t count;              /* stacks */
  uint64_t lost;
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

static pthread_once_t once = PTHREAD_ONCE_INIT;

/* A race detector puts a thread away before libunwind does, which then still takes a lock: there it
 * is glibc's backtrace(). */
static void *open_unwinder(const char *path, int flags)
{
#if WEIR_TSAN
  (void)path, (void)flags;
  return NULL;
#else
  return dlopen(path, flags);
#endif
}

/* Where installed, the unwinder is in a folder of Weir's own. */
static void find_private(char *folder, size_t size)
{
  size_t bytes = strlen(folder);
  char unwinder[4096];
  int n = snprintf(unwinder, sizeof unwinder, "%s/weir/libunwind.so.8", folder);
  if (bytes && n < (int)sizeof unwinder && access(unwinder, R_OK) == 0)
    (void)snprintf(folder + bytes, size - bytes, "/weir");
}

static void init_callers(void)
{
  char beside[4096] = "";
  Dl_info info;
  if (dladdr((void *)(uintptr_t)&callers_hold, &info) && info.dli_fname) {
    (void)snprintf(beside, sizeof beside, "%s", info.dli_fname);
    char *slash = strrchr(beside, '/');
    *(slash ? slash : beside) = 0;
    find_private(beside, sizeof beside);
  }
  (void)stack_init(*beside ? beside : NULL, open_unwinder, dlsym, CALLERS_DEPTH);
}

/* ---- the table ------------------------------------------------------------------------------- */

void callers_hold(void)
{
  pthread_once(&once, init_callers);
  HOLD_LOCK(&table.lock);
  if (!table.holders++) {
    table.used = table.count = 0;
    table.lost = 0;
    if (table.slots) memset(table.slots, 0, SLOTS * sizeof *table.slots);
    atomic_fetch_add(&table.generation, 1);
  }
}

void callers_release(void)
{
  HOLD_LOCK(&table.lock);
  table.holders--;
}

/* Room for one more stack of `count` frames. */
static bool make_caller_room(const mem_pool *p, uint32_t count)
{
  const uint64_t step = STEP * sizeof *table.words;
  if (!table.slots && may_commit(p, SLOTS * sizeof *table.slots))
    table.slots = pages_alloc(SLOTS * sizeof *table.slots);
  if (!table.words) table.words = pages_reserve((uint64_t)WORDS * sizeof *table.words);
  if (!table.slots || !table.words || table.count == MOST_STACKS) return false;
  if (table.used + count + 2 <= table.committed) return true;
  if (table.committed + STEP > WORDS || !may_commit(p, step)) return false;
  if (mprotect(table.words + table.committed, step, PROT_READ | PROT_WRITE)) return false;
  table.committed += STEP;
  return true;
}

static uint64_t hash_of_caller(const uint64_t *frames, uint32_t count)
{
  uint64_t h = count;
  for (uint32_t i = 0; i < count; i++)
    h = (h ^ frames[i]) * UINT64_C(0x9fb21c651e98df25), h ^= h >> 29;
  return h;
}

/* The slot of a stack, or the empty one where it goes. */
static uint32_t *probe_callers(uint64_t hash, const uint64_t *frames, uint32_t count)
{
  for (uint64_t at = hash;; at++) {
    uint32_t *slot = &table.slots[at & (SLOTS - 1)];
    if (!*slot) return slot;
    const uint64_t *s = table.words + *slot - 1;
    if (s[0] == hash && s[1] == count && !memcmp(s + 2, frames, count * sizeof *frames))
      return slot;
  }
}

static uint32_t intern(const mem_pool *p, const uint64_t *frames, uint32_t count)
{
  uint64_t hash = hash_of_caller(frames, count);
  uint32_t *slot = table.slots ? probe_callers(hash, frames, count) : NULL;
  if (slot && *slot) return *slot;
  if (!table.holders || !make_caller_room(p, count)) {
    table.lost++;
    return 0;
  }
  uint64_t *s = table.words + table.used;
  s[0] = hash;
  s[1] = count;
  memcpy(s + 2, frames, count * sizeof *frames);
  slot = slot ? slot : probe_callers(hash, frames, count);
  *slot = table.used + 1;
  table.used += count + 2;
  table.count++;
  return *slot;
}

uint64_t weir_callers_capture(const mem_pool *p)
{
  uint64_t frames[CALLERS_DEPTH];
  unsigned count = weir_unwind_here(frames, CALLERS_DEPTH);
  if (!count) return 0;
  HOLD_LOCK(&table.lock);
  uint32_t id = intern(p, frames, count);
  return id ? (uint64_t)atomic_load(&table.generation) << 32 | id : 0;
}

uint32_t callers_id(uint64_t token)
{
  return token >> 32 == atomic_load(&table.generation) ? (uint32_t)token : 0;
}

unsigned callers_frames(uint32_t id, const uint64_t **frames)
{
  if (!id) return 0;
  *frames = table.words + id + 1;
  return (unsigned)table.words[id];
}

callers_figures callers_count(void)
{
  HOLD_LOCK(&table.lock);
  callers_figures f = {table.count,
                       (table.slots ? SLOTS * sizeof *table.slots : 0) +
                           (uint64_t)table.committed * sizeof *table.words,
                       table.lost, stack_unwinder()};
  return f;
}

/* ---- for people ------------------------------------------------------------------------------ */

unsigned callers_own(uint32_t id, code_names *names)
{
  const uint64_t *frames = NULL;
  unsigned count = callers_frames(id, &frames), own = 0;
  for (unsigned i = 0; i < count && i < INNER; i++)
    if (names_find(names, frames[i]).ours) own = i + 1;
  return own < count ? own : 0;
}

size_t callers_text(char *out, size_t room, uint32_t id, unsigned most, code_names *names)
{
  const uint64_t *frames = NULL;
  unsigned count = callers_frames(id, &frames), first = count ? callers_own(id, names) : 0;
  size_t used = 0;
  if (room) *out = 0;
  for (unsigned i = first; i < count && i < first + most && used + 1 < room; i++) {
    code_name n = names_find(names, frames[i]);
    const char *file = strrchr(n.object, '/');
    int wrote = snprintf(out + used, room - used, "%s%s (%s+0x%llx)", i == first ? "" : " < ",
                         n.function, file ? file + 1 : n.object, (unsigned long long)n.offset);
    used += wrote < 0 ? 0 : (size_t)wrote < room - used ? (size_t)wrote : room - used - 1;
  }
  return used;
}
