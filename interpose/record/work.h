/* work.h: which streams have had work since the last wait for everything: what a relaxed free must
 * outlast.
 *
 * A launch, copy or memset notes its stream: a load and a compare where the stream has been noted
 * since the last wait, a store where not. A wait for a context begins a new age; once it is over,
 * what was noted in earlier ages is done. */
#ifndef WEIR_INTERPOSE_WORK_H
#define WEIR_INTERPOSE_WORK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { WEIR_WORK_SLOTS = 1024, WEIR_WORK_PROBES = 16 };

typedef struct work_slot {
  _Atomic uint64_t stream;  /* handle, default streams normalised; 0: free */
  _Atomic uint32_t context; /* number */
  _Atomic uint32_t age;     /* in which it was noted last */
} work_slot;

extern work_slot work_slots[WEIR_WORK_SLOTS];
extern _Atomic uint32_t work_age;

void work_note_slow(unsigned context, uint64_t stream);

static inline unsigned work_home(unsigned context, uint64_t stream)
{
  return (unsigned)(((stream >> 4) + stream + context) * UINT64_C(0x9e3779b97f4a7c15) >> 54);
}

static inline void work_note(unsigned context, uint64_t stream)
{
  const work_slot *s = &work_slots[work_home(context, stream)];
  if (__builtin_expect(atomic_load_explicit(&s->stream, memory_order_relaxed) == stream &&
                           atomic_load_explicit(&s->context, memory_order_relaxed) == context &&
                           atomic_load_explicit(&s->age, memory_order_relaxed) ==
                               atomic_load_explicit(&work_age, memory_order_relaxed),
                       1))
    return;
  work_note_slow(context, stream);
}

/* Before a wait for a context; what it returns goes to work_waited() when the wait is over.
 */
uint32_t work_wait_begins(void);
void work_waited(unsigned context, uint32_t age);
/* The context, or the stream in it, is gone; or its handle may mean another one from now on. */
void work_forget_context(unsigned context);
void work_forget_stream(unsigned context, uint64_t stream);
bool work_busy(unsigned context, uint64_t stream);

/* Work may be under way that nobody noted: from now on every answer of work_list() is -1, and
 * the trace has the reason. */
void work_note_unknown(const char *why);

/* The streams of the context with work that may be under way, as handles of cuEventRecord; -1:
 * cannot be known (a per-thread stream, more than `room`, an unseen way to launch). */
int work_list(unsigned context, void **streams, int room);

#endif
