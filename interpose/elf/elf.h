/* elf.h: the libraries that are mapped into the process, read without the dynamic linker, and the
 * loader functions that come after ours.
 *
 * Object: one ELF file the dynamic linker has mapped. Startup object: one that was there before the
 * program's first instruction; these form the head of the global scope, in order, and never go
 * away. */
#ifndef WEIR_INTERPOSE_ELF_H
#define WEIR_INTERPOSE_ELF_H

#include <link.h>
#include <spawn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/select.h>
#include <time.h>
#include <unistd.h>
#include "interpose/elf/bank.h"

/* An object as its dynamic section describes it; all pointers borrowed from its mapping. */
typedef struct elf_object {
  uintptr_t base;              /* load bias */
  const ElfW(Sym) * symbols;   /* DT_SYMTAB */
  const char *strings;         /* DT_STRTAB */
  const uint32_t *gnu_hash;    /* DT_GNU_HASH, or NULL */
  const uint32_t *sysv_hash;   /* DT_HASH, or NULL */
  const ElfW(Half) * versym;   /* DT_VERSYM, or NULL: no versions at all */
  const ElfW(Verdef) * verdef; /* DT_VERDEF, or NULL */
  const char *soname;          /* "" when it has none */
  const char *path;            /* from elf_object_at(): as the loader has it, "" the program's */
} elf_object;

/* How a definition must fit. */
enum elf_fit {
  WEIR_FIT_DEFAULT,  /* as dlsym: the default version, else whatever there is */
  WEIR_FIT_FUNCTION, /* the same, but for functions only: a variable of that name is none */
  WEIR_FIT_REFERENCE /* as a relocation: the named version, or a definition without one */
};

/* Reads a dynamic section. False when there is nothing to look up in. */
bool elf_object_read(elf_object *o, uintptr_t base, const ElfW(Dyn) * dynamic);

/* The run-time address of a defined function or object, or NULL. `version` may be NULL. Symbols
 * that must be called to be known (IFUNC) and thread-local ones are refused. */
void *elf_object_symbol(const elf_object *o, const char *name, const char *version,
                        enum elf_fit fit);

/* Returns the address of a function, as above, and how long it is. */
void *elf_object_range(const elf_object *o, const char *function, size_t *bytes);

/* The object that holds an address. False when it is in none. */
bool elf_object_at(elf_object *o, const void *address);

typedef struct elf_identity { /* which object, in whichever process, and where in this one */
  const uint8_t *build_id;    /* borrowed from its mapping */
  uint32_t build_id_bytes;
  uintptr_t base;   /* load bias */
  const char *path; /* borrowed; as the loader has it, "" the program's */
} elf_identity;

/* Of the object that holds an address. False when it is in none, or the object has no build-id.
 * From glibc 2.35 on without a lock. */
bool elf_identity_at(elf_identity *out, const void *address);

/* The mapping of the object that holds an address, and whether it is a bank's library. False when
 * it is in none. From glibc 2.35 on without a lock. */
bool elf_object_span(const void *address, uintptr_t *start, size_t *bytes, bool *bank);

/* Calls `visit` for each startup object, in their order, until it returns something else than 0,
 * which is returned. `bank`: of which the object is a library, ELF_OURS, or ELF_OTHER. */
enum { ELF_OURS = -2, ELF_OTHER = -1 };
typedef int elf_startup_visitor(const elf_object *o, int bank, void *context);
int elf_startup_each(elf_startup_visitor *visit, void *context);

/* A function of the driver's that a startup object between us and the driver has, so that calls by
 * name come to it; NULL: none has, as almost always. */
void *elf_startup_shim(const char *function);

/* The link map of the object that holds an address, which glibc takes as a dlsym handle; NULL when
 * it is in none or glibc is too old to know (before 2.35). */
void *elf_object_handle(const void *address);

/* Is `address`, found by a look-up of a bank's symbol, in the one object of this namespace that
 * every reference to that symbol means? If not (a second copy, another namespace, a shim in front),
 * its wrapper would lead astray. */
bool elf_is_the_one(int bank, const char *symbol, const void *address);

/* While the driver is not loaded: what a library that came by dlopen has in place of its function
 * `symbol`, which the library's references would be bound to without us. TensorFlow's (to 2.14) has
 * functions of the driver's names that load the driver at their first call. NULL: nobody has it. */
void *elf_stand_in(const char *symbol);

/* The bank's library was loaded by dlopen, so that another copy of it may come in the same way. */
bool elf_loaded_late(int bank);

/* An object has gone: how many copies there are is to be found out anew. */
void elf_note_unloaded(void);

/* How many objects were ever unloaded. */
unsigned long long loader_unloads(void);

/* Finds libc's loader functions; everything above works only after it. Idempotent, any thread; no
 * dl* call, no lock, no malloc. */
void loader_find(void);

/* Finds the lock that objects_forked() asks of. Once, best before there are threads. */
void loader_find_lock(void);

/* The loader's own functions, found by an ELF look-up of ours before anything can be called. */
extern void *(*real_dlsym)(void *, const char *);
extern void *(*real_dlvsym)(void *, const char *, const char *);
extern void *(*real_dlopen)(const char *, int);
extern int (*real_dlclose)(void *);

/* glibc's own dlopen, whoever stands in front of it; NULL: this libc is another. A sanitizer's
 * refuses RTLD_DEEPBIND. */
extern void *(*libc_dlopen)(const char *, int);

/* The address of a bank's symbol, without dl* calls, our library and locks of ours; NULL when none
 * is loaded. `soname` is the bank's. For a driver or runtime symbol called through our export: what
 * the caller's reference would be bound to without us. */
void *elf_symbol(const char *soname, const char *symbol);

/* Returns the same address, which is remembered for this caller until something is unloaded: for
 * calls where several copies are loaded. `id` is the symbol's: an index in hook_rows[]
 * (table/rows.h), or one of these.
 * */
enum { WEIR_ELF_ID_GET_DEVICE = 2047, WEIR_ELF_IDS = 2048 };
void *elf_symbol_cached(unsigned id, int bank, const char *symbol);

/* Whether an answer of elf_symbol() for this bank holds for every caller. False: several
 * copies of the library are loaded and the answer was for the caller at hand, so it must not be
 * remembered. */
bool elf_is_settled(int bank);

/* The bank of the object that holds `address`, or -1 when it is none we know. Asks the soname, and
 * for a runtime packed under another name the version its symbols have. */
int cuda_library_of(const void *address);

/* The range of our own code and data, and the path we were loaded from (as the loader has it). */
extern uintptr_t own_library_start, own_library_end;
extern const char *own_library_path;

static inline bool is_own_address(const void *address)
{
  return (uintptr_t)address >= own_library_start && (uintptr_t)address < own_library_end;
}

extern void *(*real_dlmopen)(long, const char *, int);

typedef int spawn_function(pid_t *, const char *, const posix_spawn_file_actions_t *,
                           const posix_spawnattr_t *, char *const[], char *const[]);

/* The next definition after our exec (exec.c); NULL: nobody has it. */
typedef struct exec_functions {
  int (*execve)(const char *, char *const[], char *const[]);
  int (*execv)(const char *, char *const[]);
  int (*execvp)(const char *, char *const[]);
  int (*execvpe)(const char *, char *const[], char *const[]);
  int (*fexecve)(int, char *const[], char *const[]);
  spawn_function *posix_spawn, *posix_spawnp;
} exec_functions;
extern exec_functions real_exec;

/* The next definition after our _exit and _Exit (exits.c). */
typedef struct exit_functions {
  void (*_exit)(int);
  void (*_Exit)(int);
} exit_functions;
extern exit_functions real_exit;

/* The next definition after our usleep and its kin (pauses.c). */
typedef struct pause_functions {
  int (*usleep)(useconds_t);
  int (*nanosleep)(const struct timespec *, struct timespec *);
  int (*clock_nanosleep)(clockid_t, int, const struct timespec *, struct timespec *);
  int (*sched_yield)(void);
  int (*select)(int, fd_set *, fd_set *, fd_set *, struct timeval *);
} pause_functions;
extern pause_functions real_pause;

/* A function's address as dlsym hands it out, which ISO C has no cast for. */
#define WEIR_CODE(function) ((void *)(uintptr_t)(function))

#endif
