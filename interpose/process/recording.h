/* recording.h: how much the process records, as its spool steers it (core/trace/spool.h), and what a
 * thread does when that changes.
 *
 * Each call looks at the word that steers; the rest is done by the thread that meets a change. While
 * only memory is recorded, calls that change nothing of what is live pass by on the way in: they are
 * counted by their thread and nothing else is done (call_passes() in table/wrap.h). Counts go into
 * the spool's header at each change, each RECORDING_BATCH calls and the thread's end: a program that
 * is killed loses what a thread has counted since. */
#ifndef WEIR_INTERPOSE_RECORDING_H
#define WEIR_INTERPOSE_RECORDING_H

#include "interpose/process/thread.h"

enum {
  RECORDING_BATCH = 4096, /* calls that a thread counts before others know of them */
  CALL_LEFT_OUT = 1 << 8  /* thread_state.depth: within a call that is not recorded */
};

/* Not all calls of this image have been recorded. Set before the first is left out. */
extern _Atomic bool recording_left_out;

static inline uint32_t recording_word(void)
{
  return atomic_load_explicit(&spool_steering_now()->recording, memory_order_relaxed);
}

/* As it is steered, for who has no call: whether calls are left out. */
static inline bool recording_is_partial(void)
{
  return __builtin_expect(recording_word() == WEIR_RECORD_MEMORY, 0);
}

/* Windows that the program opens itself (WEIR_CAPTURE): all calls are recorded while one is open.
 * NULL: not by NVTX ranges; else by those of this name. */
extern const char *recording_range;
extern bool recording_by_profiler; /* they are cuProfilerStart's */

/* The process steers itself. */
void recording_steer(uint32_t recording);

/* A window of that kind begins or ends; several may be open at once. */
void recording_window(bool begins);

/* The program has called cuProfilerStart or cuProfilerStop. */
void recording_profiler(bool starts);

/* The thread, in a call that it has begun, has met another word than its last one. */
__attribute__((cold)) void recording_change(thread_state *t, uint32_t word);

/* What the thread has counted goes into the header. */
__attribute__((cold)) void recording_count(thread_state *t);

#endif
