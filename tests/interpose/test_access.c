/* test_access.c: which memory launches are handed, over fakes whose kernels have the parameters that
 * a test gives them. What is read is what the driver has described, to the byte: behind each
 * parameter, and behind the array of pointers to them, lies memory that cannot be read. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "interpose/record/access.h"
#include "interpose/record/cuda_headers.h"
#include "tests/interpose/hooks_rig.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

#define D(fn)      ((__typeof__(&fn))(uintptr_t)rig_wrapper(WEIR_BANK_DRIVER, #fn))
#define R(fn)      ((__typeof__(&fn))(uintptr_t)rig_wrapper(WEIR_BANK_RT13, #fn))
#define P(address) ((void *)(uintptr_t)(address))
#define BLOCK_A    UINT64_C(0x7f0000000000)
#define BLOCK_B    UINT64_C(0x7f4000000000)
#define BLOCK      (UINT64_C(4) << 20)
#define FUNCTION   UINT64_C(0xf00d00)

static char *guarded; /* two pages of which the second cannot be read */
static size_t page;

static void setup(void)
{
  access_wanted = true;
  page = (size_t)sysconf(_SC_PAGESIZE);
  guarded = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ck_assert_ptr_ne(guarded, MAP_FAILED);
  ck_assert_int_eq(mprotect(guarded + page, page, PROT_NONE), 0);
  rig_setup();
}

static void teardown(void)
{
  munmap(guarded, 2 * page);
  rig_teardown();
}

/* Memory of that many bytes after which nothing can be read. */
static void *at_the_edge(size_t bytes)
{
  return guarded + page - bytes;
}

static void make_block(uint64_t address)
{
  CUdeviceptr p = 0;
  rig_fake[0]->give = address;
  ck_assert_int_eq(D(cuMemAlloc_v2)(&p, BLOCK), CUDA_SUCCESS);
  rig_read();
}

static CUfunction make_function(uint64_t handle)
{
  CUfunction f = NULL;
  rig_fake[0]->give = handle;
  ck_assert_int_eq(D(cuModuleGetFunction)(&f, NULL, "kernel"), CUDA_SUCCESS);
  rig_read();
  return f;
}

static void give_parameters(size_t a, size_t b, size_t c)
{
  const size_t bytes[] = {a, b, c};
  memset(rig_fake[0]->param_bytes, 0, sizeof rig_fake[0]->param_bytes);
  memcpy(rig_fake[0]->param_bytes, bytes, sizeof bytes);
}

static uint32_t set_of(const trace_event *e)
{
  ck_assert_uint_eq(e->kind, WEIR_EV_LAUNCH);
  return event_access_number(e->detail, e->mem, e->src_device);
}

static const rig_log *launch_with(CUfunction f, void **args, void **extra)
{
  D(cuLaunchKernel)(f, 1, 1, 1, 1, 1, 1, 0, NULL, args, extra);
  const rig_log *l = rig_read();
  ck_assert_uint_eq(l->events, 1);
  return l;
}

/* The set of the launch, which must be a new one of these words. */
static uint32_t expect_new(const rig_log *l, const uint64_t *words, size_t count)
{
  ck_assert_uint_eq(l->sets, 1);
  ck_assert_uint_eq(l->set[0].words, count);
  for (size_t i = 0; i < count; i++)
    ck_assert_uint_eq(l->set[0].word[i].word, words[i]);
  ck_assert_uint_eq(set_of(&l->event[0]), l->set[0].number);
  return (uint32_t)l->set[0].number;
}

static void expect_unknown(const rig_log *l)
{
  ck_assert_uint_eq(l->sets, 0);
  ck_assert_uint_eq(set_of(&l->event[0]), 0);
}

static void expect_known(const rig_log *l, uint32_t set)
{
  ck_assert_uint_eq(l->sets, 0);
  ck_assert_uint_eq(set_of(&l->event[0]), set);
}

START_TEST(words_that_point_into_blocks_are_a_set_written_once)
{
  make_block(BLOCK_A);
  make_block(BLOCK_B);
  CUfunction f = make_function(FUNCTION);
  give_parameters(8, 4, 8);
  uint64_t a = BLOCK_B + 16, b = BLOCK_A + BLOCK - 1;
  uint32_t n = 7;
  void *args[] = {&a, &n, &b};
  uint32_t set = expect_new(launch_with(f, args, NULL), (uint64_t[]){b, a}, 2);
  expect_known(launch_with(f, args, NULL), set);
  n = 8;
  expect_known(launch_with(f, args, NULL), set);
  uint64_t c = a;
  a = b, b = c;
  expect_new(launch_with(f, args, NULL), (uint64_t[]){a, b}, 2); /* in other parameters */
  a = b;
  expect_new(launch_with(f, args, NULL), (uint64_t[]){a, b}, 2); /* in both */
  ck_assert_uint_eq(rig_fake[0]->param_asks, 4);
}
END_TEST

START_TEST(a_word_has_its_parameter_and_its_place_in_it)
{
  make_block(BLOCK_A);
  CUfunction f = make_function(FUNCTION);
  give_parameters(4, 24, 8);
  uint32_t n = 7;
  const uint64_t b = BLOCK_A + 8, whole[] = {3, b + 8, b};
  void *args[] = {&n, P(whole), P(&b)};
  const rig_log *l = launch_with(f, args, NULL);
  static const uint16_t parameter[] = {1, 2, 1}, part[] = {2, 0, 1};
  expect_new(l, (uint64_t[]){b, b, b + 8}, 3);
  ck_assert_uint_eq(l->set[0].parameters, 4);
  for (size_t i = 0; i < 3; i++) {
    ck_assert_uint_eq(l->set[0].word[i].parameter, parameter[i]);
    ck_assert_uint_eq(l->set[0].word[i].part, part[i]);
  }
}
END_TEST

/* Of a kernel and a set once, whatever the other sets and kernels do. */
START_TEST(that_other_bytes_come_with_a_set_is_written_once)
{
  make_block(BLOCK_A);
  make_block(BLOCK_B);
  CUfunction f = make_function(FUNCTION), other = make_function(FUNCTION + 16);
  give_parameters(8, 4, 2);
  uint64_t p = BLOCK_A;
  uint32_t n = 7;
  uint16_t m = 7;
  void *args[] = {&p, &n, &m};
  ck_assert_uint_eq(launch_with(f, args, NULL)->varying, 0);
  ck_assert_uint_eq(launch_with(f, args, NULL)->varying, 0);
  m++;
  ck_assert_uint_eq(launch_with(f, args, NULL)->varying, 1);
  m++;
  ck_assert_uint_eq(launch_with(f, args, NULL)->varying, 0);
  ck_assert_uint_eq(launch_with(other, args, NULL)->varying, 0);
  p = BLOCK_B;
  ck_assert_uint_eq(launch_with(f, args, NULL)->varying, 0);
  make_block(BLOCK_B + 2 * BLOCK); /* nothing is guessed any more */
  ck_assert_uint_eq(launch_with(f, args, NULL)->varying, 0);
  n++;
  ck_assert_uint_eq(launch_with(f, args, NULL)->varying, 1);
  ck_assert_uint_eq(launch_with(other, args, NULL)->varying, 0);
}
END_TEST

START_TEST(what_points_beside_a_block_is_in_no_set)
{
  make_block(BLOCK_A);
  CUfunction f = make_function(FUNCTION);
  give_parameters(8, 0, 0);
  const uint64_t beside[] = {BLOCK_A + BLOCK, BLOCK_A - 1,           0,
                             UINT64_MAX,      UINT64_C(1) << 57 | 8, 12};
  uint32_t none = 0;
  for (size_t i = 0; i < sizeof beside / sizeof *beside; i++) {
    uint64_t word = beside[i];
    void *args[] = {&word};
    const rig_log *l = launch_with(f, args, NULL);
    if (none)
      expect_known(l, none);
    else
      none = expect_new(l, NULL, 0);
  }
}
END_TEST

START_TEST(a_block_that_comes_later_is_seen_under_the_same_words)
{
  CUfunction f = make_function(FUNCTION);
  give_parameters(8, 0, 0);
  uint64_t word = BLOCK_A + 8;
  void *args[] = {&word};
  expect_new(launch_with(f, args, NULL), NULL, 0);
  make_block(BLOCK_A);
  expect_new(launch_with(f, args, NULL), &word, 1);
}
END_TEST

START_TEST(nothing_behind_the_last_parameter_is_read)
{
  make_block(BLOCK_A);
  CUfunction f = make_function(FUNCTION);
  give_parameters(4, 20, 0);
  uint32_t small = 1;
  uint64_t inside[] = {BLOCK_A + 4, BLOCK_A};
  char *large = at_the_edge(20);
  memcpy(large, inside, sizeof inside);
  memset(large + sizeof inside, 0xff, 4);
  void *args[] = {&small, large};
  expect_new(launch_with(f, args, NULL), (uint64_t[]){BLOCK_A, BLOCK_A + 4}, 2);
  void **edge = at_the_edge(2 * sizeof *edge); /* two pointers, and nothing after them */
  uint64_t at_edge[2] = {BLOCK_A, 3};
  give_parameters(8, 8, 0);
  f = make_function(FUNCTION);
  edge[0] = &at_edge[0], edge[1] = &at_edge[1];
  expect_new(launch_with(f, edge, NULL), (uint64_t[]){BLOCK_A}, 1);
}
END_TEST

START_TEST(parameters_that_are_not_there_make_the_set_unknown)
{
  make_block(BLOCK_A);
  CUfunction f = make_function(FUNCTION);
  give_parameters(8, 8, 0);
  uint64_t word = BLOCK_A;
  void *args[] = {&word, NULL};
  expect_unknown(launch_with(f, args, NULL));
  expect_unknown(launch_with(f, NULL, NULL));
  rig_fake[0]->status = 1;
  expect_unknown(launch_with(f, P(8), P(8))); /* refused: they may be anything */
  rig_fake[0]->status = 0;
  rig_fake[0]->param_status = 801;
  expect_unknown(launch_with(make_function(FUNCTION + 16), args, NULL));
  rig_fake[0]->param_status = 0;
  give_parameters(40000, 0, 0);
  expect_unknown(launch_with(make_function(FUNCTION + 32), args, NULL));
  expect_unknown(launch_with((CUfunction)P(FUNCTION + 48), args, NULL)); /* nobody handed it out */
}
END_TEST

START_TEST(a_handle_that_comes_back_is_asked_about_again)
{
  make_block(BLOCK_A);
  CUfunction f = make_function(FUNCTION);
  give_parameters(8, 8, 0);
  uint64_t a = BLOCK_A, b = BLOCK_A + 8;
  void *two[] = {&a, &b}, **one = at_the_edge(sizeof *one);
  expect_new(launch_with(f, two, NULL), (uint64_t[]){a, b}, 2);
  one[0] = &a;
  give_parameters(8, 0, 0);
  f = make_function(FUNCTION);
  expect_new(launch_with(f, one, NULL), &a, 1);
  give_parameters(0, 0, 0);
  D(cuModuleUnload)(NULL);
  rig_read();
  expect_new(launch_with(f, NULL, NULL), NULL, 0);
}
END_TEST

START_TEST(a_buffer_of_parameters_is_read_to_its_size)
{
  make_block(BLOCK_A);
  CUfunction f = make_function(FUNCTION);
  rig_fake[0]->param_status = 801; /* nobody need be asked */
  size_t bytes = 20;
  char *buffer = at_the_edge(bytes);
  const uint64_t words[] = {5, BLOCK_A + 64};
  memcpy(buffer, words, sizeof words);
  memset(buffer + sizeof words, 0xff, 4);
  void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                   CU_LAUNCH_PARAM_END};
  const rig_log *l = launch_with(f, NULL, extra);
  expect_new(l, &words[1], 1);
  ck_assert_uint_eq(l->set[0].parameters, 0); /* it is not known how many there are */
  bytes = 1 << 20;
  expect_unknown(launch_with(f, NULL, extra));
  void *sizeless[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_END};
  expect_unknown(launch_with(f, NULL, sizeless));
}
END_TEST

START_TEST(a_runtimes_launch_has_its_set_by_stub_and_by_handle)
{
  typedef void (*reg_fn)(void **, const char *, char *, const char *, int, void *, void *, void *,
                         void *, int *);
  typedef cudaError_t (*get_fn)(cudaKernel_t *, const void *);
  typedef cudaError_t (*launch_fn)(cudaKernel_t, dim3, dim3, void **, size_t, cudaStream_t);
  static const char stub[] = "stub";
  make_block(BLOCK_A);
  give_parameters(8, 0, 0);
  uint64_t word = BLOCK_A;
  void *args[] = {&word};
  const dim3 one = {1, 1, 1};
  ((reg_fn)(uintptr_t)rig_wrapper(WEIR_BANK_RT13, "__cudaRegisterFunction"))(
      NULL, stub, NULL, "kernel", 0, NULL, NULL, NULL, NULL, NULL);
  rig_fake[3]->registered = (uint64_t)(uintptr_t)stub;
  rig_fake[3]->give = FUNCTION;
  R(cudaLaunchKernel)(stub, one, one, args, 0, NULL);
  const rig_log *l = rig_read();
  uint32_t set = expect_new(l, &word, 1);
  cudaKernel_t k;
  rig_fake[3]->give = 0xabcd00;
  ((get_fn)(uintptr_t)rig_wrapper(WEIR_BANK_RT13, "__cudaGetKernel"))(&k, stub);
  ((launch_fn)(uintptr_t)rig_wrapper(WEIR_BANK_RT13, "__cudaLaunchKernel"))(k, one, one, args, 0,
                                                                            NULL);
  expect_known(rig_read(), set);
  R(cudaLaunchCooperativeKernel)(stub, one, one, args, 0, NULL);
  expect_known(rig_read(), set);
  const cudaLaunchConfig_t config = {.gridDim = one, .blockDim = one};
  R(cudaLaunchKernelExC)(&config, stub, args);
  expect_known(rig_read(), set);
}
END_TEST

START_TEST(the_programs_last_error_is_left_alone)
{
  static const char stub[] = "stub", other[] = "other";
  typedef void (*reg_fn)(void **, const char *, char *, const char *, int, void *, void *, void *,
                         void *, int *);
  reg_fn reg = (reg_fn)(uintptr_t)rig_wrapper(WEIR_BANK_RT13, "__cudaRegisterFunction");
  reg(NULL, stub, NULL, "kernel", 0, NULL, NULL, NULL, NULL, NULL);
  reg(NULL, other, NULL, "kernel", 0, NULL, NULL, NULL, NULL, NULL);
  const dim3 one = {1, 1, 1};
  R(cudaLaunchKernel)(stub, one, one, NULL, 0, NULL); /* the runtime knows no function of it */
  expect_unknown(rig_read());
  ck_assert_int_eq(rig_fake[3]->last_error, 0);
  rig_fake[3]->last_error = 9;
  R(cudaLaunchKernel)(other, one, one, NULL, 0, NULL);
  expect_unknown(rig_read());
  ck_assert_int_eq(rig_fake[3]->last_error, 9);
}
END_TEST

START_TEST(switched_off_nothing_is_asked_or_read)
{
  access_wanted = false;
  make_block(BLOCK_A);
  CUfunction f = make_function(FUNCTION);
  give_parameters(8, 0, 0);
  expect_unknown(launch_with(f, P(8), NULL));
  ck_assert_uint_eq(rig_fake[0]->param_asks, 0);
}
END_TEST

/* A set of more words than are kept is not known; one of as many is. */
START_TEST(a_set_has_all_its_words_or_none)
{
  enum { MOST = 512 };
  uint64_t *words = malloc((MOST + 1) * sizeof *words);
  ck_assert_ptr_nonnull(words);
  make_block(BLOCK_A);
  for (uint64_t i = 0; i <= MOST; i++)
    words[i] = BLOCK_A + 64 * i;
  void *args[] = {words};
  give_parameters((MOST + 1) * sizeof *words, 0, 0);
  expect_unknown(launch_with(make_function(FUNCTION), args, NULL));
  words[MOST] = words[0];
  const rig_log *l = launch_with(make_function(FUNCTION), args, NULL);
  ck_assert_uint_eq(l->sets, 1);
  ck_assert_uint_eq(l->set[0].words, MOST);
  free(words);
}
END_TEST

/* Each launch's set is that of its words, whatever was guessed for others. */
START_TEST(random_words_have_the_sets_that_a_model_gives_them)
{
  uint64_t state = 0x9e3779b97f4a7c15 + (uint64_t)_i, seen[27] = {0};
  make_block(BLOCK_A);
  make_block(BLOCK_B);
  CUfunction f = make_function(FUNCTION);
  give_parameters(8, 8, 8);
  for (int i = 0; i < 2000; i++) {
    uint64_t w[3];
    unsigned which = 0; /* of three choices each: none, A, B */
    for (int k = 0; k < 3; k++) {
      state = state * UINT64_C(6364136223846793005) + 1442695040888963407u;
      unsigned choice = (unsigned)(state >> 60) % 3;
      which = which * 3 + choice;
      w[k] = choice == 1 ? BLOCK_A : choice == 2 ? BLOCK_B : state >> 8 & 0xffff;
    }
    void *args[] = {&w[0], &w[1], &w[2]};
    const rig_log *l = launch_with(f, args, NULL);
    uint32_t set = set_of(&l->event[0]);
    ck_assert_uint_ne(set, 0);
    ck_assert_uint_eq(l->sets, !seen[which]);
    if (seen[which]) ck_assert_uint_eq(set, seen[which]);
    seen[which] = set;
  }
}
END_TEST

int main(void)
{
  Suite *s = suite_create("access");
  TCase *t = tcase_create("sets");
  tcase_add_checked_fixture(t, setup, teardown);
  tcase_add_test(t, words_that_point_into_blocks_are_a_set_written_once);
  tcase_add_test(t, a_word_has_its_parameter_and_its_place_in_it);
  tcase_add_test(t, that_other_bytes_come_with_a_set_is_written_once);
  tcase_add_test(t, what_points_beside_a_block_is_in_no_set);
  tcase_add_test(t, a_block_that_comes_later_is_seen_under_the_same_words);
  tcase_add_test(t, nothing_behind_the_last_parameter_is_read);
  tcase_add_test(t, parameters_that_are_not_there_make_the_set_unknown);
  tcase_add_test(t, a_handle_that_comes_back_is_asked_about_again);
  tcase_add_test(t, a_buffer_of_parameters_is_read_to_its_size);
  tcase_add_test(t, a_runtimes_launch_has_its_set_by_stub_and_by_handle);
  tcase_add_test(t, the_programs_last_error_is_left_alone);
  tcase_add_test(t, switched_off_nothing_is_asked_or_read);
  tcase_add_test(t, a_set_has_all_its_words_or_none);
  tcase_add_loop_test(t, random_words_have_the_sets_that_a_model_gives_them, 0, 4);
  suite_add_tcase(s, t);
  return rig_run(s);
}
