/* device.c: the devices a program sees: how many, what they state of themselves, which are visible.
 *
 * WEIR_SIM_DEVICES devices exist; CUDA_VISIBLE_DEVICES chooses and orders them (CUDA C++
 * Programming Guide, "CUDA Environment Variables"): numbers or GPU-UUID prefixes; the first entry
 * that names no device, or one named before, hides itself and all that follow. */
#include "cuda/sim/internal.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sim_device sim_devices[SIM_MAX_DEVICES];
int sim_device_count;
pthread_mutex_t sim_devices_lock = PTHREAD_MUTEX_INITIALIZER;

/* Attribute, value. What is not here is 0: not there or not supported. */
#define DEVICE_ATTRIBUTES(X)                                                                       \
  X(MAX_THREADS_PER_BLOCK, 1024)                                                                   \
  X(MAX_BLOCK_DIM_X, 1024)                                                                         \
  X(MAX_BLOCK_DIM_Y, 1024)                                                                         \
  X(MAX_BLOCK_DIM_Z, 64)                                                                           \
  X(MAX_GRID_DIM_X, 0x7fffffff)                                                                    \
  X(MAX_GRID_DIM_Y, 65535)                                                                         \
  X(MAX_GRID_DIM_Z, 65535)                                                                         \
  X(MAX_SHARED_MEMORY_PER_BLOCK, 49152)                                                            \
  X(TOTAL_CONSTANT_MEMORY, 65536)                                                                  \
  X(WARP_SIZE, 32)                                                                                 \
  X(MAX_PITCH, 0x7fffffff)                                                                         \
  X(MAX_REGISTERS_PER_BLOCK, 65536)                                                                \
  X(CLOCK_RATE, 1000000)                                                                           \
  X(TEXTURE_ALIGNMENT, 512)                                                                        \
  X(TEXTURE_PITCH_ALIGNMENT, 32)                                                                   \
  X(SURFACE_ALIGNMENT, 512)                                                                        \
  X(GPU_OVERLAP, 1)                                                                                \
  X(MULTIPROCESSOR_COUNT, 16)                                                                      \
  X(CAN_MAP_HOST_MEMORY, 1)                                                                        \
  X(MAXIMUM_TEXTURE1D_WIDTH, 131072)                                                               \
  X(MAXIMUM_TEXTURE2D_WIDTH, 131072)                                                               \
  X(MAXIMUM_TEXTURE2D_HEIGHT, 65536)                                                               \
  X(MAXIMUM_TEXTURE3D_WIDTH, 16384)                                                                \
  X(MAXIMUM_TEXTURE3D_HEIGHT, 16384)                                                               \
  X(MAXIMUM_TEXTURE3D_DEPTH, 16384)                                                                \
  X(MAXIMUM_TEXTURE2D_LAYERED_WIDTH, 32768)                                                        \
  X(MAXIMUM_TEXTURE2D_LAYERED_HEIGHT, 32768)                                                       \
  X(MAXIMUM_TEXTURE2D_LAYERED_LAYERS, 2048)                                                        \
  X(MAXIMUM_TEXTURE1D_LINEAR_WIDTH, 1 << 28)                                                       \
  X(MAXIMUM_TEXTURE2D_LINEAR_WIDTH, 131072)                                                        \
  X(MAXIMUM_TEXTURE2D_LINEAR_HEIGHT, 65000)                                                        \
  X(MAXIMUM_TEXTURE2D_LINEAR_PITCH, 2097120)                                                       \
  X(MAXIMUM_TEXTURE1D_LAYERED_WIDTH, 32768)                                                        \
  X(MAXIMUM_TEXTURE1D_LAYERED_LAYERS, 2048)                                                        \
  X(MAXIMUM_TEXTURECUBEMAP_WIDTH, 32768)                                                           \
  X(MAXIMUM_SURFACE1D_WIDTH, 32768)                                                                \
  X(MAXIMUM_SURFACE2D_WIDTH, 131072)                                                               \
  X(MAXIMUM_SURFACE2D_HEIGHT, 65536)                                                               \
  X(MAXIMUM_SURFACE3D_WIDTH, 16384)                                                                \
  X(MAXIMUM_SURFACE3D_HEIGHT, 16384)                                                               \
  X(MAXIMUM_SURFACE3D_DEPTH, 16384)                                                                \
  X(MAXIMUM_SURFACE2D_LAYERED_WIDTH, 32768)                                                        \
  X(MAXIMUM_SURFACE2D_LAYERED_HEIGHT, 32768)                                                       \
  X(MAXIMUM_SURFACE2D_LAYERED_LAYERS, 2048)                                                        \
  X(CONCURRENT_KERNELS, 1)                                                                         \
  X(MEMORY_CLOCK_RATE, 1000000)                                                                    \
  X(GLOBAL_MEMORY_BUS_WIDTH, 256)                                                                  \
  X(L2_CACHE_SIZE, 4 << 20)                                                                        \
  X(MAX_THREADS_PER_MULTIPROCESSOR, 2048)                                                          \
  X(ASYNC_ENGINE_COUNT, 3)                                                                         \
  X(UNIFIED_ADDRESSING, 1)                                                                         \
  X(COMPUTE_CAPABILITY_MAJOR, 8)                                                                   \
  X(COMPUTE_CAPABILITY_MINOR, 0)                                                                   \
  X(STREAM_PRIORITIES_SUPPORTED, 1)                                                                \
  X(GLOBAL_L1_CACHE_SUPPORTED, 1)                                                                  \
  X(LOCAL_L1_CACHE_SUPPORTED, 1)                                                                   \
  X(MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 167936)                                                  \
  X(MAX_REGISTERS_PER_MULTIPROCESSOR, 65536)                                                       \
  X(MANAGED_MEMORY, 1)                                                                             \
  X(SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO, 2)                                                      \
  X(CONCURRENT_MANAGED_ACCESS, 1)                                                                  \
  X(COMPUTE_PREEMPTION_SUPPORTED, 1)                                                               \
  X(CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 1)                                                    \
  X(COOPERATIVE_LAUNCH, 1)                                                                         \
  X(MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 166912)                                                     \
  X(HOST_REGISTER_SUPPORTED, 1)                                                                    \
  X(DIRECT_MANAGED_MEM_ACCESS_FROM_HOST, 1)                                                        \
  X(MAX_BLOCKS_PER_MULTIPROCESSOR, 32)                                                             \
  X(RESERVED_SHARED_MEMORY_PER_BLOCK, 1024)                                                        \
  X(READ_ONLY_HOST_REGISTER_SUPPORTED, 1)                                                          \
  X(VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1)                                                        \
  X(HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 1)                                                \
  X(CAN_USE_STREAM_MEM_OPS_V1, 1)                                                                  \
  X(CAN_USE_64_BIT_STREAM_MEM_OPS_V1, 1)                                                           \
  X(CAN_USE_STREAM_WAIT_VALUE_NOR_V1, 1)                                                           \
  X(CAN_USE_64_BIT_STREAM_MEM_OPS, 1)                                                              \
  X(CAN_USE_STREAM_WAIT_VALUE_NOR, 1)                                                              \
  X(IPC_EVENT_SUPPORTED, 1)                                                                        \
  X(MAX_PERSISTING_L2_CACHE_SIZE, 3 << 20)                                                         \
  X(MAX_ACCESS_POLICY_WINDOW_SIZE, 128 << 20)                                                      \
  X(GENERIC_COMPRESSION_SUPPORTED, 1)                                                              \
  X(MEMPOOL_SUPPORTED_HANDLE_TYPES, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)                      \
  X(HOST_MEMORY_POOLS_SUPPORTED, 1)                                                                \
  X(HOST_NUMA_MEMORY_POOLS_SUPPORTED, 1)                                                           \
  X(MEMORY_POOLS_SUPPORTED, 1)                                                                     \
  X(MEM_SYNC_DOMAIN_COUNT, 1)                                                                      \
  X(UNIFIED_FUNCTION_POINTERS, 0)                                                                  \
  X(NUMA_ID, -1)                                                                                   \
  X(HOST_NUMA_ID, 0)

static const struct {
  int attribute, value;
} attributes[] = {
#define ATTRIBUTE_ROW(name, value) {CU_DEVICE_ATTRIBUTE_##name, value},
    DEVICE_ATTRIBUTES(ATTRIBUTE_ROW)
#undef ATTRIBUTE_ROW
};

/* WEIR_SIM_ATTRIBUTES. */
static struct {
  int attribute, value;
} others[16];
static size_t others_count;

static void read_others(void)
{
  const char *at = getenv("WEIR_SIM_ATTRIBUTES");
  char *end;
  for (others_count = 0; at && others_count < sizeof others / sizeof *others; others_count++) {
    long attribute = strtol(at, &end, 10);
    if (end == at || *end != ':') return;
    others[others_count].attribute = (int)attribute;
    others[others_count].value = (int)strtol(end + 1, &end, 10);
    at = *end == ',' ? end + 1 : NULL;
  }
}

bool sim_device_set_attribute(int attribute, int value)
{
  size_t i = 0;
  while (i < others_count && others[i].attribute != attribute)
    i++;
  if (i == sizeof others / sizeof *others) return false;
  others[i].value = value;
  others[i].attribute = attribute;
  if (i == others_count) others_count++;
  return true;
}

static bool needs_file(CUdevice_attribute attribute)
{
  return attribute == CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED ||
         attribute == CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES ||
         attribute == CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED;
}

int sim_device_attribute(const struct sim_device *device, CUdevice_attribute attribute)
{
  for (size_t i = 0; i < others_count; i++)
    if (others[i].attribute == (int)attribute) return others[i].value;
  if (attribute == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID) return 0x10 + device->index;
  if (device->file < 0 && needs_file(attribute)) return 0;
  for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++)
    if (attributes[i].attribute == (int)attribute) return attributes[i].value;
  return 0;
}

/* ---- start ----------------------------------------------------------------------------------- */

static int device_count_of(void)
{
  const char *text = getenv("WEIR_SIM_DEVICES");
  if (!text || !*text) return 1;
  char *end;
  long n = strtol(text, &end, 10);
  if (*end || n < 0 || n > SIM_MAX_DEVICES) {
    sim_print_once(NULL, "weir sim: WEIR_SIM_DEVICES=%s is not a number from 0 to %d; 1 is used",
                   text, SIM_MAX_DEVICES);
    return 1;
  }
  return (int)n;
}

static CUuuid uuid_of(int index)
{
  CUuuid u = {{'W', 'E', 'I', 'R', 0, 0, 0x40, 0, (char)0x80, 0, 's', 'i', 'm', 0, 0, (char)index}};
  return u;
}

static void uuid_text(int index, char text[48])
{
  CUuuid u = uuid_of(index);
  char *p = text + sprintf(text, "GPU-");
  for (int i = 0; i < 16; i++)
    p += sprintf(p, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "",
                 (unsigned)(unsigned char)u.bytes[i]);
}

/* The device an entry of CUDA_VISIBLE_DEVICES names, or -1. A UUID prefix must fit one only. */
static int visible_entry(const char *entry, int there)
{
  while (isspace((unsigned char)*entry))
    entry++;
  if (strncmp(entry, "GPU-", 4) == 0) {
    int found = -1;
    for (int i = 0; i < there; i++) {
      char text[48];
      uuid_text(i, text);
      if (strncasecmp(text, entry, strlen(entry)) != 0) continue;
      if (found >= 0) return -1;
      found = i;
    }
    return found;
  }
  char *end;
  long n = strtol(entry, &end, 10);
  while (isspace((unsigned char)*end))
    end++;
  return end == entry || *end || n < 0 || n >= there ? -1 : (int)n;
}

static int visible_devices(int there, int chosen[SIM_MAX_DEVICES])
{
  int count = 0;
  const char *text = getenv("CUDA_VISIBLE_DEVICES");
  if (!text) {
    while (count < there) {
      chosen[count] = count;
      count++;
    }
    return count;
  }
  char copy[2048];
  strncpy(copy, text, sizeof copy - 1);
  copy[sizeof copy - 1] = 0;
  uint32_t taken = 0;
  char *rest = copy;
  for (char *entry; (entry = strsep(&rest, ","));) {
    int index = visible_entry(entry, there);
    if (index < 0 || taken >> index & 1) break;
    taken |= UINT32_C(1) << index;
    chosen[count++] = index;
  }
  return count;
}

int sim_devices_find(void)
{
  int chosen[SIM_MAX_DEVICES];
  int count = visible_devices(device_count_of(), chosen);
  if (count) read_others();
  for (int i = 0; i < count; i++) {
    struct sim_device *d = &sim_devices[i];
    d->ordinal = i;
    d->index = chosen[i];
    d->uuid = uuid_of(chosen[i]);
    for (int e = 0; e < SIM_DIRECTIONS; e++)
      pthread_mutex_init(&d->engine[e], NULL);
  }
  return count;
}

/* ---- device queries -------------------------------------------------------------------------- */

#define NEED_DEVICE(d, ordinal)                                                                    \
  struct sim_device *d = sim_device(ordinal);                                                      \
  if (!d) return CUDA_ERROR_INVALID_DEVICE

SIM_ASSIGN(cuDeviceGetCount, SIM_NEED(count), *count, sim_device_count)
SIM_ASSIGN(cuDeviceGet, SIM_NEED(device); NEED_DEVICE(d, ordinal), *device, d->ordinal)

CUresult sim_cuDeviceGetName(char *name, int len, CUdevice dev)
{
  if (!name || len < 1) return CUDA_ERROR_INVALID_VALUE;
  NEED_DEVICE(d, dev);
  (void)d;
  (void)snprintf(name, (size_t)len, "Weir Software Device");
  return CUDA_SUCCESS;
}

SIM_ASSIGN(cuDeviceGetUuid_v2, SIM_NEED(uuid); NEED_DEVICE(d, dev), *uuid, d->uuid)
SIM_ASSIGN(cuDeviceTotalMem_v2, SIM_NEED(bytes);
           NEED_DEVICE(d, dev), *bytes, atomic_load(&d->capacity))
SIM_ASSIGN(cuDeviceGetAttribute,
           SIM_NEED(pi && (int)attrib >= 1 && attrib < CU_DEVICE_ATTRIBUTE_MAX);
           NEED_DEVICE(d, dev), *pi, sim_device_attribute(d, attrib))

CUresult sim_cuDeviceComputeCapability(int *major, int *minor, CUdevice dev)
{
  if (!major || !minor) return CUDA_ERROR_INVALID_VALUE;
  NEED_DEVICE(d, dev);
  *major = sim_device_attribute(d, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  *minor = sim_device_attribute(d, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetProperties(CUdevprop *p, CUdevice dev)
{
  if (!p) return CUDA_ERROR_INVALID_VALUE;
  NEED_DEVICE(d, dev);
#define PROPERTY(name) sim_device_attribute(d, CU_DEVICE_ATTRIBUTE_##name)
  *p = (CUdevprop){
      .maxThreadsPerBlock = PROPERTY(MAX_THREADS_PER_BLOCK),
      .maxThreadsDim = {PROPERTY(MAX_BLOCK_DIM_X), PROPERTY(MAX_BLOCK_DIM_Y),
                        PROPERTY(MAX_BLOCK_DIM_Z)},
      .maxGridSize = {PROPERTY(MAX_GRID_DIM_X), PROPERTY(MAX_GRID_DIM_Y), PROPERTY(MAX_GRID_DIM_Z)},
      .sharedMemPerBlock = PROPERTY(MAX_SHARED_MEMORY_PER_BLOCK),
      .totalConstantMemory = PROPERTY(TOTAL_CONSTANT_MEMORY),
      .SIMDWidth = PROPERTY(WARP_SIZE),
      .memPitch = PROPERTY(MAX_PITCH),
      .regsPerBlock = PROPERTY(MAX_REGISTERS_PER_BLOCK),
      .clockRate = PROPERTY(CLOCK_RATE),
      .textureAlign = PROPERTY(TEXTURE_ALIGNMENT)};
  return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetPCIBusId(char *text, int len, CUdevice dev)
{
  if (!text || len < 1) return CUDA_ERROR_INVALID_VALUE;
  NEED_DEVICE(d, dev);
  (void)snprintf(text, (size_t)len, "0000:%02X:00.0", (unsigned)(0x10 + d->index));
  return CUDA_SUCCESS;
}

CUresult sim_cuDeviceGetByPCIBusId(CUdevice *dev, const char *text)
{
  if (!dev || !text) return CUDA_ERROR_INVALID_VALUE;
  unsigned domain = 0, bus, device, function = 0;
  if (sscanf(text, "%x:%x:%x.%x", &domain, &bus, &device, &function) < 3) {
    domain = function = 0;
    if (sscanf(text, "%x:%x.%x", &bus, &device, &function) < 2) return CUDA_ERROR_INVALID_VALUE;
  }
  for (int i = 0; i < sim_device_count; i++) {
    if (domain || device || function || bus != (unsigned)(0x10 + sim_devices[i].index)) continue;
    *dev = i;
    return CUDA_SUCCESS;
  }
  return CUDA_ERROR_INVALID_DEVICE;
}

SIM_ASSIGN(cuDeviceCanAccessPeer, SIM_NEED(canAccessPeer); SIM_NEED_DEVICE(dev);
           SIM_NEED_DEVICE(peerDev), *canAccessPeer, dev != peerDev)

CUresult sim_cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attribute, CUdevice src,
                                     CUdevice dst)
{
  if (!value) return CUDA_ERROR_INVALID_VALUE;
  if (!sim_device(src) || !sim_device(dst) || src == dst) return CUDA_ERROR_INVALID_DEVICE;
  switch ((int)attribute) {
  case CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK:
    *value = 0;
    return CUDA_SUCCESS;
  case CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED:
  case CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED:
  case CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED:
    *value = 1;
    return CUDA_SUCCESS;
  default:
    return CUDA_ERROR_INVALID_VALUE;
  }
}

SIM_ASSIGN(cuDeviceGetExecAffinitySupport,
           SIM_NEED(pi && (unsigned)type < CU_EXEC_AFFINITY_TYPE_MAX);
           SIM_NEED_DEVICE(dev), *pi, 0)
