/* json_1.h: what "weir-report/1" and "weir-findings/1" have their members from: columns of tables
 * (json_1_members.c), which json_1.c puts together. */
#ifndef WEIR_REPORTS_JSON_1_H
#define WEIR_REPORTS_JSON_1_H

#include "reports/findings/findings.h"
#include "reports/tables/table.h"

typedef enum old_how {
  OLD_CELL,     /* the value of column `from` */
  OLD_PRESENT,  /* the same; no member where it is not known, or there is no such column */
  OLD_ORDINAL,  /* a device; null: the host */
  OLD_OTHERS,   /* a text; "" where it is "(others)" */
  OLD_FUNCTION, /* parts of the place in column `from` */
  OLD_FILE,
  OLD_LINE,
  OLD_MODULE,
  OLD_NEXT,     /* the value of column `from` of table `with`, in the row of the same number */
  OLD_ONE,      /* the value of column `from` of table `with`, in its first row */
  OLD_MEMBER,   /* the number of member `from` of table `with` */
  OLD_MEMBERS,  /* an object of all members of table `from` */
  OLD_SAME,     /* an object of the same row */
  OLD_KNOWN,    /* the same; null where column `from` is not known, or false */
  OLD_FIRST,    /* an object: the first row of table `from` that fits; null: there is none */
  OLD_LIST,     /* an object a row of table `from` that fits; [] without the table */
  OLD_IF,       /* the same; null without the table */
  OLD_VALUES,   /* the values of the first member alone, a row each */
  OLD_ROWS,     /* an object a row within column `from` that fits */
  OLD_WITHIN,   /* the values of the first member alone, a row each */
  OLD_KEYED,    /* an object with a member a row of table `from` that fits, named by column `key` */
  OLD_PAIRS,    /* the same of the rows within column `from`: the value of the first member alone */
  OLD_INNER,    /* the same, an object a row */
  OLD_CONSTANT, /* the text `from` */
  OLD_TRACE     /* the path of the trace */
} old_how;

typedef struct old_member {
  const char
      *name; /* NULL: the last; "": those of all the words of `from`, "name" or "name=column" */
  old_how how;
  const char *from;
  /* What of a row fits, apart by '|': a column that has what the row around it has; or
   * COLUMN=TEXT. NULL: all. */
  const char *with;
  const char *key;
  const struct old_member *of;
} old_member;

struct json_t;
/* "weir-findings/1", which the page has, too: new; NULL: out of memory. */
struct json_t *wr_findings_old(const wr_findings *f);

extern const old_member old_summary[], old_cache[], old_findings[], old_diff[];

#endif
