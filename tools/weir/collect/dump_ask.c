/* dump_ask.c: weir dump: has the collector of a program dump what it keeps, and waits for the trace.
 *
 * The collector answers a request with the trace's name, and imports it while it goes on; it is asked
 * again until that is done. A collector whose program ends meanwhile completes its dumps first, so
 * once it does not answer any more the trace is there, or never will be. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reports/import/trace_file.h"
#include "tools/weir/base/cmd.h"
#include "tools/weir/base/commands.h"
#include "tools/weir/collect/control.h"

enum { ANSWER_MS = 10000, PAUSE_MS = 20 };

static bool is_made(const char *trace)
{
  wr_trace_state state;
  return wr_trace_file_look(trace, &state) == WEIR_OK && state == WR_TRACE_KEPT;
}

/* Returns whether the trace is complete; if not, there was a message. */
static bool wait_for_trace(const char *dir, const char *trace)
{
  for (;;) {
    control_answer a = control_ask(dir, (const char *[]){"dumped", trace, NULL}, ANSWER_MS);
    const bool runs = a.good && !strcmp(a.text, "runs\n"), made = a.good && !runs;
    if (a.reached && !a.good) cmd_message("%.*s.", (int)strcspn(a.text, "\n"), a.text);
    free(a.text);
    if (!a.reached && !is_made(trace)) {
      cmd_message("the collector has ended, and has not written %s.", trace);
      return false;
    }
    if (!runs) return made || !a.reached;
    (void)poll(NULL, 0, PAUSE_MS);
  }
}

/* Returns the trace that is being written (new); NULL after a message. */
static char *ask_for_dump(const char *dir, const char *operand)
{
  control_answer a = control_ask(dir, (const char *[]){"dump", operand, NULL}, ANSWER_MS);
  a.text[strcspn(a.text, "\n")] = 0;
  if (a.good) return a.text;
  if (a.reached)
    cmd_message("%s.", a.text);
  else
    cmd_message("the collector of %s does not answer: it ended, or it is stopped.", operand);
  free(a.text);
  return NULL;
}

int dump_main(const cmd *c, int argc, char **argv)
{
  cmd_line line = {0};
  int at = cmd_parse(c, argc, argv, &line);
  if (at < 1) return at ? CMD_USAGE : 0;
  if (argc - at != 1) return cmd_usage(c, "which program? One PID is needed");
  char *dir = control_find(argv[at]), *trace = dir ? ask_for_dump(dir, argv[at]) : NULL;
  bool good = trace && wait_for_trace(dir, trace);
  if (good) (void)puts(trace);
  free(trace);
  free(dir);
  return good ? 0 : CMD_FAILED;
}
