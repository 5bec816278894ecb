/* csv.c: tables as comma-separated values (RFC 4180, lines end in LF). Of several, each begins
 * with a line "# NAME" and ends with an empty one; of one that was asked for there are its lines
 * alone. A place is three columns: NAME, NAME_file, NAME_line. What there is none of is empty. */
#include <inttypes.h>
#include <math.h>
#include "reports/base/escape.h"
#include "reports/write/write.h"

/* What begins as the name of a table does, or would lose its first blank, is quoted too. */
static void put_csv_field(FILE *out, const char *text)
{
  wr_put_csv_text(out, text, *text == '#' || *text == ' ' ? " #" : "");
}

static void put_csv_value(FILE *out, const wr_value *v, wr_column_type type)
{
  switch (type) {
  case WR_COLUMN_TEXT:
    if (v->known) put_csv_field(out, v->text);
    break;
  case WR_COLUMN_PLACE:
    if (v->known) put_csv_field(out, v->text);
    (void)fputc(',', out);
    if (v->file) put_csv_field(out, v->file);
    (void)fputc(',', out);
    if (v->file) (void)fprintf(out, "%d", v->line);
    break;
  case WR_COLUMN_SPEED:
  case WR_COLUMN_SHARE:
    if (v->known && isfinite(v->real)) (void)fprintf(out, "%.17g", v->real);
    break;
  case WR_COLUMN_CHANGE:
  case WR_COLUMN_BALANCE:
  case WR_COLUMN_MOMENT:
    if (v->known) (void)fprintf(out, "%" PRId64, (int64_t)v->n);
    break;
  default:
    if (v->known) (void)fprintf(out, "%" PRIu64, v->n);
    break;
  }
}

static void put_csv_table(FILE *out, const wr_named_table *t)
{
  const char *comma = "";
  for (size_t c = 0; c < t->columns; c++) {
    const char *name = t->column[c].name;
    if (!wr_column_in_data(&t->column[c])) continue;
    (void)fprintf(out, "%s%s", comma, name);
    comma = ",";
    if (t->column[c].type == WR_COLUMN_PLACE) (void)fprintf(out, ",%s_file,%s_line", name, name);
  }
  (void)fputc('\n', out);
  for (size_t r = 0; r < t->rows; r++) {
    if (!wr_row_in_data(t, r)) continue;
    comma = "";
    for (size_t c = 0; c < t->columns; c++) {
      if (!wr_column_in_data(&t->column[c])) continue;
      (void)fputs(comma, out);
      comma = ",";
      put_csv_value(out, &t->value[r * t->columns + c], t->column[c].type);
    }
    (void)fputc('\n', out);
  }
}

weir_status wr_tables_csv(FILE *out, const wr_tables *t, const char *only)
{
  for (size_t i = 0; i < t->count; i++) {
    if (!t->table[i]->columns || !wr_table_is_written(t->table[i], only)) continue;
    if (!only) (void)fprintf(out, "# %s\n", t->table[i]->name);
    put_csv_table(out, t->table[i]);
    if (!only) (void)fputc('\n', out);
  }
  return WEIR_OK;
}
