/* report.c: weir report: the command line around reports/render/report.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "reports/render/report.h"
#include "tools/weir/commands.h"
#include "tools/weir/page_file.h"

enum {
  OPT_FORMAT,
  OPT_TOP,
  OPT_DEPTH,
  OPT_WIDTH,
  OPT_SYMBOLS,
  OPT_MIN_COST,
  OPT_RULES,
  OPT_HTML,
  OPT_OUTPUT
};

typedef struct request {
  report_settings report;
  bool html;
  const char *output;
} request;

enum { NO_LIMIT = -1 }; /* of report_settings.width, until the terminal was asked */

const cmd_option report_options[] = {
    [OPT_FORMAT] = {"format", 'f', CMD_ARG_REQUIRED, "FORMAT", "text (default) or json", 0},
    [OPT_TOP] = {"top", 'n', CMD_ARG_REQUIRED, "N", "call sites in each list (default 5)", 0},
    [OPT_DEPTH] = {"depth", 'd', CMD_ARG_REQUIRED, "N", "callers above each call site (default 2)",
                   0},
    [OPT_WIDTH] = {"width", 'w', CMD_ARG_REQUIRED, "N",
                   "columns of text (default the terminal's; 0: no limit)", 0},
    [OPT_SYMBOLS] = {"symbols", 0, CMD_ARG_REQUIRED, "DIR",
                     "look for programs, libraries and debug files in DIR first",
                     CMD_SETS(request, report.symbols)},
    [OPT_MIN_COST] = {"min-cost", 0, CMD_ARG_REQUIRED, "COST",
                      "leave out findings below 2ms, 0.1% or 10MiB (default 1ms,0.5%,1MiB)", 0},
    [OPT_RULES] = {"rules", 0, CMD_ARG_REQUIRED, "DIR",
                   "look for what the rules DIR/NAME.sql find, too",
                   CMD_SETS(request, report.findings.rules)},
    [OPT_HTML] = {"html", 0, CMD_ARG_NONE, NULL, "write a page for browsers, one file: needs -o",
                  CMD_SETS(request, html)},
    [OPT_OUTPUT] = {"output", 'o', CMD_ARG_REQUIRED, "FILE", "of --html: the file to write",
                    CMD_SETS(request, output)},
    {0},
};

/* "2ms,0.1%,10MiB": what of these is said; what is not does not count. */
static bool take_min_cost(wr_min_cost *out, const char *value)
{
  static const struct {
    const char *unit;
    double ns, share, bytes;
  } units[] = {{"ns", 1, 0, 0},        {"us", 1e3, 0, 0},      {"ms", 1e6, 0, 0},
               {"s", 1e9, 0, 0},       {"%", 0, 0.01, 0},      {"B", 0, 0, 1},
               {"KiB", 0, 0, 1 << 10}, {"MiB", 0, 0, 1 << 20}, {"GiB", 0, 0, 1 << 30}};
  *out = (wr_min_cost){-1, -1, -1};
  for (bool more = true; more;) {
    char *end;
    double n = strtod(value, &end);
    size_t unit = strcspn(end, ","), i = 0, count = sizeof units / sizeof *units;
    while (i < count && (strlen(units[i].unit) != unit || strncmp(units[i].unit, end, unit) != 0))
      i++;
    if (end == value || i == count || !(n >= 0 && n < 1e9)) return false;
    if (units[i].ns > 0) out->ns = (int64_t)(n * units[i].ns);
    if (units[i].share > 0) out->share = n * units[i].share;
    if (units[i].bytes > 0) out->bytes = (int64_t)(n * units[i].bytes);
    more = end[unit] == ',';
    value = end + unit + 1;
  }
  return true;
}

static bool on_option(const cmd *c, size_t at, const char *value, void *context)
{
  report_settings *o = &((request *)context)->report;
  long n;
  if (at == OPT_FORMAT) {
    bool json, good = cmd_take_format(c, value, &json);
    o->format = json ? WEIR_REPORT_JSON : WEIR_REPORT_TEXT;
    return good;
  }
  if (at == OPT_MIN_COST) {
    bool good = take_min_cost(&o->findings.min, value);
    if (!good) cmd_usage(c, "--min-cost takes a cost as 2ms, 0.1%% or 10MiB, not '%s'", value);
    return good;
  }
  static const struct {
    const char *name;
    long least, most;
  } numbers[] = {[OPT_TOP] = {"top", 1, 1000},
                 [OPT_DEPTH] = {"depth", 0, 64},
                 [OPT_WIDTH] = {"width", 0, 100000}};
  if (!cmd_number(value, numbers[at].least, numbers[at].most, &n)) {
    cmd_usage(c, "--%s takes a number from %ld to %ld, not '%s'", numbers[at].name,
              numbers[at].least, numbers[at].most, value);
    return false;
  }
  if (at == OPT_TOP) o->top = (int)n;
  if (at == OPT_DEPTH) o->depth = n ? (int)n : -1;
  if (at == OPT_WIDTH) o->width = n ? (int)n : NO_LIMIT;
  return true;
}

/* Colours and width are the terminal's, whose columns COLUMNS can tell; in a file or a pipe there
 * are no colours, and nothing is cut. What --width says holds everywhere. */
static void ask_terminal(report_settings *o)
{
  struct winsize size;
  long columns;
  const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM"),
             *columns_text = getenv("COLUMNS");
  bool terminal = isatty(STDOUT_FILENO);
  if (terminal) o->color = !(no_color && *no_color) && !(term && !strcmp(term, "dumb"));
  if (o->width)
    o->width = o->width == NO_LIMIT ? 0 : o->width;
  else if (terminal && columns_text && cmd_number(columns_text, 1, 100000, &columns))
    o->width = (int)columns;
  else if (terminal)
    o->width = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

/* Kinds of report; the first is the default. */
static const struct kind {
  const char *name;
  weir_status (*print)(FILE *out, const char *trace, const report_settings *options);
} kinds[] = {{"summary", report_summary}, {"cache", report_cache}, {"findings", report_findings}};

/* What --html and -o want of each other; `whole`: all of the trace is reported on. */
static bool check_output(const cmd *c, const request *r, bool whole)
{
  if (r->html && !r->output)
    cmd_usage(c, "where is the page to go? -o FILE is missing");
  else if (r->output && !r->html)
    cmd_usage(c, "-o goes with --html: a report is printed");
  else if (r->html && (!whole || r->report.format != WEIR_REPORT_TEXT))
    cmd_usage(c, "--html has all that there is: it goes with no kind of report, and no --format");
  else
    return true;
  return false;
}

int report_main(const cmd *c, int argc, char **argv)
{
  request r = {.report = {.format = WEIR_REPORT_TEXT}};
  int at = cmd_parse(c, argc, argv, false, on_option, &r);
  if (at < 1) return at ? CMD_USAGE : 0;
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
  char *folder;
  if (!check_output(c, &r, kind == kinds)) return CMD_USAGE;
  if (!cmd_symbols(c, r.report.symbols, &folder)) return CMD_USAGE;
  r.report.symbols = folder;
  if (r.html) {
    int exit_status = page_file_write(argv[at], r.output, &r.report);
    free(folder);
    return exit_status;
  }
  ask_terminal(&r.report);
  weir_status status = kind->print(stdout, argv[at], &r.report);
  free(folder);
  if (!status) return 0;
  (void)fflush(stdout);
  return cmd_failed();
}
