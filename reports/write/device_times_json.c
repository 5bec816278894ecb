/* device_times_json.c: the device times of a model. */
#include "reports/write/report_json.h"

static const char *const causes[WR_IDLE_CAUSES] = {
#define CAUSE_NAME(id, value, name) [value] = name,
    WR_IDLE_MAP(CAUSE_NAME)
#undef CAUSE_NAME
};

static const char *const work_names[WR_WORKS] = {
#define WORK_NAME(id, name, words) name,
    WR_WORK_MAP(WORK_NAME)
#undef WORK_NAME
};

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
    json_object_set_new(all, work_names[i], o);
  }
  return all;
}

static json_t *text_or_null(const char *text)
{
  json_t *string = text ? json_string(text) : NULL;
  return string ? string : json_null();
}

static json_t *idle_json(const wr_device_time *d)
{
  json_t *list = json_array();
  for (size_t i = 0; i < d->idle_count; i++) {
    json_t *o = json_object();
    json_object_set_new(o, "cause", json_string(causes[d->idle[i].cause]));
    json_object_set_new(o, "function", text_or_null(d->idle[i].function));
    put_number(o, "ns", d->idle[i].ns);
    json_array_append_new(list, o);
  }
  return list;
}

static json_t *gaps_json(const wr_device_time *d)
{
  json_t *list = json_array();
  for (size_t i = 0; i < d->gap_count; i++) {
    const wr_idle_gap *g = &d->gap[i];
    json_t *o = json_object(), *parts = json_object();
    json_object_set_new(o, "start_ns", json_integer(g->start));
    json_object_set_new(o, "end_ns", json_integer(g->end));
    json_object_set_new(o, "function", text_or_null(g->function));
    for (int c = 0; c < WR_IDLE_CAUSES; c++)
      put_number(parts, causes[c], g->ns[c]);
    json_object_set_new(o, "causes", parts);
    json_array_append_new(list, o);
  }
  return list;
}

json_t *wr_device_times_json(const wr_model *m)
{
  const wr_device_times *t = &m->device_times;
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
    json_object_set_new(o, "queue_full_ns",
                        m->waits.divided ? json_integer((json_int_t)d->full_ns) : json_null());
    json_object_set_new(o, "idle", m->waits.divided ? idle_json(d) : json_null());
    json_object_set_new(o, "longest_idle", m->waits.divided ? gaps_json(d) : json_null());
    json_array_append_new(a, o);
  }
  return a;
}

json_t *wr_device_observation_json(const wr_model *m)
{
  const wr_device_times *t = &m->device_times;
  json_t *o = json_object();
  json_object_set_new(o, "observed", text_or_null(t->observed));
  json_object_set_new(o, "unavailable", text_or_null(t->unavailable));
  put_number(o, "yields", t->yields);
  put_number(o, "yielded_ns", t->yielded_ns);
  put_number(o, "dropped", t->dropped);
  put_number(o, "untimed", t->untimed);
  put_number(o, "unmatched", t->unmatched);
  put_number(o, "incomplete_processes", t->incomplete);
  put_number(o, "lost_calls", t->lost_calls);
  json_object_set_new(o, "kernels_unobserved", json_boolean(t->no_kernels));
  json_object_set_new(o, "undivided",
                      text_or_null(t->count ? wr_unjudged_name(m->waits.why_undivided) : NULL));
  return o;
}
