/* text.c: an event as a line for people: its time, how long it lasted, who called what, and all
 * that is known of it. Texts are cleaned: a line of the output is an event. */
#include "reports/listing/text.h"
#include <inttypes.h>
#include "reports/base/escape.h"
#include "reports/base/units.h"
#include "reports/write/grid.h"

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

static void put_duration(FILE *out, const wr_field *v)
{
  wr_word w = wr_duration(v->whole < 0 ? 0 : (uint64_t)v->whole);
  put_padding(out, wr_text_width(w.text), 10);
  (void)fputs(w.text, out);
}

/* " 4.00 MiB host_to_device": a value with a blank before it, if there is one. */
static void put_worded_field(FILE *out, const char *before, const wr_field *v)
{
  if (v->type == WR_FIELD_NONE) return;
  (void)fprintf(out, " %s", before);
  if (v->type == WR_FIELD_WHOLE)
    (void)fprintf(out, "%" PRId64, v->whole);
  else if (v->type == WR_FIELD_HANDLE)
    (void)fprintf(out, "0x%" PRIx64, (uint64_t)v->whole);
  else
    (void)wr_put_clean_text(out, v->text, false);
}

/* " (left half)": the program's own name of what stands before it. */
static void put_name(FILE *out, const wr_field *v)
{
  if (v->type != WR_FIELD_TEXT) return;
  (void)fputs(" (", out);
  (void)wr_put_clean_text(out, v->text, false);
  (void)putc(')', out);
}

static void put_memory(FILE *out, const listing_row *row)
{
  put_worded_field(out, "", &row->at[LISTING_direction]);
  put_worded_field(out, "", &row->at[LISTING_source_memory]);
  if (row->at[LISTING_source_memory].type != WR_FIELD_NONE) (void)fputs(" →", out);
  put_worded_field(out, "", &row->at[LISTING_memory]);
}

static void put_launch(FILE *out, const listing_row *row)
{
  const wr_field *v = row->at;
  if (v[LISTING_grid_x].type == WR_FIELD_NONE) return;
  put_worded_field(out, "", &v[LISTING_kernel]);
  (void)fprintf(out, " grid %" PRId64 "×%" PRId64 "×%" PRId64, v[LISTING_grid_x].whole,
                v[LISTING_grid_y].whole, v[LISTING_grid_z].whole);
}

static void put_what(FILE *out, const listing_row *row)
{
  const wr_field *v = row->at;
  if (v[LISTING_bytes].type == WR_FIELD_WHOLE)
    (void)fprintf(out, " %s", wr_bytes((uint64_t)v[LISTING_bytes].whole).text);
  put_memory(out, row);
  put_worded_field(out, "", &v[LISTING_action]);
  put_worded_field(out, "waits for: ", &v[LISTING_waits_for]);
  put_worded_field(out, "polls: ", &v[LISTING_count]);
  put_launch(out, row);
  put_name(out, &v[LISTING_handle_name]);
  put_worded_field(out, "at ", &v[LISTING_pointer]);
  put_name(out, &v[LISTING_memory_name]);
  put_worded_field(out, "device ", &v[LISTING_device]);
  put_name(out, &v[LISTING_device_name]);
  if (v[LISTING_device_ns].type == WR_FIELD_WHOLE && v[LISTING_device_ns].whole >= 0)
    (void)fprintf(out, " for %s", wr_duration((uint64_t)v[LISTING_device_ns].whole).text);
  put_worded_field(out, "from device ", &v[LISTING_source_device]);
  put_worded_field(out, "stream ", &v[LISTING_stream]);
  put_name(out, &v[LISTING_stream_name]);
  put_worded_field(out, "reason: ", &v[LISTING_reason]);
  if (v[LISTING_captured].whole) (void)fputs(" captured", out);
  if (v[LISTING_cached].whole) (void)fputs(" cached", out);
  if (v[LISTING_staged].whole) (void)fputs(" staged", out);
  if (v[LISTING_status].whole) put_worded_field(out, "status ", &v[LISTING_status]);
  put_worded_field(out, "thread: ", &v[LISTING_thread_name]);
  put_worded_field(out, "range: ", &v[LISTING_range]);
  if (v[LISTING_caller].type == WR_FIELD_TEXT) put_worded_field(out, "in ", &v[LISTING_caller]);
  put_worded_field(out, "", &v[LISTING_file]);
  if (v[LISTING_file].type == WR_FIELD_TEXT && v[LISTING_line].whole)
    (void)fprintf(out, ":%" PRId64, v[LISTING_line].whole);
}

void listing_text_row(FILE *out, const listing_row *row)
{
  const wr_field *v = row->at,
                 *name = &v[v[LISTING_function].type ? LISTING_function : LISTING_kind];
  put_time(out, v[LISTING_start_ns].whole);
  put_duration(out, &v[LISTING_duration_ns]);
  (void)fprintf(out, " %8" PRId64 " %8" PRId64 "  ", v[LISTING_pid].whole, v[LISTING_tid].whole);
  put_padding(out, wr_put_clean_text(out, name->text ? name->text : "?", false), 26);
  put_what(out, row);
  (void)putc('\n', out);
}

void listing_text_head(FILE *out)
{
  (void)fprintf(out, "%17s%10s %8s %8s  %-26s what\n", "start", "lasted", "process", "thread",
                "function");
}
