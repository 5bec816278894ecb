/* waits_json.c: what the waits of a model had to wait for. */
#include "reports/write/report_json.h"

const char *wr_unjudged_name(wr_unjudged why)
{
  static const char *const names[] = {NULL, "unfinished", "version", "operations", "resolved"};
  return names[why];
}

static json_t *part_json(const wr_wait_part *x)
{
  json_t *o = json_object();
  wr_json_put(o, "calls", x->calls);
  wr_json_put(o, "working_ns", x->working_ns);
  wr_json_put(o, "other_ns", x->other_ns);
  wr_json_put(o, "idle_ns", x->idle_ns);
  wr_json_put(o, "unknown_ns", x->unknown_ns);
  return o;
}

static json_t *divided_json(const wr_wait_truth *t)
{
  if (!t->divided) return json_null();
  json_t *o = part_json(&t->all), *list = json_array();
  for (size_t i = 0; i < t->part_count; i++) {
    json_t *part = part_json(&t->part[i]);
    json_object_set_new(part, "function", json_string(t->part[i].function));
    json_array_append_new(list, part);
  }
  json_object_set_new(o, "functions", list);
  return o;
}

json_t *wr_waits_json(const wr_wait_truth *t)
{
  if (!t->judged) return json_null();
  json_t *o = json_object();
  wr_json_put(o, "judged_calls", t->judged_calls);
  wr_json_put(o, "unknown_calls", t->unknown_calls);
  wr_json_put(o, "redundant_calls", t->redundant_calls);
  wr_json_put(o, "redundant_ns", t->redundant_ns);
  wr_json_put(o, "wider_calls", t->wider_calls);
  wr_json_put(o, "wider_ns", t->wider_ns);
  json_object_set_new(o, "divided", divided_json(t));
  return o;
}
