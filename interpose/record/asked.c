/* asked.c: see asked.h. The first eight calls of a place are timed, then one in 64. A table is
 * mapped at a thread's first such call and goes with the thread, which may never have recorded
 * anything: so it has a key of its own. In a forked child it is its parent's, which its epoch
 * shows; it is emptied when a call is looked at next. */
#include "interpose/record/asked.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include "interpose/elf/elf.h"
#include "interpose/process/part.h"
#include "interpose/record/extract.h"

enum {
  PROBES = 8,   /* slots from its home on in which a place may be */
  ROOM = 192,   /* places in a table: its searches stay short */
  FIRST = 8,    /* calls of a place of which each is timed */
  EVERY = 64,   /* later ones of which one is */
  ENOUGH = 64,  /* calls of a place that is recorded */
  SHARE = 8,    /* what is not recorded yet: one part in so many of a place's calls, */
  MOST = 4096,  /* and at most so many */
  RECENT = 15,  /* times that are kept of a place */
  LIBRARIES = 4 /* of CUDA's, that make such calls themselves */
};

typedef struct asked_place {
  uint64_t total;          /* calls that were looked at, or came before one that was */
  asked_info info;         /* what has come since the last record */
  uint32_t step;           /* what `left` began with */
  uint32_t launches;       /* of the thread, when a call was last timed */
  uint32_t recent[RECENT]; /* ticks that the last timed ones of `info` took */
  bool recorded;           /* its event, and a first record */
} asked_place;

typedef struct whole_table {
  asked_table head;
  asked_place place[ASKED_PLACES + 1]; /* of the slot of that number */
  struct {
    uintptr_t start; /* 0: free */
    size_t bytes;
  } library[LIBRARIES];
  uint32_t used;
  uint32_t epoch;   /* of the process image that its counts are of */
  uint32_t unloads; /* that it knows of */
} whole_table;

static pthread_key_t key;
static bool have_key;
static _Atomic uint32_t unloads; /* of objects: others may be where they were */

static whole_table *whole(const thread_state *t)
{
  return (whole_table *)t->asked;
}

static asked_place *place_of(whole_table *w, const asked_slot *s)
{
  return &w->place[s - w->head.slot];
}

static void unmap_table(void *table)
{
  thread_self.asked = NULL;
  munmap(table, sizeof(whole_table));
}

static void make_key(void)
{
  have_key = pthread_key_create(&key, unmap_table) == 0;
}

static void release_table(thread_state *t)
{
  void *table = t->asked;
  if (!table) return;
  (void)pthread_setspecific(key, NULL);
  unmap_table(table);
}

static whole_table *begin_table(thread_state *t)
{
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  if (pthread_once(&once, make_key) || !have_key) return NULL;
  void *table =
      mmap(NULL, sizeof(whole_table), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (table == MAP_FAILED) return NULL;
  if (pthread_setspecific(key, table)) {
    munmap(table, sizeof(whole_table));
    return NULL;
  }
  t->asked = table;
  whole(t)->epoch = atomic_load(&process_epoch);
  return table;
}

static whole_table *own_whole_table(thread_state *t)
{
  whole_table *w = t->asked ? whole(t) : begin_table(t);
  uint32_t epoch = atomic_load(&process_epoch);
  if (w && w->epoch != epoch) { /* a child's, with its parent's counts */
    memset(w, 0, sizeof *w);
    w->epoch = epoch;
  }
  return w;
}

static bool is_known_own(whole_table *w, uintptr_t from)
{
  uint32_t now = atomic_load_explicit(&unloads, memory_order_relaxed);
  if (w->unloads != now) memset(w->library, 0, sizeof w->library);
  w->unloads = now;
  for (int i = 0; i < LIBRARIES && w->library[i].start; i++)
    if (from - w->library[i].start < w->library[i].bytes) return true;
  return false;
}

/* The call is the runtime's or the driver's own, made for another call. */
static bool is_own(whole_table *w, uintptr_t from)
{
  uintptr_t start;
  size_t bytes;
  bool bank = false;
  if (!elf_object_span((const void *)from, &start, &bytes, &bank) || !bank) return false;
  for (int i = 0; i < LIBRARIES; i++) {
    if (w->library[i].start) continue;
    w->library[i].start = start;
    w->library[i].bytes = bytes;
    break;
  }
  return true;
}

static asked_slot *begin_place(whole_table *w, asked_slot *s, uint16_t api, uintptr_t from)
{
  asked_place *p = place_of(w, s);
  p->info = (asked_info){.from = from, .api = api};
  p->launches = thread_self.launches;
  p->step = 1;
  s->api = api;
  s->from = from;
  w->used++;
  return s;
}

/* Its slot, made where there is none; where there is no room, that of all others; NULL where the
 * call is not the program's. */
static asked_slot *slot_of(whole_table *w, uint16_t api, uintptr_t from)
{
  unsigned home = asked_home(api, from);
  for (unsigned i = 0; i < PROBES; i++) {
    asked_slot *s = &w->head.slot[(home + i) % ASKED_PLACES];
    if (s->from == from && s->api == api) return s;
    if (!s->from && is_own(w, from)) return NULL;
    if (!s->from && w->used < ROOM) return begin_place(w, s, api, from);
    if (!s->from) break;
  }
  return &w->head.slot[ASKED_PLACES];
}

static void count_looked_at(asked_place *p, asked_slot *s)
{
  p->total += p->step;
  p->info.calls += p->step;
  p->step = p->total < FIRST ? 1 : EVERY - (uint32_t)(p->total % EVERY);
  s->left = p->step;
}

asked_slot *asked_look(uint16_t api, uintptr_t from)
{
  int kept = errno;
  if (process_unrecorded || recording_is_partial()) return NULL;
  whole_table *w = own_whole_table(&thread_self);
  asked_slot *s = w && !is_known_own(w, from) ? slot_of(w, api, from) : NULL;
  errno = kept;
  if (!s) return NULL;
  asked_place *p = place_of(w, s);
  if (s->left > 1) { /* not in its home slot */
    s->left--;
    return NULL;
  }
  if (!p->step) p->step = 1;
  count_looked_at(p, s);
  return s;
}

static bool is_due(const asked_place *p)
{
  uint64_t share = p->total / SHARE;
  if (share > MOST) share = MOST;
  return p->total >= ENOUGH && p->info.calls >= (p->recorded ? share : 1);
}

static uint64_t typical_of(const uint32_t *times, uint32_t count)
{
  uint32_t sorted[RECENT] = {0};
  for (uint32_t i = 0, at; i < count; i++) {
    for (at = i; at && sorted[at - 1] > times[i]; at--)
      sorted[at] = sorted[at - 1];
    sorted[at] = times[i];
  }
  return sorted[(count - 1) / 2];
}

/* In a call of this thread that owns its event. `event`: ticks when the event that was just
 * recorded for the place began; 0: none. */
static void write_record(thread_state *t, asked_place *p, uint64_t event)
{
  trace_event head = {.start = clock_ticks(),
                      .device = WEIR_DEVICE_NONE,
                      .src_device = WEIR_DEVICE_NONE,
                      .a = event};
  uint32_t recent = p->info.timed < RECENT ? p->info.timed : RECENT;
  if (recent) p->info.typical = typical_of(p->recent, recent);
  const asked_info written = p->info;
  if (!spool_writer_extended(&t->writer, WEIR_EV_ASKED, &head, &written, sizeof written)) return;
  p->info = (asked_info){.from = written.from, .api = written.api, .typical = written.typical};
  p->recorded = true;
}

/* Without a call of the program's around: none may be under way, that of an interrupted event. */
static bool begin_recording(hook_call *c, thread_state *t, const asked_answer *by)
{
  if (!atomic_load_explicit(&process_recording, memory_order_relaxed)) return false;
  if (call_is_within(c, t)) return false;
  return call_begin_outermost(c, t, by->api, by->flags, by->bank);
}

static void record_place(thread_state *t, asked_place *p, const asked_answer *by, uint64_t end)
{
  hook_call call, *c = &call;
  if (!begin_recording(c, t, by)) return;
  call_returned(c, by->status);
  c->start = by->start;
  c->end = end;
  bool first = !p->recorded && p->info.from;
  if (first) extract_call(c, 0, 0, 0, WEIR_NO_STREAM);
  write_record(t, p, first ? c->start : 0);
  call_leave(c);
}

void asked_end(asked_slot *s, const asked_answer *answer)
{
  uint64_t end = clock_ticks(), took = end - answer->start;
  int kept = errno;
  thread_state *t = &thread_self;
  whole_table *w = whole(t);
  if (!w) return;
  asked_place *p = place_of(w, s);
  uint32_t launches = t->launches - p->launches;
  p->launches = t->launches;
  p->info.launches += launches;
  p->info.followed += launches > 0;
  p->recent[p->info.timed++ % RECENT] = took < UINT32_MAX ? (uint32_t)took : UINT32_MAX;
  p->info.ticks += took;
  if (is_due(p)) record_place(t, p, answer, end);
  errno = kept;
}

/* The calls of a place since one was last looked at. */
static void count_rest(asked_place *p, asked_slot *s)
{
  uint32_t rest = s->left && p->step >= s->left ? p->step - s->left : 0;
  p->total += rest;
  p->info.calls += rest;
  p->step = s->left;
}

static void record_rest(thread_state *t, whole_table *w)
{
  const asked_answer none = {.bank = WEIR_BANK_DRIVER};
  hook_call call, *c = &call;
  if (w->epoch != t->epoch || !begin_recording(c, t, &none)) return;
  call_returned(c, 0);
  for (unsigned i = 0; i <= ASKED_PLACES; i++) {
    asked_place *p = &w->place[i];
    count_rest(p, &w->head.slot[i]);
    if (p->total >= ENOUGH && p->info.calls) write_record(t, p, 0);
  }
  call_leave(c);
}

/* A thread that has recorded nothing has nothing recorded for it here. */
static void end_thread(void)
{
  thread_state *t = &thread_self;
  if (!t->asked) return;
  record_rest(t, whole(t));
  release_table(t);
}

static void note_unload(void)
{
  atomic_fetch_add_explicit(&unloads, 1, memory_order_relaxed);
}

static const process_part part = {
    .thread_ends = end_thread, .exits = end_thread, .execs = end_thread, .unloaded = note_unload};
PROCESS_PART(part);
