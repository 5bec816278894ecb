/* cupti.h: a client of CUPTI, as the suites of the software device's libcupti have it: every record
 * is copied out of its buffer into a list. Each test begins with an empty list and nothing
 * enabled. */
#ifndef WEIR_TESTS_SIM_CUPTI_H
#define WEIR_TESTS_SIM_CUPTI_H

#include "sim.h"
#include <cupti_activity.h>
#include <cupti_callbacks.h>
#include <cupti_driver_cbid.h>
#include <cupti_runtime_cbid.h>
#include <cupti_version.h>
#include <time.h>

#define fine(call)         ck_assert_int_eq((int)(call), CUPTI_SUCCESS)
#define refused(call, why) ck_assert_int_eq((int)(call), (int)(why))

enum { BUFFER_BYTES = 64 << 10, RECORDS = 4096 };

union record { /* what tests look at */
  CUpti_Activity any;
  CUpti_ActivityMemcpy6 copy;
  CUpti_ActivityMemcpyPtoP4 peer;
  CUpti_ActivityMemset4 fill;
  CUpti_ActivityKernel10 kernel;
  CUpti_ActivityGraphTrace2 graph;
  CUpti_ActivityAPI call;
  CUpti_ActivitySynchronization2 wait;
  CUpti_ActivityExternalCorrelation external;
  CUpti_ActivityOverhead3 overhead;
};

static pthread_mutex_t records_lock = PTHREAD_MUTEX_INITIALIZER;
static union record records[RECORDS];
static unsigned record_count;
static _Atomic unsigned buffers_out;       /* asked for and not given back */
static _Atomic unsigned buffers_asked;     /* so far */
static size_t buffer_bytes = BUFFER_BYTES; /* of those to come; 0: none is given */
static size_t buffer_most;                 /* records in each; 0: any number */

static uint64_t clock_now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static size_t bytes_of(const CUpti_Activity *a)
{
  switch (a->kind) {
  case CUPTI_ACTIVITY_KIND_MEMCPY:
    return sizeof(CUpti_ActivityMemcpy6);
  case CUPTI_ACTIVITY_KIND_MEMCPY2:
    return sizeof(CUpti_ActivityMemcpyPtoP4);
  case CUPTI_ACTIVITY_KIND_MEMSET:
    return sizeof(CUpti_ActivityMemset4);
  case CUPTI_ACTIVITY_KIND_KERNEL:
  case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
    return sizeof(CUpti_ActivityKernel10);
  case CUPTI_ACTIVITY_KIND_GRAPH_TRACE:
    return sizeof(CUpti_ActivityGraphTrace2);
  case CUPTI_ACTIVITY_KIND_DRIVER:
  case CUPTI_ACTIVITY_KIND_RUNTIME:
    return sizeof(CUpti_ActivityAPI);
  case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION:
    return sizeof(CUpti_ActivitySynchronization2);
  case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
    return sizeof(CUpti_ActivityExternalCorrelation);
  default:
    return sizeof(CUpti_ActivityOverhead3);
  }
}

static void CUPTIAPI give_buffer(uint8_t **buffer, size_t *bytes, size_t *most)
{
  atomic_fetch_add(&buffers_asked, 1);
  *buffer = buffer_bytes ? aligned_alloc(8, buffer_bytes) : NULL;
  *bytes = buffer_bytes;
  *most = buffer_most;
  if (*buffer) atomic_fetch_add(&buffers_out, 1);
}

static void CUPTIAPI take_buffer(CUcontext context, uint32_t stream, uint8_t *buffer, size_t bytes,
                                 size_t valid)
{
  CUpti_Activity *record = NULL;
  (void)context, (void)stream, (void)bytes;
  pthread_mutex_lock(&records_lock);
  while (record_count < RECORDS &&
         cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS)
    memcpy(&records[record_count++], record, bytes_of(record));
  pthread_mutex_unlock(&records_lock);
  free(buffer);
  atomic_fetch_sub(&buffers_out, 1);
}

/* A client with these kinds enabled, 0 the last, and the tests' clock. */
static UNUSED void client(const CUpti_ActivityKind *kinds)
{
  fine(cuptiActivityRegisterTimestampCallback(clock_now));
  fine(cuptiActivityRegisterCallbacks(give_buffer, take_buffer));
  for (; *kinds; kinds++)
    fine(cuptiActivityEnable(*kinds));
}

#define CLIENT(...) client((const CUpti_ActivityKind[]){__VA_ARGS__, 0})

#define COPIES    CUPTI_ACTIVITY_KIND_MEMCPY
#define PEERS     CUPTI_ACTIVITY_KIND_MEMCPY2
#define FILLS     CUPTI_ACTIVITY_KIND_MEMSET
#define KERNELS   CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL
#define GRAPHS    CUPTI_ACTIVITY_KIND_GRAPH_TRACE
#define CALLS     CUPTI_ACTIVITY_KIND_DRIVER
#define WAITS     CUPTI_ACTIVITY_KIND_SYNCHRONIZATION
#define EXTERNALS CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION

/* How many records of a kind came, after a flush. */
static UNUSED unsigned count_of(CUpti_ActivityKind kind)
{
  unsigned n = 0;
  fine(cuptiActivityFlushAll(0));
  pthread_mutex_lock(&records_lock);
  for (unsigned i = 0; i < record_count; i++)
    n += records[i].any.kind == kind;
  pthread_mutex_unlock(&records_lock);
  return n;
}

/* The nth of a kind, from 0, in the order they came. */
static UNUSED const union record *nth(CUpti_ActivityKind kind, unsigned n)
{
  for (unsigned i = 0; i < record_count; i++)
    if (records[i].any.kind == kind && n-- == 0) return &records[i];
  ck_abort_msg("no such record");
  return NULL;
}

/* What the driver's callbacks say: the correlation of each call's beginning and end. */
struct heard {
  CUpti_CallbackId cbid;
  CUpti_ApiCallbackSite site;
  uint32_t correlation;
};

static _Atomic unsigned heard_count;
static struct heard heard[RECORDS];

static UNUSED void CUPTIAPI hear(void *data, CUpti_CallbackDomain domain, CUpti_CallbackId id,
                                 const void *what)
{
  const CUpti_CallbackData *call = what;
  (void)data;
  if (domain != CUPTI_CB_DOMAIN_DRIVER_API) return;
  unsigned i = atomic_fetch_add(&heard_count, 1);
  if (i < RECORDS) heard[i] = (struct heard){id, call->callbackSite, call->correlationId};
}

static UNUSED CUpti_SubscriberHandle subscribed(CUpti_CallbackFunc f)
{
  CUpti_SubscriberHandle s;
  fine(cuptiSubscribe(&s, f, NULL));
  fine(cuptiEnableDomain(1, s, CUPTI_CB_DOMAIN_DRIVER_API));
  return s;
}

/* The correlation of the nth call of a function, from 0; its end has the same as its beginning. */
static UNUSED uint32_t correlation_of(CUpti_CallbackId id, unsigned n)
{
  for (unsigned i = 0; i < heard_count; i++) {
    if (heard[i].cbid != id || heard[i].site != CUPTI_API_ENTER || n-- != 0) continue;
    for (unsigned j = i + 1; j < heard_count; j++)
      if (heard[j].cbid == id && heard[j].site == CUPTI_API_EXIT &&
          heard[j].correlation == heard[i].correlation)
        return heard[i].correlation;
    ck_abort_msg("the call has no end");
  }
  ck_abort_msg("no such call");
  return 0;
}

#endif
