/* model.c: the numbers of a summary. See model.h; places in the program are in sites.c. */
#include "reports/model/model.h"
#include <stdlib.h>
#include <string.h>
#include "core/base/map.h"
#include "core/trace/api.h"
#include "core/trace/event.h"
#include "reports/events/blocks.h"
#include "reports/events/rows.h"
#include "reports/model/first.h"
#include "reports/import/graph.h"
#include "reports/import/lifetime.h"
#include "reports/model/sites.h"
#include "reports/model/waits.h"

/* What is added up of calls of one template; of launches of graphs each node counts as often as it ran. */
typedef struct call_sum {
  uint8_t how;     /* TAKE_*: of the template; 0: not known yet */
  uint32_t thread; /* of the template: wr_firsts_thread(); 0: not known yet */
  int64_t context; /* of the template */
  uint64_t events, bytes, ns;
  uint64_t longest; /* ns, of one call */
  int64_t first;    /* row of the first event */
  /* what follows is of some templates alone: TAKE_SOME */
  uint64_t more_calls;            /* that the events stand for, beside one for each */
  uint64_t timed_bytes, timed_ns; /* of copies that the call waits for */
  uint64_t registered;            /* events that have bytes */
} call_sum;

/* What is done with an event of a template, decided once for all of them. */
enum {
  TAKE_KNOWN = 1,
  TAKE_CALL = 2,   /* it is a call */
  TAKE_NAMED = 4,  /* that may have made a context by its name */
  TAKE_KERNEL = 8, /* a launch that was run */
  TAKE_TIMED = 16, /* a copy that the call may have waited for */
  TAKE_POLLS = 32, /* it may stand for several calls */
  TAKE_REGISTERED = 64,
  TAKE_SOME = TAKE_TIMED | TAKE_POLLS | TAKE_REGISTERED
};

typedef struct undecided_call { /* it may have made a context */
  size_t at;
  int64_t start;
  call_sum sum;
} undecided_call;

/* Sums that the pass keeps by number and the model gets as lists. */
typedef struct load {
  wr_model *m;
  const wr_db *db;
  wr_api_row *by_api;      /* [65536] */
  wr_route *by_route;      /* [WR_PLACES][WR_PLACES] */
  uint64_t split[2][8][3]; /* h2d, d2h; host memory_kind; calls, bytes, asynchronous calls */
  hash_map per_process;    /* process -> events */
  wr_site_sums sums;
  wr_in_use_sums in_use;
  wr_firsts firsts;
  wr_events *events;   /* borrowed */
  wr_wait_pass *waits; /* owned; NULL: what waits had to wait for is not made for the report */
  call_sum *call;      /* owned; by template: of the calls that surely made no context */
  size_t calls, call_capacity;
  size_t *order; /* owned; templates that have events */
  size_t ordered, order_capacity;
  uint32_t *
      template_of; /* owned; by event, from `first_event` on: place of its template, plus 1; or NULL */
  int64_t first_event, last_event;
  undecided_call *undecided; /* owned */
  size_t undecided_count, undecided_capacity;
  uint32_t graph_launch[4]; /* functions */
  wr_device_totals nowhere; /* of events without a device: counted and forgotten */
} load;

static uint64_t number_of(sqlite3_stmt *q, int column)
{
  return (uint64_t)sqlite3_column_int64(q, column);
}

enum { MOST_EVENTS = 1 << 25 }; /* whose templates are kept: 128 MiB */

/* ---- sums of calls -------------------------------------------------------------------------- */

static int device_of(sqlite3_stmt *q, int column)
{
  int64_t d = sqlite3_column_int64(q, column);
  return sqlite3_column_type(q, column) == SQLITE_NULL || d < 0 || d >= WR_HOST ? WR_HOST : (int)d;
}

static wr_device_totals *device_totals(load *l, int64_t device)
{
  if (device == WR_HOST) return &l->nowhere;
  l->m->devices[device].seen = true;
  return &l->m->devices[device].total;
}

static void count_alloc(load *l, const wr_template *t, const call_sum *s)
{
  wr_totals *all = &l->m->total;
  if (t->mem == WEIR_MEM_IMPORTED) {
    all->imported_calls += s->events;
    all->imported_bytes += s->bytes;
    return;
  }
  if (!wr_mem_device_side((int)t->mem)) {
    all->pinned_alloc_calls += s->events;
    all->pinned_alloc_bytes += s->bytes;
    return;
  }
  wr_device_totals *d = device_totals(l, t->device);
  all->alloc_calls += s->events, all->alloc_bytes += s->bytes;
  d->alloc_calls += s->events, d->alloc_bytes += s->bytes;
}

static void count_split(load *l, const wr_template *t, const call_sum *s, int direction,
                        int64_t host_mem)
{
  uint64_t *of = l->split[direction][host_mem >= 0 && host_mem < 8 ? host_mem : WEIR_MEM_UNKNOWN];
  of[0] += s->events;
  of[1] += s->bytes;
  of[2] += t->flags & WEIR_EVF_ASYNC ? s->events : 0;
}

/* "Memory copies from host to device of a memory block of 64 KB or less" are asynchronous with
 * respect to the host (CUDA C++ Programming Guide, "Concurrent Execution between Host and Device").
 */
#define SMALL_UPLOAD 65536

/* Whether the call lasts until its copy is done, so that the host's time is the copy's, with what
 * it waited for before. The interposer marks what waits by the documentation ("API synchronization
 * behavior"); an asynchronous call from pageable memory only may. */
static bool may_be_timed(const wr_template *t)
{
  return t->kind == WEIR_EV_COPY && !(t->flags & (WEIR_EVF_ASYNC | WEIR_EVF_BATCH)) &&
         t->flags & WEIR_EVF_IMPLICIT_SYNC;
}

static bool has_duration(const wr_event *e)
{
  return e->ns && !(e->t->copy == WEIR_COPY_HTOD && e->bytes <= SMALL_UPLOAD);
}

static void count_route(load *l, const call_sum *s, int64_t src, int64_t dst)
{
  wr_route *r = &l->by_route[src * WR_PLACES + dst];
  r->calls += s->events;
  r->bytes += s->bytes;
  r->timed_bytes += s->timed_bytes;
  r->timed_ns += s->timed_ns;
}

static void count_copy(load *l, const wr_template *t, const call_sum *s)
{
  wr_totals *all = &l->m->total;
  wr_device_totals *to = device_totals(l, t->device), *from = device_totals(l, t->src_device);
  uint64_t c = s->events, n = s->bytes;
  switch (t->copy) {
  case WEIR_COPY_HTOD:
    all->h2d_calls += c, all->h2d_bytes += n, to->h2d_calls += c, to->h2d_bytes += n;
    count_split(l, t, s, 0, t->src_mem);
    count_route(l, s, WR_HOST, t->device);
    break;
  case WEIR_COPY_DTOH:
    all->d2h_calls += c, all->d2h_bytes += n, from->d2h_calls += c, from->d2h_bytes += n;
    count_split(l, t, s, 1, t->mem);
    count_route(l, s, t->src_device, WR_HOST);
    break;
  case WEIR_COPY_DTOD:
    all->d2d_calls += c, all->d2d_bytes += n, to->d2d_calls += c, to->d2d_bytes += n;
    count_route(l, s, t->src_device == WR_HOST ? t->device : t->src_device, t->device);
    break;
  case WEIR_COPY_PTOP:
    all->p2p_calls += c, all->p2p_bytes += n;
    from->p2p_out_calls += c, from->p2p_out_bytes += n, to->p2p_in_calls += c,
        to->p2p_in_bytes += n;
    count_route(l, s, t->src_device, t->device);
    break;
  case WEIR_COPY_HTOH:
    all->h2h_calls += c, all->h2h_bytes += n;
    count_route(l, s, WR_HOST, WR_HOST);
    break;
  default:
    all->other_copy_calls += c, all->other_copy_bytes += n;
    break;
  }
}

/* Successful events that were run, not captured. */
static void count_done(load *l, const wr_template *t, const call_sum *s)
{
  wr_totals *all = &l->m->total;
  wr_device_totals *d = device_totals(l, t->device);
  switch (t->kind) {
  case WEIR_EV_ALLOC:
    count_alloc(l, t, s);
    break;
  case WEIR_EV_COPY:
    count_copy(l, t, s);
    break;
  case WEIR_EV_MEMSET:
    all->memset_calls += s->events, all->memset_bytes += s->bytes;
    d->memset_calls += s->events, d->memset_bytes += s->bytes;
    break;
  case WEIR_EV_LAUNCH:
    all->launches += s->events, d->launches += s->events;
    break;
  case WEIR_EV_HOSTREG:
    all->register_calls += s->registered, all->register_bytes += s->bytes;
    break;
  default:
    break;
  }
  for (int i = 0; i < 4; i++)
    if (t->api && (uint32_t)t->api == l->graph_launch[i]) all->graph_launches += s->events;
}

static void count_wait(load *l, const wr_template *t, const call_sum *s)
{
  wr_totals *all = &l->m->total;
  wr_device_totals *d = device_totals(l, t->device);
  wr_api_row *a = &l->by_api[t->api];
  if (t->asked) {
    all->sync_explicit_calls += s->events, all->sync_explicit_ns += s->ns;
    if (s->longest > all->longest_wait_ns) all->longest_wait_ns = s->longest;
    d->sync_explicit_calls += s->events, d->sync_explicit_ns += s->ns;
    a->sync_calls += s->events, a->sync_ns += s->ns;
  } else if (t->implicit) {
    all->sync_implicit_calls += s->events, all->sync_implicit_ns += s->ns;
    a->implicit_calls += s->events, a->implicit_ns += s->ns;
  }
}

/* What the calls put into a graph. It runs with each launch of the graph, and not before. */
static void count_captured(load *l, const wr_template *t, const call_sum *s)
{
  wr_totals *all = &l->m->total;
  all->captured_events += s->events;
  if (t->kind == WEIR_EV_COPY)
    all->captured_copies += s->events, all->captured_copy_bytes += s->bytes;
  if (t->kind == WEIR_EV_MEMSET) all->captured_memsets += s->events;
  if (t->kind == WEIR_EV_LAUNCH) all->captured_launches += s->events;
}

static bool is_query(const wr_template *t)
{
  return t->kind == WEIR_EV_SYNC && t->copy == WEIR_SYNC_QUERY;
}

/* Calls that an event of TAKE_POLLS stands for; a damaged trace may say that there was none. */
static uint64_t polls_of(const wr_event *e)
{
  return e->bytes + 1 ? e->bytes + 1 : 1;
}

static void count_api(load *l, const wr_template *t, const call_sum *s)
{
  wr_api_row *a = &l->by_api[t->api];
  if (t->first) {
    a->calls += s->events + s->more_calls;
    a->ns += s->ns;
    if (s->longest > a->max_ns) a->max_ns = s->longest;
    /* a query's "not ready" (600) is an answer, not an error */
    if (t->status && !(is_query(t) && t->status == 600))
      a->errors += s->events, l->m->total.failed_calls += s->events;
  }
  if (t->done && t->sized) a->bytes += s->bytes;
}

/* `init`: the calls' time is no time of what they did. */
static weir_status count_site(load *l, const wr_template *t, const call_sum *s, bool init)
{
  bool implicit = !init && t->flags & WEIR_EVF_IMPLICIT_SYNC && t->first;
  bool alloc = t->kind == WEIR_EV_ALLOC, copy = t->kind == WEIR_EV_COPY;
  bool wait = !init && t->asked;
  uint64_t ns = init || !t->first ? 0 : s->ns;
  if (!alloc && !copy && !wait && !implicit) return WEIR_OK;
  uint32_t kind = copy ? WR_SITE_COPY(t->copy, t->mem, t->src_mem) : 0;
  wr_site_sum *x = wr_site_sum_of(&l->sums, t->stack, (uint32_t)t->api, kind);
  if (!x) return wr_db_out_of_memory(l->db);
  if (alloc) x->alloc_calls += s->events, x->alloc_bytes += s->bytes, x->alloc_ns += ns;
  if (copy) x->copy_calls += s->events, x->copy_bytes += s->bytes, x->copy_ns += ns;
  if (wait || implicit) x->sync_calls += s->events, x->sync_ns += s->ns, x->implicit |= implicit;
  return WEIR_OK;
}

/* Whatever the calls did, for where functions are called from. */
static weir_status count_caller(load *l, const wr_template *t, const call_sum *s)
{
  wr_site_sum *x = t->first ? wr_site_sum_of(&l->sums, t->stack, (uint32_t)t->api, 0) : NULL;
  if (!x) return t->first ? wr_db_out_of_memory(l->db) : WEIR_OK;
  x->calls += s->events + s->more_calls, x->ns += s->ns;
  return WEIR_OK;
}

/* All that is not yet known to be the calls' own time. */
static weir_status count_time(load *l, const wr_template *t, const call_sum *s, bool init)
{
  wr_api_row *a = &l->by_api[t->api];
  if (init && t->first) {
    l->m->total.init_calls += s->events, l->m->total.init_ns += s->ns;
    a->init_calls += s->events, a->init_ns += s->ns;
    if (s->ns > a->init_max_ns) a->init_max_ns = s->ns;
  } else if (t->first && s->longest > a->later_max_ns) {
    a->later_max_ns = s->longest;
  }
  weir_status st = init ? WEIR_OK : count_caller(l, t, s);
  if (st || !t->done) return st;
  if (init && t->sized) a->init_bytes += s->bytes;
  if (!init) count_wait(l, t, s);
  return count_site(l, t, s, init);
}

/* What is known of events of a template, whatever their time was. */
static weir_status count_events(load *l, const wr_template *t, const call_sum *s)
{
  uint64_t *events = hash_map_place(&l->per_process, (uint64_t)t->process, NULL);
  if (!events) return wr_db_out_of_memory(l->db);
  *events += s->events;
  l->m->total.events += s->events;
  if (!t->stack) l->m->coverage.stackless += s->events;
  if (t->kind == WEIR_EV_CACHE) return WEIR_OK; /* no call: cache.c */
  if (t->captured && t->succeeded) count_captured(l, t, s);
  count_api(l, t, s);
  if (t->done) count_done(l, t, s);
  return WEIR_OK;
}

static int by_first_row(const void *left, const void *right, void *of)
{
  const load *l = of;
  int64_t a = l->call[*(const size_t *)left].first, b = l->call[*(const size_t *)right].first;
  return (a > b) - (a < b);
}

static int by_row(const void *left, const void *right)
{
  const undecided_call *a = left, *b = right;
  return (a->sum.first > b->sum.first) - (a->sum.first < b->sum.first);
}

/* Whatever order events came in, what is alike is listed in the order of rows. */
static weir_status fold_sums(load *l)
{
  weir_status st = WEIR_OK;
  if (l->ordered) qsort_r(l->order, l->ordered, sizeof(*l->order), by_first_row, l);
  if (l->undecided_count) qsort(l->undecided, l->undecided_count, sizeof(*l->undecided), by_row);
  for (size_t i = 0; !st && i < l->ordered; i++) {
    const wr_template *t = &l->events->templates[l->order[i]];
    const call_sum *s = &l->call[l->order[i]];
    if (s->events) st = count_events(l, t, s);
    if (!st && s->events && t->kind != WEIR_EV_CACHE) st = count_time(l, t, s, false);
  }
  for (size_t i = 0; !st && i < l->undecided_count; i++)
    st = count_events(l, &l->events->templates[l->undecided[i].at], &l->undecided[i].sum);
  return st;
}

/* ---- what launches were handed --------------------------------------------------------------- */

typedef struct handed_templates {
  const wr_events *events;
  bool *known; /* owned: by template */
} handed_templates;

static weir_status take_handed(void *context, sqlite3_stmt *q)
{
  const handed_templates *h = context;
  size_t at = wr_events_template(h->events, sqlite3_column_int64(q, 0));
  if (at != SIZE_MAX) h->known[at] = true;
  return WEIR_OK;
}

static uint64_t count_unread(const handed_templates *h, size_t at, const call_sum *s)
{
  const wr_template *t = &h->events->templates[at];
  return t->kind == WEIR_EV_LAUNCH && t->done && !h->known[at] ? s->events : 0;
}

/* Launches of which it is not known what memory they are handed. */
static weir_status count_unread_launches(load *l)
{
  handed_templates h = {l->events, calloc(l->events->count + 1, sizeof(bool))};
  weir_status st = h.known ? WEIR_OK : wr_db_out_of_memory(l->db);
  if (!st && l->db->schema >= 2 && wr_db_has_table(l->db, "template_access"))
    st = wr_db_each(
        l->db,
        "SELECT a.template FROM main.template_access a JOIN main.template t ON"
        " t.id = a.template JOIN (SELECT DISTINCT process, number FROM main.access_set) s"
        " ON s.process = t.process AND s.number = a.number",
        take_handed, &h);
  for (size_t i = 0; !st && i < l->ordered; i++)
    l->m->total.launches_unread += count_unread(&h, l->order[i], &l->call[l->order[i]]);
  for (size_t i = 0; !st && i < l->undecided_count; i++)
    l->m->total.launches_unread += count_unread(&h, l->undecided[i].at, &l->undecided[i].sum);
  free(h.known);
  return st;
}

/* ---- the pass over the events ---------------------------------------------------------------- */

static wr_first_call first_call(const wr_template *t, int64_t start, int64_t ns)
{
  return (wr_first_call){.process = t->process,
                         .thread = t->thread,
                         .context = t->context,
                         .start = start,
                         .end = (int64_t)((uint64_t)start + (uint64_t)ns),
                         .api = (uint32_t)t->api,
                         .device = (int)t->device,
                         .worked = t->succeeded};
}

static weir_status choose_tables(load *l)
{
  weir_status st = WEIR_OK;
  for (size_t i = 0; !st && i < l->undecided_count; i++) {
    const undecided_call *u = &l->undecided[i];
    const wr_template *t = &l->events->templates[u->at];
    wr_first_call c = first_call(t, u->start, (int64_t)u->sum.ns);
    st = count_time(l, t, &u->sum, wr_firsts_made(&l->firsts, &c));
  }
  return st;
}

static uint8_t way_to_take(const load *l, const wr_template *t)
{
  bool kernel = t->kind == WEIR_EV_LAUNCH && t->done, polls = is_query(t) && t->status == 600;
  return (uint8_t)(TAKE_KNOWN | (t->kind != WEIR_EV_CACHE ? TAKE_CALL : 0) |
                   (wr_firsts_named(&l->firsts, (uint32_t)t->api) ? TAKE_NAMED : 0) |
                   (kernel ? TAKE_KERNEL : 0) | (may_be_timed(t) ? TAKE_TIMED : 0) |
                   (polls ? TAKE_POLLS : 0) | (t->kind == WEIR_EV_HOSTREG ? TAKE_REGISTERED : 0));
}

/* The sum of a template whose first event comes. */
static call_sum *new_sum(load *l, size_t at)
{
  while (at >= l->calls) {
    size_t more = l->events->count > at ? l->events->count : at + 1;
    if (!wr_grow(&l->call, &l->call_capacity, more, sizeof(call_sum))) return NULL;
    memset(l->call + l->calls, 0, (l->call_capacity - l->calls) * sizeof(call_sum));
    l->calls = l->call_capacity;
  }
  l->call[at].how = way_to_take(l, &l->events->templates[at]);
  l->call[at].context = l->events->templates[at].context;
  return &l->call[at];
}

static inline call_sum *sum_of_template(load *l, size_t at)
{
  return at < l->calls && l->call[at].how ? &l->call[at] : new_sum(l, at);
}

/* Of one call of several that the event stands for only the mean is known. */
static void add_some(call_sum *s, const wr_event *e, uint8_t how)
{
  uint64_t polls = how & TAKE_POLLS ? polls_of(e) : 1, longest = (uint64_t)e->ns / polls;
  if (longest > s->longest) s->longest = longest;
  s->more_calls += polls - 1;
  s->registered += e->bytes != 0;
  if (!(how & TAKE_TIMED) || !has_duration(e)) return;
  s->timed_bytes += e->bytes;
  s->timed_ns += (uint64_t)e->ns;
}

static inline void add_event(call_sum *s, const wr_event *e, uint8_t how)
{
  uint64_t ns = (uint64_t)e->ns;
  if (!s->events++ || e->id < s->first) s->first = e->id;
  s->bytes += e->bytes;
  s->ns += ns;
  if (how & TAKE_SOME)
    add_some(s, e, how);
  else if (ns > s->longest)
    s->longest = ns;
}

static weir_status keep_undecided(load *l, const wr_event *e, uint8_t how)
{
  undecided_call u = {.at = e->at, .start = e->start};
  add_event(&u.sum, e, how);
  if (!wr_grow(&l->undecided, &l->undecided_capacity, l->undecided_count + 1, sizeof(u)))
    return wr_db_out_of_memory(l->db);
  l->undecided[l->undecided_count++] = u;
  return WEIR_OK;
}

/* *maybe: it may have made a context. False: out of memory. */
static inline bool take_call(load *l, const wr_event *e, call_sum *s, bool *maybe)
{
  int64_t end = (int64_t)((uint64_t)e->start + (uint64_t)e->ns);
  if (!(s->how & TAKE_NAMED) && wr_firsts_go_on(&l->firsts, s->thread, s->context, e->start, end))
    return true;
  const wr_first_call c = first_call(e->t, e->start, e->ns);
  bool taken = wr_firsts_take(&l->firsts, &c, maybe);
  s->thread = taken ? wr_firsts_thread(&l->firsts) : 0;
  return taken;
}

static inline weir_status take_event(load *l, const wr_event *e)
{
  call_sum *s = sum_of_template(l, e->at);
  uint8_t how = s ? s->how : 0;
  bool maybe = false;
  if (!s || (how & TAKE_CALL && !take_call(l, e, s, &maybe)) ||
      (how & TAKE_KERNEL && !wr_kernels_launch(&l->m->kernels, e)))
    return wr_db_out_of_memory(l->db);
  if (l->template_of && e->id >= l->first_event && e->id <= l->last_event)
    l->template_of[e->id - l->first_event] = (uint32_t)e->at + 1;
  if (maybe) return keep_undecided(l, e, how);
  if (!s->events) {
    if (!wr_grow(&l->order, &l->order_capacity, l->ordered + 1, sizeof(*l->order)))
      return wr_db_out_of_memory(l->db);
    l->order[l->ordered++] = e->at;
  }
  add_event(s, e, how);
  return WEIR_OK;
}

enum { EVENTS_AHEAD = 6 /* templates are here and there */ };

static weir_status take_events(void *context, const wr_event events[], size_t count)
{
  load *l = context;
  weir_status st = WEIR_OK;
  for (size_t i = 0; !st && i < count; i++) {
    const size_t ahead = i + EVENTS_AHEAD < count ? events[i + EVENTS_AHEAD].at : SIZE_MAX;
    if (ahead < l->calls) {
      __builtin_prefetch(&l->call[ahead]);
      __builtin_prefetch(&l->call[ahead].more_calls);
    }
    st = take_event(l, &events[i]);
  }
  return st;
}

/* What blocks are of is known by their events: where that takes little memory. */
static weir_status open_template_of(load *l)
{
  int64_t finished = 0, first = 0, last = 0;
  weir_status st = WEIR_OK;
  if (l->db->schema < 2) return st;
  st = wr_db_number(l->db, "SELECT value FROM meta WHERE key = 'finished'", &finished);
  if (!st) st = wr_db_number(l->db, "SELECT min(id) FROM main.event_row", &first);
  if (!st) st = wr_db_number(l->db, "SELECT max(id) FROM main.event_row", &last);
  if (st || finished != 1 || first <= 0 || last - first >= MOST_EVENTS) return st;
  l->first_event = first, l->last_event = last;
  l->template_of = calloc((size_t)(last - first) + 1, sizeof(*l->template_of));
  return l->template_of ? st : wr_db_out_of_memory(l->db);
}

static weir_status load_events(load *l, const wr_listener others[], size_t count)
{
  wr_listener all[WR_LISTENERS] = {{.take_some = take_events, .context = l, .apart = true}};
  size_t listeners = 1;
  weir_status st = open_template_of(l);
  if (!st) st = wr_wait_truth_begin(l->m, l->events, &l->waits);
  if (l->waits)
    all[listeners++] = (wr_listener){
        .take_some = wr_wait_take_some, .context = l->waits, .in_time = true, .apart = true};
  for (size_t i = 0; i < count; i++)
    all[listeners++] = others[i];
  if (!st) st = wr_events_listen(l->events, all, listeners);
  if (!st) st = fold_sums(l);
  return st ? st : count_unread_launches(l);
}

/* ---- what launches of graphs ran -------------------------------------------------------------- */

/* template, launches, type, bytes, copy, mem, src_mem, device, src_device, conditional, count. The place is the launch's; its
 * own time is counted with its event. */
static weir_status take_work(void *context, sqlite3_stmt *q)
{
  load *l = context;
  wr_totals *all = &l->m->total;
  size_t at = wr_events_template(l->events, sqlite3_column_int64(q, 0));
  uint64_t times = number_of(q, 1) * number_of(q, 10), bytes = number_of(q, 3) * times;
  if (at == SIZE_MAX) return WEIR_OK;
  if (sqlite3_column_int(q, 9)) {
    all->graph_conditional_nodes += times;
    return WEIR_OK;
  }
  wr_template t = l->events->templates[at];
  t.flags = WEIR_EVF_ASYNC, t.api = 0, t.first = t.asked = t.implicit = false;
  t.copy = sqlite3_column_int64(q, 4);
  t.mem = sqlite3_column_int64(q, 5), t.src_mem = sqlite3_column_int64(q, 6);
  t.device = device_of(q, 7), t.src_device = device_of(q, 8);
  switch (sqlite3_column_int(q, 2)) {
  case WR_NODE_KERNEL:
    t.kind = WEIR_EV_LAUNCH, all->graph_kernels += times;
    break;
  case WR_NODE_COPY:
    t.kind = WEIR_EV_COPY, all->graph_copies += times, all->graph_copy_bytes += bytes;
    break;
  case WR_NODE_MEMSET:
    t.kind = WEIR_EV_MEMSET, all->graph_memsets += times, all->graph_memset_bytes += bytes;
    break;
  case WR_NODE_ALLOC:
    all->graph_allocs += times, all->graph_alloc_bytes += bytes;
    return WEIR_OK;
  case WR_NODE_HOST:
    all->graph_host_functions += times;
    return WEIR_OK;
  default:
    return WEIR_OK;
  }
  const call_sum s = {.events = times, .bytes = bytes};
  count_done(l, &t, &s);
  t.api = l->events->templates[at].api;
  l->by_api[t.api].bytes += t.kind == WEIR_EV_LAUNCH ? 0 : bytes;
  return count_site(l, &t, &s, false);
}

static weir_status load_graphs(load *l)
{
  static const char *const tables[] = {"graph_change", "graph_node", "graph_work", "graph_launch"};
  wr_totals *t = &l->m->total;
  int64_t known = 0;
  t->graph_launches_unknown = t->graph_launches;
  for (int i = 0; i < 4; i++) /* else of an older Weir */
    if (l->db->schema < 2 || !wr_db_has_table(l->db, tables[i])) return WEIR_OK;
  weir_status s = l->m->finished ? WEIR_OK : wr_graph_launches_temporary(l->db);
  if (!s) s = wr_db_number(l->db, "SELECT count(content) FROM graph_launch", &known);
  if (s) return s;
  t->graph_launches_unknown -=
      (uint64_t)known < t->graph_launches ? (uint64_t)known : t->graph_launches;
  return wr_db_each(l->db,
                    "SELECT g.template, g.launches, w.type, w.bytes, w.copy, w.mem, w.src_mem,"
                    " w.device, w.src_device, w.conditional, w.count FROM (SELECT e.template,"
                    " l.content, count(*) AS launches FROM graph_launch l CROSS JOIN event_row e"
                    " ON e.id = l.event WHERE l.content IS NOT NULL GROUP BY 1, 2) g"
                    " CROSS JOIN graph_work w ON w.content = g.content",
                    take_work, l);
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Of code or contexts. */
static void count_taken(wr_device_totals *d, sqlite3_stmt *q)
{
  uint64_t peak = number_of(q, 3), live = number_of(q, 6), blocks = number_of(q, 8);
  if (sqlite3_column_int(q, 1) == WEIR_MEM_CODE) {
    d->code_blocks += blocks, d->code_bytes += number_of(q, 9);
    d->code_peak_bytes += peak, d->code_live_at_exit_bytes += live;
  } else {
    d->context_blocks += blocks, d->context_bytes += number_of(q, 9);
    d->context_peak_bytes += peak, d->context_live_at_exit_bytes += live;
  }
}

static weir_status take_memory(void *context, sqlite3_stmt *q)
{
  load *l = context;
  wr_totals *t = &l->m->total;
  int device = device_of(q, 0);
  bool sum = sqlite3_column_type(q, 1) == SQLITE_NULL, registered = sqlite3_column_int(q, 2) != 0;
  uint64_t peak = number_of(q, 3), live = number_of(q, 6);
  int64_t at = sqlite3_column_int64(q, 4), place = sqlite3_column_int64(q, 5);
  if (sum && device == WR_HOST) {
    t->peak_bytes = peak, t->peak_at_ns = (uint64_t)at;
    t->live_at_exit_bytes = live, t->live_at_exit_blocks = number_of(q, 7);
  } else if (sum) {
    wr_device_totals *d = device_totals(l, device);
    d->peak_bytes = peak, d->peak_at_ns = (uint64_t)at, d->live_at_exit_bytes = live;
    l->m->devices[device].peak_place = place;
  } else if (wr_mem_taken(sqlite3_column_int(q, 1))) {
    count_taken(device_totals(l, device), q);
  } else if (sqlite3_column_int(q, 1) == WEIR_MEM_IMPORTED) {
    t->imported_peak_bytes += peak, t->imported_live_at_exit_bytes += live;
  } else if (!registered && !wr_mem_device_side(sqlite3_column_int(q, 1))) {
    t->pinned_peak_bytes += peak, t->pinned_live_at_exit_bytes += live;
  }
  return WEIR_OK;
}

typedef struct block_facts { /* of a row of the view `block` */
  int64_t how, process, born, died, stack, start, end;
  int device, mem;
  bool registered, dead, ended;
  uint64_t bytes;
} block_facts;

static bool is_device_side(const block_facts *b)
{
  return wr_mem_device_side(b->mem) && !b->registered;
}

static bool at_peak_of(const load *l, const block_facts *b, int device)
{
  int64_t peak = l->m->devices[device].peak_place;
  return peak && b->born <= peak && (!b->dead || b->died > peak);
}

static weir_status count_taken_block(load *l, const block_facts *b)
{
  wr_device_totals *d = device_totals(l, b->device);
  uint64_t dead = b->how != WR_BLOCK_LIVE;
  if (b->mem == WEIR_MEM_CODE)
    d->code_frees += dead;
  else
    d->context_frees += dead;
  if (dead || wr_block_sum_add(&l->sums, b->stack, WR_TAKEN, b->bytes)) return WEIR_OK;
  return wr_db_out_of_memory(l->db);
}

static void count_free(load *l, const block_facts *b)
{
  wr_totals *t = &l->m->total;
  if (b->how != WR_BLOCK_FREED && b->how != WR_BLOCK_UNKNOWN) return;
  if (b->how == WR_BLOCK_UNKNOWN) t->unmatched_frees++;
  if (is_device_side(b))
    t->free_calls++, device_totals(l, b->device)->free_calls++;
  else if (!b->registered && b->mem != WEIR_MEM_IMPORTED)
    t->pinned_free_calls++;
}

static weir_status count_block(load *l, const block_facts *b)
{
  if (wr_mem_taken(b->mem)) return count_taken_block(l, b);
  count_free(l, b);
  if (b->how == WR_BLOCK_UNKNOWN || !is_device_side(b)) return WEIR_OK;
  if (l->in_use.any && b->device != WR_HOST) {
    const wr_in_use_block use = {.process = b->process,
                                 .stack = b->stack,
                                 .start = b->start,
                                 .end = b->ended ? b->end : INT64_MAX,
                                 .bytes = b->bytes,
                                 .device = b->device,
                                 .mem = b->mem};
    weir_status s = wr_in_use_add(&l->in_use, &use, l->db);
    if (s) return s;
  }
  if (b->how == WR_BLOCK_LIVE && !wr_block_sum_add(&l->sums, b->stack, WR_HOST, b->bytes))
    return wr_db_out_of_memory(l->db);
  if (b->device == WR_HOST || !at_peak_of(l, b, b->device)) return WEIR_OK;
  return wr_block_sum_add(&l->sums, b->stack, b->device, b->bytes) ? WEIR_OK
                                                                   : wr_db_out_of_memory(l->db);
}

static weir_status take_block(void *context, const wr_block *from)
{
  const block_facts b = {.how = from->how,
                         .device = from->device,
                         .mem = from->mem,
                         .born = from->born,
                         .died = from->died,
                         .dead = from->dead,
                         .stack = from->stack,
                         .registered = from->registered,
                         .bytes = from->bytes,
                         .start = from->start,
                         .end = from->end,
                         .ended = from->ended,
                         .process = from->process};
  return count_block(context, &b);
}

/* ---- blocks without their events ------------------------------------------------------------- */

enum { BLOCK_EVENT, BLOCK_HOW, BLOCK_BORN, BLOCK_DIED_AFTER };

/* What of it counts is more than that it ended. */
static bool needs_bytes(const load *l, const block_facts *b)
{
  if (wr_mem_taken(b->mem)) return b->how == WR_BLOCK_LIVE;
  if (!is_device_side(b) || b->how == WR_BLOCK_UNKNOWN) return false;
  return b->how == WR_BLOCK_LIVE || (b->device != WR_HOST && at_peak_of(l, b, b->device));
}

static weir_status take_block_row(load *l, const wr_row_walk *r, wr_row_walk *events)
{
  int64_t event = r->v[BLOCK_EVENT];
  bool inside = event >= l->first_event && event <= l->last_event;
  uint32_t at = inside ? l->template_of[event - l->first_event] : 0;
  if (!at) return WEIR_OK; /* a damaged trace: the view has no such block either */
  const wr_template *t = &l->events->templates[at - 1];
  block_facts b = {.how = r->v[BLOCK_HOW],
                   .device = (int)t->device,
                   .mem = (int)t->mem,
                   .registered = t->kind == WEIR_EV_HOSTREG,
                   .stack = r->v[BLOCK_HOW] == WR_BLOCK_UNKNOWN ? 0 : t->stack,
                   .born = r->v[BLOCK_BORN],
                   .dead = !(r->nulls >> BLOCK_DIED_AFTER & 1)};
  b.died = (int64_t)((uint64_t)b.born + (uint64_t)r->v[BLOCK_DIED_AFTER]);
  if (needs_bytes(l, &b)) {
    if (wr_rows_find(events, event)) b.bytes = (uint64_t)events->v[0];
  }
  return events->status ? events->status : count_block(l, &b);
}

static weir_status walk_blocks(load *l)
{
  static const char *const block[] = {"id", "event", "how", "born", "died_after"},
                           *const event[] = {"id", "bytes"};
  wr_row_walk blocks, events;
  weir_status st = wr_rows_open(&blocks, l->db, "block_row", block, 5);
  weir_status opened = wr_rows_open(&events, l->db, "event_row", event, 2);
  if (!st) st = opened;
  while (!st && wr_rows_next(&blocks))
    st = take_block_row(l, &blocks, &events);
  (void)wr_rows_close(&events);
  opened = wr_rows_close(&blocks);
  return st ? st : opened;
}

static weir_status load_blocks(load *l)
{
  wr_blocks blocks;
  weir_status st = wr_blocks_open(&blocks, l->events);
  if (!st && l->template_of && !l->in_use.any && blocks.by_pages)
    st = walk_blocks(l);
  else if (!st)
    st = wr_blocks_each(&blocks, take_block, l);
  wr_blocks_close(&blocks);
  return st;
}

static wr_in_use *in_use_of(void *context, int device)
{
  const wr_model *m = context;
  m->devices[device].seen = true;
  return m->devices[device].in_use;
}

/* What was cached when a device was asked about; then all is known. */
static weir_status finish_in_use(load *l)
{
  const wr_cache *c = &l->m->cache;
  for (size_t i = 0; i < c->cached_at_count; i++) {
    wr_in_use *u = l->m->devices[c->cached_at[i].device].in_use;
    for (size_t k = 0; k < WR_SAYERS * (size_t)WR_MOMENTS; k++) {
      wr_moment *m = &u[k / WR_MOMENTS].moment[k % WR_MOMENTS];
      if (k % WR_MOMENTS < u[k / WR_MOMENTS].moments && m->at == c->cached_at[i].at)
        m->cached = c->cached_at[i].bytes;
    }
  }
  return wr_in_use_finish(&l->in_use, l->db);
}

static weir_status load_memory(load *l)
{
  weir_status s = l->m->finished ? WEIR_OK : wr_lifetimes_temporary(l->db);
  if (!s) s = wr_in_use_open(&l->in_use, in_use_of, l->m, l->db);
  if (!s)
    s = wr_db_each(l->db,
                   "SELECT device, mem, registered, peak, peak_at, peak_place, live, live_blocks,"
                   " allocs, bytes FROM memory",
                   take_memory, l);
  if (!s) s = load_blocks(l);
  free(l->template_of);
  l->template_of = NULL;
  return s;
}

/* ---- small tables ---------------------------------------------------------------------------- */

static weir_status take_meta(void *context, sqlite3_stmt *q)
{
  load *l = context;
  wr_model *m = l->m;
  const char *key = (const char *)sqlite3_column_text(q, 0);
  if (!key) return WEIR_OK;
  if (!strcmp(key, "finished")) m->finished = sqlite3_column_int(q, 1) == 1;
  if (!strcmp(key, "duration_ns")) m->duration_ns = sqlite3_column_int64(q, 1);
  if (!strcmp(key, "start_realtime_ns")) m->start_realtime_ns = sqlite3_column_int64(q, 1);
  if (!strcmp(key, "window_start_ns")) m->window_start_ns = sqlite3_column_int64(q, 1);
  if (!strcmp(key, "window_end_ns")) m->window_end_ns = sqlite3_column_int64(q, 1);
  char **text = !strcmp(key, "command")         ? &m->command
                : !strcmp(key, "weir_version")  ? &m->version
                : !strcmp(key, "no_gpu")        ? &m->no_gpu
                : !strcmp(key, "window_reason") ? &m->window_reason
                                                : NULL;
  if (!text || *text) return WEIR_OK;
  *text = wr_db_text(q, 1);
  return *text ? WEIR_OK : wr_db_out_of_memory(l->db);
}

/* Times that no trace of a run has are of none. */
static weir_status load_meta(load *l)
{
  wr_model *m = l->m;
  int64_t before = 0;
  m->window_start_ns = m->window_end_ns = -1;
  weir_status s = wr_db_each(l->db, "SELECT key, value FROM meta", take_meta, l);
  m->is_window = m->window_start_ns >= 0 && m->window_end_ns >= 0;
  if (!m->is_window) m->window_start_ns = m->window_end_ns = -1;
  if (s || !wr_db_has_table(l->db, WR_BEFORE_WINDOW)) return s;
  s = wr_db_number(l->db, "SELECT CAST(min(total(count), 9e18) AS INTEGER) FROM before_window",
                   &before);
  m->before_calls = before > 0 ? (uint64_t)before : 0;
  return s;
}

static weir_status take_process(void *context, sqlite3_stmt *q)
{
  load *l = context;
  wr_model *m = l->m;
  size_t capacity = m->process_count ? (m->process_count + 15) / 16 * 16 : 0;
  if (!wr_grow(&m->processes, &capacity, m->process_count + 1, sizeof(*m->processes)))
    return wr_db_out_of_memory(l->db);
  wr_process_row *p = &m->processes[m->process_count++];
  *p = (wr_process_row){
      .id = sqlite3_column_int64(q, 0),
      .pid = sqlite3_column_int64(q, 1),
      .exe = wr_db_text(q, 2),
      .command = wr_db_text(q, 3),
      .start = sqlite3_column_int64(q, 4),
      .end = sqlite3_column_int64(q, 5),
      .end_reason = wr_db_text(q, 6),
      .end_detail = sqlite3_column_type(q, 7) == SQLITE_NULL ? -1 : sqlite3_column_int64(q, 7),
      .mode = wr_db_text(q, 8),
      .dropped = number_of(q, 9),
      .drop_errno = number_of(q, 10),
      .damaged_chunks = number_of(q, 11),
      .torn = number_of(q, 12),
      .bytes_cut = number_of(q, 13),
      .ended = sqlite3_column_type(q, 6) != SQLITE_NULL};
  if (!p->exe || !p->command || !p->end_reason || !p->mode) return wr_db_out_of_memory(l->db);
  const uint64_t *events = hash_map_get(&l->per_process, (uint64_t)p->id);
  p->events = events ? *events : 0;
  m->total.dropped += p->dropped;
  wr_coverage *c = &m->coverage;
  c->damaged_chunks += p->damaged_chunks, c->torn += p->torn, c->bytes_cut += p->bytes_cut;
  c->unknown_lookups += number_of(q, 14);
  c->dropped_extended += number_of(q, 16);
  if (c->unknown_name || sqlite3_column_type(q, 15) == SQLITE_NULL) return WEIR_OK;
  c->unknown_name = wr_db_text(q, 15);
  return c->unknown_name ? WEIR_OK : wr_db_out_of_memory(l->db);
}

static weir_status take_device_name(void *context, sqlite3_stmt *q)
{
  load *l = context;
  int device = device_of(q, 0);
  if (device == WR_HOST || l->m->devices[device].name) return WEIR_OK;
  l->m->devices[device].name = wr_db_text(q, 1);
  return l->m->devices[device].name ? WEIR_OK : wr_db_out_of_memory(l->db);
}

/* What it was called last. */
static weir_status take_device_label(void *context, sqlite3_stmt *q)
{
  load *l = context;
  int device = device_of(q, 0);
  if (device == WR_HOST) return WEIR_OK;
  free(l->m->devices[device].label);
  l->m->devices[device].label = wr_db_text(q, 1);
  return l->m->devices[device].label ? WEIR_OK : wr_db_out_of_memory(l->db);
}

/* Appends the text of column 0 to a list. */
static weir_status take_string(const wr_db *db, sqlite3_stmt *q, char ***list, size_t *count)
{
  size_t capacity = *count ? (*count + 15) / 16 * 16 : 0;
  if (!wr_grow(list, &capacity, *count + 1, sizeof(char *))) return wr_db_out_of_memory(db);
  (*list)[*count] = wr_db_text(q, 0);
  return (*list)[(*count)++] ? WEIR_OK : wr_db_out_of_memory(db);
}

/* A function that this Weir wraps or does not know was let through by another: unseen. */
static weir_status take_passed(void *context, sqlite3_stmt *q)
{
  load *l = context;
  const char *name = (const char *)sqlite3_column_text(q, 0);
  const api_info *info = name ? api_row(api_find_name(name)) : NULL;
  bool known = info && info->how != WEIR_API_WRAPPED;
  wr_passed *of = &l->m->coverage.passed[known ? info->how : WEIR_API_UNREACHED];
  return take_string(l->db, q, &of->names, &of->count);
}

static weir_status take_embedding(void *context, sqlite3_stmt *q)
{
  load *l = context;
  return take_string(l->db, q, &l->m->coverage.embedding, &l->m->coverage.embedding_count);
}

static weir_status take_note(void *context, sqlite3_stmt *q)
{
  load *l = context;
  return take_string(l->db, q, &l->m->notes, &l->m->note_count);
}

static weir_status take_coverage(void *context, sqlite3_stmt *q)
{
  load *l = context;
  l->m->coverage.looked_up = number_of(q, 0);
  l->m->coverage.called = number_of(q, 1);
  return WEIR_OK;
}

/* A process's main thread lasts as long as the process; of another only its calls tell. */
static weir_status take_main_thread(void *context, sqlite3_stmt *q)
{
  load *l = context;
  const uint64_t *at = hash_map_get(&l->firsts.by_thread, number_of(q, 0));
  if (!at) return WEIR_OK;
  wr_first_thread *t = &l->firsts.threads[*at];
  int64_t start = sqlite3_column_int64(q, 1), end = sqlite3_column_int64(q, 2);
  bool ended = sqlite3_column_type(q, 2) != SQLITE_NULL;
  if (start < t->start) t->start = start;
  if (ended && end > t->end) t->end = end;
  return WEIR_OK;
}

/* copies, of them hashed, ns, of them unreadable */
static weir_status take_hashes(void *context, sqlite3_stmt *q)
{
  wr_totals *t = &((load *)context)->m->total;
  uint64_t copies = number_of(q, 0), hashed = number_of(q, 1);
  t->copies_hashed = hashed < copies ? hashed : copies;
  t->copies_not_hashed = copies - t->copies_hashed;
  t->hashing_ns = number_of(q, 2);
  t->copies_unreadable = number_of(q, 3);
  return WEIR_OK;
}

/* Of copies that have a number and no hash the program's end came first. */
static weir_status load_hashes(load *l)
{
  if (!wr_db_has_table(l->db, "copy_hash") || !wr_db_has_table(l->db, "copy_hash_call"))
    return WEIR_OK;
  return wr_db_each(l->db,
                    "SELECT (SELECT count(*) FROM copy_hash_call) + sum(number IS NULL),"
                    " sum(outcome = 1), total(max(ns, 0)), sum(outcome = 4) FROM copy_hash",
                    take_hashes, l);
}

static weir_status load_threads(load *l)
{
  wr_totals *t = &l->m->total;
  weir_status s = wr_db_each(l->db,
                             "SELECT t.id, p.start, p.\"end\" FROM thread t JOIN process p"
                             " ON p.id = t.process WHERE t.tid = p.pid",
                             take_main_thread, l);
  for (size_t i = 0; i < l->firsts.thread_count; i++) {
    const wr_first_thread *x = &l->firsts.threads[i];
    t->threads++;
    if (x->end > x->start) t->thread_time_ns += (uint64_t)x->end - (uint64_t)x->start;
  }
  t->thread_time_ns -= t->hashing_ns < t->thread_time_ns ? t->hashing_ns : t->thread_time_ns;
  return s;
}

/* Where not all calls are in the trace: how many are not, and for how long. */
static weir_status load_recording(load *l)
{
  static const char partial[] =
      "SELECT CAST(min(total(max(till - time, 0)), 9e18) AS INTEGER) FROM ("
      " SELECT r.time, r.recorded, ifnull(lead(r.time) OVER (PARTITION BY r.process ORDER BY "
      "r.time,"
      "  r.id), p.\"end\") AS till FROM recording r JOIN process p ON p.id = r.process)"
      " WHERE recorded = 'memory'";
  static const char all[] =
      "SELECT CAST(min(total(max(\"end\" - start, 0)), 9e18) AS INTEGER) FROM process"
      " WHERE unrecorded_spans > 0";
  int64_t calls = 0, spans = 0, without = 0, time = 0;
  if (!wr_db_has_column(l->db, "process", "unrecorded_spans")) return WEIR_OK; /* an older Weir's */
  weir_status s = wr_db_number(
      l->db, "SELECT CAST(min(total(unrecorded_calls), 9e18) AS INTEGER) FROM process", &calls);
  if (!s)
    s = wr_db_number(
        l->db, "SELECT CAST(min(total(unrecorded_spans), 9e18) AS INTEGER) FROM process", &spans);
  if (!s) s = wr_db_number(l->db, partial, &without);
  if (!s) s = wr_db_number(l->db, all, &time);
  wr_coverage *c = &l->m->coverage;
  c->unrecorded = calls > 0 ? (uint64_t)calls : 0;
  c->unrecorded_spans = spans > 0 ? (uint64_t)spans : 0;
  c->partial_ns = without > 0 ? (uint64_t)without : 0;
  c->whole_ns = time > without ? (uint64_t)(time - without) : 0;
  return s;
}

static weir_status load_tables(load *l)
{
  static const struct {
    const char *sql;
    weir_status (*row)(void *, sqlite3_stmt *);
  } tables[] = {
      {"SELECT id, pid, exe, command, start, \"end\", end_reason, end_detail, mode, dropped, "
       "drop_errno,"
       " damaged_chunks, torn, bytes_cut, unknown_lookups, unknown_name, dropped_extended"
       " FROM process ORDER BY id",
       take_process},
      {"SELECT handle, name FROM name WHERE kind = 'device' ORDER BY process, rowid",
       take_device_name},
      {"SELECT handle, name FROM name WHERE kind = 'device_label' ORDER BY process, rowid",
       take_device_label},
      {"SELECT count(DISTINCT CASE WHEN looked_up THEN api END),"
       " count(DISTINCT CASE WHEN called THEN api END)"
       " FROM coverage",
       take_coverage},
      {"SELECT DISTINCT a.name FROM coverage c JOIN api a ON a.id = c.api WHERE c.passed ORDER BY "
       "1",
       take_passed},
      {"SELECT DISTINCT path FROM module WHERE embeds_cuda AND NOT needs_cudart ORDER BY 1",
       take_embedding},
      {"SELECT DISTINCT text FROM note ORDER BY id", take_note}};
  weir_status s = WEIR_OK;
  int64_t nested = 0, deep = 0;
  for (size_t i = 0; !s && i < sizeof(tables) / sizeof(tables[0]); i++)
    s = wr_db_each(l->db, tables[i].sql, tables[i].row, l);
  if (!s && wr_db_has_column(l->db, "process", "nested_calls")) /* else of an older Weir */
    s = wr_db_number(l->db, "SELECT sum(nested_calls) FROM process", &nested);
  if (!s && wr_db_has_column(l->db, "process", "deep_ranges"))
    s = wr_db_number(l->db, "SELECT total(deep_ranges) FROM process", &deep);
  l->m->coverage.nested = (uint64_t)nested;
  l->m->coverage.deep = (uint64_t)deep;
  if (!s) s = load_recording(l);
  return s ? s : wr_unseen_load(&l->m->coverage, l->db);
}

/* ---- lists ----------------------------------------------------------------------------------- */

static int by_time(const void *left, const void *right)
{
  const wr_api_row *a = left, *b = right;
  if (a->ns != b->ns) return a->ns < b->ns ? 1 : -1;
  return a->api < b->api ? -1 : a->api > b->api;
}

static weir_status take_api_name(void *context, sqlite3_stmt *q)
{
  load *l = context;
  int64_t api = sqlite3_column_int64(q, 0);
  if (api < 0 || api > 0xffff || !l->by_api[api].calls || l->by_api[api].name) return WEIR_OK;
  l->by_api[api].name = wr_db_text(q, 1);
  const char *layer = (const char *)sqlite3_column_text(q, 2);
  const char *category = (const char *)sqlite3_column_text(q, 3);
  l->by_api[api].layer = layer && !strcmp(layer, "runtime") ? "runtime" : "driver";
  for (uint32_t c = 0; category && c <= WEIR_API_OTHER; c++)
    if (!strcmp(category, wr_api_category_name(c)))
      l->by_api[api].category = wr_api_category_name(c);
  return l->by_api[api].name ? WEIR_OK : wr_db_out_of_memory(l->db);
}

static weir_status list_apis(load *l)
{
  weir_status s = wr_db_each(l->db, "SELECT id, name, layer, category FROM api", take_api_name, l);
  size_t capacity = 0;
  for (uint32_t i = 0; !s && i < 65536; i++) {
    wr_api_row *a = &l->by_api[i];
    if (!a->calls) continue;
    if (!wr_grow(&l->m->apis, &capacity, l->m->api_count + 1, sizeof(*a)))
      return wr_db_out_of_memory(l->db);
    a->api = i;
    if (!a->name) a->name = i ? wr_format("api #%u", i) : wr_format("(no function)");
    if (!a->name) return wr_db_out_of_memory(l->db);
    if (!a->layer) a->layer = "driver";
    if (!a->category) a->category = "other";
    l->m->apis[l->m->api_count++] = *a;
    a->name = NULL; /* the list owns it now */
  }
  if (l->m->api_count) qsort(l->m->apis, l->m->api_count, sizeof(*l->m->apis), by_time);
  return s;
}

static weir_status list_routes(load *l)
{
  size_t capacity = 0;
  for (int i = 0; i < WR_PLACES * WR_PLACES; i++) {
    int src = (i / WR_PLACES + WR_HOST) % WR_PLACES; /* from the host first */
    wr_route *r = &l->by_route[src * WR_PLACES + i % WR_PLACES];
    if (!r->calls) continue;
    r->src = src, r->dst = i % WR_PLACES;
    if (!wr_grow(&l->m->routes, &capacity, l->m->route_count + 1, sizeof(*r)))
      return wr_db_out_of_memory(l->db);
    l->m->routes[l->m->route_count++] = *r;
  }
  return WEIR_OK;
}

/* Pageable, pinned, managed, and the rest together, for each direction. */
static void list_split(load *l)
{
  static const char *const directions[] = {"h2d", "d2h"};
  static const char *const names[] = {"pageable", "pinned", "managed", "unknown"};
  for (int d = 0; d < 2; d++) {
    for (int n = 0; n < 4; n++) {
      static const int mems[] = {WEIR_MEM_PAGEABLE, WEIR_MEM_PINNED, WEIR_MEM_MANAGED};
      wr_host_split row = {directions[d], names[n], 0, 0, 0};
      for (int mem = 0; mem < 8; mem++) {
        bool named = mem == mems[0] || mem == mems[1] || mem == mems[2];
        if (n < 3 ? mem != mems[n] : named) continue;
        row.calls += l->split[d][mem][0];
        row.bytes += l->split[d][mem][1];
        row.async_calls += l->split[d][mem][2];
      }
      if (row.calls) l->m->split[l->m->split_count++] = row;
    }
  }
}

static weir_status load_all(load *l, int top, const wr_listener others[], size_t count)
{
  weir_status s = load_meta(l);
  if (!s) s = wr_firsts_open(&l->firsts, l->db);
  if (!s) s = load_events(l, others, count);
  if (!s) s = load_graphs(l);
  if (!s) s = choose_tables(l);
  if (!s) s = load_hashes(l);
  if (!s) s = load_threads(l);
  if (!s) s = load_memory(l);
  if (!s) s = load_tables(l);
  if (!s) s = list_apis(l);
  if (!s) s = list_routes(l);
  if (!s) s = wr_cache_load(&l->m->cache, l->db);
  if (!s) s = finish_in_use(l);
  if (!s) s = wr_reserved_load(l->m, l->db);
  if (!s) s = wr_tensors_load(&l->m->tensors, l->db, top);
  if (!s) s = wr_ranges_load(&l->m->ranges, l->db, &l->firsts, l->m->duration_ns);
  if (!s) s = wr_graphs_load(&l->m->graphs, l->db);
  if (!s) s = wr_kernels_finish(&l->m->kernels, l->db);
  if (!s) s = wr_named_load(&l->m->named, l->db);
  if (!s) s = wr_device_times_load(&l->m->device_times, l->db);
  if (!s) s = wr_wait_truth_load(l->m, &l->sums, l->events, l->waits);
  wr_wait_close(l->waits);
  l->waits = NULL;
  if (s) return s;
  list_split(l);
  s = wr_asked_load(l->m, &l->sums, l->db);
  if (s) return s;
  for (size_t i = 0; i < l->m->process_count; i++) /* an unfinished one may lack it */
    if (l->m->processes[i].end > l->m->duration_ns) l->m->duration_ns = l->m->processes[i].end;
  return wr_sites_make(l->m, &l->sums, l->db, top);
}

weir_status wr_model_load_with(wr_model *m, wr_events *events, int top, const wr_listener others[],
                               size_t count)
{
  const wr_db *db = events->db;
  *m = (wr_model){.top = top,
                  .path = wr_text(db->path, strlen(db->path), true),
                  .devices = calloc(256, sizeof(wr_device))};
  load l = {.m = m,
            .db = db,
            .events = events,
            .by_api = calloc(65536, sizeof(wr_api_row)),
            .by_route = calloc((size_t)WR_PLACES * WR_PLACES, sizeof(wr_route))};
  static const char *const launches[] = {"cuGraphLaunch", "cuGraphLaunch_ptsz", "cudaGraphLaunch",
                                         "cudaGraphLaunch_ptsz"};
  for (int i = 0; i < 4; i++)
    l.graph_launch[i] = api_find_name(launches[i]);
  weir_status s = WEIR_OK;
  if (!m->path || !m->devices || !l.by_api || !l.by_route) s = wr_db_out_of_memory(db);
  if (!s) s = load_all(&l, top, others, count);
  for (int i = 0; l.by_api && i < 65536; i++)
    free(l.by_api[i].name);
  free(l.by_api);
  free(l.by_route);
  hash_map_free(&l.per_process);
  wr_site_sums_free(&l.sums);
  wr_in_use_sums_free(&l.in_use);
  wr_firsts_close(&l.firsts);
  free(l.undecided);
  free(l.call);
  free(l.order);
  free(l.template_of);
  wr_wait_close(l.waits);
  if (s) wr_model_free(m);
  return s;
}

weir_status wr_model_load(wr_model *m, const wr_db *db, int top)
{
  wr_events events;
  *m = (wr_model){0};
  weir_status st = wr_events_open(&events, db);
  if (!st) st = wr_model_load_with(m, &events, top, NULL, 0);
  wr_events_close(&events);
  return st;
}

static void free_strings(char **list, size_t count)
{
  for (size_t i = 0; i < count; i++)
    free(list[i]);
  free(list);
}

void wr_model_free(wr_model *m)
{
  for (int i = 0; m->devices && i < 256; i++) {
    free(m->devices[i].name);
    free(m->devices[i].label);
    wr_sites_free(&m->devices[i].owners);
    wr_in_use_free(m->devices[i].in_use);
  }
  for (size_t i = 0; i < m->api_count; i++) {
    free(m->apis[i].name);
    if (m->apis[i].place) wr_frame_name_free(m->apis[i].place);
    free(m->apis[i].place);
  }
  for (size_t i = 0; i < m->process_count; i++) {
    free(m->processes[i].exe);
    free(m->processes[i].command);
    free(m->processes[i].end_reason);
    free(m->processes[i].mode);
  }
  wr_cache_free(&m->cache);
  wr_tensors_free(&m->tensors);
  wr_ranges_free(&m->ranges);
  wr_named_free(&m->named);
  wr_graphs_free(&m->graphs);
  wr_kernels_free(&m->kernels);
  wr_device_times_free(&m->device_times);
  free_strings(m->notes, m->note_count);
  for (int i = 0; i <= WEIR_API_BELOW; i++)
    free_strings(m->coverage.passed[i].names, m->coverage.passed[i].count);
  free_strings(m->coverage.embedding, m->coverage.embedding_count);
  free(m->coverage.unknown_name);
  wr_unseen_free(&m->coverage);
  wr_sites_free(&m->alloc);
  wr_sites_free(&m->copy);
  wr_sites_free(&m->sync);
  wr_sites_free(&m->redundant);
  wr_sites_free(&m->wider);
  wr_wait_truth_free(&m->waits);
  wr_sites_free(&m->leak);
  wr_sites_free(&m->asked);
  wr_sites_free(&m->taken);
  for (size_t i = 0; i < m->frame_count; i++) {
    free(m->frames[i].function);
    free(m->frames[i].file);
    free(m->frames[i].module);
  }
  free(m->frames);
  free(m->devices);
  free(m->apis);
  free(m->routes);
  free(m->processes);
  free(m->path);
  free(m->command);
  free(m->version);
  free(m->no_gpu);
  free(m->window_reason);
  *m = (wr_model){0};
}
