/* text_sites.c: see text_sites.h.
 *
 * Below a place stand those who called it, and below them theirs, to the page's depth: where ways
 * part, each with its part of the numbers, so that those of a level add up to the line they are
 * under; where there is one way only, its numbers are that line's and are not said again.
 *
 * A call from Python goes through many functions of libraries before one of the program's: where
 * those alone would be shown, the last level has the innermost frame of Python, behind an ellipsis. */
#include "reports/render/text_sites.h"
#include <stdlib.h>
#include <string.h>
#include "core/base/map.h"
#include "core/trace/event.h"
#include "reports/model/sites.h"

/* The last two parts of a path: enough to find it, short enough to read. */
static const char *short_path(const char *path)
{
  const char *slash = strrchr(path, '/');
  if (!slash) return path;
  while (slash > path && slash[-1] != '/')
    slash--;
  return slash;
}

void wr_where_cell(wr_page *p, const char *before, const wr_frame_name *f)
{
  const char *file = f->file && p->width > 0 ? short_path(f->file) : f->file;
  char *kept = file && f->line          ? wr_format("  %s:%d", file, f->line)
               : file                   ? wr_format("  %s", file)
               : f->known && *f->module ? wr_format("  (%s)", f->module)
                                        : wr_format("%s", "");
  char *head = wr_format("%s%s", before, f->function);
  if (!kept || !head) p->failed = true;
  wr_grid_cell_kept(&p->grid, head ? head : "", kept ? kept : "");
  free(kept);
  free(head);
}

/* "h2d pageable", "d2d", "h2h pageable → pinned": the side that can differ. */
static void direction_cell(wr_page *p, const wr_site *x)
{
  const char *from = wr_mem_name(x->src_mem), *to = wr_mem_name(x->mem);
  const char *name = wr_direction_name(x->direction);
  bool plain_from = x->src_mem == WEIR_MEM_DEVICE, plain_to = x->mem == WEIR_MEM_DEVICE;
  if (plain_from && plain_to)
    CELL(p, "%s", name);
  else if (plain_to)
    CELL(p, "%s %s", name, from);
  else if (plain_from)
    CELL(p, "%s %s", name, to);
  else
    CELL(p, "%s %s → %s", name, from, to);
}

const char *wr_site_align(const wr_site_columns *c)
{
  static const char *const letters[2][2][2][2] = {
      /* first, bytes and time both, function, direction */
      {{{"rrf", "rrlf"}, {"rrlf", "rrllf"}}, {{"rrrf", "rrrlf"}, {"rrrlf", "rrrllf"}}},
      {{{"lrrf", "lrrlf"}, {"lrrlf", "lrrllf"}}, {{"lrrrf", "lrrrlf"}, {"lrrrlf", "lrrrllf"}}}};
  return letters[c->first != NULL][c->bytes && c->time][c->function][c->direction];
}

void wr_site_titles(wr_page *p, const wr_site_columns *c)
{
  wr_grid_row(&p->grid);
  if (c->first) CELL(p, "%s", c->first);
  CELL(p, "%s", c->unit);
  if (c->bytes) CELL(p, "bytes");
  if (c->time) CELL(p, "host time");
  if (c->function) CELL(p, "function");
  if (c->direction) CELL(p, "direction");
  CELL(p, "%s", c->where);
}

/* The cells in front of the place. `sums` NULL: those of the line above. */
static void number_cells(wr_page *p, const wr_site_columns *c, const char *first,
                         const wr_sums *sums)
{
  wr_grid_row(&p->grid);
  if (c->first) CELL(p, "%s", first);
  CELL(p, "%s", sums ? COUNT(sums->calls) : "");
  if (c->bytes) CELL(p, "%s", sums ? BYTES(sums->bytes) : "");
  if (c->time) CELL(p, "%s", sums ? DURATION(sums->ns) : "");
}

static void sums_row(wr_page *p, const wr_site_columns *c, const char *first, const wr_sums *sums,
                     const char *text)
{
  number_cells(p, c, first, sums);
  if (c->function) CELL(p, "%s", "");
  if (c->direction) CELL(p, "%s", "");
  CELL(p, "%s", text);
}

/* ---- callers --------------------------------------------------------------------------------- */

#define STACK_END UINT32_MAX          /* the stack ends */
#define FURTHER   (UINT64_C(1) << 32) /* not the next frame: some in between are left out */
#define DEEPEST   64

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

/* Where Python begins behind the last level, if all up to there is libraries'; else `s->count`. */
static uint64_t python_behind(const wr_page *p, const wr_site_stack *s)
{
  uint64_t last = (uint64_t)s->at + (uint64_t)p->depth;
  for (uint64_t i = s->at; i < s->count; i++) {
    int of = p->m->frames[s->frames[i]].of;
    if (i <= last && of != WR_OF_LIBRARY) break;
    if (of == WR_OF_SCRIPT) return i;
  }
  return s->count;
}

static uint64_t caller_of(const wr_page *p, const wr_site_stack *s, int level)
{
  uint64_t at = (uint64_t)s->at + (uint64_t)level;
  uint64_t behind = level == p->depth ? python_behind(p, s) : s->count;
  if (behind < s->count) return FURTHER | s->frames[behind];
  if (at >= s->count) return STACK_END;
  uint32_t frame = s->frames[at];
  return starts_programs(p->m->frames[frame].function) ? STACK_END : frame;
}

/* False: out of memory. */
static bool find_callers(const wr_page *p, const wr_site_stack *const *stacks, size_t count,
                         int level, way *out, size_t *ways)
{
  hash_map known = {0}; /* frame -> place in out */
  bool good = true;
  *ways = 0;
  for (size_t i = 0; good && i < count; i++) {
    bool added;
    uint64_t frame = caller_of(p, stacks[i], level);
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

static void print_callers(wr_page *p, const wr_site_columns *c, const wr_site_stack *const *stacks,
                          size_t count, int level);

/* One way on from a line, and what leads to it. */
static void print_caller(wr_page *p, const wr_site_columns *c, const wr_site_stack *const *stacks,
                         size_t count, int level, const way *w, bool only)
{
  char before[2 * DEEPEST + 16];
  (void)snprintf(before, sizeof(before), "%*s← %s", 2 * (level - 1), "",
                 w->frame & FURTHER ? "… " : "");
  if (w->frame == STACK_END) {
    sums_row(p, c, "", &w->sums, "(called by nobody that is known)");
    return;
  }
  number_cells(p, c, "", only ? NULL : &w->sums);
  if (c->function) CELL(p, "%s", "");
  if (c->direction) CELL(p, "%s", "");
  wr_where_cell(p, before, &p->m->frames[(uint32_t)w->frame]);
  const wr_site_stack **mine = calloc(w->count + 1, sizeof(const wr_site_stack *));
  size_t n = 0;
  if (!mine) p->failed = true;
  for (size_t i = 0; mine && i < count; i++)
    if (caller_of(p, stacks[i], level) == w->frame) mine[n++] = stacks[i];
  if (mine) print_callers(p, c, mine, n, level + 1);
  free(mine);
}

/* A lone main() says nothing, unless callers were asked for. */
static bool is_worth_printing(const wr_page *p, const way *w)
{
  if (w->frame == STACK_END) return false;
  if (w->frame & FURTHER) return true;
  return p->callers_asked || strcmp(p->m->frames[w->frame].function, "main") != 0;
}

static void print_callers(wr_page *p, const wr_site_columns *c, const wr_site_stack *const *stacks,
                          size_t count, int level)
{
  way *ways = level <= p->depth && level <= DEEPEST ? calloc(count + 1, sizeof(way)) : NULL;
  if (!ways) return;
  size_t n = 0;
  if (!find_callers(p, stacks, count, level, ways, &n)) p->failed = true;
  if (n > 1) qsort(ways, n, sizeof(*ways), by_sums);
  size_t most = (size_t)p->top, shown = n > most + 1 ? most : n; /* "1 more" is no shorter */
  if (n == 1 && !is_worth_printing(p, ways)) shown = 0;
  for (size_t i = 0; i < shown; i++)
    print_caller(p, c, stacks, count, level, &ways[i], n == 1);
  wr_sums rest = {0};
  for (size_t i = shown; n > 1 && i < n; i++)
    sums_add(&rest, &ways[i].sums);
  char text[2 * DEEPEST + 64];
  (void)snprintf(text, sizeof(text), "%*s← … %zu more callers", 2 * (level - 1), "", n - shown);
  if (n > 1 && shown < n) sums_row(p, c, "", &rest, text);
  free(ways);
}

/* ---- tables ---------------------------------------------------------------------------------- */

static void site_rows(wr_page *p, const wr_site_columns *c, const wr_site *x, const char *first)
{
  const wr_sums sums = {x->calls, x->bytes, x->ns};
  const wr_frame_name at = {.function = x->function,
                            .file = x->file,
                            .module = x->module,
                            .line = x->line,
                            .known = x->known};
  number_cells(p, c, first, &sums);
  if (c->function) CELL(p, "%s", x->api ? x->api : "");
  if (c->direction) direction_cell(p, x);
  wr_where_cell(p, "", &at);
  const wr_site_stack **stacks = calloc(x->stack_count + 1, sizeof(const wr_site_stack *));
  if (!stacks) p->failed = true;
  for (size_t i = 0; stacks && i < x->stack_count; i++)
    stacks[i] = &x->stacks[i];
  if (stacks && p->depth > 0) print_callers(p, c, stacks, x->stack_count, 1);
  free(stacks);
}

void wr_site_rows(wr_page *p, const wr_site_columns *c, const wr_sites *s, size_t most,
                  const char *first)
{
  size_t shown = s->count < most ? s->count : most;
  wr_sums rest = s->rest;
  char text[96];
  for (size_t i = 0; i < s->count; i++) {
    const wr_site *x = &s->site[i];
    if (i < shown)
      site_rows(p, c, x, first);
    else
      sums_add(&rest, &(wr_sums){x->calls, x->bytes, x->ns});
  }
  (void)snprintf(text, sizeof(text), "… in %s", COUNTED(s->all - shown, "more place"));
  if (s->all > shown) sums_row(p, c, first, &rest, text);
}

void wr_site_table(wr_page *p, const char *title, const char *aside, const wr_site_columns *c,
                   const wr_sites *s)
{
  char part[64] = "";
  if (!s->count) return;
  if (s->all > s->count)
    (void)snprintf(part, sizeof(part), "the first %zu of %zu", s->count, s->all);
  wr_page_heading(p, title, aside ? aside : part);
  wr_page_begin(p, wr_site_align(c));
  wr_site_titles(p, c);
  wr_site_rows(p, c, s, s->count, "");
  wr_page_end(p);
}
