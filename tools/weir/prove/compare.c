/* compare.c: weir compare: a program run bare and in each mode in turn (rounds.h), and what that
 * changed (compare_say.c). */
#include "tools/weir/prove/compare.h"

#include "tools/weir/base/commands.h"

enum { OPT_RUNS, OPT_FORMAT, OPT_SIM };

const cmd_option compare_options[] = {
    [OPT_RUNS] = {"runs", 'n', CMD_ARG_REQUIRED, "N", "runs in each mode (default 3)", 0},
    [OPT_FORMAT] = {"format", 'f', CMD_ARG_REQUIRED, "FORMAT", "text (default) or json", 0},
    [OPT_SIM] = {"sim", 0, CMD_ARG_OPTIONAL, "N[,CARD]",
                 "run on N software devices (default 1) instead of GPUs; CARD: with the costs of "
                 "an a100 or h100",
                 0},
    {0},
};

static const rounds_way modes[COMPARE_MODES] = {{.name = "bare"},
                                                {.name = "observe", .mode = "observe"},
                                                {.name = "strict", .mode = "strict"},
                                                {.name = "relaxed", .mode = "relaxed"}};

typedef struct work {
  comparison c;
  bool json;
} work;

static bool on_option(const cmd *c, size_t at, const char *value, void *context)
{
  work *w = context;
  long n = 0;
  switch (at) {
  case OPT_RUNS:
    if (!cmd_number(value, 1, ROUNDS_MOST, &n)) {
      cmd_usage(c, "--runs takes a number from 1 to %d, not '%s'", ROUNDS_MOST, value);
      return false;
    }
    w->c.runs = (unsigned)n;
    return true;
  case OPT_FORMAT:
    return cmd_take_format(c, value, &w->json);
  default:
    return environment_take_sim(c, &w->c.sim, value);
  }
}

static int print_comparison(const work *w)
{
  if (!w->json) {
    compare_print_text(&w->c);
  } else if (!compare_print_json(&w->c)) {
    cmd_say("cannot print the comparison.");
    return CMD_FAILED;
  }
  return compare_good(&w->c) ? 0 : CMD_FAILED;
}

int compare_main(const cmd *c, int argc, char **argv)
{
  work w = {.c = {.command = "compare", .ways = modes, .count = COMPARE_MODES, .runs = 3}};
  int at = cmd_parse(c, argc, argv, true, on_option, &w);
  if (at < 1) return at ? CMD_USAGE : 0;
  w.c.argv = argv + at; /* NULL-terminated, as argv is */
  if (!argv[at]) return cmd_usage(c, "which program? PROGRAM is missing");
  int status = rounds_begin(&w.c) ? rounds_run(&w.c) : CMD_FAILED;
  if (!status) status = print_comparison(&w);
  rounds_end(&w.c);
  return status;
}
