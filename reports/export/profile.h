/* profile.h: what calls cost, summed by stack and function.
 *
 * A sample is a function of CUDA's with the frames of the program that led to it: calls, the time
 * they lasted on the host, bytes allocated and copied, and bytes live when most were. Calls and
 * time are of all calls, failed ones among them; bytes of what succeeded and was run, as reports
 * count them. Memory grows with the number of different stacks, not with the events. */
#ifndef WEIR_REPORTS_EXPORT_PROFILE_H
#define WEIR_REPORTS_EXPORT_PROFILE_H

#include "reports/export/input.h"

typedef enum profile_weight {
  PROFILE_CALLS,
  PROFILE_HOST_TIME,
  PROFILE_ALLOCATED,
  PROFILE_COPIED,
  PROFILE_LIVE_AT_PEAK,
  PROFILE_WEIGHTS
} profile_weight;

typedef struct profile_weight_name {
  const char *name; /* as --weight has it */
  const char *unit; /* "count", "nanoseconds", "bytes" */
} profile_weight_name;

extern const profile_weight_name profile_weights[PROFILE_WEIGHTS];

typedef struct profile_sum {
  int64_t stack, api;
  int64_t weight[PROFILE_WEIGHTS];
} profile_sum;

typedef struct profile {
  export_input input;
  sqlite3_stmt *api_name; /* owned */
  hash_map index;         /* hash of stack and function -> place in sum */
  profile_sum *sum;       /* owned */
  size_t count, capacity;
  int64_t duration, began; /* ns; of CLOCK_REALTIME */
} profile;

typedef struct profile_sample {
  const char *function;   /* of CUDA's; borrowed until the callback returns */
  const wr_frame *frames; /* that led to it, innermost first; borrowed likewise */
  size_t count;
  const int64_t *weight;
} profile_sample;

/* To be closed whatever comes of it. Errors: those of export_input_open(). */
weir_status profile_open(profile *p, const char *trace);
void profile_close(profile *p);

/* Calls `take` for every sum, always in the same order; a status it returns ends that. */
weir_status profile_each(profile *p,
                         weir_status (*take)(void *context, const profile_sample *sample),
                         void *context);

#endif
