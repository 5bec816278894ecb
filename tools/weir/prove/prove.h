/* prove.h: what the parts of weir prove share: the runs (prove.c), which fixes are tried at which
 * places (candidates.c), what came of them (judge.c), what is printed (prove_print.c) and written
 * (fixes_file.c). */
#ifndef WEIR_TOOLS_WEIR_PROVE_PROVE_H
#define WEIR_TOOLS_WEIR_PROVE_PROVE_H

#include "tools/weir/prove/interval.h"
#include "tools/weir/prove/rounds.h"
#include "tools/weir/prove/spots.h"

enum {
  PROVE_LINES = 16, /* of a fix, at most */
  PROVE_WAYS = 8    /* fixes that are tried, at most */
};

typedef enum prove_verdict {
  PROVE_GAIN,     /* proven: the gain's interval is above 0 */
  PROVE_NO_GAIN,  /* the interval has 0 in it, or there is none */
  PROVE_LOSS,     /* it takes longer with the fix */
  PROVE_ODD,      /* it gains more than the calls took that it can change */
  PROVE_DIFFERS,  /* stdout or the exit status is another with the fix */
  PROVE_UNUSED,   /* the fix found nothing to do in the runs */
  PROVE_CANNOT,   /* Weir cannot remove it */
  PROVE_LEFT,     /* others matter more, and there were enough of them */
  PROVE_NONE,     /* asked for by name, and not found */
  PROVE_UNJUDGED, /* asked for by name, and the trace could not be judged by it */
} prove_verdict;

typedef struct prove_line { /* of a file of fixes */
  unsigned action;          /* a bit of reroutes.h */
  const spot *at;
  unsigned done; /* kinds of the calls there that Weir did otherwise in the runs with the fix */
} prove_line;

typedef struct proof { /* of one rule at one place */
  const wr_rule *rule;
  const wr_finding *first;     /* the one that matters most; NULL: there is none */
  const wr_finding_site *site; /* NULL: none is known */
  uint64_t estimate_ns;        /* saving that the findings estimate, of a fix in the source */
  uint64_t count;
  const char *why_not; /* CANNOT: why, in words */
  prove_line line[PROVE_LINES];
  unsigned lines;
  spot_place *watched; /* owned: where the calls are made that the fix changes */
  unsigned watched_count, watched_room;
  unsigned way;               /* of the rounds; 0: none */
  unsigned pairs;             /* of runs */
  spot_figures before, after; /* of the median runs without and with it */
  interval calls, steps, run; /* gains, ns of host time; steps unknown: there are none */
  bool decided;
  prove_verdict verdict;
} proof;

typedef struct proving {
  rounds r;
  wr_findings findings;
  spots places;
  proof *proofs; /* owned; those that matter most first */
  unsigned count;
  proof all;                   /* of all that were proven, together; way 0: there were not two */
  unsigned from;               /* first round of these */
  spot_figures *figures;       /* owned; [(way * runs + run) * count + proof] */
  char *files[PROVE_WAYS + 2]; /* owned; of each way: its file of fixes */
  rounds_way ways[PROVE_WAYS + 2];
  bool reached;       /* the rounds were run to their end */
  unsigned gone;      /* of --apply: fixes of which the recorded run has no place */
  unsigned gone_line; /* of the first of them */
  int driver;         /* as cuDriverGetVersion() has it; 0: not known */
  bool simulated;     /* the device is none */
} proving;

/* Chooses the fix of a proof, its places and what is watched, or notes why there is none. */
void candidate_make(const proving *p, proof *x);

/* Returns the gain that decides: of the steps, or, where there are none, of the calls. */
const interval *proof_gain(const proof *x);

/* Lists the place of a line, and those of the frees of what is allocated there. Returns their
 * number. */
unsigned proof_line_places(const proving *p, const prove_line *l, spot_place *out, unsigned room);

/* Whether the action was done at the place in the runs with the fix, as far as can be seen. */
bool proof_line_is_done(const prove_line *l);

/* Judges a proof by its runs so far. */
void proof_judge(proving *p, proof *x);

/* Returns the time of the median run of the program as it is, in ns. */
uint64_t prove_unfixed_ns(const proving *p);

/* Writes a file with the fixes of some proofs (NULL ends the list); `proven`: with what came of
 * them. Returns false after a message. */
bool fixes_write(const char *path, const proving *p, const proof *const *list, bool proven);

/* Writes a word without the blanks that files of fixes cannot have. New. */
char *fixes_word(const char *text);

const char *prove_action_word(unsigned action);

void prove_print_text(const proving *p);
bool prove_print_json(const proving *p); /* false: out of memory, or stdout is full */

#endif
