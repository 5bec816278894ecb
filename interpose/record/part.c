/* part.c: the recorder's part in the life of a process (process/part.h). */
#include "interpose/process/part.h"
#include "interpose/record/capture.h"
#include "interpose/record/context.h"
#include "interpose/record/pools.h"
#include "interpose/record/unseen.h"

/* What the parent's other threads were at is under way in the parent alone. */
static void forked(void)
{
  weir_unseen_forked();
  weir_capture_forked();
  weir_pools_forked();
}

static const process_part part = {.forked = forked, .unloaded = weir_helpers_forget};
PROCESS_PART(part);
