/* elf.c: finding symbols in what the dynamic linker has mapped, without asking it.
 *
 * We stand in for dlsym and dlopen, so the originals must be found before anybody can call them and
 * without calling them: from the loader's list of objects (_r_debug, objects.h) and each
 * one's own hash table. The same look-up finds the original of a CUDA function that a program calls
 * through our export, and finds which object an address is in.
 *
 * Invariants: nothing here takes a lock of ours, allocates, or calls a function that a program
 * could have replaced: dl_iterate_phdr and _dl_find_object come by our own look-up too. Objects are
 * mapped by the loader and trusted as it trusts them.
 *
 * Words: a symbol's *fit* is which of several versions is meant, see elf.h. */
#include "interpose/elf/elf.h"
#include "interpose/elf/objects.h"

#include <elf.h>
#include <stdatomic.h>
#include <string.h>
#include "core/base/build_id.h"

#define FIRST_PAGE     4096u
#define VERSION_HIDDEN 0x8000u /* bit of a DT_VERSYM entry: not the default version */

exec_functions real_exec;
exit_functions real_exit;
pause_functions real_pause;
void *(*real_dlsym)(void *, const char *);
void *(*real_dlvsym)(void *, const char *, const char *);
void *(*real_dlopen)(const char *, int);
void *(*libc_dlopen)(const char *, int);
int (*real_dlclose)(void *);
void *(*real_dlmopen)(long, const char *, int);
uintptr_t own_library_start, own_library_end;
const char *own_library_path;

static unsigned startup_objects; /* length of the list when we first looked */

/* ---- one object ---- */

/* glibc has relocated these pointers in most objects, not in the vDSO. */
static const void *dynamic_pointer(uintptr_t base, uintptr_t value)
{
  return (const void *)(value < base ? value + base : value);
}

bool elf_object_read(elf_object *o, uintptr_t base, const ElfW(Dyn) * d)
{
  const ElfW(Dyn) *soname = NULL;

  *o = (elf_object){.base = base, .soname = ""};
  for (; d && d->d_tag != DT_NULL; d++) {
    const void *p = dynamic_pointer(base, d->d_un.d_ptr);
    switch (d->d_tag) {
    case DT_SYMTAB:
      o->symbols = p;
      break;
    case DT_STRTAB:
      o->strings = p;
      break;
    case DT_HASH:
      o->sysv_hash = p;
      break;
    case DT_GNU_HASH:
      o->gnu_hash = p;
      break;
    case DT_VERSYM:
      o->versym = p;
      break;
    case DT_VERDEF:
      o->verdef = p;
      break;
    case DT_SONAME:
      soname = d;
      break;
    default:
      break;
    }
  }
  if (!o->symbols || !o->strings) return false;
  if (soname) o->soname = o->strings + soname->d_un.d_val;
  return o->gnu_hash || o->sysv_hash;
}

/* Does the object define a version of this name, with this index if it is not 0? */
static bool defines_version(const elf_object *o, unsigned index, const char *name)
{
  const char *at = (const char *)o->verdef;

  while (at) {
    const ElfW(Verdef) *def = (const ElfW(Verdef) *)(const void *)at;
    const ElfW(Verdaux) *aux = (const ElfW(Verdaux) *)(const void *)(at + def->vd_aux);
    if (!(def->vd_flags & VER_FLG_BASE) && (!index || def->vd_ndx == index) &&
        strcmp(o->strings + aux->vda_name, name) == 0)
      return true;
    at = def->vd_next ? at + def->vd_next : NULL;
  }
  return false;
}

/* How well symbol `i` fits: 0 not at all, 1 for want of a better one, 2 exactly. */
static int version_fit(const elf_object *o, uint32_t i, const char *version, enum elf_fit fit)
{
  unsigned v = o->versym ? o->versym[i] : VER_NDX_GLOBAL;
  unsigned index = v & ~VERSION_HIDDEN;

  if (index == VER_NDX_LOCAL) return 0;
  if (fit != WEIR_FIT_REFERENCE) return v & VERSION_HIDDEN ? 1 : 2;
  if (!o->versym || v == VER_NDX_GLOBAL) return 2;
  if (!version) return v & VERSION_HIDDEN ? 0 : 2;
  return defines_version(o, index, version) ? 2 : 0;
}

static void *symbol_address(const elf_object *o, const ElfW(Sym) * s, enum elf_fit fit)
{
  unsigned type = ELF64_ST_TYPE(s->st_info), bind = ELF64_ST_BIND(s->st_info);

  if (s->st_value == 0 && s->st_shndx != SHN_ABS) return NULL;
  if (fit == WEIR_FIT_FUNCTION && type != STT_FUNC) return NULL;
  if (type != STT_FUNC && type != STT_OBJECT && type != STT_NOTYPE) return NULL;
  if (bind != STB_GLOBAL && bind != STB_WEAK && bind != STB_GNU_UNIQUE) return NULL;
  return (void *)(s->st_shndx == SHN_ABS ? s->st_value : o->base + s->st_value);
}

/* What a walk along a hash chain is looking for, and the best found so far. */
typedef struct probe {
  const elf_object *object;
  const char *name, *version;
  enum elf_fit fit;
  int rank;     /* of the best, as version_fit() returns it */
  void *found;  /* its address; NULL: none yet, or it is refused */
  size_t bytes; /* its size */
} probe;

/* Looks at symbol `i`; true when there can be no better one. A better one that is refused (an
 * IFUNC) hides a lesser one that would not be. */
static bool probe_symbol(probe *p, uint32_t i)
{
  const elf_object *o = p->object;
  const ElfW(Sym) *s = &o->symbols[i];

  if (s->st_shndx == SHN_UNDEF || strcmp(o->strings + s->st_name, p->name) != 0) return false;
  int rank = version_fit(o, i, p->version, p->fit);
  if (rank <= p->rank) return false;
  p->rank = rank;
  p->found = symbol_address(o, s, p->fit);
  p->bytes = s->st_size;
  return rank == 2;
}

static void probe_gnu(probe *p)
{
  const uint32_t *h = p->object->gnu_hash;
  uint32_t buckets = h[0], first = h[1], words = h[2], shift = h[3];
  const ElfW(Addr) *bloom = (const ElfW(Addr) *)(const void *)(h + 4);
  const uint32_t *bucket = (const uint32_t *)(const void *)(bloom + words);
  const uint32_t *chain = bucket + buckets;
  const unsigned bits = sizeof(ElfW(Addr)) * 8;
  uint32_t hash = 5381, i;
  ElfW(Addr) mask;

  for (const char *c = p->name; *c; c++)
    hash = hash * 33 + (unsigned char)*c;
  mask = (ElfW(Addr))1 << hash % bits | (ElfW(Addr))1 << (hash >> shift) % bits;
  if (buckets == 0 || (words && (bloom[hash / bits % words] & mask) != mask)) return;
  i = bucket[hash % buckets];
  if (i < first) return;
  do {
    if ((chain[i - first] | 1) == (hash | 1) && probe_symbol(p, i)) return;
  } while (!(chain[i++ - first] & 1));
}

static void probe_sysv(probe *p)
{
  const uint32_t *h = p->object->sysv_hash;
  const uint32_t *bucket = h + 2, *chain = bucket + h[0];
  uint32_t hash = 0;

  for (const char *c = p->name; *c; c++) {
    hash = (hash << 4) + (unsigned char)*c;
    hash = (hash ^ (hash >> 24 & 0xf0)) & 0x0fffffff;
  }
  if (h[0] == 0) return;
  for (uint32_t i = bucket[hash % h[0]]; i != STN_UNDEF; i = chain[i])
    if (probe_symbol(p, i)) return;
}

static void *probe_object(probe *p)
{
  if (p->object->gnu_hash)
    probe_gnu(p);
  else
    probe_sysv(p);
  return p->found;
}

void *elf_object_symbol(const elf_object *o, const char *name, const char *version,
                        enum elf_fit fit)
{
  probe p = {.object = o, .name = name, .version = version, .fit = fit};

  return probe_object(&p);
}

void *elf_object_range(const elf_object *o, const char *function, size_t *bytes)
{
  probe p = {.object = o, .name = function, .fit = WEIR_FIT_FUNCTION};
  void *found = probe_object(&p);

  *bytes = found ? p.bytes : 0;
  return found;
}

/* ---- all objects ---- */

static const ElfW(Dyn) * phdr_dynamic(const struct dl_phdr_info *i)
{
  for (unsigned n = 0; n < i->dlpi_phnum; n++)
    if (i->dlpi_phdr[n].p_type == PT_DYNAMIC)
      return (const ElfW(Dyn) *)(i->dlpi_addr + i->dlpi_phdr[n].p_vaddr);
  return NULL;
}

static bool phdr_holds(const struct dl_phdr_info *i, uintptr_t address)
{
  for (unsigned n = 0; n < i->dlpi_phnum; n++) {
    const ElfW(Phdr) *p = &i->dlpi_phdr[n];
    uintptr_t start = i->dlpi_addr + p->p_vaddr;
    if (p->p_type == PT_LOAD && address - start < p->p_memsz) return true;
  }
  return false;
}

/* The object that holds an address: what the dynamic linker has of it. */
typedef struct holder {
  uintptr_t address;
  uintptr_t base, start, end; /* of its mapping: from its first byte to its last */
  const ElfW(Dyn) * dynamic;
  const char *path;
  struct link_map *handle; /* NULL before glibc 2.35 */
} holder;

static int holds_address(struct dl_phdr_info *i, size_t size, void *context)
{
  holder *h = context;

  (void)size;
  if (!phdr_holds(i, h->address)) return 0;
  h->base = i->dlpi_addr;
  h->dynamic = phdr_dynamic(i);
  h->path = i->dlpi_name;
  h->start = UINTPTR_MAX;
  for (unsigned n = 0; n < i->dlpi_phnum; n++) {
    const ElfW(Phdr) *p = &i->dlpi_phdr[n];
    uintptr_t start = i->dlpi_addr + p->p_vaddr, end = start + p->p_memsz;
    if (p->p_type != PT_LOAD) continue;
    if (start < h->start) h->start = start;
    if (end > h->end) h->end = end;
  }
  return 1;
}

static bool find_holder(holder *h, const void *address)
{
  find_object_result r;

  loader_find();
  *h = (holder){.address = (uintptr_t)address};
  if (!objects.find_object) return objects_visit(holds_address, h);
  if (objects.find_object((void *)h->address, &r) != 0) return false;
  const struct link_map *m = h->handle = r.link_map;
  h->base = m->l_addr, h->dynamic = m->l_ld, h->path = m->l_name;
  h->start = (uintptr_t)r.map_start, h->end = (uintptr_t)r.map_end;
  return true;
}

bool elf_object_at(elf_object *o, const void *address)
{
  holder h;

  if (!find_holder(&h, address)) return false;
  bool read = elf_object_read(o, h.base, h.dynamic);
  o->path = h.path;
  return read;
}

/* The headers of an object lie in its first page, where it is an ELF file as linkers make it. */
static const ElfW(Ehdr) * headers_of(const holder *h)
{
  const ElfW(Ehdr) *e = (const ElfW(Ehdr) *)h->start;
  bool whole = h->end - h->start >= sizeof *e && !memcmp(e->e_ident, ELFMAG, SELFMAG) &&
               e->e_phentsize == sizeof(ElfW(Phdr)) && e->e_phoff % _Alignof(ElfW(Phdr)) == 0 &&
               e->e_phoff < FIRST_PAGE &&
               e->e_phnum <= (FIRST_PAGE - e->e_phoff) / sizeof(ElfW(Phdr));
  return whole ? e : NULL;
}

bool elf_identity_at(elf_identity *out, const void *address)
{
  holder h;

  if (!find_holder(&h, address)) return false;
  const ElfW(Ehdr) *e = headers_of(&h);
  *out = (elf_identity){.base = h.base, .path = h.path};
  for (unsigned i = 0; e && !out->build_id && i < e->e_phnum; i++) {
    const ElfW(Phdr) *p = (const ElfW(Phdr) *)(h.start + e->e_phoff) + i;
    uintptr_t start = h.base + p->p_vaddr;
    if (p->p_type == PT_NOTE && start >= h.start && start < h.end && p->p_filesz <= h.end - start)
      out->build_id =
          build_id_in_note((const uint8_t *)start, p->p_filesz, UINT32_MAX, &out->build_id_bytes);
  }
  return out->build_id != NULL;
}

void *elf_object_handle(const void *address)
{
  holder h;

  return find_holder(&h, address) ? h.handle : NULL;
}

/* Is `address` inside an object that asks for `soname` (DT_NEEDED)? */
static bool elf_object_needs(const void *address, const char *soname)
{
  holder h;
  elf_object o;

  if (!find_holder(&h, address) || !elf_object_read(&o, h.base, h.dynamic)) return false;
  for (const ElfW(Dyn) *d = h.dynamic; d->d_tag != DT_NULL; d++)
    if (d->d_tag == DT_NEEDED && strcmp(o.strings + d->d_un.d_val, soname) == 0) return true;
  return false;
}

/* ---- banks ---- */

/* The soname shows it, or, for a runtime that was packed under a name of somebody's own
 * (libcudart-1a2b3c4d.so.12), the version of its symbols. */
static int object_bank(const elf_object *o)
{
  for (int bank = 0; bank < WEIR_BANKS; bank++)
    if (strcmp(o->soname, cuda_library_soname(bank)) == 0) return bank;
  for (int bank = WEIR_BANK_RT11; o->verdef && bank < WEIR_BANKS; bank++)
    if (defines_version(o, 0, cuda_library_soname(bank))) return bank;
  return -1;
}

int cuda_library_of(const void *address)
{
  elf_object o;

  return elf_object_at(&o, address) && !is_own_address(address) ? object_bank(&o) : -1;
}

typedef struct startup_walk {
  elf_startup_visitor *visit;
  void *context;
  unsigned index; /* of the object at hand, in the loader's order */
  int answer;     /* of the last visit */
} startup_walk;

static int visit_startup(struct dl_phdr_info *i, size_t size, void *context)
{
  startup_walk *w = context;
  elf_object o;

  (void)size;
  if (w->index++ >= startup_objects) return 1;
  if (!elf_object_read(&o, i->dlpi_addr, phdr_dynamic(i))) return 0;
  o.path = i->dlpi_name;
  w->answer = w->visit(&o, o.base == own_library_start ? ELF_OURS : object_bank(&o), w->context);
  return w->answer;
}

int elf_startup_each(elf_startup_visitor *visit, void *context)
{
  startup_walk w = {.visit = visit, .context = context};

  loader_find();
  objects_visit(visit_startup, &w);
  return w.answer;
}

/* The objects between us and the driver, read once: they never go away. */
enum { MOST_BETWEEN = 256 };
typedef struct between {
  elf_object object[MOST_BETWEEN];
  unsigned count;
  bool past_us;
} between;

static int read_between(const elf_object *o, int bank, void *context)
{
  between *b = context;

  if (bank == ELF_OURS) b->past_us = true;
  if (bank == ELF_OTHER && b->past_us && b->count < MOST_BETWEEN) b->object[b->count++] = *o;
  return bank == WEIR_BANK_DRIVER;
}

/* `own` is filled where another thread is about to fill what is kept. */
static const between *objects_between(between *own)
{
  enum { UNREAD, READING, READ };
  static between all;
  static _Atomic int state;
  int unread = UNREAD;

  if (atomic_load_explicit(&state, memory_order_acquire) == READ) return &all;
  if (!atomic_compare_exchange_strong(&state, &unread, READING)) {
    *own = (between){.count = 0};
    (void)elf_startup_each(read_between, own);
    return own;
  }
  (void)elf_startup_each(read_between, &all);
  atomic_store_explicit(&state, READ, memory_order_release);
  return &all;
}

void *elf_startup_shim(const char *function)
{
  between own;
  const between *b = objects_between(&own);

  for (unsigned i = 0; i < b->count; i++) {
    void *found = elf_object_symbol(&b->object[i], function, NULL, WEIR_FIT_FUNCTION);
    if (found) return found;
  }
  return NULL;
}

bool elf_object_span(const void *address, uintptr_t *start, size_t *bytes, bool *bank)
{
  holder h;

  if (!find_holder(&h, address)) return false;
  *start = h.start;
  *bytes = h.end - h.start;
  *bank = cuda_library_of(address) >= 0;
  return true;
}

enum { COPIES = 8 }; /* of one library that are distinguished */

/* Where a bank's symbol is in this process. */
typedef struct survey {
  int bank;
  const char *symbol;
  unsigned index; /* of the object at hand, in the loader's order */
  bool past_us;   /* our own object has gone by */
  void *at_start; /* what everybody's reference binds to: see survey_object() */
  unsigned count; /* copies of the bank's library, else */
  elf_object copies[COPIES];
  void *found[COPIES];
} survey;

static _Atomic bool many_copies[WEIR_BANKS]; /* seen: who calls decides which one is meant */
static _Atomic bool loaded_late[WEIR_BANKS]; /* not among the startup objects: more may come */

/* A reference binds to the first fitting definition among the startup objects after us (the
 * library itself, or a program's own shim for it), just as if we were not there. Else to the
 * library that came with whoever refers to it. */
static int survey_object(struct dl_phdr_info *i, size_t size, void *context)
{
  survey *s = context;
  const char *version = s->bank == WEIR_BANK_DRIVER ? NULL : cuda_library_soname(s->bank);
  bool startup = s->index++ < startup_objects;
  elf_object o;

  (void)size;
  if (!elf_object_read(&o, i->dlpi_addr, phdr_dynamic(i))) return 0;
  if (o.base == own_library_start) {
    s->past_us = true;
    return 0;
  }
  if (startup && s->past_us) {
    s->at_start = elf_object_symbol(&o, s->symbol, version, WEIR_FIT_REFERENCE);
    if (s->at_start) return 1;
  }
  if (s->count == COPIES || object_bank(&o) != s->bank) return 0;
  void *found = elf_object_symbol(&o, s->symbol, NULL, WEIR_FIT_DEFAULT);
  if (!found) return 0;
  s->copies[s->count] = o;
  s->found[s->count++] = found;
  return 0;
}

static void make_survey(survey *s, int bank, const char *symbol)
{
  *s = (survey){.bank = bank, .symbol = symbol};
  loader_find();
  objects_visit(survey_object, s);
  if (s->at_start) return;
  if (s->count) atomic_store_explicit(&loaded_late[bank], true, memory_order_relaxed);
  if (s->count > 1) atomic_store_explicit(&many_copies[bank], true, memory_order_relaxed);
}

enum { MOST_FRAMES = 16, MOST_FRAME_BYTES = 1 << 16 };

/* The address outside of us that our innermost frames will return to: all our code keeps frame
 * pointers, and no frame but ours is looked at. NULL where they lead nowhere. */
static const void *program_caller(void)
{
  void *const *frame = __builtin_frame_address(0);

  for (int depth = 0; depth < MOST_FRAMES; depth++) {
    uintptr_t here = (uintptr_t)frame, next = (uintptr_t)frame[0];
    if (!is_own_address(frame[1])) return frame[1];
    if (next <= here || next - here > MOST_FRAME_BYTES) return NULL;
    frame = frame[0];
  }
  return NULL;
}

/* Which of several copies a caller means: the one it is in, the one it was linked with, or the
 * first, which the loader gives to those who ask by soname. */
static void *callers_copy(const survey *s, const void *caller)
{
  elf_object at;

  if (s->count == 1 || !elf_object_at(&at, caller)) return s->found[0];
  for (unsigned i = 0; i < s->count; i++)
    if (at.base == s->copies[i].base) return s->found[i];
  for (unsigned i = 0; i < s->count; i++)
    if (elf_object_needs(caller, s->copies[i].soname)) return s->found[i];
  return s->found[0];
}

void *elf_symbol(const char *soname, const char *symbol)
{
  survey s;

  for (int bank = 0; bank < WEIR_BANKS; bank++) {
    if (strcmp(soname, cuda_library_soname(bank)) != 0) continue;
    make_survey(&s, bank, symbol);
    if (s.at_start) return s.at_start;
    return s.count ? callers_copy(&s, program_caller()) : NULL;
  }
  return NULL;
}

/* ---- answers that hold for one caller ---- */

/* Where there are several copies each call asks which one its caller means, and a survey looks at
 * all that is loaded: hundreds of objects in a Python program. What was answered once holds until
 * something is unloaded; what is loaded meanwhile changes no caller's copy. An entry is filled by
 * who has taken its key, and taken again only for another generation. */
enum { ANSWERS = 4096, ANSWER_PROBES = 8, KEY_ID_BITS = 11, KEY_FREE = 0, KEY_TAKEN = 1 };

typedef struct answer {
  _Atomic uint64_t key; /* caller and id, or KEY_FREE or _TAKEN */
  _Atomic uint64_t generation;
  _Atomic(void *) found;
} answer;

static answer answers[ANSWERS];
static _Atomic uint64_t generation = 1; /* one more after each unloading */

static answer *answer_at(uint64_t key, unsigned probe)
{
  return &answers[((key * UINT64_C(0x9e3779b97f4a7c15) >> 52) + probe) % ANSWERS];
}

static void *answer_find(uint64_t key, uint64_t now)
{
  for (unsigned i = 0; i < ANSWER_PROBES; i++) {
    answer *a = answer_at(key, i);
    uint64_t held = atomic_load_explicit(&a->key, memory_order_acquire);
    if (held == KEY_FREE) return NULL;
    if (held != key) continue;
    uint64_t of = atomic_load_explicit(&a->generation, memory_order_acquire);
    void *found = atomic_load_explicit(&a->found, memory_order_acquire);
    if (of == now && atomic_load_explicit(&a->key, memory_order_relaxed) == key) return found;
  }
  return NULL;
}

static void answer_put(uint64_t key, uint64_t now, void *found)
{
  for (unsigned i = 0; i < ANSWER_PROBES; i++) {
    answer *a = answer_at(key, i);
    uint64_t held = atomic_load_explicit(&a->key, memory_order_acquire);
    if (held == KEY_TAKEN) continue;
    if (held != KEY_FREE && atomic_load_explicit(&a->generation, memory_order_acquire) == now) {
      if (held == key) return;
      continue;
    }
    if (!atomic_compare_exchange_strong(&a->key, &held, KEY_TAKEN)) continue;
    atomic_store_explicit(&a->found, found, memory_order_release);
    atomic_store_explicit(&a->generation, now, memory_order_release); /* who sees it sees `found` */
    atomic_store_explicit(&a->key, key, memory_order_release);
    return;
  }
}

void *elf_symbol_cached(unsigned id, int bank, const char *symbol)
{
  uint64_t now = atomic_load_explicit(&generation, memory_order_acquire);
  uint64_t caller = (uint64_t)(uintptr_t)program_caller();
  uint64_t key = caller << KEY_ID_BITS | id;
  void *found = caller ? answer_find(key, now) : NULL;

  if (found) return found;
  found = elf_symbol(cuda_library_soname(bank), symbol);
  if (found && caller) answer_put(key, now, found);
  return found;
}

/* ---- stand-ins ---- */

typedef struct stand_in {
  const char *symbol;
  const void *caller;
  unsigned index; /* of the object at hand, in the loader's order */
  void *found;    /* the caller's own, else the first */
} stand_in;

static int find_stand_in(struct dl_phdr_info *i, size_t size, void *context)
{
  stand_in *s = context;
  elf_object o;

  (void)size;
  if (s->index++ < startup_objects) return 0;
  if (!elf_object_read(&o, i->dlpi_addr, phdr_dynamic(i)) || o.base == own_library_start) return 0;
  void *found = elf_object_symbol(&o, s->symbol, NULL, WEIR_FIT_FUNCTION);
  if (!found) return 0;
  bool callers = phdr_holds(i, (uintptr_t)s->caller);
  if (callers || !s->found) s->found = found;
  return callers;
}

void *elf_stand_in(const char *symbol)
{
  stand_in s = {.symbol = symbol, .caller = program_caller()};

  loader_find();
  objects_visit(find_stand_in, &s);
  return s.found;
}

bool elf_is_settled(int bank)
{
  return !atomic_load_explicit(&many_copies[bank], memory_order_relaxed);
}

bool elf_is_the_one(int bank, const char *symbol, const void *address)
{
  elf_object at, one;
  survey s;

  make_survey(&s, bank, symbol);
  if (!s.at_start && s.count != 1) return false;
  return elf_object_at(&at, address) && elf_object_at(&one, s.at_start ? s.at_start : s.found[0]) &&
         at.base == one.base;
}

bool elf_loaded_late(int bank)
{
  return atomic_load_explicit(&loaded_late[bank], memory_order_relaxed);
}

void elf_note_unloaded(void)
{
  for (int bank = 0; bank < WEIR_BANKS; bank++)
    atomic_store_explicit(&many_copies[bank], false, memory_order_relaxed);
  atomic_fetch_add(&generation, 1);
}

/* ---- what was loaded and unloaded ---- */

/* Where the loader's lock is lost nothing can be unloaded. */
static int read_unloads(struct dl_phdr_info *i, size_t size, void *context)
{
  if (size < offsetof(struct dl_phdr_info, dlpi_subs) + sizeof i->dlpi_subs) return 1;
  *(unsigned long long *)context = i->dlpi_subs;
  return 1;
}

unsigned long long loader_unloads(void)
{
  unsigned long long unloads = 0;

  objects_visit(read_unloads, &unloads);
  return unloads;
}

/* ---- finding the loader's own functions ---- */

/* Our own extent. The linker defines both ends; __ehdr_start is where the object was loaded. */
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char _end[] __attribute__((visibility("hidden")));

static void find_ourselves(void)
{
  unsigned objects = 0;

  own_library_start = (uintptr_t)__ehdr_start;
  own_library_end = (uintptr_t)_end;
  for (const struct link_map *m = _r_debug.r_map; m; m = m->l_next) {
    objects++;
    if (m->l_addr == own_library_start) own_library_path = m->l_name;
  }
  startup_objects = objects;
}

/* Stores a function's address at `out`: of the first definition after us in the loader's order, so
 * that another library's stand-in for it keeps its place in the chain. */
static void find_next(const char *symbol, void *out)
{
  bool past_us = false;

  for (const struct link_map *m = _r_debug.r_map; m; m = m->l_next) {
    elf_object o;
    void *found;
    if (m->l_addr == own_library_start) {
      past_us = true;
    } else if (past_us && elf_object_read(&o, m->l_addr, m->l_ld) &&
               (found = elf_object_symbol(&o, symbol, NULL, WEIR_FIT_DEFAULT))) {
      memcpy(out, &found, sizeof found);
      return;
    }
  }
}

/* Stores a function's address at `out`: glibc's own, whoever else defines it. */
static void find_in_glibc(const char *symbol, void *out)
{
  for (const struct link_map *m = _r_debug.r_map; m; m = m->l_next) {
    elf_object o;
    void *found;
    if (!elf_object_read(&o, m->l_addr, m->l_ld)) continue;
    if (strcmp(o.soname, "libc.so.6") != 0 && strcmp(o.soname, "libdl.so.2") != 0 &&
        strncmp(o.soname, "ld-linux", 8) != 0)
      continue;
    if (!(found = elf_object_symbol(&o, symbol, NULL, WEIR_FIT_DEFAULT))) continue;
    memcpy(out, &found, sizeof found);
    return;
  }
}

/* Threads that race here store the same values. */
void loader_find(void)
{
  static _Atomic bool done;

  if (atomic_load_explicit(&done, memory_order_acquire)) return;
  find_ourselves();
  find_in_glibc("_dl_find_object", &objects.find_object);
  find_in_glibc("dl_iterate_phdr", &objects.iterate_phdr);
  find_next("dlvsym", &real_dlvsym);
  find_next("dlopen", &real_dlopen);
  find_in_glibc("dlopen", &libc_dlopen);
  find_next("dlclose", &real_dlclose);
  find_next("dlmopen", &real_dlmopen);
  find_next("dlsym", &real_dlsym);
  find_next("execve", &real_exec.execve);
  find_next("execv", &real_exec.execv);
  find_next("execvp", &real_exec.execvp);
  find_next("execvpe", &real_exec.execvpe);
  find_next("fexecve", &real_exec.fexecve);
  find_next("posix_spawn", &real_exec.posix_spawn);
  find_next("posix_spawnp", &real_exec.posix_spawnp);
  find_next("_exit", &real_exit._exit);
  find_next("_Exit", &real_exit._Exit);
  find_next("usleep", &real_pause.usleep);
  find_next("nanosleep", &real_pause.nanosleep);
  find_next("clock_nanosleep", &real_pause.clock_nanosleep);
  find_next("sched_yield", &real_pause.sched_yield);
  find_next("select", &real_pause.select);
  atomic_store_explicit(&done, true, memory_order_release);
}

/* The loader's lock is in its data, which only libc and the loader know by this name. */
void loader_find_lock(void)
{
  for (const struct link_map *m = _r_debug.r_map; m; m = m->l_next) {
    elf_object o;
    probe p = {.object = &o, .name = "_rtld_global", .fit = WEIR_FIT_DEFAULT};
    if (!elf_object_read(&o, m->l_addr, m->l_ld) || strncmp(o.soname, "ld-linux", 8) != 0) continue;
    if (probe_object(&p)) objects_begin(p.found, p.bytes);
    return;
  }
}
