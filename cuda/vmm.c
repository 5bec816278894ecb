/* vmm.c: address space and pages: the driver's virtual memory management.
 *
 * A page is one cuMemCreate() of the smallest granularity (2 MiB on every device so far), mapped
 * whole. cuMemUnmap() takes what one cuMemMap() mapped and nothing else ("cannot unmap a
 * sub-range"), so pages are unmapped one by one; cuMemSetAccess() takes a range of many. Unmapping
 * does not wait for work in flight: that no work can touch a page is the allocator's to know.
 */
#include "cuda/device.h"

static weir_status reserve(void *self, uint64_t bytes, uint64_t *address)
{
  weir_cuda_device *d = self;
  CUdeviceptr at = 0;
  CUresult r;
  WEIR_CUDA_WITHIN(d, r,
                   weir_cuda.cuMemAddressReserve(&at, bytes, d->backend.source.page_bytes, 0, 0));
  if (r)
    return weir_driver_fail(r, "cuMemAddressReserve of %llu bytes on cuda:%d",
                            (unsigned long long)bytes, d->index);
  *address = at;
  if ((at + bytes) >> 48 == 0) return WEIR_OK;
  WEIR_CUDA_WITHIN(d, r, weir_cuda.cuMemAddressFree(at, bytes));
  return weir_cuda_fail_as(WEIR_ENOTSUP, "cuda:%d gave address space at 0x%llx, above 2^48",
                           d->index, (unsigned long long)at);
}

static weir_status release(void *self, uint64_t address, uint64_t bytes)
{
  weir_cuda_device *d = self;
  CUresult r;
  WEIR_CUDA_WITHIN(d, r, weir_cuda.cuMemAddressFree(address, bytes));
  return weir_driver_fail(r, "cuMemAddressFree of %llu bytes on cuda:%d", (unsigned long long)bytes,
                          d->index);
}

static weir_status create(void *self, uint64_t *page)
{
  weir_cuda_device *d = self;
  CUmemGenericAllocationHandle handle;
  CUresult r;
  WEIR_CUDA_WITHIN(d, r, weir_cuda.cuMemCreate(&handle, d->backend.source.page_bytes, &d->page, 0));
  if (!r) *page = handle;
  weir_cuda_told_taken(d, r, WEIR_MEM_DEVICE, (int64_t)d->backend.source.page_bytes);
  return weir_driver_fail(r, "cuMemCreate of a page of %llu bytes on cuda:%d",
                          (unsigned long long)d->backend.source.page_bytes, d->index);
}

static weir_status destroy(void *self, uint64_t page)
{
  weir_cuda_device *d = self;
  CUresult r;
  WEIR_CUDA_WITHIN(d, r, weir_cuda.cuMemRelease(page));
  weir_cuda_told_taken(d, r, WEIR_MEM_DEVICE, -(int64_t)d->backend.source.page_bytes);
  return weir_driver_fail(r, "cuMemRelease of a page on cuda:%d", d->index);
}

/* Within the context: where a page is told as well. */
static CUresult page_map(const weir_cuda_device *d, uint64_t address, uint64_t page)
{
  uint64_t bytes = d->backend.source.page_bytes;
  CUresult r = weir_cuda.cuMemMap(address, bytes, 0, page, 0);
  weir_cuda_told_mapped(d, r, address, bytes, WEIR_MEM_DEVICE);
  return r;
}

static CUresult page_unmap(const weir_cuda_device *d, uint64_t address, uint64_t bytes)
{
  weir_cuda_told_unmapped(address);
  CUresult r = weir_cuda.cuMemUnmap(address, bytes);
  if (r) weir_cuda_told_mapped(d, CUDA_SUCCESS, address, bytes, WEIR_MEM_DEVICE);
  return r;
}

static weir_status map(void *self, uint64_t address, uint64_t page)
{
  weir_cuda_device *d = self;
  CUresult r;
  WEIR_CUDA_WITHIN(d, r, page_map(d, address, page));
  return weir_driver_fail(r, "cuMemMap of a page at 0x%llx on cuda:%d", (unsigned long long)address,
                          d->index);
}

static weir_status unmap(void *self, uint64_t address, uint64_t bytes)
{
  weir_cuda_device *d = self;
  CUresult r;
  WEIR_CUDA_WITHIN(d, r, page_unmap(d, address, bytes));
  return weir_driver_fail(r, "cuMemUnmap of a page at 0x%llx on cuda:%d",
                          (unsigned long long)address, d->index);
}

static weir_status access(void *self, uint64_t address, uint64_t bytes)
{
  weir_cuda_device *d = self;
  CUmemAccessDesc all = {.location = d->page.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CUresult r;
  WEIR_CUDA_WITHIN(d, r, weir_cuda.cuMemSetAccess(address, bytes, &all, 1));
  return weir_driver_fail(r, "cuMemSetAccess to %llu bytes at 0x%llx on cuda:%d",
                          (unsigned long long)bytes, (unsigned long long)address, d->index);
}

static int attribute(const weir_cuda_device *d, CUdevice_attribute which)
{
  int value = 0;
  return weir_cuda.cuDeviceGetAttribute(&value, which, d->device) ? 0 : value;
}

weir_status weir_cuda_vmm(weir_cuda_device *d)
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
  CUresult r =
      weir_cuda.cuMemGetAllocationGranularity(&bytes, &d->page, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
  if (r) return weir_driver_fail(r, "cuMemGetAllocationGranularity on cuda:%d", d->index);
  if (!bytes || (bytes & (bytes - 1))) return WEIR_OK;
  s->page_bytes = bytes;
  s->reserve = reserve;
  s->release = release;
  s->create = create;
  s->destroy = destroy;
  s->map = map;
  s->unmap = unmap;
  s->access = access;
  return WEIR_OK;
}
