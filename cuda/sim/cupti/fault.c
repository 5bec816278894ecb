/* fault.c: what can be made to go wrong, by WEIR_SIM_CUPTI or weir_sim_cupti_set() (control.h).
 * All of it has been seen of CUPTI's releases, or may happen by its documents. */
#include "cuda/sim/cupti/sim_cupti.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cuda/sim/control.h"

_Atomic bool sim_graph_launched;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct sim_faults faults;

static void write_line(const char *what, const char *of)
{
  char line[300];
  int n = snprintf(line, sizeof line, "weir sim: libcupti %s %s\n", what, of);
  ssize_t written = write(STDERR_FILENO, line, n < (int)sizeof line ? (size_t)n : sizeof line - 1);
  (void)written;
}

_Noreturn void sim_crash(const char *why)
{
  write_line("crashes, as it was asked to:", why);
  abort();
}

void sim_hang(const char *why)
{
  write_line("hangs, as it was asked to:", why);
  for (;;)
    pause();
}

#define WORDS(X)                                                                                   \
  X("zero-times", zero_times)                                                                      \
  X("reversed-times", reversed_times)                                                              \
  X("lost-device-syncs", lost_device_syncs)                                                        \
  X("disable-hangs", disable_hangs)                                                                \
  X("finalize-crashes", finalize_crashes)                                                          \
  X("null-buffer-crashes", null_crashes)                                                           \
  X("flush-hangs", flush_hangs)                                                                    \
  X("subscribed", subscribed)                                                                      \
  X("allocates", allocates)                                                                        \
  X("sharing-stays", sharing_stays)

static bool read_fault_word(const char *word)
{
#define X(name, field)                                                                             \
  if (strcmp(word, name) == 0) return faults.field = true;
  WORDS(X)
#undef X
  const char *colon = strchr(word, ':');
  char *end = NULL;
  unsigned long n = colon ? strtoul(colon + 1, &end, 10) : 0;
  if (!colon || !n || *end) return false;
  size_t length = (size_t)(colon - word);
  if (length == 7 && strncmp(word, "version", length) == 0)
    sim_cupti_version = (uint32_t)n;
  else if (length == 4 && strncmp(word, "drop", length) == 0)
    faults.drop = (uint32_t)n;
  else if (length == 6 && strncmp(word, "enable", length) == 0)
    faults.enable_answers = (uint32_t)n;
  else
    return false;
  return true;
}

static int read_list(const char *list)
{
  char copy[1000];
  int result = 0;
  memset(&faults, 0, sizeof faults);
  sim_cupti_version = SIM_CUPTI_VERSION;
  strncpy(copy, list ? list : "", sizeof copy - 1);
  copy[sizeof copy - 1] = 0;
  char *rest = copy;
  for (char *word; (word = strsep(&rest, ","));) {
    if (!*word || read_fault_word(word)) continue;
    write_line("fault not understood (WEIR_SIM_CUPTI):", word);
    result = CUPTI_ERROR_INVALID_PARAMETER;
  }
  return result;
}

static void read_environment(void)
{
  (void)read_list(getenv("WEIR_SIM_CUPTI"));
}

/* Before any call, the version's too. */
__attribute__((constructor)) static void read_at_load(void)
{
  pthread_once(&once, read_environment);
}

const struct sim_faults *sim_faults(void)
{
  return &faults;
}

CUPTI_API int weir_sim_cupti_set(const char *list)
{
  return read_list(list);
}
