/* cache_render.h: the two faces of what the caches did. */
#ifndef WEIR_REPORTS_CACHE_RENDER_H
#define WEIR_REPORTS_CACHE_RENDER_H

#include <jansson.h>
#include "reports/model/cache.h"
#include "reports/write/page.h"
#include "reports/render/report.h"

/* The section of a page; `whole`: with its tables, not the few lines of a summary. */
void wr_cache_section(wr_page *p, const wr_cache *c, bool whole);
json_t *wr_cache_json(const wr_cache *c); /* new; NULL: out of memory */

weir_status wr_cache_render_text(FILE *out, const wr_cache *c, const char *path,
                                 const report_settings *options);
weir_status wr_cache_render_json(FILE *out, const wr_cache *c, const char *path);

#endif
