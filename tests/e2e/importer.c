/* importer.c: memory of another process, opened by IPC.
 *
 * The parent allocates and exports, the child opens (twice), copies from it and closes: once, so
 * that one open is left when it ends, when asked "leave". The trace tells the rest.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "tests/e2e/driver.h"

#define BYTES ((size_t)4 << 20)

static void import(int in, int leave)
{
  CUipcMemHandle h;
  CUdeviceptr p, again;
  char *host = malloc(BYTES);
  if (!host || read(in, &h, sizeof h) != (ssize_t)sizeof h) _exit(1);
  begin_on_device();
  CHECK(cuIpcOpenMemHandle(&p, h, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
  CHECK(cuIpcOpenMemHandle(&again, h, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
  CHECK(cuMemcpyDtoH(host, p + 4096, BYTES - 4096));
  CHECK(cuIpcCloseMemHandle(p));
  if (!leave) CHECK(cuIpcCloseMemHandle(again));
  free(host);
}

int main(int argc, char **argv)
{
  int to[2], status = 1;
  CUdeviceptr p;
  CUipcMemHandle h;
  if (argc != 2 || pipe(to) != 0) return 2;
  pid_t child = fork();
  if (child < 0) return 1;
  if (!child) {
    import(to[0], strcmp(argv[1], "leave") == 0);
    return 0;
  }
  begin_on_device();
  CHECK(cuMemAlloc(&p, BYTES));
  CHECK(cuIpcGetMemHandle(&h, p));
  if (write(to[1], &h, sizeof h) != (ssize_t)sizeof h) return 1;
  if (waitpid(child, &status, 0) != child || status) return 1;
  CHECK(cuMemFree(p));
  return 0;
}
