/* extension.c: a program that uses NVTX's extensions, payloads and memory: it prints what it is
 * answered, and which functions are on once it has called them. */
#include <stdio.h>
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtMem.h>
#include <nvtx3/nvToolsExtPayload.h>

static int room[64];

static void use_memory(nvtxDomainHandle_t domain)
{
  nvtxMemVirtualRangeDesc_t range = {sizeof room, room};
  nvtxMemHeapDesc_t heap = {.extCompatID = NVTX_EXT_COMPATID_MEM,
                            .structSize = sizeof heap,
                            .usage = NVTX_MEM_HEAP_USAGE_TYPE_SUB_ALLOCATOR,
                            .type = NVTX_MEM_TYPE_VIRTUAL_ADDRESS,
                            .typeSpecificDescSize = sizeof range,
                            .typeSpecificDesc = &range,
                            .messageType = NVTX_MESSAGE_TYPE_ASCII,
                            .message.ascii = "the heap"};
  nvtxMemRegionHandle_t handle = (nvtxMemRegionHandle_t)(void *)&room[1];
  nvtxMemRegionsRegisterBatch_t regions = {.extCompatID = NVTX_EXT_COMPATID_MEM,
                                           .structSize = sizeof regions,
                                           .regionType = NVTX_MEM_TYPE_VIRTUAL_ADDRESS,
                                           .regionCount = 1,
                                           .regionDescElementSize = sizeof range,
                                           .regionDescElements = &range,
                                           .regionHandleElementsOut = &handle};
  regions.heap = nvtxMemHeapRegister(domain, &heap);
  nvtxMemRegionsRegister(domain, &regions);
  nvtxMemRegionNameDesc_t name = {.regionRefType = NVTX_MEM_REGION_REF_TYPE_POINTER,
                                  .nameType = NVTX_MESSAGE_TYPE_ASCII,
                                  .region.pointer = room,
                                  .name.ascii = "the region"};
  nvtxMemRegionsNameBatch_t names = {.extCompatID = NVTX_EXT_COMPATID_MEM,
                                     .structSize = sizeof names,
                                     .regionCount = 1,
                                     .regionElementSize = sizeof name,
                                     .regionElements = &name};
  nvtxMemRegionsName(domain, &names);
  printf("heap %td region %td\n", (intptr_t)regions.heap,
         handle ? (char *)handle - (char *)room : -1);
}

static void use_payload(nvtxDomainHandle_t domain)
{
  static const nvtxPayloadSchemaEntry_t entries[] = {
      {.type = NVTX_PAYLOAD_ENTRY_TYPE_INT32, .name = "count"}};
  nvtxPayloadSchemaAttr_t schema = {.fieldMask = NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_TYPE |
                                                 NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_ENTRIES |
                                                 NVTX_PAYLOAD_SCHEMA_ATTR_FIELD_NUM_ENTRIES,
                                    .type = NVTX_PAYLOAD_SCHEMA_TYPE_STATIC,
                                    .entries = entries,
                                    .numEntries = 1};
  printf("schema %llu enabled %d\n", (unsigned long long)nvtxPayloadSchemaRegister(domain, &schema),
         nvtxDomainIsEnabled(domain));
}

/* Of all but `but` and `nor`, which a tool of names has. */
static void print_slots(const char *extension, const intptr_t *slots, int count, int but, int nor)
{
  int on = 0;
  for (int i = 1; i < count; i++)
    on += slots[i] != NVTX_EXTENSION_DISABLED && i != but + 1 && i != nor + 1;
  printf("%s: %d functions on\n", extension, on);
}

int main(void)
{
  nvtxDomainHandle_t domain = nvtxDomainCreateA("domain");
  use_memory(domain);
  use_payload(domain);
  use_memory(NULL);
  print_slots("memory", NVTX_EXT_MEM_VERSIONED_ID(nvtxExtMemSlots), NVTX_EXT_MEM_SLOT_COUNT + 1,
              NVTX3EXT_CBID_nvtxMemHeapRegister, NVTX3EXT_CBID_nvtxMemRegionsName);
  print_slots("payload", NVTX_EXT_PAYLOAD_VERSIONED_ID(nvtxExtPayloadSlots),
              NVTX_EXT_PAYLOAD_SLOT_COUNT + 1, -1, -1);
  return 0;
}
