/* tool.c: an NVTX tool of somebody else's: it counts what it is called with, keeps levels, and
 * writes all that to a file when the program ends. TOOL_REFUSES: it does not want this program.
 * Built with NO_EXTENSION it has nothing for NVTX's extensions. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define NVTX_NO_IMPL 1
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtMem.h>
#include <nvtx3/nvToolsExtPayload.h>

static unsigned long long hash = 5;
static unsigned calls[10];
static int level;
static char *names[64];
static unsigned name_count;

static void tool_add(int what, const char *text)
{
  calls[what]++;
  for (; text && *text; text++)
    hash = hash * 31 + (unsigned char)*text;
}

static const char *text_of(const nvtxEventAttributes_t *a)
{
  if (a->messageType == NVTX_MESSAGE_TYPE_ASCII) return a->message.ascii;
  if (a->messageType == NVTX_MESSAGE_TYPE_REGISTERED) return *(char **)a->message.registered;
  return "(wide)";
}

static int NVTX_API push_a(const char *text)
{
  tool_add(0, text);
  return level++;
}

static int NVTX_API push_ex(const nvtxEventAttributes_t *a)
{
  tool_add(1, text_of(a));
  return level++;
}

static int NVTX_API tool_pop(void)
{
  tool_add(2, "pop");
  return level ? --level : -1;
}

static nvtxRangeId_t NVTX_API start_ex(const nvtxEventAttributes_t *a)
{
  tool_add(3, text_of(a));
  return 1000 + calls[3];
}

static void NVTX_API end(nvtxRangeId_t id)
{
  char text[24];
  (void)snprintf(text, sizeof text, "%llu", (unsigned long long)id);
  tool_add(4, text);
}

static int NVTX_API push_in(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *a)
{
  tool_add(5, domain ? *(char **)(void *)domain : "(none)");
  tool_add(5, text_of(a));
  return 0;
}

static void *keep(const char *name)
{
  names[name_count] = strdup(name);
  return &names[name_count++];
}

static nvtxDomainHandle_t NVTX_API create(const char *name)
{
  return keep(name);
}

static nvtxStringHandle_t NVTX_API register_string(nvtxDomainHandle_t domain, const char *text)
{
  (void)domain;
  return keep(text);
}

static void report(void)
{
  FILE *f = fopen(getenv("TOOL_OUTPUT"), "w");
  (void)fprintf(f, "%llx", hash);
  for (int i = 0; i < 10; i++)
    (void)fprintf(f, " %u", calls[i]);
  (void)fclose(f);
}

static void tool_put(const NvtxExportTableCallbacks *c, NvtxCallbackModule module, unsigned id,
                     NvtxFunctionPointer f)
{
  NvtxFunctionTable table = NULL;
  unsigned size = 0;
  if (c->GetModuleFunctionTable(module, &table, &size) && id < size) *table[id] = f;
}

#define PUT(module, id, f)                                                                         \
  tool_put(c, NVTX_CB_MODULE_##module, NVTX_CBID_##module##_##id, (NvtxFunctionPointer)(f))

int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get)
{
  const NvtxExportTableCallbacks *c = get(NVTX_ETID_CALLBACKS);
  PUT(CORE, RangePushA, push_a);
  PUT(CORE, RangePushEx, push_ex);
  PUT(CORE, RangePop, tool_pop);
  PUT(CORE, RangeStartEx, start_ex);
  PUT(CORE, RangeEnd, end);
  PUT(CORE2, DomainRangePushEx, push_in);
  PUT(CORE2, DomainCreateA, create);
  PUT(CORE2, DomainRegisterStringA, register_string);
  (void)atexit(report);
  return !getenv("TOOL_REFUSES");
}

#ifndef NO_EXTENSION
static nvtxMemHeapHandle_t heap_register(nvtxDomainHandle_t domain, const nvtxMemHeapDesc_t *heap)
{
  tool_add(8, domain ? *(char **)(void *)domain : "(none)");
  tool_add(8, heap->message.ascii);
  return (nvtxMemHeapHandle_t)(intptr_t)(500 + calls[8]);
}

static void regions_register(nvtxDomainHandle_t domain,
                             const nvtxMemRegionsRegisterBatch_t *regions)
{
  const nvtxMemVirtualRangeDesc_t *range = regions->regionDescElements;
  tool_add(8, domain ? "in a domain" : "(none)");
  *regions->regionHandleElementsOut =
      (nvtxMemRegionHandle_t)(intptr_t)((const char *)range->ptr + 3);
}

static void regions_name(nvtxDomainHandle_t domain, const nvtxMemRegionsNameBatch_t *names)
{
  tool_add(8, domain ? "in a domain" : "(none)");
  tool_add(8, names->regionElements->name.ascii);
}

static uint64_t schema_register(nvtxDomainHandle_t domain, const nvtxPayloadSchemaAttr_t *schema)
{
  tool_add(9, domain ? "in a domain" : "(none)");
  tool_add(9, schema->entries->name);
  return 700 + calls[9];
}

int InitializeInjectionNvtxExtension(nvtxExtModuleInfo_t *module)
{
  intptr_t *slot = module->segments[0].functionSlots;
  if (module->moduleId == NVTX_EXT_PAYLOAD_MODULEID)
    slot[NVTX3EXT_CBID_nvtxPayloadSchemaRegister] = (intptr_t)schema_register;
  if (module->moduleId == NVTX_EXT_MODULEID_MEM) {
    slot[NVTX3EXT_CBID_nvtxMemHeapRegister] = (intptr_t)heap_register;
    slot[NVTX3EXT_CBID_nvtxMemRegionsRegister] = (intptr_t)regions_register;
    slot[NVTX3EXT_CBID_nvtxMemRegionsName] = (intptr_t)regions_name;
  }
  return !getenv("TOOL_REFUSES");
}
#endif
