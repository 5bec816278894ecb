/* rows_watch.c: what it costs to look at a program while it runs. */
#include <stdio.h>

#include "tools/bench/bench.h"
#include "tools/bench/sized.h"

enum { TURNS = 9 };

static void measure_scrape(measured *m, const row *r)
{
  const char *folder = bench_text("%s/scraped", bench_scratch);
  const char *const argv[] = {
      "sh",   "-c", "exec \"$0\" \"$1\"/*.spool", bench_text("%s/bench/scrape", bench_build),
      folder, NULL};
  m->failed = !sized_spools(folder, 1, MIX_HALF) || !bench_children(m, TURNS, argv);
  (void)r;
  (void)bench_run(NULL, NULL, NULL, (const char *[]){"rm", "-rf", folder, NULL});
  if (m->failed) bench_give_up(m, "the spool could not be written, or not scraped");
}

/* Seconds that a run of a training loop takes: alone, and with weir top next to it. */
static void measure_top(measured *m, const row *r)
{
  static const char script[] =
      "trap 'rm -f \"$1\"' EXIT; begun=$(date +%s%N)\n"
      "\"$0/bin/weir\" run --sim --force --figures=later -o \"$1\" -- \"$0/examples/train\" 600"
      " >/dev/null & run=$!\n"
      "if [ \"$2\" = top ]; then"
      " while kill -0 $run 2>/dev/null && ! \"$0/bin/weir\" top --json \"$1\" >/dev/null 2>&1; do "
      ":;"
      " done; fi\n"
      "wait $run && echo $((($(date +%s%N) - begun) / 1000000))\n";
  const char *trace = bench_text("%s/top.db", bench_scratch);
  const char *const with[] = {"sh", "-c", script, bench_build, trace, "top", NULL};
  const char *const without[] = {"sh", "-c", script, bench_build, trace, "alone", NULL};
  (void)r;
  if (!bench_turns(m, TURNS, with, without)) bench_give_up(m, "the run failed");
}

const row rows_watch[] = {
    AT_MOST("scrape", "scrape of 500 series, 8 processes", "ms", 2, measure_scrape,
            "of a processor; figures of 8 tallies of a million events each, one page", NULL),
    AT_MOST("top", "run with weir top / without", "ratio", 1.005, measure_top,
            "a training loop, ms of wall; top asks once a second, from its first second on", NULL),
    {0},
};
