/* report.c: weir report: the command line around reports/report.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "reports/report.h"
#include "tools/weir/commands.h"

enum { OPT_FORMAT, OPT_TOP };

const cmd_option report_options[] = {
    [OPT_FORMAT] = {"format", 'f', CMD_ARG_REQUIRED, "FORMAT", "text (default) or json"},
    [OPT_TOP] = {"top", 'n', CMD_ARG_REQUIRED, "N", "call sites in each list (default 5)"},
    {NULL, 0, CMD_ARG_NONE, NULL, NULL},
};

static bool on_option(const cmd *c, size_t at, const char *value, void *context)
{
  weir_report_options *o = context;
  long n;
  if (at == OPT_FORMAT) {
    o->format = strcmp(value, "json") ? WEIR_REPORT_TEXT : WEIR_REPORT_JSON;
    if (!strcmp(value, "json") || !strcmp(value, "text")) return true;
    cmd_usage(c, "there is no format '%s': text or json", value);
    return false;
  }
  if (!cmd_number(value, 1, 1000, &n)) {
    cmd_usage(c, "--top takes a number from 1 to 1000, not '%s'", value);
    return false;
  }
  o->top = (int)n;
  return true;
}

/* Colours and width are the terminal's; a file or a pipe gets plain text. */
static void ask_terminal(weir_report_options *o)
{
  struct winsize size;
  const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
  if (!isatty(STDOUT_FILENO)) return;
  o->color = !(no_color && *no_color) && !(term && !strcmp(term, "dumb"));
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) o->width = size.ws_col;
}

/* Kinds of report; the first is the default. */
static const struct kind {
  const char *name;
  weir_status (*print)(FILE *out, const char *trace, const weir_report_options *options);
} kinds[] = {{"summary", weir_report_summary}, {"cache", weir_report_cache}};

int report_main(const cmd *c, int argc, char **argv)
{
  weir_report_options o = {.format = WEIR_REPORT_TEXT};
  bool helped;
  int at = cmd_parse(c, argc, argv, false, on_option, &o, &helped);
  if (at < 0) return CMD_USAGE;
  if (helped) return 0;
  const struct kind *kind = kinds;
  /* The first word is the kind of report, unless it is all there is: a file of that name. */
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds && argc - at > 1; i++) {
    if (strcmp(argv[at], kinds[i].name) != 0) continue;
    kind = &kinds[i];
    at++;
    break;
  }
  if (argc - at == 0) return cmd_usage(c, "which trace? FILE is missing");
  if (argc - at > 1) return cmd_usage(c, "weir report takes one trace, not %d", argc - at);
  ask_terminal(&o);
  if (kind->print(stdout, argv[at], &o) != WEIR_OK) {
    (void)fflush(stdout);
    cmd_say("%s.", weir_error_message());
    return CMD_FAILED;
  }
  return 0;
}
