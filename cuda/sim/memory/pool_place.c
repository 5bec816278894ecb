/* pool_place.c: memory pools by the place of their memory, and pools of other processes.
 *
 * A device has its default and its current pool (pool.c); so have the host and each of its NUMA
 * nodes, made when they are first asked for. An exported pool is a file that states whose it is; an
 * exported pointer is a handle of ipc.c with the pool's number. Who imports the pool can map such
 * pointers, and allocate nothing. */
#include "cuda/sim/memory/ipc.h"
#include "cuda/sim/memory/pool.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define NODES 64 /* of the host, at most; bits of a word */

static struct {
  CUmemoryPool first, current; /* NULL: not asked for yet */
} of_host[1 + NODES];          /* of the host, then by node; sim_memory_lock */
static pthread_mutex_t making = PTHREAD_MUTEX_INITIALIZER;

/* ---- places ---------------------------------------------------------------------------------- */

static bool is_node(int id)
{
  char path[64];
  if (id < 0 || id >= NODES) return false;
  (void)snprintf(path, sizeof path, "/sys/devices/system/node/node%d", id);
  return id == 0 || access(path, F_OK) == 0; /* a kernel without NUMA has the one */
}

CUresult sim_pool_place(const CUmemLocation *place)
{
  switch ((int)place->type) {
  case CU_MEM_LOCATION_TYPE_DEVICE:
    return sim_device(place->id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
  case CU_MEM_LOCATION_TYPE_HOST:
    return CUDA_SUCCESS;
  case CU_MEM_LOCATION_TYPE_HOST_NUMA:
    return is_node(place->id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  default:
    return CUDA_ERROR_INVALID_VALUE;
  }
}

static CUresult check_place(const CUmemLocation *where, CUmemAllocationType type)
{
  if (!where) return CUDA_ERROR_INVALID_VALUE;
  if (type == CU_MEM_ALLOCATION_TYPE_MANAGED) return CUDA_ERROR_NOT_SUPPORTED;
  if (type != CU_MEM_ALLOCATION_TYPE_PINNED) return CUDA_ERROR_INVALID_VALUE;
  return sim_pool_place(where);
}

static int place_number(const CUmemLocation *where)
{
  return where->type == CU_MEM_LOCATION_TYPE_HOST ? 0 : 1 + where->id;
}

static CUresult host_pools(const CUmemLocation *where, int *number)
{
  CUresult error = CUDA_SUCCESS;
  *number = place_number(where);
  pthread_mutex_lock(&making);
  if (!of_host[*number].first) {
    CUmemoryPool p = sim_pool_new(NULL, where);
    pthread_mutex_lock(&sim_memory_lock);
    of_host[*number].first = of_host[*number].current = p;
    pthread_mutex_unlock(&sim_memory_lock);
    if (!p) error = CUDA_ERROR_OUT_OF_MEMORY;
  }
  pthread_mutex_unlock(&making);
  return error;
}

bool sim_pool_is_default(CUmemoryPool p)
{
  return !p->device && of_host[place_number(&p->place)].first == p;
}

void sim_pool_replace(CUmemoryPool p)
{
  int number = p->device ? -1 : place_number(&p->place);
  if (number >= 0 && of_host[number].current == p) of_host[number].current = of_host[number].first;
}

CUresult sim_cuMemGetDefaultMemPool(CUmemoryPool *pool, CUmemLocation *where,
                                    CUmemAllocationType type)
{
  int number;
  CUresult error = check_place(where, type);
  if (error) return error;
  if (where->type == CU_MEM_LOCATION_TYPE_DEVICE)
    return sim_cuDeviceGetDefaultMemPool(pool, where->id);
  if (!pool) return CUDA_ERROR_INVALID_VALUE;
  error = host_pools(where, &number);
  if (!error) *pool = of_host[number].first;
  return error;
}

CUresult sim_cuMemGetMemPool(CUmemoryPool *pool, CUmemLocation *where, CUmemAllocationType type)
{
  int number;
  CUresult error = check_place(where, type);
  if (error) return error;
  if (where->type == CU_MEM_LOCATION_TYPE_DEVICE) return sim_cuDeviceGetMemPool(pool, where->id);
  if (!pool) return CUDA_ERROR_INVALID_VALUE;
  error = host_pools(where, &number);
  SIM_HOLD(sim_memory_lock);
  if (!error) *pool = of_host[number].current;
  return error;
}

CUresult sim_cuMemSetMemPool(CUmemLocation *where, CUmemAllocationType type, CUmemoryPool pool)
{
  int number;
  CUresult error = check_place(where, type);
  if (error) return error;
  if (where->type == CU_MEM_LOCATION_TYPE_DEVICE) return sim_cuDeviceSetMemPool(where->id, pool);
  if (!sim_arena_has(&sim_pools, pool) || pool->device ||
      place_number(&pool->place) != place_number(where))
    return CUDA_ERROR_INVALID_VALUE;
  error = host_pools(where, &number);
  SIM_HOLD(sim_memory_lock);
  if (!error) of_host[number].current = pool;
  return error;
}

/* ---- between processes ----------------------------------------------------------------------- */

struct passport { /* all that is in an exported pool's file */
  char magic[16];
  int32_t index; /* of the device, whatever is visible */
  int32_t pid;
  uint64_t number;
};

#define PASSPORT_MAGIC "weir-sim-pool"
#define DESCRIPTOR     CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR

CUresult sim_cuMemPoolExportToShareableHandle(void *out, CUmemoryPool p,
                                              CUmemAllocationHandleType type,
                                              unsigned long long flags)
{
  if (!out || flags || !sim_arena_has(&sim_pools, p) || type != DESCRIPTOR ||
      !(p->handle_types & (unsigned)type) || p->imported)
    return CUDA_ERROR_INVALID_VALUE;
  struct passport is = {PASSPORT_MAGIC, p->device->index, p->pid, p->number};
  int file = memfd_create("weir-sim-pool", MFD_CLOEXEC);
  if (file < 0) return CUDA_ERROR_OPERATING_SYSTEM;
  if (pwrite(file, &is, sizeof is, 0) != (ssize_t)sizeof is) {
    close(file);
    return CUDA_ERROR_OPERATING_SYSTEM;
  }
  *(int *)out = file;
  return CUDA_SUCCESS;
}

static bool read_passport(int file, struct passport *is)
{
  struct stat s;
  return file >= 0 && fstat(file, &s) == 0 && S_ISREG(s.st_mode) && s.st_size == sizeof *is &&
         pread(file, is, sizeof *is, 0) == (ssize_t)sizeof *is &&
         memcmp(is->magic, PASSPORT_MAGIC, sizeof PASSPORT_MAGIC) == 0 && is->number;
}

CUresult sim_cuMemPoolImportFromShareableHandle(CUmemoryPool *pool, void *handle,
                                                CUmemAllocationHandleType type,
                                                unsigned long long flags)
{
  struct passport is;
  if (!pool || flags || type != DESCRIPTOR || !read_passport((int)(intptr_t)handle, &is))
    return CUDA_ERROR_INVALID_VALUE;
  struct sim_device *d = NULL;
  for (int i = 0; i < sim_device_count; i++)
    if (sim_devices[i].index == is.index) d = &sim_devices[i];
  if (!d) return CUDA_ERROR_NOT_SUPPORTED; /* memory of a device that is not visible here */
  const CUmemLocation here = {CU_MEM_LOCATION_TYPE_DEVICE, d->ordinal};
  CUmemoryPool p = sim_pool_new(d, &here);
  if (!p) return CUDA_ERROR_OUT_OF_MEMORY;
  p->imported = true;
  p->pid = is.pid;
  p->number = is.number;
  *pool = p;
  return CUDA_SUCCESS;
}

_Static_assert(sizeof(CUmemPoolPtrExportData) == CU_IPC_HANDLE_SIZE, "an exported pointer's room");

CUresult sim_cuMemPoolExportPointer(CUmemPoolPtrExportData *out, CUdeviceptr p)
{
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  memset(out, 0, sizeof *out);
  SIM_HOLD(sim_memory_lock);
  struct sim_range *r = sim_range_at(p, 1);
  bool mine = r && r->start == p && r->pool && r->pool->handle_types && !r->import;
  CUresult error = mine ? sim_range_export(r, r->pool->number, out) : CUDA_ERROR_INVALID_VALUE;
  return error;
}

CUresult sim_cuMemPoolImportPointer(CUdeviceptr *p, CUmemoryPool pool, CUmemPoolPtrExportData *data)
{
  SIM_NEED_CONTEXT(c);
  if (!p || !data || !sim_arena_has(&sim_pools, pool) || !pool->imported)
    return CUDA_ERROR_INVALID_VALUE;
  return sim_range_import(c, data, pool->pid, pool->number, pool, p);
}
