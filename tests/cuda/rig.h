/* rig.h: what the suites of the CUDA backend share: a pool on CUDA device 0, and streams that can
 * be stopped.
 *
 * A lane is a stream of device 0 with gates in it: gate_add() puts one in its queue, work behind it
 * waits until gate_open() has been called once for it and for each before it. On the software
 * device a gate is weir_sim_hold(), on a GPU a wait for a word of pinned memory
 * (cuStreamWaitValue32). */
#ifndef WEIR_TESTS_CUDA_RIG_H
#define WEIR_TESTS_CUDA_RIG_H

#include <check.h>
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/base/compiler.h"
#include "core/backend/plugin.h"
#include "core/memory/pool.h"
#include "core/weir.h"

#define SANITIZED (WEIR_ASAN || WEIR_TSAN)

#define MIB (UINT64_C(1) << 20)
#define KIB (UINT64_C(1) << 10)

#define ok(call) ck_assert_int_eq((int)(call), CUDA_SUCCESS)
#define weir_ok(call)                                                                              \
  ck_assert_msg((call) == WEIR_OK, "%s:%d: %s", __FILE__, __LINE__, weir_error_message())

enum { LANES = 16 };

typedef struct lane {
  CUstream stream;
  mem_heap *heap;         /* of rig.p */
  uint32_t gates, opened; /* put into the queue so far; let pass so far */
  uint32_t *word;         /* on a GPU: `opened`, pinned */
} lane;

typedef struct rig {
  const weir_backend *real; /* the CUDA backend of device 0 */
  weir_backend backend;     /* a copy, for a suite to put functions of its own into */
  mem_pool *p;
  CUcontext context; /* device 0's primary one, current in the test's thread */
  lane lanes[LANES];
} rig;

/* Opens device 0 and makes its context current; once a process. */
void rig_open(rig *r);
/* A pool on it; conf as WEIR_ALLOC_CONF. */
weir_status rig_try_pool(rig *r, const char *conf);
void rig_pool(rig *r, const char *conf);
/* Ends the pool, which must have given everything back. */
void rig_end(rig *r);
/* Streams 0..count-1 (0: the default stream), and their heaps in the pool. */
void rig_lanes(rig *r, int count);

void gate_add(lane *l);
void gate_open(lane *l);
void gate_open_all(lane *l);

/* True on the software device; WEIR_RIG_REAL in the environment: it is taken for a real one. */
bool rig_simulated(void);
/* weir_sim_set_fail(); only there. */
void rig_fail(const char *list);
uint64_t rig_calls(const char *function);

void *rig_malloc(rig *r, int lane, uint64_t bytes);
void rig_free(rig *r, void *ptr);
void rig_check(rig *r);
int64_t rig_stat(rig *r, size_t offset);
#define RIG_STAT(r, field) rig_stat(r, offsetof(weir_memory_stats, field))

uint64_t rig_random(uint64_t *state);
int rig_run(const char *name, const TTest *const *tests, int loops);

#endif
