/* ipc.c: memory and events shared with other processes.
 *
 * A handle names the process that exports (by number and start time), one of its open files, and a
 * place in it; who opens it reads that file through /proc/PID/fd. Memory is a part of the device's
 * own file; its last pages are the *exports*: the ids of exported allocations that still live, so
 * that a handle outlives neither its allocation nor its process. An interprocess event is a slot in
 * a file of the process's: how often it was recorded, and which of these recordings were reached.
 *
 * Recordings are numbered by all processes together. Of the last 64 it is known which are reached
 * and who made them: one whose process has ended counts as reached, for its work ended with it.
 */
#include "cuda/sim/memory/ipc.h"
#include "cuda/sim/memory/pool.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MEMORY_MAGIC "weirsimM"
#define EVENT_MAGIC  "weirsimE"
#define EXPORTS      (SIM_EXPORTS_BYTES / sizeof(uint64_t))
#define KNOWN        64   /* recordings of which it is known whether they are reached */
#define SLOTS        2048 /* interprocess events a process may make */
#define LOOK_NS      50000000

struct handle { /* what is in a CUipcMemHandle or CUipcEventHandle */
  char magic[8];
  int32_t pid, file; /* of the process that exports */
  uint64_t started;  /* when that process was, in the system's ticks */
  uint64_t offset;   /* of the memory, or of the slot, in the file */
  uint64_t bytes;
  uint64_t id;    /* of the allocation or the slot's use */
  int32_t index;  /* of the device, whatever is visible */
  uint32_t place; /* in the exports */
  uint64_t pool;  /* number of the pool it is of; 0: not of a pool */
};
_Static_assert(sizeof(struct handle) <= CU_IPC_HANDLE_SIZE, "a handle's room");

struct slot {                /* of an event, in the file; every process writes */
  _Atomic uint64_t id;       /* of this use; 0: free */
  _Atomic uint64_t recorded; /* recordings so far */
  _Atomic uint32_t wake;     /* changes when one is reached */
  uint32_t unused[11];
  struct {
    _Atomic uint64_t number; /* of the recording */
    _Atomic uint64_t pid;    /* that made it */
  } made[KNOWN];
  _Atomic uint64_t reached[KNOWN]; /* by number % KNOWN */
};
#define SLOT_BYTES ((size_t)4096)
_Static_assert(sizeof(struct slot) <= SLOT_BYTES, "a slot's room");

struct sim_shared {
  _Atomic uint32_t refs; /* the event, operations */
  struct slot *slot;
  uint32_t place; /* in this process's file */
  bool imported;  /* another process's: the mapping is this record's own */
};

struct sim_import {
  int32_t pid;
  uint64_t started, id;
  uint32_t refs; /* opens */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the process's event file */
static int event_file = -1;
static ino_t event_inode;
static char *event_slots; /* the file, mapped */
static uint64_t next_id = 1;

/* ---- processes and their files ------------------------------------------------------------------
 */

/* When the process was started; 0: there is none. */
static uint64_t started(int pid)
{
  char path[64], text[1024];
  (void)snprintf(path, sizeof path, "/proc/%d/stat", pid);
  int file = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t n = file < 0 ? -1 : read(file, text, sizeof text - 1);
  if (file >= 0) close(file);
  if (n <= 0) return 0;
  text[n] = 0;
  char *p = strrchr(text, ')'); /* behind it: state, and 18 numbers before the one that is asked */
  for (int field = 2; p && field < 22; field++)
    p = strchr(p + 1, ' ');
  return p ? strtoull(p + 1, NULL, 10) : 0;
}

static bool is_file(int file, ino_t inode)
{
  struct stat s;
  return file >= 0 && fstat(file, &s) == 0 && s.st_ino == inode;
}

/* The file of another process that the handle names; -1: it is gone, or not one of ours. */
static int open_file(const struct handle *h, const char *name)
{
  char path[64], link[64];
  if (started(h->pid) != h->started || !h->started) return -1;
  (void)snprintf(path, sizeof path, "/proc/%d/fd/%d", h->pid, h->file);
  ssize_t n = readlink(path, link, sizeof link - 1);
  if (n < 0) return -1;
  link[n] = 0;
  return strncmp(link, name, strlen(name)) == 0 ? open(path, O_RDWR | O_CLOEXEC) : -1;
}

static CUresult check_handle(const struct handle *h, const char *magic)
{
  if (memcmp(h->magic, magic, sizeof h->magic) != 0) return CUDA_ERROR_INVALID_VALUE;
  /* what a process exports it has already: real drivers answer so too */
  return h->pid == getpid() ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
}

/* ---- memory that is exported; sim_memory_lock held ----------------------------------------------
 */

static bool open_exports(struct sim_device *d)
{
  if (d->exports) return true;
  struct stat s;
  if (d->file < 0 || fstat(d->file, &s) || s.st_ino != d->inode) return false;
  void *p = mmap(NULL, SIM_EXPORTS_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, d->file,
                 s.st_size - (off_t)SIM_EXPORTS_BYTES);
  if (p == MAP_FAILED) return false;
  d->exports = p;
  return true;
}

/* The range's place among the exports, from 1. */
static bool give_place(struct sim_range *r)
{
  struct sim_device *d = r->device;
  if (r->exported) return true;
  if (!open_exports(d)) return false;
  for (uint32_t i = 0; i < EXPORTS; i++) {
    if (atomic_load(&d->exports[i])) continue;
    atomic_store(&d->exports[i], r->id);
    r->exported = i + 1;
    return true;
  }
  return false;
}

void sim_export_end(struct sim_range *r)
{
  if (r->exported) atomic_store(&r->device->exports[r->exported - 1], 0);
  r->exported = 0;
}

bool sim_range_exports(const struct sim_range *r)
{
  return r->kind == SIM_DEVICE && !r->pool && !r->graph && !r->hidden && r->device->file >= 0;
}

CUresult sim_range_export(struct sim_range *r, uint64_t pool, void *out)
{
  struct handle h = {.magic = MEMORY_MAGIC, .pid = getpid(), .started = started(getpid())};
  if (!give_place(r) || !is_file(r->device->file, r->device->inode)) return CUDA_ERROR_MAP_FAILED;
  h.file = r->device->file;
  h.offset = (uint64_t)(r->start - (uintptr_t)r->device->home);
  h.bytes = r->bytes;
  h.id = r->id;
  h.index = r->device->index;
  h.place = r->exported - 1;
  h.pool = pool;
  memcpy(out, &h, sizeof h);
  return CUDA_SUCCESS;
}

CUresult sim_cuIpcGetMemHandle(CUipcMemHandle *out, CUdeviceptr p)
{
  SIM_NEED_CONTEXT(c);
  (void)c;
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  memset(out, 0, sizeof *out);
  pthread_mutex_lock(&sim_memory_lock);
  struct sim_range *r = sim_range_at(p, 1);
  /* "a pointer to the base of an existing allocation" */
  bool base = r && r->start == p && sim_range_exports(r);
  CUresult error = base ? sim_range_export(r, 0, out) : CUDA_ERROR_INVALID_VALUE;
  pthread_mutex_unlock(&sim_memory_lock);
  return error;
}

/* ---- memory of others ---------------------------------------------------------------------------
 */

static struct sim_device *device_of(const struct handle *h)
{
  for (int i = 0; i < sim_device_count; i++)
    if (sim_devices[i].index == h->index) return &sim_devices[i];
  return NULL;
}

/* The allocation is still what it was when the handle was made. */
static bool still_exported(const struct handle *h, int file)
{
  struct stat s;
  uint64_t id = 0;
  if (fstat(file, &s) || h->place >= EXPORTS) return false;
  off_t at = s.st_size - (off_t)SIM_EXPORTS_BYTES + (off_t)(h->place * sizeof id);
  return pread(file, &id, sizeof id, at) == (ssize_t)sizeof id && id == h->id;
}

static struct sim_range *already_open(CUcontext c, const struct handle *h)
{
  for (struct sim_range *r = c->ranges; r; r = r->next)
    if (r->import && r->import->id == h->id && r->import->pid == h->pid &&
        r->import->started == h->started)
      return r;
  return NULL;
}

/* Maps the pages around the allocation; a range for the allocation itself. */
static CUresult map_import(CUcontext c, const struct handle *h, int file, CUmemoryPool pool,
                           CUdeviceptr *p)
{
  size_t page = (size_t)sysconf(_SC_PAGESIZE), skip = h->offset % page;
  struct sim_device *d = device_of(h);
  struct sim_import *m = calloc(1, sizeof *m);
  struct sim_range *r = d && m ? sim_range_new(c, d, h->bytes) : NULL;
  void *start = r ? mmap(NULL, h->bytes + skip, PROT_READ | PROT_WRITE, MAP_SHARED, file,
                         (off_t)(h->offset - skip))
                  : MAP_FAILED;
  if (start == MAP_FAILED) {
    free(m);
    free(r);
    return CUDA_ERROR_MAP_FAILED;
  }
  *m = (struct sim_import){.pid = h->pid, .started = h->started, .id = h->id, .refs = 1};
  r->kind = SIM_IMPORTED;
  r->start = (uintptr_t)start + skip;
  r->reserved = h->bytes + skip;
  r->import = m;
  r->pool = pool;
  if (sim_range_add(r)) {
    if (pool) sim_pool_count(pool, r->reserved);
    *p = r->start;
    return CUDA_SUCCESS;
  }
  munmap(start, r->reserved);
  free(m);
  free(r);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

void sim_import_end(struct sim_range *r)
{
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  munmap((void *)(r->start / page * page), r->reserved);
  free(r->import);
  r->import = NULL;
}

CUresult sim_cuIpcOpenMemHandle_v2(CUdeviceptr *p, CUipcMemHandle handle, unsigned int flags)
{
  SIM_NEED_CONTEXT(c);
  struct handle h;
  memcpy(&h, &handle, sizeof h);
  if (!p || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) return CUDA_ERROR_INVALID_VALUE;
  CUresult error = h.pool ? CUDA_ERROR_INVALID_VALUE : check_handle(&h, MEMORY_MAGIC);
  if (error) return error;
  int file = open_file(&h, "/memfd:weir-sim-device");
  if (file < 0) return CUDA_ERROR_MAP_FAILED;
  pthread_mutex_lock(&sim_memory_lock);
  struct sim_range *r = already_open(c, &h);
  if (!still_exported(&h, file)) {
    error = CUDA_ERROR_INVALID_HANDLE; /* freed since */
  } else if (r) {
    r->import->refs++;
    *p = r->start;
  } else {
    error = map_import(c, &h, file, NULL, p);
  }
  pthread_mutex_unlock(&sim_memory_lock);
  close(file);
  return error;
}

CUresult sim_range_import(CUcontext c, const void *data, int pid, uint64_t number,
                          CUmemoryPool pool, CUdeviceptr *p)
{
  struct handle h;
  memcpy(&h, data, sizeof h);
  if (memcmp(h.magic, MEMORY_MAGIC, sizeof h.magic) != 0 || h.pool != number || h.pid != pid)
    return CUDA_ERROR_INVALID_VALUE;
  int file = open_file(&h, "/memfd:weir-sim-device");
  if (file < 0) return CUDA_ERROR_MAP_FAILED;
  pthread_mutex_lock(&sim_memory_lock);
  CUresult error = still_exported(&h, file) ? map_import(c, &h, file, pool, p)
                                            : CUDA_ERROR_INVALID_VALUE; /* freed since */
  pthread_mutex_unlock(&sim_memory_lock);
  close(file);
  return error;
}

CUresult sim_cuIpcCloseMemHandle(CUdeviceptr p)
{
  SIM_NEED_CONTEXT(c);
  (void)c;
  pthread_mutex_lock(&sim_memory_lock);
  struct sim_range *r = sim_range_at(p, 1);
  bool mine = r && r->start == p && r->import && !r->pool;
  bool last = mine && --r->import->refs == 0;
  pthread_mutex_unlock(&sim_memory_lock);
  if (!mine) return CUDA_ERROR_INVALID_VALUE;
  return last ? sim_range_free(p, SIM_IMPORTED) : CUDA_SUCCESS;
}

/* ---- events -------------------------------------------------------------------------------------
 */

static bool open_event_file(void)
{
  if (event_slots) return true;
  struct stat s;
  int file = memfd_create("weir-sim-events", MFD_CLOEXEC);
  if (file < 0) return false;
  void *p = MAP_FAILED;
  if (ftruncate(file, (off_t)(SLOTS * SLOT_BYTES)) == 0 && fstat(file, &s) == 0)
    p = mmap(NULL, SLOTS * SLOT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (p == MAP_FAILED) {
    close(file);
    return false;
  }
  event_file = file;
  event_inode = s.st_ino;
  event_slots = p;
  return true;
}

static struct slot *slot_at(uint32_t place)
{
  return (struct slot *)(void *)(event_slots + place * SLOT_BYTES);
}

struct sim_shared *sim_shared_new(void)
{
  struct sim_shared *s = calloc(1, sizeof *s);
  if (!s) return NULL;
  pthread_mutex_lock(&lock);
  uint32_t place = 0;
  bool there = open_event_file();
  while (there && place < SLOTS && atomic_load(&slot_at(place)->id))
    place++;
  there = there && place < SLOTS;
  if (there) {
    s->slot = slot_at(place);
    memset(s->slot, 0, sizeof *s->slot);
    atomic_store(&s->slot->id, next_id++);
  }
  pthread_mutex_unlock(&lock);
  s->place = place;
  atomic_store(&s->refs, 1);
  if (there) return s;
  free(s);
  return NULL;
}

void sim_shared_ref(struct sim_shared *s)
{
  atomic_fetch_add(&s->refs, 1);
}

void sim_shared_unref(struct sim_shared *s)
{
  if (!s || atomic_fetch_sub(&s->refs, 1) != 1) return;
  if (s->imported)
    munmap(s->slot, SLOT_BYTES);
  else
    atomic_store(&s->slot->id, 0);
  free(s);
}

uint64_t sim_shared_record(struct sim_shared *s)
{
  uint64_t number = atomic_fetch_add(&s->slot->recorded, 1) + 1;
  atomic_store(&s->slot->made[number % KNOWN].pid, (uint64_t)getpid());
  atomic_store(&s->slot->made[number % KNOWN].number, number);
  return number;
}

static void futex(_Atomic uint32_t *word, int what, uint32_t value, const struct timespec *time)
{
  syscall(SYS_futex, word, what, value, time, NULL, 0);
}

void sim_shared_reach(struct sim_shared *s, uint64_t number)
{
  _Atomic uint64_t *reached = &s->slot->reached[number % KNOWN];
  uint64_t before = atomic_load(reached);
  while (before < number && !atomic_compare_exchange_weak(reached, &before, number))
    ;
  atomic_fetch_add(&s->slot->wake, 1);
  futex(&s->slot->wake, FUTEX_WAKE, INT32_MAX, NULL);
}

uint64_t sim_shared_last(const struct sim_shared *s)
{
  return atomic_load(&s->slot->recorded);
}

/* Whether a recording is reached, or was of a process that has ended. */
bool sim_shared_reached(const struct sim_shared *s, uint64_t number)
{
  const struct slot *slot = s->slot;
  if (!number || atomic_load(&slot->reached[number % KNOWN]) >= number) return true;
  if (atomic_load(&slot->made[number % KNOWN].number) != number) return false;
  pid_t pid = (pid_t)atomic_load(&slot->made[number % KNOWN].pid);
  return pid != getpid() && kill(pid, 0) && errno == ESRCH;
}

void sim_shared_wait(struct sim_shared *s, uint64_t number)
{
  const struct timespec look = {0, LOOK_NS}; /* then whether its process still is */
  for (;;) {
    uint32_t wake = atomic_load(&s->slot->wake);
    if (sim_shared_reached(s, number)) return;
    futex(&s->slot->wake, FUTEX_WAIT, wake, &look);
  }
}

CUresult sim_cuIpcGetEventHandle(CUipcEventHandle *out, CUevent e)
{
  if (!sim_arena_has(&sim_events, e)) return CUDA_ERROR_INVALID_HANDLE;
  if (!out || !e->shared || e->shared->imported) return CUDA_ERROR_INVALID_VALUE;
  if (!is_file(event_file, event_inode)) return CUDA_ERROR_MAP_FAILED;
  struct handle h = {.magic = EVENT_MAGIC,
                     .pid = getpid(),
                     .file = event_file,
                     .started = started(getpid()),
                     .offset = e->shared->place * SLOT_BYTES,
                     .bytes = SLOT_BYTES,
                     .id = atomic_load(&e->shared->slot->id),
                     .index = e->context->device->index};
  memset(out, 0, sizeof *out);
  memcpy(out, &h, sizeof h);
  return CUDA_SUCCESS;
}

static struct sim_shared *import_slot(const struct handle *h, CUresult *error)
{
  struct sim_shared *s = calloc(1, sizeof *s);
  int file = s ? open_file(h, "/memfd:weir-sim-events") : -1;
  *error = s ? CUDA_ERROR_MAP_FAILED : CUDA_ERROR_OUT_OF_MEMORY;
  void *p = file < 0 ? MAP_FAILED
                     : mmap(NULL, SLOT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file,
                            (off_t)(h->offset / SLOT_BYTES * SLOT_BYTES));
  if (file >= 0) close(file);
  if (p != MAP_FAILED && atomic_load(&((struct slot *)p)->id) != h->id) {
    munmap(p, SLOT_BYTES);
    p = MAP_FAILED;
    *error = CUDA_ERROR_INVALID_HANDLE; /* destroyed since */
  }
  if (p == MAP_FAILED) {
    free(s);
    return NULL;
  }
  *s = (struct sim_shared){.refs = 1, .slot = p, .imported = true};
  *error = CUDA_SUCCESS;
  return s;
}

CUresult sim_cuIpcOpenEventHandle(CUevent *event, CUipcEventHandle handle)
{
  SIM_NEED_CONTEXT(c);
  struct handle h;
  memcpy(&h, &handle, sizeof h);
  if (!event) return CUDA_ERROR_INVALID_VALUE;
  CUresult error = check_handle(&h, EVENT_MAGIC);
  struct sim_shared *s = error ? NULL : import_slot(&h, &error);
  if (error) return error;
  CUevent e = sim_event_new(c, CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS);
  if (!e) {
    sim_shared_unref(s);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  e->shared = s;
  *event = e;
  return CUDA_SUCCESS;
}
