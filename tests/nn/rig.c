/* rig.c: see rig.h. */
#include "tests/nn/rig.h"

#include <dlfcn.h>
#include <math.h>
#include <stdatomic.h>
#include <unistd.h>
#include "cuda/sim/control.h"

void rig_devices(int count)
{
  char text[16];
  (void)snprintf(text, sizeof text, "%d", count);
  ck_assert_int_eq(setenv("WEIR_SIM_DEVICES", text, 1), 0);
}

void rig_logged(weir_log_level level, const char *text, void *user)
{
  rig_log *log = user;
  log->count++;
  log->level = level;
  (void)snprintf(log->text, sizeof log->text, "%s", text);
}

/* ---- tensors --------------------------------------------------------------------------------- */

weir_tensor *rig_tensor(weir_shape shape, weir_device device, unsigned seed)
{
  int64_t n = 1;
  for (int i = 0; i < shape.count; i++)
    n *= shape.size[i];
  float *v = calloc((size_t)n + 1, sizeof *v);
  ck_assert_ptr_nonnull(v);
  uint32_t state = seed * 2654435761u + 1;
  for (int64_t i = 0; i < n; i++) {
    state = state * 1664525u + 1013904223u;
    v[i] = (float)(state >> 8) / (float)(1 << 23) - 1;
  }
  weir_tensor *t;
  weir_ok(weir_tensor_from(&t, v, WEIR_FLOAT32, shape, &(weir_options){.device = device}));
  free(v);
  return t;
}

weir_tensor *rig_count(int64_t start, weir_shape shape)
{
  int64_t n = 1;
  for (int i = 0; i < shape.count; i++)
    n *= shape.size[i];
  int64_t *v = calloc((size_t)n + 1, sizeof *v);
  ck_assert_ptr_nonnull(v);
  for (int64_t i = 0; i < n; i++)
    v[i] = start + i;
  weir_tensor *t;
  weir_ok(weir_tensor_from(&t, v, WEIR_INT64, shape, &(weir_options){.device = CPU}));
  free(v);
  return t;
}

bool rig_on(const weir_tensor *t, weir_device device)
{
  return weir_device_equal(weir_tensor_device(t), device);
}

static double *numbers(const weir_tensor *t)
{
  size_t bytes = (size_t)weir_tensor_numel(t) * sizeof(double);
  double *v = malloc(bytes + 1);
  ck_assert_ptr_nonnull(v);
  weir_ok(weir_tensor_read(v, bytes, WEIR_FLOAT64, t));
  return v;
}

void rig_same(const weir_tensor *a, const weir_tensor *b, double most)
{
  weir_shape x = weir_tensor_shape(a), y = weir_tensor_shape(b);
  ck_assert_int_eq(x.count, y.count);
  for (int i = 0; i < x.count; i++)
    ck_assert_int_eq(x.size[i], y.size[i]);
  double *v = numbers(a), *w = numbers(b);
  for (int64_t i = 0; i < weir_tensor_numel(a); i++)
    ck_assert_msg(fabs(v[i] - w[i]) <= most, "place %lld: %.9g and %.9g", (long long)i, v[i], w[i]);
  free(v);
  free(w);
}

double rig_number(const weir_tensor *t, int64_t i)
{
  ck_assert_int_lt(i, weir_tensor_numel(t));
  double *v = numbers(t), out = v[i];
  free(v);
  return out;
}

/* ---- host memory ------------------------------------------------------------------------------
 * The linker sends the engine's requests here (--wrap in rules.mk). */

static _Atomic int64_t until;
static _Atomic bool failed;

void rig_fail_host(int64_t nth)
{
  atomic_store(&failed, false);
  atomic_store(&until, nth);
}

bool rig_failed_host(void)
{
  return atomic_load(&failed);
}

static bool allocation_fails_now(void)
{
  if (atomic_load(&until) <= 0 || atomic_fetch_sub(&until, 1) != 1) return false;
  atomic_store(&failed, true);
  return true;
}

/* Not hidden: the linker takes what sanitizers' libraries ask of malloc for requests of these. */
#pragma GCC visibility push(default)
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
char *__real_strdup(const char *text);
int __real_posix_memalign(void **out, size_t alignment, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
char *__wrap_strdup(const char *text);
int __wrap_posix_memalign(void **out, size_t alignment, size_t size);
#pragma GCC visibility pop

void *__wrap_malloc(size_t size)
{
  return allocation_fails_now() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
  return allocation_fails_now() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size)
{
  return allocation_fails_now() ? NULL : __real_realloc(old, size);
}

char *__wrap_strdup(const char *text)
{
  return allocation_fails_now() ? NULL : __real_strdup(text);
}

int __wrap_posix_memalign(void **out, size_t alignment, size_t size)
{
  return allocation_fails_now() ? 12 : __real_posix_memalign(out, alignment, size);
}

/* ---- the software device --------------------------------------------------------------------- */

/* A function of control.h. */
static void *of_the_device(const char *name)
{
  void *library = dlopen("libcuda.so.1", RTLD_NOW), *f = library ? dlsym(library, name) : NULL;
  ck_assert(f != NULL);
  return f;
}

static void control(const char *name, weir_stream *stream)
{
  int (*call)(void *);
  void *native;
  *(void **)&call = of_the_device(name);
  weir_ok(weir_stream_native(&native, stream));
  ck_assert_int_eq(call(native), 0);
}

void rig_hold(weir_stream *stream)
{
  control("weir_sim_hold", stream);
}

void rig_release(weir_stream *stream)
{
  control("weir_sim_release", stream);
}

void rig_fail_driver(const char *list)
{
  int (*set)(const char *);
  *(void **)&set = of_the_device("weir_sim_set_fail");
  ck_assert_int_eq(set(list), 0);
}

/* ---- files ----------------------------------------------------------------------------------- */

static char folder[32], path[64];

const char *rig_file(const char *name)
{
  if (!*folder) {
    strcpy(folder, "/tmp/weir-nn-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
  }
  (void)snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

void rig_forget(void)
{
  if (*path) (void)unlink(path);
  if (*folder) (void)rmdir(folder);
  *folder = *path = 0;
}

/* ---- running --------------------------------------------------------------------------------- */

TCase *rig_case(Suite *suite)
{
  TCase *c = tcase_create("all");
  tcase_set_timeout(c, 0);
  suite_add_tcase(suite, c);
  return c;
}

int rig_run(Suite *suite)
{
  static const char *const of_the_user[] = {
      "CUDA_VISIBLE_DEVICES", "WEIR_SIM_FAIL",   "WEIR_SIM_LINK",  "WEIR_SIM_COUNTS",
      "CUDA_LAUNCH_BLOCKING", "WEIR_SIM_MEMORY", "WEIR_ALLOC_CONF"};
  for (size_t i = 0; i < sizeof of_the_user / sizeof *of_the_user; i++)
    (void)unsetenv(of_the_user[i]);
  SRunner *runner = srunner_create(suite);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}
