/* check.c: weir check: a trace compared with a budget. Exit statuses as of weir diff: 0 every
 * limit is kept, 1 one is not, or what it limits is not known, 2 there is no answer. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reports/base/util.h"
#include "reports/diff/report.h"
#include "tools/weir/base/output_file.h"
#include "tools/weir/report/reading.h"

typedef struct request {
  reading trace;
  const char *budget, *junit, *markdown; /* files; NULL: not asked for */
  bool json;                             /* of standard output */
} request;

/* ---- files ----------------------------------------------------------------------------------- */

static weir_status render_junit(FILE *out, const void *checked)
{
  return wr_check_render_junit(out, checked);
}

static weir_status render_markdown(FILE *out, const void *checked)
{
  return wr_check_render(out, checked, &(wr_diff_settings){.format = WR_DIFF_MARKDOWN});
}

/* Checks that neither the trace nor the budget is an output. */
static bool may_write(const cmd *c, const request *r, const char *trace)
{
  const char *const files[] = {r->junit, r->markdown};
  for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
    if (!files[i] || (!output_is_same(files[i], trace) && !output_is_same(files[i], r->budget)))
      continue;
    cmd_usage(c, "%s is what is read", files[i]);
    return false;
  }
  return true;
}

/* ---- the command ----------------------------------------------------------------------------- */

static weir_status write_verdicts(const request *r, const wr_checked *checked)
{
  const wr_diff_settings show = {.format = r->json ? WR_DIFF_JSON : WR_DIFF_TEXT,
                                 .color = r->trace.color,
                                 .width = r->trace.width};
  weir_status st = wr_check_render(stdout, checked, &show);
  if (!st && r->junit) st = output_write(r->junit, 0600, render_junit, checked);
  if (!st && r->markdown) st = output_write(r->markdown, 0600, render_markdown, checked);
  return st;
}

static int check_trace(const request *r, const char *path, const wr_conditions *limits)
{
  wr_figures f;
  wr_verdicts v = {0};
  const wr_figures_settings settings = reading_figures(&r->trace, limits->findings);
  weir_status st = wr_figures_load(&f, path, &settings);
  if (st) return reading_failed();
  char *budget = wr_text(r->budget, strlen(r->budget), true);
  st = budget ? wr_judge(&v, limits, &f, NULL) : weir_fail(WEIR_ENOMEM, "out of host memory");
  if (!st) st = write_verdicts(r, &(wr_checked){budget, &f, &v});
  bool kept = v.met == v.count;
  wr_verdicts_free(&v);
  wr_figures_free(&f);
  free(budget);
  return st ? reading_failed() : kept ? 0 : CMD_FAILED;
}

int check_main(const cmd *c, int argc, char **argv)
{
  request r = {0};
  wr_conditions limits;
  cmd_line line = {.read = reading_read, .context = &r.trace};
  int at = cmd_parse(c, argc, argv, &line);
  if (at < 1) return at ? CMD_USAGE : 0;
  r.budget = line.value[OPT_BUDGET].text;
  r.junit = line.value[OPT_JUNIT].text;
  r.markdown = line.value[OPT_MARKDOWN].text;
  r.json = line.value[OPT_TEXT_OR_JSON].number;
  if (!r.budget) return cmd_usage(c, "which budget? --budget FILE is missing");
  if (argc - at != 1) return cmd_usage(c, "weir check takes one trace, not %d", argc - at);
  if (!may_write(c, &r, argv[at])) return CMD_USAGE;
  if (!reading_take(c, &line, &r.trace)) return CMD_USAGE;
  int status;
  if (wr_conditions_of_file(&limits, r.budget))
    status = reading_failed();
  else
    status = check_trace(&r, argv[at], &limits), wr_conditions_free(&limits);
  reading_clear(&r.trace);
  return status;
}
