/* waits_render.h: the two faces of what a model says of waits. */
#ifndef WEIR_REPORTS_WAITS_RENDER_H
#define WEIR_REPORTS_WAITS_RENDER_H

#include <jansson.h>
#include "reports/model/model.h"
#include "reports/write/page.h"

void wr_wait_parts_section(wr_page *p); /* how their time divides */
void wr_wait_places_section(wr_page *p);
void wr_unjudged_lines(wr_page *p); /* what of it is not known */

json_t *wr_waits_json(const wr_wait_truth *t); /* new */

/* "operations", "unfinished" and the like; NULL: it is known. */
const char *wr_unjudged_name(wr_unjudged why);

#endif
