/* support.h: what the core suites share: a folder of their own, a victim that counts what it
 * records, and a visitor that counts what is delivered.
 *
 * Every test record carries who wrote it and the how-manieth it is: a: writer's key, b: number. An
 * extended test record is a NOTE whose payload is a pattern made from those two. */
#ifndef WEIR_TESTS_CORE_SUPPORT_H
#define WEIR_TESTS_CORE_SUPPORT_H

#include <check.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/trace/spool.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

enum { KEYS = 64 };

/* A new folder under /dev/shm, $TMPDIR or /tmp, whichever has room first, 0700; the path is in
 * `out`. */
void make_folder(char out[256]);

/* Removes a folder and the files in it. */
void remove_folder(const char *path);

/* Opens this process's spool in `folder`, where its header leaves `limit_bytes` (0: the default
 * limit) for chunks; fails the test when it can't. */
void open_spool(const char *folder, uint64_t limit_bytes);

/* Path of the spool process `pid` opened as its n-th in `folder`. */
void spool_path(char out[512], const char *folder, int pid, int n);

/* Records one event; false: it was dropped. */
bool put_event(spool_writer *w, uint64_t key, uint64_t number);

/* Records one extended record with `bytes` of pattern. */
bool put_note(spool_writer *w, uint64_t key, uint64_t number, size_t bytes);

/* What was delivered. */
typedef struct tally {
  uint64_t events[KEYS], notes[KEYS]; /* by key */
  uint64_t next[KEYS];                /* number expected next; both kinds share the count */
  uint32_t thread[KEYS];              /* serial seen with this key, 0: none */
  uint64_t total;                     /* records of both kinds */
  uint64_t out_of_order;              /* records whose number is below or above the expected */
  uint64_t wrong_payload, wrong_thread;
  uint64_t refuse_at; /* return an error instead of taking this record (total), 0: never */
} tally;

/* The visitor that counts into `t`. */
spool_visitor visitor(tally *t);

/* Opens, drains once to the end, closes; fails the test on an error. */
spool_damage drain_all(const char *path, tally *t);

/* Runs the suite as every core suite does; the exit status. */
int run_suite(Suite *suite);

/* A small, fast, seeded random number. */
uint64_t random_next(uint64_t *state);

#endif
