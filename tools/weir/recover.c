/* recover.c: what runs left behind whose collector was killed.
 *
 * Their spools would lie in /dev/shm until the machine is started anew. A folder is *left behind*
 * when its collector's lock is free and no process of its spools lives; while we are at it we hold
 * the lock, so that no other run takes it up too. A folder without a lock file may be one whose
 * collector is about to make it: it is left alone while it is young.
 *
 * The lock's file says which trace the collector wrote. If that is there and knows the spools, it
 * gets what it lacks, which is nothing when the collector died after its work; else there is a new
 * trace. Only what is in a trace is removed. */
#include "tools/weir/recover.h"

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
#include "tools/weir/cmd.h"
#include "tools/weir/collector.h"
#include "tools/weir/environment.h"
#include "tools/weir/output.h"
#include "tools/weir/process.h"
#include "tools/weir/spool_list.h"

enum { YOUNG_S = 60 };

typedef struct left_folder {
  char *path;           /* owned */
  int lock;             /* of its collector, held by us; -1: it has none */
  char trace[PATH_MAX]; /* that the collector wrote; "": not known */
  spool_list spools;
  pid_t pid; /* of the first spool */
} left_folder;

/* ---- is it left behind? ---------------------------------------------------------------------- */

static bool is_old(const char *path)
{
  struct stat st;
  return stat(path, &st) == 0 && time(NULL) - st.st_mtime > YOUNG_S;
}

/* Takes the collector's lock. False: it lives, or may be about to. */
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

/* No spool's process lives. Spools that cannot be read have none. */
static bool has_no_writer(left_folder *f)
{
  for (unsigned i = 0; i < f->spools.count; i++) {
    spool_reader *r;
    if (spool_reader_open(&r, f->spools.path[i], false) != WEIR_OK) continue;
    const spool_header *h = spool_reader_header(r);
    bool lives = process_alive((pid_t)h->pid, h->start_time);
    if (!f->pid) f->pid = (pid_t)h->pid;
    spool_reader_close(r);
    if (lives) return false;
  }
  return true;
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

/* ---- taking it in ---------------------------------------------------------------------------- */

static void remove_spools(const left_folder *f)
{
  for (unsigned i = 0; i < f->spools.count; i++)
    (void)unlink(f->spools.path[i]);
  collector_discard(f->path);
}

/* Everything into the trace; -1: it is not all there, else how many events it lacked. */
static int64_t import_all(const left_folder *f, const char *trace, bool merge)
{
  trace_importer *im;
  importer_options o = {.merge = merge};
  if (importer_open(&im, trace, &o) != WEIR_OK) {
    cmd_say("%s.", weir_error_message());
    return -1;
  }
  bool good = !merge || spool_list_known(im, &f->spools);
  for (unsigned i = 0; i < f->spools.count && good; i++)
    good = spool_import(im, f->spools.path[i]);
  if (good && importer_finish(im) != WEIR_OK) {
    cmd_say("%s.", weir_error_message());
    good = false;
  }
  int64_t events = good ? (int64_t)importer_events(im) : -1;
  importer_close(im);
  return events;
}

/* Into the trace that its collector wrote. False: there is none, or it is of another run. */
static bool complete_trace(const left_folder *f)
{
  wr_trace_state state;
  char text[32];
  if (!*f->trace || wr_trace_file_look(f->trace, &state) != WEIR_OK || state != WR_TRACE_KEPT)
    return false;
  int64_t events = import_all(f, f->trace, true);
  if (events < 0) return false;
  if (events)
    cmd_say("%s, whose collector was killed, has now the %s events that it lacked.", f->trace,
            cmd_grouped(text, (uint64_t)events));
  else
    cmd_say("removed what a killed collector left in %s: %s holds it already.", f->path, f->trace);
  return true;
}

static bool make_trace(const left_folder *f)
{
  char text[32], *wanted = cmd_format("weir.%d.recovered.db", (int)f->pid);
  char *trace = output_reserve(wanted);
  int64_t events = trace ? import_all(f, trace, false) : -1;
  if (events >= 0)
    cmd_say("%s: %s events of an earlier run whose collector was killed.", trace,
            cmd_grouped(text, (uint64_t)events));
  else if (trace)
    (void)unlink(trace);
  free(trace);
  free(wanted);
  return events >= 0;
}

static void recover_folder(left_folder *f)
{
  if (!take_lock(f)) return;
  if (!has_spools(f->path)) {
    collector_discard(f->path);
    return;
  }
  if (!spool_list_operand(&f->spools, f->path) || !has_no_writer(f)) return;
  if (!spool_list_check(&f->spools) || (!complete_trace(f) && !make_trace(f)))
    cmd_say("what an earlier run left in %s is kept there.", f->path);
  else
    remove_spools(f);
}

/* ---- the search ------------------------------------------------------------------------------ */

/* A folder of ours alone, by a name that Weir gives. */
static bool is_ours(const char *path, const char *name)
{
  unsigned uid;
  return sscanf(name, "weir-%u-", &uid) == 1 && uid == (unsigned)geteuid() &&
         spool_folder_is_ours(path);
}

static void search_folder(const char *parent)
{
  DIR *d = opendir(parent);
  for (struct dirent *e; d && (e = readdir(d));) {
    left_folder f = {.path = cmd_format("%s/%s", parent, e->d_name), .lock = -1};
    if (is_ours(f.path, e->d_name)) recover_folder(&f);
    spool_list_clear(&f.spools);
    if (f.lock >= 0) (void)close(f.lock);
    free(f.path);
  }
  if (d) (void)closedir(d);
}

void recover_left_behind(void)
{
  bool on = true;
  const char *text = getenv("WEIR_RECOVER"), *places[ENVIRONMENT_SPOOL_PLACES];
  if (text && option_bool(&on, "WEIR_RECOVER", text) != WEIR_OK)
    cmd_say("%s; the default is used.", weir_error_message());
  if (!on) return;
  size_t count = environment_spool_places(places);
  for (size_t i = 0; i < count; i++)
    search_folder(places[i]);
}
