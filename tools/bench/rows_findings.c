/* rows_findings.c: the saving that findings estimate, compared with what the same work takes
 * without the waste.
 *
 * A victim wastes so many rounds, and does the same work without the waste (waste_fixed.c), on the
 * software device with an H100's costs, bare: the difference is what the fix gains. The
 * finding's saving is of a run of the first under Weir. The three take turns, TURNS each, and
 * the least of each is compared: what else the machine does only adds to them. Links are slowed
 * where a copy of this machine's own would hide what they take. */
#include <math.h>
#include <stdio.h>

#include "tools/bench/bench.h"

enum { TURNS = 7 };

/* ns that the part takes which wastes, or does not. */
static bool time_bare(const row *r, const char *how, double *ns)
{
  const char *const argv[] = {"env",
                              bench_text("LD_LIBRARY_PATH=%s/lib/sim", bench_build),
                              "WEIR_SIM_CARD=h100",
                              bench_text("WEIR_SIM_LINK=%s", r->args[2]),
                              bench_text("%s/tests/findings/waster", bench_build),
                              r->args[0],
                              how,
                              r->args[1],
                              NULL};
  return bench_run(ns, NULL, NULL, argv);
}

/* Returns the saving that findings of this rule estimate, ns. */
static bool predict(const row *r, double *ns)
{
  const char *weir = bench_text("%s/bin/weir", bench_build),
             *trace = bench_text("%s/waste.db", bench_scratch);
  const char *const record[] = {"env",       bench_text("WEIR_SIM_LINK=%s", r->args[2]),
                                weir,        "run",
                                "--force",   "--mode=observe",
                                "--hash=on", "--sim=1,h100",
                                "-o",        trace,
                                "--",        bench_text("%s/tests/findings/waster", bench_build),
                                r->args[0],  "unfixed",
                                r->args[1],  NULL};
  const char *sum = "\"$0\" report findings --format csv --min-cost 0ns \"$1\" |"
                    " awk -F, -v id=\"$2\" '$1 == id { ns += $3 } END { printf \"%.0f\\n\", ns }'";
  const char *const report[] = {"sh", "-c", sum, weir, trace, r->args[0], NULL};
  double rounds;
  return bench_run(&rounds, NULL, NULL, record) && bench_run(ns, NULL, NULL, report);
}

/* How far from what is gained the prediction is, in %. */
static void measure_saving(measured *m, const row *r)
{
  double predicted = INFINITY, unfixed = INFINITY, fixed = INFINITY, says, with, without;
  for (int i = 0; i < TURNS; i++) {
    if (!predict(r, &says) || !time_bare(r, "unfixed", &with) || !time_bare(r, "fixed", &without)) {
      bench_give_up(m, "a run failed");
      return;
    }
    predicted = fmin(predicted, says);
    unfixed = fmin(unfixed, with);
    fixed = fmin(fixed, without);
  }
  double gained = unfixed - fixed;
  m->value = 100 * fabs(predicted / gained - 1);
  (void)snprintf(
      m->note, sizeof m->note,
      "predicted %.1f ms, gained %.1f ms of %.1f: x %.2f; %s rounds, the least of %d runs",
      predicted / 1e6, gained / 1e6, unfixed / 1e6, predicted / gained, r->args[1], TURNS);
}

#define SAVING(id, rounds, link)                                                                   \
  AT_MOST("saving-" id, "saving of " id, "% off", 20, measure_saving, NULL, id, rounds, link)
#define SLOW "h2d:25G:6us,d2h:25G:6us,pageable:2G"

const row rows_findings[] = {
    SAVING("duplicate-transfer", "100", SLOW),
    SAVING("round-trip", "100", SLOW),
    SAVING("pageable-async", "100", SLOW),
    SAVING("blocking-copy", "30", "h2d:5G:6us"),
    SAVING("tiny-copies", "4000", ""),
    SAVING("rows-one-by-one", "20", ""),
    SAVING("hidden-wait", "30", ""),
    SAVING("repeated-allocation", "100", ""),
    SAVING("pinned-churn", "60", ""),
    SAVING("constant-payload", "100", SLOW),
    SAVING("graph-made-anew", "600", ""),
    SAVING("pool-gives-back", "400", ""),
    SAVING("launch-storm", "300", ""),
    SAVING("handle-churn", "5000", ""),
    {0},
};
