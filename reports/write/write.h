/* write.h: a report, which is a list of tables (reports/tables/table.h), in each format. */
#ifndef WEIR_REPORTS_WRITE_H
#define WEIR_REPORTS_WRITE_H

#include <stdio.h>
#include "reports/tables/table.h"
#include "reports/write/layout.h"

/* All tables, or the one of that name. Errors: EINVAL (there is no such table), ENOMEM. */
weir_status wr_tables_write(FILE *out, const wr_tables *t, const report_settings *o);

/* The writers of each format. */
weir_status wr_tables_text(FILE *out, const wr_tables *t, const report_settings *o);
weir_status wr_report_json(FILE *out, const wr_tables *t, const char *only);
/* "weir-report/1" of a summary, "weir-findings/1", the caches alone: of tables made for
 * "weir-report/2". */
weir_status wr_tables_old(FILE *out, const wr_tables *t);
weir_status wr_tables_json(FILE *out, const wr_tables *t, const char *only); /* "weir-tables/1" */
weir_status wr_tables_csv(FILE *out, const wr_tables *t, const char *only);
weir_status wr_tables_markdown(FILE *out, const wr_tables *t, const char *only);
/* The report's name as a heading, and all tables below it, with their asides. */
weir_status wr_markdown_parts(FILE *out, const wr_tables *t);
/* The last table, a testcase a row. */
void wr_tables_junit(FILE *out, const wr_tables *t);

/* The first line of a report's text; the tables from `first` on, `count` of them. */
void wr_text_head(wr_layout *p, const wr_tables *t);
void wr_text_tables(wr_layout *p, const wr_tables *t, size_t first, size_t count);

/* A value as people read it: new, "" where there is none; NULL: out of memory. `keep`, or NULL:
 * how many bytes at its end are never to be cut. `any_width`: text of any width. */
char *wr_value_words(const wr_value *v, const wr_column *column, bool any_width, size_t *keep);

/* Whether people see a row, a column. */
bool wr_row_in_text(const wr_named_table *t, size_t row);
bool wr_row_in_data(const wr_named_table *t, size_t row);
bool wr_column_in_text(const wr_column *c);
bool wr_column_in_data(const wr_column *c);
/* Whether all but "weir-report/2" have it; `only`: the name of the table that was asked for, or
 * NULL. */
bool wr_table_is_written(const wr_named_table *t, const char *only);

#endif
