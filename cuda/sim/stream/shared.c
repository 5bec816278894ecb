/* shared.c: events shared with other processes.
 *
 * Such an event is a slot in a file of the process that made it: how often it was recorded, and
 * which of these recordings were reached. Recordings are numbered by all processes together. Of the
 * last 64 it is known which are reached and who made them: one whose process has ended counts as
 * reached, for its work ended with it. */
#include "cuda/sim/stream/shared.h"
#include "cuda/sim/device/handle.h"

#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define EVENT_MAGIC "weirsimE"
#define KNOWN       64   /* recordings of which it is known whether they are reached */
#define SLOTS       2048 /* interprocess events a process may make */
#define LOOK_NS     50000000

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

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the process's event file */
static int event_file = -1;
static ino_t event_inode;
static char *event_slots; /* the file, mapped */
static uint64_t next_id = 1;

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
  if (!sim_file_is(event_file, event_inode)) return CUDA_ERROR_MAP_FAILED;
  struct sim_handle h = {.magic = EVENT_MAGIC,
                         .pid = getpid(),
                         .file = event_file,
                         .started = sim_process_started(getpid()),
                         .offset = e->shared->place * SLOT_BYTES,
                         .bytes = SLOT_BYTES,
                         .id = atomic_load(&e->shared->slot->id),
                         .index = e->context->device->index};
  memset(out, 0, sizeof *out);
  memcpy(out, &h, sizeof h);
  return CUDA_SUCCESS;
}

static struct sim_shared *import_slot(const struct sim_handle *h, CUresult *error)
{
  struct sim_shared *s = calloc(1, sizeof *s);
  int file = s ? sim_handle_open(h, "/memfd:weir-sim-events") : -1;
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
  struct sim_handle h;
  memcpy(&h, &handle, sizeof h);
  if (!event) return CUDA_ERROR_INVALID_VALUE;
  CUresult error = sim_handle_check(&h, EVENT_MAGIC);
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
