/* watched.c: the entry points that programs call: each calls what the other files define, and
 * reports to a watcher of the software device (watch.h) that it begins and ends, where there is
 * one.
 *
 * The call that loads the driver is not seen: there is nobody to report it to before. */
#include <cuda_profiler_api.h>
#include "cuda/sim/runtime/rt.h"

#define W(name, params, members, arguments)                                                        \
  cudaError_t rt_of_##name params;                                                                 \
  RT_API cudaError_t CUDARTAPI name params;                                                        \
  RT_API cudaError_t CUDARTAPI name params                                                         \
  {                                                                                                \
    struct {                                                                                       \
      members                                                                                      \
    } parameters_ = {RT_FIELDS arguments};                                                         \
    void *call_ = rt_call_begins(#name, &parameters_);                                             \
    return rt_call_ends(call_, rt_of_##name arguments);                                            \
  }
#define RT_FIELDS(...) __VA_ARGS__
#define W0(name)                                                                                   \
  cudaError_t rt_of_##name(void);                                                                  \
  RT_API cudaError_t CUDARTAPI name(void);                                                         \
  RT_API cudaError_t CUDARTAPI name(void)                                                          \
  {                                                                                                \
    void *call_ = rt_call_begins(#name, NULL);                                                     \
    return rt_call_ends(call_, rt_of_##name());                                                    \
  }

#include "watched.gen.h"
