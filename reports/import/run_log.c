/* run_log.c: see run_log.h. */
#include "reports/import/run_log.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "reports/base/sort.h"
#include "reports/base/util.h"

enum { IN_MEMORY = 64 << 20 /* bytes */, READ_AT_ONCE = 1024, NEAR = 64 /* records */ };

static int by_logged_time(const void *left, const void *right)
{
  const wr_logged *a = left, *b = right;
  return a->time != b->time ? (a->time > b->time) - (a->time < b->time)
                            : (a->id > b->id) - (a->id < b->id);
}

enum { TIES = 64 };

/* Records in order of time, of which those of one time go by their rows. False: there are many
 * of them. */
static bool order_ties(char *records, size_t count, size_t size)
{
  char *record = malloc(size);
  bool few = record != NULL;
  for (size_t i = 1; few && i < count; i++) {
    char *at = records + i * size;
    size_t back = 0;
    while (back < i && back <= TIES && by_logged_time(at - (back + 1) * size, at) > 0)
      back++;
    few = back <= TIES;
    if (!back || !few) continue;
    char *to = at - back * size;
    memcpy(record, at, size);
    memmove(to + size, to, back * size);
    memcpy(to, record, size);
  }
  free(record);
  return few;
}

static void sort_records(char *records, size_t count, size_t size)
{
  if (!wr_sort_records(records, count, size, offsetof(wr_logged, time)) ||
      !order_ties(records, count, size))
    qsort(records, count, size, by_logged_time);
}

/* Records in order, then `rest` that are, too, become one run. False: out of memory. */
static bool merge_rest(char *records, size_t ordered, size_t rest, size_t size)
{
  if (!ordered) return true;
  char *to = records + (ordered + rest) * size, *copy = malloc(rest * size);
  if (!copy) return false;
  memcpy(copy, records + ordered * size, rest * size);
  while (rest && ordered) {
    const char *a = records + (ordered - 1) * size, *b = copy + (rest - 1) * size;
    bool first = by_logged_time(a, b) > 0;
    memcpy(to -= size, first ? a : b, size);
    if (first)
      ordered--;
    else
      rest--;
  }
  if (rest) memcpy(records, copy, rest * size);
  free(copy);
  return true;
}

/* Mostly all is in order up to some place: only what is after it is sorted, where that is less. */
static void sort_last_run(wr_run_log *log)
{
  if (!log->unsorted) return;
  if (log->ordered < log->count / 2) log->ordered = 0;
  size_t size = log->size, rest = log->count - log->ordered;
  sort_records(log->event + log->ordered * size, rest, size);
  if (!merge_rest(log->event, log->ordered, rest, size))
    qsort(log->event, log->count, size, by_logged_time);
  log->unsorted = false;
}

/* ---- keeping --------------------------------------------------------------------------------- */

int wr_run_file(const char *trace)
{
  char *path = wr_format("%s-runs-XXXXXX", trace);
  int fd = path ? mkostemp(path, O_CLOEXEC) : -1;
  if (fd >= 0) unlink(path);
  free(path);
  return fd;
}

int wr_run_write(int file, const void *data, size_t bytes, uint64_t at)
{
  for (size_t done = 0; done < bytes;) {
    ssize_t n = pwrite(file, (const char *)data + done, bytes - done, (off_t)(at + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n ? errno : ENOSPC;
    done += (size_t)n;
  }
  return 0;
}

int wr_run_read(int file, void *data, size_t bytes, uint64_t at)
{
  for (size_t done = 0; done < bytes;) {
    ssize_t n = pread(file, (char *)data + done, bytes - done, (off_t)(at + done));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n ? errno : EIO;
    done += (size_t)n;
  }
  return 0;
}

/* The last run goes into the file. False: nothing can be kept any more. */
static bool write_run(wr_run_log *log)
{
  sort_last_run(log);
  if (!wr_grow(&log->runs, &log->run_capacity, log->run_count + 1, sizeof(*log->runs)))
    return false;
  if (!log->run_count && (log->file = wr_run_file(log->trace)) < 0) return false;
  log->runs[log->run_count++] = log->count;
  size_t bytes = log->count * log->size;
  if (wr_run_write(log->file, log->event, bytes, log->in_file)) return false;
  log->in_file += bytes;
  log->count = 0;
  return true;
}

void wr_run_drop(wr_run_log *log)
{
  if (log->run_count) close(log->file);
  free(log->event);
  free(log->runs);
  *log = (wr_run_log){.incomplete = true};
}

static const void *record_at(const wr_run_log *log, size_t at)
{
  return log->event + at * log->size;
}

/* Where the record belongs in the last run: mostly at its end or a little before it. If it is
 * further, it goes to the end, and the run is sorted later. */
static size_t place_in_run(wr_run_log *log, const wr_logged *record)
{
  size_t at = log->count;
  if (log->unsorted) return at;
  while (at && log->count - at < NEAR && by_logged_time(record_at(log, at - 1), record) > 0)
    at--;
  log->unsorted = at && by_logged_time(record_at(log, at - 1), record) > 0;
  if (!log->unsorted) return at;
  log->ordered = log->count;
  return log->count;
}

void wr_run_keep(wr_run_log *log, const wr_logged *record)
{
  if (log->incomplete) return;
  bool full = log->count >= (log->most ? log->most : IN_MEMORY / log->size);
  if ((full && !write_run(log)) ||
      !wr_grow(&log->event, &log->capacity, log->count + 1, log->size)) {
    wr_run_drop(log);
    return;
  }
  size_t at = place_in_run(log, record);
  char *place = log->event + at * log->size;
  if (at < log->count) memmove(place + log->size, place, (log->count - at) * log->size);
  memcpy(place, record, log->size);
  log->count++;
}

char *wr_run_path(void)
{
  const char *folder = getenv("TMPDIR");
  return wr_format("%s/weir-report", folder && *folder ? folder : "/tmp");
}

/* ---- reading --------------------------------------------------------------------------------- */

/* A run that is being read. */
typedef struct run_reader {
  const char *at, *end; /* what of it is in memory */
  char *buffer;         /* of those from the file */
  off_t next;           /* place in the file of what is not */
  size_t left;          /* records from there on */
  size_t number;        /* runs that were kept before it */
} run_reader;

/* The runs, from `first` on the one whose next record is the earliest first; before it, those that
 * are over. */
typedef struct run_merge {
  int file;
  size_t size; /* of a record */
  run_reader *runs;
  size_t first, count;
} run_merge;

static weir_status fill_buffer(const run_merge *m, run_reader *r)
{
  size_t records = r->left < READ_AT_ONCE ? r->left : READ_AT_ONCE;
  size_t bytes = records * m->size;
  int wrong = wr_run_read(m->file, r->buffer, bytes, (uint64_t)r->next);
  if (wrong) return weir_fail_errno(WEIR_EIO, wrong, "reading kept events back");
  r->at = r->buffer;
  r->end = r->at + bytes;
  r->next += (off_t)bytes;
  r->left -= records;
  return WEIR_OK;
}

/* Of records of one time and row those that were kept first come first. */
static int by_next(const void *left, const void *right)
{
  const run_reader *a = left, *b = right;
  int order = by_logged_time(a->at, b->at);
  return order ? order : (a->number > b->number) - (a->number < b->number);
}

/* The first has moved on: to its place. */
static void place_first(run_merge *m)
{
  run_reader moved = m->runs[m->first];
  size_t i = m->first;
  for (; i + 1 < m->count && by_next(&m->runs[i + 1], &moved) < 0; i++)
    m->runs[i] = m->runs[i + 1];
  m->runs[i] = moved;
}

static weir_status read_next(run_merge *m)
{
  run_reader *r = &m->runs[m->first];
  weir_status st = WEIR_OK;
  r->at += m->size;
  if (r->at == r->end && r->left) st = fill_buffer(m, r);
  if (st) return st;
  if (r->at == r->end)
    m->first++;
  else
    place_first(m);
  return WEIR_OK;
}

static weir_status open_runs(const wr_run_log *log, run_merge *m, char *buffers)
{
  off_t from = 0;
  weir_status st = WEIR_OK;
  for (size_t i = 0; !st && i < log->run_count; i++) {
    char *buffer = buffers + i * READ_AT_ONCE * log->size;
    m->runs[i] = (run_reader){
        .at = buffer, .buffer = buffer, .next = from, .left = log->runs[i], .number = i};
    from += (off_t)(log->runs[i] * log->size);
    st = fill_buffer(m, &m->runs[i]);
  }
  m->count = log->run_count;
  if (log->count)
    m->runs[m->count++] = (run_reader){
        .at = log->event, .end = log->event + log->count * log->size, .number = log->run_count};
  if (!st) qsort(m->runs, m->count, sizeof(run_reader), by_next);
  return st;
}

weir_status wr_run_each(wr_run_log *log, weir_status (*take)(void *context, const void *record),
                        void *context)
{
  char *buffers = calloc(log->run_count * READ_AT_ONCE + 1, log->size);
  run_merge m = {
      .file = log->file, .size = log->size, .runs = calloc(log->run_count + 1, sizeof(run_reader))};
  weir_status st = WEIR_OK;
  if (!buffers || !m.runs) {
    st = weir_fail(WEIR_ENOMEM, "reading kept events back: out of host memory");
  } else {
    sort_last_run(log);
    st = open_runs(log, &m, buffers);
  }
  while (!st && m.first < m.count) {
    st = take(context, m.runs[m.first].at);
    if (!st) st = read_next(&m);
  }
  free(buffers);
  free(m.runs);
  return st;
}
