/* host_memory.h: how much memory the machine, the control group and the limits leave. */
#ifndef WEIR_BASE_HOST_MEMORY_H
#define WEIR_BASE_HOST_MEMORY_H

#include <stdbool.h>
#include <stdint.h>

/* What the machine has left. UINT64_MAX: no bound, or not known. */
typedef struct host_room {
  uint64_t available;                 /* MemAvailable, bytes */
  uint64_t cgroup_limit, cgroup_used; /* of the group with the least left; used: without files */
  uint64_t memlock;                   /* RLIMIT_MEMLOCK, bytes: reported, not obeyed */
  unsigned nodes;                     /* memory nodes, at least 1 */
} host_room;

extern const char *host_root; /* where /proc and /sys are looked for; tests put a tree here */
void host_room_read(host_room *out);
/* The processors of a memory node; false: not known. */
bool host_node_cpus(int node, void *cpu_set);

#endif
