/* rig.h: what the suites of the replay share: a policy driven by hand, and random lists. */
#ifndef WEIR_TESTS_REPLAY_RIG_H
#define WEIR_TESTS_REPLAY_RIG_H

#include <check.h>
#include "tools/replay/replay.h"

#define KIB UINT64_C(1024)
#define MIB (KIB * 1024)

typedef struct held {
  void *block;
  uint64_t address;
  rp_op op;
} held;

/* One heap of one policy at a time. */
extern rp_driver rig_driver;
void rig_open(const rp_policy *policy, rp_options options);
void rig_close(void);

held rig_alloc(uint64_t bytes, uint64_t stream);   /* must succeed */
void rig_no_room(uint64_t bytes, uint64_t stream); /* must be EOOM */
void rig_free(held h);                             /* on its own stream */
void rig_free_on(held h, uint64_t stream);

/* A list that keeps to the rules: at most 400 live blocks, sizes from 1 B to 64 MiB. */
void rig_random(rp_ops *ops, uint64_t seed, size_t count, unsigned streams, unsigned heaps);

#endif
