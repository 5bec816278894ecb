/* parallel.h: one module on several CUDA devices, each with a part of the batch. Included by
 * weir.h.
 *
 * Semantics are torch.nn.DataParallel's (its documentation as of 2.8). Work goes to the streams
 * that are current for the calling thread on each device. */
#ifndef WEIR_PARALLEL_H
#define WEIR_PARALLEL_H

#include "core/base/status.h"
#include "core/weir/device.h"
#include "core/weir/module.h"
#include "core/weir/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_parallel_options {
  const int *device_ids; /* cuda devices (borrowed for the call); NULL: all there are */
  int devices;           /* how many device_ids are */
  weir_device output;    /* where results go; type not given: the first of device_ids */
} weir_parallel_options;

/* A module that calls `m` (borrowed: counted once more, its child "module") on all devices: m is
 * replicated, its inputs are cut into parts along dimension 0 (torch.chunk), a thread a device
 * calculates, results are joined along dimension 0. Gradients gather in m's own parameters, those
 * of all parts added up. With one device it calls m there, without CUDA
 * it calls m. With one device m is moved there now. Errors: EINVAL (no such device); of a call
 * also "module must have its parameters and buffers on device cuda:0 (device_ids[0]) but found one
 * of them on device: cpu"; the first device's that fails, in the order of device_ids. */
WEIR_PUBLIC weir_status weir_data_parallel(weir_module **out, weir_module *m,
                                           const weir_parallel_options *options);

/* ---- its parts, as in torch.nn.parallel ------------------------------------------------------ */

/* out[i] is new: m with its parameters and buffers on devices[i]; what is there already is shared,
 * not copied. All or none. Errors: ENOMEM, EOOM, those of the device. */
WEIR_PUBLIC weir_status weir_replicate(weir_module **out, weir_module *m,
                                       const weir_device *devices, int count);
/* At most `count` parts of t along dimension 0, out[i] (new) on devices[i]; *parts states how many
 * there are. Errors: EINVAL (no dimensions), EOOM, those of the device. */
WEIR_PUBLIC weir_status weir_parallel_scatter(weir_tensor **out, int *parts, const weir_tensor *t,
                                              const weir_device *devices, int count);
/* Calls modules[i] with inputs[i * each] and the next `each` - 1, all at once, a thread each, with
 * devices[i] current. out[i] is new. All or none; the error is that of the lowest i. */
WEIR_PUBLIC weir_status weir_parallel_apply(weir_tensor **out, weir_module *const *modules,
                                            weir_tensor *const *inputs, int each,
                                            const weir_device *devices, int count);
/* The tensors one after the other along dimension 0, on `device`; those without dimensions become
 * a row of numbers, and the log callback gets a warning. Errors: EINVAL "Input tensor at index 1
 * has invalid shape [2, 3], but expected [2, 4]". */
WEIR_PUBLIC weir_status weir_parallel_gather(weir_tensor **out, weir_tensor *const *tensors,
                                             int count, weir_device device);

#ifdef __cplusplus
}
#endif

#endif
