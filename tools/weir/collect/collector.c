/* collector.c: follows the spools of one folder until their processes are gone.
 *
 * A spool is *new* until its header can be read and the importer has taken it, *live* while its
 * process may write, *ending* from when that process is known to be gone until its last event is in
 * the trace, then *done*: removed from the folder, and from the list too unless a child that its
 * process forked is about to open a spool. So both stay as short as the number of live processes.
 *
 * A process is known by pid and start time, and followed by a pidfd, which also becomes readable
 * when it ended when somebody else reaps it; without pidfds /proc is asked at every turn. A
 * newer spool of the same process means that it exec'd. A *stranger* is a process that was not
 * there when its spool was found: *lost*, that is gone already, or in another pid namespace;
 * there, if its header has no end, it is taken as alive until the caller abandons it.
 *
 * Thousands of short processes. A turn looks at the folder only when a spool has got its name
 * since, and at what live programs have written when it is time to, whatever else woke us. Turns
 * are TURN_MS apart, so that one serves all processes that came and went meanwhile.
 *
 * A trace that cannot grow (disk full) is no end: nothing is lost while the spools hold it, so
 * there is one message, and another try every second. */
#include "tools/weir/collect/collector.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/trace/spool.h"
#include "tools/weir/base/cmd.h"
#include "tools/weir/collect/control.h"
#include "tools/weir/collect/dump.h"
#include "tools/weir/collect/nvml.h"
#include "tools/weir/collect/process.h"
#include "tools/weir/collect/recorder.h"
#include "tools/weir/collect/spool_server.h"
#include "tools/weir/collect/steer.h"
#include "tools/weir/collect/spool_list.h"

enum {
  TURN_MS = 5,
  POLL_BUSY_MS = 20,
  POLL_IDLE_MS = 160,
  RETRY_MS = 1000,
  FINISH_TRIES = 3,
  REMOVE_TRIES = 8
};
#define NS_A_MS       UINT64_C(1000000)
#define SAMPLE_NS     (1000 * NS_A_MS)
#define FORK_GRACE_NS (2000 * NS_A_MS) /* a fork's child that was ever to open a spool soon has */

enum spool_state { SPOOL_NEW, SPOOL_LIVE, SPOOL_ENDING, SPOOL_DONE };

typedef struct spool {
  char *path;       /* ours */
  const char *name; /* in path */
  uint64_t name_hash;
  spool_reader *reader; /* for its header only, NULL while new */
  uint32_t number;      /* the importer's */
  ring *ring;           /* the recorder's */
  enum spool_state state;
  importer_end_reason reason; /* once ending */
  int detail;                 /* exit status or signal, -1 unknown */
  int pidfd;                  /* -1: none */
  pid_t pid;
  uint64_t start_time; /* of the process */
  uint64_t opened_ns;  /* CLOCK_MONOTONIC of its opening: differs between images of one process */
  uint64_t done_ns;    /* CLOCK_MONOTONIC when it became done */
  bool stranger;       /* its process was never found */
  bool lost;           /* and it is gone for certain */
  bool noted;          /* ending, and the recorder knows */
  bool kept;           /* done, but damaged: its file is kept */
  struct {
    uint64_t ns, events; /* CLOCK_MONOTONIC, and what was imported then */
  } sample[2];           /* the older first, SAMPLE_NS apart at least; ns 0: none */
} spool;

typedef struct announced {
  uint32_t pid; /* 0: nobody */
  uint64_t start_time;
} announced;

struct collector {
  const char *dir;          /* borrowed */
  int lock;                 /* WEIR_SPOOL_COLLECTOR in dir: held until we end; -1: none */
  trace_importer *importer; /* NULL: there is a recorder */
  recorder *recorder;       /* borrowed; NULL: there is an importer */
  collector_reap reap;
  void *context;
  int epoll, inotify;
  spool *spools; /* unfinished ones only */
  unsigned count, room;
  int wait_ms;          /* between two looks at what live programs have written */
  uint64_t poll_ns;     /* CLOCK_MONOTONIC of the next of them */
  uint64_t turn_ns;     /* CLOCK_MONOTONIC at the end of the last turn */
  bool looked;          /* all names in the folder are known but for those that inotify reports */
  bool stuck;           /* the trace could not be written at the last try */
  bool refused;         /* at the last scan a spool could not be taken in: disk, descriptors */
  bool warned;          /* there was a message about it */
  uint64_t retry_ns;    /* when stuck: CLOCK_MONOTONIC of the next try */
  nvml_sampler *nvml;   /* NULL: not to be asked */
  spool_server *server; /* NULL: nobody is given spools */
  control *control;     /* NULL: nobody can ask anything */
  steer *steer;
  live *live;                       /* NULL: nobody looks */
  void (*serve_too)(void *context); /* NULL: nobody */
  void *serve_too_context;
  announced announced[WEIR_SPOOL_ANNOUNCED]; /* as seen last */
};

static bool poll_spools(collector *c);

/* ---- set-up ---------------------------------------------------------------------------------- */

static bool watch_descriptor(collector *c, int fd)
{
  struct epoll_event e = {.events = EPOLLIN, .data.fd = fd};
  return epoll_ctl(c->epoll, EPOLL_CTL_ADD, fd, &e) == 0;
}

/* Makes a file that is locked from its first moment on: a process that can lock it knows that its
 * collector is gone. It holds the path of the trace. Without it the folder is only not recovered
 * by itself. */
static int make_lock(const char *dir, const char *trace)
{
  char *path = realpath(trace, NULL);
  if (!path && *trace == '/')
    path = cmd_format("%s", trace); /* of a recorder, there is none so far */
  char *made = cmd_format("%s/" WEIR_SPOOL_COLLECTOR WEIR_SPOOL_UNBORN, dir);
  char *name = cmd_format("%s/" WEIR_SPOOL_COLLECTOR, dir);
  int fd = open(made, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd >= 0 &&
      (flock(fd, LOCK_EX | LOCK_NB) != 0 || !path ||
       write(fd, path, strlen(path)) != (ssize_t)strlen(path) || rename(made, name) != 0)) {
    (void)unlink(made);
    (void)close(fd);
    fd = -1;
  }
  free(path);
  free(made);
  free(name);
  return fd;
}

static void show_spools(void *context, void (*show)(void *to, pid_t pid, const char *path),
                        void *to)
{
  const collector *c = context;
  for (unsigned i = 0; i < c->count; i++)
    if (c->spools[i].state == SPOOL_LIVE) show(to, c->spools[i].pid, c->spools[i].path);
}

collector *collector_new(const char *dir, const char *trace, trace_importer *importer,
                         collector_reap reap, void *context)
{
  collector *c = cmd_alloc(sizeof *c);
  *c = (collector){.dir = dir, .importer = importer, .reap = reap, .context = context};
  c->lock = make_lock(dir, trace);
  c->wait_ms = POLL_BUSY_MS;
  c->epoll = epoll_create1(EPOLL_CLOEXEC);
  c->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  if (c->epoll < 0) {
    cmd_message("cannot watch %s: %s.", dir, strerror(errno));
    collector_free(c);
    return NULL;
  }
  /* Without inotify (its limits are per user) the folder is looked at on every turn instead. */
  if (c->inotify >= 0 &&
      (inotify_add_watch(c->inotify, dir, IN_MOVED_TO) < 0 || !watch_descriptor(c, c->inotify))) {
    (void)close(c->inotify);
    c->inotify = -1;
  }
  c->control = control_new(dir);
  if (c->control) (void)watch_descriptor(c, control_fd(c->control));
  c->steer = steer_new(c->control, show_spools, c);
  return c;
}

steer *collector_steer(collector *c)
{
  return c->steer;
}

/* What has become of a dump that was asked for: the reply is `runs` or `made`. */
static bool answer_dumped(void *context, FILE *reply, unsigned count, char *const *words)
{
  const dump_state state = count ? recorder_dump_state(context, words[0]) : DUMP_FAILED;
  if (state == DUMP_FAILED)
    (void)fprintf(reply, "the dump could not be written: its collector has printed why\n");
  else
    (void)fputs(state == DUMP_RUNS ? "runs\n" : "made\n", reply);
  return state != DUMP_FAILED;
}

/* `weir dump`: the reply is the name of the trace, which is being written then. */
static bool answer_dump(void *context, FILE *reply, unsigned count, char *const *words)
{
  const char *trace = recorder_ask(context);
  (void)count; /* of whom is meant: all of the folder are dumped */
  (void)words;
  if (!trace) (void)fprintf(reply, "no dump was made: its collector has printed why\n");
  if (trace) (void)fprintf(reply, "%s\n", trace);
  return trace != NULL;
}

void collector_record(collector *c, recorder *r)
{
  c->recorder = r;
  if (!c->control) return;
  control_on(c->control, "dump", answer_dump, r);
  control_on(c->control, "dumped", answer_dumped, r);
}

unsigned collector_dumps(const collector *c)
{
  return c->recorder ? recorder_dumps(c->recorder) : 0;
}

control *collector_control(collector *c)
{
  return c->control;
}

/* Before programs get their chunks back. */
static void lead_tallies(void *context)
{
  const collector *c = context;
  for (unsigned i = 0; i < c->count; i++)
    if (c->spools[i].state == SPOOL_LIVE) (void)live_take(c->live, c->spools[i].path);
}

live *collector_watch(collector *c)
{
  if (c->live || !(c->live = live_new())) return c->live;
  if (c->importer) importer_read_too(c->importer, lead_tallies, c);
  lead_tallies(c);
  return c->live;
}

void collector_read_on(collector *c, bool import)
{
  if (import && !c->stuck && c->count) c->poll_ns = 0, (void)poll_spools(c);
  if (c->live) lead_tallies(c);
}

void collector_serve_too(collector *c, int fd, void (*serve)(void *context), void *context)
{
  c->serve_too = serve;
  c->serve_too_context = context;
  if (fd >= 0) (void)watch_descriptor(c, fd);
}

static uint64_t events_of(const collector *c, const spool *s)
{
  if (c->recorder) return s->ring ? recorder_events_of(s->ring) : 0;
  return importer_events_of(c->importer, s->number);
}

void collector_each(const collector *c, void (*show)(void *context, const collector_process *p),
                    void *context)
{
  const uint64_t now = clock_monotonic_ns();
  for (unsigned i = 0; i < c->count; i++) {
    const spool *s = &c->spools[i];
    if (s->state != SPOOL_LIVE) continue;
    collector_process p = {s->pid, spool_reader_header(s->reader), 0, 0};
    p.events = events_of(c, s);
    const uint64_t ns = now - s->sample[0].ns, more = p.events - s->sample[0].events;
    if (s->sample[0].ns && ns) p.events_per_second = (uint64_t)((double)more * 1e9 / (double)ns);
    show(context, &p);
  }
}

/* Between two samples is a second at least, so that a rate is of the last one or two. */
static void take_samples(collector *c)
{
  const uint64_t now = clock_monotonic_ns();
  for (unsigned i = 0; i < c->count; i++) {
    spool *s = &c->spools[i];
    if (s->state != SPOOL_LIVE || now - s->sample[1].ns < SAMPLE_NS) continue;
    const bool first = !s->sample[1].ns;
    s->sample[0] = s->sample[1];
    s->sample[1].ns = now;
    s->sample[1].events = events_of(c, s);
    if (first) s->sample[0] = s->sample[1];
  }
}

void collector_serve(collector *c, pid_t ancestor)
{
  c->server = spool_server_new(c->dir, ancestor, process_start_time(ancestor));
  if (c->server) (void)watch_descriptor(c, spool_server_fd(c->server));
}

static void spool_clear(spool *s)
{
  spool_reader_close(s->reader);
  if (s->pidfd >= 0) (void)close(s->pidfd); /* leaves the epoll set by itself */
  free(s->path);
}

void collector_free(collector *c)
{
  if (!c) return;
  for (unsigned i = 0; i < c->count; i++)
    spool_clear(&c->spools[i]);
  free(c->spools);
  nvml_sampler_free(c->nvml);
  spool_server_free(c->server);
  steer_free(c->steer);
  control_free(c->control);
  live_free(c->live);
  if (c->lock >= 0) (void)close(c->lock);
  if (c->inotify >= 0) (void)close(c->inotify);
  if (c->epoll >= 0) (void)close(c->epoll);
  free(c);
}

/* Returns the ms until then, rounded up. */
static int ms_until(uint64_t then_ns)
{
  uint64_t now = clock_monotonic_ns();
  const uint64_t ms = now < then_ns ? (then_ns - now + NS_A_MS - 1) / NS_A_MS : 0;
  return ms < INT32_MAX ? (int)ms : INT32_MAX;
}

static int timeout(const collector *c, int idle_ms)
{
  const uint64_t steered_ns = steer_due(c->steer);
  int ms = c->inotify < 0 ? POLL_IDLE_MS : idle_ms;
  if (c->stuck)
    ms = RETRY_MS;
  else if (c->count)
    ms = ms_until(c->poll_ns);
  if (steered_ns == UINT64_MAX) return ms;
  const int steered = ms_until(steered_ns);
  return ms < 0 || steered < ms ? steered : ms;
}

void collector_wait(const collector *c, int urgent, int idle_ms)
{
  struct pollfd p[2] = {{.fd = urgent, .events = POLLIN}, {.fd = c->epoll, .events = POLLIN}};
  int pause = ms_until(c->turn_ns + TURN_MS * NS_A_MS);
  if (pause && poll(p, 1, pause) > 0) return;
  (void)poll(p, 2, timeout(c, idle_ms));
}

/* The spool itself cannot be read, or not yet: that is no reason to wait for the trace's disk. */
static bool unreadable(weir_status st)
{
  return st == WEIR_ECORRUPT || st == WEIR_EVERSION || st == WEIR_ENOENT;
}

/* Returns whether the importer's status means that the trace could not be written. There is one
 * message; everything is tried again later, so the caller leaves things as they are. */
static bool note_failure(collector *c, weir_status st)
{
  if (st == WEIR_OK || unreadable(st)) return false;
  if (!c->warned) cmd_message("%s; nothing is lost yet, trying again.", weir_error_message());
  c->warned = c->stuck = true;
  c->retry_ns = clock_monotonic_ns() + RETRY_MS * NS_A_MS;
  return true;
}

/* ---- finding spools and their processes ------------------------------------------------------ */

static uint64_t hash_of_process(const char *name)
{
  uint64_t hash = UINT64_C(0xcbf29ce484222325);
  while (*name)
    hash = (hash ^ (unsigned char)*name++) * UINT64_C(0x100000001b3);
  return hash;
}

/* The name of a spool that has left the folder is free: the next image of its process takes it. */
static bool is_known_spool(const collector *c, const char *name)
{
  const uint64_t hash = hash_of_process(name);
  for (unsigned i = 0; i < c->count; i++)
    if (c->spools[i].name_hash == hash && (c->spools[i].state != SPOOL_DONE || c->spools[i].kept) &&
        !strcmp(c->spools[i].name, name))
      return true;
  return false;
}

static void add_spool(collector *c, const char *name)
{
  c->spools = cmd_grow(c->spools, &c->room, c->count, sizeof *c->spools);
  spool *s = &c->spools[c->count++];
  *s = (spool){.path = cmd_format("%s/%s", c->dir, name), .pidfd = -1, .detail = -1};
  s->name = s->path + strlen(c->dir) + 1;
  s->name_hash = hash_of_process(s->name);
}

/* Whether a process that was not found (`start_time`: of what has its pid, 0: nobody, or there was
 * no descriptor to look with) is no more: only where the pids of its spool are ours too. */
static bool is_lost(const spool_header *h, uint64_t start_time)
{
  struct stat own;
  if (!h->pid_namespace || stat("/proc/self/ns/pid", &own) || own.st_ino != h->pid_namespace)
    return false;
  return start_time || (kill((pid_t)h->pid, 0) && errno == ESRCH);
}

/* Finds the process that writes `s`, and a way to hear of its end. Its pid is that in the
 * spool's name, which is the header's, but where a process of another pid namespace was given
 * its spool. */
static void find_spool_writer(collector *c, spool *s)
{
  const spool_header *h = spool_reader_header(s->reader);
  long named = strtol(s->name, NULL, 10);
  bool elsewhere = named > 0 && named <= INT32_MAX && (uint32_t)named != h->pid;
  s->pid = elsewhere ? (pid_t)named : (pid_t)h->pid;
  s->start_time = elsewhere ? process_start_time(s->pid) : h->start_time;
  s->opened_ns = h->clock_first.mono_ns;
  s->pidfd = process_pidfd(s->pid);
  /* The order matters: only a pidfd that was open before the start time agreed is the right one. A
   * zombie is still found, and its pidfd is readable at once. */
  uint64_t start_time = process_start_time(s->pid);
  s->stranger = start_time != s->start_time;
  s->lost = s->stranger && s->start_time && is_lost(h, start_time);
  if (s->pidfd >= 0 && (s->stranger || !watch_descriptor(c, s->pidfd))) {
    (void)close(s->pidfd);
    s->pidfd = -1;
  }
}

/* Marks the older of two live spools of one process: exec replaced its image. */
static void end_older_image(collector *c, spool *s)
{
  for (unsigned i = 0; i < c->count; i++) {
    spool *o = &c->spools[i];
    if (o == s || o->state != SPOOL_LIVE || o->pid != s->pid || o->start_time != s->start_time)
      continue;
    spool *older = o->opened_ns < s->opened_ns ? o : s;
    older->state = SPOOL_ENDING;
    older->reason = WEIR_END_EXEC;
  }
}

/* Does what note_failure() does for one spool: the others go on, and their ends make room for
 * it. */
static void note_refusal(collector *c, weir_status st)
{
  if (unreadable(st)) return;
  if (!c->warned) cmd_message("%s; nothing is lost yet, trying again.", weir_error_message());
  c->warned = c->refused = true;
}

/* Sets the time of the next look at what is written, at most so far away. */
static void poll_within(collector *c, int ms)
{
  uint64_t then = clock_monotonic_ns() + (uint64_t)ms * NS_A_MS;
  c->wait_ms = ms;
  if (c->poll_ns > then) c->poll_ns = then;
}

/* Takes a new spool in; leaves it new when its header is not written yet, the disk is full or there
 * are no descriptors left. */
static void admit_spool(collector *c, spool *s)
{
  weir_status st = s->reader ? WEIR_OK : spool_reader_open(&s->reader, s->path, false);
  if (st != WEIR_OK)
    s->reader = NULL;
  else
    st = c->recorder ? recorder_add(c->recorder, s->path, &s->ring)
                     : importer_add(c->importer, s->path, true, &s->number);
  if (st != WEIR_OK) {
    note_refusal(c, st);
    return;
  }
  s->state = SPOOL_LIVE;
  find_spool_writer(c, s);
  end_older_image(c, s);
  steer_take(c->steer, s->path);
  poll_within(c, POLL_BUSY_MS);
}

static void look_for_names(collector *c)
{
  DIR *d = opendir(c->dir);
  for (struct dirent *e; d && (e = readdir(d));)
    if (spool_is_name(e->d_name) && !is_known_spool(c, e->d_name)) add_spool(c, e->d_name);
  if (d) (void)closedir(d);
  c->looked = d && c->inotify >= 0;
}

void collector_scan(collector *c)
{
  char events[4096];
  if (c->server) spool_server_serve(c->server);
  while (c->inotify >= 0 && read(c->inotify, events, sizeof events) > 0)
    c->looked = false;
  if (!c->looked) look_for_names(c);
  c->refused = false;
  for (unsigned i = 0; i < c->count; i++)
    if (c->spools[i].state == SPOOL_NEW) admit_spool(c, &c->spools[i]);
}

/* ---- ends ------------------------------------------------------------------------------------ */

static uint32_t closed_flag(spool *s)
{
  return atomic_load_explicit(&spool_reader_header(s->reader)->closed, memory_order_relaxed);
}

static bool was_reaped(collector *c, spool *s)
{
  return c->reap && c->reap(c->context, s->pid, s->start_time, &s->reason, &s->detail);
}

static bool process_gone(collector *c, spool *s)
{
  struct pollfd p = {.fd = s->pidfd, .events = POLLIN};
  if (s->stranger) return s->lost || closed_flag(s) != 0 || was_reaped(c, s);
  return s->pidfd >= 0 ? poll(&p, 1, 0) > 0 : !process_alive(s->pid, s->start_time);
}

static void begin_end(collector *c, spool *s)
{
  uint32_t how = closed_flag(s);
  s->state = SPOOL_ENDING;
  if (s->pidfd >= 0) (void)close(s->pidfd); /* it would stay readable */
  s->pidfd = -1;
  s->reason = how == 1 ? WEIR_END_EXIT : WEIR_END_GONE;
  (void)was_reaped(c, s);
  if (how == 2) s->reason = WEIR_END_EXEC, s->detail = -1;
}

static void note_ends(collector *c)
{
  for (unsigned i = 0; i < c->count; i++)
    if (c->spools[i].state == SPOOL_LIVE && process_gone(c, &c->spools[i]))
      begin_end(c, &c->spools[i]);
}

/* Removes a spool that is drained and committed: it is done. */
static void leave_folder(spool *s)
{
  s->state = SPOOL_DONE;
  s->done_ns = clock_monotonic_ns();
  if (!s->kept) (void)unlink(s->path);
}

/* A recorder's end may wait for its dump. */
static void end_ring(collector *c, spool *s)
{
  if (!s->noted) recorder_end(c->recorder, s->ring, s->reason, s->detail);
  if (!s->noted && c->live) live_end(c->live, s->path);
  s->noted = true;
  switch (recorder_end_of(c->recorder, s->ring)) {
  case RING_WAITS:
    return;
  case RING_STAYS:
    s->kept = true;
    break;
  default:
    recorder_drop(c->recorder, s->ring);
    s->ring = NULL;
  }
  leave_folder(s);
}

static void end_rings(collector *c)
{
  for (unsigned i = 0; i < c->count; i++)
    if (c->spools[i].state == SPOOL_ENDING) end_ring(c, &c->spools[i]);
}

/* Drains ending spools for the last time, with one commit for all of them. */
static void end_spools(collector *c)
{
  if (c->recorder) {
    end_rings(c);
    return;
  }
  bool any = false;
  for (unsigned i = 0; i < c->count; i++) {
    spool *s = &c->spools[i];
    if (s->state != SPOOL_ENDING) continue;
    weir_status st = importer_drain(c->importer, s->number, s->reason, s->detail);
    if (note_failure(c, st)) return;
    if (c->live) live_end(c->live, s->path);
    any = true;
    s->kept = st != WEIR_OK;
    if (s->kept) cmd_message("%s is kept: %s.", s->path, weir_error_message());
  }
  if (!any || note_failure(c, importer_commit(c->importer))) return;
  for (unsigned i = 0; i < c->count; i++)
    if (c->spools[i].state == SPOOL_ENDING) leave_folder(&c->spools[i]);
}

static bool awaits_fork(spool *s)
{
  const spool_header *h;
  if (s->state != SPOOL_DONE || clock_monotonic_ns() - s->done_ns > FORK_GRACE_NS) return false;
  h = spool_reader_header(s->reader);
  return atomic_load_explicit(&h->forks_begun, memory_order_relaxed) >
         atomic_load_explicit(&h->forks_done, memory_order_relaxed);
}

static void drop_done(collector *c)
{
  unsigned kept = 0;
  for (unsigned i = 0; i < c->count; i++) {
    spool *s = &c->spools[i];
    if (s->state == SPOOL_DONE && !s->kept && !awaits_fork(s))
      spool_clear(s);
    else
      c->spools[kept++] = *s;
  }
  c->count = kept;
}

/* ---- turns ----------------------------------------------------------------------------------- */

/* Imports what live programs have written, when it is time to. Returns false when the trace could
 * not be written. */
static bool poll_spools(collector *c)
{
  uint64_t events = 0;
  if (clock_monotonic_ns() < c->poll_ns) return true;
  if (c->recorder && c->live) lead_tallies(c);
  if (note_failure(c, c->recorder ? recorder_poll(c->recorder, &events)
                                  : importer_poll(c->importer, &events)))
    return false;
  c->wait_ms = events ? POLL_BUSY_MS : c->wait_ms * 2;
  if (c->wait_ms > POLL_IDLE_MS) c->wait_ms = POLL_IDLE_MS;
  const int pause = c->recorder ? recorder_pause_ms(c->recorder) : 0;
  if (pause) c->wait_ms = pause;
  c->poll_ns = clock_monotonic_ns() + (uint64_t)c->wait_ms * NS_A_MS;
  return true;
}

/* ---- what devices have in use ---------------------------------------------------------------- */

void collector_ask_nvml(collector *c)
{
  c->nvml = nvml_sampler_new();
  if (c->nvml && c->recorder) nvml_sampler_steady(c->nvml);
}

static bool is_traced(void *context, unsigned pid)
{
  const collector *c = context;
  for (unsigned i = 0; i < c->count; i++)
    if (c->spools[i].state == SPOOL_LIVE && c->spools[i].pid == (pid_t)pid) return true;
  return false;
}

static weir_status keep_in_trace(void *context, const importer_usage *u)
{
  const collector *c = context;
  return importer_add_usage(c->importer, u);
}

static weir_status keep_in_recorder(void *context, const importer_usage *u)
{
  const collector *c = context;
  return recorder_usage(c->recorder, u);
}

/* Asks NVML from the first spool on: a process is about to use a device. */
static void sample_devices(collector *c, bool last)
{
  if (!c->nvml || (!last && !c->count)) return;
  uint64_t now = clock_monotonic_ns(), due = nvml_sampler_due(c->nvml);
  if (due == UINT64_MAX || (last ? !due : now < due)) return; /* 0: there was no process */
  const nvml_keeper keep = c->recorder ? keep_in_recorder : keep_in_trace;
  (void)note_failure(c, nvml_sampler_ask(c->nvml, keep, now, last, is_traced, c));
}

static void run_turn(collector *c)
{
  collector_scan(c);
  sample_devices(c, false);
  note_ends(c); /* before the drains: what they wrote last is then surely there */
  if (c->stuck && clock_monotonic_ns() < c->retry_ns) return;
  c->stuck = false;
  if (c->count && poll_spools(c)) end_spools(c);
  take_samples(c);
  drop_done(c);
  if (!c->stuck && !c->refused) c->warned = false;
}

void collector_turn(collector *c)
{
  run_turn(c);
  steer_turn(c->steer);
  if (c->control) control_serve(c->control);
  if (c->serve_too) c->serve_too(c->serve_too_context);
  c->turn_ns = clock_monotonic_ns();
}

bool collector_live(const collector *c)
{
  for (unsigned i = 0; i < c->count; i++)
    if (c->spools[i].state == SPOOL_LIVE && !c->spools[i].stranger) return true;
  return false;
}

/* Whether the process in slot `i` of the announced lives; a dead one is taken out. */
static bool announced_lives(collector *c, int fd, unsigned i, uint32_t pid)
{
  static const uint32_t none;
  if (c->announced[i].pid != pid)
    c->announced[i] = (announced){pid, process_start_time((pid_t)pid)};
  if (c->announced[i].start_time && process_alive((pid_t)pid, c->announced[i].start_time))
    return true;
  off_t at = (off_t)(offsetof(spool_budget, announced) + i * sizeof none);
  (void)!pwrite(fd, &none, sizeof none, at);
  c->announced[i].pid = 0;
  return false;
}

/* Whether forked children live that have no spool yet. */
static bool announced_live(collector *c)
{
  uint32_t pids[WEIR_SPOOL_ANNOUNCED];
  bool found = false;
  char *path = cmd_format("%s/" WEIR_SPOOL_BUDGET, c->dir);
  int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  free(path);
  if (fd < 0) return false;
  ssize_t n = pread(fd, pids, sizeof pids, offsetof(spool_budget, announced));
  for (unsigned i = 0; n > 0 && i < (size_t)n / sizeof *pids; i++)
    if (pids[i] && announced_lives(c, fd, i, pids[i])) found = true;
  (void)close(fd);
  return found;
}

bool collector_expects_forks(collector *c)
{
  for (unsigned i = 0; i < c->count; i++)
    if (awaits_fork(&c->spools[i])) return true;
  return announced_live(c);
}

static bool has_unfinished(const collector *c)
{
  for (unsigned i = 0; i < c->count; i++)
    if (c->spools[i].state != SPOOL_DONE || c->spools[i].kept) return true;
  return false;
}

/* Tries once to end all spools. */
static bool finish_once(collector *c, bool abandon, bool *lives)
{
  c->looked = false;
  collector_scan(c);
  if (!abandon) note_ends(c);
  *lives = !abandon && collector_live(c);
  if (*lives) return false;
  for (unsigned i = 0; i < c->count; i++) {
    spool *s = &c->spools[i];
    if (s->state != SPOOL_LIVE) continue;
    bool abandoned = !process_gone(c, s) && !s->stranger;
    begin_end(c, s);
    if (abandoned) s->reason = WEIR_END_UNKNOWN;
  }
  end_spools(c);
  if (c->recorder) {
    recorder_finish(c->recorder);
    end_rings(c);
  }
  return !has_unfinished(c);
}

/* As long as each try ends some there is no end to them: descriptors may not do for all at once. */
bool collector_finish(collector *c, bool abandon, bool *lives)
{
  for (int try = 0; try < FINISH_TRIES; try++) {
    unsigned before = c->count;
    c->stuck = false;
    if (finish_once(c, abandon, lives)) {
      sample_devices(c, true);
      return true;
    }
    if (*lives) return false;
    drop_done(c);
    if (c->count < before)
      try = -1;
    else if (!c->stuck && !c->refused)
      break;
    else if (try + 1 < FINISH_TRIES)
      (void)poll(NULL, 0, RETRY_MS);
  }
  for (unsigned i = 0; i < c->count; i++) {
    spool *s = &c->spools[i];
    if (s->state == SPOOL_NEW && !s->reader &&
        spool_reader_open(&s->reader, s->path, false) != WEIR_OK)
      cmd_message("%s: %s.", s->path, weir_error_message());
  }
  return false;
}

/* Removes what is no spool: the files about the folder, and those of a process that was killed
 * while it made its spool. */
static void remove_unborn(const char *dir)
{
  static const char *const about[] = {WEIR_SPOOL_BUDGET, WEIR_SPOOL_COLLECTOR, WEIR_SPOOL_REPORTED,
                                      RECORDER_MARK,     DUMP_WINDOW,          DUMP_LOG,
                                      CONTROL_SOCKET};
  DIR *d = opendir(dir);
  for (struct dirent *e; d && (e = readdir(d));) {
    const char *dot = strrchr(e->d_name, '.');
    bool ours = dot && (!strcmp(dot, WEIR_SPOOL_UNBORN) || !strcmp(dot, WR_TALLY_SUFFIX));
    ours = ours || strstr(e->d_name, WR_TALLY_SUFFIX ".new"); /* of a commit that a kill ended */
    for (unsigned i = 0; i < sizeof about / sizeof *about; i++)
      ours = ours || !strcmp(e->d_name, about[i]);
    if (ours) (void)unlinkat(dirfd(d), e->d_name, 0);
  }
  if (d) (void)closedir(d);
}

void collector_discard(const char *dir)
{
  remove_unborn(dir);
  (void)rmdir(dir);
}

/* A process whose unborn spool is removed here makes the folder anew, unless that is still there:
 * so this is tried more often than such a process tries. */
bool collector_remove(collector *c)
{
  for (int try = 0; try < REMOVE_TRIES; try++) {
    if (rmdir(c->dir) == 0 || errno != ENOTEMPTY) return true;
    c->looked = false;
    collector_scan(c);
    if (has_unfinished(c)) return false;
    remove_unborn(c->dir);
  }
  return true; /* something is there that is not ours */
}
