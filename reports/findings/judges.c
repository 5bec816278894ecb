/* judges.c: the judges by name (judge.h). */
#include <string.h>
#include "reports/findings/judge.h"

static const struct {
  const char *name;
  wr_judge judge;
} judges[] = {{"slow-link", wr_judge_slow_link},
              {"blocking-copy", wr_judge_blocking_copy},
              {"rows-one-by-one", wr_judge_rows_one_by_one},
              {"through-the-host", wr_judge_through_the_host},
              {"tiny-copies", wr_judge_tiny_copies},
              {"dead-write", wr_judge_dead_write},
              {"hidden-wait", wr_judge_hidden_wait},
              {"idle-object", wr_judge_idle_object},
              {"number-in-each-step", wr_judge_number_in_each_step},
              {"polled-with-pauses", wr_judge_polled_with_pauses},
              {"premature-wait", wr_judge_premature_wait},
              {"redundant-wait", wr_judge_redundant_wait},
              {"wait-before-copy", wr_judge_wait_before_copy},
              {"wide-wait", wr_judge_wide_wait},
              {"redundant-object", wr_judge_redundant_object},
              {"early-allocation", wr_judge_early_allocation},
              {"late-free", wr_judge_late_free},
              {"repeated-allocation", wr_judge_repeated_allocation},
              {"resized-allocation", wr_judge_resized_allocation},
              {"temporary-allocation", wr_judge_temporary_allocation},
              {"duplicate-transfer", wr_judge_duplicate_transfer},
              {"round-trip", wr_judge_round_trip},
              {"leak", wr_judge_leak},
              {"unused-allocation", wr_judge_unused_allocation},
              {"unused-transfer", wr_judge_unused_transfer}};

wr_judge wr_judge_of(const char *name)
{
  for (size_t i = 0; i < sizeof(judges) / sizeof(judges[0]); i++)
    if (!strcmp(judges[i].name, name)) return judges[i].judge;
  return NULL;
}
