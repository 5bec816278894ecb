/* record.h: tables of what a model has in structs: a row of a list says which field a column is
 * of. */
#ifndef WEIR_REPORTS_TABLES_RECORD_H
#define WEIR_REPORTS_TABLES_RECORD_H

#include <stddef.h>
#include "reports/tables/table.h"

typedef enum wr_record_as {
  WR_AS_NUMBER, /* uint64_t or int64_t */
  WR_AS_TEXT,   /* char *; NULL: none is known */
  WR_AS_TRUTH,  /* bool */
  WR_AS_DEVICE, /* int: an ordinal; below 0 or WR_HOST: the host */
  WR_AS_KNOWN   /* int64_t; below 0: none is known */
} wr_record_as;

typedef struct wr_record {
  wr_column column;
  wr_record_as as;
  size_t offset;
} wr_record;

/* {column, what of it, field of the struct} */
#define WR_RECORD(of, field, as, name, title, type, how)                                           \
  {                                                                                                \
    {name, title, type, how}, WR_AS_##as, offsetof(of, field)                                      \
  }

/* An empty table with these columns, for "weir-report/2" and where it is asked for by name. */
wr_named_table *wr_record_add(wr_tables *t, const char *name, const char *title,
                              const wr_record *columns, size_t count);
#define WR_RECORDS(tables, name, title, columns)                                                   \
  wr_record_add(tables, name, title, columns, sizeof(columns) / sizeof *(columns))

/* Puts the values of a struct into the row. */
void wr_record_put(wr_named_table *t, const wr_record *columns, size_t count, const void *of);
/* A row of them. */
#define WR_RECORD_ROW(t, columns, of)                                                              \
  (wr_table_row(t), wr_record_put(t, columns, sizeof(columns) / sizeof *(columns), of))

#endif
