/* facts.h: what rules would otherwise each sort all calls for: one pass takes the calls of a trace,
 * in order of time, and leaves what it sees in temporary tables (fact_table.h).
 *
 * A table has rows only of the calls to which the thing happened, so that a rule which asks for it
 * takes time for what it finds. README.md says what is in which table. */
#ifndef WEIR_REPORTS_FACTS_H
#define WEIR_REPORTS_FACTS_H

#include <stddef.h>
#include "core/base/map.h"
#include "reports/events/events.h"
#include "reports/findings/fact_table.h"
#include "reports/findings/given.h"
#include "reports/import/schema.h"

enum { WR_SMALL_BYTES = 65535 /* of a small copy, at most */ };

typedef enum wr_handle_kind {
  WR_HANDLE_NONE,
  WR_HANDLE_STREAM,
  WR_HANDLE_EVENT,
  WR_HANDLE_POOL,
  WR_HANDLE_GRAPH,
  WR_HANDLE_CONTEXT,
  WR_HANDLE_MODULE /* or a library of code */
} wr_handle_kind;

/* What a call of a template is to the facts: decided once for a template, and not for each call. */
typedef enum wr_what {
  WR_LOOKED_AT = 1 << 0, /* else it is in no fact */
  WR_SUCCEEDED = 1 << 1,
  WR_CAPTURED = 1 << 2,  /* it was put into a graph, and not run */
  WR_IS_USE = 1 << 3,    /* a use (README.md), or captured */
  WR_IS_MOVE = 1 << 4,   /* copy or memset */
  WR_READS = 1 << 5,     /* device memory, or it may */
  WR_WRITES = 1 << 6,    /* as it reads; or it begins or ends memory */
  WR_ALLOCATES = 1 << 7, /* device memory */
  WR_FREES = 1 << 8,     /* memory of any kind */
  WR_OWNS = 1 << 9,      /* memory begins to be the process's, or to be page-locked, or no longer */
  WR_UP = 1 << 10,       /* copy to a device */
  WR_BACK = 1 << 11,     /* copy to the host */
  WR_FROM_HOST = 1 << 12,   /* copy of host memory */
  WR_TIMES = 1 << 13,       /* it asks how long it was between two events */
  WR_SELDOM = 1 << 14,      /* that, a wait for an event, a reset, or memory is given away */
  WR_ORDERS = 1 << 15,      /* it succeeded, is not captured, and queues something or waits */
  WR_OBJECT = 1 << 16,      /* it makes or ends an object */
  WR_STEPS = 1 << 17,       /* step_facts.h looks at it */
  WR_SETS_DEVICE = 1 << 18, /* it makes a device the thread's current one */
  WR_POLLS = 1 << 19,     /* questions whether work is complete, one after the other: it was not */
  WR_TAKEN = 1 << 20,     /* some fact looks at it */
  WR_MOVES = 1 << 22,     /* copy or memset that is not captured */
  WR_ADDS_WORK = 1 << 25, /* a copy, memset, launch or other call that succeeded, not captured */
  WR_PAUSED = 1 << 23,    /* such a question: it was, and the thread had paused */
  WR_POLLS_ON = 1 << 24,  /* poll_facts.h looks at it: where there are such */
  WR_STEPS_ON = 1 << 21   /* step_facts.c needs more of it than when it was */
} wr_what;

enum { WR_CACHE_LINE = 64 };

/* What the calls of a row of `template` have in common. There are thousands, of which each call takes another: what each call
 * needs is in the first two lines of the cache. */
typedef struct wr_common {
  _Alignas(WR_CACHE_LINE) uint32_t what; /* a sum of wr_what */
  uint16_t in_thread, in_stream;         /* what it is to thread_facts.c, and to stream_facts.c */
  int kind, copy, mem, src_mem;
  uint32_t stream_index; /* of the pass, UINT32_MAX: not seen yet */
  uint32_t flags;
  void *of_process, *of_thread; /* what the pass remembers of them; NULL: nothing yet */
  uint64_t seed;                /* of the keys of addresses in the process */
  uint64_t site;                /* hash of process, stack and device */
  uint64_t calls, ns, longest, bytes, small, most;
  int64_t first; /* the first call with bytes, 0 none */
  int64_t id;
  uint64_t stream;
  int64_t process, thread, stack; /* stack 0: none */
  int device;                     /* of the call, or of a copy's source; -1 none */
  int own_device;                 /* of the call; -1 none */
  int context;                    /* number in the process */
  int api;                        /* its number in the trace */
  wr_giving giving;               /* of a CALL */
  wr_handle_kind object;          /* that it makes or ends */
  bool ends;                      /* the object; of a stream its event decides */
  bool asked;                     /* a wait that the program asked for */
  bool device_work;               /* a copy, memset or launch of a kernel */
  bool launches_graph;
  bool makes_graph; /* it makes, changes or ends graphs, and queues nothing */
} wr_common;
_Static_assert(offsetof(wr_common, calls) == WR_CACHE_LINE, "lines of what calls have in common");
_Static_assert(sizeof(wr_common) == 3 * WR_CACHE_LINE, "lines of what calls have in common");

typedef struct wr_facts {
  const wr_events *events; /* borrowed */
  wr_common *common;       /* owned, in the order of their templates */
  size_t count;
  wr_fact_tables tables;
  size_t hash_places;  /* addresses of hash_step are numbered up to this */
  bool hashes_partial; /* hash_step lacks rows */
} wr_facts;

typedef struct wr_facts_settings {
  const wr_events *events; /* open; borrowed while the facts are there */
  bool timed;              /* the trace has device times */
} wr_facts_settings;

/* Begin, all events of `settings->events` in order of start, some at a time, end: then `f` has the tables, which
 * are there until it is freed, and it stays where it is. The pass is closed whatever became of it.
 * Errors: ENOMEM, EIO, ECORRUPT. */
typedef struct wr_facts_pass wr_facts_pass;
weir_status wr_facts_begin(wr_facts_pass **out, wr_facts *f, const wr_db *db,
                           const wr_facts_settings *settings);
weir_status wr_facts_take(void *p, const wr_event events[], size_t count); /* a wr_events_fn */
weir_status wr_facts_end(wr_facts_pass *p);
void wr_facts_close(wr_facts_pass *p);
void wr_facts_free(wr_facts *f);

/* NULL: the trace has no such template. */
static inline const wr_common *wr_facts_common(const wr_facts *f, int64_t id)
{
  const wr_events *e = f->events;
  const uint64_t in_row = (uint64_t)id - (uint64_t)e->first_id;
  size_t at = in_row < e->in_a_row ? e->base + (size_t)in_row : wr_events_template(e, id);
  return at < f->count ? &f->common[at] : NULL;
}

#endif
