/* lookup.c: what dlsym, dlvsym, dlopen, dlmopen and dlclose do before and after the real ones.
 *
 * The exported functions are trampolines (trampoline_*.S): they keep the arguments, ask a filter
 * here and then either return the filter's answer or jump to the real function, which sees the
 * program's own return address. glibc needs that: RTLD_NEXT, RTLD_DEFAULT and a plug-in's RUNPATH
 * go by the caller. So nothing that depends on the caller is ever asked from here.
 *
 * The rules, in their order: a name that is not ours, RTLD_NEXT, and a caller that defines the name
 * itself (it is that function's own library, or a shim for it) pass untouched. Else the real
 * look-up is made, and if its answer lies in a library we know, the bank of *that* library decides
 * which wrapper is handed out. Any other answer is handed out as it is. Our own exports can't be
 * found by dlsym (table/rows.h, WEIR_EXPORT), so no answer is ever one of them.
 *
 * Cost: a name that is not ours takes no lock, no malloc and no look at the environment. */
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include "core/trace/stack.h"
#include "interpose/activity/activity.h"
#include "interpose/elf/elf.h"
#include "interpose/elf/entry.h"
#include "interpose/loader/loader.h"
#include "interpose/process/settings.h"
#include "interpose/process/part.h"
#include "interpose/process/process.h"
#include "interpose/record/unwrapped.h"
#include "interpose/table/rows.h"

/* What a filter returns to its trampoline. Returned in two registers. */
typedef struct filter_answer {
  void *answer; /* to be returned, or the new mode of dlopen and dlmopen */
  void *target; /* to be jumped to; NULL: return the answer */
} filter_answer;

filter_answer filter_dlsym(void *handle, const char *name, const void *caller);
filter_answer filter_dlvsym(void *handle, const char *name, const void *caller,
                            const char *version);
filter_answer filter_dlopen(int mode);
filter_answer filter_dlmopen(long space, int mode);

static bool keep_deepbind; /* WEIR_DEEPBIND=keep: dlopen's flag is left alone */

static inline bool names_loader(const char *name)
{
  if (name[0] != 'd' || name[1] != 'l') return false;
  switch (name[2]) {
  case 's':
    return strcmp(name, "dlsym") == 0;
  case 'v':
    return strcmp(name, "dlvsym") == 0;
  case 'o':
    return strcmp(name, "dlopen") == 0;
  case 'c':
    return strcmp(name, "dlclose") == 0;
  case 'm':
    return strcmp(name, "dlmopen") == 0;
  default:
    return false;
  }
}

/* CUDA's names are cu[A-Z]... and cuda[A-Z]..., which cublas, cudnn and curl are not. */
static bool looks_like_cuda(const char *name)
{
  if (name[0] != 'c' || name[1] != 'u') return false;
  name += strncmp(name, "cuda", 4) == 0 ? 4 : 2;
  return *name >= 'A' && *name <= 'Z';
}

/* Asked by handle for one of the loader's functions: the stand-in for a real one. */
static void *loader_stand_in(void *real)
{
  if (real == WEIR_CODE(real_dlsym)) return WEIR_CODE(own_dlsym);
  if (real == WEIR_CODE(real_dlvsym)) return WEIR_CODE(own_dlvsym);
  if (real == WEIR_CODE(real_dlopen)) return WEIR_CODE(own_dlopen);
  if (real == WEIR_CODE(real_dlmopen)) return WEIR_CODE(own_dlmopen);
  if (real == WEIR_CODE(real_dlclose)) return WEIR_CODE(own_dlclose);
  return real;
}

/* A function we know of but do not wrap goes into the coverage record, so that reports can show it;
 * one of the driver's that we do not know is watched. */
static void *watch_unwrapped(int bank, const char *name, void *real)
{
  uint16_t api = hook_api_find(name);

  if (api) coverage_add(api, WEIR_COVER_PASSED);
  return api || bank != WEIR_BANK_DRIVER || !looks_like_cuda(name) ? real
                                                                   : unwrapped_watch(name, real);
}

/* A function of the driver's name in no library of CUDA's. It is wrapped where it is what all
 * references to that name are bound to: a library preloaded after us, whose dlsym() is the real
 * one here, has handed out its own (HAMi-core's does). */
static void *wrap_shim(const char *name, void *real)
{
  const hook_row *row = hook_row_find(WEIR_BANK_DRIVER, name);

  return row ? hook_row_bind_shim(row, real) : real;
}

/* What the asker gets for a real look-up's answer. */
static void *wrap_symbol(const char *name, void *real)
{
  if (names_loader(name)) return loader_stand_in(real);
  if (activity_is_name(name)) return activity_wrap(name, real);
  int bank = cuda_library_of(real);
  if (bank < 0) return wrap_shim(name, real);
  const hook_row *row = hook_row_find(bank, name);
  if (row) return elf_is_the_one(bank, name, real) ? hook_row_bind(row, real) : real;
  return watch_unwrapped(bank, name, real);
}

/* The real look-up, as if we were not there. RTLD_NEXT, asked from here, is what comes after us. */
static void *real_lookup(void *handle, const char *name, const char *version)
{
  if (!version) return real_dlsym(handle, name);
  void *found = real_dlvsym(handle, name, version);
  if (!is_own_address(found) || names_loader(name)) return found;
  return real_dlvsym(RTLD_NEXT, name, version);
}

/* RTLD_DEFAULT goes by the caller's scope. Asked from here it is the global scope; what a plug-in
 * brought for itself is asked of the plug-in. NULL: the real function answers. */
static void *default_lookup(const char *name, const char *version, const void *caller)
{
  void *found = real_lookup(RTLD_DEFAULT, name, version), *own;

  if (found) return found;
  own = elf_object_handle(caller);
  return own ? real_lookup(own, name, version) : NULL;
}

/* Would the real function answer with our export? Then the answer is that nobody has it, and
 * dlerror() is left as it is. */
static bool finds_only_our_library(const char *name, const char *version)
{
  if (!version || !is_own_address(real_dlvsym(RTLD_DEFAULT, name, version))) return false;
  return real_dlvsym(RTLD_NEXT, name, version) == NULL;
}

/* As a function: a pointer variable of that name, for what is being looked up, is no shim. */
static bool caller_defines(const void *caller, const char *name)
{
  elf_object o;

  return elf_object_at(&o, caller) && elf_object_symbol(&o, name, NULL, WEIR_FIT_FUNCTION);
}

/* The slow half: a name of ours, or one that could be CUDA's. CUPTI asks here for the driver's
 * functions; it gets the real ones, so that memory which it takes for its records, and what its
 * threads do, is in no count and no peak of the program's. */
static filter_answer filter_result(void *handle, const char *name, const char *version,
                                   const void *caller, void *target)
{
  const filter_answer untouched = {NULL, target};
  void *real;

  if (handle == RTLD_NEXT || caller_defines(caller, name) || activity_is_cupti(caller))
    return untouched;
  if (handle != RTLD_DEFAULT) {
    real = real_lookup(handle, name, version);
    return (filter_answer){real ? wrap_symbol(name, real) : NULL, NULL};
  }
  real = default_lookup(name, version, caller);
  if (!real) return finds_only_our_library(name, version) ? (filter_answer){NULL, NULL} : untouched;
  void *answer = wrap_symbol(name, real);
  return answer == real && !version ? untouched : (filter_answer){answer, NULL};
}

static inline bool is_relevant_name(const char *name)
{
  char c = name ? name[0] : 0;

  if (c != 'c' && c != '_' && c != 'd') return false;
  return hook_name_is_wrapped(name) || names_loader(name) || looks_like_cuda(name) ||
         activity_is_name(name);
}

filter_answer filter_dlsym(void *handle, const char *name, const void *caller)
{
  if (__builtin_expect(!real_dlsym, 0)) loader_find();
  if (__builtin_expect(!is_relevant_name(name), 1)) {
    return (filter_answer){NULL, WEIR_CODE(real_dlsym)};
  }
  return filter_result(handle, name, NULL, caller, WEIR_CODE(real_dlsym));
}

filter_answer filter_dlvsym(void *handle, const char *name, const void *caller, const char *version)
{
  if (__builtin_expect(!real_dlvsym, 0)) loader_find();
  if (!version || __builtin_expect(!is_relevant_name(name), 1)) {
    return (filter_answer){NULL, WEIR_CODE(real_dlvsym)};
  }
  return filter_result(handle, name, version, caller, WEIR_CODE(real_dlvsym));
}

/* A library about to be opened may bring its own copy of a runtime that was opened, not linked:
 * what is known of that runtime's originals is asked for again at the next call of each. */
static void revalidate_originals(void)
{
  if (!elf_loaded_late(WEIR_BANK_RT11) && !elf_loaded_late(WEIR_BANK_RT12) &&
      !elf_loaded_late(WEIR_BANK_RT13))
    return;
  for (uint32_t i = 0; i < hook_row_count; i++)
    if (hook_rows[i].bank != WEIR_BANK_DRIVER && elf_loaded_late(hook_rows[i].bank))
      atomic_store_explicit(hook_rows[i].real, NULL, memory_order_relaxed);
}

/* A plug-in opened with RTLD_DEEPBIND would bind past our exports. */
filter_answer filter_dlopen(int mode)
{
  if (__builtin_expect(!real_dlopen, 0)) loader_find();
  if (!keep_deepbind) mode &= ~RTLD_DEEPBIND;
  if (!(mode & RTLD_NOLOAD)) revalidate_originals(); /* which some ask for at each of their calls */
  return (filter_answer){(void *)(intptr_t)mode, WEIR_CODE(real_dlopen)};
}

/* Another namespace has libraries of its own, which no export of ours and none of our stand-ins
 * reach: the trace records that there was one. */
filter_answer filter_dlmopen(long space, int mode)
{
  loader_find();
  if (space != LM_ID_BASE)
    process_note_namespace();
  else if (!keep_deepbind)
    mode &= ~RTLD_DEEPBIND;
  return (filter_answer){(void *)(intptr_t)mode, WEIR_CODE(real_dlmopen)};
}

/* Originals in an object that has gone are forgotten, so that the next call looks again. */
static void forget_unloaded(void)
{
  elf_object o;

  for (uint32_t i = 0; i < hook_row_count; i++) {
    void *real = atomic_load_explicit(hook_rows[i].real, memory_order_relaxed);
    if (real && !elf_object_at(&o, real))
      atomic_compare_exchange_strong(hook_rows[i].real, &real, NULL);
  }
}

/* dlclose does not go by its caller, so a plain wrapper will do. */
WEIR_BODY int close_object(void *handle)
{
  loader_find();
  unsigned long long unloads = loader_unloads();
  stack_unloading();
  int result = real_dlclose(handle);
  int saved = errno;
  if (loader_unloads() != unloads) {
    forget_unloaded();
    elf_note_unloaded();
    process_parts_unloaded();
  }
  stack_unloaded();
  errno = saved;
  return result;
}

WEIR_ENTRY(dlclose, close_object);
__asm__(".globl own_dlclose\n.hidden own_dlclose\n.set own_dlclose, dlclose\n");

static void read_deepbind_option(void)
{
  static const char *const words[] = {"mask", "keep", NULL};
  unsigned choice;

  keep_deepbind = process_choice_option(&choice, "WEIR_DEEPBIND", words) && choice == 1;
}

static const process_part part = {.start = read_deepbind_option};
PROCESS_PART(part);
