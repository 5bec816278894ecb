/* memory_names.c: NVTX's memory extension: names of heaps and of regions, by their address.
 *
 * Two functions of the extension's slots are ours, in front of the next tool's; all others are as
 * that tool left them. A region that is named by a tool's handle is not recorded: only that tool
 * knows where it is. Without headers of the extension (before CUDA 12.3) there is nothing here. */
#include "interpose/nvtx/nvtx.h"

#if defined(__has_include) && __has_include(<nvtx3/nvToolsExtMem.h>)
#include <nvtx3/nvToolsExtMem.h>

static _Atomic intptr_t next_heap, next_names; /* the next tool's; 0: none */

/* A slot's own values (nvtxExtImpl.h): nothing put in yet, turned off. */
enum { SLOT_FRESH, SLOT_OFF };

static void record_heap(const nvtxMemHeapDesc_t *d)
{
  if (!d || d->extCompatID != NVTX_EXT_COMPATID_MEM || d->structSize < sizeof *d) return;
  if (d->type != NVTX_MEM_TYPE_VIRTUAL_ADDRESS || !d->typeSpecificDesc ||
      d->typeSpecificDescSize < sizeof(nvtxMemVirtualRangeDesc_t))
    return;
  const nvtxMemVirtualRangeDesc_t *range = d->typeSpecificDesc;
  const nvtx_message name = {(int32_t)d->messageType, d->message};
  if (name.type != NVTX_MESSAGE_UNKNOWN)
    nvtx_write_name(WEIR_NAME_HEAP, (uint64_t)(uintptr_t)range->ptr, range->size, NULL, &name);
}

static nvtxMemHeapHandle_t heap_register(nvtxDomainHandle_t domain, const nvtxMemHeapDesc_t *heap)
{
  typedef nvtxMemHeapHandle_t (*type)(nvtxDomainHandle_t, const nvtxMemHeapDesc_t *);
  intptr_t next = atomic_load_explicit(&next_heap, memory_order_relaxed);
  record_heap(heap);
  return next ? ((type)next)(domain, heap) : NULL;
}

static void record_regions(const nvtxMemRegionsNameBatch_t *b)
{
  if (!b || b->extCompatID != NVTX_EXT_COMPATID_MEM || b->structSize < sizeof *b) return;
  if (!b->regionElements || b->regionElementSize < sizeof(nvtxMemRegionNameDesc_t)) return;
  const char *element = (const char *)b->regionElements;
  for (size_t i = 0; i < b->regionCount; i++, element += b->regionElementSize) {
    const nvtxMemRegionNameDesc_t *d = (const nvtxMemRegionNameDesc_t *)(const void *)element;
    const nvtx_message name = {(int32_t)d->nameType, d->name};
    if (d->regionRefType == NVTX_MEM_REGION_REF_TYPE_POINTER)
      nvtx_write_name(WEIR_NAME_REGION, (uint64_t)(uintptr_t)d->region.pointer, 0, NULL, &name);
  }
}

static void regions_name(nvtxDomainHandle_t domain, const nvtxMemRegionsNameBatch_t *names)
{
  typedef void (*type)(nvtxDomainHandle_t, const nvtxMemRegionsNameBatch_t *);
  intptr_t next = atomic_load_explicit(&next_names, memory_order_relaxed);
  record_regions(names);
  if (next) ((type)next)(domain, names);
}

/* As take_slot() of injection.c does it: a tool that has given another instance another function
 * keeps this slot for itself. */
static void take_extension_slot(intptr_t *slot, _Atomic intptr_t *next, intptr_t ours)
{
  intptr_t none = 0, was = *slot == SLOT_FRESH || *slot == SLOT_OFF ? 0 : *slot;
  if (was == ours) return;
  if (!atomic_compare_exchange_strong(next, &none, was) && none != was) return;
  *slot = ours;
}

static nvtxExtModuleSegment_t *memory_slots(void *module)
{
  const nvtxExtModuleInfo_t *m = module;
  if (!m || m->structSize < sizeof *m || m->moduleId != NVTX_EXT_MODULEID_MEM ||
      m->compatId != NVTX_EXT_COMPATID_MEM || m->segmentsCount < 1 || !m->segments)
    return NULL;
  return m->segments[0].slotCount > NVTX3EXT_CBID_nvtxMemRegionsName ? m->segments : NULL;
}

bool nvtx_take_memory_names(void *module, bool empty)
{
  nvtxExtModuleSegment_t *s = memory_slots(module);
  if (!s) return false;
  for (size_t i = 0; empty && i < s->slotCount; i++)
    s->functionSlots[i] = SLOT_FRESH;
  take_extension_slot(&s->functionSlots[NVTX3EXT_CBID_nvtxMemHeapRegister], &next_heap,
                      (intptr_t)heap_register);
  take_extension_slot(&s->functionSlots[NVTX3EXT_CBID_nvtxMemRegionsName], &next_names,
                      (intptr_t)regions_name);
  return true;
}

#else

bool nvtx_take_memory_names(void *module, bool empty)
{
  (void)module, (void)empty;
  return false;
}

#endif
