/* diff.c: weir diff: the command line around reports/diff/diff.h and its renderers.
 *
 * Its exit statuses are those of diff(1) and of CI: 0 none of the conditions holds, 1 one does
 * (or it is not known), 2 there is no answer: wrong use, or a trace that cannot be read. */
#include <stdio.h>

#include "reports/diff/report.h"
#include "tools/weir/report/reading.h"

static int compare_traces(const wr_figures_settings *settings, const wr_diff_settings *show,
                          char **traces, const wr_conditions *conditions)
{
  wr_diff d;
  weir_status st = wr_diff_load(&d, traces[0], traces[1], settings, conditions);
  if (st) return reading_failed();
  st = wr_diff_render(stdout, &d, show);
  bool held = !d.verdicts.met && !d.verdicts.unknown;
  wr_diff_free(&d);
  return st ? reading_failed() : held ? 0 : CMD_FAILED;
}

int diff_main(const cmd *c, int argc, char **argv)
{
  reading r = {0};
  wr_conditions conditions = {0};
  cmd_line line = {.read = reading_read, .context = &r};
  int at = cmd_parse(c, argc, argv, &line);
  if (at < 1) return at ? CMD_USAGE : 0;
  const char *fail_on = line.value[OPT_FAIL_ON].text;
  if (argc - at != 2) return cmd_usage(c, "weir diff takes two traces, A and B, not %d", argc - at);
  if (fail_on && wr_conditions_of_list(&conditions, "--fail-on", fail_on)) return reading_failed();
  int status = CMD_USAGE;
  if (reading_take(c, &line, &r)) {
    const wr_figures_settings settings = reading_figures(&r, true);
    const wr_diff_settings show = {.format = (wr_diff_format)line.value[OPT_DIFF_FORMAT].number,
                                   .top = (int)line.value[OPT_DIFF_TOP].number,
                                   .color = r.color,
                                   .width = r.width};
    status = compare_traces(&settings, &show, argv + at, &conditions);
  }
  reading_clear(&r);
  wr_conditions_free(&conditions);
  return status;
}
