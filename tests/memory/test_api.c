/* test_api.c: weir.h's memory functions: devices, options, figures, messages. */
#include <stdlib.h>
#include <string.h>
#include "core/weir.h"
#include "tests/memory/rig.h"

static fake f;
static const weir_device cuda0 = WEIR_CUDA_INIT(0);

static void attach(uint64_t capacity, const char *conf)
{
  fake_init(&f, capacity, 2 * MIB);
  ck_assert_msg(weir_memory_attach(&f.backend, conf) == WEIR_OK, "%s", weir_error_message());
}

static void detach(void)
{
  ck_assert_msg(weir_memory_detach(cuda0) == WEIR_OK, "%s", weir_error_message());
  ck_assert(fake_clean(&f));
  fake_fini(&f);
}

static int64_t figure(const char *name)
{
  int64_t value;
  ck_assert_int_eq(weir_memory_stat(&value, cuda0, name), WEIR_OK);
  return value;
}

static void *allocate_on_cuda0(size_t bytes)
{
  void *out;
  ck_assert_msg(weir_malloc(&out, bytes, cuda0, NULL) == WEIR_OK, "%s", weir_error_message());
  return out;
}

static const char *const bad_conf[][2] = {{"max_split_mb:30", "max_split_size_mb"},
                                          {"max_split_size_mb:1", "20"},
                                          {"expandable_segments:maybe", "true"},
                                          {"garbage_collection_threshold:1.5", "below 1.0"},
                                          {"decay_ms", "key:value"},
                                          {"roundup_power2_divisions:3", "power of two"},
                                          {"decay_ms:10,,", "key:value"}};

START_TEST(bad_options_are_refused_with_the_valid_ones)
{
  fake_init(&f, 64 * MIB, 2 * MIB);
  ck_assert_int_eq(weir_memory_attach(&f.backend, bad_conf[_i][0]), WEIR_EINVAL);
  ck_assert_msg(strstr(weir_error_message(), bad_conf[_i][1]) != NULL, "%s", weir_error_message());
  ck_assert(fake_clean(&f));
  ck_assert_int_eq(setenv("WEIR_ALLOC_CONF", bad_conf[_i][0], 1), 0);
  ck_assert_int_eq(weir_memory_attach(&f.backend, NULL), WEIR_EINVAL);
  ck_assert_ptr_nonnull(strstr(weir_error_message(), "WEIR_ALLOC_CONF"));
  fake_fini(&f);
}
END_TEST

START_TEST(options_are_taken)
{
  pool_config c = pool_config_default;
  ck_assert_int_eq(pool_config_parse(&c, "X",
                                     "max_split_size_mb:64,garbage_collection_threshold:0.8,"
                                     "roundup_power2_divisions:8,expandable_segments:False,"
                                     "decay_ms:0,soft_limit_mb:100,limit_mb:200,whole_block:on"),
                   WEIR_OK);
  ck_assert(c.max_split_bytes == 64 * MIB && c.gc_threshold == 0.8 && c.roundup_divisions == 8);
  ck_assert(!c.expandable && !c.decay_ms && c.whole_block);
  ck_assert(c.soft_limit_bytes == 100 * MIB && c.limit_bytes == 200 * MIB);
}
END_TEST

START_TEST(nothing_is_null_and_freeing_null_is_nothing)
{
  attach(64 * MIB, NULL);
  void *out = &f;
  ck_assert_int_eq(weir_malloc(&out, 0, cuda0, NULL), WEIR_OK);
  ck_assert_ptr_null(out);
  ck_assert_int_eq(weir_free(NULL), WEIR_OK);
  ck_assert_int_eq(weir_malloc(&out, 8, WEIR_CPU, NULL), WEIR_EINVAL);
  ck_assert_int_ne(weir_malloc(&out, 8, WEIR_CUDA_AT(63), NULL), WEIR_OK);
  detach();
}
END_TEST

START_TEST(the_figures_tell_what_happened)
{
  attach(256 * MIB, NULL);
  void *a = allocate_on_cuda0(1000), *b = allocate_on_cuda0(3 * MIB);
  ck_assert_int_eq(figure("allocated_bytes.all.current"), 1024 + 3 * MIB);
  ck_assert_int_eq(figure("allocated_bytes.small_pool.current"), 1024);
  ck_assert_int_eq(figure("requested_bytes.all.current"), 1000 + 3 * MIB);
  ck_assert_int_eq(figure("allocation.all.current"), 2);
  ck_assert_int_eq(figure("reserved_bytes.all.current"), 4 * MIB);
  ck_assert_int_eq(weir_free(b), WEIR_OK);
  ck_assert_int_eq(figure("allocated_bytes.all.peak"), 1024 + 3 * MIB);
  ck_assert_int_eq(weir_memory_reset_peak(cuda0), WEIR_OK);
  ck_assert_int_eq(figure("allocated_bytes.all.peak"), 1024);
  ck_assert_int_eq(figure("allocation.all.freed"), 1);
  ck_assert_int_eq(weir_free(a), WEIR_OK);
  ck_assert_int_eq(weir_memory_empty_cache(cuda0), WEIR_OK);
  ck_assert_int_eq(figure("reserved_bytes.all.current"), 0);
  ck_assert_int_eq(figure("reserved_bytes.all.peak"), 4 * MIB);
  int64_t value;
  ck_assert_int_eq(weir_memory_stat(&value, cuda0, "nonsense"), WEIR_EINVAL);
  detach();
}
END_TEST

static int asked;
static bool give_way(void *user, uint64_t bytes)
{
  void **held = user;
  ck_assert_uint_eq(bytes, 40 * MIB);
  asked++;
  if (!*held) return false;
  ck_assert_int_eq(weir_free(*held), WEIR_OK);
  *held = NULL;
  return true;
}

START_TEST(out_of_memory_says_why_and_the_callback_helps)
{
  attach(64 * MIB, NULL);
  void *out;
  ck_assert_int_eq(weir_memory_set_tag("weights"), WEIR_OK);
  void *held = allocate_on_cuda0(30 * MIB);
  ck_assert_int_eq(weir_malloc(&out, 40 * MIB, cuda0, NULL), WEIR_EOOM);
  const char *text = weir_error_message();
  static const char *const parts[] = {"Tried to allocate 40.00 MiB",
                                      "capacity of 64.00 MiB of which 34.00 MiB is free",
                                      "live 30.00", "weights 30.00", "truly in use"};
  for (int i = 0; i < 5; i++)
    ck_assert_msg(strstr(text, parts[i]) != NULL, "%s", text);
  ck_assert_uint_lt(strlen(text), 511);
  ck_assert_int_eq(weir_memory_on_oom(cuda0, give_way, &held), WEIR_OK);
  ck_assert_int_eq(weir_malloc(&out, 40 * MIB, cuda0, NULL), WEIR_OK);
  ck_assert_int_eq(asked, 1);
  void *more;
  ck_assert_int_eq(weir_malloc(&more, 40 * MIB, cuda0, NULL), WEIR_EOOM);
  ck_assert_int_eq(asked, 2);
  ck_assert_int_eq(weir_memory_on_oom(cuda0, NULL, NULL), WEIR_OK);
  ck_assert_int_eq(weir_malloc(&more, SIZE_MAX, cuda0, NULL), WEIR_EOOM);
  ck_assert_int_eq(figure("num_ooms"), 3);
  ck_assert_int_eq(weir_free(out), WEIR_OK);
  detach();
}
END_TEST

START_TEST(fraction_and_budget_bound_what_is_reserved)
{
  attach(100 * MIB, "limit_mb:60");
  void *out;
  ck_assert_int_eq(weir_malloc(&out, 70 * MIB, cuda0, NULL), WEIR_EOOM);
  ck_assert_ptr_nonnull(strstr(weir_error_message(), "budget"));
  ck_assert_int_eq(weir_memory_set_fraction(cuda0, 0.5), WEIR_OK);
  ck_assert_int_eq(weir_malloc(&out, 55 * MIB, cuda0, NULL), WEIR_EOOM);
  ck_assert_ptr_nonnull(strstr(weir_error_message(), "fraction"));
  ck_assert_int_eq(weir_memory_set_fraction(cuda0, 2.0), WEIR_EINVAL);
  ck_assert_str_eq(weir_error_message(), "Invalid fraction value: 2.0. Allowed range: 0~1");
  ck_assert_int_eq(weir_free(allocate_on_cuda0(50 * MIB)), WEIR_OK);
  detach();
}
END_TEST

START_TEST(trim_keeps_what_it_is_told_to)
{
  attach(256 * MIB, NULL);
  uint64_t largest;
  void *a = allocate_on_cuda0(100 * MIB);
  ck_assert_int_eq(weir_free(a), WEIR_OK);
  ck_assert_int_eq(weir_memory_largest_free_block(&largest, cuda0, NULL), WEIR_OK);
  ck_assert_uint_eq(largest, 100 * MIB);
  ck_assert_int_eq(weir_memory_trim(cuda0, 40 * MIB), WEIR_OK);
  ck_assert_int_eq(figure("reserved_bytes.all.current"), 40 * MIB);
  detach();
}
END_TEST

START_TEST(live_blocks_keep_a_device_attached)
{
  attach(64 * MIB, NULL);
  void *a = allocate_on_cuda0(100);
  ck_assert_int_eq(weir_memory_detach(cuda0), WEIR_EINVAL);
  ck_assert_int_eq(weir_free(a), WEIR_OK);
  detach();
}
END_TEST

START_TEST(summary_and_snapshot_are_whole)
{
  attach(64 * MIB, NULL);
  char *text;
  void *a = allocate_on_cuda0(1000), *b = allocate_on_cuda0(5 * MIB);
  ck_assert_int_eq(weir_memory_summary(&text, cuda0, false), WEIR_OK);
  ck_assert_ptr_nonnull(strstr(text, "GPU reserved memory"));
  free(text);
  ck_assert_int_eq(weir_free(b), WEIR_OK);
  ck_assert_int_eq(weir_memory_snapshot(&text, cuda0), WEIR_OK);
  static const char *const parts[] = {"{\"segments\": [{\"device\": 0",  "\"total_size\": 6291456",
                                      "\"allocated_size\": 1024",        "\"requested_size\": 1000",
                                      "\"state\": \"active_allocated\"", "\"state\": \"inactive\"",
                                      "\"is_expandable\": true",         "\"device_traces\": [[]]"};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
    ck_assert_msg(strstr(text, parts[i]) != NULL, "%s not in %s", parts[i], text);
  int depth = 0;
  for (const char *c = text; *c; c++)
    depth += (*c == '{' || *c == '[') - (*c == '}' || *c == ']');
  ck_assert_int_eq(depth, 0);
  free(text);
  ck_assert_int_eq(weir_free(a), WEIR_OK);
  detach();
}
END_TEST

START_TEST(streams_are_told_apart)
{
  attach(64 * MIB, NULL);
  weir_stream *one, *two, *again;
  ck_assert_int_eq(weir_stream_from_native(&one, cuda0, fake_handle(&f, 1)), WEIR_OK);
  ck_assert_int_eq(weir_stream_from_native(&two, cuda0, fake_handle(&f, 2)), WEIR_OK);
  ck_assert_int_eq(weir_stream_from_native(&again, cuda0, fake_handle(&f, 1)), WEIR_OK);
  ck_assert_ptr_eq(one, again);
  void *a, *b;
  fake_hold(&f, 1);
  ck_assert_int_eq(weir_malloc(&a, 2 * MIB, cuda0, one), WEIR_OK);
  ck_assert_int_eq(weir_record_stream(a, two), WEIR_OK);
  ck_assert_int_eq(weir_record_stream(&f, two), WEIR_EINVAL);
  ck_assert_int_eq(weir_free(a), WEIR_OK);
  ck_assert_int_eq(weir_stream_waited(two, one), WEIR_OK);
  ck_assert_int_eq(weir_malloc(&b, 2 * MIB, cuda0, two), WEIR_OK);
  ck_assert_int_eq(weir_free(b), WEIR_OK);
  detach();
}
END_TEST

START_TEST(made_streams_are_streams_and_go_with_their_device)
{
  attach(64 * MIB, NULL);
  weir_stream *one, *two, *again;
  void *native, *a;
  ck_assert_int_eq(weir_stream_create(&one, cuda0), WEIR_OK);
  ck_assert_int_eq(weir_stream_create(&two, cuda0), WEIR_OK);
  ck_assert_int_eq(weir_stream_native(&native, one), WEIR_OK);
  ck_assert(one != two && ((fake_stream *)native)->made);
  ck_assert_int_eq(weir_stream_from_native(&again, cuda0, native), WEIR_OK);
  ck_assert_ptr_eq(again, one);
  ck_assert_int_eq(weir_stream_native(&native, NULL), WEIR_EINVAL);
  ck_assert_int_eq(weir_malloc(&a, 2 * MIB, cuda0, one), WEIR_OK);
  ck_assert_int_eq(weir_free(a), WEIR_OK);
  fake_fail(&f, 1, false, WEIR_ECUDA);
  ck_assert_int_eq(weir_stream_create(&again, cuda0), WEIR_ECUDA);
  fake_fail(&f, 0, false, WEIR_OK);
  ck_assert_int_eq(weir_stream_native(&native, two), WEIR_OK);
  detach();
  ck_assert(!((fake_stream *)native)->made);
}
END_TEST

int main(void)
{
  Suite *s = suite_create("memory api");
  TCase *t = tcase_create("api");
  tcase_add_loop_test(t, bad_options_are_refused_with_the_valid_ones, 0, 7);
  tcase_add_test(t, options_are_taken);
  tcase_add_test(t, nothing_is_null_and_freeing_null_is_nothing);
  tcase_add_test(t, the_figures_tell_what_happened);
  tcase_add_test(t, out_of_memory_says_why_and_the_callback_helps);
  tcase_add_test(t, fraction_and_budget_bound_what_is_reserved);
  tcase_add_test(t, trim_keeps_what_it_is_told_to);
  tcase_add_test(t, live_blocks_keep_a_device_attached);
  tcase_add_test(t, summary_and_snapshot_are_whole);
  tcase_add_test(t, streams_are_told_apart);
  tcase_add_test(t, made_streams_are_streams_and_go_with_their_device);
  suite_add_tcase(s, t);
  return rig_run(s);
}
