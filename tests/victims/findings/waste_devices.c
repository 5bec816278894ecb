/* waste_devices.c: a device that has nothing to do. */
#include <unistd.h>
#include "tests/victims/findings/waster.h"

enum { PIECES = 4, AWAY_US = 5000 };

/* The memsets follow each other, or the host is away between them: by its own clock the device
 * is at work until a gate is opened, behind which all of them are queued. */
static void set_memory(int away)
{
  int *flags = (int *)(void *)pinned_memory(64);
  char *p = device_memory(4096);
  if (!away) CHECK((cudaError_t)victim_gate_launch(NULL, flags));
  for (int i = 0; i < PIECES; i++) {
    CHECK(cudaMemsetAsync(p + i * 1024, i, 1024, NULL)); /* WASTE device-idle */
    if (away) CHECK(cudaDeviceSynchronize());
    if (away) (void)usleep(AWAY_US);
  }
  ((volatile int *)flags)[1] = 1;
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaFree(p));
  CHECK(cudaFreeHost(flags));
}

static void device_idle(void)
{
  set_memory(1);
}

static void device_idle_twin(void)
{
  set_memory(0);
}

const waster device_wasters[] = {
    {"device-idle", device_idle, device_idle_twin, "--device-times=all"},
    {NULL, NULL, NULL, NULL},
};
