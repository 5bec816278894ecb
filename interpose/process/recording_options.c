/* recording_options.c: what a process begins to record, by its environment (recording.h). */
#include <stdlib.h>
#include <string.h>
#include "interpose/process/mode.h"
#include "interpose/process/part.h"
#include "interpose/process/process.h"
#include "interpose/process/recording.h"
#include "interpose/process/settings.h"

static void read_options(void)
{
  static const char range[] = "range:";
  static char name[1024]; /* as much as is kept of a range's name */
  const char *capture = getenv("WEIR_CAPTURE");
  bool dormant = process_flag_option("WEIR_DORMANT");
  if (process_unrecorded) return;
  if (capture && !strncmp(capture, range, strlen(range)) && capture[strlen(range)] &&
      strlen(capture + strlen(range)) < sizeof name)
    recording_range = memcpy(name, capture + strlen(range), strlen(capture + strlen(range)) + 1);
  else if (capture && !strcmp(capture, "profiler"))
    recording_by_profiler = true;
  else if (capture && *capture)
    process_say("WEIR_CAPTURE takes range:NAME or profiler, not '%s'; all calls are recorded.",
                capture);
  if (dormant || recording_range || recording_by_profiler) recording_steer(WEIR_RECORD_MEMORY);
}

static const process_part part = {.start = read_options};
PROCESS_PART(part);
