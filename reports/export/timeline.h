/* timeline.h: a trace as other timelines have one: tracks, and what is on them.
 *
 * Each thread of a process is a track, on which calls never overlap. A stream of a device is one,
 * as the device was seen working (weir run --device-times), and so are the NVTX ranges of a
 * thread; where those of one overlap, as graphs' branches and nested ranges do, it is several, so
 * that nothing on a track overlaps. A device has its live memory. An item comes after the tracks
 * it names; calls come as the trace has them, all else in the order of time. Memory does not grow
 * with the trace; what is sorted is in a temporary file where it is much. */
#ifndef WEIR_REPORTS_EXPORT_TIMELINE_H
#define WEIR_REPORTS_EXPORT_TIMELINE_H

#include "reports/export/input.h"

typedef enum timeline_kind {
  TIMELINE_PROCESS, /* a group of tracks */
  TIMELINE_THREAD,  /* a track */
  TIMELINE_DEVICE,  /* a group of tracks, with a number over time: bytes live */
  TIMELINE_STREAM,  /* a track */
  TIMELINE_RANGES,  /* a track */
  TIMELINE_CALL,    /* on a thread */
  TIMELINE_WORK,    /* on a stream */
  TIMELINE_RANGE,   /* on a track of ranges */
  TIMELINE_LIVE     /* of a device */
} timeline_kind;

/* Texts are borrowed until the callback returns, and are whatever the trace has. */
typedef struct timeline_item {
  timeline_kind kind;
  uint64_t track;          /* of a track or group: its number, no other's; else: that it is on */
  uint64_t group;          /* of a track: that it is in */
  const char *name;        /* of the program, thread, function, kernel; NULL: none */
  const char *category;    /* of a call: the kind of event; of work: "device"; of a range: "nvtx" */
  const char *kernel;      /* of a call that launches one; or NULL */
  int64_t pid, tid;        /* of processes, threads, calls, ranges */
  int64_t device;          /* ordinal, -1 unknown: of devices, streams, work, live */
  int64_t context, stream; /* of streams: the device's own numbers of them */
  int64_t start, end;      /* ns since the trace began: of calls, work; start: of live */
  int64_t call;          /* of a call: its row; of work: the call's that asked for it, 0 unknown */
  bool works;            /* of a call: work of it is there */
  bool sized;            /* `bytes` is known */
  int64_t bytes;         /* of calls and work; of live: at that moment */
  int64_t status, stack; /* of calls */
} timeline_item;

typedef weir_status timeline_take(void *context, const timeline_item *item);

/* Errors: those that `take` returns, EIO, ECORRUPT, ENOMEM. */
weir_status timeline_walk(const wr_db *db, timeline_take *take, void *context);

#endif
