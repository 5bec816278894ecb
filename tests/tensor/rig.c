/* rig.c: see rig.h. */
#include "tests/tensor/rig.h"

const weir_device cpu = {.type = WEIR_DEVICE_CPU}, cuda0 = WEIR_CUDA_INIT(0),
                  cuda1 = WEIR_CUDA_INIT(1), cuda_any = WEIR_CUDA_INIT(-1);

weir_device device(int i)
{
  return i ? WEIR_CUDA_AT(i - 1) : cpu;
}

void devices(int count)
{
  char text[16];
  (void)snprintf(text, sizeof text, "%d", count);
  if (rig_simulated()) ck_assert_int_eq(setenv("WEIR_SIM_DEVICES", text, 1), 0);
}

weir_options on(weir_device d)
{
  return (weir_options){.device = d};
}

weir_options as(weir_dtype dtype, weir_device d)
{
  return (weir_options){.dtype = dtype, .device = d};
}

weir_tensor *counting(weir_shape shape, weir_dtype dtype, weir_device d)
{
  int64_t n = 1;
  for (int i = 0; i < shape.count; i++)
    n *= shape.size[i];
  int64_t *values = malloc((size_t)(n + 1) * sizeof *values);
  ck_assert_ptr_nonnull(values);
  for (int64_t i = 0; i < n; i++)
    values[i] = i;
  weir_tensor *t;
  weir_options o = as(dtype, d);
  weir_ok(weir_tensor_from(&t, values, WEIR_INT64, shape, &o));
  free(values);
  return t;
}

void elements_are(const weir_tensor *t, int count, const double *values)
{
  double *got = malloc((size_t)(count + 1) * sizeof *got);
  ck_assert_ptr_nonnull(got);
  ck_assert_int_eq(weir_tensor_numel(t), count);
  weir_ok(weir_tensor_read(got, (size_t)count * sizeof *got, WEIR_FLOAT64, t));
  for (int i = 0; i < count; i++)
    ck_assert_msg(got[i] == values[i], "element %d is %g, not %g", i, got[i], values[i]);
  free(got);
}

void shape_is(const weir_tensor *t, weir_shape shape)
{
  text_buffer have, want;
  (void)shape_format(&have, weir_tensor_shape(t));
  ck_assert_str_eq(have.at, shape_format(&want, shape));
}

void strides_are(const weir_tensor *t, weir_shape strides)
{
  ck_assert_int_eq(weir_tensor_dim(t), strides.count);
  for (int i = 0; i < strides.count; i++)
    ck_assert_int_eq(weir_tensor_stride(t, i), strides.size[i]);
}

void is_on(const weir_tensor *t, weir_device d)
{
  ck_assert_int_eq(weir_tensor_device(t).type, d.type);
  ck_assert_int_eq(weir_device_index(weir_tensor_device(t)), weir_device_index(d));
  ck_assert_int_eq(weir_tensor_is_cuda(t), d.type == WEIR_DEVICE_CUDA);
}

weir_stream *hold_stream(lane *l, weir_device d)
{
  weir_stream *s;
  void *native;
  CUcontext context;
  CUdevice number;
  weir_ok(weir_stream_create(&s, d));
  weir_ok(weir_stream_native(&native, s));
  ok(cuDeviceGet(&number, weir_device_index(d) < 0 ? 0 : weir_device_index(d)));
  ok(cuDevicePrimaryCtxRetain(&context, number));
  ok(cuCtxSetCurrent(context));
  *l = (lane){.stream = native};
  if (!rig_simulated()) {
    ok(cuMemHostAlloc((void **)&l->word, sizeof *l->word, CU_MEMHOSTALLOC_DEVICEMAP));
    *l->word = 0;
  }
  gate_add(l);
  return s;
}

bool done(weir_stream *s)
{
  bool complete;
  weir_ok(weir_stream_query(&complete, s));
  return complete;
}
