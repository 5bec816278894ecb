/* names.c: see names.h.
 *
 * Two tables. stubs: host stub -> the name nvcc registered it with, a static string of the program
 * that outlives its use. handles: kernel handle -> what was written for it: the epoch of the spool
 * in the low half of a word, a hash of the name in the high half, so that a handle given out again
 * for another kernel is named again. */
#include "interpose/record/names.h"

#include <string.h>
#include "interpose/record/access.h"
#include "interpose/record/context.h"
#include "interpose/record/extract.h"
#include "interpose/record/hash_table.h"

static hash_table stubs, handles;
_Atomic uint64_t kernel_named[WEIR_NAMED_SLOTS];

static uint32_t hash_name(const char *name)
{
  uint32_t h = 2166136261u;
  for (; *name; name++)
    h = (h ^ (unsigned char)*name) * 16777619u;
  return h;
}

static uint32_t epoch_now(void)
{
  return atomic_load_explicit(&process_epoch, memory_order_relaxed);
}

/* A host stub was registered as the kernel `name` (static string of the program). */
static void kernel_name_stub(uint64_t stub, const char *name)
{
  hash_table_put(&stubs, stub, (uint64_t)(uintptr_t)name, 0);
  access_met(stub, WEIR_HANDLE_STUB);
}

static const char *stub_name(uint64_t stub)
{
  const hash_entry *e = hash_table_find(&stubs, stub);
  return e ? (const char *)(uintptr_t)atomic_load_explicit(&e->x, memory_order_acquire) : NULL;
}

/* handles' x: the stub it stands for, or 0; y: hash << 32 | epoch its NAME was written in. */
static void kernel_name_like_stub(uint64_t handle, uint64_t stub)
{
  hash_table_put(&handles, handle, stub, 0);
  atomic_store_explicit(&kernel_named[kernel_named_slot(handle)], 0, memory_order_relaxed);
}

static void write_kernel_name(hook_call *c, uint64_t handle, const char *name)
{
  trace_event head = {.start = clock_ticks(), .a = handle, .b = WEIR_NAME_KERNEL};
  size_t bytes = strnlen(name, 4096);
  spool_writer_extended(&c->thread->writer, WEIR_EV_NAME, &head, name, bytes);
}

void kernel_name_set(hook_call *c, uint64_t handle, const char *name)
{
  if (!handle || !name) return;
  uint64_t y = (uint64_t)hash_name(name) << 32 | epoch_now();
  const hash_entry *e = hash_table_find(&handles, handle);
  if (e && atomic_load_explicit(&e->y, memory_order_acquire) == y) return;
  hash_table_put(&handles, handle, 0, y);
  write_kernel_name(c, handle, name);
}

/* What the driver calls its function, or NULL. The runtime is never asked: a question that fails
 * leaves an error for the program's cudaGetLastError(). */
static const char *query_function_name(const hook_call *c, uint64_t handle)
{
  const char *name = NULL;
  PFN_cuFuncGetName_v12030 ask = WEIR_HELPER(cuFuncGetName);
  if (c->flags & WEIR_EVF_RUNTIME || !ask) return NULL;
  return ask(&name, (CUfunction)(uintptr_t)handle) == CUDA_SUCCESS ? name : NULL;
}

void kernel_name_launch_slow(hook_call *c, uint64_t handle, uint64_t mixed)
{
  if (!handle) return;
  const hash_entry *e = hash_table_find(&handles, handle);
  uint64_t y = e ? atomic_load_explicit(&e->y, memory_order_acquire) : 0;
  if ((uint32_t)y != epoch_now()) {
    uint64_t stub = e ? atomic_load_explicit(&e->x, memory_order_relaxed) : 0;
    const char *name = stub_name(stub ? stub : handle);
    if (!name && c->status == 0) name = query_function_name(c, handle);
    if (!name && c->status != 0) return; /* no kernel, perhaps: asked again when it works */
    y = (uint64_t)(name ? hash_name(name) : 0) << 32 | epoch_now();
    hash_table_put(&handles, handle, stub, y);
    if (name) write_kernel_name(c, handle, name);
  }
  atomic_store_explicit(&kernel_named[kernel_named_slot(handle)], mixed, memory_order_relaxed);
}

void kernel_name_of_kernel(hook_call *c, uint64_t handle, uint64_t kernel)
{
  PFN_cuKernelGetName_v12030 ask = WEIR_HELPER(cuKernelGetName);
  const char *name = NULL;
  if (handle && ask && ask(&name, (CUkernel)(uintptr_t)kernel) == CUDA_SUCCESS)
    kernel_name_set(c, handle, name);
}

void handle___cudaRegisterFunction(int bank, bool per_thread,
                                   void (*real)(void **, const char *, char *, const char *, int,
                                                uint3 *, uint3 *, dim3 *, dim3 *, int *),
                                   void **module, const char *stub, char *symbol, const char *name,
                                   int threads, uint3 *tid, uint3 *bid, dim3 *block, dim3 *grid,
                                   int *warp)
{
  (void)bank, (void)per_thread;
  kernel_name_stub((uint64_t)(uintptr_t)stub, name);
  real(module, stub, symbol, name, threads, tid, bid, block, grid, warp);
}

/* What these do beneath (load a module, make a context) is part of no event: they are asked once a
 * kernel, before its first launch. */
#define WEIR_GET_KERNEL(symbol, type, what)                                                        \
  cudaError_t handle_##symbol(int bank, bool per_thread,                                           \
                              cudaError_t (*real)(type *, const void *), type *handle,             \
                              const void *stub)                                                    \
  {                                                                                                \
    (void)bank, (void)per_thread;                                                                  \
    if (!thread_self.depth++) thread_self.outermost = (uintptr_t)__builtin_frame_address(0);       \
    cudaError_t r = real(handle, stub);                                                            \
    thread_self.depth--;                                                                           \
    if (r == cudaSuccess && handle) {                                                              \
      access_met((uint64_t)(uintptr_t)*handle, what);                                              \
      kernel_name_like_stub((uint64_t)(uintptr_t)*handle, (uint64_t)(uintptr_t)stub);              \
    }                                                                                              \
    return r;                                                                                      \
  }
WEIR_GET_KERNEL(__cudaGetKernel, cudaKernel_t, WEIR_HANDLE_KERNEL)
WEIR_GET_KERNEL(cudaGetKernel, cudaKernel_t, WEIR_HANDLE_KERNEL)
WEIR_GET_KERNEL(cudaGetFuncBySymbol, cudaFunction_t, WEIR_HANDLE_FUNCTION)
