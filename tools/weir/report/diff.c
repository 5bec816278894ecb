/* diff.c: weir diff: the command line around reports/diff/diff.h and its renderers.
 *
 * Its exit statuses are those of diff(1) and of CI: 0 none of the conditions holds, 1 one does (or it
 * is not known), 2 there is no answer: wrong use, or a trace that cannot be read. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reports/render/diff_render.h"
#include "tools/weir/base/commands.h"
#include "tools/weir/report/min_cost.h"
#include "tools/weir/report/terminal.h"

enum { OPT_FORMAT, OPT_FAIL_ON, OPT_TOP, OPT_WIDTH, OPT_SYMBOLS, OPT_RULES, OPT_MIN_COST };

typedef struct request {
  wr_diff_settings show;
  wr_figures_settings trace;
  const char *fail_on;
  int width; /* as asked for, or TERMINAL_NOT_ASKED */
} request;

const cmd_option diff_options[] = {
    [OPT_FORMAT] = {"format", 'f', CMD_ARG_REQUIRED, "FORMAT", "text (default), markdown or json",
                    0},
    [OPT_FAIL_ON] = {"fail-on", 0, CMD_ARG_REQUIRED, "CONDITIONS",
                     "exit with 1 if one holds: 'peak>+5%,leaks>0,waits.count>+0'",
                     CMD_SETS(request, fail_on)},
    [OPT_TOP] = {"top", 'n', CMD_ARG_REQUIRED, "N", "sites in each list (default 5)", 0},
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

static bool take_format(const cmd *c, const char *value, request *r)
{
  static const char *const names[] = {
      [WR_DIFF_TEXT] = "text", [WR_DIFF_MARKDOWN] = "markdown", [WR_DIFF_JSON] = "json"};
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
    if (strcmp(value, names[i]) != 0) continue;
    r->show.format = (wr_diff_format)i;
    return true;
  }
  cmd_usage(c, "there is no format '%s': text, markdown or json", value);
  return false;
}

static bool on_option(const cmd *c, size_t at, const char *value, void *context)
{
  request *r = context;
  long n, least = at == OPT_TOP, most = at == OPT_TOP ? 1000 : 100000;
  if (at == OPT_FORMAT) return take_format(c, value, r);
  if (at == OPT_MIN_COST) return min_cost_take(c, &r->trace.min, value);
  if (!cmd_number(value, least, most, &n)) {
    cmd_usage(c, "--%s takes a number from %ld to %ld, not '%s'", diff_options[at].name, least,
              most, value);
    return false;
  }
  if (at == OPT_TOP)
    r->show.top = (int)n;
  else
    r->width = (int)n;
  return true;
}

/* The sentence of the last error; the exit status is always 2. */
static int no_answer(void)
{
  (void)fflush(stdout);
  (void)cmd_failed();
  return CMD_USAGE;
}

static int compare_traces(const request *r, const char *a, const char *b,
                          const wr_conditions *conditions)
{
  wr_diff d;
  weir_status s = wr_diff_load(&d, a, b, &r->trace, conditions);
  if (s) return no_answer();
  s = wr_diff_render(stdout, &d, &r->show);
  bool held = !d.verdicts.met && !d.verdicts.unknown;
  wr_diff_free(&d);
  return s ? no_answer() : held ? 0 : CMD_FAILED;
}

int diff_main(const cmd *c, int argc, char **argv)
{
  request r = {.trace = {.findings = true}, .width = TERMINAL_NOT_ASKED};
  wr_conditions conditions = {0};
  int at = cmd_parse(c, argc, argv, false, on_option, &r);
  if (at < 1) return at ? CMD_USAGE : 0;
  if (argc - at != 2) return cmd_usage(c, "weir diff takes two traces, A and B, not %d", argc - at);
  if (r.fail_on && wr_conditions_of_list(&conditions, "--fail-on", r.fail_on)) return no_answer();
  char *folder;
  bool good = cmd_symbols(c, r.trace.symbols, &folder);
  r.trace.symbols = folder;
  r.show.color = terminal_has_color();
  r.show.width = terminal_width(r.width);
  int status = good ? compare_traces(&r, argv[at], argv[at + 1], &conditions) : CMD_USAGE;
  if (good) free(folder);
  wr_conditions_free(&conditions);
  return status;
}
