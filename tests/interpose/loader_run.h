/* loader_run.h: runs victims with the preload library and without, and counts what they recorded.
 *
 * Every test has a scratch folder of its own, removed with all that is in it: `spools` there stands
 * for the folder that `weir run` makes. */
#ifndef TESTS_LOADER_RUN_H
#define TESTS_LOADER_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum preload { WITHOUT, WITH, BY_ITSELF /* no WEIR_SPOOL_DIR: as plain LD_PRELOAD */ };

typedef struct outcome {
  int status; /* exit status, or 100 + signal */
  pid_t pid;
  char *out, *err; /* what it wrote, NUL-terminated; freed by scratch_end() with the next run's */
  size_t out_bytes, err_bytes;
} outcome;

/* What a folder of spools holds. */
typedef struct tally {
  unsigned spools, closed;  /* and how many of them said good-bye */
  unsigned processes;       /* different pids */
  unsigned events;          /* of `api` */
  unsigned of[32];          /* the same a spool, in order of opening */
  unsigned other;           /* events of other functions */
  unsigned threads;         /* THREAD records */
  unsigned notes;           /* NOTE records */
  uint64_t dropped, damage; /* as header and reader have them */
  unsigned forks_begun, forks_done;
} tally;

void scratch_begin(void);
void scratch_end(void);

/* Absolute path of FILE in the scratch folder, or in $WEIR_BUILD (borrowed, a few at a time). */
const char *scratch(const char *file);
const char *built(const char *file);

/* Runs a program to its end. argv ends with NULL; env: "NAME=VALUE" more, NULL ends it; may be
 * NULL. */
outcome run(enum preload how, const char *const *argv, const char *const *env);

/* The folder's spools; `api` is an exported name, e.g. "cudaMalloc". */
tally count(const char *directory, const char *api);
tally count_spools(const char *api);

/* Removes a folder and what is in it. 0, or -1. */
int remove_folder(const char *path);

#endif
