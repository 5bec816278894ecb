/* test_faults.c: every Nth allocation and every Nth call of the driver failing: an error that is
 * worded, no result, nothing lost, operands whole, and the next try succeeds.
 *
 * The linker puts wrapped_* in the place of the C library's allocation functions in all objects of
 * the engine (rules.mk: --wrap). */
#include <errno.h>
#include "core/tensor/slots.h"
#include "tests/tensor/rig.h"

static unsigned fail_at; /* the Nth allocation from now fails; 0: none */
static bool met;
static int64_t live; /* allocations not freed */
static bool wrong;   /* a failure left a result, or a result was none; Check allocates, too */

/* Not hidden: the linker takes what sanitizers' libraries ask of malloc for requests of these. */
#pragma GCC visibility push(default)
void *__real_malloc(size_t bytes);
int __real_posix_memalign(void **out, size_t alignment, size_t bytes);
char *__real_strndup(const char *text, size_t most);
void __real_free(void *memory);
void *__wrap_malloc(size_t bytes);
int __wrap_posix_memalign(void **out, size_t alignment, size_t bytes);
char *__wrap_strndup(const char *text, size_t most);
void __wrap_free(void *memory);
#pragma GCC visibility pop

static bool allocation_fails(void)
{
  bool now = fail_at && !--fail_at;
  met |= now;
  return now;
}

void *__wrap_malloc(size_t bytes)
{
  void *out = allocation_fails() ? NULL : __real_malloc(bytes);
  live += out != NULL;
  return out;
}

int __wrap_posix_memalign(void **out, size_t alignment, size_t bytes)
{
  if (allocation_fails()) return ENOMEM;
  int bad = __real_posix_memalign(out, alignment, bytes);
  live += !bad;
  return bad;
}

char *__wrap_strndup(const char *text, size_t most)
{
  char *out = allocation_fails() ? NULL : __real_strndup(text, most);
  live += out != NULL;
  return out;
}

void __wrap_free(void *memory)
{
  live -= memory != NULL;
  __real_free(memory);
}

/* ---- what is tried --------------------------------------------------------------------------- */

enum { TENSORS = 24 };

typedef struct operands {
  weir_tensor *host, *near, *far, *pinned, *turned;
} operands;

typedef struct made {
  weir_tensor *t[TENSORS];
  int count;
  weir_status st;
} made;

/* One step: a function that makes a tensor, which a failure leaves NULL. */
#define ATTEMPT(m, call)                                                                           \
  do {                                                                                             \
    weir_tensor **out = &(m)->t[(m)->count];                                                       \
    if (!(m)->st && ((m)->st = (call)))                                                            \
      wrong |= *out != NULL;                                                                       \
    else if (!(m)->st)                                                                             \
      (m)->count++;                                                                                \
  } while (0)

static void make_and_view(made *m, const operands *o)
{
  weir_options on_near = on(cuda0), pin = {.pin_memory = true};
  ATTEMPT(m, weir_zeros(out, weir_shape(3, 200), NULL));
  ATTEMPT(m, weir_full(out, weir_shape(3), weir_float(1), &on_near));
  ATTEMPT(m, weir_ones(out, weir_shape(5), &pin));
  ATTEMPT(m, weir_arange(out, weir_int(0), weir_int(5), weir_int(1), &on_near));
  ATTEMPT(m, weir_rand(out, weir_shape(5), NULL));
  ATTEMPT(m, weir_tensor_from(out, (const float[]){1, 2}, WEIR_FLOAT32, weir_shape(2), &on_near));
  ATTEMPT(m, weir_view(out, o->host, weir_shape(-1)));
  ATTEMPT(m, weir_reshape(out, o->turned, weir_shape(-1)));
  ATTEMPT(m, weir_ones_like(out, o->turned, NULL));
}

static void convert(made *m, const operands *o)
{
  weir_options odd = as(WEIR_FLOAT64, cuda1), home = {.device = cpu, .non_blocking = true};
  ATTEMPT(m, weir_to(out, o->turned, &odd));
  ATTEMPT(m, weir_to(out, o->near, &odd));
  ATTEMPT(m, weir_to(out, o->far, &home));
  ATTEMPT(m, weir_cuda(out, o->pinned, cuda0, true));
  ATTEMPT(m, weir_clone(out, o->near));
  ATTEMPT(m, weir_contiguous(out, o->turned));
  ATTEMPT(m, weir_pin_memory(out, o->host));
}

static void change(made *m, operands *o)
{
  weir_scalar v;
  double x[6];
  char *text = NULL;
  if (!m->st) m->st = weir_tensor_set_name(o->host, "host");
  if (!m->st) m->st = weir_copy_(o->turned, o->near, true);
  if (!m->st) m->st = weir_copy_(o->near, o->turned, false);
  if (!m->st) m->st = weir_tensor_read(x, sizeof x, WEIR_FLOAT64, o->far);
  WEIR_TENSOR one = NULL;
  if (!m->st) m->st = weir_flatten(&one, o->near, 0, -1);
  weir_tensor_drop(&one);
  if (!m->st) m->st = weir_slice(&one, o->host, 0, 0, 1, 1);
  weir_tensor_drop(&one);
  weir_tensor *piece[3];
  int count = 0;
  if (!m->st) m->st = weir_chunk(piece, &count, o->host, 3, 1);
  for (int i = 0; i < count; i++)
    weir_tensor_release(piece[i]);
  if (!m->st && !(m->st = weir_narrow(&one, o->near, 0, 1, 1))) {
    WEIR_TENSOR last = NULL;
    m->st = weir_narrow(&last, one, 1, 2, 1);
    if (!m->st) m->st = weir_item(&v, last);
    if (!m->st) wrong |= v.f != 5;
  }
  if (m->st) return;
  m->st = weir_tensor_to_string(&text, o->far);
  if (m->st) wrong |= text != NULL;
  __real_free(text); /* made within the C library */
}

/* Everything; all of its tensors are given back, whatever came of it. */
static weir_status everything(operands *o)
{
  made m = {.count = 0};
  make_and_view(&m, o);
  convert(&m, o);
  change(&m, o);
  while (m.count)
    weir_tensor_release(m.t[--m.count]);
  (void)weir_synchronize(cuda0);
  (void)weir_synchronize(cuda1);
  return m.st;
}

static operands o;

static void make_fault_tensors(void)
{
  devices(2);
  slot_list_most = 0; /* every tensor is an allocation */
  o.host = counting(weir_shape(2, 3), WEIR_FLOAT32, cpu);
  o.near = counting(weir_shape(2, 3), WEIR_FLOAT32, cuda0);
  o.far = counting(weir_shape(2, 3), WEIR_FLOAT32, cuda1);
  weir_ok(weir_pin_memory(&o.pinned, o.host));
  WEIR_TENSOR t = NULL;
  weir_ok(weir_tensor_from(&t, (const float[]){0, 3, 1, 4, 2, 5}, WEIR_FLOAT32, weir_shape(3, 2),
                           NULL));
  weir_ok(weir_t(&o.turned, t));
  weir_ok(everything(&o)); /* pools, streams and caches are there now */
  weir_ok(everything(&o));
}

static void operands_are_whole(void)
{
  const weir_tensor *all[] = {o.host, o.near, o.far, o.pinned, o.turned};
  for (int i = 0; i < 5; i++)
    EXPECT(all[i], 0, 1, 2, 3, 4, 5);
}

static uint64_t allocated_on_all_devices(void)
{
  weir_pinned_stats pinned;
  weir_ok(weir_pinned_get_stats(&pinned));
  return weir_memory_allocated(cuda0) + weir_memory_allocated(cuda1) +
         (uint64_t)(pinned.active_bytes - pinned.pending_bytes);
}

START_TEST(every_host_allocation_fails_once)
{
  make_fault_tensors();
  weir_ok(weir_tensor_set_name(o.host, NULL));
  uint64_t bytes = allocated_on_all_devices();
  int64_t blocks = live;
  unsigned n = 0;
  do {
    met = false;
    fail_at = ++n;
    weir_status st = everything(&o);
    fail_at = 0;
    ck_assert(!wrong);
    if (st) ck_assert_msg(st == WEIR_ENOMEM && met, "%u: %s", n, weir_error_message());
    operands_are_whole();
    ck_assert_uint_eq(allocated_on_all_devices(), bytes);
    weir_ok(weir_tensor_set_name(o.host, NULL));
    ck_assert_int_le(live, blocks);
  } while (met);
  ck_assert_uint_gt(n, 40);
}
END_TEST

static const char *const calls[] = {"cuMemCreate",          "cuMemMap",
                                    "cuMemHostRegister_v2", "cuMemcpyHtoDAsync_v2",
                                    "cuMemcpyDtoHAsync_v2", "cuMemcpyDtoDAsync_v2",
                                    "cuMemcpyPeerAsync",    "cuStreamSynchronize",
                                    "cuEventRecord",        "cuStreamWaitEvent",
                                    "cuEventCreate",        "cuLaunchKernel"};

START_TEST(every_call_of_the_driver_fails_once)
{
  char list[64];
  const char *name = calls[_i];
  make_fault_tensors();
  if (!rig_simulated()) return;
  uint64_t bytes = allocated_on_all_devices();
  bool reached = true;
  for (unsigned n = 1; reached && n < 200; n++) {
    weir_ok(weir_memory_empty_cache(cuda0));
    weir_ok(weir_memory_empty_cache(cuda1));
    weir_ok(weir_pinned_empty_cache());
    uint64_t before = rig_calls(name);
    (void)snprintf(list, sizeof list, "%s:%u=2", name, n);
    rig_fail(list);
    weir_status st = everything(&o);
    reached = rig_calls(name) - before >= n;
    rig_fail(NULL);
    ck_assert_msg(!st || st == WEIR_EOOM || st == WEIR_ECUDA, "%s %u: %s", name, n,
                  weir_error_message());
    ck_assert(!wrong && (!st || reached));
    weir_ok(everything(&o));
    operands_are_whole();
    ck_assert_uint_eq(allocated_on_all_devices(), bytes);
  }
}
END_TEST

int main(void)
{
  const TTest *const once[] = {every_host_allocation_fails_once, NULL};
  const TTest *const each[] = {every_call_of_the_driver_fails_once, NULL};
  int failed = rig_run("tensor/faults of the host", once, 1);
  return rig_run("tensor/faults of the device", each, sizeof calls / sizeof *calls) || failed;
}
