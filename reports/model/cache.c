/* cache.c: see cache.h. One pass over the allocations, frees and CACHE events in order, one sum
 * over the copies. A trace whose processes were all observed is not read at all. */
#include "reports/model/cache.h"
#include <stdlib.h>
#include <string.h>
#include "reports/import/lifetime.h"
#include "reports/model/sites.h"
#include "core/base/map.h"
#include "reports/base/util.h"

/* No kinds of events: a process has ended; NVML was asked. */
enum { KEPT = WEIR_EVF_CACHED, ENDED = 255, ASKED = 254 };

typedef struct fact {
  int64_t process, context, time, pointer;
  uint64_t b, bytes, ns;
  unsigned kind, flags, reason, mem;
  int device; /* -1: none */
} fact;

/* What is known of an address; the latest block there. */
typedef struct place {
  int64_t process, context;
  uint64_t bytes;
  int device;
  enum { NOTHING, LIVE, CACHED } state;
  bool host; /* page-locked */
} place;

typedef struct pass {
  wr_cache *c;
  const wr_db *db;
  hash_map by_pointer; /* process and pointer -> index in `places`, plus 1 */
  place *places;
  size_t count, capacity;
  hash_map per_process;     /* process -> 1: it has places */
  uint64_t live, cached[2]; /* bytes now; device, page-locked */
  uint64_t cached_on[256];  /* of `cached`, by device */
  size_t cached_at_capacity;
  uint64_t kept[2]; /* what was cached when its process ended */
  int64_t now;      /* of the event before */
  int64_t settling; /* end of the latest free into a cache */
} pass;

const char *wr_reason_name(unsigned reason)
{
  static const char *const names[WR_REASONS] = {"none",
#define NAME(id, value, text) [value] = text,
                                                WEIR_REASON_MAP(NAME)
#undef NAME
  };
  return reason < WR_REASONS ? names[reason] : "none";
}

static void count_fact(wr_tally *list, uint64_t reason, const fact *e)
{
  wr_tally *t = &list[reason < WR_REASONS ? reason : 0];
  if (!t->calls++) t->first = e->time;
  t->last = e->time;
  t->bytes += e->bytes;
  t->ns += e->ns;
}

/* ---- memory at a moment ---------------------------------------------------------------------- */

static place *place_of(pass *p, const fact *e, bool make)
{
  uint64_t key = hash_mix((uint64_t)e->process, (uint64_t)e->pointer);
  uint64_t *known = hash_map_get(&p->by_pointer, key);
  if (known) return &p->places[*known - 1];
  if (!make || !wr_grow(&p->places, &p->capacity, p->count + 1, sizeof(place))) return NULL;
  uint64_t *has = hash_map_place(&p->per_process, (uint64_t)e->process, NULL);
  known = hash_map_place(&p->by_pointer, key, NULL);
  if (!known || !has) return NULL;
  *has = 1;
  p->places[p->count] = (place){.process = e->process};
  *known = ++p->count;
  return &p->places[p->count - 1];
}

static void change_cached(pass *p, const place *x, uint64_t by)
{
  p->cached[x->host] += by;
  if (!x->host && x->device >= 0 && x->device < 256) p->cached_on[x->device] += by;
}

static void clear_place(pass *p, place *x)
{
  if (x->state == CACHED) change_cached(p, x, -x->bytes);
  if (x->state == LIVE && !x->host) p->live -= x->bytes;
  x->state = NOTHING;
}

/* What is held now, since the event before and up to `until`. */
static void settle_until(pass *p, int64_t until)
{
  wr_cache *c = p->c;
  uint64_t device = p->cached[WR_CACHE_DEVICE], held = p->live + device;
  for (int i = 0; i < 2; i++) {
    wr_cache_side *s = &c->side[i];
    s->cached_end_bytes = p->kept[i] + p->cached[i];
    if (p->cached[i] <= s->cached_peak_bytes) continue;
    s->cached_peak_bytes = p->cached[i];
    s->cached_peak_at_ns = p->now > 0 ? (uint64_t)p->now : 0;
  }
  if (held > c->held_peak_bytes) c->held_peak_bytes = held;
  if (!c->end_ns || p->now < 0 || until < p->now) return;
  double scale = WR_CURVE / (double)c->end_ns;
  size_t end = (size_t)((double)until * scale);
  for (size_t i = (size_t)((double)p->now * scale); i <= end && i < WR_CURVE; i++)
    if (device > c->curve[i]) c->curve[i] = device;
}

static weir_status set_place(pass *p, const fact *e, int state)
{
  place *x = place_of(p, e, true);
  if (!x) return wr_db_out_of_memory(p->db);
  bool host = state == CACHED && x->state != NOTHING ? x->host : e->mem == WEIR_MEM_PINNED;
  int device = x->state != NOTHING && e->device < 0 ? x->device : e->device;
  clear_place(p, x);
  *x = (place){e->process, e->context, e->bytes, device, state, host};
  if (state == CACHED) change_cached(p, x, e->bytes);
  if (state == LIVE && !host) p->live += e->bytes;
  return WEIR_OK;
}

static void forget_place(pass *p, const fact *e)
{
  place *x = place_of(p, e, false);
  if (x) clear_place(p, x);
}

/* A device (bytes 0), or one context, is gone, and with it what it had. */
static void reset_context(pass *p, const fact *e)
{
  for (size_t i = 0; i < p->count; i++) {
    place *x = &p->places[i];
    if (x->process != e->process) continue;
    bool primary =
        !e->pointer || !x->context || x->context == UINT8_MAX || x->context == e->pointer;
    if (e->bytes == 1 ? e->context && x->context == e->context : x->device == e->device && primary)
      clear_place(p, x);
  }
}

/* A process is gone, its caches with it. */
static void end_process(pass *p, const fact *e)
{
  if (!hash_map_get(&p->per_process, (uint64_t)e->process)) return;
  p->c->ended++;
  for (size_t i = 0; i < p->count; i++) {
    place *x = &p->places[i];
    if (x->process != e->process) continue;
    if (x->state == CACHED) p->kept[x->host] += x->bytes;
    clear_place(p, x);
  }
}

/* ---- the pass -------------------------------------------------------------------------------- */

static weir_status take_alloc(pass *p, const fact *e)
{
  wr_cache *c = p->c;
  wr_cache_side *s = &c->side[e->mem == WEIR_MEM_PINNED];
  if (e->flags & KEPT) {
    s->hits++, s->hit_bytes += e->bytes;
  } else if (e->reason >= WEIR_WHY_CAPTURE) {
    count_fact(c->left, e->reason, e);
  } else if (e->reason) {
    s->misses++, s->miss_bytes += e->bytes;
    count_fact(c->missed, e->reason, e);
  }
  bool memory =
      e->mem == WEIR_MEM_PINNED || (wr_mem_device_side((int)e->mem) && e->mem != WEIR_MEM_ARRAY);
  return memory && e->pointer ? set_place(p, e, LIVE) : WEIR_OK;
}

static weir_status take_free(pass *p, const fact *e)
{
  wr_cache *c = p->c;
  if (e->b) c->waits_kept++, c->waits_kept_ns += e->b;
  if (!(e->flags & KEPT)) {
    if (e->reason) count_fact(c->freed, e->reason, e);
    forget_place(p, e);
    return WEIR_OK;
  }
  c->kept_frees++, c->kept_bytes += e->bytes;
  if (e->reason == WEIR_WHY_PENDING && !e->b) c->waits_avoided++;
  p->settling = e->time + (int64_t)e->ns;
  return set_place(p, e, CACHED);
}

/* NULL: copies of this kind are never staged. */
static wr_staging *staging_of(wr_cache *c, int64_t kind)
{
  return kind == WEIR_COPY_HTOD   ? &c->staging[0]
         : kind == WEIR_COPY_DTOH ? &c->staging[1]
         : kind == WEIR_COPY_PTOP ? &c->staging[2]
                                  : NULL;
}

static void take_staging(wr_cache *c, const fact *e)
{
  wr_staging *s = staging_of(c, e->pointer);
  if (!s) return;
  s->percent = e->b;
  s->was_measured = true;
  s->earlier = !e->bytes;
}

static weir_status take_device_sample(pass *p, const fact *e)
{
  wr_cache *c = p->c;
  if (e->device < 0 || e->device > 255) return WEIR_OK;
  if (!wr_grow(&c->cached_at, &p->cached_at_capacity, c->cached_at_count + 1, sizeof *c->cached_at))
    return wr_db_out_of_memory(p->db);
  c->cached_at[c->cached_at_count++] =
      (struct wr_cached_at){e->time, p->cached_on[e->device], e->device};
  return WEIR_OK;
}

static void take_cache(pass *p, const fact *e)
{
  switch (e->reason) { /* the fact; its reason is b */
  case WEIR_CACHE_GIVEN_BACK:
    count_fact(p->c->given, e->b, e);
    forget_place(p, e);
    break;
  case WEIR_CACHE_TAINTED:
    count_fact(p->c->tainted, e->b, e);
    break;
  case WEIR_CACHE_STAGING:
    take_staging(p->c, e);
    break;
  default: /* a newer writer's */
    break;
  }
}

static weir_status take_cache_row(void *context, sqlite3_stmt *q)
{
  pass *p = context;
  fact e = {.kind = (unsigned)sqlite3_column_int(q, 0),
            .time = sqlite3_column_int64(q, 1),
            .process = sqlite3_column_int64(q, 2),
            .context = sqlite3_column_int64(q, 3),
            .pointer = sqlite3_column_int64(q, 5),
            .b = (uint64_t)sqlite3_column_int64(q, 6),
            .bytes = (uint64_t)sqlite3_column_int64(q, 7),
            .flags = (unsigned)sqlite3_column_int(q, 8),
            .reason = (unsigned)sqlite3_column_int(q, 9),
            .mem = (unsigned)sqlite3_column_int(q, 10),
            .ns = (uint64_t)sqlite3_column_int64(q, 11)};
  e.device = sqlite3_column_type(q, 4) == SQLITE_NULL ? -1 : sqlite3_column_int(q, 4);
  weir_status s = WEIR_OK;
  /* What a free pushes out of a cache goes within that free's call: it never was too much. */
  bool within = e.kind == WEIR_EV_CACHE && e.time <= p->settling;
  if (!within) settle_until(p, e.time);
  p->now = e.time;
  if (e.kind == WEIR_EV_ALLOC) s = take_alloc(p, &e);
  if (e.kind == WEIR_EV_FREE) s = take_free(p, &e);
  if (e.kind == WEIR_EV_RESET) reset_context(p, &e);
  if (e.kind == WEIR_EV_CACHE) take_cache(p, &e);
  if (e.kind == WEIR_EV_CACHE && e.reason == WEIR_CACHE_DEVICE) s = take_device_sample(p, &e);
  if (e.kind == ASKED) s = take_device_sample(p, &e);
  if (e.kind == ENDED) end_process(p, &e);
  return s;
}

#define FACTS                                                                                      \
  "SELECT kind, CASE WHEN kind = 2 THEN start ELSE \"end\" END AS t, process, context, device,"    \
  " a, b, bytes, flags, copy, mem, \"end\" - start, id FROM event WHERE kind IN (1, 2, 10, 13)"    \
  " AND status = 0 AND NOT (flags & 16) UNION ALL"                                                 \
  " SELECT 255, \"end\", id, 0, NULL, 0, 0, 0, 0, 0, 0, 0, 9223372036854775807 FROM process"       \
  " WHERE \"end\" IS NOT NULL"
#define ASKED_NVML                                                                                 \
  " UNION ALL SELECT 254, time_ns, 0, 0, device, 0, 0, 0, 0, 0, 0, 0, 9223372036854775806"         \
  " FROM device_usage"
#define BY_TIME " ORDER BY t, id"

static weir_status walk_facts(pass *p)
{
  bool nvml = wr_db_has_table(p->db, "nvml_sample");
  weir_status s =
      wr_db_each(p->db, nvml ? FACTS ASKED_NVML BY_TIME : FACTS BY_TIME, take_cache_row, p);
  if (!s) settle_until(p, (int64_t)p->c->end_ns);
  return s;
}

static weir_status take_copies(void *context, sqlite3_stmt *q)
{
  wr_cache *c = context;
  wr_staging *s = staging_of(c, sqlite3_column_int64(q, 0));
  uint64_t n[5];
  if (!s) return WEIR_OK;
  for (int i = 0; i < 5; i++)
    n[i] = (uint64_t)sqlite3_column_int64(q, 2 + i);
  if (sqlite3_column_int(q, 1))
    s->copies = n[0], s->bytes = n[1], s->ns = n[2];
  else
    s->left_copies = n[0], s->left_bytes = n[1], s->left_ns = n[2], s->left_timed_bytes = n[3],
    s->left_timed_ns = n[4];
  return WEIR_OK;
}

/* 1 h2d, 2 d2h, 10 p2p; 1 pageable; 1048576: what is smaller is never staged; flags 3: 2 without 1,
 * a call that lasts as long as its copy */
static const char copies_sql[] =
    "SELECT copy, flags & 128 AS staged, count(*), sum(bytes), sum(\"end\" - start),"
    " sum((flags & 3 = 2) * bytes), sum((flags & 3 = 2) * (\"end\" - start)) FROM event"
    " WHERE kind = 3 AND status = 0 AND NOT (flags & 16) AND copy IN (1, 2, 10) AND (flags & 128"
    " OR (bytes >= 1048576 AND CASE copy WHEN 1 THEN src_mem WHEN 2 THEN mem ELSE 1"
    " END = 1)) GROUP BY 1, 2";

static weir_status take_mode(void *context, sqlite3_stmt *q)
{
  wr_cache *c = context;
  const char *mode = (const char *)sqlite3_column_text(q, 0);
  c->rerouted = true;
  c->mode = mode && !strcmp(mode, "relaxed") ? "relaxed" : "strict";
  return WEIR_OK;
}

/* ---- poison ---------------------------------------------------------------------------------- */

typedef struct namer {
  wr_cache *c;
  wr_symbols *symbols;
} namer;

static weir_status take_unwritten(void *context, sqlite3_stmt *q)
{
  namer *n = context;
  wr_cache *c = n->c;
  wr_unwritten u = {.copies = (uint64_t)sqlite3_column_int64(q, 1),
                    .bytes = (uint64_t)sqlite3_column_int64(q, 2),
                    .time = sqlite3_column_int64(q, 3),
                    .block = (uint64_t)sqlite3_column_int64(q, 4),
                    .offset = (uint64_t)sqlite3_column_int64(q, 5),
                    .first = (uint64_t)sqlite3_column_int64(q, 6)};
  c->unwritten_places++;
  c->unwritten_copies += u.copies;
  c->unwritten_bytes += u.bytes;
  if (c->unwritten_count == WR_UNWRITTEN) return WEIR_OK;
  weir_status s = wr_site_words(n->symbols, sqlite3_column_int64(q, 0), &u.where);
  if (!s) c->unwritten[c->unwritten_count++] = u;
  return s;
}

/* Of each place the earliest copy: SQLite takes bare columns from the row of the minimum. */
static weir_status load_unwritten(wr_cache *c, const wr_db *db)
{
  namer n = {.c = c};
  weir_status s = wr_symbols_open(&n.symbols, db);
  if (s) return s;
  s = wr_db_each(
      db,
      "SELECT ifnull(stack, 0), count(*), sum(bytes), min(start), a, b, bytes FROM rare_event"
      " WHERE kind = 13 AND copy = 4 GROUP BY 1 ORDER BY 4",
      take_unwritten, &n);
  wr_symbols_close(n.symbols);
  return s;
}

void wr_cache_free(wr_cache *c)
{
  for (size_t i = 0; i < c->unwritten_count; i++)
    free(c->unwritten[i].where);
  c->unwritten_count = 0;
  free(c->cached_at);
  c->cached_at = NULL;
  c->cached_at_count = 0;
  free(c->pools);
  c->pools = NULL;
  c->pool_count = 0;
}

static weir_status load_kept_calls(wr_cache *c, const wr_db *db)
{
  int64_t calls = 0;
  weir_status s = wr_db_number(
      db,
      db->schema < 2 ? "SELECT 0"
                     : "SELECT count(*) FROM (SELECT 1 FROM template WHERE kind IN (7, 8, 12) AND"
                       " flags & 64 LIMIT 1) CROSS JOIN event_row e CROSS JOIN template t ON t.id ="
                       " e.template WHERE t.kind IN (7, 8, 12) AND t.flags & 64",
      &calls);
  c->kept_calls = (uint64_t)calls;
  return s;
}

weir_status wr_cache_load(wr_cache *c, const wr_db *db)
{
  *c = (wr_cache){.mode = "observe"};
  pass p = {.c = c, .db = db};
  weir_status s = wr_db_each(
      db, "SELECT mode FROM process WHERE mode IN ('strict', 'relaxed') ORDER BY events, id",
      take_mode, c);
  if (!s) s = wr_pools_load(c, db);
  if (s || !c->rerouted) return s;
  int64_t end = 0;
  s = wr_db_number(db,
                   db->schema < 2 ? "SELECT max(\"end\") FROM event"
                                  : "SELECT max(start + duration) FROM event_row",
                   &end);
  c->end_ns = (uint64_t)end;
  if (!s) s = walk_facts(&p);
  if (!s) s = wr_db_each(db, copies_sql, take_copies, c);
  if (!s) s = load_unwritten(c, db);
  if (!s) s = load_kept_calls(c, db);
  hash_map_free(&p.by_pointer);
  hash_map_free(&p.per_process);
  free(p.places);
  return s;
}
