/* cache_rules.c: see cache_rules.h. What is known of a call site is kept by its address in a table
 * that is only ever filled: after a dlclose() the same addresses go by other keys.
 *
 * A function's name is looked for in the symbol tables of its file, as it lies on the disk: the
 * dynamic one has only what is exported. */
#include "interpose/reroute/cache_rules.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "interpose/elf/elf.h"
#include "interpose/record/hash_table.h"

enum { BOUNDS = 2 * WEIR_RULES_MAX + 1 };

bool reroute_rules_have[WEIR_RULE_KINDS];

static rule_list rules;
static uint64_t kinds[WEIR_RULE_KINDS]; /* rules of each */
static uint64_t sited;                  /* rules that name a module or a function */
static uint64_t bounds[BOUNDS];         /* ascending, the first 0 */
static uint64_t fitting[BOUNDS];        /* rules that fit sizes from this bound to the next */
static unsigned bound_count;

static hash_table sites; /* call site, with the generation: rules with a place that fit it */
static _Atomic uint64_t generation;

/* ---- sizes ----------------------------------------------------------------------------------- */

static int ascending(const void *a, const void *b)
{
  const uint64_t *x = a, *y = b;
  return (*x > *y) - (*x < *y);
}

static void compile_sizes(void)
{
  unsigned n = 0;
  bounds[n++] = 0;
  for (unsigned i = 0; i < rules.count; i++) {
    bounds[n++] = rules.rule[i].least;
    if (rules.rule[i].most != UINT64_MAX) bounds[n++] = rules.rule[i].most + 1;
  }
  qsort(bounds, n, sizeof *bounds, ascending);
  bound_count = 0;
  for (unsigned i = 0; i < n; i++)
    if (!i || bounds[i] != bounds[bound_count - 1]) bounds[bound_count++] = bounds[i];
  for (unsigned i = 0; i < bound_count; i++) {
    fitting[i] = 0;
    for (unsigned j = 0; j < rules.count; j++)
      if (rules.rule[j].least <= bounds[i] && bounds[i] <= rules.rule[j].most)
        fitting[i] |= UINT64_C(1) << j;
  }
}

void reroute_rules_start(const rule_list *from)
{
  rules = *from;
  for (unsigned i = 0; i < rules.count; i++) {
    const rule_entry *r = &rules.rule[i];
    bool alloc = r->action == WEIR_RULE_PASSTHROUGH || r->action == WEIR_RULE_CACHE;
    kinds[alloc ? WEIR_RULES_ALLOC : WEIR_RULES_COPY] |= UINT64_C(1) << i;
    if (*r->module || *r->function) sited |= UINT64_C(1) << i;
  }
  compile_sizes();
  for (int i = 0; i < WEIR_RULE_KINDS; i++)
    reroute_rules_have[i] = kinds[i] != 0;
}

static uint64_t fits_size(uint64_t bytes)
{
  unsigned low = 0, high = bound_count;
  while (high - low > 1) {
    unsigned middle = (low + high) / 2;
    if (bounds[middle] <= bytes)
      low = middle;
    else
      high = middle;
  }
  return fitting[low];
}

/* ---- call sites ------------------------------------------------------------------------------ */

typedef struct place { /* of a call site */
  uintptr_t address, base;
  char path[PATH_MAX]; /* of its object; "": in none */
} place;

/* False: it is in no object, or in none whose file can be named. */
static bool find_object(place *p)
{
  elf_object o;
  if (!elf_object_at(&o, (const void *)p->address)) return false;
  p->base = o.base;
  size_t n = o.path ? strlen(o.path) : 0;
  if (n && n < sizeof p->path) memcpy(p->path, o.path, n + 1);
  ssize_t got = n ? 0 : readlink("/proc/self/exe", p->path, sizeof p->path - 1);
  if (got > 0) p->path[got] = 0;
  return *p->path != 0;
}

static bool is_module(const char *path, const char *name)
{
  const char *slash = strrchr(path, '/'), *own = slash ? slash + 1 : path;
  size_t n = strlen(name);
  return !strncmp(own, name, n) && (!own[n] || own[n] == '.');
}

typedef struct image { /* an ELF file, mapped */
  const char *at;
  size_t bytes;
} image;

static const void *bytes_in_image(const image *m, uint64_t offset, uint64_t bytes)
{
  return offset <= m->bytes && bytes <= m->bytes - offset ? m->at + offset : NULL;
}

/* Of the rules, those whose function is this symbol. */
static uint64_t is_name_of(const char *name, size_t room)
{
  uint64_t fits = 0;
  for (unsigned i = 0; i < rules.count; i++) {
    size_t n = strlen(rules.rule[i].function);
    if (n && n < room && !memcmp(name, rules.rule[i].function, n + 1)) fits |= UINT64_C(1) << i;
  }
  return fits;
}

static uint64_t search_symbols(const image *m, const ElfW(Shdr) * table, const ElfW(Shdr) * text,
                               uint64_t address)
{
  const ElfW(Sym) *symbols = bytes_in_image(m, table->sh_offset, table->sh_size);
  const char *names = bytes_in_image(m, text->sh_offset, text->sh_size);
  uint64_t fits = 0;
  if (!symbols || !names || table->sh_offset % _Alignof(ElfW(Sym))) return 0;
  for (size_t i = 0; i < table->sh_size / sizeof *symbols; i++) {
    const ElfW(Sym) *s = &symbols[i];
    if (ELF64_ST_TYPE(s->st_info) != STT_FUNC || !s->st_shndx || s->st_name >= text->sh_size)
      continue;
    if (address - s->st_value < s->st_size)
      fits |= is_name_of(names + s->st_name, text->sh_size - s->st_name);
  }
  return fits;
}

/* Rules whose function holds the address (of the file, not of memory). */
static uint64_t search_image(const image *m, uint64_t address)
{
  const ElfW(Ehdr) *e = bytes_in_image(m, 0, sizeof *e);
  uint64_t fits = 0;
  if (!e || memcmp(e->e_ident, ELFMAG, SELFMAG) != 0 || e->e_ident[EI_CLASS] != ELFCLASS64 ||
      e->e_shentsize != sizeof(ElfW(Shdr)) || e->e_shoff % _Alignof(ElfW(Shdr)))
    return 0;
  const ElfW(Shdr) *h = bytes_in_image(m, e->e_shoff, (uint64_t)e->e_shnum * sizeof *h);
  for (unsigned i = 0; h && i < e->e_shnum; i++)
    if ((h[i].sh_type == SHT_SYMTAB || h[i].sh_type == SHT_DYNSYM) && h[i].sh_link < e->e_shnum)
      fits |= search_symbols(m, &h[i], &h[h[i].sh_link], address);
  return fits;
}

static uint64_t in_function(const place *p)
{
  struct stat s;
  uint64_t fits = 0;
  int fd = open(p->path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  if (fstat(fd, &s) == 0 && s.st_size > 0) {
    image m = {mmap(NULL, (size_t)s.st_size, PROT_READ, MAP_PRIVATE, fd, 0), (size_t)s.st_size};
    if (m.at != MAP_FAILED) {
      fits = search_image(&m, p->address - p->base);
      (void)munmap((void *)(uintptr_t)m.at, m.bytes);
    }
  }
  (void)close(fd);
  return fits;
}

/* Rules with a place that fit a site. The call lies before where it returns to. */
static uint64_t resolve_site(const void *site)
{
  place p = {.address = (uintptr_t)site - 1};
  uint64_t fits = 0, functions = 0;
  int saved = errno;
  bool asked = false;
  if (!find_object(&p)) return 0;
  for (unsigned i = 0; i < rules.count; i++) {
    const rule_entry *r = &rules.rule[i];
    uint64_t bit = UINT64_C(1) << i;
    if (!(sited & bit) || (*r->module && !is_module(p.path, r->module))) continue;
    if (*r->function && !asked) functions = in_function(&p);
    asked |= *r->function != 0;
    if (!*r->function || functions & bit) fits |= bit;
  }
  errno = saved;
  return fits;
}

static uint64_t fits_site(const void *site)
{
  uint64_t now = atomic_load_explicit(&generation, memory_order_relaxed);
  uint64_t key = (uint64_t)(uintptr_t)site ^ now << 48;
  if (!site) return 0;
  hash_entry *e = hash_table_find(&sites, key);
  if (e && atomic_load_explicit(&e->y, memory_order_acquire))
    return atomic_load_explicit(&e->x, memory_order_relaxed);
  uint64_t fits = resolve_site(site);
  (void)hash_table_put(&sites, key, fits, 1);
  return fits;
}

void reroute_rules_forget(void)
{
  atomic_fetch_add(&generation, 1);
}

rule_action reroute_rules_match(reroute_rule_kind kind, const void *site, uint64_t bytes)
{
  uint64_t fits = fits_size(bytes) & kinds[kind];
  /* Of the first that needs no site on, none needs to be asked for. */
  uint64_t plain = fits & ~sited, before = plain ? (plain & -plain) - 1 : UINT64_MAX;
  uint64_t placed = fits & sited & before;
  if (placed) placed &= fits_site(site);
  fits = placed ? placed : plain;
  return fits ? rules.rule[__builtin_ctzll(fits)].action : WEIR_RULE_NONE;
}
