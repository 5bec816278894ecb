/* test_dlpack.c: tensors given to and taken from another library, which is this file: it knows
 * DLPack's structs by their documented layout only. Devices are scripted (tests/memory/fake.h). */
#include <pthread.h>
#include <string.h>
#include "core/memory/pool.h"
#include "tests/io/io.h"
#include "tests/memory/fake.h"

#define MIB (UINT64_C(1) << 20)

/* dlpack.h 1.1, as its documentation lays it out on a 64-bit machine. */
_Static_assert(sizeof(weir_dlpack_tensor) == 48, "DLTensor");
_Static_assert(offsetof(weir_dlpack_tensor, device) == 8, "DLTensor.device");
_Static_assert(offsetof(weir_dlpack_tensor, ndim) == 16, "DLTensor.ndim");
_Static_assert(offsetof(weir_dlpack_tensor, dtype) == 20, "DLTensor.dtype");
_Static_assert(offsetof(weir_dlpack_tensor, shape) == 24, "DLTensor.shape");
_Static_assert(offsetof(weir_dlpack_tensor, strides) == 32, "DLTensor.strides");
_Static_assert(offsetof(weir_dlpack_tensor, byte_offset) == 40, "DLTensor.byte_offset");
_Static_assert(offsetof(weir_dlpack, manager_ctx) == 8, "DLManagedTensorVersioned.manager_ctx");
_Static_assert(offsetof(weir_dlpack, deleter) == 16, "DLManagedTensorVersioned.deleter");
_Static_assert(offsetof(weir_dlpack, flags) == 24, "DLManagedTensorVersioned.flags");
_Static_assert(offsetof(weir_dlpack, tensor) == 32, "DLManagedTensorVersioned.dl_tensor");
_Static_assert(offsetof(weir_dlpack_unversioned, manager_ctx) == 48, "DLManagedTensor.manager_ctx");
_Static_assert(offsetof(weir_dlpack_unversioned, deleter) == 56, "DLManagedTensor.deleter");

static const weir_device gpu = WEIR_CUDA_INIT(0);
static fake f;

static void attach(void)
{
  fake_init(&f, 256 * MIB, 2 * MIB);
  must(weir_memory_attach(&f.backend, NULL));
}

static void detach(void)
{
  must(weir_memory_detach(gpu));
  ck_assert(fake_clean(&f));
  fake_fini(&f);
}

/* ---- giving ---------------------------------------------------------------------------------- */

START_TEST(every_dtype_has_its_code_and_comes_back)
{
  static const struct {
    weir_dtype dtype;
    uint8_t code, bits;
  } all[] = {{WEIR_UINT8, 1, 8},    {WEIR_INT8, 0, 8},     {WEIR_INT16, 0, 16},
             {WEIR_INT32, 0, 32},   {WEIR_INT64, 0, 64},   {WEIR_FLOAT16, 2, 16},
             {WEIR_FLOAT32, 2, 32}, {WEIR_FLOAT64, 2, 64}, {WEIR_COMPLEX64, 5, 64},
             {WEIR_BOOL, 6, 8},     {WEIR_BFLOAT16, 4, 16}};
  WEIR_TENSOR t = NULL;
  WEIR_TENSOR back = NULL;
  weir_dlpack *d;
  must(weir_zeros(&t, weir_shape(2, 3), &(weir_options){.dtype = all[_i].dtype}));
  must(weir_to_dlpack(&d, t, NULL));
  ck_assert_uint_eq(d->version.major, 1);
  ck_assert_uint_eq(d->flags, 0);
  ck_assert_ptr_eq(d->tensor.data, weir_tensor_data(t));
  ck_assert_int_eq(d->tensor.device.type, WEIR_DLPACK_CPU);
  ck_assert_int_eq(d->tensor.device.index, 0);
  ck_assert_uint_eq(d->tensor.dtype.code, all[_i].code);
  ck_assert_uint_eq(d->tensor.dtype.bits, all[_i].bits);
  ck_assert_uint_eq(d->tensor.dtype.lanes, 1);
  ck_assert_uint_eq(d->tensor.byte_offset, 0);
  must(weir_from_dlpack(&back, d, NULL));
  ck_assert_int_eq(weir_tensor_dtype(back), all[_i].dtype);
  ck_assert_ptr_eq(weir_tensor_data(back), weir_tensor_data(t));
}
END_TEST

START_TEST(a_view_is_given_with_its_strides)
{
  float values[6] = {0, 1, 2, 3, 4, 5};
  WEIR_TENSOR t = NULL;
  WEIR_TENSOR v = NULL;
  WEIR_TENSOR s = NULL;
  weir_dlpack *d;
  must(weir_tensor_from(&t, values, WEIR_FLOAT32, weir_shape(2, 3), NULL));
  must(weir_t(&v, t));
  must(weir_slice(&s, v, 0, 1, 3, 1));
  must(weir_to_dlpack(&d, s, NULL));
  ck_assert_int_eq(d->tensor.ndim, 2);
  ck_assert_int_eq(d->tensor.shape[0], 2);
  ck_assert_int_eq(d->tensor.strides[0], 1);
  ck_assert_int_eq(d->tensor.strides[1], 3);
  ck_assert_float_eq(*(float *)d->tensor.data, 1);
  d->deleter(d);
}
END_TEST

START_TEST(the_memory_stays_until_the_deleter_is_called)
{
  int32_t values[3] = {1, 2, 3};
  weir_tensor *t;
  weir_dlpack *d;
  weir_dlpack_unversioned *u;
  must(weir_tensor_from(&t, values, WEIR_INT32, weir_shape(3), NULL));
  must(weir_to_dlpack(&d, t, NULL));
  must(weir_to_dlpack_unversioned(&u, t, NULL));
  weir_tensor_release(t);
  ck_assert(memcmp(d->tensor.data, values, sizeof values) == 0);
  d->deleter(d);
  ck_assert(memcmp(u->tensor.data, values, sizeof values) == 0);
  u->deleter(u);
}
END_TEST

START_TEST(a_copy_is_the_consumers_alone)
{
  int32_t values[2] = {1, 2};
  WEIR_TENSOR t = NULL;
  weir_dlpack *d;
  must(weir_tensor_from(&t, values, WEIR_INT32, weir_shape(2), NULL));
  must(weir_to_dlpack(&d, t, &(weir_dlpack_options){.copy = true, .read_only = true}));
  ck_assert_uint_eq(d->flags, WEIR_DLPACK_IS_COPIED | WEIR_DLPACK_READ_ONLY);
  ck_assert_ptr_ne(d->tensor.data, weir_tensor_data(t));
  ck_assert(memcmp(d->tensor.data, values, sizeof values) == 0);
  d->deleter(d);
}
END_TEST

START_TEST(nothing_at_all_has_no_data)
{
  WEIR_TENSOR t = NULL;
  WEIR_TENSOR back = NULL;
  weir_dlpack *d;
  must(weir_zeros(&t, weir_shape(2, 0), NULL));
  must(weir_to_dlpack(&d, t, NULL));
  ck_assert_ptr_null(d->tensor.data);
  must(weir_from_dlpack(&back, d, NULL));
  ck_assert_int_eq(weir_tensor_size(back, 0), 2);
  ck_assert_int_eq(weir_tensor_numel(back), 0);
}
END_TEST

START_TEST(what_cannot_be_given_is_refused)
{
  WEIR_TENSOR t = NULL;
  weir_dlpack *d = (weir_dlpack *)&t;
  weir_dlpack_unversioned *u;
  must(weir_zeros(&t, weir_shape(2), NULL));
  must_fail(weir_to_dlpack(&d, t, &(weir_dlpack_options){.stream = 1}), WEIR_EINVAL, "no streams");
  ck_assert_ptr_null(d);
  must_fail(weir_to_dlpack(&d, t, &(weir_dlpack_options){.stream = -2}), WEIR_EINVAL, "-2 is not");
  must_fail(weir_to_dlpack(&d, NULL, NULL), WEIR_EINVAL, "weir_to_dlpack: t is NULL");
  must_fail(weir_to_dlpack_unversioned(&u, t, &(weir_dlpack_options){.read_only = true}),
            WEIR_EINVAL, "read-only");
  must(weir_to_dlpack(&d, t, &(weir_dlpack_options){.stream = WEIR_DLPACK_STREAM_NO_SYNC}));
  d->deleter(d);
}
END_TEST

/* ---- taking ---------------------------------------------------------------------------------- */

typedef struct foreign {
  weir_dlpack d;
  weir_dlpack_unversioned u;
  int64_t shape[9], strides[9];
  double values[8];
  int deleted;
} foreign;

static void count_versioned(weir_dlpack *self)
{
  ((foreign *)self->manager_ctx)->deleted++;
}

static void count_plain(weir_dlpack_unversioned *self)
{
  ((foreign *)self->manager_ctx)->deleted++;
}

/* A 2 x 3 tensor of float64 in row-major order. */
static foreign make_foreign_tensor(void)
{
  foreign x = {.shape = {2, 3}, .strides = {3, 1}, .values = {0, 1, 2, 3, 4, 5, 6, 7}};
  x.d.version.major = 1;
  x.d.deleter = count_versioned;
  x.d.tensor.device.type = WEIR_DLPACK_CPU;
  x.d.tensor.ndim = 2;
  x.d.tensor.dtype.code = WEIR_DLPACK_FLOAT;
  x.d.tensor.dtype.bits = 64;
  x.d.tensor.dtype.lanes = 1;
  return x;
}

static void settle(foreign *x)
{
  x->d.manager_ctx = x->u.manager_ctx = x;
  x->d.tensor.data = x->values;
  x->d.tensor.shape = x->shape;
  x->d.tensor.strides = x->strides;
  x->u.tensor = x->d.tensor;
  x->u.deleter = count_plain;
}

START_TEST(the_deleter_is_called_with_the_last_tensor)
{
  foreign x = make_foreign_tensor();
  weir_tensor *t, *view;
  settle(&x);
  if (_i)
    must(weir_from_dlpack_unversioned(&t, &x.u, NULL));
  else
    must(weir_from_dlpack(&t, &x.d, NULL));
  ck_assert_ptr_eq(weir_tensor_data(t), x.values);
  must(weir_t(&view, t));
  weir_tensor_release(t);
  ck_assert_int_eq(x.deleted, 0);
  weir_tensor_release(view);
  ck_assert_int_eq(x.deleted, 1);
}
END_TEST

START_TEST(nobody_is_told_where_there_is_no_deleter)
{
  foreign x = make_foreign_tensor();
  weir_tensor *t;
  settle(&x);
  x.d.deleter = NULL;
  must(weir_from_dlpack(&t, &x.d, NULL));
  weir_tensor_release(t);
  x.u.deleter = NULL;
  must(weir_from_dlpack_unversioned(&t, &x.u, NULL));
  weir_tensor_release(t);
}
END_TEST

START_TEST(offset_and_strides_are_followed)
{
  foreign x = make_foreign_tensor();
  double seen[4], want[4] = {1, 7, 2, 8};
  weir_tensor *t;
  settle(&x);
  double more[16];
  for (int i = 0; i < 16; i++)
    more[i] = i;
  x.d.tensor.data = more;
  x.d.tensor.byte_offset = 8;
  x.shape[0] = x.shape[1] = 2;
  x.strides[0] = 1;
  x.strides[1] = 6;
  must(weir_from_dlpack(&t, &x.d, NULL));
  must(weir_tensor_read(seen, sizeof seen, WEIR_FLOAT64, t));
  ck_assert_mem_eq(seen, want, sizeof seen);
  weir_tensor_release(t);
  x.d.tensor.strides = NULL; /* row-major, as versions before 1.2 may say */
  must(weir_from_dlpack(&t, &x.d, NULL));
  ck_assert_int_eq(weir_tensor_stride(t, 0), 2);
  weir_tensor_release(t);
}
END_TEST

START_TEST(read_only_needs_a_word)
{
  foreign x = make_foreign_tensor();
  weir_tensor *t;
  settle(&x);
  x.d.flags = WEIR_DLPACK_READ_ONLY;
  must_fail(weir_from_dlpack(&t, &x.d, NULL), WEIR_EINVAL, "read-only");
  ck_assert_int_eq(x.deleted, 0);
  must(weir_from_dlpack(&t, &x.d, &(weir_dlpack_options){.copy = true}));
  ck_assert_int_eq(x.deleted, 1);
  ck_assert_ptr_ne(weir_tensor_data(t), x.values);
  ck_assert_mem_eq(weir_tensor_data(t), x.values, 48);
  weir_tensor_release(t);
  must(weir_from_dlpack(&t, &x.d, &(weir_dlpack_options){.read_only = true}));
  ck_assert_ptr_eq(weir_tensor_data(t), x.values);
  weir_tensor_release(t);
  must(weir_from_dlpack_unversioned(&t, &x.u, &(weir_dlpack_options){.copy = true}));
  ck_assert_ptr_ne(weir_tensor_data(t), x.values);
  weir_tensor_release(t);
}
END_TEST

/* Each changes one thing. */
static void bad_version(foreign *x)
{
  x->d.version.major = 2;
}
static void bad_code(foreign *x)
{
  x->d.tensor.dtype.code = 3;
}
static void bad_bits(foreign *x)
{
  x->d.tensor.dtype.bits = 128;
}
static void bad_lanes(foreign *x)
{
  x->d.tensor.dtype.lanes = 2;
}
static void bad_device(foreign *x)
{
  x->d.tensor.device.type = 4;
}
static void bad_index(foreign *x)
{
  x->d.tensor.device.type = WEIR_DLPACK_CUDA;
  x->d.tensor.device.index = -1;
}
static void bad_rank(foreign *x)
{
  x->d.tensor.ndim = 9;
}
static void bad_negative_rank(foreign *x)
{
  x->d.tensor.ndim = -1;
}
static void bad_no_shape(foreign *x)
{
  x->d.tensor.shape = NULL;
}
static void bad_size(foreign *x)
{
  x->shape[1] = -3;
}
static void bad_sizes(foreign *x)
{
  x->shape[0] = x->shape[1] = INT64_C(1) << 40;
}
static void bad_stride(foreign *x)
{
  x->strides[1] = -1;
}
static void bad_strides(foreign *x)
{
  x->strides[0] = INT64_MAX;
}
static void bad_far(foreign *x)
{
  x->strides[0] = INT64_MAX / 8;
}
static void bad_data(foreign *x)
{
  x->d.tensor.data = NULL;
}
static void bad_offset(foreign *x)
{
  x->d.tensor.byte_offset = 1;
}
static void bad_wrap(foreign *x)
{
  x->d.tensor.byte_offset = (uint64_t)-64;
}
static void bad_end(foreign *x)
{
  x->d.tensor.byte_offset = (uint64_t)-8 - (uintptr_t)x->d.tensor.data;
}

static const struct {
  void (*change)(foreign *x);
  weir_status status;
  const char *words;
} bad[] = {{bad_version, WEIR_EVERSION, "DLPack 2.0"},
           {bad_code, WEIR_ENOTSUP, "code 3"},
           {bad_bits, WEIR_ENOTSUP, "128 bits"},
           {bad_lanes, WEIR_ENOTSUP, "2 lanes"},
           {bad_device, WEIR_ENOTSUP, "device type 4"},
           {bad_index, WEIR_ENOTSUP, "index -1"},
           {bad_rank, WEIR_ENOTSUP, "9 dimensions"},
           {bad_negative_rank, WEIR_EINVAL, "-1 dimensions"},
           {bad_no_shape, WEIR_EINVAL, "without a shape"},
           {bad_size, WEIR_EINVAL, "negative dimension -3"},
           {bad_sizes, WEIR_EINVAL, "overflow"},
           {bad_stride, WEIR_EINVAL, "negative strides"},
           {bad_strides, WEIR_EINVAL, "strides of a DLPack tensor overflow"},
           {bad_far, WEIR_EINVAL, "strides of a DLPack tensor overflow"},
           {bad_data, WEIR_EINVAL, "without data"},
           {bad_offset, WEIR_EINVAL, "not aligned to 8"},
           {bad_wrap, WEIR_EINVAL, "beyond all memory"},
           {bad_end, WEIR_EINVAL, "beyond all memory"}};

START_TEST(what_cannot_be_taken_stays_the_callers)
{
  foreign x = make_foreign_tensor();
  weir_tensor *t = (weir_tensor *)&x;
  settle(&x);
  bad[_i].change(&x);
  must_fail(weir_from_dlpack(&t, &x.d, NULL), bad[_i].status, bad[_i].words);
  ck_assert_ptr_null(t);
  ck_assert_int_eq(x.deleted, 0);
}
END_TEST

START_TEST(nothing_is_no_tensor)
{
  weir_tensor *t;
  must_fail(weir_from_dlpack(&t, NULL, NULL), WEIR_EINVAL, "from is NULL");
  must_fail(weir_from_dlpack_unversioned(&t, NULL, NULL), WEIR_EINVAL, "from is NULL");
}
END_TEST

/* ---- devices --------------------------------------------------------------------------------- */

static weir_tensor *on_gpu(int64_t count)
{
  weir_tensor *t;
  must(weir_empty(&t, weir_shape(count), &(weir_options){.device = gpu}));
  return t;
}

static int done;

static void finish(void *argument)
{
  (void)argument;
  done++;
}

START_TEST(the_consumers_stream_waits_for_the_producers)
{
  weir_stream *own;
  weir_tensor *t = on_gpu(8);
  weir_dlpack *d;
  intptr_t consumer = (intptr_t)fake_handle(&f, 2);
  must(weir_stream_from_native(&own, gpu, fake_handle(&f, 1)));
  must(weir_set_current_stream(own));
  fake_hold(&f, 1);
  fake_submit(&f, 1, finish, NULL);
  must(weir_to_dlpack(&d, t, &(weir_dlpack_options){.stream = consumer}));
  ck_assert_uint_eq(f.syncs, 0);
  int before = done;
  fake_submit(&f, 2, finish, NULL);
  ck_assert_int_eq(done, before); /* behind the producer's work, which is held */
  fake_release(&f, 1);
  ck_assert_int_eq(done, before + 2);
  ck_assert_int_eq(d->tensor.device.type, WEIR_DLPACK_CUDA);
  d->deleter(d);
  weir_tensor_release(t);
}
END_TEST

START_TEST(nobody_waits_where_it_is_not_asked_for_or_one_stream)
{
  static const intptr_t same[] = {WEIR_DLPACK_STREAM_NONE, WEIR_DLPACK_STREAM_LEGACY,
                                  WEIR_DLPACK_STREAM_NO_SYNC};
  weir_tensor *t = on_gpu(8);
  weir_dlpack *d;
  for (int i = 0; i < 3; i++) {
    uint64_t waits = f.waits;
    must(weir_to_dlpack(&d, t, &(weir_dlpack_options){.stream = same[i]}));
    ck_assert_uint_eq(f.waits, waits);
    d->deleter(d);
  }
  weir_tensor_release(t);
}
END_TEST

START_TEST(a_handshake_that_fails_gives_nothing)
{
  weir_tensor *t = on_gpu(8);
  for (uint64_t n = 1; n <= 3; n++) { /* making the event, recording it, waiting */
    weir_dlpack *d = (weir_dlpack *)&t;
    fake_fail(&f, n, false, WEIR_ECUDA);
    weir_status st =
        weir_to_dlpack(&d, t, &(weir_dlpack_options){.stream = (intptr_t)fake_handle(&f, 2)});
    fake_fail(&f, 0, false, WEIR_OK);
    ck_assert_int_eq(st, WEIR_ECUDA);
    ck_assert_ptr_null(d);
  }
  weir_tensor_release(t);
}
END_TEST

START_TEST(a_block_given_away_is_not_given_out_again)
{
  weir_tensor *t = on_gpu(1 << 20);
  void *data = weir_tensor_data(t);
  weir_dlpack *d;
  must(weir_to_dlpack(&d, t, NULL));
  must_fail(weir_memory_unexport((char *)data + 4096), WEIR_EINVAL, "");
  weir_tensor_release(t);
  weir_tensor *other = on_gpu(1 << 20);
  ck_assert_ptr_ne(weir_tensor_data(other), data);
  weir_tensor_release(other);
  d->deleter(d);
  other = on_gpu(1 << 20);
  ck_assert_ptr_eq(weir_tensor_data(other), data);
  must_fail(weir_memory_unexport(data), WEIR_EINVAL, "not exported");
  weir_tensor_release(other);
}
END_TEST

static void *delete_there(void *argument)
{
  weir_dlpack *d = argument;
  d->deleter(d);
  return NULL;
}

START_TEST(the_deleter_may_be_called_from_any_thread)
{
  pthread_t thread;
  weir_tensor *t = on_gpu(100);
  weir_dlpack *d;
  must(weir_to_dlpack(&d, t, NULL));
  weir_tensor_release(t);
  ck_assert_int_eq(pthread_create(&thread, NULL, delete_there, d), 0);
  ck_assert_int_eq(pthread_join(thread, NULL), 0);
  ck_assert_uint_eq(weir_memory_allocated(gpu), 0);
}
END_TEST

START_TEST(device_memory_comes_back_as_itself)
{
  weir_tensor *t = on_gpu(6), *back;
  weir_dlpack *d;
  must(weir_to_dlpack(&d, t, NULL));
  must(weir_from_dlpack(&back, d, NULL));
  ck_assert_ptr_eq(weir_tensor_data(back), weir_tensor_data(t));
  ck_assert(weir_tensor_is_cuda(back));
  weir_tensor_release(t);
  weir_tensor_release(back);
  ck_assert_uint_eq(weir_memory_allocated(gpu), 0);
}
END_TEST

START_TEST(managed_memory_is_on_its_device)
{
  foreign x = make_foreign_tensor();
  weir_tensor *t;
  settle(&x);
  x.d.tensor.device.type = WEIR_DLPACK_CUDA_MANAGED;
  must(weir_from_dlpack(&t, &x.d, NULL));
  ck_assert(weir_tensor_is_cuda(t));
  weir_tensor_release(t);
  x.d.tensor.device.index = 63;
  ck_assert_int_ne(weir_from_dlpack(&t, &x.d, NULL), WEIR_OK);
  ck_assert_int_eq(x.deleted, 1);
}
END_TEST

/* A part of a complex number is enough for the host. */
START_TEST(complex_numbers_of_a_device_are_aligned_as_wholes)
{
  foreign x = make_foreign_tensor();
  weir_tensor *t;
  settle(&x);
  x.d.tensor.dtype.code = WEIR_DLPACK_COMPLEX;
  x.d.tensor.dtype.bits = 64;
  x.d.tensor.byte_offset += 4;
  x.d.tensor.device.type = WEIR_DLPACK_CUDA_MANAGED;
  must_fail(weir_from_dlpack(&t, &x.d, NULL), WEIR_EINVAL, "not aligned to 8");
  x.d.tensor.device.type = WEIR_DLPACK_CPU;
  must(weir_from_dlpack(&t, &x.d, NULL));
  weir_tensor_release(t);
  ck_assert_int_eq(x.deleted, 1);
}
END_TEST

START_TEST(pinned_memory_stays_pinned)
{
  weir_tensor *t, *back;
  weir_dlpack *d;
  must(weir_empty(&t, weir_shape(10), &(weir_options){.pin_memory = true}));
  must(weir_to_dlpack(&d, t, NULL));
  ck_assert_int_eq(d->tensor.device.type, WEIR_DLPACK_CUDA_HOST);
  ck_assert_int_eq(d->tensor.device.index, 0);
  must(weir_from_dlpack(&back, d, NULL));
  ck_assert(weir_tensor_is_pinned(back));
  ck_assert(!weir_tensor_is_cuda(back));
  weir_tensor_release(t);
  weir_tensor_release(back);
}
END_TEST

START_TEST(a_producer_is_told_the_current_stream)
{
  intptr_t s;
  weir_stream *own;
  must(weir_dlpack_stream(&s, WEIR_CPU));
  ck_assert_int_eq(s, WEIR_DLPACK_STREAM_NONE);
  must(weir_dlpack_stream(&s, gpu));
  ck_assert_int_eq(s, WEIR_DLPACK_STREAM_LEGACY);
  must(weir_stream_from_native(&own, gpu, fake_handle(&f, 3)));
  WEIR_WITH_STREAM(own)
  {
    must(weir_dlpack_stream(&s, gpu));
    ck_assert_ptr_eq((void *)s, fake_handle(&f, 3));
  }
}
END_TEST

int main(void)
{
  Suite *s = suite_create("io/dlpack");
  TCase *c = tcase_create("cpu"), *d = tcase_create("devices");
  tcase_add_loop_test(c, every_dtype_has_its_code_and_comes_back, 0, 11);
  tcase_add_test(c, a_view_is_given_with_its_strides);
  tcase_add_test(c, the_memory_stays_until_the_deleter_is_called);
  tcase_add_test(c, a_copy_is_the_consumers_alone);
  tcase_add_test(c, nothing_at_all_has_no_data);
  tcase_add_test(c, what_cannot_be_given_is_refused);
  tcase_add_loop_test(c, the_deleter_is_called_with_the_last_tensor, 0, 2);
  tcase_add_test(c, nobody_is_told_where_there_is_no_deleter);
  tcase_add_test(c, offset_and_strides_are_followed);
  tcase_add_test(c, read_only_needs_a_word);
  tcase_add_loop_test(c, what_cannot_be_taken_stays_the_callers, 0, sizeof bad / sizeof *bad);
  tcase_add_test(c, nothing_is_no_tensor);
  tcase_add_checked_fixture(d, attach, detach);
  tcase_add_test(d, the_consumers_stream_waits_for_the_producers);
  tcase_add_test(d, nobody_waits_where_it_is_not_asked_for_or_one_stream);
  tcase_add_test(d, a_handshake_that_fails_gives_nothing);
  tcase_add_test(d, a_block_given_away_is_not_given_out_again);
  tcase_add_test(d, the_deleter_may_be_called_from_any_thread);
  tcase_add_test(d, device_memory_comes_back_as_itself);
  tcase_add_test(d, managed_memory_is_on_its_device);
  tcase_add_test(d, complex_numbers_of_a_device_are_aligned_as_wholes);
  tcase_add_test(d, pinned_memory_stays_pinned);
  tcase_add_test(d, a_producer_is_told_the_current_stream);
  suite_add_tcase(s, c);
  suite_add_tcase(s, d);
  return run_io_suite(s);
}
