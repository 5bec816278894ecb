/* extract_vmm.c: virtual memory management: memory without an address, and where it is mapped
 * (physical.h). Its creation is an allocation, whose address is the handle; the call that ends the
 * last of its references and mappings is its free, or, where that is an unmapping, which may end
 * many, the first of a call whose further items are the frees. Imported memory counts from its
 * first mapping, which shows its size. All other calls are just calls. */
#include "interpose/record/extract.h"

#include "interpose/record/event_fill.h"
#include "interpose/record/physical.h"

/* Memory of a device, or of the host. Which context makes it is of no meaning. */
static block_tag place_of_physical(const CUmemAllocationProp *prop, unsigned here)
{
  if (!prop) return block_tag_make(WEIR_MEM_DEVICE, here, 0);
  if (prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
    return block_tag_make(WEIR_MEM_PINNED, WEIR_DEVICE_NONE, 0);
  return block_tag_make(WEIR_MEM_DEVICE, (unsigned)prop->location.id, 0);
}

static unsigned kind_of_physical(const physical_memory *m)
{
  if (m->imported) return WEIR_MEM_IMPORTED;
  return block_tag_mem(m->tag) == WEIR_MEM_DEVICE ? WEIR_MEM_PHYSICAL : WEIR_MEM_PINNED;
}

static void commit(const hook_call *c, event_fields e, const physical_memory *m)
{
  e.a = m->handle;
  e.bytes = m->bytes;
  e.mem = kind_of_physical(m);
  e.device = block_tag_device(m->tag);
  e.context = 0;
  event_commit(c, &e);
}

/* No context was made by a call within another: the one around it may have made it. */
static void commit_call(const hook_call *c, extract_word a, extract_word b, extract_word bytes)
{
  event_fields e = event_begin(c, WEIR_EV_CALL);
  e.a = a;
  e.b = b;
  e.bytes = bytes;
  e.device = c->thread->last_device;
  if (c->inner) e.context = 0;
  event_commit(c, &e);
}

void extract_vmm_create(hook_call *c, extract_word handle, extract_word bytes,
                        const CUmemAllocationProp *prop)
{
  event_fields e = event_begin(c, WEIR_EV_ALLOC);
  physical_memory m = {handle, bytes, place_of_physical(prop, c->thread->last_device), false};
  if (handle) physical_created(&m);
  commit(c, e, &m);
}

void extract_vmm_import(hook_call *c, extract_word handle)
{
  PFN_cuMemGetAllocationPropertiesFromHandle_v10020 ask =
      WEIR_HELPER(cuMemGetAllocationPropertiesFromHandle);
  CUmemAllocationProp prop, *known = NULL;
  event_fields e = event_begin(c, WEIR_EV_CALL);
  if (handle) {
    if (ask && ask(&prop, (CUmemGenericAllocationHandle)handle) == CUDA_SUCCESS) known = &prop;
    physical_created(
        &(physical_memory){handle, 0, place_of_physical(known, c->thread->last_device), true});
  }
  e.a = handle;
  e.device = c->thread->last_device;
  event_commit(c, &e);
}

void extract_vmm_retain(hook_call *c, extract_word handle, extract_word address)
{
  if (handle) physical_retained(handle, address);
  commit_call(c, handle, address, 0);
}

/* `held`, which no free is using, keeps which memory it is. */
void extract_vmm_release_before(hook_call *c, extract_word handle)
{
  c->held.bytes = physical_release_begin(handle);
}

void extract_vmm_release(hook_call *c, extract_word handle)
{
  physical_memory m;
  if (physical_release_end((uint32_t)c->held.bytes, handle, c->status == 0, &m) && m.bytes)
    commit(c, event_begin(c, WEIR_EV_FREE), &m);
  else
    commit_call(c, handle, 0, 0);
}

void extract_vmm_map(hook_call *c, extract_word ptr, extract_word bytes, extract_word handle)
{
  physical_memory m;
  if (c->status == 0 && physical_mapped(ptr, bytes, handle, &m))
    commit(c, event_begin(c, WEIR_EV_ALLOC), &m);
  else
    commit_call(c, ptr, handle, bytes);
}

void extract_vmm_unmap(hook_call *c, extract_word ptr, extract_word bytes)
{
  uint32_t ended = c->status == 0 ? physical_unmapped(ptr, bytes) : 0;
  commit_call(c, ptr, 0, bytes);
  c->flags |= WEIR_EVF_BATCH;
  while (ended) {
    physical_memory m;
    ended = physical_next_ended(ended, &m);
    commit(c, event_begin(c, WEIR_EV_FREE), &m);
  }
}
