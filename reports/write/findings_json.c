/* findings_json.c: findings as JSON, "weir-findings/1" (SCHEMA.md, "Findings"). */
#include "reports/write/report_json.h"

static json_t *number(uint64_t n)
{
  return json_integer((json_int_t)(n > INT64_MAX ? INT64_MAX : n));
}

static json_t *sites_json(const wr_finding *f)
{
  json_t *list = json_array();
  for (size_t i = 0; i < f->sites; i++) {
    json_t *site = json_object();
    json_object_set_new(site, "function", json_string(f->site[i].function));
    json_object_set_new(site, "file", wr_json_text(f->site[i].file));
    json_object_set_new(site, "line", json_integer(f->site[i].line));
    json_object_set_new(site, "source", wr_json_text(f->site[i].source));
    json_object_set_new(site, "cost_ns", number(f->site[i].cost_ns));
    json_object_set_new(site, "count", number(f->site[i].count));
    json_array_append_new(list, site);
  }
  return list;
}

/* Of the run's time, 0 to 1. */
static json_t *share_json(const wr_findings *all, uint64_t ns)
{
  return json_real(all->duration_ns ? (double)ns / (double)all->duration_ns : 0);
}

static json_t *finding_json(const wr_findings *all, const wr_finding *f)
{
  json_t *o = json_object();
  json_object_set_new(o, "rule", json_integer(f->rule->number));
  json_object_set_new(o, "id", json_string(f->rule->id));
  json_object_set_new(o, "title", json_string(f->rule->title));
  json_object_set_new(o, "severity", json_string(wr_severity_name(f->rule->severity)));
  json_object_set_new(o, "certainty", json_string(wr_certainty_name(f->certainty)));
  json_object_set_new(o, "cost_ns", number(f->cost_ns));
  json_object_set_new(o, "saving_ns", number(f->saving_ns));
  json_object_set_new(o, "saving_share", share_json(all, f->saving_ns));
  json_object_set_new(o, "saving_bytes", number(f->saving_bytes));
  json_object_set_new(o, "bytes_are", json_string(f->rule->holds ? "held" : "moved"));
  json_object_set_new(o, "count", number(f->count));
  json_object_set_new(o, "sites", sites_json(f));
  json_object_set_new(o, "more_sites", number(f->more_sites));
  json_object_set_new(o, "range", wr_json_text(f->range));
  json_object_set_new(o, "device", f->device >= 0 ? json_integer(f->device) : json_null());
  if (!json_object_set_new(o, "fix", json_string(f->rule->fix))) return o;
  json_decref(o);
  return NULL;
}

static json_t *removed_json(const wr_findings *f)
{
  json_t *list = json_array();
  for (size_t i = 0; i < f->removed_count; i++) {
    json_t *o = json_object();
    json_object_set_new(o, "id", json_string(f->removed[i].rule->id));
    json_object_set_new(o, "count", number(f->removed[i].count));
    json_object_set_new(o, "bytes", number(f->removed[i].bytes));
    json_array_append_new(list, o);
  }
  return list;
}

static json_t *unjudged_json(const wr_findings *f)
{
  json_t *list = json_array();
  for (size_t i = 0; i < f->unjudged_count; i++) {
    json_t *o = json_object();
    json_object_set_new(o, "id", json_string(f->unjudged[i].rule->id));
    json_object_set_new(o, "why", json_string(f->unjudged[i].why));
    json_array_append_new(list, o);
  }
  return list;
}

json_t *wr_findings_json(const wr_findings *f)
{
  json_t *o = json_object(), *list = json_array();
  int failed = json_object_set_new(o, "schema", json_string("weir-findings/1"));
  for (size_t i = 0; !failed && i < f->count; i++)
    failed = json_array_append_new(list, finding_json(f, &f->finding[i]));
  if (json_object_set_new(o, "findings", list)) failed = -1;
  json_object_set_new(o, "duration_ns", number(f->duration_ns));
  json_object_set_new(o, "saving_ns", number(f->saving_ns));
  json_object_set_new(o, "sure_saving_ns", number(f->sure_saving_ns));
  json_object_set_new(o, "moved_bytes", number(f->moved_bytes));
  json_object_set_new(o, "removed", removed_json(f));
  json_object_set_new(o, "unavailable", wr_json_text(f->unavailable));
  if (json_object_set_new(o, "unjudged", unjudged_json(f))) failed = -1;
  if (!failed) return o;
  json_decref(o);
  return NULL;
}
