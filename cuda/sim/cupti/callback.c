/* callback.c: subscribers, and what they are called back for.
 *
 * One subscriber at a time; from CUPTI 13.2 on several, where each reports it when it subscribes by
 * the second form (CUpti_SubscriberParams.allowMultipleSubscribers, which follows the fields of
 * 13.0's structure). The two forms do not go together: who is not a subscriber among several is
 * refused, and several are while kinds are enabled without a subscriber. */
#include "cuda/sim/cupti/sim_cupti.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { IDS = 1024 };

struct CUpti_Subscriber_st {
  _Atomic bool live;
  bool several; /* allows others */
  CUpti_CallbackFunc callback;
  void *data;
  char name[64];
  _Atomic uint64_t wanted[CUPTI_CB_DOMAIN_SIZE][IDS / 64]; /* a bit a callback */
};

static struct CUpti_Subscriber_st subscribers[SIM_SUBSCRIBERS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* who is live */
static _Atomic bool several_live;
static bool shared_before; /* there were several, or might have been */

/* ---- functions and their numbers ------------------------------------------------------------- */

struct api {
  const char *name;
  CUpti_CallbackId cbid;
  const char *full; /* with its version */
};

static const struct api driver[] = {
#define D(name, number, full) {name, number, full},
#define T(name, number, full)
#include "cbid.gen.h"
#undef D
#undef T
};

static const struct api runtime[] = {
#define D(name, number, full)
#define T(name, number, full) {name, number, full},
#include "cbid.gen.h"
#undef D
#undef T
};

static int compare_callbacks(const void *name, const void *api)
{
  return strcmp(name, ((const struct api *)api)->name);
}

static const struct api *search(const struct weir_watch_call *call)
{
  const struct api *table = call->runtime ? runtime : driver;
  size_t bytes = call->runtime ? sizeof runtime : sizeof driver;
  return bsearch(call->name, table, bytes / sizeof *table, sizeof *table, compare_callbacks);
}

/* A program calls few functions again and again, and a name has one address: what was found lies at
 * a place by address. Another function's name may have come to lie there since, or share the place:
 * names are compared. */
CUpti_CallbackId sim_cbid(const struct weir_watch_call *call)
{
  enum { PLACES = 256 };
  static _Atomic(const struct api *) last[2][PLACES];
  _Atomic(const struct api *) *place =
      &last[call->runtime][((uintptr_t)call->name ^ (uintptr_t)call->name >> 8) % PLACES];
  const struct api *found = atomic_load_explicit(place, memory_order_relaxed);
  if (found && strcmp(found->name, call->name) == 0) return found->cbid;
  found = search(call);
  if (found) atomic_store_explicit(place, found, memory_order_relaxed);
  return found ? found->cbid : 0;
}

CUPTI_API CUptiResult CUPTIAPI cuptiGetCallbackName(CUpti_CallbackDomain domain, uint32_t cbid,
                                                    const char **name)
{
  const struct api *table = domain == CUPTI_CB_DOMAIN_RUNTIME_API ? runtime : driver;
  size_t bytes = domain == CUPTI_CB_DOMAIN_RUNTIME_API ? sizeof runtime : sizeof driver;
  bool known = domain == CUPTI_CB_DOMAIN_RUNTIME_API || domain == CUPTI_CB_DOMAIN_DRIVER_API;
  if (!name || !known) return CUPTI_ERROR_INVALID_PARAMETER;
  for (size_t i = 0; i < bytes / sizeof *table; i++)
    if (table[i].cbid == cbid) {
      *name = table[i].full;
      return CUPTI_SUCCESS;
    }
  return CUPTI_ERROR_INVALID_PARAMETER;
}

CUPTI_API CUptiResult CUPTIAPI cuptiSupportedDomains(size_t *count, CUpti_DomainTable *domains)
{
  static CUpti_CallbackDomain all[] = {CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_CB_DOMAIN_RUNTIME_API,
                                       CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CB_DOMAIN_SYNCHRONIZE};
  if (!count || !domains) return CUPTI_ERROR_INVALID_PARAMETER;
  *count = sizeof all / sizeof *all;
  *domains = all;
  return CUPTI_SUCCESS;
}

/* ---- subscribing ----------------------------------------------------------------------------- */

static const struct CUpti_Subscriber_st *first_live(void) /* locked */
{
  for (int i = 0; i < SIM_SUBSCRIBERS; i++)
    if (atomic_load(&subscribers[i].live)) return &subscribers[i];
  return NULL;
}

static struct CUpti_Subscriber_st *take_place(void) /* locked */
{
  for (int i = 0; i < SIM_SUBSCRIBERS; i++)
    if (!atomic_load(&subscribers[i].live)) return &subscribers[i];
  return NULL;
}

bool sim_several(void)
{
  return atomic_load(&several_live);
}

static void note_several(void) /* locked */
{
  const struct CUpti_Subscriber_st *first = first_live();
  shared_before |= first && first->several;
  atomic_store(&several_live,
               (first && first->several) || (shared_before && sim_faults()->sharing_stays));
}

static void want_nothing(struct CUpti_Subscriber_st *s)
{
  for (int d = 0; d < CUPTI_CB_DOMAIN_SIZE; d++)
    for (int i = 0; i < IDS / 64; i++)
      atomic_store(&s->wanted[d][i], 0);
}

static CUptiResult subscribe(struct CUpti_Subscriber_st **handle, CUpti_CallbackFunc callback,
                             void *data, bool several, const char *name, char *old, size_t room)
{
  if (!handle) return CUPTI_ERROR_INVALID_PARAMETER;
  if (!sim_seam()) return CUPTI_ERROR_NOT_INITIALIZED;
  pthread_mutex_lock(&lock);
  const struct CUpti_Subscriber_st *first = first_live();
  bool refused = sim_faults()->subscribed || (first && !(several && first->several));
  refused |= several && sim_enables_any(0);
  refused |= !several && sim_several();
  if (old && room && (first || refused))
    (void)snprintf(old, room, "%s", first ? first->name : "another tool");
  struct CUpti_Subscriber_st *s = refused ? NULL : take_place();
  if (s) {
    want_nothing(s);
    s->callback = callback;
    s->data = data;
    s->several = several;
    (void)snprintf(s->name, sizeof s->name, "CUPTI for %.53s", name ? name : "");
    atomic_store(&s->live, true);
    note_several();
    *handle = s;
  }
  pthread_mutex_unlock(&lock);
  return s ? CUPTI_SUCCESS : CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
}

CUPTI_API CUptiResult CUPTIAPI cuptiSubscribe(CUpti_SubscriberHandle *handle,
                                              CUpti_CallbackFunc callback, void *data)
{
  return subscribe(handle, callback, data, false, NULL, NULL, 0);
}

CUPTI_API CUptiResult CUPTIAPI cuptiSubscribe_v2(CUpti_SubscriberHandle *handle,
                                                 CUpti_CallbackFunc callback, void *data,
                                                 CUpti_SubscriberParams *p)
{
  const size_t known = offsetof(CUpti_SubscriberParams, oldSubscriberSize) + sizeof(size_t);
  if (!p) return subscribe(handle, callback, data, false, NULL, NULL, 0);
  if (p->structSize < known) return CUPTI_ERROR_INVALID_PARAMETER;
  bool newer = sim_cupti_version >= SIM_SEVERAL_FROM && p->structSize > known;
  bool several = newer && ((const uint8_t *)p)[known];
  return subscribe(handle, callback, data, several, p->subscriberName, p->oldSubscriberName,
                   p->oldSubscriberSize);
}

static bool is_subscriber(CUpti_SubscriberHandle s)
{
  for (int i = 0; i < SIM_SUBSCRIBERS; i++)
    if (s == &subscribers[i]) return atomic_load(&s->live);
  return false;
}

unsigned sim_client_of(CUpti_SubscriberHandle s)
{
  return is_subscriber(s) ? 1 + (unsigned)(s - subscribers) : 0;
}

CUPTI_API CUptiResult CUPTIAPI cuptiUnsubscribe(CUpti_SubscriberHandle s)
{
  unsigned client = sim_client_of(s);
  if (!client) return CUPTI_ERROR_INVALID_PARAMETER;
  sim_enable_nothing(client);
  sim_forget_buffers(client);
  pthread_mutex_lock(&lock);
  want_nothing(s);
  atomic_store(&s->live, false);
  note_several();
  pthread_mutex_unlock(&lock);
  sim_watch_what_is_wanted();
  return CUPTI_SUCCESS;
}

unsigned sim_subscriber_count(void)
{
  unsigned n = 0;
  for (int i = 0; i < SIM_SUBSCRIBERS; i++)
    n += atomic_load(&subscribers[i].live);
  return n;
}

void sim_subscribers_end(void)
{
  pthread_mutex_lock(&lock);
  for (int i = 0; i < SIM_SUBSCRIBERS; i++) {
    want_nothing(&subscribers[i]);
    atomic_store(&subscribers[i].live, false);
  }
  shared_before = false;
  note_several();
  pthread_mutex_unlock(&lock);
}

static void callbacks_in_child(void)
{
  pthread_mutex_init(&lock, NULL);
  sim_subscribers_end();
}

__attribute__((constructor)) static void watch_forks_of_callbacks(void)
{
  pthread_atfork(NULL, NULL, callbacks_in_child);
}

/* ---- what is wanted -------------------------------------------------------------------------- */

static bool is_domain(CUpti_CallbackDomain d)
{
  return d > CUPTI_CB_DOMAIN_INVALID && d < CUPTI_CB_DOMAIN_SIZE;
}

static bool wants(const struct CUpti_Subscriber_st *s, CUpti_CallbackDomain d, CUpti_CallbackId id)
{
  return id < IDS && atomic_load(&s->wanted[d][id / 64]) >> id % 64 & 1;
}

static void set_all(CUpti_SubscriberHandle s, int domain, bool on)
{
  for (int i = 0; i < IDS / 64; i++)
    atomic_store(&s->wanted[domain][i], on ? UINT64_MAX : 0);
}

bool sim_domain_wanted(CUpti_CallbackDomain d)
{
  for (int s = 0; s < SIM_SUBSCRIBERS; s++)
    for (int i = 0; i < IDS / 64 && atomic_load(&subscribers[s].live); i++)
      if (atomic_load(&subscribers[s].wanted[d][i])) return true;
  return false;
}

CUPTI_API CUptiResult CUPTIAPI cuptiEnableCallback(uint32_t enable, CUpti_SubscriberHandle s,
                                                   CUpti_CallbackDomain domain, CUpti_CallbackId id)
{
  if (!is_subscriber(s) || !is_domain(domain) || id >= IDS) return CUPTI_ERROR_INVALID_PARAMETER;
  uint64_t bit = (uint64_t)1 << id % 64;
  if (enable)
    atomic_fetch_or(&s->wanted[domain][id / 64], bit);
  else
    atomic_fetch_and(&s->wanted[domain][id / 64], ~bit);
  sim_watch_what_is_wanted();
  return CUPTI_SUCCESS;
}

CUPTI_API CUptiResult CUPTIAPI cuptiEnableDomain(uint32_t enable, CUpti_SubscriberHandle s,
                                                 CUpti_CallbackDomain domain)
{
  if (!is_subscriber(s) || !is_domain(domain)) return CUPTI_ERROR_INVALID_PARAMETER;
  set_all(s, domain, enable != 0);
  sim_watch_what_is_wanted();
  return CUPTI_SUCCESS;
}

CUPTI_API CUptiResult CUPTIAPI cuptiEnableAllDomains(uint32_t enable, CUpti_SubscriberHandle s)
{
  if (!is_subscriber(s)) return CUPTI_ERROR_INVALID_PARAMETER;
  for (int d = 1; d < CUPTI_CB_DOMAIN_SIZE; d++)
    set_all(s, d, enable != 0);
  sim_watch_what_is_wanted();
  return CUPTI_SUCCESS;
}

CUPTI_API CUptiResult CUPTIAPI cuptiGetCallbackState(uint32_t *enable, CUpti_SubscriberHandle s,
                                                     CUpti_CallbackDomain domain,
                                                     CUpti_CallbackId id)
{
  if (!enable || !is_subscriber(s) || !is_domain(domain) || id >= IDS)
    return CUPTI_ERROR_INVALID_PARAMETER;
  *enable = wants(s, domain, id);
  return CUPTI_SUCCESS;
}

/* ---- calling back ---------------------------------------------------------------------------- */

static bool is_wanted(CUpti_CallbackDomain domain, CUpti_CallbackId id)
{
  for (int i = 0; i < SIM_SUBSCRIBERS; i++)
    if (atomic_load(&subscribers[i].live) && wants(&subscribers[i], domain, id)) return true;
  return false;
}

static void tell(CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *data)
{
  for (int i = 0; i < SIM_SUBSCRIBERS; i++) {
    struct CUpti_Subscriber_st *s = &subscribers[i];
    if (atomic_load(&s->live) && wants(s, domain, id) && s->callback)
      s->callback(s->data, domain, id, data);
  }
}

/* A stream or context has been waited for. */
static void tell_waits(const struct weir_watch_call *call)
{
  if (call->name[2] != 'S' && call->name[2] != 'C') return;
  bool stream = strncmp(call->name, "cuStreamSynchronize", 19) == 0;
  if (!stream && strncmp(call->name, "cuCtxSynchronize", 16) != 0) return;
  CUpti_SynchronizeData data = {.context = call->context,
                                .stream = stream ? *(CUstream const *)call->params : NULL};
  tell(CUPTI_CB_DOMAIN_SYNCHRONIZE,
       stream ? CUPTI_CBID_SYNCHRONIZE_STREAM_SYNCHRONIZED
              : CUPTI_CBID_SYNCHRONIZE_CONTEXT_SYNCHRONIZED,
       &data);
}

void sim_call_back(struct weir_watch_call *call, CUpti_CallbackId cbid, bool at_end)
{
  CUpti_CallbackDomain domain =
      call->runtime ? CUPTI_CB_DOMAIN_RUNTIME_API : CUPTI_CB_DOMAIN_DRIVER_API;
  if (at_end && !call->runtime) tell_waits(call);
  if (!cbid || !is_wanted(domain, cbid)) return;
  CUpti_CallbackData data = {.callbackSite = at_end ? CUPTI_API_EXIT : CUPTI_API_ENTER,
                             .functionName = call->name,
                             .functionParams = call->params,
                             .functionReturnValue = call->result,
                             .context = call->context,
                             .contextUid = call->context_id,
                             .correlationData = &call->data,
                             .correlationId = call->correlation};
  tell(domain, cbid, &data);
}

void sim_resource_call_back(const struct weir_watch_resource *r)
{
  CUpti_GraphData graph = {.graph = r->graph,
                           .originalGraph = r->original_graph,
                           .node = r->node,
                           .originalNode = r->original_node,
                           .nodeType = (CUgraphNodeType)r->node_type,
                           .graphExec = r->exec};
  CUpti_ResourceData data = {.context = r->context};
  data.resourceHandle.stream = r->stream;
  if (r->graph || r->exec) data.resourceDescriptor = &graph;
  tell(CUPTI_CB_DOMAIN_RESOURCE, (CUpti_CallbackId)r->event, &data);
}
