/* thread_facts.h: the facts that follow from the order in which one thread makes its calls: rows of
 * a matrix that are copied one by one, small copies with nothing between them, waits with what the
 * thread calls after them, and how long a thread goes on after a call that kept it. */
#ifndef WEIR_REPORTS_THREAD_FACTS_H
#define WEIR_REPORTS_THREAD_FACTS_H

#include "core/trace/event.h"
#include "reports/findings/fact_call.h"
#include "reports/findings/facts.h"

enum {
  WR_LEAST_ROWS = 4,   /* copies at one stride that are rows of a matrix */
  WR_LEAST_SMALL = 32, /* small copies, the first included, with nothing between them */
  WR_LEAST_RUN = 3     /* small copies or memsets that are a run */
};

typedef struct wr_held_call { /* a row of a fact that is not certain yet, or not whole */
  int64_t event, template, duration, bytes;
} wr_held_call;

/* Calls whose row has the time from their end to the thread's next call of a kind. */
typedef enum wr_gap_fact {
  WR_GAP_PAGEABLE_COPY,
  WR_GAP_BLOCKING_COPY,
  WR_GAP_HIDDEN_WAIT,
  WR_GAP_FACTS
} wr_gap_fact;

typedef struct wr_gap_row {
  bool open; /* the thread's next call of the kind has not come yet */
  int64_t end;
  wr_held_call call;
} wr_gap_row;

/* Small copies of one direction, or small memsets, with nothing between them that queues something or waits. */
typedef struct wr_run {
  int64_t first, template, last; /* events; of the first */
  int64_t ns, bytes;             /* of all but the first */
  int64_t end;                   /* of the last, ns */
  int64_t moves;
  uint64_t stream;
  int what;        /* kind and direction; 0: something else came after them */
  bool copy, rows; /* they are copies; rows of a matrix are among them */
} wr_run;

/* What is remembered of a thread. Zero-initialised it has called nothing. */
typedef struct wr_thread_state {
  uint64_t a, b, bytes, stream; /* of the last call that could be a row's copy */
  int64_t da, db;
  int copy;
  bool any, steps;
  wr_held_call held[WR_LEAST_ROWS]; /* of the matrix that goes on, until it has as many */
  size_t matrix;
  uint64_t rows;
  int64_t queued; /* calls that add work since the last wait for a stream or a context */
  /* the last wait */
  int64_t wait, wait_end, gap;
  int64_t wait_template, wait_duration;
  int64_t wait_shared; /* of its duration, what the wait before it could have shared */
  int64_t queued_end;  /* of what was queued last since then; else wait_end */
  int wait_device;
  bool brings,
      queues_back; /* copies to the host, or graphs, were queued before it; and since then */
  bool ahead, followed, shared; /* shared: the host may look at what kernels wrote by themselves */
  /* small copies */
  bool copied;                        /* the last call that queues or waits was a copy, */
  int copied_to;                      /* with this direction, */
  uint64_t copied_of;                 /* so many bytes */
  int64_t copied_at;                  /* and this end */
  uint64_t smalls;                    /* copies with nothing between them */
  size_t small_count;                 /* of `small` */
  wr_held_call small[WR_LEAST_SMALL]; /* until there are as many */
  wr_run run;
  wr_held_call
      result; /* the last call that queues or waits was a copy to the host that waits; event 0: it was not */
  int64_t result_end;
  wr_gap_row gap_row[WR_GAP_FACTS];
} wr_thread_state;

/* What all threads have in common. */
typedef struct wr_thread_facts {
  wr_fact_tables *tables; /* borrowed */
  uint64_t *matrix;       /* owned: rows of each */
  size_t matrices, matrix_capacity;
} wr_thread_facts;

/* What calls of a template are to a thread: `in_thread` of it. */
uint16_t wr_thread_kind(const wr_common *t);
enum {
  WR_THREAD_ENDS_GAP = 1 << 4 | 1 << 9, /* of one that can end a gap, and is no more */
  WR_THREAD_LAUNCHES = 1 << 1 | 1 << 3 | 1 << 11 | 1 << 15, /* of most launches */
  WR_THREAD_WAITS = 1 << 13 /* a wait, or a copy that returns when earlier work is done */
};

/* Whether the call has been taken, as wr_thread_take() would have: it is nothing to the thread, or a launch that ends the
 * rows and the small copies before it. */
static inline bool wr_thread_pass(wr_thread_state *h, const wr_common *t, const wr_fact_call *c)
{
  if (t->in_thread == WR_THREAD_ENDS_GAP) return !h->gap_row[WR_GAP_BLOCKING_COPY].open;
  if (t->in_thread != WR_THREAD_LAUNCHES) return !t->in_thread;
  if (t->kind != WEIR_EV_LAUNCH || (h->wait && !h->followed) || h->result.event) return false;
  h->any = h->copied = false;
  h->run.what = 0;
  h->queued_end = c->time + c->duration;
  return true;
}

/* The thread's next call, which succeeded, in order of time. `shared`: the host may look at what
 * kernels write by themselves. Errors: ENOMEM, EIO. */
weir_status wr_thread_take(wr_thread_facts *f, wr_thread_state *h, const wr_common *t,
                           const wr_fact_call *c, bool shared);

/* The thread calls no more. Errors: ENOMEM, EIO. */
weir_status wr_thread_end(wr_thread_facts *f, wr_thread_state *h);

/* All threads have ended. Errors: ENOMEM, EIO. */
weir_status wr_thread_facts_end(wr_thread_facts *f);
void wr_thread_facts_free(wr_thread_facts *f);

#endif
