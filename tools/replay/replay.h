/* replay.h: runs a list of operations through a policy and says what it cost. */
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
  uint64_t operations; /* allocations and frees that were carried out */
  uint64_t failed;     /* allocations that did not fit */
  double ns_per_op;    /* of this model on this machine, not of the peer */
  rp_column column[RP_COLUMNS];
} rp_result;

/* peak_reserved / peak_live; 0 where nothing was live. */
double rp_ratio(const rp_result *r);

/* An allocation that fails is counted and, with its free, left out. Errors: ENOMEM, EINVAL and EOOM
 * (the policy could not begin). */
weir_status rp_replay(rp_result *out, const rp_ops *ops, const rp_policy *policy,
                      const rp_options *options);

/* What a person reads: a table, JSON (one object, or a list where there are several), a picture. */
weir_status rp_show_text(FILE *out, const rp_result *results, size_t count);
weir_status rp_show_json(FILE *out, const rp_result *results, size_t count);
weir_status rp_show_svg(FILE *out, const rp_ops *ops, const rp_result *results, size_t count);

#endif
