/* json.h: texts as JSON, for the writers of it. */
#ifndef WEIR_REPORTS_WRITE_JSON_H
#define WEIR_REPORTS_WRITE_JSON_H

struct json_t;
struct json_t *wr_json_text(const char *text);  /* new; of NULL: null */
struct json_t *wr_json_lines(const char *text); /* new: a text for each line; of NULL: [] */

#endif
