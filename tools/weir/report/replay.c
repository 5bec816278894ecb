/* replay.c: weir replay: the command line around tools/replay. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/options.h"
#include "tools/replay/fit.h"
#include "tools/replay/read.h"
#include "tools/replay/replay.h"
#include "tools/weir/base/output_file.h"
#include "tools/weir/report/reading.h"

typedef struct request {
  const rp_policy *policy; /* NULL: all */
  rp_options options;
  bool json;
  const char *svg; /* NULL: none */
} request;

static bool take_policy(const cmd *c, const char *value, request *r)
{
  r->policy = rp_policy_find(value);
  if (r->policy || !strcmp(value, "all")) return true;
  char names[256] = "";
  size_t used = 0;
  for (const rp_policy *const *p = rp_policies; *p; p++)
    used += (size_t)snprintf(names + used, sizeof names - used, "%s, ", (*p)->name);
  cmd_usage(c, "there is no policy '%s': %sall", value, names);
  return false;
}

static bool take_size(const cmd *c, const char *name, const char *value, uint64_t *out)
{
  if (option_size(out, name, value, 1) == WEIR_OK && *out <= RP_UNLIMITED) return true;
  cmd_usage(c, "%s takes bytes from 1 to 1024T with an optional K, M, G or T, not '%s'", name,
            value);
  return false;
}

static bool take_setting(const cmd *c, const char *text, request *r)
{
  static const struct {
    const char *name;
    size_t offset;
  } sizes[] = {{"max_split_size", offsetof(rp_options, max_split_size)},
               {"initial_pool_size", offsetof(rp_options, initial_pool_size)},
               {"maximum_pool_size", offsetof(rp_options, maximum_pool_size)}};
  const char *equals = strchr(text, '='), *value = equals ? equals + 1 : "";
  size_t n = strcspn(text, "=");
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    if (strlen(sizes[i].name) == n && !strncmp(text, sizes[i].name, n))
      return take_size(c, sizes[i].name, value,
                       (uint64_t *)(void *)((char *)&r->options + sizes[i].offset));
  if (!strncmp(text, "garbage_collection_threshold=", n + 1)) {
    char *end;
    r->options.gc_threshold = strtod(value, &end);
    if (*value && !*end && r->options.gc_threshold > 0 && r->options.gc_threshold < 1) return true;
    cmd_usage(c, "garbage_collection_threshold takes a fraction between 0 and 1, not '%s'", value);
    return false;
  }
  cmd_usage(c,
            "there is no setting '%s': max_split_size, garbage_collection_threshold, "
            "initial_pool_size, maximum_pool_size",
            text);
  return false;
}

static bool read_replay_option(const cmd *c, cmd_option_id option, const char *value, void *context)
{
  request *r = context;
  switch (option) {
  case OPT_POLICY:
    return take_policy(c, value, r);
  case OPT_CAPACITY:
    return take_size(c, "--capacity", value, &r->options.capacity);
  default:
    return take_setting(c, value, r);
  }
}

/* What --svg draws. */
typedef struct drawn {
  const rp_ops *ops;
  const rp_result *results;
  size_t count;
} drawn;

static weir_status write_svg(FILE *out, const void *context)
{
  const drawn *d = context;
  return rp_show_svg(out, d->ops, d->results, d->count);
}

static weir_status show_results(const request *r, const rp_ops *ops, const rp_result *results,
                                const rp_fit *fits, size_t count)
{
  if (r->json) return rp_show_json(stdout, results, count);
  weir_status st = rp_show_text(stdout, results, count);
  return st || !fits ? st : rp_fit_show_text(stdout, ops, fits, count);
}

static weir_status replay_trace(const char *path, const request *r)
{
  rp_ops ops = {0};
  size_t count = 0, most = 0;
  while (rp_policies[most])
    most++;
  rp_result *results = cmd_alloc(most * sizeof *results);
  rp_fit *fits = r->options.capacity ? cmd_alloc(most * sizeof *fits) : NULL;
  ops.want_stacks = fits != NULL;
  weir_status st = rp_read(&ops, path);
  if (!st && !ops.count)
    st = weir_fail(WEIR_ENOENT, "%s holds no allocation of device memory", path);
  for (const rp_policy *const *p = rp_policies; !st && *p; p++)
    if (!r->policy || r->policy == *p) {
      if (fits) st = rp_fit_try(&fits[count], &ops, *p, &r->options);
      if (!st) st = rp_replay(&results[count], &ops, *p, &r->options);
      if (fits) results[count].fit = &fits[count];
      count++;
    }
  if (!st) st = show_results(r, &ops, results, fits, count);
  if (!st && r->svg) st = output_write(r->svg, 0666, write_svg, &(drawn){&ops, results, count});
  rp_ops_clear(&ops);
  free(fits);
  free(results);
  return st;
}

int replay_main(const cmd *c, int argc, char **argv)
{
  request r = {0};
  cmd_line line = {.read = read_replay_option, .context = &r};
  int at = cmd_parse(c, argc, argv, &line);
  if (at < 1) return at ? CMD_USAGE : 0;
  r.json = line.value[OPT_TEXT_OR_JSON].number;
  r.svg = line.value[OPT_SVG].text;
  if (argc - at == 0) return cmd_usage(c, "which trace? FILE is missing");
  if (argc - at > 1) return cmd_usage(c, "weir replay takes one file, not %d", argc - at);
  if (!reading_may_write(c, OPT_SVG, r.svg, argv[at])) return CMD_USAGE;
  if (replay_trace(argv[at], &r) == WEIR_OK) return 0;
  return cmd_failed();
}
