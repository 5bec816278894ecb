/* waits_json.c: what the waits of a model had to wait for. */
#include "reports/write/report_json.h"

const char *wr_unjudged_name(wr_unjudged why)
{
  static const char *const names[] = {NULL, "unfinished", "version", "operations", "resolved"};
  return names[why];
}

static void put_number(json_t *o, const char *name, uint64_t n)
{
  json_object_set_new(o, name, json_integer((json_int_t)n));
}

static json_t *part_json(const wr_wait_part *x)
{
  json_t *o = json_object();
  put_number(o, "calls", x->calls);
  put_number(o, "working_ns", x->working_ns);
  put_number(o, "other_ns", x->other_ns);
  put_number(o, "idle_ns", x->idle_ns);
  put_number(o, "unknown_ns", x->unknown_ns);
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
  put_number(o, "judged_calls", t->judged_calls);
  put_number(o, "unknown_calls", t->unknown_calls);
  put_number(o, "redundant_calls", t->redundant_calls);
  put_number(o, "redundant_ns", t->redundant_ns);
  put_number(o, "wider_calls", t->wider_calls);
  put_number(o, "wider_ns", t->wider_ns);
  json_object_set_new(o, "divided", divided_json(t));
  return o;
}
