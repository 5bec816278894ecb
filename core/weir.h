/* weir.h: the public header of libweir.
 *
 * Conventions: outputs first, a weir_status returned; 0 is success. Pointers are *new* (you free
 * them), *borrowed* (ours, valid as long as stated) or *steals* (we take yours).
 *
 * NULL is good where a function states what it means. Elsewhere it is an error like others: EINVAL,
 * "weir_view: t is NULL"; functions that return something else than a status give nothing: 0, NULL,
 * "", false, no dtype.
 */
#ifndef WEIR_H
#define WEIR_H

#include "core/base/status.h"
#include "core/weir/amp.h"
#include "core/weir/blas.h"
#include "core/weir/checkpoint.h"
#include "core/weir/cuda.h"
#include "core/weir/data.h"
#include "core/weir/device.h"
#include "core/weir/dlpack.h"
#include "core/weir/dtype.h"
#include "core/weir/functions.h"
#include "core/weir/grad.h"
#include "core/weir/graph.h"
#include "core/weir/history.h"
#include "core/weir/indexing.h"
#include "core/weir/io.h"
#include "core/weir/layers.h"
#include "core/weir/linalg.h"
#include "core/weir/log.h"
#include "core/weir/losses.h"
#include "core/weir/memory.h"
#include "core/weir/module.h"
#include "core/weir/oom.h"
#include "core/weir/nn.h"
#include "core/weir/ops.h"
#include "core/weir/optim.h"
#include "core/weir/order.h"
#include "core/weir/parallel.h"
#include "core/weir/pools.h"
#include "core/weir/reduce.h"
#include "core/weir/schedule.h"
#include "core/weir/scope.h"
#include "core/weir/sequence.h"
#include "core/weir/shape.h"
#include "core/weir/shared.h"
#include "core/weir/stream.h"
#include "core/weir/tensor.h"
#include "core/weir/threads.h"
#include "core/weir/torch.h"
#include "core/weir/trace.h"

#ifdef __cplusplus
extern "C" {
#endif

#define WEIR_VERSION_MAJOR 0
#define WEIR_VERSION_MINOR 2
#define WEIR_VERSION_PATCH 0
#define WEIR_VERSION       "0.2.0"

/* The version of the library that is linked, "MAJOR.MINOR.PATCH" (borrowed, static). */
WEIR_PUBLIC const char *weir_version(void);

#ifdef __cplusplus
}
#endif

#endif
