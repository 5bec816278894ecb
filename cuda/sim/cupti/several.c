/* several.c: the functions of one subscriber among several, of CUPTI 13.2; and those of 13.3 that
 * read what came for it. Headers before have none of them, so they are declared here. An older
 * version, as which this library may pose, does not have them: they are not supported then. */
#include "cuda/sim/cupti/sim_cupti.h"

#define SUBSCRIBER CUpti_SubscriberHandle subscriber

CUPTI_API CUptiResult CUPTIAPI cuptiActivityRegisterCallbacks_v2(SUBSCRIBER, sim_request_v2 request,
                                                                 sim_complete_v2 complete);
CUPTI_API CUptiResult CUPTIAPI cuptiActivityEnable_v2(SUBSCRIBER, CUpti_ActivityKind kind,
                                                      sim_activity_config *config);
CUPTI_API CUptiResult CUPTIAPI cuptiActivityDisable_v2(SUBSCRIBER, CUpti_ActivityKind kind,
                                                       sim_activity_config *config);
CUPTI_API CUptiResult CUPTIAPI cuptiActivityGetNextRecord_v2(SUBSCRIBER, uint8_t *buffer,
                                                             size_t valid, CUpti_Activity **record);
CUPTI_API CUptiResult CUPTIAPI cuptiActivityGetNumDroppedRecords_v2(SUBSCRIBER, CUcontext context,
                                                                    uint32_t stream, size_t *count);
CUPTI_API CUptiResult CUPTIAPI cuptiGetTimestamp_v2(SUBSCRIBER, uint64_t *timestamp);

/* The subscriber's number as a client in `client`; else why not. */
static CUptiResult find_client(unsigned *client, SUBSCRIBER, uint32_t from)
{
  if (sim_cupti_version < from) return CUPTI_ERROR_NOT_SUPPORTED;
  *client = sim_client_of(subscriber);
  return *client ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}

CUptiResult cuptiActivityRegisterCallbacks_v2(SUBSCRIBER, sim_request_v2 request,
                                              sim_complete_v2 complete)
{
  unsigned client;
  CUptiResult error = find_client(&client, subscriber, SIM_SEVERAL_FROM);
  if (!error && (!request || !complete)) error = CUPTI_ERROR_INVALID_PARAMETER;
  if (!error) sim_register(client, request, complete);
  return error;
}

static CUptiResult switch_kind(SUBSCRIBER, CUpti_ActivityKind kind, const void *config, bool on)
{
  unsigned client;
  CUptiResult error = find_client(&client, subscriber, SIM_SEVERAL_FROM);
  if (!error && config) error = CUPTI_ERROR_NOT_SUPPORTED; /* no fields are chosen here */
  if (!error) error = sim_check_kind(kind, on);
  if (!error) sim_enable(client, kind, on);
  return error;
}

CUptiResult cuptiActivityEnable_v2(SUBSCRIBER, CUpti_ActivityKind kind, sim_activity_config *config)
{
  return switch_kind(subscriber, kind, config, true);
}

CUptiResult cuptiActivityDisable_v2(SUBSCRIBER, CUpti_ActivityKind kind,
                                    sim_activity_config *config)
{
  return switch_kind(subscriber, kind, config, false);
}

CUptiResult cuptiActivityGetNextRecord_v2(SUBSCRIBER, uint8_t *buffer, size_t valid,
                                          CUpti_Activity **record)
{
  unsigned client;
  CUptiResult error = find_client(&client, subscriber, SIM_READERS_FROM);
  return error ? error : cuptiActivityGetNextRecord(buffer, valid, record);
}

CUptiResult cuptiActivityGetNumDroppedRecords_v2(SUBSCRIBER, CUcontext context, uint32_t stream,
                                                 size_t *count)
{
  unsigned client;
  CUptiResult error = find_client(&client, subscriber, SIM_READERS_FROM);
  (void)context, (void)stream;
  if (!error && !count) error = CUPTI_ERROR_INVALID_PARAMETER;
  if (!error) *count = sim_dropped(client);
  return error;
}

CUptiResult cuptiGetTimestamp_v2(SUBSCRIBER, uint64_t *timestamp)
{
  unsigned client;
  CUptiResult error = find_client(&client, subscriber, SIM_READERS_FROM);
  return error ? error : cuptiGetTimestamp(timestamp);
}
