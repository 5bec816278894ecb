/* objects.c: see objects.h.
 *
 * The lock is no public symbol. It lies in the loader's _rtld_global, and is found there by what
 * it does: in a visit of dl_iterate_phdr() it is a recursive mutex that this thread has locked
 * once, and was no such thing before. It is never written to. Where it is not found (another
 * libc), a child walks as its parent does.
 *
 * Read as it lies, an object has what its link map and its ELF header have. Only amid a dlclose()
 * is the list itself not to be read: its objects may be unmapped. */
#include "interpose/elf/objects.h"

#include <elf.h>
#include <pthread.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "core/base/fork.h"

object_functions objects;

static FORK_STATE const int *load_lock; /* its first word: 0 when it is free; NULL: not found */
static FORK_STATE bool lock_lost;       /* this image is a forked child that has it as held */

/* ---- finding the lock ------------------------------------------------------------------------ */

/* glibc's layout of a mutex on 64-bit machines, <bits/struct_mutex.h>, as far as it counts here. */
typedef struct mutex_words {
  int lock;
  unsigned count; /* how often its owner has locked it */
  int owner;      /* kernel's number of the thread */
  unsigned users;
  int kind;
} mutex_words;

_Static_assert(offsetof(pthread_mutex_t, __data.__owner) == offsetof(mutex_words, owner) &&
                   offsetof(pthread_mutex_t, __data.__kind) == offsetof(mutex_words, kind),
               "a mutex is as glibc has it");

enum { MOST_DATA = 1 << 13 }; /* bytes of the loader's data that are searched */

typedef struct lock_search {
  const char *data;   /* the loader's */
  const char *before; /* a copy, of when this thread had not locked it */
  size_t bytes;       /* of both */
  const int *found;   /* NULL: none */
  unsigned count;     /* of what looks like it */
} lock_search;

static bool was_locked(const mutex_words *before, const mutex_words *now, int thread)
{
  return before->lock == 0 && before->owner == 0 && now->lock != 0 && now->owner == thread &&
         now->count == 1 && now->kind == PTHREAD_MUTEX_RECURSIVE_NP;
}

/* In a visit. The data are the loader's, whatever a sanitizer thinks of them. */
static __attribute__((no_sanitize("address", "thread"))) int search_lock(struct dl_phdr_info *info,
                                                                         size_t size, void *context)
{
  lock_search *s = context;
  int thread = (int)syscall(SYS_gettid);

  (void)info, (void)size;
  for (size_t at = 0; at + sizeof(mutex_words) <= s->bytes; at += sizeof(void *)) {
    mutex_words before, now;
    memcpy(&now, s->data + at, sizeof now);
    memcpy(&before, s->before + at, sizeof before);
    if (!was_locked(&before, &now, thread)) continue;
    s->found = (const int *)(const void *)(s->data + at);
    s->count++;
  }
  return 1;
}

void objects_begin(const void *data, size_t bytes)
{
  char before[MOST_DATA];
  lock_search s = {.data = data, .before = before, .bytes = bytes};

  if (!objects.iterate_phdr || !data || bytes > sizeof before) return;
  memcpy(before, data, bytes);
  objects.iterate_phdr(search_lock, &s);
  if (s.count == 1) load_lock = s.found;
}

bool objects_forked(void)
{
  lock_lost = load_lock && __atomic_load_n(load_lock, __ATOMIC_RELAXED) != 0;
  return lock_lost;
}

/* ---- the list as it lies in memory ----------------------------------------------------------- */

/* The program headers of an object, by its ELF header, which its first segment begins with. */
static bool read_headers(struct dl_phdr_info *info, const struct link_map *m)
{
  find_object_result r = {.map_start = NULL};
  const ElfW(Ehdr) *header = (const ElfW(Ehdr) *)m->l_addr;

  if (objects.find_object && objects.find_object(m->l_ld, &r) == 0) header = r.map_start;
  if (!header || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return false;
  info->dlpi_phdr = (const ElfW(Phdr) *)(const void *)((const char *)header + header->e_phoff);
  info->dlpi_phnum = header->e_phnum;
  return true;
}

/* The list begins with the program, whose headers the kernel gives. */
static int visit_list(object_visitor *visit, void *context)
{
  int answer = 0;

  if (_r_debug.r_state == RT_DELETE) return 0;
  for (const struct link_map *m = _r_debug.r_map; m && !answer; m = m->l_next) {
    struct dl_phdr_info info = {.dlpi_addr = m->l_addr, .dlpi_name = m->l_name};
    if (m == _r_debug.r_map) {
      info.dlpi_phdr = (const ElfW(Phdr) *)getauxval(AT_PHDR);
      info.dlpi_phnum = (ElfW(Half))getauxval(AT_PHNUM);
    } else if (!read_headers(&info, m)) {
      continue;
    }
    answer = visit(&info, offsetof(struct dl_phdr_info, dlpi_adds), context);
  }
  return answer;
}

int objects_visit(object_visitor *visit, void *context)
{
  if (lock_lost) return visit_list(visit, context);
  return objects.iterate_phdr ? objects.iterate_phdr(visit, context) : 0;
}
