/* escape.h: texts of a trace, which are whatever a program, or who made the file, wrote, in formats
 * that have their own signs. */
#ifndef WEIR_REPORTS_ESCAPE_H
#define WEIR_REPORTS_ESCAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Characters that are not seen, or that have others seen in another order (U+200B, U+202E), are
 * written as JSON escapes them, "\\u202e", in every format: a terminal would obey them. New memory
 * where there are any, else `text` itself, which is taken; NULL stays so, or: out of memory. */
char *wr_show_unseen(char *text);

/* Returns a new stream that writes such characters as escapes to `to`; it is to be closed before
 * that one. NULL: out of memory. */
FILE *wr_show_unseen_in(FILE *to);

/* A string of JSON, quotes included: control characters escaped, U+FFFD for what is no UTF-8. */
void wr_put_json_text(FILE *out, const char *text);

/* '?' for control characters and for what is no UTF-8; quotes are doubled where `quoted`. Returns
 * how many characters that are. */
size_t wr_put_clean_text(FILE *out, const char *text, bool quoted);

/* A field of CSV: within quotes where there is a comma, a quote, an end of line or one of `also`
 * in it; '?' as above. What a spreadsheet would take for a formula, as it begins with = + - or @
 * and is no number, has an apostrophe in front. */
void wr_put_csv_text(FILE *out, const char *text, const char *also);

/* A field of what tabs separate, which has no quotes: '?' and the apostrophe as above. */
void wr_put_tsv_text(FILE *out, const char *text);

/* A text that Markdown shows as it is: what is a sign of Markdown's or of HTML's, and what it would
 * make a link of, is a number in "&#;"; '?' as above. */
void wr_put_markdown_text(FILE *out, const char *text);

/* A text of XML 1.0, within quotes or between tags; '?' as above. */
void wr_put_xml_text(FILE *out, const char *text);

#endif
