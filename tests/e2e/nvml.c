/* nvml.c: a stand-in for libnvidia-ml.so.1. What it says stands in the file that WEIR_TEST_NVML
 * names, which is read at every question: a line a device, "domain bus device total reserved used",
 * then pairs of a process and what it uses. What it has said of used bytes it writes to the FIFO
 * WEIR_TEST_NVML_SAID, as far as somebody reads that. Of NVML it has what the collector asks. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

enum { OK = 0, INVALID = 2, TOO_SMALL = 7, DEVICES = 4, PROCESSES = 16 };

typedef struct device {
  unsigned domain, bus, device;
  unsigned long long total, reserved, used;
  unsigned pid[PROCESSES];
  unsigned long long of[PROCESSES];
  unsigned processes;
} device;

typedef struct process {
  unsigned pid;
  unsigned long long used;
  unsigned gpu_instance, compute_instance;
} process;

static device devices[DEVICES];

static void read_line(device *d, const char *line)
{
  int at = 0;
  *d = (device){.processes = 0};
  if (sscanf(line, "%x %x %x %llu %llu %llu%n", &d->domain, &d->bus, &d->device, &d->total,
             &d->reserved, &d->used, &at) != 6)
    return;
  for (int n = 0; d->processes < PROCESSES; at += n, d->processes++)
    if (sscanf(line + at, "%u %llu%n", &d->pid[d->processes], &d->of[d->processes], &n) != 2) break;
}

static unsigned read_file(void)
{
  const char *path = getenv("WEIR_TEST_NVML");
  FILE *f = path ? fopen(path, "r") : NULL;
  char line[512];
  unsigned n = 0;
  while (f && n < DEVICES && fgets(line, sizeof line, f))
    read_line(&devices[n++], line);
  if (f) (void)fclose(f);
  return n;
}

EXPORT int nvmlInit_v2(void);
int nvmlInit_v2(void)
{
  return read_file() ? OK : INVALID;
}

EXPORT int nvmlShutdown(void);
int nvmlShutdown(void)
{
  return OK;
}

EXPORT int nvmlDeviceGetCount_v2(unsigned *n);
int nvmlDeviceGetCount_v2(unsigned *n)
{
  *n = read_file();
  return OK;
}

EXPORT int nvmlDeviceGetHandleByIndex_v2(unsigned i, device **out);
int nvmlDeviceGetHandleByIndex_v2(unsigned i, device **out)
{
  if (i >= DEVICES) return INVALID;
  *out = &devices[i];
  return OK;
}

typedef struct pci {
  char bus_legacy[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_text[32];
} pci;

EXPORT int nvmlDeviceGetPciInfo_v3(const device *d, pci *out);
int nvmlDeviceGetPciInfo_v3(const device *d, pci *out)
{
  *out = (pci){.domain = d->domain, .bus = d->bus, .device = d->device};
  return OK;
}

typedef struct memory {
  unsigned long long total, free, used;
} memory;

EXPORT int nvmlDeviceGetMemoryInfo(const device *d, memory *out);
int nvmlDeviceGetMemoryInfo(const device *d, memory *out)
{
  (void)read_file();
  *out = (memory){d->total, d->total - d->used - d->reserved, d->used + d->reserved};
  return OK;
}

static void tell_reader(const device *d)
{
  const char *path = getenv("WEIR_TEST_NVML_SAID");
  int fd = path ? open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC) : -1;
  if (fd < 0) return;
  (void)!write(fd, &d->used, sizeof d->used);
  (void)close(fd);
}

typedef struct memory_v2 {
  unsigned version;
  unsigned long long total, reserved, free, used;
} memory_v2;

EXPORT int nvmlDeviceGetMemoryInfo_v2(const device *d, memory_v2 *out);
int nvmlDeviceGetMemoryInfo_v2(const device *d, memory_v2 *out)
{
  (void)read_file();
  if (out->version != (sizeof *out | 2u << 24)) return INVALID;
  out->total = d->total;
  out->reserved = d->reserved;
  out->used = d->used;
  out->free = d->total - d->used - d->reserved;
  return OK;
}

EXPORT int nvmlDeviceGetComputeRunningProcesses_v3(const device *d, unsigned *n, process *out);
int nvmlDeviceGetComputeRunningProcesses_v3(const device *d, unsigned *n, process *out)
{
  unsigned room = *n;
  (void)read_file();
  *n = d->processes;
  if (d->processes > room) return TOO_SMALL;
  tell_reader(d); /* the last question of a sample */
  for (unsigned i = 0; i < d->processes; i++)
    out[i] = (process){.pid = d->pid[i], .used = d->of[i]};
  return OK;
}
