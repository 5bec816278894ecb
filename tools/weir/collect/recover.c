/* recover.c: weir recover: spools of runs whose collector was killed.
 *
 * Their spools would lie in /dev/shm until the machine is started anew. A folder is *left behind*
 * when its collector's lock is free and no process of its spools lives; while we are at it we hold
 * the lock, so that no other run takes it up too. A folder without a lock file may be one whose
 * collector is about to make it: it is left alone while it is young.
 *
 * Whose. The lock's file holds the path of the trace that the collector wrote. A run takes up by
 * itself only what was to be a trace in the folder of its own trace: anything else may be of
 * another job of the same user, who does not expect files or messages of it here. About that
 * there is one message, on a terminal; `weir recover` lists it, and takes up what it is given.
 *
 * If the trace is there and knows the spools, it gets what it lacks, which is nothing when the
 * collector died after its work; else there is a new trace. Only what is in a trace is removed. */
#include "tools/weir/collect/recover.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/base/options.h"
#include "core/trace/spool.h"
#include "reports/import/trace_file.h"
#include "tools/weir/collect/collector.h"
#include "tools/weir/base/commands.h"
#include "tools/weir/base/environment.h"
#include "tools/weir/base/figures.h"
#include "tools/weir/collect/dump.h"
#include "tools/weir/collect/output.h"
#include "tools/weir/collect/process.h"
#include "tools/weir/collect/recorder.h"
#include "tools/weir/collect/spool_list.h"

enum { YOUNG_S = 60 };

typedef struct left_folder {
  char *path;           /* owned */
  int lock;             /* of its collector, held by us; -1: it has none */
  char trace[PATH_MAX]; /* that the collector wrote; "": not known */
  spool_list spools;
  pid_t pid;      /* of the first spool that can be read; 0: none can */
  char exe[1024]; /* its program */
  uint64_t bytes; /* that the spools take up */
} left_folder;

enum left_state { LEFT_COLLECTED, LEFT_EMPTY, LEFT_WRITTEN, LEFT_OVER };

/* ---- is it left behind? ---------------------------------------------------------------------- */

static bool is_old(const char *path)
{
  struct stat info;
  return stat(path, &info) == 0 && time(NULL) - info.st_mtime > YOUNG_S;
}

/* Takes the collector's lock. Returns false when the collector lives, or may be about to. */
static bool take_lock(left_folder *f)
{
  char *name = cmd_format("%s/" WEIR_SPOOL_COLLECTOR, f->path);
  f->lock = open(name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  free(name);
  if (f->lock < 0) return errno == ENOENT && is_old(f->path);
  if (flock(f->lock, LOCK_EX | LOCK_NB) != 0) return false;
  ssize_t n = read(f->lock, f->trace, sizeof f->trace - 1);
  f->trace[n > 0 ? n : 0] = 0;
  return true;
}

/* Whether the process of a spool lives. One that cannot be read has none. */
static bool look_at_spool(left_folder *f, const char *path)
{
  spool_reader *r;
  struct stat file;
  if (stat(path, &file) == 0) f->bytes += (uint64_t)file.st_blocks * 512;
  if (spool_reader_open(&r, path, false) != WEIR_OK) return false;
  const spool_header *h = spool_reader_header(r);
  bool lives = process_alive((pid_t)h->pid, h->start_time);
  if (!f->pid) {
    f->pid = (pid_t)h->pid;
    (void)snprintf(f->exe, sizeof f->exe, "%.*s", (int)sizeof h->exe, h->exe);
  }
  spool_reader_close(r);
  return lives;
}

static bool has_no_writer(left_folder *f)
{
  bool lives = false;
  for (unsigned i = 0; i < f->spools.count; i++)
    lives = look_at_spool(f, f->spools.path[i]) || lives;
  return !lives;
}

static bool has_spools(const char *path)
{
  bool some = false;
  DIR *d = opendir(path);
  for (struct dirent *e; d && !some && (e = readdir(d));)
    some = spool_is_name(e->d_name);
  if (d) (void)closedir(d);
  return some;
}

static enum left_state look_at_folder(left_folder *f)
{
  if (!take_lock(f)) return LEFT_COLLECTED;
  if (!has_spools(f->path) || !spool_list_operand(&f->spools, f->path)) return LEFT_EMPTY;
  return has_no_writer(f) ? LEFT_OVER : LEFT_WRITTEN;
}

static void left_folder_clear(left_folder *f)
{
  spool_list_clear(&f->spools);
  if (f->lock >= 0) (void)close(f->lock);
  free(f->path);
}

/* ---- taking it in ---------------------------------------------------------------------------- */

static void remove_spools(const left_folder *f)
{
  for (unsigned i = 0; i < f->spools.count; i++)
    (void)unlink(f->spools.path[i]);
  collector_discard(f->path);
}

/* Imports everything into the trace. Returns how many events it lacked; -1: not all is there. */
static int64_t import_all(const left_folder *f, const char *trace, bool merge)
{
  trace_importer *im;
  importer_options o = {.merge = merge};
  if (importer_open(&im, trace, &o) != WEIR_OK) {
    cmd_message("%s.", weir_error_message());
    return -1;
  }
  bool good = !merge || spool_list_known(im, &f->spools);
  for (unsigned i = 0; i < f->spools.count && good; i++)
    good = spool_import(im, f->spools.path[i]);
  if (good && importer_finish(im) != WEIR_OK) {
    cmd_message("%s.", weir_error_message());
    good = false;
  }
  int64_t events = good ? (int64_t)importer_events(im) : -1;
  importer_close(im);
  if (good) figures_keep(trace);
  return events;
}

/* Imports into the trace that the collector wrote. Returns false when there is none, or it is of
 * another run. */
static bool complete_trace(const left_folder *f)
{
  wr_trace_state state;
  char text[32];
  if (!*f->trace || wr_trace_file_look(f->trace, &state) != WEIR_OK || state != WR_TRACE_KEPT)
    return false;
  int64_t events = import_all(f, f->trace, true);
  if (events < 0) return false;
  if (events)
    cmd_message("%s, whose collector was killed, has now the %s events that it lacked.", f->trace,
                cmd_grouped(text, (uint64_t)events));
  else
    cmd_message("removed what a killed collector left in %s: %s holds it already.", f->path,
                f->trace);
  return true;
}

/* Returns how many bytes the name of the folder has that a file is in, without the slash. 0 at the
 * root. */
static int folder_bytes(const char *path)
{
  const char *slash = strrchr(path, '/');
  return slash ? (int)(slash - path) : 0;
}

/* Makes a trace in the folder where the collector's was to be, or in the working directory. */
static bool make_recovered_trace(const left_folder *f)
{
  char text[32];
  char *wanted = cmd_format("%.*s%sweir.%d.recovered.db", folder_bytes(f->trace), f->trace,
                            *f->trace ? "/" : "", (int)f->pid);
  char *trace = output_reserve(wanted);
  int64_t events = trace ? import_all(f, trace, false) : -1;
  if (events >= 0)
    cmd_message("%s: %s events of an earlier run whose collector was killed.", trace,
                cmd_grouped(text, (uint64_t)events));
  else if (trace)
    (void)unlink(trace);
  free(trace);
  free(wanted);
  return events >= 0;
}

static bool has_rings(const left_folder *f)
{
  char *mark = cmd_format("%s/" RECORDER_MARK, f->path);
  bool there = access(mark, F_OK) == 0;
  free(mark);
  return there;
}

/* What a killed recorder has kept becomes a dump. */
static bool recover_rings(const left_folder *f)
{
  char *output = *f->trace ? cmd_format("%s", f->trace) : cmd_format("weir.%d.db", (int)f->pid);
  char *trace = dump_folder(f->path, output, "collector killed");
  if (trace)
    cmd_message(
        "%s: what an earlier run has kept, whose collector was killed; see 'weir report %s'.",
        trace, trace);
  else
    cmd_message("what an earlier run left in %s is kept there.", f->path);
  if (trace) remove_spools(f);
  free(trace);
  free(output);
  return trace != NULL;
}

static bool recover_folder(left_folder *f)
{
  if (has_rings(f)) return recover_rings(f);
  if (!spool_list_check(&f->spools) || (!complete_trace(f) && !make_recovered_trace(f))) {
    cmd_message("what an earlier run left in %s is kept there.", f->path);
    return false;
  }
  remove_spools(f);
  return true;
}

/* ---- the search ------------------------------------------------------------------------------ */

/* Whether a folder is of this user alone and has a name that Weir gives. */
static bool is_own_folder(const char *path, const char *name)
{
  unsigned uid;
  return sscanf(name, "weir-%u-", &uid) == 1 && uid == (unsigned)geteuid() &&
         spool_folder_is_ours(path);
}

/* Calls `visit` with every folder that spools of this user may lie in. */
static void visit_folders(void (*visit)(left_folder *f, enum left_state state, void *context),
                          void *context)
{
  const char *places[ENVIRONMENT_SPOOL_PLACES];
  size_t count = environment_spool_places(places);
  for (size_t i = 0; i < count; i++) {
    DIR *d = opendir(places[i]);
    for (struct dirent *e; d && (e = readdir(d));) {
      left_folder f = {.path = cmd_format("%s/%s", places[i], e->d_name), .lock = -1};
      if (is_own_folder(f.path, e->d_name)) visit(&f, look_at_folder(&f), context);
      left_folder_clear(&f);
    }
    if (d) (void)closedir(d);
  }
}

/* ---- at the end of a run --------------------------------------------------------------------- */

/* Prints one message about a folder, by the first run that meets it. */
static void mention(const left_folder *f)
{
  if (!cmd_chatty()) return;
  char *mark = cmd_format("%s/" WEIR_SPOOL_REPORTED, f->path);
  int fd = open(mark, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  free(mark);
  if (fd < 0) return;
  (void)close(fd);
  cmd_message("an earlier run, whose collector was killed, left %u %s in %s: see 'weir recover'.",
              f->spools.count, f->spools.count == 1 ? "spool" : "spools", f->path);
}

static void take_up_own(left_folder *f, enum left_state state, void *context)
{
  const char *own = context;
  if (state == LEFT_EMPTY) collector_discard(f->path);
  if (state != LEFT_OVER) return;
  int bytes = folder_bytes(own);
  if (*f->trace && folder_bytes(f->trace) == bytes && !strncmp(f->trace, own, (size_t)bytes))
    (void)recover_folder(f);
  else
    mention(f);
}

void recover_left(const char *trace)
{
  bool on = true;
  const char *text = getenv("WEIR_RECOVER");
  if (text && option_bool(&on, "WEIR_RECOVER", text) != WEIR_OK)
    cmd_message("%s; the default is used.", weir_error_message());
  char *own = on ? realpath(trace, NULL) : NULL;
  if (on && !own && *trace == '/') own = cmd_format("%s", trace); /* dumps are named after it */
  if (own) visit_folders(take_up_own, own);
  free(own);
}

/* ---- the command ----------------------------------------------------------------------------- */

static void print_folder(left_folder *f, enum left_state state, void *context)
{
  static const char *const states[] = {[LEFT_COLLECTED] = "its collector lives",
                                       [LEFT_EMPTY] = "empty",
                                       [LEFT_WRITTEN] = "a program of it lives",
                                       [LEFT_OVER] = "left behind"};
  unsigned *count = context;
  char text[32];
  ++*count;
  printf("%s: %s", f->path, states[state]);
  if (f->spools.count)
    printf("; %u %s, %s bytes", f->spools.count, f->spools.count == 1 ? "spool" : "spools",
           cmd_grouped(text, f->bytes));
  if (f->pid) printf("; of %s, pid %d", f->exe, (int)f->pid);
  if (*f->trace) printf("; trace %s", f->trace);
  (void)putchar('\n');
}

static int list_folders(void)
{
  unsigned count = 0;
  visit_folders(print_folder, &count);
  if (!count) puts("no run left anything behind");
  return 0;
}

static bool recover_operand(const char *operand)
{
  left_folder f = {.path = realpath(operand, NULL), .lock = -1};
  bool good = false;
  if (!f.path) {
    cmd_message("cannot read %s: %s.", operand, strerror(errno));
  } else if (!spool_folder_is_ours(f.path)) {
    cmd_message("%s is no folder of spools that is yours alone; 'weir import' reads any.", operand);
  } else {
    enum left_state state = look_at_folder(&f);
    if (state == LEFT_COLLECTED)
      cmd_message("%s has a collector that lives, or may be about to have one: it is left alone.",
                  operand);
    else if (state == LEFT_EMPTY)
      cmd_message("there is no spool in %s.", operand);
    else if (state == LEFT_WRITTEN)
      cmd_message("a program that writes spools in %s lives: it is left alone.", operand);
    else
      good = recover_folder(&f);
  }
  left_folder_clear(&f);
  return good;
}

int recover_main(const cmd *c, int argc, char **argv)
{
  cmd_line line = {0};
  int at = cmd_parse(c, argc, argv, &line);
  bool good = true;
  if (at < 1) return at ? CMD_USAGE : 0;
  figures_ask(&line);
  if (at == argc) return list_folders();
  for (; at < argc; at++)
    good = recover_operand(argv[at]) && good;
  return good ? 0 : CMD_FAILED;
}
