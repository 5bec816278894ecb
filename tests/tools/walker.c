/* walker.c: COUNTERS STEP...: a program that lives as its steps say and counts its CUDA calls in a
 * shared file before and after each, so that whoever kills it knows what its trace must hold.
 *
 * N: N calls; exec: the image is replaced; child: a child makes a call and is waited for; fork: a
 * child goes on, and the parent waits for it; orphan: a child goes on, the parent ends; spawn: an
 * image of a new process goes on, the parent ends. */
#include <cuda_runtime_api.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/e2e/ticker.h"

static ticker_page *page;

static void allocate_counted(int times)
{
  while (times-- > 0) {
    void *p;
    atomic_fetch_add(&page->begun, 1);
    if (cudaMalloc(&p, 64) != cudaSuccess) _exit(3);
    atomic_fetch_add(&page->done, 1);
  }
}

static void fork_on(int wait)
{
  int status = 0;
  pid_t pid = fork();
  if (pid == 0) return;
  if (wait) (void)waitpid(pid, &status, 0);
  exit(0);
}

static void fork_child(void)
{
  int status;
  pid_t pid = fork();
  if (pid == 0) {
    allocate_counted(1);
    exit(0);
  }
  (void)waitpid(pid, &status, 0);
}

/* The rest of the steps, as a next image is told them. */
static char **rest(char **argv, int at)
{
  char *program = argv[0], *counters = argv[1];
  argv[at - 1] = program;
  argv[at] = counters;
  return argv + at - 1;
}

int main(int argc, char **argv)
{
  pid_t pid;
  int fd = argc > 1 ? open(argv[1], O_RDWR | O_CLOEXEC) : -1;
  page = mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (page == MAP_FAILED) return 1;
  (void)close(fd);
  for (int at = 2; at < argc; at++) {
    if (!strcmp(argv[at], "exec")) return (void)execv("/proc/self/exe", rest(argv, at)), 4;
    if (!strcmp(argv[at], "spawn"))
      return posix_spawn(&pid, "/proc/self/exe", NULL, NULL, rest(argv, at), environ);
    if (!strcmp(argv[at], "child"))
      fork_child();
    else if (!strcmp(argv[at], "fork"))
      fork_on(1);
    else if (!strcmp(argv[at], "orphan"))
      fork_on(0);
    else
      allocate_counted(atoi(argv[at]));
  }
  return 0;
}
