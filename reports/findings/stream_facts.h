/* stream_facts.h: the facts that follow from the order in which calls of all threads queue work
 * into one stream: copies in one direction right after ones in the other, and launches that keep
 * the host with many operations queued before them. */
#ifndef WEIR_REPORTS_STREAM_FACTS_H
#define WEIR_REPORTS_STREAM_FACTS_H

#include "reports/findings/fact_call.h"
#include "reports/findings/facts.h"

enum {
  WR_QUEUE_DEPTH = 1000 /* operations queued before a launch for which there may be no room */
};

/* What is remembered of a stream. */
typedef struct wr_stream_state {
  const wr_common *last; /* template of the last call that queued something, by itself; NULL none */
  int64_t last_event;
  uint64_t last_a, last_b, last_bytes;
  uint64_t last_waits; /* how often the process had waited then */
  uint64_t operations; /* queued */
  uint64_t waits;      /* of the process, when `since` began */
  uint64_t since;      /* operations queued since that wait, it included */
  uint64_t slow[2]; /* numbers of the last two slow launches with a full queue, the older first */
  int64_t *ring;    /* owned: events of the last operations */
  size_t ring_capacity;
  uint64_t kept;  /* events that were put into the ring */
  size_t context; /* place of its context, where that is looked at (WR_STREAM_MIXED) */
} wr_stream_state;

/* The last work of a stream that the program made. */
typedef struct wr_stream_work {
  int64_t event; /* 0: none */
  uint64_t stream;
} wr_stream_work;

/* What is remembered of a context that has work in the legacy default stream and in others. */
typedef struct wr_mixed_context {
  int64_t process;
  int context;
  int64_t work;   /* the last event of another stream; 0: none */
  uint64_t waits; /* how often the process had waited then */
  /* of two streams, the later first: queued since the last of the default stream, and not waited for */
  wr_stream_work pending[2];
  size_t places; /* that its copies and memsets name */
} wr_mixed_context;

/* What all streams have in common. */
typedef struct wr_stream_facts {
  wr_fact_tables *tables;  /* borrowed */
  bool timed;              /* the trace has device times: events of operations are remembered */
  hash_map at;             /* process, context, stream -> place */
  wr_stream_state *stream; /* owned */
  size_t count, capacity;
  size_t rings;            /* events in all rings */
  bool any_blocking;       /* a stream was made that waits for the default stream */
  wr_mixed_context *mixed; /* owned */
  size_t mixed_count, mixed_capacity;
  hash_map named; /* templates with addresses that they name */
} wr_stream_facts;

/* What calls of a template are to a stream: `in_stream` of it. */
uint16_t wr_stream_kind(const wr_common *t);

enum {
  WR_STREAM_LOOKS = 1 << 0,  /* the host waits for the stream, or asks whether it is complete */
  WR_STREAM_QUEUES = 1 << 1, /* it queues something, and is not captured */
  WR_STREAM_MIXED = 1 << 5   /* that is device work, in a context of wr_mixed_context */
};

/* Gives WR_STREAM_MIXED to the templates that have it. Errors: ENOMEM. */
weir_status wr_stream_choose(wr_stream_facts *f, wr_common common[], size_t count);

/* One of WR_STREAM_QUEUES, as wr_stream_take() has it. */
weir_status wr_stream_queue(wr_stream_facts *f, wr_common *t, const wr_fact_call *c,
                            uint64_t waits);

/* One of WR_STREAM_LOOKS, in which the host has waited: what it shows to be complete is no more pending. */
void wr_stream_wait(wr_stream_facts *f, const wr_common *t);

/* The next call, which succeeded, in order of time. *waits: how often the process has waited,
 * counted here. Errors: ENOMEM, EIO. */
static inline weir_status wr_stream_take(wr_stream_facts *f, wr_common *t, const wr_fact_call *c,
                                         uint64_t *waits)
{
  *waits += t->in_stream & WR_STREAM_LOOKS;
  if (f->mixed_count && t->in_stream & WR_STREAM_LOOKS) wr_stream_wait(f, t);
  return t->in_stream & WR_STREAM_QUEUES ? wr_stream_queue(f, t, c, *waits) : WEIR_OK;
}

/* Forgets all streams. */
void wr_stream_facts_free(wr_stream_facts *f);

#endif
