/* nvml_caller.c: 64 MiB come and go on a device of which NVML says what this program says.
 *
 * What the stand-in for NVML (nvml.c) is to say is written to the file WEIR_TEST_NVML, in which the
 * test has put what it says before main(); that it was asked is read from the FIFO
 * WEIR_TEST_NVML_SAID. So all of it is in order, whatever the speed. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tests/e2e/driver.h"

#define MIB 1048576ull

static int asked;
static size_t total;

/* In MiB: in use, of this process, of another. Renamed into place: it is read at any moment. */
static void write_answer(unsigned long long used, unsigned long long own, unsigned long long other)
{
  char made[4096];
  const char *path = getenv("WEIR_TEST_NVML");
  (void)snprintf(made, sizeof made, "%s.new", path);
  FILE *f = fopen(made, "w");
  if (!f) _exit(1);
  (void)fprintf(f, "0 10 0 %llu %llu %llu 99999999 %llu", (unsigned long long)total, 5 * MIB,
                used * MIB, other * MIB);
  if (own) (void)fprintf(f, " %d %llu", (int)getpid(), own * MIB);
  if (fclose(f) != 0 || rename(made, path) != 0) _exit(1);
}

static void wait_until_said(unsigned long long used)
{
  unsigned long long said = 0;
  while (said != used * MIB)
    if (read(asked, &said, sizeof said) != (ssize_t)sizeof said) _exit(1);
}

int main(void)
{
  CUdeviceptr p;
  CUdevice device;
  const char *path = getenv("WEIR_TEST_NVML_SAID");
  total = 1 << 30;
  if (!path || mkfifo(path, 0600) != 0) return 2;
  asked = open(path, O_RDWR | O_CLOEXEC); /* never at its end */
  write_answer(300, 50, 7);
  CHECK(cuInit(0));
  CHECK(cuDeviceGet(&device, 0));
  CHECK(cuDeviceTotalMem(&total, device));
  write_answer(300, 50, 7);
  begin_on_device();
  wait_until_said(300);
  CHECK(cuMemAlloc(&p, 64 * MIB));
  write_answer(364, 114, 7);
  wait_until_said(364);
  write_answer(384, 114, 27);
  wait_until_said(384);
  CHECK(cuMemFree(p));
  write_answer(270, 0, 27);
  return 0;
}
