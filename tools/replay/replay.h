/* replay.h: runs a list of operations through a policy and counts what that costs. */
#ifndef WEIR_TOOLS_REPLAY_REPLAY_H
#define WEIR_TOOLS_REPLAY_REPLAY_H

#include <stdio.h>
#include "tools/replay/policy.h"

#define RP_COLUMNS 480u /* of a picture */

typedef struct rp_column {
  uint64_t live, reserved; /* most bytes in this part of the time */
} rp_column;

typedef struct rp_result {
  const rp_policy *policy;
  uint64_t peak_live;     /* bytes asked for and held, the most at one moment */
  uint64_t peak_reserved; /* bytes held of the driver, all heaps together, the most */
  uint64_t segment_calls, syncs, stream_waits, events;
  uint64_t operations;      /* allocations and frees that were carried out */
  uint64_t failed;          /* allocations that did not fit */
  double ns_per_op;         /* of this model on this machine, not of the peer */
  const rp_ops *ops;        /* borrowed: the list that was run */
  bool requests_tried;      /* its requests were run, too: the device has a capacity */
  const struct rp_fit *fit; /* on a device of the capacity; NULL: not asked */
  rp_column column[RP_COLUMNS];
} rp_result;

/* peak_reserved / peak_live; 0 where nothing was live. */
double rp_ratio(const rp_result *r);

/* An allocation that fails is counted and, with its free, left out. Requests are run where there
 * is a capacity, and freed at once: what the program would have done with them is unknown, and a
 * device without limits would refuse none. Errors: ENOMEM, EINVAL and EOOM (the policy could not
 * begin). */
weir_status rp_replay(rp_result *out, const rp_ops *ops, const rp_policy *policy,
                      const rp_options *options);

typedef struct rp_failure {
  size_t op;        /* the first allocation that did not fit; ops->count: all did */
  uint64_t live;    /* bytes of its heap that were asked for and held then */
  uint64_t largest; /* bytes that one allocation in its place could have had at most */
} rp_failure;

/* Ends at the first allocation that fails. Errors: as rp_replay(). */
weir_status rp_replay_to_failure(rp_failure *out, const rp_ops *ops, const rp_policy *policy,
                                 const rp_options *options);

/* What a person reads: a table, JSON (one object, or a list where there are several), a picture. */
weir_status rp_show_text(FILE *out, const rp_result *results, size_t count);
weir_status rp_show_json(FILE *out, const rp_result *results, size_t count);
/* 1536 as "1.5 KiB"; `text` is returned. */
const char *rp_bytes_text(char text[32], uint64_t bytes);
weir_status rp_show_svg(FILE *out, const rp_ops *ops, const rp_result *results, size_t count);

#endif
