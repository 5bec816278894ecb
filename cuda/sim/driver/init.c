/* init.c: initialisation: the devices, and the memory and pools that they begin with. */
#include "cuda/sim/internal.h"

#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static CUresult start_devices(void)
{
  int count = sim_devices_find();
  if (!count) return CUDA_ERROR_NO_DEVICE;
  size_t capacity = sim_parse_bytes(getenv("WEIR_SIM_MEMORY"), (size_t)8 << 30);
  for (int i = 0; i < count; i++) {
    sim_devices[i].module_takes = sim_parse_bytes(getenv("WEIR_SIM_MODULE"), 0);
    sim_devices[i].context_takes = sim_parse_bytes(getenv("WEIR_SIM_CONTEXT"), 0);
    CUresult error = sim_heap_start(&sim_devices[i], capacity);
    if (!error) error = sim_pools_start(&sim_devices[i]);
    if (error) return error;
  }
  sim_device_count = count;
  return CUDA_SUCCESS;
}

static void fork_child_of_driver(void) /* nobody is initialising there */
{
  pthread_mutex_init(&lock, NULL);
}

static void watch_forks_of_driver(void)
{
  pthread_atfork(NULL, NULL, fork_child_of_driver);
}

CUresult sim_cuInit(unsigned int flags)
{
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  if (flags) return CUDA_ERROR_INVALID_VALUE;
  pthread_once(&once, watch_forks_of_driver);
  SIM_HOLD(lock);
  CUresult error = CUDA_SUCCESS;
  if (atomic_load(&sim_gate) & SIM_GATE_UNINITIALISED) {
    error = start_devices();
    if (!error) atomic_fetch_and(&sim_gate, ~(uint32_t)SIM_GATE_UNINITIALISED);
  }
  return error;
}

CUresult sim_cuDriverGetVersion(int *version)
{
  if (!version) return CUDA_ERROR_INVALID_VALUE;
  const char *older = getenv("WEIR_SIM_DRIVER");
  *version = older ? (int)strtol(older, NULL, 10) : SIM_DRIVER_VERSION;
  return CUDA_SUCCESS;
}
