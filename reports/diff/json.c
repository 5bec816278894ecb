/* json.c: a diff as JSON, "weir-diff/1" (SCHEMA.md, "The diff as JSON"). */
#include <jansson.h>
#include "reports/diff/report.h"

static json_t *value_json(const wr_figures *f, const wr_subject *x, wr_metric m)
{
  return f->unknown[m] || !x ? json_null() : json_integer((json_int_t)x->value[m]);
}

/* Each metric that the subject can have: {"a": 1, "b": 2}, null where it is not known or not
 * there. */
static json_t *values_json(const wr_diff *d, const wr_pair *x)
{
  json_t *o = json_object();
  int of = (x->a ? x->a : x->b)->of;
  for (int m = 0; m < WR_METRICS; m++) {
    if (!(wr_metric_rows[m].of & of)) continue;
    json_object_set_new(o, wr_metric_rows[m].name,
                        json_pack("{s:o, s:o}", "a", value_json(&d->a, x->a, (wr_metric)m), "b",
                                  value_json(&d->b, x->b, (wr_metric)m)));
  }
  return o;
}

static json_t *lines_json(const wr_lines *l)
{
  json_t *list = json_array();
  for (size_t i = 0; l && i < l->count; i++)
    json_array_append_new(list, json_integer(l->line[i]));
  return list;
}

/* Where a site is on one side: its file, and its lines by what is called there. */
static json_t *place_json(const wr_subject *x)
{
  static const char *const names[] = {[WR_LINES_PEAK] = "peak",
                                      [WR_LINES_LEAKS] = "leaks",
                                      [WR_LINES_COPIES] = "transfers",
                                      [WR_LINES_WAITS] = "waits",
                                      [WR_LINES_ALLOCS] = "allocations"};
  if (!x) return json_null();
  json_t *lines = json_object();
  for (int l = 0; l < WR_LINES_LISTS; l++)
    json_object_set_new(lines, names[l], lines_json(&x->lines[l]));
  return json_pack("{s:s?, s:o}", "file", x->file, "lines", lines);
}

static json_t *subject_json(const wr_diff *d, const wr_pair *x)
{
  const wr_subject *any = x->b ? x->b : x->a;
  json_t *o = json_object();
  if (any->of == WR_OF_DEVICE) json_object_set_new(o, "device", json_integer(any->device));
  if (any->of == WR_OF_RANGE) {
    json_object_set_new(o, "domain", json_string(any->domain));
    json_object_set_new(o, "text", json_string(any->name));
  }
  if (any->of == WR_OF_SITE) {
    json_object_set_new(o, "function", json_string(any->name));
    json_object_set_new(o, "module", json_string(any->module));
    json_object_set_new(o, "a", place_json(x->a));
    json_object_set_new(o, "b", place_json(x->b));
  } else if (any->of != WR_OF_RUN) {
    json_object_set_new(o, "in_a", json_boolean(x->a != NULL));
    json_object_set_new(o, "in_b", json_boolean(x->b != NULL));
  }
  json_object_set_new(o, "metrics", values_json(d, x));
  return o;
}

static json_t *subjects_json(const wr_diff *d, int of)
{
  json_t *list = json_array();
  for (size_t i = 0; i < d->count; i++) {
    const wr_pair *x = &d->pair[i];
    if ((x->a ? x->a : x->b)->of == of) json_array_append_new(list, subject_json(d, x));
  }
  return list;
}

static json_t *trace_json(const wr_figures *f)
{
  return json_pack("{s:s, s:s, s:b, s:b}", "trace", f->path, "command", f->command, "complete",
                   f->finished, "findings_judged", f->judged);
}

static json_t *waste_side_json(const wr_wasted *w)
{
  if (!w) return json_null();
  return json_pack("{s:s, s:I, s:I, s:I, s:I, s:s?, s:o}", "certainty",
                   wr_certainty_name(w->certainty), "findings", (json_int_t)w->findings, "count",
                   (json_int_t)w->count, "saving_ns", (json_int_t)w->saving_ns, "saving_bytes",
                   (json_int_t)w->saving_bytes, "file", w->file, "lines", lines_json(&w->lines));
}

static json_t *findings_json(const wr_diff *d)
{
  static const char *const fates[] = {"gone", "new", "stays", "not_judged"};
  json_t *list = json_array();
  for (size_t i = 0; i < d->waste_count; i++) {
    const wr_waste_pair *x = &d->waste[i];
    const wr_wasted *any = x->b ? x->b : x->a;
    json_array_append_new(list, json_pack("{s:s, s:i, s:s, s:s, s:s?, s:o, s:o}", "state",
                                          fates[x->fate], "rule", any->rule->number, "id",
                                          any->rule->id, "title", any->rule->title, "function",
                                          *any->function ? any->function : NULL, "a",
                                          waste_side_json(x->a), "b", waste_side_json(x->b)));
  }
  return list;
}

static json_t *conditions_json(const wr_verdicts *v)
{
  json_t *list = json_array();
  for (size_t i = 0; i < v->count; i++) {
    const wr_verdict *x = &v->verdict[i];
    json_array_append_new(
        list, json_pack("{s:s, s:s, s:o, s:o, s:o, s:s?}", "condition", x->condition->text,
                        "metric", wr_metric_rows[x->condition->metric].name, "met",
                        x->known ? json_boolean(x->met) : json_null(), "value",
                        x->known ? json_integer((json_int_t)x->value) : json_null(), "limit",
                        x->known ? json_real((double)x->limit) : json_null(), "note", x->note));
  }
  return list;
}

weir_status wr_diff_render_json(FILE *out, const wr_diff *d)
{
  json_t *o =
      json_pack("{s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "schema", "weir-diff/1", "a",
                trace_json(&d->a), "b", trace_json(&d->b), "run", values_json(d, &d->pair[0]),
                "devices", subjects_json(d, WR_OF_DEVICE), "sites", subjects_json(d, WR_OF_SITE),
                "ranges", subjects_json(d, WR_OF_RANGE), "findings", findings_json(d), "conditions",
                conditions_json(&d->verdicts));
  if (!o) return weir_fail(WEIR_ENOMEM, "reporting on %s: out of host memory", d->b.path);
  int written = json_dumpf(o, out, JSON_INDENT(2));
  json_decref(o);
  if (written || fputc('\n', out) == EOF || fflush(out))
    return weir_fail(WEIR_EIO, "the report on %s cannot be written", d->b.path);
  return WEIR_OK;
}
