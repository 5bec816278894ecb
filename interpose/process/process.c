/* process.c: the life of a traced process: start, threads, forks, end.
 *
 * Loading the library does next to nothing: it reads its options and finds the loader's functions.
 * What costs comes with the first event: a spool, the unwinder, and, without `weir run` (plain
 * LD_PRELOAD), a folder for spools and a collector (folder.c). Under `weir run` the spool's header
 * is opened at once, so that a program that never calls CUDA is known too.
 *
 * An *image* is what has its own memory: the program, and each forked child. Its number is the
 * epoch that threads compare with. The epoch lives in a page the kernel empties in a forked child,
 * so a child that was made past libc (_Fork, clone) is noticed too, at its first call.
 *
 * Nothing of ours runs CUDA at exit or in a child, no descriptor stays open, and errno is kept. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>
#include "core/base/fork.h"
#include "core/base/keep.h"
#include "core/base/options.h"
#include "core/trace/api.h"
#include "interpose/elf/elf.h"
#include "interpose/elf/entry.h"
#include "interpose/elf/objects.h"
#include "interpose/process/folder.h"
#include "interpose/process/mode.h"
#include "interpose/process/settings.h"
#include "interpose/process/part.h"
#include "interpose/process/process.h"
#include "interpose/process/recording.h"
#include "interpose/process/thread.h"

#if defined(__aarch64__)
#define WIPE_BYTES 65536 /* the largest page there is */
#else
#define WIPE_BYTES 4096
#endif
#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif
#define EPOCH_NEVER      UINT32_MAX /* a thread that has not begun, or has ended */
#define UNWINDER_WAIT_NS 100000000
#define STACKS_DEPTH     32

__thread thread_state thread_self = {.epoch = EPOCH_NEVER};
FORK_STATE _Atomic bool process_recording;

static struct {
  _Atomic uint32_t epoch;
  char rest[WIPE_BYTES - sizeof(uint32_t)];
} wiped __attribute__((aligned(WIPE_BYTES))); /* 0 before set-up and in a child made past us */
extern _Atomic uint32_t process_epoch __attribute__((alias("wiped")));

static FORK_STATE struct {
  pthread_mutex_t lock;  /* over everything below but `coverage` */
  uint32_t images;       /* epochs given out in this and its parents' memory */
  bool configured;       /* options read, handlers registered: once, forked children inherit it */
  bool tried;            /* this image has tried to open its spool */
  uint32_t pid;          /* of this image, which a vfork()ed child shares */
  bool off;              /* never record (AT_SECURE) */
  bool reported;         /* by this image or its parents: nothing is recorded */
  bool redact;           /* no arguments of the program in its trace */
  unsigned depth;        /* of stacks, 0: off */
  uint64_t limit;        /* bytes a spool, 0: the default */
  uint64_t api_hash;     /* of our table of functions, 0: not made yet */
  pthread_key_t key;     /* its destructor ends a thread */
  _Atomic bool unwinder; /* it is set up, or left off for good */
  pthread_mutex_t unwinder_lock; /* over setting it up */
} life = {.lock = PTHREAD_MUTEX_INITIALIZER,
          .unwinder_lock = PTHREAD_MUTEX_INITIALIZER,
          .depth = STACKS_DEPTH};

/* ---- options --------------------------------------------------------------------------------- */

/* What is no answer means yes: who asks at all has something to hide. */
static bool read_redact_option(void)
{
  bool on = false;
  const char *text = getenv("WEIR_REDACT");
  if (!text || option_bool(&on, "WEIR_REDACT", text) == WEIR_OK) return on;
  process_say("%s; arguments are left out of the trace.", weir_error_message());
  setenv("WEIR_REDACT", "1", 1);
  return true;
}

static bool is_set(const char *name)
{
  const char *text = getenv(name);
  return text && *text;
}

static void read_options(void)
{
  const char *text;
  uint64_t depth;

  process_unrecorded = is_set("WEIR_APPLY") && !is_set("WEIR_SPOOL_DIR") && !is_set("WEIR_OUTPUT");
  life.redact = read_redact_option();
  if ((text = getenv("WEIR_STACKS"))) {
    weir_status st = option_off_or_number(&depth, "WEIR_STACKS", text, WEIR_STACK_MAX_DEPTH);
    if (st == WEIR_OK) life.depth = (unsigned)depth;
    process_bad_option("WEIR_STACKS", st);
  }
  if ((text = getenv("WEIR_KEEP"))) {
    keep_size keep = {0};
    process_bad_option("WEIR_KEEP", keep_read(&keep, "WEIR_KEEP", text));
    process_folder.keep = keep.bytes;
  }
  if ((text = getenv("WEIR_SPOOL_LIMIT")))
    process_bad_option("WEIR_SPOOL_LIMIT",
                       option_size(&life.limit, "WEIR_SPOOL_LIMIT", text, WEIR_SPOOL_CHUNK));
}

/* ---- the spool ------------------------------------------------------------------------------- */

static weir_status open_spool_with(bool chunk)
{
  spool_options options = {.directory = process_folder.path,
                           .limit_bytes = life.limit,
                           .keep_bytes = process_folder.keep,
                           .api_count = api_total,
                           .redact = life.redact,
                           .chunk = chunk,
                           .pid = life.pid,
                           .recording = (spool_recording)recording_word(),
                           .mode = process_mode_now()};

  if (!life.api_hash) life.api_hash = api_table_hash(api_total);
  options.api_hash = life.api_hash;
  weir_status st = spool_open(&options);
  if (st == WEIR_OK) process_publish_coverage(spool_current());
  return st;
}

static weir_status open_process_spool(void)
{
  return open_spool_with(false);
}

static weir_status open_spool_for_event(void)
{
  return open_spool_with(true);
}

/* Once an image, or, where it fails before there is an event, once more for the first one: a
 * program without CUDA gets no message that it has no need of. */
static void open_image(bool for_event)
{
  if (process_unrecorded && !life.off) atomic_store(&process_recording, true);
  if (life.tried || life.off || !process_folder.path[0]) return;
  weir_status st = process_folder_open(for_event ? open_spool_for_event : open_process_spool);
  life.tried = for_event || st == WEIR_OK;
  if (st == WEIR_OK)
    atomic_store(&process_recording, true);
  else if (for_event && !life.reported &&
           (process_folder.automatic || st != WEIR_ENOENT || !process_folder_is_of_run())) {
    process_say("nothing is recorded: %s.", weir_error_message());
    life.reported = true;
  }
}

/* ---- images ---------------------------------------------------------------------------------- */

static void begin_image(void)
{
  life.tried = false;
  life.pid = (uint32_t)getpid();
  atomic_store(&process_recording, false);
  atomic_store(&wiped.epoch, ++life.images);
}

static FORK_STATE _Atomic int
    recording_threads; /* of this image: those that end_recorded_thread() waits for */
static FORK_STATE _Atomic bool spool_to_come; /* this is a forked child's image that has none yet */
static FORK_STATE _Atomic bool stacks_left_off; /* and the trace has yet to record it */

/* Another of the parent's threads may have been in the unwinder, holding its locks or the dynamic
 * linker's, and is not here to give them back. */
static void disable_stacks(void)
{
  if (!life.depth) return;
  stack_init(NULL, NULL, NULL, 0);
  life.depth = 0;
  atomic_store(&life.unwinder, true);
  atomic_store(&stacks_left_off, true);
}

/* The parent's header, mapped once more: a child that announces itself counts itself there after
 * that, when the first mapping is gone. NULL: it cannot be mapped. */
static spool_header *map_again(spool_header *parent)
{
  void *again = mremap(parent, 0, WEIR_SPOOL_HEADER, MREMAP_MAYMOVE);
  return again == MAP_FAILED ? NULL : again;
}

/* In a child. Most call no CUDA, so its spool is opened at its first event; who collects what the
 * parent recorded learns that there may be one. Under `weir run` it knows its children, and the
 * child counts itself in its parent's header at once (`counted`: the parent knows of the fork). */
static void begin_child(bool counted)
{
  int this_thread = pthread_getspecific(life.key) != NULL;
  spool_header *parent = spool_current(), *kept = NULL;
  bool loader_locked = objects_forked();

  process_parts_forked();
  lock_reset(&life.unwinder_lock);
  if (loader_locked || atomic_load(&recording_threads) > this_thread) disable_stacks();
  atomic_store(&recording_threads, this_thread);
  if (parent && counted && process_folder.automatic)
    kept = map_again(parent);
  else if (parent && counted)
    atomic_fetch_add(&parent->forks_done, 1);
  spool_after_fork();
  begin_image();
  if (parent) atomic_store(&spool_to_come, true);
  if (parent && process_folder.automatic && !spool_announce()) open_image(false);
  if (!kept) return;
  atomic_fetch_add(&kept->forks_done, 1);
  munmap(kept, WEIR_SPOOL_HEADER);
}

bool process_has_spool(void)
{
  return spool_current() || atomic_load(&spool_to_come);
}

spool_header *process_spool(void)
{
  int saved = errno;

  if (!spool_current() && atomic_load(&spool_to_come) && pthread_mutex_trylock(&life.lock) == 0) {
    open_image(false);
    pthread_mutex_unlock(&life.lock);
  }
  errno = saved;
  return spool_current();
}

static void fork_prepare(void)
{
  pthread_mutex_lock(&life.lock);
  spool_header *h = spool_current();
  if (h) atomic_fetch_add(&h->forks_begun, 1);
}

static void fork_parent(void)
{
  pthread_mutex_unlock(&life.lock);
}

static void begin_forked_child(void)
{
  int saved = errno;

  begin_child(true);
  pthread_mutex_unlock(&life.lock);
  errno = saved;
}

/* ---- threads --------------------------------------------------------------------------------- */

/* A later call of the thread, from another destructor, begins it again and re-arms this one. */
static void end_recorded_thread(void *self)
{
  thread_state *t = self;

  process_parts_thread_ends();
  if (t->depth) { /* cancelled in a call, whose event is lost */
    if (!(t->depth & CALL_LEFT_OUT)) spool_drop(1, ECANCELED);
    t->depth = 0;
  }
  if (t->epoch == atomic_load(&process_epoch)) spool_writer_release(&t->writer);
  stack_release(&t->stacks);
  t->epoch = EPOCH_NEVER;
  atomic_fetch_sub(&recording_threads, 1);
}

/* From here on the thread counts, and its end is noticed. */
static void arm_thread(thread_state *t)
{
  if (pthread_getspecific(life.key)) return;
  if (pthread_setspecific(life.key, t) == 0) atomic_fetch_add(&recording_threads, 1);
}

static void begin_thread(thread_state *t)
{
  char name[17] = "";
  uint32_t depth = t->depth;
  trace_event head = {
      .start = clock_ticks(), .device = WEIR_DEVICE_NONE, .src_device = WEIR_DEVICE_NONE};

  if (t->epoch != EPOCH_NEVER) { /* a child: all it has is its parent's */
    stack_table *stacks = t->stacks;
    struct asked_table *asked = t->asked;
    memset(t, 0, sizeof *t);
    t->depth = depth;
    t->stacks = stacks;
    t->asked = asked;
    stack_forked(&t->stacks);
  }
  t->epoch = atomic_load(&process_epoch);
  if (!atomic_load(&process_recording) || t->named) return;
  prctl(PR_GET_NAME, name);
  t->named = spool_writer_extended(&t->writer, WEIR_EV_THREAD, &head, name, strlen(name));
}

/* Opens libunwind so that it calls its own functions. They are exported, and it calls them by name
 * (_ULx86_64_init_local, _Ux86_64_getcontext): a program that exports another libunwind's, linked
 * in, would get those calls, and each stack would have no frame. A sanitizer's dlopen() refuses
 * the flag, so this is glibc's. */
static void *open_unwinder(const char *path, int flags)
{
  return libc_dlopen ? libc_dlopen(path, flags | RTLD_DEEPBIND) : real_dlopen(path, flags);
}

static bool has_thread_sanitizer(void)
{
  return real_dlsym(RTLD_DEFAULT, "__tsan_init") != NULL;
}

static bool stacks_are_unsafe; /* together with this program's libunwind */

/* Whether the program brings a libunwind, whose functions are bound already, and ThreadSanitizer:
 * another unwinder would find that library's functions in the place of its own. */
static bool unwinder_is_bound(void)
{
  return has_thread_sanitizer() && real_dlopen("libunwind.so.8", RTLD_LAZY | RTLD_NOLOAD);
}

/* libunwind keeps a pointer in each thread, in memory that the loader takes from malloc() when a
 * thread first asks and that another thread's pthread_create() may give back: a race, to
 * ThreadSanitizer. glibc's backtrace() keeps nothing, and is no slower than all else is there. */
static void *open_no_unwinder(const char *path, int flags)
{
  (void)path, (void)flags;
  return NULL;
}

/* Opening a library takes the dynamic linker's lock, which a plug-in's constructor may hold while
 * it waits for us: so this is outside our lock, and who waits here for another thread's set-up does
 * so for a while only and then goes without stacks. Returns the unwinder's name to who has set it
 * up. */
static const char *begin_unwinder(void)
{
  const char *name = NULL;
  struct timespec until;

  if (atomic_load_explicit(&life.unwinder, memory_order_acquire)) return NULL;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_nsec += UNWINDER_WAIT_NS;
  until.tv_sec += until.tv_nsec / 1000000000;
  until.tv_nsec %= 1000000000;
  if (pthread_mutex_timedlock(&life.unwinder_lock, &until)) return NULL;
  if (!atomic_load_explicit(&life.unwinder, memory_order_relaxed)) {
    stack_skip_range(own_library_start, own_library_end);
    if (life.depth && (stacks_are_unsafe = unwinder_is_bound())) life.depth = 0;
    name = stack_init(process_folder.home[0] ? process_folder.home : NULL,
                      has_thread_sanitizer() ? open_no_unwinder : open_unwinder, real_dlsym,
                      life.depth);
    atomic_store_explicit(&life.unwinder, true, memory_order_release);
  }
  pthread_mutex_unlock(&life.unwinder_lock);
  return name;
}

static void write_note(thread_state *t, const char *text)
{
  trace_event head = {
      .start = clock_ticks(), .device = WEIR_DEVICE_NONE, .src_device = WEIR_DEVICE_NONE};

  spool_writer_extended(&t->writer, WEIR_EV_NOTE, &head, text, strlen(text));
}

enum { NAMESPACE_NONE, NAMESPACE_UNREPORTED, NAMESPACE_REPORTED };
/* The program made some with dlmopen. A child inherits that this was reported. */
static _Atomic int namespaces;

static void print_namespace_note(thread_state *t)
{
  int unreported = NAMESPACE_UNREPORTED;

  if (atomic_compare_exchange_strong(&namespaces, &unreported, NAMESPACE_REPORTED))
    write_note(t, "dlmopen was called: CUDA calls from libraries in other namespaces are not seen");
}

void process_note_namespace(void)
{
  thread_state *t = &thread_self;
  int none = NAMESPACE_NONE;

  atomic_compare_exchange_strong(&namespaces, &none, NAMESPACE_UNREPORTED);
  if (t->epoch == atomic_load(&process_epoch) && atomic_load(&process_recording))
    print_namespace_note(t);
}

static _Atomic bool first_event_seen; /* and remarked on; a child inherits it */

static void print_missing_parts(thread_state *t, const char *unwinder)
{
  if (unwinder && strcmp(unwinder, "backtrace") == 0)
    write_note(t,
               has_thread_sanitizer()
                   ? "beside ThreadSanitizer stacks are taken by backtrace(), which costs more"
                   : "libunwind.so.8 was not found: stacks are taken by backtrace(), which costs "
                     "more");
  if (unwinder && stacks_are_unsafe)
    write_note(t, "no stacks are taken: ThreadSanitizer stands in front of libc's functions in the "
                  "libunwind.so.8 that the program brings");
  if (atomic_exchange(&stacks_left_off, false))
    write_note(t, "forked while other threads called CUDA or were in the dynamic loader: no stacks "
                  "are taken in this process");
  if (!atomic_exchange(&first_event_seen, true)) process_parts_first_event();
  print_namespace_note(t);
}

/* Sets the process up if the constructor has not, and the image if it was forked without our
 * knowledge. */
static void detect_fork(void)
{
  bool needed = atomic_load(&wiped.epoch) == 0;

  if (!needed) return;
  if (!life.images) {
    process_set_up();
    return;
  }
  lock_reset(&life.lock);
  begin_child(false);
}

/* What is kept off while a thread holds our locks: signals, whose handlers may call CUDA or fork,
 * and cancellation. Signals that the thread causes itself stay open. */
typedef struct undisturbed {
  sigset_t mask;
  int cancelling;
} undisturbed;

static void block_signals(undisturbed *u)
{
  static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
  sigset_t most;

  sigfillset(&most);
  for (unsigned i = 0; i < sizeof own / sizeof *own; i++)
    sigdelset(&most, own[i]);
  pthread_sigmask(SIG_BLOCK, &most, &u->mask);
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &u->cancelling);
}

static void restore_signals(const undisturbed *u)
{
  pthread_setcancelstate(u->cancelling, NULL);
  pthread_sigmask(SIG_SETMASK, &u->mask, NULL);
}

static bool start_thread(thread_state *t)
{
  const char *unwinder = NULL;

  detect_fork();
  pthread_mutex_lock(&life.lock);
  open_image(true);
  bool recording = atomic_load(&process_recording);
  if (!recording) process_parts_unrecorded();
  pthread_mutex_unlock(&life.lock);
  if (recording) {
    arm_thread(t);
    unwinder = begin_unwinder();
  }
  begin_thread(t);
  if (recording) print_missing_parts(t, unwinder);
  return recording;
}

bool thread_start(thread_state *t)
{
  int saved = errno;
  undisturbed u;

  block_signals(&u);
  bool recording = start_thread(t);
  restore_signals(&u);
  errno = saved;
  return recording;
}

/* The call that owned the event never came back, and one further out on the same stack is made: its
 * event is lost, and counted. A handler on a stack of its own is no such call. */
bool call_was_abandoned(thread_state *t)
{
  stack_t stack = {.ss_flags = SS_ONSTACK};
  int saved = errno;

  if (sigaltstack(NULL, &stack) == 0 && !(stack.ss_flags & SS_ONSTACK)) {
    if (!(t->depth & CALL_LEFT_OUT)) spool_drop(1, EINTR);
    t->depth = 0;
  }
  errno = saved;
  return t->depth == 0;
}

/* The program's own remark in its trace: found by dlsym(RTLD_DEFAULT, "weir_note") or as a weak
 * symbol. */
WEIR_BODY void note_text(const char *text)
{
  thread_state *t = &thread_self;

  if (text && thread_ready(t)) write_note(t, text);
}
WEIR_ENTRY(weir_note, note_text);

/* AddressSanitizer's runtime ends a program in which it is not the first library, which it is not
 * after a preloaded one. It asks this of whoever defines it first, and that is the program where
 * it does. We replace nothing of the runtime's, so the order does no harm. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);

WEIR_BODY const char *asan_options(void)
{
  return "verify_asan_link_order=0";
}
WEIR_ENTRY(__asan_default_options, asan_options);

/* ---- start and end --------------------------------------------------------------------------- */

void process_set_up(void)
{
  if (life.configured) return;
  life.configured = true;
  process_say_start();
  loader_find();
  loader_find_lock();
  begin_image();
  if (getauxval(AT_SECURE)) {
    life.off = true;
    return;
  }
  read_options();
  life.off = !process_unrecorded && !process_folder_choose();
  if (((uintptr_t)&wiped | WIPE_BYTES) % (uintptr_t)sysconf(_SC_PAGESIZE) == 0)
    madvise(&wiped, WIPE_BYTES, MADV_WIPEONFORK);
  if (pthread_key_create(&life.key, end_recorded_thread) ||
      pthread_atfork(fork_prepare, fork_parent, begin_forked_child))
    life.off = true;
  else
    process_parts_start();
}

__attribute__((constructor(101))) static void at_start(void)
{
  int saved = errno;

  process_set_up();
  if (!process_folder.automatic) {
    pthread_mutex_lock(&life.lock);
    open_image(false);
    pthread_mutex_unlock(&life.lock);
  }
  errno = saved;
}

/* The program's own destructors may still call CUDA after this; their events are recorded. */
__attribute__((destructor(101))) static void end_recording(void)
{
  int saved = errno;

  process_parts_thread_ends();
  process_note_load();
  process_print_losses(process_folder.path, process_folder.automatic);
  spool_close();
  errno = saved;
}
