/* cache_text.c: what the caches did, as text: how much came out of them and why not the rest, the
 * waits, the memory, staging. In a summary the lines, in a report of its own the tables as well. */
#include <stdlib.h>
#include <string.h>
#include "reports/render/cache_render.h"
#include "reports/base/util.h"

enum { POOLS_WHOLE = 40, POOLS_SUMMARY = 4 }; /* listed */

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

static void tally_rows(wr_page *p, const wr_tally *list, const char *what)
{
  for (unsigned i = 0; i < WR_REASONS; i++) {
    if (!list[i].calls) continue;
    ROW(p, what, reason_text(i), COUNT(list[i].calls), list[i].bytes ? BYTES(list[i].bytes) : "-",
        list[i].ns ? DURATION(list[i].ns) : "-",
        DURATION((uint64_t)(list[i].first > 0 ? list[i].first : 0)),
        DURATION((uint64_t)(list[i].last > 0 ? list[i].last : 0)));
  }
}

static bool any_calls(const wr_tally *list)
{
  for (unsigned i = 0; i < WR_REASONS; i++)
    if (list[i].calls) return true;
  return false;
}

static void print_reasons(wr_page *p, const wr_cache *c)
{
  if (!any_calls(c->missed) && !any_calls(c->left) && !any_calls(c->freed) &&
      !any_calls(c->given) && !any_calls(c->tainted))
    return;
  wr_page_begin(p, "lfrrrrr");
  ROW(p, "what", "why", "count", "bytes", "host time", "first", "last");
  tally_rows(p, c->missed, "miss");
  tally_rows(p, c->left, "alloc by the driver");
  tally_rows(p, c->freed, "free by the driver");
  tally_rows(p, c->given, "given back");
  tally_rows(p, c->tainted, "never to be cached");
  wr_page_end(p);
}

static void side_line(wr_page *p, const wr_cache *c, const wr_cache_side *s, const char *what)
{
  if (!s->hits && !s->misses) return;
  LINE(p, false, "%s: %s of %s from a cache (%s), cached at most %s, %s at the end%s", what,
       COUNT(s->hits), COUNTED(s->hits + s->misses, "allocation"),
       wr_percent(s->hits, s->hits + s->misses).text, BYTES(s->cached_peak_bytes),
       s->cached_end_bytes ? BYTES(s->cached_end_bytes) : "0",
       c->ended > 1 ? "s of all processes" : "");
}

/* "miss because: the first of its size 3, all of its size in use 12" */
static void why_line(wr_page *p, const wr_tally *list, const char *what)
{
  char text[2048];
  size_t used = (size_t)snprintf(text, sizeof(text), "%s:", what), start = used;
  for (unsigned i = 0; i < WR_REASONS && used < sizeof(text); i++)
    if (list[i].calls)
      used += (size_t)snprintf(text + used, sizeof(text) - used, "%s %s %s",
                               used > start ? "," : "", reason_text(i), COUNT(list[i].calls));
  if (used > start) wr_page_line(p, false, text);
}

static void print_waits(wr_page *p, const wr_cache *c)
{
  if (c->waits_kept)
    LINE(p, false, "waits: %s host time in %s%s", DURATION(c->waits_kept_ns),
         COUNTED(c->waits_kept, "free"),
         strcmp(c->mode, "strict") ? "" : ", which relaxed would not have waited");
  if (c->waits_avoided)
    LINE(p, false, "waits: %s did not wait for work under way", COUNTED(c->waits_avoided, "free"));
}

static void print_staging(wr_page *p, const wr_staging *s, const char *what, bool peers)
{
  bool any_copy = s->copies || s->left_copies;
  if (any_copy && peers) /* a call is over before its copy is, and tells no speed */
    LINE(p, false, "%s: %s staged (%s), %s by the driver (%s)", what, COUNT(s->copies),
         BYTES(s->bytes), COUNT(s->left_copies), BYTES(s->left_bytes));
  else if (any_copy)
    LINE(p, false, "%s, pageable, by host time: %s staged (%s at %s), %s by the driver (%s at %s)",
         what, COUNT(s->copies), BYTES(s->bytes), wr_speed(s->bytes, s->ns).text,
         COUNT(s->left_copies), BYTES(s->left_bytes),
         wr_speed(s->left_timed_bytes, s->left_timed_ns).text);
  if (s->was_measured && s->percent)
    LINE(p, false, "%s: staging was measured at %.2f times the driver's speed%s", what,
         (double)s->percent / 100, s->earlier ? ", by an earlier program" : "");
  else if (s->was_measured)
    LINE(p, false, "%s: staging could not be measured, and is left off", what);
}

/* "function  file:line": the latter is never cut. */
static void where_cell(wr_page *p, const char *words)
{
  const char *kept = words + strlen(words);
  for (const char *at = words; (at = strstr(at, "  ")); at++)
    kept = at;
  char *head = wr_format("%.*s", (int)(kept - words), words);
  if (!head) p->failed = true;
  wr_grid_cell_kept(&p->grid, head ? head : "", kept);
  free(head);
}

static void print_unwritten(wr_page *p, const wr_cache *c, bool whole)
{
  if (!c->unwritten_copies) return;
  LINE(p, false, "uninitialised: %s to the host brought back %s that nothing had written",
       OF(c->unwritten_copies, "copy", "copies"), BYTES(c->unwritten_bytes));
  if (!whole) return;
  wr_page_begin(p, "rrrrrf");
  ROW(p, "copies", "bytes", "first in block", "at", "bytes", "copied in");
  for (size_t i = 0; i < c->unwritten_count; i++) {
    const wr_unwritten *u = &c->unwritten[i];
    ROW(p, COUNT(u->copies), BYTES(u->bytes));
    CELL(p, "0x%llx", (unsigned long long)u->block);
    CELL(p, "+%llu", (unsigned long long)u->offset);
    CELL(p, "%llu", (unsigned long long)u->first);
    where_cell(p, u->where);
  }
  wr_page_end(p);
  if (c->unwritten_places > c->unwritten_count)
    LINE(p, false, "… in %s", COUNTED(c->unwritten_places - c->unwritten_count, "more place"));
}

static uint64_t bar_top(const wr_cache *c)
{
  uint64_t top = 0;
  for (int i = 0; i < WR_CURVE; i++)
    if (c->curve[i] > top) top = c->curve[i];
  return top;
}

/* Device memory cached, from the run's begin to its end, in eighths of the highest. */
static void print_curve(wr_page *p, const wr_cache *c)
{
  static const char *const blocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  uint64_t top = bar_top(c);
  char text[4 * WR_CURVE + 64];
  int slices = p->width > 0 && p->width < WR_CURVE + 12 ? 50 : WR_CURVE;
  if (slices == 50 && p->width < 62) slices = 25;
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
  wr_page_line(p, false, text);
}

/* "0", where the units' smallest would be a word too many. */
#define AMOUNT(n) ((n) ? BYTES(n) : "0")

static void pool_row(wr_page *p, const wr_pool *x)
{
  wr_grid_row(&p->grid);
  if (x->device < 0)
    CELL(p, "?");
  else
    CELL(p, "%d", x->device);
  if (x->from_start)
    CELL(p, "default");
  else
    CELL(p, "0x%llx%s", (unsigned long long)x->handle, x->ended ? ", destroyed" : "");
  CELLS(p, AMOUNT(x->reserved), AMOUNT(x->reserved_peak), AMOUNT(x->used), AMOUNT(x->used_peak),
        AMOUNT(wr_pool_keeps(x)));
}

/* The driver's own, which are left to it in every mode. */
static void print_pools(wr_page *p, const wr_cache *c, size_t most)
{
  if (!c->pool_count) return;
  wr_page_line(p, false, "stream-ordered pools (cudaMallocAsync), the driver's own:");
  wr_page_begin(p, "rfrrrrr");
  ROW(p, "device", "pool", "reserved", "at most", "in use", "at most", "keeps idle at most");
  for (size_t i = 0; i < c->pool_count && i < most; i++)
    pool_row(p, &c->pools[i]);
  wr_page_end(p);
  if (c->pool_count > most)
    LINE(p, false, "and %s", OF(c->pool_count - most, "smaller one", "smaller ones"));
}

void wr_cache_section(wr_page *p, const wr_cache *c, bool whole)
{
  char title[32];
  const wr_cache_side *d = &c->side[WR_CACHE_DEVICE], *h = &c->side[WR_CACHE_PINNED];
  (void)snprintf(title, sizeof(title), "Caches, %s", c->mode);
  wr_page_heading(p, title, c->rerouted ? NULL : "the program's memory was not rerouted");
  if (!c->rerouted) {
    print_pools(p, c, whole ? POOLS_WHOLE : POOLS_SUMMARY);
    return;
  }
  if (!d->hits && !d->misses && !h->hits && !h->misses)
    wr_page_line(p, false, "no allocation went through a cache");
  print_unwritten(p, c, whole);
  side_line(p, c, d, "device");
  side_line(p, c, h, "host, pinned");
  if (whole)
    print_curve(p, c);
  else
    why_line(p, c->missed, "misses");
  if (!whole) why_line(p, c->left, "left to the driver");
  print_waits(p, c);
  print_staging(p, &c->staging[0], "host → device", false);
  print_staging(p, &c->staging[1], "device → host", false);
  print_staging(p, &c->staging[2], "device → device", true);
  if (whole)
    print_reasons(p, c);
  else
    why_line(p, c->given, "given back");
  if (!whole) why_line(p, c->tainted, "never to be cached");
  print_pools(p, c, whole ? POOLS_WHOLE : POOLS_SUMMARY);
}

weir_status wr_cache_render_text(FILE *out, const wr_cache *c, const char *path,
                                 const report_settings *options)
{
  wr_page *p = calloc(1, sizeof(*p));
  if (!p) return weir_fail(WEIR_ENOMEM, "reporting on %s: out of host memory", path);
  *p = (wr_page){.out = out,
                 .width = options->width > 0 && options->width < 40 ? 40 : options->width,
                 .color = options->color != 0};
  wr_page_paint(p, "\033[1m");
  wr_put_fit(out, path, p->width > 0 ? (size_t)p->width : SIZE_MAX);
  wr_page_paint(p, "\033[0m");
  (void)fputc('\n', out);
  wr_cache_section(p, c, true);
  bool whole = wr_page_done(p);
  free(p);
  if (!whole) return weir_fail(WEIR_ENOMEM, "reporting on %s: out of host memory", path);
  if (ferror(out) || fflush(out))
    return weir_fail(WEIR_EIO, "the report on %s cannot be written", path);
  return WEIR_OK;
}
