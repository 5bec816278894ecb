/* stack_memory.c: see stack_memory.h. The pipe is two neighbouring ints in libunwind's data, -1
 * before the set-up and descriptors of one pipe after it; no symbol leads there. Where no such pair
 * appears, this libunwind works in another way, or was set up before, and nothing is changed. */
#include "core/trace/stack_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define UNW_LOCAL_ONLY
#include <libunwind.h>

#if defined(__x86_64__)
#define ACCESSORS "_Ux86_64_get_accessors"
#else
#define ACCESSORS "_Uaarch64_get_accessors"
#endif

enum { PLACES = 64 }; /* where a pair of -1 is before the set-up, at most */

typedef struct places {
  const void *inside; /* of the library's data */
  int *at[PLACES];
  unsigned count;
} places;

enum { KNOWN_PAGES = 8, PAGE_SHIFT = 12 /* of the smallest pages there are */ };

/* What this thread has found readable in the capture at hand: a stack and the tables for it are a
 * few pages, of which many words are read. 0: nothing yet; a page has its slot by its number. */
static __thread uintptr_t known_pages[KNOWN_PAGES] __attribute__((tls_model("initial-exec")));

void stack_memory_begin(void)
{
  memset(known_pages, 0, sizeof known_pages);
}

/* The kernel reads the new mask before it looks at the first argument, which is none it knows: a
 * probe without effect. `word` is aligned, so it is in one page. */
static bool readable(uintptr_t word)
{
  uintptr_t page = word >> PAGE_SHIFT, *known = &known_pages[page % KNOWN_PAGES];
  if (page && *known == page) return true;
  if (syscall(SYS_rt_sigprocmask, ~0, word, NULL, sizeof(uint64_t)) && errno == EFAULT)
    return false;
  *known = page;
  return true;
}

/* By bytes: a word need not be aligned. */
static __attribute__((no_sanitize("address", "thread"))) void copy_word(volatile char *to,
                                                                        const volatile char *from)
{
  for (size_t i = 0; i < sizeof(unw_word_t); i++)
    to[i] = from[i];
}

/* The unwinder writes only what is its own: saved registers in a context it has made. */
static int access_word(unw_addr_space_t space, unw_word_t address, unw_word_t *value, int write,
                       void *context)
{
  const uintptr_t last = sizeof *value - 1;
  uintptr_t first = address & ~last;
  char *word = (char *)(uintptr_t)address;
  (void)space, (void)context;
  if (write) {
    copy_word(word, (char *)value);
    return 0;
  }
  if (!readable(first) || (first != address && !readable((address + last) & ~last)))
    return -UNW_EINVAL;
  copy_word((char *)value, word);
  return 0;
}

/* Notes the pairs of -1 in the library's own data: word by word, whatever variables lie there,
 * which no sanitizer need judge. */
static __attribute__((no_sanitize("address", "thread"))) int find_places(struct dl_phdr_info *info,
                                                                         size_t size, void *out)
{
  places *p = out;
  bool here = false;
  (void)size;
  for (unsigned i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *h = &info->dlpi_phdr[i];
    uintptr_t start = info->dlpi_addr + h->p_vaddr;
    if (h->p_type != PT_LOAD || !(h->p_flags & PF_W)) continue;
    if ((uintptr_t)p->inside - start >= h->p_memsz) continue;
    here = true;
    int *end = (int *)((start + h->p_memsz) & ~(sizeof(int) - 1));
    for (int *at = (int *)((start + 3) & ~(uintptr_t)3); at + 1 < end && p->count < PLACES; at++)
      if (at[0] == -1 && at[1] == -1) p->at[p->count++] = at;
  }
  return here;
}

static bool is_end(int fd, int mode, struct stat *st)
{
  int flags = fcntl(fd, F_GETFL);
  return flags >= 0 && (flags & O_ACCMODE) == mode && (flags & O_NONBLOCK) && fstat(fd, st) == 0 &&
         S_ISFIFO(st->st_mode);
}

static bool is_pipe(const int *pair)
{
  struct stat r, w;
  return pair[0] >= 0 && pair[1] >= 0 && is_end(pair[0], O_RDONLY, &r) &&
         is_end(pair[1], O_WRONLY, &w) && r.st_dev == w.st_dev && r.st_ino == w.st_ino;
}

void stack_memory_init(void *library, void **space, void *(*real_dlsym)(void *, const char *))
{
  unw_accessors_t *(*get)(unw_addr_space_t), *accessors;
  void *found = real_dlsym(library, ACCESSORS);
  places p = {.inside = space};
  if (!found) return;
  memcpy((void *)&get, (void *)&found, sizeof get);
  dl_iterate_phdr(find_places, &p);
  accessors = get(*space); /* sets it up */
  for (unsigned i = 0; i < p.count; i++) {
    int *pair = p.at[i];
    if (!is_pipe(pair)) continue;
    syscall(SYS_close, pair[0]);
    syscall(SYS_close, pair[1]);
    pair[0] = pair[1] = -1;
    accessors->access_mem = access_word;
    return;
  }
}
