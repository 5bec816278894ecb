/* clients.c: the program as a client of CUPTI, which has room for one, or from 13.2 on for several
 * that all report so when they subscribe.
 *
 * A profiler in the program (torch.profiler is one) subscribes, sets the functions that give and
 * take buffers, enables kinds of records, and later takes it all back. It must get what it would
 * get without us: so our client goes before the program's first such call reaches CUPTI, and stays
 * away until the program has unsubscribed, has disabled every kind, and has flushed what there
 * was: a flush after that would come to us. A client that enables kinds by context is taken to
 * stay.
 *
 * One that allows others needs nothing of this: ours stays, as one of several too. But CUPTI
 * refuses functions without a subscriber while there are several; so ours goes before any such
 * call, also one that only sets something, and from then on is alone or away. Should CUPTI refuse
 * the program all the same because ours was one of several before, cuptiFinalize() makes it forget
 * that, at a moment when it has no client at all.
 *
 * Our callbacks for buffers may be in CUPTI when the program enables kinds again with those that
 * it had set before: they are set for it again. */
#include "interpose/activity/clients.h"

#include <stdatomic.h>
#include <string.h>
#include "interpose/activity/activity.h"
#include "interpose/activity/observer.h"
#include "interpose/elf/elf.h"
#include "interpose/elf/entry.h"

enum { KINDS = 128, SEVERAL = 16, SEVERAL_FROM = 130200 };

typedef __typeof__(&cuptiActivityRegisterCallbacks) register_function;

static struct {
  _Atomic int calling;     /* calls under way that may make the program a client */
  _Atomic int subscribers; /* of the program, that are alone */
  _Atomic(CUpti_SubscriberHandle) several[SEVERAL]; /* those that allow others */
  _Atomic bool unversioned;     /* it has called functions that do not go with several */
  _Atomic uint8_t kinds[KINDS]; /* enabled by it */
  _Atomic bool unflushed;       /* records of it may be in CUPTI */
  _Atomic bool stays;
  _Atomic bool replaced; /* the functions below are not those that CUPTI has */
  _Atomic(CUpti_BuffersCallbackRequestFunc) request;
  _Atomic(CUpti_BuffersCallbackCompleteFunc) complete;
} client;

static bool any_kind(void)
{
  for (int i = 0; i < KINDS; i++)
    if (atomic_load(&client.kinds[i])) return true;
  return false;
}

bool clients_are_gone(void)
{
  return !atomic_load(&client.calling) && !atomic_load(&client.subscribers) &&
         !atomic_load(&client.unflushed) && !atomic_load(&client.stays) && !any_kind();
}

bool clients_share(void)
{
  for (int i = 0; i < SEVERAL; i++)
    if (atomic_load(&client.several[i])) return true;
  return false;
}

session_company clients_company(void)
{
  if (clients_share()) return SESSION_MUST_SHARE;
  return atomic_load(&client.unversioned) ? SESSION_MUST_BE_ALONE : SESSION_ANY;
}

void clients_note_replaced(void)
{
  atomic_store(&client.replaced, true);
}

static void forget_client(void)
{
  atomic_store(&client.subscribers, 0);
  atomic_store(&client.unflushed, false);
  atomic_store(&client.stays, false);
  atomic_store(&client.unversioned, false);
  atomic_store(&client.request, NULL);
  atomic_store(&client.complete, NULL);
  for (int i = 0; i < KINDS; i++)
    atomic_store(&client.kinds[i], 0);
  for (int i = 0; i < SEVERAL; i++)
    atomic_store(&client.several[i], NULL);
}

void clients_forget(void)
{
  atomic_store(&client.calling, 0);
  forget_client();
}

/* Of a function that does not go with several subscribers. */
static void begin_call(void)
{
  atomic_fetch_add(&client.calling, 1);
  atomic_store(&client.unversioned, true);
  if (observer_is_wanted()) observer_yield();
}

/* Of one that goes with several, not with one that is alone. */
static void begin_shared_call(void)
{
  atomic_fetch_add(&client.calling, 1);
  if (observer_is_wanted() && observer_is_alone()) observer_yield();
}

/* Of one that only sets something: ours may stay where it is alone. True: it has gone. */
static bool begin_setting(void)
{
  atomic_fetch_add(&client.calling, 1);
  bool first = !atomic_exchange(&client.unversioned, true);
  if (!first || !observer_is_wanted() || observer_is_alone()) return false;
  observer_yield();
  return true;
}

static CUptiResult end_call(CUptiResult result)
{
  atomic_fetch_sub(&client.calling, 1);
  observer_wake();
  return result;
}

static void note_kind(CUpti_ActivityKind kind, bool on)
{
  if ((unsigned)kind < KINDS) atomic_store(&client.kinds[kind], on);
}

/* ---- the wrappers ---------------------------------------------------------------------------- */

/* They set something, and do not go with several subscribers. */
#define CLIENT_SETTINGS(X)                                                                         \
  X(cuptiActivityRegisterTimestampCallback)                                                        \
  X(cuptiActivitySetAttribute)                                                                     \
  X(cuptiActivityGetAttribute)                                                                     \
  X(cuptiActivityEnableLatencyTimestamps)                                                          \
  X(cuptiActivityPushExternalCorrelationId)                                                        \
  X(cuptiActivityPopExternalCorrelationId)                                                         \
  X(cuptiSetThreadIdType)                                                                          \
  X(cuptiActivityEnableAllSyncRecords)                                                             \
  X(cuptiActivityEnableAllocationSource)                                                           \
  X(cuptiActivityEnableDeviceGraph)

#define CLIENT_MAP(X)                                                                              \
  X(cuptiSubscribe)                                                                                \
  X(cuptiSubscribe_v2)                                                                             \
  X(cuptiUnsubscribe)                                                                              \
  X(cuptiActivityRegisterCallbacks)                                                                \
  X(cuptiActivityEnable)                                                                           \
  X(cuptiActivityEnableAndDump)                                                                    \
  X(cuptiActivityEnableContext)                                                                    \
  X(cuptiActivityDisable)                                                                          \
  X(cuptiActivityFlushAll)                                                                         \
  X(cuptiFinalize)                                                                                 \
  CLIENT_SETTINGS(X)

enum {
#define CLIENT_NUMBER(name) CLIENT_##name,
  CLIENT_MAP(CLIENT_NUMBER)
#undef CLIENT_NUMBER
      CLIENT_FUNCTIONS
};

static _Atomic(void *) originals[CLIENT_FUNCTIONS]; /* NULL: not looked for yet */

/* Called through our export: what it would have reached without us. */
static void *original(int which, const char *name)
{
  void *real = atomic_load(&originals[which]);
  if (real) return real;
  real = cupti_library_mapped(name);
  if (real) atomic_store(&originals[which], real);
  return real;
}

#define REAL(name)                                                                                 \
  __typeof__(&name) real = (__typeof__(&name))(uintptr_t)original(CLIENT_##name, #name)
#define NEED_REAL                                                                                  \
  if (!real) return CUPTI_ERROR_NOT_INITIALIZED

/* CUPTI refuses it although no client is there: ours was one of several before. */
static bool is_refused_for_us(CUptiResult r)
{
  REAL(cuptiFinalize);
  return r == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED && observer_has_shared() &&
         !clients_share() && real && real() == CUPTI_SUCCESS;
}

#define CALL(r, call)                                                                              \
  CUptiResult r = (call);                                                                          \
  if (is_refused_for_us(r)) r = (call)

WEIR_BODY CUptiResult w_cuptiSubscribe(CUpti_SubscriberHandle *subscriber,
                                       CUpti_CallbackFunc callback, void *userdata)
{
  REAL(cuptiSubscribe);
  NEED_REAL;
  begin_call();
  CALL(r, real(subscriber, callback, userdata));
  if (r == CUPTI_SUCCESS) atomic_fetch_add(&client.subscribers, 1);
  return end_call(r);
}

static bool allows_others(const cupti_subscriber_params *params)
{
  return params && params->bytes > offsetof(cupti_subscriber_params, allows_others) &&
         params->allows_others == 1 && cupti_library_mapped_version() >= SEVERAL_FROM;
}

/* Where there is no room it is taken for one that must be alone, and ours is away. */
static bool note_several(CUpti_SubscriberHandle subscriber)
{
  CUpti_SubscriberHandle none = NULL;
  for (int i = 0; i < SEVERAL; i++, none = NULL)
    if (atomic_compare_exchange_strong(&client.several[i], &none, subscriber)) return true;
  return false;
}

static bool forget_several(CUpti_SubscriberHandle subscriber)
{
  for (int i = 0; i < SEVERAL; i++) {
    CUpti_SubscriberHandle it = subscriber;
    if (atomic_compare_exchange_strong(&client.several[i], &it, NULL)) return true;
  }
  return false;
}

/* Its parameters are of a newer struct than the headers at hand may have. */
WEIR_BODY CUptiResult w_cuptiSubscribe_v2(CUpti_SubscriberHandle *subscriber,
                                          CUpti_CallbackFunc callback, void *userdata,
                                          CUpti_SubscriberParams *params)
{
  REAL(cuptiSubscribe_v2);
  NEED_REAL;
  bool shared = allows_others((const void *)params);
  if (shared)
    begin_shared_call();
  else
    begin_call();
  CALL(r, real(subscriber, callback, userdata, params));
  if (r == CUPTI_SUCCESS && !(shared && note_several(*subscriber)))
    atomic_fetch_add(&client.subscribers, 1);
  return end_call(r);
}

WEIR_BODY CUptiResult w_cuptiUnsubscribe(CUpti_SubscriberHandle subscriber)
{
  REAL(cuptiUnsubscribe);
  NEED_REAL;
  CUptiResult r = real(subscriber);
  if (r == CUPTI_SUCCESS && !forget_several(subscriber) && atomic_load(&client.subscribers))
    atomic_fetch_sub(&client.subscribers, 1);
  observer_wake();
  return r;
}

WEIR_BODY CUptiResult w_cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                                       CUpti_BuffersCallbackCompleteFunc complete)
{
  REAL(cuptiActivityRegisterCallbacks);
  NEED_REAL;
  begin_call();
  CALL(r, real(request, complete));
  if (r == CUPTI_SUCCESS) {
    atomic_store(&client.request, request);
    atomic_store(&client.complete, complete);
    atomic_store(&client.replaced, false);
  }
  return end_call(r);
}

static void restore_callbacks(void)
{
  REAL(cuptiActivityRegisterCallbacks);
  CUpti_BuffersCallbackRequestFunc request = atomic_load(&client.request);
  if (!real || !request || !atomic_exchange(&client.replaced, false)) return;
  (void)real(request, atomic_load(&client.complete));
}

static CUptiResult note_enabled(CUptiResult r, CUpti_ActivityKind kind)
{
  if (r == CUPTI_SUCCESS) {
    note_kind(kind, true);
    atomic_store(&client.unflushed, true);
  }
  return end_call(r);
}

WEIR_BODY CUptiResult w_cuptiActivityEnable(CUpti_ActivityKind kind)
{
  REAL(cuptiActivityEnable);
  NEED_REAL;
  begin_call();
  restore_callbacks();
  CALL(r, real(kind));
  return note_enabled(r, kind);
}

WEIR_BODY CUptiResult w_cuptiActivityEnableAndDump(CUpti_ActivityKind kind)
{
  REAL(cuptiActivityEnableAndDump);
  NEED_REAL;
  begin_call();
  restore_callbacks();
  CALL(r, real(kind));
  return note_enabled(r, kind);
}

WEIR_BODY CUptiResult w_cuptiActivityEnableContext(CUcontext context, CUpti_ActivityKind kind)
{
  REAL(cuptiActivityEnableContext);
  NEED_REAL;
  begin_call();
  restore_callbacks();
  CALL(r, real(context, kind));
  if (r == CUPTI_SUCCESS) atomic_store(&client.stays, true);
  return end_call(r);
}

WEIR_BODY CUptiResult w_cuptiActivityDisable(CUpti_ActivityKind kind)
{
  REAL(cuptiActivityDisable);
  NEED_REAL;
  CUptiResult r = real(kind);
  if (r == CUPTI_SUCCESS) note_kind(kind, false);
  observer_wake();
  return r;
}

WEIR_BODY CUptiResult w_cuptiActivityFlushAll(uint32_t flag)
{
  REAL(cuptiActivityFlushAll);
  NEED_REAL;
  bool last = !any_kind();
  CUptiResult r = real(flag);
  if (last && r == CUPTI_SUCCESS) atomic_store(&client.unflushed, false);
  observer_wake();
  return r;
}

/* Ends every client's work, and may be called in a callback: the thread comes back later. */
WEIR_BODY CUptiResult w_cuptiFinalize(void)
{
  REAL(cuptiFinalize);
  NEED_REAL;
  atomic_fetch_add(&client.calling, 1);
  if (observer_is_wanted()) observer_yield();
  CUptiResult r = real();
  if (r == CUPTI_SUCCESS) forget_client();
  return end_call(r);
}

#define SETTING(name, parameters, arguments)                                                       \
  WEIR_BODY CUptiResult w_##name parameters                                                        \
  {                                                                                                \
    REAL(name);                                                                                    \
    NEED_REAL;                                                                                     \
    bool gone = begin_setting();                                                                   \
    CALL(r, real arguments);                                                                       \
    if (gone) return end_call(r);                                                                  \
    atomic_fetch_sub(&client.calling, 1);                                                          \
    return r;                                                                                      \
  }
SETTING(cuptiActivityRegisterTimestampCallback, (CUpti_TimestampCallbackFunc clock), (clock))
SETTING(cuptiActivitySetAttribute, (CUpti_ActivityAttribute which, size_t *bytes, void *value),
        (which, bytes, value))
SETTING(cuptiActivityGetAttribute, (CUpti_ActivityAttribute which, size_t *bytes, void *value),
        (which, bytes, value))
SETTING(cuptiActivityEnableLatencyTimestamps, (uint8_t enable), (enable))
SETTING(cuptiActivityPushExternalCorrelationId, (CUpti_ExternalCorrelationKind kind, uint64_t id),
        (kind, id))
SETTING(cuptiActivityPopExternalCorrelationId, (CUpti_ExternalCorrelationKind kind, uint64_t *last),
        (kind, last))
SETTING(cuptiSetThreadIdType, (CUpti_ActivityThreadIdType type), (type))
SETTING(cuptiActivityEnableAllSyncRecords, (uint8_t enable), (enable))
SETTING(cuptiActivityEnableAllocationSource, (uint8_t enable), (enable))
SETTING(cuptiActivityEnableDeviceGraph, (uint8_t enable), (enable))

/* Under the version nodes that a program which links CUPTI asks for (interpose/exports.map); dlsym
 * does not see them, as in table/rows.h. */
#define CLIENT_ENTRY(name) WEIR_ENTRY_OWN(weir_e_##name, w_##name);
CLIENT_MAP(CLIENT_ENTRY)
#undef CLIENT_ENTRY
#define CLIENT_EXPORT_OF(name, major)                                                              \
  __asm__(".globl weir_x_" #name #major "\n.type weir_x_" #name #major                             \
          ", %function\n.set weir_x_" #name #major ", weir_e_" #name                               \
          "\n.symver weir_x_" #name #major ", " #name "@libcupti.so." #major ", remove\n");
#define CLIENT_EXPORT(name) CLIENT_EXPORT_OF(name, 12) CLIENT_EXPORT_OF(name, 13)
CLIENT_MAP(CLIENT_EXPORT)
#undef CLIENT_EXPORT

/* ---- look-ups -------------------------------------------------------------------------------- */

static const struct client_row {
  const char *name;
  void *wrapper;
} rows[CLIENT_FUNCTIONS] = {
#define CLIENT_ROW(name) {#name, WEIR_CODE(weir_e_##name)},
    CLIENT_MAP(CLIENT_ROW)
#undef CLIENT_ROW
};

void *activity_wrap(const char *name, void *real)
{
  if (!real || !observer_is_wanted()) return real;
  for (int i = 0; i < CLIENT_FUNCTIONS; i++) {
    void *none = NULL;
    if (strcmp(rows[i].name, name) != 0) continue;
    if (!activity_is_cupti(real)) return real;
    if (!atomic_compare_exchange_strong(&originals[i], &none, real) && none != real) return real;
    return rows[i].wrapper;
  }
  return real;
}
