/* nvml.c: see nvml.h. NVML's functions and structures are as its reference (NVIDIA Management
 * Library API Reference) has them; those that a driver lacks are done without. */
#include "tools/weir/collect/nvml.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/options.h"

enum {
  NVML_OK = 0,
  DEVICES = 32,    /* of the machine that are asked about */
  PROCESSES = 256, /* of a device that are distinguished */
  MOST = 1024,     /* samples at one distance */
  BUS_TEXT = 32
};
#define SECOND_NS UINT64_C(1000000000)

typedef struct nvml_device nvml_device; /* NVML's own */

typedef struct nvml_pci { /* nvmlPciInfo_t */
  char bus_legacy[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_text[32];
} nvml_pci;

typedef struct nvml_memory { /* nvmlMemory_t */
  unsigned long long total, free, used;
} nvml_memory;

typedef struct nvml_memory_v2 { /* nvmlMemory_v2_t */
  unsigned version;
  unsigned long long total, reserved, free, used;
} nvml_memory_v2;

typedef struct nvml_process { /* nvmlProcessInfo_t */
  unsigned pid;
  unsigned long long used; /* ~0: not available */
  unsigned gpu_instance, compute_instance;
} nvml_process;

typedef struct nvml_calls {
  int (*init)(void);
  int (*shutdown)(void);
  int (*count)(unsigned *n);
  int (*by_index)(unsigned i, nvml_device **out);
  int (*pci)(nvml_device *d, nvml_pci *out);
  int (*memory)(nvml_device *d, nvml_memory *out);
  int (*memory_v2)(nvml_device *d, nvml_memory_v2 *out);                /* may be NULL */
  int (*processes)(nvml_device *d, unsigned *count, nvml_process *out); /* may be NULL */
} nvml_calls;

typedef struct sampled_device {
  nvml_device *handle;
  char bus[BUS_TEXT];
  importer_usage last; /* as the trace has it */
  bool met;            /* one of ours was seen among its processes: NVML's numbers are ours */
} sampled_device;

struct nvml_sampler {
  void *library; /* NULL: not open */
  nvml_calls call;
  sampled_device device[DEVICES];
  unsigned devices, samples; /* samples: since the distance was doubled */
  uint64_t due_ns, distance_ns;
  bool steady; /* the distance is never doubled */
};

/* ---- the library ----------------------------------------------------------------------------- */

static bool is_off(void)
{
  const char *text = getenv("WEIR_NVML");
  bool on = true;
  return text && option_bool(&on, "WEIR_NVML", text) == WEIR_OK && !on;
}

nvml_sampler *nvml_sampler_new(void)
{
  nvml_sampler *n = calloc(1, sizeof *n);
  if (!n) return NULL;
  n->distance_ns = SECOND_NS;
  if (is_off()) n->due_ns = UINT64_MAX;
  return n;
}

void nvml_sampler_free(nvml_sampler *n)
{
  if (n && n->library) {
    (void)n->call.shutdown();
    (void)dlclose(n->library);
  }
  free(n);
}

void nvml_sampler_steady(nvml_sampler *n)
{
  n->steady = true;
}

uint64_t nvml_sampler_due(const nvml_sampler *n)
{
  return n->due_ns;
}

static bool find_function(void *library, const char *name, void *place)
{
  void *f = dlsym(library, name);
  memcpy(place, &f, sizeof f);
  return f != NULL;
}

static bool find_functions(void *library, nvml_calls *c)
{
  bool whole = find_function(library, "nvmlInit_v2", &c->init) &&
               find_function(library, "nvmlShutdown", &c->shutdown) &&
               find_function(library, "nvmlDeviceGetCount_v2", &c->count) &&
               find_function(library, "nvmlDeviceGetHandleByIndex_v2", &c->by_index) &&
               find_function(library, "nvmlDeviceGetPciInfo_v3", &c->pci) &&
               find_function(library, "nvmlDeviceGetMemoryInfo", &c->memory);
  (void)find_function(library, "nvmlDeviceGetMemoryInfo_v2", &c->memory_v2);
  if (!find_function(library, "nvmlDeviceGetComputeRunningProcesses_v3", &c->processes))
    (void)find_function(library, "nvmlDeviceGetComputeRunningProcesses_v2", &c->processes);
  return whole;
}

/* NVML writes eight digits of the domain, CUDA four. */
static void add_device(nvml_sampler *n, unsigned i)
{
  sampled_device *d = &n->device[n->devices];
  nvml_pci pci = {.domain = 0};
  if (n->call.by_index(i, &d->handle) != NVML_OK || n->call.pci(d->handle, &pci) != NVML_OK) return;
  (void)snprintf(d->bus, sizeof d->bus, "%04X:%02X:%02X.0", pci.domain, pci.bus, pci.device);
  d->last.total = WEIR_USAGE_UNKNOWN;
  n->devices++;
}

/* Opens NVML: tried once. */
static bool open_nvml(nvml_sampler *n)
{
  unsigned count = 0;
  void *library = dlopen("libnvidia-ml.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (!library) return false;
  if (!find_functions(library, &n->call) || n->call.init() != NVML_OK) {
    (void)dlclose(library);
    return false;
  }
  n->library = library;
  if (n->call.count(&count) != NVML_OK) return false;
  for (unsigned i = 0; i < count && i < DEVICES; i++)
    add_device(n, i);
  return n->devices > 0;
}

/* ---- samples --------------------------------------------------------------------------------- */

static bool ask_memory(const nvml_calls *c, nvml_device *d, importer_usage *u)
{
  nvml_memory_v2 two = {.version = (unsigned)sizeof two | 2u << 24};
  nvml_memory one = {.total = 0};
  if (c->memory_v2 && c->memory_v2(d, &two) == NVML_OK) {
    u->total = two.total, u->used = two.used, u->reserved = two.reserved;
    return true;
  }
  if (c->memory(d, &one) != NVML_OK) return false;
  u->total = one.total, u->used = one.used, u->reserved = WEIR_USAGE_UNKNOWN;
  return true;
}

/* Asks what processes have in use, where NVML knows that, and with our process ids: not in a
 * container of its own. */
static void ask_processes(const nvml_calls *c, sampled_device *d, importer_usage *u,
                          bool (*is_ours)(void *context, unsigned pid), void *context)
{
  nvml_process list[PROCESSES];
  unsigned count = PROCESSES;
  uint64_t ours = 0, others = 0;
  u->of_run = u->of_others = WEIR_USAGE_UNKNOWN;
  if (!c->processes || c->processes(d->handle, &count, list) != NVML_OK || count > PROCESSES)
    return;
  for (unsigned i = 0; i < count; i++) {
    if (list[i].used == UINT64_MAX) return;
    bool our = is_ours(context, list[i].pid);
    *(our ? &ours : &others) += list[i].used;
    if (our) d->met = true;
  }
  if (d->met) u->of_run = ours, u->of_others = others;
}

static bool is_same_usage(const importer_usage *a, const importer_usage *b)
{
  return a->total == b->total && a->used == b->used && a->reserved == b->reserved &&
         a->of_run == b->of_run && a->of_others == b->of_others;
}

weir_status nvml_sampler_ask(nvml_sampler *n, nvml_keeper keep, uint64_t now_ns, bool last,
                             bool (*is_ours)(void *context, unsigned pid), void *context)
{
  weir_status st = WEIR_OK;
  if (!n->library && (n->due_ns == UINT64_MAX || !open_nvml(n))) {
    n->due_ns = UINT64_MAX;
    return WEIR_OK;
  }
  if (!n->steady && n->samples++ == MOST) n->samples = MOST / 2, n->distance_ns *= 2;
  n->due_ns = now_ns + n->distance_ns;
  for (unsigned i = 0; i < n->devices && !st; i++) {
    sampled_device *d = &n->device[i];
    importer_usage u = {.bus = d->bus, .time = now_ns};
    if (!ask_memory(&n->call, d->handle, &u)) continue;
    ask_processes(&n->call, d, &u, is_ours, context);
    if (!last && is_same_usage(&u, &d->last)) continue;
    st = keep(context, &u);
    if (!st) d->last = u;
  }
  return st;
}
