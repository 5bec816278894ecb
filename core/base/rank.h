/* rank.h: the number of this process among those that were launched together. */
#ifndef WEIR_BASE_RANK_H
#define WEIR_BASE_RANK_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* Launchers of MPI programs set a variable of their own: Open MPI, PMIx, PMI, MVAPICH, jsrun;
 * torchrun's is a common word, and Slurm's may be of a launcher it started, so they come last.
 * WEIR_RANK is for workers that have no rank of their own, as those of Dask and Ray. */
#define RANK_VARIABLES                                                                             \
  "WEIR_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK",             \
      "JSM_NAMESPACE_RANK", "RANK", "SLURM_PROCID"

/* 0: there is none, else the rank and 1. */
static inline uint32_t launched_rank(void)
{
  static const char *const names[] = {RANK_VARIABLES};
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
    const char *text = getenv(names[i]);
    uint32_t rank = 0, digits = 0;
    for (; text && *text >= '0' && *text <= '9' && digits < 8; text++, digits++)
      rank = rank * 10 + (uint32_t)(*text - '0');
    if (digits && !*text) return rank + 1;
  }
  return 0;
}

#endif
