/* device.h: one context of the program as the device below a cache. */
#ifndef WEIR_INTERPOSE_REROUTE_DEVICE_H
#define WEIR_INTERPOSE_REROUTE_DEVICE_H

#include "core/backend/backend.h"
#include "interpose/record/cuda_headers.h"

typedef struct reroute_device {
  weir_backend backend; /* backend.self is this */
  CUcontext context;
  unsigned number; /* of the context (context.h) */
  bool host;       /* page-locked host memory: got by the caller, given back here */
} reroute_device;

/* Fills `d`. False: the driver lacks something that is needed. */
bool reroute_device_init(reroute_device *d, CUcontext context, unsigned number, int ordinal,
                         bool host);

/* Waits on the host for all work of the context. The driver's answer; STREAM_CAPTURE_UNSUPPORTED
 * during a capture, and NOT_SUPPORTED where the program has captured something and the driver is
 * older than 12.5 and has no cuCtxRecordEvent: then nothing was waited for. */
CUresult reroute_device_wait(const reroute_device *d);
/* The context is gone, and the events for such waits with it. */
void reroute_device_gone(unsigned number);

#endif
