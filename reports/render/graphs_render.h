/* graphs_render.h: the two faces of launches of graphs by place. */
#ifndef WEIR_REPORTS_GRAPHS_RENDER_H
#define WEIR_REPORTS_GRAPHS_RENDER_H

#include <jansson.h>
#include "reports/model/graphs.h"
#include "reports/write/page.h"

/* Nothing where no graph was launched. */
void wr_graphs_section(wr_page *p, const wr_graphs *g);
json_t *wr_graphs_json(const wr_graphs *g); /* new */

#endif
