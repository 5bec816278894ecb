/* scheduler.h: runs a program under Weir, and Weir's collector, one system call at a time, so that
 * a test says which of the two goes on when. */
#ifndef WEIR_TESTS_SCHEDULER_H
#define WEIR_TESTS_SCHEDULER_H

#include <stdbool.h>
#include <stdint.h>

/* A step is a system call by which a process can meet another: on a file of the spools' folder, or
 * about a process. It is counted, and may be stopped at, before it is made. */
typedef struct schedule {
  const char *steps;     /* of the walker (walker.c) */
  bool preloaded;        /* without `weir run` */
  bool turns_before;     /* until then the collector takes a turn after each step of the program;
                            otherwise none */
  unsigned of;           /* whose steps count: the program's n-th process, from 1; 0: all */
  unsigned program_at;   /* the program stops before this step, from 1 */
  unsigned collector_at; /* then the collector before this one, counted from there; 0: at once.
                            Three turns are tried. */
  unsigned program_to;   /* then the program goes on to this step, counted from there; 0: it stays,
                            UNTIL_END: to its end */
  enum { GO_ON, KILL_ALL, KILL_ONE } then; /* and after that all go on; ONE: who made the step */
  bool turns_after;                        /* one step of the program, one turn of the collector */
} schedule;

#define UNTIL_END (~0u)

typedef struct walked {
  bool reached_program;   /* program_at was reached */
  bool reached_collector; /* and collector_at */
  bool reached_to;        /* and program_to */
  unsigned steps;         /* the program made before it was stopped first */
  uint64_t begun, done;   /* calls */
  int status;             /* of the first process */
  char trail[160];        /* the steps that were stopped at, for messages */
} walked;

/* In the current folder: traces are t.db, t-2.db, ..., the spools' folders are in ./place. False:
 * this machine lets nobody be traced. */
bool scheduler_run(const schedule *plan, walked *out);

#endif
