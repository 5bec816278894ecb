/* report.c: weir report: the command line around reports/write/report.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "reports/tables/tables.h"
#include "reports/write/report.h"
#include "tools/weir/base/guess.h"
#include "tools/weir/report/page_file.h"
#include "tools/weir/report/pager.h"
#include "tools/weir/base/progress.h"
#include "tools/weir/report/reading.h"

typedef struct request {
  report_settings report;
  bool html, no_pager;
  const char *output; /* of --html */
} request;

/* Reads "1.5s", "20ms" or "30%", a time of the run. */
static bool take_run_time(const cmd *c, cmd_option_id option, report_time *out, const char *value)
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
  cmd_usage(c, "--%s takes a time of the run as 1.5s, 20ms, 100us, 7ns or 30%%, not '%s'",
            cmd_options[option].name, value);
  return false;
}

static bool read_report_option(const cmd *c, cmd_option_id option, const char *value, void *context)
{
  report_settings *o = &((request *)context)->report;
  if (option == OPT_REPORT_FROM) return take_run_time(c, option, &o->from, value);
  if (option == OPT_REPORT_TO) return take_run_time(c, option, &o->to, value);
  return reading_min_cost(c, &o->findings.min, value);
}

/* Takes the options that read_report_option() does not read. */
static void take_report_options(request *r, const cmd_line *line)
{
  report_settings *o = &r->report;
  r->html = line->value[OPT_HTML].given;
  r->no_pager = line->value[OPT_NO_PAGER].given;
  r->output = line->value[OPT_REPORT_OUTPUT].text;
  o->format =
      (report_format)line->value[OPT_REPORT_FORMAT].number; /* its words are in that order */
  if (line->value[OPT_BY].given) (void)report_by_read(line->value[OPT_BY].text, &o->by);
  o->top = (int)line->value[OPT_REPORT_TOP].number;
  o->depth = cmd_number_of(line, OPT_DEPTH, 0);
  if (line->value[OPT_DEPTH].given && !o->depth) o->depth = -1;
  o->table = line->value[OPT_TABLE].text;
  o->process = line->value[OPT_REPORT_PROCESS].number;
  o->range = line->value[OPT_REPORT_RANGE].text;
  o->possible = line->value[OPT_POSSIBLE].given;
  o->innermost_sites = line->value[OPT_SITES].number;
  o->findings.quoting = (wr_quoting)line->value[OPT_SOURCES].number;
}

/* Reports that are not in tables; the first is the default. */
static const struct kind {
  const char *name;
  weir_status (*print)(FILE *out, const char *trace, const report_settings *options);
} kinds[] = {{"summary", report_summary}, {"cache", report_cache}, {"findings", report_findings}};

/* Checks --html and -o together. `whole`: all of the trace is reported on. */
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

static const struct kind *plain_report(const char *name)
{
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (!strcmp(name, kinds[i].name)) return &kinds[i];
  return NULL;
}

/* Returns the first option given that only reports in tables have. NULL: none. */
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

/* Returns the first option given that the report does not have. NULL: none. */
static const char *refused_option(const char *what, const report_settings *o)
{
  if (o->by && !report_tables_by(what)) return "--by";
  return report_tables_has(what) ? NULL : option_of_tables(o);
}

static weir_status write_report(FILE *out, const char *what, const char *trace,
                                const report_settings *o)
{
  const struct kind *kind = plain_report(what);
  bool tables =
      report_tables_has(what) && (!kind || option_of_tables(o) || o->format == WEIR_REPORT_JSON);
  return tables ? report_tables(out, what, trace, o) : kind->print(out, trace, o);
}

/* Prints a report. Text for a terminal is written into memory first, to see whether it has more
 * lines. */
static weir_status print_report(const char *what, const char *trace, const request *r)
{
  char *text = NULL;
  size_t bytes = 0;
  bool paged = !r->no_pager && r->report.format == WEIR_REPORT_TEXT && isatty(STDOUT_FILENO);
  FILE *out = paged ? open_memstream(&text, &bytes) : NULL;
  if (!out) return write_report(stdout, what, trace, &r->report);
  weir_status st = write_report(out, what, trace, &r->report);
  if (fclose(out) && !st) st = weir_fail(WEIR_ENOMEM, "reporting on %s: out of host memory", trace);
  if (!st) pager_show(text, bytes);
  free(text);
  return st;
}

static int no_such_report(const cmd *c, const char *name)
{
  char buffer[GUESS_MOST];
  guess g = {.word = name};
  guess_offer_words(&g, c->operands, buffer);
  char *list = cmd_join_words(c->operands), *otherwise = cmd_format(": %s", list);
  int status = guess_refuse(c, &g, "report", otherwise);
  free(otherwise);
  free(list);
  return status;
}

/* Makes the report, printed or as a page. Returns the exit status. */
static int make_report(const char *what, const char *trace, request *r, const reading *shared)
{
  r->report.symbols = shared->symbols;
  r->report.findings.rules = shared->rules;
  r->report.anew = shared->anew;
  if (r->html) return page_file_write(trace, r->output, &r->report);
  r->report.color = shared->color;
  r->report.width = shared->width;
  progress line = {.trace = trace};
  r->report.findings.progress = progress_findings;
  r->report.findings.progress_context = &line;
  weir_status st = print_report(what, trace, r);
  progress_clear(&line);
  if (!st) return 0;
  (void)fflush(stdout);
  return cmd_failed();
}

int report_main(const cmd *c, int argc, char **argv)
{
  request r = {0};
  reading shared = {0};
  cmd_line line = {.read = read_report_option, .context = &r};
  int at = cmd_parse(c, argc, argv, &line);
  if (at < 1) return at ? CMD_USAGE : 0;
  take_report_options(&r, &line);
  const char *what = kinds[0].name;
  /* The first word is the kind of report, unless it is all there is: a file of that name. */
  if (argc - at > 1 && (plain_report(argv[at]) || report_tables_has(argv[at]))) what = argv[at++];
  if (argc - at == 0) return cmd_usage(c, "which trace? FILE is missing");
  if (argc - at == 2 && !strpbrk(argv[at], "./") && access(argv[at], F_OK) != 0)
    return no_such_report(c, argv[at]);
  if (argc - at > 1) return cmd_usage(c, "weir report takes one trace, not %d", argc - at);
  const char *option = r.html ? NULL : refused_option(what, &r.report);
  if (option) return cmd_usage(c, "weir report %s has no %s", what, option);
  if (!check_output(c, &r, !strcmp(what, kinds[0].name) && !option_of_tables(&r.report)))
    return CMD_USAGE;
  if (!reading_may_write(c, OPT_REPORT_OUTPUT, r.output, argv[at])) return CMD_USAGE;
  if (!reading_take(c, &line, &shared)) return CMD_USAGE;
  int status = make_report(what, argv[at], &r, &shared);
  reading_clear(&shared);
  return status;
}
