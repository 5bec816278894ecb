/* exec.c: programs that this one starts, and that Weir will not be in.
 *
 * exec and posix_spawn go on to the real ones untouched. Before it, or after it has worked, an
 * image that the library will not be loaded into goes into the spool's header (core/base/image.h
 * reports why it will not): `env LD_PRELOAD=x ./prog`, a static program, a set-uid one. An exec
 * that fails takes it back.
 *
 * Before the real one the parts that have something to do at an end do it (part.h).
 *
 * A vfork()ed child execs in its parent's memory, and any child may have been forked while another
 * thread held a lock. So there is nothing here but system calls, our stack, and atomics in the
 * header, which is a mapping of the spool's file: the parent's or the child's own, which is opened
 * here where the child has none yet. What calls the system call itself (Go's programs) is not
 * seen. */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "core/base/image.h"
#include "core/trace/spool.h"
#include "interpose/elf/elf.h"
#include "interpose/elf/entry.h"
#include "interpose/process/folder.h"
#include "interpose/process/part.h"
#include "interpose/process/process.h"

enum { PATH_ROOM = 1024 };

/* ---- what goes into the header --------------------------------------------------------------- */

/* Is our library named in that list? By its last part, as it may be named by another path. */
static bool names_our_library(const char *list)
{
  const char *slash = own_library_path ? strrchr(own_library_path, '/') : NULL;
  const char *own = slash ? slash + 1 : "libweir-preload.so";
  size_t bytes = strlen(own);

  for (; *list; list++)
    if (strncmp(list, own, bytes) == 0) return true;
  return false;
}

static bool preloads_our_library(char *const *environment)
{
  for (char *const *e = environment; e && *e; e++)
    if (strncmp(*e, "LD_PRELOAD=", 11) == 0) return names_our_library(*e + 11);
  return false;
}

/* Counts an image. Its entry, for uncount_image(); NULL: all are taken, which is counted too. */
static unseen_entry *count_image(spool_header *h, const char *path, unseen_reason why)
{
  for (unsigned i = 0; i < WEIR_SPOOL_UNSEEN; i++) {
    unseen_entry *e = &h->unseen[i];
    uint32_t none = 0, state = atomic_load_explicit(&e->state, memory_order_acquire);
    size_t bytes = strlen(path), kept = bytes < sizeof e->path ? bytes : sizeof e->path - 1;
    if (state == WEIR_UNSEEN_THERE && e->why == why && strncmp(e->path, path, kept) == 0 &&
        e->path[kept] == 0) {
      atomic_fetch_add(&e->count, 1);
      return e;
    }
    if (state || !atomic_compare_exchange_strong(&e->state, &none, WEIR_UNSEEN_FILLING)) continue;
    memcpy(e->path, path, kept);
    e->why = why;
    atomic_store(&e->count, 1);
    atomic_store_explicit(&e->state, WEIR_UNSEEN_THERE, memory_order_release);
    return e;
  }
  atomic_fetch_add(&h->unseen_more, 1);
  return NULL;
}

/* As the image will be able to: the capabilities that a program keeps until its exec, as setpriv(1)
 * does, do not count here. */
static bool may_access(const char *path, int how)
{
  return syscall(SYS_faccessat, AT_FDCWD, path, how) == 0;
}

/* Where the program has given up the user that the folder of spools is of, its new one must be
 * able to read the library, and to enter the folder or ask a collector for a spool. Without `weir
 * run` the collector may be about to start. */
static unseen_reason look_at_user(void)
{
  const char *folder = process_folder.path;
  size_t bytes = strlen(folder);
  uint32_t owner;

  if (!spool_request_owner(folder, bytes, &owner) || owner == geteuid()) return WEIR_UNSEEN_NOT;
  if (own_library_path && !may_access(own_library_path, R_OK)) return WEIR_UNSEEN_UNREADABLE;
  if (process_folder.automatic || may_access(folder, W_OK | X_OK) ||
      spool_request_possible(folder, bytes))
    return WEIR_UNSEEN_NOT;
  return WEIR_UNSEEN_USER;
}

static unseen_entry *inspect_image(const char *path, char *const *environment)
{
  spool_header *h;
  unseen_entry *e = NULL;
  int saved = errno;

  if (process_has_spool() && path) {
    unseen_reason why =
        preloads_our_library(environment) ? image_look(path) : WEIR_UNSEEN_ENVIRONMENT;
    if (!why) why = look_at_user();
    if (why && (h = process_spool())) e = count_image(h, path, why);
  }
  errno = saved;
  return e;
}

/* As execvp() will find it. */
static unseen_entry *inspect_along_path(const char *name, char *const *environment)
{
  char path[PATH_ROOM];
  int saved = errno;
  bool found = name && process_has_spool() && image_find(path, sizeof path, name, getenv("PATH"));

  errno = saved;
  return found ? inspect_image(path, environment) : NULL;
}

/* The exec has failed. */
static int uncount_image(unseen_entry *e, int result)
{
  if (e) atomic_fetch_sub(&e->count, 1);
  return result;
}

/* ---- exec ------------------------------------------------------------------------------------ */

/* A function the loader has not found yet, or that this libc lacks. */
static int fail_unresolved(void)
{
  errno = ENOSYS;
  return -1;
}

/* As found; the first call may come before we are set up. */
#define REAL(name) (loader_find(), real_exec.name)

WEIR_BODY int our_execve(const char *path, char *const argv[], char *const env[])
{
  int (*real)(const char *, char *const[], char *const[]) = REAL(execve);
  unseen_entry *e = inspect_image(path, env);
  process_parts_execs();
  return uncount_image(e, real ? real(path, argv, env) : fail_unresolved());
}
WEIR_ENTRY(execve, our_execve);

WEIR_BODY int our_execv(const char *path, char *const argv[])
{
  int (*real)(const char *, char *const[]) = REAL(execv);
  unseen_entry *e = inspect_image(path, environ);
  process_parts_execs();
  return uncount_image(e, real ? real(path, argv) : fail_unresolved());
}
WEIR_ENTRY(execv, our_execv);

WEIR_BODY int our_execvp(const char *file, char *const argv[])
{
  int (*real)(const char *, char *const[]) = REAL(execvp);
  unseen_entry *e = inspect_along_path(file, environ);
  process_parts_execs();
  return uncount_image(e, real ? real(file, argv) : fail_unresolved());
}
WEIR_ENTRY(execvp, our_execvp);

WEIR_BODY int our_execvpe(const char *file, char *const argv[], char *const env[])
{
  int (*real)(const char *, char *const[], char *const[]) = REAL(execvpe);
  unseen_entry *e = inspect_along_path(file, env);
  process_parts_execs();
  return uncount_image(e, real ? real(file, argv, env) : fail_unresolved());
}
WEIR_ENTRY(execvpe, our_execvpe);

WEIR_BODY int our_fexecve(int fd, char *const argv[], char *const env[])
{
  int (*real)(int, char *const[], char *const[]) = REAL(fexecve);
  char link[32], path[PATH_ROOM];
  int saved = errno;

  (void)snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  long n = syscall(SYS_readlinkat, AT_FDCWD, link, path, sizeof path - 1);
  path[n > 0 ? n : 0] = 0;
  errno = saved;
  unseen_entry *e = inspect_image(n > 0 ? path : NULL, env);
  process_parts_execs();
  return uncount_image(e, real ? real(fd, argv, env) : fail_unresolved());
}
WEIR_ENTRY(fexecve, our_fexecve);

/* The arguments of an execl() in an array on the stack, as libc itself does it. */
static size_t count_arguments(va_list *arguments)
{
  size_t count = 1;
  while (va_arg(*arguments, const char *))
    count++;
  return count;
}

#define WITH_ARGUMENTS(first, count, list)                                                         \
  va_list list;                                                                                    \
  va_start(list, first);                                                                           \
  size_t count = count_arguments(&list);                                                           \
  va_end(list);                                                                                    \
  char *argv[count + 1]; /* the last is the NULL at the end */                                     \
  argv[0] = (char *)(uintptr_t)(first);                                                            \
  va_start(list, first);                                                                           \
  for (size_t i = 1; i <= count; i++)                                                              \
  argv[i] = va_arg(list, char *)

WEIR_BODY int our_execl(const char *path, const char *first, ...)
{
  WITH_ARGUMENTS(first, count, list);
  va_end(list);
  return our_execv(path, argv);
}
WEIR_ENTRY(execl, our_execl);

WEIR_BODY int our_execlp(const char *file, const char *first, ...)
{
  WITH_ARGUMENTS(first, count, list);
  va_end(list);
  return our_execvp(file, argv);
}
WEIR_ENTRY(execlp, our_execlp);

WEIR_BODY int our_execle(const char *path, const char *first, ...)
{
  WITH_ARGUMENTS(first, count, list);
  char *const *env = va_arg(list, char *const *);
  va_end(list);
  return our_execve(path, argv, env);
}
WEIR_ENTRY(execle, our_execle);

/* ---- posix_spawn ----------------------------------------------------------------------------- */

WEIR_BODY int our_posix_spawn(pid_t *pid, const char *path,
                              const posix_spawn_file_actions_t *actions,
                              const posix_spawnattr_t *attributes, char *const argv[],
                              char *const env[])
{
  spawn_function *real = REAL(posix_spawn);
  int error = real ? real(pid, path, actions, attributes, argv, env) : ENOSYS;
  if (!error) (void)inspect_image(path, env);
  return error;
}
WEIR_ENTRY(posix_spawn, our_posix_spawn);

WEIR_BODY int our_posix_spawnp(pid_t *pid, const char *file,
                               const posix_spawn_file_actions_t *actions,
                               const posix_spawnattr_t *attributes, char *const argv[],
                               char *const env[])
{
  spawn_function *real = REAL(posix_spawnp);
  int error = real ? real(pid, file, actions, attributes, argv, env) : ENOSYS;
  if (!error) (void)inspect_along_path(file, env);
  return error;
}
WEIR_ENTRY(posix_spawnp, our_posix_spawnp);
