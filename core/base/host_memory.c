/* host_memory.c: what the machine, the control group and the limits leave for locked memory.
 *
 * MemAvailable is the kernel's own estimate of what can be had without swapping
 * (Documentation/filesystems/proc.rst). A control group is full when memory.current reaches
 * memory.max (v2) or usage_in_bytes reaches limit_in_bytes (v1); files in the page cache count in
 * it and are given up first, so they are taken off. Any group above may be the tighter one. A
 * container often sees paths of the machine with the mount of its own group only: then the mount's
 * root is read.
 *
 * RLIMIT_MEMLOCK is charged by mlock(2) and by io_uring, RDMA and such. NVIDIA's kernel module pins
 * by pin_user_pages (kernel-open/nvidia/os-mlock.c) and charges nothing: the limit is named in
 * messages, where a driver might do otherwise, and does not stop anybody. */
#include "core/base/host_memory.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

const char *host_root = "";

/* The file as text, cut at `room`; false: not there. */
static bool read_system_file(const char *path, char *text, size_t room)
{
  char full[768];
  size_t used = 0;
  ssize_t n = 1;
  if ((size_t)snprintf(full, sizeof full, "%s%s", host_root, path) >= sizeof full) return false;
  int fd = open(full, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  while (used < room - 1 && (n = read(fd, text + used, room - 1 - used)) > 0)
    used += (size_t)n;
  (void)close(fd);
  text[used] = 0;
  return n >= 0;
}

/* A number after `key` at the beginning of a line; 0: none. */
static uint64_t number_after(const char *text, const char *key)
{
  size_t n = strlen(key);
  for (const char *at = text; at; at = strchr(at, '\n'), at = at ? at + 1 : NULL)
    if (!strncmp(at, key, n)) return strtoull(at + n, NULL, 10);
  return 0;
}

/* ---- control groups -------------------------------------------------------------------------- */

static const struct version {
  const char *prefix;        /* of the line in /proc/self/cgroup */
  const char *mounts[2];     /* where it is mounted */
  const char *limit, *used;  /* files */
  const char *file_pages[2]; /* keys of memory.stat: files that can be dropped */
} versions[] = {{"0::",
                 {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"},
                 "memory.max",
                 "memory.current",
                 {"inactive_file ", "active_file "}},
                {":memory:",
                 {"/sys/fs/cgroup/memory", NULL},
                 "memory.limit_in_bytes",
                 "memory.usage_in_bytes",
                 {"total_inactive_file ", "total_active_file "}}};

static bool number_in_file(const char *folder, const char *file, uint64_t *out)
{
  char path[640], text[64], *end;
  (void)snprintf(path, sizeof path, "%s/%s", folder, file);
  if (!read_system_file(path, text, sizeof text)) return false;
  *out = strtoull(text, &end, 10);
  return end != text; /* "max" is no number: no bound */
}

static void consider_limit(const struct version *v, const char *folder, host_room *r)
{
  char path[640], text[8192];
  uint64_t limit, used, files = 0;
  if (!number_in_file(folder, v->limit, &limit) || limit >= UINT64_C(1) << 62) return;
  if (!number_in_file(folder, v->used, &used)) return;
  (void)snprintf(path, sizeof path, "%s/memory.stat", folder);
  if (read_system_file(path, text, sizeof text))
    for (int i = 0; i < 2; i++)
      files += number_after(text, v->file_pages[i]);
  used = used > files ? used - files : 0;
  uint64_t left = limit > used ? limit - used : 0;
  if (r->cgroup_limit != UINT64_MAX && left >= r->cgroup_limit - r->cgroup_used) return;
  r->cgroup_limit = limit;
  r->cgroup_used = used < limit ? used : limit;
}

/* The group and all above it. */
static void consider_path(const struct version *v, const char *group, host_room *r)
{
  char folder[600];
  for (int m = 0; m < 2 && v->mounts[m]; m++) {
    size_t root = strlen(v->mounts[m]);
    if ((size_t)snprintf(folder, sizeof folder, "%s%s", v->mounts[m], group) >= sizeof folder)
      continue;
    while (strlen(folder) > root) {
      if (folder[strlen(folder) - 1] != '/') consider_limit(v, folder, r);
      *strrchr(folder, '/') = 0;
    }
    consider_limit(v, v->mounts[m], r);
  }
}

static void read_groups(host_room *r)
{
  char text[4096], *rest = text, *line;
  if (!read_system_file("/proc/self/cgroup", text, sizeof text)) return;
  while ((line = strsep(&rest, "\n")))
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
      char *at = strstr(line, versions[i].prefix);
      if (!at || (i == 0 && at != line)) continue;
      consider_path(&versions[i], at + strlen(versions[i].prefix), r);
    }
}

/* ---- memory nodes ---------------------------------------------------------------------------- */

/* Calls `visit` for every number of a list as in "0-3,8". */
static bool each_number(const char *list, void (*visit)(void *user, unsigned n), void *user)
{
  char *end;
  if (*list < '0' || *list > '9') return false;
  do {
    unsigned long from = strtoul(list, &end, 10), to = from;
    if (*end == '-') to = strtoul(end + 1, &end, 10);
    if (to < from || to - from > 65535) return false;
    for (unsigned long n = from; n <= to; n++)
      visit(user, (unsigned)n);
    list = end + 1;
  } while (*end == ',');
  return true;
}

static void add_cpu(void *set, unsigned n)
{
  if (n < CPU_SETSIZE) CPU_SET(n, (cpu_set_t *)set);
}

static void count_node(void *count, unsigned n)
{
  (void)n;
  ++*(unsigned *)count;
}

bool host_node_cpus(int node, void *cpu_set)
{
  char path[96], text[4096];
  CPU_ZERO((cpu_set_t *)cpu_set);
  (void)snprintf(path, sizeof path, "/sys/devices/system/node/node%d/cpulist", node);
  return read_system_file(path, text, sizeof text) && each_number(text, add_cpu, cpu_set) &&
         CPU_COUNT((cpu_set_t *)cpu_set) > 0;
}

/* ---- all ------------------------------------------------------------------------------------- */

void host_room_read(host_room *r)
{
  char text[4096];
  struct rlimit lock;
  *r = (host_room){
      .available = UINT64_MAX, .cgroup_limit = UINT64_MAX, .memlock = UINT64_MAX, .nodes = 0};
  if (read_system_file("/proc/meminfo", text, sizeof text) && number_after(text, "MemAvailable:"))
    r->available = number_after(text, "MemAvailable:") << 10;
  read_groups(r);
  if (!getrlimit(RLIMIT_MEMLOCK, &lock) && lock.rlim_cur != RLIM_INFINITY)
    r->memlock = lock.rlim_cur;
  if (read_system_file("/sys/devices/system/node/has_memory", text, sizeof text) ||
      read_system_file("/sys/devices/system/node/online", text, sizeof text))
    (void)each_number(text, count_node, &r->nodes);
  if (!r->nodes) r->nodes = 1;
}
