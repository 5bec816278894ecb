/* start.c: weir start, weir stop (steer.h): a request to the collector of a program that runs. The verb
 * is the command's name. */
#include "tools/weir/base/commands.h"
#include "tools/weir/collect/control.h"

enum { ANSWER_MS = 10000 };

int start_main(const cmd *c, int argc, char **argv)
{
  cmd_line line = {0};
  int at = cmd_parse(c, argc, argv, &line);
  if (at < 1) return at ? CMD_USAGE : 0;
  if (argc - at != 1) return cmd_usage(c, "which program? One PID or TRACE is needed");
  const char *const words[] = {c->name, argv[at], NULL};
  return control_command(argv[at], words, ANSWER_MS);
}
