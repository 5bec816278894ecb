/* query.c: questions whose true answer would give the caches away. Each is asked at the
 * driver's layer; a runtime's own question arrives here by way of the driver's functions that it
 * was handed. Nested calls of ours are answered plainly. */
#include "core/base/pages.h"
#include "interpose/record/stats.h"
#include "interpose/reroute/context_cache.h"

/* Of a block that no cache has any more, since it was shared, the driver's own end is further on
 * than what the program asked for. */
static reroute_address find_shared(uint64_t base, uint64_t address)
{
  const pointer_block b = pointer_block_at(base);
  if (!(b.tag & WEIR_TAG_SHORT)) return (reroute_address){.what = WEIR_ROUTED_NOT};
  bool within = address - b.start < b.bytes;
  return (reroute_address){within ? WEIR_ROUTED_LIVE : WEIR_ROUTED_CACHED, b.start, b.bytes, 0};
}

/* Any address, also inside a block. Asks the driver; not for hot paths. */
static reroute_address reroute_find_block(uint64_t address)
{
  PFN_cuMemGetAddressRange_v3020 ask = WEIR_HELPER(cuMemGetAddressRange_v2);
  block_cache_block b = block_cache_find(address);
  CUdeviceptr base = 0;
  if (b.state == BLOCK_CACHE_NONE) {
    if (!ask || ask(&base, NULL, address) != CUDA_SUCCESS || !base || base == address)
      return find_shared(address, address);
    b = block_cache_find(base);
  }
  if (b.state == BLOCK_CACHE_NONE) return find_shared(base, address);
  /* Past what the program asked for there is nothing that it could know of. */
  bool live = b.state == BLOCK_CACHE_LIVE && address - b.address < b.requested;
  return (reroute_address){live ? WEIR_ROUTED_LIVE : WEIR_ROUTED_CACHED, b.address, b.requested,
                           b.why == BLOCK_CACHE_HIT ? b.serial : 0};
}

void reroute_taint(uint64_t address, reroute_reason why)
{
  reroute_address r = reroute_find_block(address);
  if (r.what != WEIR_ROUTED_LIVE || !block_cache_forget(r.base)) return;
  pointer_block b = pointer_block_remove(r.base);
  cache_event_tainted(r.base, b.bytes, why);
  if (r.requested < b.bytes) b.tag |= WEIR_TAG_SHORT;
  b.bytes = r.requested;
  pointer_block_add(b);
}

/* `ptr`, or where it is in memory that the program has freed an address that is nobody's. */
static CUdeviceptr visible_free(CUdeviceptr ptr, reroute_address *what)
{
  *what = reroute_find_block(ptr);
  return what->what == WEIR_ROUTED_CACHED ? (CUdeviceptr)WEIR_FREED_ADDRESS : ptr;
}

/* ---- how much is free ---------------------------------------------------------------------------
 *
 * What a device has free counts pages. A cached block above half a page has pages of its own. Of
 * smaller ones the driver puts many into one page, so that their page would be free without us
 * only when no block in it is live: they are looked through by page. Nothing is given back for the
 * question: a free of the driver's waits for work, and the question does not. Other processes are
 * in the driver's answer. */

enum { ROOM_PROBES = 64, ALIGNMENT = 256 /* of device memory, by CUDA's documentation */ };

typedef struct room { /* of one device */
  unsigned device;
  bool counting_live; /* first the pages of live blocks, then those of cached ones alone */
  uint64_t smaller;   /* blocks that share pages, at the first look */
  uint64_t cached;    /* bytes that would be free */
  uint64_t *pages;    /* set of numbers of pages; 0: none */
  uint64_t mask;      /* of its slots */
} room;

/* False: it was there. */
static bool page_add(const room *r, uint64_t page)
{
  uint64_t at = page * UINT64_C(0x9e3779b97f4a7c15) >> 20;
  for (unsigned i = 0; i < ROOM_PROBES; i++) {
    uint64_t *slot = &r->pages[(at + i) & r->mask];
    if (*slot == page) return false;
    if (*slot) continue;
    *slot = page;
    return true;
  }
  return false;
}

static bool in_room(const room *r, const pointer_block *b)
{
  return block_tag_mem(b->tag) == WEIR_MEM_DEVICE && block_tag_device(b->tag) == r->device &&
         !(b->tag & WEIR_TAG_POOL) && b->bytes;
}

static bool is_cached(const block_cache_block *b)
{
  return b->state == BLOCK_CACHE_WAITING || b->state == BLOCK_CACHE_IDLE;
}

/* The driver has a block in the page that no cache holds back: it is asked where nothing is
 * recorded, and the map has the memory of caches alone. */
static bool page_is_used(uint64_t page)
{
  PFN_cuMemGetAddressRange_v3020 ask = WEIR_HELPER(cuMemGetAddressRange_v2);
  uint64_t at = page * BLOCK_CACHE_PAGE, end = at + BLOCK_CACHE_PAGE;
  if (!process_unrecorded) return false;
  while (ask && at < end) {
    CUdeviceptr base = 0;
    size_t bytes = 0;
    bool there = ask(&base, &bytes, at) == CUDA_SUCCESS && base + bytes > at;
    if (there) {
      const block_cache_block known = block_cache_find(base);
      if (!is_cached(&known)) return true;
    }
    at = there ? base + bytes : at + ALIGNMENT;
  }
  return false;
}

/* First look: blocks with pages of their own; how many others there are. */
static void room_of_large(void *context, pointer_block b)
{
  room *r = context;
  if (!in_room(r, &b)) return;
  if (b.bytes <= BLOCK_CACHE_PAGE / 2) {
    r->smaller++;
    return;
  }
  const block_cache_block known = block_cache_find(b.start);
  if (is_cached(&known)) r->cached += known.bytes;
}

static void room_of_small(void *context, pointer_block b)
{
  room *r = context;
  if (!in_room(r, &b) || b.bytes > BLOCK_CACHE_PAGE / 2) return;
  const block_cache_block known = block_cache_find(b.start);
  if (is_cached(&known) == r->counting_live) return;
  for (uint64_t page = b.start / BLOCK_CACHE_PAGE;
       page <= (b.start + b.bytes - 1) / BLOCK_CACHE_PAGE; page++)
    if (page_add(r, page) && !r->counting_live && !page_is_used(page))
      r->cached += BLOCK_CACHE_PAGE;
}

/* Bytes of the device that would be free if nothing were cached. */
static uint64_t room_cached(unsigned device)
{
  room r = {.device = device, .counting_live = true};
  pointer_blocks_each(room_of_large, &r);
  if (!r.smaller) return r.cached;
  uint64_t slots = UINT64_C(4) << (64 - __builtin_clzll(r.smaller));
  r.pages = pages_alloc(slots * sizeof *r.pages);
  r.mask = slots - 1;
  if (!r.pages) return r.cached;
  pointer_blocks_each(room_of_small, &r);
  r.counting_live = false;
  pointer_blocks_each(room_of_small, &r);
  (void)munmap(r.pages, slots * sizeof *r.pages);
  return r.cached;
}

CUresult handle_cuMemGetInfo_v2(CUresult (*real)(size_t *, size_t *), size_t *free_bytes,
                                size_t *total_bytes)
{
  size_t total = 0, free_now = 0;
  CUresult r = real(&free_now, &total);
  if (r != CUDA_SUCCESS || !free_bytes || !total_bytes) return real(free_bytes, total_bytes);
  context_refresh(&thread_self);
  free_now += room_cached(thread_self.last_device);
  *free_bytes = free_now < total ? free_now : total;
  *total_bytes = total;
  return r;
}

/* ---- what an address is ---------------------------------------------------------------------- */

CUresult handle_cuMemGetAddressRange_v2(CUresult (*real)(CUdeviceptr *, size_t *, CUdeviceptr),
                                        CUdeviceptr *base, size_t *bytes, CUdeviceptr ptr)
{
  reroute_address what;
  CUresult r = real(base, bytes, visible_free(ptr, &what));
  if (r == CUDA_SUCCESS && bytes && what.what == WEIR_ROUTED_LIVE) *bytes = what.requested;
  return r;
}

CUresult handle_cuMemHostGetDevicePointer_v2(CUresult (*real)(CUdeviceptr *, void *, unsigned),
                                             CUdeviceptr *out, void *at, unsigned flags)
{
  reroute_address what;
  return real(out, (void *)(uintptr_t)visible_free((CUdeviceptr)(uintptr_t)at, &what), flags);
}

CUresult handle_cuMemHostGetFlags(CUresult (*real)(unsigned *, void *), unsigned *flags, void *at)
{
  reroute_address what;
  return real(flags, (void *)(uintptr_t)visible_free((CUdeviceptr)(uintptr_t)at, &what));
}

/* The range's size is what the program asked for; a token or a file descriptor shares the memory. A
 * buffer's id is "guaranteed to be unique within the process", and caches of registrations go by
 * it; the driver's is one for all that we make of its memory, so the allocation's number is above
 * it. */
static void adjust(const reroute_address *what, CUpointer_attribute attribute, void *data,
                   CUdeviceptr ptr)
{
  if (what->what != WEIR_ROUTED_LIVE) return;
  if (attribute == CU_POINTER_ATTRIBUTE_RANGE_SIZE && data) *(size_t *)data = what->requested;
  if (attribute == CU_POINTER_ATTRIBUTE_BUFFER_ID && data)
    *(unsigned long long *)data ^= what->again << 32;
  if (attribute == CU_POINTER_ATTRIBUTE_P2P_TOKENS) reroute_taint(ptr, WEIR_WHY_TOKEN);
}

CUresult handle_cuPointerGetAttribute(CUresult (*real)(void *, CUpointer_attribute, CUdeviceptr),
                                      void *data, CUpointer_attribute attribute, CUdeviceptr ptr)
{
  reroute_address what;
  CUresult r = real(data, attribute, visible_free(ptr, &what));
  if (r == CUDA_SUCCESS) adjust(&what, attribute, data, ptr);
  return r;
}

CUresult handle_cuPointerGetAttributes(CUresult (*real)(unsigned, CUpointer_attribute *, void **,
                                                        CUdeviceptr),
                                       unsigned count, CUpointer_attribute *attributes, void **data,
                                       CUdeviceptr ptr)
{
  reroute_address what;
  CUresult r = real(count, attributes, data, visible_free(ptr, &what));
  for (unsigned i = 0; r == CUDA_SUCCESS && i < count; i++)
    adjust(&what, attributes[i], data[i], ptr);
  return r;
}

/* What follows makes memory known outside of the program's own allocations. */

CUresult
handle_cuPointerSetAttribute(CUresult (*real)(const void *, CUpointer_attribute, CUdeviceptr),
                             const void *value, CUpointer_attribute attribute, CUdeviceptr ptr)
{
  reroute_address what;
  CUresult r = real(value, attribute, visible_free(ptr, &what));
  if (r == CUDA_SUCCESS && what.what == WEIR_ROUTED_LIVE) reroute_taint(ptr, WEIR_WHY_ATTRIBUTE);
  return r;
}

CUresult handle_cuMemGetHandleForAddressRange(CUresult (*real)(void *, CUdeviceptr, size_t,
                                                               CUmemRangeHandleType,
                                                               unsigned long long),
                                              void *handle, CUdeviceptr ptr, size_t bytes,
                                              CUmemRangeHandleType type, unsigned long long flags)
{
  reroute_address what;
  CUresult r = real(handle, visible_free(ptr, &what), bytes, type, flags);
  if (r == CUDA_SUCCESS) reroute_taint(ptr, WEIR_WHY_HANDLE);
  return r;
}

CUresult handle_cuIpcGetMemHandle(CUresult (*real)(CUipcMemHandle *, CUdeviceptr),
                                  CUipcMemHandle *handle, CUdeviceptr ptr)
{
  reroute_address what;
  CUresult r = real(handle, visible_free(ptr, &what));
  if (r == CUDA_SUCCESS) reroute_taint(ptr, WEIR_WHY_IPC);
  return r;
}
