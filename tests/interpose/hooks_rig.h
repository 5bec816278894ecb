/* hooks_rig.h: the hooks linked into a test, over fake CUDA libraries, recording into a spool that
 * the test reads back. Stands in for the loader's side of the preload library. */
#ifndef WEIR_TESTS_HOOKS_RIG_H
#define WEIR_TESTS_HOOKS_RIG_H

#include <check.h>
#include <stdbool.h>
#include "interpose/process/thread.h"
#include "interpose/table/rows.h"
#include "tests/interpose/fake_cuda.h"

/* One test's fixture: a new spool, fakes as new. */
void rig_setup(void);
void rig_teardown(void);

extern fake_state *rig_fake[WEIR_BANKS]; /* a fake's state, by bank */

/* The wrapper of a symbol, as the program would get it; fails the test when there is none. */
void *rig_wrapper(int bank, const char *symbol);

/* The fake library's own function. */
void *rig_original(int bank, const char *symbol);

typedef struct rig_name {
  uint64_t handle, kind, more;
  char text[64];
} rig_name;

typedef struct rig_set { /* an ACCESS record of a set */
  uint64_t number, words, parameters;
  access_word word[8]; /* the first of them */
} rig_set;

enum { RIG_EVENTS = 4096, RIG_NAMES = 256, RIG_SETS = 256 };

/* Everything recorded since the last call (one-slot events; NAME and ACCESS records
 * apart). */
typedef struct rig_log {
  trace_event event[RIG_EVENTS];
  unsigned events;
  rig_name name[RIG_NAMES];
  unsigned names;
  rig_set set[RIG_SETS];
  unsigned sets, varying; /* varying: ACCESS records that the bytes of parameters vary */
} rig_log;

rig_log *rig_read(void);

/* rig_read() that must hold exactly one event. Borrowed until the next read. */
const trace_event *rig_one(void);

extern _Atomic uint8_t rig_covered[WEIR_SPOOL_MAX_APIS];
extern unsigned rig_unknown;
extern char rig_unknown_name[64];

/* Finds nothing in a bank from now on (its library is "not loaded"). */
extern bool rig_absent[WEIR_BANKS];

/* The driver's own file, in place of all fakes, from the next rig_setup() on; NULL: the fakes. */
extern const char *rig_driver;

int rig_run(Suite *suite);

#endif
