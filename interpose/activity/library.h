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

/* What is wrong with a version. */
enum {
  CUPTI_GATE_REFUSED = 1,    /* not used at all */
  CUPTI_GATE_NO_KERNELS = 2, /* kernels are not observed */
  CUPTI_GATE_NO_REFUSAL = 4  /* a request for a buffer must be answered with one */
};

typedef struct cupti_library {
  uint32_t version; /* CUPTI_API_VERSION of the library */
  unsigned gates;   /* CUPTI_GATE_* */
#define CUPTI_LIBRARY_MEMBER(name) __typeof__(&name) name;
  CUPTI_LIBRARY_FUNCTIONS(CUPTI_LIBRARY_MEMBER)
#undef CUPTI_LIBRARY_MEMBER
} cupti_library;

/* Opens it: the copy that is mapped, else one that the loader finds. False: `why` says why not. */
bool cupti_library_open(cupti_library *l, char *why, size_t room);

/* A function of the copy that is mapped; NULL: none is. */
void *cupti_library_mapped(const char *name);

/* The gates of a version, and in `why` what a user must know of them, or NULL. */
unsigned cupti_library_gates(uint32_t version, const char **why);

#endif
