/* check.c: weir check: a trace beside a budget. Exit statuses as of weir diff: 0 every limit is kept,
 * 1 one is not, or what it limits is not known, 2 there is no answer. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reports/base/util.h"
#include "reports/render/diff_render.h"
#include "tools/weir/base/commands.h"
#include "tools/weir/report/min_cost.h"
#include "tools/weir/base/output_file.h"
#include "tools/weir/report/terminal.h"

enum { OPT_BUDGET, OPT_JUNIT, OPT_MARKDOWN, OPT_WIDTH, OPT_SYMBOLS, OPT_RULES, OPT_MIN_COST };

typedef struct request {
  wr_figures_settings trace;
  const char *budget, *junit, *markdown; /* files; NULL: not asked for */
  wr_diff_settings show;
  int width; /* as asked for, or TERMINAL_NOT_ASKED */
} request;

const cmd_option check_options[] = {
    [OPT_BUDGET] = {"budget", 'b', CMD_ARG_REQUIRED, "FILE",
                    "the limits, one a line: 'peak <= 12 GiB'", CMD_SETS(request, budget)},
    [OPT_JUNIT] = {"junit", 0, CMD_ARG_REQUIRED, "FILE", "write JUnit's XML: a testcase a limit",
                   CMD_SETS(request, junit)},
    [OPT_MARKDOWN] = {"markdown", 0, CMD_ARG_REQUIRED, "FILE", "write Markdown, for a pull request",
                      CMD_SETS(request, markdown)},
    [OPT_WIDTH] = {"width", 'w', CMD_ARG_REQUIRED, "N",
                   "columns of text (default the terminal's; 0: no limit)", 0},
    [OPT_SYMBOLS] = {"symbols", 0, CMD_ARG_REQUIRED, "DIR",
                     "look for programs, libraries and debug files in DIR first",
                     CMD_SETS(request, trace.symbols)},
    [OPT_RULES] = {"rules", 0, CMD_ARG_REQUIRED, "DIR",
                   "look for what the rules DIR/NAME.sql find, too",
                   CMD_SETS(request, trace.rules)},
    [OPT_MIN_COST] = {"min-cost", 0, CMD_ARG_REQUIRED, "COST", MIN_COST_HELP, 0},
    {0},
};

static bool on_option(const cmd *c, size_t at, const char *value, void *context)
{
  request *r = context;
  long n;
  if (at == OPT_MIN_COST) return min_cost_take(c, &r->trace.min, value);
  if (!cmd_number(value, 0, 100000, &n)) {
    cmd_usage(c, "--%s takes a number from 0 to 100000, not '%s'", check_options[at].name, value);
    return false;
  }
  r->width = (int)n;
  return true;
}

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

/* Neither the trace nor the budget is written over. */
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

static weir_status write_all(const request *r, const wr_checked *checked)
{
  weir_status s = wr_check_render(stdout, checked, &r->show);
  if (!s && r->junit) s = output_write(r->junit, 0600, render_junit, checked);
  if (!s && r->markdown) s = output_write(r->markdown, 0600, render_markdown, checked);
  return s;
}

static int check_trace(const request *r, const char *path, const wr_conditions *limits)
{
  wr_figures f;
  wr_verdicts v = {0};
  wr_figures_settings settings = r->trace;
  settings.findings = limits->findings;
  weir_status s = wr_figures_load(&f, path, &settings);
  if (s) return no_answer();
  char *budget = wr_text(r->budget, strlen(r->budget), true);
  s = budget ? wr_judge(&v, limits, &f, NULL) : weir_fail(WEIR_ENOMEM, "out of host memory");
  if (!s) s = write_all(r, &(wr_checked){budget, &f, &v});
  bool kept = v.met == v.count;
  wr_verdicts_free(&v);
  wr_figures_free(&f);
  free(budget);
  return s ? no_answer() : kept ? 0 : CMD_FAILED;
}

int check_main(const cmd *c, int argc, char **argv)
{
  request r = {.width = TERMINAL_NOT_ASKED};
  wr_conditions limits;
  int at = cmd_parse(c, argc, argv, false, on_option, &r);
  if (at < 1) return at ? CMD_USAGE : 0;
  if (!r.budget) return cmd_usage(c, "which budget? --budget FILE is missing");
  if (argc - at != 1) return cmd_usage(c, "weir check takes one trace, not %d", argc - at);
  if (!may_write(c, &r, argv[at])) return CMD_USAGE;
  char *folder;
  if (!cmd_symbols(c, r.trace.symbols, &folder)) return CMD_USAGE;
  r.trace.symbols = folder;
  r.show.color = terminal_has_color();
  r.show.width = terminal_width(r.width);
  int status = CMD_USAGE;
  if (wr_conditions_of_file(&limits, r.budget))
    (void)no_answer();
  else
    status = check_trace(&r, argv[at], &limits), wr_conditions_free(&limits);
  free(folder);
  return status;
}
