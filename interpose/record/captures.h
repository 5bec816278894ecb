/* captures.h: stream captures of the program, and what Weir does of its own during them.
 *
 * During a capture much is forbidden, and some of it spoils the capture instead of failing: to wait
 * for a context of which a stream is captured, to record an event in such a stream, to ask or wait
 * for an event (CUDA C++ Programming Guide, "Prohibited and Unhandled Operations";
 * cuThreadExchangeStreamCaptureMode; cuCtxRecordEvent). Where the program itself does that, it gets
 * the driver's answer. What Weir does of its own must not, and is done in one of two ways:
 *
 * A *step* excludes captures: none is live while it is made, and the program's call that begins one
 * waits for the steps under way. A step is one short call into the driver, which waits for nothing,
 * so that the begin does not either (capture_step_begin).
 *
 * A call that may take its time, an allocation, a free, a wait for an event that no capture has, is
 * made with the thread's mode *relaxed*: then no capture forbids it, whoever begins one meanwhile
 * (capture_relax).
 *
 * Captures are counted from before the driver is asked to begin one until after it has ended one,
 * at any depth of calls: libweir's own, and those that a signal handler begins, are captures too.
 */
#ifndef WEIR_INTERPOSE_CAPTURES_H
#define WEIR_INTERPOSE_CAPTURES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include "interpose/record/cuda_headers.h"

/* Captures that the program has asked for and that have not ended, whole process: while 0 no stream
 * is asked whether it is capturing. */
extern _Atomic uint32_t capture_count;

static inline bool capture_live(void)
{
  return atomic_load_explicit(&capture_count, memory_order_relaxed) != 0;
}

/* Some stream was captured, or was about to be. */
bool capture_ever(void);

/* Whether the stream is being captured. Not for the legacy stream, which can't be, and may not be
 * asked while another is. */
bool capture_is_active(uint64_t stream);

/* ---- around the program's calls (gen.py) ----------------------------------------------------- */

/* Before a call that begins a capture; false: it is within one that was counted. Waits for the
 * steps under way. Both go to capture_begun() with the driver's answer. */
bool capture_begins(void);
void capture_begun(bool counted, uint32_t status);

/* Surround a call that ends a capture, likewise. `owner`: the call owns its event, so that the
 * trace gets it. */
bool capture_ends(void);
void capture_ended(bool counted, bool owner, uint32_t status, uint64_t stream);

/* ---- around Weir's own ----------------------------------------------------------------------- */

/* Begins a step of Weir's own that a live capture would forbid. False: one is live, and the step
 * must not be made. True: capture_step_end() must follow. */
bool capture_step_begin(void);
void capture_step_end(void);

typedef struct capture_relaxed {
  CUstreamCaptureMode was; /* the thread's mode */
  bool changed;            /* it is another one now */
} capture_relaxed;

capture_relaxed capture_relax(void);
void capture_relax_end(const capture_relaxed *r);

/* Before the program's first call in a forked child: the steps of the parent's other threads are
 * not under way here. */
void capture_forked(void);

#endif
