/* tensors_render.h: the two faces of a model's tensors. */
#ifndef WEIR_REPORTS_TENSORS_RENDER_H
#define WEIR_REPORTS_TENSORS_RENDER_H

#include <jansson.h>
#include "reports/write/page.h"
#include "reports/model/tensors.h"

/* Nothing where there were none. */
void wr_tensors_section(wr_page *p, const wr_tensors *t);
json_t *wr_tensors_json(const wr_tensors *t); /* new */

#endif
