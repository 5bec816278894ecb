/* json.c: a report as one JSON object, "weir-report/2" (SCHEMA.md), whatever report it is.
 *
 * * Next to what the report is of, each table is a member: an array with an object a row, whose
 * members are the columns. Of a table that has one row, or a number a row, it is an object. Values
 * are whole: no unit is written, since a column's name has it. null: there is no such value, or it
 * is not known. */
#include <jansson.h>
#include <math.h>
#include <string.h>
#include "reports/write/json.h"
#include "reports/write/write.h"

json_t *wr_json_text(const char *text)
{
  return text ? json_string(text) : json_null();
}

static json_t *place_json(const wr_value *v)
{
  return json_pack("{s:s, s:o, s:o, s:o}", "function", v->text, "file", wr_json_text(v->file),
                   "line", v->file ? json_integer(v->line) : json_null(), "module",
                   wr_json_text(v->module));
}

json_t *wr_json_lines(const char *text)
{
  json_t *list = json_array();
  while (text) {
    const char *end = strchrnul(text, '\n');
    json_array_append_new(list, json_stringn(text, (size_t)(end - text)));
    text = *end ? end + 1 : NULL;
  }
  return list;
}

static json_t *rows_json(const wr_named_table *t);

static json_t *value_json(const wr_value *v, wr_column_type type)
{
  bool word =
      v->text && type != WR_COLUMN_TEXT && type != WR_COLUMN_PLACE && type != WR_COLUMN_TEXTS;
  if (!v->known || word) return json_null();
  switch (type) {
  case WR_COLUMN_TEXT:
    return v->numbered ? json_integer((json_int_t)v->n) : json_string(v->text);
  case WR_COLUMN_PLACE:
    return place_json(v);
  case WR_COLUMN_SPEED:
  case WR_COLUMN_SHARE:
  case WR_COLUMN_REAL:
    return isfinite(v->real) ? json_real(v->real) : json_null();
  case WR_COLUMN_TRUTH:
    return json_boolean(v->n);
  case WR_COLUMN_TEXTS:
    return wr_json_lines(v->text);
  case WR_COLUMN_ROWS:
    return rows_json(v->rows);
  default:
    return json_integer((json_int_t)v->n);
  }
}

static json_t *row_json(const wr_named_table *t, size_t r)
{
  json_t *row = json_object();
  for (size_t c = 0; c < t->columns; c++)
    if (!(t->column[c].how & WR_IN_TEXT))
      json_object_set_new(row, t->column[c].name,
                          value_json(&t->value[r * t->columns + c], t->column[c].type));
  return row;
}

static json_t *rows_json(const wr_named_table *t)
{
  json_t *rows = json_array();
  for (size_t r = 0; r < t->rows; r++)
    if (wr_row_in_data(t, r)) json_array_append_new(rows, row_json(t, r));
  return rows;
}

/* A member a row. */
static json_t *members_json(const wr_named_table *t)
{
  json_t *all = json_object();
  size_t name = 0;
  for (size_t c = 0; c < t->columns; c++)
    if (!strcmp(t->column[c].name, "name")) name = c;
  for (size_t r = 0; r < t->rows; r++) {
    const wr_value *row = &t->value[r * t->columns];
    json_object_set_new(all, row[name].text, value_json(&row[1], t->column[1].type));
  }
  return all;
}

static json_t *table_json(const wr_named_table *t)
{
  return t->look & WR_MEMBERS  ? members_json(t)
         : t->look & WR_OBJECT ? t->rows ? row_json(t, 0) : json_null()
                               : rows_json(t);
}

static json_t *notes_json(const wr_tables *t)
{
  json_t *notes = json_array();
  for (size_t i = 0; i < t->notes; i++)
    json_array_append_new(notes, json_string(t->note[i]));
  return notes;
}

/* The tables that the filters do not apply to; [] without filters. */
static json_t *unfiltered_json(const wr_tables *t, const char *only)
{
  json_t *names = json_array();
  for (size_t i = 0; t->scope && i < t->count; i++)
    if (t->table[i]->columns && t->table[i]->whole_run &&
        (!only || !strcmp(only, t->table[i]->name)))
      json_array_append_new(names, json_string(t->table[i]->name));
  return names;
}

weir_status wr_report_json(FILE *out, const wr_tables *t, const char *only)
{
  json_t *all = json_pack("{s:s, s:s, s:s, s:o, s:o, s:o}", "schema", "weir-report/2", "report",
                          t->report, "trace", t->trace, "only", wr_json_text(t->scope),
                          "unfiltered", unfiltered_json(t, only), "notes", notes_json(t));
  int bad = all ? 0 : -1;
  for (size_t i = 0; i < t->count && !bad; i++)
    if (t->table[i]->columns && (!only || !strcmp(only, t->table[i]->name)))
      bad = json_object_set_new(all, t->table[i]->name, table_json(t->table[i]));
  if (!bad) bad = json_dumpf(all, out, JSON_INDENT(2));
  json_decref(all);
  (void)fputc('\n', out);
  return bad ? wr_tables_no_memory(t) : WEIR_OK;
}
