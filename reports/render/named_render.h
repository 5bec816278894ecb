/* named_render.h: the two faces of memory with names. */
#ifndef WEIR_REPORTS_NAMED_RENDER_H
#define WEIR_REPORTS_NAMED_RENDER_H

#include <jansson.h>
#include "reports/model/named.h"
#include "reports/write/page.h"

/* Nothing where no memory has a name. */
void wr_named_section(wr_page *p, const wr_named *n);
json_t *wr_named_json(const wr_named *n); /* new */

#endif
