/* launch.c: kernels: their host twins, their launches and what is asked about them.
 *
 * A twin is looked for by name in the global scope, then in every loaded object (a plug-in's
 * symbols are not in the global scope), and those of Weir's own kernels in libweir-twins.so. A
 * kernel without one is skipped and reported once. Arguments are copied at the launch, as
 * cuLaunchKernel promises. */
#include "cuda/sim/module/module.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_THREADS 1024u
#define MAX_SHARED  49152
#define MAX_OPTIN   166912
#define ENGINE      "weir_" /* with this the names of the engine's kernels begin */

/* ---- twins ----------------------------------------------------------------------------------- */

/* dl_iterate_phdr holds the loader's lock: paths are collected, opened after. */
struct paths {
  char **list;
  size_t count, room;
};

bool sim_launch_blocking; /* CUDA_LAUNCH_BLOCKING=1 */

static int collect_path(struct dl_phdr_info *info, size_t size, void *data)
{
  (void)size;
  struct paths *p = data;
  if (!info->dlpi_name || !*info->dlpi_name) return 0;
  if (p->count == p->room) {
    size_t room = p->room ? 2 * p->room : 64;
    char **more = realloc(p->list, room * sizeof *more);
    if (!more) return 1;
    p->list = more;
    p->room = room;
  }
  p->list[p->count] = strdup(info->dlpi_name);
  return p->list[p->count++] ? 0 : 1;
}

static void *search_objects(const char *symbol)
{
  struct paths paths = {0};
  void *found = NULL;
  dl_iterate_phdr(collect_path, &paths);
  for (size_t i = 0; i < paths.count; i++) {
    void *handle = found || !paths.list[i] ? NULL : dlopen(paths.list[i], RTLD_NOLOAD | RTLD_LAZY);
    if (handle) {
      found = dlsym(handle, symbol);
      dlclose(handle);
    }
    free(paths.list[i]);
  }
  free(paths.list);
  return found;
}

/* The twins of Weir's own kernels, in a library next to this one: they need the maths library,
 * which this one does not. */
static void *engine_twin(const char *symbol)
{
  char path[PATH_MAX];
  static const char anchor; /* something of this library's */
  Dl_info here;
  if (!dladdr(&anchor, &here) || !strrchr(here.dli_fname, '/')) return NULL;
  int folder = (int)(strrchr(here.dli_fname, '/') - here.dli_fname);
  int n = snprintf(path, sizeof path, "%.*s/libweir-twins.so", folder, here.dli_fname);
  if (n < 0 || n >= (int)sizeof path) return NULL;
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  return library ? dlsym(library, symbol) : NULL;
}

static const struct weir_twin *checked(const struct weir_twin *twin, const char *name)
{
  if (!twin) return NULL;
  if (twin->version >= 1 && twin->version <= WEIR_TWIN_VERSION && twin->run) return twin;
  sim_print_once(NULL,
                 "weir sim: the host twin of kernel %s is of version %u, not 1 to %u: not used",
                 name, twin->version, WEIR_TWIN_VERSION);
  return NULL;
}

const struct weir_twin *sim_twin_named(const char *name)
{
  char symbol[1024];
  int n = snprintf(symbol, sizeof symbol, WEIR_TWIN_PREFIX "%s", name);
  if (n < 0 || n >= (int)sizeof symbol) return NULL;
  void *found = dlsym(RTLD_DEFAULT, symbol);
  if (!found) found = search_objects(symbol);
  if (!found && strncmp(name, ENGINE, strlen(ENGINE)) == 0) found = engine_twin(symbol);
  return checked(found, name);
}

static int count_objects(struct dl_phdr_info *info, size_t size, void *data)
{
  (void)size;
  *(uint64_t *)data = info->dlpi_adds; /* the same in every entry */
  return 1;
}

/* Looked for again only after an object was loaded. */
const struct weir_twin *sim_twin_of(CUfunction f)
{
  const struct weir_twin *twin = atomic_load_explicit(&f->twin, memory_order_acquire);
  if (twin) return twin;
  uint64_t objects = 0;
  dl_iterate_phdr(count_objects, &objects);
  if (atomic_load(&f->looked) == objects + 1) /* perhaps by another thread, a moment ago */
    return atomic_load(&f->twin);
  twin = sim_twin_named(f->name);
  atomic_store(&f->twin, twin);
  atomic_store(&f->looked, objects + 1);
  return twin;
}

static int compare_kernel_names(const void *a, const void *b)
{
  return strcmp(a, b);
}

/* Fresh memory is zero; Weir's caches, where it has them, hand out recycled memory. A program that
 * looks at what its kernels should have written then sees bytes that it does not see without. */
static void warn_of_untouched_memory(void)
{
  static _Atomic bool reported;
  const char *mode = getenv("WEIR_MODE");
  if ((mode && strcmp(mode, "observe") == 0) || atomic_exchange(&reported, true)) return;
  sim_print_and_note(
      "weir sim: memory that a skipped kernel should have written holds what was there "
      "before, zeros or, from Weir's cache, an earlier block's bytes: a program that "
      "checks it may differ from a run without Weir");
}

/* Once per kernel name, on stderr and, under Weir, in the trace. */
static void say_skipped(const char *name)
{
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  static void *reported;
  pthread_mutex_lock(&lock);
  bool again = tfind(name, &reported, compare_kernel_names) != NULL;
  char *copy = again ? NULL : strdup(name);
  if (copy) tsearch(copy, &reported, compare_kernel_names);
  pthread_mutex_unlock(&lock);
  if (again) return;
  char text[400];
  (void)snprintf(text, sizeof text, "weir sim: kernel %s has no host twin: skipped", name);
  if (sim_print_and_note(text)) warn_of_untouched_memory();
}

/* ---- running --------------------------------------------------------------------------------- */

struct launch_op {
  struct sim_op op;
  const struct weir_twin *twin;
  struct weir_twin_thread thread; /* grid, block, shared; the indices move */
  void **arguments;               /* into the bytes after this struct */
  const char *name;               /* that stays, where launches are watched; else NULL */
  bool whole_block;               /* one call of the twin is a block */
};

static void describe_launch(const struct sim_op *op, CUstream s, struct weir_watch_work *w)
{
  const struct launch_op *l = (const struct launch_op *)op;
  (void)s;
  w->kind = WEIR_WATCH_KERNELS;
  w->name = l->name;
  memcpy(w->grid, l->thread.grid, sizeof w->grid);
  memcpy(w->block, l->thread.block, sizeof w->block);
  w->shared = (uint32_t)l->thread.shared_bytes;
}

static void run_block(struct launch_op *l)
{
  struct weir_twin_thread *t = &l->thread;
  uint32_t *i = t->thread_index;
  if (t->shared) memset(t->shared, 0, t->shared_bytes);
  if (l->whole_block) {
    l->twin->run(l->arguments, t);
    return;
  }
  for (i[2] = 0; i[2] < t->block[2]; i[2]++)
    for (i[1] = 0; i[1] < t->block[1]; i[1]++)
      for (i[0] = 0; i[0] < t->block[0]; i[0]++)
        l->twin->run(l->arguments, t);
}

static void run_grid(void *argument)
{
  struct launch_op *l = argument;
  struct weir_twin_thread *t = &l->thread;
  uint32_t *b = t->block_index;
  for (b[2] = 0; b[2] < t->grid[2]; b[2]++)
    for (b[1] = 0; b[1] < t->grid[1]; b[1]++)
      for (b[0] = 0; b[0] < t->grid[0]; b[0]++)
        run_block(l);
}

static void run_launch(struct sim_op *op, CUstream s)
{
  struct launch_op *l = (struct launch_op *)op;
  CUresult error = CUDA_SUCCESS;
  bool card = atomic_load_explicit(&sim_has_card, memory_order_relaxed);
  uint64_t end = card ? sim_now_ns() + sim_card_kernel_ns() : 0;
  if (l->thread.shared_bytes) {
    l->thread.shared = aligned_alloc(64, (l->thread.shared_bytes + 63) / 64 * 64);
    if (!l->thread.shared) error = CUDA_ERROR_LAUNCH_FAILED;
  }
  if (!error) sim_guard_run(run_grid, l, &error);
  free(l->thread.shared);
  if (error) sim_context_fail(s->context, error);
  if (card) sim_wait_until(end);
}

/* ---- launching ------------------------------------------------------------------------------- */

static uint32_t alignment_of(const struct weir_twin *twin, uint32_t i)
{
  if (twin->argument_alignments) return twin->argument_alignments[i];
  uint32_t size = twin->argument_sizes[i], lowest = size & -size;
  return !lowest ? 1 : lowest > 16 ? 16 : lowest;
}

static size_t align_up(size_t n, size_t alignment)
{
  return (n + alignment - 1) / alignment * alignment;
}

/* Where in a parameter buffer each argument is; returns the bytes of all. */
static size_t argument_offset(const struct weir_twin *twin, uint32_t index)
{
  size_t at = 0;
  for (uint32_t i = 0; i < twin->argument_count; i++) {
    at = align_up(at, alignment_of(twin, i));
    if (i == index) return at;
    at += twin->argument_sizes[i];
  }
  return at;
}

/* The buffer of CU_LAUNCH_PARAM_BUFFER_POINTER and _SIZE. */
static CUresult extra_buffer(void **extra, const char **buffer, size_t *bytes)
{
  *buffer = NULL;
  *bytes = 0;
  for (; *extra != CU_LAUNCH_PARAM_END; extra += 2) {
    if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER)
      *buffer = extra[1];
    else if (*extra == CU_LAUNCH_PARAM_BUFFER_SIZE && extra[1])
      *bytes = *(size_t *)extra[1];
    else
      return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}

/* Without a twin it only keeps its place in the stream. */
static CUresult launch_skipped(CUfunction f, struct launch_op **out)
{
  say_skipped(f->name);
  *out = sim_op_new(sizeof **out, NULL);
  return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* A launch op with the arguments copied. */
static CUresult launch_new(const struct weir_twin *twin, void **params, void **extra,
                           struct launch_op **out)
{
  const char *buffer = NULL;
  size_t buffer_bytes = 0, room = 0;
  CUresult error = extra ? extra_buffer(extra, &buffer, &buffer_bytes) : CUDA_SUCCESS;
  uint32_t count = twin->argument_count;
  if (error) return error;
  if (count && !params && (!buffer || argument_offset(twin, count) > buffer_bytes))
    return CUDA_ERROR_INVALID_VALUE;
  for (uint32_t i = 0; i < count; i++)
    room += align_up(twin->argument_sizes[i], 16);
  size_t head = align_up(sizeof(struct launch_op) + count * sizeof(void *), 16);
  struct launch_op *l = sim_op_new(head + room, run_launch);
  if (!l) return CUDA_ERROR_OUT_OF_MEMORY;
  l->twin = twin;
  l->whole_block = twin->version > 1 && (twin->flags & WEIR_TWIN_BLOCK);
  l->arguments = (void **)(l + 1);
  char *at = (char *)l + head;
  for (uint32_t i = 0; i < count; i++) {
    memcpy(at, params ? params[i] : buffer + argument_offset(twin, i), twin->argument_sizes[i]);
    l->arguments[i] = at;
    at += align_up(twin->argument_sizes[i], 16);
  }
  *out = l;
  return CUDA_SUCCESS;
}

/* A function made from a kernel has the kernel's. */
static int *attributes_of(CUfunction f)
{
  return f->kernel ? f->kernel->attributes : f->attributes;
}

static bool shape_is_legal(CUfunction f, const CUlaunchConfig *c)
{
  if (!c->gridDimX || !c->gridDimY || !c->gridDimZ || !c->blockDimX || !c->blockDimY ||
      !c->blockDimZ)
    return false;
  if (c->gridDimX > INT32_MAX || c->gridDimY > 65535 || c->gridDimZ > 65535) return false;
  if (c->blockDimX > MAX_THREADS || c->blockDimY > MAX_THREADS || c->blockDimZ > 64) return false;
  if (c->blockDimX * c->blockDimY * c->blockDimZ > MAX_THREADS) return false;
  int opted = attributes_of(f)[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES];
  return c->sharedMemBytes <= (unsigned)(opted ? opted : MAX_SHARED);
}

static CUresult shape_op(struct launch_op *l, CUfunction f, const CUlaunchConfig *c,
                         struct sim_op **op)
{
  l->op.describe = describe_launch;
  if (unlikely(l->op.watched)) l->name = sim_watch_name(f->name);
  l->thread = (struct weir_twin_thread){.grid = {c->gridDimX, c->gridDimY, c->gridDimZ},
                                        .block = {c->blockDimX, c->blockDimY, c->blockDimZ},
                                        .shared_bytes = c->sharedMemBytes};
  *op = &l->op;
  return CUDA_SUCCESS;
}

/* The op of a launch. */
static CUresult launch_op(CUfunction f, const CUlaunchConfig *c, void **params, void **extra,
                          struct sim_op **op)
{
  const struct weir_twin *twin = sim_twin_of(f);
  struct launch_op *l = NULL;
  CUresult error = twin ? launch_new(twin, params, extra, &l) : launch_skipped(f, &l);
  if (error) return error;
  return shape_op(l, f, c, op);
}

static CUresult capture_launch(CUstream s, const CUlaunchConfig *c, CUfunction f, void **params,
                               void **extra)
{
  CUgraphNodeParams p = {.type = CU_GRAPH_NODE_TYPE_KERNEL};
  p.kernel = (CUDA_KERNEL_NODE_PARAMS_v3){.func = f,
                                          .gridDimX = c->gridDimX,
                                          .gridDimY = c->gridDimY,
                                          .gridDimZ = c->gridDimZ,
                                          .blockDimX = c->blockDimX,
                                          .blockDimY = c->blockDimY,
                                          .blockDimZ = c->blockDimZ,
                                          .sharedMemBytes = c->sharedMemBytes,
                                          .kernelParams = params,
                                          .extra = extra,
                                          .ctx = s->context};
  return sim_capture_add(s, &p);
}

static CUresult launch_twin(const CUlaunchConfig *c, CUfunction handle, void **params, void **extra)
{
  SIM_NEED_CURRENT();
  CUfunction f;
  CUresult error = sim_function_find(handle, &f);
  CUstream s;
  if (!error) error = sim_stream_find(c->hStream, &s);
  if (error) return error;
  if (s->context != f->module->context) return CUDA_ERROR_INVALID_HANDLE;
  if (!shape_is_legal(f, c) || (params && extra)) return CUDA_ERROR_INVALID_VALUE;
  if (sim_capturing(s)) return capture_launch(s, c, handle, params, extra);
  struct sim_op *op;
  error = launch_op(f, c, params, extra, &op);
  if (error) return error;
  /* CUDA_LAUNCH_BLOCKING=1: launches are synchronous, and an error is reported by its own call */
  bool wait = sim_launch_blocking && op->run;
  sim_spend(SIM_COST_LAUNCH, 0);
  return sim_submit(s, op, wait ? SIM_AND_WAIT : SIM_QUEUE, NULL);
}

/* ---- as nodes of a graph --------------------------------------------------------------------- */

static CUlaunchConfig config_of(const CUDA_KERNEL_NODE_PARAMS_v3 *p)
{
  return (CUlaunchConfig){.gridDimX = p->gridDimX,
                          .gridDimY = p->gridDimY,
                          .gridDimZ = p->gridDimZ,
                          .blockDimX = p->blockDimX,
                          .blockDimY = p->blockDimY,
                          .blockDimZ = p->blockDimZ,
                          .sharedMemBytes = p->sharedMemBytes};
}

CUresult sim_launch_node_op(CUfunction f, const CUDA_KERNEL_NODE_PARAMS_v3 *p, struct sim_op **op)
{
  if (!sim_arena_has(&sim_functions, f)) return CUDA_ERROR_INVALID_HANDLE; /* unloaded since */
  CUlaunchConfig c = config_of(p);
  bool known = p->kernelParams || !sim_twin_of(f) || !sim_twin_of(f)->argument_count;
  if (known) return launch_op(f, &c, p->kernelParams, NULL, op);
  /* its twin was not there when the arguments were, so they are unknown */
  struct launch_op *l = NULL;
  CUresult error = launch_skipped(f, &l);
  return error ? error : shape_op(l, f, &c, op);
}

/* The arguments, copied after an array of pointers to them; of a kernel without a twin nobody
 * knows how long they are, and nobody needs them. */
CUresult sim_launch_keep(CUDA_KERNEL_NODE_PARAMS_v3 *p, CUfunction *function, void **owned)
{
  *owned = NULL;
  CUresult error = sim_function_find(p->func ? p->func : (CUfunction)p->kern, function);
  if (error) return error;
  CUlaunchConfig c = config_of(p);
  if (!shape_is_legal(*function, &c) || (p->kernelParams && p->extra))
    return CUDA_ERROR_INVALID_VALUE;
  const struct weir_twin *twin = sim_twin_of(*function);
  if (!p->ctx) p->ctx = (*function)->module->context;
  if (!twin || !twin->argument_count) {
    p->kernelParams = p->extra = NULL;
    return CUDA_SUCCESS;
  }
  struct launch_op *l;
  error = launch_new(twin, p->kernelParams, p->extra, &l);
  if (error) return error;
  size_t head = align_up(twin->argument_count * sizeof(void *), 16), room = 0;
  for (uint32_t i = 0; i < twin->argument_count; i++)
    room += align_up(twin->argument_sizes[i], 16);
  void **list = malloc(head + room + 1);
  char *at = (char *)list + head;
  for (uint32_t i = 0; list && i < twin->argument_count; i++) {
    memcpy(at, l->arguments[i], twin->argument_sizes[i]);
    list[i] = at;
    at += align_up(twin->argument_sizes[i], 16);
  }
  sim_op_free(&l->op);
  *owned = p->kernelParams = list;
  p->extra = NULL;
  return list ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult sim_cuLaunchKernel(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz,
                            unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared,
                            CUstream stream, void **params, void **extra)
{
  CUlaunchConfig c = {.gridDimX = gx,
                      .gridDimY = gy,
                      .gridDimZ = gz,
                      .blockDimX = bx,
                      .blockDimY = by,
                      .blockDimZ = bz,
                      .sharedMemBytes = shared,
                      .hStream = stream};
  return launch_twin(&c, f, params, extra);
}

SIM_ENTRY(cuLaunchCooperativeKernel,
          sim_cuLaunchKernel(f, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ,
                             sharedMemBytes, hStream, kernelParams, NULL))

/* Attributes that change what a launch means are refused; the others are hints. */
static CUresult check_attribute(const CUlaunchAttribute *a)
{
  switch ((int)a->id) {
  case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
    return a->value.clusterDim.x * a->value.clusterDim.y * a->value.clusterDim.z > 1
               ? CUDA_ERROR_NOT_SUPPORTED
               : CUDA_SUCCESS;
  case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
  case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
  case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
    return CUDA_ERROR_NOT_SUPPORTED;
  default:
    return (unsigned)a->id < CU_LAUNCH_ATTRIBUTE_MAX ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  }
}

CUresult sim_cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f, void **params,
                              void **extra, CUstream default_stream)
{
  if (!config || (config->numAttrs && !config->attrs)) return CUDA_ERROR_INVALID_VALUE;
  CUresult error = CUDA_SUCCESS;
  for (unsigned i = 0; i < config->numAttrs && !error; i++)
    error = check_attribute(&config->attrs[i]);
  if (error) return error;
  CUlaunchConfig c = *config;
  if (!c.hStream) c.hStream = default_stream;
  return launch_twin(&c, f, params, extra);
}

/* ---- what a function states of itself
 * ---------------------------------------------------------- */

#define FIND_FUNCTION(f)                                                                           \
  CUresult error = sim_function_find(f, &(f));                                                     \
  if (error) return error

SIM_ASSIGN(cuFuncGetName, SIM_NEED(name); FIND_FUNCTION(hfunc), *name, hfunc->name)

static int attribute_value(const int *set, CUfunction_attribute a)
{
  switch ((int)a) {
  case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    return MAX_THREADS;
  case CU_FUNC_ATTRIBUTE_NUM_REGS:
    return 32;
  case CU_FUNC_ATTRIBUTE_PTX_VERSION:
  case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
    return 80;
  case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
    return set[a] ? set[a] : MAX_SHARED;
  case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
    return set[a] ? set[a] - 1 : -1; /* kept one higher, since 0 is a value */
  default:
    return set[a];
  }
}

static CUresult set_attribute(int *set, CUfunction_attribute a, int value)
{
  switch ((int)a) {
  case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
    if (value < 0 || value > MAX_OPTIN) return CUDA_ERROR_INVALID_VALUE;
    set[a] = value;
    return CUDA_SUCCESS;
  case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
    if (value < -1 || value > 100) return CUDA_ERROR_INVALID_VALUE;
    set[a] = value + 1;
    return CUDA_SUCCESS;
  case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
  case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
    set[a] = value;
    return CUDA_SUCCESS;
  default:
    return CUDA_ERROR_INVALID_VALUE;
  }
}

SIM_ASSIGN(cuFuncGetAttribute, SIM_NEED(pi && (unsigned)attrib < CU_FUNC_ATTRIBUTE_MAX);
           FIND_FUNCTION(hfunc), *pi, attribute_value(attributes_of(hfunc), attrib))
SIM_CHECKED(cuFuncSetAttribute, FIND_FUNCTION(hfunc),
            set_attribute(attributes_of(hfunc), attrib, value))
SIM_ASSIGN(cuKernelGetAttribute, SIM_NEED(pi && (unsigned)attrib < CU_FUNC_ATTRIBUTE_MAX);
           SIM_NEED_HANDLE(sim_kernels, kernel);
           SIM_NEED_DEVICE(dev), *pi, attribute_value(kernel->attributes, attrib))
SIM_CHECKED(cuKernelSetAttribute, SIM_NEED_HANDLE(sim_kernels, kernel);
            SIM_NEED_DEVICE(dev), set_attribute(kernel->attributes, attrib, val))

static CUresult param_info(const char *name, size_t index, size_t *offset, size_t *size)
{
  const struct weir_twin *twin = sim_twin_named(name);
  if (!twin) return CUDA_ERROR_NOT_SUPPORTED; /* only the twin knows */
  if (!offset || index >= twin->argument_count) return CUDA_ERROR_INVALID_VALUE;
  *offset = argument_offset(twin, (uint32_t)index);
  if (size) *size = twin->argument_sizes[index];
  return CUDA_SUCCESS;
}

SIM_CHECKED(cuFuncGetParamInfo, FIND_FUNCTION(func),
            param_info(func->name, paramIndex, paramOffset, paramSize))
SIM_CHECKED(cuKernelGetParamInfo, SIM_NEED_HANDLE(sim_kernels, kernel),
            param_info(kernel->name, paramIndex, paramOffset, paramSize))
SIM_CHECKED(cuFuncSetCacheConfig, SIM_NEED((unsigned)config <= CU_FUNC_CACHE_PREFER_EQUAL),
            sim_function_find(hfunc, &hfunc))
SIM_CHECKED(cuKernelSetCacheConfig, SIM_NEED((unsigned)config <= CU_FUNC_CACHE_PREFER_EQUAL);
            SIM_NEED_DEVICE(dev),
            sim_arena_has(&sim_kernels, kernel) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE)
SIM_CHECKED(cuFuncSetSharedMemConfig,
            SIM_NEED((unsigned)config <= CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE),
            sim_function_find(hfunc, &hfunc))
SIM_ASSIGN(cuFuncIsLoaded, SIM_NEED(state);
           FIND_FUNCTION(function), *state, CU_FUNCTION_LOADING_STATE_LOADED)
SIM_ENTRY(cuFuncLoad, sim_function_find(function, &function))

/* ---- occupancy: threads, blocks and shared memory of one multiprocessor ---------------------- */

static int blocks_that_fit(int threads, size_t shared)
{
  const struct sim_device *d = &sim_devices[0];
  int per_block = (threads + 31) / 32 * 32;
  int blocks =
      sim_device_attribute(d, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR) / per_block;
  int most = sim_device_attribute(d, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR);
  int memory = sim_device_attribute(d, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
  size_t reserved = 1024; /* CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK */
  if (blocks > most) blocks = most;
  if ((size_t)blocks * (shared + reserved) > (size_t)memory)
    blocks = (int)((size_t)memory / (shared + reserved));
  return blocks;
}

CUresult sim_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, CUfunction f,
                                                                  int threads, size_t shared,
                                                                  unsigned int flags)
{
  if (!blocks || threads <= 0 || flags & ~1u) return CUDA_ERROR_INVALID_VALUE;
  CUresult error = sim_function_find(f, &f);
  if (!error) *blocks = threads > (int)MAX_THREADS ? 0 : blocks_that_fit(threads, shared);
  return error;
}

SIM_ENTRY(cuOccupancyMaxActiveBlocksPerMultiprocessor,
          sim_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(numBlocks, func, blockSize,
                                                                   dynamicSMemSize, 0))

CUresult sim_cuOccupancyMaxPotentialBlockSizeWithFlags(int *grid, int *block, CUfunction f,
                                                       CUoccupancyB2DSize shared_of, size_t shared,
                                                       int limit, unsigned int flags)
{
  if (!grid || !block || flags & ~1u || limit < 0) return CUDA_ERROR_INVALID_VALUE;
  CUresult error = sim_function_find(f, &f);
  if (error) return error;
  int most = limit && limit < (int)MAX_THREADS ? limit : (int)MAX_THREADS, best = 0;
  for (int threads = most; threads > 0;
       threads = threads % 32 ? threads - threads % 32 : threads - 32) {
    int fit = blocks_that_fit(threads, shared_of ? shared_of(threads) : shared);
    if (fit * threads <= best) continue;
    best = fit * threads;
    *block = threads;
    *grid = fit * sim_device_attribute(&sim_devices[0], CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  }
  return best ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

SIM_ENTRY(cuOccupancyMaxPotentialBlockSize,
          sim_cuOccupancyMaxPotentialBlockSizeWithFlags(minGridSize, blockSize, func,
                                                        blockSizeToDynamicSMemSize, dynamicSMemSize,
                                                        blockSizeLimit, 0))

CUresult sim_cuOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, CUfunction f, int blocks,
                                                     int threads)
{
  if (!bytes || blocks <= 0 || threads <= 0) return CUDA_ERROR_INVALID_VALUE;
  CUresult error = sim_function_find(f, &f);
  if (error) return error;
  int memory = sim_device_attribute(&sim_devices[0],
                                    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
  size_t each = (size_t)memory / (size_t)blocks;
  *bytes = each > 1024 ? each - 1024 : 0;
  if (*bytes > MAX_SHARED) *bytes = MAX_SHARED;
  return CUDA_SUCCESS;
}
