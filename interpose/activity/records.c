/* records.c: see records.h. */
#include "interpose/activity/records.h"

/* What we read of a record is where it was in the versions before. */
_Static_assert(offsetof(CUpti_ActivityMemcpy6, graphNodeId) == 64, "as in CUDA 11.8");
_Static_assert(offsetof(CUpti_ActivityMemcpyPtoP4, graphNodeId) == 72, "as in CUDA 11.8");
_Static_assert(offsetof(CUpti_ActivityMemset4, graphNodeId) == 64, "as in CUDA 11.8");
_Static_assert(offsetof(CUpti_ActivityKernel10, graphNodeId) == 144, "as in CUDA 11.8");
_Static_assert(offsetof(CUpti_ActivityOverhead3, start) == 24, "as in CUDA 11.8");

enum { MOST = 63 }; /* operations a record of ours: with its head 4 KiB */

typedef struct work_batch {
  spool_writer *pen;
  int64_t offset;
  bool clock_known;
  bool graphs_unnumbered; /* the numbers of graphs' work are not those of their launches */
  activity_counts *counts;
  size_t count;
  device_operation operation[MOST];
} work_batch;

static void write_batch(work_batch *b)
{
  trace_event head = {
      .start = clock_ticks(), .device = WEIR_DEVICE_NONE, .src_device = WEIR_DEVICE_NONE};
  if (b->count && !spool_writer_extended(b->pen, WEIR_EV_DEVICE_WORK, &head, b->operation,
                                         b->count * sizeof(device_operation)))
    b->counts->dropped += b->count;
  b->count = 0;
}

/* The one that has been filled at the end of the batch. */
static void add_operation(work_batch *b)
{
  device_operation *o = &b->operation[b->count++];
  if (!b->clock_known || !o->start || o->end < o->start) {
    b->counts->untimed++;
    o->start = o->end = 0;
  } else {
    o->start += (uint64_t)b->offset;
    o->end += (uint64_t)b->offset;
  }
  if (o->graph_node && b->graphs_unnumbered) o->correlation = 0;
  o->queued = b->clock_known && o->queued ? o->queued + (uint64_t)b->offset : 0;
  if (b->count == MOST) write_batch(b);
}

static uint8_t device_byte(uint32_t device)
{
  return device < WEIR_DEVICE_NONE ? (uint8_t)device : (uint8_t)WEIR_DEVICE_NONE;
}

/* Members that have one name in all of them. */
#define COMMON(r, what)                                                                            \
  .kind = (what), .start = (r)->start, .end = (r)->end, .correlation = (r)->correlationId,         \
  .device = device_byte((r)->deviceId), .context = (r)->contextId, .stream = (r)->streamId,        \
  .graph_node = (r)->graphNodeId

static void add_record(work_batch *b, const CUpti_Activity *record)
{
  const void *at = record;
  const CUpti_ActivityMemcpy6 *copy = at;
  const CUpti_ActivityMemcpyPtoP4 *peer = at;
  const CUpti_ActivityMemset4 *set = at;
  const CUpti_ActivityKernel10 *kernel = at;
  const CUpti_ActivityOverhead3 *overhead = at;
  device_operation *o = &b->operation[b->count];
  switch (record->kind) {
  case CUPTI_ACTIVITY_KIND_MEMCPY:
    *o = (device_operation){COMMON(copy, WEIR_DEVICE_COPY), .copy = copy->copyKind,
                            .bytes = copy->bytes};
    break;
  case CUPTI_ACTIVITY_KIND_MEMCPY2:
    *o = (device_operation){COMMON(peer, WEIR_DEVICE_COPY), .copy = peer->copyKind,
                            .bytes = peer->bytes};
    break;
  case CUPTI_ACTIVITY_KIND_MEMSET:
    *o = (device_operation){COMMON(set, WEIR_DEVICE_MEMSET), .bytes = set->bytes};
    break;
  case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
    *o = (device_operation){COMMON(kernel, WEIR_DEVICE_KERNEL), .queued = kernel->queued};
    break;
  case CUPTI_ACTIVITY_KIND_OVERHEAD:
    *o = (device_operation){.kind = WEIR_DEVICE_OVERHEAD,
                            .start = overhead->start,
                            .end = overhead->end,
                            .device = WEIR_DEVICE_NONE};
    break;
  default: /* of a kind that we have not asked for */
    return;
  }
  add_operation(b);
}

void activity_records_read(const cupti_session *s, spool_writer *pen, uint8_t *buffer, size_t bytes,
                           int64_t offset, bool clock_known, activity_counts *counts)
{
  static work_batch batch; /* of the one thread that reads */
  CUpti_Activity *record = NULL;
  batch.pen = pen;
  batch.offset = offset;
  batch.clock_known = clock_known;
  batch.counts = counts;
  batch.graphs_unnumbered = s->count > 1 && s->library->gates & CUPTI_GATE_GRAPHS_ONCE;
  while (session_next_record(s, buffer, bytes, &record) == CUPTI_SUCCESS)
    add_record(&batch, record);
  write_batch(&batch);
}
