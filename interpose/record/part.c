/* part.c: the recorder's part in the life of a process (process/part.h). */
#include "interpose/process/part.h"
#include "interpose/record/access.h"
#include "interpose/record/captures.h"
#include "interpose/record/context.h"
#include "interpose/record/device_memory.h"
#include "interpose/record/imported.h"
#include "interpose/record/physical.h"
#include "interpose/record/pools.h"
#include "interpose/record/unwrapped.h"

/* What the parent's other threads were at is under way in the parent alone. */
static void reset_after_fork(void)
{
  unwrapped_forked();
  capture_forked();
  driver_pools_forked();
  physical_forked();
  imported_forked();
  device_memory_forked();
  access_forked();
}

static void sample_new_context(void)
{
  device_memory_sample(&thread_self, false);
}

static void forget_unloaded(void)
{
  driver_helpers_forget();
  access_forget_all();
}

static const process_part part = {
    .context = sample_new_context, .forked = reset_after_fork, .unloaded = forget_unloaded};
PROCESS_PART(part);
