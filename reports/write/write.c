/* write.c: tables in the format that is asked for. */
#include <string.h>
#include "reports/write/write.h"

weir_status wr_tables_write(FILE *out, const wr_tables *t, const report_settings *o)
{
  bool found = !o->table;
  for (size_t i = 0; i < t->count && !found; i++)
    found = !strcmp(t->table[i]->name, o->table);
  if (t->failed) return wr_tables_no_memory(t);
  if (!found)
    return weir_fail(WEIR_EINVAL, "this report of %s has no table '%s'", t->trace, o->table);
  switch (o->format) {
  case WEIR_REPORT_JSON_1:
    return wr_tables_json(out, t, o->table);
  case WEIR_REPORT_JSON:
    return wr_report_json(out, t, o->table);
  case WEIR_REPORT_CSV:
    return wr_tables_csv(out, t, o->table);
  case WEIR_REPORT_MARKDOWN:
    return wr_tables_markdown(out, t, o->table);
  default:
    return wr_tables_text(out, t, o);
  }
}
