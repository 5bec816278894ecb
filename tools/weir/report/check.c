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
  wr_figures_settings trace;
  const char *budget, *junit, *markdown; /* files; NULL: not asked for */
  wr_diff_settings show;
} request;

static int no_answer(void)
{
  (void)fflush(stdout);
  (void)cmd_failed();
  return CMD_USAGE;
}

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
  weir_status st = wr_check_render(stdout, checked, &r->show);
  if (!st && r->junit) st = output_write(r->junit, 0600, render_junit, checked);
  if (!st && r->markdown) st = output_write(r->markdown, 0600, render_markdown, checked);
  return st;
}

static int check_trace(const request *r, const char *path, const wr_conditions *limits)
{
  wr_figures f;
  wr_verdicts v = {0};
  wr_figures_settings settings = r->trace;
  settings.findings = limits->findings;
  weir_status st = wr_figures_load(&f, path, &settings);
  if (st) return no_answer();
  char *budget = wr_text(r->budget, strlen(r->budget), true);
  st = budget ? wr_judge(&v, limits, &f, NULL) : weir_fail(WEIR_ENOMEM, "out of host memory");
  if (!st) st = write_verdicts(r, &(wr_checked){budget, &f, &v});
  bool kept = v.met == v.count;
  wr_verdicts_free(&v);
  wr_figures_free(&f);
  free(budget);
  return st ? no_answer() : kept ? 0 : CMD_FAILED;
}

int check_main(const cmd *c, int argc, char **argv)
{
  reading shared = {0};
  wr_conditions limits;
  cmd_line line = {.read = reading_read, .context = &shared};
  int at = cmd_parse(c, argc, argv, &line);
  if (at < 1) return at ? CMD_USAGE : 0;
  request r = {.budget = line.value[OPT_BUDGET].text,
               .junit = line.value[OPT_JUNIT].text,
               .markdown = line.value[OPT_MARKDOWN].text};
  if (!r.budget) return cmd_usage(c, "which budget? --budget FILE is missing");
  if (argc - at != 1) return cmd_usage(c, "weir check takes one trace, not %d", argc - at);
  if (!may_write(c, &r, argv[at])) return CMD_USAGE;
  if (!reading_take(c, &line, &shared)) return CMD_USAGE;
  r.trace =
      (wr_figures_settings){.symbols = shared.symbols, .rules = shared.rules, .min = shared.min};
  r.show = (wr_diff_settings){.color = shared.color, .width = shared.width};
  int status = CMD_USAGE;
  if (wr_conditions_of_file(&limits, r.budget))
    (void)no_answer();
  else
    status = check_trace(&r, argv[at], &limits), wr_conditions_free(&limits);
  reading_clear(&shared);
  return status;
}
