/* owners.c: see owners.h. Whose function a call comes to follows from the order of the objects:
 *
 * - by name, from the program: a library between us and CUDA's that defines it. One before us is
 *   called before us, and calls on to CUDA, so that nothing passes it over.
 * - by a look-up, as the runtime comes to the driver: a library that answers dlsym itself, with a
 *   function that it has under the same name.
 * - by a look-up, with a function that has no such name: known when it is handed out to somebody
 *   who asks us; and where a library answers dlsym, it is asked, once the driver is there.
 *
 * The trace has a note for each library: what it has, and what is left to it. */
#include "interpose/reroute/owners.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include "interpose/elf/elf.h"
#include "interpose/process/process.h"
#include "interpose/record/pools.h"
#include "interpose/reroute/reroute.h"

static const struct {
  const char *name;
  unsigned families; /* REROUTE_* */
} rerouted[] = {
#define ROW(name, families) {name, families},
    WEIR_REROUTED(ROW)
#undef ROW
};
enum { NAMES = sizeof rerouted / sizeof *rerouted };

/* What a library that has one of these of its own hands out by it cannot be seen. */
static const char *const look_ups[] = {"cuGetProcAddress", "cuGetProcAddress_v2"};

/* ---- what is left to it ---------------------------------------------------------------------- */

static void list_families(char *text, size_t room, unsigned families)
{
  static const char *const all[] = {
#define REROUTE(NAME, word, by_default, of) of,
#include "core/base/reroutes.def"
#undef REROUTE
  };
  size_t n = 0;

  *text = 0;
  for (size_t i = 0; i < REROUTES && n < room; i++)
    if (families & 1u << i)
      n += (size_t)snprintf(text + n, room - n, "%s%s", n ? ", " : "", all[i]);
}

static const char *path_of_object(const elf_object *o)
{
  const char *path = o->path && *o->path ? o->path : "the program";
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

/* `first`: one of the `count` functions that the object has. The trace gets a note where that
 * changes anything. */
static void step_back(const elf_object *o, const char *first, unsigned count, unsigned families)
{
  char text[320], what[128], more[40] = "";
  unsigned had = atomic_fetch_and(&process_reroutes, ~families);
  atomic_fetch_or(&process_left, families);

  if (families & REROUTE_POOL) driver_pools_keep(false);
  if (!(had & families) || process_mode_now() == WEIR_OBSERVE) return;
  list_families(what, sizeof what, had & families);
  if (count > 1) (void)snprintf(more, sizeof more, ", and %u more such functions", count - 1);
  (void)snprintf(text, sizeof text, "not rerouted: %s: %s has a %s of its own%s", what,
                 path_of_object(o), first, more);
  weir_note(text);
}

/* ---- what was loaded at the start ------------------------------------------------------------ */

typedef struct owner {
  elf_object object;
  const char *first; /* of its functions */
  unsigned functions, families;
} owner;

typedef struct search {
  bool past_us, past_driver, past_runtime; /* the object at hand comes after it */
  unsigned skip;                           /* owners that were found before */
  void *answers;                           /* the dlsym of the first that has one; NULL: libc's */
  owner found;
} search;

static bool is_glibcs(const elf_object *o)
{
  return strcmp(o->soname, "libc.so.6") == 0 || strcmp(o->soname, "libdl.so.2") == 0 ||
         strncmp(o->soname, "ld-linux", 8) == 0;
}

/* Do calls come to the object's definition of that name? `answers`: look-ups, too. */
static bool is_called(const search *s, const elf_object *o, const char *name, bool answers)
{
  static const int runtimes[] = {WEIR_BANK_RT11, WEIR_BANK_RT12, WEIR_BANK_RT13};

  if (!elf_object_symbol(o, name, NULL, WEIR_FIT_FUNCTION)) return false;
  if (strncmp(name, "cuda", 4) != 0) return answers || (s->past_us && !s->past_driver);
  for (int i = 0; s->past_us && !s->past_runtime && i < 3; i++)
    if (elf_object_symbol(o, name, cuda_library_soname(runtimes[i]), WEIR_FIT_REFERENCE))
      return true;
  return false;
}

/* Under the loader's lock. */
static int look_at(const elf_object *o, int bank, void *context)
{
  search *s = context;

  if (bank == ELF_OURS) s->past_us = true;
  if (bank == WEIR_BANK_DRIVER) s->past_driver = true;
  if (bank > WEIR_BANK_DRIVER) s->past_runtime = true;
  if (bank != ELF_OTHER) return 0;
  bool answers = elf_object_symbol(o, "dlsym", NULL, WEIR_FIT_FUNCTION) != NULL;
  if (!answers && (!s->past_us || (s->past_driver && s->past_runtime))) return 0;
  if (answers && !s->answers && !is_glibcs(o))
    s->answers = elf_object_symbol(o, "dlsym", NULL, WEIR_FIT_FUNCTION);
  s->found = (owner){.object = *o};
  for (int i = 0; i < NAMES; i++) {
    if (!is_called(s, o, rerouted[i].name, answers)) continue;
    if (!s->found.functions++) s->found.first = rerouted[i].name;
    s->found.families |= rerouted[i].families;
  }
  if (!s->found.functions || s->skip == 0) return s->found.functions != 0;
  s->skip--;
  return 0;
}

/* Returns who answers look-ups; NULL: libc. */
static void *find_at_start(void)
{
  for (unsigned n = 0;; n++) {
    search s = {.skip = n};
    if (!elf_startup_each(look_at, &s)) return s.answers;
    step_back(&s.found.object, s.found.first, s.found.functions, s.found.families);
  }
}

/* ---- look-ups -------------------------------------------------------------------------------- */

/* CUDA's libraries come in several files, of which the driver's may bring others. */
static bool is_cudas(const elf_object *o)
{
  const char *file = path_of_object(o);
  return strncmp(file, "libcuda", 7) == 0 || strncmp(file, "libnv", 5) == 0;
}

static unsigned families_of(const char *name)
{
  if (strcmp(name, look_ups[0]) == 0 || strcmp(name, look_ups[1]) == 0) return REROUTE_ALL;
  for (int i = 0; i < NAMES; i++)
    if (strcmp(rerouted[i].name, name) == 0) return rerouted[i].families;
  return 0;
}

void owner_of_look_up(const char *name, const void *address)
{
  elf_object o;
  unsigned families = process_mode_now() != WEIR_OBSERVE ? families_of(name) : 0;

  if (families && process_reroutes_have(families) && elf_object_at(&o, address) && !is_cudas(&o))
    step_back(&o, name, 1, families);
}

/* What the runtime will be answered. False: there is no driver yet. */
static bool ask_hooked(void *(*answers)(void *, const char *))
{
  static const char *const names[] = {"cuGetProcAddress_v2", "cuMemAlloc_v2", "cuMemHostAlloc",
                                      "cuMemcpyHtoD_v2"};
  void *driver = real_dlopen(cuda_library_soname(WEIR_BANK_DRIVER), RTLD_LAZY | RTLD_NOLOAD);

  if (!driver) return false;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    const void *found = answers(driver, names[i]);
    if (found && cuda_library_of(found) < 0 && !is_own_address(found))
      owner_of_look_up(names[i], found);
  }
  real_dlclose(driver);
  return true;
}

void owners_find(void)
{
  static bool searched, asked;
  static void *answers;

  if (!searched) answers = find_at_start();
  searched = true;
  if (!asked) asked = !answers || ask_hooked((void *(*)(void *, const char *))(uintptr_t)answers);
}
