/* section_caches.c: what the caches did: how much came out of them and why not the rest, the waits,
 * the memory, staging; for people in sentences and tables, of which a summary has the sentences,
 * and in tables alone. */
#include <stdlib.h>
#include <string.h>
#include "reports/base/units.h"
#include "reports/base/util.h"
#include "reports/tables/build.h"
#include "reports/tables/sections.h"
#include "reports/whole/whole.h"

enum { POOLS_WHOLE = 40, POOLS_SUMMARY = 4 }; /* listed */

typedef struct caches_section {
  wr_tables *t;
  wr_named_table *to; /* what sentences follow */
  int width;          /* columns of text; 0: as many as it takes */
} caches_section;

#define LINE(x, ...) wr_table_after((x)->to, WR_PLAIN, __VA_ARGS__)

static const char *reason_text(unsigned reason)
{
  static const char *const texts[WR_REASONS] = {
      [WEIR_WHY_NONE] = "unknown",
      [WEIR_WHY_FIRST] = "the first of its size",
      [WEIR_WHY_IN_USE] = "all of its size in use",
      [WEIR_WHY_WAITING] = "one was freed, its work not complete",
      [WEIR_WHY_LIMIT] = "more cached than may be",
      [WEIR_WHY_DECAY] = "idle for too long",
      [WEIR_WHY_TRIM] = "the device was out of memory",
      [WEIR_WHY_CAPTURE] = "a stream capture was live",
      [WEIR_WHY_ERROR] = "the context has an error",
      [WEIR_WHY_NO_CACHE] = "no context, or no cache to be had",
      [WEIR_WHY_NO_MEMORY] = "no memory left, idle or not",
      [WEIR_WHY_ORDERED] = "freed in stream order",
      [WEIR_WHY_GRAPH] = "a graph may use it",
      [WEIR_WHY_IPC] = "shared with another process",
      [WEIR_WHY_HANDLE] = "exported as a handle",
      [WEIR_WHY_TOKEN] = "its peer tokens were asked for",
      [WEIR_WHY_ATTRIBUTE] = "an attribute of it was set",
      [WEIR_WHY_PEER] = "work of another context may use it",
      [WEIR_WHY_PENDING] = "with work under way",
      [WEIR_WHY_RULE] = "a rule of the user's"};
  return texts[reason] ? texts[reason] : wr_reason_name(reason);
}

static void tally_rows(wr_named_table *t, const wr_tally *list, const char *what)
{
  for (unsigned i = 0; i < WR_REASONS; i++) {
    if (!list[i].calls) continue;
    wr_table_row(t);
    wr_table_put_text(t, what);
    wr_table_put_text(t, reason_text(i));
    WR_PUT(t, list[i].calls, list[i].bytes, list[i].ns,
           (uint64_t)(list[i].first > 0 ? list[i].first : 0),
           (uint64_t)(list[i].last > 0 ? list[i].last : 0));
  }
}

static bool any_calls(const wr_tally *list)
{
  for (unsigned i = 0; i < WR_REASONS; i++)
    if (list[i].calls) return true;
  return false;
}

static void add_reasons(caches_section *x, const wr_cache *c)
{
  static const wr_column columns[] = {{"what", "what", WR_COLUMN_TEXT, WR_RIGID},
                                      {"why", "why", WR_COLUMN_TEXT, WR_FLEXIBLE},
                                      {"count", "count", WR_COLUMN_COUNT, 0},
                                      {"bytes", "bytes", WR_COLUMN_BYTES, WR_ZERO_DASH},
                                      {"host_ns", "host time", WR_COLUMN_HOST_NS, WR_ZERO_DASH},
                                      {"first_ns", "first", WR_COLUMN_MOMENT, 0},
                                      {"last_ns", "last", WR_COLUMN_MOMENT, 0}};
  if (!any_calls(c->missed) && !any_calls(c->left) && !any_calls(c->freed) &&
      !any_calls(c->given) && !any_calls(c->tainted))
    return;
  x->to = WR_TABLE(x->t, "cache_reasons", "Why", columns);
  wr_table_look(x->to, WR_JOINED);
  tally_rows(x->to, c->missed, "miss");
  tally_rows(x->to, c->left, "alloc by the driver");
  tally_rows(x->to, c->freed, "free by the driver");
  tally_rows(x->to, c->given, "given back");
  tally_rows(x->to, c->tainted, "never to be cached");
}

static void side_line(caches_section *x, const wr_cache *c, const wr_cache_side *s,
                      const char *what)
{
  if (!s->hits && !s->misses) return;
  LINE(x, "%s: %s of %s from a cache (%s), cached at most %s, %s at the end%s", what,
       COUNT(s->hits), COUNTED(s->hits + s->misses, "allocation"),
       wr_percent(s->hits, s->hits + s->misses).text, BYTES(s->cached_peak_bytes),
       s->cached_end_bytes ? BYTES(s->cached_end_bytes) : "0",
       c->ended > 1 ? "s of all processes" : "");
}

/* "miss because: the first of its size 3, all of its size in use 12" */
static void why_line(caches_section *x, const wr_tally *list, const char *what)
{
  char text[2048];
  size_t used = (size_t)snprintf(text, sizeof(text), "%s:", what), start = used;
  for (unsigned i = 0; i < WR_REASONS && used < sizeof(text); i++)
    if (list[i].calls)
      used += (size_t)snprintf(text + used, sizeof(text) - used, "%s %s %s",
                               used > start ? "," : "", reason_text(i), COUNT(list[i].calls));
  if (used > start) LINE(x, "%s", text);
}

static void add_free_waits(caches_section *x, const wr_cache *c)
{
  if (c->waits_kept)
    LINE(x, "waits: %s host time in %s%s", DURATION(c->waits_kept_ns),
         COUNTED(c->waits_kept, "free"),
         strcmp(c->mode, "strict") ? "" : ", which relaxed would not have waited");
  if (c->waits_avoided)
    LINE(x, "waits: %s did not wait for work under way", COUNTED(c->waits_avoided, "free"));
}

static void add_staging(caches_section *x, const wr_staging *s, const char *what, bool peers)
{
  bool any_copy = s->copies || s->left_copies;
  if (any_copy && peers) /* a call is over before its copy is, and tells no speed */
    LINE(x, "%s: %s staged (%s), %s by the driver (%s)", what, COUNT(s->copies), BYTES(s->bytes),
         COUNT(s->left_copies), BYTES(s->left_bytes));
  else if (any_copy)
    LINE(x, "%s, pageable, by host time: %s staged (%s at %s), %s by the driver (%s at %s)", what,
         COUNT(s->copies), BYTES(s->bytes), wr_speed(s->bytes, s->ns).text, COUNT(s->left_copies),
         BYTES(s->left_bytes), wr_speed(s->left_timed_bytes, s->left_timed_ns).text);
  if (s->was_measured && s->percent)
    LINE(x, "%s: staging was measured at %.2f times the driver's speed%s", what,
         (double)s->percent / 100, s->earlier ? ", by an earlier program" : "");
  else if (s->was_measured)
    LINE(x, "%s: staging could not be measured, and is left off", what);
}

/* "function  file:line": the latter is never cut. */
static void put_where(wr_named_table *t, const char *words)
{
  const char *kept = words + strlen(words);
  for (const char *at = words; (at = strstr(at, "  ")); at++)
    kept = at;
  char *head = wr_format("%.*s", (int)(kept - words), words);
  wr_table_put_kept(t, head ? head : "", kept);
  free(head);
}

static void add_unwritten(caches_section *x, const wr_cache *c, bool whole)
{
  static const wr_column columns[] = {{"copies", "copies", WR_COLUMN_COUNT, 0},
                                      {"bytes", "bytes", WR_COLUMN_BYTES, 0},
                                      {"first_block", "first in block", WR_COLUMN_NUMBER, 0},
                                      {"first_offset", "at", WR_COLUMN_NUMBER, 0},
                                      {"first_bytes", "bytes", WR_COLUMN_ID, 0},
                                      {"place", "copied in", WR_COLUMN_TEXT, WR_FLEXIBLE}};
  if (!c->unwritten_copies) return;
  LINE(x, "uninitialised: %s to the host brought back %s that nothing had written",
       OF(c->unwritten_copies, "copy", "copies"), BYTES(c->unwritten_bytes));
  if (!whole) return;
  x->to = WR_TABLE(x->t, "uninitialised", "Uninitialised", columns);
  wr_table_look(x->to, WR_JOINED | WR_QUIET);
  for (size_t i = 0; i < c->unwritten_count; i++) {
    const wr_unwritten *u = &c->unwritten[i];
    wr_table_row(x->to);
    WR_PUT(x->to, u->copies, u->bytes);
    wr_table_put_words(x->to, "0x%llx", (unsigned long long)u->block);
    wr_table_put_words(x->to, "+%llu", (unsigned long long)u->offset);
    wr_table_put(x->to, u->first);
    put_where(x->to, u->where);
  }
  if (c->unwritten_places > c->unwritten_count)
    LINE(x, "… in %s", COUNTED(c->unwritten_places - c->unwritten_count, "more place"));
}

static uint64_t bar_top(const wr_cache *c)
{
  uint64_t top = 0;
  for (int i = 0; i < WR_CURVE; i++)
    if (c->curve[i] > top) top = c->curve[i];
  return top;
}

/* Device memory cached, from the run's begin to its end, in eighths of the highest. */
static void add_curve(caches_section *x, const wr_cache *c)
{
  static const char *const blocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  uint64_t top = bar_top(c);
  char text[4 * WR_CURVE + 64];
  int slices = x->width > 0 && x->width < WR_CURVE + 12 ? 50 : WR_CURVE;
  if (slices == 50 && x->width < 62) slices = 25;
  if (!top) return;
  size_t used = (size_t)snprintf(text, sizeof(text), "cached ");
  for (int i = 0; i < slices; i++) {
    uint64_t most = 0;
    for (int k = i * WR_CURVE / slices; k < (i + 1) * WR_CURVE / slices; k++)
      if (c->curve[k] > most) most = c->curve[k];
    double height = (double)most * 8 / (double)top;
    int level = most && height < 1 ? 1 : (int)height;
    used += (size_t)snprintf(text + used, sizeof(text) - used, "%s", blocks[level]);
  }
  LINE(x, "%s", text);
}

static void put_pool(wr_named_table *t, const wr_pool *x)
{
  wr_table_row(t);
  if (x->device < 0)
    wr_table_put_words(t, "?");
  else
    wr_table_put(t, (uint64_t)x->device);
  if (x->from_start)
    wr_table_put_text(t, "default");
  else
    wr_table_put_words(t, "0x%llx%s", (unsigned long long)x->handle, x->ended ? ", destroyed" : "");
  WR_PUT(t, x->reserved, x->reserved_peak, x->used, x->used_peak, wr_pool_keeps(x));
}

/* The driver's own, which are left to it in every mode. */
static void add_pools(caches_section *x, const wr_cache *c, size_t most)
{
  static const wr_column columns[] = {
      {"device", "device", WR_COLUMN_ID, 0},
      {"pool", "pool", WR_COLUMN_TEXT, WR_FLEXIBLE},
      {"reserved_bytes", "reserved", WR_COLUMN_BYTES, WR_ZERO_PLAIN},
      {"reserved_peak_bytes", "at most", WR_COLUMN_BYTES, WR_ZERO_PLAIN},
      {"used_bytes", "in use", WR_COLUMN_BYTES, WR_ZERO_PLAIN},
      {"used_peak_bytes", "at most", WR_COLUMN_BYTES, WR_ZERO_PLAIN},
      {"keeps_idle_most_bytes", "keeps idle at most", WR_COLUMN_BYTES, WR_ZERO_PLAIN}};
  if (!c->pool_count) return;
  x->to = WR_TABLE(x->t, "pools", "Pools", columns);
  wr_table_look(x->to, WR_JOINED);
  wr_table_before(x->to, WR_PLAIN, "stream-ordered pools (cudaMallocAsync), the driver's own:");
  for (size_t i = 0; i < c->pool_count && i < most; i++)
    put_pool(x->to, &c->pools[i]);
  if (c->pool_count > most)
    LINE(x, "and %s", OF(c->pool_count - most, "smaller one", "smaller ones"));
}

void wr_section_caches(wr_tables *t, const wr_cache *c, const report_settings *o, bool whole)
{
  char title[32];
  const wr_cache_side *d = &c->side[WR_CACHE_DEVICE], *h = &c->side[WR_CACHE_PINNED];
  (void)snprintf(title, sizeof(title), "Caches, %s", c->mode);
  caches_section section = {t, wr_tables_add_sentences(t, "caches", title),
                            o->width > 0 && o->width < 40 ? 40 : o->width},
                 *x = &section;
  if (!c->rerouted) {
    wr_table_aside(x->to, "the program's memory was not rerouted");
    add_pools(x, c, whole ? POOLS_WHOLE : POOLS_SUMMARY);
    return;
  }
  if (!d->hits && !d->misses && !h->hits && !h->misses)
    LINE(x, "no allocation went through a cache");
  add_unwritten(x, c, whole);
  side_line(x, c, d, "device");
  side_line(x, c, h, "host, pinned");
  if (whole)
    add_curve(x, c);
  else
    why_line(x, c->missed, "misses");
  if (!whole) why_line(x, c->left, "left to the driver");
  if (c->kept_calls)
    LINE(x, "%s answered with events, streams and properties that were kept",
         OF(c->kept_calls, "call was", "calls were"));
  add_free_waits(x, c);
  add_staging(x, &c->staging[0], "host → device", false);
  add_staging(x, &c->staging[1], "device → host", false);
  add_staging(x, &c->staging[2], "device → device", true);
  if (whole)
    add_reasons(x, c);
  else
    why_line(x, c->given, "given back");
  if (!whole) why_line(x, c->tainted, "never to be cached");
  add_pools(x, c, whole ? POOLS_WHOLE : POOLS_SUMMARY);
}

/* ---- in tables alone ------------------------------------------------------------------------- */

static void put_reasons(wr_named_table *t, const char *what, const wr_tally tally[WR_REASONS])
{
  for (unsigned i = 0; i < WR_REASONS; i++) {
    if (!tally[i].calls) continue;
    wr_table_row(t);
    wr_table_put_text(t, what);
    wr_table_put_text(t, wr_reason_name(i));
    WR_PUT(t, tally[i].calls, tally[i].bytes, tally[i].ns, (uint64_t)tally[i].first,
           (uint64_t)tally[i].last);
  }
}

static void add_reason_table(const wr_build *b, const wr_cache *c)
{
  static const wr_column columns[] = {{"what", "what", WR_COLUMN_TEXT, 0},
                                      {"reason", "reason", WR_COLUMN_TEXT, 0},
                                      {"count", "count", WR_COLUMN_COUNT, 0},
                                      {"bytes", "bytes", WR_COLUMN_BYTES, 0},
                                      {"host_ns", "host time", WR_COLUMN_HOST_NS, 0},
                                      {"first_ns", "first", WR_COLUMN_MOMENT, WR_IN_JSON},
                                      {"last_ns", "last", WR_COLUMN_MOMENT, WR_IN_JSON}};
  static const wr_column waits[] = {{"what", "what", WR_COLUMN_TEXT, 0},
                                    {"count", "count", WR_COLUMN_COUNT, 0},
                                    {"host_ns", "host time", WR_COLUMN_HOST_NS, 0}};
  wr_named_table *t = WR_RUN_TABLE(b->t, "reasons", "Why", columns);
  put_reasons(t, "allocation missed", c->missed);
  put_reasons(t, "allocation left to the driver", c->left);
  put_reasons(t, "free left to the driver", c->freed);
  put_reasons(t, "given back", c->given);
  put_reasons(t, "never cached", c->tainted);
  t = WR_RUN_TABLE(b->t, "free_waits", "Waits in frees", waits);
  wr_table_row(t);
  wr_table_put_text(t, "kept");
  WR_PUT(t, c->waits_kept, c->waits_kept_ns);
  wr_table_row(t);
  wr_table_put_text(t, "avoided");
  wr_table_put(t, c->waits_avoided);
  wr_table_put_none(t);
}

/* What they did together. */
static void add_together(const wr_build *b, const wr_cache *c)
{
  static const wr_column columns[] = {
      {"mode", "mode", WR_COLUMN_TEXT, 0},
      {"hits", "hits", WR_COLUMN_COUNT, 0},
      {"misses", "misses", WR_COLUMN_COUNT, 0},
      {"share_of_hits", "of both", WR_COLUMN_SHARE, 0},
      {"frees_kept", "frees kept", WR_COLUMN_COUNT, 0},
      {"waits_kept", "frees that waited", WR_COLUMN_COUNT, 0},
      {"waits_kept_host_ns", "host time in them", WR_COLUMN_HOST_NS, 0},
      {"waits_avoided", "waits avoided", WR_COLUMN_COUNT, 0},
      {"held_peak_bytes", "most live and cached", WR_COLUMN_BYTES, 0},
      {"uninitialised_copies", "copies of memory not written", WR_COLUMN_COUNT, 0},
      {"uninitialised_bytes", "not written", WR_COLUMN_BYTES, 0},
      {"curve_slice_ns", "a slice of the curve", WR_COLUMN_NUMBER, WR_IN_DATA}};
  const wr_cache_side *d = &c->side[WR_CACHE_DEVICE], *p = &c->side[WR_CACHE_PINNED];
  uint64_t hits = d->hits + p->hits, misses = d->misses + p->misses;
  wr_named_table *t = WR_RUN_TABLE(b->t, "cache", "The caches", columns);
  wr_table_look(t, WR_DETAIL | WR_OBJECT);
  wr_table_row(t);
  wr_table_put_text(t, c->mode);
  WR_PUT(t, hits, misses);
  wr_table_put_share(t, hits, hits + misses);
  WR_PUT(t, c->kept_frees, c->waits_kept, c->waits_kept_ns, c->waits_avoided, c->held_peak_bytes,
         c->unwritten_copies, c->unwritten_bytes, c->end_ns / WR_CURVE);
}

/* A copy between devices is over when its call is not: such calls tell no speed. */
static void put_staging(wr_named_table *t, const char *direction, const wr_staging *s, bool timed)
{
  wr_table_row(t);
  wr_table_put_text(t, direction);
  WR_PUT(t, s->copies, s->bytes, s->ns);
  wr_table_put_speed(t, s->bytes, timed ? s->ns : 0);
  WR_PUT(t, s->left_copies, s->left_bytes, s->left_ns);
  wr_table_put_speed(t, s->left_timed_bytes, timed ? s->left_timed_ns : 0);
  wr_table_put_share(t, s->percent, s->was_measured && s->percent ? 100 : 0);
  wr_table_put_text(t, !s->was_measured ? NULL
                       : s->earlier     ? "an earlier program"
                                        : "this program");
}

static void add_staging_table(const wr_build *b, const wr_cache *c)
{
  static const wr_column columns[] = {
      {"direction", "direction", WR_COLUMN_TEXT, 0},
      {"copies", "staged", WR_COLUMN_COUNT, 0},
      {"bytes", "bytes", WR_COLUMN_BYTES, 0},
      {"host_ns", "host time", WR_COLUMN_HOST_NS, 0},
      {"bytes_per_second", "speed", WR_COLUMN_SPEED, 0},
      {"left_copies", "the driver's", WR_COLUMN_COUNT, 0},
      {"left_bytes", "bytes", WR_COLUMN_BYTES, 0},
      {"left_host_ns", "host time", WR_COLUMN_HOST_NS, 0},
      {"left_bytes_per_second", "speed", WR_COLUMN_SPEED, 0},
      {"share_of_driver", "driver's time by staging's", WR_COLUMN_SHARE, 0},
      {"measured_by", "measured by", WR_COLUMN_TEXT, 0}};
  wr_named_table *t = WR_RUN_TABLE(b->t, "staging", "Staged copies", columns);
  wr_table_look(t, WR_DETAIL);
  put_staging(t, "h2d", &c->staging[0], true);
  put_staging(t, "d2h", &c->staging[1], true);
  put_staging(t, "p2p", &c->staging[2], false);
}

static void add_unwritten_places(const wr_build *b, const wr_cache *c)
{
  static const wr_column columns[] = {{"copies", "copies", WR_COLUMN_COUNT, 0},
                                      {"bytes", "not written", WR_COLUMN_BYTES, 0},
                                      {"first_ns", "first", WR_COLUMN_MOMENT, 0},
                                      {"first_block", "in block", WR_COLUMN_ID, 0},
                                      {"first_offset_bytes", "at", WR_COLUMN_BYTES, 0},
                                      {"first_bytes", "first", WR_COLUMN_BYTES, 0},
                                      {"site", "called in", WR_COLUMN_TEXT, 0}};
  wr_named_table *t =
      WR_RUN_TABLE(b->t, "uninitialised", "Copies of memory that nobody had written", columns);
  wr_table_look(t, WR_DETAIL);
  for (size_t i = 0; i < c->unwritten_count; i++) {
    const wr_unwritten *u = &c->unwritten[i];
    wr_table_row(t);
    WR_PUT(t, u->copies, u->bytes, (uint64_t)u->time, u->block, u->offset, u->first);
    wr_table_put_text(t, u->where);
  }
}

static void add_curve_table(const wr_build *b, const wr_cache *c)
{
  static const wr_column columns[] = {{"cached_peak_bytes", "most cached", WR_COLUMN_BYTES, 0}};
  wr_named_table *t =
      WR_RUN_TABLE(b->t, "cache_curve", "Cached, by hundredths of the run", columns);
  wr_table_look(t, WR_DETAIL);
  for (int i = 0; c->rerouted && i < WR_CURVE; i++) {
    wr_table_row(t);
    wr_table_put(t, c->curve[i]);
  }
}

void wr_add_cache(const wr_build *b, const wr_cache *c)
{
  if (c->rerouted) add_reason_table(b, c);
  add_together(b, c);
  add_staging_table(b, c);
  add_unwritten_places(b, c);
  add_curve_table(b, c);
}

weir_status wr_build_cache(const wr_build *b)
{
  wr_cache c = {0};
  weir_status s = wr_whole_cache(&c, b->db);
  if (s) return s;
  if (!c.rerouted) wr_tables_note(b->t, "No process was run with Weir's caches.");
  wr_build_caches(b, &c);
  wr_add_cache(b, &c);
  wr_cache_free(&c);
  return s;
}
