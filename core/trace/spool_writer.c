/* spool_writer.c: the pen. Runs inside the traced program, so it allocates nothing, waits for
 * nobody, keeps no descriptor and leaves errno alone.
 *
 * How a thread gets a chunk, in this order: a FREE one of its ring, any FREE one already mapped, a
 * BARE or new one (blocks reserved, then mapped and pre-faulted), and when there is no room for
 * that a FREE one of any size. Each is claimed by one compare-and-swap on its directory entry,
 * which also serialises growing: who claims an entry that has no memory yet is the one to reserve
 * and map it, and gives the claim back if that fails. Nothing is ever unmapped but after a fork, so
 * an address once published stays good.
 *
 * How large. A thread begins with 16 KiB and has the double when it fills a chunk faster than the
 * collector looks, half when it takes very long. Many threads share 64 MiB before that; and a chunk
 * is never below a 1024th of what the process has already, so that the directory suffices for any
 * limit.
 *
 * When no chunk can be had the thread is *starved*: its records are counted as dropped. It looks at
 * its own ring at each of them, at the whole directory at every 16th, and asks the kernel for more
 * (after a failure) at most ten times a second over all threads, so that a full disk costs a few
 * loads an event.
 *
 * What takes a descriptor goes through syscall(): open and close are cancellation points in libc,
 * other preloaded libraries wrap them, and ThreadSanitizer, which never hears of a descriptor made
 * so, takes any other use of its number for a race with the last one of that number that it saw. */
#include "core/trace/held.h"
#include "core/trace/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/base/fork.h"
#include "core/base/trylock.h"
#include "core/base/rank.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1
#endif

#define DEFAULT_LIMIT (UINT64_C(1) << 30)  /* bytes */
#define RETRY_NS      UINT64_C(100000000)  /* between two tries to grow after one failed */
#define FAST_NS       UINT64_C(400000000)  /* a chunk filled in less: the next is larger */
#define SLOW_NS       UINT64_C(4000000000) /* in more: smaller */
#define PAGE          4096u                /* bytes of directory that are reserved at a time */
#define EASY_UNITS    ((64u << 20) / WEIR_SPOOL_UNIT) /* what the chunks in use share freely */

enum {
  STATE_BITS = WEIR_CHUNK_STATE_BITS,
  STATE_MASK = WEIR_CHUNK_STATE_MASK,
  GRADES = 7,        /* chunks are 1 to 64 units long */
  KEPT_CHUNKS = 128, /* that make up what a recorder keeps, of a program that writes fast */
  MANY = 1024,
  LOOK_AT = 128, /* entries looked at for a FREE one before growing */
  STARVED_SCAN = 15,
  NAME_TRIES = 1000
};

_Static_assert(sizeof(spool_budget) <= PAGE, "the budget's file is a page");
_Static_assert(WEIR_SPOOL_UNIT << (GRADES - 1) == WEIR_SPOOL_CHUNK, "the largest grade");

static FORK_STATE struct {
  _Atomic(spool_header *) header; /* mapped; NULL: no spool */
  uint64_t limit;                 /* bytes of chunks */
  uint64_t keep;                  /* bytes that a recorder keeps of this spool; 0: there is none */
  unsigned most_grade;            /* of chunks, where a record does not need more */
  dev_t device;                   /* of the file, to know it again by its path */
  ino_t inode;
  spool_header *stale;  /* the header's place after a fork, to be unmapped */
  spool_budget *budget; /* mapped; NULL: there is none, the limit is this spool's alone */
  dev_t budget_device;  /* of its file, to know it again in a forked child */
  ino_t budget_inode;
  _Atomic uint32_t seen;     /* entries ever used: no more need be looked at */
  _Atomic uint32_t ready;    /* entries whose blocks are reserved */
  _Atomic uint32_t end;      /* units of the file that are given out */
  _Atomic uint32_t owners;   /* writers with a chunk */
  _Atomic uint32_t look;     /* entry to look for a FREE one from */
  _Atomic uint64_t retry_at; /* CLOCK_MONOTONIC ns before which growing waits; 0: free to */
  _Atomic int reason;        /* errno of the last refusal */
  _Atomic uint64_t early_dropped, early_errno; /* drops while there was no header */
  trylock clock_guard;                         /* of the header's last pair */
  uint32_t pid, n;                             /* of its name PID-N.spool */
  char path[PATH_MAX];
} spool;

FORK_STATE _Atomic uint32_t spool_epoch; /* see spool_fork_epoch() */

static spool_steering own_steering; /* while there is no spool */
_Atomic(spool_steering *) spool_steering_words = &own_steering;

/* The chunks of this image's spool. */
static struct {
  _Atomic(trace_event *) at; /* mapped address; NULL: not mapped */
  uint8_t grade;             /* of it: units as 1 << grade */
} chunks[WEIR_SPOOL_MAX_CHUNKS];

/* What a forked child has from its parent, and need not ask the system for. */
static struct {
  uint32_t pid;           /* of the process that made the last spool in this memory */
  uint64_t pid_namespace; /* its; 0: not known to be ours */
  char exe[sizeof((spool_header *)0)->exe];
} origin;

spool_header *spool_current(void)
{
  return atomic_load_explicit(&spool.header, memory_order_acquire);
}

void spool_drop(uint64_t events, int errno_value)
{
  spool_header *h = spool_current();
  _Atomic uint64_t *count = h ? &h->dropped : &spool.early_dropped;
  _Atomic uint64_t *reason = h ? &h->drop_errno : &spool.early_errno;
  uint64_t none = 0;
  atomic_fetch_add_explicit(count, events, memory_order_relaxed);
  if (!atomic_load_explicit(reason, memory_order_relaxed))
    atomic_compare_exchange_strong(reason, &none, (uint64_t)errno_value);
}

/* ---- files ----------------------------------------------------------------------------------- */

static int open_spool_file(const char *path, int flags)
{
  return (int)syscall(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC | O_NOFOLLOW, 0600);
}

static void close_file(int fd)
{
  syscall(SYS_close, fd);
}

/* 0, or -1 and errno. */
static int file_status(int fd, struct stat *out)
{
  return (int)syscall(SYS_fstat, fd, out);
}

/* As mmap(2), shared, readable and writable. */
static void *map_shared(void *at, size_t bytes, int flags, int fd, uint64_t offset)
{
  return (void *)syscall(SYS_mmap, at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | flags, fd,
                         offset);
}

/* Reads up to size - 1 bytes of a file of /proc and ends them with NUL; bytes read, 0 on failure.
 * Such a file gives all that there is room for at once. */
static size_t slurp(const char *path, char *out, size_t size)
{
  int fd = open_spool_file(path, O_RDONLY);
  out[0] = 0;
  if (fd < 0) return 0;
  long n = syscall(SYS_read, fd, out, size - 1);
  close_file(fd);
  out[n > 0 ? n : 0] = 0;
  return n > 0 ? (size_t)n : 0;
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

/* Growing past RLIMIT_FSIZE would raise SIGXFSZ in the program. */
static bool size_allowed(uint64_t bytes)
{
  struct rlimit limit;
  return getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur == RLIM_INFINITY ||
         bytes <= limit.rlim_cur;
}

/* Reserves blocks, as posix_fallocate(3): 0 or an errno. */
static int reserve_blocks(int fd, uint64_t offset, uint64_t bytes)
{
  if (!size_allowed(offset + bytes)) return EFBIG;
  for (;;) {
    if (!syscall(SYS_fallocate, fd, 0, offset, bytes)) return 0;
    if (errno == EOPNOTSUPP || errno == ENOSYS) return write_zeros(fd, offset, bytes);
    if (errno != EINTR) return errno;
  }
}

/* Pre-faults what is reserved of a mapping. Faulting through madvise gives an error where touching
 * would give SIGBUS (file systems whose reservations do not bind). 0 or an errno. */
static int populate(void *p, int fd, uint64_t offset, size_t bytes)
{
  if (!madvise(p, bytes, MADV_POPULATE_WRITE)) return 0;
  if (errno == EINVAL) { /* before Linux 5.14 */
    if (map_shared(p, bytes, MAP_FIXED | MAP_POPULATE, fd, offset) != MAP_FAILED) return 0;
  } else if (errno == EINTR || errno == EAGAIN) {
    return 0;
  }
  return errno == EFAULT ? ENOSPC : errno;
}

/* Maps [offset, offset + bytes), of which the first `reserved` bytes are touched. NULL and errno.
 */
static void *map_file(int fd, uint64_t offset, size_t bytes, size_t reserved)
{
  void *p = map_shared(NULL, bytes, 0, fd, offset);
  if (p == MAP_FAILED) return NULL;
  int why = populate(p, fd, offset, reserved);
  if (!why) return p;
  munmap(p, bytes);
  errno = why;
  return NULL;
}

/* ---- of numbers that others write ------------------------------------------------------------ */

static uint64_t in_use(const _Atomic uint64_t *taken, const _Atomic uint64_t *returned)
{
  uint64_t t = atomic_load_explicit(taken, memory_order_relaxed);
  uint64_t r = atomic_load_explicit(returned, memory_order_relaxed);
  return t > r ? t - r : 0;
}

/* Whoever looks for a chunk looks at entries that others hold; what it finds is only sure once it
 * has claimed the entry. */
static uint32_t units_of(const chunk_entry *entry)
{
  return __atomic_load_n(&entry->units, __ATOMIC_RELAXED);
}

static void set_units(chunk_entry *entry, uint32_t units)
{
  __atomic_store_n(&entry->units, units, __ATOMIC_RELAXED);
}

/* ---- opening --------------------------------------------------------------------------------- */

static char *append_number(char *at, uint64_t value)
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

static char *append_text(char *at, const char *text)
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
  char *at = append_text(out, directory);
  *at++ = '/';
  at = append_number(at, pid);
  *at++ = '-';
  at = append_number(at, n);
  *append_text(at, suffix) = 0;
  return true;
}

/* Field 22; the name in field 2 may hold anything, so counting starts after it. */
uint64_t spool_start_time(uint32_t pid)
{
  char text[1024], path[48];
  uint64_t value = 0;
  char *at = append_text(path, "/proc/");
  at = pid == (uint32_t)getpid() ? append_text(at, "self") : append_number(at, pid);
  *append_text(at, "/stat") = 0;
  slurp(path, text, sizeof text);
  char *p = strrchr(text, ')');
  for (int field = 2; p && field < 22; field++)
    p = strchr(p + 1, ' ');
  for (p = p ? p + 1 : NULL; p && *p >= '0' && *p <= '9'; p++)
    value = value * 10 + (uint64_t)(*p - '0');
  return value;
}

static void read_boot_id(uint8_t out[16])
{
  static char text[64]; /* a forked child's is its parent's */
  int n = 0;
  if (!text[0]) slurp("/proc/sys/kernel/random/boot_id", text, sizeof text);
  memset(out, 0, 16);
  for (const char *p = text; *p && n < 32; p++) {
    int digit = *p >= '0' && *p <= '9' ? *p - '0' : *p >= 'a' && *p <= 'f' ? *p - 'a' + 10 : -1;
    if (digit < 0) continue;
    out[n / 2] = (uint8_t)(out[n / 2] << 4 | digit);
    n++;
  }
}

/* Arguments hold passwords and paths: where they are not wanted nothing of them reaches the file.
 */
static void fill_command_line(spool_header *h, bool redact)
{
  size_t bytes = slurp("/proc/self/cmdline", h->cmdline, sizeof h->cmdline);
  if (redact) {
    size_t first = strnlen(h->cmdline, bytes);
    memset(h->cmdline + first, 0, bytes - first);
    bytes = first;
  }
  h->cmdline_bytes = (uint32_t)bytes;
}

static uint32_t pid_of(const spool_options *options)
{
  return options->pid ? options->pid : (uint32_t)getpid();
}

static uint64_t pid_namespace(void)
{
  struct stat space;
  if (origin.pid_namespace) return origin.pid_namespace;
  return stat("/proc/self/ns/pid", &space) ? 0 : space.st_ino;
}

static void fill_exe(char *exe)
{
  if (!origin.exe[0]) {
    ssize_t n = readlink("/proc/self/exe", origin.exe, sizeof origin.exe - 1);
    origin.exe[n > 0 ? n : 0] = 0;
  }
  memcpy(exe, origin.exe, strlen(origin.exe) + 1);
}

static void fill_header(spool_header *h, const spool_options *options)
{
  struct timespec now;
  h->version = WEIR_SPOOL_VERSION;
  h->header_bytes = WEIR_SPOOL_HEADER;
  h->chunk_bytes = WEIR_SPOOL_CHUNK;
  h->api_count = options->api_count;
  h->api_hash = options->api_hash;
  h->pid = pid_of(options);
  h->ppid = (uint32_t)getppid();
  h->start_time = spool_start_time(h->pid);
  h->pid_namespace = origin.pid_namespace = pid_namespace();
  origin.pid = h->pid;
  clock_gettime(CLOCK_REALTIME, &now);
  h->realtime_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
  read_boot_id(h->boot_id);
  h->clock_kind = (uint32_t)clock_source_in_use;
  h->mode = options->mode;
  h->clock_hint_hz = clock_read_hint_hz();
  h->clock_first = clock_now();
  atomic_store(&h->last_mono_ns, h->clock_first.mono_ns);
  atomic_store(&h->last_ticks, h->clock_first.ticks);
  fill_exe(h->exe);
  atomic_store(&h->steering.recording, options->recording);
  atomic_store(&h->taken, WEIR_SPOOL_BLOCKS);
  fill_command_line(h, options->redact);
  h->rank = launched_rank();
  atomic_store(&h->dropped, atomic_exchange(&spool.early_dropped, 0));
  atomic_store(&h->drop_errno, atomic_exchange(&spool.early_errno, 0));
  if (syscall(SYS_getrandom, h->key, sizeof h->key, GRND_NONBLOCK) != sizeof h->key)
    memset(h->key, 0, sizeof h->key);
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

/* Maps a new file's header: its beginning is reserved, the rest a hole for now. With it comes, at
 * *first, a chunk, where it is asked for and there is room. 0 or an errno. */
static int map_header(int fd, spool_header **out, bool *first)
{
  struct stat file;
  int error = reserve_blocks(fd, 0, WEIR_SPOOL_BLOCKS);
  if (error) return error;
  if (file_status(fd, &file)) return errno;
  if (*first && reserve_blocks(fd, WEIR_SPOOL_HEADER, WEIR_SPOOL_UNIT)) *first = false;
  if (!size_allowed(WEIR_SPOOL_HEADER)) return EFBIG;
  if (!*first && syscall(SYS_ftruncate, fd, WEIR_SPOOL_HEADER)) return errno;
  const size_t bytes = WEIR_SPOOL_HEADER + (*first ? WEIR_SPOOL_UNIT : 0);
  *out = map_file(fd, 0, bytes, WEIR_SPOOL_BLOCKS);
  if (!*out) return errno;
  if (*first &&
      populate((char *)*out + WEIR_SPOOL_HEADER, fd, WEIR_SPOOL_HEADER, WEIR_SPOOL_UNIT)) {
    munmap((char *)*out + WEIR_SPOOL_HEADER, WEIR_SPOOL_UNIT);
    *first = false;
  }
  spool.device = file.st_dev;
  spool.inode = file.st_ino;
  return 0;
}

/* The chunk that came with the header is free for the first writer. */
static void place_first(spool_header *h)
{
  chunk_entry *entry = spool_directory(h);
  entry->place = WEIR_SPOOL_HEADER / WEIR_SPOOL_UNIT;
  set_units(entry, 1);
  chunks[0].grade = 0;
  atomic_store(&chunks[0].at, (trace_event *)(void *)((char *)h + WEIR_SPOOL_HEADER));
  atomic_fetch_add(&spool.end, 1);
  atomic_store(&spool.seen, 1);
  atomic_store(&h->chunks, 1);
  atomic_fetch_add(&h->taken, WEIR_SPOOL_UNIT);
}

/* Makes the header of a new file, mapped, with its first chunk where `*first` asks for one and
 * there is room. Closes `fd`. 0 or an errno. */
static int make_spool_header(int fd, const spool_options *options, spool_header **out, bool *first)
{
  int error = map_header(fd, out, first);
  close_file(fd);
  if (error) return error;
  fill_header(*out, options);
  if (*first) place_first(*out);
  return 0;
}

static void discard_header(spool_header *h, bool first)
{
  spool_drop(atomic_load(&h->dropped), (int)atomic_load(&h->drop_errno));
  if (first) atomic_store(&spool.seen, 0);
  if (first) atomic_fetch_sub(&spool.end, 1);
  if (first) atomic_store(&chunks[0].at, NULL);
  munmap(h, WEIR_SPOOL_HEADER + (first ? WEIR_SPOOL_UNIT : 0));
}

static bool name_spool(const char *directory, uint32_t pid, unsigned n)
{
  spool.pid = pid;
  spool.n = n;
  return make_path(spool.path, directory, pid, n, WEIR_SPOOL_SUFFIX);
}

/* Makes the file under a name of its own, then gives it its real one: whoever sees the real name
 * sees a whole header. 0 or an errno; *out is the mapped header. */
static int create_spool(const spool_options *options, unsigned n, spool_header **out, bool *first)
{
  char unfinished[PATH_MAX];
  uint32_t pid = pid_of(options);
  spool_header *h = NULL;
  if (!name_spool(options->directory, pid, n)) return ENAMETOOLONG;
  /* A name that is taken is mostly seen here, cheaply; a forked child's first is not. */
  if ((n || pid == origin.pid || !origin.pid) && !faccessat(AT_FDCWD, spool.path, F_OK, 0))
    return EEXIST;
  make_path(unfinished, options->directory, pid, n, WEIR_SPOOL_UNBORN);
  int fd = open_spool_file(unfinished, O_RDWR | O_CREAT | O_EXCL);
  if (fd < 0) return errno;
  bool chunk = *first;
  int error = make_spool_header(fd, options, &h, &chunk);
  if (!error) error = publish(unfinished, spool.path);
  if (!error) {
    *out = h;
    *first = chunk;
    return 0;
  }
  if (h) discard_header(h, chunk);
  unlink(unfinished);
  return error;
}

/* An errno of a folder that this process may not enter, or that its root does not have. */
static bool cannot_enter(int error)
{
  return error == EACCES || error == EPERM || error == ENOENT;
}

/* create_spool() by way of the collector, who gives the file its name once the connection is
 * closed. */
static int request_new(const spool_options *options, spool_header **out, bool *first)
{
  const spool_request request = {.version = REQUEST_VERSION, .what = REQUEST_NEW};
  const char *folder = options->directory;
  spool_answer answer;
  spool_header *h = NULL;
  int connection;
  int fd = spool_request_file(folder, strlen(folder), &request, &answer, &connection);
  if (fd < 0) return errno;
  bool chunk = *first;
  int error = make_spool_header(fd, options, &h, &chunk);
  if (!error && !name_spool(folder, answer.pid, answer.n)) error = ENAMETOOLONG;
  if (error && h) discard_header(h, chunk);
  close_file(connection);
  if (error) return error;
  *out = h;
  *first = chunk;
  return 0;
}

/* The file of this process's spool, of the collector: -1 and an errno. */
static int request_again(void)
{
  const spool_header *h = spool_current();
  const char *slash = strrchr(spool.path, '/');
  spool_answer answer;
  spool_request request = {REQUEST_VERSION, REQUEST_AGAIN, spool.pid, spool.n, {0}};
  if (!h || !slash) {
    errno = ENOENT;
    return -1;
  }
  memcpy(request.key, h->key, sizeof request.key);
  return spool_request_file(spool.path, (size_t)(slash - spool.path), &request, &answer, NULL);
}

/* Bytes of the chunk `index`, which is mapped. */
static size_t chunk_bytes(uint32_t index)
{
  return (size_t)WEIR_SPOOL_UNIT << chunks[index].grade;
}

/* Goes on as the spool had it. */
static void use_own_steering(void)
{
  const spool_steering *was = spool_steering_now();
  if (was == &own_steering) return;
  atomic_store(&own_steering.recording, atomic_load(&was->recording));
  atomic_store(&own_steering.stacks_anew, atomic_load(&was->stacks_anew));
  atomic_store_explicit(&spool_steering_words, &own_steering, memory_order_release);
}

/* Unmaps a former spool of this process. */
static void unmap_former_spool(void)
{
  use_own_steering();
  spool_header *h = atomic_exchange(&spool.header, NULL);
  if (!h) h = spool.stale;
  spool.stale = NULL;
  if (h) munmap(h, WEIR_SPOOL_HEADER);
  for (uint32_t i = 0, n = atomic_exchange(&spool.seen, 0); i < n; i++) {
    trace_event *chunk = atomic_exchange(&chunks[i].at, NULL);
    if (chunk) munmap(chunk, chunk_bytes(i));
  }
  atomic_store(&spool.owners, 0);
  atomic_store(&spool.look, 0);
  atomic_store(&spool.retry_at, 0);
  atomic_store(&spool.ready, (WEIR_SPOOL_BLOCKS - WEIR_SPOOL_DIRECTORY) / sizeof(chunk_entry));
  atomic_store(&spool.end, WEIR_SPOOL_HEADER / WEIR_SPOOL_UNIT);
}

/* Whether the mapped budget, a parent's, is this file. */
static bool is_budget(const char *path)
{
  struct stat file;
  return spool.budget && !lstat(path, &file) && file.st_dev == spool.budget_device &&
         file.st_ino == spool.budget_inode;
}

static void unmap_budget(void)
{
  if (spool.budget) munmap(spool.budget, PAGE);
  spool.budget = NULL;
}

/* Maps the folder's budget, which whoever comes first makes. Without it the limit holds for this
 * spool. */
static void map_budget(const char *directory)
{
  char path[PATH_MAX];
  struct stat file;
  if (strlen(directory) + sizeof WEIR_SPOOL_BUDGET + 1 > sizeof path) {
    unmap_budget();
    return;
  }
  char *at = append_text(path, directory);
  *at++ = '/';
  *append_text(at, WEIR_SPOOL_BUDGET) = 0;
  if (is_budget(path)) return;
  unmap_budget();
  int fd = open_spool_file(path, O_RDWR | O_CREAT | O_NONBLOCK);
  if (fd < 0) return;
  if (!file_status(fd, &file) && S_ISREG(file.st_mode) && !reserve_blocks(fd, 0, PAGE))
    spool.budget = map_file(fd, 0, PAGE, PAGE);
  close_file(fd);
  spool.budget_device = file.st_dev;
  spool.budget_inode = file.st_ino;
}

/* A header is taken from the budget whatever there is left: who cannot write it can count no drop
 * either. */
static void charge_header(void)
{
  if (spool.budget) atomic_fetch_add(&spool.budget->taken, WEIR_SPOOL_BLOCKS);
}

static void refund(uint64_t bytes)
{
  if (spool.budget) atomic_fetch_sub(&spool.budget->taken, bytes);
}

/* A first chunk's bytes, which the limit must have room for. */
static bool charge_first(void)
{
  if (!spool.budget) return WEIR_SPOOL_BLOCKS + WEIR_SPOOL_UNIT <= spool.limit;
  atomic_fetch_add(&spool.budget->taken, WEIR_SPOOL_UNIT);
  if (in_use(&spool.budget->taken, &spool.budget->returned) <= spool.limit) return true;
  refund(WEIR_SPOOL_UNIT);
  return false;
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

/* The largest grade of at most `units`. */
static unsigned grade_below(uint64_t units)
{
  unsigned grade = 0;
  while (grade + 1 < GRADES && UINT64_C(2) << grade <= units)
    grade++;
  return grade;
}

static void set_limits(const spool_options *options)
{
  spool.keep = options->keep_bytes;
  spool.limit = options->limit_bytes ? options->limit_bytes : DEFAULT_LIMIT;
  if (spool.keep && !options->limit_bytes) spool.limit = INT64_MAX;
  spool.most_grade = GRADES - 1;
  if (spool.keep) spool.most_grade = grade_below(spool.keep / WEIR_SPOOL_UNIT / KEPT_CHUNKS);
}

weir_status spool_open(const spool_options *options)
{
  int saved = errno, error = EEXIST;
  spool_header *h = NULL;
  if (!options->directory || options->directory[0] != '/')
    return weir_fail(WEIR_EINVAL, "a spool's folder must be an absolute path, not \"%s\"",
                     options->directory ? options->directory : "");
  clock_init();
  unmap_former_spool();
  set_limits(options);
  if (options->alone)
    unmap_budget();
  else
    map_budget(options->directory);
  charge_header();
  const bool charged = options->chunk && charge_first();
  bool first = charged;
  for (unsigned n = 0; n < NAME_TRIES && error == EEXIST; n++)
    error = create_spool(options, n, &h, &first);
  if (cannot_enter(error) && !options->alone && !request_new(options, &h, &first)) error = 0;
  if (error) refund(WEIR_SPOOL_BLOCKS);
  if (charged && (error || !first)) refund(WEIR_SPOOL_UNIT);
  errno = saved;
  if (error)
    return weir_fail_errno(status_of(error), error, "cannot create a spool in %s",
                           options->directory);
  atomic_fetch_add(&spool_epoch, 1);
  atomic_store_explicit(&spool.header, h, memory_order_release);
  atomic_store_explicit(&spool_steering_words, &h->steering, memory_order_release);
  return WEIR_OK;
}

/* Refreshes the header's later clock pair. The ticks are 0 while the other half is stored, so that
 * no reader pairs halves of two moments. */
static void refresh_clock(spool_header *h)
{
  uint32_t epoch = spool_fork_epoch();
  if (!trylock_take(&spool.clock_guard, epoch)) return;
  clock_pair now = clock_now();
  atomic_store(&h->last_ticks, 0);
  atomic_store(&h->last_mono_ns, now.mono_ns);
  atomic_store(&h->last_ticks, now.ticks);
  trylock_leave(&spool.clock_guard);
}

void spool_close(void)
{
  spool_header *h = spool_current();
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

void spool_after_fork(void)
{
  int saved = errno;
  spool_header *h = atomic_exchange(&spool.header, NULL);
  use_own_steering();
  atomic_fetch_add(&spool_epoch, 1);
  if ((uint32_t)getppid() != origin.pid) origin.pid_namespace = 0; /* it may have gone to another */
  if (h) {
    spool.stale = h;
    replace(h, WEIR_SPOOL_HEADER);
    for (uint32_t i = 0, n = atomic_load(&spool.seen); i < n; i++) {
      trace_event *chunk = atomic_load(&chunks[i].at);
      if (chunk) replace(chunk, chunk_bytes(i));
    }
  }
  errno = saved;
}

bool spool_announce(void)
{
  const uint32_t pid = (uint32_t)getpid();
  if (!spool.budget) return false;
  for (uint32_t i = 0; i < WEIR_SPOOL_ANNOUNCED; i++) {
    _Atomic uint32_t *slot = &spool.budget->announced[(pid + i) % WEIR_SPOOL_ANNOUNCED];
    uint32_t none = 0;
    if (atomic_compare_exchange_strong(slot, &none, pid)) return true;
  }
  return false;
}

/* ---- chunks ---------------------------------------------------------------------------------- */

static uint32_t entry_state(uint32_t generation, uint32_t state)
{
  return generation << STATE_BITS | state;
}

/* Takes the chunk of `entry` out of state `from`; *generation is its new one. */
static bool claim_chunk(chunk_entry *entry, uint32_t from, uint32_t *generation)
{
  uint32_t seen = atomic_load_explicit(&entry->state, memory_order_relaxed);
  if ((seen & STATE_MASK) != from) return false;
  *generation = ((seen >> STATE_BITS) + 1) & UINT32_MAX >> STATE_BITS;
  return atomic_compare_exchange_strong_explicit(&entry->state, &seen,
                                                 entry_state(*generation, WEIR_CHUNK_TAKEN),
                                                 memory_order_acquire, memory_order_relaxed);
}

static void raise_to(_Atomic uint32_t *count, uint32_t value)
{
  uint32_t seen = atomic_load(count);
  while (seen < value && !atomic_compare_exchange_weak(count, &seen, value))
    continue;
}

/* The spool's file, found again by its path, or by the collector: it must be the one we made. -1
 * and errno. */
static int open_again(void)
{
  struct stat file;
  int error = 0, fd = open_spool_file(spool.path, O_RDWR);
  if (fd < 0 && cannot_enter(errno)) fd = request_again();
  if (fd < 0) return -1;
  if (file_status(fd, &file))
    error = errno;
  else if (file.st_dev != spool.device || file.st_ino != spool.inode)
    error = ESTALE;
  if (!error) return fd;
  close_file(fd);
  errno = error;
  return -1;
}

/* ---- the budget ------------------------------------------------------------------------------ */

static uint64_t own_bytes(const spool_header *h)
{
  return in_use(&h->taken, &h->returned);
}

static void repay_budget(spool_header *h, uint64_t bytes)
{
  atomic_fetch_sub(&h->taken, bytes);
  if (spool.budget) atomic_fetch_sub(&spool.budget->taken, bytes);
}

/* What is kept, and two chunks for each thread that writes and the one that is about to. */
static uint64_t most_own_bytes(void)
{
  const uint64_t chunk = (uint64_t)WEIR_SPOOL_UNIT << spool.most_grade;
  const uint32_t owners = atomic_load_explicit(&spool.owners, memory_order_relaxed);
  return spool.keep ? spool.keep + 2 * chunk * (owners + 1) : UINT64_MAX;
}

/* Takes `bytes` from the budget; false: they would pass the limit. */
static bool draw_budget(spool_header *h, uint64_t bytes)
{
  atomic_fetch_add(&h->taken, bytes);
  if (spool.budget) atomic_fetch_add(&spool.budget->taken, bytes);
  uint64_t used = own_bytes(h);
  if (spool.budget) used = in_use(&spool.budget->taken, &spool.budget->returned);
  if (used <= spool.limit && own_bytes(h) <= most_own_bytes()) return true;
  repay_budget(h, bytes);
  return false;
}

/* ---- growing --------------------------------------------------------------------------------- */

/* Gives the claimed entry its place in the file, once and for ever. */
static bool place_chunk(chunk_entry *entry, uint32_t units)
{
  if (units_of(entry)) return true;
  uint32_t at = atomic_fetch_add(&spool.end, units);
  if (at > WEIR_SPOOL_MAX_UNITS - units) {
    atomic_fetch_sub(&spool.end, units);
    errno = ENOBUFS;
    return false;
  }
  entry->place = at;
  set_units(entry, units);
  return true;
}

/* The opposite, of a chunk without memory: so that a smaller one may fit there. */
static void displace(chunk_entry *entry)
{
  uint32_t end = entry->place + units_of(entry);
  if (!units_of(entry) || !atomic_compare_exchange_strong(&spool.end, &end, entry->place)) return;
  entry->place = 0;
  set_units(entry, 0);
}

/* Reserves blocks of chunk `index`, which the caller has claimed, and maps it where it is not
 * mapped yet. 0 or an errno. */
static int map_chunk(spool_header *h, uint32_t index, unsigned grade)
{
  chunk_entry *entry = &spool_directory(h)[index];
  trace_event *chunk = atomic_load(&chunks[index].at);
  const size_t bytes = (size_t)WEIR_SPOOL_UNIT << grade;
  int fd = open_again(), error = 0;
  if (fd < 0) return errno;
  if (!place_chunk(entry, 1u << grade)) error = errno;
  const uint64_t offset = (uint64_t)entry->place * WEIR_SPOOL_UNIT;
  if (!error) error = reserve_blocks(fd, offset, bytes);
  if (!error && chunk) error = populate(chunk, fd, offset, bytes);
  if (!error && !chunk && !(chunk = map_file(fd, offset, bytes, bytes))) error = errno;
  close_file(fd);
  if (error || atomic_load(&chunks[index].at)) return error;
  chunks[index].grade = (uint8_t)grade; /* for good, and read by whoever sees the address */
  atomic_store_explicit(&chunks[index].at, chunk, memory_order_release);
  return 0;
}

/* Reserves the next part of the directory when entry `index` is beyond what is. 0 or an errno. */
static int ready_entry(spool_header *h, uint32_t index)
{
  uint32_t ready = atomic_load(&spool.ready);
  if (index < ready) return 0;
  uint64_t at = (WEIR_SPOOL_DIRECTORY + ready * sizeof(chunk_entry)) / PAGE * PAGE + PAGE;
  uint32_t more = (uint32_t)((at + PAGE - WEIR_SPOOL_DIRECTORY) / sizeof(chunk_entry));
  if (!draw_budget(h, PAGE)) return ENOBUFS;
  int fd = open_again();
  int error = fd < 0 ? errno : reserve_blocks(fd, at, PAGE);
  if (!error) error = populate((char *)h + at, fd, at, PAGE);
  if (fd >= 0) close_file(fd);
  if (error || !atomic_compare_exchange_strong(&spool.ready, &ready, more)) repay_budget(h, PAGE);
  return error;
}

/* Claims an entry that was never placed; one that somebody else has placed meanwhile goes back. */
static bool claim_unplaced(chunk_entry *entry, uint32_t *generation)
{
  if (units_of(entry) || !claim_chunk(entry, WEIR_CHUNK_FREE, generation)) return false;
  if (!units_of(entry)) return true;
  atomic_store(&entry->state, entry_state(*generation, WEIR_CHUNK_FREE));
  return false;
}

/* Claims a chunk of this grade without blocks: a BARE one, or one never placed. 0 or an errno. */
static int claim_empty(spool_header *h, unsigned grade, uint32_t *index, uint32_t *generation)
{
  chunk_entry *directory = spool_directory(h);
  uint32_t seen = atomic_load_explicit(&spool.seen, memory_order_acquire);
  for (*index = 0; *index < seen; ++*index) {
    chunk_entry *entry = &directory[*index];
    if (units_of(entry) == 1u << grade && claim_chunk(entry, WEIR_CHUNK_BARE, generation)) return 0;
    if (claim_unplaced(entry, generation)) return 0;
  }
  for (; *index < WEIR_SPOOL_MAX_CHUNKS; ++*index) {
    int error = ready_entry(h, *index);
    if (error) return error;
    if (claim_unplaced(&directory[*index], generation)) return 0;
  }
  return ENOBUFS;
}

/* 0, or an errno; ENOBUFS: the limit. */
static int grow_by(spool_header *h, unsigned grade, uint32_t *index, uint32_t *generation)
{
  const uint64_t bytes = (uint64_t)WEIR_SPOOL_UNIT << grade;
  if (!draw_budget(h, bytes)) return ENOBUFS;
  int error = claim_empty(h, grade, index, generation);
  if (!error) {
    error = map_chunk(h, *index, grade);
    raise_to(&spool.seen, *index + 1);
    raise_to(&h->chunks, *index + 1);
    if (!error) return 0;
    chunk_entry *entry = &spool_directory(h)[*index];
    if (!atomic_load(&chunks[*index].at)) displace(entry);
    uint32_t state = units_of(entry) ? WEIR_CHUNK_BARE : WEIR_CHUNK_FREE;
    atomic_store(&entry->state, entry_state(*generation, state));
  }
  repay_budget(h, bytes);
  return error;
}

/* A chunk with blocks of its own, of grade `want`, or, where there is no room for that, of the
 * largest there is room for, down to `least`. */
static bool add_chunk(spool_header *h, unsigned want, unsigned least, uint32_t *index,
                      uint32_t *generation)
{
  uint64_t retry_at = atomic_load_explicit(&spool.retry_at, memory_order_relaxed);
  if (retry_at && clock_monotonic_ns() < retry_at) return false;
  int error = 0, refusal = 0;
  for (unsigned grade = want + 1; grade-- > least;) {
    error = grow_by(h, grade, index, generation);
    if (!error) {
      atomic_store(&spool.retry_at, 0);
      return true;
    }
    if (error != ENOBUFS) refusal = error;
    if (error != ENOBUFS && error != ENOSPC && error != EFBIG && error != ENOMEM) break;
  }
  atomic_store(&spool.reason, refusal ? refusal : error);
  if (refusal) atomic_store(&spool.retry_at, clock_monotonic_ns() + RETRY_NS);
  return false;
}

/* ---- choosing -------------------------------------------------------------------------------- */

/* The smallest grade that has `slots`. */
static unsigned grade_for(uint32_t slots)
{
  unsigned grade = 0;
  while (((size_t)WEIR_SPOOL_UNIT << grade) / sizeof(trace_event) < slots)
    grade++;
  return grade;
}

/* The grade the next chunk of `w` should have; at least `least`. */
static unsigned grade_wanted(const spool_header *h, const spool_writer *w, unsigned least)
{
  uint32_t owners = atomic_load_explicit(&spool.owners, memory_order_relaxed);
  unsigned share = grade_below(EASY_UNITS / (owners + 1));
  unsigned floor = grade_below(own_bytes(h) / WEIR_SPOOL_UNIT / MANY);
  unsigned grade = w->grade < share ? w->grade : share;
  if (grade < floor) grade = floor;
  if (grade > spool.most_grade) grade = spool.most_grade;
  return grade < least ? least : grade;
}

static bool take_mapped(spool_header *h, uint32_t index, unsigned from, unsigned to,
                        uint32_t *generation)
{
  if (!atomic_load_explicit(&chunks[index].at, memory_order_acquire)) return false;
  if (chunks[index].grade < from || chunks[index].grade > to) return false;
  return claim_chunk(&spool_directory(h)[index], WEIR_CHUNK_FREE, generation);
}

/* Claims a FREE chunk of the ring, the first of it that is: a thread that is drained in time goes
 * on using the same two or three, which stay in its cache. */
static bool take_ring(spool_header *h, const spool_writer *w, unsigned from, uint32_t *index,
                      uint32_t *generation)
{
  for (uint32_t i = 0; i < w->ring_size; i++) {
    if (!take_mapped(h, w->ring[i], from, GRADES, generation)) continue;
    *index = w->ring[i];
    return true;
  }
  return false;
}

static void remember_chunk(spool_writer *w, uint32_t index)
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

/* Claims any FREE chunk of the grades `from` to `to` among the next `most` entries. */
static bool take_any(spool_header *h, unsigned from, unsigned to, uint32_t most, uint32_t *index,
                     uint32_t *generation)
{
  uint32_t used = atomic_load_explicit(&spool.seen, memory_order_acquire);
  uint32_t at = atomic_load_explicit(&spool.look, memory_order_relaxed);
  for (uint32_t i = 0; i < used && i < most; i++, at++) {
    if (at >= used) at = 0;
    if (!take_mapped(h, at, from, to, generation)) continue;
    *index = at;
    atomic_store_explicit(&spool.look, at + 1, memory_order_relaxed);
    return true;
  }
  atomic_store_explicit(&spool.look, at, memory_order_relaxed);
  return false;
}

/* Claims a chunk with room for `slots`. */
static bool take_chunk(spool_header *h, spool_writer *w, uint32_t slots, uint32_t *index,
                       uint32_t *generation)
{
  const unsigned least = grade_for(slots), want = grade_wanted(h, w, least);
  if (take_ring(h, w, w->starved ? least : want, index, generation)) return true;
  if (w->starved & STARVED_SCAN) return false;
  if (!take_any(h, want, want + 2, LOOK_AT, index, generation) &&
      !add_chunk(h, want, least, index, generation) &&
      !take_any(h, least, GRADES, UINT32_MAX, index, generation))
    return false;
  remember_chunk(w, *index);
  return true;
}

/* Hands the writer's chunk over; a record of kind NONE ends it where it is not full. */
static void finish_chunk(spool_header *h, spool_writer *w)
{
  if (!w->end) return;
  if (w->next < w->end) {
    memset(w->next, 0, sizeof *w->next);
    spool_writer_commit(w, 1);
  }
  atomic_store_explicit(&spool_directory(h)[w->chunk].state,
                        entry_state((uint32_t)(w->place >> 16), WEIR_CHUNK_FULL),
                        memory_order_release);
  w->next = w->end = NULL;
  atomic_fetch_sub_explicit(&spool.owners, 1, memory_order_relaxed);
}

/* Commits what is held; false: there are not so many slots after it. A writer of another spool
 * holds what is no more. */
static bool commit_held(spool_writer *w, uint32_t slots)
{
  if (!w->held_end || w->epoch != spool_fork_epoch()) return false;
  held_commit(w);
  return (size_t)(w->end - w->next) >= slots;
}

static void begin_chunk(spool_header *h, spool_writer *w, uint32_t index, uint32_t generation)
{
  chunk_entry *entry = &spool_directory(h)[index];
  if (!w->thread) w->thread = atomic_fetch_add(&h->threads, 1) + 1;
  entry->tid = (uint32_t)syscall(SYS_gettid);
  entry->thread = w->thread;
  entry->sequence = w->sequence++;
  atomic_store_explicit(&entry->state, entry_state(generation, WEIR_CHUNK_OWNED),
                        memory_order_release);
  w->next = atomic_load_explicit(&chunks[index].at, memory_order_acquire);
  w->end = w->next + chunk_bytes(index) / sizeof *w->next;
  w->place = (uint64_t)generation << 16;
  w->chunk = index;
  w->starved = 0;
}

/* A writer made under another spool starts afresh. */
static void renew(spool_writer *w)
{
  uint32_t epoch = spool_fork_epoch();
  if (w->epoch == epoch) return;
  memset(w, 0, sizeof *w);
  w->epoch = epoch;
}

/* By how long the last chunk lasted. */
static void regrade(spool_writer *w)
{
  uint64_t now = clock_monotonic_ns();
  if (w->begun && now - w->begun < FAST_NS && w->grade < GRADES - 1) w->grade++;
  if (w->begun && now - w->begun > SLOW_NS && w->grade) w->grade--;
  w->begun = now;
}

/* Rolls to a new chunk with `slots`; 0, or the errno why there is none. The old chunk stays in use
 * then, unless it is full to the last slot: it must be drained and come back, since it may be all
 * there is. */
static int roll(spool_writer *w, uint32_t slots)
{
  uint32_t index, generation;
  spool_header *h = spool_current();
  if (!h) return ENOENT;
  renew(w);
  if (!w->starved) regrade(w);
  if (!take_chunk(h, w, slots, &index, &generation)) {
    if (!++w->starved) w->starved = 1;
    if (w->next == w->end) finish_chunk(h, w);
    int reason = atomic_load_explicit(&spool.reason, memory_order_relaxed);
    return reason ? reason : ENOBUFS;
  }
  finish_chunk(h, w);
  atomic_fetch_add_explicit(&spool.owners, 1, memory_order_relaxed);
  begin_chunk(h, w, index, generation);
  refresh_clock(h);
  return 0;
}

trace_event *spool_writer_roll(spool_writer *w, uint32_t slots)
{
  int saved = errno;
  if (commit_held(w, slots)) return w->next;
  int error = slots > WEIR_SPOOL_SLOTS ? EMSGSIZE : roll(w, slots);
  if (error) spool_drop(1, error);
  errno = saved;
  return error ? NULL : w->next;
}

void spool_writer_release(spool_writer *w)
{
  spool_header *h = spool_current();
  if (!h || w->epoch != spool_fork_epoch()) return;
  (void)commit_held(w, 0);
  finish_chunk(h, w);
}

bool spool_writer_extended(spool_writer *w, event_kind kind, const trace_event *head,
                           const void *payload, size_t payload_bytes)
{
  enum {
    HEAD = offsetof(trace_event, kind)
  }; /* the commit word is before it, and stays for last */
  size_t extra = (payload_bytes + sizeof *head - 1) / sizeof *head;
  uint32_t slots = (uint32_t)extra + 1;
  int saved = errno;
  bool fits = extra <= WEIR_SPOOL_MAX_EXTRA &&
              ((size_t)(w->end - w->next) >= slots || commit_held(w, slots) || roll(w, slots) == 0);
  errno = saved;
  if (!fits) {
    spool_header *h = spool_current();
    if (h) atomic_fetch_add_explicit(&h->dropped_extended, 1, memory_order_relaxed);
    return false;
  }
  trace_event *e = w->next;
  memcpy((char *)e + HEAD, (const char *)head + HEAD, sizeof *e - HEAD);
  e->kind = (uint8_t)kind;
  e->status = (uint16_t)extra;
  e->bytes = kind == WEIR_EV_STACK ? payload_bytes / sizeof(uint64_t) : payload_bytes;
  if (extra) memset(e + extra, 0, sizeof *e);
  if (payload_bytes) memcpy(e + 1, payload, payload_bytes);
  e->duration_lo = event_payload_check(e + 1, (uint32_t)extra);
  spool_writer_commit(w, slots);
  return true;
}
