/* test_cpu_copy.c: elements copied between any strides, one by one beside what the cpu does:
 * turned, stepped, repeated, backwards, of every size. */
#include <check.h>
#include <string.h>
#include "core/backend/cpu/cpu.h"
#include "core/weir/threads.h"
#include "tests/device/reference.h"

enum { MOST = 1 << 17 };

static uint8_t in[MOST * 8], out[MOST * 8], want[MOST * 8];
static const weir_dtype dtypes[] = {WEIR_INT8, WEIR_BFLOAT16, WEIR_FLOAT32, WEIR_COMPLEX64};
enum { DTYPES = sizeof dtypes / sizeof *dtypes };

static void shuffle_dims(int *order, int dims)
{
  for (int i = 0; i < dims; i++)
    order[i] = i;
  for (int i = dims - 1; i > 0; i--) {
    int k = (int)ref_dice((uint32_t)i + 1), was = order[i];
    order[i] = order[k];
    order[k] = was;
  }
}

/* Strides of an operand whose dimensions lie in the order at hand, the fastest `step` elements
 * apart; what it takes, in elements. */
static int64_t lay_out(weir_operand *o, const weir_loop *l, int64_t step)
{
  int order[WEIR_DIMS];
  shuffle_dims(order, l->dims);
  for (int i = 0; i < l->dims; i++) {
    o->stride[order[i]] = step;
    step *= l->size[order[i]];
  }
  return step;
}

static int64_t offset_at(const weir_operand *o, const weir_loop *l, int64_t i)
{
  int64_t at = 0;
  for (int d = l->dims - 1; d >= 0; d--) {
    at += i % l->size[d] * o->stride[d];
    i /= l->size[d];
  }
  return at;
}

static weir_loop random_copy(weir_dtype dtype)
{
  static const int64_t sizes[] = {1, 2, 3, 7, 8, 15, 16, 17, 31, 40, 130};
  weir_loop l = {.op = WEIR_OP_COPY, .compute = dtype, .dims = 1 + (int)ref_dice(4)};
  l.count = 1;
  for (int d = 0; d < l.dims; d++) {
    l.size[d] = sizes[ref_dice(sizeof sizes / sizeof *sizes)];
    while (l.count * l.size[d] > MOST / 4)
      l.size[d] = (l.size[d] + 1) / 2;
    l.count *= l.size[d];
  }
  l.out.dtype = l.in[0].dtype = dtype;
  ck_assert_int_le(lay_out(&l.out, &l, 1 + ref_dice(2)), MOST);
  ck_assert_int_le(lay_out(&l.in[0], &l, 1 + ref_dice(3)), MOST);
  return l;
}

static void run_copy(const weir_loop *l, const char *what)
{
  size_t bytes = ref_bytes(l->out.dtype);
  memset(out, 0xA5, sizeof out);
  memset(want, 0xA5, sizeof want);
  for (int64_t i = 0; i < l->count; i++)
    memcpy((uint8_t *)want + ((uint8_t *)l->out.data - out) +
               offset_at(&l->out, l, i) * (int64_t)bytes,
           (uint8_t *)l->in[0].data + offset_at(&l->in[0], l, i) * (int64_t)bytes, bytes);
  ck_assert_int_eq(weir_cpu_backend.compute->map(weir_cpu_backend.self, NULL, l), WEIR_OK);
  ck_assert_msg(!memcmp(out, want, sizeof out), "%s: %lld x %lld x %lld, %d dims", what,
                (long long)l->size[0], (long long)l->size[1], (long long)l->size[2], l->dims);
}

START_TEST(copies_of_any_strides_move_each_element_and_nothing_else)
{
  for (int i = 0; i < MOST * 8; i++)
    in[i] = (uint8_t)ref_dice(256);
  for (int round = 0; round < 60; round++) {
    weir_loop l = random_copy(dtypes[_i]);
    ck_assert_int_eq(weir_set_num_threads(1 + round % 3), WEIR_OK);
    l.out.data = out, l.in[0].data = in;
    run_copy(&l, "forwards");
    int d = (int)ref_dice((uint32_t)l.dims);
    l.in[0].data = in + (l.size[d] - 1) * l.in[0].stride[d] * (int64_t)ref_bytes(dtypes[_i]);
    l.in[0].stride[d] = -l.in[0].stride[d];
    run_copy(&l, "backwards");
    l.in[0].data = in, l.in[0].stride[d] = 0;
    run_copy(&l, "repeated");
  }
}
END_TEST

/* Tiles that are whole and tiles that are not, several of each, shared by threads. */
START_TEST(large_matrices_are_turned)
{
  weir_loop l = {.op = WEIR_OP_COPY, .compute = dtypes[_i], .dims = 2, .size = {391, 300}};
  l.count = l.size[0] * l.size[1];
  l.out = (weir_operand){.data = out, .dtype = dtypes[_i], .stride = {300, 1}};
  l.in[0] = (weir_operand){.data = in, .dtype = dtypes[_i], .stride = {1, 391}};
  for (int i = 0; i < MOST * 8; i++)
    in[i] = (uint8_t)ref_dice(256);
  ck_assert_int_eq(weir_set_num_threads(3), WEIR_OK);
  run_copy(&l, "matrix");
}
END_TEST

int main(void)
{
  Suite *s = suite_create("cpu copy");
  TCase *t = tcase_create("copy");
  tcase_set_timeout(t, 0);
  tcase_add_loop_test(t, copies_of_any_strides_move_each_element_and_nothing_else, 0, DTYPES);
  tcase_add_loop_test(t, large_matrices_are_turned, 0, DTYPES);
  suite_add_tcase(s, t);
  SRunner *runner = srunner_create(s);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed != 0;
}
