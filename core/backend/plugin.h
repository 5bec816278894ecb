/* plugin.h: what libweir.so and libweir-cuda.so know of each other.
 *
 * libweir.so opens the other at the first CUDA use and calls its one export. Each hands the other a
 * struct of functions, so that neither needs a symbol of the other, however the first was loaded
 * (linked, dlopen, linked in statically). The two must be of one version: nothing here is stable.
 */
#ifndef WEIR_BACKEND_PLUGIN_H
#define WEIR_BACKEND_PLUGIN_H

#include "core/backend/backend.h"
#include "core/trace/listener.h"
#include "core/weir/cuda.h"

#define WEIR_CUDA_PLUGIN      "libweir-cuda.so"
#define WEIR_CUDA_PLUGIN_OPEN "weir_cuda_plugin_open"

typedef struct cuda_core {
  weir_status (*fail)(weir_status status, const char *format, ...)
      __attribute__((format(printf, 2, 3))); /* weir_fail() */
  const engine_listener *listener;           /* static; NULL: nobody listens */
  /* Device memory that work in `stream` needs for itself: had and given back in the stream's order,
   * from the allocator. Not for the functions that the allocator calls. */
  weir_status (*allocate)(void **out, uint64_t bytes, int device, void *stream);
  weir_status (*release)(void *memory);
} cuda_core;

typedef struct cuda_plugin {
  const char *version; /* WEIR_VERSION it was built from (static) */
  /* Opens and initialises the driver; once. Errors as in core/weir/cuda.h. */
  weir_status (*start)(const cuda_core *core, int *devices);
  weir_status (*properties)(int index, weir_cuda_device_properties *out);
  /* Whether memory of device `peer` can be reached from device `index`. */
  weir_status (*can_reach)(int index, int peer, bool *can);
  /* The device's backend (borrowed, static); retains its primary context until close. */
  weir_status (*open)(int index, const weir_backend **out);
  weir_status (*close)(int index);
} cuda_plugin;

typedef const cuda_plugin *(*cuda_plugin_open_fn)(void);

/* plugin.c, for the allocator and what stands above it. */
/* Backend of CUDA device `index`, opened. Errors as weir_cuda_get_device_properties(). */
weir_status device_open(int index, const weir_backend **out);
weir_status device_close(int index);
/* Whether memory of CUDA device `peer` can be reached from `index`. Errors: EINVAL, those of
 * opening. */
weir_status device_reach(int index, int peer, bool *can);
/* What cuda_core's functions of the same names are; before any device is opened. */
void device_workspace(weir_status (*allocate)(void **, uint64_t, int, void *),
                      weir_status (*release)(void *));
/* True, and worded, in a child whose parent had opened CUDA before the fork. */
bool device_forked(void);
/* Called in such a child, before anything else of ours runs there. NULL: nothing. */
extern void (*device_on_fork)(void);

#endif
