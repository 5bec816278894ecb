/* names.c: see names.h. Reads files with pread() into its own memory: a file that is cut short
 * meanwhile is a short read, where a mapped one would be a signal. */
#include "core/memory/names.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SEGMENTS = 4, TABLE_LIMIT = 256 << 20 /* bytes of one table that are read */ };

typedef struct symbol {
  uint64_t start, end; /* as linked */
  uint32_t name;       /* in the object's strings */
} symbol;

typedef struct object {
  char *path;                            /* owned */
  uint64_t base;                         /* added to what is linked */
  uint64_t from[SEGMENTS], to[SEGMENTS]; /* its code, as loaded */
  unsigned segments;
  bool tried;      /* its file was looked at */
  bool main;       /* the program itself */
  bool ours;       /* holds this file */
  symbol *symbols; /* owned, by start */
  size_t count;
  char *strings; /* owned */
} object;

struct code_names {
  object *objects; /* owned */
  size_t count, room;
  char *(*demangle)(const char *, char *, size_t *,
                    int *); /* of C++'s library, where it is loaded */
  char **made;              /* owned: names that were demangled */
  size_t made_count;
};

/* ---- the loaded objects ---------------------------------------------------------------------- */

static char *path_of_name(const char *name, bool main)
{
  char self[PATH_MAX];
  if (!main) return strdup(name);
  ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
  self[n < 0 ? 0 : n] = 0;
  return strdup(self);
}

static int add_object(struct dl_phdr_info *info, size_t size, void *context)
{
  code_names *n = context;
  (void)size;
  if (n->count == n->room) {
    size_t room = n->room ? 2 * n->room : 64;
    object *more = realloc(n->objects, room * sizeof *more);
    if (!more) return 0;
    n->objects = more;
    n->room = room;
  }
  object *o = &n->objects[n->count];
  *o = (object){.base = info->dlpi_addr, .main = n->count == 0};
  for (unsigned i = 0; i < info->dlpi_phnum && o->segments < SEGMENTS; i++) {
    const ElfW(Phdr) *p = &info->dlpi_phdr[i];
    if (p->p_type != PT_LOAD || !(p->p_flags & PF_X)) continue;
    o->from[o->segments] = info->dlpi_addr + p->p_vaddr;
    o->to[o->segments] = o->from[o->segments] + p->p_memsz;
    uint64_t here = (uint64_t)(uintptr_t)&add_object;
    o->ours |= here >= o->from[o->segments] && here < o->to[o->segments];
    o->segments++;
  }
  o->path = path_of_name(info->dlpi_name, o->main);
  if (o->path) n->count++;
  return 0;
}

code_names *names_new(void)
{
  code_names *n = calloc(1, sizeof *n);
  if (!n) return NULL;
  dl_iterate_phdr(add_object, n);
  void *found = dlsym(RTLD_DEFAULT, "__cxa_demangle");
  memcpy((void *)&n->demangle, (void *)&found, sizeof n->demangle);
  return n;
}

void names_free(code_names *n)
{
  if (!n) return;
  for (size_t i = 0; i < n->count; i++) {
    free(n->objects[i].path);
    free(n->objects[i].symbols);
    free(n->objects[i].strings);
  }
  for (size_t i = 0; i < n->made_count; i++)
    free(n->made[i]);
  free(n->made);
  free(n->objects);
  free(n);
}

/* ---- an object's file ------------------------------------------------------------------------ */

/* `bytes` of the file from `at`, and a null byte; NULL: not there, or no memory. */
static void *read_part(int fd, uint64_t at, uint64_t bytes)
{
  if (bytes > TABLE_LIMIT || at > INT64_MAX - TABLE_LIMIT) return NULL;
  char *part = calloc(1, bytes + 1);
  uint64_t done = 0;
  while (part && done < bytes) {
    ssize_t n = pread(fd, part + done, bytes - done, (off_t)(at + done));
    if (n <= 0) {
      free(part);
      return NULL;
    }
    done += (uint64_t)n;
  }
  return part;
}

static int by_range_start(const void *a, const void *b)
{
  const symbol *x = a, *y = b;
  return (x->start > y->start) - (x->start < y->start);
}

static void keep_functions(object *o, const ElfW(Sym) * table, size_t count, uint64_t strings)
{
  o->symbols = malloc((count ? count : 1) * sizeof *o->symbols);
  if (!o->symbols) return;
  for (size_t i = 0; i < count; i++) {
    const ElfW(Sym) *s = &table[i];
    int type = ELF64_ST_TYPE(s->st_info);
    if ((type != STT_FUNC && type != STT_GNU_IFUNC) || s->st_shndx == SHN_UNDEF) continue;
    if (!s->st_value || s->st_name >= strings) continue;
    o->symbols[o->count++] = (symbol){s->st_value, s->st_value + s->st_size, s->st_name};
  }
  qsort(o->symbols, o->count, sizeof *o->symbols, by_range_start);
}

/* The section of symbols with the most content; 0: none. */
static unsigned choose_symbol_table(const ElfW(Shdr) * sections, unsigned count)
{
  unsigned best = 0;
  for (unsigned i = 1; i < count; i++) {
    if (sections[i].sh_link >= count || sections[i].sh_entsize != sizeof(ElfW(Sym))) continue;
    if (sections[i].sh_type == SHT_SYMTAB) return i;
    if (sections[i].sh_type == SHT_DYNSYM) best = i;
  }
  return best;
}

static void read_symbols(object *o, int fd, const ElfW(Ehdr) * head)
{
  unsigned count = head->e_shnum;
  ElfW(Shdr) *sections = read_part(fd, head->e_shoff, (uint64_t)count * sizeof *sections);
  unsigned best = sections ? choose_symbol_table(sections, count) : 0;
  if (best) {
    const ElfW(Shdr) *text = &sections[sections[best].sh_link];
    ElfW(Sym) *table = read_part(fd, sections[best].sh_offset, sections[best].sh_size);
    o->strings = read_part(fd, text->sh_offset, text->sh_size);
    if (table && o->strings)
      keep_functions(o, table, sections[best].sh_size / sizeof *table, text->sh_size);
    free(table);
  }
  free(sections);
}

static void read_object(object *o)
{
  ElfW(Ehdr) head;
  struct stat st;
  o->tried = true;
  int fd = open(o->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return;
  if (!fstat(fd, &st) && S_ISREG(st.st_mode) &&
      pread(fd, &head, sizeof head, 0) == (ssize_t)sizeof head &&
      !memcmp(head.e_ident, ELFMAG, SELFMAG) && head.e_ident[EI_CLASS] == ELFCLASS64 &&
      head.e_shentsize == sizeof(ElfW(Shdr)))
    read_symbols(o, fd, &head);
  close(fd);
}

/* ---- looking up ------------------------------------------------------------------------------ */

static object *object_at(code_names *n, uint64_t address)
{
  for (size_t i = 0; i < n->count; i++)
    for (unsigned k = 0; k < n->objects[i].segments; k++)
      if (address >= n->objects[i].from[k] && address < n->objects[i].to[k]) return &n->objects[i];
  return NULL;
}

static const char *function_at(const object *o, uint64_t offset)
{
  size_t low = 0, high = o->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (o->symbols[middle].start <= offset)
      low = middle + 1;
    else
      high = middle;
  }
  if (!low) return NULL;
  const symbol *s = &o->symbols[low - 1];
  return s->end == s->start || offset < s->end ? o->strings + s->name : NULL;
}

/* A C++ name as people write it, where a demangler is loaded. */
static const char *readable(code_names *n, const char *name)
{
  int status = -1;
  if (strncmp(name, "_Z", 2) != 0 || !n->demangle) return name;
  char *text = n->demangle(name, NULL, NULL, &status);
  if (!text) return name;
  char **more = realloc(n->made, (n->made_count + 1) * sizeof *more);
  if (!more) {
    free(text);
    return name;
  }
  n->made = more;
  return n->made[n->made_count++] = text;
}

/* The allocator's functions that a stack can go through. In a program that holds the allocator they
 * stand next to its own. */
static bool is_our_function(const char *function)
{
  static const char *const begin[] = {"weir_callers_", "weir_history_", "weir_tcache_",
                                      "weir_pool_",    "weir_memory_",  "weir_unwind",
                                      "weir_malloc",   "weir_free"};
  for (size_t i = 0; i < sizeof begin / sizeof *begin; i++)
    if (!strncmp(function, begin[i], strlen(begin[i]))) return true;
  return false;
}

code_name names_find(code_names *n, uint64_t address)
{
  object *o = object_at(n, address - 1);
  if (!o) return (code_name){"??", "", address, false};
  if (!o->tried) read_object(o);
  uint64_t offset = address - 1 - o->base;
  const char *function = o->count ? function_at(o, offset) : NULL;
  return (code_name){function ? readable(n, function) : "??", o->path, offset,
                     o->ours && (function ? is_our_function(function) : !o->main)};
}
