/* folder.h: where a process's spool lies, and its trace will. Chosen once, inherited by children;
 * under the lock of process.c. */
#ifndef WEIR_INTERPOSE_FOLDER_H
#define WEIR_INTERPOSE_FOLDER_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include "core/base/status.h"

typedef struct run_folder {
  char path[PATH_MAX];   /* of spools; "": none */
  char output[PATH_MAX]; /* trace, when automatic */
  char home[PATH_MAX];   /* folder of our own file; "": not known */
  uint64_t keep;         /* bytes that a recorder keeps of each process; 0: there is none */
  bool automatic;        /* without `weir run`: folder and collector are made here */
} run_folder;

extern run_folder process_folder;

/* Takes the folder from the environment, or chooses one. False, and reported: nothing is
 * recorded. */
bool process_folder_choose(void);

/* Opens the spool there; without `weir run`, makes the folder and starts its collector first. */
weir_status process_folder_open(weir_status (*open_spool)(void));

/* A folder of the name that `weir run` gives: that it is gone means that the run this process came
 * from is over, which is no mistake of anybody's. */
bool process_folder_is_of_run(void);

#endif
