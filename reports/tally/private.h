/* private.h: what the tally's files share. */
#ifndef WEIR_REPORTS_TALLY_PRIVATE_H
#define WEIR_REPORTS_TALLY_PRIVATE_H

#include "core/base/map.h"
#include "reports/tally/tally.h"

/* Whose state it is. */
typedef struct wr_tally_owner {
  uint64_t start_time;
  uint32_t pid, pad;
  uint8_t boot_id[16];
} wr_tally_owner;

struct wr_tally {
  wr_tally_state s;
  wr_tally_options options;
  wr_tally_owner owner;
  spool_reader *reader;          /* borrowed */
  char *path, *fresh;            /* of the state, and of the file that becomes it */
  const uint8_t *roles;          /* by api: wr_graph_call of the functions that are some */
  uint64_t tremor;               /* ticks by which clocks of two processors differ at most */
  uint32_t last;                 /* index + 1 of the thread that the last record was of */
  uint32_t unused;               /* of pending, index + 1 */
  uint32_t waiting;              /* pending events in use */
  bool final;                    /* the writer is gone */
  bool enough;                   /* a drain was ended by its window */
  const wr_tally_window *window; /* of the drain; NULL: everything is taken */
  bool stacks_went; /* since the last commit: a stack that a thread may use again is not known */
  uint32_t *heap;   /* of threads with pending events, the oldest first; room for all */
  uint32_t heap_count, heap_room;
};

static inline wr_tally_facts *wr_facts(const wr_tally *t)
{
  return (wr_tally_facts *)(void *)t->s.facts.entry;
}

static inline uint64_t wr_key(uint64_t hash)
{
  return hash > WR_STACK_FORGOTTEN ? hash : hash + 2;
}

/* Of two numbers and what they are of. */
static inline uint64_t wr_key_of(uint64_t what, uint64_t a, uint64_t b)
{
  return wr_key(hash_mix(hash_mix(what << 56, a), b));
}

/* The same of one number; and of two small ones, which are the key. */
static inline uint64_t wr_key_of_one(uint64_t what, uint64_t a)
{
  return wr_key(hash_mix(what << 56, a));
}

static inline uint64_t wr_key_of_small(uint32_t a, uint32_t b)
{
  return wr_key((uint64_t)a << 32 | b);
}

/* What keys are of, so that no two kinds share one. */
enum {
  WR_OF_THREAD = 1,
  WR_OF_BLOCK,
  WR_OF_OPEN,
  WR_OF_STARTED,
  WR_OF_GRAPH,
  WR_OF_MODULE,
  WR_OF_GONE,
  WR_OF_NAME,
  WR_OF_RANGE_NAME,
  WR_OF_PYTHON,
  WR_OF_CONTEXT,
  WR_OF_STREAM,
  WR_OF_GAUGE
};

static inline uint64_t wr_name_key(uint8_t kind, uint64_t handle)
{
  return wr_key(hash_mix((uint64_t)WR_OF_NAME << 56 | (uint64_t)kind << 48, handle));
}

static inline weir_status wr_tally_no_memory(const wr_tally *t)
{
  return weir_fail(WEIR_ENOMEM, "the tally %s: out of host memory", t->path);
}

/* The turn of a reader had more records than it has room for. */
static inline weir_status wr_tally_no_room(const wr_tally *t)
{
  return weir_fail(WEIR_EINTERNAL, "the tally %s: a turn of more than %u records", t->path,
                   WEIR_SPOOL_TURN);
}

/* take.c: the thread, made at first sight, and a pending event of it, in its place by time (both
 * NULL: no room); the key of a total; an event. */
wr_tally_thread *wr_tally_thread_of(wr_tally *t, uint32_t serial, uint32_t tid);
uint64_t wr_total_key(const wr_tally_total *x);
weir_status wr_tally_event(void *context, uint32_t serial, uint32_t tid, const trace_event *e);
wr_pending *wr_pending_add(wr_tally *t, wr_tally_thread *thread, uint64_t time);
void wr_pending_drop(wr_tally *t, wr_tally_thread *thread, wr_pending *p);

/* ranges.c */
weir_status wr_tally_range(wr_tally *t, wr_tally_thread *thread, const trace_event *e);

/* dictionary.c: the records with more than one slot. */
weir_status wr_tally_extended(void *context, uint32_t serial, uint32_t tid, const trace_event *head,
                              const void *payload, size_t bytes);

/* settle.c: pending events from before `before` count now, in order of time; `all`: what waits for
 * more records too. */
weir_status wr_tally_settle(wr_tally *t, uint64_t before, bool all);

/* The accounts that a block is counted in; how many they are. */
typedef struct wr_account_place {
  unsigned device, class;
} wr_account_place;

unsigned wr_accounts_of(const wr_tally_block *b, wr_account_place out[3]);

/* graphs.c: a change; `take` for each allocation (free: false) and free of a launch. */
weir_status wr_graph_change(wr_tally *t, const wr_pending *p);
void wr_graph_destroyed(wr_tally *t, uint64_t exec);
weir_status wr_graph_launched(wr_tally *t, const wr_pending *p,
                              weir_status (*take)(wr_tally *t, const wr_pending *launch,
                                                  const graph_node_info *node, bool free));

/* sweep.c: what is beyond the bounds goes; arrays with holes are packed. */
weir_status wr_tally_sweep(wr_tally *t);

/* file.c */
weir_status wr_tally_save(wr_tally *t);
weir_status wr_tally_load(wr_tally *t);

/* For tests: makes the check word of a file right, so that what is checked after it is reached. */
void wr_tally_seal(void *file, uint64_t bytes);

#endif
