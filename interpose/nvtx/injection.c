/* injection.c: how the program's NVTX comes to us, and to the tool that was there before.
 *
 * NVTX asks NVTX_INJECTION64_PATH for a library at the first call of each instance. At the start
 * the variable is set to our own file; what it was before is kept in WEIR_NVTX_NEXT, for children
 * too, and initialised first: it puts its functions into the instance's table, and ours go in
 * front of them. Where the program sets the variable itself, its word counts, and we see nothing.
 *
 * A function of the next tool is remembered for all instances. A tool that gave another instance
 * another function (none is known to) keeps that slot for itself.
 *
 * NVTX's extensions (memory, payloads, counters) ask the same library under another name, one
 * module of slots at a time. They are the next tool's: it fills the slots, and we are in front of
 * it in two of the memory extension's (memory_names.c), in none of the others. */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include "interpose/elf/elf.h"
#include "interpose/elf/entry.h"
#include "interpose/nvtx/nvtx.h"
#include "interpose/process/settings.h"
#include "interpose/process/part.h"

#define VARIABLE "NVTX_INJECTION64_PATH"
#define NEXT     "WEIR_NVTX_NEXT"
#define OWN_NAME "libweir-preload.so"

static bool wanted;              /* ranges are recorded */
static char next_tool[PATH_MAX]; /* the library that was named before us; "": none */

typedef int(NVTX_API *extension_start)(void *module); /* an nvtxExtModuleInfo_t, of any version */

__attribute__((visibility("default"))) int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get);
__attribute__((visibility("default"))) int InitializeInjectionNvtxExtension(void *module);

/* ---- the environment ------------------------------------------------------------------------- */

static bool is_our_own(const char *path)
{
  const char *slash = strrchr(path, '/');
  return strcmp(slash ? slash + 1 : path, OWN_NAME) == 0;
}

static void remember_next(const char *path)
{
  if (strlen(path) < sizeof next_tool && !is_our_own(path))
    memcpy(next_tool, path, strlen(path) + 1);
}

/* Before the program's first instruction, as the process's folder is set (folder.c). Where NVTX
 * itself has loaded us (a program that inherits the variable and is not preloaded), there is
 * nothing of ours to be done: libc's loader functions are then in front of ours, and so not after
 * them. */
static void set_injection(void)
{
  char own[PATH_MAX];
  const char *before = getenv(VARIABLE), *next = getenv(NEXT);
  static const char *const words[] = {"off", "on", NULL};
  unsigned choice = 1;

  process_choice_option(&choice, "WEIR_NVTX", words);
  if (next && !real_dlsym) remember_next(next);
  if (!choice || !real_dlsym || !own_library_path || !process_absolute_path(own, own_library_path))
    return;
  if (before && *before && !is_our_own(before))
    next = before;
  else if (!before || !*before)
    next = NULL; /* a program above us has taken it away */
  if (next) remember_next(next);
  if (next_tool[0])
    setenv(NEXT, next_tool, 1);
  else
    unsetenv(NEXT);
  setenv(VARIABLE, own, 1);
  wanted = true;
}

static const process_part part = {.start = set_injection};
PROCESS_PART(part);

/* ---- an instance's table --------------------------------------------------------------------- */

enum { MODULES = 5, MOST_SLOTS = 24 };
static const uint8_t modules[MODULES] = {NVTX_CB_MODULE_CORE, NVTX_CB_MODULE_CORE2,
                                         NVTX_CB_MODULE_CUDA, NVTX_CB_MODULE_CUDART, 0};

/* Where an instance keeps its pointers, and what was there before the next tool came. */
typedef struct nvtx_table {
  NvtxFunctionTable slot[MODULES];
  unsigned slots[MODULES];
  NvtxFunctionPointer before[MODULES][MOST_SLOTS];
} nvtx_table;

static bool read_table(nvtx_table *t, NvtxGetExportTableFunc_t get)
{
  const NvtxExportTableCallbacks *c = get ? get(NVTX_ETID_CALLBACKS) : NULL;
  memset(t, 0, sizeof *t);
  if (!c || c->struct_size < sizeof *c || !c->GetModuleFunctionTable) return false;
  for (unsigned m = 0; modules[m]; m++) {
    if (!c->GetModuleFunctionTable((NvtxCallbackModule)modules[m], &t->slot[m], &t->slots[m]) ||
        !t->slot[m])
      t->slots[m] = 0;
    if (t->slots[m] > MOST_SLOTS) t->slots[m] = MOST_SLOTS;
    for (unsigned i = 0; i < t->slots[m]; i++)
      t->before[m][i] = t->slot[m][i] ? *t->slot[m][i] : NULL;
  }
  return true;
}

/* Puts ours into its slot, in front of what the next tool has put there. */
static void take_slot(nvtx_hook *hook, NvtxFunctionPointer *slot, NvtxFunctionPointer before)
{
  NvtxFunctionPointer none = NULL, next = *slot != before ? *slot : NULL;
  if (next == hook->function) return;
  if (!atomic_compare_exchange_strong(&hook->next, &none, next) && none != next) return;
  *slot = hook->function;
}

static void take_slots(const nvtx_table *t, nvtx_hook *hooks)
{
  for (nvtx_hook *h = hooks; h->module; h++)
    for (unsigned m = 0; modules[m]; m++)
      if (modules[m] == h->module && h->id < t->slots[m] && t->slot[m][h->id])
        take_slot(h, t->slot[m][h->id], t->before[m][h->id]);
}

static void put_table_back(const nvtx_table *t)
{
  for (unsigned m = 0; modules[m]; m++)
    for (unsigned i = 0; i < t->slots[m]; i++)
      if (t->slot[m][i]) *t->slot[m][i] = t->before[m][i];
}

/* ---- the next tool --------------------------------------------------------------------------- */

/* libc's own function, also where no preloading has put ours in front of it. */
static void *loader_function(const char *name, void *real)
{
  elf_object libc;
  if (real || !elf_object_at(&libc, (const void *)(uintptr_t)getenv)) return real;
  return elf_object_symbol(&libc, name, NULL, WEIR_FIT_FUNCTION);
}

/* As NVTX does it: the next tool's function of that name into `function`. false: there is no such
 * library. */
static bool look_in_next(void *function, const char *name)
{
  void *(*open)(const char *, int) = NULL, *(*look)(void *, const char *) = NULL;
  *(void **)&open = loader_function("dlopen", *(void **)&real_dlopen);
  *(void **)&look = loader_function("dlsym", *(void **)&real_dlsym);
  void *library = next_tool[0] && open && look ? open(next_tool, RTLD_LAZY) : NULL;
  if (library) *(void **)function = look(library, name);
  return library;
}

/* A library that cannot be opened or refuses is as none. */
static bool initialise_next(NvtxGetExportTableFunc_t get)
{
  NvtxInitializeInjectionNvtxFunc_t start = NULL;
  look_in_next(&start, "InitializeInjectionNvtx2");
  if (!start || start == InitializeInjectionNvtx2 || !start(get)) return false;
  atomic_store(&nvtx_next_is_there, true);
  return true;
}

WEIR_BODY int inject(NvtxGetExportTableFunc_t get)
{
  nvtx_table table;
  int saved = errno;
  bool readable = read_table(&table, get), next = initialise_next(get);

  if (!next && readable) put_table_back(&table);
  if (wanted && readable) {
    take_slots(&table, nvtx_range_hooks);
    take_slots(&table, nvtx_name_hooks);
  }
  errno = saved;
  return 1; /* or NVTX would unload us */
}
WEIR_ENTRY(InitializeInjectionNvtx2, inject);

/* Slots that are left as they are NVTX turns off: each call is then one test of a word, as without
 * a tool, and nvtxDomainIsEnabled returns yes, as with any tool that knows no extensions. */
WEIR_BODY int inject_extension(void *module)
{
  extension_start start = NULL;
  int saved = errno, answer = wanted;
  if (look_in_next(&start, "InitializeInjectionNvtxExtension"))
    answer = start && start != InitializeInjectionNvtxExtension ? start(module) : 1;
  if (wanted && nvtx_take_memory_names(module, !answer)) answer = 1;
  errno = saved;
  return answer;
}
WEIR_ENTRY(InitializeInjectionNvtxExtension, inject_extension);
