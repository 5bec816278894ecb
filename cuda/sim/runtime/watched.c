/* watched.c: the entry points that programs call: each calls what the other files define, and says
 * to a watcher of the software device (watch.h) that it begins and ends, where there is one.
 *
 * The call that loads the driver is not seen: there is nobody to say it to before. */
#include <cuda_profiler_api.h>
#include "cuda/sim/runtime/rt.h"

static void *(*begins)(const char *, const void *);
static void (*ends)(void *, void *); /* set before the other is */

void rt_watch_start(void)
{
  void *first = rt_driver_symbol("weir_sim_call_begins");
  void *last = rt_driver_symbol("weir_sim_call_ends");
  __builtin_memcpy(&ends, &last, sizeof last);
  __atomic_store_n((void **)&begins, first, __ATOMIC_RELEASE);
}

/* Something for call_ends(), where somebody watches; else NULL. */
static inline void *call_begins(const char *name, const void *params)
{
  void *(*begin)(const char *, const void *) = __atomic_load_n(&begins, __ATOMIC_ACQUIRE);
  return begin ? begin(name, params) : NULL;
}

static inline cudaError_t call_ends(void *call, cudaError_t error)
{
  if (__builtin_expect(call != NULL, 0)) ends(call, &error);
  return error;
}

#define W(name, params, members, arguments)                                                        \
  cudaError_t rt_of_##name params;                                                                 \
  RT_API cudaError_t CUDARTAPI name params;                                                        \
  RT_API cudaError_t CUDARTAPI name params                                                         \
  {                                                                                                \
    struct {                                                                                       \
      members                                                                                      \
    } parameters_ = {RT_FIELDS arguments};                                                         \
    void *call_ = call_begins(#name, &parameters_);                                                \
    return call_ends(call_, rt_of_##name arguments);                                               \
  }
#define RT_FIELDS(...) __VA_ARGS__
#define W0(name)                                                                                   \
  cudaError_t rt_of_##name(void);                                                                  \
  RT_API cudaError_t CUDARTAPI name(void);                                                         \
  RT_API cudaError_t CUDARTAPI name(void)                                                          \
  {                                                                                                \
    void *call_ = call_begins(#name, NULL);                                                        \
    return call_ends(call_, rt_of_##name());                                                       \
  }

#include "watched.gen.h"
