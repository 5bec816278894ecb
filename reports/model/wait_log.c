/* wait_log.c: see wait_log.h. What a call is to the queues follows from its kind, from its flags
 * and, where one kind has several functions, from the function's name. */
#include "reports/model/wait_log.h"
#include <stdlib.h>
#include <string.h>
#include "core/trace/api.h"
#include "core/base/map.h"
#include "core/trace/event.h"
#include "reports/base/util.h"
#include "reports/events/events.h"
#include "reports/import/batch.h"
#include "reports/import/run_log.h"
#include "reports/model/complete.h"
#include "reports/model/device_log.h"
#include "reports/model/graphs.h"
#include "reports/model/wait_table.h"
#include "reports/queues/queues.h"

_Static_assert(WR_QUEUE_LEGACY == WEIR_STREAM_LEGACY &&
                   WR_QUEUE_PER_THREAD == WEIR_STREAM_PER_THREAD,
               "default streams are numbered as in events");

enum { EVENT_INTERPROCESS = 4 };

/* ---- functions ------------------------------------------------------------------------------- */

enum role {
  ROLE_PLAIN,
  ROLE_NO_WORK,   /* names a stream, and queues nothing */
  ROLE_SURE_WORK, /* a CALL that queues something */
  ROLE_HOST_WORK, /* of the host's */
  ROLE_PEER,      /* "serialized with respect to all pending and future asynchronous work" */
  ROLE_EVENT_CREATE,
  ROLE_EVENT_DESTROY,
  ROLE_RECORD,
  ROLE_RECORD_CONTEXT,
  ROLE_ELAPSED,
  ROLE_CONTEXT_WAIT,
  ROLE_EVENTS_UNSEEN, /* may put the record of an event into a graph */
  ROLE_GREEN          /* a stream of another context than the thread's */
};

/* By a part of the name; the first that is in it counts. */
static const struct {
  const char *part;
  uint8_t role;
} parts[] = {{"EventRecordNode", ROLE_EVENTS_UNSEEN},
             {"GraphAddNode", ROLE_EVENTS_UNSEEN},
             {"Capture", ROLE_NO_WORK},
             {"StreamGet", ROLE_NO_WORK},
             {"StreamSet", ROLE_NO_WORK},
             {"StreamCopyAttributes", ROLE_NO_WORK},
             {"StreamAddCallback", ROLE_HOST_WORK},
             {"LaunchHostFunc", ROLE_HOST_WORK},
             {"GraphLaunch", ROLE_SURE_WORK},
             {"EventCreate", ROLE_EVENT_CREATE},
             {"EventDestroy", ROLE_EVENT_DESTROY},
             {"EventElapsedTime", ROLE_ELAPSED},
             {"EventRecord", ROLE_RECORD},
             {"CtxRecordEvent", ROLE_RECORD_CONTEXT},
             {"CtxWaitEvent", ROLE_CONTEXT_WAIT},
             {"GreenCtxStreamCreate", ROLE_GREEN}};

static uint8_t role_of_name(const char *name)
{
  bool peer = strstr(name, "Peer") && strstr(name, "emcpy") && !strstr(name, "Async");
  if (peer) return ROLE_PEER;
  for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
    if (strstr(name, parts[i].part)) return parts[i].role;
  return ROLE_PLAIN;
}

static uint8_t *new_roles(void)
{
  uint8_t *roles = calloc(api_total, 1);
  for (uint32_t i = 1; roles && i < api_total; i++)
    roles[i] = role_of_name(api_row(i)->name);
  return roles;
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* When a copy that may wait has waited for ("API synchronization behavior", memcpy). "For transfers
 * from pageable host memory to device memory, a stream sync is performed before the copy is
 * initiated": the copy itself may go on. "From pinned host memory to device memory, the function is
 * synchronous with respect to the host"; "from device to pageable or pinned host memory, the
 * function returns only once the copy has completed", and so does the asynchronous form to pageable
 * memory. Of what Weir stages by itself a copy to the host, in its synchronous form, has brought its
 * bytes when it returns; others are not taken for any of these. */
static unsigned how_copy_waits(const trace_event *e)
{
  bool async = e->flags & WEIR_EVF_ASYNC;
  unsigned host = e->copy_kind == WEIR_COPY_HTOD ? e->mem >> 4 : e->mem & 15;
  if (!(e->flags & WEIR_EVF_IMPLICIT_SYNC)) return 0;
  if (e->flags & WEIR_EVF_STAGED && (async || e->copy_kind != WEIR_COPY_DTOH)) return WR_HOW_WAITS;
  if (e->copy_kind == WEIR_COPY_DTOH) return WR_HOW_WAITS | WR_HOW_WAITS_ALL;
  if (e->copy_kind != WEIR_COPY_HTOD || async) return WR_HOW_WAITS;
  return WR_HOW_WAITS | (host == WEIR_MEM_PINNED ? WR_HOW_WAITS_ALL : WR_HOW_WAITS_BEFORE);
}

static bool device_side(unsigned mem)
{
  return mem == WEIR_MEM_DEVICE || mem == WEIR_MEM_ARRAY;
}

/* What the host may look at when the work is complete, or write again. What a kernel does with host
 * memory is not known here; what is read of pageable memory is read before the call returns. */
static unsigned host_side(const trace_event *e)
{
  unsigned to = e->mem & 15, from = e->mem >> 4;
  switch (e->kind) {
  case WEIR_EV_LAUNCH:
  case WEIR_EV_ALLOC:
  case WEIR_EV_FREE:
    return 0;
  case WEIR_EV_MEMSET:
    return device_side(to) ? 0 : WR_HOST_RESULT;
  case WEIR_EV_COPY:
    return (device_side(to) ? 0 : WR_HOST_RESULT) |
           (device_side(from) || from == WEIR_MEM_PAGEABLE ? 0 : WR_HOST_SOURCE);
  default:
    return WR_HOST_RESULT | WR_HOST_SOURCE;
  }
}

static wr_act copy_act(const trace_event *e, unsigned role, wr_queue_call *c)
{
  c->handle = e->bytes;
  c->how = (uint8_t)(e->bytes ? how_copy_waits(e) : WR_HOW_UNSURE);
  return role == ROLE_PEER ? WR_ACT_PEER_WORK : WR_ACT_WORK;
}

/* "Synchronous memset functions are asynchronous with respect to the host except when the target is
 * pinned host memory or a Unified Memory region, in which case they are fully synchronous." */
static wr_act memset_act(const trace_event *e, wr_queue_call *c)
{
  bool waits = e->flags & WEIR_EVF_IMPLICIT_SYNC;
  c->handle = e->bytes;
  c->how = !e->bytes ? WR_HOW_UNSURE : waits ? WR_HOW_WAITS | WR_HOW_WAITS_ALL : 0;
  return WR_ACT_WORK;
}

static wr_act sync_act(const trace_event *e, unsigned role, wr_queue_call *c)
{
  c->handle = e->a;
  switch (e->sync_type) {
  case WEIR_SYNC_EVENT:
    return WR_ACT_SYNC_EVENT;
  case WEIR_SYNC_STREAM_WAIT:
    return role == ROLE_CONTEXT_WAIT ? WR_ACT_CONTEXT_WAIT : WR_ACT_STREAM_WAIT;
  case WEIR_SYNC_STREAM:
    return WR_ACT_SYNC_STREAM;
  case WEIR_SYNC_CONTEXT:
    return WR_ACT_SYNC_CONTEXT;
  case WEIR_SYNC_QUERY:
    return e->a ? WR_ACT_EVENT_DONE : WR_ACT_STREAM_DONE;
  default:
    return WR_ACT_NONE;
  }
}

static wr_act event_act(const trace_event *e, unsigned role, wr_queue_call *c)
{
  c->handle = e->a;
  switch (role) {
  case ROLE_EVENT_CREATE:
    c->how = e->b & EVENT_INTERPROCESS ? WR_HOW_UNSEEN : 0;
    return WR_ACT_EVENT_CREATE;
  case ROLE_EVENT_DESTROY:
    return WR_ACT_EVENT_DESTROY;
  case ROLE_RECORD:
    return WR_ACT_RECORD;
  case ROLE_RECORD_CONTEXT:
    return WR_ACT_RECORD_CONTEXT;
  case ROLE_ELAPSED: /* it succeeds where both are complete */
    return WR_ACT_EVENT_DONE;
  default:
    return WR_ACT_NONE;
  }
}

static wr_act stream_act(const trace_event *e, unsigned role, wr_queue_call *c)
{
  if (role == ROLE_GREEN) return WR_ACT_CONTEXT_WAIT;
  c->how = e->b & 1 ? WR_HOW_NON_BLOCKING : 0;
  return e->a ? WR_ACT_STREAM_CREATE : WR_ACT_STREAM_DESTROY;
}

/* Calls of other kinds. In doubt they may be work, and may be none. */
static wr_act other_act(const trace_event *e, unsigned role, wr_queue_call *c)
{
  if (role == ROLE_EVENTS_UNSEEN) return WR_ACT_EVENTS_UNSEEN;
  if (!e->stream || role == ROLE_NO_WORK) return WR_ACT_NONE;
  bool sure = role == ROLE_SURE_WORK || role == ROLE_HOST_WORK;
  if (!sure && e->kind != WEIR_EV_LAUNCH) c->how = WR_HOW_UNSURE;
  return WR_ACT_WORK;
}

static wr_act act_of(const trace_event *e, unsigned role, wr_queue_call *c)
{
  switch (e->kind) {
  case WEIR_EV_COPY:
    return copy_act(e, role, c);
  case WEIR_EV_MEMSET:
    return memset_act(e, c);
  case WEIR_EV_SYNC:
    return sync_act(e, role, c);
  case WEIR_EV_EVENT:
    return event_act(e, role, c);
  case WEIR_EV_STREAM:
    return stream_act(e, role, c);
  case WEIR_EV_FREE:
    return e->flags & WEIR_EVF_IMPLICIT_SYNC ? WR_ACT_FREE : other_act(e, role, c);
  case WEIR_EV_ALLOC:
  case WEIR_EV_LAUNCH:
  case WEIR_EV_CALL:
    return other_act(e, role, c);
  case WEIR_EV_RESET:
    return e->bytes ? WR_ACT_RESET_CONTEXT : WR_ACT_RESET_DEVICE;
  default:
    return WR_ACT_NONE;
  }
}

/* Put into a graph, it does nothing now. But an event that is recorded there is another's. */
static wr_act captured_act(const trace_event *e, unsigned role, wr_queue_call *c)
{
  if (e->kind != WEIR_EV_EVENT || role != ROLE_RECORD) return WR_ACT_NONE;
  c->handle = e->a;
  c->how = WR_HOW_UNSEEN;
  return WR_ACT_EVENT_CREATE;
}

/* A call as its row has it. */
typedef struct stored_call {
  int64_t id, start, end, process, thread;
  uint32_t caller;   /* as of a wr_queue_call */
  trace_event event; /* but for its time */
} stored_call;

/* What the call is to the queues; act WR_ACT_NONE: nothing. */
static wr_queue_call translate(const uint8_t *roles, const stored_call *x)
{
  const trace_event *e = &x->event;
  wr_queue_call c = {.id = x->id,
                     .start = x->start,
                     .end = x->end,
                     .stream = e->stream,
                     .process = (int32_t)x->process,
                     .thread = (int32_t)x->thread,
                     .caller = x->caller,
                     .context = (uint8_t)(e->stack >> 24),
                     .device = e->device};
  unsigned role = e->api < api_total ? roles[e->api] : ROLE_PLAIN;
  if (e->status) return c;
  c.act = (uint8_t)(e->flags & WEIR_EVF_CAPTURE ? captured_act(e, role, &c) : act_of(e, role, &c));
  return c;
}

/* ---- templates ------------------------------------------------------------------------------- */

/* How an event of a template becomes a call. */
enum way {
  WAY_NONE,       /* to the queues it is nothing */
  WAY_WITH_BYTES, /* the template's call, of the event's bytes */
  WAY_WITH_A,     /* ... of its `a` */
  WAY_PLAIN,      /* ... of none of its numbers */
  WAY_WHOLE       /* what it is depends on the event */
};

typedef struct template_call {
  wr_queue_call call;     /* with id, times and `handle` of the event that is taken */
  uint8_t how, how_empty; /* `how` of an event with bytes, of one without */
  uint8_t way;
} template_call;

static template_call call_of_template(const uint8_t *roles, stored_call x)
{
  uint8_t kind = x.event.kind;
  bool moves = kind == WEIR_EV_COPY || kind == WEIR_EV_MEMSET, waits = kind == WEIR_EV_SYNC;
  bool depends = kind == WEIR_EV_EVENT || kind == WEIR_EV_STREAM || kind == WEIR_EV_RESET ||
                 (waits && x.event.sync_type == WEIR_SYNC_QUERY);
  if (!kind) return (template_call){.way = WAY_NONE};
  if (depends) return (template_call){.way = WAY_WHOLE};
  uint8_t how_empty = translate(roles, &x).how;
  x.event.bytes = 1;
  template_call t = {.call = translate(roles, &x), .how_empty = how_empty};
  t.how = t.call.how;
  if (t.call.act == WR_ACT_WORK || t.call.act == WR_ACT_PEER_WORK)
    t.call.host = (uint8_t)host_side(&x.event);
  t.way = t.call.act == WR_ACT_NONE ? WAY_NONE
          : moves                   ? WAY_WITH_BYTES
          : waits                   ? WAY_WITH_A
                                    : WAY_PLAIN;
  return t;
}

/* ---- walking --------------------------------------------------------------------------------- */

struct wr_wait_pass {
  const wr_db *db;
  char *folder; /* owned: begin of the paths of files, or NULL: beside the trace */
  wr_device_log device;
  wr_queue_watch watch;
  wr_batch batch;
  wr_sweep_taker taker;
  uint8_t *roles; /* by function; owned */
  wr_queues *queues;
  const wr_events *events; /* borrowed */
  stored_call *templates;  /* what events have in common, in the order of theirs; owned */
  template_call *calls;    /* owned; by template; with device times all are WAY_WHOLE */
  bool temporary;
  wr_wait_rows *rows;  /* of `wait_detail`, owned; NULL: they go into SQLite's table */
  uint32_t *threads;   /* owned; by template: its thread, from 0 */
  wr_wait_sum *sums;   /* owned; by template */
  hash_map inside;     /* launches of graphs whose work stays on the devices */
  bool *several;       /* owned; by template: work of its device is in more than one stream */
  const wr_event *now; /* the event that is taken */
};

static weir_status no_memory_for_log(const wr_db *db)
{
  return weir_fail(WEIR_ENOMEM, "judging the waits of %s: out of host memory", db->path);
}

/* Of a call that asks for two events, both. */
static weir_status take_stored(wr_wait_pass *w, const stored_call *x)
{
  wr_queue_call c = translate(w->roles, x);
  if (c.act == WR_ACT_NONE) return WEIR_OK;
  if (c.act == WR_ACT_WORK || c.act == WR_ACT_PEER_WORK) {
    bool host = w->roles[x->event.api < api_total ? x->event.api : 0] == ROLE_HOST_WORK;
    c.how |= (uint8_t)wr_device_log_how(&w->device, x->id, &x->event, host);
    bool inside = w->inside.count && hash_map_get(&w->inside, (uint64_t)x->id);
    c.host = inside ? 0 : (uint8_t)host_side(&x->event);
  }
  weir_status st = wr_queues_take(w->queues, &c);
  if (st || c.act != WR_ACT_EVENT_DONE || x->event.kind != WEIR_EV_EVENT) return st;
  c.handle = x->event.b;
  return wr_queues_take(w->queues, &c);
}

/* Of calls that failed, too, it counts that the host was in them, where there are device times. */
static bool is_taken(const wr_wait_pass *w, const wr_template *t)
{
  if (w->device.any) return t->kind != WEIR_EV_CACHE;
  return t->succeeded && t->kind != WEIR_EV_CONTEXT && t->kind != WEIR_EV_HOSTREG &&
         t->kind != WEIR_EV_CACHE;
}

static uint8_t number_of_device(int64_t device)
{
  return device == WR_HOST ? WEIR_DEVICE_NONE : (uint8_t)device;
}

static stored_call stored_of(const wr_template *t)
{
  return (stored_call){
      .process = t->process,
      .thread = t->thread,
      .event = {.kind = (uint8_t)t->kind,
                .api = (uint16_t)t->api,
                .stack = (uint32_t)(t->context & 255) << 24,
                .device = number_of_device(t->device),
                .detail = (uint8_t)t->copy,
                .mem = (uint8_t)((t->mem & 15) | (t->src_mem & 15) << 4),
                .flags = (uint8_t)t->flags,
                .status = (uint16_t)(t->status & 65535 ? t->status : t->status != 0),
                .stream = (uint64_t)t->stream}};
}

/* Of each template whether work of its process and device is in more than one stream. */
static bool find_several(wr_wait_pass *w)
{
  hash_map streams = {0}, several = {0};
  bool good = true;
  for (size_t i = 0; good && i < w->events->count; i++) {
    const wr_template *t = &w->events->templates[i];
    bool added;
    if (!t->device_work || !t->done) continue;
    uint64_t key = hash_mix(hash_mix(17, (uint64_t)t->process), (uint64_t)t->device);
    uint64_t *stream = hash_map_place(&streams, key, &added);
    if (stream && added) *stream = (uint64_t)t->stream;
    good = stream && (*stream == (uint64_t)t->stream || !hash_map_put(&several, key, 1));
  }
  for (size_t i = 0; good && i < w->events->count; i++) {
    const wr_template *t = &w->events->templates[i];
    uint64_t key = hash_mix(hash_mix(17, (uint64_t)t->process), (uint64_t)t->device);
    w->several[i] = t->device != WR_HOST && hash_map_get(&several, key);
  }
  hash_map_free(&streams);
  hash_map_free(&several);
  return good;
}

/* *at: the number of what has that key, from `first` on. False: out of memory. */
static bool number_of(hash_map *map, uint64_t key, uint32_t first, uint32_t *at)
{
  bool added;
  uint64_t *number = hash_map_place(map, key, &added);
  if (!number) return false;
  if (added) *number = map->count - 1 + first;
  *at = (uint32_t)*number;
  return true;
}

/* Numbers the threads and the callers of the templates. False: out of memory. */
static bool number_callers(wr_wait_pass *w)
{
  hash_map threads = {0}, callers = {0};
  bool good = true;
  for (size_t i = 0; good && i < w->events->count; i++) {
    const wr_template *t = &w->events->templates[i];
    uint64_t key =
        hash_mix(hash_mix(hash_mix(hash_mix(19, (uint64_t)t->process), (uint64_t)t->thread),
                          (uint64_t)t->context & 255),
                 (uint64_t)t->stream);
    good = number_of(&threads, (uint64_t)t->thread, 0, &w->threads[i]) &&
           number_of(&callers, key, 1, &w->templates[i].caller);
  }
  hash_map_free(&threads);
  hash_map_free(&callers);
  return good;
}

/* Kind 0: it is nothing that waits, or is waited for. */
static weir_status store_templates(wr_wait_pass *w)
{
  size_t count = w->events->count;
  w->templates = calloc(count + 1, sizeof(*w->templates));
  w->sums = calloc(count + 1, sizeof(*w->sums));
  w->several = calloc(count + 1, sizeof(*w->several));
  w->threads = calloc(count + 1, sizeof(*w->threads));
  w->calls = calloc(count + 1, sizeof(*w->calls));
  if (!w->templates || !w->calls || !w->sums || !w->several || !w->threads || !find_several(w))
    return no_memory_for_log(w->db);
  for (size_t i = 0; i < count; i++)
    if (is_taken(w, &w->events->templates[i]))
      w->templates[i] = stored_of(&w->events->templates[i]);
  if (!number_callers(w)) return no_memory_for_log(w->db);
  for (size_t i = 0; i < count; i++)
    w->calls[i] = call_of_template(w->roles, w->templates[i]);
  for (size_t i = 0; i < count; i++) {
    bool graph = w->inside.count && w->templates[i].event.kind == WEIR_EV_CALL &&
                 w->events->templates[i].device_work;
    if (w->device.any || graph) w->calls[i].way = w->templates[i].event.kind ? WAY_WHOLE : WAY_NONE;
  }
  return WEIR_OK;
}

/* When the call ended; of polls that are one event, the last of them. */
static int64_t end_of_polls(const stored_call *x)
{
  bool polls = x->event.kind == WEIR_EV_SYNC && x->event.status == 600;
  int64_t last = (int64_t)((uint64_t)x->start + x->event.b);
  return polls && last > x->end ? last : x->end;
}

/* It puts work into a queue. */
static bool queues_work(const wr_wait_pass *w, const trace_event *e)
{
  uint8_t role = w->roles[e->api < api_total ? e->api : 0];
  bool copies = e->kind == WEIR_EV_COPY || e->kind == WEIR_EV_MEMSET;
  return copies || e->kind == WEIR_EV_LAUNCH || role == ROLE_SURE_WORK || role == ROLE_HOST_WORK;
}

/* Everything that there is to an event. */
static weir_status take_whole(wr_wait_pass *w, const wr_event *e)
{
  stored_call x = w->templates[e->at];
  x.id = e->id;
  x.start = e->start;
  x.end = (int64_t)((uint64_t)e->start + (uint64_t)e->ns);
  x.event.a = e->a;
  x.event.b = e->b;
  x.event.bytes = e->bytes;
  if (w->device.any)
    wr_device_log_call(&w->device, x.id, x.start, end_of_polls(&x), &x.event,
                       queues_work(w, &x.event));
  return take_stored(w, &x);
}

static inline weir_status take_call(wr_wait_pass *w, const wr_event *e, template_call *t)
{
  wr_queue_call *c = &t->call;
  w->now = e;
  if (t->way == WAY_WHOLE) return take_whole(w, e);
  c->id = e->id;
  c->start = e->start;
  c->end = (int64_t)((uint64_t)e->start + (uint64_t)e->ns);
  if (t->way == WAY_WITH_A) c->handle = e->a;
  if (t->way == WAY_WITH_BYTES) {
    c->handle = e->bytes;
    c->how = e->bytes ? t->how : t->how_empty;
  }
  return wr_queues_take(w->queues, c);
}

enum {
  AHEAD = 8 /* events by which what is known of their templates is brought before it is read */
};

weir_status wr_wait_take_some(void *pass, const wr_event events[], size_t count)
{
  wr_wait_pass *w = pass;
  weir_status s = WEIR_OK;
  for (size_t i = 0; !s && i < count; i++) {
    template_call *t = &w->calls[events[i].at];
    if (i + AHEAD < count) __builtin_prefetch(&w->calls[events[i + AHEAD].at]);
    if (t->way != WAY_NONE) s = take_call(w, &events[i], t);
  }
  return s;
}

weir_status wr_wait_take(void *pass, const wr_event *e)
{
  return wr_wait_take_some(pass, e, 1);
}

static weir_status take_incomplete(void *context, sqlite3_stmt *q)
{
  wr_wait_pass *w = context;
  return wr_queues_incomplete(w->queues, sqlite3_column_int64(q, 0))
             ? WEIR_OK
             : weir_fail(WEIR_ENOMEM, "judging waits: out of host memory");
}

static weir_status take_cut(void *context, sqlite3_stmt *q)
{
  wr_wait_pass *w = context;
  return wr_queues_cut(w->queues, sqlite3_column_int64(q, 0))
             ? WEIR_OK
             : weir_fail(WEIR_ENOMEM, "judging waits: out of host memory");
}

/* What the device did in it is seen in the sweep; of a wait of which nothing is known, and of one
 * that took no time, all is said here. */
static weir_status divide_wait(wr_wait_pass *w, const wr_wait_verdict *v)
{
  int64_t start = v->call->start, end = v->call->end;
  if (v->row.known && end > start) {
    wr_device_log_wait(&w->device, w->queues, v);
    return WEIR_OK;
  }
  wr_wait_time all = {.id = v->row.id};
  if (end > start) all.unknown = (uint64_t)end - (uint64_t)start;
  return w->taker.wait(w->taker.context, &all);
}

static weir_status write_row(wr_batch *batch, const wr_wait_row *v);

static weir_status keep_verdict(wr_wait_pass *w, const wr_wait_verdict *v)
{
  const wr_wait_row unknown = {.id = v->row.id}, *row = v->row.known ? &v->row : &unknown;
  return w->rows ? wr_wait_rows_add(w->rows, w->threads[w->now->at], row)
                 : write_row(&w->batch, row);
}

/* A wait that the program asked for. One that came before any work is not counted. */
static void count_verdict(wr_wait_pass *w, const wr_wait_row *v)
{
  wr_wait_sum *s = &w->sums[w->now->at];
  if (v->known && !v->pending && !v->other) return;
  s->unknown += !v->known;
  s->judged += v->known;
  if (!v->known) return;
  if (!v->pending)
    s->redundant++, s->redundant_ns += (uint64_t)w->now->ns;
  else if (v->narrower == WR_NARROWER_STREAM && w->several[w->now->at])
    s->wider++, s->wider_ns += (uint64_t)w->now->ns;
}

static bool is_asked_for(unsigned act)
{
  return act == WR_ACT_SYNC_EVENT || act == WR_ACT_SYNC_STREAM || act == WR_ACT_SYNC_CONTEXT;
}

static weir_status take_verdict(void *context, const wr_wait_verdict *v)
{
  wr_wait_pass *w = context;
  bool asked = is_asked_for(v->call->act);
  if (!asked && v->row.known && w->rows && !w->device.any)
    return wr_wait_rows_add(w->rows, w->threads[w->now->at], &v->row);
  weir_status st = w->device.any ? divide_wait(w, v) : WEIR_OK;
  if (asked) count_verdict(w, &v->row);
  return st ? st : keep_verdict(w, v);
}

static void watch_work(void *context, const wr_queue_call *c, uint32_t queue, uint64_t number)
{
  wr_wait_pass *w = context;
  wr_device_log_work(&w->device, w->queues, c, queue, number);
}

static void watch_done(void *context, uint32_t queue, uint64_t number, int64_t time)
{
  wr_wait_pass *w = context;
  wr_device_log_done(&w->device, queue, number, time);
}

/* ---- the table ------------------------------------------------------------------------------- */

static void set_or_null(wr_row *row, int column, bool known, int64_t value)
{
  row->v[column] = value;
  if (!known) row->nulls |= 1u << column;
}

static weir_status new_row(wr_batch *batch, wr_table table, wr_row **row);

/* The row of one wait: see SCHEMA.md, `wait_detail`. */
static weir_status write_row(wr_batch *batch, const wr_wait_row *v)
{
  wr_row *row;
  weir_status st = new_row(batch, WR_TABLE_WAIT_DETAIL, &row);
  for (int i = 0; !st && i < 11; i++) {
    int64_t value;
    bool there = wr_wait_row_value(v, i, &value);
    set_or_null(row, i, there, value);
  }
  return st;
}

/* A new row of one of the other tables; NULL: out of memory, or the batch could not be written. */
static weir_status new_row(wr_batch *batch, wr_table table, wr_row **row)
{
  weir_status s = WEIR_OK;
  if (batch->rows[table].count >= WR_BATCH_EVENTS) s = wr_batch_flush(batch, true);
  if (s) return s;
  *row = wr_batch_row(batch, table);
  return *row ? WEIR_OK : no_memory_for_log(&batch->db);
}

static weir_status write_wait_time(void *context, const wr_wait_time *t)
{
  wr_row *row;
  weir_status s = new_row(context, WR_TABLE_WAIT_TIME, &row);
  if (s) return s;
  row->v[0] = t->id;
  row->v[1] = (int64_t)t->working;
  row->v[2] = (int64_t)t->other;
  row->v[3] = (int64_t)t->idle;
  row->v[4] = (int64_t)t->unknown;
  return WEIR_OK;
}

static weir_status write_gap(void *context, const wr_gap *g)
{
  wr_row *row;
  weir_status s = new_row(context, WR_TABLE_DEVICE_GAP, &row);
  if (s) return s;
  row->v[0] = g->device;
  row->v[1] = g->start;
  row->v[2] = g->end;
  for (int i = 0; i < WR_IDLE_FULL; i++)
    row->v[3 + i] = (int64_t)g->ns[i];
  set_or_null(row, 8, g->api != 0, g->api);
  row->v[9] = g->work;
  row->v[10] = (int64_t)g->ns[WR_IDLE_FULL];
  return WEIR_OK;
}

static weir_status write_idle(void *context, const wr_idle_sum *x)
{
  wr_row *row;
  weir_status s = new_row(context, WR_TABLE_DEVICE_IDLE, &row);
  if (s) return s;
  row->v[0] = x->device;
  row->v[1] = x->cause;
  set_or_null(row, 2, x->api != 0, x->api);
  row->v[3] = (int64_t)x->ns;
  return WEIR_OK;
}

static weir_status write_full(void *context, const wr_full_sum *x)
{
  wr_row *row;
  weir_status s = new_row(context, WR_TABLE_QUEUE_FULL, &row);
  if (s) return s;
  row->v[0] = x->device;
  row->v[1] = x->api;
  row->v[2] = (int64_t)x->ns;
  return WEIR_OK;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static weir_status begin_pass(wr_wait_pass *w, bool divide)
{
  const char *beside = w->folder ? w->folder : w->db->path;
  w->taker = (wr_sweep_taker){write_wait_time, write_gap, write_idle, write_full, &w->batch};
  w->watch = (wr_queue_watch){watch_work, watch_done, w};
  w->roles = new_roles();
  w->queues = wr_queues_open(take_verdict, w);
  if (!w->roles || !w->queues || (w->temporary && !w->rows)) return no_memory_for_log(w->db);
  weir_status s = divide ? wr_device_log_open(&w->device, w->db, beside) : WEIR_OK;
  if (!s && w->device.any) wr_queues_watch(w->queues, &w->watch);
  if (!s) s = wr_incomplete_processes(w->db, take_incomplete, w);
  if (!s && wr_db_has_table(w->db, WR_BEFORE_WINDOW))
    s = wr_db_each(w->db, "SELECT DISTINCT process FROM main.before_window", take_cut, w);
  if (!s) s = wr_graphs_inside(w->db, &w->inside);
  if (!s) s = store_templates(w);
  if (!s) s = wr_schema_waits(w->db, w->temporary);
  return s ? s : wr_batch_open(&w->batch, w->db);
}

/* The rows of `wait_detail` that are not written into the trace. */
static weir_status begin_rows(wr_wait_pass *w)
{
  int64_t last = 0;
  weir_status s = wr_db_number(w->db, "SELECT max(id) FROM main.event_row", &last);
  if (!s && (w->folder = wr_run_path())) w->rows = wr_wait_rows_new(w->folder, last);
  return s;
}

weir_status wr_wait_begin(wr_wait_pass **out, const wr_events *events, bool temporary, bool divide)
{
  const wr_db *db = events->db;
  wr_wait_pass *w = *out = calloc(1, sizeof(*w));
  if (!w) return no_memory_for_log(db);
  w->db = db;
  w->events = events;
  w->temporary = temporary;
  weir_status s = temporary ? begin_rows(w) : WEIR_OK;
  return s ? s : begin_pass(w, divide);
}

weir_status wr_wait_end(wr_wait_pass *w)
{
  weir_status s = w->device.any ? wr_device_log_sweep(&w->device, &w->taker) : WEIR_OK;
  if (!s) s = wr_batch_flush(&w->batch, true);
  if (!s && w->rows) s = wr_wait_rows_order(w->rows);
  if (s || !w->rows) return s;
  wr_wait_rows *rows = w->rows;
  w->rows = NULL;
  return wr_wait_rows_table(rows, w->db);
}

const wr_wait_sum *wr_wait_sums(const wr_wait_pass *w)
{
  return w->sums;
}

void wr_wait_close(wr_wait_pass *w)
{
  if (!w) return;
  wr_batch_close(&w->batch);
  wr_device_log_close(&w->device);
  wr_queues_close(w->queues);
  wr_wait_rows_free(w->rows);
  free(w->threads);
  free(w->templates);
  free(w->calls);
  free(w->sums);
  free(w->several);
  hash_map_free(&w->inside);
  free(w->roles);
  free(w->folder);
  free(w);
}

weir_status wr_wait_write(const wr_db *db, bool temporary, bool divide)
{
  wr_events events;
  wr_wait_pass *w = NULL;
  weir_status s = wr_events_open(&events, db);
  if (!s) s = wr_wait_begin(&w, &events, temporary, divide);
  if (!s) s = wr_events_by_time(&events, wr_wait_take, w);
  if (!s) s = wr_wait_end(w);
  wr_wait_close(w);
  wr_events_close(&events);
  return s;
}
