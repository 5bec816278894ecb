/* bench.h: a row of `make bench`: one target of DESIGN section 8, measured.
 *
 * Every row compares within one run: the same work with and without Weir, in children that take
 * turns, and gives the median. Nothing here fails because a machine is slow: a row is met or not
 * met. */
#ifndef WEIR_TOOLS_BENCH_BENCH_H
#define WEIR_TOOLS_BENCH_BENCH_H

#include <stdbool.h>
#include <stddef.h>

typedef struct measured {
  double value;   /* in the row's unit */
  double without; /* the same work without Weir, 0: no such thing */
  double with;    /* and under Weir */
  bool failed;    /* could not be measured; `note` has the reason */
  bool absent;    /* this machine lacks what is measured; `note` names it */
  char note[200]; /* how it was measured, in a few words */
} measured;

typedef struct row row;
struct row {
  const char *name; /* for ROWS=... */
  const char *what; /* for the table */
  const char *unit;
  double target;
  bool at_least; /* target is a lower bound */
  void (*measure)(measured *m, const row *r);
  const char *note;    /* how it is measured; NULL: measure() sets it */
  const char *args[6]; /* for measure(), most often a child's arguments; NULL ends */
};

/* A row; the arguments come last, NULL where there are none. */
#define AT_MOST(name, what, unit, target, measure, note, ...)                                      \
  {                                                                                                \
    name, what, unit, target, false, measure, note,                                                \
    {                                                                                              \
      __VA_ARGS__                                                                                  \
    }                                                                                              \
  }
#define AT_LEAST(name, what, unit, target, measure, note, ...)                                     \
  {                                                                                                \
    name, what, unit, target, true, measure, note,                                                 \
    {                                                                                              \
      __VA_ARGS__                                                                                  \
    }                                                                                              \
  }

/* A file each; a row without name ends them. */
extern const row rows_calls[], rows_trace[], rows_report[], rows_findings[], rows_memory[],
    rows_tensor[], rows_gpu[], rows_watch[];

/* build/, absolute: where weir, the preload library and the software device are. */
extern const char *bench_build;
/* Rows were named: those that take long are measured too. */
extern bool bench_asked;
/* A folder for what rows write; removed at the end. */
extern const char *bench_scratch;

/* helpers (measure.c) */
double bench_median(double *values, size_t count);
double bench_now(void); /* seconds, CLOCK_MONOTONIC */
/* Runs a program to its end; NULL ends the arguments. Its one number on stdout goes to *number when
 * not NULL; *seconds and *kib (peak resident) may be NULL. False when it failed. */
bool bench_run(double *number, double *seconds, long *kib, const char *const *argv);
/* Processor seconds (user and system) of the last program that bench_run() ran to its end. */
extern double bench_cpu_seconds;
/* Which program failed, and how; empty after one that did not. */
extern char bench_failure[160];
/* The median of the numbers of `count` children becomes the row's value; false: one failed. */
bool bench_children(measured *m, size_t count, const char *const *argv);
/* The same of two programs in turns: each one's median, and as the value that of the quotients. */
bool bench_turns(measured *m, size_t count, const char *const *with, const char *const *without);
/* The row cannot be measured: why. */
void bench_give_up(measured *m, const char *why);
/* sprintf into one of a few static buffers. */
const char *bench_text(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
