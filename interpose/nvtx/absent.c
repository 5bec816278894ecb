/* absent.c: in place of the rest of this folder where the CUDA Toolkit of the build has no headers
 * of NVTX (interpose/rules.mk): ranges cannot be had, and who asks for them by WEIR_NVTX=on reads
 * so. The variable NVTX_INJECTION64_PATH stays as it is; NVTX goes on as without a tool where it
 * names us. */
#include "interpose/process/settings.h"
#include "interpose/elf/entry.h"
#include "interpose/process/part.h"
#include "interpose/process/process.h"

typedef void *(*export_table_function)(unsigned which); /* NvtxGetExportTableFunc_t */

__attribute__((visibility("default"))) int InitializeInjectionNvtx2(export_table_function get);
__attribute__((visibility("default"))) int InitializeInjectionNvtxExtension(void *module);

WEIR_BODY int inject(export_table_function get)
{
  (void)get;
  return 0;
}
WEIR_ENTRY(InitializeInjectionNvtx2, inject);

WEIR_BODY int inject_extension(void *module)
{
  (void)module;
  return 0;
}
WEIR_ENTRY(InitializeInjectionNvtxExtension, inject_extension);

static void refuse_ranges(void)
{
  static const char *const words[] = {"off", "on", NULL};
  unsigned choice = 0;

  if (process_choice_option(&choice, "WEIR_NVTX", words) && choice)
    process_say("ranges are not recorded: this Weir was built without NVTX's headers.");
}

static const process_part part = {.start = refuse_ranges};
PROCESS_PART(part);
