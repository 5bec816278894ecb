/* claims.c: see claims.h. Most claims are kept with the start of their event, in a log that brings them into order; those of
 * the few events whose start is not at hand go into a pack, and follow once all rules have run. */
#include "reports/findings/claims.h"
#include <stdlib.h>
#include "reports/base/util.h"

enum { LOG_BYTES = 32 << 20 /* in memory */ };

/* A claim in the log. */
typedef struct claim_record {
  int64_t event, start; /* as wr_logged: in order of time */
  uint64_t saving, rest, bytes, group;
} claim_record;

/* A claim in the pack. */
enum { OF_EVENT, OF_GROUP, OF_SAVING, OF_REST, OF_BYTES, OF_COLUMNS };

typedef struct wr_claimed { /* of one event */
  uint64_t saving, rest, group;
} wr_claimed;

static weir_status no_memory(void)
{
  return weir_fail(WEIR_ENOMEM, "adding findings up: out of host memory");
}

static uint64_t capped_sum(uint64_t a, uint64_t b)
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
  free(x->group);
  free(x->claimed);
  free(x->file);
}

size_t wr_claims_group(wr_claims *x)
{
  if (!wr_grow(&x->group, &x->capacity, x->count + 1, sizeof(*x->group))) return SIZE_MAX;
  x->group[x->count] = (wr_claim_group){.least = UINT64_MAX};
  return x->count++;
}

static void keep_claim(wr_claims *x, const wr_claim *c, int64_t start)
{
  const claim_record r = {.event = c->event,
                          .start = start < WR_NO_TIME ? start : WR_NO_TIME,
                          .saving = c->saving,
                          .rest = c->rest,
                          .bytes = c->bytes,
                          .group = c->group};
  wr_run_keep(&x->log, (const wr_logged *)(const void *)&r);
}

weir_status wr_claims_add(wr_claims *x, const wr_claim *c)
{
  int64_t start;
  if (!c->saving && !c->bytes) return WEIR_OK;
  if (wr_starts_find(&x->starts, c->event, &start)) {
    keep_claim(x, c, start);
    return WEIR_OK;
  }
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
    if (!s) keep_claim(x, &c, start);
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
static uint64_t piece_of(const wr_claim_group *g, const wr_claimed *c)
{
  const uint64_t whole = capped_sum(c->saving, c->rest);
  return whole < g->least ? c->saving
                          : (uint64_t)((double)c->saving / (double)whole * (double)g->median);
}

/* All claims of an event are there. What no event has began apart from all others. */
static void end_event(claim_walk *w)
{
  wr_claims *x = w->claims;
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
    wr_gains_add(w->end->gains, w->end->rank[g->finding], (uint64_t)w->start, piece_of(g, c));
  }
  x->claimed_count = 0;
}

static weir_status take_claim(void *context, const void *record)
{
  claim_walk *w = context;
  wr_claims *x = w->claims;
  const claim_record *r = record;
  if (!x->group[r->group].finding) return WEIR_OK;
  if (r->event != w->event || r->start != w->start) {
    end_event(w);
    w->event = r->event, w->start = r->start, w->bytes = 0;
  }
  if (r->bytes > w->bytes) w->bytes = r->bytes;
  if (!r->saving) return WEIR_OK;
  if (!wr_grow(&x->claimed, &x->claimed_capacity, x->claimed_count + 1, sizeof(*x->claimed)))
    return no_memory();
  x->claimed[x->claimed_count++] = (wr_claimed){r->saving, r->rest, r->group};
  return WEIR_OK;
}

weir_status wr_claims_add_up(wr_claims *x, wr_claims_end *end)
{
  claim_walk w = {.claims = x, .end = end};
  x->no_time = WR_NO_TIME;
  weir_status s = place_others(x, end);
  if (!s && x->log.incomplete)
    s = weir_fail(WEIR_EIO, "no room for a temporary file: %s-runs", x->file);
  if (!s) s = wr_run_each(&x->log, take_claim, &w);
  end_event(&w);
  wr_run_drop(&x->log);
  return s;
}
