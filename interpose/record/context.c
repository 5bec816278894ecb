/* context.c: see context.h. The table of contexts is claimed slot by slot with compare-and-swap. */
#include "interpose/record/context.h"

#include <string.h>
#include "interpose/record/subscriber.h"
#include "interpose/record/work.h"
#include "interpose/elf/elf.h"
#include "interpose/process/part.h"

enum { CONTEXTS = 254, OTHERS = 255 };

/* Of a context that was met, by number - 1: its handle below, its device's ordinal in the eight
 * bits above, which no address has, and below those whether the program made it; 0: free. One word,
 * so that no thread finds a context with the device of another that had the number before. */
typedef uint64_t known_context;
#define OWN_BIT     (UINT64_C(1) << 55)
#define HANDLE_BITS (OWN_BIT - 1)

static _Atomic known_context contexts[CONTEXTS];
static _Atomic uint32_t named[256]; /* by device: process epoch its NAME was written in */
static _Atomic uint32_t devices;    /* seen: 0, 1, 2 or more */
_Atomic uint32_t context_age = 1;
_Atomic(void *) driver_helpers[WEIR_HELPER_COUNT];
_Atomic bool driver_ready;

void driver_initialised(uint32_t status)
{
  if (!status) atomic_store_explicit(&driver_ready, true, memory_order_release);
}

static const char *const helper_names[] = {
#define WEIR_HELPER_NAME(symbol, type) #symbol,
    WEIR_HELPERS(WEIR_HELPER_NAME)
#undef WEIR_HELPER_NAME
};

#define IN_VAIN ((void *)1)

void *driver_helper_find(enum driver_helper which)
{
  void *p = atomic_load_explicit(&driver_helpers[which], memory_order_acquire);
  if (p == IN_VAIN || !atomic_load_explicit(&driver_ready, memory_order_acquire)) return NULL;
  if (!p) p = elf_symbol(cuda_library_soname(WEIR_BANK_DRIVER), helper_names[which]);
  atomic_store_explicit(&driver_helpers[which], p ? p : IN_VAIN, memory_order_release);
  return p;
}

void driver_helpers_retry(void)
{
  for (int i = 0; i < WEIR_HELPER_COUNT; i++) {
    void *in_vain = IN_VAIN;
    atomic_compare_exchange_strong(&driver_helpers[i], &in_vain, NULL);
  }
}

void driver_helpers_forget(void)
{
  for (int i = 0; i < WEIR_HELPER_COUNT; i++)
    atomic_store_explicit(&driver_helpers[i], NULL, memory_order_release);
  atomic_fetch_add(&context_age, 1);
}

static known_context known_at(int i)
{
  return atomic_load_explicit(&contexts[i], memory_order_acquire);
}

/* The first place of the context from place `i` on; -1: none. */
static int find_from(int i, uint64_t context)
{
  for (; context && i < CONTEXTS; i++)
    if ((known_at(i) & HANDLE_BITS) == context) return i;
  return -1;
}

unsigned context_number(uint64_t context)
{
  return (unsigned)(find_from(0, context) + 1);
}

uint64_t context_handle(unsigned number)
{
  if (!number || number > CONTEXTS) return 0;
  return known_at((int)number - 1) & HANDLE_BITS;
}

unsigned context_device(uint64_t context)
{
  for (int i = 0; context && i < CONTEXTS; i++) {
    known_context k = known_at(i);
    if ((k & HANDLE_BITS) == context) return (unsigned)(k >> 56);
  }
  return WEIR_DEVICE_NONE;
}

static void forget_at(int i)
{
  work_forget_context((unsigned)i + 1);
  record_subscriber_now()->context_gone((unsigned)i + 1);
  atomic_store_explicit(&contexts[i], 0, memory_order_release);
}

void context_forget(uint64_t context)
{
  for (int i = find_from(0, context); i >= 0; i = find_from(i + 1, context))
    forget_at(i);
  atomic_fetch_add(&context_age, 1);
}

void context_set_own(uint64_t context)
{
  for (int i = find_from(0, context); i >= 0; i = find_from(i + 1, context))
    atomic_fetch_or_explicit(&contexts[i], OWN_BIT, memory_order_acq_rel);
}

/* The next place from `i` on of a context that goes with its device; -1: none. */
static int find_primary_from(int i, unsigned device)
{
  for (; i < CONTEXTS; i++) {
    known_context k = known_at(i);
    if (k && k >> 56 == device && !(k & OWN_BIT)) return i;
  }
  return -1;
}

unsigned context_primary(unsigned device)
{
  int i = find_primary_from(0, device);
  return i >= 0 && find_primary_from(i + 1, device) < 0 ? (unsigned)i + 1 : 0;
}

void context_forget_device(unsigned device)
{
  for (int i = find_primary_from(0, device); i >= 0; i = find_primary_from(i + 1, device))
    forget_at(i);
  atomic_fetch_add(&context_age, 1);
}

/* The number of a context, given now if it has none. Of two threads that meet it at once the second
 * finds the place that the first has just taken; where a lower one came free meanwhile it may take
 * that, which is the one found from then on. */
static unsigned number_context(uint64_t context, unsigned device)
{
  unsigned n = context_number(context);
  if (n || context & ~HANDLE_BITS) return n ? n : OTHERS;
  const known_context mine = context | (uint64_t)device << 56;
  for (int i = 0; i < CONTEXTS; i++) {
    known_context there = 0;
    if (atomic_compare_exchange_strong(&contexts[i], &there, mine) ||
        (there & HANDLE_BITS) == context)
      return context_number(context);
  }
  return OTHERS;
}

bool context_any(void)
{
  for (int i = 0; i < CONTEXTS; i++)
    if (atomic_load_explicit(&contexts[i], memory_order_relaxed)) return true;
  return false;
}

bool context_many_devices(void)
{
  return atomic_load_explicit(&devices, memory_order_relaxed) > 1;
}

static void name_kind_of_device(thread_state *t, unsigned device, name_kind kind, const char *name,
                                uint64_t bytes)
{
  trace_event head = {.start = clock_ticks(), .a = device, .b = kind, .stream = bytes};
  head.device = (uint8_t)device;
  spool_writer_extended(&t->writer, WEIR_EV_NAME, &head, name, strlen(name));
}

/* Whatever of the machine's it is: the same device has other ordinals in other programs. */
static void name_bus(thread_state *t, unsigned device)
{
  PFN_cuDeviceGetPCIBusId_v4010 ask = WEIR_HELPER(cuDeviceGetPCIBusId);
  char bus[32] = "";
  if (ask && ask(bus, sizeof bus - 1, (CUdevice)device) == CUDA_SUCCESS)
    name_kind_of_device(t, device, WEIR_NAME_DEVICE_BUS, bus, 0);
}

/* Once a device and spool: its product name, and in `stream` its memory in bytes; its bus. */
static void name_device(thread_state *t, unsigned device)
{
  uint32_t epoch = atomic_load_explicit(&process_epoch, memory_order_relaxed);
  uint32_t seen = atomic_load_explicit(&named[device], memory_order_relaxed);
  if (seen == epoch || !atomic_compare_exchange_strong(&named[device], &seen, epoch)) return;
  if (!seen) atomic_fetch_add_explicit(&devices, 1, memory_order_relaxed);
  PFN_cuDeviceGetName_v2000 ask = WEIR_HELPER(cuDeviceGetName);
  PFN_cuDeviceTotalMem_v3020 total = WEIR_HELPER(cuDeviceTotalMem_v2);
  char name[256] = "";
  size_t bytes = 0;
  if (!ask || ask(name, sizeof name - 1, (CUdevice)device) != CUDA_SUCCESS) return;
  if (!total || total(&bytes, (CUdevice)device) != CUDA_SUCCESS) bytes = 0;
  name_kind_of_device(t, device, WEIR_NAME_DEVICE, name, bytes);
  name_bus(t, device);
}

void context_add(thread_state *t, CUcontext context)
{
  t->context_age = atomic_load_explicit(&context_age, memory_order_relaxed);
  t->last_context = (uint64_t)(uintptr_t)context;
  t->last_context_number = 0;
  t->last_device = WEIR_DEVICE_NONE;
  PFN_cuCtxGetDevice_v2000 ask = WEIR_HELPER(cuCtxGetDevice);
  CUdevice device = -1;
  if (!context || !ask || ask(&device) != CUDA_SUCCESS) return;
  if (device >= 0 && device < (CUdevice)WEIR_DEVICE_NONE) t->last_device = (uint8_t)device;
  bool known = context_number(t->last_context) != 0;
  t->last_context_number = (uint8_t)number_context(t->last_context, t->last_device);
  if (t->last_device != WEIR_DEVICE_NONE) name_device(t, t->last_device);
  if (!known) process_parts_context();
}
