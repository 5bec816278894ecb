/* cpu/dnn.c: convolutions by oneDNN, opened at run time.
 *
 * libdnnl.so.3 is looked for at the first convolution that may be its own; never closed. Its C
 * interface of version 3 is declared here by hand. The statement is that of matrix products
 * (weir_set_blas): "auto" takes oneDNN for the shapes whose own kernels are slower (gains),
 * "vendor" for every convolution of float32 that it has a kernel for, "builtin" for none.
 *
 * A plan is what oneDNN makes of a shape: the convolution in layouts of its choice, reorders from
 * and to contiguous tensors, and what room they need. Plans are kept, a bounded number of them; a
 * caller takes one out of the table while it calculates, so that no lock is held meanwhile. Weights
 * are reordered in every call: they may have changed. Shapes that oneDNN has only its reference
 * code for are kept as refused. All room is ours (scratchpads in user mode).
 *
 * Threads: a build on OpenMP counts on as many threads as omp_get_max_threads() returns, both where
 * a plan is made and where it runs; it is set for the call, then what it was. A sequential build is
 * taken for one thread only, unless asked for. Builds on TBB, SYCL or a thread pool of their own
 * are not used: their C interface cannot hold them to a number of threads. oneDNN divides its work
 * by the number of threads, so that it may change the last bits. OpenMP's threads do not survive a
 * fork: the child of a process that has opened oneDNN calculates without it. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/backend/cpu/cpu.h"
#include "core/backend/cpu/gemm.h"
#include "core/backend/threads.h"

/* oneDNN's own constants. */
enum {
  DNN_OK = 0,
  DNN_CPU = 1,
  DNN_IN_ORDER = 1,
  DNN_TAG_ANY = 1,
  DNN_SCRATCH_USER = 1,
  DNN_FORWARD_INFERENCE = 96,
  DNN_DIRECT = 1,
  DNN_QUERY_NAME = 8,
  DNN_QUERY_IN = 129,
  DNN_QUERY_WEIGHTS = 131,
  DNN_QUERY_OUT = 133,
  DNN_QUERY_SCRATCH = 136,
  DNN_ARG_IN = 1,
  DNN_ARG_OUT = 17,
  DNN_ARG_WEIGHTS = 33,
  DNN_ARG_BIAS = 41,
  DNN_ARG_SCRATCH = 80,
  DNN_SEQUENTIAL = 1, /* dnn_version.cpu */
  DNN_OPENMP = 2
};

typedef struct dnn_version {
  int major, minor, patch;
  const char *hash;
  unsigned cpu, gpu; /* runtimes */
} dnn_version;

typedef struct dnn_arg {
  int which;
  void *memory;
} dnn_arg;

typedef const int64_t *dnn_dims; /* 12 of them, at most */

/* X(function without dnnl_, parameters), of which all return a status. */
#define DNN_CALLS(X)                                                                               \
  X(engine_create, (void **out, int kind, size_t index))                                           \
  X(stream_create, (void **out, void *engine, unsigned flags))                                     \
  X(stream_wait, (void *stream))                                                                   \
  X(stream_destroy, (void *stream))                                                                \
  X(memory_desc_create_with_strides,                                                               \
    (void **out, int count, dnn_dims size, int type, dnn_dims stride))                             \
  X(memory_desc_create_with_tag, (void **out, int count, dnn_dims size, int type, int tag))        \
  X(memory_desc_destroy, (void *desc))                                                             \
  X(memory_desc_equal, (const void *a, const void *b))                                             \
  X(memory_create, (void **out, const void *desc, void *engine, void *data))                       \
  X(memory_set_data_handle, (void *memory, void *data))                                            \
  X(memory_destroy, (void *memory))                                                                \
  X(primitive_attr_create, (void **out))                                                           \
  X(primitive_attr_set_scratchpad_mode, (void *attr, int mode))                                    \
  X(primitive_attr_destroy, (void *attr))                                                          \
  X(convolution_forward_primitive_desc_create,                                                     \
    (void **out, void *engine, int kind, int algorithm, const void *in, const void *weights,       \
     const void *bias, const void *result, dnn_dims stride, dnn_dims dilation, dnn_dims before,    \
     dnn_dims behind, const void *attr))                                                           \
  X(reorder_primitive_desc_create, (void **out, const void *from, void *from_engine,               \
                                    const void *to, void *to_engine, const void *attr))            \
  X(primitive_desc_query, (const void *desc, int what, int index, void *result))                   \
  X(primitive_desc_destroy, (void *desc))                                                          \
  X(primitive_create, (void **out, const void *desc))                                              \
  X(primitive_execute, (const void *primitive, void *stream, int count, const dnn_arg *args))      \
  X(primitive_destroy, (void *primitive))

static struct {
  bool usable, sequential;
  char why[256]; /* not usable */
  void *engine;
#define DNN_MEMBER(name, parameters) int(*name) parameters;
  DNN_CALLS(DNN_MEMBER)
#undef DNN_MEMBER
  const void *(*query_md)(const void *desc, int what, int index); /* borrowed */
  size_t (*get_size)(const void *desc);                           /* bytes */
  int (*max_threads)(void);                                       /* OpenMP's */
  void (*set_threads)(int);
  int (*in_parallel)(void);
} dnn;

static const char file[] = "libdnnl.so.3";
static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Atomic bool forked; /* of a process that had opened it */

/* ---- opening --------------------------------------------------------------------------------- */

static void dnn_fork_child(void)
{
  atomic_store(&forked, true);
}

static bool refuse_library(const char *why)
{
  (void)snprintf(dnn.why, sizeof dnn.why, "%s", why);
  return false;
}

static bool take_dnn_functions(void *library)
{
  char why[96];
#define DNN_ROW(name, parameters)                                                                  \
  *(void **)&dnn.name = dlsym(library, "dnnl_" #name);                                             \
  if (!dnn.name) {                                                                                 \
    (void)snprintf(why, sizeof why, "%s has no dnnl_" #name, file);                                \
    return refuse_library(why);                                                                    \
  }
  DNN_CALLS(DNN_ROW)
#undef DNN_ROW
  *(void **)&dnn.query_md = dlsym(library, "dnnl_primitive_desc_query_md");
  *(void **)&dnn.get_size = dlsym(library, "dnnl_memory_desc_get_size");
  *(void **)&dnn.max_threads = dlsym(library, "omp_get_max_threads");
  *(void **)&dnn.set_threads = dlsym(library, "omp_set_num_threads");
  *(void **)&dnn.in_parallel = dlsym(library, "omp_in_parallel");
  if (dnn.query_md && dnn.get_size) return true;
  return refuse_library("libdnnl.so.3 has no dnnl_primitive_desc_query_md or "
                        "dnnl_memory_desc_get_size");
}

/* Whether its version and what its threads are made of serve. */
static bool take_dnn_version(void *library)
{
  char why[96];
  const dnn_version *(*version)(void);
  *(void **)&version = dlsym(library, "dnnl_version");
  const dnn_version *v = version ? version() : NULL;
  if (!v) return refuse_library("libdnnl.so.3 has no dnnl_version");
  if (v->major != 3) {
    (void)snprintf(why, sizeof why, "%s is of version %d.%d, not 3", file, v->major, v->minor);
    return refuse_library(why);
  }
  dnn.sequential = v->cpu == DNN_SEQUENTIAL;
  if (dnn.sequential || v->cpu == DNN_OPENMP) return true;
  return refuse_library(
      "libdnnl.so.3 has threads that are neither OpenMP's nor none, and cannot be "
      "held to a number of them");
}

static void open_dnn(void)
{
  void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char *why = dlerror();
    (void)refuse_library(why ? why : "libdnnl.so.3 cannot be opened");
    return;
  }
  bool good = take_dnn_version(library) && take_dnn_functions(library);
  if (good && !dnn.sequential && (!dnn.max_threads || !dnn.set_threads || !dnn.in_parallel))
    good = refuse_library("libdnnl.so.3 is on OpenMP, whose functions are not to be found");
  if (good && dnn.engine_create(&dnn.engine, DNN_CPU, 0) != DNN_OK)
    good = refuse_library("libdnnl.so.3 has no engine for the cpu");
  dnn.usable = good;
  if (good)
    (void)pthread_atfork(NULL, NULL, dnn_fork_child);
  else
    (void)dlclose(library);
}

/* ---- plans ----------------------------------------------------------------------------------- */

enum { PART_IN, PART_WEIGHTS, PART_OUT, PARTS };

/* A primitive, and the room it works in. */
typedef struct dnn_step {
  void *primitive; /* NULL: there is nothing to do */
  void *scratch;   /* a memory of what it works in; NULL: it needs none */
} dnn_step;

typedef struct dnn_plan {
  int64_t key[19]; /* the shape, the dtype and the number of threads */
  uint64_t used;   /* when it was put back */
  bool refused;
  void *stream, *bias;          /* a memory, as the next two; NULL: none */
  void *tensor[PARTS];          /* as Weir has it */
  void *inside[PARTS];          /* as the convolution wants it; NULL: the same */
  size_t bytes[PARTS], working; /* of `inside`; of what all steps work in, one after another */
  dnn_step convolution, reorder[PARTS];
} dnn_plan;

enum {
  PLANS = 64,
  LEAST = 1 << 18,      /* multiplications worth a plan */
  SHARE_BYTES = 4 << 20 /* of a share's input and output */
};
static dnn_plan *plans[PLANS]; /* under lock, as `clock` */
static uint64_t clock_now;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void free_step(dnn_step *s)
{
  if (s->primitive) (void)dnn.primitive_destroy(s->primitive);
  if (s->scratch) (void)dnn.memory_destroy(s->scratch);
  *s = (dnn_step){NULL, NULL};
}

static void empty_plan(dnn_plan *p)
{
  free_step(&p->convolution);
  for (int i = 0; i < PARTS; i++) {
    free_step(&p->reorder[i]);
    if (p->tensor[i]) (void)dnn.memory_destroy(p->tensor[i]);
    if (p->inside[i]) (void)dnn.memory_destroy(p->inside[i]);
    p->tensor[i] = p->inside[i] = NULL;
  }
  if (p->bias) (void)dnn.memory_destroy(p->bias);
  if (p->stream) (void)dnn.stream_destroy(p->stream);
  p->bias = p->stream = NULL;
}

static void drop_plan(dnn_plan *p)
{
  if (p) empty_plan(p);
  free(p);
}

/* c->n counts the images of a share. */
static void fill_key(int64_t *key, const weir_conv *c, int threads)
{
  const int64_t scalars[] = {c->n,    c->groups,        c->channels, c->outs, c->bias != NULL,
                             threads, (int64_t)c->dtype};
  const int64_t *const pairs[] = {c->size, c->kernel, c->stride, c->pad, c->dilation, c->result};
  for (int i = 0; i < 6; i++)
    memcpy(key + 2 * i, pairs[i], 2 * sizeof *key);
  memcpy(key + 12, scalars, sizeof scalars);
}

/* The plan of `key`, out of the table; NULL: none is there. */
static dnn_plan *take_plan(const int64_t *key)
{
  dnn_plan *p = NULL;
  (void)pthread_mutex_lock(&lock);
  for (int i = 0; i < PLANS && !p; i++)
    if (plans[i] && !memcmp(plans[i]->key, key, sizeof plans[i]->key)) {
      p = plans[i];
      plans[i] = NULL;
    }
  (void)pthread_mutex_unlock(&lock);
  return p;
}

/* Into a free place, or that of the plan that has been there longest. */
static void put_plan(dnn_plan *p)
{
  int at = 0;
  (void)pthread_mutex_lock(&lock);
  p->used = ++clock_now;
  for (int i = 0; i < PLANS && plans[at]; i++)
    if (!plans[i] || plans[i]->used < plans[at]->used) at = i;
  dnn_plan *old = plans[at];
  plans[at] = p;
  (void)pthread_mutex_unlock(&lock);
  drop_plan(old);
}

/* ---- making one ------------------------------------------------------------------------------ */

/* What a plan is made from; freed when it is made. */
typedef struct dnn_draft {
  void *plain[PARTS], *any[PARTS], *bias, *attr, *desc; /* desc: the convolution's */
} dnn_draft;

static void free_draft(dnn_draft *d)
{
  for (int i = 0; i < PARTS; i++) {
    if (d->plain[i]) (void)dnn.memory_desc_destroy(d->plain[i]);
    if (d->any[i]) (void)dnn.memory_desc_destroy(d->any[i]);
  }
  if (d->bias) (void)dnn.memory_desc_destroy(d->bias);
  if (d->attr) (void)dnn.primitive_attr_destroy(d->attr);
  if (d->desc) (void)dnn.primitive_desc_destroy(d->desc);
}

static const uint8_t dnn_types[WEIR_DTYPES] = {
    [WEIR_FLOAT16] = 1, [WEIR_BFLOAT16] = 2, [WEIR_FLOAT32] = 3};

static int describe_plain(void **out, int count, dnn_dims size, weir_dtype dtype)
{
  int64_t stride[12] = {0}, step = 1;
  for (int i = count - 1; i >= 0; i--) {
    stride[i] = step;
    step *= size[i];
  }
  return dnn.memory_desc_create_with_strides(out, count, size, dnn_types[dtype], stride);
}

static int describe_parts(dnn_draft *d, const weir_conv *c)
{
  int64_t planes = c->groups * c->outs;
  const int64_t sizes[PARTS][12] = {{c->n, c->groups * c->channels, c->size[0], c->size[1]},
                                    {c->groups, c->outs, c->channels, c->kernel[0], c->kernel[1]},
                                    {c->n, planes, c->result[0], c->result[1]}};
  int e = DNN_OK;
  for (int i = 0; i < PARTS && !e; i++) {
    bool grouped = i == PART_WEIGHTS && c->groups > 1;
    dnn_dims size = sizes[i] + (i == PART_WEIGHTS && !grouped);
    e = describe_plain(&d->plain[i], 4 + grouped, size, c->dtype);
    if (!e)
      e = dnn.memory_desc_create_with_tag(&d->any[i], 4 + grouped, size, dnn_types[c->dtype],
                                          DNN_TAG_ANY);
  }
  const int64_t outs[12] = {planes};
  if (!e && c->bias) e = describe_plain(&d->bias, 1, outs, c->dtype);
  if (!e) e = dnn.primitive_attr_create(&d->attr);
  return e ? e : dnn.primitive_attr_set_scratchpad_mode(d->attr, DNN_SCRATCH_USER);
}

/* Its dilation is 0 where the kernel's elements lie side by side. */
static int describe_convolution(dnn_draft *d, const weir_conv *c)
{
  int64_t stride[12] = {c->stride[0], c->stride[1]}, pad[12] = {c->pad[0], c->pad[1]};
  int64_t dilation[12] = {c->dilation[0] - 1, c->dilation[1] - 1};
  return dnn.convolution_forward_primitive_desc_create(
      &d->desc, dnn.engine, DNN_FORWARD_INFERENCE, DNN_DIRECT, d->any[PART_IN],
      d->any[PART_WEIGHTS], d->bias, d->any[PART_OUT], stride, dilation, pad, pad, d->attr);
}

static int make_step(dnn_step *s, dnn_plan *p, const void *desc)
{
  const void *scratch = dnn.query_md(desc, DNN_QUERY_SCRATCH, 0);
  size_t bytes = scratch ? dnn.get_size(scratch) : 0;
  int e = dnn.primitive_create(&s->primitive, desc);
  if (!e && bytes) e = dnn.memory_create(&s->scratch, scratch, dnn.engine, NULL);
  if (bytes > p->working) p->working = bytes;
  return e;
}

/* Tensor `part`, and what it is reordered to or from. */
static int make_part(dnn_plan *p, const dnn_draft *d, int part)
{
  static const int query[PARTS] = {DNN_QUERY_IN, DNN_QUERY_WEIGHTS, DNN_QUERY_OUT};
  const void *wanted = dnn.query_md(d->desc, query[part], 0), *plain = d->plain[part];
  void *reorder = NULL;
  int e = dnn.memory_create(&p->tensor[part], plain, dnn.engine, NULL);
  if (e || !wanted || dnn.memory_desc_equal(plain, wanted)) return e;
  bool out = part == PART_OUT;
  e = dnn.reorder_primitive_desc_create(&reorder, out ? wanted : plain, dnn.engine,
                                        out ? plain : wanted, dnn.engine, d->attr);
  if (e) return e;
  e = make_step(&p->reorder[part], p, reorder);
  (void)dnn.primitive_desc_destroy(reorder);
  if (!e) e = dnn.memory_create(&p->inside[part], wanted, dnn.engine, NULL);
  p->bytes[part] = dnn.get_size(wanted);
  return e;
}

/* Reference code is many times as slow as Weir's; so are 16 bits where the processor has no
 * instructions for them. */
static bool is_slow(const void *desc, weir_dtype dtype)
{
  const char *name = NULL;
  int e = dnn.primitive_desc_query(desc, DNN_QUERY_NAME, 0, &name);
  if (e || !name || !strncmp(name, "ref", 3)) return true;
  return dtype != WEIR_FLOAT32 && !strstr(name, "core_bf16") && !strstr(name, "core_fp16") &&
         !strstr(name, "amx");
}

static int make_all(dnn_plan *p, dnn_draft *d, const weir_conv *c)
{
  int e = describe_parts(d, c);
  if (!e) e = describe_convolution(d, c);
  if (e || is_slow(d->desc, c->dtype)) return e ? e : -1;
  e = make_step(&p->convolution, p, d->desc);
  for (int i = 0; i < PARTS && !e; i++)
    e = make_part(p, d, i);
  if (!e && c->bias) e = dnn.memory_create(&p->bias, d->bias, dnn.engine, NULL);
  return e ? e : dnn.stream_create(&p->stream, dnn.engine, DNN_IN_ORDER);
}

/* NULL: no memory. */
static dnn_plan *make_dnn_plan(const int64_t *key, const weir_conv *c)
{
  dnn_draft d = {.attr = NULL};
  dnn_plan *p = calloc(1, sizeof *p);
  if (!p) return NULL;
  memcpy(p->key, key, sizeof p->key);
  p->refused = make_all(p, &d, c) != DNN_OK;
  free_draft(&d);
  if (p->refused) empty_plan(p);
  return p;
}

/* ---- calculating ----------------------------------------------------------------------------- */

static size_t in_lines(size_t bytes)
{
  return (bytes + 63) / 64 * 64;
}

static int place_memory(void *memory, const void *data)
{
  return memory ? dnn.memory_set_data_handle(memory, (void *)data) : DNN_OK;
}

static int run_step(const dnn_plan *p, const dnn_step *s, dnn_arg *args, int count)
{
  if (!s->primitive) return DNN_OK;
  if (s->scratch) args[count++] = (dnn_arg){DNN_ARG_SCRATCH, s->scratch};
  return dnn.primitive_execute(s->primitive, p->stream, count, args);
}

static int run_reorder(const dnn_plan *p, int part)
{
  void *plain = p->tensor[part], *inside = p->inside[part];
  bool out = part == PART_OUT;
  dnn_arg args[3] = {{DNN_ARG_IN, out ? inside : plain}, {DNN_ARG_OUT, out ? plain : inside}};
  return run_step(p, &p->reorder[part], args, 2);
}

/* One share, whose tensors are where the memories are. */
static int run_share(const dnn_plan *p)
{
  void *at[PARTS];
  for (int i = 0; i < PARTS; i++)
    at[i] = p->inside[i] ? p->inside[i] : p->tensor[i];
  dnn_arg args[5] = {{DNN_ARG_IN, at[PART_IN]},
                     {DNN_ARG_WEIGHTS, at[PART_WEIGHTS]},
                     {DNN_ARG_OUT, at[PART_OUT]},
                     {DNN_ARG_BIAS, p->bias}};
  int e = run_reorder(p, PART_IN);
  if (!e) e = run_step(p, &p->convolution, args, p->bias ? 4 : 3);
  return e ? e : run_reorder(p, PART_OUT);
}

/* What stays where it is for all shares. */
static int place_fixed(const dnn_plan *p, const weir_conv *c, char *room)
{
  int e = place_memory(p->bias, c->bias);
  if (!e) e = place_memory(p->tensor[PART_WEIGHTS], c->weight);
  if (!e) e = place_memory(p->convolution.scratch, room);
  for (int i = 0; i < PARTS && !e; i++)
    e = place_memory(p->reorder[i].scratch, room);
  room += in_lines(p->working);
  for (int i = 0; i < PARTS && !e; i++) {
    e = place_memory(p->inside[i], room);
    room += in_lines(p->bytes[i]);
  }
  return e;
}

/* All shares, of `each` images. */
static int run_shares(const dnn_plan *p, const weir_conv *c, int64_t each)
{
  size_t item = cpu_dtype_bytes(c->dtype);
  size_t in = (size_t)(c->groups * c->channels * c->size[0] * c->size[1]) * item;
  size_t out = (size_t)(c->groups * c->outs * c->result[0] * c->result[1]) * item;
  int e = run_reorder(p, PART_WEIGHTS);
  for (int64_t i = 0; i < c->n && !e; i += each) {
    e = place_memory(p->tensor[PART_IN], (const char *)c->in + (size_t)i * in);
    if (!e) e = place_memory(p->tensor[PART_OUT], (char *)c->out + (size_t)i * out);
    if (!e) e = run_share(p);
  }
  int waited = dnn.stream_wait(p->stream);
  return e ? e : waited;
}

static bool calculate(const dnn_plan *p, const weir_conv *c, int64_t each)
{
  size_t bytes = in_lines(p->working) + 64;
  for (int i = 0; i < PARTS; i++)
    bytes += in_lines(p->bytes[i]);
  cpu_room *room = cpu_room_take(bytes);
  if (!room) return false;
  int e = place_fixed(p, c, room->data);
  if (!e) e = run_shares(p, c, each);
  cpu_room_give(room);
  return !e;
}

/* Images that are reordered and calculated at a time: the most that divide the batch and whose
 * tensors stay in cache, for each thread. */
static int64_t images_of_share(const weir_conv *c, int threads)
{
  int64_t image =
      c->groups * (c->channels * c->size[0] * c->size[1] + c->outs * c->result[0] * c->result[1]);
  int64_t each = SHARE_BYTES / (image * (int64_t)cpu_dtype_bytes(c->dtype)) * threads;
  if (each >= c->n) return c->n;
  while (each > 1 && c->n % each)
    each--;
  return each > 1 ? each : 1;
}

/* By a plan; false: oneDNN has none for it, or failed. */
static bool convolve_planned(const weir_conv *c, int threads)
{
  int64_t key[19];
  weir_conv share = *c;
  share.n = images_of_share(c, threads);
  fill_key(key, &share, threads);
  dnn_plan *p = take_plan(key);
  if (!p) p = make_dnn_plan(key, &share);
  if (!p) return false;
  bool done = !p->refused && calculate(p, c, share.n);
  put_plan(p);
  return done;
}

/* ---- which ----------------------------------------------------------------------------------- */

/* Whether it is quicker by oneDNN than by cpu/conv.c: measured on one thread of an EPYC with
 * AVX-512 and its instructions of bfloat16. Weir's float32 is as quick, or quicker, where a sum is
 * short (a few input channels, a small depthwise kernel), where oneDNN would fill its blocks of 16
 * output planes with zeros, and where all the kernel has is one element. */
static bool gains(const weir_conv *c)
{
  int64_t area = c->kernel[0] * c->kernel[1];
  double sums = (double)(c->n * c->groups * c->outs) * (double)(c->result[0] * c->result[1]);
  if (sums * (double)(c->channels * area) < LEAST) return false;
  if (c->dtype != WEIR_FLOAT32) return true;
  if (c->groups > 1 && c->channels == 1) return area >= 25;
  bool strided = c->stride[0] * c->stride[1] > 1, filled = c->outs % 16 == 0;
  return area > 1 && (filled || c->result[1] < 16) && (strided || c->channels >= 16);
}

weir_status cpu_conv_dnn(const weir_conv *c, bool *done)
{
  weir_blas which = weir_get_blas();
  bool asked = which == WEIR_BLAS_VENDOR;
  int threads = weir_get_num_threads();
  *done = false;
  if (!dnn_types[c->dtype] || which == WEIR_BLAS_BUILTIN || (!asked && !gains(c))) return WEIR_OK;
  if (atomic_load_explicit(&forked, memory_order_relaxed)) return WEIR_OK;
  (void)pthread_once(&once, open_dnn);
  if (!dnn.usable)
    return asked ? fail_unsupported(
                       "oneDNN was asked for (WEIR_BLAS_VENDOR) and cannot be used: %s", dnn.why)
                 : WEIR_OK;
  if (dnn.sequential) {
    *done = (threads == 1 || asked) && convolve_planned(c, 1);
    return WEIR_OK;
  }
  if (dnn.in_parallel()) return WEIR_OK;
  int before = dnn.max_threads();
  if (before != threads) dnn.set_threads(threads);
  *done = convolve_planned(c, threads);
  if (before != threads) dnn.set_threads(before);
  return WEIR_OK;
}
