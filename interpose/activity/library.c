/* library.c: see library.h. */
#include "interpose/activity/library.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include "interpose/elf/elf.h"
#include "interpose/process/settings.h"

/* What is known of CUPTI's versions, from NVIDIA's release notes and the trackers of those who use
 * it. From version `from` to version `to` (CUPTI_API_VERSION; before CUDA 13.0 they were counted).
 *
 * Known faults that need no gate, since what they are of is never used here: cuptiFinalize crashes
 * after graphs (before 12.6), times are zero under a timestamp callback (12.6 Update 2 to 13.0),
 * records of waits for a device are missing (13.0), a client that came as NVTX's injection crashes
 * (13.0), latency times deadlock and hardware events leak (before 13.4 Update 1). */
static const struct gate {
  uint32_t from, to;
  unsigned gates;
  const char *why; /* a message for the user; NULL: none */
} gates[] = {
    {0, 17, CUPTI_GATE_REFUSED, "its CUPTI is older than CUDA 11.8's"},
    {0, 26, CUPTI_GATE_NO_REFUSAL, NULL}, /* before 12.9: it crashes */
    {130000, 130000, CUPTI_GATE_NO_KERNELS,
     "no kernels: the CUPTI of CUDA 13.0 can deadlock when kernels are no longer observed"},
    {0, 130100, CUPTI_GATE_GRAPHS_ONCE, NULL}, /* mended in 13.1 Update 1 */
    {0, 130199, CUPTI_GATE_ALONE, NULL},
    {0, 130299, CUPTI_GATE_NO_READERS_V2, NULL}};

unsigned cupti_library_gates(uint32_t version, const char **why)
{
  unsigned found = 0;
  *why = NULL;
  for (size_t i = 0; i < sizeof gates / sizeof *gates; i++) {
    if (version < gates[i].from || version > gates[i].to) continue;
    found |= gates[i].gates;
    if (gates[i].why && !*why) *why = gates[i].why;
  }
  return found;
}

static const char *const names[] = {"libcupti.so.13", "libcupti.so.12"};
enum { NAMES = 2 };

static void *mapped_library(void)
{
  void *handle = NULL;
  for (int i = 0; i < NAMES && !handle; i++)
    handle = real_dlopen(names[i], RTLD_LAZY | RTLD_NOLOAD);
  return handle;
}

void *cupti_library_mapped(const char *name)
{
  void *handle = mapped_library();
  return handle ? real_dlsym(handle, name) : NULL;
}

uint32_t cupti_library_mapped_version(void)
{
  CUptiResult (*ask)(uint32_t *) = NULL;
  uint32_t version = 0;
  *(void **)&ask = cupti_library_mapped("cuptiGetVersion");
  return ask && ask(&version) == CUPTI_SUCCESS ? version : 0;
}

/* The one of CUDA 13 wants a driver of 13. */
static int first_name(void)
{
  CUresult (*ask)(int *) = NULL;
  int version = 0;
  *(void **)&ask = elf_symbol(cuda_library_soname(WEIR_BANK_DRIVER), "cuDriverGetVersion");
  return ask && ask(&version) == CUDA_SUCCESS && version < 13000 ? 1 : 0;
}

static char named[PATH_MAX]; /* the one to be used, whatever is mapped; "": none is named */

void cupti_library_name(void)
{
  const char *text = getenv("WEIR_CUPTI");
  if (text && *text) (void)process_absolute_path(named, text);
}

static void *open_cupti(void)
{
  if (named[0]) return real_dlopen(named, RTLD_NOW | RTLD_LOCAL);
  void *handle = mapped_library();
  for (int i = first_name(); i < NAMES && !handle; i++)
    handle = real_dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
  return handle;
}

static void find_by_subscriber(cupti_library *l, void *handle)
{
#define FIND(name, parameters)                                                                     \
  *(void **)&l->by_subscriber.name = real_dlsym(handle, #name);                                    \
  if (!l->by_subscriber.name) l->gates |= MISSING;
#define MISSING CUPTI_GATE_ALONE
  CUPTI_BY_SUBSCRIBER(FIND)
#undef MISSING
#define MISSING CUPTI_GATE_NO_READERS_V2
  CUPTI_READERS_BY_SUBSCRIBER(FIND)
#undef MISSING
#undef FIND
}

bool cupti_library_open(cupti_library *l, char *why, size_t room)
{
  const char *warning;
  void *handle = open_cupti();
  if (!handle) {
    (void)snprintf(why, room, "%s is not found",
                   named[0] ? "the library that WEIR_CUPTI names" : names[first_name()]);
    return false;
  }
#define FIND(name)                                                                                 \
  *(void **)&l->name = real_dlsym(handle, #name);                                                  \
  if (!l->name) {                                                                                  \
    (void)snprintf(why, room, "libcupti has no %s", #name);                                        \
    return false;                                                                                  \
  }
  CUPTI_LIBRARY_FUNCTIONS(FIND)
#undef FIND
  if (l->cuptiGetVersion(&l->version) != CUPTI_SUCCESS) l->version = 0;
  l->gates = cupti_library_gates(l->version, &warning);
  find_by_subscriber(l, handle);
  (void)snprintf(why, room, "%s", warning ? warning : "");
  return !(l->gates & CUPTI_GATE_REFUSED);
}
