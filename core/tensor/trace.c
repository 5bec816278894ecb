/* trace.c: the library's own trace (core/weir/trace.h): a spool, written by whoever allocates.
 *
 * Each thread has a pen of its own and hands its chunk over when it ends. A pen from before a fork
 * or of an earlier trace is known by its epoch and begun anew. The spool is opened under the name
 * the writer gives it and renamed at once: readers and the writer's own growth go by the path, so
 * the spool lies in a folder next to `path` until the end. */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "core/base/require.h"
#include "core/base/lock.h"
#include "core/trace/notify.h"
#include "core/trace/api.h"
#include "core/trace/tensor_record.h"
#include "core/weir.h"

static struct {
  pthread_mutex_t lock;
  pthread_once_t once;
  pthread_key_t key; /* a thread's end */
  bool started;
  bool aside; /* the preload library has it all */
  uint16_t api[WEIR_NOTICE_APIS];
  pid_t pid;            /* of who started it */
  char path[PATH_MAX];  /* where it is to be */
  char spool[PATH_MAX]; /* where it is */
  char folder[PATH_MAX];
} own = {.lock = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT};

static __thread spool_writer *pen; /* the thread's, freed at its end; NULL: none yet */

/* Who ends a trace waits for those inside, so that no file goes from under a pen. */
static _Atomic bool active;
static _Atomic unsigned inside;

/* ---- writing --------------------------------------------------------------------------------- */

static void thread_ends(void *writer)
{
  spool_writer *w = writer;
  if (w->epoch == spool_fork_epoch()) spool_writer_release(w);
  free(w);
  pen = NULL;
}

/* Forked children have the pen, and the mapping, of their parent's file: they write nothing. */
static void trace_in_child(void)
{
  if (!own.started) return;
  own.started = false;
  atomic_store(&active, false);
  atomic_store(&inside, 0);
  spool_after_fork();
  if (pen) memset(pen, 0, sizeof *pen);
  (void)notify_record(NULL);
}

static void init_trace(void)
{
  (void)pthread_key_create(&own.key, thread_ends);
  (void)pthread_atfork(NULL, NULL, trace_in_child);
}

/* Whether the calling thread may write; then leave_trace() must follow. */
static bool enter_trace(void)
{
  atomic_fetch_add(&inside, 1);
  if (atomic_load(&active)) return true;
  atomic_fetch_sub(&inside, 1);
  return false;
}

static void leave_trace(void)
{
  atomic_fetch_sub(&inside, 1);
}

/* NULL: no memory, and the record is counted as lost. */
static spool_writer *writer(void)
{
  if (!pen) {
    pen = calloc(1, sizeof *pen);
    if (pen && pthread_setspecific(own.key, pen)) {
      free(pen);
      pen = NULL;
    }
  }
  if (!pen) {
    spool_drop(1, ENOMEM);
    return NULL;
  }
  if (pen->epoch != spool_fork_epoch()) {
    memset(pen, 0, sizeof *pen);
    pen->epoch = spool_fork_epoch();
  }
  return pen;
}

static void block_done(engine_notice *call, const block_notice *what)
{
  int kept = errno;
  if (!enter_trace()) return;
  spool_writer *w = writer();
  trace_event *e = w ? spool_writer_slots(w, 1) : NULL;
  if (e) {
    bool pinned = what->api == WEIR_NOTICE_PINNED_MALLOC || what->api == WEIR_NOTICE_PINNED_FREE;
    bool alloc = what->api == WEIR_NOTICE_MALLOC || what->api == WEIR_NOTICE_PINNED_MALLOC;
    uint32_t commit = atomic_load_explicit(&e->commit, memory_order_relaxed);
    trace_event fact = {.kind = alloc ? WEIR_EV_ALLOC : WEIR_EV_FREE,
                        .api = own.api[what->api],
                        .start = call->start,
                        .status = (uint16_t)what->status,
                        .device = what->device < 0 ? WEIR_DEVICE_NONE : (uint8_t)what->device,
                        .src_device = WEIR_DEVICE_NONE,
                        .mem = pinned ? WEIR_MEM_PINNED : WEIR_MEM_DEVICE,
                        .a = what->address,
                        .bytes = what->bytes,
                        .stream = pinned || !alloc ? 0
                                  : what->stream   ? what->stream
                                                   : WEIR_STREAM_LEGACY};
    event_set_duration(&fact, clock_ticks() - call->start);
    atomic_init(&fact.commit, commit);
    memcpy((void *)e, &fact, sizeof fact);
    spool_writer_commit(w, 1);
  }
  leave_trace();
  errno = kept;
}

static void tensor_fact(const tensor_notice *what)
{
  if (!enter_trace()) return;
  trace_event head = {.start = clock_ticks()};
  spool_writer *w = writer();
  if (w) (void)tensor_record(w, &head, what);
  leave_trace();
}

static const engine_listener listener = {.end = block_done, .tensor = tensor_fact};

/* ---- on and off ------------------------------------------------------------------------------ */

/* "DIR/.weir-trace-XXXXXX" next to the path. */
static weir_status make_folder(const char *path)
{
  const char *slash = path ? strrchr(path, '/') : NULL;
  struct stat s;
  if (!path || !*path || (slash && !slash[1])) return fail_invalid("a trace needs a file's name");
  int dir = slash ? (int)(slash - path) : 1, n;
  n = snprintf(own.folder, sizeof own.folder, "%.*s/.weir-trace-XXXXXX", dir, slash ? path : ".");
  if (n < 0 || (size_t)n >= sizeof own.folder || strlen(path) >= sizeof own.path)
    return fail_invalid("the name of a trace is too long");
  if (!lstat(path, &s)) return weir_fail(WEIR_EIO, "cannot create %s: it exists", path);
  if (!mkdtemp(own.folder))
    return weir_fail_errno(errno == ENOENT ? WEIR_ENOENT : WEIR_EIO, errno, "cannot create %s",
                           path);
  char *full = realpath(own.folder, NULL); /* the program may go elsewhere meanwhile */
  if (!full || strlen(full) >= sizeof own.folder) {
    (void)rmdir(own.folder);
    free(full);
    return weir_fail(WEIR_EIO, "cannot create %s", path);
  }
  memcpy(own.folder, full, strlen(full) + 1);
  free(full);
  char *end = strrchr(own.folder, '/');
  (void)snprintf(own.path, sizeof own.path, "%.*s/%s", (int)(end - own.folder), own.folder,
                 slash ? slash + 1 : path);
  return WEIR_OK;
}

static weir_status open_engine_spool(void)
{
  static const char *const names[] = {"weir_malloc", "weir_free", "weir_pinned_malloc",
                                      "weir_pinned_free"};
  clock_init();
  for (int i = 0; i < WEIR_NOTICE_APIS; i++)
    own.api[i] = (uint16_t)api_find_name(names[i]);
  spool_options o = {.directory = own.folder,
                     .alone = true,
                     .api_count = api_total,
                     .api_hash = api_table_hash(api_total)};
  return spool_open(&o);
}

weir_status weir_trace_start(const char *path)
{
  WEIR_REQUIRE(path);
  weir_status st = WEIR_OK;
  (void)pthread_once(&own.once, init_trace);
  HOLD_LOCK(&own.lock);
  if (own.started)
    st = fail_invalid("a trace is being written already: %s", own.path);
  else if (notify_preload())
    own.aside = true;
  else if (!(st = make_folder(path)) && (st = open_engine_spool()))
    (void)rmdir(own.folder);
  if (!st) {
    own.started = true;
    own.pid = getpid();
    atomic_store(&active, !own.aside);
    if (!own.aside) own.aside = !notify_record(&listener);
  }
  return st;
}

/* From the folder next to the path to the path. */
static weir_status put_spool(void)
{
  char from[PATH_MAX + 64];
  weir_status st = WEIR_EIO;
  for (int n = 0; n < 64 && st; n++) {
    (void)snprintf(from, sizeof from, "%s/%ld-%d" WEIR_SPOOL_SUFFIX, own.folder, (long)own.pid, n);
    if (!access(from, F_OK)) st = WEIR_OK;
  }
  if (st) return weir_fail(WEIR_EIO, "the trace %s is gone", own.path);
  if (rename(from, own.path))
    return weir_fail_errno(WEIR_EIO, errno, "cannot put %s in its place", own.path);
  (void)rmdir(own.folder);
  return WEIR_OK;
}

weir_status weir_trace_stop(void)
{
  weir_status st = WEIR_OK;
  HOLD_LOCK(&own.lock);
  if (!own.started) return fail_invalid("no trace was started");
  if (!own.aside) {
    (void)notify_record(NULL);
    atomic_store(&active, false);
    while (atomic_load(&inside))
      (void)sched_yield();
    if (pen && pen->epoch == spool_fork_epoch()) spool_writer_release(pen);
    spool_close();
    st = put_spool();
  }
  own.started = own.aside = false;
  return st;
}
