/* render.h: the two faces of a model. */
#ifndef WEIR_REPORTS_RENDER_H
#define WEIR_REPORTS_RENDER_H

#include <stdio.h>
#include "reports/model/model.h"
#include "reports/render/report.h"

weir_status wr_render_json(FILE *out, const wr_model *m);
/* `findings` stand first; NULL: none were looked for. */
weir_status wr_render_text(FILE *out, const wr_model *m, const wr_findings *findings,
                           const report_settings *options);

#endif
