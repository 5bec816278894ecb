/* report.c: weir report: the command line around reports/render/report.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "reports/render/report.h"
#include "reports/tables/tables.h"
#include "reports/write/report.h"
#include "tools/weir/base/commands.h"
#include "tools/weir/base/guess.h"
#include "tools/weir/report/min_cost.h"
#include "tools/weir/report/page_file.h"
#include "tools/weir/report/pager.h"
#include "tools/weir/base/progress.h"
#include "tools/weir/report/terminal.h"

enum {
  OPT_FORMAT,
  OPT_BY,
  OPT_TOP,
  OPT_DEPTH,
  OPT_WIDTH,
  OPT_TABLE,
  OPT_FROM,
  OPT_TO,
  OPT_PROCESS,
  OPT_RANGE,
  OPT_SYMBOLS,
  OPT_MIN_COST,
  OPT_POSSIBLE,
  OPT_RULES,
  OPT_HTML,
  OPT_OUTPUT,
  OPT_SOURCES,
  OPT_NO_PAGER
};

typedef struct request {
  report_settings report;
  bool html, no_pager;
  const char *output;
} request;

const cmd_option report_options[] = {
    [OPT_FORMAT] = {"format", 'f', CMD_ARG_REQUIRED, "FORMAT",
                    "text (default), json, csv or markdown", 0},
    [OPT_BY] =
        {"by", 'b', CMD_ARG_REQUIRED, "WHAT",
         "rows by site, stack, module, range, stream, device, thread, process, rank or function",
         0},
    [OPT_TOP] = {"top", 'n', CMD_ARG_REQUIRED, "N",
                 "rows, or call sites, in each list (default 10, 5)", 0},
    [OPT_DEPTH] = {"depth", 'd', CMD_ARG_REQUIRED, "N", "callers above each call site (default 2)",
                   0},
    [OPT_WIDTH] = {"width", 'w', CMD_ARG_REQUIRED, "N",
                   "columns of text (default the terminal's; 0: no limit)", 0},
    [OPT_TABLE] = {"table", 0, CMD_ARG_REQUIRED, "NAME", "print this table of the report alone",
                   CMD_SETS(request, report.table)},
    [OPT_FROM] = {"from", 0, CMD_ARG_REQUIRED, "TIME",
                  "only what began at or after TIME of the run: 1.5s, 20ms, 30%", 0},
    [OPT_TO] = {"to", 0, CMD_ARG_REQUIRED, "TIME", "only what began before TIME of the run", 0},
    [OPT_PROCESS] = {"process", 0, CMD_ARG_REQUIRED, "PID", "only what this process did", 0},
    [OPT_RANGE] = {"range", 0, CMD_ARG_REQUIRED, "NAME",
                   "only what was done within NVTX ranges of this name",
                   CMD_SETS(request, report.range)},
    [OPT_SYMBOLS] = {"symbols", 0, CMD_ARG_REQUIRED, "DIR",
                     "look for programs, libraries and debug files in DIR first",
                     CMD_SETS(request, report.symbols)},
    [OPT_MIN_COST] = {"min-cost", 0, CMD_ARG_REQUIRED, "COST", MIN_COST_HELP, 0},
    [OPT_POSSIBLE] = {"possible", 0, CMD_ARG_NONE, NULL,
                      "print findings that are possible only in full, too",
                      CMD_SETS(request, report.possible)},
    [OPT_RULES] = {"rules", 0, CMD_ARG_REQUIRED, "DIR",
                   "look for what the rules DIR/NAME.sql find, too",
                   CMD_SETS(request, report.findings.rules)},
    [OPT_HTML] = {"html", 0, CMD_ARG_NONE, NULL, "write a page for browsers, one file: needs -o",
                  CMD_SETS(request, html)},
    [OPT_OUTPUT] = {"output", 'o', CMD_ARG_REQUIRED, "FILE", "of --html: the file to write",
                    CMD_SETS(request, output)},
    [OPT_SOURCES] = {"sources", 0, CMD_ARG_REQUIRED, "WHEN",
                     "quote lines of source: own (default: of your own traces), on or off", 0},
    [OPT_NO_PAGER] = {"no-pager", 0, CMD_ARG_NONE, NULL, "print long texts on a terminal at once",
                      CMD_SETS(request, no_pager)},
    {0},
};

static bool take_report_format(const cmd *c, report_settings *o, const char *value)
{
  static const char *const names[] = {[WEIR_REPORT_TEXT] = "text",
                                      [WEIR_REPORT_JSON] = "json",
                                      [WEIR_REPORT_CSV] = "csv",
                                      [WEIR_REPORT_MARKDOWN] = "markdown"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    if (strcmp(value, names[i]) != 0) continue;
    o->format = (report_format)i;
    return true;
  }
  cmd_usage(c, "there is no format '%s': text, json, csv or markdown", value);
  return false;
}

/* "1.5s", "20ms", "30%": a time of the run. */
static bool take_time(const cmd *c, const char *option, report_time *out, const char *value)
{
  static const struct {
    const char *unit;
    double ns;
  } units[] = {{"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"ns", 1}, {"%", 0}};
  char *end;
  double n = strtod(value, &end);
  for (size_t i = 0; i < sizeof units / sizeof *units && end != value; i++) {
    if (strcmp(end, units[i].unit) != 0 || !(n >= 0 && n < 1e15)) continue;
    *out = (report_time){true, !(units[i].ns > 0), units[i].ns > 0 ? n * units[i].ns : n};
    return true;
  }
  cmd_usage(c, "--%s takes a time of the run as 1.5s, 20ms, 100us, 7ns or 30%%, not '%s'", option,
            value);
  return false;
}

static bool take_by(const cmd *c, report_settings *o, const char *value)
{
  if (report_by_read(value, &o->by)) return true;
  cmd_usage(c,
            "there are no rows by '%s': site, stack, module, range, stream, device, thread, "
            "process, rank or function",
            value);
  return false;
}

static bool take_sources(const cmd *c, report_settings *o, const char *value)
{
  static const char *const names[] = {
      [WR_QUOTE_OWN] = "own", [WR_QUOTE_ANY] = "on", [WR_QUOTE_NONE] = "off"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    o->findings.quoting = (wr_quoting)i;
    if (!strcmp(value, names[i])) return true;
  }
  cmd_usage(c, "--sources takes own, on or off, not '%s'", value);
  return false;
}

static bool on_option(const cmd *c, size_t at, const char *value, void *context)
{
  report_settings *o = &((request *)context)->report;
  long n;
  if (at == OPT_FORMAT) return take_report_format(c, o, value);
  if (at == OPT_BY) return take_by(c, o, value);
  if (at == OPT_SOURCES) return take_sources(c, o, value);
  if (at == OPT_FROM) return take_time(c, "from", &o->from, value);
  if (at == OPT_TO) return take_time(c, "to", &o->to, value);
  if (at == OPT_MIN_COST) return min_cost_take(c, &o->findings.min, value);
  static const struct {
    const char *name;
    long least, most;
  } numbers[] = {[OPT_TOP] = {"top", 1, 1000},
                 [OPT_DEPTH] = {"depth", 0, 64},
                 [OPT_WIDTH] = {"width", 0, 100000},
                 [OPT_PROCESS] = {"process", 1, INT32_MAX}};
  if (!cmd_number(value, numbers[at].least, numbers[at].most, &n)) {
    cmd_usage(c, "--%s takes a number from %ld to %ld, not '%s'", numbers[at].name,
              numbers[at].least, numbers[at].most, value);
    return false;
  }
  if (at == OPT_TOP) o->top = (int)n;
  if (at == OPT_DEPTH) o->depth = n ? (int)n : -1;
  if (at == OPT_WIDTH) o->width = (int)n;
  if (at == OPT_PROCESS) o->process = n;
  return true;
}

/* Reports that are not in tables; the first is the default. */
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

static const struct kind *kind_of(const char *name)
{
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (!strcmp(name, kinds[i].name)) return &kinds[i];
  return NULL;
}

/* What only reports in tables have. */
static const char *option_of_tables(const report_settings *o)
{
  return o->format == WEIR_REPORT_CSV        ? "--format csv"
         : o->format == WEIR_REPORT_MARKDOWN ? "--format markdown"
         : o->by                             ? "--by"
         : o->table                          ? "--table"
         : o->from.set                       ? "--from"
         : o->to.set                         ? "--to"
         : o->process                        ? "--process"
         : o->range                          ? "--range"
                                             : NULL;
}

/* What nothing is put together in, or what has no such options. */
static const char *refused_option(const char *what, const report_settings *o)
{
  if (o->by && !report_tables_by(what)) return "--by";
  return report_tables_has(what) ? NULL : option_of_tables(o);
}

static weir_status write_report(FILE *out, const char *what, const char *trace,
                                const report_settings *o)
{
  const struct kind *kind = kind_of(what);
  bool tables = report_tables_has(what) && (!kind || option_of_tables(o));
  return tables ? report_tables(out, what, trace, o) : kind->print(out, trace, o);
}

/* Text for a terminal is written first, to see whether it is longer than that. */
static weir_status print_report(const char *what, const char *trace, const request *r)
{
  char *text = NULL;
  size_t bytes = 0;
  bool paged = !r->no_pager && r->report.format == WEIR_REPORT_TEXT && isatty(STDOUT_FILENO);
  FILE *out = paged ? open_memstream(&text, &bytes) : NULL;
  if (!out) return write_report(stdout, what, trace, &r->report);
  weir_status s = write_report(out, what, trace, &r->report);
  if (fclose(out) && !s) s = weir_fail(WEIR_ENOMEM, "reporting on %s: out of host memory", trace);
  if (!s) pager_show(text, bytes);
  free(text);
  return s;
}

#define REPORTS "summary, findings, transfers, waits, memory, leaks, oom, devices, idle, coverage "

static int no_such_report(const cmd *c, const char *name)
{
  char buffer[GUESS_MOST];
  guess g = {.word = name};
  guess_offer_words(&g, REPORTS "cache", buffer);
  char *hint = guess_hint(&g, "");
  if (g.best)
    cmd_usage(c, "there is no report '%s'%s", name, hint);
  else
    cmd_usage(c, "there is no report '%s': " REPORTS "or cache", name);
  free(hint);
  return CMD_USAGE;
}

int report_main(const cmd *c, int argc, char **argv)
{
  request r = {.report = {.format = WEIR_REPORT_TEXT, .width = TERMINAL_NOT_ASKED}};
  int at = cmd_parse(c, argc, argv, false, on_option, &r);
  if (at < 1) return at ? CMD_USAGE : 0;
  const char *what = kinds[0].name;
  /* The first word is the kind of report, unless it is all there is: a file of that name. */
  if (argc - at > 1 && (kind_of(argv[at]) || report_tables_has(argv[at]))) what = argv[at++];
  if (argc - at == 0) return cmd_usage(c, "which trace? FILE is missing");
  if (argc - at == 2 && !strpbrk(argv[at], "./") && access(argv[at], F_OK) != 0)
    return no_such_report(c, argv[at]);
  if (argc - at > 1) return cmd_usage(c, "weir report takes one trace, not %d", argc - at);
  const char *option = r.html ? NULL : refused_option(what, &r.report);
  if (option) return cmd_usage(c, "weir report %s has no %s", what, option);
  char *folder;
  if (!check_output(c, &r, !strcmp(what, kinds[0].name) && !option_of_tables(&r.report)))
    return CMD_USAGE;
  if (!cmd_symbols(c, r.report.symbols, &folder)) return CMD_USAGE;
  r.report.symbols = folder;
  if (r.html) {
    int exit_status = page_file_write(argv[at], r.output, &r.report);
    free(folder);
    return exit_status;
  }
  r.report.color = terminal_has_color();
  r.report.width = terminal_width(r.report.width);
  progress line = {.trace = argv[at]};
  r.report.findings.progress = progress_findings;
  r.report.findings.progress_context = &line;
  weir_status status = print_report(what, argv[at], &r);
  progress_clear(&line);
  free(folder);
  if (!status) return 0;
  (void)fflush(stdout);
  return cmd_failed();
}
