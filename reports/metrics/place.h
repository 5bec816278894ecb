/* place.h: which place in the program a stack of a tally's is of, in words.
 *
 * It is the innermost frame that is the program's own: of a Python program the innermost script
 * that no package manager has put there, else the innermost script; else the innermost frame of the
 * program's file, else of a library that is neither CUDA's nor Weir's nor the system's. "step (SCRIPT:7)",
 * "libmodel.so+0x1234". Names of functions are whoever's who gives some. */
#ifndef WEIR_REPORTS_METRICS_PLACE_H
#define WEIR_REPORTS_METRICS_PLACE_H

#include "reports/tally/state.h"

enum { WR_PLACE_BYTES = 160 };

/* Writes the name of what is at `offset` of a file, before the return address is one byte; returns
 * false where it has none. */
typedef bool (*wr_place_namer)(void *context, const char *path, uint64_t offset, char *out,
                               size_t bytes);

/* What finding places of one state needs. Zero-initialised but for `state`; ends with the next
 * change of the state. */
typedef struct wr_places {
  const wr_tally_state *state; /* borrowed */
  wr_place_namer name;         /* NULL: modules and offsets */
  void *name_context;
  const wr_tally_module **by_start; /* owned: those loaded, made at first need */
  uint32_t count;
  bool sorted;
} wr_places;

/* Writes the place of a stack, by its key, in valid UTF-8; "unknown" where the stack is not. */
void wr_place_of(wr_places *p, uint64_t stack, char out[WR_PLACE_BYTES]);

void wr_places_clear(wr_places *p);

#endif
