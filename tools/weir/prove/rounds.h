/* rounds.h: a program run in several ways in turn, each as often as the others: the engine of weir
 * compare, whose ways are the modes, and of weir prove, whose ways are the program as it is and
 * with one fix each.
 *
 * Words: a way: how the program is run; a round: one run of each way, in their order. */
#ifndef WEIR_TOOLS_WEIR_PROVE_ROUNDS_H
#define WEIR_TOOLS_WEIR_PROVE_ROUNDS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "reports/write/report.h"
#include "tools/weir/base/environment.h"

enum { ROUNDS_MOST = 1000 };

typedef struct rounds_way {
  const char *name;  /* borrowed; for people */
  const char *mode;  /* of weir run; NULL: without Weir. Borrowed */
  const char *apply; /* of weir run --apply; then there is no mode's option. Borrowed */
} rounds_way;

/* Where the stdout of one run first differs from that of the first run. */
typedef struct difference {
  bool there;
  unsigned mode, run;           /* of the run that differs: its way; runs from 1 */
  bool status;                  /* not the output, but how it ended */
  int expected_end, found_end;  /* wait statuses */
  uint64_t offset, line;        /* bytes from 0; lines from 1 */
  char expected[80], found[80]; /* that line, printable; "" at an end */
} difference;

typedef struct rounds {
  const char *command;    /* of weir's, for names of folders; borrowed */
  char **argv;            /* borrowed; the program and its arguments */
  environment sim;        /* the software device, or nothing */
  const rounds_way *ways; /* borrowed; the first is what the others must equal */
  unsigned count, runs;   /* ways; rounds, at most */
  /* Is shown each run that left a trace, while that is there; false: ends the rounds. NULL: none. */
  bool (*look)(void *context, unsigned way, unsigned run, const char *trace);
  void *context; /* of look */
  bool light;    /* look takes what it needs of a trace: the figures have what it writes there */
  bool steady;   /* no round is worth it once the program's own output varies */
  /* what comes of it: */
  run_figures *figures; /* [count * runs], by way; owned */
  int end;              /* wait status of the first run */
  double others;        /* share of the processors' time that others had meanwhile; < 0: unknown */
  difference varies;    /* of another run of the first way: the program's output is not constant */
  difference differs;   /* of another way's */
  difference *of;       /* [count]: of each way's; owned */
  /* within: */
  char *folder;                 /* of traces and outputs; owned */
  bool begun, recording;        /* there was a run; all keep stacks */
  double load_all, load_others; /* s of all processors, and of others', at the start */
  uint64_t drawn;               /* what the last order was drawn from */
} rounds;

/* Begins rounds, once command, argv and sim are set. Returns false after a message. rounds_end() is
 * to follow. */
bool rounds_begin(rounds *w);

/* Runs the first way once, with stacks: all others are compared with that run. *trace: its path
 * (new), there until the end. Returns 0, or the status to end with, after a message. */
int rounds_record(rounds *w, char **trace);

/* Runs all rounds. Returns 0, or the status to end with, after a message. */
int rounds_run(rounds *w);

/* Begins the same for rounds that are run one at a time; rounds_round() runs the ways that are
 * `wanted` in an order drawn at random, as round `run`; rounds_over() ends them. A message comes
 * before a status other than 0. */
void rounds_start(rounds *w);
int rounds_round(rounds *w, unsigned run, const bool *wanted);
void rounds_over(rounds *w);

/* Returns a file in the folder of the rounds (new). */
char *rounds_file(const rounds *w, const char *name);

/* Removes what was made; dies of the signal that stopped the rounds, if one did. */
void rounds_end(rounds *w);

/* Returns "exit status 1" or "signal 11 (Segmentation fault)". New. */
void run_end_words(int status, char out[64]);

/* Returns a line of a difference; "(nothing)" at the end of an output. */
const char *run_line_words(const char *line);

/* Returns a difference as JSON (new), null where there is none. mode: of the run, NULL: left
 * out. */
json_t *run_difference_json(const difference *d, const char *mode);

#endif
