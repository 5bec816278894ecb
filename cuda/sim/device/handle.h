/* handle.h: what is handed to other processes: memory (memory/ipc.c) and events (stream/shared.c).
 *
 * A handle names the process that exports (by number and start time), one of its open files, and a
 * place in it; who opens it reads that file through /proc/PID/fd. */
#ifndef WEIR_SIM_HANDLE_H
#define WEIR_SIM_HANDLE_H

#include "cuda/sim/internal.h"

struct sim_handle { /* what is in a CUipcMemHandle or CUipcEventHandle */
  char magic[8];
  int32_t pid, file; /* of the process that exports */
  uint64_t started;  /* when that process was, in the system's ticks */
  uint64_t offset;   /* of the memory, or of the slot, in the file */
  uint64_t bytes;
  uint64_t id;    /* of the allocation or the slot's use */
  int32_t index;  /* of the device, whatever is visible */
  uint32_t place; /* in the exports */
  uint64_t pool;  /* number of the pool it is of; 0: not of a pool */
};
_Static_assert(sizeof(struct sim_handle) <= CU_IPC_HANDLE_SIZE, "a handle's room");

uint64_t sim_process_started(int pid); /* 0: there is none */
/* The number is open, and that very file: programs close what is not theirs. */
bool sim_file_is(int file, ino_t inode);
/* The file of another process that the handle names; -1: it is gone, or its name begins otherwise.
 */
int sim_handle_open(const struct sim_handle *h, const char *name);
CUresult sim_handle_check(const struct sim_handle *h, const char *magic);

#endif
