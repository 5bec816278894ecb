/* first.h: which calls brought a CUDA context into being, so that their time is called
 * initialisation and not waiting; and how much time the program's threads had.
 *
 * A trace has no word for it, but the number of the context that each call left its thread in. The
 * first call of a process into a context made it, and so did, by waiting for the same, what other
 * threads called meanwhile: every call that began before the first one had returned. Where the
 * program asked for the context by name (cuDevicePrimaryCtxRetain, ...), that call made it. A reset
 * begins anew. cuInit() and those that make contexts by name are initialisation by what they do. */
#ifndef WEIR_REPORTS_FIRST_H
#define WEIR_REPORTS_FIRST_H

#include "reports/import/schema.h"
#include "core/base/map.h"

typedef struct wr_first_call {
  int64_t process, thread, context, start, end; /* context 0: none */
  uint32_t api;
  int device;  /* WR_HOST: none */
  bool worked; /* returned success */
} wr_first_call;

typedef struct wr_first_thread {
  int64_t process, thread, start, end; /* of its first call; of its last */
  int64_t context;                     /* private: of its last call that was in one; -1: none */
  uint64_t life;                       /* private: of that context */
} wr_first_thread;

typedef struct wr_firsts {
  wr_first_thread *threads; /* owned; those that made a call */
  size_t thread_count, thread_capacity;
  hash_map by_thread; /* thread -> place in threads */
  hash_map met;       /* thread, context and life of it -> 1 */
  hash_map earliest;  /* process, context and life -> end of the first call into it, plus 1 */
  hash_map by_name;   /* process, device and life -> end of the call that asked for it, plus 1 */
  struct wr_reset {
    uint64_t key; /* of what was reset */
    int64_t end;
  } * resets; /* owned; by key and time */
  size_t reset_count, reset_capacity;
  uint32_t init, init_device, retain, create[4]; /* functions */
  int64_t last_thread;                           /* of the call before: most are like it */
  size_t last_at;                                /* its place in threads */
} wr_firsts;

weir_status wr_firsts_open(wr_firsts *f, const wr_db *db);
void wr_firsts_close(wr_firsts *f);

/* Takes every call of a trace in turn, each thread's in their order. *maybe: it has to be asked
 * about once all were taken. False: out of memory. */
bool wr_firsts_take(wr_firsts *f, const wr_first_call *c, bool *maybe);

/* Whether a function makes contexts, or asks for one by name. */
bool wr_firsts_named(const wr_firsts *f, uint32_t api);

/* Of the thread of the call that wr_firsts_take() took last: its place in threads, plus 1. It stays that. */
static inline uint32_t wr_firsts_thread(const wr_firsts *f)
{
  return (uint32_t)f->last_at + 1;
}

/* Takes a call as wr_firsts_take() does, where it is like most: in no context, or in that of its
 * thread's call before. `thread`: wr_firsts_thread() of that thread, 0: not known yet. False: it is
 * not, and nothing was taken. The function is none of wr_firsts_named(). */
static inline bool wr_firsts_go_on(wr_firsts *f, uint32_t thread, int64_t context, int64_t start,
                                   int64_t end)
{
  if (!thread) return false;
  wr_first_thread *t = &f->threads[thread - 1];
  if (context && (context != t->context || f->reset_count)) return false;
  if (start < t->start) t->start = start;
  if (end > t->end) t->end = end;
  return true;
}

/* Whether the call made a context, or waited for one to be made. */
bool wr_firsts_made(const wr_firsts *f, const wr_first_call *c);

#endif
