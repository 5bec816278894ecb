/* tools.c: see tools.h. How each is known:
 *
 * compute-sanitizer starts its target with NV_SANITIZER_INJECTION_PORT_BASE (older:
 * ..._PORT_RANGE_BEGIN) and others of that prefix, which a target can see; a library of it may also
 * come by CUDA_INJECTION64_PATH, the driver's way to load one at cuInit. cuda-memcheck sets
 * CUDA_MEMCHECK. The NV_COMPUTE_SANITIZER_* variables are the user's settings and stay set without
 * the tool: they mean nothing here. Nor does the name of an injected library that is no
 * sanitizer's: profilers come the same way and do no harm.
 *
 * cuda-gdb is the tracer of the program that it has started; one that attaches, or works through a
 * server, sets the driver's variables cudbgIpcFlag and cudbgApiClientPid (cudadebugger.h of the
 * CUDA Toolkit: CUDBG_IPC_FLAG_NAME, CUDBG_APICLIENT_PID). A gdb that is not CUDA's is no reason.
 */
#include "interpose/process/tools.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "interpose/elf/elf.h"
#include "interpose/process/process.h"

/* In any of a list of paths, the last part of it. NVIDIA's libraries are called lib*, and
 * Valgrind's memcheck, which is no reason, comes as vgpreload_memcheck-*. */
static bool names_library(const char *list, const char *part)
{
  while (list && *list) {
    size_t n = strcspn(list, ": ");
    const char *name = list;
    for (const char *p = list; p < list + n; p++)
      if (*p == '/') name = p + 1;
    const char *found = strncmp(name, "lib", 3) ? NULL : strstr(name, part);
    if (found && found < list + n) return true;
    list += n + (list[n] != 0);
  }
  return false;
}

static const char *by_environment(void)
{
  static const char *const variables[] = {"CUDA_INJECTION64_PATH", "LD_PRELOAD"};
  for (char **e = environ; e && *e; e++)
    if (!strncmp(*e, "NV_SANITIZER_INJECTION_", 23)) return "compute-sanitizer";
  if (getenv("CUDA_MEMCHECK")) return "cuda-memcheck";
  for (int i = 0; i < 2; i++) {
    const char *list = getenv(variables[i]);
    if (names_library(list, "libsanitizer-")) return "compute-sanitizer";
    if (names_library(list, "memcheck")) return "cuda-memcheck";
  }
  return NULL;
}

/* Up to `room` - 1 bytes of a small file, NUL-terminated; false: it can't be read. */
static bool read_small_file(const char *path, char *text, size_t room)
{
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  ssize_t n = read(fd, text, room - 1);
  (void)close(fd);
  text[n > 0 ? n : 0] = 0;
  return n > 0;
}

static const char *by_tracer(void)
{
  char text[2048], path[64];
  if (!read_small_file("/proc/self/status", text, sizeof text)) return NULL;
  const char *at = strstr(text, "\nTracerPid:");
  long pid = at ? strtol(at + 11, NULL, 10) : 0;
  if (pid <= 0) return NULL;
  (void)snprintf(path, sizeof path, "/proc/%ld/comm", pid);
  if (!read_small_file(path, text, sizeof text)) return NULL;
  return strncmp(text, "cuda-gdb", 8) ? NULL : "cuda-gdb";
}

const char *tool_at_start(void)
{
  return by_environment();
}

static const char *by_driver(void)
{
  static const char *const names[] = {"cudbgIpcFlag", "cudbgApiClientPid"};
  for (int i = 0; i < 2; i++) {
    const uint32_t *value = elf_symbol(cuda_library_soname(WEIR_BANK_DRIVER), names[i]);
    if (value && __atomic_load_n(value, __ATOMIC_RELAXED)) return "cuda-gdb";
  }
  return NULL;
}

const char *tool_at_work(void)
{
  int saved = errno;
  const char *tool = by_driver();
  if (!tool) tool = by_tracer();
  errno = saved;
  return tool;
}

void tool_report(const char *tool)
{
  char text[128];
  (void)snprintf(text, sizeof text, "%s is at work in this process: it is observed only", tool);
  process_say("%s.", text);
  weir_note(text);
}
