/* ipc.c: memory shared with other processes.
 *
 * It is a part of the device's own file; the file's last pages are the *exports*: the ids of
 * exported allocations that still live, so that a handle (device/handle.h) outlives neither its
 * allocation nor its process. */
#include "cuda/sim/device/handle.h"
#include "cuda/sim/memory/ipc.h"
#include "cuda/sim/memory/pool.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MEMORY_MAGIC "weirsimM"
#define EXPORTS      (SIM_EXPORTS_BYTES / sizeof(uint64_t))

struct sim_import {
  int32_t pid;
  uint64_t started, id;
  uint32_t refs; /* opens */
};

/* ---- memory that is exported; sim_memory_lock held ------------------------------------------- */

static bool open_exports(struct sim_device *d)
{
  if (d->exports) return true;
  struct stat s;
  if (d->file < 0 || fstat(d->file, &s) || s.st_ino != d->inode) return false;
  void *p = mmap(NULL, SIM_EXPORTS_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, d->file,
                 s.st_size - (off_t)SIM_EXPORTS_BYTES);
  if (p == MAP_FAILED) return false;
  d->exports = p;
  return true;
}

/* The range's place among the exports, from 1. */
static bool give_place(struct sim_range *r)
{
  struct sim_device *d = r->device;
  if (r->exported) return true;
  if (!open_exports(d)) return false;
  for (uint32_t i = 0; i < EXPORTS; i++) {
    if (atomic_load(&d->exports[i])) continue;
    atomic_store(&d->exports[i], r->id);
    r->exported = i + 1;
    return true;
  }
  return false;
}

void sim_export_end(struct sim_range *r)
{
  if (r->exported) atomic_store(&r->device->exports[r->exported - 1], 0);
  r->exported = 0;
}

bool sim_range_exports(const struct sim_range *r)
{
  return r->kind == SIM_DEVICE && !r->pool && !r->graph && !r->hidden && r->device->file >= 0;
}

CUresult sim_range_export(struct sim_range *r, uint64_t pool, void *out)
{
  struct sim_handle h = {
      .magic = MEMORY_MAGIC, .pid = getpid(), .started = sim_process_started(getpid())};
  if (!give_place(r) || !sim_file_is(r->device->file, r->device->inode))
    return CUDA_ERROR_MAP_FAILED;
  h.file = r->device->file;
  h.offset = (uint64_t)(r->start - (uintptr_t)r->device->home);
  h.bytes = r->bytes;
  h.id = r->id;
  h.index = r->device->index;
  h.place = r->exported - 1;
  h.pool = pool;
  memcpy(out, &h, sizeof h);
  return CUDA_SUCCESS;
}

CUresult sim_cuIpcGetMemHandle(CUipcMemHandle *out, CUdeviceptr p)
{
  SIM_NEED_CURRENT();
  if (!out) return CUDA_ERROR_INVALID_VALUE;
  memset(out, 0, sizeof *out);
  SIM_HOLD(sim_memory_lock);
  struct sim_range *r = sim_range_at(p, 1);
  /* "a pointer to the base of an existing allocation" */
  bool base = r && r->start == p && sim_range_exports(r);
  CUresult error = base ? sim_range_export(r, 0, out) : CUDA_ERROR_INVALID_VALUE;
  return error;
}

/* ---- memory of others ------------------------------------------------------------------------ */

static struct sim_device *device_of_ipc(const struct sim_handle *h)
{
  for (int i = 0; i < sim_device_count; i++)
    if (sim_devices[i].index == h->index) return &sim_devices[i];
  return NULL;
}

/* The allocation is still what it was when the handle was made. */
static bool still_exported(const struct sim_handle *h, int file)
{
  struct stat s;
  uint64_t id = 0;
  if (fstat(file, &s) || h->place >= EXPORTS) return false;
  off_t at = s.st_size - (off_t)SIM_EXPORTS_BYTES + (off_t)(h->place * sizeof id);
  return pread(file, &id, sizeof id, at) == (ssize_t)sizeof id && id == h->id;
}

static struct sim_range *already_open(CUcontext c, const struct sim_handle *h)
{
  for (struct sim_range *r = c->ranges; r; r = r->next)
    if (r->import && r->import->id == h->id && r->import->pid == h->pid &&
        r->import->started == h->started)
      return r;
  return NULL;
}

/* Maps the pages around the allocation; a range for the allocation itself. */
static CUresult map_import(CUcontext c, const struct sim_handle *h, int file, CUmemoryPool pool,
                           CUdeviceptr *p)
{
  size_t page = (size_t)sysconf(_SC_PAGESIZE), skip = h->offset % page;
  struct sim_device *d = device_of_ipc(h);
  struct sim_import *m = calloc(1, sizeof *m);
  struct sim_range *r = d && m ? sim_range_new(SIM_IMPORTED, c, d, h->bytes) : NULL;
  void *start = r ? mmap(NULL, h->bytes + skip, PROT_READ | PROT_WRITE, MAP_SHARED, file,
                         (off_t)(h->offset - skip))
                  : MAP_FAILED;
  if (start == MAP_FAILED) {
    free(m);
    free(r);
    return CUDA_ERROR_MAP_FAILED;
  }
  *m = (struct sim_import){.pid = h->pid, .started = h->started, .id = h->id, .refs = 1};
  r->start = (uintptr_t)start + skip;
  r->reserved = h->bytes + skip;
  r->import = m;
  r->pool = pool;
  if (sim_range_add(r)) {
    if (pool) sim_pool_count(pool, r->reserved);
    *p = r->start;
    return CUDA_SUCCESS;
  }
  munmap(start, r->reserved);
  free(m);
  free(r);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

void sim_import_end(struct sim_range *r)
{
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  munmap((void *)(r->start / page * page), r->reserved);
  free(r->import);
  r->import = NULL;
}

CUresult sim_cuIpcOpenMemHandle_v2(CUdeviceptr *p, CUipcMemHandle handle, unsigned int flags)
{
  SIM_NEED_CONTEXT(c);
  struct sim_handle h;
  memcpy(&h, &handle, sizeof h);
  if (!p || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS) return CUDA_ERROR_INVALID_VALUE;
  CUresult error = h.pool ? CUDA_ERROR_INVALID_VALUE : sim_handle_check(&h, MEMORY_MAGIC);
  if (error) return error;
  int file = sim_handle_open(&h, "/memfd:weir-sim-device");
  if (file < 0) return CUDA_ERROR_MAP_FAILED;
  pthread_mutex_lock(&sim_memory_lock);
  struct sim_range *r = already_open(c, &h);
  if (!still_exported(&h, file)) {
    error = CUDA_ERROR_INVALID_HANDLE; /* freed since */
  } else if (r) {
    r->import->refs++;
    *p = r->start;
  } else {
    error = map_import(c, &h, file, NULL, p);
  }
  pthread_mutex_unlock(&sim_memory_lock);
  close(file);
  return error;
}

CUresult sim_range_import(CUcontext c, const void *data, int pid, uint64_t number,
                          CUmemoryPool pool, CUdeviceptr *p)
{
  struct sim_handle h;
  memcpy(&h, data, sizeof h);
  if (memcmp(h.magic, MEMORY_MAGIC, sizeof h.magic) != 0 || h.pool != number || h.pid != pid)
    return CUDA_ERROR_INVALID_VALUE;
  int file = sim_handle_open(&h, "/memfd:weir-sim-device");
  if (file < 0) return CUDA_ERROR_MAP_FAILED;
  pthread_mutex_lock(&sim_memory_lock);
  CUresult error = still_exported(&h, file) ? map_import(c, &h, file, pool, p)
                                            : CUDA_ERROR_INVALID_VALUE; /* freed since */
  pthread_mutex_unlock(&sim_memory_lock);
  close(file);
  return error;
}

CUresult sim_cuIpcCloseMemHandle(CUdeviceptr p)
{
  SIM_NEED_CURRENT();
  pthread_mutex_lock(&sim_memory_lock);
  struct sim_range *r = sim_range_at(p, 1);
  bool mine = r && r->start == p && r->import && !r->pool;
  bool last = mine && --r->import->refs == 0;
  pthread_mutex_unlock(&sim_memory_lock);
  if (!mine) return CUDA_ERROR_INVALID_VALUE;
  return last ? sim_range_free(p, SIM_IMPORTED) : CUDA_SUCCESS;
}
