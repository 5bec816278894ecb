/* given.c: see given.h. */
#include "reports/findings/given.h"
#include <stdlib.h>
#include <string.h>
#include "reports/base/util.h"

enum { MOST_MAPPED = 1 << 20, MOST_RANGES = 1 << 20 };

static const struct {
  const char *function;
  wr_giving giving;
} givings[] = {{"cuIpcGetMemHandle", WR_GIVES_BLOCK},
               {"cuMemPoolExportPointer", WR_GIVES_BLOCK},
               {"cuPointerSetAttribute", WR_GIVES_BLOCK},
               {"cuPointerGetAttribute", WR_GIVES_BLOCK},
               {"cuPointerGetAttributes", WR_GIVES_BLOCK},
               {"cuMemGetHandleForAddressRange", WR_GIVES_RANGE},
               {"cuMulticastBindAddr", WR_GIVES_BOUND},
               {"cuMulticastBindMem", WR_GIVES_BOUND_PHYSICAL},
               {"cuMemExportToShareableHandle", WR_GIVES_PHYSICAL},
               {"cuMemPoolExportToShareableHandle", WR_GIVES_POOL},
               {"cuMemPoolCreate", WR_NAMES_POOL},
               {"cuMemMap", WR_MAPS_PHYSICAL},
               {"cuMemUnmap", WR_UNMAPS_PHYSICAL}};

wr_giving wr_giving_of(const char *function)
{
  for (size_t i = 0; function && i < sizeof(givings) / sizeof(givings[0]); i++)
    if (!strcmp(function, givings[i].function)) return givings[i].giving;
  return WR_GIVES_NOTHING;
}

bool wr_given_put(wr_given *g, uint64_t begin, uint64_t bytes, int64_t alloc)
{
  if (g->ranges.count >= MOST_RANGES) {
    g->all = true;
    wr_ranges_clear(&g->ranges);
  }
  return g->all || wr_ranges_put(&g->ranges, begin, bytes, alloc);
}

bool wr_given_physical(wr_given *g, uint64_t physical)
{
  bool kept = !hash_map_put(&g->physical, physical, 1);
  for (size_t i = 0; kept && i < g->mapped_count; i++)
    if (g->mapped[i].physical == physical)
      kept = wr_given_put(g, g->mapped[i].begin, g->mapped[i].bytes, 0);
  return kept;
}

bool wr_given_map(wr_given *g, uint64_t physical, uint64_t begin, uint64_t bytes)
{
  if (hash_map_get(&g->physical, physical)) return wr_given_put(g, begin, bytes, 0);
  wr_ranges_drop(&g->ranges, begin, bytes);
  if (g->mapped_count == MOST_MAPPED) g->mapped_count = 0;
  if (!wr_grow(&g->mapped, &g->mapped_capacity, g->mapped_count + 1, sizeof(*g->mapped)))
    return false;
  g->mapped[g->mapped_count++] = (wr_mapping){physical, begin, bytes};
  return true;
}

void wr_given_free(wr_given *g)
{
  wr_ranges_clear(&g->ranges);
  hash_map_free(&g->pools);
  hash_map_free(&g->physical);
  free(g->mapped);
  *g = (wr_given){0};
}
