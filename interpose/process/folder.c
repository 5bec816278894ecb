/* folder.c: where a process's spool lies, and who makes a trace of it.
 *
 * Under `weir run` the environment names the folder of spools, and the collector is there. Without
 * it (plain LD_PRELOAD) the first process chooses a folder for itself and its children and a
 * trace; the process that makes the folder, at a first event, starts its collector. */
#include "interpose/process/folder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "core/base/clock.h"
#include "core/base/rank.h"
#include "core/base/trace_name.h"
#include "interpose/elf/elf.h"
#include "interpose/process/settings.h"
#include "interpose/process/process.h"

#define MOST_OUTPUTS 10000    /* names tried for a trace */
#define PAUSE_NS     10000000 /* between two looks for a collector about to start */
#define MOST_PAUSES  100
#define ROOM_FOR_TREE                                                                              \
  (UINT64_C(256) << 20) /* bytes /dev/shm must have free to be chosen, but for a recorder */

run_folder process_folder;

static char name_refused[256]; /* why WEIR_OUTPUT names no trace; reported at the first event */

/* ---- which folder ---------------------------------------------------------------------------- */

/* Where installed, the library among those that others find is a link to it in its own folder. */
static void follow_link(char path[PATH_MAX])
{
  char target[PATH_MAX], whole[2 * PATH_MAX];
  ssize_t n = readlink(path, target, sizeof target - 1);
  if (n <= 0) return;
  target[n] = 0;
  const char *slash = strrchr(path, '/');
  int folder = target[0] == '/' || !slash ? 0 : (int)(slash + 1 - path);
  int length = snprintf(whole, sizeof whole, "%.*s%s", folder, path, target);
  if (length < PATH_MAX) memcpy(path, whole, (size_t)length + 1);
}

static void find_home(void)
{
  if (!own_library_path || !process_absolute_path(process_folder.home, own_library_path)) return;
  follow_link(process_folder.home);
  char *slash = strrchr(process_folder.home, '/');
  if (slash) *slash = 0;
}

/* lib/weir/ and bin/ are where Weir is installed, lib/ and bin/ where it is built. */
static void find_collector(char *program, size_t size)
{
  (void)snprintf(program, size, "%s/../../bin/weir", process_folder.home);
  if (access(program, X_OK) != 0)
    (void)snprintf(program, size, "%s/../bin/weir", process_folder.home);
}

/* Can spools of a whole process tree live here? */
static bool is_usable_directory(const char *path, uint64_t room)
{
  struct statvfs fs;

  return path && path[0] == '/' && access(path, W_OK | X_OK) == 0 && statvfs(path, &fs) == 0 &&
         (uint64_t)fs.f_bavail * fs.f_frsize >= room;
}

/* So that no other user can make the folder first. Where the kernel has no number yet, the clock
 * and an address serve: a squatted folder is refused in any case. */
static unsigned long long random_part(void)
{
  unsigned long long number;
  if (syscall(SYS_getrandom, &number, sizeof number, GRND_NONBLOCK) == sizeof number) return number;
  return clock_ticks() ^ (unsigned long long)(uintptr_t)&number << 32;
}

/* A name that cannot be made, as for want of a rank, is no reason to have no trace. */
static void name_output(const char *pattern)
{
  char name[PATH_MAX];
  if (trace_name_expand(name, sizeof name, pattern, (uint32_t)getpid()) != WEIR_OK) {
    (void)snprintf(name, sizeof name, "weir.%d.db", (int)getpid());
    (void)snprintf(name_refused, sizeof name_refused, "%s", weir_error_message());
  }
  process_absolute_path(process_folder.output, name);
}

/* Without `weir run`: this process chooses the names for itself and all its children. Nothing is
 * made yet: most programs never call CUDA. */
static void choose_directory(void)
{
  const char *place = "/dev/shm", *output = getenv("WEIR_OUTPUT"),
             *root = getenv("WEIR_SPOOL_ROOT");

  const uint64_t room = process_folder.keep ? 2 * process_folder.keep : ROOM_FOR_TREE;
  if (!is_usable_directory(place, room)) place = getenv("TMPDIR");
  if (!is_usable_directory(place, 0)) place = "/tmp";
  if (root && *root) place = root;
  if (snprintf(process_folder.path, sizeof process_folder.path, "%s/weir-%u-%d-%llu-%016llx", place,
               (unsigned)geteuid(), (int)getpid(),
               (unsigned long long)spool_start_time((uint32_t)getpid()),
               random_part()) >= (int)sizeof process_folder.path) {
    process_folder.path[0] = 0;
    return;
  }
  name_output(output && *output ? output : "weir.%p.db");
  process_folder.automatic = true;
  setenv("WEIR_SPOOL_DIR", process_folder.path, 1);
  setenv("WEIR_SPOOL_AUTO", process_folder.path, 1);
  if (process_folder.output[0]) setenv("WEIR_OUTPUT", process_folder.output, 1);
}

/* WEIR_SPOOL_AUTO marks a folder that one of us chose, as against one that `weir run` has made. */
bool process_folder_choose(void)
{
  const char *directory = getenv("WEIR_SPOOL_DIR"), *chosen = getenv("WEIR_SPOOL_AUTO");
  const char *output = getenv("WEIR_OUTPUT");

  find_home();
  if (!directory || !*directory) {
    choose_directory();
  } else if (directory[0] != '/' || strlen(directory) >= sizeof process_folder.path) {
    process_say("WEIR_SPOOL_DIR must be an absolute path, not \"%s\"; nothing is recorded.",
                directory);
    return false;
  } else {
    memcpy(process_folder.path, directory, strlen(directory) + 1);
    process_folder.automatic = chosen && strcmp(chosen, directory) == 0;
    if (process_folder.automatic && output) process_absolute_path(process_folder.output, output);
  }
  return true;
}

/* ---- the collector --------------------------------------------------------------------------- */

/* The process whose end the collector waits for: the one that chose the folder, which its name
 * shows, if it still lives; else this one. */
static int tree_root(void)
{
  unsigned long long started;
  unsigned uid;
  int pid;
  const char *name = strrchr(process_folder.path, '/');

  if (name && sscanf(name, "/weir-%u-%d-%llu", &uid, &pid, &started) == 3 &&
      spool_start_time((uint32_t)pid) == started)
    return pid;
  return (int)getpid();
}

/* 0, or why the collector could not make the trace. */
static int output_error(void)
{
  char parent[PATH_MAX];

  memcpy(parent, process_folder.output, sizeof parent);
  char *slash = strrchr(parent, '/');
  if (!slash) return ENOENT;
  slash[slash == parent] = 0;
  return access(parent, W_OK | X_OK) ? errno : 0;
}

/* Puts `number`, with a character before it, into the trace's name. Returns the name's length; 0: it
 * is too long, or something of that name is there. */
static size_t number_output(char name[PATH_MAX], char before, uint32_t number)
{
  struct stat file;
  size_t stem = strlen(process_folder.output);
  if (stem > 3 && strcmp(process_folder.output + stem - 3, ".db") == 0) stem -= 3;
  int length = snprintf(name, PATH_MAX, "%.*s%c%u%s", (int)stem, process_folder.output, before,
                        number, process_folder.output + stem);
  return length >= PATH_MAX || lstat(name, &file) == 0 ? 0 : (size_t)length;
}

/* A trace that is there is not replaced: of processes that were launched together each takes the
 * name with its rank in it, else the next free name is taken, and reported. The collector makes the
 * file; where two programs want one name at once, it takes the one after. */
static void choose_output(void)
{
  struct stat file;
  char name[PATH_MAX];
  const uint32_t rank = launched_rank();

  if (lstat(process_folder.output, &file) || !(S_ISREG(file.st_mode) || S_ISLNK(file.st_mode)))
    return;
  size_t length = rank ? number_output(name, '.', rank - 1) : 0;
  for (uint32_t n = 2; n < MOST_OUTPUTS && !length; n++)
    length = number_output(name, '-', n);
  if (!length) return;
  process_say("%s is there already: the trace is written to %s.", process_folder.output, name);
  memcpy(process_folder.output, name, length + 1);
}

static void start_collector(void)
{
  char program[PATH_MAX + 16] = "";
  int error = output_error();

  if (name_refused[0])
    process_say("%s: the trace is written to %s.", name_refused, process_folder.output);
  if (!error) choose_output();
  if (error) {
    process_say("cannot write the trace %s (%s): the events stay in %s; `weir import %s/*.spool -o "
                "FILE` makes a trace of them.",
                process_folder.output[0] ? process_folder.output : "in a folder that is gone",
                strerror(error), process_folder.path, process_folder.path);
    return;
  }
  error = ENOENT;
  if (process_folder.home[0]) {
    find_collector(program, sizeof program);
    error =
        process_start_collector(program, process_folder.path, process_folder.output, tree_root());
  }
  if (error)
    process_say(
        "cannot start the collector %s (%s): the events stay in %s; `weir import %s/*.spool -o "
        "FILE` makes a trace of them.",
        program, strerror(error), process_folder.path, process_folder.path);
}

/* Ours, or, where we have given up the user who the folder is named for, still that one's: then its
 * collector is asked for the spool. */
static bool is_of_tree(uint32_t user)
{
  uint32_t named;
  return user == geteuid() ||
         (spool_request_owner(process_folder.path, strlen(process_folder.path), &named) &&
          user == named);
}

/* The folder exists and is ours. `*made`: by this call. `*given`: it is another user's, who gives
 * us our spool. */
static weir_status own_directory(bool *made, bool *given)
{
  struct stat s;

  *given = false;
  *made = mkdir(process_folder.path, 0700) == 0;
  if (*made) return WEIR_OK;
  if (errno != EEXIST)
    return weir_fail_errno(WEIR_EIO, errno, "cannot make the folder %s", process_folder.path);
  if (lstat(process_folder.path, &s)) return WEIR_OK;
  if (!S_ISDIR(s.st_mode) || !is_of_tree(s.st_uid) || s.st_mode & 077)
    return weir_fail(WEIR_EIO, "%s is not a folder of ours", process_folder.path);
  *given = s.st_uid != geteuid();
  return WEIR_OK;
}

/* Opens a spool that the folder's collector gives, which may be about to start. */
static weir_status open_given(weir_status (*open_spool)(void))
{
  const struct timespec pause = {.tv_nsec = PAUSE_NS};
  weir_status st = open_spool();

  for (int tries = 0; tries < MOST_PAUSES && st == WEIR_EIO; tries++) {
    syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &pause, NULL);
    st = open_spool();
  }
  return st;
}

/* Who makes the folder starts its collector; the others join. A collector that has just seen the
 * last of its processes end takes the folder away with it: then it is made anew. */
static weir_status open_automatic(weir_status (*open_spool)(void))
{
  weir_status st = WEIR_ENOENT;

  for (int tries = 0; tries < 3 && st == WEIR_ENOENT; tries++) {
    bool made, given;
    st = own_directory(&made, &given);
    if (st == WEIR_OK) st = given ? open_given(open_spool) : open_spool();
    if (made) start_collector();
  }
  return st;
}

weir_status process_folder_open(weir_status (*open_spool)(void))
{
  return process_folder.automatic ? open_automatic(open_spool) : open_spool();
}

bool process_folder_is_of_run(void)
{
  uint32_t uid; /* the program may have given it up */

  return spool_request_owner(process_folder.path, strlen(process_folder.path), &uid);
}
