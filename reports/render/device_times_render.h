/* device_times_render.h: the two faces of a model's device times. */
#ifndef WEIR_REPORTS_DEVICE_TIMES_RENDER_H
#define WEIR_REPORTS_DEVICE_TIMES_RENDER_H

#include <jansson.h>
#include "reports/model/model.h"
#include "reports/write/page.h"

/* Nothing where devices were not observed. */
void wr_device_times_section(wr_page *p);
json_t *wr_device_times_json(const wr_model *m);       /* new */
json_t *wr_device_observation_json(const wr_model *m); /* new */

#endif
