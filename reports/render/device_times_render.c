/* device_times_render.c: the device times of a model, as text and as JSON. */
#include "reports/render/device_times_render.h"

static const struct {
  const char *name, *words;
} works[WR_WORKS] = {
#define WORK_NAME(id, name, words) {name, words},
    WR_WORK_MAP(WORK_NAME)
#undef WORK_NAME
};

static void print_works(wr_page *p, const wr_device_time *d)
{
  for (int i = 0; i < WR_WORKS; i++) {
    const wr_work_sum *w = &d->work[i];
    if (!w->operations) continue;
    wr_grid_row(&p->grid);
    CELL(p, "GPU %d", d->device);
    CELLS(p, works[i].words, COUNT(w->operations), w->bytes ? BYTES(w->bytes) : "-",
          w->timed ? DURATION(w->busy_ns) : "-",
          w->timed_bytes ? wr_speed(w->timed_bytes, w->busy_ns).text : "-");
  }
}

static void print_device(wr_page *p, const wr_device_time *d)
{
  if (!d->span_ns) return;
  LINE(p, false, "GPU %d: busy %s of %s (%s), idle %s", d->device, DURATION(d->busy_ns),
       DURATION(d->span_ns), wr_percent(d->busy_ns, d->span_ns).text,
       DURATION(d->span_ns - d->busy_ns));
  if (d->kernel_ns && d->copy_ns)
    LINE(p, false, "GPU %d: of %s in which it copied, kernels ran in %s (%s)", d->device,
         DURATION(d->copy_ns), DURATION(d->overlap_ns), wr_percent(d->overlap_ns, d->copy_ns).text);
}

/* What device times there are not. */
static void print_unseen_work(wr_page *p, const wr_device_times *t)
{
  if (t->unavailable) LINE(p, true, "device times are not all there: %s", t->unavailable);
  if (t->yields)
    LINE(p, true, "the program used CUPTI itself: %s without device times, in %s",
         DURATION(t->yielded_ns), OF(t->yields, "stretch", "stretches"));
  if (t->dropped) LINE(p, true, "%s lost", COUNTED(t->dropped, "device operation"));
  if (t->untimed) LINE(p, true, "%s without times", COUNTED(t->untimed, "device operation"));
  if (t->unmatched)
    LINE(p, false, "%s of no recorded call", COUNTED(t->unmatched, "device operation"));
  if (t->incomplete)
    LINE(p, true, "%s ended before the last operations were had",
         OF(t->incomplete, "process", "processes"));
}

void wr_device_times_section(wr_page *p, const wr_device_times *t)
{
  if (!t->count && !t->observed && !t->unavailable && !t->yields) return;
  wr_page_heading(p, "Device time", t->observed);
  if (t->count) {
    wr_page_begin(p, "llrrrr");
    ROW(p, "device", "work", "count", "bytes", "time", "speed");
    for (size_t i = 0; i < t->count; i++)
      print_works(p, &t->device[i]);
    wr_page_end(p);
  }
  for (size_t i = 0; i < t->count; i++)
    print_device(p, &t->device[i]);
  print_unseen_work(p, t);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void put_number(json_t *o, const char *name, uint64_t n)
{
  json_object_set_new(o, name, json_integer((json_int_t)n));
}

static json_t *works_json(const wr_device_time *d)
{
  json_t *all = json_object();
  for (int i = 0; i < WR_WORKS; i++) {
    const wr_work_sum *w = &d->work[i];
    if (!w->operations) continue;
    json_t *o = json_object();
    put_number(o, "operations", w->operations);
    put_number(o, "timed_operations", w->timed);
    put_number(o, "bytes", w->bytes);
    put_number(o, "timed_bytes", w->timed_bytes);
    put_number(o, "busy_ns", w->busy_ns);
    json_object_set_new(all, works[i].name, o);
  }
  return all;
}

json_t *wr_device_times_json(const wr_device_times *t)
{
  json_t *a = json_array();
  for (size_t i = 0; i < t->count; i++) {
    const wr_device_time *d = &t->device[i];
    json_t *o = json_object();
    put_number(o, "device", (uint64_t)d->device);
    put_number(o, "span_ns", d->span_ns);
    put_number(o, "busy_ns", d->busy_ns);
    put_number(o, "copy_ns", d->copy_ns);
    put_number(o, "kernel_ns", d->kernel_ns);
    put_number(o, "overlap_ns", d->overlap_ns);
    json_object_set_new(o, "work", works_json(d));
    json_array_append_new(a, o);
  }
  return a;
}

static json_t *text_or_null(const char *text)
{
  json_t *string = text ? json_string(text) : NULL;
  return string ? string : json_null();
}

json_t *wr_device_observation_json(const wr_device_times *t)
{
  json_t *o = json_object();
  json_object_set_new(o, "observed", text_or_null(t->observed));
  json_object_set_new(o, "unavailable", text_or_null(t->unavailable));
  put_number(o, "yields", t->yields);
  put_number(o, "yielded_ns", t->yielded_ns);
  put_number(o, "dropped", t->dropped);
  put_number(o, "untimed", t->untimed);
  put_number(o, "unmatched", t->unmatched);
  put_number(o, "incomplete_processes", t->incomplete);
  return o;
}
