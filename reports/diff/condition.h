/* condition.h: the sentences of a budget and of --fail-on, read.
 *
 *   condition   = [ scope ":" ] metric comparison value
 *   scope       = "device" NUMBER | "site" NAME | "range" NAME
 *   NAME        = between double quotes; \" and \\ in it are a quote and a backslash
 *   metric      = a name of metrics.h, or "finding" with blanks and certain, likely or possible
 *   comparison  = "<=" | "<" | ">=" | ">" | "==" | "!="
 *   value       = [ "+" | "-" ] NUMBER [ unit | "%" ]
 *   unit        = B KiB MiB GiB TiB | ns us ms s min
 *
 * Blanks may stand between all of these. With a sign the value is relative to another run's: so
 * much more, or less. A number of bytes or of time has a unit, unless it is 0; a count has none; a
 * share has a sign. A list has commas between its conditions; a file has one a line, and comments,
 * from a # outside of quotes to the line's end. */
#ifndef WEIR_REPORTS_CONDITION_H
#define WEIR_REPORTS_CONDITION_H

#include <stdint.h>
#include "core/base/status.h"
#include "reports/diff/metrics.h"

typedef enum wr_comparison {
  WR_LESS_EQUAL,
  WR_GREATER_EQUAL,
  WR_EQUAL,
  WR_NOT_EQUAL,
  WR_LESS,
  WR_GREATER
} wr_comparison;

typedef enum wr_relative {
  WR_ABSOLUTE,
  WR_BY_AMOUNT,
  WR_BY_SHARE /* of A's value, in % */
} wr_relative;

typedef struct wr_condition {
  char *text;  /* owned: as it is written, without blanks around; fit to print */
  int of;      /* WR_OF_* */
  int device;  /* of WR_OF_DEVICE */
  char *name;  /* owned, of WR_OF_SITE and WR_OF_RANGE, fit to print; else NULL */
  size_t line; /* of the file, from 1; 0: of a list */
  wr_metric metric;
  wr_comparison comparison;
  wr_relative relative;
  long double amount; /* in bytes, ns, pieces or %; with its sign */
} wr_condition;

typedef struct wr_conditions {
  wr_condition *condition; /* owned */
  size_t count, capacity;
  bool findings; /* one of them counts findings */
} wr_conditions;

/* Conditions with commas between them. EINVAL names the column: "WHERE, column 7: ...". */
weir_status wr_conditions_of_list(wr_conditions *out, const char *where, const char *list);

/* Those of a file, which are absolute. EINVAL: "PATH:3:7: ..."; ENOENT, EIO. */
weir_status wr_conditions_of_file(wr_conditions *out, const char *path);
void wr_conditions_free(wr_conditions *c);

/* The comparison as it is written. */
const char *wr_comparison_text(wr_comparison c);

#endif
