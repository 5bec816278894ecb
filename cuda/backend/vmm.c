/* vmm.c: address space and pages: the driver's virtual memory management.
 *
 * A page is one cuMemCreate() of the smallest granularity (2 MiB on every device so far), mapped
 * whole. cuMemUnmap() takes whole mappings ("cannot unmap a sub-range"), one or a run of neighbours
 * (as in NVIDIA's sample vectorAddMMAP); so does cuMemSetAccess(). Unmapping does not wait for work
 * in flight: that no work can touch a page is the allocator's to know.
 *
 * Peers. cuCtxEnablePeerAccess() is for cuMemAlloc()'s memory; pages are given to a peer by
 * cuMemSetAccess(). So each reservation knows which of its pages are mapped: they are given to a
 * peer at once when it is first let in, later ones as they come. A refusal costs the direct route
 * only, as cuMemcpyPeerAsync() needs no access. */
#include <pthread.h>
#include <stdlib.h>
#include "cuda/backend/device.h"

enum { PEERS = 64 };

struct cuda_range {
  struct cuda_range *next; /* of the device */
  uint64_t address, pages; /* how many it has room for */
  uint64_t mapped[];       /* bit a page */
};

/* Guards ranges, their bits and who is let in, of all devices; held across the calls that change
 * what is mapped, which the driver does one after the other anyway. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct cuda_range **range_at(cuda_device_state *d, uint64_t address)
{
  struct cuda_range **r = &d->ranges;
  while (*r && address - (*r)->address >= (*r)->pages * d->backend.source.page_bytes)
    r = &(*r)->next;
  return r;
}

static bool note_range(cuda_device_state *d, uint64_t address, uint64_t bytes)
{
  uint64_t pages = bytes / d->backend.source.page_bytes, words = (pages + 63) / 64;
  struct cuda_range *r = calloc(1, sizeof *r + words * sizeof *r->mapped);
  if (!r) return false;
  r->address = address;
  r->pages = pages;
  pthread_mutex_lock(&lock);
  r->next = d->ranges;
  d->ranges = r;
  pthread_mutex_unlock(&lock);
  return true;
}

static void forget_range(cuda_device_state *d, uint64_t address)
{
  pthread_mutex_lock(&lock);
  struct cuda_range **at = range_at(d, address), *gone = *at;
  if (gone) *at = gone->next;
  pthread_mutex_unlock(&lock);
  free(gone);
}

/* Pages of one reservation. Lock held. */
static void note_pages(cuda_device_state *d, uint64_t address, uint64_t bytes, bool mapped)
{
  struct cuda_range *r = *range_at(d, address);
  if (!r) return;
  uint64_t page = d->backend.source.page_bytes, i = (address - r->address) / page;
  for (uint64_t end = i + bytes / page; i < end; i++) {
    uint64_t bit = UINT64_C(1) << i % 64;
    r->mapped[i / 64] = mapped ? r->mapped[i / 64] | bit : r->mapped[i / 64] & ~bit;
  }
}

static weir_status reserve_addresses(void *self, uint64_t bytes, uint64_t *address)
{
  CUdeviceptr at = 0;
  WEIR_CUDA_CALL_WITHIN(
      d, self, r, weir_cuda.cuMemAddressReserve(&at, bytes, d->backend.source.page_bytes, 0, 0));
  if (r)
    return driver_fail(r, "cuMemAddressReserve of %llu bytes on cuda:%d", (unsigned long long)bytes,
                       d->index);
  *address = at;
  bool low = (at + bytes) >> 48 == 0;
  if (low && note_range(d, at, bytes)) return WEIR_OK;
  WEIR_CUDA_WITHIN(d, r, weir_cuda.cuMemAddressFree(at, bytes));
  if (low) return cuda_fail_as(WEIR_ENOMEM, "no host memory to note pages in");
  return cuda_unsupported("cuda:%d gave address space at 0x%llx, above 2^48", d->index,
                          (unsigned long long)at);
}

static weir_status release_addresses(void *self, uint64_t address, uint64_t bytes)
{
  WEIR_CUDA_CALL_WITHIN(d, self, r, weir_cuda.cuMemAddressFree(address, bytes));
  if (!r) forget_range(d, address);
  return driver_fail(r, "cuMemAddressFree of %llu bytes on cuda:%d", (unsigned long long)bytes,
                     d->index);
}

static weir_status create_page(void *self, uint64_t *page)
{
  CUmemGenericAllocationHandle handle;
  WEIR_CUDA_CALL_WITHIN(d, self, r,
                        weir_cuda.cuMemCreate(&handle, d->backend.source.page_bytes, &d->page, 0));
  if (!r) *page = handle;
  cuda_notify_taken(d, r, WEIR_MEM_DEVICE, (int64_t)d->backend.source.page_bytes);
  return driver_fail(r, "cuMemCreate of a page of %llu bytes on cuda:%d",
                     (unsigned long long)d->backend.source.page_bytes, d->index);
}

static weir_status destroy_page(void *self, uint64_t page)
{
  WEIR_CUDA_CALL_WITHIN(d, self, r, weir_cuda.cuMemRelease(page));
  cuda_notify_taken(d, r, WEIR_MEM_DEVICE, -(int64_t)d->backend.source.page_bytes);
  return driver_fail(r, "cuMemRelease of a page on cuda:%d", d->index);
}

/* Within the context: where a page is reported as well. */
static CUresult page_map(cuda_device_state *d, uint64_t address, uint64_t page)
{
  uint64_t bytes = d->backend.source.page_bytes;
  pthread_mutex_lock(&lock);
  CUresult r = weir_cuda.cuMemMap(address, bytes, 0, page, 0);
  if (!r) note_pages(d, address, bytes, true);
  pthread_mutex_unlock(&lock);
  cuda_notify_mapped(d, r, address, bytes, WEIR_MEM_DEVICE);
  return r;
}

/* Who listens was notified of each page. */
static CUresult pages_unmap(cuda_device_state *d, uint64_t address, uint64_t bytes)
{
  uint64_t page = d->backend.source.page_bytes;
  for (uint64_t at = 0; at < bytes; at += page)
    cuda_notify_unmapped(address + at);
  pthread_mutex_lock(&lock);
  CUresult r = weir_cuda.cuMemUnmap(address, bytes);
  if (!r) note_pages(d, address, bytes, false);
  pthread_mutex_unlock(&lock);
  for (uint64_t at = 0; r && at < bytes; at += page)
    cuda_notify_mapped(d, CUDA_SUCCESS, address + at, page, WEIR_MEM_DEVICE);
  return r;
}

static weir_status vmm_map(void *self, uint64_t address, uint64_t page)
{
  WEIR_CUDA_CALL_WITHIN(d, self, r, page_map(d, address, page));
  return driver_fail(r, "cuMemMap of a page at 0x%llx on cuda:%d", (unsigned long long)address,
                     d->index);
}

static weir_status vmm_unmap(void *self, uint64_t address, uint64_t bytes)
{
  WEIR_CUDA_CALL_WITHIN(d, self, r, pages_unmap(d, address, bytes));
  return driver_fail(r, "cuMemUnmap of %llu bytes at 0x%llx on cuda:%d", (unsigned long long)bytes,
                     (unsigned long long)address, d->index);
}

static CUmemAccessDesc access_for(CUdevice device)
{
  return (CUmemAccessDesc){.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
                           .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
}

/* For the device itself and the peers that are let in. Within the context. */
static CUresult open_range(const cuda_device_state *d, uint64_t address, uint64_t bytes)
{
  CUmemAccessDesc who[1 + PEERS] = {access_for(d->device)};
  pthread_mutex_lock(&lock);
  for (unsigned i = 0; i < d->guest_count; i++)
    who[1 + i] = access_for(d->guests[i]);
  CUresult r = weir_cuda.cuMemSetAccess(address, bytes, who, 1 + d->guest_count);
  if (r && d->guest_count) r = weir_cuda.cuMemSetAccess(address, bytes, who, 1);
  pthread_mutex_unlock(&lock);
  return r;
}

static weir_status access(void *self, uint64_t address, uint64_t bytes)
{
  WEIR_CUDA_CALL_WITHIN(d, self, r, open_range(d, address, bytes));
  return driver_fail(r, "cuMemSetAccess to %llu bytes at 0x%llx on cuda:%d",
                     (unsigned long long)bytes, (unsigned long long)address, d->index);
}

/* What is mapped already, run by run. Lock held, within the context. */
static CUresult open_mapped(const cuda_device_state *d, const CUmemAccessDesc *who)
{
  uint64_t page = d->backend.source.page_bytes;
  CUresult r = CUDA_SUCCESS;
  for (const struct cuda_range *in = d->ranges; in && !r; in = in->next)
    for (uint64_t from = 0, to; from < in->pages && !r; from = to + 1) {
      for (to = from; to < in->pages && in->mapped[to / 64] >> to % 64 & 1; to++)
        ;
      if (to > from)
        r = weir_cuda.cuMemSetAccess(in->address + from * page, (to - from) * page, who, 1);
    }
  return r;
}

void cuda_grant_access(cuda_device_state *d, CUdevice peer)
{
  CUmemAccessDesc who = access_for(peer);
  CUresult r;
  if (!d->backend.source.page_bytes) return;
  pthread_mutex_lock(&lock);
  bool there = d->guest_count == PEERS;
  for (unsigned i = 0; i < d->guest_count; i++)
    there = there || d->guests[i] == peer;
  if (!there) {
    WEIR_CUDA_WITHIN(d, r, open_mapped(d, &who));
    if (!r) d->guests[d->guest_count++] = peer;
  }
  pthread_mutex_unlock(&lock);
}

void cuda_revoke_access(cuda_device_state *d)
{
  pthread_mutex_lock(&lock);
  d->guest_count = 0;
  pthread_mutex_unlock(&lock);
}

static int attribute(const cuda_device_state *d, CUdevice_attribute which)
{
  int value = 0;
  return weir_cuda.cuDeviceGetAttribute(&value, which, d->device) ? 0 : value;
}

/* A page comes and goes. Within the context. */
static CUresult try_mapped(const cuda_device_state *d, CUdeviceptr at, size_t bytes)
{
  CUmemAccessDesc own = access_for(d->device);
  CUmemGenericAllocationHandle handle;
  CUresult r = weir_cuda.cuMemCreate(&handle, bytes, &d->page, 0);
  if (r) return r == CUDA_ERROR_OUT_OF_MEMORY ? CUDA_SUCCESS : r; /* others have it all */
  r = weir_cuda.cuMemMap(at, bytes, 0, handle, 0);
  if (!r) {
    r = weir_cuda.cuMemSetAccess(at, bytes, &own, 1);
    CUresult gone = weir_cuda.cuMemUnmap(at, bytes);
    r = r ? r : gone;
  }
  CUresult gone = weir_cuda.cuMemRelease(handle);
  return r ? r : gone;
}

static CUresult try_page(const cuda_device_state *d, size_t bytes)
{
  CUdeviceptr at;
  CUresult r = weir_cuda.cuMemAddressReserve(&at, bytes, bytes, 0, 0);
  if (r) return r;
  r = try_mapped(d, at, bytes);
  CUresult gone = weir_cuda.cuMemAddressFree(at, bytes);
  return r ? r : gone;
}

/* A driver may state that it can and not do it: under WSL 2, before R615, some devices made and
 * mapped memory that network cards may be given, and would not open it (pytorch issue 192330). */
static bool works(cuda_device_state *d, size_t bytes)
{
  CUresult r;
  WEIR_CUDA_WITHIN(d, r, try_page(d, bytes));
  if (!r || !d->page.allocFlags.gpuDirectRDMACapable) return !r;
  d->page.allocFlags.gpuDirectRDMACapable = 0;
  WEIR_CUDA_WITHIN(d, r, try_page(d, bytes));
  return !r;
}

static CUresult page_size(cuda_device_state *d, size_t *bytes)
{
  const CUmemAllocationGranularity_flags least = CU_MEM_ALLOC_GRANULARITY_MINIMUM;
  CUresult r = weir_cuda.cuMemGetAllocationGranularity(bytes, &d->page, least);
  if (!r || !d->page.allocFlags.gpuDirectRDMACapable) return r;
  d->page.allocFlags.gpuDirectRDMACapable = 0;
  return weir_cuda.cuMemGetAllocationGranularity(bytes, &d->page, least);
}

weir_status cuda_vmm(cuda_device_state *d)
{
  weir_source *s = &d->backend.source;
  size_t bytes = 0;
  if (!attribute(d, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED)) return WEIR_OK;
  d->page =
      (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                            .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = d->device}};
  /* as cuMemAlloc()'s memory is: network cards and the like may be given it */
  d->page.allocFlags.gpuDirectRDMACapable =
      attribute(d, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED) != 0;
  CUresult r = page_size(d, &bytes);
  if (r) return driver_fail(r, "cuMemGetAllocationGranularity on cuda:%d", d->index);
  if (!bytes || (bytes & (bytes - 1)) || !works(d, bytes)) return WEIR_OK;
  s->page_bytes = bytes;
  s->reserve = reserve_addresses;
  s->release = release_addresses;
  s->create = create_page;
  s->destroy = destroy_page;
  s->map = vmm_map;
  s->unmap = vmm_unmap;
  s->access = access;
  return WEIR_OK;
}
