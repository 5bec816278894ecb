/* environment.h: what a program finds around it under weir run: our siblings, the spools' folder,
 * and the environment variables that name them. */
#ifndef WEIR_TOOLS_WEIR_BASE_ENVIRONMENT_H
#define WEIR_TOOLS_WEIR_BASE_ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "tools/weir/base/options.h"

typedef struct environment {
  bool sim;                       /* --sim */
  const char *sim_asked;          /* what --sim was given, or NULL */
  char sim_devices[4];            /* its N, or "" */
  const char *sim_card;           /* its CARD, or NULL */
  const char *mode;               /* --mode, or NULL */
  const char *reroute;            /* --reroute, or NULL */
  const char *stacks;             /* --stacks, or NULL */
  const char *device_times;       /* --device-times, or NULL */
  const char *access;             /* --access, or NULL */
  const char *hash;               /* --hash: auto, on, off or a size; NULL: the library's default */
  bool zero, poison;              /* --zero, --poison */
  bool redact;                    /* --redact */
  bool dormant;                   /* --dormant, --delay */
  const char *capture;            /* --capture, NULL: not given; borrowed */
  uint64_t delay_ns, duration_ns; /* --delay, --duration; 0: not given */
  const char *python;             /* --python, or NULL */
  const char *keep;               /* --keep, or NULL */
  const char *dump_at;            /* --dump-at, or NULL */
  uint64_t keep_bytes;            /* of it, or of WEIR_KEEP; 0: no recorder */
  const char *rules;              /* --cache-rules, or NULL */
  char *rules_path;               /* the same, absolute */
  const char *apply;              /* --apply, or NULL */
  char *apply_path;               /* the same, absolute; NULL: its fixes cannot be read */
  char *preload;                  /* our preload library */
  char *sim_lib;                  /* folder of the software device */
  char *sim_runtime;              /* its libcudart */
  char *sim_cupti;                /* its libcupti */
  char *spool_dir;
} environment;

/* The cmd_read of --sim: N, N,CARD, CARD, or NULL. `context`: the environment. */
bool environment_read_sim(const cmd *c, cmd_option_id option, const char *value, void *context);

/* Finds the preload library, and with `sim` the software device, relative to weir. Returns false
 * after a message. */
bool environment_siblings(environment *e);

/* Checks the rules, if there are any, and makes their path absolute. Returns false after a
 * message. */
bool environment_rules(environment *e);

/* Checks the file of fixes, if there is one, and makes its path absolute. Where it cannot be read the
 * program is to run as it is, after a message. */
void environment_fixes(environment *e);

/* Returns the version of the driver that programs find under this environment, as cuDriverGetVersion
 * has it; 0: there is none. */
int environment_driver_version(const environment *e);

/* Whether the environment asks for a trace without arguments (WEIR_REDACT). */
bool environment_redacts(void);

/* Lists where folders for spools are made, the best place first: in $WEIR_SPOOL_ROOT alone if it is
 * set, else in /dev/shm when there is room, in $TMPDIR, in /tmp. Returns how many `places` there
 * are (borrowed). */
enum { ENVIRONMENT_SPOOL_PLACES = 3 };
size_t environment_spool_places(const char *places[ENVIRONMENT_SPOOL_PLACES]);

/* Makes a new folder for spools, mode 0700. Returns false after a message. */
bool environment_spool_dir(environment *e);

/* Sets all variables: in the child, before exec. */
void environment_apply(const environment *e);

/* Sets the variables of a run without Weir: the software device or nothing. */
void environment_apply_bare(const environment *e);

/* Frees what the functions above have found and made. */
void environment_clear(environment *e);

/* Prints what the software device does not do, a name a line. Returns an exit status. */
int environment_list_unsupported(const environment *e);

#endif
