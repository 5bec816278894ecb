/* stack_path.c: see stack_path.h. A table of PLACES entries in sets of WAYS, in one mapping that is
 * touched as it is used; an entry holds the words of its path as (offset from the frame, value),
 * innermost first. One place often has several paths (a helper called from two lines of one
 * function), so the ways of a set may be of one place. */
#include "core/trace/stack_path.h"

#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#if defined(__x86_64__)
#define UNW_LOCAL_ONLY
#include <libunwind.h>
#define HAVE_CURSOR 1
#else
#define HAVE_CURSOR 0
#endif

enum {
  PLACES = 1024, /* entries of a table, a power of two */
  WAYS = 8,
  SETS = PLACES / WAYS,
  WORDS = 96,         /* of a path at most: 48 frames that all keep a frame pointer */
  FREE_LEARNING = 64, /* paths learnt before they have to have been of use */
  USE_PER_PATH = 16,  /* uses that pay for learning one more */
  SIGHTS = 8          /* of a place until it is learnt: unwindings that cost as much as learning */
};

enum path_state { EMPTY, SEEN, LEARNT, HOPELESS };

typedef struct path {
  uintptr_t frame;     /* frame address it is for */
  uintptr_t caller;    /* return address of that frame: distinguishes wrappers */
  uint32_t generation; /* of the table when it was made; another: it is empty */
  uint32_t id;         /* of the stack, where LEARNT */
  uint32_t state;      /* enum path_state */
  uint32_t words;      /* in use of the arrays; where SEEN: times that it was */
  uint64_t value[WORDS];
  uint32_t at[WORDS]; /* word index from `frame` */
} path;

struct stack_paths {
  uint64_t used, learnt; /* finds; paths built */
  uint32_t generation;   /* from 1 */
  uint8_t hit[SETS]; /* way of the set that was found last: a loop's calls find their own there */
  path place[PLACES];
};

static struct {
  bool ready;
#if HAVE_CURSOR
  int (*get_context)(unw_context_t *);
  int (*init)(unw_cursor_t *, unw_context_t *);
  int (*step)(unw_cursor_t *);
  int (*get_reg)(unw_cursor_t *, int, unw_word_t *);
  int (*save_loc)(unw_cursor_t *, int, unw_save_loc_t *);
#endif
} cursor_api;

#if HAVE_CURSOR
static bool load_symbol(void *to, void *library, const char *name,
                        void *(*real_dlsym)(void *, const char *))
{
  void *found = real_dlsym(library, name);
  memcpy(to, (void *)&found, sizeof found);
  return found != NULL;
}

void stack_path_init(void *library, void *(*real_dlsym)(void *, const char *))
{
  cursor_api.ready =
      load_symbol((void *)&cursor_api.get_context, library, "_Ux86_64_getcontext", real_dlsym) &&
      load_symbol((void *)&cursor_api.init, library, "_ULx86_64_init_local", real_dlsym) &&
      load_symbol((void *)&cursor_api.step, library, "_ULx86_64_step", real_dlsym) &&
      load_symbol((void *)&cursor_api.get_reg, library, "_ULx86_64_get_reg", real_dlsym) &&
      load_symbol((void *)&cursor_api.save_loc, library, "_ULx86_64_get_save_loc", real_dlsym);
}
#else
void stack_path_init(void *library, void *(*real_dlsym)(void *, const char *))
{
  (void)library, (void)real_dlsym;
}
#endif

static inline unsigned set_of(const uintptr_t *frame)
{
  uint64_t h = ((uintptr_t)frame ^ frame[1] << 3) * UINT64_C(0x9e3779b97f4a7c15);
  return (unsigned)(h >> 32 & (SETS - 1));
}

static inline enum path_state state_of(const stack_paths *p, const path *e)
{
  return e->generation == p->generation ? (enum path_state)e->state : EMPTY;
}

static inline bool is_for(const path *e, const uintptr_t *frame)
{
  return e->frame == (uintptr_t)frame && e->caller == frame[1];
}

/* Words of other functions' frames are read on purpose: no sanitizer's business. */
static inline __attribute__((always_inline, no_sanitize("address", "thread"))) bool
same_words(const path *e, const uintptr_t *frame)
{
  for (uint32_t i = 0; i < e->words; i++)
    if (frame[e->at[i]] != e->value[i]) return false;
  return true;
}

static inline __attribute__((always_inline, no_sanitize("address", "thread"))) bool
fits_path(const stack_paths *p, const path *e, const uintptr_t *frame)
{
  return is_for(e, frame) && state_of(p, e) == LEARNT && same_words(e, frame);
}

static __attribute__((noinline, no_sanitize("address", "thread"))) uint32_t
find_in_set(stack_paths *paths, const uintptr_t *frame, unsigned set)
{
  for (unsigned way = 0; way < WAYS; way++) {
    const path *e = &paths->place[set * WAYS + way];
    if (!fits_path(paths, e, frame)) continue;
    paths->hit[set] = (uint8_t)way;
    paths->used++;
    return e->id;
  }
  return 0;
}

__attribute__((no_sanitize("address", "thread"))) uint32_t stack_path_find(stack_paths *paths,
                                                                           const uintptr_t *frame)
{
  if (!paths) return 0;
  const unsigned set = set_of(frame);
  const path *last = &paths->place[set * WAYS + paths->hit[set]];
  if (__builtin_expect(!fits_path(paths, last, frame), 0)) return find_in_set(paths, frame, set);
  paths->used++;
  return last->id;
}

#if HAVE_CURSOR
static bool add_word(path *e, const uintptr_t *frame, uintptr_t address, uint64_t value)
{
  uintptr_t offset = address - (uintptr_t)frame;
  if (address < (uintptr_t)frame || offset % sizeof *frame || offset >> 30 || e->words == WORDS)
    return false;
  uint32_t at = (uint32_t)(offset / sizeof *frame);
  for (uint32_t i = e->words; i-- > 0 && i + 2 >= e->words;)
    if (e->at[i] == at) return true; /* a saved frame pointer that several frames share */
  e->at[e->words] = at;
  e->value[e->words++] = value;
  return true;
}

/* Where the current frame's frame pointer was saved by an inner one, if it is in memory. */
static bool add_saved_pointer(path *e, const uintptr_t *frame, unw_cursor_t *c)
{
  unw_save_loc_t loc;
  unw_word_t rbp;
  if (cursor_api.save_loc(c, UNW_X86_64_RBP, &loc) != 0) return false;
  if (loc.type != UNW_SLT_MEMORY || loc.u.addr < (uintptr_t)frame) return true;
  return cursor_api.get_reg(c, UNW_X86_64_RBP, &rbp) == 0 && add_word(e, frame, loc.u.addr, rbp);
}

/* Follows the stack outward and notes each word it rests on, up to the last of the addresses.
 * False: it cannot be known again by its words, or is not the stack that was unwound. */
static __attribute__((noinline, no_sanitize("address", "thread"))) bool
build_step(path *e, const uintptr_t *frame, const uint64_t *addresses, uint32_t count)
{
  unw_context_t context;
  unw_cursor_t c;
  unw_word_t ip, sp;
  uint32_t matched = 0;
  bool begun = false;
  e->words = 0;
  if (cursor_api.get_context(&context) != 0 || cursor_api.init(&c, &context) != 0) return false;
  while (matched < count) {
    if (cursor_api.step(&c) <= 0) return false;
    if (cursor_api.get_reg(&c, UNW_REG_IP, &ip) != 0 ||
        cursor_api.get_reg(&c, UNW_REG_SP, &sp) != 0)
      return false;
    if (sp <= (uintptr_t)(frame + 1)) continue; /* still inside ourselves */
    uintptr_t slot = sp - sizeof(uintptr_t);
    if (*(const uintptr_t *)slot != ip) return false; /* a signal frame, or no plain call */
    if (!begun) { /* the addresses may begin further in than `frame`, or further out */
      while (matched < count && addresses[matched] != ip)
        matched++;
      if (matched == count) matched = 0;
      begun = addresses[matched] == ip;
    }
    if (begun && ip != addresses[matched++]) return false;
    if (!add_word(e, frame, slot, ip) || !add_saved_pointer(e, frame, &c)) return false;
  }
  return true;
}

static bool worth_it(const stack_paths *p)
{
  return p->learnt < FREE_LEARNING + p->used / USE_PER_PATH;
}

static stack_paths *paths_of(stack_paths **paths)
{
  if (*paths) return *paths;
  void *p = mmap(NULL, sizeof **paths, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return NULL;
  *paths = p;
  (*paths)->generation = 1;
  return p;
}

/* The entry of a place that was seen before, else one to note it in, the least useful of its set.
 * NULL: the place is hopeless, or all are in use and learning has not paid. */
static path *entry_for(stack_paths *p, const uintptr_t *frame)
{
  path *set = &p->place[set_of(frame) * WAYS], *free_one = NULL;
  for (int way = 0; way < WAYS; way++) {
    path *e = &set[way];
    enum path_state state = state_of(p, e);
    if (is_for(e, frame) && state == HOPELESS) return NULL;
    if (is_for(e, frame) && state == SEEN) return e;
    if (state == EMPTY || (state == SEEN && !free_one)) free_one = e;
  }
  if (!free_one && worth_it(p)) free_one = &set[p->learnt % WAYS];
  if (free_one) free_one->state = EMPTY;
  return free_one;
}

void stack_path_learn(stack_paths **paths, const uintptr_t *frame, uint32_t id,
                      const uint64_t *addresses, uint32_t count)
{
  stack_paths *p = cursor_api.ready && id ? paths_of(paths) : NULL;
  path *e = p ? entry_for(p, frame) : NULL;
  if (!e) return;
  if (state_of(p, e) != SEEN) {
    e->frame = (uintptr_t)frame;
    e->caller = frame[1];
    e->generation = p->generation;
    e->state = SEEN;
    e->words = 1;
    return;
  }
  if (++e->words < SIGHTS || !worth_it(p)) return;
  p->learnt++;
  e->id = id;
  e->state = build_step(e, frame, addresses, count) ? LEARNT : HOPELESS;
}
#else
void stack_path_learn(stack_paths **paths, const uintptr_t *frame, uint32_t id,
                      const uint64_t *addresses, uint32_t count)
{
  (void)paths, (void)frame, (void)id, (void)addresses, (void)count;
}
#endif

uint64_t stack_path_uses(const stack_paths *paths)
{
  return paths ? paths->used : 0;
}

void stack_path_forget(stack_paths *paths)
{
  if (!paths) return;
  if (++paths->generation == 0) {
    memset(paths->place, 0, sizeof paths->place);
    paths->generation = 1;
  }
}

void stack_path_release(stack_paths **paths)
{
  if (*paths) munmap(*paths, sizeof **paths);
  *paths = NULL;
}
