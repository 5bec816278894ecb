/* broadcast.c: the shape and the device that operands have in common. */
#include <stdio.h>
#include "core/tensor/loop.h"

weir_status shape_broadcast(weir_shape *shape, const int64_t *size, int dims)
{
  weir_shape a = *shape;
  int most = a.count > dims ? a.count : dims;
  for (int i = most - 1; i >= 0; i--) {
    int at = i - (most - a.count), of = i - (most - dims);
    int64_t x = at < 0 ? 1 : a.size[at], y = of < 0 ? 1 : size[of];
    if (x != y && x != 1 && y != 1)
      return fail_invalid("The size of tensor a (%lld) must match the size of tensor b (%lld) at "
                          "non-singleton dimension %d",
                          (long long)x, (long long)y, i);
    shape->size[i] = x == 1 ? y : x;
  }
  shape->count = most;
  return WEIR_OK;
}

const char *device_format(char text[WEIR_DEVICE_TEXT], weir_device device)
{
  if (device.type == WEIR_DEVICE_CUDA)
    (void)snprintf(text, WEIR_DEVICE_TEXT, "cuda:%d", weir_device_index(device));
  else
    (void)snprintf(text, WEIR_DEVICE_TEXT, "cpu");
  return text;
}

weir_status check_same_device(const weir_tensor *a, const weir_tensor *b)
{
  char one[WEIR_DEVICE_TEXT], two[WEIR_DEVICE_TEXT];
  if (weir_device_equal(device_of_tensor(a), device_of_tensor(b))) return WEIR_OK;
  return fail_invalid(
      "Expected all tensors to be on the same device, but found at least two devices, %s and %s!",
      device_format(one, device_of_tensor(a)), device_format(two, device_of_tensor(b)));
}
