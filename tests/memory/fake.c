/* fake.c: the scripted device. One lock around everything; work runs under it, so what it checks
 * happens at one moment for all streams. */
#include "tests/memory/fake.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { WORK, RECORD, WAIT };

typedef struct fake_event {
  uint64_t recorded; /* records submitted */
  uint64_t complete; /* records that have run */
  bool dead;         /* destroyed; kept because queues may hold it */
  struct fake_event *next;
  struct fake_event **back; /* what points to it in the device's list; NULL: in none */
} fake_event;

static fake_event *graveyard; /* destroyed events, freed by fake_fini of the last device */
static pthread_mutex_t graveyard_lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- faults ---------------------------------------------------------------------------------- */

/* Counts an operation; its failure when it is the one that shall fail. Lock held. */
static weir_status enter_operation(fake *f, const char *what)
{
  f->operations++;
  if (f->fail_at && (f->operations == f->fail_at || (f->fail_after && f->operations > f->fail_at)))
    return weir_fail(f->fail_with, "the fake's operation %llu (%s) was made to fail",
                     (unsigned long long)f->operations, what);
  return WEIR_OK;
}

static weir_status enter_driver_call(fake *f, const char *what)
{
  f->calls++;
  return enter_operation(f, what);
}

void fake_fail(fake *f, uint64_t nth, bool and_after, weir_status status)
{
  pthread_mutex_lock(&f->lock);
  f->fail_at = nth ? f->operations + nth : 0;
  f->fail_after = and_after;
  f->fail_with = status;
  pthread_mutex_unlock(&f->lock);
}

/* ---- streams --------------------------------------------------------------------------------- */

static bool can_run(const fake_stream *s)
{
  if (s->head == s->tail || s->running) return false;
  const fake_op *op = &s->ops[s->head];
  return op->kind != WAIT || ((fake_event *)op->event)->complete >= op->number;
}

static void run_one(fake_stream *s)
{
  fake_op op = s->ops[s->head++];
  s->running = true;
  if (op.kind == WORK) op.run(op.argument);
  if (op.kind == RECORD) {
    fake_event *e = op.event;
    if (op.number > e->complete) e->complete = op.number;
  }
  s->running = false;
}

/* Runs all that may run; `force`: held streams too. */
static void pump(fake *f, bool force)
{
  bool again = true;
  while (again) {
    again = false;
    for (int i = 0; i < FAKE_STREAMS; i++) {
      fake_stream *s = &f->streams[i];
      while ((force || !s->held) && can_run(s)) {
        run_one(s);
        again = true;
      }
    }
  }
}

static void push_stream_op(fake_stream *s, fake_op op)
{
  if (s->tail == s->room) {
    if (s->head) memmove(s->ops, s->ops + s->head, (s->tail - s->head) * sizeof *s->ops);
    s->tail -= s->head;
    s->head = 0;
    if (s->tail * 2 >= s->room) {
      s->room = s->room ? s->room * 2 : 16;
      s->ops = realloc(s->ops, s->room * sizeof *s->ops);
      if (!s->ops) abort();
    }
  }
  s->ops[s->tail++] = op;
}

static fake_stream *stream_of(fake *f, void *handle)
{
  return handle ? handle : &f->streams[0];
}

void *fake_handle(fake *f, int i)
{
  return i ? &f->streams[i] : NULL;
}

void fake_submit(fake *f, int i, fake_work run, void *argument)
{
  pthread_mutex_lock(&f->lock);
  push_stream_op(&f->streams[i], (fake_op){.kind = WORK, .run = run, .argument = argument});
  pump(f, false);
  pthread_mutex_unlock(&f->lock);
}

void fake_hold(fake *f, int i)
{
  pthread_mutex_lock(&f->lock);
  f->streams[i].held = true;
  pthread_mutex_unlock(&f->lock);
}

void fake_release(fake *f, int i)
{
  pthread_mutex_lock(&f->lock);
  f->streams[i].held = false;
  pump(f, false);
  pthread_mutex_unlock(&f->lock);
}

bool fake_step(fake *f, int i)
{
  pthread_mutex_lock(&f->lock);
  bool can = can_run(&f->streams[i]);
  if (can) {
    run_one(&f->streams[i]);
    pump(f, false);
  }
  pthread_mutex_unlock(&f->lock);
  return can;
}

/* ---- events ---------------------------------------------------------------------------------- */

static weir_status event_create(void *self, void **event)
{
  fake *f = self;
  pthread_mutex_lock(&f->lock);
  weir_status st = enter_driver_call(f, "event_create");
  if (!st) {
    fake_event *e = calloc(1, sizeof *e);
    e->next = f->live_events;
    e->back = &f->live_events;
    if (e->next) e->next->back = &e->next;
    *event = f->live_events = e;
    f->events++;
  }
  pthread_mutex_unlock(&f->lock);
  return st;
}

static void retire_event(fake_event *e)
{
  pthread_mutex_lock(&graveyard_lock);
  e->dead = true;
  if (e->back) {
    *e->back = e->next;
    if (e->next) e->next->back = e->back;
  }
  e->next = graveyard;
  graveyard = e;
  pthread_mutex_unlock(&graveyard_lock);
}

static weir_status event_destroy(void *self, void *event)
{
  fake *f = self;
  pthread_mutex_lock(&f->lock);
  weir_status st = enter_driver_call(f, "event_destroy");
  if (!st) {
    retire_event(event);
    f->events--;
  }
  pthread_mutex_unlock(&f->lock);
  return st;
}

static void record(fake *f, fake_event *e, fake_stream *s)
{
  push_stream_op(s, (fake_op){.kind = RECORD, .event = e, .number = ++e->recorded});
  pump(f, false);
}

/* A capture forbids its stream, and the default stream, which waits for all others. */
static bool forbidden(const fake *f, const fake_stream *s)
{
  bool any = false;
  for (int i = 0; i < FAKE_STREAMS; i++)
    any = any || f->streams[i].capturing;
  return s->capturing || (any && s == f->streams);
}

static weir_status refuse(fake *f, const fake_stream *s, const char *what)
{
  if (!forbidden(f, s)) return WEIR_OK;
  f->offences++;
  return weir_fail(WEIR_ECUDA, "the fake: a stream under capture was %s", what);
}

static weir_status event_record(void *self, void *event, void *stream)
{
  fake *f = self;
  pthread_mutex_lock(&f->lock);
  weir_status st = enter_driver_call(f, "event_record");
  if (!st) st = refuse(f, stream_of(f, stream), "recorded in");
  if (!st) {
    f->records++;
    record(f, event, stream_of(f, stream));
  }
  pthread_mutex_unlock(&f->lock);
  return st;
}

static weir_status event_query(void *self, void *event, bool *complete)
{
  fake *f = self;
  fake_event *e = event;
  pthread_mutex_lock(&f->lock);
  weir_status st = enter_driver_call(f, "event_query");
  if (!st) {
    f->queries++;
    *complete = e->complete >= e->recorded;
  }
  pthread_mutex_unlock(&f->lock);
  return st;
}

static weir_status event_wait(void *self, void *stream, void *event)
{
  fake *f = self;
  fake_event *e = event;
  pthread_mutex_lock(&f->lock);
  weir_status st = enter_driver_call(f, "event_wait");
  if (!st) st = refuse(f, stream_of(f, stream), "made to wait");
  if (!st) {
    f->waits++;
    push_stream_op(stream_of(f, stream),
                   (fake_op){.kind = WAIT, .event = e, .number = e->recorded});
    pump(f, false);
  }
  pthread_mutex_unlock(&f->lock);
  return st;
}

static weir_status event_sync(void *self, void *event)
{
  fake *f = self;
  fake_event *e = event;
  pthread_mutex_lock(&f->lock);
  weir_status st = enter_driver_call(f, "event_sync");
  if (!st) {
    f->syncs++;
    if (e->complete < e->recorded) pump(f, true);
    if (e->complete < e->recorded) abort(); /* a dead-locked script */
  }
  pthread_mutex_unlock(&f->lock);
  return st;
}

void fake_depend(fake *f, int waiter, int waited)
{
  fake_event *e = calloc(1, sizeof *e);
  if (!e) abort();
  pthread_mutex_lock(&f->lock);
  record(f, e, &f->streams[waited]);
  push_stream_op(&f->streams[waiter], (fake_op){.kind = WAIT, .event = e, .number = e->recorded});
  pump(f, false);
  pthread_mutex_unlock(&f->lock);
  retire_event(e);
}

/* From the last one down, so that they are none of those a test names. */
static weir_status stream_create(void *self, void **stream)
{
  fake *f = self;
  pthread_mutex_lock(&f->lock);
  weir_status st = enter_driver_call(f, "stream_create");
  int i = FAKE_STREAMS - 1;
  while (i && f->streams[i].made)
    i--;
  if (!st && !i) st = weir_fail(WEIR_ELIMIT, "all streams of the fake are in use");
  if (!st) {
    f->streams[i].made = true;
    *stream = &f->streams[i];
  }
  pthread_mutex_unlock(&f->lock);
  return st;
}

static weir_status stream_destroy(void *self, void *stream)
{
  fake *f = self;
  pthread_mutex_lock(&f->lock);
  weir_status st = enter_driver_call(f, "stream_destroy");
  if (!st) ((fake_stream *)stream)->made = false;
  pthread_mutex_unlock(&f->lock);
  return st;
}

static bool stream_capturing(void *self, void *stream)
{
  fake *f = self;
  pthread_mutex_lock(&f->lock);
  bool capturing = forbidden(f, stream_of(f, stream));
  pthread_mutex_unlock(&f->lock);
  return capturing;
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Address space nobody may touch yet; a multiple of `align`. 0: none left. */
static uint64_t reserve_addresses(uint64_t bytes, uint64_t align)
{
  bytes = (bytes + 4095) & ~UINT64_C(4095); /* else the kernel refuses to cut the rest off */
  char *at =
      mmap(NULL, bytes + align, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return 0;
  uint64_t from = (uint64_t)at, to = (from + align - 1) & ~(align - 1);
  if (to > from) munmap(at, to - from);
  if (from + align > to) munmap((void *)(to + bytes), from + align - to);
  return to;
}

static bool protect(uint64_t address, uint64_t bytes, int how)
{
  return mmap((void *)address, bytes, how, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
              -1, 0) != MAP_FAILED;
}

/* Page n is a piece of one sparse file, so that it can be mapped in several places at once. */
static off_t page_offset(const fake *f, uint64_t page)
{
  return (off_t)((page - 1) * f->backend.source.page_bytes);
}

static weir_status take_device_bytes(fake *f, uint64_t bytes)
{
  if (bytes > f->capacity - f->used)
    return weir_fail(WEIR_EOOM, "the fake has %llu of %llu bytes left, %llu were asked for",
                     (unsigned long long)(f->capacity - f->used), (unsigned long long)f->capacity,
                     (unsigned long long)bytes);
  f->used += bytes;
  return WEIR_OK;
}

static weir_status mem_info(void *self, uint64_t *free_bytes, uint64_t *total_bytes)
{
  fake *f = self;
  pthread_mutex_lock(&f->lock);
  weir_status st = enter_driver_call(f, "mem_info");
  if (!st) {
    *free_bytes = f->capacity - f->used;
    *total_bytes = f->capacity;
  }
  pthread_mutex_unlock(&f->lock);
  return st;
}

static weir_status segment_alloc(void *self, uint64_t bytes, uint64_t *address)
{
  fake *f = self;
  pthread_mutex_lock(&f->lock);
  weir_status st = enter_driver_call(f, "segment_alloc");
  if (!st) st = take_device_bytes(f, bytes);
  if (!st) {
    *address = reserve_addresses(bytes, 4096);
    if (!*address || !protect(*address, bytes, PROT_READ | PROT_WRITE)) abort();
    f->reserved += bytes;
  }
  pthread_mutex_unlock(&f->lock);
  return st;
}

static weir_status segment_free(void *self, uint64_t address, uint64_t bytes)
{
  fake *f = self;
  pthread_mutex_lock(&f->lock);
  weir_status st = enter_driver_call(f, "segment_free");
  if (!st) {
    if (munmap((void *)address, bytes)) abort();
    f->used -= bytes;
    f->reserved -= bytes;
  }
  pthread_mutex_unlock(&f->lock);
  return st;
}

static weir_status reserve(void *self, uint64_t bytes, uint64_t *address)
{
  fake *f = self;
  pthread_mutex_lock(&f->lock);
  weir_status st = enter_driver_call(f, "reserve");
  if (!st && f->space_limit && bytes > f->space_limit)
    st = weir_fail(WEIR_EOOM, "fake: no %llu bytes of address space", (unsigned long long)bytes);
  if (!st) {
    *address = reserve_addresses(bytes, f->backend.source.page_bytes);
    if (!*address) abort();
    f->reserved += bytes;
  }
  pthread_mutex_unlock(&f->lock);
  return st;
}

static weir_status release(void *self, uint64_t address, uint64_t bytes)
{
  fake *f = self;
  pthread_mutex_lock(&f->lock);
  weir_status st = enter_driver_call(f, "release");
  if (!st) {
    if (munmap((void *)address, bytes)) abort();
    f->reserved -= bytes;
  }
  pthread_mutex_unlock(&f->lock);
  return st;
}

static weir_status create(void *self, uint64_t *page)
{
  fake *f = self;
  pthread_mutex_lock(&f->lock);
  weir_status st = enter_driver_call(f, "create");
  if (!st) st = take_device_bytes(f, f->backend.source.page_bytes);
  if (!st) {
    f->pages++;
    *page = ++f->next_page;
  }
  pthread_mutex_unlock(&f->lock);
  return st;
}

static weir_status destroy(void *self, uint64_t page)
{
  fake *f = self;
  pthread_mutex_lock(&f->lock);
  weir_status st = enter_driver_call(f, "destroy");
  if (!st) {
    if (fallocate(f->memory, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, page_offset(f, page),
                  (off_t)f->backend.source.page_bytes))
      abort();
    f->used -= f->backend.source.page_bytes;
    f->pages--;
  }
  pthread_mutex_unlock(&f->lock);
  return st;
}

static weir_status map_fake_page(void *self, uint64_t address, uint64_t page)
{
  fake *f = self;
  uint64_t bytes = f->backend.source.page_bytes;
  pthread_mutex_lock(&f->lock);
  weir_status st = enter_driver_call(f, "map");
  if (!st) {
    if (mmap((void *)address, bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, f->memory,
             page_offset(f, page)) == MAP_FAILED)
      abort();
    f->mapped += bytes;
  }
  pthread_mutex_unlock(&f->lock);
  return st;
}

static weir_status unmap_fake_pages(void *self, uint64_t address, uint64_t bytes)
{
  fake *f = self;
  pthread_mutex_lock(&f->lock);
  weir_status st = enter_driver_call(f, "unmap");
  if (!st) {
    if (!protect(address, bytes, PROT_NONE)) abort();
    f->mapped -= bytes;
  }
  pthread_mutex_unlock(&f->lock);
  return st;
}

static weir_status set_access(void *self, uint64_t address, uint64_t bytes)
{
  fake *f = self;
  pthread_mutex_lock(&f->lock);
  weir_status st = enter_driver_call(f, "access");
  if (!st && mprotect((void *)address, bytes, PROT_READ | PROT_WRITE)) abort();
  pthread_mutex_unlock(&f->lock);
  return st;
}

static weir_status copy_to_host(void *self, void *to, uint64_t from, uint64_t bytes)
{
  fake *f = self;
  pthread_mutex_lock(&f->lock);
  weir_status st = enter_driver_call(f, "copy_to_host");
  if (!st) memcpy(to, (const void *)from, bytes);
  pthread_mutex_unlock(&f->lock);
  return st;
}

static weir_status copy_to_device(void *self, uint64_t to, const void *from, uint64_t bytes)
{
  fake *f = self;
  pthread_mutex_lock(&f->lock);
  weir_status st = enter_driver_call(f, "copy_to_device");
  if (!st) memcpy((void *)to, from, bytes);
  pthread_mutex_unlock(&f->lock);
  return st;
}

/* ---- host memory ----------------------------------------------------------------------------- */

static size_t pinned_find(const fake *f, uint64_t address)
{
  size_t i = 0;
  while (i < f->pinned_count &&
         (address < f->pinned[i].address || address - f->pinned[i].address >= f->pinned[i].bytes))
    i++;
  return i;
}

/* As the documents have it: whole pages, never twice. Lock held. */
static weir_status pin_range(fake *f, fake_range r)
{
  if (r.address % 4096 || r.bytes % 4096 || !r.bytes) abort();
  for (size_t i = 0; i < f->pinned_count; i++)
    if (r.address < f->pinned[i].address + f->pinned[i].bytes &&
        f->pinned[i].address < r.address + r.bytes)
      abort();
  if (f->pinned_capacity && r.bytes > f->pinned_capacity - f->pinned_bytes)
    return weir_fail(WEIR_EOOM, "the fake cannot pin %llu bytes more", (unsigned long long)r.bytes);
  if (f->pinned_count == f->pinned_room) {
    f->pinned_room = f->pinned_room ? 2 * f->pinned_room : 16;
    f->pinned = realloc(f->pinned, f->pinned_room * sizeof *f->pinned);
    if (!f->pinned) abort();
  }
  f->pinned[f->pinned_count++] = r;
  f->pinned_bytes += r.bytes;
  return WEIR_OK;
}

static void unpin(fake *f, uint64_t address, uint64_t bytes, bool made)
{
  size_t i = pinned_find(f, address);
  if (i == f->pinned_count || f->pinned[i].address != address || f->pinned[i].bytes != bytes ||
      f->pinned[i].made != made)
    abort();
  f->pinned_bytes -= bytes;
  f->pinned[i] = f->pinned[--f->pinned_count];
}

bool fake_pinned(fake *f, const void *memory, uint64_t bytes)
{
  pthread_mutex_lock(&f->lock);
  uint64_t at = (uint64_t)memory;
  size_t i = pinned_find(f, at);
  bool in = i < f->pinned_count && at + bytes <= f->pinned[i].address + f->pinned[i].bytes;
  pthread_mutex_unlock(&f->lock);
  return in;
}

static weir_status host_register(void *self, void *memory, uint64_t bytes, unsigned flags)
{
  fake *f = self;
  if (f->on_register) f->on_register(f, bytes);
  pthread_mutex_lock(&f->lock);
  weir_status st = enter_driver_call(f, "host_register");
  if (flags & WEIR_HOST_WRITE_COMBINED) abort();
  if (!st) st = pin_range(f, (fake_range){(uint64_t)memory, bytes, flags, false});
  f->registrations += !st;
  pthread_mutex_unlock(&f->lock);
  return st;
}

static weir_status host_unregister(void *self, void *memory, uint64_t bytes)
{
  fake *f = self;
  if (f->on_unregister) f->on_unregister(f, bytes);
  pthread_mutex_lock(&f->lock);
  weir_status st = enter_driver_call(f, "host_unregister");
  if (!st) unpin(f, (uint64_t)memory, bytes, false);
  pthread_mutex_unlock(&f->lock);
  return st;
}

static weir_status host_alloc(void *self, uint64_t bytes, unsigned flags, void **out)
{
  fake *f = self;
  pthread_mutex_lock(&f->lock);
  weir_status st = enter_driver_call(f, "host_alloc");
  uint64_t at = st ? 0 : reserve_addresses(bytes, 4096);
  if (!st && !(at && protect(at, bytes, PROT_READ | PROT_WRITE))) abort();
  if (!st && (st = pin_range(f, (fake_range){at, bytes, flags, true}))) munmap((void *)at, bytes);
  if (!st) *out = (void *)at;
  pthread_mutex_unlock(&f->lock);
  return st;
}

static weir_status host_free(void *self, void *memory, uint64_t bytes)
{
  fake *f = self;
  pthread_mutex_lock(&f->lock);
  weir_status st = enter_driver_call(f, "host_free");
  if (!st) {
    unpin(f, (uint64_t)memory, bytes, true);
    if (munmap(memory, bytes)) abort();
  }
  pthread_mutex_unlock(&f->lock);
  return st;
}

static weir_status host_is_pinned(void *self, const void *memory, bool *pinned)
{
  *pinned = fake_pinned(self, memory, 1);
  return WEIR_OK;
}

static int numa_node(void *self)
{
  return ((fake *)self)->node;
}

static weir_status host_commit(void *self, uint64_t bytes)
{
  fake *f = self;
  (void)bytes;
  pthread_mutex_lock(&f->lock);
  weir_status st = enter_operation(f, "host_commit");
  pthread_mutex_unlock(&f->lock);
  return st;
}

/* ---- life ------------------------------------------------------------------------------------ */

void fake_init(fake *f, uint64_t capacity, uint64_t page_bytes)
{
  memset(f, 0, sizeof *f);
  pthread_mutex_init(&f->lock, NULL);
  f->capacity = capacity;
  f->node = -1;
  for (int i = 0; i < FAKE_STREAMS; i++)
    f->streams[i].fake = f;
  f->backend = (weir_backend){.name = "fake",
                              .self = f,
                              .event_create = event_create,
                              .event_destroy = event_destroy,
                              .event_record = event_record,
                              .event_query = event_query,
                              .event_wait = event_wait,
                              .event_sync = event_sync,
                              .stream_capturing = stream_capturing,
                              .copy_to_host = copy_to_host,
                              .copy_to_device = copy_to_device,
                              .stream_create = stream_create,
                              .stream_destroy = stream_destroy};
  f->backend.source = (weir_source){.page_bytes = page_bytes,
                                    .mem_info = mem_info,
                                    .segment_alloc = segment_alloc,
                                    .segment_free = segment_free,
                                    .host_register = host_register,
                                    .host_unregister = host_unregister,
                                    .host_alloc = host_alloc,
                                    .host_free = host_free,
                                    .host_is_pinned = host_is_pinned,
                                    .numa_node = numa_node,
                                    .host_commit = host_commit};
  f->memory = -1;
  if (!page_bytes) return;
  f->memory = memfd_create("fake", MFD_CLOEXEC);
  if (f->memory < 0 || ftruncate(f->memory, (off_t)1 << 60)) abort();
  f->backend.source.reserve = reserve;
  f->backend.source.release = release;
  f->backend.source.create = create;
  f->backend.source.destroy = destroy;
  f->backend.source.map = map_fake_page;
  f->backend.source.unmap = unmap_fake_pages;
  f->backend.source.access = set_access;
}

bool fake_clean(fake *f)
{
  return !f->offences && !f->used && !f->pages && !f->mapped && !f->reserved && !f->events &&
         !f->pinned_count;
}

void fake_fini(fake *f)
{
  while (f->live_events)
    retire_event(f->live_events);
  for (int i = 0; i < FAKE_STREAMS; i++)
    free(f->streams[i].ops);
  if (f->memory >= 0) close(f->memory);
  free(f->pinned);
  pthread_mutex_lock(&graveyard_lock);
  while (graveyard) {
    fake_event *e = graveyard;
    graveyard = e->next;
    free(e);
  }
  pthread_mutex_unlock(&graveyard_lock);
  pthread_mutex_destroy(&f->lock);
}
