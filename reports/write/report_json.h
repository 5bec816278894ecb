/* report_json.h: "weir-report/1" and its parts: new; of lack of memory the root finds out. */
#ifndef WEIR_REPORTS_REPORT_JSON_H
#define WEIR_REPORTS_REPORT_JSON_H

#include <jansson.h>
#include "reports/findings/findings.h"
#include "reports/model/model.h"

json_t *wr_summary_json(const wr_model *m); /* all of it; NULL: out of memory */
json_t *wr_in_use_json(const wr_in_use *u); /* null where the driver was never asked */
json_t *wr_named_json(const wr_named *n);
json_t *wr_tensors_json(const wr_tensors *t);
json_t *wr_ranges_json(const wr_named_ranges *r);
json_t *wr_graphs_json(const wr_graphs *g);
json_t *wr_waits_json(const wr_wait_truth *t);
json_t *wr_device_times_json(const wr_model *m);
json_t *wr_device_observation_json(const wr_model *m);

json_t *wr_cache_json(const wr_cache *c);
json_t *
wr_findings_json(const wr_findings *f); /* "weir-findings/1" by itself; NULL: out of memory */

/* A number; a text, or null: new. Every text of a model is valid UTF-8 (wr_text), so these fail for lack of memory
 * only; jansson's *_new functions take a NULL value as failure, and the last look at the root finds it. */
static inline json_t *wr_json_number(uint64_t n)
{
  return json_integer((json_int_t)n);
}

static inline json_t *wr_json_text(const char *text)
{
  return text ? json_string(text) : json_null();
}

static inline void wr_json_put(json_t *o, const char *name, uint64_t n)
{
  json_object_set_new(o, name, wr_json_number(n));
}

/* "operations", "unfinished" and the like; NULL: it is known. */
const char *wr_unjudged_name(wr_unjudged why);

#endif
