/* in_use_render.h: the two faces of what is in use of a device. */
#ifndef WEIR_REPORTS_IN_USE_RENDER_H
#define WEIR_REPORTS_IN_USE_RENDER_H

#include <jansson.h>
#include "reports/model/in_use.h"
#include "reports/write/page.h"

/* Nothing where the driver was never asked. */
/* `u`: WR_SAYERS of them. */
void wr_in_use_section(wr_page *p, int device, const wr_in_use *u);
json_t *wr_in_use_json(const wr_in_use *u); /* new; null where the driver was never asked */

#endif
