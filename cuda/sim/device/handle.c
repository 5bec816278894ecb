#include "cuda/sim/device/handle.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* When the process was started; 0: there is none. */
uint64_t sim_process_started(int pid)
{
  char path[64], text[1024];
  (void)snprintf(path, sizeof path, "/proc/%d/stat", pid);
  int file = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t n = file < 0 ? -1 : read(file, text, sizeof text - 1);
  if (file >= 0) close(file);
  if (n <= 0) return 0;
  text[n] = 0;
  char *p = strrchr(text, ')'); /* after it: state, and 18 numbers before the one that is asked */
  for (int field = 2; p && field < 22; field++)
    p = strchr(p + 1, ' ');
  return p ? strtoull(p + 1, NULL, 10) : 0;
}

bool sim_file_is(int file, ino_t inode)
{
  struct stat s;
  return file >= 0 && fstat(file, &s) == 0 && s.st_ino == inode;
}

/* The file of another process that the handle names; -1: it is gone, or not one of ours. */
int sim_handle_open(const struct sim_handle *h, const char *name)
{
  char path[64], link[64];
  if (sim_process_started(h->pid) != h->started || !h->started) return -1;
  (void)snprintf(path, sizeof path, "/proc/%d/fd/%d", h->pid, h->file);
  ssize_t n = readlink(path, link, sizeof link - 1);
  if (n < 0) return -1;
  link[n] = 0;
  return strncmp(link, name, strlen(name)) == 0 ? open(path, O_RDWR | O_CLOEXEC) : -1;
}

CUresult sim_handle_check(const struct sim_handle *h, const char *magic)
{
  if (memcmp(h->magic, magic, sizeof h->magic) != 0) return CUDA_ERROR_INVALID_VALUE;
  /* what a process exports it has already: real drivers answer so too */
  return h->pid == getpid() ? CUDA_ERROR_INVALID_CONTEXT : CUDA_SUCCESS;
}
