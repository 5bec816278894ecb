/* module.h: images, modules, functions, libraries and kernels, as module.c, image.c and launch.c
 * share them.
 *
 * Words: image: the code a program loads, opaque to us but for its kind and the names in it. A
 * module is an image in one context, a library an image for all contexts (its modules are made on
 * demand). A function belongs to a module, a kernel to a library. */
#ifndef WEIR_SIM_MODULE_H
#define WEIR_SIM_MODULE_H

#include "cuda/sim/internal.h"

enum sim_found { SIM_ABSENT, SIM_PRESENT, SIM_CANNOT_TELL };

struct sim_image {
  _Atomic uint32_t refs; /* modules and libraries */
  bool elf, ptx;         /* holds such code in the clear */
  size_t bytes;
  char data[]; /* a copy, NUL after it */
};

/* CUDA_ERROR_INVALID_IMAGE when it is neither an ELF file, PTX, nor a fat binary. */
CUresult sim_image_open(const void *code, struct sim_image **image);
CUresult sim_image_read(const char *path, struct sim_image **image);
void sim_image_unref(struct sim_image *image);
enum sim_found sim_image_has_kernel(const struct sim_image *image, const char *name);
/* Size and first value (NULL: zeros; borrowed) of a __device__ variable, if the image shows it. */
bool sim_image_global(const struct sim_image *image, const char *name, size_t *bytes,
                      const void **initial);

struct sim_global { /* storage of a __device__ variable in a module */
  struct sim_global *next;
  CUdeviceptr start;
  size_t bytes;
  char name[];
};

struct CUmod_st {
  _Atomic uint32_t magic;
  CUcontext context;          /* referenced */
  struct sim_image *image;    /* referenced */
  CUlibrary library;          /* it is the library's module of this context; or NULL */
  CUmodule next;              /* modules of the context; sim_modules_lock */
  CUfunction functions;       /* asked for so far */
  struct sim_global *globals; /* asked for so far */
};

struct CUfunc_st {
  _Atomic uint32_t magic;
  CUmodule module;
  CUkernel kernel; /* that it was made from; or NULL */
  CUfunction next; /* functions of the module */
  char *name;
  int attributes[CU_FUNC_ATTRIBUTE_MAX];  /* set by the program; 0: default */
  _Atomic(const struct weir_twin *) twin; /* NULL: none found so far */
  _Atomic uint64_t looked;                /* loaded objects when it was last looked for, +1 */
};

struct CUlib_st {
  _Atomic uint32_t magic;
  struct sim_image *image; /* referenced */
  CUkernel kernels;        /* asked for so far; sim_modules_lock */
};

struct CUkern_st {
  _Atomic uint32_t magic;
  CUlibrary library;
  CUkernel next; /* kernels of the library */
  char *name;
  int attributes[CU_FUNC_ATTRIBUTE_MAX];
};

extern pthread_mutex_t sim_modules_lock; /* taken before sim_memory_lock, after no other */

/* A function or a kernel, as a launch accepts either; the function of the current context. */
CUresult sim_function_find(CUfunction handle, CUfunction *function);
const struct weir_twin *sim_twin_of(CUfunction function);
/* By name, without a function. */
const struct weir_twin *sim_twin_named(const char *name);

/* What a node of a graph does: launch.c. */
CUresult sim_launch_node_op(CUfunction function, const CUDA_KERNEL_NODE_PARAMS_v3 *p,
                            struct sim_op **op);
/* Finds the function and copies the arguments; `owned` is for the caller to free. */
CUresult sim_launch_keep(CUDA_KERNEL_NODE_PARAMS_v3 *p, CUfunction *function, void **owned);

#endif
