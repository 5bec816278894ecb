/* spots.h: the places of a program where fixes can be done, out of a trace: which frames they are,
 * what they are called, and what the calls made there took.
 *
 * Words: a spot: a stack up to its site, the innermost frame of the program's own, as build-ids and
 * offsets, which are the same in each run; steps: what lies between the calls made at a place, from
 * the first to the last, where the program makes them again and again. */
#ifndef WEIR_TOOLS_WEIR_PROVE_SPOTS_H
#define WEIR_TOOLS_WEIR_PROVE_SPOTS_H

#include <stdbool.h>
#include <stdint.h>
#include "core/base/rules.h"
#include "reports/import/schema.h"

typedef struct spot {
  int64_t stack;         /* row */
  unsigned kinds;        /* of the calls made there: 1 << event kind */
  bool takes_from_pool;  /* a call of it allocates in stream order */
  char *api;             /* owned: the function of CUDA's that is called, of several the first */
  char *function, *file; /* owned: of the site; file NULL: not known */
  char *module;          /* owned: file of the first frame, without its folder */
  int line;
  unsigned frames; /* 0: too many, or one that no build-id is known of */
  rule_frame frame[WEIR_RULE_FRAMES];
} spot;

typedef struct spot_pair { /* a block is allocated at one and freed at the other */
  int64_t alloc, free;     /* stacks */
} spot_pair;

typedef struct spots {
  spot *spot;      /* owned */
  spot_pair *pair; /* owned */
  unsigned count, room, pairs, pair_room;
  char *card; /* owned: the name of the first device; NULL: none was used */
} spots;

/* Loads the spots of a trace. Returns false after a message; `s` is to be freed in any case. */
bool spots_load(spots *s, const wr_db *db);
void spots_free(spots *s);

enum { SPOT_RANGE_BYTES = 64 };

/* What the calls at some places were in one run. */
typedef struct spot_figures {
  uint64_t calls, ns; /* of them all */
  uint64_t applied;   /* of them, those that Weir did otherwise; and pools, peers */
  uint64_t steps_ns;  /* at the pace of their quickest quarter; 0: the calls do not repeat */
  uint64_t least_ns;  /* of the steps: what the calls between them took by themselves */
  char range
      [SPOT_RANGE_BYTES]; /* a step is a range (NVTX) of this text, cut; "": from call to call */
} spot_figures;

typedef struct spot_place {
  unsigned frames;
  rule_frame frame[WEIR_RULE_FRAMES];
} spot_place;

/* Measures each of `count` sets of places in a trace (sets[i] has lengths[i] of them), and how long
 * the run took. */
bool spots_measure(spot_figures *out, uint64_t *run_ns, const char *trace,
                   const spot_place *const *sets, const unsigned *lengths, unsigned count);

/* Adds the kinds (1 << event kind) of the calls at some places that Weir did otherwise. */
bool spots_done(unsigned *kinds, const char *trace, const spot_place *places, unsigned count);

#endif
