/* absent.c: in the place of all else here where xxhash.h was not there at build time. */
#include <stdlib.h>
#include "interpose/process/settings.h"
#include "interpose/process/part.h"
#include "interpose/process/process.h"

static void refuse_hashing(void)
{
  const char *text = getenv("WEIR_HASH");
  bool on = true;
  if (text && (option_bool(&on, "WEIR_HASH", text) != WEIR_OK || on))
    process_say("WEIR_HASH: this build has no libxxhash; copies are not hashed.");
}

static const process_part part = {.start = refuse_hashing};
PROCESS_PART(part);
