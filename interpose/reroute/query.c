/* query.c: questions whose true answer would give the caches away. Each is asked at the
 * driver's layer; a runtime's own question arrives here by way of the driver's functions that it
 * was handed. Nested calls of ours are answered plainly. */
#include "core/base/pages.h"
#include "interpose/record/stats.h"
#include "interpose/reroute/within.h"

weir_routed weir_route_look(uint64_t address)
{
  PFN_cuMemGetAddressRange_v3020 ask = WEIR_HELPER(cuMemGetAddressRange_v2);
  weir_whole_block b = weir_whole_find(address);
  CUdeviceptr base = 0;
  if (b.state == WEIR_WHOLE_NONE) {
    if (!ask || ask(&base, NULL, address) != CUDA_SUCCESS || !base || base == address)
      return (weir_routed){.what = WEIR_ROUTED_NOT};
    b = weir_whole_find(base);
  }
  if (b.state == WEIR_WHOLE_NONE) return (weir_routed){.what = WEIR_ROUTED_NOT};
  /* Past what the program asked for there is nothing that it could know of. */
  bool live = b.state == WEIR_WHOLE_LIVE && address - b.address < b.requested;
  return (weir_routed){live ? WEIR_ROUTED_LIVE : WEIR_ROUTED_CACHED, b.address, b.requested,
                       b.why == WEIR_WHOLE_HIT ? b.serial : 0};
}

void weir_route_taint(uint64_t address, weir_reason why)
{
  weir_routed r = weir_route_look(address);
  if (r.what != WEIR_ROUTED_LIVE || !weir_whole_forget(r.base)) return;
  weir_block b = weir_block_take(r.base);
  weir_stats_tainted(r.base, b.bytes, why);
  b.bytes = r.requested;
  weir_block_add(b);
}

/* `ptr`, or where it is in memory that the program has freed an address that is nobody's. */
static CUdeviceptr as_seen(CUdeviceptr ptr, weir_routed *what)
{
  *what = weir_route_look(ptr);
  return what->what == WEIR_ROUTED_CACHED ? (CUdeviceptr)WEIR_NOBODYS : ptr;
}

/* ---- how much is free -------------------------------------------------------------------------
 *
 * What a device has free counts pages. A cached block above half a page has pages of its own. Of
 * smaller ones the driver puts many into one page, so that their page would be free without us only
 * when no block in it is live: they are looked through by page. Nothing is given back for the
 * question: a free of the driver's waits for work, and the question does not. Other processes are
 * in the driver's answer. */

enum { ROOM_PROBES = 64 };

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

static bool in_room(const room *r, const weir_block *b)
{
  return weir_tag_mem(b->tag) == WEIR_MEM_DEVICE && weir_tag_device(b->tag) == r->device &&
         !(b->tag & WEIR_TAG_POOL) && b->bytes;
}

static bool is_cached(const weir_whole_block *b)
{
  return b->state == WEIR_WHOLE_WAITING || b->state == WEIR_WHOLE_IDLE;
}

/* First look: blocks with pages of their own; how many others there are. */
static void room_of_large(void *context, weir_block b)
{
  room *r = context;
  if (!in_room(r, &b)) return;
  if (b.bytes <= WEIR_WHOLE_PAGE / 2) {
    r->smaller++;
    return;
  }
  const weir_whole_block known = weir_whole_find(b.start);
  if (is_cached(&known)) r->cached += known.bytes;
}

static void room_of_small(void *context, weir_block b)
{
  room *r = context;
  if (!in_room(r, &b) || b.bytes > WEIR_WHOLE_PAGE / 2) return;
  const weir_whole_block known = weir_whole_find(b.start);
  if (is_cached(&known) == r->counting_live) return;
  for (uint64_t page = b.start / WEIR_WHOLE_PAGE; page <= (b.start + b.bytes - 1) / WEIR_WHOLE_PAGE;
       page++)
    if (page_add(r, page) && !r->counting_live) r->cached += WEIR_WHOLE_PAGE;
}

/* Bytes of the device that would be free if nothing were cached. */
static uint64_t room_cached(unsigned device)
{
  room r = {.device = device, .counting_live = true};
  weir_blocks_each(room_of_large, &r);
  if (!r.smaller) return r.cached;
  uint64_t slots = UINT64_C(4) << (64 - __builtin_clzll(r.smaller));
  r.pages = weir_pages(slots * sizeof *r.pages);
  r.mask = slots - 1;
  if (!r.pages) return r.cached;
  weir_blocks_each(room_of_small, &r);
  r.counting_live = false;
  weir_blocks_each(room_of_small, &r);
  (void)munmap(r.pages, slots * sizeof *r.pages);
  return r.cached;
}

CUresult weir_s_cuMemGetInfo_v2(CUresult (*real)(size_t *, size_t *), size_t *free_bytes,
                                size_t *total_bytes)
{
  size_t total = 0, free_now = 0;
  CUresult r = real(&free_now, &total);
  if (r != CUDA_SUCCESS || !free_bytes || !total_bytes) return real(free_bytes, total_bytes);
  weir_context_refresh(&weir_self);
  free_now += room_cached(weir_self.last_device);
  *free_bytes = free_now < total ? free_now : total;
  *total_bytes = total;
  return r;
}

/* ---- what an address is ---------------------------------------------------------------------- */

CUresult weir_s_cuMemGetAddressRange_v2(CUresult (*real)(CUdeviceptr *, size_t *, CUdeviceptr),
                                        CUdeviceptr *base, size_t *bytes, CUdeviceptr ptr)
{
  weir_routed what;
  CUresult r = real(base, bytes, as_seen(ptr, &what));
  if (r == CUDA_SUCCESS && bytes && what.what == WEIR_ROUTED_LIVE) *bytes = what.requested;
  return r;
}

/* The range's size is what the program asked for; a token or a file descriptor shares the memory. A
 * buffer's id is "guaranteed to be unique within the process", and caches of registrations go by
 * it; the driver's is one for all that we make of its memory, so the allocation's number is above
 * it. */
static void adjust(const weir_routed *what, CUpointer_attribute attribute, void *data,
                   CUdeviceptr ptr)
{
  if (what->what != WEIR_ROUTED_LIVE) return;
  if (attribute == CU_POINTER_ATTRIBUTE_RANGE_SIZE && data) *(size_t *)data = what->requested;
  if (attribute == CU_POINTER_ATTRIBUTE_BUFFER_ID && data)
    *(unsigned long long *)data ^= what->again << 32;
  if (attribute == CU_POINTER_ATTRIBUTE_P2P_TOKENS) weir_route_taint(ptr, WEIR_WHY_TOKEN);
}

CUresult weir_s_cuPointerGetAttribute(CUresult (*real)(void *, CUpointer_attribute, CUdeviceptr),
                                      void *data, CUpointer_attribute attribute, CUdeviceptr ptr)
{
  weir_routed what;
  CUresult r = real(data, attribute, as_seen(ptr, &what));
  if (r == CUDA_SUCCESS) adjust(&what, attribute, data, ptr);
  return r;
}

CUresult weir_s_cuPointerGetAttributes(CUresult (*real)(unsigned, CUpointer_attribute *, void **,
                                                        CUdeviceptr),
                                       unsigned count, CUpointer_attribute *attributes, void **data,
                                       CUdeviceptr ptr)
{
  weir_routed what;
  CUresult r = real(count, attributes, data, as_seen(ptr, &what));
  for (unsigned i = 0; r == CUDA_SUCCESS && i < count; i++)
    adjust(&what, attributes[i], data[i], ptr);
  return r;
}

/* What follows makes memory known outside of the program's own allocations. */

CUresult
weir_s_cuPointerSetAttribute(CUresult (*real)(const void *, CUpointer_attribute, CUdeviceptr),
                             const void *value, CUpointer_attribute attribute, CUdeviceptr ptr)
{
  weir_routed what;
  CUresult r = real(value, attribute, as_seen(ptr, &what));
  if (r == CUDA_SUCCESS && what.what == WEIR_ROUTED_LIVE) weir_route_taint(ptr, WEIR_WHY_ATTRIBUTE);
  return r;
}

CUresult weir_s_cuMemGetHandleForAddressRange(CUresult (*real)(void *, CUdeviceptr, size_t,
                                                               CUmemRangeHandleType,
                                                               unsigned long long),
                                              void *handle, CUdeviceptr ptr, size_t bytes,
                                              CUmemRangeHandleType type, unsigned long long flags)
{
  weir_routed what;
  CUresult r = real(handle, as_seen(ptr, &what), bytes, type, flags);
  if (r == CUDA_SUCCESS) weir_route_taint(ptr, WEIR_WHY_HANDLE);
  return r;
}

CUresult weir_s_cuIpcGetMemHandle(CUresult (*real)(CUipcMemHandle *, CUdeviceptr),
                                  CUipcMemHandle *handle, CUdeviceptr ptr)
{
  weir_routed what;
  CUresult r = real(handle, as_seen(ptr, &what));
  if (r == CUDA_SUCCESS) weir_route_taint(ptr, WEIR_WHY_IPC);
  return r;
}
