/* trace.c: weir trace: the command line around reports/listing/listing.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/options.h"
#include "reports/listing/listing.h"
#include "tools/weir/base/output_file.h"
#include "tools/weir/report/reading.h"

typedef struct request {
  listing_settings list;
  const char *output;
} request;

/* ---- values of options ----------------------------------------------------------------------- */

static bool take_kinds(const cmd *c, const char *value, request *r)
{
  for (const char *at = value;; at++) {
    size_t bytes = strcspn(at, ",");
    uint64_t kind = listing_kind(at, bytes);
    if (!kind) {
      cmd_usage(c, "there is no kind '%.*s': %s", (int)bytes, at, listing_kinds());
      return false;
    }
    r->list.filter.kinds |= kind;
    at += bytes;
    if (!*at) return true;
  }
}

/* Reads a number of 64 bits, decimal or 0x, which must be all of the text. */
static bool read_handle(const char *text, int64_t *out)
{
  char *end;
  if (*text < '0' || *text > '9') return false;
  errno = 0;
  *out = (int64_t)strtoull(text, &end, text[0] == '0' && (text[1] | 32) == 'x' ? 16 : 10);
  return !errno && !*end;
}

static bool take_stream(const cmd *c, const char *value, request *r)
{
  listing_number *n = &r->list.filter.stream;
  n->asked = true;
  n->value = !strcmp(value, "legacy") ? 1 : 2;
  if (n->value == 1 || !strcmp(value, "per-thread") || read_handle(value, &n->value)) return true;
  cmd_usage(c, "--stream takes legacy, per-thread or a handle, not '%s'", value);
  return false;
}

/* Reads "1500", "1.5us" or "2 s" as ns. Returns false when it is none, or more than 292 years. */
static bool read_time(const char *text, int64_t *ns)
{
  static const struct {
    const char *name;
    long double ns;
  } units[] = {{"", 1},      {"ns", 1},   {"us", 1e3L},  {"\xc2\xb5s", 1e3L}, {"\xce\xbcs", 1e3L},
               {"ms", 1e6L}, {"s", 1e9L}, {"min", 60e9L}};
  char *unit;
  if (*text < '0' || *text > '9' || text[strspn(text, "0123456789.")] == 'x') return false;
  size_t digits = strspn(text, "0123456789.");
  long double value = strtold(text, &unit);
  if (unit != text + digits) return false;
  unit += *unit == ' ';
  for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
    if (strcmp(unit, units[i].name) != 0) continue;
    value = value * units[i].ns + 0.5L;
    *ns = value < 9.2e18L ? (int64_t)value : 0;
    return value < 9.2e18L;
  }
  return false;
}

static bool take_event_time(const cmd *c, cmd_option_id option, const char *value,
                            listing_number *n)
{
  n->asked = read_time(value, &n->value);
  if (n->asked) return true;
  cmd_usage(c, "--%s takes a time as 1500, 30us, 200ms or 1.5s, not '%s'", cmd_options[option].name,
            value);
  return false;
}

static bool take_min_bytes(const cmd *c, const char *value, listing_number *n)
{
  uint64_t bytes;
  n->asked = option_size(&bytes, "min-bytes", value, 1) == WEIR_OK && bytes <= INT64_MAX;
  n->value = n->asked ? (int64_t)bytes : 0;
  if (n->asked) return true;
  cmd_usage(c, "--min-bytes takes bytes with an optional K, M, G or T, not '%s'", value);
  return false;
}

static bool read_trace_option(const cmd *c, cmd_option_id option, const char *value, void *context)
{
  request *r = context;
  listing_filter *f = &r->list.filter;
  switch (option) {
  case OPT_KIND:
    return take_kinds(c, value, r);
  case OPT_STREAM:
    return take_stream(c, value, r);
  case OPT_MIN_BYTES:
    return take_min_bytes(c, value, &f->min_bytes);
  case OPT_MIN_NS:
    return take_event_time(c, option, value, &f->min_ns);
  case OPT_TRACE_FROM:
    return take_event_time(c, option, value, &f->from);
  default:
    return take_event_time(c, option, value, &f->to);
  }
}

static listing_number asked_number(const cmd_line *line, cmd_option_id option)
{
  return (listing_number){line->value[option].given, line->value[option].number};
}

/* Takes the options that read_trace_option() does not read. */
static void take_trace_options(request *r, const cmd_line *line)
{
  listing_filter *f = &r->list.filter;
  r->list.format = (listing_format)line->value[OPT_TRACE_FORMAT].number;
  if (line->value[OPT_TRACE_OUTPUT].given) r->output = line->value[OPT_TRACE_OUTPUT].text;
  f->functions = line->value[OPT_FUNCTION].text;
  f->ranges = line->value[OPT_TRACE_RANGE].text;
  f->device = asked_number(line, OPT_DEVICE);
  f->thread = asked_number(line, OPT_THREAD);
  f->process = asked_number(line, OPT_TRACE_PROCESS);
}

/* ---- writing --------------------------------------------------------------------------------- */

typedef struct listed {
  const request *r;
  const char *trace;
} listed;

static weir_status write_list(FILE *out, const void *context)
{
  const listed *l = context;
  return listing_write(out, l->trace, &l->r->list);
}

static int write_trace(const cmd *c, const request *r, const char *trace)
{
  listed l = {r, trace};
  if (!reading_may_write(c, OPT_TRACE_OUTPUT, r->output, trace)) return CMD_USAGE;
  return output_write(r->output, 0600, write_list, &l) ? cmd_failed() : 0;
}

int trace_main(const cmd *c, int argc, char **argv)
{
  request r = {.output = "-"};
  cmd_line line = {.read = read_trace_option, .context = &r};
  int at = cmd_parse(c, argc, argv, &line);
  if (at < 1) return at ? CMD_USAGE : 0;
  take_trace_options(&r, &line);
  if (argc - at == 0) return cmd_usage(c, "which trace? FILE is missing");
  if (argc - at > 1) return cmd_usage(c, "weir trace takes one trace, not %d", argc - at);
  return write_trace(c, &r, argv[at]);
}
