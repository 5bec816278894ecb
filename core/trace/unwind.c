/* unwind.c: see unwind.h.
 *
 * libunwind is opened RTLD_LOCAL, so that none of its symbols (it has its own _Unwind_* and
 * backtrace) can answer anybody else's look-up; only unw_backtrace is used, never its cursor, which
 * is 40 times slower.
 *
 * The unwinder remembers how to unwind an address, and that memory must not outlive the code: with
 * another library at the place the stack comes out wrong, or unw_backtrace reads outside of it and
 * the program dies. unw_flush_cache() flushes only what backs the memory that matters, a cache
 * of frames each thread has (src/x86_64/Gtrace.c, 0.99 to 1.8: no flush reaches it). Each thread
 * empties its own, at its first capture after an unloading. Where it is was found at the start by
 * what must be in it; a libunwind in which it was not found is given up for backtrace() at the
 * first unloading: slow, and right. */
#include "core/trace/unwind.h"

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/trace/stack.h"
#include "core/trace/stack_memory.h"
#include "core/trace/stack_path.h"

unwind_state unwind_backend = {.cache_at = -1};

/* ---- the seam -------------------------------------------------------------------------------- */

static void *open_beside(const char *beside, const char *name,
                         void *(*real_dlopen)(const char *, int))
{
  char path[PATH_MAX], *at = path;
  if (strlen(beside) + strlen(name) + 2 > sizeof path) return NULL;
  while (*beside)
    *at++ = *beside++;
  *at++ = '/';
  while ((*at++ = *name++))
    continue;
  return real_dlopen(path, RTLD_LAZY | RTLD_LOCAL);
}

#if defined(__x86_64__)
#define UNWIND_PRIVATE(name) "_Ux86_64_" name
#define UNWIND_SPACE         "_ULx86_64_local_addr_space"
#elif defined(__aarch64__)
#define UNWIND_PRIVATE(name) "_Uaarch64_" name
#define UNWIND_SPACE         "_ULaarch64_local_addr_space"
#else
#error "name libunwind's functions for this machine"
#endif

static bool use_libunwind(const char *beside, void *(*real_dlopen)(const char *, int),
                          void *(*real_dlsym)(void *, const char *))
{
  static const char name[] = "libunwind.so.8";
  void *library = beside ? open_beside(beside, name, real_dlopen) : NULL;
  if (!library) library = real_dlopen(name, RTLD_LAZY | RTLD_LOCAL);
  if (!library) return false;
  void *capture = real_dlsym(library, "unw_backtrace");
  void *flush = real_dlsym(library, UNWIND_PRIVATE("flush_cache"));
  void *space = real_dlsym(library, UNWIND_SPACE);
  if (!capture || !flush || !space) return false;
  stack_memory_init(library, space, real_dlsym);
  atomic_store(&unwind_backend.capture, (capture_function *)(uintptr_t)capture);
  unwind_backend.flush = (flush_function *)(uintptr_t)flush;
  unwind_backend.space = space;
  unwind_backend.library = space;
  stack_path_init(library, real_dlsym);
  return true;
}

/* ---- the loader's counters ------------------------------------------------------------------- */

void object_loads_read(object_loads *out, const struct dl_phdr_info *info, size_t size)
{
  if (size >= offsetof(struct dl_phdr_info, dlpi_subs) + sizeof info->dlpi_subs)
    *out = (object_loads){info->dlpi_adds, info->dlpi_subs};
}

static int read_first(struct dl_phdr_info *info, size_t size, void *out)
{
  object_loads_read(out, info, size);
  return 1; /* they are the same in every object */
}

object_loads object_loads_now(void)
{
  object_loads c = {0, 0};
  dl_iterate_phdr(read_first, &c);
  return c;
}

/* ---- libunwind's frame cache ----------------------------------------------------------------- */

/* How it lies in memory: a pointer in the library's TLS block leads to `frame_cache`, whose frames
 * are a hash table of FRAME_BYTES entries that begin with the address they are for, 0 in empty
 * ones. */
typedef struct frame_cache {
  char *frames;
  size_t log_size; /* of the table, in entries */
  size_t used;     /* entries that are not empty */
} frame_cache;

enum { FRAME_BYTES = 16, LEAST_LOG = 8, MOST_LOG = 28 };

/* This thread's TLS block of libunwind. */
typedef struct tls_block {
  char *data; /* NULL: the thread has none yet */
  size_t bytes;
} tls_block;

static int find_tls(struct dl_phdr_info *info, size_t size, void *out)
{
  tls_block *block = out, found = {NULL, 0};
  bool here = false;
  (void)size;
  for (unsigned i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *p = &info->dlpi_phdr[i];
    here |= p->p_type == PT_LOAD &&
            (uintptr_t)unwind_backend.library - info->dlpi_addr - p->p_vaddr < p->p_memsz;
    if (p->p_type == PT_TLS) found = (tls_block){info->dlpi_tls_data, p->p_memsz};
  }
  if (here) *block = found;
  return here;
}

/* Whether this is the cache: as many entries as it counts are in use, one of them for `address`.
 * Reads by pread from /proc/self/mem, since the pointers may be anything. */
static bool is_frame_cache(int mem, uintptr_t at, uintptr_t address)
{
  frame_cache cache;
  uint64_t part[512];
  size_t used = 0;
  bool found = false;
  if (pread(mem, &cache, sizeof cache, (off_t)at) != (ssize_t)sizeof cache) return false;
  if (cache.log_size < LEAST_LOG || cache.log_size > MOST_LOG || !cache.used) return false;
  const size_t bytes = (size_t)FRAME_BYTES << cache.log_size;
  for (size_t done = 0; done < bytes; done += sizeof part) {
    if (pread(mem, part, sizeof part, (off_t)((uintptr_t)cache.frames + done)) !=
        (ssize_t)sizeof part)
      return false;
    for (size_t i = 0; i < sizeof part / sizeof *part; i += FRAME_BYTES / sizeof *part) {
      used += part[i] != 0;
      found |= part[i] == address - 1; /* libunwind looks calls up, not returns */
    }
  }
  return found && used == cache.used;
}

/* Finds the pointer to the cache in the TLS block, right after a capture through `address`. */
static void find_frame_cache(uintptr_t address)
{
  tls_block block = {NULL, 0};
  dl_iterate_phdr(find_tls, &block);
  int mem = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
  for (size_t at = 0; mem >= 0 && block.data && at + sizeof(void *) <= block.bytes;
       at += sizeof(void *)) {
    uintptr_t pointer;
    memcpy(&pointer, block.data + at, sizeof pointer);
    if (!pointer || !is_frame_cache(mem, pointer, address)) continue;
    unwind_backend.cache_at = (ptrdiff_t)at;
    break;
  }
  if (mem >= 0) close(mem);
}

/* This thread's, NULL: it has none, or nobody knows where. */
static frame_cache *own_cache(void)
{
  tls_block block = {NULL, 0};
  frame_cache *cache;
  if (unwind_backend.cache_at < 0) return NULL;
  dl_iterate_phdr(find_tls, &block);
  if (!block.data) return NULL;
  memcpy((void *)&cache, block.data + unwind_backend.cache_at, sizeof(frame_cache *));
  return cache;
}

void unwind_forget(void)
{
  frame_cache *cache = own_cache();
  if (!cache) return;
  memset(cache->frames, 0, (size_t)FRAME_BYTES << cache->log_size);
  cache->used = 0;
}

void unwind_thin(void)
{
  frame_cache *cache = own_cache();
  if (!cache) return;
  size_t bytes = (size_t)FRAME_BYTES << cache->log_size, page = (size_t)sysconf(_SC_PAGESIZE);
  if ((uintptr_t)cache->frames % page || bytes % page) return; /* not mapped on its own */
  cache->used = 0;
  if (madvise(cache->frames, bytes, MADV_DONTNEED)) memset(cache->frames, 0, bytes);
}

/* ---- choosing the unwinder ------------------------------------------------------------------- */

/* The first captures allocate and load: here, not in a CUDA call. backtrace() loads libgcc_s, which
 * a process with a libunwind that can be flushed does without. */
static void begin_captures(bool libunwind)
{
  void *frames[4] = {NULL};
  if (libunwind) {
    stack_memory_begin();
    atomic_load (&unwind_backend.capture)(frames, 4);
    find_frame_cache((uintptr_t)frames[0]);
    unwind_thin();
  } else {
    atomic_store(&unwind_backend.capture, backtrace);
  }
  if (unwind_backend.cache_at < 0) backtrace(frames, 4);
  atomic_store(&unwind_backend.unloads, object_loads_now().subs);
}

const char *stack_init(const char *beside, void *(*real_dlopen)(const char *, int),
                       void *(*real_dlsym)(void *, const char *), unsigned depth)
{
  int saved = errno;
  atomic_store(&unwind_backend.capture, NULL);
  unwind_backend.flush = NULL;
  unwind_backend.cache_at = -1;
  unwind_backend.depth = depth < WEIR_STACK_MAX_DEPTH ? depth : WEIR_STACK_MAX_DEPTH;
  if (depth) begin_captures(use_libunwind(beside, real_dlopen, real_dlsym));
  errno = saved;
  return stack_unwinder();
}

const char *stack_unwinder(void)
{
  capture_function *capture = atomic_load(&unwind_backend.capture);
  return !capture ? "off" : capture == backtrace ? "backtrace" : "libunwind";
}

void stack_skip_range(uintptr_t start, uintptr_t end)
{
  if (unwind_backend.skips >= WEIR_UNWIND_SKIPS) return;
  unwind_backend.skip[unwind_backend.skips][0] = start;
  unwind_backend.skip[unwind_backend.skips][1] = end;
  unwind_backend.skips++;
}

static bool in_own_library(uintptr_t address)
{
  for (unsigned i = 0; i < unwind_backend.skips; i++)
    if (address - unwind_backend.skip[i][0] < unwind_backend.skip[i][1] - unwind_backend.skip[i][0])
      return true;
  return false;
}

/* What is common is flushed before the epoch can be seen; two threads may both do so. */
void unwind_flush(void)
{
  uint64_t seen = atomic_load(&unwind_backend.unloads), subs = object_loads_now().subs;
  if (subs == seen) return;
  if (unwind_backend.flush && unwind_backend.cache_at < 0)
    atomic_store(&unwind_backend.capture, backtrace);
  else if (unwind_backend.flush)
    unwind_backend.flush(*unwind_backend.space, 0, 0);
  while (seen < subs && !atomic_compare_exchange_weak(&unwind_backend.unloads, &seen, subs))
    continue;
}

void stack_unloading(void)
{
  atomic_fetch_add(&unwind_backend.closing, 1);
}

void stack_unloaded(void)
{
  int saved = errno;
  if (atomic_load(&unwind_backend.capture)) unwind_flush();
  uint32_t closing = atomic_load(&unwind_backend.closing);
  while (closing && !atomic_compare_exchange_weak(&unwind_backend.closing, &closing, closing - 1))
    continue;
  errno = saved;
}

/* ---- capturing ------------------------------------------------------------------------------- */

/* How many frames are ours is learnt, so that a deep stack is not unwound for frames not wanted. */
int weir_unwind(void **frames, int *first)
{
  const int depth = (int)unwind_backend.depth;
  stack_memory_begin();
  for (;;) {
    int spare = (int)atomic_load_explicit(&unwind_backend.spare, memory_order_relaxed), ahead = 0;
    int got =
        atomic_load_explicit(&unwind_backend.capture, memory_order_relaxed)(frames, depth + spare);
    while (ahead < got && in_own_library((uintptr_t)frames[ahead]))
      ahead++;
    *first = ahead;
    if (ahead <= spare || spare == WEIR_UNWIND_SPARE)
      return got - ahead > depth ? ahead + depth : got;
    atomic_store_explicit(&unwind_backend.spare,
                          ahead < WEIR_UNWIND_SPARE ? (unsigned)ahead : WEIR_UNWIND_SPARE,
                          memory_order_relaxed);
  }
}

unsigned weir_unwind_told(uint64_t *frames, unsigned room)
{
  static __thread uint64_t epoch __attribute__((tls_model("initial-exec")));
  void *raw[WEIR_STACK_MAX_DEPTH + WEIR_UNWIND_SPARE];
  unsigned count = 0;
  int saved = errno, first;
  if (!atomic_load_explicit(&unwind_backend.capture, memory_order_relaxed)) return 0;
  if (atomic_load_explicit(&unwind_backend.closing, memory_order_relaxed)) unwind_flush();
  uint64_t now = atomic_load_explicit(&unwind_backend.unloads, memory_order_acquire);
  if (epoch != now) unwind_forget();
  epoch = now;
  int got = weir_unwind(raw, &first);
  for (int i = first; i < got && count < room; i++)
    if (raw[i]) frames[count++] = (uint64_t)(uintptr_t)raw[i];
  errno = saved;
  return count;
}

unsigned weir_unwind_here(uint64_t *frames, unsigned room)
{
  int saved = errno;
  if (!atomic_load_explicit(&unwind_backend.capture, memory_order_relaxed)) return 0;
  unwind_flush();
  errno = saved;
  return weir_unwind_told(frames, room);
}
