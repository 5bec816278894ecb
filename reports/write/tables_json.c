/* tables_json.c: tables as one JSON object, "weir-tables/1" (SCHEMA.md): what `--format json` has
 * of those reports. */
#include <jansson.h>
#include <math.h>
#include "reports/write/json.h"
#include "reports/write/write.h"

static const char *const types[] = {[WR_COLUMN_TEXT] = "text",
                                    [WR_COLUMN_PLACE] = "place",
                                    [WR_COLUMN_COUNT] = "count",
                                    [WR_COLUMN_ID] = "id",
                                    [WR_COLUMN_BYTES] = "bytes",
                                    [WR_COLUMN_CHANGE] = "bytes_change",
                                    [WR_COLUMN_BALANCE] = "bytes_balance",
                                    [WR_COLUMN_HOST_NS] = "host_ns",
                                    [WR_COLUMN_DEVICE_NS] = "device_ns",
                                    [WR_COLUMN_MOMENT] = "moment_ns",
                                    [WR_COLUMN_SPEED] = "bytes_per_second",
                                    [WR_COLUMN_SHARE] = "share",
                                    [WR_COLUMN_NUMBER] = "number",
                                    [WR_COLUMN_TRUTH] = "count"};

static json_t *value_json(const wr_value *v, wr_column_type type)
{
  bool word = v->text && type != WR_COLUMN_TEXT && type != WR_COLUMN_PLACE;
  if (!v->known || word) return json_null();
  switch (type) {
  case WR_COLUMN_TEXT:
    return json_string(v->text);
  case WR_COLUMN_PLACE:
    return json_pack("{s:s, s:o, s:i}", "function", v->text, "file", wr_json_text(v->file), "line",
                     v->line);
  case WR_COLUMN_SPEED:
  case WR_COLUMN_SHARE:
    return isfinite(v->real) ? json_real(v->real) : json_null();
  default:
    return json_integer((json_int_t)v->n);
  }
}

static json_t *table_json(const wr_named_table *t, bool filtered)
{
  json_t *columns = json_array(), *rows = json_array();
  for (size_t c = 0; c < t->columns; c++)
    if (wr_column_in_data(&t->column[c]))
      json_array_append_new(columns,
                            json_pack("{s:s, s:s, s:s}", "name", t->column[c].name, "type",
                                      types[t->column[c].type], "title", t->column[c].title));
  for (size_t r = 0; r < t->rows; r++) {
    if (!wr_row_in_data(t, r)) continue;
    json_t *row = json_object();
    for (size_t c = 0; c < t->columns; c++)
      if (wr_column_in_data(&t->column[c]))
        json_object_set_new(row, t->column[c].name,
                            value_json(&t->value[r * t->columns + c], t->column[c].type));
    json_array_append_new(rows, row);
  }
  return json_pack("{s:s, s:s, s:b, s:o, s:o}", "name", t->name, "title", t->title, "whole_run",
                   t->whole_run || !filtered, "columns", columns, "rows", rows);
}

weir_status wr_tables_json(FILE *out, const wr_tables *t, const char *only)
{
  json_t *tables = json_array(), *notes = json_array();
  for (size_t i = 0; i < t->count; i++)
    if (t->table[i]->columns && wr_table_is_written(t->table[i], only))
      json_array_append_new(tables, table_json(t->table[i], t->scope != NULL));
  for (size_t i = 0; i < t->notes; i++)
    json_array_append_new(notes, json_string(t->note[i]));
  json_t *all = json_pack("{s:s, s:s, s:s, s:o, s:o, s:o}", "schema", "weir-tables/1", "report",
                          t->report, "trace", t->trace, "only", wr_json_text(t->scope), "tables",
                          tables, "notes", notes);
  if (!all) return wr_tables_no_memory(t);
  int bad = json_dumpf(all, out, JSON_INDENT(1));
  json_decref(all);
  (void)fputc('\n', out);
  return bad ? wr_tables_no_memory(t) : WEIR_OK;
}
