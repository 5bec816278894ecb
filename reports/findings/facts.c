/* facts.c: see facts.h. Calls come in the order in which they began; an allocation counts from its return, and is held until
 * then. What is remembered is bounded: each part that looks at calls forgets what is beyond its limits, so that a trace of
 * any length is judged in little memory, and at worst less is found. */
#include "reports/findings/facts.h"
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include "core/trace/event.h"
#include "reports/base/util.h"
#include "reports/findings/block_facts.h"
#include "reports/findings/chunk_facts.h"
#include "reports/findings/handle_facts.h"
#include "reports/findings/hash_facts.h"
#include "reports/findings/move_facts.h"
#include "reports/findings/once_facts.h"
#include "reports/findings/poll_facts.h"
#include "reports/findings/step_facts.h"
#include "reports/findings/storm_facts.h"
#include "reports/findings/stream_facts.h"
#include "reports/findings/thread_facts.h"
#include "reports/findings/turn_facts.h"

enum {
  MOST_HELD = 1 << 20,   /* allocations that have not returned */
  MOST_EVENTS = 1 << 20, /* events that were waited for */
  NOT_READY = 600,       /* of a poll */
  BATCH = 32,            /* calls that are looked at together */
  AHEAD = 16             /* calls by which what they have in common is brought before it is read */
};

/* ---- state ----------------------------------------------------------------------------------- */

typedef struct states { /* of processes, or of threads */
  hash_map by;          /* id -> place */
  void **state;         /* owned, and each of them: they stay where they are */
  size_t count, capacity;
} states;

typedef struct thread_state {
  wr_thread_state calls;
  wr_storm_state storm;
  wr_step_state step;
  wr_chunk_state chunk;
  wr_turn_state turn;
  wr_poll_state poll;
} thread_state;

typedef struct held {
  int64_t time, id;
  uint32_t call; /* its place in `out` */
} held;

struct wr_facts_pass {
  wr_facts *f;
  const wr_db *db;
  held *held; /* owned: allocations that have not returned; a heap, the first to return first */
  wr_fact_call *out; /* owned: their calls, `held_capacity` of them, at places in no order */
  size_t held_count, held_capacity;
  wr_block_facts blocks;
  wr_move_facts moves;
  wr_thread_facts orders;
  wr_stream_facts streams;
  wr_storm_facts storms;
  wr_handle_facts handles;
  wr_hash_facts hashes;
  hash_map by_event; /* the last wait for an event */
  states processes;  /* wr_process_state */
  states threads;    /* thread_state */
};

typedef struct wr_facts_pass pass;

static weir_status no_memory(const pass *p)
{
  return wr_db_out_of_memory(p->db);
}

#define ADD(p, fact, ...)                                                                          \
  wr_fact_add(&(p)->f->tables, WR_FACT_##fact, (const int64_t[]){__VA_ARGS__})

/* The state that is known by a key, or a new one, of which all is 0. NULL: out of memory. */
static void *state_of(states *x, uint64_t key, size_t size)
{
  bool added;
  if (!wr_grow(&x->state, &x->capacity, x->count + 1, sizeof(*x->state))) return NULL;
  uint64_t *at = hash_map_place(&x->by, key, &added);
  if (!at) return NULL;
  if (!added) return x->state[*at];
  void *state = calloc(1, size);
  if (!state) {
    hash_map_remove(&x->by, key);
    return NULL;
  }
  *at = x->count;
  return x->state[x->count++] = state;
}

static void free_states(states *x)
{
  for (size_t i = 0; i < x->count; i++)
    free(x->state[i]);
  free(x->state);
  hash_map_free(&x->by);
}

/* A template knows its process and thread from its first call on. False: out of memory. */
static bool know_states(pass *p, wr_common *t)
{
  t->of_process = state_of(&p->processes, (uint64_t)t->process, sizeof(wr_process_state));
  t->of_thread = state_of(&p->threads, (uint64_t)t->thread, sizeof(thread_state));
  p->moves.processes = p->processes.count;
  return t->of_process && t->of_thread;
}

/* ---- waits for events ------------------------------------------------------------------------ */

/* A wait for an event; and a question of how long it was up to there, which needs such a wait. */
static weir_status see_event(pass *p, const wr_thread_state *h, const wr_common *t,
                             const wr_fact_call *c)
{
  uint64_t process = hash_mix(13, (uint64_t)t->process);
  if (t->kind == WEIR_EV_SYNC) {
    if (p->by_event.count >= MOST_EVENTS) hash_map_free(&p->by_event);
    return hash_map_put(&p->by_event, hash_mix(process, c->a), (uint64_t)c->id);
  }
  weir_status st = h->wait ? ADD(p, TIMED_WAIT, h->wait) : WEIR_OK;
  for (int i = 0; !st && i < 2; i++) {
    uint64_t key = hash_mix(process, i ? c->b : c->a), *at = hash_map_get(&p->by_event, key);
    if (at && (int64_t)*at != h->wait) st = ADD(p, TIMED_WAIT, (int64_t)*at);
    hash_map_remove(&p->by_event, key);
  }
  return st;
}

static weir_status see_seldom(pass *p, wr_process_state *x, const wr_thread_state *h,
                              const wr_common *t, const wr_fact_call *c)
{
  weir_status st = WEIR_OK;
  if (t->kind == WEIR_EV_RESET) wr_block_reset(x);
  if (t->what & WR_TIMES || t->kind == WEIR_EV_SYNC) st = see_event(p, h, t, c);
  return t->giving && !st ? wr_block_give(&p->blocks, x, t, c) : st;
}

/* ---- a call ---------------------------------------------------------------------------------- */

static inline void count_use(wr_common *t, const wr_fact_call *c)
{
  t->calls++;
  t->ns += (uint64_t)c->duration;
  if ((uint64_t)c->duration > t->longest) t->longest = (uint64_t)c->duration;
  if (!c->bytes) return;
  t->bytes += c->bytes & INT64_MAX;
  t->small += c->bytes <= WR_SMALL_BYTES;
  if (c->bytes > t->most) t->most = c->bytes;
  if (!t->first || c->id < t->first) t->first = c->id;
}

/* What a call that succeeded does to device memory. */
static void count_memory(wr_process_state *x, uint32_t what)
{
  x->reads += (what & WR_READS) != 0;
  x->reads_or_frees += (what & (WR_READS | WR_FREES)) != 0;
  x->writes += (what & WR_WRITES) != 0;
}

/* Where no memory is owned apart there is nothing to end or to replace. */
static inline weir_status see_owned(wr_process_state *x, const wr_common *t, const wr_fact_call *c)
{
  bool plain = t->what & (WR_FREES | WR_ALLOCATES);
  size_t any = x->given.ranges.count | x->apart.count | x->combined.count;
  return plain && !any ? WEIR_OK : wr_block_own(x, t, c);
}

static weir_status see_free(pass *p, wr_process_state *x, const wr_common *t, const wr_fact_call *c)
{
  bool unread = x->upload_count && x->upload_reads == x->reads;
  weir_status st = unread ? wr_move_free(&p->moves, x, c) : WEIR_OK;
  if (!st && x->once_count) st = wr_once_free(&p->f->tables, x, c);
  if (!st) st = wr_block_free(&p->blocks, x, t, c);
  return st ? st : see_owned(x, t, c);
}

static weir_status see_move(pass *p, wr_process_state *x, const wr_common *t, const wr_fact_call *c)
{
  weir_status st = wr_move_take(&p->moves, x, t, c);
  bool copy = t->kind == WEIR_EV_COPY, within = copy && t->copy == WEIR_COPY_DTOD;
  if (copy && t->what & WR_BACK) wr_block_copied_out(&p->blocks, t, c);
  return within && !st ? wr_block_copy(&p->blocks, x, t, c) : st;
}

/* The host may look at what kernels write by themselves. */
static bool is_shared(const wr_process_state *x)
{
  return x->shares || x->apart.count || wr_given_any(&x->given);
}

/* No allocation. */
static weir_status see_call(pass *p, wr_common *t, const wr_fact_call *c)
{
  weir_status st = WEIR_OK;
  wr_process_state *x = t->of_process;
  thread_state *h = t->of_thread;
  uint32_t what = t->what;
  count_use(t, c);
  if (what & (WR_IS_USE | WR_IS_MOVE)) st = wr_block_use(&p->blocks, x, t, c);
  if (st || !(what & WR_SUCCEEDED)) return st;
  if (x->once_count && t->kind == WEIR_EV_COPY) wr_once_copy(x, t, c);
  h->calls.queued += (what & WR_ADDS_WORK) != 0;
  count_memory(x, what);
  if (what & WR_SELDOM) st = see_seldom(p, x, &h->calls, t, c);
  if (!st && what & WR_FREES)
    st = see_free(p, x, t, c);
  else if (!st && what & WR_MOVES)
    st = see_move(p, x, t, c);
  else if (!st && what & WR_OWNS)
    st = wr_block_own(x, t, c);
  bool waits = t->in_thread & WR_THREAD_WAITS;
  if (!st && !wr_thread_pass(&h->calls, t, c))
    st = wr_thread_take(&p->orders, &h->calls, t, c, waits && is_shared(x));
  return st ? st : wr_stream_take(&p->streams, t, c, &x->waits);
}

/* One that has returned: it is in no order of its thread's, nor of a stream's. */
static weir_status see_alloc(pass *p, wr_common *t, const wr_fact_call *c)
{
  weir_status st = WEIR_OK;
  wr_process_state *x = t->of_process;
  count_use(t, c);
  if (t->what & WR_IS_USE) st = wr_block_use(&p->blocks, x, t, c);
  if (st || !(t->what & WR_SUCCEEDED)) return st;
  count_memory(x, t->what);
  if (!(t->what & WR_OWNS)) return st;
  st = see_owned(x, t, c);
  if (t->mem == WEIR_MEM_PINNED) wr_once_alloc(x, t, c);
  return t->what & WR_ALLOCATES && !st ? wr_block_alloc(&p->blocks, x, t, c) : st;
}

/* ---- allocations that have not returned ------------------------------------------------------ */

static bool is_before(const held *a, const held *b)
{
  return a->time != b->time ? a->time < b->time : a->id < b->id;
}

/* Places in `out` that are free are those of `held` behind its end. */
static bool grow_held(pass *p)
{
  size_t had = p->held_capacity, calls = had;
  if (!wr_grow(&p->out, &calls, p->held_count + 1, sizeof(*p->out))) return false;
  if (!wr_grow(&p->held, &p->held_capacity, p->held_count + 1, sizeof(*p->held))) return false;
  for (size_t i = had; i < p->held_capacity; i++)
    p->held[i].call = (uint32_t)i;
  return true;
}

static weir_status hold_call(pass *p, const wr_fact_call *c)
{
  if (p->held_count == p->held_capacity && !grow_held(p)) return no_memory(p);
  size_t at = p->held_count++;
  held own = {c->time, c->id, p->held[at].call};
  p->out[own.call] = *c;
  for (; at && is_before(&own, &p->held[(at - 1) / 2]); at = (at - 1) / 2)
    p->held[at] = p->held[(at - 1) / 2];
  p->held[at] = own;
  return WEIR_OK;
}

/* What it returns is there until a call is held. */
static const wr_fact_call *first_held(pass *p)
{
  held first = p->held[0], moved = p->held[--p->held_count];
  size_t at = 0;
  for (size_t child; (child = 2 * at + 1) < p->held_count; at = child) {
    if (child + 1 < p->held_count && is_before(&p->held[child + 1], &p->held[child])) child++;
    if (!is_before(&p->held[child], &moved)) break;
    p->held[at] = p->held[child];
  }
  p->held[at] = moved;
  p->held[p->held_count].call = first.call;
  return &p->out[first.call];
}

/* Those that return before `next`, NULL: all. */
static weir_status use_held(pass *p, const held *next)
{
  weir_status st = WEIR_OK;
  while (!st && p->held_count && (!next || is_before(&p->held[0], next))) {
    const wr_fact_call *c = first_held(p);
    st = see_alloc(p, &p->f->common[c->common], c);
  }
  return st;
}

/* ---- the walk -------------------------------------------------------------------------------- */

/* Times of an untrusted trace, so that sums of a few cannot overflow: 2^61 ns are 73 years. */
#define LONGEST (INT64_C(1) << 61)

static int64_t sane_time(int64_t ns)
{
  return ns > LONGEST ? LONGEST : ns < -LONGEST ? -LONGEST : ns;
}

/* Of an event the numbers that a call has, too. */
_Static_assert(offsetof(wr_fact_call, time) == offsetof(wr_event, start), "a call's time");
_Static_assert(offsetof(wr_fact_call, duration) == offsetof(wr_event, ns), "a call's duration");
_Static_assert(offsetof(wr_fact_call, a) == offsetof(wr_event, a), "a call's words");
_Static_assert(offsetof(wr_fact_call, b) == offsetof(wr_event, b), "a call's words");
_Static_assert(offsetof(wr_fact_call, bytes) == offsetof(wr_event, bytes), "a call's bytes");

static inline void read_call(wr_fact_call *c, const wr_event *e)
{
  memcpy(c, e, offsetof(wr_fact_call, key));
  c->common = (uint32_t)e->at;
  if ((uint64_t)c->time <= (uint64_t)LONGEST && c->duration <= LONGEST) return;
  c->time = sane_time(e->start);
  c->duration = sane_time(e->ns);
}

/* The keys by which a call looks for what is remembered; what they find is brought. */
static inline void find_keys(const pass *p, const wr_common *t, wr_fact_call *c)
{
  if (!(t->what & (WR_ALLOCATES | WR_FREES | WR_IS_MOVE)) && !p->hashes.hash.count) return;
  c->key = hash_mix(t->seed, c->a);
  if (t->what & (WR_ALLOCATES | WR_FREES)) wr_records_fetch(&p->blocks.block, c->key);
  if (!(t->what & WR_IS_MOVE)) return;
  wr_records_fetch(&p->moves.written, c->key);
  if ((t->what & (WR_UP | WR_FROM_HOST)) != (WR_UP | WR_FROM_HOST)) return;
  c->again = hash_mix(hash_mix(hash_mix(c->key, c->bytes), c->b), t->site);
  wr_records_fetch(&p->moves.alike, c->again);
}

static weir_status see_object(pass *p, const wr_common *t, const wr_fact_call *c)
{
  bool loads = t->object == WR_HANDLE_MODULE && !t->ends;
  if (loads) {
    weir_status st = ADD(p, CODE_LOADED, c->id, t->id, c->duration);
    if (st) return st;
  }
  if (t->object == WR_HANDLE_STREAM && c->a == 1 && !t->ends) {
    p->streams.any_blocking |= !(c->b & 1);
    weir_status st = ADD(p, STREAM_MADE, c->id, t->id, (int64_t)(c->b & 1));
    if (st) return st;
  }
  return wr_handle_take(&p->handles, t, c);
}

/* What does not ask for memory: it need not wait for allocations that have not returned. */
static weir_status take_begun(pass *p, const wr_common *t, const wr_fact_call *c)
{
  thread_state *h = t->of_thread;
  if (t->what & WR_POLLS) return wr_poll_take(&p->f->tables, &h->poll, t, c);
  if (t->what & WR_OBJECT) return see_object(p, t, c);
  bool counts = wr_storm_is_on(&h->storm) || t->kind == WEIR_EV_LAUNCH;
  return counts ? wr_storm_take(&p->storms, &h->storm, t, c) : WEIR_OK;
}

static weir_status take_call(pass *p, wr_fact_call *c)
{
  weir_status st = WEIR_OK;
  wr_common *t = &p->f->common[c->common];
  held begun = {.time = c->time, .id = c->id};
  if (!t->of_thread && !know_states(p, t)) return no_memory(p);
  thread_state *h = t->of_thread;
  if (p->hashes.hash.count && t->what & WR_SUCCEEDED)
    st = wr_hash_take(&p->hashes, t->of_process, t, c);
  if (!st && t->what & WR_ORDERS) st = wr_chunk_take(&p->f->tables, &h->chunk, t, c);
  if (!st && t->what & WR_ORDERS && !wr_turn_pass(&h->turn, t))
    st = wr_turn_take(&p->f->tables, &h->turn, t, c);
  if (!st && t->what & WR_STEPS) st = wr_step_take(&p->f->tables, &h->step, t, c);
  if (t->what & WR_POLLS_ON) wr_poll_see(&h->poll, t, c);
  if (!st && t->what & WR_PAUSED) st = wr_poll_end(&p->f->tables, &h->poll, t, c);
  if (!st && t->what & (WR_ORDERS | WR_OBJECT | WR_POLLS)) st = take_begun(p, t, c);
  if (st || !(t->what & WR_LOOKED_AT)) return st;
  if (p->held_count && is_before(&p->held[0], &begun)) st = use_held(p, &begun);
  if (st || t->kind != WEIR_EV_ALLOC) return st ? st : see_call(p, t, c);
  if (p->held_count >= MOST_HELD) st = use_held(p, NULL);
  c->time = sane_time(c->time + c->duration);
  return st ? st : hold_call(p, c);
}

/* What the calls have in common is brought. */
static inline void fetch_common(const pass *p, const wr_event *e)
{
  const wr_common *t = &p->f->common[e->at];
  __builtin_prefetch(&t->what);
  __builtin_prefetch(&t->calls);
}

/* Of what find_keys() has brought, the records. */
static inline void fetch_records(const pass *p, const wr_fact_call *c)
{
  const uint32_t what = p->f->common[c->common].what;
  if (what & (WR_ALLOCATES | WR_FREES)) wr_records_fetch_record(&p->blocks.block, c->key);
  if (what & WR_IS_MOVE) wr_records_fetch_record(&p->moves.written, c->key);
}

/* `left`: events that are there, of which the first few are taken. */
static weir_status take_batch(pass *p, const wr_event events[], size_t left)
{
  wr_fact_call call[BATCH];
  weir_status st = WEIR_OK;
  const size_t count = left < BATCH ? left : BATCH;
  int taken = 0;
  for (size_t i = 0; i < count; i++) {
    const wr_event *e = &events[i];
    const wr_common *t = &p->f->common[e->at];
    if (i + AHEAD < left) fetch_common(p, e + AHEAD);
    if (!(t->what & WR_TAKEN)) continue;
    wr_fact_call *c = &call[taken++];
    read_call(c, e);
    find_keys(p, t, c);
  }
  for (int i = 0; i < taken; i++)
    fetch_records(p, &call[i]);
  for (int i = 0; !st && i < taken; i++)
    st = take_call(p, &call[i]);
  return st;
}

/* Calls are looked at by the batch: what they need of memory is on its way by then. */
weir_status wr_facts_take(void *context, const wr_event events[], size_t count)
{
  weir_status st = WEIR_OK;
  for (size_t at = 0; !st && at < count; at += BATCH)
    st = take_batch(context, &events[at], count - at);
  return st;
}

static weir_status end_process(pass *p, wr_process_state *x)
{
  weir_status st = wr_block_end(&p->blocks, x);
  return st ? st : wr_once_end(&p->f->tables, x);
}

static weir_status end_all(pass *p)
{
  weir_status st = WEIR_OK;
  for (size_t i = 0; !st && i < p->threads.count; i++) {
    thread_state *h = p->threads.state[i];
    st = wr_thread_end(&p->orders, &h->calls);
    if (!st) st = wr_storm_end(&p->storms, &h->storm);
  }
  for (size_t i = 0; !st && i < p->processes.count; i++)
    st = end_process(p, p->processes.state[i]);
  if (!st) st = wr_move_facts_end(&p->moves);
  if (!st) st = wr_thread_facts_end(&p->orders);
  if (!st) st = wr_handle_facts_end(&p->handles);
  if (!st) st = wr_block_facts_end(&p->blocks);
  for (size_t i = 0; !st && i < p->f->count; i++) {
    const wr_common *t = &p->f->common[i];
    if (!t->calls) continue;
    st = ADD(p, TEMPLATE_USE, t->id, (int64_t)t->calls, (int64_t)t->small, (int64_t)t->ns,
             (int64_t)t->bytes, (int64_t)t->most, t->first, (int64_t)t->longest);
  }
  return st;
}

/* ---- templates ------------------------------------------------------------------------------- */

static int ordinal(int64_t device)
{
  return device == WR_HOST ? -1 : (int)device;
}

static bool of_host(int mem)
{
  return mem == WEIR_MEM_PAGEABLE || mem == WEIR_MEM_PINNED || mem == WEIR_MEM_HOST;
}

/* What its calls do to device memory, as far as it can be told. */
static uint32_t what_it_does(const wr_common *t)
{
  bool copy = t->kind == WEIR_EV_COPY, captured = t->flags & WEIR_EVF_CAPTURE;
  bool work = t->kind == WEIR_EV_LAUNCH || t->kind == WEIR_EV_CALL;
  bool counts = t->kind <= WEIR_EV_MEMSET || work || t->kind == WEIR_EV_RESET;
  uint32_t what = 0;
  if (copy || t->kind == WEIR_EV_MEMSET) what |= captured ? WR_IS_MOVE : WR_IS_MOVE | WR_MOVES;
  if (work || captured) what |= WR_IS_USE;
  if (work || (copy && !of_host(t->src_mem)) || (captured && counts)) what |= WR_READS;
  if (copy ? !of_host(t->mem) : counts) what |= WR_WRITES;
  if (copy && t->copy == WEIR_COPY_HTOD) what |= WR_UP;
  if (copy && t->copy == WEIR_COPY_DTOH) what |= WR_BACK;
  return copy && of_host(t->src_mem) ? what | WR_FROM_HOST : what;
}

static uint32_t what_it_is(const wr_common *t, const wr_template *x, bool times)
{
  uint32_t what = what_it_does(t);
  bool orders = (t->kind >= WEIR_EV_FREE && t->kind <= WEIR_EV_LAUNCH) || t->kind == WEIR_EV_CALL;
  bool alloc = t->kind == WEIR_EV_ALLOC, captured = t->flags & WEIR_EVF_CAPTURE;
  bool for_event = t->kind == WEIR_EV_SYNC && t->copy == WEIR_SYNC_EVENT;
  bool registers = t->kind == WEIR_EV_HOSTREG;
  bool looked_at = t->kind <= WEIR_EV_LAUNCH || t->kind == WEIR_EV_RESET ||
                   t->kind == WEIR_EV_CALL || registers || times || captured;
  if (looked_at && t->kind != WEIR_EV_CACHE) what |= WR_LOOKED_AT;
  if (x->succeeded) what |= WR_SUCCEEDED;
  if ((t->device_work || t->kind == WEIR_EV_CALL) && x->succeeded && !captured)
    what |= WR_ADDS_WORK;
  if (x->done && orders) what |= WR_ORDERS;
  if (t->object) what |= WR_OBJECT;
  if (t->kind == WEIR_EV_SYNC && t->copy == WEIR_SYNC_QUERY && x->status == NOT_READY)
    what |= WR_POLLS;
  if (t->kind == WEIR_EV_SYNC && t->copy == WEIR_SYNC_QUERY && x->succeeded &&
      t->flags & WEIR_EVF_PAUSED)
    what |= WR_PAUSED;
  if (captured) what |= WR_CAPTURED;
  if (times) what |= WR_TIMES;
  if (times || for_event || t->giving || t->kind == WEIR_EV_RESET) what |= WR_SELDOM;
  if (registers || (alloc && !captured)) what |= WR_OWNS;
  if (alloc && !captured && t->mem == WEIR_MEM_DEVICE) what |= WR_ALLOCATES;
  return t->kind == WEIR_EV_FREE && !captured ? what | WR_FREES : what;
}

static bool is_graph_launch(const wr_common *t, const char *function)
{
  return t->kind == WEIR_EV_CALL && function && strstr(function, "GraphLaunch");
}

static bool is_graph_making(const wr_common *t, const char *function)
{
  static const char *const queue[] = {"GraphLaunch", "GraphUpload", "GraphMem"};
  if (t->kind != WEIR_EV_CALL || !function) return false;
  for (size_t i = 0; i < sizeof queue / sizeof *queue; i++)
    if (strstr(function, queue[i])) return false;
  return !strncmp(function, "cuGraph", 7) || !strncmp(function, "cudaGraph", 9) ||
         strstr(function, "Capture");
}

static wr_common common_of(const wr_template *x, const char *function)
{
  int own = ordinal(x->device);
  wr_common t = {.kind = (int)x->kind,
                 .copy = (int)x->copy,
                 .mem = (int)x->mem,
                 .src_mem = (int)x->src_mem,
                 .stream_index = UINT32_MAX,
                 .seed = hash_mix(3, (uint64_t)x->process),
                 .id = x->id,
                 .stream = (uint64_t)x->stream,
                 .flags = (uint32_t)x->flags,
                 .process = x->process,
                 .thread = x->thread,
                 .stack = x->stack,
                 .device = own < 0 ? ordinal(x->src_device) : own,
                 .own_device = own,
                 .context = (int)x->context,
                 .api = (int)x->api,
                 .giving = wr_giving_of(function),
                 .asked = x->asked,
                 .device_work = x->device_work};
  t.site = hash_mix(hash_mix(t.seed, (uint64_t)t.stack), (uint64_t)(int64_t)own);
  if (x->succeeded) wr_handle_call_of(t.kind, function, &t.object, &t.ends);
  t.what = what_it_is(&t, x, function && strstr(function, "EventElapsedTime"));
  if (x->succeeded && function && !strcmp(function, "cudaSetDevice")) t.what |= WR_SETS_DEVICE;
  t.launches_graph = is_graph_launch(&t, function), t.makes_graph = is_graph_making(&t, function);
  t.in_thread = wr_thread_kind(&t);
  t.in_stream = wr_stream_kind(&t);
  return t;
}

/* Whether a step is more than the time between calls. */
static bool goes_on(const wr_common *t)
{
  bool waits = t->kind == WEIR_EV_SYNC;
  bool launches = t->kind == WEIR_EV_LAUNCH || t->kind == WEIR_EV_CALL;
  bool crosses = t->what & (WR_UP | WR_BACK | WR_FROM_HOST);
  return waits || launches || crosses || t->what & WR_SETS_DEVICE;
}

/* Between two calls that set the device any other counts; else those that queue, wait or free. For
 * waits with pauses, records of events do. */
static void choose_steps(pass *p)
{
  uint32_t any = 0, paused = 0;
  for (size_t i = 0; i < p->f->count; i++) {
    any |= p->f->common[i].what & WR_SETS_DEVICE;
    paused |= p->f->common[i].what & WR_PAUSED;
  }
  for (size_t i = 0; i < p->f->count; i++) {
    wr_common *t = &p->f->common[i];
    if (t->kind != WEIR_EV_CACHE && (any || t->what & WR_ORDERS))
      t->what |= goes_on(t) ? WR_STEPS | WR_STEPS_ON : WR_STEPS;
    if (paused && (t->device_work || t->kind == WEIR_EV_EVENT)) t->what |= WR_POLLS_ON | WR_TAKEN;
    if (t->what & (WR_LOOKED_AT | WR_ORDERS | WR_OBJECT | WR_STEPS)) t->what |= WR_TAKEN;
  }
}

/* What calls of these kinds do is known by the names of their functions. */
static weir_status make_common(pass *p)
{
  wr_facts *f = p->f;
  const wr_events *x = f->events;
  sqlite3_stmt *q = NULL;
  f->common = aligned_alloc(WR_CACHE_LINE, (x->count + 1) * sizeof(*f->common));
  if (!f->common) return no_memory(p);
  weir_status st = wr_db_prepare(p->db, "SELECT name FROM main.api WHERE id = ?", &q);
  for (; !st && f->count < x->count; f->count++) {
    const wr_template *t = &x->templates[f->count];
    bool named = t->kind == WEIR_EV_EVENT || t->kind == WEIR_EV_CALL || t->kind == WEIR_EV_CONTEXT;
    if (named) sqlite3_bind_int64(q, 1, t->api);
    named = named && sqlite3_step(q) == SQLITE_ROW;
    f->common[f->count] = common_of(t, named ? (const char *)sqlite3_column_text(q, 0) : NULL);
    sqlite3_reset(q);
  }
  choose_steps(p);
  if (!st) st = wr_stream_choose(&p->streams, f->common, f->count);
  sqlite3_finalize(q);
  p->moves.common = p->blocks.common = f->common;
  return st;
}

/* ---- begin, end ------------------------------------------------------------------------------ */

weir_status wr_facts_begin(wr_facts_pass **out, wr_facts *f, const wr_db *db,
                           const wr_facts_settings *settings)
{
  wr_facts_pass *p = *out = malloc(sizeof(*p));
  if (!p) return wr_db_out_of_memory(db);
  *p = (wr_facts_pass){.f = f,
                       .db = db,
                       .blocks = {.tables = &f->tables},
                       .moves = {.tables = &f->tables},
                       .orders = {.tables = &f->tables},
                       .streams = {.tables = &f->tables, .timed = settings->timed},
                       .storms = {.tables = &f->tables},
                       .handles = {.tables = &f->tables},
                       .hashes = {.tables = &f->tables, .partial = &f->hashes_partial}};
  f->events = settings->events;
  weir_status st = wr_fact_open(&f->tables);
  if (!st) st = wr_hash_load(&p->hashes, db);
  return st ? st : make_common(p);
}

weir_status wr_facts_end(wr_facts_pass *p)
{
  weir_status st = use_held(p, NULL);
  if (!st) st = end_all(p);
  p->f->hash_places = p->hashes.place.count;
  return st ? st : wr_fact_make_tables(&p->f->tables, p->db);
}

void wr_facts_close(wr_facts_pass *p)
{
  if (!p) return;
  for (size_t i = 0; i < p->processes.count; i++) {
    wr_process_state *x = p->processes.state[i];
    wr_ranges_clear(&x->untouched);
    wr_ranges_clear(&x->apart);
    wr_ranges_clear(&x->combined);
    wr_given_free(&x->given);
    free(x->born);
    free(x->upload);
  }
  wr_block_facts_free(&p->blocks);
  wr_move_facts_free(&p->moves);
  wr_thread_facts_free(&p->orders);
  wr_stream_facts_free(&p->streams);
  wr_handle_facts_free(&p->handles);
  wr_hash_facts_free(&p->hashes);
  free_states(&p->processes);
  free_states(&p->threads);
  hash_map_free(&p->by_event);
  free(p->held);
  free(p->out);
  free(p);
}

void wr_facts_free(wr_facts *f)
{
  wr_fact_close(&f->tables);
  free(f->common);
  *f = (wr_facts){0};
}
