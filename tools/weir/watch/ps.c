/* ps.c: weir ps: the processes that run under Weir on this machine, of this user.
 *
 * Each collector is asked; one that is stopped, or hangs, is named and left out after ASK_MS. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reports/base/escape.h"
#include "reports/base/units.h"
#include "tools/weir/base/commands.h"
#include "tools/weir/collect/control.h"
#include "tools/weir/watch/sample.h"

enum { ASK_MS = 2000 };

typedef struct listing {
  sample all;
  bool json;
} listing;

static bool ask_collector(void *context, const char *dir, const char *trace)
{
  static const char *const words[] = {"ps", NULL};
  listing *l = context;
  control_answer a = control_ask(dir, words, ASK_MS);
  if (a.collector && !a.reached)
    cmd_message("the collector of %s, pid %d, does not answer.", *trace ? trace : dir,
                (int)a.collector);
  if (a.good && l->json) {
    (void)fputs(a.text, stdout);
    free(a.text);
  } else if (!a.good || !sample_add_ps(&l->all, a.text)) {
    if (a.good) cmd_message("the collector of %s answers what is no list.", *trace ? trace : dir);
    if (!a.good) free(a.text);
  }
  return true;
}

static void print_process(const sample_process *p)
{
  char rank[24] = "-";
  const char *slash = strrchr(p->program, '/');
  if (p->n[SAMPLE_RANK])
    (void)snprintf(rank, sizeof rank, "%llu", (unsigned long long)p->n[SAMPLE_RANK] - 1);
  printf("%8llu %5s  %10s  %10s  %8s  ", (unsigned long long)p->n[SAMPLE_PID], rank,
         COUNT(p->n[SAMPLE_RATE]), BYTES(p->n[SAMPLE_SPOOL]), COUNT(p->n[SAMPLE_DROPPED]));
  (void)wr_put_clean_text(stdout, slash ? slash + 1 : p->program, false);
  (void)fputs("  ", stdout);
  (void)wr_put_clean_text(stdout, p->trace, false);
  (void)putchar('\n');
}

int ps_main(const cmd *c, int argc, char **argv)
{
  cmd_line line = {0};
  listing l = {0};
  int at = cmd_parse(c, argc, argv, &line);
  if (at < 1) return at ? CMD_USAGE : 0;
  if (at < argc) return cmd_usage(c, "weir ps takes no operand, not '%s'", argv[at]);
  l.json = line.value[OPT_WATCH_JSON].given;
  control_each(ask_collector, &l);
  if (l.all.count)
    printf("%8s %5s  %10s  %10s  %8s  %s\n", "PID", "RANK", "EVENTS/S", "SPOOL", "DROPPED",
           "PROGRAM  TRACE");
  for (unsigned i = 0; i < l.all.count; i++)
    print_process(&l.all.process[i]);
  if (!l.all.count && !l.json) puts("nothing runs under Weir on this machine, of yours");
  sample_clear(&l.all);
  return 0;
}
