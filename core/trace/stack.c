/* stack.c: capturing, interning and the module map. Runs inside the traced program: mapped memory
 * of its own, no malloc, no lock waited for.
 *
 * A thread's table is a hash table of indices into an arena; a stack in the arena is two words
 * (hash; id and depth) and its addresses. Found means that the addresses are the same, not only the
 * hash. When the arena has reached its limit the table starts over and stacks are written again
 * under new ids; memory is bounded and nothing is wrong. */
#include "core/trace/stack.h"

#include <elf.h>
#include <errno.h>
#include <link.h>
#include <stddef.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "core/base/build_id.h"
#include "core/base/fork.h"
#include "core/base/trylock.h"
#include "core/trace/stack_path.h"
#include "core/trace/stack_signs.h"
#include "core/trace/unwind.h"

enum {
  FIRST_SLOTS = 512,     /* of a table */
  FIRST_WORDS = 1 << 13, /* of an arena */
  MOST_WORDS = 1 << 24,  /* 128 MiB a thread */
  FIRST_MODULES = 256,
  BUILD_ID_ROOM = 64,
  MANY_THREADS = 64, /* beyond them the unwinder's caches are kept small */
  PATH_ROOM = 1024   /* bytes of a module's path that are recorded */
};

#define LAST_ID ((UINT32_C(1) << 24) - 1)

/* In what is remembered for a path, in place of an id: the rest is a number of this path, and the
 * id is that of the path and a sign. */
#define NEEDS_SIGN (UINT32_C(1) << 31)

struct stack_table {
  uint64_t epoch;       /* unwind_backend.unloads when it was filled */
  uint32_t spool_epoch; /* of the spool its STACK records are in */
  uint32_t anew;        /* spool_steering.stacks_anew when it was filled */
  uint32_t last_id;
  uint32_t count;     /* stacks in it */
  uint32_t capacity;  /* of slots, a power of two */
  uint32_t *slots;    /* owned (mapped): word index + 1 into the arena, 0: empty */
  uint64_t *arena;    /* owned (mapped) */
  size_t words, room; /* used, mapped */
  stack_paths *paths; /* owned: stacks known again without unwinding */
  uint32_t unwound;   /* stacks that were not */
  stack_signs *signs; /* owned: of paths that need a sign */
  uint32_t last_path; /* number of such a path */
};

static const stack_rewriter *rewriter; /* NULL: stacks stay as they are */
static _Atomic uint32_t live_tables;   /* threads with a table, about: a child inherits the count */

/* ---- the module map -------------------------------------------------------------------------- */

typedef struct module {
  uint64_t base, start, end; /* as in module_info */
  uint64_t identity;         /* hash of path and build-id */
  module_stamp stamp;        /* zeros: its file could not be looked at */
  const void *headers;       /* its program headers, where it was entered from */
  uint32_t build_id_bytes;
  uint8_t build_id[BUILD_ID_ROOM];
  bool seen;     /* by the walk that is going on */
  bool recorded; /* in this spool: a forked child has its parent's table */
} module;

static FORK_STATE struct {
  trylock guard;        /* of the table */
  uint32_t spool_epoch; /* of the spool they are recorded in */
  module *table;        /* mapped, grows by doubling */
  size_t count, capacity;
  _Atomic uint64_t adds, subs; /* the loader's counters when the table was last right */
  _Atomic uint32_t right_for;  /* spool epoch the counters are of */
} modules;

/* Doubles mapped memory; NULL: there is none, the old stays. */
static void *enlarge(void *old, size_t bytes, size_t new_bytes)
{
  void *p = old ? mremap(old, bytes, new_bytes, MREMAP_MAYMOVE)
                : mmap(NULL, new_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return p == MAP_FAILED ? NULL : p;
}

static module *add_module(void)
{
  if (modules.count == modules.capacity) {
    size_t capacity = modules.capacity ? modules.capacity * 2 : FIRST_MODULES;
    void *table =
        enlarge(modules.table, modules.capacity * sizeof(module), capacity * sizeof(module));
    if (!table) return NULL;
    modules.table = table;
    modules.capacity = capacity;
  }
  return &modules.table[modules.count];
}

/* What a walk over the loaded objects needs. */
typedef struct walk {
  spool_writer *writer;
  unsigned index;  /* of the object, 0: the program */
  bool writing;    /* second pass: write what is not in the table; first: mark what is */
  bool complete;   /* nothing was dropped */
  object_loads at; /* the loader's counters */
} walk;

/* One loaded object, as it will be recorded. */
typedef struct object {
  module_info info;
  const uint8_t *build_id; /* borrowed, in the object's memory */
  const char *path;        /* borrowed */
  const void *headers;     /* borrowed */
  uint64_t identity;
} object;

static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t count)
{
  for (const uint8_t *p = bytes; count--; p++)
    hash = (hash ^ *p) * UINT64_C(0x100000001b3);
  return hash;
}

/* Whether the object's [address, address + bytes) is inside a readable loaded segment. */
static bool is_loaded(const struct dl_phdr_info *info, uint64_t address, uint64_t bytes)
{
  for (unsigned i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *p = &info->dlpi_phdr[i];
    if (p->p_type == PT_LOAD && p->p_flags & PF_R && address >= p->p_vaddr &&
        address - p->p_vaddr <= p->p_filesz && bytes <= p->p_filesz - (address - p->p_vaddr))
      return true;
  }
  return false;
}

static void set_path(object *o, const struct dl_phdr_info *info, unsigned index)
{
  const spool_header *spool = spool_current();
  o->path = info->dlpi_name;
  if (!o->path || !*o->path) o->path = index == 0 && spool ? spool->exe : "";
  o->info.path_bytes = (uint32_t)strnlen(o->path, PATH_ROOM);
}

/* Describes a loaded object; false: it has no code, or is the vdso. */
static bool describe_object(object *o, const struct dl_phdr_info *info, unsigned index)
{
  *o = (object){.info = {.base = info->dlpi_addr, .start = UINT64_MAX}, .headers = info->dlpi_phdr};
  for (unsigned i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *p = &info->dlpi_phdr[i];
    uint64_t start = info->dlpi_addr + p->p_vaddr, end = start + p->p_memsz;
    if (p->p_type == PT_LOAD && p->p_flags & PF_X) {
      if (start < o->info.start) o->info.start = start;
      if (end > o->info.end) o->info.end = end;
    } else if (p->p_type == PT_NOTE && !o->build_id && is_loaded(info, p->p_vaddr, p->p_memsz)) {
      o->build_id = build_id_in_note((const uint8_t *)(uintptr_t)start, p->p_memsz, BUILD_ID_ROOM,
                                     &o->info.build_id_bytes);
    }
  }
  uint64_t vdso = getauxval(AT_SYSINFO_EHDR);
  if (!o->info.end || (vdso && o->info.start <= vdso && vdso < o->info.end)) return false;
  set_path(o, info, index);
  o->identity = hash_bytes(UINT64_C(0xcbf29ce484222325), o->path, o->info.path_bytes);
  o->identity = hash_bytes(o->identity, o->build_id, o->info.build_id_bytes);
  return true;
}

/* The entry of an object, where the loader has loaded and unloaded nothing since the table was
 * right: then the same headers are the same object. NULL: there is none, or that is not certain. A
 * forked child writes its parent's table so, and touches no page of the objects. */
static module *find_unchanged(const struct dl_phdr_info *info, object_loads now)
{
  if (atomic_load_explicit(&modules.adds, memory_order_relaxed) != now.adds ||
      atomic_load_explicit(&modules.subs, memory_order_relaxed) != now.subs)
    return NULL;
  for (size_t i = 0; i < modules.count; i++) {
    module *m = &modules.table[i];
    if (m->headers == info->dlpi_phdr && m->base == info->dlpi_addr) return m;
  }
  return NULL;
}

static void describe_entry(object *o, const module *m, const struct dl_phdr_info *info,
                           unsigned index)
{
  *o = (object){.info = {.base = m->base,
                         .start = m->start,
                         .end = m->end,
                         .build_id_bytes = m->build_id_bytes},
                .build_id = m->build_id,
                .headers = m->headers,
                .identity = m->identity};
  set_path(o, info, index);
}

static module *find_module(const object *o)
{
  for (size_t i = 0; i < modules.count; i++) {
    module *m = &modules.table[i];
    if (m->base == o->info.base && m->start == o->info.start && m->end == o->info.end &&
        m->identity == o->identity)
      return m;
  }
  return NULL;
}

/* Of the file that is mapped, where that is the program's own, whatever has its path by now. */
static module_stamp stamp_of(const object *o)
{
  const spool_header *spool = spool_current();
  struct stat file;
  if (o->path[0] != '/' || stat(spool && o->path == spool->exe ? "/proc/self/exe" : o->path, &file))
    return (module_stamp){0};
  return (module_stamp){(uint64_t)file.st_size,
                        (int64_t)file.st_mtim.tv_sec * 1000000000 + file.st_mtim.tv_nsec};
}

static bool write_module(spool_writer *w, const object *o, const module_stamp *stamp)
{
  uint8_t payload[sizeof o->info + BUILD_ID_ROOM + PATH_ROOM + sizeof *stamp];
  trace_event head = {.start = clock_ticks(), .a = stamp != NULL};
  size_t used = sizeof o->info;
  memcpy(payload, &o->info, used);
  if (o->info.build_id_bytes) memcpy(payload + used, o->build_id, o->info.build_id_bytes);
  used += o->info.build_id_bytes;
  if (o->info.path_bytes) memcpy(payload + used, o->path, o->info.path_bytes);
  used += o->info.path_bytes;
  if (stamp && (stamp->bytes || stamp->mtime_ns)) {
    memcpy(payload + used, stamp, sizeof *stamp);
    used += sizeof *stamp;
  }
  return spool_writer_extended(w, WEIR_EV_MODULE, &head, payload, used);
}

/* The entry of a loaded object, made where there is none; NULL: no memory. */
static module *enter_module(const object *o)
{
  module *m = find_module(o);
  if (m || !(m = add_module())) return m;
  *m = (module){.base = o->info.base,
                .start = o->info.start,
                .end = o->info.end,
                .identity = o->identity,
                .stamp = stamp_of(o),
                .headers = o->headers,
                .build_id_bytes = o->info.build_id_bytes};
  if (o->build_id) memcpy(m->build_id, o->build_id, o->info.build_id_bytes);
  modules.count++;
  return m;
}

static int visit_object(struct dl_phdr_info *info, size_t size, void *context)
{
  walk *k = context;
  object o;
  object_loads_read(&k->at, info, size);
  unsigned index = k->index++;
  module *m = find_unchanged(info, k->at);
  if (m)
    describe_entry(&o, m, info, index);
  else if (!describe_object(&o, info, index))
    return 0;
  else
    m = k->writing ? enter_module(&o) : find_module(&o);
  if (m) m->seen = true;
  if (!k->writing || (m && m->recorded)) return 0;
  if (m && write_module(k->writer, &o, &m->stamp))
    m->recorded = true;
  else
    k->complete = false;
  return 0;
}

/* Writes "gone" for what the first pass has not seen. */
static void drop_unseen(walk *k)
{
  for (size_t i = 0; i < modules.count;) {
    object gone = {.info = {.base = modules.table[i].base}};
    if (modules.table[i].seen) {
      i++;
    } else if (!modules.table[i].recorded || write_module(k->writer, &gone, NULL)) {
      modules.table[i] = modules.table[--modules.count];
    } else {
      k->complete = false;
      i++;
    }
  }
}

static bool map_is_right(object_loads now, uint32_t spool_epoch)
{
  return atomic_load_explicit(&modules.right_for, memory_order_acquire) == spool_epoch &&
         atomic_load_explicit(&modules.adds, memory_order_relaxed) == now.adds &&
         atomic_load_explicit(&modules.subs, memory_order_relaxed) == now.subs;
}

/* For a new spool nothing of the table is recorded. `amid`: it is a forked child's, and one of the
 * parent's threads was at work on it: whatever it left is not used. */
static void begin_table(bool amid)
{
  if (amid) {
    modules.table = NULL;
    modules.count = modules.capacity = 0;
  }
  for (size_t i = 0; i < modules.count; i++)
    modules.table[i].recorded = false;
}

/* Brings the recorded module map up to date; whoever comes while somebody does so goes on. "Gone"
 * comes before "loaded": both may have one base. */
static void update_modules(spool_writer *w)
{
  uint32_t spool_epoch = spool_fork_epoch();
  if (map_is_right(object_loads_now(), spool_epoch)) return;
  bool amid = atomic_load_explicit(&modules.guard, memory_order_relaxed) != 0;
  if (!trylock_take(&modules.guard, spool_epoch)) return;
  walk k = {.writer = w, .complete = true};
  if (modules.spool_epoch != spool_epoch) begin_table(amid);
  modules.spool_epoch = spool_epoch;
  for (size_t i = 0; i < modules.count; i++)
    modules.table[i].seen = false;
  dl_iterate_phdr(visit_object, &k);
  drop_unseen(&k);
  k.index = 0;
  k.writing = true;
  dl_iterate_phdr(visit_object, &k);
  if (k.complete) {
    atomic_store_explicit(&modules.right_for, 0, memory_order_relaxed);
    atomic_store_explicit(&modules.adds, k.at.adds, memory_order_relaxed);
    atomic_store_explicit(&modules.subs, k.at.subs, memory_order_relaxed);
    atomic_store_explicit(&modules.right_for, spool_epoch, memory_order_release);
  }
  trylock_leave(&modules.guard);
}

/* ---- interning ------------------------------------------------------------------------------- */

/* Four lanes, so that the multiplications overlap. */
static uint64_t hash_stack(const uint64_t *frames, uint32_t count)
{
  const uint64_t k = UINT64_C(0x9fb21c651e98df25);
  uint64_t a = count, b = k, c = ~k, d = k << 1;
  uint32_t i = 0;
  for (; i + 4 <= count; i += 4) {
    a = (a ^ frames[i]) * k;
    b = (b ^ frames[i + 1]) * k;
    c = (c ^ frames[i + 2]) * k;
    d = (d ^ frames[i + 3]) * k;
  }
  for (; i < count; i++)
    a = (a ^ frames[i]) * k;
  a ^= (b << 17 | b >> 47) ^ (c << 31 | c >> 33) ^ (d << 47 | d >> 17);
  a = (a ^ a >> 32) * k;
  return a ^ a >> 29;
}

/* The slot of a stack: of its index, or the empty one where it goes. */
static uint32_t *probe_stacks(const stack_table *t, uint64_t hash, const uint64_t *frames,
                              uint32_t count)
{
  for (uint64_t at = hash;; at++) {
    uint32_t *slot = &t->slots[at & (t->capacity - 1)];
    if (!*slot) return slot;
    const uint64_t *stack = t->arena + *slot - 1;
    if (stack[0] == hash && (uint32_t)(stack[1] >> 32) == count &&
        (!frames || !memcmp(stack + 2, frames, count * sizeof *frames)))
      return slot;
  }
}

static bool grow_slots(stack_table *t)
{
  uint32_t capacity = t->capacity ? t->capacity * 2 : FIRST_SLOTS;
  uint32_t *old = t->slots, *slots = enlarge(NULL, 0, capacity * sizeof *slots);
  if (!slots) return false;
  for (uint32_t i = 0; old && i < t->capacity; i++) {
    if (!old[i]) continue;
    uint64_t at = t->arena[old[i] - 1];
    while (slots[at & (capacity - 1)])
      at++;
    slots[at & (capacity - 1)] = old[i];
  }
  if (old) munmap(old, t->capacity * sizeof *old);
  t->slots = slots;
  t->capacity = capacity;
  return true;
}

static void empty_stacks(stack_table *t)
{
  if (t->slots) memset(t->slots, 0, t->capacity * sizeof *t->slots);
  t->count = 0;
  t->words = 0;
  stack_path_forget(t->paths);
  stack_sign_forget(t->signs);
}

/* Room for one more stack of `count` frames. */
static bool make_stack_room(stack_table *t, uint32_t count)
{
  if (t->words + count + 2 > MOST_WORDS || t->last_id == LAST_ID) {
    empty_stacks(t);
    if (t->last_id == LAST_ID) t->last_id = 0;
  }
  if ((t->count + 1) * 2 > t->capacity && !grow_slots(t)) return false;
  if (t->words + count + 2 <= t->room) return true;
  size_t room = t->room ? t->room * 2 : FIRST_WORDS;
  uint64_t *arena = enlarge(t->arena, t->room * sizeof *arena, room * sizeof *arena);
  if (!arena) return false;
  t->arena = arena;
  t->room = room;
  return true;
}

/* A stack seen for the first time: recorded, then remembered. WEIR_STACK_NONE when it was dropped,
 * so that the next sight tries again. */
static uint32_t __attribute__((noinline))
intern_new(stack_table *t, spool_writer *w, uint64_t hash, const uint64_t *frames, uint32_t count)
{
  update_modules(w);
  if (!make_stack_room(t, count)) return WEIR_STACK_NONE;
  trace_event head = {.start = clock_ticks(), .a = t->last_id + 1};
  if (!spool_writer_extended(w, WEIR_EV_STACK, &head, frames, count * sizeof *frames))
    return WEIR_STACK_NONE;
  uint64_t *stack = t->arena + t->words;
  stack[0] = hash;
  stack[1] = (uint64_t)count << 32 | ++t->last_id;
  memcpy(stack + 2, frames, count * sizeof *frames);
  *probe_stacks(t, hash, frames, count) = (uint32_t)t->words + 1;
  t->words += count + 2;
  t->count++;
  return t->last_id;
}

static stack_table *table_of(stack_table **table)
{
  if (*table) return *table;
  *table = enlarge(NULL, 0, sizeof **table);
  if (*table) atomic_fetch_add_explicit(&live_tables, 1, memory_order_relaxed);
  return *table;
}

static uint32_t stacks_anew(void)
{
  return atomic_load_explicit(&spool_steering_now()->stacks_anew, memory_order_relaxed);
}

/* Whether the table still speaks of this spool and these libraries, and the reader still knows what
 * it has read of it; what it knew is forgotten else. */
static bool prepare_table(stack_table *t)
{
  uint32_t anew = stacks_anew();
  uint64_t epoch = atomic_load_explicit(&unwind_backend.unloads, memory_order_acquire);
  uint32_t spool_epoch = spool_fork_epoch();
  if (__builtin_expect(t->epoch != epoch || t->spool_epoch != spool_epoch || t->anew != anew, 0)) {
    if (t->epoch != epoch) unwind_forget();
    empty_stacks(t);
    t->epoch = epoch;
    t->spool_epoch = spool_epoch;
    t->anew = anew;
  }
  return t->slots || grow_slots(t);
}

static uint32_t number_path(stack_table *t)
{
  if (++t->last_path == NEEDS_SIGN) {
    stack_path_forget(t->paths);
    stack_sign_forget(t->signs);
    t->last_path = 1;
  }
  return NEEDS_SIGN | t->last_path;
}

/* `path`: what the stack's words were known as, and its `sign`; 0: they were not, or there is none.
 */
static inline uint32_t capture_new(stack_table *t, spool_writer *w, const uintptr_t *frame,
                                   uint32_t path, uint64_t sign)
{
  void *frames[WEIR_STACK_MAX_DEPTH + WEIR_UNWIND_SPARE];
  uint64_t plain[WEIR_STACK_MAX_DEPTH + WEIR_UNWIND_SPARE];
  bool more = false;
  int first;
  int got = weir_unwind(frames, &first);
  while (got > first && !frames[got - 1])
    got--; /* some stacks end with a null */
  if (got <= first) return WEIR_STACK_NONE;
  uint64_t *stack = (uint64_t *)(void *)(frames + first);
  uint32_t count = (uint32_t)(got - first), plain_count = count;
  if (rewriter) {
    memcpy(plain, stack, count * sizeof *stack);
    count = rewriter->rewrite(stack, count, unwind_backend.depth, &more, w);
  }
  uint64_t hash = hash_stack(stack, count);
  uint32_t slot = *probe_stacks(t, hash, stack, count);
  /* Ever more rarely: a thread that needs the cache has it in the long run. */
  if ((t->unwound & (t->unwound + 1)) == 0 &&
      atomic_load_explicit(&live_tables, memory_order_relaxed) > MANY_THREADS)
    unwind_thin();
  t->unwound++;
  uint32_t id = slot ? (uint32_t)t->arena[slot] /* its second word */
                     : intern_new(t, w, hash, stack, count);
  if (id && sign) stack_sign_put(&t->signs, path, sign, id);
  if (id && !path)
    stack_path_learn(&t->paths, frame, more ? number_path(t) : id, rewriter ? plain : stack,
                     plain_count);
  return id;
}

void stack_rewrite_with(const stack_rewriter *with)
{
  rewriter = with;
}

static __attribute__((noinline)) uint32_t capture_signed(stack_table *t, spool_writer *w,
                                                         const uintptr_t *frame, uint32_t path)
{
  int saved = errno;
  uint64_t sign = rewriter->sign(w);
  uint32_t id = sign ? stack_sign_find(t->signs, path, sign) : 0;
  if (!id) id = capture_new(t, w, frame, path, sign);
  errno = saved;
  return id;
}

static uint32_t capture_stack(stack_table **table, spool_writer *w, const uintptr_t *frame)
{
  if (__builtin_expect(atomic_load_explicit(&unwind_backend.closing, memory_order_relaxed) != 0, 0))
    unwind_flush();
  stack_table *t = table_of(table);
  if (!t || !prepare_table(t)) return WEIR_STACK_NONE;
  uint32_t id = stack_path_find(t->paths, frame);
  if (id & NEEDS_SIGN) return capture_signed(t, w, frame, id);
  return id ? id : capture_new(t, w, frame, 0, 0);
}

/* Apart, so that a stack that is known again costs no more than the look at its words. */
static uint32_t __attribute__((noinline))
capture_slow_path(stack_table **table, spool_writer *w, const uintptr_t *frame)
{
  int saved = errno;
  uint32_t id = capture_stack(table, w, frame);
  errno = saved;
  return id;
}

/* prepare_table() has nothing to do. */
static inline bool is_prepared(const stack_table *t)
{
  return t->epoch == atomic_load_explicit(&unwind_backend.unloads, memory_order_acquire) &&
         t->spool_epoch == spool_fork_epoch() && t->anew == stacks_anew();
}

__attribute__((noinline)) uint32_t stack_capture(stack_table **table, spool_writer *w)
{
  const uintptr_t *frame = __builtin_frame_address(0);
  const stack_table *t = *table;
  if (!atomic_load_explicit(&unwind_backend.capture, memory_order_relaxed)) return WEIR_STACK_NONE;
  if (__builtin_expect(t && is_prepared(t), 1) &&
      __builtin_expect(!atomic_load_explicit(&unwind_backend.closing, memory_order_relaxed), 1)) {
    uint32_t id = stack_path_find(t->paths, frame);
    if (__builtin_expect(id && !(id & NEEDS_SIGN), 1)) return id;
    if (id) return capture_signed(*table, w, frame, id);
  }
  return capture_slow_path(table, w, frame);
}

uint64_t stack_known(const stack_table *table)
{
  return table ? stack_path_uses(table->paths) : 0;
}

void stack_forked(stack_table **table)
{
  if (*table && (*table)->capacity > FIRST_SLOTS) stack_release(table);
}

void stack_release(stack_table **table)
{
  stack_table *t = *table;
  int saved = errno;
  *table = NULL;
  if (!t) return;
  if (t->slots) munmap(t->slots, t->capacity * sizeof *t->slots);
  if (t->arena) munmap(t->arena, t->room * sizeof *t->arena);
  stack_path_release(&t->paths);
  stack_sign_release(&t->signs);
  munmap(t, sizeof *t);
  atomic_fetch_sub_explicit(&live_tables, 1, memory_order_relaxed);
  errno = saved;
}
