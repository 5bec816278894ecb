/* write.c: rows become lines.
 *
 * The texts of a trace are whatever a program, or who made the file, wrote. JSON gets every control
 * character as an escape, and U+FFFD for what is no UTF-8. CSV and text, which have no escape, get
 * '?' for both, so that a line of the output is a row and a terminal is told nothing. */
#include "reports/listing/write.h"
#include <inttypes.h>
#include <string.h>
#include "reports/base/escape.h"
#include "reports/render/grid.h"

static const char *const column_names[LISTING_COLUMNS] = {
#define LISTING_COLUMN_NAME(name) #name,
    LISTING_COLUMN_MAP(LISTING_COLUMN_NAME)
#undef LISTING_COLUMN_NAME
};

/* ---- CSV and JSON ---------------------------------------------------------------------------- */

static void write_csv(FILE *out, const listing_row *row)
{
  for (int i = 0; i < LISTING_COLUMNS; i++) {
    const listing_value *v = &row->at[i];
    if (i) (void)putc(',', out);
    if (v->type == VALUE_NUMBER)
      (void)fprintf(out, "%" PRId64, v->number);
    else if (v->type == VALUE_HANDLE)
      (void)fprintf(out, "0x%" PRIx64, (uint64_t)v->number);
    else if (v->type == VALUE_TEXT)
      wr_put_csv_text(out, v->text, " ;\t");
  }
  (void)putc('\n', out);
}

static void write_json(FILE *out, const listing_row *row)
{
  char before = '{';
  for (int i = 0; i < LISTING_COLUMNS; i++) {
    const listing_value *v = &row->at[i];
    if (v->type == VALUE_NONE) continue;
    (void)fprintf(out, "%c\"%s\":", before, column_names[i]);
    before = ',';
    if (v->type == VALUE_NUMBER)
      (void)fprintf(out, "%" PRId64, v->number);
    else if (v->type == VALUE_HANDLE)
      (void)fprintf(out, "\"0x%" PRIx64 "\"", (uint64_t)v->number);
    else
      wr_put_json_text(out, v->text);
  }
  (void)fputs("}\n", out);
}

/* ---- text ------------------------------------------------------------------------------------ */

static void put_padding(FILE *out, size_t width, size_t wanted)
{
  for (; width < wanted; width++)
    (void)putc(' ', out);
}

/* A trace's time, to the ns: lines can be sorted and subtracted. */
static void put_time(FILE *out, int64_t ns)
{
  uint64_t size = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
  (void)fprintf(out, "%s%*" PRIu64 ".%09" PRIu64 " s", ns < 0 ? "-" : "", ns < 0 ? 4 : 5,
                size / 1000000000, size % 1000000000);
}

static void put_duration(FILE *out, const listing_value *v)
{
  wr_word w = wr_duration(v->number < 0 ? 0 : (uint64_t)v->number);
  put_padding(out, wr_text_width(w.text), 10);
  (void)fputs(w.text, out);
}

/* " 4.00 MiB host_to_device": a value with a blank before it, if there is one. */
static void put_value(FILE *out, const char *before, const listing_value *v)
{
  if (v->type == VALUE_NONE) return;
  (void)fprintf(out, " %s", before);
  if (v->type == VALUE_NUMBER)
    (void)fprintf(out, "%" PRId64, v->number);
  else if (v->type == VALUE_HANDLE)
    (void)fprintf(out, "0x%" PRIx64, (uint64_t)v->number);
  else
    (void)wr_put_clean_text(out, v->text, false);
}

/* " (left half)": the program's own name of what stands before it. */
static void put_name(FILE *out, const listing_value *v)
{
  if (v->type != VALUE_TEXT) return;
  (void)fputs(" (", out);
  (void)wr_put_clean_text(out, v->text, false);
  (void)putc(')', out);
}

static void put_memory(FILE *out, const listing_row *row)
{
  put_value(out, "", &row->at[LISTING_direction]);
  put_value(out, "", &row->at[LISTING_source_memory]);
  if (row->at[LISTING_source_memory].type != VALUE_NONE) (void)fputs(" →", out);
  put_value(out, "", &row->at[LISTING_memory]);
}

static void put_launch(FILE *out, const listing_row *row)
{
  const listing_value *v = row->at;
  if (v[LISTING_grid_x].type == VALUE_NONE) return;
  put_value(out, "", &v[LISTING_kernel]);
  (void)fprintf(out, " grid %" PRId64 "×%" PRId64 "×%" PRId64, v[LISTING_grid_x].number,
                v[LISTING_grid_y].number, v[LISTING_grid_z].number);
}

static void put_what(FILE *out, const listing_row *row)
{
  const listing_value *v = row->at;
  if (v[LISTING_bytes].type == VALUE_NUMBER)
    (void)fprintf(out, " %s", wr_bytes((uint64_t)v[LISTING_bytes].number).text);
  put_memory(out, row);
  put_value(out, "", &v[LISTING_action]);
  put_value(out, "waits for: ", &v[LISTING_waits_for]);
  put_value(out, "polls: ", &v[LISTING_count]);
  put_launch(out, row);
  put_name(out, &v[LISTING_handle_name]);
  put_value(out, "at ", &v[LISTING_pointer]);
  put_name(out, &v[LISTING_memory_name]);
  put_value(out, "device ", &v[LISTING_device]);
  put_name(out, &v[LISTING_device_name]);
  if (v[LISTING_device_ns].type == VALUE_NUMBER && v[LISTING_device_ns].number >= 0)
    (void)fprintf(out, " for %s", wr_duration((uint64_t)v[LISTING_device_ns].number).text);
  put_value(out, "from device ", &v[LISTING_source_device]);
  put_value(out, "stream ", &v[LISTING_stream]);
  put_name(out, &v[LISTING_stream_name]);
  put_value(out, "reason: ", &v[LISTING_reason]);
  if (v[LISTING_captured].number) (void)fputs(" captured", out);
  if (v[LISTING_cached].number) (void)fputs(" cached", out);
  if (v[LISTING_staged].number) (void)fputs(" staged", out);
  if (v[LISTING_status].number) put_value(out, "status ", &v[LISTING_status]);
  put_value(out, "thread: ", &v[LISTING_thread_name]);
  put_value(out, "range: ", &v[LISTING_range]);
  if (v[LISTING_caller].type == VALUE_TEXT) put_value(out, "in ", &v[LISTING_caller]);
  put_value(out, "", &v[LISTING_file]);
  if (v[LISTING_file].type == VALUE_TEXT && v[LISTING_line].number)
    (void)fprintf(out, ":%" PRId64, v[LISTING_line].number);
}

static void write_text(FILE *out, const listing_row *row)
{
  const listing_value *v = row->at,
                      *name = &v[v[LISTING_function].type ? LISTING_function : LISTING_kind];
  put_time(out, v[LISTING_start_ns].number);
  put_duration(out, &v[LISTING_duration_ns]);
  (void)fprintf(out, " %8" PRId64 " %8" PRId64 "  ", v[LISTING_pid].number, v[LISTING_tid].number);
  put_padding(out, wr_put_clean_text(out, name->text ? name->text : "?", false), 26);
  put_what(out, row);
  (void)putc('\n', out);
}

void listing_write_head(FILE *out, listing_format format)
{
  if (format == LISTING_TEXT)
    (void)fprintf(out, "%17s%10s %8s %8s  %-26s what\n", "start", "lasted", "process", "thread",
                  "function");
  for (int i = 0; i < LISTING_COLUMNS && format == LISTING_CSV; i++)
    (void)fprintf(out, "%s%s", column_names[i], i + 1 < LISTING_COLUMNS ? "," : "\n");
}

void listing_write_row(FILE *out, listing_format format, const listing_row *row)
{
  if (format == LISTING_JSONL)
    write_json(out, row);
  else if (format == LISTING_CSV)
    write_csv(out, row);
  else
    write_text(out, row);
}
