/* replaying.h: what the files of a replay share (replaying.c): replay.c delivers all but calls,
 * replay_calls.c those. */
#ifndef WEIR_REPORTS_TALLY_REPLAYING_H
#define WEIR_REPORTS_TALLY_REPLAYING_H

#include "reports/tally/private.h"
#include "reports/tally/replay.h"

/* A record that is delivered among those of its thread. */
typedef struct wr_early {
  wr_call call;
  uint8_t range_fact; /* 0: it is no range's */
  uint32_t order;     /* of records that begin at the same tick */
} wr_early;

typedef struct wr_replay {
  wr_tally *t;
  const wr_replay_visitor *v;
  wr_early *early; /* owned; by thread, then by start */
  uint32_t count, room;
  uint32_t home, home_tid; /* the thread of what is of none */
  hash_map ids;            /* hash of thread and stack -> what the thread calls it */
  hash_map any;            /* stack -> one thread << 32 | what it calls it */
  hash_map spare;          /* thread -> the number that it has given last, from above */
  char *text;              /* owned: the payload that is delivered */
  size_t text_bytes, text_room;
} wr_replay;

static inline weir_status wr_replay_no_memory(const wr_replay *r)
{
  return wr_tally_no_memory(r->t);
}

/* The thread calls the stack that. False, here and below: out of memory. */
bool wr_replay_name_stack(wr_replay *r, uint32_t thread, uint64_t stack, uint32_t id);

/* What the thread calls a stack, made where it calls it nothing; 0: the stack is not known. */
bool wr_replay_stack(wr_replay *r, uint32_t thread, uint64_t stack, uint32_t *id);

/* Adds to the payload of the next record, and delivers that; of a thread that is not known as of
 * `home`. */
bool wr_replay_put(wr_replay *r, const void *bytes, size_t count);
weir_status wr_replay_extended(wr_replay *r, uint32_t thread, const trace_event *head);

/* replay_calls.c: lists the calls and ranges, and takes them out of totals and accounts; delivers
 * the graphs; delivers the calls. */
weir_status wr_replay_list_calls(wr_replay *r);
weir_status wr_replay_graphs(wr_replay *r);
weir_status wr_replay_calls(wr_replay *r);

#endif
