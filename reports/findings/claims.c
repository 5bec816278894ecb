/* claims.c: see claims.h. Most claims are of events whose start is at hand: they lie in an array, those of an event linked, so
 * that a walk over the events in order of time has them in that order, and nothing is sorted. When the array is full they go
 * into a log by such a walk. The claims of the few other events go into a pack, and into the log once all rules have run. */
#include "reports/findings/claims.h"
#include <stdlib.h>
#include "reports/base/util.h"

/* A claim in the log. */
typedef struct claim_record {
  int64_t event, start; /* as wr_logged: in order of time */
  uint64_t saving, rest, bytes, group;
} claim_record;

enum {
  LOG_BYTES = 16 << 20, /* in memory */
  MOST_KEPT = 1 << 19   /* claims in the array, which grows by doubling */
};

/* A claim in the pack. */
enum { OF_EVENT, OF_GROUP, OF_SAVING, OF_REST, OF_BYTES, OF_COLUMNS };

typedef struct wr_claimed { /* of one event */
  uint64_t saving, rest, group;
} wr_claimed;

static weir_status no_memory(void)
{
  return weir_fail(WEIR_ENOMEM, "adding findings up: out of host memory");
}

static inline uint64_t capped_sum(uint64_t a, uint64_t b)
{
  return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

weir_status wr_claims_open(wr_claims *x, int64_t last_event)
{
  *x = (wr_claims){.file = wr_run_path(), .others.columns = OF_COLUMNS};
  x->log = (wr_run_log){
      .trace = x->file, .size = sizeof(claim_record), .most = LOG_BYTES / sizeof(claim_record)};
  return x->file && wr_starts_open(&x->starts, last_event) ? WEIR_OK : no_memory();
}

void wr_claims_close(wr_claims *x)
{
  wr_starts_close(&x->starts);
  wr_pack_free(&x->others);
  wr_run_drop(&x->log);
  free(x->kept);
  free(x->newest);
  free(x->group);
  free(x->claimed);
  free(x->by);
  free(x->file);
}

size_t wr_claims_group(wr_claims *x)
{
  if (x->count > UINT32_MAX || !wr_grow(&x->group, &x->capacity, x->count + 1, sizeof(*x->group)))
    return SIZE_MAX;
  x->group[x->count] = (wr_claim_group){.least = UINT64_MAX};
  return x->count++;
}

/* ---- keeping --------------------------------------------------------------------------------- */

static void log_claim(wr_claims *x, const wr_claim *c, int64_t start)
{
  const claim_record r = {.event = c->event,
                          .start = start < WR_NO_TIME ? start : WR_NO_TIME,
                          .saving = c->saving,
                          .rest = c->rest,
                          .bytes = c->bytes,
                          .group = c->group};
  wr_run_keep(&x->log, (const wr_logged *)(const void *)&r);
}

/* Links the claims of an event from the first on. Returns the first, from 1; 0: it has none. */
static uint32_t turn_claims(wr_claims *x, int64_t event)
{
  uint32_t first = 0;
  for (uint32_t at = x->newest ? x->newest[event] : 0, before; at; at = before) {
    before = x->kept[at - 1].before;
    x->kept[at - 1].before = first;
    first = at;
  }
  return first;
}

/* The array is full: what it holds goes into the log, in order of time. */
static weir_status log_kept(wr_claims *x)
{
  const size_t places = wr_starts_places(&x->starts);
  for (size_t i = 0; i < places; i++) {
    const int64_t event = wr_starts_at(&x->starts, i);
    int64_t start = 0;
    uint32_t next = turn_claims(x, event);
    if (!next || !wr_starts_find(&x->starts, event, &start)) continue;
    x->newest[event] = 0;
    for (; next; next = x->kept[next - 1].before) {
      const wr_kept_claim *k = &x->kept[next - 1];
      log_claim(x, &(wr_claim){event, k->group, k->saving, k->rest, k->bytes}, start);
    }
  }
  x->kept_count = 0;
  return WEIR_OK;
}

/* There is room for a claim. */
static weir_status make_room(wr_claims *x)
{
  if (!x->newest) x->newest = calloc(x->starts.count, sizeof(*x->newest));
  if (!x->newest) return no_memory();
  if (x->kept_room == MOST_KEPT) return log_kept(x);
  return wr_grow(&x->kept, &x->kept_room, x->kept_room + 1, sizeof(*x->kept)) ? WEIR_OK
                                                                              : no_memory();
}

weir_status wr_claims_add_slowly(wr_claims *x, const wr_claim *c)
{
  if (wr_starts_know(&x->starts, c->event)) {
    weir_status s = make_room(x);
    return s ? s : wr_claims_add(x, c);
  }
  if (!c->saving && !c->bytes) return WEIR_OK;
  const int64_t row[OF_COLUMNS] = {[OF_EVENT] = c->event,
                                   [OF_GROUP] = (int64_t)c->group,
                                   [OF_SAVING] = (int64_t)c->saving,
                                   [OF_REST] = (int64_t)c->rest,
                                   [OF_BYTES] = (int64_t)c->bytes};
  return wr_pack_add(&x->others, row, x->file);
}

/* ---- adding up ------------------------------------------------------------------------------- */

typedef struct claim_walk {
  wr_claims *claims;
  wr_claims_end *end;
  int64_t event, start; /* whose claims are in claims->claimed; none: no event yet */
  uint64_t bytes;       /* that the event moves */
  size_t place;         /* of claims->starts: those before it have been added up */
} claim_walk;

/* Those whose start was not at hand. */
static weir_status place_others(wr_claims *x, const wr_claims_end *end)
{
  wr_pack_reader r = {0};
  weir_status s = wr_pack_first(&r, &x->others);
  while (!s && !r.over) {
    const wr_claim c = {.event = r.v[OF_EVENT],
                        .group = (size_t)r.v[OF_GROUP],
                        .saving = (uint64_t)r.v[OF_SAVING],
                        .rest = (uint64_t)r.v[OF_REST],
                        .bytes = (uint64_t)r.v[OF_BYTES]};
    int64_t start = WR_NO_TIME;
    if (x->group[c.group].finding) s = end->find_start(end->context, c.event, &start);
    if (!s) log_claim(x, &c, start);
    if (!s) s = wr_pack_next(&r);
  }
  wr_pack_reader_free(&r);
  return s;
}

/* In the order in which their rules ran. */
static void sort_claimed(wr_claimed *of, size_t count)
{
  for (size_t i = 1; i < count; i++) {
    const wr_claimed moved = of[i];
    size_t to = i;
    for (; to && of[to - 1].group > moved.group; to--)
      of[to] = of[to - 1];
    of[to] = moved;
  }
}

/* What few operations took beyond the others is in no saving. */
static inline uint64_t piece_of(const wr_claim_group *g, uint64_t saving, uint64_t rest)
{
  const uint64_t whole = capped_sum(saving, rest);
  return whole < g->least ? saving : (uint64_t)((double)saving / (double)whole * (double)g->median);
}

/* What of an event is to be added up has been, or nothing of it is. */
static inline bool has_ended(const claim_walk *w)
{
  return !w->claims->claimed_count && !w->bytes;
}

static inline void count_operation(const claim_walk *w, const size_t finding[], size_t count)
{
  if (w->end->overlaps && w->end->overlaps->any) wr_overlaps_add(w->end->overlaps, finding, count);
}

/* All claims of an event are there. What no event has began apart from all others. */
static void end_event(claim_walk *w)
{
  wr_claims *x = w->claims;
  if (has_ended(w)) return;
  w->end->moved_bytes = capped_sum(w->end->moved_bytes, w->bytes);
  if (x->claimed_count && w->start >= WR_NO_TIME) {
    w->start = x->no_time;
    if (__builtin_add_overflow(x->no_time, (int64_t)w->end->duration, &x->no_time))
      x->no_time = INT64_MAX;
  }
  if (x->claimed_count > 1) sort_claimed(x->claimed, x->claimed_count);
  for (size_t i = 0; i < x->claimed_count; i++) {
    const wr_claimed *c = &x->claimed[i];
    const wr_claim_group *g = &x->group[c->group];
    x->by[i] = g->finding;
    if (c->saving)
      wr_gains_add(w->end->gains, w->end->rank[g->finding], (uint64_t)w->start,
                   piece_of(g, c->saving, c->rest));
  }
  count_operation(w, x->by, x->claimed_count);
  x->claimed_count = w->bytes = 0;
}

static inline weir_status take_claim(claim_walk *w, const wr_claim *c, int64_t start)
{
  wr_claims *x = w->claims;
  if (!x->group[c->group].finding) return WEIR_OK;
  if (c->event != w->event || start != w->start) {
    end_event(w);
    w->event = c->event, w->start = start;
  }
  if (c->bytes > w->bytes) w->bytes = c->bytes;
  if (!wr_grow(&x->claimed, &x->claimed_capacity, x->claimed_count + 1, sizeof(*x->claimed)) ||
      !wr_grow(&x->by, &x->by_capacity, x->claimed_count + 1, sizeof(*x->by)))
    return no_memory();
  x->claimed[x->claimed_count++] = (wr_claimed){c->saving, c->rest, c->group};
  return WEIR_OK;
}

/* An event's only claim, of an event that has come to pass. */
static inline void take_alone(claim_walk *w, const wr_kept_claim *k, int64_t event, int64_t start)
{
  const wr_claim_group *g = &w->claims->group[k->group];
  if (!g->finding) return;
  if (!has_ended(w)) end_event(w);
  w->event = event, w->start = start;
  w->end->moved_bytes = capped_sum(w->end->moved_bytes, k->bytes);
  if (k->saving)
    wr_gains_add(w->end->gains, w->end->rank[g->finding], (uint64_t)start,
                 piece_of(g, k->saving, k->rest));
  count_operation(w, &g->finding, 1);
}

static weir_status take_linked(claim_walk *w, int64_t event, int64_t start)
{
  weir_status s = WEIR_OK;
  const wr_claims *x = w->claims;
  for (uint32_t next = turn_claims(w->claims, event); !s && next; next = x->kept[next - 1].before) {
    const wr_kept_claim *k = &x->kept[next - 1];
    s = take_claim(w, &(wr_claim){event, k->group, k->saving, k->rest, k->bytes}, start);
  }
  return s;
}

/* Takes the claims in the array of events that are before a record of the log; NULL: all that are left. */
static weir_status take_kept(claim_walk *w, const claim_record *until)
{
  wr_claims *x = w->claims;
  const size_t places = x->kept_count ? wr_starts_places(&x->starts) : 0;
  weir_status s = WEIR_OK;
  for (; !s && w->place < places; w->place++) {
    const int64_t event = wr_starts_at(&x->starts, w->place);
    int64_t start = 0;
    if (!x->newest[event] || !wr_starts_find(&x->starts, event, &start)) continue;
    if (start > WR_NO_TIME) start = WR_NO_TIME;
    if (until && (start > until->start || (start == until->start && event >= until->event)))
      return s;
    const wr_kept_claim *k = &x->kept[x->newest[event] - 1];
    bool alone = !k->before && start < WR_NO_TIME && (event != w->event || start != w->start);
    if (alone)
      take_alone(w, k, event, start);
    else
      s = take_linked(w, event, start);
  }
  return s;
}

static weir_status take_record(void *context, const void *record)
{
  const claim_record *r = record;
  weir_status s = take_kept(context, r);
  if (s) return s;
  return take_claim(context, &(wr_claim){r->event, r->group, r->saving, r->rest, r->bytes},
                    r->start);
}

weir_status wr_claims_add_up(wr_claims *x, wr_claims_end *end)
{
  claim_walk w = {.claims = x, .end = end};
  x->no_time = WR_NO_TIME;
  weir_status s = place_others(x, end);
  if (!s && x->log.incomplete)
    s = weir_fail(WEIR_EIO, "no room for a temporary file: %s-runs", x->file);
  if (!s) s = wr_run_each(&x->log, take_record, &w);
  if (!s) s = take_kept(&w, NULL);
  end_event(&w);
  wr_run_drop(&x->log);
  return s;
}
