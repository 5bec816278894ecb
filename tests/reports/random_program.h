/* random_program.h: the records of a program that calls at random, for what is held against a trace.
 */
#ifndef WEIR_TESTS_REPORTS_RANDOM_PROGRAM_H
#define WEIR_TESTS_REPORTS_RANDOM_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

enum { RANDOM_THREADS = 8, RANDOM_EXECS = 4 };

#define OPENED (UINT64_C(1) << 62) /* synth.c's */

/* Calls at random, in order of their begin; what one thread allocates others free, some more than
 * once, some while it is handed on. */
typedef struct random_program {
  uint64_t at; /* ns */
  uint64_t events;
  uint32_t stacks[RANDOM_THREADS]; /* ids that the thread has recorded so far */
  uint32_t names[RANDOM_THREADS];
  uint64_t depth[RANDOM_THREADS]; /* ranges pushed */
  uint64_t started, modules, nodes;
  uint64_t first[RANDOM_EXECS + 1]; /* node of each executable graph, and of all after it */
  bool plain;                       /* no stack is recorded late, no module goes: for bounds */
} random_program;

/* One that has called nothing so far; the same for each seed. One at a time. */
random_program *new_program(int seed);

/* Its next call, or range, module or change of a graph, into the spool that is open (synth.h). */
void random_step(random_program *p);

#endif
