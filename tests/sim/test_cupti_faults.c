/* test_cupti_faults.c: each way in which CUPTI of the software device can be made to fail. */
#include "cupti.h"
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void one_memset(void)
{
  CUdeviceptr p = device_bytes(1000);
  ok(cuMemsetD8_v2(p, 1, 1000));
  ok(cuCtxSynchronize());
}

static void launch_a_graph(void)
{
  CUgraph g;
  CUgraphNode node;
  CUgraphExec e;
  CUcontext c;
  ok(cuCtxGetCurrent(&c));
  CUDA_MEMSET_NODE_PARAMS params = {
      .dst = device_bytes(1000), .value = 1, .elementSize = 1, .width = 100, .height = 1};
  ok(cuGraphCreate(&g, 0));
  ok(cuGraphAddMemsetNode(&node, g, NULL, 0, &params, c));
  ok(cuGraphInstantiateWithFlags(&e, g, 0));
  ok(cuGraphLaunch(e, NULL));
  ok(cuCtxSynchronize());
}

START_TEST(it_says_the_version_it_is_told)
{
  static const uint32_t versions[] = {24, 26, 27, 28, 130000, 130001, 130100, 130200};
  uint32_t version;
  char fault[40];
  fine(cuptiGetVersion(&version));
  ck_assert_uint_eq(version, 130001);
  for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
    (void)snprintf(fault, sizeof fault, "version:%u", versions[i]);
    fine(weir_sim_cupti_set(fault));
    fine(cuptiGetVersion(&version));
    ck_assert_uint_eq(version, versions[i]);
  }
}
END_TEST

START_TEST(times_are_zero_where_the_client_has_a_clock)
{
  fine(weir_sim_cupti_set("zero-times"));
  CLIENT(FILLS);
  one_memset();
  ck_assert_uint_eq(count_of(FILLS), 1);
  ck_assert_uint_eq(nth(FILLS, 0)->fill.start, 0);
  ck_assert_uint_eq(nth(FILLS, 0)->fill.end, 0);
}
END_TEST

START_TEST(times_are_as_ever_where_the_client_has_no_clock)
{
  fine(weir_sim_cupti_set("zero-times"));
  fine(cuptiActivityRegisterCallbacks(give_buffer, take_buffer));
  fine(cuptiActivityEnable(FILLS));
  one_memset();
  ck_assert_uint_eq(count_of(FILLS), 1);
  ck_assert_uint_gt(nth(FILLS, 0)->fill.start, 0);
}
END_TEST

START_TEST(work_ends_before_it_begins)
{
  fine(weir_sim_cupti_set("reversed-times"));
  CLIENT(FILLS);
  one_memset();
  ck_assert_uint_eq(count_of(FILLS), 1);
  ck_assert_uint_lt(nth(FILLS, 0)->fill.end, nth(FILLS, 0)->fill.start);
}
END_TEST

START_TEST(waits_for_the_device_are_lost_others_are_not)
{
  CUstream s;
  fine(weir_sim_cupti_set("lost-device-syncs"));
  ok(cuStreamCreate(&s, 0));
  CLIENT(WAITS);
  ok(cuCtxSynchronize());
  ok(cuStreamSynchronize(s));
  ck_assert_uint_eq(count_of(WAITS), 1);
  ck_assert_int_eq(nth(WAITS, 0)->wait.type,
                   CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE);
}
END_TEST

START_TEST(each_third_record_is_dropped_and_counted)
{
  size_t dropped;
  fine(weir_sim_cupti_set("drop:3"));
  CLIENT(FILLS);
  for (int i = 0; i < 10; i++)
    one_memset();
  ck_assert_uint_eq(count_of(FILLS), 7);
  fine(cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped));
  ck_assert_uint_eq(dropped, 3);
}
END_TEST

START_TEST(enabling_answers_what_it_is_told)
{
  fine(weir_sim_cupti_set("enable:35"));
  refused(cuptiActivityEnable(FILLS), CUPTI_ERROR_INSUFFICIENT_PRIVILEGES);
  fine(weir_sim_cupti_set(NULL));
  fine(cuptiActivityEnable(FILLS));
}
END_TEST

START_TEST(another_tool_has_the_subscription)
{
  CUpti_SubscriberHandle s;
  fine(weir_sim_cupti_set("subscribed"));
  refused(cuptiSubscribe(&s, hear, NULL), CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
}
END_TEST

struct newer_params { /* CUpti_SubscriberParams of 13.2 */
  size_t bytes;
  const char *name;
  char *old;
  size_t old_bytes;
  uint8_t several;
  uint8_t padding[7];
};

static CUptiResult subscribe(CUpti_SubscriberHandle *s, bool several)
{
  struct newer_params p = {.bytes = sizeof p, .several = several};
  return cuptiSubscribe_v2(s, hear, NULL, (void *)&p);
}

START_TEST(from_13_2_on_there_may_be_several_subscribers_that_say_so)
{
  CUpti_SubscriberHandle a, b, c;
  fine(subscribe(&a, true));
  refused(subscribe(&b, true), CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
  fine(cuptiUnsubscribe(a));
  fine(weir_sim_cupti_set("version:130200"));
  fine(subscribe(&a, true));
  fine(subscribe(&b, true));
  refused(subscribe(&c, false), CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
  refused(cuptiSubscribe(&c, hear, NULL), CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
  fine(cuptiEnableDomain(1, a, CUPTI_CB_DOMAIN_DRIVER_API));
  fine(cuptiEnableCallback(1, b, CUPTI_CB_DOMAIN_DRIVER_API,
                           CUPTI_DRIVER_TRACE_CBID_cuCtxSynchronize));
  ok(cuCtxSynchronize());
  ck_assert_uint_eq(heard_count, 4);
  ok(cuStreamQuery(NULL));
  ck_assert_uint_eq(heard_count, 6);
  fine(cuptiFinalize()); /* with two of them it ends nothing */
  ok(cuStreamQuery(NULL));
  ck_assert_uint_eq(heard_count, 8);
  fine(cuptiUnsubscribe(b));
  fine(cuptiFinalize());
  ok(cuStreamQuery(NULL));
  ck_assert_uint_eq(heard_count, 8);
}
END_TEST

/* Functions of 13.2 and 13.3 that headers before have not. */
#define OF_SUBSCRIBER(name, ...) CUptiResult name(CUpti_SubscriberHandle, __VA_ARGS__)
OF_SUBSCRIBER(cuptiActivityRegisterCallbacks_v2, void (*)(uint8_t **, size_t *, size_t *, void *),
              void (*)(uint8_t *, size_t, size_t, void *));
OF_SUBSCRIBER(cuptiActivityEnable_v2, CUpti_ActivityKind, void *);
OF_SUBSCRIBER(cuptiActivityDisable_v2, CUpti_ActivityKind, void *);
OF_SUBSCRIBER(cuptiActivityGetNextRecord_v2, uint8_t *, size_t, CUpti_Activity **);
OF_SUBSCRIBER(cuptiActivityGetNumDroppedRecords_v2, CUcontext, uint32_t, size_t *);
OF_SUBSCRIBER(cuptiGetTimestamp_v2, uint64_t *);

static void give_buffer_v2(uint8_t **buffer, size_t *bytes, size_t *most, void *info)
{
  ck_assert_uint_ge(*(size_t *)info, sizeof(size_t));
  give_buffer(buffer, bytes, most);
}

static void take_buffer_v2(uint8_t *buffer, size_t bytes, size_t valid, void *info)
{
  ck_assert_uint_ge(*(size_t *)info, sizeof(size_t));
  take_buffer(NULL, 0, buffer, bytes, valid);
}

static _Atomic unsigned other_buffers;

static void take_other_buffer(uint8_t *buffer, size_t bytes, size_t valid, void *info)
{
  (void)bytes, (void)info;
  atomic_fetch_add(&other_buffers, valid > 0);
  free(buffer);
  atomic_fetch_sub(&buffers_out, 1);
}

static CUpti_SubscriberHandle one_of_several(CUpti_ActivityKind kind,
                                             void (*take)(uint8_t *, size_t, size_t, void *))
{
  CUpti_SubscriberHandle s;
  fine(subscribe(&s, true));
  fine(cuptiActivityRegisterCallbacks_v2(s, give_buffer_v2, take));
  fine(cuptiActivityEnable_v2(s, kind, NULL));
  return s;
}

START_TEST(each_of_several_gets_the_kinds_it_wants)
{
  size_t dropped;
  uint64_t now;
  fine(weir_sim_cupti_set("version:130300,drop:2"));
  CUpti_SubscriberHandle a = one_of_several(FILLS, take_buffer_v2);
  CUpti_SubscriberHandle b = one_of_several(COPIES, take_other_buffer);
  one_memset();
  ck_assert_uint_eq(count_of(FILLS), 1);
  ck_assert_uint_eq(other_buffers, 0);
  fine(cuptiActivityEnable_v2(b, FILLS, NULL));
  one_memset();
  ck_assert_uint_eq(count_of(FILLS),
                    1); /* the second is dropped for one, the first for the other */
  ck_assert_uint_eq(other_buffers, 1);
  fine(cuptiActivityGetNumDroppedRecords_v2(a, NULL, 0, &dropped));
  ck_assert_uint_eq(dropped, 1);
  fine(cuptiActivityGetNumDroppedRecords_v2(b, NULL, 0, &dropped));
  ck_assert_uint_eq(dropped, 0);
  fine(cuptiGetTimestamp_v2(a, &now));
  fine(cuptiActivityDisable_v2(a, FILLS, NULL));
  fine(cuptiUnsubscribe(a));
  refused(cuptiGetTimestamp_v2(a, &now), CUPTI_ERROR_INVALID_PARAMETER);
  fine(cuptiUnsubscribe(b));
}
END_TEST

START_TEST(who_is_no_subscriber_is_refused_while_there_are_several)
{
  CUpti_SubscriberHandle a;
  fine(cuptiActivityRegisterCallbacks(give_buffer, take_buffer));
  fine(cuptiActivityEnable(FILLS));
  fine(weir_sim_cupti_set("version:130300"));
  refused(subscribe(&a, true), CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
  fine(cuptiActivityDisable(FILLS));
  a = one_of_several(FILLS, take_buffer_v2);
  refused(cuptiActivityEnable(FILLS), CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
  refused(cuptiActivityRegisterCallbacks(give_buffer, take_buffer),
          CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
  refused(cuptiActivityRegisterTimestampCallback(clock_now),
          CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
  fine(cuptiUnsubscribe(a));
  fine(cuptiActivityEnable(FILLS));
}
END_TEST

START_TEST(where_sharing_stays_none_is_alone_before_the_end)
{
  CUpti_SubscriberHandle a;
  fine(weir_sim_cupti_set("version:130300,sharing-stays"));
  fine(cuptiSubscribe(&a, hear, NULL));
  fine(cuptiUnsubscribe(a));
  fine(subscribe(&a, true));
  fine(cuptiUnsubscribe(a));
  refused(cuptiSubscribe(&a, hear, NULL), CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
  fine(cuptiFinalize());
  fine(cuptiSubscribe(&a, hear, NULL));
}
END_TEST

START_TEST(older_versions_have_no_functions_by_subscriber)
{
  CUpti_SubscriberHandle a;
  CUpti_Activity *record = NULL;
  uint8_t buffer[8];
  fine(cuptiSubscribe(&a, hear, NULL));
  refused(cuptiActivityEnable_v2(a, FILLS, NULL), CUPTI_ERROR_NOT_SUPPORTED);
  fine(weir_sim_cupti_set("version:130200"));
  fine(cuptiActivityEnable_v2(a, FILLS, NULL));
  refused(cuptiActivityGetNextRecord_v2(a, buffer, 0, &record), CUPTI_ERROR_NOT_SUPPORTED);
}
END_TEST

START_TEST(a_fault_that_is_not_known_is_refused)
{
  refused(weir_sim_cupti_set("no-such-fault"), CUPTI_ERROR_INVALID_PARAMETER);
  refused(weir_sim_cupti_set("drop:0"), CUPTI_ERROR_INVALID_PARAMETER);
  refused(weir_sim_cupti_set("version:x"), CUPTI_ERROR_INVALID_PARAMETER);
}
END_TEST

/* ---- what ends the process, or a thread ------------------------------------------------------ */

static void fill_without_a_buffer(void)
{
  buffer_bytes = 0;
  CLIENT(FILLS);
  one_memset();
}

static void finalize_after_a_graph(void)
{
  CLIENT(FILLS);
  launch_a_graph();
  (void)cuptiFinalize();
}

/* Does it under a fault in a child, which has a device of its own, and does not come back. */
static void crashes(const char *fault, void (*f)(void))
{
  pid_t child = fork();
  if (!child) {
    (void)setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0}); /* nothing is left behind */
    set_up_device0();
    fine(weir_sim_cupti_set(fault));
    f();
    _exit(0);
  }
  int status;
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

START_TEST(it_crashes_where_the_client_gives_no_buffer)
{
  crashes("null-buffer-crashes", fill_without_a_buffer);
}
END_TEST

START_TEST(it_crashes_at_its_end_after_a_graph)
{
  crashes("finalize-crashes", finalize_after_a_graph);
}
END_TEST

START_TEST(it_ends_well_without_a_graph)
{
  fine(weir_sim_cupti_set("finalize-crashes"));
  CLIENT(FILLS);
  one_memset();
  fine(cuptiFinalize());
}
END_TEST

static void *never_back(void *call)
{
  ((void (*)(void))(uintptr_t)call)();
  abort();
}

static void disable_kernels(void)
{
  (void)cuptiActivityDisable(KERNELS);
}

static void flush(void)
{
  (void)cuptiActivityFlushAll(1);
}

/* Makes the call on a thread, and sees that it says it hangs; `f` ends the process if it
 * returns. */
static void hangs(void (*f)(void), const char *words)
{
  int out[2];
  char said[200] = "";
  pthread_t thread;
  ck_assert_int_eq(pipe(out), 0);
  dup2(out[1], STDERR_FILENO);
  ck_assert_int_eq(pthread_create(&thread, NULL, never_back, (void *)(uintptr_t)f), 0);
  pthread_detach(thread);
  ck_assert_int_gt(read(out[0], said, sizeof said - 1), 0);
  ck_assert_ptr_nonnull(strstr(said, words));
  give_way();
}

START_TEST(to_disable_kernels_hangs_other_kinds_do_not)
{
  fine(weir_sim_cupti_set("disable-hangs"));
  CLIENT(FILLS, KERNELS);
  fine(cuptiActivityDisable(FILLS));
  hangs(disable_kernels, "kernels are disabled");
}
END_TEST

START_TEST(a_flush_hangs_and_the_device_goes_on)
{
  fine(weir_sim_cupti_set("flush-hangs"));
  CLIENT(FILLS);
  one_memset();
  hangs(flush, "a flush");
  one_memset();
}
END_TEST

/* In a child nothing of it is left, and its process can end. */
START_TEST(a_forked_child_has_no_client)
{
  CLIENT(FILLS);
  one_memset();
  pid_t child = fork();
  if (!child) {
    bool none = cuptiActivityFlushAll(0) == CUPTI_ERROR_INVALID_OPERATION && !record_count;
    _exit(none ? 0 : 1);
  }
  int status;
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert_int_eq(status, 0);
  ck_assert_uint_eq(count_of(FILLS), 1);
}
END_TEST

int main(void)
{
  const TTest *const tests[] = {it_says_the_version_it_is_told,
                                times_are_zero_where_the_client_has_a_clock,
                                times_are_as_ever_where_the_client_has_no_clock,
                                work_ends_before_it_begins,
                                waits_for_the_device_are_lost_others_are_not,
                                each_third_record_is_dropped_and_counted,
                                enabling_answers_what_it_is_told,
                                another_tool_has_the_subscription,
                                from_13_2_on_there_may_be_several_subscribers_that_say_so,
                                each_of_several_gets_the_kinds_it_wants,
                                who_is_no_subscriber_is_refused_while_there_are_several,
                                where_sharing_stays_none_is_alone_before_the_end,
                                older_versions_have_no_functions_by_subscriber,
                                a_fault_that_is_not_known_is_refused,
                                it_ends_well_without_a_graph,
                                to_disable_kernels_hangs_other_kinds_do_not,
                                a_flush_hangs_and_the_device_goes_on,
                                a_forked_child_has_no_client,
                                NULL};
  const TTest *const bare[] = {it_crashes_where_the_client_gives_no_buffer,
                               it_crashes_at_its_end_after_a_graph, NULL};
  return run_groups("sim_cupti_faults", tests, set_up_device0, bare);
}
