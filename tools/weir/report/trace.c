/* trace.c: weir trace: the command line around reports/listing/listing.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/options.h"
#include "reports/listing/listing.h"
#include "tools/weir/base/commands.h"
#include "tools/weir/base/output_file.h"

enum {
  OPT_FORMAT,
  OPT_OUTPUT,
  OPT_KIND,
  OPT_FUNCTION,
  OPT_RANGE,
  OPT_DEVICE,
  OPT_STREAM,
  OPT_THREAD,
  OPT_PROCESS,
  OPT_MIN_BYTES,
  OPT_MIN_NS,
  OPT_FROM,
  OPT_TO
};

typedef struct request {
  listing_settings list;
  const char *output;
} request;

const cmd_option trace_options[] = {
    [OPT_FORMAT] = {"format", 'f', CMD_ARG_REQUIRED, "FORMAT", "text (default), csv or jsonl", 0},
    [OPT_OUTPUT] = {"output", 'o', CMD_ARG_REQUIRED, "FILE", "write to FILE, not to stdout",
                    CMD_SETS(request, output)},
    [OPT_KIND] = {"kind", 'k', CMD_ARG_REQUIRED, "KIND[,KIND]...",
                  "alloc, free, copy, sync, launch, …", 0},
    [OPT_FUNCTION] = {"function", 0, CMD_ARG_REQUIRED, "NAME",
                      "calls of this function; * and ? stand for others", 0},
    [OPT_RANGE] = {"range", 0, CMD_ARG_REQUIRED, "TEXT",
                   "within an NVTX range of this text; * and ? as above", 0},
    [OPT_DEVICE] = {"device", 0, CMD_ARG_REQUIRED, "N", "of this device", 0},
    [OPT_STREAM] = {"stream", 0, CMD_ARG_REQUIRED, "STREAM",
                    "on this stream: legacy, per-thread or a handle", 0},
    [OPT_THREAD] = {"thread", 0, CMD_ARG_REQUIRED, "TID", "of this thread", 0},
    [OPT_PROCESS] = {"process", 0, CMD_ARG_REQUIRED, "PID", "of this process", 0},
    [OPT_MIN_BYTES] = {"min-bytes", 0, CMD_ARG_REQUIRED, "BYTES",
                       "of this size at least, as 64K, 1M", 0},
    [OPT_MIN_NS] = {"min-ns", 0, CMD_ARG_REQUIRED, "TIME", "that lasted so long at least", 0},
    [OPT_FROM] = {"from", 0, CMD_ARG_REQUIRED, "TIME", "that began then or later", 0},
    [OPT_TO] = {"to", 0, CMD_ARG_REQUIRED, "TIME", "that began before then", 0},
    {0},
};

/* ---- values of options ----------------------------------------------------------------------- */

static bool take_format(const cmd *c, const char *value, request *r)
{
  static const char *const names[] = {
      [LISTING_TEXT] = "text", [LISTING_CSV] = "csv", [LISTING_JSONL] = "jsonl"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    r->list.format = (listing_format)i;
    if (!strcmp(value, names[i])) return true;
  }
  cmd_usage(c, "there is no format '%s': text, csv or jsonl", value);
  return false;
}

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

/* All of the text is a number of 64 bits, decimal or 0x. */
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

/* "1500", "1.5us", "2 s" in ns; false: none, or more than 292 years. */
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

static bool take_time(const cmd *c, size_t at, const char *value, listing_number *n)
{
  n->asked = read_time(value, &n->value);
  if (n->asked) return true;
  cmd_usage(c, "--%s takes a time as 1500, 30us, 200ms or 1.5s, not '%s'", trace_options[at].name,
            value);
  return false;
}

static bool take_bytes(const cmd *c, const char *value, listing_number *n)
{
  uint64_t bytes;
  n->asked = option_size(&bytes, "min-bytes", value, 1) == WEIR_OK && bytes <= INT64_MAX;
  n->value = n->asked ? (int64_t)bytes : 0;
  if (n->asked) return true;
  cmd_usage(c, "--min-bytes takes bytes with an optional K, M, G or T, not '%s'", value);
  return false;
}

static bool take_number(const cmd *c, size_t at, const char *value, long least, listing_number *n)
{
  long number;
  n->asked = cmd_number(value, least, INT32_MAX, &number);
  n->value = n->asked ? number : 0;
  if (n->asked) return true;
  cmd_usage(c, "--%s takes a number from %ld on, not '%s'", trace_options[at].name, least, value);
  return false;
}

static bool on_option(const cmd *c, size_t at, const char *value, void *context)
{
  request *r = context;
  listing_filter *f = &r->list.filter;
  switch (at) {
  case OPT_FORMAT:
    return take_format(c, value, r);
  case OPT_KIND:
    return take_kinds(c, value, r);
  case OPT_FUNCTION:
    f->functions = value;
    return true;
  case OPT_RANGE:
    f->ranges = value;
    return true;
  case OPT_DEVICE:
    return take_number(c, at, value, 0, &f->device);
  case OPT_STREAM:
    return take_stream(c, value, r);
  case OPT_THREAD:
    return take_number(c, at, value, 1, &f->thread);
  case OPT_PROCESS:
    return take_number(c, at, value, 1, &f->process);
  case OPT_MIN_BYTES:
    return take_bytes(c, value, &f->min_bytes);
  case OPT_MIN_NS:
    return take_time(c, at, value, &f->min_ns);
  case OPT_FROM:
    return take_time(c, at, value, &f->from);
  default:
    return take_time(c, at, value, &f->to);
  }
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
  if (output_is_same(r->output, trace)) return cmd_usage(c, "-o %s is the trace itself", r->output);
  return output_write(r->output, 0600, write_list, &l) ? cmd_failed() : 0;
}

int trace_main(const cmd *c, int argc, char **argv)
{
  request r = {.output = "-"};
  int at = cmd_parse(c, argc, argv, false, on_option, &r);
  if (at < 1) return at ? CMD_USAGE : 0;
  if (argc - at == 0) return cmd_usage(c, "which trace? FILE is missing");
  if (argc - at > 1) return cmd_usage(c, "weir trace takes one trace, not %d", argc - at);
  return write_trace(c, &r, argv[at]);
}
