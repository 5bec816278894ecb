/* seam.c: the software device, as libcupti sees it: calls, work and resources come in here. */
#include "cuda/sim/cupti/sim_cupti.h"

#include <dlfcn.h>
#include <string.h>
#include <time.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct sim_seam seam;
static bool found;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* what is wanted */
static _Atomic bool calls_recorded;                      /* or waits */

static void look_up_seam(void *library, const char *name, void *slot)
{
  void *function = library ? dlsym(library, name) : NULL;
  memcpy(slot, &function, sizeof function);
  found &= function != NULL;
}

static void find_device(void)
{
  void *library = dlopen("libcuda.so.1", RTLD_NOW);
  found = true;
  look_up_seam(library, "weir_sim_watch", &seam.watch);
  look_up_seam(library, "weir_sim_context_device", &seam.context_device);
  look_up_seam(library, "weir_sim_stream_id", &seam.stream_id);
  look_up_seam(library, "weir_sim_node_id", &seam.node_id);
  look_up_seam(library, "weir_sim_graph_id", &seam.graph_id);
  look_up_seam(library, "weir_sim_exec_id", &seam.exec_id);
}

const struct sim_seam *sim_seam(void)
{
  pthread_once(&once, find_device);
  return found ? &seam : NULL;
}

uint64_t sim_client_now(void)
{
  CUpti_TimestampCallbackFunc client = atomic_load(&sim_timestamp);
  if (client) return client();
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- what the device states
 * -------------------------------------------------------------------- */

static void call_begins(struct weir_watch_call *call)
{
  if (atomic_load(&calls_recorded)) call->began = sim_client_now();
  sim_call_back(call, sim_cbid(call), false);
}

static void call_ends(struct weir_watch_call *call)
{
  CUpti_CallbackId cbid = sim_cbid(call);
  if (call->began) sim_record_call(call, cbid);
  sim_call_back(call, cbid, true);
  if (call->name[2] == 'G' && strncmp(call->name, "cuGraphLaunch", 13) == 0)
    atomic_store(&sim_graph_launched, true);
}

static const struct weir_watcher watcher = {.now = sim_client_now,
                                            .call_begins = call_begins,
                                            .call_ends = call_ends,
                                            .work = sim_record_work,
                                            .resource = sim_resource_call_back};

static uint32_t seam_wanted(void)
{
  uint32_t what = sim_wanted_kinds();
  atomic_store(&calls_recorded, what & WEIR_WATCH_CALLS);
  if (sim_domain_wanted(CUPTI_CB_DOMAIN_DRIVER_API) ||
      sim_domain_wanted(CUPTI_CB_DOMAIN_RUNTIME_API) ||
      sim_domain_wanted(CUPTI_CB_DOMAIN_SYNCHRONIZE))
    what |= WEIR_WATCH_CALLS;
  if (sim_domain_wanted(CUPTI_CB_DOMAIN_RESOURCE)) what |= WEIR_WATCH_RESOURCES;
  if (what && sim_faults()->finalize_crashes) what |= WEIR_WATCH_CALLS;
  return what;
}

void sim_watch_what_is_wanted(void)
{
  const struct sim_seam *s = sim_seam();
  if (!s) return;
  pthread_mutex_lock(&lock);
  s->watch(&watcher, seam_wanted());
  pthread_mutex_unlock(&lock);
}
