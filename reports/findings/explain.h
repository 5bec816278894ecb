/* explain.h: what each rule's findings mean: a page a rule, in the folder explain, linked in as the
 * rules are (reports/rules.mk).
 *
 * A page is Markdown of the plainest kind: headings of two '#', paragraphs, code between lines of
 * three backticks; in a paragraph `code`, or one word in '*'. */
#ifndef WEIR_REPORTS_FINDINGS_EXPLAIN_H
#define WEIR_REPORTS_FINDINGS_EXPLAIN_H

/* Returns the page of the rule of that id. NULL: it has none, as a rule of a user's own. */
const char *wr_explanation(const char *id);

#endif
