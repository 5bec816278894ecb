/* stats.c: weir stats: the command line around reports/stats. */
#include "reports/stats/stats.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tools/weir/commands.h"
#include "tools/weir/part.h"

enum { OPT_FORMAT, OPT_OUTPUT, OPT_ROWS };

typedef struct request {
  stats_settings settings;
  const char *output; /* NULL: stdout */
} request;

const cmd_option stats_options[] = {
    [OPT_FORMAT] = {"format", 'f', CMD_ARG_REQUIRED, "FORMAT",
                    "column (default), table, csv, tsv or json", 0},
    [OPT_OUTPUT] = {"output", 'o', CMD_ARG_REQUIRED, "FILE", "write to FILE, not to stdout",
                    CMD_SETS(request, output)},
    [OPT_ROWS] = {"rows", 'n', CMD_ARG_REQUIRED, "N",
                  "at most N rows, 0 for all; of rules 50 unless asked", 0},
    {0},
};

static bool on_option(const cmd *c, size_t at, const char *value, void *context)
{
  request *r = context;
  if (at == OPT_ROWS) {
    long rows;
    if (cmd_number(value, 0, INT32_MAX, &rows)) {
      r->settings.rows = rows;
      return true;
    }
    cmd_usage(c, "--rows takes a number from 0 on, not '%s'", value);
    return false;
  }
  for (int i = 0; i < SHEET_FORMATS; i++)
    if (!strcmp(value, sheet_formats[i])) {
      r->settings.format = (sheet_format)i;
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

static int write_to_stdout(const request *r, const stats_report *report, const char *trace)
{
  (void)signal(SIGPIPE, SIG_IGN);
  weir_status s = stats_write(stdout, trace, report, &r->settings);
  bool written = fflush(stdout) == 0 && !ferror(stdout);
  if (!written && errno == EPIPE) {
    (void)signal(SIGPIPE, SIG_DFL); /* who reads has had enough, as head has */
    (void)raise(SIGPIPE);
  }
  if (!written) return s ? CMD_FAILED : 0; /* main() says that stdout could not be written */
  return s ? cmd_failed() : 0;
}

static int write_to_file(const cmd *c, const request *r, const stats_report *report,
                         const char *trace)
{
  struct stat a, b;
  part_file part;
  if (!stat(r->output, &a) && !stat(trace, &b) && a.st_dev == b.st_dev && a.st_ino == b.st_ino)
    return cmd_usage(c, "-o %s is the trace itself", r->output);
  weir_status s = part_begin(&part, r->output, 0666);
  FILE *out = s ? NULL : fopen(part.path, "we");
  if (!s && !out) s = weir_fail_errno(WEIR_EIO, errno, "cannot write %s", r->output);
  if (!s) s = stats_write(out, trace, report, &r->settings);
  if (out && fclose(out) && !s) s = weir_fail_errno(WEIR_EIO, errno, "writing %s", r->output);
  return part_end(&part, s) ? cmd_failed() : 0;
}

int stats_main(const cmd *c, int argc, char **argv)
{
  request r = {.settings = {.rows = -1}};
  int at = cmd_parse(c, argc, argv, false, on_option, &r);
  if (at < 1) return at ? CMD_USAGE : 0;
  if (argc - at == 0) return list_reports();
  const stats_report *report = stats_report_named(argv[at]);
  if (!report) return cmd_usage(c, "there is no report '%s': weir stats lists them", argv[at]);
  if (argc - at == 1) return cmd_usage(c, "of which trace? FILE is missing");
  if (argc - at > 2) return cmd_usage(c, "weir stats takes one trace, not %d", argc - at - 1);
  return r.output ? write_to_file(c, &r, report, argv[at + 1])
                  : write_to_stdout(&r, report, argv[at + 1]);
}
