/* report.c: see report.h. The tables are those of tables.c and data.c, the formats reports/write's. */
#include "reports/diff/report.h"
#include "reports/write/write.h"

static weir_status diff_written(const wr_tables *t, weir_status st, FILE *out, const char *path)
{
  if (st || t->failed) return wr_tables_no_memory(t);
  if (ferror(out) || fflush(out))
    return weir_fail(WEIR_EIO, "the report on %s cannot be written", path);
  return WEIR_OK;
}

static weir_status write_parts(FILE *out, const wr_tables *t, const wr_diff_settings *o)
{
  if (o->format == WR_DIFF_JSON) return wr_report_json(out, t, NULL);
  if (o->format == WR_DIFF_JSON_1) return wr_tables_old(out, t);
  if (o->format == WR_DIFF_MARKDOWN) return wr_markdown_parts(out, t);
  wr_layout p = {
      .out = out, .width = o->width > 0 && o->width < 40 ? 40 : o->width, .color = o->color};
  wr_text_tables(&p, t, 0, t->count);
  return wr_layout_done(&p) ? WEIR_OK : WEIR_ENOMEM;
}

weir_status wr_diff_render(FILE *out, const wr_diff *d, const wr_diff_settings *o)
{
  wr_tables t = {0};
  if (o->format >= WR_DIFF_JSON)
    wr_diff_data(&t, d);
  else
    wr_diff_tables(&t, d, o->top, o->width <= 0 || o->format == WR_DIFF_MARKDOWN);
  weir_status st = diff_written(&t, write_parts(out, &t, o), out, d->b.path);
  wr_tables_free(&t);
  return st;
}

weir_status wr_check_render(FILE *out, const wr_checked *c, const wr_diff_settings *o)
{
  wr_tables t = {0};
  if (o->format == WR_DIFF_JSON)
    wr_check_data(&t, c);
  else
    wr_check_tables(&t, c);
  weir_status st = diff_written(&t, write_parts(out, &t, o), out, c->figures->path);
  wr_tables_free(&t);
  return st;
}

weir_status wr_check_render_junit(FILE *out, const wr_checked *c)
{
  wr_tables t = {0};
  wr_check_tables(&t, c);
  wr_tables_junit(out, &t);
  weir_status st = diff_written(&t, WEIR_OK, out, c->figures->path);
  wr_tables_free(&t);
  return st;
}
