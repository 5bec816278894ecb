/* control.c: fault injection and capacity, by environment or by control.h.
 *
 * A list that cannot be read is reported on stderr and its bad entries are left out: a test that
 * injects nothing because of a typing mistake must not look like a test that passes. */
#include "cuda/sim/internal.h"

#include <stdlib.h>
#include <string.h>

#define SIM_EXPORT __attribute__((visibility("default")))

/* What a debugger sets to announce itself (cudadebugger.h: CUDBG_IPC_FLAG_NAME,
 * CUDBG_APICLIENT_PID). No debugger works on this driver; tests write them in its place. */
extern uint32_t cudbgIpcFlag, cudbgApiClientPid;
SIM_EXPORT uint32_t cudbgIpcFlag, cudbgApiClientPid;

struct rule { /* one FUNCTION:CALL=ERROR */
  unsigned api;
  uint64_t call; /* from 1; 0: every one */
  uint64_t seen;
  CUresult error;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct rule rules[64];
static unsigned rule_count;

/* ---- faults ---------------------------------------------------------------------------------- */

static bool read_rule(const char *entry, struct rule *rule)
{
  char name[128];
  const char *colon = strchr(entry, ':'), *equal = strchr(entry, '=');
  if (!colon || !equal || colon > equal || (size_t)(colon - entry) >= sizeof name) return false;
  memcpy(name, entry, (size_t)(colon - entry));
  name[colon - entry] = 0;
  char *end;
  rule->seen = 0;
  if (colon[1] == '*' && colon + 2 == equal) {
    rule->call = 0;
  } else {
    rule->call = strtoull(colon + 1, &end, 10);
    if (end != equal || !rule->call) return false;
  }
  long error = strtol(equal + 1, &end, 10);
  if (*end || end == equal + 1 || error <= 0 || error > CUDA_ERROR_UNKNOWN) return false;
  rule->error = (CUresult)error;
  for (rule->api = 0; rule->api < SIM_API_COUNT; rule->api++)
    if (strcmp(sim_api_names[rule->api], name) == 0) return true;
  return false;
}

SIM_EXPORT int weir_sim_set_fail(const char *list)
{
  char copy[4096];
  strncpy(copy, list ? list : "", sizeof copy - 1);
  copy[sizeof copy - 1] = 0;
  int result = CUDA_SUCCESS;
  SIM_HOLD(lock);
  rule_count = 0;
  char *rest = copy;
  for (char *entry; (entry = strsep(&rest, ","));) {
    if (!*entry) continue;
    if (rule_count < 64 && read_rule(entry, &rules[rule_count])) {
      rule_count++;
    } else {
      sim_print_once(NULL, "weir sim: fault not understood (FUNCTION:CALL=ERROR): %s", entry);
      result = CUDA_ERROR_INVALID_VALUE;
    }
  }
  if (rule_count)
    atomic_fetch_or(&sim_gate, SIM_GATE_FAIL);
  else
    atomic_fetch_and(&sim_gate, ~(uint32_t)SIM_GATE_FAIL);
  return result;
}

CUresult sim_control_fail(unsigned api)
{
  CUresult error = CUDA_SUCCESS;
  SIM_HOLD(lock);
  for (unsigned i = 0; i < rule_count; i++) {
    if (rules[i].api != api) continue;
    uint64_t call = ++rules[i].seen;
    if (!error && (!rules[i].call || rules[i].call == call)) error = rules[i].error;
  }
  return error;
}

/* ---- the rest -------------------------------------------------------------------------------- */

SIM_EXPORT int weir_sim_set_memory(int device, size_t bytes)
{
  struct sim_device *d = sim_device(device);
  if (!d) return CUDA_ERROR_INVALID_DEVICE;
  if (bytes > d->span) return CUDA_ERROR_INVALID_VALUE;
  atomic_store(&d->capacity, bytes);
  return CUDA_SUCCESS;
}

SIM_EXPORT int weir_sim_set_attribute(int attribute, int value)
{
  if (!sim_device(0)) return CUDA_ERROR_INVALID_DEVICE;
  return sim_device_set_attribute(attribute, value) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

SIM_EXPORT size_t weir_sim_peak(int device)
{
  struct sim_device *d = sim_device(device);
  if (!d) return 0;
  SIM_HOLD(sim_memory_lock);
  return d->peak;
}

void sim_control_start(void)
{
  const char *fail = getenv("WEIR_SIM_FAIL"), *link = getenv("WEIR_SIM_LINK");
  const char *card = getenv("WEIR_SIM_CARD");
  const char *blocking = getenv("CUDA_LAUNCH_BLOCKING"), *room = getenv("WEIR_SIM_QUEUE");
  sim_queue_room = room ? strtoull(room, NULL, 10) : 0;
  sim_launch_blocking = blocking && strcmp(blocking, "1") == 0;
  if (fail) weir_sim_set_fail(fail);
  if (card) weir_sim_set_card(card);
  if (link) weir_sim_set_link(link);
}
