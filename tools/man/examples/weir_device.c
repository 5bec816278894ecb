#include <stdio.h>
#include <weir.h>

int main(void)
{
  int devices;
  weir_device device = weir_device_select(false), now; /* cuda where there is one */
  if (weir_cuda_device_count(&devices)) return 1;
  printf("%d CUDA devices, %d threads on the cpu, using %s\n", devices, weir_get_num_threads(),
         device.type == WEIR_DEVICE_CUDA ? "cuda" : "cpu");
  for (int i = 0; i < devices; i++)
    WEIR_WITH_DEVICE(WEIR_CUDA_AT(i))
    {
      if (weir_current_device(&now) || weir_device_index(now) != i) return 1;
    }
  return 0;
}
