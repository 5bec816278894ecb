/* dnnl_plain.c: a oneDNN that calculates by plain loops: the functions of its C interface, version
 * 3, that core/backend/cpu/dnn.c calls. Its soname is libdnnl.so.3, so that who has opened it by
 * its path has it found under that name.
 *
 * It is as strict as the documentation of oneDNN: descriptors and memories of the right shapes,
 * data and scratchpads in place, as many threads of OpenMP where a primitive runs as where it was
 * made. Where the layout is left to it, images have their channels last and weights their elements
 * backwards, so that nothing comes out right without reorders. It works in float32 and bfloat16. */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "core/backend/half.h"

#pragma GCC visibility push(default)

enum { OK, NO_MEMORY, INVALID, UNIMPLEMENTED, FAILED = 5 };
enum { MOST = 12, CONVOLUTION = 1, REORDER = 2, SCRATCH = 256 };

typedef struct version {
  int major, minor, patch;
  const char *hash;
  unsigned cpu, gpu;
} version;

typedef struct layout {
  int count, type, any, unused;            /* no padding: it is compared by its bytes */
  int64_t size[MOST], stride[MOST], first; /* element 0's place */
} layout;

typedef struct memory {
  layout of;
  char *data;
} memory;

typedef struct work {
  int kind, threads;
  bool has_bias;
  layout in, weights, bias, out, scratch; /* a reorder is from `in` to `out` */
  int64_t stride[2], dilation[2], pad[2];
} work;

typedef struct argument {
  int which;
  memory *at;
} argument;

/* For the test. */
static _Atomic int live, convolutions, fail_in = -1, parallel, last_threads;
static _Thread_local int omp_threads = 7;
static version said = {3, 2, 0, "of the tests", 2, 0};
static const char *name = "plain:core_bf16";

int plain_dnnl_live(void);          /* objects that exist */
int plain_dnnl_convolutions(void);  /* so far */
int plain_dnnl_last_threads(void);  /* that the last convolution was allowed */
void plain_dnnl_fail_in(int calls); /* the call after so many fails; -1: none does */
bool plain_dnnl_has_failed(void);
void plain_dnnl_be(int major, unsigned runtime, const char *implementation);
void plain_dnnl_in_parallel(int is);

int plain_dnnl_live(void)
{
  return atomic_load(&live);
}

int plain_dnnl_convolutions(void)
{
  return atomic_load(&convolutions);
}

int plain_dnnl_last_threads(void)
{
  return atomic_load(&last_threads);
}

void plain_dnnl_fail_in(int calls)
{
  atomic_store(&fail_in, calls);
}

bool plain_dnnl_has_failed(void)
{
  return atomic_load(&fail_in) < 0;
}

void plain_dnnl_be(int major, unsigned runtime, const char *implementation)
{
  said.major = major, said.cpu = runtime, name = implementation;
}

void plain_dnnl_in_parallel(int is)
{
  atomic_store(&parallel, is);
}

static bool refuses_call(void)
{
  if (atomic_load(&fail_in) < 0) return false;
  return atomic_fetch_sub(&fail_in, 1) == 0;
}

static int made(void **out, const void *from, size_t bytes)
{
  if (refuses_call()) return NO_MEMORY;
  *out = malloc(bytes);
  if (!*out) return NO_MEMORY;
  memcpy(*out, from, bytes);
  atomic_fetch_add(&live, 1);
  return OK;
}

static int object_ended(void *object)
{
  if (!object) return INVALID;
  atomic_fetch_sub(&live, 1);
  free(object);
  return OK;
}

/* ---- OpenMP ---------------------------------------------------------------------------------- */

int omp_get_max_threads(void);
void omp_set_num_threads(int n);
int omp_in_parallel(void);

int omp_get_max_threads(void)
{
  return omp_threads;
}

void omp_set_num_threads(int n)
{
  omp_threads = n;
}

int omp_in_parallel(void)
{
  return atomic_load(&parallel);
}

/* ---- objects --------------------------------------------------------------------------------- */

const version *dnnl_version(void);
const version *dnnl_version(void)
{
  return &said;
}

int dnnl_engine_create(void **out, int kind, size_t index);
int dnnl_engine_create(void **out, int kind, size_t index)
{
  return kind == 1 && index == 0 ? made(out, "engine", 7) : INVALID;
}

int dnnl_stream_create(void **out, void *engine, unsigned flags);
int dnnl_stream_create(void **out, void *engine, unsigned flags)
{
  return engine && flags == 1 ? made(out, "stream", 7) : INVALID;
}

int dnnl_stream_wait(void *stream);
int dnnl_stream_wait(void *stream)
{
  return refuses_call() ? FAILED : stream ? OK : INVALID;
}

int dnnl_memory_desc_create_with_strides(void **out, int count, const int64_t *size, int type,
                                         const int64_t *stride);
int dnnl_memory_desc_create_with_strides(void **out, int count, const int64_t *size, int type,
                                         const int64_t *stride)
{
  layout l = {.count = count, .type = type};
  if (count < 1 || count > MOST) return INVALID;
  memcpy(l.size, size, (size_t)count * sizeof *size);
  memcpy(l.stride, stride, (size_t)count * sizeof *stride);
  return made(out, &l, sizeof l);
}

int dnnl_memory_desc_create_with_tag(void **out, int count, const int64_t *size, int type, int tag);
int dnnl_memory_desc_create_with_tag(void **out, int count, const int64_t *size, int type, int tag)
{
  layout l = {.count = count, .type = type, .any = 1};
  if (count < 1 || count > MOST || tag != 1) return INVALID;
  memcpy(l.size, size, (size_t)count * sizeof *size);
  return made(out, &l, sizeof l);
}

int dnnl_memory_desc_equal(const layout *a, const layout *b);
int dnnl_memory_desc_equal(const layout *a, const layout *b)
{
  return !memcmp(a, b, sizeof *a);
}

static int64_t elements(const layout *l)
{
  int64_t n = 1;
  for (int i = 0; i < l->count; i++)
    n *= l->size[i];
  return n;
}

size_t dnnl_memory_desc_get_size(const layout *l);
size_t dnnl_memory_desc_get_size(const layout *l)
{
  return l->count ? (size_t)elements(l) * (l->type == 3 ? 4 : 2) : 0;
}

int dnnl_memory_create(void **out, const layout *of, void *engine, void *data);
int dnnl_memory_create(void **out, const layout *of, void *engine, void *data)
{
  if (!engine || !of || of->any || data) return INVALID;
  memory m = {.of = *of};
  return made(out, &m, sizeof m);
}

int dnnl_memory_set_data_handle(memory *m, void *data);
int dnnl_memory_set_data_handle(memory *m, void *data)
{
  if (refuses_call()) return INVALID;
  m->data = data;
  return OK;
}

int dnnl_primitive_attr_create(void **out);
int dnnl_primitive_attr_create(void **out)
{
  int mode = 0;
  return made(out, &mode, sizeof mode);
}

int dnnl_primitive_attr_set_scratchpad_mode(int *attr, int mode);
int dnnl_primitive_attr_set_scratchpad_mode(int *attr, int mode)
{
  if (refuses_call()) return INVALID;
  *attr = mode;
  return OK;
}

#define ENDED(object)                                                                              \
  int dnnl_##object##_destroy(void *it);                                                           \
  int dnnl_##object##_destroy(void *it)                                                            \
  {                                                                                                \
    return object_ended(it);                                                                       \
  }
ENDED(stream)
ENDED(memory_desc)
ENDED(memory)
ENDED(primitive_attr)
ENDED(primitive_desc)
ENDED(primitive)

/* ---- what is to be done ---------------------------------------------------------------------- */

/* Channels last. */
static void choose_images(layout *l)
{
  if (!l->any) return;
  l->any = 0;
  l->stride[1] = 1;
  l->stride[3] = l->size[1];
  l->stride[2] = l->stride[3] * l->size[3];
  l->stride[0] = l->stride[2] * l->size[2];
}

/* Backwards. */
static void choose_weights(layout *l)
{
  int64_t step = 1;
  if (!l->any) return;
  l->any = 0;
  l->first = elements(l) - 1;
  for (int i = l->count - 1; i >= 0; i--) {
    l->stride[i] = -step;
    step *= l->size[i];
  }
}

static bool layouts_fit(const work *w)
{
  int g = w->weights.count - 4;
  const int64_t *in = w->in.size, *k = w->weights.size, *out = w->out.size;
  bool good = w->in.count == 4 && w->out.count == 4 && (g == 0 || g == 1) && in[0] == out[0];
  int64_t groups = g ? k[0] : 1;
  good = good && in[1] == groups * k[g + 1] && out[1] == groups * k[g];
  for (int i = 0; i < 2 && good; i++) {
    int64_t reach = (k[g + 2 + i] - 1) * (w->dilation[i] + 1) + 1;
    good = (in[2 + i] + 2 * w->pad[i] - reach) / w->stride[i] + 1 == out[2 + i];
  }
  return good && (!w->has_bias || (w->bias.count == 1 && w->bias.size[0] == out[1]));
}

static int desc_of(void **out, work *w, const int *attr)
{
  w->threads = omp_get_max_threads();
  if (!attr || *attr != 1) return INVALID;
  w->scratch = (layout){.count = 1, .type = 3, .size = {SCRATCH / 4}, .stride = {1}};
  return made(out, w, sizeof *w);
}

int dnnl_convolution_forward_primitive_desc_create(void **out, void *engine, int kind,
                                                   int algorithm, const layout *in,
                                                   const layout *weights, const layout *bias,
                                                   const layout *result, const int64_t *stride,
                                                   const int64_t *dilation, const int64_t *before,
                                                   const int64_t *behind, const int *attr);
int dnnl_convolution_forward_primitive_desc_create(void **out, void *engine, int kind,
                                                   int algorithm, const layout *in,
                                                   const layout *weights, const layout *bias,
                                                   const layout *result, const int64_t *stride,
                                                   const int64_t *dilation, const int64_t *before,
                                                   const int64_t *behind, const int *attr)
{
  work w = {.kind = CONVOLUTION, .in = *in, .weights = *weights, .out = *result};
  w.has_bias = bias;
  if (bias) w.bias = *bias;
  memcpy(w.stride, stride, sizeof w.stride);
  memcpy(w.dilation, dilation, sizeof w.dilation);
  memcpy(w.pad, before, sizeof w.pad);
  if (!engine || kind != 96 || algorithm != 1 || memcmp(before, behind, sizeof w.pad) != 0 ||
      !layouts_fit(&w))
    return INVALID;
  if (in->type != 3 && in->type != 2) return UNIMPLEMENTED;
  choose_images(&w.in);
  choose_weights(&w.weights);
  choose_images(&w.out);
  return desc_of(out, &w, attr);
}

int dnnl_reorder_primitive_desc_create(void **out, const layout *from, void *from_engine,
                                       const layout *to, void *to_engine, const int *attr);
int dnnl_reorder_primitive_desc_create(void **out, const layout *from, void *from_engine,
                                       const layout *to, void *to_engine, const int *attr)
{
  work w = {.kind = REORDER, .in = *from, .out = *to};
  if (!from_engine || !to_engine || from->count != to->count || from->type != to->type)
    return INVALID;
  return desc_of(out, &w, attr);
}

const layout *dnnl_primitive_desc_query_md(const work *w, int what, int index);
const layout *dnnl_primitive_desc_query_md(const work *w, int what, int index)
{
  if (index) return NULL;
  return what == 129   ? &w->in
         : what == 131 ? &w->weights
         : what == 133 ? &w->out
         : what == 136 ? &w->scratch
                       : NULL;
}

int dnnl_primitive_desc_query(const work *w, int what, int index, const char **result);
int dnnl_primitive_desc_query(const work *w, int what, int index, const char **result)
{
  if (refuses_call() || !w || what != 8 || index) return INVALID;
  *result = name;
  return OK;
}

int dnnl_primitive_create(void **out, const work *w);
int dnnl_primitive_create(void **out, const work *w)
{
  if (w->threads != omp_get_max_threads()) return INVALID;
  return made(out, w, sizeof *w);
}

/* ---- doing it -------------------------------------------------------------------------------- */

static double value(const memory *m, int64_t at)
{
  if (m->of.type == 3) return ((const float *)(const void *)m->data)[at];
  return bfloat16_to_float(((const uint16_t *)(const void *)m->data)[at]);
}

static void put_value(const memory *m, int64_t at, double x)
{
  if (m->of.type == 3)
    ((float *)(void *)m->data)[at] = (float)x;
  else
    ((uint16_t *)(void *)m->data)[at] = float_to_bfloat16((float)x);
}

static int64_t place_of(const layout *l, const int64_t *at)
{
  int64_t place = l->first;
  for (int i = 0; i < l->count; i++)
    place += at[i] * l->stride[i];
  return place;
}

static void reorder(const memory *from, const memory *to)
{
  int64_t at[MOST];
  for (int64_t n = 0; n < elements(&from->of); n++) {
    int64_t rest = n;
    for (int i = from->of.count - 1; i >= 0; i--) {
      at[i] = rest % from->of.size[i];
      rest /= from->of.size[i];
    }
    put_value(to, place_of(&to->of, at), value(from, place_of(&from->of, at)));
  }
}

/* at: image, channel, row, column. */
static double sum_at(const work *w, memory *const *m, const int64_t *at)
{
  int g = w->weights.count - 4;
  const int64_t *k = w->weights.size, outs = k[g], ins = k[g + 1];
  double sum = w->has_bias ? value(m[2], at[1]) : 0;
  for (int64_t n = 0; n < ins * k[g + 2] * k[g + 3]; n++) {
    int64_t x = n % k[g + 3], y = n / k[g + 3] % k[g + 2], c = n / k[g + 3] / k[g + 2];
    int64_t from[4] = {at[0], at[1] / outs * ins + c,
                       at[2] * w->stride[0] - w->pad[0] + y * (w->dilation[0] + 1),
                       at[3] * w->stride[1] - w->pad[1] + x * (w->dilation[1] + 1)};
    int64_t by[5] = {at[1] / outs, at[1] % outs, c, y, x};
    if (from[2] < 0 || from[2] >= w->in.size[2] || from[3] < 0 || from[3] >= w->in.size[3])
      continue;
    sum += value(m[0], place_of(&w->in, from)) * value(m[1], place_of(&w->weights, by + !g));
  }
  return sum;
}

static void convolve(const work *w, memory *const *m)
{
  const int64_t *s = w->out.size;
  for (int64_t n = 0; n < elements(&w->out); n++) {
    int64_t at[4] = {n / s[3] / s[2] / s[1], n / s[3] / s[2] % s[1], n / s[3] % s[2], n % s[3]};
    put_value(m[3], place_of(&w->out, at), sum_at(w, m, at));
  }
  atomic_store(&last_threads, omp_get_max_threads());
  atomic_fetch_add(&convolutions, 1);
}

/* The argument `which`, which is laid out so and has data; NULL: it is not. */
static memory *argument_of(const argument *args, int count, int which, const layout *of)
{
  for (int i = 0; i < count; i++)
    if (args[i].which == which)
      return args[i].at && args[i].at->data && dnnl_memory_desc_equal(&args[i].at->of, of)
                 ? args[i].at
                 : NULL;
  return NULL;
}

int dnnl_primitive_execute(const work *w, void *stream, int count, const argument *args);
int dnnl_primitive_execute(const work *w, void *stream, int count, const argument *args)
{
  memory *scratch = argument_of(args, count, 80, &w->scratch);
  memory *m[4] = {argument_of(args, count, 1, &w->in), argument_of(args, count, 33, &w->weights),
                  argument_of(args, count, 41, &w->bias), argument_of(args, count, 17, &w->out)};
  if (refuses_call()) return FAILED;
  if (!stream || !scratch || !m[0] || !m[3] || w->threads != omp_get_max_threads()) return INVALID;
  memset(scratch->data, 0xff, SCRATCH);
  if (w->kind == REORDER) {
    reorder(m[0], m[3]);
    return OK;
  }
  if (!m[1] || (w->has_bias && !m[2])) return INVALID;
  convolve(w, m);
  return OK;
}
