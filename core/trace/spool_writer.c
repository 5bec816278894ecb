/* spool_writer.c: the pen. Runs inside the traced program, so it allocates nothing, waits for
 * nobody, keeps no descriptor and leaves errno alone.
 *
 * How a thread gets a chunk, in this order: a FREE one of its ring, any FREE one already mapped, a
 * new one (blocks reserved, then mapped and pre-faulted). Each is claimed by one compare-and-swap
 * on its directory entry, which also serialises growing: who claims an entry that has no memory yet
 * is the one to reserve and map it, and gives the claim back if that fails. Nothing is ever
 * unmapped but after a fork, so an address once published stays good.
 *
 * When no chunk can be had the thread is *starved*: its records are counted as dropped. It looks at
 * its own ring at each of them, at the whole directory at every 16th, and asks the kernel for more
 * (after a failure) at most ten times a second over all threads, so that a full disk costs a few
 * loads an event.
 *
 * System calls go through syscall(): open and close are cancellation points in libc, and other
 * preloaded libraries wrap them.
 */
#include "core/trace/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/base/trylock.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1
#endif

#define DEFAULT_LIMIT (UINT64_C(1) << 30) /* bytes */
#define RETRY_NS      UINT64_C(100000000) /* between two tries to grow after one failed */

enum { STATE_BITS = 2, STATE_MASK = 3, STARVED_SCAN = 15, NAME_TRIES = 1000 };

static struct {
  _Atomic(weir_spool_header *) header; /* mapped; NULL: no spool */
  _Atomic uint32_t epoch;              /* see weir_spool_epoch() */
  uint32_t limit;                      /* chunks */
  dev_t device;                        /* of the file, to know it again by its path */
  ino_t inode;
  weir_spool_header *stale; /* the header's place after a fork, to be unmapped */
  _Atomic(weir_trace_event *) chunk[WEIR_SPOOL_MAX_CHUNKS]; /* mapped address, NULL: not mapped */
  _Atomic uint64_t retry_at; /* CLOCK_MONOTONIC ns before which growing waits; 0: free to */
  _Atomic int reason;        /* errno of the last refusal */
  _Atomic uint64_t early_dropped, early_errno; /* drops while there was no header */
  weir_trylock clock_guard;                    /* of the header's last pair */
  char path[PATH_MAX];
} spool;

weir_spool_header *weir_spool_current(void)
{
  return atomic_load_explicit(&spool.header, memory_order_acquire);
}

uint32_t weir_spool_epoch(void)
{
  return atomic_load_explicit(&spool.epoch, memory_order_relaxed);
}

void weir_spool_drop(uint64_t events, int errno_value)
{
  weir_spool_header *h = weir_spool_current();
  _Atomic uint64_t *count = h ? &h->dropped : &spool.early_dropped;
  _Atomic uint64_t *reason = h ? &h->drop_errno : &spool.early_errno;
  uint64_t none = 0;
  atomic_fetch_add_explicit(count, events, memory_order_relaxed);
  if (!atomic_load_explicit(reason, memory_order_relaxed))
    atomic_compare_exchange_strong(reason, &none, (uint64_t)errno_value);
}

/* ---- files ------------------------------------------------------------------------------------
 */

static int open_file(const char *path, int flags)
{
  return (int)syscall(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC | O_NOFOLLOW, 0600);
}

static void close_file(int fd)
{
  syscall(SYS_close, fd);
}

/* Reads up to size - 1 bytes of a file and ends them with NUL; bytes read, 0 on failure. */
static size_t slurp(const char *path, char *out, size_t size)
{
  size_t used = 0;
  long n;
  int fd = open_file(path, O_RDONLY);
  out[0] = 0;
  if (fd < 0) return 0;
  while (used < size - 1 && (n = syscall(SYS_read, fd, out + used, size - 1 - used)) > 0)
    used += (size_t)n;
  close_file(fd);
  out[used] = 0;
  return used;
}

/* Blocks for [offset, offset + bytes) where the file system has no fallocate: written out. */
static int write_zeros(int fd, uint64_t offset, uint64_t bytes)
{
  static const char zeros[4096];
  for (uint64_t done = 0; done < bytes;) {
    uint64_t part = bytes - done < sizeof zeros ? bytes - done : sizeof zeros;
    long n = syscall(SYS_pwrite64, fd, zeros, part, offset + done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n ? errno : ENOSPC;
    done += (uint64_t)n;
  }
  return 0;
}

/* Reserves blocks, as posix_fallocate(3): 0 or an errno. Growing past RLIMIT_FSIZE would raise
 * SIGXFSZ in the program, so that is asked first. */
static int reserve(int fd, uint64_t offset, uint64_t bytes)
{
  struct rlimit limit;
  if (!getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur != RLIM_INFINITY &&
      offset + bytes > limit.rlim_cur)
    return EFBIG;
  for (;;) {
    if (!syscall(SYS_fallocate, fd, 0, offset, bytes)) return 0;
    if (errno == EOPNOTSUPP || errno == ENOSYS) return write_zeros(fd, offset, bytes);
    if (errno != EINTR) return errno;
  }
}

/* Maps and pre-faults [offset, offset + bytes). Faulting through madvise gives an error where
 * touching would give SIGBUS (file systems whose reservations do not bind). */
static void *map_file(int fd, uint64_t offset, size_t bytes)
{
  void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)offset);
  if (p == MAP_FAILED) return NULL;
  if (!madvise(p, bytes, MADV_POPULATE_WRITE)) return p;
  if (errno == EINVAL) { /* before Linux 5.14 */
    void *q = mmap(p, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_POPULATE, fd,
                   (off_t)offset);
    if (q != MAP_FAILED) return q;
  } else if (errno == EINTR || errno == EAGAIN) {
    return p;
  }
  int why = errno == EFAULT ? ENOSPC : errno;
  munmap(p, bytes);
  errno = why;
  return NULL;
}

/* ---- opening ----------------------------------------------------------------------------------
 */

static char *put_number(char *at, uint64_t value)
{
  char text[20];
  int n = 0;
  do
    text[n++] = (char)('0' + value % 10);
  while (value /= 10);
  while (n)
    *at++ = text[--n];
  return at;
}

static char *put_text(char *at, const char *text)
{
  while (*text)
    *at++ = *text++;
  return at;
}

/* "DIR/PID-N" + suffix into `out` of PATH_MAX bytes. */
static bool make_path(char *out, const char *directory, uint32_t pid, unsigned n,
                      const char *suffix)
{
  if (strlen(directory) + 48 > PATH_MAX) return false;
  char *at = put_text(out, directory);
  *at++ = '/';
  at = put_number(at, pid);
  *at++ = '-';
  at = put_number(at, n);
  *put_text(at, suffix) = 0;
  return true;
}

/* Field 22 of /proc/self/stat; the name in field 2 may hold anything, so counting starts behind it.
 */
static uint64_t own_start_time(void)
{
  char text[1024];
  uint64_t value = 0;
  slurp("/proc/self/stat", text, sizeof text);
  char *p = strrchr(text, ')');
  for (int field = 2; p && field < 22; field++)
    p = strchr(p + 1, ' ');
  for (p = p ? p + 1 : NULL; p && *p >= '0' && *p <= '9'; p++)
    value = value * 10 + (uint64_t)(*p - '0');
  return value;
}

static void read_boot_id(uint8_t out[16])
{
  char text[64];
  int n = 0;
  slurp("/proc/sys/kernel/random/boot_id", text, sizeof text);
  memset(out, 0, 16);
  for (const char *p = text; *p && n < 32; p++) {
    int digit = *p >= '0' && *p <= '9' ? *p - '0' : *p >= 'a' && *p <= 'f' ? *p - 'a' + 10 : -1;
    if (digit < 0) continue;
    out[n / 2] = (uint8_t)(out[n / 2] << 4 | digit);
    n++;
  }
}

static void fill_header(weir_spool_header *h, const weir_spool_options *options)
{
  struct timespec now;
  h->version = WEIR_SPOOL_VERSION;
  h->header_bytes = WEIR_SPOOL_HEADER;
  h->chunk_bytes = WEIR_SPOOL_CHUNK;
  h->api_count = options->api_count;
  h->api_hash = options->api_hash;
  h->pid = (uint32_t)getpid();
  h->ppid = (uint32_t)getppid();
  h->start_time = own_start_time();
  clock_gettime(CLOCK_REALTIME, &now);
  h->realtime_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
  read_boot_id(h->boot_id);
  h->clock_kind = (uint32_t)weir_clock_kind_in_use;
  h->mode = options->mode;
  h->clock_hint_hz = weir_clock_hint_hz();
  h->clock_first = weir_clock_now();
  atomic_store(&h->last_mono_ns, h->clock_first.mono_ns);
  atomic_store(&h->last_ticks, h->clock_first.ticks);
  ssize_t n = readlink("/proc/self/exe", h->exe, sizeof h->exe - 1);
  h->exe[n > 0 ? n : 0] = 0;
  h->cmdline_bytes = (uint32_t)slurp("/proc/self/cmdline", h->cmdline, sizeof h->cmdline);
  atomic_store(&h->dropped, atomic_exchange(&spool.early_dropped, 0));
  atomic_store(&h->drop_errno, atomic_exchange(&spool.early_errno, 0));
  memcpy(h->magic, WEIR_SPOOL_MAGIC, sizeof h->magic);
}

/* Gives the finished file its name; 0, EEXIST: taken, or another errno. */
static int publish(const char *from, const char *to)
{
  if (!syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE)) return 0;
  if (errno != EINVAL && errno != ENOSYS) return errno;
  if (!faccessat(AT_FDCWD, to, F_OK, 0)) return EEXIST; /* a file system without NOREPLACE */
  return syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0) ? errno : 0;
}

/* Maps a new file's header; 0 or an errno. */
static int map_header(int fd, weir_spool_header **out)
{
  struct stat file;
  int error = reserve(fd, 0, WEIR_SPOOL_HEADER);
  if (error) return error;
  if (fstat(fd, &file)) return errno;
  *out = map_file(fd, 0, WEIR_SPOOL_HEADER);
  if (!*out) return errno;
  spool.device = file.st_dev;
  spool.inode = file.st_ino;
  return 0;
}

/* Makes the file under a name of its own, then gives it its real one: whoever sees the real name
 * sees a whole header. 0 or an errno; *out is the mapped header. */
static int create(const weir_spool_options *options, unsigned n, weir_spool_header **out)
{
  char unfinished[PATH_MAX];
  uint32_t pid = (uint32_t)getpid();
  weir_spool_header *h = NULL;
  if (!make_path(spool.path, options->directory, pid, n, WEIR_SPOOL_SUFFIX)) return ENAMETOOLONG;
  if (!faccessat(AT_FDCWD, spool.path, F_OK, 0)) return EEXIST; /* most are seen here, cheaply */
  make_path(unfinished, options->directory, pid, n, WEIR_SPOOL_UNBORN);
  int fd = open_file(unfinished, O_RDWR | O_CREAT | O_EXCL);
  if (fd < 0) return errno;
  int error = map_header(fd, &h);
  close_file(fd);
  if (h) {
    fill_header(h, options);
    error = publish(unfinished, spool.path);
  }
  if (!error) {
    *out = h;
    return 0;
  }
  if (h) {
    weir_spool_drop(atomic_load(&h->dropped), (int)atomic_load(&h->drop_errno));
    munmap(h, WEIR_SPOOL_HEADER);
  }
  unlink(unfinished);
  return error;
}

/* Unmaps a former spool of this process. */
static void forget(void)
{
  weir_spool_header *h = atomic_exchange(&spool.header, NULL);
  if (!h) h = spool.stale;
  spool.stale = NULL;
  if (h) munmap(h, WEIR_SPOOL_HEADER);
  for (uint32_t i = 0; i < WEIR_SPOOL_MAX_CHUNKS; i++) {
    weir_trace_event *chunk = atomic_exchange(&spool.chunk[i], NULL);
    if (chunk) munmap(chunk, WEIR_SPOOL_CHUNK);
  }
}

static weir_status status_of(int error)
{
  switch (error) {
  case ENOSPC:
  case EDQUOT:
  case EFBIG:
    return WEIR_ENOSPC;
  case ENOENT:
  case ENOTDIR:
    return WEIR_ENOENT;
  case ENOMEM:
    return WEIR_ENOMEM;
  default:
    return WEIR_EIO;
  }
}

weir_status weir_spool_open(const weir_spool_options *options)
{
  int saved = errno, error = EEXIST;
  uint64_t limit = (options->limit_bytes ? options->limit_bytes : DEFAULT_LIMIT) / WEIR_SPOOL_CHUNK;
  weir_spool_header *h = NULL;
  if (!options->directory || options->directory[0] != '/')
    return weir_fail(WEIR_EINVAL, "a spool's folder must be an absolute path, not \"%s\"",
                     options->directory ? options->directory : "");
  weir_clock_init();
  forget();
  spool.limit = limit < 1                       ? 1
                : limit > WEIR_SPOOL_MAX_CHUNKS ? WEIR_SPOOL_MAX_CHUNKS
                                                : (uint32_t)limit;
  atomic_store(&spool.retry_at, 0);
  for (unsigned n = 0; n < NAME_TRIES && error == EEXIST; n++)
    error = create(options, n, &h);
  errno = saved;
  if (error)
    return weir_fail_errno(status_of(error), error, "cannot create a spool in %s",
                           options->directory);
  atomic_fetch_add(&spool.epoch, 1);
  atomic_store_explicit(&spool.header, h, memory_order_release);
  return WEIR_OK;
}

/* Refreshes the header's later clock pair. The ticks are 0 while the other half is stored, so that
 * no reader pairs halves of two moments. */
static void refresh_clock(weir_spool_header *h)
{
  uint32_t epoch = weir_spool_epoch();
  if (!weir_trylock_take(&spool.clock_guard, epoch)) return;
  weir_clock_pair now = weir_clock_now();
  atomic_store(&h->last_ticks, 0);
  atomic_store(&h->last_mono_ns, now.mono_ns);
  atomic_store(&h->last_ticks, now.ticks);
  weir_trylock_leave(&spool.clock_guard);
}

void weir_spool_close(void)
{
  weir_spool_header *h = weir_spool_current();
  if (!h) return;
  refresh_clock(h);
  atomic_store(&h->closed, 1);
}

/* Puts private memory in the place of a mapping of the file. */
static void replace(void *at, size_t bytes)
{
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;
  if (mmap(at, bytes, PROT_READ | PROT_WRITE, flags, -1, 0) == MAP_FAILED) munmap(at, bytes);
}

void weir_spool_after_fork(void)
{
  int saved = errno;
  weir_spool_header *h = atomic_exchange(&spool.header, NULL);
  atomic_fetch_add(&spool.epoch, 1);
  if (h) {
    spool.stale = h;
    replace(h, WEIR_SPOOL_HEADER);
    for (uint32_t i = 0; i < WEIR_SPOOL_MAX_CHUNKS; i++) {
      weir_trace_event *chunk = atomic_load(&spool.chunk[i]);
      if (chunk) replace(chunk, WEIR_SPOOL_CHUNK);
    }
  }
  errno = saved;
}

/* ---- chunks -----------------------------------------------------------------------------------
 */

static uint32_t entry_state(uint32_t generation, uint32_t state)
{
  return generation << STATE_BITS | state;
}

/* Takes a FREE chunk; *generation is its new one. */
static bool claim(weir_chunk_entry *entry, uint32_t *generation)
{
  uint32_t seen = atomic_load_explicit(&entry->state, memory_order_relaxed);
  if ((seen & STATE_MASK) != WEIR_CHUNK_FREE) return false;
  *generation = ((seen >> STATE_BITS) + 1) & UINT32_MAX >> STATE_BITS;
  return atomic_compare_exchange_strong_explicit(&entry->state, &seen,
                                                 entry_state(*generation, WEIR_CHUNK_TAKEN),
                                                 memory_order_acquire, memory_order_relaxed);
}

/* Reserves and maps chunk `index`, which the caller has claimed; NULL and errno. The file is found
 * again by its path, and must be the one we made. */
static weir_trace_event *map_chunk(uint32_t index)
{
  struct stat file;
  uint64_t offset = WEIR_SPOOL_HEADER + (uint64_t)index * WEIR_SPOOL_CHUNK;
  weir_trace_event *chunk = NULL;
  int fd = open_file(spool.path, O_RDWR), error = 0;
  if (fd < 0) return NULL;
  if (fstat(fd, &file))
    error = errno;
  else if (file.st_dev != spool.device || file.st_ino != spool.inode)
    error = ESTALE;
  else
    error = reserve(fd, offset, WEIR_SPOOL_CHUNK);
  if (!error && !(chunk = map_file(fd, offset, WEIR_SPOOL_CHUNK))) error = errno;
  close_file(fd);
  errno = error;
  return chunk;
}

static void raise_to(_Atomic uint32_t *count, uint32_t value)
{
  uint32_t seen = atomic_load(count);
  while (seen < value && !atomic_compare_exchange_weak(count, &seen, value))
    continue;
}

/* Claims an entry that has no memory yet and gives it some. */
static bool grow(weir_spool_header *h, uint32_t *index, uint32_t *generation)
{
  uint64_t retry_at = atomic_load_explicit(&spool.retry_at, memory_order_relaxed);
  if (retry_at && weir_clock_monotonic_ns() < retry_at) return false;
  for (uint32_t i = 0; i < spool.limit; i++) {
    if (atomic_load_explicit(&spool.chunk[i], memory_order_relaxed)) continue;
    if (!claim(&h->directory[i], generation)) continue;
    weir_trace_event *chunk = map_chunk(i);
    if (!chunk) {
      atomic_store(&spool.reason, errno);
      atomic_store(&spool.retry_at, weir_clock_monotonic_ns() + RETRY_NS);
      atomic_store(&h->directory[i].state, entry_state(*generation, WEIR_CHUNK_FREE));
      return false;
    }
    atomic_store_explicit(&spool.chunk[i], chunk, memory_order_release);
    atomic_store(&spool.retry_at, 0);
    raise_to(&h->chunks, i + 1);
    *index = i;
    return true;
  }
  atomic_store(&spool.reason, ENOBUFS);
  return false;
}

/* Claims a FREE chunk of the ring, the first of it that is: a thread that is drained in time goes
 * on using the same two or three, which stay in its cache. */
static bool take_ring(weir_spool_header *h, weir_writer *w, uint32_t *index, uint32_t *generation)
{
  for (uint32_t i = 0; i < w->ring_size; i++) {
    if (!claim(&h->directory[w->ring[i]], generation)) continue;
    *index = w->ring[i];
    return true;
  }
  return false;
}

static void remember(weir_writer *w, uint32_t index)
{
  const uint32_t room = sizeof w->ring / sizeof *w->ring;
  for (uint32_t i = 0; i < w->ring_size; i++)
    if (w->ring[i] == index) return;
  if (w->ring_size < room) {
    w->ring[w->ring_size++] = index;
  } else {
    w->ring[w->ring_at] = index;
    w->ring_at = (w->ring_at + 1) % room;
  }
}

static bool take(weir_spool_header *h, weir_writer *w, uint32_t *index, uint32_t *generation)
{
  if (take_ring(h, w, index, generation)) return true;
  if (w->starved & STARVED_SCAN) return false;
  uint32_t used = atomic_load_explicit(&h->chunks, memory_order_acquire);
  for (uint32_t i = 0; i < used; i++) {
    if (!atomic_load_explicit(&spool.chunk[i], memory_order_acquire)) continue;
    if (!claim(&h->directory[i], generation)) continue;
    *index = i;
    remember(w, i);
    return true;
  }
  if (!grow(h, index, generation)) return false;
  remember(w, *index);
  return true;
}

/* Hands the writer's chunk over; a record of kind NONE ends it where it is not full. */
static void finish(weir_spool_header *h, weir_writer *w)
{
  if (!w->end) return;
  if (w->next < w->end) {
    memset(w->next, 0, sizeof *w->next);
    weir_writer_commit(w, 1);
  }
  atomic_store_explicit(&h->directory[w->chunk].state,
                        entry_state((uint32_t)(w->place >> 16), WEIR_CHUNK_FULL),
                        memory_order_release);
  w->next = w->end = NULL;
}

static void begin(weir_spool_header *h, weir_writer *w, uint32_t index, uint32_t generation)
{
  weir_chunk_entry *entry = &h->directory[index];
  if (!w->thread) w->thread = atomic_fetch_add(&h->threads, 1) + 1;
  entry->tid = (uint32_t)syscall(SYS_gettid);
  entry->thread = w->thread;
  entry->sequence = w->sequence++;
  atomic_store_explicit(&entry->state, entry_state(generation, WEIR_CHUNK_OWNED),
                        memory_order_release);
  w->next = atomic_load_explicit(&spool.chunk[index], memory_order_acquire);
  w->end = w->next + WEIR_SPOOL_SLOTS;
  w->place = (uint64_t)generation << 16;
  w->chunk = index;
  w->starved = 0;
}

/* A writer made under another spool starts afresh. */
static void renew(weir_writer *w)
{
  uint32_t epoch = weir_spool_epoch();
  if (w->epoch == epoch) return;
  memset(w, 0, sizeof *w);
  w->epoch = epoch;
}

/* Rolls to a new chunk; 0, or the errno why there is none. The old chunk stays in use then, unless
 * it is full to the last slot: it must be drained and come back, since it may be all there is. */
static int roll(weir_writer *w)
{
  uint32_t index, generation;
  weir_spool_header *h = weir_spool_current();
  if (!h) return ENOENT;
  renew(w);
  if (!take(h, w, &index, &generation)) {
    if (!++w->starved) w->starved = 1;
    if (w->next == w->end) finish(h, w);
    int reason = atomic_load_explicit(&spool.reason, memory_order_relaxed);
    return reason ? reason : ENOBUFS;
  }
  finish(h, w);
  begin(h, w, index, generation);
  refresh_clock(h);
  return 0;
}

weir_trace_event *weir_writer_roll(weir_writer *w, uint32_t slots)
{
  int saved = errno;
  int error = slots > WEIR_SPOOL_SLOTS ? EMSGSIZE : roll(w);
  if (error) weir_spool_drop(1, error);
  errno = saved;
  return error ? NULL : w->next;
}

void weir_writer_release(weir_writer *w)
{
  weir_spool_header *h = weir_spool_current();
  if (!h || w->epoch != weir_spool_epoch()) return;
  finish(h, w);
}

bool weir_writer_extended(weir_writer *w, weir_event_kind kind, const weir_trace_event *head,
                          const void *payload, size_t payload_bytes)
{
  enum {
    HEAD = offsetof(weir_trace_event, kind)
  }; /* the commit word is before it, and stays for last */
  size_t extra = (payload_bytes + sizeof *head - 1) / sizeof *head;
  uint32_t slots = (uint32_t)extra + 1;
  int saved = errno;
  bool fits =
      extra <= WEIR_SPOOL_MAX_EXTRA && ((size_t)(w->end - w->next) >= slots || roll(w) == 0);
  errno = saved;
  if (!fits) {
    weir_spool_header *h = weir_spool_current();
    if (h) atomic_fetch_add_explicit(&h->dropped_extended, 1, memory_order_relaxed);
    return false;
  }
  weir_trace_event *e = w->next;
  memcpy((char *)e + HEAD, (const char *)head + HEAD, sizeof *e - HEAD);
  e->kind = (uint8_t)kind;
  e->status = (uint16_t)extra;
  e->bytes = kind == WEIR_EV_STACK ? payload_bytes / sizeof(uint64_t) : payload_bytes;
  if (extra) memset(e + extra, 0, sizeof *e);
  memcpy(e + 1, payload, payload_bytes);
  e->duration_lo = weir_payload_check(e + 1, (uint32_t)extra);
  weir_writer_commit(w, slots);
  return true;
}
