/* write.h: rows become lines. */
#ifndef WEIR_REPORTS_LISTING_WRITE_H
#define WEIR_REPORTS_LISTING_WRITE_H

#include <stdio.h>
#include "reports/listing/listing.h"
#include "reports/listing/row.h"

/* What comes before the first row: titles, where the format has them. */
void listing_write_head(FILE *out, listing_format format);

/* One row: one line, whatever its texts hold. */
void listing_write_row(FILE *out, listing_format format, const listing_row *row);

#endif
