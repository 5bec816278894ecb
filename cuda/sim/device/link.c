/* link.c: how quick a device's links are, and numbers as the environment has them. */
#include "cuda/sim/internal.h"

#include <stdlib.h>
#include <string.h>

_Atomic bool sim_link_slow;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sim_link links[SIM_DIRECTIONS];
static const char *const direction_names[SIM_DIRECTIONS] = {"h2d", "d2h", "d2d",
                                                            "p2p", "h2h", "pageable"};

/* A number with an optional K, M, G, T (powers of `step`); advances *text. */
static double number_of_link(const char **text, double step)
{
  char *end;
  double n = strtod(*text, &end);
  const char *suffix = strchr("KMGT", *end);
  if (*end && suffix) {
    for (long i = suffix - "KMGT"; i >= 0; i--)
      n *= step;
    end++;
  }
  *text = end;
  return n;
}

size_t sim_parse_bytes(const char *text, size_t otherwise)
{
  if (!text || !*text) return otherwise;
  const char *p = text;
  double n = number_of_link(&p, 1024);
  if (*p || n < 0 || n > 1e15) {
    sim_print_once(NULL, "weir sim: not a number of bytes: %s", text);
    return otherwise;
  }
  return (size_t)n;
}

static bool read_link(char *entry)
{
  char *colon = strchr(entry, ':');
  if (!colon) return false;
  *colon = 0;
  int d = 0;
  while (d < SIM_DIRECTIONS && strcmp(direction_names[d], entry) != 0)
    d++;
  *colon = ':';
  if (d == SIM_DIRECTIONS) return false;
  const char *p = colon + 1;
  struct sim_link link = {0};
  link.bytes_per_ns = number_of_link(&p, 1000) / 1e9;
  if (link.bytes_per_ns < 0 || (*p && *p != ':')) return false;
  if (*p == ':') {
    char *unit;
    double latency = strtod(p + 1, &unit);
    double scale = !strcmp(unit, "ns")   ? 1
                   : !strcmp(unit, "us") ? 1e3
                   : !strcmp(unit, "ms") ? 1e6
                                         : 0;
    if (scale == 0 || latency < 0) return false;
    link.latency_ns = (uint64_t)(latency * scale);
  }
  links[d] = link;
  return true;
}

__attribute__((visibility("default"))) int weir_sim_set_link(const char *list)
{
  char copy[4096];
  strncpy(copy, list ? list : "", sizeof copy - 1);
  copy[sizeof copy - 1] = 0;
  int result = CUDA_SUCCESS;
  SIM_HOLD(lock);
  for (int d = 0; d < SIM_DIRECTIONS; d++)
    links[d] = sim_card_link((enum sim_direction)d);
  char *rest = copy;
  for (char *entry; (entry = strsep(&rest, ","));) {
    if (!*entry || read_link(entry)) continue;
    sim_print_once(NULL, "weir sim: link not understood (DIRECTION:BANDWIDTH:LATENCY): %s", entry);
    result = CUDA_ERROR_INVALID_VALUE;
  }
  bool slow = false;
  for (int d = 0; d < SIM_DIRECTIONS; d++)
    slow |= links[d].bytes_per_ns > 0 || links[d].latency_ns;
  atomic_store(&sim_link_slow, slow);
  return result;
}

struct sim_link sim_link_of(enum sim_direction direction)
{
  SIM_HOLD(lock);
  return links[direction];
}
