/* order_span.h: what one thread queues into the streams of a process between two times at which the host knows that all is
 * complete: a *span*. Without some of the waits of streams for events in it, is all that touches common memory still in the
 * order it was in, and does the host still know as much where it waits; and how long would the span take.
 *
 * Order is followed by vector clocks: of each stream, of each event and of the host, how many operations of each
 * stream are known to come before. Two operations that name a common block had an order, by streams, events and waits of the
 * host, or had none: the order that they had must be left. That holds for what comes by way of a third stream too.
 *
 * Time is followed by a model of a device with three engines, for copies either way and for kernels, memsets and
 * copies within it. Each runs one operation at a time: what two kernels gain next to each other is not known. */
#ifndef WEIR_REPORTS_ORDER_SPAN_H
#define WEIR_REPORTS_ORDER_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  WR_SPAN_STREAMS = 32,
  WR_SPAN_OPS = 1 << 15,
  WR_SPAN_BLOCKS = 2048,
  WR_SPAN_EVENTS = 512,
  WR_SPAN_PLACES = 16, /* that have waits of streams */
  WR_SPAN_DEVICES = 4,
  WR_SPAN_ENGINES = 3 /* of a device */
};

typedef enum wr_span_kind {
  WR_SPAN_WORK,
  WR_SPAN_RECORD,
  WR_SPAN_STREAM_WAITS,
  WR_SPAN_HOST_FOR_EVENT,
  WR_SPAN_HOST_FOR_STREAM,
  WR_SPAN_HOST_FOR_CONTEXT
} wr_span_kind;

typedef struct wr_span_op {
  int64_t event;         /* row */
  int64_t start, ns;     /* of the call */
  int64_t device_ns;     /* of work: how long a device is at it */
  uint32_t first, named; /* of work: its blocks in wr_span.named */
  uint32_t template;     /* its place among the templates */
  uint16_t slot;         /* of the event; of a wait for a context, that */
  uint8_t kind, stream;  /* wr_span_kind; place in wr_span.stream */
  uint8_t engine;        /* of work */
  uint8_t place;         /* of a stream's wait: where it is called, from 0 */
  bool waits;            /* work: the host waits until it is complete */
} wr_span_op;

typedef struct wr_span_stream {
  uint64_t handle; /* 0: it was destroyed */
  int context;
  bool legacy, blocking; /* blocking: it and the legacy default stream wait for each other */
  uint32_t queued, done; /* operations; known to be complete by a wait for this stream itself */
} wr_span_stream;

typedef struct wr_span {
  wr_span_op *op; /* owned */
  size_t ops, op_capacity;
  uint32_t *named; /* owned: blocks by number, from 0, of each operation together */
  size_t names, name_capacity;
  wr_span_stream stream[WR_SPAN_STREAMS];
  uint32_t streams, blocks, events, places;
} wr_span;

/* What is left out. */
typedef struct wr_span_without {
  uint32_t places; /* bits: the waits of these */
  bool legacy;     /* the order of the legacy default stream, but where a block is common */
} wr_span_without;

/* Whether what has common memory keeps its order. False as well: out of memory. */
bool wr_span_holds(const wr_span *s, wr_span_without without);

/* ns that the host and the devices take; -1: out of memory. */
int64_t wr_span_time(const wr_span *s, wr_span_without without);

#endif
