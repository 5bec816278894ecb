/* module.c: modules and libraries: what is loaded, which functions and variables it gives. */
#include "cuda/sim/module/module.h"

#include <stdlib.h>
#include <string.h>

struct sim_arena sim_modules = SIM_ARENA(struct CUmod_st, SIM_MODULE);
struct sim_arena sim_functions = SIM_ARENA(struct CUfunc_st, SIM_FUNCTION);
struct sim_arena sim_libraries = SIM_ARENA(struct CUlib_st, SIM_LIBRARY);
struct sim_arena sim_kernels = SIM_ARENA(struct CUkern_st, SIM_KERNEL);

pthread_mutex_t sim_modules_lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- modules --------------------------------------------------------------------------------- */

static CUmodule module_new(CUcontext c, struct sim_image *image, CUlibrary library) /* lock held */
{
  CUmodule m = sim_arena_new(&sim_modules);
  if (!m) return NULL;
  if (!sim_overhead_take(c->device, c->device->module_takes)) {
    sim_arena_free(&sim_modules, m);
    return NULL;
  }
  m->context = c;
  m->image = image;
  m->library = library;
  m->next = c->modules;
  c->modules = m;
  sim_context_ref(c);
  return m;
}

static void module_free(CUmodule m) /* lock held, unlinked */
{
  for (CUfunction f; (f = m->functions);) {
    m->functions = f->next;
    free(f->name);
    sim_arena_free(&sim_functions, f);
  }
  for (struct sim_global *g; (g = m->globals);) {
    m->globals = g->next;
    pthread_mutex_lock(&sim_memory_lock);
    struct sim_range *r = sim_range_at(g->start, 1);
    if (r && r->hidden) sim_range_remove(r);
    pthread_mutex_unlock(&sim_memory_lock);
    free(g);
  }
  sim_image_unref(m->image);
  sim_overhead_give(m->context->device, m->context->device->module_takes);
  sim_context_unref(m->context);
  sim_arena_free(&sim_modules, m);
}

void sim_modules_free_of(CUcontext c)
{
  SIM_HOLD(sim_modules_lock);
  for (CUmodule m; (m = c->modules);) {
    c->modules = m->next;
    module_free(m);
  }
}

/* What `code` is, or a file of that path. */
static CUresult open_image(const void *code, const char *path, struct sim_image **image)
{
  return path ? sim_image_read(path, image) : sim_image_open(code, image);
}

static CUresult load_module(CUmodule *module, const void *code, const char *path)
{
  SIM_SAFE();
  SIM_NEED_CURRENT();
  struct sim_image *image;
  CUresult error = module ? open_image(code, path, &image) : CUDA_ERROR_INVALID_VALUE;
  if (error) return error;
  SIM_HOLD(sim_modules_lock);
  CUmodule m = module_new(sim_current(), image, NULL);
  if (m)
    *module = m;
  else
    sim_image_unref(image);
  return m ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

SIM_ENTRY(cuModuleLoadData, load_module(module, image, NULL))
SIM_ENTRY(cuModuleLoadFatBinary, load_module(module, fatCubin, NULL))
SIM_ENTRY(cuModuleLoad, load_module(module, NULL, fname))
SIM_CHECKED(cuModuleLoadDataEx, SIM_NEED(!numOptions || (options && optionValues)),
            load_module(module, image, NULL))

CUresult sim_cuModuleUnload(CUmodule m)
{
  SIM_SAFE();
  if (!sim_arena_has(&sim_modules, m)) return CUDA_ERROR_INVALID_HANDLE;
  if (m->library) return CUDA_ERROR_NOT_PERMITTED;
  CUresult error = sim_context_wait(m->context); /* its functions may be queued */
  if (error) return error;
  SIM_HOLD(sim_modules_lock);
  CUmodule *link = &m->context->modules;
  while (*link && *link != m)
    link = &(*link)->next;
  if (!*link) return CUDA_ERROR_INVALID_HANDLE;
  *link = m->next;
  module_free(m);
  return CUDA_SUCCESS;
}

SIM_ASSIGN(cuModuleGetLoadingMode, SIM_NEED(mode), *mode, CU_MODULE_EAGER_LOADING)

/* ---- functions ------------------------------------------------------------------------------- */

/* The name is in the image, or it cannot be known, or a twin shows that it exists. */
static bool name_exists(const struct sim_image *image, const char *name)
{
  return sim_image_has_kernel(image, name) != SIM_ABSENT || sim_twin_named(name);
}

static CUfunction function_get(CUmodule m, const char *name, CUkernel kernel) /* lock held */
{
  for (CUfunction f = m->functions; f; f = f->next)
    if (strcmp(f->name, name) == 0) return f;
  char *copy = strdup(name);
  CUfunction f = copy ? sim_arena_new(&sim_functions) : NULL;
  if (!f) {
    free(copy);
    return NULL;
  }
  f->name = copy;
  f->module = m;
  f->kernel = kernel;
  f->next = m->functions;
  m->functions = f;
  return f;
}

CUresult sim_cuModuleGetFunction(CUfunction *function, CUmodule m, const char *name)
{
  if (!function || !name) return CUDA_ERROR_INVALID_VALUE;
  if (!sim_arena_has(&sim_modules, m)) return CUDA_ERROR_INVALID_HANDLE;
  if (!name_exists(m->image, name)) return CUDA_ERROR_NOT_FOUND;
  SIM_HOLD(sim_modules_lock);
  CUfunction f = function_get(m, name, NULL);
  if (f) *function = f;
  return f ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult sim_cuFuncGetModule(CUmodule *module, CUfunction f)
{
  if (!module) return CUDA_ERROR_INVALID_VALUE;
  CUresult error = sim_function_find(f, &f);
  if (!error) *module = f->module;
  return error;
}

/* ---- libraries ------------------------------------------------------------------------------- */

static CUresult load_library(CUlibrary *library, const void *code, const char *path)
{
  struct sim_image *image;
  CUresult error = library ? open_image(code, path, &image) : CUDA_ERROR_INVALID_VALUE;
  if (error) return error;
  CUlibrary l = sim_arena_new(&sim_libraries);
  if (!l) {
    sim_image_unref(image);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  l->image = image;
  *library = l;
  return CUDA_SUCCESS;
}

/* There is nothing to compile, and so nothing that they change. */
#define IGNORE_OPTIONS()                                                                           \
  (void)jitOptions, (void)jitOptionsValues, (void)numJitOptions, (void)libraryOptions,             \
      (void)libraryOptionValues, (void)numLibraryOptions

SIM_CHECKED(cuLibraryLoadData, IGNORE_OPTIONS(), load_library(library, code, NULL))
SIM_CHECKED(cuLibraryLoadFromFile, IGNORE_OPTIONS(), load_library(library, NULL, fileName))

static void unload_modules(CUlibrary l) /* lock held */
{
  for (size_t at = 0; at < sim_contexts.used; at += sim_contexts.size) {
    CUcontext c = (CUcontext)(void *)(sim_contexts.base + at);
    if (!sim_arena_has(&sim_contexts, c)) continue;
    for (CUmodule *link = &c->modules, m; (m = *link);) {
      if (m->library != l) {
        link = &m->next;
        continue;
      }
      *link = m->next;
      module_free(m);
    }
  }
}

CUresult sim_cuLibraryUnload(CUlibrary l)
{
  if (!sim_arena_has(&sim_libraries, l)) return CUDA_ERROR_INVALID_HANDLE;
  sim_wait_all();
  SIM_HOLD(sim_modules_lock);
  unload_modules(l);
  for (CUkernel k; (k = l->kernels);) {
    l->kernels = k->next;
    free(k->name);
    sim_arena_free(&sim_kernels, k);
  }
  sim_image_unref(l->image);
  sim_arena_free(&sim_libraries, l);
  return CUDA_SUCCESS;
}

static CUkernel kernel_get(CUlibrary l, const char *name) /* lock held */
{
  for (CUkernel k = l->kernels; k; k = k->next)
    if (strcmp(k->name, name) == 0) return k;
  char *copy = strdup(name);
  CUkernel k = copy ? sim_arena_new(&sim_kernels) : NULL;
  if (!k) {
    free(copy);
    return NULL;
  }
  k->name = copy;
  k->library = l;
  k->next = l->kernels;
  l->kernels = k;
  return k;
}

CUresult sim_cuLibraryGetKernel(CUkernel *kernel, CUlibrary l, const char *name)
{
  if (!kernel || !name) return CUDA_ERROR_INVALID_VALUE;
  if (!sim_arena_has(&sim_libraries, l)) return CUDA_ERROR_INVALID_HANDLE;
  if (!name_exists(l->image, name)) return CUDA_ERROR_NOT_FOUND;
  SIM_HOLD(sim_modules_lock);
  CUkernel k = kernel_get(l, name);
  if (k) *kernel = k;
  return k ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* The library's module of the current context. */
static CUmodule module_of_handle(CUlibrary l, CUcontext c) /* lock held */
{
  for (CUmodule m = c->modules; m; m = m->next)
    if (m->library == l) return m;
  CUmodule m = module_new(c, l->image, l);
  if (m) atomic_fetch_add(&l->image->refs, 1);
  return m;
}

CUresult sim_cuLibraryGetModule(CUmodule *module, CUlibrary l)
{
  SIM_NEED_CONTEXT(c);
  if (!module) return CUDA_ERROR_INVALID_VALUE;
  if (!sim_arena_has(&sim_libraries, l)) return CUDA_ERROR_INVALID_HANDLE;
  SIM_HOLD(sim_modules_lock);
  *module = module_of_handle(l, c);
  return *module ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult sim_cuKernelGetFunction(CUfunction *function, CUkernel k)
{
  SIM_NEED_CONTEXT(c);
  if (!function) return CUDA_ERROR_INVALID_VALUE;
  if (!sim_arena_has(&sim_kernels, k)) return CUDA_ERROR_INVALID_HANDLE;
  SIM_HOLD(sim_modules_lock);
  CUmodule m = module_of_handle(k->library, c);
  *function = m ? function_get(m, k->name, k) : NULL;
  return *function ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* cuLaunchKernel: "f ... can also be a CUkernel cast to CUfunction". */
CUresult sim_function_find(CUfunction handle, CUfunction *function)
{
  if (sim_arena_has(&sim_functions, handle)) {
    *function = handle;
    return CUDA_SUCCESS;
  }
  return sim_cuKernelGetFunction(function, (CUkernel)handle);
}

SIM_ASSIGN(cuKernelGetLibrary, SIM_NEED(pLib);
           SIM_NEED_HANDLE(sim_kernels, kernel), *pLib, kernel->library)
SIM_ASSIGN(cuKernelGetName, SIM_NEED(name); SIM_NEED_HANDLE(sim_kernels, hfunc), *name, hfunc->name)

/* ---- variables ------------------------------------------------------------------------------- */

struct definition { /* by weir_sim_define_global() */
  struct definition *next;
  void *owner; /* CUmodule, CUlibrary or NULL: any */
  size_t bytes;
  char *initial; /* NULL: zeros */
  char name[];
};

static struct definition *definitions; /* sim_modules_lock */

static struct definition *definition_of(const void *owner, const char *name)
{
  for (struct definition *d = definitions; d; d = d->next)
    if (d->owner == owner && strcmp(d->name, name) == 0) return d;
  return NULL;
}

__attribute__((visibility("default"))) int weir_sim_define_global(void *module, const char *name,
                                                                  size_t bytes, const void *initial)
{
  if (!name || !*name || !bytes) return CUDA_ERROR_INVALID_VALUE;
  struct definition *d = calloc(1, sizeof *d + strlen(name) + 1);
  if (!d) return CUDA_ERROR_OUT_OF_MEMORY;
  if (initial && !(d->initial = malloc(bytes))) {
    free(d);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  if (initial) memcpy(d->initial, initial, bytes);
  d->owner = module;
  d->bytes = bytes;
  memcpy(d->name, name, strlen(name) + 1);
  pthread_mutex_lock(&sim_modules_lock);
  struct definition *old = definition_of(module, name);
  bool keep = old && old->bytes == bytes;
  if (!keep) { /* the newest is found first */
    d->next = definitions;
    definitions = d;
  }
  pthread_mutex_unlock(&sim_modules_lock);
  if (keep) {
    free(d->initial);
    free(d);
  }
  return CUDA_SUCCESS;
}

static CUresult global_new(CUmodule m, const char *name, struct sim_global **out) /* lock held */
{
  size_t bytes = 0;
  const void *initial = NULL;
  struct definition *d = definition_of(m, name);
  if (!d && m->library) d = definition_of(m->library, name);
  if (d) {
    bytes = d->bytes;
    initial = d->initial;
  } else if (!sim_image_global(m->image, name, &bytes, &initial)) {
    d = definition_of(NULL, name);
    if (!d) return CUDA_ERROR_NOT_FOUND;
    bytes = d->bytes;
    initial = d->initial;
  }
  struct sim_global *g = malloc(sizeof *g + strlen(name) + 1);
  if (!g) return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult error;
  struct sim_range *r = sim_range_device(m->context, bytes, &error);
  if (!r) {
    free(g);
    return error ? error : CUDA_ERROR_OUT_OF_MEMORY;
  }
  r->hidden = true;
  *g = (struct sim_global){.next = m->globals, .start = r->start, .bytes = bytes};
  memcpy(g->name, name, strlen(name) + 1);
  if (initial)
    memcpy((void *)r->start, initial, bytes);
  else
    memset((void *)r->start, 0, bytes);
  m->globals = *out = g;
  return CUDA_SUCCESS;
}

static CUresult global_get(CUdeviceptr *p, size_t *bytes, CUmodule m,
                           const char *name) /* lock held */
{
  struct sim_global *g = m->globals;
  while (g && strcmp(g->name, name) != 0)
    g = g->next;
  CUresult error = g ? CUDA_SUCCESS : global_new(m, name, &g);
  if (error) return error;
  if (p) *p = g->start;
  if (bytes) *bytes = g->bytes;
  return CUDA_SUCCESS;
}

CUresult sim_cuModuleGetGlobal_v2(CUdeviceptr *p, size_t *bytes, CUmodule m, const char *name)
{
  if ((!p && !bytes) || !name) return CUDA_ERROR_INVALID_VALUE;
  if (!sim_arena_has(&sim_modules, m)) return CUDA_ERROR_INVALID_HANDLE;
  SIM_HOLD(sim_modules_lock);
  return global_get(p, bytes, m, name);
}

CUresult sim_cuLibraryGetGlobal(CUdeviceptr *p, size_t *bytes, CUlibrary l, const char *name)
{
  SIM_NEED_CONTEXT(c);
  if ((!p && !bytes) || !name) return CUDA_ERROR_INVALID_VALUE;
  if (!sim_arena_has(&sim_libraries, l)) return CUDA_ERROR_INVALID_HANDLE;
  SIM_HOLD(sim_modules_lock);
  CUmodule m = module_of_handle(l, c);
  return m ? global_get(p, bytes, m, name) : CUDA_ERROR_OUT_OF_MEMORY;
}

/* ---- linking --------------------------------------------------------------------------------- */

/* There is no compiler here: "CUDA_ERROR_JIT_COMPILER_NOT_FOUND: the PTX JIT compiler library was
 * not found", which is how a machine without libnvidia-ptxjitcompiler answers. */
CUresult sim_cuLinkCreate_v2(unsigned int count, CUjit_option *options, void **values,
                             CUlinkState *state)
{
  static _Atomic bool reported;
  SIM_NEED_CURRENT();
  if (!state || (count && (!options || !values))) return CUDA_ERROR_INVALID_VALUE;
  if (!atomic_exchange(&reported, true))
    sim_print_and_note("weir sim: cuLinkCreate: the software device has no compiler: answers 221 "
                       "(CUDA_ERROR_JIT_COMPILER_NOT_FOUND)");
  return CUDA_ERROR_JIT_COMPILER_NOT_FOUND;
}
