/* record.c: records in CUPTI's layouts: of work, of calls, of waits; and how a client goes from one
 * to the next. Of the layouts of a kind it is always the newest of the Toolkit's headers at
 * 13.0. */
#include "cuda/sim/cupti/sim_cupti.h"

#include <string.h>
#include <unistd.h>

static const struct {
  CUpti_ActivityKind kind;
  size_t bytes;
} layouts[] = {
    {CUPTI_ACTIVITY_KIND_MEMCPY, sizeof(CUpti_ActivityMemcpy6)},
    {CUPTI_ACTIVITY_KIND_MEMCPY2, sizeof(CUpti_ActivityMemcpyPtoP4)},
    {CUPTI_ACTIVITY_KIND_MEMSET, sizeof(CUpti_ActivityMemset4)},
    {CUPTI_ACTIVITY_KIND_KERNEL, sizeof(CUpti_ActivityKernel10)},
    {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, sizeof(CUpti_ActivityKernel10)},
    {CUPTI_ACTIVITY_KIND_GRAPH_TRACE, sizeof(CUpti_ActivityGraphTrace2)},
    {CUPTI_ACTIVITY_KIND_DRIVER, sizeof(CUpti_ActivityAPI)},
    {CUPTI_ACTIVITY_KIND_RUNTIME, sizeof(CUpti_ActivityAPI)},
    {CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, sizeof(CUpti_ActivitySynchronization2)},
    {CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, sizeof(CUpti_ActivityExternalCorrelation)},
    {CUPTI_ACTIVITY_KIND_OVERHEAD, sizeof(CUpti_ActivityOverhead3)},
};

static _Atomic int thread_id_type = CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT;

/* Records are aligned to 8 bytes. */
size_t sim_record_bytes(CUpti_ActivityKind kind)
{
  for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
    if (layouts[i].kind == kind) return (layouts[i].bytes + 7) / 8 * 8;
  return 0;
}

/* To whom it has to go. */
#define PUT(record)                                                                                \
  do {                                                                                             \
    union {                                                                                        \
      __typeof__(record) of;                                                                       \
      char bytes[(sizeof(record) + 7) / 8 * 8];                                                    \
    } put = {.bytes = {0}};                                                                        \
    put.of = (record);                                                                             \
    sim_put(sim_wanting((record).kind), &put, sizeof put);                                         \
  } while (0)

CUPTI_API CUptiResult CUPTIAPI cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid,
                                                          CUpti_Activity **record)
{
  if (!buffer || !record) return CUPTI_ERROR_INVALID_PARAMETER;
  uint8_t *next = buffer;
  if (*record) next = (uint8_t *)*record + sim_record_bytes((*record)->kind);
  if (next >= buffer + valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  CUpti_Activity *at = (CUpti_Activity *)(void *)next;
  size_t bytes = sim_record_bytes(at->kind);
  if (!bytes || next + bytes > buffer + valid) return CUPTI_ERROR_INVALID_KIND;
  *record = at;
  return CUPTI_SUCCESS;
}

/* ---- work ------------------------------------------------------------------------------------ */

/* As a fault has it, else as it was. */
static void time_it(struct weir_watch_work *w)
{
  const struct sim_faults *f = sim_faults();
  if (f->zero_times && atomic_load(&sim_timestamp)) w->began = w->ended = 0;
  if (!f->reversed_times) return;
  uint64_t began = w->began;
  w->began = w->ended + 1;
  w->ended = began;
}

static uint8_t copy_kind(uint8_t from, uint8_t to)
{
  enum { HOST, ON_DEVICE, IN_ARRAY };
  static const uint8_t places[] = {[WEIR_WATCH_DEVICE] = ON_DEVICE,
                                   [WEIR_WATCH_MANAGED] = ON_DEVICE,
                                   [WEIR_WATCH_ARRAY] = IN_ARRAY};
  static const uint8_t kinds[3][3] = {
      {CUPTI_ACTIVITY_MEMCPY_KIND_HTOH, CUPTI_ACTIVITY_MEMCPY_KIND_HTOD,
       CUPTI_ACTIVITY_MEMCPY_KIND_HTOA},
      {CUPTI_ACTIVITY_MEMCPY_KIND_DTOH, CUPTI_ACTIVITY_MEMCPY_KIND_DTOD,
       CUPTI_ACTIVITY_MEMCPY_KIND_DTOA},
      {CUPTI_ACTIVITY_MEMCPY_KIND_ATOH, CUPTI_ACTIVITY_MEMCPY_KIND_ATOD,
       CUPTI_ACTIVITY_MEMCPY_KIND_ATOA}};
  return kinds[places[from]][places[to]];
}

/* What records of work have in common: when, where, for which call and node. */
#define WORK(w)                                                                                    \
  .start = (w)->began, .end = (w)->ended, .deviceId = (w)->device, .contextId = (w)->context,      \
  .streamId = (w)->stream, .correlationId = (w)->correlation, .graphId = (w)->graph

static void put_copy_record(const struct weir_watch_work *w)
{
  CUpti_ActivityMemcpy6 r = {.kind = CUPTI_ACTIVITY_KIND_MEMCPY,
                             WORK(w),
                             .copyKind = copy_kind(w->from, w->to),
                             .srcKind = w->from,
                             .dstKind = w->to,
                             .flags = w->async ? CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC : 0,
                             .bytes = w->bytes,
                             .graphNodeId = w->node,
                             .channelType = CUPTI_CHANNEL_TYPE_ASYNC_MEMCPY,
                             .copyCount = 1};
  PUT(r);
}

static void put_peer_copy(const struct weir_watch_work *w)
{
  CUpti_ActivityMemcpyPtoP4 r = {.kind = CUPTI_ACTIVITY_KIND_MEMCPY2,
                                 WORK(w),
                                 .copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_PTOP,
                                 .srcKind = w->from,
                                 .dstKind = w->to,
                                 .flags = w->async ? CUPTI_ACTIVITY_FLAG_MEMCPY_ASYNC : 0,
                                 .bytes = w->bytes,
                                 .srcDeviceId = w->from_device,
                                 .srcContextId = w->from_context,
                                 .dstDeviceId = w->to_device,
                                 .dstContextId = w->to_context,
                                 .graphNodeId = w->node,
                                 .channelType = CUPTI_CHANNEL_TYPE_ASYNC_MEMCPY};
  PUT(r);
}

static void put_fill(const struct weir_watch_work *w)
{
  CUpti_ActivityMemset4 r = {.kind = CUPTI_ACTIVITY_KIND_MEMSET,
                             WORK(w),
                             .value = w->value,
                             .bytes = w->bytes,
                             .flags = w->async ? CUPTI_ACTIVITY_FLAG_MEMSET_ASYNC : 0,
                             .memoryKind = w->to,
                             .graphNodeId = w->node,
                             .channelType = CUPTI_CHANNEL_TYPE_COMPUTE};
  PUT(r);
}

static void put_kernel(const struct weir_watch_work *w)
{
  static _Atomic int64_t grids;
  bool latency = atomic_load(&sim_latency_times);
  CUpti_ActivityKernel10 r = {.kind = sim_kernel_kind(w->context),
                              WORK(w),
                              .registersPerThread = 32,
                              .completed = w->ended,
                              .gridX = (int32_t)w->grid[0],
                              .gridY = (int32_t)w->grid[1],
                              .gridZ = (int32_t)w->grid[2],
                              .blockX = (int32_t)w->block[0],
                              .blockY = (int32_t)w->block[1],
                              .blockZ = (int32_t)w->block[2],
                              .dynamicSharedMemory = (int32_t)w->shared,
                              .gridId = ++grids,
                              .name = w->name,
                              .queued = latency ? w->queued : CUPTI_TIMESTAMP_UNKNOWN,
                              .submitted = latency ? w->queued : CUPTI_TIMESTAMP_UNKNOWN,
                              .launchType = CUPTI_ACTIVITY_LAUNCH_TYPE_REGULAR,
                              .graphNodeId = w->node,
                              .channelType = CUPTI_CHANNEL_TYPE_COMPUTE};
  PUT(r);
}

static void put_graph(const struct weir_watch_work *w)
{
  CUpti_ActivityGraphTrace2 r = {.kind = CUPTI_ACTIVITY_KIND_GRAPH_TRACE,
                                 WORK(w),
                                 .endDeviceId = w->device,
                                 .endContextId = w->context};
  PUT(r);
}

void sim_record_work(const struct weir_watch_work *work)
{
  struct weir_watch_work w = *work;
  time_it(&w);
  switch (w.kind) {
  case WEIR_WATCH_COPIES:
    put_copy_record(&w);
    break;
  case WEIR_WATCH_PEERS:
    put_peer_copy(&w);
    break;
  case WEIR_WATCH_FILLS:
    put_fill(&w);
    break;
  case WEIR_WATCH_KERNELS:
    put_kernel(&w);
    break;
  case WEIR_WATCH_GRAPHS:
    put_graph(&w);
    break;
  default:
    break;
  }
}

/* ---- calls ----------------------------------------------------------------------------------- */

static uint32_t thread_id(void)
{
  bool system = atomic_load(&thread_id_type) == CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM;
  return system ? (uint32_t)gettid() : (uint32_t)(uintptr_t)pthread_self();
}

CUPTI_API CUptiResult CUPTIAPI cuptiSetThreadIdType(CUpti_ActivityThreadIdType type)
{
  if ((unsigned)type >= CUPTI_ACTIVITY_THREAD_ID_TYPE_SIZE) return CUPTI_ERROR_NOT_SUPPORTED;
  atomic_store(&thread_id_type, (int)type);
  return CUPTI_SUCCESS;
}

CUPTI_API CUptiResult CUPTIAPI cuptiGetThreadIdType(CUpti_ActivityThreadIdType *type)
{
  if (!type) return CUPTI_ERROR_INVALID_PARAMETER;
  *type = (CUpti_ActivityThreadIdType)atomic_load(&thread_id_type);
  return CUPTI_SUCCESS;
}

static bool is_call(const struct weir_watch_call *call, const char *name)
{
  size_t n = strlen(name);
  if (strncmp(call->name, name, n) != 0) return false;
  const char *rest = call->name + n;
  return !*rest || strcmp(rest, "_ptsz") == 0 || strcmp(rest, "_v2") == 0;
}

/* The wait that a call of the driver is, by its first parameter; false: it is none. */
static bool read_wait(const struct weir_watch_call *call, CUpti_ActivitySynchronization2 *r)
{
  void *const *params = call->params; /* of waits all are pointers; cuCtxSynchronize has none */
  void *first = params ? params[0] : NULL;
  r->streamId = r->cudaEventId = CUPTI_SYNCHRONIZATION_INVALID_VALUE;
  if (is_call(call, "cuCtxSynchronize")) {
    r->type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE;
  } else if (is_call(call, "cuStreamSynchronize") || is_call(call, "cuStreamWaitEvent")) {
    bool waits = is_call(call, "cuStreamWaitEvent");
    bool per_thread = strstr(call->name, "_ptsz") != NULL;
    r->type = waits ? CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT
                    : CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE;
    r->streamId = sim_seam()->stream_id(call->context, first, per_thread);
    if (waits && params) r->cudaEventId = (uint32_t)((uintptr_t)params[1] >> 6);
  } else if (is_call(call, "cuEventSynchronize")) {
    r->type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE;
    r->cudaEventId = (uint32_t)((uintptr_t)first >> 6);
  } else {
    return false;
  }
  return true;
}

static void record_wait(const struct weir_watch_call *call, uint64_t ended)
{
  CUpti_ActivitySynchronization2 r = {.kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION,
                                      .start = call->began,
                                      .end = ended,
                                      .correlationId = call->correlation,
                                      .contextId = call->context_id,
                                      .returnValue = *(const uint32_t *)call->result};
  if (call->runtime || !read_wait(call, &r)) return;
  bool device = r.type == CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE;
  if (device && sim_faults()->lost_device_syncs) return;
  PUT(r);
}

/* "The activity API record will be preceded by a CUpti_ActivityExternalCorrelation record for each
 * CUpti_ExternalCorrelationKind." */
static void record_external_ids(const struct weir_watch_call *call)
{
  for (int k = 1; k < CUPTI_EXTERNAL_CORRELATION_KIND_SIZE; k++) {
    CUpti_ActivityExternalCorrelation r = {.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION,
                                           .externalKind = (CUpti_ExternalCorrelationKind)k,
                                           .correlationId = call->correlation};
    uint64_t id;
    if (!sim_external_id(r.externalKind, &id)) continue;
    r.externalId = id;
    PUT(r);
  }
}

void sim_record_call(const struct weir_watch_call *call, CUpti_CallbackId cbid)
{
  CUpti_ActivityKind kind =
      call->runtime ? CUPTI_ACTIVITY_KIND_RUNTIME : CUPTI_ACTIVITY_KIND_DRIVER;
  uint64_t ended = sim_client_now();
  if (sim_wants(CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, call->context_id)) record_wait(call, ended);
  if (!cbid || !sim_wants(kind, call->context_id)) return;
  if (sim_wants(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, call->context_id))
    record_external_ids(call);
  CUpti_ActivityAPI r = {.kind = kind,
                         .cbid = cbid,
                         .start = call->began,
                         .end = ended,
                         .processId = (uint32_t)getpid(),
                         .threadId = thread_id(),
                         .correlationId = call->correlation,
                         .returnValue = *(const uint32_t *)call->result};
  PUT(r);
}

void sim_record_flush(uint64_t began, uint64_t ended)
{
  if (!sim_wants(CUPTI_ACTIVITY_KIND_OVERHEAD, 0)) return;
  CUpti_ActivityOverhead3 r = {.kind = CUPTI_ACTIVITY_KIND_OVERHEAD,
                               .overheadKind = CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH,
                               .objectKind = CUPTI_ACTIVITY_OBJECT_THREAD,
                               .start = began,
                               .end = ended};
  r.objectId.pt.processId = (uint32_t)getpid();
  r.objectId.pt.threadId = thread_id();
  PUT(r);
}
