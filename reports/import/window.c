/* window.c: see window.h. */
#include "reports/import/window.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "reports/tally/replay.h"

enum { MOST_NOTE = 4096, MOST_REASON = 400 /* bytes */ };

/* ---- the note -------------------------------------------------------------------------------- */

static char *note_path(const char *spool)
{
  const char *slash = strrchr(spool, '/');
  return wr_format("%.*s" WR_WINDOW_NOTE, slash ? (int)(slash + 1 - spool) : 0, spool);
}

static weir_status refuse_note(const char *path, const char *why)
{
  return weir_fail(WEIR_ECORRUPT, "%s is no note of a window: %s", path, why);
}

static weir_status take_note_line(wr_spool *s, const char *path, const char *key, const char *value)
{
  trace_importer *im = s->im;
  char *end = NULL;
  if (!strcmp(key, "reason")) {
    free(im->window.reason);
    im->window.reason = wr_text(value, strnlen(value, MOST_REASON), true);
    return im->window.reason ? WEIR_OK : wr_out_of_memory(im);
  }
  if (strcmp(key, "end_ns") != 0) return WEIR_OK; /* of another version's */
  errno = 0;
  const unsigned long long ns = strtoull(value, &end, 10);
  if (end == value || *end || errno || *value == '-')
    return refuse_note(path, "its end_ns is no number");
  im->window.end_mono = ns;
  im->window.has_end = true;
  return WEIR_OK;
}

/* Its lines end with a newline each: one without was cut. */
static weir_status take_note(wr_spool *s, const char *path, char *text)
{
  weir_status st = WEIR_OK;
  for (char *at = text, *end; *at && !st; at = end + 1) {
    end = strchr(at, '\n');
    if (!end) return refuse_note(path, "it is cut");
    *end = '\0';
    char *blank = strchr(at, ' ');
    if (!blank) return refuse_note(path, "a line of it is not 'key value'");
    *blank = '\0';
    st = take_note_line(s, path, at, blank + 1);
  }
  return st;
}

static weir_status read_note(wr_spool *s, const char *path)
{
  char text[MOST_NOTE + 1];
  struct stat info;
  if (lstat(path, &info))
    return errno == ENOENT ? WEIR_OK : refuse_note(path, "it cannot be examined");
  if (!S_ISREG(info.st_mode) || info.st_size > MOST_NOTE)
    return refuse_note(path, "it is no file, or too long");
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW);
  ssize_t bytes = fd < 0 ? -1 : read(fd, text, MOST_NOTE);
  if (fd >= 0) close(fd);
  if (bytes < 0) return refuse_note(path, "it cannot be read");
  text[bytes] = '\0';
  if (strlen(text) != (size_t)bytes) return refuse_note(path, "it is not text");
  return take_note(s, path, text);
}

weir_status wr_window_look(wr_spool *s, bool known)
{
  trace_importer *im = s->im;
  s->kept = !s->live && wr_replay_there(s->path);
  if (!s->kept) return WEIR_OK;
  if (known)
    return weir_fail(WEIR_EINVAL,
                     "%s has an earlier window of %s: import this one into a file of its own",
                     im->file.path, s->path);
  char *path = note_path(s->path);
  weir_status st = path ? read_note(s, path) : wr_out_of_memory(im);
  free(path);
  if (!st) im->window.any = true;
  return st;
}

/* ---- what came before ------------------------------------------------------------------------ */

static const char window_tables[] =
    "CREATE TABLE IF NOT EXISTS before_window(process INTEGER, kind INTEGER, api INTEGER,"
    " status INTEGER, flags INTEGER, stack INTEGER, device INTEGER, src_device INTEGER,"
    " copy INTEGER, mem INTEGER, src_mem INTEGER, count INTEGER, bytes INTEGER, ns INTEGER,"
    " longest_ns INTEGER);"
    "CREATE TABLE IF NOT EXISTS before_window_memory(process INTEGER, device INTEGER, mem INTEGER,"
    " registered INTEGER, allocs INTEGER, bytes INTEGER, peak INTEGER, peak_at INTEGER,"
    " live INTEGER, live_blocks INTEGER);"
    "CREATE TABLE IF NOT EXISTS before_window_context(process INTEGER, context INTEGER,"
    " device INTEGER);";

static weir_status take_event(void *context, uint32_t thread, uint32_t tid, const trace_event *e)
{
  return wr_take_visitor.event(context, thread, tid, e);
}

static weir_status take_extended(void *context, uint32_t thread, uint32_t tid,
                                 const trace_event *head, const void *payload, size_t bytes)
{
  return wr_take_visitor.extended(context, thread, tid, head, payload, bytes);
}

/* Columns of before_window. */
enum { STACK = 5, DEVICE, SRC_DEVICE };

/* Its stack is what the thread calls it; 0: it is not known any more. */
static weir_status take_total(void *context, const wr_replay_total *t)
{
  wr_spool *s = context;
  const uint64_t *stack =
      t->stack ? hash_map_get(&s->local_stacks, (uint64_t)t->thread << 32 | t->stack) : NULL;
  wr_row *row = wr_batch_row(&s->im->batch, WR_TABLE_BEFORE_WINDOW);
  if (!row) return wr_out_of_memory(s->im);
  *row = (wr_row){.v = {s->process, t->kind, t->api, t->status, t->flags,
                        stack ? (int64_t)*stack : 0, t->device, t->src_device, t->detail,
                        t->mem & 15, t->mem >> 4, (int64_t)t->count, (int64_t)t->bytes,
                        (int64_t)wr_length(s, t->ticks), (int64_t)wr_length(s, t->longest)}};
  if (!stack && !t->forgotten) row->nulls |= 1u << STACK;
  if (t->device == WEIR_DEVICE_NONE) row->nulls |= 1u << DEVICE;
  if (t->src_device == WEIR_DEVICE_NONE) row->nulls |= 1u << SRC_DEVICE;
  return WEIR_OK;
}

/* As in `memory`: NULL for all devices or the host, and for the device side. */
static weir_status take_account(void *context, const wr_replay_account *a)
{
  wr_spool *s = context;
  wr_row *row = wr_batch_row(&s->im->batch, WR_TABLE_BEFORE_WINDOW_MEMORY);
  if (!row) return wr_out_of_memory(s->im);
  *row = (wr_row){.v = {s->process, a->device, a->mem, a->registered, (int64_t)a->allocs,
                        (int64_t)a->bytes, (int64_t)a->peak, wr_time(s, a->peak_ticks),
                        (int64_t)a->live, (int64_t)a->live_blocks}};
  if (a->device == WEIR_DEVICE_NONE) row->nulls |= 1u << 1;
  if (a->device_side) row->nulls |= 1u << 2;
  return WEIR_OK;
}

static weir_status take_home(void *context, uint8_t number, uint8_t device)
{
  wr_spool *s = context;
  wr_row *row = wr_batch_row(&s->im->batch, WR_TABLE_BEFORE_WINDOW_CONTEXT);
  if (!row) return wr_out_of_memory(s->im);
  *row = (wr_row){.v = {s->process, number, device}};
  return WEIR_OK;
}

/* Some of it may be in the trace when it fails, so that it is not tried again. */
weir_status wr_window_begin(wr_spool *s)
{
  trace_importer *im = s->im;
  const wr_replay_visitor visitor = {.records = {s, take_event, take_extended},
                                     .total = take_total,
                                     .account = take_account,
                                     .home = take_home};
  uint64_t latest = 0;
  if (!s->kept || s->begun) return WEIR_OK;
  if (s->failed_window)
    return weir_fail(WEIR_EIO, "%s: what came before its window could not be taken", s->path);
  s->failed_window = true;
  weir_status st = wr_db_exec(&im->db, window_tables);
  if (!st) st = wr_replay_state(s->reader, s->path, &visitor, &latest);
  if (st) return st;
  s->failed_window = false;
  s->begun = true;
  if (latest && wr_time(s, latest) > im->window.from) im->window.from = wr_time(s, latest);
  for (size_t i = 0; i < s->thread_count; i++) /* a further item's call is none of these */
    s->thread[i].last_call = 0;
  if (im->window.has_end) im->window.end = wr_time_of_mono(s, im->window.end_mono);
  return WEIR_OK;
}

weir_status wr_window_finish(const trace_importer *im)
{
  const wr_db *db = &im->db;
  if (!im->window.any) return WEIR_OK;
  const int64_t from = im->window.from - im->least;
  const int64_t end = im->window.has_end ? im->window.end - im->least : im->latest - im->least;
  weir_status st = WEIR_OK;
  if (im->least && wr_db_has_table(db, "before_window_memory"))
    st =
        wr_db_run_of(db, "UPDATE before_window_memory SET peak_at = peak_at - ?1", im->least, NULL);
  if (!st)
    st = wr_db_run_of(db, "INSERT OR REPLACE INTO meta VALUES('window_start_ns', ?1)",
                      from > 0 ? from : 0, NULL);
  if (!st)
    st = wr_db_run_of(db, "INSERT OR REPLACE INTO meta VALUES('window_end_ns', ?1)", end, NULL);
  if (!st && im->window.reason)
    st = wr_db_run_of(db, "INSERT OR REPLACE INTO meta VALUES('window_reason', ?2)", 0,
                      im->window.reason);
  return st;
}
