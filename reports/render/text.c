/* text.c: a model as a page of text, what a person wants first on top.
 *
 * Header, transfers, memory, waiting, functions, places in the program, and last what was not seen:
 * a report that hides its gaps would be believed too much. */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "core/trace/spool.h"
#include "reports/render/findings_render.h"
#include "reports/render/cache_render.h"
#include "reports/render/device_times_render.h"
#include "reports/render/in_use_render.h"
#include "reports/write/page.h"
#include "reports/render/render.h"
#include "reports/render/named_render.h"
#include "reports/render/graphs_render.h"
#include "reports/render/ranges_render.h"
#include "reports/render/tensors_render.h"
#include "reports/render/text_sites.h"
#include "reports/render/waits_render.h"

#define API_ROWS       10
#define UNSEEN_ROWS    10 /* programs */
#define WAIT_ROWS      6
#define ROUTE_ROWS     12
#define PROCESS_ROWS   8
#define EMBEDDING_ROWS 4
#define NOTE_ROWS      5
#define DEPTH          2 /* levels of callers */
#define OWNER_ROWS     3 /* a device */

/* ---- header ---------------------------------------------------------------------------------- */

static void time_text(const wr_model *m, char out[32])
{
  time_t seconds = (time_t)(m->start_realtime_ns / 1000000000);
  struct tm local;
  out[0] = '\0';
  if (m->start_realtime_ns <= 0 || !localtime_r(&seconds, &local)) return;
  (void)strftime(out, 32, "%Y-%m-%d %H:%M:%S", &local);
}

static void print_header(wr_page *p)
{
  const wr_model *m = p->m;
  const char *command = m->command && *m->command ? m->command
                        : m->process_count        ? m->processes[0].command
                                                  : m->path;
  char date[32];
  time_text(m, date);
  wr_page_paint(p, "\033[1m");
  wr_put_fit(p->out, command, p->width > 0 ? (size_t)p->width : SIZE_MAX);
  wr_page_paint(p, "\033[0m");
  (void)fputc('\n', p->out);
  LINE(p, false, "%s · %s · %s%s%s", DURATION((uint64_t)m->duration_ns),
       OF(m->process_count, "process", "processes"), COUNTED(m->total.events, "event"),
       *date ? " · " : "", date);
  if (!m->finished)
    wr_page_line(
        p, true,
        "This trace is unfinished: its collector is still running, or was killed. The numbers "
        "cover what it had written.");
  if (m->no_gpu)
    LINE(p, true, "No GPU was found; `weir run --sim -- PROGRAM` needs none (%s).", m->no_gpu);
}

static void end_text(const wr_process_row *x, char *out, size_t room)
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
  end_text(x, how, sizeof(how));
  wr_grid_row(&p->grid);
  CELL(p, "%lld", (long long)x->pid);
  CELLS(p, x->events ? COUNT(x->events) : "none",
        x->ended ? DURATION((uint64_t)(x->end - x->start)) : "-", how,
        *x->command ? x->command : x->exe);
}

/* A tree can be a shell's: those with CUDA calls are shown, the others counted. */
static void print_processes(wr_page *p)
{
  const wr_model *m = p->m;
  size_t quiet = 0, shown = 0;
  if (m->process_count < 2) return;
  wr_page_heading(p, "Processes", NULL);
  wr_page_begin(p, "rrrlf");
  ROW(p, "pid", "events", "time", "ended", "command");
  for (size_t i = 0; i < m->process_count; i++) {
    if (!m->processes[i].events)
      quiet++;
    else if (shown++ < PROCESS_ROWS)
      process_line(p, &m->processes[i]);
  }
  if (shown) wr_page_end(p);
  if (shown > PROCESS_ROWS) LINE(p, false, "… and %zu more", shown - PROCESS_ROWS);
  if (quiet)
    LINE(p, false, "%s%s made no CUDA calls", shown ? "and " : "", COUNTED(quiet, "program"));
}

/* ---- transfers ------------------------------------------------------------------------------- */

static void device_text(int device, char out[24])
{
  if (device == WR_HOST)
    (void)snprintf(out, 24, "host");
  else
    (void)snprintf(out, 24, "GPU %d", device);
}

static void print_transfers(wr_page *p)
{
  const wr_model *m = p->m;
  const wr_totals *t = &m->total;
  if (!m->route_count && !t->memset_calls && !t->other_copy_calls) return;
  wr_page_heading(p, "Transfers",
                  "speed: by host time, of calls that return when the copy is done");
  wr_page_begin(p, "lrrrr");
  ROW(p, "from → to", "copies", "bytes", "mean", "speed");
  for (size_t i = 0; i < m->route_count && i < ROUTE_ROWS; i++) {
    const wr_route *r = &m->routes[i];
    char from[24], to[24];
    device_text(r->src, from), device_text(r->dst, to);
    wr_grid_row(&p->grid);
    CELL(p, "%s → %s", from, to);
    CELLS(p, COUNT(r->calls), BYTES(r->bytes), BYTES(r->bytes / r->calls),
          wr_speed(r->timed_bytes, r->timed_ns).text);
  }
  if (t->other_copy_calls) {
    ROW(p, "unknown", COUNT(t->other_copy_calls), BYTES(t->other_copy_bytes));
  }
  if (t->memset_calls) {
    ROW(p, "memset", COUNT(t->memset_calls), BYTES(t->memset_bytes),
        BYTES(t->memset_bytes / t->memset_calls), "-");
  }
  wr_page_end(p);
  if (m->route_count > ROUTE_ROWS)
    LINE(p, false, "… and %s more", COUNTED(m->route_count - ROUTE_ROWS, "pair"));
}

static void print_host_memory(wr_page *p)
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

/* ---- memory ---------------------------------------------------------------------------------- */

static void device_rows(wr_page *p)
{
  const wr_model *m = p->m;
  for (int i = 0; i < 256; i++) {
    const wr_device_totals *d = &m->devices[i].total;
    if (!m->devices[i].seen || !(d->alloc_calls || d->free_calls)) continue;
    wr_grid_row(&p->grid);
    const char *name = m->devices[i].name, *label = m->devices[i].label;
    CELL(p, "GPU %d%s%s%s%s%s", i, name ? " " : "", name ? name : "", label ? " (" : "",
         label ? label : "", label ? ")" : "");
    CELLS(p, COUNT(d->alloc_calls), BYTES(d->alloc_bytes), COUNT(d->free_calls),
          BYTES(d->peak_bytes), DURATION(d->peak_at_ns),
          d->live_at_exit_bytes ? BYTES(d->live_at_exit_bytes) : "0");
  }
}

/* Beside the program's own memory, and in none of its figures. */
static void taken_row(wr_page *p, int device, const char *what, const uint64_t n[5])
{
  if (!n[0]) return;
  wr_grid_row(&p->grid);
  CELL(p, "GPU %d, %s", device, what);
  CELLS(p, COUNT(n[0]), BYTES(n[1]), COUNT(n[2]), BYTES(n[3]), "-", n[4] ? BYTES(n[4]) : "0");
}

static void taken_rows(wr_page *p)
{
  for (int i = 0; i < 256; i++) {
    const wr_device_totals *d = &p->m->devices[i].total;
    taken_row(p, i, "code of modules",
              (const uint64_t[]){d->code_blocks, d->code_bytes, d->code_frees, d->code_peak_bytes,
                                 d->code_live_at_exit_bytes});
    taken_row(p, i, "contexts",
              (const uint64_t[]){d->context_blocks, d->context_bytes, d->context_frees,
                                 d->context_peak_bytes, d->context_live_at_exit_bytes});
  }
}

static bool any_taken(const wr_model *m)
{
  for (int i = 0; i < 256; i++)
    if (m->devices[i].total.code_blocks || m->devices[i].total.context_blocks) return true;
  return false;
}

static void print_owners(wr_page *p)
{
  static const wr_site_columns columns = {
      .unit = "blocks", .first = "at the peak of", .bytes = true, .where = "allocated in"};
  const wr_model *m = p->m;
  bool any = false;
  wr_page_begin(p, wr_site_align(&columns));
  wr_site_titles(p, &columns);
  for (int i = 0; i < 256; i++) {
    char name[24];
    if (!m->devices[i].seen || !m->devices[i].owners.count) continue;
    device_text(i, name);
    wr_site_rows(p, &columns, &m->devices[i].owners, p->top_asked ? SIZE_MAX : OWNER_ROWS, name);
    any = true;
  }
  if (any) wr_page_end(p);
}

/* The memory that blocks of libweir's are cut from. */
static void print_reserved(uint64_t device, uint64_t pinned, wr_page *p)
{
  if (device)
    LINE(p, false, "libweir's allocator had at most %s of the devices' memory from the driver",
         BYTES(device));
  if (pinned)
    LINE(p, false, "libweir's allocator had at most %s of host memory page-locked", BYTES(pinned));
}

static void print_memory(wr_page *p)
{
  const wr_totals *t = &p->m->total;
  if (!t->alloc_calls && !t->free_calls && !t->pinned_alloc_calls && !t->register_calls &&
      !t->imported_calls && !any_taken(p->m))
    return;
  wr_page_heading(p, "Memory", NULL);
  wr_page_begin(p, "frrrrrr");
  ROW(p, "where", "allocs", "bytes", "frees", "peak", "at", "live at exit");
  device_rows(p);
  taken_rows(p);
  if (t->pinned_alloc_calls) {
    ROW(p, "host, pinned", COUNT(t->pinned_alloc_calls), BYTES(t->pinned_alloc_bytes),
        COUNT(t->pinned_free_calls), BYTES(t->pinned_peak_bytes), "-",
        t->pinned_live_at_exit_bytes ? BYTES(t->pinned_live_at_exit_bytes) : "0");
  }
  if (t->imported_calls) {
    ROW(p, "imported (another's)", COUNT(t->imported_calls), BYTES(t->imported_bytes), "-",
        BYTES(t->imported_peak_bytes), "-",
        t->imported_live_at_exit_bytes ? BYTES(t->imported_live_at_exit_bytes) : "0");
  }
  if (t->register_calls) {
    ROW(p, "host, registered", COUNT(t->register_calls), BYTES(t->register_bytes));
  }
  wr_page_end(p);
  print_reserved(t->weir_reserved_peak_bytes, t->weir_pinned_reserved_peak_bytes, p);
  print_owners(p);
  for (int i = 0; i < 256; i++)
    wr_in_use_section(p, i, p->m->devices[i].in_use);
}

/* ---- waiting and functions ------------------------------------------------------------------- */

/* What the waits of a run are part of: of one thread the run, of several what they had together. */
static uint64_t had_time(const wr_model *m)
{
  const wr_totals *t = &m->total;
  uint64_t run = (uint64_t)m->duration_ns;
  if (t->threads != 1) return t->thread_time_ns;
  return run - (t->hashing_ns < run ? t->hashing_ns : 0);
}

static void wait_row(wr_page *p, const wr_api_row *a, bool implicit)
{
  uint64_t calls = implicit ? a->implicit_calls : a->sync_calls;
  uint64_t ns = implicit ? a->implicit_ns : a->sync_ns;
  ROW(p, a->name, implicit ? "implicit" : "explicit", COUNT(calls), DURATION(ns),
      DURATION(ns / calls), wr_percent(ns, had_time(p->m)).text);
}

/* Functions by the time they waited, the longest first. */
static size_t by_waits(const wr_model *m, bool implicit, const wr_api_row **out)
{
  size_t n = 0;
  for (size_t i = 0; i < m->api_count; i++) {
    const wr_api_row *a = &m->apis[i];
    if (!(implicit ? a->implicit_calls : a->sync_calls)) continue;
    size_t at = n++;
    for (; at && (implicit ? out[at - 1]->implicit_ns < a->implicit_ns
                           : out[at - 1]->sync_ns < a->sync_ns);
         at--)
      out[at] = out[at - 1];
    out[at] = a;
  }
  return n;
}

/* Explicit waits come first, then implicit ones. */
static void print_waiting(wr_page *p)
{
  const wr_model *m = p->m;
  const wr_totals *t = &m->total;
  size_t left = 0;
  const wr_api_row **sorted = calloc(m->api_count + 1, sizeof(const wr_api_row *));
  if (!sorted) p->failed = true;
  if (!sorted || (!t->sync_explicit_calls && !t->sync_implicit_calls)) {
    free(sorted);
    return;
  }
  char aside[256];
  int used = snprintf(aside, sizeof(aside), "explicit %s in %s · implicit %s in %s",
                      DURATION(t->sync_explicit_ns), COUNTED(t->sync_explicit_calls, "call"),
                      DURATION(t->sync_implicit_ns), COUNTED(t->sync_implicit_calls, "call"));
  if (t->threads > 1)
    (void)snprintf(aside + used, sizeof(aside) - (size_t)used, " · %s of %s",
                   DURATION(t->thread_time_ns), COUNTED(t->threads, "thread"));
  wr_page_heading(p, "Waiting for a device", aside);
  wr_page_begin(p, "fl"
                   "rrrr");
  ROW(p, "function", "kind", "calls", "host time", "mean",
      t->threads > 1 ? "of thread time" : "of the run");
  for (int implicit = 0; implicit < 2; implicit++) {
    size_t n = by_waits(m, implicit, sorted);
    for (size_t i = 0; i < n && i < WAIT_ROWS; i++)
      wait_row(p, sorted[i], implicit);
    left += n > WAIT_ROWS ? n - WAIT_ROWS : 0;
  }
  wr_page_end(p);
  if (left) LINE(p, false, "… and %s more", COUNTED(left, "function"));
  free(sorted);
}

/* A function's calls, or the first ones of them that brought up a context. */
typedef struct function_row {
  const wr_api_row *of;
  bool init;
  uint64_t calls, errors, bytes, ns, longest;
} function_row;

static int by_ns(const void *left, const void *right)
{
  const function_row *a = left, *b = right;
  if (a->ns != b->ns) return a->ns < b->ns ? 1 : -1;
  return a->of != b->of ? (a->of > b->of) - (a->of < b->of) : a->init - b->init;
}

static size_t function_rows(const wr_model *m, function_row *out)
{
  size_t n = 0;
  for (size_t i = 0; i < m->api_count; i++) {
    const wr_api_row *a = &m->apis[i];
    if (a->init_calls)
      out[n++] = (function_row){a,
                                true,
                                a->init_calls,
                                a->calls > a->init_calls ? 0 : a->errors,
                                a->init_bytes,
                                a->init_ns,
                                a->init_max_ns};
    if (a->calls > a->init_calls)
      out[n++] = (function_row){a,
                                false,
                                a->calls - a->init_calls,
                                a->errors,
                                a->bytes - a->init_bytes,
                                a->ns - a->init_ns,
                                a->later_max_ns};
  }
  qsort(out, n, sizeof(*out), by_ns);
  return n;
}

#define PLACE_WIDTH 110 /* columns of a page that has room for places beside functions */

static bool is_wide(const wr_page *p)
{
  return !p->width || p->width >= PLACE_WIDTH;
}

/* The place that most of its time was in, in the last column, or, where lines are short, in a row below
 * it, cut as its name is. How much of it: where there are several. */
static void place_cells(wr_page *p, const function_row *r)
{
  const wr_api_row *a = r->of;
  char before[80] = "";
  if (r->init || !a->place) return;
  uint64_t ns = a->ns - a->init_ns;
  if (a->places > 1 && ns)
    (void)snprintf(before, sizeof before, "%s in ", wr_percent(a->place_ns, ns).text);
  if (is_wide(p)) {
    wr_where_cell(p, before, a->place);
    return;
  }
  const char *file = a->place->file, *slash = file ? strrchr(file, '/') : NULL;
  wr_grid_row(&p->grid);
  if (file)
    CELL(p, "  %s%s  %s:%d", before, a->place->function, slash ? slash + 1 : file, a->place->line);
  else
    CELL(p, "  %s%s", before, a->place->function);
}

static void function_cells(wr_page *p, const function_row *r)
{
  wr_grid_row(&p->grid);
  CELL(p, r->init ? "initialisation, in %s" : "%s", r->of->name);
  CELLS(p, COUNT(r->calls), r->errors ? COUNT(r->errors) : "-", r->bytes ? BYTES(r->bytes) : "-",
        DURATION(r->ns), DURATION(r->ns / r->calls), DURATION(r->longest));
  place_cells(p, r);
}

static void print_functions(wr_page *p)
{
  const wr_model *m = p->m;
  function_row *rows = calloc(2 * m->api_count + 1, sizeof(*rows));
  size_t n = rows ? function_rows(m, rows) : 0;
  if (!rows) p->failed = true;
  wr_page_heading(p, "Functions",
                  m->total.launches ? OF(m->total.launches, "kernel launch", "kernel launches")
                                    : NULL);
  wr_page_begin(p, is_wide(p) ? "lrrrrrrf" : "frrrrrr");
  ROW(p, "function", "calls", "failed", "bytes", "host time", "mean", "longest");
  if (is_wide(p)) CELL(p, "called in");
  for (size_t i = 0; i < n && i < API_ROWS; i++)
    function_cells(p, &rows[i]);
  wr_page_end(p);
  if (n > API_ROWS) LINE(p, false, "… and %zu more", n - API_ROWS);
  free(rows);
}

/* ---- places in the program ------------------------------------------------------------------- */

static void print_leaks(wr_page *p)
{
  static const wr_site_columns columns = {.unit = "blocks", .bytes = true, .where = "allocated in"};
  const wr_model *m = p->m;
  char aside[224];
  int used =
      snprintf(aside, sizeof(aside), "%s in %s, never freed", BYTES(m->total.live_at_exit_bytes),
               COUNTED(m->total.live_at_exit_blocks, "block"));
  if (m->leak.all > m->leak.count)
    (void)snprintf(aside + used, sizeof(aside) - (size_t)used, "; the first %zu of %zu",
                   m->leak.count, m->leak.all);
  wr_site_table(p, m->finished ? "Live at exit" : "Live at the end of the trace", aside, &columns,
                &m->leak);
  static const wr_site_columns takes = {.unit = "calls", .bytes = true, .where = "called in"};
  if (m->taken.count) wr_site_table(p, "Code and contexts live at exit", NULL, &takes, &m->taken);
}

static void print_call_sites(wr_page *p)
{
  static const wr_site_columns copies = {.unit = "copies",
                                         .bytes = true,
                                         .time = true,
                                         .function = true,
                                         .direction = true,
                                         .where = "called in"};
  static const wr_site_columns waits = {
      .unit = "waits", .time = true, .function = true, .where = "called in"};
  static const wr_site_columns allocs = {
      .unit = "allocs", .bytes = true, .time = true, .function = true, .where = "called in"};
  wr_site_table(p, "Places that copy", NULL, &copies, &p->m->copy);
  wr_site_table(p, "Places that wait", NULL, &waits, &p->m->sync);
  wr_wait_places_section(p);
  wr_site_table(p, "Places that allocate", NULL, &allocs, &p->m->alloc);
}

/* ---- what was not seen ----------------------------------------------------------------------- */

static void print_graph_work(wr_page *p)
{
  const wr_totals *t = &p->m->total;
  if (t->graph_launches > t->graph_launches_unknown)
    LINE(p, false, "%s ran %s (%s), %s, %s: they are in the numbers above",
         OF(t->graph_launches - t->graph_launches_unknown, "graph launch", "graph launches"),
         OF(t->graph_copies, "copy", "copies"),
         t->graph_copy_bytes ? BYTES(t->graph_copy_bytes) : "0",
         COUNTED(t->graph_memsets, "memset"), COUNTED(t->graph_kernels, "kernel"));
  if (t->graph_launches_unknown)
    LINE(p, true, "%s: what ran in them, copies included, is in no number above",
         OF(t->graph_launches_unknown, "graph launch", "graph launches"));
  if (t->graph_allocs)
    LINE(p, false, "graph launches allocated %s (%s): they are in peaks and in what is live",
         COUNTED(t->graph_allocs, "block"), BYTES(t->graph_alloc_bytes));
  if (t->graph_conditional_nodes)
    LINE(p, true, "%s in bodies of conditional nodes ran or not: they are in no number above",
         COUNTED(t->graph_conditional_nodes, "graph node"));
}

static void print_hashes(wr_page *p)
{
  const wr_totals *t = &p->m->total;
  if (t->copies_hashed || t->copies_not_hashed)
    LINE(
        p, false,
        "%s hashed, %llu not: that took %s of host time, which the run's length has, and no time of"
        " calls, ranges or threads",
        OF(t->copies_hashed, "copy was", "copies were"), (unsigned long long)t->copies_not_hashed,
        DURATION(t->hashing_ns));
  if (t->copies_unreadable)
    LINE(p, true, "%s not hashed because the memory could not be read",
         OF(t->copies_unreadable, "copy was", "copies were"));
}

static void print_captured(wr_page *p)
{
  const wr_totals *t = &p->m->total;
  if (t->captured_events)
    LINE(
        p, false,
        "captured into graphs: %s, of them %s (%s), %s, %s; they run at each launch of their graph,"
        " not while they are captured",
        COUNTED(t->captured_events, "operation"), OF(t->captured_copies, "copy", "copies"),
        t->captured_copy_bytes ? BYTES(t->captured_copy_bytes) : "0",
        COUNTED(t->captured_memsets, "memset"), COUNTED(t->captured_launches, "kernel"));
  print_graph_work(p);
  print_hashes(p);
}

static void print_losses(wr_page *p)
{
  const wr_totals *t = &p->m->total;
  const wr_coverage *c = &p->m->coverage;
  uint64_t why = 0;
  for (size_t i = 0; i < p->m->process_count && !why; i++)
    why = p->m->processes[i].drop_errno;
  if (t->dropped)
    LINE(p, true, "%s %s dropped (%s): every number above is a lower bound",
         COUNTED(t->dropped, "event"), t->dropped == 1 ? "was" : "were",
         spool_drop_reason((int)why));
  if (c->damaged_chunks)
    LINE(p, true, "%s of a spool %s damaged and skipped", COUNTED(c->damaged_chunks, "part"),
         c->damaged_chunks == 1 ? "was" : "were");
  if (c->bytes_cut) LINE(p, true, "%s of a spool are missing at its end", BYTES(c->bytes_cut));
  if (c->torn)
    LINE(p, false, "%s %s begun and not committed when the process ended",
         COUNTED(c->torn, "record"), c->torn == 1 ? "was" : "were");
  if (c->dropped_extended)
    LINE(p, false, "%s could not be recorded",
         OF(c->dropped_extended, "stack, module or name", "stacks, modules or names"));
  if (t->failed_calls)
    LINE(p, true, "%s returned an error and %s nowhere else", COUNTED(t->failed_calls, "call"),
         t->failed_calls == 1 ? "counts" : "count");
  if (c->nested)
    LINE(p, true, "%s %s made within another, by a signal handler or a callback, and %s nowhere",
         COUNTED(c->nested, "CUDA call"), c->nested == 1 ? "was" : "were",
         c->nested == 1 ? "counts" : "count");
  if (c->deep)
    LINE(p, true,
         "%s %s pushed deeper than 256 and not recorded: calls in them count for the"
         " ranges around them",
         COUNTED(c->deep, "NVTX range"), c->deep == 1 ? "was" : "were");
  print_captured(p);
  if (t->unmatched_frees)
    LINE(p, false, "%s of blocks whose allocation was not seen",
         COUNTED(t->unmatched_frees, "free"));
}

static void print_unseen_programs(wr_page *p)
{
  const wr_coverage *c = &p->m->coverage;
  if (!c->unseen_count) return;
  LINE(p, true, "%s ran without Weir: what they did is not in this trace",
       COUNTED(c->unseen_count, "program"));
  for (size_t i = 0; i < c->unseen_count && i < UNSEEN_ROWS; i++) {
    const wr_unseen *u = &c->unseen[i];
    LINE(p, false, "  %s (%s), %s", *u->path ? u->path : "others", u->why,
         COUNTED(u->count, "time"));
  }
  if (c->unseen_count > UNSEEN_ROWS)
    LINE(p, false, "  … and %zu more", c->unseen_count - UNSEEN_ROWS);
}

/* What was looked up: wrapped, let through for a reason, or out of reach. */
static void print_looked_up(wr_page *p)
{
  const wr_coverage *c = &p->m->coverage;
  const wr_passed *unseen = &c->passed[WEIR_API_UNREACHED];
  size_t asks = c->passed[WEIR_API_ASKS].count, sets = c->passed[WEIR_API_SETS].count;
  size_t below = c->passed[WEIR_API_BELOW].count;
  if (!c->called && !c->looked_up && !unseen->count && !asks && !sets && !below) {
    wr_page_line(p, false, "no CUDA function was looked up");
    return;
  }
  LINE(p, false, "%s called; of those looked up, %s %s wrapped and %s %s through unseen",
       COUNTED(c->called, "function"), COUNT(c->looked_up), c->looked_up == 1 ? "is" : "are",
       COUNT(unseen->count), unseen->count == 1 ? "passes" : "pass");
  if (asks + sets)
    LINE(p, false,
         "%s more are not recorded: %s ask and %s set how things are done; they move nothing",
         COUNT(asks + sets), COUNT(asks), COUNT(sets));
  if (below)
    LINE(p, false, "%s of the runtime's, seen as the driver's that they call",
         COUNTED(below, "function"));
  if (unseen->count) wr_page_list(p, "passed through:", unseen->names, unseen->count);
}

static void print_coverage(wr_page *p)
{
  const wr_model *m = p->m;
  const wr_coverage *c = &m->coverage;
  wr_page_heading(p, "Seen and not seen", NULL);
  print_looked_up(p);
  if (c->unknown_lookups)
    LINE(p, true, "%s of functions, or of versions of them, that Weir does not know, the first: %s",
         COUNTED(c->unknown_lookups, "look-up"), c->unknown_name ? c->unknown_name : "?");
  if (c->embedding_count)
    LINE(p, false, "CUDA's runtime is built into %s, whose calls are seen at the driver layer:",
         COUNTED(c->embedding_count, "module"));
  for (size_t i = 0; i < c->embedding_count && i < EMBEDDING_ROWS; i++)
    LINE(p, false, "  %s", c->embedding[i]);
  if (c->embedding_count > EMBEDDING_ROWS)
    LINE(p, false, "  … and %zu more", c->embedding_count - EMBEDDING_ROWS);
  if (c->stackless && c->stackless < m->total.events)
    LINE(p, false, "%s of %s %s no stack", COUNT(c->stackless), COUNTED(m->total.events, "event"),
         c->stackless == 1 ? "has" : "have");
  else if (c->stackless)
    wr_page_line(p, false, "no stacks were taken");
  for (size_t i = 0; i < c->lacking_count && i < UNSEEN_ROWS; i++)
    LINE(p, true, "%s was %s the run: no names of its places (--symbols DIR: from a copy)",
         c->lacking[i].path,
         strcmp(c->lacking[i].why, "removed") ? c->lacking[i].why : "removed since");
  print_unseen_programs(p);
  print_losses(p);
  wr_unjudged_lines(p);
  for (size_t i = 0; i < m->note_count && i < NOTE_ROWS; i++)
    LINE(p, false, "note: %s", m->notes[i]);
  if (m->note_count > NOTE_ROWS)
    LINE(p, false, "… and %s more", COUNTED(m->note_count - NOTE_ROWS, "note"));
}

weir_status wr_render_text(FILE *out, const wr_model *m, const wr_findings *findings,
                           const report_settings *options)
{
  wr_page *p = calloc(1, sizeof(*p));
  if (!p) return weir_fail(WEIR_ENOMEM, "reporting on %s: out of host memory", m->path);
  *p = (wr_page){.out = out,
                 .m = m,
                 .width = options->width > 0 && options->width < 40 ? 40 : options->width,
                 .depth = options->depth > 0 ? options->depth
                          : options->depth   ? 0
                                             : DEPTH,
                 .top = m->top,
                 .top_asked = options->top > 0,
                 .possible = options->possible,
                 .callers_asked = options->depth > 0,
                 .color = options->color != 0};
  print_header(p);
  print_processes(p);
  if (!m->total.events) {
    wr_page_heading(p, "no CUDA calls", NULL);
    wr_page_line(p, false, "Nothing that was traced called a CUDA function that Weir wraps.");
    wr_ranges_section(p, &m->ranges);
    wr_tensors_section(p, &m->tensors);
  } else {
    if (findings) wr_findings_section(p, findings, false);
    wr_ranges_section(p, &m->ranges);
    print_transfers(p);
    print_host_memory(p);
    wr_device_times_section(p);
    print_memory(p);
    wr_named_section(p, &m->named);
    wr_tensors_section(p, &m->tensors);
    print_waiting(p);
    wr_wait_parts_section(p);
    if (m->cache.rerouted || m->cache.pool_count) wr_cache_section(p, &m->cache, false);
    print_functions(p);
    wr_graphs_section(p, &m->graphs);
    print_call_sites(p);
    print_leaks(p);
  }
  print_coverage(p);
  bool whole = wr_page_done(p);
  free(p);
  if (!whole) return weir_fail(WEIR_ENOMEM, "reporting on %s: out of host memory", m->path);
  if (ferror(out) || fflush(out))
    return weir_fail(WEIR_EIO, "the report on %s cannot be written", m->path);
  return WEIR_OK;
}
