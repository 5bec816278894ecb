/* recording.c: see recording.h. The first thread that meets a change writes it into the trace: calls
 * that any thread begins after that are treated by it, since the word that the others read is the
 * same. */
#include "interpose/process/recording.h"

#include "core/base/fork.h"
#include "core/trace/held.h"
#include "interpose/process/mode.h"
#include "interpose/process/part.h"

_Atomic bool recording_left_out;

const char *recording_range;
bool recording_by_profiler;

static FORK_STATE _Atomic uint32_t noted;        /* spool_recording: as the trace has it */
static FORK_STATE _Atomic uint32_t open_windows; /* of the program's own */
static FORK_STATE _Atomic bool profiled;         /* one of them is the profiler's */

void recording_count(thread_state *t)
{
  spool_header *h = spool_current();
  if (h && t->passed) atomic_fetch_add_explicit(&h->unrecorded, t->passed, memory_order_relaxed);
  t->passed = 0;
}

static void write_change(thread_state *t, uint32_t is)
{
  const spool_header *h = spool_current();
  trace_event head = {
      .start = clock_ticks(), .device = WEIR_DEVICE_NONE, .src_device = WEIR_DEVICE_NONE, .a = is};
  if (h) head.b = atomic_load_explicit(&h->unrecorded, memory_order_relaxed);
  (void)spool_writer_extended(&t->writer, WEIR_EV_RECORDING, &head, NULL, 0);
}

/* Once a process. That it does not record all is in the header, whatever becomes of the record. */
static void note_change(thread_state *t, uint32_t is)
{
  uint32_t other = is == WEIR_RECORD_ALL ? WEIR_RECORD_MEMORY : WEIR_RECORD_ALL;
  spool_header *h = spool_current();
  if (!atomic_compare_exchange_strong(&noted, &other, is)) return;
  if (is != WEIR_RECORD_ALL) {
    atomic_store(&recording_left_out, true);
    if (h) atomic_fetch_add(&h->unrecorded_spans, 1);
    process_parts_leaves_out();
  }
  write_change(t, is);
}

void recording_change(thread_state *t, uint32_t word)
{
  uint32_t is = word == WEIR_RECORD_MEMORY ? WEIR_RECORD_MEMORY : WEIR_RECORD_ALL;
  if (is == t->recording) return; /* a damaged file's */
  int saved = errno;
  t->recording = is;
  t->passes = is == WEIR_RECORD_MEMORY && process_mode_now() == WEIR_OBSERVE;
  if (t->writer.epoch == spool_fork_epoch()) held_commit(&t->writer);
  t->questioned = t->paused = 0;
  recording_count(t);
  note_change(t, is);
  errno = saved;
}

/* ---- windows of the program's own ------------------------------------------------------------ */

void recording_steer(uint32_t recording)
{
  atomic_store_explicit(&spool_steering_now()->recording, recording, memory_order_relaxed);
}

void recording_window(bool begins)
{
  if (begins && !atomic_fetch_add(&open_windows, 1)) recording_steer(WEIR_RECORD_ALL);
  if (!begins && atomic_fetch_sub(&open_windows, 1) == 1) recording_steer(WEIR_RECORD_MEMORY);
}

/* Where it is called twice, the second changes nothing. */
void recording_profiler(bool starts)
{
  if (recording_by_profiler && atomic_exchange(&profiled, starts) != starts)
    recording_window(starts);
}

/* ---- the part -------------------------------------------------------------------------------- */

static void end_thread(void)
{
  recording_count(&thread_self);
}

static void forget_parent(void)
{
  atomic_store(&noted, WEIR_RECORD_ALL);
  atomic_store(&recording_left_out, false);
  atomic_store(&open_windows, 0);
  atomic_store(&profiled, false);
}

static const process_part part = {
    .thread_ends = end_thread, .exits = end_thread, .execs = end_thread, .forked = forget_parent};
PROCESS_PART(part);
