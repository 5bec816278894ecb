/* vmm.c: virtual memory management: reserved addresses, memory without an address, and mappings.
 *
 * A *reservation* (cuMemAddressReserve) is address space of its own, inaccessible. *Physical*
 * memory (cuMemCreate) is granules of a device's file, or, where it is to be exported, a file of
 * its own; its *home* is where that file is mapped, without access, for as long as the memory
 * lives. A *mapping* (cuMemMap) is the home's pages a second time, in a reservation, and a range in
 * the tree (memory.c); it becomes accessible with cuMemSetAccess. Neighbours in the file mapped to
 * neighbouring addresses are one mapping to the kernel, so that thousands cost few.
 *
 * Physical memory ends with the last of: references of the program (create, retain, import), and
 * mappings. The pages carry the union of what all devices may do: what one device may is asked of
 * copies and memsets (copy.c), and cannot be of a kernel. cuMemUnmap waits for nothing: work that
 * still uses the memory faults, as it would. All under sim_memory_lock. */
#include "cuda/sim/internal.h"

#include <fcntl.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct sim_physical {
  uint32_t magic;
  uint32_t refs; /* of the program; the handle is dead at 0 */
  uint32_t maps; /* mappings */
  struct sim_device *device;
  size_t bytes;
  char *home;  /* where the pages are mapped, without access */
  int file;    /* of its own, to export; -1: the device's */
  ino_t inode; /* of that file: programs close what is not theirs */
  bool counts; /* against the device's capacity; false: imported */
  CUmemAllocationProp prop;
};

struct sim_reservation {
  uintptr_t start;
  size_t bytes;
  uint32_t maps; /* mappings within */
};

struct tail { /* last page of an exportable file: what it is */
  char magic[16];
  uint64_t bytes; /* of the memory, from 0 */
  int32_t index;  /* of the device, whatever is visible */
  CUmemAllocationProp prop;
};

#define RDMA_WITH_VMM CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED

#define TAIL_MAGIC "weir-sim-memory"
#define TAIL_BYTES ((size_t)4096)

static struct sim_arena physicals = SIM_ARENA(struct sim_physical, SIM_PHYSICAL);
static void *reservations; /* tree of struct sim_reservation, by address */

/* ---- reservations ---------------------------------------------------------------------------- */

static int compare_maps(const void *left, const void *right)
{
  const struct sim_reservation *a = left, *b = right;
  if (a->start + a->bytes <= b->start) return -1;
  return a->start >= b->start + b->bytes;
}

/* The reservation that holds [p, p + bytes). */
static struct sim_reservation *reservation_at(uintptr_t p, size_t bytes)
{
  struct sim_reservation key = {.start = p, .bytes = 1};
  struct sim_reservation **found =
      (struct sim_reservation **)tfind(&key, &reservations, compare_maps);
  struct sim_reservation *v = found ? *found : NULL;
  return v && bytes <= v->bytes - (p - v->start) ? v : NULL;
}

bool sim_reserved_at(uintptr_t p, uintptr_t *start, size_t *bytes)
{
  struct sim_reservation *v = reservation_at(p, 1);
  if (v && start) *start = v->start;
  if (v && bytes) *bytes = v->bytes;
  return v != NULL;
}

static void *space_of_device(size_t bytes, size_t alignment, uintptr_t hint)
{
  if (bytes > SIZE_MAX - alignment) return NULL;
  hint = (hint + alignment - 1) & ~(alignment - 1);
  char *p = mmap((void *)hint, bytes + alignment, PROT_NONE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return NULL;
  char *start = (char *)(((uintptr_t)p + alignment - 1) & ~(uintptr_t)(alignment - 1));
  if (start > p) munmap(p, (size_t)(start - p));
  munmap(start + bytes, alignment - (size_t)(start - p));
  madvise(start, bytes, MADV_DONTDUMP);
  return start;
}

CUresult sim_cuMemAddressReserve(CUdeviceptr *p, size_t bytes, size_t alignment, CUdeviceptr hint,
                                 unsigned long long flags)
{
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  if (!p || !bytes || bytes % page || hint % page || flags) return CUDA_ERROR_INVALID_VALUE;
  if (alignment & (alignment - 1)) return CUDA_ERROR_INVALID_VALUE;
  if (alignment < SIM_GRANULE) alignment = SIM_GRANULE;
  struct sim_reservation *v = calloc(1, sizeof *v);
  void *start = v ? space_of_device(bytes, alignment, hint) : NULL;
  if (!start) {
    free(v);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  v->start = (uintptr_t)start;
  v->bytes = bytes;
  pthread_mutex_lock(&sim_memory_lock);
  bool there = tsearch(v, &reservations, compare_maps) != NULL;
  pthread_mutex_unlock(&sim_memory_lock);
  if (!there) {
    munmap(start, bytes);
    free(v);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *p = (CUdeviceptr)start;
  return CUDA_SUCCESS;
}

/* "The size must match what was given to memAddressReserve and the ptr given must match what was
 * returned"; what is mapped has to be unmapped first. */
CUresult sim_cuMemAddressFree(CUdeviceptr p, size_t bytes)
{
  SIM_HOLD(sim_memory_lock);
  struct sim_reservation *v = reservation_at(p, 1);
  bool mine = v && v->start == p && v->bytes == bytes && !v->maps;
  if (mine) {
    tdelete(v, &reservations, compare_maps);
    munmap((void *)p, bytes);
    free(v);
  }
  return mine ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- physical memory; lock held -------------------------------------------------------------- */

static struct sim_physical *physical_of(CUmemGenericAllocationHandle handle)
{
  struct sim_physical *m = (struct sim_physical *)(uintptr_t)handle;
  return sim_arena_has(&physicals, m) && m->refs ? m : NULL;
}

unsigned sim_physical_handle_types(const struct sim_physical *m)
{
  return m->prop.requestedHandleTypes;
}

static bool file_is_ours(const struct sim_physical *m)
{
  struct stat s;
  return m->file >= 0 && fstat(m->file, &s) == 0 && s.st_ino == m->inode;
}

static void end_if_unused(struct sim_physical *m)
{
  if (m->refs || m->maps) return;
  if (m->file < 0) {
    sim_heap_give(m->device, m->home, m->bytes);
  } else {
    if (m->counts) m->device->used -= m->bytes;
    munmap(m->home, m->bytes);
    if (file_is_ours(m)) close(m->file);
  }
  sim_arena_free(&physicals, m);
}

/* The home of an exportable memory, whose file is open. */
static bool open_home(struct sim_physical *m)
{
  struct stat s;
  if (fstat(m->file, &s)) return false;
  m->inode = s.st_ino;
  void *home = mmap(NULL, m->bytes, PROT_NONE, MAP_SHARED | MAP_NORESERVE, m->file, 0);
  if (home == MAP_FAILED) return false;
  madvise(home, m->bytes, MADV_DONTDUMP);
  m->home = home;
  return true;
}

static int exportable_file(const struct sim_physical *m)
{
  struct tail tail = {.magic = TAIL_MAGIC, .bytes = m->bytes, .index = m->device->index};
  tail.prop = m->prop;
  int file = memfd_create("weir-sim-memory", MFD_CLOEXEC);
  if (file < 0) return -1;
  if (ftruncate(file, (off_t)(m->bytes + TAIL_BYTES)) == 0 &&
      pwrite(file, &tail, sizeof tail, (off_t)m->bytes) == (ssize_t)sizeof tail)
    return file;
  close(file);
  return -1;
}

/* Capacity, and pages, for a new one. */
static CUresult give_memory(struct sim_physical *m)
{
  m->file = -1;
  m->counts = true;
  if (!m->prop.requestedHandleTypes) {
    do
      m->home = sim_heap_take(m->device, m->bytes);
    while (!m->home && sim_memory_shrink(m->device));
    return m->home ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
  }
  while (!sim_heap_charge(m->device, m->bytes))
    if (!sim_memory_shrink(m->device)) return CUDA_ERROR_OUT_OF_MEMORY;
  m->file = exportable_file(m);
  if (m->file >= 0 && open_home(m)) return CUDA_SUCCESS;
  if (m->file >= 0) close(m->file);
  m->device->used -= m->bytes;
  return CUDA_ERROR_OUT_OF_MEMORY;
}

/* ---- handles --------------------------------------------------------------------------------- */

/* What a program may ask for: pinned memory of a device, to be exported as a file descriptor or not
 * at all. */
static CUresult check_prop(const CUmemAllocationProp *prop)
{
  if (!prop || prop->win32HandleMetaData) return CUDA_ERROR_INVALID_VALUE;
  if (prop->type != CU_MEM_ALLOCATION_TYPE_PINNED)
    return prop->type == CU_MEM_ALLOCATION_TYPE_MANAGED ? CUDA_ERROR_NOT_SUPPORTED
                                                        : CUDA_ERROR_INVALID_VALUE;
  switch ((int)prop->location.type) {
  case CU_MEM_LOCATION_TYPE_DEVICE:
    break;
  case CU_MEM_LOCATION_TYPE_HOST:
  case CU_MEM_LOCATION_TYPE_HOST_NUMA:
    return CUDA_ERROR_NOT_SUPPORTED;
  default:
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (!sim_device(prop->location.id)) return CUDA_ERROR_INVALID_DEVICE;
  if (sim_devices[prop->location.id].file < 0) return CUDA_ERROR_NOT_SUPPORTED;
  if (prop->requestedHandleTypes & ~(unsigned)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
    return CUDA_ERROR_NOT_SUPPORTED;
  if (prop->allocFlags.gpuDirectRDMACapable &&
      !sim_device_attribute(sim_device(prop->location.id), RDMA_WITH_VMM))
    return CUDA_ERROR_NOT_SUPPORTED;
  if (prop->allocFlags.compressionType > CU_MEM_ALLOCATION_COMP_GENERIC)
    return CUDA_ERROR_INVALID_VALUE;
  if (prop->allocFlags.usage) return CUDA_ERROR_NOT_SUPPORTED;
  return CUDA_SUCCESS;
}

CUresult sim_cuMemGetAllocationGranularity(size_t *bytes, const CUmemAllocationProp *prop,
                                           CUmemAllocationGranularity_flags option)
{
  if (!bytes || (unsigned)option > CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)
    return CUDA_ERROR_INVALID_VALUE;
  CUresult error = check_prop(prop);
  if (!error) *bytes = SIM_GRANULE;
  return error;
}

CUresult sim_cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes,
                         const CUmemAllocationProp *prop, unsigned long long flags)
{
  if (!handle || !bytes || bytes % SIM_GRANULE || flags) return CUDA_ERROR_INVALID_VALUE;
  CUresult error = check_prop(prop);
  if (error) return error;
  struct sim_physical *m = sim_arena_new(&physicals);
  if (!m) return CUDA_ERROR_OUT_OF_MEMORY;
  m->device = sim_device(prop->location.id);
  m->bytes = bytes;
  m->prop = *prop;
  pthread_mutex_lock(&sim_memory_lock);
  error = give_memory(m);
  if (!error) m->refs = 1;
  pthread_mutex_unlock(&sim_memory_lock);
  if (error)
    sim_arena_free(&physicals, m);
  else
    *handle = (CUmemGenericAllocationHandle)(uintptr_t)m;
  return error;
}

CUresult sim_cuMemRelease(CUmemGenericAllocationHandle handle)
{
  SIM_HOLD(sim_memory_lock);
  struct sim_physical *m = physical_of(handle);
  if (m) {
    m->refs--;
    end_if_unused(m);
  }
  return m ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static struct sim_range *mapping_at(uintptr_t p)
{
  struct sim_range *r = sim_range_at(p, 1);
  return r && r->kind == SIM_MAPPED ? r : NULL;
}

CUresult sim_cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *p)
{
  if (!handle) return CUDA_ERROR_INVALID_VALUE;
  SIM_HOLD(sim_memory_lock);
  struct sim_range *r = mapping_at((uintptr_t)p);
  if (r) {
    r->physical->refs++;
    *handle = (CUmemGenericAllocationHandle)(uintptr_t)r->physical;
  }
  return r ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *prop,
                                                    CUmemGenericAllocationHandle handle)
{
  if (!prop) return CUDA_ERROR_INVALID_VALUE;
  SIM_HOLD(sim_memory_lock);
  struct sim_physical *m = physical_of(handle);
  if (m) *prop = m->prop;
  return m ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* ---- between processes ----------------------------------------------------------------------- */

/* The file lives as long as somebody has it open, but the capacity is given back with the last
 * reference here: who else holds the file cannot be known. */
CUresult sim_cuMemExportToShareableHandle(void *out, CUmemGenericAllocationHandle handle,
                                          CUmemAllocationHandleType type, unsigned long long flags)
{
  if (!out || flags) return CUDA_ERROR_INVALID_VALUE;
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
    return type ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
  int file = -1;
  pthread_mutex_lock(&sim_memory_lock);
  struct sim_physical *m = physical_of(handle);
  if (m && m->file >= 0 && file_is_ours(m)) file = fcntl(m->file, F_DUPFD_CLOEXEC, 0);
  pthread_mutex_unlock(&sim_memory_lock);
  if (!m || m->file < 0) return CUDA_ERROR_INVALID_VALUE;
  if (file < 0) return CUDA_ERROR_OPERATING_SYSTEM;
  *(int *)out = file;
  return CUDA_SUCCESS;
}

/* What the file states of itself; false: not one of ours. */
static bool read_tail(int file, struct tail *tail)
{
  struct stat s;
  if (file < 0 || fstat(file, &s) || !S_ISREG(s.st_mode) || s.st_size <= (off_t)TAIL_BYTES)
    return false;
  size_t bytes = (size_t)s.st_size - TAIL_BYTES;
  return pread(file, tail, sizeof *tail, (off_t)bytes) == (ssize_t)sizeof *tail &&
         memcmp(tail->magic, TAIL_MAGIC, sizeof tail->magic) == 0 && tail->bytes == bytes &&
         bytes % SIM_GRANULE == 0;
}

CUresult sim_cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *os_handle,
                                            CUmemAllocationHandleType type)
{
  struct tail tail;
  int file = (int)(intptr_t)os_handle;
  if (!handle) return CUDA_ERROR_INVALID_VALUE;
  if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
    return type ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
  if (!read_tail(file, &tail)) return CUDA_ERROR_INVALID_VALUE;
  struct sim_device *d = NULL;
  for (int i = 0; i < sim_device_count; i++)
    if (sim_devices[i].index == tail.index) d = &sim_devices[i];
  if (!d) return CUDA_ERROR_NOT_SUPPORTED; /* memory of a device that is not visible here */
  struct sim_physical *m = sim_arena_new(&physicals);
  if (!m) return CUDA_ERROR_OUT_OF_MEMORY;
  m->device = d;
  m->bytes = tail.bytes;
  m->prop = tail.prop;
  m->prop.location.id = d->ordinal;
  m->file = fcntl(file, F_DUPFD_CLOEXEC, 0);
  if (m->file < 0 || !open_home(m)) {
    if (m->file >= 0) close(m->file);
    sim_arena_free(&physicals, m);
    return CUDA_ERROR_OPERATING_SYSTEM;
  }
  m->refs = 1;
  *handle = (CUmemGenericAllocationHandle)(uintptr_t)m;
  return CUDA_SUCCESS;
}

/* ---- mappings; lock held --------------------------------------------------------------------- */

static struct sim_range *mapping_new(uintptr_t p, size_t bytes, struct sim_physical *m)
{
  struct sim_range *r = sim_range_new(SIM_MAPPED, NULL, m->device, bytes);
  if (!r) return NULL;
  r->start = p;
  r->reserved = bytes;
  r->physical = m;
  return r;
}

/* Back to addresses without memory. */
static bool close_pages(uintptr_t p, size_t bytes)
{
  const int kind = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
  if (mmap((void *)p, bytes, PROT_NONE, kind, -1, 0) == MAP_FAILED) return false;
  madvise((void *)p, bytes, MADV_DONTDUMP);
  return true;
}

static CUresult map_physical(struct sim_range *r)
{
  struct sim_reservation *v = reservation_at(r->start, r->bytes);
  if (!v || sim_range_touching(r->start, r->bytes)) return CUDA_ERROR_INVALID_VALUE;
  /* mremap() of 0 bytes maps the same shared pages once more */
  void *p = mremap(r->physical->home, 0, r->bytes, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)r->start);
  if (p == MAP_FAILED || !sim_range_add(r)) {
    (void)close_pages(r->start, r->bytes);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  r->within = v;
  v->maps++;
  r->physical->maps++;
  return CUDA_SUCCESS;
}

CUresult sim_cuMemMap(CUdeviceptr p, size_t bytes, size_t offset,
                      CUmemGenericAllocationHandle handle, unsigned long long flags)
{
  /* "Note: currently must be zero", of the offset */
  if (!p || !bytes || (p | bytes) % SIM_GRANULE || offset || flags) return CUDA_ERROR_INVALID_VALUE;
  pthread_mutex_lock(&sim_memory_lock);
  struct sim_physical *m = physical_of(handle);
  CUresult error = m && bytes <= m->bytes ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  struct sim_range *r = error ? NULL : mapping_new(p, bytes, m);
  if (!error) error = r ? map_physical(r) : CUDA_ERROR_OUT_OF_MEMORY;
  pthread_mutex_unlock(&sim_memory_lock);
  if (error) free(r);
  return error;
}

/* [p, p + bytes) is mappings, whole ones and without a gap. */
static bool whole_mappings(uintptr_t p, size_t bytes)
{
  struct sim_reservation *v = reservation_at(p, bytes);
  if (!bytes || !v) return false;
  uintptr_t at = p, end = p + bytes;
  while (at < end) {
    struct sim_range *r = mapping_at(at);
    if (!r || r->start != at) return false;
    at += r->bytes;
  }
  return at == end;
}

CUresult sim_cuMemUnmap(CUdeviceptr p, size_t bytes)
{
  SIM_HOLD(sim_memory_lock);
  CUresult error = whole_mappings(p, bytes) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  if (!error && !close_pages(p, bytes)) error = CUDA_ERROR_OPERATING_SYSTEM;
  for (uintptr_t at = p; !error && at < p + bytes;) {
    struct sim_range *r = mapping_at(at);
    struct sim_physical *m = r->physical;
    at += r->bytes;
    r->within->maps--;
    m->maps--;
    sim_range_detach(r);
    end_if_unused(m);
  }
  return error;
}

/* ---- access ---------------------------------------------------------------------------------- */

static CUresult check_place(const CUmemLocation *where)
{
  /* "Users cannot specify HOST_NUMA accessibility for allocations created on with other location
   * types", and there are no others here */
  if (where->type != CU_MEM_LOCATION_TYPE_DEVICE) return CUDA_ERROR_INVALID_VALUE;
  return sim_device(where->id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

static CUresult check_access(const CUmemAccessDesc *list, size_t count)
{
  CUresult error = list && count ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count && !error; i++) {
    unsigned flags = list[i].flags;
    error = check_place(&list[i].location);
    if (flags != CU_MEM_ACCESS_FLAGS_PROT_NONE && flags != CU_MEM_ACCESS_FLAGS_PROT_READ &&
        flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
      error = CUDA_ERROR_INVALID_VALUE;
  }
  return error;
}

static void set_bit(uint32_t *mask, int bit, bool on)
{
  *mask = on ? *mask | UINT32_C(1) << bit : *mask & ~(UINT32_C(1) << bit);
}

static int protection(const struct sim_range *r)
{
  return (r->readers ? PROT_READ : 0) | (r->writers ? PROT_WRITE : 0);
}

/* Neighbours that get the same protection are opened with one call. */
static CUresult set_access(uintptr_t p, uintptr_t end, const CUmemAccessDesc *list, size_t count)
{
  uintptr_t from = p;
  int last = -1;
  CUresult error = CUDA_SUCCESS;
  for (uintptr_t at = p; at < end && !error;) {
    struct sim_range *r = mapping_at(at);
    for (size_t i = 0; i < count; i++) {
      set_bit(&r->readers, list[i].location.id, list[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE);
      set_bit(&r->writers, list[i].location.id,
              list[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    }
    int now = protection(r);
    if (last >= 0 && now != last) {
      if (mprotect((void *)from, at - from, last)) error = CUDA_ERROR_OUT_OF_MEMORY;
      from = at;
    }
    last = now;
    at += r->bytes;
  }
  if (!error && mprotect((void *)from, end - from, last)) error = CUDA_ERROR_OUT_OF_MEMORY;
  return error;
}

/* What it costs, a mapping at a time. */
static void spend_access(uintptr_t p, size_t bytes)
{
  unsigned count = 0;
  if (!atomic_load_explicit(&sim_has_card, memory_order_relaxed)) return;
  pthread_mutex_lock(&sim_memory_lock);
  for (uintptr_t at = p; whole_mappings(p, bytes) && at < p + bytes; at += mapping_at(at)->bytes)
    count++;
  pthread_mutex_unlock(&sim_memory_lock);
  while (count--)
    sim_spend(SIM_COST_ACCESS, 0);
}

CUresult sim_cuMemSetAccess(CUdeviceptr p, size_t bytes, const CUmemAccessDesc *list, size_t count)
{
  CUresult error = check_access(list, count);
  if (error) return error;
  spend_access(p, bytes);
  SIM_HOLD(sim_memory_lock);
  error =
      whole_mappings(p, bytes) ? set_access(p, p + bytes, list, count) : CUDA_ERROR_INVALID_VALUE;
  return error;
}

CUresult sim_cuMemGetAccess(unsigned long long *flags, const CUmemLocation *where, CUdeviceptr p)
{
  if (!flags || !where) return CUDA_ERROR_INVALID_VALUE;
  CUresult error = check_place(where);
  if (error) return error;
  SIM_HOLD(sim_memory_lock);
  struct sim_range *r = mapping_at(p);
  if (r)
    *flags = r->writers >> where->id & 1   ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
             : r->readers >> where->id & 1 ? CU_MEM_ACCESS_FLAGS_PROT_READ
                                           : CU_MEM_ACCESS_FLAGS_PROT_NONE;
  return r ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
