/* order_facts.c: see order_facts.h. What a call is to the order of streams is decided once for its template. What is remembered of
 * a process is bounded: of a span that has more than WR_SPAN_OPS nothing is known. */
#include "reports/findings/order_facts.h"
#include <stdlib.h>
#include <string.h>
#include "core/base/map.h"
#include "core/trace/event.h"
#include "reports/base/util.h"
#include "reports/findings/given.h"
#include "reports/findings/order_span.h"
#include "reports/model/complete.h"

enum {
  MOST_TIMES = 1 << 21, /* operations of devices */
  MOST_LIVE = 1 << 14,  /* blocks of a process */
  MOST_ROWS = 1 << 20,
  MOST_NAMES = 1 << 18, /* blocks that the operations of a span name */
  LITTLE = 64,          /* of the time that a span takes: less is not gained */
  LINK = 25,            /* bytes a ns, of a copy without a time */
  INTERPROCESS = 4,
  NON_BLOCKING = 1
};

#define LONGEST_WORK (INT64_C(1) << 40) /* ns */
#define LACKS        0.25               /* of a span's time, that the model may lack */

enum act {
  NOTHING,
  ENDS,    /* the process is not followed any more */
  UNKNOWN, /* nor is the span known */
  ALLOCATES,
  FREES,
  WORKS,
  RECORDS,
  MAKES_EVENT,
  TIMES,
  MAKES_STREAM,
  STREAM_WAITS,
  HOST_WAITS
};

typedef struct of_template {
  uint8_t act;
  uint8_t stream;        /* in the span */
  uint32_t known;        /* `stream`, of that count of changes; 0: of none */
  uint32_t first, named; /* a launch's blocks, */
  uint32_t known_blocks; /* of that one */
} of_template;

typedef struct live_block {
  uint64_t at, bytes;
  uint32_t span, number; /* in the span of that number */
  bool host, launched;   /* launched: a launch was handed it */
  bool pointers;         /* a copy may have brought some */
} live_block;

typedef struct order_row {
  int64_t event, template, related, saving;
  uint64_t place;
  size_t process; /* its place */
  bool legacy, timed;
} order_row;

typedef struct order_process {
  int64_t id;
  bool off, unknown;
  bool pointers;  /* a launch was handed memory that may have some, and reach any memory by them */
  int64_t thread; /* of the span; 0: none yet */
  uint32_t span;  /* its number, from 1 */
  live_block *block; /* owned: by address */
  size_t blocks, block_capacity;
  hash_map slot; /* event -> from 1 */
  wr_span s;
  uint64_t place[WR_SPAN_PLACES];
  size_t names;    /* that the operations of the span have, each by itself */
  bool has_legacy; /* work in the legacy default stream */
} order_process;

typedef struct device_time {
  int64_t event, ns;
} device_time;

typedef struct wr_order_state {
  const wr_events *events; /* borrowed */
  wr_access access;
  of_template *of;        /* owned; by template */
  uint32_t changes;       /* spans begun, and blocks and streams that ended */
  hash_map at;            /* process -> from 1 */
  order_process *process; /* owned */
  size_t processes, process_capacity;
  hash_map plain;    /* streams that do not wait for the legacy default stream */
  hash_map needed;   /* places */
  hash_map gains;    /* places where something is gained */
  device_time *time; /* owned: by event */
  size_t times, time_capacity;
  order_row *row; /* owned */
  size_t rows, row_capacity;
  bool failed; /* out of memory */
} state;

/* ---- templates ------------------------------------------------------------------------------- */

/* Calls by a part of their names: what they make may be used by work that is not seen, or by other
 * processes. */
static const char *const strange[] = {"Ipc",          "ExportTo",  "ExportPointer", "Import",
                                      "External",     "Tex",       "Surf",          "TensorMap",
                                      "Multicast",    "MemMap",    "Graphics",      "GreenCtx",
                                      "CtxWaitEvent", "BatchMemOp"};

static bool is_strange(const char *name)
{
  size_t i = 0;
  while (i < sizeof(strange) / sizeof(*strange) && !strstr(name, strange[i]))
    i++;
  return i < sizeof(strange) / sizeof(*strange);
}

static bool is_host(int64_t mem)
{
  return mem == WEIR_MEM_PINNED || mem == WEIR_MEM_PAGEABLE;
}

static enum act act_of_copy(const wr_template *t)
{
  bool plain = !(t->flags & WEIR_EVF_STAGED);
  bool up = t->copy == WEIR_COPY_HTOD && t->mem == WEIR_MEM_DEVICE && is_host(t->src_mem);
  bool back = t->copy == WEIR_COPY_DTOH && is_host(t->mem) && t->src_mem == WEIR_MEM_DEVICE;
  bool within =
      t->copy == WEIR_COPY_DTOD && t->mem == WEIR_MEM_DEVICE && t->src_mem == WEIR_MEM_DEVICE;
  return plain && (up || back || within) ? WORKS : UNKNOWN;
}

static enum act act_of_event(const char *name)
{
  if (strstr(name, "EventRecord")) return RECORDS;
  if (strstr(name, "EventCreate")) return MAKES_EVENT;
  return strstr(name, "ElapsedTime") ? TIMES : NOTHING;
}

static enum act act_of_memory(const wr_template *t)
{
  bool plain = !(t->flags & (WEIR_EVF_ASYNC | WEIR_EVF_CACHED | WEIR_EVF_STAGED));
  bool known = t->mem == WEIR_MEM_DEVICE || t->mem == WEIR_MEM_PINNED;
  if (t->kind == WEIR_EV_HOSTREG) return ALLOCATES;
  if (t->mem == WEIR_MEM_ARRAY) return NOTHING;
  if (!plain || (!known && t->kind == WEIR_EV_ALLOC)) return ENDS;
  return t->kind == WEIR_EV_ALLOC ? ALLOCATES : FREES;
}

/* What a call of a function is that has no other kind. */
static enum act act_of_call(const wr_template *t, const char *name)
{
  bool asks = strstr(name, "StreamGet") || strstr(name, "StreamSet") || strstr(name, "StreamCopy");
  if (wr_giving_of(name) != WR_GIVES_NOTHING) return ENDS;
  return t->stream && !asks ? UNKNOWN : NOTHING;
}

static enum act act_of(const wr_template *t, const char *name)
{
  if (t->captured && t->kind == WEIR_EV_EVENT) return ENDS;
  if (!t->done) return NOTHING;
  if (t->kind != WEIR_EV_CACHE && is_strange(name)) return ENDS;
  switch (t->kind) {
  case WEIR_EV_ALLOC:
  case WEIR_EV_FREE:
  case WEIR_EV_HOSTREG:
    return act_of_memory(t);
  case WEIR_EV_COPY:
    return act_of_copy(t);
  case WEIR_EV_MEMSET:
    return t->mem == WEIR_MEM_DEVICE ? WORKS : UNKNOWN;
  case WEIR_EV_LAUNCH:
    return WORKS;
  case WEIR_EV_SYNC:
    return t->copy == WEIR_SYNC_STREAM_WAIT ? STREAM_WAITS : HOST_WAITS;
  case WEIR_EV_EVENT:
    return act_of_event(name);
  case WEIR_EV_STREAM:
    return MAKES_STREAM;
  case WEIR_EV_RESET:
    return ENDS;
  default:
    return act_of_call(t, name);
  }
}

/* ---- begin ----------------------------------------------------------------------------------- */

static weir_status order_memory(const state *x)
{
  return wr_db_out_of_memory(x->events->db);
}

/* Waits of streams; or work in the legacy default stream and in one that the program made. */
static bool has_order(const wr_events *events)
{
  bool waits = false, legacy = false, made = false;
  for (size_t i = 0; i < events->count; i++) {
    const wr_template *t = &events->templates[i];
    if (!t->done) continue;
    waits |= t->kind == WEIR_EV_SYNC && t->copy == WEIR_SYNC_STREAM_WAIT;
    if (t->device_work && t->stream == (int64_t)WEIR_STREAM_LEGACY) legacy = true;
    if (t->device_work && (uint64_t)t->stream > WEIR_STREAM_PER_THREAD) made = true;
  }
  return waits || (legacy && made);
}

static weir_status read_acts(state *x)
{
  sqlite3_stmt *q = NULL;
  x->of = calloc(x->events->count + 1, sizeof(*x->of));
  if (!x->of) return order_memory(x);
  weir_status st = wr_db_prepare(x->events->db, "SELECT name FROM main.api WHERE id = ?", &q);
  for (size_t i = 0; !st && i < x->events->count; i++) {
    const wr_template *t = &x->events->templates[i];
    sqlite3_bind_int64(q, 1, t->api);
    const char *name =
        sqlite3_step(q) == SQLITE_ROW ? (const char *)sqlite3_column_text(q, 0) : NULL;
    x->of[i].act = (uint8_t)act_of(t, name ? name : "");
    sqlite3_reset(q);
  }
  sqlite3_finalize(q);
  return st;
}

/* event, ns; by event */
static weir_status take_time(void *context, sqlite3_stmt *q)
{
  state *x = context;
  int64_t event = sqlite3_column_int64(q, 0), ns = sqlite3_column_int64(q, 1);
  if (ns < 0 || ns > INT32_MAX) return WEIR_OK;
  if (x->times && x->time[x->times - 1].event == event) {
    x->time[x->times - 1].ns += ns;
    return WEIR_OK;
  }
  if (!wr_grow(&x->time, &x->time_capacity, x->times + 1, sizeof(*x->time))) return order_memory(x);
  x->time[x->times++] = (device_time){event, ns};
  return WEIR_OK;
}

static weir_status read_times(state *x)
{
  int64_t rows = 0;
  const wr_db *db = x->events->db;
  if (!wr_db_has_table(db, "device_work")) return WEIR_OK;
  weir_status st = wr_db_number(db, "SELECT max(rowid) FROM device_work", &rows);
  if (st || rows > MOST_TIMES) return st;
  return wr_db_each(db,
                    "SELECT event, \"end\" - start FROM device_work WHERE event IS NOT NULL"
                    " AND start IS NOT NULL AND \"end\" IS NOT NULL ORDER BY event",
                    take_time, x);
}

/* The process that is known by its row; NULL: out of memory. */
static order_process *process_of(state *x, int64_t id)
{
  bool added;
  uint64_t *at = hash_map_place(&x->at, (uint64_t)id, &added);
  if (!at || !wr_grow(&x->process, &x->process_capacity, x->processes + 1, sizeof(*x->process)))
    return NULL;
  if (added) {
    x->process[x->processes++] = (order_process){.id = id, .span = ++x->changes};
    *at = x->processes;
  }
  return &x->process[*at - 1];
}

/* Calls of it are missing. */
static weir_status take_incomplete_process(void *context, sqlite3_stmt *q)
{
  state *x = context;
  order_process *p = process_of(x, sqlite3_column_int64(q, 0));
  if (!p) return order_memory(x);
  p->off = true;
  return WEIR_OK;
}

weir_status wr_order_open(wr_order_facts *x, const wr_events *events)
{
  *x = (wr_order_facts){0};
  if (events->db->schema < 2 || !has_order(events)) return WEIR_OK;
  state *s = x->state = calloc(1, sizeof(*s));
  if (!s) return wr_db_out_of_memory(events->db);
  s->events = events;
  weir_status st = wr_access_open(&s->access, events);
  if (!st) st = read_acts(s);
  if (!st) st = read_times(s);
  if (!st) st = wr_incomplete_processes(events->db, take_incomplete_process, s);
  return st;
}

void wr_order_close(wr_order_facts *x)
{
  state *s = x->state;
  if (!s) return;
  for (size_t i = 0; i < s->processes; i++) {
    free(s->process[i].block);
    free(s->process[i].s.op);
    free(s->process[i].s.named);
    hash_map_free(&s->process[i].slot);
  }
  wr_access_close(&s->access);
  hash_map_free(&s->at);
  hash_map_free(&s->plain);
  hash_map_free(&s->needed);
  hash_map_free(&s->gains);
  free(s->process);
  free(s->of);
  free(s->time);
  free(s->row);
  free(s);
  *x = (wr_order_facts){0};
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* The first block that begins after the address. */
static size_t block_after(const order_process *p, uint64_t address)
{
  size_t low = 0, high = p->blocks;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (p->block[middle].at <= address)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

static live_block *block_at(order_process *p, uint64_t address)
{
  size_t after = block_after(p, address);
  live_block *b = after ? &p->block[after - 1] : NULL;
  return b && address - b->at < b->bytes ? b : NULL;
}

static void drop_block(state *x, order_process *p, uint64_t address)
{
  live_block *b = block_at(p, address);
  if (!b || b->at != address) return;
  size_t at = (size_t)(b - p->block);
  memmove(b, b + 1, (--p->blocks - at) * sizeof(*b));
  x->changes++;
}

static void add_block(state *x, order_process *p, const wr_event *e)
{
  if (p->blocks >= MOST_LIVE) p->off = true;
  if (p->off || !e->bytes) return;
  drop_block(x, p, e->a);
  if (!wr_grow(&p->block, &p->block_capacity, p->blocks + 1, sizeof(*p->block))) {
    x->failed = true;
    return;
  }
  size_t at = block_after(p, e->a);
  memmove(&p->block[at + 1], &p->block[at], (p->blocks++ - at) * sizeof(*p->block));
  bool host = e->t->kind == WEIR_EV_HOSTREG || e->t->mem == WEIR_MEM_PINNED;
  p->block[at] = (live_block){.at = e->a, .bytes = e->bytes, .host = host};
}

/* A copy from the host or from another block: NULL is the host's. */
static void bring_pointers(order_process *p, const wr_event *e, const live_block *from)
{
  live_block *to = block_at(p, e->a);
  bool table = e->bytes <= WR_POINTERS_BYTES && e->bytes % sizeof(uint64_t) == 0;
  if (!to || !(from ? from->pointers : table)) return;
  to->pointers = true;
  p->pointers |= to->launched;
}

/* The operation that is made names the block at an address. */
static void name_block(state *x, order_process *p, uint64_t address, bool by_launch)
{
  wr_span *s = &p->s;
  live_block *b = block_at(p, address);
  if (!b || (by_launch && b->host) || (b->span != p->span && s->blocks >= WR_SPAN_BLOCKS)) {
    p->unknown = true;
    return;
  }
  if (b->span != p->span) b->span = p->span, b->number = s->blocks++;
  b->launched |= by_launch;
  p->pointers |= by_launch && b->pointers;
  if (wr_grow(&s->named, &s->name_capacity, s->names + 1, sizeof(*s->named)))
    s->named[s->names++] = b->number;
  else
    x->failed = true;
}

/* ---- a span that is complete ----------------------------------------------------------------- */

static const device_time *time_of(const state *x, int64_t event)
{
  size_t low = 0, high = x->times;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (x->time[middle].event < event)
      low = middle + 1;
    else
      high = middle;
  }
  return low < x->times && x->time[low].event == event ? &x->time[low] : NULL;
}

/* Whether there is a time of all. */
static bool time_span(const state *x, wr_span *s)
{
  bool timed = true;
  for (size_t i = 0; i < s->ops; i++) {
    const device_time *t = s->op[i].kind == WR_SPAN_WORK ? time_of(x, s->op[i].event) : NULL;
    if (t) s->op[i].device_ns = wr_least(t->ns, LONGEST_WORK);
    if (!t && s->op[i].kind == WR_SPAN_WORK) timed = false;
  }
  return timed;
}

static uint64_t place_of(const wr_template *t, bool legacy)
{
  return hash_mix(hash_mix(legacy ? 61 : 59, (uint64_t)t->process), (uint64_t)t->stack);
}

static void need_place(state *x, uint64_t place)
{
  if (hash_map_put(&x->needed, place, 1)) x->failed = true;
}

/* A part of the time that the span took, as the model has it: what it lacks, the time from one operation's end to the begin of
 * the next, is in both; but not what else the machine did meanwhile. */
static int64_t gain_of(const wr_span *s, int64_t with, int64_t without)
{
  const wr_span_op *last = &s->op[s->ops - 1];
  int64_t took = last->start + last->ns - s->op->start, gain = with - without;
  if (without < 0 || gain <= with / LITTLE || took <= 0) return 0;
  double longer = (double)took / (double)with;
  return (int64_t)((double)gain * (longer < 1 + LACKS ? longer : 1 + LACKS));
}

static void add_row(state *x, const order_row *r)
{
  if (x->rows >= MOST_ROWS) return;
  if (r->saving && hash_map_put(&x->gains, r->place, 1)) x->failed = true;
  if (wr_grow(&x->row, &x->row_capacity, x->rows + 1, sizeof(*x->row)))
    x->row[x->rows++] = *r;
  else
    x->failed = true;
}

/* The operation of a span is one of those that a gain is of: a wait at a place, or, `place` -1, work in the legacy
 * default stream. */
static bool is_one_of(const wr_span *s, const wr_span_op *o, int place)
{
  if (place < 0) return o->kind == WR_SPAN_WORK && s->stream[o->stream].legacy;
  return o->kind == WR_SPAN_STREAM_WAITS && o->place == place;
}

static void share_gain(state *x, const order_process *p, int place, int64_t gain, bool timed)
{
  const wr_span *s = &p->s;
  int64_t count = 0, related = 0;
  for (size_t i = 0; i < s->ops; i++)
    count += is_one_of(s, &s->op[i], place);
  for (size_t i = 0; i < s->ops; i++) {
    const wr_span_op *o = &s->op[i];
    const wr_template *t = &x->events->templates[o->template];
    if (is_one_of(s, o, place))
      add_row(x, &(order_row){.event = o->event,
                              .template = t->id,
                              .related = related,
                              .saving = gain / count,
                              .place = place_of(t, place < 0),
                              .process = (size_t)(p - x->process),
                              .legacy = place < 0,
                              .timed = timed});
    else if (o->kind == WR_SPAN_WORK)
      related = o->event;
  }
}

/* Whether an order that is not needed would be news of the place. */
static bool is_open(const state *x, uint64_t place)
{
  return !hash_map_get(&x->needed, place);
}

/* The waits that can go, one place after the other: what each gains when those before it have gone. */
static void judge_waits(state *x, order_process *p, bool timed)
{
  wr_span_without gone = {0};
  int64_t with = -1;
  for (uint32_t i = 0; i < p->s.places; i++) {
    wr_span_without more = {.places = gone.places | UINT32_C(1) << i};
    if (!is_open(x, p->place[i])) continue;
    if (!wr_span_holds(&p->s, more)) {
      need_place(x, p->place[i]);
      continue;
    }
    if (with < 0) with = wr_span_time(&p->s, gone);
    int64_t without = wr_span_time(&p->s, more);
    share_gain(x, p, (int)i, gain_of(&p->s, with, without), timed);
    if (without >= 0 && without < with) with = without;
    gone = more;
  }
}

static void judge_legacy(state *x, order_process *p, bool timed)
{
  wr_span_without by_blocks = {.legacy = true};
  if (!p->has_legacy || p->s.streams < 2 || !wr_span_holds(&p->s, by_blocks)) return;
  int64_t with = wr_span_time(&p->s, (wr_span_without){0}),
          gain = gain_of(&p->s, with, wr_span_time(&p->s, by_blocks));
  share_gain(x, p, -1, gain, timed);
}

/* Judges what was queued, and begins anew. */
static void end_span(state *x, order_process *p)
{
  wr_span *s = &p->s;
  for (uint32_t i = 0; (p->unknown || p->off) && i < s->places; i++)
    need_place(x, p->place[i]);
  if (!p->unknown && !p->off && s->ops) {
    bool timed = time_span(x, s);
    if (s->places) judge_waits(x, p, timed);
    judge_legacy(x, p, timed);
  }
  s->ops = s->names = 0;
  s->streams = s->blocks = s->events = s->places = 0;
  hash_map_free(&p->slot);
  p->unknown = p->has_legacy = false, p->thread = 0, p->names = 0;
  p->span = ++x->changes;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static uint64_t stream_key(int64_t process, uint64_t handle)
{
  return hash_mix(hash_mix(53, (uint64_t)process), handle);
}

/* The place of a template's stream in the span. */
static uint8_t stream_of(state *x, order_process *p, const wr_event *e)
{
  of_template *t = &x->of[e->at];
  wr_span *s = &p->s;
  uint64_t handle = (uint64_t)e->t->stream;
  uint32_t i = 0;
  if (t->known == x->changes) return t->stream;
  while (i < s->streams &&
         (s->stream[i].handle != handle || s->stream[i].context != (int)e->t->context))
    i++;
  if (i == WR_SPAN_STREAMS) {
    p->unknown = true;
    return 0;
  }
  bool legacy = handle == WEIR_STREAM_LEGACY;
  if (i == s->streams) {
    bool plain = hash_map_get(&x->plain, stream_key(p->id, handle));
    s->stream[s->streams++] = (wr_span_stream){.handle = handle,
                                               .context = (int)e->t->context,
                                               .legacy = legacy,
                                               .blocking = !legacy && !plain};
  }
  t->known = x->changes, t->stream = (uint8_t)i;
  return t->stream;
}

static uint16_t slot_of(state *x, order_process *p, uint64_t event)
{
  bool added;
  uint64_t *slot = hash_map_place(&p->slot, event, &added);
  if (!slot) x->failed = true;
  if (slot && added && p->s.events < WR_SPAN_EVENTS) *slot = ++p->s.events;
  if (!slot || !*slot) p->unknown = true;
  return slot && *slot ? (uint16_t)(*slot - 1) : 0;
}

/* Times of an untrusted trace, so that sums of a span cannot overflow. */
static int64_t sane_ns(int64_t ns)
{
  const int64_t longest = INT64_C(1) << 60;
  return ns > longest ? longest : ns < -longest ? -longest : ns;
}

/* An operation more; NULL: of the span nothing is known. */
static wr_span_op *add_op(state *x, order_process *p, const wr_event *e, wr_span_kind kind)
{
  wr_span *s = &p->s;
  if (p->thread && p->thread != e->t->thread) p->unknown = true;
  p->thread = e->t->thread;
  if (s->ops >= WR_SPAN_OPS || p->names > MOST_NAMES) p->unknown = true;
  if (p->unknown) return NULL;
  if (!wr_grow(&s->op, &s->op_capacity, s->ops + 1, sizeof(*s->op))) {
    x->failed = true;
    return NULL;
  }
  wr_span_op *o = &s->op[s->ops++];
  *o = (wr_span_op){.event = e->id,
                    .start = sane_ns(e->start),
                    .ns = sane_ns(e->ns),
                    .template = (uint32_t)e->at,
                    .kind = (uint8_t)kind};
  return o;
}

static uint8_t engine_of(const wr_template *t)
{
  uint32_t device = (uint32_t)(t->device == WR_HOST ? t->src_device : t->device);
  uint32_t own = t->kind != WEIR_EV_COPY ? 2 : t->copy == WEIR_COPY_HTOD ? 0 : 1;
  if (t->kind == WEIR_EV_COPY && t->copy == WEIR_COPY_DTOD) own = 2;
  return (uint8_t)(device % WR_SPAN_DEVICES * WR_SPAN_ENGINES + own);
}

/* A copy to the host returns when it is complete, and so do others that wait. */
static bool host_waits(const wr_template *t)
{
  bool copy = t->kind == WEIR_EV_COPY, async = t->flags & WEIR_EVF_ASYNC;
  if (!(t->flags & WEIR_EVF_IMPLICIT_SYNC)) return false;
  return !copy || t->copy == WEIR_COPY_DTOH || (t->copy == WEIR_COPY_HTOD && !async);
}

/* The blocks of a launch are found once, as long as all of them live. */
static void name_launch(state *x, order_process *p, const wr_event *e, wr_span_op *o)
{
  of_template *t = &x->of[e->at];
  size_t count = 0;
  const uint64_t *word = wr_access_words(&x->access, e, &count);
  if (!word || !count) {
    p->unknown = true;
    return;
  }
  if (t->known_blocks != x->changes) {
    t->first = (uint32_t)p->s.names;
    for (size_t i = 0; i < count && !p->unknown; i++)
      name_block(x, p, word[i], true);
    t->named = (uint32_t)p->s.names - t->first;
    t->known_blocks = p->unknown ? 0 : x->changes;
  }
  o->first = t->first, o->named = t->named;
}

/* What a copy of pageable memory reads it has read when it returns, and what it writes it has written. */
static void name_move(state *x, order_process *p, const wr_event *e, wr_span_op *o)
{
  const wr_template *t = e->t;
  bool copy = t->kind == WEIR_EV_COPY;
  o->first = (uint32_t)p->s.names;
  if (t->mem != WEIR_MEM_PAGEABLE) name_block(x, p, e->a, false);
  if (copy && t->src_mem != WEIR_MEM_PAGEABLE) name_block(x, p, e->b, false);
  o->named = (uint32_t)p->s.names - o->first;
  o->device_ns = copy && t->copy != WEIR_COPY_DTOD ? (int64_t)(e->bytes / LINK) : 0;
  if (copy && t->copy != WEIR_COPY_DTOH)
    bring_pointers(p, e, t->copy == WEIR_COPY_DTOD ? block_at(p, e->b) : NULL);
}

static bool is_complete(const wr_span *s)
{
  uint32_t i = 0;
  while (i < s->streams && s->stream[i].done == s->stream[i].queued)
    i++;
  return i == s->streams;
}

static void take_work(state *x, order_process *p, const wr_event *e)
{
  uint8_t stream = stream_of(x, p, e);
  wr_span_op *o = add_op(x, p, e, WR_SPAN_WORK);
  p->s.stream[stream].queued++;
  if (!o) return;
  o->stream = stream;
  o->engine = engine_of(e->t);
  o->waits = host_waits(e->t);
  p->has_legacy |= p->s.stream[stream].legacy;
  if (e->t->kind == WEIR_EV_LAUNCH)
    name_launch(x, p, e, o);
  else
    name_move(x, p, e, o);
  p->names += o->named;
}

static void take_stream_wait(state *x, order_process *p, const wr_event *e)
{
  uint8_t stream = stream_of(x, p, e);
  uint64_t place = place_of(e->t, false);
  uint32_t i = 0;
  while (i < p->s.places && p->place[i] != place)
    i++;
  if (i == WR_SPAN_PLACES) need_place(x, place), p->unknown = true;
  if (i == WR_SPAN_PLACES) return;
  if (i == p->s.places) p->place[p->s.places++] = place;
  uint16_t slot = slot_of(x, p, e->a);
  wr_span_op *o = add_op(x, p, e, WR_SPAN_STREAM_WAITS);
  if (o) o->stream = stream, o->slot = slot, o->place = (uint8_t)i;
}

static void take_record(state *x, order_process *p, const wr_event *e)
{
  uint8_t stream = stream_of(x, p, e);
  uint16_t slot = slot_of(x, p, e->a);
  wr_span_op *o = add_op(x, p, e, WR_SPAN_RECORD);
  if (o) o->stream = stream, o->slot = slot;
}

/* The host has waited for one stream, `stream`, or for all of a context. */
static void complete(order_process *p, int stream, int64_t context)
{
  for (uint32_t i = 0; i < p->s.streams; i++) {
    wr_span_stream *s = &p->s.stream[i];
    if (stream < 0 ? s->context == (int)context : stream == (int)i) s->done = s->queued;
  }
}

static void take_host_wait(state *x, order_process *p, const wr_event *e, uint64_t event)
{
  wr_span_op *o;
  bool for_stream = e->t->copy == WEIR_SYNC_STREAM || (e->t->copy == WEIR_SYNC_QUERY && !event);
  if (e->t->kind != WEIR_EV_SYNC || e->t->copy == WEIR_SYNC_CONTEXT) {
    bool all = e->t->kind != WEIR_EV_EVENT;
    o = add_op(x, p, e, all ? WR_SPAN_HOST_FOR_CONTEXT : WR_SPAN_HOST_FOR_EVENT);
    if (o) o->slot = all ? (uint16_t)e->t->context : slot_of(x, p, event);
    if (all) complete(p, -1, e->t->context);
  } else if (for_stream) {
    uint8_t stream = stream_of(x, p, e);
    o = add_op(x, p, e, WR_SPAN_HOST_FOR_STREAM);
    if (o) o->stream = stream;
    complete(p, stream, 0);
  } else {
    uint16_t slot = slot_of(x, p, event);
    o = add_op(x, p, e, WR_SPAN_HOST_FOR_EVENT);
    if (o) o->slot = slot;
  }
}

static void take_stream(state *x, order_process *p, const wr_event *e)
{
  uint64_t key = stream_key(p->id, (uint64_t)e->t->stream);
  x->changes++;
  for (uint32_t i = 0; i < p->s.streams; i++)
    if (p->s.stream[i].handle == (uint64_t)e->t->stream) p->s.stream[i].handle = 0;
  hash_map_remove(&x->plain, key);
  if (e->a == 1 && e->b & NON_BLOCKING && hash_map_put(&x->plain, key, 1)) x->failed = true;
}

static void take_memory(state *x, order_process *p, const wr_event *e)
{
  bool frees = e->t->kind == WEIR_EV_FREE;
  if (frees && e->t->flags & WEIR_EVF_IMPLICIT_SYNC && e->a) take_host_wait(x, p, e, 0);
  if (frees || !e->bytes)
    drop_block(x, p, e->a);
  else
    add_block(x, p, e);
}

static void take_act(state *x, order_process *p, const wr_event *e)
{
  switch (x->of[e->at].act) {
  case ENDS:
    p->off = true;
    break;
  case UNKNOWN:
    if (e->t->stream) p->s.stream[stream_of(x, p, e)].queued++;
    p->unknown = true;
    break;
  case ALLOCATES:
  case FREES:
    take_memory(x, p, e);
    break;
  case WORKS:
    take_work(x, p, e);
    break;
  case RECORDS:
    take_record(x, p, e);
    break;
  case MAKES_EVENT:
    p->off |= (e->b & INTERPROCESS) != 0;
    break;
  case TIMES:
    take_host_wait(x, p, e, e->a);
    take_host_wait(x, p, e, e->b);
    break;
  case MAKES_STREAM:
    take_stream(x, p, e);
    break;
  case STREAM_WAITS:
    take_stream_wait(x, p, e);
    break;
  default:
    take_host_wait(x, p, e, e->a);
  }
}

static bool take_order(state *x, const wr_event *e)
{
  uint8_t act = x->of[e->at].act;
  if (act == NOTHING) return true;
  order_process *p = process_of(x, e->t->process);
  if (!p) return false;
  if (p->off) {
    if (act == STREAM_WAITS) need_place(x, place_of(e->t, false));
    return !x->failed;
  }
  take_act(x, p, e);
  bool waited = act == HOST_WAITS || act == FREES || (act == WORKS && host_waits(e->t));
  if (act == WORKS && waited) complete(p, x->of[e->at].stream, 0);
  if (p->off || (waited && is_complete(&p->s))) end_span(x, p);
  return !x->failed;
}

weir_status wr_order_take(wr_order_facts *x, const wr_event events[], size_t count)
{
  bool good = true;
  for (size_t i = 0; x->state && good && i < count; i++)
    good = take_order(x->state, &events[i]);
  return good ? WEIR_OK : order_memory(x->state);
}

weir_status wr_order_end(wr_order_facts *x, wr_fact_tables *tables)
{
  state *s = x->state;
  weir_status st = WEIR_OK;
  for (size_t i = 0; s && i < s->processes; i++)
    end_span(s, &s->process[i]);
  if (s && s->failed) return order_memory(s);
  for (size_t i = 0; s && !st && i < s->rows; i++) {
    const order_row *r = &s->row[i];
    if (s->process[r->process].pointers) continue;
    if (hash_map_get(&s->needed, r->place) || !hash_map_get(&s->gains, r->place)) continue;
    st = wr_fact_add(
        tables, WR_FACT_ORDER_UNNEEDED,
        (const int64_t[]){r->event, r->template, r->related, r->saving, r->legacy, r->timed});
  }
  return st;
}
