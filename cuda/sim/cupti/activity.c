/* activity.c: which kinds of records are wanted, and the settings of the activity API. */
#include "cuda/sim/cupti/sim_cupti.h"

#include <string.h>

enum { CONTEXTS = 64, IDS = 64 };

_Atomic(CUpti_TimestampCallbackFunc) sim_timestamp;
_Atomic bool sim_latency_times;

static _Atomic uint64_t enabled[SIM_CLIENTS]; /* a bit a kind, for every context */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
  _Atomic uint32_t context; /* 0: none */
  _Atomic uint64_t enabled; /* for this one, by the client that is no subscriber */
} contexts[CONTEXTS];
static uint32_t flush_period; /* ms, stated and not needed: full buffers go back at once */

/* ---- kinds ----------------------------------------------------------------------------------- */

static uint64_t bit(CUpti_ActivityKind kind)
{
  return (unsigned)kind < 64 ? (uint64_t)1 << kind : 0;
}

static bool is_kernels(CUpti_ActivityKind kind)
{
  return kind == CUPTI_ACTIVITY_KIND_KERNEL || kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
}

static uint64_t enabled_by_any(void)
{
  uint64_t kinds = 0;
  for (int i = 0; i < SIM_CLIENTS; i++)
    kinds |= atomic_load(&enabled[i]);
  return kinds;
}

bool sim_wants(CUpti_ActivityKind kind, uint32_t context)
{
  if (enabled_by_any() & bit(kind)) return true;
  for (int i = 0; context && i < CONTEXTS; i++)
    if (atomic_load(&contexts[i].context) == context)
      return atomic_load(&contexts[i].enabled) & bit(kind);
  return false;
}

/* Where there are not several, the one client gets what was wanted when it was asked for. */
uint32_t sim_wanting(CUpti_ActivityKind kind)
{
  uint32_t wanting = 0;
  uint64_t bits = bit(kind);
  if (is_kernels(kind))
    bits = bit(CUPTI_ACTIVITY_KIND_KERNEL) | bit(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  for (unsigned i = 1; i < SIM_CLIENTS; i++)
    if (atomic_load(&enabled[i]) & bits) wanting |= 1u << i;
  return wanting || sim_several() ? wanting : 1;
}

void sim_enable(unsigned client, CUpti_ActivityKind kind, bool on)
{
  if (on) sim_allocate_own();
  if (on)
    atomic_fetch_or(&enabled[client], bit(kind));
  else
    atomic_fetch_and(&enabled[client], ~bit(kind));
  sim_watch_what_is_wanted();
}

void sim_enable_nothing(unsigned client)
{
  atomic_store(&enabled[client], 0);
}

bool sim_enables_any(unsigned client)
{
  return atomic_load(&enabled[client]) != 0;
}

CUpti_ActivityKind sim_kernel_kind(uint32_t context)
{
  bool serial = sim_wants(CUPTI_ACTIVITY_KIND_KERNEL, context) &&
                !sim_wants(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, context);
  return serial ? CUPTI_ACTIVITY_KIND_KERNEL : CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
}

static const struct {
  CUpti_ActivityKind kind;
  uint32_t watched;
} watched_for[] = {
    {CUPTI_ACTIVITY_KIND_MEMCPY, WEIR_WATCH_COPIES},
    {CUPTI_ACTIVITY_KIND_MEMCPY2, WEIR_WATCH_PEERS},
    {CUPTI_ACTIVITY_KIND_MEMSET, WEIR_WATCH_FILLS},
    {CUPTI_ACTIVITY_KIND_KERNEL, WEIR_WATCH_KERNELS},
    {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, WEIR_WATCH_KERNELS},
    {CUPTI_ACTIVITY_KIND_GRAPH_TRACE, WEIR_WATCH_GRAPHS},
    {CUPTI_ACTIVITY_KIND_DRIVER, WEIR_WATCH_CALLS},
    {CUPTI_ACTIVITY_KIND_RUNTIME, WEIR_WATCH_CALLS},
    {CUPTI_ACTIVITY_KIND_SYNCHRONIZATION, WEIR_WATCH_CALLS},
};

uint32_t sim_wanted_kinds(void)
{
  uint64_t kinds = enabled_by_any();
  for (int i = 0; i < CONTEXTS; i++)
    if (atomic_load(&contexts[i].context)) kinds |= atomic_load(&contexts[i].enabled);
  uint32_t what = 0;
  for (size_t i = 0; i < sizeof watched_for / sizeof *watched_for; i++)
    if (kinds & bit(watched_for[i].kind)) what |= watched_for[i].watched;
  return what;
}

CUptiResult sim_check_kind(CUpti_ActivityKind kind, bool on)
{
  if (!sim_seam()) return CUPTI_ERROR_NOT_INITIALIZED;
  if (!sim_record_bytes(kind)) return CUPTI_ERROR_INVALID_KIND;
  if (on) return (CUptiResult)sim_faults()->enable_answers;
  if (is_kernels(kind) && sim_faults()->disable_hangs) sim_hang("kernels are disabled");
  return CUPTI_SUCCESS;
}

CUPTI_API CUptiResult CUPTIAPI cuptiActivityEnable(CUpti_ActivityKind kind)
{
  CUptiResult error =
      sim_several() ? CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED : sim_check_kind(kind, true);
  if (!error) sim_enable(0, kind, true);
  return error;
}

/* "This function also dumps" what there is of objects that live: of kinds that are not made
 * here. */
CUPTI_API CUptiResult CUPTIAPI cuptiActivityEnableAndDump(CUpti_ActivityKind kind)
{
  return cuptiActivityEnable(kind);
}

CUPTI_API CUptiResult CUPTIAPI cuptiActivityDisable(CUpti_ActivityKind kind)
{
  CUptiResult error = sim_check_kind(kind, false);
  if (!error) sim_enable(0, kind, false);
  return error;
}

/* The context's place, a free one if it has none; -1: there is no more room. */
static int place_of_context(uint32_t context)
{
  int place = -1;
  for (int i = 0; i < CONTEXTS; i++) {
    uint32_t here = atomic_load(&contexts[i].context);
    if (here == context) return i;
    if (!here && place < 0) place = i;
  }
  return place;
}

static CUptiResult for_context(CUcontext context, CUpti_ActivityKind kind, bool on)
{
  CUptiResult error = sim_check_kind(kind, on);
  if (!error && on && sim_several()) error = CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  if (error) return error;
  uint32_t id = context ? sim_seam()->context_device(context, NULL) : 0;
  if (!id) return CUPTI_ERROR_INVALID_CONTEXT;
  pthread_mutex_lock(&lock);
  int i = place_of_context(id);
  if (i >= 0 && on)
    atomic_fetch_or(&contexts[i].enabled, bit(kind));
  else if (i >= 0)
    atomic_fetch_and(&contexts[i].enabled, ~bit(kind));
  if (i >= 0) atomic_store(&contexts[i].context, id);
  pthread_mutex_unlock(&lock);
  sim_watch_what_is_wanted();
  return i >= 0 ? CUPTI_SUCCESS : CUPTI_ERROR_MAX_LIMIT_REACHED;
}

CUPTI_API CUptiResult CUPTIAPI cuptiActivityEnableContext(CUcontext context,
                                                          CUpti_ActivityKind kind)
{
  return for_context(context, kind, true);
}

CUPTI_API CUptiResult CUPTIAPI cuptiActivityDisableContext(CUcontext context,
                                                           CUpti_ActivityKind kind)
{
  return for_context(context, kind, false);
}

/* ---- flushes, clocks, the end ---------------------------------------------------------------- */

CUPTI_API CUptiResult CUPTIAPI cuptiActivityFlushAll(uint32_t flag)
{
  (void)flag; /* no record here is ever incomplete */
  return sim_seam() ? sim_flush() : CUPTI_ERROR_NOT_INITIALIZED;
}

CUPTI_API CUptiResult CUPTIAPI cuptiActivityFlush(CUcontext context, uint32_t stream, uint32_t flag)
{
  (void)context, (void)stream;
  return cuptiActivityFlushAll(flag);
}

CUPTI_API CUptiResult CUPTIAPI cuptiActivityFlushPeriod(uint32_t time)
{
  flush_period = time;
  return CUPTI_SUCCESS;
}

CUPTI_API CUptiResult CUPTIAPI
cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc function)
{
  if (!function) return CUPTI_ERROR_INVALID_PARAMETER;
  if (sim_several()) return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  atomic_store(&sim_timestamp, function);
  return CUPTI_SUCCESS;
}

CUPTI_API CUptiResult CUPTIAPI cuptiGetTimestamp(uint64_t *timestamp)
{
  if (!timestamp) return CUPTI_ERROR_INVALID_PARAMETER;
  *timestamp = sim_client_now();
  return CUPTI_SUCCESS;
}

CUPTI_API CUptiResult CUPTIAPI cuptiActivityEnableLatencyTimestamps(uint8_t enable)
{
  atomic_store(&sim_latency_times, enable != 0);
  return CUPTI_SUCCESS;
}

static void nothing_enabled(void)
{
  for (int i = 0; i < SIM_CLIENTS; i++)
    atomic_store(&enabled[i], 0);
  for (int i = 0; i < CONTEXTS; i++) {
    atomic_store(&contexts[i].enabled, 0);
    atomic_store(&contexts[i].context, 0);
  }
}

/* "Will return early without performing a tear-down if more than one subscriber is active"
 * (13.2). */
CUPTI_API CUptiResult CUPTIAPI cuptiFinalize(void)
{
  if (sim_subscriber_count() > 1) return CUPTI_SUCCESS;
  if (sim_faults()->finalize_crashes && atomic_load(&sim_graph_launched))
    sim_crash("it is finalised after a graph was launched");
  nothing_enabled();
  sim_subscribers_end();
  sim_watch_what_is_wanted();
  sim_buffers_end();
  atomic_store(&sim_timestamp, NULL);
  return CUPTI_SUCCESS;
}

static void activity_in_child(void)
{
  pthread_mutex_init(&lock, NULL);
  nothing_enabled();
}

__attribute__((constructor)) static void watch_forks_of_activity(void)
{
  pthread_atfork(NULL, NULL, activity_in_child);
}

/* ---- attributes ------------------------------------------------------------------------------ */

/* Sizes of a device's own buffers: the software device has none, so what is stated is only kept. */
static struct {
  CUpti_ActivityAttribute attribute;
  size_t bytes;
  _Atomic size_t value;
} attributes[] = {
    {CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE, sizeof(size_t), 3200000},
    {CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE_CDP, sizeof(size_t), 8 << 20},
    {CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_POOL_LIMIT, sizeof(size_t), 250},
    {CUPTI_ACTIVITY_ATTR_PROFILING_SEMAPHORE_POOL_SIZE, sizeof(size_t), 25000},
    {CUPTI_ACTIVITY_ATTR_PROFILING_SEMAPHORE_POOL_LIMIT, sizeof(size_t), 250},
    {CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, sizeof(uint8_t), 0},
    {CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_PRE_ALLOCATE_VALUE, sizeof(size_t), 3},
    {CUPTI_ACTIVITY_ATTR_PROFILING_SEMAPHORE_PRE_ALLOCATE_VALUE, sizeof(size_t), 3},
    {CUPTI_ACTIVITY_ATTR_MEM_ALLOCATION_TYPE_HOST_PINNED, sizeof(uint8_t), 1},
};

static CUptiResult find_attribute(CUpti_ActivityAttribute attribute, const size_t *bytes,
                                  const void *value, size_t *index)
{
  size_t count = sizeof attributes / sizeof *attributes;
  if (!bytes || !value) return CUPTI_ERROR_INVALID_PARAMETER;
  for (*index = 0; *index < count; ++*index) {
    if (attributes[*index].attribute != attribute) continue;
    return *bytes < attributes[*index].bytes ? CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT
                                             : CUPTI_SUCCESS;
  }
  return CUPTI_ERROR_INVALID_PARAMETER;
}

CUPTI_API CUptiResult CUPTIAPI cuptiActivityGetAttribute(CUpti_ActivityAttribute attribute,
                                                         size_t *bytes, void *value)
{
  size_t i;
  CUptiResult error = find_attribute(attribute, bytes, value, &i);
  if (error) return error;
  size_t now = atomic_load(&attributes[i].value);
  memcpy(value, &now, attributes[i].bytes); /* of a little-endian machine */
  *bytes = attributes[i].bytes;
  return CUPTI_SUCCESS;
}

CUPTI_API CUptiResult CUPTIAPI cuptiActivitySetAttribute(CUpti_ActivityAttribute attribute,
                                                         size_t *bytes, void *value)
{
  size_t i, now = 0;
  CUptiResult error = find_attribute(attribute, bytes, value, &i);
  if (error) return error;
  memcpy(&now, value, attributes[i].bytes);
  atomic_store(&attributes[i].value, now);
  return CUPTI_SUCCESS;
}

/* ---- external correlation -------------------------------------------------------------------- */

/* A thread's, made at its first push: memory that the loader would have to find for a thread that
 * only reads, it may not find, and then it ends the program. */
struct external_ids {
  unsigned depth;
  uint64_t id[IDS];
};

static __thread struct external_ids *external; /* of all kinds; NULL: none was pushed */
static pthread_once_t external_once = PTHREAD_ONCE_INIT;
static pthread_key_t external_key; /* frees them at the end of a thread */
static bool external_keyed;

static bool is_external(CUpti_ExternalCorrelationKind kind)
{
  return kind > CUPTI_EXTERNAL_CORRELATION_KIND_INVALID &&
         kind < CUPTI_EXTERNAL_CORRELATION_KIND_SIZE;
}

static void free_external(void *ids)
{
  external = NULL;
  free(ids);
}

static void make_external_key(void)
{
  external_keyed = pthread_key_create(&external_key, free_external) == 0;
}

static bool make_external(void)
{
  if (external) return true;
  (void)pthread_once(&external_once, make_external_key);
  external = external_keyed ? calloc(CUPTI_EXTERNAL_CORRELATION_KIND_SIZE, sizeof *external) : NULL;
  if (external && pthread_setspecific(external_key, external)) free_external(external);
  return external != NULL;
}

bool sim_external_id(CUpti_ExternalCorrelationKind kind, uint64_t *id)
{
  if (!is_external(kind) || !external || !external[kind].depth) return false;
  *id = external[kind].id[external[kind].depth - 1];
  return true;
}

CUPTI_API CUptiResult CUPTIAPI
cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind kind, uint64_t id)
{
  if (!is_external(kind)) return CUPTI_ERROR_INVALID_PARAMETER;
  if (!make_external() || external[kind].depth == IDS) return CUPTI_ERROR_OUT_OF_MEMORY;
  external[kind].id[external[kind].depth++] = id;
  return CUPTI_SUCCESS;
}

CUPTI_API CUptiResult CUPTIAPI
cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind kind, uint64_t *last)
{
  uint64_t id;
  if (!is_external(kind)) return CUPTI_ERROR_INVALID_PARAMETER;
  if (!sim_external_id(kind, &id)) return CUPTI_ERROR_QUEUE_EMPTY;
  external[kind].depth--;
  if (last) *last = id;
  return CUPTI_SUCCESS;
}

/* ---- numbers of handles ---------------------------------------------------------------------- */

CUPTI_API CUptiResult CUPTIAPI cuptiGetContextId(CUcontext context, uint32_t *id)
{
  if (!id) return CUPTI_ERROR_INVALID_PARAMETER;
  if (!sim_seam()) return CUPTI_ERROR_NOT_INITIALIZED;
  *id = context ? sim_seam()->context_device(context, NULL) : 0;
  return *id ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_CONTEXT;
}

CUPTI_API CUptiResult CUPTIAPI cuptiGetDeviceId(CUcontext context, uint32_t *id)
{
  if (!id) return CUPTI_ERROR_INVALID_PARAMETER;
  if (!sim_seam()) return CUPTI_ERROR_NOT_INITIALIZED;
  return sim_seam()->context_device(context, id) ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_CONTEXT;
}

CUPTI_API CUptiResult CUPTIAPI cuptiGetStreamIdEx(CUcontext context, CUstream stream,
                                                  uint8_t per_thread, uint32_t *id)
{
  if (!id) return CUPTI_ERROR_INVALID_PARAMETER;
  if (!sim_seam()) return CUPTI_ERROR_NOT_INITIALIZED;
  *id = sim_seam()->stream_id(context, stream, per_thread != 0);
  return *id ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_STREAM;
}

CUPTI_API CUptiResult CUPTIAPI cuptiGetStreamId(CUcontext context, CUstream stream, uint32_t *id)
{
  return cuptiGetStreamIdEx(context, stream, 0, id);
}

CUPTI_API CUptiResult CUPTIAPI cuptiGetGraphNodeId(CUgraphNode node, uint64_t *id)
{
  if (!id) return CUPTI_ERROR_INVALID_PARAMETER;
  if (!sim_seam()) return CUPTI_ERROR_NOT_INITIALIZED;
  *id = sim_seam()->node_id(node);
  return *id ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}

CUPTI_API CUptiResult CUPTIAPI cuptiGetGraphId(CUgraph graph, uint32_t *id)
{
  if (!id) return CUPTI_ERROR_INVALID_PARAMETER;
  if (!sim_seam()) return CUPTI_ERROR_NOT_INITIALIZED;
  *id = sim_seam()->graph_id(graph);
  return *id ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}

CUPTI_API CUptiResult CUPTIAPI cuptiGetGraphExecId(CUgraphExec exec, uint32_t *id)
{
  if (!id) return CUPTI_ERROR_INVALID_PARAMETER;
  if (!sim_seam()) return CUPTI_ERROR_NOT_INITIALIZED;
  *id = sim_seam()->exec_id(exec);
  return *id ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}
