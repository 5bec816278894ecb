/* rig.h: what the allocator's suites share: a pool on a scripted device. */
#ifndef WEIR_TESTS_MEMORY_RIG_H
#define WEIR_TESTS_MEMORY_RIG_H

#include <check.h>
#include "core/memory/pool.h"
#include "core/weir/memory.h"
#include "tests/memory/fake.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

#define MIB (UINT64_C(1) << 20)
#define KIB (UINT64_C(1) << 10)

typedef struct rig {
  fake f;
  mem_pool *p;
  mem_heap *s[FAKE_STREAMS]; /* by stream number, made by rig_stream() */
} rig;

extern uint32_t rig_ms; /* the pool's clock */

/* conf: as WEIR_ALLOC_CONF, NULL: the default. page 0: no VMM. */
void rig_start(rig *r, uint64_t capacity, uint64_t page, const char *conf);
/* Frees the pool; everything must be given back. */
void rig_stop(rig *r);
mem_heap *rig_stream(rig *r, int i);
/* Must succeed; checks all invariants. */
void *rig_malloc(rig *r, int stream, uint64_t bytes);
void rig_free(rig *r, void *ptr);
void rig_check(rig *r);
int64_t rig_stat(rig *r, size_t offset);
#define RIG_STAT(r, field) rig_stat(r, offsetof(weir_memory_stats, field))

uint64_t rig_random(uint64_t *state);
int rig_run(Suite *suite);

/* Work of a stream that does nothing. */
static inline void nothing(void *argument)
{
  (void)argument;
}

#endif
