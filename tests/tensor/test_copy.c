/* test_copy.c: copy_, fill_ and zero_: broadcast, casts, strides, any pair of devices. */
#include "tests/tensor/rig.h"

enum { PLACES = 3 }; /* cpu, cuda:0, cuda:1 */

/* A random view of a new tensor of the sizes: dimensions exchanged, every second element, a part.
 */
static weir_tensor *odd_view(uint64_t *seed, weir_shape shape, weir_dtype dtype, weir_device d)
{
  weir_shape room = shape;
  weir_tensor *t, *v;
  bool turn = shape.count > 1 && rig_random(seed) % 2;
  int wide = shape.count ? (int)(rig_random(seed) % (uint64_t)shape.count) : 0;
  int64_t step = (int64_t)(rig_random(seed) % 3) + 1;
  if (shape.count) room.size[wide] = shape.size[wide] * step + 1;
  if (turn) {
    int64_t kept = room.size[0];
    room.size[0] = room.size[shape.count - 1];
    room.size[shape.count - 1] = kept;
  }
  t = counting(room, dtype, d);
  if (turn) {
    weir_ok(weir_transpose(&v, t, 0, shape.count - 1));
    weir_tensor_release(t);
    t = v;
  }
  if (!shape.count) return t;
  weir_ok(weir_slice(&v, t, wide, 1, 1 + shape.size[wide] * step, step));
  weir_tensor_release(t);
  shape_is(v, shape);
  return v;
}

static void read_all(double *out, int64_t n, const weir_tensor *t)
{
  weir_ok(weir_tensor_read(out, (size_t)n * sizeof *out, WEIR_FLOAT64, t));
}

/* What broadcasting `from` to `to` gives, by counting places. */
static void expect_broadcast(const weir_tensor *to, const double *got, const weir_tensor *from,
                             const double *values)
{
  for (int64_t i = 0; i < to->numel; i++) {
    int64_t left = i, at = 0, step = 1;
    for (int d = to->dims - 1; d >= 0; d--) {
      int64_t place = left % to->size[d];
      int f = d - (to->dims - from->dims);
      left /= to->size[d];
      if (f < 0) continue;
      at += from->size[f] == 1 ? 0 : place * step;
      step *= from->size[f];
    }
    ck_assert_msg(got[i] == values[at], "element %lld is %g, not %g", (long long)i, got[i],
                  values[at]);
  }
}

/* Small numbers, which every dtype holds; casts to bool are of their own. */
static weir_dtype some_dtype(uint64_t *seed)
{
  static const weir_dtype some[] = {WEIR_UINT8,   WEIR_INT16,   WEIR_INT32,    WEIR_INT64,
                                    WEIR_FLOAT32, WEIR_FLOAT64, WEIR_COMPLEX64};
  return some[rig_random(seed) % 7];
}

START_TEST(any_pair_of_devices_strides_and_dtypes)
{
  uint64_t seed = 11 + (uint64_t)_i;
  static double want[8192], got[8192];
  devices(2);
  for (int round = 0; round < 120; round++) {
    weir_shape to = {.count = (int)(rig_random(&seed) % 4)}, from;
    for (int i = 0; i < to.count; i++)
      to.size[i] = (int64_t)(rig_random(&seed) % 4) + 1;
    int cut = to.count ? (int)(rig_random(&seed) % (uint64_t)(to.count + 1)) : 0;
    from = weir_shape_of(to.count - cut, to.size + cut);
    for (int i = 0; i < from.count; i++)
      if (rig_random(&seed) % 3 == 0) from.size[i] = 1;
    weir_device a = device((int)(rig_random(&seed) % PLACES)),
                b = device((int)(rig_random(&seed) % PLACES));
    WEIR_TENSOR t = odd_view(&seed, to, some_dtype(&seed), a);
    WEIR_TENSOR s = odd_view(&seed, from, some_dtype(&seed), b);
    read_all(want, s->numel, s);
    weir_ok(weir_copy_(t, s, rig_random(&seed) % 2));
    read_all(got, t->numel, t);
    expect_broadcast(t, got, s, want);
  }
}
END_TEST

START_TEST(around_a_strided_destination_nothing_is_written)
{
  devices(2);
  for (int from = 0; from < PLACES; from++) {
    WEIR_TENSOR t = counting(weir_shape(3, 3), WEIR_FLOAT32, device(_i));
    WEIR_TENSOR column = NULL;
    WEIR_TENSOR s = NULL;
    weir_options o = as(WEIR_INT64, device(from));
    weir_ok(weir_full(&s, weir_shape(3), weir_int(-1), &o));
    weir_ok(weir_select(&column, t, 1, 1));
    weir_ok(weir_copy_(column, s, false));
    EXPECT(t, 0, -1, 2, 3, -1, 5, 6, -1, 8);
  }
}
END_TEST

START_TEST(casts_are_c_s)
{
  static const double from[] = {2.75, -2.75, 0, 255, 1e-30};
  WEIR_TENSOR t = NULL;
  WEIR_TENSOR i = NULL;
  WEIR_TENSOR b = NULL;
  WEIR_TENSOR h = NULL;
  WEIR_TENSOR z = NULL;
  devices(2);
  weir_options o = on(device(_i));
  weir_ok(weir_tensor_from(&t, from, WEIR_FLOAT64, weir_shape(5), &o));
  weir_ok(weir_to_dtype(&i, t, WEIR_INT16));
  EXPECT(i, 2, -2, 0, 255, 0);
  weir_ok(weir_to_dtype(&b, t, WEIR_BOOL));
  EXPECT(b, 1, 1, 0, 1, 1);
  weir_ok(weir_to_dtype(&h, t, WEIR_FLOAT16));
  EXPECT(h, 2.75, -2.75, 0, 255, 0);
  weir_ok(weir_to_dtype(&z, t, WEIR_COMPLEX64));
  weir_scalar v;
  WEIR_TENSOR one = NULL;
  weir_ok(weir_select(&one, z, 0, 1));
  weir_ok(weir_item(&v, one));
  ck_assert(v.f == -2.75 && v.imag == 0);
}
END_TEST

START_TEST(sizes_that_do_not_match_are_refused)
{
  devices(2);
  WEIR_TENSOR three = counting(weir_shape(3), WEIR_FLOAT32, device(_i));
  WEIR_TENSOR four = counting(weir_shape(4), WEIR_FLOAT32, cpu);
  WEIR_TENSOR two = counting(weir_shape(2, 3), WEIR_FLOAT32, cuda0);
  refused(WEIR_EINVAL,
          "The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension "
          "0",
          weir_copy_(three, four, false));
  refused(WEIR_EINVAL,
          "The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension "
          "1",
          weir_copy_(two, four, false));
  refused(WEIR_EINVAL, "output with shape [3] doesn't match the broadcast shape [2, 3]",
          weir_copy_(three, two, false));
  EXPECT(three, 0, 1, 2);
}
END_TEST

START_TEST(memory_that_is_written_twice_or_read_meanwhile_is_refused)
{
  devices(2);
  WEIR_TENSOR t = counting(weir_shape(3, 3), WEIR_FLOAT32, device(_i));
  WEIR_TENSOR row = NULL;
  WEIR_TENSOR wide = NULL;
  WEIR_TENSOR turned = NULL;
  WEIR_TENSOR a = NULL;
  WEIR_TENSOR b = NULL;
  weir_ok(weir_narrow(&row, t, 0, 0, 1));
  weir_ok(weir_expand(&wide, row, weir_shape(3, 3)));
  refused(
      WEIR_EINVAL,
      "unsupported operation: more than one element of the written-to tensor refers to a single "
      "memory location. Please clone() the tensor before performing the operation.",
      weir_copy_(wide, t, false));
  weir_ok(weir_t(&turned, t));
  const char *text = "unsupported operation: some elements of the input tensor and the written-to "
                     "tensor refer to a single memory location. Please clone() the tensor before "
                     "performing the operation.";
  refused(WEIR_EINVAL, text, weir_copy_(t, turned, false));
  weir_ok(weir_narrow(&a, t, 0, 0, 2));
  weir_ok(weir_narrow(&b, t, 0, 1, 2));
  refused(WEIR_EINVAL, text, weir_copy_(a, b, false));
  EXPECT(t, 0, 1, 2, 3, 4, 5, 6, 7, 8);
  weir_ok(weir_copy_(t, t, false));
}
END_TEST

START_TEST(columns_beside_each_other_may_overlap)
{
  devices(2);
  WEIR_TENSOR t = counting(weir_shape(3, 3), WEIR_FLOAT32, device(_i));
  WEIR_TENSOR a = NULL;
  WEIR_TENSOR b = NULL;
  weir_ok(weir_narrow(&a, t, 1, 0, 2));
  weir_ok(weir_narrow(&b, t, 1, 1, 2));
  weir_ok(weir_copy_(a, b, false));
  EXPECT(t, 1, 2, 2, 4, 5, 5, 7, 8, 8);
}
END_TEST

START_TEST(fills_reach_every_element_of_a_view_and_no_other)
{
  devices(2);
  WEIR_TENSOR t = counting(weir_shape(2, 3), WEIR_INT32, device(_i));
  WEIR_TENSOR v = NULL;
  weir_ok(weir_slice(&v, t, 1, 0, 3, 2));
  weir_ok(weir_fill_(v, weir_float(7.9)));
  EXPECT(t, 7, 1, 7, 7, 4, 7);
  weir_ok(weir_zero_(v));
  EXPECT(t, 0, 1, 0, 0, 4, 0);
  refused(WEIR_EINVAL, "value cannot be converted to type int without overflow",
          weir_fill_(t, weir_float(1e10)));
}
END_TEST

START_TEST(empty_tensors_are_copied_and_filled)
{
  devices(2);
  WEIR_TENSOR a = counting(weir_shape(0, 3), WEIR_FLOAT32, device(_i));
  WEIR_TENSOR b = counting(weir_shape(0, 3), WEIR_INT8, cpu);
  WEIR_TENSOR one = counting(weir_shape(1, 3), WEIR_INT8, cuda1);
  weir_ok(weir_copy_(a, b, false));
  weir_ok(weir_copy_(b, a, true));
  weir_ok(weir_copy_(a, one, false));
  weir_ok(weir_fill_(a, weir_int(1)));
  weir_ok(weir_zero_(a));
  WEIR_TENSOR c = NULL;
  weir_ok(weir_clone(&c, a));
  ck_assert_int_eq(weir_tensor_numel(c), 0);
}
END_TEST

/* Counted by the software device: an expanded source sends its elements once, and the smaller
 * dtype travels. */
START_TEST(a_copy_to_a_device_sends_as_little_as_it_can)
{
  devices(1);
  if (!rig_simulated()) return;
  WEIR_TENSOR one = counting(weir_shape(1, 4), WEIR_UINT8, cpu);
  WEIR_TENSOR wide = NULL;
  WEIR_TENSOR to = NULL;
  weir_options o = as(WEIR_FLOAT32, cuda0);
  weir_ok(weir_zeros(&to, weir_shape(1000, 4), &o));
  weir_ok(weir_expand(&wide, one, weir_shape(1000, 4)));
  uint64_t before = rig_calls("cuMemcpyHtoDAsync_v2");
  weir_ok(weir_copy_(to, wide, false));
  ck_assert_uint_eq(rig_calls("cuMemcpyHtoDAsync_v2") - before, 1);
  double got[4];
  WEIR_TENSOR last = NULL;
  weir_ok(weir_select(&last, to, 0, 999));
  read_all(got, 4, last);
  ck_assert(got[3] == 3);
}
END_TEST

int main(void)
{
  const TTest *const tests[] = {any_pair_of_devices_strides_and_dtypes,
                                around_a_strided_destination_nothing_is_written,
                                casts_are_c_s,
                                sizes_that_do_not_match_are_refused,
                                memory_that_is_written_twice_or_read_meanwhile_is_refused,
                                columns_beside_each_other_may_overlap,
                                fills_reach_every_element_of_a_view_and_no_other,
                                empty_tensors_are_copied_and_filled,
                                a_copy_to_a_device_sends_as_little_as_it_can,
                                NULL};
  return rig_run("tensor/copy", tests, DEVICES_TRIED);
}
