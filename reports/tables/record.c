/* record.c: see record.h. */
#include "reports/tables/record.h"
#include <string.h>
#include "reports/tables/group.h"

enum { MOST = 48 /* columns */ };

wr_named_table *wr_record_add(wr_tables *t, const char *name, const char *title,
                              const wr_record *columns, size_t count)
{
  wr_column of[MOST];
  for (size_t i = 0; i < count && i < MOST; i++)
    of[i] = columns[i].column;
  wr_named_table *x = wr_table_of_run(wr_tables_add(t, name, title, of, count));
  wr_table_look(x, WR_DETAIL);
  return x;
}

void wr_record_put(wr_named_table *t, const wr_record *columns, size_t count, const void *of)
{
  for (size_t i = 0; i < count; i++) {
    const char *at = (const char *)of + columns[i].offset;
    uint64_t n = 0;
    const char *text = NULL;
    int device = 0;
    switch (columns[i].as) {
    case WR_AS_NUMBER:
    case WR_AS_KNOWN:
      memcpy(&n, at, sizeof(n));
      wr_table_put_if(t, columns[i].as == WR_AS_NUMBER || (int64_t)n >= 0, n);
      break;
    case WR_AS_TEXT:
      memcpy((void *)&text, at, sizeof(text));
      wr_table_put_text(t, text);
      break;
    case WR_AS_TRUTH:
      wr_table_put(t, *(const bool *)(const void *)at);
      break;
    case WR_AS_DEVICE:
      memcpy(&device, at, sizeof(device));
      wr_put_device(t, device);
      break;
    }
  }
}
