/* stream.h: what stream.c, event.c and capture.c share. */
#ifndef WEIR_STREAM_STREAM_H
#define WEIR_STREAM_STREAM_H

#include "core/memory/devices.h"

/* The pool of a device that has streams. Errors: EINVAL (the cpu), those of opening it. */
weir_status stream_pool(mem_pool **out, weir_device device);
/* NULL: the current stream of the current CUDA device. Errors: those of opening it. */
weir_status stream_or_current(mem_heap **out, weir_stream *stream);

#endif
