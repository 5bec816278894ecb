/* test_life.c: counts, names, what a tensor says of itself, and memory of somebody else's. */
#include <malloc.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
#include "core/memory/devices.h"
#include "tests/tensor/rig.h"

static int released;

static void count_release(void *context)
{
  released += *(int *)context;
}

START_TEST(a_tensor_lives_until_its_last_count)
{
  devices(2);
  weir_tensor *t = counting(weir_shape(3), WEIR_FLOAT32, device(_i)), *again;
  again = weir_tensor_retain(t);
  ck_assert_ptr_eq(again, t);
  weir_tensor_release(t);
  EXPECT(again, 0, 1, 2);
  weir_tensor_drop(&again);
  ck_assert_ptr_null(again);
  weir_tensor_release(NULL);
  weir_tensor_drop(&again);
  ck_assert_ptr_null(weir_tensor_retain(NULL));
  if (_i) ck_assert_uint_eq(weir_memory_allocated(device(_i)), 0);
}
END_TEST

START_TEST(it_describes_itself)
{
  devices(2);
  WEIR_TENSOR t = counting(weir_shape(2, 3), WEIR_INT32, device(_i));
  ck_assert_int_eq(weir_tensor_dim(t), 2);
  ck_assert_int_eq(weir_tensor_numel(t), 6);
  ck_assert_int_eq(weir_tensor_size(t, 0), 2);
  ck_assert_int_eq(weir_tensor_size(t, -1), 3);
  ck_assert_int_eq(weir_tensor_size(t, 2), -1);
  ck_assert_int_eq(weir_tensor_size(t, -3), -1);
  ck_assert_int_eq(weir_tensor_stride(t, 0), 3);
  ck_assert_int_eq(weir_tensor_stride(t, 2), 0);
  shape_is(t, weir_shape(2, 3));
  ck_assert_str_eq(weir_tensor_type(t), _i ? "weir.cuda.IntTensor" : "weir.IntTensor");
  ck_assert_ptr_nonnull(weir_tensor_data(t));
  if (!_i) ck_assert_int_eq(((int32_t *)weir_tensor_data(t))[5], 5);
}
END_TEST

START_TEST(names_are_copied_and_cut)
{
  char name[100];
  WEIR_TENSOR t = counting(weir_shape(1), WEIR_FLOAT32, cpu);
  ck_assert_str_eq(weir_tensor_name(t), "");
  memset(name, 'x', sizeof name);
  name[99] = 0;
  weir_ok(weir_tensor_set_name(t, name));
  ck_assert_uint_eq(strlen(weir_tensor_name(t)), 63);
  weir_ok(weir_tensor_set_name(t, "weight"));
  ck_assert_str_eq(weir_tensor_name(t), "weight");
  weir_ok(weir_tensor_set_name(t, NULL));
  ck_assert_str_eq(weir_tensor_name(t), "");
}
END_TEST

START_TEST(large_memory_is_aligned)
{
  for (int64_t n = 1; n < 5000; n = n * 3 + 1) {
    WEIR_TENSOR t = NULL;
    weir_ok(weir_empty(&t, weir_shape(n), NULL));
    ck_assert_uint_eq((uintptr_t)weir_tensor_data(t) % (n > 128 ? 64 : 16), 0);
    memset(weir_tensor_data(t), 0, (size_t)n * sizeof(float));
  }
}
END_TEST

START_TEST(memory_of_others_is_given_back_once_with_the_last_view)
{
  float memory[6] = {0, 1, 2, 3, 4, 5};
  int one = 1;
  weir_tensor *t, *v;
  int64_t strides[] = {1, 2};
  weir_ok(weir_tensor_over(&t, memory, weir_shape(2, 3), strides, NULL, count_release, &one));
  EXPECT(t, 0, 2, 4, 1, 3, 5);
  is_on(t, cpu);
  weir_ok(weir_select(&v, t, 0, 1));
  weir_tensor_release(t);
  ck_assert_int_eq(released, 0);
  weir_ok(weir_fill_(v, weir_int(9)));
  weir_tensor_release(v);
  ck_assert_int_eq(released, 1);
  ck_assert(memory[0] == 0 && memory[1] == 9 && memory[3] == 9 && memory[5] == 9);
}
END_TEST

START_TEST(memory_of_the_device_is_taken_too)
{
  devices(1);
  void *memory;
  WEIR_TENSOR t = NULL;
  weir_options o = as(WEIR_INT32, cuda0);
  WEIR_TENSOR from = counting(weir_shape(4), WEIR_INT32, cpu);
  weir_ok(weir_malloc(&memory, 16, cuda0, NULL));
  weir_ok(weir_tensor_over(&t, memory, weir_shape(4), NULL, &o, NULL, NULL));
  is_on(t, cuda0);
  ck_assert_ptr_eq(weir_tensor_data(t), memory);
  weir_ok(weir_copy_(t, from, false));
  EXPECT(t, 0, 1, 2, 3);
  weir_tensor_drop(&t);
  ck_assert_int_eq(weir_tensor_over(&t, (char *)memory + 2, weir_shape(2), NULL, &o, NULL, NULL),
                   WEIR_EINVAL);
  ck_assert_ptr_nonnull(strstr(weir_error_message(), "is not aligned to 4 bytes"));
  ck_assert_ptr_null(t);
  weir_ok(weir_free(memory));
}
END_TEST

/* Loops on the cpu read whole registers, and a compiler may think that what it reads is aligned. */
START_TEST(memory_that_is_not_aligned_is_refused_or_copied)
{
  _Alignas(16) char memory[40] = {0};
  float x[2] = {1, 2}, y[2];
  WEIR_TENSOR t = NULL;
  weir_options parts = {.dtype = WEIR_COMPLEX64};
  refused_with(WEIR_EINVAL, "is not aligned to 4 bytes",
               weir_tensor_over(&t, memory + 1, weir_shape(4), NULL, NULL, NULL, NULL));
  refused_with(WEIR_EINVAL, "is not aligned to 4 bytes",
               weir_tensor_over(&t, memory + 2, weir_shape(4), NULL, &parts, NULL, NULL));
  ck_assert_ptr_null(t);
  weir_ok(weir_tensor_over(&t, memory + 4, weir_shape(4), NULL, &parts, NULL, NULL));
  weir_tensor_drop(&t);
  weir_ok(weir_tensor_over(&t, memory + 1, weir_shape(0), NULL, NULL, NULL, NULL));
  weir_tensor_drop(&t);
  memcpy(memory + 1, x, sizeof x);
  weir_ok(weir_tensor_from(&t, memory + 1, WEIR_FLOAT32, weir_shape(2), NULL));
  EXPECT(t, 1, 2);
  weir_ok(weir_tensor_read(memory + 19, sizeof y, WEIR_FLOAT32, t));
  memcpy(y, memory + 19, sizeof y);
  ck_assert(y[0] == 1 && y[1] == 2);
}
END_TEST

START_TEST(memory_that_cannot_be_shown_is_refused_and_not_given_back)
{
  float x[4];
  int one = 1;
  weir_tensor *t;
  weir_options pin = {.pin_memory = true};
  refused(WEIR_EINVAL, "weir_tensor_over: data is NULL",
          weir_tensor_over(&t, NULL, weir_shape(2), NULL, NULL, count_release, &one));
  refused(WEIR_EINVAL, "memory of somebody else's is not pinned by a tensor over it",
          weir_tensor_over(&t, x, weir_shape(2), NULL, &pin, count_release, &one));
  refused(WEIR_EINVAL, "Negative strides are not supported at the moment, got strides: [-1]",
          weir_tensor_over(&t, x, weir_shape(2), (const int64_t[]){-1}, NULL, count_release, &one));
  refused(WEIR_EINVAL, "Storage size calculation overflowed with strides=[9223372036854775807, 1]",
          weir_tensor_over(&t, x, weir_shape(2, 2), (const int64_t[]){INT64_MAX, 1}, NULL,
                           count_release, &one));
  ck_assert_ptr_null(t);
  ck_assert_int_eq(released, 0);
  weir_ok(weir_tensor_over(&t, NULL, weir_shape(0), NULL, NULL, count_release, &one));
  weir_tensor_release(t);
  ck_assert_int_eq(released, 1);
}
END_TEST

static void *count_up_and_down(void *t)
{
  for (int i = 0; i < 20000; i++) {
    weir_tensor *v;
    if (weir_slice(&v, t, 0, 1, 3, 1)) return t;
    weir_tensor_release(weir_tensor_retain(v));
    weir_tensor_release(v);
  }
  return NULL;
}

START_TEST(threads_may_count_and_view_one_tensor)
{
  devices(2);
  pthread_t thread[4];
  WEIR_TENSOR t = counting(weir_shape(4), WEIR_FLOAT32, device(_i));
  for (int i = 0; i < 4; i++)
    ck_assert_int_eq(pthread_create(&thread[i], NULL, count_up_and_down, t), 0);
  for (int i = 0; i < 4; i++) {
    void *failed;
    ck_assert_int_eq(pthread_join(thread[i], &failed), 0);
    ck_assert_ptr_null(failed);
  }
  EXPECT(t, 0, 1, 2, 3);
}
END_TEST

static void *make_one(void *unused)
{
  (void)unused;
  weir_options o = on(cuda0);
  weir_tensor *t = NULL;
  (void)weir_empty(&t, weir_shape(5), &o);
  return t;
}

START_TEST(a_tensor_outlives_the_thread_that_made_it)
{
  devices(1);
  pthread_t thread;
  void *made;
  ck_assert_int_eq(pthread_create(&thread, NULL, make_one, NULL), 0);
  ck_assert_int_eq(pthread_join(thread, &made), 0);
  WEIR_TENSOR t = made;
  WEIR_TENSOR from = counting(weir_shape(5), WEIR_FLOAT32, cpu);
  weir_ok(weir_copy_(t, from, false));
  EXPECT(t, 0, 1, 2, 3, 4);
}
END_TEST

START_TEST(a_forked_child_may_use_the_cpus_and_release_all)
{
  devices(1);
  weir_options pin = {.pin_memory = true};
  weir_tensor *a = counting(weir_shape(4), WEIR_FLOAT32, cpu),
              *b = counting(weir_shape(4), WEIR_FLOAT32, cuda0), *p, *out;
  weir_ok(weir_empty(&p, weir_shape(4), &pin));
  pid_t child = fork();
  ck_assert_int_ge(child, 0);
  if (!child) {
    weir_options there = on(cuda0);
    float x[4];
    bool good = !weir_tensor_read(x, sizeof x, WEIR_FLOAT32, a) && x[3] == 3;
    good = good && weir_to(&out, a, &there) == WEIR_ECUDA;
    weir_tensor_release(a);
    weir_tensor_release(b);
    weir_tensor_release(p);
    _exit(good ? 0 : 1);
  }
  int status;
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert_int_eq(status, 0);
  EXPECT(b, 0, 1, 2, 3);
  weir_tensor_release(a);
  weir_tensor_release(b);
  weir_tensor_release(p);
}
END_TEST

/* ---- handles --------------------------------------------------------------------------------- */

static weir_status no_items(weir_batch *out, void *user, int64_t index)
{
  (void)out, (void)user, (void)index;
  return WEIR_EINVAL;
}

static int64_t count_items(void *user)
{
  (void)user;
  return 1;
}

/* One of everything of the host's; each declaration has two, as C's have. */
static void one_of_each(void)
{
  WEIR_TENSOR t = NULL, u = NULL;
  WEIR_MODULE m = NULL, n = NULL;
  WEIR_EVENT e = NULL, f = NULL;
  WEIR_GENERATOR g = NULL, h = NULL;
  WEIR_TENSORS set = NULL, other = NULL;
  WEIR_LOADER loader = NULL, none = NULL;
  WEIR_LOADER_ITER it = NULL, nothing = NULL;
  WEIR_BATCH batch = {0}, empty = {0};
  WEIR_DLPACK given = NULL, kept = NULL;
  WEIR_DLPACK_UNVERSIONED plain = NULL, old = NULL;
  WEIR_GRAPH graph = NULL, drawing = NULL;
  weir_dataset data = {.length = count_items, .get = no_items};
  weir_ok(weir_zeros(&t, weir_shape(4), NULL));
  weir_ok(weir_module_relu(&m));
  weir_ok(weir_event_new(&e, NULL));
  weir_ok(weir_generator_new(&g, WEIR_CPU));
  weir_ok(weir_tensors_create(&set));
  weir_ok(weir_loader_create(&loader, &data, NULL));
  weir_ok(weir_loader_begin(&it, loader));
  batch.tensor[batch.count++] = weir_tensor_retain(t);
  weir_ok(weir_to_dlpack(&given, t, NULL));
  weir_ok(weir_to_dlpack_unversioned(&plain, t, NULL));
  weir_ok(weir_graph_new(&graph));
  ck_assert(!u && !n && !f && !h && !other && !none && !nothing && !empty.count && !kept && !old &&
            !drawing);
}

/* And what a device has. */
static void one_of_each_device(void)
{
  WEIR_STREAM s = NULL, other = NULL;
  WEIR_GRAPH_POOL pool = NULL, none = NULL;
  WEIR_DEVICE_MEMORY block = NULL, private = NULL;
  WEIR_PINNED_MEMORY pinned = NULL, nothing = NULL;
  weir_ok(weir_stream_create(&s, cuda0));
  weir_ok(weir_graph_pool_create(&pool, cuda0));
  weir_ok(weir_graph_pool_begin(pool, s));
  weir_ok(weir_malloc(&private, 1024, cuda0, s));
  weir_ok(weir_graph_pool_end(pool, s));
  weir_ok(weir_graph_pool_release(pool)); /* the use that the beginning added */
  weir_ok(weir_malloc(&block, 1024, cuda0, NULL));
  weir_ok(weir_pinned_malloc(&pinned, 1024));
  ck_assert(!other && !none && !nothing);
}

START_TEST(every_kind_of_handle_is_given_back_at_the_end_of_its_block)
{
  devices(1);
  size_t before = 0;
  weir_pinned_stats pinned;
  for (int i = 0; i < 310; i++) {
    if (i == 10) before = mallinfo2().uordblks;
    one_of_each();
  }
  ck_assert_uint_lt(mallinfo2().uordblks, before + 8192); /* 300 of the smallest are more */
  one_of_each_device();
  unsigned heaps = atomic_load(&attached_devices[0].pool)->heap_count;
  weir_ok(weir_memory_empty_cache(cuda0));
  uint64_t reserved = weir_memory_reserved(cuda0);
  for (int i = 0; i < 10; i++)
    one_of_each_device();
  ck_assert_uint_eq(weir_memory_allocated(cuda0), 0);
  weir_ok(weir_pinned_get_stats(&pinned));
  ck_assert_int_eq(pinned.active_bytes, 0);
  ck_assert_uint_eq(atomic_load(&attached_devices[0].pool)->heap_count, heaps);
  weir_ok(weir_memory_empty_cache(cuda0));
  ck_assert_uint_eq(weir_memory_reserved(cuda0), reserved);
}
END_TEST

int main(void)
{
  const TTest *const tests[] = {a_tensor_lives_until_its_last_count,
                                it_describes_itself,
                                names_are_copied_and_cut,
                                large_memory_is_aligned,
                                memory_of_others_is_given_back_once_with_the_last_view,
                                memory_of_the_device_is_taken_too,
                                memory_that_cannot_be_shown_is_refused_and_not_given_back,
                                memory_that_is_not_aligned_is_refused_or_copied,
                                every_kind_of_handle_is_given_back_at_the_end_of_its_block,
                                threads_may_count_and_view_one_tensor,
                                a_tensor_outlives_the_thread_that_made_it,
                                a_forked_child_may_use_the_cpus_and_release_all,
                                NULL};
  return rig_run("tensor/life", tests, DEVICES_TRIED);
}
