/* big_blocks.c: see big_blocks.h. Of each process the next time is kept at which something is due: a block begins, or a time
 * without a use does, since a copy names its block until it returns. So most events take a look at one number. */
#include "reports/findings/big_blocks.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/trace/event.h"
#include "reports/base/util.h"

enum {
  OPERATION = 1, /* a copy, memset, launch or other call, that succeeded */
  LAUNCH = 2,    /* of them a launch or other call */
  NAMES = 4,     /* a copy, memset or other call, whatever it returned */
  COPY = 8,
  UPLOAD = 16,
  MOVES = 32, /* a copy or memset */
  WORK = 64,
  ALLOC = 128,
  FREE = 256,
  WAITS = 512, /* the host has waited for its stream, or the device */
  REACHES =
      1024, /* makes a texture or a tensor map, with which kernels use memory by another word */
  DEVICE = 2048, /* an allocation of a device's memory */
  BITS = 12
};

enum { MOST_LIVING = 256 };

typedef struct big_process {
  int64_t id, end; /* ns, of the run */
  int64_t due;
  uint64_t operations, launches[WR_HOST + 1]; /* launches: by device, WR_HOST not known */
  uint64_t all_launches, known_launches;      /* known_launches: in no other number */
  bool peers;                                 /* its devices may use each other's memory */
  int64_t work_until;                         /* the latest end of work so far */
  size_t unworked;                            /* blocks that live, and have seen no work yet */
  size_t pending;                             /* blocks, at most */
} big_process;

typedef struct list { /* the largest first, then by alloc */
  wr_big_block block[WR_BIG_LIST];
  size_t count;
} list;

typedef struct device_peak {
  int64_t peak, at;
} device_peak;

typedef struct big_call { /* what calls of a template are */
  uint32_t what;          /* their process, from 1, and bits; 0: nothing */
  uint16_t device;        /* WR_HOST: none */
} big_call;

typedef struct wr_big_state {
  device_peak peak[WR_HOST];
  uint64_t least[WR_HOST]; /* by device: bytes of a large block of its memory */
  big_process *processes;  /* owned */
  size_t process_count, process_capacity;
  big_call *watched; /* owned: by template */
  wr_big_block living[MOST_LIVING];
  size_t living_count;
  wr_access access;
  uint64_t low, high; /* addresses of those that live, or have lived */
  list lists[WR_BIG_LISTS];
} wr_big_state;

/* A time of an untrusted trace, so that sums of a few cannot overflow. */
static int64_t sane_ns(int64_t ns)
{
  const int64_t most = INT64_C(1) << 61;
  return ns > most ? most : ns < -most ? -most : ns;
}

static bool is_large(uint64_t bytes, int64_t peak, const wr_big_limit *limit)
{
  double size = (double)bytes;
  return limit->min_bytes && size >= (double)limit->min_bytes &&
         size >= (double)peak * 0.01 * (double)limit->percent;
}

/* The least bytes of a block that is within one of the limits; more of them are, too. */
static uint64_t least_bytes(const wr_big_limit limits[WR_BIG_LISTS], int64_t peak)
{
  uint64_t least = UINT64_MAX;
  for (uint64_t bit = UINT64_C(1) << 63; peak && bit; bit >>= 1) {
    uint64_t bytes = least - bit;
    if (is_large(bytes, peak, &limits[0]) || is_large(bytes, peak, &limits[1])) least = bytes;
  }
  return least;
}

/* ---- opening --------------------------------------------------------------------------------- */

/* device, peak, when */
static weir_status take_peak(void *context, sqlite3_stmt *q)
{
  wr_big_state *x = context;
  int64_t device = sqlite3_column_int64(q, 0);
  if (device >= 0 && device < WR_HOST)
    x->peak[device] = (device_peak){sqlite3_column_int64(q, 1), sqlite3_column_int64(q, 2)};
  return WEIR_OK;
}

/* id, whether it has an end, end, peers */
static weir_status take_process(void *context, sqlite3_stmt *q)
{
  wr_big_blocks *all = context;
  wr_big_state *x = all->state;
  if (!wr_grow(&x->processes, &x->process_capacity, x->process_count + 1, sizeof(*x->processes)))
    return wr_db_out_of_memory(all->events->db);
  bool ends = sqlite3_column_type(q, 1) != SQLITE_NULL;
  x->processes[x->process_count++] =
      (big_process){.id = sqlite3_column_int64(q, 0),
                    .end = sane_ns(ends ? sqlite3_column_int64(q, 1) : all->duration),
                    .due = INT64_MAX,
                    .peers = sqlite3_column_int(q, 2) != 0,
                    .work_until = INT64_MIN};
  return WEIR_OK;
}

static bool host_waits(const wr_template *t)
{
  bool waits =
      t->kind == WEIR_EV_SYNC && (t->copy == WEIR_SYNC_STREAM || t->copy == WEIR_SYNC_CONTEXT);
  bool brings =
      t->kind == WEIR_EV_COPY && t->copy == WEIR_COPY_DTOH && !(t->flags & WEIR_EVF_ASYNC);
  return t->done && (waits || brings);
}

static uint32_t what_of(const wr_template *t)
{
  bool copy = t->kind == WEIR_EV_COPY, moves = copy || t->kind == WEIR_EV_MEMSET;
  bool alloc = t->kind == WEIR_EV_ALLOC && t->done;
  bool call = t->kind == WEIR_EV_CALL, launch = call || t->kind == WEIR_EV_LAUNCH;
  return ((moves || launch) && t->succeeded ? OPERATION : 0U) |
         (launch && t->succeeded ? LAUNCH : 0U) | (moves || call ? NAMES : 0U) |
         (copy ? COPY : 0U) | (copy && t->copy == WEIR_COPY_HTOD ? UPLOAD : 0U) |
         (moves ? MOVES : 0U) | (launch || t->captured ? WORK : 0U) | (alloc ? ALLOC : 0U) |
         (alloc && t->mem == WEIR_MEM_DEVICE && t->device < WR_HOST ? DEVICE : 0U) |
         (t->kind == WEIR_EV_FREE && t->done ? FREE : 0U) | (host_waits(t) ? WAITS : 0U);
}

/* The place of a process, from 1; 0: the trace has no row of it. */
static uint32_t place_of_process(const wr_big_state *x, int64_t id)
{
  size_t low = 0, high = x->process_count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (x->processes[middle].id < id)
      low = middle + 1;
    else
      high = middle;
  }
  return low < x->process_count && x->processes[low].id == id ? (uint32_t)low + 1 : 0;
}

/* template, whether its calls make, change or end graphs: they run nothing, and what a graph is of may be used when it is
 * launched. The others make what reaches memory otherwise than by an address. */
static weir_status take_named_call(void *context, sqlite3_stmt *q)
{
  const wr_big_blocks *all = context;
  size_t at = wr_events_template(all->events, sqlite3_column_int64(q, 0));
  big_call *call = at != SIZE_MAX ? &all->state->watched[at] : NULL;
  if (call && sqlite3_column_int(q, 1))
    *call = (big_call){0};
  else if (call && call->what)
    call->what |= REACHES;
  return WEIR_OK;
}

static weir_status watch_named_calls(wr_big_blocks *all)
{
  char sql[400];
  (void)snprintf(sql, sizeof(sql),
                 "SELECT t.id, a.name GLOB 'cu*Graph*' OR a.name GLOB 'cu*Capture*'"
                 " FROM main.template t JOIN main.api a ON a.id = t.api WHERE t.kind = %d"
                 " AND a.name NOT GLOB '*Launch*' AND (a.name GLOB 'cu*Graph*'"
                 " OR a.name GLOB 'cu*Capture*' OR a.name GLOB 'cuTexObjectCreate*'"
                 " OR a.name GLOB 'cuTexRefSetAddress*' OR a.name GLOB 'cuTensorMap*')",
                 WEIR_EV_CALL);
  return wr_db_each(all->events->db, sql, take_named_call, all);
}

/* *known: false: something besides calls ends blocks. */
static weir_status watch_templates(wr_big_blocks *all, bool *known)
{
  wr_big_state *x = all->state;
  const wr_events *events = all->events;
  int64_t graphs = 0;
  x->watched = calloc(events->count + 1, sizeof(*x->watched));
  if (!x->watched) return wr_db_out_of_memory(events->db);
  for (size_t i = 0; i < events->count; i++) {
    const wr_template *t = &events->templates[i];
    uint32_t what = what_of(t), at = what ? place_of_process(x, t->process) : 0;
    if (at && at < UINT32_MAX >> BITS)
      x->watched[i] = (big_call){at << BITS | what, (uint16_t)t->device};
    *known &= t->kind != WEIR_EV_RESET;
  }
  weir_status st = watch_named_calls(all);
  if (st || !wr_schema_graph_memory(events->db)) return st;
  st = wr_db_number(events->db, "SELECT EXISTS(SELECT 1 FROM main.graph_work WHERE pointer <> 0)",
                    &graphs);
  *known &= !graphs;
  return st;
}

weir_status wr_big_blocks_open(wr_big_blocks *x, const wr_events *events, int64_t duration,
                               const wr_big_limit limits[WR_BIG_LISTS])
{
  *x = (wr_big_blocks){.events = events, .duration = duration};
  memcpy(x->limits, limits, sizeof(x->limits));
  x->state = calloc(1, sizeof(*x->state));
  if (!x->state) return wr_db_out_of_memory(events->db);
  x->state->low = UINT64_MAX;
  weir_status st = wr_db_each(
      events->db,
      "SELECT device, peak, peak_at FROM main.memory WHERE mem IS NULL AND NOT registered"
      " AND device IS NOT NULL",
      take_peak, x->state);
  for (size_t i = 0; i < WR_HOST; i++)
    x->state->least[i] = least_bytes(limits, x->state->peak[i].peak);
  char sql[320];
  (void)snprintf(sql, sizeof(sql),
                 "SELECT p.id, p.\"end\", EXISTS(SELECT 1 FROM main.template t"
                 " JOIN main.api a ON a.id = t.api WHERE t.process = p.id AND t.kind = %d"
                 " AND a.name GLOB '*EnablePeerAccess*') FROM main.process p ORDER BY p.id",
                 WEIR_EV_CONTEXT);
  bool known = true;
  if (!st) st = wr_db_each(events->db, sql, take_process, x);
  if (!st) st = watch_templates(x, &known);
  if (!st) st = wr_access_open(&x->state->access, events);
  x->known = known && !st;
  return st;
}

void wr_big_blocks_close(wr_big_blocks *x)
{
  if (x->state) {
    wr_access_close(&x->state->access);
    free(x->state->processes);
    free(x->state->watched);
  }
  free(x->state);
  *x = (wr_big_blocks){0};
}

/* ---- which are kept -------------------------------------------------------------------------- */

bool wr_big_block_within(const wr_big_block *b, const wr_big_limit *limit, int64_t duration)
{
  double life = (double)(b->until - b->start);
  return is_large(b->bytes, b->peak, limit) &&
         life >= (double)duration * 0.01 * (double)limit->share;
}

static int by_size(const void *left, const void *right)
{
  const wr_big_block *a = left, *b = right;
  if (a->bytes != b->bytes) return a->bytes < b->bytes ? 1 : -1;
  return (a->alloc > b->alloc) - (a->alloc < b->alloc);
}

static void keep_block(list *l, const wr_big_block *b)
{
  size_t at = l->count;
  while (at && by_size(b, &l->block[at - 1]) < 0)
    at--;
  if (at == WR_BIG_LIST) return;
  size_t moved = (l->count < WR_BIG_LIST ? l->count++ : l->count - 1) - at;
  memmove(&l->block[at + 1], &l->block[at], moved * sizeof(*b));
  l->block[at] = *b;
}

/* Each once. */
static void join_lists(wr_big_blocks *x)
{
  for (size_t l = 0; l < WR_BIG_LISTS; l++) {
    const list *some = &x->state->lists[l];
    for (size_t i = 0, k; i < some->count; i++) {
      for (k = 0; k < x->count && x->block[k].alloc != some->block[i].alloc; k++)
        ;
      if (k == x->count) x->block[x->count++] = some->block[i];
    }
  }
  qsort(x->block, x->count, sizeof(*x->block), by_size);
}

/* ---- a block of the living ------------------------------------------------------------------- */

typedef struct call_time {
  int64_t start, end;
} call_time;

static uint64_t launches_of(const big_process *p, const wr_big_block *b)
{
  return p->peers ? p->all_launches : p->launches[b->device] + p->launches[WR_HOST];
}

/* The time without a use is over. */
static void end_idle(const big_process *p, wr_big_block *b, int64_t next)
{
  if (!b->counted || next - b->now.since <= b->longest.next - b->longest.since) return;
  b->longest = b->now;
  b->longest.next = next;
  b->longest.operations = p->operations - b->now.operations;
  b->longest.launches = launches_of(p, b) - b->now.launches + b->now.strange;
  b->longest.others = p->known_launches - b->now.others - b->now.strange;
}

static void use_block(wr_big_block *b, int64_t from, int64_t until)
{
  if (from < b->first_use) b->first_use = from;
  if (until > b->last_use) b->last_use = until;
}

static void end_block(big_process *p, wr_big_block *b)
{
  end_idle(p, b, b->until);
  if (p->work_until >= b->start) use_block(b, p->work_until, p->work_until);
  p->unworked -= b->begun && !b->worked;
}

/* What is due of a block before an event that begins then. When it is due next. */
static int64_t bring_up(big_process *p, wr_big_block *b, int64_t time)
{
  if (!b->begun && b->start > time) return b->start;
  if (!b->begun) {
    b->begun = true;
    b->now = (wr_idle_time){.since = b->start};
    b->now_from = b->start;
    p->unworked++;
  }
  if (!b->counted && b->now.since <= time) {
    b->counted = true;
    b->now.operations = p->operations;
    b->now.launches = launches_of(p, b);
    b->now.others = p->known_launches;
  }
  return b->counted ? INT64_MAX : b->now.since;
}

/* Whether `b` has begun where another lives, of which no free was seen. */
static bool replaces(wr_big_state *x, const wr_big_block *b)
{
  bool any = false;
  for (size_t i = 0; i < x->living_count; i++) {
    wr_big_block *o = &x->living[i];
    if (o == b || o->process != b->process || o->address != b->address || !o->begun) continue;
    o->replaced = any = true;
  }
  return any;
}

/* Returns whether some are replaced. */
static bool bring_all_up(wr_big_state *x, big_process *p, int64_t time)
{
  bool replaced = false;
  p->due = INT64_MAX;
  for (size_t i = 0; i < x->living_count; i++) {
    wr_big_block *b = &x->living[i];
    if (b->process != p->id) continue;
    bool was = b->begun;
    int64_t due = bring_up(p, b, time);
    if (due < p->due) p->due = due;
    if (!was && b->begun) replaced |= replaces(x, b);
  }
  return replaced;
}

/* ---- blocks come and go ---------------------------------------------------------------------- */

/* It lives no more; *at is where it was among the living. `kept`: it is known when it ended. */
static void drop_block(wr_big_blocks *all, big_process *p, size_t at, int64_t until, bool kept)
{
  wr_big_state *x = all->state;
  wr_big_block b = x->living[at];
  b.until = until;
  bring_up(p, &b, until);
  end_block(p, &b);
  for (size_t i = 0; kept && i < WR_BIG_LISTS; i++)
    if (wr_big_block_within(&b, &all->limits[i], all->duration)) keep_block(&x->lists[i], &b);
  x->living[at] = x->living[--x->living_count];
}

static void drop_replaced(wr_big_blocks *all, big_process *p, int64_t time)
{
  for (size_t i = all->state->living_count; i; i--)
    if (all->state->living[i - 1].replaced) drop_block(all, p, i - 1, time, false);
}

/* The block that has begun there, if one has, is freed; one that begins later is another. */
static void free_block(wr_big_blocks *all, big_process *p, uint64_t address, int64_t time)
{
  const wr_big_state *x = all->state;
  if (address < x->low || address >= x->high) return;
  for (size_t i = 0; i < x->living_count; i++) {
    const wr_big_block *b = &x->living[i];
    if (b->address != address || b->process != p->id || b->start > time) continue;
    drop_block(all, p, i, time, true);
    return;
  }
}

static bool lives_at(const wr_big_state *x, uint64_t address)
{
  for (size_t i = 0; address >= x->low && address < x->high && i < x->living_count; i++)
    if (x->living[i].address == address) return true;
  return false;
}

/* One that is not large is followed where it takes the place of one that is. */
static void begin_block(wr_big_blocks *all, big_process *p, const wr_event *e, const call_time *c)
{
  wr_big_state *x = all->state;
  bool device = e->t->mem == WEIR_MEM_DEVICE && e->t->device < WR_HOST;
  const device_peak d = device ? x->peak[e->t->device] : (device_peak){0};
  uint64_t bytes = d.peak ? e->bytes : 0;
  bool large = is_large(bytes, d.peak, &all->limits[0]) || is_large(bytes, d.peak, &all->limits[1]);
  if ((!large && !lives_at(x, e->a)) || x->living_count == MOST_LIVING) return;
  wr_big_block b = {.alloc = e->id,
                    .process = p->id,
                    .start = c->end,
                    .until = p->end,
                    .peak = d.peak,
                    .peak_at = d.at,
                    .address = e->a,
                    .bytes = bytes,
                    .device = device ? (int)e->t->device : 0,
                    .first_use = INT64_MAX,
                    .last_use = INT64_MIN};
  x->living[x->living_count++] = b;
  if (b.address < x->low) x->low = b.address;
  if (b.address + b.bytes > x->high) x->high = b.address + b.bytes;
  if (b.start < p->due) p->due = b.start;
}

/* ---- uses ------------------------------------------------------------------------------------ */

static bool overlaps(const wr_big_block *b, uint64_t address, uint64_t bytes)
{
  return address - b->address < b->bytes || b->address - address < bytes;
}

/* A call that names the block. Of calls that begin at one time the last to end counts. */
static void name_block(big_process *p, wr_big_block *b, const call_time *c, uint32_t what)
{
  if (what & MOVES) use_block(b, c->start, c->end);
  b->reached |= what & REACHES;
  end_idle(p, b, c->start);
  if (b->pending) b->now.upload = what & UPLOAD;
  if (b->pending || (c->start == b->now_from && c->end < b->now.since)) return;
  b->now = (wr_idle_time){.since = c->end, .upload = what & UPLOAD};
  b->now_from = c->start;
  b->counted = false;
  if (c->end < p->due) p->due = c->end;
}

static bool is_near(const wr_big_state *x, uint64_t address, uint64_t bytes)
{
  return address < x->high && (address >= x->low || x->low - address < bytes);
}

static void find_named(wr_big_state *x, big_process *p, const wr_event *e, const call_time *c,
                       uint32_t what)
{
  bool a = is_near(x, e->a, e->bytes), b = what & COPY && is_near(x, e->b, e->bytes);
  for (size_t i = 0; (a || b) && i < x->living_count; i++) {
    wr_big_block *big = &x->living[i];
    if (big->process != p->id || !big->begun) continue;
    if ((a && overlaps(big, e->a, e->bytes)) || (b && overlaps(big, e->b, e->bytes)))
      name_block(p, big, c, what);
  }
}

static bool is_kernel_of(const wr_big_block *b, uint64_t function)
{
  size_t i = 0;
  while (i < b->kernels && b->kernel[i] != function)
    i++;
  return i < b->kernels;
}

/* Whether one of the kernels that the launch runs never was handed the block. */
static bool runs_stranger(const wr_big_state *x, const wr_big_block *b, const wr_event *e)
{
  size_t count = 0, i = 0;
  if (e->t->kind == WEIR_EV_LAUNCH) return !is_kernel_of(b, e->a);
  const wr_access_run *r = wr_access_runs(&x->access, e, &count);
  while (i < count && (!r[i].is_kernel || is_kernel_of(b, r[i].kernel)))
    i++;
  return i < count;
}

/* A launch is known to be handed other memory. A kernel that takes such memory as a parameter has no
 * need of another way to it; one that never was handed the block may find its address elsewhere. */
static void pass_block(const wr_big_state *x, const big_process *p, wr_big_block *b,
                       const wr_event *e)
{
  bool near = p->peers || e->t->device == WR_HOST || (int)e->t->device == b->device;
  if (!b->counted || b->pending || !near) return;
  b->now.strange += runs_stranger(x, b, e);
}

static void add_kernel(wr_big_block *b, uint64_t function)
{
  if (b->kernels < WR_BIG_KERNELS && !is_kernel_of(b, function)) b->kernel[b->kernels++] = function;
}

static void add_kernels(const wr_big_state *x, wr_big_block *b, const wr_event *e)
{
  size_t count = 0;
  if (e->t->kind == WEIR_EV_LAUNCH) {
    add_kernel(b, e->a);
    return;
  }
  const wr_access_run *r = wr_access_runs(&x->access, e, &count);
  for (size_t i = 0; i < count && b->kernels < WR_BIG_KERNELS; i++)
    if (r[i].is_kernel && wr_access_run_touches(&x->access, e, &r[i], b->address, b->bytes))
      add_kernel(b, r[i].kernel);
}

/* A launch is handed the block: its kernels may use it until the host has waited for it. */
static void hand_block(const wr_big_state *x, big_process *p, wr_big_block *b, const wr_event *e,
                       const call_time *c)
{
  bool alone =
      !b->pending || (b->pending_stream == e->t->stream && b->pending_thread == e->t->thread);
  end_idle(p, b, c->start);
  b->pending_stream = alone ? e->t->stream : 0;
  b->pending_thread = e->t->thread;
  b->pending = b->counted = true;
  b->now = (wr_idle_time){.since = INT64_MAX / 2};
  b->handed++;
  p->pending++;
  add_kernels(x, b, e);
}

/* Whether it is known what the launch is handed. */
static bool see_handed(wr_big_state *x, big_process *p, const wr_event *e, const call_time *c)
{
  if (!wr_access_any(&x->access) || !wr_access_known(&x->access, e)) return false;
  for (size_t i = 0; i < x->living_count; i++) {
    wr_big_block *b = &x->living[i];
    if (b->process != p->id || !b->begun) continue;
    if (wr_access_touches(&x->access, e, b->address, b->bytes))
      hand_block(x, p, b, e, c);
    else
      pass_block(x, p, b, e);
  }
  return true;
}

static void see_launch(wr_big_state *x, big_process *p, const wr_event *e, const call_time *c,
                       unsigned device)
{
  if (see_handed(x, p, e, c))
    p->known_launches++;
  else
    p->launches[device]++, p->all_launches++;
}

/* The host has waited for a stream, or the device. A stream of the thread's own is another in each. */
static bool wait_covers(const wr_big_block *b, const wr_template *t)
{
  if (t->kind == WEIR_EV_SYNC && t->copy == WEIR_SYNC_CONTEXT) return t->device == b->device;
  return t->stream == b->pending_stream &&
         (t->stream != (int64_t)WEIR_STREAM_PER_THREAD || t->thread == b->pending_thread);
}

static void see_wait(wr_big_state *x, big_process *p, const wr_event *e, const call_time *c)
{
  size_t left = 0;
  for (size_t i = 0; i < x->living_count; i++) {
    wr_big_block *b = &x->living[i];
    if (b->process != p->id || !b->pending) continue;
    bool over = wait_covers(b, e->t);
    left += !over;
    if (!over) continue;
    b->pending = false;
    b->now = (wr_idle_time){.since = c->end,
                            .upload = b->now.upload,
                            .operations = p->operations,
                            .launches = launches_of(p, b),
                            .others = p->known_launches};
    b->now_from = c->start;
  }
  p->pending = left;
}

/* Work may use any block; the first in each life is noted, and the end of the last so far. */
static void see_work(wr_big_state *x, big_process *p, const call_time *c)
{
  for (size_t i = 0; p->unworked && i < x->living_count; i++) {
    wr_big_block *b = &x->living[i];
    if (b->process != p->id || !b->begun || b->worked) continue;
    b->worked = true;
    use_block(b, c->start, c->start);
    p->unworked--;
  }
  if (c->end > p->work_until) p->work_until = c->end;
}

static void see_big_call(wr_big_blocks *all, const wr_event *e, const big_call *w)
{
  const uint32_t what = w->what;
  wr_big_state *x = all->state;
  big_process *p = &x->processes[(what >> BITS) - 1];
  const call_time c = {sane_ns(e->start), sane_ns(e->start) + sane_ns(e->ns)};
  if (c.start >= p->due && bring_all_up(x, p, c.start)) drop_replaced(all, p, c.start);
  p->operations += what & OPERATION;
  if (what & LAUNCH) see_launch(x, p, e, &c, w->device);
  if (what & NAMES) find_named(x, p, e, &c, what);
  if (what & WORK) see_work(x, p, &c);
  if (what & WAITS && p->pending) see_wait(x, p, e, &c);
  if (what & ALLOC) begin_block(all, p, e, &c);
  if (what & FREE) free_block(all, p, e->a, c.start);
}

/* Most allocations and frees are of memory that is neither large nor where large memory is, and most waits are for nothing
 * that a block is handed to. */
static inline bool is_elsewhere(const wr_big_state *x, const wr_event *e, const big_call *w)
{
  const uint32_t what = w->what;
  const big_process *p = &x->processes[(what >> BITS) - 1];
  if (e->start < 0 || e->start >= p->due) return false;
  if (what & DEVICE && e->bytes >= x->least[w->device]) return false;
  if (what & (ALLOC | FREE)) return !lives_at(x, e->a);
  return (what & ((1U << BITS) - 1)) == WAITS && !p->pending;
}

void wr_big_blocks_take(wr_big_blocks *all, const wr_event events[], size_t count)
{
  const wr_big_state *x = all->state;
  for (size_t i = 0; all->known && i < count; i++) {
    const wr_event *e = &events[i];
    const big_call *w = &x->watched[e->at];
    if (!w->what || (!x->living_count && !(w->what & (ALLOC | WORK)))) continue;
    if (!is_elsewhere(x, e, w)) see_big_call(all, e, w);
  }
}

void wr_big_blocks_end(wr_big_blocks *all)
{
  wr_big_state *x = all->state;
  while (all->known && x->living_count) {
    const wr_big_block *b = &x->living[x->living_count - 1];
    big_process *p = &x->processes[place_of_process(x, b->process) - 1];
    drop_block(all, p, x->living_count - 1, p->end, true);
  }
  if (all->known) join_lists(all);
}
