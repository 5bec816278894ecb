/* heap.c: a device's memory: which addresses of its range are in use.
 *
 * A device reserves its address range once, without access: a shared mapping of a file in memory,
 * so that the same pages can be mapped elsewhere (vmm.c, graph_memory.c) and by other processes
 * (ipc.c). Where such a file is not to be had it is private memory, and none of these is supported.
 * Allocations above 1 MiB take whole granules (2 MiB), which are opened for access and closed
 * again, so that a twin's or a copy's access to freed memory faults. Smaller ones share granules in
 * units of 512 bytes; one empty granule is kept open so that a small allocation in a loop costs no
 * system call. Capacity counts granules in use.
 *
 * Runs: a span of units is cut into runs, used or free; a run's length stands at its first and last
 * unit (boundary tags), free runs of about one length are linked in a bin (powers of two). Freeing
 * joins neighbours at once. All under sim_memory_lock. */
#include "cuda/sim/internal.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define SMALL_MAX   (SIM_GRANULE / 2)
#define SMALL_SHIFT 12 /* units in a granule: 4096 */
#define UNIT_USED   (UINT32_C(1) << 31)
#define BIN_LOOK    16 /* runs looked at in a bin that may hold too short ones */

struct sim_unit {
  uint32_t length;     /* of the run that begins or ends here, | UNIT_USED */
  uint32_t next, prev; /* free runs of the bin, number + 1; valid at a free run's first unit */
};

static struct sim_unit *unit_at(const struct sim_runs *r, uint32_t number)
{
  return &r->chunk[number >> r->shift][number & ((UINT32_C(1) << r->shift) - 1)];
}

static unsigned log2_floor(uint32_t n)
{
  return 31u - (unsigned)__builtin_clz(n);
}

static void run_tag(struct sim_runs *r, uint32_t first, uint32_t length, uint32_t used)
{
  unit_at(r, first)->length = length | used;
  unit_at(r, first + length - 1)->length = length | used;
}

static void run_link(struct sim_runs *r, uint32_t first, uint32_t length)
{
  unsigned bin = log2_floor(length);
  struct sim_unit *u = unit_at(r, first);
  run_tag(r, first, length, 0);
  u->prev = 0;
  u->next = r->bin[bin];
  if (u->next) unit_at(r, u->next - 1)->prev = first + 1;
  r->bin[bin] = first + 1;
}

static void run_unlink(struct sim_runs *r, uint32_t first)
{
  struct sim_unit *u = unit_at(r, first);
  if (u->prev)
    unit_at(r, u->prev - 1)->next = u->next;
  else
    r->bin[log2_floor(u->length)] = u->next;
  if (u->next) unit_at(r, u->next - 1)->prev = u->prev;
}

/* A free run of at least n units, +1; 0: none. */
static uint32_t run_find(const struct sim_runs *r, uint32_t n)
{
  unsigned bin = log2_floor(n);
  uint32_t look = 0;
  for (uint32_t at = r->bin[bin]; at && look < BIN_LOOK; at = unit_at(r, at - 1)->next, look++)
    if (unit_at(r, at - 1)->length >= n) return at;
  for (unsigned b = bin + 1; b < 33; b++)
    if (r->bin[b]) return r->bin[b];
  for (uint32_t at = r->bin[bin]; at; at = unit_at(r, at - 1)->next)
    if (unit_at(r, at - 1)->length >= n) return at;
  return 0;
}

static bool run_take(struct sim_runs *r, uint32_t n, uint32_t *first)
{
  uint32_t at = run_find(r, n);
  if (!at) return false;
  *first = at - 1;
  uint32_t length = unit_at(r, *first)->length;
  run_unlink(r, *first);
  if (length > n) run_link(r, *first + n, length - n);
  run_tag(r, *first, n, UNIT_USED);
  return true;
}

static void run_give(struct sim_runs *r, uint32_t first, uint32_t limit)
{
  uint32_t mask = (UINT32_C(1) << r->shift) - 1;
  uint32_t length = unit_at(r, first)->length & ~UNIT_USED;
  uint32_t after = first + length;
  if (after < limit && (after & mask) != 0) {
    uint32_t l = unit_at(r, after)->length;
    if (!(l & UNIT_USED)) {
      run_unlink(r, after);
      length += l;
    }
  }
  if ((first & mask) != 0) {
    uint32_t l = unit_at(r, first - 1)->length;
    if (!(l & UNIT_USED)) {
      first -= l;
      run_unlink(r, first);
      length += l;
    }
  }
  run_link(r, first, length);
}

/* ---- granules -------------------------------------------------------------------------------- */

static uint32_t granule_count(const struct sim_device *d)
{
  return (uint32_t)(d->span / SIM_GRANULE);
}

static bool heap_has_room(const struct sim_device *d, size_t bytes)
{
  size_t capacity = atomic_load(&d->capacity);
  return d->used <= capacity && bytes <= capacity - d->used;
}

static void took(struct sim_device *d, size_t bytes)
{
  d->used += bytes;
  if (d->used > d->peak) d->peak = d->used;
}

static bool granules_take(struct sim_device *d, uint32_t n, uint32_t *first)
{
  if (!heap_has_room(d, n * SIM_GRANULE)) return false;
  if (!run_take(&d->granules, n, first)) return false;
  if (mprotect(d->base + *first * SIM_GRANULE, n * SIM_GRANULE, PROT_READ | PROT_WRITE)) {
    run_give(&d->granules, *first, granule_count(d));
    return false;
  }
  took(d, n * SIM_GRANULE);
  return true;
}

static void granules_give(struct sim_device *d, uint32_t first, uint32_t n)
{
  char *start = d->base + first * SIM_GRANULE;
  madvise(start, n * SIM_GRANULE, d->file < 0 ? MADV_DONTNEED : MADV_REMOVE);
  mprotect(start, n * SIM_GRANULE, PROT_NONE);
  run_give(&d->granules, first, granule_count(d));
}

/* ---- small allocations ----------------------------------------------------------------------- */

static bool small_grow(struct sim_device *d)
{
  uint32_t g;
  if (!granules_take(d, 1, &g)) return false;
  struct sim_unit *units = calloc((size_t)1 << SMALL_SHIFT, sizeof *units);
  if (!units) {
    d->used -= SIM_GRANULE;
    granules_give(d, g, 1);
    return false;
  }
  d->small.chunk[g] = units;
  d->used -= SIM_GRANULE; /* counted once a unit of it is taken */
  d->small_used[g] = 0;
  run_link(&d->small, g << SMALL_SHIFT, UINT32_C(1) << SMALL_SHIFT);
  return true;
}

static void small_shrink(struct sim_device *d, uint32_t g)
{
  run_unlink(&d->small, g << SMALL_SHIFT);
  free(d->small.chunk[g]);
  d->small.chunk[g] = NULL;
  granules_give(d, g, 1);
}

static void small_give(struct sim_device *d, uint32_t first)
{
  uint32_t g = first >> SMALL_SHIFT;
  uint32_t n = unit_at(&d->small, first)->length & ~UNIT_USED;
  run_give(&d->small, first, UINT32_MAX);
  d->small_used[g] -= n;
  if (d->small_used[g]) return;
  d->used -= SIM_GRANULE;
  if (d->spare)
    small_shrink(d, g);
  else
    d->spare = g + 1;
}

static uintptr_t small_alloc(struct sim_device *d, uint32_t n)
{
  uint32_t first;
  if (!run_take(&d->small, n, &first) && !(small_grow(d) && run_take(&d->small, n, &first)))
    return 0;
  uint32_t g = first >> SMALL_SHIFT;
  bool fresh = d->small_used[g] == 0;
  d->small_used[g] += n;
  if (fresh) {
    if (d->spare == g + 1) d->spare = 0;
    took(d, SIM_GRANULE);
    if (d->used > atomic_load(&d->capacity)) {
      small_give(d, first);
      return 0;
    }
  }
  return (uintptr_t)d->base + (uintptr_t)first * SIM_UNIT;
}

/* ---- the device's memory --------------------------------------------------------------------- */

uintptr_t sim_heap_alloc(struct sim_device *d, size_t bytes, size_t *reserved)
{
  if (bytes <= SMALL_MAX) {
    uint32_t n = (uint32_t)((bytes + SIM_UNIT - 1) / SIM_UNIT);
    *reserved = n * SIM_UNIT;
    return small_alloc(d, n);
  }
  if (bytes > d->span) return 0;
  uint32_t first, n = (uint32_t)((bytes + SIM_GRANULE - 1) / SIM_GRANULE);
  *reserved = n * SIM_GRANULE;
  if (granules_take(d, n, &first)) return (uintptr_t)d->base + first * SIM_GRANULE;
  if (!d->spare) return 0;
  small_shrink(d, d->spare - 1); /* its addresses may be what is missing */
  d->spare = 0;
  if (!granules_take(d, n, &first)) return 0;
  return (uintptr_t)d->base + first * SIM_GRANULE;
}

void sim_heap_free(struct sim_device *d, uintptr_t start, size_t reserved)
{
  size_t at = start - (uintptr_t)d->base;
  if (reserved <= SMALL_MAX) {
    small_give(d, (uint32_t)(at / SIM_UNIT));
    return;
  }
  d->used -= reserved;
  granules_give(d, (uint32_t)(at / SIM_GRANULE), (uint32_t)(reserved / SIM_GRANULE));
}

bool sim_heap_charge(struct sim_device *d, size_t bytes)
{
  if (!heap_has_room(d, bytes)) return false;
  took(d, bytes);
  return true;
}

char *sim_heap_take(struct sim_device *d, size_t bytes)
{
  uint32_t first, n = (uint32_t)(bytes / SIM_GRANULE);
  if (d->file < 0 || bytes > d->span || !heap_has_room(d, bytes)) return NULL;
  if (!run_take(&d->granules, n, &first)) return NULL;
  took(d, bytes);
  return d->base + first * SIM_GRANULE;
}

void sim_heap_give(struct sim_device *d, char *home, size_t bytes)
{
  mprotect(home, bytes, PROT_READ | PROT_WRITE); /* only so can pages be taken out of the file */
  d->used -= bytes;
  granules_give(d, (uint32_t)((size_t)(home - d->base) / SIM_GRANULE),
                (uint32_t)(bytes / SIM_GRANULE));
}

uintptr_t sim_heap_addresses(struct sim_device *d, size_t bytes)
{
  uint32_t first;
  if (bytes > d->span || !run_take(&d->granules, (uint32_t)(bytes / SIM_GRANULE), &first)) return 0;
  return (uintptr_t)d->base + first * SIM_GRANULE;
}

void sim_heap_addresses_end(struct sim_device *d, uintptr_t start, size_t bytes)
{
  (void)bytes; /* the run knows */
  run_give(&d->granules, (uint32_t)((start - (uintptr_t)d->base) / SIM_GRANULE), granule_count(d));
}

/* A file in memory, as long as `bytes`; -1: none to be had, or not of that length. */
static int file_of_heap(size_t bytes, ino_t *inode)
{
  struct rlimit limit;
  struct stat s;
  if (getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur < bytes) return -1;
  int file = memfd_create("weir-sim-device", MFD_CLOEXEC);
  if (file < 0) return -1;
  if (ftruncate(file, (off_t)bytes) == 0 && fstat(file, &s) == 0) {
    *inode = s.st_ino;
    return file;
  }
  close(file);
  return -1;
}

/* Reserves the device's range: a few times its capacity, so that addresses do not run out before
 * memory does; less where the address space is limited. */
static char *reserve_heap(struct sim_device *d, size_t *span)
{
  uintptr_t hint = UINT64_C(0x7e8200000000) + (uintptr_t)d->index * *span;
  d->file = file_of_heap(*span + SIM_GRANULE + SIM_EXPORTS_BYTES, &d->inode);
  int kind = d->file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
  while (*span >= 64 * SIM_GRANULE) {
    char *p = mmap((void *)hint, *span + SIM_GRANULE, PROT_NONE, kind | MAP_NORESERVE, d->file, 0);
    if (p != MAP_FAILED) {
      madvise(p, *span + SIM_GRANULE, MADV_DONTDUMP);
      d->home = p;
      return (char *)(((uintptr_t)p + SIM_GRANULE - 1) & ~(SIM_GRANULE - 1));
    }
    *span /= 2;
  }
  return NULL;
}

CUresult sim_heap_start(struct sim_device *d, size_t capacity)
{
  if (d->base) return CUDA_SUCCESS;
  size_t span = (capacity / SIM_GRANULE + 1) * SIM_GRANULE * 4;
  if (span > (size_t)1 << 43) span = (size_t)1 << 43;
  char *base = reserve_heap(d, &span);
  if (!base) return CUDA_ERROR_OUT_OF_MEMORY;
  d->span = span;
  uint32_t n = granule_count(d);
  d->granules.chunk = calloc(1, sizeof(void *));
  d->small.chunk = calloc(n, sizeof(void *));
  d->small_used = calloc(n, sizeof *d->small_used);
  if (!d->granules.chunk || !d->small.chunk || !d->small_used) return CUDA_ERROR_OUT_OF_MEMORY;
  d->granules.chunk[0] = calloc(n, sizeof(struct sim_unit));
  if (!d->granules.chunk[0]) return CUDA_ERROR_OUT_OF_MEMORY;
  d->granules.shift = 31;
  d->small.shift = SMALL_SHIFT;
  run_link(&d->granules, 0, n);
  atomic_store(&d->capacity, capacity < span ? capacity : span);
  d->base = base;
  return CUDA_SUCCESS;
}
