/* stats.c: weir stats: the command line around reports/stats.
 *
 * Reports are words, "weir stats NAME FILE", or as nsys stats has them: --report NAME[:ARGUMENT][,NAME...],
 * whose output is a file a report, BASE_NAME.FORMAT. */
#include "reports/stats/stats.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/weir/commands.h"
#include "tools/weir/part.h"

enum { OPT_REPORT, OPT_FORMAT, OPT_OUTPUT, OPT_ROWS, OPT_QUIET, OPT_EXPORT, OPT_OVERWRITE };
enum { MOST_REPORTS = 64 };

typedef struct wanted {
  const stats_report *report;
  stats_settings settings;
  char *arguments; /* owned: "_base", or "" */
} wanted;

typedef struct request {
  sheet_format format;
  int64_t rows;       /* -1: not asked for */
  const char *output; /* NULL: stdout */
  bool quiet;         /* there is nothing to be quiet about */
  bool base;          /* `output` is what names of files begin with */
  bool any;           /* reports that the trace has nothing for are left out */
  wanted wanted[MOST_REPORTS];
  unsigned count;
} request;

const cmd_option stats_options[] = {
    [OPT_REPORT] = {"report", 'r', CMD_ARG_REQUIRED, "NAME[,NAME]...",
                    "these reports; a NAME of kernels' may end in :base or :mangled", 0},
    [OPT_FORMAT] = {"format", 'f', CMD_ARG_REQUIRED, "FORMAT",
                    "column (default), table, csv, tsv or json", 0},
    [OPT_OUTPUT] = {"output", 'o', CMD_ARG_REQUIRED, "FILE",
                    "write to FILE, or with --report to FILE_NAME.csv, .txt, ...",
                    CMD_SETS(request, output)},
    [OPT_ROWS] = {"rows", 'n', CMD_ARG_REQUIRED, "N",
                  "at most N rows, 0 for all; of rules 50 unless asked", 0},
    [OPT_QUIET] = {"quiet", 'q', CMD_ARG_NONE, NULL, "changes nothing; nsys stats has it",
                   CMD_SETS(request, quiet)},
    [OPT_EXPORT] = {"force-export", 0, CMD_ARG_OPTIONAL, "BOOL",
                    "changes nothing; nsys stats has it", 0},
    [OPT_OVERWRITE] = {"force-overwrite", 0, CMD_ARG_OPTIONAL, "BOOL",
                       "changes nothing; nsys stats has it", 0},
    {0},
};

/* ---- reports that are asked for -------------------------------------------------------------- */

/* "base", "mangled", "rows=5" */
static bool take_argument(const cmd *c, wanted *w, const char *argument)
{
  bool kernels = w->report->needs != STATS_NEVER && stats_has_kernels(w->report);
  long rows;
  if (kernels && !strcmp(argument, "base"))
    w->settings.names = STATS_BASE;
  else if (kernels && !strcmp(argument, "mangled"))
    w->settings.names = STATS_MANGLED;
  else if (!strncmp(argument, "rows=", 5) && cmd_number(argument + 5, 0, INT32_MAX, &rows))
    w->settings.rows = rows;
  else
    return !cmd_usage(c, "%s has no argument '%s': %srows=N", w->report->name, argument,
                      kernels ? "base, mangled or " : "");
  return true;
}

/* `text`, "NAME:base", is cut into its parts. */
static bool take_report(const cmd *c, request *r, char *text)
{
  char *rest = NULL, *name = strsep(&text, ":");
  wanted *w = &r->wanted[r->count];
  *w = (wanted){.report = stats_report_named(name), .settings.rows = -1};
  if (!w->report) return !cmd_usage(c, "there is no report '%s': weir stats lists them", name);
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

static bool on_option(const cmd *c, size_t at, const char *value, void *context)
{
  request *r = context;
  if (at == OPT_EXPORT || at == OPT_OVERWRITE) return true;
  if (at == OPT_REPORT) return r->base = true, take_reports(c, r, value);
  if (at == OPT_ROWS) {
    long rows;
    if (cmd_number(value, 0, INT32_MAX, &rows)) {
      r->rows = rows;
      return true;
    }
    cmd_usage(c, "--rows takes a number from 0 on, not '%s'", value);
    return false;
  }
  for (int i = 0; i < SHEET_FORMATS; i++)
    if (!strcmp(value, sheet_formats[i])) {
      r->format = (sheet_format)i;
      return true;
    }
  cmd_usage(c, "there is no format '%s': column, table, csv, tsv or json", value);
  return false;
}

static int list_reports(void)
{
  for (const stats_report *r = stats_reports; r->name; r++)
    if (r->needs != STATS_NEVER)
      printf("  %-22s %s%s\n", r->name, r->title, r->needs == STATS_DEVICE ? " *" : "");
  (void)puts("\n  * of times of devices: weir run --device-times=all");
  return 0;
}

/* ---- where they go --------------------------------------------------------------------------- */

/* 0, or 1 after a sentence. */
static int settle(const request *r, weir_status s)
{
  if (!s) return 0;
  int status = cmd_failed();
  return r->any && s == WEIR_ENOTSUP ? 0 : status;
}

static int write_to_stdout(const request *r, const char *trace)
{
  int status = 0;
  (void)signal(SIGPIPE, SIG_IGN);
  for (unsigned i = 0; i < r->count; i++) {
    const wanted *w = &r->wanted[i];
    if (i && w->settings.format > SHEET_TABLE) (void)putchar('\n');
    weir_status s = stats_write(stdout, trace, w->report, &w->settings);
    bool written = fflush(stdout) == 0 && !ferror(stdout);
    if (!written && errno == EPIPE) {
      (void)signal(SIGPIPE, SIG_DFL); /* who reads has had enough, as head has */
      (void)raise(SIGPIPE);
    }
    if (!written) return s ? CMD_FAILED : status; /* main() says that stdout could not be written */
    if (settle(r, s)) status = CMD_FAILED;
  }
  return status;
}

static int write_to_file(const cmd *c, const wanted *w, const char *output, const char *trace,
                         weir_status *s)
{
  struct stat a, b;
  part_file part;
  if (!stat(output, &a) && !stat(trace, &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino)
    return cmd_usage(c, "-o %s is the trace itself", output);
  *s = part_begin(&part, output, 0666);
  FILE *out = *s ? NULL : fopen(part.path, "we");
  if (!*s && !out) *s = weir_fail_errno(WEIR_EIO, errno, "cannot write %s", output);
  if (!*s) *s = stats_write(out, trace, w->report, &w->settings);
  if (out && fclose(out) && !*s) *s = weir_fail_errno(WEIR_EIO, errno, "writing %s", output);
  *s = part_end(&part, *s);
  return 0;
}

static int write_to_files(const cmd *c, const request *r, const char *trace)
{
  static const char *const endings[] = {"txt", "txt", "csv", "tsv", "json"};
  int status = 0;
  for (unsigned i = 0; i < r->count; i++) {
    const wanted *w = &r->wanted[i];
    weir_status s = WEIR_OK;
    char *output = r->base
                       ? cmd_format("%s_%s%s.%s", r->output, w->report->name,
                                    w->arguments ? w->arguments : "", endings[w->settings.format])
                       : cmd_format("%s", r->output);
    int wrong = write_to_file(c, w, output, trace, &s);
    free(output);
    if (wrong) return wrong;
    if (settle(r, s)) status = CMD_FAILED;
  }
  return status;
}

static int write_reports(const cmd *c, request *r, const char *trace)
{
  for (unsigned i = 0; i < r->count; i++) {
    stats_settings *s = &r->wanted[i].settings;
    s->format = r->format;
    if (s->rows < 0) s->rows = r->rows;
  }
  if (r->count > 1) r->base = true;
  return r->output && strcmp(r->output, "-") != 0 ? write_to_files(c, r, trace)
                                                  : write_to_stdout(r, trace);
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
  request r = {.rows = -1};
  int at = cmd_parse(c, argc, argv, false, on_option, &r);
  int status = at < 1 ? (at ? CMD_USAGE : 0) : take_words(c, &r, argc - at, argv + at);
  for (unsigned i = 0; i < r.count; i++)
    free(r.wanted[i].arguments);
  return status;
}
