/* findings_render.h: the two faces of findings. */
#ifndef WEIR_REPORTS_FINDINGS_RENDER_H
#define WEIR_REPORTS_FINDINGS_RENDER_H

#include <jansson.h>
#include "reports/findings/findings.h"
#include "reports/write/page.h"
#include "reports/render/report.h"

/* The section of a page; `whole`: with all of them, not the first few of a summary. */
void wr_findings_section(wr_page *p, const wr_findings *f, bool whole);
json_t *wr_findings_json(const wr_findings *f); /* new; NULL: out of memory */

weir_status wr_findings_render_text(FILE *out, const wr_findings *f, const char *path,
                                    const report_settings *options);
weir_status wr_findings_render_json(FILE *out, const wr_findings *f, const char *path);

#endif
