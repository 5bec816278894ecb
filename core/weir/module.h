/* module.h: modules: parameters, buffers and other modules by name, and what they calculate.
 * Included by weir.h.
 *
 * Semantics are torch.nn.Module's (its documentation as of 2.8). A parameter is a tensor a module
 * owns, a buffer one that is not trained; both move with the module and are saved with it. A module
 * within another is its child; a dotted path ("conv1.weight") names what lies deeper. A module is
 * of the library's layers, or the program's own: a weir_module_class with a function for forward.
 *
 * Modules are counted: *out of a weir_module is new, give it back with weir_module_release(). One
 * module may be the child of several and a tensor the parameter of several: such things are moved
 * once and stay common. Calling one module from many threads is safe as far as its forward is;
 * changing it (adding, moving, loading, releasing its last count) while others use it is not.
 *
 * Outputs come first, a weir_status is returned. A function that failed has changed nothing. */
#ifndef WEIR_MODULE_H
#define WEIR_MODULE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "core/base/status.h"
#include "core/weir/device.h"
#include "core/weir/dtype.h"
#include "core/weir/io.h"
#include "core/weir/ops.h"
#include "core/weir/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weir_module weir_module;

/* What a kind of module is. All functions may be NULL. */
typedef struct weir_module_class {
  const char *name; /* "Conv2d"; borrowed, as long as there are modules of the class */
  /* Calculates *out (new) from `count` inputs (borrowed). Missing: the module cannot be called. */
  weir_status (*forward)(weir_tensor **out, weir_module *self, weir_tensor *const *in, int count);
  /* Ends the module's data, with the module's last count. */
  void (*destroy)(void *data);
  /* *out is data for a replica (new: destroy ends it). Missing: replicas use the same data, which
   * is then read by several threads at once, and live at most as long as the module itself. */
  weir_status (*clone)(void **out, const void *data);
  /* What stands after the name in weir_module_to_string(): "1, 20, kernel_size=(5, 5)"; cut at
   * `room` bytes. Missing: nothing. */
  void (*describe)(char *out, size_t room, const weir_module *self);
} weir_module_class;

/* ---- making ---------------------------------------------------------------------------------- */

/* A module of the program's own, without parameters, buffers or children yet. kind (borrowed, as
 * long as the module); data is the module's from now on, also where this fails: class's destroy
 * ends it. Errors: EINVAL (no name), ENOMEM. */
WEIR_PUBLIC weir_status weir_module_new(weir_module **out, const weir_module_class *kind,
                                        void *data);
/* The same module once more (new). NULL is NULL. */
WEIR_PUBLIC weir_module *weir_module_retain(weir_module *m);
/* Steals m; NULL is nothing. */
WEIR_PUBLIC void weir_module_release(weir_module *m);
/* For WEIR_MODULE: releases *m and makes it NULL. */
WEIR_PUBLIC void weir_module_drop(weir_module **m);
/* WEIR_MODULE m = NULL, n = NULL; are released at the end of their block. */
typedef weir_module *weir_module_owned;
#define WEIR_MODULE __attribute__((cleanup(weir_module_drop))) weir_module_owned

WEIR_PUBLIC const char *weir_module_name(const weir_module *m); /* its class's (borrowed) */
WEIR_PUBLIC void *weir_module_data(const weir_module *m);       /* (borrowed) */

/* Each steals the tensor or module, also where it fails. Names are copied, have no dots and are not
 * empty. Tensors are called by their paths from the uppermost module on (weir_tensor_name), and
 * what a thread allocates in a call is of the module it calls in reports (trace.h). Errors: EINVAL
 * ("attribute 'weight' already exists", "parameter name can't contain "."", a module within
 * itself), ENOMEM. */

/* One of floating point requires a gradient from now on (grad.h). NULL: a parameter that could be
 * and is not, such as the bias of a layer without one. Errors: also "Cannot assign non-leaf Tensor
 * to parameter 'weight'. ..." */
WEIR_PUBLIC weir_status weir_module_add_parameter(weir_module *m, const char *name, weir_tensor *t);
/* persistent: saved and loaded with the module. NULL as of a parameter. */
WEIR_PUBLIC weir_status weir_module_add_buffer(weir_module *m, const char *name, weir_tensor *t,
                                               bool persistent);
WEIR_PUBLIC weir_status weir_module_add(weir_module *m, const char *name, weir_module *child);

/* ---- calling --------------------------------------------------------------------------------- */

/* *out (new) is what the module calculates from one tensor (borrowed). Errors: the forward's;
 * "Module [Net] is missing the required "forward" function"; EINVAL "Module [Net] returned success
 * from its forward without an output (net.conv1)". */
WEIR_PUBLIC weir_status weir_module_call(weir_tensor **out, weir_module *m, weir_tensor *in);
/* From `count` tensors (borrowed). */
WEIR_PUBLIC weir_status weir_module_call_many(weir_tensor **out, weir_module *m,
                                              weir_tensor *const *in, int count);
/* A module is at first training; sets it for the module and all below it. Errors: none. */
WEIR_PUBLIC void weir_module_train(weir_module *m, bool training);
WEIR_PUBLIC bool weir_module_is_training(const weir_module *m);
/* weir_module_train(m, false). */
WEIR_PUBLIC void weir_module_eval(weir_module *m);

/* ---- hooks ------------------------------------------------------------------------------------
 * What the program has called around a module's forward, as torch's register_forward_pre_hook(),
 * register_forward_hook(), register_full_backward_pre_hook(), register_full_backward_hook(). Hooks
 * of a kind are called in the order in which they were registered; replicas of a module call its
 * hooks. */
typedef enum weir_module_hook_kind {
  WEIR_HOOK_FORWARD_PRE,  /* before the forward: may put others in the place of inputs */
  WEIR_HOOK_FORWARD,      /* after it: may put another in the place of *out */
  WEIR_HOOK_BACKWARD_PRE, /* *out is the output's gradient, in place of which it may put another */
  WEIR_HOOK_BACKWARD      /* in are the inputs' gradients: the same; *out is the output's */
} weir_module_hook_kind;

/* in: `count` tensors (inputs, or their gradients; NULL: it requires none; none before a backward);
 * out NULL before a forward. All are borrowed; one that the hook puts in a place is new, and
 * stolen. A status but WEIR_OK ends the call, or the backward, with it. */
typedef weir_status (*weir_module_hook)(weir_module *m, weir_tensor **in, int count,
                                        weir_tensor **out, void *user);

/* Registers a hook; *id (may be NULL) names it. user is the hook's from now on, also where this
 * fails: destroy (may be NULL) ends it when the hook is taken away, or with the module. Gradients
 * of several inputs (of one dtype, on one device) are shown when all are there; one that the module
 * did not use is zeros. Where no input requires a gradient, WEIR_HOOK_BACKWARD is called with the
 * output's, and may give none: "Backward hook for Modules where no input requires gradient should
 * always return None or None for all gradients." Errors: ENOMEM, EINVAL. */
WEIR_PUBLIC weir_status weir_module_register_hook(uint64_t *id, weir_module *m,
                                                  weir_module_hook_kind kind, weir_module_hook hook,
                                                  void *user, void (*destroy)(void *user));
/* An id that is not there is nothing. A hook may take itself away. */
WEIR_PUBLIC void weir_module_remove_hook(weir_module *m, uint64_t id);

/* ---- looking --------------------------------------------------------------------------------- */

/* By dotted path: borrowed, until the module is changed or moved; NULL: there is none. */
WEIR_PUBLIC weir_tensor *weir_module_parameter(const weir_module *m, const char *path);
WEIR_PUBLIC weir_tensor *weir_module_buffer(const weir_module *m, const char *path);
/* "" is the module itself. */
WEIR_PUBLIC weir_module *weir_module_child(const weir_module *m, const char *path);
/* Children by place, in the order they were added; NULL beyond the last. name (may be NULL) as
 * borrowed as they. */
WEIR_PUBLIC weir_module *weir_module_child_at(const weir_module *m, size_t place,
                                              const char **name);
WEIR_PUBLIC size_t weir_module_children(const weir_module *m);

enum { WEIR_PARAMETERS = 1, WEIR_BUFFERS = 2 };

/* Calls `visit` for each parameter or buffer, those of the module first and then those of its
 * children, as named_parameters() does: one that several have is visited once, under its first
 * name. path and t are borrowed for the call. A status other than 0 ends the visits and is
 * returned. Errors: ENOMEM, the visit's. */
WEIR_PUBLIC weir_status weir_module_visit(const weir_module *m, int what,
                                          weir_status (*visit)(void *user, const char *path,
                                                               weir_tensor *t),
                                          void *user);
/* The module itself first, with path "". */
WEIR_PUBLIC weir_status weir_module_visit_modules(weir_module *m,
                                                  weir_status (*visit)(void *user, const char *path,
                                                                       weir_module *child),
                                                  void *user);
/* Elements of all parameters. Errors: ENOMEM. */
WEIR_PUBLIC weir_status weir_module_count_parameters(int64_t *out, const weir_module *m);
/* A table of the model's layers: the shapes of what they make of the inputs (`count` of them,
 * borrowed; 0: without shapes), their own parameters, and all of them together in bytes. It is
 * called with them once, in evaluation mode; modules are as before afterwards. *out is new: free()
 * it. Errors: the call's; ENOMEM. */
WEIR_PUBLIC weir_status weir_summary(char **out, weir_module *m, weir_tensor *const *in, int count);
/* torch's print(model), lines of "(conv1): Conv2d(...)". *out is new: free() it. */
WEIR_PUBLIC weir_status weir_module_to_string(char **out, const weir_module *m);

/* ---- training ---------------------------------------------------------------------------------
 * A module calculates as all does: what its parameters require a gradient for is recorded, unless a
 * block states WEIR_NO_GRAD, which is what one that only asks for results wants. */

/* All parameters, each once, in the order of weir_module_visit(): what an optimizer (optim.h) and
 * weir_clip_grad_norm_() want. *out (free() it; never NULL) has *count tensors, borrowed until the
 * module is changed or moved: an optimizer is made after its module was moved. Errors: ENOMEM. */
WEIR_PUBLIC weir_status weir_module_parameters(weir_tensor ***out, int *count,
                                               const weir_module *m);
/* Whether gradients gather in the parameters; false: they are frozen, and their gradients gone.
 * Errors: EINVAL, "only Tensors of floating point dtype can require gradients"; ENOMEM. */
WEIR_PUBLIC weir_status weir_module_requires_grad_(weir_module *m, bool requires_grad);
/* Takes the parameters' gradients away, as torch's set_to_none=True. */
WEIR_PUBLIC void weir_module_zero_grad(weir_module *m);

/* ---- moving -----------------------------------------------------------------------------------
 * In place: the module has other tensors afterwards, where something changes; who held one of the
 * old ones still has it. Parameters that require gradients are leaves that require them afterwards,
 * too (not as complex numbers), and what has gathered moves with them. All of them are made before
 * the first is exchanged: a failure leaves the module whole, and both are held for a moment. Only
 * floating-point and complex tensors are converted to a dtype, integers keep theirs. */

/* options: dtype, device, non_blocking. Errors: EINVAL "nn.Module.to only accepts floating point or
 * complex dtypes, but got desired dtype=weir.int64"; those of weir_to(). */
WEIR_PUBLIC weir_status weir_module_to(weir_module *m, const weir_options *options);
/* As weir_cuda(), weir_cpu(). */
WEIR_PUBLIC weir_status weir_module_cuda(weir_module *m, weir_device device);
WEIR_PUBLIC weir_status weir_module_cpu(weir_module *m);
/* Floating point alone becomes float16, bfloat16, float32, float64; complex numbers stay. */
WEIR_PUBLIC weir_status weir_module_half(weir_module *m);
WEIR_PUBLIC weir_status weir_module_bfloat16(weir_module *m);
WEIR_PUBLIC weir_status weir_module_float(weir_module *m);
WEIR_PUBLIC weir_status weir_module_double(weir_module *m);

/* ---- state ----------------------------------------------------------------------------------- */

/* All parameters and persistent buffers by path; the set (new) has the tensors themselves, no
 * copies. Module.state_dict(). */
WEIR_PUBLIC weir_status weir_module_state(weir_tensors **out, const weir_module *m);
/* Copies a state into the module's tensors, which keep their dtype and device. strict: every name
 * of either must be in both. Errors: EINVAL, "Error(s) in loading state_dict for Net:" and after
 * it "Missing key(s) in state_dict: ...", "Unexpected key(s) in state_dict: ...", "size mismatch
 * for conv1.weight: copying a param with shape weir.Size([20, 1, 5, 5]) from checkpoint, the shape
 * in current model is weir.Size([20, 1, 3, 3])." Module.load_state_dict(). */
WEIR_PUBLIC weir_status weir_module_load_state(weir_module *m, const weir_tensors *state,
                                               bool strict);
/* The same to a .safetensors file, and from whatever weir_tensors_load() reads: that, an index of
 * shards, a file of torch.save(model.state_dict()), an .npz. Errors: also those of io.h. */
WEIR_PUBLIC weir_status weir_module_save(const weir_module *m, const char *path);
WEIR_PUBLIC weir_status weir_module_load(weir_module *m, const char *path, bool strict);

/* ---- layers -----------------------------------------------------------------------------------
 * Parameters are torch's at first: uniform in [-b, b), b = 1 / sqrt(inputs of an output)
 * (kaiming_uniform with a = sqrt(5), He et al. 2015), from the default generator of the device,
 * weight before bias. options, of what the parameters are: dtype, device; NULL gives none. */

typedef struct weir_layer_options {
  weir_options tensor;      /* dtype and device of the parameters */
  bool no_bias;             /* without bias */
  weir_conv2d_options conv; /* of a convolution: stride, padding, dilation, groups */
} weir_layer_options;

/* y = x weight^T + bias: weight (out, in), bias (out). Linear(10, 5). Errors: EINVAL. */
WEIR_PUBLIC weir_status weir_module_linear(weir_module **out, int64_t in_features,
                                           int64_t out_features, const weir_layer_options *options);
/* A square kernel: weight (out, in / groups, kernel, kernel), bias (out). Conv2d(1, 20, 5). Errors:
 * EINVAL "in_channels must be divisible by groups", "out_channels must be divisible by groups". */
WEIR_PUBLIC weir_status weir_module_conv2d(weir_module **out, int64_t in_channels,
                                           int64_t out_channels, int64_t kernel,
                                           const weir_layer_options *options);
WEIR_PUBLIC weir_status weir_module_relu(weir_module **out);
/* Dimensions `from` to `to` become one; usual: 1, -1. */
WEIR_PUBLIC weir_status weir_module_flatten(weir_module **out, int from, int to);
/* options are copied. */
WEIR_PUBLIC weir_status weir_module_max_pool2d(weir_module **out,
                                               const weir_pool2d_options *options);
/* Calls its children, named "0", "1", ..., one after the other. Steals the modules, also where this
 * fails; one that is NULL is an error. */
WEIR_PUBLIC weir_status weir_module_sequential(weir_module **out, weir_module *const *children,
                                               size_t count);
/* One more child of a Sequential, which is stolen. */
WEIR_PUBLIC weir_status weir_module_append(weir_module *m, weir_module *child);

#ifdef __cplusplus
}
#endif

#endif
