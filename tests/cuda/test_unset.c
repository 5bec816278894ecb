/* test_unset.c: a kernel's argument is made of what its request sets. Operations of each form, on
 * tensors and numbers, dense and transposed, give the cpu's elements; valgrind, which runs this
 * suite in make test-all, sees what is read and was never written. */
#include "tests/cuda/rig.h"

static const weir_dtype dtypes[] = {WEIR_FLOAT32, WEIR_BFLOAT16, WEIR_INT64, WEIR_BOOL,
                                    WEIR_COMPLEX64};

enum { DTYPES = sizeof dtypes / sizeof *dtypes, FORMS = 10 };

/* A block's threads all have WEIR_EACH elements: a kernel's host twin calculates with what it has
 * not read of others, and drops it. */
enum { SIDE = 32 };

/* WEIR_ENOTSUP: not of this dtype. */
static weir_status calculate(weir_tensor **out, int form, weir_tensor *a, weir_tensor *b)
{
  switch (form) {
  case 0:
    return weir_neg(out, a);
  case 1:
    return weir_relu(out, a);
  case 2:
    return weir_add(out, a, b);
  case 3:
    return weir_mul_scalar(out, a, weir_int(3));
  case 4:
    return weir_add_alpha(out, a, b, weir_int(2));
  case 5:
    return weir_eq(out, a, b);
  case 6:
    return weir_isclose(out, a, b, 0.5, 0.5, false);
  case 7:
    return weir_addcmul(out, a, a, b, weir_int(2));
  case 8:
    return weir_abs(out, a);
  default:
    return weir_where(out, a, b, a);
  }
}

static void device_calculates_as_cpu(int form, weir_dtype dtype, bool turned)
{
  weir_tensor *whole, *t[4], *far, *near[2] = {NULL}, *back;
  const weir_options on_device = {.device = WEIR_CUDA_AT(0)};
  for (int i = 0; i < 2; i++) {
    weir_dtype as = form == 9 && i == 0 ? WEIR_BOOL : dtype;
    weir_ok(weir_arange(&whole, weir_int(i), weir_int(i + SIDE * SIDE), weir_int(1), NULL));
    weir_ok(weir_reshape(&back, whole, weir_shape(SIDE, SIDE)));
    weir_ok(weir_to(&t[i], back, &(weir_options){.dtype = as}));
    weir_ok(weir_to(&far, t[i], &on_device));
    if (turned) weir_ok(weir_transpose(&t[2 + i], far, 0, 1));
    if (turned) weir_ok(weir_transpose(&near[i], t[i], 0, 1));
    if (turned) weir_tensor_release(far), weir_tensor_release(t[i]), t[i] = near[i];
    if (!turned) t[2 + i] = far;
    weir_tensor_release(whole);
    weir_tensor_release(back);
  }
  weir_tensor *want = NULL, *got = NULL;
  weir_status st = calculate(&want, form, t[0], t[1]);
  ck_assert_int_eq(calculate(&got, form, t[2], t[3]), st);
  if (!st) {
    bool same;
    weir_ok(weir_to(&back, got, &(weir_options){.device = WEIR_CPU}));
    weir_ok(weir_equal(&same, back, want));
    ck_assert_msg(same, "form %d of %s", form, weir_dtype_name(dtype));
    weir_tensor_release(back);
  }
  weir_tensor_release(want);
  weir_tensor_release(got);
  for (int i = 0; i < 4; i++)
    weir_tensor_release(t[i]);
}

START_TEST(only_what_was_set_is_read)
{
  for (int form = 0; form < FORMS; form++)
    for (int d = 0; d < DTYPES; d++)
      device_calculates_as_cpu(form, dtypes[d], _i);
}
END_TEST

int main(void)
{
  const TTest *const tests[] = {only_what_was_set_is_read, NULL};
  return rig_run("CUDA: fields that are set", tests, 2);
}
