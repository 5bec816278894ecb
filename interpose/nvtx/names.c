/* names.c: what a program gives names to: domains, strings, categories, threads, streams, events,
 * devices, resources.
 *
 * A domain or a string lives for ever in mapped memory of ours; its handle is the next tool's where
 * there is one, and found by that, or else its own address. Names go into the trace when they are
 * given. */
#include <string.h>
#include <sys/mman.h>
#include "core/base/clock.h"
#include "interpose/nvtx/nvtx.h"
#include "interpose/record/hash_table.h"

#define ARENA_BYTES ((size_t)64 << 10)

/* ---- texts that stay ------------------------------------------------------------------------- */

typedef struct text_arena {
  _Atomic size_t used; /* bytes, this head included; beyond ARENA_BYTES: full */
} text_arena;

static _Atomic(text_arena *) arena;
static _Atomic uint32_t texts; /* made so far */
static hash_table domains, strings;

static text_arena *next_arena(text_arena *full)
{
  void *m = mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (m == MAP_FAILED) return NULL;
  text_arena *fresh = m;
  atomic_store(&fresh->used, sizeof *fresh);
  if (atomic_compare_exchange_strong(&arena, &full, fresh)) return fresh;
  munmap(m, ARENA_BYTES); /* another thread was quicker */
  return full;
}

static nvtx_text *new_text(const nvtx_message *message)
{
  char text[NVTX_MOST_TEXT];
  size_t bytes = nvtx_utf8(text, message);
  size_t room = (sizeof(nvtx_text) + bytes + 15) & ~(size_t)15;
  text_arena *a = atomic_load(&arena);
  for (;;) {
    size_t at = a ? atomic_fetch_add(&a->used, room) : ARENA_BYTES;
    if (a && at + room <= ARENA_BYTES) {
      nvtx_text *t = (nvtx_text *)(void *)((char *)a + at);
      t->number = atomic_fetch_add(&texts, 1) + 1;
      t->bytes = (uint32_t)bytes;
      memcpy(t->text, text, bytes);
      return t;
    }
    a = next_arena(a);
    if (!a) return NULL;
  }
}

/* The handle of a new text: the next tool's, or ours. */
static void *handle_of(hash_table *of, const nvtx_message *message, void *next)
{
  bool ours = !atomic_load_explicit(&nvtx_next_is_there, memory_order_relaxed);
  nvtx_text *t = next || ours ? new_text(message) : NULL;
  if (!t) return next;
  uint64_t handle = (uint64_t)(uintptr_t)(next ? next : t);
  hash_table_put(of, handle, (uint64_t)(uintptr_t)t, 1);
  return next ? next : t;
}

static const nvtx_text *name_text(hash_table *of, const void *handle)
{
  const hash_entry *e = handle ? hash_table_find(of, (uint64_t)(uintptr_t)handle) : NULL;
  return e ? (const nvtx_text *)(uintptr_t)atomic_load_explicit(&e->x, memory_order_acquire) : NULL;
}

const nvtx_text *nvtx_domain_of(nvtxDomainHandle_t handle)
{
  return name_text(&domains, handle);
}

const nvtx_text *nvtx_string_of(nvtxStringHandle_t handle)
{
  return name_text(&strings, handle);
}

/* ---- names in the trace ---------------------------------------------------------------------- */

void nvtx_write_name(unsigned kind, uint64_t handle, uint64_t bytes_named, const nvtx_text *domain,
                     const nvtx_message *message)
{
  char text[2 * NVTX_MOST_TEXT + 1];
  size_t bytes = 0;
  thread_state *t = &thread_self;
  if (!nvtx_record_begin(t)) return;
  if (kind == WEIR_NAME_CATEGORY) {
    if (domain) memcpy(text, domain->text, bytes = domain->bytes);
    text[bytes++] = '\0';
  }
  bytes += nvtx_utf8(text + bytes, message);
  trace_event head = {.start = clock_ticks(), .a = handle, .b = kind, .stream = bytes_named};
  spool_writer_extended(&t->writer, WEIR_EV_NAME, &head, text, bytes);
  nvtx_record_end(t);
}

/* ---- NVTX's functions ------------------------------------------------------------------------ */

enum {
  CATEGORY_A,
  CATEGORY_W,
  THREAD_A,
  THREAD_W,
  DOMAIN_CATEGORY_A,
  DOMAIN_CATEGORY_W,
  REGISTER_A,
  REGISTER_W,
  CREATE_A,
  CREATE_W,
  DESTROY,
  CU_DEVICE_A,
  CU_DEVICE_W,
  CU_STREAM_A,
  CU_STREAM_W,
  CU_EVENT_A,
  CU_EVENT_W,
  RT_DEVICE_A,
  RT_DEVICE_W,
  RT_STREAM_A,
  RT_STREAM_W,
  RT_EVENT_A,
  RT_EVENT_W,
  RESOURCE
};

#define NAME(f, index, kind, type, character, make)                                                \
  static void NVTX_API f(type handle, const character *name)                                       \
  {                                                                                                \
    void(NVTX_API * next)(type, const character *) =                                               \
        NVTX_NEXT(nvtx_name_hooks[index], void(NVTX_API *)(type, const character *));              \
    const nvtx_message m = make(name);                                                             \
    nvtx_write_name(kind, (uint64_t)handle, 0, NULL, &m);                                          \
    if (next) next(handle, name);                                                                  \
  }
#define BOTH(f, index, kind, type)                                                                 \
  NAME(f##_a, index, kind, type, char, nvtx_ascii)                                                 \
  NAME(f##_w, (index) + 1, kind, type, wchar_t, nvtx_unicode)

BOTH(category, CATEGORY_A, WEIR_NAME_CATEGORY, uint32_t)
BOTH(thread, THREAD_A, WEIR_NAME_OS_THREAD, uint32_t)
BOTH(cu_device, CU_DEVICE_A, WEIR_NAME_CU_DEVICE, nvtx_CUdevice)
BOTH(cu_stream, CU_STREAM_A, WEIR_NAME_STREAM, uintptr_t)
BOTH(cu_event, CU_EVENT_A, WEIR_NAME_EVENT, uintptr_t)
BOTH(rt_device, RT_DEVICE_A, WEIR_NAME_CU_DEVICE, int)
BOTH(rt_stream, RT_STREAM_A, WEIR_NAME_STREAM, uintptr_t)
BOTH(rt_event, RT_EVENT_A, WEIR_NAME_EVENT, uintptr_t)

#define IN_DOMAIN(suffix, letter, character, make)                                                 \
  static void NVTX_API domain_category_##suffix(nvtxDomainHandle_t domain, uint32_t category,      \
                                                const character *name)                             \
  {                                                                                                \
    nvtxDomainNameCategory##letter##_impl_fntype next = NVTX_NEXT(                                 \
        nvtx_name_hooks[DOMAIN_CATEGORY_##letter], nvtxDomainNameCategory##letter##_impl_fntype);  \
    const nvtx_message m = make(name);                                                             \
    nvtx_write_name(WEIR_NAME_CATEGORY, category, 0, nvtx_domain_of(domain), &m);                  \
    if (next) next(domain, category, name);                                                        \
  }                                                                                                \
  static nvtxStringHandle_t NVTX_API register_##suffix(nvtxDomainHandle_t domain,                  \
                                                       const character *text)                      \
  {                                                                                                \
    nvtxDomainRegisterString##letter##_impl_fntype next = NVTX_NEXT(                               \
        nvtx_name_hooks[REGISTER_##letter], nvtxDomainRegisterString##letter##_impl_fntype);       \
    const nvtx_message m = make(text);                                                             \
    return handle_of(&strings, &m, next ? next(domain, text) : NULL);                              \
  }                                                                                                \
  static nvtxDomainHandle_t NVTX_API create_##suffix(const character *name)                        \
  {                                                                                                \
    nvtxDomainCreate##letter##_impl_fntype next =                                                  \
        NVTX_NEXT(nvtx_name_hooks[CREATE_##letter], nvtxDomainCreate##letter##_impl_fntype);       \
    const nvtx_message m = make(name);                                                             \
    return handle_of(&domains, &m, next ? next(name) : NULL);                                      \
  }
IN_DOMAIN(a, A, char, nvtx_ascii)
IN_DOMAIN(w, W, wchar_t, nvtx_unicode)

static void NVTX_API destroy_domain(nvtxDomainHandle_t domain)
{
  nvtxDomainDestroy_impl_fntype next =
      NVTX_NEXT(nvtx_name_hooks[DESTROY], nvtxDomainDestroy_impl_fntype);
  if (!next) return;
  next(domain);
  atomic_fetch_add(&nvtx_handles_age, 1);
}

/* What nvtxDomainResourceCreate gives a name to, by its class and number (nvToolsExtCuda.h and
 * nvToolsExtCudaRt.h number CUDA's). */
static unsigned resource_kind(int32_t type)
{
  switch (type) {
  case NVTX_RESOURCE_TYPE_GENERIC_THREAD_NATIVE:
    return WEIR_NAME_OS_THREAD;
  case NVTX_RESOURCE_TYPE_CUDA_DEVICE:
  case NVTX_RESOURCE_TYPE_CUDART_DEVICE:
    return WEIR_NAME_CU_DEVICE;
  case NVTX_RESOURCE_TYPE_CUDA_CONTEXT:
    return WEIR_NAME_CONTEXT;
  case NVTX_RESOURCE_TYPE_CUDA_STREAM:
  case NVTX_RESOURCE_TYPE_CUDART_STREAM:
    return WEIR_NAME_STREAM;
  case NVTX_RESOURCE_TYPE_CUDA_EVENT:
  case NVTX_RESOURCE_TYPE_CUDART_EVENT:
    return WEIR_NAME_EVENT;
  default:
    return WEIR_NAME_RESOURCE;
  }
}

static nvtxResourceHandle_t NVTX_API resource(nvtxDomainHandle_t domain,
                                              nvtxResourceAttributes_t *a)
{
  nvtxDomainResourceCreate_impl_fntype next =
      NVTX_NEXT(nvtx_name_hooks[RESOURCE], nvtxDomainResourceCreate_impl_fntype);
  if (a && a->size >= offsetof(nvtxResourceAttributes_t, message) + sizeof(a->message) &&
      a->messageType != NVTX_MESSAGE_UNKNOWN) {
    const nvtx_message m = {a->messageType, a->message};
    nvtx_write_name(resource_kind(a->identifierType), a->identifier.ullValue, 0, NULL, &m);
  }
  return next ? next(domain, a) : NULL;
}

#define ROW(place, which, id_, f)                                                                  \
  [place] = {.module = NVTX_CB_MODULE_##which,                                                     \
             .id = NVTX_CBID_##which##_##id_,                                                      \
             .function = (NvtxFunctionPointer)(f)}
nvtx_hook nvtx_name_hooks[] = {
    ROW(CATEGORY_A, CORE, NameCategoryA, category_a),
    ROW(CATEGORY_W, CORE, NameCategoryW, category_w),
    ROW(THREAD_A, CORE, NameOsThreadA, thread_a),
    ROW(THREAD_W, CORE, NameOsThreadW, thread_w),
    ROW(DOMAIN_CATEGORY_A, CORE2, DomainNameCategoryA, domain_category_a),
    ROW(DOMAIN_CATEGORY_W, CORE2, DomainNameCategoryW, domain_category_w),
    ROW(REGISTER_A, CORE2, DomainRegisterStringA, register_a),
    ROW(REGISTER_W, CORE2, DomainRegisterStringW, register_w),
    ROW(CREATE_A, CORE2, DomainCreateA, create_a),
    ROW(CREATE_W, CORE2, DomainCreateW, create_w),
    ROW(DESTROY, CORE2, DomainDestroy, destroy_domain),
    ROW(CU_DEVICE_A, CUDA, NameCuDeviceA, cu_device_a),
    ROW(CU_DEVICE_W, CUDA, NameCuDeviceW, cu_device_w),
    ROW(CU_STREAM_A, CUDA, NameCuStreamA, cu_stream_a),
    ROW(CU_STREAM_W, CUDA, NameCuStreamW, cu_stream_w),
    ROW(CU_EVENT_A, CUDA, NameCuEventA, cu_event_a),
    ROW(CU_EVENT_W, CUDA, NameCuEventW, cu_event_w),
    ROW(RT_DEVICE_A, CUDART, NameCudaDeviceA, rt_device_a),
    ROW(RT_DEVICE_W, CUDART, NameCudaDeviceW, rt_device_w),
    ROW(RT_STREAM_A, CUDART, NameCudaStreamA, rt_stream_a),
    ROW(RT_STREAM_W, CUDART, NameCudaStreamW, rt_stream_w),
    ROW(RT_EVENT_A, CUDART, NameCudaEventA, rt_event_a),
    ROW(RT_EVENT_W, CUDART, NameCudaEventW, rt_event_w),
    ROW(RESOURCE, CORE2, DomainResourceCreate, resource),
    {0}};
