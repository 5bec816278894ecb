/* copy_times.h: what a device takes for asynchronous copies between page-locked memory and devices, and how much of it
 * the host waits for later, of traces without device times.
 *
 * The call of such a copy returns before the copy is made: without the copy the run gains the call, and of the time that the
 * device takes for it at most what the host then waits for the stream. How fast copies are made is measured in the run: by
 * copies that had nothing before them and waited by themselves, and by copies that a wait covers with nothing else, which were
 * made between the call of the first and the end of the wait. The fastest of one direction, device and memory counts. Where
 * there is none, other waits that cover copies show how slow they can have been, and they are taken to be as fast as a link is
 * mostly, or that fast. Where no copy is large enough for that, nothing is known. */
#ifndef WEIR_REPORTS_COPY_TIMES_H
#define WEIR_REPORTS_COPY_TIMES_H

#include "reports/events/events.h"
#include "reports/findings/judge.h"

typedef struct wr_copy_time {
  int64_t id, start, duration; /* event; ns; of the call */
  int64_t
      device_ns; /* that the device takes for it, as far as the host waits so long; 0: not known */
  uint64_t bytes;
  uint32_t pace; /* place in wr_copy_times.pace */
  uint32_t wait; /* that covers it, place in wr_copy_times.wait from 1; 0: none */
  uint32_t next; /* private: in its stream, from 1 */
  uint32_t thread;
  bool up; /* to a device */
} wr_copy_time;

typedef struct wr_covering_wait {
  int64_t id, start, ns, gain; /* gain: ns that the run gains without it, at most */
  int64_t process;
  uint64_t bytes; /* that it copies itself, */
  uint32_t pace;  /* of the place in wr_copy_times.pace from 1; 0: it copies nothing */
  uint32_t thread;
} wr_covering_wait;

/* Copies of one direction, device and kind of memory. */
typedef struct wr_copy_pace {
  double per_ns; /* bytes, of the fastest; 0: not known, */
  double least;  /* and then at least these, of the others; 0: not known */
  /* private: of those that one wait covers */
  uint64_t bytes;
  int64_t first; /* start */
} wr_copy_pace;

typedef struct wr_copy_times {
  wr_copy_time *copy;            /* owned, in order of time */
  wr_covering_wait *wait;        /* owned, in order of time */
  wr_copy_pace *pace;            /* owned */
  struct wr_copy_stream *stream; /* owned */
  uint64_t *of_copy;             /* owned: of a copy its stream's key */
  size_t copies, copy_capacity, keys_capacity, waits, wait_capacity, paces, pace_capacity, streams,
      stream_capacity;
  hash_map by_id, by_pace, by_stream; /* by_id: of copies, place from 1 */
} wr_copy_times;

/* The next events, in order of time. Errors: ENOMEM. */
weir_status wr_copy_times_take(wr_copy_times *x, const wr_event events[], size_t count);

/* There are no more, and waits are known. Errors: those of `c`, ENOMEM. */
weir_status wr_copy_times_end(wr_copy_times *x, wr_case *c);
void wr_copy_times_close(wr_copy_times *x);

/* Of an event; NULL: it is no such copy, or nothing is known of it. */
const wr_copy_time *wr_copy_times_find(const wr_copy_times *x, int64_t event);

#endif
