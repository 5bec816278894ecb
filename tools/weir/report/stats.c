/* stats.c: weir stats: the command line around reports/stats.
 *
 * Reports are words, "weir stats NAME FILE", or as nsys stats has them: --report
 * NAME[:ARGUMENT][,NAME...], whose output is a file a report, BASE_NAME.FORMAT. Reports, formats
 * and outputs are then parallel lists; of a shorter one the last is meant again and
 * again. */
#include "reports/stats/stats.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/weir/base/guess.h"
#include "tools/weir/base/output_file.h"
#include "tools/weir/report/reading.h"

enum { MOST_REPORTS = 64 };

typedef struct wanted {
  const stats_report *report;
  stats_settings settings;
  char *arguments; /* owned: "_base", or "" */
} wanted;

typedef struct request {
  wr_rows_format format[MOST_REPORTS]; /* WR_ROWS_FORMATS: what is usual there */
  unsigned formats;
  const char *given[MOST_REPORTS]; /* -o, as they stand on the command line */
  unsigned givens;
  char *output[MOST_REPORTS]; /* owned; "-": stdout, ".": named like the trace */
  unsigned outputs;
  int64_t rows; /* -1: not asked for */
  stats_unit unit;
  bool base;  /* an output is what names of files begin with */
  bool any;   /* reports that the trace has nothing for are left out */
  bool shown; /* a report is on stdout */
  wanted wanted[MOST_REPORTS];
  unsigned count;
} request;

/* ---- reports that are asked for -------------------------------------------------------------- */

/* Reads an argument of a report: "base", "mangled", "rows=5". */
static bool take_argument(const cmd *c, wanted *w, const char *argument)
{
  bool kernels = w->report->kernel != 0;
  long rows;
  if (kernels && !strcmp(argument, "nvtx-name"))
    w->settings.ranges = true;
  else if (kernels && !strcmp(argument, "base"))
    w->settings.names = STATS_BASE;
  else if (kernels && !strcmp(argument, "mangled"))
    w->settings.names = STATS_MANGLED;
  else if (!strncmp(argument, "rows=", 5) && cmd_number(argument + 5, 0, INT32_MAX, &rows))
    w->settings.rows = rows;
  else
    return !cmd_usage(c, "%s has no argument '%s': %srows=N", w->report->name, argument,
                      kernels ? "nvtx-name, base, mangled or " : "");
  return true;
}

static bool refuse_report(const cmd *c, const char *name)
{
  guess g = {.word = name};
  for (const stats_report *r = stats_reports; r->name; r++)
    guess_offer(&g, r->name);
  return !guess_refuse(c, &g, "report", ": weir stats lists them");
}

/* Takes a report. `text`, as "NAME:base", is cut into its parts. */
static bool take_report(const cmd *c, request *r, char *text)
{
  char *rest = NULL, *name = strsep(&text, ":");
  wanted *w = &r->wanted[r->count];
  *w = (wanted){.report = stats_report_named(name), .settings.rows = -1};
  if (!w->report) return refuse_report(c, name);
  if (r->count == MOST_REPORTS - 1)
    return !cmd_usage(c, "weir stats prints at most %d reports", MOST_REPORTS - 1);
  w->arguments = text ? cmd_format("_%s", text) : NULL;
  for (char *at = w->arguments; at && *at; at++)
    if (*at == ':') *at = '_';
  r->count++;
  for (rest = text; rest;)
    if (!take_argument(c, w, strsep(&rest, ":"))) return false;
  return true;
}

static bool take_reports(const cmd *c, request *r, const char *list)
{
  char *copy = cmd_format("%s", list), *rest = NULL;
  bool good = true;
  for (char *name = strtok_r(copy, ",", &rest); name && good; name = strtok_r(NULL, ",", &rest))
    good = take_report(c, r, name);
  if (good && !r->count) {
    cmd_usage(c, "there is no report ''");
    good = false;
  }
  free(copy);
  return good;
}

static bool take_format(const cmd *c, request *r, const char *name)
{
  static const char *const formats[WR_ROWS_FORMATS] = {[WR_ROWS_COLUMN] = "column",
                                                       [WR_ROWS_TABLE] = "table",
                                                       [WR_ROWS_CSV] = "csv",
                                                       [WR_ROWS_TSV] = "tsv",
                                                       [WR_ROWS_JSON] = "json"};
  int i = 0;
  for (; i < WR_ROWS_FORMATS && (!formats[i] || strcmp(name, formats[i]) != 0); i++) {
  }
  if (i == WR_ROWS_FORMATS && strcmp(name, ".") != 0)
    return !cmd_usage(c, "there is no format '%s': column, table, csv, tsv or json", name);
  if (r->formats == MOST_REPORTS) return !cmd_usage(c, "--format names too many");
  r->format[r->formats++] = (wr_rows_format)i;
  return true;
}

static bool take_formats(const cmd *c, request *r, const char *list)
{
  char *copy = cmd_format("%s", list), *rest = copy;
  bool good = true;
  while (rest && good)
    good = take_format(c, r, strsep(&rest, ","));
  free(copy);
  return good;
}

/* Reads a unit as nsys stats does: as much of a name as no other unit has. */
static bool take_unit(const cmd *c, request *r, const char *value)
{
  static const struct {
    const char *name;
    stats_unit unit;
  } units[] = {{"nsec", STATS_NS}, {"nanoseconds", STATS_NS},  {"ns", STATS_NS},
               {"usec", STATS_US}, {"microseconds", STATS_US}, {"us", STATS_US},
               {"msec", STATS_MS}, {"milliseconds", STATS_MS}, {"ms", STATS_MS},
               {"sec", STATS_S},   {"seconds", STATS_S}};
  unsigned found = 0;
  for (size_t i = 0; i < sizeof units / sizeof *units; i++)
    if (*value && !strncmp(units[i].name, value, strlen(value))) {
      found |= 1U << units[i].unit;
      r->unit = units[i].unit;
    }
  if (found && !(found & (found - 1))) return true;
  return !cmd_usage(c, "--timeunit takes nsec, usec, msec or seconds, not '%s'", value);
}

static bool read_stats_option(const cmd *c, cmd_option_id option, const char *value, void *context)
{
  request *r = context;
  switch (option) {
  case OPT_STATS_REPORT:
    r->base = true;
    return take_reports(c, r, value);
  case OPT_TIMEUNIT:
    return take_unit(c, r, value);
  case OPT_STATS_FORMAT:
    return take_formats(c, r, value);
  case OPT_STATS_OUTPUT:
    if (r->givens == MOST_REPORTS) return !cmd_usage(c, "--output is there too often");
    r->given[r->givens++] = value;
    return true;
  default: /* --force-export, --force-overwrite */
    return true;
  }
}

static int list_reports(void)
{
  for (const stats_report *r = stats_reports; r->name; r++)
    if (r->needs < STATS_NEVER)
      printf("  %-22s %s%s\n", r->name, r->title, r->needs == STATS_DEVICE ? " *" : "");
  (void)puts("\n  * of times of devices: weir run --device-times=all");
  return 0;
}

/* ---- where they go --------------------------------------------------------------------------- */

/* Turns the status of a report into an exit status: 0, or 1 after a message. */
static int settle_report(const request *r, const wanted *w, weir_status st)
{
  if (!st) return 0;
  if (st == WEIR_ENOTSUP && w->report->needs == STATS_SKIPPED) {
    (void)fprintf(stderr, "%s.\n", weir_error_message());
    return 0;
  }
  int status = cmd_failed();
  return r->any && st == WEIR_ENOTSUP ? 0 : status;
}

/* Prints a report. *stop: there is no use in going on. */
static int write_to_stdout(request *r, const wanted *w, const char *trace, bool *stop)
{
  (void)signal(SIGPIPE, SIG_IGN);
  bool none = w->report->needs >= STATS_NEVER;
  if (r->shown && !none && w->settings.format > WR_ROWS_TABLE) (void)putchar('\n');
  r->shown = r->shown || !none;
  weir_status st = stats_write(stdout, trace, w->report, &w->settings);
  bool written = fflush(stdout) == 0 && !ferror(stdout);
  if (!written && errno == EPIPE) {
    (void)signal(SIGPIPE, SIG_DFL); /* who reads has had enough, as head has */
    (void)raise(SIGPIPE);
  }
  *stop = !written;
  if (!written) return st ? CMD_FAILED : 0; /* main() prints that stdout could not be written */
  return settle_report(r, w, st);
}

/* A report that a file gets. */
typedef struct filed {
  const wanted *wanted;
  const char *trace;
} filed;

static weir_status fill_file(FILE *out, const void *context)
{
  const filed *f = context;
  return stats_write(out, f->trace, f->wanted->report, &f->wanted->settings);
}

static int write_to_file(const cmd *c, const wanted *w, const char *output, const char *trace,
                         weir_status *st)
{
  if (!reading_may_write(c, OPT_STATS_OUTPUT, output, trace)) return CMD_USAGE;
  *st = output_write(output, 0666, fill_file, &(filed){w, trace});
  return 0;
}

/* Returns the name of a report's file. New. */
static char *name_of_file(const request *r, const wanted *w, const char *output, const char *trace)
{
  static const char *const endings[] = {"txt", "txt", "csv", "tsv", "json"};
  const char *slash = strrchr(trace, '/'), *dot = strrchr(trace, '.');
  bool like_trace = !strcmp(output, ".");
  size_t bytes = like_trace && dot && dot > (slash ? slash + 1 : trace) ? (size_t)(dot - trace)
                                                                        : strlen(trace);
  const char *base = like_trace ? trace : output;
  if (!like_trace) bytes = strlen(output);
  if (!r->base && !like_trace) return cmd_format("%s", output);
  return cmd_format("%.*s_%s%s.%s", (int)bytes, base, w->report->name,
                    w->arguments ? w->arguments : "", endings[w->settings.format]);
}

/* Takes the outputs. With --report, or several of anything, commas are between them, else part of a
 * file's name. */
static int take_outputs(const cmd *c, request *r)
{
  for (unsigned i = 0; i < r->givens; i++) {
    char *copy = cmd_format("%s", r->given[i]), *rest = copy;
    while (rest && r->outputs < MOST_REPORTS)
      r->output[r->outputs++] = cmd_format("%s", r->base ? strsep(&rest, ",") : rest),
      rest = r->base ? rest : NULL;
    free(copy);
  }
  for (unsigned i = 0; i < r->outputs; i++) {
    if (!*r->output[i]) return cmd_usage(c, "--output names nothing");
    if (*r->output[i] == '@')
      return cmd_usage(c, "weir stats runs no command, as -o %s would: write to -, and pipe it",
                       r->output[i]);
  }
  return 0;
}

/* Writes report `i`, with what the lists have there, of shorter ones the last. */
static int write_one(const cmd *c, request *r, unsigned i, const char *trace, bool *stop)
{
  wanted w = r->wanted[i < r->count ? i : r->count - 1];
  const char *output = r->outputs ? r->output[i < r->outputs ? i : r->outputs - 1] : "-";
  bool console = output_is_stdout(output);
  w.settings.format = r->formats ? r->format[i < r->formats ? i : r->formats - 1] : WR_ROWS_FORMATS;
  if (w.settings.format == WR_ROWS_FORMATS)
    w.settings.format = console || !r->base ? WR_ROWS_COLUMN : WR_ROWS_CSV;
  w.settings.unit = r->unit;
  if (w.settings.rows < 0) w.settings.rows = r->rows;
  if (console) return write_to_stdout(r, &w, trace, stop);
  weir_status st = WEIR_OK;
  char *file = name_of_file(r, &w, output, trace);
  int wrong = write_to_file(c, &w, file, trace, &st);
  free(file);
  *stop = wrong;
  return wrong ? wrong : settle_report(r, &w, st);
}

static int write_reports(const cmd *c, request *r, const char *trace)
{
  if (r->count > 1 || r->formats > 1 || r->givens > 1) r->base = true;
  int status = take_outputs(c, r);
  unsigned all = r->count > r->formats ? r->count : r->formats;
  if (r->outputs > all) all = r->outputs;
  bool stop = status != 0;
  for (unsigned i = 0; i < all && !stop; i++) {
    int one = write_one(c, r, i, trace, &stop);
    if (one) status = one;
  }
  return status;
}

/* ---- the command ----------------------------------------------------------------------------- */

/* Of a trace alone: what nsys stats prints then, as far as the trace has it. */
static const char usual[] =
    "nvtx_sum,cuda_api_sum,cuda_gpu_kern_sum,cuda_gpu_mem_time_sum,cuda_gpu_mem_size_sum";

static int take_words(const cmd *c, request *r, int count, char **word)
{
  if (!r->count && !count) return list_reports();
  if (!r->count && count == 1 && !stats_report_named(word[0]) && !access(word[0], F_OK))
    r->any = take_reports(c, r, usual);
  if (!r->count) {
    if (!take_reports(c, r, word[0])) return CMD_USAGE;
    word++, count--;
  }
  if (!count) return cmd_usage(c, "of which trace? FILE is missing");
  if (count > 1) return cmd_usage(c, "weir stats takes one trace, not %d", count);
  return write_reports(c, r, word[0]);
}

int stats_main(const cmd *c, int argc, char **argv)
{
  request r = {0};
  cmd_line line = {.read = read_stats_option, .context = &r};
  int at = cmd_parse(c, argc, argv, &line);
  r.rows = cmd_number_of(&line, OPT_ROWS, -1);
  int status = at < 1 ? (at ? CMD_USAGE : 0) : take_words(c, &r, argc - at, argv + at);
  for (unsigned i = 0; i < r.count; i++)
    free(r.wanted[i].arguments);
  for (unsigned i = 0; i < r.outputs; i++)
    free(r.output[i]);
  return status;
}
