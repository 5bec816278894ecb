/* compare.c: weir compare: a program run bare and in each mode in turn (rounds.h), and what that
 * changed (compare_print.c). */
#include "tools/weir/prove/compare.h"

#include "tools/weir/base/commands.h"

static const rounds_way modes[COMPARE_MODES] = {{.name = "bare"},
                                                {.name = "observe", .mode = "observe"},
                                                {.name = "strict", .mode = "strict"},
                                                {.name = "relaxed", .mode = "relaxed"}};

static int print_comparison(const comparison *compared, bool json)
{
  if (!json) {
    compare_print_text(compared);
  } else if (!compare_print_json(compared)) {
    cmd_message("cannot print the comparison.");
    return CMD_FAILED;
  }
  return compare_good(compared) ? 0 : CMD_FAILED;
}

int compare_main(const cmd *c, int argc, char **argv)
{
  comparison w = {.command = "compare", .ways = modes, .count = COMPARE_MODES};
  cmd_line line = {.read = environment_read_sim, .context = &w.sim, .stops = true};
  int at = cmd_parse(c, argc, argv, &line);
  if (at < 1) return at ? CMD_USAGE : 0;
  w.runs = (unsigned)cmd_number_of(&line, OPT_RUNS, 3);
  w.argv = argv + at; /* NULL-terminated, as argv is */
  if (!argv[at]) return cmd_usage(c, "which program? PROGRAM is missing");
  int status = rounds_begin(&w) ? rounds_run(&w) : CMD_FAILED;
  if (!status) status = print_comparison(&w, line.value[OPT_TEXT_OR_JSON].number);
  rounds_end(&w);
  return status;
}
