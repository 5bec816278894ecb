/* sim_cupti.h: the inside of the software device's libcupti.so.13.
 *
 * What happens on the device comes through cuda/sim/watch.h (seam.c), becomes records in CUPTI's
 * own layouts (record.c), which are put into the client's buffers (buffer.c), and callbacks
 * (callback.c). Who may do what, and what is enabled, is in activity.c; how it can be made to fail,
 * in fault.c.
 *
 * A record is written when its work has ended. The client's functions are called with no lock
 * held. Client 0 is the one that is no subscriber: of the functions without a version; each
 * subscriber is one more, by the functions of 13.2 and later (several.c). */
#ifndef WEIR_SIM_CUPTI_H
#define WEIR_SIM_CUPTI_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cupti.h>
#include "cuda/sim/cupti/version.h"
#include "cuda/sim/watch.h"

#define CUPTI_API __attribute__((visibility("default")))

/* ---- the software device (seam.c) ------------------------------------------------------------ */

struct sim_seam { /* functions of watch.h, in libcuda */
  void (*watch)(const struct weir_watcher *, uint32_t);
  uint32_t (*context_device)(void *, uint32_t *);
  uint32_t (*stream_id)(void *, void *, bool);
  uint64_t (*node_id)(void *);
  uint32_t (*graph_id)(void *), (*exec_id)(void *);
};

const struct sim_seam *sim_seam(void); /* NULL: the driver is another one */

/* Reports to the device what is wanted now, by activities and callbacks. */
void sim_watch_what_is_wanted(void);
uint64_t sim_client_now(void); /* the client's clock; CLOCK_REALTIME before it has one */

enum {
  SIM_SUBSCRIBERS = 8,
  SIM_CLIENTS = 1 + SIM_SUBSCRIBERS,
  SIM_SEVERAL_FROM = 130200, /* versions: there may be several subscribers */
  SIM_READERS_FROM = 130300  /* and their records, drops and clock are read by handle */
};

/* ---- activities (activity.c) ----------------------------------------------------------------- */

bool sim_wants(CUpti_ActivityKind kind, uint32_t context); /* is enabled, for that context */
uint32_t sim_wanting(CUpti_ActivityKind kind);             /* a bit a client */
void sim_enable(unsigned client, CUpti_ActivityKind kind, bool on);
void sim_enable_nothing(unsigned client);
bool sim_enables_any(unsigned client);
/* Whether it may be enabled or disabled: the answer. */
CUptiResult sim_check_kind(CUpti_ActivityKind kind, bool on);
uint32_t sim_wanted_kinds(void);                      /* WEIR_WATCH_..., by activities */
CUpti_ActivityKind sim_kernel_kind(uint32_t context); /* INVALID: kernels are not wanted */
/* The external ids of the calling thread, one a kind; true: there is one. */
bool sim_external_id(CUpti_ExternalCorrelationKind kind, uint64_t *id);
extern _Atomic(CUpti_TimestampCallbackFunc) sim_timestamp;
extern _Atomic bool sim_latency_times; /* kernels' queued and submitted */

/* ---- buffers (buffer.c) ---------------------------------------------------------------------- */

/* As 13.2 has them, under its own names for the pointers to a struct with its size in front. */
#if CUPTI_API_VERSION >= 130200
typedef CUpti_BuffersCallbackRequestFunc_v2 sim_request_v2;
typedef CUpti_BuffersCallbackCompleteFunc_v2 sim_complete_v2;
typedef CUpti_ActivityConfig sim_activity_config;
#else
typedef void(CUPTIAPI *sim_request_v2)(uint8_t **buffer, size_t *bytes, size_t *most, void *info);
typedef void(CUPTIAPI *sim_complete_v2)(uint8_t *buffer, size_t bytes, size_t valid, void *info);
typedef void sim_activity_config;
#endif

void sim_put(uint32_t wanting, const void *record, size_t bytes);
void sim_register(unsigned client, sim_request_v2 request, sim_complete_v2 complete);
void sim_forget_buffers(unsigned client);
size_t sim_dropped(unsigned client); /* since it was asked last */
/* Room for records is gone or the client's callbacks change: buffers go back to the client. */
CUptiResult sim_flush(void);
void sim_buffers_end(void); /* what is not delivered is forgotten; the thread ends */

/* ---- records (record.c) ---------------------------------------------------------------------- */

size_t sim_record_bytes(CUpti_ActivityKind kind); /* 0: none of this kind is ever made */
void sim_record_work(const struct weir_watch_work *work);
void sim_record_call(const struct weir_watch_call *call, CUpti_CallbackId cbid);
void sim_record_flush(uint64_t began, uint64_t ended);

/* ---- callbacks (callback.c) ------------------------------------------------------------------ */

bool sim_domain_wanted(CUpti_CallbackDomain domain); /* some callback of it is enabled */
/* Number of a function's callbacks; 0: it has none. */
CUpti_CallbackId sim_cbid(const struct weir_watch_call *call);
void sim_call_back(struct weir_watch_call *call, CUpti_CallbackId cbid, bool at_end);
void sim_resource_call_back(const struct weir_watch_resource *resource);
unsigned sim_subscriber_count(void);
unsigned sim_client_of(CUpti_SubscriberHandle subscriber); /* 0: it is none */
bool sim_several(void); /* subscribers allow others: functions without a version are refused */

void sim_subscribers_end(void);

void sim_allocate_own(void); /* own.c */

/* ---- faults (fault.c) ------------------------------------------------------------------------ */

struct sim_faults {
  bool zero_times;        /* under a timestamp callback, start and end are 0 */
  bool reversed_times;    /* end is before start */
  bool lost_device_syncs; /* no record of cuCtxSynchronize */
  bool disable_hangs;     /* to disable kernels never comes back */
  bool finalize_crashes;  /* after the launch of a graph */
  bool null_crashes;      /* where the client gives no buffer */
  bool flush_hangs;
  bool subscribed;         /* as if another tool had the one subscription */
  bool allocates;          /* device memory for itself */
  bool sharing_stays;      /* after subscribers that allowed others, none may be alone */
  uint32_t enable_answers; /* a CUptiResult; 0: what is right */
  uint32_t drop;           /* each such number of records is lost; 0: none */
};

const struct sim_faults *sim_faults(void);
_Noreturn void sim_crash(const char *why);
void sim_hang(const char *why);
extern _Atomic bool sim_graph_launched;

#endif
