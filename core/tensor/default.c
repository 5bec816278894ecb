/* default.c: what a tensor is where nobody chooses: the process's default dtype and device.
 *
 * Both are read at every creation, so each is one atomic word. */
#include "core/tensor/tensor.h"

static _Atomic int dtype_now = WEIR_FLOAT32;
static _Atomic uint64_t device_now; /* type << 32 | index as 32 bits; 0: the cpu */

weir_status weir_set_default_dtype(weir_dtype dtype)
{
  if (!weir_dtype_is_floating_point(dtype))
    return fail_invalid("only floating-point types are supported as the default type");
  atomic_store_explicit(&dtype_now, (int)dtype, memory_order_relaxed);
  return WEIR_OK;
}

weir_dtype weir_get_default_dtype(void)
{
  return (weir_dtype)atomic_load_explicit(&dtype_now, memory_order_relaxed);
}

weir_status weir_set_default_device(weir_device device)
{
  if (device.type == WEIR_DEVICE_UNSET) device = WEIR_CPU;
  if (device.type != WEIR_DEVICE_CPU && device.type != WEIR_DEVICE_CUDA)
    return fail_invalid("%d is no device type", (int)device.type);
  if (device.type == WEIR_DEVICE_CPU && weir_device_index(device) > 0)
    return fail_invalid("CPU device index must be -1 or zero, got %d", weir_device_index(device));
  if (device.type == WEIR_DEVICE_CPU) device = WEIR_CPU;
  uint64_t word = (uint64_t)device.type << 32 | (uint32_t)device.index.plus_1;
  atomic_store_explicit(&device_now, word, memory_order_relaxed);
  return WEIR_OK;
}

weir_device weir_get_default_device(void)
{
  uint64_t word = atomic_load_explicit(&device_now, memory_order_relaxed);
  if (__builtin_expect(!word, 1)) return WEIR_CPU;
  return (weir_device){(weir_device_type)(word >> 32), {(int)(uint32_t)word}};
}

weir_status weir_set_default_tensor_type(const char *type)
{
  WEIR_REQUIRE(type);
  weir_dtype dtype;
  weir_device device;
  weir_status st = weir_type_parse(&dtype, &device, type);
  if (!st) st = weir_set_default_dtype(dtype);
  return st ? st : weir_set_default_device(device);
}
