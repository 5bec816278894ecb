/* watch.c: see watch.h. */
#include "tools/weir/collect/watch.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "core/base/dump.h"
#include "core/base/trace_name.h"
#include "reports/metrics/page.h"
#include "tools/weir/base/cmd.h"
#include "tools/weir/collect/view.h"

#define S_NS UINT64_C(1000000000)

struct watch {
  collector *collector; /* borrowed */
  char *trace;          /* absolute; owned */
  char *job;            /* of the environment; owned; NULL: none */
  metrics *metrics;     /* owned; NULL: there is no page */
  view *view;           /* owned; NULL: no figures are made so far */
};

/* New; NULL: there is none. */
static char *find_job(void)
{
  char job[8192];
  return trace_name_expand(job, sizeof job, "%j", 0) == WEIR_OK && *job ? cmd_format("%s", job)
                                                                        : NULL;
}

static uint64_t own_ns(void)
{
  struct rusage u;
  if (getrusage(RUSAGE_SELF, &u) != 0) return 0;
  return (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * S_NS +
         (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000;
}

/* NULL: out of memory. */
static view *begin_view(watch *w)
{
  live *l = w->view ? NULL : collector_watch(w->collector);
  if (l) w->view = view_new(l);
  return w->view;
}

/* ---- ps -------------------------------------------------------------------------------------- */

typedef struct ps_reply {
  const watch *w;
  FILE *out;
} ps_reply;

static void put_rank(dump_writer *d, uint32_t rank)
{
  if (rank) dump_key_unsigned(d, "rank", rank - 1);
}

static void put_process(void *context, const collector_process *p)
{
  const ps_reply *r = context;
  const spool_header *h = p->header;
  char program[sizeof h->exe + 1];
  dump_writer d;
  const uint64_t taken = atomic_load_explicit(&h->taken, memory_order_relaxed),
                 returned = atomic_load_explicit(&h->returned, memory_order_relaxed);
  (void)snprintf(program, sizeof program, "%.*s", (int)sizeof h->exe, h->exe);
  dump_start(&d, r->out, false);
  dump_begin(&d, '{');
  dump_key_unsigned(&d, "pid", (uint64_t)p->pid);
  put_rank(&d, h->rank);
  dump_key_text(&d, "program", program);
  dump_key_unsigned(&d, "events", p->events);
  dump_key_unsigned(&d, "events_per_second", p->events_per_second);
  dump_key_unsigned(&d, "spool_bytes", taken > returned ? taken - returned : 0);
  dump_key_unsigned(&d, "dropped", atomic_load_explicit(&h->dropped, memory_order_relaxed));
  dump_key_text(&d, "trace", r->w->trace);
  dump_end(&d, '}');
  dump_finish(&d);
}

static bool answer_ps(void *context, FILE *reply, unsigned count, char *const *words)
{
  const watch *w = context;
  const ps_reply r = {w, reply};
  (void)count;
  (void)words;
  collector_read_on(w->collector, true);
  collector_each(w->collector, put_process, (void *)&r);
  return true;
}

/* ---- top ------------------------------------------------------------------------------------- */

static void put_device(dump_writer *d, uint16_t device)
{
  if (device != WEIR_DEVICE_NONE) dump_key_unsigned(d, "device", device);
}

static void put_memory(dump_writer *d, const wr_figures *f)
{
  dump_key(d, "memory");
  dump_begin(d, '[');
  for (unsigned i = 0; i < f->memory_count; i++) {
    dump_begin(d, '{');
    put_device(d, f->memory[i].device);
    dump_key_text(d, "kind", wr_memory_class_name(f->memory[i].class));
    dump_key_unsigned(d, "live_bytes", f->memory[i].live);
    dump_key_unsigned(d, "blocks", f->memory[i].blocks);
    dump_key_unsigned(d, "peak_bytes", f->memory[i].peak);
    dump_end(d, '}');
  }
  dump_end(d, ']');
}

static void put_list(dump_writer *d, const char *key, const char *what, const wr_figure_list *l,
                     const char *(*name)(int))
{
  dump_key(d, key);
  dump_begin(d, '[');
  for (unsigned i = 0; i < l->count; i++) {
    dump_begin(d, '{');
    put_device(d, l->row[i].device);
    dump_key_text(d, what, name(l->row[i].what));
    dump_key_unsigned(d, "count", l->row[i].count);
    dump_key_unsigned(d, "bytes", l->row[i].bytes);
    dump_end(d, '}');
  }
  dump_end(d, ']');
}

static void put_waits(dump_writer *d, const wr_figures *f)
{
  dump_key(d, "waits");
  dump_begin(d, '[');
  for (int i = 0; i < WR_WAIT_CAUSES; i++) {
    dump_begin(d, '{');
    dump_key_text(d, "cause", wr_wait_cause_name(i));
    dump_key_unsigned(d, "count", f->waits[i].count);
    dump_key_unsigned(d, "ns", f->waits[i].ns);
    dump_end(d, '}');
  }
  dump_end(d, ']');
}

static void put_sites(dump_writer *d, const wr_figures *f)
{
  dump_key(d, "sites");
  dump_begin(d, '[');
  for (unsigned i = 0; i < f->site_count; i++) {
    dump_begin(d, '{');
    dump_key_text(d, "site", f->site[i].place);
    dump_key_unsigned(d, "live_bytes", f->site[i].live);
    dump_key_unsigned(d, "blocks", f->site[i].blocks);
    dump_end(d, '}');
  }
  dump_end(d, ']');
  dump_key_unsigned(d, "other_live_bytes", f->other_live);
}

static void put_figures(dump_writer *d, const view_process *p)
{
  const wr_figures *f = p->figures;
  dump_begin(d, '{');
  dump_key_unsigned(d, "pid", p->pid);
  put_rank(d, p->rank);
  dump_key_text(d, "program", p->program);
  dump_key_bool(d, "ended", p->ended);
  dump_key_unsigned(d, "events", f->events);
  dump_key_unsigned(d, "dropped", p->dropped);
  dump_key_unsigned(d, "spool_bytes", p->spool_bytes);
  dump_key_unsigned(d, "live_bytes", f->live);
  dump_key_unsigned(d, "peak_bytes", f->peak);
  put_memory(d, f);
  put_list(d, "copies", "direction", &f->copies, wr_figure_direction);
  put_waits(d, f);
  put_list(d, "cache_hits", "kind", &f->hits, wr_memory_class_name);
  put_list(d, "cache_misses", "kind", &f->misses, wr_memory_class_name);
  put_list(d, "cached", "kind", &f->cached, wr_memory_class_name);
  put_list(d, "pooled", "kind", &f->pooled, wr_memory_class_name);
  put_list(d, "used", "kind", &f->used, wr_memory_class_name);
  put_list(d, "failures", "kind", &f->failures, wr_memory_class_name);
  put_sites(d, f);
  dump_end(d, '}');
}

static bool answer_top(void *context, FILE *reply, unsigned count, char *const *words)
{
  watch *w = context;
  unsigned processes;
  dump_writer d;
  struct timespec now;
  (void)count;
  (void)words;
  if (!begin_view(w)) return false;
  collector_read_on(w->collector, false);
  const view_process *p = view_look(w->view, &processes);
  (void)clock_gettime(CLOCK_REALTIME, &now);
  dump_start(&d, reply, false);
  dump_begin(&d, '{');
  dump_key_unsigned(&d, "time_ns", (uint64_t)now.tv_sec * S_NS + (uint64_t)now.tv_nsec);
  dump_key_unsigned(&d, "since_ns", view_since(w->view));
  dump_key_text(&d, "trace", w->trace);
  dump_key_unsigned(&d, "own_ns", own_ns());
  dump_key(&d, "processes");
  dump_begin(&d, '[');
  for (unsigned i = 0; i < processes; i++)
    put_figures(&d, &p[i]);
  dump_end(&d, ']');
  dump_end(&d, '}');
  dump_finish(&d);
  return true;
}

/* ---- metrics --------------------------------------------------------------------------------- */

static void write_page(void *context, FILE *out, bool open_metrics)
{
  watch *w = context;
  unsigned count;
  collector_read_on(w->collector, false);
  const view_process *all = view_look(w->view, &count);
  wr_page_process *p = cmd_alloc((count + 1) * sizeof *p);
  for (unsigned i = 0; i < count; i++)
    p[i] = (wr_page_process){all[i].figures, all[i].pid, all[i].rank, all[i].ended, all[i].dropped};
  const wr_page page = {.job = w->job,
                        .process = p,
                        .count = count,
                        .dumps = collector_dumps(w->collector),
                        .own_seconds = (double)own_ns() * 1e-9,
                        .since = (double)view_since(w->view) * 1e-9};
  wr_page_write(out, &page, open_metrics);
  free(p);
}

static void serve_metrics(void *context)
{
  metrics_serve(context);
}

void watch_begin(watch *w)
{
  (void)begin_view(w);
}

void watch_metrics(watch *w, metrics *m)
{
  w->metrics = m;
  if (begin_view(w))
    collector_serve_too(w->collector, metrics_begin(m, write_page, w), serve_metrics, m);
}

/* ---- life ------------------------------------------------------------------------------------ */

watch *watch_new(collector *c, const char *trace)
{
  watch *w = cmd_alloc(sizeof *w);
  control *asked = collector_control(c);
  char *path = realpath(trace, NULL);
  w->collector = c;
  w->trace = cmd_format("%s", path ? path : trace);
  w->job = find_job();
  if (asked) control_on(asked, "ps", answer_ps, w);
  if (asked) control_on(asked, "top", answer_top, w);
  free(path);
  return w;
}

void watch_finish(watch *w)
{
  if (w->metrics) metrics_finish(w->metrics);
}

void watch_free(watch *w)
{
  if (!w) return;
  control *asked = collector_control(w->collector);
  if (asked) control_on(asked, "ps", NULL, NULL);
  if (asked) control_on(asked, "top", NULL, NULL);
  collector_serve_too(w->collector, -1, NULL, NULL);
  metrics_close(w->metrics);
  view_free(w->view);
  free(w->trace);
  free(w->job);
  free(w);
}
