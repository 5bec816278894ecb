/* sections_json.h: parts of "weir-report/1": new; of lack of memory the root finds out. */
#ifndef WEIR_REPORTS_SECTIONS_JSON_H
#define WEIR_REPORTS_SECTIONS_JSON_H

#include <jansson.h>
#include "reports/model/model.h"

json_t *wr_in_use_json(const wr_in_use *u); /* null where the driver was never asked */
json_t *wr_named_json(const wr_named *n);
json_t *wr_tensors_json(const wr_tensors *t);
json_t *wr_ranges_json(const wr_named_ranges *r);
json_t *wr_graphs_json(const wr_graphs *g);
json_t *wr_waits_json(const wr_wait_truth *t);
json_t *wr_device_times_json(const wr_model *m);
json_t *wr_device_observation_json(const wr_model *m);

/* "operations", "unfinished" and the like; NULL: it is known. */
const char *wr_unjudged_name(wr_unjudged why);

#endif
