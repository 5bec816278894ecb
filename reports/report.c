/* report.c: reports on what a person gives as a trace. */
#include "reports/report.h"
#include "reports/open.h"
#include "reports/render.h"

#define TOP_TEXT 5
#define TOP_JSON 20

weir_status weir_report_summary(FILE *out, const char *trace, const weir_report_options *options)
{
  static const weir_report_options plain = {0};
  const weir_report_options *o = options ? options : &plain;
  int top = o->top > 0 ? o->top : o->format == WEIR_REPORT_JSON ? TOP_JSON : TOP_TEXT;
  wr_input in;
  wr_model m = {0};
  weir_status s = wr_input_open(&in, trace);
  if (s) return s;
  s = wr_model_load(&m, &in.db, top);
  wr_input_close(&in);
  if (s) return s;
  s = o->format == WEIR_REPORT_JSON ? wr_render_json(out, &m) : wr_render_text(out, &m, o);
  wr_model_free(&m);
  return s;
}
