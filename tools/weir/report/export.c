/* export.c: weir export: the command line around tools/replay/export.h, reports/export and the
 * list of reports/listing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reports/export/formats.h"
#include "reports/listing/listing.h"
#include "tools/replay/export.h"
#include "tools/replay/read.h"
#include "tools/weir/base/output_file.h"
#include "tools/weir/report/reading.h"

/* A format of all of a trace; one of operations is in rp_formats. */
typedef struct trace_format {
  const char *name;
  weir_status (*write)(FILE *out, const char *trace);
  weir_status (*make)(const char *trace, const char *output); /* or: not as a stream */
} trace_format;

typedef struct request {
  const trace_format *whole; /* one of both, */
  const rp_format *format;   /* the other NULL */
  const char *output;
  profile_weight weight; /* of folded */
} request;

static weir_status write_calls(FILE *out, const char *trace)
{
  return listing_write(out, trace, &(listing_settings){.format = LISTING_CSV});
}

static const trace_format trace_formats[] = {{"folded", NULL, NULL}, /* by a weight */
                                             {"perfetto", perfetto_export, NULL},
                                             {"chrome", chrome_export, NULL},
                                             {"speedscope", speedscope_export, NULL},
                                             {"pprof", pprof_export, NULL},
                                             {"firefox", firefox_export, NULL},
                                             {"csv", write_calls, NULL},
                                             {"nsys", NULL, nsys_export},
                                             {0}};

/* Sets one of the two. Each name of the option's words is in one of the tables. */
static void find_format(request *r, const char *name)
{
  for (const trace_format *f = trace_formats; f->name; f++)
    if (!strcmp(f->name, name)) r->whole = f;
  for (const rp_format *f = rp_formats; f->name; f++)
    if (!strcmp(f->name, name)) r->format = f;
}

/* One file of operations. */
typedef struct written {
  const request *request;
  const rp_ops *ops;
  uint16_t heap;
} written;

static weir_status write_operations(FILE *out, const void *context)
{
  const written *w = context;
  return w->request->format->write(out, w->ops, w->heap);
}

static weir_status write_file(const char *output, const request *r, const rp_ops *ops,
                              uint16_t heap)
{
  return output_write(output, 0666, write_operations, &(written){r, ops, heap});
}

/* Returns the name of a device's log (new), as RMM makes them: "log.dev0.csv". Of several processes
 * (which are in the key's high part) it has the process too. */
static char *name_of_heap(const request *r, uint64_t key, bool processes)
{
  const char *slash = strrchr(r->output, '/'), *base = slash ? slash + 1 : r->output;
  const char *dot = strrchr(base, '.');
  int stem = dot && dot != base ? (int)(dot - r->output) : (int)strlen(r->output);
  char process[32] = "";
  if (processes) (void)snprintf(process, sizeof process, ".process%u", (unsigned)(key >> 16));
  return cmd_format("%.*s%s.dev%u%s", stem, r->output, process, (unsigned)(key & 0xffff),
                    r->output + stem);
}

/* Writes one file or, in a format that knows one device, a file each, whose names are printed. */
static weir_status write_files(const request *r, const rp_ops *ops)
{
  bool processes = false;
  weir_status st = WEIR_OK;
  if (!r->format->per_heap || ops->heaps < 2) return write_file(r->output, r, ops, 0);
  if (output_is_stdout(r->output))
    return weir_fail(WEIR_ENOTSUP, "%s is a file for each of %u devices: stdout cannot hold them",
                     r->format->name, (unsigned)ops->heaps);
  for (uint32_t i = 1; i < ops->heaps; i++)
    processes |= rp_ops_heap_key(ops, (uint16_t)i) >> 16 != rp_ops_heap_key(ops, 0) >> 16;
  for (uint32_t i = 0; i < ops->heaps && !st; i++) {
    char *output = name_of_heap(r, rp_ops_heap_key(ops, (uint16_t)i), processes);
    st = write_file(output, r, ops, (uint16_t)i);
    if (!st) (void)puts(output);
    free(output);
  }
  return st;
}

static weir_status export_operations(const request *r, const char *input)
{
  rp_ops ops = {.want_stacks = !r->format->per_heap};
  weir_status st = rp_read(&ops, input);
  if (!st) st = write_files(r, &ops);
  rp_ops_clear(&ops);
  return st;
}

/* An export of all of a trace. */
typedef struct whole {
  const request *request;
  const char *trace;
} whole;

static weir_status write_whole(FILE *out, const void *context)
{
  const whole *w = context;
  const request *r = w->request;
  return r->whole->write ? r->whole->write(out, w->trace) : folded_export(out, w->trace, r->weight);
}

static weir_status make_whole(const char *file, const void *context)
{
  const whole *w = context;
  return w->request->whole->make(w->trace, file);
}

static weir_status export_whole(const request *r, const char *input)
{
  const whole w = {r, input};
  return r->whole->make ? output_make(r->output, 0600, make_whole, &w)
                        : output_write(r->output, 0600, write_whole, &w);
}

int export_main(const cmd *c, int argc, char **argv)
{
  request r = {0};
  cmd_line line = {0};
  int at = cmd_parse(c, argc, argv, &line);
  if (at < 1) return at ? CMD_USAGE : 0;
  r.output = line.value[OPT_EXPORT_OUTPUT].text;
  r.weight = (profile_weight)cmd_number_of(&line, OPT_WEIGHT, PROFILE_HOST_TIME);
  if (argc - at == 0) return cmd_usage(c, "which trace? FILE is missing");
  if (argc - at > 1) return cmd_usage(c, "weir export takes one file, not %d", argc - at);
  if (line.value[OPT_EXPORT_FORMAT].given) find_format(&r, line.value[OPT_EXPORT_FORMAT].text);
  if (!r.format && !r.whole) return cmd_usage(c, "in which format? --format FORMAT is missing");
  if (!r.output) return cmd_usage(c, "where to? -o FILE is missing");
  if (line.value[OPT_WEIGHT].given && r.whole != trace_formats)
    return cmd_usage(c, "--weight is of the format folded");
  if (!reading_may_write(c, OPT_EXPORT_OUTPUT, r.output, argv[at])) return CMD_USAGE;
  weir_status st = r.whole ? export_whole(&r, argv[at]) : export_operations(&r, argv[at]);
  if (!st) return 0;
  return cmd_failed();
}
