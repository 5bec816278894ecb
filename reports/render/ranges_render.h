/* ranges_render.h: the two faces of a model's ranges. */
#ifndef WEIR_REPORTS_RANGES_RENDER_H
#define WEIR_REPORTS_RANGES_RENDER_H

#include <jansson.h>
#include "reports/model/ranges.h"
#include "reports/write/page.h"

/* Nothing where there are none. */
void wr_ranges_section(wr_page *p, const wr_ranges *r);
json_t *wr_ranges_json(const wr_ranges *r); /* new */

#endif
