/* places.c: tables of places in the program, each with the callers that lead to it.
 *
 * Below a place stand those who called it, and below them theirs, to the depth that is asked for:
 * where ways part, each with its part of the numbers, so that those of a level add up to the line
 * they are under; where there is one way only, its numbers are that line's and are not repeated.
 * Callers are for people: programs have whole stacks.
 *
 * A call from Python goes through many functions of libraries before one of the program's: where
 * those alone would be shown, the last level has the innermost frame of Python, after an
 * ellipsis. */
#include <stdlib.h>
#include <string.h>
#include "core/base/map.h"
#include "core/trace/event.h"
#include "reports/base/units.h"
#include "reports/model/sites.h"
#include "reports/tables/sections.h"

/* ---- columns --------------------------------------------------------------------------------- */

static size_t place_columns(const wr_place_columns *c, wr_column out[8])
{
  size_t n = 0;
  if (c->first) out[n++] = (wr_column){"at", c->first, WR_COLUMN_TEXT, 0};
  out[n++] = (wr_column){"calls", c->unit, WR_COLUMN_COUNT, 0};
  if (c->bytes) out[n++] = (wr_column){"bytes", "bytes", WR_COLUMN_BYTES, 0};
  if (c->time && !c->about) out[n++] = (wr_column){"host_ns", "host time", WR_COLUMN_HOST_NS, 0};
  if (c->about) out[n++] = (wr_column){"about_host_ns", "about", WR_COLUMN_HOST_NS, 0};
  if (c->about) out[n++] = (wr_column){"mean_host_ns", "mean", WR_COLUMN_HOST_NS, 0};
  if (c->function) out[n++] = (wr_column){"function", "function", WR_COLUMN_TEXT, 0};
  if (c->direction) out[n++] = (wr_column){"direction", "direction", WR_COLUMN_TEXT, 0};
  out[n++] = (wr_column){"place", c->where, WR_COLUMN_PLACE, WR_WITH_FOLDER};
  return n;
}

/* The cells in front of the place; `sums` NULL: those of the line above. */
static void put_sums(wr_named_table *t, const wr_place_columns *c, const char *first,
                     const wr_sums *sums)
{
  if (c->first) wr_table_put_text(t, first);
  if (!sums) {
    wr_table_skip(t, 1u + c->bytes + c->time + c->about);
    return;
  }
  wr_table_put(t, sums->calls);
  if (c->bytes) wr_table_put(t, sums->bytes);
  if (c->time) wr_table_put(t, sums->ns);
  if (c->about) wr_table_put(t, sums->ns / (sums->calls ? sums->calls : 1));
}

static void skip_words(wr_named_table *t, const wr_place_columns *c)
{
  wr_table_skip(t, (size_t)c->function + c->direction);
}

/* "h2d pageable", "d2d", "h2h pageable → pinned": the side that can differ. */
static void put_direction(wr_named_table *t, const wr_site *x)
{
  const char *from = wr_mem_name(x->src_mem), *to = wr_mem_name(x->mem);
  const char *name = wr_direction_name(x->direction);
  bool plain_from = x->src_mem == WEIR_MEM_DEVICE, plain_to = x->mem == WEIR_MEM_DEVICE;
  if (plain_from && plain_to)
    wr_table_put_text(t, name);
  else if (plain_from || plain_to)
    wr_table_put_words(t, "%s %s", name, plain_to ? from : to);
  else
    wr_table_put_words(t, "%s %s → %s", name, from, to);
}

void wr_put_frame(wr_named_table *t, const wr_frame_name *f)
{
  wr_table_put_place(t, f->function, f->file, f->line);
  if (f->known && *f->module) wr_table_module(t, f->module);
}

/* ---- callers --------------------------------------------------------------------------------- */

#define STACK_END UINT32_MAX          /* the stack ends */
#define FURTHER   (UINT64_C(1) << 32) /* not the next frame: some in between are left out */
#define DEEPEST   64

/* The table that callers are put in. */
typedef struct caller_rows {
  const wr_sections *s;
  const wr_place_columns *c;
  wr_named_table *t;
} caller_rows;

/* Stacks that go the same way one level up. */
typedef struct way {
  uint64_t frame; /* a number of wr_model.frames, or that with FURTHER, or STACK_END */
  wr_sums sums;
  size_t count; /* stacks */
} way;

static void sums_add(wr_sums *to, const wr_sums *more)
{
  to->calls += more->calls, to->bytes += more->bytes, to->ns += more->ns;
}

/* What starts programs and threads is nobody's caller. */
static bool starts_programs(const char *function)
{
  static const char *const names[] = {
      "_start", "__libc_start_call_main", "start_thread", "__libc_start_main", "clone3", "__clone3",
      "clone",  "__libc_start_main_impl"};
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
    if (!strcmp(function, names[i])) return true;
  return !strncmp(function, "__libc_start_main@", 18);
}

/* Where Python begins after the last level, if all up to there is libraries'; else `x->count`. */
static uint64_t python_after(const wr_sections *s, const wr_site_stack *x)
{
  uint64_t last = (uint64_t)x->at + (uint64_t)s->depth;
  for (uint64_t i = x->at; i < x->count; i++) {
    int of = s->m->frames[x->frames[i]].of;
    if (i <= last && of != WR_OF_LIBRARY) break;
    if (of == WR_OF_SCRIPT) return i;
  }
  return x->count;
}

/* Behind a place of the user's, callers are the user's: what a library has between them, as what starts a thread,
 * is left out. */
static uint64_t nth_caller(const wr_sections *s, const wr_site_stack *x, int level)
{
  uint64_t at = x->at;
  bool own = at < x->count && !s->m->frames[x->frames[at]].library && !s->all_callers;
  if (!own) return at + (uint64_t)level;
  while (level && ++at < x->count)
    level -= !s->m->frames[x->frames[at]].library;
  return at;
}

static uint64_t caller_of(const wr_sections *s, const wr_site_stack *x, int level)
{
  uint64_t at = nth_caller(s, x, level);
  uint64_t after = level == s->depth ? python_after(s, x) : x->count;
  if (after < x->count) return FURTHER | x->frames[after];
  if (at >= x->count) return STACK_END;
  uint32_t frame = x->frames[at];
  return starts_programs(s->m->frames[frame].function) ? STACK_END : frame;
}

/* False: out of memory. */
static bool find_callers(const wr_sections *s, const wr_site_stack *const *stacks, size_t count,
                         int level, way *out, size_t *ways)
{
  hash_map known = {0}; /* frame -> place in out */
  bool good = true;
  *ways = 0;
  for (size_t i = 0; good && i < count; i++) {
    bool added;
    uint64_t frame = caller_of(s, stacks[i], level);
    uint64_t *at = hash_map_place(&known, frame, &added);
    good = at != NULL;
    if (!good) break;
    if (added) out[ *at = (*ways)++] = (way){.frame = frame};
    sums_add(&out[*at].sums, &stacks[i]->sums);
    out[*at].count++;
  }
  hash_map_free(&known);
  return good;
}

static int by_sums(const void *left, const void *right)
{
  const way *a = left, *b = right;
  if (a->sums.bytes != b->sums.bytes) return a->sums.bytes < b->sums.bytes ? 1 : -1;
  if (a->sums.ns != b->sums.ns) return a->sums.ns < b->sums.ns ? 1 : -1;
  if (a->sums.calls != b->sums.calls) return a->sums.calls < b->sums.calls ? 1 : -1;
  return (a->frame > b->frame) - (a->frame < b->frame);
}

static void add_callers(const caller_rows *r, const wr_site_stack *const *stacks, size_t count,
                        int level);

/* A row of text: sums, and words where a place would be. */
static void add_sums_row(const caller_rows *r, const char *first, const wr_sums *sums,
                         const char *words)
{
  wr_table_row_for(r->t, WR_ROW_TEXT);
  put_sums(r->t, r->c, first, sums);
  skip_words(r->t, r->c);
  wr_table_put_text(r->t, words);
}

/* One way on from a line, and what leads to it. */
static void add_caller(const caller_rows *r, const wr_site_stack *const *stacks, size_t count,
                       int level, const way *w, bool only)
{
  if (w->frame == STACK_END) {
    add_sums_row(r, "", &w->sums, "(called by nobody that is known)");
    return;
  }
  wr_table_row_for(r->t, WR_ROW_TEXT);
  put_sums(r->t, r->c, "", only ? NULL : &w->sums);
  skip_words(r->t, r->c);
  wr_put_frame(r->t, &r->s->m->frames[(uint32_t)w->frame]);
  wr_table_lead(r->t, "%*s← %s", 2 * (level - 1), "", w->frame & FURTHER ? "… " : "");
  const wr_site_stack **mine = calloc(w->count + 1, sizeof(const wr_site_stack *));
  size_t n = 0;
  if (!mine) r->s->t->failed = true;
  for (size_t i = 0; mine && i < count; i++)
    if (caller_of(r->s, stacks[i], level) == w->frame) mine[n++] = stacks[i];
  if (mine) add_callers(r, mine, n, level + 1);
  free(mine);
}

/* A lone main() states nothing, unless callers were asked for. */
static bool is_worth_a_row(const wr_sections *s, const way *w)
{
  if (w->frame == STACK_END) return false;
  if (w->frame & FURTHER) return true;
  return s->callers_asked || strcmp(s->m->frames[w->frame].function, "main") != 0;
}

static void add_callers(const caller_rows *r, const wr_site_stack *const *stacks, size_t count,
                        int level)
{
  way *ways = level <= r->s->depth && level <= DEEPEST ? calloc(count + 1, sizeof(way)) : NULL;
  if (!ways) return;
  size_t n = 0, most = r->s->top;
  if (!find_callers(r->s, stacks, count, level, ways, &n)) r->s->t->failed = true;
  if (n > 1) qsort(ways, n, sizeof(*ways), by_sums);
  size_t shown = n > most + 1 ? most : n; /* "1 more" is no shorter */
  if (n == 1 && !is_worth_a_row(r->s, ways)) shown = 0;
  for (size_t i = 0; i < shown; i++)
    add_caller(r, stacks, count, level, &ways[i], n == 1);
  wr_sums rest = {0};
  for (size_t i = shown; n > 1 && i < n; i++)
    sums_add(&rest, &ways[i].sums);
  char text[2 * DEEPEST + 64];
  (void)snprintf(text, sizeof(text), "%*s← … %zu more callers", 2 * (level - 1), "", n - shown);
  if (n > 1 && shown < n) add_sums_row(r, "", &rest, text);
  free(ways);
}

/* ---- tables ---------------------------------------------------------------------------------- */

static void add_place(const caller_rows *r, const wr_site *x, const char *first, bool shown)
{
  const wr_frame_name at = {.function = x->function,
                            .file = x->file,
                            .module = x->module,
                            .line = x->line,
                            .known = x->known};
  wr_table_row_for(r->t, shown ? WR_ROW_ALL : WR_ROW_DATA);
  put_sums(r->t, r->c, first, &(wr_sums){x->calls, x->bytes, x->ns});
  if (r->c->function) wr_table_put_text(r->t, x->api ? x->api : "");
  if (r->c->direction) put_direction(r->t, x);
  wr_put_frame(r->t, &at);
  const wr_site_stack **stacks = calloc(x->stack_count + 1, sizeof(const wr_site_stack *));
  if (!stacks) r->s->t->failed = true;
  for (size_t i = 0; stacks && i < x->stack_count; i++)
    stacks[i] = &x->stacks[i];
  if (stacks && shown && r->s->depth > 0) add_callers(r, stacks, x->stack_count, 1);
  free(stacks);
}

void wr_places_rows(const wr_sections *s, wr_named_table *t, const wr_place_columns *c,
                    const wr_sites *list, size_t most, const char *first)
{
  const caller_rows r = {s, c, t};
  size_t shown = list->count < most ? list->count : most;
  wr_sums rest = list->rest;
  char text[96];
  for (size_t i = 0; i < list->count; i++) {
    const wr_site *x = &list->site[i];
    add_place(&r, x, first, i < shown);
    if (i >= shown) sums_add(&rest, &(wr_sums){x->calls, x->bytes, x->ns});
  }
  (void)snprintf(text, sizeof(text), "… in %s", COUNTED(list->all - shown, "more place"));
  if (list->all > shown) add_sums_row(&r, first, &rest, text);
}

wr_named_table *wr_places_add(const wr_sections *s, const char *name, const char *title,
                              const wr_place_columns *c)
{
  wr_column columns[8];
  return wr_tables_add(s->t, name, title, columns, place_columns(c, columns));
}

wr_named_table *wr_places_table(const wr_sections *s, const char *name, const char *title,
                                const wr_place_columns *c, const wr_sites *list)
{
  if (!list->count) return NULL;
  wr_named_table *t = wr_places_add(s, name, title, c);
  if (list->all > list->count) wr_table_aside(t, "the first %zu of %zu", list->count, list->all);
  wr_places_rows(s, t, c, list, list->count, "");
  return t;
}
