/* page.c: see page.h. A page is the table `families`, in its order: a family's head, then its series
 * of every process. */
#include "reports/metrics/page.h"

#include <inttypes.h>
#include <string.h>
#include "core/base/json.h"
#include "core/trace/event.h"

enum { MOST_LABEL = 400 /* bytes of a name from outside */ };

typedef struct labels {
  const wr_page_process *process; /* NULL: the collector's own */
  int device;                     /* -1: none */
  const char *memory, *direction, *cause, *site;
} labels;

static const labels no_labels = {.device = -1};

typedef struct writer {
  FILE *out;
  const wr_page *page;
  char name[64];   /* of the family, with the suffix of its samples */
  unsigned series; /* written */
  uint64_t left_out;
} writer;

/* ---- series ---------------------------------------------------------------------------------- */

/* Within quotes. */
static void put_label_text(FILE *out, const char *text)
{
  const unsigned char *at = (const unsigned char *)text, *end = at + strlen(text);
  if (end - at > MOST_LABEL) end = at + MOST_LABEL;
  while (at < end) {
    const unsigned n = utf8_sequence(at, end);
    if (n == 1 && (*at == '"' || *at == '\\'))
      (void)fprintf(out, "\\%c", *at);
    else if (n == 1 && *at == '\n')
      (void)fputs("\\n", out);
    else if (n == 1 && (*at < ' ' || *at == 127))
      (void)fputc('?', out);
    else if (n)
      (void)fwrite(at, 1, n, out);
    else
      (void)fputs("\xef\xbf\xbd", out);
    at += n ? n : 1;
  }
}

static void put_label(FILE *out, const char *name, const char *text, const char **between)
{
  if (!text || !*text) return;
  (void)fprintf(out, "%s%s=\"", *between, name);
  put_label_text(out, text);
  (void)fputc('"', out);
  *between = ",";
}

static void put_number_label(FILE *out, const char *name, int64_t n, const char **between)
{
  char text[24];
  (void)snprintf(text, sizeof text, "%" PRId64, n);
  put_label(out, name, n < 0 ? NULL : text, between);
}

static void put_labels(const writer *w, const labels *l)
{
  const char *between = "{";
  const wr_page_process *p = l->process;
  put_label(w->out, "job", w->page->job, &between);
  if (p) put_number_label(w->out, "rank", (int64_t)p->rank - 1, &between);
  if (p) put_number_label(w->out, "pid", p->pid ? (int64_t)p->pid : -1, &between);
  put_number_label(w->out, "device", l->device, &between);
  put_label(w->out, "memory", l->memory, &between);
  put_label(w->out, "direction", l->direction, &between);
  put_label(w->out, "cause", l->cause, &between);
  put_label(w->out, "site", l->site, &between);
  if (*between == ',') (void)fputc('}', w->out);
}

/* Whether there is room for one more; begins it. */
static bool begin_series(writer *w, const labels *l)
{
  if (w->series == WR_PAGE_SERIES - 1) { /* the last is weir_series_left_out */
    w->left_out++;
    return false;
  }
  w->series++;
  (void)fputs(w->name, w->out);
  put_labels(w, l);
  return true;
}

static void put_count(writer *w, const labels *l, uint64_t n)
{
  if (begin_series(w, l)) (void)fprintf(w->out, " %" PRIu64 "\n", n);
}

static void put_seconds(writer *w, const labels *l, double seconds)
{
  if (begin_series(w, l)) (void)fprintf(w->out, " %.9f\n", seconds);
}

static int device_label(uint16_t device)
{
  return device == WEIR_DEVICE_NONE ? -1 : device;
}

/* ---- families -------------------------------------------------------------------------------- */

static void put_live(writer *w, const wr_page_process *p)
{
  for (unsigned i = 0; i < p->figures->memory_count && !p->ended; i++) {
    const wr_live_figure *x = &p->figures->memory[i];
    put_count(w,
              &(labels){.process = p,
                        .device = device_label(x->device),
                        .memory = wr_memory_class_name(x->class)},
              x->live);
  }
}

static void put_peak(writer *w, const wr_page_process *p)
{
  for (unsigned i = 0; i < p->figures->memory_count; i++) {
    const wr_live_figure *x = &p->figures->memory[i];
    put_count(w,
              &(labels){.process = p,
                        .device = device_label(x->device),
                        .memory = wr_memory_class_name(x->class)},
              x->peak);
  }
}

static void put_sites(writer *w, const wr_page_process *p)
{
  const wr_figures *f = p->figures;
  for (unsigned i = 0; i < f->site_count && !p->ended; i++)
    put_count(w, &(labels){.process = p, .device = -1, .site = f->site[i].place}, f->site[i].live);
  if (f->site_count && !p->ended)
    put_count(w, &(labels){.process = p, .device = -1, .site = "other"}, f->other_live);
}

static void put_cached(writer *w, const wr_page_process *p)
{
  const wr_figure_list *lists[] = {&p->figures->cached, &p->figures->pooled};
  for (int k = 0; k < 2 && !p->ended; k++)
    for (unsigned i = 0; i < lists[k]->count; i++) {
      const wr_figure *x = &lists[k]->row[i];
      put_count(w,
                &(labels){.process = p,
                          .device = device_label(x->device),
                          .memory = k ? "pool" : wr_memory_class_name(x->what)},
                x->bytes);
    }
}

static void put_used(writer *w, const wr_page_process *p)
{
  const wr_figure_list *l = &p->figures->used;
  for (unsigned i = 0; i < l->count && !p->ended; i++)
    put_count(w, &(labels){.process = p, .device = device_label(l->row[i].device)},
              l->row[i].bytes);
}

static void put_of_copies(writer *w, const wr_page_process *p, bool bytes)
{
  const wr_figure_list *l = &p->figures->copies;
  for (unsigned i = 0; i < l->count; i++)
    put_count(w,
              &(labels){.process = p,
                        .device = device_label(l->row[i].device),
                        .direction = wr_figure_direction(l->row[i].what)},
              bytes ? l->row[i].bytes : l->row[i].count);
}

static void put_copied_bytes(writer *w, const wr_page_process *p)
{
  put_of_copies(w, p, true);
}

static void put_copies(writer *w, const wr_page_process *p)
{
  put_of_copies(w, p, false);
}

static void put_wait_seconds(writer *w, const wr_page_process *p)
{
  for (int i = 0; i < WR_WAIT_CAUSES; i++)
    if (p->figures->waits[i].count)
      put_seconds(w, &(labels){.process = p, .device = -1, .cause = wr_wait_cause_name(i)},
                  (double)p->figures->waits[i].ns * 1e-9);
}

static void put_waits(writer *w, const wr_page_process *p)
{
  for (int i = 0; i < WR_WAIT_CAUSES; i++)
    if (p->figures->waits[i].count)
      put_count(w, &(labels){.process = p, .device = -1, .cause = wr_wait_cause_name(i)},
                p->figures->waits[i].count);
}

static void put_by_memory(writer *w, const wr_page_process *p, const wr_figure_list *l)
{
  for (unsigned i = 0; i < l->count; i++)
    put_count(w,
              &(labels){.process = p,
                        .device = device_label(l->row[i].device),
                        .memory = wr_memory_class_name(l->row[i].what)},
              l->row[i].count);
}

static void put_hits(writer *w, const wr_page_process *p)
{
  put_by_memory(w, p, &p->figures->hits);
}

static void put_misses(writer *w, const wr_page_process *p)
{
  put_by_memory(w, p, &p->figures->misses);
}

static void put_failures(writer *w, const wr_page_process *p)
{
  put_by_memory(w, p, &p->figures->failures);
}

static void put_events(writer *w, const wr_page_process *p)
{
  put_count(w, &(labels){.process = p, .device = -1}, p->figures->events);
}

static void put_dropped(writer *w, const wr_page_process *p)
{
  put_count(w, &(labels){.process = p, .device = -1}, p->dropped);
}

static void put_own(writer *w, const wr_page_process *p)
{
  (void)p;
  put_seconds(w, &no_labels, w->page->own_seconds);
}

static void put_dumps(writer *w, const wr_page_process *p)
{
  (void)p;
  put_count(w, &no_labels, w->page->dumps);
}

static void put_since(writer *w, const wr_page_process *p)
{
  (void)p;
  if (w->page->since > 0) put_seconds(w, &no_labels, w->page->since);
}

typedef struct family {
  const char *name, *help;
  bool counter;
  bool once; /* of the collector, not of each process */
  void (*put)(writer *w, const wr_page_process *p);
} family;

static const family families[] = {
    {"weir_live_bytes", "Memory that was allocated and not freed.", false, false, put_live},
    {"weir_peak_bytes", "The most of it that was ever live.", false, false, put_peak},
    {"weir_cached_bytes",
     "Memory that frees left in Weir's caches, or that the driver's pools have in reserve (pool).",
     false, false, put_cached},
    {"weir_device_used_bytes",
     "Memory of a device in use by all processes, when the program last asked.", false, false,
     put_used},
    {"weir_copied_bytes", "Bytes copied by calls.", true, false, put_copied_bytes},
    {"weir_copies", "Calls that copied.", true, false, put_copies},
    {"weir_wait_seconds", "Host time in calls that wait, or may by the documentation.", true, false,
     put_wait_seconds},
    {"weir_waits", "Calls that wait, or may by the documentation.", true, false, put_waits},
    {"weir_cache_hits", "Allocations out of a cache of Weir's.", true, false, put_hits},
    {"weir_cache_misses", "Allocations that a cache of Weir's did not have.", true, false,
     put_misses},
    {"weir_allocation_failures", "Allocations that failed.", true, false, put_failures},
    {"weir_events", "Calls and facts recorded.", true, false, put_events},
    {"weir_dropped_events", "Calls and facts that could not be recorded.", true, false,
     put_dropped},
    {"weir_site_live_bytes",
     "Live device memory by the place that allocated it: the places with the most.", false, false,
     put_sites},
    {"weir_own_seconds", "Processor time of the collector.", true, true, put_own},
    {"weir_dumps", "Dumps written.", true, true, put_dumps},
    {"weir_since_timestamp_seconds", "When counting began, where that was after the program did.",
     false, true, put_since},
};

static void put_head(FILE *out, const family *f, bool open_metrics)
{
  const char *total = f->counter && !open_metrics ? "_total" : "";
  (void)fprintf(out, "# HELP %s%s %s\n# TYPE %s%s %s\n", f->name, total, f->help, f->name, total,
                f->counter ? "counter" : "gauge");
}

static void put_family(writer *w, const family *f, bool open_metrics)
{
  put_head(w->out, f, open_metrics);
  (void)snprintf(w->name, sizeof w->name, "%s%s", f->name, f->counter ? "_total" : "");
  if (f->once) f->put(w, NULL);
  for (unsigned i = 0; i < w->page->count && !f->once; i++)
    f->put(w, &w->page->process[i]);
}

void wr_page_write(FILE *out, const wr_page *page, bool open_metrics)
{
  static const family rest = {"weir_series_left_out", "Series for which this page has no room.",
                              false, true, NULL};
  writer w = {.out = out, .page = page};
  for (size_t i = 0; i < sizeof families / sizeof *families; i++)
    put_family(&w, &families[i], open_metrics);
  put_head(out, &rest, open_metrics);
  (void)fputs(rest.name, out);
  put_labels(&w, &no_labels);
  (void)fprintf(out, " %" PRIu64 "\n", w.left_out);
  if (open_metrics) (void)fputs("# EOF\n", out);
}
