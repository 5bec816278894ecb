/* text.c: a model as a page of text, what a person wants first on top.
 *
 * Header, transfers, memory, waiting, functions, places in the program, and last what was not seen:
 * a report that hides its gaps would be believed too much.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "reports/cache_render.h"
#include "reports/page.h"
#include "reports/render.h"
#include "reports/tensors_render.h"

#define API_ROWS     10
#define WAIT_ROWS    6
#define ROUTE_ROWS   12
#define PROCESS_ROWS 8

/* ---- header ---------------------------------------------------------------------------------- */

static void when(const wr_model *m, char out[32])
{
  time_t seconds = (time_t)(m->start_realtime_ns / 1000000000);
  struct tm local;
  out[0] = '\0';
  if (m->start_realtime_ns <= 0 || !localtime_r(&seconds, &local)) return;
  (void)strftime(out, 32, "%Y-%m-%d %H:%M:%S", &local);
}

static void header(wr_page *p)
{
  const wr_model *m = p->m;
  const char *command = m->command && *m->command ? m->command
                        : m->process_count        ? m->processes[0].command
                                                  : m->path;
  char date[32];
  when(m, date);
  wr_page_paint(p, "\033[1m");
  wr_put_fit(p->out, command, (size_t)p->width);
  wr_page_paint(p, "\033[0m");
  (void)fputc('\n', p->out);
  LINE(p, false, "%s · %s process%s · %s events%s%s", DURATION((uint64_t)m->duration_ns),
       COUNT(m->process_count), m->process_count == 1 ? "" : "es", COUNT(m->total.events),
       *date ? " · " : "", date);
  if (!m->finished)
    wr_page_line(
        p, true,
        "This trace is unfinished: its collector is still running, or was killed. The numbers "
        "cover what it had written.");
}

static void ending(const wr_process_row *x, char *out, size_t room)
{
  if (!x->ended)
    (void)snprintf(out, room, "running");
  else if (!strcmp(x->end_reason, "exit") && x->end_detail >= 0)
    (void)snprintf(out, room, "exit %lld", (long long)x->end_detail);
  else if (!strcmp(x->end_reason, "signal") && x->end_detail > 0 && x->end_detail < 65)
    (void)snprintf(out, room, "%s", strsignal((int)x->end_detail));
  else
    (void)snprintf(out, room, "%s", x->end_reason);
}

static void process_line(wr_page *p, const wr_process_row *x)
{
  char how[64];
  ending(x, how, sizeof(how));
  wr_grid_row(&p->grid);
  CELL(p, "%lld", (long long)x->pid);
  CELL(p, "%s", x->events ? COUNT(x->events) : "none");
  CELL(p, "%s", x->ended ? DURATION((uint64_t)(x->end - x->start)) : "-");
  CELL(p, "%s", how);
  CELL(p, "%s", *x->command ? x->command : x->exe);
}

/* A tree can be a shell's: those with CUDA calls are shown, the others counted. */
static void processes(wr_page *p)
{
  const wr_model *m = p->m;
  size_t quiet = 0, shown = 0;
  if (m->process_count < 2) return;
  wr_page_heading(p, "Processes", NULL);
  wr_page_begin(p, "rrrlf");
  TITLES(p, "pid", "events", "time", "ended", "command");
  for (size_t i = 0; i < m->process_count; i++) {
    if (!m->processes[i].events)
      quiet++;
    else if (shown++ < PROCESS_ROWS)
      process_line(p, &m->processes[i]);
  }
  if (shown) wr_page_end(p);
  if (shown > PROCESS_ROWS) LINE(p, false, "… and %zu more", shown - PROCESS_ROWS);
  if (quiet)
    LINE(p, false, "%s%zu program%s made no CUDA calls", shown ? "and " : "", quiet,
         quiet == 1 ? "" : "s");
}

/* ---- transfers ------------------------------------------------------------------------------- */

static void place(int device, char out[24])
{
  if (device == WR_HOST)
    (void)snprintf(out, 24, "host");
  else
    (void)snprintf(out, 24, "GPU %d", device);
}

static void transfers(wr_page *p)
{
  const wr_model *m = p->m;
  const wr_totals *t = &m->total;
  if (!m->route_count && !t->memset_calls && !t->other_copy_calls) return;
  wr_page_heading(p, "Transfers", "speed: of the blocking copies, as the program saw them");
  wr_page_begin(p, "lrrrr");
  TITLES(p, "from → to", "copies", "bytes", "mean", "speed");
  for (size_t i = 0; i < m->route_count && i < ROUTE_ROWS; i++) {
    const wr_route *r = &m->routes[i];
    char from[24], to[24];
    place(r->src, from), place(r->dst, to);
    wr_grid_row(&p->grid);
    CELL(p, "%s → %s", from, to);
    CELL(p, "%s", COUNT(r->calls));
    CELL(p, "%s", BYTES(r->bytes));
    CELL(p, "%s", BYTES(r->bytes / r->calls));
    CELL(p, "%s", wr_speed(r->timed_bytes, r->timed_ns).text);
  }
  if (t->other_copy_calls) {
    wr_grid_row(&p->grid);
    CELL(p, "unknown");
    CELL(p, "%s", COUNT(t->other_copy_calls));
    CELL(p, "%s", BYTES(t->other_copy_bytes));
  }
  if (t->memset_calls) {
    wr_grid_row(&p->grid);
    CELL(p, "memset");
    CELL(p, "%s", COUNT(t->memset_calls));
    CELL(p, "%s", BYTES(t->memset_bytes));
    CELL(p, "%s", BYTES(t->memset_bytes / t->memset_calls));
    CELL(p, "-");
  }
  wr_page_end(p);
  if (m->route_count > ROUTE_ROWS)
    LINE(p, false, "… and %zu more pairs", m->route_count - ROUTE_ROWS);
}

static void host_memory(wr_page *p)
{
  const wr_model *m = p->m;
  for (int d = 0; d < 2; d++) {
    const char *direction = d ? "d2h" : "h2d";
    char text[512] = "";
    uint64_t whole = d ? m->total.d2h_bytes : m->total.h2d_bytes;
    for (size_t i = 0; i < m->split_count; i++) {
      const wr_host_split *s = &m->split[i];
      if (strcmp(s->direction, direction) != 0) continue;
      size_t used = strlen(text);
      (void)snprintf(text + used, sizeof(text) - used, "%s%s %s (%s)", *text ? " · " : "",
                     s->memory, BYTES(s->bytes), wr_percent(s->bytes, whole).text);
    }
    if (*text) LINE(p, false, "%s %s", d ? "device → host, into:" : "host → device, from:", text);
  }
}

/* The last two parts of a path: enough to find it, short enough to read. */
static const char *short_path(const char *path)
{
  const char *slash = strrchr(path, '/');
  if (!slash) return path;
  while (slash > path && slash[-1] != '/')
    slash--;
  return slash;
}

static void where_cell(wr_page *p, const wr_site *s)
{
  if (s->file && s->line)
    CELL(p, "%s  %s:%d", s->function, short_path(s->file), s->line);
  else if (s->file)
    CELL(p, "%s  %s", s->function, short_path(s->file));
  else if (*s->module && !strchr(s->function, '+'))
    CELL(p, "%s  (%s)", s->function, s->module);
  else
    CELL(p, "%s", s->function);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void device_rows(wr_page *p)
{
  const wr_model *m = p->m;
  for (int i = 0; i < 256; i++) {
    const wr_device_totals *d = &m->devices[i].total;
    if (!m->devices[i].seen || !(d->alloc_calls || d->free_calls)) continue;
    wr_grid_row(&p->grid);
    CELL(p, m->devices[i].name ? "GPU %d %s" : "GPU %d", i, m->devices[i].name);
    CELL(p, "%s", COUNT(d->alloc_calls));
    CELL(p, "%s", BYTES(d->alloc_bytes));
    CELL(p, "%s", COUNT(d->free_calls));
    CELL(p, "%s", BYTES(d->peak_bytes));
    CELL(p, "%s", DURATION(d->peak_at_ns));
    CELL(p, "%s", d->live_at_exit_bytes ? BYTES(d->live_at_exit_bytes) : "0");
  }
}

static void owners(wr_page *p)
{
  const wr_model *m = p->m;
  wr_page_begin(p, "lrrf");
  wr_grid_row(&p->grid);
  CELL(p, "at the peak of");
  CELL(p, "blocks");
  CELL(p, "bytes");
  CELL(p, "allocated in");
  size_t shown = 0;
  for (int i = 0; i < 256; i++) {
    const wr_sites *s = &m->devices[i].owners;
    for (size_t k = 0; m->devices[i].seen && k < s->count && k < 3 && shown < 8; k++, shown++) {
      wr_grid_row(&p->grid);
      CELL(p, "GPU %d", i);
      CELL(p, "%s", COUNT(s->site[k].calls));
      CELL(p, "%s", BYTES(s->site[k].bytes));
      where_cell(p, &s->site[k]);
    }
  }
  if (shown) wr_page_end(p);
}

/* The memory that blocks of libweir's are cut from. */
static void reserved(uint64_t device, uint64_t pinned, wr_page *p)
{
  if (device)
    LINE(p, false, "libweir's allocator had at most %s of the devices' memory from the driver",
         BYTES(device));
  if (pinned)
    LINE(p, false, "libweir's allocator had at most %s of host memory page-locked", BYTES(pinned));
}

static void memory(wr_page *p)
{
  const wr_totals *t = &p->m->total;
  if (!t->alloc_calls && !t->free_calls && !t->pinned_alloc_calls && !t->register_calls) return;
  wr_page_heading(p, "Memory", NULL);
  wr_page_begin(p, "lrrrrrr");
  TITLES(p, "where", "allocs", "bytes", "frees", "peak", "at", "live at exit");
  device_rows(p);
  if (t->pinned_alloc_calls) {
    wr_grid_row(&p->grid);
    CELL(p, "host, pinned");
    CELL(p, "%s", COUNT(t->pinned_alloc_calls));
    CELL(p, "%s", BYTES(t->pinned_alloc_bytes));
    CELL(p, "%s", COUNT(t->pinned_free_calls));
    CELL(p, "%s", BYTES(t->pinned_peak_bytes));
    CELL(p, "-");
    CELL(p, "%s", t->pinned_live_at_exit_bytes ? BYTES(t->pinned_live_at_exit_bytes) : "0");
  }
  if (t->register_calls) {
    wr_grid_row(&p->grid);
    CELL(p, "host, registered");
    CELL(p, "%s", COUNT(t->register_calls));
    CELL(p, "%s", BYTES(t->register_bytes));
  }
  wr_page_end(p);
  reserved(t->weir_reserved_peak_bytes, t->weir_pinned_reserved_peak_bytes, p);
  owners(p);
}

/* ---- waiting and functions ------------------------------------------------------------------- */

static void wait_row(wr_page *p, const wr_api_row *a, bool implicit)
{
  uint64_t calls = implicit ? a->implicit_calls : a->sync_calls;
  uint64_t ns = implicit ? a->implicit_ns : a->sync_ns;
  wr_grid_row(&p->grid);
  CELL(p, "%s", a->name);
  CELL(p, "%s", implicit ? "implicit" : "explicit");
  CELL(p, "%s", COUNT(calls));
  CELL(p, "%s", DURATION(ns));
  CELL(p, "%s", DURATION(ns / calls));
  CELL(p, "%s", wr_percent(ns, (uint64_t)p->m->duration_ns).text);
}

/* The functions are sorted by their time; explicit waits come first, then implicit ones. */
static void waiting(wr_page *p)
{
  const wr_model *m = p->m;
  const wr_totals *t = &m->total;
  if (!t->sync_explicit_calls && !t->sync_implicit_calls) return;
  char aside[192];
  (void)snprintf(aside, sizeof(aside), "explicit %s in %s calls · implicit %s in %s calls",
                 DURATION(t->sync_explicit_ns), COUNT(t->sync_explicit_calls),
                 DURATION(t->sync_implicit_ns), COUNT(t->sync_implicit_calls));
  wr_page_heading(p, "Waiting for a device", aside);
  wr_page_begin(p, "fl"
                   "rrrr");
  TITLES(p, "function", "kind", "calls", "blocked", "mean", "of the run");
  for (int implicit = 0; implicit < 2; implicit++) {
    size_t shown = 0;
    for (size_t i = 0; i < m->api_count && shown < WAIT_ROWS; i++) {
      const wr_api_row *a = &m->apis[i];
      if (!(implicit ? a->implicit_calls : a->sync_calls)) continue;
      wait_row(p, a, implicit);
      shown++;
    }
  }
  wr_page_end(p);
}

static void functions(wr_page *p)
{
  const wr_model *m = p->m;
  char aside[64];
  (void)snprintf(aside, sizeof(aside), "%s kernel launches", COUNT(m->total.launches));
  wr_page_heading(p, "Functions", m->total.launches ? aside : NULL);
  wr_page_begin(p, "frrrrrr");
  TITLES(p, "function", "calls", "failed", "bytes", "time", "mean", "longest");
  for (size_t i = 0; i < m->api_count && i < API_ROWS; i++) {
    const wr_api_row *a = &m->apis[i];
    wr_grid_row(&p->grid);
    CELL(p, "%s", a->name);
    CELL(p, "%s", COUNT(a->calls));
    CELL(p, "%s", a->errors ? COUNT(a->errors) : "-");
    CELL(p, "%s", a->bytes ? BYTES(a->bytes) : "-");
    CELL(p, "%s", DURATION(a->ns));
    CELL(p, "%s", DURATION(a->ns / a->calls));
    CELL(p, "%s", DURATION(a->max_ns));
  }
  wr_page_end(p);
  if (m->api_count > API_ROWS) LINE(p, false, "… and %zu more", m->api_count - API_ROWS);
}

/* ---- places in the program ------------------------------------------------------------------- */

static void sites(wr_page *p, const char *title, const wr_sites *s, const char *unit, bool bytes,
                  bool time)
{
  if (!s->count) return;
  char aside[64] = "";
  if (s->all > s->count)
    (void)snprintf(aside, sizeof(aside), "the first %zu of %zu", s->count, s->all);
  wr_page_heading(p, title, aside);
  wr_page_begin(p, bytes && time ? "rrrlf" : "rrlf");
  wr_grid_row(&p->grid);
  CELL(p, "%s", unit);
  if (bytes) CELL(p, "bytes");
  if (time) CELL(p, "time");
  CELL(p, "%s", s->site[0].api ? "function" : "");
  CELL(p, "called in");
  for (size_t i = 0; i < s->count; i++) {
    const wr_site *x = &s->site[i];
    wr_grid_row(&p->grid);
    CELL(p, "%s", COUNT(x->calls));
    if (bytes) CELL(p, "%s", BYTES(x->bytes));
    if (time) CELL(p, "%s", DURATION(x->ns));
    CELL(p, "%s", x->api ? x->api : "");
    where_cell(p, x);
  }
  wr_page_end(p);
}

static void leaks(wr_page *p)
{
  const wr_model *m = p->m;
  if (!m->leak.count) return;
  char aside[96];
  uint64_t blocks = m->total.live_at_exit_blocks;
  (void)snprintf(aside, sizeof(aside), "%s in %s block%s, never freed",
                 BYTES(m->total.live_at_exit_bytes), COUNT(blocks), blocks == 1 ? "" : "s");
  wr_page_heading(p, m->finished ? "Live at exit" : "Live at the end of the trace", aside);
  wr_page_begin(p, "rrf");
  TITLES(p, "blocks", "bytes", "allocated in");
  for (size_t i = 0; i < m->leak.count; i++) {
    wr_grid_row(&p->grid);
    CELL(p, "%s", COUNT(m->leak.site[i].calls));
    CELL(p, "%s", BYTES(m->leak.site[i].bytes));
    where_cell(p, &m->leak.site[i]);
  }
  wr_page_end(p);
}

/* ---- what was not seen ----------------------------------------------------------------------- */

static void losses(wr_page *p)
{
  const wr_totals *t = &p->m->total;
  const wr_coverage *c = &p->m->coverage;
  uint64_t why = 0;
  for (size_t i = 0; i < p->m->process_count && !why; i++)
    why = p->m->processes[i].drop_errno;
  if (t->dropped)
    LINE(p, true, "%s events were dropped (%s): every number above is a lower bound",
         COUNT(t->dropped), why ? strerror((int)why) : "unknown reason");
  if (c->damaged_chunks)
    LINE(p, true, "%s parts of a spool were damaged and skipped", COUNT(c->damaged_chunks));
  if (c->bytes_cut) LINE(p, true, "%s of a spool are missing at its end", BYTES(c->bytes_cut));
  if (c->torn)
    LINE(p, false, "%s records were begun and not committed when the process ended",
         COUNT(c->torn));
  if (c->dropped_extended)
    LINE(p, false, "%s stacks, modules or names could not be recorded", COUNT(c->dropped_extended));
  if (t->failed_calls)
    LINE(p, true, "%s calls returned an error; they count nowhere else", COUNT(t->failed_calls));
  if (t->captured_events)
    LINE(p, false, "%s events were captured into graphs, not run; they count nowhere else",
         COUNT(t->captured_events));
  if (t->unmatched_frees)
    LINE(p, false, "%s frees are of blocks whose allocation was not seen",
         COUNT(t->unmatched_frees));
}

static void names(wr_page *p, const char *what, char *const *list, size_t count)
{
  char text[512];
  size_t used = (size_t)snprintf(text, sizeof(text), "%s", what);
  for (size_t i = 0; i < count && used < sizeof(text); i++)
    used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", i ? ", " : " ", list[i]);
  wr_page_line(p, false, text);
}

static void coverage(wr_page *p)
{
  const wr_model *m = p->m;
  const wr_coverage *c = &m->coverage;
  wr_page_heading(p, "Seen and not seen", NULL);
  if (!c->called && !c->looked_up && !c->passed)
    wr_page_line(p, false, "no CUDA function was looked up");
  else
    LINE(p, false,
         "%s functions called; of those looked up, %s are wrapped and %s pass through unseen",
         COUNT(c->called), COUNT(c->looked_up), COUNT(c->passed));
  if (c->passed_count) names(p, "passed through:", c->passed_names, c->passed_count);
  if (c->unknown_lookups)
    LINE(p, true, "%s look-ups of functions Weir does not know, the first: %s",
         COUNT(c->unknown_lookups), c->unknown_name ? c->unknown_name : "?");
  if (c->embedding_count)
    LINE(p, false,
         "CUDA's runtime is built into %zu module%s, whose calls are seen at the driver layer:",
         c->embedding_count, c->embedding_count == 1 ? "" : "s");
  for (size_t i = 0; i < c->embedding_count && i < 4; i++)
    LINE(p, false, "  %s", c->embedding[i]);
  if (c->stackless && c->stackless < m->total.events)
    LINE(p, false, "%s of %s events have no stack", COUNT(c->stackless), COUNT(m->total.events));
  else if (c->stackless)
    wr_page_line(p, false, "no stacks were taken");
  losses(p);
  for (size_t i = 0; i < m->note_count && i < 5; i++)
    LINE(p, false, "note: %s", m->notes[i]);
}

weir_status wr_render_text(FILE *out, const wr_model *m, const weir_report_options *options)
{
  wr_page *p = calloc(1, sizeof(*p));
  if (!p) return weir_fail(WEIR_ENOMEM, "reporting on %s: out of host memory", m->path);
  *p = (wr_page){.out = out,
                 .m = m,
                 .width = options->width > 0 ? options->width : 100,
                 .color = options->color != 0};
  if (p->width < 40) p->width = 40;
  header(p);
  processes(p);
  if (!m->total.events) {
    wr_page_heading(p, "no CUDA calls", NULL);
    wr_page_line(p, false, "Nothing that was traced called a CUDA function that Weir wraps.");
    wr_tensors_section(p, &m->tensors);
  } else {
    transfers(p);
    host_memory(p);
    memory(p);
    wr_tensors_section(p, &m->tensors);
    waiting(p);
    if (m->cache.rerouted || m->cache.pool_count) wr_cache_section(p, &m->cache, false);
    functions(p);
    sites(p, "Places that copy", &m->copy, "copies", true, true);
    sites(p, "Places that wait", &m->sync, "waits", false, true);
    sites(p, "Places that allocate", &m->alloc, "allocs", true, true);
    leaks(p);
  }
  coverage(p);
  free(p);
  if (ferror(out) || fflush(out))
    return weir_fail(WEIR_EIO, "the report on %s cannot be written", m->path);
  return WEIR_OK;
}
