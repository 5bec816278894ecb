/* device.c: see device.h. The driver's own functions are called, never a wrapper,
 * with the context current for as long as that takes. The pointer map knows a cache's memory from
 * the moment the driver gives it until it goes back, whoever has it meanwhile. While a stream
 * capture is live nothing is recorded or queried: the work that a marker would have covered counts
 * as not complete (captures.h). */
#include "interpose/reroute/device.h"

#include "interpose/record/captures.h"
#include "interpose/record/context.h"
#include "interpose/record/event_fill.h"
#include "interpose/record/pointers.h"

/* Makes the context current. *pushed: it was not. */
static CUresult push_context(const reroute_device *d, bool *pushed)
{
  CUcontext now = NULL;
  PFN_cuCtxGetCurrent_v4000 ask = WEIR_HELPER(cuCtxGetCurrent);
  PFN_cuCtxPushCurrent_v4000 push = WEIR_HELPER(cuCtxPushCurrent_v2);
  *pushed = false;
  CUresult r = ask(&now);
  if (r != CUDA_SUCCESS || now == d->context) return r;
  r = push(d->context);
  *pushed = r == CUDA_SUCCESS;
  return r;
}

static void pop_context(bool pushed)
{
  CUcontext was;
  PFN_cuCtxPopCurrent_v4000 pop = WEIR_HELPER(cuCtxPopCurrent_v2);
  if (pushed) (void)pop(&was);
}

#define HERE(call)                                                                                 \
  bool pushed;                                                                                     \
  CUresult r = push_context(self, &pushed);                                                        \
  if (r == CUDA_SUCCESS) r = (call);                                                               \
  pop_context(pushed)

/* The same for what may take its time, and for a step (captures.h). */
#define HERE_RELAXED(call)                                                                         \
  capture_relaxed mode = capture_relax();                                                          \
  HERE(call);                                                                                      \
  capture_relax_end(&mode)

#define HERE_STEP(call)                                                                            \
  if (!capture_step_begin())                                                                       \
    return status_of_result(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "beside a capture");            \
  HERE(call);                                                                                      \
  capture_step_end()

static weir_status status_of_result(CUresult r, const char *what)
{
  if (r == CUDA_SUCCESS) return WEIR_OK;
  return weir_fail(r == CUDA_ERROR_OUT_OF_MEMORY ? WEIR_EOOM : WEIR_EIO, "%s: CUDA error %d", what,
                   (int)r);
}

static weir_status driver_mem_info(void *self, uint64_t *free_bytes, uint64_t *total_bytes)
{
  size_t free_now = 0, total = 0;
  HERE(WEIR_HELPER(cuMemGetInfo_v2)(&free_now, &total));
  *free_bytes = free_now;
  *total_bytes = total;
  return status_of_result(r, "cuMemGetInfo");
}

static weir_status driver_segment_alloc(void *self, uint64_t bytes, uint64_t *address)
{
  CUdeviceptr at = 0;
  const reroute_device *d = self;
  HERE_RELAXED(WEIR_HELPER(cuMemAlloc_v2)(&at, bytes));
  *address = at;
  if (r == CUDA_SUCCESS)
    pointer_block_add((pointer_block){
        at, bytes, block_tag_make(WEIR_MEM_DEVICE, (unsigned)d->backend.index, d->number)});
  return status_of_result(r, "cuMemAlloc");
}

static weir_status driver_segment_free(void *self, uint64_t address, uint64_t bytes)
{
  (void)bytes;
  const reroute_device *d = self;
  (void)pointer_block_remove(address);
  HERE_RELAXED(d->host ? WEIR_HELPER(cuMemFreeHost)((void *)(uintptr_t)address)
                       : WEIR_HELPER(cuMemFree_v2)(address));
  return status_of_result(r, d->host ? "cuMemFreeHost" : "cuMemFree");
}

static weir_status driver_event_create(void *self, void **event)
{
  CUevent made = NULL;
  HERE_STEP(WEIR_HELPER(cuEventCreate)(&made, CU_EVENT_DISABLE_TIMING));
  *event = made;
  return status_of_result(r, "cuEventCreate");
}

static weir_status driver_event_destroy(void *self, void *event)
{
  HERE(WEIR_HELPER(cuEventDestroy_v2)((CUevent)event));
  return status_of_result(r, "cuEventDestroy");
}

static weir_status driver_event_record(void *self, void *event, void *stream)
{
  HERE_STEP(WEIR_HELPER(cuEventRecord)((CUevent)event, (CUstream)stream));
  return status_of_result(r, "cuEventRecord");
}

static weir_status driver_event_query(void *self, void *event, bool *complete)
{
  HERE_STEP(WEIR_HELPER(cuEventQuery)((CUevent)event));
  *complete = r == CUDA_SUCCESS;
  return r == CUDA_ERROR_NOT_READY ? WEIR_OK : status_of_result(r, "cuEventQuery");
}

static bool driver_stream_capturing(void *self, void *stream)
{
  (void)self, (void)stream;
  return capture_live();
}

/* ---- waiting for a context ------------------------------------------------------------------- */

enum { CONTEXTS = 256, EVENTS = 8 };
static _Atomic(void *) idle_events[CONTEXTS][EVENTS]; /* CUevent; by number of context */

static CUresult event_acquire(unsigned number, CUevent *out)
{
  for (int i = 0; i < EVENTS; i++)
    if ((*out = atomic_exchange(&idle_events[number][i], NULL))) return CUDA_SUCCESS;
  return WEIR_HELPER(cuEventCreate)(out, CU_EVENT_DISABLE_TIMING);
}

static void event_release(unsigned number, CUevent event, bool again)
{
  for (int i = 0; again && i < EVENTS; i++) {
    void *none = NULL;
    if (atomic_compare_exchange_strong(&idle_events[number][i], &none, event)) return;
  }
  (void)WEIR_HELPER(cuEventDestroy_v2)(event);
}

void reroute_device_gone(unsigned number)
{
  for (int i = 0; i < EVENTS; i++)
    atomic_store(&idle_events[number][i], NULL);
}

/* The step: all work of the context so far, in an event. */
static CUresult record_context(const reroute_device *d, CUevent *event)
{
  PFN_cuCtxRecordEvent_v12050 record = WEIR_HELPER(cuCtxRecordEvent);
  if (!record) return CUDA_ERROR_NOT_SUPPORTED;
  CUresult r = event_acquire(d->number, event);
  if (r != CUDA_SUCCESS) return r;
  r = record(d->context, *event);
  if (r != CUDA_SUCCESS) event_release(d->number, *event, false);
  return r;
}

/* A program that captures streams may begin to while this thread waits, and cannot be held up for
 * as long: recording is a step, and the wait for the event is nothing that a capture forbids. The
 * driver's own wait for a context looks at captures as it begins, and nobody outside knows when it
 * has: it serves while the program has captured nothing, and the first begin waits for it. */
static CUresult wait_for_context(const reroute_device *d)
{
  CUevent event;
  uint32_t age = atomic_load(&context_age);
  if (!capture_step_begin()) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  bool direct = !capture_ever();
  CUresult r = direct ? WEIR_HELPER(cuCtxSynchronize)() : record_context(d, &event);
  capture_step_end();
  if (direct || r != CUDA_SUCCESS) return r;
  capture_relaxed mode = capture_relax();
  r = WEIR_HELPER(cuEventSynchronize)(event);
  capture_relax_end(&mode);
  event_release(d->number, event, r == CUDA_SUCCESS && age == atomic_load(&context_age));
  return r;
}

CUresult reroute_device_wait(const reroute_device *self)
{
  HERE(wait_for_context(self));
  return r;
}

bool reroute_device_init(reroute_device *d, CUcontext context, unsigned number, int ordinal,
                         bool host)
{
  static const enum driver_helper needed[] = {
      WEIR_H_cuCtxGetCurrent,   WEIR_H_cuCtxPushCurrent_v2, WEIR_H_cuCtxPopCurrent_v2,
      WEIR_H_cuCtxSynchronize,  WEIR_H_cuMemAlloc_v2,       WEIR_H_cuMemFree_v2,
      WEIR_H_cuMemGetInfo_v2,   WEIR_H_cuEventCreate,       WEIR_H_cuEventDestroy_v2,
      WEIR_H_cuEventRecord,     WEIR_H_cuEventQuery,        WEIR_H_cuMemFreeHost,
      WEIR_H_cuEventSynchronize};
  if (!weir_helpers_there(needed, sizeof needed / sizeof *needed)) return false;
  *d = (reroute_device){.context = context, .number = number, .host = host};
  d->backend = (weir_backend){.name = "cuda",
                              .index = ordinal,
                              .self = d,
                              .source = {.mem_info = driver_mem_info,
                                         .segment_alloc = driver_segment_alloc,
                                         .segment_free = driver_segment_free},
                              .event_create = driver_event_create,
                              .event_destroy = driver_event_destroy,
                              .event_record = driver_event_record,
                              .event_query = driver_event_query,
                              .stream_capturing = driver_stream_capturing};
  return true;
}
