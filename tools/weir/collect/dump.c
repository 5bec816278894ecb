/* dump.c: see dump.h. */
#include "tools/weir/collect/dump.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/trace/spool.h"
#include "reports/tally/tally.h"
#include "tools/weir/base/cmd.h"
#include "tools/weir/collect/process.h"

enum { MOST_NUMBER = 9999, COPY_BYTES = 1 << 18, NICENESS = 10, LOOK_MS = 50 };

typedef struct dump {
  unsigned number;      /* in its names */
  char *folder, *trace; /* ours */
  bool ended;           /* of its request */
  pid_t child;
  uint64_t start_time; /* of the child */
  dump_state state;
} dump;

struct dumper {
  char *stem; /* of the names: without .db */
  collector_reap reap;
  void *context;
  dump *dumps;
  unsigned count, room, running;
};

/* ---- names ----------------------------------------------------------------------------------- */

static char *stem_of(const char *output)
{
  size_t n = strlen(output);
  if (n > 3 && !strcmp(output + n - 3, ".db")) n -= 3;
  return cmd_format("%.*s", (int)n, output);
}

static bool is_there(const char *path)
{
  struct stat file;
  return lstat(path, &file) == 0;
}

static char *trace_name(const char *stem, unsigned number)
{
  return cmd_format("%s.%04u.db", stem, number);
}

static void dump_clear(dump *x)
{
  free(x->folder);
  free(x->trace);
}

/* Makes the folder of the first free number. Returns false after a message. */
static bool make_folder(dump *x, const char *stem)
{
  int error = EEXIST;
  for (unsigned n = 1; n <= MOST_NUMBER && error == EEXIST; n++) {
    char *trace = trace_name(stem, n), *folder = cmd_format("%s.dump-%04u.d", stem, n);
    error = is_there(trace) ? EEXIST : mkdir(folder, 0700) ? errno : 0;
    if (!error) {
      *x = (dump){.number = n, .folder = folder, .trace = trace};
      return true;
    }
    if (error != EEXIST)
      cmd_message("no dump was made: cannot make %s: %s.", folder, strerror(error));
    free(trace);
    free(folder);
  }
  if (error == EEXIST) cmd_message("no dump was made: there are %d of %s.", MOST_NUMBER, stem);
  return false;
}

static void remove_folder(const char *path)
{
  DIR *d = opendir(path);
  for (struct dirent *e; d && (e = readdir(d));)
    (void)unlinkat(dirfd(d), e->d_name, 0);
  if (d) (void)closedir(d);
  (void)rmdir(path);
}

/* ---- the copy -------------------------------------------------------------------------------- */

static bool write_whole(int fd, const char *bytes, size_t count, off_t at)
{
  while (count) {
    ssize_t n = pwrite(fd, bytes, count, at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    bytes += n;
    at += n;
    count -= (size_t)n;
  }
  return true;
}

/* Copies what is no hole between two places. */
static bool copy_piece(int from, int to, off_t at, off_t end, char *buffer)
{
  while (at < end) {
    const size_t want = end - at < COPY_BYTES ? (size_t)(end - at) : COPY_BYTES;
    ssize_t n = pread(from, buffer, want, at);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n == 0;
    if (!write_whole(to, buffer, (size_t)n, at)) return false;
    at += n;
  }
  return true;
}

/* From the first byte on: a spool's directory comes before the records, so that whatever it lists was
 * there when they are read. */
static bool copy_data(int from, int to)
{
  struct stat file;
  char *buffer = malloc(COPY_BYTES);
  bool good = buffer && fstat(from, &file) == 0;
  for (off_t at = 0; good && at < file.st_size;) {
    const off_t data = lseek(from, at, SEEK_DATA);
    if (data < 0 && errno == ENXIO) break; /* the rest is a hole */
    off_t end = data < 0 ? -1 : lseek(from, data, SEEK_HOLE);
    const bool plain = data < 0 || end < 0; /* it knows no holes */
    if (plain || end > file.st_size) end = file.st_size;
    good = copy_piece(from, to, plain ? at : data, end, buffer);
    at = end;
  }
  const int why = errno;
  free(buffer);
  errno = why;
  return good && ftruncate(to, file.st_size) == 0;
}

/* Copies a file of a folder; one that is not there is none. */
static bool copy_file(const char *path, const char *folder)
{
  const char *slash = strrchr(path, '/');
  char *copy = cmd_format("%s/%s", folder, slash ? slash + 1 : path);
  int from = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK), to = -1;
  bool good = from >= 0 || errno == ENOENT;
  if (from >= 0) {
    to = open(copy, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    good = to >= 0 && copy_data(from, to);
  }
  int why = errno;
  if (from >= 0) (void)close(from);
  if (to >= 0 && close(to) != 0 && good) good = false, why = errno;
  free(copy);
  errno = why;
  return good;
}

static char *state_of(const char *spool)
{
  size_t bytes = strlen(spool), suffix = sizeof WEIR_SPOOL_SUFFIX - 1;
  if (bytes > suffix && !strcmp(spool + bytes - suffix, WEIR_SPOOL_SUFFIX)) bytes -= suffix;
  return cmd_format("%.*s" WR_TALLY_SUFFIX, (int)bytes, spool);
}

static bool write_window(const char *folder, const char *reason, uint64_t requested_ns,
                         unsigned number)
{
  char *path = cmd_format("%s/" DUMP_WINDOW, folder);
  char *text = cmd_format("reason %s\nrequested_ns %llu\nend_ns %llu\nnumber %u\n", reason,
                          (unsigned long long)requested_ns,
                          (unsigned long long)clock_monotonic_ns(), number);
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  bool good = fd >= 0 && write_whole(fd, text, strlen(text), 0);
  int why = errno;
  if (fd >= 0 && close(fd) != 0 && good) good = false, why = errno;
  free(text);
  free(path);
  errno = why;
  return good;
}

/* States do not change while we are at it: nobody but us commits. */
static bool copy_spools(const dump *x, const dump_request *r)
{
  for (unsigned i = 0; i < r->count; i++) {
    char *state = state_of(r->spools[i]);
    bool good = copy_file(state, x->folder) && copy_file(r->spools[i], x->folder);
    int why = errno;
    free(state);
    errno = why;
    if (!good) return false;
  }
  return write_window(x->folder, r->reason, r->requested_ns, x->number);
}

/* ---- the import ------------------------------------------------------------------------------ */

/* Of its own group: an interrupt at the terminal is the program's. */
__attribute__((noreturn)) static void become_import(const char *folder, const char *trace)
{
  const char *const arguments[] = {"weir", "import", "--force", folder, "-o", trace, NULL};
  sigset_t none;
  char *log = cmd_format("%s/" DUMP_LOG, folder);
  (void)setpgid(0, 0);
  (void)sigemptyset(&none);
  (void)sigprocmask(SIG_SETMASK, &none, NULL);
  (void)setpriority(PRIO_PROCESS, 0, NICENESS);
  int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  int errors = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  (void)dup2(null, STDIN_FILENO);
  (void)dup2(null, STDOUT_FILENO);
  (void)dup2(errors >= 0 ? errors : null, STDERR_FILENO);
  (void)execv("/proc/self/exe", (char *const *)(uintptr_t)arguments);
  _exit(CMD_CANNOT_RUN);
}

static bool import_here(const char *folder, const char *trace)
{
  int status = -1;
  pid_t child = fork();
  if (child == 0) become_import(folder, trace);
  if (child < 0) return false;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR)
    continue;
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* A process between us and the import, so that the folder goes though we are killed meanwhile. It has
 * nothing of ours open: our lock is free once we are gone. */
__attribute__((noreturn)) static void see_to_import(const dump *x)
{
  sigset_t all;
  (void)sigfillset(&all);
  (void)sigprocmask(SIG_SETMASK, &all, NULL);
  (void)setpgid(0, 0);
  (void)close_range(STDERR_FILENO + 1, ~0U, 0);
  const bool good = import_here(x->folder, x->trace);
  if (good) remove_folder(x->folder);
  _exit(!good);
}

static bool start_import(dump *x)
{
  x->child = fork();
  if (x->child == 0) see_to_import(x);
  if (x->child > 0) x->start_time = process_start_time(x->child);
  return x->child > 0;
}

/* The last sentence of the import's, new. */
static char *import_complaint(const char *folder)
{
  char *path = cmd_format("%s/" DUMP_LOG, folder), text[1024] = "";
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;
  if (fd >= 0) (void)close(fd);
  free(path);
  text[n > 0 ? n : 0] = 0;
  for (size_t end = strlen(text); end && (text[end - 1] == '\n' || text[end - 1] == '.');)
    text[--end] = 0;
  const char *line = strrchr(text, '\n');
  line = line ? line + 1 : text;
  return cmd_format("%s", strncmp(line, "weir: ", 6) != 0 ? line : line + 6);
}

static void import_ended(dumper *d, dump *x, bool good)
{
  x->state = good ? DUMP_MADE : DUMP_FAILED;
  d->running--;
  if (good) {
    if (cmd_chatty()) cmd_message("%s: what was kept; see 'weir report %s'.", x->trace, x->trace);
    return;
  }
  char *why = import_complaint(x->folder);
  (void)unlink(x->trace); /* it was not there before */
  if (x->ended) remove_folder(x->folder);
  if (x->ended)
    cmd_message("the dump %s could not be written: %s.", x->trace, why);
  else
    cmd_message("the dump %s could not be written: %s; 'weir import %s -o FILE' tries it again.",
                x->trace, why, x->folder);
  free(why);
}

/* Whether a child has ended, *good: well. */
static bool has_ended(const dumper *d, const dump *x, bool *good)
{
  importer_end_reason reason = WEIR_END_UNKNOWN;
  int detail = -1, status = 0;
  if (d->reap) {
    if (!d->reap(d->context, x->child, x->start_time, &reason, &detail)) return false;
    *good = reason == WEIR_END_EXIT && detail == 0;
    return true;
  }
  pid_t got = waitpid(x->child, &status, WNOHANG);
  *good = got == x->child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  return got == x->child || (got < 0 && errno == ECHILD);
}

/* ---- dumps ----------------------------------------------------------------------------------- */

dumper *dumper_new(const char *output, collector_reap reap, void *context)
{
  dumper *d = cmd_alloc(sizeof *d);
  *d = (dumper){.stem = stem_of(output), .reap = reap, .context = context};
  return d;
}

void dumper_free(dumper *d)
{
  if (!d) return;
  dumper_look(d, true);
  for (unsigned i = 0; i < d->count; i++)
    dump_clear(&d->dumps[i]);
  free(d->dumps);
  free(d->stem);
  free(d);
}

unsigned dumper_begin(dumper *d, const dump_request *r)
{
  dump x;
  if (!make_folder(&x, d->stem)) return 0;
  x.ended = r->ended;
  bool good = copy_spools(&x, r) && start_import(&x);
  if (!good) {
    cmd_message("no dump was made (%s): cannot write %s: %s.", r->reason, x.folder,
                strerror(errno));
    remove_folder(x.folder);
    dump_clear(&x);
    return 0;
  }
  d->dumps = cmd_grow(d->dumps, &d->room, d->count, sizeof *d->dumps);
  d->dumps[d->count++] = x;
  d->running++;
  return d->count;
}

void dumper_look(dumper *d, bool wait)
{
  do {
    for (unsigned i = 0; i < d->count; i++) {
      bool good = false;
      dump *x = &d->dumps[i];
      if (x->state == DUMP_RUNS && has_ended(d, x, &good)) import_ended(d, x, good);
    }
    if (wait && d->running) (void)poll(NULL, 0, LOOK_MS);
  } while (wait && d->running);
}

dump_state dumper_state(const dumper *d, unsigned number)
{
  return number && number <= d->count ? d->dumps[number - 1].state : DUMP_FAILED;
}

dump_state dumper_state_of(const dumper *d, const char *trace)
{
  for (unsigned i = 0; i < d->count; i++)
    if (!strcmp(d->dumps[i].trace, trace)) return d->dumps[i].state;
  return DUMP_FAILED;
}

unsigned dumper_running(const dumper *d)
{
  return d->running;
}

unsigned dumper_made(const dumper *d)
{
  unsigned made = 0;
  for (unsigned i = 0; i < d->count; i++)
    made += d->dumps[i].state == DUMP_MADE;
  return made;
}

const char *dumper_trace(const dumper *d, unsigned number)
{
  return d->dumps[number - 1].trace;
}

/* ---- without a collector --------------------------------------------------------------------- */

char *dump_folder(const char *folder, const char *output, const char *reason)
{
  char *stem = stem_of(output), *trace = NULL, *reserved = NULL;
  unsigned n = 1;
  for (bool taken = true; taken && n <= MOST_NUMBER; n += taken) {
    free(trace);
    free(reserved);
    trace = trace_name(stem, n);
    reserved = cmd_format("%s.dump-%04u.d", stem, n);
    taken = is_there(trace) || is_there(reserved);
  }
  free(stem);
  free(reserved);
  bool good = write_window(folder, reason, clock_monotonic_ns(), n);
  if (!good) cmd_message("cannot write in %s: %s.", folder, strerror(errno));
  if (good && !import_here(folder, trace)) {
    char *why = import_complaint(folder);
    cmd_message("the dump %s could not be written: %s.", trace, why);
    free(why);
    (void)unlink(trace);
    good = false;
  }
  if (good) return trace;
  free(trace);
  return NULL;
}
