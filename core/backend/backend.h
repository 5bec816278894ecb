/* backend.h: the one seam a device implements.
 *
 * A backend is one device: a `self`, a segment source (core/backend/segment.h) and the stream and
 * event functions that notify the allocator when work is complete. Streams and events are the
 * device's own handles, opaque here; the stream NULL is the device's default stream.
 *
 * A marker is an event that the allocator records in a stream: it is complete when everything
 * submitted to that stream before it is. An event holds its latest record only.
 *
 * All functions may be called from any thread, and while streams are being captured, of whatever
 * mode (CUDA: under cudaStreamCaptureModeRelaxed). None may call back into the allocator. */
#ifndef WEIR_BACKEND_BACKEND_H
#define WEIR_BACKEND_BACKEND_H

#include <stdbool.h>
#include "core/backend/compute.h"
#include "core/backend/segment.h"
#include "core/weir/graph.h"

/* Which way a copy goes: host memory, and this device's. */
enum weir_copy_way { WEIR_COPY_TO_DEVICE, WEIR_COPY_TO_HOST, WEIR_COPY_WITHIN };

enum weir_event_flags { WEIR_EVENT_TIMING = 1, WEIR_EVENT_BLOCKING = 2 };

typedef struct weir_backend {
  const char *name; /* "cuda", "cpu", "fake" (static) */
  int index;        /* device number, for messages and snapshots */
  void *self;       /* the device's own, first argument of every function */
  weir_source source;

  weir_status (*event_create)(void *self, void **event);
  weir_status (*event_destroy)(void *self, void *event);
  weir_status (*event_record)(void *self, void *event, void *stream);
  weir_status (*event_query)(void *self, void *event, bool *complete);
  weir_status (*event_wait)(void *self, void *stream, void *event); /* the stream waits */
  weir_status (*event_sync)(void *self, void *event);               /* the host waits */

  /* Optional. True: the stream is being captured into a graph, so nothing may be recorded in it,
   * nor made to wait: also when the stream is one that a capture elsewhere forbids to touch (the
   * legacy default stream). Missing: no stream ever is. */
  bool (*stream_capturing)(void *self, void *stream);

  /* Optional. Whether memory can be allocated for the stream with the program's handle `native`,
   * and the one handle it has here where it has several. Missing: any handle is a stream. */
  weir_status (*stream_adopt)(void *self, void *native, void **stream);

  /* Optional, both or none: a stream in addition to all others, the default one included; destroyed
   * when no block or marker needs it any more. Missing: streams are the program's alone. */
  weir_status (*stream_create)(void *self, void **stream);
  weir_status (*stream_destroy)(void *self, void *stream);

  /* Optional. The calling thread made this device its current one: the device's own runtime may
   * follow (cudaSetDevice). Missing: nobody is notified. */
  void (*make_current)(void *self);
  /* Optional, both or none: what is current for the thread in that runtime, which may be none of
   * these devices, and bringing it back. Missing: a guard makes the former device current. */
  void *(*current)(void *self);
  void (*bring_back)(void *self, void *current);

  /* Optional, both or none: copies between the device and plain host memory, done when they return;
   * they wait for no stream and no stream waits for them. Missing: memory that is paused cannot be
   * saved. */
  weir_status (*copy_to_host)(void *self, void *to, uint64_t from, uint64_t bytes);
  weir_status (*copy_to_device)(void *self, uint64_t to, const void *from, uint64_t bytes);

  /* Optional, all or none; what tensors need in addition to memory. Missing: no tensor can be here.
   *   copy       enqueues a copy of contiguous bytes. From or to page-locked host memory it returns
   *              at once; pageable memory to the device has been read when it returns, and to the
   *              host has been written.
   *   copy_done  the same, and waits for all work in the stream, which is not being captured.
   *   copy_peer  in a stream of this device, from memory of another device of the same kind;
   *              directly where peer access can be had (it is enabled at the first use), else by
   *              the driver's staging.
   *   stream_sync, stream_query  the host waits for, or asks whether it has completed, all work in
   *              the stream; an error of that work shows here, or at any later call.
   *   compute    what it calculates (borrowed, static). */
  weir_status (*copy)(void *self, void *stream, enum weir_copy_way way, void *to, const void *from,
                      uint64_t bytes);
  weir_status (*copy_done)(void *self, void *stream, enum weir_copy_way way, void *to,
                           const void *from, uint64_t bytes);
  weir_status (*copy_peer)(void *self, void *stream, void *to, const struct weir_backend *source,
                           const void *from, uint64_t bytes);
  weir_status (*stream_sync)(void *self, void *stream);
  weir_status (*stream_query)(void *self, void *stream, bool *complete);
  const weir_compute *compute;

  /* Optional, all or none: streams by priority, and all of them at once. Lower numbers go first;
   * the device distinguishes those from `least`, 0, down to `greatest` apart, others are the
   * nearest. */
  weir_status (*stream_create_at)(void *self, int priority, void **stream);
  weir_status (*stream_priority)(void *self, void *stream, int *priority);
  weir_status (*stream_priorities)(void *self, int *least, int *greatest);
  weir_status (*device_sync)(void *self); /* as stream_sync, all streams; none is captured */

  /* Optional, both or none: events with flags (weir_event_flags), and the time from one to the
   * other, both recorded and complete, in ms. Missing: events of event_create. */
  weir_status (*event_create_as)(void *self, unsigned flags, void **event);
  weir_status (*event_elapsed)(void *self, void *start, void *end, float *ms);

  /* Optional, all or none: graphs. What is given to the stream (not the default one) between begin
   * and end is recorded, and *graph does it when it is launched. An end that fails has ended the
   * capture, unless stream_capturing() states otherwise. Destroying waits for nothing. */
  weir_status (*capture_begin)(void *self, void *stream, enum weir_capture_mode mode);
  weir_status (*capture_end)(void *self, void *stream, void **graph);
  weir_status (*graph_launch)(void *self, void *graph, void *stream);
  weir_status (*graph_destroy)(void *self, void *graph);
} weir_backend;

/* The host itself (core/backend/cpu/cpu.c): no allocator stands before it, its only stream is NULL,
 * and everything is done when it returns. */
extern const weir_backend weir_cpu_backend;

#endif
