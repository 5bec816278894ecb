/* text.h: events as lines for people. */
#ifndef WEIR_REPORTS_LISTING_TEXT_H
#define WEIR_REPORTS_LISTING_TEXT_H

#include <stdio.h>
#include "reports/listing/row.h"

/* The line before the first one. */
void listing_text_head(FILE *out);

/* One line, whatever its texts hold. */
void listing_text_row(FILE *out, const listing_row *row);

#endif
