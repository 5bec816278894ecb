/* register.c: kernels and variables: from a program's host symbols to the driver's handles.
 *
 * nvcc's code registers each binary (an image with all kernels and variables of a source file) and
 * the host symbols that stand for them before main(). Nothing reaches the driver then: a binary is
 * loaded, as a context-independent library, when the first of its symbols is used.
 *
 * The software device reads the variables of an image where it can (machine code, not compressed).
 * What it does not find is defined there, as zeros, by weir_sim_define_global(), which other
 * drivers do not have and do not need.
 *
 * Invariant: everything here is guarded by `lock`; entries leave only with their binary.
 * Words: stub: the host function that nvcc makes for a kernel and that launches it. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "cuda/sim/runtime/register.h"

/* What the section .nvFatBinSegment holds: one for each binary (the Toolkit's fatbinary_section.h).
 */
struct wrapper {
  int magic, version;
  const void *image;
  void *more; /* names of parts to link, unused */
};

struct binary {
  const struct wrapper *wrapper; /* of the program; NULL: not a binary but loose handles */
  CUlibrary library;             /* once loaded */
  bool loaded;
  cudaError_t error; /* of loading; tried once */
};

enum kind { KERNEL, VARIABLE, MANAGED };

struct entry {
  struct entry *next;    /* in its bucket */
  const void *key;       /* host symbol, or kernel handle given out */
  struct binary *binary; /* NULL: a bare handle */
  enum kind kind;
  const char *name;    /* in the image; borrowed from the program */
  CUkernel kernel;     /* KERNEL: once asked for */
  size_t bytes;        /* VARIABLE, MANAGED */
  void **host;         /* MANAGED: where the program expects the address */
  CUdeviceptr address; /* MANAGED: once placed */
  unsigned resets;     /* MANAGED: rt_resets when it was: a reset takes it away */
};

enum { BUCKETS = 1024 };
static struct entry *table[BUCKETS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct entry **bucket(const void *key)
{
  return &table[((uintptr_t)key * UINT64_C(0x9e3779b97f4a7c15)) >> 54];
}

static struct entry *find_entry(const void *key)
{
  struct entry *e = *bucket(key);
  while (e && e->key != key)
    e = e->next;
  return e;
}

/* Adds or replaces; the caller holds the lock. NULL: no memory. */
static struct entry *add_symbol(const void *key, struct binary *binary, enum kind kind,
                                const char *name)
{
  struct entry *e = find_entry(key);
  if (!e) {
    e = calloc(1, sizeof *e);
    if (!e) return NULL;
    e->next = *bucket(key);
    *bucket(key) = e;
  }
  e->key = key;
  e->binary = binary;
  e->kind = kind;
  e->name = name;
  return e;
}

/* ---- loading --------------------------------------------------------------------------------- */

static cudaError_t load_binary(struct binary *b)
{
  if (b->loaded) return b->error;
  b->error = rt_result(
      rt_drv->LibraryLoadData(&b->library, b->wrapper->image, NULL, NULL, 0, NULL, NULL, 0));
  b->loaded = true;
  return b->error;
}

typedef int define_global(void *module, const char *name, size_t bytes, const void *initial);

/* A variable that the driver does not find: the software device has to be notified of it. */
static CUresult define_variable(const struct entry *e)
{
  define_global *define = NULL;
  void *p = rt_driver_symbol("weir_sim_define_global");
  if (!p) return CUDA_ERROR_NOT_FOUND;
  memcpy(&define, &p, sizeof define);
  return (CUresult)define(e->binary->library, e->name, e->bytes, NULL);
}

static cudaError_t find_variable(const struct entry *e, CUdeviceptr *address, size_t *bytes)
{
  cudaError_t error = load_binary(e->binary);
  if (error) return error;
  CUresult r = rt_drv->LibraryGetGlobal(address, bytes, e->binary->library, e->name);
  if (r == CUDA_ERROR_NOT_FOUND && (r = define_variable(e)) == CUDA_SUCCESS)
    r = rt_drv->LibraryGetGlobal(address, bytes, e->binary->library, e->name);
  return r == CUDA_ERROR_NOT_FOUND ? cudaErrorInvalidSymbol : rt_result(r);
}

/* A managed variable lives in the image where the driver reads it, and in an allocation of ours
 * where it does not. Its host symbol is a pointer to it, and what a program passes as its symbol is
 * the variable itself: hence the second entry. */
static cudaError_t place_managed(struct entry *e)
{
  unsigned resets = atomic_load(&rt_resets);
  CUdeviceptr address;
  size_t bytes;
  if (e->address && e->resets == resets) return cudaSuccess;
  cudaError_t error = load_binary(e->binary);
  if (error) return error;
  bool reads = !rt_driver_symbol("weir_sim_define_global"); /* the software device does not */
  if (!reads ||
      rt_drv->LibraryGetManaged(&address, &bytes, e->binary->library, e->name) != CUDA_SUCCESS)
    error = rt_result(rt_drv->MemAllocManaged(&address, e->bytes, CU_MEM_ATTACH_GLOBAL));
  if (error) return error;
  struct entry *itself = add_symbol((void *)(uintptr_t)address, e->binary, MANAGED, e->name);
  if (!itself) return cudaErrorMemoryAllocation;
  *e->host = (void *)(uintptr_t)address;
  itself->bytes = e->bytes;
  itself->host = e->host;
  itself->address = e->address = address;
  itself->resets = e->resets = resets;
  return cudaSuccess;
}

static cudaError_t kernel_of(struct entry *e, CUkernel *kernel)
{
  cudaError_t error = cudaSuccess;
  if (!e || e->kind != KERNEL) return cudaErrorInvalidDeviceFunction;
  if (!e->kernel) {
    error = load_binary(e->binary);
    if (!error)
      error = rt_result(rt_drv->LibraryGetKernel(&e->kernel, e->binary->library, e->name));
    if (error == cudaErrorSymbolNotFound) error = cudaErrorInvalidDeviceFunction;
    if (error) e->kernel = NULL;
  }
  *kernel = e->kernel;
  return error;
}

/* Makes a kernel handle the driver returned known to rt_kernel(). */
static cudaError_t rt_kernel_add(CUkernel kernel)
{
  pthread_mutex_lock(&lock);
  struct entry *e = find_entry(kernel);
  if (!e) e = add_symbol(kernel, NULL, KERNEL, NULL);
  if (e) e->kernel = kernel;
  pthread_mutex_unlock(&lock);
  return e ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t rt_kernel(const void *function, CUkernel *kernel)
{
  pthread_mutex_lock(&lock);
  cudaError_t e = kernel_of(find_entry(function), kernel);
  pthread_mutex_unlock(&lock);
  return e;
}

void *rt_stub_of(CUkernel kernel)
{
  void *stub = kernel;
  pthread_mutex_lock(&lock);
  for (size_t i = 0; i < BUCKETS && kernel; i++)
    for (struct entry *e = table[i]; e; e = e->next)
      if (e->kind == KERNEL && e->kernel == kernel && e->binary) stub = (void *)(uintptr_t)e->key;
  pthread_mutex_unlock(&lock);
  return stub;
}

cudaError_t rt_symbol(const void *symbol, CUdeviceptr *address, size_t *bytes)
{
  pthread_mutex_lock(&lock);
  cudaError_t error = cudaErrorInvalidSymbol;
  struct entry *e = find_entry(symbol);
  if (e && e->kind == MANAGED && !(error = place_managed(e))) {
    *address = e->address;
    *bytes = e->bytes;
  } else if (e && e->kind == VARIABLE) {
    error = find_variable(e, address, bytes);
  }
  pthread_mutex_unlock(&lock);
  return error;
}

/* ---- what nvcc's code calls ------------------------------------------------------------------ */

void **__cudaRegisterFatBinary(void *wrapper)
{
  struct binary *b = calloc(1, sizeof *b);
  if (b) b->wrapper = wrapper;
  return (void **)b;
}

/* Every symbol of the binary is registered; nothing has to happen before one is used. */
void __cudaRegisterFatBinaryEnd(void **handle)
{
  (void)handle;
}

void __cudaUnregisterFatBinary(void **handle)
{
  struct binary *b = (struct binary *)handle;
  if (!b) return;
  pthread_mutex_lock(&lock);
  for (size_t i = 0; i < BUCKETS; i++)
    for (struct entry **p = &table[i], *e; (e = *p);) {
      if (e->binary == b) {
        *p = e->next;
        free(e);
      } else {
        p = &e->next;
      }
    }
  /* At exit the driver may be gone already; its error then means nothing. */
  if (b->loaded && !b->error) rt_drv->LibraryUnload(b->library);
  pthread_mutex_unlock(&lock);
  free(b);
}

void __cudaRegisterFunction(void **handle, const char *stub, char *device_name, const char *name,
                            int thread_limit, void *thread, void *block, void *block_dim,
                            void *grid_dim, int *warp)
{
  (void)device_name, (void)thread_limit, (void)thread, (void)block, (void)block_dim, (void)grid_dim;
  (void)warp;
  if (!handle) return;
  pthread_mutex_lock(&lock);
  add_symbol(stub, (struct binary *)handle, KERNEL,
             name); /* without memory: an unknown function later */
  pthread_mutex_unlock(&lock);
}

void __cudaRegisterVar(void **handle, char *host, char *device_name, const char *name, int external,
                       size_t bytes, int constant, int global)
{
  (void)device_name, (void)external, (void)constant, (void)global;
  if (!handle) return;
  pthread_mutex_lock(&lock);
  struct entry *e = add_symbol(host, (struct binary *)handle, VARIABLE, name);
  if (e) e->bytes = bytes;
  pthread_mutex_unlock(&lock);
}

void __cudaRegisterManagedVar(void **handle, void **host, char *device_name, const char *name,
                              int external, size_t bytes, int constant, int global)
{
  (void)device_name, (void)external, (void)constant, (void)global;
  if (!handle) return;
  pthread_mutex_lock(&lock);
  struct entry *e = add_symbol(host, (struct binary *)handle, MANAGED, name);
  if (e) {
    e->bytes = bytes;
    e->host = host;
  }
  pthread_mutex_unlock(&lock);
}

/* Called before the first use of a managed variable; nonzero: its address is there. */
char __cudaInitModule(void **handle)
{
  cudaError_t error = rt_context();
  pthread_mutex_lock(&lock);
  for (size_t i = 0; !error && i < BUCKETS; i++)
    for (struct entry *e = table[i]; !error && e; e = e->next)
      if (e->binary == (struct binary *)handle && e->kind == MANAGED) error = place_managed(e);
  pthread_mutex_unlock(&lock);
  return rt_note(error) == cudaSuccess;
}

/* ---- kernels and variables by name or symbol ------------------------------------------------- */

static cudaError_t get_kernel(cudaKernel_t *out, const void *stub)
{
  CUkernel kernel;
  if (!out) return cudaErrorInvalidValue;
  cudaError_t e = rt_kernel(stub, &kernel);
  if (!e) e = rt_kernel_add(kernel);
  if (!e) *out = (cudaKernel_t)kernel;
  return e;
}

static cudaError_t get_function(cudaFunction_t *out, const void *stub)
{
  CUkernel kernel;
  if (!out) return cudaErrorInvalidValue;
  cudaError_t e = rt_kernel(stub, &kernel);
  return e ? e : rt_result(rt_drv->KernelGetFunction((CUfunction *)out, kernel));
}

static cudaError_t symbol_address(void **out, const void *symbol)
{
  CUdeviceptr address;
  size_t bytes;
  if (!out) return cudaErrorInvalidValue;
  cudaError_t e = rt_symbol(symbol, &address, &bytes);
  if (!e) *out = (void *)(uintptr_t)address;
  return e;
}

static cudaError_t symbol_size(size_t *out, const void *symbol)
{
  CUdeviceptr address;
  return out ? rt_symbol(symbol, &address, out) : cudaErrorInvalidValue;
}

RT_BODY_OF(__cudaGetKernel, (cudaKernel_t * out, const void *stub), get_kernel(out, stub))
RT_BODY(cudaGetKernel, get_kernel(kernelPtr, entryFuncAddr))
RT_BODY(cudaGetFuncBySymbol, get_function(functionPtr, symbolPtr))
RT_BODY(cudaGetSymbolAddress, symbol_address(devPtr, symbol))
RT_BODY(cudaGetSymbolSize, symbol_size(size, symbol))

static cudaError_t library_kernel(cudaKernel_t *out, cudaLibrary_t library, const char *name)
{
  CUkernel kernel;
  if (!out || !name) return cudaErrorInvalidValue;
  cudaError_t e = rt_result(rt_drv->LibraryGetKernel(&kernel, (CUlibrary)library, name));
  if (!e) e = rt_kernel_add(kernel);
  if (!e) *out = (cudaKernel_t)kernel;
  return e;
}

RT_BODY(cudaLibraryGetKernel, library_kernel(pKernel, library, name))
