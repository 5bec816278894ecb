/* words.c: values as people read them, and what people and programs are shown. */
#include <stdlib.h>
#include <string.h>
#include "reports/base/units.h"
#include "reports/base/util.h"
#include "reports/write/write.h"

static char *signed_words(const wr_value *v, bool change)
{
  int64_t n = (int64_t)v->n;
  uint64_t size = n < 0 ? 0 - v->n : v->n;
  const char *sign = n < 0 ? "-" : n && change ? "+" : "";
  return wr_format("%s%s", sign, size || change ? wr_bytes(size).text : "0");
}

/* A function, and what of a place is never cut: its file and line, or its module. */
static char *place_words(const wr_value *v, int how, bool any_width, size_t *keep)
{
  bool folder = how & WR_WITH_FOLDER;
  const char *file = !v->file    ? NULL
                     : !folder   ? wr_file_name(v->file)
                     : any_width ? v->file
                                 : wr_short_path(v->file);
  char *kept = file && (v->line || !folder) ? wr_format("  %s:%d", file, v->line)
               : file                       ? wr_format("  %s", file)
               : folder && v->module        ? wr_format("  (%s)", v->module)
                                            : wr_format("%s", "");
  char *words = kept ? wr_format("%s%s%s", v->lead ? v->lead : "", v->text, kept) : NULL;
  if (keep && words) *keep = strlen(kept);
  free(kept);
  return words;
}

static char *share_words(const wr_value *v, int how)
{
  if (how & WR_ROUNDED && v->whole) return wr_format("%s", wr_percent(v->n, v->whole).text);
  return wr_format("%.1f %%", 100 * v->real);
}

static char *speed_words(const wr_value *v)
{
  if (v->whole) return wr_format("%s", wr_speed(v->n, v->whole).text);
  uint64_t whole = v->real < 1e18 ? (uint64_t)v->real : UINT64_MAX;
  return wr_format("%s", wr_speed(whole, UINT64_C(1000000000)).text);
}

static bool is_text(wr_column_type type)
{
  return type == WR_COLUMN_TEXT || type == WR_COLUMN_PLACE;
}

char *wr_value_words(const wr_value *v, const wr_column *c, bool any_width, size_t *keep)
{
  bool text = is_text(c->type);
  if (keep) *keep = 0;
  if (!v->known) return wr_format("%s", text || v->empty ? "" : "-");
  if (!text && v->text) return wr_format("%s", v->text); /* a word in a number's place */
  if (!text && !v->n && c->how & (WR_ZERO_DASH | WR_ZERO_PLAIN))
    return wr_format("%s", c->how & WR_ZERO_DASH ? "-" : "0");
  switch (c->type) {
  case WR_COLUMN_TEXT:
    if (keep && v->file) *keep = strlen(v->file);
    return wr_format("%s%s%s", v->lead ? v->lead : "", v->text, v->file ? v->file : "");
  case WR_COLUMN_PLACE:
    return place_words(v, c->how, any_width, keep);
  case WR_COLUMN_BYTES:
    return wr_format("%s", wr_bytes(v->n).text);
  case WR_COLUMN_CHANGE:
  case WR_COLUMN_BALANCE:
    return signed_words(v, c->type == WR_COLUMN_CHANGE);
  case WR_COLUMN_HOST_NS:
  case WR_COLUMN_DEVICE_NS:
  case WR_COLUMN_MOMENT:
    return wr_format("%s", wr_duration(v->n).text);
  case WR_COLUMN_SPEED:
    return speed_words(v);
  case WR_COLUMN_SHARE:
    return share_words(v, c->how);
  case WR_COLUMN_ID:
    return wr_format("%llu", (unsigned long long)v->n);
  default:
    return wr_format("%s", wr_count(v->n).text);
  }
}

bool wr_row_in_text(const wr_named_table *t, size_t row)
{
  return t->kind[row] != WR_ROW_DATA && !(t->look & WR_UNSEEN);
}

bool wr_row_in_data(const wr_named_table *t, size_t row)
{
  return t->kind[row] != WR_ROW_TEXT;
}

bool wr_column_in_text(const wr_column *c)
{
  return !(c->how & (WR_IN_DATA | WR_IN_JSON));
}

bool wr_column_in_data(const wr_column *c)
{
  return !(c->how & (WR_IN_TEXT | WR_IN_JSON));
}

bool wr_table_is_written(const wr_named_table *t, const char *only)
{
  return only ? !strcmp(only, t->name) : !(t->look & WR_DETAIL);
}
