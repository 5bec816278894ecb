/* reading.c: see reading.h. */
#include "tools/weir/report/reading.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "tools/weir/base/output_file.h"
#include "tools/weir/report/terminal.h"

/* Reads "2ms,0.1%,10MiB". A kind of cost that is not in it does not count. */
static bool read_min_cost(wr_min_cost *out, const char *value)
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
  if (!out->ns && !(out->share > 0 || out->share < 0) && !out->bytes)
    *out = (wr_min_cost){0, -1, -1}; /* all 0 stands for the default */
  return true;
}

bool reading_min_cost(const cmd *c, wr_min_cost *out, const char *value)
{
  bool good = read_min_cost(out, value);
  if (!good) cmd_usage(c, "--min-cost takes a cost as 2ms, 0.1%% or 10MiB, not '%s'", value);
  return good;
}

bool reading_read(const cmd *c, cmd_option_id option, const char *value, void *context)
{
  (void)option; /* --min-cost */
  return reading_min_cost(c, &((reading *)context)->min, value);
}

/* Takes the absolute path of the folder that --symbols names, NULL for NULL. Returns false after
 * cmd_usage(): there is no such folder. */
static bool take_symbols(const cmd *c, const char *given, char **folder)
{
  struct stat file;
  *folder = given ? realpath(given, NULL) : NULL;
  if (!given || (*folder && stat(*folder, &file) == 0 && S_ISDIR(file.st_mode))) return true;
  cmd_usage(c, "--symbols takes a folder, not '%s'", given);
  return false;
}

bool reading_take(const cmd *c, const cmd_line *line, reading *r)
{
  r->rules = line->value[OPT_RULES].text;
  r->anew = line->value[OPT_ANEW].given;
  r->color = terminal_has_color();
  r->width = terminal_width(cmd_number_of(line, OPT_WIDTH, TERMINAL_NOT_ASKED));
  if (take_symbols(c, line->value[OPT_SYMBOLS].text, &r->symbols)) return true;
  reading_clear(r);
  return false;
}

void reading_clear(reading *r)
{
  free(r->symbols);
  r->symbols = NULL;
}

wr_figures_settings reading_figures(const reading *r, bool findings)
{
  return (wr_figures_settings){.findings = findings,
                               .anew = r->anew,
                               .symbols = r->symbols,
                               .rules = r->rules,
                               .min = r->min};
}

int reading_failed(void)
{
  (void)fflush(stdout);
  (void)cmd_failed();
  return CMD_USAGE;
}

bool reading_may_write(const cmd *c, cmd_option_id option, const char *output, const char *input)
{
  const cmd_option *o = &cmd_options[option];
  if (!output || !output_is_same(output, input)) return true;
  if (o->letter)
    cmd_usage(c, "-%c %s is the trace itself", o->letter, output);
  else
    cmd_usage(c, "--%s %s is the trace itself", o->name, output);
  return false;
}
