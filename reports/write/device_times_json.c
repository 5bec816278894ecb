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

static json_t *works_json(const wr_device_time *d)
{
  json_t *all = json_object();
  for (int i = 0; i < WR_WORKS; i++) {
    const wr_work_sum *w = &d->work[i];
    if (!w->operations) continue;
    json_t *o = json_object();
    wr_json_put(o, "operations", w->operations);
    wr_json_put(o, "timed_operations", w->timed);
    wr_json_put(o, "bytes", w->bytes);
    wr_json_put(o, "timed_bytes", w->timed_bytes);
    wr_json_put(o, "busy_ns", w->busy_ns);
    json_object_set_new(all, work_names[i], o);
  }
  return all;
}

static json_t *idle_json(const wr_device_time *d)
{
  json_t *list = json_array();
  for (size_t i = 0; i < d->idle_count; i++) {
    json_t *o = json_object();
    json_object_set_new(o, "cause", json_string(causes[d->idle[i].cause]));
    json_object_set_new(o, "function", wr_json_text(d->idle[i].function));
    wr_json_put(o, "ns", d->idle[i].ns);
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
    json_object_set_new(o, "function", wr_json_text(g->function));
    for (int c = 0; c < WR_IDLE_CAUSES; c++)
      wr_json_put(parts, causes[c], g->ns[c]);
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
    wr_json_put(o, "device", (uint64_t)d->device);
    wr_json_put(o, "span_ns", d->span_ns);
    wr_json_put(o, "busy_ns", d->busy_ns);
    wr_json_put(o, "copy_ns", d->copy_ns);
    wr_json_put(o, "kernel_ns", d->kernel_ns);
    wr_json_put(o, "overlap_ns", d->overlap_ns);
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
  json_object_set_new(o, "observed", wr_json_text(t->observed));
  json_object_set_new(o, "unavailable", wr_json_text(t->unavailable));
  wr_json_put(o, "yields", t->yields);
  wr_json_put(o, "yielded_ns", t->yielded_ns);
  wr_json_put(o, "dropped", t->dropped);
  wr_json_put(o, "untimed", t->untimed);
  wr_json_put(o, "unmatched", t->unmatched);
  wr_json_put(o, "incomplete_processes", t->incomplete);
  wr_json_put(o, "lost_calls", t->lost_calls);
  json_object_set_new(o, "kernels_unobserved", json_boolean(t->no_kernels));
  json_object_set_new(o, "undivided",
                      wr_json_text(t->count ? wr_unjudged_name(m->waits.why_undivided) : NULL));
  return o;
}
