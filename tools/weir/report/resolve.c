/* resolve.c: weir resolve: the command line around reports/model/resolve.h. */
#include <signal.h>

#include "reports/model/resolve.h"
#include "tools/weir/base/figures.h"
#include "tools/weir/report/reading.h"

static volatile sig_atomic_t stopped; /* by this signal */

static void on_stop(int signal)
{
  stopped = signal;
}

/* Takes signals: what is begun is undone then, and no file is left next to the trace. A second
 * signal ends weir. */
static void take_signals(void)
{
  static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
  struct sigaction act = {.sa_handler = on_stop, .sa_flags = SA_RESETHAND}, old;
  for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
    if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
      (void)sigaction(signals[i], &act, NULL);
}

static void print_named(const char *trace, const resolve_counts *n)
{
  char named[32], all[32], files[32];
  if (!cmd_chatty()) return;
  cmd_message("%s: %s of %s addresses have names; see 'weir report %s'.", trace,
              cmd_grouped(named, n->named), cmd_grouped(all, n->addresses), trace);
  if (n->files_lacking)
    cmd_message("%s files were changed or removed since the run: the report names them.",
                cmd_grouped(files, n->files_lacking));
}

int resolve_main(const cmd *c, int argc, char **argv)
{
  resolve_counts counts;
  reading r = {0};
  cmd_line line = {0};
  int at = cmd_parse(c, argc, argv, &line);
  if (at < 1) return at ? CMD_USAGE : 0;
  if (argc - at == 0) return cmd_usage(c, "which trace? TRACE is missing");
  if (argc - at > 1) return cmd_usage(c, "weir resolve takes one trace, not %d", argc - at);
  if (!reading_take(c, &line, &r)) return CMD_USAGE;
  const resolve_settings o = {.stop = &stopped, .symbols = r.symbols};
  take_signals();
  weir_status st = resolve_trace(argv[at], &o, &counts);
  reading_clear(&r);
  if (st) return cmd_failed();
  figures_ask(&line);
  figures_keep(argv[at]);
  print_named(argv[at], &counts);
  return 0;
}
