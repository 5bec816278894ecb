/* library.h: CUPTI, opened when it is needed and never demanded.
 *
 * The records that we read have kept the places of what we read in them since CUDA 11.8; the
 * asserts in records.c hold that for the headers at hand. */
#ifndef WEIR_INTERPOSE_ACTIVITY_LIBRARY_H
#define WEIR_INTERPOSE_ACTIVITY_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "interpose/record/cuda_headers.h"
#include <cupti_activity.h>
#include <cupti_callbacks.h>
#include <cupti_version.h>

#define CUPTI_LIBRARY_FUNCTIONS(X)                                                                 \
  X(cuptiGetVersion)                                                                               \
  X(cuptiGetTimestamp)                                                                             \
  X(cuptiSubscribe)                                                                                \
  X(cuptiUnsubscribe)                                                                              \
  X(cuptiEnableCallback)                                                                           \
  X(cuptiActivityRegisterCallbacks)                                                                \
  X(cuptiActivityEnable)                                                                           \
  X(cuptiActivityDisable)                                                                          \
  X(cuptiActivityFlushAll)                                                                         \
  X(cuptiActivityGetNextRecord)                                                                    \
  X(cuptiActivityGetNumDroppedRecords)

/* What is wrong with a version, or missing in it. */
enum {
  CUPTI_GATE_REFUSED = 1,       /* not used at all */
  CUPTI_GATE_NO_KERNELS = 2,    /* kernels are not observed */
  CUPTI_GATE_NO_REFUSAL = 4,    /* a request for a buffer must be answered with one */
  CUPTI_GATE_GRAPHS_ONCE = 8,   /* numbers of graphs' work are right in the first session only */
  CUPTI_GATE_ALONE = 16,        /* it has one subscriber */
  CUPTI_GATE_NO_READERS_V2 = 32 /* records, drops and the clock have no function by subscriber */
};

/* CUPTI 13.2 can have several subscribers, each with kinds and buffers of its own. The functions
 * for it are declared here by ourselves, for the headers that Weir is built with may be of 12.x to
 * 13.1, which have none of them, while the library that a program brings is newer: they are looked
 * up, and where one is missing there is one subscriber. Pointers to structs that we neither fill
 * nor read are void. */
typedef struct cupti_subscriber_params {
  size_t bytes; /* of this struct */
  const char *name;
  char *other_name;
  size_t other_name_bytes;
  uint8_t allows_others; /* from 13.2 on; before, the struct ends here */
  uint8_t padding[7];
} cupti_subscriber_params;

#if CUPTI_API_VERSION >= 130200
_Static_assert(sizeof(cupti_subscriber_params) == sizeof(CUpti_SubscriberParams), "as in 13.2");
_Static_assert(offsetof(cupti_subscriber_params, allows_others) ==
                   offsetof(CUpti_SubscriberParams, allowMultipleSubscribers),
               "as in 13.2");
#endif

typedef void(CUPTIAPI *cupti_request_v2)(uint8_t **buffer, size_t *bytes, size_t *most, void *info);
typedef void(CUPTIAPI *cupti_complete_v2)(uint8_t *buffer, size_t bytes, size_t valid, void *info);

#define CUPTI_BY_SUBSCRIBER(X)                                                                     \
  X(cuptiSubscribe_v2,                                                                             \
    (CUpti_SubscriberHandle *, CUpti_CallbackFunc, void *, cupti_subscriber_params *))             \
  X(cuptiActivityRegisterCallbacks_v2,                                                             \
    (CUpti_SubscriberHandle, cupti_request_v2, cupti_complete_v2))                                 \
  X(cuptiActivityEnable_v2, (CUpti_SubscriberHandle, CUpti_ActivityKind, void *))                  \
  X(cuptiActivityDisable_v2, (CUpti_SubscriberHandle, CUpti_ActivityKind, void *))

#define CUPTI_READERS_BY_SUBSCRIBER(X)                                                             \
  X(cuptiActivityGetNextRecord_v2, (CUpti_SubscriberHandle, uint8_t *, size_t, CUpti_Activity **)) \
  X(cuptiActivityGetNumDroppedRecords_v2, (CUpti_SubscriberHandle, CUcontext, uint32_t, size_t *)) \
  X(cuptiGetTimestamp_v2, (CUpti_SubscriberHandle, uint64_t *))

typedef struct cupti_library {
  uint32_t version; /* CUPTI_API_VERSION of the library */
  unsigned gates;   /* CUPTI_GATE_* */
#define CUPTI_LIBRARY_MEMBER(name) __typeof__(&name) name;
  CUPTI_LIBRARY_FUNCTIONS(CUPTI_LIBRARY_MEMBER)
#undef CUPTI_LIBRARY_MEMBER
  struct {
#define CUPTI_MEMBER(name, parameters) CUptiResult(CUPTIAPI *name) parameters;
    CUPTI_BY_SUBSCRIBER(CUPTI_MEMBER)
    CUPTI_READERS_BY_SUBSCRIBER(CUPTI_MEMBER)
#undef CUPTI_MEMBER
  } by_subscriber; /* NULL where a gate forbids it */
} cupti_library;

/* Reads the option that names the file to be used. Before cupti_library_open(). */
void cupti_library_name(void);

/* Opens it: the file that is named, else the copy that is mapped, else one that the loader finds.
 * False: `why` is the reason. */
bool cupti_library_open(cupti_library *l, char *why, size_t room);

/* A function of the copy that is mapped; NULL: none is. */
void *cupti_library_mapped(const char *name);

/* The version of the copy that is mapped; 0: none is. */
uint32_t cupti_library_mapped_version(void);

/* The gates of a version, and in `why` what a user must know of them, or NULL. */
unsigned cupti_library_gates(uint32_t version, const char **why);

#endif
