/* test_callback.c: a program that keeps its own account of memory is told of every block and every
 * segment, and of nothing once it does not want to be. */
#include <pthread.h>
#include <string.h>
#include "core/weir.h"
#include "tests/memory/rig.h"

enum { MOST = 4096 };

static fake f;
static const weir_device gpu = WEIR_CUDA_INIT(0);

typedef struct account {
  weir_memory_event event[MOST];
  int count;
  int64_t live[2], mapped[2]; /* of the device, page-locked */
} account;

static account a;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void account_for_event(void *user, const weir_memory_event *e)
{
  account *to = user;
  int host = e->device.type == WEIR_DEVICE_CPU;
  int64_t bytes = (int64_t)e->bytes;
  pthread_mutex_lock(&lock);
  if (to->count < MOST) to->event[to->count++] = *e;
  if (e->action == WEIR_MEMORY_ALLOC) to->live[host] += bytes;
  if (e->action == WEIR_MEMORY_FREE) to->live[host] -= bytes;
  if (e->action == WEIR_MEMORY_SEGMENT_MAP) to->mapped[host] += bytes;
  if (e->action == WEIR_MEMORY_SEGMENT_UNMAP) to->mapped[host] -= bytes;
  pthread_mutex_unlock(&lock);
}

#define must(call) ck_assert_msg((call) == WEIR_OK, "%s: %s", #call, weir_error_message())

static void attach_with_callback(void)
{
  memset(&a, 0, sizeof a);
  fake_init(&f, 512 * MIB, 2 * MIB);
  must(weir_memory_set_callback(account_for_event, &a));
  must(weir_memory_attach(&f.backend, NULL));
}

static void detach_with_callback(void)
{
  must(weir_memory_detach(gpu));
  must(weir_memory_set_callback(NULL, NULL));
  ck_assert(fake_clean(&f));
  fake_fini(&f);
}

/* The latest event of this action. */
static const weir_memory_event *last_event_of(weir_memory_action action)
{
  for (int i = a.count; i-- > 0;)
    if (a.event[i].action == action) return &a.event[i];
  ck_abort_msg("no event of action %d", (int)action);
}

START_TEST(a_block_is_told_with_size_device_and_stream)
{
  void *p;
  weir_stream *s;
  must(weir_stream_from_native(&s, gpu, fake_handle(&f, 1)));
  must(weir_malloc(&p, 1000, gpu, s));
  const weir_memory_event *e = last_event_of(WEIR_MEMORY_ALLOC);
  ck_assert_ptr_eq(e->address, p);
  ck_assert_uint_eq(e->bytes, 1000);
  ck_assert_int_eq(e->device.type, WEIR_DEVICE_CUDA);
  ck_assert_int_eq(weir_device_index(e->device), 0);
  ck_assert_ptr_eq(e->stream, fake_handle(&f, 1));
  must(weir_free(p));
  e = last_event_of(WEIR_MEMORY_FREE);
  ck_assert_ptr_eq(e->address, p);
  ck_assert_uint_eq(e->bytes, 1000);
  ck_assert_int_eq(weir_device_index(e->device), 0);
  ck_assert_ptr_eq(e->stream, fake_handle(&f, 1));
}
END_TEST

START_TEST(pinned_blocks_are_of_the_cpu)
{
  void *p;
  must(weir_pinned_malloc(&p, 5000));
  const weir_memory_event *e = last_event_of(WEIR_MEMORY_ALLOC);
  ck_assert_int_eq(e->device.type, WEIR_DEVICE_CPU);
  ck_assert_uint_eq(e->bytes, 5000);
  must(weir_pinned_free(p));
  ck_assert_uint_eq(last_event_of(WEIR_MEMORY_FREE)->bytes, 5000);
  ck_assert_int_eq(a.live[1], 0);
}
END_TEST

START_TEST(an_account_of_segments_is_what_is_reserved)
{
  void *p[8];
  for (int i = 0; i < 8; i++)
    must(weir_malloc(&p[i], (size_t)(i + 1) * MIB, gpu, NULL));
  ck_assert_int_eq(a.mapped[0], (int64_t)weir_memory_reserved(gpu));
  ck_assert_int_eq(a.live[0], 36 * (int64_t)MIB);
  for (int i = 0; i < 8; i++)
    must(weir_free(p[i]));
  must(weir_memory_empty_cache(gpu));
  ck_assert_int_eq(a.mapped[0], (int64_t)weir_memory_reserved(gpu));
  ck_assert_int_eq(a.live[0], 0);
}
END_TEST

START_TEST(what_fails_is_not_told)
{
  void *p;
  int before = a.count;
  ck_assert_int_ne(weir_malloc(&p, (size_t)1 << 40, gpu, NULL), WEIR_OK);
  ck_assert_int_ne(weir_free(&p), WEIR_OK);
  must(weir_malloc(&p, 0, gpu, NULL));
  for (int i = before; i < a.count; i++)
    ck_assert_int_gt(a.event[i].action, WEIR_MEMORY_FREE);
}
END_TEST

START_TEST(nobody_is_told_any_more)
{
  void *p;
  must(weir_memory_set_callback(NULL, NULL));
  int before = a.count;
  must(weir_malloc(&p, 4 * MIB, gpu, NULL));
  must(weir_free(p));
  ck_assert_int_eq(a.count, before);
}
END_TEST

static void *churn_gpu_blocks(void *unused)
{
  void *p;
  for (int i = 0; i < 200; i++) {
    must(weir_malloc(&p, (size_t)(i % 50 + 1) * 512, gpu, NULL));
    must(weir_free(p));
  }
  return unused;
}

START_TEST(threads_are_all_told)
{
  pthread_t t[4];
  for (int i = 0; i < 4; i++)
    ck_assert_int_eq(pthread_create(&t[i], NULL, churn_gpu_blocks, NULL), 0);
  for (int i = 0; i < 4; i++)
    ck_assert_int_eq(pthread_join(t[i], NULL), 0);
  int blocks = 0;
  for (int i = 0; i < a.count; i++)
    blocks += a.event[i].action <= WEIR_MEMORY_FREE;
  ck_assert_int_eq(blocks, 4 * 200 * 2);
  ck_assert_int_eq(a.live[0], 0);
}
END_TEST

START_TEST(the_latest_callback_counts)
{
  static account other;
  void *p;
  must(weir_memory_set_callback(account_for_event, &other));
  int before = a.count;
  must(weir_malloc(&p, 100, gpu, NULL));
  must(weir_free(p));
  ck_assert_int_eq(a.count, before);
  ck_assert_int_ge(other.count, 2);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("memory/callback");
  TCase *c = tcase_create("callback");
  tcase_add_checked_fixture(c, attach_with_callback, detach_with_callback);
  tcase_add_test(c, a_block_is_told_with_size_device_and_stream);
  tcase_add_test(c, pinned_blocks_are_of_the_cpu);
  tcase_add_test(c, an_account_of_segments_is_what_is_reserved);
  tcase_add_test(c, what_fails_is_not_told);
  tcase_add_test(c, nobody_is_told_any_more);
  tcase_add_test(c, threads_are_all_told);
  tcase_add_test(c, the_latest_callback_counts);
  suite_add_tcase(s, c);
  return rig_run(s);
}
